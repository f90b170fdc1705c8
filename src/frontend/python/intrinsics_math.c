/* math's functions and NumPy's of floats, on real scalars. Integers count as float64; float32 stays float32. */
#include "frontend/python/intrinsics.h"

#include <float.h>

ir_value *py_emit_atan2(py_ctx *c, ir_value *y, ir_value *x) {
    return py_emit_binary(c, IR_ATAN2, y, x);
}

ir_value *py_emit_hypot(py_ctx *c, ir_value *x, ir_value *y) {
    return py_emit_binary(c, IR_HYPOT, x, y);
}

/* The argument as a float: its own type, float32 for float16, float64 for integers. */
static bool float_argument(py_ctx *c, py_call *x, uint32_t i, py_val *out) {
    py_scalar s = py_scalar_of(&x->args[i]);
    if (s == PY_S_NONE || py_scalar_is_complex(s))
        return py_fail(c, x->node, "%s takes real numbers, not %s%s", x->name,
                       py_type_text(c, x->args[i].type), py_advice(c, x->args[i].type));
    py_scalar to = s == PY_S_F16 ? PY_S_F32 : py_scalar_is_float(s) ? s : PY_S_F64;
    return py_to_scalar(c, x->node, &x->args[i], to, out);
}

static bool float_pair(py_ctx *c, py_call *x, py_val *a, py_val *b, py_scalar *s) {
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    if (!float_argument(c, x, 0, a) || !float_argument(c, x, 1, b)) return false;
    *s = py_scalar_unify(py_scalar_of(a), py_scalar_of(b));
    return py_to_scalar(c, x->node, a, *s, a) && py_to_scalar(c, x->node, b, *s, b);
}

bool math_unary(py_ctx *c, py_call *x, py_val *out) {
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "") || !float_argument(c, x, 0, &v)) return false;
    *out = py_val_scalar(c, v.type->scalar, py_emit_unary(c, (ir_op)x->extra, py_slot(&v, 0)));
    return true;
}

/* The same bits as another type; extra: 16 * from + to. */
bool math_bits(py_ctx *c, py_call *x, py_val *out) {
    py_scalar from = (py_scalar)(x->extra / 16), to = (py_scalar)(x->extra % 16);
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "") || !py_to_scalar(c, x->node, &x->args[0], from, &v))
        return false;
    *out = py_val_scalar(c, to, py_emit_cast(c, IR_BITCAST, py_scalar_ir(to), py_slot(&v, 0)));
    return true;
}

bool math_binary(py_ctx *c, py_call *x, py_val *out) {
    py_val a, b;
    py_scalar s;
    if (!float_pair(c, x, &a, &b, &s)) return false;
    *out = py_val_scalar(c, s, py_emit_binary(c, (ir_op)x->extra, py_slot(&a, 0), py_slot(&b, 0)));
    return true;
}

bool math_log(py_ctx *c, py_call *x, py_val *out) { /* log(x) or log(x, base) */
    py_val a, b;
    py_scalar s;
    if (x->nargs == 1) {
        x->extra = IR_LOG;
        return math_unary(c, x, out);
    }
    if (!float_pair(c, x, &a, &b, &s)) return false;
    *out = py_val_scalar(c, s,
                         py_emit_binary(c, IR_FDIV, py_emit_unary(c, IR_LOG, py_slot(&a, 0)),
                                        py_emit_unary(c, IR_LOG, py_slot(&b, 0))));
    return true;
}

bool math_test(py_ctx *c, py_call *x, py_val *out) {
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    py_scalar s = py_scalar_of(&x->args[0]);
    if (py_scalar_is_integral(s)) {
        *out = py_val_bool(c, x->extra == PY_TEST_FINITE);
        return true;
    }
    if (!float_argument(c, x, 0, &v)) return false;
    ir_type t = py_scalar_ir(v.type->scalar);
    ir_value *p = py_slot(&v, 0), *inf = py_emit_float(c, t, __builtin_inf()), *r;
    ir_value *magnitude = py_emit_unary(c, IR_FABS, p);
    if (x->extra == PY_TEST_NAN)
        r = py_emit_binary(c, IR_FNE, p, p);
    else
        r = py_emit_binary(c, x->extra == PY_TEST_INF ? IR_FEQ : IR_FLT, magnitude, inf);
    *out = py_val_scalar(c, PY_S_BOOL, r);
    return true;
}

bool math_scale(py_ctx *c, py_call *x, py_val *out) { /* degrees, radians */
    py_val v;
    const double pi = 3.14159265358979323846;
    if (!py_check_arguments(c, x, 1, 1, "") || !float_argument(c, x, 0, &v)) return false;
    py_scalar s = v.type->scalar;
    double factor = x->extra == 0 ? 180 / pi : pi / 180;
    *out = py_val_scalar(
        c, s,
        py_emit_binary(c, IR_FMUL, py_slot(&v, 0), py_emit_float(c, py_scalar_ir(s), factor)));
    return true;
}

