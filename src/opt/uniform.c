/* Uniformity: does a value differ between threads that compute it together?
 *
 * An analysis: only ids change (dense afterwards). Threads run in step and meet again where a construct
 * ends, so a value can differ only if an operand does or if it is chosen by control: a result of a
 * construct, or a carried value, that threads reach by different jumps (or in different rounds). Such a
 * jump stands inside an `if` with a condition that differs, and names something around that `if`: what it
 * names is then *split*, by br (its results vary) or by continue (its carried values vary).
 * Facts only sink (unseen, then one shape, then varying) and visits repeat until none does; after
 * MOST_ROUNDS every construct counts as split, which ends it.
 * Plain loads of one address give one value: a program where they do not has a race.
 * Adding a rule: a case in fact_of_inst (operands that all are uniform never get there).
 */
#include "opt/walk.h"

enum { MOST_ROUNDS = 8 };

typedef struct fact {
    bool seen;
    uint8_t shape;  /* opt_shape */
    int64_t stride; /* LINEAR */
    int64_t bound;  /* integers: the value is in [0, bound], below the sign bit; -1: not known */
} fact;

typedef struct split {
    bool results, carried;
} split;

typedef struct analysis {
    fact *facts; /* by value id */
    const uint32_t *block;
    bool changed, all_split;
} analysis;

static fact make(opt_shape shape, int64_t stride, int64_t bound) {
    if (shape == OPT_LINEAR && stride == 0) shape = OPT_UNIFORM;
    return (fact){true, (uint8_t)shape, shape == OPT_LINEAR ? stride : 0, bound};
}

static int64_t wrap(ir_type type, uint64_t bits) {
    unsigned unused = 64 - ir_type_bits(type);
    return (int64_t)(bits << unused) >> unused;
}

/* ---- facts ---- */

/* Bounds that keep growing (counters) are given up at once, so that the visits end. */
static fact join(fact x, fact y) {
    if (!x.seen) return y;
    int64_t bound = x.bound >= 0 && y.bound >= 0 && y.bound <= x.bound ? x.bound : -1;
    bool same = x.shape == y.shape && x.stride == y.stride;
    return make(same ? x.shape : OPT_VARYING, x.stride, bound);
}

static void sink(analysis *a, const ir_value *v, fact to) {
    fact *have = &a->facts[v->id], next = join(*have, to);
    if (have->seen && have->shape == next.shape && have->bound == next.bound) return;
    *have = next;
    a->changed = true;
}

static void sink_varying(analysis *a, const ir_value *v) { sink(a, v, make(OPT_VARYING, 0, -1)); }

static fact fact_of_special(const analysis *a, uint64_t which) {
    const uint32_t *n = a->block;
    bool rows = !n[0]; /* unknown block: shapes along a row of x */
    if (which <= IR_TID_Z) {
        unsigned axis = (unsigned)which - IR_TID_X;
        bool alone = rows ? axis == 0 : (uint64_t)n[0] * n[1] * n[2] == n[axis];
        opt_shape shape = alone ? OPT_LINEAR : rows || n[axis] == 1 ? OPT_UNIFORM : OPT_VARYING;
        return make(!rows && n[axis] == 1 ? OPT_UNIFORM : shape, 1, rows ? 1023 : n[axis] - 1);
    }
    if (which == IR_LANEID) return make(OPT_VARYING, 0, IR_WARP_SIZE - 1);
    if (which >= IR_NTID_X && which <= IR_NTID_Z)
        return make(OPT_UNIFORM, 0, rows ? 1024 : n[which - IR_NTID_X]);
    return make(OPT_UNIFORM, 0, INT32_MAX);
}

