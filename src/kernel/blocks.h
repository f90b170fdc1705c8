/* Whether the blocks of a launch matter to a kernel: whether it looks at its block or its place there, or
 * at what the threads of a block do together or share. */
#ifndef SIMT_KERNEL_BLOCKS_H
#define SIMT_KERNEL_BLOCKS_H

#include "ir/ir.h"

typedef struct facts_blocks {
    bool matter;
    const ir_inst *at; /* the first instruction that makes them matter, or NULL */
} facts_blocks;

/* As the function stands: every mention of a thread's block, or its place there, counts. */
facts_blocks facts_find_blocks(const ir_func *f);
/* Once its numbers in the grid, ctaid * ntid + tid, are the coordinate `index`: what is only a part of such
 * a number does not count. */
facts_blocks facts_find_blocks_beyond_index(const ir_func *f);
/* The axis of a sum that is such a number; -1: it is none. */
int facts_axis_of_index(const ir_inst *in);

#endif
