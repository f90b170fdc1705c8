/* cumsum along one axis.
 *
 * Long dense rows: sums of pieces of 1,024 elements in parallel, their running sums, then each piece
 * from its own start in parallel, four pieces side by side (a chain of additions is bound by its latency).
 * Floats of up to 32 bits are summed in double. Pieces are fixed, so any number of threads gives the same bits.
 * Other rows: sequential, rows in parallel.
 */

#include "array/meta.h"
#include "array/walk.h"
#include "base/heap.h"

simt_status array_cumsum(array *a, int axis, bool backwards, graph_face face, array **out) {
    if (axis < 0) axis += a->ndim;
    if (a->ndim == 0) {
        if (axis > 0) axis = 0;
        array *row;
        SIMT_TRY(array_expand_dims(a, 0, &row));
        simt_status status = array_cumsum(row, 0, backwards, face, out);
        array_unref(row);
        return status;
    }
    if (axis < 0 || axis >= a->ndim)
        return status_fail(SIMT_ERR_INDEX, "axis %d is out of bounds for array of dimension %d",
                           axis, a->ndim);
    dtype dt;
    SIMT_TRY(graph_reduce_dtype(OP_SUM, face, a->dt, &dt));
    if (a->size == 0) return array_empty_of(a, dt, a->shape, a->ndim, out);
    array *typed = NULL;
    if (a->dt != dt) SIMT_TRY(array_astype(a, dt, &typed));
    queue_request q;
    queue_request_init(&q, OP_CUMSUM);
    q.node.compute = dt;
    q.node.nparams = 2;
    q.node.params[0] = axis;
    q.node.params[1] = backwards;
    queue_input(&q, typed ? typed : a);
    queue_output_new(&q, dt, a->shape, a->ndim);
    simt_status status = queue_add(&q, out);
    array_unref(typed);
    return status;
}

typedef struct scan {
    const call_args *c;
    walk_rows rows;
} scan;

static void scan_row(dtype dt, int64_t n, const char *from, int64_t from_stride, char *to,
                     int64_t to_stride) {
#define TYPED(T, W)                                       \
    {                                                     \
        W sum;                                            \
        T x;                                              \
        memcpy(&x, from, sizeof x);                       \
        memcpy(to, &x, sizeof x);                         \
        sum = (W)x;                                       \
        for (int64_t i = 1; i < n; i++) {                 \
            memcpy(&x, from + i * from_stride, sizeof x); \
            sum += (W)x;                                  \
            x = (T)sum;                                   \
            memcpy(to + i * to_stride, &x, sizeof x);     \
        }                                                 \
        return;                                           \
    }
    if (dt == DT_F32) TYPED(float, double)
    if (dt == DT_F64) TYPED(double, double)
    if (dt == DT_I64 || dt == DT_U64) TYPED(uint64_t, uint64_t)
#undef TYPED
    if (dtype_is_float(dt)) { /* 16 bits */
        double sum = -0.0;
        for (int64_t i = 0; i < n; i++) {
            uint16_t bits;
            memcpy(&bits, from + i * from_stride, sizeof bits);
            sum += (double)(dt == DT_F16 ? half_to_float(bits) : bfloat_to_float(bits));
            bits = dt == DT_F16 ? float_to_half((float)sum) : float_to_bfloat((float)sum);
            memcpy(to + i * to_stride, &bits, sizeof bits);
        }
        return;
    }
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
        scan_row(in->dt, in->shape[s->rows.axis], walk_row_in(s->c, &s->rows, (int64_t)i),
                 in->strides[s->rows.axis], walk_row_out(s->c, &s->rows, (int64_t)i),
                 out->strides[s->rows.axis]);
    return SIMT_OK;
}

/* ---- long dense rows ---- */

enum { PIECE = 1024, LANES = 8, TOGETHER = 4 };

typedef struct long_scan {
    dtype dt;
    const char *from;
    char *to;
    int64_t n;
    void *starts; /* of pieces: double or uint64_t */
} long_scan;

