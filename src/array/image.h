/* What convolution and pooling share. */
#ifndef SIMT_ARRAY_IMAGE_H
#define SIMT_ARRAY_IMAGE_H

#include "array/internal.h"

/* The array in C order, of type dt: a new reference. */
simt_status image_dense(array *a, dtype dt, array **out);
/* f32 and f64 as they are, 16-bit floats in f32. Failure: not a float. */
simt_status image_compute_dtype(const array *a, const char *name, dtype *dt);
/* Gives `made` (taken) back in type dt. */
simt_status image_result(simt_status status, array *made, dtype dt, array **out);

/* Positions along one axis: output o and tap k meet input o * stride - padding + k * dilation. */
typedef struct image_axis {
    int64_t in, out, kernel, stride, padding, dilation;
} image_axis;
/* The outputs [*low, *high) whose tap k lies inside the input. */
static inline void image_valid(const image_axis *x, int64_t k, int64_t *low, int64_t *high) {
    int64_t shift = k * x->dilation - x->padding;
    *low = shift >= 0 ? 0 : (-shift + x->stride - 1) / x->stride;
    int64_t last = x->in - 1 - shift;
    *high = last < 0 ? 0 : min_i64(x->out, last / x->stride + 1);
    if (*high < *low) *high = *low;
    if (*low > x->out) *low = *high = x->out;
}

#endif
