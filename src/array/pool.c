/* 2-d max and average pooling and their gradients, NCHW, plane by plane. Dense operands, f32 or f64. */
#include <math.h>
#include <string.h>

#include "array/image.h"
#include "array/meta.h"

/* ---- making the operation ---- */

static void pool_params(queue_request *q, const pool_options *o) {
    const int64_t params[9] = {o->kernel[0],   o->kernel[1],   o->stride[0],
                               o->stride[1],   o->padding[0],  o->padding[1],
                               o->dilation[0], o->dilation[1], o->count_include_pad};
    memcpy(q->node.params, params, sizeof params);
    q->node.nparams = 9;
}

/* PyTorch's rule: with ceil_mode the last window must still start inside the input or its left padding. */
static int64_t pooled(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                      bool ceil_mode) {
    int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
    if (room < 0 && !ceil_mode) return 0;
    int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (out - 1) * stride >= in + padding) out--;
    return out;
}

static simt_status pool_shape(const int64_t *x, const pool_options *o, int64_t shape[4]) {
    shape[0] = x[0];
    shape[1] = x[1];
    for (int i = 0; i < 2; i++) {
        if (o->kernel[i] < 1)
            return status_fail(SIMT_ERR_RUNTIME,
                               "kernel size should be greater than zero, but got kH: %lld kW: %lld",
                               (long long)o->kernel[0], (long long)o->kernel[1]);
        if (o->stride[i] < 1) return status_fail(SIMT_ERR_RUNTIME, "stride should not be zero");
        if (o->dilation[i] < 1)
            return status_fail(SIMT_ERR_RUNTIME, "dilation should be greater than zero");
        if (o->padding[i] < 0 || o->padding[i] > o->kernel[i] / 2)
            return status_fail(SIMT_ERR_RUNTIME,
                               "pad should be at most half of effective kernel size, but got "
                               "pad=%lld, kernel_size=%lld",
                               (long long)o->padding[i], (long long)o->kernel[i]);
        shape[2 + i] = pooled(x[2 + i], o->kernel[i], o->stride[i], o->padding[i], o->dilation[i],
                              o->ceil_mode);
        if (shape[2 + i] < 1)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "Given input size: (%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lld). "
                "Output size is too small",
                (long long)x[1], (long long)x[2], (long long)x[3], (long long)x[1],
                (long long)shape[2], (long long)(i ? shape[3] : 0));
    }
    return SIMT_OK;
}

static simt_status check_forward(const array *x, const pool_options *o, const char *name,
                                 int64_t shape[4]) {
    if (x->ndim != 4)
        return status_fail(SIMT_ERR_RUNTIME, "%s: expected a 4D tensor, got %dD", name, x->ndim);
    return pool_shape(x->shape, o, shape);
}

/* What was pooled may have been replaced since. */
static simt_status check_backward(const array *grad, const int64_t x_shape[4],
                                  const pool_options *o, const char *name) {
    int64_t shape[4];
    SIMT_TRY(pool_shape(x_shape, o, shape));
    if (array_same_shape(grad, shape, 4)) return SIMT_OK;
    return status_fail(SIMT_ERR_RUNTIME, "%s: the gradient has not the shape of what was pooled",
                       name);
}

static simt_status pool_node(array_op op, array *a, array *b, dtype dt, dtype out_dt,
                             const int64_t shape[4], const pool_options *o, array **out) {
    int64_t size;
    SIMT_TRY(array_check_shape(shape, 4, out_dt, &size));
    if (a->size == 0 || size == 0) return array_full_of(a, out_dt, shape, 4, 0, out);
    array *x = NULL, *y = NULL;
    simt_status status = image_dense(a, dt, &x);
    if (status == SIMT_OK && b) status = image_dense(b, DT_I32, &y);
    if (status == SIMT_OK) {
        queue_request q;
        queue_request_init(&q, op);
        q.node.compute = dt;
        queue_input(&q, x);
        if (y) queue_input(&q, y);
        pool_params(&q, o);
        queue_output_new(&q, out_dt, shape, 4);
        status = queue_add(&q, out);
    }
    array_unref(x);
    array_unref(y);
    return status;
}

