/* CPython's ast objects -> the front end's tree: a generic copy by the rows of ast.def, and its
 * printed form for the tests.
 *
 * In: an object of one of `_ast`'s classes and the text it was parsed from. Out: nodes in an arena,
 * with lines of the user's file and columns in characters, both from 1 (ast has columns in UTF-8
 * bytes from 0); an end column is one past the last character.
 */
#include "binding/kernel/tree.h"

#include <string.h>

#define MAX_DEPTH 600 /* of nested nodes: the front end recurses too */

enum { SLOTS = 7, OPERATOR_BASE = PY_KIND_COUNT };

/* Made at the first kernel: class object -> kind, or OPERATOR_BASE + operator; the attributes'
 * names. */
static PyObject *class_map;
static PyObject *slot_names[PY_KIND_COUNT][SLOTS];
static PyObject *position_names[4], *op_name, *ops_name, *value_name;

typedef struct copier {
    const kernel_text *text;
    const char *class; /* whose private names these are, or NULL */
    arena *mem;
    int depth;
    bool ascii; /* the text has one byte a character */
} copier;

static bool add_class(PyObject *module, const char *name, long number) {
    PyObject *cls = PyObject_GetAttrString(module, name);
    PyObject *value = cls ? PyLong_FromLong(number) : NULL;
    bool done = value && PyDict_SetItem(class_map, cls, value) == 0;
    Py_XDECREF(value);
    Py_XDECREF(cls);
    return done;
}

/* A name, made once: filling may have failed before. */
static bool interned(PyObject **name, const char *text) {
    return *name || (*name = PyUnicode_InternFromString(text));
}

static bool fill_tables(PyObject *module) {
    for (int kind = 0; kind < PY_UNSUPPORTED; kind++) {
        const py_kind_info *row = &py_kind_table[kind];
        const char *names[SLOTS] = {row->a,     row->b,     row->c,   row->list,
                                    row->list2, row->list3, row->name};
        for (int s = 0; s < SLOTS; s++)
            if (names[s][0] && !interned(&slot_names[kind][s], names[s])) return false;
        if (!add_class(module, row->cls, kind)) return false;
    }
    for (int op = 1; op < PY_OPERATOR_COUNT; op++)
        if (!add_class(module, py_operator_class[op], OPERATOR_BASE + op)) return false;
    static const char *const positions[] = {"lineno", "col_offset", "end_lineno", "end_col_offset"};
    for (int i = 0; i < 4; i++)
        if (!interned(&position_names[i], positions[i])) return false;
    return interned(&op_name, "op") && interned(&ops_name, "ops") && interned(&value_name, "value");
}

static bool prepare(void) {
    if (class_map) return true;
    PyObject *module = PyImport_ImportModule("_ast");
    class_map = module ? PyDict_New() : NULL;
    if (class_map && !fill_tables(module)) Py_CLEAR(class_map);
    Py_XDECREF(module);
    return class_map != NULL;
}

/* The kind or operator of an ast object; PY_UNSUPPORTED when there is no row. */
static int number_of(PyObject *o) {
    PyObject *number = PyDict_GetItemWithError(class_map, (PyObject *)Py_TYPE(o));
    return number ? (int)PyLong_AsLong(number) : PY_UNSUPPORTED;
}

static py_operator operator_of(PyObject *o) {
    int number = number_of(o);
    return number > OPERATOR_BASE ? (py_operator)(number - OPERATOR_BASE) : PY_OP_NONE;
}

/* A field of an ast object, borrowed from its dict (twice as quick as asking for attributes);
 * NULL when it has none. */
static PyObject *field(PyObject *dict, PyObject *name) {
    return PyDict_GetItemWithError(dict, name);
}

/* ---- positions ---- */

/* The column in characters, from 1, of a byte offset in a line of the text. */
static uint32_t character_column(const copier *c, long line, long offset) {
    const kernel_text *t = c->text;
    if (c->ascii || line < 1 || line > t->nlines) return (uint32_t)offset + 1;
    const char *p = t->lines[line - 1], *limit = t->text + t->bytes;
    uint32_t column = 1;
    for (long i = 0; i < offset && p + i < limit; i++)
        column += ((unsigned char)p[i] & 0xC0) != 0x80; /* not a continuation byte */
    return column;
}

