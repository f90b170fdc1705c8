/* Tensors of another type, on another device, as a copy; and the rules of types that Python asks for. */
#include <string.h>

#include "binding/tensor/device.h"

/* ---- casts and copies ---- */

PyObject *tensor_cast_object(PyObject *o, dtype dt, bool copy) {
    tensor *t = tensor_of(o), *out = NULL;
    if (t->a->dt == dt && !copy) return Py_NewRef(o);
    return tensor_result(t->a->dt == dt ? grad_clone(t, &out) : grad_cast(t, dt, &out), out);
}

#define CASTS(X)         \
    X(float, DT_F32)     \
    X(double, DT_F64)    \
    X(half, DT_F16)      \
    X(bfloat16, DT_BF16) \
    X(int, DT_I32) X(long, DT_I64) X(short, DT_I16) X(char, DT_I8) X(byte, DT_U8) X(bool, DT_BOOL)
#define X(name, dt)                                                                                \
    static PyObject *cast_##name(PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw) { \
        return IN_SECTION(tensor_cast_object(o, dt, false));                                       \
    }
CASTS(X)
#undef X

static PyObject *no_data(void) {
    PyErr_SetString(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    return NULL;
}

/* given: a device was. */
static PyObject *to_device(PyObject *o, dtype dt, bool given, bool meta, bool copy) {
    tensor *t = tensor_of(o);
    array *a;
    if (!given || meta == array_is_meta(t->a)) return tensor_cast_object(o, dt, copy);
    if (!meta) return no_data();
    return binding_ok(array_meta(dt, t->a->shape, t->a->ndim, &a)) ? tensor_wrap_array(a) : NULL;
}

/* to(dtype), to(device), to(other), to(device, dtype), non_blocking, copy */
static PyObject *op_to(PyObject **v) {
    PyObject *device = v[4], *type = v[5];
    bool copy;
    if (!tensor_bool_arg(v[6] ? v[6]
                         : v[3] && PyBool_Check(v[3]) && Py_IS_TYPE(v[1], &tensor_dtype_type)
                             ? v[3]
                             : NULL,
                         false, &copy))
        return NULL;
    if (v[1] && tensor_check(v[1])) {
        bool there = array_is_meta(tensor_of(v[1])->a);
        return to_device(v[0], tensor_of(v[1])->a->dt, true, there, copy);
    }
    if (v[1] && Py_IS_TYPE(v[1], &tensor_dtype_type))
        type = v[1];
    else if (v[1] && v[1] != Py_None)
        device = v[1];
    if (v[2] && Py_IS_TYPE(v[2], &tensor_dtype_type)) type = v[2];
    int dt;
    bool meta;
    if (!tensor_device_arg(device, &meta) || !tensor_dtype_arg(type, "to", &dt)) return NULL;
    return to_device(v[0], dt >= 0 ? (dtype)dt : tensor_of(v[0])->a->dt,
                     device && device != Py_None, meta, copy);
}
TENSOR_SIGNATURE(to, 1, 4, "input", "_1", "_2", "_3", "device", "dtype", "copy", "non_blocking",
                 "other", "memory_format")
TENSOR_METHOD(to, op_to)

static PyObject *op_type(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    if (!v[1] || v[1] == Py_None) return PyUnicode_FromString(tensor_type_name(t));
    if (PyUnicode_Check(v[1])) {
        for (int i = 0; i < DT_COUNT; i++) {
            char name[40];
            snprintf(name, sizeof name, "torch.%sTensor", dtype_torch_name((dtype)i));
            if (PyUnicode_CompareWithASCIIString(v[1], name) == 0)
                return tensor_cast_object(v[0], (dtype)i, false);
        }
        return PyErr_Format(PyExc_ValueError, "invalid type: '%U'", v[1]);
    }
    PyObject *typed = NULL; /* torch.FloatTensor has one */
    if (PyType_Check(v[1]) && binding_attribute(v[1], "dtype", &typed) < 0) return NULL;
    int dt;
    bool ok = tensor_dtype_arg(typed ? typed : v[1], "type", &dt);
    Py_XDECREF(typed);
    return ok ? tensor_cast_object(v[0], (dtype)dt, false) : NULL;
}
TENSOR_SIGNATURE(type, 1, 3, "input", "dtype", "non_blocking")
TENSOR_METHOD(type, op_type)

static PyObject *op_type_as(PyObject **v) {
    tensor *other = tensor_arg(v[1], "type_as", "other", 1);
    return other ? tensor_cast_object(v[0], other->a->dt, false) : NULL;
}
TENSOR_SIGNATURE(type_as, 2, 2, "input", "other")
TENSOR_METHOD(type_as, op_type_as)

static PyObject *method_cpu(PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
    return array_is_meta(tensor_of(o)->a) ? no_data() : Py_NewRef(o);
}
static PyObject *method_cuda(PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
    PyObject *cuda = PyUnicode_FromString("cuda");
    if (cuda) tensor_check_device(cuda);
    Py_XDECREF(cuda);
    return NULL;
}
static PyObject *op_clone(PyObject **v) {
    SELF(v, "clone");
    tensor *out = NULL;
    return tensor_result(grad_clone(self, &out), out);
}
TENSOR_OP(clone, op_clone, 1, 1, "input", "memory_format")
static PyObject *op_contiguous(PyObject **v) {
    tensor *t = tensor_of(v[0]), *out = NULL;
    if (array_is_contiguous(t->a)) return Py_NewRef(v[0]);
    return tensor_result(grad_contiguous(t, &out), out);
}
TENSOR_SIGNATURE(contiguous, 1, 1, "input", "memory_format")
TENSOR_METHOD(contiguous, op_contiguous)

/* ---- dtypes ---- */

static PyObject *promote_types(PyObject *module, PyObject *args) {
    PyObject *x, *y;
    int a, b;
    if (!PyArg_ParseTuple(args, "OO:promote_types", &x, &y)) return NULL;
    if (!tensor_dtype_arg(x, "promote_types", &a) || !tensor_dtype_arg(y, "promote_types", &b))
        return NULL;
    if (a < 0 || b < 0)
        return PyErr_Format(PyExc_TypeError, "promote_types() takes two dtypes, not None");
    const graph_type in[2] = {{.dt = (dtype)a}, {.dt = (dtype)b}};
    dtype compute, result;
    return binding_ok(
               graph_dtypes(OP_ADD, FACE_TORCH, in, 2, grad_default_float, &compute, &result))
               ? tensor_dtype_object(result)
               : NULL;
}
static PyObject *result_type(PyObject *module, PyObject *args) {
    graph_type in[2];
    for (int i = 0; i < 2; i++) {
        tensor_value v;
        if (PyTuple_GET_SIZE(args) != 2)
            return PyErr_Format(PyExc_TypeError, "result_type() takes 2 arguments");
        if (!tensor_need_operand(PyTuple_GET_ITEM(args, i), "result_type", &v)) return NULL;
        const array *a = v.v.t ? v.v.t->a : NULL;
        dtype weak = v.v.s.kind == 'F' ? DT_F64 : v.v.s.kind == 'B' ? DT_BOOL : DT_I64;
        in[i] = a ? (graph_type){a->dt, false, a->ndim == 0} : (graph_type){weak, true, false};
        tensor_operand_done(&v);
    }
    dtype compute, result;
    return binding_ok(
               graph_dtypes(OP_ADD, FACE_TORCH, in, 2, grad_default_float, &compute, &result))
               ? tensor_dtype_object(result)
               : NULL;
}
static PyObject *get_default_dtype(PyObject *module, PyObject *unused) {
    return tensor_dtype_object(grad_default_float);
}
static PyObject *set_default_dtype(PyObject *module, PyObject *o) {
    int dt;
    if (!tensor_dtype_arg(o, "set_default_dtype", &dt)) return NULL;
    if (dt < 0 || !dtype_is_float((dtype)dt))
        return PyErr_Format(PyExc_TypeError,
                            "only floating-point types are supported as the default type");
    grad_default_float = (dtype)dt;
    Py_RETURN_NONE;
}
#define NOARGS(name, function) \
    { name, function, METH_NOARGS, NULL }
PyMethodDef tensor_cast_methods[] = {
#define X(name, dt) FAST(#name, cast_##name),
    CASTS(X)
#undef X
        METHOD_ENTRY(to),
    METHOD_ENTRY(type),
    METHOD_ENTRY(type_as),
    FAST("cpu", method_cpu),
    FAST("pin_memory", method_cpu),
    FAST("cuda", method_cuda),
    METHOD_ENTRY(clone),
    METHOD_ENTRY(contiguous),
    {NULL}};
PyMethodDef tensor_cast_functions[] = {FUNCTION_ENTRY(clone),
                                       {"promote_types", promote_types, METH_VARARGS, NULL},
                                       {"result_type", result_type, METH_VARARGS, NULL},
                                       NOARGS("get_default_dtype", get_default_dtype),
                                       {"set_default_dtype", set_default_dtype, METH_O, NULL},
                                       {NULL}};
