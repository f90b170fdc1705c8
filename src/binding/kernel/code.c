/* The ast node of a code object, in a text.
 *
 * A def: the lines from its first decorator to the next statement that is not further in; parsed and
 * compiled by themselves. A lambda: its line alone, if that is a statement, else the statement around it.
 * Only where this does not give the function, the whole text is parsed. Several lambdas on a line are told
 * apart by compiling each; two that compile to the same are the same.
 */
#include "binding/kernel/code.h"

#include <string.h>

typedef struct finder {
    PyCodeObject *code;
    const char *text; /* of the whole file */
    size_t bytes;
    bool lambda;
    /* Which import statements of the text count: those of functions do not, but lines do not tell whether
     * they are in one; none where a statement was compiled by itself, as IPython does. */
    enum { IMPORTS_ALL, IMPORTS_AT_MARGIN, IMPORTS_NONE } which;
    PyObject *imports,
        *class; /* made when first needed: import_line, mangling_class (None: none) */
} finder;

void kernel_found_done(kernel_found *f) {
    Py_CLEAR(f->node);
    Py_CLEAR(f->owner);
    Py_CLEAR(f->class);
    heap_free(f->text.lines);
    f->text.lines = NULL;
}

/* ---- compiling ---- */

/* A failed compilation means "not this text"; what is no fault of the text stays an exception. */
static bool is_refusal(void) {
    return PyErr_ExceptionMatches(PyExc_SyntaxError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
           PyErr_ExceptionMatches(PyExc_OverflowError) ||
           PyErr_ExceptionMatches(PyExc_RecursionError);
}

/* The list warnings.filters, new reference, or NULL. */
static PyObject *warning_filters(void) {
    PyObject *name = PyUnicode_FromString("warnings");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    if (!module) module = PyImport_ImportModule("_warnings"); /* warnings has not been imported */
    PyObject *filters = module ? PyObject_GetAttrString(module, "filters") : NULL;
    Py_XDECREF(name);
    Py_XDECREF(module);
    return filters;
}

/* A module as an ast object or as code; 1, 0 (refused) or -1. Python has given its warnings about this
 * text already: they are ignored. */
static int compile_text(const finder *f, const char *text, bool tree, PyObject **out) {
    PyCompilerFlags flags = {.cf_flags = (f->code->co_flags & PyCF_MASK) | PyCF_SOURCE_IS_UTF8 |
                                         PyCF_IGNORE_COOKIE | (tree ? PyCF_ONLY_AST : 0),
                             .cf_feature_version = PY_MINOR_VERSION};
    PyObject *filters = warning_filters();
    PyObject *ignore = Py_BuildValue("(sOOOi)", "ignore", Py_None, PyExc_Warning, Py_None, 0);
    bool quiet = filters && ignore && PyList_Check(filters) && !PyList_Insert(filters, 0, ignore);
    *out = NULL;
    if (binding_forgive())
        *out = Py_CompileStringObject(text, f->code->co_filename, Py_file_input, &flags, -1);
    if (quiet && PyList_GET_SIZE(filters) && PyList_GET_ITEM(filters, 0) == ignore &&
        PyList_SetSlice(filters, 0, 1, NULL) < 0)
        Py_CLEAR(*out);
    Py_XDECREF(filters);
    Py_XDECREF(ignore);
    if (*out) return 1;
    return is_refusal() && binding_forgive() ? 0 : -1;
}

static bool is_ours(const finder *f, PyCodeObject *code, int line) {
    return code->co_firstlineno == line &&
           (kernel_code_equal(code, f->code) || kernel_code_rewritten(code, f->code));
}

/* A code object within `outer` that begins at `line` does the same as ours. */
static bool has_code(const finder *f, PyCodeObject *outer, int line) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outer->co_consts); i++) {
        PyObject *item = PyTuple_GET_ITEM(outer->co_consts, i);
        if (!PyCode_Check(item)) continue;
        PyCodeObject *inner = (PyCodeObject *)item;
        if (is_ours(f, inner, line) || has_code(f, inner, line)) return true;
    }
    return false;
}

/* The same of the lambda that `outer`, or what it holds, makes last: those of its defaults come before. */
static bool has_lambda(const finder *f, PyCodeObject *outer, int line) {
    PyCodeObject *last = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outer->co_consts); i++) {
        PyObject *item = PyTuple_GET_ITEM(outer->co_consts, i);
        if (PyCode_Check(item)) last = (PyCodeObject *)item;
    }
    if (!last) return false;
    bool lambda = PyUnicode_Compare(last->co_name, f->code->co_name) == 0;
    return lambda ? is_ours(f, last, line) : has_lambda(f, last, line);
}

