/* What a back end wishes of the passes of opt/: rewritings that are right on every machine, and pay on some. */
#ifndef SIMT_KERNEL_WISHES_H
#define SIMT_KERNEL_WISHES_H

#include <stdbool.h>

typedef struct kernel_wishes {
    /* A compare is made again in a region inside rather than kept for it: where only an `if` looks at one,
     * it need not be computed for each thread, and the region inside is often the rare case. */
    bool compares_again;
    /* So many cheap operations, those of both sides, are less work than an `if` that splits the threads. */
    unsigned choose_ops;
} kernel_wishes;

#endif
