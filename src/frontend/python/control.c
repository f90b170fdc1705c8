/* Statements. Control flow maps to the IR's constructs: a construct that assigns variables has their values as
 * results, a loop carries them; break, continue and return are branches to the construct they leave.
 *
 * While typing, the same walk goes through every branch once and only merges what is known of variables.
 */
#include "frontend/python/work.h"

#include <string.h>

/* ---- which variables a piece of code assigns ---- */

typedef struct name_list {
    py_ctx *c;
    py_var **vars;
    uint32_t n, capacity;
} name_list;

static void add_name(name_list *l, const py_node *name) {
    py_var *v = py_get_var(l->c, name);
    for (uint32_t i = 0; i < l->n; i++)
        if (l->vars[i] == v) return;
    if (l->n == l->capacity) {
        py_var **grown = PY_NEW(l->c, py_var *, l->capacity * 2 + 8);
        if (l->n > 0) memcpy(grown, l->vars, sizeof *grown * l->n);
        l->vars = grown;
        l->capacity = l->capacity * 2 + 8;
    }
    l->vars[l->n++] = v;
}

static void scan_list(name_list *l, const py_list *list);

static void scan_target(name_list *l, const py_node *n) {
    if (n->kind == PY_NAME) add_name(l, n);
    if (n->kind == PY_STARRED) scan_target(l, n->a);
    if (n->kind == PY_TUPLE || n->kind == PY_LIST)
        for (uint32_t i = 0; i < n->list.count; i++) scan_target(l, n->list.items[i]);
}

static void scan(name_list *l, const py_node *n) {
    if (n == NULL || n->kind == PY_LAMBDA || n->kind == PY_FUNCTION) {
        if (n != NULL && n->kind == PY_FUNCTION) add_name(l, n);
        return;
    }
    switch (n->kind) {
    case PY_ASSIGN:
        for (uint32_t i = 0; i < n->list.count; i++) scan_target(l, n->list.items[i]);
        break;
    case PY_AUG_ASSIGN:
    case PY_FOR:
    case PY_NAMED: scan_target(l, n->a); break;
    case PY_ANN_ASSIGN:
        if (n->b != NULL) scan_target(l, n->a);
        break;
    default: break;
    }
    scan(l, n->a);
    scan(l, n->b);
    scan(l, n->c);
    scan_list(l, &n->list);
    scan_list(l, &n->list2);
}

static void scan_list(name_list *l, const py_list *list) {
    for (uint32_t i = 0; list != NULL && i < list->count; i++) scan(l, list->items[i]);
}

py_var **py_assigned(py_ctx *c, const py_list *a, const py_list *b, const py_node *extra,
                     uint32_t *n) {
    name_list l = {.c = c};
    scan_list(&l, a);
    scan_list(&l, b);
    if (extra != NULL) {
        scan(&l, extra);
        if (extra->kind == PY_NAME || extra->kind == PY_TUPLE || extra->kind == PY_LIST)
            scan_target(&l, extra);
    }
    *n = l.n;
    return l.vars;
}

/* ---- values of variables at merges ---- */

ir_value **py_gather(py_ctx *c, const py_node *at, py_var **vars, uint32_t n, uint32_t extra,
                     uint32_t *count) {
    uint32_t total = extra;
    for (uint32_t i = 0; i < n; i++) total += py_type_slots(vars[i]->type);
    ir_value **out = PY_NEW(c, ir_value *, total + 1);
    uint32_t k = extra;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slots = py_type_slots(vars[i]->type);
        for (uint32_t s = 0; s < slots; s++, k++)
            /* without values: not assigned on any way here (`defined` is no help at a loop's
             * head, where a variable has the value of the round before) */
            out[k] = vars[i]->val.v != NULL ? vars[i]->val.v[s]
                                            : py_emit_zero(c, py_type_slot(vars[i]->type, s));
    }
    *count = total;
    return out;
}

static ir_type *types_of(py_ctx *c, py_var **vars, uint32_t n, uint32_t *count) {
    uint32_t total = 0, k = 0;
    for (uint32_t i = 0; i < n; i++) total += py_type_slots(vars[i]->type);
    ir_type *out = PY_NEW(c, ir_type, total + 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = 0; s < py_type_slots(vars[i]->type); s++)
            out[k++] = py_type_slot(vars[i]->type, s);
    *count = total;
    return out;
}

