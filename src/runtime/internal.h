/* The runtime's own structure. */
#ifndef SIMT_RUNTIME_INTERNAL_H
#define SIMT_RUNTIME_INTERNAL_H

#include "runtime/runtime.h"

#include <pthread.h>

/* Kernels, and bytes of their printed forms; code takes a few times as much. */
enum { CACHE_BUCKETS = 1024, CACHE_MOST = 4096, CACHE_MOST_BYTES = 32 << 20 };

typedef struct cache_entry cache_entry;
struct cache_entry {
    runtime_kernel kernel; /* first: a kernel's address is its entry's */
    cache_entry *next;
    char *text; /* printed form before optimisation */
    runtime_compile_options options;
    uint64_t used; /* tick of the last use */
};

typedef enum dump_kind { DUMP_IR = 1, DUMP_OPT = 2, DUMP_ASM = 4, DUMP_FACTS = 8 } dump_kind;

struct simt_runtime {
    target *target;
    bool verify;
    runtime_dump_sink dump; /* NULL: no dump */
    void *dump_context;
    unsigned dump_kinds;  /* what SIMT_DUMP asks for; all for a sink of one's own */
    pthread_mutex_t lock; /* of the cache */
    cache_entry *buckets[CACHE_BUCKETS];
    uint32_t count;
    size_t bytes;
    uint64_t tick;
};

/* Both lock. The kernel found or kept comes with a reference for the caller. keep takes over `made`, and
 * may find that another thread was quicker: then that one's kernel is returned. */
runtime_kernel *cache_find(simt_runtime *rt, uint64_t key, const char *text,
                           const runtime_compile_options *o);
runtime_kernel *cache_keep(simt_runtime *rt, cache_entry *made);
void cache_clear(simt_runtime *rt);

#endif
