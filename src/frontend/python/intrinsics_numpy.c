/* NumPy's universal functions on scalars: its result types (int32 + int32 stays int32), its meaning.
 * Narrow integers are computed in 64 bits and cut, which gives the same low bits. */
#include "frontend/python/intrinsics.h"

#include <string.h>

/* The float type of a function of this type: NumPy's loops for float32 and float64. */
static py_scalar float_of(py_scalar s) {
    if (py_scalar_is_float(s) || py_scalar_is_complex(s)) return s;
    return py_scalar_bytes(s) <= 2 ? PY_S_F32 : PY_S_F64;
}

static bool number(py_ctx *c, py_call *x, uint32_t i, py_scalar *s) {
    *s = py_scalar_of(&x->args[i]);
    if (*s != PY_S_NONE) return true;
    return py_fail(c, x->node, "%s takes numbers, not %s%s", x->name,
                   py_type_text(c, x->args[i].type), py_advice(c, x->args[i].type));
}

/* Both arguments as their common type (floats only when `floats`). */
static bool pair(py_ctx *c, py_call *x, bool floats, py_val *a, py_val *b, py_scalar *s) {
    py_scalar t;
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    if (!number(c, x, 0, s) || !number(c, x, 1, &t)) return false;
    *s = py_scalar_unify(*s, t);
    if (floats) *s = float_of(*s);
    return py_to_scalar(c, x->node, &x->args[0], *s, a) &&
           py_to_scalar(c, x->node, &x->args[1], *s, b);
}

bool numpy_binary(py_ctx *c, py_call *x, py_val *out) { /* extra: the operator */
    py_val a, b, r;
    py_scalar s;
    py_operator op = (py_operator)x->extra;
    if (!pair(c, x, op == PY_DIV, &a, &b, &s)) return false;
    if (s == PY_S_BOOL && (op == PY_ADD || op == PY_MULT)) op = op == PY_ADD ? PY_BITOR : PY_BITAND;
    if (!py_binary(c, x->node, op, &a, &b, &r)) return false;
    return py_to_scalar(c, x->node, &r, s, out);
}

bool numpy_unary(py_ctx *c, py_call *x, py_val *out) { /* negative, positive, invert */
    py_val r;
    py_scalar s;
    py_operator op = (py_operator)x->extra;
    if (!py_check_arguments(c, x, 1, 1, "") || !number(c, x, 0, &s)) return false;
    if (s == PY_S_BOOL && op == PY_USUB)
        return py_fail(c, x->node, "%s of bool: use ~ or logical_not", x->name);
    if (s == PY_S_BOOL && op == PY_INVERT) op = PY_NOT;
    if (!py_unary(c, x->node, op, &x->args[0], &r)) return false;
    return py_to_scalar(c, x->node, &r, s, out);
}

/* extra: the IR op for floats; complex arguments go to their function. */
bool numpy_float(py_ctx *c, py_call *x, py_val *out) {
    py_val v;
    py_scalar s;
    if (!py_check_arguments(c, x, 1, 1, "") || !number(c, x, 0, &s)) return false;
    if (py_scalar_is_complex(s)) return py_complex_function(c, x, (ir_op)x->extra, out);
    if (!py_to_scalar(c, x->node, &x->args[0], float_of(s), &v)) return false;
    *out = py_val_scalar(c, v.type->scalar, py_emit_unary(c, (ir_op)x->extra, py_slot(&v, 0)));
    return true;
}

bool numpy_float_pair(py_ctx *c, py_call *x, py_val *out) { /* extra: the IR op */
    py_val a, b;
    py_scalar s;
    if (!pair(c, x, true, &a, &b, &s)) return false;
    if (py_scalar_is_complex(s)) return py_fail(c, x->node, "%s takes real numbers", x->name);
    *out = py_val_scalar(c, s, py_emit_binary(c, (ir_op)x->extra, py_slot(&a, 0), py_slot(&b, 0)));
    return true;
}

bool numpy_integral(py_ctx *c, py_call *x, py_val *out) { /* floor, ceil, trunc, rint */
    py_scalar s;
    if (!py_check_arguments(c, x, 1, 1, "") || !number(c, x, 0, &s)) return false;
    if (!py_scalar_is_integral(s)) return numpy_float(c, x, out);
    if (x->extra == IR_FRINT) return py_to_scalar(c, x->node, &x->args[0], float_of(s), out);
    *out = x->args[0];
    return true;
}

