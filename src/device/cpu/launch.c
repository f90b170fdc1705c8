/* Runs the blocks of a launch.
 *
 * Small launches run on the caller and wake nobody; one that turns out longer hands its rest to the
 * pool. Blocks start in ascending order, in chunks from one counter. A block that waits for another
 * (YIELD with budget left) is set aside in its frame and resumed in turn; one that only computes long
 * (budget used up) goes on after a look at the stop flag, unless its time slice is over and others wait
 * for a turn: then it is set aside too. The caller's thread asks for interrupts.
 */
#include "base/heap.h"
#include "device/cpu/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BUDGET = 20000,       /* loop rounds between looks at the stop flag: about a millisecond */
    SLICE_NS = 100000000, /* that a block computes while others wait for a turn */
    AWAKE_NS = 5000,      /* work below this is not worth a spinning pool, */
    ASLEEP_NS = 100000,   /* and below this not worth a sleeping one */
    CHUNK_NS = 30000,
    ASK_NS = 30000000,   /* between looks for an interrupt */
    MAX_WAITING = 65536, /* blocks set aside by one worker, */
};
#define MAX_WAITING_BYTES ((size_t)2 << 30) /* and the bytes of their frames */
#define NO_PROGRESS_NS    60000000000ull
#define NOT_READ          UINT64_MAX

static _Atomic(bool (*)(void)) interrupt_check;
static _Thread_local bool held;
void device_set_interrupt_check(bool (*check)(void)) { atomic_store(&interrupt_check, check); }
bool device_hold_interrupts(bool hold) {
    bool before = held;
    held = hold;
    return before;
}

typedef struct launch_worker launch_worker;
typedef struct launch_job {
    const code_blocks *c;
    const code_launch *launch;
    code_launch own; /* where its blocks share something: what `launch` points to */
    uint64_t nblocks, chunk;
    size_t frame_bytes;
    unsigned forks; /* device_forks at the start */
    _Atomic uint64_t next;
    _Atomic uint64_t moves; /* grows when a block ends or computes */
    atomic_bool stop;
    atomic_int status; /* simt_status of who stopped it */
    atomic_flag fault_lock;
    code_fault *fault;
    _Atomic uint64_t began; /* clock when the first look at it was needed; 0: not yet */
    code_meeting meeting;
    code_memory memory;
    launch_worker
        *first; /* ran blocks before the pool did: the caller goes on with what waits there */
    atomic_flag stop_lock; /* guards the two below: what is reported */
    code_fault at;
    uint64_t stop_block; /* or, where at.at_what is NULL, how many had been started */
} launch_job;

typedef struct waiting_block {
    void *frame;
    uint64_t block;
} waiting_block;

struct launch_worker {
    launch_job *job;
    bool caller;
    void *frame;
    code_fault fault;
    uint64_t asked;
    uint64_t limit_ns; /* time limit; 0: none; NOT_READ: not looked up yet */
    waiting_block *waiting;
    size_t nwaiting, capacity, turn;
};

/* ---- frames: each thread keeps one between launches ---- */

typedef struct kept_frame {
    void *memory;
    size_t bytes;
    bool busy;
} kept_frame;
static _Thread_local kept_frame kept;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void make_key(void) { pthread_key_create(&kept_key, heap_free); }

static void *new_frame(size_t bytes) {
    void *p = heap_aligned(64, bytes < 64 ? 64 : bytes);
    if (p == NULL) return NULL;
    memset(p, 0, 64);
    return p;
}

