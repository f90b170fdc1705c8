/* Reductions, softmax, cumulative sums with their gradients. */
#include <math.h>
#include <string.h>

#include "array/meta.h"
#include "grad/work.h"

/* params[0]: mask, params[1]: keepdims. g with the reduced axes back as ones. */
static tensor *with_axes(work *w, grad_node *n, tensor *g) {
    const grad_edge *e = &n->edges[0];
    int64_t shape[ARRAY_MAX_NDIM];
    for (int i = 0; i < e->ndim; i++) shape[i] = n->params[0] >> i & 1 ? 1 : e->shape[i];
    return n->params[1] ? g : w_reshape(w, g, shape, e->ndim);
}

static int64_t reduced_count(const grad_node *n) {
    int64_t count = 1;
    for (int i = 0; i < n->edges[0].ndim; i++)
        if (n->params[0] >> i & 1) count *= n->edges[0].shape[i];
    return count;
}

static simt_status rule_sum(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    in[0] = w_take(&w, w_expand(&w, with_axes(&w, n, out[0]), n->edges[0].shape, n->edges[0].ndim));
    return work_end(&w);
}

static simt_status rule_mean(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *g = w_scale(&w, with_axes(&w, n, out[0]), 1.0 / (double)reduced_count(n));
    in[0] = w_take(&w, w_expand(&w, g, n->edges[0].shape, n->edges[0].ndim));
    return work_end(&w);
}

/* y / x where no factor is zero; with zeros the exact product of the others costs a pass per
 * element
 * only along the reduced axes, which are laid out last. */
static simt_status rule_prod(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *x = w_saved(&w, n, 0), *y = w_saved(&w, n, 1);
    uint32_t mask = (uint32_t)n->params[0];
    tensor *zero = NULL;
    tensor_operand compare[2] = {{x}, {NULL, {.kind = 'I', .i = 0}}};
    if (w.status == SIMT_OK) {
        simt_status s = grad_elementwise(OP_EQUAL, compare, 2, NULL, &zero);
        zero = work_own(&w, s, zero);
    }
    tensor *ones = w.status == SIMT_OK ? w_plus(&w, w_scale(&w, x, 0), 1) : NULL;
    tensor *safe = NULL;
    if (w.status == SIMT_OK) {
        tensor_operand pick[3] = {{zero}, {ones}, {x}};
        simt_status s = grad_elementwise(OP_WHERE, pick, 3, NULL, &safe);
        safe = work_own(&w, s, safe);
    }
    tensor *zeros = w_sum(&w, w_cast(&w, zero, x ? x->a->dt : DT_F32), mask, true);
    tensor *others = NULL; /* the product of the factors that are not zero */
    if (w.status == SIMT_OK) {
        simt_status s = grad_reduce(OP_PROD, safe, mask, true, -1, &others);
        others = work_own(&w, s, others);
    }
    (void)y;
    /* no zero: others / x; one zero: others at that element, 0 elsewhere; more: 0 */
    tensor *none = NULL, *one = NULL;
    if (w.status == SIMT_OK) {
        compare[0].t = zeros;
        simt_status s = grad_elementwise(OP_EQUAL, compare, 2, NULL, &none);
        none = work_own(&w, s, none);
        compare[1].s.i = 1;
        s = grad_elementwise(OP_EQUAL, compare, 2, NULL, &one);
        one = work_own(&w, s, one);
    }
    tensor *share = w_add(&w, w_where(&w, none, w_div(&w, others, safe), NULL),
                          w_where(&w, w_mul(&w, one, zero), others, NULL));
    in[0] = w_take(&w, w_mul(&w, with_axes(&w, n, out[0]), share));
    return work_end(&w);
}

/* max, min over axes: equal extrema share g (PyTorch's amax and max()). */
static simt_status rule_extremum(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *x = w_saved(&w, n, 0), *y = w_saved(&w, n, 1);
    tensor *hit = w_binary(&w, OP_EQUAL, x, y ? with_axes(&w, n, y) : NULL);
    tensor *count = w_sum(&w, w_cast(&w, hit, x ? x->a->dt : DT_F32), (uint32_t)n->params[0], true);
    tensor *share = w_div(&w, with_axes(&w, n, out[0]), count);
    in[0] = w_take(&w, w_where(&w, hit, share, NULL));
    return work_end(&w);
}

