/* Which threads must run singly.
 *
 * None, unless threads wait for each other otherwise than at a barrier all come to: in a spin loop, at
 * barriers on both sides of an `if` that they take differently, or at a warp operation to which they may
 * not come together (meet.c).
 * A spin loop is no reason where nobody in the block can be what it waits for: all threads go through it
 * together, or one thread alone while the others have nothing to write before the next barrier.
 */
#include "kernel/facts.h"

/* ---- barriers that threads may come to from both sides of an if ---- */

/* How many barriers, and how many grid.sync, stand before each number. */
typedef struct waits {
    uint32_t *barriers, *syncs;
} waits;

static void count_waits(const facts_places *p, waits *w) {
    for (uint32_t i = 0; i < p->ninsts; i++) {
        ir_op op = p->insts[i].inst->op;
        w->barriers[i + 1] = w->barriers[i] + ir_op_is_barrier(op);
        w->syncs[i + 1] = w->syncs[i] + (op == IR_GRID_SYNC);
    }
}

static bool on_both(const uint32_t *before, uint32_t yes, uint32_t no, uint32_t end) {
    return before[no] > before[yes] && before[end] > before[no];
}

static bool sides_wait(const facts_places *p, const waits *w, const facts_construct *branch) {
    const ir_inst *second = branch->inst->regions[1]->first;
    if (second == NULL) return false;
    uint32_t yes = branch->inst->number + 1, no = second->number, end = branch->end;
    return on_both(w->barriers, yes, no, end) || on_both(w->syncs, yes, no, end);
}

/* The first `if` of this kind, or NULL. */
static simt_status find_two_sides(const kernel_facts *k, arena *mem, const ir_inst **out) {
    const facts_places *p = &k->places;
    uint32_t all = 0;
    *out = NULL;
    for (uint32_t i = 0; i < p->ninsts; i++)
        all += ir_op_is_barrier(p->insts[i].inst->op) || p->insts[i].inst->op == IR_GRID_SYNC;
    if (all < 2) return SIMT_OK;
    waits w = {ARENA_ARRAY(mem, uint32_t, p->ninsts + 1),
               ARENA_ARRAY(mem, uint32_t, p->ninsts + 1)};
    if (w.barriers == NULL || w.syncs == NULL) return facts_no_memory(k->f);
    count_waits(p, &w);
    for (uint32_t c = 0; c < p->nconstructs && *out == NULL; c++)
        if (k->shapes.constructs[c].splits && sides_wait(p, &w, &p->constructs[c]))
            *out = p->constructs[c].inst;
    return SIMT_OK;
}

/* ---- spin loops that wait for other blocks only ---- */

/* The axes of the box along which a condition leaves one place, a bit each. */
static unsigned axes_fixed(const kernel_facts *k, const ir_value *cond, unsigned *fuel) {
    const ir_inst *in = cond->inst;
    if (in == NULL || *fuel == 0) return 0;
    --*fuel;
    if (in->op == IR_AND)
        return axes_fixed(k, in->args[0], fuel) | axes_fixed(k, in->args[1], fuel);
    if (in->op != IR_EQ || ir_type_bits(in->args[0]->type) < 32) return 0;
    const facts_shape *a = facts_shape_of(k, in->args[0]), *b = facts_shape_of(k, in->args[1]);
    if (facts_shape_is_uniform(a)) a = b, b = facts_shape_of(k, in->args[0]);
    if (!facts_shape_is_uniform(b) || a->kind != FACTS_FIXED) return 0;
    int64_t stride;
    if (facts_shape_is_even(a, k->options.box, &stride))
        return stride > -32768 && stride < 32768 ? 7 : 0;
    unsigned grows = 0;
    for (int d = 0; d < 3; d++) grows |= (unsigned)(a->step[d] != 0) << d;
    return (grows & (grows - 1)) == 0 ? grows : 0;
}

typedef enum scan { SCAN_ON, SCAN_BARRIER, SCAN_WRITES } scan;

/* What comes first from an instruction on to the end of its region: a barrier, something that other
 * threads may see (or a jump that makes it unclear), or neither; and its number. */
typedef struct stop {
    uint32_t at;
    uint8_t what; /* scan */
} stop;

typedef struct waiting {
    const kernel_facts *k;
    stop *stops; /* by number */
} waiting;

static scan scan_region(const waiting *w, const ir_region *r) {
    return r->first != NULL ? (scan)w->stops[r->first->number].what : SCAN_ON;
}

