/* Layers, losses and optimiser steps, one call each. */
#include <string.h>

#include "array/resize.h"
#include "binding/tensor/tensor.h"

static bool optional(PyObject *o, const char *function, const char *name, tensor **out) {
    *out = NULL;
    return !o || o == Py_None || (*out = tensor_arg(o, function, name, 1)) != NULL;
}

static PyObject *op_linear(PyObject **v) {
    SELF(v, "linear");
    tensor *weight = tensor_arg(v[1], "linear", "weight", 2), *bias, *out = NULL;
    if (!weight || !optional(v[2], "linear", "bias", &bias)) return NULL;
    return tensor_result(grad_linear(self, weight, bias, &out), out);
}
TENSOR_SIGNATURE(linear, 2, 3, "input", "weight", "bias")
TENSOR_FUNCTION(linear, op_linear)

static PyObject *
op_conv2d(PyObject **v) { /* input, weight, bias, stride, padding, dilation, groups */
    SELF(v, "conv2d");
    tensor *weight = tensor_arg(v[1], "conv2d", "weight", 2), *bias, *out = NULL;
    conv_options o;
    if (!weight || !optional(v[2], "conv2d", "bias", &bias) ||
        !tensor_pair_arg(v[3], 1, "stride", o.stride) ||
        !tensor_pair_arg(v[5], 1, "dilation", o.dilation) || !tensor_int_arg(v[6], 1, &o.groups))
        return NULL;
    if (v[4] && PyUnicode_Check(v[4])) {
        bool same = binding_is_text(v[4], "same");
        if (!same && !binding_is_text(v[4], "valid"))
            return PyErr_Format(PyExc_RuntimeError, "Invalid padding string: '%U'", v[4]);
        for (int i = 0; i < 2 && weight->a->ndim == 4; i++) {
            int64_t total = same ? o.dilation[i] * (weight->a->shape[2 + i] - 1) : 0;
            if (same && o.stride[i] != 1)
                return PyErr_Format(PyExc_RuntimeError,
                                    "padding='same' is not supported for strided convolutions");
            if (total % 2)
                return PyErr_Format(
                    PyExc_NotImplementedError,
                    "padding='same' with an even kernel: not in simt yet; nearest is padding=%lld",
                    (long long)(total / 2));
            o.padding[i] = total / 2;
        }
    } else if (!tensor_pair_arg(v[4], 0, "padding", o.padding))
        return NULL;
    if (o.padding[0] < 0 || o.padding[1] < 0)
        return PyErr_Format(PyExc_RuntimeError, "negative padding is not supported");
    return tensor_result(grad_conv2d(self, weight, bias, &o, &out), out);
}
TENSOR_SIGNATURE(conv2d, 2, 7, "input", "weight", "bias", "stride", "padding", "dilation", "groups")
TENSOR_FUNCTION(conv2d, op_conv2d)

static bool pool_arguments(PyObject **v, pool_options *o, PyObject *stride) {
    *o = (pool_options){.dilation = {1, 1}};
    if (!tensor_pair_arg(v[1], 1, "kernel_size", o->kernel)) return false;
    if (!stride || stride == Py_None || (PyTuple_Check(stride) && PyTuple_GET_SIZE(stride) == 0)) {
        memcpy(o->stride, o->kernel, sizeof o->stride);
        return true;
    }
    return tensor_pair_arg(stride, 1, "stride", o->stride);
}

