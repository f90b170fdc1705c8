/* Matrix products: NumPy's matmul and dot.
 *
 * When the operation is made, vectors become matrices and batches are broadcast (views); the step runs
 * each matrix by blas.h (f32, f64; transposed operands by flags) or by plain loops (other types).
 */
#include <stdlib.h>

#include "array/blas.h"
#include "array/meta.h"
#include "array/walk.h"

/* ---- making the operation ---- */

static simt_status shape_error(const array *a, const array *b, graph_face face, int64_t ka,
                               int64_t kb) {
    if (face == FACE_TORCH) {
        if (a->ndim == 1 && b->ndim == 1)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the "
                "same number of elements, but got %lld and %lld elements respectively",
                (long long)ka, (long long)kb, (long long)ka, (long long)kb);
        int64_t rows = a->ndim > 1 ? a->shape[a->ndim - 2] : 1,
                columns = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
        for (int d = 0; d < a->ndim - 2; d++)
            if (b->ndim <= 2) rows *= a->shape[d];
        if (b->ndim == 1 && a->ndim == 2)
            return status_fail(SIMT_ERR_RUNTIME,
                               "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                               (long long)rows, (long long)rows, (long long)ka, (long long)kb);
        return status_fail(SIMT_ERR_RUNTIME,
                           "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                           (long long)rows, (long long)ka, (long long)kb, (long long)columns);
    }
    return status_fail(
        SIMT_ERR_VALUE,
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
        "(n?,k),(k,m?)->(n?,m?) (size %lld is different from %lld)",
        (long long)kb, (long long)ka);
}

/* As a matrix (a vector gets the dimension of length 1 at `axis`), in the result's type. */
static simt_status as_matrix(array *a, int axis, dtype dt, array **out) {
    array *typed = NULL;
    if (a->dt != dt) {
        SIMT_TRY(array_astype(a, dt, &typed));
        a = typed;
    }
    simt_status status = SIMT_OK;
    if (a->ndim == 1)
        status = array_expand_dims(a, axis, out);
    else
        *out = array_ref(a);
    array_unref(typed);
    return status;
}

static simt_status matmul_node(array *a, array *b, graph_face face, array **out) {
    int64_t shape[ARRAY_MAX_NDIM];
    int batch, na = a->ndim - 2, nb = b->ndim - 2;
    const int64_t *shapes[2] = {a->shape, b->shape};
    SIMT_TRY(graph_broadcast(face, shapes, (int[]){na, nb}, 2, shape, &batch));
    int64_t m = a->shape[na], k = a->shape[na + 1], n = b->shape[nb + 1];
    shape[batch] = m;
    shape[batch + 1] = n;
    int64_t size;
    SIMT_TRY(array_same_device((array *[]){a, b}, 2));
    SIMT_TRY(array_check_shape(shape, batch + 2, a->dt, &size));
    if (size == 0 || k == 0)
        return array_full_of(array_is_meta(a) ? a : b, a->dt, shape, batch + 2, 0, out);
    queue_request q;
    queue_request_init(&q, OP_MATMUL);
    q.node.compute = a->dt;
    queue_input(&q, a);
    queue_input(&q, b);
    int64_t wanted[ARRAY_MAX_NDIM];
    memcpy(wanted, shape, sizeof *shape * (size_t)batch);
    wanted[batch] = m;
    wanted[batch + 1] = k;
    queue_view_broadcast(&q.node.in[0], a, wanted, batch + 2);
    wanted[batch] = k;
    wanted[batch + 1] = n;
    queue_view_broadcast(&q.node.in[1], b, wanted, batch + 2);
    queue_output_new(&q, a->dt, shape, batch + 2);
    return queue_add(&q, out);
}

simt_status array_matmul(array *a, array *b, graph_face face, array **out) {
    if (a->ndim == 0 || b->ndim == 0) {
        if (face == FACE_TORCH)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                a->ndim, b->ndim);
        return status_fail(SIMT_ERR_VALUE,
                           "matmul: Input operand %d does not have enough dimensions (has 0, "
                           "gufunc core with signature "
                           "(n?,k),(k,m?)->(n?,m?) requires 1)",
                           a->ndim != 0);
    }
    int64_t ka = a->shape[a->ndim - 1], kb = b->shape[b->ndim == 1 ? 0 : b->ndim - 2];
    if (ka != kb) return shape_error(a, b, face, ka, kb);
    if (face == FACE_TORCH && a->dt != b->dt)
        return status_fail(SIMT_ERR_RUNTIME,
                           "expected m1 and m2 to have the same dtype, but got: %s != %s",
                           dtype_table[a->dt].name, dtype_table[b->dt].name);
    dtype dt = dtype_promote(a->dt, b->dt);
    array *x = NULL, *y = NULL, *product = NULL;
    simt_status status = as_matrix(a, 0, dt, &x);
    if (status == SIMT_OK) status = as_matrix(b, 1, dt, &y);
    if (status == SIMT_OK) status = matmul_node(x, y, face, &product);
    if (status == SIMT_OK) {
        uint32_t drop = 0;
        if (a->ndim == 1) drop |= 1u << (product->ndim - 2);
        if (b->ndim == 1) drop |= 1u << (product->ndim - 1);
        status = drop ? array_squeeze(product, drop, out) : (*out = array_ref(product), SIMT_OK);
    }
    array_unref(x);
    array_unref(y);
    array_unref(product);
    return status;
}

