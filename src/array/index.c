/* Indexing by arrays: what happens when the operation is made. The data moves in index_call.c.
 *
 * Nodes: INDEX_GET and TAKE: in = array, int64 indices...; params = {mask of indexed axes, place of the
 * index dimensions in the result, index ndim}. INDEX_PUT: in = destination, value (of the result's shape),
 * indices...; params as before and {accumulate}; written in place.
 */
#include <stdlib.h>
#include <string.h>

#include "array/meta.h"
#include "array/select.h"

#define MOST_INDICES (GRAPH_MAX_INPUTS - 2)

/* ---- nonzero ---- */

static simt_status as_bool(array *a, array **out) {
    operand in = operand_array(a);
    if (a->dt == DT_BOOL) { /* dense, so that it can be walked flat */
        if (!array_is_contiguous(a)) return array_copy(a, out);
        *out = array_ref(a);
        return SIMT_OK;
    }
    return array_elementwise(OP_NOT_EQUAL, (operand[]){in, operand_int(0)}, 2, &(op_options){0},
                             out);
}

/* The windows of a list of arrays; on failure those that are open are closed. */
static simt_status open_all(array **arrays, int n, array_window *w) {
    for (int i = 0; i < n; i++) {
        simt_status status = array_open(arrays[i], ARRAY_FILL, &w[i]);
        if (status == SIMT_OK) continue;
        while (i-- > 0) array_discard(&w[i]);
        return status;
    }
    return SIMT_OK;
}

static simt_status close_all(array_window *w, int n, simt_status status) {
    for (int i = 0; i < n; i++) {
        if (status == SIMT_OK)
            status = array_close(&w[i]);
        else
            array_discard(&w[i]);
    }
    return status;
}

/* Selects by the flags of `truth`, which has its value: *w stays open while the selection is used. */
static simt_status select_flags(const array *truth, array_window *w, selection *found) {
    SIMT_TRY(array_open(truth, ARRAY_READ, w));
    simt_status status =
        selection_make(found, array_ctx.host, (const uint8_t *)w->data, truth->size);
    if (status != SIMT_OK) array_discard(w);
    return status;
}

static simt_status write_positions(selection *found, const array *a, array **out) {
    array_window w[ARRAY_MAX_NDIM];
    int64_t *positions[ARRAY_MAX_NDIM];
    SIMT_TRY(open_all(out, a->ndim, w));
    for (int d = 0; d < a->ndim; d++) positions[d] = (int64_t *)(void *)w[d].data;
    return close_all(w, a->ndim, selection_positions(found, a->shape, a->ndim, positions));
}

simt_status array_nonzero(array *a, array **out) {
    array *truth;
    SIMT_TRY(as_bool(a, &truth));
    selection found = {0};
    array_window flags = {0};
    int made = 0;
    simt_status status = array_evaluate(truth);
    if (status == SIMT_OK) status = select_flags(truth, &flags, &found);
    for (; status == SIMT_OK && made < a->ndim; made++)
        if ((status = array_empty(DT_I64, &found.count, 1, &out[made])) != SIMT_OK) break;
    if (status == SIMT_OK && found.count && a->ndim > 0) status = write_positions(&found, a, out);
    if (status != SIMT_OK)
        while (made-- > 0) array_unref(out[made]);
    selection_free(&found);
    array_discard(&flags);
    array_unref(truth);
    return status;
}

/* a[mask] over dense memory, without a list of positions. */
static bool is_dense_mask(const array *a, array **indices, int n) {
    if (n != 1 || !indices[0] || indices[0]->dt != DT_BOOL) return false;
    const array *mask = indices[0];
    if (mask->ndim == 0 || mask->ndim > a->ndim || !array_is_contiguous(a)) return false;
    return a->size > 0 && array_same_shape(mask, a->shape, mask->ndim);
}

