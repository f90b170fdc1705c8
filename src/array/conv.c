/* 2-d convolution and its gradients, NCHW: patches to columns, then OpenBLAS, image by image.
 *
 * Forward: out[n] = W @ columns(x[n]); input gradient: columns(dx[n]) = W^T @ grad[n]; weight gradient:
 * dW = sum of grad[n] @ columns(x[n])^T, in parts that depend on shapes only. Images are shared among the
 * workers; few images use sliced products instead. Dense operands, f32 or f64.
 */
#include <string.h>

#include "array/blas.h"
#include "array/image.h"
#include "array/meta.h"

/* ---- making the operation ---- */

simt_status image_dense(array *a, dtype dt, array **out) {
    if (a->dt != dt) return array_astype(a, dt, out);
    if (!array_is_contiguous(a)) return array_copy(a, out);
    *out = array_ref(a);
    return SIMT_OK;
}

simt_status image_compute_dtype(const array *a, const char *name, dtype *dt) {
    if (!dtype_is_float(a->dt))
        return status_fail(SIMT_ERR_RUNTIME, "\"%s\" not implemented for '%s'", name,
                           dtype_table[a->dt].name);
    *dt = a->dt == DT_F64 ? DT_F64 : DT_F32;
    return SIMT_OK;
}

simt_status image_result(simt_status status, array *made, dtype dt, array **out) {
    if (status != SIMT_OK || made->dt == dt) {
        *out = made;
        return status;
    }
    status = array_astype(made, dt, out);
    array_unref(made);
    return status;
}

static void conv_params(queue_request *q, const conv_options *o) {
    const int64_t params[7] = {o->stride[0],   o->stride[1],   o->padding[0], o->padding[1],
                               o->dilation[0], o->dilation[1], o->groups};
    memcpy(q->node.params, params, sizeof params);
    q->node.nparams = 7;
}

/* The node of two operands, made dense. */
static simt_status conv_node(array_op op, array *a, array *b, const int64_t shape[4],
                             const conv_options *o, array **out) {
    dtype dt = DT_F32;
    SIMT_TRY(image_compute_dtype(a, array_op_table[op].name, &dt));
    int64_t size;
    SIMT_TRY(array_same_device((array *[]){a, b}, 2));
    SIMT_TRY(array_check_shape(shape, 4, dt, &size));
    if (a->size == 0 || b->size == 0 || size == 0)
        return array_full_of(array_is_meta(a) ? a : b, a->dt, shape, 4, 0, out);
    array *x = NULL, *y = NULL, *made = NULL;
    simt_status status = image_dense(a, dt, &x);
    if (status == SIMT_OK) status = image_dense(b, dt, &y);
    if (status == SIMT_OK) {
        queue_request q;
        queue_request_init(&q, op);
        q.node.compute = dt;
        queue_input(&q, x);
        queue_input(&q, y);
        conv_params(&q, o);
        queue_output_new(&q, dt, shape, 4);
        status = queue_add(&q, &made);
    }
    array_unref(x);
    array_unref(y);
    return image_result(status, made, a->dt, out);
}

static simt_status check_options(const conv_options *o) {
    for (int i = 0; i < 2; i++) {
        if (o->stride[i] < 1)
            return status_fail(SIMT_ERR_RUNTIME, "non-positive stride is not supported");
        if (o->dilation[i] < 1)
            return status_fail(SIMT_ERR_RUNTIME, "dilation should be greater than zero");
        if (o->padding[i] < 0)
            return status_fail(SIMT_ERR_RUNTIME, "negative padding is not supported");
    }
    if (o->groups < 1) return status_fail(SIMT_ERR_RUNTIME, "non-positive groups is not supported");
    return SIMT_OK;
}

