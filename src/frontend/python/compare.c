/* Comparisons: numbers of any two types by value, tuples, None, membership. */
#include "frontend/python/work.h"

/* An exact comparison of a signed with a uint64: a negative one is below all. */
static ir_value *compare_mixed(py_ctx *c, py_operator op, ir_value *a, bool a_signed, ir_value *b) {
    ir_value *zero = py_emit_zero(c, IR_I64);
    ir_value *negative = py_emit_binary(c, IR_LT_S, a_signed ? a : b, zero), *r;
    switch (op) {
    case PY_EQ:
        r = py_emit_binary(c, IR_EQ, a, b);
        return py_emit_select(c, negative, py_emit_int(c, IR_I1, 0), r);
    case PY_NOTEQ:
        r = py_emit_binary(c, IR_NE, a, b);
        return py_emit_select(c, negative, py_emit_int(c, IR_I1, 1), r);
    default: r = py_emit_binary(c, op == PY_LT ? IR_LT_U : IR_LE_U, a, b);
    }
    return py_emit_select(c, negative, py_emit_int(c, IR_I1, a_signed), r);
}

static ir_value *compare_ints(py_ctx *c, py_operator op, const py_val *a, const py_val *b) {
    bool ua = py_scalar_of(a) == PY_S_U64, ub = py_scalar_of(b) == PY_S_U64;
    if (ua != ub && !(ua ? b : a)->nonneg)
        return compare_mixed(c, op, py_slot(a, 0), !ua, py_slot(b, 0));
    bool is_unsigned = ua || ub;
    switch (op) {
    case PY_EQ: return py_emit_binary(c, IR_EQ, py_slot(a, 0), py_slot(b, 0));
    case PY_NOTEQ: return py_emit_binary(c, IR_NE, py_slot(a, 0), py_slot(b, 0));
    case PY_LT:
        return py_emit_binary(c, is_unsigned ? IR_LT_U : IR_LT_S, py_slot(a, 0), py_slot(b, 0));
    default:
        return py_emit_binary(c, is_unsigned ? IR_LE_U : IR_LE_S, py_slot(a, 0), py_slot(b, 0));
    }
}

static bool compare_scalars(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                            const py_val *b, py_val *out) {
    py_scalar s = py_scalar_of(a), t = py_scalar_of(b), type;
    py_val x, y;
    if (py_scalar_is_integral(s) && py_scalar_is_integral(t)) {
        if (!py_to_scalar(c, at, a, s == PY_S_U64 ? PY_S_U64 : PY_S_I64, &x)) return false;
        if (!py_to_scalar(c, at, b, t == PY_S_U64 ? PY_S_U64 : PY_S_I64, &y)) return false;
        *out = py_val_scalar(c, PY_S_BOOL, compare_ints(c, op, &x, &y));
        return true;
    }
    type = py_arithmetic_type(s, t);
    if (!py_to_scalar(c, at, a, type, &x) || !py_to_scalar(c, at, b, type, &y)) return false;
    ir_op how = op == PY_EQ ? IR_FEQ : op == PY_NOTEQ ? IR_FNE : op == PY_LT ? IR_FLT : IR_FLE;
    ir_value *r = py_emit_binary(c, how, py_slot(&x, 0), py_slot(&y, 0));
    if (py_scalar_is_complex(type)) {
        if (op != PY_EQ && op != PY_NOTEQ) return py_fail_operator(c, at, op, a, b);
        r = py_emit_binary(c, op == PY_EQ ? IR_AND : IR_OR, r,
                           py_emit_binary(c, how, py_slot(&x, 1), py_slot(&y, 1)));
    }
    *out = py_val_scalar(c, PY_S_BOOL, r);
    return true;
}

static bool fold_compare(py_ctx *c, py_operator op, const py_val *a, const py_val *b, py_val *out) {
    if (!a->is_const || !b->is_const || a->value.kind != PY_VALUE_INT ||
        b->value.kind != PY_VALUE_INT)
        return false;
    int64_t x = a->value.integer, y = b->value.integer;
    *out = py_val_bool(c, op == PY_EQ      ? x == y
                          : op == PY_NOTEQ ? x != y
                          : op == PY_LT    ? x < y
                                           : x <= y);
    return true;
}

/* None, strings, types, functions: known now. 1: the same, 0: not, -1: not such things */
static int same_thing(const py_val *a, const py_val *b) {
    const py_type *s = a->type, *t = b->type;
    if (s->kind == TY_NONE || t->kind == TY_NONE) return s->kind == t->kind;
    if (s->kind == TY_STRING && t->kind == TY_STRING)
        return py_constant_equal(&a->value, &b->value);
    if (s->kind == TY_ENTITY && t->kind == TY_ENTITY) return py_type_equal(s, t);
    if (s->kind == TY_ENTITY || t->kind == TY_ENTITY || s->kind == TY_STRING ||
        t->kind == TY_STRING)
        return 0;
    return -1;
}

