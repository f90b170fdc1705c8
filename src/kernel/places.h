/* Where everything stands in a function: its instructions by number, its constructs, the jumps that name
 * each, the uses of each value. What the other analyses walk over, without recursion and without notes.
 *
 * A construct is a block, loop or if; a jump a `br` or `continue`, which names one of the constructs around
 * it. Numbers and ids are those of ir_func_renumber, which comes first; the tables are whole as long as the
 * function does not change.
 */
#ifndef SIMT_KERNEL_PLACES_H
#define SIMT_KERNEL_PLACES_H

#include "ir/ir.h"

enum { FACTS_NONE = UINT32_MAX };

typedef struct facts_construct { /* in program order */
    const ir_inst *inst;
    uint32_t around; /* the construct around it, or FACTS_NONE */
    uint32_t depth;  /* how many are around it */
    uint32_t end;    /* the number behind all that stands inside */
    uint32_t reach;  /* least depth of a construct that a jump inside names; none: FACTS_NONE */
    uint32_t brs, continues; /* jumps that name it, */
    uint32_t first_jump,
        last_jump; /* by number, the first and the last: FACTS_NONE; see next_jump */
    bool returns;  /* a thread may end inside */
    bool nested;   /* a `br` that names it stands inside a deeper construct */
} facts_construct;

typedef struct facts_place { /* by number of the instruction */
    const ir_inst *inst;
    uint32_t construct; /* that it is, else that it stands in; FACTS_NONE: the body */
    uint32_t next_jump; /* of a jump: the next that names the same construct, or FACTS_NONE */
} facts_place;

typedef struct facts_use {
    uint32_t inst, arg;
} facts_use;

typedef struct facts_places {
    const ir_func *f;
    facts_place *insts;
    facts_construct *constructs;
    uint32_t ninsts, nconstructs;
    facts_use *uses; /* those of value v from first_use[v] to first_use[v + 1] */
    uint32_t *first_use;
    const ir_value **values; /* by id; NULL: an id that is not in use */
} facts_places;

/* Of analyses that find no memory. */
static inline simt_status facts_no_memory(const ir_func *f) {
    return status_fail(SIMT_ERR_MEMORY, "out of memory while analysing kernel '%s'", f->name);
}

simt_status facts_find_places(const ir_func *f, arena *mem, facts_places *out);

static inline bool facts_is_construct(const ir_inst *in) { return in->regions[0] != NULL; }
static inline bool facts_is_jump(const ir_inst *in) {
    return in->op == IR_BR || in->op == IR_CONTINUE;
}
/* Of a block, loop or if. */
static inline uint32_t facts_number_of(const facts_places *p, const ir_inst *construct) {
    return p->insts[construct->number].construct;
}
static inline const facts_construct *facts_construct_of(const facts_places *p,
                                                        const ir_inst *construct) {
    return &p->constructs[p->insts[construct->number].construct];
}
/* The construct around an instruction, or FACTS_NONE. */
static inline uint32_t facts_around(const facts_places *p, const ir_inst *in) {
    uint32_t c = p->insts[in->number].construct;
    return facts_is_construct(in) ? p->constructs[c].around : c;
}
/* Something inside ends a thread, or leaves the construct for one around it. */
static inline bool facts_escapes(const facts_construct *c) {
    return c->returns || c->reach < c->depth;
}
static inline bool facts_stands_in(const ir_inst *in, const facts_construct *c) {
    return in->number >= c->inst->number && in->number < c->end;
}

#endif
