// Device math, float32: exp log sin cos tanh erf expm1 log1p pow (list and error bounds: math.def).
//
// Form: see bits.h. Each dev_NAME_f32(x) is right for every x. A function with a costly rare case
// comes in three: dev_NAME_fast_f32 (branch-free, for |x| <= DEV_TRIG_FAST_F32), dev_NAME_slow_f32
// (the other x, scalar), and dev_NAME_f32, which picks. A vector back end computes the fast one for
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
    float q = 0x1.9c6e36p-13f;
    q = dev_fma_f32(q, r, 0x1.6d4c48p-10f);
    q = dev_fma_f32(q, r, 0x1.1113aap-7f);
    q = dev_fma_f32(q, r, 0x1.5554eap-5f);
    q = dev_fma_f32(q, r, 0x1.555554p-3f);
    return dev_fma_f32(q, r, 0x1p-1f);
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

// (log(1 + t) - t + t^2 / 2) / t^3 on [-1/3, 1/3]
DEV_FN float dev_log_poly_f32(float t) {
    float p = -0x1.0955aep-3f;
    p = dev_fma_f32(p, t, 0x1.1e9afp-3f);
    p = dev_fma_f32(p, t, -0x1.f28e2ap-4f);
    p = dev_fma_f32(p, t, 0x1.1ecf76p-3f);
    p = dev_fma_f32(p, t, -0x1.55a1fp-3f);
    p = dev_fma_f32(p, t, 0x1.99d086p-3f);
    p = dev_fma_f32(p, t, -0x1.fffedcp-3f);
    p = dev_fma_f32(p, t, 0x1.555506p-2f);
    return p;
}

// log(1 + t) - t
DEV_FN float dev_log_rest_f32(float t) {
    return t * t * dev_fma_f32(dev_log_poly_f32(t), t, -0.5f);
}

