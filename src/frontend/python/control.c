/* Statements. Control flow maps to the IR's constructs: a construct that assigns variables has their values as
 * results, a loop carries them (merge.c); break, continue and return are branches to the construct they leave.
 *
 * While typing, the same walk goes through every branch once, and through loops until types stand still.
 */
#include "frontend/python/work.h"

enum {
    MOST_ROUNDS = 40
}; /* of a loop, until its variables' types settle; and one more for each variable */

/* ---- if ---- */

static bool if_way(py_ctx *c, const void *of, int way, py_val *value) {
    const py_node *n = of;
    return py_body(c, way == 0 ? &n->list : &n->list2);
}

static bool do_if(py_ctx *c, const py_node *n) {
    py_val truth;
    if (!py_condition(c, n->a, &truth)) return false;
    if (truth.is_const) return py_body(c, truth.value.boolean ? &n->list : &n->list2);
    return py_walk_ways(c, py_merge_new(c, n, NULL, true), py_slot(&truth, 0), if_way, n);
}

/* ---- loops ---- */

typedef struct loop_work loop_work;
struct loop_work {
    py_loop loop;
    const py_node *node;
    bool (*round)(py_ctx *c, loop_work *w);
    py_merge *done; /* where the loop's own test leaves it: the exit, or the else part */
    /* `for`: what it goes over, the counter's first value and step, the range's stop or the number of items */
    const py_val *it;
    ir_value *first, *step, *stop;
};

/* Lowering walks the round once; typing as long as the head's types grow. */
static bool walk_rounds(py_ctx *c, loop_work *w) {
    py_merge *head = w->loop.next;
    const py_node *unknown = c->unknown;
    const py_type **types = PY_NEW(c, const py_type *, head->nvars + 1);
    uint32_t cursor = c->frame->cursor;
    for (uint32_t round = 0; round < MOST_ROUNDS + head->nvars; round++) {
        py_begin_round(c, head, types);
        if (!w->round(c, w) || !py_arrive(c, head)) return false;
        if (c->emit || py_is_settled(head, types, c->unknown != unknown)) return true;
        w->done->reached = w->loop.exit->reached = false;
        c->frame->cursor = cursor;
        c->unknown = unknown;
    }
    return py_fail(c, w->node, "the types of the loop's variables do not settle");
}

static bool do_loop(py_ctx *c, loop_work *w) {
    const py_list *otherwise = &w->node->list2;
    py_merge *exit = py_merge_new(c, w->node, NULL, true),
             *head = py_merge_new(c, w->node, NULL, true);
    w->done = exit;
    if (otherwise->count > 0) {
        w->done = py_merge_new(c, w->node, NULL, true);
        py_begin_block(c, exit);
    }
    w->loop = (py_loop){.outer = c->frame->loop, .exit = exit, .next = head};
    head->is_head = true;
    c->frame->loop = &w->loop;
    if (!py_begin_loop(c, head, w->done, w->first, w->step) || !walk_rounds(c, w)) return false;
    c->frame->loop = w->loop.outer;
    py_take_from_head(exit, head);
    py_take_from_head(w->done, head);
    py_go_on(c, w->done);
    if (w->done == exit) return true;
    if (!py_body(c, otherwise) || !py_arrive(c, exit)) return false;
    py_go_on(c, exit);
    return true;
}

/* Leaves the loop where cond is false. */
static bool leave_unless(py_ctx *c, loop_work *w, ir_value *cond) {
    py_if i = py_begin_if(c, cond, NULL, 0);
    py_else(c, &i, NULL, 0);
    if (!py_arrive(c, w->done)) return false;
    py_end_if(c, &i, NULL, 0, NULL);
    c->dead = false;
    return true;
}

static bool while_round(py_ctx *c, loop_work *w) {
    const py_node *n = w->node;
    py_val truth;
    if (!py_condition(c, n->a, &truth)) return false;
    bool endless = truth.is_const && truth.value.boolean;
    if (!endless && !leave_unless(c, w, py_slot(&truth, 0))) return false;
    c->dead = truth.is_const && !truth.value.boolean;
    return py_body(c, &n->list);
}

static bool do_while(py_ctx *c, const py_node *n) {
    loop_work w = {.node = n, .round = while_round};
    return do_loop(c, &w);
}

/* ---- for ---- */

/* One body per item; continue leaves the item's block. */
static bool for_tuple(py_ctx *c, const py_node *n, const py_val *it, int64_t count) {
    py_loop loop = {.outer = c->frame->loop, .exit = py_merge_new(c, n, NULL, true)};
    py_begin_block(c, loop.exit);
    c->frame->loop = &loop;
    for (int64_t i = 0; i < count && !c->dead; i++) {
        py_val item;
        loop.next = py_merge_new(c, n, NULL, true);
        py_begin_block(c, loop.next);
        if (!py_iter_item(c, n->b, it, py_emit_int(c, IR_I64, i), i, &item)) return false;
        if (!py_assign(c, n->a, &item) || !py_body(c, &n->list)) return false;
        if (!py_arrive(c, loop.next)) return false;
        py_go_on(c, loop.next);
    }
    c->frame->loop = loop.outer;
    if (!py_body(c, &n->list2) || !py_arrive(c, loop.exit)) return false;
    py_go_on(c, loop.exit);
    return true;
}