/* What is known of a variable whose value comes from several places. */
static void forget(py_var *v, ir_value **slots) {
    py_val old = v->val;
    v->val = (py_val){.type = v->type, .v = slots};
    if (v->type->kind == TY_ENTITY || v->type->kind == TY_NONE) v->val = old;
    if (v->type->kind == TY_ARRAY) v->val.origin = old.origin;
    if (v->type->kind == TY_SCALAR) v->val.nonneg = py_scalar_is_unsigned(v->type->scalar);
}

static void set_results(py_ctx *c, py_var **vars, uint32_t n, ir_value *results) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slots = py_type_slots(vars[i]->type);
        ir_value **v = PY_NEW(c, ir_value *, slots + 1);
        for (uint32_t s = 0; s < slots; s++) v[s] = &results[k++];
        forget(vars[i], v);
    }
}

static void forget_all(py_var **vars, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) forget(vars[i], NULL);
}

typedef struct snapshot {
    py_val *vals;
    bool *defined;
    bool dead;
} snapshot;

static snapshot take(py_ctx *c, py_var **vars, uint32_t n) {
    snapshot s = {PY_NEW(c, py_val, n + 1), PY_NEW(c, bool, n + 1), c->dead};
    for (uint32_t i = 0; i < n; i++) {
        s.vals[i] = vars[i]->val;
        s.defined[i] = vars[i]->defined;
    }
    return s;
}

static void put_back(py_ctx *c, py_var **vars, uint32_t n, const snapshot *s) {
    for (uint32_t i = 0; i < n; i++) {
        vars[i]->val = s->vals[i];
        vars[i]->defined = s->defined[i];
    }
    c->dead = s->dead;
}

/* ---- if ---- */

static bool jump_to(py_ctx *c, const py_node *at, const py_target *t) {
    uint32_t n;
    if (!c->emit) return true;
    ir_value **values = py_gather(c, at, t->vars, t->nvars, 0, &n);
    ir_br(&c->b, t->label, values, n);
    return true;
}

/* Variables keep what both ends agree on. `a` is the state after the first branch. */
static void merge(py_ctx *c, py_var **vars, uint32_t n, const snapshot *a, ir_value *results) {
    bool a_dead = a->dead, b_dead = c->dead;
    snapshot b = take(c, vars, n);
    for (uint32_t i = 0; i < n; i++) {
        const py_val *x = &a->vals[i], *y = &b.vals[i];
        vars[i]->defined = (!a_dead && a->defined[i]) || (!b_dead && b.defined[i]);
        vars[i]->val.origin = x->origin == y->origin || b_dead || !a->defined[i]
                                  ? (b_dead ? x->origin : y->origin)
                                  : NULL;
        if (b_dead) vars[i]->val = *x;
    }
    if (c->emit && results != NULL)
        set_results(c, vars, n, results);
    else
        forget_all(vars, n);
    for (uint32_t i = 0; i < n; i++) {
        const py_val *x = &a->vals[i], *y = &b.vals[i], *one = a_dead ? y : x;
        py_val *v = &vars[i]->val;
        bool single = a_dead || b_dead, both = !single && a->defined[i] && b.defined[i];
        if (single && one->type == vars[i]->type) { /* one way in: all stays known */
            ir_value **slots = v->v;
            *v = *one;
            if (v->items != NULL) v->items = NULL;
            if (c->emit) v->v = slots;
        } else if (both) {
            v->nonneg = v->nonneg || (x->nonneg && y->nonneg);
            if (x->is_const && y->is_const && py_constant_equal(&x->value, &y->value) &&
                v->type->kind != TY_TUPLE) {
                v->is_const = true;
                v->value = x->value;
            }
        }
    }
    c->dead = a_dead && b_dead;
}

static bool do_if(py_ctx *c, const py_node *n) {
    py_val test, truth;
    if (!py_expr(c, n->a, &test) || !py_truth(c, n->a, &test, &truth)) return false;
    if (truth.is_const) return py_body(c, truth.value.boolean ? &n->list : &n->list2);
    uint32_t count, nslots = 0;
    py_var **vars = py_assigned(c, &n->list, &n->list2, NULL, &count);
    snapshot before = take(c, vars, count);
    ir_type *types = c->emit ? types_of(c, vars, count, &nslots) : NULL;
    py_if i = py_begin_if(c, py_slot(&truth, 0), types, nslots);
    py_target end = {.label = i.inst, .vars = vars, .nvars = count};
    if (!py_body(c, &n->list)) return false;
    snapshot first = take(c, vars, count);
    if (c->emit) {
        if (!py_region_ended(c)) jump_to(c, n, &end);
        c->b.at = i.inst->regions[1];
    }
    put_back(c, vars, count, &before);
    if (!py_body(c, &n->list2)) return false;
    if (c->emit) {
        if (!py_region_ended(c)) jump_to(c, n, &end);
        c->b.at = i.after;
    }
    merge(c, vars, count, &first, c->emit ? i.inst->results : NULL);
    return true;
}

