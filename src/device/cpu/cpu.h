/* The CPU device's parts: caching memory (memory.c), worker pool (pool.c), launches (launch.c), and the
 * device that joins them (cpu.c). */
#ifndef SIMT_DEVICE_CPU_CPU_H
#define SIMT_DEVICE_CPU_CPU_H

#include "device/device.h"

#include <stdatomic.h>

/* ---- memory ---- */

typedef struct memory memory;
memory *memory_new(void);
void memory_free(memory *m); /* cached memory goes back; what is in use stays valid, and is lost */
simt_status memory_take(memory *m, size_t bytes, void **out);
void memory_give(memory *m, void *p, size_t bytes);
void memory_trim(memory *m);
void memory_forget(
    memory *m); /* in the child of a fork: frees locks of threads that are not there */
size_t memory_in_use(memory *m);
size_t memory_cached(memory *m);

/* ---- pool ---- */

typedef struct pool pool;
/* fn runs on the caller and on every worker that comes in time; worker 0 is the caller. */
typedef void (*pool_work)(void *context, int worker);
pool *pool_new(int nthreads);
void pool_free(pool *p);
void pool_forget(pool *p); /* in the child of a fork: there are no workers */
int pool_threads(const pool *p);
bool pool_awake(pool *p); /* workers spin: a job costs them about a microsecond, not a wake-up */
bool pool_inside(void);   /* the calling thread runs pool work: nested work is to run serially */
/* False: the pool is in use by another thread or has no workers; nothing was run. `idle` is called now
 * and then while the caller waits for the workers' last work. */
bool pool_run(pool *p, pool_work fn, void *context, void (*idle)(void *context));

uint64_t clock_ns(void);
static inline uint64_t clock_ticks(void) { /* cheap, about 2 to 3 per ns; for thresholds only */
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return clock_ns() * 2;
#endif
}
static inline void cpu_pause(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- floating-point mode: round to nearest, denormals on ---- */

static inline unsigned float_mode_enter(void) {
#ifdef __x86_64__
    unsigned old = __builtin_ia32_stmxcsr();
    if ((old & ~0x3fu) != 0x1f80) __builtin_ia32_ldmxcsr(0x1f80);
    return old;
#else
    return 0;
#endif
}
static inline void float_mode_leave(unsigned old) {
#ifdef __x86_64__
    if ((old & ~0x3fu) != 0x1f80) __builtin_ia32_ldmxcsr(old);
#endif
}

/* ---- launches ---- */

/* Asks for an interrupt on the thread that may, unless it asked shortly before `now` or it is held. True
 * also where this is now the child of a fork: the workers' part of the job is lost. */
bool cpu_interrupted(uint64_t *asked, uint64_t now);
simt_status cpu_launch(pool *p, const code_blocks *c, const code_launch *launch, code_fault *fault);

#endif
