/* Runs the open program: closes it, finds or makes its plan, runs the plan's steps.
 *
 * A failing step marks what it should have computed as failed; a step that reads something failed is
 * left out and marks its outputs too. A write into memory which existed before is dropped and leaves it
 * as it was: the failure is raised by the next look at anything, what follows in this run and uses that
 * memory is left out too, and the memory is good again afterwards. All other steps are committed.
 *
 * An interrupt (Ctrl-C) stops the run between groups of nodes, never the program: what is done is
 * committed, the other nodes are the open program again (queue_reopen_locked) and run with the next look.
 * Where there is no memory to plan the program, it stays open as a whole.
 * So what has been begun must leave no trace: a step that changes memory with contents is run whole or
 * undone, all other steps can be repeated. A fork in a signal handler is, in the child, such an interrupt.
 */
#include <stdlib.h>
#include <string.h>

#include "array/internal.h"
#include "array/meta.h"
#include "array/plan_cache.h"
#include "base/heap.h"

#define GIL_DROP_COST 20000.0 /* ns: below it, the GIL is kept */
#define MOST_DIAGS    255

/* State of one run; its memory is kept from run to run, so that a warm evaluation allocates nothing. */
static struct {
    void **memory; /* per buffer of the plan */
    uint8_t *bad;  /* per buffer: 1 + the number of the failure that it has no value for; 0: fine */
    bool *filled;  /* per buffer: a step of this run has written it */
    uint32_t buffers_capacity;
    bool *left; /* per node: its group has not run */
    uint32_t nodes_capacity;
    uint64_t *args;
    uint32_t args_capacity;
    simt_diag *diags; /* failures of this run */
    int ndiags;
    const graph_plan *plan; /* on its way; NULL: none */
    uint32_t step;          /* the one on its way */
    struct undo *undo;      /* what it changes, where that is to be undone if it does not end */
} run;

static bool unplanned;  /* the last run had no memory for its plan */
static bool lost_write; /* a write was dropped and nobody has heard of it */
static simt_diag lost;

static bool grow(void **list, uint32_t capacity, size_t item) {
    void *grown = heap_resize(*list, capacity * item);
    if (grown) *list = grown;
    return grown != NULL;
}

static simt_status reserve(const graph_plan *plan, uint32_t nargs) {
    bool fine = true;
    if (plan->nbuffers > run.buffers_capacity) {
        uint32_t grown = plan->nbuffers + plan->nbuffers / 2 + 64;
        fine = grow((void **)&run.memory, grown, sizeof *run.memory) &&
               grow((void **)&run.bad, grown, sizeof *run.bad) &&
               grow((void **)&run.filled, grown, sizeof *run.filled);
        if (fine) run.buffers_capacity = grown;
    }
    if (fine && plan->nnodes > run.nodes_capacity) {
        uint32_t grown = plan->nnodes + 64;
        fine = grow((void **)&run.left, grown, sizeof *run.left);
        if (fine) run.nodes_capacity = grown;
    }
    if (fine && nargs > run.args_capacity) {
        fine = grow((void **)&run.args, nargs + 64, sizeof *run.args);
        if (fine) run.args_capacity = nargs + 64;
    }
    return fine ? SIMT_OK : status_fail(SIMT_ERR_MEMORY, "out of memory while evaluating");
}

void evaluate_forget_locked(void) {
    heap_free(run.memory);
    heap_free(run.bad);
    heap_free(run.filled);
    heap_free(run.left);
    heap_free(run.args);
    heap_free(run.diags);
    memset(&run, 0, sizeof run);
}

/* ---- failures ---- */

/* Records the thread's diagnostic; returns its mark for run.bad. */
static uint8_t add_failure(void) {
    if (run.ndiags == MOST_DIAGS) return MOST_DIAGS;
    if (!run.diags) run.diags = heap_alloc(sizeof *run.diags * MOST_DIAGS);
    if (!run.diags) return MOST_DIAGS;
    run.diags[run.ndiags++] = *status_get();
    return (uint8_t)run.ndiags;
}

static const simt_diag *failure_of(uint8_t mark) {
    static const simt_diag unknown = {.code = SIMT_ERR_MEMORY,
                                      .text = "out of memory while evaluating"};
    return mark <= run.ndiags ? &run.diags[mark - 1] : &unknown;
}