static void *take_frame(size_t bytes) {
    if (kept.busy) return new_frame(bytes);
    if (kept.bytes < bytes) {
        pthread_once(&kept_once, make_key);
        heap_free(kept.memory);
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
        heap_free(p);
}

/* ---- stopping ---- */

static void stop_job(launch_job *j, simt_status status) {
    int none = SIMT_OK;
    atomic_compare_exchange_strong(&j->status, &none, (int)status);
    atomic_store(&j->stop, true);
}

/* Stops because of what a block does; the first report counts. */
static void stop_at(launch_worker *w, simt_status status, uint64_t block) {
    launch_job *j = w->job;
    while (atomic_flag_test_and_set(&j->stop_lock)) cpu_pause();
    if (!atomic_load(&j->stop)) {
        j->at = w->fault;
        j->stop_block = w->fault.at_what != NULL ? w->fault.at_block : block;
        stop_job(j, status);
    }
    atomic_flag_clear(&j->stop_lock);
}

bool cpu_interrupted(uint64_t *asked, uint64_t now) {
    if (held || now - *asked < ASK_NS) return false;
    *asked = now;
    unsigned forks = device_forks();
    bool (*check)(void) = atomic_load(&interrupt_check);
    return check != NULL && (check() || forks != device_forks());
}

bool device_interrupted(void) {
    bool (*check)(void) = atomic_load(&interrupt_check);
    return check != NULL && check();
}

static void ask_interrupt(launch_worker *w, uint64_t now) {
    if (!w->caller || w->job->launch->whole) return;
    if (cpu_interrupted(&w->asked, now)) stop_job(w->job, SIMT_ERR_INTERRUPT);
}

/* SIMT_TIME_LIMIT in ns, or 0. */
static uint64_t time_limit_ns(void) {
    const char *text = getenv("SIMT_TIME_LIMIT");
    double seconds = text != NULL ? atof(text) : 0;
    return seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : 0;
}

static void watch_limit(launch_worker *w, uint64_t now, uint64_t block) {
    launch_job *j = w->job;
    uint64_t began = 0;
    if (j->launch->whole) return;
    if (atomic_compare_exchange_strong(&j->began, &began, now)) began = now;
    if (now - began < 1000000)
        return; /* reading the environment takes longer than a small launch */
    if (w->limit_ns == NOT_READ) w->limit_ns = time_limit_ns();
    if (w->limit_ns > 0 && now - began > w->limit_ns) stop_at(w, SIMT_ERR_TIME_LIMIT, block);
}

/* block: which one is on its way, or, where it has not said where it is, how many were started. */
static bool stopped(launch_worker *w, uint64_t block) {
    uint64_t now = clock_ns();
    ask_interrupt(w, now);
    watch_limit(w, now, block);
    return atomic_load_explicit(&w->job->stop, memory_order_relaxed);
}

/* ---- blocks ---- */

static bool others_wait(const launch_worker *w) {
    const launch_job *j = w->job;
    return w->nwaiting > 0 ||
           (j->nblocks > 1 && atomic_load_explicit(&j->next, memory_order_relaxed) < j->nblocks);
}

/* Runs or resumes a block until it is done or waits, or others should have a turn; false: not done. */
static bool run_block(launch_worker *w, void *frame, uint64_t block, bool resume) {
    launch_job *j = w->job;
    for (uint64_t began = 0;;) {
        int64_t budget = BUDGET;
        code_result r = j->c->run(j->c, j->launch, frame, block, resume, &budget, &w->fault);
        if (__builtin_expect(r == CODE_DONE, 1)) {
            if (j->c->meets) code_meeting_leave(&j->meeting);
            return true;
        }
        if (r == CODE_STUCK) stop_at(w, SIMT_ERR_NO_PROGRESS, block);
        if (r == CODE_NO_MEMORY) stop_job(j, SIMT_ERR_MEMORY);
        if (r != CODE_YIELD) return true;
        if (budget > 0) return false;
        atomic_fetch_add_explicit(&j->moves, 1, memory_order_relaxed);
        if (stopped(w, block)) return true;
        uint64_t now = clock_ns();
        if (began == 0)
            began = now;
        else if (now - began > SLICE_NS && others_wait(w))
            return false;
        resume = true;
    }
}

/* The next `turns` waiting blocks get one turn each; the number that ended. */
static size_t resume_waiting(launch_worker *w, size_t turns) {
    size_t ended = 0;
    for (; turns > 0 && w->nwaiting > 0 && !atomic_load(&w->job->stop); turns--) {
        size_t i = w->turn < w->nwaiting ? w->turn : 0;
        w->turn = i + 1;
        if (!run_block(w, w->waiting[i].frame, w->waiting[i].block, true)) continue;
        if (atomic_load(&w->job->stop)) break;
        heap_free(w->waiting[i].frame);
        w->waiting[i] = w->waiting[--w->nwaiting];
        w->turn = i;
        atomic_fetch_add(&w->job->moves, 1);
        ended++;
    }
    return ended;
}

/* A minute; less under a time limit, which would say less about what is wrong. */
static uint64_t patience_ns(launch_worker *w) {
    if (w->limit_ns == NOT_READ) w->limit_ns = time_limit_ns();
    uint64_t part = w->limit_ns / 4 * 3;
    return part > 0 && part < NO_PROGRESS_NS ? part : NO_PROGRESS_NS;
}

/* Until at most `most` blocks wait, or nothing has moved anywhere for long. */
static void wait_for_blocks(launch_worker *w, size_t most) {
    launch_job *j = w->job;
    uint64_t since = clock_ns(), moves = atomic_load(&j->moves);
    for (unsigned idle = 0; w->nwaiting > most && !stopped(w, w->waiting[0].block);) {
        if (resume_waiting(w, w->nwaiting) > 0) {
            idle = 0;
            continue;
        }
        uint64_t now_moves = atomic_load(&j->moves) + j->meeting.round;
        if (now_moves != moves) {
            moves = now_moves;
            since = clock_ns();
            idle = 0;
        } else if (clock_ns() - since > patience_ns(w)) {
            stop_at(w, SIMT_ERR_NO_PROGRESS, w->waiting[0].block);
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
        waiting_block *grown = heap_resize(w->waiting, capacity * sizeof *grown);
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
    w->fault = (code_fault){0};
    w->limit_ns = NOT_READ;
    w->nwaiting = w->capacity = w->turn = 0;
    w->waiting = NULL;
    if (caller && j->first != NULL) {
        w->waiting = j->first->waiting;
        w->nwaiting = j->first->nwaiting, w->capacity = j->first->capacity;
        j->first->waiting = NULL;
        j->first->nwaiting = j->first->capacity = 0;
    }
    w->asked = 0;
    w->frame = take_frame(j->frame_bytes);
    if (w->frame == NULL && caller) stop_job(j, SIMT_ERR_MEMORY); /* the others are not needed */
    return w->frame != NULL;
}

static void end_worker(launch_worker *w) {
    if (w->nwaiting > 0) wait_for_blocks(w, 0);
    for (size_t i = 0; i < w->nwaiting; i++) heap_free(w->waiting[i].frame);
    heap_free(w->waiting);
    give_frame(w->frame);
    merge_fault(w);
}

static void run_chunks(launch_worker *w) {
    launch_job *j = w->job;
    w->asked = w->caller ? clock_ns() : 0;
    for (;;) {
        if (w->nwaiting == 0) w->fault.at_what = NULL; /* where a block was that has ended */
        if (stopped(w, atomic_load_explicit(&j->next, memory_order_relaxed))) break;
        uint64_t begin = atomic_fetch_add(&j->next, j->chunk);
        if (begin >= j->nblocks) break;
        uint64_t end = j->nblocks - begin < j->chunk ? j->nblocks : begin + j->chunk;
        for (uint64_t b = begin; b < end; b++) {
            if (!run_block(w, w->frame, b, false)) set_aside(w, b);
            if (atomic_load_explicit(&j->stop, memory_order_relaxed)) return;
        }
        if (w->nwaiting > 0) resume_waiting(w, 1); /* new blocks come first */
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
    ask_interrupt(&w, clock_ns());
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
        if (w->nwaiting == 0) w->fault.at_what = NULL; /* where a block was that has ended */
        if ((b & 63) == 0 && stopped(w, b)) break;
        if (w->nwaiting > 0) resume_waiting(w, 1); /* new blocks come first */
    }
    return b;
}

/* Stopped while no block was on its way, that is known. */
static simt_status report_between(const launch_job *j, simt_status status) {
    uint64_t started = j->stop_block < j->nblocks ? j->stop_block : j->nblocks;
    if (status != SIMT_ERR_TIME_LIMIT)
        return status_fail(status, "kernel %s makes no progress", j->c->base.name);
    return status_fail(
        status,
        "kernel %s ran for more than %g s and was stopped: %.3g %% of its blocks had "
        "been started",
        j->c->base.name, (double)time_limit_ns() * 1e-9,
        100.0 * (double)started / (double)j->nblocks);
}

static simt_status report_stopped(const launch_job *j, simt_status status) {
    const code_blocks *c = j->c;
    const code_fault *at = &j->at;
    unsigned long long block = j->stop_block;
    const char *what = at->at_what;
    if (what == NULL) return report_between(j, status);
    if (status == SIMT_ERR_TIME_LIMIT)
        status_fail(
            status,
            "kernel %s ran for more than %g s and was stopped: block %llu is in the %s of line %u",
            c->base.name, (double)time_limit_ns() * 1e-9, block, what, at->at.line);
    else
        status_fail(status,
                    "kernel %s makes no progress: block %llu, thread %u waits at the %s of line %u "
                    "for what cannot come",
                    c->base.name, block, at->at_thread, what, at->at.line);
    if (at->at.line > 0) status_set_source(c->base.name, c->base.file, c->base.calls, at->at);
    return status;
}

static simt_status report(launch_job *j) {
    simt_status status = (simt_status)atomic_load(&j->status);
    switch (status) {
    case SIMT_OK: return SIMT_OK;
    case SIMT_ERR_INTERRUPT:
        if (j->forks != device_forks())
            return status_fail(SIMT_ERR_RUNTIME,
                               "kernel %s was running when a signal handler forked the process: in "
                               "the child it is not complete",
                               j->c->base.name);
        return status_fail(status, "kernel %s was interrupted", j->c->base.name);
    case SIMT_ERR_MEMORY:
        if (j->c->recurses)
            return status_fail(status, "kernel %s: no memory for the state of its calls",
                               j->c->base.name);
        return status_fail(status,
                           "kernel %s: no memory for the state of its blocks (%zu bytes each)",
                           j->c->base.name, j->frame_bytes);
    default: return report_stopped(j, status);
    }
}

static void share(pool *p, launch_job *j, uint64_t ns_per_block) {
    uint64_t rest = j->nblocks - j->next, parts = (uint64_t)pool_threads(p) * 16;
    j->chunk = ns_per_block > 0 ? CHUNK_NS / ns_per_block : 1;
    if (j->chunk > rest / parts) j->chunk = rest / parts;
    if (j->chunk == 0) j->chunk = 1;
    if (!pool_run(p, work_launch, j, idle_launch)) work_launch(j, 0);
}

static simt_status run_job(pool *p, launch_job *j) {
    bool may_share = j->nblocks > 1 && pool_threads(p) > 1 && !pool_inside();
    uint64_t total = j->c->cost_per_block * j->nblocks;
    if (may_share && total > (pool_awake(p) ? 2 * AWAKE_NS : 2 * ASLEEP_NS)) {
        share(p, j, j->c->cost_per_block);
        return report(j);
    }
    launch_worker w;
    unsigned mode = float_mode_enter();
    uint64_t done = 0, start = may_share ? clock_ns() : 0;
    if (begin_worker(&w, j, true)) {
        done = run_some(&w, may_share);
        if (done < j->nblocks && !atomic_load(&j->stop)) {
            atomic_store(&j->next, done);
            j->first = &w;
            share(p, j, (clock_ns() - start) / done);
            j->first = NULL;
        }
        end_worker(&w);
    }
    float_mode_leave(mode);
    return report(j);
}

/* Asks before a launch that will not ask while it runs, unless it is held; the last answer holds for a
 * while. */
static simt_status ask_before(const code_blocks *c) {
    static _Atomic uint64_t last;
    uint64_t now = clock_ns(), asked = atomic_load_explicit(&last, memory_order_relaxed);
    if (now - asked < ASK_NS) return SIMT_OK;
    bool stop = cpu_interrupted(&asked, now);
    atomic_store_explicit(&last, asked, memory_order_relaxed);
    if (!stop) return SIMT_OK;
    return status_fail(SIMT_ERR_INTERRUPT, "kernel %s was interrupted", c->base.name);
}

/* With what the blocks of the launch share. */
static simt_status run_with_shared(pool *p, launch_job *j) {
    j->own = *j->launch;
    j->launch = &j->own;
    if (j->c->meets) j->own.meeting = &j->meeting;
    if (j->c->recurses) j->own.memory = &j->memory;
    j->meeting.blocks = j->nblocks;
    j->meeting.arrived = j->meeting.ended = 0;
    pthread_mutex_init(&j->meeting.lock, NULL);
    code_memory_begin(&j->memory);
    simt_status status = run_job(p, j);
    code_memory_end(&j->memory);
    pthread_mutex_destroy(&j->meeting.lock);
    return status;
}

simt_status cpu_launch(pool *p, const code_blocks *c, const code_launch *launch,
                       code_fault *fault) {
    if (launch->whole) SIMT_TRY(ask_before(c));
    launch_job j;
    j.c = c;
    j.launch = launch;
    j.nblocks = code_count_runs(c, launch);
    j.frame_bytes = ((c->frame_bytes + 63) & ~(size_t)63) + launch->shared_bytes;
    j.fault = fault;
    j.forks = device_forks();
    atomic_init(&j.next, 0);
    atomic_init(&j.moves, 0);
    atomic_init(&j.stop, false);
    atomic_init(&j.status, SIMT_OK);
    atomic_flag_clear(&j.fault_lock);
    fault->set = false;
    atomic_init(&j.began, 0);
    atomic_flag_clear(&j.stop_lock);
    j.meeting.round = 0;
    j.first = NULL;
    if (j.nblocks == 0) return SIMT_OK;
    return c->meets || c->recurses ? run_with_shared(p, &j) : run_job(p, &j);
}