/* ---- loops ---- */

typedef struct loop_work {
    const py_node *node;
    py_loop loop;
    py_var **vars;
    uint32_t nvars;
    ir_region *after;
    ir_inst *outer; /* the block that break leaves when there is an else part, or NULL */
    ir_inst *inst;
    snapshot before;
} loop_work;

/* Opens the loop with an optional counter in front of the variables. */
static void loop_begin(py_ctx *c, loop_work *w, const py_node *n, const py_node *target,
                       ir_value *counter) {
    *w = (loop_work){.node = n};
    w->vars = py_assigned(c, &n->list, &n->list2, target, &w->nvars);
    w->before = take(c, w->vars, w->nvars);
    w->loop.outer = c->frame->loop;
    w->loop.exit = w->loop.next = (py_target){.vars = w->vars, .nvars = w->nvars};
    w->loop.jumped = PY_NEW(c, bool, w->nvars + 1);
    c->frame->loop = &w->loop;
    if (!c->emit) {
        forget_all(w->vars, w->nvars);
        return;
    }
    uint32_t ntypes, ninit, extra = counter != NULL;
    ir_type *types = types_of(c, w->vars, w->nvars, &ntypes);
    w->after = c->b.at;
    if (n->list2.count > 0) {
        w->outer = ir_block(&c->b, types, ntypes);
        c->b.at = w->outer->regions[0];
    }
    ir_value **init = py_gather(c, n, w->vars, w->nvars, extra, &ninit);
    if (extra) init[0] = counter;
    w->inst = ir_loop(&c->b, init, ninit, types, ntypes);
    w->loop.exit.label = w->outer != NULL ? w->outer : w->inst;
    w->loop.next.label = w->inst;
    c->b.at = w->inst->regions[0];
    set_results(c, w->vars, w->nvars, c->b.at->params + extra);
    if (extra) w->loop.counter = &c->b.at->params[0];
}

/* Leaves the loop where cond is false. */
static void loop_test(py_ctx *c, loop_work *w, ir_value *cond) {
    if (!c->emit) return;
    py_if i = py_begin_if(c, cond, NULL, 0);
    py_else(c, &i, NULL, 0);
    py_target end = w->loop.exit;
    end.label = w->inst;
    jump_to(c, w->node, &end);
    py_end_if(c, &i, NULL, 0, NULL);
}

static void next_round(py_ctx *c, const py_node *at, py_loop *l) {
    if (!c->emit) return;
    uint32_t n, extra = l->counter != NULL;
    ir_value **values = py_gather(c, at, l->next.vars, l->next.nvars, extra, &n);
    if (extra) values[0] = py_emit_binary(c, IR_ADD, l->counter, l->step);
    if (l->next_is_block)
        ir_br(&c->b, l->next.label, values, n);
    else
        ir_continue(&c->b, l->next.label, values, n);
}

/* Closes the loop, runs its else part. `endless`: it ends by break only. */
static bool loop_end(py_ctx *c, loop_work *w, bool endless) {
    if (c->emit && !py_region_ended(c)) next_round(c, w->node, &w->loop);
    c->frame->loop = w->loop.outer;
    bool dead_before = w->before.dead;
    for (uint32_t i = 0; i < w->nvars; i++)
        w->vars[i]->defined = w->vars[i]->defined || w->before.defined[i] || w->loop.jumped[i];
    c->dead = dead_before || (endless && !w->loop.exit_used);
    if (!c->emit) {
        forget_all(w->vars, w->nvars);
        if (w->node->list2.count == 0 || endless) return true;
        if (!py_body(c, &w->node->list2)) return false;
        if (w->loop.exit_used) {
            forget_all(w->vars, w->nvars);
            c->dead = dead_before;
        }
        return true;
    }
    ir_inst *result = w->inst;
    c->b.at = w->outer != NULL ? w->outer->regions[0] : w->after;
    set_results(c, w->vars, w->nvars, w->inst->results);
    if (w->outer != NULL) {
        if (endless)
            c->dead = true;
        else if (!py_body(c, &w->node->list2))
            return false;
        if (!py_region_ended(c)) jump_to(c, w->node, &w->loop.exit);
        c->b.at = w->after;
        result = w->outer;
        set_results(c, w->vars, w->nvars, result->results);
        c->dead = dead_before || (c->dead && !w->loop.exit_used);
    }
    return true;
}

