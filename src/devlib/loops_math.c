// The array loops of the functions of math_f32.h and math_f64.h.
#include "loops.h"

#include "math_f32.h"
#include "math_f64.h"

UNARY_BOTH(exp)
UNARY_BOTH(log)
UNARY_BOTH(tanh)
UNARY_BOTH(erf)
UNARY_BOTH(expm1)
UNARY_BOTH(log1p)
BINARY_BOTH(pow)
CHUNKED_BOTH(sin, dev_trig_in_fast)
CHUNKED_BOTH(cos, dev_trig_in_fast)