/* input, kernel_size, stride, padding, dilation, ceil_mode, return_indices */
static PyObject *op_max_pool2d(PyObject **v) {
    SELF(v, "max_pool2d");
    pool_options o;
    bool indices;
    tensor *out = NULL, *where = NULL;
    if (!pool_arguments(v, &o, v[2]) || !tensor_pair_arg(v[3], 0, "padding", o.padding) ||
        !tensor_pair_arg(v[4], 1, "dilation", o.dilation) ||
        !tensor_bool_arg(v[5], false, &o.ceil_mode) || !tensor_bool_arg(v[6], false, &indices))
        return NULL;
    if (!binding_ok(grad_max_pool2d(self, &o, &out, indices ? &where : NULL))) return NULL;
    if (!indices) return tensor_wrap(out);
    tensor *wide = NULL;
    simt_status s = grad_cast(where, DT_I64, &wide);
    tensor_unref(where);
    PyObject *a = tensor_wrap(out), *b = tensor_result(s, wide);
    if (a && b) return Py_BuildValue("(NN)", a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return NULL;
}
TENSOR_SIGNATURE(max_pool2d, 2, 7, "input", "kernel_size", "stride", "padding", "dilation",
                 "ceil_mode", "return_indices")
TENSOR_FUNCTION(max_pool2d, op_max_pool2d)

/* input, kernel_size, stride, padding, ceil_mode, count_include_pad */
static PyObject *op_avg_pool2d(PyObject **v) {
    SELF(v, "avg_pool2d");
    pool_options o;
    tensor *out = NULL;
    if (!pool_arguments(v, &o, v[2]) || !tensor_pair_arg(v[3], 0, "padding", o.padding) ||
        !tensor_bool_arg(v[4], false, &o.ceil_mode) ||
        !tensor_bool_arg(v[5], true, &o.count_include_pad))
        return NULL;
    return tensor_result(grad_avg_pool2d(self, &o, &out), out);
}
TENSOR_SIGNATURE(avg_pool2d, 2, 6, "input", "kernel_size", "stride", "padding", "ceil_mode",
                 "count_include_pad")
TENSOR_FUNCTION(avg_pool2d, op_avg_pool2d)

/* input, running_mean, running_var, weight, bias, training, momentum, eps */
static PyObject *op_batch_norm(PyObject **v) {
    SELF(v, "batch_norm");
    tensor *mean, *var, *weight, *bias, *out = NULL;
    bool training;
    double momentum, eps;
    if (!optional(v[1], "batch_norm", "running_mean", &mean) ||
        !optional(v[2], "batch_norm", "running_var", &var) ||
        !optional(v[3], "batch_norm", "weight", &weight) ||
        !optional(v[4], "batch_norm", "bias", &bias) || !tensor_bool_arg(v[5], false, &training) ||
        !tensor_double_arg(v[6], 0.1, "momentum", &momentum) ||
        !tensor_double_arg(v[7], 1e-5, "eps", &eps))
        return NULL;
    if (!training && (!mean || !var))
        return PyErr_Format(
            PyExc_RuntimeError,
            "Expected running_mean and running_var to be defined when training=False");
    return tensor_result(
        grad_batch_norm(self, weight, bias, mean, var, training, momentum, eps, &out), out);
}
TENSOR_SIGNATURE(batch_norm, 1, 8, "input", "running_mean", "running_var", "weight", "bias",
                 "training", "momentum", "eps")
TENSOR_FUNCTION(batch_norm, op_batch_norm)

static PyObject *op_layer_norm(PyObject **v) { /* input, normalized_shape, weight, bias, eps */
    SELF(v, "layer_norm");
    tensor *weight, *bias, *out = NULL;
    double eps;
    int64_t shape[ARRAY_MAX_NDIM];
    int n;
    if (!binding_to_shape(v[1], "normalized_shape", shape, &n) ||
        !optional(v[2], "layer_norm", "weight", &weight) ||
        !optional(v[3], "layer_norm", "bias", &bias) || !tensor_double_arg(v[4], 1e-5, "eps", &eps))
        return NULL;
    int ndim = self->a->ndim;
    if (n == 0 || n > ndim ||
        memcmp(shape, self->a->shape + (ndim - n), sizeof *shape * (size_t)n) != 0) {
        char wanted[300], got[300];
        shape_text(shape, n, wanted, sizeof wanted);
        shape_text(self->a->shape, ndim, got, sizeof got);
        return PyErr_Format(
            PyExc_RuntimeError,
            "Given normalized_shape=%s, expected input with shape [*, %s, but got input of size%s",
            wanted, wanted + 1, got);
    }
    return tensor_result(grad_layer_norm(self, n, weight, bias, eps, &out), out);
}
TENSOR_SIGNATURE(layer_norm, 2, 5, "input", "normalized_shape", "weight", "bias", "eps")
TENSOR_FUNCTION(layer_norm, op_layer_norm)

static PyObject *op_embedding(PyObject **v) { /* weight, indices, padding_idx */
    SELF(v, "embedding");
    tensor *indices = tensor_arg(v[1], "embedding", "indices", 2), *out = NULL;
    int64_t padding;
    if (!indices || !tensor_int_arg(v[2], -1, &padding)) return NULL;
    return tensor_result(grad_embedding(self, indices, padding, &out), out);
}
TENSOR_SIGNATURE(_embedding, 2, 3, "weight", "indices", "padding_idx")
TENSOR_FUNCTION(_embedding, op_embedding)

static PyObject *op_resize_images(PyObject **v) { /* input, height, width, filter */
    SELF(v, "resize");
    int64_t height, width;
    const char *filter = PyUnicode_AsUTF8(v[3]);
    array *made = NULL;
    if (!filter || !binding_to_int64(v[1], &height) || !binding_to_int64(v[2], &width)) return NULL;
    return binding_ok(array_resize(self->a, height, width, filter, &made)) ? tensor_wrap_array(made)
                                                                           : NULL;
}
TENSOR_SIGNATURE(_resize_images, 4, 4, "input", "height", "width", "filter")
TENSOR_FUNCTION(_resize_images, op_resize_images)

/* ---- losses ---- */

static bool reduction_arg(PyObject *o, grad_reduction *out) {
    *out = LOSS_MEAN;
    if (!o || o == Py_None) return true;
    if (binding_is_text(o, "mean")) return true;
    *out = binding_is_text(o, "sum") ? LOSS_SUM : LOSS_NONE;
    if (*out == LOSS_SUM || binding_is_text(o, "none")) return true;
    PyErr_Format(PyExc_ValueError, "%S is not a valid value for reduction", o);
    return false;
}

/* input, target, weight, ignore_index, reduction, label_smoothing */
static PyObject *op_cross_entropy(PyObject **v) {
    SELF(v, "cross_entropy_loss");
    tensor *target = tensor_arg(v[1], "cross_entropy_loss", "target", 2), *weight, *out = NULL;
    int64_t ignore;
    double smoothing;
    grad_reduction r;
    if (!target || !optional(v[2], "cross_entropy_loss", "weight", &weight) ||
        !tensor_int_arg(v[3], -100, &ignore) || !reduction_arg(v[4], &r) ||
        !tensor_double_arg(v[5], 0, "label_smoothing", &smoothing))
        return NULL;
    if (smoothing < 0 || smoothing > 1)
        return PyErr_Format(PyExc_RuntimeError,
                            "label_smoothing must be between 0.0 and 1.0. Got: %S", v[5]);
    return tensor_result(grad_cross_entropy(self, target, weight, ignore, r, smoothing, &out), out);
}
TENSOR_SIGNATURE(_cross_entropy, 2, 6, "input", "target", "weight", "ignore_index", "reduction",
                 "label_smoothing")
TENSOR_FUNCTION(_cross_entropy, op_cross_entropy)

static PyObject *op_nll_loss(PyObject **v) { /* input, target, weight, ignore_index, reduction */
    SELF(v, "nll_loss");
    tensor *target = tensor_arg(v[1], "nll_loss", "target", 2), *weight, *out = NULL;
    int64_t ignore;
    grad_reduction r;
    if (!target || !optional(v[2], "nll_loss", "weight", &weight) ||
        !tensor_int_arg(v[3], -100, &ignore) || !reduction_arg(v[4], &r))
        return NULL;
    return tensor_result(grad_nll_loss(self, target, weight, ignore, r, &out), out);
}
TENSOR_SIGNATURE(_nll_loss, 2, 5, "input", "target", "weight", "ignore_index", "reduction")
TENSOR_FUNCTION(_nll_loss, op_nll_loss)

static PyObject *op_mse_loss(PyObject **v) { /* input, target, reduction */
    SELF(v, "mse_loss");
    tensor *target = tensor_arg(v[1], "mse_loss", "target", 2), *out = NULL;
    grad_reduction r;
    if (!target || !reduction_arg(v[2], &r)) return NULL;
    return tensor_result(grad_mse_loss(self, target, r, &out), out);
}
TENSOR_SIGNATURE(_mse_loss, 2, 3, "input", "target", "reduction")
TENSOR_FUNCTION(_mse_loss, op_mse_loss)

/* ---- optimisers: lists of tensors ---- */

typedef struct lists {
    tensor **list[5];
    PyObject *items[5]; /* tuples that keep the tensors: the lists may change meanwhile */
    Py_ssize_t n;
} lists;

static void lists_free(lists *l) {
    for (int i = 0; i < 5; i++) {
        heap_free(l->list[i]);
        Py_XDECREF(l->items[i]);
    }
}

/* Each argument is a list of n tensors (None allowed where `holes`). */
static bool lists_read(PyObject *const *objects, int count, bool holes, lists *l) {
    *l = (lists){.n = PyList_Check(objects[0]) ? PyList_GET_SIZE(objects[0]) : -1};
    for (int i = 0; i < count; i++) {
        if (objects[i] == Py_None) continue;
        if (PyList_Check(objects[i]) && !(l->items[i] = PyList_AsTuple(objects[i]))) return false;
        if (!l->items[i] || PyTuple_GET_SIZE(l->items[i]) != l->n) {
            PyErr_SetString(PyExc_TypeError,
                            "optimiser step: lists of tensors of one length are expected");
            return false;
        }
        l->list[i] = binding_alloc((size_t)l->n + 1, sizeof **l->list);
        if (!l->list[i]) return false;
        for (Py_ssize_t k = 0; k < l->n; k++) {
            PyObject *o = PyTuple_GET_ITEM(l->items[i], k);
            if (o == Py_None && holes) continue;
            if (!(l->list[i][k] = tensor_arg(o, "step", "tensors", i + 1))) return false;
        }
    }
    return true;
}

/* The optimiser's state is changed here, not in Python: an interrupt comes before the step or after all
 * of it. Returns the n states as a tuple: the list may change meanwhile. */
static PyObject *take_states(PyObject *states, Py_ssize_t n) {
    PyObject *kept = PyList_Check(states) ? PyList_AsTuple(states) : NULL;
    bool ok = kept && PyTuple_GET_SIZE(kept) == n;
    for (Py_ssize_t i = 0; ok && i < n; i++) ok = PyDict_Check(PyTuple_GET_ITEM(kept, i));
    if (ok) return kept;
    Py_XDECREF(kept);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "optimiser step: a list of states is expected");
    return NULL;
}

