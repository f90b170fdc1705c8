/* From a closed program to a plan: decode, fuse, lower, and say when buffers come and go. */
#include "base/heap.h"
#include "graph/plan.h"

#include <string.h>

uint32_t graph_plan_add_buffer(graph_planning *g, int64_t bytes) {
    graph_plan *plan = g->plan;
    if ((plan->nbuffers & (plan->nbuffers - 1)) == 0 || plan->nbuffers == plan->nprogram_buffers) {
        uint32_t capacity = 8;
        while (capacity <= plan->nbuffers) capacity *= 2;
        graph_buffer *buffers = ARENA_ARRAY(&plan->mem, graph_buffer, capacity);
        memcpy(buffers, plan->buffers, sizeof *buffers * plan->nbuffers);
        plan->buffers = buffers;
    }
    plan->buffers[plan->nbuffers] = (graph_buffer){bytes, false, false};
    return plan->nbuffers++;
}

graph_step *graph_plan_add_step(graph_planning *g) {
    graph_plan *plan = g->plan;
    if ((plan->nsteps & (plan->nsteps - 1)) == 0) {
        graph_step *steps =
            ARENA_ARRAY(&plan->mem, graph_step, plan->nsteps ? plan->nsteps * 2 : 4);
        if (plan->nsteps) memcpy(steps, plan->steps, sizeof *steps * plan->nsteps);
        plan->steps = steps;
    }
    return &plan->steps[plan->nsteps++];
}

static void find_views(graph_planning *g) {
    const graph_plan *plan = g->plan;
    memset(g->first_view, -1, sizeof *g->first_view * plan->nbuffers);
    for (uint32_t i = 0; i < plan->nnodes; i++) {
        const graph_node *n = &plan->nodes[i];
        uint32_t offset = n->first_offset;
        for (int k = 0; k <= n->nin; k++) {
            if (k < n->nin && n->scalar[k] >= 0) continue;
            uint32_t buffer = k < n->nin ? n->in[k].buffer : n->out.buffer;
            if (g->first_view[buffer] < 0) g->first_view[buffer] = (int32_t)offset;
            offset++;
        }
        g->written[n->out.buffer] = true;
    }
}

/* Buffers used by a step: kernels by their arguments, calls by their views. */
static void visit_buffers(const graph_plan *plan, const graph_step *step, int32_t *when,
                          int32_t now) {
    if (step->is_call) {
        const graph_node *n = &plan->nodes[step->node];
        for (int k = 0; k < n->nin; k++)
            if (n->scalar[k] < 0) when[n->in[k].buffer] = now;
        when[n->out.buffer] = now;
        return;
    }
    for (uint32_t i = 0; i < step->nargs; i++)
        if (step->args[i].kind == GRAPH_ARG_VIEW) when[step->args[i].index] = now;
}

static uint32_t *list_of(graph_plan *plan, const int32_t *when, int32_t step, uint32_t *count) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->nbuffers; i++) n += when[i] == step;
    uint32_t *list = ARENA_ARRAY(&plan->mem, uint32_t, n + 1);
    *count = 0;
    for (uint32_t i = 0; i < plan->nbuffers; i++)
        if (when[i] == step) list[(*count)++] = i;
    return list;
}

/* Allocation before the first use, release after the last. A kept buffer that no step touches (no
 * elements, or only dead nodes) is allocated with the first step by array/. */
static void place_buffers(graph_plan *plan) {
    int32_t *first = ARENA_ARRAY(&plan->mem, int32_t, plan->nbuffers + 1);
    int32_t *last = ARENA_ARRAY(&plan->mem, int32_t, plan->nbuffers + 1);
    memset(first, -1, sizeof *first * plan->nbuffers);
    memset(last, -1, sizeof *last * plan->nbuffers);
    for (int32_t s = (int32_t)plan->nsteps - 1; s >= 0; s--)
        visit_buffers(plan, &plan->steps[s], first, s);
    for (int32_t s = 0; s < (int32_t)plan->nsteps; s++)
        visit_buffers(plan, &plan->steps[s], last, s);
    for (uint32_t i = 0; i < plan->nbuffers; i++) {
        if (plan->buffers[i].ready) first[i] = -1;
        if (plan->buffers[i].ready || plan->buffers[i].kept) last[i] = -1;
    }
    for (int32_t s = 0; s < (int32_t)plan->nsteps; s++) {
        graph_step *step = &plan->steps[s];
        step->allocs = list_of(plan, first, s, &step->nallocs);
        step->frees = list_of(plan, last, s, &step->nfrees);
    }
}

static simt_status make_plan(void *context) {
    graph_planning *g = context;
    graph_plan *plan = g->plan;
    const graph_program *p = g->program;
    plan->words = ARENA_ARRAY(&plan->mem, uint64_t, p->nwords + 1);
    memcpy(plan->words, p->words, sizeof *p->words * p->nwords);
    plan->nwords = p->nwords;
    plan->hash = p->hash;
    graph_program_decode(p, &plan->mem, &plan->nodes, &plan->buffers);
    plan->nnodes = p->nnodes;
    plan->nbuffers = plan->nprogram_buffers = p->nbuffers;
    g->facts = ARENA_ARRAY(&plan->mem, graph_fact, plan->nnodes + 1);
    g->written = ARENA_ARRAY(&plan->mem, bool, plan->nbuffers + 1);
    g->first_view = ARENA_ARRAY(&plan->mem, int32_t, plan->nbuffers + 1);
    find_views(g);
    fuse_program(g);
    for (uint32_t i = 0; i < g->ngroups; i++) SIMT_TRY(lower_group(g, &g->groups[i]));
    place_buffers(plan);
    return SIMT_OK;
}

simt_status graph_plan_new(const graph_program *p, const graph_target *target, graph_plan **out) {
    graph_plan *plan = heap_zeroed(1, sizeof *plan);
    *out = NULL;
    if (!plan) return status_fail(SIMT_ERR_MEMORY, "out of memory while planning");
    arena_init_sure(&plan->mem);
    graph_planning g = {.plan = plan, .program = p, .target = target};
    arena_init_sure(&g.scratch);
    simt_status status = arena_run(make_plan, &g);
    arena_deinit(&g.scratch);
    ir_func_free(g.making);
    if (status != SIMT_OK) {
        graph_plan_free(plan);
        return status;
    }
    *out = plan;
    return SIMT_OK;
}

void graph_plan_free(graph_plan *plan) {
    if (!plan) return;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].func) ir_func_free(plan->steps[i].func);
    arena_deinit(&plan->mem);
    heap_free(plan);
}
