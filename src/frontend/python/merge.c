/* Where ways through the code meet: the end of an if, a loop's head and its exit, a function's return.
 *
 * A variable has the type of the value it was given last, as in Numba, and assignments never convert: that
 * happens here, where several values become one. Every way that comes adds its values' types and what is
 * known of them (py_arrive); then the walk goes on with what they have in common (py_go_on). Types that have
 * nothing in common make TY_MIXED, an error only where such a variable is used. How the values get there is
 * kernel/vars.h's: a merge's variables, slot by slot, have numbers there.
 *
 * Typing finds the merges of a frame in the order of its walk; lowering comes by in the same order and
 * takes types and constants from them, since a label's types are needed before the ways that end there.
 */
#include "frontend/python/work.h"

#include <string.h>

/* ---- which variables a piece of code assigns ---- */

typedef struct name_list {
    py_ctx *c;
    uint32_t scan; /* its number */
    py_var **vars;
    uint32_t n;
    const char **out; /* instead: names, of which the assigned ones go */
    uint32_t nout;
} name_list;

static void add_var(name_list *l, py_var *v) {
    if (v->scan == l->scan) return;
    v->scan = l->scan;
    l->vars = py_grow(l->c, l->vars, l->n, sizeof *l->vars);
    l->vars[l->n++] = v;
}

static void add_name(name_list *l, const char *name) {
    for (uint32_t i = 0; i < l->nout; i++)
        if (strcmp(l->out[i], name) == 0) {
            l->out[i] = l->out[--l->nout];
            return;
        }
    if (l->out == NULL) add_var(l, py_get_var(l->c, name));
}

static void scan_target(name_list *l, const py_node *n) {
    if (n->kind == PY_NAME) add_name(l, n->name);
    if (n->kind == PY_STARRED) scan_target(l, n->a);
    if (n->kind == PY_TUPLE || n->kind == PY_LIST)
        for (uint32_t i = 0; i < n->list.count; i++) scan_target(l, n->list.items[i]);
}

static void scan(name_list *l, const py_node *n) {
    if (n == NULL || n->kind == PY_LAMBDA) return;
    if (n->kind == PY_FUNCTION) {
        add_name(l, n->name);
        return;
    }
    if (n->kind == PY_ASSIGN)
        for (uint32_t i = 0; i < n->list.count; i++) scan_target(l, n->list.items[i]);
    if (n->kind == PY_AUG_ASSIGN || n->kind == PY_FOR || n->kind == PY_NAMED ||
        (n->kind == PY_ANN_ASSIGN && n->b != NULL))
        scan_target(l, n->a);
    scan(l, n->a);
    scan(l, n->b);
    scan(l, n->c);
    for (uint32_t i = 0; i < n->list.count; i++) scan(l, n->list.items[i]);
    for (uint32_t i = 0; i < n->list2.count; i++) scan(l, n->list2.items[i]);
}

static void scan_all(name_list *l, const py_list *statements) {
    for (uint32_t i = 0; i < statements->count; i++) scan(l, statements->items[i]);
}

py_var **py_assigned(py_ctx *c, const py_list *statements, uint32_t *n) {
    name_list l = {.c = c, .scan = ++c->scans};
    scan_all(&l, statements);
    *n = l.n;
    return l.vars;
}

void py_drop_assigned(py_ctx *c, const py_list *statements, const char **names, uint32_t *n) {
    if (*n == 0) return;
    name_list l = {.c = c, .out = names, .nout = *n};
    scan_all(&l, statements);
    *n = l.nout;
}

/* ---- merges ---- */

/* The next one of the frame's walk: made while typing, found again afterwards. */
static py_merge *next_merge(py_ctx *c, const py_node *at) {
    py_frame *f = c->frame;
    uint32_t k = f->cursor++;
    if (k < f->nmerges && f->merges[k]->at == at) return f->merges[k];
    c->lost = c->emit;
    f->merges = py_grow(c, f->merges, k, sizeof *f->merges);
    f->nmerges = k + 1;
    f->merges[k] = PY_NEW(c, py_merge, 1);
    *f->merges[k] = (py_merge){.at = at};
    return f->merges[k];
}

