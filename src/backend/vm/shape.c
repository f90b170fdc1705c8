/* Which values differ between the lanes of a gang, and how.
 *
 * In: a scanned plan. Out: per value a stride (0: equal in all active lanes; s: value of lane i is
 * that of lane 0 plus i * s, modulo its width; VM_VARYING) and a range of integers; per construct
 * whether it is calm: active lanes always leave it together. Optimistic, iterated until stable.
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

/* ---- strides ---- */

static int64_t checked(int64_t stride, unsigned bits) {
    stride = wrap(stride, bits);
    return stride > MAX_STRIDE || stride < -MAX_STRIDE ? VM_VARYING : stride;
}

static int64_t join(int64_t a, int64_t b) {
    if (a == VM_UNKNOWN) return b;
    if (b == VM_UNKNOWN) return a;
    return a == b ? a : VM_VARYING;
}

static bool set_stride(vm_plan *p, const ir_value *v, int64_t stride) {
    vm_value *x = vm_value_of(p, v);
    int64_t now = x->stride == VM_VARYING ? VM_VARYING : stride;
    /* once known, a value only changes to varying: this ends the iteration */
    if (x->stride != VM_UNKNOWN && now != x->stride) now = VM_VARYING;
    bool changed = now != x->stride;
    x->stride = now;
    return changed;
}

static int64_t stride_of_tid(const vm_plan *p, uint64_t which) {
    uint32_t x = p->block[0], y = p->block[1], z = p->block[2];
    if (which == IR_LANEID) return p->lanes == 1 ? 0 : p->lanes <= IR_WARP_SIZE ? 1 : VM_VARYING;
    if (p->lanes == 1 || which > IR_TID_Z || p->block[which] == 1) return 0;
    bool alone = (uint64_t)p->block[which] == (uint64_t)x * y * z;
    return alone ? 1 : VM_VARYING;
}

static int64_t stride_of_extension(vm_plan *p, const ir_inst *in, int64_t s) {
    const vm_value *a = vm_value_of(p, in->args[0]);
    if (s == 0 || s == VM_VARYING || s == VM_UNKNOWN) return s;
    if (!is_exact(a, in->args[0]->type) || (in->op == IR_ZEXT && a->low < 0)) return VM_VARYING;
    p->used_small_grid = true;
    return s;
}

static int64_t stride_of(vm_plan *p, const ir_inst *in) {
    int64_t a = in->nargs > 0 ? vm_value_of(p, in->args[0])->stride : 0;
    int64_t b = in->nargs > 1 ? vm_value_of(p, in->args[1])->stride : 0;
    int64_t c = in->nargs > 2 ? vm_value_of(p, in->args[2])->stride : 0, k;
    unsigned bits = in->nresults > 0 ? width_of(in->results[0].type) : 0;
    bool has_linear = a != VM_VARYING && b != VM_VARYING && c != VM_VARYING;
    if (p->lanes == 1) return 0;
    if (in->op == IR_SPECIAL) return stride_of_tid(p, in->imm);
    if (in->op == IR_ALLOC)
        return in->results[0].type == IR_PTR_LOCAL ? (int64_t)p->local_bytes : 0;
    if (ir_op_is_barrier(in->op)) return 0;
    if (ir_op_is_atomic(in->op) || ir_op_is_warp(in->op)) return VM_VARYING;
    if (!has_linear && !(in->op == IR_SELECT && a == 0)) return VM_VARYING;
    if (a == VM_UNKNOWN || b == VM_UNKNOWN || c == VM_UNKNOWN) return VM_UNKNOWN;
    switch (in->op) {
    case IR_ADD:
    case IR_PTRADD: return checked(a + b, bits);
    case IR_SUB: return checked(a - b, bits);
    case IR_MUL:
        if (a == 0 && b == 0) return 0;
        if (b == 0 && constant_of(p, in->args[1], &k))
            return k > MAX_STRIDE || k < -MAX_STRIDE ? VM_VARYING : checked(a * k, bits);
        if (a == 0 && constant_of(p, in->args[0], &k))
            return k > MAX_STRIDE || k < -MAX_STRIDE ? VM_VARYING : checked(b * k, bits);
        return VM_VARYING;
    case IR_SHL:
        if (a == 0 && b == 0) return 0;
        if (b == 0 && constant_of(p, in->args[1], &k) && k >= 0 && k < 30)
            return checked(a * (1ll << k), bits);
        return VM_VARYING;
    case IR_SEXT:
    case IR_ZEXT: return stride_of_extension(p, in, a);
    case IR_TRUNC: return in->results[0].type == IR_I1 && a != 0 ? VM_VARYING : checked(a, bits);
    case IR_BITCAST:
        return a != 0 && (ir_type_is_float(in->args[0]->type) ||
                          ir_type_is_float(in->results[0].type))
                   ? VM_VARYING
                   : a;
    case IR_SELECT: return a == 0 && b == c ? b : VM_VARYING;
    default: return a == 0 && b == 0 && c == 0 ? 0 : VM_VARYING;
    }
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
        int64_t s = together ? join(vm_value_of(p, to)->stride, vm_value_of(p, in->args[i])->stride)
                             : VM_VARYING;
        changed |= set_stride(p, to, s);
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
            changed |= set_stride(
                p, to, join(vm_value_of(p, to)->stride, vm_value_of(p, in->args[i])->stride));
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
            changed |= set_stride(p, &in->results[i], stride_of(p, in));
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
    for (uint32_t i = 0; i < p->nvalues; i++) p->values[i].stride = VM_UNKNOWN;
    for (uint32_t i = 0; i < p->f->body.nparams; i++) p->values[p->f->body.params[i].id].stride = 0;
    for (uint32_t i = 0; i < p->nnodes; i++) {
        p->nodes[i].calm = true;
        p->nodes[i].vector_if = false;
    }
    while (visit_region(p, &p->f->body) | spread_unrest(p)) {}
    for (uint32_t i = 0; i < p->nvalues; i++)
        if (p->values[i].stride == VM_UNKNOWN) p->values[i].stride = 0;
}
