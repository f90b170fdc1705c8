/* Views: other shapes and strides on the same storage. */
#include <stdlib.h>
#include <string.h>

#include "array/internal.h"

static simt_status make_view(array *a, dtype dt, const int64_t *shape, const int64_t *strides,
                             int ndim, int64_t offset, array **out) {
    if (ndim > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_VALUE,
                           "maximum supported dimension for an ndarray is currently %d, found %d",
                           ARRAY_MAX_NDIM, ndim);
    SIMT_TRY(array_lock());
    a->store->refs++;
    simt_status status = array_new_locked(a->store, dt, shape, strides, ndim, offset, out);
    if (status == SIMT_OK) (*out)->hidden = a->hidden;
    array_unlock();
    return status;
}

simt_status array_alias(array *a, bool hidden, array **out) {
    SIMT_TRY(make_view(a, a->dt, a->shape, a->strides, a->ndim, a->offset, out));
    (*out)->hidden = hidden;
    return SIMT_OK;
}

simt_status array_view_strided(array *a, dtype dt, const int64_t *shape, const int64_t *strides,
                               int ndim, int64_t offset, array **out) {
    int64_t size;
    SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    array probe = {.dt = dt, .ndim = ndim, .size = size, .offset = offset};
    memcpy(probe.shape, shape, sizeof *shape * (size_t)ndim);
    memcpy(probe.strides, strides, sizeof *strides * (size_t)ndim);
    int64_t low, high;
    array_extent(&probe, &low, &high);
    if (size && (low < 0 || high > (int64_t)a->store->bytes))
        return status_fail(SIMT_ERR_VALUE,
                           "the view reaches from byte %lld to byte %lld of a storage of %zu bytes",
                           (long long)low, (long long)high, a->store->bytes);
    return make_view(a, dt, shape, strides, ndim, offset, out);
}

simt_status array_transpose(array *a, const int *axes, array **out) {
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    uint32_t seen = 0;
    for (int d = 0; d < a->ndim; d++) {
        int from = axes ? axes[d] : a->ndim - 1 - d;
        if (from < 0 || from >= a->ndim || (seen >> from & 1))
            return status_fail(SIMT_ERR_VALUE, "axes don't match array");
        seen |= 1u << from;
        shape[d] = a->shape[from];
        strides[d] = a->strides[from];
    }
    return make_view(a, a->dt, shape, strides, a->ndim, a->offset, out);
}

simt_status array_squeeze(array *a, uint32_t axes_mask, array **out) {
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    int ndim = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (axes_mask >> d & 1) {
            if (a->shape[d] == 1) continue;
            return status_fail(
                SIMT_ERR_VALUE,
                "cannot select an axis to squeeze out which has size not equal to one");
        }
        shape[ndim] = a->shape[d];
        strides[ndim++] = a->strides[d];
    }
    return make_view(a, a->dt, shape, strides, ndim, a->offset, out);
}

simt_status array_expand_dims(array *a, int axis, array **out) {
    if (axis < 0) axis += a->ndim + 1;
    if (axis < 0 || axis > a->ndim)
        return status_fail(SIMT_ERR_VALUE, "axis %d is out of bounds for array of dimension %d",
                           axis, a->ndim + 1);
    if (a->ndim == ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_VALUE,
                           "maximum supported dimension for an ndarray is currently %d, found %d",
                           ARRAY_MAX_NDIM, a->ndim + 1);
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    for (int d = 0; d <= a->ndim; d++) {
        int from = d - (d > axis);
        shape[d] = d == axis ? 1 : a->shape[from];
        strides[d] = d == axis ? 0 : a->strides[from];
    }
    return make_view(a, a->dt, shape, strides, a->ndim + 1, a->offset, out);
}

simt_status array_broadcast_to(array *a, const int64_t *shape, int ndim, array **out) {
    bool fits = ndim >= a->ndim;
    for (int d = 0; fits && d < a->ndim; d++) {
        int64_t wanted = shape[ndim - a->ndim + d];
        fits = a->shape[d] == wanted || a->shape[d] == 1;
    }
    if (!fits) {
        char from[200], to[200];
        return status_fail(SIMT_ERR_VALUE,
                           "operands could not be broadcast together with remapped shapes "
                           "[original->remapped]: %s  "
                           "and requested shape %s",
                           shape_print(a->shape, a->ndim, from, sizeof from),
                           shape_print(shape, ndim, to, sizeof to));
    }
    int64_t size;
    SIMT_TRY(array_check_shape(shape, ndim, a->dt, &size));
    graph_view v;
    queue_view_broadcast(&v, a, shape, ndim);
    return make_view(a, a->dt, v.shape, v.strides, ndim, a->offset, out);
}

/* ---- basic indexing ---- */

/* Elements of a range that has some. */
static int64_t slice_count(const array_slice *s) {
    return (s->stop - s->start + (s->step > 0 ? -1 : 1)) / s->step + 1;
}

