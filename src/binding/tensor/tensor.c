/* simt.torch.Tensor: life, attributes, operators, indexing slots. Its methods are in the other files of tensor/. */
#include "binding/tensor/device.h"

#include <stddef.h>
#include <string.h>

/* ---- life ---- */

/* Rings through hooks and the contexts of Python's functions are found where this object alone holds
 * what holds them. */

static int hooks_visit(const grad_hooks *h, visitproc visit, void *arg) {
    for (int i = 0; i < h->n; i++) Py_VISIT((PyObject *)h->list[i].object);
    return 0;
}

static int node_visit(const grad_node *n, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)n->object);
    int stop = 0;
    for (grad_watch *w = n->watches; w && !stop; w = w->next)
        stop = hooks_visit(&w->hooks, visit, arg);
    return stop;
}

static int tensor_traverse(PyObject *o, visitproc visit, void *arg) {
    pytensor *self = (pytensor *)o;
    Py_VISIT(self->dict);
    if (!self->t || self->t->refs != 1) return 0;
    Py_VISIT(binding_owner(self->t->a, self->t->a == self->base.a ? 2 : 1, 1));
    int stop = hooks_visit(&self->t->hooks, visit, arg);
    grad_node *fn = self->t->fn;
    return stop || !fn || fn->refs != 1 ? stop : node_visit(fn, visit, arg);
}

static void clear_hooks(tensor *t) {
    while (t->hooks.n) tensor_remove_hook(t, t->hooks.list[0].id);
    if (t->fn && t->fn->refs == 1) /* contexts are cleared themselves */
        for (grad_watch *w = t->fn->watches; w; w = w->next)
            while (w->hooks.n) tensor_remove_hook(t, w->hooks.list[0].id);
}

static int tensor_clear_refs(PyObject *o) {
    pytensor *self = (pytensor *)o;
    Py_CLEAR(self->dict);
    if (self->t && self->t->refs == 1) IN_SECTION((clear_hooks(self->t), 0));
    return 0;
}

static void tensor_dealloc(PyObject *o) {
    pytensor *self = (pytensor *)o;
    PyTypeObject *type = Py_TYPE(o);
    PyObject_GC_UnTrack(o);
    if (self->t && self->t->object == self) self->t->object = NULL; /* before any code can run */
    binding_array_clear(&self->base);
    Py_CLEAR(self->dict);
    tensor_unref(self->t);
    type->tp_free(o); /* subclasses: subtype_dealloc drops the type */
}

static PyObject *wrap_as(PyTypeObject *type, tensor *t) { /* takes t */
    pytensor *self = (pytensor *)type->tp_alloc(type, 0);
    if (!self) {
        tensor_unref(t);
        return NULL;
    }
    self->base.a = array_ref(t->a);
    self->t = t;
    if (!t->object || Py_REFCNT((PyObject *)t->object) == 0) t->object = self;
    return (PyObject *)self;
}

/* An object that is on its way out (its weak references are told, say) is none any more. */
PyObject *tensor_wrap(tensor *t) {
    if (!t) return NULL;
    if (!t->object || Py_REFCNT((PyObject *)t->object) == 0) return wrap_as(tensor_class, t);
    PyObject *o = Py_NewRef((PyObject *)t->object);
    tensor_unref(t);
    return o;
}

PyObject *tensor_wrap_array(array *a) {
    tensor *t = tensor_new(a);
    return t ? tensor_wrap(t) : binding_raise();
}

void tensor_set_array(PyObject *o, array *a) {
    pytensor *self = (pytensor *)o;
    array *const old[2] = {self->base.a, self->t->a};
    self->t->a = a;
    self->base.a = array_ref(a);
    for (int i = 0; i < 2; i++) section_retire(old[i], binding_drop_array);
}

/* Tensor(2, 3), Tensor([1, 2]): float32, as PyTorch's legacy constructor. */
static PyObject *tensor_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    array *a = NULL;
    int64_t shape[ARRAY_MAX_NDIM] = {0};
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (!binding_start()) return NULL;
    if (n == 1 && tensor_check(PyTuple_GET_ITEM(args, 0))) {
        a = array_ref(tensor_of(PyTuple_GET_ITEM(args, 0))->a);
    } else if (n == 1 && !PyLong_Check(PyTuple_GET_ITEM(args, 0)) &&
               !Py_IS_TYPE(PyTuple_GET_ITEM(args, 0), &tensor_size_type)) {
        if (!binding_to_array(PyTuple_GET_ITEM(args, 0), true, DT_F32, FACE_TORCH,
                              grad_default_float, &a))
            return NULL;
    } else {
        int ndim = 1;
        if (n && !binding_args_to_shape(&PyTuple_GET_ITEM(args, 0), n, "size", shape, &ndim))
            return NULL;
        if (!binding_ok(array_full(grad_default_float, shape, ndim, (scalar){.kind = 'I'}, &a)))
            return NULL;
    }
    tensor *t = tensor_new(a);
    return t ? wrap_as(type, t) : binding_raise();
}

