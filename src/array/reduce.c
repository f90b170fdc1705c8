/* Reductions, and what is composed of them: mean, var, std, softmax. */
#include <string.h>

#include "array/internal.h"
#include "array/meta.h"

static uint32_t all_axes(const array *a) {
    return a->ndim == 0 ? 0 : (uint32_t)((1ull << a->ndim) - 1);
}

static int result_shape(const array *a, uint32_t mask, bool keepdims, int64_t *shape) {
    int ndim = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (!(mask >> d & 1))
            shape[ndim++] = a->shape[d];
        else if (keepdims)
            shape[ndim++] = 1;
    }
    return ndim;
}

static simt_status empty_error(array_op op, graph_face face) {
    const char *name = array_op_table[op].name;
    if (face == FACE_TORCH)
        return status_fail(array_op_is_position(op) ? SIMT_ERR_INDEX : SIMT_ERR_RUNTIME,
                           "%s(): Expected reduction dim to be specified for input.numel() == 0. "
                           "Specify the reduction "
                           "dim with the 'dim' argument.",
                           name);
    if (array_op_is_position(op))
        return status_fail(SIMT_ERR_VALUE, "attempt to get %s of an empty sequence", name);
    return status_fail(SIMT_ERR_VALUE,
                       "zero-size array to reduction operation %s which has no identity",
                       op == OP_MAX ? "maximum" : "minimum");
}

/* Nothing is reduced (0-d, or all reduced axes have length 1): a conversion. */
static simt_status trivial(array_op op, array *a, dtype dt, const int64_t *shape, int ndim,
                           array **out) {
    if (array_op_is_position(op)) return array_full_of(a, dt, shape, ndim, 0, out);
    array *view;
    SIMT_TRY(array_reshape(a, shape, ndim, &view));
    dtype truth = array_op_table[op].dtypes == 'B' ? DT_BOOL : dt;
    simt_status status = array_astype(view, truth, out);
    array_unref(view);
    if (status == SIMT_OK && truth != dt) { /* PyTorch's uint8 any and all */
        array *narrow = *out;
        status = array_astype(narrow, dt, out);
        array_unref(narrow);
    }
    return status;
}

static simt_status reduce_node(array_op op, array *a, uint32_t mask, dtype dt, const int64_t *shape,
                               int ndim, array **out) {
    queue_request q;
    queue_request_init(&q, op);
    char rule = array_op_table[op].dtypes;
    q.node.compute = rule == 'N' ? dt : rule == 'B' ? DT_BOOL : a->dt;
    q.node.nparams = 1;
    q.node.params[0] = mask;
    queue_input(&q, a);
    queue_output_new(&q, dt, shape, ndim);
    return queue_add(&q, out);
}

/* argmax over several axes counts in the flattened array: they must be one axis. */
static simt_status flat_position(array_op op, array *a, dtype dt, const int64_t *shape, int ndim,
                                 array **out) {
    array *flat;
    SIMT_TRY(array_reshape(a, (int64_t[]){a->size}, 1, &flat));
    simt_status status = reduce_node(op, flat, 1, dt, shape, ndim, out);
    array_unref(flat);
    return status;
}

simt_status array_reduce(array_op op, array *a, const reduce_options *o, array **out) {
    uint32_t mask = o->axes_mask & all_axes(a);
    dtype dt;
    SIMT_TRY(graph_reduce_dtype(op, o->face, a->dt, &dt));
    if (o->has_dtype) dt = o->dt;
    int64_t shape[ARRAY_MAX_NDIM], reduced = 1, kept = 1;
    int ndim = result_shape(a, mask, o->keepdims, shape);
    for (int d = 0; d < a->ndim; d++) *(mask >> d & 1 ? &reduced : &kept) *= a->shape[d];
    if (reduced == 0 && !array_op_has_identity(op)) return empty_error(op, o->face);
    if (kept == 0) return array_empty_of(a, dt, shape, ndim, out);
    if (reduced == 0) {
        bool one = array_op_table[op].neutral == ONE;
        return array_full_of(a, dt, shape, ndim, one, out);
    }
    if (reduced == 1) return trivial(op, a, dt, shape, ndim, out);
    if (array_op_is_position(op) && mask == all_axes(a) && a->ndim > 1)
        return flat_position(op, a, dt, shape, ndim, out);
    return reduce_node(op, a, mask, dt, shape, ndim, out);
}

/* ---- compositions ---- */

/* A chain of steps: each takes the arrays made so far; the first failure ends it. */
typedef struct chain {
    simt_status status;
    array *made[16];
    int n;
} chain;

static array *keep(chain *c, simt_status status, array *made) {
    if (status != SIMT_OK) {
        c->status = status;
        return NULL;
    }
    return c->made[c->n++] = made;
}

static array *apply(chain *c, array_op op, operand a, operand b, int nin) {
    if (c->status != SIMT_OK) return NULL;
    array *made = NULL;
    operand in[2] = {a, b};
    simt_status status = array_elementwise(op, in, nin, &(op_options){.face = FACE_NUMPY}, &made);
    return keep(c, status, made);
}

