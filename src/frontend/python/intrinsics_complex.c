/* cmath, and NumPy's functions of complex scalars. Formulas by real functions of the parts (Abramowitz and
 * Stegun 4.3, 4.5); the square root as in Kahan, "Branch cuts for complex elementary functions" (1987),
 * without his scaling. */
#include "frontend/python/intrinsics.h"

typedef struct pair {
    ir_value *re, *im;
} pair;

static ir_value *mul(py_ctx *c, ir_value *a, ir_value *b) {
    return py_emit_binary(c, IR_FMUL, a, b);
}
static ir_value *fn(py_ctx *c, ir_op op, ir_value *a) { return py_emit_unary(c, op, a); }

static pair complex_exp(py_ctx *c, pair z) {
    ir_value *r = fn(c, IR_EXP, z.re);
    return (pair){mul(c, r, fn(c, IR_COS, z.im)), mul(c, r, fn(c, IR_SIN, z.im))};
}

static pair complex_log(py_ctx *c, pair z) {
    return (pair){fn(c, IR_LOG, py_emit_hypot(c, z.re, z.im)), py_emit_atan2(c, z.im, z.re)};
}

static pair complex_sqrt(py_ctx *c, ir_type t, pair z) {
    ir_value *half = py_emit_float(c, t, 0.5), *zero = py_emit_float(c, t, 0);
    ir_value *sum = py_emit_binary(c, IR_FADD, fn(c, IR_FABS, z.re), py_emit_hypot(c, z.re, z.im));
    ir_value *big = fn(c, IR_FSQRT, mul(c, sum, half));
    ir_value *small = py_emit_binary(c, IR_FDIV, mul(c, z.im, half), big);
    ir_value *none = py_emit_binary(c, IR_FEQ, big, zero);
    ir_value *right = py_emit_binary(c, IR_FLE, zero, z.re);
    ir_value *re = py_emit_select(c, right, big, fn(c, IR_FABS, small));
    ir_value *im = py_emit_select(c, right, small, py_emit_binary(c, IR_FCOPYSIGN, big, z.im));
    return (pair){py_emit_select(c, none, zero, re), py_emit_select(c, none, z.im, im)};
}

static pair complex_sin(py_ctx *c, pair z) {
    return (pair){mul(c, fn(c, IR_SIN, z.re), fn(c, IR_COSH, z.im)),
                  mul(c, fn(c, IR_COS, z.re), fn(c, IR_SINH, z.im))};
}

static pair complex_cos(py_ctx *c, pair z) {
    return (pair){mul(c, fn(c, IR_COS, z.re), fn(c, IR_COSH, z.im)),
                  fn(c, IR_FNEG, mul(c, fn(c, IR_SIN, z.re), fn(c, IR_SINH, z.im)))};
}

static pair turn(py_ctx *c, pair z) { return (pair){fn(c, IR_FNEG, z.im), z.re}; }      /* i z */
static pair turn_back(py_ctx *c, pair z) { return (pair){z.im, fn(c, IR_FNEG, z.re)}; } /* -i z */

static pair quotient(py_ctx *c, py_scalar s, pair a, pair b, const py_node *at) {
    py_val x = py_val_complex(c, s, a.re, a.im), y = py_val_complex(c, s, b.re, b.im), r;
    py_binary(c, at, PY_DIV, &x, &y, &r);
    return (pair){py_slot(&r, 0), py_slot(&r, 1)};
}

static pair plus(py_ctx *c, pair a, pair b) {
    return (pair){py_emit_binary(c, IR_FADD, a.re, b.re), py_emit_binary(c, IR_FADD, a.im, b.im)};
}
static pair shift(py_ctx *c, ir_type t, pair z, double by) {
    return (pair){py_emit_binary(c, IR_FADD, z.re, py_emit_float(c, t, by)), z.im};
}
static pair product(py_ctx *c, pair a, pair b) {
    return (pair){py_emit_binary(c, IR_FSUB, mul(c, a.re, b.re), mul(c, a.im, b.im)),
                  py_emit_binary(c, IR_FADD, mul(c, a.re, b.im), mul(c, a.im, b.re))};
}

