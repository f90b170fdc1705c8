/* Functions and statements -> IR. */
#include "frontend/cuda/lower.h"

#include <string.h>

/* ---- which variables a construct assigns ---- */

typedef struct assigned {
    cu_low *l;
    uint32_t *numbers, count, capacity;
} assigned;

static void add_number(assigned *a, uint32_t number) {
    for (uint32_t i = 0; i < a->count; i++)
        if (a->numbers[i] == number) return;
    if (a->count == a->capacity) {
        a->capacity = a->capacity * 2 + 8;
        uint32_t *grown = ARENA_ARRAY(a->l->mem, uint32_t, a->capacity);
        if (a->count > 0) memcpy(grown, a->numbers, a->count * sizeof *grown);
        a->numbers = grown;
    }
    a->numbers[a->count++] = number;
}

/* What is assigned through members is in the variable. */
static void add_target(assigned *a, const cu_expr *e) {
    const cu_type *t = e->type;
    uint32_t leaf = 0;
    for (; e->kind == EX_MEMBER; e = e->a) leaf += e->field->leaf;
    if (e->kind != EX_VARIABLE) return;
    const cu_variable *v = e->variable;
    if (v->live != a->l->stamp || v->memory != NULL || v->slots == NULL) return;
    uint32_t *numbers, n = cu_slot_numbers(a->l, v, leaf, t->plain->leaves, &numbers);
    for (uint32_t i = 0; i < n; i++) add_number(a, numbers[i]);
}

static void add_expr(assigned *a, const cu_expr *e) {
    if (e == NULL) return;
    if (e->kind == EX_ASSIGN || e->kind == EX_STEP) add_target(a, e->a);
    add_expr(a, e->a);
    add_expr(a, e->b);
    add_expr(a, e->c);
    for (uint32_t i = 0; i < e->count; i++) add_expr(a, e->list[i]);
}

static void add_statements(assigned *a, const cu_stmt *s) {
    for (; s != NULL; s = s->next) {
        add_expr(a, s->value);
        add_expr(a, s->step);
        if (s->kind == ST_DECLARE) add_expr(a, s->variable->init);
        add_statements(a, s->first);
        add_statements(a, s->body);
        add_statements(a, s->other);
    }
}

vars_label cu_carry(cu_low *l, const cu_stmt *s, const cu_expr *e, const cu_expr *f,
                    const uint32_t *also, uint32_t nalso) {
    assigned a = {.l = l};
    for (uint32_t i = 0; i < nalso; i++) add_number(&a, also[i]);
    add_statements(&a, s);
    add_expr(&a, e);
    add_expr(&a, f);
    return vars_carry(a.numbers, a.count);
}

/* ---- statements ---- */

/* Its first value, whatever its qualifiers. */
static void write_first(cu_low *l, cu_variable *v, const cu_token *at, const cu_value *value) {
    cu_place p = cu_variable_place(l, v, at);
    p.type = v->type->plain;
    cu_write(l, &p, value);
}

static void declare(cu_low *l, const cu_stmt *s) {
    cu_variable *v = s->variable;
    if (v->storage == CU_SHARED || v->storage == CU_DYNAMIC_SHARED) return; /* at its first use */
    cu_begin_variable(l, v);
    if (v->init == NULL) return;
    cu_value value = cu_lower(l, v->init);
    write_first(l, v, s->at, &value);
}

static void lower_if(cu_low *l, cu_stmt *s) {
    ir_value *cond = cu_lower_one(l, s->value);
    assigned a = {.l = l};
    add_statements(&a, s->body);
    add_statements(&a, s->other);
    vars_label end = vars_carry(a.numbers, a.count);
    cu_at(l, s->at);
    vars_begin_if(&l->vars, cond, &end);
    cu_lower_statement(l, s->body);
    vars_else(&l->vars, &end);
    if (s->other != NULL) cu_lower_statement(l, s->other);
    vars_end(&l->vars, &end);
}

