/* The Python face of array/: types, conversions and errors that all faces share.
 *
 * Conventions. Functions returning bool or PyObject * have set a Python exception when they return
 * false or NULL. "Tri-state" functions return 1 (done), 0 (not convertible; no exception set) or -1
 * (exception set). `array **out` and operands hold new references (binding_operand_done drops them). The GIL
 * is held everywhere here; array/ drops it through the hooks where it waits.
 */
#ifndef SIMT_BINDING_BINDING_H
#define SIMT_BINDING_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "array/array.h"
#include "array/section.h"
#include "base/heap.h"

#if PY_VERSION_HEX < 0x030D0000 /* the public name is of Python 3.13 */
#define Py_HashPointer _Py_HashPointer
#endif

/* simt._core.Array: what every face's array type starts with (ndarray here, Tensor in tensor.c). It is
 * abstract: it has the lifetime, weak references and no behaviour. */
typedef struct pyarray {
    PyObject_HEAD array *a;
    PyObject *weakrefs;
    PyObject *extra; /* the face's own; NULL */
} pyarray;
extern PyTypeObject binding_array_type;   /* simt._core.Array */
extern PyTypeObject binding_ndarray_type; /* simt._core.ndarray, the cupy face */

/* The value of an expression that calls into array/ or grad/ with what Python objects hold. Every entry
 * point from Python that may give up the GIL on the way runs inside one. */
#define IN_SECTION(expression)                         \
    ({                                                 \
        section section_ = section_begin();            \
        __typeof__(expression) result_ = (expression); \
        section_end(section_);                         \
        result_;                                       \
    })
/* A function for METH_NOARGS or METH_O around `body`. */
#define SECTION_FUNCTION(name, body) \
    static PyObject *name(PyObject *self, PyObject *o) { return IN_SECTION(body(self, o)); }

static inline bool binding_is_array(PyObject *o) {
    return PyObject_TypeCheck(o, &binding_array_type);
}
/* Frees what a pyarray holds; the end of every subclass's tp_dealloc (before tp_free). */
void binding_array_clear(pyarray *self);
static inline void binding_drop_array(void *a) { array_unref((array *)a); } /* for section_retire */
/* A cupy ndarray around `a` (takes the reference; also on failure). NULL a: exception is set already. */
PyObject *binding_wrap(array *a);

/* ---- errors.c ---- */

/* The calling thread's diagnostic as a Python exception (with position and hint in the user's
 * language); returns NULL. A pending Python exception is left as it is. */
PyObject *binding_raise(void);
/* What binding_raise is made of: the text, then place and hint (each may be "") on lines of their own. */
PyObject *binding_raise_text(PyObject *type, const char *text, const char *place, const char *hint);
bool binding_in_chinese(void);                      /* the user's language */
PyObject *binding_exception_type(simt_status code); /* borrowed */
/* `if (!binding_ok(array_reshape(...))) return NULL;` */
static inline bool binding_ok(simt_status status) {
    if (__builtin_expect(status == SIMT_OK, 1)) return true;
    binding_raise();
    return false;
}
/* numpy.exceptions.AxisError, or PyTorch's IndexError. */
void binding_raise_axis(int64_t axis, int ndim, graph_face face);

/* ---- hooks.c ---- */

/* Installs the hooks and makes array's context. Called once when the module is made; the runtime
 * itself starts at the first array (binding_start, which every creation calls). */
bool binding_start(void);
bool binding_install_hooks(void);
/* The target of all arrays: the CPU (no_test_hooks.c), or the tests' toy (test_hooks.c). */
simt_status binding_make_target(target **out);
/* For array_from_foreign: drops a Python reference (owner) wherever it is called from. */
void binding_release_object(void *owner);
bool binding_lenient(void); /* SIMT_LENIENT=1 */
/* Around the reading of an argument that may run Python code, which may come back here: a RecursionError
 * before the C stack is full (Python's own count of calls does not see it). Between the two, what the
 * caller has looked at stays: binding_may_replace refuses to give an array another shape or other memory. */
