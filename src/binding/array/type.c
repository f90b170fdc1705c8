/* The types simt._core.Array (what all faces' arrays are) and simt._core.ndarray (the cupy face): life,
 * indexing, attributes. Operators are in operators.c, methods in methods.c. */
#include "array/meta.h"
#include "binding/array/operators.h"

#include <stddef.h>
#include <string.h>

/* ---- life ---- */

/* An array that has foreign memory knows the views of it, which keep it as their base. */
typedef struct ndarray_object {
    pyarray head;
    struct ndarray_object *views, *next, **place; /* place: what points to this one, or NULL */
} ndarray_object;

/* Small objects come and go at a high rate: their memory is kept for the next. */
#define MAX_FREE 64
static pyarray *free_objects[MAX_FREE];
static int nfree;

PyObject *binding_wrap(array *a) {
    if (!a) return NULL;
    if (array_is_meta(a)) { /* tensors alone may have no data */
        array_unref(a);
        PyErr_SetString(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
        return NULL;
    }
    pyarray *self;
    if (nfree > 0) {
        self = free_objects[--nfree];
        PyObject_Init((PyObject *)self, &binding_ndarray_type);
    } else {
        self = (pyarray *)PyObject_GC_New(ndarray_object, &binding_ndarray_type);
        if (!self) {
            array_unref(a);
            return NULL;
        }
    }
    self->a = a;
    self->weakrefs = self->extra = NULL;
    ndarray_object *whole = (ndarray_object *)self;
    whole->views = whole->next = NULL;
    whole->place = NULL;
    if (a->store->foreign) PyObject_GC_Track(self); /* others hold no objects */
    return (PyObject *)self;
}

/* There is no tp_clear: `a` is never NULL while the object lives. A ring through it is cut at the owner. */
static int ndarray_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((pyarray *)self)->extra);
    /* with its views, which all hold it, an array has all of the memory, or somebody else has it too */
    int holders = 1;
    for (ndarray_object *v = ((ndarray_object *)self)->views; v; v = v->next, holders++)
        if (v->head.a->refs != 1 || v->head.a->store != ((pyarray *)self)->a->store) return 0;
    Py_VISIT(binding_owner(((pyarray *)self)->a, 1, holders));
    return 0;
}

static void add_view(PyObject *base, ndarray_object *view) {
    ndarray_object **first = &((ndarray_object *)base)->views;
    view->next = *first;
    view->place = first;
    if (*first) (*first)->place = &view->next;
    *first = view;
}

static void remove_view(ndarray_object *view) {
    if (!view->place) return;
    *view->place = view->next;
    if (view->next) view->next->place = view->place;
}

PyObject *binding_wrap_view(PyObject *of, array *made) {
    pyarray *view = (pyarray *)binding_wrap(made);
    if (view && made->store == ((pyarray *)of)->a->store) {
        PyObject *base = ((pyarray *)of)->extra;
        view->extra = Py_NewRef(base ? base : of);
        if (made->store->foreign && PyObject_TypeCheck(view->extra, &binding_ndarray_type))
            add_view(view->extra, (ndarray_object *)view);
    }
    return (PyObject *)view;
}

void binding_array_clear(pyarray *self) {
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    array_unref(self->a);
    self->a = NULL;
    Py_CLEAR(self->extra);
}

static void array_dealloc(PyObject *self) {
    binding_array_clear((pyarray *)self);
    Py_TYPE(self)->tp_free(self);
}

static void ndarray_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    remove_view((ndarray_object *)self);
    binding_array_clear((pyarray *)self);
    if (Py_IS_TYPE(self, &binding_ndarray_type) && nfree < MAX_FREE)
        free_objects[nfree++] = (pyarray *)self;
    else
        Py_TYPE(self)->tp_free(self);
}

/* ndarray(shape, dtype=float): uninitialised, as numpy.ndarray. */
static PyObject *ndarray_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"shape", "dtype", "order", NULL};
    PyObject *shape_object, *dtype_object = NULL, *order_object = NULL;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    bool has;
    dtype dt = DT_F64;
    char order;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:ndarray", names, &shape_object,
                                     &dtype_object, &order_object) ||
        !binding_to_order(order_object, 'C', &order))
        return NULL;
    if (!binding_to_shape(shape_object, "shape", shape, &ndim) ||
        !binding_to_dtype_or_none(dtype_object, &has, &dt) || !binding_start())
        return NULL;
    if (!has) dt = DT_F64;
    array *a;
    if (!binding_ok(array_full_order(dt, shape, ndim, NULL, order, &a))) return NULL;
    pyarray *self = (pyarray *)type->tp_alloc(type, 0);
    if (!self) {
        array_unref(a);
        return NULL;
    }
    self->a = a;
    return (PyObject *)self;
}

/* ---- indexing and iteration ---- */

static Py_ssize_t mp_length(PyObject *self) {
    array *a = ((pyarray *)self)->a;
    if (a->ndim > 0) return (Py_ssize_t)a->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
}

