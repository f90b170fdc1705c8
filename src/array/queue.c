/* The open program: operations wait here until a value is looked at.
 *
 * Each storage that takes part has a slot (its buffer number in the program) and one reference from the
 * program. The program runs at once when memory that foreign code can see takes part, when SIMT_EAGER
 * is set, and at the bounds below.
 *
 * Interrupts: an operation that ran at once and was interrupted has not happened. One that only made the
 * program too long has, and its caller, who may be in the middle of more (backward, a layer's running
 * statistics), must not notice: the binding raises the interrupt once it is back in the interpreter.
 *
 * Without memory to plan the program, what waits goes on waiting; the operation that was to be run at once, or
 * that made the program too long, has not happened.
 */
#include <string.h>

#include "array/internal.h"
#include "array/meta.h"
#include "array/section.h"
#include "base/heap.h"

#define MOST_NODES    1000
#define MOST_CAPTURED 20000 /* nodes of a captured step */
#define MOST_PINNED   ((size_t)512 << 20)
/* An array larger than memory may be computed as part of a sum that fuses with it; one larger than this
 * would not end within hours. */
#define MOST_ELEMENTS ((int64_t)1 << 42)

void queue_view(graph_view *v, const array *a) {
    v->dt = a->dt;
    v->ndim = a->ndim;
    v->offset = a->offset;
    memcpy(v->shape, a->shape, sizeof *v->shape * (size_t)a->ndim);
    memcpy(v->strides, a->strides, sizeof *v->strides * (size_t)a->ndim);
}

void queue_view_broadcast(graph_view *v, const array *a, const int64_t *shape, int ndim) {
    v->dt = a->dt;
    v->ndim = ndim;
    v->offset = a->offset;
    int extra = ndim - a->ndim;
    for (int d = 0; d < ndim; d++) {
        v->shape[d] = shape[d];
        v->strides[d] = d < extra || a->shape[d - extra] == 1 ? 0 : a->strides[d - extra];
    }
}

void queue_input(queue_request *q, array *a) {
    int i = q->node.nin++;
    q->in[i] = a;
    q->node.scalar[i] = -1;
    queue_view(&q->node.in[i], a);
}

void queue_output_new(queue_request *q, dtype dt, const int64_t *shape, int ndim) {
    graph_view *v = &q->node.out;
    v->dt = dt;
    v->ndim = ndim;
    v->offset = 0;
    int64_t stride = (int64_t)dtype_bytes(dt);
    for (int d = ndim - 1; d >= 0; d--) {
        v->shape[d] = shape[d];
        v->strides[d] = stride;
        stride *= shape[d];
    }
}

void queue_ask_position(array_position *p) {
    p->line = 0;
    p->file[0] = '\0';
    if (array_ctx.position_hook) array_ctx.position_hook(p->file, sizeof p->file, &p->line);
}

static simt_status grow(void **list, uint32_t *capacity, size_t item) {
    uint32_t grown = *capacity ? *capacity * 2 : 64;
    void *memory = heap_resize(*list, grown * item);
    if (!memory) return status_fail(SIMT_ERR_MEMORY, "out of memory while recording an operation");
    *list = memory;
    *capacity = grown;
    return SIMT_OK;
}

/* The storage's buffer number; its room in the table was made before. */
static uint32_t slot_of(storage *s) {
    if (s->slot < 0) {
        s->slot = (int32_t)array_ctx.nslots;
        array_ctx.slots[array_ctx.nslots++] = (array_slot){.store = s};
        s->refs++;
        s->program_refs++;
    }
    return (uint32_t)s->slot;
}

static simt_status reserve(uint32_t nodes) {
    array_context *c = &array_ctx;
    while (c->nslots + nodes * 4 + GRAPH_MAX_INPUTS + 1 > c->slots_capacity)
        SIMT_TRY(grow((void **)&c->slots, &c->slots_capacity, sizeof *c->slots));
    while (c->npositions + 1 > c->positions_capacity)
        SIMT_TRY(grow((void **)&c->positions, &c->positions_capacity, sizeof *c->positions));
    return SIMT_OK;
}

/* Runs the program for the sake of its last node. */
static simt_status run_now(uint32_t number, array *target) {
    array_ctx.withdrawn = number;
    simt_status status = evaluate_locked();
    array_ctx.withdrawn = UINT32_MAX;
    return evaluate_outcome_locked(target->store, status);
}

