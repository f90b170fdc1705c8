/* Whole slices along one axis: index_add_, index_copy_, index_fill_.
 *
 * The source has one slice for each index, of the destination's shape without the axis: nothing is
 * broadcast. A destination without axes counts as one of one element. Words of errors are
 * PyTorch's. */
#include <string.h>

#include "array/meta.h"
#include "grad/work.h"

static const char *const NAMES[] = {"index_add_", "index_copy_", "index_fill_"};

/* Indexes and sources, with the sizes that their messages want. */
typedef struct along {
    tensor *t, *index, *source; /* source: NULL for a number */
    int axis;
    along_kind kind;
} along;

static simt_status check_index(const along *c) {
    dtype dt = c->index->a->dt;
    const char *name = NAMES[c->kind], *type = dtype_torch_name(dt);
    bool one = c->index->a->ndim <= 1;
    if (c->kind == ALONG_ADD) {
        char sizes[200];
        shape_text(c->index->a->shape, c->index->a->ndim, sizes, sizeof sizes);
        if (!one)
            return status_fail(SIMT_ERR_INDEX,
                               "%s(): Index is supposed to be a vector, but got dim: %d with type: "
                               "%s and size: %s",
                               name, c->index->a->ndim, type, sizes);
        if (dt != DT_I64 && dt != DT_I32)
            return status_fail(SIMT_ERR_RUNTIME,
                               "%s(): Expected dtype int32/int64 for index but got: %s", name,
                               type);
    } else if (c->kind == ALONG_COPY) {
        if (!one)
            return status_fail(SIMT_ERR_INDEX, "%s(): Index should have dimension 1 or 0 (got %d)",
                               name, c->index->a->ndim);
        if (dt != DT_I64)
            return status_fail(SIMT_ERR_RUNTIME,
                               "%s(): Expected a long tensor for index, but got %s", name, type);
    } else {
        if (dt != DT_I64)
            return status_fail(SIMT_ERR_INDEX, "%s(): Expected dtype int64 for index.", name);
        if (!one) return status_fail(SIMT_ERR_RUNTIME, "Index has to be a vector/scalar");
    }
    return SIMT_OK;
}

static simt_status check_types(const along *c) {
    dtype mine = c->t->a->dt, theirs = c->source->a->dt;
    if (mine == theirs) return SIMT_OK;
    const char *name = NAMES[c->kind], *a = dtype_torch_name(mine), *b = dtype_torch_name(theirs);
    if (c->kind == ALONG_COPY)
        return status_fail(SIMT_ERR_RUNTIME,
                           "%s(): self and source expected to have the same dtype, but got (self) "
                           "%s and (source) %s",
                           name, a, b);
    return status_fail(SIMT_ERR_RUNTIME,
                       "%s(): self (%s) and source (%s) must have the same scalar type", name, a,
                       b);
}

/* A shape without the axis; without any axis there is none to leave out. */
static int without(const array *a, int axis, int64_t *shape) {
    int n = 0;
    for (int d = 0; d < a->ndim; d++)
        if (d != axis) shape[n++] = a->shape[d];
    return n;
}

static bool same_slices(const along *c, bool whole) {
    int64_t mine[ARRAY_MAX_NDIM], theirs[ARRAY_MAX_NDIM];
    int n = without(c->t->a, whole ? -1 : c->axis, mine);
    int m = without(c->source->a, whole ? -1 : c->axis, theirs);
    return n == m && memcmp(mine, theirs, (size_t)n * sizeof *mine) == 0;
}

static simt_status check_added(const along *c) {
    const array *t = c->t->a, *s = c->source->a;
    if (c->axis && c->axis >= s->ndim)
        return status_fail(SIMT_ERR_RUNTIME,
                           "index_add_(): Indexing dim %d is out of bounds of the source tensor "
                           "with dim %d",
                           c->axis, s->ndim);
    int64_t count = s->ndim ? s->shape[c->axis] : 1;
    if (c->index->a->size != count)
        return status_fail(SIMT_ERR_RUNTIME,
                           "index_add_(): Number of indices (%lld) should be equal to "
                           "source.size(dim): (%lld), for dim: %d",
                           (long long)c->index->a->size, (long long)count, c->axis);
    if (same_slices(c, !t->ndim || !s->ndim)) return SIMT_OK;
    char mine[200], theirs[200];
    shape_text(t->shape, t->ndim, mine, sizeof mine);
    shape_text(s->shape, s->ndim, theirs, sizeof theirs);
    return status_fail(SIMT_ERR_RUNTIME,
                       "source tensor shape must match self tensor shape, excluding the specified "
                       "dimension. Got self.shape = %s source.shape = %s",
                       mine, theirs);
}

