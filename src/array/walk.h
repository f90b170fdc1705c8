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
