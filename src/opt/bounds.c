/* Compares that always come out the same way because of the ifs and loops around them: bounds checks.
 *
 * In and out: any valid function. Facts are inequalities a <= b + c between values, read as signed integers;
 * the conditions of the ifs around a place hold there, and so do ranges (kernel/range.h). A compare is proved
 * by a path of facts from one side to the other (ABCD: Bodik, Gupta, Sarkar, PLDI 2000), where arithmetic
 * that could wrap is proved not to. A value that a loop carries is assumed not to fall below (not to rise
 * above) its initial value; the assumption is dropped where some `continue` does not keep it, until what
 * is left stands. Then compares, and minima and maxima, that are decided become what they are.
 */
#include "kernel/range.h"
#include "opt/walk.h"

#include <string.h>

typedef __int128 wide; /* sums of bounds */

typedef struct fact { /* a <= b + c; no value: 0 */
    const ir_value *a, *b;
    wide c;
    uint32_t before_a, before_b; /* number + 1 of the fact before with this a, with this b */
} fact;

enum { FALLS = 1, RISES = 2 }; /* what a carried value was seen to do, beyond its initial value */
enum {
    DEPTH = 6,
    FUEL = 300,
    ROUNDS = 8,
    MOST_FACTS = 200 /* of one value that a step looks at */
};

typedef struct proving {
    arena *mem;
    const facts_range *ranges; /* by id */
    uint8_t *carried;          /* by id: FALLS, RISES */
    fact *facts;               /* of the place that is looked at */
    uint32_t nfacts, capacity;
    uint32_t *last_a, *last_b; /* by id, that of 0 the last: the latest fact + 1 */
    uint32_t zero;             /* the id that stands for 0 */
    int fuel;
    bool changed, decides;
} proving;

typedef struct term { /* root + k; no root: 0 */
    const ir_value *root;
    wide k;
} term;

/* ---- proofs ---- */

static facts_range range_of(const proving *p, const ir_value *v) {
    return v == NULL ? (facts_range){0, 0} : p->ranges[v->id];
}

static uint32_t id_of(const proving *p, const ir_value *v) { return v == NULL ? p->zero : v->id; }

static bool prove(proving *p, const ir_value *a, const ir_value *b, wide c, int depth);

/* low <= x + y <= high for sums in the type of v */
static bool sum_stays(proving *p, const ir_value *v, const ir_value *x, facts_range y, int depth) {
    return prove(p, x, NULL, (wide)ir_most(v->type) - y.high, depth) &&
           prove(p, NULL, x, (wide)y.low - ir_least(v->type), depth);
}

/* v is x + y where that does not wrap: y's range. */
static bool split_sum(proving *p, const ir_value *v, int which, const ir_value **x, facts_range *y,
                      int depth) {
    const ir_inst *in = v != NULL ? v->inst : NULL;
    if (in == NULL || (in->op != IR_ADD && in->op != IR_SUB)) return false;
    if (in->op == IR_SUB && which == 1) return false;
    *x = in->args[which];
    *y = range_of(p, in->args[1 - which]);
    if (in->op == IR_SUB) {
        if (y->low == INT64_MIN) return false; /* its negative has no type */
        *y = (facts_range){-y->high, -y->low};
    }
    return sum_stays(p, v, *x, *y, depth);
}

/* v <= other + c, or, where v is `above`, other <= v + c */
static bool prove_side(proving *p, const ir_value *v, bool above, const ir_value *other, wide c,
                       int depth) {
    return above ? prove(p, other, v, c, depth) : prove(p, v, other, c, depth);
}

