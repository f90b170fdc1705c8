/* Structured dtypes and those of strings: their descriptions for signatures (frontend.h), made once per dtype
 * and kept. */
#include "base/heap.h"
#include "binding/kernel/kernel.h"

#include <string.h>

/* Structured, or of strings: NumPy's kinds S and U. */
static bool is_described(PyObject *dtype) {
    if (strncmp(Py_TYPE(dtype)->tp_name, "numpy.dtype", 11) != 0) return false;
    PyObject *names, *kind = NULL;
    if (binding_attribute(dtype, "names", &names) < 0 ||
        binding_attribute(dtype, "kind", &kind) < 0)
        return Py_XDECREF(names), false;
    bool is = names && names != Py_None;
    if (kind && PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) == 1)
        is |= PyUnicode_READ_CHAR(kind, 0) == 'S' || PyUnicode_READ_CHAR(kind, 0) == 'U';
    Py_XDECREF(names);
    Py_XDECREF(kind);
    return is;
}

static kernel_record *new_record(PyObject *dtype) {
    PyObject *module = PyImport_ImportModule("simt.numba.core.types");
    PyObject *text = module ? PyObject_CallMethod(module, "record_text", "O", dtype) : NULL;
    PyObject *size = text ? PyObject_GetAttrString(dtype, "itemsize") : NULL;
    kernel_record *r = size ? heap_alloc(sizeof *r) : NULL;
    if (size && !r) PyErr_NoMemory();
    if (r) *r = (kernel_record){Py_NewRef(dtype), Py_NewRef(text), PyLong_AsLongLong(size)};
    Py_XDECREF(module);
    Py_XDECREF(text);
    Py_XDECREF(size);
    return r;
}

/* Whether it was made with align=True: dtypes of the same fields are equal without regard to that. */
static bool is_aligned(PyObject *dtype) {
    PyObject *flag;
    bool is = binding_attribute(dtype, "isalignedstruct", &flag) > 0 && flag == Py_True;
    Py_XDECREF(flag);
    return is;
}

static const kernel_record *record_of(PyObject *dtype) {
    static PyObject *all[2]; /* of packed and of aligned ones: dtype -> capsule; they are few */
    PyObject **at = &all[is_aligned(dtype)];
    if (PyErr_Occurred()) return NULL;
    if (!*at && !(*at = PyDict_New())) return NULL;
    PyObject *known = *at;
    PyObject *capsule = PyDict_GetItemWithError(known, dtype);
    if (capsule) return PyCapsule_GetPointer(capsule, NULL);
    kernel_record *r = PyErr_Occurred() ? NULL : new_record(dtype);
    capsule = r ? PyCapsule_New(r, NULL, NULL) : NULL;
    bool kept = capsule && PyDict_SetItem(known, dtype, capsule) == 0;
    Py_XDECREF(capsule);
    if (kept || !r) return r;
    Py_DECREF(r->dtype);
    Py_DECREF(r->text);
    heap_free(r);
    return NULL;
}

const kernel_record *kernel_record_of_object(PyObject *o) {
    PyObject *dtype = NULL;
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.dtype", 11) == 0) {
        dtype = Py_NewRef(o);
    } else {
        bool value = PyObject_CheckBuffer(o) || kernel_is_device_array(o);
        dtype = PyObject_GetAttrString(o, value ? "dtype" : "_simt_record");
    }
    if (!binding_forgive()) return NULL;
    const kernel_record *r = dtype && is_described(dtype) ? record_of(dtype) : NULL;
    Py_XDECREF(dtype);
    return r;
}
