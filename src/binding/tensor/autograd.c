/* Gradients from Python: attributes, backward, hooks, modes, functions defined in Python. */
#include <string.h>

#include "binding/tensor/tensor.h"

/* ---- attributes ---- */

static PyObject *get_requires_grad(PyObject *o, void *unused) {
    grad_node *fn = NULL;
    if (!binding_ok(IN_SECTION(tensor_get_fn(tensor_of(o), &fn)))) return NULL;
    return PyBool_FromLong(tensor_of(o)->requires_grad);
}
static int set_requires_grad(PyObject *o, PyObject *value, void *unused) {
    int on = value ? binding_truth(value) : 0;
    if (on < 0) return -1;
    return binding_ok(tensor_set_requires_grad(tensor_of(o), on)) ? 0 : -1;
}
static PyObject *get_is_leaf(PyObject *o, void *unused) {
    grad_node *fn = NULL;
    if (!binding_ok(IN_SECTION(tensor_get_fn(tensor_of(o), &fn)))) return NULL;
    return PyBool_FromLong(!fn);
}
static PyObject *get_grad(PyObject *o, void *unused) {
    tensor *g = tensor_of(o)->grad;
    if (!g) Py_RETURN_NONE;
    return tensor_wrap(tensor_ref(g));
}
static int set_grad(PyObject *o, PyObject *value, void *unused) {
    tensor *t = tensor_of(o), *g = NULL;
    if (value && value != Py_None) {
        if (!tensor_check(value)) {
            PyErr_Format(PyExc_TypeError,
                         "assigned grad expected to be a Tensor or None but got %s",
                         Py_TYPE(value)->tp_name);
            return -1;
        }
        g = tensor_of(value);
        if (g == t) {
            PyErr_SetString(PyExc_RuntimeError, "can't assign Variable as its own grad");
            return -1;
        }
        if (g->a->dt != t->a->dt) {
            PyErr_Format(PyExc_RuntimeError,
                         "attempting to assign a gradient with dtype '%s' to a tensor with dtype "
                         "'%s'. Please ensure "
                         "that the gradient and the tensor have the same dtype",
                         dtype_torch_name(g->a->dt), dtype_torch_name(t->a->dt));
            return -1;
        }
        if (g->a->ndim != t->a->ndim ||
            memcmp(g->a->shape, t->a->shape, sizeof(int64_t) * (size_t)t->a->ndim) != 0) {
            char a[300], b[300];
            shape_text(g->a->shape, g->a->ndim, a, sizeof a);
            shape_text(t->a->shape, t->a->ndim, b, sizeof b);
            PyErr_Format(PyExc_RuntimeError,
                         "attempting to assign a gradient of size '%s' to a tensor of size '%s'. "
                         "Please ensure that "
                         "the gradient and the tensor are the same size",
                         a, b);
            return -1;
        }
        tensor_ref(g);
    }
    IN_SECTION((tensor_set_grad(t, g), 0));
    return 0;
}
/* Writes through .data are not seen by the version counter of the tensor, as in PyTorch. */
static PyObject *get_data(PyObject *o, void *unused) {
    array *a = NULL;
    simt_status s = IN_SECTION(array_alias(tensor_of(o)->a, true, &a));
    return binding_ok(s) ? tensor_wrap_array(a) : NULL;
}
static int replace_data(PyObject *o, PyObject *value) {
    array *a = NULL;
    if (!binding_ok(array_alias(tensor_of(value)->a, tensor_of(o)->a->hidden, &a))) return -1;
    tensor_set_array(o, a);
    return 0;
}
static int set_data(PyObject *o, PyObject *value, void *unused) {
    if (!value || !tensor_check(value)) {
        PyErr_SetString(PyExc_TypeError, "Variable data has to be a tensor");
        return -1;
    }
    if (!binding_may_replace("the data of a tensor")) return -1;
    return IN_SECTION(replace_data(o, value));
}
static PyObject *get_version(PyObject *o, void *unused) {
    return PyLong_FromUnsignedLong(*array_version(tensor_of(o)->a));
}
static PyObject *get_output_nr(PyObject *o, void *unused) {
    return PyLong_FromLong(tensor_of(o)->output);
}
static PyObject *get_retains_grad(PyObject *o, void *unused) {
    return PyBool_FromLong(tensor_of(o)->retains_grad);
}
static PyObject *get_base(PyObject *o, void *unused) {
    tensor *base = tensor_of(o)->base;
    if (!base) Py_RETURN_NONE;
    return tensor_wrap(tensor_ref(base));
}