// the same as *high + result
DEV_FN float dev_log_rest_pair_f32(float t, float *high) {
    float t2 = t * t;
    *high = -0.5f * t2;
    return dev_fma_f32(t2 * t, dev_log_poly_f32(t), -0.5f * dev_fma_f32(t, t, -t2));
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
    float r = dev_log_sum_f32(e, t, dev_log_rest_f32(t));
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

// x - quadrant * pi/2 as result + *lo; |x| <= DEV_TRIG_FAST (only the low bits of quadrant matter)
DEV_FN float dev_trig_reduce_f32(float x, float *lo, uint32_t *quadrant) {
    float z = dev_fma_f32(x, 0x1.45f306p-1f, DEV_ROUND_F32);
    float n = z - DEV_ROUND_F32;
    float a = dev_fma_f32(n, -0x1.921fb6p+0f, x); // exact
    float ph = n * 0x1.777a5cp-25f;
    float pl = dev_fma_f32(n, 0x1.777a5cp-25f, -ph);
    float r = a + ph; // a is a multiple of ulp(ph), so the rest is exact
    *lo = dev_fma_f32(n, 0x1.ee59dap-50f, (ph - (r - a)) + pl);
    *quadrant = dev_bits_f32(z);
    return r;
}

// shift 0: sin, 1: cos
DEV_FN float dev_trig_fast_f32(float x, uint32_t shift) {
    float lo;
    uint32_t quadrant;
    float r = dev_trig_reduce_f32(x, &lo, &quadrant);
    return dev_trig_eval_f32(r, lo, quadrant + shift);
}

// Payne-Hanek: of the product (24-bit significand) * (bits of 2/pi) only those bits are formed
// that decide the quadrant and the fraction.
static inline float dev_trig_reduce_slow_f32(float x, float *lo, uint32_t *quadrant) {
    static const uint32_t two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t u = dev_bits_f32(x);
    uint32_t biased = (u >> 23) & 0xffu;
    *lo = 0.0f;
    *quadrant = 0;
    if (biased == 0xff) return x - x; // NaN
    uint64_t m = (u & 0x007fffffu) | 0x00800000u;
    uint32_t at = biased - 150 - 2 + 32; // first bit of 2/pi whose product is not a multiple of 4
    const uint32_t *w = two_over_pi + (at >> 5);
    at &= 31;
    uint64_t w0 = (((uint64_t)w[0] << 32 | w[1]) << at) >> 32;
    uint64_t w1 = (((uint64_t)w[1] << 32 | w[2]) << at) >> 32;
    uint64_t w2 = (((uint64_t)w[2] << 32 | w[3]) << at) >> 32;
    uint64_t p = (m * w0 << 32) + m * w1 + (m * w2 >> 32); // 2^64 is a full turn
    uint64_t turn = (p + (1ull << 61)) >> 62;
    double r = (double)(int64_t)(p - (turn << 62)) * 0x1.921fb54442d18p-62;
    r = (u >> 31) != 0 ? -r : r;
    *quadrant = (uint32_t)((u >> 31) != 0 ? 0 - turn : turn);
    float hi = (float)r;
    *lo = (float)(r - hi);
    return hi;
}

static inline float dev_trig_slow_f32(float x, uint32_t shift) {
    float lo;
    uint32_t quadrant;
    float r = dev_trig_reduce_slow_f32(x, &lo, &quadrant);
    return r == r ? dev_trig_eval_f32(r, lo, quadrant + shift) : r;
}

DEV_FN float dev_sin_fast_f32(float x) {
    return dev_abs_f32(x) < 0x1p-30f ? x : dev_trig_fast_f32(x, 0); // keeps -0
}

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

// ---- erf ----

// erf(a) / a - 1 of s = a^2 <= 1
DEV_FN float dev_erf_poly_f32(float s) {
    float p = 0x1.47732ep-14f;
    p = dev_fma_f32(p, s, -0x1.a3518ap-11f);
    p = dev_fma_f32(p, s, 0x1.53f226p-8f);
    p = dev_fma_f32(p, s, -0x1.b7f71ap-6f);
    p = dev_fma_f32(p, s, 0x1.ce2ce6p-4f);
    p = dev_fma_f32(p, s, -0x1.81273ep-2f);
    p = dev_fma_f32(p, s, 0x1.06eba8p-3f);
    return p;
}

DEV_FN float dev_erf_f32(float x) {
    float a = dev_abs_f32(x);
    float s = a * a;
    // erf(a) = a + a * p(a^2) below 1.0f, and 1 - erfc(1) * exp(-z q(z)), z = a - 1, above
    float p = dev_erf_poly_f32(s);
    float small = dev_fma_f32(a, p, a);
    float z = (a > 4.0f ? 4.0f : a) - 1.0f;
    float q = 0x1.6d727p-16f;
    q = dev_fma_f32(q, z, -0x1.2fea7cp-12f);
    q = dev_fma_f32(q, z, 0x1.07bf42p-9f);
    q = dev_fma_f32(q, z, -0x1.4933aep-7f);
    q = dev_fma_f32(q, z, 0x1.547cc4p-5f);
    q = dev_fma_f32(q, z, 0x1.afabbcp-1f);
    q = dev_fma_f32(q, z, 0x1.51c9bp+1f);
    float big = dev_fma_f32(0x1.422616p-3f, -dev_exp_core_f32(-(z * q)), 1.0f);
    return dev_copysign_f32(a < 1.0f ? small : big, x);
}

// ---- expm1 ----

DEV_FN float dev_expm1_f32(float x) {
    float c = x < -18.0f ? -18.0f : x; // -1 from there on
    c = c > 89.0f ? 89.0f : c;
    float z = dev_fma_f32(c, 0x1.715476p+0f, DEV_ROUND_F32);
    float n = z - DEV_ROUND_F32;
    float a = dev_fma_f32(n, -0x1.62e43p-1f, c); // exact
    float b = n * 0x1.05c610p-29f;
    float r = a + b;
    float rl = b - (r - a);
    float q = dev_exp_poly_f32(r);
    float s2 = r * r;
    float s2l = dev_fma_f32(r, r, -s2);
    float p = dev_fma_f32(s2, q, dev_fma_f32(s2l, 0.5f, rl));
    // half of the result, so that 2^n cannot overflow: (t - 1/2) + t * (r + p), t = 2^(n-1)
    float t = dev_f32_bits((dev_bits_f32(z) - DEV_ROUND_BITS_F32 + 126) << 23);
    float u = t - 0.5f;
    float ul = (t - u) - 0.5f;
    float s = dev_fma_f32(t, r, u);
    float sl = dev_fma_f32(t, r, u - s);
    float y = 2.0f * (s + (dev_fma_f32(t, p, sl) + ul));
    return dev_abs_f32(x) < 0x1p-30f ? x : y; // keeps -0 and denormals
}

// ---- log1p ----

// log((u + c) * 2^up), u > 0 normal and finite, c small beside it; where u is near 1, u + c = 1 + x + xl
DEV_FN float dev_log_two_f32(float u, float c, float x, float xl, float up) {
    uint32_t k = dev_bits_f32(u) - 0x3f2aaaabu;
    int32_t n = (int32_t)k >> 23;
    float e = (float)n;
    float t = dev_f32_bits((k & 0x007fffffu) + 0x3f2aaaabu) - 1.0f;
    // c / 2^n, in two steps because 2^-n may be denormal
    float d = c * 0x1p-64f * dev_f32_bits((uint32_t)(127 + 64 - n) << 23);
    t = n == 0 ? x : t;
    d = n == 0 ? xl : d;
    // log(1 + t + d) = log(1 + t) + d / (1 + t) and a bit
    float rest;
    float restl = dev_log_rest_pair_f32(t, &rest) + dev_fma_f32(-t, dev_fma_f32(-t, d, d), d);
    float s = t + rest;
    return dev_log_sum_f32(e + up, s, (rest - (s - t)) + restl);
}

// log((1 + x + xl) * 2^up), x > -1 and finite, xl below an ulp of x
DEV_FN float dev_log1p_sum_f32(float x, float xl, float up) {
    float u = 1.0f + x;
    float v = u - 1.0f;
    float c = (1.0f - (u - v)) + (x - v) + xl; // u + c = 1 + x + xl
    return dev_log_two_f32(u, c, x, xl, up);
}

DEV_FN float dev_log1p_f32(float x) {
    float r = dev_log1p_sum_f32(x, 0.0f, 0.0f);
    r = dev_abs_f32(x) < 0x1p-30f ? x : r; // keeps -0 and denormals
    r = x < DEV_INF_F32 ? r : x;           // also NaN
    r = x < -1.0f ? DEV_NAN_F32 : r;
    return x == -1.0f ? -DEV_INF_F32 : r;
}

// ---- pow ----
//
// log a is formed as a sum of two numbers (relative error about 2^-34), because the product
// with y makes its absolute error the relative error of the result.

// log(a) = result + *low, a > 0 and finite
DEV_FN float dev_log_pair_f32(float a, float *low) {
    float y = a < 0x1p-126f ? a * 0x1p23f : a;
    uint32_t u = dev_bits_f32(y) - 0x3f3504f3u;
    float k = (float)((int32_t)u >> 23);
    float e = a < 0x1p-126f ? k - 23.0f : k;
    float t = dev_f32_bits((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    // f + fl = t / (2 + t), where d + dl = 2 + t
    float d = 2.0f + t;
    float dl = t - (d - 2.0f);
    float inv = 1.0f / d;
    float f = t * inv;
    float fl = dev_fma_f32(-f, dl, dev_fma_f32(-f, d, t)) * inv;
    // s + sl = f^2, g + gl = f^3
    float s = f * f;
    float sl = dev_fma_f32(f + f, fl, dev_fma_f32(f, f, -s));
    float g = f * s;
    float gl = dev_fma_f32(f, sl, dev_fma_f32(fl, s, dev_fma_f32(f, s, -g)));
    // log = e ln2 + 2 f + 2/3 f^3 + f^5 p(f^2)
    float p = 0x1.dfa316p-3f;
    p = dev_fma_f32(p, s, 0x1.24527ap-2f);
    p = dev_fma_f32(p, s, 0x1.999ap-2f);
    float c3 = g * 0x1.555556p-1f;
    float c3l = dev_fma_f32(g, 0x1.555556p-1f, -c3);
    c3l = dev_fma_f32(g, -0x1.555556p-26f, dev_fma_f32(gl, 0x1.555556p-1f, c3l));
    c3l = dev_fma_f32(g * s, p, c3l);
    float h = e * 0x1.62e4p-1f; // exact
    float f2 = f + f;
    float m = h + f2;
    float ml = f2 - (m - h);
    float b = m + c3;
    float bl = c3 - (b - m);
    float rest = (ml + bl) + dev_fma_f32(e, 0x1.7f7d1cp-20f, dev_fma_f32(2.0f, fl, c3l));
    float hi = b + rest;
    *low = rest - (hi - b);
    return hi;
}

// exp(r + rl) = result + *c, |r| <= ln2/2 and a bit, rl below an ulp of r
DEV_FN float dev_exp_sum_f32(float r, float rl, float *c) {
    float p = dev_fma_f32(r * r, dev_exp_poly_f32(r), rl);
    float s = 1.0f + r;
    *c = (r - (s - 1.0f)) + p;
    return s;
}

// the same times 2^(k - 254), k from 0 to twice that
DEV_FN float dev_exp_tail_f32(float r, float rl, uint32_t k) {
    float c;
    float s = dev_exp_sum_f32(r, rl, &c);
    uint32_t half = k >> 1;
    return (s + c) * dev_f32_bits(half << 23) * dev_f32_bits((k - half) << 23);
}

// x + low = (*k - 254) * ln2 + result + *rl, |low| below an ulp of x
DEV_FN float dev_exp_reduce_f32(float x, float low, float *rl, uint32_t *k) {
    float z = dev_fma_f32(x, 0x1.715476p+0f, DEV_ROUND_F32);
    float n = z - DEV_ROUND_F32;
    float a = dev_fma_f32(n, -0x1.62e43p-1f, x); // exact
    float b = dev_fma_f32(n, 0x1.05c610p-29f, low);
    float r = a + b;
    *rl = b - (r - a);
    *k = dev_bits_f32(z) - DEV_ROUND_BITS_F32 + 254;
    return r;
}

// exp(x + low), |low| below an ulp of x
DEV_FN float dev_exp_pair_f32(float x, float low) {
    float rl;
    uint32_t k;
    float r = dev_exp_reduce_f32(x, low, &rl, &k);
    return dev_exp_tail_f32(r, rl, k);
}

DEV_FN float dev_pow_f32(float x, float y) {
    float a = dev_abs_f32(x);
    float low;
    float hi = dev_log_pair_f32(a, &low);
    float v = y * hi;
    float vl = dev_fma_f32(y, low, dev_fma_f32(y, hi, -v));
    // beyond these the result is 0 or infinite; the low part there may be NaN
    vl = v < -110.0f ? 0.0f : vl;
    v = v < -110.0f ? -110.0f : v;
    vl = v > 90.0f ? 0.0f : vl;
    v = v > 90.0f ? 90.0f : v;
    float r = dev_exp_pair_f32(v, vl);

    // C99 7.12.7.4 and F.9.4.4. Every select below is one line of that table.
    float half = y * 0.5f;
    uint32_t yes = 1;
    uint32_t no = 0;
    uint32_t whole = dev_floor_f32(y) == y ? yes : no;
    uint32_t odd = dev_floor_f32(half) == half ? no : whole;
    float limit = (a > 1.0f ? yes : no) == (y > 0.0f ? yes : no) ? DEV_INF_F32 : 0.0f;
    r = a == 0.0f ? limit : r;
    r = a == DEV_INF_F32 ? limit : r;
    r = dev_abs_f32(y) == DEV_INF_F32 ? limit : r;
    r = a == 1.0f ? 1.0f : r;
    uint32_t sign = (dev_bits_f32(x) >> 31) & odd;
    r = dev_f32_bits(dev_bits_f32(r) ^ (sign << 31));
    uint32_t bad = (x < 0.0f ? yes : no) & (a < DEV_INF_F32 ? yes : no) & (whole ^ 1);
    r = bad != 0 ? DEV_NAN_F32 : r;
    r = x != x ? x : r;
    r = y != y ? y : r;
    r = y == 0.0f ? 1.0f : r;
    return x == 1.0f ? 1.0f : r;
}
