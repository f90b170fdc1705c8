/* Calls: arguments, then an intrinsic, a function or a type. */
#include "frontend/python/work.h"

#include <string.h>

/* ---- calls ---- */

bool py_call_arguments(py_ctx *c, const py_node *n, py_call *x, bool or_none) {
    if (!py_expr_list(c, &n->list, or_none, &x->args, &x->nargs)) return false;
    x->keywords = PY_NEW(c, const char *, n->list2.count + 1);
    for (uint32_t i = 0; i < n->list2.count; i++) {
        const py_node *k = n->list2.items[i];
        if (k->name == NULL)
            return py_fail(c, k, "'**' in a call is not possible in a kernel: name the arguments");
        py_val v;
        if (!(or_none ? py_expr_or_none(c, k->a, &v) : py_expr(c, k->a, &v))) return false;
        x->args = py_grow(c, x->args, x->nargs + i, sizeof v);
        x->args[x->nargs + i] = v;
        x->keywords[x->nkeywords++] = k->name;
    }
    return true;
}

bool py_bind_arguments(py_ctx *c, const py_node *at, const py_function *fn, const py_call *x,
                       py_val **to, uint32_t *count) {
    const py_node *a = fn->tree->a;
    uint32_t n = a->list.count + a->list2.count;
    py_val *bound = *to = PY_NEW(c, py_val, n + 1);
    bool *given = PY_NEW(c, bool, n + 1);
    if (a->b != NULL || a->list3.count > 0)
        return py_fail(c, at, "%s: keyword-only parameters and ** are not possible", fn->name);
    if (x->nargs > n && a->a == NULL)
        return py_fail(c, at, "%s takes %u arguments, %u given", fn->name, n, x->nargs);
    for (uint32_t i = 0; i < n && i < x->nargs; i++) {
        bound[i] = x->args[i];
        given[i] = true;
    }
    for (uint32_t k = 0; k < x->nkeywords; k++) {
        uint32_t i = 0;
        while (i < n && strcmp(py_parameter(fn, i)->name, x->keywords[k]) != 0) i++;
        if (i == n) return py_fail(c, at, "%s has no parameter '%s'", fn->name, x->keywords[k]);
        if (given[i])
            return py_fail(c, at, "%s: argument '%s' is given twice", fn->name, x->keywords[k]);
        bound[i] = x->args[x->nargs + k];
        given[i] = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (given[i]) continue;
        const py_entity *d = fn->defaults != NULL ? &fn->defaults[i] : NULL;
        if (d == NULL || (d->kind == PY_ENTITY_OBJECT && d->name == NULL))
            return py_fail(c, at, "%s: argument '%s' is missing", fn->name,
                           py_parameter(fn, i)->name);
        if (!py_entity_value(c, at, d, &bound[i])) return false;
    }
    *count = n;
    if (a->a != NULL) { /* *args */
        uint32_t rest = x->nargs > n ? x->nargs - n : 0;
        bound[(*count)++] = py_val_tuple(c, rest > 0 ? x->args + n : NULL, rest);
    }
    return true;
}

static bool call_function(py_ctx *c, const py_node *n, const py_entity *e, py_call *x,
                          py_val *out) {
    const py_function *fn;
    py_val *bound;
    uint32_t count = 0;
    simt_status status = c->host->function(c->host->context, e, &fn);
    if (status != SIMT_OK) return py_pass_failure(c, n, status);
    if (!py_bind_arguments(c, n, fn, x, &bound, &count)) return false;
    if (fn->ndeclared == 0) return py_call_function(c, n, fn, bound, count, NULL, out);
    return py_call_declared(c, n, fn, bound, count, x->nargs + x->nkeywords, out);
}

/* Which function it is depends on the types of the arguments. */
static bool call_overload(py_ctx *c, const py_node *n, const py_entity *e, py_call *x,
                          py_val *out) {
    const py_function *stub, *fn;
    py_val *bound;
    uint32_t count = 0;
    py_bytes signature = {0};
    py_entity *chosen = PY_NEW(c, py_entity, 1);
    simt_status status = c->host->function(c->host->context, e, &stub);
    if (status != SIMT_OK) return py_pass_failure(c, n, status);
    if (!py_bind_arguments(c, n, stub, x, &bound, &count)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!py_write_signature(c, n, bound[i].type, &signature)) return false;
    status = c->host->overload(c->host->context, e, signature.bytes, signature.count, chosen);
    if (status == SIMT_OK) status = c->host->function(c->host->context, chosen, &fn);
    if (status != SIMT_OK) return py_pass_failure(c, n, status);
    return py_call_function(c, n, fn, bound, count, NULL, out);
}

