/* Expressions: names, attributes, conditionals, calls. */
#include "frontend/python/work.h"

#include <string.h>

enum { MOST_DEPTH = 300 };

/* ---- names ---- */

/* What the host said of a name of the function (`of` NULL) or of an attribute: asked once. */
struct py_known {
    struct py_known *next;
    const py_entity *of;
    const char *name;
    py_entity entity;
};

static py_entity *find_known(py_ctx *c, const py_entity *of, const char *name) {
    struct py_known *k = c->frame->known;
    while (k != NULL && (k->of != of || strcmp(k->name, name) != 0)) k = k->next;
    return k != NULL ? &k->entity : NULL;
}

static py_entity *add_known(py_ctx *c, const py_entity *of, const char *name) {
    struct py_known *k = PY_NEW(c, struct py_known, 1);
    *k = (struct py_known){.next = c->frame->known, .of = of, .name = name};
    c->frame->known = k;
    return &k->entity;
}

static bool entity_value(py_ctx *c, const py_node *at, const py_entity *e, py_val *out) {
    switch (e->kind) {
    case PY_ENTITY_CONSTANT:
        if (e->value.kind == PY_VALUE_BIG_INT)
            return py_fail(c, at, "'%s' is an integer beyond 64 bits", e->name ? e->name : "?");
        *out = py_val_constant(c, &e->value, e->type);
        if (out->type->kind == TY_SCALAR && out->type->scalar == PY_S_NONE)
            return py_fail(c, at, "a kernel cannot use this constant");
        return true;
    case PY_ENTITY_TUPLE: {
        py_val *items = PY_NEW(c, py_val, e->count + 1);
        for (uint32_t i = 0; i < e->count; i++)
            if (!entity_value(c, at, &e->items[i], &items[i])) return false;
        *out =
            e->names != NULL ? py_val_named(c, items, e->names) : py_val_tuple(c, items, e->count);
        return true;
    }
    case PY_ENTITY_ARRAY: return py_array_constant(c, at, e, out);
    case PY_ENTITY_INTRINSIC: {
        const py_intrinsic *i = py_find_intrinsic(e->name);
        if (i != NULL && i->value) {
            py_call x = {.node = at, .name = e->name, .extra = i->extra};
            return i->run(c, &x, out);
        }
        break;
    }
    default: break;
    }
    *out = py_val_entity(c, e);
    return true;
}

static bool free_name(py_ctx *c, const py_node *n, py_val *out) {
    py_entity *e = find_known(c, NULL, n->name);
    if (e == NULL) {
        e = add_known(c, NULL, n->name);
        simt_status status = c->host->lookup(c->host->context, c->frame->fn, n->name, e);
        if (status != SIMT_OK) return py_fail_name(c, n, status);
    }
    return entity_value(c, n, e, out);
}

static bool name(py_ctx *c, const py_node *n, py_val *out) {
    py_var *v = py_find_var(c->frame, n->name);
    if (v == NULL) return free_name(c, n, out);
    const py_type *t = v->val.type;
    if (t->kind == TY_UNKNOWN) {
        if (c->unknown == NULL) c->unknown = n;
        return false;
    }
    if (t->kind == TY_MIXED && t->items[0]->kind == TY_STRING)
        return py_fail(c, n,
                       "variable '%s' is one string or another here, by the way taken: "
                       "kernels do not compute with strings",
                       n->name);
    if (t->kind == TY_MIXED)
        return py_fail(c, n, "variable '%s' is %s or %s here, by the way taken: use two names",
                       n->name, py_type_text(c, t->items[0]), py_type_text(c, t->items[1]));
    *out = v->val;
    return true;
}

/* ---- attributes ---- */