static void keep_axes(grad_node *n, uint32_t mask, bool keepdims) {
    if (!n) return;
    n->params[0] = mask;
    n->params[1] = keepdims;
}

#define NO_RULE                                            NULL
#define RULE(name)                                         rule_##name
#define RED(id, name, dtypes, neutral, combine, grad, ...) [OP_##id] = grad,
static const grad_rule rules[ARRAY_OP_COUNT] = {
#include "graph/array_ops.def"
};

simt_status grad_reduce(array_op op, tensor *t, uint32_t mask, bool keepdims, int dt,
                        tensor **out) {
    reduce_options o = {.axes_mask = mask,
                        .keepdims = keepdims,
                        .face = FACE_TORCH,
                        .default_float = grad_default_float,
                        .has_dtype = dt >= 0};
    if (dt >= 0) o.dt = (dtype)dt;
    array *a;
    SIMT_TRY(array_reduce(op, t->a, &o, &a));
    grad_node *n = NULL;
    bool whole = !keepdims && mask == (1u << t->a->ndim) - 1;
    simt_status s = SIMT_OK;
    const array_op_info *row = &array_op_table[op];
    if (dtype_is_float(a->dt) && rules[op])
        s = grad_node_new(whole ? row->node : row->node_dim, rules[op], &t, 1, 2, 2, &n);
    if (s != SIMT_OK) {
        array_unref(a);
        return s;
    }
    keep_axes(n, mask, keepdims);
    SIMT_TRY(grad_finish(a, n, out));
    if (n && op != OP_SUM) {
        grad_save(n, 0, t);
        grad_save_output(n, 1, *out, 0);
    }
    return SIMT_OK;
}

