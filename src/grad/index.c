/* Indexing by arrays, gather and scatter with their gradients.
 *
 * Index arrays are kept as tensors without history. Where the indices are in memory already, range
 * errors come at once, with PyTorch's words; otherwise at evaluation. */
#include <string.h>

#include "array/meta.h"
#include "grad/work.h"

static bool outside(int64_t v, int64_t n, bool negative) {
    return v >= n || v < (negative ? -n : 0);
}

bool grad_find_outside(array *a, int64_t n, bool negative, int64_t *value) {
    if (!a->store->data || a->store->slot >= 0 || a->size == 0 || !array_is_contiguous(a))
        return false;
    array_window w;
    if (array_open(a, ARRAY_READ, &w) != SIMT_OK) return false;
    bool found = false;
    if (a->dt == DT_I64) {
        const int64_t *p = (const int64_t *)(const void *)w.data;
        for (int64_t i = 0; i < a->size && !found; i++)
            if ((found = outside(p[i], n, negative))) *value = p[i];
    } else if (a->dt == DT_I32) {
        const int32_t *p = (const int32_t *)(const void *)w.data;
        for (int64_t i = 0; i < a->size && !found; i++)
            if ((found = outside(p[i], n, negative))) *value = p[i];
    }
    array_discard(&w);
    return found;
}

static tensor *zeros(work *w, const array *of, dtype dt, const int64_t *shape, int ndim) {
    if (w->status != SIMT_OK) return NULL;
    array *a = NULL;
    simt_status s = array_full_of(of, dt, shape, ndim, 0, &a);
    tensor *t = s == SIMT_OK ? tensor_new(a) : NULL;
    return work_own(w, s == SIMT_OK && !t ? SIMT_ERR_MEMORY : s, t);
}

/* Saved slots hold index arrays; params: 1 where an axis has one. */
static simt_status save_indices(grad_node *n, array **indices, int count) {
    for (int i = 0; n && i < count; i++) {
        n->params[i] = indices[i] != NULL;
        if (!indices[i]) continue;
        tensor *t = tensor_new(array_ref(indices[i]));
        if (!t) return SIMT_ERR_MEMORY;
        grad_save(n, i, t);
        tensor_unref(t);
    }
    return SIMT_OK;
}

static int load_indices(work *w, grad_node *n, array **indices) {
    for (int i = 0; i < n->nparams; i++) {
        tensor *t = n->params[i] ? w_saved(w, n, i) : NULL;
        indices[i] = t ? t->a : NULL;
    }
    return n->nparams;
}

static simt_status rule_index_get(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    array *indices[2 * ARRAY_MAX_NDIM];
    int count = load_indices(&w, n, indices);
    tensor *r = zeros(&w, out[0]->a, n->edges[0].dt, n->edges[0].shape, n->edges[0].ndim);
    if (w.status == SIMT_OK) {
        tensor_operand value = {out[0]};
        w.status = grad_index_put(r, indices, count, &value, INDEX_ACCUMULATE);
    }
    in[0] = w_take(&w, r);
    return work_end(&w);
}

simt_status grad_index_get(tensor *t, array **indices, int n, tensor **out) {
    grad_node *node = NULL;
    if (dtype_is_float(t->a->dt))
        SIMT_TRY(grad_node_new("IndexBackward0", rule_index_get, &t, 1, n, n, &node));
    array *a = NULL;
    simt_status s = save_indices(node, indices, n);
    if (s == SIMT_OK) s = array_index_get(t->a, indices, n, 0, &a);
    if (s == SIMT_OK) return grad_finish(a, node, out);
    grad_node_unref(node);
    return s;
}

