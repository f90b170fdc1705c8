/* cmath, and NumPy's functions of complex scalars. Formulas by real functions of the parts (Abramowitz and
 * Stegun 4.3, 4.5); the square root and the inverse functions as in Kahan, "Branch cuts for complex
 * elementary functions" (1987): the sign of a zero part says which side of a cut is meant. Where a part is
 * infinite, NaN or so large that a step would overflow, the results are those of C's annex G, as in cmath. */
#include "frontend/python/intrinsics.h"

typedef struct pair {
    ir_value *re, *im;
} pair;

static ir_value *mul(py_ctx *c, ir_value *a, ir_value *b) {
    return py_emit_binary(c, IR_FMUL, a, b);
}
static ir_value *add(py_ctx *c, ir_value *a, ir_value *b) {
    return py_emit_binary(c, IR_FADD, a, b);
}
static ir_value *sub(py_ctx *c, ir_value *a, ir_value *b) {
    return py_emit_binary(c, IR_FSUB, a, b);
}
static ir_value *over(py_ctx *c, ir_value *a, ir_value *b) {
    return py_emit_binary(c, IR_FDIV, a, b);
}
static ir_value *fn(py_ctx *c, ir_op op, ir_value *a) { return py_emit_unary(c, op, a); }

static ir_value *both(py_ctx *c, ir_value *a, ir_value *b) {
    return py_emit_binary(c, IR_AND, a, b);
}
static ir_value *is_finite(py_ctx *c, ir_type t, ir_value *a) {
    return py_emit_binary(c, IR_FLT, fn(c, IR_FABS, a), py_emit_float(c, t, __builtin_inf()));
}
static ir_value *not_finite(py_ctx *c, ir_type t, ir_value *a) {
    return py_emit_unary(c, IR_NOT, is_finite(c, t, a));
}
static ir_value *is_inf(py_ctx *c, ir_type t, ir_value *a) {
    return py_emit_binary(c, IR_FEQ, fn(c, IR_FABS, a), py_emit_float(c, t, __builtin_inf()));
}
static ir_value *is_nan(py_ctx *c, ir_value *a) { return py_emit_binary(c, IR_FNE, a, a); }
static ir_value *is_zero(py_ctx *c, ir_type t, ir_value *a) {
    return py_emit_binary(c, IR_FEQ, a, py_emit_float(c, t, 0));
}
/* `to` with the sign of `of` */
static ir_value *signed_as(py_ctx *c, ir_type t, double to, ir_value *of) {
    return py_emit_binary(c, IR_FCOPYSIGN, py_emit_float(c, t, to), of);
}
/* a value for float64, another one for float32 */
static ir_value *bound(py_ctx *c, ir_type t, double f64, double f32) {
    return py_emit_float(c, t, t == IR_F64 ? f64 : f32);
}
static ir_value *larger(py_ctx *c, pair z) { /* of the magnitudes of the parts */
    return py_emit_binary(c, IR_FMAX_NUM, fn(c, IR_FABS, z.re), fn(c, IR_FABS, z.im));
}

static pair times(py_ctx *c, pair z, ir_value *k) {
    return (pair){mul(c, z.re, k), mul(c, z.im, k)};
}
static pair turn(py_ctx *c, pair z) { return (pair){fn(c, IR_FNEG, z.im), z.re}; }      /* i z */
static pair turn_back(py_ctx *c, pair z) { return (pair){z.im, fn(c, IR_FNEG, z.re)}; } /* -i z */

/* op(x), an exponential, as a product of two factors: where it would overflow, of its square roots. */
static void factors(py_ctx *c, ir_type t, ir_op op, ir_value *x, ir_value *limit, ir_value **out) {
    ir_value *large = py_emit_binary(c, IR_FLT, limit, x), *one = py_emit_float(c, t, 1);
    ir_value *half = mul(c, x, py_emit_float(c, t, 0.5));
    out[0] = fn(c, op, py_emit_select(c, large, half, x));
    out[1] = py_emit_select(c, large, out[0], one);
}

/* op(x) (cos y + i sin y), op an exponential; limit: beyond it, it may overflow. A real number stays one,
 * also an infinite one. */
