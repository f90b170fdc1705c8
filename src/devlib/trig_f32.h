// Device math, F32: tan sinpi cospi asin acos atan atan2 (form and sources: math_f32.h).
//
// Each ends in one rounded sum of a large part and a small correction; the errors of reductions,
// square roots and quotients are carried in the correction (fma gives them exactly).
#pragma once
#include "math_f32.h"

// ---- tan ----

// tan(r + lo), or -1 / tan(r + lo) in odd quadrants; |r| <= pi/4 and a bit, lo below an ulp of r
DEV_FN float dev_tan_eval_f32(float r, float lo, uint32_t quadrant) {
    float s = r * r;
    float p = 0x1.25e71ep-8f;
    p = dev_fma_f32(p, s, -0x1.058a3cp-13f);
    p = dev_fma_f32(p, s, 0x1.687286p-7f);
    p = dev_fma_f32(p, s, 0x1.5baf8ap-6f);
    p = dev_fma_f32(p, s, 0x1.baf398p-5f);
    p = dev_fma_f32(p, s, 0x1.110d1p-3f);
    p = dev_fma_f32(p, s, 0x1.555562p-2f);
    float sl = dev_fma_f32(r, r, -s);
    float cube = r * s;
    float cubel = dev_fma_f32(r, sl, dev_fma_f32(r, s, -cube));
    float t = dev_fma_f32(cube, p, r);
    float w = dev_fma_f32(cube, p, dev_fma_f32(cubel, p, dev_fma_f32(lo, t * t, lo)));
    float hi = r + w;
    float rest = (r - hi) + w;
    float q = -1.0f / hi;
    float cot = dev_fma_f32(q, dev_fma_f32(q, rest, dev_fma_f32(q, hi, 1.0f)), q);
    return (quadrant & 1u) != 0 ? cot : hi;
}

DEV_FN float dev_tan_fast_f32(float x) {
    float lo;
    uint32_t quadrant;
    float r = dev_trig_reduce_f32(x, &lo, &quadrant);
    return dev_abs_f32(x) < 0x1p-30f ? x : dev_tan_eval_f32(r, lo, quadrant); // keeps -0
}

static inline float dev_tan_slow_f32(float x) {
    float lo;
    uint32_t quadrant;
    float r = dev_trig_reduce_slow_f32(x, &lo, &quadrant);
    return r == r ? dev_tan_eval_f32(r, lo, quadrant) : r;
}

DEV_FN float dev_tan_f32(float x) {
    return dev_trig_in_fast_f32(x) ? dev_tan_fast_f32(x) : dev_tan_slow_f32(x);
}

// ---- sinpi, cospi ----

// sin(pi x) or cos(pi x): shift 0 or 1
DEV_FN float dev_trig_pi_f32(float x, uint32_t shift) {
    // far from 0 every number is a multiple of 1/2, so that whole turns come off exactly
    float y = dev_abs_f32(x) < 0x1p20f ? x : x - 2.0f * dev_floor_f32(x * 0.5f);
    float z = dev_fma_f32(y, 2.0f, DEV_ROUND_F32);
    float r = dev_fma_f32(z - DEV_ROUND_F32, -0.5f, y); // exact
    float h = r * 0x1.921fb6p+1f;
    float l = dev_fma_f32(r, -0x1.777a5cp-24f, dev_fma_f32(r, 0x1.921fb6p+1f, -h));
    return dev_trig_eval_f32(h, l, dev_bits_f32(z) + shift);
}

DEV_FN float dev_sinpi_f32(float x) {
    float r = dev_trig_pi_f32(x, 0);
    return r == 0.0f ? dev_copysign_f32(0.0f, x) : r;
}

DEV_FN float dev_cospi_f32(float x) {
    float r = dev_trig_pi_f32(x, 1);
    return r == 0.0f ? 0.0f : r;
}

// ---- asin, acos ----

// asin(s) = s + result for s = |x| <= 1/2, else asin(s) with s = sqrt((1 - |x|) / 2)
DEV_FN float dev_asin_rest_f32(float a, float *s) {
    float z = a < 0.5f ? a * a : (1.0f - a) * 0.5f;
    float root = dev_sqrt_f32(z);
    float lost = dev_fma_f32(-root, root, z) * 0.5f / root;
    lost = root == 0.0f ? 0.0f : lost;
    *s = a < 0.5f ? a : root;
    float p = 0x1.595f9ap-5f;
    p = dev_fma_f32(p, z, 0x1.8c39fep-6f);
    p = dev_fma_f32(p, z, 0x1.747c2ep-5f);
    p = dev_fma_f32(p, z, 0x1.3302p-4f);
    p = dev_fma_f32(p, z, 0x1.5555c8p-3f);
    return dev_fma_f32(*s * z, p, a < 0.5f ? 0.0f : lost);
}

DEV_FN float dev_asin_f32(float x) {
    float a = dev_abs_f32(x);
    float s;
    float w = dev_asin_rest_f32(a, &s);
    float twice = s + s;
    float d = 0x1.921fb6p+0f - twice;
    float dl = (0x1.921fb6p+0f - d) - twice;
    float big = d + (dl + (-0x1.777a5cp-25f - (w + w)));
    return dev_copysign_f32(a < 0.5f ? s + w : big, x);
}

