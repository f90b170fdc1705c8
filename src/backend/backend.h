/* A back end turns one optimised IR function into code for blocks of a given size. Which ones are asked, and
 * in which order, backends.def and the target say (runtime/target.h). */
#ifndef SIMT_BACKEND_BACKEND_H
#define SIMT_BACKEND_BACKEND_H

#include "base/code.h"
#include "base/status.h"
#include "ir/ir.h"
#include "kernel/facts.h"
#include "kernel/wishes.h"

typedef struct backend_options {
    uint32_t block[3];
    const char *isa; /* "generic", "avx2", "avx512" or NULL: the widest of this machine */
} backend_options;

typedef struct backend {
    const char *name;
    kernel_wishes wishes;
    /* Required. `f` is verified, optimised and renumbered, and stays the caller's, as does the book, where it is
     * asked what is known of f and its functions (what others asked is there); *out is the caller's to destroy.
     * SIMT_ERR_UNSUPPORTED: the next back end of the target is asked. */
    simt_status (*compile)(const ir_func *f, facts_book *facts, const backend_options *options,
                           code **out);
    /* Optional: appends a listing of the code, for SIMT_DUMP=asm. */
    void (*print)(const code *c, strbuf *out);
    /* Optional: whether an op on operands of this type has code; if not, the next one is asked. NULL: all. */
    bool (*supports)(ir_op op, ir_type type);
} backend;

#define BACKEND(name, kind, meaning) extern const backend backend_##name;
#include "backend/backends.def"
#undef BACKEND

#endif