static pair turned(py_ctx *c, ir_type t, ir_op op, ir_value *x, ir_value *limit, ir_value *y) {
    ir_value *inf = py_emit_float(c, t, __builtin_inf()), *zero = py_emit_float(c, t, 0), *size[2];
    ir_value *nowhere = both(c, is_inf(c, t, x), not_finite(c, t, y)); /* no direction */
    ir_value *vanishes = both(c, nowhere, py_emit_binary(c, IR_FLT, x, zero));
    factors(c, t, op, x, limit, size);
    ir_value *re = mul(c, mul(c, size[0], fn(c, IR_COS, y)), size[1]);
    ir_value *im = mul(c, mul(c, size[0], fn(c, IR_SIN, y)), size[1]);
    re = py_emit_select(c, nowhere, inf, re);
    im = py_emit_select(c, is_zero(c, t, y), y, im);
    return (pair){py_emit_select(c, vanishes, zero, re), py_emit_select(c, vanishes, zero, im)};
}

static pair complex_exp(py_ctx *c, ir_type t, pair z) {
    return turned(c, t, IR_EXP, z.re, bound(c, t, 700, 85), z.im);
}

static pair complex_exp2(py_ctx *c, ir_type t, pair z) {
    ir_value *log2 = py_emit_float(c, t, 0.69314718055994530942);
    return turned(c, t, IR_EXP2, z.re, bound(c, t, 1000, 120), mul(c, z.im, log2));
}

static pair complex_expm1(py_ctx *c, ir_type t, pair z) {
    ir_value *half = fn(c, IR_SIN, mul(c, z.im, py_emit_float(c, t, 0.5)));
    ir_value *turns = mul(c, py_emit_float(c, t, 2), mul(c, half, half)); /* 1 - cos y */
    ir_value *re = sub(c, mul(c, fn(c, IR_EXPM1, z.re), fn(c, IR_COS, z.im)), turns);
    pair exp = complex_exp(c, t, z);
    ir_value *large = py_emit_binary(c, IR_FLT, py_emit_float(c, t, 40), z.re);
    re = py_emit_select(c, large, exp.re, re);
    ir_value *least = py_emit_binary(c, IR_FEQ, z.re, py_emit_float(c, t, -__builtin_inf()));
    return (pair){py_emit_select(c, least, py_emit_float(c, t, -1), re), exp.im};
}

/* log |z|, without overflow, and without the loss of small numbers. */
static ir_value *log_of_size(py_ctx *c, ir_type t, pair z) {
    ir_value *one = py_emit_float(c, t, 1), *size = larger(c, z);
    ir_value *large = py_emit_binary(c, IR_FLT, bound(c, t, 0x1p1021, 0x1p125), size);
    ir_value *small = py_emit_binary(c, IR_FLT, size, bound(c, t, 0x1p-1000, 0x1p-100));
    ir_value *scale = py_emit_select(c, large, py_emit_float(c, t, 0x1p-4),
                                     py_emit_select(c, small, py_emit_float(c, t, 0x1p60), one));
    const double log2 = 0.69314718055994530942;
    ir_value *back = py_emit_select(
        c, large, py_emit_float(c, t, 4 * log2),
        py_emit_select(c, small, py_emit_float(c, t, -60 * log2), py_emit_float(c, t, 0)));
    size = py_emit_hypot(c, mul(c, z.re, scale), mul(c, z.im, scale));
    return add(c, fn(c, IR_LOG, size), back);
}

/* Where |z| is near 1, by log1p of rest = |z|^2 - 1. */
static pair log_near(py_ctx *c, ir_type t, pair z, ir_value *rest) {
    ir_value *size = py_emit_hypot(c, z.re, z.im);
    ir_value *near =
        py_emit_binary(c, IR_AND, py_emit_binary(c, IR_FLT, py_emit_float(c, t, 0.7), size),
                       py_emit_binary(c, IR_FLT, size, py_emit_float(c, t, 1.5)));
    ir_value *small = mul(c, py_emit_float(c, t, 0.5), fn(c, IR_LOG1P, rest));
    return (pair){py_emit_select(c, near, small, log_of_size(c, t, z)),
                  py_emit_atan2(c, z.im, z.re)};
}