bool binding_enter(void);
void binding_leave(void);
bool binding_may_replace(const char *what); /* false: RuntimeError */
/* Reading of arguments, as Python's functions. */
int binding_truth(PyObject *o);       /* PyObject_IsTrue */
double binding_double(PyObject *o);   /* PyFloat_AsDouble: -1 and perhaps an exception */
PyObject *binding_tuple(PyObject *o); /* PySequence_Tuple: what is read may change a list */
/* Memory, zeroed; NULL: a MemoryError is set. heap_free ends it. */
static inline void *binding_alloc(size_t count, size_t size) {
    void *memory = heap_zeroed(count, size);
    if (!memory) PyErr_NoMemory();
    return memory;
}
/* Whether o is that string. */
static inline bool binding_is_text(PyObject *o, const char *text) {
    return o && PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, text) == 0;
}
/* Attributes and entries of dicts that may be absent: 1 and a new reference, 0, or -1 (an exception; an
 * attribute of another value than AttributeError is one). *out is NULL where it is not 1. */
int binding_attribute(PyObject *o, const char *name, PyObject **out);
int binding_sys(const char *name, PyObject **out);                  /* sys.NAME */
int binding_item(PyObject *dict, const char *name, PyObject **out); /* dict: NULL is an empty one */

/* ---- exceptions that are taken away: here alone, as tools/check_layers.py sees to ---- */

/* Clears the exception that means "no" where something was only asked. One that says that memory ended or
 * that the program is to stop stays. False: one stayed, and the caller fails with it. */
static inline bool binding_forgive(void) {
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return false;
    PyErr_Clear();
    return true;
}
/* Clears one of that class, and says whether it was one. */
static inline bool binding_forgive_if(PyObject *type) {
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(type)) return false;
    PyErr_Clear();
    return true;
}
/* Clears any: for what does without (a line of source in a message, something to be remembered). Ctrl-C is
 * heard again later. */
static inline void binding_do_without(void) {
    if (!PyErr_Occurred()) return;
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
}

/* ---- dtypes.c ---- */

/* Tri-state free: every failure is a TypeError. Takes strings, bool/int/float, NumPy's dtypes and
 * scalar types (NumPy is not imported for it), objects with an int attribute `_simt_dtype`. */
bool binding_to_dtype(PyObject *o, dtype *out);
/* As binding_to_dtype, but None and NULL give has = false. */
bool binding_to_dtype_or_none(PyObject *o, bool *has, dtype *out);
PyObject *binding_numpy_dtype(dtype dt); /* new reference to numpy.dtype (imports NumPy) */
/* The dtype of a buffer format ("f", "<i4"-like struct codes); tri-state without exception: 1 or 0. */
int binding_format_to_dtype(const char *format, Py_ssize_t itemsize, dtype *out);
const char *binding_dtype_format(dtype dt); /* struct code; NULL for bfloat16 */

/* ---- convert.c ---- */

/* Tri-state. bool, int, float (exact types) are weak scalars; NumPy scalars are strong (a 0-d array) for
 * FACE_NUMPY, weak for FACE_TORCH. NumPy arrays: only for FACE_TORCH, or with SIMT_LENIENT. An int that
 * fits neither int64 nor uint64 is an OverflowError. */
int binding_to_operand(PyObject *o, graph_face face, operand *out);
static inline void binding_operand_done(operand *o) {
    if (o->a) array_unref(o->a);
}
/* Tri-state, wherever one number is expected: a Python bool, int or float, a NumPy scalar, or the value of
 * an array of no dimension; with NumPy's rules of any array of one element. Others are 0. */
int binding_to_scalar(PyObject *o, graph_face face, scalar *out);
PyObject *binding_from_scalar(scalar s);          /* bool, int or float */
bool binding_to_int64(PyObject *o, int64_t *out); /* by __index__ */
/* An int or a sequence of ints; `what` names it in the error ("shape"). Negative values are allowed. */
bool binding_to_shape(PyObject *o, const char *what, int64_t *shape, int *ndim);
/* A shape from *args: f(2, 3) or f((2, 3)). */
bool binding_args_to_shape(PyObject *const *args, Py_ssize_t n, const char *what, int64_t *shape,
                           int *ndim);
PyObject *binding_from_shape(const int64_t *shape, int ndim); /* tuple */
/* None, an int, a tuple of ints -> bit mask. None gives all axes and *all = true. Errors in the face's words. */
bool binding_to_axes(PyObject *o, int ndim, graph_face face, uint32_t *mask, bool *all);
/* One axis, wrapped once. */
bool binding_to_axis(PyObject *o, int ndim, graph_face face, int *axis);

/* ---- foreign.c: memory of others ---- */

/* C order; products of sizes that no memory has wrap. */
void binding_c_strides(size_t itemsize, const int64_t *shape, int ndim, int64_t *strides);
/* The bytes that the elements touch, counted from the first (low <= 0; both 0 when there are none). False:
 * a ValueError, for negative sizes and what addresses cannot reach. */
