/* Indexing by arrays: the library steps. All indices are checked before anything is written. */
#include <stdatomic.h>

#include "array/walk.h"

/* An indexed walk over `array`: index dimensions (all index arrays together) and the other ones. */
typedef struct indexed {
    int count;  /* index arrays */
    bool wraps; /* negative indices count from the end */
    const call_view *index[GRAPH_MAX_INPUTS];
    int axis[GRAPH_MAX_INPUTS];    /* which axis each one indexes */
    int index_ndim, before, after; /* dimensions of the result: before, index, after */
    int64_t before_shape[GRAPH_MAX_NDIM], after_shape[GRAPH_MAX_NDIM];
    int64_t before_strides[GRAPH_MAX_NDIM], after_strides[GRAPH_MAX_NDIM]; /* of the array */
    int64_t npoints, nbefore, nafter;
} indexed;

static void setup(indexed *x, const call_args *c, const call_view *array, int first_index) {
    uint32_t mask = (uint32_t)c->node->params[0];
    bool wraps = !(c->node->params[0] & INDEX_STRICT);
    int place = (int)c->node->params[1], rest = 0, k = 0;
    *x = (indexed){.index_ndim = (int)c->node->params[2],
                   .wraps = wraps,
                   .npoints = 1,
                   .nbefore = 1,
                   .nafter = 1};
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

static simt_status check_indices(const call_view *index, int axis, int64_t size, bool wraps) {
    int64_t position[GRAPH_MAX_NDIM] = {0}, offset = 0;
    int64_t *strides[1] = {(int64_t *)index->strides};
    do {
        int64_t value = load_i64(index->data + offset);
        if (value < (wraps ? -size : 0) || value >= size) return out_of_bounds(value, axis, size);
    } while (walk_next(position, index->shape, index->ndim, 1, strides, &offset));
    return SIMT_OK;
}

static simt_status check_all(const indexed *x, const call_view *array) {
    for (int k = 0; k < x->count; k++)
        SIMT_TRY(check_indices(x->index[k], x->axis[k], array->shape[x->axis[k]], x->wraps));
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

/* ---- the quick way: flat indices and dense blocks ---- */

enum { QUICK_POINTS = 256 };

/* Elements in C order lie `*stride` bytes apart. */
static bool flat_stride(const int64_t *shape, const int64_t *strides, int ndim, int64_t *stride) {
    int64_t step = 0, next = 0;
    bool any = false;
    for (int d = ndim - 1; d >= 0; d--) {
        if (shape[d] == 1) continue;
        if (!any)
            step = strides[d];
        else if (strides[d] != next)
            return false;
        next = strides[d] * shape[d];
        any = true;
    }
    *stride = step;
    return true;
}

typedef struct quick_move {
    const moving *m;
    int64_t index_stride[GRAPH_MAX_INPUTS], result_stride; /* bytes from point to point */
    size_t block;                                          /* dense bytes at each point */
    atomic_bool out_of_range;
} quick_move;

static bool quick_setup(quick_move *q, const moving *m) {
    const indexed *x = m->x;
    const int64_t *rs = m->result->strides;
    int64_t size = (int64_t)dtype_bytes(m->array->dt), step;
    if (m->accumulate) return false;
    for (int k = 0; k < x->count; k++)
        if (!flat_stride(x->index[k]->shape, x->index[k]->strides, x->index[k]->ndim,
                         &q->index_stride[k]))
            return false;
    if (!flat_stride(x->index[0]->shape, rs + x->before, x->index_ndim, &q->result_stride))
        return false;
    if (!flat_stride(x->after_shape, x->after_strides, x->after, &step) ||
        (x->nafter > 1 && step != size))
        return false;
    if (!flat_stride(x->after_shape, rs + x->before + x->index_ndim, x->after, &step) ||
        (x->nafter > 1 && step != size))
        return false;
    q->m = m;
    q->block = (size_t)(x->nafter * size);
    atomic_init(&q->out_of_range, false);
    return true;
}

/* Offsets of points p .. p + n in the array; false: one is out of range. */
static bool quick_offsets(const quick_move *q, int64_t p, int64_t n, int64_t *offsets) {
    const indexed *x = q->m->x;
    uint64_t bad = 0;
    for (int k = 0; k < x->count; k++) {
        int64_t size = q->m->array->shape[x->axis[k]], stride = q->m->array->strides[x->axis[k]];
        int64_t step = q->index_stride[k], wrap = x->wraps ? size : 0;
        const char *from = x->index[k]->data + p * step;
        for (int64_t j = 0; j < n; j++) {
            int64_t value = load_i64(from + j * step);
            value += value < 0 ? wrap : 0;
            bad |= (uint64_t)value >= (uint64_t)size;
            value = (int64_t)((uint64_t)value * (uint64_t)stride);
            offsets[j] = k ? (int64_t)((uint64_t)offsets[j] + (uint64_t)value) : value;
        }
    }
    return !bad;
}

static void quick_copy(const quick_move *q, char *array, char *result, const int64_t *offsets,
                       int64_t n) {
    int64_t step = q->result_stride;
    bool put = q->m->put;
#define MOVE(bytes)                                                                           \
    if (put)                                                                                  \
        for (int64_t j = 0; j < n; j++) memcpy(array + offsets[j], result + j * step, bytes); \
    else                                                                                      \
        for (int64_t j = 0; j < n; j++) memcpy(result + j * step, array + offsets[j], bytes);
    switch (q->block) {
    case 1: MOVE(1) break;
    case 2: MOVE(2) break;
    case 4: MOVE(4) break;
    case 8: MOVE(8) break;
    default: MOVE(q->block) break;
    }
#undef MOVE
}

static simt_status quick_range(void *context, size_t begin, size_t end) {
    quick_move *q = context;
    const indexed *x = q->m->x;
    const int64_t *rs = q->m->result->strides;
    int64_t offsets[QUICK_POINTS];
    for (int64_t i = (int64_t)begin; i < (int64_t)end;) {
        int64_t b = i / x->npoints, p = i % x->npoints;
        int64_t n = min_i64(min_i64(QUICK_POINTS, x->npoints - p), (int64_t)end - i);
        if (!quick_offsets(q, p, n, offsets)) {
            atomic_store(&q->out_of_range, true);
            return SIMT_OK;
        }
        quick_copy(
            q, q->m->array->data + walk_offset(x->before_shape, x->before_strides, x->before, b),
            q->m->result->data + walk_offset(x->before_shape, rs, x->before, b) +
                p * q->result_stride,
            offsets, n);
        i += n;
    }
    return SIMT_OK;
}

static simt_status quick_check(void *context, size_t begin, size_t end) {
    quick_move *q = context;
    int64_t offsets[QUICK_POINTS];
    for (size_t p = begin; p < end; p += QUICK_POINTS) {
        size_t n = end - p < QUICK_POINTS ? end - p : QUICK_POINTS;
        if (!quick_offsets(q, (int64_t)p, (int64_t)n, offsets))
            atomic_store(&q->out_of_range, true);
    }
    return SIMT_OK;
}

simt_status call_index_get(const call_args *c) {
    indexed x;
    const call_view *a = &c->in[0];
    setup(&x, c, a, 1);
    moving m = {.x = &x, .array = a, .result = &c->out};
    size_t block = (size_t)x.nafter * dtype_bytes(a->dt) + 16;
    size_t items = (size_t)(x.nbefore * x.npoints), grain = 65536 / block + 1;
    quick_move q;
    if (quick_setup(&q,
                    &m)) { /* the result of a failed step is never seen: it may be half written */
        if (x.nafter > 0 && items > 0)
            SIMT_TRY(c->dev->parallel(c->dev, items, grain, quick_range, &q));
        if (items > 0 && x.nafter > 0 && !atomic_load(&q.out_of_range)) return SIMT_OK;
        return check_all(&x, a); /* names the first one */
    }
    SIMT_TRY(check_all(&x, a));
    return c->dev->parallel(c->dev, items, grain, move_range, &m);
}

/* In order: the last of equal indices wins. */
simt_status call_index_put(const call_args *c) {
    indexed x;
    setup(&x, c, &c->out, 2);
    moving m = {.x = &x,
                .array = &c->out,
                .result = &c->in[1],
                .put = true,
                .accumulate = c->node->params[3] != 0};
    size_t items = (size_t)(x.nbefore * x.npoints);
    quick_move q;
    if (items > 0 && x.nafter > 0 && quick_setup(&q, &m)) {
        SIMT_TRY(c->dev->parallel(c->dev, (size_t)x.npoints, 8192, quick_check, &q));
        if (atomic_load(&q.out_of_range)) return check_all(&x, &c->out);
        return quick_range(&q, 0, items);
    }
    SIMT_TRY(check_all(&x, &c->out));
    return move_range(&m, 0, items);
}

/* ---- along one axis ---- */

typedef struct taking {
    const call_args *c;
    int axis, ndim; /* of the other dimensions: */
    int64_t shape[GRAPH_MAX_NDIM], from[GRAPH_MAX_NDIM], at[GRAPH_MAX_NDIM], to[GRAPH_MAX_NDIM];
    bool wraps; /* negative indices count from the end */
    atomic_bool out_of_range;
} taking;

static simt_status take_rows(void *context, size_t begin, size_t end) {
    taking *t = context;
    const call_view *a = &t->c->in[0], *index = &t->c->in[1], *out = &t->c->out;
    int64_t size = a->shape[t->axis], step = a->strides[t->axis], n = out->shape[t->axis];
    int64_t index_step = index->strides[t->axis], out_step = out->strides[t->axis];
    bool out_of_range = false;
#define TAKE(bytes)                                                                \
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {                \
        const char *from = a->data + walk_offset(t->shape, t->from, t->ndim, row); \
        const char *at = index->data + walk_offset(t->shape, t->at, t->ndim, row); \
        char *to = out->data + walk_offset(t->shape, t->to, t->ndim, row);         \
        for (int64_t i = 0; i < n; i++, at += index_step, to += out_step) {        \
            int64_t value = load_i64(at);                                          \
            if (value < 0 && t->wraps) value += size;                              \
            bool outside = (uint64_t)value >= (uint64_t)size;                      \
            out_of_range |= outside;                                               \
            memcpy(to, from + (outside ? 0 : value) * step, bytes);                \
        }                                                                          \
    }
    switch (dtype_bytes(a->dt)) {
    case 1: TAKE(1) break;
    case 2: TAKE(2) break;
    case 4: TAKE(4) break;
    default: TAKE(8) break;
    }
#undef TAKE
    if (out_of_range) atomic_store(&t->out_of_range, true);
    return SIMT_OK;
}

/* The result of a failed step is never seen: it may be half written. */
simt_status call_take_along(const call_args *c) {
    const call_view *a = &c->in[0], *index = &c->in[1];
    taking t = {.c = c, .axis = (int)c->node->params[0], .wraps = c->node->params[1] != 0};
    int64_t rows = 1;
    for (int d = 0; d < a->ndim; d++) {
        if (d == t.axis) continue;
        t.shape[t.ndim] = index->shape[d];
        t.from[t.ndim] = a->shape[d] == 1 && index->shape[d] != 1 ? 0 : a->strides[d];
        t.at[t.ndim] = index->strides[d];
        t.to[t.ndim++] = c->out.strides[d];
        rows *= index->shape[d];
    }
    int64_t size = a->shape[t.axis];
    size_t grain = (size_t)(16384 / (c->out.shape[t.axis] + 1)) + 1;
    if (size > 0) SIMT_TRY(c->dev->parallel(c->dev, (size_t)rows, grain, take_rows, &t));
    if (size > 0 && !atomic_load(&t.out_of_range)) return SIMT_OK;
    return check_indices(index, t.axis, size, t.wraps); /* names the first one */
}
