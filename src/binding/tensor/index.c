/* Indexing of tensors: x[key] and x[key] = value, gather and scatter, masks. */
#include <string.h>

#include "array/meta.h"
#include "binding/tensor/tensor.h"

/* ---- x[key] ---- */

static const char *basic_name(const binding_key *k) {
    bool slice = false, newaxis = false;
    for (int i = 0; i < k->nitems; i++) {
        if (k->items[i].kind == SLICE_INDEX) return "SelectBackward0";
        newaxis |= k->items[i].kind == SLICE_NEWAXIS;
        slice |= k->items[i].kind == SLICE_RANGE;
    }
    return newaxis ? "UnsqueezeBackward0" : slice ? "SliceBackward0" : "AliasBackward0";
}

/* The basic part: a view on the tape. */
static simt_status key_view(tensor *t, const binding_key *k, tensor **out) {
    tensor *view;
    SIMT_TRY(grad_slice(t, k->items, k->nitems, basic_name(k), &view));
    if (!k->front) {
        *out = view;
        return SIMT_OK;
    }
    int axes[ARRAY_MAX_NDIM], n = 0;
    for (int d = 0; d < k->nindices; d++)
        if (k->index[d]) axes[n++] = d;
    for (int d = 0; d < view->a->ndim; d++)
        if (d >= k->nindices || !k->index[d]) axes[n++] = d;
    simt_status s = grad_permute(view, axes, "PermuteBackward0", out);
    tensor_unref(view);
    return s;
}

/* Integer indices that are in memory are checked at once. */
static simt_status check_indices(const tensor *view, array **index, int n) {
    int64_t bad;
    for (int i = 0; i < n; i++)
        if (index[i] && grad_find_outside(index[i], view->a->shape[i], true, &bad))
            return status_fail(SIMT_ERR_INDEX,
                               "index %lld is out of bounds for dimension %d with size %lld",
                               (long long)bad, i, (long long)view->a->shape[i]);
    return SIMT_OK;
}

