/* Runs the code of a block for one gang, until it ends or waits (see vm.h for the structures).
 *
 * Pure operations run over all lanes below `top`, active or not; memory, faults and what constructs
 * pass on look at the mask. No instruction runs with no active lane, except those that pick up lanes.
 */
#include "backend/vm/vm.h"

#include <string.h>

/* ---- lane sets: disjoint, so that counts add ---- */

static inline bool all_on(const vm_set *s) { return s->count == s->top; }
static inline const uint8_t *mask_of(const vm_set *s) { return all_on(s) ? NULL : s->bytes; }

static inline void set_move(vm_set *to, vm_set *from) {
    vm_set t = *to;
    *to = *from;
    *from = (vm_set){.bytes = t.bytes};
}

static void set_spell(vm_set *s) { /* bytes say what count and top do */
    if (all_on(s)) memset(s->bytes, 1, s->top);
}

static void set_merge(const vm_code *c, vm_set *to, vm_set *from) {
    if (from->count == 0) return;
    if (to->count == 0) {
        set_move(to, from);
        return;
    }
    uint32_t top = to->top > from->top ? to->top : from->top;
    if (to->count + from->count < top) {
        set_spell(to);
        set_spell(from);
        if (to->top < top) memset(to->bytes + to->top, 0, top - to->top);
        c->kernels->moves->mask_or(to->bytes, from->bytes, from->top);
    }
    to->count += from->count;
    to->top = top;
    from->count = from->top = 0;
}

/* Lowers top to just above the last active lane. */
static void set_trim(vm_set *s) {
    if (s->count == 0) s->top = 0;
    while (s->top >= 8 && s->count > 0) {
        uint64_t word;
        memcpy(&word, s->bytes + s->top - 8, 8);
        if (word != 0) break;
        s->top -= 8;
    }
    while (s->top > 0 && s->bytes[s->top - 1] == 0) s->top--;
}

/* ---- if ---- */

