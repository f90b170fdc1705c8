/* Shapes: how the values of a function differ between the threads of a block that compute them together.
 *
 * Threads run in step and meet again where a construct ends. A value is then either fixed: it grows by a
 * known step along each axis of the block (no step: it is uniform), or grows by steps known at run time
 * only (of such a kind: products with a uniform value, and sums), or varies. Steps count modulo the width
 * of the value's type.
 * Asked about groups of threads, only uniform and varying are told apart: a value is uniform if the threads
 * of each group have the same, when those of a group that are left run in step.
 */
#ifndef SIMT_IR_SHAPE_H
#define SIMT_IR_SHAPE_H

#include "ir/threads.h"

typedef enum ir_shape_kind {
    IR_SHAPE_UNKNOWN,
    IR_SHAPE_FIXED,
    IR_SHAPE_RUN_TIME,
    IR_SHAPE_VARYING
} ir_shape_kind;

typedef struct ir_shape {
    uint8_t kind;    /* ir_shape_kind; never unknown in what is returned */
    int64_t step[3]; /* FIXED: along x, y, z; 0 along an axis of one thread */
} ir_shape;

typedef struct ir_construct_shape {
    const ir_inst *inst; /* block, loop or if */
    bool splits;         /* an if that threads take differently */
    bool calm;           /* the threads inside leave it together */
    const ir_inst *next; /* the first `continue` that names it, or NULL */
} ir_construct_shape;

typedef struct ir_shapes {
    ir_shape *values;               /* by id: ir_func_renumber first */
    ir_construct_shape *constructs; /* in program order */
    uint32_t nconstructs;
    uint64_t local_bytes; /* local memory of a thread; the threads' lie one after the other */
    bool used_small_grid; /* it matters that the grid is small */
} ir_shapes;

static inline bool ir_shape_is_uniform(const ir_shape *s) {
    return s->kind == IR_SHAPE_FIXED && (s->step[0] | s->step[1] | s->step[2]) == 0;
}
/* A value that grows evenly with the flat number of the thread: by *stride (0: uniform). */
bool ir_shape_is_even(const ir_shape *s, const uint32_t block[3], int64_t *stride);

/* with: by flat thread, the lanes of its warp that are in its group. */
typedef struct ir_groups {
    const uint32_t *with;
    uint32_t threads;
    const ir_thread_value *values;
} ir_groups;

/* Threads that have returned are no reason why others would not be together. */
simt_status ir_find_group_shapes(const ir_func *f, const uint32_t block[3], const ir_groups *groups,
                                 arena *mem, ir_shapes *out);
/* box: the threads that run together, which are those of a block or others; block: of the launch, which
 * ntid is. small_grid: thread numbers of the whole grid fit into i32. Instructions' notes are overwritten. */
simt_status ir_find_shapes(const ir_func *f, const uint32_t box[3], const uint32_t block[3],
                           bool small_grid, arena *mem, ir_shapes *out);

#endif
