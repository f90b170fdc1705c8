/* Where values lie, and how they are read and written. */
#include "frontend/cuda/lower.h"

#include <string.h>

void cu_at(cu_low *l, const cu_token *at) {
    l->b.pos = (source_pos){.line = at->line, .column = at->column, .call = l->call};
}

ir_value *cu_int(cu_low *l, int64_t value) { return ir_const_int(&l->b, IR_I64, value); }

/* ---- values ---- */

cu_value cu_new_value(cu_low *l, const cu_type *type) {
    uint32_t n = type->plain->leaves;
    return (cu_value){type->plain, ARENA_ARRAY(l->mem, ir_value *, n + 1),
                      ARENA_ARRAY(l->mem, const cu_origin *, n + 1)};
}

cu_value cu_one(cu_low *l, const cu_type *type, ir_value *v) {
    cu_value out = cu_new_value(l, type);
    out.v[0] = v;
    return out;
}

cu_value cu_pointer(cu_low *l, const cu_type *type, const cu_origin *o, ir_value *offset) {
    cu_value out = cu_one(l, type, offset);
    out.o[0] = o;
    return out;
}

cu_value cu_zero(cu_low *l, const cu_type *type) {
    cu_value out = cu_new_value(l, type);
    uint64_t offset;
    for (uint32_t i = 0; i < out.type->leaves; i++) {
        const cu_type *leaf = cu_leaf(out.type, i, &offset);
        out.v[i] = ir_const_bits(&l->b, cu_ir_type(leaf), 0);
        if (cu_is_pointer(leaf)) out.o[i] = l->null;
    }
    return out;
}

/* ---- origins ---- */

/* At the kernel's beginning: what is made there is good everywhere. */
static ir_builder at_beginning(cu_low *l) {
    return (ir_builder){.f = l->b.f, .at = &l->b.f->body, .before = l->b.f->body.first};
}

static ir_value *generic(cu_low *l, const cu_origin *o) {
    return ir_cvta(&l->b, IR_PTR_GENERIC, o->base);
}

ir_value *cu_address(cu_low *l, const cu_origin *o, ir_value *offset) {
    ir_value *base = ir_cast(&l->b, IR_BITCAST, IR_I64, o->base);
    return ir_binary(&l->b, IR_ADD, base, offset);
}

const cu_origin *cu_choose_origin(cu_low *l, ir_value *first, const cu_origin *a,
                                  const cu_origin *b) {
    if (a == b) return a;
    cu_origin *o = ARENA_NEW(l->mem, cu_origin);
    *o = (cu_origin){.name = a->null ? b->name : a->name, .argument = -1};
    o->base = ir_select(&l->b, first, generic(l, a), generic(l, b));
    o->size = ir_select(&l->b, first, a->size, b->size);
    /* whichever it is may be written through this one */
    cu_mark_written(l, a);
    cu_mark_written(l, b);
    return o;
}

void cu_mark_written(cu_low *l, const cu_origin *o) {
    if (o->argument >= 0) l->k->writes[o->argument] = true;
}

/* ---- faults ---- */

uint32_t cu_add_fault(cu_low *l, const cu_token *at, const kernel_fault *f) {
    kernel *k = l->k;
    if (k->nfaults == l->fault_capacity) {
        l->fault_capacity = l->fault_capacity * 2 + 16;
        kernel_fault *grown = ARENA_ARRAY(l->mem, kernel_fault, l->fault_capacity);
        if (k->nfaults > 0) memcpy(grown, k->faults, k->nfaults * sizeof *grown);
        k->faults = grown;
    }
    k->faults[k->nfaults] = *f;
    k->faults[k->nfaults].pos =
        (source_pos){.line = at->line, .column = at->column, .call = l->call};
    return k->nfaults++;
}

