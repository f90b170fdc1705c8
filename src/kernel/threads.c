/* Values thread by thread (threads.h), in one pass in program order: what constructs result in and loops
 * carry is not known. A value's numbers go when all that is made of it is known, so that a long computation
 * takes as much memory as it has values at a time. */
#include "kernel/threads.h"

#include <string.h>

enum { STAYS = UINT32_MAX };

typedef struct spare { /* lies in numbers that nobody needs any more */
    struct spare *next;
} spare;

typedef struct walk {
    const uint32_t *block;
    uint32_t threads;
    arena *mem;
    facts_thread_value *values;
    uint32_t *uses; /* by value id: of those to come; STAYS */
    spare *spares;
    bool failed; /* no memory */
} walk;

static facts_thread_value *value_at(const walk *w, const ir_value *v) { return &w->values[v->id]; }

static facts_thread_value new_value(walk *w, bool one, uint8_t zeros) {
    facts_thread_value v = {.one = one, .zeros = zeros};
    if (!one && w->spares != NULL) {
        v.of = (uint64_t *)w->spares;
        w->spares = w->spares->next;
    } else {
        v.of = ARENA_ARRAY(w->mem, uint64_t, one ? 1 : w->threads);
    }
    w->failed |= v.of == NULL;
    return v;
}

static void drop_value(walk *w, facts_thread_value *v) {
    if (v->of != NULL && !v->one) {
        spare *s = (spare *)v->of;
        s->next = w->spares;
        w->spares = s;
        v->of = NULL;
    }
}

static facts_thread_value shared(walk *w) {
    facts_thread_value v = new_value(w, true, 0);
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

static facts_thread_value special(walk *w, uint64_t which) {
    bool of_block = which >= IR_NTID_X && which <= IR_NTID_Z;
    if (which >= IR_INDEX_X && which <= IR_INDEX_Z) return (facts_thread_value){0};
    if (which > IR_TID_Z && which != IR_LANEID && !of_block) return shared(w);
    facts_thread_value v = new_value(w, of_block, FACTS_NO_BASE);
    for (uint32_t t = 0; v.of != NULL && t < (of_block ? 1 : w->threads); t++)
        v.of[t] = special_of(w, which, t);
    return v;
}

/* ---- operations ---- */

/* Zeros of the result's base where the operation works on the base and on what threads have of their own
 * apart; -1: it does not. Not both operands are whole. */
static int zeros_of_result(const ir_inst *in, const facts_thread_value *a,
                           const facts_thread_value *b) {
    enum { MOST = FACTS_NO_BASE - 1 };
    if (b == NULL) {
        bool resizes = in->op == IR_SEXT || in->op == IR_ZEXT || in->op == IR_TRUNC;
        return resizes && in->results[0].type != IR_I1 ? a->zeros : -1;
    }
    if (in->op == IR_ADD || in->op == IR_SUB) return a->zeros < b->zeros ? a->zeros : b->zeros;
    if (in->op == IR_MUL && facts_thread_value_is_whole(a)) {
        const facts_thread_value *swap = a;
        a = b, b = swap;
    }
    if (!facts_thread_value_is_whole(b) || !b->one) return -1;
    uint64_t k = b->of[0];
    switch (in->op) {
    case IR_MUL:
        if (k == 0) return -1;
        k = (uint64_t)__builtin_ctzll(k); /* fallthrough */
    case IR_SHL: return k >= 32 ? -1 : a->zeros + k < MOST ? a->zeros + (int)k : MOST;
    case IR_SHR_S:
    case IR_SHR_U: return k <= a->zeros ? a->zeros - (int)k : -1;
    case IR_AND: return (k & (k + 1)) == 0 && k >> a->zeros == 0 ? FACTS_NO_BASE : -1;
    default: return -1;
    }
}

/* With a base, what threads have of their own is signed, also in an unsigned shift. */
static bool evaluate(const ir_inst *in, const facts_thread_value *const x[3], uint32_t t,
                     bool based, uint64_t *out) {
    uint64_t a = facts_thread_has(x[0], t), b = x[1] != NULL ? facts_thread_has(x[1], t) : 0;
    ir_op op = based && in->op == IR_SHR_U ? IR_SHR_S : in->op;
    if (op != IR_SELECT) return ir_evaluate_integer(op, in->args[0]->type, a, b, out);
    *out = a ? b : facts_thread_has(x[2], t);
    return true;
}

static facts_thread_value computed(walk *w, const ir_inst *in) {
    const facts_thread_value none = {0}, *x[3] = {NULL, NULL, NULL};
    ir_type type = in->results[0].type;
    bool one = true, whole = true;
    if (!ir_op_table[in->op].pure || in->nargs == 0 || in->nargs > 3) return none;
    for (unsigned i = 0; i < in->nargs; i++) {
        x[i] = value_at(w, in->args[i]);
        if (x[i]->of == NULL) return none;
        one &= x[i]->one;
        whole &= facts_thread_value_is_whole(x[i]);
    }
    const facts_thread_value unknown = one && type != IR_I1 ? shared(w) : none;
    int zeros = whole ? FACTS_NO_BASE : in->nargs < 3 ? zeros_of_result(in, x[0], x[1]) : -1;
    if (zeros < 0) return unknown;
    facts_thread_value v = new_value(w, one, (uint8_t)zeros);
    for (uint32_t t = 0; v.of != NULL && t < (one ? 1 : w->threads); t++) {
        uint64_t bits;
        if (!evaluate(in, x, t, !whole, &bits)) {
            drop_value(w, &v);
            return unknown;
        }
        v.of[t] = zeros == FACTS_NO_BASE ? ir_cut_bits(bits, type)
                                         : (uint64_t)ir_sign_extend(bits, ir_type_bits(type));
    }
    return v;
}

/* ---- the walk ---- */

static bool is_found(const ir_inst *in) {
    return in->nresults == 1 && !ir_op_table[in->op].control && ir_type_is_int(in->results[0].type);
}

static void count_uses(walk *w, const ir_region *r) {
    for (const ir_inst *in = r->first; in != NULL; in = in->next) {
        bool works = is_found(in) && ir_op_table[in->op].pure;
        for (unsigned i = 0; i < in->nargs; i++) {
            uint32_t *uses = &w->uses[in->args[i]->id];
            *uses = !works ? STAYS : *uses != STAYS ? *uses + 1 : STAYS;
        }
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++) count_uses(w, in->regions[i]);
    }
}