/* _make_subclass(cls, data, requires_grad=False): Parameter and its kin share data's memory. */
static PyObject *make_subclass(PyObject *module, PyObject *args) {
    PyObject *cls, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTuple(args, "OO!|p:_make_subclass", &cls, &tensor_type, &data, &requires_grad))
        return NULL;
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, &tensor_type)) {
        PyErr_SetString(PyExc_TypeError, "_make_subclass: cls must be a subclass of Tensor");
        return NULL;
    }
    tensor *t;
    if (!binding_ok(tensor_detach(tensor_of(data), &t))) return NULL;
    if (requires_grad && !dtype_is_float(t->a->dt)) {
        tensor_unref(t);
        PyErr_SetString(PyExc_RuntimeError,
                        "Only Tensors of floating point and complex dtype can require gradients");
        return NULL;
    }
    t->requires_grad = requires_grad;
    return wrap_as((PyTypeObject *)cls, t);
}

static PyObject *make_subclass_static(PyObject *unused, PyObject *args) {
    return make_subclass(NULL, args);
}

/* ---- attributes ---- */

static PyObject *get_shape(PyObject *o, void *unused) {
    const array *a = tensor_of(o)->a;
    return tensor_size_object(a->shape, a->ndim);
}
static PyObject *get_dtype(PyObject *o, void *unused) {
    return tensor_dtype_object(tensor_of(o)->a->dt);
}
static PyObject *get_device(PyObject *o, void *unused) {
    return tensor_device_object(tensor_of(o));
}
static PyObject *get_is_meta(PyObject *o, void *unused) {
    return PyBool_FromLong(array_is_meta(tensor_of(o)->a));
}
static PyObject *get_ndim(PyObject *o, void *unused) {
    return PyLong_FromLong(tensor_of(o)->a->ndim);
}
static PyObject *get_false(PyObject *o, void *unused) { Py_RETURN_FALSE; }
static PyObject *get_itemsize(PyObject *o, void *unused) {
    return PyLong_FromSize_t(dtype_bytes(tensor_of(o)->a->dt));
}
static PyObject *get_nbytes(PyObject *o, void *unused) {
    const array *a = tensor_of(o)->a;
    return PyLong_FromLongLong(a->size * (int64_t)dtype_bytes(a->dt));
}

static PyObject *permuted(PyObject *o, bool last_two, const char *name) {
    tensor *t = tensor_of(o), *out = NULL;
    int ndim = t->a->ndim, axes[ARRAY_MAX_NDIM];
    if (last_two && ndim < 2) {
        PyErr_Format(
            PyExc_RuntimeError,
            "tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor.",
            name, ndim);
        return NULL;
    }
    for (int i = 0; i < ndim; i++) axes[i] = last_two ? i : ndim - 1 - i;
    if (last_two) {
        axes[ndim - 1] = ndim - 2;
        axes[ndim - 2] = ndim - 1;
    }
    return tensor_result(IN_SECTION(grad_permute(t, axes, "PermuteBackward0", &out)), out);
}
static PyObject *get_T(PyObject *o, void *unused) { return permuted(o, false, "T"); }
static PyObject *get_mT(PyObject *o, void *unused) { return permuted(o, true, "mT"); }

