/* The loops of rows.h. The accumulators are arrays of constant length, which the compiler keeps in
 * vector registers. Largest and smallest are NumPy's: NaN wins, and +0 counts as more than -0. */
#include "array/rows.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/isa.h"
#include "graph/graph.h"

#define INLINE static inline __attribute__((always_inline))

/* Elements of memory that others own may lie anywhere. */
typedef float any_f32 __attribute__((aligned(1), may_alias));
typedef double any_f64 __attribute__((aligned(1), may_alias));
typedef int32_t any_i32 __attribute__((aligned(1), may_alias));
typedef int64_t any_i64 __attribute__((aligned(1), may_alias));
typedef uint8_t any_u8 __attribute__((may_alias));

enum { FEW = 32, MANY = 64 }; /* elements that are compared at once in short and long rows */

#define SUM(name, T)                                                                   \
    static void sum_##name(const void *from, size_t n, void *out) {                    \
        const any_##name *x = from;                                                    \
        T acc[GRAPH_ROW_LANES];                                                        \
        for (size_t k = 0; k < GRAPH_ROW_LANES; k++) acc[k] = -(T)0; /* -0 + x is x */ \
        size_t i = 0;                                                                  \
        for (; i + GRAPH_ROW_LANES <= n; i += GRAPH_ROW_LANES)                         \
            for (size_t k = 0; k < GRAPH_ROW_LANES; k++) acc[k] += x[i + k];           \
        for (size_t k = 0; i + k < n; k++) acc[k] += x[i + k];                         \
        for (size_t half = GRAPH_ROW_LANES / 2; half > 0; half /= 2)                   \
            for (size_t k = 0; k < half; k++) acc[k] += acc[k + half];                 \
        memcpy(out, acc, sizeof(T));                                                   \
    }

/* The best of n >= `step` elements; the last ones are looked at with some before them. */
#define BEST(name, T, what, OP)                                                 \
    INLINE T best_##what##_##name(const any_##name *x, size_t n, size_t step) { \
        T best[MANY];                                                           \
        memcpy(best, x, step * sizeof(T));                                      \
        for (size_t i = step; i < n; i += step) {                               \
            const any_##name *at = i + step <= n ? x + i : x + n - step;        \
            for (size_t k = 0; k < step; k++) {                                 \
                T v = at[k];                                                    \
                best[k] = (v OP best[k]) | (v != v) ? v : best[k];              \
            }                                                                   \
        }                                                                       \
        for (size_t half = step / 2; half > 0; half /= 2)                       \
            for (size_t k = 0; k < half; k++) {                                 \
                T v = best[k + half];                                           \
                best[k] = (v OP best[k]) | (v != v) ? v : best[k];              \
            }                                                                   \
        return best[0];                                                         \
    }                                                                           \
    static void what##_##name(const void *from, size_t n, void *out) {          \
        T best = n >= MANY  ? best_##what##_##name(from, n, MANY)               \
                 : n >= FEW ? best_##what##_##name(from, n, FEW)                \
                            : best_##what##_##name(from, n, 1);                 \
        SIGN_OF_ZERO_##name(best, from, n, what);                               \
        memcpy(out, &best, sizeof best);                                        \
    }

/* `nan`: the value is NaN, and so is what it equals. */
#define SAME(v) (nan ? (v) != (v) : (v) == value)
#define FIND(name, T)                                                                             \
    INLINE size_t find_in_##name(const any_##name *x, size_t n, size_t step, T value, bool nan) { \
        size_t start = 0;                                                                         \
        for (unsigned found = 0; start + 4 * step < n; start += 4 * step) {                       \
            for (size_t k = 0; k < 4 * step; k++) found |= SAME(x[start + k]);                    \
            if (found) break;                                                                     \
        }                                                                                         \
        for (size_t i = start;; i += step) {                                                      \
            if (i + step > n) i = n - step; /* what comes again was not equal */                  \
            unsigned found = 0, first = MANY;                                                     \
            for (size_t k = 0; k < step; k++) found |= SAME(x[i + k]);                            \
            if (!found && i + step < n) continue;                                                 \
            for (unsigned k = 0; k < step; k++) {                                                 \
                unsigned at = SAME(x[i + k]) ? k : MANY;                                          \
                first = at < first ? at : first;                                                  \
            }                                                                                     \
            return i + first;                                                                     \
        }                                                                                         \
    }                                                                                             \
    static size_t find_##name(const void *from, size_t n, const void *what) {                     \
        T value;                                                                                  \
        memcpy(&value, what, sizeof value);                                                       \
        if (value != value) return find_in_##name(from, n, 1, value, true);                       \
        return n >= MANY  ? find_in_##name(from, n, MANY, value, false)                           \
               : n >= FEW ? find_in_##name(from, n, FEW, value, false)                            \
                          : find_in_##name(from, n, 1, value, false);                             \
    }

/* A zero of the wanted sign counts, wherever it is. */
#define ZERO(name, T, U)                                                 \
    static T zero_##name(const any_##name *x, size_t n, bool negative) { \
        U wanted = negative ? (U)1 << (8 * sizeof(U) - 1) : 0;           \
        bool found = false;                                              \
        for (size_t i = 0; i < n; i++) {                                 \
            U bits;                                                      \
            memcpy(&bits, x + i, sizeof bits);                           \
            found |= bits == wanted;                                     \
        }                                                                \
        return found == negative ? -(T)0 : (T)0;                         \
    }
ZERO(f32, float, uint32_t)
ZERO(f64, double, uint64_t)
enum { NEGATIVE_largest = false, NEGATIVE_smallest = true };
#define SIGN_OF_ZERO_f32(best, x, n, what) \
    if (best == 0) best = zero_f32(x, n, NEGATIVE_##what)
#define SIGN_OF_ZERO_f64(best, x, n, what) \
    if (best == 0) best = zero_f64(x, n, NEGATIVE_##what)
#define SIGN_OF_ZERO_i32(best, x, n, what) (void)0
#define SIGN_OF_ZERO_i64(best, x, n, what) (void)0
#define SIGN_OF_ZERO_u8(best, x, n, what)  (void)0

#define LOOPS(name, T)         \
    BEST(name, T, largest, >)  \
    BEST(name, T, smallest, <) \
    FIND(name, T)
SUM(f32, float)
SUM(f64, double)
LOOPS(f32, float)
LOOPS(f64, double)
LOOPS(i32, int32_t)
LOOPS(i64, int64_t)
LOOPS(u8, uint8_t)

#define TABLE(name, sum) \
    { sum, largest_##name, smallest_##name, find_##name }
static const rows_loops f32_loops = TABLE(f32, sum_f32), f64_loops = TABLE(f64, sum_f64),
                        i32_loops = TABLE(i32, NULL), i64_loops = TABLE(i64, NULL),
                        u8_loops = TABLE(u8, NULL);

const rows_loops *SIMT_ISA(rows_find)(dtype dt) {
    switch (dt) {
    case DT_F32: return &f32_loops;
    case DT_F64: return &f64_loops;
    case DT_I32: return &i32_loops;
    case DT_I64: return &i64_loops;
    case DT_U8: return &u8_loops;
    default: return NULL;
    }
}
