/* A device: memory and the execution of compiled code. Never compiles. Thread-safe. */
#ifndef SIMT_DEVICE_DEVICE_H
#define SIMT_DEVICE_DEVICE_H

#include "base/code.h"
#include "base/status.h"

typedef struct device device;
struct device {
    const char *name; /* "simt CPU (AVX-512, 2 threads)" */
    int nthreads;
    /* 64-byte aligned; bytes may be 0 (then a valid, distinct address). Memory is not cleared.
     * Failure: SIMT_ERR_MEMORY naming the size. */
    simt_status (*alloc)(device *d, size_t bytes, void **out);
    void (*free)(device *d, void *memory,
                 size_t bytes); /* bytes as given to alloc; kept in the cache */
    void (*trim)(device *d);    /* gives cached memory back */
    bool (*accepts)(const device *d, const code *c); /* code that it can run */
    /* Rough ns that a block takes when all workers are at work; 0: unknown. */
    double (*block_cost)(const device *d, const code *c);
    /* Runs all blocks and returns when they are done (the CPU device is synchronous). Small launches
     * run on the calling thread and wake nobody. A fault of the program: SIMT_ERR_INDEX or
     * SIMT_ERR_RUNTIME is the *caller's* to make from *fault; launch returns OK with fault->set.
     * Interrupted (Ctrl-C): SIMT_ERR_INTERRUPT. Time limit or no progress: SIMT_ERR_NO_PROGRESS.
     * A launch marked `whole` is interrupted before it begins or not at all. */
    simt_status (*launch)(device *d, const code *c, const code_launch *launch, code_fault *fault);
    /* Runs fn(context, begin, end) over [0, count) in dynamic chunks of at least `grain`, on all
     * workers; for library calls (GEMM slices, im2col, gathers). A call from inside a worker runs serially. The
     * first failure is returned (its diagnostic in the calling thread). Interrupted between chunks, unless
     * held: SIMT_ERR_INTERRUPT. */
    simt_status (*parallel)(device *d, size_t count, size_t grain,
                            simt_status (*fn)(void *context, size_t begin, size_t end),
                            void *context);
    size_t (*bytes_in_use)(device *d);
    size_t (*bytes_cached)(device *d);
    void (*destroy)(device *d);
};

/* threads 0: SIMT_NUM_THREADS, else one per core of the affinity mask. */
simt_status device_cpu_new(int threads, device **out);
/* Called on the launching thread now and then during a long launch; returns true to stop it
 * (PyErr_CheckSignals). NULL: none. */
void device_set_interrupt_check(bool (*check)(void));
bool device_interrupted(void); /* asks it now */
/* While held, `parallel` on this thread is not interrupted: its work must not stay half done. Returns
 * what was set before. */
bool device_hold_interrupts(bool hold);

/* Once, before the first device: what devices do in the child of a fork. */
void device_watch_forks(void);
/* How many forks lie between the first process and this one. */
unsigned device_forks(void);

#endif
