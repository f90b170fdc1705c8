/* Which nodes run together.
 *
 * In: decoded nodes in program order. Out: groups, in an order that respects every dependence; per node
 * whether it is live, stored, and which inputs come from its own group.
 * A node joins the first group that all it depends on allows and whose iteration space is its own:
 * the group of its producer if it reads the producer's elements at the same places, a later one otherwise.
 * Invariants: groups run in order; inside a group, elements are independent of each other, and all
 * members depend on the same library steps that may fail: a failure takes nothing unrelated with it.
 */
#include "graph/plan.h"

#include <string.h>

#define GROUP_MAX_NODES 96

/* One access of a node to a buffer, for dependences. */
typedef struct access {
    uint32_t node, next; /* next: index + 1 in the list of the buffer, 0 ends */
    const graph_view *view;
    bool write;
} access;

typedef struct fusing {
    graph_planning *g;
    access *accesses;
    uint32_t naccesses;
    uint32_t *last_access; /* by buffer: index + 1 */
    uint64_t
        *risks; /* by buffer: a bit for each step that may fail and that its contents depend on */
    uint32_t nrisks;
} fusing;

static bool same_shape(int ndim, const int64_t *a, int ndim_b, const int64_t *b) {
    return ndim == ndim_b && memcmp(a, b, sizeof *a * (size_t)ndim) == 0;
}

static void mark_live(graph_planning *g) {
    graph_plan *plan = g->plan;
    arena scratch;
    arena_init(&scratch);
    bool *needed = ARENA_ARRAY(&scratch, bool, plan->nbuffers + 1);
    for (uint32_t i = 0; needed && i < plan->nbuffers; i++) needed[i] = plan->buffers[i].kept;
    for (uint32_t i = plan->nnodes; i-- > 0;) {
        const graph_node *n = &plan->nodes[i];
        g->facts[i].live = !needed || needed[n->out.buffer];
        if (!needed || !g->facts[i].live) continue;
        for (int k = 0; k < n->nin; k++)
            if (n->scalar[k] < 0) needed[n->in[k].buffer] = true;
    }
    arena_deinit(&scratch);
}

static bool node_is_flat(const graph_node *n) {
    const graph_view *space = graph_node_space(n);
    int64_t size = graph_view_size(space);
    if (n->op == OP_IOTA_AXIS || array_op_table[n->op].kind != OP_KIND_EW) return false;
    for (int k = 0; k < n->nin; k++)
        if (n->scalar[k] < 0 &&
            (!graph_view_contiguous(&n->in[k]) || graph_view_size(&n->in[k]) != size))
            return false;
    return graph_view_contiguous(&n->out);
}

/* Do two views, each walked by its node's iteration space, touch the same element at the same point? */
static bool aligned(const graph_view *a, const graph_view *b) {
    if (a->dt != b->dt || a->offset != b->offset) return false;
    if (same_shape(a->ndim, a->shape, b->ndim, b->shape)) {
        for (int d = 0; d < a->ndim; d++)
            if (a->shape[d] != 1 && a->strides[d] != b->strides[d]) return false;
        return true;
    }
    return graph_view_contiguous(a) && graph_view_contiguous(b) &&
           graph_view_size(a) == graph_view_size(b);
}

static bool space_fits(const graph_planning *g, const graph_group *group, uint32_t node) {
    const graph_node *n = &g->plan->nodes[node];
    const graph_view *space = graph_node_space(n);
    if (group->nnodes >= GROUP_MAX_NODES || group->kind == OP_KIND_CALL) return false;
    bool is_reduction = array_op_table[n->op].kind == OP_KIND_RED;
    bool same = same_shape(group->ndim, group->shape, space->ndim, space->shape);
    if (is_reduction && group->kind == OP_KIND_RED && group->axes_mask != (uint32_t)n->params[0])
        return false;
    if (same) return true;
    if (graph_view_size(space) != group->size) return false;
    return g->facts[node].flat || (group->flat && group->kind == OP_KIND_EW);
}

