/* Python kernels: what the parts of the binding for `simt.numba` share.
 *
 *   kernel/source.c  Python function -> its tree, with kernel/text.c (source text), kernel/held.c (text in
 *                    no file), kernel/lines.c, kernel/code.c and kernel/compare.c (the right ast node),
 *                    kernel/tree.c (copied by ast.def)
 *   kernel/error.c   reports with the source line
 *   kernel/host.c    what names in a kernel mean (py_host); kernel/entity.c: what the objects are
 *   kernel/entries.c signature and block size -> compiled kernel; a bounded number is kept
 *   kernel/dispatcher.c  a function with its options, signatures, compiled kernels
 *   kernel/launch.c  kernel[grid, block](...): limits, the launch, results
 *   kernel/args.c    the arguments of a launch: signature bytes and slots
 *   kernel/raw.c     CUDA C: its kernels and their launches, as CuPy's RawKernel
 *   kernel/match.c   the same for a declared signature
 *   kernel/record.c  structured dtypes
 *   kernel/fault.c   faults and prints of a launch: exceptions, sys.stdout
 *   kernel/scalars.c types of elements from Python's objects
 *   kernel/device_array.c  numba's DeviceNDArray, with device_methods.c and device_views.c
 */
#ifndef SIMT_BINDING_KERNEL_H
#define SIMT_BINDING_KERNEL_H

#include "binding/common/binding.h"
#include "frontend/python/frontend.h"
#include "kernel/report.h"

/* ---- kernel/error.c ---- */

/* The calling thread's diagnostic as an exception; with file, line, the source line and a caret
 * under the column when they are known (simt.numba.core.errors.TypingError for SIMT_ERR_TYPING).
 * Returns NULL. */
PyObject *kernel_raise(void);
/* Who reports (kernel/report.h): source lines as linecache has them, the user's language. */
report_host kernel_reporter(void);

/* The exception at hand, if its text begins with "kernel `name`: ": where the kernel is defined is added.
 * Returns false. */
bool kernel_add_definition(PyObject *function, const char *name);

/* ---- kernel/record.c ---- */

typedef struct kernel_record {
    PyObject *dtype, *text; /* a structured numpy.dtype, its description (bytes) */
    int64_t size;
} kernel_record;
/* Of a numpy.dtype, of what has memory and a dtype, of a numba record type; kept for ever. NULL: it has
 * none, or an exception is set (a field that kernels do not have). */
const kernel_record *kernel_record_of_object(PyObject *o);

/* ---- device_array.c ---- */

/* DeviceNDArray: a typed strided view of a storage; every py_scalar, NONE for records. Shares memory with
 * the other faces' arrays of the same storage (which is exposed: their operations on it run at
 * once). */
typedef struct device_array {
    PyObject_HEAD array *base; /* keeps the storage: all its bytes as a DT_U8 array */
    py_scalar type;
    const kernel_record *record; /* type NONE */
    bool readonly;
    int ndim;
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM]; /* strides in bytes */
    int64_t offset;                                   /* bytes from the storage's start */
    /* a Stream, which says nothing here: work is done in order; NULL: the default one */
    PyObject *stream;
    PyObject *weakrefs;
} device_array;
extern PyTypeObject kernel_device_array_type;
static inline bool kernel_is_device_array(PyObject *o) {
    return Py_IS_TYPE(o, &kernel_device_array_type);
}
/* An address of the device's. */
static inline char *kernel_device_data(const device_array *d) {
    return (char *)d->base->store->data + d->offset;
}
static inline int64_t kernel_item_bytes(const device_array *d) {
    return d->record ? d->record->size : (int64_t)py_scalar_bytes(d->type);
}
/* scalars.c: NumPy dtypes and scalar types, numba types (an int attribute `_simt_scalar`), names, bool int float
 * complex. Failure: a TypeError is set. */
bool kernel_scalar_of_object(PyObject *dtype_like, py_scalar *out);
/* The same, and record types (*out NONE). */
bool kernel_element_of_object(PyObject *dtype_like, py_scalar *out, const kernel_record **record);
bool kernel_scalar_of_format(const char *format, Py_ssize_t itemsize, py_scalar *out); /* buffers */
bool kernel_scalar_of_dtype(dtype dt, py_scalar *out);        /* false (no exception): bfloat16 */
PyObject *kernel_device_dtype(const device_array *d);         /* new reference; imports NumPy */
bool kernel_is_contiguous(const device_array *d, char order); /* 'C' or 'F' */
int64_t kernel_size(const device_array *d);
/* The bytes of the exposed storage that an address lies in. NULL: none, or an exception is set. */
device_array *kernel_device_at(uint64_t address);
/* A view of d's storage with the same elements. strides NULL: C order. */
device_array *kernel_device_view(const device_array *d, const int64_t *shape,
                                 const int64_t *strides, int ndim, int64_t offset);
/* New memory, not cleared; strides (>= 0) NULL: C order. */
device_array *kernel_device_new(py_scalar type, const kernel_record *record, const int64_t *shape,
                                const int64_t *strides, int ndim);
/* The same of Python objects; order 'C' or 'F' where strides are not given (NULL or None). */
PyObject *kernel_device_make(PyObject *shape, PyObject *dtype_like, const char *order,
                             PyObject *strides);
/* The same memory: of a device array (itself), another face's array, or an object with
 * __cuda_array_interface__. Tri-state. */
int kernel_device_share(PyObject *o, device_array **out);
/* A NumPy array on the device array's memory, or on a copy where the host cannot touch that; for copies and
 * assignments inside the binding. memory: NULL, or what array_from_host takes when d was written (a new reference, also
 * on failure: NULL). */
PyObject *kernel_host_view(const device_array *d, array **memory);
/* The memory of a device array as the other faces' array (fails for complex). */
bool kernel_device_to_array(device_array *d, array **out);
extern PyMethodDef kernel_device_methods[], kernel_host_functions[]; /* device_methods.c */
PyObject *kernel_device_getitem(PyObject *self, PyObject *key);
int kernel_device_setitem(PyObject *self, PyObject *key, PyObject *value);

/* Adds the types and functions of these files to the module. */
bool binding_add_device_array(PyObject *module);
bool binding_add_kernels(PyObject *module);

#endif