static PyObject *mp_subscript(PyObject *self, PyObject *key) {
    array *made;
    bool ok = IN_SECTION(binding_get_item(((pyarray *)self)->a, key, FACE_NUMPY, &made));
    return ok ? binding_wrap_view(self, made) : NULL;
}

/* The right side of x[key] = value. */
static bool to_value(array *a, PyObject *key, PyObject *value, operand *out) {
    bool whole = key == Py_Ellipsis || PySlice_Check(key);
    bool sequence = PyList_Check(value) || PyTuple_Check(value);
    bool numpy_array = whole && strcmp(Py_TYPE(value)->tp_name, "numpy.ndarray") == 0;
    *out = (operand){0};
    if (sequence || numpy_array)
        return binding_to_array(value, sequence, a->dt, FACE_NUMPY, DT_F64, &out->a);
    int done = binding_to_operand(value, FACE_NUMPY, out);
    if (done == 0) PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(value));
    if (done <= 0) return false;
    if (out->a || out->s.kind == 'F' || out->s.kind == 'B' || binding_integer_fits(out->s, a->dt))
        return true;
    PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", value,
                 dtype_table[a->dt].name);
    return false;
}

static int set_item(PyObject *self, PyObject *key, PyObject *value) {
    array *a = ((pyarray *)self)->a;
    operand right;
    if (!to_value(a, key, value, &right)) return -1;
    bool ok = binding_set_item(a, key, &right, FACE_NUMPY);
    binding_operand_done(&right);
    return ok ? 0 : -1;
}

static int mp_ass_subscript(PyObject *self, PyObject *key, PyObject *value) {
    if (value) return IN_SECTION(set_item(self, key, value));
    PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
    return -1;
}

static PyMappingMethods mapping_methods = {mp_length, mp_subscript, mp_ass_subscript};

static PyObject *sq_item(PyObject *self, Py_ssize_t i) {
    array *a = ((pyarray *)self)->a, *made;
    if (a->ndim == 0 || i < 0 || i >= (Py_ssize_t)a->shape[0]) {
        PyErr_SetString(PyExc_IndexError, "index out of bounds");
        return NULL;
    }
    array_slice items[ARRAY_MAX_NDIM] = {{.kind = SLICE_INDEX, .start = i}};
    for (int d = 1; d < a->ndim; d++)
        items[d] = (array_slice){.kind = SLICE_RANGE, .stop = a->shape[d], .step = 1};
    simt_status status = IN_SECTION(array_slice_view(a, items, a->ndim, &made));
    return binding_ok(status) ? binding_wrap_view(self, made) : NULL;
}

static int sq_contains(PyObject *self, PyObject *value) {
    PyObject *equal = binding_ndarray_compare(self, value, Py_EQ);
    if (!equal) return -1;
    int found = 0;
    if (equal != Py_NotImplemented) {
        PyObject *any =
            binding_reduce(REDUCE_ANY, ((pyarray *)equal)->a, NULL, NULL, NULL, NULL, NULL);
        found = any ? binding_ndarray_number.nb_bool(any) : -1;
        Py_XDECREF(any);
    }
    Py_DECREF(equal);
    return found;
}

static PySequenceMethods sequence_methods = {
    .sq_length = mp_length, .sq_item = sq_item, .sq_contains = sq_contains};

static PyObject *iterate(PyObject *self) {
    if (((pyarray *)self)->a->ndim > 0) return PySeqIter_New(self);
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d array");
    return NULL;
}

/* ---- attributes ---- */

#define GETTER(name, expression)                                 \
    static PyObject *get_##name(PyObject *self, void *closure) { \
        array *a = ((pyarray *)self)->a;                         \
        return expression;                                       \
    }
GETTER(shape, binding_from_shape(a->shape, a->ndim))
GETTER(strides, binding_from_shape(a->strides, a->ndim))
GETTER(ndim, PyLong_FromLong(a->ndim))
GETTER(size, PyLong_FromLongLong(a->size))
GETTER(itemsize, PyLong_FromSize_t(dtype_bytes(a->dt)))
GETTER(nbytes, PyLong_FromLongLong(a->size *(int64_t)dtype_bytes(a->dt)))
GETTER(dtype, binding_numpy_dtype(a->dt))
#undef GETTER

static PyObject *get_transposed(PyObject *self, void *closure) {
    array *made;
    simt_status status = IN_SECTION(array_transpose(((pyarray *)self)->a, NULL, &made));
    return binding_ok(status) ? binding_wrap_view(self, made) : NULL;
}

static PyObject *get_base(PyObject *self, void *closure) {
    PyObject *base = ((pyarray *)self)->extra;
    return Py_NewRef(base ? base : Py_None);
}

static PyObject *get_f_contiguous(PyObject *self, void *closure) {
    return PyBool_FromLong(array_is_f_contiguous(((pyarray *)self)->a));
}
static PyObject *get_c_contiguous(PyObject *self, void *closure) {
    return PyBool_FromLong(array_is_contiguous(((pyarray *)self)->a));
}