/* The first group in which the node may run: later than, or aligned inside, what it depends on. */
static uint32_t earliest_group(const fusing *f, uint32_t node) {
    const graph_planning *g = f->g;
    const graph_node *n = &g->plan->nodes[node];
    uint32_t first = 0;
    for (int k = 0; k <= n->nin; k++) {
        bool write = k == n->nin;
        if (!write && n->scalar[k] >= 0) continue;
        const graph_view *view = write ? &n->out : &n->in[k];
        for (uint32_t i = f->last_access[view->buffer]; i; i = f->accesses[i - 1].next) {
            const access *other = &f->accesses[i - 1];
            if (!write && !other->write) continue;
            uint32_t group = g->facts[other->node].group;
            array_op_kind kind = array_op_table[g->plan->nodes[other->node].op].kind;
            bool inside = kind == OP_KIND_EW && aligned(view, other->view);
            if (kind == OP_KIND_RED && !other->write) inside = aligned(view, other->view);
            if (write && array_op_table[n->op].kind == OP_KIND_RED) inside = false;
            uint32_t least = inside ? group : group + 1;
            if (least > first) first = least;
        }
    }
    return first;
}

static bool may_fail(array_op op) {
    return op == OP_TAKE || op == OP_TAKE_ALONG || op == OP_INDEX_GET || op == OP_INDEX_PUT;
}

/* What the node depends on that may fail. Beyond 63 such steps they share a bit. */
static uint64_t find_risks(fusing *f, const graph_node *n) {
    uint64_t risks = f->risks[n->out.buffer]; /* what is there already, if the write is partial */
    for (int k = 0; k < n->nin; k++)
        if (n->scalar[k] < 0) risks |= f->risks[n->in[k].buffer];
    if (may_fail(n->op)) {
        risks |= (uint64_t)1 << (f->nrisks < 63 ? f->nrisks : 63);
        f->nrisks++;
    }
    f->risks[n->out.buffer] = risks;
    return risks;
}

static void add_access(fusing *f, uint32_t node, const graph_view *view, bool write) {
    access *a = &f->accesses[f->naccesses++];
    *a = (access){node, f->last_access[view->buffer], view, write};
    f->last_access[view->buffer] = f->naccesses;
}

static graph_group *add_group(graph_planning *g, uint32_t node) {
    const graph_node *n = &g->plan->nodes[node];
    if (g->ngroups == g->groups_capacity) return NULL; /* capacity: one group for each node */
    graph_group *group = &g->groups[g->ngroups++];
    const graph_view *space = graph_node_space(n);
    group->kind = array_op_table[n->op].kind;
    group->flat = g->facts[node].flat;
    group->ndim = space->ndim;
    memcpy(group->shape, space->shape, sizeof group->shape);
    group->size = graph_view_size(space);
    return group;
}

static void join_group(graph_planning *g, graph_group *group, uint32_t node) {
    const graph_node *n = &g->plan->nodes[node];
    if (group->nnodes == group->capacity) {
        uint32_t capacity = group->capacity ? group->capacity * 2 : 8;
        uint32_t *nodes = ARENA_ARRAY(&g->plan->mem, uint32_t, capacity);
        if (group->nnodes) memcpy(nodes, group->nodes, sizeof *nodes * group->nnodes);
        group->nodes = nodes;
        group->capacity = capacity;
    }
    group->nodes[group->nnodes++] = node;
    g->facts[node].group = (uint32_t)(group - g->groups);
    if (array_op_table[n->op].kind == OP_KIND_RED) {
        group->kind = OP_KIND_RED;
        group->axes_mask = (uint32_t)n->params[0];
    }
    if (group->flat &&
        !g->facts[node].flat) { /* the structured member's shape is the group's now */
        const graph_view *space = graph_node_space(n);
        group->flat = false;
        group->ndim = space->ndim;
        memcpy(group->shape, space->shape, sizeof group->shape);
    }
}

