/* Tensors, nodes, saved tensors, views and in-place histories.
 *
 * Freeing is iterative: a node that dies while another is being torn down waits in a list, so that a chain of
 * any length needs no stack. */
#include "array/meta.h"
#include "base/heap.h"
#include "grad/grad.h"

#include "array/section.h"

#include <stdio.h>
#include <string.h>

_Thread_local bool grad_enabled = true;
dtype grad_default_float = DT_F32;
grad_callbacks grad_python;

static uint64_t next_sequence = 1;
static int64_t next_hook = 1;

/* ---- names ---- */

const char *dtype_torch_name(dtype dt) {
    static const char *const names[DT_COUNT] = {
        [DT_BOOL] = "Bool",    [DT_I8] = "Char",  [DT_I16] = "Short",  [DT_I32] = "Int",
        [DT_I64] = "Long",     [DT_U8] = "Byte",  [DT_U16] = "UInt16", [DT_U32] = "UInt32",
        [DT_U64] = "UInt64",   [DT_F16] = "Half", [DT_F32] = "Float",  [DT_F64] = "Double",
        [DT_BF16] = "BFloat16"};
    return names[dt];
}

const char *tensor_type_name(const tensor *t) {
    static char names[DT_COUNT][32];
    char *name = names[t->a->dt];
    if (!name[0]) snprintf(name, sizeof names[0], "torch.%sTensor", dtype_torch_name(t->a->dt));
    return name;
}

void shape_text(const int64_t *shape, int ndim, char *to, size_t size) {
    size_t used = (size_t)snprintf(to, size, "[");
    for (int i = 0; i < ndim && used < size; i++)
        used +=
            (size_t)snprintf(to + used, size - used, i ? ", %lld" : "%lld", (long long)shape[i]);
    if (used < size) snprintf(to + used, size - used, "]");
}

/* ---- hooks ---- */

static void hooks_release(grad_hooks *h) {
    for (int i = 0; i < h->n; i++) grad_python.release(h->list[i].object);
    heap_free(h->list);
    *h = (grad_hooks){0};
}

static simt_status hooks_add(grad_hooks *h, void *object, int64_t *id) {
    if (h->n == h->capacity) {
        int capacity = h->capacity ? h->capacity * 2 : 4;
        grad_hook *list = heap_resize(h->list, sizeof *list * (size_t)capacity);
        if (!list) return status_fail(SIMT_ERR_MEMORY, "no memory for a hook");
        h->list = list;
        h->capacity = capacity;
    }
    h->list[h->n++] = (grad_hook){ *id = next_hook++, object};
    return SIMT_OK;
}

static bool hooks_remove(grad_hooks *h, int64_t id) {
    for (int i = 0; i < h->n; i++) {
        if (h->list[i].id != id) continue;
        void *object = h->list[i].object;
        memmove(h->list + i, h->list + i + 1, sizeof *h->list * (size_t)(h->n - i - 1));
        h->n--;
        section_retire(object, grad_python.release); /* it may be running */
        return true;
    }
    return false;
}

/* ---- tensors ---- */

tensor *tensor_new(array *a) {
    tensor *t = heap_zeroed(1, sizeof *t);
    if (!t) {
        array_unref(a);
        status_fail(SIMT_ERR_MEMORY, "no memory for a tensor");
        return NULL;
    }
    t->refs = 1;
    t->a = a;
    return t;
}

tensor *tensor_ref(tensor *t) {
    t->refs++;
    return t;
}

static void drop_watch(tensor *t) {
    if (!t->retains_grad || !t->fn) return;
    for (grad_watch *w = t->fn->watches; w; w = w->next)
        if (w->retain == t) w->retain = NULL;
}

static void release_node(void *n) { grad_node_unref(n); }
static void release_tensor(void *t) { tensor_unref(t); }

static void set_fn(tensor *t, grad_node *n, int output) { /* takes n */
    drop_watch(t);
    section_retire(t->fn, release_node);
    t->fn = n;
    t->output = output;
}

void tensor_set_grad(tensor *t, tensor *g) {
    section_retire(t->grad, release_tensor);
    t->grad = g;
}

void tensor_leave_graph(tensor *t) {
    set_fn(t, NULL, 0);
    t->requires_grad = false;
}

void tensor_unref(tensor *t) {
    if (!t || --t->refs > 0) return;
    drop_watch(t);
    grad_node_unref(t->fn);
    array_unref(t->a);
    tensor_unref(t->grad);
    tensor_unref(t->base);
    hooks_release(&t->hooks);
    heap_free(t);
}

