/* Conversion loops (see kernels.h). Out of range is decided by comparisons, never by what a C cast
 * of such a value does on this machine. */
#include "backend/vm/kernels.h"

#include <math.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

typedef uint8_t u1, u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef uint16_t f16, bf16; /* bits */

static inline u32 bits_of(f32 x) {
    u32 u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline f32 float_of(u32 u) {
    f32 x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- f16 and bf16: without branches, so that the loops vectorise ---- */

static inline f32 f16_to_f32(f16 h) {
    u32 sign = (u32)(h & 0x8000) << 16, rest = h & 0x7fff;
    f32 normal = float_of((rest << 13) + 0x38000000u);
    f32 tiny = (f32)(s32)rest * 0x1p-24f;
    u32 special = 0x7f800000u | (rest << 13);
    u32 r = rest >= 0x7c00 ? special : rest < 0x400 ? bits_of(tiny) : bits_of(normal);
    return float_of(r | sign);
}

static inline f16 f32_to_f16(f32 x) {
    u32 u = bits_of(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffffu;
    u32 normal =
        (a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13;  /* carries into infinity by itself */
    u32 tiny = bits_of(float_of(a) + 0.5f) - 0x3f000000u; /* ulp of 0.5 is 2^-24 */
    u32 r = a < 0x38800000u ? tiny : normal;
    r = a >= 0x47800000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? 0x7e00u : r;
    return (f16)(r | sign);
}

static inline f32 bf16_to_f32(bf16 h) { return float_of((u32)h << 16); }
static inline bf16 f32_to_bf16(f32 x) {
    u32 u = bits_of(x);
    u32 r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (bf16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16 | 0x40) : r);
}

/* f64 to f32 rounded to odd: a second rounding to a type of at most 22 bits is then exact. */
static inline f32 round_to_odd(f64 x) {
    f32 y = (f32)x;
    u32 u = bits_of(y);
    u32 inexact = (f64)y != x, over = fabs((f64)y) > fabs(x);
    return float_of((u - (inexact & over)) | inexact);
}
static inline f16 f64_to_f16(f64 x) { return f32_to_f16(round_to_odd(x)); }
static inline bf16 f64_to_bf16(f64 x) { return f32_to_bf16(round_to_odd(x)); }

/* A 64-bit integer as f64 whose rounding to f16 or bf16 is that of the integer: above 2^40 the low
 * bits are folded into one, which is far below both types' last place. */
static inline f64 sticky_u64(u64 x) {
    u64 folded = (x & ~0x1fffffull) | ((x & 0x1fffff) != 0 ? 0x100000 : 0);
    return (f64)(x >> 40 != 0 ? folded : x);
}
static inline f64 sticky_s64(s64 x) {
    f64 m = sticky_u64(x < 0 ? 0 - (u64)x : (u64)x);
    return x < 0 ? -m : m;
}

/* ---- integers and between floats ---- */

#define CAST(op, F, T, e) VM_UNARY(op##_##F##_##T, T, F, e)
#define ROW(op)                                                \
    extern const vm_cast_row SIMT_ISA(vm_cast_##op)[VM_TYPES]; \
    const vm_cast_row SIMT_ISA(vm_cast_##op)[VM_TYPES]

CAST(TRUNC, u8, u1, x & 1)
CAST(TRUNC, u16, u1, x & 1)
CAST(TRUNC, u32, u1, x & 1)
CAST(TRUNC, u64, u1, x & 1)
CAST(TRUNC, u16, u8, x)
CAST(TRUNC, u32, u8, x)
CAST(TRUNC, u64, u8, x)
CAST(TRUNC, u32, u16, x)
CAST(TRUNC, u64, u16, x)
CAST(TRUNC, u64, u32, x)
ROW(TRUNC) = {
    [VM_I8] = {{[VM_I1] = TRUNC_u8_u1}},
    [VM_I16] = {{[VM_I1] = TRUNC_u16_u1, [VM_I8] = TRUNC_u16_u8}},
    [VM_I32] = {{[VM_I1] = TRUNC_u32_u1, [VM_I8] = TRUNC_u32_u8, [VM_I16] = TRUNC_u32_u16}},
    [VM_I64] = {{[VM_I1] = TRUNC_u64_u1,
                 [VM_I8] = TRUNC_u64_u8,
                 [VM_I16] = TRUNC_u64_u16,
                 [VM_I32] = TRUNC_u64_u32}}};

#define EXTENSIONS(op, A1, A8, A16, A32, e1)                                                      \
    CAST(op, A1, u8, e1)                                                                          \
    CAST(op, A1, u16, e1)                                                                         \
    CAST(op, A1, u32, e1)                                                                         \
    CAST(op, A1, u64, (u64)(s64)(e1))                                                             \
    VM_UNARY(op##_8_u16, u16, A8, x)                                                              \
    VM_UNARY(op##_8_u32, u32, A8, x)                                                              \
    VM_UNARY(op##_8_u64, u64, A8, x)                                                              \
    VM_UNARY(op##_16_u32, u32, A16, x)                                                            \
    VM_UNARY(op##_16_u64, u64, A16, x)                                                            \
    VM_UNARY(op##_32_u64, u64, A32, x)                                                            \
    ROW(op) = {[VM_I1] = {{[VM_I8] = op##_u1_u8,                                                  \
                           [VM_I16] = op##_u1_u16,                                                \
                           [VM_I32] = op##_u1_u32,                                                \
                           [VM_I64] = op##_u1_u64}},                                              \
               [VM_I8] = {{[VM_I16] = op##_8_u16, [VM_I32] = op##_8_u32, [VM_I64] = op##_8_u64}}, \
               [VM_I16] = {{[VM_I32] = op##_16_u32, [VM_I64] = op##_16_u64}},                     \
               [VM_I32] = {{[VM_I64] = op##_32_u64}}};
EXTENSIONS(SEXT, u1, s8, s16, s32, -(s32)x)
EXTENSIONS(ZEXT, u1, u8, u16, u32, (s32)x)

#define TO_FLOATS(op, A, wide)            \
    CAST(op, A, f32, (f32)x)              \
    CAST(op, A, f64, (f64)x)              \
    CAST(op, A, f16, f64_to_f16(wide(x))) \
    CAST(op, A, bf16, f64_to_bf16(wide(x)))
#define TO_FLOATS_ROW(op, A)                                                                   \
    {                                                                                          \
        {                                                                                      \
            [VM_F16] = op##_##A##_f16, [VM_BF16] = op##_##A##_bf16, [VM_F32] = op##_##A##_f32, \
            [VM_F64] = op##_##A##_f64                                                          \
        }                                                                                      \
    }
TO_FLOATS(SITOFP, s8, (f64))
TO_FLOATS(SITOFP, s16, (f64))
TO_FLOATS(SITOFP, s32, (f64))
TO_FLOATS(SITOFP, s64, sticky_s64)
TO_FLOATS(UITOFP, u1, (f64))
TO_FLOATS(UITOFP, u8, (f64))
TO_FLOATS(UITOFP, u16, (f64))
TO_FLOATS(UITOFP, u32, (f64))
TO_FLOATS(UITOFP, u64, sticky_u64)
ROW(SITOFP) = {[VM_I8] = TO_FLOATS_ROW(SITOFP, s8),
               [VM_I16] = TO_FLOATS_ROW(SITOFP, s16),
               [VM_I32] = TO_FLOATS_ROW(SITOFP, s32),
               [VM_I64] = TO_FLOATS_ROW(SITOFP, s64)};
ROW(UITOFP) = {[VM_I1] = TO_FLOATS_ROW(UITOFP, u1),
               [VM_I8] = TO_FLOATS_ROW(UITOFP, u8),
               [VM_I16] = TO_FLOATS_ROW(UITOFP, u16),
               [VM_I32] = TO_FLOATS_ROW(UITOFP, u32),
               [VM_I64] = TO_FLOATS_ROW(UITOFP, u64)};

/* ---- floats to integers; f16 and bf16 come as f32 ---- */

/* In range means that truncation gives a value of the type. `low` is its least value, `end` the power
 * of two just above its largest. The inner select keeps the C cast defined. */
#define SATURATE(F, T, low, end, min, max)        \
    (!(x < (F)(end)) ? (x != x ? (T)0 : (T)(max)) \
     : x < (F)(low)  ? (T)(min)                   \
                     : (T)(x >= (F)(low) && x < (F)(end) ? x : 0))
#define CHECKED(F, T, low, end, other) \
    (x >= (F)(low) && x < (F)(end) ? (T)(x >= (F)(low) && x < (F)(end) ? x : 0) : (T)(other))
#define TO_INTS(F)                                                                         \
    CAST(FPTOSI, F, s8, SATURATE(F, s32, -128, 128, -128, 127))                            \
    CAST(FPTOSI, F, s16, SATURATE(F, s32, -32768, 32768, -32768, 32767))                   \
    CAST(FPTOSI, F, s32, SATURATE(F, s32, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))          \
    CAST(FPTOSI, F, s64, SATURATE(F, s64, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX))          \
    CAST(FPTOUI, F, u8, SATURATE(F, s32, 0, 256, 0, 255))                                  \
    CAST(FPTOUI, F, u16, SATURATE(F, s32, 0, 65536, 0, 65535))                             \
    CAST(FPTOUI, F, u32, SATURATE(F, u32, 0, 0x1p32, 0, UINT32_MAX))                       \
    CAST(FPTOUI, F, u64, SATURATE(F, u64, 0, 0x1p64, 0, UINT64_MAX))                       \
    static inline s32 F##_s32(F x) { return CHECKED(F, s32, -0x1p31, 0x1p31, INT32_MIN); } \
    static inline s64 F##_s64(F x) { return CHECKED(F, s64, -0x1p63, 0x1p63, INT64_MIN); } \
    static inline u64 F##_u64(F x) {                                                       \
        u64 big = (u64)F##_s64(x - (F)0x1p63) ^ 1ull << 63;                                \
        return x >= (F)0x1p63 ? big : (u64)F##_s64(x);                                     \
    }                                                                                      \
    CAST(CVT_NUMPY_S, F, s8, F##_s32(x))                                                   \
    CAST(CVT_NUMPY_S, F, s16, F##_s32(x))                                                  \
    CAST(CVT_NUMPY_S, F, s32, F##_s32(x))                                                  \
    CAST(CVT_NUMPY_S, F, s64, F##_s64(x))                                                  \
    CAST(CVT_NUMPY_U, F, u8, F##_s32(x))                                                   \
    CAST(CVT_NUMPY_U, F, u16, F##_s32(x))                                                  \
    CAST(CVT_NUMPY_U, F, u32, F##_s64(x))                                                  \
    CAST(CVT_NUMPY_U, F, u64, F##_u64(x))
TO_INTS(f32)
TO_INTS(f64)
#define INTS_ROW(op, F, S)                                               \
    {                                                                    \
        {                                                                \
            [VM_I8] = op##_##F##_##S##8, [VM_I16] = op##_##F##_##S##16,  \
            [VM_I32] = op##_##F##_##S##32, [VM_I64] = op##_##F##_##S##64 \
        }                                                                \
    }
#define INTS(op, S) ROW(op) = {[VM_F32] = INTS_ROW(op, f32, S), [VM_F64] = INTS_ROW(op, f64, S)}
INTS(FPTOSI, s);
INTS(FPTOUI, u);
INTS(CVT_NUMPY_S, s);
INTS(CVT_NUMPY_U, u);

/* ---- between floats ---- */

#ifdef __F16C__
static void FPEXT_f16_f32(void *dst, const void *a, const void *b, const void *c, size_t n) {
    f32 *d = dst;
    const f16 *s = a;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s + i))));
    for (; i < n; i++) d[i] = f16_to_f32(s[i]);
}
static void FPTRUNC_f32_f16(void *dst, const void *a, const void *b, const void *c, size_t n) {
    f16 *d = dst;
    const f32 *s = a;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(d + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) d[i] = f32_to_f16(s[i]);
}
#else
CAST(FPEXT, f16, f32, f16_to_f32(x))
CAST(FPTRUNC, f32, f16, f32_to_f16(x))
#endif
CAST(FPEXT, f16, f64, f16_to_f32(x))
CAST(FPEXT, bf16, f32, bf16_to_f32(x))
CAST(FPEXT, bf16, f64, bf16_to_f32(x))
CAST(FPEXT, f32, f64, x)
CAST(FPTRUNC, f64, f32, x)
CAST(FPTRUNC, f64, f16, f64_to_f16(x))
CAST(FPTRUNC, f64, bf16, f64_to_bf16(x))
CAST(FPTRUNC, f32, bf16, f32_to_bf16(x))
CAST(FPTRUNC, bf16, f16, f32_to_f16(bf16_to_f32(x)))
CAST(FPTRUNC, f16, bf16, f32_to_bf16(f16_to_f32(x)))
ROW(FPEXT) = {
    [VM_F16] = {{[VM_F32] = FPEXT_f16_f32, [VM_F64] = FPEXT_f16_f64, [VM_BF16] = FPTRUNC_f16_bf16}},
    [VM_BF16] =
        {{[VM_F32] = FPEXT_bf16_f32, [VM_F64] = FPEXT_bf16_f64, [VM_F16] = FPTRUNC_bf16_f16}},
    [VM_F32] = {{[VM_F64] = FPEXT_f32_f64}}};
ROW(FPTRUNC) = {
    [VM_F64] =
        {{[VM_F32] = FPTRUNC_f64_f32, [VM_F16] = FPTRUNC_f64_f16, [VM_BF16] = FPTRUNC_f64_bf16}},
    [VM_F32] = {{[VM_F16] = FPTRUNC_f32_f16, [VM_BF16] = FPTRUNC_f32_bf16}},
    [VM_F16] = {{[VM_BF16] = FPTRUNC_f16_bf16}},
    [VM_BF16] = {{[VM_F16] = FPTRUNC_bf16_f16}}};