/* The largest value of a result in [0, ...], or -1; bounds of the operands are x and y. */
static int64_t bound_of(const ir_inst *inst, int64_t x, int64_t y) {
    ir_type type = inst->results->type;
    int64_t most = wrap(type, ~0ull >> (65 - ir_type_bits(type))), bound = -1;
    bool both = x >= 0 && y >= 0;
    switch (inst->op) {
    case IR_ADD: return both && x <= most - y ? x + y : -1;
    case IR_MUL: return both && !__builtin_mul_overflow(x, y, &bound) && bound <= most ? bound : -1;
    case IR_AND: return x >= 0 && (y < 0 || x < y) ? x : y;
    case IR_SHR_U: return x;
    case IR_REM_U: return x >= 0 && (y < 0 || x < y) ? x : y;
    case IR_DIV_U: return x;
    case IR_SEXT: return x;
    case IR_ZEXT: {
        unsigned width = ir_type_bits(inst->args[0]->type);
        if (x >= 0) return x;
        return width < ir_type_bits(type) ? (int64_t)((1ull << width) - 1) : -1;
    }
    default: return -1;
    }
}

/* Neither operand varies, one is linear. */
static fact fact_of_linear(const ir_inst *inst, fact x, fact y, int64_t bound) {
    ir_type type = inst->results->type;
    uint64_t dx = (uint64_t)x.stride, dy = (uint64_t)y.stride, k;
    const ir_value *by = inst->nargs > 1 ? inst->args[1] : NULL;
    switch (inst->op) {
    case IR_ADD:
    case IR_PTRADD: return make(OPT_LINEAR, wrap(type, dx + dy), bound);
    case IR_SUB: return make(OPT_LINEAR, wrap(type, dx - dy), bound);
    case IR_NOT: return make(type == IR_I1 ? OPT_VARYING : OPT_LINEAR, wrap(type, 0 - dx), bound);
    case IR_MUL:
        if (x.shape == OPT_UNIFORM) by = inst->args[0];
        if (!opt_is_const(by)) break; /* the stride must be a number */
        return make(OPT_LINEAR, wrap(type, (dx + dy) * by->inst->imm), bound);
    case IR_SHL:
        if (!opt_is_const(by)) break;
        k = by->inst->imm;
        return make(OPT_LINEAR, k < ir_type_bits(type) ? wrap(type, dx << k) : 0, bound);
    case IR_TRUNC:
        if (type == IR_I1) break;
        return make(OPT_LINEAR, wrap(type, dx), bound);
    case IR_SEXT:
    case IR_ZEXT: /* linear only where the narrow value never wraps */
        if (x.bound < 0) break;
        return make(OPT_LINEAR, x.stride, bound);
    case IR_BITCAST:
        if (ir_type_is_float(type) || ir_type_is_float(inst->args[0]->type)) break;
        return make(OPT_LINEAR, x.stride, bound);
    default: break;
    }
    return make(OPT_VARYING, 0, bound);
}

static fact fact_of_inst(const analysis *a, const ir_inst *inst) {
    ir_type type = inst->results->type;
    bool pure = ir_op_table[inst->op].pure;
    if (inst->op == IR_SPECIAL) return fact_of_special(a, inst->imm);
    if (inst->op == IR_CONST) {
        int64_t value = ir_type_is_int(type) && type != IR_I1 ? wrap(type, inst->imm) : -1;
        return make(OPT_UNIFORM, 0, value < 0 ? -1 : value);
    }
    if (inst->op == IR_ALLOC) return make(type == IR_PTR_LOCAL ? OPT_VARYING : OPT_UNIFORM, 0, -1);
    if (!pure && !(inst->op == IR_LOAD && IR_MEM_ORDER(inst->imm) == IR_PLAIN))
        return make(OPT_VARYING, 0, -1);
    fact x = a->facts[inst->args[0]->id];
    fact y = inst->nargs > 1 ? a->facts[inst->args[1]->id] : make(OPT_UNIFORM, 0, -1);
    int64_t bound = ir_type_is_int(type) && type != IR_I1 ? bound_of(inst, x.bound, y.bound) : -1;
    int worst = OPT_UNIFORM;
    for (unsigned i = 0; i < inst->nargs; i++) {
        int shape = a->facts[inst->args[i]->id].shape;
        worst = shape > worst ? shape : worst;
    }
    if (worst == OPT_UNIFORM || worst == OPT_VARYING) return make((opt_shape)worst, 0, bound);
    if (inst->op == IR_SELECT && x.shape == OPT_UNIFORM) {
        fact no = a->facts[inst->args[2]->id];
        bool same = y.shape == no.shape && y.stride == no.stride;
        return make(same ? y.shape : OPT_VARYING, y.stride, -1);
    }
    return fact_of_linear(inst, x, y, bound);
}

