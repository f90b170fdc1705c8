/* The functions of intrinsics.def. */
#ifndef SIMT_FRONTEND_PYTHON_INTRINSICS_H
#define SIMT_FRONTEND_PYTHON_INTRINSICS_H

#include "frontend/python/work.h"

typedef enum py_atomic {
    PY_ATOMIC_ADD,
    PY_ATOMIC_SUB,
    PY_ATOMIC_MAX,
    PY_ATOMIC_MIN,
    PY_ATOMIC_NANMAX,
    PY_ATOMIC_NANMIN,
    PY_ATOMIC_AND,
    PY_ATOMIC_OR,
    PY_ATOMIC_XOR,
    PY_ATOMIC_INC,
    PY_ATOMIC_DEC,
    PY_ATOMIC_EXCH
} py_atomic;

enum { PY_NEW_ZEROS, PY_NEW_ONES, PY_NEW_EMPTY, PY_NEW_FULL };
enum { PY_TEST_NAN, PY_TEST_INF, PY_TEST_FINITE };

/* A dtype given to a function. */
bool py_type_argument(py_ctx *c, py_call *x, const py_val *v, py_entity *out);

#define CALL(name, function, extra)  bool function(py_ctx *c, py_call *x, py_val *out);
#define VALUE(name, function, extra) bool function(py_ctx *c, py_call *x, py_val *out);
#include "frontend/python/intrinsics.def"
#undef CALL
#undef VALUE

#endif
