/* The optimiser: passes over one function, in the order of passes.def.
 * Each pass keeps meaning bit for bit (contract excepted: it is a licence the front end gives). */
#ifndef SIMT_OPT_OPT_H
#define SIMT_OPT_OPT_H

#include "ir/ir.h"
#include "kernel/wishes.h"

typedef struct opt_options {
    bool contract;               /* allow fma contraction */
    bool verify;                 /* run the verifier after each pass (tests, debug builds) */
    const kernel_wishes *wishes; /* of the back end that is to compile it */
    void (*after)(void *context, const char *pass, const ir_func *f); /* each pass, or NULL */
    void *context;
} opt_options;

/* mem: what only the pass needs, a sure arena. */
typedef void opt_pass(ir_func *f, const kernel_wishes *wishes, arena *mem);
simt_status opt_run_pass(ir_func *f, opt_pass *pass, const kernel_wishes *wishes);
simt_status opt_run(ir_func *f, const opt_options *options);

#define PASS(id, default_on, meaning) opt_pass opt_##id;
#include "opt/passes.def"
#undef PASS

#endif
