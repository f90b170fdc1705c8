/* Warp operations (their meaning: ops.def).
 *
 * A gang of many lanes holds whole warps: the lanes that are on now are all that can come, for those
 * that are off wait for these at the end of some construct (meet.c has seen that no mask names them; if
 * one does, it is reported). Where each thread is a gang, threads wait until
 * all that their mask names stand at the same operation with the same mask, wherever that is in the code.
 * Both fill a meeting (one warp's operands) and take the results from it.
 */
#include "backend/vm/vm.h"

#include <string.h>

enum { WARP = IR_WARP_SIZE };

typedef struct meeting {
    uint32_t here; /* lanes that lend a value */
    uint64_t value[WARP], result[WARP];
    uint32_t lane[WARP], mask[WARP], width[WARP];
} meeting;

static uint64_t read_bits(const void *p, unsigned size) {
    uint64_t bits = 0;
    switch (size) {
    case 0: return *(const uint8_t *)p;
    case 1: memcpy(&bits, p, 2); return bits;
    case 2: memcpy(&bits, p, 4); return bits;
    default: memcpy(&bits, p, 8); return bits;
    }
}

static void write_bits(void *p, unsigned size, uint64_t bits) {
    switch (size) {
    case 0: memcpy(p, &bits, 1); return;
    case 1: memcpy(p, &bits, 2); return;
    case 2: memcpy(p, &bits, 4); return;
    default: memcpy(p, &bits, 8); return;
    }
}

/* log2 of the result's bytes */
static unsigned result_size(const vm_warp *x) {
    if (ir_op_group(x->op) == IR_IN_SHUFFLE || ir_op_group(x->op) == IR_IN_VOTE) return x->size;
    return 2;
}

/* ---- what each lane gets ---- */

static uint64_t shuffled(ir_op op, const meeting *m, uint32_t i) {
    uint32_t width = m->width[i], by = m->lane[i];
    if (width == 0 || width > WARP || (width & (width - 1)) != 0) width = WARP;
    uint32_t first = i & ~(width - 1), end = first + width, from;
    switch (op) {
    case IR_SHFL_IDX: from = first | (by & (width - 1)); break;
    case IR_SHFL_UP: from = by <= i - first ? i - by : i; break;
    case IR_SHFL_DOWN: from = by < end - i ? i + by : i; break;
    default: from = (i ^ (by & (WARP - 1))) < end ? i ^ (by & (WARP - 1)) : i; break;
    }
    return (m->here & m->mask[i]) >> from & 1 ? m->value[from] : m->value[i];
}

static uint32_t lanes_where(const meeting *m, uint32_t among, uint64_t value) {
    uint32_t same = 0;
    for (uint32_t i = 0; i < WARP; i++)
        if (among >> i & 1 && m->value[i] == value) same |= 1u << i;
    return same;
}

static uint64_t result_of(ir_op op, const meeting *m, uint32_t i) {
    uint32_t part = m->here & m->mask[i];
    switch (op) {
    case IR_VOTE_ALL: return lanes_where(m, part, 0) == 0;
    case IR_VOTE_ANY: return lanes_where(m, part, 0) != part;
    case IR_VOTE_EQ:
    case IR_MATCH_ANY:
    case IR_MATCH_ALL: {
        uint32_t same = lanes_where(m, part, m->value[i]);
        return op == IR_VOTE_EQ ? same == part : op == IR_MATCH_ALL && same != part ? 0 : same;
    }
    case IR_BALLOT: return part & ~lanes_where(m, part, 0);
    case IR_ACTIVEMASK: return m->here;
    default: return shuffled(op, m, i);
    }
}

static void find_results(ir_op op, meeting *m) {
    for (uint32_t i = 0; i < WARP; i++)
        if (m->here >> i & 1) m->result[i] = result_of(op, m, i);
}

/* ---- a gang of many lanes ---- */

void vm_warp_end_lanes(vm_gang *g) {
    bool all = g->now.count == g->now.top;
    for (uint32_t i = 0; i < g->now.top; i++)
        if (all || g->now.bytes[i] != 0) g->ended[i / 32] |= 1u << i % 32;
}

static uint32_t lanes_on(const vm_gang *g, uint32_t base) {
    uint32_t n = g->now.top - base < WARP ? g->now.top - base : WARP, on = 0;
    if (g->now.count == g->now.top) return n == WARP ? UINT32_MAX : (1u << n) - 1;
    for (uint32_t i = 0; i < n; i++) on |= (uint32_t)(g->now.bytes[base + i] != 0) << i;
    return on;
}

static uint32_t word_of(const vm_gang *g, uint32_t entry, bool one, uint32_t i) {
    return ((const uint32_t *)g->entry[entry])[one ? 0 : i];
}