bool queue_defer_locked(simt_status status) {
    if (status != SIMT_ERR_INTERRUPT || !array_ctx.defer_hook || !array_ctx.defer_hook())
        return false;
    array_ctx.deferred = true;
    return true;
}

static _Thread_local bool held; /* between array_step_begin and array_step_end */

static simt_status run_long(array *target) {
    if (array_ctx.deferred || held) return SIMT_OK;
    simt_status status = evaluate_locked();
    if (queue_defer_locked(status)) return SIMT_OK;
    return evaluate_outcome_locked(target->store, status);
}

static simt_status keep_capturing(void) {
    if (array_ctx.program.nnodes < MOST_CAPTURED) return SIMT_OK;
    return capture_fail_locked("a step that is being captured has too many operations");
}

/* The last node was to be run and could not be planned: it has not happened, what was before it waits. */
static void withdraw(const graph_mark *before) {
    array_context *c = &array_ctx;
    graph_program_withdraw(&c->program, before);
    if (c->npositions && c->positions[c->npositions - 1].node >= before->nnodes) c->npositions--;
}

/* In place, where an input or the output has no data: nothing can be written from what has none. */
static simt_status write_meta(queue_request *q, array **result) {
    if (!array_is_meta(q->out))
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    ++*array_version(q->out);
    *result = array_ref(q->out);
    return SIMT_OK;
}

static simt_status wrong_device(const storage *s) {
    return status_fail(SIMT_ERR_RUNTIME, "an array on %s is used with arrays on %s",
                       s->device->name, array_ctx.dev->name);
}

/* What is known of a request's operands before it has a node. */
typedef struct operand_facts {
    bool exposed, meta; /* some are */
} operand_facts;

static simt_status look_at_inputs(const queue_request *q, operand_facts *facts) {
    const graph_node *n = &q->node;
    for (int i = 0; i < n->nin; i++) {
        if (n->scalar[i] >= 0) continue;
        const storage *s = q->in[i]->store;
        if (__builtin_expect(s->failed != SIMT_OK, 0)) {
            if (!storage_is_meta(s)) return storage_failure(s);
            facts->meta = true;
        }
        if (s->device != array_ctx.dev) return wrong_device(s);
        if (storage_is_placeholder(s) && !array_ctx.capturing)
            return status_fail(SIMT_ERR_RUNTIME, CAPTURE_NO_VALUE);
        facts->exposed |= s->exposed;
    }
    return SIMT_OK;
}

static simt_status too_large(const graph_view *v, int64_t bytes) {
    char text[200];
    return status_fail(SIMT_ERR_MEMORY,
                       "Unable to allocate %.3g TiB for an array with shape %s and data type %s",
                       (double)bytes / (1LL << 40),
                       shape_print(v->shape, v->ndim, text, sizeof text), dtype_table[v->dt].name);
}

static simt_status make_target(const graph_view *v, array **out) {
    int64_t bytes = (int64_t)dtype_bytes(v->dt);
    for (int d = 0; d < v->ndim; d++) bytes *= v->shape[d];
    if (bytes > MOST_ELEMENTS * (int64_t)dtype_bytes(v->dt)) return too_large(v, bytes);
    storage *s = storage_new_locked((size_t)bytes);
    if (!s) return SIMT_ERR_MEMORY;
    return array_new_locked(s, v->dt, v->shape, v->strides, v->ndim, 0, out);
}

/* A new reference to what is written in place. */
static simt_status take_target(queue_request *q, operand_facts *facts, array **out) {
    const storage *s = q->out->store;
    if (s->failed) return storage_failure(s);
    if (s->device != array_ctx.dev) return wrong_device(s);
    facts->exposed |= s->exposed;
    queue_view(&q->node.out, q->out);
    *out = array_ref(q->out);
    return SIMT_OK;
}

