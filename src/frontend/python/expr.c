/* Expressions: conditionals, comparisons, tuples, slices; assignment to targets. */
#include "frontend/python/work.h"

enum { MOST_DEPTH = 300 };

/* ---- conditionals ---- */

static bool is_simple(py_ctx *c, const py_node *n);

static bool list_is_simple(py_ctx *c, const py_list *l) {
    for (uint32_t i = 0; i < l->count; i++)
        if (!is_simple(c, l->items[i])) return false;
    return true;
}

/* Whether evaluating n has no effect, cannot fault and is cheap: conditionals may do without branches. */
static bool is_simple(py_ctx *c, const py_node *n) {
    const py_var *v;
    if (n == NULL) return true;
    switch (n->kind) {
    case PY_CONSTANT: return true;
    case PY_NAME:
        v = py_find_var(c->frame, n->name);
        return v == NULL || v->val.type->kind != TY_OPTIONAL;
    case PY_BIN_OP:
        if (n->op == PY_POW || n->op == PY_FLOORDIV || n->op == PY_MOD) return false;
        return is_simple(c, n->a) && is_simple(c, n->b);
    case PY_UNARY_OP:
    case PY_ATTRIBUTE: return is_simple(c, n->a);
    case PY_COMPARE: return is_simple(c, n->a) && list_is_simple(c, &n->list);
    case PY_BOOL_OP:
    case PY_TUPLE: return list_is_simple(c, &n->list);
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
static bool arm_is_simple(py_ctx *c, const arm *a) {
    return a->value != NULL || (a->left == NULL && is_simple(c, a->node));
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
    bool simple = !assigns && arm_is_simple(c, &yes) && arm_is_simple(c, &no);
    bool ok = simple ? choose_by_select(c, m, py_slot(cond, 0), arms)
                     : py_walk_ways(c, m, py_slot(cond, 0), arm_expr, arms);
    if (!ok) return false;
    *out = m->vars[0]->val;
    if (out->type->kind != TY_MIXED) return true;
    return py_fail(c, at, "the two values have different types: %s and %s",
                   py_type_text(c, out->type->items[0]), py_type_text(c, out->type->items[1]));
}

static bool conditional(py_ctx *c, const py_node *n, py_val *out) {
    py_val truth;
    if (!py_condition(c, n->a, &truth)) return false;
    if (truth.is_const) return py_expr_or_none(c, truth.value.boolean ? n->b : n->c, out);
    return choose(c, n, &truth, (arm){.node = n->b}, (arm){.node = n->c}, out);
}

/* `a and b`: b where a holds, else a. Bools without side effects need no branch. */
static bool bool_op(py_ctx *c, const py_node *n, py_val *out) {
    py_val left, truth;
    if (!py_expr_or_none(c, n->list.items[0], &left)) return false;
    for (uint32_t i = 1; i < n->list.count; i++) {
        const py_node *right = n->list.items[i];
        if (!py_truth(c, n, &left, &truth)) return false;
        if (truth.is_const) {
            if (truth.value.boolean == (n->op == PY_OR)) break;
            if (!py_expr_or_none(c, right, &left)) return false;
            continue;
        }
        if (py_scalar_of(&left) == PY_S_BOOL && is_simple(c, right)) {
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
        simple = simple && is_simple(c, n->list.items[i]);
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

bool py_expr_list(py_ctx *c, const py_list *list, bool or_none, py_val **items, uint32_t *count) {
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
    if (!py_expr_list(c, &n->list, true, &items, &count)) return false;
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
        value = *val;
        if (!py_take_value(c, target, &value)) return false;
        return py_set_item(c, target, &of, &index, &value);
    case PY_ATTRIBUTE:
        value = *val;
        if (!py_take_value(c, target, &value)) return false;
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
    if (n->value.kind == PY_VALUE_OTHER) return py_fail(c, n, "a kernel cannot use this constant");
    *out = py_val_constant(c, &n->value, PY_S_NONE);
    return true;
}

static bool dispatch(py_ctx *c, const py_node *n, py_val *out) {
    py_val a, b;
    switch (n->kind) {
    case PY_CONSTANT: return constant(c, n, out);
    case PY_NAME: return py_name(c, n, out);
    case PY_ATTRIBUTE: return py_attribute(c, n, out);
    case PY_SUBSCRIPT: return subscript(c, n, out);
    case PY_BIN_OP:
        return py_expr(c, n->a, &a) && py_expr(c, n->b, &b) && py_binary(c, n, n->op, &a, &b, out);
    case PY_UNARY_OP:
        if (n->op == PY_NOT ? !py_expr_or_none(c, n->a, &a) : !py_expr(c, n->a, &a)) return false;
        return py_unary(c, n, n->op, &a, out);
    case PY_COMPARE: return compare(c, n, out);
    case PY_BOOL_OP: return bool_op(c, n, out);
    case PY_IF_EXP: return conditional(c, n, out);
    case PY_CALL: return py_call_expr(c, n, out);
    case PY_TUPLE: return tuple(c, n, out);
    case PY_SLICE: return slice(c, n, out);
    case PY_LAMBDA: return py_closure_value(c, n, out);
    case PY_NAMED: return py_expr_or_none(c, n->b, out) && py_assign(c, n->a, out);
    case PY_LIST:
        return py_fail(c, n,
                       "lists are not possible in a kernel: use a tuple, or "
                       "cuda.local.array / cuda.shared.array");
    default: return py_fail_unsupported(c, n);
    }
}

bool py_expr(py_ctx *c, const py_node *n, py_val *out) {
    return py_expr_or_none(c, n, out) && py_take_value(c, n, out);
}

bool py_condition(py_ctx *c, const py_node *n, py_val *truth) {
    py_val v;
    return py_expr_or_none(c, n, &v) && py_truth(c, n, &v, truth);
}

bool py_expr_or_none(py_ctx *c, const py_node *n, py_val *out) {
    source_pos pos = c->b.pos;
    if (++c->depth > MOST_DEPTH) {
        c->depth--;
        return py_fail(c, n, "the expression is nested more than %d deep", MOST_DEPTH);
    }
    if (c->emit) c->b.pos = py_pos(c, n);
    bool ok = dispatch(c, n, out);
    c->b.pos = pos;
    c->depth--;
    return ok;
}