bool math_ldexp(py_ctx *c, py_call *x, py_val *out) {
    py_val a, n;
    if (!py_check_arguments(c, x, 2, 2, "") || !float_argument(c, x, 0, &a)) return false;
    if (!py_to_index(c, x->node, &x->args[1], "the exponent", &n)) return false;
    /* an exponent beyond 32 bits is as good as the largest */
    ir_value *e = py_emit_binary(c, IR_MIN_S, py_slot(&n, 0), py_emit_int(c, IR_I64, 100000));
    e = py_emit_binary(c, IR_MAX_S, e, py_emit_int(c, IR_I64, -100000));
    e = py_emit_cast(c, IR_TRUNC, IR_I32, e);
    *out = py_val_scalar(c, a.type->scalar, py_emit_binary(c, IR_LDEXP, py_slot(&a, 0), e));
    return true;
}

bool math_frexp(py_ctx *c, py_call *x, py_val *out) { /* (fraction, exponent) */
    py_val a, *items = PY_NEW(c, py_val, 2);
    if (!py_check_arguments(c, x, 1, 1, "") || !float_argument(c, x, 0, &a)) return false;
    ir_value *v = py_slot(&a, 0);
    items[0] = py_val_scalar(c, a.type->scalar, py_emit_unary(c, IR_FREXP_FRACTION, v));
    items[1] = py_val_scalar(c, PY_S_I32, py_emit_cast(c, IR_FREXP_EXPONENT, IR_I32, v));
    *out = py_val_tuple(c, items, 2);
    return true;
}

bool math_modf(py_ctx *c, py_call *x,
               py_val *out) { /* (fraction, whole), both with the sign of x */
    py_val a, *items = PY_NEW(c, py_val, 2);
    if (!py_check_arguments(c, x, 1, 1, "") || !float_argument(c, x, 0, &a)) return false;
    ir_value *v = py_slot(&a, 0), *whole = py_emit_unary(c, IR_FTRUNC, v);
    ir_type t = py_scalar_ir(a.type->scalar);
    ir_value *same = py_emit_binary(c, IR_FEQ, whole, v); /* infinities too: the rest is 0 */
    ir_value *rest =
        py_emit_select(c, same, py_emit_float(c, t, 0), py_emit_binary(c, IR_FSUB, v, whole));
    items[0] = py_val_scalar(c, a.type->scalar, py_emit_binary(c, IR_FCOPYSIGN, rest, v));
    items[1] = py_val_scalar(c, a.type->scalar, whole);
    *out = py_val_tuple(c, items, 2);
    return true;
}

/* Euclid's algorithm on the magnitudes; extra 1: lcm. */
bool math_gcd(py_ctx *c, py_call *x, py_val *out) {
    py_val v[2];
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    for (int i = 0; i < 2; i++) {
        if (!py_to_index(c, x->node, &x->args[i], x->name, &v[i])) return false;
        if (v[i].type->scalar == PY_S_I64)
            v[i] = py_val_scalar(c, PY_S_I64, py_emit_unary(c, IR_ABS, py_slot(&v[i], 0)));
    }
    py_scalar s = v[0].type->scalar == v[1].type->scalar ? (py_scalar)v[0].type->scalar : PY_S_I64;
    *out = py_val_scalar(c, s, NULL);
    if (!c->emit) return true;
    ir_type t = IR_I64;
    ir_value *init[2] = {v[0].v[0], v[1].v[0]}, *zero = py_emit_zero(c, t);
    ir_inst *loop = ir_loop(&c->b, init, 2, &t, 1);
    ir_region *after = c->b.at;
    c->b.at = loop->regions[0];
    ir_value *p = &c->b.at->params[0], *q = &c->b.at->params[1];
    py_if i = py_begin_if(c, py_emit_binary(c, IR_NE, q, zero), NULL, 0);
    py_else(c, &i, NULL, 0);
    ir_br(&c->b, loop, &p, 1);
    py_end_if(c, &i, NULL, 0, NULL);
    ir_value *next[2] = {q, py_emit_binary(c, IR_REM_U, p, q)};
    ir_continue(&c->b, loop, next, 2);
    c->b.at = after;
    ir_value *r = loop->results;
    if (x->extra == 1) /* x/0 is 0: lcm(0, 0) = 0 */
        r = py_emit_binary(c, IR_MUL, py_emit_binary(c, IR_DIV_U, init[0], r), init[1]);
    *out = py_val_scalar(c, s, r);
    return true;
}
