/* Which values differ between the lanes of a gang, and how.
 *
 * In: a scanned plan. Out: per value a stride (0: equal in all active lanes; s: value of lane i is
 * that of lane 0 plus i * s, modulo its width; VM_ROWS: it grows by steps along the block's axes, that
 * are fixed or computed with it; VM_VARYING) and a range of integers; per construct whether it is calm: active lanes always leave it together. Optimistic, iterated until stable.
 * A gang of one lane has only uniform values.
 */
#include "backend/vm/vm.h"

#define MAX_STRIDE (1 << 30)

static unsigned width_of(ir_type t) { return ir_type_is_ptr(t) ? 64 : ir_type_bits(t); }

static int64_t wrap(int64_t x, unsigned bits) {
    if (bits >= 64) return x;
    return (int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits);
}

static int64_t least(ir_type t) {
    return width_of(t) >= 64 ? INT64_MIN : -(1ll << (width_of(t) - 1));
}
static int64_t most(ir_type t) { return -1 - least(t); }

static void set_range(vm_value *v, ir_type t, bool exact, int64_t low, int64_t high) {
    bool fits = exact && low >= least(t) && high <= most(t);
    v->low = fits ? low : least(t);
    v->high = fits ? high : most(t);
}

/* The value's arithmetic did not wrap: its lanes are linear also when widened. */
static bool is_exact(const vm_value *v, ir_type t) {
    return v->low > least(t) || v->high < most(t);
}

static bool constant_of(const vm_plan *p, const ir_value *v, int64_t *out) {
    const vm_value *x = vm_value_of(p, v);
    *out = x->low;
    return x->low == x->high && ir_type_is_int(v->type) && v->type != IR_I1;
}

/* ---- ranges: constructs give full ranges, so one pass in program order is enough ---- */

static void range_of_special(vm_plan *p, vm_value *r, uint64_t which) {
    unsigned d = which % 3;
    if (which == IR_LANEID) {
        set_range(r, IR_I32, true, 0, IR_WARP_SIZE - 1);
        return;
    }
    int64_t n = p->block[d], grid = p->small_grid ? INT32_MAX / n : INT32_MAX;
    if (which <= IR_TID_Z)
        set_range(r, IR_I32, true, 0, n - 1);
    else if (which <= IR_CTAID_Z)
        set_range(r, IR_I32, true, 0, grid - 1);
    else if (which <= IR_NTID_Z)
        set_range(r, IR_I32, true, n, n);
    else
        set_range(r, IR_I32, true, 1, grid);
}

static void range_of(vm_plan *p, const ir_inst *in) {
    ir_type t = in->results[0].type;
    vm_value *r = &p->values[in->results[0].id];
    const vm_value *a = in->nargs > 0 ? vm_value_of(p, in->args[0]) : NULL;
    const vm_value *b = in->nargs > 1 ? vm_value_of(p, in->args[1]) : NULL;
    set_range(r, t, false, 0, 0);
    if (!ir_type_is_int(t) || t == IR_I1) return;
    int64_t low, high, c[4];
    switch (in->op) {
    case IR_CONST:
        set_range(r, t, true, wrap((int64_t)in->imm, width_of(t)),
                  wrap((int64_t)in->imm, width_of(t)));
        break;
    case IR_SPECIAL: range_of_special(p, r, in->imm); break;
    case IR_ADD:
        if (!__builtin_add_overflow(a->low, b->low, &low) &&
            !__builtin_add_overflow(a->high, b->high, &high))
            set_range(r, t, true, low, high);
        break;
    case IR_SUB:
        if (!__builtin_sub_overflow(a->low, b->high, &low) &&
            !__builtin_sub_overflow(a->high, b->low, &high))
            set_range(r, t, true, low, high);
        break;
    case IR_MUL:
        if (__builtin_mul_overflow(a->low, b->low, &c[0]) ||
            __builtin_mul_overflow(a->low, b->high, &c[1]) ||
            __builtin_mul_overflow(a->high, b->low, &c[2]) ||
            __builtin_mul_overflow(a->high, b->high, &c[3]))
            break;
        low = high = c[0];
        for (int i = 1; i < 4; i++) {
            low = c[i] < low ? c[i] : low;
            high = c[i] > high ? c[i] : high;
        }
        set_range(r, t, true, low, high);
        break;
    case IR_SEXT:
        if (in->args[0]->type != IR_I1) set_range(r, t, true, a->low, a->high);
        break;
    case IR_ZEXT:
        if (in->args[0]->type != IR_I1 && a->low >= 0) set_range(r, t, true, a->low, a->high);
        break;
    default: break;
    }
}