DEV_FN float dev_acos_f32(float x) {
    float a = dev_abs_f32(x);
    float s;
    float w = dev_asin_rest_f32(a, &s);
    // base - (v + vl): pi/2 - (x + w), or 0 + 2 (s + w), or pi - 2 (s + w)
    float sign = a < 0.5f ? dev_copysign_f32(1.0f, x) : dev_copysign_f32(2.0f, -x);
    float v = sign * s;
    float vl = sign * w;
    float base = x < 0.0f ? 0x1.921fb6p+1f : 0.0f;
    float low = x < 0.0f ? -0x1.777a5cp-24f : 0.0f;
    base = a < 0.5f ? 0x1.921fb6p+0f : base;
    low = a < 0.5f ? -0x1.777a5cp-25f : low;
    float d = base - v;
    float dl = (base - d) - v;
    return d + (dl + (low - vl));
}

// ---- atan, atan2 ----

// base + low + atan((num + numl) / (den + denl)), the quotient at most 0.42 in size
DEV_FN float dev_atan_sum_f32(float num, float numl, float den, float denl, float base, float low) {
    float t = num / den;
    float tl = (dev_fma_f32(-t, den, num) + dev_fma_f32(-t, denl, numl)) * (1.0f / den);
    tl = dev_abs_f32(t) < 0x1p-50f ? 0.0f : tl;
    float s = t * t;
    float p = -0x1.f2c9ecp-5f;
    p = dev_fma_f32(p, s, 0x1.b21f9ap-4f);
    p = dev_fma_f32(p, s, -0x1.23b962p-3f);
    p = dev_fma_f32(p, s, 0x1.9991ep-3f);
    p = dev_fma_f32(p, s, -0x1.55554ap-2f);
    float d = base + t;
    float dl = t - (d - base);
    return d + (dl + dev_fma_f32(t * s, p, tl + low));
}

DEV_FN float dev_atan_f32(float x) {
    float a = dev_abs_f32(x);
    a = a > 0x1p60f ? 0x1p60f : a; // pi/2 to the last bit
    // atan(a) below tan(pi/8), pi/4 + atan((a - 1) / (a + 1)), pi/2 + atan(-1 / a)
    float num = a - 1.0f;
    float den = a + 1.0f;
    float numl = a - (num + 1.0f);
    float denl = a < 1.0f ? a - (den - 1.0f) : 1.0f - (den - a);
    float base = 0x1.921fb6p-1f;
    float low = -0x1.777a5cp-26f;
    num = a < 0x1.a8279ap-2f ? a : num;
    den = a < 0x1.a8279ap-2f ? 1.0f : den;
    base = a < 0x1.a8279ap-2f ? 0.0f : base;
    low = a < 0x1.a8279ap-2f ? 0.0f : low;
    num = a > 0x1.3504f4p+1f ? -1.0f : num;
    den = a > 0x1.3504f4p+1f ? a : den;
    base = a > 0x1.3504f4p+1f ? 0x1.921fb6p+0f : base;
    low = a > 0x1.3504f4p+1f ? -0x1.777a5cp-25f : low;
    float middle = a < 0x1.a8279ap-2f ? 0.0f : (a > 0x1.3504f4p+1f ? 0.0f : 1.0f);
    numl = middle == 0.0f ? 0.0f : numl;
    denl = middle == 0.0f ? 0.0f : denl;
    float r = dev_copysign_f32(dev_atan_sum_f32(num, numl, den, denl, base, low), x);
    return x == x ? r : x;
}

DEV_FN float dev_atan2_f32(float y, float x) {
    float a = dev_abs_f32(y);
    float b = dev_abs_f32(x);
    // infinities as ones over zeros; 0 / 0 as 0 / 1 (C99 F.9.1.4)
    float top = a > b ? a : b;
    float ai = a == DEV_INF_F32 ? 1.0f : 0.0f;
    float bi = b == DEV_INF_F32 ? 1.0f : 0.0f;
    a = top == DEV_INF_F32 ? ai : a;
    b = top == DEV_INF_F32 ? bi : b;
    b = top == 0.0f ? 1.0f : b;
    // sums must not overflow, remainders not vanish
    float scale = top > 0x1p125f ? 0.25f : (top < 0x1p-60f ? 0x1p100f : 1.0f);
    a *= scale;
    b *= scale;
    float least = a < b ? a : b;
    float most = a < b ? b : a;
    float num = a - b;
    float den = a + b;
    float numl = a < b ? a - (num + b) : (a - num) - b;
    float denl = least - (den - most);
    float base = 0x1.921fb6p-1f;
    float low = -0x1.777a5cp-26f;
    float flip = 0x1.2d97c8p+1f; // pi - base
    float flipl = -0x1.99bc5cp-28f;
    uint32_t near = a < 0x1.a8279ap-2f * b ? 1 : 0;
    uint32_t far = a > 0x1.3504f4p+1f * b ? 1 : 0;
    num = near != 0 ? a : num;
    den = near != 0 ? b : den;
    base = near != 0 ? 0.0f : base;
    low = near != 0 ? 0.0f : low;
    flip = near != 0 ? 0x1.921fb6p+1f : flip;
    flipl = near != 0 ? -0x1.777a5cp-24f : flipl;
    num = far != 0 ? -b : num;
    den = far != 0 ? a : den;
    base = far != 0 ? 0x1.921fb6p+0f : base;
    low = far != 0 ? -0x1.777a5cp-25f : low;
    flip = far != 0 ? 0x1.921fb6p+0f : flip;
    flipl = far != 0 ? -0x1.777a5cp-25f : flipl;
    numl = (near | far) != 0 ? 0.0f : numl;
    denl = (near | far) != 0 ? 0.0f : denl;
    float sign = dev_copysign_f32(1.0f, x);
    base = sign < 0.0f ? flip : base;
    low = sign < 0.0f ? flipl : low;
    float r = dev_atan_sum_f32(sign * num, sign * numl, den, denl, base, low);
    r = dev_copysign_f32(r, y);
    r = x == x ? r : x;
    return y == y ? r : y;
}
