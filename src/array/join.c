/* concatenate and stack: one new array, each part copied into its window. */
#include <string.h>

#include "array/internal.h"
#include "array/meta.h"
#include "base/heap.h"

static simt_status check_parts(array **arrays, int n, int axis, graph_face face) {
    const array *first = arrays[0];
    for (int i = 1; i < n; i++) {
        if (arrays[i]->ndim != first->ndim) {
            if (face == FACE_TORCH)
                return status_fail(SIMT_ERR_RUNTIME,
                                   "Tensors must have same number of dimensions: got %d and %d",
                                   first->ndim, arrays[i]->ndim);
            return status_fail(SIMT_ERR_VALUE,
                               "all the input arrays must have same number of dimensions, but the "
                               "array at index 0 "
                               "has %d dimension(s) and the array at index %d has %d dimension(s)",
                               first->ndim, i, arrays[i]->ndim);
        }
        for (int d = 0; d < first->ndim; d++) {
            if (d == axis || arrays[i]->shape[d] == first->shape[d]) continue;
            if (face == FACE_TORCH)
                return status_fail(SIMT_ERR_RUNTIME,
                                   "Sizes of tensors must match except in dimension %d. Expected "
                                   "size %lld but got "
                                   "size %lld for tensor number %d in the list.",
                                   axis, (long long)first->shape[d], (long long)arrays[i]->shape[d],
                                   i);
            return status_fail(SIMT_ERR_VALUE,
                               "all the input array dimensions except for the concatenation axis "
                               "must match exactly, "
                               "but along dimension %d, the array at index 0 has size %lld and the "
                               "array at index %d "
                               "has size %lld",
                               d, (long long)first->shape[d], i, (long long)arrays[i]->shape[d]);
        }
    }
    return SIMT_OK;
}

static simt_status check_axis(int *axis, int ndim, graph_face face) {
    int given = *axis;
    if (*axis < 0) *axis += ndim;
    if (*axis >= 0 && *axis < ndim) return SIMT_OK;
    if (face == FACE_TORCH)
        return status_fail(
            SIMT_ERR_INDEX,
            "Dimension out of range (expected to be in range of [%d, %d], but got %d)", -ndim,
            ndim - 1, given);
    return status_fail(SIMT_ERR_VALUE, "axis %d is out of bounds for array of dimension %d", given,
                       ndim);
}

static simt_status common_dtype(array **arrays, int n, graph_face face, dtype *dt) {
    graph_type some[32], *types = n <= 32 ? some : heap_alloc(sizeof *types * (size_t)n);
    if (!types) return status_fail(SIMT_ERR_MEMORY, "out of memory for %d arrays", n);
    for (int i = 0; i < n; i++) types[i] = (graph_type){arrays[i]->dt, false, arrays[i]->ndim == 0};
    dtype compute;
    simt_status status = graph_dtypes(OP_MAXIMUM, face, types, n, DT_F32, &compute, dt);
    if (types != some) heap_free(types);
    return status;
}

/* Writes `part` into the window of `whole` that starts at `start` along the axis. */
static simt_status copy_part(array *whole, array *part, int axis, int64_t start) {
    if (part->size == 0) return SIMT_OK;
    array *window;
    int64_t offset = whole->offset + start * whole->strides[axis];
    SIMT_TRY(array_view_strided(whole, whole->dt, part->shape, whole->strides, whole->ndim, offset,
                                &window));
    queue_request q;
    queue_request_init(&q, OP_CAST);
    q.node.compute = part->dt;
    q.out = window;
    q.fresh = true;
    queue_input(&q, part);
    simt_status status = queue_add(&q, NULL);
    array_unref(window);
    return status;
}

