/* From a Python function object to its tree.
 *
 * The code object names a file and a line. Most often the lines of the function alone are parsed,
 * inside a function whose parameters are its free variables; where that does not do (a lambda
 * within a longer statement, text at odd indentation), the whole file. What was found is compiled
 * again and compared with the function's own code object, so that a file edited since its import,
 * or the wrong one of two lambdas on a line, is an error and never a wrong kernel. Where there is no file,
 * what the program has at hand is tried (kernel/held.c).
 *
 * A tree is kept with its code object and goes with it.
 */
#include "binding/kernel/code.h"
#include "binding/kernel/tree.h"

#include <string.h>
#include <unistd.h>

/* ---- what is kept: address of a code object -> capsule, dropped by a weak reference to the object ---- */

static PyObject *registry; /* dict */
static const char kind[] = "simt.kernel_source";

static kernel_source *source_in(PyObject *capsule) {
    return capsule && PyCapsule_IsValid(capsule, kind) ? PyCapsule_GetPointer(capsule, kind) : NULL;
}

static kernel_source *recall(PyCodeObject *code) {
    PyObject *key = registry ? PyLong_FromVoidPtr(code) : NULL;
    PyObject *capsule = key ? PyDict_GetItemWithError(registry, key) : NULL;
    Py_XDECREF(key);
    return source_in(capsule);
}

static PyObject *forget(PyObject *key, PyObject *reference) {
    if (PyDict_DelItem(registry, key) < 0) binding_do_without();
    Py_RETURN_NONE;
}
static PyMethodDef forget_method = {"forget", forget, METH_O, NULL};

static void source_free(kernel_source *t) {
    if (!t) return;
    arena_deinit(&t->mem);
    heap_free(t);
}

static void source_release(PyObject *capsule) {
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
    source_free(source_in(capsule));
}

/* Takes `made`, also when it fails. Returns what is kept: another's, when a thread was quicker. */
static kernel_source *remember(PyCodeObject *code, kernel_source *made) {
    if (!registry && !(registry = PyDict_New())) {
        source_free(made);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(made, kind, source_release);
    if (!capsule) source_free(made);
    PyObject *key = capsule ? PyLong_FromVoidPtr(code) : NULL;
    PyObject *callback = key ? PyCFunction_New(&forget_method, key) : NULL;
    PyObject *reference = callback ? PyWeakref_NewRef((PyObject *)code, callback) : NULL;
    if (reference) PyCapsule_SetContext(capsule, reference);
    PyObject *kept = reference ? PyDict_SetDefault(registry, key, capsule) : NULL;
    Py_XDECREF(callback);
    Py_XDECREF(key);
    Py_XDECREF(capsule);
    return source_in(kept);
}

/* Looks in one text. 1: found and copied to *out; 0: not there; -1: exception. */
static int tree_from_text(PyObject *text, PyCodeObject *code, kernel_source *out) {
    kernel_found found;
    int status = kernel_code_find(text, code, &found);
    if (status <= 0) return status;
    const char *class =
        found.class && PyUnicode_Check(found.class) ? PyUnicode_AsUTF8(found.class) : NULL;
    while (class && *class == '_') class ++;
    if (class || !PyErr_Occurred())
        out->tree = kernel_tree_copy(found.node, &found.text, class, &out->mem);
    kernel_found_done(&found);
    return out->tree ? 1 : -1;
}

/* "<string>": a name that is no file's. */
static bool is_bracketed(PyObject *filename) {
    return PyUnicode_GET_LENGTH(filename) > 0 && PyUnicode_READ_CHAR(filename, 0) == '<';
}

/* Takes `text`, or NULL. */
static void raise_and_drop(PyObject *type, PyObject *text, const char *hint) {
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8) binding_raise_text(type, utf8, "", hint);
    Py_XDECREF(text);
}