/* 1, 0 or -1 (an exception). */
static int compiles_to_code(const finder *f, const char *text, int line) {
    PyObject *module;
    int status = compile_text(f, text, false, &module);
    if (status <= 0) return status;
    PyCodeObject *code = (PyCodeObject *)module;
    status = f->lambda ? has_lambda(f, code, line) : has_code(f, code, line);
    Py_DECREF(module);
    return PyErr_Occurred() ? -1 : status;
}

/* ---- the text ---- */

/* Lines of f->text into `t`; t->text is the text that is parsed. */
static bool split_lines(kernel_text *t) {
    int n = 1;
    for (const char *p = t->text; (p = memchr(p, '\n', (size_t)(t->text + t->bytes - p))); p++) n++;
    t->lines = binding_alloc((size_t)n, sizeof *t->lines);
    if (!t->lines) return false;
    t->lines[0] = t->text;
    t->nlines = 1;
    for (const char *p = t->text; (p = memchr(p, '\n', (size_t)(t->text + t->bytes - p)));)
        t->lines[t->nlines++] = ++p;
    return true;
}

/* ---- what stands around a function ---- */

/* Adds the words of an import statement that may be names to a set. */
static bool add_words(const char *line, const char *end, PyObject *set) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    while (line < end) {
        size_t length = strspn(line, letters);
        if (length && (line[0] < '0' || line[0] > '9')) {
            PyObject *word = PyUnicode_FromStringAndSize(line, (Py_ssize_t)length);
            bool done = word && PySet_Add(set, word) == 0;
            Py_XDECREF(word);
            if (!done) return false;
        }
        line += length + (length == 0);
    }
    return true;
}

/* The names that the file's import statements may give: line by line, in and out of blocks. */
static PyObject *imported_words(const finder *f) {
    const char *end = f->text + f->bytes;
    PyObject *set = PySet_New(NULL);
    bool open = false; /* within the parentheses of `from x import (` */
    for (const char *p = f->text; set && p < end; p = kernel_next_line(p, end)) {
        const char *word = p + kernel_indentation(p), *stop = kernel_next_line(p, end);
        bool import = strncmp(word, "import ", 7) == 0 || strncmp(word, "from ", 5) == 0;
        if (import && word > p && f->which == IMPORTS_AT_MARGIN) continue;
        if (!import && !open) continue;
        if (!add_words(word, stop, set)) Py_CLEAR(set);
        if (import) open = memchr(word, '(', (size_t)(stop - word));
        if (memchr(word, ')', (size_t)(stop - word))) open = false;
    }
    return set;
}

static bool add_common(PyObject *names, PyObject *words, PyObject *out) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int is = PySet_Contains(words, name);
        if (is < 0 || (is && PyList_Append(out, name) < 0)) return false;
    }
    return true;
}

/* Names of the code and of functions within that the file imports: "math,cuda", appended to `out`. Names
 * of variables count too: CPython looks no closer. */
static bool add_imported(PyCodeObject *code, PyObject *words, PyObject *out) {
    PyObject *locals = PyCode_GetVarnames(code), *free = PyCode_GetFreevars(code);
    bool done = locals && free && add_common(code->co_names, words, out) &&
                add_common(locals, words, out) && add_common(free, words, out);
    Py_XDECREF(locals);
    Py_XDECREF(free);
    for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(code->co_consts); i++) {
        PyObject *inner = PyTuple_GET_ITEM(code->co_consts, i);
        done = !PyCode_Check(inner) || add_imported((PyCodeObject *)inner, words, out);
    }
    return done;
}

static PyObject *join(const char *head, PyObject *names, const char *tail) {
    PyObject *comma = PyUnicode_FromString(",");
    PyObject *joined = names && comma ? PyUnicode_Join(comma, names) : NULL;
    PyObject *text = joined ? PyUnicode_FromFormat("%s%U%s", head, joined, tail) : NULL;
    Py_XDECREF(comma);
    Py_XDECREF(joined);
    return text;
}

/* A first line that imports what the function uses of the file's imports: CPython compiles a call of an
 * imported module's function in another way than a method call. */
