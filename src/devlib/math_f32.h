// Device math, float32: exp log sin cos tanh (list and error bounds: math.def).
//
// Form: see bits.h. Each dev_NAME_f32(x) is right for every x. A function with a costly rare case
// comes in three: dev_NAME_fast_f32 (branch-free, for |x| <= DEV_TRIG_FAST_F32), dev_NAME_slow_f32
// (any x, scalar), and dev_NAME_f32, which picks. A vector back end computes the fast one for
// all lanes, tests the range of all lanes, and repairs the rare ones by the slow one (vector.c).
//
// Sources: Cody & Waite (1980) for the reductions by split constants, Payne & Hanek (1983) for
// large arguments of sin and cos, Dekker/Knuth for the error terms of sums, fma for those of
// products; polynomials by tools/fit_minimax.py.
#pragma once
#include "bits.h"

#define DEV_TRIG_FAST_F32 65536.0f

// Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
#define DEV_ROUND_F32      0x1.8p23f
#define DEV_ROUND_BITS_F32 0x4b400000u

// ---- exp ----

// (exp(r) - 1 - r) / r^2 on |r| <= ln2/2
DEV_FN float dev_exp_poly_f32(float r) {
    float q = 0x1.6ac60cp-10f;
    q = dev_fma_f32(q, r, 0x1.123edap-7f);
    q = dev_fma_f32(q, r, 0x1.55584ep-5f);
    q = dev_fma_f32(q, r, 0x1.55548ap-3f);
    return dev_fma_f32(q, r, 0x1.fffffcp-2f);
}

// exp(x) for -104 <= x <= 89 or NaN; 2^n is applied in two halves so that neither overflows
DEV_FN float dev_exp_core_f32(float x) {
    float z = dev_fma_f32(x, 0x1.715476p+0f, DEV_ROUND_F32);
    float n = z - DEV_ROUND_F32;
    float r = dev_fma_f32(n, -0x1.62e43p-1f, x);
    r = dev_fma_f32(n, 0x1.05c610p-29f, r);
    float p = dev_fma_f32(r * r, dev_exp_poly_f32(r), r);
    uint32_t k = dev_bits_f32(z) - DEV_ROUND_BITS_F32 + 254;
    uint32_t half = k >> 1;
    return (1.0f + p) * dev_f32_bits(half << 23) * dev_f32_bits((k - half) << 23);
}

DEV_FN float dev_exp_f32(float x) {
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    return dev_exp_core_f32(c);
}

// ---- log ----

// x = m * 2^e with m in [2/3, 4/3); returns m - 1
DEV_FN float dev_log_split_f32(float x, float *e) {
    float y = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t u = dev_bits_f32(y) - 0x3f2aaaabu;
    float k = (float)((int32_t)u >> 23);
    *e = x < 0x1p-126f ? k - 23.0f : k;
    return dev_f32_bits((u & 0x007fffffu) + 0x3f2aaaabu) - 1.0f;
}

// log(1 + t) - t on [-1/3, 1/3]
DEV_FN float dev_log_poly_f32(float t) {
    float p = -0x1.0955aep-3f;
    p = dev_fma_f32(p, t, 0x1.1e9afp-3f);
    p = dev_fma_f32(p, t, -0x1.f28e2ap-4f);
    p = dev_fma_f32(p, t, 0x1.1ecf76p-3f);
    p = dev_fma_f32(p, t, -0x1.55a1fp-3f);
    p = dev_fma_f32(p, t, 0x1.99d086p-3f);
    p = dev_fma_f32(p, t, -0x1.fffedcp-3f);
    p = dev_fma_f32(p, t, 0x1.555506p-2f);
    return t * t * dev_fma_f32(p, t, -0.5f);
}

// e * ln2 + t + w, where |t| is small beside ln2; e * (high part of ln2) is exact
DEV_FN float dev_log_sum_f32(float e, float t, float w) {
    float hi = e * 0x1.62e4p-1f;
    float s = hi + t;
    float c = t - (s - hi);
    return s + (c + dev_fma_f32(e, 0x1.7f7d1cp-20f, w));
}

DEV_FN float dev_log_f32(float x) {
    float e;
    float t = dev_log_split_f32(x, &e);
    float r = dev_log_sum_f32(e, t, dev_log_poly_f32(t));
    r = x < DEV_INF_F32 ? r : x; // also NaN
    r = x < 0.0f ? DEV_NAN_F32 : r;
    return x == 0.0f ? -DEV_INF_F32 : r;
}

// ---- sin, cos ----