/* The index of the element that was not there, and how many there are. */
static void report(cu_low *l, const cu_token *at, const cu_origin *o, ir_value *offset,
                   uint32_t bytes) {
    kernel_fault f = {.kind = KERNEL_FAULT_INDEX, .name = o->name, .argument = -1, .ndim = -1};
    ir_value *size = cu_int(l, bytes);
    ir_value *values[3] = {ir_binary(&l->b, IR_DIV_S, offset, size), cu_int(l, 0),
                           ir_binary(&l->b, IR_DIV_S, o->size, size)};
    ir_fault(&l->b, cu_add_fault(l, at, &f), values, 3);
}

static bool constant_of(const ir_value *v, int64_t *out) {
    if (v->inst == NULL || v->inst->op != IR_CONST) return false;
    *out = (int64_t)v->inst->imm;
    return true;
}

ir_value *cu_access(cu_low *l, const cu_token *at, const cu_origin *o, ir_value *offset,
                    uint32_t bytes, ir_type type, cu_build build, void *context) {
    int64_t from, size;
    cu_at(l, at);
    if (constant_of(offset, &from) && constant_of(o->size, &size) && from >= 0 &&
        from <= size - bytes)
        return build(l, ir_ptradd(&l->b, o->base, offset), context);
    ir_value *last = ir_binary(&l->b, IR_SUB, o->size, cu_int(l, bytes - 1));
    ir_value *most = ir_binary(&l->b, IR_MAX_S, last, cu_int(l, 0));
    ir_value *inside = ir_binary(&l->b, IR_LT_U, offset, most);
    ir_region *after = l->b.at;
    ir_inst *test = ir_if(&l->b, inside, &type, type != IR_VOID);
    l->b.at = test->regions[0];
    ir_value *got = build(l, ir_ptradd(&l->b, o->base, offset), context);
    ir_br(&l->b, test, &got, type != IR_VOID);
    l->b.at = test->regions[1];
    report(l, at, o, offset, bytes);
    ir_value *zero = type != IR_VOID ? ir_const_bits(&l->b, type, 0) : NULL;
    ir_br(&l->b, test, &zero, type != IR_VOID);
    l->b.at = after;
    return type != IR_VOID ? &test->results[0] : NULL;
}

/* ---- variables ---- */

/* Lowering begins again, knowing more. */
static _Noreturn void begin_again(cu_low *l) {
    l->again = true;
    arena_end_run(SIMT_ERR_INTERNAL);
}

static void begin_memory(cu_low *l, cu_variable *v) {
    bool dynamic = v->storage == CU_DYNAMIC_SHARED;
    ir_type space =
        v->storage == CU_AUTO || v->storage == CU_PARAMETER ? IR_PTR_LOCAL : IR_PTR_SHARED;
    if (v->storage != CU_AUTO && v->storage != CU_PARAMETER && v->live == l->stamp)
        return; /* one for the block */
    ir_builder b = at_beginning(l);
    cu_origin *o = ARENA_NEW(l->mem, cu_origin);
    *o =
        (cu_origin){.name = v->name != NULL ? v->name->text : "", .argument = -1, .anywhere = true};
    uint64_t bytes = v->type->plain->size;
    if (dynamic) {
        o->base = ir_alloc_dynamic(&b);
        o->size = l->shared_bytes;
    } else {
        o->base = ir_alloc(&b, space, (size_t)bytes);
        o->size = ir_const_int(&b, IR_I64, (int64_t)bytes);
        *(space == IR_PTR_LOCAL ? &l->k->local : &l->k->static_shared) += (bytes + 15) / 16 * 16;
    }
    v->memory = o;
    v->live = l->stamp;
}

static ir_type slot_type(const cu_slot *s, const cu_type *leaf, uint32_t part) {
    return s->merged && part == 1 ? IR_PTR_GENERIC : cu_ir_type(leaf);
}

