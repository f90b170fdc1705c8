/* Replays: the steps of a capture's plan, in memory that is its own or the caller's. */
#include <string.h>
#include <time.h>

#include "array/capture_run.h"
#include "base/heap.h"

enum { ALIGN = 64 };
#define GIL_DROP_COST 20000.0 /* ns, as of evaluations */

/* ---- memory of temporaries: each at the lowest place that is free while it is needed ---- */

typedef struct piece {
    size_t begin, end;
    uint32_t buffer;
} piece;
typedef struct layout {
    piece *pieces; /* in use, by address */
    uint32_t n;
    size_t bytes;
} layout;

static size_t rounded(int64_t bytes) { return ((size_t)bytes + ALIGN - 1) / ALIGN * ALIGN; }

static int64_t place(layout *l, uint32_t buffer, size_t bytes) {
    size_t at = 0;
    uint32_t i = 0;
    while (i < l->n && l->pieces[i].begin < at + bytes) at = l->pieces[i++].end;
    memmove(&l->pieces[i + 1], &l->pieces[i], (l->n - i) * sizeof *l->pieces);
    l->pieces[i] = (piece){at, at + bytes, buffer};
    l->n++;
    if (at + bytes > l->bytes) l->bytes = at + bytes;
    return (int64_t)at;
}

static void give_back(layout *l, uint32_t buffer) {
    uint32_t i = 0;
    while (i < l->n && l->pieces[i].buffer != buffer) i++;
    if (i == l->n) return;
    memmove(&l->pieces[i], &l->pieces[i + 1], (l->n - i - 1) * sizeof *l->pieces);
    l->n--;
}

static bool is_temporary(const array_capture *c, uint32_t b) {
    return b >= c->nslots || c->kinds[b] == CAPTURE_TEMPORARY;
}

static void place_all(array_capture *c, layout *l) {
    const graph_plan *plan = c->plan;
    for (uint32_t b = 0; b < plan->nbuffers; b++) {
        bool pattern = b < c->nslots && c->kinds[b] == CAPTURE_PATTERN;
        c->places[b] = pattern ? place(l, b, rounded(plan->buffers[b].bytes)) : -1;
    }
    for (uint32_t s = 0; s < plan->nsteps; s++) {
        const graph_step *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->nallocs; i++) {
            uint32_t b = step->allocs[i];
            if (is_temporary(c, b)) c->places[b] = place(l, b, rounded(plan->buffers[b].bytes));
        }
        for (uint32_t i = 0; i < step->nfrees; i++)
            if (is_temporary(c, step->frees[i])) give_back(l, step->frees[i]);
    }
}

/* ---- steps ---- */

static simt_status no_memory(void) {
    return status_fail(SIMT_ERR_MEMORY, "out of memory for a captured step");
}

static bool reserve_steps(array_capture *c) {
    const graph_plan *plan = c->plan;
    size_t nargs = 0, ncalls = 0;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        nargs += plan->steps[i].nargs;
        ncalls += plan->steps[i].is_call;
    }
    c->places = heap_alloc(sizeof *c->places * (plan->nbuffers + 1));
    c->memory = heap_zeroed(plan->nbuffers + 1, sizeof *c->memory);
    c->steps = heap_zeroed(plan->nsteps + 1, sizeof *c->steps);
    c->args = heap_alloc(sizeof *c->args * (nargs + 1));
    c->calls = heap_alloc(sizeof *c->calls * (ncalls + 1));
    c->rows = heap_zeroed(c->ninputs + 1, sizeof(array *));
    return c->places && c->memory && c->steps && c->args && c->calls && c->rows;
}

static void view_of(const array_capture *c, call_view *v, const graph_view *from, int64_t offset) {
    char *memory = c->memory[from->buffer];
    v->data = memory ? memory + offset : NULL;
    v->dt = from->dt;
    v->ndim = from->ndim;
    v->shape = from->shape;
    v->strides = from->strides;
}

static void bind_call(const array_capture *c, const graph_node *n, call_args *call) {
    const int64_t *offsets = c->offsets + n->first_offset;
    call->node = n;
    call->dev = array_ctx.host;
    for (int i = 0; i < n->nin; i++)
        if (n->scalar[i] < 0) view_of(c, &call->in[i], &n->in[i], *offsets++);
    view_of(c, &call->out, &n->out, *offsets);
}

static void bind_kernel(const array_capture *c, const graph_step *step, uint64_t *args) {
    for (uint32_t i = 0; i < step->nargs; i++) {
        const graph_arg *arg = &step->args[i];
        uint64_t value = (uint64_t)arg->add;
        if (arg->kind == GRAPH_ARG_VIEW)
            value += (uint64_t)(uintptr_t)c->memory[arg->index];
        else if (arg->kind == GRAPH_ARG_SCALAR)
            value = c->scalars[arg->index];
        if (arg->offset_index >= 0) value += (uint64_t)c->offsets[arg->offset_index];
        args[i] = value;
    }
}

