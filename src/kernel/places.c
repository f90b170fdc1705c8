/* Places (places.h): one walk that numbers, one that lists the uses. */
#include "kernel/places.h"

#include <assert.h>

static uint32_t count_constructs(const ir_region *r) {
    uint32_t n = 0;
    for (const ir_inst *in = r->first; in != NULL; in = in->next)
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++)
            n += (i == 0) + count_constructs(in->regions[i]);
    return n;
}

static void add_jump(facts_places *p, const ir_inst *jump, uint32_t around) {
    uint32_t to = facts_number_of(p, jump->label);
    facts_construct *c = &p->constructs[to];
    if (c->last_jump == FACTS_NONE)
        c->first_jump = jump->number;
    else
        p->insts[c->last_jump].next_jump = jump->number;
    c->last_jump = jump->number;
    if (jump->op == IR_BR)
        c->brs++;
    else
        c->continues++;
    c->nested |= jump->op == IR_BR && around != to;
    if (c->depth < p->constructs[around].reach) p->constructs[around].reach = c->depth;
}

/* What jumps inside a construct say of the one around it. */
static void tell_around(facts_places *p, const facts_construct *c) {
    if (c->around == FACTS_NONE) return;
    facts_construct *around = &p->constructs[c->around];
    around->returns |= c->returns;
    if (c->reach < c->depth && c->reach < around->reach) around->reach = c->reach;
}

/* Returns the number behind the region. */
static uint32_t scan(facts_places *p, const ir_region *r, uint32_t at, uint32_t around) {
    uint32_t depth = around == FACTS_NONE ? 0 : p->constructs[around].depth + 1;
    for (uint32_t i = 0; i < r->nparams; i++) p->values[r->params[i].id] = &r->params[i];
    for (const ir_inst *in = r->first; in != NULL; in = in->next) {
        p->insts[at++] = (facts_place){.inst = in, .construct = around, .next_jump = FACTS_NONE};
        for (unsigned i = 0; i < in->nresults; i++) p->values[in->results[i].id] = &in->results[i];
        if (facts_is_jump(in)) add_jump(p, in, around);
        bool ends =
            in->op == IR_RETURN || in->op == IR_EXIT || in->op == IR_CALL; /* some threads */
        if (ends && around != FACTS_NONE) p->constructs[around].returns = true;
        if (!facts_is_construct(in)) continue;
        uint32_t number = p->nconstructs++;
        p->insts[in->number].construct = number;
        facts_construct *c = &p->constructs[number];
        *c = (facts_construct){.inst = in,
                               .around = around,
                               .depth = depth,
                               .reach = FACTS_NONE,
                               .first_jump = FACTS_NONE,
                               .last_jump = FACTS_NONE};
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++)
            at = scan(p, in->regions[i], at, number);
        c->end = at;
        tell_around(p, c);
    }
    return at;
}

/* Counts, then sums, then places from the back, which turns the ends into beginnings. */
static void list_uses(facts_places *p) {
    uint32_t *first = p->first_use, n = p->f->next_id;
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (unsigned k = 0; k < p->insts[i].inst->nargs; k++)
            first[p->insts[i].inst->args[k]->id]++;
    for (uint32_t v = 1; v <= n; v++) first[v] += first[v - 1];
    for (uint32_t i = p->ninsts; i-- > 0;) {
        const ir_inst *in = p->insts[i].inst;
        for (unsigned k = in->nargs; k-- > 0;)
            p->uses[--first[in->args[k]->id]] = (facts_use){.inst = i, .arg = k};
    }
}

static size_t count_args(const facts_places *p) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) n += p->insts[i].inst->nargs;
    return n;
}

simt_status facts_find_places(const ir_func *f, arena *mem, facts_places *out) {
    *out = (facts_places){.f = f,
                          .ninsts = f->ninsts,
                          .insts = ARENA_ARRAY(mem, facts_place, f->ninsts + 1),
                          .constructs =
                              ARENA_ARRAY(mem, facts_construct, count_constructs(&f->body) + 1),
                          .values = ARENA_ARRAY(mem, const ir_value *, f->next_id + 1),
                          .first_use = ARENA_ARRAY(mem, uint32_t, f->next_id + 1)};
    if (out->insts == NULL || out->constructs == NULL || out->values == NULL ||
        out->first_use == NULL)
        return facts_no_memory(f);
    uint32_t end = scan(out, &f->body, 0, FACTS_NONE);
    assert(end == f->ninsts); /* ir_func_renumber has been called */
    (void)end;
    out->uses = ARENA_ARRAY(mem, facts_use, count_args(out) + 1);
    if (out->uses == NULL) return facts_no_memory(f);
    list_uses(out);
    return SIMT_OK;
}
