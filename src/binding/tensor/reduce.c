/* Reductions, softmax, matrix products. */
#include <math.h>
#include <string.h>

#include "binding/tensor/tensor.h"

static PyObject *reduce(array_op op, PyObject **v,
                        const char *name) { /* input, dim, keepdim, dtype */
    SELF(v, name);
    uint32_t mask;
    bool all, keep;
    int dt;
    tensor *out = NULL;
    if (!tensor_dims(v[1], self->a->ndim, &mask, &all) || !tensor_bool_arg(v[2], false, &keep) ||
        !tensor_dtype_arg(v[3], name, &dt))
        return NULL;
    return tensor_result(grad_reduce(op, self, mask, keep, dt, &out), out);
}
#define SIGNATURE_N(name) TENSOR_OP(name, op_##name, 1, 3, "input", "dim", "keepdim", "dtype")
#define SIGNATURE_S(name) TENSOR_OP(name, op_##name, 1, 3, "input", "dim", "keepdim")
#define SIGNATURE_B(name) SIGNATURE_S(name)
#define REDUCE(id, dtypes, name)                                                   \
    static PyObject *op_##name(PyObject **v) { return reduce(OP_##id, v, #name); } \
    SIGNATURE_##dtypes(name)
#define HAND(id, dtypes, name)
#define RED(id, name, dtypes, neutral, combine, grad, node, node_dim, torch, ...) \
    torch(id, dtypes, __VA_ARGS__)
#include "graph/array_ops.def"
#undef REDUCE

static PyObject *op_mean(PyObject **v) {
    SELF(v, "mean");
    uint32_t mask;
    bool all, keep;
    int dt;
    tensor *out = NULL;
    if (!tensor_dims(v[1], self->a->ndim, &mask, &all) || !tensor_bool_arg(v[2], false, &keep) ||
        !tensor_dtype_arg(v[3], "mean", &dt))
        return NULL;
    dtype to = dt >= 0 ? (dtype)dt : self->a->dt;
    if (!dtype_is_float(to)) {
        PyErr_Format(PyExc_NotImplementedError,
                     "mean(): could not infer output dtype. Input dtype must be either a floating "
                     "point or complex "
                     "dtype. Got: %s",
                     dtype_torch_name(to));
        return NULL;
    }
    return tensor_result(grad_mean(self, mask, keep, dt, &out), out);
}
TENSOR_OP(mean, op_mean, 1, 3, "input", "dim", "keepdim", "dtype")

/* var(dim, unbiased, keepdim, *, correction); var(unbiased) */
static PyObject *spread(PyObject **v, bool root, const char *name) {
    SELF(v, name);
    uint32_t mask;
    bool all, keep, unbiased;
    double correction;
    PyObject *dim = v[1], *flag = v[2];
    if (dim && PyBool_Check(dim)) {
        flag = dim;
        dim = NULL;
    }
    if (!tensor_dims(dim, self->a->ndim, &mask, &all) || !tensor_bool_arg(flag, true, &unbiased) ||
        !tensor_bool_arg(v[3], false, &keep) ||
        !tensor_double_arg(v[4], unbiased, "correction", &correction))
        return NULL;
    if (!dtype_is_float(self->a->dt)) {
        PyErr_Format(PyExc_RuntimeError, "%s only support floating point and complex dtypes",
                     root ? "std and var" : "std and var");
        return NULL;
    }
    tensor *out = NULL;
    return tensor_result(grad_var(self, mask, keep, correction, root, &out), out);
}
static PyObject *op_var(PyObject **v) { return spread(v, false, "var"); }
static PyObject *op_std(PyObject **v) { return spread(v, true, "std"); }
TENSOR_OP(var, op_var, 1, 4, "input", "dim", "unbiased", "keepdim", "correction")
TENSOR_OP(std, op_std, 1, 4, "input", "dim", "unbiased", "keepdim", "correction")

