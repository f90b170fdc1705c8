/* Dead code.
 *
 * In and out: any valid function. Removed: pure operations, loads and special values without uses; carried
 * values and results of constructs stay (their uses keep their operands alive). Kept whatever their uses:
 * stores, atomics, barriers, fences, faults, control.
 * One sweep from the end: an instruction is visited after all its users but loop back edges, which are
 * control and so never removed.
 */
#include "opt/walk.h"

#define USED ((void *)1)

static void mark_used(ir_inst *inst) {
    for (unsigned i = 0; i < inst->nargs; i++) inst->args[i]->note = USED;
}

static bool removable(const ir_inst *inst) {
    const ir_op_info *info = &ir_op_table[inst->op];
    if (info->pure) return true;
    return inst->op == IR_LOAD && IR_MEM_ORDER(inst->imm) == IR_PLAIN;
}

static void sweep(ir_region *region) {
    for (ir_inst *inst = region->last, *prev; inst; inst = prev) {
        prev = inst->prev;
        if (removable(inst) && !inst->results->note) {
            ir_inst_remove(inst);
            continue;
        }
        for (int r = 1; r >= 0; r--)
            if (inst->regions[r]) sweep(inst->regions[r]);
        mark_used(inst);
    }
}

simt_status opt_dce(ir_func *f) {
    opt_clear_notes(f);
    sweep(&f->body);
    return SIMT_OK;
}
