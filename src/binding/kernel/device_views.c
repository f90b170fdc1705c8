/* Views of DeviceNDArray: other shapes, axes, types and parts of the same memory. What raises, and in which words,
 * follows Numba's device arrays. */
#include "binding/kernel/device_methods.h"

#include <string.h>

static device_array *self_of(PyObject *o) { return (device_array *)o; }

static bool order_argument(PyObject *o, char *order) {
    *order = 'C';
    if (!o || o == Py_None) return true;
    for (const char *known = "CFA"; *known; known++)
        if (binding_is_text(o, (char[]){*known, 0})) return *order = *known, true;
    PyErr_Format(PyExc_TypeError, "order must be 'C', 'F' or 'A', not %R", o);
    return false;
}

/* A view of contiguous memory in another shape. */
static PyObject *in_shape(device_array *d, const int64_t *shape, int ndim, char order) {
    int64_t reversed[PY_MAX_NDIM], strides[PY_MAX_NDIM];
    if (order == 'A')
        order = kernel_is_contiguous(d, 'F') && !kernel_is_contiguous(d, 'C') ? 'F' : 'C';
    if (!kernel_is_contiguous(d, order)) {
        PyErr_SetString(PyExc_NotImplementedError, "reshape would require copy");
        return NULL;
    }
    for (int i = 0; i < ndim; i++) reversed[i] = shape[order == 'C' ? i : ndim - 1 - i];
    binding_c_strides((size_t)kernel_item_bytes(d), reversed, ndim, strides);
    for (int i = 0; order == 'F' && i < ndim / 2; i++) {
        int64_t s = strides[i];
        strides[i] = strides[ndim - 1 - i];
        strides[ndim - 1 - i] = s;
    }
    return (PyObject *)kernel_device_view(d, shape, strides, ndim, d->offset);
}

PyObject *kernel_view_reshape(PyObject *self, PyObject *args, PyObject *kwargs) {
    device_array *d = self_of(self);
    int64_t shape[ARRAY_MAX_NDIM], known = 1;
    int ndim, unknown = -1;
    char order;
    PyObject *const *items = &PyTuple_GET_ITEM(args, 0);
    PyObject *o;
    if (binding_item(kwargs, "order", &o) < 0) return NULL;
    bool known_words = !kwargs || PyDict_GET_SIZE(kwargs) == (o != NULL);
    bool ok = known_words && order_argument(o, &order);
    Py_XDECREF(o);
    if (!known_words) PyErr_SetString(PyExc_TypeError, "unknown keyword arguments to reshape");
    if (!ok || !binding_args_to_shape(items, PyTuple_GET_SIZE(args), "shape", shape, &ndim))
        return NULL;
    if (ndim > PY_MAX_NDIM)
        return PyErr_Format(PyExc_ValueError, "at most %d dimensions", PY_MAX_NDIM);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] >= 0) {
            if (__builtin_mul_overflow(known, shape[i], &known)) known = -1;
        } else if (unknown >= 0) {
            PyErr_SetString(PyExc_ValueError, "can only specify one unknown dimension");
            return NULL;
        } else {
            unknown = i;
        }
    }
    int64_t size = kernel_size(d);
    if (unknown >= 0 && known > 0 && size % known == 0) {
        shape[unknown] = size / known;
        known = size;
    }
    if (known != size || (unknown >= 0 && shape[unknown] < 0)) {
        PyErr_SetString(PyExc_ValueError, "total size of new array must be unchanged");
        return NULL;
    }
    return in_shape(d, shape, ndim, order);
}

PyObject *kernel_view_ravel(PyObject *self, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwnames) {
    static const char *const names[] = {"order", "stream"};
    PyObject *v[2];
    char order;
    if (!binding_parse_args("ravel", args, n, kwnames, names, 2, 2, 0, v) ||
        !order_argument(v[0], &order))
        return NULL;
    int64_t size = kernel_size(self_of(self));
    device_array *d = self_of(self);
    if (!kernel_is_contiguous(d, 'C') && !kernel_is_contiguous(d, 'F')) {
        PyErr_SetString(PyExc_NotImplementedError, "operation requires copying");
        return NULL;
    }
    return in_shape(d, &size, 1, order);
}

