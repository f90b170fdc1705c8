/* Conversions as C has them, and what is known while parsing. */
#include "frontend/cuda/tree.h"

#include <string.h>

cu_expr *cu_new_expr(cuda_unit *u, cu_expr_kind kind, const cu_token *at, const cu_type *type) {
    cu_expr *e = CU_NEW(u, cu_expr);
    e->kind = kind;
    e->at = at;
    e->type = type;
    return e;
}

/* The bits that a value of the type has: integers are kept extended as the type is signed. */
static uint64_t cut(const cu_type *t, uint64_t bits) {
    if (t->kind == CU_BOOL) return bits != 0;
    if (!cu_is_integer(t) || t->size == 8) return bits;
    unsigned width = (unsigned)t->size * 8;
    return cu_is_unsigned(t) ? bits & ~0ull >> (64 - width) : (uint64_t)ir_sign_extend(bits, width);
}

cu_expr *cu_constant(cuda_unit *u, const cu_token *at, const cu_type *type, uint64_t bits) {
    cu_expr *e = cu_new_expr(u, EX_CONSTANT, at, type->plain);
    e->bits = cut(type, bits);
    return e;
}

cu_expr *cu_rvalue(cuda_unit *u, cu_expr *e) {
    if (e->type->kind != CU_ARRAY) return e;
    if (!e->lvalue) cu_not_yet(u, e->at, "an array inside of a struct that is no variable");
    for (const cu_expr *of = e; of != NULL; of = of->kind == EX_MEMBER ? of->a : NULL)
        if (of->kind == EX_VARIABLE) of->variable->addressed = true;
    cu_expr *p = cu_new_expr(u, EX_ADDRESS, e->at, cu_pointer_to(u, e->type->of));
    p->a = e;
    return p;
}

/* ---- constants ---- */

static double float_of(const cu_expr *e) {
    double d;
    if (cu_is_float(e->type)) return memcpy(&d, &e->bits, sizeof d), d; /* of floats too */
    return cu_is_unsigned(e->type) ? (double)e->bits : (double)(int64_t)e->bits;
}

