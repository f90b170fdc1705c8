/* Elementwise functions that are more than a row of the table (those: table.c); selection. */
#include <math.h>
#include <string.h>

#include "binding/tensor/tensor.h"

/* ---- one operand ---- */

static PyObject *op_round(PyObject **v) {
    SELF(v, "round");
    int64_t decimals;
    if (!tensor_int_arg(v[1], 0, &decimals)) return NULL;
    tensor *out = NULL;
    if (decimals == 0) return tensor_result(grad_unary(OP_RINT, self, &out), out);
    double scale = pow(10, (double)(decimals < 0 ? -decimals : decimals));
    array_op there = decimals < 0 ? OP_DIVIDE : OP_MULTIPLY,
             back = decimals < 0 ? OP_MULTIPLY : OP_DIVIDE;
    tensor *wide = NULL, *round = NULL;
    simt_status s = grad_binary_scalar(there, self, scale, &wide);
    if (s == SIMT_OK) s = grad_unary(OP_RINT, wide, &round);
    if (s == SIMT_OK) s = grad_binary_scalar(back, round, scale, &out);
    tensor_unref(wide);
    tensor_unref(round);
    return tensor_result(s, out);
}
TENSOR_OP(round, op_round, 1, 1, "input", "decimals")
static PyObject *method_round_(PyObject *self, PyObject *unused) {
    return tensor_unary_inplace(OP_RINT, self);
}

/* polygamma(n, input): the derivatives of digamma up to the first */
static PyObject *polygamma(PyObject *order, PyObject *input) {
    int64_t n;
    if (!tensor_int_arg(order, 0, &n)) return NULL;
    if (n < 0 || n > 1) {
        PyErr_Format(n < 0 ? PyExc_RuntimeError : PyExc_NotImplementedError,
                     n < 0 ? "polygamma(n, x) does not support negative n."
                           : "polygamma(n, x) with n > 1 is not in simt yet");
        return NULL;
    }
    return tensor_unary(n == 0 ? OP_DIGAMMA : OP_TRIGAMMA, input, "polygamma");
}
static PyObject *op_polygamma(PyObject **v) { return polygamma(v[1], v[0]); }
TENSOR_SIGNATURE(polygamma, 2, 2, "input", "n")
TENSOR_METHOD(polygamma, op_polygamma)
static PyObject *function_polygamma(PyObject *module, PyObject *const *args, Py_ssize_t n,
                                    PyObject *kw) {
    PyObject *v[TENSOR_MAX_ARGS] = {NULL};
    static const char *const names[] = {"n", "input", NULL};
    static const tensor_signature signature = {"polygamma", 2, 2, names};
    return tensor_parse(&signature, 0, args, n, kw, v) ? polygamma(v[0], v[1]) : NULL;
}