bool binding_extent(size_t itemsize, const int64_t *shape, const int64_t *strides, int ndim,
                    int64_t *low, int64_t *high);
/* Whether every element lies at a multiple of `unit` (a power of two). */
bool binding_is_aligned(size_t unit, const int64_t *shape, const int64_t *strides, int ndim,
                        const void *data);
/* A buffer with complete shape and strides; PyBuffer_Release(&b.view) ends it. Not usable: more dimensions
 * than arrays have, indirect, no size of elements; shape and strides are not set then. */
typedef struct binding_buffer {
    Py_buffer view;
    bool usable;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
} binding_buffer;
bool binding_get_buffer(PyObject *o, bool writable, binding_buffer *b);
bool binding_is_numpy_scalar(PyObject *o); /* numpy.float32(1), dates; no arrays */
/* An __array_interface__ or __cuda_array_interface__. In: name, host, itemsize. */
typedef struct binding_interface {
    const char *name;
    bool host; /* its data may be an object with the buffer protocol */
    bool (*itemsize)(struct binding_interface *i, PyObject *typestr); /* fills bytes and a type */
    size_t bytes;
    dtype dt;
    int scalar; /* py_scalar */
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    char *data; /* memory that is there: it was looked at */
    bool readonly;
    Py_buffer buffer; /* has_buffer: whose memory it is, and how many bytes from `data` on */
    bool has_buffer;
    int64_t room;
} binding_interface;
int binding_interface_get(PyObject *o, const char *name, PyObject **dict); /* tri-state */
bool binding_interface_parse(PyObject *dict, binding_interface *i);
/* False: o has an __array_interface__ that is wrong, which NumPy would believe. */
bool binding_interface_check(PyObject *o);
/* A new array of whatever has memory of its own (buffer, interface, DLPack); tri-state. */
int binding_copy_memory(PyObject *o, bool has_dtype, dtype dt, array **out);
/* Shares the memory of an object with the buffer protocol or __array_interface__ (writable if it is);
 * tri-state (0: has neither, or a type or alignment that we have not). The storage is exposed. */
int binding_share_memory(PyObject *o, array **out);
/* The same for device arrays of the numba face and objects with __cuda_array_interface__. */
int binding_share_device(PyObject *o, array **out);
/* The __cuda_array_interface__ of the array o: a new dict, or NULL. */
PyObject *binding_cuda_interface(PyObject *o);
/* For tp_traverse: the Python object that the memory of a (which has so many references, all of the object
 * that is asked) is kept by, where no more than so many holders have the memory; else NULL. So a ring
 * through an owner of memory is found when one array, with views of it, is on it. Borrowed. */
PyObject *binding_owner(const array *a, int refs, int holders);
/* array_from_foreign for any strides: the base is the lowest address. Takes the owner: it is released on
 * failure too. */
bool binding_share(dtype dt, const int64_t *shape, const int64_t *strides, int ndim, char *data,
                   void (*release)(void *), void *owner, array **out);

/* ---- sequence.c ---- */

/* A new array (memory of its own) from nested sequences, scalars, arrays, buffers, __array_interface__,
 * DLPack. Without has_dtype: NumPy's discovery, or PyTorch's (floats: default_float). */
bool binding_to_array(PyObject *o, bool has_dtype, dtype dt, graph_face face, dtype default_float,
                      array **out);
bool binding_integer_fits(scalar s, dtype dt); /* an integer goes into dt without wrapping */
/* Nested lists of Python numbers (0-d: the number). */
PyObject *binding_tolist(array *a);

/* ---- index.c ---- */

/* A key, taken apart. x[key] is
 *     binding_key_view (slices; NumPy's rule for separated indices moves the indexed axes to the front),
 *     then, when nindices > 0, array_index_get(view, index, n) with n = binding_key_indices(&k, index).
 * Integer indices are arrays of int64; masks have become such (they are evaluated here). */
typedef struct binding_key {
    array_slice items[2 * ARRAY_MAX_NDIM];
    int nitems;
    array *index[2 * ARRAY_MAX_NDIM]; /* owned; per axis of the sliced view; NULL: the whole axis */
    int nindices;                     /* 0: basic indexing only */
    bool front;
} binding_key;
bool binding_key_parse(array *a, PyObject *key, graph_face face, binding_key *out);
void binding_key_deinit(binding_key *k);
/* The view (basic part and `front`), a new reference; for a key with only basic parts it is the result. */
simt_status binding_key_view(array *a, const binding_key *k, array **out);
/* The indices per axis of that view, borrowed (index: room for 2 * ARRAY_MAX_NDIM); returns how many. */
int binding_key_indices(const binding_key *k, array **index);
/* All of it. */
bool binding_get_item(array *a, PyObject *key, graph_face face, array **out);
bool binding_set_item(array *a, PyObject *key, const operand *value, graph_face face);

