// Device math, float64: exp log sin cos tanh (list and error bounds: math.def).
//
// Form and sources as in math_f32.h. 64-bit integers are only added, shifted right logically and
// masked in the vectorised parts, because AVX2 has no 64-bit arithmetic shift and no conversion
// between 64-bit integers and doubles; both go through the bits of a double instead.
#pragma once
#include "bits.h"

#define DEV_TRIG_FAST_F64 0x1p30

#define DEV_ROUND_F64      0x1.8p52
#define DEV_ROUND_BITS_F64 0x4338000000000000ull

// ---- exp ----

// (exp(r) - 1 - r) / r^2 on |r| <= ln2/2
DEV_FN double dev_exp_poly_f64(double r) {
    double q = 0x1.ada2347932e5dp-26;
    q = dev_fma_f64(q, r, 0x1.28aefc280be14p-22);
    q = dev_fma_f64(q, r, 0x1.71df1086eb141p-19);
    q = dev_fma_f64(q, r, 0x1.a019987051527p-16);
    q = dev_fma_f64(q, r, 0x1.a01a0132c9035p-13);
    q = dev_fma_f64(q, r, 0x1.6c16c184be531p-10);
    q = dev_fma_f64(q, r, 0x1.1111111126779p-7);
    q = dev_fma_f64(q, r, 0x1.55555555505e4p-5);
    q = dev_fma_f64(q, r, 0x1.55555555554fdp-3);
    return dev_fma_f64(q, r, 0x1.000000000000ap-1);
}

// exp(x) for -746 <= x <= 710 or NaN
DEV_FN double dev_exp_core_f64(double x) {
    double z = dev_fma_f64(x, 0x1.71547652b82fep+0, DEV_ROUND_F64);
    double n = z - DEV_ROUND_F64;
    double r = dev_fma_f64(n, -0x1.62e42fefa39efp-1, x);
    r = dev_fma_f64(n, -0x1.abc9e3b39803fp-56, r);
    double p = dev_fma_f64(r * r, dev_exp_poly_f64(r), r);
    uint64_t k = dev_bits_f64(z) - DEV_ROUND_BITS_F64 + 2046;
    uint64_t half = k >> 1;
    return (1.0 + p) * dev_f64_bits(half << 52) * dev_f64_bits((k - half) << 52);
}

DEV_FN double dev_exp_f64(double x) {
    double c = x < -746.0 ? -746.0 : x;
    c = c > 710.0 ? 710.0 : c;
    return dev_exp_core_f64(c);
}

