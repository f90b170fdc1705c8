/* Convolution, pooling, normalisation with their gradients. */
#include <string.h>

#include "grad/work.h"

/* ---- convolution: saved x, weight; params: the options ---- */

static void put_conv(int64_t *p, const conv_options *o) {
    const int64_t values[7] = {o->stride[0],   o->stride[1],   o->padding[0], o->padding[1],
                               o->dilation[0], o->dilation[1], o->groups};
    memcpy(p, values, sizeof values);
}

static conv_options get_conv(const int64_t *p) {
    return (conv_options){{p[0], p[1]}, {p[2], p[3]}, {p[4], p[5]}, p[6]};
}

static simt_status wrap(simt_status s, array *a, tensor **out) {
    return s == SIMT_OK ? grad_finish(a, NULL, out) : s;
}

static simt_status rule_conv2d(grad_node *n, tensor *const *out, tensor **in) {
    if (grad_enabled)
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED,
                           "second derivatives of conv2d: not in simt yet");
    work w = {0};
    conv_options o = get_conv(n->params);
    array *a = NULL;
    simt_status s = SIMT_OK;
    tensor *g = NULL;
    s = grad_contiguous(out[0], &g);
    g = work_own(&w, s, g);
    if (w.status == SIMT_OK && grad_wants(n, 0)) {
        tensor *weight = w_saved(&w, n, 1);
        if (weight) {
            s = array_conv2d_input(g->a, weight->a, n->edges[0].shape, &o, &a);
            w.status = wrap(s, a, &in[0]);
        }
    }
    if (w.status == SIMT_OK && grad_wants(n, 1)) {
        tensor *x = w_saved(&w, n, 0);
        if (x) {
            s = array_conv2d_weight(g->a, x->a, n->edges[1].shape, &o, &a);
            w.status = wrap(s, a, &in[1]);
        }
    }
    if (n->nin > 2 && grad_wants(n, 2)) in[2] = w_take(&w, w_sum(&w, g, 1u | 4u | 8u, false));
    return work_end(&w);
}

/* Sizes of a window fit 32 bits, as PyTorch asks: no sum or product of two overflows then. */
static simt_status check_window(const char *name, int64_t kernel, int64_t stride, int64_t padding,
                                int64_t dilation) {
    const int64_t sizes[4] = {kernel, stride, padding, dilation};
    static const char *const names[4] = {"kernel_size", "stride", "padding", "dilation"};
    for (int i = 0; i < 4; i++)
        if (sizes[i] > INT32_MAX)
            return status_fail(SIMT_ERR_RUNTIME, "%s: %s=%lld is out of range", name, names[i],
                               (long long)sizes[i]);
    return SIMT_OK;
}

static simt_status check_conv(const array *x, const array *m, const array *bias,
                              const conv_options *o) {
    char have[300], weight[300];
    shape_text(x->shape, x->ndim, have, sizeof have);
    shape_text(m->shape, m->ndim, weight, sizeof weight);
    if (o->groups <= 0)
        return status_fail(SIMT_ERR_RUNTIME, "non-positive groups is not supported");
    if (m->shape[0] < o->groups)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Given groups=%lld, expected weight to be at least %lld at dimension 0, "
                           "but got weight of size %s instead",
                           (long long)o->groups, (long long)o->groups, weight);
    if (o->groups > INT32_MAX || x->shape[1] != m->shape[1] * o->groups)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Given groups=%lld, weight of size %s, expected input%s to have %lld "
                           "channels, but got %lld "
                           "channels instead",
                           (long long)o->groups, weight, have, (long long)(m->shape[1] * o->groups),
                           (long long)x->shape[1]);
    if (x->dt != m->dt)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Input type (%s) and weight type (%s) should be the same",
                           dtype_torch_name(x->dt), dtype_torch_name(m->dt));
    if (bias && bias->dt != m->dt)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Input type (%s) and bias type (%s) should be the same",
                           dtype_torch_name(x->dt), dtype_torch_name(bias->dt));
    int64_t padded[2], kernel[2];
    for (int i = 0; i < 2; i++) {
        if (o->stride[i] <= 0)
            return status_fail(SIMT_ERR_RUNTIME, "non-positive stride is not supported");
        if (o->dilation[i] <= 0)
            return status_fail(SIMT_ERR_RUNTIME,
                               "dilation should be greater than zero, but got [%lld, %lld]",
                               (long long)o->dilation[0], (long long)o->dilation[1]);
        if (m->shape[2 + i] <= 0)
            return status_fail(SIMT_ERR_RUNTIME,
                               "kernel size should be greater than zero, but got kernel_height: "
                               "%lld kernel_width: %lld",
                               (long long)m->shape[2], (long long)m->shape[3]);
        SIMT_TRY(
            check_window("conv2d", m->shape[2 + i], o->stride[i], o->padding[i], o->dilation[i]));
        padded[i] = x->shape[2 + i] + 2 * o->padding[i];
        kernel[i] = o->dilation[i] * (m->shape[2 + i] - 1) + 1;
    }
    if (kernel[0] > padded[0] || kernel[1] > padded[1])
        return status_fail(SIMT_ERR_RUNTIME,
                           "Calculated padded input size per channel: (%lld x %lld). Kernel size: "
                           "(%lld x %lld). Kernel "
                           "size can't be greater than actual input size",
                           (long long)padded[0], (long long)padded[1], (long long)kernel[0],
                           (long long)kernel[1]);
    return SIMT_OK;
}

