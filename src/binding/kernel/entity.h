/* Inside the kernel files of the binding: what Python objects are in a kernel. */
#ifndef SIMT_BINDING_KERNEL_ENTITY_H
#define SIMT_BINDING_KERNEL_ENTITY_H

#include "binding/kernel/tree.h"

/* What `name` means, being this object: always something, if only an object of which nothing more is known.
 * False: an exception is set. depth: tuples around it. */
bool kernel_to_entity(PyObject *o, const char *name, int depth, kernel_host *owner, py_entity *out);
/* 1: it is one, 0: it is not, -1: exception. Stubs of simt.numba, and functions of Python. */
int kernel_marked_entity(PyObject *o, kernel_host *owner, py_entity *out);
int kernel_function_entity(PyObject *o, kernel_host *owner, py_entity *out);
/* The Python function of one, or of a dispatcher (its attribute py_func). New reference, or NULL. */
PyObject *kernel_python_function(PyObject *o);
/* An attribute, or NULL: it cannot be had, or an exception is set (memory ended, Ctrl-C). After that nothing
 * more may be asked: what Python does meanwhile could clear it. New reference. */
PyObject *kernel_attribute(PyObject *o, const char *name);
/* A member of an enumeration: its class has them all. */
bool kernel_is_member(PyObject *o);
/* Kernels may get it as an argument: it lives for ever, and its address finds it. */
bool kernel_member_keep(PyObject *o);
PyObject *kernel_member_at(uint64_t number); /* new reference; NULL: none, an exception is set */
/* The object lives as long as the owner. */
bool kernel_host_keep(kernel_host *owner, PyObject *o);

#endif