/* ---- exchange.c ---- */

/* __dlpack__: a capsule "dltensor" ("dltensor_versioned" where max_version asks for it); exposes the storage,
 * or copies it. The arguments are the caller's; each may be NULL or None. */
PyObject *binding_to_dlpack(array *a, bool readonly, PyObject *max_version, PyObject *dl_device,
                            PyObject *copy);
/* From a capsule, or an object with __dlpack__: shares memory. */
bool binding_from_dlpack(PyObject *o, array **out);
/* An object with the buffer protocol that shares a's memory (evaluated, exposed). */
PyObject *binding_export_buffer(array *a, bool writable);
PyObject *binding_numpy_view(array *a, bool writable); /* a numpy.ndarray on its memory */

/* ---- array/random.c ---- */

extern PyTypeObject binding_generator_type; /* simt._core.Generator */

/* ---- numpy_ops.c: the cupy face's operations on Python objects ---- */

/* An elementwise row on n objects; out and dtype may be NULL or None. */
PyObject *binding_elementwise(array_op op, PyObject *const *objects, int n, PyObject *out,
                              PyObject *dtype_object);
PyObject *binding_elementwise_cast(array_op op, PyObject *const *objects, int n, PyObject *out,
                                   PyObject *dtype_object, char casting);
PyObject *binding_operate(array_op op, const operand *in, int n,
                          PyObject *out); /* on operands; out may be NULL */
/* `name` as in the method table: sum, ..., mean, var, std. All arguments but a may be NULL. */
typedef enum reduction {
#define RED(id, ...) REDUCE_##id,
#include "graph/array_ops.def"
    REDUCE_MEAN,
    REDUCE_VAR,
    REDUCE_STD
} reduction;
PyObject *binding_reduce(reduction kind, array *a, PyObject *axis, PyObject *dtype_object,
                         PyObject *out, PyObject *ddof, PyObject *keepdims);
/* The array of an ndarray argument (borrowed), or NULL with CuPy's TypeError. */
array *binding_get_ndarray(PyObject *o);
/* A result into `out` (an ndarray, None or NULL): takes `made`, returns out or the wrapped array. */
PyObject *binding_into_out(array *made, PyObject *out); /* casting same_kind */
PyObject *binding_cast_into(array *made, PyObject *out, char casting);
PyObject *binding_dot_into(array *made, PyObject *out); /* whose type must be the result's */
/* casting=, order= as letters (graph_can_cast, array_astype_order); NULL: same_kind, `usual`. */
bool binding_to_casting(PyObject *o, char *out);
bool binding_to_order(PyObject *o, char usual, char *out);
/* As binding_wrap: a view of `of`, whose base it gets. */
PyObject *binding_wrap_view(PyObject *of, array *made);
PyObject *binding_to_numpy(array *a); /* a new numpy.ndarray */
extern PyMethodDef binding_ndarray_methods[];
/* array_repeat_index of an integer or an array of them. */
bool binding_repeat_index(PyObject *counts, PyObject *size, graph_face face, array **out);

/* ---- what the module is made of ---- */

/* Each adds its functions and types to the module. */
bool binding_add_array_types(PyObject *module);
bool binding_add_functions(PyObject *module);
bool binding_add_random(PyObject *module);
bool binding_add_exchange(PyObject *module);

/* Keyword arguments of METH_FASTCALL functions: names in order; values borrowed, NULL where not given.
 * The first `npositional` may be given by position. */
bool binding_parse_args(const char *function, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames, const char *const *names, int nnames, int npositional,
                        int nrequired, PyObject **values);
/* In such a function: the arguments in `values`, by the names given. */
#define PARSE(function, npositional, nrequired, ...)                                               \
    static const char *const names[] = {__VA_ARGS__};                                              \
    enum { NNAMES = sizeof names / sizeof names[0] };                                              \
    PyObject *values[NNAMES];                                                                      \
    if (!binding_parse_args(function, args, nargs, kwnames, names, NNAMES, npositional, nrequired, \
                            values))                                                               \
        return NULL;

#endif
