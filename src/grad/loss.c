/* Cross entropy: few nodes, all elementwise or reductions, so that forward and backward fuse.
 *
 * The logarithms of the targets are picked by comparing with a count along the class axis, not by an indexed
 * read: both directions stay in one kernel with the softmax. Targets are checked at once;
 * they are evaluated for it when they are not in memory (GPU-style silent garbage is no answer). */
#include <string.h>

#include "array/meta.h"
#include "grad/work.h"

/* To be compared with `target`. */
static tensor *classes_along(work *w, const array *target, int64_t count, int axis, int ndim) {
    return w_count_along(w, target, target->dt, count, axis, ndim);
}

static tensor *compare(work *w, array_op op, tensor *a, int64_t with) {
    if (w->status != SIMT_OK) return NULL;
    tensor_operand in[2] = {{a}, {NULL, {.kind = 'I', .i = with}}};
    tensor *t = NULL;
    simt_status s = grad_elementwise(op, in, 2, NULL, &t);
    return work_own(w, s, t);
}

/* Number of targets that are not `ignore`; each must be a class. */
static simt_status check_targets(array *target, int64_t classes, int64_t ignore, int64_t *used) {
    *used = target->size;
    if (array_is_meta(target)) return SIMT_OK;
    SIMT_TRY(array_evaluate(target));
    array *dense = NULL;
    if (!array_is_contiguous(target) || target->dt != DT_I64) {
        SIMT_TRY(array_astype(target, DT_I64, &dense));
        simt_status s = array_evaluate(dense);
        if (s != SIMT_OK) {
            array_unref(dense);
            return s;
        }
    }
    array_window w;
    simt_status opened = array_open(dense ? dense : target, ARRAY_READ, &w);
    if (opened != SIMT_OK) return array_unref(dense), opened;
    const int64_t *p = (const int64_t *)(const void *)w.data;
    int64_t count = 0, bad = 0;
    bool found = false;
    for (int64_t i = 0; i < target->size && !found; i++) {
        if (p[i] == ignore) continue;
        count++;
        found = p[i] < 0 || p[i] >= classes;
        bad = p[i];
    }
    array_discard(&w);
    array_unref(dense);
    *used = count;
    return found ? status_fail(SIMT_ERR_INDEX, "Target %lld is out of bounds.", (long long)bad)
                 : SIMT_OK;
}

/* saved: target (with the class axis), weights along the class axis or none, total weight or none.
 * params: axis, ignore; options[0]: the factor of the gradient (1, or 1/count) */
static simt_status rule_nll(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    const grad_edge *e = &n->edges[0];
    int axis = (int)n->params[0];
    tensor *target = w_saved(&w, n, 0), *g = out[0];
    if (g->a->ndim) g = w_unsqueeze(&w, g, axis); /* one per target */
    g = w_scale(&w, g, -n->options[0]);
    if (n->saved[2].t) g = w_div(&w, g, w_saved(&w, n, 2));
    if (n->saved[1].t) g = w_mul(&w, g, w_saved(&w, n, 1));
    tensor *hit =
        target ? w_binary(&w, OP_EQUAL, classes_along(&w, target->a, e->shape[axis], axis, e->ndim),
                          target)
               : NULL;
    if (n->params[1] >= 0 && n->params[1] < e->shape[axis])
        hit = w_binary(&w, OP_LOGICAL_AND, hit, compare(&w, OP_NOT_EQUAL, target, n->params[1]));
    in[0] = w_take(&w, w_where(&w, hit, g, NULL));
    return work_end(&w);
}

static simt_status check_shapes(const array *x, const array *target) {
    if (x->ndim == 0 || target->ndim != x->ndim - 1)
        return status_fail(SIMT_ERR_VALUE,
                           "Expected target of %d dimensions for input of %d dimensions, got %d",
                           x->ndim - 1, x->ndim, target->ndim);
    if (x->ndim > 1 && x->shape[0] != target->shape[0])
        return status_fail(SIMT_ERR_VALUE,
                           "Expected input batch_size (%lld) to match target batch_size (%lld).",
                           (long long)x->shape[0], (long long)target->shape[0]);
    for (int d = 2; d < x->ndim; d++)
        if (x->shape[d] != target->shape[d - 1]) {
            char wanted[300], got[300];
            int64_t shape[ARRAY_MAX_NDIM];
            shape[0] = x->shape[0];
            for (int i = 2; i < x->ndim; i++) shape[i - 1] = x->shape[i];
            shape_text(shape, x->ndim - 1, wanted, sizeof wanted);
            shape_text(target->shape, target->ndim, got, sizeof got);
            return status_fail(SIMT_ERR_RUNTIME, "Expected target size %s, got %s", wanted, got);
        }
    if (target->dt != DT_I64 && target->dt != DT_U8)
        return status_fail(SIMT_ERR_RUNTIME, "expected target dtype to be Long or Byte, but got %s",
                           dtype_torch_name(target->dt));
    return SIMT_OK;
}

