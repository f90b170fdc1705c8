/* The plans of programs met before: a hash table over a list ordered by last use. */
#include "array/plan_cache.h"
#include "base/heap.h"

#include <string.h>

#define BUCKETS    1024
#define MOST_BYTES ((size_t)48 << 20)

static struct {
    cached_plan *buckets[BUCKETS];
    cached_plan *newest, *oldest;
    size_t bytes;
} cache;

static void unlink_plan(cached_plan *c) {
    *(c->newer ? &c->newer->older : &cache.newest) = c->older;
    *(c->older ? &c->older->newer : &cache.oldest) = c->newer;
}

static void link_newest(cached_plan *c) {
    c->newer = NULL;
    c->older = cache.newest;
    *(cache.newest ? &cache.newest->newer : &cache.oldest) = c;
    cache.newest = c;
}

const cached_plan *plan_cache_find(const graph_program *p) {
    for (cached_plan *c = cache.buckets[p->hash % BUCKETS]; c; c = c->chain) {
        const graph_plan *plan = c->plan;
        if (plan->hash != p->hash || plan->nwords != p->nwords ||
            memcmp(plan->words, p->words, sizeof *p->words * p->nwords) != 0)
            continue;
        if (c != cache.newest) {
            unlink_plan(c);
            link_newest(c);
        }
        return c;
    }
    return NULL;
}

void plan_free(graph_plan *plan) {
    if (!plan) return;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kernel) runtime_kernel_unref(plan->steps[i].kernel);
    graph_plan_free(plan);
}

static void drop_oldest(void) {
    cached_plan *c = cache.oldest;
    cached_plan **at = &cache.buckets[c->plan->hash % BUCKETS];
    while (*at != c) at = &(*at)->chain;
    *at = c->chain;
    unlink_plan(c);
    cache.bytes -= c->plan->mem.bytes;
    plan_free(c->plan);
    heap_free(c);
}

void plan_cache_clear(void) {
    while (cache.oldest) drop_oldest();
}

static double view_bytes(const graph_view *v) {
    double n = (double)dtype_bytes(v->dt);
    for (int d = 0; d < v->ndim; d++)
        if (v->strides[d]) n *= (double)v->shape[d];
    return n;
}

/* 10 GB/s for what moves memory, and the library steps' own estimates. */
static double plan_cost(const graph_plan *plan) {
    double cost = 0;
    for (uint32_t i = 0; i < plan->nnodes; i++) {
        const graph_node *n = &plan->nodes[i];
        for (int k = 0; k < n->nin; k++)
            if (n->scalar[k] < 0) cost += view_bytes(&n->in[k]) * 0.1;
        cost += view_bytes(&n->out) * 0.1;
        if (array_op_table[n->op].kind == OP_KIND_CALL) cost += call_cost(n);
    }
    return cost;
}

static simt_status compile_steps(graph_plan *plan) {
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        graph_step *step = &plan->steps[i];
        if (step->is_call) continue;
        runtime_compile_options options = {.contract = false};
        memcpy(options.block, step->block, sizeof options.block);
        ir_func *func = step->func;
        step->func = NULL;
        runtime_kernel *kernel;
        SIMT_TRY(runtime_compile(array_ctx.rt, func, &options, &kernel));
        step->kernel = kernel;
    }
    return SIMT_OK;
}

simt_status plan_make(const graph_program *p, graph_plan **out, double *cost) {
    graph_plan *plan;
    SIMT_TRY(graph_plan_new(p, &array_ctx.facts, &plan));
    simt_status status = compile_steps(plan);
    if (status != SIMT_OK) {
        plan_free(plan);
        return status;
    }
    *cost = plan_cost(plan);
    *out = plan;
    return SIMT_OK;
}

simt_status plan_cache_make(const graph_program *p, const cached_plan **out) {
    graph_plan *plan;
    double cost;
    SIMT_TRY(plan_make(p, &plan, &cost));
    cached_plan *c = heap_zeroed(1, sizeof *c);
    if (!c) {
        plan_free(plan);
        return status_fail(SIMT_ERR_MEMORY, "out of memory while planning");
    }
    c->plan = plan;
    c->cost = cost;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].nargs > c->most_args) c->most_args = plan->steps[i].nargs;
    c->chain = cache.buckets[plan->hash % BUCKETS];
    cache.buckets[plan->hash % BUCKETS] = c;
    link_newest(c);
    cache.bytes += plan->mem.bytes;
    while (cache.bytes > MOST_BYTES && cache.oldest != c) drop_oldest();
    *out = c;
    return SIMT_OK;
}
