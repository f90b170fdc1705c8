/* The shapes of values (shape.h says what is found).
 *
 * Steps are optimistic and iterated until stable: a value starts unknown and only sinks, to fixed steps,
 * to steps of run time, to varying. What a construct results in, or a loop carries, varies where threads
 * may reach it by different jumps or in different rounds. Plain loads of one address give one value: a
 * program where they do not has a race.
 */
#include "kernel/shape.h"

#include <string.h>

typedef struct analysis {
    const facts_places *places;
    const uint32_t *box; /* the threads that run together */
    facts_shapes *out;
    const facts_range *ranges;
    const facts_groups *groups;    /* or NULL: the block */
    bool back;                     /* what uses a value may have been visited already */
    uint32_t nvalues, nconstructs; /* that changed, and whose uses are to be visited again */
} analysis;

static facts_shape *shape_at(const analysis *p, const ir_value *v) {
    return &p->out->values[v->id];
}

#define MAX_STRIDE (1 << 30)

static bool constant_of(const analysis *p, const ir_value *v, int64_t *out) {
    facts_range r = p->ranges[v->id];
    *out = r.low;
    return r.low == r.high && ir_type_is_int(v->type) && v->type != IR_I1;
}

/* ---- steps ---- */

static const facts_shape varying = {.kind = FACTS_VARYING}, unknown = {.kind = FACTS_UNKNOWN},
                         uniform = {.kind = FACTS_FIXED}, of_run_time = {.kind = FACTS_RUN_TIME};

static bool is_fixed(const facts_shape *s) { return s->kind == FACTS_FIXED; }

static bool equal(const facts_shape *a, const facts_shape *b) {
    return a->kind == b->kind && memcmp(a->step, b->step, sizeof a->step) == 0;
}

/* a * k + b * m, where the steps stay small */
static facts_shape combine(const facts_shape *a, int64_t k, const facts_shape *b, int64_t m,
                           ir_type type) {
    facts_shape s = uniform;
    for (int i = 0; i < 3; i++) {
        s.step[i] = ir_sign_extend((uint64_t)(a->step[i] * k + b->step[i] * m), ir_type_bits(type));
        if (s.step[i] > MAX_STRIDE || s.step[i] < -MAX_STRIDE) return varying;
    }
    return s;
}

static facts_shape join(const facts_shape *a, const facts_shape *b) {
    if (a->kind == FACTS_UNKNOWN) return *b;
    if (b->kind == FACTS_UNKNOWN) return *a;
    return is_fixed(a) && equal(a, b) ? *a : varying;
}

/* A known shape changes at most to steps of run time and to varying: this ends the walk. */
enum { MOST_CHANGES = 3, MOST_CONSTRUCT_CHANGES = 2 };

static void set_shape(analysis *p, const ir_value *v, const facts_shape *given) {
    facts_shape *x = shape_at(p, v);
    if (equal(x, given) || x->kind == FACTS_VARYING) return;
    bool sinks = x->kind == FACTS_UNKNOWN || (is_fixed(x) && given->kind == FACTS_RUN_TIME);
    *x = sinks ? *given : varying;
    if (p->back) p->out->values_left[p->nvalues++] = v->id;
}

/* What threads bring from different places: only fixed steps stay. */
static void set_passed(analysis *p, const ir_value *to, const ir_value *from, bool together) {
    facts_shape s = together ? join(shape_at(p, to), shape_at(p, from)) : varying;
    set_shape(p, to, s.kind == FACTS_RUN_TIME ? &varying : &s);
}

/* Grows by `each` from thread to thread. */
static facts_shape along_threads(const analysis *p, int64_t each) {
    int64_t x = p->box[0], y = p->box[1], z = p->box[2];
    facts_shape s = uniform;
    s.step[0] = x > 1 ? each : 0, s.step[1] = y > 1 ? each * x : 0;
    s.step[2] = z > 1 ? each * x * y : 0;
    return s;
}

static facts_shape shape_of_special(const analysis *p, uint64_t which) {
    facts_shape s = uniform;
    bool one_warp = (uint64_t)p->box[0] * p->box[1] * p->box[2] <= IR_WARP_SIZE;
    if (which == IR_LANEID) return one_warp ? along_threads(p, 1) : varying;
    bool counts = which <= IR_TID_Z || (which >= IR_INDEX_X && which <= IR_INDEX_Z);
    if (counts && p->box[which % 3] > 1) s.step[which % 3] = 1;
    return s;
}