static bool existed_before(const graph_plan *plan, uint32_t buffer) {
    return plan->buffers[buffer].ready && !array_ctx.slots[buffer].fresh;
}

/* What the node should have written has no value; existing memory stays as it is, if it could. */
static void fail_output(const graph_plan *plan, const graph_node *n, uint8_t mark) {
    uint32_t b = n->out.buffer;
    run.bad[b] = mark;
    if (existed_before(plan, b) && !array_ctx.slots[b].store->failed && !lost_write) {
        lost_write = true;
        lost = *failure_of(mark);
    }
}

static void fail_step(const graph_plan *plan, const graph_step *step, uint8_t mark) {
    for (uint32_t i = 0; i < step->nnodes; i++)
        fail_output(plan, &plan->nodes[step->nodes[i]], mark);
    if (step->is_call) fail_output(plan, &plan->nodes[step->node], mark);
    for (uint32_t i = 0; i < step->nallocs; i++) run.bad[step->allocs[i]] = mark;
}

/* The failure that the step depends on, or 0. */
static uint8_t step_bad(const graph_plan *plan, const graph_step *step) {
    if (step->is_call) {
        const graph_node *n = &plan->nodes[step->node];
        for (int i = 0; i < n->nin; i++)
            if (n->scalar[i] < 0 && run.bad[n->in[i].buffer]) return run.bad[n->in[i].buffer];
        return run.bad[n->out.buffer];
    }
    for (uint32_t i = 0; i < step->nargs; i++)
        if (step->args[i].kind == GRAPH_ARG_VIEW && run.bad[step->args[i].index])
            return run.bad[step->args[i].index];
    return 0;
}

/* ---- steps ---- */

static simt_status allocate(const graph_plan *plan, const graph_step *step) {
    device *dev = array_ctx.dev;
    for (uint32_t i = 0; i < step->nallocs; i++) {
        uint32_t b = step->allocs[i];
        if (run.memory[b]) continue;
        SIMT_TRY(dev->alloc(dev, (size_t)plan->buffers[b].bytes, &run.memory[b]));
    }
    return SIMT_OK;
}

static void release(const graph_plan *plan, const graph_step *step) {
    device *dev = array_ctx.dev;
    for (uint32_t i = 0; i < step->nfrees; i++) {
        uint32_t b = step->frees[i];
        if (!run.memory[b]) continue;
        storage *s = b < plan->nprogram_buffers ? array_ctx.slots[b].store : NULL;
        if (s && s->data) { /* memory from before the program, which nobody else holds */
            if (s->foreign) continue;
            s->data = NULL;
        }
        dev->free(dev, run.memory[b], (size_t)plan->buffers[b].bytes);
        run.memory[b] = NULL;
    }
}

/* ---- kernels that write into memory with contents ----
 *
 * Nobody shall see an array half changed, and a step that is repeated must find what it found. Such a
 * kernel is not stopped in the middle; but one that takes long, against which a copy of what it writes
 * costs little, is: the memory then gets back what it had. */

#define LONG_KERNEL 1e8 /* ns, as estimated: math functions take longer */
#define COPY_COST   0.3 /* ns a byte, into new memory */
#define COPY_SHARE  0.25
#define MOST_COPY   ((int64_t)1 << 30)

enum { MOST_UNDO = 16 };
typedef struct undo {
    uint32_t n;
    int64_t bytes;
    uint32_t buffer[MOST_UNDO];
    void *copy[MOST_UNDO];
} undo;

static bool has_contents(const graph_plan *plan, uint32_t buffer) {
    return existed_before(plan, buffer) || run.filled[buffer];
}

/* The buffers that the step changes; false: too many to undo. */
static bool find_changed(const graph_plan *plan, const graph_step *step, undo *u) {
    u->n = 0;
    u->bytes = 0;
    for (uint32_t i = 0; i < step->nnodes; i++) {
        uint32_t b = plan->nodes[step->nodes[i]].out.buffer, k = 0;
        while (k < u->n && u->buffer[k] != b) k++;
        if (k < u->n || !has_contents(plan, b)) continue;
        if (u->n == MOST_UNDO) return false;
        u->buffer[u->n++] = b;
        u->bytes += plan->buffers[b].bytes;
    }
    return true;
}

