/* The runtime instance: its targets (target.h), a bounded cache of compiled kernels.
 * compile.c holds the whole pipeline on one page: verify -> optimise -> back end (with SIMT_DUMP). */
#ifndef SIMT_RUNTIME_RUNTIME_H
#define SIMT_RUNTIME_RUNTIME_H

#include "runtime/target.h"

typedef struct simt_runtime simt_runtime;

/* Takes the target over, also on failure. */
simt_status runtime_new(target *first, simt_runtime **out);
void runtime_free(simt_runtime *rt);
void runtime_forget(simt_runtime *rt); /* the kernels that nobody holds */
/* Of its own target, and the host's beside it. */
device *runtime_device(simt_runtime *rt);
device *runtime_host(simt_runtime *rt);

/* Compiled kernels are counted; the cache holds one reference, the caller gets one. */
typedef struct runtime_kernel {
    code *code;
    const target *target;
    const backend *backend; /* whose code it is */
    int refs;               /* atomic */
    uint64_t key;
} runtime_kernel;

typedef struct runtime_compile_options {
    const target *target; /* NULL: the runtime's own */
    uint32_t block[3];
    bool contract;
} runtime_compile_options;

/* Compiles f, or finds the kernel compiled from an equal function (ir_hash and print compared). Takes
 * f: it is freed in any case. */
simt_status runtime_compile(simt_runtime *rt, ir_func *f, const runtime_compile_options *options,
                            runtime_kernel **out);
void runtime_kernel_ref(runtime_kernel *k);
void runtime_kernel_unref(runtime_kernel *k);
/* The function that it was compiled of, printed (ir_parse reads it): lives as long as k. */
const char *runtime_kernel_text(const runtime_kernel *k);

/* The back end's listing of k, as SIMT_DUMP=asm shows it. */
void runtime_print(const runtime_kernel *k, strbuf *out);

/* args: one 64-bit slot per parameter. Faults of the program come back in *fault (set). */
simt_status runtime_launch(const runtime_kernel *k, const uint32_t grid[3], const uint64_t *args,
                           size_t shared_bytes, code_fault *fault);
/* The same for a kernel that changes memory which somebody has: an interrupt stops it before it begins
 * or not at all. */
simt_status runtime_launch_whole(const runtime_kernel *k, const uint32_t grid[3],
                                 const uint64_t *args, size_t shared_bytes, code_fault *fault);

/* Rough ns that the launch takes on all workers; 0: unknown. */
double runtime_launch_cost(const runtime_kernel *k, const uint32_t grid[3]);

#endif