simt_status grad_conv2d(tensor *x, tensor *weight, tensor *bias, const conv_options *o,
                        tensor **out) {
    if (weight->a->ndim != 4)
        return status_fail(SIMT_ERR_RUNTIME, "conv2d: expected a weight of 4 dimensions, got %d",
                           weight->a->ndim);
    if (x->a->ndim != 3 && x->a->ndim != 4) {
        char have[300];
        shape_text(x->a->shape, x->a->ndim, have, sizeof have);
        return status_fail(
            SIMT_ERR_RUNTIME,
            "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: %s",
            have);
    }
    work w = {0};
    tensor *r = NULL;
    if (x->a->ndim == 3) {
        tensor *batch = w_unsqueeze(&w, x, 0);
        simt_status s = w.status == SIMT_OK ? grad_conv2d(batch, weight, bias, o, &r) : w.status;
        r = work_own(&w, s, r);
        tensor *one = NULL;
        if (w.status == SIMT_OK) {
            s = grad_squeeze(r, 1, &one);
            one = work_own(&w, s, one);
        }
        *out = w_take(&w, one);
        return work_end(&w);
    }
    SIMT_TRY(check_conv(x->a, weight->a, bias ? bias->a : NULL, o));
    tensor *inputs[3] = {x, weight, bias};
    grad_node *n;
    SIMT_TRY(grad_node_new("ConvolutionBackward0", rule_conv2d, inputs, bias ? 3 : 2, 2, 7, &n));
    if (n) {
        put_conv(n->params, o);
        if (grad_wants(n, 1)) grad_save(n, 0, x);
        if (grad_wants(n, 0)) grad_save(n, 1, weight);
    }
    array *a;
    simt_status s = array_conv2d(x->a, weight->a, bias ? bias->a : NULL, o, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}

/* ---- pooling ---- */

static void put_pool(int64_t *p, const pool_options *o) {
    const int64_t values[10] = {o->kernel[0],  o->kernel[1],        o->stride[0],   o->stride[1],
                                o->padding[0], o->padding[1],       o->dilation[0], o->dilation[1],
                                o->ceil_mode,  o->count_include_pad};
    memcpy(p, values, sizeof values);
}

static pool_options get_pool(const int64_t *p) {
    return (pool_options){{p[0], p[1]}, {p[2], p[3]}, {p[4], p[5]},
                          {p[6], p[7]}, p[8] != 0,    p[9] != 0};
}

static simt_status rule_pool(grad_node *n, tensor *const *out, tensor **in, bool most) {
    if (!out[0]) return SIMT_OK;
    if (grad_enabled)
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED,
                           "second derivatives of pooling: not in simt yet");
    work w = {0};
    pool_options o = get_pool(n->params);
    tensor *g = NULL;
    simt_status s = grad_contiguous(out[0], &g);
    g = work_own(&w, s, g);
    tensor *positions = most ? w_saved(&w, n, 0) : NULL;
    if (w.status == SIMT_OK) {
        array *a = NULL;
        s = most ? array_max_pool2d_back(g->a, positions->a, n->edges[0].shape, &o, &a)
                 : array_avg_pool2d_back(g->a, n->edges[0].shape, &o, &a);
        w.status = wrap(s, a, &in[0]);
    }
    return work_end(&w);
}

