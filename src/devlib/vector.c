// The array loops of vector.h. Compiled once per instruction set (an isa source): the same
// text, vectorised by the compiler for each.
//
// Functions whose fast form does not hold everywhere (sin, cos) run over chunks: test the whole
// chunk, compute it by the fast form, then repair the rare elements by the slow one.
#include "vector.h"

#include "math_f32.h"
#include "math_f64.h"

#define DEV_PASTE_(a, b) a##_##b
#define DEV_PASTE(a, b)  DEV_PASTE_(a, b)
#define DEV_ISA(name)    DEV_PASTE(name, SIMT_ISA_NAME)

enum { CHUNK = 512 };

#define UNARY(name, T, S)                                                                      \
    static void name##_##S##_loop(T *dst, const T *src, size_t n) {                            \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) dst[i] = dev_##name##_##S(src[i]); \
    }

#define BINARY(name, T, S)                                                                         \
    static void name##_##S##_loop(T *dst, const T *a, const T *b, size_t n) {                      \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) dst[i] = dev_##name##_##S(a[i], b[i]); \
    }

// U: the unsigned integer as wide as T, so that the test vectorises with the same lanes
#define CHUNKED(name, T, S, U, in_fast)                                                        \
    static void name##_##S##_fast(T *dst, const T *src, size_t n) {                            \
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
    static void name##_##S##_loop(T *dst, const T *src, size_t n) {                            \
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

UNARY_BOTH(exp)
UNARY_BOTH(log)
UNARY_BOTH(tanh)
CHUNKED_BOTH(sin, dev_trig_in_fast)
CHUNKED_BOTH(cos, dev_trig_in_fast)

extern const dev_table DEV_ISA(dev_table_of);
const dev_table DEV_ISA(dev_table_of) = {
#define X(name, arity, f32_ulp, f64_ulp) \
    .name##_f32 = name##_f32_loop, .name##_f64 = name##_f64_loop,
#include "math.def"
#undef X
};
