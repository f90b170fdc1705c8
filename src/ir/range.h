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

/* Of a parameter, carried value or result of a construct: what its type and `is_size` say. */
ir_range ir_range_of_value(const ir_value *v);
/* Of the result of an instruction, from those of its first operands. block: of the launch, or NULL: any.
 * small_grid: its threads along each axis are counted by i32. */
ir_range ir_range_of_result(const ir_inst *in, const ir_range args[2], const uint32_t block[3],
                            bool small_grid);

#endif