bool tensor_is_leaf(const tensor *t) { return !t->fn; }

simt_status tensor_set_requires_grad(tensor *t, bool on) {
    if (t->fn && !on)
        return status_fail(SIMT_ERR_RUNTIME, "you can only change requires_grad flags of leaf "
                                             "variables. If you want to use a computed "
                                             "variable in a subgraph that doesn't require "
                                             "differentiation use var_no_grad = var.detach().");
    if (on && !dtype_is_float(t->a->dt))
        return status_fail(SIMT_ERR_RUNTIME,
                           "only Tensors of floating point dtype can require gradients");
    t->requires_grad = on;
    return SIMT_OK;
}

simt_status tensor_detach(tensor *t, tensor **out) {
    *out = tensor_new(array_ref(t->a));
    return *out ? SIMT_OK : SIMT_ERR_MEMORY;
}

static grad_watch *find_watch(grad_node *n, int output) {
    for (grad_watch *w = n->watches; w; w = w->next)
        if (w->output == output) return w;
    grad_watch *w = heap_zeroed(1, sizeof *w);
    if (!w) return NULL;
    w->output = output;
    w->next = n->watches;
    return n->watches = w;
}

simt_status tensor_retain_grad(tensor *t) {
    if (!t->requires_grad)
        return status_fail(SIMT_ERR_RUNTIME,
                           "can't retain_grad on Tensor that has requires_grad=False");
    grad_node *fn;
    SIMT_TRY(tensor_get_fn(t, &fn));
    if (!fn) return SIMT_OK;
    grad_watch *w = find_watch(fn, t->output);
    if (!w) return status_fail(SIMT_ERR_MEMORY, "no memory for retain_grad");
    w->retain = t;
    t->retains_grad = true;
    return SIMT_OK;
}

simt_status tensor_add_hook(tensor *t, void *object, int64_t *id) {
    simt_status s = SIMT_OK;
    grad_node *fn = NULL;
    if (!t->requires_grad)
        s = status_fail(SIMT_ERR_RUNTIME,
                        "cannot register a hook on a tensor that doesn't require gradient");
    else
        s = tensor_get_fn(t, &fn);
    grad_hooks *hooks = &t->hooks;
    if (s == SIMT_OK && fn) {
        grad_watch *w = find_watch(fn, t->output);
        if (!w)
            s = status_fail(SIMT_ERR_MEMORY, "no memory for a hook");
        else
            hooks = &w->hooks;
    }
    if (s == SIMT_OK) s = hooks_add(hooks, object, id);
    if (s != SIMT_OK) grad_python.release(object);
    return s;
}

void tensor_remove_hook(tensor *t, int64_t id) {
    if (hooks_remove(&t->hooks, id) || !t->fn) return;
    for (grad_watch *w = t->fn->watches; w; w = w->next)
        if (hooks_remove(&w->hooks, id)) return;
}

/* ---- nodes ---- */

grad_node *grad_node_ref(grad_node *n) {
    n->refs++;
    return n;
}

static void node_free(grad_node *n) {
    tensor_unref(n->leaf);
    for (int i = 0; i < n->nin; i++) grad_node_unref(n->edges[i].node);
    for (int i = 0; i < n->nsaved; i++) {
        tensor_unref(n->saved[i].t);
        array_unref(n->saved[i].a);
    }
    for (grad_watch *w = n->watches, *next; w; w = next) {
        next = w->next;
        hooks_release(&w->hooks);
        heap_free(w);
    }
    grad_node_unref(n->child);
    if (n->object) grad_python.release(n->object);
    heap_free(n);
}

void grad_node_unref(grad_node *n) {
    static grad_node **dead;
    static size_t ndead, capacity;
    static bool draining;
    if (!n || --n->refs > 0) return;
    if (n->leaf) n->leaf->accumulator = NULL; /* at once: nobody may find a dying node */
    if (!draining) {
        draining = true;
        node_free(n);
        while (ndead) node_free(dead[--ndead]);
        draining = false;
        return;
    }
    if (ndead == capacity) {
        size_t more = capacity ? capacity * 2 : 64;
        grad_node **list = heap_resize(dead, sizeof *list * more);
        if (!list) { /* no memory: by recursion then */
            node_free(n);
            return;
        }
        dead = list;
        capacity = more;
    }
    dead[ndead++] = n;
}

bool grad_wants(const grad_node *n, int input) { return n->edges[input].node != NULL; }

