// Exact functions on the exponent and the bits: ldexp, frexp, nextafter (form: bits.h).
#pragma once
#include "bits.h"

// ---- ldexp: x * 2^n, rounded once ----

// Three factors, of which the first two take what the last cannot. Going down they leave 24 (53)
// powers to the last one, so that only its product can be denormal and rounds.
DEV_FN float dev_ldexp_f32(float x, int32_t n) {
    n = n > 400 ? 400 : (n < -400 ? -400 : n);
    int32_t a = n > 127 ? 127 : (n < -126 ? -102 : 0);
    n -= a;
    int32_t b = n > 127 ? 127 : (n < -126 ? -102 : 0);
    n -= b;
    n = n > 127 ? 127 : (n < -126 ? -126 : n);
    return x * dev_f32_bits((uint32_t)(a + 127) << 23) * dev_f32_bits((uint32_t)(b + 127) << 23) *
           dev_f32_bits((uint32_t)(n + 127) << 23);
}

DEV_FN double dev_ldexp_f64(double x, int32_t n) {
    n = n > 4000 ? 4000 : (n < -4000 ? -4000 : n);
    int32_t a = n > 1023 ? 1023 : (n < -1022 ? -969 : 0);
    n -= a;
    int32_t b = n > 1023 ? 1023 : (n < -1022 ? -969 : 0);
    n -= b;
    n = n > 1023 ? 1023 : (n < -1022 ? -1022 : n);
    return x * dev_f64_bits((uint64_t)(a + 1023) << 52) * dev_f64_bits((uint64_t)(b + 1023) << 52) *
           dev_f64_bits((uint64_t)(n + 1023) << 52);
}

// ---- frexp: x = fraction * 2^exponent, 1/2 <= |fraction| < 1; 0, infinite, NaN: itself and 0 ----

DEV_FN float dev_frexp_fraction_f32(float x) {
    float a = dev_abs_f32(x);
    uint32_t u = dev_bits_f32(a < 0x1p-126f ? x * 0x1p24f : x);
    float m = dev_f32_bits((u & 0x807fffffu) | 0x3f000000u);
    m = a < DEV_INF_F32 ? m : x;
    return a == 0.0f ? x : m;
}

DEV_FN int32_t dev_frexp_exponent_f32(float x) {
    float a = dev_abs_f32(x);
    uint32_t u = dev_bits_f32(a < 0x1p-126f ? a * 0x1p24f : a);
    int32_t e = (int32_t)(u >> 23) - (a < 0x1p-126f ? 126 + 24 : 126);
    e = a < DEV_INF_F32 ? e : 0;
    return a == 0.0f ? 0 : e;
}

DEV_FN double dev_frexp_fraction_f64(double x) {
    double a = dev_abs_f64(x);
    uint64_t u = dev_bits_f64(a < 0x1p-1022 ? x * 0x1p54 : x);
    double m = dev_f64_bits((u & 0x800fffffffffffffull) | 0x3fe0000000000000ull);
    m = a < DEV_INF_F64 ? m : x;
    return a == 0.0 ? x : m;
}

DEV_FN int32_t dev_frexp_exponent_f64(double x) {
    double a = dev_abs_f64(x);
    uint64_t u = dev_bits_f64(a < 0x1p-1022 ? a * 0x1p54 : a);
    int32_t e = (int32_t)(u >> 52) - (a < 0x1p-1022 ? 1022 + 54 : 1022);
    e = a < DEV_INF_F64 ? e : 0;
    return a == 0.0 ? 0 : e;
}

// ---- nextafter: the number next to x on the way to y; y where they are equal ----

DEV_FN float dev_nextafter_f32(float x, float y) {
    uint32_t u = dev_bits_f32(x);
    uint32_t step = (x < y ? 1u : 0u) == (x > 0.0f ? 1u : 0u) ? u + 1 : u - 1;
    uint32_t least = (dev_bits_f32(y) & 0x80000000u) | 1u;
    float r = dev_f32_bits(x == 0.0f ? least : step);
    r = x == y ? y : r;
    r = x == x ? r : x;
    return y == y ? r : y;
}

DEV_FN double dev_nextafter_f64(double x, double y) {
    uint64_t u = dev_bits_f64(x);
    uint64_t step = (x < y ? 1u : 0u) == (x > 0.0 ? 1u : 0u) ? u + 1 : u - 1;
    uint64_t least = (dev_bits_f64(y) & (1ull << 63)) | 1u;
    double r = dev_f64_bits(x == 0.0 ? least : step);
    r = x == y ? y : r;
    r = x == x ? r : x;
    return y == y ? r : y;
}
