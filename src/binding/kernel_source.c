/* From a Python function object to its tree.
 *
 * The code object names a file and a line. Most often the lines of the function alone are parsed,
 * inside a function whose parameters are its free variables; where that does not do (a lambda
 * within a longer statement, text at odd indentation), the whole file. What was found is compiled
 * again and compared with the function's own code object, so that a file edited since its import,
 * or the wrong one of two lambdas on a line, is an error and never a wrong kernel.
 *
 * A tree is kept with its code object, a py_function with its function object; both go with them.
 */
#include "binding/kernel_code.h"
#include "binding/kernel_tree.h"

#include <string.h>

/* ---- what is kept: address of an object -> capsule, dropped by a weak reference to the object
 * ---- */

static PyObject *registry; /* dict */

static void *recall(PyObject *object, const char *kind) {
    PyObject *key = registry ? PyLong_FromVoidPtr(object) : NULL;
    PyObject *capsule = key ? PyDict_GetItemWithError(registry, key) : NULL;
    Py_XDECREF(key);
    return capsule && PyCapsule_IsValid(capsule, kind) ? PyCapsule_GetPointer(capsule, kind) : NULL;
}

static PyObject *forget(PyObject *key, PyObject *reference) {
    if (PyDict_DelItem(registry, key) < 0) PyErr_Clear();
    Py_RETURN_NONE;
}
static PyMethodDef forget_method = {"forget", forget, METH_O, NULL};

/* Takes `data` (capsule destructor: release), also when it fails. */
static bool remember(PyObject *object, const char *kind, void *data, PyCapsule_Destructor release) {
    if (!registry) registry = PyDict_New();
    PyObject *capsule = PyCapsule_New(data, kind, release);
    PyObject *key = PyLong_FromVoidPtr(object);
    PyObject *callback = key ? PyCFunction_New(&forget_method, key) : NULL;
    PyObject *reference = callback ? PyWeakref_NewRef(object, callback) : NULL;
    bool done = registry && capsule && reference && PyCapsule_SetContext(capsule, reference) == 0 &&
                PyDict_SetItem(registry, key, capsule) == 0;
    if (!capsule || PyCapsule_GetContext(capsule) != reference) Py_XDECREF(reference);
    Py_XDECREF(callback);
    Py_XDECREF(key);
    Py_XDECREF(capsule);
    return done;
}

/* ---- the tree of a code object ---- */

static const char tree_kind[] = "simt.kernel_tree", function_kind[] = "simt.kernel_function";

typedef struct source_tree {
    arena mem;
    py_node *tree;
    const char *file, *name;
} source_tree;

static void tree_free(source_tree *t) {
    if (!t) return;
    arena_deinit(&t->mem);
    PyMem_Free(t);
}

static void tree_release(PyObject *capsule) {
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
    tree_free(PyCapsule_GetPointer(capsule, tree_kind));
}

/* Looks in one text. 1: found and copied to *out; 0: not there; -1: exception. */
static int tree_from_text(PyObject *text, PyCodeObject *code, source_tree *out) {
    kernel_found found;
    int status = kernel_code_find(text, code, &found);
    if (status <= 0) return status;
    out->tree = kernel_tree_copy(found.node, &found.text, &out->mem);
    kernel_found_done(&found);
    return out->tree ? 1 : -1;
}

static PyObject *raise_absent(PyObject *name, PyObject *file, int line) {
    bool zh = binding_in_chinese();
    const char *hint;
    if (PyUnicode_CompareWithASCIIString(file, "<string>") == 0)
        hint = zh ? "用 `simt run -c` 代替 `python -c`; 用 exec 生成的代码请先登记: "
                    "linecache.cache[文件名] = (len(text), None, text.splitlines(True), 文件名)"
                  : "use `simt run -c` instead of `python -c`; register code made by exec: "
                    "linecache.cache[filename] = (len(text), None, text.splitlines(True), "
                    "filename)";
    else if (PyUnicode_CompareWithASCIIString(file, "<stdin>") == 0)
        hint = zh ? "把程序写入文件, 或用 `simt run -`, IPython 或 Jupyter 运行"
                  : "put the program into a file, or use `simt run -`, IPython or Jupyter";
    else
        hint = zh ? "请检查文件是否还在, 能否读取" : "is the file still there and readable?";
    PyObject *text = PyUnicode_FromFormat("no source text for '%U' (%U, line %d): kernels are "
                                          "compiled from their source",
                                          name, file, line);
    if (text) binding_raise_text(PyExc_OSError, PyUnicode_AsUTF8(text), "", hint);
    Py_XDECREF(text);
    return NULL;
}

static PyObject *raise_different(PyObject *name, PyObject *file, int line) {
    bool zh = binding_in_chinese();
    const char *hint =
        zh ? "文件在导入之后被修改: 请重新启动程序 (notebook: 重新运行单元或重启内核)"
           : "the file has changed since Python read it: start the program again "
             "(notebook: run the cell again or restart)";
    PyObject *text = PyUnicode_FromFormat("the source of '%U' at %U:%d is not what Python "
                                          "compiled",
                                          name, file, line);
    if (text) binding_raise_text(PyExc_RuntimeError, PyUnicode_AsUTF8(text), "", hint);
    Py_XDECREF(text);
    return NULL;
}