static facts_shape shape_of_extension(analysis *p, const ir_inst *in, const facts_shape *s) {
    facts_range r = p->ranges[in->args[0]->id];
    bool wraps = !facts_range_says(r, in->args[0]->type) || (in->op == IR_ZEXT && r.low < 0);
    if (!is_fixed(s) || wraps) return varying;
    p->out->used_small_grid = true;
    return *s;
}

/* One factor grows, the other does not: by a constant, or (addresses) by what is known at run time. */
static facts_shape shape_of_product(analysis *p, const ir_inst *in, const facts_shape *a,
                                    const facts_shape *b) {
    int64_t k;
    bool swap = facts_shape_is_uniform(a);
    if (!swap && !facts_shape_is_uniform(b)) return varying;
    const facts_shape *s = swap ? b : a;
    ir_type type = in->results[0].type;
    if (is_fixed(s) && constant_of(p, in->args[swap ? 0 : 1], &k))
        return k > MAX_STRIDE || k < -MAX_STRIDE ? varying : combine(s, k, &uniform, 0, type);
    return ir_type_bits(type) == 64 ? of_run_time : varying;
}

/* A compare whose operands' ranges leave one outcome. */
static bool is_decided(const analysis *p, const ir_inst *in) {
    const facts_range *x = &p->ranges[in->args[0]->id], *y = &p->ranges[in->args[1]->id];
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
static facts_shape shape_of_growing(analysis *p, const ir_inst *in, const facts_shape *a,
                                    const facts_shape *b, const facts_shape *c) {
    ir_type type = in->results[0].type;
    bool fixed = is_fixed(a) && is_fixed(b) && is_fixed(c);
    int64_t k;
    switch (in->op) {
    case IR_ADD:
    case IR_PTRADD: return fixed ? combine(a, 1, b, 1, type) : of_run_time;
    case IR_SUB: return fixed ? combine(a, 1, b, -1, type) : of_run_time;
    case IR_MUL: return shape_of_product(p, in, a, b);
    case IR_SHL:
        if (!fixed || !facts_shape_is_uniform(b) || !constant_of(p, in->args[1], &k) || k < 0 ||
            k >= 30)
            return varying;
        return combine(a, 1ll << k, &uniform, 0, type);
    case IR_SEXT:
    case IR_ZEXT: return shape_of_extension(p, in, a);
    case IR_TRUNC: return fixed && type != IR_I1 ? combine(a, 1, &uniform, 0, type) : varying;
    case IR_CVTA: return *a;
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
    case IR_SELECT: return fixed && facts_shape_is_uniform(a) && equal(b, c) ? *b : varying;
    default: return varying;
    }
}

/* ---- groups ---- */

static bool same_in_groups(const facts_groups *g, const facts_thread_value *v) {
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

static facts_shape shape_in_groups(const analysis *p, const ir_inst *in) {
    const facts_thread_value *known = &p->groups->values[in->results[0].id];
    bool is_unknown = false;
    if (known->of != NULL) return same_in_groups(p->groups, known) ? uniform : varying;
    if (in->op == IR_CALL) return varying;
    if (ir_op_is_barrier(in->op)) return uniform;
    if (in->op == IR_ALLOC && in->results[0].type == IR_PTR_LOCAL) return varying;
    if (in->op == IR_LOAD && IR_MEM_ORDER(in->imm) != IR_PLAIN) return varying;
    if (ir_op_is_atomic(in->op) || (ir_op_is_warp(in->op) && !is_shared_result(p, in)))
        return varying;
    /* operands: of a warp operation all but the value itself */
    for (unsigned i = ir_op_is_warp(in->op) ? 1 : 0; i < in->nargs; i++) {
        const facts_shape *s = shape_at(p, in->args[i]);
        if (s->kind == FACTS_VARYING) return varying;
        is_unknown |= s->kind == FACTS_UNKNOWN;
    }
    return is_unknown ? unknown : uniform;
}

static facts_shape shape_of_inst(analysis *p, const ir_inst *in) {
    const facts_shape *x[3] = {&uniform, &uniform, &uniform};
    if (p->groups != NULL) return shape_in_groups(p, in);
    if (in->op == IR_CALL) return varying;
    if (in->op == IR_SPECIAL) return shape_of_special(p, in->imm);
    if (in->op == IR_ALLOC)
        return in->results[0].type == IR_PTR_LOCAL ? along_threads(p, (int64_t)p->out->local_bytes)
                                                   : uniform;
    if (ir_op_is_barrier(in->op)) return uniform;
    if (ir_op_is_atomic(in->op) || ir_op_is_warp(in->op)) return varying;
    bool is_unknown = false, grows = false;
    for (unsigned i = 0; i < in->nargs; i++) {
        const facts_shape *s = shape_at(p, in->args[i]);
        if (s->kind == FACTS_VARYING) return varying;
        is_unknown |= s->kind == FACTS_UNKNOWN;
        grows |= !facts_shape_is_uniform(s);
        if (i < 3) x[i] = s;
    }
    if (is_unknown) return unknown;
    return grows ? shape_of_growing(p, in, x[0], x[1], x[2]) : uniform;
}

/* ---- what jumps pass ---- */

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

static const ir_inst *first_continue(const facts_places *p, const facts_construct *loop) {
    uint32_t n = loop->first_jump;
    while (p->insts[n].inst->op != IR_CONTINUE) n = p->insts[n].next_jump;
    return p->insts[n].inst;
}

/* What a jump passes into the construct's results or the loop's carried values. */
static void pass_value(analysis *p, const ir_inst *in, unsigned i) {
    bool leaves = in->op == IR_BR, same = false;
    const facts_construct *c = facts_construct_of(p->places, in->label);
    const facts_parting *n = &p->out->constructs[facts_number_of(p->places, in->label)];
    const ir_value *to = leaves ? in->label->results : in->label->regions[0]->params;
    bool together = n->calm && !(leaves && n->splits);
    if (!together && !leaves && comes_at_once(in))
        same = is_same_value(in->args[i], first_continue(p->places, c)->args[i]);
    set_passed(p, &to[i], in->args[i], together || same);
}

/* Of a construct that has changed. */
static void pass_again(analysis *p, const facts_construct *c) {
    for (uint32_t n = c->first_jump; n != FACTS_NONE; n = p->places->insts[n].next_jump)
        for (unsigned i = 0; i < p->places->insts[n].inst->nargs; i++)
            pass_value(p, p->places->insts[n].inst, i);
}

static void construct_changed(analysis *p, uint32_t number) {
    p->out->constructs_left[p->nconstructs++] = number;
}

/* Threads that leave through a splitting if, or out of a construct that is not calm, leave the constructs
 * around it apart from the others: as far out as jumps from inside reach. */
static void spread_unrest(analysis *p, uint32_t number) {
    const facts_construct *all = p->places->constructs, *c = &all[number];
    for (uint32_t at = c->around; at != FACTS_NONE; at = c->around) {
        bool reached = c->reach <= all[at].depth || (c->returns && p->groups == NULL);
        if (!reached || !p->out->constructs[at].calm) return;
        p->out->constructs[at].calm = false;
        construct_changed(p, at);
        c = &all[at];
    }
}

/* ---- the walk, and what it has to see again ---- */

static void visit_if(analysis *p, const ir_inst *in) {
    uint32_t number = facts_number_of(p->places, in);
    facts_parting *n = &p->out->constructs[number];
    if (n->splits || shape_at(p, in->args[0])->kind != FACTS_VARYING) return;
    n->splits = true;
    construct_changed(p, number);
    spread_unrest(p, number);
}

static void visit_result(analysis *p, const ir_inst *in) {
    for (unsigned i = 0; i < in->nresults; i++) {
        facts_shape s = shape_of_inst(p, in);
        set_shape(p, &in->results[i], &s);
    }
}

static void visit_use(analysis *p, const ir_inst *in, unsigned arg) {
    if (facts_is_jump(in))
        pass_value(p, in, arg);
    else if (in->op == IR_LOOP)
        set_passed(p, &in->regions[0]->params[arg], in->args[arg], true);
    else if (in->op == IR_IF)
        visit_if(p, in);
    else
        visit_result(p, in);
}

/* Each value sinks at most three times, each construct changes at most twice. */
static void visit_what_changed(analysis *p) {
    const facts_places *places = p->places;
    while (p->nvalues + p->nconstructs > 0) {
        while (p->nconstructs > 0)
            pass_again(p, &places->constructs[p->out->constructs_left[--p->nconstructs]]);
        if (p->nvalues == 0) break;
        uint32_t v = p->out->values_left[--p->nvalues];
        for (uint32_t u = places->first_use[v]; u < places->first_use[v + 1]; u++)
            visit_use(p, places->insts[places->uses[u].inst].inst, places->uses[u].arg);
    }
}

/* In program order; what a `continue` passes was used before. */
static void visit_all(analysis *p) {
    for (uint32_t i = 0; i < p->places->ninsts; i++) {
        const ir_inst *in = p->places->insts[i].inst;
        p->back = in->op == IR_CONTINUE;
        if (facts_is_jump(in) || in->op == IR_LOOP)
            for (unsigned k = 0; k < in->nargs; k++) visit_use(p, in, k);
        else if (in->op == IR_IF)
            visit_if(p, in);
        else if (!ir_op_table[in->op].control)
            visit_result(p, in);
    }
    p->back = true;
    visit_what_changed(p);
}

/* Whether what was found rests on it: the walk also asked about shapes that did not last. */
static bool uses_small_grid(analysis *p) {
    p->out->used_small_grid = false;
    for (uint32_t i = 0; i < p->places->ninsts && !p->out->used_small_grid; i++) {
        const ir_inst *in = p->places->insts[i].inst;
        if (in->nresults > 0 && !ir_op_table[in->op].control) shape_of_inst(p, in);
    }
    return p->out->used_small_grid;
}

bool facts_shape_is_even(const facts_shape *s, const uint32_t box[3], int64_t *stride) {
    int64_t x = box[0], y = box[1], z = box[2];
    if (!is_fixed(s)) return false;
    *stride = x > 1 ? s->step[0] : y > 1 ? s->step[1] : s->step[2];
    return (x == 1 || s->step[0] == *stride) && (y == 1 || s->step[1] == *stride * x) &&
           (z == 1 || s->step[2] == *stride * x * y);
}

bool facts_jump_parts(const facts_places *p, const facts_shapes *s, const ir_inst *jump) {
    uint32_t to = facts_number_of(p, jump->label);
    for (uint32_t c = facts_around(p, jump); c != to; c = p->constructs[c].around)
        if (s->constructs[c].splits || !s->constructs[c].calm) return true;
    return false;
}

static uint64_t local_bytes_of(const facts_places *p) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const ir_inst *in = p->insts[i].inst;
        if (in->op == IR_ALLOC && in->results[0].type == IR_PTR_LOCAL)
            bytes += (in->imm + 15) & ~(uint64_t)15;
    }
    return bytes;
}

