// The array loops of gamma_f32.h and gamma_f64.h: not positive arguments are the rare ones.
#include "loops.h"

#include "gamma_f32.h"
#include "gamma_f64.h"

CHUNKED_BOTH(tgamma, dev_gamma_in_fast)
CHUNKED_BOTH(lgamma, dev_gamma_in_fast)