simt_status array_slice_view(array *a, const array_slice *items, int n, array **out) {
    int64_t shape[ARRAY_MAX_NDIM * 2], strides[ARRAY_MAX_NDIM * 2], offset = a->offset;
    int ndim = 0, axis = 0, used = 0;
    for (int i = 0; i < n; i++) used += items[i].kind != SLICE_NEWAXIS;
    if (used > a->ndim)
        return status_fail(
            SIMT_ERR_INDEX,
            "too many indices for array: array is %d-dimensional, but %d were indexed", a->ndim,
            used);
    for (int i = 0; i < n; i++) {
        if (ndim >= ARRAY_MAX_NDIM)
            return status_fail(SIMT_ERR_INDEX, "too many dimensions in the result");
        const array_slice *s = &items[i];
        if (s->kind == SLICE_NEWAXIS) {
            shape[ndim] = 1;
            strides[ndim++] = 0;
            continue;
        }
        int64_t length = a->shape[axis], stride = a->strides[axis];
        if (s->kind == SLICE_INDEX) {
            int64_t index = s->start < 0 ? s->start + length : s->start;
            if (index < 0 || index >= length)
                return status_fail(SIMT_ERR_INDEX,
                                   "index %lld is out of bounds for axis %d with size %lld",
                                   (long long)s->start, axis, (long long)length);
            offset += index * stride;
        } else {
            if (s->step == 0) return status_fail(SIMT_ERR_VALUE, "slice step cannot be zero");
            bool any = s->step > 0 ? s->stop > s->start : s->start > s->stop;
            if (any && (s->start < 0 || s->start >= length || s->stop < -1 || s->stop > length))
                return status_fail(SIMT_ERR_INDEX,
                                   "a slice from %lld to %lld is out of bounds for axis %d with "
                                   "size %lld",
                                   (long long)s->start, (long long)s->stop, axis,
                                   (long long)length);
            int64_t count = any ? slice_count(s) : 0;
            if (any) offset += s->start * stride;
            shape[ndim] = count;
            /* beyond addresses only where there is nothing to step to */
            strides[ndim++] = (int64_t)((uint64_t)stride * (uint64_t)s->step);
        }
        axis++;
    }
    for (; axis < a->ndim; axis++) {
        if (ndim >= ARRAY_MAX_NDIM)
            return status_fail(SIMT_ERR_INDEX, "too many dimensions in the result");
        shape[ndim] = a->shape[axis];
        strides[ndim++] = a->strides[axis];
    }
    return make_view(a, a->dt, shape, strides, ndim, offset, out);
}

/* ---- reshape ---- */

/* Fills in the -1 and checks the size. */
static simt_status resolve_shape(const array *a, const int64_t *shape, int ndim, int64_t *full) {
    int unknown = -1;
    int64_t known = 1;
    bool fits = ndim <= ARRAY_MAX_NDIM;
    for (int d = 0; fits && d < ndim; d++) {
        full[d] = shape[d];
        if (shape[d] == -1) {
            if (unknown >= 0)
                return status_fail(SIMT_ERR_VALUE, "can only specify one unknown dimension");
            unknown = d;
        } else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known)) {
            fits = false;
        }
    }
    if (fits && unknown >= 0) {
        fits = known > 0 && a->size % known == 0;
        if (fits) full[unknown] = a->size / known;
    } else if (fits) {
        fits = known == a->size;
    }
    if (fits) return SIMT_OK;
    char text[300];
    return status_fail(
        SIMT_ERR_VALUE, "cannot reshape array of size %lld into shape %s", (long long)a->size,
        shape_print(shape, ndim < ARRAY_MAX_NDIM ? ndim : ARRAY_MAX_NDIM, text, sizeof text));
}

/* Strides of the new shape on the old memory; false when none exist. Both shapes have the same size > 0.
 * Walks both shapes in step: groups of old dimensions whose product is that of a group of new ones must
 * lie densely. */
static bool reshape_strides(const array *a, const int64_t *shape, int ndim, int64_t *strides) {
    int64_t old_shape[ARRAY_MAX_NDIM], old_strides[ARRAY_MAX_NDIM];
    int old_ndim = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 1) continue;
        old_shape[old_ndim] = a->shape[d];
        old_strides[old_ndim++] = a->strides[d];
    }
    int o = 0, n = 0;
    while (o < old_ndim && n < ndim) {
        int o_end = o + 1, n_end = n + 1;
        int64_t o_size = old_shape[o], n_size = shape[n];
        while (o_size != n_size) {
            if (n_size < o_size)
                n_size *= shape[n_end++];
            else
                o_size *= old_shape[o_end++];
        }
        for (int d = o; d < o_end - 1; d++)
            if (old_strides[d] != old_strides[d + 1] * old_shape[d + 1]) return false;
        strides[n_end - 1] = old_strides[o_end - 1];
        for (int d = n_end - 1; d > n; d--) strides[d - 1] = strides[d] * shape[d];
        o = o_end;
        n = n_end;
    }
    for (; n < ndim; n++)
        strides[n] = n ? strides[n - 1] : (int64_t)dtype_bytes(a->dt); /* length 1 */
    return true;
}

static void dense_strides(dtype dt, const int64_t *shape, int ndim, int64_t *strides) {
    int64_t stride = (int64_t)dtype_bytes(dt);
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= shape[d];
    }
}

simt_status array_try_reshape_view(array *a, const int64_t *shape, int ndim, array **out) {
    int64_t full[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    *out = NULL;
    SIMT_TRY(resolve_shape(a, shape, ndim, full));
    if (array_is_contiguous(a))
        dense_strides(a->dt, full, ndim, strides);
    else if (!reshape_strides(a, full, ndim, strides))
        return SIMT_OK;
    return make_view(a, a->dt, full, strides, ndim, a->offset, out);
}

simt_status array_reshape(array *a, const int64_t *shape, int ndim, array **out) {
    SIMT_TRY(array_try_reshape_view(a, shape, ndim, out));
    if (*out) return SIMT_OK;
    array *copy;
    SIMT_TRY(array_copy(a, &copy));
    simt_status status = array_try_reshape_view(copy, shape, ndim, out);
    array_unref(copy);
    return status;
}