// sin(r + lo) or cos(r + lo) by quadrant, |r| <= pi/4 and a bit, lo below an ulp of r
DEV_FN float dev_trig_eval_f32(float r, float lo, uint32_t quadrant) {
    float s = r * r;
    float h = dev_fma_f32(s, -0.5f, 1.0f);
    float p = -0x1.98da4p-13f;
    p = dev_fma_f32(p, s, 0x1.1106p-7f);
    p = dev_fma_f32(p, s, -0x1.555542p-3f);
    float sine = r + dev_fma_f32(r * s, p, lo * h);
    float q = 0x1.99912cp-16f;
    q = dev_fma_f32(q, s, -0x1.6c0af4p-10f);
    q = dev_fma_f32(q, s, 0x1.555548p-5f);
    float hl = dev_fma_f32(s, -0.5f, 1.0f - h); // what h lost
    float cosine = h + dev_fma_f32(s * s, q, dev_fma_f32(-r, lo, hl));
    float v = (quadrant & 1u) != 0 ? cosine : sine;
    return dev_f32_bits(dev_bits_f32(v) ^ ((quadrant & 2u) << 30));
}

// shift 0: sin, 1: cos
DEV_FN float dev_trig_fast_f32(float x, uint32_t shift) {
    float z = dev_fma_f32(x, 0x1.45f306p-1f, DEV_ROUND_F32);
    float n = z - DEV_ROUND_F32;
    float a = dev_fma_f32(n, -0x1.921fb6p+0f, x); // exact
    float ph = n * 0x1.777a5cp-25f;
    float pl = dev_fma_f32(n, 0x1.777a5cp-25f, -ph);
    float r = a + ph; // a is a multiple of ulp(ph), so the rest is exact
    float lo = dev_fma_f32(n, 0x1.ee59dap-50f, (ph - (r - a)) + pl);
    return dev_trig_eval_f32(r, lo, dev_bits_f32(z) + shift);
}

// Payne-Hanek: of the product (24-bit significand) * (bits of 2/pi) only those bits are formed
// that decide the quadrant and the fraction.
static inline float dev_trig_slow_f32(float x, uint32_t shift) {
    static const uint32_t two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t u = dev_bits_f32(x);
    uint32_t biased = (u >> 23) & 0xffu;
    if (biased == 0xff) return x - x;
    if (dev_abs_f32(x) <= DEV_TRIG_FAST_F32) return dev_trig_fast_f32(x, shift);
    uint64_t m = (u & 0x007fffffu) | 0x00800000u;
    uint32_t at = biased - 150 - 2 + 32; // first bit of 2/pi whose product is not a multiple of 4
    const uint32_t *w = two_over_pi + (at >> 5);
    at &= 31;
    uint64_t w0 = (((uint64_t)w[0] << 32 | w[1]) << at) >> 32;
    uint64_t w1 = (((uint64_t)w[1] << 32 | w[2]) << at) >> 32;
    uint64_t w2 = (((uint64_t)w[2] << 32 | w[3]) << at) >> 32;
    uint64_t p = (m * w0 << 32) + m * w1 + (m * w2 >> 32); // 2^64 is a full turn
    uint64_t quadrant = (p + (1ull << 61)) >> 62;
    double r = (double)(int64_t)(p - (quadrant << 62)) * 0x1.921fb54442d18p-62;
    r = (u >> 31) != 0 ? -r : r;
    quadrant = (u >> 31) != 0 ? 0 - quadrant : quadrant;
    float hi = (float)r;
    return dev_trig_eval_f32(hi, (float)(r - hi), (uint32_t)quadrant + shift);
}

DEV_FN float dev_sin_fast_f32(float x) { return dev_trig_fast_f32(x, 0); }
DEV_FN float dev_cos_fast_f32(float x) { return dev_trig_fast_f32(x, 1); }
static inline float dev_sin_slow_f32(float x) { return dev_trig_slow_f32(x, 0); }
static inline float dev_cos_slow_f32(float x) { return dev_trig_slow_f32(x, 1); }

// 1 if the fast form holds (false for NaN and infinities)
DEV_FN int dev_trig_in_fast_f32(float x) { return dev_abs_f32(x) <= DEV_TRIG_FAST_F32; }

DEV_FN float dev_sin_f32(float x) {
    return dev_trig_in_fast_f32(x) ? dev_sin_fast_f32(x) : dev_sin_slow_f32(x);
}

DEV_FN float dev_cos_f32(float x) {
    return dev_trig_in_fast_f32(x) ? dev_cos_fast_f32(x) : dev_cos_slow_f32(x);
}

// ---- tanh ----

DEV_FN float dev_tanh_f32(float x) {
    float a = dev_abs_f32(x);
    float s = a * a;
    float p = -0x1.77fef8p-12f;
    p = dev_fma_f32(p, s, 0x1.2db4aap-9f);
    p = dev_fma_f32(p, s, -0x1.046682p-7f);
    p = dev_fma_f32(p, s, 0x1.600ba6p-6f);
    p = dev_fma_f32(p, s, -0x1.b96284p-5f);
    p = dev_fma_f32(p, s, 0x1.110be6p-3f);
    p = dev_fma_f32(p, s, -0x1.55553cp-2f);
    float small = dev_fma_f32(a * s, p, a);
    float c = a > 10.0f ? 10.0f : a;
    float big = 1.0f - 2.0f / (dev_exp_core_f32(c + c) + 1.0f);
    return dev_copysign_f32(a < 1.0f ? small : big, x);
}
