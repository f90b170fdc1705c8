/* Copies between strided host memory, in and out. */
#include <string.h>

#include "array/internal.h"

typedef struct copy_dims {
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM], to[ARRAY_MAX_NDIM], from[ARRAY_MAX_NDIM];
} copy_dims;

/* Drops dimensions of length 1 and merges neighbours that lie densely in both. */
static void merge(copy_dims *m, const int64_t *shape, const int64_t *to, const int64_t *from,
                  int ndim) {
    m->ndim = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        int last = m->ndim - 1;
        if (last >= 0 && m->to[last] == to[d] * shape[d] && m->from[last] == from[d] * shape[d]) {
            m->shape[last] *= shape[d];
            m->to[last] = to[d];
            m->from[last] = from[d];
        } else {
            m->shape[m->ndim] = shape[d];
            m->to[m->ndim] = to[d];
            m->from[m->ndim++] = from[d];
        }
    }
}

static void copy_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                     size_t itemsize) {
    if (to_stride == (int64_t)itemsize && from_stride == (int64_t)itemsize) {
        memcpy(to, from, (size_t)n * itemsize);
        return;
    }
#define ROW(bytes)                                                                                 \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, bytes); \
        break;
    switch (itemsize) { ROW(1) ROW(2) ROW(4) ROW(8) }
#undef ROW
}

void strided_copy(char *to, const int64_t *to_strides, const char *from,
                  const int64_t *from_strides, const int64_t *shape, int ndim, size_t itemsize) {
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0) return;
    copy_dims m;
    merge(&m, shape, to_strides, from_strides, ndim);
    if (m.ndim == 0) {
        memcpy(to, from, itemsize);
        return;
    }
    int inner = m.ndim - 1;
    int64_t index[ARRAY_MAX_NDIM] = {0};
    for (;;) {
        copy_row(to, m.to[inner], from, m.from[inner], m.shape[inner], itemsize);
        int d = inner - 1;
        for (; d >= 0; d--) {
            to += m.to[d];
            from += m.from[d];
            if (++index[d] < m.shape[d]) break;
            to -= m.to[d] * m.shape[d];
            from -= m.from[d] * m.shape[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

simt_status array_copy_out(array *a, void *to) {
    SIMT_TRY(array_evaluate(a));
    if (a->size == 0) return SIMT_OK;
    int64_t strides[ARRAY_MAX_NDIM], stride = (int64_t)dtype_bytes(a->dt);
    for (int d = a->ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= a->shape[d];
    }
    strided_copy(to, strides, array_data(a), a->strides, a->shape, a->ndim, dtype_bytes(a->dt));
    return SIMT_OK;
}

simt_status array_item(array *a, scalar *out) {
    if (a->size != 1)
        return status_fail(SIMT_ERR_VALUE,
                           "can only convert an array of size 1 to a Python scalar");
    SIMT_TRY(array_evaluate(a));
    *out = scalar_load(a->dt, array_data(a));
    return SIMT_OK;
}