static int set_shape_body(PyObject *self, PyObject *value) {
    pyarray *p = (pyarray *)self;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    array *made = NULL;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "cannot delete the shape of an array");
        return -1;
    }
    if (!binding_may_replace("the shape of an array")) return -1;
    if (!binding_to_shape(value, "shape", shape, &ndim)) return -1;
    if (!binding_ok(array_try_reshape_view(p->a, shape, ndim, &made))) return -1;
    if (!made) {
        PyErr_SetString(PyExc_AttributeError,
                        "Incompatible shape for in-place modification. Use `.reshape()` to make "
                        "a copy with the desired shape.");
        return -1;
    }
    array *old = p->a;
    p->a = made;
    section_retire(old, binding_drop_array); /* others may be in the middle of it */
    return 0;
}

/* What has this shape now may be replaced by another thread, too, while the view is made. */
static int set_shape(PyObject *self, PyObject *value, void *closure) {
    return IN_SECTION(set_shape_body(self, value));
}

/* As CuPy's; the memory is the host's. */
static PyObject *get_cuda_array_interface(PyObject *self, void *unused) {
    return binding_cuda_interface(self);
}

static PyGetSetDef getset[] = {
    {"__cuda_array_interface__", get_cuda_array_interface, NULL, NULL, NULL},
    {"shape", get_shape, set_shape, "Lengths of the axes.", NULL},
    {"strides", get_strides, NULL, "Bytes between neighbours along each axis.", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"dtype", get_dtype, NULL, "The element type, a numpy.dtype.", NULL},
    {"base", get_base, NULL, "The array whose memory this one views, or None.", NULL},
    {"_c_contiguous", get_c_contiguous, NULL, NULL, NULL},
    {"_f_contiguous", get_f_contiguous, NULL, NULL, NULL},
    {"T", get_transposed, NULL, "The transposed view.", NULL},
    {NULL},
};

/* simt.cupy._array.FUNCTION(self, ...): what is written in Python and rare. */
static PyObject *call_python(const char *function, PyObject *self, PyObject *argument) {
    PyObject *module = PyImport_ImportModule("simt.cupy._array");
    PyObject *callable = module ? PyObject_GetAttrString(module, function) : NULL;
    Py_XDECREF(module);
    PyObject *result =
        callable ? PyObject_CallFunctionObjArgs(callable, self, argument, NULL) : NULL;
    Py_XDECREF(callable);
    return result;
}

static PyObject *ndarray_repr(PyObject *self) { return call_python("array_repr", self, NULL); }
static PyObject *ndarray_str(PyObject *self) { return call_python("array_str", self, NULL); }

/* Names that are not there say so, and name the nearest. */
static PyObject *getattro(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text || text[0] == '_') return NULL;
    binding_forgive_if(PyExc_AttributeError);
    PyObject *error = call_python("missing", self, name);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

PyTypeObject binding_array_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.Array",
    .tp_doc = "What the arrays of all faces are.",
    .tp_basicsize = sizeof(pyarray),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = array_dealloc,
    .tp_weaklistoffset = offsetof(pyarray, weakrefs),
};

PyTypeObject binding_ndarray_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cupy.ndarray",
    .tp_doc = "An array of the cupy face: NumPy's model, computed when looked at.",
    .tp_basicsize = sizeof(ndarray_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = ndarray_traverse,
    .tp_base = &binding_array_type,
    .tp_new = ndarray_new,
    .tp_dealloc = ndarray_dealloc,
    .tp_weaklistoffset = offsetof(pyarray, weakrefs),
    .tp_as_number = &binding_ndarray_number,
    .tp_as_mapping = &mapping_methods,
    .tp_as_sequence = &sequence_methods,
    .tp_richcompare = binding_ndarray_compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_iter = iterate,
    .tp_repr = ndarray_repr,
    .tp_str = ndarray_str,
    .tp_getattro = getattro,
    .tp_getset = getset,
    .tp_methods = binding_ndarray_methods,
};

/* extend_type(type, {name: object}): attributes written in Python on a type made in C. */
static PyObject *extend_type(PyObject *module, PyObject *args) {
    PyObject *type, *names, *key, *value;
    Py_ssize_t at = 0;
    if (!PyArg_ParseTuple(args, "O!O!:extend_type", &PyType_Type, &type, &PyDict_Type, &names))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, &binding_array_type)) {
        PyErr_SetString(PyExc_TypeError, "extend_type() takes an array type of simt._core");
        return NULL;
    }
    while (PyDict_Next(names, &at, &key, &value))
        if (PyDict_SetItem(((PyTypeObject *)type)->tp_dict, key, value) < 0) return NULL;
    PyType_Modified((PyTypeObject *)type);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"extend_type", extend_type, METH_VARARGS, "Adds attributes to an array type."},
    {NULL},
};

bool binding_add_array_types(PyObject *module) {
    return PyType_Ready(&binding_array_type) == 0 && PyType_Ready(&binding_ndarray_type) == 0 &&
           PyModule_AddObjectRef(module, "Array", (PyObject *)&binding_array_type) == 0 &&
           PyModule_AddObjectRef(module, "ndarray", (PyObject *)&binding_ndarray_type) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}
