/* Walking strided memory in library steps, and arithmetic on elements by dtype. */
#ifndef SIMT_ARRAY_WALK_H
#define SIMT_ARRAY_WALK_H

#include <string.h>

#include "array/internal.h"

/* The byte offset of flat element `index` (C order) of a view. */
static inline int64_t walk_offset(const int64_t *shape, const int64_t *strides, int ndim,
                                  int64_t index) {
    int64_t offset = 0;
    for (int d = ndim - 1; d > 0; d--) {
        int64_t rest = index / shape[d];
        offset += (index - rest * shape[d]) * strides[d];
        index = rest;
    }
    return ndim > 0 ? offset + index * strides[0] : 0;
}

/* The rows along one axis of a step's input and output: the other dimensions. */
typedef struct walk_rows {
    int axis, ndim;
    int64_t shape[GRAPH_MAX_NDIM], from[GRAPH_MAX_NDIM], to[GRAPH_MAX_NDIM];
    int64_t count;
} walk_rows;

static inline walk_rows walk_rows_of(const call_args *c, int axis) {
    walk_rows r = {.axis = axis, .count = 1};
    for (int d = 0; d < c->out.ndim; d++) {
        if (d == axis) continue;
        r.shape[r.ndim] = c->out.shape[d];
        r.from[r.ndim] = c->in[0].strides[d];
        r.to[r.ndim++] = c->out.strides[d];
        r.count *= c->out.shape[d];
    }
    return r;
}
static inline const char *walk_row_in(const call_args *c, const walk_rows *r, int64_t i) {
    return c->in[0].data + walk_offset(r->shape, r->from, r->ndim, i);
}
static inline char *walk_row_out(const call_args *c, const walk_rows *r, int64_t i) {
    return c->out.data + walk_offset(r->shape, r->to, r->ndim, i);
}

/* Steps `index[]` to the next element in C order and moves n offsets along; false at the end. */
static inline bool walk_next(int64_t *index, const int64_t *shape, int ndim, int n,
                             int64_t *const *strides, int64_t *offsets) {
    for (int d = ndim - 1; d >= 0; d--) {
        for (int i = 0; i < n; i++) offsets[i] += strides[i][d];
        if (++index[d] < shape[d]) return true;
        for (int i = 0; i < n; i++) offsets[i] -= strides[i][d] * shape[d];
        index[d] = 0;
    }
    return false;
}

/* *to += *from, both of type dt; 16-bit floats are added in single and rounded. */
static inline void element_add(dtype dt, char *to, const char *from) {
    switch (dt) {
#define ADD(id, ctype)              \
    case DT_##id: {                 \
        ctype a, b;                 \
        memcpy(&a, to, sizeof a);   \
        memcpy(&b, from, sizeof b); \
        a = (ctype)(a + b);         \
        memcpy(to, &a, sizeof a);   \
        return;                     \
    }
        ADD(F32, float)
        ADD(F64, double)
        ADD(I8, uint8_t)
        ADD(U8, uint8_t)
        ADD(I16, uint16_t)
        ADD(U16, uint16_t)
        ADD(I32, uint32_t)
        ADD(U32, uint32_t)
        ADD(I64, uint64_t)
        ADD(U64, uint64_t)
#undef ADD
    case DT_BOOL: *to = (char)(*to | *from); return;
    default: {
        uint16_t a, b;
        memcpy(&a, to, 2);
        memcpy(&b, from, 2);
        a = dt == DT_F16 ? float_to_half(half_to_float(a) + half_to_float(b))
                         : float_to_bfloat(bfloat_to_float(a) + bfloat_to_float(b));
        memcpy(to, &a, 2);
    }
    }
}

static inline int64_t load_i64(const char *from) {
    int64_t v;
    memcpy(&v, from, sizeof v);
    return v;
}

#endif