static pair complex_log(py_ctx *c, ir_type t, pair z) {
    ir_value *a = fn(c, IR_FABS, z.re), *b = fn(c, IR_FABS, z.im), *one = py_emit_float(c, t, 1);
    ir_value *most = py_emit_binary(c, IR_FMAX_NUM, a, b),
             *least = py_emit_binary(c, IR_FMIN_NUM, a, b);
    ir_value *rest = mul(c, sub(c, most, one), add(c, most, one));
    return log_near(c, t, z, py_emit_ternary(c, IR_FMA, least, least, rest));
}

static pair complex_log1p(py_ctx *c, ir_type t, pair z) {
    ir_value *rest = mul(c, z.re, add(c, z.re, py_emit_float(c, t, 2)));
    rest = py_emit_ternary(c, IR_FMA, z.im, z.im, rest);
    return log_near(c, t, (pair){add(c, z.re, py_emit_float(c, t, 1)), z.im}, rest);
}

static pair complex_sqrt(py_ctx *c, ir_type t, pair z) {
    ir_value *zero = py_emit_float(c, t, 0), *inf = py_emit_float(c, t, __builtin_inf());
    ir_value *a = fn(c, IR_FABS, z.re), *b = fn(c, IR_FABS, z.im), *one = py_emit_float(c, t, 1);
    ir_value *most = larger(c, z);
    ir_value *large = py_emit_binary(c, IR_FLT, bound(c, t, 0x1p1021, 0x1p125), most);
    ir_value *tiny = py_emit_binary(c, IR_FLT, most, bound(c, t, 0x1p-1000, 0x1p-100));
    ir_value *down = py_emit_select(c, large, py_emit_float(c, t, 0x1p-4),
                                    py_emit_select(c, tiny, py_emit_float(c, t, 0x1p60), one));
    ir_value *up = py_emit_select(c, large, py_emit_float(c, t, 4),
                                  py_emit_select(c, tiny, py_emit_float(c, t, 0x1p-30), one));
    a = mul(c, a, down);
    ir_value *sum = add(c, a, py_emit_hypot(c, a, mul(c, b, down)));
    ir_value *big = mul(c, fn(c, IR_FSQRT, mul(c, sum, py_emit_float(c, t, 0.5))), up);
    ir_value *small = over(c, z.im, add(c, big, big));
    ir_value *none = py_emit_binary(c, IR_FEQ, big, zero), *up_or_down = is_inf(c, t, z.im);
    ir_value *right = py_emit_binary(c, IR_FLE, zero, z.re);
    ir_value *re = py_emit_select(c, right, big, fn(c, IR_FABS, small));
    ir_value *im = py_emit_select(c, right, small, py_emit_binary(c, IR_FCOPYSIGN, big, z.im));
    re = py_emit_select(c, up_or_down, inf, py_emit_select(c, none, zero, re));
    return (pair){re, py_emit_select(c, py_emit_binary(c, IR_OR, none, up_or_down), z.im, im)};
}

/* cosh x and sinh x as products of two factors each. */
static void hyperbolic(py_ctx *c, ir_type t, ir_value *x, ir_value *cosh[2], ir_value *sinh[2]) {
    ir_value *size = fn(c, IR_FABS, x), *one = py_emit_float(c, t, 1), *root[2];
    ir_value *large = py_emit_binary(c, IR_FLT, bound(c, t, 700, 85), size);
    factors(c, t, IR_EXP, size, bound(c, t, 700, 85), root);
    ir_value *half = mul(c, root[1], py_emit_float(c, t, 0.5));
    cosh[0] = py_emit_select(c, large, root[0], fn(c, IR_COSH, x));
    sinh[0] =
        py_emit_select(c, large, py_emit_binary(c, IR_FCOPYSIGN, root[0], x), fn(c, IR_SINH, x));
    cosh[1] = sinh[1] = py_emit_select(c, large, half, one);
}