/* The result's shape from those of image and weight. */
static simt_status conv_shape(const int64_t *x, const int64_t *w, const conv_options *o,
                              int64_t out[4]) {
    SIMT_TRY(check_options(o));
    if (w[0] % o->groups)
        return status_fail(
            SIMT_ERR_RUNTIME,
            "expected weight to be divisible by groups: %lld output channels, groups %lld",
            (long long)w[0], (long long)o->groups);
    if (x[1] != w[1] * o->groups)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Given groups=%lld, weight of size [%lld, %lld, %lld, %lld], expected "
                           "input[%lld, %lld, %lld, "
                           "%lld] to have %lld channels, but got %lld channels instead",
                           (long long)o->groups, (long long)w[0], (long long)w[1], (long long)w[2],
                           (long long)w[3], (long long)x[0], (long long)x[1], (long long)x[2],
                           (long long)x[3], (long long)(w[1] * o->groups), (long long)x[1]);
    out[0] = x[0];
    out[1] = w[0];
    for (int i = 0; i < 2; i++) {
        int64_t room = x[2 + i] + 2 * o->padding[i], reach = o->dilation[i] * (w[2 + i] - 1) + 1;
        if (room < reach)
            return status_fail(SIMT_ERR_RUNTIME,
                               "Calculated padded input size per channel: (%lld x %lld). Kernel "
                               "size: (%lld x %lld). "
                               "Kernel size can't be greater than actual input size",
                               (long long)(x[2] + 2 * o->padding[0]),
                               (long long)(x[3] + 2 * o->padding[1]),
                               (long long)(o->dilation[0] * (w[2] - 1) + 1),
                               (long long)(o->dilation[1] * (w[3] - 1) + 1));
        out[2 + i] = (room - reach) / o->stride[i] + 1;
    }
    return SIMT_OK;
}

static simt_status check_forward(const array *x, const array *w, const conv_options *o,
                                 int64_t out[4]) {
    if (x->ndim != 4 || w->ndim != 4)
        return status_fail(
            SIMT_ERR_RUNTIME,
            "Expected 4D input and weight to conv2d, but got input of dimension %d and weight of "
            "dimension %d",
            x->ndim, w->ndim);
    return conv_shape(x->shape, w->shape, o, out);
}

/* A gradient must have the shape of the result: what was convolved may have been replaced since. */
static simt_status check_backward(const array *grad, const array *other, const int64_t *x,
                                  const int64_t *w, const conv_options *o) {
    int64_t shape[4];
    if (grad->ndim != 4 || other->ndim != 4)
        return status_fail(SIMT_ERR_RUNTIME, "conv2d_backward: 4D operands are expected");
    SIMT_TRY(conv_shape(x, w, o, shape));
    if (array_same_shape(grad, shape, 4)) return SIMT_OK;
    return status_fail(SIMT_ERR_RUNTIME,
                       "conv2d_backward: the gradient has not the shape of the result");
}

/* The bias is a node of its own, so that it fuses with what follows. */
simt_status array_conv2d(array *x, array *weight, array *bias, const conv_options *o, array **out) {
    int64_t shape[4];
    SIMT_TRY(check_forward(x, weight, o, shape));
    if (x->dt != weight->dt)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Input type (%s) and weight type (%s) should be the same",
                           dtype_table[x->dt].name, dtype_table[weight->dt].name);
    if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return status_fail(SIMT_ERR_RUNTIME, "expected bias to be 1-dimensional with %lld elements",
                           (long long)weight->shape[0]);
    array *product = NULL, *column = NULL;
    SIMT_TRY(conv_node(OP_CONV2D, x, weight, shape, o, bias ? &product : out));
    if (!bias) return SIMT_OK;
    simt_status status = array_reshape(bias, (int64_t[]){bias->shape[0], 1, 1}, 3, &column);
    if (status == SIMT_OK)
        status =
            array_elementwise(OP_ADD, (operand[]){operand_array(product), operand_array(column)}, 2,
                              &(op_options){.face = FACE_NUMPY}, out);
    array_unref(product);
    array_unref(column);
    return status;
}

simt_status array_conv2d_input(array *grad, array *weight, const int64_t x_shape[4],
                               const conv_options *o, array **out) {
    SIMT_TRY(check_backward(grad, weight, x_shape, weight->shape, o));
    return conv_node(OP_CONV2D_INPUT, grad, weight, x_shape, o, out);
}

simt_status array_conv2d_weight(array *grad, array *x, const int64_t w_shape[4],
                                const conv_options *o, array **out) {
    SIMT_TRY(check_backward(grad, x, x->shape, w_shape, o));
    return conv_node(OP_CONV2D_WEIGHT, grad, x, w_shape, o, out);
}

