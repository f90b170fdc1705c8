// Device math, F64: exp2 exp10 log2 log10, sinh cosh, cbrt rsqrt hypot (form: math_f32.h).
#pragma once
#include "math_f64.h"

// ---- exp2, exp10 ----

DEV_FN double dev_exp2_f64(double x) {
    double c = x < -1076.0 ? -1076.0 : x;
    c = c > 1025.0 ? 1025.0 : c;
    double z = c + DEV_ROUND_F64;
    double r = c - (z - DEV_ROUND_F64); // exact
    double w = r * 0x1.62e42fefa39efp-1;
    double wl = dev_fma_f64(r, 0x1.abc9e3b39803fp-56, dev_fma_f64(r, 0x1.62e42fefa39efp-1, -w));
    return dev_exp_tail_f64(w, wl, dev_bits_f64(z) - DEV_ROUND_BITS_F64 + 2046);
}

DEV_FN double dev_exp10_f64(double x) {
    double c = x < -325.0 ? -325.0 : x;
    c = c > 309.0 ? 309.0 : c;
    double z = dev_fma_f64(c, 0x1.a934f0979a371p+1, DEV_ROUND_F64);
    double n = z - DEV_ROUND_F64;
    double a = dev_fma_f64(n, -0x1.34413509f79ffp-2, c); // exact
    double b = n * 0x1.9dc1da994fd21p-59;
    double r = a + b;
    double rl = b - (r - a);
    double w = r * 0x1.26bb1bbb55516p+1;
    double wl = dev_fma_f64(
        rl, 0x1.26bb1bbb55516p+1,
        dev_fma_f64(r, -0x1.f48ad494ea3e9p-53, dev_fma_f64(r, 0x1.26bb1bbb55516p+1, -w)));
    return dev_exp_tail_f64(w, wl, dev_bits_f64(z) - DEV_ROUND_BITS_F64 + 2046);
}

// ---- log2, log10 ----

// the logarithm of x: (t + rest) * (scale + scalel) + e * (one + onel), e * one exact
DEV_FN double dev_log_scaled_f64(double x, double scale, double scalel, double one, double onel) {
    double e;
    double t = dev_log_split_f64(x, &e);
    double rest;
    double restl = dev_log_rest_pair_f64(t, &rest);
    double u = t + rest;
    double ul = (rest - (u - t)) + restl;
    double h = u * scale;
    double hl = dev_fma_f64(u, scale, -h) + dev_fma_f64(u, scalel, ul * scale);
    double hi = e * one;
    double s = hi + h;
    double c = h - (s - hi);
    double r = s + (c + dev_fma_f64(e, onel, hl));
    r = x < DEV_INF_F64 ? r : x; // also NaN
    r = x < 0.0 ? DEV_NAN_F64 : r;
    return x == 0.0 ? -DEV_INF_F64 : r;
}

DEV_FN double dev_log2_f64(double x) {
    return dev_log_scaled_f64(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1.0, 0.0);
}

DEV_FN double dev_log10_f64(double x) {
    return dev_log_scaled_f64(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f78p-2,
                              0x1.fef311f12b358p-46);
}

// ---- sinh, cosh ----

// h * (s + c) = exp(a) / 8, and *q + *ql = exp(-a) / 8, for 0 <= a <= the clamp or NaN
DEV_FN double dev_exp_eighth_f64(double a, double *c, double *q, double *ql) {
    double rl, rest;
    uint64_t k;
    double r = dev_exp_reduce_f64(a, 0.0, &rl, &k);
    double s = dev_exp_sum_f64(r, rl, &rest);
    double h = dev_f64_bits((k - 1026) << 52);
    double hs = h * s;
    double hc = h * rest;
    double whole = hs + hc;
    *q = 0.015625 / whole;
    *ql = (dev_fma_f64(-*q, hs, 0.015625) - *q * hc) * (*q * 64.0);
    *c = hc;
    return hs;
}

