/* Which lanes take which side of an `if`.
 *
 * A condition comes as a vector, or as compares of linear values, which mostly are true for all lanes,
 * for none or for the first few: then no lane is looked at.
 */
#include "backend/vm/lanes.h"

/* now splits into yes (stays in now) and no (set 1); set 0 gets now as it was, where all lanes meet again. */
void vm_split(const vm_code *c, vm_gang *g, const vm_inst *in, const uint8_t *cond) {
    vm_set *exit = &g->sets[in->set], *other = &g->sets[in->set + 1], *before = exit;
    uint32_t top = g->now.top, count = g->now.count;
    if (in->flags & VM_FLAG_CONVERGES) {
        set_move(exit, &g->now);
    } else { /* the old lanes are only needed for a moment: the exit set's bytes are free */
        exit->count = exit->top = 0;
        vm_set t = *exit;
        *exit = g->now;
        g->now = t;
    }
    const uint8_t *mask = count == top ? NULL : before->bytes;
    uint32_t yes = (uint32_t)c->kernels->moves->split(g->now.bytes, other->bytes, mask, cond, top);
    g->now.count = yes;
    g->now.top = top;
    other->count = count - yes;
    other->top = top;
    if (yes < top) set_trim(&g->now);
    if (other->count < top) set_trim(other);
    if (!(in->flags & VM_FLAG_CONVERGES)) exit->count = exit->top = 0;
}

static bool compare_lane(const vm_compare *k, int64_t a, int64_t b) {
    unsigned drop = 64 - k->bits; /* wrap to the width */
    int64_t x = ir_sign_extend((uint64_t)a, k->bits), y = ir_sign_extend((uint64_t)b, k->bits);
    uint64_t u = (uint64_t)a << drop, v = (uint64_t)b << drop;
    switch (k->op) {
    case IR_EQ: return x == y;
    case IR_NE: return x != y;
    case IR_LT_S: return x < y;
    case IR_LE_S: return x <= y;
    case IR_LT_U: return u < v;
    default: return u <= v;
    }
}

typedef struct stretch { /* lanes from..to - 1 */
    int64_t from, to;
} stretch;

static const stretch nobody = {0, 0}, unclear = {-1, -1};

/* Where a + i*sa == b + i*sb. Lanes are few: where the strides are small, equality does not come round
 * again. */
static stretch where_equal(const vm_compare *k, int64_t a, int64_t b, uint32_t top) {
    int64_t apart = k->stride_a - k->stride_b;
    int64_t ahead = ir_sign_extend((uint64_t)b - (uint64_t)a, k->bits);
    if (apart == 0) return ahead == 0 ? (stretch){0, top} : nobody;
    if (k->bits < 32 || apart < -32767 || apart > 32767) return unclear;
    if (ahead == INT64_MIN) return nobody;
    int64_t lane = ahead / apart;
    return ahead % apart == 0 && lane >= 0 && lane < top ? (stretch){lane, lane + 1} : nobody;
}

/* The lanes that satisfy a + i*sa < b + i*sb (and kin), where they stand together. For inequalities both
 * sides must not wrap on the way. */
static stretch where_holds(const vm_compare *k, int64_t a, int64_t b, uint32_t top) {
    bool is_signed = k->op == IR_LT_S || k->op == IR_LE_S,
         strict = k->op == IR_LT_S || k->op == IR_LT_U;
    if (k->op == IR_EQ) return where_equal(k, a, b, top);
    if (k->op == IR_NE) {
        stretch s = where_equal(k, a, b, top);
        if (s.to < 0 || s.to == s.from) return s.to < 0 ? s : (stretch){0, top};
        return s.from == 0 ? (stretch){s.to, top} : s.to == top ? (stretch){0, s.from} : unclear;
    }
    int64_t apart = k->stride_a - k->stride_b, last = top - 1, la, lb, d0, d1;
    if (__builtin_add_overflow(a, k->stride_a * last, &la) ||
        __builtin_add_overflow(b, k->stride_b * last, &lb))
        return unclear;
    if (!is_signed && (a < 0 || b < 0 || la < 0 || lb < 0)) return unclear;
    if (k->bits < 64) {
        int64_t most = is_signed ? (1ll << (k->bits - 1)) - 1 : (1ll << k->bits) - 1,
                least = is_signed ? -1 - most : 0;
        if (la > most || lb > most || la < least || lb < least) return unclear;
    }
    if (__builtin_sub_overflow(b, a, &d0) || __builtin_sub_overflow(lb, la, &d1)) return unclear;
    if (d0 == INT64_MIN || d1 == INT64_MIN) return unclear;
    d0 -= strict, d1 -= strict; /* now: d >= 0 */
    if (d0 >= 0 && d1 >= 0) return (stretch){0, top};
    if (d0 < 0 && d1 < 0) return nobody;
    /* d falls by `apart` a lane */
    return d0 >= 0 ? (stretch){0, d0 / apart + 1} : (stretch){(-d0 - apart - 1) / -apart, top};
}