static scan scan_inst(const waiting *w, const ir_inst *in) {
    const ir_op_info *info = &ir_op_table[in->op];
    if (ir_op_is_barrier(in->op)) return SCAN_BARRIER;
    if ((info->writes && in->op != IR_FAULT) || info->convergent) return SCAN_WRITES;
    if (!facts_is_construct(in)) return SCAN_ON;
    if (facts_escapes(facts_construct_of(&w->k->places, in))) return SCAN_WRITES;
    for (int r = 0; r < 2 && in->regions[r] != NULL; r++)
        if (scan_region(w, in->regions[r]) == SCAN_WRITES) return SCAN_WRITES;
    return SCAN_ON;
}

static void find_stops(const waiting *w) {
    for (uint32_t i = w->k->places.ninsts; i-- > 0;) {
        const ir_inst *in = w->k->places.insts[i].inst;
        scan s = scan_inst(w, in);
        if (s != SCAN_ON)
            w->stops[i] = (stop){.at = i, .what = (uint8_t)s};
        else if (in->next != NULL)
            w->stops[i] = w->stops[in->next->number];
    }
}

/* Threads that are past `in`, while others are inside, write nothing before a barrier or their end. */
static bool others_only_wait(const waiting *w, const ir_inst *in) {
    for (;;) {
        const ir_inst *owner = in->parent->owner;
        scan s = in->next != NULL ? (scan)w->stops[in->next->number].what : SCAN_ON;
        if (s != SCAN_ON || owner == NULL) return s != SCAN_WRITES;
        if (owner->op == IR_LOOP) {
            const stop *first = &w->stops[owner->regions[0]->first->number];
            if (first->what == SCAN_WRITES && first->at < in->number) return false;
        }
        in = owner;
    }
}

static bool waits_for_other_blocks(const waiting *w, const facts_construct *loop) {
    const kernel_facts *k = w->k;
    unsigned fixed = 0, axes = 0, fuel = 1000;
    const ir_inst *in = loop->inst;
    bool together = facts_parting_of(k, in).calm;
    for (const ir_inst *o = in->parent->owner; o != NULL; in = o, o = o->parent->owner) {
        bool sides = facts_parting_of(k, o).splits;
        if (!sides && facts_parting_of(k, o).calm) continue;
        together = false;
        if (!others_only_wait(w, o)) return false;
        if (!sides || in->parent != o->regions[0]) continue;
        fixed |= axes_fixed(k, o->args[0], &fuel);
        if (scan_region(w, o->regions[1]) == SCAN_WRITES) return false;
    }
    for (int d = 0; d < 3; d++) axes |= (unsigned)(k->options.box[d] > 1) << d;
    return together || (axes & ~fixed) == 0;
}

/* The first loop that may wait for threads of the box, or NULL. */
static simt_status find_spin_loop(const kernel_facts *k, arena *mem, const ir_inst **out) {
    const facts_places *p = &k->places;
    *out = NULL;
    if (!k->any_spins) return SIMT_OK;
    waiting w = {.k = k, .stops = ARENA_ARRAY(mem, stop, p->ninsts + 1)};
    if (w.stops == NULL) return facts_no_memory(k->f);
    find_stops(&w);
    for (uint32_t c = 0; c < p->nconstructs && *out == NULL; c++)
        if (k->spins[c] && !waits_for_other_blocks(&w, &p->constructs[c]))
            *out = p->constructs[c].inst;
    return SIMT_OK;
}

/* ---- the reasons ---- */

static void run_singly(kernel_facts *k, facts_singly why, const ir_inst *at) {
    if (at == NULL || k->singly != FACTS_TOGETHER) return;
    k->singly = why;
    k->singly_at = at;
}

static const ir_inst *first_that_meets_not(const kernel_facts *k) {
    for (uint32_t i = 0; k->meetings != NULL && i < k->places.ninsts; i++)
        if (k->meetings[i] == FACTS_MEET_NOT) return k->places.insts[i].inst;
    return NULL;
}

/* What makes stacks necessary, on which threads go their own ways. */
static const ir_inst *first_call(const kernel_facts *k) {
    const facts_places *p = &k->places;
    if (k->f->unit != NULL) return k->f->body.first;
    for (uint32_t i = 0; k->f->nfunctions > 0 && i < p->ninsts; i++)
        if (p->insts[i].inst->op == IR_CALL) return p->insts[i].inst;
    return NULL;
}

simt_status facts_find_singly(kernel_facts *k, arena *mem) {
    const ir_inst *at;
    if (k->threads == 1) return SIMT_OK;
    run_singly(k, FACTS_CALLS, first_call(k));
    SIMT_TRY(find_spin_loop(k, mem, &at));
    run_singly(k, FACTS_SPIN_LOOP, at);
    SIMT_TRY(find_two_sides(k, mem, &at));
    run_singly(k, FACTS_TWO_SIDES, at);
    if (k->singly == FACTS_TOGETHER) SIMT_TRY(facts_find_meetings(k, mem));
    run_singly(k, FACTS_NO_MEETING, first_that_meets_not(k));
    return SIMT_OK;
}
