/* Reductions of one dense row of memory, by dtype: compiled once per instruction set (rows.c). */
#ifndef SIMT_ARRAY_ROWS_H
#define SIMT_ARRAY_ROWS_H

#include <stddef.h>

#include "base/dtype.h"

/* n > 0. *out gets an element of the row's dtype; `sum` adds in the order of graph/lower_reduce.c (a
 * chunk of it: n <= GRAPH_ROW_CHUNK). find: the index of the first element that equals *value (or is
 * NaN, if that is), which must be there. */
typedef struct rows_loops {
    void (*sum)(const void *x, size_t n, void *out); /* NULL: not for this dtype */
    void (*largest)(const void *x, size_t n, void *out);
    void (*smallest)(const void *x, size_t n, void *out);
    size_t (*find)(const void *x, size_t n, const void *value);
} rows_loops;

/* NULL: no loops for this dtype (graph_reduces_rows says which have some). */
const rows_loops *rows_find_generic(dtype dt);
const rows_loops *rows_find_avx2(dtype dt);
const rows_loops *rows_find_avx512(dtype dt);

#endif