/* The elements of a that `found` names, into `result`. */
static simt_status pack(selection *found, const array *a, size_t block, array *result) {
    array_window from, to;
    SIMT_TRY(array_open(a, ARRAY_READ, &from));
    simt_status status = array_open(result, ARRAY_FILL, &to);
    if (status == SIMT_OK)
        status = close_all(&to, 1, selection_pack(found, from.data, block, to.data));
    array_discard(&from);
    return status;
}

static simt_status masked_get(array *a, array *mask, array **out) {
    array *truth;
    SIMT_TRY(as_bool(mask, &truth));
    selection found = {0};
    array_window flags = {0};
    array *result = NULL;
    simt_status status = array_evaluate(truth);
    if (status == SIMT_OK) status = array_evaluate(a);
    if (status == SIMT_OK) status = select_flags(truth, &flags, &found);
    if (status == SIMT_OK) {
        int64_t shape[ARRAY_MAX_NDIM] = {found.count};
        int ndim = 1;
        for (int d = mask->ndim; d < a->ndim; d++) shape[ndim++] = a->shape[d];
        status = array_empty(a->dt, shape, ndim, &result);
    }
    if (status == SIMT_OK && found.count)
        status = pack(&found, a, (size_t)(a->size / truth->size) * dtype_bytes(a->dt), result);
    selection_free(&found);
    array_discard(&flags);
    array_unref(truth);
    if (status == SIMT_OK)
        *out = result;
    else
        array_unref(result);
    return status;
}

/* ---- the list of indices ---- */

/* One index array for each indexed axis: int64, broadcast to one shape. */
typedef struct index_list {
    array *arrays[ARRAY_MAX_NDIM]; /* by axis; NULL: full slice */
    uint32_t mask;                 /* of indexed axes */
    int count, place; /* place: first dimension of the index dimensions in the result */
    int ndim;         /* of the index shape */
    int64_t shape[ARRAY_MAX_NDIM];
    int result_ndim;
    int64_t result_shape[ARRAY_MAX_NDIM];
} index_list;

static void list_free(index_list *l) {
    for (int d = 0; d < ARRAY_MAX_NDIM; d++) array_unref(l->arrays[d]);
}

static simt_status add_mask(index_list *l, const array *a, array *mask, int *axis) {
    if (*axis + mask->ndim > a->ndim)
        return status_fail(
            SIMT_ERR_INDEX,
            "too many indices for array: array is %d-dimensional, but %d were indexed", a->ndim,
            *axis + mask->ndim);
    for (int d = 0; d < mask->ndim; d++)
        if (mask->shape[d] != a->shape[*axis + d])
            return status_fail(SIMT_ERR_INDEX,
                               "boolean index did not match indexed array along axis %d; size of "
                               "axis is %lld but size of "
                               "corresponding boolean axis is %lld",
                               *axis + d, (long long)a->shape[*axis + d],
                               (long long)mask->shape[d]);
    SIMT_TRY(array_nonzero(mask, &l->arrays[*axis]));
    *axis += mask->ndim;
    return SIMT_OK;
}

static simt_status add_index(index_list *l, const array *a, array *index, int *axis) {
    if (index && array_is_meta(index) && !array_is_meta(a))
        return status_fail(SIMT_ERR_RUNTIME, "indices should be either on cpu or on the same "
                                             "device as the indexed tensor (cpu)");
    if (index && index->dt == DT_BOOL) return add_mask(l, a, index, axis);
    if (*axis >= a->ndim)
        return status_fail(
            SIMT_ERR_INDEX,
            "too many indices for array: array is %d-dimensional, but %d were indexed", a->ndim,
            *axis + 1);
    if (index && !dtype_is_integer(index->dt))
        return status_fail(SIMT_ERR_INDEX,
                           "arrays used as indices must be of integer (or boolean) type");
    if (index && index->dt != DT_I64)
        SIMT_TRY(array_astype(index, DT_I64, &l->arrays[*axis]));
    else if (index)
        l->arrays[*axis] = array_ref(index);
    (*axis)++;
    return SIMT_OK;
}