/* ---- grad_fn: a small object around a node; its type's name is the node's ---- */

typedef struct pynode {
    PyObject_HEAD grad_node *n;
} pynode;
static PyTypeObject node_type;
static PyObject *node_types; /* name -> type */

static void node_dealloc(PyObject *o) {
    grad_node_unref(((pynode *)o)->n);
    Py_TYPE(o)->tp_free(o); /* subclasses: subtype_dealloc drops the type */
}

static PyObject *wrap_node(grad_node *n) { /* borrowed n */
    PyObject *type;
    grad_node_ref(n); /* making types and objects may run anything */
    if (binding_item(node_types, n->name, &type) == 0) {
        type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){}", n->name, &node_type);
        if (type && PyDict_SetItemString(node_types, n->name, type) < 0) Py_CLEAR(type);
    }
    pynode *o = type ? (pynode *)((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0) : NULL;
    Py_XDECREF(type);
    if (o)
        o->n = n;
    else
        grad_node_unref(n);
    return (PyObject *)o;
}
static PyObject *node_repr(PyObject *o) {
    return PyUnicode_FromFormat("<%s object at %p>", ((pynode *)o)->n->name, ((pynode *)o)->n);
}
static PyObject *node_name(PyObject *o, PyObject *unused) {
    return PyUnicode_FromString(((pynode *)o)->n->name);
}
static PyObject *node_next(PyObject *o, void *unused) {
    grad_node *n = ((pynode *)o)->n;
    PyObject *tuple = PyTuple_New(n->nin);
    for (int i = 0; tuple && i < n->nin; i++) {
        grad_edge *e = &n->edges[i];
        PyObject *node = e->node ? wrap_node(e->node) : Py_NewRef(Py_None);
        PyObject *pair = node ? Py_BuildValue("(Ni)", node, e->output) : NULL;
        if (!pair)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, pair);
    }
    return tuple;
}
static PyObject *node_variable(PyObject *o, void *unused) {
    tensor *leaf = ((pynode *)o)->n->leaf;
    if (leaf) return tensor_wrap(tensor_ref(leaf));
    PyErr_SetString(PyExc_AttributeError, "this node has no attribute 'variable'");
    return NULL;
}
static PyObject *node_compare(PyObject *x, PyObject *y, int op) {
    if (!PyObject_TypeCheck(y, &node_type) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((((pynode *)x)->n == ((pynode *)y)->n) == (op == Py_EQ));
}
static Py_hash_t node_hash(PyObject *o) { return Py_HashPointer(((pynode *)o)->n); }
static PyMethodDef node_methods[] = {{"name", node_name, METH_NOARGS, NULL}, {NULL}};
static PyGetSetDef node_getset[] = {
    {"next_functions", node_next}, {"variable", node_variable}, {NULL}};
static PyTypeObject node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.autograd.graph.Node",
    .tp_basicsize = sizeof(pynode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_dealloc = node_dealloc,
    .tp_repr = node_repr,
    .tp_richcompare = node_compare,
    .tp_hash = node_hash,
    .tp_methods = node_methods,
    .tp_getset = node_getset,
};

static PyObject *find_grad_fn(PyObject *o) {
    grad_node *fn = NULL;
    if (!binding_ok(tensor_get_fn(tensor_of(o), &fn))) return NULL;
    if (!fn) Py_RETURN_NONE;
    return wrap_node(fn);
}
static PyObject *get_grad_fn(PyObject *o, void *unused) { return IN_SECTION(find_grad_fn(o)); }

PyGetSetDef tensor_autograd_getset[] = {{"requires_grad", get_requires_grad, set_requires_grad},
                                        {"is_leaf", get_is_leaf},
                                        {"grad", get_grad, set_grad},
                                        {"data", get_data, set_data},
                                        {"grad_fn", get_grad_fn},
                                        {"_version", get_version},
                                        {"output_nr", get_output_nr},
                                        {"retains_grad", get_retains_grad},
                                        {"_base", get_base},
                                        {NULL}};

/* ---- backward ---- */

static PyObject *op_backward(PyObject **v) { /* gradient, retain_graph, create_graph, inputs */
    tensor *root = tensor_of(v[0]), *seed = NULL;
    bool create, retain;
    if (v[1] && v[1] != Py_None && !(seed = tensor_arg(v[1], "backward", "gradient", 1)))
        return NULL;
    if (!tensor_bool_arg(v[3], false, &create) || !tensor_bool_arg(v[2], create, &retain))
        return NULL;
    tensor *inputs[64];
    PyObject *list = NULL; /* keeps the inputs: the caller's list may change meanwhile */
    grad_request r = {.roots = &root,
                      .seeds = &seed,
                      .nroots = 1,
                      .retain_graph = retain,
                      .create_graph = create};
    if (v[4] && v[4] != Py_None) {
        list = tensor_check(v[4]) ? PyTuple_Pack(1, v[4]) : binding_tuple(v[4]);
        if (!list) return NULL;
        Py_ssize_t n = PyTuple_GET_SIZE(list);
        bool ok = n > 0 && n <= 64;
        if (!ok)
            PyErr_SetString(PyExc_RuntimeError,
                            "'inputs' argument to backward() must hold 1 to 64 tensors");
        for (Py_ssize_t i = 0; ok && i < n; i++)
            ok = (inputs[i] = tensor_arg(PyTuple_GET_ITEM(list, i), "backward", "inputs", 4)) !=
                 NULL;
        if (!ok) {
            Py_DECREF(list);
            return NULL;
        }
        r.inputs = inputs;
        r.ninputs = (int)n;
        r.accumulate_inputs = true;
    }
    tensor_ref(root);
    bool ok = binding_ok(grad_backward(&r));
    tensor_unref(root);
    Py_XDECREF(list);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}
TENSOR_SIGNATURE(backward, 1, 4, "input", "gradient", "retain_graph", "create_graph", "inputs")
TENSOR_METHOD(backward, op_backward)

static tensor **tensor_list(PyObject *tuple, bool none, const char *name) { /* binding_alloc */
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    tensor **list = binding_alloc((size_t)n + 1, sizeof *list);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(tuple, i);
        if (none && o == Py_None) continue;
        if (!(list[i] = tensor_arg(o, name, "tensors", (int)i + 1))) {
            heap_free(list);
            return NULL;
        }
    }
    return list;
}

