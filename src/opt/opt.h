/* The optimiser: passes over one function, in the order of passes.def.
 * Each pass keeps meaning bit for bit (contract excepted: it is a licence the front end gives). */
#ifndef SIMT_OPT_OPT_H
#define SIMT_OPT_OPT_H

#include "ir/ir.h"

typedef struct opt_options {
    bool contract; /* allow fma contraction */
    bool verify;   /* run the verifier after each pass (tests, debug builds) */
} opt_options;

simt_status opt_run(ir_func *f, const opt_options *options);

#define PASS(id, default_on, meaning) simt_status opt_##id(ir_func *f);
#include "opt/passes.def"
#undef PASS

#endif