/* NumPy: neighbouring indexed axes are replaced where they stand, others move to the front. */
static simt_status find_result_shape(index_list *l, const array *a) {
    int first = -1, last = -1;
    for (int d = 0; d < a->ndim; d++) {
        if (!l->arrays[d]) continue;
        l->mask |= 1u << d;
        l->count++;
        if (first < 0) first = d;
        last = d;
    }
    l->place = l->count && last - first + 1 == l->count ? first : 0;
    if (l->ndim + a->ndim - l->count > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_INDEX, "too many dimensions in the result of indexing");
    int rest = 0; /* dimensions that are not indexed, met so far */
    for (int d = 0; d < a->ndim; d++) {
        if (l->mask >> d & 1) continue;
        l->result_shape[rest < l->place ? rest : rest + l->ndim] = a->shape[d];
        rest++;
    }
    memcpy(l->result_shape + l->place, l->shape, sizeof *l->shape * (size_t)l->ndim);
    l->result_ndim = rest + l->ndim;
    return SIMT_OK;
}

static simt_status list_make(index_list *l, array *a, array **indices, int n) {
    memset(l, 0, sizeof *l);
    int axis = 0;
    simt_status status = SIMT_OK;
    for (int i = 0; i < n && status == SIMT_OK; i++) status = add_index(l, a, indices[i], &axis);
    const int64_t *shapes[ARRAY_MAX_NDIM];
    int ndims[ARRAY_MAX_NDIM], count = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (!l->arrays[d]) continue;
        shapes[count] = l->arrays[d]->shape;
        ndims[count++] = l->arrays[d]->ndim;
    }
    if (status == SIMT_OK && count > MOST_INDICES)
        status = status_fail(SIMT_ERR_NOT_IMPLEMENTED, "more than %d index arrays", MOST_INDICES);
    if (status == SIMT_OK &&
        graph_broadcast(FACE_NUMPY, shapes, ndims, count, l->shape, &l->ndim) != SIMT_OK) {
        status_prefix("shape mismatch: indexing arrays could not be broadcast together: ");
        status = status_fail(SIMT_ERR_INDEX, "%s", status_get()->text);
    }
    if (status == SIMT_OK) status = find_result_shape(l, a);
    if (status != SIMT_OK) list_free(l);
    return status;
}

static void list_to_node(queue_request *q, const index_list *l, const array *a, unsigned flags) {
    for (int d = 0; d < a->ndim; d++) {
        if (!l->arrays[d]) continue;
        queue_input(q, l->arrays[d]);
        queue_view_broadcast(&q->node.in[q->node.nin - 1], l->arrays[d], l->shape, l->ndim);
    }
    q->node.params[0] = l->mask | (flags & INDEX_NO_WRAP ? INDEX_STRICT : 0);
    q->node.params[1] = l->place;
    q->node.params[2] = l->ndim;
    q->node.nparams = 3;
}