/* The momentum of each parameter, None where there is none yet; new reference. */
static PyObject *momentum_buffers(PyObject *states, Py_ssize_t n) {
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *state = states ? PyTuple_GET_ITEM(states, i) : NULL, *b;
        if (binding_item(state, "momentum_buffer", &b) < 0)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, b ? b : Py_NewRef(Py_None));
    }
    return list;
}

/* _sgd(params, grads, states or None, lr, momentum, dampening, weight_decay, nesterov, maximize): a state
 * is a dict and gets its "momentum_buffer" */
static PyObject *sgd_step_body(PyObject *module, PyObject *args) {
    PyObject *objects[3], *given, *states = NULL;
    optim_sgd o;
    int nesterov, maximize;
    if (!PyArg_ParseTuple(args, "O!OOddddpp:_sgd", &PyList_Type, &objects[0], &objects[1], &given,
                          &o.lr, &o.momentum, &o.dampening, &o.weight_decay, &nesterov, &maximize))
        return NULL;
    o.nesterov = nesterov;
    o.maximize = maximize;
    Py_ssize_t n = PyList_GET_SIZE(objects[0]);
    if (given != Py_None && !(states = take_states(given, n))) return NULL;
    lists l = {.n = -1};
    bool ok = (objects[2] = momentum_buffers(states, n)) && lists_read(objects, 3, true, &l);
    for (Py_ssize_t i = 0; ok && i < l.n; i++) {
        ok = l.list[0] && l.list[0][i] && l.list[1] && l.list[1][i];
        if (!ok) PyErr_SetString(PyExc_TypeError, "optimiser step: a tensor is missing");
    }
    if (ok) ok = binding_ok(grad_optim_sgd(l.list[0], l.list[1], l.list[2], (int)l.n, &o));
    for (Py_ssize_t i = 0; l.list[2] && i < l.n; i++) { /* buffers made now */
        if (PyTuple_GET_ITEM(l.items[2], i) != Py_None || !l.list[2][i]) continue;
        PyObject *made = tensor_wrap(l.list[2][i]);
        if (!made ||
            (states && PyDict_SetItemString(PyTuple_GET_ITEM(states, i), "momentum_buffer", made)))
            ok = false;
        Py_XDECREF(made);
    }
    lists_free(&l);
    Py_XDECREF(objects[2]);
    Py_XDECREF(states);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}
