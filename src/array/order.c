/* The order of a GPU's default stream, for what several Python threads run.
 *
 * A kernel and the evaluation of arrays (or a copy, or another kernel) do not overlap where they use one
 * storage: who comes later waits. Kernels on streams of their own overlap with each other. What runs is
 * noted in the storages, under the interpreter's lock, which is held here everywhere but while waiting; so
 * a launch that has to wait for nothing costs a few instructions. */
#include <time.h>

#include "array/internal.h"

static size_t running;   /* kernels that have begun and not ended */
static unsigned process; /* marks made in another process count no more: see order_after_fork */
static _Thread_local unsigned
    inside; /* kernels of this thread: what a signal handler runs in them goes on */

static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static unsigned changes, waiting; /* changes: also under change_lock */

bool order_inside_kernel(void) { return inside > 0; }

void order_after_fork(void) {
    process++;
    running = 0;
    waiting = 0;
    change_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    change = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

/* Something ended. */
void order_changed(void) {
    if (!waiting) return;
    pthread_mutex_lock(&change_lock);
    changes++;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&change_lock);
}

/* Until something ends, but not for long: the caller looks again, and signals get their turn. */
static simt_status await_change(void) {
    unsigned seen = changes;
    waiting++;
    void *token = array_ctx.gil_drop ? array_ctx.gil_drop() : NULL;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 50000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    pthread_mutex_lock(&change_lock);
    while (changes == seen && pthread_cond_timedwait(&change, &change_lock, &end) == 0) {}
    pthread_mutex_unlock(&change_lock);
    if (array_ctx.gil_take) array_ctx.gil_take(token);
    waiting--;
    return device_interrupted() ? status_fail(SIMT_ERR_INTERRUPT, "interrupted") : SIMT_OK;
}

static bool is_used(const storage *s, bool stream) {
    if (!s) return false;
    if (s->kernels_process == process && (stream ? s->default_kernels : s->kernels)) return true;
    return array_ctx.running == RUNS_ANY || (array_ctx.running == RUNS_PROGRAM && s->slot >= 0);
}

simt_status order_begin(storage *const *stores, int n, bool stream) {
    unsigned *own = &inside;
    __asm__("" : "+r"(own)); /* to find it costs a call: once */
    bool alone = *own || (!running && array_ctx.running == RUNS_NOTHING);
    for (int i = 0; i < n && !alone; i++) {
        if (!is_used(stores[i], stream)) continue;
        SIMT_TRY(await_change());
        i = -1; /* all of them again */
    }
    unsigned now = process; /* a signal handler may have forked */
    for (int i = 0; i < n; i++) {
        storage *s = stores[i];
        if (!s) continue;
        if (s->kernels_process != now) s->kernels = s->default_kernels = 0;
        s->kernels_process = now;
        s->kernels++;
        s->default_kernels += !stream;
    }
    running++;
    ++*own;
    return SIMT_OK;
}

void order_end(storage *const *stores, int n, bool stream) {
    unsigned now = process;
    inside--;
    if (running) running--;
    for (int i = 0; i < n; i++) {
        storage *s = stores[i];
        if (!s || s->kernels_process != now || !s->kernels) continue;
        s->kernels--;
        if (!stream && s->default_kernels) s->default_kernels--;
    }
    order_changed();
}

static bool has_kernel(const storage *s) { return s->kernels_process == process && s->kernels; }

simt_status order_await_kernels(const storage *s) {
    while (running && !inside && has_kernel(s)) SIMT_TRY(await_change());
    return SIMT_OK;
}

simt_status order_await_program(void) {
    for (uint32_t i = 0; running && !inside && i < array_ctx.nslots; i++)
        SIMT_TRY(order_await_kernels(array_ctx.slots[i].store));
    return SIMT_OK;
}
