/* The printed form (print.c) back into a function.
 *
 * Takes any text: what is not the printed form is SIMT_ERR_IR_SYNTAX with line and column. The result is
 * syntactically whole; whether it is valid, the verifier says. Nesting and counts are limited, so that no
 * input exhausts the stack.
 */
#include "base/heap.h"
#include "ir/ir.h"

#include <ctype.h>
#include <string.h>

#define MAX_VALUES (1u << 20)
#define MAX_LIST   (1u << 16)

/* A value on the left of an = or in a list of parameters. */
typedef struct defined {
    uint32_t number;
    ir_type type;
    bool is_size;
    uint16_t struct_bytes;
    uint8_t struct_align;
    const char *at;
} defined;

typedef struct parsing {
    const char *text, *at;
    ir_func *kernel;
    ir_func *f;        /* the kernel, or one of its functions */
    ir_value **values; /* by printed number */
    uint32_t values_capacity;
    ir_inst **constructs;
    uint32_t nconstructs, constructs_capacity;
    /* lists of the instructions that are being read, the inner behind the outer */
    ir_value **operands;
    uint32_t noperands, operands_capacity;
    defined *defs;
    uint32_t ndefs, defs_capacity;
} parsing;

static _Noreturn void fail_at(parsing *p, const char *at, const char *what) {
    int line = 1, column = 1;
    for (const char *c = p->text; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    status_fail(SIMT_ERR_IR_SYNTAX, "IR text, line %d, column %d: %s", line, column, what);
    status_set_position("", line, column);
    arena_end_run(SIMT_ERR_IR_SYNTAX);
}

static _Noreturn void fail(parsing *p, const char *what) { fail_at(p, p->at, what); }

/* ---- tokens ---- */

static void skip_space(parsing *p) {
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r') p->at++;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

static bool take(parsing *p, const char *token) {
    skip_space(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0) return false;
    if (is_word(token[length - 1]) && is_word(p->at[length])) return false;
    p->at += length;
    return true;
}

static void expect(parsing *p, const char *token) {
    if (!take(p, token)) {
        char what[64] = "expected '";
        strncat(what, token, 40);
        strcat(what, "'");
        fail(p, what);
    }
}

static size_t word(parsing *p, char *to, size_t size) {
    skip_space(p);
    size_t length = 0;
    while (is_word(p->at[length])) length++;
    if (length == 0 || length >= size) fail(p, "expected a name");
    memcpy(to, p->at, length);
    to[length] = '\0';
    p->at += length;
    return length;
}

static uint64_t decimal(parsing *p) {
    skip_space(p);
    if (!isdigit((unsigned char)*p->at)) fail(p, "expected a number");
    uint64_t value = 0;
    while (isdigit((unsigned char)*p->at)) {
        uint64_t digit = (uint64_t)(*p->at - '0');
        if (value > (UINT64_MAX - digit) / 10) fail(p, "the number is too large");
        value = value * 10 + digit;
        p->at++;
    }
    return value;
}

static uint32_t number_up_to(parsing *p, uint32_t most) {
    const char *start = (skip_space(p), p->at);
    uint64_t number = decimal(p);
    if (number > most) fail_at(p, start, "the number is too large");
    return (uint32_t)number;
}

static ir_type type(parsing *p) {
    const char *start = (skip_space(p), p->at);
    char name[24];
    word(p, name, sizeof name);
    for (int t = IR_I1; t < IR_TYPE_COUNT; t++)
        if (strcmp(name, ir_type_name((ir_type)t)) == 0) return (ir_type)t;
    fail_at(p, start, "unknown type");
}

static int one_of(parsing *p, const char *const *names, int count) {
    const char *start = (skip_space(p), p->at);
    char name[24];
    word(p, name, sizeof name);
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    p->at = start;
    return -1;
}

/* ---- values ---- */

static void grow(parsing *p, void **table, size_t item, uint32_t *capacity, uint32_t needed) {
    if (needed <= *capacity) return;
    uint32_t grown = *capacity ? *capacity : 64;
    while (grown < needed) grown *= 2;
    void *memory = heap_resize(*table, grown * item);
    if (!memory) arena_end_run(status_fail(SIMT_ERR_MEMORY, "out of memory while parsing IR"));
    memset((char *)memory + *capacity * item, 0, (grown - *capacity) * item);
    *table = memory;
    *capacity = grown;
}
#define GROW(p, table, capacity, needed) \
    grow(p, (void **)&(p)->table, sizeof *(p)->table, &(p)->capacity, needed)

static uint32_t value_number(parsing *p) {
    expect(p, "%");
    uint64_t number = decimal(p);
    if (number >= MAX_VALUES) fail(p, "the value's number is too large");
    return (uint32_t)number;
}

static ir_value *use(parsing *p) {
    const char *start = (skip_space(p), p->at);
    uint32_t number = value_number(p);
    if (number >= p->values_capacity || !p->values[number])
        fail_at(p, start, "the value is not defined before");
    return p->values[number];
}

static void define(parsing *p, const char *at, uint32_t number, ir_value *v) {
    GROW(p, values, values_capacity, number + 1);
    if (p->values[number]) fail_at(p, at, "the value is defined twice");
    p->values[number] = v;
}

/* Appends to p->operands. */
static void add_operand(parsing *p) {
    ir_value *v = use(p);
    GROW(p, operands, operands_capacity, p->noperands + 1);
    p->operands[p->noperands++] = v;
}

/* Operands stand on the instruction's line. */
static void operands(parsing *p) {
    const char *c = p->at;
    while (*c == ' ') c++;
    if (*c != '%') return;
    uint32_t most = p->noperands + MAX_LIST;
    do {
        if (p->noperands == most) fail(p, "too many operands");
        add_operand(p);
    } while (take(p, ","));
}

/* "%1: i32": appends to p->defs. */
static void add_def(parsing *p) {
    defined d = {.at = (skip_space(p), p->at)};
    d.number = value_number(p);
    expect(p, ":");
    d.type = type(p);
    GROW(p, defs, defs_capacity, p->ndefs + 1);
    p->defs[p->ndefs++] = d;
}

/* The definitions from number `first` on get the values, and are taken off. */
static void define_all(parsing *p, uint32_t first, ir_value *values) {
    for (uint32_t i = first; i < p->ndefs; i++)
        define(p, p->defs[i].at, p->defs[i].number, &values[i - first]);
    p->ndefs = first;
}

/* Their types, in the function's arena. */
static ir_type *types_from(parsing *p, uint32_t first) {
    ir_type *types = ARENA_ARRAY(&p->f->mem, ir_type, p->ndefs - first + 1);
    for (uint32_t i = first; i < p->ndefs; i++) types[i - first] = p->defs[i].type;
    return types;
}

/* ---- instructions ---- */

static void region(parsing *p, ir_region *at, int depth);

static ir_op op_name(parsing *p) {
    const char *start = (skip_space(p), p->at);
    char name[24];
    word(p, name, sizeof name);
    for (int op = 0; op < IR_OP_COUNT; op++)
        if (strcmp(name, ir_op_table[op].name) == 0) return (ir_op)op;
    fail_at(p, start, "unknown operation");
}

static uint64_t memory_suffix(parsing *p) {
    const char *c = p->at; /* on the instruction's line, as operands are */
    while (*c == ' ') c++;
    if (!isalpha((unsigned char)*c)) return 0;
    for (unsigned order = 0; order < 6; order++)
        for (unsigned scope = 0; scope < 3; scope++) {
            char text[32];
            strcpy(text, ir_order_names[order]);
            strcat(text, ".");
            strcat(text, ir_scope_names[scope]);
            if (take(p, text)) return IR_MEM(order, scope);
        }
    return 0;
}

static uint64_t immediate(parsing *p, ir_op op) {
    int which;
    switch (op) {
    case IR_CONST:
    case IR_ALLOC:
    case IR_CALL:
    case IR_VARIABLE:
    case IR_FAULT: return decimal(p);
    case IR_SPECIAL:
        which = one_of(p, ir_special_names, IR_SPECIAL_COUNT);
        if (which < 0) fail(p, "unknown coordinate");
        return (uint64_t)which;
    case IR_FENCE:
        which = one_of(p, ir_scope_names, 3);
        if (which < 0) fail(p, "unknown scope");
        return (uint64_t)which;
    default: return ir_op_table[op].reads || ir_op_table[op].writes ? memory_suffix(p) : 0;
    }
}

static ir_inst *find_label(parsing *p) {
    expect(p, "@");
    const char *start = p->at;
    uint64_t number = decimal(p);
    if (number >= p->nconstructs || !p->constructs[number]) fail_at(p, start, "unknown label");
    return p->constructs[number];
}

/* "(%2: i32 = %1, ...)" of a loop. */
static void carried(parsing *p, uint32_t first) {
    expect(p, "(");
    while (!take(p, ")")) {
        if (p->ndefs - first == MAX_LIST) fail(p, "too many carried values");
        if (p->ndefs > first) expect(p, ",");
        add_def(p);
        expect(p, "=");
        add_operand(p);
    }
}

static ir_inst *construct(parsing *p, ir_builder *b, ir_op op, const ir_type *results,
                          unsigned nresults, int depth) {
    if (depth >= IR_MOST_DEPTH) fail(p, "nested too deeply");
    expect(p, "@");
    const char *start = p->at;
    if (decimal(p) != p->nconstructs) fail_at(p, start, "constructs are numbered in order");
    uint32_t operand = p->noperands, def = p->ndefs;
    if (op == IR_IF) add_operand(p);
    if (op == IR_LOOP) carried(p, def);
    ir_value **list = p->operands + operand;
    ir_inst *inst = op == IR_IF     ? ir_if(b, list[0], results, nresults)
                    : op == IR_LOOP ? ir_loop(b, list, p->noperands - operand, results, nresults)
                                    : ir_block(b, results, nresults);
    p->noperands = operand;
    GROW(p, constructs, constructs_capacity, p->nconstructs + 1);
    p->constructs[p->nconstructs++] = inst;
    for (uint32_t i = def; i < p->ndefs; i++)
        inst->regions[0]->params[i - def].type = p->defs[i].type;
    define_all(p, def, inst->regions[0]->params);
    expect(p, "{");
    region(p, inst->regions[0], depth + 1);
    if (op == IR_IF) {
        expect(p, "else");
        expect(p, "{");
        region(p, inst->regions[1], depth + 1);
    }
    return inst;
}

static source_pos position(parsing *p) {
    source_pos at = {0};
    const char *c = p->at;
    while (*c == ' ') c++;
    if (*c != '@') return at;
    p->at = c + 1;
    at.line = number_up_to(p, UINT32_MAX);
    expect(p, ":");
    at.column = (uint16_t)number_up_to(p, SOURCE_MOST_COLUMNS);
    if (take(p, "in")) at.call = (uint16_t)number_up_to(p, p->kernel->ncalls);
    return at;
}

/* "%1: i32, %2: f32 =", or nothing: appends to p->defs. */
static void left_side(parsing *p) {
    uint32_t most = p->ndefs + MAX_LIST;
    skip_space(p);
    while (*p->at == '%') {
        if (p->ndefs == most) fail(p, "too many results");
        add_def(p);
        if (!take(p, ",")) {
            expect(p, "=");
            break;
        }
        skip_space(p);
    }
}

static ir_inst *plain(parsing *p, ir_builder *b, ir_op op, const ir_type *types,
                      unsigned nresults) {
    ir_inst *label = op == IR_BR || op == IR_CONTINUE ? find_label(p) : NULL;
    uint64_t imm = immediate(p, op);
    uint32_t first = p->noperands;
    operands(p);
    ir_inst *inst =
        ir_inst_add(b, op, types, nresults, p->operands + first, p->noperands - first, imm);
    p->noperands = first;
    inst->label = label;
    if (op == IR_CONST && nresults == 1 && ir_type_bits(types[0]) < 64 &&
        imm >> ir_type_bits(types[0]))
        fail(p, "the constant does not fit its type");
    return inst;
}

static void instruction(parsing *p, ir_region *at, int depth) {
    uint32_t first = p->ndefs;
    left_side(p);
    unsigned nresults = p->ndefs - first;
    ir_type *types = types_from(p, first);
    ir_builder b = ir_builder_at_end(p->f, at);
    ir_op op = op_name(p);
    ir_inst *inst = op == IR_BLOCK || op == IR_LOOP || op == IR_IF
                        ? construct(p, &b, op, types, nresults, depth)
                        : plain(p, &b, op, types, nresults);
    define_all(p, first, inst->results);
    inst->pos = position(p);
}

static void region(parsing *p, ir_region *at, int depth) {
    while (!take(p, "}")) {
        skip_space(p);
        if (!*p->at) fail(p, "the text ends inside a region");
        instruction(p, at, depth);
    }
}

static const char *file(parsing *p) {
    if (!take(p, "file")) return "";
    expect(p, "\"");
    const char *start = p->at, *end = strchr(start, '"');
    if (!end) fail(p, "the file's name does not end");
    p->at = end + 1;
    const char *name = arena_printf(&p->f->mem, "%.*s", (int)(end - start), start);
    return name;
}

static void calls(parsing *p) {
    while (take(p, "call")) {
        char name[200];
        expect(p, "@");
        word(p, name, sizeof name);
        const char *of = file(p);
        if (!ir_func_add_call(p->f, name, of, position(p))) fail(p, "too many calls");
    }
}

/* "01ff..." behind the =: appends to the variable's initial bytes, which are kept in the text's arena. */
static void initial_bytes(parsing *p, ir_variable *v) {
    skip_space(p);
    const char *start = p->at;
    while (isxdigit((unsigned char)*p->at)) p->at++;
    size_t digits = (size_t)(p->at - start);
    if (digits == 0 || digits % 2) fail(p, "expected the bytes of a variable, two digits each");
    uint8_t *bytes = arena_alloc(&p->f->mem, digits / 2);
    for (size_t i = 0; i < digits; i++) {
        char c = start[i];
        unsigned value = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | value);
    }
    v->init = bytes;
    v->init_bytes = digits / 2;
}

static void variables(parsing *p) {
    while (take(p, "variable")) {
        char name[200];
        ir_variable v = {.name = name};
        expect(p, "@");
        word(p, name, sizeof name);
        v.space = type(p);
        v.bytes = decimal(p);
        expect(p, "align");
        v.align = number_up_to(p, IR_MOST_ALIGN);
        if (take(p, "=")) initial_bytes(p, &v);
        if (p->f->nvariables == IR_MOST_VARIABLES) fail(p, "too many variables");
        ir_func_add_variable(p->f, &v);
    }
}

/* What may follow the type of a parameter. */
static void param_kind(parsing *p, defined *d) {
    d->is_size = take(p, "size");
    if (!take(p, "struct")) return;
    d->struct_bytes = (uint16_t)number_up_to(p, IR_MOST_STRUCT_BYTES);
    expect(p, "align");
    d->struct_align = (uint8_t)number_up_to(p, IR_MOST_ALIGN);
}

/* "(%0: i64, %1: i64 size)" */
static void params(parsing *p) {
    expect(p, "(");
    while (!take(p, ")")) {
        if (p->ndefs == MAX_LIST) fail(p, "too many parameters");
        if (p->ndefs) expect(p, ",");
        add_def(p);
        param_kind(p, &p->defs[p->ndefs - 1]);
    }
    for (uint32_t i = 0; i < p->ndefs; i++) {
        const defined *d = &p->defs[i];
        ir_value *v = ir_func_add_param(p->f, d->type, NULL);
        v->is_size = d->is_size;
        ir_param_is_struct(v, d->struct_bytes, d->struct_align);
    }
    define_all(p, 0, p->f->body.params);
}

static void kernel_header(parsing *p) {
    char name[200];
    expect(p, "kernel");
    expect(p, "@");
    word(p, name, sizeof name);
    p->f = p->kernel = ir_func_new(name, "");
    params(p);
    p->f->file = file(p);
    calls(p);
    variables(p);
}

/* "i64, f32" */
static void result_types(parsing *p) {
    uint32_t capacity = 0;
    do {
        uint32_t n = p->f->nresults;
        if (n == MAX_LIST) fail(p, "too many results");
        if (n == capacity) {
            ir_type *grown = ARENA_ARRAY(&p->f->mem, ir_type, capacity = n * 2 + 8);
            if (n) memcpy(grown, p->f->results, n * sizeof *grown);
            p->f->results = grown;
        }
        p->f->results[n] = type(p);
        p->f->nresults++;
    } while (take(p, ","));
}

/* Numbers of values and constructs begin anew. */
static void function_header(parsing *p) {
    char name[200];
    const char *start = (skip_space(p), p->at);
    if (decimal(p) != p->kernel->nfunctions) fail_at(p, start, "functions are numbered in order");
    expect(p, "@");
    word(p, name, sizeof name);
    if (p->values) memset(p->values, 0, p->values_capacity * sizeof *p->values);
    p->nconstructs = 0;
    p->f = ir_func_add_function(p->kernel, name, NULL, 0);
    params(p);
    if (take(p, "->")) result_types(p);
}

static void body(parsing *p) {
    expect(p, "{");
    region(p, &p->f->body, 0);
}

static simt_status parse(void *context) {
    parsing *p = context;
    kernel_header(p);
    body(p);
    while (take(p, "function")) {
        function_header(p);
        body(p);
    }
    skip_space(p);
    if (*p->at) fail(p, "text after the kernel");
    return SIMT_OK;
}

simt_status ir_parse(const char *text, ir_func **out) {
    parsing *p = heap_zeroed(1, sizeof *p);
    *out = NULL;
    if (!p) return status_fail(SIMT_ERR_MEMORY, "out of memory while parsing IR");
    p->text = p->at = text;
    simt_status status = arena_run(parse, p);
    if (status != SIMT_OK) {
        ir_func_free(p->kernel);
        p->kernel = NULL;
    }
    *out = p->kernel;
    heap_free(p->values);
    heap_free(p->constructs);
    heap_free(p->operands);
    heap_free(p->defs);
    heap_free(p);
    return status;
}
