/* The loops of sort_loop.h: keys, and Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M) over
 * many rows at once, in which every comparison is a minimum and a maximum of vectors. */
#include "array/sort_loop.h"

#include "base/isa.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- keys ---- */

/* Elements of memory that others own may lie anywhere. */
typedef uint16_t any_u16 __attribute__((aligned(1), may_alias));
typedef uint32_t any_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t any_u64 __attribute__((aligned(1), may_alias));

/* A float's bits are sign, then magnitude up to `infinity`, above it NaN. */
#define FLOAT_KEY(U)                                                                 \
    INLINE U float_key_##U(U bits, U sign, U infinity, U total) {                    \
        U magnitude = bits & (sign - 1);                                             \
        U key = bits & sign ? (U)(sign - total - magnitude) : (U)(sign + magnitude); \
        return magnitude > infinity ? (U) ~(U)0 : key;                               \
    }                                                                                \
    INLINE U float_bits_##U(U key, U sign) {                                         \
        return key >= sign ? (U)(key - sign) : (U)(sign | (sign - 1 - key));         \
    }
FLOAT_KEY(uint32_t)
FLOAT_KEY(uint64_t)

#define EACH(T, K, negative_zero, expression)         \
    {                                                 \
        const T *from = x;                            \
        K *to = out;                                  \
        unsigned found = 0;                           \
        for (size_t i = 0; i < n; i++) {              \
            T v = from[i];                            \
            K key = (K)(expression);                  \
            found |= total && key == (negative_zero); \
            to[i] = key ^ (K)flip;                    \
        }                                             \
        return found;                                 \
    }
#define INTEGER(T, K, expression) EACH(T, K, 0, expression)
#define FLOAT(bits, K, sign, infinity) \
    EACH(any_u##bits, K, (sign)-1, float_key_##K(v, sign, infinity, total))

INLINE bool make_keys(dtype dt, const void *x, size_t n, bool total, uint64_t flip, void *out) {
    switch (dt) {
    case DT_F16: FLOAT(16, uint32_t, 0x8000, 0x7c00)
    case DT_BF16: FLOAT(16, uint32_t, 0x8000, 0x7f80)
    case DT_F32: FLOAT(32, uint32_t, 0x80000000u, 0x7f800000u)
    case DT_F64: FLOAT(64, uint64_t, (uint64_t)1 << 63, (uint64_t)0x7ff << 52)
    default: total = false;
    }
    switch (dt) {
    case DT_BOOL:
    case DT_U8: INTEGER(uint8_t, uint32_t, v)
    case DT_I8: INTEGER(uint8_t, uint32_t, v ^ 0x80)
    case DT_U16: INTEGER(any_u16, uint32_t, v)
    case DT_I16: INTEGER(any_u16, uint32_t, v ^ 0x8000)
    case DT_U32: INTEGER(any_u32, uint32_t, v)
    case DT_I32: INTEGER(any_u32, uint32_t, v ^ 0x80000000u)
    case DT_U64: INTEGER(any_u64, uint64_t, v)
    default: INTEGER(any_u64, uint64_t, v ^ (uint64_t)1 << 63)
    }
}
#undef EACH

static bool keys(dtype dt, const void *x, size_t n, bool total, uint64_t flip, void *out) {
    return total ? make_keys(dt, x, n, true, flip, out) : make_keys(dt, x, n, false, flip, out);
}

#define EACH(T, K, expression)           \
    {                                    \
        const K *from = x;               \
        T *to = out;                     \
        for (size_t i = 0; i < n; i++) { \
            K v = from[i] ^ (K)flip;     \
            to[i] = (T)(expression);     \
        }                                \
        return;                          \
    }

static void values(dtype dt, const void *x, size_t n, uint64_t flip, void *out) {
    switch (dt) {
    case DT_BOOL:
    case DT_U8: EACH(uint8_t, uint32_t, v)
    case DT_I8: EACH(uint8_t, uint32_t, v ^ 0x80)
    case DT_U16: EACH(any_u16, uint32_t, v)
    case DT_I16: EACH(any_u16, uint32_t, v ^ 0x8000)
    case DT_U32: EACH(any_u32, uint32_t, v)
    case DT_I32: EACH(any_u32, uint32_t, v ^ 0x80000000u)
    case DT_U64: EACH(any_u64, uint64_t, v)
    case DT_I64: EACH(any_u64, uint64_t, v ^ (uint64_t)1 << 63)
    case DT_F16:
    case DT_BF16: /* NaN: all ones, of which 16 bits stay */
        EACH(any_u16, uint32_t, float_bits_uint32_t(v, 0x8000))
    case DT_F32: EACH(any_u32, uint32_t, float_bits_uint32_t(v, 0x80000000u))
    default: EACH(any_u64, uint64_t, float_bits_uint64_t(v, (uint64_t)1 << 63))
    }
}
#undef EACH

/* ---- networks ---- */

/* The compiler would unroll a loop of 16 before it looks for vectors. */
#define VECTORS _Pragma("GCC unroll 1")

/* Puts elements i and j of all rows in order. */
#define EXCHANGE_KEYS(bits)                                                                \
    INLINE void exchange_##bits(uint##bits##_t *v, uint64_t *none, size_t i, size_t j) {   \
        uint##bits##_t *restrict a = v + i * SORT_LANES, *restrict b = v + j * SORT_LANES; \
        VECTORS for (int k = 0; k < SORT_LANES; k++) {                                     \
            uint##bits##_t x = a[k], y = b[k];                                             \
            a[k] = x < y ? x : y;                                                          \
            b[k] = x < y ? y : x;                                                          \
        }                                                                                  \
    }