simt_status grad_mean(tensor *t, uint32_t mask, bool keepdims, int dt, tensor **out) {
    reduce_options o = {.axes_mask = mask,
                        .keepdims = keepdims,
                        .face = FACE_TORCH,
                        .default_float = grad_default_float,
                        .has_dtype = dt >= 0};
    if (dt >= 0) o.dt = (dtype)dt;
    bool whole = !keepdims && mask == (1u << t->a->ndim) - 1;
    grad_node *n;
    SIMT_TRY(grad_node_new(whole ? "MeanBackward0" : "MeanBackward1", rule_mean, &t, 1, 0, 2, &n));
    keep_axes(n, mask, keepdims);
    array *a;
    simt_status s = array_mean(t->a, &o, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}

/* options[0]: ddof, options[1]: 1 for std */
static simt_status rule_var(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *x = w_saved(&w, n, 0);
    tensor *g = with_axes(&w, n, out[0]);
    double count = (double)reduced_count(n) - n->options[0];
    uint32_t mask = (uint32_t)n->params[0];
    tensor *centred = w_sub(&w, x, w_mean(&w, x, mask, true));
    centred = w_sub(&w, centred, w_mean(&w, centred, mask, true)); /* the mean was rounded */
    if (n->options[1] != 0) {
        tensor *y = w_saved(&w, n, 1);
        g = w_scale(&w, w_div(&w, g, w.status == SIMT_OK ? with_axes(&w, n, y) : NULL), 1 / count);
        tensor_operand test[2] = {{w.status == SIMT_OK ? with_axes(&w, n, y) : NULL},
                                  {NULL, {.kind = 'I'}}};
        tensor *nonzero = NULL;
        if (w.status == SIMT_OK) {
            simt_status s = grad_elementwise(OP_NOT_EQUAL, test, 2, NULL, &nonzero);
            g = w_where(&w, work_own(&w, s, nonzero), g, NULL);
        }
    } else {
        g = w_scale(&w, g, 2 / count);
    }
    in[0] = w_take(&w, w_mul(&w, g, centred));
    return work_end(&w);
}

simt_status grad_var(tensor *t, uint32_t mask, bool keepdims, double ddof, bool root,
                     tensor **out) {
    reduce_options o = {.axes_mask = mask,
                        .keepdims = keepdims,
                        .face = FACE_TORCH,
                        .ddof = ddof,
                        .default_float = grad_default_float};
    grad_node *n;
    SIMT_TRY(grad_node_new(root ? "StdBackward0" : "VarBackward0", rule_var, &t, 1, 2, 2, &n));
    keep_axes(n, mask, keepdims);
    array *a;
    simt_status s = array_var(t->a, &o, root, &a);
    if (s != SIMT_OK) {
        grad_node_unref(n);
        return s;
    }
    SIMT_TRY(grad_finish(a, n, out));
    if (!n) return SIMT_OK;
    n->options[0] = ddof;
    n->options[1] = root;
    grad_save(n, 0, t);
    if (root) grad_save_output(n, 1, *out, 0);
    return SIMT_OK;
}

/* ---- max and min along one axis, with positions ---- */

tensor *w_count_along(work *w, const array *like, dtype dt, int64_t count, int axis, int ndim) {
    if (w->status != SIMT_OK) return NULL;
    const scalar zero = {.kind = 'I'}, one = {.kind = 'I', .i = 1};
    array *a = NULL;
    simt_status s = array_is_meta(like) ? array_meta(dt, &count, 1, &a)
                                        : array_arange(dt, zero, one, count, &a);
    tensor *t = work_wrap(w, s, a);
    int64_t shape[ARRAY_MAX_NDIM];
    for (int i = 0; i < ndim; i++) shape[i] = i == axis ? count : 1;
    return w_reshape(w, t, shape, ndim);
}

static simt_status rule_select_extremum(grad_node *n, tensor *const *out, tensor **in) {
    if (!out[0]) return SIMT_OK;
    work w = {0};
    const grad_edge *e = &n->edges[0];
    int axis = __builtin_ctz((unsigned)n->params[0]);
    tensor *positions = w_saved(&w, n, 0);
    tensor *count =
        positions ? w_count_along(&w, positions->a, DT_I64, e->shape[axis], axis, e->ndim) : NULL;
    tensor *hit = w_binary(&w, OP_EQUAL, count, positions ? with_axes(&w, n, positions) : NULL);
    in[0] = w_take(&w, w_where(&w, hit, with_axes(&w, n, out[0]), NULL));
    return work_end(&w);
}

simt_status grad_extremum(array_op op, tensor *t, int axis, bool keepdims, tensor **values,
                          tensor **indices) {
    if (t->a->ndim == 0) { /* itself, at position 0 */
        SIMT_TRY(grad_clone(t, values));
        array *zero;
        simt_status s = array_full_of(t->a, DT_I64, NULL, 0, 0, &zero);
        if (s == SIMT_OK) s = grad_finish(zero, NULL, indices);
        if (s != SIMT_OK) tensor_unref(*values);
        return s;
    }
    reduce_options o = {.axes_mask = 1u << axis,
                        .keepdims = keepdims,
                        .face = FACE_TORCH,
                        .default_float = grad_default_float};
    array *value = NULL, *index = NULL;
    grad_node *n = NULL;
    simt_status s = array_reduce(op, t->a, &o, &value);
    if (s == SIMT_OK) s = array_reduce(op == OP_MAX ? OP_ARGMAX : OP_ARGMIN, t->a, &o, &index);
    if (s == SIMT_OK && dtype_is_float(t->a->dt))
        s = grad_node_new(op == OP_MAX ? "MaxBackward0" : "MinBackward0", rule_select_extremum, &t,
                          1, 1, 2, &n);
    if (s != SIMT_OK) {
        array_unref(value);
        array_unref(index);
        return s;
    }
    keep_axes(n, 1u << axis, keepdims);
    *values = tensor_new(value);
    *indices = tensor_new(index);
    if (!*values || !*indices) {
        tensor_unref(*values);
        tensor_unref(*indices);
        grad_node_unref(n);
        return SIMT_ERR_MEMORY;
    }
    grad_save(n, 0, *indices);
    grad_attach(*values, n, 0);
    return SIMT_OK;
}

/* ---- softmax ---- */

/* params[0]: axis, params[1]: logarithm */
static simt_status rule_softmax(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    uint32_t mask = n->edges[0].ndim ? 1u << n->params[0] : 0;
    tensor *g = out[0], *y = w_saved(&w, n, 0), *r;
    if (n->params[1])
        r = w_sub(&w, g, w_mul(&w, w_unary(&w, OP_EXP, y), w_sum(&w, g, mask, true)));
    else {
        tensor *gy = w_mul(&w, g, y);
        r = w_sub(&w, gy, w_mul(&w, y, w_sum(&w, gy, mask, true)));
    }
    in[0] = w_take(&w, r);
    return work_end(&w);
}

simt_status grad_softmax(tensor *t, int axis, bool logarithm, tensor **out) {
    if (!dtype_is_float(t->a->dt))
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED,
                           "\"%s_lastdim_kernel_impl\" not implemented for '%s'",
                           logarithm ? "log_softmax" : "softmax", dtype_torch_name(t->a->dt));
    if (t->a->ndim == 0) { /* of one number */
        work w = {0};
        *out = w_take(&w, w_plus(&w, w_scale(&w, t, 0), logarithm ? 0 : 1));
        return work_end(&w);
    }
    grad_node *n;
    SIMT_TRY(grad_node_new(logarithm ? "LogSoftmaxBackward0" : "SoftmaxBackward0", rule_softmax, &t,
                           1, 1, 2, &n));
    if (n) {
        n->params[0] = axis;
        n->params[1] = logarithm;
    }
    array *a;
    simt_status s = array_softmax(t->a, axis, logarithm, &a);
    if (s != SIMT_OK) {
        grad_node_unref(n);
        return s;
    }
    SIMT_TRY(grad_finish(a, n, out));
    grad_save_output(n, 0, *out, 0);
    return SIMT_OK;
}

