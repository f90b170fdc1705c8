/* Ranges: bounds on integers, read as signed, that hold whatever the threads and the data are. */
#ifndef SIMT_KERNEL_RANGE_H
#define SIMT_KERNEL_RANGE_H

#include "ir/ir.h"

typedef struct facts_range {
    int64_t low, high;
} facts_range;

/* A bound says more than the type: arithmetic that makes the value did not wrap. */
static inline bool facts_range_says(facts_range r, ir_type t) {
    return r.low > ir_least(t) || r.high < ir_most(t);
}

/* By value id (ir_func_renumber first); NULL: no memory. block: of the launch, or NULL: any.
 * small_grid: its threads along each axis are counted by i32. */
facts_range *facts_find_ranges(const ir_func *f, const uint32_t block[3], bool small_grid,
                               arena *mem);

#endif
