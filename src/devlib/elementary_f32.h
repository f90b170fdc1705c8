// Device math, F32: exp2 exp10 log2 log10, sinh cosh, cbrt rsqrt hypot (form: math_f32.h).
#pragma once
#include "math_f32.h"

// ---- exp2, exp10 ----

DEV_FN float dev_exp2_f32(float x) {
    float c = x < -151.0f ? -151.0f : x;
    c = c > 129.0f ? 129.0f : c;
    float z = c + DEV_ROUND_F32;
    float r = c - (z - DEV_ROUND_F32); // exact
    float w = r * 0x1.62e43p-1f;
    float wl = dev_fma_f32(r, -0x1.05c61p-29f, dev_fma_f32(r, 0x1.62e43p-1f, -w));
    return dev_exp_tail_f32(w, wl, dev_bits_f32(z) - DEV_ROUND_BITS_F32 + 254);
}

DEV_FN float dev_exp10_f32(float x) {
    float c = x < -46.0f ? -46.0f : x;
    c = c > 39.0f ? 39.0f : c;
    float z = dev_fma_f32(c, 0x1.a934fp+1f, DEV_ROUND_F32);
    float n = z - DEV_ROUND_F32;
    float a = dev_fma_f32(n, -0x1.34412p-2f, c); // exact
    float b = n * -0x1.509f7ap-22f;
    float r = a + b;
    float rl = b - (r - a);
    float w = r * 0x1.26bb1cp+1f;
    float wl = dev_fma_f32(rl, 0x1.26bb1cp+1f,
                           dev_fma_f32(r, -0x1.12aabap-25f, dev_fma_f32(r, 0x1.26bb1cp+1f, -w)));
    return dev_exp_tail_f32(w, wl, dev_bits_f32(z) - DEV_ROUND_BITS_F32 + 254);
}

// ---- log2, log10 ----

// the logarithm of x: (t + rest) * (scale + scalel) + e * (one + onel), e * one exact
DEV_FN float dev_log_scaled_f32(float x, float scale, float scalel, float one, float onel) {
    float e;
    float t = dev_log_split_f32(x, &e);
    float rest;
    float restl = dev_log_rest_pair_f32(t, &rest);
    float u = t + rest;
    float ul = (rest - (u - t)) + restl;
    float h = u * scale;
    float hl = dev_fma_f32(u, scale, -h) + dev_fma_f32(u, scalel, ul * scale);
    float hi = e * one;
    float s = hi + h;
    float c = h - (s - hi);
    float r = s + (c + dev_fma_f32(e, onel, hl));
    r = x < DEV_INF_F32 ? r : x; // also NaN
    r = x < 0.0f ? DEV_NAN_F32 : r;
    return x == 0.0f ? -DEV_INF_F32 : r;
}

DEV_FN float dev_log2_f32(float x) {
    return dev_log_scaled_f32(x, 0x1.715476p+0f, 0x1.4ae0cp-26f, 1.0f, 0.0f);
}

DEV_FN float dev_log10_f32(float x) {
    return dev_log_scaled_f32(x, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344p-2f, 0x1.3509f8p-18f);
}

// ---- sinh, cosh ----

// h * (s + c) = exp(a) / 8, and *q + *ql = exp(-a) / 8, for 0 <= a <= the clamp or NaN
DEV_FN float dev_exp_eighth_f32(float a, float *c, float *q, float *ql) {
    float rl, rest;
    uint32_t k;
    float r = dev_exp_reduce_f32(a, 0.0f, &rl, &k);
    float s = dev_exp_sum_f32(r, rl, &rest);
    float h = dev_f32_bits((k - 130) << 23);
    float hs = h * s;
    float hc = h * rest;
    float whole = hs + hc;
    *q = 0.015625f / whole;
    *ql = (dev_fma_f32(-*q, hs, 0.015625f) - *q * hc) * (*q * 64.0f);
    *c = hc;
    return hs;
}

