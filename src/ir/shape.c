/* The shapes of values (shape.h says what is found).
 *
 * Steps are optimistic and iterated until stable: a value starts unknown and only sinks, to fixed steps,
 * to steps of run time, to varying. What a construct results in, or a loop carries, varies where threads
 * may reach it by different jumps or in different rounds. Plain loads of one address give one value: a
 * program where they do not has a race.
 */
#include "ir/shape.h"

#include "ir/range.h"

#include <string.h>

typedef struct analysis {
    const ir_func *f;
    const uint32_t *box; /* the threads that run together */
    ir_shapes *out;
    const ir_range *ranges;
    const ir_groups *groups; /* or NULL: the block */
} analysis;

static ir_shape *shape_at(const analysis *p, const ir_value *v) { return &p->out->values[v->id]; }
static ir_construct_shape *construct_at(const ir_inst *inst) { return inst->note; }

#define MAX_STRIDE (1 << 30)

static bool constant_of(const analysis *p, const ir_value *v, int64_t *out) {
    ir_range r = p->ranges[v->id];
    *out = r.low;
    return r.low == r.high && ir_type_is_int(v->type) && v->type != IR_I1;
}

/* ---- steps ---- */

static const ir_shape varying = {.kind = IR_SHAPE_VARYING}, unknown = {.kind = IR_SHAPE_UNKNOWN},
                      uniform = {.kind = IR_SHAPE_FIXED}, of_run_time = {.kind = IR_SHAPE_RUN_TIME};

static bool is_fixed(const ir_shape *s) { return s->kind == IR_SHAPE_FIXED; }

static bool equal(const ir_shape *a, const ir_shape *b) {
    return a->kind == b->kind && memcmp(a->step, b->step, sizeof a->step) == 0;
}

/* a * k + b * m, where the steps stay small */
static ir_shape combine(const ir_shape *a, int64_t k, const ir_shape *b, int64_t m, ir_type type) {
    ir_shape s = uniform;
    for (int i = 0; i < 3; i++) {
        s.step[i] = ir_sign_extend((uint64_t)(a->step[i] * k + b->step[i] * m), ir_type_bits(type));
        if (s.step[i] > MAX_STRIDE || s.step[i] < -MAX_STRIDE) return varying;
    }
    return s;
}

static ir_shape join(const ir_shape *a, const ir_shape *b) {
    if (a->kind == IR_SHAPE_UNKNOWN) return *b;
    if (b->kind == IR_SHAPE_UNKNOWN) return *a;
    return is_fixed(a) && equal(a, b) ? *a : varying;
}

/* A known shape changes at most to steps of run time and to varying: this ends the walk. */
static bool set_shape(analysis *p, const ir_value *v, const ir_shape *given) {
    ir_shape *x = shape_at(p, v);
    if (equal(x, given) || x->kind == IR_SHAPE_VARYING) return false;
    bool sinks = x->kind == IR_SHAPE_UNKNOWN || (is_fixed(x) && given->kind == IR_SHAPE_RUN_TIME);
    *x = sinks ? *given : varying;
    return true;
}

/* What threads bring from different places: only fixed steps stay. */
static bool set_passed(analysis *p, const ir_value *to, const ir_value *from, bool together) {
    ir_shape s = together ? join(shape_at(p, to), shape_at(p, from)) : varying;
    return set_shape(p, to, s.kind == IR_SHAPE_RUN_TIME ? &varying : &s);
}

/* Grows by `each` from thread to thread. */
static ir_shape along_threads(const analysis *p, int64_t each) {
    int64_t x = p->box[0], y = p->box[1], z = p->box[2];
    ir_shape s = uniform;
    s.step[0] = x > 1 ? each : 0, s.step[1] = y > 1 ? each * x : 0;
    s.step[2] = z > 1 ? each * x * y : 0;
    return s;
}

static ir_shape shape_of_special(const analysis *p, uint64_t which) {
    ir_shape s = uniform;
    bool one_warp = (uint64_t)p->box[0] * p->box[1] * p->box[2] <= IR_WARP_SIZE;
    if (which == IR_LANEID) return one_warp ? along_threads(p, 1) : varying;
    bool counts = which <= IR_TID_Z || (which >= IR_INDEX_X && which <= IR_INDEX_Z);
    if (counts && p->box[which % 3] > 1) s.step[which % 3] = 1;
    return s;
}

static ir_shape shape_of_extension(analysis *p, const ir_inst *in, const ir_shape *s) {
    ir_range r = p->ranges[in->args[0]->id];
    bool wraps = !ir_range_says(r, in->args[0]->type) || (in->op == IR_ZEXT && r.low < 0);
    if (!is_fixed(s) || wraps) return varying;
    p->out->used_small_grid = true;
    return *s;
}

