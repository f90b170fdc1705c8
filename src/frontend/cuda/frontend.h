/* The front end for CUDA C: a text -> its functions, and a kernel of them -> kernel/kernel.h. Read this first.
 *
 * A unit is a text read once: preprocessed, parsed, its types checked. Kernels are made from it one by one. It is
 * not changed by that but for marks that the making leaves, so only one thread may use a unit at a time.
 *
 * Errors: SIMT_ERR_CUDA_C with file, line and column of the text. Nothing here blocks, prints or knows Python.
 *
 *   lex.c        characters -> tokens        tree.h       what the parser makes
 *   preprocess.c #define, #include           lower.c      functions, statements -> IR
 *   condition.c  what stands behind #if      place.c      where values lie: variables, memory, pointers
 *   types.c      types                       value.c      expressions
 *   scope.c      names                       intrinsic.c  calls of what the language brings along
 *   specifier.c  types in declarations       builtins.def its names
 *   record.c     structs, initial values
 *   declare.c    variables, functions
 *   statement.c  statements
 *   expression.c expressions
 *   convert.c    conversions, constants
 */
#ifndef SIMT_FRONTEND_CUDA_FRONTEND_H
#define SIMT_FRONTEND_CUDA_FRONTEND_H

#include "kernel/kernel.h"

typedef struct cuda_unit cuda_unit;

/* -D: "name", or "name=text". */
typedef struct cuda_options {
    const char *const *defines;
    uint32_t ndefines;
} cuda_options;

simt_status cuda_unit_new(const char *file, const char *text, size_t bytes,
                          const cuda_options *options, cuda_unit **out);
void cuda_unit_free(cuda_unit *u);

/* A parameter of a kernel, for who converts the arguments of a launch. */
typedef struct cuda_parameter {
    const char *name; /* "" where it has none */
    const char *type; /* as C writes it */
    bool pointer;     /* to elements of type dt */
    bool constant;    /* POINTER: the kernel does not write there */
    dtype dt; /* DT_COUNT: of a pointer, no number (void, a struct); of a value: refused before */
} cuda_parameter;

/* Of the __global__ function of that name; its slots in a launch are:
 *   pointer      address, bytes that may be touched from there on
 *   value        its bits
 * then those that the kernel's parameters name as of no argument. SIMT_ERR_CUDA_C: none of that name. */
simt_status cuda_unit_kernel(cuda_unit *u, const char *name, kernel **out,
                             const cuda_parameter **parameters, uint32_t *nparameters,
                             const char **own_name); /* these three live as long as the unit */
/* The kernels' names in the order of the text; NULL behind the last. */
const char *cuda_unit_name(const cuda_unit *u, uint32_t number);

#endif