static simt_status rule_max_pool2d(grad_node *n, tensor *const *out, tensor **in) {
    return rule_pool(n, out, in, true);
}
static simt_status rule_avg_pool2d(grad_node *n, tensor *const *out, tensor **in) {
    return rule_pool(n, out, in, false);
}

static simt_status check_pool(const array *x, const pool_options *o, const char *name) {
    char have[300];
    shape_text(x->shape, x->ndim, have, sizeof have);
    if (x->ndim != 4 && x->ndim != 3)
        return status_fail(SIMT_ERR_RUNTIME,
                           "non-empty 3D or 4D (batch mode) tensor expected for input");
    for (int i = 0; i < 2; i++) {
        if (o->kernel[i] <= 0 || o->stride[i] <= 0 || o->dilation[i] <= 0)
            return status_fail(SIMT_ERR_RUNTIME,
                               "%s: kernel size, stride and dilation should be greater than zero, "
                               "but got %lld, %lld and %lld",
                               name, (long long)o->kernel[i], (long long)o->stride[i],
                               (long long)o->dilation[i]);
        if (o->padding[i] < 0)
            return status_fail(SIMT_ERR_RUNTIME, "pad must be non-negative, but got pad: %lld",
                               (long long)o->padding[i]);
        SIMT_TRY(check_window(name, o->kernel[i], o->stride[i], o->padding[i], o->dilation[i]));
        if (o->padding[i] > (o->dilation[i] * (o->kernel[i] - 1) + 1) / 2)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "pad should be at most half of effective kernel size, but got pad=%lld, "
                "kernel_size=%lld and dilation=%lld",
                (long long)o->padding[i], (long long)o->kernel[i], (long long)o->dilation[i]);
        int64_t size =
            x->shape[x->ndim - 2 + i] + 2 * o->padding[i] - o->dilation[i] * (o->kernel[i] - 1) - 1;
        if (size < 0)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "Given input size: (%lldx%lldx%lld). Calculated output size is too small",
                (long long)x->shape[x->ndim - 3], (long long)x->shape[x->ndim - 2],
                (long long)x->shape[x->ndim - 1]);
    }
    return SIMT_OK;
}

static simt_status pool(tensor *x, const pool_options *o, bool most, tensor **out,
                        tensor **positions) {
    SIMT_TRY(check_pool(x->a, o, most ? "max_pool2d" : "avg_pool2d"));
    grad_node *n;
    SIMT_TRY(grad_node_new(most ? "MaxPool2DWithIndicesBackward0" : "AvgPool2DBackward0",
                           most ? rule_max_pool2d : rule_avg_pool2d, &x, 1, 1, 10, &n));
    if (n) put_pool(n->params, o);
    array *a = NULL, *where = NULL;
    bool want = most && (n || positions);
    simt_status s =
        most ? array_max_pool2d(x->a, o, &a, want ? &where : NULL) : array_avg_pool2d(x->a, o, &a);
    tensor *index = NULL;
    if (s == SIMT_OK && where && !(index = tensor_new(where))) s = SIMT_ERR_MEMORY;
    if (s != SIMT_OK) {
        grad_node_unref(n);
        array_unref(a);
        return s;
    }
    grad_save(n, 0, index);
    if (positions)
        *positions = index;
    else
        tensor_unref(index);
    return grad_finish(a, n, out);
}