/* Which inputs are values of the node's own group, and which values must be in memory. */
static void find_producers(fusing *f) {
    graph_planning *g = f->g;
    for (uint32_t i = 0; i < g->plan->nnodes; i++) {
        graph_fact *fact = &g->facts[i];
        const graph_node *n = &g->plan->nodes[i];
        if (!fact->live) continue;
        bool is_call = array_op_table[n->op].kind == OP_KIND_CALL;
        fact->stored = is_call || g->plan->buffers[n->out.buffer].kept ||
                       g->plan->buffers[n->out.buffer].ready ||
                       array_op_table[n->op].kind == OP_KIND_RED;
        for (int k = 0; k < n->nin; k++) fact->producer[k] = -1;
    }
    for (uint32_t i = 0; i < g->plan->nnodes; i++) {
        graph_fact *fact = &g->facts[i];
        const graph_node *n = &g->plan->nodes[i];
        if (!fact->live) continue;
        for (int k = 0; k < n->nin; k++) {
            if (n->scalar[k] >= 0) continue;
            /* the latest write before this node; older writes to the buffer count only if it is partial */
            bool found = false;
            for (uint32_t a = f->last_access[n->in[k].buffer]; a; a = f->accesses[a - 1].next) {
                const access *other = &f->accesses[a - 1];
                if (!other->write || other->node >= i) continue;
                graph_fact *theirs = &g->facts[other->node];
                if (!found && theirs->group == fact->group && aligned(&n->in[k], other->view)) {
                    fact->producer[k] = (int32_t)other->node;
                    break;
                }
                found = true;
                theirs->stored = true;
            }
        }
    }
}

/* A store is left out when a later node of the group writes the same place (nobody in between reads it:
 * such a reader would have moved the later writer to another group). */
static void drop_overwritten(graph_planning *g) {
    for (uint32_t i = 0; i < g->ngroups; i++) {
        const graph_group *group = &g->groups[i];
        if (group->kind == OP_KIND_CALL) continue;
        for (uint32_t a = 0; a + 1 < group->nnodes; a++) {
            const graph_node *n = &g->plan->nodes[group->nodes[a]];
            if (!g->facts[group->nodes[a]].stored || array_op_table[n->op].kind != OP_KIND_EW)
                continue;
            for (uint32_t b = a + 1; b < group->nnodes; b++) {
                const graph_node *later = &g->plan->nodes[group->nodes[b]];
                if (later->out.buffer == n->out.buffer &&
                    array_op_table[later->op].kind == OP_KIND_EW && aligned(&later->out, &n->out)) {
                    g->facts[group->nodes[a]].stored = false;
                    break;
                }
            }
        }
    }
}

void fuse_program(graph_planning *g) {
    graph_plan *plan = g->plan;
    fusing f = {.g = g};
    f.accesses = ARENA_ARRAY(&plan->mem, access, plan->nnodes * (GRAPH_MAX_INPUTS + 1) + 1);
    f.last_access = ARENA_ARRAY(&plan->mem, uint32_t, plan->nbuffers + 1);
    f.risks = ARENA_ARRAY(&plan->mem, uint64_t, plan->nbuffers + 1);
    g->groups_capacity = plan->nnodes + 1;
    g->groups = ARENA_ARRAY(&plan->mem, graph_group, g->groups_capacity);
    mark_live(g);
    for (uint32_t i = 0; i < plan->nnodes; i++) {
        if (!g->facts[i].live) continue;
        const graph_node *n = &plan->nodes[i];
        g->facts[i].flat = node_is_flat(n);
        uint64_t risks = find_risks(&f, n);
        graph_group *group = NULL;
        if (array_op_table[n->op].kind != OP_KIND_CALL) {
            for (uint32_t k = earliest_group(&f, i); k < g->ngroups && !group; k++)
                if (g->groups[k].risks == risks && space_fits(g, &g->groups[k], i))
                    group = &g->groups[k];
        }
        if (!group) group = add_group(g, i);
        if (!group) arena_end_run(status_fail(SIMT_ERR_INTERNAL, "too many groups"));
        group->risks = risks;
        join_group(g, group, i);
        for (int k = 0; k < n->nin; k++)
            if (n->scalar[k] < 0) add_access(&f, i, &n->in[k], false);
        add_access(&f, i, &n->out, true);
    }
    find_producers(&f);
    drop_overwritten(g);
}
