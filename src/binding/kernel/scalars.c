/* What types of elements Python's objects mean: dtypes, numba's types, names, buffer formats. */
#include "binding/kernel/kernel.h"

#include <string.h>

bool kernel_scalar_of_dtype(dtype dt, py_scalar *out) {
    for (int s = PY_S_BOOL; s <= PY_S_F64; s++)
        if (py_scalar_dtype((py_scalar)s) == dt) return *out = (py_scalar)s, true;
    return false;
}

static bool complex_of_name(const char *name, py_scalar *out) {
    static const struct {
        const char *name;
        py_scalar s;
    } names[] = {{"complex64", PY_S_C64}, {"csingle", PY_S_C64},  {"c8", PY_S_C64},
                 {"F", PY_S_C64},         {"complex", PY_S_C128}, {"complex128", PY_S_C128},
                 {"cdouble", PY_S_C128},  {"c16", PY_S_C128},     {"D", PY_S_C128},
                 {"complex_", PY_S_C128}};
    if (*name == '<' || *name == '=' || *name == '|') name++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) return *out = names[i].s, true;
    return false;
}

/* A name, numpy.complex64 (the type), numpy.dtype("complex64"), complex; false: none, or an exception that
 * says that memory ended. */
static bool complex_of_object(PyObject *o, py_scalar *out) {
    if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8(o);
        return text ? complex_of_name(text, out) : (binding_forgive(), false);
    }
    if (PyType_Check(o)) {
        const char *name = ((PyTypeObject *)o)->tp_name;
        if (o == (PyObject *)&PyComplex_Type) return *out = PY_S_C128, true;
        return strncmp(name, "numpy.", 6) == 0 && complex_of_name(name + 6, out);
    }
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.dtype", 11) != 0) return false;
    PyObject *text = PyObject_GetAttrString(o, "str");
    const char *name = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    bool found = name && complex_of_name(name, out);
    Py_XDECREF(text);
    binding_forgive();
    return found;
}

static bool find_scalar(PyObject *o, py_scalar *out) {
    PyObject *number;
    if (binding_attribute(o, "_simt_scalar", &number) < 0 && !binding_forgive()) return false;
    if (number) {
        long value = PyLong_AsLong(number);
        Py_DECREF(number);
        if (value > PY_S_NONE && value < PY_SCALAR_COUNT) return *out = (py_scalar)value, true;
    }
    if (!binding_forgive()) return false;
    if (complex_of_object(o, out)) return true;
    dtype dt;
    if (PyErr_Occurred() || !binding_to_dtype(o, &dt)) return false;
    if (kernel_scalar_of_dtype(dt, out)) return true;
    PyErr_Format(PyExc_TypeError, "kernels and device arrays have no %s", dtype_table[dt].name);
    return false;
}

bool kernel_scalar_of_object(PyObject *o, py_scalar *out) {
    static struct { /* by identity; the objects are kept */
        PyObject *o;
        py_scalar s;
    } cache[32];
    size_t slot = ((uintptr_t)o >> 4 ^ (uintptr_t)o >> 9) % 32;
    if (cache[slot].o == o) return *out = cache[slot].s, true;
    if (!find_scalar(o, out)) return false;
    PyObject *before = cache[slot].o;
    cache[slot].o = Py_NewRef(o);
    cache[slot].s = *out;
    Py_XDECREF(before); /* may run Python code, and so other threads: when the slot is whole */
    return true;
}

bool kernel_scalar_of_format(const char *format, Py_ssize_t itemsize, py_scalar *out) {
    dtype dt;
    if (format && (*format == '@' || *format == '=' || *format == '<')) format++;
    if (format && format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && !format[2])
        return *out = format[1] == 'f' ? PY_S_C64 : PY_S_C128, true;
    return binding_format_to_dtype(format, itemsize, &dt) && kernel_scalar_of_dtype(dt, out);
}

bool kernel_element_of_object(PyObject *o, py_scalar *out, const kernel_record **record) {
    *record = kernel_record_of_object(o);
    *out = PY_S_NONE;
    return *record || (!PyErr_Occurred() && kernel_scalar_of_object(o, out));
}

PyObject *kernel_device_dtype(const device_array *d) {
    static PyObject *made[PY_SCALAR_COUNT];
    py_scalar s = d->type;
    if (d->record) return Py_NewRef(d->record->dtype);
    if (!made[s]) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        made[s] = numpy ? PyObject_CallMethod(numpy, "dtype", "s", py_scalar_name(s)) : NULL;
        Py_XDECREF(numpy);
    }
    return Py_XNewRef(made[s]);
}
