// The array loops of the functions of hyperbolic_f32.h and hyperbolic_f64.h.
#include "loops.h"

#include "hyperbolic_f32.h"
#include "hyperbolic_f64.h"

UNARY_BOTH(asinh)
UNARY_BOTH(acosh)
UNARY_BOTH(atanh)
UNARY_BOTH(erfc)
UNARY_BOTH(erfinv)
