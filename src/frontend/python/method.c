/* Methods of numbers and arrays: a.reshape(2, 3), a.sum(), z.conjugate(). */
#include "frontend/python/work.h"

#include <string.h>

static bool no_arguments(py_ctx *c, const py_call *x) {
    return (x->nargs == 0 && x->nkeywords == 0) ||
           py_fail(c, x->node, "%s takes no arguments", x->name);
}

/* ---- reshape ---- */

/* The sizes that are asked for; *open: the axis that is -1, else -1. */
static bool new_shape(py_ctx *c, py_call *x, py_val *sizes, uint32_t *n, int *open) {
    bool tuple = x->nargs == 1 && x->args[0].type->kind == TY_TUPLE;
    *n = tuple ? x->args[0].type->count : x->nargs;
    *open = -1;
    if (x->nkeywords > 0 || *n == 0 || *n > PY_MAX_NDIM)
        return py_fail(c, x->node, "reshape takes the new shape: one to %d sizes", PY_MAX_NDIM);
    for (uint32_t i = 0; i < *n; i++) {
        py_val v = tuple ? py_val_item(&x->args[0], i) : x->args[i];
        if (!py_to_index(c, x->node, &v, "a size", &sizes[i])) return false;
        bool any = v.is_const && v.value.kind == PY_VALUE_INT && v.value.integer == -1;
        if (any && *open >= 0) return py_fail(c, x->node, "can only specify one unknown dimension");
        if (any) *open = (int)i;
    }
    return true;
}

static ir_value *product(py_ctx *c, ir_value *const *sizes, uint32_t n, int without) {
    ir_value *all = py_emit_int(c, IR_I64, 1);
    for (uint32_t i = 0; i < n; i++)
        if ((int)i != without) all = py_emit_binary(c, IR_MUL, all, sizes[i]);
    return all;
}

/* The thread ends with ValueError where the sizes do not give as many elements, or one is negative. */
static void check_count(py_ctx *c, const py_node *at, ir_value *const *sizes, uint32_t n,
                        ir_value *count) {
    kernel_fault f = {.kind = KERNEL_FAULT_VALUE,
                      .text = "cannot reshape the array: its size must be unchanged",
                      .ndim = -1,
                      .argument = -1};
    ir_value *ok = py_emit_binary(c, IR_EQ, product(c, sizes, n, -1), count);
    for (uint32_t i = 0; i < n; i++)
        ok = py_emit_binary(c, IR_AND, ok,
                            py_emit_binary(c, IR_LE_S, py_emit_zero(c, IR_I64), sizes[i]));
    py_fault_unless(c, at, ok, &f);
}

static bool reshape(py_ctx *c, const py_val *of, py_call *x, py_val *out) {
    py_val size[PY_MAX_NDIM];
    ir_value *sizes[PY_MAX_NDIM] = {0}, *old[PY_MAX_NDIM] = {0}, *strides[PY_MAX_NDIM] = {0};
    const py_type *t = of->type;
    uint32_t n;
    int open;
    if (!new_shape(c, x, size, &n, &open)) return false;
    if (t->layout != 'C')
        return py_fail(c, x->node, "reshape needs a C-contiguous array, not %s",
                       py_type_text(c, t));
    for (uint32_t i = 0; i < n; i++) sizes[i] = py_slot(&size[i], 0);
    for (int i = 0; i < t->ndim; i++) old[i] = py_array_size(of, i);
    ir_value *count = product(c, old, t->ndim, -1);
    if (open >= 0) { /* 0 where the others are 0: the check then fails but for an empty array */
        ir_value *rest = product(c, sizes, n, open);
        sizes[open] = py_emit_binary(c, IR_DIV_S, count, rest);
    }
    check_count(c, x->node, sizes, n, count);
    ir_value *stride = py_emit_int(c, IR_I64, py_element_bytes(t));
    for (uint32_t i = n; i-- > 0;) {
        strides[i] = stride;
        stride = py_emit_binary(c, IR_MUL, stride, sizes[i]);
    }
    py_origin *o = NULL;
    if (of->origin != NULL) {
        o = PY_NEW(c, py_origin, 1);
        *o = (py_origin){.name = of->origin->name, .parameter = of->origin->parameter};
    }
    *out =
        py_array_val(c, py_type_array(c, t->scalar, t->record, (int)n, 'C', t->space, t->readonly),
                     py_array_ptr(of), sizes, strides, o);
    return true;
}

static bool ravel(py_ctx *c, const py_val *of, py_call *x, py_val *out) {
    if (!no_arguments(c, x)) return false;
    py_call whole = *x;
    whole.args = PY_NEW(c, py_val, 1);
    whole.args[0] = py_val_int(c, -1);
    whole.nargs = 1;
    return reshape(c, of, &whole, out);
}

/* ---- which ---- */

static bool array_method(py_ctx *c, const py_val *of, py_call *x, py_val *out, bool *found) {
    *found = true;
    if (strcmp(x->name, "reshape") == 0) return reshape(c, of, x, out);
    if (strcmp(x->name, "ravel") == 0) return ravel(c, of, x, out);
    const char *name = arena_printf(c->mem, "array.%s", x->name);
    uint32_t all = x->nargs + x->nkeywords;
    py_val *args = PY_NEW(c, py_val, all + 1);
    args[0] = *of;
    if (all > 0) memcpy(args + 1, x->args, sizeof *args * all);
    x->args = args;
    x->nargs++;
    return py_call_library(c, name, x, out, found);
}

static bool conjugate(py_ctx *c, const py_val *of, py_call *x, py_val *out) {
    py_scalar s = py_scalar_of(of);
    if (!no_arguments(c, x)) return false;
    *out = *of;
    if (py_scalar_is_complex(s))
        *out = py_val_complex(c, s, py_slot(of, 0), py_emit_unary(c, IR_FNEG, py_slot(of, 1)));
    return true;
}

static bool bit_count(py_ctx *c, const py_val *of, py_call *x, py_val *out) {
    const py_intrinsic *popc = py_find_intrinsic("cuda.popc");
    py_val args[1] = {*of};
    if (!no_arguments(c, x)) return false;
    py_call call = {.node = x->node, .name = x->name, .args = args, .nargs = 1};
    call.extra = popc->extra;
    return popc->run(c, &call, out);
}

typedef bool (*number_method)(py_ctx *c, const py_val *of, py_call *x, py_val *out);

/* The method of a number, or NULL. */
static number_method find_number_method(const py_val *of, const char *name) {
    py_scalar s = py_scalar_of(of);
    if (s != PY_S_NONE && strcmp(name, "conjugate") == 0) return conjugate;
    return py_scalar_is_int(s) && strcmp(name, "bit_count") == 0 ? bit_count : NULL;
}

bool py_call_method(py_ctx *c, const py_node *n, const py_val *of, py_val *out, bool *found) {
    py_call x = {.node = n, .name = n->a->name};
    number_method method = find_number_method(of, x.name);
    *found = method != NULL;
    if (of->type->kind == TY_CHARS || (py_is_text(of) && py_has_text_method(x.name))) {
        *found = true;
        return py_call_arguments(c, n, &x, false) && py_chars_method(c, of, &x, out);
    }
    if (of->type->kind != TY_ARRAY && !*found) return true;
    if (of->type->kind == TY_ARRAY && of->type->record != NULL && !py_is_chars(of->type->record) &&
        py_record_field(of->type->record, x.name) != NULL)
        return true; /* a field comes first: its error is plainer than the method's */
    if (!py_call_arguments(c, n, &x, false)) return false;
    return *found ? method(c, of, &x, out) : array_method(c, of, &x, out, found);
}
