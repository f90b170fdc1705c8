/* Kernels whose blocks do not matter: that look at their thread's number only to compute its number in the
 * grid, and at nothing that the threads of a block share.
 *
 * In and out: any valid function. In such a kernel ctaid * ntid + tid becomes the coordinate `index`; what
 * is left says nothing of blocks but their number and size, and back ends may run its threads in any groups.
 */
#include "kernel/blocks.h"
#include "opt/walk.h"

static void visit(ir_func *f, ir_region *region) {
    for (ir_inst *in = region->first, *next; in != NULL; in = next) {
        next = in->next;
        opt_resolve_args(in);
        int axis = facts_axis_of_index(in);
        if (axis >= 0) {
            ir_builder b = {.f = f, .at = region, .before = in, .pos = in->pos};
            ir_value *v = ir_special_value(&b, (ir_special)(IR_INDEX_X + axis));
            if (in->results->type != IR_I64) v = ir_cast(&b, IR_TRUNC, in->results->type, v);
            opt_forward(in->results, v);
            ir_inst_remove(in);
        }
        for (int r = 0; r < 2 && in->regions[r] != NULL; r++) visit(f, in->regions[r]);
    }
}

void opt_grid(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    if (facts_find_blocks_beyond_index(f).matter) return;
    opt_clear_notes(f);
    visit(f, &f->body);
}