static PyGetSetDef own_getset[] = {{"shape", get_shape},
                                   {"dtype", get_dtype},
                                   {"device", get_device},
                                   {"ndim", get_ndim},
                                   {"is_cuda", get_false},
                                   {"is_sparse", get_false},
                                   {"is_quantized", get_false},
                                   {"is_mps", get_false},
                                   {"is_meta", get_is_meta},
                                   {"itemsize", get_itemsize},
                                   {"nbytes", get_nbytes},
                                   {"T", get_T},
                                   {"mT", get_mT},
                                   {"H", get_mT},
                                   {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
                                   {NULL}};

/* ---- operators ---- */

static PyObject *operate_on(array_op op, PyObject *x, PyObject *y) {
    tensor_value a, b;
    int done = tensor_to_operand(x, &a);
    if (done > 0) {
        done = tensor_to_operand(y, &b);
        if (done <= 0) tensor_operand_done(&a);
    }
    if (done < 0) return NULL;
    if (done == 0) Py_RETURN_NOTIMPLEMENTED;
    tensor_operand in[2] = {a.v, b.v};
    tensor *out = NULL;
    simt_status s = tensor_binary(op, in, &out);
    tensor_operand_done(&a);
    tensor_operand_done(&b);
    return tensor_result(s, out);
}
static inline PyObject *operate(array_op op, PyObject *x, PyObject *y) {
    return IN_SECTION(operate_on(op, x, y));
}

static PyObject *write_into(array_op op, PyObject *x, PyObject *y) {
    tensor_value b;
    int done = tensor_to_operand(y, &b);
    if (done < 0) return NULL;
    if (done == 0) Py_RETURN_NOTIMPLEMENTED;
    tensor_operand in[2] = {{tensor_of(x)}, b.v};
    simt_status s = grad_elementwise_inplace(op, in, 2, NULL);
    tensor_operand_done(&b);
    return tensor_same(s, x);
}
static inline PyObject *operate_inplace(array_op op, PyObject *x, PyObject *y) {
    return IN_SECTION(write_into(op, x, y));
}

#define BINARY(name, op)                                                                    \
    static PyObject *nb_##name(PyObject *x, PyObject *y) { return operate(OP_##op, x, y); } \
    static PyObject *nb_inplace_##name(PyObject *x, PyObject *y) {                          \
        return operate_inplace(OP_##op, x, y);                                              \
    }
#define COMPARE(how, op)
#include "binding/common/operators.def"

static PyObject *nb_power(PyObject *x, PyObject *y, PyObject *modulo) {
    if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return operate(OP_POWER, x, y);
}
static PyObject *nb_inplace_power(PyObject *x, PyObject *y, PyObject *modulo) {
    return operate_inplace(OP_POWER, x, y);
}
static PyObject *nb_matmul(PyObject *x, PyObject *y) {
    if (!tensor_check(x) || !tensor_check(y)) Py_RETURN_NOTIMPLEMENTED;
    tensor *out = NULL;
    return tensor_result(IN_SECTION(grad_matmul(tensor_of(x), tensor_of(y), &out)), out);
}

static PyObject *nb_unary(array_op op, PyObject *x) {
    tensor *out = NULL;
    return tensor_result(IN_SECTION(grad_unary(op, tensor_of(x), &out)), out);
}
static PyObject *nb_negative(PyObject *x) { return nb_unary(OP_NEGATIVE, x); }
static PyObject *nb_positive(PyObject *x) { return nb_unary(OP_POSITIVE, x); }
static PyObject *nb_absolute(PyObject *x) { return nb_unary(OP_ABSOLUTE, x); }
static PyObject *nb_invert(PyObject *x) {
    if (!dtype_is_float(tensor_of(x)->a->dt)) return nb_unary(OP_INVERT, x);
    PyErr_SetString(PyExc_TypeError,
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return NULL;
}

static bool one_item(PyObject *o, scalar *s) {
    array *a = tensor_of(o)->a;
    if (a->size == 1) return binding_ok(IN_SECTION(array_item(a, s)));
    PyErr_SetString(PyExc_ValueError,
                    "only one element tensors can be converted to Python scalars");
    return false;
}

static int nb_bool(PyObject *o) {
    array *a = tensor_of(o)->a;
    scalar s;
    if (a->size != 1) {
        PyErr_SetString(PyExc_RuntimeError,
                        a->size ? "Boolean value of Tensor with more than one value is ambiguous"
                                : "Boolean value of Tensor with no values is ambiguous");
        return -1;
    }
    if (!binding_ok(IN_SECTION(array_item(a, &s)))) return -1;
    return s.kind == 'F' ? s.f != 0 : s.i != 0;
}
static PyObject *nb_float(PyObject *o) {
    scalar s;
    if (!one_item(o, &s)) return NULL;
    return PyFloat_FromDouble(s.kind == 'F' ? s.f : s.kind == 'U' ? (double)s.u : (double)s.i);
}
static PyObject *nb_int(PyObject *o) {
    scalar s;
    if (!one_item(o, &s)) return NULL;
    if (s.kind == 'F') return PyLong_FromDouble(s.f);
    return s.kind == 'U' ? PyLong_FromUnsignedLongLong(s.u) : PyLong_FromLongLong(s.i);
}
static PyObject *nb_index(PyObject *o) {
    array *a = tensor_of(o)->a;
    if (dtype_is_float(a->dt) || a->size != 1) {
        PyErr_SetString(PyExc_TypeError,
                        "only integer tensors of a single element can be converted to an index");
        return NULL;
    }
    return nb_int(o);
}

static PyNumberMethods number_methods = {
#define BINARY(name, op) .nb_##name = nb_##name, .nb_inplace_##name = nb_inplace_##name,
#define COMPARE(how, op)
#include "binding/common/operators.def"
    .nb_power = nb_power,
    .nb_inplace_power = nb_inplace_power,
    .nb_matrix_multiply = nb_matmul,
    .nb_negative = nb_negative,
    .nb_positive = nb_positive,
    .nb_absolute = nb_absolute,
    .nb_invert = nb_invert,
    .nb_bool = nb_bool,
    .nb_float = nb_float,
    .nb_int = nb_int,
    .nb_index = nb_index,
};

static PyObject *compare(PyObject *x, PyObject *y, int op) {
    static const array_op ops[] = {
#define BINARY(name, op)
#define COMPARE(how, op) [Py_##how] = OP_##op,
#include "binding/common/operators.def"
    };
    return operate(ops[op], x, y);
}

static Py_hash_t hash(PyObject *o) { return Py_HashPointer(o); }

/* ---- sequence and mapping ---- */

static Py_ssize_t length(PyObject *o) {
    const array *a = tensor_of(o)->a;
    if (a->ndim) return (Py_ssize_t)a->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

static PyObject *item_at(PyObject *o, Py_ssize_t i) { /* for iteration: IndexError ends it */
    tensor *t = tensor_of(o), *out = NULL;
    if (t->a->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
        return NULL;
    }
    if (i < 0 || i >= t->a->shape[0]) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for dimension 0 with size %lld",
                     i, (long long)t->a->shape[0]);
        return NULL;
    }
    array_slice item = {.kind = SLICE_INDEX, .start = i};
    return tensor_result(IN_SECTION(grad_slice(t, &item, 1, "SelectBackward0", &out)), out);
}

static PyObject *iterate(PyObject *o) {
    if (tensor_of(o)->a->ndim) return PySeqIter_New(o);
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return NULL;
}

static int find_equal(PyObject *o, PyObject *value) {
    PyObject *hits = operate(OP_EQUAL, o, value);
    if (!hits || hits == Py_NotImplemented) {
        Py_XDECREF(hits);
        if (hits)
            PyErr_Format(
                PyExc_RuntimeError,
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                Py_TYPE(value));
        return -1;
    }
    tensor *t = tensor_of(hits), *any = NULL;
    simt_status s = grad_reduce(OP_ANY, t, (1u << t->a->ndim) - 1, false, -1, &any);
    Py_DECREF(hits);
    scalar truth = {0};
    if (s == SIMT_OK) s = array_item(any->a, &truth);
    if (s == SIMT_OK) tensor_unref(any);
    return binding_ok(s) ? truth.i != 0 : -1;
}
static int contains(PyObject *o, PyObject *value) { return IN_SECTION(find_equal(o, value)); }

static PyObject *subscript(PyObject *o, PyObject *key) {
    return IN_SECTION(tensor_get_item(o, key));
}
static int set_subscript(PyObject *o, PyObject *key, PyObject *value) {
    return IN_SECTION(tensor_set_item(o, key, value));
}

static PySequenceMethods sequence_methods = {.sq_item = item_at, .sq_contains = contains};
static PyMappingMethods mapping_methods = {
    .mp_length = length, .mp_subscript = subscript, .mp_ass_subscript = set_subscript};

/* ---- printing: python/simt/torch/_tensor_str.py ---- */

PyTypeObject *tensor_class;
static PyObject *format_function;

static PyObject *repr(PyObject *o) {
    if (!format_function) {
        PyObject *module = PyImport_ImportModule("simt.torch._tensor_str");
        format_function = module ? PyObject_GetAttrString(module, "_str") : NULL;
        Py_XDECREF(module);
        if (!format_function) return NULL;
    }
    return PyObject_CallOneArg(format_function, o);
}

PyTypeObject tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.TensorBase",
    .tp_basicsize = sizeof(pytensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = tensor_tp_new,
    .tp_dealloc = tensor_dealloc,
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear_refs,
    .tp_dictoffset = offsetof(pytensor, dict),
    .tp_weaklistoffset = offsetof(pyarray, weakrefs),
    .tp_repr = repr,
    .tp_hash = hash,
    .tp_richcompare = compare,
    .tp_iter = iterate,
    .tp_as_number = &number_methods,
    .tp_as_sequence = &sequence_methods,
    .tp_as_mapping = &mapping_methods,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = PyObject_GenericSetAttr,
};

/* ---- the module ---- */

static size_t count_methods(PyMethodDef *m) {
    size_t n = 0;
    while (m[n].ml_name) n++;
    return n;
}
static size_t count_getset(PyGetSetDef *g) {
    size_t n = 0;
    while (g[n].name) n++;
    return n;
}

static bool ready_type(PyObject *module) {
    PyMethodDef *tables[] = {tensor_table_methods,   tensor_math_methods,   tensor_shape_methods,
                             tensor_index_methods,   tensor_reduce_methods, tensor_make_methods,
                             tensor_facts_methods,   tensor_cast_methods,   tensor_nn_methods,
                             tensor_autograd_methods};
    enum { TABLES = sizeof tables / sizeof *tables };
    size_t total = 0, at = 0;
    for (int i = 0; i < TABLES; i++) total += count_methods(tables[i]);
    PyMethodDef *all = binding_alloc(total + 2, sizeof *all);
    size_t own = count_getset(own_getset), other = count_getset(tensor_autograd_getset);
    PyGetSetDef *getset = binding_alloc(own + other + 1, sizeof *getset);
    if (!all || !getset) return false;
    for (int i = 0; i < TABLES; i++) {
        size_t n = count_methods(tables[i]);
        memcpy(all + at, tables[i], n * sizeof *all);
        at += n;
    }
    all[at] =
        (PyMethodDef){"_make_subclass", make_subclass_static, METH_VARARGS | METH_STATIC, NULL};
    memcpy(getset, own_getset, own * sizeof *getset);
    memcpy(getset + own, tensor_autograd_getset, other * sizeof *getset);
    tensor_type.tp_base = &binding_array_type;
    tensor_type.tp_methods = all;
    tensor_type.tp_getset = getset;
    tensor_type.tp_doc = "What torch.Tensor is made of.";
    if (PyType_Ready(&tensor_type) < 0) return false;
    PyObject *made = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s()ss}", "Tensor",
                                           &tensor_type, "__slots__", "__module__", "torch");
    tensor_class = (PyTypeObject *)made;
    return made && PyModule_AddObjectRef(module, "Tensor", made) == 0;
}

