/* Runs the blocks of a launch.
 *
 * Small launches run on the caller and wake nobody; one that turns out longer hands its rest to the
 * pool. Blocks start in ascending order, in chunks from one counter. A block that waits for another
 * (YIELD with budget left) is set aside in its frame and resumed in turn; one that only computes long
 * (budget used up) goes on after a look at the stop flag. The caller's thread asks for interrupts.
 */
#include "device/cpu/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BUDGET = 20000,     /* loop rounds between looks at the stop flag */
    AWAKE_NS = 20000,   /* work below this is not worth a spinning pool, */
    ASLEEP_NS = 100000, /* and below this not worth a sleeping one */
    CHUNK_NS = 30000,
    ASK_NS = 30000000,  /* between looks for an interrupt */
    MAX_WAITING = 4096, /* blocks set aside by one worker, */
};
#define MAX_WAITING_BYTES ((size_t)1 << 30) /* and the bytes of their frames */

static _Atomic(bool (*)(void)) interrupt_check;
void device_set_interrupt_check(bool (*check)(void)) { atomic_store(&interrupt_check, check); }

typedef struct launch_job {
    const code *c;
    const code_launch *launch;
    uint64_t nblocks, chunk;
    size_t frame_bytes;
    _Atomic uint64_t next;
    _Atomic uint64_t moves; /* grows when a block ends or computes */
    atomic_bool stop;
    atomic_int status; /* simt_status of who stopped it */
    atomic_flag fault_lock;
    code_fault *fault;
    uint64_t stuck_block;
} launch_job;

typedef struct waiting_block {
    void *frame;
    uint64_t block;
} waiting_block;

typedef struct launch_worker {
    launch_job *job;
    bool caller;
    void *frame;
    code_fault fault;
    uint64_t asked;
    waiting_block *waiting;
    size_t nwaiting, capacity;
} launch_worker;

/* ---- frames: each thread keeps one between launches ---- */

typedef struct kept_frame {
    void *memory;
    size_t bytes;
    bool busy;
} kept_frame;
static _Thread_local kept_frame kept;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void make_key(void) { pthread_key_create(&kept_key, free); }

static void *new_frame(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes < 64 ? 64 : bytes) != 0) return NULL;
    memset(p, 0, 64);
    return p;
}

static void *take_frame(size_t bytes) {
    if (kept.busy) return new_frame(bytes);
    if (kept.bytes < bytes) {
        pthread_once(&kept_once, make_key);
        free(kept.memory);
        kept.memory = new_frame(bytes);
        kept.bytes = kept.memory != NULL ? bytes : 0;
        pthread_setspecific(kept_key, kept.memory);
        if (kept.memory == NULL) return NULL;
    }
    kept.busy = true;
    return kept.memory;
}

static void give_frame(void *p) {
    if (p != NULL && p == kept.memory)
        kept.busy = false;
    else
        free(p);
}

/* ---- stopping ---- */

static void stop_job(launch_job *j, simt_status status) {
    int none = SIMT_OK;
    atomic_compare_exchange_strong(&j->status, &none, (int)status);
    atomic_store(&j->stop, true);
}

static void ask_interrupt(launch_worker *w) {
    uint64_t now = clock_ns();
    if (!w->caller || now - w->asked < ASK_NS) return;
    w->asked = now;
    bool (*check)(void) = atomic_load(&interrupt_check);
    if (check != NULL && check()) stop_job(w->job, SIMT_ERR_INTERRUPT);
}

static bool stopped(launch_worker *w) {
    ask_interrupt(w);
    return atomic_load_explicit(&w->job->stop, memory_order_relaxed);
}

static uint64_t time_limit_ns(void) {
    const char *text = getenv("SIMT_TIME_LIMIT");
    double seconds = text != NULL ? atof(text) : 0;
    return (uint64_t)((seconds > 0 ? seconds : 60) * 1e9);
}

/* ---- blocks ---- */

/* Runs or resumes a block until it is done or waits; false: waits. */
static bool run_block(launch_worker *w, void *frame, uint64_t block, bool resume) {
    launch_job *j = w->job;
    for (;;) {
        int64_t budget = BUDGET;
        code_result r = j->c->run(j->c, j->launch, frame, block, resume, &budget, &w->fault);
        if (__builtin_expect(r != CODE_YIELD, 1)) return true;
        if (budget > 0) return false;
        atomic_fetch_add_explicit(&j->moves, 1, memory_order_relaxed);
        if (stopped(w)) return true;
        resume = true;
    }
}