py_merge *py_merge_new(py_ctx *c, const py_node *at, py_var *var, bool assigns) {
    py_merge *m = next_merge(c, at);
    if (m->vals == NULL) { /* else known from an earlier walk */
        py_list one = {(py_node *[]){(py_node *)at}, assigns ? 1 : 0};
        name_list l = {.c = c, .scan = ++c->scans};
        if (var != NULL) add_var(&l, var);
        scan_all(&l, &one);
        m->vars = l.vars;
        m->nvars = l.n;
        m->vals = PY_NEW(c, py_val, m->nvars + 1);
    }
    for (uint32_t i = 0; i < m->nvars && (!c->emit || c->lost); i++)
        m->vals[i] = (py_val){.type = &py_type_unknown};
    m->reached = m->is_head = false;
    m->counts = 0;
    m->counter = NULL;
    return m;
}

/* What m carries gets numbers, of the types that typing has found; counts: a counter goes before it. */
static void carry(py_ctx *c, py_merge *m, bool counts) {
    uint32_t n = counts ? 1 : 0;
    m->counts = n;
    for (uint32_t i = 0; i < m->nvars; i++) n += py_type_slots(m->vals[i].type);
    uint32_t *numbers = PY_NEW(c, uint32_t, n + 1), k = 0;
    if (counts) numbers[k++] = vars_add(&c->carried, IR_I64);
    for (uint32_t i = 0; i < m->nvars; i++)
        for (uint32_t s = 0; s < py_type_slots(m->vals[i].type); s++)
            numbers[k++] = vars_add(&c->carried, py_type_slot(m->vals[i].type, s));
    m->label = vars_carry(numbers, n);
}

void py_begin_block(py_ctx *c, py_merge *m) {
    if (!c->emit) return;
    carry(c, m, false);
    vars_begin_block(&c->carried, &m->label);
}

static const py_type *unite(py_ctx *c, const py_val *a, const py_val *b) {
    const py_type *t = py_type_unify(c, a->type, b->type);
    bool same = a->is_const && b->is_const && t != NULL && py_constant_equal(&a->value, &b->value);
    if (py_is_text(a) && py_is_text(b) && !same) {
        /* constants that differ, or a constant and an element */
        t = py_chars_unify(c, py_text_type(c, a), py_text_type(c, b));
        if (t != NULL) return t;
    }
    if (t != NULL && (a->type->kind != TY_STRING || b->type->kind != TY_STRING ||
                      py_constant_equal(&a->value, &b->value)))
        return t;
    if (a->type->kind == TY_MIXED) return a->type;
    if (b->type->kind == TY_MIXED) return b->type;
    const py_type **items = PY_NEW(c, const py_type *, 2);
    items[0] = a->type;
    items[1] = b->type;
    return py_type_tuple(c, items, 2, TY_MIXED);
}

/* Adds the value y of a way. Where a way brings none, the others' type was taken for it: see py_is_settled. */
static void meet(py_ctx *c, py_var *var, py_val *x, const py_val *y) {
    bool x_known = x->type->kind != TY_UNKNOWN, y_known = y->type->kind != TY_UNKNOWN;
    py_val out = {.type = unite(c, x, y), .value = x_known ? x->value : y->value};
    if (x_known != y_known) {
        out.is_const = out.type->kind == TY_STRING;
        if (var->guess != NULL && !py_type_equal(var->guess, out.type))
            var->guess = &py_type_unknown;
        if (var->guess == NULL) var->guess = out.type;
    } else {
        out.nonneg = x->nonneg && y->nonneg;
        out.is_const = x->is_const && y->is_const && py_constant_equal(&x->value, &y->value);
        if (x->origin == y->origin) out.origin = x->origin;
    }
    *x = out;
}

void py_add_way(py_ctx *c, py_merge *m) {
    for (uint32_t i = 0; i < m->nvars; i++) {
        py_val *x = &m->vals[i], typed = *x;
        if (m->reached)
            meet(c, m->vars[i], x, &m->vars[i]->val);
        else
            *x = m->vars[i]->val;
        if (!c->emit) continue;
        x->type = typed.type;
        x->is_const = typed.is_const;
        x->value = typed.value;
    }
    m->reached = true;
}

/* What the variables are on this way is what m carries, in its types. */
static bool hand_on(py_ctx *c, const py_merge *m) {
    const uint32_t *number = m->label.carried + m->counts;
    for (uint32_t i = 0; i < m->nvars; i++) {
        const py_type *t = m->vals[i].type;
        uint32_t slots = py_type_slots(t);
        py_val v = m->vars[i]->val;
        bool assigned = !c->dead && v.type->kind != TY_UNKNOWN;
        if (slots > 0 && assigned && !py_convert(c, m->at, &v, t, &v)) return false;
        for (uint32_t s = 0; s < slots; s++)
            vars_set(&c->carried, *number++,
                     assigned ? v.v[s] : py_emit_zero(c, py_type_slot(t, s)));
    }
    return true;
}