/* Leaves the loop where the condition fails. */
static void test(cu_low *l, cu_expr *cond, vars_label *exit) {
    if (cond == NULL || (cond->kind == EX_CONSTANT && cond->bits != 0)) return;
    ir_value *c = cu_lower_one(l, cond);
    vars_label none = vars_carry(NULL, 0);
    cu_at(l, cond->at);
    vars_begin_if(&l->vars, c, &none);
    vars_else(&l->vars, &none);
    vars_arrive(&l->vars, exit);
    vars_end(&l->vars, &none);
}

/* while, for, do: the body is a block, whose end is continue's. */
static void lower_loop(cu_low *l, cu_stmt *s) {
    if (s->kind == ST_FOR)
        for (cu_stmt *f = s->first; f != NULL; f = f->next) cu_lower_statement(l, f);
    assigned a = {.l = l};
    add_statements(&a, s->body);
    add_expr(&a, s->value);
    add_expr(&a, s->step);
    vars_label head = vars_carry(a.numbers, a.count), exit = head, next = head;
    cu_flow flow = {l->flow, &exit, &next};
    cu_at(l, s->at);
    vars_begin_loop(&l->vars, &head, &exit);
    if (s->kind != ST_DO) test(l, s->value, &exit);
    vars_begin_block(&l->vars, &next);
    l->flow = &flow;
    cu_lower_statement(l, s->body);
    l->flow = flow.outer;
    vars_end(&l->vars, &next);
    if (s->step != NULL) cu_lower(l, s->step);
    if (s->kind == ST_DO) test(l, s->value, &exit);
    vars_end(&l->vars, &exit);
}

/* ---- switch ---- */

enum { MOST_CASES = 4096 };

static bool has_case(const cu_stmt *s) {
    for (; s != NULL; s = s->next) {
        if (s->kind == ST_CASE) return true;
        if (s->kind == ST_SWITCH) continue;
        if (has_case(s->first) || has_case(s->body) || has_case(s->other)) return true;
    }
    return false;
}

static uint32_t count_cases(cu_low *l, const cu_stmt *body) {
    uint32_t n = 0;
    const cu_stmt *declared = NULL;
    for (const cu_stmt *s = body->first; s != NULL; s = s->next) {
        n += s->kind == ST_CASE;
        if (s->kind == ST_DECLARE) declared = s;
        if (s->kind == ST_CASE && declared != NULL && n > 0)
            cu_fail(l->u, declared->at,
                    "a declaration between the cases of a switch: put { } around it");
        if (n > MOST_CASES) cu_fail(l->u, s->at, "a switch with more than %d cases", MOST_CASES);
        bool inside = s->kind != ST_CASE && s->kind != ST_SWITCH &&
                      (has_case(s->first) || has_case(s->body) || has_case(s->other));
        if (inside) cu_not_yet(l->u, s->at, "a case inside of another statement of its switch");
    }
    return n;
}

static void choose_case(cu_low *l, const cu_stmt *s, ir_value *value, vars_label *cases,
                        vars_label *otherwise) {
    vars_label none = vars_carry(NULL, 0);
    uint32_t i = 0;
    for (const cu_stmt *c = s->body->first; c != NULL; c = c->next) {
        if (c->kind != ST_CASE) continue;
        vars_label *to = &cases[i++];
        if (c->is_default) {
            otherwise = to;
            continue;
        }
        ir_value *bits = ir_const_bits(&l->b, value->type, ir_cut_bits(c->bits, value->type));
        vars_begin_if(&l->vars, ir_binary(&l->b, IR_EQ, value, bits), &none);
        vars_arrive(&l->vars, to);
        vars_else(&l->vars, &none);
        vars_end(&l->vars, &none);
    }
    vars_arrive(&l->vars, otherwise);
}

