/* Loops that move values: select, splat, blend, memory access, masks (see kernels.h). */
#include "backend/vm/kernels.h"

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define SIZES(M) M(u8) M(u16) M(u32) M(u64)

/* select: c is the condition's operand a, then b and c; by the type of the result */
#define SELECT(T)                                                                               \
    VM_KERNEL(SELECT_##T##_vv, T, const u8 *m = pa; const T *y = pb; const T *z = pc;           \
              VM_LOOP d[i] = m[i] != 0 ? y[i] : z[i];)                                          \
    VM_KERNEL(SELECT_##T##_sv, T, const u8 *m = pa; T y = *(const T *)pb; const T *z = pc;      \
              VM_LOOP d[i] = m[i] != 0 ? y : z[i];)                                             \
    VM_KERNEL(SELECT_##T##_vs, T, const u8 *m = pa; const T *y = pb; T z = *(const T *)pc;      \
              VM_LOOP d[i] = m[i] != 0 ? y[i] : z;)                                             \
    VM_KERNEL(SELECT_##T##_ss, T, const u8 *m = pa; T y = *(const T *)pb; T z = *(const T *)pc; \
              VM_LOOP d[i] = m[i] != 0 ? y : z;)
SIZES(SELECT)
#define SELECT_FORMS(T) \
    { SELECT_##T##_vv, SELECT_##T##_sv, SELECT_##T##_vs, SELECT_##T##_ss }
VM_ROW(SELECT) = {{[VM_I1] = SELECT_FORMS(u8),
                   [VM_I8] = SELECT_FORMS(u8),
                   [VM_I16] = SELECT_FORMS(u16),
                   [VM_I32] = SELECT_FORMS(u32),
                   [VM_I64] = SELECT_FORMS(u64),
                   [VM_F32] = SELECT_FORMS(u32),
                   [VM_F64] = SELECT_FORMS(u64)}};

#define MOVES(T)                                                                                   \
    static void splat_##T(void *dst, const void *scalar, size_t n) {                               \
        T *d = dst, x = *(const T *)scalar;                                                        \
        VM_LOOP d[i] = x;                                                                          \
    }                                                                                              \
    static void iota_##T(void *dst, const void *base, int64_t stride, size_t n) {                  \
        T *d = dst, x = *(const T *)base, s = (T)stride;                                           \
        VM_LOOP d[i] = (T)(x + (T)i * s);                                                          \
    }                                                                                              \
    static void blend_##T(void *dst, const void *src, const u8 *mask, size_t n) {                  \
        T *d = dst;                                                                                \
        const T *s = src;                                                                          \
        VM_LOOP d[i] = mask[i] != 0 ? s[i] : d[i];                                                 \
    }                                                                                              \
    static void blend_scalar_##T(void *dst, const void *scalar, const u8 *mask, size_t n) {        \
        T *d = dst, x = *(const T *)scalar;                                                        \
        VM_LOOP d[i] = mask[i] != 0 ? x : d[i];                                                    \
    }                                                                                              \
    static T get_##T(const char *p) {                                                              \
        T x;                                                                                       \
        memcpy(&x, p, sizeof x);                                                                   \
        return x;                                                                                  \
    }                                                                                              \
    static void gather_##T(void *dst, const u64 *address, const u8 *mask, size_t n) {              \
        T *d = dst;                                                                                \
        if (mask == NULL)                                                                          \
            for (size_t i = 0; i < n; i++) d[i] = get_##T((const char *)address[i]);               \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                if (mask[i] != 0) d[i] = get_##T((const char *)address[i]);                        \
    }                                                                                              \
    static void scatter_##T(const u64 *address, const void *src, const u8 *mask, size_t n) {       \
        const T *s = src;                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            if (mask == NULL || mask[i] != 0) memcpy((char *)address[i], &s[i], sizeof(T));        \
    }                                                                                              \
    static void load_strided_##T(void *dst, const char *base, int64_t stride, const u8 *mask,      \
                                 size_t n) {                                                       \
        T *d = dst;                                                                                \
        if (mask == NULL && stride == sizeof(T))                                                   \
            memcpy(d, base, n * sizeof(T));                                                        \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                if (mask == NULL || mask[i] != 0) d[i] = get_##T(base + (int64_t)i * stride);      \
    }                                                                                              \
    static void load_rows_##T(void *dst, const char *base, const vm_row_walk *w, size_t n) {       \
        T *d = dst, block[64 / sizeof(T)];                                                         \
        size_t width = w->width, chunk = 64 / sizeof(T);                                           \
        bool chunks = width % chunk == 0 && n % width == 0, flat = w->x == sizeof(T);              \
        for (uint32_t row = 0; n > 0; row++, d += width, n -= width) {                             \
            const char *from = base + vm_row_start(w, row);                                        \
            if (width > n) width = n;                                                              \
            if (chunks && w->x == 0) {                                                             \
                T x = get_##T(from);                                                               \
                for (size_t i = 0; i < chunk; i++) block[i] = x;                                   \
                for (size_t i = 0; i < width; i += chunk) memcpy(d + i, block, 64);                \
            } else if (chunks && flat) {                                                           \
                for (size_t i = 0; i < width; i += chunk) memcpy(d + i, from + i * sizeof(T), 64); \
            } else if (flat) {                                                                     \
                memcpy(d, from, width * sizeof(T));                                                \
            } else {                                                                               \
                for (size_t i = 0; i < width; i++) d[i] = get_##T(from + (int64_t)i * w->x);       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void store_strided_##T(char *base, int64_t stride, const void *src, const u8 *mask,     \
                                  size_t n) {                                                      \
        const T *s = src;                                                                          \
        if (mask == NULL && stride == sizeof(T))                                                   \
            memcpy(base, s, n * sizeof(T));                                                        \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                if (mask == NULL || mask[i] != 0)                                                  \
                    memcpy(base + (int64_t)i * stride, &s[i], sizeof(T));                          \
    }
SIZES(MOVES)

static size_t split(u8 *yes, u8 *no, const u8 *mask, const u8 *cond, size_t n) {
    u32 count = 0;
    if (mask == NULL) {
        VM_LOOP {
            u8 y = cond[i];
            yes[i] = y;
            no[i] = y ^ 1;
            count += y;
        }
    } else {
        VM_LOOP {
            u8 y = cond[i] & mask[i];
            no[i] = mask[i] & (cond[i] ^ 1);
            yes[i] = y;
            count += y;
        }
    }
    return count;
}

static void mask_or(u8 *dst, const u8 *src, size_t n) { VM_LOOP dst[i] |= src[i]; }

#if defined(__AVX512F__)
static void stream_to(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        _mm512_stream_si512((__m512i *)((char *)to + i),
                            _mm512_loadu_si512((const char *)from + i));
}
#elif defined(__AVX2__)
static void stream_to(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 32)
        _mm256_stream_si256((__m256i *)((char *)to + i),
                            _mm256_loadu_si256((const __m256i *)((const char *)from + i)));
}
#else
#define stream_to NULL
#endif

#define ALL(f) \
    { f##_u8, f##_u16, f##_u32, f##_u64 }
extern const vm_moves SIMT_ISA(vm_moves);
const vm_moves SIMT_ISA(vm_moves) = {.splat = ALL(splat),
                                     .iota = ALL(iota),
                                     .blend = ALL(blend),
                                     .blend_scalar = ALL(blend_scalar),
                                     .gather = ALL(gather),
                                     .scatter = ALL(scatter),
                                     .load_strided = ALL(load_strided),
                                     .store_strided = ALL(store_strided),
                                     .load_rows = ALL(load_rows),
                                     .split = split,
                                     .stream = stream_to,
                                     .mask_or = mask_or};
