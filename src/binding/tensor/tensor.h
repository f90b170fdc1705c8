/* The PyTorch face: Tensor (a subclass of simt._core.Array), dtype, device, Size, and the functions.
 *
 * An operation is written once, as `PyObject *op(PyObject **v)` on its arguments in the order of its signature
 * (v[0] is the tensor, absent ones are NULL); TENSOR_OP makes the method and the function of it. Operations
 * convert, call grad/, wrap: no arithmetic here. */
#ifndef SIMT_BINDING_TENSOR_H
#define SIMT_BINDING_TENSOR_H

#include "binding/common/binding.h"
#include "grad/grad.h"

typedef struct pytensor {
    pyarray base; /* base.a is t->a, with a reference of its own */
    tensor *t;
    PyObject *dict;
} pytensor;
extern PyTypeObject
    *tensor_class; /* torch.Tensor: a heap type over tensor_type, so that Python may add to it */
extern PyTypeObject tensor_type, tensor_dtype_type, tensor_device_type, tensor_size_type,
    tensor_generator_type, tensor_capture_type;

static inline bool tensor_check(PyObject *o) { return PyObject_TypeCheck(o, &tensor_type); }
static inline tensor *tensor_of(PyObject *o) { return ((pytensor *)o)->t; }

/* The Python object of t (takes t): the one it has, or a new Tensor. */
PyObject *tensor_wrap(tensor *t);
PyObject *tensor_wrap_array(array *a); /* takes a */
/* The result of an operation: its status and (looked at after it) what it made. */
#define tensor_result(status, made) (binding_ok(status) ? tensor_wrap(made) : NULL)
/* After an in-place operation: the tensor itself. */
static inline PyObject *tensor_same(simt_status s, PyObject *self) {
    return binding_ok(s) ? Py_NewRef(self) : NULL;
}
/* Points the Python object at another array (x.data = y). */
void tensor_set_array(PyObject *self, array *a); /* takes a */

/* ---- arguments (tensor/args.c) ---- */

#define TENSOR_MAX_ARGS 14
typedef struct tensor_signature {
    const char *name;
    int required, positional; /* the tensor included */
    const char *const *names; /* ends with NULL */
} tensor_signature;
/* Fills v[from..] from a fast call. */
bool tensor_parse(const tensor_signature *s, int from, PyObject *const *args, Py_ssize_t n,
                  PyObject *kwnames, PyObject **v);
tensor *tensor_arg(PyObject *o, const char *function, const char *argument,
                   int position); /* borrowed */
/* Tri-state. A tensor is borrowed from o or, for a NumPy array, owned: tensor_operand_done drops it. */
typedef struct tensor_value {
    tensor_operand v;
    bool owned;
} tensor_value;
int tensor_to_operand(PyObject *o, tensor_value *out);
bool tensor_need_operand(PyObject *o, const char *function, tensor_value *out);
static inline void tensor_operand_done(tensor_value *v) {
    if (v->owned) tensor_unref(v->v.t);
}
/* Dimensions: wrapped, PyTorch's IndexError. NULL or None: all axes. */
bool tensor_dims(PyObject *o, int ndim, uint32_t *mask, bool *all);
bool tensor_dim(PyObject *o, int ndim, int *axis);
bool tensor_dim_number(int64_t value, int ndim, int *axis);
bool tensor_bool_arg(PyObject *o, bool absent, bool *out);
/* other * alpha, alpha being a number or absent (math.c) */
PyObject *tensor_scaled(PyObject *other, PyObject *alpha);
bool tensor_double_arg(PyObject *o, double absent, const char *what, double *out);
bool tensor_int_arg(PyObject *o, int64_t absent, int64_t *out);
/* A torch.dtype (None, NULL: -1). */
bool tensor_dtype_arg(PyObject *o, const char *function, int *dt);
/* One or two numbers of a size (kernel_size, stride, ...). */
bool tensor_pair_arg(PyObject *o, int64_t absent, const char *what, int64_t pair[2]);

