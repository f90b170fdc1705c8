/* All facts of a function (facts.h), in the order in which one needs the other. */
#include "kernel/facts.h"

#include <string.h>

simt_status kernel_find_facts(const ir_func *f, const facts_options *options, arena *mem,
                              kernel_facts *out) {
    const uint32_t *box = options->box;
    *out = (kernel_facts){.f = f, .options = *options, .threads = box[0] * box[1] * box[2]};
    SIMT_TRY(facts_find_places(f, mem, &out->places));
    out->blocks = facts_find_blocks(f);
    out->ranges = facts_find_ranges(f, options->block, options->small_grid, mem);
    if (out->ranges == NULL) return facts_no_memory(f);
    SIMT_TRY(facts_new_shapes(&out->places, mem, &out->shapes));
    facts_find_shapes(&out->places, out->ranges, box, &out->shapes);
    SIMT_TRY(facts_find_spin_loops(out, mem));
    return facts_find_singly(out, mem);
}

/* ---- what has been found ---- */

struct facts_found {
    facts_found *next;
    kernel_facts facts;
};

void facts_open(facts_book *book) {
    book->first = NULL;
    arena_init_sure(&book->mem);
}

void facts_forget(facts_book *book) { arena_deinit(&book->mem); }

static bool same_options(const facts_options *a, const facts_options *b) {
    return memcmp(a->box, b->box, sizeof a->box) == 0 &&
           memcmp(a->block, b->block, sizeof a->block) == 0 && a->small_grid == b->small_grid;
}

typedef struct asking {
    facts_book *book;
    const ir_func *f;
    const facts_options *options;
    facts_found *found;
} asking;

static simt_status find(void *context) {
    asking *a = context;
    a->found = ARENA_NEW(&a->book->mem, facts_found);
    return kernel_find_facts(a->f, a->options, &a->book->mem, &a->found->facts);
}

simt_status facts_ask(facts_book *book, const ir_func *f, const facts_options *options,
                      const kernel_facts **out) {
    for (facts_found *x = book->first; x != NULL; x = x->next) {
        *out = &x->facts;
        if (x->facts.f == f && same_options(&x->facts.options, options)) return SIMT_OK;
    }
    asking a = {.book = book, .f = f, .options = options};
    SIMT_TRY(arena_run(find, &a));
    a.found->next = book->first;
    book->first = a.found;
    *out = &a.found->facts;
    return SIMT_OK;
}
