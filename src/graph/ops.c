/* Facts of array_ops.def; the dtype and broadcasting rules of both faces. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

const array_op_info array_op_table[ARRAY_OP_COUNT] = {
#define FORMULA(text) text
#define FLOATS(op)    ""
#define BOOLS(op)     ""
#define OPS(...)      ""
#define CODE(name)    ""
#define NODE          ""
#define EW(id, text, n, rule, how, a, b, c, backward, names, ...) \
    [OP_##id] = {.kind = OP_KIND_EW,                              \
                 .name = text,                                    \
                 .arity = n,                                      \
                 .dtypes = #rule[0],                              \
                 .expansion = how,                                \
                 .grad = {a, b, c},                               \
                 .node = backward,                                \
                 .cupy = names},
#define RULE(name) "=" #name
#define NO_RULE    "0"
#define RED(id, text, rule, start, step, gradient, backward, backward_dim, ...) \
    [OP_##id] = {.kind = OP_KIND_RED,                                           \
                 .name = text,                                                  \
                 .arity = 1,                                                    \
                 .dtypes = #rule[0],                                            \
                 .expansion = "",                                               \
                 .neutral = start,                                              \
                 .combine = OP_##step,                                          \
                 .grad = {gradient},                                            \
                 .node = backward,                                              \
                 .node_dim = backward_dim,                                      \
                 .cupy = text},
#define CALL(id, text, inputs, gradient) \
    [OP_##id] = {.kind = OP_KIND_CALL,   \
                 .name = text,           \
                 .arity = inputs,        \
                 .dtypes = 'X',          \
                 .expansion = "",        \
                 .grad = {gradient},     \
                 .node = "",             \
                 .cupy = ""},
#include "graph/array_ops.def"
};

array_op array_op_find(const char *name) {
    for (int i = 0; i < ARRAY_OP_COUNT; i++)
        if (strcmp(array_op_table[i].name, name) == 0) return (array_op)i;
    return ARRAY_OP_COUNT;
}

/* ---- dtypes ---- */

/* Category order of PyTorch's and NEP 50's weak scalars: bool < integer < float. */
static int category(char kind) { return kind == 'B' ? 0 : kind == 'F' ? 2 : 1; }

/* NumPy (NEP 50): arrays and NumPy scalars promote by type; a Python scalar only lifts the category
 * (a float over integers or bool gives float64, an int over bool int64; float16 stays float16). */
static dtype promote_numpy(const graph_type *in, int nin) {
    int result = -1, weak = -1;
    for (int i = 0; i < nin; i++) {
        if (in[i].weak) {
            int c = category(dtype_table[in[i].dt].kind);
            if (c > weak) weak = c;
        } else {
            result = result < 0 ? (int)in[i].dt : (int)dtype_promote((dtype)result, in[i].dt);
        }
    }
    if (result < 0) return weak == 0 ? DT_BOOL : weak == 1 ? DT_I64 : DT_F64;
    if (weak > category(dtype_table[result].kind)) return weak == 1 ? DT_I64 : DT_F64;
    return (dtype)result;
}

/* torch.promote_types. */
static dtype promote_torch_pair(dtype a, dtype b) {
    if (a == b) return a;
    bool fa = dtype_is_float(a), fb = dtype_is_float(b);
    if (fa != fb) return fa ? a : b; /* a float wins over any integer, whatever the widths */
    if (fa) return dtype_promote(a, b);
    dtype result = dtype_promote(a, b);
    return dtype_is_float(result) ? DT_I64 : result;
}

/* PyTorch: dimensioned tensors first, then 0-d tensors, then Python scalars; a lower rank counts only
 * where its category is higher. */