// ---- log ----

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); returns m - 1
DEV_FN double dev_log_split_f64(double x, double *e) {
    double y = x < 0x1p-1022 ? x * 0x1p52 : x;
    uint64_t u = dev_bits_f64(y) - 0x3fe6a09e667f3bcdull;
    // e + 1023 >= 0, made a double by putting it below the exponent of 2^52
    uint64_t k = (u + (1023ull << 52)) >> 52;
    double d = dev_f64_bits(k | 0x4330000000000000ull) - (0x1p52 + 1023.0);
    *e = x < 0x1p-1022 ? d - 52.0 : d;
    return dev_f64_bits((u & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull) - 1.0;
}

DEV_FN double dev_log_f64(double x) {
    double e;
    double t = dev_log_split_f64(x, &e);
    double f = t / (2.0 + t);
    double s = f * f;
    double p = 0x1.2f1344a4d5e0cp-3;
    p = dev_fma_f64(p, s, 0x1.39a06ece67822p-3);
    p = dev_fma_f64(p, s, 0x1.74664aec1359cp-3);
    p = dev_fma_f64(p, s, 0x1.c71c51d337577p-3);
    p = dev_fma_f64(p, s, 0x1.249249422df32p-2);
    p = dev_fma_f64(p, s, 0x1.999999997f9dcp-2);
    p = dev_fma_f64(p, s, 0x1.5555555555593p-1);
    // log(1 + t) = t - t^2/2 + f * (t^2/2 + s * p)
    double h = 0.5 * t * t;
    double w = f * dev_fma_f64(s, p, h);
    double hi = e * 0x1.62e42feep-1; // exact
    double a = hi + t;
    double c = t - (a - hi);
    double r = a + (c - (h - dev_fma_f64(e, 0x1.a39ef35793c76p-33, w)));
    r = x < DEV_INF_F64 ? r : x; // also NaN
    r = x < 0.0 ? DEV_NAN_F64 : r;
    return x == 0.0 ? -DEV_INF_F64 : r;
}

// ---- sin, cos ----

// sin(r + lo) or cos(r + lo) by quadrant, |r| <= pi/4 and a bit, lo below an ulp of r
DEV_FN double dev_trig_eval_f64(double r, double lo, uint64_t quadrant) {
    double s = r * r;
    double h = dev_fma_f64(s, -0.5, 1.0);
    double p = 0x1.5d8b35c603f44p-33;
    p = dev_fma_f64(p, s, -0x1.ae5e4b21a47fbp-26);
    p = dev_fma_f64(p, s, 0x1.71de3554bf205p-19);
    p = dev_fma_f64(p, s, -0x1.a01a019be8be9p-13);
    p = dev_fma_f64(p, s, 0x1.111111110f72ep-7);
    p = dev_fma_f64(p, s, -0x1.5555555555548p-3);
    double sine = r + dev_fma_f64(r * s, p, lo * h);
    double q = -0x1.8fa54e80761d8p-37;
    q = dev_fma_f64(q, s, 0x1.1ee9d9bfcba8ep-29);
    q = dev_fma_f64(q, s, -0x1.27e4f7ef07db2p-22);
    q = dev_fma_f64(q, s, 0x1.a01a019c8c7aep-16);
    q = dev_fma_f64(q, s, -0x1.6c16c16c15005p-10);
    q = dev_fma_f64(q, s, 0x1.555555555554bp-5);
    double hl = dev_fma_f64(s, -0.5, 1.0 - h); // what h lost
    double cosine = h + dev_fma_f64(s * s, q, dev_fma_f64(-r, lo, hl));
    double v = (quadrant & 1u) != 0 ? cosine : sine;
    return dev_f64_bits(dev_bits_f64(v) ^ ((quadrant & 2u) << 62));
}

// shift 0: sin, 1: cos
DEV_FN double dev_trig_fast_f64(double x, uint64_t shift) {
    double z = dev_fma_f64(x, 0x1.45f306dc9c883p-1, DEV_ROUND_F64);
    double n = z - DEV_ROUND_F64;
    double a = dev_fma_f64(n, -0x1.921fb54442d18p+0, x); // exact
    double ph = n * -0x1.1a62633145c07p-54;
    double pl = dev_fma_f64(n, -0x1.1a62633145c07p-54, -ph);
    double r = a + ph; // a is a multiple of ulp(ph), so the rest is exact
    double lo = dev_fma_f64(n, 0x1.f1976b7ed8fbcp-110, (ph - (r - a)) + pl);
    return dev_trig_eval_f64(r, lo, dev_bits_f64(z) + shift);
}

// 64 bits of the table w from bit `at` of the first word on
DEV_FN uint64_t dev_table_bits(const uint64_t *w, uint32_t at) {
    return w[0] << at | w[1] >> 1 >> (63 - at);
}

// Payne-Hanek, as in math_f32.h, with 192 bits of 2/pi for each argument.
static inline double dev_trig_slow_f64(double x, uint64_t shift) {
    static const uint64_t two_over_pi[20] = {
        0,
        0xa2f9836e4e441529ull,
        0xfc2757d1f534ddc0ull,
        0xdb6295993c439041ull,
        0xfe5163abdebbc561ull,
        0xb7246e3a424dd2e0ull,
        0x06492eea09d1921cull,
        0xfe1deb1cb129a73eull,
        0xe88235f52ebb4484ull,
        0xe99c7026b45f7e41ull,
        0x3991d639835339f4ull,
        0x9c845f8bbdf9283bull,
        0x1ff897ffde05980full,
        0xef2f118b5a0a6d1full,
        0x6d367ecf27cb09b7ull,
        0x4f463f669e5fea2dull,
        0x7527bac7ebe5f17bull,
        0x3d0739f78a5292eaull,
        0x6bfb5fb11f8d5d08ull,
        0x56033046fc7b6babull,
    };
    uint64_t u = dev_bits_f64(x);
    uint32_t biased = (uint32_t)(u >> 52) & 0x7ffu;
    if (biased == 0x7ff) return x - x;
    if (dev_abs_f64(x) <= DEV_TRIG_FAST_F64) return dev_trig_fast_f64(x, shift);
    uint64_t m = (u & 0x000fffffffffffffull) | 0x0010000000000000ull;
    uint32_t at = biased - 1075 - 2 + 64; // first bit whose product is not a multiple of 4
    const uint64_t *w = two_over_pi + (at >> 6);
    uint64_t w0 = dev_table_bits(w, at & 63);
    uint64_t w1 = dev_table_bits(w + 1, at & 63);
    uint64_t w2 = dev_table_bits(w + 2, at & 63);
    // top:low = the highest 128 of the 192 bits of m * (w0:w1:w2); 2^64 in top is a full turn
    uint64_t low = m * w1 + dev_mulhi_u64(m, w2);
    uint64_t top = m * w0 + dev_mulhi_u64(m, w1) + (low < m * w1 ? 1 : 0);
    uint64_t quadrant = (top + (1ull << 61)) >> 62;
    top -= quadrant << 62;
    uint64_t minus = top >> 63 != 0 ? ~0ull : 0; // negate, so that nothing cancels below
    low = (low ^ minus) - minus;
    top = (top ^ minus) + (minus != 0 && low == 0 ? 1 : 0);
    double a = (double)top;
    double b = (double)(int64_t)(top - (uint64_t)a) + (double)low * 0x1p-64;
    double hi = a + b;
    double lo = b - (hi - a);
    double r = hi * 0x1.921fb54442d18p-62;
    double rest = dev_fma_f64(hi, 0x1.921fb54442d18p-62, -r);
    rest = dev_fma_f64(hi, 0x1.1a62633145c07p-116, dev_fma_f64(lo, 0x1.921fb54442d18p-62, rest));
    uint64_t flip = minus ^ ((u >> 63) != 0 ? ~0ull : 0);
    r = flip != 0 ? -r : r;
    rest = flip != 0 ? -rest : rest;
    quadrant = (u >> 63) != 0 ? 0 - quadrant : quadrant;
    double sum = r + rest;
    return dev_trig_eval_f64(sum, rest - (sum - r), quadrant + shift);
}

DEV_FN double dev_sin_fast_f64(double x) { return dev_trig_fast_f64(x, 0); }
DEV_FN double dev_cos_fast_f64(double x) { return dev_trig_fast_f64(x, 1); }
static inline double dev_sin_slow_f64(double x) { return dev_trig_slow_f64(x, 0); }
static inline double dev_cos_slow_f64(double x) { return dev_trig_slow_f64(x, 1); }

// 1 if the fast form holds (false for NaN and infinities)
DEV_FN int dev_trig_in_fast_f64(double x) { return dev_abs_f64(x) <= DEV_TRIG_FAST_F64; }

DEV_FN double dev_sin_f64(double x) {
    return dev_trig_in_fast_f64(x) ? dev_sin_fast_f64(x) : dev_sin_slow_f64(x);
}

DEV_FN double dev_cos_f64(double x) {
    return dev_trig_in_fast_f64(x) ? dev_cos_fast_f64(x) : dev_cos_slow_f64(x);
}

// ---- tanh ----

DEV_FN double dev_tanh_f64(double x) {
    double a = dev_abs_f64(x);
    double s = a * a;
    double p = 0x1.6dd864424b35cp-26;
    p = dev_fma_f64(p, s, -0x1.f4306be646dcdp-23);
    p = dev_fma_f64(p, s, 0x1.552aa0aed49f6p-20);
    p = dev_fma_f64(p, s, -0x1.3f3f3f60dd5f3p-18);
    p = dev_fma_f64(p, s, 0x1.df1d055b6bb52p-17);
    p = dev_fma_f64(p, s, -0x1.3f4b674c8fa4p-15);
    p = dev_fma_f64(p, s, 0x1.939b58b32732ep-14);
    p = dev_fma_f64(p, s, -0x1.f4de92bb7c889p-13);
    p = dev_fma_f64(p, s, 0x1.354b4967f1edfp-11);
    p = dev_fma_f64(p, s, -0x1.7da1da379fd93p-10);
    p = dev_fma_f64(p, s, 0x1.d6d3aed3ec0d7p-9);
    p = dev_fma_f64(p, s, -0x1.226e3458c6844p-7);
    p = dev_fma_f64(p, s, 0x1.664f487873cdcp-6);
    p = dev_fma_f64(p, s, -0x1.ba1ba1b9dd852p-5);
    p = dev_fma_f64(p, s, 0x1.1111111110b21p-3);
    p = dev_fma_f64(p, s, -0x1.555555555554fp-2);
    double small = dev_fma_f64(a * s, p, a);
    double c = a > 20.0 ? 20.0 : a;
    double big = 1.0 - 2.0 / (dev_exp_core_f64(c + c) + 1.0);
    return dev_copysign_f64(a < 1.0 ? small : big, x);
}
