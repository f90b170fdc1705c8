/* Images at another size, as Pillow makes them. */
#ifndef SIMT_ARRAY_RESIZE_H
#define SIMT_ARRAY_RESIZE_H

#include "array/array.h"

/* uint8 images (N, H, W) as (N, height, width), computed now. filter: "nearest", "box", "bilinear",
 * "hamming", "bicubic" or "lanczos". SIMT_ERR_TYPE: other images; SIMT_ERR_VALUE: a size or filter
 * that cannot be. */
simt_status array_resize(array *images, int64_t height, int64_t width, const char *filter,
                         array **out);

#endif