static int64_t product(const int64_t *shape, int ndim) {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

/* ---- reading ---- */

static simt_status get(array_op op, array *a, array **indices, int n, unsigned flags, array **out) {
    if (is_dense_mask(a, indices, n)) return masked_get(a, indices[0], out);
    array_position position;
    queue_ask_position(&position);
    index_list l;
    SIMT_TRY(list_make(&l, a, indices, n));
    simt_status status;
    int64_t size;
    if (l.count == 0) {
        status = array_copy(a, out);
    } else if ((status = array_check_shape(l.result_shape, l.result_ndim, a->dt, &size)) !=
               SIMT_OK) {
    } else if (product(l.shape, l.ndim) == 0) { /* no index: nothing to check or to copy */
        status = array_empty_of(a, a->dt, l.result_shape, l.result_ndim, out);
    } else {
        queue_request q;
        queue_request_init(&q, op);
        q.node.compute = a->dt;
        q.position = &position;
        queue_input(&q, a);
        list_to_node(&q, &l, a, flags);
        queue_output_new(&q, a->dt, l.result_shape, l.result_ndim);
        status = queue_add(&q, out);
    }
    list_free(&l);
    return status;
}

simt_status array_index_get(array *a, array **indices, int n, unsigned flags, array **out) {
    return get(OP_INDEX_GET, a, indices, n, flags, out);
}

simt_status array_take(array *a, array *indices, int axis, unsigned flags, array **out) {
    array *list[ARRAY_MAX_NDIM] = {0};
    if (axis < 0) axis += a->ndim;
    if (axis < 0 || axis >= a->ndim)
        return status_fail(SIMT_ERR_INDEX, "axis %d is out of bounds for array of dimension %d",
                           axis, a->ndim);
    array *integers = NULL;
    if (indices->dt == DT_BOOL) { /* not a mask here */
        SIMT_TRY(array_astype(indices, DT_I64, &integers));
        indices = integers;
    }
    list[axis] = indices;
    simt_status status = get(OP_TAKE, a, list, axis + 1, flags, out);
    array_unref(integers);
    return status;
}

/* ---- writing ---- */

/* a[mask] = scalar needs no indices: a selection over all elements. */
static bool is_masked_fill(const array *a, array **indices, int n, const operand *value,
                           bool accumulate) {
    if (n != 1 || !indices[0] || indices[0]->dt != DT_BOOL || accumulate) return false;
    if (indices[0]->ndim > a->ndim || indices[0]->ndim == 0) return false;
    for (int d = 0; d < indices[0]->ndim; d++)
        if (indices[0]->shape[d] != a->shape[d]) return false;
    return !value->a || (value->a->ndim == 0 && value->a->dt == a->dt);
}

static simt_status masked_fill(array *a, array *mask, const operand *value) {
    array *wide = NULL, *done = NULL;
    if (mask->ndim < a->ndim) {
        int64_t shape[ARRAY_MAX_NDIM];
        for (int d = 0; d < a->ndim; d++) shape[d] = d < mask->ndim ? mask->shape[d] : 1;
        SIMT_TRY(array_reshape(mask, shape, a->ndim, &wide));
    }
    operand in[3] = {operand_array(wide ? wide : mask), *value, operand_array(a)};
    /* weak or not, the value is converted to the array's type */
    simt_status status = array_elementwise(
        OP_WHERE, in, 3, &(op_options){.out = a, .has_dtype = true, .dt = a->dt}, &done);
    array_unref(done);
    array_unref(wide);
    return status;
}

/* The value as an array of a's type that broadcasts to the result's shape. */
static simt_status value_array(const operand *value, const array *a, const index_list *l,
                               array **out) {
    if (!value->a) return array_full(a->dt, NULL, 0, value->s, out);
    array *v = value->a;
    bool fits = true;
    int extra = v->ndim - l->result_ndim;
    for (int d = 0; fits && d < v->ndim; d++)
        fits = v->shape[d] == 1 || (d >= extra && v->shape[d] == l->result_shape[d - extra]);
    if (!fits) {
        char from[200], to[200];
        return status_fail(SIMT_ERR_VALUE,
                           "shape mismatch: value array of shape %s could not be broadcast to "
                           "indexing result of shape %s",
                           shape_print(v->shape, v->ndim, from, sizeof from),
                           shape_print(l->result_shape, l->result_ndim, to, sizeof to));
    }
    array *flat = NULL;
    if (extra > 0) {
        SIMT_TRY(array_squeeze(v, (1u << extra) - 1, &flat));
        v = flat;
    }
    simt_status status = SIMT_OK;
    if (v->dt != a->dt)
        status = array_astype(v, a->dt, out);
    else
        *out = array_ref(v);
    array_unref(flat);
    return status;
}

static simt_status private_copy(array **a) {
    array *copy;
    SIMT_TRY(array_copy(*a, &copy));
    array_unref(*a);
    *a = copy;
    return SIMT_OK;
}

simt_status array_index_put(array *a, array **indices, int n, const operand *value,
                            unsigned flags) {
    if (is_masked_fill(a, indices, n, value, flags & INDEX_ACCUMULATE))
        return masked_fill(a, indices[0], value);
    array_position position;
    queue_ask_position(&position);
    index_list l;
    SIMT_TRY(list_make(&l, a, indices, n));
    array *v = NULL;
    simt_status status = value_array(value, a, &l, &v);
    if (status == SIMT_OK && array_may_overlap(v, a)) status = private_copy(&v);
    for (int d = 0; d < a->ndim; d++)
        if (status == SIMT_OK && l.arrays[d] && array_may_overlap(l.arrays[d], a))
            status = private_copy(&l.arrays[d]);
    if (status == SIMT_OK && product(l.shape, l.ndim) > 0) {
        queue_request q;
        queue_request_init(&q, OP_INDEX_PUT);
        q.node.compute = a->dt;
        q.position = &position;
        q.out = a;
        queue_input(&q, a);
        queue_input(&q, v);
        queue_view_broadcast(&q.node.in[1], v, l.result_shape, l.result_ndim);
        list_to_node(&q, &l, a, flags);
        q.node.params[q.node.nparams++] = (flags & INDEX_ACCUMULATE) != 0;
        status = queue_add(&q, NULL);
    }
    array_unref(v);
    list_free(&l);
    return status;
}

/* ---- along one axis, element by element ---- */

static simt_status integer_indices(array *indices, array **out) {
    if (!dtype_is_integer(indices->dt))
        return status_fail(SIMT_ERR_INDEX,
                           "arrays used as indices must be of integer (or boolean) type");
    if (indices->dt != DT_I64) return array_astype(indices, DT_I64, out);
    *out = array_ref(indices);
    return SIMT_OK;
}

static simt_status check_along(array *a, array *indices, int *axis) {
    SIMT_TRY(array_same_device((array *[]){a, indices}, 2));
    if (a->ndim != indices->ndim)
        return status_fail(
            SIMT_ERR_VALUE,
            "`indices` and `arr` must have the same number of dimensions (%d and %d)",
            indices->ndim, a->ndim);
    if (*axis < 0) *axis += a->ndim;
    if (*axis < 0 || *axis >= a->ndim)
        return status_fail(SIMT_ERR_INDEX, "axis %d is out of bounds for array of dimension %d",
                           *axis, a->ndim);
    return SIMT_OK;
}

simt_status array_take_along_axis(array *a, array *indices, int axis, unsigned flags, array **out) {
    array_position position;
    queue_ask_position(&position);
    SIMT_TRY(check_along(a, indices, &axis));
    int64_t shape[ARRAY_MAX_NDIM];
    for (int d = 0; d < a->ndim; d++) {
        shape[d] = indices->shape[d];
        if (d == axis || indices->shape[d] <= a->shape[d])
            continue; /* smaller: torch.gather's leading part */
        if (a->shape[d] == 1) continue;
        char x[200], y[200];
        return status_fail(
            SIMT_ERR_INDEX,
            "shape mismatch: indexing arrays could not be broadcast together with shapes %s %s",
            shape_print(indices->shape, a->ndim, x, sizeof x),
            shape_print(a->shape, a->ndim, y, sizeof y));
    }
    if (indices->size == 0) return array_empty_of(a, a->dt, shape, a->ndim, out);
    array *wide;
    SIMT_TRY(integer_indices(indices, &wide));
    queue_request q;
    queue_request_init(&q, OP_TAKE_ALONG);
    q.node.compute = a->dt;
    q.position = &position;
    queue_input(&q, a);
    queue_input(&q, wide);
    q.node.nparams = 2;
    q.node.params[0] = axis;
    q.node.params[1] = !(flags & INDEX_NO_WRAP);
    queue_output_new(&q, a->dt, shape, a->ndim);
    simt_status status = queue_add(&q, out);
    array_unref(wide);
    return status;
}