simt_status facts_new_shapes(const facts_places *p, arena *mem, facts_shapes *out) {
    uint32_t n = p->f->next_id, constructs = p->nconstructs;
    *out = (facts_shapes){.values = ARENA_ARRAY(mem, facts_shape, n + 1),
                          .constructs = ARENA_ARRAY(mem, facts_parting, constructs + 1),
                          .values_left = ARENA_ARRAY(mem, uint32_t, (size_t)MOST_CHANGES * n + 1),
                          .constructs_left = ARENA_ARRAY(
                              mem, uint32_t, (size_t)MOST_CONSTRUCT_CHANGES * constructs + 1)};
    out->local_bytes = local_bytes_of(p);
    bool ok = out->values != NULL && out->constructs != NULL && out->values_left != NULL &&
              out->constructs_left != NULL;
    return ok ? SIMT_OK : facts_no_memory(p->f);
}

static void find_shapes(analysis *p) {
    const ir_func *f = p->places->f;
    facts_shapes *out = p->out;
    for (uint32_t i = 0; i < f->next_id; i++) out->values[i] = unknown;
    for (uint32_t i = 0; i < p->places->nconstructs; i++)
        out->constructs[i] = (facts_parting){.calm = true};
    out->used_small_grid = false;
    for (uint32_t i = 0; i < f->body.nparams; i++)
        out->values[f->body.params[i].id] = f->unit != NULL ? varying : uniform;
    visit_all(p);
    for (uint32_t i = 0; i < f->next_id; i++)
        if (out->values[i].kind == FACTS_UNKNOWN) out->values[i].kind = FACTS_FIXED;
    if (out->used_small_grid) out->used_small_grid = uses_small_grid(p);
}

void facts_find_shapes(const facts_places *p, const facts_range *ranges, const uint32_t box[3],
                       facts_shapes *out) {
    analysis a = {.places = p, .box = box, .out = out, .ranges = ranges};
    find_shapes(&a);
}

void facts_find_group_shapes(const facts_places *p, const facts_range *ranges,
                             const facts_groups *groups, facts_shapes *out) {
    analysis a = {.places = p, .out = out, .ranges = ranges, .groups = groups};
    find_shapes(&a);
}
