// The array loops of the functions of trig_f32.h and trig_f64.h.
#include "loops.h"

#include "trig_f32.h"
#include "trig_f64.h"

CHUNKED_BOTH(tan, dev_trig_in_fast)
UNARY_BOTH(sinpi)
UNARY_BOTH(cospi)
UNARY_BOTH(asin)
UNARY_BOTH(acos)
UNARY_BOTH(atan)
BINARY_BOTH(atan2)