static void lower_switch(cu_low *l, cu_stmt *s) {
    ir_value *value = cu_lower_one(l, s->value);
    uint32_t n = count_cases(l, s->body), i = 0;
    vars_label end = cu_carry(l, s->body, NULL, NULL, NULL, 0);
    vars_label *cases = ARENA_ARRAY(l->mem, vars_label, n + 1);
    cu_flow flow = {l->flow, &end, l->flow != NULL ? l->flow->next : NULL};
    cu_at(l, s->at);
    for (uint32_t k = 0; k < n; k++) cases[k] = end;
    vars_begin_block(&l->vars, &end);
    for (uint32_t k = n; k-- > 0;) vars_begin_block(&l->vars, &cases[k]);
    choose_case(l, s, value, cases, &end);
    l->flow = &flow;
    for (cu_stmt *c = s->body->first; c != NULL; c = c->next) {
        if (c->kind == ST_CASE)
            vars_end(&l->vars, &cases[i++]);
        else if (i > 0)
            cu_lower_statement(l, c);
    }
    l->flow = flow.outer;
    vars_end(&l->vars, &end);
}

/* ---- functions ---- */

static void lower_return(cu_low *l, const cu_stmt *s) {
    if (l->result == NULL) {
        ir_return(&l->b);
        return;
    }
    const vars_label *to = l->result; /* carries the result; on other ways it is what it was */
    ir_value **before = ARENA_ARRAY(l->mem, ir_value *, to->ncarried + 1);
    for (uint32_t i = 0; i < to->ncarried; i++) before[i] = l->vars.values[to->carried[i]];
    if (s->value != NULL) {
        cu_value v = cu_lower(l, s->value);
        cu_place p = {.type = l->function->result, .variable = l->function->value, .at = s->at};
        cu_write(l, &p, &v);
    }
    cu_at(l, s->at);
    vars_arrive(&l->vars, l->result);
    for (uint32_t i = 0; i < to->ncarried; i++) vars_set(&l->vars, to->carried[i], before[i]);
}

void cu_lower_statement(cu_low *l, cu_stmt *s) {
    if (vars_ended(&l->vars)) return; /* nothing gets here */
    cu_at(l, s->at);
    switch (s->kind) {
    case ST_EXPR: cu_lower(l, s->value); break;
    case ST_DECLARE: declare(l, s); break;
    case ST_BLOCK:
        for (cu_stmt *c = s->first; c != NULL; c = c->next) cu_lower_statement(l, c);
        break;
    case ST_IF: lower_if(l, s); break;
    case ST_WHILE:
    case ST_DO:
    case ST_FOR: lower_loop(l, s); break;
    case ST_SWITCH: lower_switch(l, s); break;
    case ST_BREAK: vars_arrive(&l->vars, l->flow->leave); break;
    case ST_CONTINUE: vars_arrive(&l->vars, l->flow->next); break;
    case ST_RETURN: lower_return(l, s); break;
    case ST_CASE:
    case ST_EMPTY: break;
    }
}

enum { MOST_CALLS = 20000 };

static void check_call(cu_low *l, const cu_expr *e) {
    const cu_function *f = e->function;
    if (f->body == NULL) cu_fail(l->u, e->at, "%s is declared but not defined", f->name->text);
    if (f->is_lowered) cu_not_yet(l->u, e->at, "functions that call themselves");
    if (++l->calls > MOST_CALLS)
        cu_fail(l->u, e->at, "a kernel with more than %d calls of functions", MOST_CALLS);
    cu_enter(l->u, e->at);
}

static cu_variable *result_of(cu_low *l, cu_function *f) {
    if (f->result->kind == CU_VOID) return NULL;
    if (f->value == NULL) {
        f->value = ARENA_NEW(&l->u->mem, cu_variable);
        f->value->type = f->result;
    }
    cu_begin_variable(l, f->value);
    return f->value;
}

