/* Variables that only share a name become different ones (variables.c). */
#ifndef SIMT_FRONTEND_PYTHON_VARIABLES_H
#define SIMT_FRONTEND_PYTHON_VARIABLES_H

#include "frontend/python/ast.h"

/* Numbers the names (`web`) in a function's tree; new nodes lie in `mem`, the tree's own. False: no
 * memory. */
bool py_split_variables(py_node *function, arena *mem);

#endif
