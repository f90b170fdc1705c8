/* Statuses become Python exceptions: the text, then the user's position, then a hint in the user's
 * language, each on a line of its own. */
#include "binding/common/binding.h"

#include <stdlib.h>
#include <string.h>

/* SIMT_LANG, else the locale; the same rule as simt._lang. */
bool binding_in_chinese(void) {
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    const char *asked = getenv("SIMT_LANG");
    if (asked && (strncasecmp(asked, "zh", 2) == 0 || strncasecmp(asked, "en", 2) == 0))
        return (asked[0] | 32) == 'z';
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strncmp(value, "zh", 2) == 0;
    }
    return false;
}

PyObject *binding_exception_type(simt_status code) {
    switch (code) {
#define ERROR(id, exception, hint_en, hint_zh) \
    case SIMT_ERR_##id:                        \
        return PyExc_##exception;
#include "base/errors.def"
#undef ERROR
    default: return PyExc_RuntimeError;
    }
}

PyObject *binding_raise(void) {
    if (PyErr_Occurred()) return NULL;
    const simt_diag *diag = status_get();
    if (diag->code == SIMT_ERR_INTERRUPT) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return NULL;
    }
    bool zh = binding_in_chinese();
    char place[300] = "";
    if (diag->file[0] && diag->line > 0)
        snprintf(place, sizeof place, zh ? "位置: %s:%d" : "at %s:%d", diag->file, diag->line);
    return binding_raise_text(binding_exception_type(diag->code), diag->text, place,
                              status_hint(diag->code, zh));
}

PyObject *binding_raise_text(PyObject *type, const char *text, const char *place,
                             const char *hint) {
    bool zh = binding_in_chinese();
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (!message) return NULL;
    PyObject *whole = PyUnicode_FromFormat("%U%s%s%s%s", message, place[0] ? "\n" : "", place,
                                           hint[0] ? (zh ? "\n提示: " : "\nhint: ") : "", hint);
    Py_DECREF(message);
    if (!whole) return NULL;
    PyErr_SetObject(type, whole);
    Py_DECREF(whole);
    return NULL;
}

int binding_attribute(PyObject *o, const char *name, PyObject **out) {
    *out = PyObject_GetAttrString(o, name);
    return *out ? 1 : binding_forgive_if(PyExc_AttributeError) ? 0 : -1;
}

int binding_sys(const char *name, PyObject **out) {
    PyObject *sys = PyImport_ImportModule("sys");
    *out = NULL;
    int found = sys ? binding_attribute(sys, name, out) : -1;
    Py_XDECREF(sys);
    return found;
}

int binding_item(PyObject *dict, const char *name, PyObject **out) {
    PyObject *key = dict ? PyUnicode_FromString(name) : NULL;
    *out = key ? Py_XNewRef(PyDict_GetItemWithError(dict, key)) : NULL;
    Py_XDECREF(key);
    return *out ? 1 : PyErr_Occurred() ? -1 : 0;
}

void binding_raise_axis(int64_t axis, int ndim, graph_face face) {
    if (face == FACE_TORCH) {
        int low = ndim ? -ndim : -1, high = ndim ? ndim - 1 : 0;
        PyErr_Format(PyExc_IndexError,
                     "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                     low, high, (long long)axis);
        return;
    }
    PyObject *module = PyImport_ImportModule("numpy.exceptions");
    PyObject *type = module ? PyObject_GetAttrString(module, "AxisError") : NULL;
    Py_XDECREF(module);
    PyObject *error = type ? PyObject_CallFunction(type, "Li", (long long)axis, ndim) : NULL;
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(type);
}

bool binding_parse_args(const char *function, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames, const char *const *names, int nnames, int npositional,
                        int nrequired, PyObject **values) {
    if (nargs > npositional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)",
                     function, npositional, nargs);
        return false;
    }
    for (int i = 0; i < nnames; i++) values[i] = i < nargs ? args[i] : NULL;
    Py_ssize_t nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nkeywords; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < nnames && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) i++;
        if (i == nnames) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function,
                         name);
            return false;
        }
        if (values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function,
                         names[i]);
            return false;
        }
        values[i] = args[nargs + k];
    }
    for (int i = 0; i < nrequired; i++) {
        if (values[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", function, names[i]);
        return false;
    }
    return true;
}
