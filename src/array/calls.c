/* The table of library steps. */
#include "array/internal.h"

static const call_function table[ARRAY_OP_COUNT] = {
    [OP_COPY] = call_copy,
    [OP_CAST] = call_copy,
    [OP_SUM] = call_reduce_rows,
    [OP_MAX] = call_reduce_rows,
    [OP_MIN] = call_reduce_rows,
    [OP_ARGMAX] = call_reduce_rows,
    [OP_ARGMIN] = call_reduce_rows,
    [OP_MATMUL] = call_matmul,
    [OP_TAKE] = call_index_get,
    [OP_TAKE_ALONG] = call_take_along,
    [OP_INDEX_GET] = call_index_get,
    [OP_INDEX_PUT] = call_index_put,
    [OP_CHECK_UNIT] = call_check_unit,
    [OP_CUMSUM] = call_cumsum,
    [OP_MOMENTS] = call_moments,
    [OP_SORT] = call_sort,
    [OP_ARGSORT] = call_sort,
    [OP_CONV2D] = call_conv2d,
    [OP_CONV2D_INPUT] = call_conv2d_input,
    [OP_CONV2D_WEIGHT] = call_conv2d_weight,
    [OP_MAX_POOL2D] = call_max_pool2d,
    [OP_MAX_POOL2D_INDEX] = call_max_pool2d_index,
    [OP_MAX_POOL2D_BACK] = call_max_pool2d_back,
    [OP_AVG_POOL2D] = call_avg_pool2d,
    [OP_AVG_POOL2D_BACK] = call_avg_pool2d_back,
};

call_function call_find(array_op op) { return table[op]; }

static double elements(const graph_view *v) {
    double n = 1;
    for (int d = 0; d < v->ndim; d++) n *= (double)v->shape[d];
    return n;
}

/* 50 flops a nanosecond for products, 1 ns for each element that is moved by index. */
double call_cost(const graph_node *n) {
    switch (n->op) {
    case OP_MATMUL: return elements(&n->out) * (double)n->in[0].shape[n->in[0].ndim - 1] * 0.04;
    case OP_CONV2D:
    case OP_CONV2D_INPUT:
    case OP_CONV2D_WEIGHT: return elements(&n->in[0]) * elements(&n->in[1]) * 0.001;
    default: return elements(&n->out) + elements(&n->in[0]);
    }
}