/* One factor grows, the other does not: by a constant, or (addresses) by what is known at run time. */
static ir_shape shape_of_product(analysis *p, const ir_inst *in, const ir_shape *a,
                                 const ir_shape *b) {
    int64_t k;
    bool swap = ir_shape_is_uniform(a);
    if (!swap && !ir_shape_is_uniform(b)) return varying;
    const ir_shape *s = swap ? b : a;
    ir_type type = in->results[0].type;
    if (is_fixed(s) && constant_of(p, in->args[swap ? 0 : 1], &k))
        return k > MAX_STRIDE || k < -MAX_STRIDE ? varying : combine(s, k, &uniform, 0, type);
    return ir_type_bits(type) == 64 ? of_run_time : varying;
}

/* A compare whose operands' ranges leave one outcome. */
static bool is_decided(const analysis *p, const ir_inst *in) {
    const ir_range *x = &p->ranges[in->args[0]->id], *y = &p->ranges[in->args[1]->id];
    bool apart = x->high < y->low || y->high < x->low;
    switch (in->op) {
    case IR_EQ:
    case IR_NE: return apart;
    case IR_LT_U:
        if (x->low < 0 || y->low < 0) return false; /* fallthrough */
    case IR_LT_S: return x->high < y->low || x->low >= y->high;
    case IR_LE_U:
        if (x->low < 0 || y->low < 0) return false; /* fallthrough */
    case IR_LE_S: return x->high <= y->low || x->low > y->high;
    default: return false;
    }
}

/* Operands are known, none varies, some grow. */
static ir_shape shape_of_growing(analysis *p, const ir_inst *in, const ir_shape *a,
                                 const ir_shape *b, const ir_shape *c) {
    ir_type type = in->results[0].type;
    bool fixed = is_fixed(a) && is_fixed(b) && is_fixed(c);
    int64_t k;
    switch (in->op) {
    case IR_ADD:
    case IR_PTRADD: return fixed ? combine(a, 1, b, 1, type) : of_run_time;
    case IR_SUB: return fixed ? combine(a, 1, b, -1, type) : of_run_time;
    case IR_MUL: return shape_of_product(p, in, a, b);
    case IR_SHL:
        if (!fixed || !ir_shape_is_uniform(b) || !constant_of(p, in->args[1], &k) || k < 0 ||
            k >= 30)
            return varying;
        return combine(a, 1ll << k, &uniform, 0, type);
    case IR_SEXT:
    case IR_ZEXT: return shape_of_extension(p, in, a);
    case IR_TRUNC: return fixed && type != IR_I1 ? combine(a, 1, &uniform, 0, type) : varying;
    case IR_BITCAST:
        return fixed && !ir_type_is_float(in->args[0]->type) && !ir_type_is_float(type) ? *a
                                                                                        : varying;
    case IR_EQ:
    case IR_NE:
    case IR_LT_S:
    case IR_LE_S:
    case IR_LT_U:
    case IR_LE_U:
        if (in->args[0]->type == IR_I1 || !is_decided(p, in)) return varying;
        p->out->used_small_grid = true;
        return uniform;
    case IR_SELECT: return fixed && ir_shape_is_uniform(a) && equal(b, c) ? *b : varying;
    default: return varying;
    }
}

/* ---- groups ---- */

static bool same_in_groups(const ir_groups *g, const ir_thread_value *v) {
    for (uint32_t t = 0; t < g->threads && !v->one; t++)
        for (uint32_t left = g->with[t]; left != 0; left &= left - 1) {
            uint32_t other = t / IR_WARP_SIZE * IR_WARP_SIZE + (uint32_t)__builtin_ctz(left);
            if (other < g->threads && v->of[other] != v->of[t]) return false;
        }
    return true;
}

/* What the lanes that meet all get; of a shuffle, when all of the warp take it from one lane. */
static bool is_shared_result(const analysis *p, const ir_inst *in) {
    int64_t mask, width;
    switch (in->op) {
    case IR_ACTIVEMASK:
    case IR_VOTE_ALL:
    case IR_VOTE_ANY:
    case IR_VOTE_EQ:
    case IR_BALLOT:
    case IR_MATCH_ALL: return true;
    case IR_SHFL_IDX:
        return constant_of(p, in->args[2], &mask) && (uint32_t)mask == UINT32_MAX &&
               constant_of(p, in->args[3], &width) && width == IR_WARP_SIZE;
    default: return false;
    }
}

