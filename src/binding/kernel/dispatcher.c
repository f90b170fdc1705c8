/* The dispatcher behind @cuda.jit: a Python function with options, the signatures declared for it, what has been
 * compiled of it. The Python class over it (simt.numba.cuda.dispatcher) has what is not fast. */
#include "binding/kernel/dispatcher.h"
#include "base/heap.h"
#include "binding/kernel/launch.h"
#include "binding/kernel/tree.h"

#include <string.h>

static PyTypeObject dispatcher_type;

/* An option into *on, which is what it is without. */
static bool read_flag(PyObject *options, const char *name, bool *on) {
    PyObject *value;
    if (binding_item(options, name, &value) < 0) return false;
    int truth = value && value != Py_None ? binding_truth(value) : *on;
    Py_XDECREF(value);
    *on = truth > 0;
    return truth >= 0;
}

static bool read_flags(dispatcher *d) {
    d->compile = (py_options){.bounds = true, .contract = true};
    return read_flag(d->options, "device", &d->device) &&
           read_flag(d->options, "boundscheck", &d->compile.bounds) &&
           read_flag(d->options, "debug", &d->compile.divisions) &&
           read_flag(d->options, "fastmath", &d->compile.fast) &&
           read_flag(d->options, "fma", &d->compile.contract);
}

/* Number and names of the parameters, from the function's code. */
static bool read_function(dispatcher *d) {
    PyObject *code = PyObject_GetAttrString(d->function, "__code__");
    PyObject *count = code ? PyObject_GetAttrString(code, "co_argcount") : NULL;
    PyObject *name = count ? PyObject_GetAttrString(d->function, "__name__") : NULL;
    PyObject *defaults = name ? PyObject_GetAttrString(d->function, "__defaults__") : NULL;
    bool ok = defaults && PyUnicode_Check(name);
    if (ok) {
        d->nparameters = (int)PyLong_AsLong(count);
        d->nrequired = d->nparameters;
        if (PyTuple_Check(defaults)) d->nrequired -= (int)PyTuple_GET_SIZE(defaults);
        const char *text = PyUnicode_AsUTF8(name);
        d->name = text ? heap_text(text) : NULL;
        ok = d->name != NULL;
        if (text && !ok) PyErr_NoMemory();
    } else if (binding_forgive()) {
        PyErr_Format(PyExc_TypeError, "cuda.jit takes a Python function, not %R", d->function);
    }
    Py_XDECREF(code);
    Py_XDECREF(count);
    Py_XDECREF(name);
    Py_XDECREF(defaults);
    return ok;
}

/* launch_bounds: a number of threads, or a tuple that begins with it. */
static bool read_bounds(dispatcher *d) {
    PyObject *given;
    if (binding_item(d->options, "launch_bounds", &given) < 0) return false;
    PyObject *bounds = given && PyTuple_Check(given) && PyTuple_GET_SIZE(given) > 0
                           ? PyTuple_GET_ITEM(given, 0)
                           : given;
    bool ok = !given || given == Py_None ||
              (PyLong_Check(bounds) && binding_to_int64(bounds, &d->most_threads) &&
               d->most_threads >= 1);
    if (!ok && binding_forgive())
        PyErr_Format(PyExc_ValueError,
                     "launch_bounds is a number of threads, or a tuple that begins with it, not %R",
                     bounds);
    Py_XDECREF(given);
    return ok;
}

/* Dispatcher(function, options) */
static PyObject *dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function, *options;
    if (!PyArg_ParseTuple(args, "OO!:Dispatcher", &function, &PyDict_Type, &options)) return NULL;
    dispatcher *d = (dispatcher *)type->tp_alloc(type, 0);
    if (!d) return NULL;
    d->function = Py_NewRef(function);
    d->options = Py_NewRef(options);
    if (!read_flags(d) || !read_function(d) || !read_bounds(d) || !kernel_source_hold(function))
        Py_CLEAR(d);
    return (PyObject *)d;
}

static int dispatcher_traverse(PyObject *self, visitproc visit, void *arg) {
    dispatcher *d = (dispatcher *)self;
    Py_VISIT(d->function);
    Py_VISIT(d->options);
    Py_VISIT(d->declared);
    Py_VISIT(d->results);
    return kernel_entries_traverse(&d->entries, visit, arg);
}