/* _add_methods({name: function}): methods written in Python. */
static PyObject *add_methods(PyObject *module, PyObject *methods) {
    PyObject *name, *function;
    for (Py_ssize_t at = 0; PyDict_Next(methods, &at, &name, &function);)
        if (PyObject_SetAttr((PyObject *)tensor_class, name, function) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef own_functions[] = {{"_make_subclass", make_subclass, METH_VARARGS, NULL},
                                      {"_add_methods", add_methods, METH_O, NULL},
                                      {NULL}};
static struct PyModuleDef torch_module = {PyModuleDef_HEAD_INIT, .m_name = "simt._core.torch",
                                          .m_size = -1};

bool binding_add_torch(PyObject *core) {
    PyObject *module = PyModule_Create(&torch_module);
    if (!module) return false;
    PyMethodDef *tables[] = {
        own_functions,          tensor_table_functions,    tensor_math_functions,
        tensor_shape_functions, tensor_index_functions,    tensor_reduce_functions,
        tensor_make_functions,  tensor_facts_functions,    tensor_cast_functions,
        tensor_nn_functions,    tensor_autograd_functions, tensor_capture_functions};
    bool ok = tensor_add_types(module) && ready_type(module) && tensor_add_autograd(module);
    size_t count = sizeof tables / sizeof *tables;
    for (size_t i = 0; ok && i < count; i++) ok = PyModule_AddFunctions(module, tables[i]) == 0;
    ok = ok && PyModule_AddFunctions(core, tensor_core_functions) == 0 &&
         PyModule_AddObjectRef(core, "torch", module) == 0;
    Py_DECREF(module);
    return ok;
}