static ir_shape shape_in_groups(const analysis *p, const ir_inst *in) {
    const ir_thread_value *known = &p->groups->values[in->results[0].id];
    bool is_unknown = false;
    if (known->of != NULL) return same_in_groups(p->groups, known) ? uniform : varying;
    if (ir_op_is_barrier(in->op)) return uniform;
    if (in->op == IR_ALLOC && in->results[0].type == IR_PTR_LOCAL) return varying;
    if (in->op == IR_LOAD && IR_MEM_ORDER(in->imm) != IR_PLAIN) return varying;
    if (ir_op_is_atomic(in->op) || (ir_op_is_warp(in->op) && !is_shared_result(p, in)))
        return varying;
    /* operands: of a warp operation all but the value itself */
    for (unsigned i = ir_op_is_warp(in->op) ? 1 : 0; i < in->nargs; i++) {
        const ir_shape *s = shape_at(p, in->args[i]);
        if (s->kind == IR_SHAPE_VARYING) return varying;
        is_unknown |= s->kind == IR_SHAPE_UNKNOWN;
    }
    return is_unknown ? unknown : uniform;
}

static ir_shape shape_of_inst(analysis *p, const ir_inst *in) {
    const ir_shape *x[3] = {&uniform, &uniform, &uniform};
    if (p->groups != NULL) return shape_in_groups(p, in);
    if (in->op == IR_SPECIAL) return shape_of_special(p, in->imm);
    if (in->op == IR_ALLOC)
        return in->results[0].type == IR_PTR_LOCAL ? along_threads(p, (int64_t)p->out->local_bytes)
                                                   : uniform;
    if (ir_op_is_barrier(in->op)) return uniform;
    if (ir_op_is_atomic(in->op) || ir_op_is_warp(in->op)) return varying;
    bool is_unknown = false, grows = false;
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_shape *s = shape_at(p, in->args[i]);
        if (s->kind == IR_SHAPE_VARYING) return varying;
        is_unknown |= s->kind == IR_SHAPE_UNKNOWN;
        grows |= !ir_shape_is_uniform(s);
        if (i < 3) x[i] = s;
    }
    if (is_unknown) return unknown;
    return grows ? shape_of_growing(p, in, x[0], x[1], x[2]) : uniform;
}

/* ---- the walk ---- */

static bool visit_region(analysis *p, const ir_region *r);

/* No loop stands between a terminator and its label: all lanes that pass it in one round of the label
 * do so at once. (Through an inner loop they may come from different rounds of that.) */
static bool comes_at_once(const ir_inst *in) {
    for (const ir_inst *o = in->parent->owner; o != in->label; o = o->parent->owner)
        if (o->op == IR_LOOP) return false;
    return true;
}

/* The same value, or made in the same way from the same ones (a counter's next value at each `continue`). */
static bool is_same_value(const ir_value *a, const ir_value *b) {
    const ir_inst *x = a->inst, *y = b->inst;
    if (a == b) return true;
    if (x == NULL || y == NULL || x->op != y->op || x->imm != y->imm || x->nargs != y->nargs ||
        x->nargs == 0 || !ir_op_table[x->op].pure || a->type != b->type)
        return false;
    for (unsigned i = 0; i < x->nargs; i++)
        if (x->args[i] != y->args[i]) return false;
    return true;
}

/* What a terminator passes into the construct's results or the loop's carried values. */
static bool pass_values(analysis *p, const ir_inst *in) {
    bool changed = false, leaves = in->op == IR_BR;
    const ir_construct_shape *n = construct_at(in->label);
    const ir_value *to = leaves ? in->label->results : in->label->regions[0]->params;
    bool together = n->calm && !(leaves && n->splits), at_once = !leaves && comes_at_once(in);
    for (unsigned i = 0; i < in->nargs; i++) {
        bool same = at_once && is_same_value(in->args[i], n->next->args[i]);
        changed |= set_passed(p, &to[i], in->args[i], together || same);
    }
    return changed;
}

static bool visit_inst(analysis *p, const ir_inst *in) {
    bool changed = false;
    if (in->op == IR_BR || in->op == IR_CONTINUE) return pass_values(p, in);
    if (in->op == IR_IF) {
        bool splits = shape_at(p, in->args[0])->kind == IR_SHAPE_VARYING;
        changed = splits != construct_at(in)->splits;
        construct_at(in)->splits = splits;
    }
    for (unsigned i = 0; in->op == IR_LOOP && i < in->nargs; i++)
        changed |= set_passed(p, &in->regions[0]->params[i], in->args[i], true);
    for (int r = 0; r < 2 && in->regions[r] != NULL; r++)
        changed |= visit_region(p, in->regions[r]);
    if (ir_op_table[in->op].control) return changed;
    for (unsigned i = 0; i < in->nresults; i++) {
        ir_shape s = shape_of_inst(p, in);
        changed |= set_shape(p, &in->results[i], &s);
    }
    return changed;
}