EXCHANGE_KEYS(32)
EXCHANGE_KEYS(64)

INLINE void exchange_pairs(uint64_t *keys, uint64_t *positions, size_t i, size_t j) {
    uint64_t *restrict a = keys + i * SORT_LANES, *restrict b = keys + j * SORT_LANES;
    uint64_t *restrict c = positions + i * SORT_LANES, *restrict d = positions + j * SORT_LANES;
    VECTORS for (int k = 0; k < SORT_LANES; k++) {
        uint64_t x = a[k], y = b[k], s = c[k], t = d[k];
        bool in_order = (x < y) | ((x == y) & (s < t));
        a[k] = in_order ? x : y;
        b[k] = in_order ? y : x;
        c[k] = in_order ? s : t;
        d[k] = in_order ? t : s;
    }
}

/* Sorted runs of p elements become runs of 2 p, for p = from, 2 from, ... while they are below `to`, among
 * elements begin to end - 1. */
#define MERGE(exchange, v, positions, begin, end, from, to)                                   \
    for (size_t p = from; p < to && p < end - begin; p *= 2)                                  \
        for (size_t d = p; d > 0; d /= 2)                                                     \
            for (size_t i = d % p; begin + i + d < end; i += 2 * d) {                         \
                if (((i + d) & (2 * p - 1)) == 0) continue; /* what lies in different runs */ \
                size_t stop = begin + i + d < end - d ? begin + i + d : end - d;              \
                for (size_t k = begin + i; k < stop; k++) exchange(v, positions, k, k + d);   \
            }

/* Pieces that stay in the first-level cache first. */
#define NETWORK(exchange, v, positions, n, piece)           \
    for (size_t begin = 0; begin < n; begin += piece) {     \
        size_t end = n - begin < piece ? n : begin + piece; \
        MERGE(exchange, v, positions, begin, end, 1, piece) \
    }                                                       \
    MERGE(exchange, v, positions, 0, n, piece, n)
static void network_32(uint32_t *v, size_t n) { NETWORK(exchange_32, v, NULL, n, 512); }
static void network_64(uint64_t *v, size_t n) { NETWORK(exchange_64, v, NULL, n, 256); }
static void network_pairs(uint64_t *keys, uint64_t *positions, size_t n) {
    NETWORK(exchange_pairs, keys, positions, n, 128);
}

#define SMALLEST(bits)                                                                         \
    static void smallest_##bits(const uint##bits##_t *keys, size_t n, uint##bits##_t *least) { \
        uint##bits##_t m[SORT_LANES];                                                          \
        for (int k = 0; k < SORT_LANES; k++) m[k] = (uint##bits##_t) - 1;                      \
        for (size_t i = 0; i + SORT_LANES <= n; i += SORT_LANES)                               \
            VECTORS for (int k = 0; k < SORT_LANES; k++) m[k] =                                \
                keys[i + (size_t)k] < m[k] ? keys[i + (size_t)k] : m[k];                       \
        for (int k = 0; k < SORT_LANES; k++) least[k] = m[k];                                  \
    }
SMALLEST(32)
SMALLEST(64)

#define ANY_BELOW(bits)                                                                        \
    static bool any_below_##bits(const uint##bits##_t *keys, size_t n, uint##bits##_t limit) { \
        unsigned found = 0;                                                                    \
        for (size_t i = 0; i < n; i++) found |= keys[i] < limit;                               \
        return found;                                                                          \
    }
ANY_BELOW(32)
ANY_BELOW(64)

const sort_loops SIMT_ISA(sort_loops) = {.keys = keys,
                                         .values = values,
                                         .network_32 = network_32,
                                         .network_64 = network_64,
                                         .network_pairs = network_pairs,
                                         .smallest_32 = smallest_32,
                                         .smallest_64 = smallest_64,
                                         .any_below_32 = any_below_32,
                                         .any_below_64 = any_below_64};