static grad_node *accumulator_of(tensor *t) { /* a new reference */
    if (t->accumulator) return grad_node_ref(t->accumulator);
    grad_node *n = heap_zeroed(1, sizeof *n);
    if (!n) return NULL;
    n->refs = 1;
    n->sequence = 0; /* last in any backward pass */
    n->name = "AccumulateGrad";
    n->nout = 1;
    n->leaf = tensor_ref(t);
    t->accumulator = n;
    return n; // cppcheck-suppress memleak ; the leaf keeps it
}

static simt_status edge_to(tensor *t, grad_edge *e) {
    grad_node *fn;
    SIMT_TRY(tensor_get_fn(t, &fn));
    if (!t->requires_grad) return SIMT_OK;
    e->node = fn ? grad_node_ref(fn) : accumulator_of(t);
    e->output = fn ? t->output : 0;
    return e->node ? SIMT_OK : status_fail(SIMT_ERR_MEMORY, "no memory for the tape");
}

static grad_node *node_alloc(const char *name, grad_rule rule, tensor *const *inputs, int nin,
                             int nsaved, int nparams) {
    size_t dims = 0;
    for (int i = 0; i < nin; i++) dims += inputs[i] ? (size_t)inputs[i]->a->ndim : 0;
    size_t bytes = sizeof(grad_node) + sizeof(grad_edge) * (size_t)nin +
                   sizeof(grad_saved) * (size_t)nsaved + sizeof(int64_t) * ((size_t)nparams + dims);
    grad_node *n = heap_zeroed(1, bytes);
    if (!n) return NULL;
    n->refs = 1;
    n->sequence = next_sequence++;
    n->name = name;
    n->rule = rule;
    n->nin = nin;
    n->nout = 1;
    n->nsaved = nsaved;
    n->nparams = nparams;
    n->edges = (grad_edge *)(n + 1);
    n->saved = (grad_saved *)(n->edges + nin);
    n->params = (int64_t *)(n->saved + nsaved);
    int64_t *shape = n->params + nparams;
    for (int i = 0; i < nin; i++) {
        if (!inputs[i]) continue;
        array *a = inputs[i]->a;
        n->edges[i] = (grad_edge){NULL, 0, a->ndim, a->dt, shape};
        memcpy(shape, a->shape, sizeof *shape * (size_t)a->ndim);
        shape += a->ndim;
    }
    return n;
}

simt_status grad_node_new(const char *name, grad_rule rule, tensor *const *inputs, int nin,
                          int nsaved, int nparams, grad_node **out) {
    *out = NULL;
    if (!grad_enabled) return SIMT_OK;
    bool any = false;
    for (int i = 0; i < nin; i++)
        any |= inputs[i] &&
               (inputs[i]->requires_grad || (inputs[i]->base && inputs[i]->base->requires_grad));
    if (!any) return SIMT_OK;
    /* Views of changed tensors get their fn anew first: it must have a smaller number. */
    grad_node *fn;
    for (int i = 0; i < nin; i++)
        if (inputs[i]) SIMT_TRY(tensor_get_fn(inputs[i], &fn));
    grad_node *n = node_alloc(name, rule, inputs, nin, nsaved, nparams);
    simt_status s = n ? SIMT_OK : status_fail(SIMT_ERR_MEMORY, "no memory for the tape");
    for (int i = 0; i < nin && s == SIMT_OK; i++)
        if (inputs[i]) s = edge_to(inputs[i], &n->edges[i]);
    if (s != SIMT_OK)
        grad_node_unref(n);
    else
        *out = n;
    return s;
}

void grad_save(grad_node *n, int slot, tensor *t) {
    if (!n || !t) return;
    n->saved[slot].t = tensor_ref(t);
    n->saved[slot].a = array_ref(t->a);
    n->saved[slot].version = *array_version(t->a);
}

void grad_save_output(grad_node *n, int slot, tensor *t, int output) {
    if (!n || !t) return;
    n->saved[slot].a = array_ref(t->a);
    n->saved[slot].version = *array_version(t->a);
    n->saved[slot].output = output;
}

static simt_status changed_error(const grad_saved *s, const array *a, const grad_node *writer,
                                 int output) {
    char shape[300], name[80] = "";
    shape_text(a->shape, a->ndim, shape, sizeof shape);
    if (writer) {
        snprintf(name, sizeof name, "%s", writer->name);
        char *end = strstr(name, "Backward");
        if (end) *end = '\0';
    }
    char which[160] = "";
    if (writer) snprintf(which, sizeof which, ", which is output %d of %s,", output, name);
    return status_fail(
        SIMT_ERR_RUNTIME,
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.%sTensor %s]%s is at version %u; expected version %u instead. Hint: "
        "enable "
        "anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False).",
        dtype_torch_name(a->dt), shape, which, *array_version(a), s->version);
}

