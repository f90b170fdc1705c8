// Device math, F64: tan sinpi cospi asin acos atan atan2 (form and sources: math_f32.h).
//
// Each ends in one rounded sum of a large part and a small correction; the errors of reductions,
// square roots and quotients are carried in the correction (fma gives them exactly).
#pragma once
#include "math_f64.h"

// ---- tan ----

// tan(r + lo), or -1 / tan(r + lo) in odd quadrants; |r| <= pi/4 and a bit, lo below an ulp of r
DEV_FN double dev_tan_eval_f64(double r, double lo, uint64_t quadrant) {
    double s = r * r;
    double p = 0x1.48dc4471ff8a5p-17;
    p = dev_fma_f64(p, s, -0x1.975b399b89a5cp-16);
    p = dev_fma_f64(p, s, 0x1.981222a86b1f7p-15);
    p = dev_fma_f64(p, s, -0x1.ae33cfcd9ac0dp-16);
    p = dev_fma_f64(p, s, 0x1.19f6ffe1dc3fap-14);
    p = dev_fma_f64(p, s, 0x1.5e7814432e5bdp-14);
    p = dev_fma_f64(p, s, 0x1.ff2eb4d0af3d9p-13);
    p = dev_fma_f64(p, s, 0x1.34bc174275eb2p-11);
    p = dev_fma_f64(p, s, 0x1.7db18f594b2a7p-10);
    p = dev_fma_f64(p, s, 0x1.d6d2e7a6f8695p-9);
    p = dev_fma_f64(p, s, 0x1.226e3a8196a16p-7);
    p = dev_fma_f64(p, s, 0x1.664f485d2424dp-6);
    p = dev_fma_f64(p, s, 0x1.ba1ba1babf366p-5);
    p = dev_fma_f64(p, s, 0x1.11111111105d2p-3);
    p = dev_fma_f64(p, s, 0x1.555555555555ep-2);
    double sl = dev_fma_f64(r, r, -s);
    double cube = r * s;
    double cubel = dev_fma_f64(r, sl, dev_fma_f64(r, s, -cube));
    double t = dev_fma_f64(cube, p, r);
    double w = dev_fma_f64(cube, p, dev_fma_f64(cubel, p, dev_fma_f64(lo, t * t, lo)));
    double hi = r + w;
    double rest = (r - hi) + w;
    double q = -1.0 / hi;
    double cot = dev_fma_f64(q, dev_fma_f64(q, rest, dev_fma_f64(q, hi, 1.0)), q);
    return (quadrant & 1u) != 0 ? cot : hi;
}

DEV_FN double dev_tan_fast_f64(double x) {
    double lo;
    uint64_t quadrant;
    double r = dev_trig_reduce_f64(x, &lo, &quadrant);
    return dev_abs_f64(x) < 0x1p-60 ? x : dev_tan_eval_f64(r, lo, quadrant); // keeps -0
}

static inline double dev_tan_slow_f64(double x) {
    double lo;
    uint64_t quadrant;
    double r = dev_trig_reduce_slow_f64(x, &lo, &quadrant);
    return r == r ? dev_tan_eval_f64(r, lo, quadrant) : r;
}

DEV_FN double dev_tan_f64(double x) {
    return dev_trig_in_fast_f64(x) ? dev_tan_fast_f64(x) : dev_tan_slow_f64(x);
}

// ---- sinpi, cospi ----

// pi x - n pi/2 = result + *low, with n in the low bits of *quadrant
DEV_FN double dev_trig_pi_reduce_f64(double x, double *low, uint64_t *quadrant) {
    // far from 0 every number is a multiple of 1/2, so that whole turns come off exactly
    double y = dev_abs_f64(x) < 0x1p50 ? x : x - 2.0 * dev_floor_f64(x * 0.5);
    double z = dev_fma_f64(y, 2.0, DEV_ROUND_F64);
    double r = dev_fma_f64(z - DEV_ROUND_F64, -0.5, y); // exact
    double h = r * 0x1.921fb54442d18p+1;
    *low = dev_fma_f64(r, 0x1.1a62633145c07p-53, dev_fma_f64(r, 0x1.921fb54442d18p+1, -h));
    *quadrant = dev_bits_f64(z);
    return h;
}

// sin(pi x) or cos(pi x): shift 0 or 1
DEV_FN double dev_trig_pi_f64(double x, uint64_t shift) {
    double l;
    uint64_t quadrant;
    double h = dev_trig_pi_reduce_f64(x, &l, &quadrant);
    return dev_trig_eval_f64(h, l, quadrant + shift);
}

