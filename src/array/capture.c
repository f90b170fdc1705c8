/* The capture: from the first operation to a plan with its memory. capture_run.c runs it. */
#include <string.h>

#include "array/capture_run.h"
#include "array/meta.h"
#include "array/plan_cache.h"
#include "base/heap.h"

/* Of the open capture: why it has failed, which later errors must not hide. */
static simt_diag failure;

bool capture_is_open(void) {
    return array_ctx.capturing && pthread_equal(array_ctx.capturer, pthread_self());
}

/* What the step computed and somebody still holds has no value, and never will. */
static void fail_values(void) {
    const simt_diag diag = {.code = SIMT_ERR_RUNTIME, .text = CAPTURE_NO_VALUE};
    for (uint32_t i = 0; i < array_ctx.nslots; i++) {
        storage *s = array_ctx.slots[i].store;
        if (!s->data && s->bytes && s->refs > s->program_refs) storage_fail_locked(s, &diag);
    }
}

static void end_locked(void) {
    fail_values();
    queue_clear_locked();
    array_ctx.capturing = false;
}

simt_status capture_fail_locked(const char *why) {
    if (failure.code) return status_adopt(&failure);
    array_position p;
    queue_ask_position(&p);
    status_fail(SIMT_ERR_RUNTIME, "%s", why);
    if (p.line) status_set_position(p.file, p.line, 0);
    failure = *status_get();
    return failure.code;
}

simt_status capture_look_locked(const storage *s) {
    if (s && s->failed) return SIMT_OK; /* its own failure is told */
    bool known = s && (s->data || !s->bytes);
    if (known && (s->slot < 0 || !array_ctx.slots[s->slot].written)) return SIMT_OK;
    return capture_fail_locked("a value is looked at in a step that is being captured");
}

void capture_intrude_locked(void) {
    capture_fail_locked("another thread uses arrays while a step is being captured");
    fail_values();
    queue_clear_locked();
    array_ctx.capturing = false;
    array_ctx.intruded = true;
}

/* What fails in it is told by the next look at it, not here. */
static simt_status run_pending(void) {
    simt_status status = evaluate_locked();
    return status == SIMT_ERR_INTERRUPT || array_ctx.program.nnodes ? status : SIMT_OK;
}

simt_status capture_begin(void) {
    SIMT_TRY(array_context_init());
    SIMT_TRY(array_lock());
    simt_status status = SIMT_OK;
    if (array_ctx.eager)
        status = status_fail(SIMT_ERR_RUNTIME, "SIMT_EAGER=1 computes each operation at once");
    else if (array_ctx.capturing)
        status = status_fail(SIMT_ERR_RUNTIME, "a step is being captured already");
    if (status == SIMT_OK) status = run_pending();
    if (status == SIMT_OK) {
        memset(&failure, 0, sizeof failure);
        array_ctx.capturing = true;
        array_ctx.intruded = false;
        array_ctx.capturer = pthread_self();
        if (++array_ctx.captures == 0) array_ctx.captures = 1;
    }
    array_unlock();
    return status;
}

simt_status capture_placeholder(dtype dt, const int64_t *shape, int ndim, array **out) {
    return array_new(dt, shape, ndim, false, out);
}

void capture_abort(void) {
    if (!capture_is_open() || array_lock() != SIMT_OK) return;
    if (capture_is_open()) end_locked();
    array_unlock();
}

/* ---- what is added to the program at its end ---- */

static bool is_placeholder(const capture_parts *parts, const storage *s) {
    for (uint32_t i = 0; i < parts->ninputs; i++)
        if (parts->inputs[i]->store == s) return true;
    for (uint32_t i = 0; i < parts->nvariables; i++)
        if (parts->variables[i].before->store == s) return true;
    return false;
}

static bool is_whole(const array *a) {
    return array_is_contiguous(a) && a->offset == 0 &&
           a->store->bytes == (size_t)a->size * dtype_bytes(a->dt);
}

/* A result of its own for each output: what the step computed, if no other output is it too. */
static simt_status add_outputs(const capture_parts *parts, array **results) {
    for (uint32_t i = 0; i < parts->noutputs; i++) {
        array *a = parts->outputs[i];
        bool own = is_whole(a) && !a->store->data && !is_placeholder(parts, a->store);
        for (uint32_t k = 0; k < i && own; k++) own = parts->outputs[k]->store != a->store;
        for (uint32_t k = 0; k < parts->nvariables && own; k++)
            own = !parts->variables[k].after || parts->variables[k].after->store != a->store;
        if (own)
            results[i] = array_ref(a);
        else
            SIMT_TRY(array_copy(a, &results[i]));
    }
    return SIMT_OK;
}