SECTION_FUNCTION(sgd_step, sgd_step_body)

/* Counts a state's "step" up by `more`: a float, or a tensor of a loaded state, whose value is waited for;
 * another thread may replace it meanwhile. */
static bool count_step(PyObject *state, double more, double *step) {
    PyObject *old;
    int found = binding_item(state, "step", &old);
    PyObject *number = found > 0 ? PyNumber_Float(old) : NULL;
    Py_XDECREF(old);
    if (!number) {
        if (found == 0) PyErr_SetString(PyExc_KeyError, "step");
        return false;
    }
    *step = PyFloat_AS_DOUBLE(number) + more;
    Py_DECREF(number);
    PyObject *counted = PyFloat_FromDouble(*step);
    bool ok = counted && PyDict_SetItemString(state, "step", counted) == 0;
    Py_XDECREF(counted);
    return ok;
}

/* _adam(params, grads, averages, squares, max_squares or None, states, lr, beta1, beta2, eps,
 * weight_decay, decoupled, maximize): a state is a dict, and its "step" is counted up */
static PyObject *adam_step_body(PyObject *module, PyObject *args) {
    PyObject *objects[5], *states;
    optim_adam o;
    int decoupled, maximize;
    if (!PyArg_ParseTuple(args, "OOOOOOdddddpp:_adam", &objects[0], &objects[1], &objects[2],
                          &objects[3], &objects[4], &states, &o.lr, &o.beta1, &o.beta2, &o.eps,
                          &o.weight_decay, &decoupled, &maximize))
        return NULL;
    o.decoupled = decoupled;
    o.maximize = maximize;
    o.amsgrad = objects[4] != Py_None;
    lists l = {.n = -1};
    PyObject *counts = NULL;
    bool ok = lists_read(objects, 5, false, &l) && (counts = take_states(states, l.n));
    double *numbers = ok ? binding_alloc((size_t)l.n + 1, sizeof *numbers) : NULL;
    Py_ssize_t counted = 0;
    ok = ok && numbers;
    while (ok && counted < l.n) {
        ok = count_step(PyTuple_GET_ITEM(counts, counted), 1, &numbers[counted]);
        counted += ok;
    }
    if (ok)
        ok = binding_ok(grad_optim_adam(l.list[0], l.list[1], l.list[2], l.list[3], l.list[4],
                                        numbers, (int)l.n, &o));
    if (!ok) { /* it has not happened */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        while (counted-- > 0) count_step(PyTuple_GET_ITEM(counts, counted), -1, &numbers[counted]);
        PyErr_Restore(type, value, traceback);
    }
    heap_free(numbers);
    Py_XDECREF(counts);
    lists_free(&l);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}