static simt_status pool_any(tensor *x, const pool_options *o, bool most, tensor **out,
                            tensor **positions) {
    if (x->a->ndim != 3) return pool(x, o, most, out, positions);
    work w = {0};
    tensor *r = NULL, *where = NULL, *one = NULL, *batch = w_unsqueeze(&w, x, 0);
    simt_status s = w.status;
    if (s == SIMT_OK) s = pool(batch, o, most, &r, positions ? &where : NULL);
    r = work_own(&w, s, r);
    if (where) where = work_own(&w, SIMT_OK, where);
    if (w.status == SIMT_OK) {
        s = grad_squeeze(r, 1, &one);
        one = work_own(&w, s, one);
        if (where && w.status == SIMT_OK) w.status = grad_squeeze(where, 1, positions);
    }
    *out = w_take(&w, one);
    return work_end(&w);
}

simt_status grad_max_pool2d(tensor *x, const pool_options *o, tensor **out, tensor **positions) {
    return pool_any(x, o, true, out, positions);
}
simt_status grad_avg_pool2d(tensor *x, const pool_options *o, tensor **out) {
    return pool_any(x, o, false, out, NULL);
}

/* ---- normalisation ---- */

/* Saved: x, mean, rstd (of the kept axes, as ones), weight in x's form. params: mask of the axes
 * that the
 * statistics run over, mask of the weight's axes; options[0]: 1 when the statistics depend on x. */
static simt_status rule_norm(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *g = out[0], *x = w_saved(&w, n, 0), *mean = w_saved(&w, n, 1),
           *rstd = w_saved(&w, n, 2);
    uint32_t axes = (uint32_t)n->params[0], others = (uint32_t)n->params[1];
    tensor *xhat = w_mul(&w, w_sub(&w, x, mean), rstd);
    if (grad_wants(n, 0)) {
        tensor *gw = n->saved[3].t ? w_mul(&w, g, w_saved(&w, n, 3)) : g;
        tensor *r = gw;
        if (n->options[0] != 0) {
            tensor *a = w_mean(&w, gw, axes, true),
                   *b = w_mean(&w, w_mul(&w, gw, xhat), axes, true);
            r = w_sub(&w, w_sub(&w, gw, a), w_mul(&w, xhat, b));
        }
        in[0] = w_take(&w, w_mul(&w, r, rstd));
    }
    for (int i = 1; i < n->nin; i++) {
        if (!grad_wants(n, i)) continue;
        tensor *s = w_sum(&w, n->options[i] == 1 ? w_mul(&w, g, xhat) : g, others, false);
        in[i] = w_take(&w, w_reshape(&w, s, n->edges[i].shape, n->edges[i].ndim));
    }
    return work_end(&w);
}

static simt_status move_average(tensor *running, tensor *now, double momentum, work *w) {
    if (!running || w->status != SIMT_OK) return w->status;
    tensor *flat = w_reshape(w, now, running->a->shape, running->a->ndim);
    if (!flat) return w->status;
    const double scalars[1] = {momentum};
    tensor_operand in[2] = {{running}, {flat}};
    grad_options o = {.scalars = scalars, .nscalars = 1};
    return w->status = grad_elementwise_inplace(OP_LERP, in, 2, &o);
}

/* weight and bias, each may be NULL, in the form that broadcasts against x. */
static simt_status normalise(tensor *x, tensor *mean, tensor *rstd, tensor *weight, tensor *bias,
                             const int64_t *form, uint32_t axes, uint32_t others, bool live,
                             const char *name, tensor **out) {
    tensor *inputs[3] = {x};
    double kinds[3] = {live};
    int nin = 1;
    if (weight) kinds[nin] = 1, inputs[nin++] = weight;
    if (bias) kinds[nin] = 2, inputs[nin++] = bias;
    grad_node *n;
    SIMT_TRY(grad_node_new(name, rule_norm, inputs, nin, 4, 2, &n));
    bool was = grad_enabled;
    grad_enabled = false;
    work w = {0};
    tensor *r = w_mul(&w, w_sub(&w, x, mean), rstd), *wide = NULL;
    if (weight) r = w_mul(&w, r, wide = w_reshape(&w, weight, form, x->a->ndim));
    if (bias) r = w_add(&w, r, w_reshape(&w, bias, form, x->a->ndim));
    *out = w_take(&w, r);
    grad_enabled = was;
    if (w.status == SIMT_OK && n) {
        n->params[0] = axes;
        n->params[1] = others;
        memcpy(n->options, kinds, sizeof kinds);
        grad_save(n, 0, x);
        grad_save(n, 1, mean);
        grad_save(n, 2, rstd);
        grad_save(n, 3, wide);
        /* r is new here, or (no weight, no bias) the product: attaching is safe */
        grad_attach(*out, n, 0);
    } else
        grad_node_unref(n);
    return work_end(&w);
}