static dtype promote_torch(const graph_type *in, int nin, dtype default_float) {
    int ranks[3] = {-1, -1, -1};
    for (int i = 0; i < nin; i++) {
        int rank = in[i].weak ? 2 : in[i].zero_dim ? 1 : 0;
        dtype dt = in[i].dt;
        if (in[i].weak) dt = dtype_is_float(dt) ? default_float : dt == DT_BOOL ? DT_BOOL : DT_I64;
        ranks[rank] = ranks[rank] < 0 ? (int)dt : (int)promote_torch_pair((dtype)ranks[rank], dt);
    }
    int result = -1;
    for (int r = 0; r < 3; r++) {
        if (ranks[r] < 0) continue;
        if (result < 0 || category(dtype_table[ranks[r]].kind) > category(dtype_table[result].kind))
            result = ranks[r];
    }
    return (dtype)result;
}

static simt_status unsupported(array_op op, graph_face face, const graph_type *in, int nin) {
    char types[120] = "";
    for (int i = 0; i < nin; i++) {
        size_t used = strlen(types);
        snprintf(types + used, sizeof types - used, "%s%s", i ? ", " : "",
                 dtype_table[in[i].dt].name);
    }
    if (face == FACE_TORCH)
        return status_fail(SIMT_ERR_RUNTIME, "\"%s\" not implemented for '%s'",
                           array_op_table[op].name, types);
    return status_fail(SIMT_ERR_TYPE,
                       "ufunc '%s' not supported for the input types, and the inputs could not be "
                       "safely coerced to any "
                       "supported types according to the casting rule ''safe''",
                       array_op_table[op].name);
}

bool graph_is_same_kind(dtype from, dtype to) {
    static const char order[] = "BUIF";
    const char *f = strchr(order, dtype_table[from].kind), *t = strchr(order, dtype_table[to].kind);
    return (f ? f : order + 3) <= (t ? t : order + 3);
}

bool graph_can_cast(dtype from, dtype to, char casting) {
    switch (casting) {
    case 'n':
    case 'e': return from == to;
    case 's': return dtype_promote(from, to) == to;
    case 'u': return true;
    default: return graph_is_same_kind(from, to);
    }
}

const char *graph_casting_name(char casting) {
    return casting == 'n'   ? "no"
           : casting == 'e' ? "equiv"
           : casting == 's' ? "safe"
           : casting == 'u' ? "unsafe"
                            : "same_kind";
}

/* Whether NumPy's ufunc has a loop with this result type. */
static bool has_loop(array_op op, dtype dt) {
    bool floats = dtype_is_float(dt), truth = dt == DT_BOOL;
    switch (array_op_table[op].dtypes) {
    case 'N':
        if (op == OP_RINT) return floats;
        return !truth || op == OP_FLOOR || op == OP_CEIL || op == OP_TRUNC;
    case 'A': return op != OP_POSITIVE || !truth;
    case 'I': return !floats && !(truth && (op == OP_LEFT_SHIFT || op == OP_RIGHT_SHIFT));
    case 'F': return floats;
    case 'C':
    case 'T':
    case 'L': return truth;
    default: return true;
    }
}

simt_status graph_check_loop(array_op op, const graph_type *in, int nin, dtype dt, char casting) {
    const array_op_info *row = &array_op_table[op];
    if (!has_loop(op, dt))
        return status_fail(SIMT_ERR_TYPE,
                           "No loop matching the specified signature and casting was found for "
                           "ufunc %s (dtype=%s)",
                           row->name, dtype_table[dt].name);
    bool tests = strchr("CTL", row->dtypes) != NULL; /* their dtype is the result's alone */
    for (int i = row->dtypes == 'W'; casting && !tests && i < nin; i++) {
        dtype from = in[i].dt;
        if (in[i].weak && from != DT_BOOL) /* an int goes into any, a float into floats */
            from = dtype_is_float(from) == dtype_is_float(dt) ? dt : from == DT_I64 ? DT_U8 : from;
        bool fits = in[i].weak ? graph_is_same_kind(from, dt) : graph_can_cast(from, dt, casting);
        if (!fits)
            return status_fail(SIMT_ERR_TYPE,
                               "Cannot cast ufunc '%s' input %d from dtype('%s') to dtype('%s') "
                               "with casting rule '%s'",
                               row->name, i, dtype_table[in[i].dt].name, dtype_table[dt].name,
                               graph_casting_name(casting));
    }
    return SIMT_OK;
}