DEV_FN float dev_sinh_f32(float x) {
    float a = dev_abs_f32(x);
    float s = a * a;
    float p = 0x1.7a15dp-19f;
    p = dev_fma_f32(p, s, 0x1.9ffe92p-13f);
    p = dev_fma_f32(p, s, 0x1.111134p-7f);
    p = dev_fma_f32(p, s, 0x1.555556p-3f);
    float small = dev_fma_f32(a * s, p, a);
    float c, q, ql;
    float e = dev_exp_eighth_f32(a > 90.0f ? 90.0f : a, &c, &q, &ql);
    float big = ((e - q) + (((e - (e - q)) - q) + (c - ql))) * 4.0f;
    return dev_copysign_f32(a < 1.0f ? small : big, x);
}

DEV_FN float dev_cosh_f32(float x) {
    float a = dev_abs_f32(x);
    float c, q, ql;
    float e = dev_exp_eighth_f32(a > 90.0f ? 90.0f : a, &c, &q, &ql);
    float s = e + q;
    return (s + ((q - (s - e)) + (c + ql))) * 4.0f;
}

// ---- cbrt, rsqrt, hypot ----

// y nearer to a^(-1/3), by a step of third order
DEV_FN float dev_cbrt_step_f32(float a, float y) {
    float e = dev_fma_f32(-(a * y), y * y, 1.0f);
    return dev_fma_f32(y * e, dev_fma_f32(e, 0x1.c71c72p-3f, 0x1.555556p-2f), y);
}

DEV_FN float dev_cbrt_f32(float x) {
    float a = dev_abs_f32(x);
    float up = a < 0x1p-100f ? 0x1p24f : 1.0f;
    float down = a < 0x1p-100f ? 0x1p-8f : 1.0f;
    a *= up;
    // y = a^(-1/3): a guess from the exponent, then steps
    uint32_t third = (uint32_t)(int32_t)((float)(int32_t)dev_bits_f32(a) * 0x1.555556p-2f);
    float y = dev_f32_bits(0x54a21d2au - third);
    y = dev_cbrt_step_f32(a, dev_cbrt_step_f32(a, y));
    // one step on c^3 = a with the remainder formed exactly
    float y2 = y * y;
    float c = a * y2;
    float c2 = c * c;
    float c2l = dev_fma_f32(c, c, -c2);
    float rest = dev_fma_f32(-c2, c, a) - c2l * c;
    float r = dev_fma_f32(rest * y2, 0x1.555556p-2f, c) * down;
    r = a < DEV_INF_F32 ? r : a;
    r = a == 0.0f ? 0.0f : r;
    return dev_copysign_f32(r, x);
}

DEV_FN float dev_rsqrt_f32(float x) {
    float v = x < 0x1p-90f ? x * 0x1p48f : x;
    float s = dev_sqrt_f32(v);
    float y = 1.0f / s;
    // 1 / (s + sl): sl = (v - s^2) / (2 s)
    float e = dev_fma_f32(-s, y, 1.0f);
    float sl = dev_fma_f32(-s, s, v) * 0.5f * y;
    float r = dev_fma_f32(y, dev_fma_f32(-sl, y, e), y);
    r = r == r ? r : y; // at 0 and infinity
    return x < 0x1p-90f ? r * 0x1p24f : r;
}

DEV_FN float dev_hypot_f32(float x, float y) {
    float a = dev_abs_f32(x);
    float b = dev_abs_f32(y);
    float m = a > b ? a : b;
    float n = a > b ? b : a;
    n = a == b ? a : n;
    float scale = m > 0x1p63f ? 0x1p-70f : (m < 0x1p-40f ? 0x1p90f : 1.0f);
    float back = m > 0x1p63f ? 0x1p70f : (m < 0x1p-40f ? 0x1p-90f : 1.0f);
    m *= scale;
    n *= scale;
    float mm = m * m;
    float ml = dev_fma_f32(m, m, -mm);
    float nn = n * n;
    float nl = dev_fma_f32(n, n, -nn);
    float s = mm + nn;
    float sl = (mm - s) + nn + (ml + nl);
    float h = dev_sqrt_f32(s);
    float r = h + (dev_fma_f32(-h, h, s) + sl) * 0.5f / h;
    r = m == 0.0f ? 0.0f : r * back;
    r = a == a ? r : a;
    r = b == b ? r : b;
    r = a == DEV_INF_F32 ? a : r;
    return b == DEV_INF_F32 ? b : r;
}