bool numpy_fmod(py_ctx *c, py_call *x, py_val *out) { /* integers too: C's remainder */
    py_val a, b;
    py_scalar s;
    if (!pair(c, x, false, &a, &b, &s)) return false;
    if (s == PY_S_BOOL) return py_fail(c, x->node, "%s of bool and bool", x->name);
    if (!py_scalar_is_int(s)) return numpy_float_pair(c, x, out);
    py_scalar wide = py_scalar_is_signed(s) ? PY_S_I64 : PY_S_U64;
    if (!py_to_scalar(c, x->node, &a, wide, &a) || !py_to_scalar(c, x->node, &b, wide, &b))
        return false;
    ir_op op = wide == PY_S_I64 ? IR_REM_S : IR_REM_U;
    py_val r = py_val_scalar(c, wide, py_emit_binary(c, op, py_slot(&a, 0), py_slot(&b, 0)));
    return py_to_scalar(c, x->node, &r, s, out);
}

static ir_value *has_nan(py_ctx *c, const py_val *z) {
    ir_value *re = py_slot(z, 0), *im = py_slot(z, 1);
    return py_emit_binary(c, IR_OR, py_emit_binary(c, IR_FNE, re, re),
                          py_emit_binary(c, IR_FNE, im, im));
}

/* NumPy's order of complex numbers: by the real parts, equal ones by the imaginary parts. */
static ir_value *complex_less(py_ctx *c, bool or_equal, const py_val *a, const py_val *b) {
    ir_value *x = py_slot(a, 1), *y = py_slot(b, 1);
    ir_value *ordered =
        py_emit_binary(c, IR_AND, py_emit_binary(c, IR_FEQ, x, x), py_emit_binary(c, IR_FEQ, y, y));
    ir_value *less = py_emit_binary(c, IR_FLT, py_slot(a, 0), py_slot(b, 0));
    ir_value *same = py_emit_binary(c, IR_FEQ, py_slot(a, 0), py_slot(b, 0));
    same = py_emit_binary(c, IR_AND, same, py_emit_binary(c, or_equal ? IR_FLE : IR_FLT, x, y));
    return py_emit_binary(c, IR_OR, py_emit_binary(c, IR_AND, less, ordered), same);
}

bool numpy_compare(py_ctx *c, py_call *x, py_val *out) {
    py_operator op = (py_operator)x->extra;
    py_val a, b;
    py_scalar s;
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    bool complexes = py_scalar_is_complex(py_scalar_of(&x->args[0])) ||
                     py_scalar_is_complex(py_scalar_of(&x->args[1]));
    if (!complexes || op == PY_EQ || op == PY_NOTEQ || strncmp(x->name, "numpy.", 6) != 0)
        return py_compare(c, x->node, op, &x->args[0], &x->args[1], out);
    if (!pair(c, x, false, &a, &b, &s)) return false;
    bool swap = op == PY_GT || op == PY_GTE, or_equal = op == PY_LTE || op == PY_GTE;
    *out = py_val_scalar(c, PY_S_BOOL, complex_less(c, or_equal, swap ? &b : &a, swap ? &a : &b));
    return true;
}

static void complex_extreme(py_ctx *c, bool least, bool numbers, const py_val *a, const py_val *b,
                            py_scalar s, py_val *out) {
    ir_value *stays = least ? complex_less(c, true, a, b) : complex_less(c, true, b, a);
    ir_value *nan_a = has_nan(c, a), *nan_b = has_nan(c, b);
    ir_value *first = numbers ? nan_a : nan_b, *second = numbers ? nan_b : nan_a;
    stays = py_emit_binary(c, IR_AND, stays, py_emit_unary(c, IR_NOT, first));
    stays = py_emit_binary(c, IR_OR, stays, second);
    *out = py_val_complex(c, s, py_emit_select(c, stays, py_slot(a, 0), py_slot(b, 0)),
                          py_emit_select(c, stays, py_slot(a, 1), py_slot(b, 1)));
}