static bool copy_position(copier *c, PyObject *fields, py_node *node) {
    long values[4];
    for (int i = 0; i < 4; i++) {
        PyObject *value = field(fields, position_names[i]);
        if (!value) return !PyErr_Occurred(); /* `arguments` and some others have none */
        values[i] = PyLong_AsLong(value);
        if (values[i] == -1 && PyErr_Occurred()) return false;
    }
    node->line = (uint32_t)(values[0] + c->text->shift);
    node->column = character_column(c, values[0], values[1]);
    node->end_line = (uint32_t)(values[2] + c->text->shift);
    node->end_column = character_column(c, values[2], values[3]);
    return true;
}

/* ---- constants ---- */

static void integer_constant(PyObject *o, py_constant *out) {
    int overflow;
    out->integer = PyLong_AsLongLongAndOverflow(o, &overflow);
    out->kind = PY_VALUE_INT;
    if (!overflow) return;
    out->kind = PY_VALUE_BIG_INT;
    out->integer = 0;
    if (overflow < 0) return;
    uint64_t value = PyLong_AsUnsignedLongLong(o);
    if (binding_forgive_if(PyExc_OverflowError)) return;
    out->kind = PY_VALUE_UINT;
    out->unsigned_integer = value;
}

static bool text_constant(py_value_kind kind, const char *text, Py_ssize_t bytes, arena *mem,
                          py_constant *out) {
    if (bytes > INT32_MAX) return true; /* of no use */
    char *copy = ARENA_ARRAY(mem, char, bytes + 1);
    if (!copy) return PyErr_NoMemory(), false;
    memcpy(copy, text, (size_t)bytes + 1);
    out->kind = kind;
    out->bytes = (uint32_t)bytes;
    out->text = copy;
    return true;
}

bool kernel_to_constant(PyObject *o, arena *mem, py_constant *out) {
    memset(out, 0, sizeof *out);
    out->kind = PY_VALUE_OTHER;
    if (o == Py_None) {
        out->kind = PY_VALUE_NONE;
    } else if (PyBool_Check(o)) {
        out->kind = PY_VALUE_BOOL;
        out->boolean = o == Py_True;
    } else if (PyLong_Check(o)) {
        integer_constant(o, out);
    } else if (PyFloat_Check(o)) {
        out->kind = PY_VALUE_FLOAT;
        out->real = PyFloat_AS_DOUBLE(o);
    } else if (PyComplex_Check(o)) {
        out->kind = PY_VALUE_COMPLEX;
        out->real = PyComplex_RealAsDouble(o);
        out->imaginary = PyComplex_ImagAsDouble(o);
    } else if (PyUnicode_Check(o)) {
        Py_ssize_t bytes;
        const char *text = PyUnicode_AsUTF8AndSize(o, &bytes);
        if (!text) return binding_forgive(); /* lone surrogates have no UTF-8 */
        return text_constant(PY_VALUE_STRING, text, bytes, mem, out);
    } else if (PyBytes_Check(o)) {
        return text_constant(PY_VALUE_BYTES, PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o), mem, out);
    } else if (o == Py_Ellipsis) {
        out->kind = PY_VALUE_ELLIPSIS;
    }
    return true;
}

/* ---- the copy ---- */

static bool copy_node(copier *c, PyObject *o, py_node **out);

static bool copy_child(copier *c, PyObject *fields, PyObject *name, py_node **out) {
    PyObject *child = name ? field(fields, name) : NULL;
    return !child || child == Py_None || copy_node(c, child, out);
}