static simt_status add_locked(queue_request *q, array **result) {
    graph_node *n = &q->node;
    SIMT_TRY(reserve(0));
    operand_facts facts = {0};
    SIMT_TRY(look_at_inputs(q, &facts));
    if (q->out && (facts.meta || array_is_meta(q->out))) return write_meta(q, result);
    array *target;
    SIMT_TRY(q->out ? take_target(q, &facts, &target) : make_target(&n->out, &target));
    if (facts.meta) {
        storage_make_meta(target->store);
        *result = target;
        return SIMT_OK;
    }
    for (int i = 0; i < n->nin; i++)
        if (n->scalar[i] < 0) n->in[i].buffer = slot_of(q->in[i]->store);
    n->out.buffer = slot_of(target->store);
    const graph_mark before = graph_program_mark(&array_ctx.program);
    simt_status status = graph_program_add(&array_ctx.program, n, q->scalars);
    if (status != SIMT_OK) { /* slots without a node are harmless */
        *result = target;
        return status;
    }
    array_slot *slot = &array_ctx.slots[n->out.buffer], slot_before = *slot;
    slot->written = true;
    slot->fresh |= q->fresh;
    if (q->out) ++*array_version(target);
    if (q->position) {
        array_position *p = &array_ctx.positions[array_ctx.npositions++];
        *p = *q->position;
        p->node = before.nnodes;
    }
    array_ctx.stats.nodes++;
    *result = target;
    if (array_ctx.capturing)
        status = keep_capturing();
    else if (facts.exposed || array_ctx.eager)
        status = run_now(before.nnodes, target);
    else if (array_ctx.program.nnodes >= MOST_NODES || array_ctx.pinned > MOST_PINNED)
        status = run_long(target);
    if (status != SIMT_OK && !evaluate_was_planned()) {
        withdraw(&before);
        array_ctx.slots[n->out.buffer] = slot_before; /* its number is the same */
        if (q->out) --*array_version(target);
    }
    return status;
}

simt_status queue_add(queue_request *q, array **result) {
    array *made = NULL;
    SIMT_TRY(array_lock());
    section_queued();
    simt_status status = add_locked(q, &made);
    array_unlock();
    if (status != SIMT_OK || !result) {
        if (made) {
            simt_diag diag = status != SIMT_OK ? *status_get() : (simt_diag){0};
            array_unref(made); /* may run foreign code */
            if (status != SIMT_OK) status_adopt(&diag);
        }
        return status;
    }
    *result = made;
    return SIMT_OK;
}

simt_status array_step_begin(uint32_t nodes) {
    SIMT_TRY(array_lock());
    simt_status status = reserve(nodes);
    if (status == SIMT_OK) status = graph_program_reserve(&array_ctx.program, nodes);
    array_unlock();
    held = status == SIMT_OK;
    return status;
}

void array_step_end(void) { held = false; }

void queue_clear_locked(void) {
    array_context *c = &array_ctx;
    uint32_t n = c->nslots;
    c->nslots = c->npositions = 0;
    c->pinned = 0;
    c->reopened = false;
    graph_program_clear(&c->program);
    for (uint32_t i = 0; i < n; i++) {
        storage *s = c->slots[i].store;
        s->slot = -1;
        s->program_refs = 0;
        storage_unref_locked(s);
    }
}

simt_status queue_append_locked(const graph_node *from, const int64_t *offsets,
                                const uint64_t *scalars) {
    graph_node n = *from;
    const int64_t *offset = offsets + n.first_offset;
    for (int i = 0; i < n.nin; i++)
        if (n.scalar[i] < 0) n.in[i].offset = *offset++;
    n.out.offset = *offset;
    return graph_program_add(&array_ctx.program, &n, scalars + n.first_scalar);
}

void queue_reopen_locked(const graph_plan *plan, const bool *left) {
    array_context *c = &array_ctx;
    graph_program_clear(&c->program);
    c->pinned = 0;
    for (uint32_t i = 0; i < c->nslots; i++) {
        const storage *s = c->slots[i].store;
        c->slots[i].written = false;
        if (s->refs == s->program_refs && s->data) c->pinned += s->bytes;
    }
    uint32_t npositions = 0, position = 0;
    for (uint32_t i = 0; i < plan->nnodes; i++) {
        while (position < c->npositions && c->positions[position].node < i) position++;
        if (!left[i] || i == c->withdrawn) continue;
        if (position < c->npositions && c->positions[position].node == i) {
            c->positions[npositions] = c->positions[position++];
            c->positions[npositions++].node = c->program.nnodes;
        }
        c->slots[plan->nodes[i].out.buffer].written = true;
        /* there is room: what was there is appended to what was before it */
        queue_append_locked(&plan->nodes[i], c->program.offsets, c->program.scalars);
    }
    c->npositions = npositions;
    for (uint32_t i = 0; i < c->nslots; i++) {
        array_slot *slot = &c->slots[i];
        slot->fresh |= !plan->buffers[i].ready;
        if (!part_is_active()) slot->fresh &= slot->written;
    }
    c->reopened = c->program.nnodes > 0;
    part_end_locked(false);
}