/* The arguments of all steps, from c->memory. */
static void bind(array_capture *c) {
    uint64_t *args = c->args;
    call_args *call = c->calls;
    for (uint32_t i = 0; i < c->plan->nsteps; i++) {
        const graph_step *step = &c->plan->steps[i];
        c->steps[i] = (capture_step){args, step->nargs, step->is_call ? call : NULL};
        if (step->is_call)
            bind_call(c, &c->plan->nodes[step->node], call++);
        else
            bind_kernel(c, step, args);
        args += step->nargs;
    }
}

simt_status capture_prepare(array_capture *c) {
    if (!reserve_steps(c)) return no_memory();
    layout l = {.pieces = heap_alloc(sizeof *l.pieces * (c->plan->nbuffers + 1))};
    if (!l.pieces) return no_memory();
    place_all(c, &l);
    heap_free(l.pieces);
    if (l.bytes) SIMT_TRY(array_ctx.dev->alloc(array_ctx.dev, l.bytes, (void **)&c->work));
    c->work_bytes = l.bytes;
    for (uint32_t b = 0; b < c->plan->nbuffers; b++)
        if (c->places[b] >= 0 && c->work) c->memory[b] = c->work + c->places[b];
    return SIMT_OK;
}

void capture_release(array_capture *c) {
    if (c->work) array_ctx.dev->free(array_ctx.dev, c->work, c->work_bytes);
    for (uint32_t i = 0; c->rows && i < c->ninputs; i++) array_unref(c->rows[i]);
    void *parts[] = {c->places, c->memory, c->steps, c->args, c->calls, c->rows};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) heap_free(parts[i]);
}

static void set_position(const array_capture *c, uint32_t node) {
    for (uint32_t i = 0; i < c->npositions; i++) {
        const array_position *p = &c->positions[i];
        if (p->node == node && p->line) status_set_position(p->file, p->line, 0);
    }
}

static simt_status run_call(const array_capture *c, const graph_step *step, const call_args *call) {
    call_function function = array_ctx.library->calls[call->node->op];
    simt_status status = function ? function(call) : host_call(call);
    if (status != SIMT_OK && status != SIMT_ERR_INTERRUPT) set_position(c, step->node);
    return status;
}

static simt_status run_kernel(const graph_step *step, const uint64_t *args) {
    code_fault fault = {0};
    SIMT_TRY(runtime_launch_whole(step->kernel, step->grid, args, 0, &fault));
    if (!fault.set) return SIMT_OK;
    return status_fail(SIMT_ERR_INTERNAL, "fault %u in a kernel of array operations", fault.number);
}

static simt_status fill_patterns(const array_capture *c) {
    for (uint32_t b = 0; b < c->nslots; b++) {
        if (c->kinds[b] != CAPTURE_PATTERN || !c->stores[b]->bytes) continue;
        SIMT_TRY(device_copy(array_ctx.dev, DEVICE_WITHIN, c->memory[b], c->stores[b]->data,
                             c->stores[b]->bytes));
    }
    return SIMT_OK;
}

static simt_status run_step(const array_capture *c) {
    SIMT_TRY(fill_patterns(c));
    for (uint32_t i = 0; i < c->plan->nsteps; i++) {
        const graph_step *step = &c->plan->steps[i];
        const capture_step *s = &c->steps[i];
        SIMT_TRY(s->call ? run_call(c, step, s->call) : run_kernel(step, s->args));
    }
    return SIMT_OK;
}

/* ---- the caller's arrays ---- */

static simt_status check(const array_capture *c, const char *what, uint32_t number,
                         const capture_type *t, const array *a) {
    if (a->dt == t->dt && array_same_shape(a, t->shape, t->ndim)) return SIMT_OK;
    char have[200], want[200];
    return status_fail(SIMT_ERR_VALUE, "%s %u of a captured step has %s%s, not %s%s", what, number,
                       dtype_table[a->dt].name, shape_print(a->shape, a->ndim, have, sizeof have),
                       dtype_table[t->dt].name, shape_print(t->shape, t->ndim, want, sizeof want));
}

/* Its storage has its value, and no kernel uses it. */
static simt_status settle(storage *s, simt_status ran) {
    SIMT_TRY(evaluate_outcome_locked(s, ran));
    if (!s->data && s->bytes)
        return status_fail(SIMT_ERR_RUNTIME, "an array of a captured step has no value");
    if (s->device != array_ctx.dev)
        return status_fail(SIMT_ERR_RUNTIME, "an array of a captured step is on %s",
                           s->device->name);
    return order_await_kernels(s);
}