static bool copy_list(copier *c, PyObject *fields, PyObject *name, py_list *out) {
    PyObject *list = name ? field(fields, name) : NULL;
    Py_ssize_t n = list && PyList_Check(list) ? PyList_GET_SIZE(list) : 0;
    if (!n) return true;
    out->items = ARENA_ARRAY(c->mem, py_node *, n);
    out->count = (uint32_t)n;
    if (!out->items) return PyErr_NoMemory(), false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        if (item != Py_None && !copy_node(c, item, &out->items[i])) return false;
    }
    return true;
}

/* "__x", which Python turns into "_Class__x". */
static bool is_private(const char *name) {
    size_t n = strlen(name);
    return n > 2 && strncmp(name, "__", 2) == 0 && strcmp(name + n - 2, "__") != 0;
}

static bool copy_name(copier *c, PyObject *fields, PyObject *name, bool function,
                      const char **out) {
    PyObject *value = name ? field(fields, name) : NULL;
    if (!value || value == Py_None) return true; /* a keyword without name: f(**x) */
    const char *text = PyUnicode_AsUTF8(value);
    if (text && c->class && !function && is_private(text))
        *out = arena_printf(c->mem, "_%s%s", c->class, text);
    else
        *out = text ? arena_strdup(c->mem, text) : NULL;
    if (text && !*out) PyErr_NoMemory();
    return *out != NULL;
}

static bool copy_operators(copier *c, PyObject *fields, py_node *node) {
    PyObject *list = field(fields, ops_name);
    Py_ssize_t n = list && PyList_Check(list) ? PyList_GET_SIZE(list) : 0;
    uint8_t *ops = ARENA_ARRAY(c->mem, uint8_t, node->list.count + 1);
    if (!ops) return PyErr_NoMemory(), false;
    for (Py_ssize_t i = 0; i < n && i < node->list.count; i++)
        ops[i] = (uint8_t)operator_of(PyList_GET_ITEM(list, i));
    node->ops = ops;
    return true;
}

/* What a row of ast.def does not say: operators and values. */
static bool copy_extras(copier *c, PyObject *fields, py_node *node) {
    PyObject *value;
    switch (node->kind) {
    case PY_BOOL_OP:
    case PY_BIN_OP:
    case PY_UNARY_OP:
    case PY_AUG_ASSIGN:
        value = field(fields, op_name);
        if (value) node->op = (uint8_t)operator_of(value);
        return true;
    case PY_COMPARE: return copy_operators(c, fields, node);
    case PY_CONSTANT:
        value = field(fields, value_name);
        return !value || kernel_to_constant(value, c->mem, &node->value);
    default: return true;
    }
}

static bool copy_slots(copier *c, PyObject *fields, py_node *node) {
    PyObject **names = slot_names[node->kind];
    return copy_child(c, fields, names[0], &node->a) && copy_child(c, fields, names[1], &node->b) &&
           copy_child(c, fields, names[2], &node->c) &&
           copy_list(c, fields, names[3], &node->list) &&
           copy_list(c, fields, names[4], &node->list2) &&
           copy_list(c, fields, names[5], &node->list3) &&
           copy_name(c, fields, names[6], node->kind == PY_FUNCTION, &node->name);
}

static bool copy_fields(copier *c, PyObject *o, PyObject *fields, py_node *node) {
    if (!copy_position(c, fields, node)) return false;
    if (node->kind != PY_UNSUPPORTED)
        return copy_slots(c, fields, node) && copy_extras(c, fields, node);
    const char *name = strrchr(Py_TYPE(o)->tp_name, '.');
    node->name = arena_strdup(c->mem, name ? name + 1 : Py_TYPE(o)->tp_name);
    if (!node->name) PyErr_NoMemory();
    return node->name != NULL;
}

static bool copy_node(copier *c, PyObject *o, py_node **out) {
    if (c->depth >= MAX_DEPTH) {
        PyErr_SetString(PyExc_RecursionError, "the kernel's source is nested too deeply");
        return false;
    }
    py_node *node = *out = ARENA_NEW(c->mem, py_node);
    if (!node) return PyErr_NoMemory(), false;
    int number = number_of(o);
    node->kind = (uint8_t)(number < PY_UNSUPPORTED ? number : PY_UNSUPPORTED);
    PyObject *fields = PyObject_GenericGetDict(o, NULL);
    c->depth++;
    bool done = fields && copy_fields(c, o, fields, node) && !PyErr_Occurred();
    c->depth--;
    Py_XDECREF(fields);
    return done;
}