static simt_status check_variable(const capture_variable *v, uint32_t number) {
    const array *a = v->before, *b = v->after;
    if (!is_whole(a) || a->store->data)
        return status_fail(SIMT_ERR_VALUE, "variable %u of a captured step is no placeholder",
                           number);
    if (b->dt != a->dt || !array_same_shape(b, a->shape, a->ndim))
        return status_fail(SIMT_ERR_VALUE,
                           "variable %u of a captured step becomes of another type or shape",
                           number);
    return SIMT_OK;
}

/* Writes the variables. Where one becomes what another was, that is copied before anything is written. */
static simt_status add_writes(const capture_parts *parts, array **copies) {
    for (uint32_t i = 0; i < parts->nvariables; i++) {
        const capture_variable *v = &parts->variables[i];
        if (!v->after || v->after == v->before) continue;
        SIMT_TRY(check_variable(v, i));
        if (is_placeholder(parts, v->after->store)) SIMT_TRY(array_copy(v->after, &copies[i]));
    }
    for (uint32_t i = 0; i < parts->nvariables; i++) {
        const capture_variable *v = &parts->variables[i];
        if (!v->after || v->after == v->before) continue;
        operand from = operand_array(copies[i] ? copies[i] : v->after);
        SIMT_TRY(array_assign(v->before, &from, FACE_TORCH));
    }
    return SIMT_OK;
}

/* ---- the object ---- */

static void set_kinds(array_capture *c, const capture_parts *parts, array *const *results) {
    for (uint32_t i = 0; i < c->ninputs; i++) {
        int32_t slot = parts->inputs[i]->store->slot;
        c->inputs[i] = slot;
        if (slot >= 0) c->kinds[slot] = CAPTURE_INPUT;
    }
    for (uint32_t i = 0; i < c->nvariables; i++) {
        int32_t slot = parts->variables[i].before->store->slot;
        c->variables[i] = slot;
        c->writes[i] = slot >= 0 && array_ctx.slots[slot].written;
        if (slot >= 0) c->kinds[slot] = CAPTURE_VARIABLE;
    }
    for (uint32_t i = 0; i < c->noutputs; i++) {
        c->outputs[i] = results[i]->store->slot;
        if (c->outputs[i] >= 0) c->kinds[c->outputs[i]] = CAPTURE_OUTPUT;
    }
}

/* Storages that have memory: read by every replay, or the pattern of what it changes. */
static simt_status set_constants(array_capture *c) {
    for (uint32_t i = 0; i < array_ctx.nslots; i++) {
        const array_slot *slot = &array_ctx.slots[i];
        storage *s = slot->store;
        if (c->kinds[i] != CAPTURE_TEMPORARY || !s->data) continue;
        if (slot->written && s->capture != array_ctx.captures)
            return status_fail(SIMT_ERR_RUNTIME,
                               "a captured step changes an array from outside of it in place");
        c->kinds[i] = slot->written ? CAPTURE_PATTERN : CAPTURE_CONSTANT;
        c->stores[i] = s;
        s->refs++;
    }
    return SIMT_OK;
}

static simt_status close_program(const array_capture *c) {
    graph_buffer *facts = heap_zeroed(array_ctx.nslots + 1, sizeof *facts);
    if (!facts) return status_fail(SIMT_ERR_MEMORY, "out of memory while capturing");
    for (uint32_t i = 0; i < array_ctx.nslots; i++) {
        const array_slot *slot = &array_ctx.slots[i];
        bool output = c->kinds[i] == CAPTURE_OUTPUT;
        facts[i].bytes = (int64_t)slot->store->bytes;
        facts[i].ready = !output && c->kinds[i] != CAPTURE_TEMPORARY;
        facts[i].kept = output || (c->kinds[i] == CAPTURE_VARIABLE && slot->written);
    }
    simt_status status = graph_program_close(&array_ctx.program, facts, array_ctx.nslots);
    heap_free(facts);
    return status;
}

static simt_status copy_of(const void *list, size_t count, size_t item, void *out) {
    void *copy = heap_alloc((count + 1) * item);
    if (!copy) return status_fail(SIMT_ERR_MEMORY, "out of memory while capturing");
    if (count) memcpy(copy, list, count * item);
    *(void **)out = copy;
    return SIMT_OK;
}

static simt_status make_plan(array_capture *c) {
    const graph_program *p = &array_ctx.program;
    SIMT_TRY(close_program(c));
    SIMT_TRY(copy_of(p->scalars, p->nscalars, sizeof *p->scalars, &c->scalars));
    SIMT_TRY(copy_of(p->offsets, p->noffsets, sizeof *p->offsets, &c->offsets));
    SIMT_TRY(
        copy_of(array_ctx.positions, array_ctx.npositions, sizeof *c->positions, &c->positions));
    c->npositions = array_ctx.npositions;
    void *token = array_ctx.gil_drop ? array_ctx.gil_drop() : NULL;
    simt_status status = plan_make(p, &c->plan, &c->cost);
    if (array_ctx.gil_take) array_ctx.gil_take(token);
    return status;
}

