/* Inside the planner: groups (fuse.c makes them, lower.c turns each into one or two kernels). */
#ifndef SIMT_GRAPH_PLAN_H
#define SIMT_GRAPH_PLAN_H

#include "graph/emit.h"
#include "graph/graph.h"

/* A group becomes one step: a call, or a kernel over one iteration space. */
typedef struct graph_group {
    /* OP_KIND_EW, OP_KIND_RED (elementwise nodes may be in it too), OP_KIND_CALL */
    array_op_kind kind;
    bool flat; /* all members are contiguous: only the number of elements matters */
    int ndim;
    int64_t shape[GRAPH_MAX_NDIM], size;
    uint32_t axes_mask; /* OP_KIND_RED */
    uint64_t risks;     /* what its members depend on that may fail: the same for all of them */
    uint32_t *nodes, nnodes, capacity;
} graph_group;

/* What the planner knows of a node. */
typedef struct graph_fact {
    bool live,
        stored; /* stored: its value goes to memory (else it is only used inside its group) */
    uint32_t group;
    int32_t
        producer[GRAPH_MAX_INPUTS]; /* node of the same group whose value this input is, or -1 */
    bool flat; /* every view is contiguous and has as many elements as the iteration space */
} graph_fact;

typedef struct graph_planning {
    graph_plan *plan;
    const graph_program *program;
    const graph_target *target;
    graph_fact *facts;
    graph_group *groups;
    uint32_t ngroups, groups_capacity;
    bool *written;       /* by buffer: some node writes it */
    int32_t *first_view; /* by buffer: offset index of its first view in the program */
    arena scratch;       /* what one group needs */
    ir_func *making;     /* a function that no step has yet */
} graph_planning;

/* Fills facts and groups. */
void fuse_program(graph_planning *g);
/* Appends the steps of one group to the plan. */
simt_status lower_group(graph_planning *g, const graph_group *group);

/* The shape a node iterates over: its output's, for reductions its input's. */
static inline const graph_view *graph_node_space(const graph_node *n) {
    return array_op_table[n->op].kind == OP_KIND_RED ? &n->in[0] : &n->out;
}
static inline int64_t graph_view_size(const graph_view *v) {
    int64_t size = 1;
    for (int d = 0; d < v->ndim; d++) size *= v->shape[d];
    return size;
}
/* Used by lower.c for its partial results. Returns the new buffer's number. */
uint32_t graph_plan_add_buffer(graph_planning *g, int64_t bytes);
/* The next step, zeroed. */
graph_step *graph_plan_add_step(graph_planning *g);

#endif