py_node *kernel_tree_copy(PyObject *ast_node, const kernel_text *text, const char *class,
                          arena *mem) {
    if (!prepare()) return NULL;
    copier c = {.text = text, .class = class, .mem = mem, .ascii = true};
    for (size_t i = 0; i < text->bytes; i++) c.ascii &= (unsigned char)text->text[i] < 0x80;
    py_node *root = NULL;
    return copy_node(&c, ast_node, &root) ? root : NULL;
}

/* ---- the printed form ---- */

void kernel_constant_print(const py_constant *c, strbuf *out) {
    switch (c->kind) {
    case PY_VALUE_NONE: strbuf_puts(out, "None"); break;
    case PY_VALUE_BOOL: strbuf_puts(out, c->boolean ? "True" : "False"); break;
    case PY_VALUE_INT: strbuf_printf(out, "int:%lld", (long long)c->integer); break;
    case PY_VALUE_UINT:
        strbuf_printf(out, "uint:%llu", (unsigned long long)c->unsigned_integer);
        break;
    case PY_VALUE_BIG_INT: strbuf_puts(out, "big"); break;
    case PY_VALUE_FLOAT: strbuf_printf(out, "float:%.17g", c->real); break;
    case PY_VALUE_COMPLEX: strbuf_printf(out, "complex:%.17g,%.17g", c->real, c->imaginary); break;
    case PY_VALUE_STRING:
    case PY_VALUE_BYTES:
        strbuf_puts(out, c->kind == PY_VALUE_STRING ? "str:" : "bytes:");
        for (uint32_t i = 0; i < c->bytes; i++)
            strbuf_printf(out, "%02x", (unsigned char)c->text[i]);
        break;
    case PY_VALUE_ELLIPSIS: strbuf_puts(out, "..."); break;
    case PY_VALUE_OTHER: strbuf_puts(out, "other"); break;
    }
}

static void print_child(const char *slot, const py_node *child, strbuf *out) {
    if (!slot[0]) return;
    strbuf_printf(out, " ");
    kernel_tree_print(child, out);
}

static void print_list(const char *slot, const py_list *list, strbuf *out) {
    if (!slot[0]) return;
    strbuf_puts(out, " [");
    for (uint32_t i = 0; i < list->count; i++) {
        if (i) strbuf_puts(out, " ");
        kernel_tree_print(list->items[i], out);
    }
    strbuf_puts(out, "]");
}

void kernel_tree_print(const py_node *node, strbuf *out) {
    if (!node) {
        strbuf_puts(out, "-");
        return;
    }
    const py_kind_info *row = &py_kind_table[node->kind];
    strbuf_printf(out, "(%s", node->kind == PY_UNSUPPORTED ? "?" : row->cls);
    if (node->line)
        strbuf_printf(out, "@%u:%u-%u:%u", node->line, node->column, node->end_line,
                      node->end_column);
    if (node->op) strbuf_printf(out, " %s", py_operator_class[node->op]);
    if (node->kind == PY_COMPARE)
        for (uint32_t i = 0; i < node->list.count; i++)
            strbuf_printf(out, " %s", py_operator_class[node->ops[i]]);
    if (node->kind == PY_UNSUPPORTED || row->name[0])
        strbuf_printf(out, " %s", node->name ? node->name : "-");
    if (node->kind == PY_CONSTANT) {
        strbuf_puts(out, " ");
        kernel_constant_print(&node->value, out);
    }
    print_child(row->a, node->a, out);
    print_child(row->b, node->b, out);
    print_child(row->c, node->c, out);
    print_list(row->list, &node->list, out);
    print_list(row->list2, &node->list2, out);
    print_list(row->list3, &node->list3, out);
    strbuf_puts(out, ")");
}