/* now splits into yes (stays in now) and no (set 1); set 0 gets now as it was, where all lanes meet again. */
static void split_now(const vm_code *c, vm_gang *g, const vm_inst *in, const uint8_t *cond) {
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

static int64_t read_scalar(const void *p, unsigned bits, bool is_signed) {
    uint64_t u = 0;
    memcpy(&u, p, bits / 8);
    return is_signed && bits < 64 ? (int64_t)(u << (64 - bits)) >> (64 - bits) : (int64_t)u;
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

/* The steps of a value along the block's axes, and lanes of the current set row by row. */
typedef struct row_walk {
    int64_t x, y, z; /* steps */
    uint32_t width, height;
} row_walk;

static int64_t step_of(const vm_gang *g, uint32_t entry) {
    return entry != 0 ? *(const int64_t *)g->entry[entry] : 0;
}

static row_walk walk_rows(const vm_code *c, const vm_gang *g, const uint32_t step[3]) {
    const uint32_t *n = c->base.block;
    row_walk w = {step_of(g, step[0]), step_of(g, step[1]), step_of(g, step[2]), n[0], n[1]};
    if (n[0] == 1) w = (row_walk){w.y, w.z, 0, n[1], n[2]}; /* rows of one: columns are the rows */
    return w;
}

static int64_t row_start(const row_walk *w, uint32_t row) {
    return row % w->height * w->y + row / w->height * w->z;
}

/* As one row, where each goes on where the one before ends. */
static void join_rows(const vm_code *c, row_walk *w) {
    const uint32_t *n = c->base.block;
    bool even = n[0] == 1 ? n[2] == 1
                          : (n[1] == 1 || w->y == w->x * w->width) &&
                                (n[2] == 1 || w->z == w->x * w->width * w->height);
    if (even) w->width = c->lanes;
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
    row_walk wa = walk_rows(c, g, k->step_a), wb = walk_rows(c, g, k->step_b);
    for (uint32_t at = 0, row = 0; at < g->now.top; at += wa.width, row++) {
        uint32_t n = g->now.top - at < wa.width ? g->now.top - at : wa.width;
        compare_row(k, cond + at, (uint64_t)(a + row_start(&wa, row)), (uint64_t)wa.x,
                    (uint64_t)(b + row_start(&wb, row)), (uint64_t)wb.x, n);
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
static void split_linear(const vm_code *c, vm_gang *g, const vm_inst *in) {
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
    split_now(c, g, in, cond);
}

/* ---- memory ---- */

static inline void load_scalar(void *dst, const void *from, unsigned size, uint32_t order) {
    if (order == IR_PLAIN) {
        switch (size) {
        case 0: memcpy(dst, from, 1); return;
        case 1: memcpy(dst, from, 2); return;
        case 2: memcpy(dst, from, 4); return;
        default: memcpy(dst, from, 8); return;
        }
    }
    switch (size) {
    case 0: *(uint8_t *)dst = __atomic_load_n((const uint8_t *)from, __ATOMIC_ACQUIRE); return;
    case 1: *(uint16_t *)dst = __atomic_load_n((const uint16_t *)from, __ATOMIC_ACQUIRE); return;
    case 2: *(uint32_t *)dst = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE); return;
    default: *(uint64_t *)dst = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE); return;
    }
}

static inline void store_scalar(void *to, const void *from, unsigned size, uint32_t order) {
    if (order == IR_PLAIN) {
        load_scalar(to, from, size, IR_PLAIN);
        return;
    }
    switch (size) {
    case 0: __atomic_store_n((uint8_t *)to, *(const uint8_t *)from, __ATOMIC_RELEASE); return;
    case 1: __atomic_store_n((uint16_t *)to, *(const uint16_t *)from, __ATOMIC_RELEASE); return;
    case 2: __atomic_store_n((uint32_t *)to, *(const uint32_t *)from, __ATOMIC_RELEASE); return;
    default: __atomic_store_n((uint64_t *)to, *(const uint64_t *)from, __ATOMIC_RELEASE); return;
    }
}

static inline void *own_slot(const vm_code *c, const vm_gang *g, uint32_t entry) {
    return g->slots + c->entries[entry].offset;
}

static void load_rows(const vm_code *c, vm_gang *g, const vm_inst *in) {
    row_walk w = walk_rows(c, g, c->rows[in->imm].step);
    const char *base = *(char **)g->entry[in->a];
    const uint8_t *mask = mask_of(&g->now);
    const vm_moves *m = c->kernels->moves;
    char *dst = g->entry[in->dst];
    uint32_t left = g->now.top;
    join_rows(c, &w);
    for (uint32_t row = 0, at = 0; left > 0; row++) {
        uint32_t n = left < w.width ? left : w.width;
        const char *from = base + row_start(&w, row);
        if (mask == NULL)
            m->row_load[in->size](dst + ((size_t)at << in->size), from, w.x, n);
        else
            m->load_strided[in->size](dst + ((size_t)at << in->size), from, w.x, mask + at, n);
        left -= n, at += n;
    }
}

static void store_rows(const vm_code *c, vm_gang *g, const vm_inst *in) {
    row_walk w = walk_rows(c, g, c->rows[in->imm].step);
    char *base = *(char **)g->entry[in->a];
    const uint8_t *mask = mask_of(&g->now);
    const char *value = g->entry[in->b];
    uint32_t left = g->now.top;
    join_rows(c, &w);
    for (uint32_t row = 0, at = 0; left > 0; row++) {
        uint32_t n = left < w.width ? left : w.width;
        c->kernels->moves->store_strided[in->size](base + row_start(&w, row), w.x,
                                                   value + ((size_t)at << in->size),
                                                   mask == NULL ? NULL : mask + at, n);
        left -= n, at += n;
    }
}

static void iota_rows(const vm_code *c, vm_gang *g, const vm_inst *in) {
    row_walk w = walk_rows(c, g, c->rows[in->imm].step);
    int64_t base = read_scalar(g->entry[in->a], 8u << in->size, false);
    char *dst = g->entry[in->dst];
    for (uint32_t row = 0, at = 0; at < g->now.top; row++, at += w.width) {
        uint32_t n = g->now.top - at < w.width ? g->now.top - at : w.width;
        int64_t start = base + row_start(&w, row);
        c->kernels->moves->iota[in->size](dst + ((size_t)at << in->size), &start, w.x, n);
    }
}

static void load_forward(const vm_code *c, vm_gang *g, const vm_inst *in) {
    char *from = *(char **)g->entry[in->a];
    if (all_on(&g->now)) {
        g->entry[in->dst] = from;
        return;
    }
    g->entry[in->dst] = own_slot(c, g, in->dst);
    c->kernels->moves->load_strided[in->size](g->entry[in->dst], from, in->imm, g->now.bytes,
                                              g->now.top);
}

static void store_linear(const vm_code *c, vm_gang *g, const vm_inst *in) {
    char *to = *(char **)g->entry[in->a];
    const void *value = g->entry[in->b];
    size_t n = g->now.top;
    if (in->c != 0 && value != own_slot(c, g, in->c)) { /* a forwarded load: it may overlap */
        if (all_on(&g->now) && in->imm == 1ll << in->size) {
            memmove(to, value, n << in->size);
            return;
        }
        value = memcpy(own_slot(c, g, in->c), value, n << in->size);
    }
    c->kernels->moves->store_strided[in->size](to, in->imm, value, mask_of(&g->now), n);
}

static inline bool overlaps(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

/* Stores past the caches pay for memory that is only written (1.3 times at two threads), and cost twice
 * as much where the line is in the cache anyway because it was read. */
static bool may_stream(const vm_code *c, const vm_frame *f, const vm_gang *g, const char *to,
                       size_t bytes) {
    if (!f->streams || ((uintptr_t)to & 63) != 0 || (bytes & 63) != 0) return false;
    for (uint32_t i = 0; i < c->nforwarded; i++)
        if (g->entry[c->forwarded[i]] == to) return false;
    return true;
}

static void aim_store(const vm_code *c, const vm_frame *f, vm_gang *g, const vm_inst *in) {
    char *to = *(char **)g->entry[in->a];
    size_t n = g->now.top, bytes = n << in->size;
    const uint32_t operands[3] = {in->b, in->c, in->target};
    bool direct = all_on(&g->now) && !may_stream(c, f, g, to, bytes);
    for (int i = 0; i < 3 && direct; i++) {
        unsigned size = in->imm >> 8 * i & 255;
        const char *p = g->entry[operands[i]];
        if (operands[i] == 0 || (p == to && size == in->size)) continue;
        direct = !overlaps(to, bytes, p, n << size);
    }
    g->entry[in->dst] = direct ? (void *)to : own_slot(c, g, in->dst);
}

static void store_aimed(const vm_code *c, const vm_frame *f, vm_gang *g, const vm_inst *in) {
    char *to = *(char **)g->entry[in->a];
    const void *value = g->entry[in->dst];
    if (value == to) return;
    size_t bytes = (size_t)g->now.top << in->size;
    if (all_on(&g->now) && may_stream(c, f, g, to, bytes)) {
        c->kernels->moves->stream(to, value, bytes);
        return;
    }
    c->kernels->moves->store_strided[in->size](to, 1ll << in->size, value, mask_of(&g->now),
                                               g->now.top);
}

static void record_fault(const vm_code *c, const vm_frame *f, const vm_gang *g, const vm_fault *x,
                         code_fault *out) {
    uint32_t lane = 0;
    if (!all_on(&g->now))
        while (lane + 1 < g->now.top && g->now.bytes[lane] == 0) lane++;
    uint32_t thread = g->first + lane;
    if (out->set && (f->block > out->block || (f->block == out->block && thread >= out->thread)))
        return;
    *out = (code_fault){
        .set = true, .number = x->number, .line = x->line, .block = f->block, .thread = thread};
    for (uint32_t i = 0; i < x->nvalues; i++) {
        const int64_t *p = g->entry[x->value[i]];
        out->values[i] = x->vector[i] ? p[lane] : *p + (int64_t)lane * x->stride[i];
    }
    (void)c;
}

static void copy_lanes(const vm_code *c, const vm_gang *g, const vm_inst *in, bool splat) {
    const vm_moves *m = c->kernels->moves;
    void *dst = g->entry[in->dst];
    const void *a = g->entry[in->a];
    if (splat && all_on(&g->now))
        m->splat[in->size](dst, a, g->now.top);
    else if (splat)
        m->blend_scalar[in->size](dst, a, g->now.bytes, g->now.top);
    else if (all_on(&g->now))
        memcpy(dst, a, (size_t)g->now.top << in->size);
    else
        m->blend[in->size](dst, a, g->now.bytes, g->now.top);
}

/* barrier.count, .and, .or where one gang is the block: the lanes here are all that come. */
static void reduce_predicate(vm_gang *g, const vm_inst *in) {
    const uint32_t *p = g->entry[in->a];
    const uint8_t *mask = mask_of(&g->now);
    uint32_t yes = 0;
    if (in->b != 0)
        yes = *p != 0 ? g->now.count : 0;
    else
        for (uint32_t i = 0; i < g->now.top; i++) yes += (mask == NULL || mask[i]) && p[i] != 0;
    *(uint32_t *)g->entry[in->dst] = in->imm == IR_BARRIER_COUNT ? yes
                                     : in->imm == IR_BARRIER_AND ? yes == g->now.count
                                                                 : yes > 0;
}

/* ---- the loop ---- */

enum { SPIN_ROUNDS = 2 }; /* of a spin loop before another gang gets its turn */

#define AS(T, e) (*(T *)g->entry[e])

vm_stop vm_gang_run(const vm_code *c, vm_frame *f, vm_gang *g, int64_t *budget, code_fault *fault) {
    const vm_inst *in = c->insts + g->pc, *insts = c->insts;
    const vm_moves *moves = c->kernels->moves;
    void **entry = g->entry;
    int spins = SPIN_ROUNDS;
    for (;; in++) {
        switch ((vm_kind)in->kind) {
        case VM_VECTOR:
            in->kernel(entry[in->dst], entry[in->a], entry[in->b], entry[in->c], g->now.top);
            break;
        case VM_SCALAR:
            in->kernel(entry[in->dst], entry[in->a], entry[in->b], entry[in->c], 1);
            break;
        case VM_ADD_32: AS(uint32_t, in->dst) = AS(uint32_t, in->a) + AS(uint32_t, in->b); break;
        case VM_ADD_64: AS(uint64_t, in->dst) = AS(uint64_t, in->a) + AS(uint64_t, in->b); break;
        case VM_SUB_64: AS(uint64_t, in->dst) = AS(uint64_t, in->a) - AS(uint64_t, in->b); break;
        case VM_MUL_32: AS(uint32_t, in->dst) = AS(uint32_t, in->a) * AS(uint32_t, in->b); break;
        case VM_MUL_64: AS(uint64_t, in->dst) = AS(uint64_t, in->a) * AS(uint64_t, in->b); break;
        case VM_SEXT_32_64: AS(int64_t, in->dst) = AS(int32_t, in->a); break;
        case VM_ZEXT_32_64: AS(uint64_t, in->dst) = AS(uint32_t, in->a); break;
        case VM_SPLAT: moves->splat[in->size](entry[in->dst], entry[in->a], g->now.top); break;
        case VM_IOTA:
            moves->iota[in->size](entry[in->dst], entry[in->a], in->imm, g->now.top);
            break;
        case VM_IOTA_ROWS: iota_rows(c, g, in); break;
        case VM_COPY_SCALAR: AS(uint64_t, in->dst) = AS(uint64_t, in->a); break;
        case VM_COPY_32: AS(uint32_t, in->dst) = AS(uint32_t, in->a); break;
        case VM_COPY_VECTOR: copy_lanes(c, g, in, false); break;
        case VM_COPY_SPLAT: copy_lanes(c, g, in, true); break;
        case VM_LOAD_SCALAR: load_scalar(entry[in->dst], AS(void *, in->a), in->size, in->c); break;
        case VM_LOAD_LINEAR:
            moves->load_strided[in->size](entry[in->dst], AS(char *, in->a), in->imm,
                                          mask_of(&g->now), g->now.top);
            break;
        case VM_LOAD_ROWS: load_rows(c, g, in); break;
        case VM_LOAD_FORWARD: load_forward(c, g, in); break;
        case VM_LOAD_GATHER:
            moves->gather[in->size](entry[in->dst], entry[in->a], mask_of(&g->now), g->now.top);
            break;
        case VM_STORE_SCALAR:
            store_scalar(AS(void *, in->a), entry[in->b], in->size, in->dst);
            break;
        case VM_STORE_ROWS: store_rows(c, g, in); break;
        case VM_STORE_LINEAR: store_linear(c, g, in); break;
        case VM_STORE_SCATTER:
            moves->scatter[in->size](entry[in->a], entry[in->b], mask_of(&g->now), g->now.top);
            break;
        case VM_STORE_AIM: aim_store(c, f, g, in); break;
        case VM_STORE_AIMED: store_aimed(c, f, g, in); break;
        case VM_ATOMIC:
            vm_atomic_exec(&c->atomics[in->imm], entry, mask_of(&g->now), g->now.top);
            break;
        case VM_BARRIER:
            if (c->gangs == 1) {
                if (in->imm != IR_BARRIER) reduce_predicate(g, in);
                break;
            }
            g->pc = (uint32_t)(in + 1 - insts);
            return STOP_BARRIER;
        case VM_GRID_SYNC: g->pc = (uint32_t)(in + 1 - insts); return STOP_GRID_SYNC;
        case VM_WARP: {
            const vm_warp *x = &c->warps[in->imm];
            uint32_t stuck;
            if (c->lanes == 1 && x->op != IR_ACTIVEMASK) {
                g->pc = (uint32_t)(in - insts);
                return STOP_WARP;
            }
            if (vm_warp_exec(c, g, x, &stuck)) break;
            fault->at_line = x->line, fault->at_thread = stuck;
            fault->at_what = ir_op_table[x->op].name;
            return STOP_STUCK;
        }
        case VM_FENCE: __atomic_thread_fence(__ATOMIC_SEQ_CST); break;
        case VM_FAULT: record_fault(c, f, g, &c->faults[in->imm], fault); break;
        case VM_JUMP: in = insts + in->target - 1; break;
        case VM_IF_SCALAR:
            if (AS(uint8_t, in->a) == 0) in = insts + in->target - 1;
            break;
        case VM_IF_VECTOR:
            split_now(c, g, in, entry[in->a]);
            if (g->now.count == 0) in = insts + in->target - 1;
            break;
        case VM_IF_LINEAR:
            split_linear(c, g, in);
            if (g->now.count == 0) in = insts + in->target - 1;
            break;
        case VM_ELSE:
            if (g->sets[in->set].count == 0) {
                g->now.count = g->now.top = 0;
                in = insts + in->target - 1;
            } else {
                set_move(&g->now, &g->sets[in->set]);
            }
            break;
        case VM_JOIN:
            set_move(&g->now, &g->sets[in->set]);
            if (g->now.count == 0) in = insts + in->target - 1;
            break;
        case VM_CLEAR: g->sets[in->set].count = g->sets[in->set].top = 0; break;
        case VM_LEAVE:
            set_merge(c, &g->sets[in->set], &g->now);
            in = insts + in->target - 1;
            break;
        case VM_END_LANES:
            if (c->nwarps > 0) vm_warp_end_lanes(g);
            g->now.count = g->now.top = 0;
            in = insts + in->target - 1;
            break;
        case VM_CHECK:
            if (g->now.count == 0) in = insts + in->target - 1;
            break;
        case VM_LOOP_NEXT:
            set_move(&g->now, &g->sets[in->set]);
            if (g->now.count == 0) in = insts + in->target - 1;
            break;
        case VM_LOOP_BACK: {
            bool spin = (in->flags & VM_FLAG_SPIN) != 0;
            uint32_t line = in->line;
            int64_t cost = in->imm;
            in = insts + in->target - 1;
            if (spin ? --spins > 0 : (*budget -= cost) > 0) break;
            g->pc = (uint32_t)(in + 1 - insts);
            fault->at_line = line, fault->at_thread = g->first, fault->at_what = "loop";
            return spin ? STOP_SPIN : STOP_BUDGET;
        }
        case VM_FINISH: return STOP_DONE;
        }
    }
}
