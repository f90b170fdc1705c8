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
    int64_t x = (int64_t)((uint64_t)a << drop) >> drop, y = (int64_t)((uint64_t)b << drop) >> drop;
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

/* How many lanes from 0 on satisfy a + i*sa < b + i*sb (or <=), when those are all that do; -1: unknown.
 * Both sides must not wrap on the way. */
static int64_t prefix_of(const vm_compare *k, int64_t a, int64_t b, uint32_t top) {
    bool is_signed = k->op == IR_LT_S || k->op == IR_LE_S,
         strict = k->op == IR_LT_S || k->op == IR_LT_U;
    int64_t apart = k->stride_a -
                    k->stride_b; /* lanes are few: this small, equality does not come round again */
    if (k->op == IR_EQ && a == b && k->bits >= 32 && apart != 0 && apart > -32768 && apart < 32768)
        return 1;
    if ((k->op == IR_EQ || k->op == IR_NE) && apart == 0) return compare_lane(k, a, b) ? top : 0;
    if (k->op == IR_EQ || k->op == IR_NE) return -1;
    int64_t last = top - 1, la, lb, d0, d1;
    if (__builtin_add_overflow(a, k->stride_a * last, &la) ||
        __builtin_add_overflow(b, k->stride_b * last, &lb))
        return -1;
    if (!is_signed && (a < 0 || b < 0 || la < 0 || lb < 0)) return -1;
    if (k->bits < 64) {
        int64_t most = is_signed ? (1ll << (k->bits - 1)) - 1 : (1ll << k->bits) - 1,
                least = is_signed ? -1 - most : 0;
        if (la > most || lb > most || la < least || lb < least) return -1;
    }
    if (__builtin_sub_overflow(b, a, &d0) || __builtin_sub_overflow(lb, la, &d1)) return -1;
    if (d0 == INT64_MIN || d1 == INT64_MIN) return -1;
    d0 -= strict, d1 -= strict; /* now: d >= 0 */
    if (d0 >= 0 && d1 >= 0) return top;
    if (d0 < 0 && d1 < 0) return 0;
    if (d0 < 0) return -1;
    return d0 / apart + 1; /* d falls by this difference a lane */
}

/* The least and the largest value over the block; false: it may wrap on the way. */
static bool extremes(const vm_code *c, const vm_gang *g, const uint32_t step[3], int64_t base,
                     int64_t out[2]) {
    out[0] = out[1] = base;
    for (int i = 0; i < 3; i++) {
        int64_t far;
        if (__builtin_mul_overflow(step_of(g, step[i]), (int64_t)c->base.block[i] - 1, &far))
            return false;
        if (__builtin_add_overflow(out[far > 0], far, &out[far > 0])) return false;
    }
    return true;
}

/* All lanes of the block satisfy the compare, or none: top or 0; else -1. */
static int64_t all_or_none(const vm_code *c, const vm_gang *g, const vm_compare *k, int64_t a,
                           int64_t b) {
    bool is_signed = k->op == IR_LT_S || k->op == IR_LE_S,
         strict = k->op == IR_LT_S || k->op == IR_LT_U;
    int64_t x[2], y[2], top = g->now.top;
    if (!extremes(c, g, k->step_a, a, x) || !extremes(c, g, k->step_b, b, y)) return -1;
    if (!is_signed && (x[0] < 0 || y[0] < 0)) return -1;
    if (k->bits < 64) {
        int64_t most = is_signed ? (1ll << (k->bits - 1)) - 1 : (1ll << k->bits) - 1,
                least = is_signed ? -1 - most : 0;
        if (x[1] > most || y[1] > most || x[0] < least || y[0] < least) return -1;
    }
    if (k->op == IR_EQ || k->op == IR_NE)
        return x[1] < y[0] || x[0] > y[1] ? (k->op == IR_NE ? top : 0) : -1;
    if (strict ? x[1] < y[0] : x[1] <= y[0]) return top;
    if (strict ? x[0] >= y[1] : x[0] > y[1]) return 0;
    return -1;
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

/* The first `yes` lanes go on; all of them, or the current set is whole. */
static void split_prefix(vm_gang *g, const vm_inst *in, uint32_t yes) {
    vm_set *exit = &g->sets[in->set], *other = &g->sets[in->set + 1];
    uint32_t top = g->now.top;
    bool converges = in->flags & VM_FLAG_CONVERGES;
    other->count = other->top = 0;
    if (yes == top) {
        if (converges) { /* all stay: the exit set gets a copy */
            exit->count = g->now.count, exit->top = top;
            if (!all_on(&g->now)) memcpy(exit->bytes, g->now.bytes, top);
        } else {
            exit->count = exit->top = 0;
        }
    } else if (yes > 0) {
        other->count = top - yes, other->top = top;
        if (!(in->flags & VM_FLAG_NO_ELSE)) {
            memset(other->bytes, 0, yes);
            memset(other->bytes + yes, 1, top - yes);
        }
        exit->count = exit->top = converges ? top : 0;
        g->now.count = g->now.top = yes;
    } else { /* now becomes the else lanes, and what the exit set must show */
        other->count = g->now.count, other->top = top;
        if (!all_on(&g->now)) memcpy(other->bytes, g->now.bytes, top);
        if (converges)
            set_move(exit, &g->now);
        else
            exit->count = exit->top = 0;
        g->now.count = g->now.top = 0;
    }
}

/* All compares of a condition give a prefix of the lanes: so does the condition. */
void vm_split_linear(const vm_code *c, vm_gang *g, const vm_inst *in) {
    uint32_t top = g->now.top, yes = top, nvague = 0;
    enum { MOST = 16 };
    struct {
        const vm_compare *k;
        int64_t a, b;
    } vague[MOST];
    for (const vm_compare *k = &c->compares[in->imm];; k++) {
        bool is_signed = k->op == IR_LT_S || k->op == IR_LE_S;
        int64_t a = read_scalar(g->entry[k->a], k->bits, is_signed),
                b = read_scalar(g->entry[k->b], k->bits, is_signed);
        int64_t prefix = k->rows ? all_or_none(c, g, k, a, b) : prefix_of(k, a, b, top);
        if (prefix < 0)
            vague[nvague].k = k, vague[nvague].a = a, vague[nvague++].b = b;
        else if (prefix < yes)
            yes = (uint32_t)prefix;
        if (k->last || yes == 0) break;
    }
    if (yes == 0 || (nvague == 0 && (yes == top || all_on(&g->now)))) {
        split_prefix(g, in, yes);
        return;
    }
    uint8_t *cond = g->sets[c->nsets - 1].bytes; /* a spare set */
    memset(cond, 1, yes);
    memset(cond + yes, 0, top - yes);
    for (uint32_t i = 0; i < nvague; i++)
        compare_lanes(c, g, vague[i].k, vague[i].a, vague[i].b, cond);
    vm_split(c, g, in, cond);
}