static bool entity_attribute(py_ctx *c, const py_node *n, const py_entity *of, py_val *out) {
    py_entity *e = find_known(c, of, n->name);
    if (e != NULL) return entity_value(c, n, e, out);
    e = add_known(c, of, n->name);
    if (of->kind == PY_ENTITY_INTRINSIC) { /* ours first: methods of groups */
        const char *full = arena_printf(c->mem, "%s.%s", of->name, n->name);
        if (full != NULL && py_find_intrinsic(full) != NULL) {
            *e = (py_entity){.kind = PY_ENTITY_INTRINSIC, .name = full};
            return entity_value(c, n, e, out);
        }
    }
    if (of->kind != PY_ENTITY_MODULE && of->kind != PY_ENTITY_INTRINSIC &&
        of->kind != PY_ENTITY_OBJECT)
        return py_fail(c, n, "%s has no attribute '%s' in a kernel",
                       py_type_text(c, py_type_entity(c, of)), n->name);
    simt_status status = c->host->attribute(c->host->context, of, n->name, e);
    if (status != SIMT_OK) return py_fail_member(c, n, of, status);
    return entity_value(c, n, e, out);
}

static bool scalar_attribute(py_ctx *c, const py_node *n, const py_val *of, py_val *out,
                             bool *found) {
    py_scalar s = py_scalar_of(of), part = py_scalar_part(s);
    bool imaginary = strcmp(n->name, "imag") == 0;
    *found = imaginary || strcmp(n->name, "real") == 0;
    if (!*found) return true;
    if (!py_scalar_is_complex(s)) {
        if (imaginary)
            *out = py_val_scalar(c, s, py_emit_zero(c, py_scalar_ir(s)));
        else
            *out = *of;
        return true;
    }
    *out = py_val_scalar(c, part, py_slot(of, imaginary));
    return true;
}

bool py_get_attribute(py_ctx *c, const py_node *n, const py_val *of, py_val *out) {
    bool found = false;
    switch ((py_type_kind)of->type->kind) {
    case TY_ENTITY: return entity_attribute(c, n, of->type->entity, out);
    case TY_RECORD: return py_record_get(c, n, of, n->name, out);
    case TY_TUPLE: found = py_named_attribute(of, n->name, out); break;
    case TY_ARRAY:
        if (!py_array_attribute(c, n, of, n->name, out, &found)) return false;
        break;
    case TY_SCALAR:
        if (!scalar_attribute(c, n, of, out, &found)) return false;
        break;
    default: break;
    }
    return found || py_fail_attribute(c, n, of->type);
}

bool py_set_attribute(py_ctx *c, const py_node *n, const py_val *of, const py_val *val) {
    if (of->type->kind == TY_RECORD) return py_record_set(c, n, of, n->name, val);
    const char *instead = of->type->kind == TY_TUPLE   ? ": make a new one"
                          : of->type->kind == TY_ARRAY ? ": assign to elements"
                                                       : "";
    return py_fail(c, n, "the attribute '%s' of %s cannot be assigned in a kernel%s", n->name,
                   py_type_text(c, of->type), instead);
}

static bool attribute(py_ctx *c, const py_node *n, py_val *out) {
    py_val of;
    return py_expr(c, n->a, &of) && py_get_attribute(c, n, &of, out);
}

/* ---- conditionals ---- */

static bool list_is_simple(const py_list *l) {
    for (uint32_t i = 0; i < l->count; i++)
        if (!py_is_simple(l->items[i])) return false;
    return true;
}

bool py_is_simple(const py_node *n) {
    if (n == NULL) return true;
    switch (n->kind) {
    case PY_CONSTANT:
    case PY_NAME: return true;
    case PY_BIN_OP:
        if (n->op == PY_POW || n->op == PY_FLOORDIV || n->op == PY_MOD) return false;
        return py_is_simple(n->a) && py_is_simple(n->b);
    case PY_UNARY_OP:
    case PY_ATTRIBUTE: return py_is_simple(n->a);
    case PY_COMPARE: return py_is_simple(n->a) && list_is_simple(&n->list);
    case PY_BOOL_OP:
    case PY_TUPLE: return list_is_simple(&n->list);
    default: return false;
    }
}

static bool has_walrus(const py_node *n) {
    if (n == NULL) return false;
    if (n->kind == PY_NAMED) return true;
    for (uint32_t i = 0; i < n->list.count; i++)
        if (has_walrus(n->list.items[i])) return true;
    for (uint32_t i = 0; i < n->list2.count; i++)
        if (has_walrus(n->list2.items[i])) return true;
    return has_walrus(n->a) || has_walrus(n->b) || has_walrus(n->c);
}

