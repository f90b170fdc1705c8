/* Constructs that go one way only: a part of opt/fold, which calls these as it visits constructs.
 *
 * In and out: any valid function whose constructs were noted (opt_note_constructs) and whose counts of
 * jumps are kept true here. An `if` on a constant becomes a block of the region taken; a loop that never
 * goes round becomes a block; a carried value that is the same in every round is its initial value; a
 * block that is left only at its end, or never, dissolves into its surroundings.
 */
#include "opt/walk.h"

/* The region will not run: its jumps count no more. */
static void forget_region(ir_region *region);

static void forget_inst(ir_inst *inst) {
    if (inst->op == IR_BR || inst->op == IR_CONTINUE) {
        opt_construct *to = opt_construct_of(inst->label);
        *(inst->op == IR_BR ? &to->brs : &to->continues) -= 1;
        inst->label = NULL;
    }
    for (int r = 0; r < 2 && inst->regions[r]; r++) forget_region(inst->regions[r]);
}

static void forget_region(ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) forget_inst(inst);
}

void opt_flatten_if(ir_inst *inst) {
    if (!opt_is_const(inst->args[0])) return;
    int taken = inst->args[0]->inst->imm ? 0 : 1;
    forget_region(inst->regions[1 - taken]);
    inst->op = IR_BLOCK;
    inst->nargs = 0;
    inst->regions[0] = inst->regions[taken];
    inst->regions[1] = NULL;
}

/* Does every round hand on the value itself, or the initial one? */
static bool stays(const ir_inst *loop, uint32_t i) {
    ir_value *param = &loop->regions[0]->params[i], *first = loop->args[i];
    for (ir_inst *jump = opt_construct_of(loop)->jumps; jump; jump = jump->note) {
        if (jump->label != loop || jump->op != IR_CONTINUE) continue;
        ir_value *next = opt_resolve(jump->args[i]);
        if (next != param && next != first) return false;
    }
    return true;
}

void opt_flatten_loop(ir_inst *loop) {
    ir_region *body = loop->regions[0];
    for (uint32_t i = 0; i < body->nparams; i++)
        if (stays(loop, i)) opt_forward(&body->params[i], loop->args[i]);
    if (opt_construct_of(loop)->continues) return;
    loop->op = IR_BLOCK;
    loop->nargs = 0;
    body->nparams = 0;
}

bool opt_flatten_block(ir_inst *block) {
    ir_region *body = block->regions[0];
    uint32_t brs = opt_construct_of(block)->brs;
    bool ends = brs == 1 && body->last->op == IR_BR && body->last->label == block;
    if (!ends && brs) return false;
    for (unsigned i = 0; ends && i < block->nresults; i++)
        opt_forward(&block->results[i], opt_resolve(body->last->args[i]));
    if (ends) ir_inst_remove(body->last);
    for (ir_inst *inst = body->first, *next; inst; inst = next) {
        next = inst->next;
        ir_inst_move_before(inst, block);
    }
    for (ir_inst *inst = ends ? NULL : block->next, *next; inst; inst = next) {
        next = inst->next;
        forget_inst(inst);
        ir_inst_remove(inst);
    }
    ir_inst_remove(block);
    return !ends;
}
