/* How many threads a gang has.
 *
 * All of the block, unless threads wait for each other otherwise than at a barrier all come to: in a
 * spin loop, at barriers on both sides of an `if` that they take differently, or at a warp operation to
 * which they may not come together (meet.c).
 * A spin loop is no reason where nobody in the block can be what it waits for: all threads go through it
 * together, or one thread alone while the others have nothing to write before the next barrier.
 * A loop spins when a way out of it hangs on an atomic or on a load that others change. For plain loads
 * that is so where a round can end with nothing changed that decides on the way out or on an address.
 */
#include "backend/vm/vm.h"

typedef struct gangs {
    vm_plan *p;
    bool *tainted; /* by value id: hangs on a signal */
    bool *decides; /* by value id: an exit or an address hangs on it (of the loop in question) */
} gangs;

static bool mark(bool *set, const ir_value *v, bool on) {
    if (!on || set[v->id]) return false;
    return set[v->id] = true;
}

static const vm_node *end_of(const vm_plan *p) { return p->nodes + p->nnodes; }

/* ---- signals: atomics, and loads that are not plain ---- */

static bool is_const_not_0(const ir_value *v) {
    return v->inst != NULL && v->inst->op == IR_CONST && v->inst->imm != 0;
}

/* while True: old = cas(p, expected, f(expected)); if old == expected: break; expected = old
 * One lane succeeds each round: nobody needs to be waited for. */
static bool retries_with_news(const ir_inst *cas) {
    const ir_value *expected = cas->args[1];
    while (expected->inst != NULL && expected->inst->op == IR_BITCAST)
        expected = expected->inst->args[0];
    return expected->region != NULL && expected->region->owner != NULL;
}

static bool is_signal(const ir_inst *in) {
    if (in->op == IR_LOAD) return IR_MEM_ORDER(in->imm) != IR_PLAIN;
    if (in->op == IR_ATOMIC_ADD || in->op == IR_ATOMIC_FADD) return !is_const_not_0(in->args[1]);
    if (in->op == IR_ATOMIC_CAS) return !retries_with_news(in);
    return ir_op_is_atomic(in->op);
}

static bool taint_inst(bool *tainted, const ir_inst *in) {
    bool on = is_signal(in), changed = false;
    for (unsigned i = 0; i < in->nargs; i++) {
        bool hot = tainted[in->args[i]->id];
        if (in->op == IR_BR)
            changed |= mark(tainted, &in->label->results[i], hot);
        else if (in->op == IR_CONTINUE)
            changed |= mark(tainted, &in->label->regions[0]->params[i], hot);
        else if (in->op == IR_LOOP)
            changed |= mark(tainted, &in->regions[0]->params[i], hot);
        else
            on |= hot;
    }
    if (!ir_op_table[in->op].control)
        for (unsigned i = 0; i < in->nresults; i++) changed |= mark(tainted, &in->results[i], on);
    return changed;
}

static bool contains_signal(const vm_plan *p, const vm_node *loop) {
    for (const vm_node *n = loop + 1; n < end_of(p) && n->at < loop->end; n++)
        if (is_signal(n->inst)) return true;
    return false;
}

/* Whether a jump inside `in` decides about the rounds of the loop: leaves it, or starts the next. */
static bool decides_rounds(const vm_plan *p, const vm_node *in, const ir_inst *loop) {
    for (const vm_node *n = in + 1; n < end_of(p) && n->at < in->end; n++) {
        ir_op op = n->inst->op;
        if (op == IR_RETURN || (op == IR_CONTINUE && n->inst->label == loop)) return true;
        if ((op == IR_BR || op == IR_CONTINUE) && vm_stands_in(loop, n->inst->label)) return true;
    }
    return false;
}

static bool spins_on_signal(const gangs *s, const vm_node *loop) {
    if (!contains_signal(s->p, loop)) return false;
    for (const vm_node *n = loop + 1; n < end_of(s->p) && n->at < loop->end; n++)
        if (n->inst->op == IR_IF && s->tainted[n->inst->args[0]->id] &&
            decides_rounds(s->p, n, loop->inst))
            return true;
    return false;
}

/* ---- plain loads that poll ---- */

