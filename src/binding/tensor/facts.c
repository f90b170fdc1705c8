/* What a tensor is, and its values for Python, NumPy and others (DLPack). */
#include <string.h>

#include "binding/tensor/device.h"

static PyObject *op_size(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    int axis;
    if (!v[1] || v[1] == Py_None) return tensor_size_object(t->a->shape, t->a->ndim);
    if (!tensor_dim(v[1], t->a->ndim, &axis)) return NULL;
    return t->a->ndim ? PyLong_FromLongLong(t->a->shape[axis]) : tensor_size_object(NULL, 0);
}
TENSOR_SIGNATURE(size, 1, 2, "input", "dim")
TENSOR_METHOD(size, op_size)

static PyObject *op_stride(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    int64_t strides[ARRAY_MAX_NDIM];
    int axis;
    for (int i = 0; i < t->a->ndim; i++)
        strides[i] = t->a->strides[i] / (int64_t)dtype_bytes(t->a->dt);
    if (!v[1] || v[1] == Py_None) return binding_from_shape(strides, t->a->ndim);
    return tensor_dim(v[1], t->a->ndim, &axis) ? PyLong_FromLongLong(strides[axis]) : NULL;
}
TENSOR_SIGNATURE(stride, 1, 2, "input", "dim")
TENSOR_METHOD(stride, op_stride)

static PyObject *method_dim(PyObject *o, PyObject *unused) {
    return PyLong_FromLong(tensor_of(o)->a->ndim);
}
static PyObject *method_numel(PyObject *o, PyObject *unused) {
    return PyLong_FromLongLong(tensor_of(o)->a->size);
}
static PyObject *function_numel(PyObject *module, PyObject *o) {
    tensor *t = tensor_arg(o, "numel", "input", 1);
    return t ? PyLong_FromLongLong(t->a->size) : NULL;
}
static PyObject *method_element_size(PyObject *o, PyObject *unused) {
    return PyLong_FromSize_t(dtype_bytes(tensor_of(o)->a->dt));
}
static PyObject *method_storage_offset(PyObject *o, PyObject *unused) {
    const array *a = tensor_of(o)->a;
    return PyLong_FromLongLong(a->offset / (int64_t)dtype_bytes(a->dt));
}
static PyObject *op_is_contiguous(PyObject **v) {
    return PyBool_FromLong(array_is_contiguous(tensor_of(v[0])->a));
}
TENSOR_SIGNATURE(is_contiguous, 1, 1, "input", "memory_format")
TENSOR_METHOD(is_contiguous, op_is_contiguous)
static PyObject *method_is_floating_point(PyObject *o, PyObject *unused) {
    return PyBool_FromLong(dtype_is_float(tensor_of(o)->a->dt));
}
static PyObject *function_is_floating_point(PyObject *module, PyObject *o) {
    return tensor_arg(o, "is_floating_point", "input", 1) ? method_is_floating_point(o, NULL)
                                                          : NULL;
}
static PyObject *method_is_complex(PyObject *o, PyObject *unused) { Py_RETURN_FALSE; }
static PyObject *method_data_ptr_body(PyObject *o, PyObject *unused) {
    array *a = tensor_of(o)->a;
    return binding_ok(array_expose(a)) ? PyLong_FromVoidPtr(array_data(a)) : NULL;
}
SECTION_FUNCTION(method_data_ptr, method_data_ptr_body)
static PyObject *method_same_storage(PyObject *o, PyObject *other) {
    return PyBool_FromLong(tensor_check(other) &&
                           tensor_of(o)->a->store == tensor_of(other)->a->store);
}

/* ---- to Python and NumPy ---- */

static PyObject *method_item_body(PyObject *o, PyObject *unused) {
    array *a = tensor_of(o)->a;
    scalar s;
    if (a->size != 1)
        return PyErr_Format(PyExc_RuntimeError,
                            "a Tensor with %lld elements cannot be converted to Scalar",
                            (long long)a->size);
    return binding_ok(array_item(a, &s)) ? binding_from_scalar(s) : NULL;
}
SECTION_FUNCTION(method_item, method_item_body)
static PyObject *method_tolist_body(PyObject *o, PyObject *unused) {
    return binding_tolist(tensor_of(o)->a);
}
SECTION_FUNCTION(method_tolist, method_tolist_body)