static tensor *reciprocal_root(work *w, tensor *var, double eps) {
    return w_unary(w, OP_RECIPROCAL, w_unary(w, OP_SQRT, w_plus(w, var, eps)));
}

/* Mean and biased variance, which the tape does not see. */
static void moments(work *w, tensor *x, uint32_t axes, tensor **mean, tensor **var) {
    array *m = NULL, *v = NULL;
    *mean = *var = NULL;
    if (w->status != SIMT_OK) return;
    simt_status s = array_moments(x->a, axes, &m, &v);
    *mean = work_wrap(w, s, m);
    *var = work_wrap(w, s, v);
}

static simt_status check_channels(const char *what, const tensor *t, int64_t channels) {
    if (!t || t->a->size == channels) return SIMT_OK;
    return status_fail(SIMT_ERR_RUNTIME, "%s should contain %lld elements not %lld", what,
                       (long long)channels, (long long)t->a->size);
}

simt_status grad_batch_norm(tensor *x, tensor *weight, tensor *bias, tensor *running_mean,
                            tensor *running_var, bool training, double momentum, double eps,
                            tensor **out) {
    const array *a = x->a;
    if (a->ndim < 2)
        return status_fail(SIMT_ERR_RUNTIME, "batch_norm: expected 2 dimensions or more, got %d",
                           a->ndim);
    int64_t channels = a->shape[1], form[ARRAY_MAX_NDIM];
    SIMT_TRY(check_channels("running_mean", running_mean, channels));
    SIMT_TRY(check_channels("running_var", running_var, channels));
    SIMT_TRY(check_channels("weight", weight, channels));
    SIMT_TRY(check_channels("bias", bias, channels));
    for (int i = 0; i < a->ndim; i++) form[i] = i == 1 ? channels : 1;
    uint32_t axes = ((1u << a->ndim) - 1) & ~2u;
    bool was = grad_enabled;
    grad_enabled = false;
    work w = {0};
    tensor *mean, *var;
    if (training) {
        moments(&w, x, axes, &mean, &var);
        double count = channels ? (double)a->size / (double)channels : 1;
        move_average(running_mean, mean, momentum, &w);
        move_average(running_var, w_scale(&w, var, count > 1 ? count / (count - 1) : 1), momentum,
                     &w);
    } else {
        mean = w_reshape(&w, running_mean, form, a->ndim);
        var = w_reshape(&w, running_var, form, a->ndim);
    }
    tensor *rstd = reciprocal_root(&w, var, eps);
    grad_enabled = was;
    if (w.status == SIMT_OK)
        w.status = normalise(x, mean, rstd, weight, bias, form, axes, axes, training,
                             "NativeBatchNormBackward0", out);
    return work_end(&w);
}

simt_status grad_layer_norm(tensor *x, int naxes, tensor *weight, tensor *bias, double eps,
                            tensor **out) {
    const array *a = x->a;
    int lead = a->ndim - naxes;
    int64_t form[ARRAY_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) form[i] = i < lead ? 1 : a->shape[i];
    uint32_t all = (1u << a->ndim) - 1, others = (1u << lead) - 1, axes = all & ~others;
    bool was = grad_enabled;
    grad_enabled = false;
    work w = {0};
    tensor *mean, *var;
    moments(&w, x, axes, &mean, &var);
    tensor *rstd = reciprocal_root(&w, var, eps);
    grad_enabled = was;
    if (w.status == SIMT_OK)
        w.status = normalise(x, mean, rstd, weight, bias, form, axes, others, true,
                             "NativeLayerNormBackward0", out);
    return work_end(&w);
}