static void give_arguments(cu_low *l, const cu_expr *e) {
    const cu_function *f = e->function;
    cu_value *values = ARENA_ARRAY(l->mem, cu_value, e->count + 1);
    for (uint32_t i = 0; i < e->count; i++) values[i] = cu_lower(l, e->list[i]);
    for (uint32_t i = 0; i < e->count; i++) {
        cu_variable *v = f->parameters[i];
        cu_begin_variable(l, v);
        write_first(l, v, e->at, &values[i]);
    }
}

cu_value cu_lower_call(cu_low *l, cu_expr *e) {
    check_call(l, e);
    cu_function *f = e->function;
    give_arguments(l, e);
    cu_variable *value = result_of(l, f);
    cu_low outer = *l;
    uint32_t *numbers = NULL, n = 0;
    if (value != NULL) n = cu_slot_numbers(l, value, 0, value->type->leaves, &numbers);
    vars_label end = vars_carry(numbers, n);
    cu_at(l, e->at);
    vars_begin_block(&l->vars, &end);
    l->call = ir_func_add_call(l->k->func, f->name->text, l->u->file, l->b.pos);
    l->function = f;
    l->result = &end;
    l->flow = NULL;
    f->is_lowered = true;
    cu_lower_statement(l, f->body);
    f->is_lowered = false;
    l->call = outer.call;
    l->function = outer.function;
    l->result = outer.result;
    l->flow = outer.flow;
    vars_end(&l->vars, &end);
    cu_leave(l->u);
    if (value == NULL) return (cu_value){.type = f->result};
    cu_place p = {.type = f->result, .variable = value, .at = e->at};
    return cu_read(l, &p);
}

/* ---- a kernel ---- */

static void add_slot(cu_low *l, ir_type type, kernel_role role, const char *name,
                     int32_t argument) {
    l->slots[l->nslots++] = (kernel_parameter){.name = name,
                                               .type = type,
                                               .bytes = (uint32_t)ir_type_bytes(type),
                                               .role = role,
                                               .argument = argument};
}

static void add_parameters(cu_low *l, const cu_function *f) {
    l->slots = ARENA_ARRAY(l->mem, kernel_parameter, 2 * (size_t)f->nparameters + 3);
    for (uint32_t i = 0; i < f->nparameters; i++) {
        const cu_variable *v = f->parameters[i];
        const char *name = v->name != NULL ? v->name->text : "";
        bool pointer = cu_is_pointer(v->type);
        if (!pointer && !cu_is_number(v->type))
            cu_not_yet(l->u, v->at, "structs as parameters of kernels");
        add_slot(l,
                 pointer                    ? IR_PTR_GLOBAL
                 : v->type->kind == CU_BOOL ? IR_I8
                                            : cu_ir_type(v->type),
                 pointer ? KERNEL_POINTER : KERNEL_VALUE, name, (int32_t)i);
        if (pointer) add_slot(l, IR_I64, KERNEL_SIZE, NULL, (int32_t)i);
    }
    uint32_t hidden = l->nslots;
    add_slot(l, IR_I64, KERNEL_SHARED_BYTES, NULL, -1);
    if (l->u->prints) add_slot(l, IR_PTR_GLOBAL, KERNEL_PRINT_BUFFER, "print_buffer", -1);
    ir_type *types = ARENA_ARRAY(l->mem, ir_type, l->nslots);
    const char **names = ARENA_ARRAY(l->mem, const char *, l->nslots);
    for (uint32_t i = 0; i < l->nslots; i++)
        types[i] = l->slots[i].type, names[i] = l->slots[i].name;
    ir_value *values = ir_func_add_params(l->k->func, types, names, l->nslots);
    for (uint32_t i = 0; i < l->nslots; i++)
        values[i].is_size =
            l->slots[i].role == KERNEL_SIZE || l->slots[i].role == KERNEL_SHARED_BYTES;
    l->shared_bytes = &values[hidden];
    l->print_buffer = &values[hidden + 1];
}