/* ---- objects (tensor/types.c) ---- */
PyObject *tensor_dtype_object(dtype dt); /* new reference */
PyObject *tensor_size_object(const int64_t *shape, int ndim);
PyObject *tensor_cpu_device(void);     /* new reference */
bool tensor_check_device(PyObject *o); /* a device argument: only the CPU is there */
PyObject *tensor_pair_object(const char *name, PyObject *values,
                             PyObject *indices); /* torch.return_types.X; takes both */
random_state *
tensor_generator_state(PyObject *o); /* NULL, None: the default one; NULL after an error */

/* ---- indexing, casts shared between the files ---- */
PyObject *tensor_get_item(PyObject *self, PyObject *key);
int tensor_set_item(PyObject *self, PyObject *key, PyObject *value);
PyObject *tensor_cast_object(PyObject *self, dtype dt, bool copy);
simt_status tensor_binary(array_op op, const tensor_operand in[2],
                          tensor **out); /* add ... with PyTorch's checks */
/* A row on Python objects, in place on the first one; `name` is for errors. */
PyObject *tensor_unary(array_op op, PyObject *o, const char *name);
PyObject *tensor_unary_inplace(array_op op, PyObject *o);
PyObject *tensor_apply(array_op op, PyObject *x, PyObject *y, const char *name);
PyObject *tensor_apply_inplace(array_op op, PyObject *x, PyObject *y, const char *name);

/* ---- tables of the files ---- */
extern PyMethodDef tensor_table_methods[], tensor_table_functions[], tensor_math_methods[],
    tensor_math_functions[], tensor_shape_methods[], tensor_shape_functions[],
    tensor_index_methods[], tensor_index_functions[], tensor_reduce_methods[],
    tensor_reduce_functions[], tensor_make_methods[], tensor_make_functions[],
    tensor_facts_methods[], tensor_facts_functions[], tensor_cast_methods[],
    tensor_cast_functions[], tensor_nn_methods[], tensor_nn_functions[], tensor_autograd_methods[],
    tensor_autograd_functions[], tensor_capture_functions[];
extern PyMethodDef tensor_core_functions[]; /* of simt._core itself */
extern PyGetSetDef tensor_autograd_getset[];
bool tensor_add_types(PyObject *module);
bool tensor_add_autograd(PyObject *module);
/* Adds simt._core.torch; the Python side is python/simt/torch. */
bool binding_add_torch(PyObject *core);

#define TENSOR_SIGNATURE(name, required, positional, ...)          \
    static const char *const names_##name[] = {__VA_ARGS__, NULL}; \
    static const tensor_signature signature_##name = {#name, required, positional, names_##name};
#define TENSOR_METHOD(name, impl)                                                       \
    static PyObject *method_##name(PyObject *self, PyObject *const *args, Py_ssize_t n, \
                                   PyObject *kwnames) {                                 \
        PyObject *v[TENSOR_MAX_ARGS] = {self};                                          \
        if (!tensor_parse(&signature_##name, 1, args, n, kwnames, v)) return NULL;      \
        return IN_SECTION(impl(v));                                                     \
    }
#define TENSOR_FUNCTION(name, impl)                                                         \
    static PyObject *function_##name(PyObject *module, PyObject *const *args, Py_ssize_t n, \
                                     PyObject *kwnames) {                                   \
        PyObject *v[TENSOR_MAX_ARGS] = {NULL};                                              \
        if (!tensor_parse(&signature_##name, 0, args, n, kwnames, v)) return NULL;          \
        return IN_SECTION(impl(v));                                                         \
    }
/* name(input, ...), as a method and as a function */
#define TENSOR_OP(name, impl, required, positional, ...)      \
    TENSOR_SIGNATURE(name, required, positional, __VA_ARGS__) \
    TENSOR_METHOD(name, impl)                                 \
    TENSOR_FUNCTION(name, impl)
#define FAST(name, function) \
    { name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, NULL }
#define METHOD_ENTRY(name)   FAST(#name, method_##name)
#define FUNCTION_ENTRY(name) FAST(#name, function_##name)
/* The first argument, which must be a tensor. */
#define SELF(v, function)                                    \
    tensor *self = tensor_arg((v)[0], function, "input", 1); \
    if (!self) return NULL

#endif