PyObject *kernel_view_as(PyObject *self, PyObject *o) {
    device_array *d = self_of(self);
    py_scalar type;
    const kernel_record *record;
    if (!kernel_element_of_object(o, &type, &record)) return NULL;
    int64_t old = kernel_item_bytes(d);
    int64_t now = record ? record->size : (int64_t)py_scalar_bytes(type);
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM];
    memcpy(shape, d->shape, sizeof shape);
    memcpy(strides, d->strides, sizeof strides);
    if (old != now) {
        if (d->ndim == 0 || !kernel_is_contiguous(d, 'C')) {
            PyErr_SetString(PyExc_ValueError, "To change to a dtype of a different size, the array "
                                              "must be C-contiguous");
            return NULL;
        }
        int64_t bytes = shape[d->ndim - 1] * old;
        if (bytes % now) {
            PyErr_SetString(PyExc_ValueError,
                            "When changing to a larger dtype, its size must be a divisor of the "
                            "total size in bytes of the last axis of the array.");
            return NULL;
        }
        shape[d->ndim - 1] = bytes / now;
        strides[d->ndim - 1] = now;
    }
    device_array *made = kernel_device_view(d, shape, strides, d->ndim, d->offset);
    if (made) made->type = type;
    if (made) made->record = record;
    return (PyObject *)made;
}

PyObject *kernel_view_squeeze(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames) {
    static const char *const names[] = {"axis", "stream"};
    PyObject *v[2];
    device_array *d = self_of(self);
    uint32_t mask;
    bool all;
    if (!binding_parse_args("squeeze", args, n, kwnames, names, 2, 2, 0, v) ||
        !binding_to_axes(v[0], d->ndim, FACE_NUMPY, &mask, &all))
        return NULL;
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < d->ndim; i++) {
        if ((mask >> i & 1) && d->shape[i] == 1) continue;
        if ((mask >> i & 1) && !all) {
            PyErr_SetString(PyExc_ValueError,
                            "cannot select an axis to squeeze out which has size not equal to one");
            return NULL;
        }
        shape[ndim] = d->shape[i];
        strides[ndim++] = d->strides[i];
    }
    return (PyObject *)kernel_device_view(d, shape, strides, ndim, d->offset);
}

static bool axes_argument(PyObject *o, int ndim, int *axes) {
    for (int i = 0; i < ndim; i++) axes[i] = ndim - 1 - i;
    if (!o || o == Py_None) return true;
    int64_t given[ARRAY_MAX_NDIM];
    int count;
    uint32_t seen = 0;
    if (!binding_to_shape(o, "axes", given, &count)) return false;
    for (int i = 0; i < count && i < ndim; i++)
        if (given[i] >= 0 && given[i] < ndim) {
            seen |= 1u << given[i];
            axes[i] = (int)given[i];
        }
    if (count == ndim && seen == (1u << ndim) - 1) return true;
    PyErr_Format(PyExc_ValueError, "invalid axes list %R", o);
    return false;
}

/* A copy in the new order, as Numba's; the array itself when the order is the old one. */
PyObject *kernel_view_transpose(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                PyObject *kwnames) {
    static const char *const names[] = {"axes"};
    PyObject *v[1];
    device_array *d = self_of(self);
    int axes[PY_MAX_NDIM];
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM];
    bool same = true;
    if (!binding_parse_args("transpose", args, n, kwnames, names, 1, 1, 0, v) ||
        !axes_argument(v[0], d->ndim, axes))
        return NULL;
    for (int i = 0; i < d->ndim; i++) {
        shape[i] = d->shape[axes[i]];
        strides[i] = d->strides[axes[i]];
        same &= axes[i] == i;
    }
    if (same) return Py_NewRef(self);
    device_array *turned = kernel_device_view(d, shape, strides, d->ndim, d->offset);
    device_array *made =
        turned ? kernel_device_new(d->type, d->record, shape, NULL, d->ndim) : NULL;
    PyObject *from = made ? kernel_host_view(turned, NULL) : NULL;
    bool ok = from && kernel_copy_host(made, from, false);
    Py_XDECREF(from);
    Py_XDECREF(turned);
    if (!ok) Py_CLEAR(made);
    return (PyObject *)made;
}

/* Pieces of `section` elements, the last one shorter. */
PyObject *kernel_view_split(PyObject *self, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwnames) {
    static const char *const names[] = {"section", "stream"};
    PyObject *v[2];
    device_array *d = self_of(self);
    int64_t section;
    if (!binding_parse_args("split", args, n, kwnames, names, 2, 2, 1, v) ||
        !binding_to_int64(v[0], &section))
        return NULL;
    if (d->ndim != 1 || section < 1 || d->strides[0] != kernel_item_bytes(d)) {
        PyErr_SetString(PyExc_ValueError, d->ndim != 1  ? "only support 1d array"
                                          : section < 1 ? "a section has at least one element"
                                                        : "only support unit stride");
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (int64_t at = 0; list && at < d->shape[0]; at += section) {
        int64_t count = d->shape[0] - at < section ? d->shape[0] - at : section;
        PyObject *piece =
            (PyObject *)kernel_device_view(d, &count, NULL, 1, d->offset + at * d->strides[0]);
        if (!piece || PyList_Append(list, piece) != 0) Py_CLEAR(list);
        Py_XDECREF(piece);
    }
    PyObject *pieces = list ? PyObject_GetIter(list) : NULL;
    Py_XDECREF(list);
    return pieces;
}
