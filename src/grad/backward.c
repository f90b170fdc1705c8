/* The backward pass: one walk over the nodes that the roots reach, newest first.
 *
 * Comes in: roots with their gradients. Goes out: gradients of leaves (added to .grad) or of the
 * tensors asked for. Each node runs once, when all that use its outputs have run; its outputs'
 * gradients wait in `pending`. Nothing recurses. After a node ran, its saved tensors go (unless
 * retain_graph), so that intermediate arrays need not reach memory. */
#include "base/heap.h"
#include "grad/grad.h"

#include <stdlib.h>
#include <string.h>

/* Where a pass begins: the node that made the root and the number of its output then. */
typedef struct start {
    grad_node *node; /* owned; NULL: nothing leads there */
    int output;
} start;

typedef struct engine {
    grad_node **nodes; /* owned references; sorted: see comes_first */
    int n, capacity;
    tensor **pending; /* per node its nout slots, from first[slot] */
    int *first;
    start *starts; /* per root */
    const grad_request *request;
} engine;

static uint32_t passes;

static simt_status no_memory(void) {
    return status_fail(SIMT_ERR_MEMORY, "no memory for the backward pass");
}

static simt_status reach(engine *e, grad_node *n, uint32_t pass) {
    if (n->visit == pass) return SIMT_OK;
    if (e->n == e->capacity) {
        int capacity = e->capacity ? e->capacity * 2 : 64;
        grad_node **list = heap_resize(e->nodes, sizeof *list * (size_t)capacity);
        if (!list) return no_memory();
        e->nodes = list;
        e->capacity = capacity;
    }
    n->visit = pass;
    e->nodes[e->n++] = grad_node_ref(n);
    return SIMT_OK;
}

/* Newest first; accumulators, whose numbers are equal, by their address. */
static int comes_first(const grad_node *a, const grad_node *b) {
    if (a->sequence != b->sequence) return a->sequence > b->sequence ? -1 : 1;
    return a == b ? 0 : (uintptr_t)a < (uintptr_t)b ? -1 : 1;
}
static int compare_nodes(const void *a, const void *b) {
    return comes_first(*(grad_node *const *)a, *(grad_node *const *)b);
}

/* The node's place. Its own note of it may be that of another pass by now: threads, and hooks that start a
 * pass, share nodes. -1: the pass does not reach it. */
