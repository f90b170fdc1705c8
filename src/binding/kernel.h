/* Python kernels: what the parts of the binding for `simt.numba` share.
 *
 *   kernel_source.c  Python function -> py_function (tree from CPython's ast, copied by ast.def); its parts
 *                    kernel_text.c (source text), kernel_code.c and kernel_compare.c (the right node),
 *                    kernel_tree.c (the copy), kernel_error.c (reports with the source line)
 *   kernel_host.c    what names in a kernel mean (py_host)
 *   kernel_launch.c  the dispatcher: arguments -> signature and slots, cache, launch, faults
 *   device_array.c   numba's DeviceNDArray
 */
#ifndef SIMT_BINDING_KERNEL_H
#define SIMT_BINDING_KERNEL_H

#include "binding/binding.h"
#include "frontend/python/frontend.h"

/* ---- kernel_source.c, kernel_error.c ---- */

/* The tree of a Python function (def or lambda), made once and kept as long as the function object (the
 * same pointer for the same object, borrowed; with it goes what its entities borrow). NULL: a Python
 * exception is set: no source (says what to do), or the source at hand is not what was compiled (edited
 * file, wrong lambda). `defaults` has an entry per positional, then per keyword-only parameter. */
const py_function *kernel_function_get(PyObject *function);
/* The calling thread's diagnostic as an exception; with file, line, the source line and a caret under the
 * column when they are known (simt.numba.core.errors.TypingError for SIMT_ERR_TYPING). Returns NULL. */
PyObject *kernel_raise(void);
/* The text "file:line" of a position plus the source line, for messages; new reference or NULL. */
PyObject *kernel_source_line(const char *file, int line);

/* ---- kernel_host.c ---- */

const py_host *kernel_host(void);

/* ---- device_array.c ---- */

/* DeviceNDArray: a typed strided view of a storage; every py_scalar but NONE. Shares memory with the other
 * faces' arrays of the same storage. */
typedef struct device_array {
    PyObject_HEAD storage *store; /* one reference; its memory is there (never deferred) */
    py_scalar type;
    int ndim;
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM]; /* strides in bytes */
    int64_t offset;                                   /* bytes */
    PyObject *weakrefs;
} device_array;
extern PyTypeObject kernel_device_array_type;
bool kernel_scalar_of_object(PyObject *dtype_like,
                             py_scalar *out); /* NumPy dtypes, numba types, names */

#endif
