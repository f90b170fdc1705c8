/* The tables of library steps, one for each target that has some. */
#include "array/internal.h"

const array_library library_cpu = {
    .adam = true,
    .calls[OP_COPY] = call_copy,
    .calls[OP_CAST] = call_copy,
    .calls[OP_SUM] = call_reduce_rows,
    .calls[OP_MAX] = call_reduce_rows,
    .calls[OP_MIN] = call_reduce_rows,
    .calls[OP_ARGMAX] = call_reduce_rows,
    .calls[OP_ARGMIN] = call_reduce_rows,
    .calls[OP_MATMUL] = call_matmul,
    .calls[OP_TAKE] = call_index_get,
    .calls[OP_TAKE_ALONG] = call_take_along,
    .calls[OP_INDEX_GET] = call_index_get,
    .calls[OP_INDEX_PUT] = call_index_put,
    .calls[OP_CHECK_UNIT] = call_check_unit,
    .calls[OP_CUMSUM] = call_cumsum,
    .calls[OP_MOMENTS] = call_moments,
    .calls[OP_SORT] = call_sort,
    .calls[OP_ARGSORT] = call_sort,
    .calls[OP_CONV2D] = call_conv2d,
    .calls[OP_CONV2D_INPUT] = call_conv2d_input,
    .calls[OP_CONV2D_WEIGHT] = call_conv2d_weight,
    .calls[OP_MAX_POOL2D] = call_max_pool2d,
    .calls[OP_MAX_POOL2D_INDEX] = call_max_pool2d_index,
    .calls[OP_MAX_POOL2D_BACK] = call_max_pool2d_back,
    .calls[OP_AVG_POOL2D] = call_avg_pool2d,
    .calls[OP_AVG_POOL2D_BACK] = call_avg_pool2d_back,
};

const array_library library_none = {.adam = false};

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
