/* The CPU device: memory, pool and launches behind the device interface. */
#include "device/cpu/cpu.h"
#include "base/heap.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct cpu_device {
    device base;
    struct cpu_device *next; /* list of all, for fork */
    memory *memory;
    pool *pool;
    char name[80];
} cpu_device;

static simt_status device_alloc(device *d, size_t bytes, void **out) {
    return memory_take(((cpu_device *)d)->memory, bytes, out);
}
static void device_free(device *d, void *p, size_t bytes) {
    memory_give(((cpu_device *)d)->memory, p, bytes);
}
static void device_trim(device *d) { memory_trim(((cpu_device *)d)->memory); }
static size_t device_in_use(device *d) { return memory_in_use(((cpu_device *)d)->memory); }
static size_t device_cached(device *d) { return memory_cached(((cpu_device *)d)->memory); }

static simt_status device_launch(device *d, device_stream *s, const code *c,
                                 const code_launch *launch, code_fault *fault) {
    pool *p = ((cpu_device *)d)->pool;
    if (c->nstructs == 0) return cpu_launch(p, (const code_blocks *)c, launch, fault);
    uint64_t *args = code_copy_structs(c, launch->args);
    if (args == NULL)
        return status_fail(SIMT_ERR_MEMORY, "kernel %s: no memory for its parameters", c->name);
    code_launch own = *launch;
    own.args = args;
    simt_status status = cpu_launch(p, (const code_blocks *)c, &own, fault);
    heap_free(args);
    return status;
}

static double device_block_cost(const device *d, const code *c) {
    return (double)((const code_blocks *)c)->cost_per_block / d->nthreads;
}

/* ---- parallel ----
 *
 * The work is cut into as many parts as there are workers. A worker begins with its own, so that it finds
 * in its cache what it worked on the last time, and then helps the others. */

enum {
    CALM_NS = 10000000, /* that a piece of work should take at most, so that interrupts are heard */
    MOST_PARTS = 16
};

typedef struct parallel_part {
    _Alignas(64) atomic_size_t next;
    size_t end;
} parallel_part;

typedef struct parallel_job {
    simt_status (*fn)(void *context, size_t begin, size_t end);
    void *context;
    size_t grain, chunk;
    unsigned nparts;
    parallel_part parts[MOST_PARTS];
    atomic_int failed; /* 1: diag says why, once all have ended */
    simt_diag diag;
    uint64_t asked; /* for interrupts */
} parallel_job;

/* The first failure counts. */
static void fail_parallel(parallel_job *j) {
    int none = 0;
    if (atomic_compare_exchange_strong(&j->failed, &none, 1)) j->diag = *status_get();
}

static void ask_parallel(void *context) { /* on the caller's thread */
    parallel_job *j = context;
    if (!cpu_interrupted(&j->asked, clock_ns())) return;
    status_fail(SIMT_ERR_INTERRUPT, "interrupted");
    fail_parallel(j);
}

static void work_part(parallel_job *j, parallel_part *part, bool caller, size_t *piece) {
    uint64_t start = clock_ns();
    while (atomic_load(&j->failed) == 0) {
        size_t begin = atomic_fetch_add(&part->next, *piece);
        if (begin >= part->end) break;
        size_t end = part->end - begin < *piece ? part->end : begin + *piece;
        if (j->fn(j->context, begin, end) != SIMT_OK) fail_parallel(j);
        if (caller) ask_parallel(j);
        uint64_t now = clock_ns(), calm = CALM_NS * (end - begin) / (now - start + 1);
        *piece = calm > j->chunk ? j->chunk : calm < j->grain ? j->grain : (size_t)calm;
        start = now;
    }
}

static void work_parallel(void *context, int worker) {
    parallel_job *j = context;
    unsigned mode = float_mode_enter();
    /* the first piece is small: it shows how long the others may be */
    size_t piece = j->chunk / 8 > j->grain ? j->chunk / 8 : j->grain;
    for (unsigned i = 0; i < j->nparts; i++)
        work_part(j, &j->parts[((unsigned)worker + i) % j->nparts], worker == 0, &piece);
    float_mode_leave(mode);
}

static simt_status device_parallel(device *d, size_t count, size_t grain,
                                   simt_status (*fn)(void *context, size_t begin, size_t end),
                                   void *context) {
    cpu_device *cpu = (cpu_device *)d;
    if (grain == 0) grain = 1;
    if (count == 0) return SIMT_OK;
    if (count <= grain || pool_inside()) {
        unsigned mode = float_mode_enter();
        simt_status status = fn(context, 0, count);
        float_mode_leave(mode);
        return status;
    }
    parallel_job j;
    j.fn = fn;
    j.context = context;
    j.grain = grain;
    j.chunk = count / ((size_t)pool_threads(cpu->pool) * 8);
    if (j.chunk < grain) j.chunk = grain;
    j.nparts = (unsigned)pool_threads(cpu->pool);
    if (j.nparts > MOST_PARTS) j.nparts = MOST_PARTS;
    for (unsigned i = 0; i < j.nparts; i++) {
        atomic_init(&j.parts[i].next, count * i / j.nparts);
        j.parts[i].end = count * (i + 1) / j.nparts;
    }
    atomic_init(&j.failed, 0);
    j.asked = clock_ns();
    if (!pool_run(cpu->pool, work_parallel, &j, ask_parallel)) work_parallel(&j, 0);
    return atomic_load(&j.failed) != 0 ? status_adopt(&j.diag) : SIMT_OK;
}

/* ---- copies ---- */

enum { LARGE_COPY = 1 << 18 };

typedef struct copy_job {
    char *to;
    const char *from;
} copy_job;
static simt_status copy_part(void *context, size_t begin, size_t end) {
    const copy_job *j = context;
    memcpy(j->to + begin, j->from + begin, end - begin);
    return SIMT_OK;
}