static PyObject *import_line(finder *f) {
    if (f->which == IMPORTS_NONE) return PyUnicode_FromString("\n");
    if (f->imports) return Py_NewRef(f->imports);
    PyObject *words = imported_words(f), *names = words ? PyList_New(0) : NULL;
    if (names && add_imported(f->code, words, names))
        f->imports =
            PyList_GET_SIZE(names) ? join("import ", names, "\n") : PyUnicode_FromString("\n");
    Py_XDECREF(words);
    Py_XDECREF(names);
    return Py_XNewRef(f->imports);
}

static bool any_begins(PyObject *names, PyObject *start) {
    bool any = false;
    for (Py_ssize_t i = 0; names && !any && i < PyTuple_GET_SIZE(names); i++)
        any = PyUnicode_Tailmatch(PyTuple_GET_ITEM(names, i), start, 0, PY_SSIZE_T_MAX, -1) == 1;
    return any;
}

/* Do names of the code begin with "_Class__", as Python makes it of "__"? */
static bool has_private_names(PyCodeObject *code, const char *class) {
    while (*class == '_') class ++;
    PyObject *start = *class ? PyUnicode_FromFormat("_%s__", class) : NULL;
    PyObject *locals = PyCode_GetVarnames(code), *free = PyCode_GetFreevars(code);
    bool any = start && (any_begins(code->co_names, start) || any_begins(locals, start) ||
                         any_begins(free, start));
    Py_XDECREF(start);
    Py_XDECREF(locals);
    Py_XDECREF(free);
    return any;
}

/* The class in which the function stands, when its private names matter; None; NULL: an exception. */
static PyObject *mangling_class(const finder *f) {
    PyObject *full = PyObject_GetAttrString((PyObject *)f->code, "co_qualname");
    PyObject *dot = full ? PyUnicode_FromString(".") : NULL;
    PyObject *parts = dot ? PyUnicode_Split(full, dot, -1) : NULL, *class = NULL;
    for (Py_ssize_t i = parts ? PyList_GET_SIZE(parts) - 2 : -1; i >= 0 && !class; i -= 2) {
        PyObject *part = PyList_GET_ITEM(parts, i); /* "<locals>" comes behind a function's name */
        if (PyUnicode_CompareWithASCIIString(part, "<locals>") != 0) class = part;
    }
    const char *text = class ? PyUnicode_AsUTF8(class) : NULL;
    if (parts && !(text && has_private_names(f->code, text))) class = Py_None;
    Py_XINCREF(class);
    Py_XDECREF(full);
    Py_XDECREF(dot);
    Py_XDECREF(parts);
    if (PyErr_Occurred()) Py_CLEAR(class);
    return class;
}

/* The imports; then, when `nested`, "def _(x, y):\n" with the free variables of the code, so that they
 * are such in what is put inside, or "if 1:\n", so that the function's own name is global; the class, if it
 * matters. What follows is indented by two or, when it was in no function, one. */
static PyObject *preamble(finder *f, bool nested) {
    if (!f->class && !(f->class = mangling_class(f))) return NULL;
    PyObject *text = import_line(f), *names = PyCode_GetFreevars(f->code);
    bool closure = names && PyTuple_GET_SIZE(names) > 0, in_class = f->class != Py_None;
    bool in_def = nested && (closure || !in_class);
    if (text && names && in_def) {
        PyObject *head = closure ? join("def _(", names, "):\n") : PyUnicode_FromString("if 1:\n");
        Py_SETREF(text, head ? PyUnicode_Concat(text, head) : NULL);
        Py_XDECREF(head);
    }
    if (text && in_class)
        Py_SETREF(text, PyUnicode_FromFormat("%U%sclass %U:\n", text, in_def ? " " : "", f->class));
    Py_XDECREF(names);
    return text;
}

/* ---- nodes ---- */

/* -1: it has none, or an exception is set. */
static long number_attribute(PyObject *o, const char *name) {
    PyObject *value;
    long number = binding_attribute(o, name, &value) > 0 ? PyLong_AsLong(value) : -1;
    binding_forgive();
    Py_XDECREF(value);
    return number;
}

/* The line where a node begins for Python: decorators count. As number_attribute. */
static long first_line(PyObject *node) {
    long line = number_attribute(node, "lineno");
    PyObject *list = NULL;
    if (!PyErr_Occurred()) binding_attribute(node, "decorator_list", &list);
    if (list && PyList_Check(list) && PyList_GET_SIZE(list))
        line = number_attribute(PyList_GET_ITEM(list, 0), "lineno");
    Py_XDECREF(list);
    return line;
}