/* The copy back failed: the memory is half changed, so it has no value any more. Why the step ended stays the
 * thread's diagnostic. */
static void lose(const graph_plan *plan, uint32_t buffer, const simt_diag *ended) {
    status_prefix("an operation was stopped and the array it wrote could not be restored: ");
    uint8_t mark = add_failure();
    run.bad[buffer] = mark;
    if (existed_before(plan, buffer))
        storage_fail_locked(array_ctx.slots[buffer].store, failure_of(mark));
    status_adopt(ended);
}

static void end_undo(const graph_plan *plan, undo *u, bool restore) {
    device *dev = array_ctx.dev;
    simt_diag ended = *status_get();
    run.undo = NULL;
    for (uint32_t i = 0; i < u->n; i++) {
        uint32_t b = u->buffer[i];
        size_t bytes = (size_t)plan->buffers[b].bytes;
        if (restore && device_copy(dev, DEVICE_WITHIN, run.memory[b], u->copy[i], bytes) != SIMT_OK)
            lose(plan, b, &ended);
        dev->free(dev, u->copy[i], bytes);
    }
}

/* run.undo stays NULL where the copies cost too much or find no memory. */
static simt_status begin_undo(const graph_plan *plan, undo *u, double cost) {
    if (cost < LONG_KERNEL || u->bytes > MOST_COPY ||
        (double)u->bytes * COPY_COST > cost * COPY_SHARE)
        return SIMT_OK;
    uint32_t changed = u->n;
    device *dev = array_ctx.dev;
    simt_status status = SIMT_OK;
    for (u->n = 0; u->n < changed;) {
        uint32_t i = u->n, b = u->buffer[i];
        size_t bytes = (size_t)plan->buffers[b].bytes;
        bool room = dev->alloc(dev, bytes, &u->copy[i]) == SIMT_OK;
        if (room) u->n++;
        if (room) status = device_copy(dev, DEVICE_WITHIN, u->copy[i], run.memory[b], bytes);
        if (room && status == SIMT_OK) continue;
        end_undo(plan, u, false);
        return status;
    }
    run.undo = u;
    return SIMT_OK;
}

/* A group that is lowered to several kernels begins with the first of them. */
static bool begins_group(const graph_plan *plan, const graph_step *step) {
    if (step == plan->steps || step->is_call || step[-1].is_call) return true;
    return step->nodes[0] != step[-1].nodes[0];
}

static simt_status launch_held(const graph_step *step, code_fault *fault) {
    bool held = device_hold_interrupts(true);
    simt_status status = runtime_launch_whole(step->kernel, step->grid, run.args, 0, fault);
    device_hold_interrupts(held);
    return status;
}

static simt_status launch(const graph_plan *plan, const graph_step *step, code_fault *fault) {
    undo u;
    if (!begins_group(plan, step)) return launch_held(step, fault);
    bool few = find_changed(plan, step, &u);
    if (few && u.n == 0) return runtime_launch(step->kernel, step->grid, run.args, 0, fault);
    double cost = runtime_launch_cost(step->kernel, step->grid);
    if (few) SIMT_TRY(begin_undo(plan, &u, cost));
    if (!run.undo) return runtime_launch_whole(step->kernel, step->grid, run.args, 0, fault);
    unsigned forks = array_ctx.forks;
    simt_status status = runtime_launch(step->kernel, step->grid, run.args, 0, fault);
    if (forks == array_ctx.forks) end_undo(plan, &u, status != SIMT_OK);
    return status;
}

static simt_status run_kernel(const graph_plan *plan, const graph_step *step) {
    const graph_program *p = &array_ctx.program;
    for (uint32_t i = 0; i < step->nargs; i++) {
        const graph_arg *arg = &step->args[i];
        uint64_t value = (uint64_t)arg->add;
        if (arg->kind == GRAPH_ARG_VIEW)
            value += (uint64_t)(uintptr_t)run.memory[arg->index];
        else if (arg->kind == GRAPH_ARG_SCALAR)
            value = p->scalars[arg->index];
        if (arg->offset_index >= 0) value += (uint64_t)p->offsets[arg->offset_index];
        run.args[i] = value;
    }
    code_fault fault = {0};
    array_ctx.stats.launches++;
    SIMT_TRY(launch(plan, step, &fault));
    if (fault.set)
        return status_fail(SIMT_ERR_INTERNAL, "fault %u in a kernel of array operations",
                           fault.number);
    return SIMT_OK;
}