static simt_status rule_logsumexp(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *x = w_saved(&w, n, 0), *y = w_saved(&w, n, 1);
    tensor *share = w_unary(&w, OP_EXP, w_sub(&w, x, y ? with_axes(&w, n, y) : NULL));
    in[0] = w_take(&w, w_mul(&w, with_axes(&w, n, out[0]), share));
    return work_end(&w);
}

simt_status grad_logsumexp(tensor *t, uint32_t mask, bool keepdims, tensor **out) {
    grad_node *n;
    SIMT_TRY(grad_node_new("LogsumexpBackward0", rule_logsumexp, &t, 1, 2, 2, &n));
    keep_axes(n, mask, keepdims);
    bool was = grad_enabled;
    grad_enabled = false;
    work w = {0};
    tensor *top = NULL;
    simt_status s = grad_reduce(OP_MAX, t, mask, true, -1, &top);
    top = work_own(&w, s, top);
    tensor *finite = w_unary(&w, OP_ISFINITE, top);
    top = w_where(&w, finite, top, NULL);
    tensor *total = w_sum(&w, w_unary(&w, OP_EXP, w_sub(&w, t, top)), mask, true);
    tensor *r = w_add(&w, w_unary(&w, OP_LOG, total), top);
    if (!keepdims && w.status == SIMT_OK) {
        tensor *flat;
        s = grad_squeeze(r, mask, &flat);
        r = work_own(&w, s, flat);
    }
    tensor *plain = w_take(&w, r);
    grad_enabled = was;
    s = work_end(&w);
    if (s != SIMT_OK) {
        grad_node_unref(n);
        return s;
    }
    *out = plain;
    grad_save(n, 0, t);
    grad_save_output(n, 1, plain, 0);
    grad_attach(plain, n, 0);
    return SIMT_OK;
}

/* ---- norms ---- */

static tensor *compared(work *w, array_op op, tensor *a, double with) {
    WORK_DO(w, grad_binary_scalar(op, a, with, &work_t));
}

static tensor *power(work *w, tensor *a, double exponent) {
    WORK_DO(w, grad_binary_scalar(OP_POWER, a, exponent, &work_t));
}

/* g * x / y for 2; in general g * sign(x) * |x|^(p-1) / y^(p-1). Where x or y is 0 the subgradient is
 * 0, as PyTorch's is. options[0]: p */