static simt_status bind_variables(array_capture *c, array *const *variables, simt_status ran) {
    for (uint32_t i = 0; i < c->nvariables; i++) {
        array *a = variables[i];
        SIMT_TRY(check(c, "variable", i, &c->types[c->ninputs + i], a));
        if (c->variables[i] < 0) continue;
        SIMT_TRY(settle(a->store, ran));
        bool fine = array_is_contiguous(a);
        if (c->writes[i]) fine = fine && a->store->bytes == c->types[c->ninputs + i].bytes;
        if (!fine) return status_fail(SIMT_ERR_VALUE, "variable %u of a captured step has gaps", i);
        c->memory[c->variables[i]] = array_data(a);
    }
    return SIMT_OK;
}

static simt_status bind_inputs(array_capture *c, array *const *inputs, simt_status ran) {
    for (uint32_t i = 0; i < c->ninputs; i++) {
        SIMT_TRY(check(c, "input", i, &c->types[i], inputs[i]));
        if (c->inputs[i] < 0) continue;
        SIMT_TRY(settle(inputs[i]->store, ran));
        c->memory[c->inputs[i]] = array_data(inputs[i]);
    }
    return SIMT_OK;
}

static simt_status make_outputs(array_capture *c, array **outputs) {
    const capture_type *types = c->types + c->ninputs + c->nvariables;
    for (uint32_t i = 0; i < c->noutputs; i++) {
        const capture_type *t = &types[i];
        SIMT_TRY(array_new(t->dt, t->shape, t->ndim, true, &outputs[i]));
    }
    return SIMT_OK;
}

static void drop_outputs(const array_capture *c, array **outputs) {
    simt_diag diag = *status_get();
    for (uint32_t i = 0; i < c->noutputs; i++) {
        array_unref(outputs[i]);
        outputs[i] = NULL;
    }
    status_adopt(&diag);
}

/* Dense copies where that is needed, in copies[]. */
static simt_status make_dense(const array_capture *c, array *const *inputs, array **copies) {
    for (uint32_t i = 0; i < c->ninputs; i++) {
        if (array_is_contiguous(inputs[i])) {
            copies[i] = array_ref(inputs[i]);
            continue;
        }
        SIMT_TRY(array_copy(inputs[i], &copies[i]));
    }
    return SIMT_OK;
}

/* ---- replays ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct replay {
    const capture_rows *rows; /* NULL: one step, on the inputs as they are */
    int64_t done;
} replay;

static simt_status copy_row(char *to, const char *from, size_t bytes) {
    device *dev = array_ctx.dev;
    if (!dev->is_host) return device_copy(dev, DEVICE_WITHIN, to, from, bytes);
    memcpy(to, from, bytes);
    return SIMT_OK;
}

static simt_status gather(const array_capture *c, const capture_rows *r, int64_t step) {
    const int64_t *index = r->index + step * r->batch;
    for (uint32_t i = 0; i < c->ninputs; i++) {
        const array *data = r->data[i];
        size_t bytes = c->types[i].bytes / (size_t)r->batch;
        const char *from = array_data(data);
        char *to = array_data(c->rows[i]);
        for (int64_t k = 0; k < r->batch; k++, to += bytes)
            SIMT_TRY(copy_row(to, from + (size_t)index[k] * bytes, bytes));
    }
    return SIMT_OK;
}

static simt_status run_steps(const array_capture *c, replay *r) {
    if (!r->rows) return run_step(c);
    double end = now() + r->rows->seconds;
    for (; r->done < r->rows->most; r->done++) {
        if (r->done && now() >= end) break;
        SIMT_TRY(gather(c, r->rows, r->done));
        SIMT_TRY(run_step(c));
    }
    return SIMT_OK;
}

/* Without the interpreter's lock, where that is worth it; nothing of it is interrupted. */
static simt_status run_unlocked(array_capture *c, replay *r) {
    double cost = r->rows ? c->cost * (double)r->rows->most : c->cost;
    bool drop = cost > GIL_DROP_COST && array_ctx.gil_drop;
    array_ctx.running = drop ? RUNS_ANY : RUNS_NOTHING;
    void *token = drop ? array_ctx.gil_drop() : NULL;
    bool held = device_hold_interrupts(true);
    simt_status status = run_steps(c, r);
    device_hold_interrupts(held);
    if (drop) array_ctx.gil_take(token);
    array_ctx.running = RUNS_NOTHING;
    order_changed();
    return status;
}

static simt_status settle_constants(const array_capture *c, simt_status ran) {
    for (uint32_t b = 0; b < c->nslots; b++)
        if (c->stores[b]) SIMT_TRY(settle(c->stores[b], ran));
    return SIMT_OK;
}