DEV_FN double dev_sinpi_f64(double x) {
    double r = dev_trig_pi_f64(x, 0);
    return r == 0.0 ? dev_copysign_f64(0.0, x) : r;
}

DEV_FN double dev_cospi_f64(double x) {
    double r = dev_trig_pi_f64(x, 1);
    return r == 0.0 ? 0.0 : r;
}

// ---- asin, acos ----

// asin(s) = s + result for s = |x| <= 1/2, else asin(s) with s = sqrt((1 - |x|) / 2)
DEV_FN double dev_asin_rest_f64(double a, double *s) {
    double z = a < 0.5 ? a * a : (1.0 - a) * 0.5;
    double root = dev_sqrt_f64(z);
    double lost = dev_fma_f64(-root, root, z) * 0.5 / root;
    lost = root == 0.0 ? 0.0 : lost;
    *s = a < 0.5 ? a : root;
    double p = 0x1.0b47246225602p-5;
    p = dev_fma_f64(p, z, -0x1.57fe687f21c66p-6);
    p = dev_fma_f64(p, z, 0x1.639cd065db978p-6);
    p = dev_fma_f64(p, z, 0x1.e5f5620b49668p-9);
    p = dev_fma_f64(p, z, 0x1.613c7a5cd8f34p-7);
    p = dev_fma_f64(p, z, 0x1.75859117df8bap-7);
    p = dev_fma_f64(p, z, 0x1.ca1f8bf304a56p-7);
    p = dev_fma_f64(p, z, 0x1.1c49f0737d2ffp-6);
    p = dev_fma_f64(p, z, 0x1.6e8bdede9d2cbp-6);
    p = dev_fma_f64(p, z, 0x1.f1c71a950490ap-6);
    p = dev_fma_f64(p, z, 0x1.6db6db7212375p-5);
    p = dev_fma_f64(p, z, 0x1.333333332e134p-4);
    p = dev_fma_f64(p, z, 0x1.5555555555577p-3);
    return dev_fma_f64(*s * z, p, a < 0.5 ? 0.0 : lost);
}

DEV_FN double dev_asin_f64(double x) {
    double a = dev_abs_f64(x);
    double s;
    double w = dev_asin_rest_f64(a, &s);
    double twice = s + s;
    double d = 0x1.921fb54442d18p+0 - twice;
    double dl = (0x1.921fb54442d18p+0 - d) - twice;
    double big = d + (dl + (0x1.1a62633145c07p-54 - (w + w)));
    return dev_copysign_f64(a < 0.5 ? s + w : big, x);
}

DEV_FN double dev_acos_f64(double x) {
    double a = dev_abs_f64(x);
    double s;
    double w = dev_asin_rest_f64(a, &s);
    // base - (v + vl): pi/2 - (x + w), or 0 + 2 (s + w), or pi - 2 (s + w)
    double sign = a < 0.5 ? dev_copysign_f64(1.0, x) : dev_copysign_f64(2.0, -x);
    double v = sign * s;
    double vl = sign * w;
    double base = x < 0.0 ? 0x1.921fb54442d18p+1 : 0.0;
    double low = x < 0.0 ? 0x1.1a62633145c07p-53 : 0.0;
    base = a < 0.5 ? 0x1.921fb54442d18p+0 : base;
    low = a < 0.5 ? 0x1.1a62633145c07p-54 : low;
    double d = base - v;
    double dl = (base - d) - v;
    return d + (dl + (low - vl));
}

// ---- atan, atan2 ----

// base + low + atan((num + numl) / (den + denl)), the quotient at most 0.42 in size
DEV_FN double dev_atan_sum_f64(double num, double numl, double den, double denl, double base,
                               double low) {
    double t = num / den;
    double tl = (dev_fma_f64(-t, den, num) + dev_fma_f64(-t, denl, numl)) * (1.0 / den);
    tl = dev_abs_f64(t) < 0x1p-400 ? 0.0 : tl;
    double s = t * t;
    double p = -0x1.255273e9ba9cdp-6;
    p = dev_fma_f64(p, s, 0x1.37cb06bbd09c1p-5);
    p = dev_fma_f64(p, s, -0x1.9cceb1d81328ep-5);
    p = dev_fma_f64(p, s, 0x1.df0e6ea846019p-5);
    p = dev_fma_f64(p, s, -0x1.10eba9e383db3p-4);
    p = dev_fma_f64(p, s, 0x1.3b1117ede1157p-4);
    p = dev_fma_f64(p, s, -0x1.745cf8ccfa377p-4);
    p = dev_fma_f64(p, s, 0x1.c71c70e598318p-4);
    p = dev_fma_f64(p, s, -0x1.24924922ac6d5p-3);
    p = dev_fma_f64(p, s, 0x1.9999999995852p-3);
    p = dev_fma_f64(p, s, -0x1.555555555553dp-2);
    double d = base + t;
    double dl = t - (d - base);
    return d + (dl + dev_fma_f64(t * s, p, tl + low));
}