static pair complex_cosh(py_ctx *c, ir_type t, pair z) {
    ir_value *inf = py_emit_float(c, t, __builtin_inf()), *cosh[2], *sinh[2];
    ir_value *lost = not_finite(c, t, z.im), *sign = signed_as(c, t, 1, z.re);
    hyperbolic(c, t, z.re, cosh, sinh);
    ir_value *re = mul(c, mul(c, cosh[0], fn(c, IR_COS, z.im)), cosh[1]);
    ir_value *im = mul(c, mul(c, sinh[0], fn(c, IR_SIN, z.im)), sinh[1]);
    re = py_emit_select(c, both(c, lost, is_inf(c, t, z.re)), inf, re);
    im = py_emit_select(c, both(c, lost, is_zero(c, t, z.re)), z.re, im);
    return (pair){re, py_emit_select(c, is_zero(c, t, z.im), mul(c, z.im, sign), im)};
}

static pair complex_sinh(py_ctx *c, ir_type t, pair z) {
    ir_value *cosh[2], *sinh[2], *lost = not_finite(c, t, z.im);
    hyperbolic(c, t, z.re, cosh, sinh);
    ir_value *re = mul(c, mul(c, sinh[0], fn(c, IR_COS, z.im)), sinh[1]);
    ir_value *im = mul(c, mul(c, cosh[0], fn(c, IR_SIN, z.im)), cosh[1]);
    ir_value *end = py_emit_binary(c, IR_OR, is_inf(c, t, z.re), is_zero(c, t, z.re));
    re = py_emit_select(c, both(c, lost, end), z.re, re);
    return (pair){re, py_emit_select(c, is_zero(c, t, z.im), z.im, im)};
}

/* with T = tanh x, t = tan y: (T (1 + t^2) + i t / cosh^2 x) / (1 + (T t)^2), which cannot overflow */
static pair complex_tanh(py_ctx *c, ir_type type, pair z) {
    ir_value *one = py_emit_float(c, type, 1);
    ir_value *h = fn(c, IR_TANH, z.re), *t = fn(c, IR_TAN, z.im);
    ir_value *sech = over(c, one, fn(c, IR_COSH, z.re)), *product = mul(c, h, t);
    ir_value *below = add(c, one, mul(c, product, product));
    ir_value *re = over(c, mul(c, h, add(c, one, mul(c, t, t))), below);
    ir_value *im = mul(c, mul(c, over(c, t, below), sech), sech);
    ir_value *lost = not_finite(c, type, z.im), *end = both(c, lost, is_inf(c, type, z.re));
    re = py_emit_select(c, end, h, re);
    re = py_emit_select(c, both(c, lost, is_zero(c, type, z.re)), z.re, re);
    im = py_emit_select(c, end, signed_as(c, type, 0, z.im), im);
    return (pair){re, py_emit_select(c, is_zero(c, type, z.im), z.im, im)};
}

/* The square roots of 1 - z and 1 + z, from which Kahan makes asin and acos. */
static void roots(py_ctx *c, ir_type t, pair z, pair *minus, pair *plus) {
    ir_value *one = py_emit_float(c, t, 1);
    *minus = complex_sqrt(c, t, (pair){sub(c, one, z.re), fn(c, IR_FNEG, z.im)});
    *plus = complex_sqrt(c, t, (pair){add(c, one, z.re), z.im});
}
/* the parts of conj(a) b */
static ir_value *dot(py_ctx *c, pair a, pair b) {
    return add(c, mul(c, a.re, b.re), mul(c, a.im, b.im));
}
static ir_value *cross(py_ctx *c, pair a, pair b) {
    return sub(c, mul(c, a.re, b.im), mul(c, a.im, b.re));
}

/* Where |z| is so large (or infinite) that the inverse functions are a logarithm and an angle. */
static ir_value *is_far(py_ctx *c, ir_type t, pair z) {
    return py_emit_binary(c, IR_FLT, bound(c, t, 0x1p1020, 0x1p124), larger(c, z));
}
static ir_value *far_log(py_ctx *c, ir_type t, pair z) { /* log(2 |z|) */
    return add(c, log_of_size(c, t, z), py_emit_float(c, t, 0.69314718055994530942));
}

