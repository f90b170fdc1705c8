/* Mean and squared distances of pieces of memory, by dtype: compiled once per instruction set
 * (moments_loop.c). */
#ifndef SIMT_ARRAY_MOMENTS_H
#define SIMT_ARRAY_MOMENTS_H

#include <stddef.h>

#include "base/dtype.h"

enum { MOMENTS_PIECE = 512, MOMENTS_ROWS = 128, MOMENTS_COLUMNS = 256 };

/* n > 0 elements of a row, or n > 0 rows of `width` columns, at most as many as above. Means are distances from
 * an element, *origin (from *origin's columns): beside large numbers they would be rounded. */
typedef struct moments_loops {
    void (*row)(const char *x, size_t n, const char *origin, double *mean, double *squares);
    void (*columns)(const char *const *rows, size_t n, size_t width, const char *origin,
                    double *mean, double *squares);
} moments_loops;

const moments_loops *moments_find_generic(dtype dt); /* f32 or f64 */
const moments_loops *moments_find_avx2(dtype dt);
const moments_loops *moments_find_avx512(dtype dt);

#endif
