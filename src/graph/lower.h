/* Shared by lower.c (the body at one point of the iteration space) and lower_reduce.c. */
#ifndef SIMT_GRAPH_LOWER_H
#define SIMT_GRAPH_LOWER_H

#include "graph/plan.h"

#define LOWER_MAX_DIMS GRAPH_MAX_NDIM

/* A view as the kernel sees it: a parameter and one stride per collapsed dimension. */
typedef struct lower_view {
    const graph_view *view;
    uint32_t arg;
    int64_t strides[LOWER_MAX_DIMS]; /* bytes, by dimension of the lowered space */
} lower_view;

/* Where the values of a node come from and go to. */
typedef struct lower_node {
    const graph_node *node;
    uint32_t number;
    int32_t in_view[GRAPH_MAX_INPUTS]; /* index of the lower_view, or -1: scalar or register */
    int32_t in_reg[GRAPH_MAX_INPUTS];  /* index in the group of the producing node, or -1 */
    uint32_t scalar_arg[GRAPH_MAX_SCALARS];
    int32_t out_view; /* -1: not stored here */
    bool is_reduction;
} lower_node;

typedef struct lowering {
    graph_planning *g;
    const graph_group *group;
    ir_func *f;
    arena *mem;
    /* the group's space after collapsing: dimensions outermost first; reduced[d] tells which are reduced */
    int ndim;
    int64_t shape[LOWER_MAX_DIMS];
    bool reduced[LOWER_MAX_DIMS];
    int64_t index_strides[LOWER_MAX_DIMS]; /* of the flat element index, for rows that ask */
    bool wants_index;
    lower_view *views;
    uint32_t nviews;
    lower_node *nodes;
    uint32_t nnodes;
    graph_arg *args;
    ir_type *arg_types;
    uint32_t nargs, args_capacity;
} lowering;

/* The coordinates of a point, i64, by dimension of the space; NULL where the coordinate is 0. */
typedef struct lower_point {
    ir_value *coords[LOWER_MAX_DIMS];
} lower_point;

ir_value *lower_i64(ir_builder *b, int64_t value);
ir_value *lower_thread(ir_builder *b); /* tid.x and ctaid.x as i64 */
ir_value *lower_block(ir_builder *b);
/* The cursor inside `if condition`; lower_end_guard closes it. */
ir_builder lower_guard(ir_builder *b, ir_value *condition);
void lower_end_guard(ir_builder *in);
void lower_add_params(lowering *l); /* all arguments, before anything is built */
/* coords of `dims` dimensions (numbers in which[]) from their flat index. */
void lower_split_index(lowering *l, ir_builder *b, ir_value *index, const int *which, int dims,
                       int64_t size, lower_point *point);
/* Loads, computes and stores everything of the group at the point. values[i]: reductions' operand
 * (converted as emit_reduction_element wants), other nodes' results. */
void lower_emit_point(lowering *l, ir_builder *b, const lower_point *point, ir_value **values);
ir_value *lower_address(lowering *l, ir_builder *b, uint32_t view, const lower_point *point);
uint32_t lower_add_arg(lowering *l, ir_type type, graph_arg arg);
/* A function to build, which is the plan's own from then on. */
void lower_new_func(lowering *l, const char *name);
/* Makes the step of the function just built. */
simt_status lower_finish(lowering *l, ir_func *f, const graph_arg *args, uint32_t nargs,
                         uint64_t blocks, uint32_t threads);

/* lower_reduce.c: the group has reductions. */
simt_status lower_reductions(lowering *l);

#endif
