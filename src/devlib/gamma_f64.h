// Device math, F64: tgamma lgamma (form and sources: math_f32.h).
//
// Up to 24.0 the recurrence leads to [1, 2], where 1 / gamma(1 + t) = 1 + t (1 - t) Q(t); the product is kept
// as two numbers, so that factorials come out exact. Beyond: Stirling's series, also as two numbers.
// Not positive arguments: the reflection formula, scalar.
#pragma once
#include "trig_f64.h"

// (p + pl) * (x - j) where that is at least 1
DEV_FN double dev_gamma_step_f64(double x, double j, double p, double *pl) {
    double f = x - j; // exact
    double n = p * f;
    double nl = dev_fma_f64(*pl, f, dev_fma_f64(p, f, -n));
    *pl = f >= 1.0 ? nl : *pl;
    return f >= 1.0 ? n : p;
}

// t = x - floor(x), q(t) as result + *ql; 1 / gamma(1 + t) = 1 + g + gl with g = t (1 - t) q
DEV_FN double dev_gamma_poly_f64(double x, double *t, double *ql, double *g, double *gl) {
    *t = x - dev_floor_f64(x);
    double p = 0x1.ca196ceb80b32p-31;
    p = dev_fma_f64(p, *t, -0x1.8476a2a1b9d8bp-26);
    p = dev_fma_f64(p, *t, 0x1.d2e5db3246253p-23);
    p = dev_fma_f64(p, *t, -0x1.02b6d1188f4e9p-20);
    p = dev_fma_f64(p, *t, 0x1.689305b0d9af9p-22);
    p = dev_fma_f64(p, *t, 0x1.56d1d0e802802p-16);
    p = dev_fma_f64(p, *t, -0x1.c34a2cbe06fcep-14);
    p = dev_fma_f64(p, *t, 0x1.c3768318f9e91p-14);
    p = dev_fma_f64(p, *t, 0x1.4da8a88e6130bp-10);
    p = dev_fma_f64(p, *t, -0x1.85af9d8695d9ep-8);
    p = dev_fma_f64(p, *t, 0x1.e1cc8fc9d1878p-9);
    p = dev_fma_f64(p, *t, 0x1.77cbd93791c1p-5);
    p = dev_fma_f64(p, *t, -0x1.ee3e777ab53b4p-4);
    p = dev_fma_f64(p, *t, -0x1.423382fda20b8p-4);
    double m = p * *t;
    double q = 0x1.2788cfc6fb619p-1 + m;
    *ql = (m - (q - 0x1.2788cfc6fb619p-1)) + (dev_fma_f64(p, *t, -m) + -0x1.45fe675cdb1cp-58);
    double away = 1.0 - *t;
    double awayl = (1.0 - away) - *t;
    double w = *t * away;
    double wl = dev_fma_f64(*t, awayl, dev_fma_f64(*t, away, -w));
    *g = w * q;
    *gl = dev_fma_f64(w, *ql, dev_fma_f64(wl, q, dev_fma_f64(w, q, -*g)));
    return q;
}