/* Each waiting block gets one turn; the number that ended. */
static size_t resume_waiting(launch_worker *w) {
    size_t ended = 0;
    for (size_t i = 0; i < w->nwaiting && !atomic_load(&w->job->stop);) {
        if (!run_block(w, w->waiting[i].frame, w->waiting[i].block, true)) {
            i++;
            continue;
        }
        if (atomic_load(&w->job->stop)) break;
        free(w->waiting[i].frame);
        w->waiting[i] = w->waiting[--w->nwaiting];
        atomic_fetch_add(&w->job->moves, 1);
        ended++;
    }
    return ended;
}

/* Until at most `most` blocks wait, or nothing has moved anywhere for the time limit. */
static void wait_for_blocks(launch_worker *w, size_t most) {
    uint64_t since = clock_ns(), limit = time_limit_ns(), moves = atomic_load(&w->job->moves);
    for (unsigned idle = 0; w->nwaiting > most && !stopped(w);) {
        if (resume_waiting(w) > 0) {
            idle = 0;
            continue;
        }
        uint64_t now_moves = atomic_load(&w->job->moves);
        if (now_moves != moves) {
            moves = now_moves;
            since = clock_ns();
        } else if (clock_ns() - since > limit && !atomic_load(&w->job->stop)) {
            w->job->stuck_block = w->waiting[0].block;
            stop_job(w->job, SIMT_ERR_NO_PROGRESS);
        }
        if (++idle > 100)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        else if (idle > 4)
            sched_yield();
    }
}

/* The block in the worker's frame waits: it keeps the frame, the worker gets another. */
static void set_aside(launch_worker *w, uint64_t block) {
    size_t most = MAX_WAITING_BYTES / w->job->frame_bytes;
    if (most > MAX_WAITING) most = MAX_WAITING;
    if (w->nwaiting == w->capacity) {
        size_t capacity = w->capacity * 2 + 16;
        waiting_block *grown = realloc(w->waiting, capacity * sizeof *grown);
        if (grown == NULL) {
            stop_job(w->job, SIMT_ERR_MEMORY);
            return;
        }
        w->waiting = grown;
        w->capacity = capacity;
    }
    void *frame = new_frame(w->job->frame_bytes);
    if (frame == NULL) {
        stop_job(w->job, SIMT_ERR_MEMORY);
        return;
    }
    if (w->frame == kept.memory) { /* the thread's kept frame goes with the block */
        pthread_setspecific(kept_key, NULL);
        kept = (kept_frame){0};
    }
    w->waiting[w->nwaiting++] = (waiting_block){.frame = w->frame, .block = block};
    w->frame = frame;
    if (w->nwaiting > most && most > 0) wait_for_blocks(w, most);
}

static void merge_fault(launch_worker *w) {
    code_fault *f = w->job->fault;
    if (!w->fault.set) return;
    while (atomic_flag_test_and_set(&w->job->fault_lock)) cpu_pause();
    bool earlier =
        w->fault.block < f->block || (w->fault.block == f->block && w->fault.thread < f->thread);
    if (!f->set || earlier) *f = w->fault;
    atomic_flag_clear(&w->job->fault_lock);
}

static bool begin_worker(launch_worker *w, launch_job *j, bool caller) {
    w->job = j;
    w->caller = caller;
    w->fault.set = false;
    w->nwaiting = w->capacity = 0;
    w->waiting = NULL;
    w->asked = 0;
    w->frame = take_frame(j->frame_bytes);
    if (w->frame == NULL) stop_job(j, SIMT_ERR_MEMORY);
    return w->frame != NULL;
}

static void end_worker(launch_worker *w) {
    if (w->nwaiting > 0) wait_for_blocks(w, 0);
    for (size_t i = 0; i < w->nwaiting; i++) free(w->waiting[i].frame);
    free(w->waiting);
    give_frame(w->frame);
    merge_fault(w);
}

