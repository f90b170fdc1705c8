/* Runs the code of a block for one gang, until it ends or waits (see vm.h for the structures).
 *
 * Pure operations run over all lanes below `top`, active or not; memory, faults and what constructs
 * pass on look at the mask. No instruction runs with no active lane, except those that pick up lanes.
 */
#include "backend/vm/lanes.h"

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

static void load_lanes(const vm_code *c, const vm_gang *g, unsigned size, char *dst,
                       const char *from, int64_t stride) {
    const uint8_t *mask;
    uint32_t n = g->now.top, begin = set_begin(&g->now, &mask);
    c->kernels->moves->load_strided[size](dst + ((size_t)begin << size), from + begin * stride,
                                          stride, mask, n - begin);
}

static void store_lanes(const vm_code *c, const vm_gang *g, unsigned size, char *to, int64_t stride,
                        const char *value) {
    const uint8_t *mask;
    uint32_t n = g->now.top, begin = set_begin(&g->now, &mask);
    c->kernels->moves->store_strided[size](to + begin * stride, stride,
                                           value + ((size_t)begin << size), mask, n - begin);
}

/* Loads of a loop that leave out much memory from round to round (strides of a grid) meet no prefetcher:
 * asks for what the next round will read. The cell has the address of the round before, or anything. */
static inline void look_ahead(const vm_gang *g, const vm_inst *in, const char *from) {
    enum { NEAR = 4096 };
    char **before = (char **)g->entry[in->target];
    uintptr_t step = (uintptr_t)from - (uintptr_t)*before,
              bytes = (uintptr_t)g->now.top << in->size;
    *before = (char *)from;
    if (step + NEAR <= 2 * NEAR || bytes > NEAR) return;
    for (uintptr_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const void *)((uintptr_t)from + step + at));
}

static void load_rows(const vm_code *c, vm_gang *g, const vm_inst *in) {
    vm_row_walk w = walk_rows(c, g, c->rows[in->imm].step);
    const char *base = *(char **)g->entry[in->a];
    const uint8_t *mask = mask_of(&g->now);
    const vm_moves *m = c->kernels->moves;
    char *dst = g->entry[in->dst];
    uint32_t left = g->now.top;
    join_rows(c, &w);
    if (mask == NULL) {
        m->load_rows[in->size](dst, base, &w, left);
        return;
    }
    for (uint32_t row = 0, at = 0; left > 0; row++) {
        uint32_t n = left < w.width ? left : w.width;
        m->load_strided[in->size](dst + ((size_t)at << in->size), base + vm_row_start(&w, row), w.x,
                                  mask + at, n);
        left -= n, at += n;
    }
}

static void store_rows(const vm_code *c, vm_gang *g, const vm_inst *in) {
    vm_row_walk w = walk_rows(c, g, c->rows[in->imm].step);
    char *base = *(char **)g->entry[in->a];
    const uint8_t *mask = mask_of(&g->now);
    const char *value = g->entry[in->b];
    uint32_t left = g->now.top;
    join_rows(c, &w);
    for (uint32_t row = 0, at = 0; left > 0; row++) {
        uint32_t n = left < w.width ? left : w.width;
        c->kernels->moves->store_strided[in->size](base + vm_row_start(&w, row), w.x,
                                                   value + ((size_t)at << in->size),
                                                   mask == NULL ? NULL : mask + at, n);
        left -= n, at += n;
    }
}

static void iota_rows(const vm_code *c, vm_gang *g, const vm_inst *in) {
    vm_row_walk w = walk_rows(c, g, c->rows[in->imm].step);
    int64_t base = read_scalar(g->entry[in->a], 8u << in->size, false);
    char *dst = g->entry[in->dst];
    for (uint32_t row = 0, at = 0; at < g->now.top; row++, at += w.width) {
        uint32_t n = g->now.top - at < w.width ? g->now.top - at : w.width;
        int64_t start = base + vm_row_start(&w, row);
        c->kernels->moves->iota[in->size](dst + ((size_t)at << in->size), &start, w.x, n);
    }
}

static void load_forward(const vm_code *c, vm_gang *g, const vm_inst *in) {
    char *from = *(char **)g->entry[in->a];
    if (in->target != 0) look_ahead(g, in, from);
    if (all_on(&g->now)) {
        g->entry[in->dst] = from;
        return;
    }
    g->entry[in->dst] = own_slot(c, g, in->dst);
    load_lanes(c, g, in->size, g->entry[in->dst], from, in->imm);
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
    store_lanes(c, g, in->size, to, in->imm, value);
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
    store_lanes(c, g, in->size, to, 1ll << in->size, value);
}

