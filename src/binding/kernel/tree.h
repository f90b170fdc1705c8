/* Inside the kernel files of the binding: CPython's ast objects -> the tree of
 * frontend/python/ast.h. */
#ifndef SIMT_BINDING_KERNEL_TREE_H
#define SIMT_BINDING_KERNEL_TREE_H

#include "base/strbuf.h"
#include "binding/kernel/kernel.h"

/* The text that was parsed (UTF-8, lines end in \n), and where its first line stands in the
 * user's file. */
typedef struct kernel_text {
    const char *text;
    size_t bytes;
    const char **lines; /* where each begins */
    int nlines;
    int shift; /* line of the file = line of the text + shift */
} kernel_text;

/* kernel/source.c: what is kept of a function with its code object. */
typedef struct kernel_source {
    arena mem;
    py_node *tree;
    const char *file, *name;
} kernel_source;

/* Of a Python function (def or lambda), made once and kept as long as its code object. NULL: a Python
 * exception is set: no source (says what to do), or the source at hand is not what was compiled (edited
 * file, wrong lambda). */
const kernel_source *kernel_source_get(PyObject *function);

/* Of a function that stands in no file: looks for its source now, while who made it holds the text. False: an
 * exception that is none of Python's usual ones (Ctrl-C) is set. */
bool kernel_source_hold(PyObject *function);

/* kernel/host.c: the host of one compilation. What it answers lives until deinit. */
typedef struct kernel_function kernel_function;
typedef struct kernel_host {
    py_host pub; /* its context is this */
    arena mem;
    PyObject *kept; /* dict: the objects that answers borrow */
    kernel_function *functions;
} kernel_host;
void kernel_host_init(kernel_host *h); /* h must not move */
void kernel_host_deinit(kernel_host *h);
/* Of a Python function or its dispatcher: the same pointer for the same one, which the host keeps; NULL: a
 * Python exception is set. `defaults` has an entry per positional, then per keyword-only parameter. */
const py_function *kernel_host_function(kernel_host *h, PyObject *of);

/* kernel/text.c: the text of a source file (str, lines end in \n) by way `attempt` (0, 1, ...):
 * what linecache holds, the file itself, linecache asked to look again. code: which of the texts typed in
 * under that name, or NULL. *done: there are no more ways. NULL without an exception: not to be had that
 * way. */
PyObject *kernel_text_load(PyObject *filename, PyCodeObject *code, PyObject *globals, int attempt,
                           bool *done);

/* \r\n and \r become \n, as for Python's own parser. Takes the text (or NULL); new reference or NULL. */
PyObject *kernel_text_newlines(PyObject *text);
/* A regular file of UTF-8; NULL, perhaps without an exception. */
PyObject *kernel_text_of_path(const char *path);

/* kernel/held.c: texts that the program has at hand and that may be the code's; each is tried until `try`
 * gives another answer than 0, which is the result. 1: right; -1: an exception is set. */
typedef int (*kernel_text_try)(PyObject *text, PyCodeObject *code, void *context);
int kernel_text_held(PyCodeObject *code, PyObject *globals, kernel_text_try try, void *context);
/* Of texts that were right the one that has the code, new reference; NULL: none (or an exception). */
PyObject *kernel_text_remembered(PyCodeObject *code);
void kernel_text_remember(PyObject *text);

/* A copy of an ast object in the arena. class: the class around it, without leading underscores, when its
 * private names ("__x") are to be written out; else NULL. NULL: a Python exception is set. */
py_node *kernel_tree_copy(PyObject *ast_node, const kernel_text *text, const char *class,
                          arena *mem);
/* A Python object as a constant; OTHER for what is none. False: out of memory, exception set.
 * Strings are copied into the arena. */
bool kernel_to_constant(PyObject *o, arena *mem, py_constant *out);
/* One line: (Class@line:column-line:column op name value a b c [list] ...). */
void kernel_tree_print(const py_node *node, strbuf *out);
void kernel_constant_print(const py_constant *c, strbuf *out);

#endif
