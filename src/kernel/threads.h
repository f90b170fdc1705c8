/* What each thread of a block has in a value, where that hangs on its place in the block only, up to a part
 * that all threads share: the place of the block, a parameter.
 *
 * 32-bit thread numbers of the grid are taken not to wrap.
 */
#ifndef SIMT_KERNEL_THREADS_H
#define SIMT_KERNEL_THREADS_H

#include "ir/ir.h"

enum { FACTS_NO_BASE = 64 };

/* Thread t has of[t] (as constant bits), plus a base that is the same in all threads when there is one. */
typedef struct facts_thread_value {
    uint64_t *of;  /* by flat number of the thread; NULL: not known */
    bool one;      /* the same in all threads: of[0] only */
    uint8_t zeros; /* the base is a multiple of 1 << zeros; FACTS_NO_BASE: there is none */
} facts_thread_value;

/* By value id (ir_func_renumber first); integers only, and none that only known ones are made of. */
simt_status facts_find_thread_values(const ir_func *f, const uint32_t block[3], arena *mem,
                                     facts_thread_value **out);
static inline uint64_t facts_thread_has(const facts_thread_value *v, uint32_t t) {
    return v->of[v->one ? 0 : t];
}
static inline bool facts_thread_value_is_whole(const facts_thread_value *v) {
    return v->of != NULL && v->zeros == FACTS_NO_BASE;
}

#endif