/* The same by how v is made. */
static bool prove_by(proving *p, const ir_value *v, bool above, const ir_value *other, wide c,
                     int depth) {
    const ir_inst *in = v != NULL ? v->inst : NULL;
    if (in == NULL) return false;
    ir_value **x = in->args;
    switch (in->op) {
    case IR_SEXT:
    case IR_ZEXT:
        return x[0]->type != IR_I1 && (in->op == IR_SEXT || prove(p, NULL, x[0], 0, depth)) &&
               prove_side(p, x[0], above, other, c, depth);
    case IR_MIN_S:
    case IR_MAX_S:
    case IR_SELECT: { /* one of the two is enough, or both are needed */
        bool enough = in->op == (above ? IR_MAX_S : IR_MIN_S);
        ir_value **of = in->op == IR_SELECT ? x + 1 : x;
        if (prove_side(p, of[0], above, other, c, depth) == enough) return enough;
        return prove_side(p, of[1], above, other, c, depth);
    }
    case IR_REM_S:
        if (above) /* of a dividend that is not negative: nor is the remainder */
            return prove(p, NULL, x[0], 0, depth) && prove(p, other, NULL, c, depth);
        /* below a divisor that is positive */
        return prove(p, NULL, x[1], -1, depth) && prove(p, x[1], other, c + 1, depth);
    case IR_ADD:
    case IR_SUB:
        for (int i = 0; i < 2; i++) {
            const ir_value *rest;
            facts_range y;
            if (!split_sum(p, v, i, &rest, &y, depth)) continue;
            wide k = above ? c + y.low : c - y.high;
            if (prove_side(p, rest, above, other, k, depth)) return true;
        }
        return false;
    default: return false;
    }
}

/* a <= b + c */
static bool prove(proving *p, const ir_value *a, const ir_value *b, wide c, int depth) {
    if (a == b) return c >= 0;
    facts_range x = range_of(p, a), y = range_of(p, b);
    if (x.high - (wide)y.low <= c) return true;
    if (x.low - (wide)y.high > c || depth == 0 || --p->fuel < 0) return false;
    depth--;
    int left = MOST_FACTS;
    for (uint32_t i = p->last_a[id_of(p, a)]; i > 0 && p->fuel >= 0 && left-- > 0;
         i = p->facts[i - 1].before_a)
        if (prove(p, p->facts[i - 1].b, b, c - p->facts[i - 1].c, depth)) return true;
    left = a == NULL ? MOST_FACTS : 0;
    for (uint32_t i = p->last_b[id_of(p, b)]; i > 0 && p->fuel >= 0 && left-- > 0;
         i = p->facts[i - 1].before_b)
        if (prove(p, NULL, p->facts[i - 1].a, c - p->facts[i - 1].c, depth)) return true;
    if (a != NULL && b != NULL && prove(p, NULL, b, c - x.high, depth)) return true;
    return prove_by(p, a, false, b, c, depth) || prove_by(p, b, true, a, c, depth);
}

/* ---- terms: constants taken apart from what they are added to ---- */

static bool term_below(proving *p, term a, term b, wide c) {
    p->fuel = FUEL;
    return prove(p, a.root, b.root, c + b.k - a.k, DEPTH);
}

static term term_of(proving *p, const ir_value *v) {
    const ir_inst *in = v->inst;
    const ir_value *x;
    facts_range y = range_of(p, v);
    if (y.low == y.high) return (term){NULL, y.low};
    p->fuel = FUEL;
    if (in != NULL && in->op == IR_SEXT && in->args[0]->type != IR_I1)
        return term_of(p, in->args[0]);
    for (int i = 0; i < 2; i++) {
        bool constant =
            in != NULL && (in->op == IR_ADD || in->op == IR_SUB) && opt_is_const(in->args[1 - i]);
        if (!constant || !split_sum(p, v, i, &x, &y, DEPTH)) continue;
        term t = term_of(p, x);
        return (term){t.root, t.k + y.low};
    }
    return (term){v, 0};
}

static const term zero = {NULL, 0};

/* ---- outcomes ---- */

static bool is_compare(const ir_inst *in) {
    return ir_op_group(in->op) == IR_IN_COMPARE && in->args[0]->type != IR_I1;
}

/* Of a compare: 1, 0, or -1: not known. */
static int outcome_of(proving *p, const ir_inst *in) {
    term a = term_of(p, in->args[0]), b = term_of(p, in->args[1]);
    bool equality = in->op == IR_EQ || in->op == IR_NE;
    if (equality) {
        bool apart = term_below(p, a, b, -1) || term_below(p, b, a, -1);
        if (apart) return in->op == IR_NE;
        bool same = term_below(p, a, b, 0) && term_below(p, b, a, 0);
        return same ? in->op == IR_EQ : -1;
    }
    if (in->op == IR_LT_U || in->op == IR_LE_U) {
        bool a_counts = term_below(p, zero, a, 0), b_counts = term_below(p, zero, b, 0);
        if (a_counts != b_counts) { /* what is negative is 2**63 or more */
            const term *other = a_counts ? &b : &a;
            return term_below(p, *other, zero, -1) ? a_counts : -1;
        }
        if (!a_counts) return -1;
    }
    int strict = in->op == IR_LT_S || in->op == IR_LT_U ? -1 : 0;
    if (term_below(p, a, b, strict)) return 1;
    return term_below(p, b, a, -1 - strict) ? 0 : -1;
}

