/* Views on the tape; joining; summing back to a broadcast operand's shape. */
#include <string.h>

#include "array/meta.h"
#include "grad/work.h"

static simt_status finish_view(simt_status s, tensor *of, array *a, grad_node *n, tensor **out) {
    if (s == SIMT_OK) return grad_finish_view(of, a, n, out);
    grad_node_unref(n);
    return s;
}

static simt_status rule_reshape(grad_node *n, tensor *const *out, tensor **in) {
    return grad_reshape(out[0], n->edges[0].shape, n->edges[0].ndim, false, &in[0]);
}

/* The -1 resolved, sizes compared; PyTorch's errors. */
static simt_status resolve_shape(const array *a, const int64_t *shape, int ndim, int64_t *to) {
    int64_t known = 1;
    int unknown = -1;
    char text[300];
    shape_text(shape, ndim, text, sizeof text);
    for (int i = 0; i < ndim; i++) {
        to[i] = shape[i];
        if (shape[i] == -1) {
            if (unknown >= 0)
                return status_fail(SIMT_ERR_RUNTIME, "only one dimension can be inferred");
            unknown = i;
        } else if (shape[i] < 0) {
            return status_fail(SIMT_ERR_RUNTIME,
                               "invalid shape dimension %lld at index %d of shape %s",
                               (long long)shape[i], i, text);
        } else if (__builtin_mul_overflow(known, shape[i], &known)) {
            return status_fail(SIMT_ERR_RUNTIME, "shape '%s' is invalid for input of size %lld",
                               text, (long long)a->size);
        }
    }
    if (unknown >= 0 && known == 0 && a->size == 0)
        return status_fail(SIMT_ERR_RUNTIME,
                           "cannot reshape tensor of 0 elements into shape %s because the "
                           "unspecified dimension size "
                           "-1 can be any value and is ambiguous",
                           text);
    if (unknown >= 0 && known > 0 && a->size % known == 0) {
        to[unknown] = a->size / known;
        return SIMT_OK;
    }
    if (unknown < 0 && known == a->size) return SIMT_OK;
    return status_fail(SIMT_ERR_RUNTIME, "shape '%s' is invalid for input of size %lld", text,
                       (long long)a->size);
}

simt_status grad_reshape(tensor *t, const int64_t *shape, int ndim, bool must_view, tensor **out) {
    int64_t full[ARRAY_MAX_NDIM];
    if (ndim > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_RUNTIME, "tensors have at most %d dimensions, not %d",
                           ARRAY_MAX_NDIM, ndim);
    SIMT_TRY(resolve_shape(t->a, shape, ndim, full));
    if (!must_view && t->a->ndim == ndim &&
        memcmp(t->a->shape, full, sizeof *full * (size_t)ndim) == 0 && !t->requires_grad) {
        *out = tensor_ref(t);
        return SIMT_OK;
    }
    array *a = NULL;
    SIMT_TRY(array_try_reshape_view(t->a, full, ndim, &a));
    if (!a && must_view)
        return status_fail(SIMT_ERR_RUNTIME,
                           "view size is not compatible with input tensor's size and stride (at "
                           "least one dimension "
                           "spans across two contiguous subspaces). Use .reshape(...) instead.");
    bool view = a != NULL;
    grad_node *n;
    simt_status s = grad_node_new(view ? "ViewBackward0" : "UnsafeViewBackward0", rule_reshape, &t,
                                  1, 0, 0, &n);
    if (s == SIMT_OK && !a) s = array_reshape(t->a, full, ndim, &a);
    if (s != SIMT_OK) {
        array_unref(a);
        grad_node_unref(n);
        return s;
    }
    return view ? grad_finish_view(t, a, n, out) : grad_finish(a, n, out);
}

static simt_status rule_permute(grad_node *n, tensor *const *out, tensor **in) {
    int axes[ARRAY_MAX_NDIM];
    for (int i = 0; i < n->nparams; i++) axes[n->params[i]] = i;
    return grad_permute(out[0], axes, n->name, &in[0]);
}