static bool do_while(py_ctx *c, const py_node *n) {
    loop_work w;
    py_val test, truth;
    loop_begin(c, &w, n, n->a, NULL);
    if (!py_expr(c, n->a, &test) || !py_truth(c, n->a, &test, &truth)) return false;
    bool endless = truth.is_const && truth.value.boolean;
    if (!endless) loop_test(c, &w, py_slot(&truth, 0));
    if (!(truth.is_const && !truth.value.boolean)) {
        if (!py_body(c, &n->list)) return false;
    }
    return loop_end(c, &w, endless);
}

/* ---- for ---- */

/* One body per item; continue leaves the item's block. */
static bool for_tuple(py_ctx *c, const py_node *n, const py_val *it, int64_t count) {
    uint32_t nvars, ntypes = 0;
    py_var **vars = py_assigned(c, &n->list, &n->list2, n->a, &nvars);
    py_loop loop = {.outer = c->frame->loop, .next_is_block = true};
    loop.jumped = PY_NEW(c, bool, nvars + 1);
    loop.exit = loop.next = (py_target){.vars = vars, .nvars = nvars};
    ir_region *after = c->b.at;
    ir_type *types = c->emit ? types_of(c, vars, nvars, &ntypes) : NULL;
    bool dead_before = c->dead;
    if (c->emit) {
        loop.exit.label = ir_block(&c->b, types, ntypes);
        c->b.at = loop.exit.label->regions[0];
    }
    c->frame->loop = &loop;
    for (int64_t i = 0; i < count; i++) {
        py_val item;
        ir_region *outside = c->b.at;
        if (c->emit) {
            loop.next.label = ir_block(&c->b, types, ntypes);
            c->b.at = loop.next.label->regions[0];
        }
        if (!py_iter_item(c, n->b, it, py_emit_int(c, IR_I64, i), i, &item)) return false;
        if (!py_assign(c, n->a, &item) || !py_body(c, &n->list)) return false;
        c->dead = dead_before;
        if (c->emit) {
            if (!py_region_ended(c)) next_round(c, n, &loop);
            c->b.at = outside;
            set_results(c, vars, nvars, loop.next.label->results);
        } else {
            forget_all(vars, nvars);
        }
    }
    c->frame->loop = loop.outer;
    if (!py_body(c, &n->list2)) return false;
    for (uint32_t i = 0; i < nvars; i++) vars[i]->defined = vars[i]->defined || loop.jumped[i];
    c->dead = c->dead && !loop.exit_used;
    if (!c->emit) {
        forget_all(vars, nvars);
        return true;
    }
    if (!py_region_ended(c)) jump_to(c, n, &loop.exit);
    c->b.at = after;
    set_results(c, vars, nvars, loop.exit.label->results);
    return true;
}

/* The counter is 64 bits wide also for narrower ranges, so that its last step cannot wrap. */
static bool for_range(py_ctx *c, const py_node *n, const py_val *it) {
    py_scalar s = it->type->scalar;
    ir_type t = py_scalar_ir(s);
    ir_value *part[3];
    loop_work w;
    py_range_parts(c, it, part);
    loop_begin(c, &w, n, n->a, part[0]);
    w.loop.step = part[2];
    if (c->emit) {
        ir_value *i = w.loop.counter, *zero = py_emit_zero(c, IR_I64);
        bool is_unsigned = s == PY_S_U64;
        ir_value *up = py_emit_binary(c, is_unsigned ? IR_LT_U : IR_LT_S, i, part[1]);
        ir_value *goes = up;
        bool known =
            it->items != NULL && it->items[2].is_const && it->items[2].value.kind == PY_VALUE_INT;
        if (known && it->items[2].value.integer < 0)
            goes = py_emit_binary(c, IR_LT_S, part[1], i);
        else if (!known && !is_unsigned) {
            ir_value *down = py_emit_binary(c, IR_AND, py_emit_binary(c, IR_LT_S, part[2], zero),
                                            py_emit_binary(c, IR_LT_S, part[1], i));
            goes = py_emit_binary(c, IR_AND, py_emit_binary(c, IR_LT_S, zero, part[2]), up);
            goes = py_emit_binary(c, IR_OR, goes, down);
        }
        loop_test(c, &w, goes);
    }
    ir_value *counter = w.loop.counter;
    if (t != IR_I64) counter = py_emit_cast(c, IR_TRUNC, t, counter);
    py_val i = py_val_scalar(c, s, counter);
    i.nonneg = it->nonneg || py_scalar_is_unsigned(s);
    if (!py_assign(c, n->a, &i) || !py_body(c, &n->list)) return false;
    return loop_end(c, &w, false);
}

