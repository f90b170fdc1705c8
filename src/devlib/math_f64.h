// Device math, float64: exp log sin cos tanh erf expm1 log1p pow (list and error bounds: math.def).
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
    double q = 0x1.2022ebc2b0f4cp-29;
    q = dev_fma_f64(q, r, 0x1.af734c75d8c6bp-26);
    q = dev_fma_f64(q, r, 0x1.27e4626a3fcc2p-22);
    q = dev_fma_f64(q, r, 0x1.71ddeb2a85d14p-19);
    q = dev_fma_f64(q, r, 0x1.a01a01e08c3cp-16);
    q = dev_fma_f64(q, r, 0x1.a01a01b5cec02p-13);
    q = dev_fma_f64(q, r, 0x1.6c16c16c0b3b1p-10);
    q = dev_fma_f64(q, r, 0x1.111111110e57dp-7);
    q = dev_fma_f64(q, r, 0x1.555555555556bp-5);
    q = dev_fma_f64(q, r, 0x1.555555555555dp-3);
    return dev_fma_f64(q, r, 0x1p-1);
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

// log(1 + t) - t = result - *h on [sqrt(1/2) - 1, sqrt(2) - 1]
DEV_FN double dev_log_parts_f64(double t, double *h) {
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
    *h = 0.5 * t * t;
    return f * dev_fma_f64(s, p, *h);
}

// log(1 + t) - t = *high + result
DEV_FN double dev_log_rest_pair_f64(double t, double *high) {
    double h;
    double w = dev_log_parts_f64(t, &h);
    *high = -h;
    return w - dev_fma_f64(0.5 * t, t, -h);
}

// e * ln2 + log(1 + t) + d, d small beside t
DEV_FN double dev_log_sum_f64(double e, double t, double d) {
    double h;
    double w = dev_log_parts_f64(t, &h);
    double hi = e * 0x1.62e42feep-1; // exact
    double a = hi + t;
    double c = t - (a - hi);
    return a + (c - (h - (dev_fma_f64(e, 0x1.a39ef35793c76p-33, w) + d)));
}

DEV_FN double dev_log_f64(double x) {
    double e;
    double t = dev_log_split_f64(x, &e);
    double r = dev_log_sum_f64(e, t, 0.0);
    r = x < DEV_INF_F64 ? r : x; // also NaN
    r = x < 0.0 ? DEV_NAN_F64 : r;
    return x == 0.0 ? -DEV_INF_F64 : r;
}

// ---- sin, cos ----

// sin(r + lo) = r + *sine, cos(r + lo) = result + *cosine; |r| <= pi/4 and a bit, lo below an ulp of r
DEV_FN double dev_trig_terms_f64(double r, double lo, double *sine, double *cosine) {
    double s = r * r;
    double h = dev_fma_f64(s, -0.5, 1.0);
    double p = 0x1.5d8b35c603f44p-33;
    p = dev_fma_f64(p, s, -0x1.ae5e4b21a47fbp-26);
    p = dev_fma_f64(p, s, 0x1.71de3554bf205p-19);
    p = dev_fma_f64(p, s, -0x1.a01a019be8be9p-13);
    p = dev_fma_f64(p, s, 0x1.111111110f72ep-7);
    p = dev_fma_f64(p, s, -0x1.5555555555548p-3);
    *sine = dev_fma_f64(r * s, p, lo * h);
    double q = -0x1.8fa54e80761d8p-37;
    q = dev_fma_f64(q, s, 0x1.1ee9d9bfcba8ep-29);
    q = dev_fma_f64(q, s, -0x1.27e4f7ef07db2p-22);
    q = dev_fma_f64(q, s, 0x1.a01a019c8c7aep-16);
    q = dev_fma_f64(q, s, -0x1.6c16c16c15005p-10);
    q = dev_fma_f64(q, s, 0x1.555555555554bp-5);
    double hl = dev_fma_f64(s, -0.5, 1.0 - h); // what h lost
    *cosine = dev_fma_f64(s * s, q, dev_fma_f64(-r, lo, hl));
    return h;
}

// sin(r + lo) or cos(r + lo) by quadrant
DEV_FN double dev_trig_eval_f64(double r, double lo, uint64_t quadrant) {
    double sine, cosine;
    double h = dev_trig_terms_f64(r, lo, &sine, &cosine);
    double v = (quadrant & 1u) != 0 ? h + cosine : r + sine;
    return dev_f64_bits(dev_bits_f64(v) ^ ((quadrant & 2u) << 62));
}

