/* Indexing by arrays: the library steps. All indices are checked before anything is written. */
#include "array/walk.h"

/* An indexed walk over `array`: index dimensions (all index arrays together) and the other ones. */
typedef struct indexed {
    int count; /* index arrays */
    const call_view *index[GRAPH_MAX_INPUTS];
    int axis[GRAPH_MAX_INPUTS];    /* which axis each one indexes */
    int index_ndim, before, after; /* dimensions of the result: before, index, after */
    int64_t before_shape[GRAPH_MAX_NDIM], after_shape[GRAPH_MAX_NDIM];
    int64_t before_strides[GRAPH_MAX_NDIM], after_strides[GRAPH_MAX_NDIM]; /* of the array */
    int64_t npoints, nbefore, nafter;
} indexed;

static void setup(indexed *x, const call_args *c, const call_view *array, int first_index) {
    uint32_t mask = (uint32_t)c->node->params[0];
    int place = (int)c->node->params[1], rest = 0, k = 0;
    *x = (indexed){.index_ndim = (int)c->node->params[2], .npoints = 1, .nbefore = 1, .nafter = 1};
    for (int d = 0; d < array->ndim; d++) {
        if (mask >> d & 1) {
            x->index[k] = &c->in[first_index + k];
            x->axis[k++] = d;
        } else if (rest < place) {
            x->before_shape[x->before] = array->shape[d];
            x->before_strides[x->before++] = array->strides[d];
            x->nbefore *= array->shape[d];
            rest++;
        } else {
            x->after_shape[x->after] = array->shape[d];
            x->after_strides[x->after++] = array->strides[d];
            x->nafter *= array->shape[d];
            rest++;
        }
    }
    x->count = k;
    for (int d = 0; d < x->index_ndim; d++) x->npoints *= x->index[0]->shape[d];
}

static simt_status out_of_bounds(int64_t value, int axis, int64_t size) {
    return status_fail(SIMT_ERR_INDEX, "index %lld is out of bounds for axis %d with size %lld",
                       (long long)value, axis, (long long)size);
}

static simt_status check_indices(const call_view *index, int axis, int64_t size) {
    int64_t position[GRAPH_MAX_NDIM] = {0}, offset = 0;
    int64_t *strides[1] = {(int64_t *)index->strides};
    do {
        int64_t value = load_i64(index->data + offset);
        if (value < -size || value >= size) return out_of_bounds(value, axis, size);
    } while (walk_next(position, index->shape, index->ndim, 1, strides, &offset));
    return SIMT_OK;
}

static simt_status check_all(const indexed *x, const call_view *array) {
    for (int k = 0; k < x->count; k++)
        SIMT_TRY(check_indices(x->index[k], x->axis[k], array->shape[x->axis[k]]));
    return SIMT_OK;
}

/* Where point p lies in the array. */
static int64_t point_offset(const indexed *x, const call_view *array, int64_t p) {
    int64_t offset = 0;
    for (int k = 0; k < x->count; k++) {
        const call_view *v = x->index[k];
        int64_t value = load_i64(v->data + walk_offset(v->shape, v->strides, v->ndim, p));
        if (value < 0) value += array->shape[x->axis[k]];
        offset += value * array->strides[x->axis[k]];
    }
    return offset;
}

typedef struct moving {
    const indexed *x;
    const call_view *array, *result; /* result: strides may be anything */
    bool put, accumulate;
} moving;

/* result's strides of the dimensions after the index dimensions, and offsets of the others. */
static void move_block(const moving *m, char *in_array, char *in_result,
                       const int64_t *result_after) {
    const indexed *x = m->x;
    dtype dt = m->array->dt;
    if (!m->accumulate) {
        if (m->put)
            strided_copy(in_array, x->after_strides, in_result, result_after, x->after_shape,
                         x->after, dtype_bytes(dt));
        else
            strided_copy(in_result, result_after, in_array, x->after_strides, x->after_shape,
                         x->after, dtype_bytes(dt));
        return;
    }
    int64_t position[GRAPH_MAX_NDIM] = {0}, offsets[2] = {0, 0};
    int64_t *strides[2] = {(int64_t *)x->after_strides, (int64_t *)result_after};
    do element_add(dt, in_array + offsets[0], in_result + offsets[1]);
    while (walk_next(position, x->after_shape, x->after, 2, strides, offsets));
}