static bool for_items(py_ctx *c, const py_node *n, const py_val *it, ir_value *length) {
    loop_work w;
    py_val item;
    ir_value *zero = py_emit_zero(c, IR_I64), *one = py_emit_int(c, IR_I64, 1);
    loop_begin(c, &w, n, n->a, zero);
    w.loop.step = one;
    loop_test(c, &w, py_emit_binary(c, IR_LT_S, w.loop.counter, length));
    if (!py_iter_item(c, n->b, it, w.loop.counter, -1, &item)) return false;
    if (!py_assign(c, n->a, &item) || !py_body(c, &n->list)) return false;
    return loop_end(c, &w, false);
}

static bool do_for(py_ctx *c, const py_node *n) {
    py_val it;
    ir_value *length;
    int64_t known;
    if (!py_expr(c, n->b, &it)) return false;
    if (it.type->kind == TY_RANGE) return for_range(c, n, &it);
    if (it.type->kind == TY_ARRAY && it.type->ndim == 0)
        return py_fail(c, n->b, "an array of no dimensions cannot be iterated");
    if (!py_iter_length(c, n->b, &it, &length, &known)) return false;
    if (it.type->kind == TY_TUPLE) return for_tuple(c, n, &it, known);
    bool tuples =
        false; /* a zip with a tuple of different types is unrolled when its length is known */
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; it.type->kind == TY_ZIP && i < it.type->count; i++) {
        const py_type *part = it.type->items[i];
        if (part->kind == TY_TUPLE && (int64_t)part->count < least) least = part->count;
        tuples = tuples || part->kind == TY_TUPLE;
    }
    for (uint32_t i = 0; tuples && i < it.type->count; i++) {
        const py_type *part = it.type->items[i];
        if (part->kind != TY_TUPLE && !(part->kind == TY_RANGE && part->given == 1)) tuples = false;
    }
    if (tuples) return for_tuple(c, n, &it, least);
    return for_items(c, n, &it, length);
}

/* ---- small statements ---- */

static bool do_jump(py_ctx *c, const py_node *n) {
    py_loop *l = c->frame->loop;
    if (l == NULL) return py_fail(c, n, "'%s' outside a loop", py_kind_table[n->kind].cls);
    for (uint32_t i = 0; i < l->exit.nvars; i++)
        l->jumped[i] = l->jumped[i] || l->exit.vars[i]->defined;
    if (n->kind == PY_BREAK) {
        l->exit_used = true;
        jump_to(c, n, &l->exit);
    } else {
        next_round(c, n, l);
    }
    c->dead = true;
    return true;
}

static bool do_return(py_ctx *c, const py_node *n) {
    py_frame *f = c->frame;
    py_val v = py_val_none();
    if (n->a != NULL && !py_expr(c, n->a, &v)) return false;
    if (f->caller == NULL) {
        if (v.type->kind != TY_NONE)
            return py_fail(c, n, "a kernel cannot return a value: write results into an array");
        if (c->emit) ir_return(&c->b);
        c->dead = true;
        return true;
    }
    const py_type *t = py_type_unify(c, f->result, v.type);
    if (t == NULL)
        return py_fail(c, n, "%s returns %s here and %s elsewhere", f->fn->name,
                       py_type_text(c, v.type), py_type_text(c, f->result));
    if (t != f->result && !py_type_equal(t, f->result)) c->changed = true;
    f->result = t;
    if (c->emit) {
        py_val r;
        if (!py_convert(c, n, &v, f->result, &r)) return false;
        ir_br(&c->b, f->ret.label, r.v, py_type_slots(r.type));
    }
    c->dead = true;
    return true;
}

