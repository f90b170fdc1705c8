/* The text of a user's source file: for kernels and for the line that an error shows.
 *
 * linecache is the authority, since IPython and doctest register there what is in no file; but
 * importing it costs 5 ms, so as long as nobody has, a plain UTF-8 file is read here, and the
 * program of `simt run -c` and `-` is taken from simt._run.
 */
#include "binding/kernel/tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SOURCE_BYTES (64 << 20)

/* The encoding declared in the first two lines is UTF-8 or there is none (PEP 263; a byte order
 * mark was skipped). */
static bool is_utf8(const char *text, size_t bytes) {
    const char *p = text, *end = text + bytes;
    for (int line = 0; line < 2 && p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        const char *found = memmem(p, (size_t)(stop - p), "coding", 6);
        if (found && memchr(p, '#', (size_t)(found - p))) {
            for (found += 6; found < stop && strchr(":= \t", *found); found++) {}
            bool dash = stop - found > 3 && found[3] == '-';
            return stop - found >= 4 && strncasecmp(found, "utf", 3) == 0 && found[3 + dash] == '8';
        }
        p = stop + 1;
    }
    return true;
}

static char *read_bytes(const char *path, size_t *bytes) {
    struct stat info; /* before opening: a pipe would block */
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    char *text = NULL;
    if (file && info.st_size <= MAX_SOURCE_BYTES) {
        text = binding_alloc(1, (size_t)info.st_size + 1);
        *bytes = text ? fread(text, 1, (size_t)info.st_size, file) : 0;
    }
    if (file) fclose(file);
    return text;
}

PyObject *kernel_text_newlines(PyObject *text) {
    static const char *const ends[] = {"\r\n", "\r"};
    for (int i = 0; text && i < 2; i++) {
        Py_ssize_t length = PyUnicode_GET_LENGTH(text);
        if (PyUnicode_FindChar(text, '\r', 0, length, 1) < 0) break;
        PyObject *from = PyUnicode_FromString(ends[i]), *to = PyUnicode_FromString("\n");
        PyObject *next = from && to ? PyUnicode_Replace(text, from, to, -1) : NULL;
        Py_XDECREF(from);
        Py_XDECREF(to);
        Py_SETREF(text, next);
    }
    return text;
}

static PyObject *text_of_file(PyObject *filename) {
    PyObject *path = PyUnicode_EncodeFSDefault(filename);
    PyObject *text = path ? kernel_text_of_path(PyBytes_AS_STRING(path)) : NULL;
    if (!path) binding_forgive();
    Py_XDECREF(path);
    return text;
}

PyObject *kernel_text_of_path(const char *path) {
    size_t bytes = 0;
    char *content = read_bytes(path, &bytes), *text = content;
    if (!content) return NULL;
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    PyObject *result = NULL;
    if (is_utf8(text, bytes)) {
        result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, NULL);
        if (!result) binding_forgive();
    }
    heap_free(content);
    return kernel_text_newlines(result);
}

static PyObject *text_of_lines(PyObject *lines) {
    if (!PyList_Check(lines) || PyList_GET_SIZE(lines) == 0) return NULL;
    PyObject *empty = PyUnicode_FromString("");
    PyObject *text = empty ? PyUnicode_Join(empty, lines) : NULL;
    Py_XDECREF(empty);
    return kernel_text_newlines(text);
}

/* Of an item of one of linecache's dicts, which another thread may take out meanwhile. */
static PyObject *text_of_entry(PyObject *entry) {
    PyObject *lines = Py_NewRef(PyTuple_GET_ITEM(entry, 2)), *text = text_of_lines(lines);
    Py_DECREF(lines);
    return text;
}

/* linecache.cache[filename], when it holds lines: (size, time, lines, name). */
static PyObject *text_of_cache(PyObject *linecache, PyObject *filename) {
    PyObject *cache = PyObject_GetAttrString(linecache, "cache");
    if (!cache) return NULL;
    PyObject *entry = PyDict_Check(cache) ? PyDict_GetItemWithError(cache, filename) : NULL;
    PyObject *text = NULL;
    if (entry && PyTuple_Check(entry) && PyTuple_GET_SIZE(entry) == 4) text = text_of_entry(entry);
    Py_DECREF(cache);
    return text;
}

