/* The functions and methods that rows of graph/array_ops.def give: of one and of two tensors. */
#include "binding/tensor/tensor.h"

/* ---- one operand ---- */

PyObject *tensor_unary(array_op op, PyObject *o, const char *name) {
    tensor *t = tensor_arg(o, name, "input", 1), *out = NULL;
    return t ? tensor_result(IN_SECTION(grad_unary(op, t, &out)), out) : NULL;
}

PyObject *tensor_unary_inplace(array_op op, PyObject *o) {
    tensor_operand in[1] = {{tensor_of(o)}};
    return tensor_same(IN_SECTION(grad_elementwise_inplace(op, in, 1, NULL)), o);
}

/* ---- two operands ---- */

static bool is_integral(const tensor_operand *v) {
    return v->t ? !dtype_is_float(v->t->a->dt) : v->s.kind != 'F';
}

static simt_status find_zero(array *a, bool *found) {
    array_window w;
    SIMT_TRY(array_evaluate(a));
    if (!array_is_contiguous(a) || !a->size) return SIMT_OK;
    SIMT_TRY(array_open(a, ARRAY_READ, &w));
    size_t bytes = dtype_bytes(a->dt);
    for (int64_t i = 0; i < a->size && !*found; i++)
        *found = scalar_load(a->dt, w.data + (size_t)i * bytes).i == 0;
    return array_close(&w);
}

/* Integer division by zero is an error where the divisor is known: numbers, tensors in memory. */
static simt_status check_divisor(const tensor_operand in[2]) {
    if (!is_integral(&in[0]) || !is_integral(&in[1])) return SIMT_OK;
    bool zero = !in[1].t && in[1].s.i == 0;
    if (in[1].t) SIMT_TRY(find_zero(in[1].t->a, &zero));
    return zero ? status_fail(SIMT_ERR_RUNTIME, "ZeroDivisionError") : SIMT_OK;
}

simt_status tensor_binary(array_op op, const tensor_operand in[2], tensor **out) {
    if (op == OP_POWER) return grad_power(in, out);
    if (op == OP_FLOOR_DIVIDE || op == OP_REMAINDER || op == OP_FMOD) SIMT_TRY(check_divisor(in));
    return grad_elementwise(op, in, 2, NULL, out);
}

PyObject *tensor_apply(array_op op, PyObject *x, PyObject *y, const char *name) {
    tensor_value a, b;
    tensor *out = NULL;
    if (!tensor_need_operand(x, name, &a)) return NULL;
    if (!tensor_need_operand(y, name, &b)) {
        tensor_operand_done(&a);
        return NULL;
    }
    tensor_operand in[2] = {a.v, b.v};
    simt_status s = tensor_binary(op, in, &out);
    tensor_operand_done(&a);
    tensor_operand_done(&b);
    return tensor_result(s, out);
}

PyObject *tensor_apply_inplace(array_op op, PyObject *x, PyObject *y, const char *name) {
    tensor_value b;
    if (!tensor_need_operand(y, name, &b)) return NULL;
    tensor_operand in[2] = {{tensor_of(x)}, b.v};
    simt_status s = SIMT_OK;
    if (op == OP_FLOOR_DIVIDE || op == OP_REMAINDER || op == OP_FMOD) s = check_divisor(in);
    if (s == SIMT_OK) s = grad_elementwise_inplace(op, in, 2, NULL);
    tensor_operand_done(&b);
    return tensor_same(s, x);
}

/* ---- the rows ---- */

/* X(id, name) for each of up to three names. */
#define EACH_COUNT(_1, _2, _3, n, ...)                                    n
#define EACH(X, id, ...)                                                  EACH_COUNT(__VA_ARGS__, EACH3, EACH2, EACH1, )(X, id, __VA_ARGS__)
#define EACH1(X, id, a)                                                   X(id, a)
#define EACH2(X, id, a, b)                                                X(id, a) X(id, b)
#define EACH3(X, id, a, b, c)                                             X(id, a) X(id, b) X(id, c)
#define EW(id, name, arity, dtypes, how, a, b, c, node, cupy, torch, ...) torch(id, __VA_ARGS__)

#define UNARY_METHOD(id, name)                                         \
    static PyObject *method_##name(PyObject *self, PyObject *unused) { \
        return tensor_unary(OP_##id, self, #name);                     \
    }