static PyObject *extremum(array_op op, PyObject **v, const char *name) {
    SELF(v, name);
    tensor *values = NULL, *indices = NULL;
    if (v[1] && tensor_check(v[1])) {
        tensor_operand in[2] = {{self}, {tensor_of(v[1])}};
        return tensor_result(tensor_binary(op == OP_MAX ? OP_MAXIMUM : OP_MINIMUM, in, &values),
                             values);
    }
    if (!v[1] || v[1] == Py_None) {
        if (self->a->size == 0) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): Expected reduction dim to be specified for input.numel() == 0. "
                         "Specify the reduction "
                         "dim with the 'dim' argument.",
                         name);
            return NULL;
        }
        return tensor_result(grad_reduce(op, self, (1u << self->a->ndim) - 1, false, -1, &values),
                             values);
    }
    int axis;
    bool keep;
    if (!tensor_dim(v[1], self->a->ndim, &axis) || !tensor_bool_arg(v[2], false, &keep))
        return NULL;
    if (self->a->ndim && self->a->shape[axis] == 0) {
        PyErr_Format(PyExc_IndexError, "%s(): Expected reduction dim %d to have non-zero size.",
                     name, axis);
        return NULL;
    }
    if (!binding_ok(grad_extremum(op, self, axis, keep, &values, &indices))) return NULL;
    PyObject *a = tensor_wrap(values), *b = tensor_wrap(indices);
    return tensor_pair_object(name, a, b);
}
static PyObject *op_max(PyObject **v) { return extremum(OP_MAX, v, "max"); }
static PyObject *op_min(PyObject **v) { return extremum(OP_MIN, v, "min"); }
TENSOR_OP(max, op_max, 1, 3, "input", "dim", "keepdim")
TENSOR_OP(min, op_min, 1, 3, "input", "dim", "keepdim")

static PyObject *position(array_op op, PyObject **v, const char *name) {
    SELF(v, name);
    bool keep, all = !v[1] || v[1] == Py_None;
    int axis = 0;
    tensor *out = NULL, *flat = NULL;
    if (!tensor_bool_arg(v[2], false, &keep)) return NULL;
    if (!all && !tensor_dim(v[1], self->a->ndim, &axis)) return NULL;
    if (self->a->size == 0 && (all || self->a->shape[axis] == 0)) {
        PyErr_Format(PyExc_IndexError,
                     "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                     "the reduction dim with the 'dim' argument.",
                     name);
        return NULL;
    }
    simt_status s;
    if (all && self->a->ndim != 1) {
        const int64_t shape[1] = {-1};
        s = grad_reshape(self, shape, 1, false, &flat);
        if (s == SIMT_OK) s = grad_reduce(op, flat, 1, false, -1, &out);
        tensor_unref(flat);
    } else
        s = grad_reduce(op, self, self->a->ndim ? 1u << axis : 0, keep, -1, &out);
    return tensor_result(s, out);
}
static PyObject *op_argmax(PyObject **v) { return position(OP_ARGMAX, v, "argmax"); }
static PyObject *op_argmin(PyObject **v) { return position(OP_ARGMIN, v, "argmin"); }
TENSOR_OP(argmax, op_argmax, 1, 3, "input", "dim", "keepdim")
TENSOR_OP(argmin, op_argmin, 1, 3, "input", "dim", "keepdim")

static PyObject *op_count_nonzero(PyObject **v) {
    SELF(v, "count_nonzero");
    uint32_t mask;
    bool all;
    tensor *hits = NULL, *out = NULL;
    if (!tensor_dims(v[1], self->a->ndim, &mask, &all)) return NULL;
    simt_status s = grad_binary_scalar(OP_NOT_EQUAL, self, 0, &hits);
    if (s == SIMT_OK) s = grad_reduce(OP_SUM, hits, mask, false, -1, &out);
    tensor_unref(hits);
    return tensor_result(s, out);
}
TENSOR_OP(count_nonzero, op_count_nonzero, 1, 2, "input", "dim")

/* The p-norm; 2, 1, inf and others. Squares of 16-bit floats are summed in 32 bits. */
static PyObject *op_norm(PyObject **v) { /* input, p, dim, keepdim, dtype */
    SELF(v, "norm");
    uint32_t mask;
    bool all, keep;
    double p = 2;
    int dt = -1;
    if (v[1] && PyUnicode_Check(v[1])) {
        if (!binding_is_text(v[1], "fro")) {
            PyErr_Format(PyExc_NotImplementedError, "norm(p=%R): not in simt yet; nearest is 'fro'",
                         v[1]);
            return NULL;
        }
    } else if (!tensor_double_arg(v[1], 2, "p", &p))
        return NULL;
    if (!tensor_dims(v[2], self->a->ndim, &mask, &all) || !tensor_bool_arg(v[3], false, &keep) ||
        !tensor_dtype_arg(v[4], "norm", &dt))
        return NULL;
    dtype result = dt >= 0 ? (dtype)dt : self->a->dt,
          wide = dtype_is_float(result) && dtype_bytes(result) == 2 ? DT_F32 : result;
    tensor *source = NULL, *made = NULL, *out = NULL;
    simt_status s = SIMT_OK;
    if (wide != self->a->dt) s = grad_cast(self, wide, &source);
    if (s == SIMT_OK) s = grad_norm(source ? source : self, p, mask, keep, &made);
    if (s == SIMT_OK && wide != result) s = grad_cast(made, result, &out);
    tensor_unref(source);
    if (s == SIMT_OK && wide == result) return tensor_result(s, made);
    tensor_unref(made);
    return tensor_result(s, out);
}
TENSOR_OP(norm, op_norm, 1, 4, "input", "p", "dim", "keepdim", "dtype")

