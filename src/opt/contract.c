/* Contraction: a * b + c with one rounding.
 *
 * In and out: any valid function. fmul whose only use is an fadd or fsub (f32, f64) becomes part of an fma.
 * This changes rounding: it runs only where the front end allows it (CUDA's default for kernels), the
 * same on every back end.
 */
#include "opt/walk.h"

static void count_uses(ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        for (unsigned i = 0; i < inst->nargs; i++)
            inst->args[i]->note = (void *)((uintptr_t)inst->args[i]->note + 1);
        for (int r = 0; r < 2 && inst->regions[r]; r++) count_uses(inst->regions[r]);
    }
}

static bool is_single_product(const ir_value *v) {
    return v->inst && v->inst->op == IR_FMUL && (uintptr_t)v->note == 1;
}

/* product + sign * other; the negation of an operand is exact. */
static void fuse(ir_func *f, ir_inst *sum, ir_value *product, ir_value *other, bool negate_product,
                 bool negate_other) {
    ir_builder b = {.f = f, .at = sum->parent, .before = sum, .pos = sum->pos};
    ir_value *args[3] = {product->inst->args[0], product->inst->args[1], other};
    if (negate_product) args[0] = ir_unary(&b, IR_FNEG, args[0]);
    if (negate_other) args[2] = ir_unary(&b, IR_FNEG, args[2]);
    ir_value **copy = ARENA_ARRAY(&f->mem, ir_value *, 3);
    for (int i = 0; i < 3; i++) copy[i] = args[i];
    sum->op = IR_FMA;
    sum->args = copy;
    sum->nargs = 3;
}

static void visit(ir_func *f, ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(f, inst->regions[r]);
        if (inst->op != IR_FADD && inst->op != IR_FSUB) continue;
        if (inst->results->type != IR_F32 && inst->results->type != IR_F64) continue;
        bool minus = inst->op == IR_FSUB;
        if (is_single_product(inst->args[0]))
            fuse(f, inst, inst->args[0], inst->args[1], false, minus);
        else if (is_single_product(inst->args[1]))
            fuse(f, inst, inst->args[1], inst->args[0], minus, false);
    }
}

void opt_contract(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    opt_clear_notes(f);
    count_uses(&f->body);
    visit(f, &f->body); /* the products are dead then: dce follows */
}
