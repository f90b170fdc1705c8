// The array loops of the functions of elementary_f32.h and elementary_f64.h.
#include "loops.h"

#include "elementary_f32.h"
#include "elementary_f64.h"

UNARY_BOTH(exp2)
UNARY_BOTH(exp10)
UNARY_BOTH(log2)
UNARY_BOTH(log10)
UNARY_BOTH(sinh)
UNARY_BOTH(cosh)
UNARY_BOTH(cbrt)
UNARY_BOTH(rsqrt)
BINARY_BOTH(hypot)