/* ---- steps ----
 * While the walk lasts, `stride` says what is known (VM_UNKNOWN, VM_VARYING, VM_ROWS: steps of run time,
 * or KNOWN) and `steps` how much the value grows along each axis of the block. */

enum { KNOWN = 0 };
typedef struct shape {
    int64_t stride;
    vm_steps steps;
} shape;

static const shape varying = {VM_VARYING, {0, 0, 0}}, unknown = {VM_UNKNOWN, {0, 0, 0}},
                   uniform = {KNOWN, {0, 0, 0}}, of_run_time = {VM_ROWS, {0, 0, 0}};

static shape shape_of(const vm_plan *p, const ir_value *v) {
    const vm_value *x = vm_value_of(p, v);
    return (shape){x->stride, x->steps};
}

static bool is_known(shape s) { return s.stride == KNOWN; }
static bool is_uniform(shape s) {
    return s.stride == KNOWN && s.steps.x == 0 && s.steps.y == 0 && s.steps.z == 0;
}

static bool equal(shape a, shape b) {
    return a.stride == b.stride && a.steps.x == b.steps.x && a.steps.y == b.steps.y &&
           a.steps.z == b.steps.z;
}

/* a * k + b * m, where the steps stay small */
static shape combine(shape a, int64_t k, shape b, int64_t m, unsigned bits) {
    int64_t of[3] = {wrap(a.steps.x * k + b.steps.x * m, bits),
                     wrap(a.steps.y * k + b.steps.y * m, bits),
                     wrap(a.steps.z * k + b.steps.z * m, bits)};
    for (int i = 0; i < 3; i++)
        if (of[i] > MAX_STRIDE || of[i] < -MAX_STRIDE) return varying;
    return (shape){KNOWN, {of[0], of[1], of[2]}};
}

static shape join(shape a, shape b) {
    if (a.stride == VM_UNKNOWN) return b;
    if (b.stride == VM_UNKNOWN) return a;
    return is_known(a) && equal(a, b) ? a : varying;
}

/* Once known, a value changes at most to steps of run time and to varying: this ends the iteration. */
static bool set_shape(vm_plan *p, const ir_value *v, shape to) {
    vm_value *x = vm_value_of(p, v);
    shape now = shape_of(p, v);
    if (equal(now, to) || now.stride == VM_VARYING) return false;
    if (now.stride != VM_UNKNOWN && !(is_known(now) && to.stride == VM_ROWS)) to = varying;
    x->stride = to.stride;
    x->steps = to.steps;
    return true;
}

/* Grows by `each` from lane to lane. */
static shape along_lanes(const vm_plan *p, int64_t each) {
    int64_t x = p->block[0], y = p->block[1], z = p->block[2];
    return (shape){KNOWN, {x > 1 ? each : 0, y > 1 ? each * x : 0, z > 1 ? each * x * y : 0}};
}

static shape shape_of_special(const vm_plan *p, uint64_t which) {
    if (which == IR_LANEID) return p->lanes <= IR_WARP_SIZE ? along_lanes(p, 1) : varying;
    if (which > IR_TID_Z || p->block[which] == 1) return uniform;
    return (shape){KNOWN, {which == IR_TID_X, which == IR_TID_Y, which == IR_TID_Z}};
}

static shape shape_of_extension(vm_plan *p, const ir_inst *in, shape s) {
    const vm_value *a = vm_value_of(p, in->args[0]);
    if (is_uniform(s)) return s;
    if (!is_known(s) || !is_exact(a, in->args[0]->type) || (in->op == IR_ZEXT && a->low < 0))
        return varying;
    p->used_small_grid = true;
    return s;
}