static PyObject *op_check_unit(PyObject **v) {
    SELF(v, "_check_unit");
    tensor *out = NULL;
    return tensor_result(grad_check_unit(self, &out), out);
}
TENSOR_SIGNATURE(_check_unit, 1, 1, "input")
TENSOR_FUNCTION(_check_unit, op_check_unit)

static PyObject *op_logsumexp(PyObject **v) {
    SELF(v, "logsumexp");
    uint32_t mask;
    bool all, keep;
    tensor *out = NULL;
    if (!tensor_dims(v[1], self->a->ndim, &mask, &all) || !tensor_bool_arg(v[2], false, &keep))
        return NULL;
    return tensor_result(grad_logsumexp(self, mask, keep, &out), out);
}
TENSOR_OP(logsumexp, op_logsumexp, 2, 3, "input", "dim", "keepdim")

static PyObject *softmax(PyObject **v, bool logarithm, const char *name) { /* input, dim, dtype */
    SELF(v, name);
    int axis, dt;
    int64_t dim;
    int ndim = self->a->ndim;
    if (!tensor_int_arg(v[1], ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1, &dim) ||
        !tensor_dim_number(dim, ndim, &axis) || !tensor_dtype_arg(v[2], name, &dt))
        return NULL;
    tensor *cast = NULL, *out = NULL;
    if (dt >= 0 && !binding_ok(grad_cast(self, (dtype)dt, &cast))) return NULL;
    if (dt < 0 && !dtype_is_float(self->a->dt)) {
        PyErr_Format(PyExc_NotImplementedError,
                     "\"%ssoftmax_lastdim_kernel_impl\" not implemented for '%s'",
                     logarithm ? "log_" : "", dtype_torch_name(self->a->dt));
        return NULL;
    }
    simt_status s = grad_softmax(cast ? cast : self, axis, logarithm, &out);
    tensor_unref(cast);
    return tensor_result(s, out);
}
static PyObject *op_softmax(PyObject **v) { return softmax(v, false, "softmax"); }
static PyObject *op_log_softmax(PyObject **v) { return softmax(v, true, "log_softmax"); }
TENSOR_OP(softmax, op_softmax, 2, 3, "input", "dim", "dtype")
TENSOR_OP(log_softmax, op_log_softmax, 2, 3, "input", "dim", "dtype")

static PyObject *op_cumsum(PyObject **v) {
    SELF(v, "cumsum");
    int axis, dt;
    tensor *out = NULL;
    if (!tensor_dim(v[1], self->a->ndim, &axis) || !tensor_dtype_arg(v[2], "cumsum", &dt))
        return NULL;
    return tensor_result(grad_cumsum(self, axis, false, dt, &out), out);
}
TENSOR_OP(cumsum, op_cumsum, 2, 2, "input", "dim", "dtype")

static PyObject *op_argsort(PyObject **v) { /* input, dim, descending, take */
    SELF(v, "argsort");
    int axis;
    bool descending;
    int64_t take;
    array *made = NULL;
    if (!tensor_dim(v[1], self->a->ndim, &axis) || !tensor_bool_arg(v[2], false, &descending) ||
        !tensor_int_arg(v[3], -1, &take))
        return NULL;
    return binding_ok(array_argsort(self->a, axis, descending, take, &made))
               ? tensor_wrap_array(made)
               : NULL;
}
TENSOR_SIGNATURE(_argsort, 2, 4, "input", "dim", "descending", "take")
TENSOR_FUNCTION(_argsort, op_argsort)

/* ---- products ---- */

