// Device math, F32: tgamma lgamma (form and sources: math_f32.h).
//
// Up to 12.0f the recurrence leads to [1, 2], where 1 / gamma(1 + t) = 1 + t (1 - t) Q(t); the product is kept
// as two numbers, so that factorials come out exact. Beyond: Stirling's series, also as two numbers.
// Not positive arguments: the reflection formula, scalar.
#pragma once
#include "gamma_f64.h"
#include "trig_f32.h"

// (p + pl) * (x - j) where that is at least 1
DEV_FN float dev_gamma_step_f32(float x, float j, float p, float *pl) {
    float f = x - j; // exact
    float n = p * f;
    float nl = dev_fma_f32(*pl, f, dev_fma_f32(p, f, -n));
    *pl = f >= 1.0f ? nl : *pl;
    return f >= 1.0f ? n : p;
}

// t = x - floor(x), q(t) as result + *ql; 1 / gamma(1 + t) = 1 + g + gl with g = t (1 - t) q
DEV_FN float dev_gamma_poly_f32(float x, float *t, float *ql, float *g, float *gl) {
    *t = x - dev_floor_f32(x);
    float p = -0x1.267a36p-13f;
    p = dev_fma_f32(p, *t, 0x1.9ecf34p-10f);
    p = dev_fma_f32(p, *t, -0x1.945576p-8f);
    p = dev_fma_f32(p, *t, 0x1.ee1e26p-9f);
    p = dev_fma_f32(p, *t, 0x1.779dap-5f);
    p = dev_fma_f32(p, *t, -0x1.ee3bc4p-4f);
    p = dev_fma_f32(p, *t, -0x1.4233a2p-4f);
    float m = p * *t;
    float q = 0x1.2788dp-1f + m;
    *ql = (m - (q - 0x1.2788dp-1f)) + (dev_fma_f32(p, *t, -m) + -0x1.8dbe7p-28f);
    float away = 1.0f - *t;
    float awayl = (1.0f - away) - *t;
    float w = *t * away;
    float wl = dev_fma_f32(*t, awayl, dev_fma_f32(*t, away, -w));
    *g = w * q;
    *gl = dev_fma_f32(w, *ql, dev_fma_f32(wl, q, dev_fma_f32(w, q, -*g)));
    return q;
}

// gamma(x) = (result + *pl) / (*d + *dl), 0 < x < 12.0f
DEV_FN float dev_gamma_near_f32(float x, float g, float gl, float *pl, float *d, float *dl) {
    float h = 1.0f + g;
    float hl = (g - (h - 1.0f)) + gl;
    float xh = x * h;
    float xl = dev_fma_f32(x, hl, dev_fma_f32(x, h, -xh));
    *d = x < 1.0f ? xh : h;
    *dl = x < 1.0f ? xl : hl;
    *pl = 0.0f;
    float p = x >= 2.0f ? x - 1.0f : 1.0f;
    p = dev_gamma_step_f32(x, 2.0f, p, pl);
    p = dev_gamma_step_f32(x, 3.0f, p, pl);
    p = dev_gamma_step_f32(x, 4.0f, p, pl);
    p = dev_gamma_step_f32(x, 5.0f, p, pl);
    p = dev_gamma_step_f32(x, 6.0f, p, pl);
    p = dev_gamma_step_f32(x, 7.0f, p, pl);
    p = dev_gamma_step_f32(x, 8.0f, p, pl);
    p = dev_gamma_step_f32(x, 9.0f, p, pl);
    p = dev_gamma_step_f32(x, 10.0f, p, pl);
    return p;
}

// (p + pl) / (d + dl)
DEV_FN float dev_gamma_quotient_f32(float p, float pl, float d, float dl, float *low) {
    float inv = 1.0f / d;
    float q = p * inv;
    *low = (dev_fma_f32(-q, d, p) + dev_fma_f32(-q, dl, pl)) * inv;
    return q;
}

// log gamma(x) = result + *low, 12.0f <= x
DEV_FN float dev_stirling_f32(float x, float *low) {
    float ll;
    float l = dev_log_pair_f32(x, &ll);
    float m = x - 0.5f;
    float a = m * l;
    float al = dev_fma_f32((x - m) - 0.5f, l, dev_fma_f32(m, ll, dev_fma_f32(m, l, -a)));
    float b = a - x;
    float bl = (a - b) - x;
    float c = b + 0x1.d67f1cp-1f;
    float cl = 0x1.d67f1cp-1f - (c - b);
    float r = 1.0f / x;
    float s = r * r;
    float q = -0x1.6b5c1ep-9f;
    q = dev_fma_f32(q, s, 0x1.555554p-4f);
    float rest = (cl + bl) + (al + dev_fma_f32(q, r, 0x1.0c97d6p-26f));
    float hi = c + rest;
    *low = x > 0x1p60f ? 0.0f : rest - (hi - c);
    // far out x (log x - 1), without overflow on the way
    float y = l - 1.0f;
    float v = x * y;
    float vl = dev_fma_f32(x, ((l - y) - 1.0f) + ll, dev_fma_f32(x, y, -v));
    v = v < DEV_INF_F32 ? v + vl : v;
    return x > 0x1p60f ? v : hi;
}

// ---- tgamma ----

