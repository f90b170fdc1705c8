/* Creation. Constant and counting arrays are nodes (they fuse); odd shapes are filled at once. */
#include <string.h>

#include "array/internal.h"

simt_status array_check_shape(const int64_t *shape, int ndim, dtype dt, int64_t *size) {
    if (ndim > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_VALUE,
                           "maximum supported dimension for an ndarray is currently %d, found %d",
                           ARRAY_MAX_NDIM, ndim);
    int64_t bytes = (int64_t)dtype_bytes(dt), product = 1;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0) return status_fail(SIMT_ERR_VALUE, "negative dimensions are not allowed");
        if (shape[d] == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(bytes, shape[d], &bytes)) {
            char text[200];
            return status_fail(
                SIMT_ERR_VALUE,
                "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum "
                "possible size (shape %s, %s)",
                shape_print(shape, ndim, text, sizeof text), dtype_table[dt].name);
        }
        if (shape[d]) product *= shape[d];
    }
    *size = empty ? 0 : product;
    return SIMT_OK;
}

simt_status array_empty(dtype dt, const int64_t *shape, int ndim, array **out) {
    SIMT_TRY(array_context_init());
    return array_new(dt, shape, ndim, true, out);
}

static simt_status creation_node(array_op op, dtype dt, dtype compute, const int64_t *shape,
                                 int ndim, const uint64_t *scalars, int nscalars, array **out) {
    int64_t size;
    SIMT_TRY(array_context_init());
    SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    if (size == 0) return array_new(dt, shape, ndim, true, out);
    queue_request q;
    queue_request_init(&q, op);
    q.node.compute = compute;
    q.node.nscalars = nscalars;
    memcpy(q.scalars, scalars, sizeof *scalars * (size_t)nscalars);
    queue_output_new(&q, dt, shape, ndim);
    return queue_add(&q, out);
}

simt_status array_full(dtype dt, const int64_t *shape, int ndim, scalar value, array **out) {
    uint64_t bits = 0;
    scalar_store(value, dt, &bits);
    return creation_node(OP_FULL, dt, dt, shape, ndim, &bits, 1, out);
}

/* Floats count in double, as NumPy's do: start + i * step, rounded once. */
simt_status array_arange(dtype dt, scalar start, scalar step, int64_t count, array **out) {
    dtype compute = dtype_is_float(dt) ? DT_F64 : DT_I64;
    uint64_t bits[2] = {0, 0};
    scalar_store(start, compute, &bits[0]);
    scalar_store(step, compute, &bits[1]);
    return creation_node(OP_IOTA, dt, compute, &count, 1, bits, 2, out);
}

/* A new array that the host fills. */
static simt_status open_new(dtype dt, const int64_t *shape, int ndim, array_window *w,
                            array **out) {
    SIMT_TRY(array_empty(dt, shape, ndim, out));
    simt_status status = array_open(*out, ARRAY_FILL, w);
    if (status != SIMT_OK) array_drop(out);
    return status;
}

static simt_status close_new(array_window *w, array **out) {
    simt_status status = array_close(w);
    if (status != SIMT_OK) array_drop(out);
    return status;
}

simt_status array_linspace(dtype dt, double start, double stop, int64_t count, bool endpoint,
                           array **out) {
    array_window w;
    SIMT_TRY(open_new(dt, &count, 1, &w, out));
    size_t itemsize = dtype_bytes(dt);
    double parts = (double)(endpoint ? count - 1 : count), step = (stop - start) / parts;
    for (int64_t i = 0; i < count; i++) {
        double value = i == 0                       ? start
                       : endpoint && i == count - 1 ? stop
                                                    : (double)i * step + start;
        scalar_store((scalar){.kind = 'F', .f = value}, dt, w.data + (size_t)i * itemsize);
    }
    return close_new(&w, out);
}

simt_status array_eye(dtype dt, int64_t rows, int64_t columns, int64_t diagonal, array **out) {
    int64_t shape[2] = {rows, columns};
    array_window w;
    SIMT_TRY(open_new(dt, shape, 2, &w, out));
    size_t itemsize = dtype_bytes(dt);
    memset(w.data, 0, (*out)->store->bytes);
    for (int64_t r = diagonal < 0 ? -diagonal : 0; r < rows && r + diagonal < columns; r++)
        scalar_store((scalar){.kind = 'I', .i = 1}, dt,
                     w.data + (size_t)(r * columns + r + diagonal) * itemsize);
    return close_new(&w, out);
}

simt_status array_repeat_index(const int64_t *counts, int64_t ncounts, int64_t size, array **out) {
    int64_t total = 0, step = ncounts == 1 ? 0 : 1;
    if (ncounts != size && ncounts != 1)
        return status_fail(SIMT_ERR_VALUE,
                           "%lld counts of repetitions for an axis of %lld elements",
                           (long long)ncounts, (long long)size);
    for (int64_t i = 0; i < ncounts; i++) {
        if (counts[i] < 0)
            return status_fail(SIMT_ERR_VALUE, "repeats may not contain negative values: %lld",
                               (long long)counts[i]);
        if (__builtin_add_overflow(total, counts[i], &total)) break;
        if (step == 0 && __builtin_mul_overflow(total, size, &total)) total = -1;
    }
    if (total < 0 || total > INT64_MAX / 8)
        return status_fail(SIMT_ERR_VALUE, "repeat: the result has more elements than memory");
    array_window w;
    SIMT_TRY(open_new(DT_I64, &total, 1, &w, out));
    int64_t *to = (int64_t *)(void *)w.data;
    for (int64_t i = 0; i < size; i++)
        for (int64_t k = counts[i * step]; k > 0; k--) *to++ = i;
    return close_new(&w, out);
}

simt_status array_from_memory(dtype dt, const int64_t *shape, const int64_t *strides, int ndim,
                              const void *data, array **out) {
    array_window w;
    SIMT_TRY(open_new(dt, shape, ndim, &w, out));
    const array *a = *out;
    strided_copy(w.data, a->strides, data, strides ? strides : a->strides, a->shape, a->ndim,
                 dtype_bytes(dt));
    return close_new(&w, out);
}

simt_status array_from_foreign(dtype dt, const int64_t *shape, const int64_t *strides, int ndim,
                               void *data, size_t bytes, void (*release)(void *), void *owner,
                               array **out) {
    int64_t size;
    SIMT_TRY(array_context_init());
    SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    if (!array_ctx.dev->is_host) {
        SIMT_TRY(array_from_memory(dt, shape, strides, ndim, data, out));
        if (release) release(owner);
        return SIMT_OK;
    }
    SIMT_TRY(array_lock());
    storage *s = storage_new_locked(bytes);
    simt_status status = s ? SIMT_OK : SIMT_ERR_MEMORY;
    if (s) {
        s->data = data;
        s->exposed = s->foreign = true;
        status = array_new_locked(s, dt, shape, strides, ndim, 0, out);
        if (status == SIMT_OK) { /* only now: on failure the caller keeps the owner */
            s->release = release;
            s->owner = owner;
        }
    }
    array_unlock();
    return status;
}