simt_status array_max_pool2d(array *x, const pool_options *o, array **out, array **positions) {
    dtype dt;
    int64_t shape[4];
    SIMT_TRY(image_compute_dtype(x, "max_pool2d", &dt));
    SIMT_TRY(check_forward(x, o, "max_pool2d", shape));
    if (x->shape[2] * x->shape[3] > INT32_MAX)
        return status_fail(SIMT_ERR_VALUE, "max_pool2d: a plane above 2147483647 pixels");
    array *made = NULL;
    simt_status status = pool_node(OP_MAX_POOL2D, x, NULL, dt, dt, shape, o, &made);
    SIMT_TRY(image_result(status, made, x->dt, out));
    if (!positions) return SIMT_OK;
    status = pool_node(OP_MAX_POOL2D_INDEX, x, NULL, dt, DT_I32, shape, o, positions);
    if (status != SIMT_OK) array_drop(out);
    return status;
}

simt_status array_max_pool2d_back(array *grad, array *positions, const int64_t x_shape[4],
                                  const pool_options *o, array **out) {
    dtype dt;
    SIMT_TRY(image_compute_dtype(grad, "max_pool2d_backward", &dt));
    if (!array_same_shape(grad, positions->shape, positions->ndim))
        return status_fail(SIMT_ERR_RUNTIME,
                           "max_pool2d_backward: gradient and positions differ in shape");
    SIMT_TRY(check_backward(grad, x_shape, o, "max_pool2d_backward"));
    array *made = NULL;
    simt_status status = pool_node(OP_MAX_POOL2D_BACK, grad, positions, dt, dt, x_shape, o, &made);
    return image_result(status, made, grad->dt, out);
}

simt_status array_avg_pool2d(array *x, const pool_options *o, array **out) {
    dtype dt;
    int64_t shape[4];
    SIMT_TRY(image_compute_dtype(x, "avg_pool2d", &dt));
    SIMT_TRY(check_forward(x, o, "avg_pool2d", shape));
    array *made = NULL;
    simt_status status = pool_node(OP_AVG_POOL2D, x, NULL, dt, dt, shape, o, &made);
    return image_result(status, made, x->dt, out);
}

simt_status array_avg_pool2d_back(array *grad, const int64_t x_shape[4], const pool_options *o,
                                  array **out) {
    dtype dt;
    SIMT_TRY(image_compute_dtype(grad, "avg_pool2d_backward", &dt));
    SIMT_TRY(check_backward(grad, x_shape, o, "avg_pool2d_backward"));
    array *made = NULL;
    simt_status status = pool_node(OP_AVG_POOL2D_BACK, grad, NULL, dt, dt, x_shape, o, &made);
    return image_result(status, made, grad->dt, out);
}

/* ---- the steps ---- */

typedef struct pool {
    image_axis y, x;
    bool include_pad;
    dtype dt;
    const char *in; /* planes of the image (forward) or of the gradient (back) */
    const int32_t *positions;
    char *out;
} pool;

/* image, result: shapes of the unpooled and the pooled planes. */
static void pool_setup(pool *p, const call_args *c, const int64_t *image, const int64_t *result) {
    const int64_t *v = c->node->params;
    *p = (pool){.y = {image[2], result[2], v[0], v[2], v[4], v[6]},
                .x = {image[3], result[3], v[1], v[3], v[5], v[7]},
                .include_pad = v[8] != 0,
                .dt = c->in[0].dt,
                .in = c->in[0].data,
                .out = c->out.data};
}

/* The taps of a window that lie inside the input: k in [*low, *high). */
static inline void window(const image_axis *x, int64_t out, int64_t *low, int64_t *high) {
    int64_t start = out * x->stride - x->padding;
    *low = start >= 0 ? 0 : (-start + x->dilation - 1) / x->dilation;
    *high = start >= x->in ? *low : min_i64(x->kernel, (x->in - 1 - start) / x->dilation + 1);
    if (*high < *low) *high = *low;
}

/* PyTorch's divisor: the window clipped to the padded input, or to the input. */
static inline int64_t window_size(const image_axis *x, int64_t out, int64_t low, int64_t high,
                                  bool include_pad) {
    if (!include_pad) return high - low;
    int64_t start = out * x->stride - x->padding;
    return min_i64(start + x->kernel, x->in + x->padding) - start;
}

/* Both loops below run along a row of outputs for one tap at a time: no branch, so that gcc makes vectors
 * of them. `at` < 0: no tap was met yet. */
#if defined(__GNUC__) && !defined(__clang__)
#define VECTORS __attribute__((optimize("O3")))
#else
#define VECTORS
#endif
#define MOST_ROW 256 /* outputs handled at once */

