/* All facts of a function (facts.h), in the order in which one needs the other. */
#include "kernel/facts.h"

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
