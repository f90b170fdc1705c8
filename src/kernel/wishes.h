/* What a back end wishes of what it is given: rewritings of opt/ that are right on every machine, and pay on some;
 * the form of device functions. */
#ifndef SIMT_KERNEL_WISHES_H
#define SIMT_KERNEL_WISHES_H

#include <stdbool.h>

typedef struct kernel_wishes {
    /* A compare is made again in a region inside rather than kept for it: where only an `if` looks at one,
     * it need not be computed for each thread, and the region inside is often the rare case. */
    bool compares_again;
    /* So many cheap operations, those of both sides, are less work than an `if` that splits the threads. */
    unsigned choose_ops;
    /* Device functions (ops.def: MATH) come as operations, for which it has code. A back end that wants their IR
     * instead is not asked for functions in which they stand as operations. */
    bool calls_math;
} kernel_wishes;

#endif
