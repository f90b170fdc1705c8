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

static void note_region(ir_region *region, arena *mem) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == IR_BR || inst->op == IR_CONTINUE) {
            opt_construct *to = opt_construct_of(inst->label); /* around it, so it has its note */
            inst->note = to->jumps;
            to->jumps = inst;
            *(inst->op == IR_BR ? &to->brs : &to->continues) += 1;
        }
        if (inst->regions[0]) inst->note = ARENA_NEW(mem, opt_construct);
        for (int r = 0; r < 2 && inst->regions[r]; r++) note_region(inst->regions[r], mem);
    }
}

void opt_note_constructs(ir_func *f, arena *mem) { note_region(&f->body, mem); }

typedef struct running {
    ir_func *f;
    opt_pass *pass;
    const kernel_wishes *wishes;
    arena mem;
} running;

static simt_status run(void *context) {
    running *r = context;
    r->pass(r->f, r->wishes, &r->mem);
    for (uint32_t i = 0; i < r->f->nfunctions; i++) r->pass(r->f->functions[i], r->wishes, &r->mem);
    return SIMT_OK;
}

simt_status opt_run_pass(ir_func *f, opt_pass *pass, const kernel_wishes *wishes) {
    running r = {.f = f, .pass = pass, .wishes = wishes};
    arena_init_sure(&r.mem);
    simt_status status = arena_run(run, &r);
    arena_deinit(&r.mem);
    return status;
}

static simt_status run_pass(ir_func *f, opt_pass *pass, const char *name, const opt_options *o) {
    SIMT_TRY(opt_run_pass(f, pass, o->wishes));
    if (o->verify) SIMT_TRY(ir_verify(f));
    if (o->after) o->after(o->context, name, f);
    return SIMT_OK;
}

simt_status opt_run(ir_func *f, const opt_options *options) {
#define PASS(id, default_on, meaning)                                    \
    if ((default_on) || (opt_##id == opt_contract && options->contract)) \
        SIMT_TRY(run_pass(f, opt_##id, #id, options));
#include "opt/passes.def"
#undef PASS
    return SIMT_OK;
}