static uint64_t float_bits(const cu_type *t, double d) {
    uint64_t bits;
    if (t->kind == CU_FLOAT) d = (double)(float)d;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* Out of range as IR_FPTOSI has it. */
static uint64_t integer_of(const cu_type *t, double d) {
    if (t->kind == CU_BOOL) return d != 0;
    if (d != d) return 0;
    unsigned width = (unsigned)t->size * 8;
    if (cu_is_unsigned(t)) {
        double most = width == 64 ? 0x1p64 : (double)(1ull << width);
        return d <= 0 ? 0 : d >= most ? ~0ull >> (64 - width) : (uint64_t)d;
    }
    int64_t least = width == 64 ? INT64_MIN : -(1ll << (width - 1));
    if (d <= (double)least) return (uint64_t)least;
    return d >= -(double)least ? (uint64_t)(-1 - least) : (uint64_t)(int64_t)d;
}

static cu_expr *cast_constant(cuda_unit *u, const cu_expr *e, const cu_type *to) {
    bool from_float = cu_is_float(e->type);
    uint64_t bits;
    if (cu_is_float(to)) {
        bits = float_bits(to, float_of(e));
        if (to->kind == CU_FLOAT && !from_float) { /* rounded once */
            float f = cu_is_unsigned(e->type) ? (float)e->bits : (float)(int64_t)e->bits;
            bits = float_bits(to, (double)f);
        }
    } else {
        bits = from_float ? integer_of(to, float_of(e)) : e->bits;
    }
    return cu_constant(u, e->at, to, bits);
}

/* Of integers, both of type t; false: it is not defined (division by zero, MIN / -1). */
static bool fold_integers(const cu_type *t, uint32_t op, uint64_t a, uint64_t b, uint64_t *out) {
    int64_t x = (int64_t)a, y = (int64_t)b;
    bool is_unsigned = cu_is_unsigned(t);
    uint64_t width = t->size * 8;
    switch (op) {
    case '+': *out = a + b; return true;
    case '-': *out = a - b; return true;
    case '*': *out = a * b; return true;
    case '&': *out = a & b; return true;
    case '|': *out = a | b; return true;
    case '^': *out = a ^ b; return true;
    case CU_P2('<', '<'): *out = b < width ? a << b : 0; return true;
    case CU_P2('>', '>'):
        b = b < width ? b : width - 1;
        *out = is_unsigned ? (y < 0 || (uint64_t)y >= width ? 0 : a >> b) : (uint64_t)(x >> b);
        return true;
    default: break;
    }
    if (b == 0 || (!is_unsigned && y == -1 && cut(t, 0 - a) == a)) return false;
    if (op == '/') *out = is_unsigned ? a / b : (uint64_t)(x / y);
    if (op == '%') *out = is_unsigned ? a % b : (uint64_t)(x % y);
    return op == '/' || op == '%';
}

static bool compare(uint32_t op, bool less, bool equal, bool known) {
    switch (op) {
    case '<': return less;
    case '>': return known && !less && !equal;
    case CU_P2('<', '='): return less || equal;
    case CU_P2('>', '='): return known && !less;
    case CU_P2('=', '='): return equal;
    default: return !equal;
    }
}

static bool is_comparison(uint32_t op) {
    return op == '<' || op == '>' || op == CU_P2('<', '=') || op == CU_P2('>', '=') ||
           op == CU_P2('=', '=') || op == CU_P2('!', '=');
}

static bool fold_binary(const cu_expr *e, uint64_t *out) {
    const cu_type *t = e->a->type;
    uint64_t a = e->a->bits, b = e->b->bits;
    double x = float_of(e->a), y = float_of(e->b);
    bool is_float = cu_is_float(t), wide = cu_is_unsigned(t);
    if (is_comparison(e->op)) {
        bool less = is_float ? x < y : wide ? a < b : (int64_t)a < (int64_t)b;
        *out = compare(e->op, less, is_float ? x == y : a == b, !is_float || (x == x && y == y));
        return true;
    }
    if (!is_float) return fold_integers(t, e->op, a, b, out);
    double d = e->op == '+' ? x + y : e->op == '-' ? x - y : e->op == '*' ? x * y : x / y;
    if (t->kind == CU_FLOAT) { /* of floats rounded once */
        float f = (float)x, g = (float)y;
        d = e->op == '+' ? f + g : e->op == '-' ? f - g : e->op == '*' ? f * g : f / g;
    }
    *out = float_bits(t, d);
    return true;
}

static bool fold_unary(const cu_expr *e, uint64_t *out) {
    uint64_t a = e->a->bits;
    if (e->op == '!') return *out = a == 0, true;
    if (e->op == '~') return *out = ~a, true;
    *out = cu_is_float(e->type) ? float_bits(e->type, -float_of(e->a)) : 0 - a;
    return e->op == '-';
}

cu_expr *cu_folded(cuda_unit *u, cu_expr *e) {
    bool a = e->a != NULL && e->a->kind == EX_CONSTANT,
         b = e->b != NULL && e->b->kind == EX_CONSTANT;
    uint64_t bits;
    if (e->kind == EX_UNARY && a && fold_unary(e, &bits))
        return cu_constant(u, e->at, e->type, bits);
    if (e->kind == EX_BINARY && a && b && fold_binary(e, &bits))
        return cu_constant(u, e->at, e->type, bits);
    if (e->kind == EX_LOGICAL && a) {
        bool decides = (e->a->bits != 0) == (e->op == CU_P2('|', '|'));
        return decides ? cu_constant(u, e->at, e->type, e->a->bits != 0) : e->b;
    }
    if (e->kind == EX_CONDITION && a && !e->lvalue) return e->a->bits != 0 ? e->b : e->c;
    return e;
}

/* ---- casts ---- */

cu_expr *cu_cast(cuda_unit *u, cu_expr *e, const cu_type *to) {
    to = to->plain;
    if (to->kind != CU_STRUCT) e = cu_rvalue(u, e);
    if (e->type->plain == to && !e->lvalue) return e;
    if (e->kind == EX_CONSTANT && cu_is_number(to)) return cast_constant(u, e, to);
    if (cu_is_pointer(to) && e->kind == EX_CONSTANT && cu_is_integer(e->type) && e->bits == 0)
        return cu_new_expr(u, EX_NULL, e->at, to);
    if (cu_is_pointer(to) && e->kind == EX_NULL) return cu_new_expr(u, EX_NULL, e->at, to);
    bool fine = to->kind == CU_VOID || (cu_is_number(to) && cu_is_number(e->type)) ||
                (cu_is_pointer(to) && cu_is_pointer(e->type)) ||
                (cu_is_integer(to) && cu_is_pointer(e->type)) || e->type->plain == to;
    if (cu_is_pointer(to) && cu_is_integer(e->type))
        cu_not_yet(u, e->at, "a pointer made from an integer");
    if (!fine)
        cu_fail(u, e->at, "%s cannot be converted to %s", cu_type_text(u, e->type),
                cu_type_text(u, to));
    cu_expr *c = cu_new_expr(u, EX_CAST, e->at, to);
    c->a = e;
    return c;
}

/* Does a pointer convert by itself: to the same with more qualifiers, to void*. */
static bool pointer_converts(const cu_type *from, const cu_type *to) {
    const cu_type *a = from->of, *b = to->of;
    if ((a->is_const && !b->is_const) || (a->is_volatile && !b->is_volatile)) return false;
    return b->kind == CU_VOID || cu_same(a, b) ||
           (cu_is_pointer(a) && cu_is_pointer(b) && cu_same(a->of, b->of));
}

bool cu_converts(const cu_expr *e, const cu_type *to) {
    const cu_type *t = e->type;
    if (cu_same(t, to)) return true;
    if (cu_is_number(t) && cu_is_number(to)) return true;
    if (e->kind == EX_NULL) return cu_is_pointer(to);
    if (cu_is_pointer(to) && e->kind == EX_CONSTANT && cu_is_integer(t)) return e->bits == 0;
    if (to->kind == CU_BOOL && cu_is_pointer(t)) return true;
    return cu_is_pointer(t) && cu_is_pointer(to) && pointer_converts(t, to);
}

cu_expr *cu_convert(cuda_unit *u, cu_expr *e, const cu_type *to, const char *what) {
    e = cu_rvalue(u, e);
    if (!cu_converts(e, to))
        cu_fail(u, e->at, "%s: %s cannot be converted to %s", what, cu_type_text(u, e->type),
                cu_type_text(u, to));
    return to->kind == CU_BOOL ? cu_truth(u, e) : cu_cast(u, e, to);
}

cu_expr *cu_truth(cuda_unit *u, cu_expr *e) {
    const cu_type *t = cu_basic(u, CU_BOOL);
    e = cu_rvalue(u, e);
    if (e->type->kind == CU_BOOL) return e;
    if (!cu_is_scalar(e->type) && e->kind != EX_NULL)
        cu_fail(u, e->at, "a condition of type %s", cu_type_text(u, e->type));
    if (e->kind == EX_CONSTANT)
        return cu_constant(u, e->at, t, cu_is_float(e->type) ? float_of(e) != 0 : e->bits != 0);
    cu_expr *n = cu_new_expr(u, EX_BINARY, e->at, t);
    n->op = CU_P2('!', '=');
    n->a = e;
    n->b = cu_is_pointer(e->type) ? cu_new_expr(u, EX_NULL, e->at, e->type->plain)
                                  : cu_constant(u, e->at, e->type, 0);
    return n;
}

/* ---- the usual arithmetic conversions (C11 6.3.1) ---- */

static const cu_type *promoted_type(cuda_unit *u, const cu_type *t) {
    return cu_is_integer(t) && t->kind < CU_INT ? cu_basic(u, CU_INT) : t->plain;
}

cu_expr *cu_promoted(cuda_unit *u, cu_expr *e) {
    e = cu_rvalue(u, e);
    return cu_is_number(e->type) ? cu_cast(u, e, promoted_type(u, e->type)) : e;
}

const cu_type *cu_common(cuda_unit *u, const cu_type *a, const cu_type *b) {
    if (a->kind == CU_DOUBLE || b->kind == CU_DOUBLE) return cu_basic(u, CU_DOUBLE);
    if (a->kind == CU_FLOAT || b->kind == CU_FLOAT) return cu_basic(u, CU_FLOAT);
    const cu_type *x = promoted_type(u, a), *y = promoted_type(u, b);
    const cu_type *high = x->kind > y->kind ? x : y, *low = high == x ? y : x;
    /* ranks rise with the kinds; an unsigned type follows its signed one */
    if (cu_is_unsigned(high) == cu_is_unsigned(low) || cu_is_unsigned(high)) return high;
    return high->size > low->size ? high : cu_basic(u, (cu_kind)(high->kind + 1));
}