/* Work items: (before, point) pairs in C order of the result. */
static simt_status move_range(void *context, size_t begin, size_t end) {
    const moving *m = context;
    const indexed *x = m->x;
    const int64_t *rs = m->result->strides;
    const int64_t *after = rs + x->before + x->index_ndim;
    if (x->nafter == 0) return SIMT_OK;
    for (size_t i = begin; i < end; i++) {
        int64_t b = (int64_t)i / x->npoints, p = (int64_t)i % x->npoints;
        int64_t in_array = walk_offset(x->before_shape, x->before_strides, x->before, b) +
                           point_offset(x, m->array, p);
        int64_t in_result = walk_offset(x->before_shape, rs, x->before, b) +
                            walk_offset(x->index[0]->shape, rs + x->before, x->index_ndim, p);
        move_block(m, m->array->data + in_array, m->result->data + in_result, after);
    }
    return SIMT_OK;
}

simt_status call_index_get(const call_args *c) {
    indexed x;
    const call_view *a = &c->in[0];
    setup(&x, c, a, 1);
    SIMT_TRY(check_all(&x, a));
    moving m = {.x = &x, .array = a, .result = &c->out};
    size_t block = (size_t)x.nafter * dtype_bytes(a->dt) + 16;
    return c->dev->parallel(c->dev, (size_t)(x.nbefore * x.npoints), 65536 / block + 1, move_range,
                            &m);
}

/* In order: the last of equal indices wins. */
simt_status call_index_put(const call_args *c) {
    indexed x;
    setup(&x, c, &c->out, 2);
    SIMT_TRY(check_all(&x, &c->out));
    moving m = {.x = &x,
                .array = &c->out,
                .result = &c->in[1],
                .put = true,
                .accumulate = c->node->params[3] != 0};
    return move_range(&m, 0, (size_t)(x.nbefore * x.npoints));
}

/* ---- along one axis ---- */

simt_status call_take_along(const call_args *c) {
    const call_view *a = &c->in[0], *index = &c->in[1];
    int axis = (int)c->node->params[0];
    int64_t size = a->shape[axis];
    SIMT_TRY(check_indices(index, axis, size));
    int64_t a_strides[GRAPH_MAX_NDIM], position[GRAPH_MAX_NDIM] = {0}, offsets[3] = {0, 0, 0};
    for (int d = 0; d < a->ndim; d++)
        a_strides[d] = d == axis || (a->shape[d] == 1 && index->shape[d] != 1) ? 0 : a->strides[d];
    int64_t *strides[3] = {a_strides, (int64_t *)index->strides, (int64_t *)c->out.strides};
    size_t itemsize = dtype_bytes(a->dt);
    do {
        int64_t value = load_i64(index->data + offsets[1]);
        if (value < 0) value += size;
        memcpy(c->out.data + offsets[2], a->data + offsets[0] + value * a->strides[axis], itemsize);
    } while (walk_next(position, index->shape, index->ndim, 3, strides, offsets));
    return SIMT_OK;
}

simt_status call_scatter_add(const call_args *c) {
    const call_view *index = &c->in[1], *source = &c->in[2];
    int axis = (int)c->node->params[0];
    int64_t size = c->out.shape[axis];
    SIMT_TRY(check_indices(index, axis, size));
    int64_t to_strides[GRAPH_MAX_NDIM], position[GRAPH_MAX_NDIM] = {0}, offsets[3] = {0, 0, 0};
    memcpy(to_strides, c->out.strides, sizeof *to_strides * (size_t)c->out.ndim);
    to_strides[axis] = 0;
    int64_t *strides[3] = {to_strides, (int64_t *)index->strides, (int64_t *)source->strides};
    do {
        int64_t value = load_i64(index->data + offsets[1]);
        if (value < 0) value += size;
        element_add(c->out.dt, c->out.data + offsets[0] + value * c->out.strides[axis],
                    source->data + offsets[2]);
    } while (walk_next(position, index->shape, index->ndim, 3, strides, offsets));
    return SIMT_OK;
}