/* One side of a conditional: a value, or what is left to evaluate of an expression. */
typedef struct arm {
    const py_node *node;
    const py_val *value; /* or NULL */
    const py_val *left;  /* of a chained comparison: the operand before operand `from` */
    uint32_t from;
} arm;

static bool compare_from(py_ctx *c, const py_node *n, const py_val *left, uint32_t from,
                         py_val *out);

static bool arm_assigns(const arm *a) { return a->value == NULL && has_walrus(a->node); }
static bool arm_is_simple(const arm *a) {
    return a->value != NULL || (a->left == NULL && py_is_simple(a->node));
}

static bool arm_expr(py_ctx *c, const void *of, int way, py_val *out) {
    const arm *a = (const arm *)of + way;
    if (a->left != NULL) return compare_from(c, a->node, a->left, a->from, out);
    if (a->value == NULL) return py_expr_or_none(c, a->node, out);
    *out = *a->value;
    return true;
}

/* Both arms are evaluated, the value is selected. */
static bool choose_by_select(py_ctx *c, py_merge *m, ir_value *cond, const arm arms[2]) {
    py_val *value = &m->vars[0]->val, ways[2];
    for (int i = 0; i < 2; i++) {
        if (!arm_expr(c, arms, i, value)) return false;
        py_add_way(c, m);
        ways[i] = *value;
    }
    *value = m->vals[0];
    if (!c->emit) return true;
    uint32_t n = py_type_slots(value->type);
    value->v = PY_NEW(c, ir_value *, n + 1);
    for (int i = 0; i < 2; i++)
        if (!py_convert(c, m->at, &ways[i], value->type, &ways[i])) return false;
    for (uint32_t k = 0; k < n; k++)
        value->v[k] = py_emit_select(c, cond, ways[0].v[k], ways[1].v[k]);
    return true;
}

/* cond ? yes : no. The value is a variable without a name, merged as others are (merge.c). */
static bool choose(py_ctx *c, const py_node *at, const py_val *cond, arm yes, arm no, py_val *out) {
    const arm arms[2] = {yes, no};
    bool assigns = arm_assigns(&yes) || arm_assigns(&no);
    py_var *unnamed = PY_NEW(c, py_var, 1);
    py_merge *m = py_merge_new(c, at, unnamed, assigns);
    bool simple = !assigns && arm_is_simple(&yes) && arm_is_simple(&no);
    bool ok = simple ? choose_by_select(c, m, py_slot(cond, 0), arms)
                     : py_walk_ways(c, m, py_slot(cond, 0), arm_expr, arms);
    if (!ok) return false;
    *out = m->vars[0]->val;
    if (out->type->kind != TY_MIXED) return true;
    return py_fail(c, at, "the two values have different types: %s and %s",
                   py_type_text(c, out->type->items[0]), py_type_text(c, out->type->items[1]));
}

static bool conditional(py_ctx *c, const py_node *n, py_val *out) {
    py_val test, truth;
    if (!py_expr(c, n->a, &test) || !py_truth(c, n->a, &test, &truth)) return false;
    if (truth.is_const) return py_expr(c, truth.value.boolean ? n->b : n->c, out);
    return choose(c, n, &truth, (arm){.node = n->b}, (arm){.node = n->c}, out);
}

/* `a and b`: b where a holds, else a. Bools without side effects need no branch. */
static bool bool_op(py_ctx *c, const py_node *n, py_val *out) {
    py_val left, truth;
    if (!py_expr(c, n->list.items[0], &left)) return false;
    for (uint32_t i = 1; i < n->list.count; i++) {
        const py_node *right = n->list.items[i];
        if (!py_truth(c, n, &left, &truth)) return false;
        if (truth.is_const) {
            if (truth.value.boolean == (n->op == PY_OR)) break;
            if (!py_expr(c, right, &left)) return false;
            continue;
        }
        if (py_scalar_of(&left) == PY_S_BOOL && py_is_simple(right)) {
            py_val r;
            if (!py_expr(c, right, &r)) return false;
            if (py_scalar_of(&r) == PY_S_BOOL) {
                left = py_val_scalar(c, PY_S_BOOL,
                                     py_emit_binary(c, n->op == PY_AND ? IR_AND : IR_OR,
                                                    py_slot(&left, 0), py_slot(&r, 0)));
                continue;
            }
        }
        py_val value;
        arm next = {.node = right}, known = {.value = &left};
        bool both = n->op == PY_AND;
        if (!choose(c, n, &truth, both ? next : known, both ? known : next, &value)) return false;
        left = value;
    }
    *out = left;
    return true;
}