/* Whether the counter i is still in the range. */
static ir_value *range_goes(py_ctx *c, const loop_work *w, ir_value *i) {
    const py_val *it = w->it, *step = it->items != NULL ? &it->items[2] : NULL;
    bool is_unsigned = it->type->scalar == PY_S_U64;
    ir_value *up = py_emit_binary(c, is_unsigned ? IR_LT_U : IR_LT_S, i, w->stop);
    bool known = step != NULL && step->is_const && step->value.kind == PY_VALUE_INT;
    if (is_unsigned || (known && step->value.integer >= 0)) return up;
    ir_value *down = py_emit_binary(c, IR_LT_S, w->stop, i), *zero = py_emit_zero(c, IR_I64);
    if (known) return down;
    down = py_emit_binary(c, IR_AND, py_emit_binary(c, IR_LT_S, w->step, zero), down);
    up = py_emit_binary(c, IR_AND, py_emit_binary(c, IR_LT_S, zero, w->step), up);
    return py_emit_binary(c, IR_OR, up, down);
}

/* The counter is 64 bits wide also for narrower ranges, so that its last step cannot wrap. */
static bool range_round(py_ctx *c, loop_work *w) {
    py_scalar s = w->it->type->scalar;
    ir_value *i = w->loop.next->counter;
    if (!leave_unless(c, w, range_goes(c, w, i))) return false;
    if (py_scalar_ir(s) != IR_I64) i = py_emit_cast(c, IR_TRUNC, py_scalar_ir(s), i);
    py_val item = py_val_scalar(c, s, i);
    item.nonneg = w->it->nonneg || py_scalar_is_unsigned(s);
    return py_assign(c, w->node->a, &item) && py_body(c, &w->node->list);
}

static bool items_round(py_ctx *c, loop_work *w) {
    py_val item;
    ir_value *i = w->loop.next->counter;
    if (!leave_unless(c, w, py_emit_binary(c, IR_LT_S, i, w->stop))) return false;
    return py_iter_item(c, w->node->b, w->it, i, -1, &item) && py_assign(c, w->node->a, &item) &&
           py_body(c, &w->node->list);
}

/* A zip of tuples (and enumerate's count) is unrolled as a tuple is; *count: its items. */
static bool is_unrolled(const py_type *t, int64_t *count) {
    bool tuples = t->kind == TY_TUPLE;
    *count = tuples ? t->count : INT64_MAX;
    for (uint32_t i = 0; t->kind == TY_ZIP && i < t->count; i++) {
        const py_type *part = t->items[i];
        if (part->kind == TY_RANGE && part->given == 1) continue;
        if (part->kind != TY_TUPLE) return false;
        tuples = true;
        if (part->count < *count) *count = part->count;
    }
    return tuples;
}

static bool do_for(py_ctx *c, const py_node *n) {
    py_val it;
    int64_t count;
    if (!py_expr(c, n->b, &it)) return false;
    loop_work w = {.node = n, .it = &it};
    if (it.type->kind == TY_RANGE) {
        ir_value *part[3];
        py_range_parts(c, &it, part);
        w.round = range_round;
        w.first = part[0];
        w.stop = part[1];
        w.step = part[2];
        return do_loop(c, &w);
    }
    if (it.type->kind == TY_ARRAY && it.type->ndim == 0)
        return py_fail(c, n->b, "an array of no dimensions cannot be iterated");
    if (is_unrolled(it.type, &count)) return for_tuple(c, n, &it, count);
    if (!py_iter_length(c, n->b, &it, &w.stop, &count)) return false;
    w.round = items_round;
    w.first = py_emit_zero(c, IR_I64);
    w.step = py_emit_int(c, IR_I64, 1);
    return do_loop(c, &w);
}

/* ---- small statements ---- */

static bool do_jump(py_ctx *c, const py_node *n) {
    py_loop *l = c->frame->loop;
    if (l == NULL) return py_fail(c, n, "'%s' outside a loop", py_kind_table[n->kind].cls);
    return py_arrive(c, n->kind == PY_BREAK ? l->exit : l->next);
}

static bool do_return(py_ctx *c, const py_node *n) {
    py_frame *f = c->frame;
    py_val v = py_val_none();
    if (n->a != NULL && !py_expr_or_none(c, n->a, &v)) return false;
    if (f == c->root) {
        if (v.type->kind != TY_NONE)
            return py_fail(c, n, "a kernel cannot return a value: write results into an array");
        if (c->emit) ir_return(&c->b);
        c->dead = true;
        return true;
    }
    return py_return_value(c, n, &v);
}