// gamma(x) = (result + *pl) / (*d + *dl), 0 < x < 24.0
DEV_FN double dev_gamma_near_f64(double x, double g, double gl, double *pl, double *d, double *dl) {
    double h = 1.0 + g;
    double hl = (g - (h - 1.0)) + gl;
    double xh = x * h;
    double xl = dev_fma_f64(x, hl, dev_fma_f64(x, h, -xh));
    *d = x < 1.0 ? xh : h;
    *dl = x < 1.0 ? xl : hl;
    *pl = 0.0;
    double p = x >= 2.0 ? x - 1.0 : 1.0;
    p = dev_gamma_step_f64(x, 2.0, p, pl);
    p = dev_gamma_step_f64(x, 3.0, p, pl);
    p = dev_gamma_step_f64(x, 4.0, p, pl);
    p = dev_gamma_step_f64(x, 5.0, p, pl);
    p = dev_gamma_step_f64(x, 6.0, p, pl);
    p = dev_gamma_step_f64(x, 7.0, p, pl);
    p = dev_gamma_step_f64(x, 8.0, p, pl);
    p = dev_gamma_step_f64(x, 9.0, p, pl);
    p = dev_gamma_step_f64(x, 10.0, p, pl);
    p = dev_gamma_step_f64(x, 11.0, p, pl);
    p = dev_gamma_step_f64(x, 12.0, p, pl);
    p = dev_gamma_step_f64(x, 13.0, p, pl);
    p = dev_gamma_step_f64(x, 14.0, p, pl);
    p = dev_gamma_step_f64(x, 15.0, p, pl);
    p = dev_gamma_step_f64(x, 16.0, p, pl);
    p = dev_gamma_step_f64(x, 17.0, p, pl);
    p = dev_gamma_step_f64(x, 18.0, p, pl);
    p = dev_gamma_step_f64(x, 19.0, p, pl);
    p = dev_gamma_step_f64(x, 20.0, p, pl);
    p = dev_gamma_step_f64(x, 21.0, p, pl);
    p = dev_gamma_step_f64(x, 22.0, p, pl);
    return p;
}

// (p + pl) / (d + dl)
DEV_FN double dev_gamma_quotient_f64(double p, double pl, double d, double dl, double *low) {
    double inv = 1.0 / d;
    double q = p * inv;
    *low = (dev_fma_f64(-q, d, p) + dev_fma_f64(-q, dl, pl)) * inv;
    return q;
}

// log gamma(x) = result + *low, 24.0 <= x
DEV_FN double dev_stirling_f64(double x, double *low) {
    double ll;
    double l = dev_log_pair_f64(x, &ll);
    double m = x - 0.5;
    double a = m * l;
    double al = dev_fma_f64((x - m) - 0.5, l, dev_fma_f64(m, ll, dev_fma_f64(m, l, -a)));
    double b = a - x;
    double bl = (a - b) - x;
    double c = b + 0x1.d67f1c864beb5p-1;
    double cl = 0x1.d67f1c864beb5p-1 - (c - b);
    double r = 1.0 / x;
    double s = r * r;
    double q = -0x1.368cfa8d971f1p-11;
    q = dev_fma_f64(q, s, 0x1.a019952cd6c35p-11);
    q = dev_fma_f64(q, s, -0x1.6c16c169acccdp-9);
    q = dev_fma_f64(q, s, 0x1.5555555555551p-4);
    double rest = (cl + bl) + (al + dev_fma_f64(q, r, -0x1.65b5a1b7ff5dfp-55));
    double hi = c + rest;
    *low = x > 0x1p500 ? 0.0 : rest - (hi - c);
    // far out x (log x - 1), without overflow on the way
    double y = l - 1.0;
    double v = x * y;
    double vl = dev_fma_f64(x, ((l - y) - 1.0) + ll, dev_fma_f64(x, y, -v));
    v = v < DEV_INF_F64 ? v + vl : v;
    return x > 0x1p500 ? v : hi;
}

// ---- tgamma ----

DEV_FN double dev_tgamma_fast_f64(double x) {
    double t, ql, g, gl, pl, d, dl, low;
    double n = x < 24.0 ? x : 1.0;
    dev_gamma_poly_f64(n, &t, &ql, &g, &gl);
    double p = dev_gamma_near_f64(n, g, gl, &pl, &d, &dl);
    double near = dev_gamma_quotient_f64(p, pl, d, dl, &low);
    near = near < DEV_INF_F64 ? near + low : near;
    double c = x > 172.0 ? 172.0 : (x < 24.0 ? 24.0 : x);
    double l = dev_stirling_f64(c, &low);
    double far = x > 172.0 ? DEV_INF_F64 : dev_exp_pair_f64(l, low);
    return x < 24.0 ? near : far;
}