/* `raise` and a failed `assert` report a fault and end the thread. */
static bool do_raise(py_ctx *c, const py_node *n) {
    py_fault f = {.kind = PY_FAULT_RAISE, .name = "RuntimeError", .text = "", .parameter = -1};
    const py_node *e = n->a, *call = e;
    if (e != NULL && e->kind == PY_CALL) {
        if (e->list.count > 0 && e->list.items[0]->kind == PY_CONSTANT &&
            e->list.items[0]->value.kind == PY_VALUE_STRING)
            f.text = e->list.items[0]->value.text;
        call = e->a;
    }
    if (call != NULL && call->kind == PY_NAME)
        f.name = call->name;
    else if (call != NULL)
        return py_fail(c, n, "raise an exception class by its name, with a constant text");
    uint32_t number = py_add_fault(c, n, &f);
    if (c->emit) {
        ir_fault(&c->b, number, NULL, 0);
        ir_return(&c->b);
    }
    c->dead = true;
    return true;
}

static bool do_assert(py_ctx *c, const py_node *n) {
    py_val test, truth;
    if (!py_expr(c, n->a, &test) || !py_truth(c, n->a, &test, &truth)) return false;
    py_fault f = {.kind = PY_FAULT_ASSERT, .name = "AssertionError", .text = "", .parameter = -1};
    if (n->b != NULL && n->b->kind == PY_CONSTANT && n->b->value.kind == PY_VALUE_STRING)
        f.text = n->b->value.text;
    uint32_t number = py_add_fault(c, n, &f);
    py_if i = py_begin_if(c, py_slot(&truth, 0), NULL, 0);
    py_else(c, &i, NULL, 0);
    if (c->emit) {
        ir_fault(&c->b, number, NULL, 0);
        ir_return(&c->b);
    }
    py_end_if(c, &i, NULL, 0, NULL);
    return true;
}

static bool do_aug_assign(py_ctx *c, const py_node *n) {
    py_val old, value, sum;
    const py_node *t = n->a;
    if (t->kind == PY_SUBSCRIPT) {
        py_val of, index;
        if (!py_expr(c, t->a, &of) || !py_expr(c, t->b, &index)) return false;
        if (!py_get_item(c, t, &of, &index, &old) || !py_expr(c, n->b, &value)) return false;
        return py_binary(c, n, n->op, &old, &value, &sum) && py_set_item(c, t, &of, &index, &sum);
    }
    if (t->kind != PY_NAME) return py_fail(c, t, "an attribute cannot be assigned in a kernel");
    if (!py_expr(c, t, &old) || !py_expr(c, n->b, &value)) return false;
    return py_binary(c, n, n->op, &old, &value, &sum) && py_assign(c, t, &sum);
}

static bool do_assign(py_ctx *c, const py_node *n) {
    py_val v;
    if (!py_expr(c, n->a, &v)) return false;
    for (uint32_t i = 0; i < n->list.count; i++)
        if (!py_assign(c, n->list.items[i], &v)) return false;
    return true;
}

static bool statement(py_ctx *c, const py_node *n) {
    py_val ignored;
    if (c->emit) c->b.pos = py_pos(c, n);
    switch (n->kind) {
    case PY_RETURN: return do_return(c, n);
    case PY_ASSIGN: return do_assign(c, n);
    case PY_AUG_ASSIGN: return do_aug_assign(c, n);
    case PY_ANN_ASSIGN:
        return n->b == NULL || (py_expr(c, n->b, &ignored) && py_assign(c, n->a, &ignored));
    case PY_FOR: return do_for(c, n);
    case PY_WHILE: return do_while(c, n);
    case PY_IF: return do_if(c, n);
    case PY_EXPR: return py_expr(c, n->a, &ignored);
    case PY_PASS: return true;
    case PY_BREAK:
    case PY_CONTINUE: return do_jump(c, n);
    case PY_RAISE: return do_raise(c, n);
    case PY_ASSERT: return do_assert(c, n);
    case PY_FUNCTION:
        return py_fail(
            c, n, "a function inside a kernel: define it outside, with @cuda.jit(device=True)");
    default: return py_fail_unsupported(c, n);
    }
}

bool py_body(py_ctx *c, const py_list *body) {
    for (uint32_t i = 0; i < body->count && !c->dead; i++) {
        py_loop *loop = c->frame->loop;
        if (statement(c, body->items[i])) continue;
        if (c->emit || !c->deferred || c->status != SIMT_OK) return false;
        c->deferred = false; /* typing: a later round will know more */
        c->frame->loop = loop;
    }
    return true;
}