bool numpy_extreme(py_ctx *c, py_call *x, py_val *out) { /* extra: the IR op for floats */
    py_val a, b;
    py_scalar s;
    if (!pair(c, x, false, &a, &b, &s)) return false;
    ir_op op = (ir_op)x->extra;
    bool least = op == IR_FMIN_NAN || op == IR_FMIN_NUM;
    if (py_scalar_is_complex(s)) {
        complex_extreme(c, least, op == IR_FMIN_NUM || op == IR_FMAX_NUM, &a, &b, s, out);
        return true;
    }
    if (s == PY_S_BOOL)
        op = least ? IR_AND : IR_OR;
    else if (py_scalar_is_signed(s))
        op = least ? IR_MIN_S : IR_MAX_S;
    else if (py_scalar_is_unsigned(s))
        op = least ? IR_MIN_U : IR_MAX_U;
    *out = py_val_scalar(c, s, py_emit_binary(c, op, py_slot(&a, 0), py_slot(&b, 0)));
    out->nonneg = py_scalar_is_int(s) && a.nonneg && b.nonneg;
    return true;
}

bool numpy_square(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    x->args[1] = x->args[0];
    x->nargs = 2;
    x->extra = PY_MULT;
    return numpy_binary(c, x, out);
}

/* Of an integer: 1 and -1 are their own, of others the quotient is 0. */
static void int_reciprocal(py_ctx *c, const py_val *v, py_scalar s, py_val *out) {
    ir_type t = py_scalar_ir(s);
    ir_value *x = py_slot(v, 0), *own = py_emit_binary(c, IR_EQ, x, py_emit_int(c, t, 1));
    if (py_scalar_is_signed(s))
        own = py_emit_binary(c, IR_OR, own, py_emit_binary(c, IR_EQ, x, py_emit_int(c, t, -1)));
    *out = py_val_scalar(c, s, py_emit_select(c, own, x, py_emit_zero(c, t)));
}

bool numpy_reciprocal(py_ctx *c, py_call *x, py_val *out) {
    py_scalar s;
    if (!py_check_arguments(c, x, 1, 1, "") || !number(c, x, 0, &s)) return false;
    if (s == PY_S_BOOL && !py_to_scalar(c, x->node, &x->args[0], s = PY_S_I8, &x->args[0]))
        return false;
    if (py_scalar_is_int(s)) {
        int_reciprocal(c, &x->args[0], s, out);
        return true;
    }
    py_constant k = {.kind = PY_VALUE_INT, .integer = 1};
    py_val one = py_val_constant(c, &k, s), r;
    if (!py_binary(c, x->node, PY_DIV, &one, &x->args[0], &r)) return false;
    return py_to_scalar(c, x->node, &r, s, out);
}

bool numpy_sign(py_ctx *c, py_call *x, py_val *out) {
    py_scalar s;
    if (!py_check_arguments(c, x, 1, 1, "") || !number(c, x, 0, &s)) return false;
    if (s == PY_S_BOOL || py_scalar_is_complex(s))
        return py_fail(c, x->node, "%s of %s", x->name, py_scalar_name(s));
    py_constant k = {.kind = PY_VALUE_INT, .integer = 0};
    py_val zero = py_val_constant(c, &k, s), *v = &x->args[0], more, less;
    zero.is_const = false;
    if (!py_compare(c, x->node, PY_GT, v, &zero, &more) ||
        !py_compare(c, x->node, PY_LT, v, &zero, &less))
        return false;
    ir_type t = py_scalar_ir(s);
    bool floats = py_scalar_is_float(s);
    ir_value *one = floats ? py_emit_float(c, t, 1) : py_emit_int(c, t, 1);
    ir_value *minus = floats ? py_emit_float(c, t, -1) : py_emit_int(c, t, -1);
    ir_value *rest = floats ? py_slot(v, 0) : py_slot(&zero, 0); /* 0, or NaN */
    *out = py_val_scalar(c, s,
                         py_emit_select(c, py_slot(&more, 0), one,
                                        py_emit_select(c, py_slot(&less, 0), minus, rest)));
    return true;
}

bool numpy_signbit(py_ctx *c, py_call *x, py_val *out) {
    py_val v;
    py_scalar s;
    if (!py_check_arguments(c, x, 1, 1, "") || !number(c, x, 0, &s)) return false;
    if (!py_to_scalar(c, x->node, &x->args[0], float_of(s), &v)) return false;
    ir_type t = py_scalar_ir(v.type->scalar);
    ir_value *one = py_emit_binary(c, IR_FCOPYSIGN, py_emit_float(c, t, 1), py_slot(&v, 0));
    *out = py_val_scalar(c, PY_S_BOOL, py_emit_binary(c, IR_FLT, one, py_emit_float(c, t, 0)));
    return true;
}

