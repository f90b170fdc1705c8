/* What names in a kernel mean (py_host of frontend.h): where they are found; entity.c says what the objects are.
 *
 * A name is looked up in the function's closure, its globals and the builtins, an attribute on the
 * object itself, each time that a kernel is compiled: as in Numba, globals are frozen into the
 * compiled kernel (arrays too), and assigning to one afterwards changes later specialisations only.
 * What an answer borrows (objects, texts) lives as long as the kernel_host, that is for one
 * compilation: a compiled kernel keeps no Python object alive.
 */
#include "binding/kernel/entity.h"

#include <string.h>

/* ---- functions ---- */

/* A function met in this compilation. */
struct kernel_function {
    py_function pub;
    PyObject *of; /* the Python function or its dispatcher */
    kernel_function *next;
};

static bool take_bytes(PyObject *o, arena *mem, const uint8_t **bytes, uint32_t *n) {
    if (!o || !PyBytes_Check(o)) return true;
    *n = (uint32_t)PyBytes_GET_SIZE(o);
    uint8_t *copy = ARENA_ARRAY(mem, uint8_t, *n + 1);
    if (!copy) return PyErr_NoMemory(), false;
    memcpy(copy, PyBytes_AS_STRING(o), *n + 1);
    *bytes = copy;
    return true;
}

/* The signatures that a dispatcher was declared with. */
static bool fill_declared(PyObject *of, kernel_host *h, py_function *f) {
    PyObject *all = PyFunction_Check(of) ? NULL : kernel_attribute(of, "_declared");
    Py_ssize_t n = all && PyTuple_Check(all) ? PyTuple_GET_SIZE(all) : 0;
    py_declared *declared = ARENA_ARRAY(&h->mem, py_declared, n + 1);
    bool ok = declared || (PyErr_NoMemory(), false);
    ok = ok && !PyErr_Occurred();
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *pair = PyTuple_GET_ITEM(all, i);
        declared[i] = (py_declared){0};
        ok = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 &&
             take_bytes(PyTuple_GET_ITEM(pair, 0), &h->mem, &declared[i].arguments,
                        &declared[i].arguments_bytes) &&
             take_bytes(PyTuple_GET_ITEM(pair, 1), &h->mem, &declared[i].result,
                        &declared[i].result_bytes);
    }
    f->declared = declared;
    f->ndeclared = ok ? (uint32_t)n : 0;
    Py_XDECREF(all);
    return ok;
}

/* The defaults as entities: one per positional, then per keyword-only parameter. */
static bool fill_defaults(PyObject *function, PyCodeObject *code, kernel_host *h, py_function *f) {
    int npositional = code->co_argcount, nnamed = code->co_kwonlyargcount;
    f->defaults = ARENA_ARRAY(&h->mem, py_entity, npositional + nnamed + 1);
    if (!f->defaults) return PyErr_NoMemory(), false;
    for (int i = 0; i < npositional + nnamed; i++) f->defaults[i].kind = PY_ENTITY_OBJECT;
    PyObject *given = PyFunction_GET_DEFAULTS(function);
    PyObject *named = PyFunction_GET_KW_DEFAULTS(function);
    PyObject *names = PyCode_GetVarnames(code);
    bool done =
        names && (!given || kernel_host_keep(h, given)) && (!named || kernel_host_keep(h, named));
    int first = npositional - (given ? (int)PyTuple_GET_SIZE(given) : 0);
    for (int i = 0; done && i < npositional + nnamed; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = NULL;
        if (i < npositional)
            value = i >= first && i >= 0 ? PyTuple_GET_ITEM(given, i - first) : NULL;
        else if (named)
            value = PyDict_GetItemWithError(named, name);
        const char *text = PyUnicode_AsUTF8(name);
        Py_XINCREF(value); /* the program may set another one meanwhile */
        if (value) done = text && kernel_to_entity(value, text, 0, h, &f->defaults[i]);
        Py_XDECREF(value);
    }
    Py_XDECREF(names);
    return done;
}