static simt_status replay_locked(array_capture *c, array *const *inputs, array *const *variables,
                                 array *const *outputs, replay *r) {
    if (array_ctx.capturing)
        return status_fail(SIMT_ERR_RUNTIME, "a captured step is run while another is captured");
    simt_status ran = evaluate_locked();
    if (ran == SIMT_ERR_INTERRUPT) return ran;
    SIMT_TRY(settle_constants(c, ran));
    SIMT_TRY(bind_inputs(c, inputs, ran));
    SIMT_TRY(bind_variables(c, variables, ran));
    for (uint32_t b = 0; b < c->nslots; b++)
        if (c->kinds[b] == CAPTURE_CONSTANT) c->memory[b] = c->stores[b]->data;
    for (uint32_t i = 0; i < c->noutputs; i++)
        if (c->outputs[i] >= 0) c->memory[c->outputs[i]] = outputs[i]->store->data;
    bind(c);
    simt_status status = run_unlocked(c, r);
    for (uint32_t i = 0; i < c->nvariables; i++)
        if (c->writes[i]) variables[i]->store->version++;
    return status;
}

static simt_status replay_on(array_capture *c, array *const *inputs, array *const *variables,
                             array **outputs, replay *r) {
    memset(outputs, 0, sizeof(array *) * c->noutputs);
    simt_status status = make_outputs(c, outputs);
    if (status == SIMT_OK) status = array_lock();
    if (status == SIMT_OK) {
        status = replay_locked(c, inputs, variables, outputs, r);
        array_unlock();
    }
    if (status != SIMT_OK) drop_outputs(c, outputs);
    return status;
}

simt_status capture_replay(array_capture *c, array *const *inputs, array *const *variables,
                           array **outputs) {
    array *some[8] = {0}, **dense = some;
    if (c->ninputs > 8 && !(dense = heap_zeroed(c->ninputs, sizeof(array *)))) return no_memory();
    simt_status status = make_dense(c, inputs, dense);
    replay r = {0};
    if (status == SIMT_OK) status = replay_on(c, dense, variables, outputs, &r);
    simt_diag diag = status != SIMT_OK ? *status_get() : (simt_diag){0};
    for (uint32_t i = 0; i < c->ninputs; i++) array_unref(dense[i]);
    if (dense != some) heap_free(dense);
    return status == SIMT_OK ? status : status_adopt(&diag);
}

static simt_status check_rows(const array_capture *c, const capture_rows *r, int64_t *rows) {
    *rows = INT64_MAX;
    for (uint32_t i = 0; i < c->ninputs; i++) {
        const capture_type *t = &c->types[i];
        const array *a = r->data[i];
        bool fits =
            a->dt == t->dt && a->ndim == t->ndim && t->ndim > 0 && array_is_contiguous(a) &&
            t->shape[0] == r->batch && a->store->data && a->store->device == array_ctx.dev &&
            memcmp(a->shape + 1, t->shape + 1, sizeof *t->shape * (size_t)(t->ndim - 1)) == 0;
        if (!fits)
            return status_fail(SIMT_ERR_VALUE,
                               "data %u of a captured step do not have its rows densely", i);
        if (a->shape[0] < *rows) *rows = a->shape[0];
    }
    return SIMT_OK;
}

/* Room for a batch. (Another thread may make it while this one waits for the lock.) */
static simt_status make_rows(array_capture *c) {
    for (uint32_t i = 0; i < c->ninputs; i++) {
        const capture_type *t = &c->types[i];
        array *made;
        if (c->rows[i]) continue;
        SIMT_TRY(array_new(t->dt, t->shape, t->ndim, true, &made));
        if (c->rows[i])
            array_unref(made);
        else
            c->rows[i] = made;
    }
    return SIMT_OK;
}

simt_status capture_replay_rows(array_capture *c, const capture_rows *rows, array *const *variables,
                                array **outputs, int64_t *done) {
    int64_t limit = 0;
    *done = 0;
    memset(outputs, 0, sizeof(array *) * c->noutputs);
    if (rows->batch <= 0 || rows->most <= 0)
        return status_fail(SIMT_ERR_VALUE, "no rows are given to a captured step");
    SIMT_TRY(check_rows(c, rows, &limit));
    for (int64_t i = 0; i < rows->most * rows->batch; i++)
        if (rows->index[i] < 0 || rows->index[i] >= limit)
            return status_fail(SIMT_ERR_INDEX, "row %lld of data with %lld rows",
                               (long long)rows->index[i], (long long)limit);
    SIMT_TRY(make_rows(c));
    replay r = {.rows = rows};
    simt_status status = replay_on(c, c->rows, variables, outputs, &r);
    *done = r.done;
    return status;
}