bool py_arrive(py_ctx *c, py_merge *m) {
    if (!c->dead) py_add_way(c, m);
    if (c->emit && !vars_ended(&c->carried)) {
        if (!hand_on(c, m)) return false;
        if (m->counter != NULL)
            vars_set(&c->carried, m->label.carried[0],
                     py_emit_binary(c, IR_ADD, m->counter, m->step));
        vars_arrive(&c->carried, &m->label);
    }
    c->dead = true;
    return true;
}

/* What is known of a variable at a loop's head: of later rounds no more than the type. */
static py_val later_round(const py_val *v) {
    return v->type->kind == TY_STRING ? *v : (py_val){.type = v->type};
}

static void set_values(py_ctx *c, py_merge *m) {
    uint32_t k = m->counts;
    for (uint32_t i = 0; i < m->nvars; i++) {
        py_val v = m->is_head ? later_round(&m->vals[i]) : m->vals[i];
        uint32_t n = py_type_slots(v.type);
        v.items = NULL;
        v.v = c->emit ? PY_NEW(c, ir_value *, n + 1) : NULL;
        for (uint32_t s = 0; c->emit && s < n; s++)
            v.v[s] = vars_get(&c->carried, m->label.carried[k++]);
        v.nonneg = v.nonneg || py_scalar_is_unsigned(py_scalar_of(&v));
        m->vars[i]->val = v;
    }
}

void py_go_on(py_ctx *c, py_merge *m) {
    if (c->emit) vars_end(&c->carried, &m->label);
    c->dead = !m->reached;
    if (m->reached) set_values(c, m);
}

static bool walk_way(py_ctx *c, py_way way, const void *of, int which, py_val *value, bool *ended) {
    if (way(c, of, which, value)) return true;
    return *ended = py_way_ends(c);
}

bool py_walk_ways(py_ctx *c, py_merge *m, ir_value *cond, py_way way, const void *of) {
    py_val *before = PY_NEW(c, py_val, m->nvars + 1), *value = NULL;
    for (uint32_t i = 0; i < m->nvars; i++) before[i] = m->vars[i]->val;
    if (m->nvars > 0) value = &m->vars[0]->val;
    if (c->emit) carry(c, m, false);
    if (c->emit) vars_begin_if(&c->carried, cond, &m->label);
    bool ended = false;
    if (!walk_way(c, way, of, 0, value, &ended) || !py_arrive(c, m)) return false;
    for (uint32_t k = 0; k < m->nvars; k++) m->vars[k]->val = before[k];
    c->dead = false;
    if (c->emit) vars_else(&c->carried, &m->label);
    if (!walk_way(c, way, of, 1, value, &ended) || !py_arrive(c, m)) return false;
    py_go_on(c, m);
    c->stops = ended && !m->reached;
    return !c->stops;
}

bool py_begin_loop(py_ctx *c, py_merge *head, py_merge *done, ir_value *first, ir_value *step) {
    py_add_way(c, head);
    if (!c->emit) return true;
    carry(c, head, first != NULL);
    carry(c, done, false);
    if (!hand_on(c, head)) return false;
    if (first != NULL) vars_set(&c->carried, head->label.carried[0], first);
    vars_begin_loop(&c->carried, &head->label, &done->label);
    if (first != NULL) head->counter = vars_get(&c->carried, head->label.carried[0]);
    head->step = step;
    return true;
}

void py_begin_round(py_ctx *c, py_merge *head, const py_type **types) {
    for (uint32_t i = 0; i < head->nvars; i++) types[i] = head->vals[i].type;
    set_values(c, head);
    c->dead = false;
}

bool py_is_settled(const py_merge *head, const py_type **types, bool used_unknown) {
    for (uint32_t i = 0; i < head->nvars; i++) {
        const py_type *now = head->vals[i].type, *guess = head->vars[i]->guess;
        if (py_type_equal(types[i], now)) continue;
        if (types[i]->kind != TY_UNKNOWN || used_unknown) return false;
        if (guess != NULL && !py_type_equal(guess, now)) return false;
    }
    return true;
}

void py_take_from_head(py_merge *m, const py_merge *head) {
    for (uint32_t i = 0; i < m->nvars; i++)
        if (m->vals[i].type->kind == TY_UNKNOWN) m->vals[i] = later_round(&head->vals[i]);
}