/* edges: the tensor written, the value; options[0]: accumulate */
static simt_status rule_index_put(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    array *indices[2 * ARRAY_MAX_NDIM];
    int count = load_indices(&w, n, indices);
    if (w.status == SIMT_OK && grad_wants(n, 0)) {
        tensor *copy = NULL;
        simt_status s = grad_clone(out[0], &copy);
        copy = work_own(&w, s, copy);
        tensor_operand zero = {NULL, {.kind = 'I'}};
        if (w.status == SIMT_OK && n->options[0] == 0)
            w.status = grad_index_put(copy, indices, count, &zero, 0);
        in[0] = w_take(&w, copy);
    }
    if (w.status == SIMT_OK && n->nin > 1 && grad_wants(n, 1))
        w.status = grad_index_get(out[0], indices, count, &in[1]);
    return work_end(&w);
}

simt_status grad_index_put(tensor *t, array **indices, int n, const tensor_operand *value,
                           unsigned flags) {
    SIMT_TRY(grad_check_inplace(t));
    tensor *inputs[2] = {t, value->t};
    grad_node *node = NULL;
    if (dtype_is_float(t->a->dt))
        SIMT_TRY(grad_node_new("IndexPutBackward0", rule_index_put, inputs, value->t ? 2 : 1, n, n,
                               &node));
    if (node) node->options[0] = flags & INDEX_ACCUMULATE;
    operand v = value->t ? (operand){.a = value->t->a} : (operand){.s = value->s, .weak = true};
    simt_status s = save_indices(node, indices, n);
    if (s == SIMT_OK) s = array_index_put(t->a, indices, n, &v, flags);
    if (s == SIMT_OK) return grad_attach_inplace(t, node);
    grad_node_unref(node);
    return s;
}

/* ---- along one axis ---- */

/* params: axis; options[0]: an index whose rows get no gradient (embedding), or -1 */
static simt_status rule_take(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    int axis = (int)n->params[0];
    tensor *index = w_saved(&w, n, 0), *g = out[0];
    if (n->options[0] >= 0 && w.status == SIMT_OK) {
        tensor_operand test[2] = {{index}, {NULL, {.kind = 'I', .i = (int64_t)n->options[0]}}};
        tensor *padding = NULL;
        simt_status s = grad_elementwise(OP_NOT_EQUAL, test, 2, NULL, &padding);
        padding = work_own(&w, s, padding);
        padding = w_unsqueeze(&w, padding, index->a->ndim);
        g = w_where(&w, padding, g, NULL);
    }
    tensor *r = zeros(&w, out[0]->a, n->edges[0].dt, n->edges[0].shape, n->edges[0].ndim);
    array *indices[ARRAY_MAX_NDIM] = {NULL};
    if (w.status == SIMT_OK) {
        indices[axis] = index->a;
        tensor_operand value = {g};
        w.status = grad_index_put(r, indices, axis + 1, &value, INDEX_ACCUMULATE);
    }
    in[0] = w_take(&w, r);
    return work_end(&w);
}

simt_status grad_take(tensor *t, tensor *indices, int axis, const char *name, tensor **out) {
    grad_node *n = NULL;
    SIMT_TRY(array_same_device((array *[]){t->a, indices->a}, 2));
    if (dtype_is_float(t->a->dt)) SIMT_TRY(grad_node_new(name, rule_take, &t, 1, 1, 1, &n));
    if (n) {
        n->params[0] = axis;
        n->options[0] = -1;
        grad_save(n, 0, indices);
    }
    array *a;
    simt_status s = array_take(t->a, indices->a, axis, INDEX_NO_WRAP, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}

simt_status grad_embedding(tensor *weight, tensor *indices, int64_t padding, tensor **out) {
    int64_t bad;
    if (indices->a->dt != DT_I64 && indices->a->dt != DT_I32)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Expected tensor for argument #1 'indices' to have one of the following "
                           "scalar types: Long, "
                           "Int; but got %s instead (while checking arguments for embedding)",
                           tensor_type_name(indices));
    if (grad_find_outside(indices->a, weight->a->shape[0], false, &bad))
        return status_fail(SIMT_ERR_INDEX, "index out of range in self");
    SIMT_TRY(grad_take(weight, indices, 0, "EmbeddingBackward0", out));
    if ((*out)->fn) (*out)->fn->options[0] = (double)padding;
    return SIMT_OK;
}

