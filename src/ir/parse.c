/* The printed form (print.c) back into a function.
 *
 * Takes any text: what is not the printed form is SIMT_ERR_IR_SYNTAX with line and column. The result is
 * syntactically whole; whether it is valid, the verifier says. Nesting and counts are limited, so that no
 * input exhausts the stack.
 */
#include "ir/ir.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  200
#define MAX_VALUES (1u << 20)
#define MAX_LIST   256

typedef struct parsing {
    const char *text, *at;
    ir_func *f;
    ir_value **values; /* by printed number */
    uint32_t values_capacity;
    ir_inst **constructs;
    uint32_t nconstructs, constructs_capacity;
    jmp_buf
        failed; /* inside the parser only: everything lives in arenas and two tables freed at entry */
} parsing;

static _Noreturn void fail_at(parsing *p, const char *at, const char *what) {
    int line = 1, column = 1;
    for (const char *c = p->text; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    status_fail(SIMT_ERR_IR_SYNTAX, "IR text, line %d, column %d: %s", line, column, what);
    status_set_position("", line, column);
    longjmp(p->failed, 1);
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

static void grow(parsing *p, void **table, uint32_t *capacity, uint32_t needed) {
    if (needed <= *capacity) return;
    uint32_t grown = *capacity ? *capacity : 64;
    while (grown < needed) grown *= 2;
    void *memory = realloc(*table, grown * sizeof(void *));
    if (!memory) fail(p, "out of memory");
    memset((char *)memory + *capacity * sizeof(void *), 0, (grown - *capacity) * sizeof(void *));
    *table = memory;
    *capacity = grown;
}

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
    grow(p, (void **)&p->values, &p->values_capacity, number + 1);
    if (p->values[number]) fail_at(p, at, "the value is defined twice");
    p->values[number] = v;
}

static unsigned use_list(parsing *p, ir_value **list) {
    unsigned count = 0;
    skip_space(p);
    if (*p->at != '%') return 0;
    /* a new line starts a new instruction, and may begin with % too: stay on the line */
    do {
        if (count == MAX_LIST) fail(p, "too many operands");
        list[count++] = use(p);
    } while (take(p, ","));
    return count;
}

/* Operands stand on the instruction's line. */
static unsigned operands(parsing *p, ir_value **list) {
    const char *c = p->at;
    while (*c == ' ') c++;
    return *c == '%' ? use_list(p, list) : 0;
}

/* ---- instructions ---- */

typedef struct defined {
    uint32_t number;
    ir_type type;
    const char *at;
} defined;

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

static void construct(parsing *p, ir_builder *b, ir_op op, const ir_type *results,
                      unsigned nresults, int depth, ir_inst **made) {
    if (depth > MAX_DEPTH) fail(p, "nested too deeply");
    expect(p, "@");
    const char *start = p->at;
    if (decimal(p) != p->nconstructs) fail_at(p, start, "constructs are numbered in order");
    ir_value *list[MAX_LIST];
    defined params[MAX_LIST];
    unsigned count = 0;
    if (op == IR_IF) list[count++] = use(p);
    if (op == IR_LOOP) {
        expect(p, "(");
        while (!take(p, ")")) {
            if (count == MAX_LIST) fail(p, "too many carried values");
            if (count) expect(p, ",");
            params[count].at = (skip_space(p), p->at);
            params[count].number = value_number(p);
            expect(p, ":");
            params[count].type = type(p);
            expect(p, "=");
            list[count++] = use(p);
        }
    }
    ir_inst *inst = op == IR_IF     ? ir_if(b, list[0], results, nresults)
                    : op == IR_LOOP ? ir_loop(b, list, count, results, nresults)
                                    : ir_block(b, results, nresults);
    if (p->f->failed) fail(p, "out of memory");
    grow(p, (void **)&p->constructs, &p->constructs_capacity, p->nconstructs + 1);
    p->constructs[p->nconstructs++] = inst;
    if (op == IR_LOOP)
        for (unsigned i = 0; i < count; i++) {
            inst->regions[0]->params[i].type = params[i].type;
            define(p, params[i].at, params[i].number, &inst->regions[0]->params[i]);
        }
    expect(p, "{");
    region(p, inst->regions[0], depth + 1);
    if (op == IR_IF) {
        expect(p, "else");
        expect(p, "{");
        region(p, inst->regions[1], depth + 1);
    }
    *made = inst;
}

static uint32_t number_up_to(parsing *p, uint32_t most) {
    const char *start = (skip_space(p), p->at);
    uint64_t number = decimal(p);
    if (number > most) fail_at(p, start, "the number is too large");
    return (uint32_t)number;
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
    if (take(p, "in")) at.call = (uint16_t)number_up_to(p, p->f->ncalls);
    return at;
}

static void instruction(parsing *p, ir_region *at, int depth) {
    defined results[MAX_LIST];
    ir_type types[MAX_LIST];
    ir_value *list[MAX_LIST];
    unsigned nresults = 0;
    skip_space(p);
    while (*p->at == '%') {
        if (nresults == MAX_LIST) fail(p, "too many results");
        results[nresults].at = p->at;
        results[nresults].number = value_number(p);
        expect(p, ":");
        types[nresults++] = type(p);
        if (!take(p, ",")) {
            expect(p, "=");
            break;
        }
        skip_space(p);
    }
    ir_builder b = ir_builder_at_end(p->f, at);
    ir_op op = op_name(p);
    ir_inst *inst;
    if (op == IR_BLOCK || op == IR_LOOP || op == IR_IF) {
        construct(p, &b, op, types, nresults, depth, &inst);
    } else {
        ir_inst *label = op == IR_BR || op == IR_CONTINUE ? find_label(p) : NULL;
        uint64_t imm = immediate(p, op);
        unsigned count = operands(p, list);
        inst = ir_inst_add(&b, op, types, nresults, list, count, imm);
        if (p->f->failed) fail(p, "out of memory");
        inst->label = label;
        if (op == IR_CONST && nresults == 1 && ir_type_bits(types[0]) < 64 &&
            imm >> ir_type_bits(types[0]))
            fail(p, "the constant does not fit its type");
    }
    for (unsigned i = 0; i < nresults; i++)
        define(p, results[i].at, results[i].number, &inst->results[i]);
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
    if (!name) fail(p, "out of memory");
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

static void header(parsing *p) {
    char name[200];
    expect(p, "kernel");
    expect(p, "@");
    word(p, name, sizeof name);
    p->f = ir_func_new(name, "");
    if (!p->f) fail(p, "out of memory");
    expect(p, "(");
    defined params[MAX_LIST];
    unsigned count = 0;
    while (!take(p, ")")) {
        if (count == MAX_LIST) fail(p, "too many parameters");
        if (count) expect(p, ",");
        params[count].at = (skip_space(p), p->at);
        params[count].number = value_number(p);
        expect(p, ":");
        params[count].type = type(p);
        count++;
    }
    for (unsigned i = 0; i < count; i++) ir_func_add_param(p->f, params[i].type, NULL);
    if (p->f->failed) fail(p, "out of memory");
    for (unsigned i = 0; i < count; i++)
        define(p, params[i].at, params[i].number, &p->f->body.params[i]);
    p->f->file = file(p);
    calls(p);
}

simt_status ir_parse(const char *text, ir_func **out) {
    parsing *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p) return status_fail(SIMT_ERR_MEMORY, "out of memory while parsing IR");
    p->text = p->at = text;
    simt_status status = SIMT_OK;
    if (setjmp(p->failed) == 0) {
        header(p);
        expect(p, "{");
        region(p, &p->f->body, 0);
        skip_space(p);
        if (*p->at) fail(p, "text after the kernel");
    } else {
        status = status_get()->code;
        ir_func_free(p->f);
        p->f = NULL;
    }
    *out = p->f;
    free(p->values);
    free(p->constructs);
    free(p);
    return status;
}