/* log(z + sqrt(z^2 + 1)), of the half plane where nothing cancels; odd */
static pair complex_asinh(py_ctx *c, py_scalar s, pair z) {
    ir_type t = py_scalar_ir(s);
    ir_value *one = py_emit_float(c, t, 1);
    ir_value *left = py_emit_binary(c, IR_FLT, z.re, py_emit_float(c, t, 0));
    ir_value *sign = py_emit_select(c, left, py_emit_float(c, t, -1), one);
    pair w = {mul(c, z.re, sign), mul(c, z.im, sign)};
    pair root = complex_sqrt(c, t, shift(c, t, product(c, w, w), 1));
    pair r = complex_log(c, plus(c, w, root));
    return (pair){mul(c, r.re, sign), mul(c, r.im, sign)};
}

static pair complex_acosh(py_ctx *c, py_scalar s, pair z) { /* log(z + sqrt(z+1) sqrt(z-1)) */
    ir_type t = py_scalar_ir(s);
    pair root =
        product(c, complex_sqrt(c, t, shift(c, t, z, 1)), complex_sqrt(c, t, shift(c, t, z, -1)));
    return complex_log(c, plus(c, z, root));
}

static pair complex_atanh(py_ctx *c, py_scalar s, pair z) { /* (log(1+z) - log(1-z)) / 2 */
    ir_type t = py_scalar_ir(s);
    pair minus = {fn(c, IR_FNEG, z.re), fn(c, IR_FNEG, z.im)};
    pair a = complex_log(c, shift(c, t, z, 1)), b = complex_log(c, shift(c, t, minus, 1));
    ir_value *half = py_emit_float(c, t, 0.5);
    return (pair){mul(c, half, py_emit_binary(c, IR_FSUB, a.re, b.re)),
                  mul(c, half, py_emit_binary(c, IR_FSUB, a.im, b.im))};
}

/* op: of the real function with the same name */
bool py_complex_function(py_ctx *c, py_call *x, ir_op op, py_val *out) {
    py_val v = x->args[0];
    py_scalar s = py_scalar_of(&v);
    pair z = {py_slot(&v, 0), py_slot(&v, 1)}, r;
    switch ((int)op) {
    case IR_EXP: r = complex_exp(c, z); break;
    case IR_LOG: r = complex_log(c, z); break;
    case IR_FSQRT: r = complex_sqrt(c, py_scalar_ir(s), z); break;
    case IR_SIN: r = complex_sin(c, z); break;
    case IR_COS: r = complex_cos(c, z); break;
    case IR_TAN: r = quotient(c, s, complex_sin(c, z), complex_cos(c, z), x->node); break;
    case IR_SINH: r = turn_back(c, complex_sin(c, turn(c, z))); break;
    case IR_COSH: r = complex_cos(c, turn(c, z)); break;
    case IR_TANH: {
        pair w = turn(c, z);
        r = turn_back(c, quotient(c, s, complex_sin(c, w), complex_cos(c, w), x->node));
        break;
    }
    case IR_LOG10: {
        ir_value *k = py_emit_float(c, py_scalar_ir(s), 0.43429448190325182765);
        r = complex_log(c, z);
        r = (pair){mul(c, r.re, k), mul(c, r.im, k)};
        break;
    }
    case IR_ASINH: r = complex_asinh(c, s, z); break;
    case IR_ASIN: r = turn_back(c, complex_asinh(c, s, turn(c, z))); break;
    case IR_ATANH: r = complex_atanh(c, s, z); break;
    case IR_ATAN: r = turn_back(c, complex_atanh(c, s, turn(c, z))); break;
    case IR_ACOSH: r = complex_acosh(c, s, z); break;
    case IR_ACOS: { /* pi/2 - asin z */
        r = turn_back(c, complex_asinh(c, s, turn(c, z)));
        ir_value *quarter = py_emit_float(c, py_scalar_ir(s), 1.57079632679489661923);
        r = (pair){py_emit_binary(c, IR_FSUB, quarter, r.re), fn(c, IR_FNEG, r.im)};
        break;
    }
    default:
        return py_fail(c, x->node, "%s of a complex number is not in simt's kernels yet", x->name);
    }
    *out = py_val_complex(c, s, r.re, r.im);
    return true;
}

