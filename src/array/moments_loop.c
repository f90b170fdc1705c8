/* The loops of moments.h: sums of the distances d from a number near the mean, and of d * d, in double.
 * For float32 any element will do for that number: double holds the squares of what lies far from it.
 * For float64 it is the mean, rounded. */
#include "array/moments.h"

#include "base/isa.h"

enum { LANES = 16 };

typedef float any_f32 __attribute__((aligned(1)));
typedef double any_f64 __attribute__((aligned(1)));

/* What is left of the squares when the distance of `about` from the mean is taken out. */
static double left_of(double squares, double sum, double back) {
    double most = sum * sum * back, left = most < __builtin_inf() ? squares - most : squares;
    return sum - sum != 0 ? sum - sum : left < 0 ? 0 : left; /* an infinite element: NaN */
}

static double fold(double *lane) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) lane[k] += lane[k + half];
    return lane[0];
}

/* The mean, unless the sum overflows. */
static double near_mean(const any_f64 *x, size_t n) {
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += x[i + (size_t)k];
    for (int k = 0; i + (size_t)k < n; k++) lane[k] += x[i + (size_t)k];
    double mean = fold(lane) / (double)n;
    return mean - mean == 0 ? mean : x[0];
}

#define ROW(name)                                                                        \
    static void row_##name(const char *from, size_t n, const char *origin, double *mean, \
                           double *squares) {                                            \
        const any_##name *x = (const any_##name *)from;                                  \
        double about = ABOUT_##name(x, n), first[LANES] = {0}, second[LANES] = {0};      \
        size_t i = 0;                                                                    \
        for (; i + LANES <= n; i += LANES)                                               \
            for (int k = 0; k < LANES; k++) {                                            \
                double d = x[i + (size_t)k] - about;                                     \
                first[k] += d, second[k] += d * d;                                       \
            }                                                                            \
        for (int k = 0; i + (size_t)k < n; k++) {                                        \
            double d = x[i + (size_t)k] - about;                                         \
            first[k] += d, second[k] += d * d;                                           \
        }                                                                                \
        double sum = fold(first);                                                        \
        *mean = about - *(const any_##name *)origin + sum / (double)n;                   \
        *squares = left_of(fold(second), sum, 1 / (double)n);                            \
    }
#define ABOUT_f32(x, n) (x)[0]
#define ABOUT_f64(x, n) near_mean(x, n)

/* Columns from four rows at a time: a sum is loaded and stored once for four elements. */
#define COLUMNS(name)                                                                             \
    static inline __attribute__((always_inline)) void add_rows_##name(                            \
        const char *const *rows, size_t n, size_t width, const double *restrict about,            \
        double *restrict first, double *restrict second) {                                        \
        size_t r = 0;                                                                             \
        for (; r + 4 <= n; r += 4) {                                                              \
            const any_##name *restrict a = (const any_##name *)rows[r],                           \
                                       *restrict b = (const any_##name *)rows[r + 1],             \
                                       *restrict c = (const any_##name *)rows[r + 2],             \
                                       *restrict d = (const any_##name *)rows[r + 3];             \
            for (size_t k = 0; k < width; k++) {                                                  \
                double p = a[k] - about[k], q = b[k] - about[k], s = c[k] - about[k],             \
                       t = d[k] - about[k];                                                       \
                first[k] += (p + q) + (s + t);                                                    \
                if (second) second[k] += (p * p + q * q) + (s * s + t * t);                       \
            }                                                                                     \
        }                                                                                         \
        for (; r < n; r++) {                                                                      \
            const any_##name *restrict a = (const any_##name *)rows[r];                           \
            for (size_t k = 0; k < width; k++) {                                                  \
                double p = a[k] - about[k];                                                       \
                first[k] += p;                                                                    \
                if (second) second[k] += p * p;                                                   \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void columns_##name(const char *const *rows, size_t n, size_t width, const char *from, \
                               double *restrict mean, double *restrict squares) {                 \
        const any_##name *origin = (const any_##name *)from, *x = (const any_##name *)rows[0];    \
        double about[MOMENTS_COLUMNS], first[MOMENTS_COLUMNS] = {0}, back = 1 / (double)n;        \
        for (size_t k = 0; k < width; k++) about[k] = x[k], squares[k] = 0;                       \
        if (MEAN_FIRST_##name) {                                                                  \
            add_rows_##name(rows, n, width, about, first, NULL);                                  \
            for (size_t k = 0; k < width; k++) about[k] += first[k] * back, first[k] = 0;         \
        }                                                                                         \
        add_rows_##name(rows, n, width, about, first, squares);                                   \
        for (size_t k = 0; k < width; k++) {                                                      \
            mean[k] = about[k] - origin[k] + first[k] * back;                                     \
            squares[k] = left_of(squares[k], first[k], back);                                     \
        }                                                                                         \
    }
#define MEAN_FIRST_f32 0
#define MEAN_FIRST_f64 1

ROW(f32)
ROW(f64)
COLUMNS(f32)
COLUMNS(f64)

static const moments_loops f32_loops = {row_f32, columns_f32}, f64_loops = {row_f64, columns_f64};

const moments_loops *SIMT_ISA(moments_find)(dtype dt) {
    return dt == DT_F32 ? &f32_loops : &f64_loops;
}
