/* Whether lanes that run together meet at the warp operations of a kernel.
 *
 * Together, those that went another way wait for the rest where a construct ends: an operation whose mask
 * names them would wait for ever. So all lanes that a mask names must come to the operation together.
 * Where that is not seen here, each thread must run singly: threads then meet at their operations whenever
 * they come, as on a GPU, in other rounds of a loop or past its end.
 *
 * What is seen: by masks that are known when the kernel is compiled, that no `if` on the way and no jump
 * out of a construct parts a thread from those that its mask names (facts_find_group_shapes); by a mask
 * that is what activemask, a ballot or a match gave, that nothing on the way from there parts a warp.
 */
#include "base/hash.h"
#include "kernel/facts.h"

#include <string.h>

/* Of how many different groups shapes are found: as many as take work for this many instructions, and a
 * few in any case. Operations of other groups are not seen to meet. */
enum { MOST_WORK = 4 << 20, LEAST_GROUPS = 64 };

/* Threads in groups, and where the kernel parts these. */
typedef struct parted parted;
struct parted {
    parted *next;
    uint64_t hash;
    uint32_t *with;
    bool *splits;    /* by construct */
    uint32_t *jumps; /* numbers of the jumps that part groups, by the construct that they name, */
    uint32_t *first; /* where those of each begin, */
    uint32_t *last_out; /* and the last that leaves each construct from inside, or 0 */
};

typedef struct meetings {
    kernel_facts *k;
    const facts_places *places;
    arena *mem;
    const facts_thread_value *values;
    uint32_t *with;      /* the groups in question */
    facts_shapes shapes; /* room for those of a group */
    parted *known;
    uint32_t nknown;
} meetings;

static const ir_value *mask_of(const ir_inst *in) {
    return ir_op_group(in->op) == IR_IN_SHUFFLE ? in->args[2] : in->args[in->nargs - 1];
}

/* ---- groups ---- */

/* Each thread with those that the mask names; a mask that is not known may name all. */
static void group_by_mask(meetings *m, const ir_value *mask) {
    const facts_thread_value *known = mask != NULL ? &m->values[mask->id] : NULL;
    for (uint32_t t = 0; t < m->k->threads; t++) {
        bool whole = known != NULL && facts_thread_value_is_whole(known);
        m->with[t] =
            (whole ? (uint32_t)facts_thread_has(known, t) : UINT32_MAX) | 1u << t % IR_WARP_SIZE;
    }
}

/* Threads that can't come to the operation are no group. */
static void drop_others(meetings *m, const ir_inst *in) {
    for (const ir_inst *o; (o = in->parent->owner) != NULL; in = o) {
        if (o->op != IR_IF) continue;
        const facts_thread_value *cond = &m->values[o->args[0]->id];
        for (uint32_t t = 0; facts_thread_value_is_whole(cond) && t < m->k->threads; t++)
            if ((facts_thread_has(cond, t) != 0) != (in->parent == o->regions[0]))
                m->with[t] = 1u << t % IR_WARP_SIZE;
    }
}

/* ---- where groups part ---- */

/* The jumps that part groups are counted by the construct that they name, then listed. */
static void list_jumps(const meetings *m, parted *g) {
    const facts_places *p = m->places;
    uint32_t n = 0;
    for (uint32_t c = 0; c < p->nconstructs; c++) {
        g->first[c] = n;
        for (uint32_t j = p->constructs[c].first_jump; j != FACTS_NONE; j = p->insts[j].next_jump)
            if (facts_jump_parts(p, &m->shapes, p->insts[j].inst)) g->jumps[n++] = j;
    }
    g->first[p->nconstructs] = n;
}

