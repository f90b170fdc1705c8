/* Orders of memory: what NumPy's order= asks for, and what its ufuncs keep of their operands (order K).
 *
 * An array in another order than C is a transposed view of one in C order: operations on such arrays run on the
 * views that are in order, so that nothing below knows of it and memory is walked as it lies.
 */
#include <string.h>

#include "array/internal.h"

static uint64_t distance(int64_t stride) {
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

static bool descends(const array *a) {
    uint64_t last = UINT64_MAX;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 1 || a->strides[d] == 0) continue;
        if (distance(a->strides[d]) > last) return false;
        last = distance(a->strides[d]);
    }
    return true;
}

/* The stride of axis d of ndim, to which the array is broadcast; 0: it says nothing. */
static uint64_t stride_at(const array *a, int ndim, int d) {
    d -= ndim - a->ndim;
    return d < 0 || a->shape[d] == 1 ? 0 : distance(a->strides[d]);
}

/* Does axis x belong inside of axis y? 0: no; 1: yes; -1: nobody says. Where arrays differ, C order wins. */
static int goes_inside(array *const *arrays, int n, int ndim, int x, int y) {
    int answer = -1;
    for (int i = 0; i < n; i++) {
        uint64_t sx = stride_at(arrays[i], ndim, x), sy = stride_at(arrays[i], ndim, y);
        if (sx == 0 || sy == 0) continue;
        if (sy <= sx)
            answer = 0;
        else if (answer < 0)
            answer = 1;
    }
    return answer;
}

/* NumPy's iterator: axes are put in by insertion, from the last one on. */
bool array_memory_order(array *const *arrays, int n, int ndim, int *axes) {
    bool in_order = true;
    for (int i = 0; i < n && in_order; i++) in_order = descends(arrays[i]);
    if (in_order) return false;
    int inside[ARRAY_MAX_NDIM]; /* from the innermost */
    for (int d = 0; d < ndim; d++) inside[d] = ndim - 1 - d;
    for (int i = 1; i < ndim; i++) {
        int axis = inside[i], to = i;
        for (int k = i - 1; k >= 0; k--) {
            int answer = goes_inside(arrays, n, ndim, axis, inside[k]);
            if (answer == 0) break;
            if (answer == 1) to = k;
        }
        memmove(inside + to + 1, inside + to, (size_t)(i - to) * sizeof *inside);
        inside[to] = axis;
    }
    bool same = true;
    for (int d = 0; d < ndim; d++) {
        axes[d] = inside[ndim - 1 - d];
        same = same && axes[d] == d;
    }
    return !same;
}

simt_status array_turn_back(simt_status status, array *turned, const int *axes, array **out) {
    if (status != SIMT_OK) return status;
    int inverse[ARRAY_MAX_NDIM];
    for (int d = 0; d < turned->ndim; d++) inverse[axes[d]] = d;
    status = array_transpose(turned, inverse, out);
    array_unref(turned);
    return status;
}

/* NumPy's joins of arrays: put in from the first axis on. */
bool array_join_order(array *const *arrays, int n, int ndim, int *axes) {
    bool same = true;
    for (int d = 0; d < ndim; d++) axes[d] = d;
    for (int i = 1; i < ndim; i++) {
        int axis = axes[i], to = i;
        for (int k = i - 1; k >= 0; k--) {
            int answer = goes_inside(arrays, n, ndim, axes[k], axis);
            if (answer == 0) break;
            if (answer == 1) to = k;
        }
        memmove(axes + to + 1, axes + to, (size_t)(i - to) * sizeof *axes);
        axes[to] = axis;
        same = same && to == i;
    }
    return !same;
}

bool array_is_f_contiguous(const array *a) {
    if (a->size == 0) return true;
    int64_t expected = (int64_t)dtype_bytes(a->dt);
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] != 1 && a->strides[d] != expected) return false;
        expected *= a->shape[d];
    }
    return true;
}

/* Order A: F of an array that lies so, else C. */
static char which_order(const array *a, char order) {
    if (order != 'A') return order;
    return array_is_f_contiguous(a) && !array_is_contiguous(a) ? 'F' : 'C';
}

/* The axes in the order wanted, outermost first; false: C order. */
static bool axes_of(array *a, char order, int *axes) {
    if (order == 'K') return array_memory_order(&a, 1, a->ndim, axes);
    for (int d = 0; d < a->ndim; d++) axes[d] = a->ndim - 1 - d;
    return order == 'F' && a->ndim > 1;
}

simt_status array_astype_order(array *a, dtype dt, char order, array **out) {
    int axes[ARRAY_MAX_NDIM];
    if (!axes_of(a, which_order(a, order), axes))
        return a->dt == dt ? array_copy(a, out) : array_astype(a, dt, out);
    array *view, *made;
    SIMT_TRY(array_transpose(a, axes, &view));
    simt_status status = a->dt == dt ? array_copy(view, &made) : array_astype(view, dt, &made);
    array_unref(view);
    return array_turn_back(status, made, axes, out);
}

simt_status array_reshape_order(array *a, const int64_t *shape, int ndim, char order, array **out) {
    order = which_order(a, order);
    if (order == 'C' || ndim > ARRAY_MAX_NDIM) return array_reshape(a, shape, ndim, out);
    array *view, *made;
    SIMT_TRY(array_transpose(a, NULL, &view));
    int64_t turned[ARRAY_MAX_NDIM];
    for (int d = 0; d < ndim; d++) turned[d] = shape[ndim - 1 - d];
    simt_status status = array_reshape(view, turned, ndim, &made);
    array_unref(view);
    if (status != SIMT_OK) return status;
    status = array_transpose(made, NULL, out);
    array_unref(made);
    return status;
}

simt_status array_ravel_order(array *a, char order, array **out) {
    int axes[ARRAY_MAX_NDIM], same[ARRAY_MAX_NDIM];
    int64_t flat = -1;
    for (int d = 0; d < a->ndim; d++) same[d] = d;
    bool turns = axes_of(a, which_order(a, order), axes);
    array *view, *dense = NULL;
    SIMT_TRY(array_transpose(a, turns ? axes : same, &view));
    simt_status status = SIMT_OK;
    if (!array_is_contiguous(view)) status = array_copy(view, &dense); /* never with steps */
    if (status == SIMT_OK) status = array_reshape(dense ? dense : view, &flat, 1, out);
    array_unref(dense);
    array_unref(view);
    return status;
}

simt_status array_full_order(dtype dt, const int64_t *shape, int ndim, const scalar *value,
                             char order, array **out) {
    int64_t turned[ARRAY_MAX_NDIM];
    if (order != 'F' || ndim < 2)
        return value ? array_full(dt, shape, ndim, *value, out) : array_empty(dt, shape, ndim, out);
    for (int d = 0; d < ndim; d++) turned[d] = shape[ndim - 1 - d];
    array *made;
    simt_status status =
        value ? array_full(dt, turned, ndim, *value, &made) : array_empty(dt, turned, ndim, &made);
    if (status != SIMT_OK) return status;
    status = array_transpose(made, NULL, out);
    array_unref(made);
    return status;
}
