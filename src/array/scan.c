/* cumsum along one axis: sequential in each row, rows in parallel. */
#include "array/walk.h"

simt_status array_cumsum(array *a, int axis, graph_face face, array **out) {
    if (axis < 0) axis += a->ndim;
    if (a->ndim == 0) {
        if (axis > 0) axis = 0;
        array *row;
        SIMT_TRY(array_expand_dims(a, 0, &row));
        simt_status status = array_cumsum(row, 0, face, out);
        array_unref(row);
        return status;
    }
    if (axis < 0 || axis >= a->ndim)
        return status_fail(SIMT_ERR_INDEX, "axis %d is out of bounds for array of dimension %d",
                           axis, a->ndim);
    dtype dt;
    SIMT_TRY(graph_reduce_dtype(OP_SUM, face, a->dt, &dt));
    if (a->size == 0) return array_empty(dt, a->shape, a->ndim, out);
    array *typed = NULL;
    if (a->dt != dt) SIMT_TRY(array_astype(a, dt, &typed));
    queue_request q;
    queue_request_init(&q, OP_CUMSUM);
    q.node.compute = dt;
    q.node.nparams = 1;
    q.node.params[0] = axis;
    queue_input(&q, typed ? typed : a);
    queue_output_new(&q, dt, a->shape, a->ndim);
    simt_status status = queue_add(&q, out);
    array_unref(typed);
    return status;
}

typedef struct scan {
    const call_args *c;
    int axis, ndim; /* the other dimensions: */
    int64_t shape[GRAPH_MAX_NDIM], from[GRAPH_MAX_NDIM], to[GRAPH_MAX_NDIM];
} scan;

static void scan_row(dtype dt, int64_t n, const char *from, int64_t from_stride, char *to,
                     int64_t to_stride) {
    memcpy(to, from, dtype_bytes(dt));
    for (int64_t i = 1; i < n; i++) {
        memcpy(to + i * to_stride, to + (i - 1) * to_stride, dtype_bytes(dt));
        element_add(dt, to + i * to_stride, from + i * from_stride);
    }
}

static simt_status scan_rows(void *context, size_t begin, size_t end) {
    const scan *s = context;
    const call_view *in = &s->c->in[0], *out = &s->c->out;
    for (size_t i = begin; i < end; i++)
        scan_row(
            in->dt, in->shape[s->axis],
            in->data + walk_offset(s->shape, s->from, s->ndim, (int64_t)i), in->strides[s->axis],
            out->data + walk_offset(s->shape, s->to, s->ndim, (int64_t)i), out->strides[s->axis]);
    return SIMT_OK;
}

simt_status call_cumsum(const call_args *c) {
    scan s = {.c = c, .axis = (int)c->node->params[0]};
    int64_t rows = 1;
    for (int d = 0; d < c->out.ndim; d++) {
        if (d == s.axis) continue;
        s.shape[s.ndim] = c->out.shape[d];
        s.from[s.ndim] = c->in[0].strides[d];
        s.to[s.ndim++] = c->out.strides[d];
        rows *= c->out.shape[d];
    }
    size_t grain = (size_t)(20000 / (c->out.shape[s.axis] + 1)) + 1;
    return c->dev->parallel(c->dev, (size_t)rows, grain, scan_rows, &s);
}