/* Python's own constructors keep some types (Numba): int of an integer, float of a float. */
static bool call_type(py_ctx *c, const py_node *n, const py_entity *e, py_call *x, py_val *out) {
    if (py_is_chars(e->record))
        return py_fail(c, n,
                       "%s is a dtype of arrays: their elements take constants and each other",
                       py_type_text(c, py_chars_type(c, e->record)));
    if (e->record != NULL)
        return py_fail(c, n, "a record cannot be made in a kernel: use an element of an array");
    py_scalar to = e->type, part = py_scalar_part(to);
    const char *text = e->name != NULL ? e->name : py_scalar_name(to);
    if (x->nkeywords > 0 || x->nargs > (py_scalar_is_complex(to) ? 2u : 1u))
        return py_fail(c, n, "%s takes one argument", text);
    if (x->nargs == 0) {
        py_constant zero = {.kind = PY_VALUE_INT, .integer = 0};
        *out = py_val_constant(c, &zero, to);
        out->is_const = false;
        return true;
    }
    py_scalar from = py_scalar_of(&x->args[0]);
    if (x->nargs == 2) {
        py_val re, im;
        py_scalar other = py_scalar_of(&x->args[1]);
        if (strcmp(text, "complex") == 0 && from == PY_S_F32 && other == PY_S_F32)
            to = PY_S_C64, part = PY_S_F32;
        if (!py_to_scalar(c, n, &x->args[0], part, &re) ||
            !py_to_scalar(c, n, &x->args[1], part, &im))
            return false;
        *out = py_val_complex(c, to, py_slot(&re, 0), py_slot(&im, 0));
        return true;
    }
    bool keeps = (strcmp(text, "int") == 0 && py_scalar_is_int(from)) ||
                 (strcmp(text, "float") == 0 && py_scalar_is_float(from)) ||
                 (strcmp(text, "complex") == 0 && py_scalar_is_complex(from));
    if (strcmp(text, "complex") == 0 && from == PY_S_F32) to = PY_S_C64;
    if (keeps) {
        *out = x->args[0];
        return true;
    }
    if (strcmp(text, "bool") == 0) return py_truth(c, n, &x->args[0], out);
    return py_to_scalar(c, n, &x->args[0], to, out);
}

bool py_call_library(py_ctx *c, const char *name, py_call *x, py_val *out, bool *found) {
    py_entity *e = PY_NEW(c, py_entity, 1);
    simt_status status = c->host->library(c->host->context, name, e);
    if (status != SIMT_OK) return py_pass_failure(c, x->node, status);
    *found = e->kind == PY_ENTITY_FUNCTION;
    return !*found || call_function(c, x->node, e, x, out);
}

static bool call_unknown(py_ctx *c, const py_node *n, const py_entity *e, py_call *x, py_val *out) {
    bool found;
    if (!py_call_library(c, e->name, x, out, &found)) return false;
    return found || py_fail_unknown(c, n, e->name);
}

/* numpy.add(a, b, out) of arrays: the function of each element. */
typedef struct elementwise {
    const py_intrinsic *run;
    const py_call *call;
} elementwise;

static bool element_result(py_ctx *c, const py_node *at, const void *source, py_val *index,
                           int ndim, py_val *out) {
    const elementwise *e = source;
    py_call x = *e->call;
    x.args = PY_NEW(c, py_val, e->run->elements + 2); /* one more: some functions add an argument */
    x.nargs = e->run->elements;
    x.nkeywords = 0;
    for (uint32_t i = 0; i < e->run->elements; i++)
        if (!py_item_of_value(c, at, &e->call->args[i], index, ndim, &x.args[i])) return false;
    return e->run->run(c, &x, out);
}

/* Is this a call with arrays, the last one for the result? */
static bool is_elementwise(const py_intrinsic *i, const py_call *x) {
    uint32_t all = x->nargs + x->nkeywords;
    bool named = x->nkeywords == 1 && strcmp(x->keywords[0], "out") == 0;
    return i->elements > 0 && all == i->elements + 1u && (x->nkeywords == 0 || named) &&
           x->args[all - 1].type->kind == TY_ARRAY;
}

static bool call_elementwise(py_ctx *c, const py_node *n, const py_intrinsic *i, py_call *x,
                             py_val *out) {
    elementwise e = {.run = i, .call = x};
    *out = x->args[i->elements];
    for (uint32_t k = 0; k < i->elements; k++)
        if (x->args[k].type->kind == TY_ARRAY && x->args[k].type->ndim > out->type->ndim)
            return py_fail(c, n, "%s: an array of %u dimensions into one of %u", x->name,
                           x->args[k].type->ndim, out->type->ndim);
    return py_fill_array(c, n, out, element_result, &e);
}

static bool call_intrinsic(py_ctx *c, const py_node *n, const py_entity *e, py_call *x,
                           py_val *out) {
    const py_intrinsic *i = py_find_intrinsic(e->name);
    if (i == NULL) return call_unknown(c, n, e, x, out);
    if (i->value) return py_fail(c, n, "%s is a value: leave out the ()", e->name);
    x->extra = i->extra;
    x->name = e->name;
    if (is_elementwise(i, x)) return call_elementwise(c, n, i, x, out);
    return i->run(c, x, out);
}

bool py_call_expr(py_ctx *c, const py_node *n, py_val *out) {
    py_val f, of;
    py_call x = {.node = n};
    if (n->a->kind == PY_ATTRIBUTE) {
        bool found = false;
        if (!py_expr(c, n->a->a, &of) || !py_call_method(c, n, &of, out, &found)) return false;
        if (found) return true;
        if (!py_get_attribute(c, n->a, &of, &f)) return false;
    } else if (!py_expr(c, n->a, &f)) {
        return false;
    }
    if (f.type->kind != TY_ENTITY) return py_fail_call(c, n, &f);
    const py_entity *e = f.type->entity;
    bool is_function = e->kind == PY_ENTITY_FUNCTION || e->kind == PY_ENTITY_CLOSURE ||
                       e->kind == PY_ENTITY_OVERLOAD;
    if (!py_call_arguments(c, n, &x, is_function)) return false;
    switch (e->kind) {
    case PY_ENTITY_INTRINSIC: return call_intrinsic(c, n, e, &x, out);
    case PY_ENTITY_FUNCTION: return call_function(c, n, e, &x, out);
    case PY_ENTITY_OVERLOAD: return call_overload(c, n, e, &x, out);
    case PY_ENTITY_CLOSURE: return py_call_closure(c, n, e, &x, out);
    case PY_ENTITY_TYPE: return call_type(c, n, e, &x, out);
    case PY_ENTITY_NAMED: return py_call_named(c, n, e->names, &x, out);
    default: return py_fail_call(c, n, &f);
    }
}
