/* Matrix products and linear layers with their gradients. */
#include <string.h>

#include "grad/work.h"

static const char *c_name(dtype dt) {
    static const char *const names[DT_COUNT] = {
        [DT_BOOL] = "bool",     [DT_I8] = "signed char",     [DT_I16] = "short",
        [DT_I32] = "int",       [DT_I64] = "long",           [DT_U8] = "unsigned char",
        [DT_F16] = "c10::Half", [DT_BF16] = "c10::BFloat16", [DT_F32] = "float",
        [DT_F64] = "double"};
    return names[dt] ? names[dt] : dtype_table[dt].name;
}

/* The last two axes exchanged: a view outside the tape. */
static simt_status swap_axes(array *a, array **out) {
    int axes[ARRAY_MAX_NDIM];
    if (a->ndim < 2)
        return status_fail(SIMT_ERR_RUNTIME, "a matrix is expected, got a %d-D tensor", a->ndim);
    for (int i = 0; i < a->ndim; i++) axes[i] = i;
    axes[a->ndim - 1] = a->ndim - 2;
    axes[a->ndim - 2] = a->ndim - 1;
    return array_transpose(a, axes, out);
}

static simt_status rule_matmul(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    if (grad_wants(n, 0))
        in[0] = w_take(&w, w_matmul(&w, out[0], w_transpose(&w, w_saved(&w, n, 1))));
    if (grad_wants(n, 1))
        in[1] = w_take(&w, w_matmul(&w, w_transpose(&w, w_saved(&w, n, 0)), out[0]));
    return work_end(&w);
}

/* Both with two dimensions or more. */
static simt_status product(tensor *a, tensor *b, const char *name, tensor **out) {
    tensor *inputs[2] = {a, b};
    grad_node *n = NULL;
    SIMT_TRY(grad_node_new(name, rule_matmul, inputs, 2, 2, 0, &n));
    if (n && grad_wants(n, 0)) grad_save(n, 1, b);
    if (n && grad_wants(n, 1)) grad_save(n, 0, a);
    array *r;
    simt_status s = array_matmul(a->a, b->a, FACE_TORCH, &r);
    if (s == SIMT_OK) return grad_finish(r, n, out);
    grad_node_unref(n);
    return s;
}

static simt_status dot(tensor *a, tensor *b, tensor **out) {
    if (a->a->size != b->a->size)
        return status_fail(SIMT_ERR_RUNTIME,
                           "inconsistent tensor size, expected tensor [%lld] and src [%lld] to "
                           "have the same number of "
                           "elements, but got %lld and %lld elements respectively",
                           (long long)a->a->size, (long long)b->a->size, (long long)a->a->size,
                           (long long)b->a->size);
    work w = {0};
    tensor *sum = w_sum(&w, w_mul(&w, a, b), 1, false); /* of integers: int64 */
    *out = w_take(&w, w_cast(&w, sum, a->a->dt));
    return work_end(&w);
}

static simt_status check_product(const tensor *a, const tensor *b) {
    const array *x = a->a, *y = b->a;
    if (x->dt != y->dt)
        return status_fail(SIMT_ERR_RUNTIME,
                           "expected m1 and m2 to have the same dtype, but got: %s != %s",
                           c_name(x->dt), c_name(y->dt));
    if (x->ndim == 0 || y->ndim == 0)
        return status_fail(
            SIMT_ERR_RUNTIME,
            "both arguments to matmul need to be at least 1D, but they are %dD and %dD", x->ndim,
            y->ndim);
    int64_t inner = x->shape[x->ndim - 1],
            other = y->ndim == 1 ? y->shape[0] : y->shape[y->ndim - 2];
    if (inner == other || (x->ndim == 1 && y->ndim == 1)) return SIMT_OK;
    if (x->ndim == 2 && y->ndim == 1)
        return status_fail(SIMT_ERR_RUNTIME,
                           "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                           (long long)x->shape[0], (long long)x->shape[0], (long long)x->shape[1],
                           (long long)y->shape[0]);
    if (y->ndim <= 2) {
        int64_t rows = 1;
        for (int i = 0; i < x->ndim - 1; i++) rows *= x->shape[i];
        return status_fail(
            SIMT_ERR_RUNTIME,
            "mm: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
            (long long)rows, (long long)inner, (long long)other,
            (long long)(y->ndim == 1 ? 1 : y->shape[1]));
    }
    int64_t batch = 1;
    for (int i = 0; i < y->ndim - 2; i++) batch *= y->shape[i];
    return status_fail(SIMT_ERR_RUNTIME,
                       "Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                       "%lld] but got: [%lld, "
                       "%lld].",
                       (long long)batch, (long long)inner, (long long)batch, (long long)other);
}