static tensor *weights_along(work *w, tensor *weight, int axis, int ndim) {
    if (!weight) return NULL;
    int64_t shape[ARRAY_MAX_NDIM];
    for (int i = 0; i < ndim; i++) shape[i] = i == axis ? weight->a->size : 1;
    return w_reshape(w, weight, shape, ndim);
}

simt_status grad_nll_loss(tensor *logp, tensor *target, tensor *weight, int64_t ignore,
                          grad_reduction reduction, tensor **out) {
    const array *x = logp->a;
    SIMT_TRY(check_shapes(x, target->a));
    int axis = x->ndim == 1 ? 0 : 1;
    int64_t classes = x->shape[axis], used;
    if (weight && (weight->a->ndim != 1 || weight->a->size != classes)) {
        char shape[300];
        shape_text(weight->a->shape, weight->a->ndim, shape, sizeof shape);
        return status_fail(SIMT_ERR_RUNTIME,
                           "weight tensor should be defined either for all %lld classes or no "
                           "classes but got weight "
                           "tensor of shape: %s",
                           (long long)classes, shape);
    }
    SIMT_TRY(check_targets(target->a, classes, ignore, &used));
    grad_node *n;
    SIMT_TRY(grad_node_new("NllLossBackward0", rule_nll, &logp, 1, 3, 2, &n));
    bool was = grad_enabled;
    grad_enabled = false;
    work w = {0};
    uint32_t along = 1u << axis, all = (1u << (x->ndim)) - 1;
    tensor *t = w_unsqueeze(&w, target, axis);
    tensor *hit = w_binary(&w, OP_EQUAL, classes_along(&w, target->a, classes, axis, x->ndim), t);
    if (ignore >= 0 && ignore < classes)
        hit = w_binary(&w, OP_LOGICAL_AND, hit, compare(&w, OP_NOT_EQUAL, t, ignore));
    tensor *weights = weights_along(&w, weight, axis, x->ndim), *total = NULL;
    tensor *minus = w_unary(&w, OP_NEGATIVE, logp);
    tensor *picked = w_where(&w, hit, weights ? w_mul(&w, minus, weights) : minus, NULL);
    double factor = 1;
    tensor *r;
    if (reduction == LOSS_NONE)
        r = w_sum(&w, picked, along, false);
    else
        r = w_sum(&w, picked, all, false);
    if (reduction == LOSS_MEAN) {
        if (weights) {
            tensor *spread = w_expand(&w, weights, x->shape, x->ndim);
            total = w_sum(&w, w_where(&w, hit, spread, NULL), all, false);
            r = w_div(&w, r, total);
        } else {
            factor = 1 / (double)used; /* of none: NaN, as in PyTorch */
            r = used ? w_scale(&w, r, factor) : w_scale(&w, r, 0.0 / 0.0);
        }
    }
    *out = w_take(&w, r);
    grad_enabled = was;
    if (w.status == SIMT_OK && n) {
        n->params[0] = axis;
        n->params[1] = ignore;
        n->options[0] = factor;
        grad_save(n, 0, t);
        grad_save(n, 1, weights);
        grad_save(n, 2, total);
        grad_attach(*out, n, 0);
    } else
        grad_node_unref(n);
    return work_end(&w);
}

/* Class probabilities as targets: -sum(target * weight * logp). */
static simt_status soft_cross_entropy(tensor *logp, tensor *target, tensor *weight,
                                      grad_reduction reduction, double smoothing, tensor **out) {
    const array *x = logp->a;
    int axis = x->ndim == 1 ? 0 : 1;
    work w = {0};
    tensor *t = target;
    if (smoothing > 0)
        t = w_plus(&w, w_scale(&w, t, 1 - smoothing), smoothing / (double)x->shape[axis]);
    tensor *product = w_mul(&w, logp, t);
    if (weight) product = w_mul(&w, product, weights_along(&w, weight, axis, x->ndim));
    tensor *r;
    if (reduction == LOSS_NONE)
        r = w_scale(&w, w_sum(&w, product, 1u << axis, false), -1);
    else {
        double batch = 1;
        for (int i = 0; i < x->ndim; i++)
            if (i != axis) batch *= (double)x->shape[i];
        r = w_scale(&w, w_sum(&w, product, (1u << x->ndim) - 1, false),
                    reduction == LOSS_MEAN ? -1 / batch : -1);
    }
    *out = w_take(&w, r);
    return work_end(&w);
}

/* The part of label smoothing: -sum over classes of weight * logp, for targets that are not
 * ignored. */
