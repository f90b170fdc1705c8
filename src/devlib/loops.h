// Makes the array loops of vector.h from the scalar functions (used by the loops_*.c files, which are
// compiled once per instruction set). DEV_LOOP(name, S) is the loop's name in this set.
//
// Functions whose fast form does not hold everywhere (sin, cos, tan) run over chunks: test the whole
// chunk, compute it by the fast form, then repair the rare elements by the slow one.
#pragma once
#include "vector.h"

#include <string.h>

#define DEV_PASTE_(a, b)  a##_##b
#define DEV_PASTE(a, b)   DEV_PASTE_(a, b)
#define DEV_ISA(name)     DEV_PASTE(name, SIMT_ISA_NAME)
#define DEV_LOOP(name, S) DEV_ISA(dev_loop_##name##_##S)

#define DEV_LOOP_1(name)                                              \
    void DEV_LOOP(name, f32)(float *dst, const float *src, size_t n); \
    void DEV_LOOP(name, f64)(double *dst, const double *src, size_t n);
#define DEV_LOOP_2(name)                                                            \
    void DEV_LOOP(name, f32)(float *dst, const float *a, const float *b, size_t n); \
    void DEV_LOOP(name, f64)(double *dst, const double *a, const double *b, size_t n);
#define X(name, ID, arity, f32_ulp, f64_ulp) DEV_LOOP_##arity(name)
#include "math.def"
#undef X

enum { CHUNK = 512 };

#define UNARY(name, T, S)                                                                      \
    void DEV_LOOP(name, S)(T * dst, const T *src, size_t n) {                                  \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) dst[i] = dev_##name##_##S(src[i]); \
    }

#define BINARY(name, T, S)                                                                         \
    void DEV_LOOP(name, S)(T * dst, const T *a, const T *b, size_t n) {                            \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) dst[i] = dev_##name##_##S(a[i], b[i]); \
    }

// U: the unsigned integer as wide as T, so that the test vectorises with the same lanes
#define CHUNKED(name, T, S, U, in_fast)                                                        \
    static void __attribute__((noinline)) name##_##S##_fast(T *dst, const T *src, size_t n) {  \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) dst[i] =                           \
            dev_##name##_fast_##S(src[i]);                                                     \
    }                                                                                          \
    static void __attribute__((noinline)) name##_##S##_mixed(T *dst, const T *src, size_t n) { \
        T saved[CHUNK]; /* dst may be src */                                                   \
        memcpy(saved, src, n * sizeof(T));                                                     \
        name##_##S##_fast(dst, src, n);                                                        \
        for (size_t i = 0; i < n; i++)                                                         \
            if (!in_fast(saved[i])) dst[i] = dev_##name##_slow_##S(saved[i]);                  \
    }                                                                                          \
    void DEV_LOOP(name, S)(T * dst, const T *src, size_t n) {                                  \
        for (size_t at = 0; at < n; at += CHUNK) {                                             \
            size_t m = n - at < CHUNK ? n - at : CHUNK;                                        \
            U rare = 0;                                                                        \
            for (size_t i = 0; i < m; i++) rare |= in_fast(src[at + i]) ? 0 : 1;               \
            if (rare == 0)                                                                     \
                name##_##S##_fast(dst + at, src + at, m);                                      \
            else                                                                               \
                name##_##S##_mixed(dst + at, src + at, m);                                     \
        }                                                                                      \
    }

#define CHUNKED_BOTH(name, in_fast)                    \
    CHUNKED(name, float, f32, uint32_t, in_fast##_f32) \
    CHUNKED(name, double, f64, uint64_t, in_fast##_f64)
#define UNARY_BOTH(name) UNARY(name, float, f32) UNARY(name, double, f64)

#define BINARY_BOTH(name) BINARY(name, float, f32) BINARY(name, double, f64)