void cu_begin_variable(cu_low *l, cu_variable *v) {
    if (v->addressed || v->storage == CU_SHARED || v->storage == CU_DYNAMIC_SHARED) {
        begin_memory(l, v);
        return;
    }
    uint32_t n = v->type->plain->leaves;
    uint64_t offset;
    if (v->merged == NULL) v->merged = ARENA_ARRAY(&l->u->mem, bool, n + 1);
    v->slots = ARENA_ARRAY(l->mem, cu_slot, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const cu_type *leaf = cu_leaf(v->type, i, &offset);
        v->slots[i].merged = v->merged[i];
        v->slots[i].number = l->vars.count;
        for (uint32_t part = 0; part < (v->merged[i] ? 3u : 1u); part++)
            vars_add(&l->vars, slot_type(&v->slots[i], leaf, part));
    }
    v->memory = NULL;
    v->live = l->stamp;
}

uint32_t cu_slot_numbers(cu_low *l, const cu_variable *v, uint32_t first, uint32_t count,
                         uint32_t **out) {
    uint32_t n = 0;
    *out = ARENA_ARRAY(l->mem, uint32_t, 3 * (size_t)count + 1);
    for (uint32_t i = first; i < first + count; i++)
        for (uint32_t part = 0; part < (v->slots[i].merged ? 3u : 1u); part++)
            (*out)[n++] = v->slots[i].number + part;
    return n;
}

static const cu_origin *merged_origin(cu_low *l, const cu_variable *v, const cu_slot *s) {
    cu_origin *o = ARENA_NEW(l->mem, cu_origin);
    *o = (cu_origin){.base = vars_get(&l->vars, s->number + 1),
                     .size = vars_get(&l->vars, s->number + 2),
                     .name = v->name != NULL ? v->name->text : "",
                     .argument = -1};
    return o;
}

static void read_slot(cu_low *l, const cu_variable *v, const cu_type *leaf, uint32_t i,
                      cu_value *out, uint32_t k) {
    const cu_slot *s = &v->slots[i];
    out->v[k] = vars_get(&l->vars, s->number);
    if (!cu_is_pointer(leaf)) return;
    out->o[k] = s->merged ? merged_origin(l, v, s) : s->origin != NULL ? s->origin : l->null;
}

static void write_slot(cu_low *l, cu_variable *v, const cu_type *leaf, uint32_t i,
                       const cu_value *from, uint32_t k) {
    cu_slot *s = &v->slots[i];
    vars_set(&l->vars, s->number, from->v[k]);
    if (!cu_is_pointer(leaf)) return;
    const cu_origin *o = from->o[k];
    if (s->merged) {
        vars_set(&l->vars, s->number + 1, generic(l, o));
        vars_set(&l->vars, s->number + 2, o->size);
        if (!leaf->of->is_const) cu_mark_written(l, o);
        return;
    }
    if (s->origin == NULL && o->anywhere) s->origin = o;
    if (s->origin == o) return;
    v->merged[i] = true;
    begin_again(l);
}

/* ---- memory ---- */

static _Noreturn void no_pointers(cu_low *l, const cu_token *at) {
    cu_not_yet(l->u, at,
               "pointers that lie in memory (of arrays of pointers, or whose address is taken)");
}

static ir_type memory_type(const cu_type *t) { return t->kind == CU_BOOL ? IR_I8 : cu_ir_type(t); }

typedef struct access {
    const cu_type *type;
    ir_value *value;
} access;

static uint64_t order_of(const cu_type *t) {
    return IR_MEM(t->is_volatile ? IR_VOLATILE : IR_PLAIN, IR_SCOPE_BLOCK);
}

static ir_value *build_load(cu_low *l, ir_value *pointer, void *context) {
    const access *a = context;
    return ir_load(&l->b, memory_type(a->type), pointer, order_of(a->type));
}

static ir_value *build_store(cu_low *l, ir_value *pointer, void *context) {
    const access *a = context;
    ir_store(&l->b, pointer, a->value, order_of(a->type));
    return NULL;
}