/* t.data was set to something that the rule does not expect. */
static simt_status replaced_error(const grad_saved *s) {
    char was[300], now[300];
    shape_text(s->a->shape, s->a->ndim, was, sizeof was);
    shape_text(s->t->a->shape, s->t->a->ndim, now, sizeof now);
    return status_fail(SIMT_ERR_RUNTIME,
                       "one of the variables needed for gradient computation has been replaced "
                       "(its .data was set): it was [torch.%sTensor %s] and is [torch.%sTensor %s]",
                       dtype_torch_name(s->a->dt), was, dtype_torch_name(s->t->a->dt), now);
}

simt_status grad_get_saved(grad_node *n, int slot, tensor **out) {
    grad_saved *s = &n->saved[slot];
    *out = NULL;
    if (s->t) {
        const array *now = s->t->a;
        if (now != s->a && (now->dt != s->a->dt || !array_same_shape(now, s->a->shape, s->a->ndim)))
            return replaced_error(s);
        if (*array_version(now) != s->version) return changed_error(s, now, s->t->fn, s->t->output);
        *out = tensor_ref(s->t);
        return SIMT_OK;
    }
    if (s->a) {
        if (*array_version(s->a) != s->version) return changed_error(s, s->a, n, s->output);
        *out = tensor_new(array_ref(s->a));
        if (!*out) return SIMT_ERR_MEMORY;
        (*out)->requires_grad = true;
        (*out)->fn = grad_node_ref(n);
        (*out)->output = s->output;
        return SIMT_OK;
    }
    return n->released ? status_fail(SIMT_ERR_RUNTIME, "a saved tensor was freed")
                       : status_fail(SIMT_ERR_INTERNAL, "%s: slot %d was not saved", n->name, slot);
}

/* ---- results ---- */

void grad_attach(tensor *t, grad_node *n, int output) {
    if (!n) return;
    if (!dtype_is_float(t->a->dt)) {
        grad_node_unref(n);
        return;
    }
    set_fn(t, n, output);
    t->requires_grad = true;
}

simt_status grad_finish(array *a, grad_node *n, tensor **out) {
    tensor *t = tensor_new(a);
    if (!t) {
        grad_node_unref(n);
        return SIMT_ERR_MEMORY;
    }
    grad_attach(t, n, 0);
    *out = t;
    return SIMT_OK;
}

simt_status grad_finish_view(tensor *of, array *a, grad_node *n, tensor **out) {
    SIMT_TRY(grad_finish(a, n, out));
    if (!grad_enabled || a->store != of->a->store) return SIMT_OK;
    (*out)->base = tensor_ref(of->base ? of->base : of);
    (*out)->base_version = *array_version(a);
    return SIMT_OK;
}

/* ---- views of tensors changed in place ---- */

/* params: the view's ndim, shape, strides, offset from the base's first element (bytes) */
static simt_status view_window(const grad_node *n, array *whole, array **out) {
    int ndim = (int)n->params[0];
    return array_view_strided(whole, whole->dt, n->params + 1, n->params + 1 + ndim, ndim,
                              whole->offset + n->params[1 + 2 * ndim], out);
}

static void set_window(grad_node *n, const array *view, const array *base) {
    int ndim = view->ndim;
    n->params[0] = ndim;
    memcpy(n->params + 1, view->shape, sizeof(int64_t) * (size_t)ndim);
    memcpy(n->params + 1 + ndim, view->strides, sizeof(int64_t) * (size_t)ndim);
    n->params[1 + 2 * ndim] = view->offset - base->offset;
}

static simt_status rule_as_strided(grad_node *n, tensor *const *out, tensor **in) {
    const grad_edge *e = &n->edges[0];
    array *whole = NULL, *window = NULL;
    simt_status s = array_full_of(out[0]->a, e->dt, e->shape, e->ndim, 0, &whole);
    if (s == SIMT_OK) s = view_window(n, whole, &window);
    operand value = {.a = out[0]->a};
    if (s == SIMT_OK) s = array_assign(window, &value, FACE_TORCH);
    array_unref(window);
    if (s == SIMT_OK) return (in[0] = tensor_new(whole)) ? SIMT_OK : SIMT_ERR_MEMORY;
    array_unref(whole);
    return s;
}

