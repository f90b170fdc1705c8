/* Adam's step over all parameters in one pass: a third of the time of the same formulas as deferred
 * operations, which go through the vm's loops one by one.
 *
 * Everything pending runs first, so that memory can be written directly; no write happens unless all
 * arrays have values. What does not fit (strides, types, eager mode) is left to the caller's formulas.
 */
#include "array/adam.h"

#include "array/internal.h"

enum { CHUNK = 4096 }; /* elements */

typedef void (*adam_loop)(float *param, const float *grad, float *average, float *square, size_t n,
                          const array_adam_scalars *s);

static bool fits(const array_adam *x) {
    array *const all[4] = {x->param, x->grad, x->average, x->square};
    for (int i = 0; i < 4; i++)
        if (all[i]->dt != DT_F32 || all[i]->size != x->param->size || !array_is_contiguous(all[i]))
            return false;
    return true;
}

/* What is written must be nobody else's: whole storages, each once. */
static bool disjoint(const array_adam *items, int n) {
    enum { SEEN = -2 }; /* no storage has a slot between programs */
    bool fine = true;
    for (int i = 0; i < 4 * n; i++) {
        array *const all[4] = {items[i / 4].param, items[i / 4].average, items[i / 4].square,
                               items[i / 4].grad};
        storage *s = all[i % 4]->store;
        fine = fine && s->slot == -1 && s->bytes == (size_t)all[i % 4]->size * sizeof(float);
        s->slot = SEEN;
    }
    for (int i = 0; i < n; i++) {
        array *const all[4] = {items[i].param, items[i].average, items[i].square, items[i].grad};
        for (int k = 0; k < 4; k++) all[k]->store->slot = -1;
    }
    return fine;
}

typedef struct adam_run {
    const array_adam *items;
    int n;
    adam_loop loop;
} adam_run;

static size_t chunks_of(const array_adam *x) {
    return ((size_t)x->param->size + CHUNK - 1) / CHUNK;
}

static simt_status run_chunks(void *context, size_t begin, size_t end) {
    const adam_run *r = context;
    size_t first = 0; /* chunk of the item */
    for (int i = 0; i < r->n && first < end; i++) {
        const array_adam *x = &r->items[i];
        size_t chunks = chunks_of(x), from = begin > first ? begin - first : 0,
               to = end - first < chunks ? end - first : chunks;
        first += chunks;
        if (from >= to) continue;
        size_t start = from * CHUNK, stop = to * CHUNK, size = (size_t)x->param->size;
        r->loop((float *)array_data(x->param) + start, (float *)array_data(x->grad) + start,
                (float *)array_data(x->average) + start, (float *)array_data(x->square) + start,
                (stop < size ? stop : size) - start, &x->scalars);
    }
    return SIMT_OK;
}

static simt_status run_locked(const array_adam *items, int n, bool *done) {
    simt_status status = evaluate_locked();
    size_t chunks = 0;
    for (int i = 0; i < n; i++) {
        array *const all[4] = {items[i].param, items[i].grad, items[i].average, items[i].square};
        for (int k = 0; k < 4; k++) {
            SIMT_TRY(evaluate_outcome_locked(all[k]->store, status));
            if (!all[k]->store->data) return SIMT_OK;
        }
        chunks += chunks_of(&items[i]);
    }
    if (!disjoint(items, n)) return SIMT_OK;
    for (int i = 0; i < n; i++) {
        array *const all[4] = {items[i].param, items[i].grad, items[i].average, items[i].square};
        for (int k = 0; k < 4; k++) SIMT_TRY(order_await_kernels(all[k]->store));
    }
    adam_run r = {items, n, ISA_CHOOSE(adam_loop, NULL)};
    bool drop = chunks > 100 && array_ctx.gil_drop;
    array_ctx.running = drop ? RUNS_ANY : RUNS_NOTHING;
    void *token = drop ? array_ctx.gil_drop() : NULL;
    bool held = device_hold_interrupts(true);
    status = array_ctx.dev->parallel(array_ctx.dev, chunks, 4, run_chunks, &r);
    device_hold_interrupts(held);
    if (drop) array_ctx.gil_take(token);
    array_ctx.running = RUNS_NOTHING;
    order_changed();
    for (int i = 0; i < n; i++)
        items[i].param->store->version++, items[i].average->store->version++,
            items[i].square->store->version++;
    *done = true;
    return status;
}

simt_status array_adam_step(const array_adam *items, int n, bool *done) {
    *done = false;
    if (array_ctx.eager || !array_ctx.library->adam) return SIMT_OK;
    for (int i = 0; i < n; i++)
        if (!fits(&items[i])) return SIMT_OK;
    SIMT_TRY(array_lock());
    simt_status status = run_locked(items, n, done);
    array_unlock();
    return status;
}