static void run_chunks(launch_worker *w) {
    launch_job *j = w->job;
    w->asked = w->caller ? clock_ns() : 0;
    while (!stopped(w)) {
        uint64_t begin = atomic_fetch_add(&j->next, j->chunk);
        if (begin >= j->nblocks) break;
        uint64_t end = j->nblocks - begin < j->chunk ? j->nblocks : begin + j->chunk;
        for (uint64_t b = begin; b < end; b++) {
            if (!run_block(w, w->frame, b, false)) set_aside(w, b);
            if (atomic_load_explicit(&j->stop, memory_order_relaxed)) return;
        }
        if (w->nwaiting > 0) resume_waiting(w);
    }
}

static void work_launch(void *context, int worker) {
    launch_worker w;
    unsigned mode = float_mode_enter();
    if (begin_worker(&w, context, worker == 0)) {
        run_chunks(&w);
        end_worker(&w);
    }
    float_mode_leave(mode);
}

static void idle_launch(void *context) {
    launch_worker w = {.job = context, .caller = true};
    ask_interrupt(&w);
}

/* ---- the choice ---- */

/* Runs blocks on the caller, all of them or until it is clear that the pool would help; the number run. */
static uint64_t run_some(launch_worker *w, bool may_share) {
    launch_job *j = w->job;
    uint64_t start = clock_ticks(), limit = 2 * AWAKE_NS, b = 0;
    w->asked = j->nblocks > 64 ? clock_ns() : 0;
    while (b < j->nblocks) {
        if (!run_block(w, w->frame, b, false)) set_aside(w, b);
        b++;
        if (atomic_load_explicit(&j->stop, memory_order_relaxed)) break;
        if (b == j->nblocks) break;
        uint64_t spent = clock_ticks() - start;
        if (may_share && spent > limit && spent / b * (j->nblocks - b) > 2 * limit) break;
        if ((b & 63) == 0 && stopped(w)) break;
        if (w->nwaiting > 0) resume_waiting(w);
    }
    return b;
}

static simt_status report(launch_job *j) {
    simt_status status = (simt_status)atomic_load(&j->status);
    switch (status) {
    case SIMT_OK: return SIMT_OK;
    case SIMT_ERR_INTERRUPT: return status_fail(status, "kernel %s was interrupted", j->c->name);
    case SIMT_ERR_MEMORY:
        return status_fail(status,
                           "kernel %s: no memory for the state of its blocks (%zu bytes each)",
                           j->c->name, j->frame_bytes);
    default:
        return status_fail(
            status, "kernel %s makes no progress: block %llu waits, and no other block goes on",
            j->c->name, (unsigned long long)j->stuck_block);
    }
}

static void share(pool *p, launch_job *j, uint64_t ns_per_block) {
    uint64_t rest = j->nblocks - j->next, parts = (uint64_t)pool_threads(p) * 16;
    j->chunk = ns_per_block > 0 ? CHUNK_NS / ns_per_block : 1;
    if (j->chunk > rest / parts) j->chunk = rest / parts;
    if (j->chunk == 0) j->chunk = 1;
    if (!pool_run(p, work_launch, j, idle_launch)) work_launch(j, 0);
}

simt_status cpu_launch(pool *p, const code *c, const code_launch *launch, code_fault *fault) {
    launch_job j;
    j.c = c;
    j.launch = launch;
    j.nblocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    j.frame_bytes = ((c->frame_bytes + 63) & ~(size_t)63) + launch->shared_bytes;
    j.fault = fault;
    atomic_init(&j.next, 0);
    atomic_init(&j.moves, 0);
    atomic_init(&j.stop, false);
    atomic_init(&j.status, SIMT_OK);
    atomic_flag_clear(&j.fault_lock);
    fault->set = false;
    if (j.nblocks == 0) return SIMT_OK;
    bool may_share = j.nblocks > 1 && pool_threads(p) > 1 && !pool_inside();
    uint64_t total = c->cost_per_block * j.nblocks;
    if (may_share && total > (pool_awake(p) ? 2 * AWAKE_NS : 2 * ASLEEP_NS)) {
        share(p, &j, c->cost_per_block);
        return report(&j);
    }
    launch_worker w;
    unsigned mode = float_mode_enter();
    uint64_t done = 0, start = may_share ? clock_ns() : 0;
    if (begin_worker(&w, &j, true)) {
        done = run_some(&w, may_share);
        if (done < j.nblocks && !atomic_load(&j.stop)) {
            atomic_store(&j.next, done);
            share(p, &j, (clock_ns() - start) / done);
        }
        end_worker(&w);
    }
    float_mode_leave(mode);
    return report(&j);
}
