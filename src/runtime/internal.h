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

typedef enum dump_kind {
    DUMP_IR = 1,
    DUMP_OPT = 2,
    DUMP_ASM = 4,
    DUMP_FACTS = 8,
    DUMP_CAPTURE = 16
} dump_kind;

struct simt_runtime {
    target *target;
    bool verify;
    char *dump;           /* what SIMT_DUMP asks for, or NULL */
    pthread_mutex_t lock; /* of the cache */
    cache_entry *buckets[CACHE_BUCKETS];
    uint32_t count;
    size_t bytes;
    uint64_t tick;
};

/* ---- dump.c ---- */
/* What is shown of one kernel's compilation. */
typedef struct dumping {
    unsigned kinds;
    strbuf shown; /* the function as it was shown last */
} dumping;
simt_status dump_check(const char *asked); /* fails where it names no kind */
void dump_begin(dumping *d, const char *asked, const char *kernel);
void dump_end(dumping *d);
void dump_stage(const char *stage, const char *text);
void dump_function(dumping *d, dump_kind kind, const char *stage, const ir_func *f);
/* Those of the kernel in its blocks. */
void dump_facts(const dumping *d, const ir_func *f, const uint32_t block[3], facts_book *facts);

/* ---- cache.c ---- */
/* Both lock. The kernel found or kept comes with a reference for the caller. keep takes over `made`, and
 * may find that another thread was quicker: then that one's kernel is returned. */
runtime_kernel *cache_find(simt_runtime *rt, uint64_t key, const char *text,
                           const runtime_compile_options *o);
runtime_kernel *cache_keep(simt_runtime *rt, cache_entry *made);
void cache_clear(simt_runtime *rt);

#endif