/* Is an item of linecache._interactive_cache, whose key is (file, qualified name, first line), that of the
 * code? Without a code: of the file. An exception may be set. */
static bool is_typed_in(PyObject *key, PyObject *filename, PyCodeObject *code) {
    if (!PyTuple_Check(key) || PyTuple_GET_SIZE(key) != 3) return false;
    if (PyObject_RichCompareBool(PyTuple_GET_ITEM(key, 0), filename, Py_EQ) != 1) return false;
    if (!code) return true;
    PyObject *name = PyObject_GetAttrString((PyObject *)code, "co_qualname");
    bool same = name && PyObject_RichCompareBool(PyTuple_GET_ITEM(key, 1), name, Py_EQ) == 1 &&
                PyLong_AsLong(PyTuple_GET_ITEM(key, 2)) == code->co_firstlineno;
    Py_XDECREF(name);
    return same;
}

/* What was typed in, or given with -c: Python 3.13 and later keep its lines. */
static PyObject *text_of_interactive(PyObject *linecache, PyObject *filename, PyCodeObject *code) {
    PyObject *all, *text = NULL;
    PyObject *key, *entry;
    Py_ssize_t at = 0;
    bool goes_on = binding_attribute(linecache, "_interactive_cache", &all) > 0;
    while (goes_on && PyDict_Check(all) && PyDict_Next(all, &at, &key, &entry)) {
        if (is_typed_in(key, filename, code) && PyTuple_Check(entry) &&
            PyTuple_GET_SIZE(entry) == 4)
            Py_XSETREF(text, text_of_entry(entry)); /* the last is the newest */
        goes_on = binding_forgive();
    }
    if (!binding_forgive()) Py_CLEAR(text);
    Py_XDECREF(all);
    return text;
}

/* linecache.getlines(filename, globals) after a look whether the file has changed. */
static PyObject *text_of_linecache(PyObject *filename, PyObject *globals) {
    PyObject *linecache = PyImport_ImportModule("linecache");
    if (!linecache) return NULL;
    PyObject *checked = PyObject_CallMethod(linecache, "checkcache", "O", filename);
    PyObject *lines =
        checked ? PyObject_CallMethod(linecache, "getlines", "OO", filename, globals) : NULL;
    PyObject *text = lines ? text_of_lines(lines) : NULL;
    Py_XDECREF(checked);
    Py_XDECREF(lines);
    Py_DECREF(linecache);
    return text;
}

/* The program that `simt run -c` or `simt run -` runs: simt._run.sources[filename]. */
static PyObject *text_of_run(PyObject *filename) {
    PyObject *name = PyUnicode_FromString("simt._run");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *sources = module ? PyObject_GetAttrString(module, "sources") : NULL;
    PyObject *text =
        sources && PyDict_Check(sources) ? PyDict_GetItemWithError(sources, filename) : NULL;
    Py_XINCREF(text);
    if (text && PyBytes_Check(text)) { /* from the standard input, as it was */
        PyObject *decoder = PyImport_ImportModule("importlib.util");
        Py_SETREF(text, decoder ? PyObject_CallMethod(decoder, "decode_source", "O", text) : NULL);
        Py_XDECREF(decoder);
    }
    if (!text) binding_forgive();
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(sources);
    return kernel_text_newlines(text);
}

PyObject *kernel_text_load(PyObject *filename, PyCodeObject *code, PyObject *globals, int attempt,
                           bool *done) {
    *done = attempt >= 2;
    if (attempt == 0) {
        PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
        PyObject *linecache = PyMapping_GetItemString(modules, "linecache");
        if (!linecache && !binding_forgive()) return NULL;
        PyObject *text = linecache ? text_of_cache(linecache, filename) : NULL;
        if (linecache && !text && !PyErr_Occurred())
            text = text_of_interactive(linecache, filename, code);
        Py_XDECREF(linecache);
        return text || PyErr_Occurred() ? text : text_of_run(filename);
    }
    if (attempt == 1) {
        bool named = PyUnicode_GET_LENGTH(filename) > 0 && PyUnicode_READ_CHAR(filename, 0) != '<';
        return named ? text_of_file(filename) : NULL;
    }
    return text_of_linecache(filename, globals ? globals : Py_None);
}
