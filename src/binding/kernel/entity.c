/* Python objects -> entities: constants, types, arrays, tuples, functions, modules of a kernel (frontend.h).
 *
 * What an answer borrows (objects, texts) lives as long as the kernel_host. NumPy is never imported from here:
 * an object can be NumPy's only if somebody else has. Where memory ends or Ctrl-C comes the exception stays
 * set, and no further question is asked.
 */
#include "binding/kernel/entity.h"

#include <string.h>

#define MAX_TUPLE_DEPTH 8

/* ---- small helpers ---- */

PyObject *kernel_attribute(PyObject *o, const char *name) {
    PyObject *value = PyErr_Occurred() ? NULL : PyObject_GetAttrString(o, name);
    if (!value) binding_forgive();
    return value;
}

static const char *keep_text(kernel_host *owner, const char *text) {
    char *copy = text ? arena_strdup(&owner->mem, text) : NULL;
    if (!copy && !PyErr_Occurred()) PyErr_NoMemory();
    return copy;
}

/* kept[address] = object */
bool kernel_host_keep(kernel_host *owner, PyObject *o) {
    if (!owner->kept && !(owner->kept = PyDict_New())) return false;
    PyObject *key = PyLong_FromVoidPtr(o);
    bool done = key && PyDict_SetItem(owner->kept, key, o) == 0;
    Py_XDECREF(key);
    return done;
}

static bool become(py_entity *out, py_entity_kind kind, const char *name) {
    out->kind = kind;
    out->name = name;
    return name != NULL;
}

/* numpy.NAME, a class of the NumPy that is loaded; NULL when none is, or as kernel_attribute. */
static PyObject *numpy_class(const char *name) {
    if (PyErr_Occurred()) return NULL;
    PyObject *module_name = PyUnicode_FromString("numpy");
    PyObject *numpy = module_name ? PyImport_GetModule(module_name) : NULL;
    PyObject *cls = numpy ? PyObject_GetAttrString(numpy, name) : NULL;
    Py_XDECREF(module_name);
    Py_XDECREF(numpy);
    binding_forgive();
    return cls;
}

static bool is_instance(PyObject *o, const char *numpy_name) {
    PyObject *cls = numpy_class(numpy_name);
    int is = cls ? PyObject_IsInstance(o, cls) : 0;
    Py_XDECREF(cls);
    binding_forgive();
    return is == 1;
}

static bool is_subclass(PyObject *o, const char *numpy_name) {
    PyObject *cls = numpy_class(numpy_name);
    int is = cls ? PyObject_IsSubclass(o, cls) : 0;
    Py_XDECREF(cls);
    binding_forgive();
    return is == 1;
}

/* ---- scalar types ---- */

