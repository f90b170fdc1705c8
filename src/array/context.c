/* The process-wide context: runtime, lock, hooks, statistics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/internal.h"
#include "array/plan_cache.h"
#include "array/section.h"
#include "base/heap.h"

array_context array_ctx = {.lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
                           .withdrawn = UINT32_MAX};

static bool torn; /* see below: nothing can be relied on */

/* ---- the lock ---- */

/* For the lock, but not for long where signals are heard: the caller looks whether there are any. */
static int await_lock(bool hears) {
    if (order_inside_kernel()) return EDEADLK; /* who has the lock may wait for it */
    void *token = array_ctx.gil_drop ? array_ctx.gil_drop() : NULL;
    int error;
    if (hears) {
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += 50000000;
        if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
        error = pthread_mutex_timedlock(&array_ctx.lock, &end);
    } else {
        error = pthread_mutex_lock(&array_ctx.lock);
    }
    if (array_ctx.gil_take) array_ctx.gil_take(token);
    return error;
}

static simt_status wait_for_lock(bool hears) {
    if (torn)
        return status_fail(SIMT_ERR_RUNTIME,
                           "this process was forked while another thread computed "
                           "arrays, and not by Python's os.fork: it cannot use them");
    int error;
    while ((error = await_lock(hears)) == ETIMEDOUT)
        if (device_interrupted()) return status_fail(SIMT_ERR_INTERRUPT, "interrupted");
    if (error == EDEADLK)
        return status_fail(SIMT_ERR_RUNTIME,
                           "an array operation was called inside a signal handler while "
                           "arrays are being computed");
    capture_guard_locked();
    return SIMT_OK;
}

static simt_status lock_deaf(void) {
    return pthread_mutex_trylock(&array_ctx.lock) == 0 ? SIMT_OK : wait_for_lock(false);
}

/* ---- forks ----
 *
 * Python's hook before a fork takes the lock, so that the child finds everything between two operations.
 * A signal handler that forks while its own thread computes cannot: the child ends the run as an interrupt
 * does, and what waited still waits. Where a library forks without asking Python while another thread
 * computes, nothing here can be relied on: the child's operations are errors. */

static bool held_for_fork;              /* under the lock */
static _Thread_local bool forks_inside; /* this thread has the lock and is about to fork */

static void after_fork_in_child(void) {
    bool held = held_for_fork, inside = forks_inside;
    bool was_free = !held && !inside && pthread_mutex_trylock(&array_ctx.lock) == 0;
    array_ctx.lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    held_for_fork = forks_inside = false;
    section_after_fork();
    order_after_fork();
    if (inside) {
        array_ctx.forks++;
        array_ctx.withdrawn = UINT32_MAX;
        evaluate_after_fork();
    } else if (!held && !was_free) {
        torn = true;
        pthread_mutex_lock(&array_ctx.lock); /* for ever */
    }
}