static pair complex_asin(py_ctx *c, ir_type t, pair z) {
    pair m, p;
    roots(c, t, z, &m, &p);
    ir_value *root = sub(c, mul(c, m.re, p.re), mul(c, m.im, p.im)), *far = is_far(c, t, z);
    ir_value *away = py_emit_binary(c, IR_FCOPYSIGN, far_log(c, t, z), z.im);
    ir_value *below = py_emit_select(c, far, fn(c, IR_FABS, z.im), root);
    ir_value *re = py_emit_atan2(c, z.re, below);
    re = py_emit_select(c, both(c, is_zero(c, t, z.re), is_nan(c, z.im)), z.re, re);
    return (pair){re, py_emit_select(c, far, away, fn(c, IR_ASINH, cross(c, m, p)))};
}

static pair complex_acos(py_ctx *c, ir_type t, pair z) {
    pair m, p;
    const double right = 1.57079632679489661923;
    roots(c, t, z, &m, &p);
    ir_value *far = is_far(c, t, z), *size = far_log(c, t, z);
    ir_value *near = mul(c, py_emit_float(c, t, 2), py_emit_atan2(c, m.re, p.re));
    ir_value *angle = py_emit_select(c, far, py_emit_atan2(c, fn(c, IR_FABS, z.im), z.re), near);
    ir_value *away = py_emit_binary(c, IR_FCOPYSIGN, size, fn(c, IR_FNEG, z.im));
    angle = py_emit_select(c, both(c, is_zero(c, t, z.re), is_nan(c, z.im)),
                           py_emit_float(c, t, right), angle);
    return (pair){angle, py_emit_select(c, far, away, fn(c, IR_ASINH, cross(c, p, m)))};
}

static pair complex_acosh(py_ctx *c, ir_type t, pair z) {
    ir_value *one = py_emit_float(c, t, 1), *far = is_far(c, t, z);
    pair m = complex_sqrt(c, t, (pair){sub(c, z.re, one), z.im});
    pair p = complex_sqrt(c, t, (pair){add(c, z.re, one), z.im});
    ir_value *angle = mul(c, py_emit_float(c, t, 2), py_emit_atan2(c, m.im, p.re));
    angle = py_emit_select(c, far, py_emit_atan2(c, z.im, z.re), angle);
    angle = py_emit_select(c, both(c, is_zero(c, t, z.re), is_nan(c, z.im)),
                           py_emit_float(c, t, 1.57079632679489661923), angle);
    return (pair){py_emit_select(c, far, far_log(c, t, z), fn(c, IR_ASINH, dot(c, m, p))), angle};
}

/* Where |z| is large: re of 1 / z, and a right angle. */
static pair far_atanh(py_ctx *c, ir_type t, pair z) {
    ir_value *half = py_emit_float(c, t, 0.5);
    ir_value *size = py_emit_hypot(c, mul(c, z.re, half), mul(c, z.im, half));
    ir_value *re = over(c, over(c, mul(c, z.re, py_emit_float(c, t, 0.25)), size), size);
    re = py_emit_select(c, is_inf(c, t, size), signed_as(c, t, 0, z.re), re);
    ir_value *im = signed_as(c, t, 1.57079632679489661923, z.im);
    im = py_emit_select(c, is_nan(c, size), size, im);
    return (pair){re, py_emit_select(c, is_nan(c, z.im), z.im, im)};
}