static simt_status rule_copy_slices(grad_node *n, tensor *const *out, tensor **in) {
    array *whole = NULL, *window = NULL;
    simt_status s = array_copy(out[0]->a, &whole);
    if (s == SIMT_OK) s = view_window(n, whole, &window);
    tensor *inner_out = NULL, *inner_in[8] = {NULL};
    array *g = NULL;
    if (s == SIMT_OK) s = array_copy(window, &g);
    if (s == SIMT_OK && !(inner_out = tensor_new(g))) s = SIMT_ERR_MEMORY;
    if (s == SIMT_OK) s = n->child->rule(n->child, (tensor *const[]){inner_out}, inner_in);
    operand value = {.s = {.kind = 'I', .i = 0}, .weak = true};
    if (inner_in[0]) value = (operand){.a = inner_in[0]->a};
    if (s == SIMT_OK) s = array_assign(window, &value, FACE_TORCH);
    tensor_unref(inner_in[0]);
    for (int i = 1; i < n->nin; i++) in[i] = inner_in[i];
    tensor_unref(inner_out);
    array_unref(window);
    if (s == SIMT_OK && (in[0] = tensor_new(whole))) return SIMT_OK;
    if (s != SIMT_OK) array_unref(whole);
    return s == SIMT_OK ? SIMT_ERR_MEMORY : s;
}

simt_status tensor_get_fn(tensor *t, grad_node **out) {
    *out = t->fn;
    if (!t->base || !t->base->requires_grad || t->base_version == *array_version(t->a))
        return SIMT_OK;
    bool was = grad_enabled;
    grad_enabled = true;
    grad_node *n;
    simt_status s = grad_node_new("AsStridedBackward0", rule_as_strided, &t->base, 1, 0,
                                  2 + 2 * t->a->ndim, &n);
    grad_enabled = was;
    if (s != SIMT_OK) return s;
    set_window(n, t->a, t->base->a);
    grad_attach(t, n, 0);
    t->base_version = *array_version(t->a);
    *out = t->fn;
    return SIMT_OK;
}

simt_status grad_check_inplace(tensor *t) {
    for (int i = 0; i < t->a->ndim; i++)
        if (t->a->strides[i] == 0 && t->a->shape[i] > 1 && t->a->size > 0)
            return status_fail(SIMT_ERR_RUNTIME,
                               "unsupported operation: more than one element of the written-to "
                               "tensor refers to a single memory location. Please clone() the "
                               "tensor before performing the operation.");
    if (!grad_enabled) return SIMT_OK;
    if (t->requires_grad && !t->fn)
        return status_fail(
            SIMT_ERR_RUNTIME,
            "a leaf Variable that requires grad is being used in an in-place operation.");
    if (t->base && t->base->requires_grad && !t->base->fn)
        return status_fail(
            SIMT_ERR_RUNTIME,
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    if (t->base && !array_is_contiguous(t->base->a) && (t->requires_grad || t->base->requires_grad))
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED,
                           "in-place operation on a view of a strided tensor that requires grad: "
                           "not in simt yet; use "
                           "clone() first");
    return SIMT_OK;
}

simt_status grad_attach_inplace(tensor *t, grad_node *n) {
    if (!n) return SIMT_OK;
    if (!t->base) {
        bool retained = t->retains_grad && t->fn;
        grad_attach(t, n, 0);
        return retained ? tensor_retain_grad(t) : SIMT_OK;
    }
    tensor *base = t->base;
    tensor *inputs[8] = {base};
    grad_node *slices = n->nin > 8 ? NULL
                                   : node_alloc("CopySlices", rule_copy_slices, inputs, n->nin, 0,
                                                2 + 2 * t->a->ndim);
    if (!slices) {
        grad_node_unref(n);
        return status_fail(SIMT_ERR_MEMORY, "no memory for the tape");
    }
    for (int i = 1; i < n->nin; i++) { /* shapes stay in n's memory: it lives as the child */
        slices->edges[i] = n->edges[i];
        if (n->edges[i].node) grad_node_ref(n->edges[i].node);
    }
    set_window(slices, t->a, base->a);
    slices->child = n;
    simt_status s = base->requires_grad ? edge_to(base, &slices->edges[0]) : SIMT_OK;
    if (s != SIMT_OK) {
        grad_node_unref(slices);
        return s;
    }
    grad_attach(base, slices, 0);
    t->base_version = *array_version(t->a) - 1; /* its fn is made anew from the base's */
    grad_node *fn;
    return tensor_get_fn(t, &fn);
}