static simt_status rule_norm(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    double p = n->options[0];
    tensor *x = w_saved(&w, n, 0), *y = w_saved(&w, n, 1), *g = with_axes(&w, n, out[0]);
    y = y ? with_axes(&w, n, y) : NULL;
    tensor *made;
    if (p == 2) {
        made = w_mul(&w, g, w_where(&w, compared(&w, OP_NOT_EQUAL, y, 0), w_div(&w, x, y), NULL));
    } else if (p == 0) {
        made = w_scale(&w, x, 0);
    } else if (p == 1) {
        made = w_mul(&w, g, w_unary(&w, OP_SIGN, x));
    } else {
        tensor *slope = power(&w, w_unary(&w, OP_ABSOLUTE, x), p - 1);
        if (p < 1) slope = w_where(&w, compared(&w, OP_NOT_EQUAL, x, 0), slope, NULL);
        slope = w_mul(&w, w_unary(&w, OP_SIGN, x), slope);
        tensor *share = p < 1 ? w_mul(&w, g, power(&w, y, 1 - p))
                              : w_where(&w, compared(&w, OP_NOT_EQUAL, y, 0),
                                        w_div(&w, g, power(&w, y, p - 1)), NULL);
        made = w_mul(&w, slope, share);
    }
    in[0] = w_take(&w, made);
    return work_end(&w);
}

/* The value, without a node. */
static tensor *norm_value(work *w, tensor *t, double p, uint32_t mask, bool keepdims) {
    if (p == 2) return w_unary(w, OP_SQRT, w_sum(w, w_unary(w, OP_SQUARE, t), mask, keepdims));
    if (p == 0)
        return w_sum(w, w_cast(w, compared(w, OP_NOT_EQUAL, t, 0), t->a->dt), mask, keepdims);
    tensor *size = w_unary(w, OP_ABSOLUTE, t);
    if (p == 1) return w_sum(w, size, mask, keepdims);
    return power(w, w_sum(w, power(w, size, p), mask, keepdims), 1 / p);
}

simt_status grad_norm(tensor *t, double p, uint32_t mask, bool keepdims, tensor **out) {
    work w = {0};
    if (isinf(p)) { /* equal extrema share the gradient */
        tensor *size = w_unary(&w, OP_ABSOLUTE, t), *most = NULL;
        if (w.status == SIMT_OK)
            w.status = grad_reduce(p > 0 ? OP_MAX : OP_MIN, size, mask, keepdims, -1, &most);
        *out = most;
        return work_end(&w);
    }
    grad_node *n = NULL;
    if (dtype_is_float(t->a->dt))
        SIMT_TRY(grad_node_new("LinalgVectorNormBackward0", rule_norm, &t, 1, 2, 2, &n));
    bool was = grad_enabled;
    grad_enabled = false;
    tensor *value = norm_value(&w, t, p, mask, keepdims);
    grad_enabled = was;
    value = w_take(&w, value);
    simt_status s = work_end(&w);
    if (s != SIMT_OK) {
        grad_node_unref(n);
        return s;
    }
    if (n) {
        n->options[0] = p;
        grad_save(n, 0, t);
        keep_axes(n, mask, keepdims);
    }
    array *a = array_ref(value->a);
    tensor_unref(value);
    SIMT_TRY(grad_finish(a, n, out));
    if (n) grad_save_output(n, 1, *out, 0);
    return SIMT_OK;
}

simt_status grad_check_unit(tensor *t, tensor **out) {
    array *a;
    SIMT_TRY(array_check_unit(t->a, &a));
    return grad_finish(a, NULL, out);
}

/* params[0]: axis, params[1]: backwards. Each element goes into the sums after it (before it). */
static simt_status rule_cumsum(grad_node *n, tensor *const *out, tensor **in) {
    if (!n->edges[0].ndim) return (in[0] = tensor_ref(out[0])), SIMT_OK;
    return grad_cumsum(out[0], (int)n->params[0], !n->params[1], -1, &in[0]);
}

simt_status grad_cumsum(tensor *t, int axis, bool backwards, int dt, tensor **out) {
    if (dt >= 0 && (dtype)dt != t->a->dt) {
        tensor *cast;
        SIMT_TRY(grad_cast(t, (dtype)dt, &cast));
        simt_status s = grad_cumsum(cast, axis, backwards, -1, out);
        tensor_unref(cast);
        return s;
    }
    if (t->a->ndim == 0) return grad_clone(t, out);
    grad_node *n = NULL;
    if (dtype_is_float(t->a->dt))
        SIMT_TRY(grad_node_new("CumsumBackward0", rule_cumsum, &t, 1, 0, 2, &n));
    if (n) {
        n->params[0] = axis;
        n->params[1] = backwards;
    }
    array *a;
    simt_status s = array_cumsum(t->a, axis, backwards, FACE_TORCH, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}
