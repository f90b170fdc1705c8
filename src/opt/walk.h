/* Shared by the passes: walking regions and replacing values in one sweep.
 *
 * A pass clears all notes, then visits instructions in program order. Definitions come before uses in
 * that order, so a value found to equal another is forwarded (its note points to the other) and every
 * later use is rewritten when it is reached: linear time, however many values are replaced. */
#ifndef SIMT_OPT_WALK_H
#define SIMT_OPT_WALK_H

#include "opt/opt.h"

void opt_clear_notes(ir_func *f);
static inline ir_value *opt_resolve(ir_value *v) {
    while (v->note) v = v->note;
    return v;
}
static inline void opt_resolve_args(ir_inst *inst) {
    for (unsigned i = 0; i < inst->nargs; i++) inst->args[i] = opt_resolve(inst->args[i]);
}
static inline void opt_forward(ir_value *old, ir_value *with) { old->note = with; }
/* Constructs and the jumps that name them: the note of each construct, and the note of each jump is the
 * next one that names the same construct. Passes that use these keep instruction notes for them.
 * A jump that was removed with its region has label NULL. */
typedef struct opt_construct {
    ir_inst *jumps;
    uint32_t brs, continues;
    bool needed; /* dce's own */
} opt_construct;
void opt_note_constructs(ir_func *f, arena *mem);
static inline opt_construct *opt_construct_of(const ir_inst *inst) { return inst->note; }

static inline bool opt_is_const(const ir_value *v) { return v->inst && v->inst->op == IR_CONST; }
static inline void opt_become_const(ir_inst *inst, uint64_t bits) {
    inst->op = IR_CONST;
    inst->nargs = 0;
    inst->imm = ir_cut_bits(bits, inst->results->type);
}

/* flatten.c, for fold: the construct's operands are resolved; the last: its region was visited, and true
 * says that what stood after the block is gone. */
void opt_flatten_if(ir_inst *inst);
void opt_flatten_loop(ir_inst *loop);
bool opt_flatten_block(ir_inst *block);

#endif