static void begin_parameter(cu_low *l, cu_variable *v, ir_value *value, ir_value *size,
                            int32_t argument) {
    cu_value given;
    if (size != NULL) {
        cu_origin *o = ARENA_NEW(l->mem, cu_origin);
        *o = (cu_origin){.base = value,
                         .size = size,
                         .argument = argument,
                         .anywhere = true,
                         .name = v->name != NULL ? v->name->text : ""};
        given = cu_pointer(l, v->type, o, cu_int(l, 0));
    } else {
        if (v->type->kind == CU_BOOL)
            value = ir_binary(&l->b, IR_NE, value, ir_const_bits(&l->b, IR_I8, 0));
        given = cu_one(l, v->type, value);
    }
    cu_begin_variable(l, v);
    write_first(l, v, v->at, &given);
}

static void begin_parameters(cu_low *l, cu_function *f) {
    ir_value *at = l->k->func->body.params;
    for (uint32_t i = 0; i < f->nparameters; i++) {
        bool pointer = cu_is_pointer(f->parameters[i]->type);
        begin_parameter(l, f->parameters[i], at, pointer ? at + 1 : NULL, (int32_t)i);
        at += pointer ? 2 : 1;
    }
}

static void make_null(cu_low *l) {
    cu_origin *o = ARENA_NEW(l->mem, cu_origin);
    *o = (cu_origin){.base = ir_const_bits(&l->b, IR_PTR_GENERIC, 0),
                     .size = cu_int(l, 0),
                     .name = "a null pointer",
                     .argument = -1,
                     .anywhere = true,
                     .null = true};
    l->null = o;
}

static void lower_kernel(cu_low *l, cu_function *f) {
    kernel *k = l->k;
    k->func = ir_func_new(f->name->text, l->u->file);
    k->narguments = f->nparameters;
    k->writes = ARENA_ARRAY(l->mem, bool, f->nparameters + 1);
    l->b = ir_builder_at_end(k->func, &k->func->body);
    l->vars = vars_new(&l->b, l->mem);
    l->function = f;
    add_parameters(l, f);
    cu_at(l, f->at);
    make_null(l);
    begin_parameters(l, f);
    f->is_lowered = true;
    cu_lower_statement(l, f->body);
    if (!ir_region_is_ended(l->b.at)) ir_return(&l->b);
    k->parameters = l->slots;
    k->nparameters = l->nslots;
}

/* ---- units ---- */

typedef struct request {
    cuda_unit *u;
    const char *text;
    size_t bytes;
    const cuda_options *options;
    cu_function *f;
    kernel *k;
    cu_low *low;
} request;

static simt_status parse(void *context) {
    const request *r = context;
    cuda_unit *u = r->u;
    char *copy = CU_ARRAY(u, char, r->bytes);
    memcpy(copy, r->text, r->bytes);
    cu_preprocess(u, copy, r->bytes, r->options);
    cu_parse_unit(u);
    return SIMT_OK;
}

simt_status cuda_unit_new(const char *file, const char *text, size_t bytes,
                          const cuda_options *options, cuda_unit **out) {
    arena mem;
    arena_init(&mem);
    cuda_unit *u = ARENA_NEW(&mem, cuda_unit);
    char *name = u != NULL ? arena_strdup(&mem, file) : NULL;
    if (name == NULL) {
        arena_deinit(&mem);
        return status_fail(SIMT_ERR_MEMORY, "%s: out of memory", file);
    }
    u->mem = mem;
    u->mem.sure = true;
    u->file = name;
    request r = {.u = u, .text = text, .bytes = bytes, .options = options};
    simt_status status = arena_run(parse, &r);
    if (status != SIMT_OK) cuda_unit_free(u);
    if (status == SIMT_OK) *out = u;
    return status;
}

void cuda_unit_free(cuda_unit *u) {
    if (u == NULL) return;
    arena mem = u->mem; /* in which u lies */
    arena_deinit(&mem);
}

const char *cuda_unit_name(const cuda_unit *u, uint32_t number) {
    for (const cu_function *f = u->functions; f != NULL; f = f->next)
        if (f->is_kernel && f->body != NULL && number-- == 0) return f->name->text;
    return NULL;
}