/* One factor grows, the other does not: by a constant, or (addresses) by what is known at run time. */
static shape shape_of_product(vm_plan *p, const ir_inst *in, shape a, shape b, unsigned bits) {
    int64_t k;
    bool swap = is_uniform(a);
    if (!swap && !is_uniform(b)) return varying;
    shape s = swap ? b : a;
    if (is_known(s) && constant_of(p, in->args[swap ? 0 : 1], &k))
        return k > MAX_STRIDE || k < -MAX_STRIDE ? varying : combine(s, k, uniform, 0, bits);
    return bits == 64 ? of_run_time : varying;
}

static shape shape_of_inst(vm_plan *p, const ir_inst *in) {
    shape a = in->nargs > 0 ? shape_of(p, in->args[0]) : uniform;
    shape b = in->nargs > 1 ? shape_of(p, in->args[1]) : uniform;
    shape c = in->nargs > 2 ? shape_of(p, in->args[2]) : uniform;
    unsigned bits = in->nresults > 0 ? width_of(in->results[0].type) : 0;
    int64_t k;
    if (p->lanes == 1) return uniform;
    if (in->op == IR_SPECIAL) return shape_of_special(p, in->imm);
    if (in->op == IR_ALLOC)
        return in->results[0].type == IR_PTR_LOCAL ? along_lanes(p, p->local_bytes) : uniform;
    if (ir_op_is_barrier(in->op)) return uniform;
    if (ir_op_is_atomic(in->op) || ir_op_is_warp(in->op)) return varying;
    bool varies = a.stride == VM_VARYING || b.stride == VM_VARYING || c.stride == VM_VARYING;
    if (varies) return varying;
    if (a.stride == VM_UNKNOWN || b.stride == VM_UNKNOWN || c.stride == VM_UNKNOWN) return unknown;
    if (is_uniform(a) && is_uniform(b) && is_uniform(c)) return uniform;
    bool known = is_known(a) && is_known(b) && is_known(c);
    switch (in->op) {
    case IR_ADD:
    case IR_PTRADD: return known ? combine(a, 1, b, 1, bits) : of_run_time;
    case IR_SUB: return known ? combine(a, 1, b, -1, bits) : of_run_time;
    case IR_MUL: return shape_of_product(p, in, a, b, bits);
    case IR_SHL:
        if (!known || !is_uniform(b) || !constant_of(p, in->args[1], &k) || k < 0 || k >= 30)
            return varying;
        return combine(a, 1ll << k, uniform, 0, bits);
    case IR_SEXT:
    case IR_ZEXT: return shape_of_extension(p, in, a);
    case IR_TRUNC:
        return !known || in->results[0].type == IR_I1 ? varying : combine(a, 1, uniform, 0, bits);
    case IR_BITCAST:
        return !known || ir_type_is_float(in->args[0]->type) ||
                       ir_type_is_float(in->results[0].type)
                   ? varying
                   : a;
    case IR_SELECT: return known && is_uniform(a) && equal(b, c) ? b : varying;
    default: return varying;
    }
}

/* The walk is over: values that grow evenly from lane to lane get their stride. */
static void settle(const vm_plan *p, vm_value *v) {
    if (v->stride == VM_UNKNOWN) v->stride = KNOWN, v->steps = (vm_steps){0, 0, 0};
    if (v->stride != KNOWN) return;
    vm_steps s = v->steps;
    int64_t x = p->block[0], y = p->block[1], z = p->block[2];
    int64_t each = x > 1 ? s.x : y > 1 ? s.y : s.z;
    bool even =
        (x == 1 || s.x == each) && (y == 1 || s.y == each * x) && (z == 1 || s.z == each * x * y);
    v->fixed_steps = !even;
    v->stride = even ? each : VM_ROWS;
}

/* ---- the walk ---- */

static bool visit_region(vm_plan *p, const ir_region *r);

/* No loop stands between a terminator and its label: all lanes that pass it in one round of the label
 * do so at once. (Through an inner loop they may come from different rounds of that.) */