simt_status grad_permute(tensor *t, const int *axes, const char *name, tensor **out) {
    grad_node *n;
    SIMT_TRY(grad_node_new(name, rule_permute, &t, 1, 0, t->a->ndim, &n));
    for (int i = 0; n && i < t->a->ndim; i++) n->params[i] = axes[i];
    array *a;
    simt_status s = array_transpose(t->a, axes, &a);
    return finish_view(s, t, a, n, out);
}

static simt_status rule_expand(grad_node *n, tensor *const *out, tensor **in) {
    in[0] = tensor_ref(out[0]); /* the engine sums it to the input's shape */
    return SIMT_OK;
}

simt_status grad_expand(tensor *t, const int64_t *shape, int ndim, tensor **out) {
    char wanted[300], mine[300];
    shape_text(shape, ndim, wanted, sizeof wanted);
    shape_text(t->a->shape, t->a->ndim, mine, sizeof mine);
    if (ndim < t->a->ndim)
        return status_fail(SIMT_ERR_RUNTIME,
                           "expand(%s{%s}, size=%s): the number of sizes provided (%d) must be "
                           "greater or equal to the "
                           "number of dimensions in the tensor (%d)",
                           tensor_type_name(t), mine, wanted, ndim, t->a->ndim);
    int64_t full[ARRAY_MAX_NDIM];
    int lead = ndim - t->a->ndim;
    for (int i = 0; i < ndim; i++) {
        full[i] = shape[i];
        int64_t have = i < lead ? 1 : t->a->shape[i - lead];
        if (i < lead && shape[i] == -1)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
                "dimension %d",
                i);
        if (shape[i] == -1)
            full[i] = have;
        else if (shape[i] != have && have != 1)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
                "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                (long long)shape[i], (long long)have, i, wanted, mine);
    }
    grad_node *n;
    SIMT_TRY(grad_node_new("ExpandBackward0", rule_expand, &t, 1, 0, 0, &n));
    array *a;
    simt_status s = array_broadcast_to(t->a, full, ndim, &a);
    return finish_view(s, t, a, n, out);
}

simt_status grad_squeeze(tensor *t, uint32_t mask, tensor **out) {
    uint32_t ones = 0;
    for (int i = 0; i < t->a->ndim; i++)
        if (t->a->shape[i] == 1) ones |= 1u << i;
    grad_node *n;
    SIMT_TRY(grad_node_new(mask == (1u << t->a->ndim) - 1 ? "SqueezeBackward0" : "SqueezeBackward1",
                           rule_reshape, &t, 1, 0, 0, &n));
    array *a;
    simt_status s = array_squeeze(t->a, mask & ones, &a);
    return finish_view(s, t, a, n, out);
}

simt_status grad_unsqueeze(tensor *t, int axis, tensor **out) {
    grad_node *n;
    SIMT_TRY(grad_node_new("UnsqueezeBackward0", rule_reshape, &t, 1, 0, 0, &n));
    array *a;
    simt_status s = array_expand_dims(t->a, axis, &a);
    return finish_view(s, t, a, n, out);
}

/* params: four numbers per item */
static simt_status rule_slice(grad_node *n, tensor *const *out, tensor **in) {
    const grad_edge *e = &n->edges[0];
    array_slice items[2 * ARRAY_MAX_NDIM];
    int count = n->nparams / 4;
    for (int i = 0; i < count; i++) {
        const int64_t *p = n->params + 4 * i;
        items[i].kind = (int)p[0];
        items[i].start = p[1];
        items[i].stop = p[2];
        items[i].step = p[3];
    }
    array *whole;
    SIMT_TRY(array_full_of(out[0]->a, e->dt, e->shape, e->ndim, 0, &whole));
    in[0] = tensor_new(whole);
    if (!in[0]) return SIMT_ERR_MEMORY;
    tensor *window;
    SIMT_TRY(grad_slice(in[0], items, count, "SliceBackward0", &window));
    tensor_operand value = {out[0]};
    simt_status s = grad_copy_into(window, &value);
    tensor_unref(window);
    return s;
}