/* ---- the steps ---- */

typedef enum conv_step { CONV_FORWARD, CONV_INPUT, CONV_WEIGHT } conv_step;

typedef struct conv {
    const call_args *c;
    dtype dt;
    int64_t size;                                      /* bytes of an element */
    int64_t images, groups, in_channels, out_channels; /* channels of one group */
    image_axis y, x;
    int64_t points, taps; /* output pixels; rows of the columns matrix */
    bool direct;          /* 1x1, nothing moves: the image is the columns matrix */
    bool sliced, own;     /* own: as in blas_gemm */
    conv_step step;
    char *image, *weight, *result; /* the step writes one, from the two others */
    int64_t parts;                 /* of the weight's gradient, each a sum over its images */
} conv;

/* The operands of the node hold image, weight and result, in the step's own order. */
static void conv_setup(conv *v, const call_args *c, conv_step step, const call_view *image_in,
                       const call_view *weight_in, const call_view *result_in) {
    const int64_t *p = c->node->params, *image = image_in->shape, *weight = weight_in->shape,
                  *out = result_in->shape;
    *v = (conv){.c = c,
                .step = step,
                .image = image_in->data,
                .weight = weight_in->data,
                .result = result_in->data,
                .dt = c->out.dt,
                .size = (int64_t)dtype_bytes(c->out.dt),
                .images = image[0],
                .groups = p[6]};
    v->in_channels = image[1] / v->groups;
    v->out_channels = weight[0] / v->groups;
    v->y = (image_axis){image[2], out[2], weight[2], p[0], p[2], p[4]};
    v->x = (image_axis){image[3], out[3], weight[3], p[1], p[3], p[5]};
    v->points = out[2] * out[3];
    v->taps = v->in_channels * weight[2] * weight[3];
    v->direct =
        weight[2] == 1 && weight[3] == 1 && p[0] == 1 && p[1] == 1 && p[2] == 0 && p[3] == 0;
    v->sliced = v->images < c->dev->nthreads;
}

#define COLUMNS(name, ctype)                                                                      \
    /* One row of the columns matrix: tap (ky, kx) of one channel at all output pixels. */        \
    static void gather_##name(const conv *v, const ctype *plane, int64_t ky, int64_t kx,          \
                              ctype *row) {                                                       \
        int64_t y0, y1, x0, x1, width = v->x.out;                                                 \
        image_valid(&v->y, ky, &y0, &y1);                                                         \
        image_valid(&v->x, kx, &x0, &x1);                                                         \
        memset(row, 0, sizeof *row *(size_t)(y0 * width));                                        \
        for (int64_t y = y0; y < y1; y++) {                                                       \
            const ctype *from = plane +                                                           \
                                (y * v->y.stride - v->y.padding + ky * v->y.dilation) * v->x.in + \
                                kx * v->x.dilation - v->x.padding;                                \
            ctype *to = row + y * width;                                                          \
            for (int64_t x = 0; x < x0; x++) to[x] = 0;                                           \
            if (v->x.stride == 1)                                                                 \
                memcpy(to + x0, from + x0, sizeof *to * (size_t)(x1 - x0));                       \
            else                                                                                  \
                for (int64_t x = x0; x < x1; x++) to[x] = from[x * v->x.stride];                  \
            for (int64_t x = x1; x < width; x++) to[x] = 0;                                       \
        }                                                                                         \
        memset(row + y1 * width, 0, sizeof *row * (size_t)((v->y.out - y1) * width));             \
    }                                                                                             \
    /* The transposed walk: adds the row to the plane. */                                         \
    static void scatter_##name(const conv *v, ctype *plane, int64_t ky, int64_t kx,               \
                               const ctype *row) {                                                \
        int64_t y0, y1, x0, x1;                                                                   \
        image_valid(&v->y, ky, &y0, &y1);                                                         \
        image_valid(&v->x, kx, &x0, &x1);                                                         \
        for (int64_t y = y0; y < y1; y++) {                                                       \
            ctype *to = plane + (y * v->y.stride - v->y.padding + ky * v->y.dilation) * v->x.in + \
                        kx * v->x.dilation - v->x.padding;                                        \
            const ctype *from = row + y * v->x.out;                                               \
            if (v->x.stride == 1)                                                                 \
                for (int64_t x = x0; x < x1; x++) to[x] += from[x];                               \
            else                                                                                  \
                for (int64_t x = x0; x < x1; x++) to[x * v->x.stride] += from[x];                 \
        }                                                                                         \
    }