static dtype to_float(dtype dt, graph_face face, dtype default_float) {
    if (dtype_is_float(dt)) return dt;
    if (face == FACE_TORCH) return default_float;
    size_t bytes = dtype_bytes(dt);
    return bytes == 1 ? DT_F16 : bytes == 2 ? DT_F32 : DT_F64;
}

/* NumPy's float loops of several operands: each becomes a float by its own width, then they promote. */
static dtype promote_as_floats(const graph_type *in, int nin) {
    graph_type floats[3];
    bool counted = false, truths = true; /* a Python integer makes bool an int64 */
    for (int i = 0; i < nin; i++) {
        counted |= in[i].weak && dtype_is_integer(in[i].dt);
        truths &= in[i].weak || in[i].dt == DT_BOOL;
    }
    if (counted && truths) return DT_F64;
    for (int i = 0; i < nin; i++) {
        floats[i] = in[i];
        if (!in[i].weak) floats[i].dt = to_float(in[i].dt, FACE_NUMPY, DT_F64);
    }
    return to_float(promote_numpy(floats, nin), FACE_NUMPY, DT_F64);
}

simt_status graph_dtypes(array_op op, graph_face face, const graph_type *in, int nin,
                         dtype default_float, dtype *compute, dtype *result) {
    char rule = array_op_table[op].dtypes;
    const graph_type *first = in;
    int count = nin;
    if (rule == 'W') first++, count--; /* the condition takes no part */
    dtype dt = face == FACE_TORCH ? promote_torch(first, count, default_float)
                                  : promote_numpy(first, count);
    bool torch = face == FACE_TORCH;
    switch (rule) {
    case 'N':
        if (dt == DT_BOOL) {
            if (torch) {
                if (op == OP_POWER || op == OP_FLOOR_DIVIDE || op == OP_REMAINDER || op == OP_FMOD)
                    return unsupported(op, face, in, nin); /* no meaning in bool, as in PyTorch */
                if (op == OP_NEGATIVE || op == OP_SUBTRACT)
                    return status_fail(SIMT_ERR_NOT_IMPLEMENTED,
                                       op == OP_NEGATIVE
                                           ? "Negation, the `-` operator, on a bool tensor is not "
                                             "supported. If you are "
                                             "trying to invert a mask, use the `~` or "
                                             "`logical_not()` operator instead."
                                           : "Subtraction, the `-` operator, with two bool tensors "
                                             "is not supported. Use "
                                             "the `^` or `logical_xor()` operator instead.");
            } else if (op == OP_NEGATIVE || op == OP_SUBTRACT) {
                return status_fail(
                    SIMT_ERR_TYPE,
                    op == OP_NEGATIVE
                        ? "The numpy boolean negative, the `-` operator, is not supported, use the "
                          "`~` "
                          "operator or the logical_not function instead."
                        : "numpy boolean subtract, the `-` operator, is not supported, use the "
                          "bitwise_xor, the `^` operator, or the logical_xor function instead.");
            } else if (op == OP_SIGN) {
                return unsupported(op, face, in, nin);
            } else if (op == OP_RINT) {
                dt = DT_F16;
            } else if (op != OP_FLOOR && op != OP_CEIL && op != OP_TRUNC) {
                dt = DT_I8; /* NumPy's loops start at int8 */
            }
        }
        if (op == OP_RINT && !torch) dt = to_float(dt, face, default_float); /* no integer loops */
        break;
    case 'A':
        if (op == OP_POSITIVE && dt == DT_BOOL && !torch) return unsupported(op, face, in, nin);
        break;
    case 'I':
        if (dtype_is_float(dt)) return unsupported(op, face, in, nin);
        if (dt == DT_BOOL && (op == OP_LEFT_SHIFT || op == OP_RIGHT_SHIFT)) {
            if (torch) return unsupported(op, face, in, nin);
            dt = DT_I8;
        }
        break;
    case 'F':
        /* NumPy divides integers in double whatever their width; unary functions go by width */
        if (op == OP_DIVIDE && !torch)
            dt = dtype_is_float(dt) ? dt : DT_F64;
        else if (!torch && count > 1 && !dtype_is_float(dt))
            dt = promote_as_floats(in, count);
        else
            dt = to_float(dt, face, default_float);
        break;
    case 'C':
    case 'T':
        *compute = dt;
        *result = DT_BOOL;
        return SIMT_OK;
    case 'L':
        *compute = DT_BOOL;
        *result = DT_BOOL;
        return SIMT_OK;
    case 'W': break;
    default: return status_fail(SIMT_ERR_INTERNAL, "%s has no dtype rule", array_op_table[op].name);
    }
    *compute = *result = dt;
    return SIMT_OK;
}

