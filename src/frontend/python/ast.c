/* The tables of the tree. */
#include "frontend/python/ast.h"

const py_kind_info py_kind_table[PY_KIND_COUNT] = {
#define NODE(id, cls, a, b, c, list, list2, list3, name) \
    [PY_##id] = {cls, a, b, c, list, list2, list3, name},
#include "frontend/python/ast.def"
#undef NODE
    [PY_UNSUPPORTED] = {"", "", "", "", "", "", "", ""},
};

const char *const py_operator_class[PY_OPERATOR_COUNT] = {
    "",      "Add",    "Sub",    "Mult",     "MatMult", "Div", "Mod",  "Pow",   "LShift", "RShift",
    "BitOr", "BitXor", "BitAnd", "FloorDiv", "Invert",  "Not", "UAdd", "USub",  "And",    "Or",
    "Eq",    "NotEq",  "Lt",     "LtE",      "Gt",      "GtE", "Is",   "IsNot", "In",     "NotIn",
};

const char *py_operator_text(py_operator op) {
    static const char *const text[PY_OPERATOR_COUNT] = {
        "",   "+",  "-", "*",  "@", "/",   "%",  "**",     "<<",  ">>",
        "|",  "^",  "&", "//", "~", "not", "+",  "-",      "and", "or",
        "==", "!=", "<", "<=", ">", ">=",  "is", "is not", "in",  "not in",
    };
    return op < PY_OPERATOR_COUNT ? text[op] : "";
}