/* numpy.dot: as matmul for up to two dimensions; beyond, the last axis of a with the second-last of b,
 * all other axes side by side. */
simt_status array_dot(array *a, array *b, array **out) {
    if (a->ndim == 0 || b->ndim == 0) {
        operand in[2] = {operand_array(a), operand_array(b)};
        return array_elementwise(OP_MULTIPLY, in, 2, &(op_options){0}, out);
    }
    int64_t k = a->shape[a->ndim - 1], kb = b->shape[b->ndim == 1 ? 0 : b->ndim - 2];
    if (k != kb) {
        char x[200], y[200];
        return status_fail(SIMT_ERR_VALUE,
                           "shapes %s and %s not aligned: %lld (dim %d) != %lld (dim %d)",
                           shape_print(a->shape, a->ndim, x, sizeof x),
                           shape_print(b->shape, b->ndim, y, sizeof y), (long long)k, a->ndim - 1,
                           (long long)kb, b->ndim == 1 ? 0 : b->ndim - 2);
    }
    if (b->ndim <= 2) return array_matmul(a, b, FACE_NUMPY, out);
    int axes[ARRAY_MAX_NDIM], nb = b->ndim;
    int64_t shape[2 * ARRAY_MAX_NDIM];
    int ndim = 0;
    for (int d = 0; d < a->ndim - 1; d++) shape[ndim++] = a->shape[d];
    axes[0] = nb - 2;
    for (int d = 0, at = 1; d < nb; d++) {
        if (d == nb - 2) continue;
        axes[at++] = d;
        shape[ndim++] = b->shape[d];
    }
    if (ndim > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_VALUE, "dot: too many dimensions in the result");
    int64_t rows = k ? a->size / k : 0, columns = k ? b->size / k : 0;
    array *turned = NULL, *x = NULL, *y = NULL, *product = NULL;
    simt_status status = array_transpose(b, axes, &turned);
    if (status == SIMT_OK) status = array_reshape(turned, (int64_t[]){k, columns}, 2, &y);
    if (status == SIMT_OK) status = array_reshape(a, (int64_t[]){rows, k}, 2, &x);
    if (status == SIMT_OK) status = array_matmul(x, y, FACE_NUMPY, &product);
    if (status == SIMT_OK) status = array_reshape(product, shape, ndim, out);
    array_unref(turned);
    array_unref(x);
    array_unref(y);
    array_unref(product);
    return status;
}

/* ---- the step ---- */

/* A matrix as BLAS takes it: stored by rows or by columns. */
typedef struct blas_matrix {
    const char *data;
    bool trans;
    int64_t ld;
    char *copy; /* dense copy, when the strides fit neither */
} blas_matrix;