static int dispatcher_clear(PyObject *self) {
    dispatcher *d = (dispatcher *)self;
    Py_CLEAR(d->function);
    Py_CLEAR(d->options);
    Py_CLEAR(d->declared);
    Py_CLEAR(d->results);
    kernel_entries_clear(&d->entries);
    return 0;
}

static void dispatcher_dealloc(PyObject *self) {
    dispatcher *d = (dispatcher *)self;
    PyObject_GC_UnTrack(self);
    dispatcher_clear(self);
    heap_free(d->name);
    Py_TYPE(self)->tp_free(self);
}

static bool compile_for(dispatcher *d, PyObject *signature) {
    return d->device ||
           (binding_start() && kernel_entries_declare(&d->entries, d->function, &d->compile,
                                                      (const uint8_t *)PyBytes_AS_STRING(signature),
                                                      (uint32_t)PyBytes_GET_SIZE(signature)));
}

/* _compile(signature bytes): compiles a kernel for it; device functions are compiled in kernels. */
static PyObject *compile_signature(PyObject *self, PyObject *signature) {
    if (!PyBytes_Check(signature)) return PyErr_Format(PyExc_TypeError, "a signature is bytes");
    if (!compile_for((dispatcher *)self, signature)) return NULL;
    Py_RETURN_NONE;
}

/* _declare(signature bytes, result's bytes or None): compiles a kernel for it; from now on only declared
 * signatures are taken. */