/* a < b < c: each operand once, left to right; what follows a comparison that fails is not evaluated. */
static bool compare_from(py_ctx *c, const py_node *n, const py_val *left, uint32_t from,
                         py_val *out) {
    py_val right, rest, no = py_val_bool(c, false);
    if (!py_expr_or_none(c, n->list.items[from], &right)) return false;
    if (!py_compare(c, n, n->ops[from], left, &right, out)) return false;
    if (from + 1 == n->list.count || (out->is_const && !out->value.boolean)) return true;
    if (out->is_const) return compare_from(c, n, &right, from + 1, out);
    bool simple = true;
    for (uint32_t i = from + 1; i < n->list.count; i++)
        simple = simple && py_is_simple(n->list.items[i]);
    py_val cond = *out;
    if (!simple)
        return choose(c, n, &cond, (arm){.node = n, .left = &right, .from = from + 1},
                      (arm){.value = &no}, out);
    if (!compare_from(c, n, &right, from + 1, &rest)) return false;
    *out = py_val_scalar(c, PY_S_BOOL,
                         py_emit_binary(c, IR_AND, py_slot(&cond, 0), py_slot(&rest, 0)));
    return true;
}

static bool compare(py_ctx *c, const py_node *n, py_val *out) {
    py_val left;
    return py_expr_or_none(c, n->a, &left) && compare_from(c, n, &left, 0, out);
}

/* ---- tuples, slices, subscripts ---- */

/* The values of a list of expressions, with the items of `*t` in its place. */
static bool evaluate_list(py_ctx *c, const py_list *list, bool or_none, py_val **items,
                          uint32_t *count) {
    *items = NULL;
    *count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const py_node *n = list->items[i];
        bool starred = n->kind == PY_STARRED;
        py_val v;
        if (starred) n = n->a;
        if (!(or_none ? py_expr_or_none(c, n, &v) : py_expr(c, n, &v))) return false;
        if (starred && v.type->kind != TY_TUPLE)
            return py_fail(c, n, "only a tuple can be unpacked, not %s", py_type_text(c, v.type));
        for (uint32_t k = 0; k < (starred ? v.type->count : 1); k++) {
            *items = py_grow(c, *items, *count, sizeof v);
            (*items)[(*count)++] = starred ? py_val_item(&v, k) : v;
        }
    }
    return true;
}

static bool tuple(py_ctx *c, const py_node *n, py_val *out) {
    py_val *items;
    uint32_t count;
    if (!evaluate_list(c, &n->list, false, &items, &count)) return false;
    *out = py_val_tuple(c, items, count);
    return true;
}

static bool slice(py_ctx *c, const py_node *n, py_val *out) {
    const py_node *parts[3] = {n->a, n->b, n->c};
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_SLICE};
    py_val *items = PY_NEW(c, py_val, 3);
    *out = (py_val){.type = t, .items = items};
    if (c->emit) out->v = PY_NEW(c, ir_value *, 3);
    for (int i = 0; i < 3; i++) {
        py_val v = py_val_none();
        if (parts[i] != NULL && !py_expr(c, parts[i], &v)) return false;
        if (v.type->kind == TY_NONE) {
            items[i] = py_val_int(c, i == 2);
        } else {
            if (!py_to_index(c, parts[i], &v, "a slice's bound", &items[i])) return false;
            if (i == 2 && v.is_const && v.value.kind == PY_VALUE_INT && v.value.integer == 0)
                return py_fail(c, parts[i], "slice step cannot be zero");
            t->given |= (uint8_t)(1 << i);
        }
        if (c->emit) out->v[i] = items[i].v[0];
    }
    if ((t->given & 4) && items[2].is_const && items[2].value.integer == 1) t->given &= 3;
    return true;
}

