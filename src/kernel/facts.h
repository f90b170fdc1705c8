/* The facts of a kernel: what is known of a function for a block size, whatever machine runs it. A back end
 * reads them and emits; it analyses nothing that is not its own (where values live, which forms its code has).
 *
 * Tables go by the number of an instruction, of a construct, by the id of a value (places.h). SIMT_DUMP=facts
 * prints what they say; tests/golden/facts holds an example of each.
 *
 * The words (docs/facts.md has them too):
 *   box            the threads that run together: those of a block, or, where blocks do not
 *                  matter, others
 *   together       in step: they meet again where a construct ends
 *   gang           in a back end: as many threads as one pass over the code runs, so many lanes
 *   uniform        a value that all threads of the box have the same
 *   fixed          a value that grows by known steps along x, y, z; linear: evenly with the
 *                  thread's flat number
 *   varies         a value of which nothing of that kind is known
 *   splits         an `if` that threads take differently
 *   calm           a construct that the threads inside leave together
 *   parts          a jump out of what splits or is not calm: some threads come to it, others not
 *   escapes        a construct from inside which threads leave for one around it, or end
 *   nested         a construct that is left from inside a deeper one
 *   signal         an atomic, or a load that is not plain: what other threads do shows in it
 *   decides        a value on which it hangs how a loop ends, or from which address it loads
 *   spins          a loop that waits for what other threads do: a way out hangs on a signal, or on
 *                  a plain load where a round can end with nothing changed that decides
 *   wait           at a barrier, a warp operation, grid.sync: for threads that have to come there
 *                  too
 *   meet           lanes meet at a warp operation when all that its mask names come to it together
 *   singly         each thread goes its own way, and waits where it has to, because together they
 *                  would wait for ever for those that wait for them
 *   small grid     along each axis, the threads of the grid are counted by i32
 *   blocks matter  a thread's block, or its place there, is seen: else threads may run in any
 *                  boxes
 *   spread         the vm's: code of a kernel whose blocks do not matter, in boxes that are rows
 *                  of the grid
 */
#ifndef SIMT_KERNEL_FACTS_H
#define SIMT_KERNEL_FACTS_H

#include "kernel/blocks.h"
#include "kernel/shape.h"

/* Why threads must run singly. */
typedef enum facts_singly {
    FACTS_TOGETHER,
    FACTS_SPIN_LOOP,  /* a loop may wait for threads of the block: `singly_at` is the loop */
    FACTS_TWO_SIDES,  /* barriers, or grid.sync, on both sides of a splitting `if`: the if */
    FACTS_NO_MEETING, /* lanes may not meet at a warp operation: the operation */
    FACTS_CALLS, /* calls of functions beside the kernel; in such a function its first instruction */
} facts_singly;

typedef enum facts_meeting {                    /* of an operation for which lanes wait */
                             FACTS_NOT_ASKED,   /* none; or threads run singly for another reason */
                             FACTS_MEET_ALL,    /* all threads of the box come to it together */
                             FACTS_MEET_GROUPS, /* those that the mask names do */
                             FACTS_MEET_SOURCE, /* those that came together to what gave the mask, and to that all of a warp */
                             FACTS_MEET_NOT /* not seen to */
} facts_meeting;

typedef struct facts_options {
    uint32_t box[3], block[3]; /* block: of the launch, which ntid is */
    bool small_grid;           /* may be taken to be true */
} facts_options;

typedef struct kernel_facts {
    const ir_func *f;
    facts_options options;
    uint32_t threads; /* of the box */
    facts_places places;
    const facts_range *ranges; /* by value */
    facts_shapes shapes;       /* by value, by construct */
    bool *spins;               /* by construct */
    bool any_spins;
    uint8_t *meetings; /* by number, facts_meeting; NULL: there are no warp operations */
    facts_singly singly;
    const ir_inst *singly_at;
    facts_blocks blocks;
} kernel_facts;

/* f: numbered by ir_func_renumber, and not changed as long as the facts are used. */
simt_status kernel_find_facts(const ir_func *f, const facts_options *options, arena *mem,
                              kernel_facts *out);

/* The facts of a unit's functions as they are asked for: each is found once for a box, whoever asks. They live
 * until forget. */
typedef struct facts_found facts_found;
typedef struct facts_book {
    arena mem;
    facts_found *first;
} facts_book;

void facts_open(facts_book *book);
void facts_forget(facts_book *book);
simt_status facts_ask(facts_book *book, const ir_func *f, const facts_options *options,
                      const kernel_facts **out);

/* A line for each instruction and construct of which something is known, behind what is so of the whole. */
void kernel_print_facts(const kernel_facts *facts, strbuf *out);

static inline const facts_shape *facts_shape_of(const kernel_facts *k, const ir_value *v) {
    return &k->shapes.values[v->id];
}
static inline facts_parting facts_parting_of(const kernel_facts *k, const ir_inst *construct) {
    return k->shapes.constructs[facts_number_of(&k->places, construct)];
}
/* A block, loop or if that threads of the box enter and leave together. */
static inline bool facts_keeps_together(const kernel_facts *k, uint32_t construct) {
    const facts_parting *p = &k->shapes.constructs[construct];
    return p->calm && !p->splits;
}

/* ---- the analyses, in this order; each reads what those before it left ---- */

simt_status facts_find_spin_loops(kernel_facts *k, arena *mem);
simt_status facts_find_meetings(kernel_facts *k, arena *mem);
/* Sets singly, and asks for meetings. */
simt_status facts_find_singly(kernel_facts *k, arena *mem);

#endif
