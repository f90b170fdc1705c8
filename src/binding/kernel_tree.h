/* Inside the kernel files of the binding: CPython's ast objects -> the tree of
 * frontend/python/ast.h. */
#ifndef SIMT_BINDING_KERNEL_TREE_H
#define SIMT_BINDING_KERNEL_TREE_H

#include "base/strbuf.h"
#include "binding/kernel.h"

/* The text that was parsed (UTF-8, lines end in \n), and where its first line stands in the
 * user's file. */
typedef struct kernel_text {
    const char *text;
    size_t bytes;
    const char **lines; /* where each begins */
    int nlines;
    int shift; /* line of the file = line of the text + shift */
} kernel_text;

/* A py_function (first, so that a `const py_function *` is a pointer to this) and what it owns.
 * It lives as long as its function object. */
typedef struct kernel_function {
    py_function pub;
    arena mem;
    PyObject *kept; /* dict or NULL: objects that entities borrow (kernel_host.c) */
} kernel_function;

/* kernel_host.c: what a Python object means in a kernel. `name` is for errors ("x"). Objects that
 * the entity borrows are kept by `owner`. False: a Python exception is set. */
bool kernel_to_entity(PyObject *o, const char *name, kernel_function *owner, py_entity *out);

/* kernel_text.c: the text of a source file (str, lines end in \n) by way `attempt` (0, 1, ...):
 * what linecache holds, the file itself, linecache asked to look again. *done: there are no more
 * ways. NULL without an exception: not to be had that way. */
PyObject *kernel_text_load(PyObject *filename, PyObject *globals, int attempt, bool *done);

/* A copy of an ast object in the arena. NULL: a Python exception is set. */
py_node *kernel_tree_copy(PyObject *ast_node, const kernel_text *text, arena *mem);
/* A Python object as a constant; OTHER for what is none. False: out of memory, exception set.
 * Strings are copied into the arena. */
bool kernel_to_constant(PyObject *o, arena *mem, py_constant *out);
/* One line: (Class@line:column-line:column op name value a b c [list] ...). */
void kernel_tree_print(const py_node *node, strbuf *out);
void kernel_constant_print(const py_constant *c, strbuf *out);

#endif