COLUMNS(f32, float)
COLUMNS(f64, double)
#undef COLUMNS

/* columns <- one group of one image, or (scatter) the image <- columns added. */
static void move_columns(const conv *v, char *image, char *columns, bool scatter) {
    int64_t plane = v->y.in * v->x.in, row = 0;
    for (int64_t channel = 0; channel < v->in_channels; channel++)
        for (int64_t ky = 0; ky < v->y.kernel; ky++)
            for (int64_t kx = 0; kx < v->x.kernel; kx++, row++) {
                char *at = image + channel * plane * v->size,
                     *line = columns + row * v->points * v->size;
                if (v->dt == DT_F32 && scatter)
                    scatter_f32(v, (float *)at, ky, kx, (float *)line);
                else if (v->dt == DT_F32)
                    gather_f32(v, (float *)at, ky, kx, (float *)line);
                else if (scatter)
                    scatter_f64(v, (double *)at, ky, kx, (double *)line);
                else
                    gather_f64(v, (double *)at, ky, kx, (double *)line);
            }
}

static int64_t image_bytes(const conv *v) {
    return v->in_channels * v->y.in * v->x.in * v->size;
} /* of one group */
static int64_t result_bytes(const conv *v) { return v->out_channels * v->points * v->size; }
static int64_t weight_bytes(const conv *v) { return v->out_channels * v->taps * v->size; }

static simt_status scratch(const conv *v, void **columns) {
    *columns = NULL;
    return v->direct
               ? SIMT_OK
               : v->c->dev->alloc(v->c->dev, (size_t)(v->taps * v->points * v->size), columns);
}

static void free_scratch(const conv *v, void *columns) {
    if (columns) v->c->dev->free(v->c->dev, columns, (size_t)(v->taps * v->points * v->size));
}

typedef struct matrix { /* dense, row-major */
    char *at;
    int64_t rows, columns;
} matrix;

/* c = a @ b + beta * c; a or b transposed. */
static simt_status multiply(const conv *v, matrix a, bool a_trans, matrix b, bool b_trans, matrix c,
                            double beta) {
    blas_gemm g = {.dt = v->dt,
                   .a_trans = a_trans,
                   .b_trans = b_trans,
                   .own = v->own,
                   .m = c.rows,
                   .n = c.columns,
                   .k = a_trans ? a.rows : a.columns,
                   .lda = a.columns,
                   .ldb = b.columns,
                   .ldc = c.columns,
                   .a = a.at,
                   .b = b.at,
                   .c = c.at,
                   .beta = beta};
    if (v->sliced) return blas_run_sliced(v->c->dev, &g);
    return blas_run(&g);
}

/* One group i of all the images: result = weight @ columns, or what the step wants of the three. The
 * weight's gradient is added to what is there, but for the first. */
static simt_status run_group(const conv *v, int64_t i, char *weight_at, void *scratch, bool first) {
    char *image = v->image + i * image_bytes(v);
    matrix weight = {weight_at, v->out_channels, v->taps},
           columns = {v->direct ? image : scratch, v->taps, v->points},
           result = {v->result + i * result_bytes(v), v->out_channels, v->points};
    if (v->step == CONV_INPUT) {
        SIMT_TRY(multiply(v, weight, true, result, false, columns, 0));
        if (v->direct) return SIMT_OK;
        memset(image, 0, (size_t)image_bytes(v));
        move_columns(v, image, columns.at, true);
        return SIMT_OK;
    }
    if (!v->direct) move_columns(v, image, columns.at, false);
    if (v->step == CONV_FORWARD) return multiply(v, weight, false, columns, false, result, 0);
    return multiply(v, result, false, columns, true, weight, first ? 0 : 1);
}