// a sin(pi a) as result + *low
static inline double dev_gamma_sine_f64(double a, double *low) {
    double l, sine, cosine;
    uint64_t quadrant;
    double r = dev_trig_pi_reduce_f64(a, &l, &quadrant);
    double h = dev_trig_terms_f64(r, l, &sine, &cosine);
    double s = (quadrant & 1u) != 0 ? h : r;
    double sl = (quadrant & 1u) != 0 ? cosine : sine;
    double b = (quadrant & 2u) != 0 ? -a : a;
    double d = b * s;
    double dl = dev_fma_f64(b, sl, dev_fma_f64(b, s, -d));
    h = d + dl;
    *low = dl - (h - d);
    return h;
}

// gamma(-a) = -pi / (a sin(pi a) gamma(a)) as result + *low, 2^-60 <= a < 24
static inline double dev_gamma_reflected_f64(double a, double *low) {
    double t, ql, g, gl, pl, e, el, vl, dl;
    double d = dev_gamma_sine_f64(a, &dl);
    dev_gamma_poly_f64(a, &t, &ql, &g, &gl);
    double p = dev_gamma_near_f64(a, g, gl, &pl, &e, &el);
    double v = dev_gamma_quotient_f64(p, pl, e, el, &vl);
    double h = d * v;
    double hl = dev_fma_f64(d, v, -h) + dev_fma_f64(d, vl, dl * v);
    return dev_gamma_quotient_f64(-0x1.921fb54442d18p+1, -0x1.1a62633145c07p-53, h, hl, low);
}

static inline double dev_tgamma_slow_f64(double x) {
    if (x == 0.0) return 1.0 / x;
    double a = -x, low;
    if (!(a < DEV_INF_F64) || dev_floor_f64(a) == a) return x == x ? DEV_NAN_F64 : x;
    if (a < 0x1p-60) return 1.0 / x;
    if (a < 24.0) {
        double y = dev_gamma_reflected_f64(a, &low);
        return y + low;
    }
    double dl, yl, rl, c;
    double d = dev_gamma_sine_f64(a, &dl);
    if (a > 190.0) return dev_copysign_f64(0.0, -d);
    double y = dev_gamma_quotient_f64(-0x1.921fb54442d18p+1, -0x1.1a62633145c07p-53, d, dl, &yl);
    double l = dev_stirling_f64(a, &low);
    uint64_t k;
    double r = dev_exp_reduce_f64(-l, -low, &rl, &k);
    double s = dev_exp_sum_f64(r, rl, &c);
    double h = y * s;
    double hl = dev_fma_f64(y, c, dev_fma_f64(yl, s, dev_fma_f64(y, s, -h)));
    uint64_t half = k >> 1; // the power of two last: the result may be denormal
    return (h + hl) * dev_f64_bits(half << 52) * dev_f64_bits((k - half) << 52);
}

// 1 if the fast form holds
DEV_FN int dev_gamma_in_fast_f64(double x) { return x > 0.0; }

DEV_FN double dev_tgamma_f64(double x) {
    return dev_gamma_in_fast_f64(x) ? dev_tgamma_fast_f64(x) : dev_tgamma_slow_f64(x);
}

// ---- lgamma ----

// gamma - 1 on [2, 3], 1 / gamma - 1 on [1/2, 2]: without cancellation at 1 and 2
DEV_FN double dev_gamma_away_f64(double x, double t, double q, double ql, double g, double gl,
                                 double *low) {
    // [2, 3]: t (1 - (1 - t) q) / (1 + g); [1/2, 1]: (1 - t) (t^2 q - 1); [1, 2]: g
    double away = 1.0 - t;
    double awayl = (1.0 - away) - t;
    double a = x < 1.0 ? t * t : away;
    double al = x < 1.0 ? dev_fma_f64(t, t, -a) : awayl;
    double v = a * q;
    double vl = dev_fma_f64(a, ql, dev_fma_f64(al, q, dev_fma_f64(a, q, -v)));
    double f = 1.0 - v;
    double fl = ((1.0 - f) - v) - vl;
    double b = x < 1.0 ? -away : t;
    double n = b * f;
    double nl = dev_fma_f64(b, fl, dev_fma_f64(b, f, -n));
    double h = 1.0 + g;
    double hl = (g - (h - 1.0)) + gl;
    double z = dev_gamma_quotient_f64(n, nl, x < 1.0 ? 1.0 : h, x < 1.0 ? 0.0 : hl, low);
    double off = x < 1.0 ? 1.0 : (x < 2.0 ? 0.0 : 1.0);
    *low = off == 0.0 ? gl : *low;
    return off == 0.0 ? g : z;
}

