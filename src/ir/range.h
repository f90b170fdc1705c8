/* Ranges: bounds on integers, read as signed, that hold whatever the threads and the data are. */
#ifndef SIMT_IR_RANGE_H
#define SIMT_IR_RANGE_H

#include "ir/ir.h"

typedef struct ir_range {
    int64_t low, high;
} ir_range;

static inline int64_t ir_least(ir_type t) {
    unsigned width = ir_type_is_int(t) ? ir_type_bits(t) : 64;
    return width >= 64 ? INT64_MIN : -(1ll << (width - 1));
}
static inline int64_t ir_most(ir_type t) { return -1 - ir_least(t); }
/* A bound says more than the type: arithmetic that makes the value did not wrap. */
static inline bool ir_range_says(ir_range r, ir_type t) {
    return r.low > ir_least(t) || r.high < ir_most(t);
}

/* By value id (ir_func_renumber first); NULL: no memory. block: of the launch, or NULL: any.
 * small_grid: its threads along each axis are counted by i32. */
ir_range *ir_find_ranges(const ir_func *f, const uint32_t block[3], bool small_grid, arena *mem);

#endif
