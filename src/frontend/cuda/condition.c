/* What stands behind #if. */
#include "frontend/cuda/work.h"

typedef struct condition {
    const cuda_unit *u;
    const cu_token *items;
    uint32_t at, count, depth;
    cu_token place;
} condition;

static int64_t conditional(condition *c);

static bool takes(condition *c, uint32_t punct) {
    bool is = c->at < c->count && cu_is(&c->items[c->at], punct);
    c->at += is;
    return is;
}

static int64_t primary(condition *c) {
    if (++c->depth > CU_MOST_DEPTH) cu_fail(c->u, &c->place, "#if: nested too deep");
    int64_t value = 0;
    if (takes(c, '-'))
        value = (int64_t)(0 - (uint64_t)primary(c));
    else if (takes(c, '+'))
        value = primary(c);
    else if (takes(c, '~'))
        value = ~primary(c);
    else if (takes(c, '!'))
        value = !primary(c);
    else if (takes(c, '(')) {
        value = conditional(c);
        if (!takes(c, ')')) cu_fail(c->u, &c->place, "#if: ) is missing");
    } else {
        const cu_token *t = c->at < c->count ? &c->items[c->at++] : &c->place;
        uint64_t bits = 0;
        int type;
        if (t->kind == TK_CHAR)
            bits = (uint64_t)cu_read_char(c->u, t);
        else if (t->kind == TK_NAME)
            bits = t->name->keyword == KW_TRUE;
        else if (t->kind != TK_NUMBER || !cu_read_integer(c->u, t, &bits, &type))
            cu_fail(c->u, &c->place, "#if: an integer is expected");
        value = (int64_t)bits;
    }
    c->depth--;
    return value;
}

static const struct {
    uint32_t punct;
    int level;
} if_operators[] = {{CU_P2('|', '|'), 1},
                    {CU_P2('&', '&'), 2},
                    {'|', 3},
                    {'^', 4},
                    {'&', 5},
                    {CU_P2('=', '='), 6},
                    {CU_P2('!', '='), 6},
                    {'<', 7},
                    {'>', 7},
                    {CU_P2('<', '='), 7},
                    {CU_P2('>', '='), 7},
                    {CU_P2('<', '<'), 8},
                    {CU_P2('>', '>'), 8},
                    {'+', 9},
                    {'-', 9},
                    {'*', 10},
                    {'/', 10},
                    {'%', 10}};

static int64_t apply(condition *c, uint32_t punct, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (punct) {
    case CU_P2('|', '|'): return a || b;
    case CU_P2('&', '&'): return a && b;
    case '|': return a | b;
    case '^': return a ^ b;
    case '&': return a & b;
    case CU_P2('=', '='): return a == b;
    case CU_P2('!', '='): return a != b;
    case '<': return a < b;
    case '>': return a > b;
    case CU_P2('<', '='): return a <= b;
    case CU_P2('>', '='): return a >= b;
    case CU_P2('<', '<'): return y < 64 ? (int64_t)(x << y) : 0;
    case CU_P2('>', '>'): return y < 63 ? a >> y : a < 0 ? -1 : 0;
    case '+': return (int64_t)(x + y);
    case '-': return (int64_t)(x - y);
    case '*': return (int64_t)(x * y);
    default: break;
    }
    if (b == 0) return 0; /* on a way that is not taken it is fine */
    if (b == -1) return punct == '/' ? (int64_t)(0 - x) : 0;
    return punct == '/' ? a / b : a % b;
}

static int64_t binary(condition *c, int level) {
    int64_t value = primary(c);
    for (;;) {
        size_t i = 0, n = sizeof if_operators / sizeof *if_operators;
        while (i < n && !(c->at < c->count && cu_is(&c->items[c->at], if_operators[i].punct))) i++;
        if (i == n || if_operators[i].level < level) return value;
        c->at++;
        value = apply(c, if_operators[i].punct, value, binary(c, if_operators[i].level + 1));
    }
}

static int64_t conditional(condition *c) {
    int64_t value = binary(c, 1);
    if (!takes(c, '?')) return value;
    int64_t yes = conditional(c);
    if (!takes(c, ':')) cu_fail(c->u, &c->place, "#if: : is missing behind ?");
    int64_t no = conditional(c);
    return value ? yes : no;
}

bool cu_condition(const cuda_unit *u, const cu_tokens *of, const cu_token *at) {
    condition c = {.u = u, .items = of->items, .count = of->count, .place = *at};
    bool yes = conditional(&c) != 0;
    if (c.at != c.count) cu_fail(u, at, "#if: an operator is expected");
    return yes;
}