static bool is_class(PyObject *o, const char *name) {
    const char *dot = strrchr(Py_TYPE(o)->tp_name, '.');
    return strcmp(dot ? dot + 1 : Py_TYPE(o)->tp_name, name) == 0;
}

static bool is_wanted(const finder *f, PyObject *node) {
    if (f->lambda) return is_class(node, "Lambda");
    if (!is_class(node, "FunctionDef")) return false;
    PyObject *name = PyObject_GetAttrString(node, "name");
    bool same = name && PyUnicode_Check(name) && PyUnicode_Compare(name, f->code->co_name) == 0;
    Py_XDECREF(name);
    return same;
}

static bool collect(const finder *f, PyObject *node, long line, PyObject *list);

static bool collect_field(const finder *f, PyObject *value, long line, PyObject *list) {
    if (!PyList_Check(value)) return collect(f, value, line, list);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
        if (!collect(f, PyList_GET_ITEM(value, i), line, list)) return false;
    return true;
}

/* Appends the functions that begin at `line`, in the order of the text. */
static bool collect(const finder *f, PyObject *node, long line, PyObject *list) {
    PyObject *fields;
    if (binding_attribute(node, "_fields", &fields) < 0) return false;
    if (!fields || !PyTuple_Check(fields)) { /* a string, a number, None */
        Py_XDECREF(fields);
        return true;
    }
    long begin = first_line(node),
         end = PyErr_Occurred() ? -1 : number_attribute(node, "end_lineno");
    bool done = !PyErr_Occurred();
    if (!done) {
    } else if (begin < 0 || end < 0 || (begin <= line && line <= end)) {
        if (begin == line && is_wanted(f, node)) done = PyList_Append(list, node) == 0;
        if (done && Py_EnterRecursiveCall(" while looking for a kernel's source")) done = false;
        for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(fields); i++) {
            PyObject *value = PyObject_GetAttr(node, PyTuple_GET_ITEM(fields, i));
            done = value ? collect_field(f, value, line, list) : binding_forgive();
            Py_XDECREF(value);
        }
        if (done) Py_LeaveRecursiveCall();
    }
    Py_DECREF(fields);
    return done;
}

/* ---- one parsed text ---- */

static int count_lines(PyObject *text) {
    PyObject *line = PyUnicode_FromString("\n");
    Py_ssize_t n = line ? PyUnicode_Count(text, line, 0, PY_SSIZE_T_MAX) : 0;
    Py_XDECREF(line);
    return (int)n;
}

/* Does this lambda, compiled by itself, do what ours does? */
static int is_our_lambda(finder *f, PyObject *node, const kernel_text *t) {
    long line = number_attribute(node, "lineno"), last = number_attribute(node, "end_lineno");
    if (line < 1 || last > t->nlines || PyErr_Occurred()) return PyErr_Occurred() ? -1 : 0;
    const char *begin = t->lines[line - 1] + number_attribute(node, "col_offset");
    const char *end = t->lines[last - 1] + number_attribute(node, "end_col_offset");
    if (end < begin || end > t->text + t->bytes) return 0;
    PyObject *head = preamble(f, true);
    PyObject *body = PyUnicode_DecodeUTF8(begin, end - begin, "replace");
    PyObject *text = head && body ? PyUnicode_FromFormat("%U  _ = (%U\n)\n", head, body) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    int status = utf8 ? compiles_to_code(f, utf8, count_lines(head) + 1) : -1;
    Py_XDECREF(head);
    Py_XDECREF(body);
    Py_XDECREF(text);
    return status;
}

/* The function at `line` of the parsed text into out->node; out->text is set and split. */
static int find_node(finder *f, long line, kernel_found *out) {
    PyObject *module;
    int status = compile_text(f, out->text.text, true, &module);
    if (status <= 0) return status;
    PyObject *list = PyList_New(0);
    status = list && collect(f, module, line, list) ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(list); i++) {
        PyObject *node = PyList_GET_ITEM(list, i);
        status = f->lambda ? is_our_lambda(f, node, &out->text)
                           : compiles_to_code(f, out->text.text, (int)line);
        if (status == 1) {
            out->node = Py_NewRef(node);
            out->class = Py_XNewRef(f->class);
        }
    }
    Py_XDECREF(list);
    Py_DECREF(module);
    return status;
}