/* A `continue` stays in the loop that it names. */
static void note_way_out(const meetings *m, parted *g, uint32_t jump) {
    const facts_places *p = m->places;
    const ir_inst *in = p->insts[jump].inst;
    uint32_t to = facts_number_of(p, in->label), c = facts_around(p, in);
    for (;; c = p->constructs[c].around) {
        if (c == to && in->op == IR_CONTINUE) return;
        if (jump > g->last_out[c]) g->last_out[c] = jump;
        if (c == to) return;
    }
}

static parted *new_parted(meetings *m, uint64_t hash) {
    const facts_places *p = m->places;
    size_t n = p->nconstructs + 1, bytes = m->k->threads * sizeof *m->with;
    uint32_t jumps = 0;
    parted *g = ARENA_NEW(m->mem, parted);
    if (g == NULL) return NULL;
    for (uint32_t c = 0; c < p->nconstructs; c++)
        jumps += p->constructs[c].brs + p->constructs[c].continues;
    *g = (parted){.next = m->known,
                  .hash = hash,
                  .with = arena_alloc(m->mem, bytes),
                  .splits = ARENA_ARRAY(m->mem, bool, n),
                  .jumps = ARENA_ARRAY(m->mem, uint32_t, jumps + 1),
                  .first = ARENA_ARRAY(m->mem, uint32_t, n),
                  .last_out = ARENA_ARRAY(m->mem, uint32_t, n)};
    if (g->with == NULL || g->splits == NULL || g->jumps == NULL || g->first == NULL ||
        g->last_out == NULL)
        return NULL;
    memcpy(g->with, m->with, bytes);
    m->known = g;
    m->nknown++;
    return g;
}

/* *out: NULL where there have been too many groups. */
static simt_status find_parted(meetings *m, const parted **out) {
    const facts_places *p = m->places;
    size_t bytes = m->k->threads * sizeof *m->with;
    uint64_t hash = 0;
    for (uint32_t t = 0; t < m->k->threads; t++) hash = hash_mix(hash, m->with[t]);
    for (parted *g = m->known; g != NULL; g = g->next)
        if (g->hash == hash && memcmp(g->with, m->with, bytes) == 0) {
            *out = g;
            return SIMT_OK;
        }
    *out = NULL;
    if (m->nknown >= LEAST_GROUPS && (uint64_t)m->nknown * p->ninsts > MOST_WORK) return SIMT_OK;
    parted *g = new_parted(m, hash);
    if (g == NULL) return facts_no_memory(m->k->f);
    facts_groups groups = {.with = m->with, .threads = m->k->threads, .values = m->values};
    facts_find_group_shapes(p, m->k->ranges, &groups, &m->shapes);
    for (uint32_t c = 0; c < p->nconstructs; c++) g->splits[c] = m->shapes.constructs[c].splits;
    list_jumps(m, g);
    for (uint32_t i = 0; i < g->first[p->nconstructs]; i++) note_way_out(m, g, g->jumps[i]);
    *out = g;
    return SIMT_OK;
}

/* ---- the way to an operation, from the start of the kernel or from the instruction `from` ---- */

/* A jump that parts groups, names this construct and stands between the two numbers. */
static bool parts_between(const parted *g, uint32_t construct, int64_t after, uint32_t before) {
    uint32_t low = g->first[construct], high = g->first[construct + 1], end = high;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (g->jumps[mid] > after)
            high = mid;
        else
            low = mid + 1;
    }
    return low < end && g->jumps[low] < before;
}

/* Behind the operation, a jump that parts groups matters where it leads to another round without those
 * who jumped. */
static bool leaves_a_round(const parted *g, const facts_construct *c, uint32_t number,
                           const ir_inst *in, const ir_inst *from) {
    return c->inst->op == IR_LOOP && g->last_out[number] > in->number &&
           !(from != NULL && facts_stands_in(from, c));
}

