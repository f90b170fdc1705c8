/* Worker threads that run one job at a time together with the caller.
 *
 * Waking a sleeping thread costs 30-50 us, a spinning one 0.3 us, so workers spin before they sleep:
 * SPIN_NS where jobs have been coming sooner than that, else SHORT_SPIN_NS. A job has a gate: workers
 * that arrive while it is open count themselves in; the caller closes it when its own part is done, and
 * waits only for those inside: a worker that wakes late is not missed.
 * After fork the child has no workers: pool_forget makes the pool start new ones when needed. A job that
 * was on its way then lacks what they were to do; whoever waits for it (a signal handler forked) sees by
 * device_forks that it is not done.
 */
#include "base/heap.h"
#include "device/cpu/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* Where the machine is busy, a spinning worker may hold the core that the caller is to run on: an MLP's
 * training step took 540, 500, 465, 430 us when workers always spun for 150, 100, 60, 20 us, and 450 us
 * with these. */
enum { SPIN_NS = 100000, SHORT_SPIN_NS = 20000, LONG_GAP_NS = 1000000, MAX_THREADS = 256 };
#define GATE_OPEN 0x80000000u

struct pool {
    int nthreads;             /* with the caller */
    pthread_mutex_t job_lock; /* one job at a time */
    pthread_mutex_t sleep_lock;
    pthread_cond_t sleep_cond;
    atomic_bool started; /* both are written under the job lock and looked at without it */
    atomic_int nstarted;
    pthread_t threads[MAX_THREADS];
    pool_work fn;
    void *context;
    _Alignas(64) atomic_uint sequence; /* of jobs; changes when there is a new one */
    _Alignas(64) atomic_uint gate;     /* GATE_OPEN, and the workers inside */
    atomic_int sleepers;
    atomic_bool stop;
};

static _Thread_local bool inside;

uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool pool_inside(void) { return inside; }
int pool_threads(const pool *p) { return p->nthreads; }
bool pool_awake(pool *p) {
    return p->started && atomic_load_explicit(&p->sleepers, memory_order_relaxed) < p->nstarted;
}

static bool enter_gate(pool *p) {
    unsigned g = atomic_load(&p->gate);
    while (g & GATE_OPEN)
        if (atomic_compare_exchange_weak(&p->gate, &g, g + 1)) return true;
    return false;
}

static bool spin_for_job(pool *p, unsigned seen, uint64_t end) {
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&p->sequence, memory_order_acquire) != seen) return true;
            cpu_pause();
        }
    } while (clock_ns() < end && !atomic_load(&p->stop));
    return false;
}

static void sleep_for_job(pool *p, unsigned seen) {
    pthread_mutex_lock(&p->sleep_lock);
    atomic_fetch_add(&p->sleepers, 1); /* before the last look: run_job looks the other way round */
    while (atomic_load(&p->sequence) == seen && !atomic_load(&p->stop))
        pthread_cond_wait(&p->sleep_cond, &p->sleep_lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->sleep_lock);
}

/* *gap: the mean time between jobs of late. */
static void await_job(pool *p, unsigned seen, uint64_t *gap) {
    uint64_t start = clock_ns();
    if (!spin_for_job(p, seen, start + (*gap < SPIN_NS ? SPIN_NS : SHORT_SPIN_NS)))
        sleep_for_job(p, seen);
    uint64_t took = clock_ns() - start;
    *gap = (3 * *gap + (took < LONG_GAP_NS ? took : LONG_GAP_NS)) / 4;
}

typedef struct worker_start {
    pool *p;
    int worker;
    unsigned seen;
} worker_start;

static void *run_worker(void *argument) {
    worker_start s = *(worker_start *)argument;
    heap_free(argument);
    inside = true;
    unsigned seen = s.seen;
    uint64_t gap = 0;
    while (!atomic_load(&s.p->stop)) {
        unsigned now = atomic_load(&s.p->sequence);
        if (now == seen) {
            await_job(s.p, seen, &gap);
            continue;
        }
        seen = now;
        if (!enter_gate(s.p)) continue;
        s.p->fn(s.p->context, s.worker);
        atomic_fetch_sub(&s.p->gate, 1);
    }
    return NULL;
}

static void start_workers(pool *p) {
    p->started = true;
    for (int i = 1; i < p->nthreads; i++) {
        worker_start *s = heap_alloc(sizeof *s);
        if (s == NULL) return;
        *s = (worker_start){.p = p, .worker = i, .seen = atomic_load(&p->sequence)};
        if (heap_denies() || pthread_create(&p->threads[p->nstarted], NULL, run_worker, s) != 0) {
            heap_free(s);
            return;
        }
        p->nstarted++;
    }
}

static void init_sync(pool *p) {
    pthread_mutex_init(&p->job_lock, NULL);
    pthread_mutex_init(&p->sleep_lock, NULL);
    pthread_cond_init(&p->sleep_cond, NULL);
    p->started = false;
    p->nstarted = 0;
    atomic_store(&p->gate, 0);
    atomic_store(&p->sleepers, 0);
}

void pool_forget(pool *p) {
    init_sync(p);
    inside = false;
}

pool *pool_new(int nthreads) {
    pool *p = heap_aligned(64, sizeof *p);
    if (p == NULL) return NULL;
    *p = (pool){.nthreads = nthreads < 1 ? 1 : nthreads > MAX_THREADS ? MAX_THREADS : nthreads};
    init_sync(p);
    return p;
}

void pool_free(pool *p) {
    if (p == NULL) return;
    pthread_mutex_lock(&p->sleep_lock);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->sleep_cond);
    pthread_mutex_unlock(&p->sleep_lock);
    for (int i = 0; i < p->nstarted; i++) pthread_join(p->threads[i], NULL);
    heap_free(p);
}

static void await_workers(pool *p, void *context, void (*idle)(void *context)) {
    uint64_t start = clock_ns(), asked = start;
    while (atomic_load(&p->gate) != 0) {
        for (int i = 0; i < 64 && atomic_load_explicit(&p->gate, memory_order_acquire) != 0; i++)
            cpu_pause();
        uint64_t now = clock_ns();
        if (now - start > 100000) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        if (idle != NULL && now - asked > 20000000) {
            asked = now;
            idle(context);
        }
    }
}

bool pool_run(pool *p, pool_work fn, void *context, void (*idle)(void *context)) {
    if (p->nthreads == 1 || inside || pthread_mutex_trylock(&p->job_lock) != 0) return false;
    unsigned forks = device_forks();
    if (!p->started) start_workers(p);
    p->fn = fn;
    p->context = context;
    inside = true;
    atomic_store(&p->gate, GATE_OPEN);
    atomic_fetch_add(&p->sequence, 1);
    if (atomic_load(&p->sleepers) > 0) {
        pthread_mutex_lock(&p->sleep_lock);
        pthread_cond_broadcast(&p->sleep_cond);
        pthread_mutex_unlock(&p->sleep_lock);
    }
    fn(context, 0);
    atomic_fetch_and(&p->gate, ~GATE_OPEN);
    await_workers(p, context, idle);
    inside = false;
    if (forks == device_forks()) pthread_mutex_unlock(&p->job_lock);
    return true;
}
