// Device math, F64: asinh acosh atanh, erfc erfinv (form and sources: math_f32.h).
#pragma once
#include "math_f64.h"

// ---- asinh, acosh, atanh: log1p of a sum of two numbers ----

DEV_FN double dev_asinh_f64(double x) {
    double a = dev_abs_f64(x);
    double far = a > 0x1p60 ? 1.0 : 0.0; // log(2 a) from there on
    double c = a > 0x1p60 ? 1.0 : a;
    // z + zl = c + w, w = c^2 / (1 + sqrt(1 + c^2))
    double q = c * c;
    double root = dev_sqrt_f64(1.0 + q);
    double den = 1.0 + root;
    double denl = 1.0 - (den - root);
    double inv = 1.0 / den;
    double w = q * inv;
    double wl = (dev_fma_f64(-w, den, q) + dev_fma_f64(-w, denl, dev_fma_f64(c, c, -q))) * inv;
    double z = c + w;
    double zl = ((c - z) + w) + wl;
    z = far != 0.0 ? a : z;
    zl = far != 0.0 ? 0.0 : zl;
    double r = dev_copysign_f64(dev_log1p_sum_f64(z, zl, far), x);
    r = a < 0x1p-60 ? x : r; // keeps -0 and denormals
    return a < DEV_INF_F64 ? r : x;
}

DEV_FN double dev_acosh_f64(double x) {
    double far = x > 0x1p60 ? 1.0 : 0.0; // log(2 x) from there on
    // z + zl = t + sqrt(t^2 + 2 t), t = x - 1
    double t = x > 0x1p60 ? 1.0 : x - 1.0;
    double twice = t + t;
    double q = t * t;
    double h = twice + q;
    double hl = t < 2.0 ? (twice - h) + q : (q - h) + twice;
    hl += dev_fma_f64(t, t, -q);
    double root = dev_sqrt_f64(h);
    double rootl = (dev_fma_f64(-root, root, h) + hl) * 0.5 / root;
    double z = t + root;
    double zl = ((root - z) + t) + rootl;
    z = far != 0.0 ? x : z;
    zl = far != 0.0 ? 0.0 : zl;
    double r = dev_log1p_sum_f64(z, zl, far);
    r = x < DEV_INF_F64 ? r : x;
    r = x == 1.0 ? 0.0 : r;
    return x < 1.0 ? DEV_NAN_F64 : r;
}

DEV_FN double dev_atanh_f64(double x) {
    double a = dev_abs_f64(x);
    // log1p(2 a / (1 - a)) / 2
    double d = 1.0 - a;
    double dl = (1.0 - d) - a;
    double inv = 1.0 / d;
    double twice = a + a;
    double z = twice * inv;
    double zl = (dev_fma_f64(-z, d, twice) - z * dl) * inv;
    double r = dev_copysign_f64(0.5 * dev_log1p_sum_f64(z, zl, 0.0), x);
    r = a < 0x1p-60 ? x : r; // keeps -0 and denormals
    r = a == 1.0 ? dev_copysign_f64(DEV_INF_F64, x) : r;
    r = a > 1.0 ? DEV_NAN_F64 : r;
    return x == x ? r : x;
}

// ---- erfc ----

// erfc(x) for x >= 0.65 or NaN: exp(-x^2) * t * P(t), t = 1 / (x + k), each factor as two numbers
DEV_FN double dev_erfc_far_f64(double x) {
    double den = x + 3.0;
    double denl = x > 3.0 ? 3.0 - (den - x) : x - (den - 3.0);
    double t = 1.0 / den;
    double tl = -t * dev_fma_f64(t, denl, dev_fma_f64(t, den, -1.0));
    double u = dev_fma_f64(t, 8.0, -1.25); // exact
    double p = 0x1.a3e97ac8fa068p-37;
    p = dev_fma_f64(p, u, -0x1.4f819c21bc38fp-35);
    p = dev_fma_f64(p, u, -0x1.50a1707042dc2p-33);
    p = dev_fma_f64(p, u, 0x1.3fd6d9a57f75p-31);
    p = dev_fma_f64(p, u, 0x1.290e07753c71bp-30);
    p = dev_fma_f64(p, u, -0x1.a9bab8697360fp-28);
    p = dev_fma_f64(p, u, -0x1.b57169b657733p-28);
    p = dev_fma_f64(p, u, 0x1.09f9e66702386p-24);
    p = dev_fma_f64(p, u, 0x1.94a1809e62768p-25);
    p = dev_fma_f64(p, u, -0x1.5858c4e842f61p-21);
    p = dev_fma_f64(p, u, -0x1.6d5a75c981139p-21);
    p = dev_fma_f64(p, u, 0x1.d35d1ffb71d85p-18);
    p = dev_fma_f64(p, u, 0x1.00fd0620e1bb7p-16);
    p = dev_fma_f64(p, u, -0x1.1f3728a4827c5p-14);
    p = dev_fma_f64(p, u, -0x1.7d4fbb3253c51p-12);
    p = dev_fma_f64(p, u, 0x1.28c707c68b417p-17);
    p = dev_fma_f64(p, u, 0x1.a48aad5f54ed8p-8);
    p = dev_fma_f64(p, u, 0x1.1ff7a4f05c699p-5);
    p = dev_fma_f64(p, u, 0x1.e6ab752d06c2dp-4);
    p = dev_fma_f64(p, u, 0x1.34044fd29ad13p-2);
    p = dev_fma_f64(p, u, 0x1.383ede1ebaeaep-1);
    double slope =
        dev_fma_f64(u, dev_fma_f64(u, 0.3564, 0.6016), 0x1.383ede1ebaeaep-1); // of P, roughly
    double m = p * u;
    double hi = 0x1.0561fb5819762p+0 + m;
    double lo = (m - (hi - 0x1.0561fb5819762p+0)) + dev_fma_f64(p, u, -m);
    lo += dev_fma_f64(tl * 8.0, slope, 0x1.b121a748d7b4ep-54);
    double e = t * hi;
    double el = dev_fma_f64(t, lo, dev_fma_f64(tl, hi, dev_fma_f64(t, hi, -e)));
    double v = x * x;
    double rl, c;
    uint64_t k;
    double r = dev_exp_reduce_f64(-v, -dev_fma_f64(x, x, -v), &rl, &k);
    double s = dev_exp_sum_f64(r, rl, &c);
    double y = s * e;
    double yl = dev_fma_f64(s, el, dev_fma_f64(c, e, dev_fma_f64(s, e, -y)));
    uint64_t half = k >> 1;
    return (y + yl) * dev_f64_bits(half << 52) * dev_f64_bits((k - half) << 52);
}

