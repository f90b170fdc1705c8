/* What device_methods.c and device_views.c share. */
#ifndef SIMT_BINDING_KERNEL_DEVICE_METHODS_H
#define SIMT_BINDING_KERNEL_DEVICE_METHODS_H

#include "binding/kernel/kernel.h"

/* Copies between d and a host array of the same shape. */
bool kernel_copy_host(device_array *d, PyObject *host, bool to_host);

/* ---- device_views.c: methods ---- */
PyObject *kernel_view_reshape(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *kernel_view_ravel(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *kernel_view_as(PyObject *self, PyObject *dtype);
PyObject *kernel_view_squeeze(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames);
PyObject *kernel_view_transpose(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                PyObject *kwnames);
PyObject *kernel_view_split(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

#endif
