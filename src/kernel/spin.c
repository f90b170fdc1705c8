/* Spin loops: those that wait for what other threads do.
 *
 * A loop spins when a way out of it hangs on an atomic or on a load that others change. For plain loads
 * that is so where a round can end with nothing changed that decides on the way out or on an address.
 */
#include "kernel/facts.h"

typedef struct spinning {
    const facts_places *places;
    uint32_t *loads, *effects; /* how many stand before each number: loads; what others may see */
    uint32_t *signals;         /* likewise */
    bool *hot;                 /* by value id: hangs on a signal; NULL: there are none */
    bool *decides; /* by value id: an exit or an address hangs on it, in the loop in question */
    uint32_t *list, nlist; /* values that are marked */
    uint32_t *out, nout;   /* each `continue` in that loop that names one around it */
} spinning;

static void mark(spinning *s, bool *set, const ir_value *v) {
    if (set[v->id]) return;
    set[v->id] = true;
    s->list[s->nlist++] = v->id;
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

static void mark_results(spinning *s, const ir_inst *in) {
    if (ir_op_table[in->op].control) return;
    for (unsigned i = 0; i < in->nresults; i++) mark(s, s->hot, &in->results[i]);
}

/* What hangs on an operand. */
static void mark_use(spinning *s, const ir_inst *in, unsigned arg) {
    if (in->op == IR_BR)
        mark(s, s->hot, &in->label->results[arg]);
    else if (in->op == IR_CONTINUE)
        mark(s, s->hot, &in->label->regions[0]->params[arg]);
    else if (in->op == IR_LOOP)
        mark(s, s->hot, &in->regions[0]->params[arg]);
    else
        mark_results(s, in);
}

static void find_hot(spinning *s) {
    const facts_places *p = s->places;
    for (uint32_t i = 0; i < p->ninsts; i++)
        if (is_signal(p->insts[i].inst)) mark_results(s, p->insts[i].inst);
    while (s->nlist > 0) {
        uint32_t v = s->list[--s->nlist];
        for (uint32_t u = p->first_use[v]; u < p->first_use[v + 1]; u++)
            mark_use(s, p->insts[p->uses[u].inst].inst, p->uses[u].arg);
    }
}

/* Whether a jump inside the `if` decides about the rounds of the loop: leaves it, or starts the next. */
static bool decides_rounds(const spinning *s, const ir_inst *branch, const facts_construct *loop) {
    const facts_construct *c = facts_construct_of(s->places, branch);
    return c->returns || c->reach <= loop->depth;
}

static bool spins_on_signal(const spinning *s, const facts_construct *loop) {
    uint32_t from = loop->inst->number + 1;
    if (s->hot == NULL || s->signals[loop->end] == s->signals[from]) return false;
    for (uint32_t i = from; i < loop->end; i++) {
        const ir_inst *in = s->places->insts[i].inst;
        if (in->op == IR_IF && s->hot[in->args[0]->id] && decides_rounds(s, in, loop)) return true;
    }
    return false;
}

/* ---- plain loads that poll ---- */

static bool only_reads(const spinning *s, const facts_construct *loop) {
    uint32_t from = loop->inst->number + 1;
    return s->loads[loop->end] > s->loads[from] && s->effects[loop->end] == s->effects[from];
}

/* What jumps that name a construct of the loop pass as its value number i. */
static void mark_passed(spinning *s, const facts_construct *c, ir_op op, uint32_t i) {
    const facts_places *p = s->places;
    for (uint32_t n = c->first_jump; n != FACTS_NONE; n = p->insts[n].next_jump)
        if (p->insts[n].inst->op == op) mark(s, s->decides, p->insts[n].inst->args[i]);
}

/* ... and as value i of a loop around it: that may be another way round. */
static void mark_passed_out(spinning *s, const ir_inst *outer, uint32_t i) {
    for (uint32_t n = 0; n < s->nout; n++) {
        const ir_inst *jump = s->places->insts[s->out[n]].inst;
        if (jump->label == outer) mark(s, s->decides, jump->args[i]);
    }
}

/* What a value is made from inside the loop. */
static void mark_sources(spinning *s, const ir_value *v, const facts_construct *loop) {
    const ir_inst *in = v->inst != NULL ? v->inst : v->region->owner;
    if (in == NULL) return;
    bool inside = facts_stands_in(in, loop), carried = v->inst == NULL;
    if (!inside && carried) mark_passed_out(s, in, v->index);
    if (!inside) return;
    if (carried || facts_is_construct(in))
        mark_passed(s, facts_construct_of(s->places, in), carried ? IR_CONTINUE : IR_BR, v->index);
    if (!facts_is_construct(in))
        for (unsigned i = 0; i < in->nargs; i++) mark(s, s->decides, in->args[i]);
    else if (carried && in != loop->inst)
        mark(s, s->decides, in->args[v->index]);
}

/* Marks what conditions and addresses inside the loop are made from: the values in the list. */
static void find_deciders(spinning *s, const facts_construct *loop) {
    s->nlist = s->nout = 0;
    for (uint32_t i = loop->inst->number + 1; i < loop->end; i++) {
        const ir_inst *in = s->places->insts[i].inst;
        if (in->op == IR_IF || in->op == IR_LOAD) mark(s, s->decides, in->args[0]);
        if (in->op == IR_CONTINUE && in->label->number < loop->inst->number) s->out[s->nout++] = i;
    }
    for (uint32_t i = 0; i < s->nlist; i++) mark_sources(s, s->places->values[s->list[i]], loop);
}

static bool changes_nothing(const spinning *s, const ir_inst *next) {
    const ir_region *body = next->label->regions[0];
    for (unsigned i = 0; i < next->nargs; i++)
        if (s->decides[body->params[i].id] && next->args[i] != &body->params[i]) return false;
    return true;
}

static bool polls_plain_load(spinning *s, const facts_construct *loop) {
    const facts_places *p = s->places;
    if (loop->continues == 0 || !only_reads(s, loop)) return false;
    bool polls = false;
    find_deciders(s, loop);
    for (uint32_t n = loop->first_jump; n != FACTS_NONE; n = p->insts[n].next_jump)
        polls |= p->insts[n].inst->op == IR_CONTINUE && changes_nothing(s, p->insts[n].inst);
    while (s->nlist > 0) s->decides[s->list[--s->nlist]] = false; /* for the next loop */
    return polls;
}

/* ---- all loops ---- */

static bool has_effect(const ir_inst *in) {
    const ir_op_info *info = &ir_op_table[in->op];
    return (info->writes && in->op != IR_FAULT) || info->convergent;
}

static void count(spinning *s) {
    bool any = false;
    for (uint32_t i = 0; i < s->places->ninsts; i++) {
        const ir_inst *in = s->places->insts[i].inst;
        bool signal = is_signal(in);
        any |= signal;
        s->signals[i + 1] = s->signals[i] + signal;
        s->loads[i + 1] = s->loads[i] + (in->op == IR_LOAD);
        s->effects[i + 1] = s->effects[i] + has_effect(in);
    }
    if (!any) s->hot = NULL;
}

simt_status facts_find_spin_loops(kernel_facts *k, arena *mem) {
    const facts_places *p = &k->places;
    bool loops = false;
    k->spins = ARENA_ARRAY(mem, bool, p->nconstructs + 1);
    if (k->spins == NULL) return facts_no_memory(k->f);
    for (uint32_t c = 0; c < p->nconstructs; c++) loops |= p->constructs[c].inst->op == IR_LOOP;
    if (!loops) return SIMT_OK;
    spinning s = {.places = p,
                  .loads = ARENA_ARRAY(mem, uint32_t, p->ninsts + 1),
                  .effects = ARENA_ARRAY(mem, uint32_t, p->ninsts + 1),
                  .signals = ARENA_ARRAY(mem, uint32_t, p->ninsts + 1),
                  .out = ARENA_ARRAY(mem, uint32_t, p->ninsts + 1),
                  .list = ARENA_ARRAY(mem, uint32_t, k->f->next_id + 1),
                  .hot = ARENA_ARRAY(mem, bool, k->f->next_id + 1),
                  .decides = ARENA_ARRAY(mem, bool, k->f->next_id + 1)};
    if (s.loads == NULL || s.effects == NULL || s.signals == NULL || s.out == NULL ||
        s.list == NULL || s.hot == NULL || s.decides == NULL)
        return facts_no_memory(k->f);
    count(&s);
    if (s.hot != NULL) find_hot(&s);
    for (uint32_t c = 0; c < p->nconstructs; c++) {
        const facts_construct *loop = &p->constructs[c];
        if (loop->inst->op != IR_LOOP) continue;
        k->spins[c] = spins_on_signal(&s, loop) || polls_plain_load(&s, loop);
        k->any_spins |= k->spins[c];
    }
    return SIMT_OK;
}