static void record_fault(const vm_code *c, const vm_frame *f, const vm_gang *g, const vm_fault *x,
                         code_fault *out) {
    uint32_t lane = 0;
    if (!all_on(&g->now))
        while (lane + 1 < g->now.top && g->now.bytes[lane] == 0) lane++;
    uint64_t block;
    uint32_t thread;
    vm_where(c, f, g, lane, &block, &thread);
    if (out->set && (block > out->block || (block == out->block && thread >= out->thread))) return;
    *out = (code_fault){
        .set = true, .number = x->number, .pos = x->pos, .block = block, .thread = thread};
    for (uint32_t i = 0; i < x->nvalues; i++) {
        const int64_t *p = g->entry[x->value[i]];
        out->values[i] = x->vector[i] ? p[lane] : *p + (int64_t)lane * x->stride[i];
    }
    vm_note_calls(g, out);
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

#define AS(T, e) (*(T *)entry[e])

/* Where a gang stopped that has looked too long: the budget is used up. */
static vm_stop stop_at_call(vm_frame *f, vm_gang *g, source_pos at, code_fault *fault) {
    fault->at = at, fault->at_what = "call";
    vm_where(g->code, f, g, 0, &fault->at_block, &fault->at_thread);
    return STOP_BUDGET;
}

vm_stop vm_gang_run(vm_frame *f, vm_gang *of, int64_t *budget, code_fault *fault) {
    vm_gang *g = of->top;
    const vm_code *c = g->code;
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
#define SCALAR(id, name, op, type, result, operands, value)        \
    case VM_##id: {                                                \
        operands x = AS(operands, in->a), y = AS(operands, in->b); \
        AS(result, in->dst) = value;                               \
        break;                                                     \
    }
#include "backend/vm/scalars.def"
#undef SCALAR
        case VM_SELECT_32:
            AS(uint32_t, in->dst) = AS(uint32_t, AS(uint8_t, in->a) ? in->b : in->c);
            break;
        case VM_SELECT_64:
            AS(uint64_t, in->dst) = AS(uint64_t, AS(uint8_t, in->a) ? in->b : in->c);
            break;
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
            if (in->target != 0) look_ahead(g, in, AS(char *, in->a));
            load_lanes(c, g, in->size, entry[in->dst], AS(char *, in->a), in->imm);
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
            fault->at = x->pos, fault->at_thread = stuck, fault->at_block = f->block;
            fault->at_what = ir_op_table[x->op].name;
            return STOP_STUCK;
        }
        case VM_FENCE: __atomic_thread_fence(__ATOMIC_SEQ_CST); break;
        case VM_FAULT: record_fault(c, f, g, &c->faults[in->imm], fault); break;
        case VM_CALL: {
            const vm_call *x = &c->calls[in->imm];
            g->pc = (uint32_t)(in + 1 - insts);
            vm_stop stop = vm_enter(f, of, x, fault);
            if (stop != STOP_NOT) return stop;
            g = of->top, c = g->code, insts = c->insts, entry = g->entry;
            if ((*budget -= 1) <= 0) return stop_at_call(f, g, x->pos, fault);
            in = insts - 1;
            break;
        }
        case VM_RETURN:
            vm_leave(f, of, &c->calls[in->imm]);
            g = of->top, c = g->code, insts = c->insts, entry = g->entry;
            in = insts + g->pc - 1;
            break;
        case VM_JUMP: in = insts + in->target - 1; break;
        case VM_IF_SCALAR:
            if (AS(uint8_t, in->a) == 0) in = insts + in->target - 1;
            break;
        case VM_IF_NOT:
            if (AS(uint8_t, in->a) != 0) in = insts + in->target - 1;
            break;
        case VM_IF_VECTOR:
            vm_split(c, g, in, entry[in->a]);
            if (g->now.count == 0) in = insts + in->target - 1;
            break;
        case VM_IF_LINEAR:
            vm_split_linear(c, g, in);
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
            source_pos pos = vm_pos_of(in);
            int64_t cost = in->imm;
            in = insts + in->target - 1;
            if (spin ? --spins > 0 : (*budget -= cost) > 0) break;
            g->pc = (uint32_t)(in + 1 - insts);
            fault->at = pos, fault->at_what = "loop";
            vm_where(c, f, g, 0, &fault->at_block, &fault->at_thread);
            return spin ? STOP_SPIN : STOP_BUDGET;
        }
        case VM_FINISH: return STOP_DONE;
        default: __builtin_unreachable();
        }
    }
}