// x - quadrant * pi/2 as result + *lo; |x| <= DEV_TRIG_FAST (only the low bits of quadrant matter)
DEV_FN double dev_trig_reduce_f64(double x, double *lo, uint64_t *quadrant) {
    double z = dev_fma_f64(x, 0x1.45f306dc9c883p-1, DEV_ROUND_F64);
    double n = z - DEV_ROUND_F64;
    double a = dev_fma_f64(n, -0x1.921fb54442d18p+0, x); // exact
    double ph = n * -0x1.1a62633145c07p-54;
    double pl = dev_fma_f64(n, -0x1.1a62633145c07p-54, -ph);
    double r = a + ph; // a is a multiple of ulp(ph), so the rest is exact
    *lo = dev_fma_f64(n, 0x1.f1976b7ed8fbcp-110, (ph - (r - a)) + pl);
    *quadrant = dev_bits_f64(z);
    return r;
}

// shift 0: sin, 1: cos
DEV_FN double dev_trig_fast_f64(double x, uint64_t shift) {
    double lo;
    uint64_t quadrant;
    double r = dev_trig_reduce_f64(x, &lo, &quadrant);
    return dev_trig_eval_f64(r, lo, quadrant + shift);
}

// 64 bits of the table w from bit `at` of the first word on
DEV_FN uint64_t dev_table_bits(const uint64_t *w, uint32_t at) {
    return w[0] << at | w[1] >> 1 >> (63 - at);
}

// Payne-Hanek, as in math_f32.h, with 192 bits of 2/pi for each argument.
static inline double dev_trig_reduce_slow_f64(double x, double *lo, uint64_t *quadrant) {
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
    *lo = 0.0;
    *quadrant = 0;
    if (biased == 0x7ff) return x - x; // NaN
    uint64_t m = (u & 0x000fffffffffffffull) | 0x0010000000000000ull;
    uint32_t at = biased - 1075 - 2 + 64; // first bit whose product is not a multiple of 4
    const uint64_t *w = two_over_pi + (at >> 6);
    uint64_t w0 = dev_table_bits(w, at & 63);
    uint64_t w1 = dev_table_bits(w + 1, at & 63);
    uint64_t w2 = dev_table_bits(w + 2, at & 63);
    // top:low = the highest 128 of the 192 bits of m * (w0:w1:w2); 2^64 in top is a full turn
    uint64_t low = m * w1 + dev_mulhi_u64(m, w2);
    uint64_t top = m * w0 + dev_mulhi_u64(m, w1) + (low < m * w1 ? 1 : 0);
    uint64_t turn = (top + (1ull << 61)) >> 62;
    top -= turn << 62;
    uint64_t minus = top >> 63 != 0 ? ~0ull : 0; // negate, so that nothing cancels below
    low = (low ^ minus) - minus;
    top = (top ^ minus) + (minus != 0 && low == 0 ? 1 : 0);
    double a = (double)top;
    double b = (double)(int64_t)(top - (uint64_t)a) + (double)low * 0x1p-64;
    double hi = a + b;
    double tail = b - (hi - a);
    double r = hi * 0x1.921fb54442d18p-62;
    double rest = dev_fma_f64(hi, 0x1.921fb54442d18p-62, -r);
    rest = dev_fma_f64(hi, 0x1.1a62633145c07p-116, dev_fma_f64(tail, 0x1.921fb54442d18p-62, rest));
    uint64_t flip = minus ^ ((u >> 63) != 0 ? ~0ull : 0);
    r = flip != 0 ? -r : r;
    rest = flip != 0 ? -rest : rest;
    *quadrant = (u >> 63) != 0 ? 0 - turn : turn;
    double sum = r + rest;
    *lo = rest - (sum - r);
    return sum;
}

static inline double dev_trig_slow_f64(double x, uint64_t shift) {
    double lo;
    uint64_t quadrant;
    double r = dev_trig_reduce_slow_f64(x, &lo, &quadrant);
    return r == r ? dev_trig_eval_f64(r, lo, quadrant + shift) : r;
}

DEV_FN double dev_sin_fast_f64(double x) {
    return dev_abs_f64(x) < 0x1p-60 ? x : dev_trig_fast_f64(x, 0); // keeps -0
}

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

// ---- erf ----