/* ---- control ---- */

static split *split_of(const ir_inst *construct) { return construct->note; }

/* Is there an `if` with a differing condition between the jump and what it names, that included? */
static bool leaves_apart(const analysis *a, const ir_inst *jump) {
    for (const ir_inst *c = jump->parent->owner; c; c = c->parent->owner) {
        if (c->op == IR_IF && a->facts[c->args[0]->id].shape != OPT_UNIFORM) return true;
        if (c == jump->label) return false;
    }
    return false;
}

static void visit_jump(analysis *a, const ir_inst *jump) {
    const ir_inst *label = jump->label;
    bool leaves = jump->op == IR_BR;
    bool *apart = leaves ? &split_of(label)->results : &split_of(label)->carried;
    if (!*apart && (a->all_split || leaves_apart(a, jump))) {
        *apart = true;
        a->changed = true;
    }
    const ir_value *to = leaves ? label->results : label->regions[0]->params;
    for (unsigned i = 0; i < jump->nargs; i++) {
        sink(a, &to[i], a->facts[jump->args[i]->id]);
        if (*apart) sink_varying(a, &to[i]);
    }
}

static void visit(analysis *a, const ir_region *region) {
    for (const ir_inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == IR_BR || inst->op == IR_CONTINUE)
            visit_jump(a, inst);
        else if (!inst->regions[0] && inst->nresults)
            sink(a, inst->results, fact_of_inst(a, inst));
        if (inst->op == IR_LOOP)
            for (unsigned i = 0; i < inst->nargs; i++)
                sink(a, &inst->regions[0]->params[i], a->facts[inst->args[i]->id]);
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(a, inst->regions[r]);
    }
}

static bool add_splits(arena *mem, ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        if (inst->regions[0] && !(inst->note = ARENA_NEW(mem, split))) return false;
        for (int r = 0; r < 2 && inst->regions[r]; r++)
            if (!add_splits(mem, inst->regions[r])) return false;
    }
    return true;
}

simt_status opt_uniform(ir_func *f, const uint32_t block[3], arena *mem, opt_uniformity *out) {
    ir_func_renumber(f);
    analysis a = {.block = block, .facts = ARENA_ARRAY(mem, fact, f->next_id + 1)};
    out->shape = ARENA_ARRAY(mem, uint8_t, f->next_id + 1);
    out->stride = ARENA_ARRAY(mem, int64_t, f->next_id + 1);
    if (!a.facts || !out->shape || !out->stride || !add_splits(mem, &f->body))
        return status_fail(SIMT_ERR_MEMORY, "out of memory while analysing kernel '%s'", f->name);
    for (uint32_t i = 0; i < f->body.nparams; i++)
        sink(&a, &f->body.params[i], make(OPT_UNIFORM, 0, -1));
    for (int round = 0; round == 0 || a.changed; round++) {
        a.changed = false;
        a.all_split = round >= MOST_ROUNDS;
        visit(&a, &f->body);
    }
    for (uint32_t i = 0; i < f->next_id; i++) {
        out->shape[i] = a.facts[i].shape;
        out->stride[i] = a.facts[i].stride;
    }
    return SIMT_OK;
}
