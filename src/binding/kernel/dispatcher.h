/* Inside the kernel files of the binding: what is behind @cuda.jit, and its launches. */
#ifndef SIMT_BINDING_KERNEL_DISPATCHER_H
#define SIMT_BINDING_KERNEL_DISPATCHER_H

#include "binding/kernel/entries.h"
#include "binding/kernel/kernel.h"

typedef struct dispatcher {
    PyObject_HEAD PyObject *function, *options;
    PyObject *declared; /* list of bytes; NULL: any signature */
    PyObject *results;  /* of a device function's: bytes, or None where the body says it */
    char *name;
    int nparameters, nrequired;
    int64_t most_threads; /* launch_bounds; 0: none */
    bool device;
    py_options compile;
    kernel_entries entries;
} dispatcher;

/* launch.c: kernel[grid, block(, stream(, shared))] of a dispatcher, to be called with the arguments. */
PyObject *kernel_configure(PyObject *dispatcher, PyObject *key);
PyObject *kernel_warnings(PyObject *module, PyObject *on);
bool kernel_launch_ready(void);
bool kernel_raw_ready(PyObject *module);

#endif