static bool dense_rows(const int64_t *shape, const int64_t *strides, int64_t size, bool trans,
                       int64_t *ld) {
    int row = trans, column = !trans;
    int64_t length = shape[column];
    if (shape[column] != 1 && strides[column] != size) return false;
    *ld = shape[row] == 1 ? length : strides[row] / size;
    return (shape[row] == 1 || (strides[row] % size == 0 && *ld >= length)) && *ld <= INT32_MAX;
}

static bool stored_transposed(const call_view *v, int batch) {
    const int64_t *shape = v->shape + batch, *strides = v->strides + batch;
    int64_t size = (int64_t)dtype_bytes(v->dt), ld;
    return !dense_rows(shape, strides, size, false, &ld) &&
           dense_rows(shape, strides, size, true, &ld);
}

/* `dt` f32 or f64; strides and shape of the last two dimensions. */
static simt_status prepare(blas_matrix *x, device *dev, dtype dt, const char *data,
                           const int64_t *shape, const int64_t *strides) {
    int64_t size = (int64_t)dtype_bytes(dt);
    x->data = data;
    x->copy = NULL;
    for (int trans = 0; trans < 2; trans++) {
        if (!dense_rows(shape, strides, size, trans, &x->ld)) continue;
        x->trans = trans;
        return SIMT_OK;
    }
    void *copy;
    SIMT_TRY(dev->alloc(dev, (size_t)(shape[0] * shape[1] * size), &copy));
    int64_t dense[2] = {shape[1] * size, size};
    strided_copy(copy, dense, data, strides, shape, 2, (size_t)size);
    *x = (blas_matrix){copy, false, shape[1], copy};
    return SIMT_OK;
}

static void release(blas_matrix *x, device *dev, const int64_t *shape, dtype dt) {
    if (x->copy) dev->free(dev, x->copy, (size_t)shape[0] * (size_t)shape[1] * dtype_bytes(dt));
}

static simt_status blas_matrix_product(const call_args *c, const char *a, const char *b, char *to,
                                       bool sliced) {
    int batch = c->out.ndim - 2;
    const int64_t *as = c->in[0].shape + batch, *bs = c->in[1].shape + batch;
    dtype dt = c->out.dt;
    blas_matrix x, y;
    SIMT_TRY(prepare(&x, c->dev, dt, a, as, c->in[0].strides + batch));
    simt_status status = prepare(&y, c->dev, dt, b, bs, c->in[1].strides + batch);
    if (status == SIMT_OK) {
        blas_gemm g = {.dt = dt,
                       .a_trans = x.trans,
                       .b_trans = y.trans,
                       .m = as[0],
                       .n = bs[1],
                       .k = as[1],
                       .lda = x.ld,
                       .ldb = y.ld,
                       .ldc = bs[1],
                       .a = x.data,
                       .b = y.data,
                       .c = to};
        status = blas_prepare(&g);
        if (status == SIMT_OK && sliced)
            status = blas_run_sliced(c->dev, &g);
        else if (status == SIMT_OK)
            status = blas_run(&g);
        release(&y, c->dev, bs, dt);
    }
    release(&x, c->dev, as, dt);
    return status;
}

/* Other types: rows of the result, a row of b at a time (the inner loop is over neighbours in memory). */
#define LOOPS(name, ctype, wide, LOAD, STORE)                                              \
    static void loops_##name(const call_args *c, const char *a, const char *b, char *to) { \
        int batch = c->out.ndim - 2;                                                       \
        const int64_t *sa = c->in[0].strides + batch, *sb = c->in[1].strides + batch;      \
        int64_t m = c->out.shape[batch], n = c->out.shape[batch + 1],                      \
                k = c->in[0].shape[batch + 1];                                             \
        wide row[256];                                                                     \
        for (int64_t i = 0; i < m; i++) {                                                  \
            for (int64_t j0 = 0; j0 < n; j0 += 256) {                                      \
                int64_t width = min_i64(256, n - j0);                                      \
                for (int64_t j = 0; j < width; j++) row[j] = 0;                            \
                for (int64_t p = 0; p < k; p++) {                                          \
                    ctype va;                                                              \
                    memcpy(&va, a + i * sa[0] + p * sa[1], sizeof va);                     \
                    wide x = LOAD(va);                                                     \
                    const char *from = b + p * sb[0] + j0 * sb[1];                         \
                    for (int64_t j = 0; j < width; j++) {                                  \
                        ctype vb;                                                          \
                        memcpy(&vb, from + j * sb[1], sizeof vb);                          \
                        row[j] += x * LOAD(vb);                                            \
                    }                                                                      \
                }                                                                          \
                for (int64_t j = 0; j < width; j++) {                                      \
                    ctype v = STORE(row[j]);                                               \
                    memcpy(to + (i * n + j0 + j) * (int64_t)sizeof v, &v, sizeof v);       \
                }                                                                          \
            }                                                                              \
        }                                                                                  \
    }