static bool parse_key(tensor *t, PyObject *key, binding_key *k) {
    if (t->a->ndim == 0 && PyLong_CheckExact(key)) {
        PyErr_SetString(PyExc_IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()` in "
                                          "Python or `tensor.item<T>()` in C++ "
                                          "to convert a 0-dim tensor to a number");
        return false;
    }
    return binding_key_parse(t->a, key, FACE_TORCH, k);
}

PyObject *tensor_get_item(PyObject *o, PyObject *key) {
    tensor *t = tensor_of(o), *out = NULL, *view = NULL;
    binding_key k;
    if (!parse_key(t, key, &k)) return NULL;
    if (k.nindices == 0) return tensor_result(key_view(t, &k, &out), out);
    array *index[2 * ARRAY_MAX_NDIM];
    int n = binding_key_indices(&k, index);
    simt_status s = key_view(t, &k, &view);
    if (s == SIMT_OK) s = check_indices(view, index, n);
    if (s == SIMT_OK) s = grad_index_get(view, index, n, &out);
    tensor_unref(view);
    binding_key_deinit(&k);
    return tensor_result(s, out);
}

/* The value as the window's shape wants it: leading ones may go. */
static simt_status fit_value(tensor *value, const array *window, tensor **out) {
    int drop = 0;
    while (value->a->ndim - drop > window->ndim && value->a->shape[drop] == 1) drop++;
    tensor *lean = tensor_ref(value);
    if (drop) {
        tensor_unref(lean);
        SIMT_TRY(grad_reshape(value, value->a->shape + drop, value->a->ndim - drop, false, &lean));
    }
    simt_status s = grad_expand(lean, window->shape, window->ndim, out);
    tensor_unref(lean);
    return s;
}

static bool is_mask_for(const tensor *t, PyObject *key) {
    if (!tensor_check(key)) return false;
    const array *m = tensor_of(key)->a;
    return m->dt == DT_BOOL && m->ndim == t->a->ndim && m->ndim > 0 &&
           memcmp(m->shape, t->a->shape, sizeof(int64_t) * (size_t)m->ndim) == 0;
}

/* x[mask] = number: a where in place; stays deferred. */
static simt_status fill_mask(tensor *t, tensor *mask, const tensor_operand *value) {
    tensor *filled = NULL, *number = NULL;
    simt_status s = SIMT_OK;
    if (value->t)
        s = grad_cast(value->t, t->a->dt, &number);
    else {
        array *a;
        s = array_full(t->a->dt, NULL, 0, value->s, &a);
        if (s == SIMT_OK) s = grad_finish(a, NULL, &number);
    }
    tensor_operand in[3] = {{mask}, {number}, {t}};
    if (s == SIMT_OK) s = grad_check_inplace(t);
    if (s == SIMT_OK) s = grad_elementwise(OP_WHERE, in, 3, NULL, &filled);
    tensor_operand source = {filled};
    if (s == SIMT_OK) s = grad_copy_into(t, &source);
    tensor_unref(filled);
    tensor_unref(number);
    return s;
}

static simt_status assign_window(tensor *window, const tensor_operand *value) {
    if (!value->t) return grad_copy_into(window, value);
    tensor *wide;
    SIMT_TRY(fit_value(value->t, window->a, &wide));
    tensor_operand source = {wide};
    simt_status s = grad_copy_into(window, &source);
    tensor_unref(wide);
    return s;
}

int tensor_set_item(PyObject *o, PyObject *key, PyObject *value) {
    tensor *t = tensor_of(o), *view = NULL;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    tensor_value v;
    int done = tensor_to_operand(value, &v);
    if (done < 0) return -1;
    if (done == 0) {
        array *a;
        if (!binding_to_array(value, false, DT_F32, FACE_TORCH, grad_default_float, &a)) return -1;
        v = (tensor_value){{tensor_new(a)}, true};
        if (!v.v.t) return binding_raise(), -1;
    }
    simt_status s;
    if (is_mask_for(t, key) && (!v.v.t || v.v.t->a->ndim == 0)) {
        s = fill_mask(t, tensor_of(key), &v.v);
        tensor_operand_done(&v);
        return binding_ok(s) ? 0 : -1;
    }
    binding_key k;
    if (!parse_key(t, key, &k)) {
        tensor_operand_done(&v);
        return -1;
    }
    bool watched = t->requires_grad || (t->base && t->base->requires_grad);
    s = watched ? grad_check_inplace(t) : SIMT_OK; /* the window is checked when it is written */
    if (s != SIMT_OK && t->requires_grad && !t->fn) {
        status_clear();
        s = status_fail(
            SIMT_ERR_RUNTIME,
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
    if (s == SIMT_OK) s = key_view(t, &k, &view);
    if (s == SIMT_OK && k.nindices == 0)
        s = assign_window(view, &v.v);
    else if (s == SIMT_OK) {
        array *index[2 * ARRAY_MAX_NDIM];
        int n = binding_key_indices(&k, index);
        tensor *cast = NULL;
        s = check_indices(view, index, n);
        if (s == SIMT_OK && v.v.t && v.v.t->a->dt != view->a->dt) {
            if (v.v.t->a->ndim)
                s = status_fail(
                    SIMT_ERR_RUNTIME,
                    "Index put requires the source and destination dtypes match, got %s for the "
                    "destination and %s for the source.",
                    dtype_torch_name(view->a->dt), dtype_torch_name(v.v.t->a->dt));
            else
                s = grad_cast(v.v.t, view->a->dt, &cast);
        }
        tensor_operand source = cast ? (tensor_operand){cast} : v.v;
        if (s == SIMT_OK) s = grad_index_put(view, index, n, &source, 0);
        tensor_unref(cast);
    }
    tensor_unref(view);
    binding_key_deinit(&k);
    tensor_operand_done(&v);
    return binding_ok(s) ? 0 : -1;
}

/* ---- gather and scatter ---- */

static PyObject *op_gather(PyObject **v) {
    SELF(v, "gather");
    int axis;
    tensor *index = tensor_arg(v[2], "gather", "index", 3), *out = NULL;
    if (!index || !tensor_dim(v[1], self->a->ndim, &axis)) return NULL;
    return tensor_result(grad_gather(self, axis, index, &out), out);
}
TENSOR_OP(gather, op_gather, 3, 3, "input", "dim", "index")

static PyObject *scatter_into(PyObject *o, PyObject **v, bool add) {
    tensor *self = tensor_of(o), *index = tensor_arg(v[2], "scatter", "index", 3);
    int axis;
    tensor_value value;
    if (!index || !tensor_dim(v[1], self->a->ndim, &axis)) return NULL;
    PyObject *src = v[3] ? v[3] : v[4];
    if (!src) {
        PyErr_SetString(PyExc_TypeError,
                        "scatter() missing required argument: \"src\" or \"value\"");
        return NULL;
    }
    if (v[5] && v[5] != Py_None) {
        const char *reduce = PyUnicode_AsUTF8(v[5]);
        if (!reduce) return NULL;
        if (strcmp(reduce, "add") != 0) {
            PyErr_Format(PyExc_NotImplementedError,
                         "scatter(reduce='%s'): not in simt yet; nearest is 'add'", reduce);
            return NULL;
        }
        add = true;
    }
    if (!tensor_need_operand(src, "scatter", &value)) return NULL;
    simt_status s = grad_scatter(self, axis, index, &value.v, add);
    tensor_operand_done(&value);
    return tensor_same(s, o);
}
static PyObject *scatter_copy(PyObject **v, bool add) {
    SELF(v, "scatter");
    tensor *copy = NULL;
    PyObject *o = tensor_result(grad_clone(self, &copy), copy);
    PyObject *r = o ? scatter_into(o, v, add) : NULL;
    Py_XDECREF(o);
    return r;
}
static PyObject *op_scatter(PyObject **v) { return scatter_copy(v, false); }
static PyObject *op_scatter_add(PyObject **v) { return scatter_copy(v, true); }
static PyObject *op_scatter_(PyObject **v) { return scatter_into(v[0], v, false); }
static PyObject *op_scatter_add_(PyObject **v) { return scatter_into(v[0], v, true); }
TENSOR_OP(scatter, op_scatter, 3, 4, "input", "dim", "index", "src", "value", "reduce")
TENSOR_OP(scatter_add, op_scatter_add, 4, 4, "input", "dim", "index", "src")
TENSOR_SIGNATURE(scatter_, 3, 4, "input", "dim", "index", "src", "value", "reduce")
TENSOR_METHOD(scatter_, op_scatter_)
TENSOR_SIGNATURE(scatter_add_, 4, 4, "input", "dim", "index", "src")
TENSOR_METHOD(scatter_add_, op_scatter_add_)

static PyObject *op_index_select(PyObject **v) {
    SELF(v, "index_select");
    int axis;
    int64_t bad;
    tensor *index = tensor_arg(v[2], "index_select", "index", 3), *out = NULL;
    if (!index || !tensor_dim(v[1], self->a->ndim, &axis)) return NULL;
    if (index->a->dt != DT_I64 && index->a->dt != DT_I32) {
        PyErr_SetString(PyExc_RuntimeError,
                        "index_select(): Expected dtype int32 or int64 for index");
        return NULL;
    }
    if (self->a->ndim && grad_find_outside(index->a, self->a->shape[axis], false, &bad)) {
        PyErr_SetString(PyExc_IndexError, "index out of range in self");
        return NULL;
    }
    return tensor_result(grad_take(self, index, axis, "IndexSelectBackward0", &out), out);
}
TENSOR_OP(index_select, op_index_select, 3, 3, "input", "dim", "index")

/* input, dim, index, the source or value */
static PyObject *index_along(PyObject **v, PyObject *o, const char *name, along_kind kind) {
    SELF(v, name);
    int axis;
    tensor *index = tensor_arg(v[2], name, "index", 3);
    if (!index || !tensor_dim(v[1], self->a->ndim, &axis)) return NULL;
    tensor_value value = {0};
    if (kind == ALONG_FILL) {
        if (!tensor_need_operand(o, name, &value)) return NULL;
    } else if (!(value.v.t = tensor_arg(o, name, "source", 4))) {
        return NULL;
    }
    simt_status s = grad_index_along(self, axis, index, &value.v, kind);
    tensor_operand_done(&value);
    return tensor_same(s, v[0]);
}

static PyObject *op_index_add_(PyObject **v) { /* input, dim, index, source, alpha */
    tensor *source = tensor_arg(v[3], "index_add_", "source", 4);
    PyObject *scaled = source ? tensor_scaled(v[3], v[4]) : NULL;
    PyObject *r = scaled ? index_along(v, scaled, "index_add_", ALONG_ADD) : NULL;
    Py_XDECREF(scaled);
    return r;
}
static PyObject *op_index_copy_(PyObject **v) {
    return index_along(v, v[3], "index_copy_", ALONG_COPY);
}
static PyObject *op_index_fill_(PyObject **v) {
    return index_along(v, v[3], "index_fill_", ALONG_FILL);
}
TENSOR_SIGNATURE(index_add_, 4, 4, "input", "dim", "index", "source", "alpha")
TENSOR_METHOD(index_add_, op_index_add_)
TENSOR_SIGNATURE(index_copy_, 4, 4, "input", "dim", "index", "source")
TENSOR_METHOD(index_copy_, op_index_copy_)
TENSOR_SIGNATURE(index_fill_, 4, 4, "input", "dim", "index", "value")
TENSOR_METHOD(index_fill_, op_index_fill_)

static PyObject *op_masked_select(PyObject **v) {
    SELF(v, "masked_select");
    tensor *mask = tensor_arg(v[1], "masked_select", "mask", 2), *wide = NULL;
    if (!mask) return NULL;
    if (mask->a->dt != DT_BOOL) {
        PyErr_SetString(PyExc_RuntimeError, "masked_select: expected BoolTensor for mask");
        return NULL;
    }
    if (!binding_ok(array_same_device((array *[]){self->a, mask->a}, 2))) return NULL;
    if (!binding_ok(grad_expand(mask, self->a->shape, self->a->ndim, &wide))) return NULL;
    PyObject *key = tensor_wrap(wide), *r = key ? tensor_get_item(v[0], key) : NULL;
    Py_XDECREF(key);
    return r;
}
TENSOR_OP(masked_select, op_masked_select, 2, 2, "input", "mask")

/* Positions of elements that are not zero, one column per dimension. */
static PyObject *op_nonzero(PyObject **v) {
    SELF(v, "nonzero");
    bool tuple;
    array *found[ARRAY_MAX_NDIM], *mask;
    if (!tensor_bool_arg(v[1], false, &tuple) || !binding_ok(array_astype(self->a, DT_BOOL, &mask)))
        return NULL;
    int ndim = mask->ndim;
    bool ok = binding_ok(array_nonzero(mask, found));
    array_unref(mask);
    if (!ok) return NULL;
    if (tuple) {
        PyObject *r = PyTuple_New(ndim);
        for (int i = 0; i < ndim; i++) {
            PyObject *o = tensor_wrap_array(found[i]);
            if (!o || !r)
                Py_CLEAR(r);
            else
                PyTuple_SET_ITEM(r, i, o);
        }
        return r;
    }
    array *joined = NULL;
    if (ndim)
        ok = binding_ok(array_stack(found, ndim, 1, FACE_TORCH, &joined));
    else {
        const int64_t shape[2] = {0, 0};
        ok = binding_ok(array_full(DT_I64, shape, 2, (scalar){.kind = 'I'}, &joined));
    }
    for (int i = 0; i < ndim; i++) array_unref(found[i]);
    return ok ? tensor_wrap_array(joined) : NULL;
}
TENSOR_OP(nonzero, op_nonzero, 1, 1, "input", "as_tuple")

PyMethodDef tensor_index_methods[] = {
    METHOD_ENTRY(gather),        METHOD_ENTRY(scatter),      METHOD_ENTRY(scatter_),
    METHOD_ENTRY(scatter_add),   METHOD_ENTRY(scatter_add_), METHOD_ENTRY(index_select),
    METHOD_ENTRY(index_add_),    METHOD_ENTRY(index_copy_),  METHOD_ENTRY(index_fill_),
    METHOD_ENTRY(masked_select), METHOD_ENTRY(nonzero),      {NULL}};
PyMethodDef tensor_index_functions[] = {FUNCTION_ENTRY(gather),
                                        FUNCTION_ENTRY(scatter),
                                        FUNCTION_ENTRY(scatter_add),
                                        FUNCTION_ENTRY(index_select),
                                        FUNCTION_ENTRY(masked_select),
                                        FUNCTION_ENTRY(nonzero),
                                        {NULL}};