static tensor *smooth_part(work *w, tensor *logp, tensor *target, tensor *weight, int64_t ignore,
                           grad_reduction reduction) {
    const array *x = logp->a;
    int axis = x->ndim == 1 ? 0 : 1;
    tensor *weights = weights_along(w, weight, axis, x->ndim);
    tensor *s =
        w_scale(w, w_sum(w, weights ? w_mul(w, logp, weights) : logp, 1u << axis, false), -1);
    tensor *valid = compare(w, OP_NOT_EQUAL, target, ignore);
    s = w_where(w, valid, s, NULL);
    if (reduction == LOSS_NONE || w->status != SIMT_OK) return s;
    uint32_t all = (1u << target->a->ndim) - 1;
    s = w_sum(w, s, all, false);
    if (reduction == LOSS_SUM) return s;
    tensor *total = valid;
    if (weight) { /* the sum of the targets' weights */
        tensor *t = w_unsqueeze(w, target, axis);
        tensor *hit =
            w_binary(w, OP_EQUAL, classes_along(w, target->a, x->shape[axis], axis, x->ndim), t);
        hit = w_binary(w, OP_LOGICAL_AND, hit, compare(w, OP_NOT_EQUAL, t, ignore));
        total = w_where(w, hit, w_expand(w, weights, x->shape, x->ndim), NULL);
        all = (1u << x->ndim) - 1;
    }
    return w_div(w, s, w_sum(w, w_cast(w, total, x->dt), all, false));
}

simt_status grad_cross_entropy(tensor *x, tensor *target, tensor *weight, int64_t ignore,
                               grad_reduction reduction, double smoothing, tensor **out) {
    const array *a = x->a, *t = target->a;
    int axis = a->ndim == 1 ? 0 : 1;
    if (a->ndim == 0)
        return status_fail(SIMT_ERR_RUNTIME, "cross_entropy: the input has no class dimension");
    bool soft =
        t->ndim == a->ndim && memcmp(t->shape, a->shape, sizeof(int64_t) * (size_t)a->ndim) == 0;
    if (!soft) SIMT_TRY(check_shapes(a, t));
    if (soft && !dtype_is_float(t->dt))
        return status_fail(
            SIMT_ERR_RUNTIME,
            "Expected floating point type for target with class probabilities, got %s",
            dtype_torch_name(t->dt));
    work w = {0};
    tensor *logp = NULL, *r = NULL;
    simt_status s = grad_softmax(x, axis, true, &logp);
    logp = work_own(&w, s, logp);
    if (w.status != SIMT_OK) return work_end(&w);
    s = soft ? soft_cross_entropy(logp, target, weight, reduction, smoothing, &r)
             : grad_nll_loss(logp, target, weight, ignore, reduction, &r);
    r = work_own(&w, s, r);
    if (!soft && smoothing > 0) {
        tensor *part = smooth_part(&w, logp, target, weight, ignore, reduction);
        double share = smoothing / (double)a->shape[axis];
        r = w_add(&w, w_scale(&w, r, 1 - smoothing), w_scale(&w, part, share));
    }
    *out = w_take(&w, r);
    return work_end(&w);
}

/* options[0]: the factor of the gradient */
static simt_status rule_mse(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *difference = w_sub(&w, w_saved(&w, n, 0), w_saved(&w, n, 1));
    tensor *g = w_scale(&w, w_mul(&w, difference, out[0]), 2 * n->options[0]);
    if (grad_wants(n, 0)) in[0] = w_take(&w, g);
    if (grad_wants(n, 1)) in[1] = w_take(&w, w_unary(&w, OP_NEGATIVE, g));
    return work_end(&w);
}

simt_status grad_mse_loss(tensor *x, tensor *target, grad_reduction reduction, tensor **out) {
    tensor *inputs[2] = {x, target};
    grad_node *n;
    SIMT_TRY(grad_node_new("MseLossBackward0", rule_mse, inputs, 2, 2, 0, &n));
    grad_save(n, 0, x);
    grad_save(n, 1, target);
    bool was = grad_enabled;
    grad_enabled = false;
    work w = {0};
    tensor *d = w_sub(&w, x, target), *r = w_mul(&w, d, d);
    uint32_t all = r ? (1u << r->a->ndim) - 1 : 0;
    double factor = reduction == LOSS_MEAN && r && r->a->size ? 1 / (double)r->a->size : 1;
    if (reduction == LOSS_MEAN) r = w_mean(&w, r, all, false);
    if (reduction == LOSS_SUM) r = w_sum(&w, r, all, false);
    *out = w_take(&w, r);
    grad_enabled = was;
    if (w.status == SIMT_OK && n) {
        n->options[0] = factor;
        grad_attach(*out, n, 0);
    } else
        grad_node_unref(n);
    return work_end(&w);
}