bool numpy_logical(py_ctx *c, py_call *x, py_val *out) { /* extra: IR_AND, IR_OR, IR_XOR, IR_NOT */
    py_val a, b;
    bool one = x->extra == IR_NOT;
    if (!py_check_arguments(c, x, one ? 1 : 2, one ? 1 : 2, "")) return false;
    if (!py_truth(c, x->node, &x->args[0], &a)) return false;
    if (one) {
        *out = py_val_scalar(c, PY_S_BOOL, py_emit_unary(c, IR_NOT, py_slot(&a, 0)));
        return true;
    }
    if (!py_truth(c, x->node, &x->args[1], &b)) return false;
    *out = py_val_scalar(c, PY_S_BOOL,
                         py_emit_binary(c, (ir_op)x->extra, py_slot(&a, 0), py_slot(&b, 0)));
    return true;
}

bool numpy_where(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 3, 3, "")) return false;
    return cuda_selp(c, x, out);
}

bool numpy_logaddexp(py_ctx *c, py_call *x, py_val *out) { /* max + log1p(exp(-|a - b|)) */
    py_val a, b;
    py_scalar s;
    if (!pair(c, x, true, &a, &b, &s)) return false;
    if (py_scalar_is_complex(s)) return py_fail(c, x->node, "%s takes real numbers", x->name);
    ir_value *p = py_slot(&a, 0), *q = py_slot(&b, 0);
    ir_value *apart = py_emit_unary(c, IR_FABS, py_emit_binary(c, IR_FSUB, p, q));
    ir_value *most = py_emit_binary(c, IR_FMAX_NAN, p, q);
    ir_value *more =
        py_emit_unary(c, IR_LOG1P, py_emit_unary(c, IR_EXP, py_emit_unary(c, IR_FNEG, apart)));
    ir_value *same = py_emit_binary(c, IR_FEQ, p, q); /* also equal infinities */
    ir_value *log2 = py_emit_float(c, py_scalar_ir(s), 0.69314718055994530942);
    *out =
        py_val_scalar(c, s, py_emit_binary(c, IR_FADD, most, py_emit_select(c, same, log2, more)));
    return true;
}

/* ---- new arrays ---- */

/* A new array is a local array, and there is one of it: a loop's next round would take the last round's. */
static bool in_loop(const py_ctx *c) {
    for (const py_frame *f = c->frame; f != NULL; f = f->caller)
        if (f->loop != NULL) return true;
    return false;
}

bool numpy_new_array(py_ctx *c, py_call *x, py_val *out) {
    bool full = x->extra == PY_NEW_FULL;
    py_entity type = {.kind = PY_ENTITY_TYPE, .type = PY_S_F64};
    if (!py_check_arguments(c, x, full ? 2 : 1, full ? 3 : 2,
                            full ? "shape, fill_value, dtype" : "shape, dtype"))
        return false;
    py_val *shape = py_argument(x, 0, "shape"), *dt = py_argument(x, full ? 2 : 1, "dtype");
    py_val *value = full ? py_argument(x, 1, "fill_value") : NULL;
    py_val fill = py_val_int(c, x->extra == PY_NEW_ONES);
    if (shape == NULL || (full && value == NULL))
        return py_fail(c, x->node, "%s takes a shape%s", x->name, full ? " and a value" : "");
    if (in_loop(c))
        return py_fail(c, x->node,
                       "%s in a loop is not in simt's kernels: make the array before the loop, and "
                       "write a[:] = 0 in it",
                       x->name);
    if (full) {
        fill = *value;
        type.type = py_scalar_of(value);
        if (type.type == PY_S_NONE)
            return py_fail(c, x->node, "%s: the value must be a number, not %s", x->name,
                           py_type_text(c, value->type));
    }
    if (dt != NULL && !py_type_argument(c, x, dt, &type)) return false;
    if (type.record != NULL)
        return py_fail(c, x->node, "%s of records: use cuda.local.array(shape, dtype)", x->name);
    return py_array_alloc(c, x->node, shape, &type, IR_PTR_LOCAL, 0, out) &&
           (x->extra == PY_NEW_EMPTY || py_fill_array(c, x->node, out, py_item_of_value, &fill));
}