static void call_view_of(call_view *v, const graph_view *from, int64_t offset) {
    v->data = (char *)run.memory[from->buffer] + offset;
    v->dt = from->dt;
    v->ndim = from->ndim;
    v->shape = from->shape;
    v->strides = from->strides;
}

/* May the step be repeated after it was stopped in the middle? */
static bool is_repeatable(const graph_plan *plan, const graph_node *n) {
    uint32_t b = n->out.buffer;
    if (existed_before(plan, b)) return false;
    if (!run.filled[b]) return true;
    for (int i = 0; i < n->nin; i++)
        if (n->scalar[i] < 0 && n->in[i].buffer == b) return false;
    return n->op != OP_INDEX_PUT;
}

static simt_status run_call(const graph_plan *plan, const graph_step *step) {
    const graph_node *n = &plan->nodes[step->node];
    const int64_t *offsets = array_ctx.program.offsets + n->first_offset;
    call_args c;
    c.node = n;
    c.dev = array_ctx.host;
    for (int i = 0; i < n->nin; i++)
        if (n->scalar[i] < 0) call_view_of(&c.in[i], &n->in[i], *offsets++);
    call_view_of(&c.out, &n->out, *offsets);
    call_function function = array_ctx.library->calls[n->op];
    bool held = device_hold_interrupts(!is_repeatable(plan, n));
    simt_status status = function ? function(&c) : host_call(&c);
    device_hold_interrupts(held);
    if (status == SIMT_OK || status == SIMT_ERR_INTERRUPT) return status;
    for (uint32_t i = 0; i < array_ctx.npositions; i++) {
        const array_position *p = &array_ctx.positions[i];
        if (p->node == step->node && p->line) status_set_position(p->file, p->line, 0);
    }
    return status;
}

static void set_filled(const graph_plan *plan, const graph_step *step) {
    for (uint32_t i = 0; i < step->nnodes; i++)
        run.filled[plan->nodes[step->nodes[i]].out.buffer] = true;
}

/* SIMT_ERR_INTERRUPT: the step `run.step` and those after it have not run. */
static simt_status run_steps(const graph_plan *plan) {
    simt_status first = SIMT_OK;
    unsigned forks = array_ctx.forks;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const graph_step *step = &plan->steps[i];
        run.step = i;
        uint8_t mark = first != SIMT_OK ? step_bad(plan, step) : 0;
        if (!mark) {
            simt_status status = allocate(plan, step);
            if (status == SIMT_OK)
                status = step->is_call ? run_call(plan, step) : run_kernel(plan, step);
            if (status == SIMT_ERR_INTERRUPT || forks != array_ctx.forks) return SIMT_ERR_INTERRUPT;
            if (status != SIMT_OK) {
                mark = add_failure();
                if (first == SIMT_OK) first = status;
            }
        }
        if (mark)
            fail_step(plan, step, mark);
        else
            set_filled(plan, step);
        release(plan, step);
    }
    return first == SIMT_OK ? first : status_adopt(failure_of(1));
}

/* ---- the whole run ---- */

static simt_status close_program(void) {
    array_context *c = &array_ctx;
    graph_buffer some[64], *facts = some;
    some[0].bytes = 0;
    if (c->nslots > 64 && !(facts = heap_alloc(sizeof *facts * c->nslots)))
        return status_fail(SIMT_ERR_MEMORY, "out of memory while evaluating");
    for (uint32_t i = 0; i < c->nslots; i++) {
        const storage *s = c->slots[i].store;
        facts[i].bytes = (int64_t)s->bytes;
        facts[i].ready = s->data != NULL;
        facts[i].kept = s->refs > s->program_refs || c->slots[i].needed;
    }
    simt_status status = graph_program_close(&c->program, facts, c->nslots);
    if (facts != some) heap_free(facts);
    return status;
}