static PyObject *method__to_bytes_body(PyObject *o, PyObject *unused) {
    array *a = tensor_of(o)->a;
    PyObject *bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(a->size * (int64_t)dtype_bytes(a->dt)));
    if (bytes && !binding_ok(array_copy_out(a, PyBytes_AS_STRING(bytes)))) Py_CLEAR(bytes);
    return bytes;
}
SECTION_FUNCTION(method__to_bytes, method__to_bytes_body)

static PyObject *op_numpy(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    bool force;
    if (!tensor_bool_arg(v[1], false, &force)) return NULL;
    if (t->requires_grad && !force)
        return PyErr_Format(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. "
                                                "Use tensor.detach().numpy() instead.");
    return binding_numpy_view(t->a, true);
}
TENSOR_SIGNATURE(numpy, 1, 1, "input", "force")
TENSOR_METHOD(numpy, op_numpy)

static PyObject *op___array__(PyObject **v) { /* dtype, copy */
    PyObject *r = op_numpy((PyObject *[2]){v[0], NULL});
    if (!r) return NULL;
    PyObject *cast = r;
    if (v[1] && v[1] != Py_None) {
        cast = PyObject_CallMethod(r, "astype", "(O)", v[1]);
        Py_DECREF(r);
    }
    if (cast && v[2] == Py_True && cast == r) {
        PyObject *copy = PyObject_CallMethod(cast, "copy", NULL);
        Py_DECREF(cast);
        return copy;
    }
    return cast;
}
TENSOR_SIGNATURE(__array__, 1, 2, "input", "dtype", "copy")
TENSOR_METHOD(__array__, op___array__)

static PyObject *op___dlpack__(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    if (t->requires_grad)
        return PyErr_Format(PyExc_BufferError,
                            "Can't export tensors that require gradient, use tensor.detach()");
    return binding_to_dlpack(t->a, false, v[2], v[3], v[4]);
}
TENSOR_SIGNATURE(__dlpack__, 1, 1, "input", "stream", "max_version", "dl_device", "copy")
TENSOR_METHOD(__dlpack__, op___dlpack__)
static PyObject *method___dlpack_device__(PyObject *o, PyObject *unused) {
    return Py_BuildValue("(ii)", 1, 0);
}

static PyObject *evaluate_all(PyObject *module, PyObject *unused) {
    if (!binding_ok(array_evaluate_all())) return NULL;
    Py_RETURN_NONE;
}

#define NOARGS(name, function) \
    { name, function, METH_NOARGS, NULL }
PyMethodDef tensor_facts_methods[] = {METHOD_ENTRY(size),
                                      METHOD_ENTRY(stride),
                                      NOARGS("dim", method_dim),
                                      NOARGS("ndimension", method_dim),
                                      NOARGS("numel", method_numel),
                                      NOARGS("nelement", method_numel),
                                      NOARGS("element_size", method_element_size),
                                      NOARGS("storage_offset", method_storage_offset),
                                      METHOD_ENTRY(is_contiguous),
                                      NOARGS("is_floating_point", method_is_floating_point),
                                      NOARGS("is_complex", method_is_complex),
                                      NOARGS("data_ptr", method_data_ptr),
                                      {"_same_storage", method_same_storage, METH_O, NULL},
                                      NOARGS("item", method_item),
                                      NOARGS("_to_bytes", method__to_bytes),
                                      NOARGS("tolist", method_tolist),
                                      METHOD_ENTRY(numpy),
                                      METHOD_ENTRY(__array__),
                                      METHOD_ENTRY(__dlpack__),
                                      NOARGS("__dlpack_device__", method___dlpack_device__),
                                      {NULL}};
PyMethodDef tensor_facts_functions[] = {
    {"numel", function_numel, METH_O, NULL},
    {"is_floating_point", function_is_floating_point, METH_O, NULL},
    NOARGS("_evaluate_all", evaluate_all),
    {NULL}};
