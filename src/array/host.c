/* Where the host meets the memory of arrays: the only file that may, beside the CPU's library steps.
 *
 * On a target whose memory is the host's, a window is that memory and costs a comparison; on another it is
 * a copy, made by the device's own copies. Library steps that the target lacks run here too: on the
 * host, on copies of what they read and write. Nothing else above device/ follows an address of a storage.
 */
#include <string.h>

#include "array/internal.h"
#include "base/heap.h"

/* ---- windows ---- */

simt_status array_open(const array *a, array_access access, array_window *w) {
    const storage *s = a->store;
    *w = (array_window){.data = array_data(a), .access = access};
    if (s->device->is_host || !w->data) return SIMT_OK;
    int64_t low, high;
    array_extent(a, &low, &high);
    w->device = s->device;
    w->there = (char *)s->data + low;
    w->bytes = (size_t)(high - low);
    if (!(w->copy = heap_aligned(64, w->bytes + 1)))
        return status_fail(SIMT_ERR_MEMORY, "out of memory for %zu bytes of an array", w->bytes);
    w->data = w->copy + (a->offset - low);
    if (access == ARRAY_FILL) return SIMT_OK;
    simt_status status = device_copy(w->device, DEVICE_OUT, w->copy, w->there, w->bytes);
    if (status != SIMT_OK) heap_free(w->copy);
    return status;
}

simt_status array_close(array_window *w) {
    if (!w->copy) return SIMT_OK;
    simt_status status = SIMT_OK;
    if (w->access != ARRAY_READ)
        status = device_copy(w->device, DEVICE_IN, w->there, w->copy, w->bytes);
    heap_free(w->copy);
    w->copy = NULL;
    return status;
}

void array_discard(array_window *w) {
    heap_free(w->copy);
    w->copy = NULL;
}

/* ---- arrays of the host ---- */

static simt_status new_on_host(const array *a, array **out) {
    device *host = array_ctx.host;
    const storage *from = a->store;
    SIMT_TRY(array_lock());
    storage *s = storage_new_locked(from->bytes);
    simt_status status = s ? SIMT_OK : SIMT_ERR_MEMORY;
    if (s) {
        s->device = host;
        status = host->alloc(host, s->bytes, &s->data);
        if (status == SIMT_OK)
            status = array_new_locked(s, a->dt, a->shape, a->strides, a->ndim, a->offset, out);
        else
            storage_unref_locked(s);
    }
    array_unlock();
    return status;
}

simt_status array_to_host(array *a, array **out) {
    const storage *s = a->store;
    if (s->device->is_host) {
        SIMT_TRY(array_expose(a));
        *out = array_ref(a);
        return SIMT_OK;
    }
    SIMT_TRY(array_evaluate(a));
    SIMT_TRY(new_on_host(a, out));
    if (!s->data) return SIMT_OK;
    simt_status status = device_copy(s->device, DEVICE_OUT, (*out)->store->data, s->data, s->bytes);
    if (status != SIMT_OK) array_drop(out);
    return status;
}

simt_status array_from_host(array *a, const array *host) {
    storage *s = a->store;
    if (s == host->store || !s->data) return SIMT_OK;
    return device_copy(s->device, DEVICE_IN, s->data, host->store->data, s->bytes);
}

/* ---- library steps ---- */

/* The part of one buffer that a step's views lie in, and its copy. */
typedef struct piece {
    uint32_t buffer;
    char *low, *high, *copy;
} piece;

typedef struct pieces {
    piece list[GRAPH_MAX_INPUTS + 1];
    int n;
} pieces;

static piece *piece_of(pieces *p, uint32_t buffer) {
    for (int i = 0; i < p->n; i++)
        if (p->list[i].buffer == buffer) return &p->list[i];
    return NULL;
}

static void add_view(pieces *p, uint32_t buffer, const call_view *v) {
    char *low = v->data, *high = v->data;
    int64_t size = 1;
    for (int d = 0; d < v->ndim; d++) {
        int64_t reach = v->strides[d] * (v->shape[d] - 1);
        size *= v->shape[d];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    if (size == 0)
        low = high = v->data;
    else
        high += dtype_bytes(v->dt);
    piece *of = piece_of(p, buffer);
    if (!of) {
        p->list[p->n++] = (piece){buffer, low, high, NULL};
        return;
    }
    if (low < of->low) of->low = low;
    if (high > of->high) of->high = high;
}

static void find_pieces(const call_args *c, pieces *p) {
    const graph_node *n = c->node;
    for (int i = 0; i < n->nin; i++)
        if (n->scalar[i] < 0) add_view(p, n->in[i].buffer, &c->in[i]);
    add_view(p, n->out.buffer, &c->out);
}

static simt_status copy_down(device *from, piece *p) {
    size_t bytes = (size_t)(p->high - p->low);
    p->copy = heap_aligned(64, bytes + 1);
    if (!p->copy)
        return status_fail(SIMT_ERR_MEMORY, "out of memory for %zu bytes of an array", bytes);
    return device_copy(from, DEVICE_OUT, p->copy, p->low, bytes);
}

static void move_view(pieces *p, uint32_t buffer, call_view *v) {
    const piece *of = piece_of(p, buffer);
    v->data = of->copy + (v->data - of->low);
}

static simt_status run_on_copies(const call_args *c, pieces *p, device *from) {
    const graph_node *n = c->node;
    call_args moved = *c;
    for (int i = 0; i < p->n; i++) SIMT_TRY(copy_down(from, &p->list[i]));
    for (int i = 0; i < n->nin; i++)
        if (n->scalar[i] < 0) move_view(p, n->in[i].buffer, &moved.in[i]);
    move_view(p, n->out.buffer, &moved.out);
    SIMT_TRY(library_cpu.calls[n->op](&moved));
    const piece *out = piece_of(p, n->out.buffer);
    return device_copy(from, DEVICE_IN, out->low, out->copy, (size_t)(out->high - out->low));
}

simt_status host_call(const call_args *c) {
    array_op op = c->node->op;
    if (!library_cpu.calls[op])
        return status_fail(SIMT_ERR_INTERNAL, "no library step '%s'", array_op_table[op].name);
    pieces p = {.n = 0};
    find_pieces(c, &p);
    simt_status status = run_on_copies(c, &p, array_ctx.dev);
    for (int i = 0; i < p.n; i++) heap_free(p.list[i].copy);
    return status;
}
