/* Short ifs become selects.
 *
 * In and out: any valid function. An `if` whose two sides only compute a few cheap pure values and end there
 * becomes these computations, made always, and a select for each result; where the results are conditions
 * (short-circuit `and` and `or`), an and or an or. No operation traps, so running both sides is only work:
 * less than splitting the threads, up to as many operations as the back end wishes. Inner ifs first.
 */
#include "opt/walk.h"

static bool is_cheap(const ir_inst *inst) {
    ir_op op = inst->op;
    if (!ir_op_table[op].pure || op == IR_ALLOC) return false;
    bool divides =
        ir_op_group(op) == IR_IN_DIVISION || op == IR_FDIV || op == IR_FSQRT || op == IR_FREM;
    return !divides && ir_op_group(op) != IR_IN_MATH;
}

/* The values that a side gives, or NULL where it does more than compute a little. */
static ir_value **side(const ir_inst *inst, int which, unsigned most, unsigned *ops) {
    const ir_inst *at = inst->regions[which]->first;
    for (; at->next; at = at->next) {
        if (!is_cheap(at)) return NULL;
        if (at->op != IR_CONST && ++*ops > most) return NULL;
    }
    return at->op == IR_BR && at->label == inst ? at->args : NULL;
}

static void hoist(ir_inst *inst, int which) {
    ir_region *region = inst->regions[which];
    while (region->first->op != IR_BR) ir_inst_move_before(region->first, inst);
}

static bool is_bit(const ir_value *v, uint64_t bit) {
    return opt_is_const(v) && v->inst->imm == bit;
}

static ir_value *choice(ir_builder *b, ir_value *cond, ir_value *yes, ir_value *no) {
    if (yes == no) return yes;
    if (yes->type == IR_I1 && (no == cond || is_bit(no, 0))) return ir_binary(b, IR_AND, cond, yes);
    if (yes->type == IR_I1 && (yes == cond || is_bit(yes, 1))) return ir_binary(b, IR_OR, cond, no);
    return ir_select(b, cond, yes, no);
}

static void visit(ir_func *f, ir_region *region, unsigned most) {
    for (ir_inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        opt_resolve_args(inst);
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(f, inst->regions[r], most);
        if (inst->op != IR_IF || inst->nresults == 0) continue;
        unsigned ops = 0;
        ir_value **yes = side(inst, 0, most, &ops), **no = yes ? side(inst, 1, most, &ops) : NULL;
        if (!no) continue;
        hoist(inst, 0);
        hoist(inst, 1);
        ir_builder b = {.f = f, .at = region, .before = inst, .pos = inst->pos};
        for (unsigned i = 0; i < inst->nresults; i++)
            opt_forward(&inst->results[i], choice(&b, inst->args[0], yes[i], no[i]));
        ir_inst_remove(inst);
    }
}

void opt_choose(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    opt_clear_notes(f);
    visit(f, &f->body, wishes->choose_ops);
}
