/* Loop-invariant code.
 *
 * In and out: any valid function. A pure operation whose operands are all defined outside a loop moves in
 * front of it. No operation traps, so running it although the loop body might not is only work, not a
 * change of meaning; constants move too. Loads stay (memory may change).
 * Inner loops first, so that code leaves several loops step by step.
 */
#include "opt/walk.h"

static bool inside(const ir_region *region, const ir_inst *loop) {
    for (; region; region = region->owner ? region->owner->parent : NULL)
        if (region->owner == loop) return true;
    return false;
}

static bool defined_outside(const ir_value *v, const ir_inst *loop) {
    return !inside(v->inst ? v->inst->parent : v->region, loop);
}

static void hoist_region(ir_region *region, ir_inst *loop) {
    for (ir_inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int r = 0; r < 2 && inst->regions[r]; r++) hoist_region(inst->regions[r], loop);
        if (!ir_op_table[inst->op].pure || inst->op == IR_ALLOC) continue;
        bool invariant = true;
        for (unsigned i = 0; i < inst->nargs && invariant; i++)
            invariant = defined_outside(inst->args[i], loop);
        if (invariant) ir_inst_move_before(inst, loop);
    }
}

static void visit(ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(inst->regions[r]);
        if (inst->op == IR_LOOP) hoist_region(inst->regions[0], inst);
    }
}

void opt_licm(ir_func *f, const kernel_wishes *wishes, arena *mem) { visit(&f->body); }