DEV_FN float dev_tgamma_fast_f32(float x) {
    float t, ql, g, gl, pl, d, dl, low;
    float n = x < 12.0f ? x : 1.0f;
    dev_gamma_poly_f32(n, &t, &ql, &g, &gl);
    float p = dev_gamma_near_f32(n, g, gl, &pl, &d, &dl);
    float near = dev_gamma_quotient_f32(p, pl, d, dl, &low);
    near = near < DEV_INF_F32 ? near + low : near;
    float c = x > 36.0f ? 36.0f : (x < 12.0f ? 12.0f : x);
    float l = dev_stirling_f32(c, &low);
    float far = x > 36.0f ? DEV_INF_F32 : dev_exp_pair_f32(l, low);
    return x < 12.0f ? near : far;
}

static inline float dev_tgamma_slow_f32(float x) {
    double r = x > 0.0f ? dev_tgamma_fast_f64(x) : dev_tgamma_slow_f64(x);
    return (float)r;
}

// 1 if the fast form holds
DEV_FN int dev_gamma_in_fast_f32(float x) { return x > 0.0f; }

DEV_FN float dev_tgamma_f32(float x) {
    return dev_gamma_in_fast_f32(x) ? dev_tgamma_fast_f32(x) : dev_tgamma_slow_f32(x);
}

// ---- lgamma ----

// gamma - 1 on [2, 3], 1 / gamma - 1 on [1/2, 2]: without cancellation at 1 and 2
DEV_FN float dev_gamma_away_f32(float x, float t, float q, float ql, float g, float gl,
                                float *low) {
    // [2, 3]: t (1 - (1 - t) q) / (1 + g); [1/2, 1]: (1 - t) (t^2 q - 1); [1, 2]: g
    float away = 1.0f - t;
    float awayl = (1.0f - away) - t;
    float a = x < 1.0f ? t * t : away;
    float al = x < 1.0f ? dev_fma_f32(t, t, -a) : awayl;
    float v = a * q;
    float vl = dev_fma_f32(a, ql, dev_fma_f32(al, q, dev_fma_f32(a, q, -v)));
    float f = 1.0f - v;
    float fl = ((1.0f - f) - v) - vl;
    float b = x < 1.0f ? -away : t;
    float n = b * f;
    float nl = dev_fma_f32(b, fl, dev_fma_f32(b, f, -n));
    float h = 1.0f + g;
    float hl = (g - (h - 1.0f)) + gl;
    float z = dev_gamma_quotient_f32(n, nl, x < 1.0f ? 1.0f : h, x < 1.0f ? 0.0f : hl, low);
    float off = x < 1.0f ? 1.0f : (x < 2.0f ? 0.0f : 1.0f);
    *low = off == 0.0f ? gl : *low;
    return off == 0.0f ? g : z;
}

// log|gamma(x)| below 12.0f: the logarithm of u + ul (times 2^up), negative below 2
DEV_FN float dev_lgamma_near_f32(float x) {
    float t, ql, g, gl, pl, d, dl, low, zl;
    float q = dev_gamma_poly_f32(x, &t, &ql, &g, &gl);
    float p = dev_gamma_near_f32(x, g, gl, &pl, &d, &dl);
    float ratio = dev_gamma_quotient_f32(p, pl, d, dl, &low);
    // gamma for x >= 3, its reciprocal below 1/2
    float u = x < 0.5f ? d : ratio;
    float ul = x < 0.5f ? dl : low;
    float up = x < 0x1p-60f ? -90.0f : 0.0f;
    u = x < 0x1p-60f ? x * 0x1p90f : u;
    ul = x < 0x1p-60f ? 0.0f : ul;
    // between, what it differs from 1 by
    float z = dev_gamma_away_f32(x, t, q, ql, g, gl, &zl);
    z = x < 0x1p-60f ? u - 1.0f : z;
    zl = x < 0x1p-60f ? 0.0f : zl;
    float off = x < 0.5f ? 1.0f : (x < 3.0f ? 0.0f : 1.0f);
    float v = 1.0f + z;
    float w = v - 1.0f;
    float vl = (1.0f - (v - w)) + (z - w) + zl;
    u = off == 0.0f ? v : u;
    ul = off == 0.0f ? vl : ul;
    float r = dev_log_two_f32(u, ul, z, zl, up);
    return x < 2.0f ? -r : r;
}

DEV_FN float dev_lgamma_fast_f32(float x) {
    // clamped by their bits: of selects on x, GCC makes branches that stop the vectorisation
    uint32_t u = dev_bits_f32(x);
    uint32_t limit = dev_bits_f32(12.0f);
    float low;
    float near = dev_lgamma_near_f32(dev_f32_bits(u < limit ? u : limit));
    float far = dev_stirling_f32(dev_f32_bits(u > limit ? u : limit), &low);
    return (x < 12.0f ? near : far) + 0.0f; // +0 at 1
}

static inline float dev_lgamma_slow_f32(float x) {
    double r = x > 0.0f ? dev_lgamma_fast_f64(x) : dev_lgamma_slow_f64(x);
    return (float)r;
}

DEV_FN float dev_lgamma_f32(float x) {
    return dev_gamma_in_fast_f32(x) ? dev_lgamma_fast_f32(x) : dev_lgamma_slow_f32(x);
}