SECTION_FUNCTION(adam_step, adam_step_body)

/* _zero_grad(params, set_to_none) */
static bool clear_grad(tensor *t, bool to_none) {
    tensor *g = t->grad;
    if (!g) return true;
    if (to_none) {
        tensor_set_grad(t, NULL);
        return true;
    }
    tensor_leave_graph(g);
    tensor_operand zero = {NULL, {.kind = 'I'}};
    return binding_ok(grad_copy_into(g, &zero));
}

static PyObject *zero_grad_body(PyObject *module, PyObject *args) {
    PyObject *params;
    int to_none;
    if (!PyArg_ParseTuple(args, "O!p:_zero_grad", &PyList_Type, &params, &to_none)) return NULL;
    PyObject *items = PyList_AsTuple(params);
    bool ok = items != NULL;
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(items); i++) {
        tensor *t = tensor_arg(PyTuple_GET_ITEM(items, i), "zero_grad", "params", 1);
        ok = t && clear_grad(t, to_none);
    }
    Py_XDECREF(items);
    return ok ? Py_NewRef(Py_None) : NULL;
}
SECTION_FUNCTION(zero_grad, zero_grad_body)

PyMethodDef tensor_nn_methods[] = {{NULL}};
PyMethodDef tensor_nn_functions[] = {FUNCTION_ENTRY(linear),
                                     FUNCTION_ENTRY(conv2d),
                                     FUNCTION_ENTRY(max_pool2d),
                                     FUNCTION_ENTRY(avg_pool2d),
                                     FUNCTION_ENTRY(batch_norm),
                                     FUNCTION_ENTRY(layer_norm),
                                     FUNCTION_ENTRY(_embedding),
                                     FUNCTION_ENTRY(_resize_images),
                                     FUNCTION_ENTRY(_cross_entropy),
                                     FUNCTION_ENTRY(_nll_loss),
                                     FUNCTION_ENTRY(_mse_loss),
                                     {"_sgd", sgd_step, METH_VARARGS, NULL},
                                     {"_adam", adam_step, METH_VARARGS, NULL},
                                     {"_zero_grad", zero_grad, METH_VARARGS, NULL},
                                     {NULL}};