/* The least and the largest value over the block; false: it may wrap on the way. */
static bool extremes(const vm_code *c, const vm_gang *g, const uint32_t step[3], int64_t base,
                     int64_t out[2]) {
    out[0] = out[1] = base;
    for (int i = 0; i < 3; i++) {
        int64_t far;
        if (__builtin_mul_overflow(step_of(g, step[i]), (int64_t)c->box[i] - 1, &far)) return false;
        if (__builtin_add_overflow(out[far > 0], far, &out[far > 0])) return false;
    }
    return true;
}

/* All lanes of the block, or none. */
static stretch all_or_none(const vm_code *c, const vm_gang *g, const vm_compare *k, int64_t a,
                           int64_t b) {
    bool is_signed = k->op == IR_LT_S || k->op == IR_LE_S,
         strict = k->op == IR_LT_S || k->op == IR_LT_U;
    int64_t x[2], y[2];
    stretch all = {0, g->now.top};
    if (!extremes(c, g, k->step_a, a, x) || !extremes(c, g, k->step_b, b, y)) return unclear;
    if (!is_signed && (x[0] < 0 || y[0] < 0)) return unclear;
    if (k->bits < 64) {
        int64_t most = is_signed ? (1ll << (k->bits - 1)) - 1 : (1ll << k->bits) - 1,
                least = is_signed ? -1 - most : 0;
        if (x[1] > most || y[1] > most || x[0] < least || y[0] < least) return unclear;
    }
    if (k->op == IR_EQ || k->op == IR_NE)
        return x[1] >= y[0] && x[0] <= y[1] ? unclear : k->op == IR_NE ? all : nobody;
    if (strict ? x[1] < y[0] : x[1] <= y[0]) return all;
    return (strict ? x[0] >= y[1] : x[0] > y[1]) ? nobody : unclear;
}

#define COMPARE_ROW(T, test)                                            \
    for (uint32_t i = 0; i < n; i++) {                                  \
        T x = (T)(a + (uint64_t)i * da), y = (T)(b + (uint64_t)i * db); \
        cond[i] &= (uint8_t)(test);                                     \
    }                                                                   \
    return

static void compare_row(const vm_compare *k, uint8_t *cond, uint64_t a, uint64_t da, uint64_t b,
                        uint64_t db, uint32_t n) {
    if (k->bits == 64) switch (k->op) {
        case IR_EQ: COMPARE_ROW(uint64_t, x == y);
        case IR_NE: COMPARE_ROW(uint64_t, x != y);
        case IR_LT_S: COMPARE_ROW(int64_t, x < y);
        case IR_LE_S: COMPARE_ROW(int64_t, x <= y);
        case IR_LT_U: COMPARE_ROW(uint64_t, x < y);
        default: COMPARE_ROW(uint64_t, x <= y);
        }
    for (uint32_t i = 0; i < n; i++)
        cond[i] &= compare_lane(k, (int64_t)(a + i * da), (int64_t)(b + i * db));
}

static void compare_lanes(const vm_code *c, const vm_gang *g, const vm_compare *k, int64_t a,
                          int64_t b, uint8_t *cond) {
    if (!k->rows) {
        compare_row(k, cond, (uint64_t)a, (uint64_t)k->stride_a, (uint64_t)b, (uint64_t)k->stride_b,
                    g->now.top);
        return;
    }
    vm_row_walk wa = walk_rows(c, g, k->step_a), wb = walk_rows(c, g, k->step_b);
    for (uint32_t at = 0, row = 0; at < g->now.top; at += wa.width, row++) {
        uint32_t n = g->now.top - at < wa.width ? g->now.top - at : wa.width;
        compare_row(k, cond + at, (uint64_t)(a + vm_row_start(&wa, row)), (uint64_t)wa.x,
                    (uint64_t)(b + vm_row_start(&wb, row)), (uint64_t)wb.x, n);
    }
}