static array *apply_scaled(chain *c, array_op op, array *a, array *b, double scale) {
    if (c->status != SIMT_OK) return NULL;
    array *made = NULL;
    operand in[2] = {operand_array(a), operand_array(b)};
    op_options o = {.face = FACE_NUMPY, .scalars = &scale, .nscalars = 1};
    simt_status status = array_elementwise(op, in, 2, &o, &made);
    return keep(c, status, made);
}

static array *reduced(chain *c, array_op op, array *a, const reduce_options *o) {
    if (c->status != SIMT_OK) return NULL;
    array *made = NULL;
    simt_status status = array_reduce(op, a, o, &made);
    return keep(c, status, made);
}

static array *converted(chain *c, array *a, dtype dt) {
    if (c->status != SIMT_OK) return NULL;
    if (a->dt == dt) return a;
    array *made = NULL;
    simt_status status = array_astype(a, dt, &made);
    return keep(c, status, made);
}

/* Gives the caller a reference to `result` and drops the chain's own. */
static simt_status finish(chain *c, array *result, array **out) {
    if (c->status == SIMT_OK) *out = array_ref(result);
    for (int i = 0; i < c->n; i++) array_unref(c->made[i]);
    return c->status;
}

static int64_t reduced_count(const array *a, uint32_t mask) {
    int64_t n = 1;
    for (int d = 0; d < a->ndim; d++)
        if (mask >> d & 1) n *= a->shape[d];
    return n;
}

/* The type of a mean and the type to sum in: integers in double, half in single. */
static simt_status mean_dtypes(const array *a, const reduce_options *o, const char *name,
                               dtype *result, dtype *wide) {
    *result = o->has_dtype ? o->dt : a->dt;
    if (!dtype_is_float(*result)) {
        if (o->face == FACE_TORCH)
            return status_fail(SIMT_ERR_RUNTIME,
                               "%s(): could not infer output dtype. Input dtype must be either a "
                               "floating point or "
                               "complex dtype. Got: %s",
                               name, dtype_table[a->dt].name);
        *result = DT_F64;
    }
    *wide = dtype_bytes(*result) == 2 ? DT_F32 : *result;
    return SIMT_OK;
}

simt_status array_mean(array *a, const reduce_options *o, array **out) {
    dtype result, wide = DT_F64;
    SIMT_TRY(mean_dtypes(a, o, "mean", &result, &wide));
    reduce_options sum = *o;
    sum.has_dtype = true;
    sum.dt = wide;
    chain c = {0};
    array *total = reduced(&c, OP_SUM, a, &sum);
    double n = (double)reduced_count(a, o->axes_mask & all_axes(a));
    array *mean = apply(&c, OP_DIVIDE, operand_array(total), operand_float(n), 2);
    return finish(&c, converted(&c, mean, result), out);
}

/* The library step: means and variances of what lies densely in memory. `left`: what the squares are divided
 * by; `root`: the root of that. */
static void moments_in_memory(chain *c, array *a, uint32_t mask, double left, bool root,
                              array **mean, array **var) {
    int axes[ARRAY_MAX_NDIM], n = 0, kept;
    int64_t shape[ARRAY_MAX_NDIM + 1] = {2};
    for (int d = 0; d < a->ndim; d++)
        if (!(mask >> d & 1)) shape[n + 1] = a->shape[d], axes[n++] = d;
    kept = n;
    for (int d = 0; d < a->ndim; d++)
        if (mask >> d & 1) axes[n++] = d;
    array *turned = NULL, *both = NULL, *part;
    simt_status status = array_transpose(a, axes, &turned);
    if (status == SIMT_OK) {
        queue_request q;
        queue_request_init(&q, OP_MOMENTS);
        q.node.compute = a->dt;
        q.node.nparams = 3;
        q.node.params[0] = kept;
        q.node.params[2] = root;
        memcpy(&q.node.params[1], &left, sizeof left);
        queue_input(&q, turned);
        queue_output_new(&q, a->dt, shape, kept + 1);
        status = queue_add(&q, &both);
    }
    array_unref(turned);
    if (!keep(c, status, both)) return;
    for (int d = 0; d < a->ndim; d++) shape[d] = mask >> d & 1 ? 1 : a->shape[d];
    for (int i = 0; i < 2 && c->status == SIMT_OK; i++) {
        array_slice at = {.kind = SLICE_INDEX, .start = i};
        array *row;
        status = array_slice_view(both, &at, 1, &row);
        if (!keep(c, status, row)) return;
        status = array_reshape(row, shape, a->ndim, &part);
        *(i ? var : mean) = keep(c, status, part);
    }
}

/* The same as array operations: two passes. The mean, rounded, misses the true one by many spreads where
 * numbers are large and close together. So the second pass sums the distances from it beside their
 * squares, and takes out what the miss added (Chan, Golub, LeVeque 1983). */