static py_scalar scalar_of(int kind, long bytes) {
    static const struct {
        char kind;
        uint8_t bytes, scalar;
    } rows[] = {
        {'b', 1, PY_S_BOOL}, {'i', 1, PY_S_I8},    {'i', 2, PY_S_I16}, {'i', 4, PY_S_I32},
        {'i', 8, PY_S_I64},  {'u', 1, PY_S_U8},    {'u', 2, PY_S_U16}, {'u', 4, PY_S_U32},
        {'u', 8, PY_S_U64},  {'f', 2, PY_S_F16},   {'f', 4, PY_S_F32}, {'f', 8, PY_S_F64},
        {'c', 8, PY_S_C64},  {'c', 16, PY_S_C128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind && rows[i].bytes == bytes) return rows[i].scalar;
    return PY_S_NONE;
}

/* Of a numpy.dtype; NONE for what kernels have not (dates, long double, foreign byte order). */
static py_scalar scalar_of_dtype(PyObject *dtype) {
    PyObject *kind = kernel_attribute(dtype, "kind"), *size = kernel_attribute(dtype, "itemsize");
    PyObject *native = kernel_attribute(dtype, "isnative");
    py_scalar s = PY_S_NONE;
    if (kind && size && native == Py_True && PyUnicode_Check(kind) && PyLong_Check(size) &&
        PyUnicode_GET_LENGTH(kind) == 1)
        s = scalar_of((int)PyUnicode_READ_CHAR(kind, 0), PyLong_AsLong(size));
    Py_XDECREF(kind);
    Py_XDECREF(size);
    Py_XDECREF(native);
    return s;
}

/* Of an object that has a dtype attribute. */
static py_scalar scalar_of_array(PyObject *o) {
    PyObject *dtype = kernel_attribute(o, "dtype");
    py_scalar s = dtype ? scalar_of_dtype(dtype) : PY_S_NONE;
    Py_XDECREF(dtype);
    return s;
}

static py_scalar scalar_of_numpy_type(PyObject *type) {
    PyObject *cls = numpy_class("dtype"), *dtype = cls ? PyObject_CallOneArg(cls, type) : NULL;
    py_scalar s = dtype ? scalar_of_dtype(dtype) : PY_S_NONE;
    binding_forgive();
    Py_XDECREF(dtype);
    Py_XDECREF(cls);
    return s;
}

static py_scalar scalar_of_python_type(PyObject *type) {
    if (type == (PyObject *)&PyBool_Type) return PY_S_BOOL;
    if (type == (PyObject *)&PyLong_Type) return PY_S_I64;
    if (type == (PyObject *)&PyFloat_Type) return PY_S_F64;
    if (type == (PyObject *)&PyComplex_Type) return PY_S_C128;
    return PY_S_NONE;
}

/* ---- objects -> entities; each answers 1 (it is one), 0 (it is not) or -1 (exception) ---- */

static int done_or_failed(bool done) { return done ? 1 : -1; }

/* A function of simt that is for the host. simt.numba has modules of functions for kernels, too. */
static bool is_ours(PyObject *o) {
    static const char *const hosts[] = {"simt.numba.cuda.api", "simt.numba.cuda._device",
                                        "simt.numba.cuda.dispatcher"};
    if (!PyFunction_Check(o) && !PyCFunction_Check(o)) return false;
    PyObject *module = kernel_attribute(o, "__module__");
    const char *text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
    bool ours = text && strncmp(text, "simt.", 5) == 0 && strncmp(text, "simt.numba.", 11) != 0;
    for (size_t i = 0; text && i < sizeof hosts / sizeof *hosts; i++)
        ours |= strcmp(text, hosts[i]) == 0;
    binding_forgive();
    Py_XDECREF(module);
    return ours;
}

/* What to write instead, for objects that programs do name in kernels. */
static const char *advice(PyObject *o) {
    if (PyList_Check(o)) return "a list: use a tuple or a NumPy array";
    if (PyDict_Check(o) || PyAnySet_Check(o)) return "kernels have no dicts and sets: use arrays";
    if (binding_is_array(o) || kernel_is_device_array(o))
        return "an array of the device: pass it as an argument";
    if (is_ours(o)) return "a function for the host: call it outside of the kernel";
    if (PyCFunction_Check(o)) return "a function of Python's library";
    return NULL;
}

static int as_object(PyObject *o, const char *name, kernel_host *owner, py_entity *out) {
    const char *hint = advice(o);
    if (PyErr_Occurred()) return -1;
    PyObject *what =
        hint ? PyUnicode_FromFormat("'%s' (%s)", name, hint)
        : PyType_Check(o)
            ? PyUnicode_FromFormat("class '%s'", ((PyTypeObject *)o)->tp_name)
            : PyUnicode_FromFormat("'%s' (an object of type '%s')", name, Py_TYPE(o)->tp_name);
    const char *text = what ? keep_text(owner, PyUnicode_AsUTF8(what)) : NULL;
    Py_XDECREF(what);
    out->handle = o;
    return done_or_failed(become(out, PY_ENTITY_OBJECT, text) && kernel_host_keep(owner, o));
}

bool kernel_is_member(PyObject *o) {
    PyObject *members = kernel_attribute((PyObject *)Py_TYPE(o), "__members__");
    Py_XDECREF(members);
    return members != NULL;
}

/* Those that kernels got, by address: kept for ever, so that the address means them for ever. */
static PyObject *members_given;

bool kernel_member_keep(PyObject *o) {
    if (!members_given && !(members_given = PyDict_New())) return false;
    PyObject *key = PyLong_FromVoidPtr(o);
    bool done = key && PyDict_SetItem(members_given, key, o) == 0;
    Py_XDECREF(key);
    return done;
}

PyObject *kernel_member_at(uint64_t number) {
    PyObject *key = PyLong_FromUnsignedLongLong(number), *found = NULL;
    if (key && members_given) found = PyDict_GetItemWithError(members_given, key);
    Py_XDECREF(key);
    if (!found && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such member");
    return Py_XNewRef(found);
}

/* Python's own numbers, strings, None, and subclasses (IntEnum); NumPy's scalars came before. */
static int as_constant(PyObject *o, kernel_host *owner, py_entity *out) {
    if (!kernel_to_constant(o, &owner->mem, &out->value)) return -1;
    out->kind = PY_ENTITY_CONSTANT;
    out->is_enum =
        PyLong_Check(o) && !PyLong_CheckExact(o) && !PyBool_Check(o) && kernel_is_member(o);
    return out->value.kind != PY_VALUE_OTHER;
}

/* np.float32(1.5): the value, strongly typed. */
static int as_numpy_scalar(PyObject *o, kernel_host *owner, py_entity *out) {
    if (!is_instance(o, "generic")) return 0;
    py_scalar type = scalar_of_array(o);
    if (type == PY_S_NONE || PyErr_Occurred()) return 0;
    PyObject *value = PyObject_CallMethod(o, "item", NULL);
    if (!value) return -1;
    int status = as_constant(value, owner, out);
    Py_DECREF(value);
    out->type = type;
    return status;
}

/* The names of a named tuple's class; NULL: it has none. */
static bool tuple_names(PyTypeObject *type, arena *mem, const py_names **out) {
    *out = NULL;
    PyObject *fields = kernel_attribute((PyObject *)type, "_fields");
    Py_ssize_t n = fields && PyTuple_Check(fields) ? PyTuple_GET_SIZE(fields) : 0;
    py_names *names = n > 0 ? ARENA_NEW(mem, py_names) : NULL;
    const char **texts = names ? ARENA_ARRAY(mem, const char *, n) : NULL;
    const char *dot = strrchr(type->tp_name, '.');
    if (names) *names = (py_names){.fields = texts, .count = (uint32_t)n};
    bool ok = n == 0 || (texts && (names->name = arena_strdup(mem, dot ? dot + 1 : type->tp_name)));
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        const char *text = PyUnicode_Check(PyTuple_GET_ITEM(fields, i))
                               ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(fields, i))
                               : NULL;
        ok = (texts[i] = text ? arena_strdup(mem, text) : NULL) != NULL;
    }
    Py_XDECREF(fields);
    if (!ok && !PyErr_Occurred()) PyErr_NoMemory();
    if (!ok || n == 0) return ok && !PyErr_Occurred();
    *out = names;
    return true;
}