/* _grad(outputs, inputs or None, grad_outputs, retain_graph, create_graph, allow_unused): tuples.
 * inputs None: backward of several roots. */
static PyObject *autograd_grad_body(PyObject *module, PyObject *args) {
    PyObject *outputs, *inputs, *seeds;
    int retain, create, unused;
    if (!PyArg_ParseTuple(args, "O!OO!ppp:_grad", &PyTuple_Type, &outputs, &inputs, &PyTuple_Type,
                          &seeds, &retain, &create, &unused))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(outputs), m = inputs == Py_None ? 0 : PyTuple_GET_SIZE(inputs);
    tensor **roots = tensor_list(outputs, false, "grad"),
           **grads = roots ? tensor_list(seeds, true, "grad") : NULL;
    tensor **wanted = grads && m ? tensor_list(inputs, false, "grad") : NULL;
    tensor **results = binding_alloc((size_t)m + 1, sizeof *results);
    PyObject *r = NULL;
    if (roots && grads && results && (wanted || !m)) {
        grad_request q = {.roots = roots,
                          .seeds = grads,
                          .nroots = (int)n,
                          .retain_graph = retain,
                          .create_graph = create,
                          .inputs = wanted,
                          .ninputs = (int)m,
                          .allow_unused = unused,
                          .results = m ? results : NULL};
        if (binding_ok(grad_backward(&q))) {
            r = PyTuple_New(m);
            for (Py_ssize_t i = 0; r && i < m; i++) {
                PyObject *o = results[i] ? tensor_wrap(results[i]) : Py_NewRef(Py_None);
                results[i] = NULL;
                if (!o)
                    Py_CLEAR(r);
                else
                    PyTuple_SET_ITEM(r, i, o);
            }
        }
        for (Py_ssize_t i = 0; i < m; i++) tensor_unref(results[i]);
    }
    heap_free(roots);
    heap_free(grads);
    heap_free(wanted);
    heap_free(results);
    return r;
}
SECTION_FUNCTION(autograd_grad, autograd_grad_body)