static bool compare_tuples(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                           const py_val *b, py_val *out) {
    if (op != PY_EQ && op != PY_NOTEQ) return py_fail_operator(c, at, op, a, b);
    if (a->type->count != b->type->count) {
        *out = py_val_bool(c, op == PY_NOTEQ);
        return true;
    }
    *out = py_val_bool(c, op == PY_EQ);
    for (uint32_t i = 0; i < a->type->count; i++) {
        py_val x = py_val_item(a, i), y = py_val_item(b, i), r;
        if (!py_compare(c, at, op, &x, &y, &r)) return false;
        ir_value *both =
            py_emit_binary(c, op == PY_EQ ? IR_AND : IR_OR, py_slot(out, 0), py_slot(&r, 0));
        *out = py_val_scalar(c, PY_S_BOOL, both);
    }
    return true;
}

static bool compare_member(py_ctx *c, const py_node *at, bool negated, const py_val *a,
                           const py_val *b, py_val *out) {
    if (py_is_text(a) && py_is_text(b)) {
        if (!py_chars_contains(c, at, a, b, out)) return false;
        if (negated) *out = py_val_scalar(c, PY_S_BOOL, py_emit_unary(c, IR_NOT, py_slot(out, 0)));
        return true;
    }
    if (b->type->kind != TY_TUPLE) return py_fail_operator(c, at, negated ? PY_NOTIN : PY_IN, a, b);
    ir_value *any = py_emit_int(c, IR_I1, 0);
    for (uint32_t i = 0; i < b->type->count; i++) {
        py_val item = py_val_item(b, i), r;
        if (!py_compare(c, at, PY_EQ, a, &item, &r)) return false;
        any = py_emit_binary(c, IR_OR, any, py_slot(&r, 0));
    }
    if (negated) any = py_emit_unary(c, IR_NOT, any);
    *out = py_val_scalar(c, PY_S_BOOL, any);
    return true;
}

/* Whether it is not None. */
static ir_value *is_some(py_ctx *c, const py_val *v) {
    if (v->type->kind == TY_OPTIONAL) return py_slot(v, 0);
    return py_emit_int(c, IR_I1, v->type->kind != TY_NONE);
}

/* One of them may be None, which is equal to None only; for other comparisons both need values. */
static bool compare_optional(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                             const py_val *b, py_val *out) {
    py_val x = *a, y = *b;
    bool negated = op == PY_ISNOT || op == PY_NOTEQ;
    if (op != PY_IS && op != PY_EQ && !negated)
        return py_take_value(c, at, &x) && py_take_value(c, at, &y) &&
               py_compare(c, at, op, &x, &y, out);
    ir_value *s = is_some(c, a), *t = is_some(c, b);
    ir_value *same = py_emit_unary(c, IR_NOT, py_emit_binary(c, IR_XOR, s, t));
    if (x.type->kind != TY_NONE && y.type->kind != TY_NONE) {
        x = py_val_present(a);
        y = py_val_present(b);
        if (!py_compare(c, at, negated ? op == PY_NOTEQ ? PY_EQ : PY_IS : op, &x, &y, out))
            return false;
        ir_value *both =
            py_emit_binary(c, IR_AND, py_emit_binary(c, IR_AND, s, t), py_slot(out, 0));
        ir_value *neither = py_emit_unary(c, IR_NOT, py_emit_binary(c, IR_OR, s, t));
        same = py_emit_binary(c, IR_OR, both, neither);
    }
    if (negated) same = py_emit_unary(c, IR_NOT, same);
    *out = py_val_scalar(c, PY_S_BOOL, same);
    return true;
}

bool py_compare(py_ctx *c, const py_node *at, py_operator op, const py_val *a, const py_val *b,
                py_val *out) {
    if (a->type->kind == TY_OPTIONAL || b->type->kind == TY_OPTIONAL)
        return compare_optional(c, at, op, a, b, out);
    if (op == PY_IN || op == PY_NOTIN) return compare_member(c, at, op == PY_NOTIN, a, b, out);
    if (op == PY_GT) return py_compare(c, at, PY_LT, b, a, out);
    if (op == PY_GTE) return py_compare(c, at, PY_LTE, b, a, out);
    bool negated = op == PY_NOTEQ || op == PY_ISNOT;
    bool constants = a->type->kind == TY_STRING && b->type->kind == TY_STRING && op != PY_LT &&
                     op != PY_LTE; /* compared now */
    if (py_is_text(a) && py_is_text(b) && !constants && op != PY_IS && op != PY_ISNOT)
        return py_chars_compare(c, at, op, a, b, out);
    if (op == PY_IS || op == PY_ISNOT || op == PY_EQ || op == PY_NOTEQ) {
        int same = same_thing(a, b);
        if (same >= 0) {
            *out = py_val_bool(c, (same == 1) != negated);
            return true;
        }
    }
    if (op == PY_IS || op == PY_ISNOT) { /* bools and small integers: what a user means is == */
        if (py_scalar_of(a) == PY_S_NONE || py_scalar_of(b) == PY_S_NONE)
            return py_fail(c, at, "'%s' compares with None only: write ==", py_operator_text(op));
        op = negated ? PY_NOTEQ : PY_EQ;
    }
    if (py_is_plain_tuple(a) && py_is_plain_tuple(b)) return compare_tuples(c, at, op, a, b, out);
    if (py_scalar_of(a) == PY_S_NONE || py_scalar_of(b) == PY_S_NONE)
        return py_fail_operator(c, at, op, a, b);
    if (fold_compare(c, op, a, b, out)) return true;
    return compare_scalars(c, at, op, a, b, out);
}
