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

/* The node that comes after all that stands in this construct. */
static const vm_node *behind(const vm_plan *p, const vm_node *construct) {
    const vm_node *low = construct + 1, *high = end_of(p);
    while (low < high) {
        const vm_node *mid = low + (high - low) / 2;
        if (mid->at >= construct->end)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

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
    const vm_node *end = behind(p, loop);
    for (bool changed = true; changed;) { /* uses come after what they are made from */
        changed = false;
        for (const vm_node *n = end; --n > loop;) {
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
    const vm_node *end = behind(s->p, loop);
    bool polls = false;
    find_deciders(s, loop);
    for (const vm_node *n = loop + 1; n < end; n++)
        polls |= n->inst->op == IR_CONTINUE && n->inst->label == loop->inst &&
                 changes_nothing(s, n->inst);
    for (const vm_node *n = loop + 1; n < end; n++) /* for the next loop */
        for (unsigned i = 0; i < n->inst->nargs; i++) s->decides[n->inst->args[i]->id] = false;
    return polls;
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

/* How many barriers, and how many grid.sync, stand before each node, and before the end. */
typedef struct waits {
    uint32_t *barriers, *syncs;
} waits;

static waits count_waits(const vm_plan *p) {
    waits w = {ARENA_ARRAY(p->mem, uint32_t, p->nnodes + 1),
               ARENA_ARRAY(p->mem, uint32_t, p->nnodes + 1)};
    for (uint32_t i = 0; i < p->nnodes; i++) {
        w.barriers[i + 1] = w.barriers[i] + ir_op_is_barrier(p->nodes[i].inst->op);
        w.syncs[i + 1] = w.syncs[i] + (p->nodes[i].inst->op == IR_GRID_SYNC);
    }
    return w;
}

static bool sides_meet(const vm_plan *p, const waits *w, const vm_node *branch) {
    const ir_inst *second = branch->inst->regions[1]->first;
    if (second == NULL) return false;
    size_t yes = (size_t)(branch + 1 - p->nodes), no = (size_t)(vm_node_of(second) - p->nodes),
           end = (size_t)(behind(p, branch) - p->nodes);
    return (w->barriers[no] > w->barriers[yes] && w->barriers[end] > w->barriers[no]) ||
           (w->syncs[no] > w->syncs[yes] && w->syncs[end] > w->syncs[no]);
}

static bool meets_from_both_sides(const vm_plan *p) {
    const waits w = count_waits(p);
    if (w.barriers[p->nnodes] + w.syncs[p->nnodes] < 2) return false;
    for (uint32_t i = 0; i < p->nnodes; i++)
        if (p->nodes[i].inst->op == IR_IF && p->nodes[i].vector_if &&
            sides_meet(p, &w, &p->nodes[i]))
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