#define POOL(name, ctype)                                                                            \
    VECTORS static void take_values_##name(const ctype *from, int64_t stride, int64_t n,             \
                                           ctype *most) {                                            \
        if (stride == 2) { /* constant strides make better code */                                   \
            for (int64_t i = 0; i < n; i++) {                                                        \
                ctype v = from[i * 2];                                                               \
                most[i] = most[i] >= v ? most[i] : (most[i] != most[i] ? most[i] : v);               \
            }                                                                                        \
        } else {                                                                                     \
            for (int64_t i = 0; i < n; i++) {                                                        \
                ctype v = from[i * stride];                                                          \
                most[i] = most[i] >= v ? most[i] : (most[i] != most[i] ? most[i] : v);               \
            }                                                                                        \
        }                                                                                            \
    }                                                                                                \
    VECTORS static void take_places_##name(const ctype *from, int64_t stride, int64_t n,             \
                                           int32_t place, ctype *most, int32_t *at) {                \
        for (int64_t i = 0; i < n; i++) {                                                            \
            ctype v = from[i * stride];                                                              \
            int more = (v > most[i]) | (v != v) | (at[i] < 0);                                       \
            most[i] = more ? v : most[i];                                                            \
            at[i] = more ? place + (int32_t)(i * stride) : at[i];                                    \
        }                                                                                            \
    }                                                                                                \
    /* Outputs [first, first + n) of row oy: the largest elements, and their places unless at is   \
     * NULL. */ \
    static void max_row_##name(const pool *p, const ctype *plane, int64_t oy, int64_t first,         \
                               int64_t n, ctype *most, int32_t *at) {                                \
        int64_t y0, y1, x0, x1, low, high; /* windows move right: the last has the first tap */      \
        window(&p->x, first + n - 1, &low, &high);                                                   \
        window(&p->x, first, &x0, &high);                                                            \
        window(&p->y, oy, &y0, &y1);                                                                 \
        for (int64_t i = 0; i < n; i++) most[i] = -(ctype)INFINITY;                                  \
        for (int64_t i = 0; at && i < n; i++) at[i] = -1;                                            \
        for (int64_t ky = y0; ky < y1; ky++)                                                         \
            for (int64_t kx = low; kx < high; kx++) {                                                \
                image_valid(&p->x, kx, &x0, &x1);                                                    \
                x0 = max_i64(x0, first);                                                             \
                x1 = min_i64(x1, first + n);                                                         \
                if (x0 >= x1) continue;                                                              \
                int64_t y = oy * p->y.stride - p->y.padding + ky * p->y.dilation;                    \
                int64_t x = x0 * p->x.stride - p->x.padding + kx * p->x.dilation;                    \
                int64_t place = y * p->x.in + x;                                                     \
                if (at)                                                                              \
                    take_places_##name(plane + place, p->x.stride, x1 - x0, (int32_t)place,          \
                                       most + (x0 - first), at + (x0 - first));                      \
                else                                                                                 \
                    take_values_##name(plane + place, p->x.stride, x1 - x0, most + (x0 - first));    \
            }                                                                                        \
    }                                                                                                \
    static void max_plane_##name(const pool *p, int64_t plane, bool index) {                         \
        const ctype *in = (const ctype *)p->in + plane * p->y.in * p->x.in;                          \
        int64_t start = plane * p->y.out * p->x.out, width = p->x.out;                               \
        ctype unused[MOST_ROW];                                                                      \
        for (int64_t oy = 0; oy < p->y.out; oy++)                                                    \
            for (int64_t ox = 0; ox < width; ox += MOST_ROW) {                                       \
                int64_t n = min_i64(MOST_ROW, width - ox), to = start + oy * width + ox;             \
                if (index)                                                                           \
                    max_row_##name(p, in, oy, ox, n, unused, (int32_t *)(void *)p->out + to);        \
                else                                                                                 \
                    max_row_##name(p, in, oy, ox, n, (ctype *)p->out + to, NULL);                    \
            }                                                                                        \
    }                                                                                                \
    static void max_back_##name(const pool *p, int64_t plane) {                                      \
        int64_t n = p->y.out * p->x.out, m = p->y.in * p->x.in;                                      \
        const ctype *grad = (const ctype *)p->in + plane * n;                                        \
        const int32_t *at = p->positions + plane * n;                                                \
        ctype *out = (ctype *)p->out + plane * m;                                                    \
        memset(out, 0, sizeof *out *(size_t)m);                                                      \
        for (int64_t i = 0; i < n; i++)                                                              \
            if (at[i] >= 0 && at[i] < m) out[at[i]] += grad[i];                                      \
    }                                                                                                \
    /* Forward: averages; back: spreads the gradient over the window. */                             \
    static void average_##name(const pool *p, int64_t plane, bool back) {                            \
        int64_t n = p->y.out * p->x.out, m = p->y.in * p->x.in;                                      \
        const ctype *in = (const ctype *)p->in + plane * (back ? n : m);                             \
        ctype *out = (ctype *)p->out + plane * (back ? m : n);                                       \
        if (back) memset(out, 0, sizeof *out *(size_t)m);                                            \
        for (int64_t oy = 0; oy < p->y.out; oy++)                                                    \
            for (int64_t ox = 0; ox < p->x.out; ox++) {                                              \
                int64_t y0, y1, x0, x1, row = oy * p->y.stride - p->y.padding;                       \
                int64_t col = ox * p->x.stride - p->x.padding, i = oy * p->x.out + ox;               \
                window(&p->y, oy, &y0, &y1);                                                         \
                window(&p->x, ox, &x0, &x1);                                                         \
                ctype divisor = (ctype)(window_size(&p->y, oy, y0, y1, p->include_pad) *             \
                                        window_size(&p->x, ox, x0, x1, p->include_pad));             \
                ctype sum = 0, share = back ? in[i] / divisor : 0;                                   \
                for (int64_t ky = y0; ky < y1; ky++)                                                 \
                    for (int64_t kx = x0; kx < x1; kx++) {                                           \
                        int64_t at = (row + ky) * p->x.in + col + kx;                                \
                        if (back)                                                                    \
                            out[at] += share;                                                        \
                        else                                                                         \
                            sum += in[at];                                                           \
                    }                                                                                \
                if (!back) out[i] = sum / divisor;                                                   \
            }                                                                                        \
    }