/* The axis's own index and the grid of the others, so that index_put scatters along it. */
static void scatter_indices(work *w, tensor *index, int axis, array **indices) {
    int ndim = index->a->ndim;
    for (int d = 0; d < ndim && w->status == SIMT_OK; d++) {
        if (d == axis) {
            indices[d] = index->a;
            continue;
        }
        tensor *t = w_count_along(w, index->a, DT_I64, index->a->shape[d], d, ndim);
        if (t) indices[d] = t->a;
    }
}

static simt_status check_index(const tensor *t, int axis, const tensor *index, const char *what) {
    if (index->a->dt != DT_I64 && index->a->dt != DT_I32)
        return status_fail(SIMT_ERR_RUNTIME, "%s(): Expected dtype int32/int64 for index", what);
    if (index->a->ndim != t->a->ndim)
        return status_fail(SIMT_ERR_RUNTIME,
                           "Index tensor must have the same number of dimensions as %s tensor",
                           strcmp(what, "gather") == 0 ? "input" : "self");
    for (int d = 0; d < t->a->ndim; d++)
        if (d != axis && index->a->shape[d] > t->a->shape[d]) {
            char mine[200], theirs[200];
            shape_text(index->a->shape, index->a->ndim, theirs, sizeof theirs);
            shape_text(t->a->shape, t->a->ndim, mine, sizeof mine);
            return status_fail(
                SIMT_ERR_RUNTIME,
                "Size does not match at dimension %d expected index %s to be no larger "
                "than self %s apart from dimension %d",
                d, theirs, mine, axis);
        }
    int64_t bad;
    int64_t size = t->a->ndim ? t->a->shape[axis] : 1;
    if (grad_find_outside(index->a, size, false, &bad))
        return status_fail(SIMT_ERR_RUNTIME,
                           "index %lld is out of bounds for dimension %d with size %lld",
                           (long long)bad, axis, (long long)size);
    return SIMT_OK;
}

/* The values that an index takes: src must have them all. */
static simt_status check_source(const tensor *index, int axis, const tensor *src) {
    const array *i = index->a, *s = src->a;
    bool fits = i->ndim == s->ndim;
    for (int d = 0; fits && d < i->ndim; d++) fits = i->shape[d] <= s->shape[d];
    if (fits || i->size == 0) return SIMT_OK;
    char theirs[200], mine[200];
    shape_text(i->shape, i->ndim, mine, sizeof mine);
    shape_text(s->shape, s->ndim, theirs, sizeof theirs);
    return status_fail(SIMT_ERR_RUNTIME,
                       "Expected index %s to be no larger than self apart from dimension %d and to "
                       "be no larger size than src %s",
                       mine, axis, theirs);
}

static simt_status rule_gather(grad_node *n, tensor *const *out, tensor **in) {
    work w = {0};
    tensor *index = w_saved(&w, n, 0);
    tensor *r = zeros(&w, out[0]->a, n->edges[0].dt, n->edges[0].shape, n->edges[0].ndim);
    if (w.status == SIMT_OK) {
        tensor_operand src = {out[0]};
        w.status = grad_scatter(r, (int)n->params[0], index, &src, true);
    }
    in[0] = w_take(&w, r);
    return work_end(&w);
}

/* PyTorch takes a 0-d operand as one of one element, and the other way round. */
static simt_status as_rank(tensor *t, int ndim, tensor **out) {
    const int64_t one[1] = {1};
    if (ndim <= 1 && t->a->ndim <= 1 && t->a->ndim != ndim && t->a->size == 1)
        return grad_reshape(t, one, ndim, false, out);
    *out = tensor_ref(t);
    return SIMT_OK;
}

