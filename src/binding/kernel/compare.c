/* Do two code objects do the same? */
#include "binding/kernel/code.h"

#include <string.h>

static bool same_constant(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyCode_Check(a)) return kernel_code_equal((PyCodeObject *)a, (PyCodeObject *)b);
    if (PyFloat_Check(a)) { /* 0.0 is not -0.0 */
        double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyComplex_Check(a)) {
        Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyTuple_Check(a)) {
        if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++)
            if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
        return true;
    }
    int same = PyObject_RichCompareBool(a, b, Py_EQ); /* int, str, bytes, frozenset */
    if (same < 0) binding_forgive();
    return same == 1;
}

/* Takes both (new references or NULL). */
static bool same_object(PyObject *a, PyObject *b) {
    bool same = a && b && same_constant(a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return same;
}

bool kernel_code_equal(PyCodeObject *a, PyCodeObject *b) {
    /* whether a function is nested depends on what is around it */
    const int flags =
        CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    return a->co_argcount == b->co_argcount && a->co_posonlyargcount == b->co_posonlyargcount &&
           a->co_kwonlyargcount == b->co_kwonlyargcount &&
           (a->co_flags & flags) == (b->co_flags & flags) &&
           same_constant(a->co_name, b->co_name) &&
           same_object(PyCode_GetCode(a), PyCode_GetCode(b)) &&
           same_constant(a->co_names, b->co_names) && same_constant(a->co_consts, b->co_consts) &&
           same_object(PyCode_GetVarnames(a), PyCode_GetVarnames(b)) &&
           same_object(PyCode_GetFreevars(a), PyCode_GetFreevars(b)) &&
           same_object(PyCode_GetCellvars(a), PyCode_GetCellvars(b));
}

/* ---- functions that pytest's assertion rewriting has changed ---- */

/* A name that pytest's rewriting puts in: "@py_assert1", "@pytest_ar". */
static bool is_pytests(PyObject *name) {
    return PyUnicode_GET_LENGTH(name) > 3 && PyUnicode_READ_CHAR(name, 0) == '@' &&
           PyUnicode_READ_CHAR(name, 1) == 'p' && PyUnicode_READ_CHAR(name, 2) == 'y';
}

static bool any_pytests(PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
        if (is_pytests(PyTuple_GET_ITEM(names, i))) return true;
    return false;
}

/* Every item of `part` is in `whole`. */
static bool is_within(PyObject *part, PyObject *whole) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part); i++) {
        PyObject *item = PyTuple_GET_ITEM(part, i);
        bool found = PyCode_Check(item) || PyUnicode_Check(item); /* names are compared apart */
        for (Py_ssize_t k = 0; !found && k < PyTuple_GET_SIZE(whole); k++)
            found = same_constant(item, PyTuple_GET_ITEM(whole, k));
        if (!found) return false;
    }
    return true;
}

static bool has_names(PyObject *part, PyObject *whole) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part); i++)
        if (PySequence_Contains(whole, PyTuple_GET_ITEM(part, i)) != 1) return false;
    return true;
}

bool kernel_code_rewritten(PyCodeObject *plain, PyCodeObject *changed) {
    PyObject *plain_vars = PyCode_GetVarnames(plain), *vars = PyCode_GetVarnames(changed);
    bool same = plain_vars && vars && (any_pytests(vars) || any_pytests(changed->co_names)) &&
                plain->co_argcount == changed->co_argcount &&
                plain->co_kwonlyargcount == changed->co_kwonlyargcount &&
                same_constant(plain->co_name, changed->co_name) && has_names(plain_vars, vars) &&
                has_names(plain->co_names, changed->co_names) &&
                is_within(plain->co_consts, changed->co_consts) &&
                same_object(PyCode_GetFreevars(plain), PyCode_GetFreevars(changed));
    binding_forgive();
    Py_XDECREF(plain_vars);
    Py_XDECREF(vars);
    return same;
}