static kernel_function *new_function(kernel_host *h, PyObject *of, PyObject *function) {
    const kernel_source *source = kernel_source_get(function);
    if (!source) return NULL;
    PyObject *code = PyFunction_GET_CODE(function); /* with it lives the source */
    kernel_function *f = ARENA_NEW(&h->mem, kernel_function);
    if (!f || !kernel_host_keep(h, code) || !kernel_host_keep(h, function)) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return NULL;
    }
    f->of = of;
    f->pub = (py_function){
        .name = source->name, .file = source->file, .tree = source->tree, .handle = function};
    if (!fill_defaults(function, (PyCodeObject *)code, h, &f->pub) ||
        !fill_declared(of, h, &f->pub))
        return NULL;
    f->next = h->functions;
    h->functions = f;
    return f;
}

const py_function *kernel_host_function(kernel_host *h, PyObject *of) {
    for (kernel_function *f = h->functions; f; f = f->next)
        if (f->of == of) return &f->pub;
    PyObject *function = kernel_python_function(of);
    kernel_function *f = function ? new_function(h, of, function) : NULL;
    Py_XDECREF(function);
    return f ? &f->pub : NULL;
}

/* ---- the host's answers ---- */

/* The pending exception as a status: its text, so that the front end can add the position. Ctrl-C
 * and the like stay pending. */
static simt_status status_of_exception(void) {
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return status_fail(SIMT_ERR_RUNTIME, "stopped by an exception");
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    simt_status status = status_fail(SIMT_ERR_TYPING, "%s", utf8 ? utf8 : "an exception");
    binding_forgive();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

/* The value of a closure variable into *out (borrowed). 1, 0 (no such), -1 (the cell is empty). */
static int find_in_closure(PyObject *function, PyObject *name, PyObject **out) {
    PyObject *closure = PyFunction_GET_CLOSURE(function);
    if (!closure) return 0;
    PyObject *names = PyCode_GetFreevars((PyCodeObject *)PyFunction_GET_CODE(function));
    int found = 0;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) != 0) continue;
        *out = PyCell_GET(PyTuple_GET_ITEM(closure, i));
        found = *out ? 1 : -1;
    }
    Py_XDECREF(names);
    return found;
}

/* In the globals, then in the builtins of the function; borrowed. */
static PyObject *find_global(PyObject *function, PyObject *name) {
    PyObject *value = PyDict_GetItemWithError(PyFunction_GET_GLOBALS(function), name);
    if (value || PyErr_Occurred()) return value;
    PyObject *builtins = PyObject_GetAttrString(function, "__builtins__");
    if (builtins && PyDict_Check(builtins)) value = PyDict_GetItemWithError(builtins, name);
    Py_XDECREF(builtins);
    return value;
}

static simt_status host_lookup(void *context, const py_function *fn, const char *name,
                               py_entity *out) {
    PyObject *function = fn->handle, *value = NULL, *text = PyUnicode_FromString(name);
    if (!text) return status_of_exception();
    int found = find_in_closure(function, text, &value);
    if (found == 0 && !PyErr_Occurred()) value = find_global(function, text);
    Py_DECREF(text);
    if (found < 0)
        return status_fail(SIMT_ERR_TYPING,
                           "the variable '%s' of the enclosing function has no value yet", name);
    if (!value && PyErr_Occurred()) return status_of_exception();
    if (!value) return status_fail(SIMT_ERR_TYPING, "name '%s' is not defined", name);
    Py_INCREF(value);
    bool done = kernel_to_entity(value, name, 0, context, out);
    Py_DECREF(value);
    return done ? SIMT_OK : status_of_exception();
}

/* threadIdx.x, cuda.shared.array, ...: what the stub's attribute says, else the joined name. */
static simt_status attribute_of_intrinsic(kernel_host *h, const py_entity *of, const char *name,
                                          py_entity *out) {
    PyObject *value = of->handle ? kernel_attribute(of->handle, name) : NULL;
    memset(out, 0, sizeof *out);
    int status = value ? kernel_marked_entity(value, h, out) : 0;
    bool absent = of->handle && !value;
    Py_XDECREF(value);
    if (status < 0) return status_of_exception();
    if (status == 1) return SIMT_OK;
    if (absent) return status_fail(SIMT_ERR_TYPING, "%s has no attribute '%s'", of->name, name);
    out->handle = NULL;
    out->kind = PY_ENTITY_INTRINSIC;
    out->name = arena_printf(&h->mem, "%s.%s", of->name, name);
    return out->name ? SIMT_OK : status_fail(SIMT_ERR_MEMORY, "out of memory");
}

