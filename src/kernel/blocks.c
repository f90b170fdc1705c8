/* Blocks that matter (blocks.h). */
#include "kernel/blocks.h"

/* The axis of a coordinate from `first` on, widened or not; -1: it is none. */
static int axis_of(const ir_value *v, ir_special first) {
    while (v->inst != NULL && (v->inst->op == IR_SEXT || v->inst->op == IR_ZEXT))
        v = v->inst->args[0]; /* coordinates are not negative */
    if (v->inst == NULL || v->inst->op != IR_SPECIAL) return -1;
    return v->inst->imm >= first && v->inst->imm < first + 3u ? (int)(v->inst->imm - first) : -1;
}

/* The axis of a * b or a + b, where these are such terms in either order. */
static int axis_of_pair(const ir_inst *in, int (*first)(const ir_value *),
                        int (*second)(const ir_value *)) {
    for (int i = 0; i < 2; i++) {
        int axis = first(in->args[i]);
        if (axis >= 0 && axis == second(in->args[1 - i])) return axis;
    }
    return -1;
}

static int axis_of_tid(const ir_value *v) { return axis_of(v, IR_TID_X); }
static int axis_of_block(const ir_value *v) { return axis_of(v, IR_CTAID_X); }
static int axis_of_size(const ir_value *v) { return axis_of(v, IR_NTID_X); }

static int axis_of_start(const ir_value *v) { /* ctaid * ntid */
    if (v->inst == NULL || v->inst->op != IR_MUL) return -1;
    return axis_of_pair(v->inst, axis_of_block, axis_of_size);
}

int facts_axis_of_index(const ir_inst *in) {
    return in->op == IR_ADD ? axis_of_pair(in, axis_of_start, axis_of_tid) : -1;
}

static bool needs_blocks_beyond_index(const ir_inst *in) {
    if (ir_inst_needs_block(in)) return true;
    bool widens = in->op == IR_SEXT || in->op == IR_ZEXT;
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *v = in->args[i];
        bool place = axis_of_tid(v) >= 0 || axis_of_block(v) >= 0, start = axis_of_start(v) >= 0;
        if (!place && !start) continue;
        bool counts = facts_axis_of_index(in) >= 0 ||
                      (place && in->op == IR_MUL && axis_of_start(in->results) >= 0);
        if (!counts && !(place && widens)) return true;
    }
    return false;
}

static bool needs_blocks(const ir_inst *in) {
    return ir_inst_needs_block(in) || (in->op == IR_SPECIAL && in->imm <= IR_CTAID_Z);
}

static const ir_inst *first_that(bool (*needs)(const ir_inst *), const ir_region *region) {
    for (const ir_inst *in = region->first; in != NULL; in = in->next) {
        if (needs(in)) return in;
        for (int r = 0; r < 2 && in->regions[r] != NULL; r++) {
            const ir_inst *inside = first_that(needs, in->regions[r]);
            if (inside != NULL) return inside;
        }
    }
    return NULL;
}

facts_blocks facts_find_blocks(const ir_func *f) {
    const ir_inst *at = first_that(needs_blocks, &f->body);
    return (facts_blocks){.matter = at != NULL, .at = at};
}

facts_blocks facts_find_blocks_beyond_index(const ir_func *f) {
    const ir_inst *at = first_that(needs_blocks_beyond_index, &f->body);
    return (facts_blocks){.matter = at != NULL, .at = at};
}
