/* Writing rules as expressions: a pool owns the intermediate tensors and remembers the first failure; after
 * one, every function returns NULL and does nothing. Results are borrowed from the pool. */
#ifndef SIMT_GRAD_WORK_H
#define SIMT_GRAD_WORK_H

#include "grad/grad.h"

#define WORK_MAX 64
typedef struct work {
    simt_status status;
    int n;
    tensor *pool[WORK_MAX];
} work;

static inline tensor *work_own(work *w, simt_status s, tensor *t) {
    if (s != SIMT_OK) {
        if (w->status == SIMT_OK) w->status = s;
        return NULL;
    }
    if (w->n == WORK_MAX) {
        tensor_unref(t);
        w->status = status_fail(SIMT_ERR_INTERNAL, "a gradient rule has too many intermediates");
        return NULL;
    }
    return w->pool[w->n++] = t;
}
/* A new tensor of the array, which it takes. */
static inline tensor *work_wrap(work *w, simt_status s, array *a) {
    tensor *t = s == SIMT_OK ? tensor_new(a) : NULL;
    return work_own(w, s == SIMT_OK && !t ? SIMT_ERR_MEMORY : s, t);
}
#define WORK_DO(w, ...)                          \
    do {                                         \
        tensor *work_t = NULL;                   \
        if ((w)->status != SIMT_OK) return NULL; \
        simt_status work_s = (__VA_ARGS__);      \
        return work_own((w), work_s, work_t);    \
    } while (0)

static inline tensor *w_unary(work *w, array_op op, tensor *a) {
    WORK_DO(w, grad_unary(op, a, &work_t));
}
static inline tensor *w_binary(work *w, array_op op, tensor *a, tensor *b) {
    WORK_DO(w, grad_binary(op, a, b, &work_t));
}
static inline tensor *w_add(work *w, tensor *a, tensor *b) { return w_binary(w, OP_ADD, a, b); }
static inline tensor *w_sub(work *w, tensor *a, tensor *b) {
    return w_binary(w, OP_SUBTRACT, a, b);
}
static inline tensor *w_mul(work *w, tensor *a, tensor *b) {
    return w_binary(w, OP_MULTIPLY, a, b);
}
static inline tensor *w_div(work *w, tensor *a, tensor *b) { return w_binary(w, OP_DIVIDE, a, b); }
static inline tensor *w_scale(work *w, tensor *a, double s) {
    WORK_DO(w, grad_binary_scalar(OP_MULTIPLY, a, s, &work_t));
}
static inline tensor *w_plus(work *w, tensor *a, double s) {
    WORK_DO(w, grad_binary_scalar(OP_ADD, a, s, &work_t));
}
static inline tensor *w_saved(work *w, grad_node *n, int slot) {
    WORK_DO(w, grad_get_saved(n, slot, &work_t));
}
static inline tensor *w_sum(work *w, tensor *a, uint32_t mask, bool keepdims) {
    WORK_DO(w, grad_reduce(OP_SUM, a, mask, keepdims, -1, &work_t));
}
static inline tensor *w_mean(work *w, tensor *a, uint32_t mask, bool keepdims) {
    WORK_DO(w, grad_mean(a, mask, keepdims, -1, &work_t));
}
static inline tensor *w_reshape(work *w, tensor *a, const int64_t *shape, int ndim) {
    WORK_DO(w, grad_reshape(a, shape, ndim, false, &work_t));
}
static inline tensor *w_expand(work *w, tensor *a, const int64_t *shape, int ndim) {
    WORK_DO(w, grad_expand(a, shape, ndim, &work_t));
}
static inline tensor *w_permute(work *w, tensor *a, const int *axes) {
    WORK_DO(w, grad_permute(a, axes, "PermuteBackward0", &work_t));
}
static inline tensor *w_unsqueeze(work *w, tensor *a, int axis) {
    WORK_DO(w, grad_unsqueeze(a, axis, &work_t));
}
static inline tensor *w_matmul(work *w, tensor *a, tensor *b) {
    WORK_DO(w, grad_matmul(a, b, &work_t));
}
static inline tensor *w_cast(work *w, tensor *a, dtype dt) {
    WORK_DO(w, grad_cast(a, dt, &work_t));
}
static inline tensor *w_where(work *w, tensor *condition, tensor *a, tensor *b) {
    /* b NULL: 0 */
    tensor_operand in[3] = {{condition}, {a}, {b, {.kind = 'I', .i = 0}}};
    WORK_DO(w, grad_elementwise(OP_WHERE, in, 3, NULL, &work_t));
}
/* Swaps the last two axes. */
static inline tensor *w_transpose(work *w, tensor *a) {
    if (w->status != SIMT_OK) return NULL;
    int axes[ARRAY_MAX_NDIM], ndim = a->a->ndim;
    if (ndim < 2) {
        w->status = status_fail(SIMT_ERR_RUNTIME, "a matrix is expected, got a %d-D tensor", ndim);
        return NULL;
    }
    for (int i = 0; i < ndim; i++) axes[i] = i;
    axes[ndim - 1] = ndim - 2;
    axes[ndim - 2] = ndim - 1;
    return w_permute(w, a, axes);
}
/* Gives t to the caller (a reference of its own), or NULL after a failure. */
static inline tensor *w_take(work *w, tensor *t) {
    return w->status == SIMT_OK ? tensor_ref(t) : NULL;
}
static inline simt_status work_end(work *w) {
    for (int i = 0; i < w->n; i++) tensor_unref(w->pool[i]);
    w->n = 0;
    return w->status;
}

/* A view counting along an axis, of the shape that broadcasts against ndim dimensions; without data where
 * `like` has none (reduce.c). */
tensor *w_count_along(work *w, const array *like, dtype dt, int64_t count, int axis, int ndim);

#endif
