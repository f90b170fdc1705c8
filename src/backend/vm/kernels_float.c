/* Floating-point loops for f32 and f64 (see kernels.h); f16 and bf16 are computed in f32. */
#include "backend/vm/kernels.h"
#include "devlib/scale.h"

#include "backend/vm/denormal.h"

#include <math.h>
#include <string.h>

typedef float f32;
typedef double f64;

static inline uint32_t bits_f32(f32 x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline f32 from_f32(uint32_t u) {
    f32 x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint64_t bits_f64(f64 x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline f64 from_f64(uint64_t u) {
    f64 x;
    memcpy(&x, &u, sizeof x);
    return x;
}
#define SIGN_f32 0x80000000u
#define SIGN_f64 (1ull << 63)

/* BITS(x), FROM(u), SIGN, FN(name): the helpers of type T in the expressions below */
#define BITS(T, x)     bits_##T(x)
#define FROM(T, u)     from_##T(u)
#define CALL_f32(name) __builtin_##name##f
#define CALL_f64(name) __builtin_##name
#define CALL(T, name)  CALL_##T(name)

#define UNARY(id, e32, e64)           \
    VM_UNARY(id##_f32, f32, f32, e32) \
    VM_UNARY(id##_f64, f64, f64, e64) \
    VM_ROW(id) = {{[VM_F32] = {id##_f32}, [VM_F64] = {id##_f64}}};
#define BINARY(id, e32, e64)                \
    VM_BINARY(id##_f32, f32, f32, f32, e32) \
    VM_BINARY(id##_f64, f64, f64, f64, e64) \
    VM_ROW(id) = {{[VM_F32] = VM_FORMS2(id##_f32), [VM_F64] = VM_FORMS2(id##_f64)}};
#define COMPARE(id, e)                        \
    VM_BINARY(id##_f32, uint8_t, f32, f32, e) \
    VM_BINARY(id##_f64, uint8_t, f64, f64, e) \
    VM_ROW(id) = {{[VM_F32] = VM_FORMS2(id##_f32), [VM_F64] = VM_FORMS2(id##_f64)}};

/* The equal case decides -0 < +0: the bits of equal numbers differ only in the sign of zero. A
 * comparison with NaN is false, which leaves y: right for x NaN in the _num pair. */
#define MINMAX(T, name, op, join)                             \
    static inline T name##_nan_##T(T x, T y) {                \
        T r = x op y ? x : y;                                 \
        r = x == y ? FROM(T, BITS(T, x) join BITS(T, y)) : r; \
        return x != x ? x : r;                                \
    }                                                         \
    static inline T name##_num_##T(T x, T y) {                \
        T r = x op y ? x : y;                                 \
        r = x == y ? FROM(T, BITS(T, x) join BITS(T, y)) : r; \
        return y != y ? x : r;                                \
    }
MINMAX(f32, min, <, |)
MINMAX(f32, max, >, &)
MINMAX(f64, min, <, |)
MINMAX(f64, max, >, &)

BINARY(FADD, x + y, x + y)
BINARY(FSUB, x - y, x - y)
#ifdef __AVX512DQ__
#define BINARY_CAREFUL(id, name, e)       \
    VM_BINARY(id##_f64, f64, f64, f64, e) \
    VM_ROW(id) = {{[VM_F32] = VM_FORMS2(careful_##name##_f32), [VM_F64] = VM_FORMS2(id##_f64)}};
#else
#define BINARY_CAREFUL(id, name, e) BINARY(id, e, e)
#endif
BINARY_CAREFUL(FMUL, mul, x *y)
BINARY_CAREFUL(FDIV, div, x / y)
BINARY(FMIN_NAN, min_nan_f32(x, y), min_nan_f64(x, y))
BINARY(FMAX_NAN, max_nan_f32(x, y), max_nan_f64(x, y))
BINARY(FMIN_NUM, min_num_f32(x, y), min_num_f64(x, y))
BINARY(FMAX_NUM, max_num_f32(x, y), max_num_f64(x, y))
BINARY(FCOPYSIGN, from_f32((bits_f32(x) & ~SIGN_f32) | (bits_f32(y) & SIGN_f32)),
       from_f64((bits_f64(x) & ~SIGN_f64) | (bits_f64(y) & SIGN_f64)))
BINARY(FREM, fmodf(x, y), fmod(x, y))
/* remainder() in double of C libraries (glibc 2.36) is wrong with denormal y: what is left of two y decides
 * between -y, 0 and y, ties to the even quotient. */
#define REMAINDER(T, fmod, tiny)                                                                 \
    static inline T remainder_##T(T x, T y) {                                                    \
        T p = FROM(T, BITS(T, y) & ~SIGN_##T), r = FROM(T, BITS(T, fmod(x, y + y)) & ~SIGN_##T); \
        T left = p < tiny ? r + r : r, half = p < tiny ? p : p * (T)0.5;                         \
        T once = r - p, again = p < tiny ? once + once : once;                                   \
        r = left > half ? (again >= half ? once - p : once) : r;                                 \
        return FROM(T, BITS(T, r) ^ (BITS(T, x) & SIGN_##T));                                    \
    }
REMAINDER(f32, fmodf, 0x1p-100f)
REMAINDER(f64, fmod, 0x1p-1000)
BINARY(FREM_NEAR, remainder_f32(x, y), remainder_f64(x, y))
BINARY(NEXTAFTER, dev_nextafter_f32(x, y), dev_nextafter_f64(x, y))
VM_BINARY(LDEXP_f32, f32, f32, int32_t, dev_ldexp_f32(x, y))
VM_BINARY(LDEXP_f64, f64, f64, int32_t, dev_ldexp_f64(x, y))
VM_ROW(LDEXP) = {{[VM_F32] = VM_FORMS2(LDEXP_f32), [VM_F64] = VM_FORMS2(LDEXP_f64)}};
UNARY(FREXP_FRACTION, dev_frexp_fraction_f32(x), dev_frexp_fraction_f64(x))
VM_UNARY(FREXP_EXPONENT_f32, int32_t, f32, dev_frexp_exponent_f32(x))
VM_UNARY(FREXP_EXPONENT_f64, int32_t, f64, dev_frexp_exponent_f64(x))
VM_ROW(FREXP_EXPONENT) = {{[VM_F32] = {FREXP_EXPONENT_f32}, [VM_F64] = {FREXP_EXPONENT_f64}}};
UNARY(FNEG, from_f32(bits_f32(x) ^ SIGN_f32), from_f64(bits_f64(x) ^ SIGN_f64))
UNARY(FABS, from_f32(bits_f32(x) & ~SIGN_f32), from_f64(bits_f64(x) & ~SIGN_f64))
UNARY(FSQRT, __builtin_sqrtf(x), __builtin_sqrt(x))
UNARY(FFLOOR, __builtin_floorf(x), __builtin_floor(x))
UNARY(FCEIL, __builtin_ceilf(x), __builtin_ceil(x))
UNARY(FTRUNC, __builtin_truncf(x), __builtin_trunc(x))
UNARY(FRINT, __builtin_rintf(x), __builtin_rint(x))
COMPARE(FEQ, x == y)
COMPARE(FNE, x != y)
COMPARE(FLT, x < y)
COMPARE(FLE, x <= y)

#define FMA_FORMS(T)                                                                       \
    VM_KERNEL(FMA_##T##_vvv, T, const T *a = pa, *b = pb, *c = pc;                         \
              VM_LOOP d[i] = CALL(T, fma)(a[i], b[i], c[i]);)                              \
    VM_KERNEL(FMA_##T##_vvs, T, const T *a = pa, *b = pb; T z = *(const T *)pc;            \
              VM_LOOP d[i] = CALL(T, fma)(a[i], b[i], z);)                                 \
    VM_KERNEL(FMA_##T##_vsv, T, const T *a = pa, *c = pc; T y = *(const T *)pb;            \
              VM_LOOP d[i] = CALL(T, fma)(a[i], y, c[i]);)                                 \
    VM_KERNEL(FMA_##T##_vss, T, const T *a = pa; T y = *(const T *)pb, z = *(const T *)pc; \
              VM_LOOP d[i] = CALL(T, fma)(a[i], y, z);)
FMA_FORMS(f32)
FMA_FORMS(f64)
VM_ROW(FMA) = {{[VM_F32] = {FMA_f32_vvv, FMA_f32_vvs, FMA_f32_vsv, FMA_f32_vss},
                [VM_F64] = {FMA_f64_vvv, FMA_f64_vvs, FMA_f64_vsv, FMA_f64_vss}}};
