/* Constants of index arithmetic move outwards, into the address: (x + 3) * 4 becomes x * 4 + 12, and
 * p + (y + 12) becomes (p + y) + 12.
 *
 * In and out: any valid function. Integer arithmetic wraps, so every value stays. Neighbouring elements
 * then share all but their last addition: cse, which follows, makes it one computation.
 */
#include "opt/walk.h"

/* v is x + constant. */
static bool split_sum(const ir_value *v, ir_value **x, ir_value **constant) {
    if (!v->inst || v->inst->op != IR_ADD) return false;
    ir_value *a = v->inst->args[0], *b = v->inst->args[1];
    if (opt_is_const(a) == opt_is_const(b)) return false;
    *x = opt_is_const(a) ? b : a;
    *constant = opt_is_const(a) ? a : b;
    return true;
}

static uint64_t bits_of(const ir_value *v) { return v->inst->imm; }

static int depth_of(const ir_value *v) {
    int depth = 0;
    const ir_region *region = v->inst ? v->inst->parent : v->region;
    for (; region && region->owner; region = region->owner->parent) depth++;
    return depth;
}

/* v is x + constant, and x + with would be no deeper in loops than v: else licm could not move v out. */
static bool split_beside(const ir_value *v, const ir_value *with, ir_value **x,
                         ir_value **constant) {
    return split_sum(v, x, constant) && depth_of(*x) >= depth_of(with);
}

/* inst becomes op(first, constant). */
static void become(ir_builder *b, ir_inst *inst, ir_op op, ir_value *first, ir_type type,
                   uint64_t constant) {
    unsigned width = ir_type_bits(type);
    if (width < 64) constant &= ((uint64_t)1 << width) - 1;
    ir_value *second = ir_const_bits(b, type, constant);
    inst->op = op;
    inst->args[0] = first;
    inst->args[1] = second;
}

static void move_out(ir_func *f, ir_inst *inst) {
    ir_value *x, *c, *a = inst->args[0], *k = inst->args[1];
    ir_builder b = {.f = f, .at = inst->parent, .before = inst, .pos = inst->pos};
    ir_type type = k->type;
    switch (inst->op) {
    case IR_MUL:
        if (opt_is_const(a)) k = a, a = inst->args[1];
        if (!opt_is_const(k) || !split_sum(a, &x, &c)) return;
        become(&b, inst, IR_ADD, ir_binary(&b, IR_MUL, x, k), type, bits_of(c) * bits_of(k));
        return;
    case IR_ADD:
        if (opt_is_const(a)) k = a, a = inst->args[1];
        if (opt_is_const(k) && split_sum(a, &x, &c)) {
            become(&b, inst, IR_ADD, x, type, bits_of(c) + bits_of(k));
        } else if (!opt_is_const(k) && split_beside(k, a, &x, &c)) {
            become(&b, inst, IR_ADD, ir_binary(&b, IR_ADD, a, x), type, bits_of(c));
        } else if (!opt_is_const(k) && split_beside(a, k, &x, &c)) {
            become(&b, inst, IR_ADD, ir_binary(&b, IR_ADD, x, k), type, bits_of(c));
        }
        return;
    default: /* IR_PTRADD */
        if (!split_beside(k, a, &x, &c)) return;
        become(&b, inst, IR_PTRADD, ir_ptradd(&b, a, x), type, bits_of(c));
    }
}

static void visit(ir_func *f, ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        bool whole = inst->op == IR_PTRADD ||
                     ((inst->op == IR_MUL || inst->op == IR_ADD) && inst->results->type == IR_I64);
        if (whole) move_out(f, inst);
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(f, inst->regions[r]);
    }
}

void opt_offsets(ir_func *f, const kernel_wishes *wishes, arena *mem) { visit(f, &f->body); }