/* Threads that leave through a splitting if, or out of a construct that is not calm, leave the constructs
 * around it apart from the others. */
static bool spread_unrest(const ir_inst *in) {
    bool changed = false, apart = false;
    for (ir_inst *o = in->parent->owner; o != NULL; o = o->parent->owner) {
        ir_construct_shape *n = construct_at(o);
        if (apart && n->calm) {
            n->calm = false;
            changed = true;
        }
        apart |= n->splits || !n->calm;
        if (o == in->label) break;
    }
    return changed;
}

static bool visit_region(analysis *p, const ir_region *r) {
    bool changed = false;
    for (const ir_inst *in = r->first; in != NULL; in = in->next) {
        changed |= visit_inst(p, in);
        if (in->op == IR_BR || in->op == IR_CONTINUE || (in->op == IR_RETURN && !p->groups))
            changed |= spread_unrest(in);
    }
    return changed;
}

/* ---- before and after ---- */

static uint32_t count_constructs(const ir_region *r) {
    uint32_t n = 0;
    for (const ir_inst *in = r->first; in != NULL; in = in->next)
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++)
            n += (i == 0) + count_constructs(in->regions[i]);
    return n;
}

/* Construct records, in program order; the size of local memory. */
static void prepare(analysis *p, const ir_region *r) {
    ir_shapes *out = p->out;
    for (ir_inst *in = r->first; in != NULL; in = in->next) {
        if (in->regions[0] != NULL) {
            in->note = &out->constructs[out->nconstructs];
            out->constructs[out->nconstructs++] = (ir_construct_shape){.inst = in, .calm = true};
        }
        if (in->op == IR_CONTINUE && construct_at(in->label)->next == NULL)
            construct_at(in->label)->next = in;
        if (in->op == IR_ALLOC && in->results[0].type == IR_PTR_LOCAL)
            out->local_bytes += (in->imm + 15) & ~(uint64_t)15;
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++) prepare(p, in->regions[i]);
    }
}

bool ir_shape_is_even(const ir_shape *s, const uint32_t block[3], int64_t *stride) {
    int64_t x = block[0], y = block[1], z = block[2];
    if (!is_fixed(s)) return false;
    *stride = x > 1 ? s->step[0] : y > 1 ? s->step[1] : s->step[2];
    return (x == 1 || s->step[0] == *stride) && (y == 1 || s->step[1] == *stride * x) &&
           (z == 1 || s->step[2] == *stride * x * y);
}

static simt_status find_shapes(analysis *p, const uint32_t block[3], bool small_grid, arena *mem) {
    const ir_func *f = p->f;
    ir_shapes *out = p->out;
    *out = (ir_shapes){.values = ARENA_ARRAY(mem, ir_shape, f->next_id + 1),
                       .constructs =
                           ARENA_ARRAY(mem, ir_construct_shape, count_constructs(&f->body) + 1)};
    p->ranges = ir_find_ranges(f, block, small_grid, mem);
    if (out->values == NULL || out->constructs == NULL || p->ranges == NULL)
        return status_fail(SIMT_ERR_MEMORY, "out of memory while analysing kernel '%s'", f->name);
    prepare(p, &f->body);
    for (uint32_t i = 0; i < f->body.nparams; i++) set_shape(p, &f->body.params[i], &uniform);
    while (visit_region(p, &f->body)) {}
    for (uint32_t i = 0; i < f->next_id; i++)
        if (out->values[i].kind == IR_SHAPE_UNKNOWN) out->values[i].kind = IR_SHAPE_FIXED;
    return SIMT_OK;
}

simt_status ir_find_shapes(const ir_func *f, const uint32_t box[3], const uint32_t block[3],
                           bool small_grid, arena *mem, ir_shapes *out) {
    analysis p = {.f = f, .box = box, .out = out};
    return find_shapes(&p, block, small_grid, mem);
}

simt_status ir_find_group_shapes(const ir_func *f, const uint32_t block[3], const ir_groups *groups,
                                 arena *mem, ir_shapes *out) {
    analysis p = {.f = f, .box = block, .out = out, .groups = groups};
    return find_shapes(&p, block, true, mem);
}