static simt_status gather_ranked(tensor *t, int axis, tensor *index, tensor **out);

simt_status grad_gather(tensor *t, int axis, tensor *index, tensor **out) {
    tensor *from = NULL, *at = NULL, *made = NULL;
    int ndim = index->a->ndim > t->a->ndim ? index->a->ndim : t->a->ndim;
    simt_status s = as_rank(t, ndim, &from);
    if (s == SIMT_OK) s = as_rank(index, ndim, &at);
    if (s == SIMT_OK) s = gather_ranked(from, axis, at, &made);
    if (s == SIMT_OK) s = as_rank(made, index->a->ndim, out);
    tensor_unref(from);
    tensor_unref(at);
    tensor_unref(made);
    return s;
}

static simt_status gather_ranked(tensor *t, int axis, tensor *index, tensor **out) {
    SIMT_TRY(check_index(t, axis, index, "gather"));
    grad_node *n = NULL;
    array *a = NULL;
    simt_status s = SIMT_OK;
    if (dtype_is_float(t->a->dt))
        s = grad_node_new("GatherBackward0", rule_gather, &t, 1, 1, 1, &n);
    if (n) {
        n->params[0] = axis;
        grad_save(n, 0, index);
    }
    if (s == SIMT_OK)
        s = t->a->ndim ? array_take_along_axis(t->a, index->a, axis, INDEX_NO_WRAP, &a)
                       : array_index_get(t->a, NULL, 0, INDEX_NO_WRAP, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}

static simt_status scatter_ranked(tensor *t, int axis, tensor *index, const tensor_operand *src,
                                  bool add);

simt_status grad_scatter(tensor *t, int axis, tensor *index, const tensor_operand *src, bool add) {
    tensor *at = NULL, *from = NULL;
    simt_status s = as_rank(index, t->a->ndim, &at);
    if (s == SIMT_OK && src->t) s = as_rank(src->t, t->a->ndim, &from);
    tensor_operand value = *src;
    value.t = from;
    if (s == SIMT_OK) s = scatter_ranked(t, axis, at, &value, add);
    tensor_unref(at);
    tensor_unref(from);
    return s;
}

static simt_status scatter_ranked(tensor *t, int axis, tensor *index, const tensor_operand *src,
                                  bool add) {
    SIMT_TRY(array_same_device((array *[]){t->a, index->a, src->t ? src->t->a : NULL}, 3));
    SIMT_TRY(check_index(t, axis, index, add ? "scatter_add" : "scatter"));
    if (src->t && src->t->a->dt != t->a->dt)
        return status_fail(SIMT_ERR_RUNTIME,
                           "scatter(): Expected self.dtype to be equal to src.dtype");
    if (src->t) SIMT_TRY(check_source(index, axis, src->t));
    if (t->a->ndim == 0) {
        tensor_operand sum[2] = {{t}, *src};
        return add ? grad_elementwise_inplace(OP_ADD, sum, 2, NULL) : grad_copy_into(t, src);
    }
    work w = {0};
    array *indices[ARRAY_MAX_NDIM] = {NULL};
    scatter_indices(&w, index, axis, indices);
    tensor_operand value = *src;
    if (src->t && w.status == SIMT_OK) { /* the part of src that the index covers */
        array_slice items[ARRAY_MAX_NDIM];
        for (int d = 0; d < index->a->ndim; d++) {
            items[d].kind = SLICE_RANGE;
            items[d].start = 0;
            items[d].stop = index->a->shape[d];
            items[d].step = 1;
        }
        tensor *part = NULL;
        simt_status s = grad_slice(src->t, items, index->a->ndim, "SliceBackward0", &part);
        value.t = work_own(&w, s, part);
    }
    if (w.status == SIMT_OK)
        w.status = grad_index_put(t, indices, t->a->ndim, &value,
                                  INDEX_NO_WRAP | (add ? INDEX_ACCUMULATE : 0));
    return work_end(&w);
}
