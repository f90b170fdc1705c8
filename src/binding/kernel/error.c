/* Errors of kernels: exceptions with the place in the user's source (kernel/report.h). */
#include "binding/kernel/tree.h"

#include <string.h>

/* Line `number` of a file without its end; false when it is not to be had (no exception). */
static bool line_of_file(const char *file, int number, strbuf *out) {
    PyObject *filename = PyUnicode_DecodeFSDefault(file);
    bool done = filename == NULL, found = false;
    for (int attempt = 0; !done && !found; attempt++) {
        PyObject *text = kernel_text_load(filename, NULL, NULL, attempt, &done);
        if (!text) {
            binding_do_without();
            continue;
        }
        Py_ssize_t bytes, left = number - 1;
        const char *p = PyUnicode_AsUTF8AndSize(text, &bytes), *end = p ? p + bytes : NULL;
        while (p && left > 0 && (p = memchr(p, '\n', (size_t)(end - p)))) p++, left--;
        found = p && left == 0 && p < end;
        if (found) {
            const char *stop = memchr(p, '\n', (size_t)(end - p));
            strbuf_add(out, p, (size_t)((stop ? stop : end) - p));
        }
        Py_DECREF(text);
    }
    Py_XDECREF(filename);
    binding_do_without();
    return found;
}

report_host kernel_reporter(void) {
    return (report_host){.line = line_of_file, .zh = binding_in_chinese()};
}

/* numba's TypingError; a TypeError too, so that a program may catch either. New reference or NULL. */
static PyObject *typing_error(void) {
    PyObject *module = PyImport_ImportModule("simt.numba.core.errors");
    PyObject *type = module ? PyObject_GetAttrString(module, "TypingError") : NULL;
    Py_XDECREF(module);
    return type;
}

PyObject *kernel_raise(void) {
    if (PyErr_Occurred() || status_get()->code == SIMT_ERR_INTERRUPT) return binding_raise();
    simt_diag diag = *status_get(); /* what is imported below may record failures of its own */
    strbuf place;
    strbuf_init(&place);
    report_host host = kernel_reporter();
    if (diag.file[0] && diag.line > 0) report_place(&host, &diag, "", &place);
    PyObject *type = diag.code == SIMT_ERR_TYPING ? typing_error()
                                                  : Py_NewRef(binding_exception_type(diag.code));
    if (place.failed)
        PyErr_NoMemory();
    else if (type)
        binding_raise_text(type, diag.text, strbuf_text(&place),
                           status_hint(diag.code, binding_in_chinese()));
    Py_XDECREF(type);
    strbuf_deinit(&place);
    return NULL;
}

/* ---- launches ---- */

/* File and line of the def; without its source, of the first decorator. New reference to the file's name, or
 * NULL. */
static PyObject *definition_of(PyObject *function, int *line) {
    const kernel_source *fn = kernel_source_get(function);
    if (fn) *line = (int)fn->tree->line;
    binding_do_without();
    PyObject *code = PyObject_GetAttrString(function, "__code__");
    PyObject *first = code ? PyObject_GetAttrString(code, "co_firstlineno") : NULL;
    PyObject *file = first ? PyObject_GetAttrString(code, "co_filename") : NULL;
    if (!fn && first) *line = (int)PyLong_AsLong(first);
    Py_XDECREF(code);
    Py_XDECREF(first);
    return file;
}

/* `text` and a line more: where the kernel is defined. New reference or NULL. */
static PyObject *with_definition(PyObject *text, PyObject *function) {
    int line = 0;
    PyObject *file = definition_of(function, &line), *whole = NULL;
    const char *name = file ? PyUnicode_AsUTF8(file) : NULL;
    strbuf out;
    strbuf_init(&out);
    report_host host = kernel_reporter();
    if (name) report_definition(&host, host.zh ? "定义于 " : "defined at ", name, line, &out);
    if (name && !out.failed) whole = PyUnicode_FromFormat("%U\n%s", text, strbuf_text(&out));
    strbuf_deinit(&out);
    Py_XDECREF(file);
    return whole;
}

static bool is_of_kernel(PyObject *text, const char *name) {
    PyObject *start = PyUnicode_FromFormat("kernel %s: ", name);
    bool is = start && PyUnicode_Tailmatch(text, start, 0, PY_SSIZE_T_MAX, -1) == 1;
    Py_XDECREF(start);
    return is;
}

/* The same exception with the definition behind its text, the last of its arguments; NULL: not one of those.
 * New reference. */
static PyObject *explained(PyObject *error, PyObject *function, const char *name) {
    PyObject *args = PyObject_GetAttrString(error, "args"), *result = NULL;
    Py_ssize_t last = args && PyTuple_Check(args) ? PyTuple_GET_SIZE(args) - 1 : -1;
    PyObject *text = last >= 0 ? PyTuple_GET_ITEM(args, last) : NULL;
    if (text && PyUnicode_Check(text) && is_of_kernel(text, name)) {
        PyObject *whole = with_definition(text, function), *changed = PyTuple_New(last + 1);
        for (Py_ssize_t i = 0; changed && i < last; i++)
            PyTuple_SET_ITEM(changed, i, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        if (changed) PyTuple_SET_ITEM(changed, last, Py_XNewRef(whole));
        if (changed && whole) result = PyObject_CallObject((PyObject *)Py_TYPE(error), changed);
        Py_XDECREF(whole);
        Py_XDECREF(changed);
    }
    Py_XDECREF(args);
    return result;
}

bool kernel_add_definition(PyObject *function, const char *name) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *better = value ? explained(value, function, name) : NULL;
    binding_do_without();
    if (better) {
        Py_DECREF(value);
        value = better;
    }
    PyErr_Restore(type, value, traceback);
    return false;
}