#define SAME(v)  (v)
#define TRUTH(v) ((v) != 0)
LOOPS(8, uint8_t, uint8_t, SAME, SAME)
LOOPS(16, uint16_t, uint16_t, SAME, SAME)
LOOPS(32, uint32_t, uint32_t, SAME, SAME)
LOOPS(64, uint64_t, uint64_t, SAME, SAME)
LOOPS(bool, uint8_t, uint64_t, TRUTH, TRUTH)
LOOPS(f16, uint16_t, float, half_to_float, float_to_half)
LOOPS(bf16, uint16_t, float, bfloat_to_float, float_to_bfloat)
#undef LOOPS

static void plain_product(const call_args *c, const char *a, const char *b, char *to) {
    switch (c->out.dt) { /* integers wrap around: signedness does not matter */
    case DT_BOOL: loops_bool(c, a, b, to); return;
    case DT_F16: loops_f16(c, a, b, to); return;
    case DT_BF16: loops_bf16(c, a, b, to); return;
    default: break;
    }
    switch (dtype_bytes(c->out.dt)) {
    case 1: loops_8(c, a, b, to); return;
    case 2: loops_16(c, a, b, to); return;
    case 4: loops_32(c, a, b, to); return;
    default: loops_64(c, a, b, to); return;
    }
}

typedef struct batch_run {
    const call_args *c;
    bool blas, sliced;
    int64_t matrix_bytes;
} batch_run;

static simt_status run_batches(void *context, size_t begin, size_t end) {
    const batch_run *r = context;
    const call_args *c = r->c;
    int batch = c->out.ndim - 2;
    for (size_t i = begin; i < end; i++) {
        const char *a =
            c->in[0].data + walk_offset(c->out.shape, c->in[0].strides, batch, (int64_t)i);
        const char *b =
            c->in[1].data + walk_offset(c->out.shape, c->in[1].strides, batch, (int64_t)i);
        char *to = c->out.data + (int64_t)i * r->matrix_bytes;
        if (r->blas)
            SIMT_TRY(blas_matrix_product(c, a, b, to, r->sliced));
        else
            plain_product(c, a, b, to);
    }
    return SIMT_OK;
}

simt_status call_matmul(const call_args *c) {
    int batch = c->out.ndim - 2;
    int64_t matrices = 1, m = c->out.shape[batch], n = c->out.shape[batch + 1],
            k = c->in[0].shape[batch + 1];
    for (int d = 0; d < batch; d++) matrices *= c->out.shape[d];
    batch_run r = {.c = c,
                   .blas = c->out.dt == DT_F32 || c->out.dt == DT_F64,
                   .matrix_bytes = m * n * (int64_t)dtype_bytes(c->out.dt)};
    if (r.blas && (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX))
        return status_fail(SIMT_ERR_VALUE, "matmul: a dimension above 2147483647");
    if (r.blas) {
        blas_gemm g = {.dt = c->out.dt, .m = m, .n = n, .k = k};
        g.a_trans = stored_transposed(&c->in[0], batch);
        g.b_trans = stored_transposed(&c->in[1], batch);
        SIMT_TRY(blas_prepare(&g));
    }
    r.sliced = matrices < c->dev->nthreads;
    double flops = 2.0 * (double)m * (double)n * (double)k;
    if (matrices == 1 || (r.sliced && r.blas)) return run_batches(&r, 0, (size_t)matrices);
    return c->dev->parallel(c->dev, (size_t)matrices, (size_t)(1e5 / (flops + 1)) + 1, run_batches,
                            &r);
}
