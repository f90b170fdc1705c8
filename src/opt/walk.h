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
static inline bool opt_is_const(const ir_value *v) { return v->inst && v->inst->op == IR_CONST; }

#endif
