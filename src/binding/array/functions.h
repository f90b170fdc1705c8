/* Shared by the files that hold functions of simt._core on arrays: their form, and entries of their tables. */
#ifndef SIMT_BINDING_ARRAY_FUNCTIONS_H
#define SIMT_BINDING_ARRAY_FUNCTIONS_H

#include "binding/common/binding.h"

#define FUNCTION(name)                                                                      \
    static PyObject *body_##name(PyObject *module, PyObject *const *args, Py_ssize_t nargs, \
                                 PyObject *kwnames);                                        \
    static PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t nargs,        \
                          PyObject *kwnames) {                                              \
        return IN_SECTION(body_##name(module, args, nargs, kwnames));                       \
    }                                                                                       \
    static PyObject *body_##name(PyObject *module, PyObject *const *args, Py_ssize_t nargs, \
                                 PyObject *kwnames)
#define FAST(name, function) \
    { name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, NULL }

/* made is set by the call whose status is the first argument. */
static inline PyObject *binding_wrap_made(simt_status status, array *const *made) {
    return binding_ok(status) ? binding_wrap(*made) : NULL;
}

extern PyMethodDef binding_create_functions[]; /* create.c */

#endif