simt_status grad_matmul(tensor *a, tensor *b, tensor **out) {
    SIMT_TRY(check_product(a, b));
    const array *left = a->a, *right = b->a;
    int p = left->ndim, q = right->ndim;
    if (p == 1 && q == 1) return dot(a, b, out);
    if (p == 2 && q == 2) return product(a, b, "MmBackward0", out);
    work w = {0};
    tensor *x = p == 1 ? w_unsqueeze(&w, a, 0) : a, *y = q == 1 ? w_unsqueeze(&w, b, 1) : b,
           *r = NULL;
    simt_status s = w.status;
    if (s == SIMT_OK && p > 2 && q <= 2) { /* one product for all rows */
        int64_t shape[ARRAY_MAX_NDIM], flat[2] = {-1, left->shape[p - 1]};
        if (left->size == 0) flat[0] = 0;
        if (left->size == 0 && flat[1])
            for (int i = 0; i < p - 1; i++) flat[0] = i ? flat[0] * left->shape[i] : left->shape[i];
        memcpy(shape, left->shape, sizeof *shape * (size_t)p);
        x = w_reshape(&w, a, flat, 2);
        s = w.status;
        if (s == SIMT_OK) s = product(x, y, "MmBackward0", &r);
        r = work_own(&w, s, r);
        shape[p - 1] = q == 1 ? 1 : right->shape[1];
        r = w_reshape(&w, r, shape, q == 1 ? p - 1 : p);
    } else {
        if (s == SIMT_OK) s = product(x, y, p == 3 && q == 3 ? "BmmBackward0" : "MmBackward0", &r);
        r = work_own(&w, s, r);
        if (w.status == SIMT_OK && (p == 1 || q == 1)) {
            tensor *squeezed;
            s = grad_squeeze(r, 1u << (p == 1 ? r->a->ndim - 2 : r->a->ndim - 1), &squeezed);
            r = work_own(&w, s, squeezed);
        }
    }
    *out = w_take(&w, r);
    return work_end(&w);
}

/* ---- linear: x [rows, in], weight [out, in], bias [out] ---- */

static simt_status rule_linear(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *g = out[0];
    if (grad_wants(n, 0)) in[0] = w_take(&w, w_matmul(&w, g, w_saved(&w, n, 1)));
    if (grad_wants(n, 1)) in[1] = w_take(&w, w_matmul(&w, w_transpose(&w, g), w_saved(&w, n, 0)));
    if (n->nin > 2 && grad_wants(n, 2)) in[2] = w_take(&w, w_sum(&w, g, 1, false));
    return work_end(&w);
}

static simt_status linear_rows(tensor *x, tensor *weight, tensor *bias, tensor **out) {
    tensor *inputs[3] = {x, weight, bias};
    grad_node *n;
    SIMT_TRY(grad_node_new(bias ? "AddmmBackward0" : "MmBackward0", rule_linear, inputs,
                           bias ? 3 : 2, 2, 0, &n));
    if (n && grad_wants(n, 0)) grad_save(n, 1, weight);
    if (n && grad_wants(n, 1)) grad_save(n, 0, x);
    array *turned, *product = NULL, *r = NULL;
    simt_status s = swap_axes(weight->a, &turned);
    if (s == SIMT_OK) {
        s = array_matmul(x->a, turned, FACE_TORCH, &product);
        array_unref(turned);
    }
    if (s == SIMT_OK && bias) {
        operand in[2] = {{.a = product}, {.a = bias->a}};
        op_options o = {.face = FACE_TORCH, .default_float = grad_default_float};
        s = array_elementwise(OP_ADD, in, 2, &o, &r);
        array_unref(product);
    } else
        r = product;
    if (s == SIMT_OK) return grad_finish(r, n, out);
    grad_node_unref(n);
    return s;
}

simt_status grad_linear(tensor *x, tensor *weight, tensor *bias, tensor **out) {
    const array *a = x->a, *m = weight->a;
    if (a->dt != m->dt || (bias && bias->a->dt != m->dt)) {
        if (!bias) return grad_matmul(x, weight, out);
        return status_fail(SIMT_ERR_RUNTIME,
                           "mat1 and mat2 must have the same dtype, but got %s and %s",
                           dtype_torch_name(a->dt), dtype_torch_name(m->dt));
    }
    if (a->ndim == 0 || m->ndim != 2)
        return status_fail(
            SIMT_ERR_RUNTIME,
            "both arguments to linear need to be at least 1D, but they are %dD and %dD", a->ndim,
            m->ndim);
    int64_t inner = a->shape[a->ndim - 1], rows = 1;
    for (int i = 0; i < a->ndim - 1; i++) rows *= a->shape[i];
    if (inner != m->shape[1])
        return status_fail(
            SIMT_ERR_RUNTIME,
            "%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
            bias ? "addmm" : "mm", (long long)rows, (long long)inner, (long long)m->shape[1],
            (long long)m->shape[0]);
    if (a->ndim == 2) return linear_rows(x, weight, bias, out);
    int64_t flat[2] = {rows, inner}, shape[ARRAY_MAX_NDIM];
    memcpy(shape, a->shape, sizeof *shape * (size_t)a->ndim);
    shape[a->ndim - 1] = m->shape[0];
    work w = {0};
    tensor *r = NULL, *y = w_reshape(&w, x, flat, 2);
    if (w.status == SIMT_OK) {
        simt_status s = linear_rows(y, weight, bias, &r);
        r = work_own(&w, s, r);
    }
    r = w_reshape(&w, r, shape, a->ndim);
    if (r && r->fn) r->fn->name = "UnsafeViewBackward0"; /* as PyTorch calls it here */
    *out = w_take(&w, r);
    return work_end(&w);
}