static ir_value *load(cu_low *l, const cu_place *p, const cu_type *leaf, ir_value *offset) {
    access a = {leaf, NULL};
    if (cu_is_pointer(leaf)) no_pointers(l, p->at);
    ir_value *v = cu_access(l, p->at, p->origin, offset, (uint32_t)leaf->size, memory_type(leaf),
                            build_load, &a);
    if (leaf->kind != CU_BOOL) return v;
    return ir_binary(&l->b, IR_NE, v, ir_const_bits(&l->b, IR_I8, 0));
}

static void store(cu_low *l, const cu_place *p, const cu_type *leaf, ir_value *offset,
                  ir_value *value) {
    if (cu_is_pointer(leaf)) no_pointers(l, p->at);
    if (leaf->kind == CU_BOOL) value = ir_cast(&l->b, IR_ZEXT, IR_I8, value);
    access a = {leaf, value};
    cu_access(l, p->at, p->origin, offset, (uint32_t)leaf->size, IR_VOID, build_store, &a);
    cu_mark_written(l, p->origin);
}

cu_value cu_read(cu_low *l, const cu_place *p) {
    const cu_type *t = p->type;
    if (t->plain->leaves > 64 && p->variable == NULL)
        cu_not_yet(l->u, p->at, "copying structs of more than 64 numbers");
    cu_value out = cu_new_value(l, t);
    uint64_t offset;
    for (uint32_t i = 0; i < out.type->leaves; i++) {
        const cu_type *leaf = cu_leaf(t, i, &offset);
        if (p->variable != NULL)
            read_slot(l, p->variable, leaf, p->leaf + i, &out, i);
        else
            out.v[i] = load(l, p, cu_qualified(l->u, leaf, false, t->is_volatile),
                            ir_binary(&l->b, IR_ADD, p->offset, cu_int(l, (int64_t)offset)));
    }
    return out;
}

void cu_write(cu_low *l, const cu_place *p, const cu_value *value) {
    const cu_type *t = p->type;
    uint64_t offset;
    for (uint32_t i = 0; i < t->plain->leaves; i++) {
        const cu_type *leaf = cu_leaf(t, i, &offset);
        if (p->variable != NULL)
            write_slot(l, p->variable, leaf, p->leaf + i, value, i);
        else
            store(l, p, cu_qualified(l->u, leaf, false, t->is_volatile),
                  ir_binary(&l->b, IR_ADD, p->offset, cu_int(l, (int64_t)offset)), value->v[i]);
    }
}

/* ---- places of expressions ---- */

cu_place cu_variable_place(cu_low *l, cu_variable *v, const cu_token *at) {
    if (v->memory == NULL) return (cu_place){.type = v->type, .variable = v, .at = at};
    return (cu_place){.type = v->type, .origin = v->memory, .offset = cu_int(l, 0), .at = at};
}

static cu_place variable_place(cu_low *l, const cu_expr *e) {
    cu_variable *v = e->variable;
    /* of the block's memory, or its declaration was jumped over */
    if (v->live != l->stamp) cu_begin_variable(l, v);
    return cu_variable_place(l, v, e->at);
}

static cu_place member_place(cu_low *l, const cu_expr *e) {
    cu_place p = cu_place_of(l, e->a);
    p.type = e->type;
    p.at = e->at;
    if (p.variable != NULL)
        p.leaf += e->field->leaf;
    else
        p.offset = ir_binary(&l->b, IR_ADD, p.offset, cu_int(l, (int64_t)e->field->offset));
    return p;
}

cu_place cu_place_of(cu_low *l, cu_expr *e) {
    cu_at(l, e->at);
    if (e->kind == EX_VARIABLE) return variable_place(l, e);
    if (e->kind == EX_MEMBER) return member_place(l, e);
    if (e->kind == EX_DEREF) {
        cu_value p = cu_lower(l, e->a);
        return (cu_place){.type = e->type, .origin = p.o[0], .offset = p.v[0], .at = e->at};
    }
    cu_not_yet(l->u, e->at, "this kind of place");
}