static simt_status check_copied(const along *c) {
    const array *t = c->t->a, *s = c->source->a;
    int64_t indices = c->index->a->size;
    if (!s->ndim && indices != 1)
        return status_fail(SIMT_ERR_INDEX,
                           "index_copy_(): When source is scalar, index should have one element "
                           "(got %lld)",
                           (long long)indices);
    if (s->ndim != t->ndim && s->ndim && t->ndim)
        return status_fail(SIMT_ERR_INDEX,
                           "index_copy_(): When source and destination are not scalars, their "
                           "dimensionality must match. Source dimensionality (%d), destination "
                           "dimensionality (%d)",
                           s->ndim, t->ndim);
    if (!same_slices(c, false)) {
        int64_t a[ARRAY_MAX_NDIM], b[ARRAY_MAX_NDIM];
        char mine[200], theirs[200];
        shape_text(a, without(t, c->axis, a), mine, sizeof mine);
        shape_text(b, without(s, c->axis, b), theirs, sizeof theirs);
        return status_fail(SIMT_ERR_RUNTIME,
                           "index_copy_(): Source/destination tensor must have same slice shapes. "
                           "Destination slice shape: %s at dimension %d and source slice shape: %s "
                           "at dimension 0.",
                           mine, c->axis, theirs);
    }
    if (s->ndim && indices != s->shape[c->axis])
        return status_fail(SIMT_ERR_INDEX,
                           "index_copy_(): Number of indices (%lld) should be equal to "
                           "source.size(dim) (%lld)",
                           (long long)indices, (long long)s->shape[c->axis]);
    return SIMT_OK;
}

static simt_status check_range(const along *c) {
    int64_t bad, size = c->t->a->ndim ? c->t->a->shape[c->axis] : 1;
    if (!grad_find_outside(c->index->a, size, c->kind == ALONG_FILL, &bad)) return SIMT_OK;
    if (c->kind == ALONG_ADD) return status_fail(SIMT_ERR_INDEX, "index out of range in self");
    return status_fail(
        SIMT_ERR_INDEX, "%sindex %lld is out of bounds for dimension %d with size %lld",
        c->kind == ALONG_COPY ? "index_copy_(): " : "", (long long)bad, c->axis, (long long)size);
}

static simt_status check(const along *c) {
    SIMT_TRY(check_index(c));
    SIMT_TRY(
        array_same_device((array *[]){c->t->a, c->index->a, c->source ? c->source->a : NULL}, 3));
    if (c->source && c->kind != ALONG_FILL) SIMT_TRY(check_types(c));
    if (c->kind == ALONG_ADD) SIMT_TRY(check_added(c));
    if (c->kind == ALONG_COPY) SIMT_TRY(check_copied(c));
    if (c->source && c->kind == ALONG_FILL && c->source->a->ndim)
        return status_fail(SIMT_ERR_RUNTIME,
                           "index_fill_ only supports a 0-dimensional value tensor, but got tensor "
                           "with %d dimension(s).",
                           c->source->a->ndim);
    return check_range(c);
}

/* As one axis of one element, where there is none. */
static tensor *at_least_one_axis(work *w, tensor *t) {
    const int64_t one[1] = {1};
    return t->a->ndim ? t : w_reshape(w, t, one, 1);
}

simt_status grad_index_along(tensor *t, int axis, tensor *index, const tensor_operand *source,
                             along_kind kind) {
    along c = {t, index, source->t, axis, kind};
    SIMT_TRY(check(&c));
    SIMT_TRY(grad_check_inplace(t));
    work w = {0};
    tensor *into = at_least_one_axis(&w, t);
    tensor *at = into ? at_least_one_axis(&w, index) : NULL;
    tensor_operand value = *source;
    if (at && value.t && kind != ALONG_FILL) value.t = at_least_one_axis(&w, value.t);
    if (w.status == SIMT_OK) {
        array *indices[ARRAY_MAX_NDIM] = {NULL};
        indices[axis] = at->a;
        unsigned flags =
            (kind == ALONG_ADD ? INDEX_ACCUMULATE : 0) | (kind == ALONG_FILL ? 0 : INDEX_NO_WRAP);
        w.status = grad_index_put(into, indices, axis + 1, &value, flags);
    }
    return work_end(&w);
}
