/* Ranges of integers (range.h), in one pass in program order. A result that may wrap has the whole range of
 * its type, and so has what a loop carries or a construct results in. */
#include "kernel/range.h"

enum { MOST_BLOCK = 65536 }; /* threads of a block, in array kernels */

typedef struct search {
    const uint32_t *block;
    bool small_grid;
    facts_range *ranges;
} search;

static facts_range whole(ir_type t) { return (facts_range){ir_least(t), ir_most(t)}; }

static facts_range fitted(ir_type t, int64_t low, int64_t high) {
    return low >= ir_least(t) && high <= ir_most(t) ? (facts_range){low, high} : whole(t);
}

/* Of a parameter, carried value or result of a construct: what its type and `is_size` say. */
static facts_range of_value(const ir_value *v) {
    return v->is_size ? (facts_range){0, IR_MOST_SIZE} : whole(v->type);
}

static facts_range of_special(const search *s, uint64_t which) {
    const uint32_t *block = s->block;
    bool small_grid = s->small_grid;
    if (which == IR_LANEID) return (facts_range){0, IR_WARP_SIZE - 1};
    int64_t least = block != NULL ? block[which % 3] : 1,
            most = block != NULL ? block[which % 3] : MOST_BLOCK,
            grid = small_grid ? INT32_MAX / least : INT32_MAX;
    if (which >= IR_INDEX_X) return (facts_range){0, (small_grid ? INT32_MAX : grid * most) - 1};
    if (which <= IR_TID_Z) return (facts_range){0, most - 1};
    if (which <= IR_CTAID_Z) return (facts_range){0, grid - 1};
    if (which <= IR_NTID_Z) return (facts_range){least, most};
    return (facts_range){1, grid};
}

static facts_range of_product(ir_type t, facts_range a, facts_range b) {
    int64_t c[4], low, high;
    if (__builtin_mul_overflow(a.low, b.low, &c[0]) ||
        __builtin_mul_overflow(a.low, b.high, &c[1]) ||
        __builtin_mul_overflow(a.high, b.low, &c[2]) ||
        __builtin_mul_overflow(a.high, b.high, &c[3]))
        return whole(t);
    low = high = c[0];
    for (int i = 1; i < 4; i++) {
        low = c[i] < low ? c[i] : low;
        high = c[i] > high ? c[i] : high;
    }
    return fitted(t, low, high);
}

static facts_range of_result(const search *s, const ir_inst *in) {
    ir_type t = in->results->type, from = in->nargs > 0 ? in->args[0]->type : t;
    facts_range a = in->nargs > 0 ? s->ranges[in->args[0]->id] : (facts_range){0, 0},
                b = in->nargs > 1 ? s->ranges[in->args[1]->id] : (facts_range){0, 0};
    int64_t low, high;
    if (!ir_type_is_int(t) || t == IR_I1) return whole(t);
    switch (in->op) {
    case IR_CONST: low = ir_sign_extend(in->imm, ir_type_bits(t)); return (facts_range){low, low};
    case IR_SPECIAL: return of_special(s, in->imm);
    case IR_ADD:
        if (__builtin_add_overflow(a.low, b.low, &low) ||
            __builtin_add_overflow(a.high, b.high, &high))
            return whole(t);
        return fitted(t, low, high);
    case IR_SUB:
        if (__builtin_sub_overflow(a.low, b.high, &low) ||
            __builtin_sub_overflow(a.high, b.low, &high))
            return whole(t);
        return fitted(t, low, high);
    case IR_MUL: return of_product(t, a, b);
    case IR_MIN_S:
        return (facts_range){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
    case IR_MAX_S:
        return (facts_range){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    case IR_AND:
        if (a.low >= 0 && b.low >= 0) return (facts_range){0, a.high < b.high ? a.high : b.high};
        return a.low >= 0   ? (facts_range){0, a.high}
               : b.low >= 0 ? (facts_range){0, b.high}
                            : whole(t);
    case IR_REM_U:
    case IR_REM_S:
        if (b.low <= 0 || (in->op == IR_REM_U && a.low < 0)) return whole(t);
        return (facts_range){a.low >= 0 ? 0 : 1 - b.high, b.high - 1};
    case IR_DIV_U:
    case IR_DIV_S: return a.low >= 0 && b.low >= 0 ? (facts_range){0, a.high} : whole(t);
    case IR_SHR_U:
    case IR_SHR_S: return a.low >= 0 ? (facts_range){0, a.high} : whole(t);
    case IR_SEXT: return from == IR_I1 ? (facts_range){-1, 0} : a;
    case IR_ZEXT:
        if (from == IR_I1) return (facts_range){0, 1};
        if (a.low >= 0) return a;
        return ir_type_bits(t) > ir_type_bits(from) ? (facts_range){0, 2 * ir_most(from) + 1}
                                                    : whole(t);
    case IR_TRUNC: return a.low >= ir_least(t) && a.high <= ir_most(t) ? a : whole(t);
    default: return whole(t);
    }
}

static void visit(const search *s, const ir_region *r) {
    for (uint32_t i = 0; i < r->nparams; i++) s->ranges[r->params[i].id] = of_value(&r->params[i]);
    for (const ir_inst *in = r->first; in != NULL; in = in->next) {
        bool single = in->nresults == 1 && !ir_op_table[in->op].control;
        for (unsigned i = 0; i < in->nresults; i++)
            s->ranges[in->results[i].id] = single ? of_result(s, in) : of_value(&in->results[i]);
        for (int i = 0; i < 2 && in->regions[i] != NULL; i++) visit(s, in->regions[i]);
    }
}

facts_range *facts_find_ranges(const ir_func *f, const uint32_t block[3], bool small_grid,
                               arena *mem) {
    search s = {.block = block,
                .small_grid = small_grid,
                .ranges = ARENA_ARRAY(mem, facts_range, f->next_id + 1)};
    if (s.ranges != NULL) visit(&s, &f->body);
    return s.ranges;
}