DEV_FN double dev_erfc_f64(double x) {
    double a = dev_abs_f64(x);
    double far = dev_erfc_far_f64(a > 27.5 ? 27.5 : (a < 0.65 ? 0.65 : a));
    // (1 - x) - x p(x^2), erf(x) = x + x p
    double p = dev_erf_poly_f64(a * a);
    double d = 1.0 - x;
    double dl = (1.0 - d) - x;
    double near = d + dev_fma_f64(-x, p, dl);
    return a < 0.65 ? near : (x < 0.0 ? 2.0 - far : far);
}

// ---- erfinv ----

// A guess of 2^-13 (float64: 2^-20) by w = -log(1 - x^2) (such variables: Giles, 2012), then Halley's
// step on erf (kept as y + y p) or, from 0.7 on, erfc.
DEV_FN double dev_erfinv_f64(double x) {
    double a = dev_abs_f64(x);
    double b = 1.0 - a;
    double w = -dev_log_f64(dev_fma_f64(b, a, b));
    double v = dev_sqrt_f64(w);
    double p = 0x1.5d7aa068edd8ap-22;
    p = dev_fma_f64(p, w, -0x1.279ee96879d52p-17);
    p = dev_fma_f64(p, w, 0x1.65ab85e4d846cp-14);
    p = dev_fma_f64(p, w, -0x1.a6171f74d0427p-13);
    p = dev_fma_f64(p, w, -0x1.28ad7cd4ca82bp-9);
    p = dev_fma_f64(p, w, 0x1.79752c8c9cc8cp-7);
    p = dev_fma_f64(p, w, 0x1.db2b54d0c5ba3p-3);
    p = dev_fma_f64(p, w, 0x1.c5bf9575c5881p-1);
    double q = 0x1.16ce95489d1ffp-22;
    q = dev_fma_f64(q, v, -0x1.003832910c145p-16);
    q = dev_fma_f64(q, v, 0x1.95357078f273dp-12);
    q = dev_fma_f64(q, v, -0x1.6fc118116572cp-8);
    q = dev_fma_f64(q, v, 0x1.ab93aa8f3cf54p-5);
    q = dev_fma_f64(q, v, -0x1.4e8801e0e2627p-2);
    q = dev_fma_f64(q, v, 0x1.663a7435e41bbp+0);
    q = dev_fma_f64(q, v, -0x1.0430bcc658d6cp+2);
    q = dev_fma_f64(q, v, 0x1.ecb1f363e575cp+2);
    q = dev_fma_f64(q, v, -0x1.e73bceb333c43p+2);
    q = dev_fma_f64(q, v, 0x1.0ab35bc55ef77p+2);
    double y = a * (w < 6.25 ? p : q);
    double near = dev_fma_f64(y, dev_erf_poly_f64(y * y), y - a);
    double miss = a < 0.7 ? near : b - dev_erfc_f64(y);
    double step = miss * 0x1.c5bf891b4ef6bp-1 * dev_exp_f64(y * y);
    double r = y - step / dev_fma_f64(y, step, 1.0);
    r = a < 0x1p-60 ? dev_fma_f64(a, 0x1.c5bf891b4ef6bp-1, a * -0x1.618f13eb7ca89p-55) : r;
    r = dev_copysign_f64(r, x);
    r = a == 1.0 ? dev_copysign_f64(DEV_INF_F64, x) : r;
    return a > 1.0 ? DEV_NAN_F64 : r;
}