static PyObject *op_bitwise_not(PyObject **v) {
    SELF(v, "bitwise_not");
    if (dtype_is_float(self->a->dt)) {
        PyErr_SetString(
            PyExc_TypeError,
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
        return NULL;
    }
    tensor *out = NULL;
    return tensor_result(grad_unary(OP_INVERT, self, &out), out);
}
TENSOR_OP(bitwise_not, op_bitwise_not, 1, 1, "input")

static PyObject *op_silu(PyObject **v) {
    SELF(v, "silu");
    tensor *gate = NULL, *out = NULL;
    simt_status s = grad_unary(OP_SIGMOID, self, &gate);
    if (s == SIMT_OK) s = grad_binary(OP_MULTIPLY, self, gate, &out);
    tensor_unref(gate);
    return tensor_result(s, out);
}
TENSOR_SIGNATURE(silu, 1, 1, "input")
TENSOR_FUNCTION(silu, op_silu)

/* x where x > 0, else x * slope */
static PyObject *op_leaky_relu(PyObject **v) {
    SELF(v, "leaky_relu");
    double slope;
    if (!tensor_double_arg(v[1], 0.01, "negative_slope", &slope)) return NULL;
    tensor *low = NULL, *positive = NULL, *out = NULL;
    simt_status s = grad_binary_scalar(OP_MULTIPLY, self, slope, &low);
    if (s == SIMT_OK) s = grad_binary_scalar(OP_GREATER, self, 0, &positive);
    tensor_operand in[3] = {{positive}, {self}, {low}};
    if (s == SIMT_OK) s = grad_elementwise(OP_WHERE, in, 3, NULL, &out);
    tensor_unref(low);
    tensor_unref(positive);
    return tensor_result(s, out);
}
TENSOR_SIGNATURE(leaky_relu, 1, 2, "input", "negative_slope")
TENSOR_FUNCTION(leaky_relu, op_leaky_relu)

/* ---- two operands ---- */

/* add and subtract know alpha: the other operand times it, which may be absent. */
static bool alpha_fits(PyObject *alpha, PyObject *self, PyObject *other) {
    bool fits =
        !(alpha && PyFloat_Check(alpha) && tensor_check(self) && tensor_check(other) &&
          !dtype_is_float(tensor_of(self)->a->dt) && !dtype_is_float(tensor_of(other)->a->dt));
    if (!fits)
        PyErr_SetString(PyExc_RuntimeError,
                        "For integral input tensors, argument alpha must not be a floating point "
                        "number.");
    return fits;
}

PyObject *tensor_scaled(PyObject *other, PyObject *alpha) {
    double number;
    if (!tensor_double_arg(alpha, 1, "alpha", &number) || !alpha_fits(alpha, other, other))
        return NULL;
    return number == 1 ? Py_NewRef(other) : tensor_apply(OP_MULTIPLY, other, alpha, "mul");
}

static PyObject *add_alpha(PyObject **v, double sign, bool inplace, const char *name) {
    array_op op = sign > 0 ? OP_ADD : OP_SUBTRACT;
    double alpha;
    if (!tensor_double_arg(v[2], 1, "alpha", &alpha) || !alpha_fits(v[2], v[0], v[1])) return NULL;
    if (alpha == 1)
        return inplace ? tensor_apply_inplace(op, v[0], v[1], name)
                       : tensor_apply(op, v[0], v[1], name);
    PyObject *scaled = tensor_apply(OP_MULTIPLY, v[1], v[2], name);
    if (!scaled) return NULL;
    PyObject *r = inplace ? tensor_apply_inplace(op, v[0], scaled, name)
                          : tensor_apply(op, v[0], scaled, name);
    Py_DECREF(scaled);
    return r;
}
static PyObject *op_add(PyObject **v) { return add_alpha(v, 1, false, "add"); }
static PyObject *op_add_(PyObject **v) { return add_alpha(v, 1, true, "add_"); }
static PyObject *op_sub(PyObject **v) { return add_alpha(v, -1, false, "sub"); }
static PyObject *op_sub_(PyObject **v) { return add_alpha(v, -1, true, "sub_"); }
TENSOR_OP(add, op_add, 2, 2, "input", "other", "alpha")
TENSOR_OP(sub, op_sub, 2, 2, "input", "other", "alpha")
TENSOR_OP(subtract, op_sub, 2, 2, "input", "other", "alpha")
TENSOR_SIGNATURE(add_, 2, 2, "input", "other", "alpha")
TENSOR_METHOD(add_, op_add_)
TENSOR_SIGNATURE(sub_, 2, 2, "input", "other", "alpha")
TENSOR_METHOD(sub_, op_sub_)

static PyObject *divide(PyObject **v, bool inplace) {
    if (!v[2] || v[2] == Py_None)
        return inplace ? tensor_apply_inplace(OP_DIVIDE, v[0], v[1], "div_")
                       : tensor_apply(OP_DIVIDE, v[0], v[1], "div");
    const char *mode = PyUnicode_AsUTF8(v[2]);
    if (!mode) return NULL;
    if (strcmp(mode, "floor") == 0)
        return inplace ? tensor_apply_inplace(OP_FLOOR_DIVIDE, v[0], v[1], "div_")
                       : tensor_apply(OP_FLOOR_DIVIDE, v[0], v[1], "div");
    if (strcmp(mode, "trunc") != 0 || inplace) {
        PyErr_Format(
            PyExc_RuntimeError,
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'",
            mode);
        return NULL;
    }
    /* truncation: (a - fmod(a, b)) / b, exact for integers too */
    PyObject *rest = tensor_apply(OP_FMOD, v[0], v[1], "div"), *whole = NULL, *r = NULL;
    if (rest) whole = tensor_apply(OP_SUBTRACT, v[0], rest, "div");
    if (whole) r = tensor_apply(OP_FLOOR_DIVIDE, whole, v[1], "div");
    Py_XDECREF(rest);
    Py_XDECREF(whole);
    return r;
}
static PyObject *op_div(PyObject **v) { return divide(v, false); }
static PyObject *op_div_(PyObject **v) { return divide(v, true); }
TENSOR_OP(div, op_div, 2, 2, "input", "other", "rounding_mode")
TENSOR_OP(divide, op_div, 2, 2, "input", "other", "rounding_mode")
TENSOR_SIGNATURE(div_, 2, 2, "input", "other", "rounding_mode")
TENSOR_METHOD(div_, op_div_)

/* ---- clamp, where, masked_fill ---- */

/* Bounds that are numbers pass no gradient where they are met; tensors share it, as maximum does. */
static simt_status clamp_between(tensor *self, const tensor_operand *low,
                                 const tensor_operand *high, bool inplace, tensor **out) {
    bool tensors = (low && low->t) || (high && high->t);
    if (low && high && !tensors) {
        tensor_operand in[3] = {{self}, *low, *high};
        return inplace ? grad_elementwise_inplace(OP_CLIP, in, 3, NULL)
                       : grad_elementwise(OP_CLIP, in, 3, NULL, out);
    }
    tensor *at = self;
    simt_status s = SIMT_OK;
    for (int i = 0; i < 2 && s == SIMT_OK; i++) {
        const tensor_operand *bound = i ? high : low;
        if (!bound) continue;
        array_op op = i         ? (tensors ? OP_MINIMUM : OP_CLIP_HIGH)
                      : tensors ? OP_MAXIMUM
                                : OP_CLIP_LOW;
        tensor_operand in[2] = {{at}, *bound};
        tensor *next = at;
        s = inplace ? grad_elementwise_inplace(op, in, 2, NULL)
                    : grad_elementwise(op, in, 2, NULL, &next);
        if (at != self && next != at) tensor_unref(at);
        at = next;
    }
    if (!inplace) *out = at;
    return s;
}

static PyObject *clamp(PyObject **v, bool inplace) {
    SELF(v, "clamp");
    bool low = v[1] && v[1] != Py_None, high = v[2] && v[2] != Py_None;
    if (!low && !high) {
        PyErr_SetString(PyExc_RuntimeError,
                        "torch.clamp: At least one of 'min' or 'max' must not be None");
        return NULL;
    }
    tensor_value a = {0}, b = {0};
    if (low && !tensor_need_operand(v[1], "clamp", &a)) return NULL;
    if (high && !tensor_need_operand(v[2], "clamp", &b)) {
        tensor_operand_done(&a);
        return NULL;
    }
    tensor *out = NULL;
    simt_status s = clamp_between(self, low ? &a.v : NULL, high ? &b.v : NULL, inplace, &out);
    tensor_operand_done(&a);
    tensor_operand_done(&b);
    return inplace ? tensor_same(s, v[0]) : tensor_result(s, out);
}
static PyObject *op_clamp(PyObject **v) { return clamp(v, false); }
static PyObject *op_clamp_(PyObject **v) { return clamp(v, true); }
static PyObject *op_clamp_min(PyObject **v) {
    return clamp((PyObject *[3]){v[0], v[1], NULL}, false);
}
static PyObject *op_clamp_max(PyObject **v) {
    return clamp((PyObject *[3]){v[0], NULL, v[1]}, false);
}
TENSOR_OP(clamp, op_clamp, 1, 3, "input", "min", "max")
TENSOR_OP(clip, op_clamp, 1, 3, "input", "min", "max")
TENSOR_OP(clamp_min, op_clamp_min, 2, 2, "input", "min")
TENSOR_OP(clamp_max, op_clamp_max, 2, 2, "input", "max")
TENSOR_SIGNATURE(clamp_, 1, 3, "input", "min", "max")
TENSOR_METHOD(clamp_, op_clamp_)
TENSOR_SIGNATURE(clip_, 1, 3, "input", "min", "max")
TENSOR_METHOD(clip_, op_clamp_)

static PyObject *where(PyObject *condition, PyObject *x, PyObject *y) {
    tensor *c = tensor_arg(condition, "where", "condition", 1);
    tensor_value a, b;
    if (!c || !tensor_need_operand(x, "where", &a)) return NULL;
    if (!tensor_need_operand(y, "where", &b)) {
        tensor_operand_done(&a);
        return NULL;
    }
    tensor_operand in[3] = {{c}, a.v, b.v};
    tensor *out = NULL;
    simt_status s = SIMT_OK;
    if (c->a->dt != DT_BOOL && c->a->dt != DT_U8)
        s = status_fail(
            SIMT_ERR_RUNTIME,
            "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
            dtype_torch_name(c->a->dt));
    else
        s = grad_elementwise(OP_WHERE, in, 3, NULL, &out);
    tensor_operand_done(&a);
    tensor_operand_done(&b);
    return tensor_result(s, out);
}
static PyObject *op_where(PyObject **v) { /* condition, input, other */
    if (v[1] && v[2]) return where(v[0], v[1], v[2]);
    PyObject *name = PyUnicode_FromString("nonzero");
    PyObject *method = name ? PyObject_GetAttr(v[0], name) : NULL;
    PyObject *kwargs = method ? Py_BuildValue("{sO}", "as_tuple", Py_True) : NULL,
             *args = PyTuple_New(0);
    PyObject *r = kwargs && args ? PyObject_Call(method, args, kwargs) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(method);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    return r;
}
TENSOR_SIGNATURE(where, 1, 3, "condition", "input", "other")
TENSOR_FUNCTION(where, op_where) static PyObject *op_where_method(PyObject **v) {
    return where(v[1], v[0], v[2]);
}
TENSOR_SIGNATURE(where_method, 3, 3, "input", "condition", "other")
TENSOR_METHOD(where_method, op_where_method)

static PyObject *op_masked_fill(PyObject **v) {
    SELF(v, "masked_fill");
    tensor *mask = tensor_arg(v[1], "masked_fill", "mask", 2);
    tensor_value value;
    if (!mask || !tensor_need_operand(v[2], "masked_fill", &value)) return NULL;
    tensor *number = NULL, *out = NULL;
    simt_status s = SIMT_OK;
    if (value.v.t && value.v.t->a->ndim)
        s = status_fail(SIMT_ERR_RUNTIME,
                        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
                        "with %d dimension(s).",
                        value.v.t->a->ndim);
    else if (value.v.t)
        s = grad_cast(value.v.t, self->a->dt, &number); /* the tensor's type stays */
    else if (value.v.s.kind == 'F' && !dtype_is_float(self->a->dt))
        s = status_fail(SIMT_ERR_RUNTIME, "value cannot be converted to type %s without overflow",
                        dtype_table[self->a->dt].name);
    tensor_operand in[3] = {{mask}, number ? (tensor_operand){number} : value.v, {self}};
    if (s == SIMT_OK) s = grad_elementwise(OP_WHERE, in, 3, NULL, &out);
    tensor_unref(number);
    tensor_operand_done(&value);
    return tensor_result(s, out);
}
static PyObject *op_masked_fill_(PyObject **v) {
    PyObject *filled = op_masked_fill(v);
    if (!filled) return NULL;
    tensor_operand value = {tensor_of(filled)};
    simt_status s = grad_copy_into(tensor_of(v[0]), &value);
    Py_DECREF(filled);
    return tensor_same(s, v[0]);
}
TENSOR_OP(masked_fill, op_masked_fill, 3, 3, "input", "mask", "value")
TENSOR_SIGNATURE(masked_fill_, 3, 3, "input", "mask", "value")
TENSOR_METHOD(masked_fill_, op_masked_fill_)

/* ---- fused forms ---- */

static PyObject *fused(array_op op, PyObject **v, PyObject *factor, bool inplace,
                       const char *name) {
    SELF(v, name);
    double s0;
    if (!tensor_double_arg(factor, 1, "value", &s0)) return NULL;
    tensor *b = tensor_arg(v[1], name, "tensor1", 2);
    tensor *c = b && op != OP_LERP ? tensor_arg(v[2], name, "tensor2", 3) : NULL;
    if (!b || (op != OP_LERP && !c)) return NULL;
    if (op == OP_ADDCMUL && s0 != floor(s0) && !dtype_is_float(self->a->dt) &&
        !dtype_is_float(b->a->dt) && !dtype_is_float(c->a->dt))
        return PyErr_Format(PyExc_RuntimeError,
                            "For integral input tensors, argument value must not be a floating "
                            "point number.");
    tensor_operand in[3] = {{self}, {b}, {c}};
    grad_options o = {.scalars = &s0, .nscalars = 1};
    tensor *out = NULL;
    int n = op == OP_LERP ? 2 : 3;
    if (inplace) return tensor_same(grad_elementwise_inplace(op, in, n, &o), v[0]);
    return tensor_result(grad_elementwise(op, in, n, &o, &out), out);
}
static PyObject *op_addcmul(PyObject **v) { return fused(OP_ADDCMUL, v, v[3], false, "addcmul"); }
static PyObject *op_addcmul_(PyObject **v) { return fused(OP_ADDCMUL, v, v[3], true, "addcmul_"); }
static PyObject *op_addcdiv(PyObject **v) { return fused(OP_ADDCDIV, v, v[3], false, "addcdiv"); }
static PyObject *op_addcdiv_(PyObject **v) { return fused(OP_ADDCDIV, v, v[3], true, "addcdiv_"); }
static PyObject *lerp(PyObject **v, bool inplace) {
    if (!tensor_check(v[2])) return fused(OP_LERP, v, v[2], inplace, "lerp");
    PyObject *span = tensor_apply(OP_SUBTRACT, v[1], v[0], "lerp");
    PyObject *part = span ? tensor_apply(OP_MULTIPLY, span, v[2], "lerp") : NULL;
    PyObject *r = !part     ? NULL
                  : inplace ? tensor_apply_inplace(OP_ADD, v[0], part, "lerp_")
                            : tensor_apply(OP_ADD, v[0], part, "lerp");
    Py_XDECREF(span);
    Py_XDECREF(part);
    return r;
}
static PyObject *op_lerp(PyObject **v) { return lerp(v, false); }
static PyObject *op_lerp_(PyObject **v) { return lerp(v, true); }
TENSOR_OP(addcmul, op_addcmul, 3, 3, "input", "tensor1", "tensor2", "value")
TENSOR_OP(addcdiv, op_addcdiv, 3, 3, "input", "tensor1", "tensor2", "value")
TENSOR_OP(lerp, op_lerp, 3, 3, "input", "end", "weight")
TENSOR_SIGNATURE(addcmul_, 3, 3, "input", "tensor1", "tensor2", "value")
TENSOR_METHOD(addcmul_, op_addcmul_)
TENSOR_SIGNATURE(addcdiv_, 3, 3, "input", "tensor1", "tensor2", "value")
TENSOR_METHOD(addcdiv_, op_addcdiv_)
TENSOR_SIGNATURE(lerp_, 3, 3, "input", "end", "weight")
TENSOR_METHOD(lerp_, op_lerp_)

/* ---- filling ---- */

static PyObject *fill(PyObject *self, PyObject *value) {
    tensor_value v;
    if (!tensor_need_operand(value, "fill_", &v)) return NULL;
    simt_status s = grad_copy_into(tensor_of(self), &v.v);
    tensor_operand_done(&v);
    return tensor_same(s, self);
}
static PyObject *op_fill_(PyObject **v) {
    tensor_value value;
    if (!tensor_need_operand(v[1], "fill_", &value)) return NULL;
    int ndim = value.v.t ? value.v.t->a->ndim : 0;
    tensor_operand_done(&value);
    if (ndim)
        return PyErr_Format(PyExc_RuntimeError,
                            "fill_ only supports 0-dimension value tensor but got tensor with %d "
                            "dimensions.",
                            ndim);
    return fill(v[0], v[1]);
}
static PyObject *method_zero_body(PyObject *self, PyObject *unused) {
    tensor_operand zero = {NULL, {.kind = 'I'}};
    return tensor_same(grad_copy_into(tensor_of(self), &zero), self);
}
SECTION_FUNCTION(method_zero_, method_zero_body)
static PyObject *op_copy_(PyObject **v) { return fill(v[0], v[1]); }
TENSOR_SIGNATURE(fill_, 2, 2, "input", "value")
TENSOR_METHOD(fill_, op_fill_)
TENSOR_SIGNATURE(copy_, 2, 3, "input", "src", "non_blocking")
TENSOR_METHOD(copy_, op_copy_)

static PyObject *op_dropout(PyObject **v) { /* input, p, training, channels */
    SELF(v, "dropout");
    double p;
    bool training, channels;
    if (!tensor_double_arg(v[1], 0.5, "p", &p) || !tensor_bool_arg(v[2], true, &training) ||
        !tensor_bool_arg(v[3], false, &channels))
        return NULL;
    if (v[1] == Py_None) {
        PyErr_SetString(PyExc_TypeError, "dropout(): p must be a number, not None");
        return NULL;
    }
    if (!(p >= 0 && p <= 1)) {
        PyErr_Format(PyExc_ValueError, "dropout probability has to be between 0 and 1, but got %S",
                     v[1]);
        return NULL;
    }
    if (!training || p == 0) return Py_NewRef(v[0]);
    tensor *out = NULL;
    return tensor_result(grad_dropout(self, p, tensor_generator_state(NULL), channels, &out), out);
}
TENSOR_SIGNATURE(dropout, 1, 4, "input", "p", "train", "channels")
TENSOR_FUNCTION(dropout, op_dropout)

/* _elementwise(row, operands, scalars): any row of the table by its name. */
static PyObject *elementwise_body(PyObject *module, PyObject *args) {
    const char *row;
    PyObject *operands, *numbers;
    if (!PyArg_ParseTuple(args, "sO!O!:_elementwise", &row, &PyTuple_Type, &operands, &PyTuple_Type,
                          &numbers))
        return NULL;
    array_op op = array_op_find(row);
    Py_ssize_t n = PyTuple_GET_SIZE(operands), m = PyTuple_GET_SIZE(numbers);
    if (op == ARRAY_OP_COUNT || array_op_table[op].kind != OP_KIND_EW ||
        n != array_op_table[op].arity || m > 4)
        return PyErr_Format(PyExc_ValueError, "no elementwise row '%s' of %zd operands", row, n);
    tensor_value values[3] = {{{0}}};
    tensor_operand in[3];
    double scalars[4];
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        ok = tensor_need_operand(PyTuple_GET_ITEM(operands, i), row, &values[i]);
        in[i] = values[i].v;
    }
    for (Py_ssize_t i = 0; ok && i < m; i++) {
        scalars[i] = binding_double(PyTuple_GET_ITEM(numbers, i));
        ok = !PyErr_Occurred();
    }
    grad_options o = {.scalars = scalars, .nscalars = (int)m};
    tensor *out = NULL;
    PyObject *r = NULL;
    if (ok) r = tensor_result(grad_elementwise(op, in, (int)n, &o, &out), out);
    for (int i = 0; i < 3; i++) tensor_operand_done(&values[i]);
    return r;
}
SECTION_FUNCTION(elementwise, elementwise_body)

