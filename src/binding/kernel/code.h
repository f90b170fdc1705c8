/* Inside the kernel files of the binding: the ast node of a code object, in a text. */
#ifndef SIMT_BINDING_KERNEL_CODE_H
#define SIMT_BINDING_KERNEL_CODE_H

#include "binding/kernel/tree.h"

typedef struct kernel_found {
    PyObject *node; /* a FunctionDef or Lambda of _ast */
    kernel_text text;
    PyObject *owner; /* of the text */
    PyObject *class; /* the name of the class around it, when private names matter; else None */
} kernel_found;

/* 1: found, and it compiles to what `code` is; 0: it is not in this text; -1: exception. */
int kernel_code_find(PyObject *text, PyCodeObject *code, kernel_found *out);
void kernel_found_done(kernel_found *f);

/* kernel/lines.c: where statements begin and end. `end` is the text's, where a 0 stands. */
const char *kernel_next_line(const char *p, const char *end);
size_t kernel_indentation(const char *line); /* characters of white space */
size_t kernel_column(const char *line);      /* how far in that is: a form feed begins anew */
/* Behind the last line of the statement that begins at p, without the block that may follow a colon. */
const char *kernel_statement_end(const char *p, const char *end);
/* Behind the last line of the function whose first decorator or def begins at `begin`; NULL: there is none. */
const char *kernel_def_end(const char *begin, const char *end);
/* The statement that the line lies in, and its first line; NULL: the text has no such line. */
const char *kernel_statement_of(const char *text, const char *end, int line, int *first);

/* kernel/compare.c: do two code objects do the same? Names, constants and instructions are
 * compared, not positions and file names. */
bool kernel_code_equal(PyCodeObject *a, PyCodeObject *b);
/* `changed` may be `plain` after pytest's rewriting of assert statements: same parameters, names
 * and constants (a weaker test, for kernels with assert in test modules). */
bool kernel_code_rewritten(PyCodeObject *plain, PyCodeObject *changed);

#endif
