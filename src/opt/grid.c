/* Kernels whose blocks do not matter: that look at their thread's number only to compute its number in the
 * grid, and at nothing that the threads of a block share.
 *
 * In and out: any valid function. In such a kernel ctaid * ntid + tid becomes the coordinate `index`; what
 * is left says nothing of blocks but their number and size, and back ends may run its threads in any groups.
 */
#include "opt/walk.h"

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

static int axis_of_index(const ir_inst *in) {
    return in->op == IR_ADD ? axis_of_pair(in, axis_of_start, axis_of_tid) : -1;
}

static bool needs_blocks(const ir_inst *in) {
    if (ir_inst_needs_block(in)) return true;
    bool widens = in->op == IR_SEXT || in->op == IR_ZEXT;
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *v = in->args[i];
        bool place = axis_of_tid(v) >= 0 || axis_of_block(v) >= 0, start = axis_of_start(v) >= 0;
        if (!place && !start) continue;
        bool counts = axis_of_index(in) >= 0 ||
                      (place && in->op == IR_MUL && axis_of_start(in->results) >= 0);
        if (!counts && !(place && widens)) return true;
    }
    return false;
}

static bool any_needs_blocks(const ir_region *region) {
    for (const ir_inst *in = region->first; in != NULL; in = in->next) {
        if (needs_blocks(in)) return true;
        for (int r = 0; r < 2 && in->regions[r] != NULL; r++)
            if (any_needs_blocks(in->regions[r])) return true;
    }
    return false;
}

static void visit(ir_func *f, ir_region *region) {
    for (ir_inst *in = region->first, *next; in != NULL; in = next) {
        next = in->next;
        opt_resolve_args(in);
        int axis = axis_of_index(in);
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

void opt_grid(ir_func *f, arena *mem) {
    if (any_needs_blocks(&f->body)) return;
    opt_clear_notes(f);
    visit(f, &f->body);
}