void evaluate_fail_locked(const array_slot *slot, const simt_diag *diag) {
    if (slot->store->failed) return;
    if (!slot->store->data || slot->fresh) {
        storage_fail_locked(slot->store, diag);
    } else if (!lost_write) {
        lost_write = true;
        lost = *diag;
    }
}

/* Nothing ran: every output of the program failed. */
static void fail_all(void) {
    simt_diag diag = *status_get();
    for (uint32_t i = 0; i < array_ctx.nslots; i++) {
        const array_slot *slot = &array_ctx.slots[i];
        if (slot->written) evaluate_fail_locked(slot, &diag);
    }
}

/* Hands the computed memory to the storages that are still held. stopped: what is not filled was only
 * begun. */
static void commit(const graph_plan *plan, bool stopped) {
    device *dev = array_ctx.dev;
    for (uint32_t b = 0; b < plan->nbuffers; b++) {
        storage *s = b < plan->nprogram_buffers ? array_ctx.slots[b].store : NULL;
        if (s && run.bad[b] && !existed_before(plan, b))
            storage_fail_locked(s, failure_of(run.bad[b]));
        if (!run.memory[b] || (s && s->data)) continue;
        if (s && !run.bad[b] && (run.filled[b] || !stopped))
            s->data = run.memory[b];
        else
            dev->free(dev, run.memory[b], (size_t)plan->buffers[b].bytes);
    }
}

/* Commits what is done; the rest is the open program again, but for what depends on failures. */
static void stop_plan(const graph_plan *plan) {
    memset(run.left, 0, plan->nnodes * sizeof *run.left);
    for (uint32_t i = run.step; i < plan->nsteps; i++) {
        const graph_step *step = &plan->steps[i];
        uint8_t mark = step_bad(plan, step);
        if (mark) fail_step(plan, step, mark);
        for (uint32_t k = 0; k < step->nnodes && !mark; k++) run.left[step->nodes[k]] = true;
    }
    commit(plan, true);
    run.plan = NULL;
    queue_reopen_locked(plan, run.left);
}

static simt_status run_plan(const cached_plan *cached) {
    const graph_plan *plan = cached->plan;
    memset(run.bad, 0, plan->nbuffers);
    memset(run.filled, 0, plan->nbuffers * sizeof *run.filled);
    uint32_t b = 0;
    for (; b < plan->nprogram_buffers; b++) run.memory[b] = array_ctx.slots[b].store->data;
    for (; b < plan->nbuffers; b++) run.memory[b] = NULL;
    run.ndiags = 0;
    run.plan = plan;
    unsigned forks = array_ctx.forks;
    bool drop = cached->cost > GIL_DROP_COST && array_ctx.gil_drop;
    array_ctx.running = drop ? RUNS_PROGRAM : RUNS_NOTHING;
    void *token = drop ? array_ctx.gil_drop() : NULL;
    simt_status status = run_steps(plan);
    if (drop) array_ctx.gil_take(token);
    array_ctx.running = RUNS_NOTHING;
    if (forks != array_ctx.forks) return SIMT_ERR_INTERRUPT; /* evaluate_after_fork was there */
    if (status == SIMT_ERR_INTERRUPT) {
        stop_plan(plan);
        return status;
    }
    commit(plan, false);
    run.plan = NULL;
    return status;
}

/* In the child, whose thread forked in a signal handler in the middle of a run: the handler may use
 * arrays, so the run is over. */
void evaluate_after_fork(void) {
    if (!run.plan) return;
    if (run.undo) end_undo(run.plan, run.undo, true);
    stop_plan(run.plan);
}

static void end_program(void) {
    if (part_is_active())
        part_end_locked(true);
    else
        queue_clear_locked();
}

/* The plan of the program, which is closed, and room for its run. */
static simt_status find_plan(const cached_plan **cached) {
    array_context *c = &array_ctx;
    SIMT_TRY(close_program());
    if ((*cached = plan_cache_find(&c->program))) {
        c->stats.plan_hits++;
    } else {
        c->stats.plans++;
        void *token = c->gil_drop ? c->gil_drop() : NULL;
        simt_status status = plan_cache_make(&c->program, cached);
        if (c->gil_take) c->gil_take(token);
        if (status != SIMT_OK) return status;
    }
    return reserve((*cached)->plan, (*cached)->most_args);
}