/* Members of enumerations have a value. */
static bool is_member_value(const py_entity *of, const char *name) {
    return of->kind == PY_ENTITY_OBJECT && of->handle && strcmp(name, "value") == 0 &&
           kernel_is_member(of->handle);
}

static simt_status host_attribute(void *context, const py_entity *of, const char *name,
                                  py_entity *out) {
    if (of->kind == PY_ENTITY_INTRINSIC) return attribute_of_intrinsic(context, of, name, out);
    if (of->kind != PY_ENTITY_MODULE && !is_member_value(of, name))
        return status_fail(SIMT_ERR_TYPING, "%s has no attribute '%s' in a kernel%s",
                           of->name ? of->name : "a constant", name,
                           of->name && strstr(of->name, "(an object of type")
                               ? ": give its value a name outside of the kernel"
                               : "");
    PyObject *value = PyObject_GetAttrString(of->handle, name);
    char whole[200];
    snprintf(whole, sizeof whole, "%s.%s", of->name, name);
    bool done = value && kernel_to_entity(value, whole, 0, context, out);
    Py_XDECREF(value);
    return done ? SIMT_OK : status_of_exception();
}

static simt_status host_function(void *context, const py_entity *of, const py_function **out) {
    *out = of->handle ? kernel_host_function(context, of->handle) : NULL;
    if (*out) return SIMT_OK;
    return PyErr_Occurred() ? status_of_exception()
                            : status_fail(SIMT_ERR_TYPING, "'%s' is not a function", of->name);
}

static simt_status host_overload(void *context, const py_entity *of, const uint8_t *signature,
                                 size_t bytes, py_entity *out) {
    PyObject *module = PyImport_ImportModule("simt.numba.extending");
    PyObject *function = module ? PyObject_CallMethod(module, "_choose", "Oy#", of->handle,
                                                      (const char *)signature, (Py_ssize_t)bytes)
                                : NULL;
    Py_XDECREF(module);
    memset(out, 0, sizeof *out);
    bool ok = function && kernel_function_entity(function, context, out) > 0;
    Py_XDECREF(function);
    return ok ? SIMT_OK : status_of_exception();
}

static simt_status host_member(void *context, uint64_t number, const char *name, py_entity *out) {
    PyObject *member = kernel_member_at(number);
    bool done = member && kernel_to_entity(member, name, 0, context, out);
    Py_XDECREF(member);
    return done ? SIMT_OK : status_of_exception();
}

/* Functions of kernels that are written in Python: simt.numba.cuda._library. */
static simt_status host_library(void *context, const char *name, py_entity *out) {
    memset(out, 0, sizeof *out);
    out->kind = PY_ENTITY_OBJECT;
    PyObject *module = PyImport_ImportModule("simt.numba.cuda._library");
    PyObject *table = module ? PyObject_GetAttrString(module, "FUNCTIONS") : NULL;
    PyObject *function = NULL;
    bool ok = table && binding_item(table, name, &function) >= 0 &&
              (!function || kernel_function_entity(function, context, out) >= 0) &&
              !PyErr_Occurred();
    Py_XDECREF(function);
    Py_XDECREF(table);
    Py_XDECREF(module);
    return ok ? SIMT_OK : status_of_exception();
}

void kernel_host_init(kernel_host *h) {
    *h = (kernel_host){.pub = {.context = h,
                               .lookup = host_lookup,
                               .attribute = host_attribute,
                               .function = host_function,
                               .overload = host_overload,
                               .library = host_library,
                               .member = host_member}};
    arena_init(&h->mem);
}

void kernel_host_deinit(kernel_host *h) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* objects that go may run Python code */
    Py_CLEAR(h->kept);
    PyErr_Restore(type, value, trace);
    arena_deinit(&h->mem);
}
