/* Python source as a tree in an arena: what the front end compiles. Made by the binding from CPython's
 * ast objects with the table ast.def (one row per class); this folder knows no Python.h.
 *
 * Positions are those of the user's file (line from 1, column from 1, in characters).
 */
#ifndef SIMT_FRONTEND_PYTHON_AST_H
#define SIMT_FRONTEND_PYTHON_AST_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum py_kind {
#define NODE(id, cls, a, b, c, list, list2, list3, name) PY_##id,
#include "frontend/python/ast.def"
#undef NODE
    PY_UNSUPPORTED,
    PY_KIND_COUNT
} py_kind;

/* Operators of every class in one enum, in ast's spelling (table: py_operator_class). */
typedef enum py_operator {
    PY_OP_NONE,
    /* BinOp, AugAssign */
    PY_ADD,
    PY_SUB,
    PY_MULT,
    PY_MATMULT,
    PY_DIV,
    PY_MOD,
    PY_POW,
    PY_LSHIFT,
    PY_RSHIFT,
    PY_BITOR,
    PY_BITXOR,
    PY_BITAND,
    PY_FLOORDIV,
    /* UnaryOp */
    PY_INVERT,
    PY_NOT,
    PY_UADD,
    PY_USUB,
    /* BoolOp */
    PY_AND,
    PY_OR,
    /* Compare */
    PY_EQ,
    PY_NOTEQ,
    PY_LT,
    PY_LTE,
    PY_GT,
    PY_GTE,
    PY_IS,
    PY_ISNOT,
    PY_IN,
    PY_NOTIN,
    PY_OPERATOR_COUNT
} py_operator;

typedef enum py_value_kind {
    PY_VALUE_NONE,
    PY_VALUE_BOOL,
    PY_VALUE_INT,     /* fits int64 */
    PY_VALUE_UINT,    /* fits uint64 only */
    PY_VALUE_BIG_INT, /* fits neither */
    PY_VALUE_FLOAT,
    PY_VALUE_COMPLEX,
    PY_VALUE_STRING,
    PY_VALUE_BYTES,
    PY_VALUE_ELLIPSIS,
    PY_VALUE_OTHER
} py_value_kind;

/* A constant of the source, or of a global or closure variable. */
typedef struct py_constant {
    py_value_kind kind;
    uint32_t bytes; /* of text */
    union {
        bool boolean;
        int64_t integer;
        uint64_t unsigned_integer;
        double real;      /* of FLOAT and COMPLEX */
        const char *text; /* STRING: UTF-8; BYTES; a 0 follows */
    };
    double imaginary;
} py_constant;

typedef struct py_node py_node;
typedef struct py_list {
    py_node **items;
    uint32_t count;
} py_list;

struct py_node {
    uint8_t kind; /* py_kind */
    uint8_t op;   /* py_operator */
    uint32_t line, column, end_line, end_column;
    py_node *a, *b, *c; /* as ast.def says; NULL: None */
    py_list list, list2, list3;
    const char *name;
    const uint8_t *ops; /* Compare: one py_operator per comparator */
    py_constant value;  /* Constant */
};

typedef struct py_kind_info {
    const char *cls, *a, *b, *c, *list, *list2, *list3, *name;
} py_kind_info;
extern const py_kind_info py_kind_table[PY_KIND_COUNT];
extern const char *const py_operator_class[PY_OPERATOR_COUNT]; /* "Add", "Lt", ... */
const char *py_operator_text(py_operator op);                  /* "+", "<", "not in", ... */

#endif
