/* The toy: addresses with a tag, results that wait to be fetched. Streams and events are the inner device's.
 *
 * A launch takes the tag off every argument that is an address of ours, in structs too. What else might look like
 * one, a number with just these upper bits, is nothing that tests compute with. Addresses that lie in its memory
 * keep their tag: no kernel can follow them. */
#include "device/remote/remote.h"
#include "base/heap.h"

#include <stdatomic.h>
#include <string.h>

#define TAG         ((uint64_t)0x51A7 << 48) /* no address of any process on x86-64 or aarch64 */
#define FIRST_PLACE ((uint64_t)1 << 16)
#define LAST_PLACE  ((uint64_t)1 << 47)

typedef struct remote {
    device base;
    device *inner;
} remote;

static device *inner_of(device *d) { return ((remote *)d)->inner; }

static uint64_t untag(uint64_t value) {
    uint64_t place = value - TAG;
    return place >= FIRST_PLACE && place < LAST_PLACE ? place : value;
}
static void *here(const void *p) { return (void *)(uintptr_t)untag((uint64_t)(uintptr_t)p); }

/* ---- what waits for `wait` ---- */

typedef struct result {
    struct result *next;
    void *to;
    size_t bytes;
    simt_diag diag; /* code OK: it did not fail */
    unsigned char data[];
} result;

/* Each thread waits for its own work. */
static _Thread_local result *first_result, *last_result;

static result *new_result(void *to, size_t bytes) {
    result *r = heap_alloc(sizeof *r + bytes);
    if (r == NULL) {
        status_fail(SIMT_ERR_MEMORY, "no memory for what a device computes");
        return NULL;
    }
    r->next = NULL;
    r->to = to;
    r->bytes = bytes;
    r->diag.code = SIMT_OK;
    return r;
}

static void add_result(result *r) {
    *(first_result == NULL ? &first_result : &last_result->next) = r;
    last_result = r;
}

static simt_status remote_wait(device *d, device_stream *s) {
    simt_status status = SIMT_OK;
    while (first_result != NULL) {
        result *r = first_result;
        first_result = r->next;
        memcpy(r->to, r->data, r->bytes);
        if (r->diag.code != SIMT_OK && status == SIMT_OK) status = status_adopt(&r->diag);
        heap_free(r);
    }
    return status;
}

/* ---- memory ---- */

static simt_status remote_alloc(device *d, size_t bytes, void **out) {
    SIMT_TRY(inner_of(d)->alloc(inner_of(d), bytes, out));
    *out = (void *)(uintptr_t)((uint64_t)(uintptr_t)*out + TAG);
    return SIMT_OK;
}
static void remote_free(device *d, void *memory, size_t bytes) {
    inner_of(d)->free(inner_of(d), here(memory), bytes);
}
static void remote_trim(device *d) { inner_of(d)->trim(inner_of(d)); }
static size_t remote_in_use(device *d) { return inner_of(d)->bytes_in_use(inner_of(d)); }
static size_t remote_cached(device *d) { return inner_of(d)->bytes_cached(inner_of(d)); }

/* What tests ask for: how many copies this way are left until one fails; 0: none does. */
static _Atomic unsigned copies_left[DEVICE_WITHIN + 1];

void device_remote_fail_copy(device_way way, unsigned after) { copies_left[way] = after + 1; }

static bool is_to_fail(device_way way) {
    unsigned left = atomic_load(&copies_left[way]);
    while (left && !atomic_compare_exchange_weak(&copies_left[way], &left, left - 1)) {}
    return left == 1;
}

static simt_status remote_copy(device *d, device_stream *s, device_way way, void *to,
                               const void *from, size_t bytes) {
    device *inner = inner_of(d);
    if (is_to_fail(way)) return status_fail(SIMT_ERR_RUNTIME, "the remote device copied nothing");
    if (way != DEVICE_OUT)
        return inner->copy(inner, s, DEVICE_WITHIN, here(to), way == DEVICE_IN ? from : here(from),
                           bytes);
    result *r = new_result(to, bytes);
    if (r == NULL) return SIMT_ERR_MEMORY;
    memcpy(r->data, here(from), bytes);
    add_result(r);
    return SIMT_OK;
}