static PyObject *product(PyObject **v, int first, int second, const char *name) {
    SELF(v, name);
    tensor *other = tensor_arg(v[1], name, "mat2", 2), *out = NULL;
    if (!other) return NULL;
    if (first && self->a->ndim != first) {
        PyErr_Format(PyExc_RuntimeError,
                     first == 2 ? "%s: self must be a matrix, got %d-D tensor"
                                : "%s: expected a tensor of other dimensions, got %d-D",
                     name, self->a->ndim);
        if (first == 3) PyErr_SetString(PyExc_RuntimeError, "batch1 must be a 3D tensor");
        return NULL;
    }
    if (second && other->a->ndim != second) {
        if (second == 3)
            PyErr_SetString(PyExc_RuntimeError, "batch2 must be a 3D tensor");
        else
            PyErr_Format(PyExc_RuntimeError, "%s: mat2 must be a matrix, got %d-D tensor", name,
                         other->a->ndim);
        return NULL;
    }
    if (first == 3 &&
        (other->a->shape[0] != self->a->shape[0] || other->a->shape[1] != self->a->shape[2])) {
        PyErr_Format(PyExc_RuntimeError,
                     "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] "
                     "but got: [%lld, "
                     "%lld].",
                     (long long)self->a->shape[0], (long long)self->a->shape[2],
                     (long long)other->a->shape[0], (long long)other->a->shape[1]);
        return NULL;
    }
    return tensor_result(grad_matmul(self, other, &out), out);
}
static PyObject *op_matmul(PyObject **v) { return product(v, 0, 0, "matmul"); }
static PyObject *op_mm(PyObject **v) { return product(v, 2, 2, "mm"); }
static PyObject *op_bmm(PyObject **v) { return product(v, 3, 3, "bmm"); }
static PyObject *op_mv(PyObject **v) { return product(v, 2, 1, "mv"); }
static PyObject *op_dot(PyObject **v) { return product(v, 1, 1, "dot"); }
TENSOR_OP(matmul, op_matmul, 2, 2, "input", "other")
TENSOR_OP(mm, op_mm, 2, 2, "input", "mat2")
TENSOR_OP(bmm, op_bmm, 2, 2, "input", "mat2")
TENSOR_OP(mv, op_mv, 2, 2, "input", "vec")
TENSOR_OP(dot, op_dot, 2, 2, "input", "tensor")

#define RED(id, name, dtypes, neutral, combine, grad, node, node_dim, torch, ...) torch(__VA_ARGS__)
#undef HAND
#define HAND(...)
#define REDUCE(name) METHOD_ENTRY(name),
PyMethodDef tensor_reduce_methods[] = {
#include "graph/array_ops.def"
    METHOD_ENTRY(mean),
    METHOD_ENTRY(var),
    METHOD_ENTRY(std),
    METHOD_ENTRY(max),
    METHOD_ENTRY(min),
    METHOD_ENTRY(argmax),
    METHOD_ENTRY(argmin),
    METHOD_ENTRY(count_nonzero),
    METHOD_ENTRY(norm),
    METHOD_ENTRY(logsumexp),
    METHOD_ENTRY(softmax),
    METHOD_ENTRY(log_softmax),
    METHOD_ENTRY(cumsum),
    METHOD_ENTRY(matmul),
    METHOD_ENTRY(mm),
    METHOD_ENTRY(bmm),
    METHOD_ENTRY(mv),
    METHOD_ENTRY(dot),
    {NULL}};
#define RED(id, name, dtypes, neutral, combine, grad, node, node_dim, torch, ...) torch(__VA_ARGS__)
#undef REDUCE
#define REDUCE(name) FUNCTION_ENTRY(name),
PyMethodDef tensor_reduce_functions[] = {
#include "graph/array_ops.def"
    FUNCTION_ENTRY(_argsort), FUNCTION_ENTRY(mean),        FUNCTION_ENTRY(var),
    FUNCTION_ENTRY(std),      FUNCTION_ENTRY(max),         FUNCTION_ENTRY(min),
    FUNCTION_ENTRY(argmax),   FUNCTION_ENTRY(argmin),      FUNCTION_ENTRY(count_nonzero),
    FUNCTION_ENTRY(norm),     FUNCTION_ENTRY(_check_unit), FUNCTION_ENTRY(logsumexp),
    FUNCTION_ENTRY(softmax),  FUNCTION_ENTRY(log_softmax), FUNCTION_ENTRY(cumsum),
    FUNCTION_ENTRY(matmul),   FUNCTION_ENTRY(mm),          FUNCTION_ENTRY(bmm),
    FUNCTION_ENTRY(mv),       FUNCTION_ENTRY(dot),         {NULL}};
