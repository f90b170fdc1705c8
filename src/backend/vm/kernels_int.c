/* Integer loops (see kernels.h). Arithmetic is done unsigned, so that wrapping is defined. */
#include "backend/vm/kernels.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/* U, S: the unsigned and signed type; W: a type without promotion to int for products. */
#define INT_TYPES(M, id, e)  \
    M(id, 8, u8, s8, u32, e) \
    M(id, 16, u16, s16, u32, e) M(id, 32, u32, s32, u32, e) M(id, 64, u64, s64, u64, e)

/* e uses x and y of type U; U, S, W and BITS are visible. */
#define BINARY_1(id, bits, UT, ST, WT, e)               \
    static inline UT id##_f##bits(UT x, UT y) {         \
        typedef UT U;                                   \
        typedef ST S;                                   \
        typedef WT W;                                   \
        enum { BITS = bits };                           \
        (void)(U)0, (void)(S)0, (void)(W)0, (void)BITS; \
        return (UT)(e);                                 \
    }                                                   \
    VM_BINARY(id##_i##bits, UT, UT, UT, id##_f##bits(x, y))
#define BINARY(id, e)                              \
    INT_TYPES(BINARY_1, id, e)                     \
    VM_ROW(id) = {{[VM_I8] = VM_FORMS2(id##_i8),   \
                   [VM_I16] = VM_FORMS2(id##_i16), \
                   [VM_I32] = VM_FORMS2(id##_i32), \
                   [VM_I64] = VM_FORMS2(id##_i64)}};
/* the same with a loop for i1, whose expression is e1 on bytes 0 and 1 */
#define BINARY_I1(id, e, e1)                       \
    INT_TYPES(BINARY_1, id, e)                     \
    VM_BINARY(id##_i1, u8, u8, u8, e1)             \
    VM_ROW(id) = {{[VM_I1] = VM_FORMS2(id##_i1),   \
                   [VM_I8] = VM_FORMS2(id##_i8),   \
                   [VM_I16] = VM_FORMS2(id##_i16), \
                   [VM_I32] = VM_FORMS2(id##_i32), \
                   [VM_I64] = VM_FORMS2(id##_i64)}};
#define UNARY_1(id, bits, UT, ST, WT, e)  \
    static inline UT id##_f##bits(UT x) { \
        typedef ST S;                     \
        enum { BITS = bits };             \
        (void)(S)0, (void)BITS;           \
        return (UT)(e);                   \
    }                                     \
    VM_UNARY(id##_i##bits, UT, UT, id##_f##bits(x))
#define UNARY(id, e)                      \
    INT_TYPES(UNARY_1, id, e)             \
    VM_ROW(id) = {{[VM_I8] = {id##_i8},   \
                   [VM_I16] = {id##_i16}, \
                   [VM_I32] = {id##_i32}, \
                   [VM_I64] = {id##_i64}}};
#define COMPARE_1(id, bits, UT, ST, WT, e)      \
    static inline u8 id##_f##bits(UT x, UT y) { \
        typedef ST S;                           \
        (void)(S)0;                             \
        return e;                               \
    }                                           \
    VM_BINARY(id##_i##bits, u8, UT, UT, id##_f##bits(x, y))
#define COMPARE(id, e, e1)                         \
    INT_TYPES(COMPARE_1, id, e)                    \
    VM_BINARY(id##_i1, u8, u8, u8, e1)             \
    VM_ROW(id) = {{[VM_I1] = VM_FORMS2(id##_i1),   \
                   [VM_I8] = VM_FORMS2(id##_i8),   \
                   [VM_I16] = VM_FORMS2(id##_i16), \
                   [VM_I32] = VM_FORMS2(id##_i32), \
                   [VM_I64] = VM_FORMS2(id##_i64)}};

/* The product in the next wider type: through 64 bits gcc 12 takes the unsigned half for i16. */
static inline u8 high_s8(s8 x, s8 y) { return (u8)((s32)x * (s32)y >> 8); }
static inline u16 high_s16(s16 x, s16 y) { return (u16)((s32)x * (s32)y >> 16); }
static inline u32 high_s32(s32 x, s32 y) { return (u32)((s64)x * (s64)y >> 32); }
static inline u64 high_s64(s64 x, s64 y) { return (u64)((__int128)x * y >> 64); }
static inline u8 high_u8(u8 x, u8 y) { return (u8)((u32)x * y >> 8); }
static inline u16 high_u16(u16 x, u16 y) { return (u16)((u32)x * y >> 16); }
static inline u32 high_u32(u32 x, u32 y) { return (u32)((u64)x * y >> 32); }
static inline u64 high_u64(u64 x, u64 y) { return (u64)((unsigned __int128)x * y >> 64); }
#define HIGH(sign, x, y)            \
    _Generic((x), u8                \
             : high_##sign##8, u16  \
             : high_##sign##16, u32 \
             : high_##sign##32, u64 \
             : high_##sign##64)(x, y)
static inline u64 reverse_bits(u64 x, int bits) {
    x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(x) >> (64 - bits);
}

BINARY(ADD, x + y)
BINARY(SUB, x - y)
BINARY(MUL, (W)x *(W)y)
BINARY(MULHI_S, HIGH(s, x, y))
BINARY(MULHI_U, HIGH(u, x, y))
/* x / 1 stands in for x / 0 and, negated by the caller's rule, for MIN / -1 */
BINARY(DIV_S, y == 0       ? 0
              : y == (U)-1 ? (U)(0 - (W)x)
                           : (U)((S)x / (S)(y == 0 || y == (U)-1 ? 1 : y)))
BINARY(DIV_U, y == 0 ? 0 : x / (y == 0 ? 1 : y))
BINARY(REM_S, y == 0 || y == (U)-1 ? 0 : (U)((S)x % (S)(y == 0 || y == (U)-1 ? 1 : y)))
BINARY(REM_U, y == 0 ? 0 : x % (y == 0 ? 1 : y))
BINARY_I1(AND, x &y, x &y)
BINARY_I1(OR, x | y, x | y)
BINARY_I1(XOR, x ^ y, x ^ y)
BINARY(SHL, y >= BITS ? 0 : (W)x << (y & (BITS - 1)))
BINARY(SHR_U, y >= BITS ? 0 : x >> (y & (BITS - 1)))
BINARY(SHR_S, (S)x >> (y >= BITS ? BITS - 1 : y))
BINARY(MIN_S, (S)x < (S)y ? x : y)
BINARY(MAX_S, (S)x > (S)y ? x : y)
BINARY(MIN_U, x < y ? x : y)
BINARY(MAX_U, x > y ? x : y)
UNARY(ABS, (S)x < 0 ? 0u - x : x)
UNARY(POPC, __builtin_popcountll(x))
UNARY(CLZ, x == 0 ? BITS : __builtin_clzll(x) - (64 - BITS))
UNARY(CTZ, x == 0 ? BITS : __builtin_ctzll(x))
UNARY(BREV, reverse_bits(x, BITS))

INT_TYPES(UNARY_1, NOT, ~x)
VM_UNARY(NOT_i1, u8, u8, x ^ 1)
VM_ROW(NOT) = {{[VM_I1] = {NOT_i1},
                [VM_I8] = {NOT_i8},
                [VM_I16] = {NOT_i16},
                [VM_I32] = {NOT_i32},
                [VM_I64] = {NOT_i64}}};

/* i1 true is -1 when signed, 1 when unsigned */
COMPARE(EQ, x == y, x == y)
COMPARE(NE, x != y, x != y)
COMPARE(LT_S, (S)x<(S)y, x> y)
COMPARE(LE_S, (S)x <= (S)y, x >= y)
COMPARE(LT_U, x < y, x < y)
COMPARE(LE_U, x <= y, x <= y)