/* Takes `text` (str or NULL). The text's line 1 is line 1 + shift of the file. */
static int find_in(finder *f, PyObject *text, int shift, kernel_found *out) {
    memset(out, 0, sizeof *out);
    out->owner = text;
    Py_ssize_t bytes = 0;
    out->text.text = text ? PyUnicode_AsUTF8AndSize(text, &bytes) : NULL;
    out->text.bytes = (size_t)bytes;
    out->text.shift = shift;
    int status = out->text.text && split_lines(&out->text) ? 0 : -1;
    if (status == 0) status = find_node(f, f->code->co_firstlineno - shift, out);
    if (status <= 0) kernel_found_done(out);
    return status;
}

/* A piece of the file, which begins with its line `first`, between other lines; `before` and `after` are
 * indented as the piece is. */
static int find_in_piece(finder *f, const char *begin, const char *stop, int first,
                         const char *before, const char *after, kernel_found *out) {
    PyObject *piece = PyUnicode_DecodeUTF8(begin, stop - begin, NULL);
    PyObject *indent = PyUnicode_DecodeUTF8(begin, (Py_ssize_t)kernel_indentation(begin), NULL);
    PyObject *head = piece && indent ? preamble(f, kernel_column(begin) > 0) : NULL;
    PyObject *text = NULL;
    if (head && *before) Py_SETREF(head, PyUnicode_FromFormat("%U%U%s", head, indent, before));
    if (head && *after)
        text = PyUnicode_FromFormat("%U%U\n%U%s", head, piece, indent, after);
    else if (head)
        text = PyUnicode_Concat(head, piece);
    int shift = head ? first - 1 - count_lines(head) : 0;
    Py_XDECREF(piece);
    Py_XDECREF(indent);
    Py_XDECREF(head);
    return find_in(f, text, shift, out);
}

/* The statement around a lambda. A part of a longer one (a header, an elif) is made whole. */
static int find_in_statement(finder *f, kernel_found *out) {
    static const struct {
        const char *word, *before, *after;
    } wholes[] = {
        {"", "", ""},
        {"", "", " pass\n"},
        {"@", "", "def _(): pass\n"},
        {"elif", "if 0: pass\n", " pass\n"},
        {"elif", "if 0: pass\n", ""},
        {"else", "if 0: pass\n", ""},
        {"except", "try: pass\n", " pass\n"},
        {"except", "try: pass\n", ""},
        {"finally", "try: pass\n", ""},
        {"match", "", " case _: pass\n"},
    };
    const char *end = f->text + f->bytes;
    int first, status = 0;
    const char *begin = kernel_statement_of(f->text, end, f->code->co_firstlineno, &first);
    if (!begin) return 0;
    const char *stop = kernel_statement_end(begin, end), *word = begin + kernel_indentation(begin);
    for (size_t i = 0; status == 0 && i < sizeof wholes / sizeof *wholes; i++)
        if (strncmp(word, wholes[i].word, strlen(wholes[i].word)) == 0)
            status = find_in_piece(f, begin, stop, first, wholes[i].before, wholes[i].after, out);
    return status;
}

static int find_in_part(finder *f, kernel_found *out) {
    const char *begin = f->text, *end = f->text + f->bytes;
    int first = f->code->co_firstlineno;
    for (int line = 1; line < first && begin < end; line++) begin = kernel_next_line(begin, end);
    if (begin == end) return 0;
    const char *stop = f->lambda ? kernel_next_line(begin, end) : kernel_def_end(begin, end);
    int status = stop ? find_in_piece(f, begin, stop, first, "", "", out) : 0;
    return status == 0 && f->lambda ? find_in_statement(f, out) : status;
}

int kernel_code_find(PyObject *text, PyCodeObject *code, kernel_found *out) {
    Py_ssize_t bytes;
    finder f = {.code = code,
                .lambda = PyUnicode_CompareWithASCIIString(code->co_name, "<lambda>") == 0};
    f.text = PyUnicode_AsUTF8AndSize(text, &bytes);
    if (!f.text) return binding_forgive() ? 0 : -1; /* lone surrogates */
    f.bytes = (size_t)bytes;
    if (code->co_firstlineno < 1) return 0;
    int status = 0;
    for (f.which = IMPORTS_ALL; status == 0 && f.which <= IMPORTS_NONE; f.which++) {
        Py_CLEAR(f.imports);
        status = find_in_part(&f, out);
    }
    if (status == 0) status = find_in(&f, Py_NewRef(text), 0, out);
    Py_XDECREF(f.imports);
    Py_XDECREF(f.class);
    return status;
}