static simt_status remote_set(device *d, device_stream *s, void *at, int byte, size_t bytes) {
    return inner_of(d)->set(inner_of(d), s, here(at), byte, bytes);
}

/* ---- launches ---- */

static double remote_block_cost(const device *d, const code *c) {
    const device *inner = ((const remote *)d)->inner;
    return inner->block_cost(inner, c);
}

/* Of the arguments, and of the structs that they point to: pointers there are aligned. */
static void untag_args(const code *c, uint64_t *args) {
    for (uint32_t i = 0; i < c->nparams + c->nvariables; i++) args[i] = untag(args[i]);
    for (uint32_t i = 0; i < c->nstructs; i++) {
        char *at = (char *)(uintptr_t)args[c->structs[i].param];
        for (size_t k = 0; k + sizeof(uint64_t) <= c->structs[i].bytes; k += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, at + k, sizeof word);
            word = untag(word);
            memcpy(at + k, &word, sizeof word);
        }
    }
}

static simt_status remote_launch(device *d, device_stream *s, const code *c,
                                 const code_launch *launch, code_fault *fault) {
    code_launch moved = *launch;
    code_fault found = {0};
    result *r = new_result(fault, sizeof *fault);
    uint64_t *args = r == NULL ? NULL : code_copy_structs(c, launch->args);
    if (args == NULL) {
        heap_free(r);
        return status_fail(SIMT_ERR_MEMORY, "no memory for a launch");
    }
    untag_args(c, args);
    moved.args = args;
    if (inner_of(d)->launch(inner_of(d), s, c, &moved, &found) != SIMT_OK) r->diag = *status_get();
    memcpy(r->data, &found, sizeof found);
    add_result(r);
    heap_free(args);
    return SIMT_OK;
}

/* ---- streams and events ---- */

static simt_status remote_stream_new(device *d, device_stream **out) {
    return inner_of(d)->stream_new(inner_of(d), out);
}
static void remote_stream_free(device *d, device_stream *s) {
    inner_of(d)->stream_free(inner_of(d), s);
}
static simt_status remote_event_new(device *d, device_event **out) {
    return inner_of(d)->event_new(inner_of(d), out);
}
static void remote_event_free(device *d, device_event *e) {
    inner_of(d)->event_free(inner_of(d), e);
}
static simt_status remote_event_record(device *d, device_event *e, device_stream *s) {
    return inner_of(d)->event_record(inner_of(d), e, s);
}
static simt_status remote_event_wait(device *d, device_event *e, device_stream *s) {
    return inner_of(d)->event_wait(inner_of(d), e, s);
}
static double remote_event_ms(device *d, const device_event *from, const device_event *to) {
    return inner_of(d)->event_ms(inner_of(d), from, to);
}

/* ---- making ---- */

static void remote_destroy(device *d) {
    inner_of(d)->destroy(inner_of(d));
    heap_free(d);
}

simt_status device_remote_new(device *inner, device **out) {
    remote *made = heap_zeroed(1, sizeof *made);
    if (made == NULL) {
        inner->destroy(inner);
        return status_fail(SIMT_ERR_MEMORY, "no memory for the remote device");
    }
    made->inner = inner;
    made->base = (device){.name = "simt remote (a toy of the tests)",
                          .nthreads = inner->nthreads,
                          .most_threads = 1024,
                          .alloc = remote_alloc,
                          .free = remote_free,
                          .trim = remote_trim,
                          .runs = inner->runs,
                          .block_cost = remote_block_cost,
                          .copy = remote_copy,
                          .set = remote_set,
                          .launch = remote_launch,
                          .stream_new = remote_stream_new,
                          .stream_free = remote_stream_free,
                          .wait = remote_wait,
                          .event_new = remote_event_new,
                          .event_free = remote_event_free,
                          .event_record = remote_event_record,
                          .event_wait = remote_event_wait,
                          .event_ms = remote_event_ms,
                          .bytes_in_use = remote_in_use,
                          .bytes_cached = remote_cached,
                          .destroy = remote_destroy};
    *out = &made->base;
    return SIMT_OK;
}