/* Of a condition. */
static int known_of(proving *p, const ir_value *v) {
    const ir_inst *in = v->inst;
    if (in == NULL) return -1;
    if (in->op == IR_CONST) return in->imm != 0;
    if (in->op == IR_AND || in->op == IR_OR) {
        int decisive = in->op == IR_OR, a = known_of(p, in->args[0]), b = known_of(p, in->args[1]);
        if (a == decisive || b == decisive) return decisive;
        return a < 0 || b < 0 ? -1 : !decisive;
    }
    return is_compare(in) ? outcome_of(p, in) : -1;
}

/* ---- facts ---- */

static void add_fact(proving *p, term a, term b, wide c) { /* a <= b + c */
    c += b.k - a.k;
    if (a.root == b.root) return;
    if (p->nfacts == p->capacity) {
        uint32_t capacity = p->capacity * 2 + 64;
        fact *grown = ARENA_ARRAY(p->mem, fact, capacity);
        for (uint32_t i = 0; i < p->nfacts; i++) grown[i] = p->facts[i];
        p->facts = grown;
        p->capacity = capacity;
    }
    uint32_t *last_a = &p->last_a[id_of(p, a.root)], *last_b = &p->last_b[id_of(p, b.root)];
    p->facts[p->nfacts++] = (fact){a.root, b.root, c, *last_a, *last_b};
    *last_a = *last_b = p->nfacts;
}

/* Those after the first `count` do not hold any more. */
static void drop_facts(proving *p, uint32_t count) {
    while (p->nfacts > count) {
        const fact *f = &p->facts[--p->nfacts];
        p->last_a[id_of(p, f->a)] = f->before_a;
        p->last_b[id_of(p, f->b)] = f->before_b;
    }
}

/* The condition holds, or does not, in what follows. */
static void assume(proving *p, const ir_value *condition, bool holds) {
    const ir_inst *in = condition->inst;
    if (in == NULL) return;
    if (in->op == IR_NOT) assume(p, in->args[0], !holds);
    if (in->op == (holds ? IR_AND : IR_OR)) {
        assume(p, in->args[0], holds);
        assume(p, in->args[1], holds);
    } else if (in->op == IR_AND || in->op == IR_OR) { /* one side, where it is not the other */
        for (int i = 0; i < 2; i++)
            if (known_of(p, in->args[i]) == !holds) assume(p, in->args[1 - i], holds);
    }
    if (!is_compare(in)) return;
    term a = term_of(p, in->args[0]), b = term_of(p, in->args[1]);
    switch (in->op) {
    case IR_EQ:
    case IR_NE:
        if (holds != (in->op == IR_EQ)) return;
        add_fact(p, a, b, 0);
        add_fact(p, b, a, 0);
        return;
    case IR_LT_U:
    case IR_LE_U: /* the side above is below 2**63: so is the other, and neither is negative */
        if (!term_below(p, zero, holds ? b : a, 0)) return;
        add_fact(p, zero, holds ? a : b, 0);
        break;
    default: break;
    }
    bool strict = in->op == IR_LT_S || in->op == IR_LT_U;
    if (holds)
        add_fact(p, a, b, strict ? -1 : 0);
    else
        add_fact(p, b, a, strict ? 0 : -1);
}

/* ---- decisions ---- */

