/* Recipes for arithmetic that languages have and the IR has not: floor division and remainders with the
 * divisor's sign (Python, NumPy), powers of integers. Operands are of one type; what comes out is, too. */
#ifndef SIMT_KERNEL_NUMBERS_H
#define SIMT_KERNEL_NUMBERS_H

#include "ir/ir.h"

/* Of integers, rounded down; the remainder has the divisor's sign. Divisors of 0 as ops.def has them. */
ir_value *number_floor_divide(ir_builder *b, bool is_signed, ir_value *x, ir_value *y);
ir_value *number_remainder(ir_builder *b, bool is_signed, ir_value *x, ir_value *y);

/* Of floats: Python's divmod (CPython's float_divmod, NumPy's npy_divmod) with its signed zeros; inf and nan
 * where the divisor is 0. quotient or remainder may be NULL: not wanted. */
void number_float_divmod(ir_builder *b, ir_value *x, ir_value *y, ir_value **quotient,
                         ir_value **remainder);

/* x ** n of integers by squaring over the bits of n. A negative n gives 1 / x**n, cut: 0, but for 1 and -1. */
ir_value *number_power(ir_builder *b, bool is_signed, ir_value *x, ir_value *n);
/* x ** n for an n known here, n >= 0, by multiply (mul or fmul); one: of x's type. */
ir_value *number_power_by(ir_builder *b, ir_op multiply, ir_value *x, ir_value *one, int64_t n);

#endif