static bool tree_find(PyObject *function, PyCodeObject *code, source_tree *out) {
    PyObject *globals = PyFunction_GET_GLOBALS(function), *tried = NULL;
    int status = 0;
    bool done = false;
    for (int attempt = 0; !done && status == 0; attempt++) {
        PyObject *text = kernel_text_load(code->co_filename, globals, attempt, &done);
        if (!text && PyErr_Occurred()) status = -1;
        if (!text) continue;
        if (!tried || PyUnicode_Compare(text, tried) != 0) status = tree_from_text(text, code, out);
        Py_XSETREF(tried, text);
    }
    if (status == 0 && tried)
        raise_different(code->co_name, code->co_filename, code->co_firstlineno);
    else if (status == 0)
        raise_absent(code->co_name, code->co_filename, code->co_firstlineno);
    Py_XDECREF(tried);
    return status == 1;
}

static const char *copy_text(PyObject *text, arena *mem) {
    const char *utf8 = PyUnicode_AsUTF8(text);
    if (!utf8) { /* a file name that is no UTF-8 */
        PyErr_Clear();
        utf8 = "?";
    }
    char *copy = arena_strdup(mem, utf8);
    if (!copy) PyErr_NoMemory();
    return copy;
}

static source_tree *tree_of(PyObject *function, PyCodeObject *code) {
    source_tree *t = recall((PyObject *)code, tree_kind);
    if (t) return t;
    t = PyMem_Calloc(1, sizeof *t);
    if (!t) return PyErr_NoMemory(), NULL;
    arena_init(&t->mem);
    t->file = copy_text(code->co_filename, &t->mem);
    t->name = copy_text(code->co_name, &t->mem);
    int collecting = PyGC_Disable(); /* thousands of ast objects come and go, none is garbage */
    bool found = t->file && t->name && tree_find(function, code, t);
    if (collecting) PyGC_Enable();
    if (!found) {
        tree_free(t);
        return NULL;
    }
    source_tree *other = recall((PyObject *)code, tree_kind); /* of a thread that was quicker */
    if (other) {
        tree_free(t);
        return other;
    }
    return remember((PyObject *)code, tree_kind, t, tree_release) ? t : NULL;
}

/* ---- the function ---- */

static void function_release(PyObject *capsule) {
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
    kernel_function *f = PyCapsule_GetPointer(capsule, function_kind);
    Py_XDECREF(f->kept);
    arena_deinit(&f->mem);
    PyMem_Free(f);
}

/* One default after another into entities; `given` is the tuple for the last of n parameters. */
static bool fill_defaults(PyObject *function, PyCodeObject *code, kernel_function *f) {
    int npositional = code->co_argcount, nnamed = code->co_kwonlyargcount;
    py_entity *entities = ARENA_ARRAY(&f->mem, py_entity, npositional + nnamed + 1);
    if (!entities) return PyErr_NoMemory(), false;
    f->pub.defaults = entities;
    for (int i = 0; i < npositional + nnamed; i++) entities[i].kind = PY_ENTITY_OBJECT;
    PyObject *given = PyFunction_GET_DEFAULTS(function);
    PyObject *named = PyFunction_GET_KW_DEFAULTS(function);
    PyObject *names = PyCode_GetVarnames(code);
    bool done = names != NULL;
    int first = npositional - (given ? (int)PyTuple_GET_SIZE(given) : 0);
    for (int i = 0; done && i < npositional + nnamed; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = NULL;
        if (i < npositional)
            value = i >= first && i >= 0 ? PyTuple_GET_ITEM(given, i - first) : NULL;
        else if (named)
            value = PyDict_GetItemWithError(named, name);
        const char *text = PyUnicode_AsUTF8(name);
        if (value) done = text && kernel_to_entity(value, text, f, &entities[i]);
    }
    Py_XDECREF(names);
    return done;
}

static kernel_function *function_make(PyObject *function, PyCodeObject *code) {
    if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) {
        status_fail(SIMT_ERR_TYPING, "'%s' is %s: a kernel is a plain function",
                    PyUnicode_AsUTF8(code->co_name),
                    code->co_flags & CO_GENERATOR ? "a generator (it has a yield)"
                                                  : "an async function");
        status_set_position(PyUnicode_AsUTF8(code->co_filename), code->co_firstlineno, 0);
        kernel_raise();
        return NULL;
    }
    source_tree *t = tree_of(function, code);
    kernel_function *f = t ? recall(function, function_kind) : NULL;
    if (f) return f; /* another thread was quicker */
    if (t) f = PyMem_Calloc(1, sizeof *f);
    if (!f) return t ? (PyErr_NoMemory(), NULL) : NULL;
    arena_init(&f->mem);
    f->pub = (py_function){.name = t->name, .file = t->file, .tree = t->tree, .handle = function};
    if (!remember(function, function_kind, f, function_release)) return NULL;
    if (fill_defaults(function, code, f)) return f;
    PyObject *key = PyLong_FromVoidPtr(function), *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (key) Py_XDECREF(forget(key, NULL));
    Py_XDECREF(key);
    PyErr_Restore(type, value, trace);
    return NULL;
}

const py_function *kernel_function_get(PyObject *function) {
    if (!PyFunction_Check(function)) {
        PyErr_Format(PyExc_TypeError, "a kernel is a Python function, not '%s'",
                     Py_TYPE(function)->tp_name);
        return NULL;
    }
    kernel_function *f = recall(function, function_kind);
    if (!f) f = function_make(function, (PyCodeObject *)PyFunction_GET_CODE(function));
    return f ? &f->pub : NULL;
}