static simt_status run_images(const conv *v, int64_t first, int64_t last, char *weight) {
    void *columns;
    SIMT_TRY(scratch(v, &columns));
    simt_status status = SIMT_OK;
    for (int64_t i = first * v->groups; i < last * v->groups && status == SIMT_OK; i++)
        status = run_group(v, i, weight + i % v->groups * weight_bytes(v), columns,
                           i < (first + 1) * v->groups);
    free_scratch(v, columns);
    return status;
}

static simt_status work_images(void *context, size_t begin, size_t end) {
    const conv *v = context;
    return run_images(v, (int64_t)begin, (int64_t)end, v->weight);
}

/* Part p adds up its images' products in the p-th copy of the weight. */
static simt_status work_parts(void *context, size_t begin, size_t end) {
    const conv *v = context;
    for (int64_t p = (int64_t)begin; p < (int64_t)end; p++)
        SIMT_TRY(run_images(v, v->images * p / v->parts, v->images * (p + 1) / v->parts,
                            v->weight + p * v->groups * weight_bytes(v)));
    return SIMT_OK;
}

/* All groups of all images have products of one kind: of weight, columns, result (see run_group). */
static simt_status prepare_product(conv *v) {
    bool input = v->step == CONV_INPUT, weight = v->step == CONV_WEIGHT;
    blas_gemm g = {.dt = v->dt,
                   .a_trans = input,
                   .b_trans = weight,
                   .m = input ? v->taps : v->out_channels,
                   .n = weight ? v->taps : v->points,
                   .k = input    ? v->out_channels
                        : weight ? v->points
                                 : v->taps};
    SIMT_TRY(blas_prepare(&g));
    v->own = g.own;
    return SIMT_OK;
}

static simt_status over_images(conv *v) {
    SIMT_TRY(prepare_product(v));
    if (v->sliced) return work_images(v, 0, (size_t)v->images);
    return v->c->dev->parallel(v->c->dev, (size_t)v->images, 1, work_images, v);
}

simt_status call_conv2d(const call_args *c) {
    conv v;
    conv_setup(&v, c, CONV_FORWARD, &c->in[0], &c->in[1], &c->out);
    return over_images(&v);
}

simt_status call_conv2d_input(const call_args *c) {
    conv v;
    conv_setup(&v, c, CONV_INPUT, &c->out, &c->in[1], &c->in[0]);
    return over_images(&v);
}

static void add_parts(const conv *v, char *to) {
    int64_t n = v->groups * v->out_channels * v->taps;
    if (v->dt == DT_F32) {
        float *sum = (float *)to, *parts = (float *)v->weight;
        memcpy(sum, parts, sizeof *sum * (size_t)n);
        for (int64_t p = 1; p < v->parts; p++)
            for (int64_t i = 0; i < n; i++) sum[i] += parts[p * n + i];
    } else {
        double *sum = (double *)to, *parts = (double *)v->weight;
        memcpy(sum, parts, sizeof *sum * (size_t)n);
        for (int64_t p = 1; p < v->parts; p++)
            for (int64_t i = 0; i < n; i++) sum[i] += parts[p * n + i];
    }
}

simt_status call_conv2d_weight(const call_args *c) {
    conv v;
    conv_setup(&v, c, CONV_WEIGHT, &c->in[1], &c->out, &c->in[0]);
    SIMT_TRY(prepare_product(&v));
    size_t bytes = (size_t)(v.groups * weight_bytes(&v));
    v.parts = v.sliced ? 1 : min_i64(v.images, bytes < ((size_t)1 << 20) ? 8 : 4);
    if (v.parts == 1) return work_parts(&v, 0, 1);
    void *partial;
    SIMT_TRY(c->dev->alloc(c->dev, bytes * (size_t)v.parts, &partial));
    v.weight = partial;
    simt_status status = c->dev->parallel(c->dev, (size_t)v.parts, 1, work_parts, &v);
    if (status == SIMT_OK) add_parts(&v, c->out.data);
    c->dev->free(c->dev, partial, bytes * (size_t)v.parts);
    return status;
}