static dtype dtype_of(const cu_type *t) {
    static const dtype all[] = {
        [CU_BOOL] = DT_BOOL, [CU_CHAR] = DT_I8,    [CU_SCHAR] = DT_I8,  [CU_UCHAR] = DT_U8,
        [CU_SHORT] = DT_I16, [CU_USHORT] = DT_U16, [CU_INT] = DT_I32,   [CU_UINT] = DT_U32,
        [CU_LONG] = DT_I64,  [CU_ULONG] = DT_U64,  [CU_LLONG] = DT_I64, [CU_ULLONG] = DT_U64,
        [CU_FLOAT] = DT_F32, [CU_DOUBLE] = DT_F64};
    return cu_is_number(t) ? all[t->kind] : DT_COUNT;
}

static simt_status describe(request *r, const cuda_parameter **out, uint32_t *n) {
    const cu_function *f = r->f;
    cuda_parameter *all = ARENA_ARRAY(&r->u->mem, cuda_parameter, f->nparameters + 1);
    for (uint32_t i = 0; i < f->nparameters; i++) {
        const cu_variable *v = f->parameters[i];
        bool pointer = cu_is_pointer(v->type);
        all[i] = (cuda_parameter){.name = v->name != NULL ? v->name->text : "",
                                  .type = cu_type_text(r->u, v->type),
                                  .pointer = pointer,
                                  .constant = pointer && v->type->of->is_const,
                                  .dt = dtype_of(pointer ? v->type->of : v->type)};
    }
    *out = all;
    *n = f->nparameters;
    return SIMT_OK;
}

static simt_status lower(void *context) {
    request *r = context;
    static _Thread_local uint32_t stamps;
    for (cu_function *f = r->u->functions; f != NULL; f = f->next) f->is_lowered = false;
    r->u->depth = 0;
    ir_func_free(r->k->func);
    r->k->func = NULL;
    r->k->nfaults = r->k->nprints = 0;
    r->k->faults = NULL;
    r->k->prints = NULL;
    r->k->local = r->k->static_shared = 0;
    r->low = ARENA_NEW(&r->k->mem, cu_low);
    *r->low = (cu_low){.u = r->u, .k = r->k, .mem = &r->k->mem, .stamp = ++stamps};
    lower_kernel(r->low, r->f);
    return SIMT_OK;
}

static cu_function *find_kernel(const cuda_unit *u, const char *name) {
    for (cu_function *f = u->functions; f != NULL; f = f->next)
        if (f->is_kernel && f->body != NULL && strcmp(f->name->text, name) == 0) return f;
    return NULL;
}

typedef struct description {
    request *r;
    const cuda_parameter **out;
    uint32_t *n;
} description;

static simt_status describe_run(void *context) {
    description *d = context;
    return describe(d->r, d->out, d->n);
}

simt_status cuda_unit_kernel(cuda_unit *u, const char *name, kernel **out,
                             const cuda_parameter **parameters, uint32_t *nparameters,
                             const char **own_name) {
    cu_function *f = find_kernel(u, name);
    if (f == NULL)
        return status_fail(SIMT_ERR_CUDA_C, "%s: there is no __global__ function of that name",
                           name);
    kernel *k = kernel_new();
    if (k == NULL) return status_fail(SIMT_ERR_MEMORY, "kernel %s: out of memory", name);
    request r = {.u = u, .f = f, .k = k};
    simt_status status = SIMT_OK;
    do {
        r.low = NULL;
        status = arena_run(lower, &r);
    } while (status != SIMT_OK && r.low != NULL && r.low->again);
    description d = {&r, parameters, nparameters};
    if (status == SIMT_OK) status = arena_run(describe_run, &d);
    if (status == SIMT_OK)
        *out = k, *own_name = f->name->text;
    else
        kernel_free(k);
    return status;
}