/* log1p(4 x / ((1 - x)^2 + y^2)) / 4, of the right half plane; odd */
static pair complex_atanh(py_ctx *c, ir_type t, pair z) {
    ir_value *one = py_emit_float(c, t, 1), *x = fn(c, IR_FABS, z.re);
    ir_value *sign = signed_as(c, t, 1, z.re), *y = mul(c, z.im, sign), *size = fn(c, IR_FABS, y);
    ir_value *away = sub(c, one, x), *square = mul(c, y, y);
    ir_value *apart = add(c, mul(c, away, away), square);
    ir_value *re = fn(c, IR_LOG1P, over(c, mul(c, x, py_emit_float(c, t, 4)), apart));
    /* at 1 + iy with a tiny y, whose square is none: log(4 / y^2) */
    ir_value *tiny = both(c, is_zero(c, t, away),
                          py_emit_binary(c, IR_FLT, size, bound(c, t, 0x1p-500, 0x1p-60)));
    ir_value *log2 = py_emit_float(c, t, 0.69314718055994530942);
    ir_value *steep = mul(c, py_emit_float(c, t, 2), sub(c, log2, fn(c, IR_LOG, size)));
    re = py_emit_select(c, tiny, steep, re);
    ir_value *im = py_emit_atan2(c, mul(c, y, py_emit_float(c, t, -2)),
                                 sub(c, mul(c, away, add(c, one, x)), square));
    pair near = times(
        c, (pair){mul(c, re, py_emit_float(c, t, 0.25)), mul(c, im, py_emit_float(c, t, -0.5))},
        sign);
    near.re = py_emit_select(c, both(c, is_zero(c, t, z.re), is_nan(c, z.im)), z.re, near.re);
    pair far = far_atanh(c, t, z);
    ir_value *is = py_emit_binary(c, IR_FLT, bound(c, t, 0x1p500, 0x1p60), larger(c, z));
    return (pair){py_emit_select(c, is, far.re, near.re), py_emit_select(c, is, far.im, near.im)};
}

/* op: of the real function with the same name */
bool py_complex_function(py_ctx *c, py_call *x, ir_op op, py_val *out) {
    py_val v = x->args[0];
    py_scalar s = py_scalar_of(&v);
    ir_type t = py_scalar_ir(s);
    pair z = {py_slot(&v, 0), py_slot(&v, 1)}, r;
    switch ((int)op) {
    case IR_EXP: r = complex_exp(c, t, z); break;
    case IR_EXP2: r = complex_exp2(c, t, z); break;
    case IR_EXPM1: r = complex_expm1(c, t, z); break;
    case IR_LOG: r = complex_log(c, t, z); break;
    case IR_LOG2:
        r = times(c, complex_log(c, t, z), py_emit_float(c, t, 1.44269504088896340736));
        break;
    case IR_LOG10:
        r = times(c, complex_log(c, t, z), py_emit_float(c, t, 0.43429448190325182765));
        break;
    case IR_LOG1P: r = complex_log1p(c, t, z); break;
    case IR_FSQRT: r = complex_sqrt(c, t, z); break;
    case IR_SIN: r = turn_back(c, complex_sinh(c, t, turn(c, z))); break;
    case IR_COS: r = complex_cosh(c, t, turn(c, z)); break;
    case IR_TAN: r = turn_back(c, complex_tanh(c, t, turn(c, z))); break;
    case IR_SINH: r = complex_sinh(c, t, z); break;
    case IR_COSH: r = complex_cosh(c, t, z); break;
    case IR_TANH: r = complex_tanh(c, t, z); break;
    case IR_ASIN: r = complex_asin(c, t, z); break;
    case IR_ASINH: r = turn_back(c, complex_asin(c, t, turn(c, z))); break;
    case IR_ACOS: r = complex_acos(c, t, z); break;
    case IR_ACOSH: r = complex_acosh(c, t, z); break;
    case IR_ATANH: r = complex_atanh(c, t, z); break;
    case IR_ATAN: r = turn_back(c, complex_atanh(c, t, turn(c, z))); break;
    case IR_FRINT: r = (pair){fn(c, IR_FRINT, z.re), fn(c, IR_FRINT, z.im)}; break;
    default: return py_fail(c, x->node, "%s takes real numbers", x->name);
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
    ir_type t = py_scalar_ir(part);
    ir_value *sin = fn(c, IR_SIN, py_slot(&phi, 0)), *size = py_slot(&r, 0);
    ir_value *flat = mul(c, py_slot(&phi, 0), signed_as(c, t, 1, size));
    ir_value *im = py_emit_select(c, is_zero(c, t, py_slot(&phi, 0)), flat, mul(c, size, sin));
    *out = py_val_complex(c, narrow ? PY_S_C64 : PY_S_C128,
                          mul(c, size, fn(c, IR_COS, py_slot(&phi, 0))), im);
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
