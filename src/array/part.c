/* After an interrupt: a look computes what it needs, and leaves the rest of the program as it is.
 *
 * What was interrupted may take hours and be held by a name, or by a traceback, that nobody cares for any
 * more: looking at something else must not begin it again. part_begin_locked takes the nodes out of the
 * program that the storage does not need; part_end_locked, after the run, appends them again, behind what
 * an interrupt left of the others. That order is right: a node stays behind only where no node that goes
 * first reads what it writes, or writes what it reads or writes.
 */
#include <string.h>

#include "array/internal.h"

static struct {
    bool active;
    arena mem;
    graph_node *nodes; /* of the whole program, with what their offsets and scalars were */
    uint32_t nnodes, nfirst;
    bool *first; /* by node: it goes first */
    const int64_t *offsets;
    const uint64_t *scalars;
    const array_position *positions;
    uint32_t npositions;
} part;

static void *copy_of(const void *from, size_t bytes) {
    void *to = arena_alloc(&part.mem, bytes + 1);
    return bytes ? memcpy(to, from, bytes) : to;
}

static void read_program(void) {
    const array_context *c = &array_ctx;
    const graph_program *p = &c->program;
    graph_buffer *none;
    part.nnodes = p->nnodes;
    part.npositions = c->npositions;
    part.offsets = copy_of(p->offsets, sizeof *p->offsets * p->noffsets);
    part.scalars = copy_of(p->scalars, sizeof *p->scalars * p->nscalars);
    part.positions = copy_of(c->positions, sizeof *c->positions * c->npositions);
    part.first = ARENA_ARRAY(&part.mem, bool, p->nnodes + 1);
    graph_program_decode(p, &part.mem, &part.nodes, &none);
}

/* Which nodes go first: from the last to the first of them. */
static simt_status choose(void *context) {
    const storage *s = context;
    read_program();
    bool *read =
        ARENA_ARRAY(&part.mem, bool, array_ctx.nslots + 1); /* by a later node, or looked at */
    bool *written = ARENA_ARRAY(&part.mem, bool, array_ctx.nslots + 1);
    read[s->slot] = true;
    part.nfirst = 0;
    for (uint32_t i = part.nnodes; i-- > 0;) {
        const graph_node *n = &part.nodes[i];
        bool needed = read[n->out.buffer] || written[n->out.buffer];
        for (int k = 0; k < n->nin; k++) needed |= n->scalar[k] < 0 && written[n->in[k].buffer];
        if (!needed) continue;
        part.first[i] = true;
        part.nfirst++;
        read[n->out.buffer] = written[n->out.buffer] = true; /* it may write a part only */
        for (int k = 0; k < n->nin; k++)
            if (n->scalar[k] < 0) read[n->in[k].buffer] = true;
    }
    return SIMT_OK;
}

/* The failure of a storage that the node uses, or NULL. */
static const storage *failed_one(const graph_node *n) {
    const array_slot *slots = array_ctx.slots;
    for (int k = 0; k < n->nin; k++)
        if (n->scalar[k] < 0 && slots[n->in[k].buffer].store->failed)
            return slots[n->in[k].buffer].store;
    return slots[n->out.buffer].store->failed ? slots[n->out.buffer].store : NULL;
}

static void append(uint32_t number, uint32_t *position) {
    array_context *c = &array_ctx;
    const graph_node *n = &part.nodes[number];
    array_slot *out = &c->slots[n->out.buffer];
    uint32_t at = c->program.nnodes;
    const storage *failed = failed_one(n);
    if (failed) {
        simt_diag diag = {.code = failed->failed};
        evaluate_fail_locked(out, failed->diag ? failed->diag : &diag);
        return;
    }
    if (queue_append_locked(n, part.offsets, part.scalars) != SIMT_OK) {
        evaluate_fail_locked(out, status_get());
        return;
    }
    out->written = true;
    while (*position < part.npositions && part.positions[*position].node < number) ++*position;
    if (*position == part.npositions || part.positions[*position].node != number) return;
    c->positions[c->npositions] = part.positions[*position];
    c->positions[c->npositions++].node = at;
}

static void append_all(bool first) {
    uint32_t position = 0;
    for (uint32_t i = 0; i < part.nnodes; i++)
        if (part.first[i] == first) append(i, &position);
}

bool part_begin_locked(const storage *s) {
    array_context *c = &array_ctx;
    arena_init_sure(&part.mem);
    if (arena_run(choose, (void *)(uintptr_t)s) != SIMT_OK || part.nfirst == part.nnodes) {
        arena_deinit(&part.mem);
        return false;
    }
    graph_program_clear(&c->program);
    c->npositions = 0;
    for (uint32_t i = 0; i < c->nslots; i++) {
        c->slots[i].written = false;
        c->slots[i].fresh |= !c->slots[i].store->data;
    }
    for (uint32_t i = 0; i < part.nnodes; i++) {
        const graph_node *n = &part.nodes[i];
        if (part.first[i]) continue;
        c->slots[n->out.buffer].needed = true;
        for (int k = 0; k < n->nin; k++)
            if (n->scalar[k] < 0) c->slots[n->in[k].buffer].needed = true;
    }
    append_all(true);
    part.active = true;
    return true;
}

bool part_is_active(void) { return part.active; }

void part_end_locked(bool ran) {
    array_context *c = &array_ctx;
    if (!part.active) return;
    part.active = false;
    if (ran) {
        graph_program_clear(&c->program);
        c->npositions = 0;
        for (uint32_t i = 0; i < c->nslots; i++) c->slots[i].written = false;
    }
    append_all(false);
    for (uint32_t i = 0; i < c->nslots; i++) {
        c->slots[i].needed = false;
        c->slots[i].fresh &= c->slots[i].written;
    }
    arena_deinit(&part.mem);
    if (c->program.nnodes == 0) queue_clear_locked();
}