static bool subscript(py_ctx *c, const py_node *n, py_val *out) {
    py_val of, index;
    if (!py_expr(c, n->a, &of) || !py_expr(c, n->b, &index)) return false;
    return py_get_item(c, n, &of, &index, out);
}

/* ---- calls ---- */

static bool evaluate_arguments(py_ctx *c, const py_node *n, py_call *x, bool or_none) {
    if (!evaluate_list(c, &n->list, or_none, &x->args, &x->nargs)) return false;
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

static bool bind_arguments(py_ctx *c, const py_node *at, const py_function *fn, const py_call *x,
                           py_val *bound, uint32_t *count) {
    const py_node *a = fn->tree->a;
    uint32_t n = a->list.count + a->list2.count;
    if (a->b != NULL || a->list3.count > 0)
        return py_fail(c, at, "%s: keyword-only parameters and ** are not possible", fn->name);
    bool given[64] = {0};
    if (n >= 64) return py_fail(c, at, "%s: more than 63 parameters", fn->name);
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
        if (!entity_value(c, at, d, &bound[i])) return false;
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
    py_val bound[65];
    uint32_t count = 0;
    simt_status status = c->host->function(c->host->context, e, &fn);
    if (status != SIMT_OK) return py_pass_failure(c, n, status);
    if (!bind_arguments(c, n, fn, x, bound, &count)) return false;
    return py_call_function(c, n, fn, bound, count, out);
}

/* Python's own constructors keep some types (Numba): int of an integer, float of a float. */
static bool call_type(py_ctx *c, const py_node *n, const py_entity *e, py_call *x, py_val *out) {
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

static bool call_intrinsic(py_ctx *c, const py_node *n, const py_entity *e, py_call *x,
                           py_val *out) {
    const py_intrinsic *i = py_find_intrinsic(e->name);
    if (i == NULL) return py_fail_unknown(c, n, e->name);
    if (i->value) return py_fail(c, n, "%s is a value: leave out the ()", e->name);
    x->extra = i->extra;
    x->name = e->name;
    return i->run(c, x, out);
}

/* z.conjugate(), the one method of numbers. */
static bool conjugate(py_ctx *c, const py_node *n, py_val *out, bool *found) {
    const py_node *method = n->a;
    *found = false;
    if (method->kind != PY_ATTRIBUTE || strcmp(method->name, "conjugate") != 0) return true;
    if (n->list.count > 0 || n->list2.count > 0) return true;
    if (!py_expr(c, method->a, out)) return false;
    py_scalar s = py_scalar_of(out);
    *found = s != PY_S_NONE;
    if (py_scalar_is_complex(s))
        *out = py_val_complex(c, s, py_slot(out, 0), py_emit_unary(c, IR_FNEG, py_slot(out, 1)));
    return true;
}

static bool call(py_ctx *c, const py_node *n, py_val *out) {
    py_val f;
    py_call x = {.node = n};
    bool found;
    if (!conjugate(c, n, out, &found)) return false;
    if (found) return true;
    if (!py_expr(c, n->a, &f)) return false;
    if (f.type->kind != TY_ENTITY) return py_fail_call(c, n, &f);
    const py_entity *e = f.type->entity;
    if (!evaluate_arguments(c, n, &x, e->kind == PY_ENTITY_FUNCTION)) return false;
    switch (e->kind) {
    case PY_ENTITY_INTRINSIC: return call_intrinsic(c, n, e, &x, out);
    case PY_ENTITY_FUNCTION: return call_function(c, n, e, &x, out);
    case PY_ENTITY_TYPE: return call_type(c, n, e, &x, out);
    case PY_ENTITY_NAMED: return py_call_named(c, n, e->names, &x, out);
    default: return py_fail_call(c, n, &f);
    }
}

/* ---- assignment ---- */

static bool assign_items(py_ctx *c, const py_node *target, const py_val *val) {
    uint32_t n = target->list.count, star = n;
    if (val->type->kind != TY_TUPLE)
        return py_fail(c, target, "%s cannot be unpacked into %u names", py_type_text(c, val->type),
                       n);
    uint32_t count = val->type->count;
    for (uint32_t i = 0; i < n; i++)
        if (target->list.items[i]->kind == PY_STARRED) star = i;
    if (star == n ? count != n : count + 1 < n)
        return py_fail(c, target, "%u values for %u names", count, n);
    for (uint32_t i = 0, from = 0; i < n; i++) {
        const py_node *t = target->list.items[i];
        py_val item;
        if (i == star) {
            uint32_t rest = count + 1 - n;
            py_val *items = PY_NEW(c, py_val, rest + 1);
            for (uint32_t k = 0; k < rest; k++) items[k] = py_val_item(val, from + k);
            item = py_val_tuple(c, items, rest);
            from += rest;
            t = t->a;
        } else {
            item = py_val_item(val, from++);
        }
        if (!py_assign(c, t, &item)) return false;
    }
    return true;
}

bool py_assign(py_ctx *c, const py_node *target, const py_val *val) {
    py_val of, index, value;
    switch (target->kind) {
    case PY_NAME: py_get_var(c, target->name)->val = *val; return true;
    case PY_TUPLE:
    case PY_LIST: return assign_items(c, target, val);
    case PY_SUBSCRIPT:
        if (!py_expr(c, target->a, &of) || !py_expr(c, target->b, &index)) return false;
        value = py_val_present(val);
        return py_set_item(c, target, &of, &index, &value);
    case PY_ATTRIBUTE:
        value = py_val_present(val);
        return py_expr(c, target->a, &of) && py_set_attribute(c, target, &of, &value);
    default: return py_fail(c, target, "a kernel cannot assign to this");
    }
}

/* ---- all of it ---- */

static bool constant(py_ctx *c, const py_node *n, py_val *out) {
    if (n->value.kind == PY_VALUE_ELLIPSIS) {
        *out = (py_val){.type = &py_type_string, .is_const = true, .value = n->value};
        return true;
    }
    if (n->value.kind == PY_VALUE_BIG_INT) return py_fail(c, n, "an integer beyond 64 bits");
    if (n->value.kind == PY_VALUE_OTHER)
        return py_fail(c, n, "a kernel cannot use this constant: put bytes into an array");
    *out = py_val_constant(c, &n->value, PY_S_NONE);
    return true;
}

static bool dispatch(py_ctx *c, const py_node *n, py_val *out) {
    py_val a, b;
    switch (n->kind) {
    case PY_CONSTANT: return constant(c, n, out);
    case PY_NAME: return name(c, n, out);
    case PY_ATTRIBUTE: return attribute(c, n, out);
    case PY_SUBSCRIPT: return subscript(c, n, out);
    case PY_BIN_OP:
        return py_expr(c, n->a, &a) && py_expr(c, n->b, &b) && py_binary(c, n, n->op, &a, &b, out);
    case PY_UNARY_OP: return py_expr(c, n->a, &a) && py_unary(c, n, n->op, &a, out);
    case PY_COMPARE: return compare(c, n, out);
    case PY_BOOL_OP: return bool_op(c, n, out);
    case PY_IF_EXP: return conditional(c, n, out);
    case PY_CALL: return call(c, n, out);
    case PY_TUPLE: return tuple(c, n, out);
    case PY_SLICE: return slice(c, n, out);
    case PY_NAMED: return py_expr_or_none(c, n->b, out) && py_assign(c, n->a, out);
    case PY_LIST:
        return py_fail(c, n,
                       "lists are not possible in a kernel: use a tuple, or "
                       "cuda.local.array / cuda.shared.array");
    default: return py_fail_unsupported(c, n);
    }
}

bool py_expr(py_ctx *c, const py_node *n, py_val *out) {
    if (!py_expr_or_none(c, n, out)) return false;
    *out = py_val_present(out);
    return true;
}

bool py_expr_or_none(py_ctx *c, const py_node *n, py_val *out) {
    source_pos pos = c->b.pos;
    if (++c->depth > MOST_DEPTH) {
        c->depth--;
        return py_fail(c, n, "the expression is nested too deeply");
    }
    if (c->emit) c->b.pos = py_pos(c, n);
    bool ok = dispatch(c, n, out);
    c->b.pos = pos;
    c->depth--;
    return ok;
}