void array_watch_forks(void) {
    device_watch_forks(); /* first: the child frees memory here */
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

void array_before_fork(void) {
    if (lock_deaf() == SIMT_OK)
        held_for_fork = true;
    else
        forks_inside = true;
}

void array_after_fork(void) {
    forks_inside = false;
    if (!held_for_fork) return;
    held_for_fork = false;
    array_unlock();
}

/* What the target can do: its library, and what the planner is told. */
static void find_abilities(void) {
    array_context *c = &array_ctx;
    c->dev = runtime_device(c->rt);
    c->host = runtime_host(c->rt);
    c->library = c->dev->is_host ? &library_cpu : &library_none;
    for (int op = 0; op < ARRAY_OP_COUNT; op++) c->facts.steps[op] = c->library->calls[op] != NULL;
    c->facts.most_threads = c->dev->most_threads;
}

simt_status array_context_init(void) {
    if (__atomic_load_n(&array_ctx.ready, __ATOMIC_ACQUIRE)) return SIMT_OK;
    SIMT_TRY(array_lock());
    simt_status status = SIMT_OK;
    if (!array_ctx.ready) {
        target *t;
        status = array_ctx.target_hook(&t);
        if (status == SIMT_OK) status = runtime_new(t, &array_ctx.rt);
        if (status == SIMT_OK) {
            find_abilities();
            graph_program_init(&array_ctx.program);
            const char *eager = getenv("SIMT_EAGER");
            array_ctx.eager = eager && *eager && strcmp(eager, "0") != 0;
            __atomic_store_n(&array_ctx.ready, true, __ATOMIC_RELEASE);
        }
    }
    array_unlock();
    return status;
}

simt_runtime *array_runtime(void) { return array_ctx.rt; }
bool array_is_on_host(void) { return array_ctx.dev->is_host; }
bool array_eager(void) { return array_ctx.eager; }
void array_set_eager(bool eager) { array_ctx.eager = eager; }

/* An entry point that has queued something is not left half done. */
simt_status array_lock(void) {
    if (__builtin_expect(pthread_mutex_trylock(&array_ctx.lock) == 0, 1)) {
        capture_guard_locked();
        return SIMT_OK;
    }
    return wait_for_lock(section_is_fresh());
}

simt_status array_lock_to_look(void) {
    if (__builtin_expect(pthread_mutex_trylock(&array_ctx.lock) == 0, 1)) {
        capture_guard_locked();
        return SIMT_OK;
    }
    return wait_for_lock(true);
}

static void free_orphans(void) {
    array *list = atomic_exchange(&array_ctx.orphans, NULL);
    while (list) {
        array *a = list;
        memcpy(&list, &a->shape[0], sizeof list);
        storage_unref_locked(a->store);
        a->store = (storage *)array_ctx.free_arrays;
        array_ctx.free_arrays = a;
    }
}

void array_unlock(void) {
    if (atomic_load_explicit(&array_ctx.orphans, memory_order_relaxed)) free_orphans();
    storage *doomed = array_ctx.doomed;
    array_ctx.doomed = NULL;
    pthread_mutex_unlock(&array_ctx.lock);
    while (doomed) { /* foreign code: may take any lock */
        storage *s = doomed;
        doomed = (storage *)s->diag;
        if (s->release) s->release(s->owner);
        heap_free(s);
    }
}

static void forget_program(void) {
    array_context *c = &array_ctx;
    graph_program_deinit(&c->program);
    graph_program_init(&c->program);
    heap_free(c->slots);
    heap_free(c->positions);
    c->slots = NULL;
    c->positions = NULL;
    c->slots_capacity = c->positions_capacity = 0;
}

simt_status array_forget(void) {
    array_context *c = &array_ctx;
    SIMT_TRY(array_lock());
    evaluate_locked();
    if (c->program.nnodes == 0 && c->nslots == 0) forget_program();
    plan_cache_clear();
    evaluate_forget_locked();
    for (array *a; (a = c->free_arrays);) {
        c->free_arrays = (array *)a->store;
        heap_free(a);
    }
    for (storage *s; (s = c->free_storages);) {
        c->free_storages = (storage *)s->owner;
        heap_free(s);
    }
    runtime_forget(c->rt);
    c->dev->trim(c->dev);
    array_unlock();
    return SIMT_OK;
}

void array_set_target_hook(simt_status (*make)(target **out)) { array_ctx.target_hook = make; }

void array_set_position_hook(void (*hook)(char *file, size_t size, int *line)) {
    array_ctx.position_hook = hook;
}

void array_set_gil_hooks(void *(*drop)(void), void (*take)(void *token)) {
    array_ctx.gil_drop = drop;
    array_ctx.gil_take = take;
}

void array_set_defer_hook(bool (*hook)(void)) { array_ctx.defer_hook = hook; }
void array_clear_deferred(void) { array_ctx.deferred = false; }

void array_set_blas_path_hook(const char *(*hook)(void)) { array_ctx.blas_path_hook = hook; }

void array_get_stats(array_stats *out) {
    *out = array_ctx.stats;
    if (!array_ctx.ready) return;
    out->bytes_in_use = array_ctx.dev->bytes_in_use(array_ctx.dev);
    out->bytes_cached = array_ctx.dev->bytes_cached(array_ctx.dev);
}