/* ---- tables ---- */

PyMethodDef tensor_math_methods[] = {METHOD_ENTRY(round),
                                     METHOD_ENTRY(polygamma),
                                     {"round_", method_round_, METH_NOARGS, NULL},
                                     METHOD_ENTRY(bitwise_not),
                                     METHOD_ENTRY(add),
                                     METHOD_ENTRY(add_),
                                     METHOD_ENTRY(sub),
                                     METHOD_ENTRY(sub_),
                                     METHOD_ENTRY(subtract),
                                     METHOD_ENTRY(div),
                                     METHOD_ENTRY(div_),
                                     METHOD_ENTRY(divide),
                                     METHOD_ENTRY(clamp),
                                     METHOD_ENTRY(clamp_),
                                     METHOD_ENTRY(clip),
                                     METHOD_ENTRY(clip_),
                                     METHOD_ENTRY(clamp_min),
                                     METHOD_ENTRY(clamp_max),
                                     FAST("where", method_where_method),
                                     METHOD_ENTRY(masked_fill),
                                     METHOD_ENTRY(masked_fill_),
                                     METHOD_ENTRY(addcmul),
                                     METHOD_ENTRY(addcmul_),
                                     METHOD_ENTRY(addcdiv),
                                     METHOD_ENTRY(addcdiv_),
                                     METHOD_ENTRY(lerp),
                                     METHOD_ENTRY(lerp_),
                                     METHOD_ENTRY(fill_),
                                     METHOD_ENTRY(copy_),
                                     {"zero_", method_zero_, METH_NOARGS, NULL},
                                     {NULL}};

PyMethodDef tensor_math_functions[] = {FUNCTION_ENTRY(round),
                                       FUNCTION_ENTRY(polygamma),
                                       FUNCTION_ENTRY(bitwise_not),
                                       FUNCTION_ENTRY(add),
                                       FUNCTION_ENTRY(sub),
                                       FUNCTION_ENTRY(subtract),
                                       FUNCTION_ENTRY(div),
                                       FUNCTION_ENTRY(divide),
                                       FUNCTION_ENTRY(clamp),
                                       FUNCTION_ENTRY(clip),
                                       FUNCTION_ENTRY(clamp_min),
                                       FUNCTION_ENTRY(clamp_max),
                                       FUNCTION_ENTRY(where),
                                       FUNCTION_ENTRY(masked_fill),
                                       FUNCTION_ENTRY(addcmul),
                                       FUNCTION_ENTRY(addcdiv),
                                       FUNCTION_ENTRY(lerp),
                                       FUNCTION_ENTRY(silu),
                                       FUNCTION_ENTRY(leaky_relu),
                                       FUNCTION_ENTRY(dropout),
                                       {"_elementwise", elementwise, METH_VARARGS, NULL},
                                       {NULL}};
