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

/* Uniformity, an analysis. For every value: does it differ between the threads of a block? */
typedef enum opt_shape { OPT_UNIFORM, OPT_LINEAR, OPT_VARYING } opt_shape;
typedef struct opt_uniformity {
    uint8_t *shape; /* opt_shape by value id (ir_func_renumber first) */
    int64_t
        *stride; /* OPT_LINEAR: the value grows by this per thread (x fastest), modulo 2**width */
} opt_uniformity;
/* Linear in the flat thread number needs blockDim: pass the launch's, or {0,0,0} when unknown (then
 * tid.x is linear only when the back end lays lanes along x). Memory from `mem`. */
simt_status opt_uniform(ir_func *f, const uint32_t block[3], arena *mem, opt_uniformity *out);

#endif
