/* Boolean masks over dense memory: see select.c. */
#ifndef SIMT_ARRAY_SELECT_H
#define SIMT_ARRAY_SELECT_H

#include "array/internal.h"

typedef struct selection {
    device *dev;
    const uint8_t *flags;
    int64_t n, count; /* flags; set ones */
    size_t pieces;
    int64_t *starts; /* set flags before each piece */
} selection;

/* Counts. selection_free in any case. */
simt_status selection_make(selection *s, device *dev, const uint8_t *flags, int64_t n);
void selection_free(selection *s);
/* out[d][i]: coordinate d of the i-th set flag. */
simt_status selection_positions(selection *s, const int64_t *shape, int ndim, int64_t **out);
/* The blocks of `block` bytes at the set flags, densely. */
simt_status selection_pack(selection *s, const char *from, size_t block, char *to);

#endif
