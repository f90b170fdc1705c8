/* The loops of sort.c, compiled once per instruction set (sort_loop.c). */
#ifndef SIMT_ARRAY_SORT_LOOP_H
#define SIMT_ARRAY_SORT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum { SORT_LANES = 16 }; /* rows that a network sorts side by side */

/* Keys are unsigned and ascend as the values do: 64-bit ones for types of 64 bits, else 32-bit ones. NaN
 * has the largest; -0 and +0 have the same one, or, with `total`, neighbours: only such keys can be
 * turned into values again. `flip`: 0, or ~0 for a descending order. keys: true when `total` and there
 * is a -0. */
typedef struct sort_loops {
    bool (*keys)(dtype dt, const void *from, size_t n, bool total, uint64_t flip, void *keys);
    void (*values)(dtype dt, const void *keys, size_t n, uint64_t flip, void *to);
    /* Sort SORT_LANES rows of n at once: element i of row r is at [i * SORT_LANES + r]. */
    void (*network_32)(uint32_t *v, size_t n);
    void (*network_64)(uint64_t *v, size_t n);
    void (*network_pairs)(uint64_t *keys, uint64_t *positions, size_t n); /* by key, position */
    /* The smallest of every SORT_LANES-th key (from n keys, a multiple of that). */
    void (*smallest_32)(const uint32_t *keys, size_t n, uint32_t *least);
    void (*smallest_64)(const uint64_t *keys, size_t n, uint64_t *least);
    /* Whether any of n keys is below the limit. */
    bool (*any_below_32)(const uint32_t *keys, size_t n, uint32_t limit);
    bool (*any_below_64)(const uint64_t *keys, size_t n, uint64_t limit);
} sort_loops;

extern const sort_loops sort_loops_generic, sort_loops_avx2, sort_loops_avx512;

#endif