static int place_of(const engine *e, const grad_node *n) {
    if (n->slot < e->n && e->nodes[n->slot] == n) return n->slot;
    int low = 0, high = e->n - 1;
    while (low <= high) {
        int middle = low + (high - low) / 2, order = comes_first(n, e->nodes[middle]);
        if (order == 0) return middle;
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return -1;
}

static grad_node *node_of(tensor *t) { /* borrowed; NULL: nothing leads there */
    grad_node *fn;
    if (tensor_get_fn(t, &fn) != SIMT_OK) {
        status_clear();
        return NULL;
    }
    return fn ? fn : t->accumulator;
}

static simt_status find_starts(engine *e, const grad_request *r) {
    e->starts = heap_zeroed((size_t)r->nroots + 1, sizeof *e->starts);
    if (!e->starts) return no_memory();
    for (int i = 0; i < r->nroots; i++) {
        grad_node *n = node_of(r->roots[i]);
        if (n) e->starts[i] = (start){grad_node_ref(n), n->leaf ? 0 : r->roots[i]->output};
    }
    return SIMT_OK;
}

static simt_status gather(engine *e, const grad_request *r) {
    uint32_t pass = ++passes;
    for (int i = 0; i < r->nroots; i++)
        if (e->starts[i].node) SIMT_TRY(reach(e, e->starts[i].node, pass));
    for (int i = 0; i < e->n; i++) /* the list grows while we walk it */
        for (int k = 0; k < e->nodes[i]->nin; k++)
            if (e->nodes[i]->edges[k].node) SIMT_TRY(reach(e, e->nodes[i]->edges[k].node, pass));
    if (e->n > 0) qsort(e->nodes, (size_t)e->n, sizeof *e->nodes, compare_nodes);
    e->first = heap_alloc(sizeof(int) * (size_t)(e->n + 1));
    if (!e->first) return no_memory();
    int slots = 0;
    for (int i = 0; i < e->n; i++) {
        e->nodes[i]->slot = i;
        e->first[i] = slots;
        slots += e->nodes[i]->nout;
    }
    e->first[e->n] = slots;
    e->pending = heap_zeroed((size_t)slots + 1, sizeof *e->pending);
    return e->pending ? SIMT_OK : no_memory();
}

/* Adds g (taken) to what waits for that output. */
static simt_status deliver(engine *e, grad_node *n, int output, tensor *g) {
    int place = place_of(e, n);
    if (place < 0) {
        tensor_unref(g);
        return status_fail(SIMT_ERR_RUNTIME, "the graph changed while its gradients were computed");
    }
    tensor **at = &e->pending[e->first[place] + output];
    if (!*at) {
        *at = g;
        return SIMT_OK;
    }
    tensor *sum;
    simt_status s = grad_binary(OP_ADD, *at, g, &sum);
    tensor_unref(g);
    if (s != SIMT_OK) return s;
    tensor_unref(*at);
    *at = sum;
    return SIMT_OK;
}

/* What a hook makes of a gradient has its type and shape: the rules count on them. */
static simt_status check_hooked(const array *was, const array *is) {
    if (is->dt != was->dt)
        return status_fail(SIMT_ERR_RUNTIME, "hook has changed the type of value (was %s got %s)",
                           dtype_torch_name(was->dt), dtype_torch_name(is->dt));
    if (array_same_shape(is, was->shape, was->ndim)) return SIMT_OK;
    char before[300], after[300];
    shape_text(was->shape, was->ndim, before, sizeof before);
    shape_text(is->shape, is->ndim, after, sizeof after);
    return status_fail(SIMT_ERR_RUNTIME, "hook has changed the size of value (was %s got %s)",
                       before, after);
}

/* Those that are there now: a hook may add and remove some (whose object stays until the section ends). */
static simt_status run_hooks(const grad_hooks *hooks, tensor **g) {
    grad_hook few[8], *list = few;
    int n = hooks->n;
    if (n == 0) return SIMT_OK;
    if (n > 8 && !(list = heap_alloc(sizeof *list * (size_t)n))) return no_memory();
    memcpy(list, hooks->list, sizeof *list * (size_t)n);
    array *was = array_ref((*g)->a);
    simt_status s = SIMT_OK;
    for (int i = 0; i < n && s == SIMT_OK; i++) {
        tensor *changed = NULL;
        s = grad_python.call_hook(list[i].object, *g, &changed);
        if (s == SIMT_OK && changed) {
            tensor_unref(*g);
            *g = changed;
        }
        if (s == SIMT_OK) s = check_hooked(was, (*g)->a);
    }
    array_unref(was);
    if (list != few) heap_free(list);
    return s;
}

/* Nobody else can see or will change the array: it may become .grad as it is. */
static bool is_ours_alone(const tensor *g) {
    const storage *s = g->a->store;
    return g->refs == 1 && g->a->refs == 1 && !s->foreign && s->refs - s->program_refs == 1 &&
           array_is_contiguous(g->a) && s->bytes == (size_t)g->a->size * dtype_bytes(g->a->dt);
}

static simt_status first_gradient(tensor *g, bool create_graph, tensor **out) {
    if (create_graph || is_ours_alone(g)) {
        *out = tensor_ref(g);
        return SIMT_OK;
    }
    array *copy;
    SIMT_TRY(array_copy(g->a, &copy));
    *out = tensor_new(copy);
    return *out ? SIMT_OK : SIMT_ERR_MEMORY;
}

static simt_status add_in_place(tensor *to, tensor *g) {
    tensor_operand in[2] = {{to}, {g}};
    bool was = grad_enabled;
    grad_enabled = false;
    simt_status s = grad_elementwise_inplace(OP_ADD, in, 2, NULL);
    grad_enabled = was;
    return s;
}

/* Passes of other threads may come between; what they put there is added to. */
static simt_status add_to_grad(tensor *leaf, tensor *g, bool create_graph) {
    for (;;) {
        tensor *old = leaf->grad, *next = NULL;
        if (old && !create_graph) return add_in_place(old, g);
        SIMT_TRY(old ? grad_binary(OP_ADD, old, g, &next) : first_gradient(g, create_graph, &next));
        if (leaf->grad == old) {
            tensor_set_grad(leaf, next);
            return SIMT_OK;
        }
        tensor_unref(next);
    }
}

/* Shapes and types as the input had them: broadcast dimensions are summed. */
static simt_status fit(const grad_edge *e, tensor **g) {
    tensor *t = *g;
    bool same = t->a->ndim == e->ndim &&
                memcmp(t->a->shape, e->shape, sizeof(int64_t) * (size_t)e->ndim) == 0;
    if (!same) {
        tensor *summed;
        SIMT_TRY(grad_sum_to(t, e->shape, e->ndim, &summed));
        tensor_unref(t);
        t = *g = summed;
    }
    if (t->a->dt == e->dt) return SIMT_OK;
    tensor *cast;
    SIMT_TRY(grad_cast(t, e->dt, &cast));
    tensor_unref(t);
    *g = cast;
    return SIMT_OK;
}

_Thread_local bool grad_anomaly;

/* Evaluates the gradient of a node's input i and fails where it has a NaN. */
static simt_status check_nan(const grad_node *n, tensor *g, int i) {
    if (!dtype_is_float(g->a->dt)) return SIMT_OK;
    tensor *odd = NULL, *any = NULL;
    simt_status s = grad_unary(OP_ISNAN, g, &odd);
    if (s == SIMT_OK) s = grad_reduce(OP_ANY, odd, (1u << g->a->ndim) - 1, false, -1, &any);
    scalar found = {0};
    if (s == SIMT_OK) s = array_item(any->a, &found);
    if (s == SIMT_OK && found.i)
        s = status_fail(SIMT_ERR_RUNTIME, "Function '%s' returned nan values in its %dth output.",
                        n->name, i);
    tensor_unref(odd);
    tensor_unref(any);
    return s;
}

static bool accumulates(const grad_request *r, const tensor *leaf) {
    if (!r->inputs) return true;
    if (!r->accumulate_inputs) return false;
    for (int i = 0; i < r->ninputs; i++)
        if (r->inputs[i] == leaf) return true;
    return false;
}

static simt_status watch_outputs(engine *e, grad_node *n, tensor **out) {
    for (grad_watch *w = n->watches; w; w = w->next) {
        if (!out[w->output]) continue;
        SIMT_TRY(run_hooks(&w->hooks, &out[w->output]));
        if (!w->retain || e->request->inputs) continue;
        tensor *retained = tensor_ref(w->retain);
        simt_status s = add_to_grad(retained, out[w->output], e->request->create_graph);
        tensor_unref(retained);
        SIMT_TRY(s);
    }
    return SIMT_OK;
}

static simt_status capture(engine *e, grad_node *n, tensor **out) {
    const grad_request *r = e->request;
    if (!r->inputs) return SIMT_OK;
    for (int i = 0; i < r->ninputs; i++) {
        if (node_of(r->inputs[i]) != n) continue;
        tensor *g = out[n->leaf ? 0 : r->inputs[i]->output];
        if (!g) continue;
        if (r->results) {
            if (!r->results[i]) r->results[i] = tensor_ref(g);
        } else if (!n->leaf) {
            SIMT_TRY(add_to_grad(r->inputs[i], g, r->create_graph));
        }
    }
    return SIMT_OK;
}

static void release_saved(grad_node *n) {
    if (n->child) release_saved(n->child);
    for (int i = 0; i < n->nsaved; i++) {
        tensor *t = n->saved[i].t;
        array *a = n->saved[i].a;
        if (!t && !a) continue;
        n->saved[i].t = NULL;
        n->saved[i].a = NULL;
        n->released = true; /* nodes that saved nothing may run again */
        tensor_unref(t);
        array_unref(a);
    }
}

static bool is_spent(const grad_node *n) { return n->released || (n->child && is_spent(n->child)); }

static simt_status run_node(engine *e, grad_node *n, tensor **out) {
    bool any = false;
    for (int i = 0; i < n->nout; i++) any |= out[i] != NULL;
    if (!any) return SIMT_OK;
    SIMT_TRY(n->leaf ? run_hooks(&n->leaf->hooks, &out[0]) : watch_outputs(e, n, out));
    SIMT_TRY(capture(e, n, out));
    if (n->leaf)
        return accumulates(e->request, n->leaf)
                   ? add_to_grad(n->leaf, out[0], e->request->create_graph)
                   : SIMT_OK;
    if (is_spent(n))
        return status_fail(SIMT_ERR_RUNTIME,
                           "Trying to backward through the graph a second time (or directly access "
                           "saved tensors after they have "
                           "already been freed). Saved intermediate values of the graph are freed "
                           "when you call .backward() or "
                           "autograd.grad(). Specify retain_graph=True if you need to backward "
                           "through the graph a second time or "
                           "if you need to access saved tensors after calling backward.");
    tensor *few[8] = {NULL}, **in = few;
    if (n->nin > 8 && !(in = heap_zeroed((size_t)n->nin, sizeof *in)))
        return status_fail(SIMT_ERR_MEMORY, "no memory for the backward pass");
    simt_status s = n->rule(n, out, in);
    if (!e->request->retain_graph) release_saved(n);
    for (int i = 0; i < n->nin && grad_anomaly && s == SIMT_OK; i++)
        if (in[i]) s = check_nan(n, in[i], i);
    for (int i = 0; i < n->nin; i++) {
        if (!in[i]) continue;
        if (s == SIMT_OK && n->edges[i].node) s = fit(&n->edges[i], &in[i]);
        if (s == SIMT_OK && n->edges[i].node)
            s = deliver(e, n->edges[i].node, n->edges[i].output, in[i]);
        else
            tensor_unref(in[i]);
    }
    if (in != few) heap_free(in);
    return s;
}

static simt_status seed(engine *e, const grad_request *r) {
    for (int i = 0; i < r->nroots; i++) {
        if (!e->starts[i].node) continue;
        tensor *g = r->seeds[i];
        if (g)
            tensor_ref(g);
        else
            SIMT_TRY(grad_full_like(r->roots[i], 1, &g));
        SIMT_TRY(deliver(e, e->starts[i].node, e->starts[i].output, g));
    }
    return SIMT_OK;
}

static simt_status check_roots(const grad_request *r) {
    for (int i = 0; i < r->nroots; i++) {
        tensor *t = r->roots[i], *g = r->seeds[i];
        grad_node *fn;
        SIMT_TRY(tensor_get_fn(t, &fn));
        if (!t->requires_grad)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "element %d of tensors does not require grad and does not have a grad_fn", i);
        if (!g && t->a->size != 1)
            return status_fail(SIMT_ERR_RUNTIME,
                               "grad can be implicitly created only for scalar outputs");
        if (!g) continue;
        if (g->a->ndim != t->a->ndim ||
            memcmp(g->a->shape, t->a->shape, sizeof(int64_t) * (size_t)t->a->ndim) != 0) {
            char a[300], b[300];
            shape_text(g->a->shape, g->a->ndim, a, sizeof a);
            shape_text(t->a->shape, t->a->ndim, b, sizeof b);
            return status_fail(SIMT_ERR_RUNTIME,
                               "Mismatch in shape: grad_output[%d] has a shape of torch.Size(%s) "
                               "and output[%d] has a "
                               "shape of torch.Size(%s).",
                               i, a, i, b);
        }
    }
    return SIMT_OK;
}