simt_status grad_slice(tensor *t, const array_slice *items, int n, const char *name, tensor **out) {
    grad_node *node;
    SIMT_TRY(grad_node_new(name, rule_slice, &t, 1, 0, 4 * n, &node));
    for (int i = 0; node && i < n; i++) {
        int64_t *p = node->params + 4 * i;
        p[0] = (int64_t)items[i].kind;
        p[1] = items[i].start;
        p[2] = items[i].stop;
        p[3] = items[i].step;
    }
    array *a;
    simt_status s = array_slice_view(t->a, items, n, &a);
    return finish_view(s, t, a, node, out);
}

simt_status grad_as_strided(tensor *t, const int64_t *shape, const int64_t *strides, int ndim,
                            int64_t offset, tensor **out) {
    if (t->requires_grad && grad_enabled)
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED,
                           "as_strided of a tensor that requires grad: not in simt yet");
    int64_t bytes = (int64_t)dtype_bytes(t->a->dt), steps[ARRAY_MAX_NDIM], last = offset, end = 0;
    bool outside = offset < 0, empty = false;
    for (int i = 0; i < ndim; i++) {
        int64_t reach;
        if (strides[i] < 0)
            return status_fail(SIMT_ERR_RUNTIME, "as_strided: Negative strides are not supported");
        empty |= shape[i] == 0;
        outside |= __builtin_mul_overflow(strides[i], bytes, &steps[i]);
        outside |= shape[i] > 0 && (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
                                    __builtin_add_overflow(last, reach, &last));
    }
    outside |=
        __builtin_mul_overflow(last, bytes, &end) || __builtin_add_overflow(end, bytes, &end);
    if (outside || (!empty && end > (int64_t)t->a->store->bytes))
        return status_fail(SIMT_ERR_RUNTIME,
                           "as_strided: the window is out of bounds for storage of size %lld",
                           (long long)t->a->store->bytes);
    array *a;
    SIMT_TRY(array_view_strided(t->a, t->a->dt, shape, steps, ndim, offset * bytes, &a));
    return grad_finish_view(t, a, NULL, out);
}

/* ---- joining ---- */

/* params: axis, then where each input starts along it */
static simt_status rule_concatenate(grad_node *n, tensor *const *out, tensor **in) {
    int axis = (int)n->params[0];
    for (int i = 0; i < n->nin; i++) {
        if (!grad_wants(n, i)) continue;
        array_slice items[ARRAY_MAX_NDIM];
        for (int d = 0; d <= axis; d++) {
            items[d].kind = SLICE_RANGE;
            items[d].start = 0;
            items[d].stop = out[0]->a->shape[d];
            items[d].step = 1;
        }
        items[axis].start = n->params[1 + i];
        items[axis].stop = n->params[2 + i];
        SIMT_TRY(grad_slice(out[0], items, axis + 1, "SliceBackward0", &in[i]));
    }
    return SIMT_OK;
}

static simt_status rule_stack(grad_node *n, tensor *const *out, tensor **in) {
    int axis = (int)n->params[0];
    for (int i = 0; i < n->nin; i++) {
        if (!grad_wants(n, i)) continue;
        array_slice items[ARRAY_MAX_NDIM];
        for (int d = 0; d <= axis; d++) {
            items[d].kind = d == axis ? SLICE_INDEX : SLICE_RANGE;
            items[d].start = d == axis ? i : 0;
            items[d].stop = out[0]->a->shape[d];
            items[d].step = 1;
        }
        SIMT_TRY(grad_slice(out[0], items, axis + 1, "SelectBackward0", &in[i]));
    }
    return SIMT_OK;
}

