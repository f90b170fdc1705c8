// Bit casts and small helpers of the device math library.
//
// Everything in src/devlib's math headers keeps to a subset of C that is also CUDA C: no branches,
// no tables in the vectorised part, only + - * /, fma, sqrt, comparisons, selects, integer
// operations and the bit casts below. So the same text is vectorised by the C compiler today and
// can be compiled by our own front end for every back end, with the same bits everywhere
// (build with -ffp-contract=off and denormals on).
#pragma once
#include <stdint.h>

#ifdef SIMT_DEVICE_CODE // our own CUDA C front end
#define DEV_FN               __device__ static inline
#define dev_bits_f32(x)      __float_as_uint(x)
#define dev_f32_bits(u)      __uint_as_float(u)
#define dev_bits_f64(x)      ((uint64_t)__double_as_longlong(x))
#define dev_f64_bits(u)      __longlong_as_double((long long)(u))
#define dev_fma_f32(a, b, c) fmaf(a, b, c)
#define dev_fma_f64(a, b, c) fma(a, b, c)
#define dev_floor_f32(x)     floorf(x)
#define dev_floor_f64(x)     floor(x)
#define dev_sqrt_f32(x)      sqrtf(x)
#define dev_sqrt_f64(x)      sqrt(x)
#define dev_mulhi_u64(a, b)  __umul64hi(a, b)
#else
#include <string.h>
// always inlined: a call left in a loop would stop its vectorisation
#define DEV_FN               static inline __attribute__((always_inline, unused))
#define dev_fma_f32(a, b, c) __builtin_fmaf(a, b, c)
#define dev_fma_f64(a, b, c) __builtin_fma(a, b, c)
#define dev_floor_f32(x)     __builtin_floorf(x)
#define dev_floor_f64(x)     __builtin_floor(x)
#define dev_sqrt_f32(x)      __builtin_sqrtf(x)
#define dev_sqrt_f64(x)      __builtin_sqrt(x)

DEV_FN uint32_t dev_bits_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

DEV_FN float dev_f32_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

DEV_FN uint64_t dev_bits_f64(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

DEV_FN double dev_f64_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

// the high half of the 128-bit product
DEV_FN uint64_t dev_mulhi_u64(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
#endif

#define DEV_NAN_F32 dev_f32_bits(0x7fc00000u)
#define DEV_INF_F32 dev_f32_bits(0x7f800000u)
#define DEV_NAN_F64 dev_f64_bits(0x7ff8000000000000ull)
#define DEV_INF_F64 dev_f64_bits(0x7ff0000000000000ull)

DEV_FN float dev_abs_f32(float x) { return dev_f32_bits(dev_bits_f32(x) & 0x7fffffffu); }
DEV_FN double dev_abs_f64(double x) { return dev_f64_bits(dev_bits_f64(x) & ~(1ull << 63)); }

// |x| with the sign of s
DEV_FN float dev_copysign_f32(float x, float s) {
    return dev_f32_bits((dev_bits_f32(x) & 0x7fffffffu) | (dev_bits_f32(s) & 0x80000000u));
}

DEV_FN double dev_copysign_f64(double x, double s) {
    return dev_f64_bits((dev_bits_f64(x) & ~(1ull << 63)) | (dev_bits_f64(s) & (1ull << 63)));
}