static bool comes_at_once(const ir_inst *in) {
    for (const ir_inst *o = in->parent->owner; o != in->label; o = o->parent->owner)
        if (o->op == IR_LOOP) return false;
    return true;
}

/* Joins what a terminator passes into the construct's results or the loop's carried values. */
static bool pass_values(vm_plan *p, const ir_inst *in) {
    bool changed = false;
    const vm_node *n = vm_node_of(in->label);
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *to =
            in->op == IR_BR ? &in->label->results[i] : &in->label->regions[0]->params[i];
        bool together = n->calm && !(in->label->op == IR_IF && n->vector_if);
        if (in->op == IR_CONTINUE) together = n->calm || (n->continues == 1 && comes_at_once(in));
        shape s = together ? join(shape_of(p, to), shape_of(p, in->args[i])) : varying;
        changed |= set_shape(p, to, s.stride == VM_ROWS ? varying : s);
    }
    return changed;
}

static bool visit_inst(vm_plan *p, const ir_inst *in) {
    bool changed = false;
    switch (in->op) {
    case IR_BR:
    case IR_CONTINUE: return pass_values(p, in);
    case IR_LOOP:
        for (unsigned i = 0; i < in->nargs; i++) {
            const ir_value *to = &in->regions[0]->params[i];
            shape s = join(shape_of(p, to), shape_of(p, in->args[i]));
            changed |= set_shape(p, to, s.stride == VM_ROWS ? varying : s);
        }
        return visit_region(p, in->regions[0]) | changed;
    case IR_BLOCK: return visit_region(p, in->regions[0]);
    case IR_IF: {
        vm_node *n = vm_node_of(in);
        bool varies = vm_value_of(p, in->args[0])->stride == VM_VARYING;
        changed = varies != n->vector_if;
        n->vector_if = varies;
        changed |= visit_region(p, in->regions[0]);
        if (in->regions[1] != NULL) changed |= visit_region(p, in->regions[1]);
        return changed;
    }
    default:
        for (unsigned i = 0; i < in->nresults; i++)
            changed |= set_shape(p, &in->results[i], shape_of_inst(p, in));
        return changed;
    }
}

static bool visit_region(vm_plan *p, const ir_region *r) {
    bool changed = false;
    for (const ir_inst *in = r->first; in != NULL; in = in->next) changed |= visit_inst(p, in);
    return changed;
}

/* Lanes that leave through a varying if, or out of a construct that is not calm, leave the constructs
 * around it apart from the others. */
static bool spread_unrest(vm_plan *p) {
    bool changed = false;
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        if (in->op != IR_BR && in->op != IR_CONTINUE && in->op != IR_RETURN) continue;
        bool apart = false;
        for (ir_inst *o = in->parent->owner; o != NULL; o = o->parent->owner) {
            vm_node *n = vm_node_of(o);
            if (apart && n->calm) {
                n->calm = false;
                changed = true;
            }
            apart |= n->vector_if || !n->calm;
            if (o == in->label) break;
        }
    }
    return changed;
}

static void find_ranges(vm_plan *p) {
    for (uint32_t i = 0; i < p->nvalues; i++) {
        vm_value *v = &p->values[i];
        if (v->value != NULL) set_range(v, v->value->type, false, 0, 0);
    }
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        if (in->nresults == 1 && !ir_op_table[in->op].control) range_of(p, in);
    }
}

void vm_plan_shapes(vm_plan *p) {
    find_ranges(p);
    for (uint32_t i = 0; i < p->nvalues; i++) {
        p->values[i].stride = VM_UNKNOWN;
        p->values[i].steps = uniform.steps;
    }
    for (uint32_t i = 0; i < p->f->body.nparams; i++)
        p->values[p->f->body.params[i].id].stride = KNOWN;
    for (uint32_t i = 0; i < p->nnodes; i++) {
        p->nodes[i].calm = true;
        p->nodes[i].vector_if = false;
    }
    while (visit_region(p, &p->f->body) | spread_unrest(p)) {}
    for (uint32_t i = 0; i < p->nvalues; i++) settle(p, &p->values[i]);
}