static PyObject *op_detach(PyObject **v) {
    SELF(v, "detach");
    tensor *out = NULL;
    return tensor_result(tensor_detach(self, &out), out);
}
TENSOR_OP(detach, op_detach, 1, 1, "input")
static PyObject *method_detach_body(PyObject *o, PyObject *unused) {
    tensor *t = tensor_of(o);
    if (t->base) {
        PyErr_SetString(PyExc_RuntimeError, "Can't detach views in-place. Use detach() instead.");
        return NULL;
    }
    tensor_leave_graph(t);
    return Py_NewRef(o);
}
SECTION_FUNCTION(method_detach_, method_detach_body)
static PyObject *op_requires_grad_(PyObject **v) {
    bool on;
    if (!tensor_bool_arg(v[1], true, &on)) return NULL;
    return tensor_same(tensor_set_requires_grad(tensor_of(v[0]), on), v[0]);
}
TENSOR_SIGNATURE(requires_grad_, 1, 2, "input", "requires_grad")
TENSOR_METHOD(requires_grad_, op_requires_grad_)
static PyObject *method_retain_grad_body(PyObject *o, PyObject *unused) {
    if (!binding_ok(tensor_retain_grad(tensor_of(o)))) return NULL;
    Py_RETURN_NONE;
}
SECTION_FUNCTION(method_retain_grad, method_retain_grad_body)

/* ---- hooks ---- */

static PyObject *add_hook_body(PyObject *o, PyObject *callable) { /* returns the id */
    int64_t id;
    if (!binding_ok(tensor_add_hook(tensor_of(o), Py_NewRef(callable), &id))) return NULL;
    return PyLong_FromLongLong(id);
}
SECTION_FUNCTION(add_hook, add_hook_body)
static PyObject *remove_hook_body(PyObject *o, PyObject *id) {
    int64_t number;
    if (!binding_to_int64(id, &number)) return NULL;
    tensor_remove_hook(tensor_of(o), number);
    Py_RETURN_NONE;
}
SECTION_FUNCTION(remove_hook, remove_hook_body)

static simt_status pending_error(void) { /* a Python exception is set; binding_raise leaves it */
    return status_fail(SIMT_ERR_RUNTIME, "a Python function of the tape failed");
}

static simt_status call_hook(void *object, tensor *g, tensor **out) {
    PyObject *arg = tensor_wrap(tensor_ref(g));
    PyObject *r = arg ? PyObject_CallOneArg(object, arg) : NULL;
    Py_XDECREF(arg);
    if (!r) return pending_error();
    simt_status s = SIMT_OK;
    if (tensor_check(r))
        *out = tensor_ref(tensor_of(r));
    else if (r != Py_None) {
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s'",
                     Py_TYPE(r)->tp_name);
        s = pending_error();
    }
    Py_DECREF(r);
    return s;
}
static void release_object(void *object) { Py_DECREF((PyObject *)object); }

/* ---- functions defined in Python: object is a callable (grads tuple) -> tuple of tensors or None
 * ---- */

static simt_status apply_function(grad_node *n, tensor *const *out, tensor **in) {
    PyObject *args = PyTuple_New(n->nout);
    for (int i = 0; args && i < n->nout; i++) {
        PyObject *o = out[i] ? tensor_wrap(tensor_ref(out[i])) : Py_NewRef(Py_None);
        if (!o)
            Py_CLEAR(args);
        else
            PyTuple_SET_ITEM(args, i, o);
    }
    PyObject *r = args ? PyObject_CallOneArg((PyObject *)n->object, args) : NULL;
    Py_XDECREF(args);
    if (!r) return pending_error();
    simt_status s = SIMT_OK;
    if (!PyTuple_Check(r) || PyTuple_GET_SIZE(r) != n->nin) {
        PyErr_Format(PyExc_RuntimeError,
                     "function %s returned an incorrect number of gradients (expected %d, got %zd)",
                     n->name, n->nin, PyTuple_Check(r) ? PyTuple_GET_SIZE(r) : 1);
        s = pending_error();
    }
    for (int i = 0; s == SIMT_OK && i < n->nin; i++) {
        PyObject *o = PyTuple_GET_ITEM(r, i);
        if (tensor_check(o) && grad_wants(n, i))
            in[i] = tensor_ref(tensor_of(o));
        else if (o != Py_None && !tensor_check(o)) {
            PyErr_Format(PyExc_TypeError, "expected Variable or None (got %s)",
                         Py_TYPE(o)->tp_name);
            s = pending_error();
        }
    }
    Py_DECREF(r);
    return s;
}