static bool only_reads(const vm_plan *p, const vm_node *loop) {
    bool loads = false;
    for (const vm_node *n = loop + 1; n < end_of(p) && n->at < loop->end; n++) {
        const ir_op_info *info = &ir_op_table[n->inst->op];
        loads |= n->inst->op == IR_LOAD;
        if ((info->writes && n->inst->op != IR_FAULT) || info->convergent) return false;
    }
    return loads;
}

/* Marks what conditions and addresses inside the loop are made from. */
static void find_deciders(const gangs *s, const vm_node *loop) {
    const vm_plan *p = s->p;
    for (uint32_t i = 0; i < p->nvalues; i++) s->decides[i] = false;
    for (bool changed = true; changed;) {
        changed = false;
        for (const vm_node *n = loop + 1; n < end_of(p) && n->at < loop->end; n++) {
            const ir_inst *in = n->inst;
            bool use = in->op == IR_IF || in->op == IR_LOAD;
            for (unsigned k = 0; k < in->nresults && !ir_op_table[in->op].control; k++)
                use |= s->decides[in->results[k].id];
            for (unsigned i = 0; i < in->nargs; i++) {
                bool passed =
                    (in->op == IR_BR && s->decides[in->label->results[i].id]) ||
                    (in->op == IR_CONTINUE && s->decides[in->label->regions[0]->params[i].id]) ||
                    (in->op == IR_LOOP && s->decides[in->regions[0]->params[i].id]);
                changed |= mark(s->decides, in->args[i], use || passed);
            }
        }
    }
}

static bool changes_nothing(const gangs *s, const ir_inst *next) {
    const ir_region *body = next->label->regions[0];
    for (unsigned i = 0; i < next->nargs; i++)
        if (s->decides[body->params[i].id] && next->args[i] != &body->params[i]) return false;
    return true;
}

static bool polls_plain_load(const gangs *s, const vm_node *loop) {
    if (!only_reads(s->p, loop)) return false;
    find_deciders(s, loop);
    for (const vm_node *n = loop + 1; n < end_of(s->p) && n->at < loop->end; n++)
        if (n->inst->op == IR_CONTINUE && n->inst->label == loop->inst &&
            changes_nothing(s, n->inst))
            return true;
    return false;
}

static void find_spin_loops(const gangs *s) {
    vm_plan *p = s->p;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < p->nnodes; i++)
            changed |= taint_inst(s->tainted, p->nodes[i].inst);
    }
    for (uint32_t i = 0; i < p->nnodes; i++) {
        vm_node *n = &p->nodes[i];
        if (n->inst->op != IR_LOOP) continue;
        n->spin = spins_on_signal(s, n) || polls_plain_load(s, n);
        p->has_spin |= n->spin;
    }
}

/* ---- barriers that threads may come to from both sides of an if ---- */

static bool may_meet(const ir_inst *a, const ir_inst *b) {
    if (ir_op_is_barrier(a->op)) return ir_op_is_barrier(b->op);
    return a->op == IR_GRID_SYNC && b->op == IR_GRID_SYNC;
}

static bool sides_meet(const vm_plan *p, const vm_node *branch) {
    const vm_node *no = branch + 1;
    while (no < end_of(p) && no->at < branch->end && vm_stands_in(no->inst, branch->inst)) {
        const ir_inst *o = no->inst;
        while (o->parent->owner != branch->inst) o = o->parent->owner;
        if (o->parent == branch->inst->regions[1]) break;
        no++;
    }
    for (const vm_node *a = branch + 1; a < no; a++) {
        for (const vm_node *b = no; b < end_of(p) && b->at < branch->end; b++)
            if (may_meet(a->inst, b->inst)) return true;
    }
    return false;
}

static bool meets_from_both_sides(const vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++)
        if (p->nodes[i].inst->op == IR_IF && p->nodes[i].vector_if && sides_meet(p, &p->nodes[i]))
            return true;
    return false;
}

/* ---- spin loops that wait for other blocks only ---- */

