/* Arrays of PyTorch's device 'meta': shape, strides and type without data.
 *
 * The rules of shapes and types run when an operation is made, so what is computed from such an array is one
 * too, and no node is queued. Looking at values is an error. The storage is one whose computation failed, with
 * no text of its own, and has no memory.
 */
#ifndef SIMT_ARRAY_META_H
#define SIMT_ARRAY_META_H

#include "array/array.h"

simt_status array_meta(dtype dt, const int64_t *shape, int ndim, array **out);

static inline bool storage_is_meta(const storage *s) {
    return s->failed == SIMT_ERR_NOT_IMPLEMENTED && !s->diag;
}
static inline void storage_make_meta(storage *s) { s->failed = SIMT_ERR_NOT_IMPLEMENTED; }
static inline bool array_is_meta(const array *a) { return storage_is_meta(a->store); }

/* What one operation takes is all without data or all with; a CPU array of no dimension goes with both. */
static inline simt_status array_same_device(array *const *arrays, int n) {
    const array *first = NULL;
    for (int i = 0; i < n; i++) {
        const array *a = arrays[i];
        if (!a || (a->ndim == 0 && !array_is_meta(a))) continue;
        if (!first) first = a;
        if (array_is_meta(a) != array_is_meta(first))
            return status_fail(SIMT_ERR_RUNTIME,
                               "Expected all tensors to be on the same device, but found at least "
                               "two devices, %s!",
                               array_is_meta(first) ? "meta and cpu" : "cpu and meta");
    }
    return SIMT_OK;
}

/* What needs no values of `of` (nothing is computed, or 0): without data where it has none. */
static inline simt_status array_full_of(const array *of, dtype dt, const int64_t *shape, int ndim,
                                        int value, array **out) {
    if (array_is_meta(of)) return array_meta(dt, shape, ndim, out);
    return array_full(dt, shape, ndim, (scalar){.kind = 'I', .i = value}, out);
}
static inline simt_status array_empty_of(const array *of, dtype dt, const int64_t *shape, int ndim,
                                         array **out) {
    return array_is_meta(of) ? array_meta(dt, shape, ndim, out) : array_empty(dt, shape, ndim, out);
}

/* The error of a storage that failed, or is meta. */
simt_status storage_failure(const storage *s);

#endif