// erf(a) / a - 1 of s = a^2 <= 1
DEV_FN double dev_erf_poly_f64(double s) {
    double p = -0x1.a0e193b18789ap-31;
    p = dev_fma_f64(p, s, 0x1.d375d9d1c942ap-27);
    p = dev_fma_f64(p, s, -0x1.5b7f4b57e5e6fp-23);
    p = dev_fma_f64(p, s, 0x1.b96980e6faefcp-20);
    p = dev_fma_f64(p, s, -0x1.f4c8072f439a1p-17);
    p = dev_fma_f64(p, s, 0x1.f9a2949d5f7f6p-14);
    p = dev_fma_f64(p, s, -0x1.c02daea5d9f9p-11);
    p = dev_fma_f64(p, s, 0x1.565bccee88ce6p-8);
    p = dev_fma_f64(p, s, -0x1.b82ce311a7f41p-6);
    p = dev_fma_f64(p, s, 0x1.ce2f21a03f88dp-4);
    p = dev_fma_f64(p, s, -0x1.812746b03799dp-2);
    p = dev_fma_f64(p, s, 0x1.06eba8214db68p-3);
    return p;
}

DEV_FN double dev_erf_f64(double x) {
    double a = dev_abs_f64(x);
    double s = a * a;
    // erf(a) = a + a * p(a^2) below 1.0, and 1 - erfc(1) * exp(-z q(z)), z = a - 1, above
    double p = dev_erf_poly_f64(s);
    double small = dev_fma_f64(a, p, a);
    double z = (a > 5.95 ? 5.95 : a) - 1.0;
    double q = 0x1.5c4dd5b78b675p-43;
    q = dev_fma_f64(q, z, -0x1.5ca7dba73b7f5p-38);
    q = dev_fma_f64(q, z, 0x1.4472e858f1d75p-34);
    q = dev_fma_f64(q, z, -0x1.7503b1b8726ap-31);
    q = dev_fma_f64(q, z, 0x1.27a7eb9198df5p-28);
    q = dev_fma_f64(q, z, -0x1.51a08f9eca2cfp-26);
    q = dev_fma_f64(q, z, 0x1.10c7d2365f4bcp-24);
    q = dev_fma_f64(q, z, -0x1.fc1ec3e0c60dbp-24);
    q = dev_fma_f64(q, z, -0x1.ebfd767ad0b59p-24);
    q = dev_fma_f64(q, z, 0x1.1089e22fee342p-19);
    q = dev_fma_f64(q, z, -0x1.41a94a6f97958p-17);
    q = dev_fma_f64(q, z, 0x1.c76f56b2bf3c7p-16);
    q = dev_fma_f64(q, z, -0x1.b8c6e2e1ab613p-16);
    q = dev_fma_f64(q, z, -0x1.f1b46e45addb2p-13);
    q = dev_fma_f64(q, z, 0x1.033f68a5c2333p-9);
    q = dev_fma_f64(q, z, -0x1.48c9d4049c55bp-7);
    q = dev_fma_f64(q, z, 0x1.5477f09c8699dp-5);
    q = dev_fma_f64(q, z, 0x1.afabc11a2907bp-1);
    q = dev_fma_f64(q, z, 0x1.51c9b0006c23cp+1);
    double big = dev_fma_f64(0x1.4226162fbddd5p-3, -dev_exp_core_f64(-(z * q)), 1.0);
    return dev_copysign_f64(a < 1.0 ? small : big, x);
}

// ---- expm1 ----

DEV_FN double dev_expm1_f64(double x) {
    double c = x < -38.0 ? -38.0 : x; // -1 from there on
    c = c > 710.0 ? 710.0 : c;
    double z = dev_fma_f64(c, 0x1.71547652b82fep+0, DEV_ROUND_F64);
    double n = z - DEV_ROUND_F64;
    double a = dev_fma_f64(n, -0x1.62e42fefa39efp-1, c); // exact
    double b = n * -0x1.abc9e3b39803fp-56;
    double r = a + b;
    double rl = b - (r - a);
    double q = 0x1.209e52a2ce087p-29; // (exp(r) - 1 - r - r^2/2) / r^3
    q = dev_fma_f64(q, r, 0x1.af63dd7823fe1p-26);
    q = dev_fma_f64(q, r, 0x1.27e444ad0b396p-22);
    q = dev_fma_f64(q, r, 0x1.71ddf601d6f94p-19);
    q = dev_fma_f64(q, r, 0x1.a01a01d53612bp-16);
    q = dev_fma_f64(q, r, 0x1.a01a01b089b6cp-13);
    q = dev_fma_f64(q, r, 0x1.6c16c16c12a14p-10);
    q = dev_fma_f64(q, r, 0x1.111111110f5c9p-7);
    q = dev_fma_f64(q, r, 0x1.555555555554fp-5);
    q = dev_fma_f64(q, r, 0x1.5555555555559p-3);
    double s2 = r * r;
    double s2l = dev_fma_f64(r, r, -s2);
    double p = 0.5 * s2 + dev_fma_f64(s2, r * q, dev_fma_f64(s2l, 0.5, rl));
    // half of the result, so that 2^n cannot overflow: (t - 1/2) + t * (r + p), t = 2^(n-1)
    double t = dev_f64_bits((dev_bits_f64(z) - DEV_ROUND_BITS_F64 + 1022) << 52);
    double u = t - 0.5;
    double ul = (t - u) - 0.5;
    double s = dev_fma_f64(t, r, u);
    double sl = dev_fma_f64(t, r, u - s);
    double y = 2.0 * (s + (dev_fma_f64(t, p, sl) + ul));
    return dev_abs_f64(x) < 0x1p-60 ? x : y; // keeps -0 and denormals
}

