// Device math, F32: asinh acosh atanh, erfc erfinv (form and sources: math_f32.h).
#pragma once
#include "math_f32.h"

// ---- asinh, acosh, atanh: log1p of a sum of two numbers ----

DEV_FN float dev_asinh_f32(float x) {
    float a = dev_abs_f32(x);
    float far = a > 0x1p30f ? 1.0f : 0.0f; // log(2 a) from there on
    float c = a > 0x1p30f ? 1.0f : a;
    // z + zl = c + w, w = c^2 / (1 + sqrt(1 + c^2))
    float q = c * c;
    float root = dev_sqrt_f32(1.0f + q);
    float den = 1.0f + root;
    float denl = 1.0f - (den - root);
    float inv = 1.0f / den;
    float w = q * inv;
    float wl = (dev_fma_f32(-w, den, q) + dev_fma_f32(-w, denl, dev_fma_f32(c, c, -q))) * inv;
    float z = c + w;
    float zl = ((c - z) + w) + wl;
    z = far != 0.0f ? a : z;
    zl = far != 0.0f ? 0.0f : zl;
    float r = dev_copysign_f32(dev_log1p_sum_f32(z, zl, far), x);
    r = a < 0x1p-30f ? x : r; // keeps -0 and denormals
    return a < DEV_INF_F32 ? r : x;
}

DEV_FN float dev_acosh_f32(float x) {
    float far = x > 0x1p30f ? 1.0f : 0.0f; // log(2 x) from there on
    // z + zl = t + sqrt(t^2 + 2 t), t = x - 1
    float t = x > 0x1p30f ? 1.0f : x - 1.0f;
    float twice = t + t;
    float q = t * t;
    float h = twice + q;
    float hl = t < 2.0f ? (twice - h) + q : (q - h) + twice;
    hl += dev_fma_f32(t, t, -q);
    float root = dev_sqrt_f32(h);
    float rootl = (dev_fma_f32(-root, root, h) + hl) * 0.5f / root;
    float z = t + root;
    float zl = ((root - z) + t) + rootl;
    z = far != 0.0f ? x : z;
    zl = far != 0.0f ? 0.0f : zl;
    float r = dev_log1p_sum_f32(z, zl, far);
    r = x < DEV_INF_F32 ? r : x;
    r = x == 1.0f ? 0.0f : r;
    return x < 1.0f ? DEV_NAN_F32 : r;
}

DEV_FN float dev_atanh_f32(float x) {
    float a = dev_abs_f32(x);
    // log1p(2 a / (1 - a)) / 2
    float d = 1.0f - a;
    float dl = (1.0f - d) - a;
    float inv = 1.0f / d;
    float twice = a + a;
    float z = twice * inv;
    float zl = (dev_fma_f32(-z, d, twice) - z * dl) * inv;
    float r = dev_copysign_f32(0.5f * dev_log1p_sum_f32(z, zl, 0.0f), x);
    r = a < 0x1p-30f ? x : r; // keeps -0 and denormals
    r = a == 1.0f ? dev_copysign_f32(DEV_INF_F32, x) : r;
    r = a > 1.0f ? DEV_NAN_F32 : r;
    return x == x ? r : x;
}

// ---- erfc ----