/* Planning had no memory: the program is open again, and a look needs a plan for its own part only. */
static void leave_program(void) {
    unplanned = true;
    graph_program_reopen(&array_ctx.program);
    array_ctx.reopened = true;
    part_end_locked(false);
}

bool evaluate_was_planned(void) { return !unplanned; }

static simt_status evaluate_once(void) {
    array_context *c = &array_ctx;
    unplanned = false;
    if (c->program.nnodes == 0) {
        if (c->nslots) end_program();
        return SIMT_OK;
    }
    SIMT_TRY(order_await_program());
    c->stats.evaluations++;
    const cached_plan *cached = NULL;
    simt_status status = find_plan(&cached);
    bool planned = status == SIMT_OK;
    if (planned) status = run_plan(cached);
    if (status == SIMT_ERR_MEMORY && !planned) leave_program();
    if (status == SIMT_ERR_INTERRUPT || unplanned) {
        order_changed();
        return status;
    }
    if (!planned) fail_all();
    end_program();
    order_changed();
    return status;
}

simt_status evaluate_locked(void) {
    if (array_ctx.capturing) return capture_look_locked(NULL);
    for (;;) {
        unsigned forks = array_ctx.forks;
        simt_status status = evaluate_once();
        if (forks == array_ctx.forks) return status;
        SIMT_TRY(array_lock()); /* the child of a handler that came back: the fork freed the lock */
    }
}

simt_status evaluate_outcome_locked(const storage *s, simt_status ran) {
    if (ran == SIMT_ERR_INTERRUPT || (ran != SIMT_OK && (unplanned || array_ctx.capturing)))
        return ran;
    if (s && s->failed && ran == SIMT_ERR_MEMORY && lost.code == ran)
        lost_write = false; /* one cause */
    if (s && s->failed) return storage_failure(s);
    if (!lost_write) return SIMT_OK;
    lost_write = false;
    return status_adopt(&lost);
}

simt_status array_evaluate(array *a) {
    storage *s = a->store;
    SIMT_TRY(array_lock_to_look());
    simt_status status = array_ctx.capturing ? capture_look_locked(s) : SIMT_OK;
    if (status == SIMT_OK) status = order_await_kernels(s);
    if (status == SIMT_OK && s->slot >= 0 && array_ctx.slots[s->slot].written) {
        if (array_ctx.reopened) part_begin_locked(s);
        status = evaluate_locked();
    }
    status = evaluate_outcome_locked(s, status);
    if (status == SIMT_OK && storage_is_placeholder(s))
        status = status_fail(SIMT_ERR_RUNTIME, CAPTURE_NO_VALUE);
    array_unlock();
    return status;
}

static simt_status evaluate_all(bool defer) {
    if (!array_ctx.ready) return SIMT_OK;
    SIMT_TRY(defer ? array_lock() : array_lock_to_look());
    simt_status status = evaluate_locked();
    if (defer && (queue_defer_locked(status) || (status == SIMT_ERR_MEMORY && unplanned)))
        status = SIMT_OK;
    if (status == SIMT_OK) status = evaluate_outcome_locked(NULL, status);
    lost_write = false;
    array_unlock();
    return status;
}

simt_status array_evaluate_all(void) { return evaluate_all(false); }
simt_status array_settle(void) { return evaluate_all(true); }

simt_status array_expose(array *a) {
    storage *s = a->store;
    SIMT_TRY(array_lock_to_look());
    simt_status status = SIMT_OK;
    if (array_ctx.capturing)
        status = capture_look_locked(s);
    else if (s->slot >= 0)
        status = evaluate_locked(); /* readers too */
    status = evaluate_outcome_locked(s, status);
    if (status == SIMT_OK && storage_is_placeholder(s))
        status = status_fail(SIMT_ERR_RUNTIME, CAPTURE_NO_VALUE);
    if (status == SIMT_OK && !s->data)
        status = array_ctx.dev->alloc(array_ctx.dev, s->bytes, &s->data);
    if (status == SIMT_OK) storage_expose_locked(s);
    array_unlock();
    return status;
}