// ---- log1p ----

// log((u + c) * 2^up), u > 0 normal and finite, c small beside it; where u is near 1, u + c = 1 + x + xl
DEV_FN double dev_log_two_f64(double u, double c, double x, double xl, double up) {
    double e;
    double t = dev_log_split_f64(u, &e);
    // c / 2^e, in two steps because 2^-e may be denormal
    uint64_t k = (dev_bits_f64(u) - 0x3fe6a09e667f3bcdull + (1023ull << 52)) >> 52; // e + 1023
    double d = c * 0x1p-64 * dev_f64_bits((1023 + 1023 + 64 - k) << 52);
    t = e == 0.0 ? x : t;
    d = e == 0.0 ? xl : d;
    // log(1 + t + d) = log(1 + t) + d / (1 + t) and a bit
    return dev_log_sum_f64(e + up, t, dev_fma_f64(-t, dev_fma_f64(-t, d, d), d));
}

// log((1 + x + xl) * 2^up), x > -1 and finite, xl below an ulp of x
DEV_FN double dev_log1p_sum_f64(double x, double xl, double up) {
    double u = 1.0 + x;
    double v = u - 1.0;
    double c = (1.0 - (u - v)) + (x - v) + xl; // u + c = 1 + x + xl
    return dev_log_two_f64(u, c, x, xl, up);
}

DEV_FN double dev_log1p_f64(double x) {
    double r = dev_log1p_sum_f64(x, 0.0, 0.0);
    r = dev_abs_f64(x) < 0x1p-60 ? x : r; // keeps -0 and denormals
    r = x < DEV_INF_F64 ? r : x;          // also NaN
    r = x < -1.0 ? DEV_NAN_F64 : r;
    return x == -1.0 ? -DEV_INF_F64 : r;
}

// ---- pow ----
//
// log a is formed as a sum of two numbers (relative error about 2^-64), because the product
// with y makes its absolute error the relative error of the result.

// log(a) = result + *low, a > 0 and finite
DEV_FN double dev_log_pair_f64(double a, double *low) {
    double e;
    double t = dev_log_split_f64(a, &e);
    // f + fl = t / (2 + t), where d + dl = 2 + t
    double d = 2.0 + t;
    double dl = t - (d - 2.0);
    double inv = 1.0 / d;
    double f = t * inv;
    double fl = dev_fma_f64(-f, dl, dev_fma_f64(-f, d, t)) * inv;
    // s + sl = f^2, g + gl = f^3
    double s = f * f;
    double sl = dev_fma_f64(f + f, fl, dev_fma_f64(f, f, -s));
    double g = f * s;
    double gl = dev_fma_f64(f, sl, dev_fma_f64(fl, s, dev_fma_f64(f, s, -g)));
    // log = e ln2 + 2 f + 2/3 f^3 + f^5 p(f^2)
    double p = 0x1.c3297e333d708p-4;
    p = dev_fma_f64(p, s, 0x1.aaea20ee3e339p-4);
    p = dev_fma_f64(p, s, 0x1.e20b99059c563p-4);
    p = dev_fma_f64(p, s, 0x1.111093f511c52p-3);
    p = dev_fma_f64(p, s, 0x1.3b13b313471b6p-3);
    p = dev_fma_f64(p, s, 0x1.745d17417ad57p-3);
    p = dev_fma_f64(p, s, 0x1.c71c71c7227d8p-3);
    p = dev_fma_f64(p, s, 0x1.249249249246fp-2);
    p = dev_fma_f64(p, s, 0x1.999999999999ap-2);
    double c3 = g * 0x1.5555555555555p-1;
    double c3l = dev_fma_f64(g, 0x1.5555555555555p-1, -c3);
    c3l = dev_fma_f64(g, 0x1.5555555555555p-55, dev_fma_f64(gl, 0x1.5555555555555p-1, c3l));
    c3l = dev_fma_f64(g * s, p, c3l);
    double h = e * 0x1.62e42feep-1; // exact
    double f2 = f + f;
    double m = h + f2;
    double ml = f2 - (m - h);
    double b = m + c3;
    double bl = c3 - (b - m);
    double rest = (ml + bl) + dev_fma_f64(e, 0x1.a39ef35793c76p-33, dev_fma_f64(2.0, fl, c3l));
    double hi = b + rest;
    *low = rest - (hi - b);
    return hi;
}