static simt_status device_copy_bytes(device *d, device_stream *s, device_way way, void *to,
                                     const void *from, size_t bytes) {
    copy_job job = {to, from};
    if (bytes < LARGE_COPY) {
        if (bytes > 0) memcpy(to, from, bytes);
        return SIMT_OK;
    }
    bool held = device_hold_interrupts(true); /* short, and nobody wants half of it */
    simt_status status = device_parallel(d, bytes, LARGE_COPY, copy_part, &job);
    device_hold_interrupts(held);
    return status;
}

static simt_status device_set(device *d, device_stream *s, void *at, int byte, size_t bytes) {
    if (bytes > 0) memset(at, byte, bytes);
    return SIMT_OK;
}

/* ---- streams and events: all work is done when it has been submitted ---- */

struct device_stream {
    char nothing;
};
struct device_event {
    uint64_t ns;
};

static simt_status device_stream_new(device *d, device_stream **out) {
    *out = heap_zeroed(1, sizeof **out);
    return *out != NULL ? SIMT_OK : status_fail(SIMT_ERR_MEMORY, "no memory for a stream");
}
static void device_stream_free(device *d, device_stream *s) { heap_free(s); }
static simt_status device_wait(device *d, device_stream *s) { return SIMT_OK; }

static simt_status device_event_new(device *d, device_event **out) {
    *out = heap_zeroed(1, sizeof **out);
    return *out != NULL ? SIMT_OK : status_fail(SIMT_ERR_MEMORY, "no memory for an event");
}
static void device_event_free(device *d, device_event *e) { heap_free(e); }
static simt_status device_event_record(device *d, device_event *e, device_stream *s) {
    e->ns = clock_ns();
    return SIMT_OK;
}
static simt_status device_event_wait(device *d, device_event *e, device_stream *s) {
    return SIMT_OK;
}
static double device_event_ms(device *d, const device_event *from, const device_event *to) {
    return ((double)to->ns - (double)from->ns) * 1e-6;
}

/* ---- facts ---- */

static int count_threads(int threads) {
    const char *text = getenv("SIMT_NUM_THREADS");
    if (threads <= 0 && text != NULL) { /* a number and nothing else, as simt._machine reads it */
        char *end;
        long asked = strtol(text, &end, 10);
        if (*end == '\0' && asked > 0 && asked <= INT_MAX) threads = (int)asked;
    }
    if (threads > 0) return threads;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static const char *simd_name(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return "AVX-512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2";
    return "SSE2";
#else
    return "portable";
#endif
}

/* ---- forks ----
 *
 * No lock is taken around a fork: a launch may run for long and may need the interpreter's lock, which
 * the forking thread holds. The child simply starts over. */

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static cpu_device *devices;
static unsigned forks;

static void after_fork_in_child(void) {
    forks++;
    pthread_mutex_init(&devices_lock, NULL);
    for (cpu_device *d = devices; d != NULL; d = d->next) {
        memory_forget(d->memory);
        pool_forget(d->pool);
    }
}

void device_watch_forks(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }
unsigned device_forks(void) { return forks; }

static void add_device(cpu_device *d) {
    pthread_mutex_lock(&devices_lock);
    d->next = devices;
    devices = d;
    pthread_mutex_unlock(&devices_lock);
}

static void remove_device(cpu_device *d) {
    pthread_mutex_lock(&devices_lock);
    for (cpu_device **at = &devices; *at != NULL; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            break;
        }
    pthread_mutex_unlock(&devices_lock);
}

/* ---- making ---- */

enum { MOST_BLOCK = 4096 }; /* longer blocks cost less, until their values leave the cache */

static void device_destroy(device *d) {
    cpu_device *cpu = (cpu_device *)d;
    if (cpu == NULL) return;
    remove_device(cpu);
    pool_free(cpu->pool);
    memory_free(cpu->memory);
    heap_free(cpu);
}

simt_status device_cpu_new(int threads, device **out) {
    cpu_device *cpu = heap_zeroed(1, sizeof *cpu);
    if (cpu == NULL) return status_fail(SIMT_ERR_MEMORY, "no memory for the CPU device");
    cpu->memory = memory_new();
    cpu->pool = pool_new(count_threads(threads));
    if (cpu->memory == NULL || cpu->pool == NULL) {
        device_destroy(&cpu->base);
        return status_fail(SIMT_ERR_MEMORY, "no memory for the CPU device");
    }
    int n = pool_threads(cpu->pool);
    snprintf(cpu->name, sizeof cpu->name, "simt CPU (%s, %d thread%s)", simd_name(), n,
             n == 1 ? "" : "s");
    cpu->base = (device){.name = cpu->name,
                         .nthreads = n,
                         .most_threads = MOST_BLOCK,
                         .is_host = true,
                         .prompt = true,
                         .alloc = device_alloc,
                         .free = device_free,
                         .trim = device_trim,
                         .runs = CODE_BLOCKS,
                         .block_cost = device_block_cost,
                         .copy = device_copy_bytes,
                         .set = device_set,
                         .launch = device_launch,
                         .stream_new = device_stream_new,
                         .stream_free = device_stream_free,
                         .wait = device_wait,
                         .event_new = device_event_new,
                         .event_free = device_event_free,
                         .event_record = device_event_record,
                         .event_wait = device_event_wait,
                         .event_ms = device_event_ms,
                         .parallel = device_parallel,
                         .bytes_in_use = device_in_use,
                         .bytes_cached = device_cached,
                         .destroy = device_destroy};
    add_device(cpu);
    *out = &cpu->base;
    return SIMT_OK;
}