DEV_FN double dev_atan_f64(double x) {
    double a = dev_abs_f64(x);
    a = a > 0x1p100 ? 0x1p100 : a; // pi/2 to the last bit
    // atan(a) below tan(pi/8), pi/4 + atan((a - 1) / (a + 1)), pi/2 + atan(-1 / a)
    double num = a - 1.0;
    double den = a + 1.0;
    double numl = a - (num + 1.0);
    double denl = a < 1.0 ? a - (den - 1.0) : 1.0 - (den - a);
    double base = 0x1.921fb54442d18p-1;
    double low = 0x1.1a62633145c07p-55;
    num = a < 0x1.a827999fcef32p-2 ? a : num;
    den = a < 0x1.a827999fcef32p-2 ? 1.0 : den;
    base = a < 0x1.a827999fcef32p-2 ? 0.0 : base;
    low = a < 0x1.a827999fcef32p-2 ? 0.0 : low;
    num = a > 0x1.3504f333f9de6p+1 ? -1.0 : num;
    den = a > 0x1.3504f333f9de6p+1 ? a : den;
    base = a > 0x1.3504f333f9de6p+1 ? 0x1.921fb54442d18p+0 : base;
    low = a > 0x1.3504f333f9de6p+1 ? 0x1.1a62633145c07p-54 : low;
    double middle = a < 0x1.a827999fcef32p-2 ? 0.0 : (a > 0x1.3504f333f9de6p+1 ? 0.0 : 1.0);
    numl = middle == 0.0 ? 0.0 : numl;
    denl = middle == 0.0 ? 0.0 : denl;
    double r = dev_copysign_f64(dev_atan_sum_f64(num, numl, den, denl, base, low), x);
    return x == x ? r : x;
}

DEV_FN double dev_atan2_f64(double y, double x) {
    double a = dev_abs_f64(y);
    double b = dev_abs_f64(x);
    // infinities as ones over zeros; 0 / 0 as 0 / 1 (C99 F.9.1.4)
    double top = a > b ? a : b;
    double ai = a == DEV_INF_F64 ? 1.0 : 0.0;
    double bi = b == DEV_INF_F64 ? 1.0 : 0.0;
    a = top == DEV_INF_F64 ? ai : a;
    b = top == DEV_INF_F64 ? bi : b;
    b = top == 0.0 ? 1.0 : b;
    // sums must not overflow, remainders not vanish
    double scale = top > 0x1p1020 ? 0.25 : (top < 0x1p-500 ? 0x1p550 : 1.0);
    a *= scale;
    b *= scale;
    double least = a < b ? a : b;
    double most = a < b ? b : a;
    double num = a - b;
    double den = a + b;
    double numl = a < b ? a - (num + b) : (a - num) - b;
    double denl = least - (den - most);
    double base = 0x1.921fb54442d18p-1;
    double low = 0x1.1a62633145c07p-55;
    double flip = 0x1.2d97c7f3321d2p+1; // pi - base
    double flipl = 0x1.a79394c9e8a0ap-54;
    uint32_t near = a < 0x1.a827999fcef32p-2 * b ? 1 : 0;
    uint32_t far = a > 0x1.3504f333f9de6p+1 * b ? 1 : 0;
    num = near != 0 ? a : num;
    den = near != 0 ? b : den;
    base = near != 0 ? 0.0 : base;
    low = near != 0 ? 0.0 : low;
    flip = near != 0 ? 0x1.921fb54442d18p+1 : flip;
    flipl = near != 0 ? 0x1.1a62633145c07p-53 : flipl;
    num = far != 0 ? -b : num;
    den = far != 0 ? a : den;
    base = far != 0 ? 0x1.921fb54442d18p+0 : base;
    low = far != 0 ? 0x1.1a62633145c07p-54 : low;
    flip = far != 0 ? 0x1.921fb54442d18p+0 : flip;
    flipl = far != 0 ? 0x1.1a62633145c07p-54 : flipl;
    numl = (near | far) != 0 ? 0.0 : numl;
    denl = (near | far) != 0 ? 0.0 : denl;
    double sign = dev_copysign_f64(1.0, x);
    base = sign < 0.0 ? flip : base;
    low = sign < 0.0 ? flipl : low;
    double r = dev_atan_sum_f64(sign * num, sign * numl, den, denl, base, low);
    r = dev_copysign_f64(r, y);
    r = x == x ? r : x;
    return y == y ? r : y;
}