static simt_status copy_types(array *const *arrays, uint32_t n, capture_type *types) {
    for (uint32_t i = 0; i < n; i++) {
        const array *a = arrays[i];
        types[i].dt = a->dt;
        types[i].ndim = a->ndim;
        types[i].bytes = a->store->bytes;
        memcpy(types[i].shape, a->shape, sizeof *a->shape * (size_t)a->ndim);
    }
    return SIMT_OK;
}

static bool reserve(array_capture *c, const capture_parts *parts) {
    c->ninputs = parts->ninputs;
    c->nvariables = parts->nvariables;
    c->noutputs = parts->noutputs;
    c->nslots = array_ctx.nslots;
    c->inputs = heap_alloc(sizeof *c->inputs * (c->ninputs + 1));
    c->variables = heap_alloc(sizeof *c->variables * (c->nvariables + 1));
    c->outputs = heap_alloc(sizeof *c->outputs * (c->noutputs + 1));
    c->writes = heap_zeroed(c->nvariables + 1, sizeof *c->writes);
    c->kinds = heap_zeroed(c->nslots + 1, sizeof *c->kinds);
    c->stores = heap_zeroed(c->nslots + 1, sizeof *c->stores);
    c->types = heap_alloc(sizeof *c->types * (c->ninputs + c->nvariables + c->noutputs + 1));
    return c->inputs && c->variables && c->outputs && c->writes && c->kinds && c->stores &&
           c->types;
}

/* Under the lock, the program being complete. */
static simt_status make_locked(array_capture *c, const capture_parts *parts, array **results) {
    if (failure.code) return status_adopt(&failure);
    if (!reserve(c, parts)) return status_fail(SIMT_ERR_MEMORY, "out of memory while capturing");
    copy_types(parts->inputs, c->ninputs, c->types);
    for (uint32_t i = 0; i < c->nvariables; i++)
        copy_types(&parts->variables[i].before, 1, &c->types[c->ninputs + i]);
    copy_types(results, c->noutputs, c->types + c->ninputs + c->nvariables);
    set_kinds(c, parts, results);
    SIMT_TRY(set_constants(c));
    SIMT_TRY(make_plan(c));
    return capture_prepare(c);
}

static simt_status lost(void) {
    if (array_ctx.intruded && failure.code) return status_adopt(&failure);
    return status_fail(SIMT_ERR_RUNTIME, "no step is being captured");
}

static simt_status end_with(const capture_parts *parts, array **results, array_capture *c) {
    if (!capture_is_open()) return lost();
    simt_status status = add_outputs(parts, results);
    if (status == SIMT_OK) status = add_writes(parts, results + parts->noutputs);
    simt_status locked = array_lock();
    if (locked != SIMT_OK) return locked;
    if (!capture_is_open())
        status = lost();
    else if (status == SIMT_OK)
        status = make_locked(c, parts, results);
    if (capture_is_open()) end_locked();
    array_unlock();
    return status;
}

simt_status capture_end(const capture_parts *parts, array_capture **out) {
    uint32_t n = parts->noutputs + parts->nvariables;
    array **results = heap_zeroed(n + 1, sizeof(array *));
    array_capture *c = heap_zeroed(1, sizeof *c);
    *out = NULL;
    simt_status status = results && c
                             ? end_with(parts, results, c)
                             : status_fail(SIMT_ERR_MEMORY, "out of memory while capturing");
    capture_abort(); /* where that did not come to its end */
    simt_diag diag = status != SIMT_OK ? *status_get() : (simt_diag){0};
    for (uint32_t i = 0; results && i < n; i++) array_unref(results[i]);
    heap_free(results);
    if (status == SIMT_OK) {
        *out = c;
        return SIMT_OK;
    }
    capture_free(c);
    return status_adopt(&diag);
}

bool capture_writes(const array_capture *c, uint32_t variable) { return c->writes[variable]; }

void capture_free(array_capture *c) {
    if (!c) return;
    plan_free(c->plan);
    bool locked = array_lock() == SIMT_OK;
    capture_release(c);
    for (uint32_t i = 0; c->stores && i < c->nslots; i++)
        if (c->stores[i] && locked) storage_unref_locked(c->stores[i]);
    if (locked) array_unlock();
    void *parts[] = {c->inputs, c->variables, c->outputs, c->writes,  c->kinds,
                     c->stores, c->types,     c->scalars, c->offsets, c->positions};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) heap_free(parts[i]);
    heap_free(c);
}