simt_status graph_reduce_dtype(array_op op, graph_face face, dtype in, dtype *result) {
    switch (array_op_table[op].dtypes) {
    case 'N':
        if (dtype_is_float(in))
            *result = in;
        else if (face == FACE_TORCH)
            *result = DT_I64;
        else
            *result = dtype_is_unsigned(in) ? DT_U64 : DT_I64;
        return SIMT_OK;
    case 'B': *result = face == FACE_TORCH && in == DT_U8 ? DT_U8 : DT_BOOL; return SIMT_OK;
    case 'P': *result = DT_I64; return SIMT_OK;
    default: *result = in; return SIMT_OK;
    }
}

/* ---- broadcasting ---- */

static void shape_text(const int64_t *shape, int ndim, char *to, size_t size) {
    size_t used = (size_t)snprintf(to, size, "(");
    for (int i = 0; i < ndim && used < size; i++)
        used +=
            (size_t)snprintf(to + used, size - used,
                             i || ndim > 1 ? (i ? ",%lld" : "%lld") : "%lld,", (long long)shape[i]);
    if (used < size) snprintf(to + used, size - used, ")");
}

static simt_status broadcast_error(graph_face face, const int64_t *const *shapes, const int *ndims,
                                   int n, const int64_t *so_far, int ndim, int operand, int axis) {
    if (face == FACE_TORCH) {
        int64_t theirs = shapes[operand][ndims[operand] - (ndim - axis)];
        return status_fail(
            SIMT_ERR_RUNTIME,
            "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
            "dimension %d",
            (long long)so_far[axis], (long long)theirs, axis);
    }
    char text[600] = "";
    for (int i = 0; i < n; i++) {
        size_t used = strlen(text);
        char one[200];
        shape_text(shapes[i], ndims[i], one, sizeof one);
        snprintf(text + used, sizeof text - used, "%s ", one);
    }
    return status_fail(SIMT_ERR_VALUE, "operands could not be broadcast together with shapes %s",
                       text);
}

simt_status graph_broadcast(graph_face face, const int64_t *const *shapes, const int *ndims, int n,
                            int64_t *shape, int *ndim) {
    int most = 0;
    for (int i = 0; i < n; i++)
        if (ndims[i] > most) most = ndims[i];
    for (int d = 0; d < most; d++) shape[d] = 1;
    for (int i = 0; i < n; i++) {
        int64_t *end = shape + (most - ndims[i]);
        for (int d = 0; d < ndims[i]; d++) {
            if (shapes[i][d] == end[d] || shapes[i][d] == 1) continue;
            if (end[d] != 1)
                return broadcast_error(face, shapes, ndims, n, shape, most, i, most - ndims[i] + d);
            end[d] = shapes[i][d];
        }
    }
    *ndim = most;
    return SIMT_OK;
}