POOL(f32, float)
POOL(f64, double)
#undef POOL

#define STEP(name, call32, call64)                                     \
    static simt_status name(void *context, size_t begin, size_t end) { \
        const pool *p = context;                                       \
        for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {      \
            if (p->dt == DT_F32)                                       \
                call32;                                                \
            else                                                       \
                call64;                                                \
        }                                                              \
        return SIMT_OK;                                                \
    }
STEP(max_values, max_plane_f32(p, i, false), max_plane_f64(p, i, false))
STEP(max_places, max_plane_f32(p, i, true), max_plane_f64(p, i, true))
STEP(max_back, max_back_f32(p, i), max_back_f64(p, i))
STEP(average, average_f32(p, i, false), average_f64(p, i, false))
STEP(average_back, average_f32(p, i, true), average_f64(p, i, true))
#undef STEP

static simt_status over_planes(const call_args *c, pool *p,
                               simt_status (*step)(void *, size_t, size_t)) {
    size_t planes = (size_t)(c->out.shape[0] * c->out.shape[1]);
    int64_t taps = min_i64(p->y.kernel, p->y.in) * min_i64(p->x.kernel, p->x.in);
    size_t cost = (size_t)(p->y.out * p->x.out * taps); /* about one ns each */
    return c->dev->parallel(c->dev, planes, 20000 / (cost + 1) + 1, step, p);
}

simt_status call_max_pool2d(const call_args *c) {
    pool p;
    pool_setup(&p, c, c->in[0].shape, c->out.shape);
    return over_planes(c, &p, max_values);
}

simt_status call_max_pool2d_index(const call_args *c) {
    pool p;
    pool_setup(&p, c, c->in[0].shape, c->out.shape);
    return over_planes(c, &p, max_places);
}

simt_status call_max_pool2d_back(const call_args *c) {
    pool p;
    pool_setup(&p, c, c->out.shape, c->in[0].shape);
    p.positions = (const int32_t *)(const void *)c->in[1].data;
    return over_planes(c, &p, max_back);
}

simt_status call_avg_pool2d(const call_args *c) {
    pool p;
    pool_setup(&p, c, c->in[0].shape, c->out.shape);
    return over_planes(c, &p, average);
}

simt_status call_avg_pool2d_back(const call_args *c) {
    pool p;
    pool_setup(&p, c, c->out.shape, c->in[0].shape);
    return over_planes(c, &p, average_back);
}