static bool is_reached(const meetings *m, const parted *g, const ir_inst *in, const ir_inst *from) {
    const facts_places *p = m->places;
    const ir_inst *last = from != NULL ? from->parent->owner : NULL, *o;
    const ir_value *named = from != NULL && from->op == IR_BALLOT ? from->args[0] : NULL;
    for (const ir_inst *i = in; (o = i->parent->owner) != last; i = o) {
        bool those = o->op == IR_IF && o->args[0] == named && i->parent == o->regions[0];
        if (g->splits[facts_number_of(p, o)] && !those) return false;
    }
    int64_t begin = from != NULL ? (int64_t)from->number : -1;
    for (uint32_t c = facts_around(p, in); c != FACTS_NONE; c = p->constructs[c].around)
        if (parts_between(g, c, begin, in->number) ||
            leaves_a_round(g, &p->constructs[c], c, in, from))
            return false;
    return true;
}

/* What gave the mask: it, or less of it, names lanes that were together there. */
static const ir_inst *source_of(const ir_value *mask, unsigned depth) {
    const ir_inst *in = mask->inst, *found = NULL;
    if (in == NULL || depth > 4) return NULL;
    if (in->op == IR_ACTIVEMASK || in->op == IR_BALLOT || in->op == IR_MATCH_ANY ||
        in->op == IR_MATCH_ALL)
        return in;
    for (unsigned i = 0; in->op == IR_AND && i < 2 && found == NULL; i++)
        found = source_of(in->args[i], depth + 1);
    return found;
}

static simt_status find_meeting(meetings *m, const ir_inst *in, facts_meeting *out) {
    const parted *g;
    group_by_mask(m, mask_of(in));
    drop_others(m, in);
    SIMT_TRY(find_parted(m, &g));
    *out = FACTS_MEET_GROUPS;
    if (g != NULL && is_reached(m, g, in, NULL)) return SIMT_OK;
    *out = FACTS_MEET_NOT;
    const ir_inst *from = source_of(mask_of(in), 0);
    if (from == NULL) return SIMT_OK;
    group_by_mask(m, NULL);
    SIMT_TRY(find_parted(m, &g));
    if (g != NULL && is_reached(m, g, in, from)) *out = FACTS_MEET_SOURCE;
    return SIMT_OK;
}

/* ---- all operations ---- */

/* All threads of the box come to it together. */
static bool is_calm(const kernel_facts *k, const ir_inst *in) {
    const facts_places *p = &k->places;
    for (uint32_t c = facts_around(p, in); c != FACTS_NONE; c = p->constructs[c].around)
        if (!facts_keeps_together(k, c)) return false;
    return true;
}

static bool waits(const ir_inst *in) { return ir_op_is_warp(in->op) && in->op != IR_ACTIVEMASK; }

static simt_status prepare(meetings *m) {
    kernel_facts *k = m->k;
    facts_thread_value *values;
    SIMT_TRY(facts_find_thread_values(k->f, k->options.box, m->mem, &values));
    SIMT_TRY(facts_new_shapes(m->places, m->mem, &m->shapes));
    m->values = values;
    m->with = ARENA_ARRAY(m->mem, uint32_t, k->threads);
    return m->with != NULL ? SIMT_OK : facts_no_memory(k->f);
}

simt_status facts_find_meetings(kernel_facts *k, arena *mem) {
    meetings m = {.k = k, .places = &k->places, .mem = mem};
    for (uint32_t i = 0; i < k->places.ninsts; i++) {
        const ir_inst *in = k->places.insts[i].inst;
        facts_meeting meeting = FACTS_MEET_ALL;
        if (!waits(in)) continue;
        if (k->meetings == NULL) {
            k->meetings = ARENA_ARRAY(mem, uint8_t, k->places.ninsts + 1);
            if (k->meetings == NULL) return facts_no_memory(k->f);
        }
        if (!is_calm(k, in)) {
            if (m.with == NULL) SIMT_TRY(prepare(&m));
            SIMT_TRY(find_meeting(&m, in, &meeting));
        }
        k->meetings[i] = (uint8_t)meeting;
    }
    return SIMT_OK;
}