/* Its operands have been used once more. What is known of them says more than of a result that is not. */
static void used(walk *w, const ir_inst *in) {
    if (!ir_op_table[in->op].pure) return;
    bool known = value_at(w, &in->results[0])->of != NULL || !w->uses[in->results[0].id];
    for (unsigned i = 0; i < in->nargs; i++) {
        uint32_t *uses = &w->uses[in->args[i]->id];
        if (!known) *uses = STAYS;
        if (*uses != STAYS && --*uses == 0) drop_value(w, value_at(w, in->args[i]));
    }
}

static facts_thread_value value_of(walk *w, const ir_inst *in) {
    if (in->op == IR_SPECIAL) return special(w, in->imm);
    if (in->op != IR_CONST) return computed(w, in);
    facts_thread_value v = new_value(w, true, FACTS_NO_BASE);
    if (v.of != NULL) v.of[0] = in->imm;
    return v;
}

static void visit(walk *w, const ir_region *r) {
    for (const ir_inst *in = r->first; in != NULL && !w->failed; in = in->next) {
        if (is_found(in)) {
            if (w->uses[in->results[0].id]) *value_at(w, &in->results[0]) = value_of(w, in);
            used(w, in);
        }
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++) visit(w, in->regions[i]);
    }
}

simt_status facts_find_thread_values(const ir_func *f, const uint32_t block[3], arena *mem,
                                     facts_thread_value **out) {
    walk w = {.block = block,
              .threads = block[0] * block[1] * block[2],
              .mem = mem,
              .values = ARENA_ARRAY(mem, facts_thread_value, f->next_id + 1),
              .uses = ARENA_ARRAY(mem, uint32_t, f->next_id + 1)};
    w.failed = w.values == NULL || w.uses == NULL;
    if (!w.failed) count_uses(&w, &f->body);
    for (uint32_t i = 0; i < f->body.nparams && f->unit == NULL && !w.failed; i++)
        if (ir_type_is_int(f->body.params[i].type)) w.values[f->body.params[i].id] = shared(&w);
    if (!w.failed) visit(&w, &f->body);
    *out = w.values;
    return w.failed
               ? status_fail(SIMT_ERR_MEMORY, "out of memory while analysing kernel '%s'", f->name)
               : SIMT_OK;
}