// erfc(x) for x >= 0.65 or NaN: exp(-x^2) * t * P(t), t = 1 / (x + k), each factor as two numbers
DEV_FN float dev_erfc_far_f32(float x) {
    float den = x + 2.5f;
    float denl = x > 2.5f ? 2.5f - (den - x) : x - (den - 2.5f);
    float t = 1.0f / den;
    float tl = -t * dev_fma_f32(t, denl, dev_fma_f32(t, den, -1.0f));
    float u = dev_fma_f32(t, 8.0f, -1.5f); // exact
    float p = 0x1.e597c8p-17f;
    p = dev_fma_f32(p, u, 0x1.c21558p-19f);
    p = dev_fma_f32(p, u, -0x1.329be8p-12f);
    p = dev_fma_f32(p, u, -0x1.47fce2p-11f);
    p = dev_fma_f32(p, u, 0x1.32f4c4p-8f);
    p = dev_fma_f32(p, u, 0x1.47b67ep-5f);
    p = dev_fma_f32(p, u, 0x1.51fdb4p-3f);
    float w = p * u; // the last steps as two numbers
    float wl = dev_fma_f32(p, u, -w);
    p = 0x1.dfee2ap-2f + w;
    wl += w - (p - 0x1.dfee2ap-2f);
    float slope = dev_fma_f32(u, dev_fma_f32(u, 0.12f, 0.3301f), 0x1.dfee2ap-2f); // of P, roughly
    float m = p * u;
    float hi = 0x1.0166aap+0f + m;
    float lo = (m - (hi - 0x1.0166aap+0f)) + dev_fma_f32(wl, u, dev_fma_f32(p, u, -m));
    lo += dev_fma_f32(tl * 8.0f, slope, 0x1.1409b4p-25f);
    float e = t * hi;
    float el = dev_fma_f32(t, lo, dev_fma_f32(tl, hi, dev_fma_f32(t, hi, -e)));
    float v = x * x;
    float rl, c;
    uint32_t k;
    float r = dev_exp_reduce_f32(-v, -dev_fma_f32(x, x, -v), &rl, &k);
    float s = dev_exp_sum_f32(r, rl, &c);
    float y = s * e;
    float yl = dev_fma_f32(s, el, dev_fma_f32(c, e, dev_fma_f32(s, e, -y)));
    uint32_t half = k >> 1;
    return (y + yl) * dev_f32_bits(half << 23) * dev_f32_bits((k - half) << 23);
}

DEV_FN float dev_erfc_f32(float x) {
    float a = dev_abs_f32(x);
    float far = dev_erfc_far_f32(a > 10.5f ? 10.5f : (a < 0.65f ? 0.65f : a));
    // (1 - x) - x p(x^2), erf(x) = x + x p
    float p = dev_erf_poly_f32(a * a);
    float d = 1.0f - x;
    float dl = (1.0f - d) - x;
    float near = d + dev_fma_f32(-x, p, dl);
    return a < 0.65f ? near : (x < 0.0f ? 2.0f - far : far);
}

// ---- erfinv ----

// A guess of 2^-13 (float64: 2^-20) by w = -log(1 - x^2) (such variables: Giles, 2012), then Halley's
// step on erf (kept as y + y p) or, from 0.7 on, erfc.
DEV_FN float dev_erfinv_f32(float x) {
    float a = dev_abs_f32(x);
    float b = 1.0f - a;
    float w = -dev_log_f32(dev_fma_f32(b, a, b));
    float v = dev_sqrt_f32(w);
    float p = 0x1.5a7c5p-13f;
    p = dev_fma_f32(p, w, -0x1.7f886ep-9f);
    p = dev_fma_f32(p, w, 0x1.824712p-7f);
    p = dev_fma_f32(p, w, 0x1.dbbaaep-3f);
    p = dev_fma_f32(p, w, 0x1.c5b522p-1f);
    float q = -0x1.3ab4e6p-8f;
    q = dev_fma_f32(q, v, 0x1.bc4f88p-5f);
    q = dev_fma_f32(q, v, 0x1.9c3508p-1f);
    q = dev_fma_f32(q, v, 0x1.e450f4p-5f);
    float y = a * (w < 6.25f ? p : q);
    float near = dev_fma_f32(y, dev_erf_poly_f32(y * y), y - a);
    float miss = a < 0.7f ? near : b - dev_erfc_f32(y);
    float step = miss * 0x1.c5bf8ap-1f * dev_exp_f32(y * y);
    float r = y - step / dev_fma_f32(y, step, 1.0f);
    r = a < 0x1p-30f ? dev_fma_f32(a, 0x1.c5bf8ap-1f, a * -0x1.c96212p-26f) : r;
    r = dev_copysign_f32(r, x);
    r = a == 1.0f ? dev_copysign_f32(DEV_INF_F32, x) : r;
    return a > 1.0f ? DEV_NAN_F32 : r;
}
