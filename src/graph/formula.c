/* Recursive descent over the grammar in formula.h. */
#include "graph/formula.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *at;
    arena *mem;
    bool failed;
} parser;

static formula *parse_compare(parser *p);

static void skip_space(parser *p) {
    while (*p->at == ' ') p->at++;
}

static bool take(parser *p, const char *token) {
    skip_space(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0) return false;
    p->at += length;
    return true;
}

static formula *fail(parser *p) {
    p->failed = true;
    return NULL;
}

static formula *make(parser *p, formula_kind kind) {
    formula *f = ARENA_NEW(p->mem, formula);
    f->kind = kind;
    return f;
}

static formula *call(parser *p, array_op op, formula *a, formula *b) {
    formula *f = make(p, FORMULA_CALL);
    if (!f) return NULL;
    f->op = op;
    f->args[0] = a;
    f->args[1] = b;
    f->nargs = b ? 2 : 1;
    return f;
}

static formula *parse_name(parser *p) {
    static const char *const variables[] = {"a", "b", "c", "g", "y", "s0", "s1", "s2", "s3"};
    char name[32];
    size_t length = 0;
    while ((isalnum((unsigned char)*p->at) || *p->at == '_') && length < sizeof name - 1)
        name[length++] = *p->at++;
    name[length] = '\0';
    if (!take(p, "(")) {
        for (int i = 0; i < 9; i++) {
            if (strcmp(name, variables[i]) != 0) continue;
            formula *f = make(p, FORMULA_VARIABLE);
            f->variable = (formula_variable)i;
            return f;
        }
        return fail(p);
    }
    formula *f = make(p, FORMULA_CALL);
    if (!f) return NULL;
    f->op = array_op_find(name);
    if (f->op == ARRAY_OP_COUNT) return fail(p);
    do {
        if (f->nargs == 3) return fail(p);
        f->args[f->nargs++] = parse_compare(p);
    } while (!p->failed && take(p, ","));
    return take(p, ")") && !p->failed ? f : fail(p);
}

static formula *parse_unary(parser *p) {
    if (p->failed) return NULL;
    if (take(p, "-")) return call(p, OP_NEGATIVE, parse_unary(p), NULL);
    skip_space(p);
    if (take(p, "(")) {
        formula *inner = parse_compare(p);
        return take(p, ")") ? inner : fail(p);
    }
    if (isdigit((unsigned char)*p->at)) {
        formula *f = make(p, FORMULA_NUMBER);
        char *end;
        double number = strtod(p->at, &end);
        p->at = end;
        f->number = number;
        return f;
    }
    return isalpha((unsigned char)*p->at) ? parse_name(p) : fail(p);
}

static formula *parse_product(parser *p) {
    formula *left = parse_unary(p);
    for (;;) {
        if (p->failed) return NULL;
        if (take(p, "*"))
            left = call(p, OP_MULTIPLY, left, parse_unary(p));
        else if (take(p, "/"))
            left = call(p, OP_DIVIDE, left, parse_unary(p));
        else
            return left;
    }
}

static formula *parse_sum(parser *p) {
    formula *left = parse_product(p);
    for (;;) {
        if (p->failed) return NULL;
        if (take(p, "+"))
            left = call(p, OP_ADD, left, parse_product(p));
        else if (take(p, "-"))
            left = call(p, OP_SUBTRACT, left, parse_product(p));
        else
            return left;
    }
}

static formula *parse_compare(parser *p) {
    static const struct {
        const char *token;
        array_op op;
    } compares[] = {{"<=", OP_LESS_EQUAL}, {">=", OP_GREATER_EQUAL}, {"==", OP_EQUAL},
                    {"!=", OP_NOT_EQUAL},  {"<", OP_LESS},           {">", OP_GREATER}};
    formula *left = parse_sum(p);
    for (int i = 0; i < 6 && !p->failed; i++)
        if (take(p, compares[i].token)) return call(p, compares[i].op, left, parse_sum(p));
    return left;
}

simt_status formula_parse(const char *text, arena *mem, formula **out) {
    parser p = {text, mem, false};
    *out = parse_compare(&p);
    skip_space(&p);
    if (p.failed || *p.at)
        return status_fail(SIMT_ERR_INTERNAL, "formula '%s' of the operation table: error at '%s'",
                           text, p.at);
    return SIMT_OK;
}

uint32_t formula_variables(const formula *f) {
    if (f->kind == FORMULA_NUMBER) return 0;
    if (f->kind == FORMULA_VARIABLE) return 1u << f->variable;
    uint32_t mask = 0;
    for (int i = 0; i < f->nargs; i++) mask |= formula_variables(f->args[i]);
    return mask;
}
