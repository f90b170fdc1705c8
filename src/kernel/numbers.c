/* Recipes in terms of the IR's operations; see the header. */
#include "kernel/numbers.h"

static ir_value *zero_of(ir_builder *b, const ir_value *v) { return ir_const_bits(b, v->type, 0); }

static ir_value *is_negative(ir_builder *b, ir_value *v) {
    return ir_binary(b, IR_LT_S, v, zero_of(b, v));
}

/* ---- integers ---- */

/* The machine's remainder, which has the dividend's sign; *off: it is not the one asked for. */
static ir_value *cut_remainder(ir_builder *b, ir_value *x, ir_value *y, ir_value **off) {
    ir_value *r = ir_binary(b, IR_REM_S, x, y);
    ir_value *differs = is_negative(b, ir_binary(b, IR_XOR, r, y));
    *off = ir_binary(b, IR_AND, differs, ir_binary(b, IR_NE, r, zero_of(b, r)));
    return r;
}

ir_value *number_floor_divide(ir_builder *b, bool is_signed, ir_value *x, ir_value *y) {
    if (!is_signed) return ir_binary(b, IR_DIV_U, x, y);
    ir_value *off;
    cut_remainder(b, x, y, &off);
    ir_value *q = ir_binary(b, IR_DIV_S, x, y);
    return ir_select(b, off, ir_binary(b, IR_SUB, q, ir_const_int(b, q->type, 1)), q);
}

ir_value *number_remainder(ir_builder *b, bool is_signed, ir_value *x, ir_value *y) {
    if (!is_signed) return ir_binary(b, IR_REM_U, x, y);
    ir_value *off, *r = cut_remainder(b, x, y, &off);
    return ir_select(b, off, ir_binary(b, IR_ADD, r, y), r);
}

/* What a negative n makes of x: 0, but for 1 and -1. */
static ir_value *power_of_inverse(ir_builder *b, ir_value *x, ir_value *n, ir_value *one,
                                  ir_value *zero) {
    ir_value *unit = ir_select(b, ir_binary(b, IR_EQ, x, one), one, zero);
    ir_value *sign = ir_select(b, ir_binary(b, IR_EQ, ir_binary(b, IR_AND, n, one), zero), one,
                               ir_const_int(b, x->type, -1));
    return ir_select(b, ir_binary(b, IR_EQ, x, ir_const_int(b, x->type, -1)), sign, unit);
}

ir_value *number_power(ir_builder *b, bool is_signed, ir_value *x, ir_value *n) {
    ir_type t = x->type;
    ir_value *one = ir_const_int(b, t, 1), *zero = ir_const_bits(b, t, 0);
    ir_value *negative = is_signed ? is_negative(b, n) : NULL;
    ir_value *init[3] = {negative != NULL ? ir_select(b, negative, zero, n) : n, x, one};
    ir_inst *loop = ir_loop(b, init, 3, &t, 1);
    ir_region *after = b->at;
    b->at = loop->regions[0];
    ir_value *left = &b->at->params[0], *base = &b->at->params[1], *r = &b->at->params[2];
    ir_inst *more = ir_if(b, ir_binary(b, IR_NE, left, zero), NULL, 0);
    b->at = more->regions[0];
    ir_br(b, more, NULL, 0);
    b->at = more->regions[1];
    ir_br(b, loop, &r, 1);
    b->at = loop->regions[0];
    ir_value *odd = ir_binary(b, IR_NE, ir_binary(b, IR_AND, left, one), zero);
    ir_value *next[3] = {ir_binary(b, IR_SHR_U, left, one), ir_binary(b, IR_MUL, base, base),
                         ir_select(b, odd, ir_binary(b, IR_MUL, r, base), r)};
    ir_continue(b, loop, next, 3);
    b->at = after;
    ir_value *result = ir_result(loop);
    if (negative == NULL) return result;
    return ir_select(b, negative, power_of_inverse(b, x, n, one, zero), result);
}

ir_value *number_power_by(ir_builder *b, ir_op multiply, ir_value *x, ir_value *one, int64_t n) {
    ir_value *r = NULL;
    for (; n > 0; n >>= 1) {
        if (n & 1) r = r != NULL ? ir_binary(b, multiply, r, x) : x;
        if (n > 1) x = ir_binary(b, multiply, x, x);
    }
    return r != NULL ? r : one;
}

/* ---- floats ---- */

/* The whole number below x / y, from a quotient that is at most a rounding away from a whole one. */
static ir_value *whole(ir_builder *b, ir_value *x, ir_value *y, ir_value *quotient,
                       ir_value *zero) {
    ir_type t = x->type;
    ir_value *floor = ir_unary(b, IR_FFLOOR, quotient);
    ir_value *high =
        ir_binary(b, IR_FLT, ir_const_float(b, t, 0.5), ir_binary(b, IR_FSUB, quotient, floor));
    floor = ir_select(b, high, ir_binary(b, IR_FADD, floor, ir_const_float(b, t, 1)), floor);
    ir_value *plain = ir_binary(b, IR_FDIV, x, y);
    floor = ir_select(b, ir_binary(b, IR_FEQ, quotient, zero),
                      ir_binary(b, IR_FCOPYSIGN, zero, plain), floor);
    return ir_select(b, ir_binary(b, IR_FEQ, y, zero), plain, floor);
}

void number_float_divmod(ir_builder *b, ir_value *x, ir_value *y, ir_value **quotient,
                         ir_value **remainder) {
    ir_type t = x->type;
    ir_value *zero = ir_const_float(b, t, 0), *mod = ir_binary(b, IR_FREM, x, y), *div = NULL;
    if (quotient != NULL) div = ir_binary(b, IR_FDIV, ir_binary(b, IR_FSUB, x, mod), y);
    ir_value *exact = ir_binary(b, IR_FEQ, mod, zero);
    ir_value *differs =
        ir_binary(b, IR_NE, ir_binary(b, IR_FLT, y, zero), ir_binary(b, IR_FLT, mod, zero));
    ir_value *off = ir_binary(b, IR_AND, differs, ir_unary(b, IR_NOT, exact));
    if (remainder != NULL) {
        *remainder = ir_select(b, off, ir_binary(b, IR_FADD, mod, y), mod);
        *remainder = ir_select(b, exact, ir_binary(b, IR_FCOPYSIGN, zero, y), *remainder);
    }
    if (quotient == NULL) return;
    div = ir_select(b, off, ir_binary(b, IR_FSUB, div, ir_const_float(b, t, 1)), div);
    *quotient = whole(b, x, y, div, zero);
}