static void decide(proving *p, ir_inst *in) {
    if (is_compare(in)) {
        int outcome = outcome_of(p, in);
        if (outcome >= 0) opt_become_const(in, (uint64_t)outcome);
    } else if (in->op == IR_SELECT && opt_is_const(in->args[0])) {
        /* fold would do it, but what comes below is proved by the side that was chosen */
        opt_forward(in->results, in->args[in->args[0]->inst->imm != 0 ? 1 : 2]);
        ir_inst_remove(in);
    } else if (in->op == IR_MIN_S || in->op == IR_MAX_S) {
        term a = term_of(p, in->args[0]), b = term_of(p, in->args[1]);
        bool below = term_below(p, a, b, 0), above = !below && term_below(p, b, a, 0);
        if (below || above) {
            opt_forward(in->results, in->args[below == (in->op == IR_MIN_S) ? 0 : 1]);
            ir_inst_remove(in);
        }
    }
}

/* ---- the walk ---- */

static void visit(proving *p, ir_region *region);

static bool goes_on(const ir_region *region, const ir_inst *construct) {
    for (const ir_inst *in = region->first; in != NULL; in = in->next) {
        if (in->op == IR_BR && in->label == construct) return true;
        for (int r = 0; r < 2 && in->regions[r] != NULL; r++)
            if (goes_on(in->regions[r], construct)) return true;
    }
    return false;
}

static void visit_if(proving *p, ir_inst *in) {
    const ir_value *condition = in->args[0];
    for (int r = 0; r < 2; r++) {
        uint32_t before = p->nfacts;
        assume(p, condition, r == 0);
        visit(p, in->regions[r]);
        drop_facts(p, before);
    }
    for (int r = 0; r < 2; r++)
        if (!goes_on(in->regions[r], in)) assume(p, condition, r == 1);
}

static void visit_loop(proving *p, ir_inst *in) {
    uint32_t before = p->nfacts;
    ir_region *body = in->regions[0];
    for (uint32_t i = 0; i < body->nparams; i++) {
        const ir_value *v = &body->params[i];
        if (!ir_type_is_int(v->type) || v->type == IR_I1) continue;
        term first = term_of(p, in->args[i]), now = {v, 0};
        if (!(p->carried[v->id] & FALLS)) add_fact(p, first, now, 0);
        if (!(p->carried[v->id] & RISES)) add_fact(p, now, first, 0);
    }
    visit(p, body);
    drop_facts(p, before);
}

static void visit_continue(proving *p, const ir_inst *in) {
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *v = &in->label->regions[0]->params[i];
        if (!ir_type_is_int(v->type) || v->type == IR_I1) continue;
        term first = term_of(p, in->label->args[i]), next = term_of(p, in->args[i]);
        uint8_t seen = p->carried[v->id];
        if (!(seen & FALLS) && !term_below(p, first, next, 0)) seen |= FALLS;
        if (!(seen & RISES) && !term_below(p, next, first, 0)) seen |= RISES;
        if (seen != p->carried[v->id]) p->changed = true;
        p->carried[v->id] = seen;
    }
}

static void visit(proving *p, ir_region *region) {
    uint32_t before = p->nfacts;
    for (ir_inst *in = region->first, *next; in != NULL; in = next) {
        next = in->next;
        if (p->decides) opt_resolve_args(in);
        switch (in->op) {
        case IR_IF: visit_if(p, in); break;
        case IR_LOOP: visit_loop(p, in); break;
        case IR_BLOCK: visit(p, in->regions[0]); break;
        case IR_CONTINUE:
            if (!p->decides) visit_continue(p, in);
            break;
        default:
            if (p->decides) decide(p, in);
        }
    }
    drop_facts(p, before);
}

void opt_bounds(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    opt_clear_notes(f);
    ir_func_renumber(f);
    proving p = {.mem = mem,
                 .ranges = facts_find_ranges(f, NULL, false, mem),
                 .carried = ARENA_ARRAY(mem, uint8_t, f->next_id + 1),
                 .last_a = ARENA_ARRAY(mem, uint32_t, f->next_id + 1),
                 .last_b = ARENA_ARRAY(mem, uint32_t, f->next_id + 1),
                 .zero = f->next_id,
                 .changed = true};
    bool any = false;
    for (const ir_inst *in = f->body.first; in != NULL; in = in->next)
        any |= in->regions[0] != NULL;
    for (int round = 0; any && p.changed; round++) {
        p.changed = false;
        if (round < ROUNDS)
            visit(&p, &f->body);
        else
            memset(p.carried, FALLS | RISES, f->next_id);
    }
    p.decides = true;
    if (any) visit(&p, &f->body);
}