static bool complex_argument(py_ctx *c, py_call *x, py_val *v) {
    py_scalar s = py_scalar_of(&x->args[0]);
    if (s == PY_S_NONE)
        return py_fail(c, x->node, "%s takes a number, not %s", x->name,
                       py_type_text(c, x->args[0].type));
    py_scalar to = py_scalar_is_complex(s) ? s : s == PY_S_F32 ? PY_S_C64 : PY_S_C128;
    return py_to_scalar(c, x->node, &x->args[0], to, v);
}

bool cmath_function(py_ctx *c, py_call *x, py_val *out) { /* extra: the real function's op */
    if (!py_check_arguments(c, x, 1, 1, "") || !complex_argument(c, x, &x->args[0])) return false;
    return py_complex_function(c, x, (ir_op)x->extra, out);
}

bool cmath_phase(py_ctx *c, py_call *x, py_val *out) { /* extra 1: polar, (abs, phase) */
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "") || !complex_argument(c, x, &v)) return false;
    py_scalar part = py_scalar_part(v.type->scalar);
    py_val *items = PY_NEW(c, py_val, 2);
    items[0] = py_val_scalar(c, part, py_emit_hypot(c, py_slot(&v, 0), py_slot(&v, 1)));
    items[1] = py_val_scalar(c, part, py_emit_atan2(c, py_slot(&v, 1), py_slot(&v, 0)));
    *out = x->extra == 1 ? py_val_tuple(c, items, 2) : items[1];
    return true;
}

bool cmath_rect(py_ctx *c, py_call *x, py_val *out) {
    py_val r, phi;
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    bool narrow = py_scalar_of(&x->args[0]) == PY_S_F32 && py_scalar_of(&x->args[1]) == PY_S_F32;
    py_scalar part = narrow ? PY_S_F32 : PY_S_F64;
    if (!py_to_scalar(c, x->node, &x->args[0], part, &r) ||
        !py_to_scalar(c, x->node, &x->args[1], part, &phi))
        return false;
    *out = py_val_complex(c, narrow ? PY_S_C64 : PY_S_C128,
                          mul(c, py_slot(&r, 0), fn(c, IR_COS, py_slot(&phi, 0))),
                          mul(c, py_slot(&r, 0), fn(c, IR_SIN, py_slot(&phi, 0))));
    return true;
}

bool cmath_test(py_ctx *c, py_call *x, py_val *out) {
    py_val v, part, a, b;
    if (!py_check_arguments(c, x, 1, 1, "") || !complex_argument(c, x, &v)) return false;
    py_scalar s = py_scalar_part(v.type->scalar);
    py_call real = *x;
    real.nargs = 1;
    real.args = &part;
    part = py_val_scalar(c, s, py_slot(&v, 0));
    if (!math_test(c, &real, &a)) return false;
    part = py_val_scalar(c, s, py_slot(&v, 1));
    if (!math_test(c, &real, &b)) return false;
    ir_op op = x->extra == PY_TEST_FINITE ? IR_AND : IR_OR;
    *out = py_val_scalar(c, PY_S_BOOL, py_emit_binary(c, op, py_slot(&a, 0), py_slot(&b, 0)));
    return true;
}

bool complex_conjugate(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    *out = x->args[0];
    py_scalar s = py_scalar_of(out);
    if (s == PY_S_NONE) return py_fail(c, x->node, "%s takes a number", x->name);
    if (py_scalar_is_complex(s))
        *out = py_val_complex(c, s, py_slot(out, 0), fn(c, IR_FNEG, py_slot(out, 1)));
    return true;
}

bool complex_part(py_ctx *c, py_call *x, py_val *out) { /* extra: 0 real, 1 imaginary */
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    py_scalar s = py_scalar_of(&x->args[0]);
    if (s == PY_S_NONE) return py_fail(c, x->node, "%s takes a number", x->name);
    if (py_scalar_is_complex(s))
        *out = py_val_scalar(c, py_scalar_part(s), py_slot(&x->args[0], (int)x->extra));
    else if (x->extra == 0)
        *out = x->args[0];
    else
        *out = py_val_scalar(c, s, py_emit_zero(c, py_scalar_ir(s)));
    return true;
}