/* The axes of the block along which a condition leaves one place, a bit each. */
static unsigned axes_fixed(const vm_plan *p, const ir_value *cond) {
    const ir_inst *in = cond->inst;
    if (in == NULL) return 0;
    if (in->op == IR_AND) return axes_fixed(p, in->args[0]) | axes_fixed(p, in->args[1]);
    if (in->op != IR_EQ || ir_type_bits(in->args[0]->type) < 32) return 0;
    const vm_value *a = vm_value_of(p, in->args[0]), *b = vm_value_of(p, in->args[1]);
    if (a->stride == 0) a = vm_value_of(p, in->args[1]), b = vm_value_of(p, in->args[0]);
    if (b->stride != 0 || a->stride == VM_VARYING) return 0;
    if (a->stride != VM_ROWS) return a->stride > -32768 && a->stride < 32768 ? 7 : 0;
    if (!a->fixed_steps) return 0;
    const int64_t steps[3] = {a->steps.x, a->steps.y, a->steps.z};
    unsigned grows = 0;
    for (int d = 0; d < 3; d++) grows |= (unsigned)(steps[d] != 0) << d;
    return (grows & (grows - 1)) == 0 ? grows : 0;
}

typedef enum scan { SCAN_ON, SCAN_BARRIER, SCAN_WRITES } scan;

/* What comes first from `in` on to the end of its region, or to `end`: a barrier, something that other
 * threads may see (or a jump that makes it unclear), or neither. */
static scan scan_from(const ir_inst *in, const ir_inst *end) {
    for (; in != NULL && in != end; in = in->next) {
        const ir_op_info *info = &ir_op_table[in->op];
        if (ir_op_is_barrier(in->op)) return SCAN_BARRIER;
        if ((info->writes && in->op != IR_FAULT) || info->convergent) return SCAN_WRITES;
        if (in->regions[0] != NULL && vm_node_of(in)->escapes) return SCAN_WRITES;
        for (int r = 0; r < 2 && in->regions[r] != NULL; r++)
            if (scan_from(in->regions[r]->first, NULL) == SCAN_WRITES) return SCAN_WRITES;
    }
    return SCAN_ON;
}

/* Threads that are past `in`, while others are inside, write nothing before a barrier or their end. */
static bool others_only_wait(const ir_inst *in) {
    for (;;) {
        const ir_inst *owner = in->parent->owner;
        scan s = scan_from(in->next, NULL);
        if (s != SCAN_ON || owner == NULL) return s != SCAN_WRITES;
        if (owner->op == IR_LOOP && scan_from(owner->regions[0]->first, in) == SCAN_WRITES)
            return false;
        in = owner;
    }
}

static bool waits_for_other_blocks(const vm_plan *p, const vm_node *loop) {
    unsigned fixed = 0, axes = 0;
    bool together = loop->calm;
    const ir_inst *in = loop->inst;
    for (const ir_inst *o = in->parent->owner; o != NULL; in = o, o = o->parent->owner) {
        bool sides = o->op == IR_IF && vm_node_of(o)->vector_if;
        if (!sides && vm_node_of(o)->calm) continue;
        together = false;
        if (!others_only_wait(o)) return false;
        if (!sides || in->parent != o->regions[0]) continue;
        fixed |= axes_fixed(p, o->args[0]);
        if (scan_from(o->regions[1]->first, NULL) == SCAN_WRITES) return false;
    }
    for (int d = 0; d < 3; d++) axes |= (unsigned)(p->box[d] > 1) << d;
    return together || (axes & ~fixed) == 0;
}

static bool all_wait_for_other_blocks(const vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++)
        if (p->nodes[i].spin && !waits_for_other_blocks(p, &p->nodes[i])) return false;
    return true;
}

simt_status vm_plan_gangs(vm_plan *p) {
    gangs s = {.p = p,
               .tainted = ARENA_ARRAY(p->mem, bool, p->nvalues + 1),
               .decides = ARENA_ARRAY(p->mem, bool, p->nvalues + 1)};
    find_spin_loops(&s);
    p->lanes = p->threads;
    vm_plan_shapes(p);
    if (p->lanes == 1) return SIMT_OK;
    bool alone = p->has_spin && !all_wait_for_other_blocks(p), together = true;
    alone = alone || meets_from_both_sides(p);
    if (!alone) SIMT_TRY(vm_plan_meetings(p, &together));
    if (!alone && together) return SIMT_OK;
    p->lanes = 1;
    vm_plan_shapes(p);
    return SIMT_OK;
}