static int as_tuple(PyObject *o, const char *name, int depth, kernel_host *owner, py_entity *out) {
    if (!PyTuple_Check(o) || depth >= MAX_TUPLE_DEPTH) return 0;
    Py_ssize_t n = PyTuple_GET_SIZE(o);
    out->kind = PY_ENTITY_TUPLE;
    if (!PyTuple_CheckExact(o) && !tuple_names(Py_TYPE(o), &owner->mem, &out->names)) return -1;
    out->count = (uint32_t)n;
    out->items = ARENA_ARRAY(&owner->mem, py_entity, n + 1);
    if (!out->items) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!kernel_to_entity(PyTuple_GET_ITEM(o, i), name, depth + 1, owner, &out->items[i]))
            return -1;
    return done_or_failed(kernel_host_keep(owner, o));
}

/* The record type of a dtype or array, or of a numba type. */
static bool take_record(PyObject *o, kernel_host *owner, py_entity *out) {
    const kernel_record *r = kernel_record_of_object(o);
    if (!r) return false;
    out->record = py_record_parse(&owner->mem, (uint8_t *)PyBytes_AS_STRING(r->text),
                                  (uint32_t)PyBytes_GET_SIZE(r->text));
    if (!out->record) PyErr_NoMemory();
    return out->record != NULL;
}

/* The array's own memory: kernel_settle copies it (kernel/kernel.h). */
static int as_array(PyObject *o, kernel_host *owner, py_entity *out) {
    if (!is_instance(o, "ndarray")) return 0;
    out->type = scalar_of_array(o);
    if (PyErr_Occurred()) return -1;
    if (out->type == PY_S_NONE && !take_record(o, owner, out)) return PyErr_Occurred() ? -1 : 0;
    Py_buffer view;
    if (!kernel_host_keep(owner, o) || PyObject_GetBuffer(o, &view, PyBUF_STRIDED_RO) < 0)
        return -1;
    bool fits = view.ndim <= PY_MAX_NDIM;
    out->kind = PY_ENTITY_ARRAY;
    out->ndim = view.ndim;
    out->data = view.buf;
    out->handle = o;
    for (int i = 0; fits && i < view.ndim; i++) {
        out->shape[i] = view.shape[i];
        out->strides[i] = view.strides[i];
    }
    PyBuffer_Release(&view);
    return fits;
}

/* The text of an attribute that marks an object, in the owner's arena; NULL: has none (or an exception
 * is set). */
