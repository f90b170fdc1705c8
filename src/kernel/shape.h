/* Shapes: how the values of a function differ between threads that compute them together.
 *
 * Threads run in step and meet again where a construct ends. A value is then either fixed: it grows by a
 * known step along each axis of the block (no step: it is uniform), or grows by steps known at run time
 * only (of such a kind: products with a uniform value, and sums), or varies. Steps count modulo the width
 * of the value's type.
 * Asked about groups of threads, only uniform and varying are told apart: a value is uniform if the threads
 * of each group have the same, when those of a group that are left run in step.
 */
#ifndef SIMT_KERNEL_SHAPE_H
#define SIMT_KERNEL_SHAPE_H

#include "kernel/places.h"
#include "kernel/range.h"
#include "kernel/threads.h"

typedef enum facts_shape_kind {
    FACTS_UNKNOWN,
    FACTS_FIXED,
    FACTS_RUN_TIME,
    FACTS_VARYING
} facts_shape_kind;

typedef struct facts_shape {
    uint8_t kind;    /* facts_shape_kind; never unknown in what is returned */
    int64_t step[3]; /* FIXED: along x, y, z; 0 along an axis of one thread */
} facts_shape;

typedef struct facts_parting { /* of a construct */
    bool splits;               /* an if that threads take differently */
    bool calm;                 /* the threads inside leave it together */
} facts_parting;

typedef struct facts_shapes {
    facts_shape *values;       /* by id */
    facts_parting *constructs; /* by number of the construct */
    uint64_t local_bytes;      /* local memory of a thread; the threads' lie one after the other */
    bool used_small_grid;      /* it matters that the grid is small */
    uint32_t *values_left, *constructs_left; /* the analysis' own lists */
} facts_shapes;

static inline bool facts_shape_is_uniform(const facts_shape *s) {
    return s->kind == FACTS_FIXED && (s->step[0] | s->step[1] | s->step[2]) == 0;
}
/* A value that grows evenly with the flat number of the thread: by *stride (0: uniform). */
bool facts_shape_is_even(const facts_shape *s, const uint32_t box[3], int64_t *stride);
/* A jump out of a construct that threads leave apart, or take differently: some may come to it, others not. */
bool facts_jump_parts(const facts_places *p, const facts_shapes *s, const ir_inst *jump);

/* with: by flat thread, the lanes of its warp that are in its group. */
typedef struct facts_groups {
    const uint32_t *with;
    uint32_t threads;
    const facts_thread_value *values;
} facts_groups;

/* Room for what is found; the two below may be asked again with the same. */
simt_status facts_new_shapes(const facts_places *p, arena *mem, facts_shapes *out);
/* box: the threads that run together, which are those of a block or others. */
void facts_find_shapes(const facts_places *p, const facts_range *ranges, const uint32_t box[3],
                       facts_shapes *out);
/* Threads that have returned are no reason why others would not be together. */
void facts_find_group_shapes(const facts_places *p, const facts_range *ranges,
                             const facts_groups *groups, facts_shapes *out);

#endif