static void moments_by_operations(chain *c, array *a, dtype wide, uint32_t mask, double left,
                                  bool root, array **mean, array **var) {
    reduce_options o = {.axes_mask = mask, .keepdims = true, .has_dtype = true, .dt = wide};
    double n = (double)reduced_count(a, mask), part = 1 / n;
    /* a power of two changes no digit, and the sum of numbers near the largest one stays finite */
    double scale = a->dt == DT_F64 ? 0x1p-64 : 1;
    array *scaled =
        scale == 1 ? a : apply(c, OP_MULTIPLY, operand_array(a), operand_float(scale), 2);
    array *total = reduced(c, OP_SUM, scaled, &o);
    array *rough = apply(c, OP_DIVIDE, operand_array(total), operand_float(n * scale), 2);
    array *away =
        apply(c, OP_SUBTRACT, operand_array(converted(c, a, wide)), operand_array(rough), 2);
    array *square = apply(c, OP_MULTIPLY, operand_array(away), operand_array(away), 2);
    array *miss = reduced(c, OP_SUM, away, &o), *squares = reduced(c, OP_SUM, square, &o);
    *var = apply(c, OP_DIVIDE, operand_array(apply_scaled(c, OP_SPREAD, squares, miss, part)),
                 operand_float(left), 2);
    if (root) *var = apply(c, OP_SQRT, operand_array(*var), operand_array(NULL), 1);
    *mean = apply_scaled(c, OP_AXPY, rough, miss, part);
}

static void moments_of(chain *c, array *a, dtype wide, uint32_t mask, double left, bool root,
                       array **mean, array **var) {
    if (a->dt == wide && array_ctx.library->calls[OP_MOMENTS] && moments_fit(a, mask))
        moments_in_memory(c, a, mask, left, root, mean, var);
    else
        moments_by_operations(c, a, wide, mask, left, root, mean, var);
}

simt_status array_var(array *a, const reduce_options *o, bool root, array **out) {
    dtype result, wide = DT_F64;
    SIMT_TRY(mean_dtypes(a, o, root ? "std" : "var", &result, &wide));
    uint32_t mask = o->axes_mask & all_axes(a);
    double left = (double)reduced_count(a, mask) - o->ddof;
    if (left < 0) left = 0;
    chain c = {0};
    array *mean = NULL, *var = NULL;
    moments_of(&c, a, wide, mask, left, root, &mean, &var);
    var = converted(&c, var, result);
    if (!o->keepdims && c.status == SIMT_OK) {
        int64_t shape[ARRAY_MAX_NDIM];
        array *flat;
        simt_status status = array_reshape(var, shape, result_shape(a, mask, false, shape), &flat);
        var = keep(&c, status, flat);
    }
    return finish(&c, var, out);
}

simt_status array_moments(array *a, uint32_t mask, array **mean, array **var) {
    dtype wide = dtype_bytes(a->dt) == 2 ? DT_F32 : a->dt;
    array *m = NULL, *v = NULL;
    chain c = {0};
    moments_of(&c, a, wide, mask & all_axes(a), (double)reduced_count(a, mask), false, &m, &v);
    m = converted(&c, m, a->dt);
    v = converted(&c, v, a->dt);
    if (c.status == SIMT_OK) *mean = array_ref(m);
    return finish(&c, v, var);
}

simt_status array_softmax(array *a, int axis, bool logarithm, array **out) {
    if (axis < 0) axis += a->ndim;
    if (a->ndim == 0) axis = 0;
    if (axis < 0 || (axis >= a->ndim && a->ndim))
        return status_fail(
            SIMT_ERR_INDEX,
            "Dimension out of range (expected to be in range of [%d, %d], but got %d)", -a->ndim,
            a->ndim - 1, axis);
    if (a->size == 0) return array_empty_of(a, a->dt, a->shape, a->ndim, out);
    reduce_options o = {.axes_mask = a->ndim ? 1u << axis : 0, .keepdims = true};
    chain c = {0};
    dtype narrow = a->dt;
    if (dtype_bytes(narrow) == 2) a = converted(&c, a, DT_F32); /* rounded once, at the end */
    array *most = reduced(&c, OP_MAX, a, &o);
    array *shifted = apply(&c, OP_SUBTRACT, operand_array(a), operand_array(most), 2);
    array *power = apply(&c, OP_EXP, operand_array(shifted), operand_array(NULL), 1);
    array *sum = reduced(&c, OP_SUM, power, &o);
    array *result;
    if (logarithm) {
        array *log = apply(&c, OP_LOG, operand_array(sum), operand_array(NULL), 1);
        result = apply(&c, OP_SUBTRACT, operand_array(shifted), operand_array(log), 2);
    } else {
        result = apply(&c, OP_DIVIDE, operand_array(power), operand_array(sum), 2);
    }
    return finish(&c, converted(&c, result, narrow), out);
}