#define UNARY_FUNCTION(id, name)                                                                \
    static PyObject *function_##name(PyObject *module, PyObject *const *args, Py_ssize_t n,     \
                                     PyObject *kw) {                                            \
        PyObject *v[TENSOR_MAX_ARGS] = {NULL};                                                  \
        static const char *const names[] = {"input", NULL};                                     \
        static const tensor_signature signature = {#name, 1, 1, names};                         \
        return tensor_parse(&signature, 0, args, n, kw, v) ? tensor_unary(OP_##id, v[0], #name) \
                                                           : NULL;                              \
    }
#define UNARY_INPLACE(id, name)                                                                \
    static PyObject *method_##name##_(PyObject *self, PyObject *unused) {                      \
        return tensor_unary_inplace(OP_##id, self);                                            \
    }                                                                                          \
    static PyObject *function_##name##_(PyObject *module, PyObject *o) {                       \
        return tensor_arg(o, #name "_", "input", 1) ? tensor_unary_inplace(OP_##id, o) : NULL; \
    }
#define BINARY_BOTH(id, name)                                                                     \
    static PyObject *op_##name(PyObject **v) { return tensor_apply(OP_##id, v[0], v[1], #name); } \
    TENSOR_OP(name, op_##name, 2, 2, "input", "other")
#define BINARY_INPLACE(id, name)                                     \
    static PyObject *op_##name##_(PyObject **v) {                    \
        return tensor_apply_inplace(OP_##id, v[0], v[1], #name "_"); \
    }                                                                \
    TENSOR_SIGNATURE(name##_, 2, 2, "input", "other")                \
    TENSOR_METHOD(name##_, op_##name##_)

#define FUNCTION(id, ...)    EACH(UNARY_FUNCTION, id, __VA_ARGS__)
#define TEST(id, ...)        FUNCTION(id, __VA_ARGS__) EACH(UNARY_METHOD, id, __VA_ARGS__)
#define UNARY(id, ...)       TEST(id, __VA_ARGS__) EACH(UNARY_INPLACE, id, __VA_ARGS__)
#define BINARY_ONLY(id, ...) EACH(BINARY_BOTH, id, __VA_ARGS__)
#define BINARY(id, ...)      BINARY_ONLY(id, __VA_ARGS__) EACH(BINARY_INPLACE, id, __VA_ARGS__)
#define HAND(id, ...)
#include "graph/array_ops.def"

#undef FUNCTION
#undef TEST
#undef UNARY
#undef BINARY_ONLY
#undef BINARY
#define ENTRY(id, name)                {#name, method_##name, METH_NOARGS, NULL},
#define ENTRY_INPLACE(id, name)        {#name "_", method_##name##_, METH_NOARGS, NULL},
#define BINARY_ENTRY(id, name)         METHOD_ENTRY(name),
#define BINARY_ENTRY_INPLACE(id, name) METHOD_ENTRY(name##_),
#define FUNCTION(id, ...)
#define TEST(id, ...)        EACH(ENTRY, id, __VA_ARGS__)
#define UNARY(id, ...)       EACH(ENTRY, id, __VA_ARGS__) EACH(ENTRY_INPLACE, id, __VA_ARGS__)
#define BINARY_ONLY(id, ...) EACH(BINARY_ENTRY, id, __VA_ARGS__)
#define BINARY(id, ...) \
    EACH(BINARY_ENTRY, id, __VA_ARGS__) EACH(BINARY_ENTRY_INPLACE, id, __VA_ARGS__)
#define EW(id, name, arity, dtypes, how, a, b, c, node, cupy, torch, ...) torch(id, __VA_ARGS__)
PyMethodDef tensor_table_methods[] = {
#include "graph/array_ops.def"
    {NULL}};

#undef FUNCTION
#undef UNARY
#undef BINARY
#undef ENTRY
#undef ENTRY_INPLACE
#define ENTRY(id, name)         FUNCTION_ENTRY(name),
#define ENTRY_INPLACE(id, name) {#name "_", function_##name##_, METH_O, NULL},
#define FUNCTION(id, ...)       EACH(ENTRY, id, __VA_ARGS__)
#define UNARY(id, ...)          EACH(ENTRY, id, __VA_ARGS__) EACH(ENTRY_INPLACE, id, __VA_ARGS__)
#define BINARY(id, ...)         EACH(ENTRY, id, __VA_ARGS__)
#undef BINARY_ONLY
#define BINARY_ONLY(id, ...)                                              EACH(ENTRY, id, __VA_ARGS__)
#define EW(id, name, arity, dtypes, how, a, b, c, node, cupy, torch, ...) torch(id, __VA_ARGS__)
PyMethodDef tensor_table_functions[] = {
#include "graph/array_ops.def"
    {NULL}};