static PyObject *raise_absent(PyObject *name, PyObject *file, int line) {
    bool zh = binding_in_chinese();
    const char *hint;
    if (PyUnicode_CompareWithASCIIString(file, "<string>") == 0)
        hint = zh ? "用 exec 生成的代码: 调用 exec 时请把文本保存在变量里, 或先登记: "
                    "linecache.cache[文件名] = (len(text), None, text.splitlines(True), 文件名)"
                  : "code made by exec: have its text in a variable where exec is called, or "
                    "register it: linecache.cache[filename] = (len(text), None, "
                    "text.splitlines(True), filename)";
    else if (is_bracketed(file)) /* <stdin>, <console> */
        hint = zh ? "把程序写入文件, 或用 `simt run -`, IPython 或 Jupyter 运行"
                  : "put the program into a file, or use `simt run -`, IPython or Jupyter";
    else
        hint = zh ? "请检查文件是否还在, 能否读取" : "is the file still there and readable?";
    PyObject *text = PyUnicode_FromFormat("no source text for '%U' (%U, line %d): kernels are "
                                          "compiled from their source",
                                          name, file, line);
    raise_and_drop(PyExc_OSError, text, hint);
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
    raise_and_drop(PyExc_RuntimeError, text, hint);
    return NULL;
}

static int try_held(PyObject *text, PyCodeObject *code, void *out) {
    return tree_from_text(text, code, out);
}

static bool tree_find(PyObject *function, PyCodeObject *code, kernel_source *out) {
    PyObject *globals = PyFunction_GET_GLOBALS(function), *tried = NULL;
    int status = 0;
    bool done = false;
    for (int attempt = 0; !done && status == 0; attempt++) {
        PyObject *text = kernel_text_load(code->co_filename, code, globals, attempt, &done);
        if (!text && PyErr_Occurred()) status = -1;
        if (!text) continue;
        if (!tried || PyUnicode_Compare(text, tried) != 0) status = tree_from_text(text, code, out);
        Py_XSETREF(tried, text);
    }
    if (status == 0 && (!tried || is_bracketed(code->co_filename)))
        status = kernel_text_held(code, globals, try_held, out);
    if (status == 0 && tried)
        raise_different(code->co_name, code->co_filename, code->co_firstlineno);
    else if (status == 0)
        raise_absent(code->co_name, code->co_filename, code->co_firstlineno);
    Py_XDECREF(tried);
    return status == 1;
}

static const char *copy_text(PyObject *text, arena *mem) {
    const char *utf8 = PyUnicode_AsUTF8(text);
    if (!utf8 && !binding_forgive()) return NULL;
    char *copy = arena_strdup(mem, utf8 ? utf8 : "?"); /* a file name that is no UTF-8 */
    if (!copy) PyErr_NoMemory();
    return copy;
}

static kernel_source *source_of(PyObject *function, PyCodeObject *code) {
    kernel_source *s = recall(code);
    if (s || PyErr_Occurred()) return s;
    s = binding_alloc(1, sizeof *s);
    if (!s) return NULL;
    arena_init(&s->mem);
    s->file = copy_text(code->co_filename, &s->mem);
    s->name = copy_text(code->co_name, &s->mem);
    int collecting = PyGC_Disable(); /* thousands of ast objects come and go, none is garbage */
    bool found = s->file && s->name && tree_find(function, code, s);
    if (collecting) PyGC_Enable();
    if (found) return remember(code, s);
    source_free(s);
    return NULL;
}

/* ---- the function ---- */

/* A generator or an async function is no kernel. */
static bool is_plain(PyCodeObject *code) {
    if (!(code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))) return true;
    status_fail(SIMT_ERR_TYPING, "'%s' is %s: a kernel is a plain function",
                PyUnicode_AsUTF8(code->co_name),
                code->co_flags & CO_GENERATOR ? "a generator (it has a yield)"
                                              : "an async function");
    status_set_position(PyUnicode_AsUTF8(code->co_filename), code->co_firstlineno, 0);
    kernel_raise();
    return false;
}

const kernel_source *kernel_source_get(PyObject *function) {
    if (PyFunction_Check(function)) {
        PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
        return is_plain(code) ? source_of(function, code) : NULL;
    }
    PyErr_Format(PyExc_TypeError, "a kernel is a Python function, not '%s'",
                 Py_TYPE(function)->tp_name);
    return NULL;
}

static bool is_in_no_file(PyObject *filename) {
    if (is_bracketed(filename)) return true;
    PyObject *path = PyUnicode_EncodeFSDefault(filename);
    bool absent = path && access(PyBytes_AS_STRING(path), F_OK) != 0;
    binding_forgive();
    Py_XDECREF(path);
    return absent;
}

bool kernel_source_hold(PyObject *function) {
    if (!PyFunction_Check(function)) return true;
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    if (!is_in_no_file(code->co_filename)) return !PyErr_Occurred();
    return kernel_source_get(function) || binding_forgive(); /* it is raised where it is compiled */
}