/* A root that is itself a leaf has no node yet: its gradient is the seed. */
static simt_status leaf_roots(const engine *e, const grad_request *r) {
    for (int i = 0; i < r->nroots; i++) {
        tensor *t = r->roots[i];
        if (e->starts[i].node || !accumulates(r, t)) continue;
        tensor *g = r->seeds[i];
        if (g)
            tensor_ref(g);
        else
            SIMT_TRY(grad_full_like(t, 1, &g));
        simt_status s = run_hooks(&t->hooks, &g);
        if (s == SIMT_OK) s = add_to_grad(t, g, r->create_graph);
        tensor_unref(g);
        SIMT_TRY(s);
    }
    return SIMT_OK;
}

static simt_status check_results(const grad_request *r) {
    for (int i = 0; r->results && i < r->ninputs; i++)
        if (!r->results[i] && !r->allow_unused)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "One of the differentiated Tensors appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.");
    return SIMT_OK;
}

simt_status grad_backward(const grad_request *r) {
    SIMT_TRY(check_roots(r));
    for (int i = 0; i < r->ninputs; i++)
        if (!r->inputs[i]->requires_grad)
            return status_fail(SIMT_ERR_RUNTIME,
                               "One of the differentiated Tensors does not require grad");
    engine e = {.request = r};
    bool was = grad_enabled;
    grad_enabled = r->create_graph;
    simt_status s = find_starts(&e, r);
    if (s == SIMT_OK) s = leaf_roots(&e, r);
    if (s == SIMT_OK) s = gather(&e, r);
    if (s == SIMT_OK) s = seed(&e, r);
    for (int i = 0; i < e.n && s == SIMT_OK; i++) {
        tensor **out = e.pending + e.first[i];
        s = run_node(&e, e.nodes[i], out);
        for (int k = 0; k < e.nodes[i]->nout; k++) {
            tensor_unref(out[k]);
            out[k] = NULL;
        }
    }
    grad_enabled = was;
    if (s == SIMT_OK) s = check_results(r);
    if (e.pending)
        for (int i = 0; i < e.first[e.n]; i++) tensor_unref(e.pending[i]);
    for (int i = e.n - 1; i >= 0; i--) grad_node_unref(e.nodes[i]);
    for (int i = 0; e.starts && i < r->nroots; i++) grad_node_unref(e.starts[i].node);
    heap_free(e.starts);
    heap_free(e.nodes);
    heap_free(e.first);
    heap_free(e.pending);
    return s;
}
