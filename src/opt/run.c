/* The pipeline of passes.def. */
#include "opt/walk.h"

static void clear_region(ir_region *region) {
    for (uint32_t i = 0; i < region->nparams; i++) region->params[i].note = NULL;
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        inst->note = NULL;
        for (unsigned i = 0; i < inst->nresults; i++) inst->results[i].note = NULL;
        for (int r = 0; r < 2 && inst->regions[r]; r++) clear_region(inst->regions[r]);
    }
}

void opt_clear_notes(ir_func *f) { clear_region(&f->body); }

static bool note_region(ir_region *region, arena *mem) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == IR_BR || inst->op == IR_CONTINUE) {
            opt_construct *to = opt_construct_of(inst->label); /* around it, so it has its note */
            inst->note = to->jumps;
            to->jumps = inst;
            *(inst->op == IR_BR ? &to->brs : &to->continues) += 1;
        }
        if (inst->regions[0] && !(inst->note = ARENA_NEW(mem, opt_construct))) return false;
        for (int r = 0; r < 2 && inst->regions[r]; r++)
            if (!note_region(inst->regions[r], mem)) return false;
    }
    return true;
}

bool opt_note_constructs(ir_func *f, arena *mem) { return note_region(&f->body, mem); }

static simt_status run_pass(ir_func *f, simt_status (*pass)(ir_func *), bool wanted, bool verify) {
    if (!wanted) return SIMT_OK;
    SIMT_TRY(pass(f));
    if (f->failed)
        return status_fail(SIMT_ERR_MEMORY, "out of memory while optimising kernel '%s'", f->name);
    return verify ? ir_verify(f) : SIMT_OK;
}

simt_status opt_run(ir_func *f, const opt_options *options) {
#define PASS(id, default_on, meaning)                                                  \
    SIMT_TRY(run_pass(f, opt_##id,                                                     \
                      (default_on) || (opt_##id == opt_contract && options->contract), \
                      options->verify));
#include "opt/passes.def"
#undef PASS
    return SIMT_OK;
}
