/* Errors of kernels: file:line:column, the user's line and a caret under the column. */
#include "binding/kernel/tree.h"

#include <string.h>

/* Line `number` of a file as text without its end; NULL when it is not to be had (no exception). */
static PyObject *line_of_file(const char *file, int number) {
    PyObject *filename = PyUnicode_DecodeFSDefault(file), *line = NULL;
    bool done = filename == NULL;
    for (int attempt = 0; !done && !line; attempt++) {
        PyObject *text = kernel_text_load(filename, NULL, NULL, attempt, &done);
        if (!text) continue;
        Py_ssize_t bytes, left = number - 1;
        const char *p = PyUnicode_AsUTF8AndSize(text, &bytes), *end = p ? p + bytes : NULL;
        while (p && left > 0 && (p = memchr(p, '\n', (size_t)(end - p)))) p++, left--;
        if (p && left == 0 && p < end) {
            const char *stop = memchr(p, '\n', (size_t)(end - p));
            line = PyUnicode_DecodeUTF8(p, (stop ? stop : end) - p, "replace");
        }
        Py_DECREF(text);
    }
    Py_XDECREF(filename);
    PyErr_Clear();
    return line;
}

/* Characters that fill two columns of a terminal: Chinese, Japanese, Korean, full-width forms. */
static bool is_wide(Py_UCS4 c) {
    return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
           (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
           (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
           (c >= 0x20000 && c <= 0x3FFFD);
}

/* "    x = y\n        ^" with the line's own indentation taken off. */
static bool add_line(PyObject *line, int column, strbuf *out) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(line), first = 0;
    while (first < length && Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(line, first))) first++;
    PyObject *shown = PyUnicode_Substring(line, first, length);
    const char *text = shown ? PyUnicode_AsUTF8(shown) : NULL;
    if (text) strbuf_printf(out, "\n    %s", text);
    if (text && column > first && column <= length + 1) {
        strbuf_puts(out, "\n    ");
        for (Py_ssize_t i = first; i < column - 1; i++)
            strbuf_puts(out, is_wide(PyUnicode_READ_CHAR(line, i)) ? "  " : " ");
        strbuf_puts(out, "^");
    }
    Py_XDECREF(shown);
    return text != NULL;
}

/* `what`, "file:line:column", " in " and the function's name, `more`, the line, the caret. */
static void add_place(const char *what, const char *file, int line, int column, const char *in,
                      const char *function, const char *more, strbuf *out) {
    strbuf_printf(out, "%s%s:%d", what, file, line);
    if (column > 0) strbuf_printf(out, ":%d", column);
    if (function[0]) strbuf_printf(out, "%s%s", in, function);
    strbuf_puts(out, more);
    PyObject *source = line_of_file(file, line);
    if (source && !add_line(source, column, out)) PyErr_Clear();
    Py_XDECREF(source);
}

/* The diagnostic's place, and below how it was reached, up to the kernel. */
static void add_places(const simt_diag *d, const char *more, strbuf *out) {
    bool zh = binding_in_chinese();
    const char *in = zh ? ", 在函数 " : " in ", *in_kernel = zh ? ", 在内核 " : " in kernel ";
    add_place(zh ? "位置: " : "at ", d->file, d->line, d->column, in, d->function, more, out);
    int n = d->ncallers < STATUS_CALLERS ? d->ncallers : STATUS_CALLERS;
    for (int i = 0; i < n; i++) {
        const status_caller *c = &d->callers[i];
        if (i == n - 1 && d->ncallers > n)
            strbuf_printf(out, zh ? "\n... 还有 %d 层调用" : "\n... %d more calls",
                          d->ncallers - n);
        add_place(zh ? "\n调用处: " : "\ncalled from ", c->file, c->line, c->column,
                  i == n - 1 ? in_kernel : in, c->function, "", out);
    }
}

PyObject *kernel_place(const simt_diag *diag, const char *more) {
    strbuf out;
    strbuf_init(&out);
    add_places(diag, more, &out);
    PyObject *text =
        out.failed ? PyErr_NoMemory()
                   : PyUnicode_DecodeUTF8(strbuf_text(&out), (Py_ssize_t)out.length, "replace");
    strbuf_deinit(&out);
    return text;
}

/* numba's TypingError; a TypeError too, so that a program may catch either. New reference. */
static PyObject *typing_error(void) {
    PyObject *module = PyImport_ImportModule("simt.numba.core.errors");
    PyObject *type = module ? PyObject_GetAttrString(module, "TypingError") : NULL;
    Py_XDECREF(module);
    if (type) return type;
    PyErr_Clear();
    return Py_NewRef(PyExc_TypeError);
}

PyObject *kernel_raise(void) {
    if (PyErr_Occurred() || status_get()->code == SIMT_ERR_INTERRUPT) return binding_raise();
    simt_diag diag = *status_get(); /* what is imported below may record failures of its own */
    strbuf place;
    strbuf_init(&place);
    if (diag.file[0] && diag.line > 0) add_places(&diag, "", &place);
    PyObject *type = diag.code == SIMT_ERR_TYPING ? typing_error()
                                                  : Py_NewRef(binding_exception_type(diag.code));
    if (place.failed)
        PyErr_NoMemory();
    else
        binding_raise_text(type, diag.text, strbuf_text(&place),
                           status_hint(diag.code, binding_in_chinese()));
    Py_DECREF(type);
    strbuf_deinit(&place);
    return NULL;
}

/* ---- launches ---- */

/* File and line of the def; without its source, of the first decorator. New reference to the file's name, or
 * NULL. */
static PyObject *definition_of(PyObject *function, int *line) {
    const kernel_source *fn = kernel_source_get(function);
    if (fn) *line = (int)fn->tree->line;
    PyErr_Clear();
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
    if (name)
        add_place(binding_in_chinese() ? "定义于 " : "defined at ", name, line, 0, "", "", "",
                  &out);
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
    PyErr_Clear();
    if (better) {
        Py_DECREF(value);
        value = better;
    }
    PyErr_Restore(type, value, traceback);
    return false;
}