#define FEW 16
static simt_status join(tensor **ts, int n, int axis, bool stack, tensor **out) {
    array *few[FEW], **arrays = few;
    arena mem;
    arena_init(&mem);
    if (n > FEW && !(arrays = ARENA_ARRAY(&mem, array *, n)))
        return status_fail(SIMT_ERR_MEMORY, "no memory to join %d tensors", n);
    for (int i = 0; i < n; i++) arrays[i] = ts[i]->a;
    grad_node *node;
    simt_status s = grad_node_new(stack ? "StackBackward0" : "CatBackward0",
                                  stack ? rule_stack : rule_concatenate, ts, n, 0, n + 2, &node);
    array *a = NULL;
    if (s == SIMT_OK)
        s = stack ? array_stack(arrays, n, axis, FACE_TORCH, &a)
                  : array_concatenate(arrays, n, axis, FACE_TORCH, &a);
    if (s == SIMT_OK && node) {
        node->params[0] = axis;
        for (int i = 0; i < n && !stack; i++)
            node->params[2 + i] = node->params[1 + i] + arrays[i]->shape[axis];
    }
    arena_deinit(&mem);
    if (s == SIMT_OK) return grad_finish(a, node, out);
    grad_node_unref(node);
    return s;
}

simt_status grad_concatenate(tensor **ts, int n, int axis, tensor **out) {
    for (int i = 1; i < n; i++) {
        const array *first = ts[0]->a, *a = ts[i]->a;
        if (a->ndim != first->ndim)
            return status_fail(SIMT_ERR_RUNTIME,
                               "Tensors must have same number of dimensions: got %d and %d",
                               first->ndim, a->ndim);
        for (int d = 0; d < a->ndim; d++)
            if (d != axis && a->shape[d] != first->shape[d])
                return status_fail(SIMT_ERR_RUNTIME,
                                   "Sizes of tensors must match except in dimension %d. Expected "
                                   "size %lld but got "
                                   "size %lld for tensor number %d in the list.",
                                   axis, (long long)first->shape[d], (long long)a->shape[d], i);
    }
    return join(ts, n, axis, false, out);
}

simt_status grad_stack(tensor **ts, int n, int axis, tensor **out) {
    for (int i = 1; i < n; i++) {
        const array *first = ts[0]->a, *a = ts[i]->a;
        if (a->ndim == first->ndim &&
            memcmp(a->shape, first->shape, sizeof(int64_t) * (size_t)a->ndim) == 0)
            continue;
        char one[300], two[300];
        shape_text(first->shape, first->ndim, one, sizeof one);
        shape_text(a->shape, a->ndim, two, sizeof two);
        return status_fail(
            SIMT_ERR_RUNTIME,
            "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
            one, two, i);
    }
    return join(ts, n, axis, true, out);
}

/* ---- back to a broadcast operand's shape ---- */

simt_status grad_sum_to(tensor *t, const int64_t *shape, int ndim, tensor **out) {
    work w = {0};
    int lead = t->a->ndim - ndim;
    if (lead < 0 || t->a->size == 0 ||
        ndim == 0) { /* fewer dimensions or elements: only the form differs */
        tensor *r = t;
        if (lead > 0)
            r = w_sum(&w, t, (1u << t->a->ndim) - 1, false);
        else if (lead < 0)
            r = w_reshape(&w, t, shape, ndim);
        else if (ndim) {
            uint32_t mask = 0;
            for (int i = 0; i < ndim; i++)
                if (shape[i] != t->a->shape[i]) mask |= 1u << i;
            r = w_sum(&w, t, mask, true);
        }
        *out = w_take(&w, r);
        return work_end(&w);
    }
    uint32_t mask = 0;
    for (int i = 0; i < t->a->ndim; i++)
        if (i < lead || (shape[i - lead] == 1 && t->a->shape[i] != 1)) mask |= 1u << i;
    tensor *r = mask ? w_sum(&w, t, mask, true) : t;
    if (lead) r = w_reshape(&w, r, shape, ndim);
    /* a smaller tensor stands for equal elements (a sum's gradient): spread it */
    bool same =
        w.status != SIMT_OK || memcmp(r->a->shape, shape, sizeof *shape * (size_t)ndim) == 0;
    if (!same) r = w_expand(&w, r, shape, ndim);
    *out = w_take(&w, r);
    return work_end(&w);
}