#define LONG_SCAN(name, T, W)                                                          \
    static simt_status sums_##name(void *context, size_t begin, size_t end) {          \
        const long_scan *s = context;                                                  \
        for (size_t piece = begin; piece < end; piece++) {                             \
            const T *x = (const T *)s->from + piece * PIECE;                           \
            int64_t n = min_i64(PIECE, s->n - (int64_t)piece * PIECE), i = 0;          \
            W lane[LANES] = {0};                                                       \
            for (; i + LANES <= n; i += LANES)                                         \
                for (int k = 0; k < LANES; k++) lane[k] += (W)x[i + k];                \
            for (int k = 0; i + k < n; k++) lane[k] += (W)x[i + k];                    \
            W sum = 0;                                                                 \
            for (int k = 0; k < LANES; k++) sum += lane[k];                            \
            ((W *)s->starts)[piece] = sum;                                             \
        }                                                                              \
        return SIMT_OK;                                                                \
    }                                                                                  \
    static void starts_##name(long_scan *s, size_t pieces) {                           \
        W sum = 0, *p = s->starts;                                                     \
        for (size_t i = 0; i < pieces; i++) {                                          \
            W own = p[i];                                                              \
            p[i] = sum;                                                                \
            sum += own;                                                                \
        }                                                                              \
    }                                                                                  \
    static simt_status pieces_##name(void *context, size_t begin, size_t end) {        \
        const long_scan *s = context;                                                  \
        const W *starts = s->starts;                                                   \
        size_t piece = begin;                                                          \
        for (; piece + TOGETHER <= end && (int64_t)(piece + TOGETHER) * PIECE <= s->n; \
             piece += TOGETHER) {                                                      \
            const T *x = (const T *)s->from + piece * PIECE;                           \
            T *y = (T *)s->to + piece * PIECE;                                         \
            W a = starts[piece], b = starts[piece + 1], c = starts[piece + 2],         \
              d = starts[piece + 3];                                                   \
            for (int i = 0; i < PIECE; i++) {                                          \
                a += (W)x[i], y[i] = (T)a;                                             \
                b += (W)x[PIECE + i], y[PIECE + i] = (T)b;                             \
                c += (W)x[2 * PIECE + i], y[2 * PIECE + i] = (T)c;                     \
                d += (W)x[3 * PIECE + i], y[3 * PIECE + i] = (T)d;                     \
            }                                                                          \
        }                                                                              \
        for (; piece < end; piece++) {                                                 \
            const T *x = (const T *)s->from + piece * PIECE;                           \
            T *y = (T *)s->to + piece * PIECE;                                         \
            int64_t n = min_i64(PIECE, s->n - (int64_t)piece * PIECE);                 \
            W a = starts[piece];                                                       \
            for (int64_t i = 0; i < n; i++) a += (W)x[i], y[i] = (T)a;                 \
        }                                                                              \
        return SIMT_OK;                                                                \
    }
LONG_SCAN(f32, float, double)
LONG_SCAN(f64, double, double)
LONG_SCAN(i64, uint64_t, uint64_t)
#undef LONG_SCAN

static simt_status scan_long(device *dev, long_scan *s) {
    size_t pieces = (size_t)((s->n + PIECE - 1) / PIECE);
    s->starts = heap_alloc(pieces * 8);
    if (!s->starts) return status_fail(SIMT_ERR_MEMORY, "out of memory for a cumulative sum");
    simt_status status = SIMT_OK;
#define RUN(name)                                                  \
    status = dev->parallel(dev, pieces, 32, sums_##name, s);       \
    if (status == SIMT_OK) {                                       \
        starts_##name(s, pieces);                                  \
        status = dev->parallel(dev, pieces, 32, pieces_##name, s); \
    }
    if (s->dt == DT_F32) {
        RUN(f32)
    } else if (s->dt == DT_F64) {
        RUN(f64)
    } else {
        RUN(i64)
    }
#undef RUN
    heap_free(s->starts);
    return status;
}

static bool is_long(const call_args *c, int axis, int64_t rows) {
    dtype dt = c->out.dt;
    int64_t size = (int64_t)dtype_bytes(dt);
    bool typed = dt == DT_F32 || dt == DT_F64 || dt == DT_I64 || dt == DT_U64;
    bool aligned = (uintptr_t)c->in[0].data % (size_t)size == 0;
    return typed && aligned && c->in[0].dt == dt && c->out.shape[axis] >= 8 * PIECE && rows <= 64 &&
           c->in[0].strides[axis] == size && c->out.strides[axis] == size;
}

simt_status call_cumsum(const call_args *c) {
    int axis = (int)c->node->params[0];
    call_args turned = *c;
    int64_t from[GRAPH_MAX_NDIM], to[GRAPH_MAX_NDIM];
    if (c->node->params[1]) { /* from the end */
        int64_t last = c->out.shape[axis] - 1;
        memcpy(from, c->in[0].strides, (size_t)c->in[0].ndim * sizeof *from);
        memcpy(to, c->out.strides, (size_t)c->out.ndim * sizeof *to);
        turned.in[0].data += last * from[axis];
        turned.out.data += last * to[axis];
        from[axis] = -from[axis];
        to[axis] = -to[axis];
        turned.in[0].strides = from;
        turned.out.strides = to;
        c = &turned;
    }
    scan s = {.c = c, .rows = walk_rows_of(c, axis)};
    if (is_long(c, s.rows.axis, s.rows.count)) {
        for (int64_t i = 0; i < s.rows.count; i++) {
            long_scan row = {.dt = c->out.dt,
                             .from = walk_row_in(c, &s.rows, i),
                             .to = walk_row_out(c, &s.rows, i),
                             .n = c->out.shape[s.rows.axis]};
            SIMT_TRY(scan_long(c->dev, &row));
        }
        return SIMT_OK;
    }
    size_t grain = (size_t)(20000 / (c->out.shape[s.rows.axis] + 1)) + 1;
    return c->dev->parallel(c->dev, (size_t)s.rows.count, grain, scan_rows, &s);
}
