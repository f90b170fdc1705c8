/* Values thread by thread (threads.h), in one pass in program order: what constructs result in and loops
 * carry is not known. */
#include "ir/threads.h"

#include <string.h>

typedef struct walk {
    const uint32_t *block;
    uint32_t threads;
    arena *mem;
    ir_thread_value *values;
    bool failed; /* no memory */
} walk;

static ir_thread_value *value_at(const walk *w, const ir_value *v) { return &w->values[v->id]; }

static ir_thread_value new_value(walk *w, bool one, uint8_t zeros) {
    ir_thread_value v = {
        .of = ARENA_ARRAY(w->mem, uint64_t, one ? 1 : w->threads), .one = one, .zeros = zeros};
    w->failed |= v.of == NULL;
    return v;
}

static uint64_t cut(uint64_t bits, ir_type t) {
    unsigned width = ir_type_bits(t);
    return width < 64 ? bits & ((1ull << width) - 1) : bits;
}

static int64_t widened(uint64_t bits, ir_type t) {
    unsigned shift = 64 - ir_type_bits(t);
    return (int64_t)(bits << shift) >> shift;
}

static ir_thread_value shared(walk *w) {
    ir_thread_value v = new_value(w, true, 0);
    if (v.of != NULL) v.of[0] = 0;
    return v;
}

static uint64_t special_of(const walk *w, uint64_t which, uint32_t t) {
    uint32_t x = w->block[0], y = w->block[1];
    switch (which) {
    case IR_TID_X: return t % x;
    case IR_TID_Y: return t / x % y;
    case IR_TID_Z: return t / x / y;
    case IR_LANEID: return t % IR_WARP_SIZE;
    default: return w->block[which - IR_NTID_X];
    }
}

static ir_thread_value special(walk *w, uint64_t which) {
    bool of_block = which >= IR_NTID_X && which <= IR_NTID_Z;
    if (which >= IR_INDEX_X && which <= IR_INDEX_Z) return (ir_thread_value){0};
    if (which > IR_TID_Z && which != IR_LANEID && !of_block) return shared(w);
    ir_thread_value v = new_value(w, of_block, IR_NO_BASE);
    for (uint32_t t = 0; v.of != NULL && t < (of_block ? 1 : w->threads); t++)
        v.of[t] = special_of(w, which, t);
    return v;
}

/* All operands are whole. */
static ir_thread_value computed(walk *w, const ir_inst *in, const ir_thread_value *a,
                                const ir_thread_value *b) {
    ir_thread_value v = new_value(w, a->one && (b == NULL || b->one), IR_NO_BASE);
    for (uint32_t t = 0; v.of != NULL && t < (v.one ? 1 : w->threads); t++) {
        uint64_t bits;
        if (!ir_evaluate_integer(in->op, in->args[0]->type, ir_thread_has(a, t),
                                 b != NULL ? ir_thread_has(b, t) : 0, &bits))
            return (ir_thread_value){0};
        v.of[t] = cut(bits, in->results[0].type);
    }
    return v;
}

static ir_thread_value chosen(walk *w, const ir_inst *in) {
    const ir_thread_value *c = value_at(w, in->args[0]), *yes = value_at(w, in->args[1]),
                          *no = value_at(w, in->args[2]);
    if (!ir_thread_value_is_whole(c) || !ir_thread_value_is_whole(yes) ||
        !ir_thread_value_is_whole(no))
        return (ir_thread_value){0};
    ir_thread_value v = new_value(w, c->one && yes->one && no->one, IR_NO_BASE);
    for (uint32_t t = 0; v.of != NULL && t < (v.one ? 1 : w->threads); t++)
        v.of[t] = ir_thread_has(ir_thread_has(c, t) ? yes : no, t);
    return v;
}

/* ---- with a base ---- */

static uint8_t fewer(uint8_t a, uint8_t b) { return a < b ? a : b; }

static ir_thread_value sum(walk *w, const ir_inst *in, const ir_thread_value *a,
                           const ir_thread_value *b) {
    ir_thread_value v = new_value(w, a->one && b->one, fewer(a->zeros, b->zeros));
    ir_type type = in->results[0].type;
    for (uint32_t t = 0; v.of != NULL && t < (v.one ? 1 : w->threads); t++) {
        uint64_t x = ir_thread_has(a, t), y = ir_thread_has(b, t);
        v.of[t] = (uint64_t)widened(in->op == IR_SUB ? x - y : x + y, type);
    }
    return v;
}

static ir_thread_value product(walk *w, const ir_thread_value *a, int64_t factor) {
    if (factor == 0) return (ir_thread_value){0};
    unsigned zeros = a->zeros + (unsigned)__builtin_ctzll((uint64_t)factor);
    ir_thread_value v = new_value(w, a->one, (uint8_t)(zeros < 63 ? zeros : 63));
    for (uint32_t t = 0; v.of != NULL && t < (v.one ? 1 : w->threads); t++)
        v.of[t] = ir_thread_has(a, t) * (uint64_t)factor;
    return v;
}

