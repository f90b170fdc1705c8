/* A device: memory, copies and the execution of compiled code. Never compiles. Thread-safe.
 *
 * What may take long is submitted to a stream: work on one stream happens in the order of submission (NULL:
 * the device's own stream). What it leaves for the host (bytes copied out, faults, failures) is there
 * when `wait` for the stream has returned. A `prompt` device has done all work when the call returns, which
 * returns the failures too; nobody needs to wait for it. */
#ifndef SIMT_DEVICE_DEVICE_H
#define SIMT_DEVICE_DEVICE_H

#include "base/code.h"
#include "base/status.h"

typedef struct device device;
typedef struct device_stream device_stream;
typedef struct device_event device_event;
typedef enum device_way { DEVICE_IN, DEVICE_OUT, DEVICE_WITHIN } device_way; /* of a copy */

struct device {
    const char *name; /* "simt CPU (AVX-512, 2 threads)" */
    int nthreads;
    uint32_t most_threads; /* that a block of array operations may have, at least 1024 */
    bool
        is_host; /* its memory is the host's, which may touch it; else addresses are only numbers */
    bool prompt;
    code_kind runs; /* the kind of code it can run */
    /* 64-byte aligned; bytes may be 0 (then a valid, distinct address). Memory is not cleared.
     * Failure: SIMT_ERR_MEMORY naming the size. */
    simt_status (*alloc)(device *d, size_t bytes, void **out);
    void (*free)(device *d, void *memory,
                 size_t bytes); /* bytes as given to alloc; kept in the cache */
    void (*trim)(device *d);    /* gives cached memory back */
    /* Rough ns that a block takes when all workers are at work; 0: unknown. */
    double (*block_cost)(const device *d, const code *c);
    /* IN: from the host, whose bytes are free again when it returns; OUT: to the host; WITHIN: between
     * places that do not overlap. Neither interrupted nor stopped. */
    simt_status (*copy)(device *d, device_stream *s, device_way way, void *to, const void *from,
                        size_t bytes);
    simt_status (*set)(device *d, device_stream *s, void *at, int byte, size_t bytes); /* memset */
    /* Runs all blocks. Small launches on the CPU run on the calling thread and wake nobody. A fault of the
     * program: SIMT_ERR_INDEX or SIMT_ERR_RUNTIME is the *caller's* to make from *fault (which has to stay
     * until the stream was waited for); the launch is OK with fault->set. Arguments are read at once.
     * Interrupted (Ctrl-C): SIMT_ERR_INTERRUPT. Time limit or no progress: SIMT_ERR_NO_PROGRESS.
     * A launch marked `whole` is interrupted before it begins or not at all. */
    simt_status (*launch)(device *d, device_stream *s, const code *c, const code_launch *launch,
                          code_fault *fault);
    simt_status (*stream_new)(device *d, device_stream **out);
    void (*stream_free)(device *d, device_stream *s); /* its work has been waited for */
    /* Returns when the work of the stream is done: the first failure of it since the last wait. */
    simt_status (*wait)(device *d, device_stream *s);
    /* A point in a stream: recorded there, awaited by the host or by another stream (s NULL: the host). */
    simt_status (*event_new)(device *d, device_event **out);
    void (*event_free)(device *d, device_event *e);
    simt_status (*event_record)(device *d, device_event *e, device_stream *s);
    simt_status (*event_wait)(device *d, device_event *e, device_stream *s);
    double (*event_ms)(device *d, const device_event *from, const device_event *to); /* both over */
    /* Only where is_host: runs fn(context, begin, end) over [0, count) in dynamic chunks of at least `grain`,
     * on all workers; for library calls (GEMM slices, im2col, gathers). A call from inside a worker runs
     * serially. The first failure is returned (its diagnostic in the calling thread). Interrupted between
     * chunks, unless held: SIMT_ERR_INTERRUPT. */
    simt_status (*parallel)(device *d, size_t count, size_t grain,
                            simt_status (*fn)(void *context, size_t begin, size_t end),
                            void *context);
    size_t (*bytes_in_use)(device *d);
    size_t (*bytes_cached)(device *d);
    void (*destroy)(device *d);
};

/* A copy, and the wait for it. */
static inline simt_status device_copy(device *d, device_way way, void *to, const void *from,
                                      size_t bytes) {
    simt_status status = d->copy(d, NULL, way, to, from, bytes);
    return status == SIMT_OK && !d->prompt ? d->wait(d, NULL) : status;
}

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
