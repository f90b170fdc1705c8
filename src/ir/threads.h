/* What each thread of a block has in a value, where that hangs on its place in the block only, up to a part
 * that all threads share: the place of the block, a parameter.
 *
 * 32-bit thread numbers of the grid are taken not to wrap.
 */
#ifndef SIMT_IR_THREADS_H
#define SIMT_IR_THREADS_H

#include "ir/ir.h"

enum { IR_NO_BASE = 64 };

/* Thread t has of[t] (as constant bits), plus a base that is the same in all threads when there is one. */
typedef struct ir_thread_value {
    uint64_t *of;  /* by flat number of the thread; NULL: not known */
    bool one;      /* the same in all threads: of[0] only */
    uint8_t zeros; /* the base is a multiple of 1 << zeros; IR_NO_BASE: there is none */
} ir_thread_value;

/* By value id (ir_func_renumber first); integers only. */
simt_status ir_find_thread_values(const ir_func *f, const uint32_t block[3], arena *mem,
                                  ir_thread_value **out);
static inline uint64_t ir_thread_has(const ir_thread_value *v, uint32_t t) {
    return v->of[v->one ? 0 : t];
}
static inline bool ir_thread_value_is_whole(const ir_thread_value *v) {
    return v->of != NULL && v->zeros == IR_NO_BASE;
}

#endif