/* The text of an exception: a constant, also by name; "" for anything else. */
static bool exception_text(py_ctx *c, const py_node *e, const char **text) {
    py_val v;
    *text = "";
    if (e == NULL || (e->kind != PY_CONSTANT && e->kind != PY_NAME && e->kind != PY_ATTRIBUTE))
        return true;
    if (!py_expr(c, e, &v)) return false;
    if (v.is_const && v.value.kind == PY_VALUE_STRING) *text = v.value.text;
    return true;
}

/* Reports a fault and ends the thread. */
static void end_thread(py_ctx *c, const py_node *at, const kernel_fault *f) {
    if (!c->emit) return;
    ir_fault(&c->b, py_add_fault(c, at, f), NULL, 0);
    if (c->f->unit != NULL)
        ir_exit(&c->b);
    else
        ir_return(&c->b);
}

void py_fault_unless(py_ctx *c, const py_node *at, ir_value *cond, const kernel_fault *f) {
    py_if i = py_begin_if(c, cond, NULL, 0);
    py_else(c, &i, NULL, 0);
    end_thread(c, at, f);
    py_end_if(c, &i, NULL, 0, NULL);
}

static bool do_raise(py_ctx *c, const py_node *n) {
    kernel_fault f = {.kind = KERNEL_FAULT_RAISE, .text = "", .argument = -1};
    const py_node *e = n->a;
    py_val v;
    if (e != NULL && e->kind == PY_CALL) {
        const py_node *text = e->list.count > 0 ? e->list.items[0] : NULL;
        if (!exception_text(c, text, &f.text)) return false;
        e = e->a;
    }
    if (e != NULL) {
        if (!py_expr(c, e, &v)) return false;
        if (v.type->kind != TY_ENTITY || v.type->entity->kind != PY_ENTITY_EXCEPTION)
            return py_fail(c, n, "raise an exception class, with a constant text");
        f.handle = v.type->entity->handle;
    }
    end_thread(c, n, &f);
    c->dead = true;
    return true;
}

static bool do_assert(py_ctx *c, const py_node *n) {
    py_val truth;
    if (!py_condition(c, n->a, &truth)) return false;
    kernel_fault f = {.kind = KERNEL_FAULT_ASSERT, .argument = -1};
    if (!exception_text(c, n->b, &f.text)) return false;
    py_fault_unless(c, n, py_slot(&truth, 0), &f);
    return true;
}

/* The name becomes the function. */
static bool do_function(py_ctx *c, const py_node *n) {
    py_val f;
    py_node name = {.kind = PY_NAME, .line = n->line, .column = n->column, .name = n->name};
    return py_closure_value(c, n, &f) && py_assign(c, &name, &f);
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
    if (t->kind == PY_ATTRIBUTE) {
        py_val of;
        if (!py_expr(c, t->a, &of) || !py_get_attribute(c, t, &of, &old)) return false;
        return py_expr(c, n->b, &value) && py_binary(c, n, n->op, &old, &value, &sum) &&
               py_set_attribute(c, t, &of, &sum);
    }
    if (!py_expr(c, t, &old) || !py_expr(c, n->b, &value)) return false;
    return py_binary(c, n, n->op, &old, &value, &sum) && py_assign(c, t, &sum);
}

static bool do_assign(py_ctx *c, const py_node *n) {
    py_val v;
    if (!py_expr_or_none(c, n->a, &v)) return false;
    for (uint32_t i = 0; i < n->list.count; i++)
        if (!py_assign(c, n->list.items[i], &v)) return false;
    return true;
}

static bool do_expression(py_ctx *c, const py_node *n) {
    py_val value;
    if (!py_expr(c, n, &value)) return false;
    if (n->kind == PY_CALL || value.type->kind != TY_ENTITY) return true;
    return py_fail(c, n, "this does nothing%s", py_advice(c, value.type));
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
    case PY_EXPR: return do_expression(c, n->a);
    case PY_PASS: return true;
    case PY_BREAK:
    case PY_CONTINUE: return do_jump(c, n);
    case PY_RAISE: return do_raise(c, n);
    case PY_ASSERT: return do_assert(c, n);
    case PY_FUNCTION: return do_function(c, n);
    default: return py_fail_unsupported(c, n);
    }
}

bool py_body(py_ctx *c, const py_list *body) {
    for (uint32_t i = 0; i < body->count && !c->dead; i++) {
        py_loop *loop = c->frame->loop;
        if (statement(c, body->items[i])) continue;
        if (c->status != SIMT_OK) return false;
        c->frame->loop = loop; /* a later round will know more */
        py_way_ends(c);
    }
    return true;
}