// exp(r + rl) = result + *c, |r| <= ln2/2 and a bit, rl below an ulp of r
DEV_FN double dev_exp_sum_f64(double r, double rl, double *c) {
    double p = dev_fma_f64(r * r, dev_exp_poly_f64(r), rl);
    double s = 1.0 + r;
    *c = (r - (s - 1.0)) + p;
    return s;
}

// the same times 2^(k - 2046), k from 0 to twice that
DEV_FN double dev_exp_tail_f64(double r, double rl, uint64_t k) {
    double c;
    double s = dev_exp_sum_f64(r, rl, &c);
    uint64_t half = k >> 1;
    return (s + c) * dev_f64_bits(half << 52) * dev_f64_bits((k - half) << 52);
}

// x + low = (*k - 2046) * ln2 + result + *rl, |low| below an ulp of x
DEV_FN double dev_exp_reduce_f64(double x, double low, double *rl, uint64_t *k) {
    double z = dev_fma_f64(x, 0x1.71547652b82fep+0, DEV_ROUND_F64);
    double n = z - DEV_ROUND_F64;
    double a = dev_fma_f64(n, -0x1.62e42fefa39efp-1, x); // exact
    double b = dev_fma_f64(n, -0x1.abc9e3b39803fp-56, low);
    double r = a + b;
    *rl = b - (r - a);
    *k = dev_bits_f64(z) - DEV_ROUND_BITS_F64 + 2046;
    return r;
}

// exp(x + low), |low| below an ulp of x
DEV_FN double dev_exp_pair_f64(double x, double low) {
    double rl;
    uint64_t k;
    double r = dev_exp_reduce_f64(x, low, &rl, &k);
    return dev_exp_tail_f64(r, rl, k);
}

DEV_FN double dev_pow_f64(double x, double y) {
    double a = dev_abs_f64(x);
    double low;
    double hi = dev_log_pair_f64(a, &low);
    double v = y * hi;
    double vl = dev_fma_f64(y, low, dev_fma_f64(y, hi, -v));
    // beyond these the result is 0 or infinite; the low part there may be NaN
    vl = v < -760.0 ? 0.0 : vl;
    v = v < -760.0 ? -760.0 : v;
    vl = v > 720.0 ? 0.0 : vl;
    v = v > 720.0 ? 720.0 : v;
    double r = dev_exp_pair_f64(v, vl);

    // C99 7.12.7.4 and F.9.4.4. Every select below is one line of that table.
    double half = y * 0.5;
    uint64_t yes = 1;
    uint64_t no = 0;
    uint64_t whole = dev_floor_f64(y) == y ? yes : no;
    uint64_t odd = dev_floor_f64(half) == half ? no : whole;
    double limit = (a > 1.0 ? yes : no) == (y > 0.0 ? yes : no) ? DEV_INF_F64 : 0.0;
    r = a == 0.0 ? limit : r;
    r = a == DEV_INF_F64 ? limit : r;
    r = dev_abs_f64(y) == DEV_INF_F64 ? limit : r;
    r = a == 1.0 ? 1.0 : r;
    uint64_t sign = (dev_bits_f64(x) >> 63) & odd;
    r = dev_f64_bits(dev_bits_f64(r) ^ (sign << 63));
    uint64_t bad = (x < 0.0 ? yes : no) & (a < DEV_INF_F64 ? yes : no) & (whole ^ 1);
    r = bad != 0 ? DEV_NAN_F64 : r;
    r = x != x ? x : r;
    r = y != y ? y : r;
    r = y == 0.0 ? 1.0 : r;
    return x == 1.0 ? 1.0 : r;
}