static const char *mark_of(PyObject *o, const char *attribute, kernel_host *owner) {
    PyObject *mark = kernel_attribute(o, attribute);
    const char *text =
        mark && PyUnicode_Check(mark) ? keep_text(owner, PyUnicode_AsUTF8(mark)) : NULL;
    Py_XDECREF(mark);
    return text;
}

/* Stubs of simt.numba, groups of them (cuda.atomic) and its scalar types say what they are. */
int kernel_marked_entity(PyObject *o, kernel_host *owner, py_entity *out) {
    const char *name = mark_of(o, "_simt_intrinsic", owner);
    py_entity_kind kind = name ? PY_ENTITY_INTRINSIC : PY_ENTITY_MODULE;
    if (!name && !PyErr_Occurred()) name = mark_of(o, "_simt_group", owner);
    if (PyErr_Occurred()) return -1;
    if (name) {
        out->handle = o;
        return done_or_failed(become(out, kind, name) && kernel_host_keep(owner, o));
    }
    PyObject *mark = kernel_attribute(o, "_simt_scalar");
    long s = mark && PyLong_Check(mark) ? PyLong_AsLong(mark) : PY_S_NONE;
    binding_forgive();
    Py_XDECREF(mark);
    out->kind = PY_ENTITY_TYPE;
    out->type = s > PY_S_NONE && s < PY_SCALAR_COUNT ? (py_scalar)s : PY_S_NONE;
    if (PyErr_Occurred()) return -1;
    if (out->type == PY_S_NONE && take_record(o, owner, out)) return 1;
    return PyErr_Occurred() ? -1 : out->type != PY_S_NONE;
}

/* A function or class of a program's own; in a namespace without __name__ (exec) such a one says that
 * builtins is its module. */
static bool is_written_in_python(PyObject *o) {
    return PyFunction_Check(o) ||
           (PyType_Check(o) && PyType_HasFeature((PyTypeObject *)o, Py_TPFLAGS_HEAPTYPE));
}

/* "module.name" of a function or class that a known library defines; *out is new, or NULL. */
static bool library_name(PyObject *o, PyObject **out) {
    *out = NULL;
    PyObject *module = kernel_attribute(o, "__module__"), *name = kernel_attribute(o, "__name__");
    if (!module && name && is_instance(o, "ufunc")) module = PyUnicode_FromString("numpy");
    if (module && name && PyUnicode_Check(module) && PyUnicode_Check(name)) {
        const char *text = PyUnicode_AsUTF8(module);
        if (text && strcmp(text, "_operator") == 0) text = "operator";
        if (text && strcmp(text, "builtins") == 0 && is_written_in_python(o)) text = NULL;
        if (text && strncmp(text, "numpy.", 6) == 0 && is_instance(o, "ufunc")) text = "numpy";
        if (text &&
            (!strcmp(text, "math") || !strcmp(text, "cmath") || !strcmp(text, "builtins") ||
             !strcmp(text, "operator") || !strcmp(text, "numpy") || !strncmp(text, "numpy.", 6)))
            *out = PyUnicode_FromFormat("%s.%U", text, name);
    }
    Py_XDECREF(module);
    Py_XDECREF(name);
    if (PyErr_Occurred()) Py_CLEAR(*out);
    return !PyErr_Occurred();
}

static int as_library_function(PyObject *o, kernel_host *owner, py_entity *out) {
    if (!PyCallable_Check(o)) return 0;
    PyObject *name;
    if (!library_name(o, &name)) return -1;
    if (!name) return 0;
    const char *text = keep_text(owner, PyUnicode_AsUTF8(name));
    Py_DECREF(name);
    out->handle = o;
    return done_or_failed(become(out, PY_ENTITY_INTRINSIC, text) && kernel_host_keep(owner, o));
}

static int as_type(PyObject *o, kernel_host *owner, py_entity *out) {
    if (PyType_Check(o)) {
        out->type = scalar_of_python_type(o);
        if (out->type == PY_S_NONE && is_subclass(o, "generic"))
            out->type = scalar_of_numpy_type(o);
    } else if (is_instance(o, "dtype")) {
        out->type = scalar_of_dtype(o);
    }
    out->kind = PY_ENTITY_TYPE;
    if (PyErr_Occurred()) return -1;
    if (out->type == PY_S_NONE && !PyType_Check(o) && take_record(o, owner, out)) return 1;
    if (PyErr_Occurred()) return -1;
    if (PyType_Check(o) && !(out->name = keep_text(owner, ((PyTypeObject *)o)->tp_name))) return -1;
    return out->type != PY_S_NONE;
}