/* Operands of the lanes that are here; false: a mask names one that can't come. */
static bool gather(const vm_code *c, const vm_gang *g, const vm_warp *x, uint32_t base, meeting *m,
                   uint32_t *stuck) {
    uint32_t left = c->lanes - base, gone = g->ended[base / WARP];
    if (left < WARP) gone |= ~0u << left;
    const char *value = x->value != 0 ? g->entry[x->value] : NULL;
    for (uint32_t i = 0; i < WARP; i++) {
        if (!(m->here >> i & 1)) continue;
        uint32_t at = base + i;
        m->mask[i] = (x->mask != 0 ? word_of(g, x->mask, x->one_mask, at) : 0) | 1u << i;
        m->lane[i] = x->lane != 0 ? word_of(g, x->lane, x->one_lane, at) : 0;
        m->width[i] = x->width != 0 ? word_of(g, x->width, x->one_width, at) : 0;
        m->value[i] = value != NULL
                          ? read_bits(value + (x->one_value ? 0 : (size_t)at << x->size), x->size)
                          : 0;
        if ((m->mask[i] & ~(m->here | gone)) == 0) continue;
        *stuck = g->first + at;
        return false;
    }
    return true;
}

#define MOVE_LANES(T)                                                       \
    do {                                                                    \
        T *d = g->entry[x->dst], old[WARP];                                 \
        const T *v = g->entry[x->value];                                    \
        for (uint32_t base = 0; base < g->now.top; base += WARP) {          \
            memcpy(old, v + base, sizeof old);                              \
            for (uint32_t i = 0; i < WARP; i++) d[base + i] = old[from[i]]; \
        }                                                                   \
    } while (0)

/* Whole warps, one lane operand, one width: a fixed permutation. */
static bool shuffle_all(const vm_code *c, vm_gang *g, const vm_warp *x) {
    if (ir_op_group(x->op) != IR_IN_SHUFFLE || x->size < 2 || x->one_value || !x->one_lane ||
        !x->one_mask || !x->one_width)
        return false;
    if (g->now.count != g->now.top || g->now.top % WARP != 0 || c->lanes % WARP != 0) return false;
    if (word_of(g, x->mask, true, 0) != UINT32_MAX) return false;
    meeting m = {.here = UINT32_MAX};
    uint8_t from[WARP];
    for (uint32_t i = 0; i < WARP; i++) {
        m.value[i] = i, m.mask[i] = UINT32_MAX;
        m.lane[i] = word_of(g, x->lane, true, 0), m.width[i] = word_of(g, x->width, true, 0);
    }
    for (uint32_t i = 0; i < WARP; i++) from[i] = (uint8_t)shuffled(x->op, &m, i);
    if (x->size == 2)
        MOVE_LANES(uint32_t);
    else
        MOVE_LANES(uint64_t);
    return true;
}

bool vm_warp_exec(const vm_code *c, vm_gang *g, const vm_warp *x, uint32_t *stuck) {
    if (c->lanes == 1) { /* activemask */
        *(uint32_t *)g->entry[x->dst] = 1u << g->first % WARP;
        return true;
    }
    if (shuffle_all(c, g, x)) return true;
    unsigned size = result_size(x);
    for (uint32_t base = 0; base < g->now.top; base += WARP) {
        meeting m = {.here = lanes_on(g, base)};
        if (m.here == 0) continue;
        if (!gather(c, g, x, base, &m, stuck)) return false;
        if (x->op == IR_SYNCWARP) continue;
        find_results(x->op, &m);
        char *to = (char *)g->entry[x->dst] + ((size_t)base << size);
        for (uint32_t i = 0; i < WARP; i++)
            if (m.here >> i & 1) write_bits(to + ((size_t)i << size), size, m.result[i]);
    }
    return true;
}

/* ---- a gang per thread ---- */

static const vm_warp *waits_at(const vm_gang *of) {
    const vm_gang *g = of->top;
    return &g->code->warps[g->code->insts[g->pc].imm];
}

static uint32_t mask_of(const vm_gang *g, const vm_warp *x) {
    return *(const uint32_t *)g->top->entry[x->mask] | 1u << g->first % WARP;
}

bool vm_warp_meet(const vm_code *c, vm_frame *f, uint32_t at) {
    const vm_gang *caller = vm_gang_of(c, f, at);
    const vm_warp *what = waits_at(caller);
    uint32_t base = at & ~(WARP - 1u), mask = mask_of(caller, what);
    meeting m = {.here = 0};
    for (uint32_t i = 0; i < WARP && base + i < c->gangs; i++) {
        const vm_gang *g = vm_gang_of(c, f, base + i);
        if (!(mask >> i & 1) || g->state == VM_DONE) continue;
        if (g->state != VM_AT_WARP) return false;
        const vm_warp *x = waits_at(g);
        if (x->op != what->op || x->size != what->size || mask_of(g, x) != mask) return false;
        m.here |= 1u << i;
        m.mask[i] = mask;
        m.value[i] = x->value != 0 ? read_bits(g->top->entry[x->value], x->size) : 0;
        m.lane[i] = x->lane != 0 ? word_of(g->top, x->lane, true, 0) : 0;
        m.width[i] = x->width != 0 ? word_of(g->top, x->width, true, 0) : 0;
    }
    if (what->op != IR_SYNCWARP) find_results(what->op, &m);
    for (uint32_t i = 0; i < WARP; i++) {
        if (!(m.here >> i & 1)) continue;
        vm_gang *g = vm_gang_of(c, f, base + i);
        const vm_warp *x = waits_at(g);
        if (x->op != IR_SYNCWARP) write_bits(g->top->entry[x->dst], result_size(x), m.result[i]);
        g->state = VM_RUNNING;
        g->top->pc++;
    }
    return true;
}