static PyObject *declare(PyObject *self, PyObject *args) {
    dispatcher *d = (dispatcher *)self;
    PyObject *signature, *result = Py_None;
    if (!PyArg_ParseTuple(args, "S|O:_declare", &signature, &result)) return NULL;
    if (result != Py_None && !PyBytes_Check(result)) {
        PyErr_SetString(PyExc_TypeError, "a result's type is bytes");
        return NULL;
    }
    if (!d->declared && !(d->declared = PyList_New(0))) return NULL;
    if (!d->results && !(d->results = PyList_New(0))) return NULL;
    if (!compile_for(d, signature)) return NULL;
    if (PyList_Append(d->results, result) != 0 || PyList_Append(d->declared, signature) != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* _signature_of(*args): the signature that a launch with these arguments has. */
static PyObject *signature_of(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    dispatcher *d = (dispatcher *)self;
    kernel_args k;
    kernel_names names = {d->name, d->function};
    if (!binding_start() || !kernel_args_walk(&k, &names, args, n)) return NULL;
    kernel_args_release(&k);
    return PyBytes_FromStringAndSize((const char *)k.signature, k.nsignature);
}

static bool append_compiled(PyObject *list, const kernel_typed *t, const uint32_t block[3]) {
    PyObject *item =
        Py_BuildValue("(y#(III)(nnn))", (char *)t->signature, (Py_ssize_t)t->nsignature, block[0],
                      block[1], block[2], (Py_ssize_t)t->kernel->static_shared,
                      (Py_ssize_t)t->kernel->local, (Py_ssize_t)t->kernel->constant_bytes);
    bool done = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

/* _compiled(): (signature, block, bytes of static shared, local and constant memory) of each compiled
 * kernel; the block of a declared signature is zeros. */
static PyObject *compiled(PyObject *self, PyObject *unused) {
    const kernel_entries *all = &((dispatcher *)self)->entries;
    PyObject *list = PyList_New(0);
    static const uint32_t none[3];
    bool ok = list != NULL;
    for (const kernel_typed *t = all->declared; ok && t; t = t->next)
        ok = append_compiled(list, t, none);
    for (uint32_t i = 0; ok && i < all->count; i++)
        ok = append_compiled(list, all->slots[i].entry->typed, all->slots[i].entry->block);
    if (!ok) Py_CLEAR(list);
    return list;
}

/* _listing(signature, block, ir): the back end's code of the kernel for them, or the IR that the front end
 * made. */
static PyObject *listing(PyObject *self, PyObject *args) {
    dispatcher *d = (dispatcher *)self;
    const char *signature;
    Py_ssize_t n;
    uint32_t block[3];
    int ir;
    if (!PyArg_ParseTuple(args, "y#(III)p", &signature, &n, &block[0], &block[1], &block[2], &ir) ||
        !binding_start())
        return NULL;
    kernel_entry *e = kernel_entries_get(&d->entries, d->function, &d->compile,
                                         (const uint8_t *)signature, (uint32_t)n, block);
    if (!e) return NULL;
    strbuf text;
    strbuf_init(&text);
    if (!ir) runtime_print(e->code, &text);
    PyObject *out = PyUnicode_FromString(ir ? runtime_kernel_text(e->code) : strbuf_text(&text));
    strbuf_deinit(&text);
    kernel_entry_unref(e);
    return out;
}

/* _forget(): drops what was compiled, so that globals are read anew. */
static PyObject *forget(PyObject *self, PyObject *unused) {
    kernel_entries_clear(&((dispatcher *)self)->entries);
    Py_RETURN_NONE;
}

static PyObject *get_function(PyObject *self, void *unused) {
    return Py_NewRef(((dispatcher *)self)->function);
}
static PyObject *get_options(PyObject *self, void *unused) {
    return Py_NewRef(((dispatcher *)self)->options);
}
/* ((signature, result), ...) */
static PyObject *get_declared(PyObject *self, void *unused) {
    const dispatcher *d = (dispatcher *)self;
    Py_ssize_t n = d->declared ? PyList_GET_SIZE(d->declared) : 0;
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; all && i < n; i++) {
        PyObject *pair =
            PyTuple_Pack(2, PyList_GET_ITEM(d->declared, i), PyList_GET_ITEM(d->results, i));
        if (pair)
            PyTuple_SET_ITEM(all, i, pair);
        else
            Py_CLEAR(all);
    }
    return all;
}
static PyObject *get_device(PyObject *self, void *unused) {
    return PyBool_FromLong(((dispatcher *)self)->device);
}

static PyMethodDef methods[] = {
    {"_compile", compile_signature, METH_O, NULL},
    {"_declare", declare, METH_VARARGS, NULL},
    {"_signature_of", (PyCFunction)(void (*)(void))signature_of, METH_FASTCALL, NULL},
    {"_compiled", compiled, METH_NOARGS, NULL},
    {"_listing", listing, METH_VARARGS, NULL},
    {"_forget", forget, METH_NOARGS, NULL},
    {NULL},
};
static PyGetSetDef getset[] = {
    {"py_func", get_function},
    {"targetoptions", get_options},
    {"_is_device", get_device},
    {"_declared", get_declared},
    {NULL},
};
static PyMappingMethods mapping = {.mp_subscript = kernel_configure};

static PyTypeObject dispatcher_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.Dispatcher",
    .tp_doc = "A kernel or device function made of a Python function.",
    .tp_basicsize = sizeof(dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = dispatcher_new,
    .tp_dealloc = dispatcher_dealloc,
    .tp_traverse = dispatcher_traverse,
    .tp_clear = dispatcher_clear,
    .tp_methods = methods,
    .tp_getset = getset,
    .tp_as_mapping = &mapping,
};

/* hold_source(function): looks for the source of what stands in no file now; its text, or None. */
static PyObject *hold_source(PyObject *module, PyObject *function) {
    if (!PyFunction_Check(function)) Py_RETURN_NONE;
    if (!kernel_source_hold(function)) return NULL;
    PyObject *text = kernel_text_remembered((PyCodeObject *)PyFunction_GET_CODE(function));
    if (text || PyErr_Occurred()) return text;
    Py_RETURN_NONE;
}

/* remember_source(text): where functions that stand in no file may be found. */
static PyObject *remember_source(PyObject *module, PyObject *text) {
    if (!PyUnicode_Check(text)) return PyErr_Format(PyExc_TypeError, "a source is a str");
    kernel_text_remember(text);
    Py_RETURN_NONE;
}

/* signature_of(*args), without a kernel: numba.typeof. */
static PyObject *signature_of_objects(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    kernel_args k;
    kernel_names names = {"?", Py_None};
    if (!binding_start() || !kernel_args_walk(&k, &names, args, n)) return NULL;
    kernel_args_release(&k);
    return PyBytes_FromStringAndSize((const char *)k.signature, k.nsignature);
}

static PyMethodDef functions[] = {
    {"hold_source", hold_source, METH_O, NULL},
    {"remember_source", remember_source, METH_O, NULL},
    {"signature_of", (PyCFunction)(void (*)(void))signature_of_objects, METH_FASTCALL, NULL},
    {"kernel_warnings", kernel_warnings, METH_O, NULL},
    {NULL},
};

bool binding_add_kernels(PyObject *module) {
    return PyModule_AddFunctions(module, functions) == 0 && kernel_launch_ready() &&
           kernel_raw_ready(module) && PyType_Ready(&dispatcher_type) == 0 &&
           PyModule_AddObjectRef(module, "Dispatcher", (PyObject *)&dispatcher_type) == 0;
}
