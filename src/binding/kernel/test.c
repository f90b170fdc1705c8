/* The tests' way to what the binding knows of a kernel.
 *
 * kernel_tree(function) -> the tree as one s-expression with positions (kernel/tree.h).
 * kernel_lookup(function, "np.float32") -> what a name, or a chain of attributes, means in it:
 * "type float32", "intrinsic math.sin", "constant float32 float:1.5", ...
 * kernel_defaults(function) -> the same for the defaults, None where a parameter has none.
 */
#include "binding/kernel/tree.h"

#include <string.h>

static PyObject *text_of(strbuf *out) {
    PyObject *text = out->failed ? PyErr_NoMemory() : PyUnicode_FromString(strbuf_text(out));
    strbuf_deinit(out);
    return text;
}

static PyObject *kernel_tree(PyObject *self, PyObject *function) {
    const kernel_source *f = kernel_source_get(function);
    if (!f) return NULL;
    strbuf out;
    strbuf_init(&out);
    kernel_tree_print(f->tree, &out);
    return text_of(&out);
}

static void print_array(const py_entity *e, strbuf *out) {
    strbuf_printf(out, "array %s shape", py_scalar_name(e->type));
    for (int i = 0; i < e->ndim; i++) strbuf_printf(out, " %lld", (long long)e->shape[i]);
    strbuf_puts(out, " strides");
    for (int i = 0; i < e->ndim; i++) strbuf_printf(out, " %lld", (long long)e->strides[i]);
    strbuf_puts(out, " first ");
    for (size_t i = 0; i < py_scalar_bytes(e->type); i++)
        strbuf_printf(out, "%02x", ((const unsigned char *)e->data)[i]);
}

static void print_entity(const py_entity *e, strbuf *out) {
    static const char *const words[] = {"constant",    "tuple",     "array",    "type",
                                        "intrinsic",   "function",  "overload", "module",
                                        "named tuple", "exception", "closure",  "object"};
    _Static_assert(sizeof words / sizeof *words == PY_ENTITY_OBJECT + 1, "a word per kind");
    switch (e->kind) {
    case PY_ENTITY_CONSTANT:
        strbuf_puts(out, "constant ");
        if (e->type != PY_S_NONE) strbuf_printf(out, "%s ", py_scalar_name(e->type));
        kernel_constant_print(&e->value, out);
        break;
    case PY_ENTITY_TUPLE:
        strbuf_puts(out, "tuple (");
        for (uint32_t i = 0; i < e->count; i++) {
            if (i) strbuf_puts(out, ", ");
            print_entity(&e->items[i], out);
        }
        strbuf_puts(out, ")");
        break;
    case PY_ENTITY_ARRAY: print_array(e, out); break;
    case PY_ENTITY_TYPE: strbuf_printf(out, "type %s", py_scalar_name(e->type)); break;
    default: strbuf_printf(out, "%s %s", words[e->kind], e->name ? e->name : "-");
    }
}

/* The first name of a dotted chain, then its attributes. */
static simt_status resolve(const py_host *host, const py_function *f, const char *chain,
                           py_entity *out) {
    char name[200];
    bool first = true;
    do {
        size_t length = strcspn(chain, ".");
        if (length >= sizeof name) return status_fail(SIMT_ERR_VALUE, "the name is too long");
        memcpy(name, chain, length);
        name[length] = '\0';
        py_entity of = *out;
        SIMT_TRY(first ? host->lookup(host->context, f, name, out)
                       : host->attribute(host->context, &of, name, out));
        first = false;
        chain += length;
    } while (*chain++ == '.');
    return SIMT_OK;
}

static PyObject *lookup_with(kernel_host *h, PyObject *function, const char *chain) {
    const py_function *f = kernel_host_function(h, function);
    if (!f) return NULL;
    py_entity entity = {0};
    if (resolve(&h->pub, f, chain, &entity) != SIMT_OK) return kernel_raise();
    strbuf out;
    strbuf_init(&out);
    print_entity(&entity, &out);
    return text_of(&out);
}

static PyObject *kernel_lookup(PyObject *self, PyObject *args) {
    PyObject *function;
    const char *chain;
    if (!PyArg_ParseTuple(args, "Os", &function, &chain)) return NULL;
    kernel_host h;
    kernel_host_init(&h);
    PyObject *text = lookup_with(&h, function, chain);
    kernel_host_deinit(&h);
    return text;
}

static PyObject *defaults_with(kernel_host *h, PyObject *function) {
    const py_function *f = kernel_host_function(h, function);
    if (!f) return NULL;
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    int n = code->co_argcount + code->co_kwonlyargcount;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        strbuf out;
        strbuf_init(&out);
        const py_entity *e = &f->defaults[i];
        bool none = e->kind == PY_ENTITY_OBJECT && !e->name;
        if (!none) print_entity(e, &out);
        PyObject *item = none ? Py_NewRef(Py_None) : text_of(&out);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* kernel_defaults(function) -> one string per parameter, None where there is no default. */
static PyObject *kernel_defaults(PyObject *self, PyObject *function) {
    kernel_host h;
    kernel_host_init(&h);
    PyObject *list = defaults_with(&h, function);
    kernel_host_deinit(&h);
    return list;
}

static PyMethodDef methods[] = {
    {"kernel_tree", kernel_tree, METH_O, "The tree of a Python function (for tests)."},
    {"kernel_lookup", kernel_lookup, METH_VARARGS, "What a name means in a kernel (for tests)."},
    {"kernel_defaults", kernel_defaults, METH_O, "The defaults of a kernel's parameters."},
    {NULL, NULL, 0, NULL},
};

int binding_add_kernel_test(PyObject *module) { return PyModule_AddFunctions(module, methods); }
