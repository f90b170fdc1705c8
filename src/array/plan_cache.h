/* The plans of programs met before, found by their key; bounded by the memory they take. */
#ifndef SIMT_ARRAY_PLAN_CACHE_H
#define SIMT_ARRAY_PLAN_CACHE_H

#include "array/internal.h"

typedef struct cached_plan {
    graph_plan *plan;
    struct cached_plan *chain, *newer, *older;
    uint32_t most_args; /* of any step */
    double cost;        /* rough ns of one run */
} cached_plan;

/* Borrowed, valid until the next make; NULL: not there. */
const cached_plan *plan_cache_find(const graph_program *p);
void plan_cache_clear(void);
/* Plans and compiles; in *cost rough ns of one run. The caller's: plan_free, NULL is fine. */
simt_status plan_make(const graph_program *p, graph_plan **out, double *cost);
void plan_free(graph_plan *plan);
/* The same, for the cache. */
simt_status plan_cache_make(const graph_program *p, const cached_plan **out);

#endif