/* Has the function been overloaded (simt.numba.extending)? */
static bool is_overloaded(PyObject *function) {
    PyObject *all = kernel_attribute(function, "_simt_overloads");
    Py_XDECREF(all);
    return all != NULL;
}

PyObject *kernel_python_function(PyObject *o) {
    if (PyFunction_Check(o)) return Py_NewRef(o);
    if (PyType_Check(o) || PyModule_Check(o)) return NULL;
    PyObject *function = kernel_attribute(o, "py_func");
    if (function && !PyFunction_Check(function)) Py_CLEAR(function);
    return function;
}

/* A Python function, or the dispatcher of one. The handle: what kernel_host_function takes. */
int kernel_function_entity(PyObject *o, kernel_host *owner, py_entity *out) {
    if (is_ours(o) || PyErr_Occurred()) return 0;
    PyObject *function = kernel_python_function(o);
    if (!function) return 0;
    PyObject *name = ((PyFunctionObject *)function)->func_name;
    out->handle = o;
    py_entity_kind kind = is_overloaded(function) ? PY_ENTITY_OVERLOAD : PY_ENTITY_FUNCTION;
    int status = done_or_failed(!PyErr_Occurred() && kernel_host_keep(owner, o) &&
                                become(out, kind, keep_text(owner, PyUnicode_AsUTF8(name))));
    Py_DECREF(function);
    return status;
}

static int as_named_class(PyObject *o, kernel_host *owner, py_entity *out) {
    if (!PyType_Check(o) || !PyType_IsSubtype((PyTypeObject *)o, &PyTuple_Type)) return 0;
    if (!tuple_names((PyTypeObject *)o, &owner->mem, &out->names)) return -1;
    if (!out->names) return 0;
    out->handle = o;
    return done_or_failed(become(out, PY_ENTITY_NAMED, out->names->name) &&
                          kernel_host_keep(owner, o));
}

/* Modules; and classes of the user's, whose attributes may be constants (enums, settings). */
static int as_module(PyObject *o, kernel_host *owner, py_entity *out) {
    PyObject *name = NULL;
    if (PyModule_Check(o))
        name = kernel_attribute(o, "__name__");
    else if (PyType_Check(o) && !PyExceptionClass_Check(o))
        name = kernel_attribute(o, "__qualname__");
    if (!name || !PyUnicode_Check(name)) {
        Py_XDECREF(name);
        return 0;
    }
    const char *text = keep_text(owner, PyUnicode_AsUTF8(name));
    Py_DECREF(name);
    out->handle = o;
    PyObject *members = PyType_Check(o) ? kernel_attribute(o, "__members__") : NULL;
    out->is_enum = members != NULL;
    Py_XDECREF(members);
    return done_or_failed(!PyErr_Occurred() && become(out, PY_ENTITY_MODULE, text) &&
                          kernel_host_keep(owner, o));
}

static int as_exception(PyObject *o, kernel_host *owner, py_entity *out) {
    if (!PyExceptionClass_Check(o)) return 0;
    out->handle = o;
    const char *text = keep_text(owner, ((PyTypeObject *)o)->tp_name);
    return done_or_failed(become(out, PY_ENTITY_EXCEPTION, text) && kernel_host_keep(owner, o));
}

/* None of the questions so far was answered by yes, or could not be asked. */
static bool goes_on(int status) { return status == 0 && !PyErr_Occurred(); }

bool kernel_to_entity(PyObject *o, const char *name, int depth, kernel_host *owner,
                      py_entity *out) {
    memset(out, 0, sizeof *out);
    int status = as_numpy_scalar(o, owner, out);
    if (goes_on(status)) status = as_constant(o, owner, out);
    if (goes_on(status)) status = as_tuple(o, name, depth, owner, out);
    if (goes_on(status)) status = as_array(o, owner, out);
    if (goes_on(status)) status = as_exception(o, owner, out);
    if (goes_on(status)) status = as_type(o, owner, out);
    if (goes_on(status)) status = kernel_marked_entity(o, owner, out);
    if (goes_on(status)) status = as_library_function(o, owner, out);
    if (goes_on(status)) status = kernel_function_entity(o, owner, out);
    if (goes_on(status)) status = as_named_class(o, owner, out);
    if (goes_on(status)) status = as_module(o, owner, out);
    if (goes_on(status)) {
        memset(out, 0, sizeof *out);
        status = as_object(o, name, owner, out);
    }
    return status == 1 && !PyErr_Occurred();
}