// log|gamma(x)| below 24.0: the logarithm of u + ul (times 2^up), negative below 2
DEV_FN double dev_lgamma_near_f64(double x) {
    double t, ql, g, gl, pl, d, dl, low, zl;
    double q = dev_gamma_poly_f64(x, &t, &ql, &g, &gl);
    double p = dev_gamma_near_f64(x, g, gl, &pl, &d, &dl);
    double ratio = dev_gamma_quotient_f64(p, pl, d, dl, &low);
    // gamma for x >= 3, its reciprocal below 1/2
    double u = x < 0.5 ? d : ratio;
    double ul = x < 0.5 ? dl : low;
    double up = x < 0x1p-300 ? -900.0 : 0.0;
    u = x < 0x1p-300 ? x * 0x1p900 : u;
    ul = x < 0x1p-300 ? 0.0 : ul;
    // between, what it differs from 1 by
    double z = dev_gamma_away_f64(x, t, q, ql, g, gl, &zl);
    z = x < 0x1p-300 ? u - 1.0 : z;
    zl = x < 0x1p-300 ? 0.0 : zl;
    double off = x < 0.5 ? 1.0 : (x < 3.0 ? 0.0 : 1.0);
    double v = 1.0 + z;
    double w = v - 1.0;
    double vl = (1.0 - (v - w)) + (z - w) + zl;
    u = off == 0.0 ? v : u;
    ul = off == 0.0 ? vl : ul;
    double r = dev_log_two_f64(u, ul, z, zl, up);
    return x < 2.0 ? -r : r;
}

DEV_FN double dev_lgamma_fast_f64(double x) {
    // clamped by their bits: of selects on x, GCC makes branches that stop the vectorisation
    uint64_t u = dev_bits_f64(x);
    uint64_t limit = dev_bits_f64(24.0);
    double low;
    double near = dev_lgamma_near_f64(dev_f64_bits(u < limit ? u : limit));
    double far = dev_stirling_f64(dev_f64_bits(u > limit ? u : limit), &low);
    return (x < 24.0 ? near : far) + 0.0; // +0 at 1
}

static inline double dev_lgamma_slow_f64(double x) {
    double a = -x, low;
    if (!(a < DEV_INF_F64) || dev_floor_f64(a) == a) return x == x ? DEV_INF_F64 : x;
    if (a < 0x1p-60) return -dev_log_f64(a);
    if (a < 24.0) { // all zeros are here: one logarithm, of gamma as two numbers
        double y = dev_gamma_reflected_f64(a, &low);
        double u = dev_abs_f64(y);
        double ul = y < 0.0 ? -low : low;
        return dev_log_two_f64(u, ul, u - 1.0, ul, 0.0);
    }
    // log pi - log(a |sin(pi a)|) - log gamma(a), the last the largest
    double dl, ml;
    double d = dev_gamma_sine_f64(a, &dl);
    double m = dev_log_pair_f64(dev_abs_f64(d), &ml);
    double l = dev_stirling_f64(a, &low);
    double t = l + m;
    double tl = (m - (t - l)) + (ml + dl / d) + low;
    double v = 0x1.250d048e7a1bdp+0 - t;
    double vl = 0x1.250d048e7a1bdp+0 - (v + t);
    return v + (vl + (0x1.7abf2ad8d5088p-57 - tl));
}

DEV_FN double dev_lgamma_f64(double x) {
    return dev_gamma_in_fast_f64(x) ? dev_lgamma_fast_f64(x) : dev_lgamma_slow_f64(x);
}