static bool is_among(PyObject *o, PyObject *tuple) { /* by identity */
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (PyTuple_GET_ITEM(tuple, i) == o) return true;
    return false;
}

/* _make_node(name, callable, inputs, outputs, non_differentiable): outputs (fresh tensors) become
 * the
 * node's; name must stay alive: it is interned. */
static PyObject *make_node_body(PyObject *module, PyObject *args) {
    PyObject *name, *callable, *inputs, *outputs, *skip;
    if (!PyArg_ParseTuple(args, "UOO!O!O!:_make_node", &name, &callable, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs, &PyTuple_Type, &skip))
        return NULL;
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name); /* kept for good: node names are few */
    tensor **ins = tensor_list(inputs, true, "apply");
    if (!ins) return NULL;
    grad_node *n;
    const char *text = PyUnicode_AsUTF8(name);
    bool ok = text && binding_ok(grad_node_new(text, grad_python.apply_function, ins,
                                               (int)PyTuple_GET_SIZE(inputs), 0, 0, &n));
    heap_free(ins);
    if (!ok) return NULL;
    if (!n) Py_RETURN_FALSE;
    n->object = Py_NewRef(callable);
    n->nout = (int)PyTuple_GET_SIZE(outputs);
    for (int i = 0; i < n->nout; i++) {
        PyObject *o = PyTuple_GET_ITEM(outputs, i);
        if (tensor_check(o) && !is_among(o, skip)) grad_attach(tensor_of(o), grad_node_ref(n), i);
    }
    grad_node_unref(n);
    Py_RETURN_TRUE;
}
SECTION_FUNCTION(make_node, make_node_body)

/* ---- modes ---- */

static PyObject *is_grad_enabled(PyObject *module, PyObject *unused) {
    return PyBool_FromLong(grad_enabled);
}
/* Sets a mode and returns what it was. */
static PyObject *set_mode(bool *mode, PyObject *o) {
    int on = binding_truth(o);
    if (on < 0) return NULL;
    bool was = *mode;
    *mode = on;
    return PyBool_FromLong(was);
}
static PyObject *set_anomaly(PyObject *module, PyObject *o) { return set_mode(&grad_anomaly, o); }
static PyObject *set_grad_enabled(PyObject *module, PyObject *o) {
    return set_mode(&grad_enabled, o);
}

PyMethodDef tensor_autograd_methods[] = {METHOD_ENTRY(backward),
                                         METHOD_ENTRY(detach),
                                         {"detach_", method_detach_, METH_NOARGS, NULL},
                                         METHOD_ENTRY(requires_grad_),
                                         {"retain_grad", method_retain_grad, METH_NOARGS, NULL},
                                         {"_add_hook", add_hook, METH_O, NULL},
                                         {"_remove_hook", remove_hook, METH_O, NULL},
                                         {NULL}};
PyMethodDef tensor_autograd_functions[] = {FUNCTION_ENTRY(detach),
                                           {"_grad", autograd_grad, METH_VARARGS, NULL},
                                           {"_make_node", make_node, METH_VARARGS, NULL},
                                           {"is_grad_enabled", is_grad_enabled, METH_NOARGS, NULL},
                                           {"_set_grad_enabled", set_grad_enabled, METH_O, NULL},
                                           {"_set_anomaly", set_anomaly, METH_O, NULL},
                                           {NULL}};

bool tensor_add_autograd(PyObject *module) {
    grad_python = (grad_callbacks){call_hook, release_object, apply_function};
    node_types = PyDict_New();
    return node_types && PyModule_AddType(module, &node_type) == 0;
}