/* NumPy's lies as the parts do; without data where one of them has none. */
static simt_status empty_for(array **arrays, int n, dtype dt, const int64_t *shape, int ndim,
                             graph_face face, array **out) {
    int axes[ARRAY_MAX_NDIM];
    int64_t turned[ARRAY_MAX_NDIM];
    SIMT_TRY(array_same_device(arrays, n));
    if (array_is_meta(arrays[0])) return array_meta(dt, shape, ndim, out);
    if (face != FACE_NUMPY || !array_join_order(arrays, n, ndim, axes))
        return array_empty(dt, shape, ndim, out);
    for (int d = 0; d < ndim; d++) turned[d] = shape[axes[d]];
    array *made;
    simt_status status = array_empty(dt, turned, ndim, &made);
    return array_turn_back(status, made, axes, out);
}

simt_status array_concatenate(array **arrays, int n, int axis, graph_face face, array **out) {
    if (n == 0)
        return face == FACE_TORCH
                   ? status_fail(SIMT_ERR_RUNTIME,
                                 "torch.cat(): expected a non-empty list of Tensors")
                   : status_fail(SIMT_ERR_VALUE, "need at least one array to concatenate");
    int ndim = arrays[0]->ndim;
    if (ndim == 0)
        return face == FACE_TORCH
                   ? status_fail(SIMT_ERR_RUNTIME,
                                 "zero-dimensional tensor (at position 0) cannot be concatenated")
                   : status_fail(SIMT_ERR_VALUE, "zero-dimensional arrays cannot be concatenated");
    SIMT_TRY(check_axis(&axis, ndim, face));
    SIMT_TRY(check_parts(arrays, n, axis, face));
    dtype dt;
    SIMT_TRY(common_dtype(arrays, n, face, &dt));
    int64_t shape[ARRAY_MAX_NDIM];
    memcpy(shape, arrays[0]->shape, sizeof shape);
    for (int i = 1; i < n; i++) shape[axis] += arrays[i]->shape[axis];
    array *whole;
    SIMT_TRY(empty_for(arrays, n, dt, shape, ndim, face, &whole));
    int64_t start = 0;
    simt_status status = SIMT_OK;
    for (int i = 0; i < n && status == SIMT_OK; i++) {
        status = copy_part(whole, arrays[i], axis, start);
        start += arrays[i]->shape[axis];
    }
    if (status != SIMT_OK) {
        array_unref(whole);
        return status;
    }
    whole->store->version = 0; /* filling it was no write that anybody could have seen */
    *out = whole;
    return SIMT_OK;
}

simt_status array_stack(array **arrays, int n, int axis, graph_face face, array **out) {
    if (n == 0)
        return face == FACE_TORCH
                   ? status_fail(SIMT_ERR_RUNTIME, "stack expects a non-empty TensorList")
                   : status_fail(SIMT_ERR_VALUE, "need at least one array to stack");
    int ndim = arrays[0]->ndim;
    SIMT_TRY(check_axis(&axis, ndim + 1, face));
    for (int i = 1; i < n; i++) {
        if (array_same_shape(arrays[i], arrays[0]->shape, ndim)) continue;
        if (face == FACE_NUMPY)
            return status_fail(SIMT_ERR_VALUE, "all input arrays must have the same shape");
        char a[200], b[200];
        return status_fail(
            SIMT_ERR_RUNTIME,
            "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
            shape_print(arrays[0]->shape, ndim, a, sizeof a),
            shape_print(arrays[i]->shape, arrays[i]->ndim, b, sizeof b), i);
    }
    array **parts = heap_zeroed((size_t)n, sizeof *parts);
    if (!parts) return status_fail(SIMT_ERR_MEMORY, "out of memory for %d arrays", n);
    simt_status status = SIMT_OK;
    for (int i = 0; i < n && status == SIMT_OK; i++)
        status = array_expand_dims(arrays[i], axis, &parts[i]);
    if (status == SIMT_OK) status = array_concatenate(parts, n, axis, face, out);
    for (int i = 0; i < n; i++) array_unref(parts[i]);
    heap_free(parts);
    return status;
}
