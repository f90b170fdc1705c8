/* Parses each row's gradient formulas once; evaluates them, numbers folded, on tensors. */
#include "grad/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct gradient_rules {
    gradient_rule rules[ARRAY_OP_COUNT][3];
    bool parsed[ARRAY_OP_COUNT];
    array_op op; /* to parse */
    arena mem;
} gradient_rules;

static simt_status parse_rules(void *context) {
    gradient_rules *all = context;
    for (int k = 0; k < 3; k++) {
        const char *text = array_op_table[all->op].grad[k];
        gradient_rule *r = &all->rules[all->op][k];
        r->kind = !text || !*text          ? GRADIENT_NONE
                  : strcmp(text, "0") == 0 ? GRADIENT_ZERO
                  : *text == '='           ? GRADIENT_NAMED
                                           : GRADIENT_FORMULA;
        if (r->kind != GRADIENT_FORMULA) continue;
        SIMT_TRY(formula_parse(text, &all->mem, &r->f));
        r->variables = formula_variables(r->f);
    }
    all->parsed[all->op] = true;
    return SIMT_OK;
}

simt_status gradient_get(array_op op, int i, const gradient_rule **out) {
    static gradient_rules all = {.mem = {.sure = true}};
    if (!all.parsed[op]) {
        all.op = op;
        SIMT_TRY(arena_run(parse_rules, &all));
    }
    *out = &all.rules[op][i];
    return SIMT_OK;
}

/* A value on the way: a tensor (owned) or a number. */
typedef tensor_operand value;

static value number(double v) { return (value){NULL, {.kind = 'F', .f = v}}; }
static double as_double(scalar s) {
    return s.kind == 'F' ? s.f : s.kind == 'U' ? (double)s.u : (double)s.i;
}
static bool is_number(value v, double x) { return !v.t && as_double(v.s) == x; }

static bool fold(array_op op, const value *args, int n, value *out) {
    double x = n > 0 ? as_double(args[0].s) : 0, y = n > 1 ? as_double(args[1].s) : 0;
    if (op == OP_WHERE && !args[0].t) { /* the branch is known */
        *out = x != 0 ? args[1] : args[2];
        if (out->t) tensor_ref(out->t);
        return true;
    }
    for (int i = 0; i < n; i++)
        if (args[i].t) return false;
    switch (op) {
    case OP_ADD: *out = number(x + y); return true;
    case OP_SUBTRACT: *out = number(x - y); return true;
    case OP_MULTIPLY: *out = number(x * y); return true;
    case OP_DIVIDE: *out = number(x / y); return true;
    case OP_NEGATIVE: *out = number(-x); return true;
    case OP_POWER: *out = number(pow(x, y)); return true;
    case OP_LOG: *out = number(log(x)); return true;
    case OP_SIGN: *out = number((x > 0) - (x < 0)); return true;
    case OP_EQUAL: *out = number(x == y); return true;
    case OP_NOT_EQUAL: *out = number(x != y); return true;
    case OP_LESS: *out = number(x < y); return true;
    case OP_LESS_EQUAL: *out = number(x <= y); return true;
    case OP_GREATER: *out = number(x > y); return true;
    case OP_GREATER_EQUAL: *out = number(x >= y); return true;
    default: return false;
    }
}

/* x * 1, power(x, 1): no operation. */
static bool simplify(array_op op, const value *args, value *out) {
    int keep = -1;
    if (op == OP_MULTIPLY && is_number(args[1], 1))
        keep = 0;
    else if (op == OP_MULTIPLY && is_number(args[0], 1))
        keep = 1;
    else if ((op == OP_POWER || op == OP_DIVIDE) && args[0].t && is_number(args[1], 1))
        keep = 0;
    if (keep < 0) return false;
    *out = args[keep];
    if (out->t) tensor_ref(out->t);
    return true;
}

static simt_status walk(const formula *f, const formula_values *values, value *out) {
    *out = (value){0};
    if (f->kind == FORMULA_NUMBER) {
        *out = number(f->number);
        return SIMT_OK;
    }
    if (f->kind == FORMULA_VARIABLE) {
        *out = values->variable[f->variable];
        if (out->t) tensor_ref(out->t);
        return SIMT_OK;
    }
    value args[3] = {{0}};
    simt_status s = SIMT_OK;
    for (int i = 0; i < f->nargs && s == SIMT_OK; i++) s = walk(f->args[i], values, &args[i]);
    if (s == SIMT_OK && !fold(f->op, args, f->nargs, out) && !simplify(f->op, args, out)) {
        if (f->op == OP_POWER)
            s = grad_power(args, &out->t);
        else
            s = grad_elementwise(f->op, args, f->nargs, NULL, &out->t);
    }
    for (int i = 0; i < f->nargs; i++) tensor_unref(args[i].t);
    return s;
}

simt_status formula_evaluate(const formula *f, const formula_values *values, tensor **out) {
    value v;
    SIMT_TRY(walk(f, values, &v));
    if (v.t) {
        *out = v.t;
        return SIMT_OK;
    }
    /* a number: a tensor like g */
    return grad_full_like(values->variable[FORMULA_G].t, as_double(v.s), out);
}