DEV_FN double dev_sinh_f64(double x) {
    double a = dev_abs_f64(x);
    double s = a * a;
    double p = 0x1.b4c754ef9ab87p-41;
    p = dev_fma_f64(p, s, 0x1.611a563133736p-33);
    p = dev_fma_f64(p, s, 0x1.ae64671ae448ap-26);
    p = dev_fma_f64(p, s, 0x1.71de3a465b656p-19);
    p = dev_fma_f64(p, s, 0x1.a01a01a028996p-13);
    p = dev_fma_f64(p, s, 0x1.11111111110a6p-7);
    p = dev_fma_f64(p, s, 0x1.5555555555556p-3);
    double small = dev_fma_f64(a * s, p, a);
    double c, q, ql;
    double e = dev_exp_eighth_f64(a > 711.0 ? 711.0 : a, &c, &q, &ql);
    double big = ((e - q) + (((e - (e - q)) - q) + (c - ql))) * 4.0;
    return dev_copysign_f64(a < 1.0 ? small : big, x);
}

DEV_FN double dev_cosh_f64(double x) {
    double a = dev_abs_f64(x);
    double c, q, ql;
    double e = dev_exp_eighth_f64(a > 711.0 ? 711.0 : a, &c, &q, &ql);
    double s = e + q;
    return (s + ((q - (s - e)) + (c + ql))) * 4.0;
}

// ---- cbrt, rsqrt, hypot ----

// y nearer to a^(-1/3), by a step of third order
DEV_FN double dev_cbrt_step_f64(double a, double y) {
    double e = dev_fma_f64(-(a * y), y * y, 1.0);
    return dev_fma_f64(y * e, dev_fma_f64(e, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), y);
}

DEV_FN double dev_cbrt_f64(double x) {
    double a = dev_abs_f64(x);
    double up = a < 0x1p-960 ? 0x1p54 : 1.0;
    double down = a < 0x1p-960 ? 0x1p-18 : 1.0;
    a *= up;
    // y = a^(-1/3): a guess from the exponent, then steps
    // a third of the high word, by way of the significand of a double
    double high = dev_f64_bits(dev_bits_f64(a) >> 32 | 0x4330000000000000ull) - 0x1p52;
    uint64_t third = dev_bits_f64(dev_fma_f64(high, 0x1.5555555555555p-2, 0x1p52)) << 32;
    double y = dev_f64_bits(0x553ef0ff00000000ull - third);
    y = dev_cbrt_step_f64(a, dev_cbrt_step_f64(a, dev_cbrt_step_f64(a, y)));
    // one step on c^3 = a with the remainder formed exactly
    double y2 = y * y;
    double c = a * y2;
    double c2 = c * c;
    double c2l = dev_fma_f64(c, c, -c2);
    double rest = dev_fma_f64(-c2, c, a) - c2l * c;
    double r = dev_fma_f64(rest * y2, 0x1.5555555555555p-2, c) * down;
    r = a < DEV_INF_F64 ? r : a;
    r = a == 0.0 ? 0.0 : r;
    return dev_copysign_f64(r, x);
}

DEV_FN double dev_rsqrt_f64(double x) {
    double v = x < 0x1p-900 ? x * 0x1p108 : x;
    double s = dev_sqrt_f64(v);
    double y = 1.0 / s;
    // 1 / (s + sl): sl = (v - s^2) / (2 s)
    double e = dev_fma_f64(-s, y, 1.0);
    double sl = dev_fma_f64(-s, s, v) * 0.5 * y;
    double r = dev_fma_f64(y, dev_fma_f64(-sl, y, e), y);
    r = r == r ? r : y; // at 0 and infinity
    return x < 0x1p-900 ? r * 0x1p54 : r;
}

DEV_FN double dev_hypot_f64(double x, double y) {
    double a = dev_abs_f64(x);
    double b = dev_abs_f64(y);
    double m = a > b ? a : b;
    double n = a > b ? b : a;
    n = a == b ? a : n;
    double scale = m > 0x1p511 ? 0x1p-600 : (m < 0x1p-400 ? 0x1p600 : 1.0);
    double back = m > 0x1p511 ? 0x1p600 : (m < 0x1p-400 ? 0x1p-600 : 1.0);
    m *= scale;
    n *= scale;
    double mm = m * m;
    double ml = dev_fma_f64(m, m, -mm);
    double nn = n * n;
    double nl = dev_fma_f64(n, n, -nn);
    double s = mm + nn;
    double sl = (mm - s) + nn + (ml + nl);
    double h = dev_sqrt_f64(s);
    double r = h + (dev_fma_f64(-h, h, s) + sl) * 0.5 / h;
    r = m == 0.0 ? 0.0 : r * back;
    r = a == a ? r : a;
    r = b == b ? r : b;
    r = a == DEV_INF_F64 ? a : r;
    return b == DEV_INF_F64 ? b : r;
}