/* Lanes from..to - 1 are on, of a set whose lanes below `to` it may describe. */
static void set_stretch(vm_set *s, stretch on) {
    s->count = (uint32_t)(on.to - on.from);
    s->top = s->count > 0 ? (uint32_t)on.to : 0;
    if (on.from == 0 || s->count == 0) return;
    memset(s->bytes, 0, (size_t)on.from);
    memset(s->bytes + on.from, 1, s->count);
}

static void copy_set(vm_set *to, const vm_set *from) {
    to->count = from->count, to->top = from->top;
    if (!all_on(from)) memcpy(to->bytes, from->bytes, from->top);
}

/* The lanes of a stretch go on: all, none, or some of a current set that is whole. */
static void split_stretch(vm_gang *g, const vm_inst *in, stretch yes) {
    vm_set *exit = &g->sets[in->set], *other = &g->sets[in->set + 1];
    uint32_t top = g->now.top;
    bool converges = in->flags & VM_FLAG_CONVERGES, all = yes.to - yes.from == top;
    if (yes.to == yes.from) { /* now becomes the else lanes, and what the exit set must show */
        copy_set(other, &g->now);
        if (converges)
            set_move(exit, &g->now);
        else
            exit->count = exit->top = 0;
        g->now.count = g->now.top = 0;
        return;
    }
    other->count = other->top = 0;
    exit->count = exit->top = 0;
    if (converges) copy_set(exit, &g->now);
    if (all) return;
    other->count = top - (uint32_t)(yes.to - yes.from);
    other->top = yes.to == top ? (uint32_t)yes.from : top;
    if (!(in->flags & VM_FLAG_NO_ELSE) && yes.from == 0) {
        memset(other->bytes, 0, (size_t)yes.to);
        memset(other->bytes + yes.to, 1, (size_t)(top - yes.to));
    } else if (!(in->flags & VM_FLAG_NO_ELSE) && other->top == top) {
        memset(other->bytes, 1, top);
        memset(other->bytes + yes.from, 0, (size_t)(yes.to - yes.from));
    }
    set_stretch(&g->now, yes);
}

/* Mostly each compare of a condition holds for a stretch of the lanes: so does the condition. */
void vm_split_linear(const vm_code *c, vm_gang *g, const vm_inst *in) {
    uint32_t top = g->now.top, nvague = 0;
    stretch yes = {0, top};
    struct {
        const vm_compare *k;
        int64_t a, b;
    } vague[VM_MOST_COMPARES];
    for (const vm_compare *k = &c->compares[in->imm];; k++) {
        bool is_signed = k->op == IR_LT_S || k->op == IR_LE_S;
        int64_t a = read_scalar(g->entry[k->a], k->bits, is_signed),
                b = read_scalar(g->entry[k->b], k->bits, is_signed);
        stretch s = k->rows ? all_or_none(c, g, k, a, b) : where_holds(k, a, b, top);
        if (s.to < 0) {
            vague[nvague].k = k, vague[nvague].a = a, vague[nvague++].b = b;
        } else {
            if (s.from > yes.from) yes.from = s.from;
            if (s.to < yes.to) yes.to = s.to;
            if (yes.to <= yes.from) yes = nobody;
        }
        if (k->last || yes.to == 0) break;
    }
    bool all = yes.to - yes.from == top;
    if (yes.to == 0 || (nvague == 0 && (all || all_on(&g->now)))) {
        split_stretch(g, in, yes);
        return;
    }
    uint8_t *cond = g->sets[c->nsets - 1].bytes; /* a spare set */
    memset(cond, 0, top);
    memset(cond + yes.from, 1, (size_t)(yes.to - yes.from));
    for (uint32_t i = 0; i < nvague; i++)
        compare_lanes(c, g, vague[i].k, vague[i].a, vague[i].b, cond);
    vm_split(c, g, in, cond);
}