/* The base is a multiple of what is shifted out. */
static ir_thread_value quotient(walk *w, const ir_thread_value *a, uint64_t shift) {
    if (shift > a->zeros) return (ir_thread_value){0};
    ir_thread_value v = new_value(w, a->one, (uint8_t)(a->zeros - shift));
    for (uint32_t t = 0; v.of != NULL && t < (v.one ? 1 : w->threads); t++)
        v.of[t] = (uint64_t)((int64_t)ir_thread_has(a, t) >> shift);
    return v;
}

static ir_thread_value remainder_of(walk *w, const ir_thread_value *a, uint64_t mask) {
    if ((mask & (mask + 1)) != 0 || mask >> a->zeros != 0) return (ir_thread_value){0};
    ir_thread_value v = new_value(w, a->one, IR_NO_BASE);
    for (uint32_t t = 0; v.of != NULL && t < (v.one ? 1 : w->threads); t++)
        v.of[t] = ir_thread_has(a, t) & mask;
    return v;
}

static ir_thread_value based(walk *w, const ir_inst *in, const ir_thread_value *a,
                             const ir_thread_value *b) {
    if (b == NULL) {
        bool widens = in->op == IR_SEXT || in->op == IR_ZEXT || in->op == IR_TRUNC;
        return widens && in->results[0].type != IR_I1 ? *a : (ir_thread_value){0};
    }
    if (in->op == IR_ADD || in->op == IR_SUB) return sum(w, in, a, b);
    if (in->op == IR_MUL && ir_thread_value_is_whole(a)) {
        const ir_thread_value *swap = a;
        a = b, b = swap;
    }
    if (!ir_thread_value_is_whole(b) || !b->one) return (ir_thread_value){0};
    switch (in->op) {
    case IR_MUL: return product(w, a, widened(b->of[0], in->args[0]->type));
    case IR_SHL: return b->of[0] < 32 ? product(w, a, 1ll << b->of[0]) : (ir_thread_value){0};
    case IR_SHR_S:
    case IR_SHR_U: return quotient(w, a, b->of[0]);
    case IR_AND: return remainder_of(w, a, b->of[0]);
    default: return (ir_thread_value){0};
    }
}

/* ---- the walk ---- */

static ir_thread_value value_of(walk *w, const ir_inst *in) {
    const ir_thread_value none = {0}, *x[2] = {NULL, NULL};
    ir_type t = in->results[0].type;
    bool all = true, one = true, whole = true;
    if (in->op == IR_SPECIAL) return special(w, in->imm);
    if (in->op == IR_CONST) {
        ir_thread_value v = new_value(w, true, IR_NO_BASE);
        if (v.of != NULL) v.of[0] = in->imm;
        return v;
    }
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_thread_value *a = value_at(w, in->args[i]);
        all &= a->of != NULL;
        one &= a->of != NULL && a->one;
        whole &= ir_thread_value_is_whole(a);
        if (i < 2) x[i] = a;
    }
    if (!ir_op_table[in->op].pure || in->nargs == 0 || !all) return none;
    ir_thread_value v = in->op == IR_SELECT ? chosen(w, in)
                        : in->nargs > 2     ? none
                        : whole             ? computed(w, in, x[0], x[1])
                                            : based(w, in, x[0], x[1]);
    return v.of == NULL && one && t != IR_I1 ? shared(w) : v;
}

static void visit(walk *w, const ir_region *r) {
    for (const ir_inst *in = r->first; in != NULL && !w->failed; in = in->next) {
        bool single = in->nresults == 1 && !ir_op_table[in->op].control;
        if (single && ir_type_is_int(in->results[0].type))
            *value_at(w, &in->results[0]) = value_of(w, in);
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++) visit(w, in->regions[i]);
    }
}

simt_status ir_find_thread_values(const ir_func *f, const uint32_t block[3], arena *mem,
                                  ir_thread_value **out) {
    walk w = {.block = block,
              .threads = block[0] * block[1] * block[2],
              .mem = mem,
              .values = ARENA_ARRAY(mem, ir_thread_value, f->next_id + 1)};
    w.failed = w.values == NULL;
    for (uint32_t i = 0; i < f->body.nparams && !w.failed; i++)
        if (ir_type_is_int(f->body.params[i].type)) w.values[f->body.params[i].id] = shared(&w);
    if (!w.failed) visit(&w, &f->body);
    *out = w.values;
    return w.failed
               ? status_fail(SIMT_ERR_MEMORY, "out of memory while analysing kernel '%s'", f->name)
               : SIMT_OK;
}
