/* Views of tensors, their parts, and joining. Indexing is in tensor/index.c. */
#include "binding/tensor/tensor.h"

/* ---- sizes: f(2, 3) or f((2, 3)) ---- */

#define SIZES_METHOD(name)                                                             \
    static PyObject *body_##name(PyObject *o, PyObject *const *args, Py_ssize_t n);    \
    static PyObject *method_##name(PyObject *o, PyObject *const *args, Py_ssize_t n) { \
        return IN_SECTION(body_##name(o, args, n));                                    \
    }                                                                                  \
    static PyObject *body_##name(PyObject *o, PyObject *const *args, Py_ssize_t n)

SIZES_METHOD(view) {
    if (n == 1 && Py_IS_TYPE(args[0], &tensor_dtype_type)) {
        dtype dt;
        tensor *t = tensor_of(o);
        if (!binding_to_dtype(args[0], &dt)) return NULL;
        if (dtype_bytes(dt) != dtype_bytes(t->a->dt)) {
            PyErr_SetString(PyExc_NotImplementedError,
                            "view(dtype) of another size: not in simt yet");
            return NULL;
        }
        array *a;
        if (!binding_ok(array_view_strided(t->a, dt, t->a->shape, t->a->strides, t->a->ndim,
                                           t->a->offset, &a)))
            return NULL;
        return tensor_wrap_array(a);
    }
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    tensor *out = NULL;
    if (!binding_args_to_shape(args, n, "shape", shape, &ndim)) return NULL;
    return tensor_result(grad_reshape(tensor_of(o), shape, ndim, true, &out), out);
}

SIZES_METHOD(reshape) {
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    tensor *out = NULL;
    if (!binding_args_to_shape(args, n, "shape", shape, &ndim)) return NULL;
    return tensor_result(grad_reshape(tensor_of(o), shape, ndim, false, &out), out);
}

static PyObject *op_reshape(PyObject **v) {
    SELF(v, "reshape");
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    tensor *out = NULL;
    if (!binding_to_shape(v[1], "shape", shape, &ndim)) return NULL;
    return tensor_result(grad_reshape(self, shape, ndim, false, &out), out);
}
TENSOR_SIGNATURE(reshape, 2, 2, "input", "shape")
TENSOR_FUNCTION(reshape, op_reshape)

static PyObject *form_like(PyObject *o, PyObject *other, bool view, bool expand) {
    tensor *t = tensor_arg(other, "view_as", "other", 1), *out = NULL;
    if (!t) return NULL;
    simt_status s = expand ? grad_expand(tensor_of(o), t->a->shape, t->a->ndim, &out)
                           : grad_reshape(tensor_of(o), t->a->shape, t->a->ndim, view, &out);
    return tensor_result(s, out);
}
static inline PyObject *like(PyObject *o, PyObject *other, bool view, bool expand) {
    return IN_SECTION(form_like(o, other, view, expand));
}
static PyObject *method_view_as(PyObject *o, PyObject *other) {
    return like(o, other, true, false);
}
static PyObject *method_reshape_as(PyObject *o, PyObject *other) {
    return like(o, other, false, false);
}
static PyObject *method_expand_as(PyObject *o, PyObject *other) {
    return like(o, other, false, true);
}

SIZES_METHOD(expand) {
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    tensor *out = NULL;
    if (!binding_args_to_shape(args, n, "size", shape, &ndim)) return NULL;
    return tensor_result(grad_expand(tensor_of(o), shape, ndim, &out), out);
}
static PyObject *op_broadcast_to(PyObject **v) {
    SELF(v, "broadcast_to");
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    tensor *out = NULL;
    if (!binding_to_shape(v[1], "size", shape, &ndim)) return NULL;
    return tensor_result(grad_expand(self, shape, ndim, &out), out);
}
TENSOR_OP(broadcast_to, op_broadcast_to, 2, 2, "input", "size")

static PyObject *permute(tensor *t, const int64_t *dims, int n) {
    int axes[ARRAY_MAX_NDIM];
    uint32_t seen = 0;
    if (n != t->a->ndim) {
        PyErr_Format(
            PyExc_RuntimeError,
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            "length of the "
            "desired ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d",
            t->a->ndim, n);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if (!tensor_dim_number(dims[i], n, &axes[i])) return NULL;
        if (seen >> axes[i] & 1) {
            PyErr_SetString(PyExc_RuntimeError, "permute(): duplicate dims are not allowed.");
            return NULL;
        }
        seen |= 1u << axes[i];
    }
    tensor *out = NULL;
    return tensor_result(grad_permute(t, axes, "PermuteBackward0", &out), out);
}
SIZES_METHOD(permute) {
    int64_t dims[ARRAY_MAX_NDIM];
    int ndim;
    return binding_args_to_shape(args, n, "dims", dims, &ndim) ? permute(tensor_of(o), dims, ndim)
                                                               : NULL;
}
static PyObject *op_permute(PyObject **v) {
    SELF(v, "permute");
    int64_t dims[ARRAY_MAX_NDIM];
    int ndim;
    return binding_to_shape(v[1], "dims", dims, &ndim) ? permute(self, dims, ndim) : NULL;
}
TENSOR_SIGNATURE(permute, 2, 2, "input", "dims")
TENSOR_FUNCTION(permute, op_permute)

static PyObject *swap(tensor *t, int a, int b, const char *name) {
    int axes[ARRAY_MAX_NDIM];
    for (int i = 0; i < t->a->ndim; i++) axes[i] = i;
    axes[a] = b;
    axes[b] = a;
    tensor *out = NULL;
    return tensor_result(grad_permute(t, axes, name, &out), out);
}
static PyObject *op_transpose(PyObject **v) {
    SELF(v, "transpose");
    int a, b;
    if (!tensor_dim(v[1], self->a->ndim, &a) || !tensor_dim(v[2], self->a->ndim, &b)) return NULL;
    return self->a->ndim ? swap(self, a, b, "TransposeBackward0") : Py_NewRef(v[0]);
}
TENSOR_OP(transpose, op_transpose, 3, 3, "input", "dim0", "dim1")
TENSOR_OP(swapaxes, op_transpose, 3, 3, "input", "axis0", "axis1")
static PyObject *op_t(PyObject **v) {
    SELF(v, "t");
    if (self->a->ndim > 2) {
        PyErr_Format(PyExc_RuntimeError,
                     "t() expects a tensor with <= 2 dimensions, but self is %dD", self->a->ndim);
        return NULL;
    }
    return self->a->ndim == 2 ? swap(self, 0, 1, "TBackward0") : Py_NewRef(v[0]);
}
TENSOR_OP(t, op_t, 1, 1, "input")

static PyObject *op_squeeze(PyObject **v) {
    SELF(v, "squeeze");
    uint32_t mask;
    bool all;
    tensor *out = NULL;
    if (!tensor_dims(v[1], self->a->ndim, &mask, &all)) return NULL;
    return tensor_result(grad_squeeze(self, mask, &out), out);
}
TENSOR_OP(squeeze, op_squeeze, 1, 2, "input", "dim")
static PyObject *op_unsqueeze(PyObject **v) {
    SELF(v, "unsqueeze");
    int axis;
    tensor *out = NULL;
    if (!tensor_dim(v[1], self->a->ndim + 1, &axis)) return NULL;
    return tensor_result(grad_unsqueeze(self, axis, &out), out);
}
TENSOR_OP(unsqueeze, op_unsqueeze, 2, 2, "input", "dim")

static PyObject *op_flatten(PyObject **v) {
    SELF(v, "flatten");
    int first, last;
    int64_t a, b, shape[ARRAY_MAX_NDIM];
    tensor *out = NULL;
    int ndim = self->a->ndim, n = 0;
    if (!tensor_int_arg(v[1], 0, &a) || !tensor_int_arg(v[2], -1, &b) ||
        !tensor_dim_number(a, ndim, &first) || !tensor_dim_number(b, ndim, &last))
        return NULL;
    if (first > last) {
        PyErr_SetString(PyExc_RuntimeError,
                        "flatten() has invalid args: start_dim cannot come after end_dim");
        return NULL;
    }
    if (ndim && first == last) return Py_NewRef(v[0]);
    for (int i = 0; i < first; i++) shape[n++] = self->a->shape[i];
    shape[n] = 1;
    for (int i = first; i <= last && i < ndim; i++) shape[n] *= self->a->shape[i];
    n++;
    for (int i = last + 1; i < ndim; i++) shape[n++] = self->a->shape[i];
    return tensor_result(grad_reshape(self, shape, n, false, &out), out);
}
TENSOR_OP(flatten, op_flatten, 1, 3, "input", "start_dim", "end_dim")
static PyObject *op_ravel(PyObject **v) { return op_flatten((PyObject *[3]){v[0], NULL, NULL}); }
TENSOR_OP(ravel, op_ravel, 1, 1, "input")

static PyObject *op_unflatten(PyObject **v) {
    SELF(v, "unflatten");
    int axis, count;
    int64_t sizes[ARRAY_MAX_NDIM], shape[2 * ARRAY_MAX_NDIM];
    tensor *out = NULL;
    if (!tensor_dim(v[1], self->a->ndim, &axis) || !binding_to_shape(v[2], "sizes", sizes, &count))
        return NULL;
    int n = 0;
    int64_t known = 1;
    for (int i = 0; i < axis; i++) shape[n++] = self->a->shape[i];
    for (int i = 0; i < count; i++) known *= sizes[i] == -1 ? 1 : sizes[i];
    for (int i = 0; i < count; i++)
        shape[n++] = sizes[i] == -1 && known ? self->a->shape[axis] / known : sizes[i];
    for (int i = axis + 1; i < self->a->ndim; i++) shape[n++] = self->a->shape[i];
    return tensor_result(grad_reshape(self, shape, n, false, &out), out);
}
TENSOR_OP(unflatten, op_unflatten, 3, 3, "input", "dim", "sizes")

/* ---- parts ---- */

static PyObject *part(tensor *t, int axis, int64_t start, int64_t stop, bool one,
                      const char *name) {
    array_slice items[ARRAY_MAX_NDIM];
    for (int i = 0; i < axis; i++)
        items[i] =
            (array_slice){.kind = SLICE_RANGE, .start = 0, .stop = t->a->shape[i], .step = 1};
    items[axis] = (array_slice){
        .kind = one ? SLICE_INDEX : SLICE_RANGE, .start = start, .stop = stop, .step = 1};
    tensor *out = NULL;
    return tensor_result(grad_slice(t, items, axis + 1, name, &out), out);
}

static PyObject *op_select(PyObject **v) {
    SELF(v, "select");
    int axis;
    int64_t i;
    if (!tensor_dim(v[1], self->a->ndim, &axis) || !binding_to_int64(v[2], &i)) return NULL;
    if (self->a->ndim == 0 || i < -self->a->shape[axis] || i >= self->a->shape[axis]) {
        PyErr_Format(PyExc_IndexError,
                     "select(): index %lld out of range for tensor of size %R at dimension %d",
                     (long long)i, Py_None, axis);
        return NULL;
    }
    return part(self, axis, i < 0 ? i + self->a->shape[axis] : i, 0, true, "SelectBackward0");
}
TENSOR_OP(select, op_select, 3, 3, "input", "dim", "index")

static PyObject *op_narrow(PyObject **v) {
    SELF(v, "narrow");
    int axis;
    int64_t start, count;
    if (!tensor_dim(v[1], self->a->ndim, &axis) || !binding_to_int64(v[2], &start) ||
        !binding_to_int64(v[3], &count))
        return NULL;
    int64_t size = self->a->ndim ? self->a->shape[axis] : 0;
    if (start < 0) start += size;
    if (start < 0 || count < 0 || start > size || count > size - start) {
        PyErr_Format(PyExc_RuntimeError,
                     "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                     (long long)start, (long long)count, (long long)size);
        return NULL;
    }
    return part(self, axis, start, start + count, false, "SliceBackward0");
}
TENSOR_OP(narrow, op_narrow, 4, 4, "input", "dim", "start", "length")

/* A tuple of the parts between the given ends. */
static PyObject *parts(tensor *t, int axis, const int64_t *ends, Py_ssize_t n, bool one) {
    PyObject *tuple = PyTuple_New(n);
    int64_t start = 0;
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        PyObject *o = one || !ends ? part(t, axis, i, 0, true, "UnbindBackward0")
                                   : part(t, axis, start, ends[i], false, "SplitBackward0");
        if (!o)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, o);
        if (ends) start = ends[i];
    }
    return tuple;
}

static PyObject *split_even(tensor *t, int axis, int64_t size) {
    if (t->a->ndim == 0) {
        PyErr_SetString(PyExc_RuntimeError, "split expects at least a 1-dimensional tensor");
        return NULL;
    }
    int64_t total = t->a->shape[axis];
    if (size < 0 || (size == 0 && total != 0)) {
        PyErr_Format(PyExc_RuntimeError, "split_size must be positive, but got split_size=%lld",
                     (long long)size);
        return NULL;
    }
    Py_ssize_t n = total && size ? (Py_ssize_t)((total - 1) / size + 1) : 1;
    int64_t *ends = binding_alloc((size_t)n + 1, sizeof *ends);
    if (!ends) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) ends[i] = i + 1 < n ? (i + 1) * size : total;
    PyObject *r = parts(t, axis, ends, n, false);
    heap_free(ends);
    return r;
}

static PyObject *op_split(PyObject **v) {
    SELF(v, "split");
    int64_t number;
    int axis;
    if (!tensor_int_arg(v[2], 0, &number) || !tensor_dim_number(number, self->a->ndim, &axis))
        return NULL;
    if (PyLong_Check(v[1]))
        return binding_to_int64(v[1], &number) ? split_even(self, axis, number) : NULL;
    PyObject *sizes = binding_tuple(v[1]);
    if (!sizes) return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(sizes);
    int64_t *ends = binding_alloc((size_t)n + 1, sizeof *ends), total = 0;
    bool ok = ends != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        int64_t size;
        ok = binding_to_int64(PyTuple_GET_ITEM(sizes, i), &size);
        if (ok && (size < 0 || __builtin_add_overflow(total, size, &total))) total = -1, n = i + 1;
        ends[i] = total;
    }
    PyObject *r = NULL;
    if (ok && total != (self->a->ndim ? self->a->shape[axis] : 0))
        PyErr_Format(PyExc_RuntimeError,
                     "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's "
                     "size at dimension "
                     "%d), but got split_sizes=%R",
                     (long long)(self->a->ndim ? self->a->shape[axis] : 0), axis, v[1]);
    else if (ok)
        r = parts(self, axis, ends, n, false);
    heap_free(ends);
    Py_DECREF(sizes);
    return r;
}
TENSOR_OP(split, op_split, 2, 3, "input", "split_size", "dim")

static PyObject *op_chunk(PyObject **v) {
    SELF(v, "chunk");
    int64_t chunks, number;
    int axis;
    if (!binding_to_int64(v[1], &chunks) || !tensor_int_arg(v[2], 0, &number) ||
        !tensor_dim_number(number, self->a->ndim, &axis))
        return NULL;
    if (chunks <= 0) {
        PyErr_Format(PyExc_RuntimeError, "chunk expects `chunks` to be greater than 0, got: %lld",
                     (long long)chunks);
        return NULL;
    }
    int64_t total = self->a->ndim ? self->a->shape[axis] : 0;
    return split_even(self, axis, total ? (total - 1) / chunks + 1 : 1);
}
TENSOR_OP(chunk, op_chunk, 2, 3, "input", "chunks", "dim")

static PyObject *op_unbind(PyObject **v) {
    SELF(v, "unbind");
    int64_t number;
    int axis;
    if (!tensor_int_arg(v[1], 0, &number) || !tensor_dim_number(number, self->a->ndim, &axis))
        return NULL;
    if (self->a->ndim == 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Dimension specified as 0 but tensor has no dimensions");
        return NULL;
    }
    return parts(self, axis, NULL, (Py_ssize_t)self->a->shape[axis], true);
}
TENSOR_OP(unbind, op_unbind, 1, 2, "input", "dim")

/* ---- joining ---- */

static PyObject *join(PyObject **v, bool stack, const char *name) {
    PyObject *list = PySequence_Tuple(v[0]); /* a list may change meanwhile */
    if (!list) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
        PyErr_Format(PyExc_TypeError,
                     "%s(): argument 'tensors' (position 1) must be tuple of Tensors, not %s", name,
                     Py_TYPE(v[0])->tp_name);
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(list), used = 0;
    tensor **ts = binding_alloc((size_t)n + 1, sizeof *ts), *out = NULL;
    bool ok = ts != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(list, i);
        if (!tensor_check(o)) {
            PyErr_Format(PyExc_TypeError,
                         "expected Tensor as element %zd in argument 0, but got %s", i,
                         Py_TYPE(o)->tp_name);
            ok = false;
            break;
        }
        tensor *t = tensor_of(o);
        if (stack || n == 1 || !(t->a->ndim == 1 && t->a->size == 0))
            ts[used++] = t; /* cat skips old empties */
    }
    if (ok && n && !used) ts[used++] = tensor_of(PyTuple_GET_ITEM(list, 0));
    if (ok && n == 0) {
        if (stack)
            PyErr_SetString(PyExc_RuntimeError, "stack expects a non-empty TensorList");
        else
            PyErr_SetString(PyExc_ValueError, "torch.cat(): expected a non-empty list of Tensors");
        ok = false;
    }
    int64_t number = 0;
    int axis = 0;
    if (ok && !stack && ts[0]->a->ndim == 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "zero-dimensional tensor (at position 0) cannot be concatenated");
        ok = false;
    }
    ok = ok && tensor_int_arg(v[1], 0, &number) &&
         tensor_dim_number(number, ts[0]->a->ndim + stack, &axis);
    PyObject *r = NULL;
    if (ok)
        r = tensor_result(stack ? grad_stack(ts, (int)used, axis, &out)
                                : grad_concatenate(ts, (int)used, axis, &out),
                          out);
    heap_free(ts);
    Py_DECREF(list);
    return r;
}
static PyObject *op_cat(PyObject **v) { return join(v, false, "cat"); }
static PyObject *op_stack(PyObject **v) { return join(v, true, "stack"); }
TENSOR_SIGNATURE(cat, 1, 2, "tensors", "dim")
TENSOR_FUNCTION(cat, op_cat)
TENSOR_SIGNATURE(concat, 1, 2, "tensors", "dim")
TENSOR_FUNCTION(concat, op_cat)
TENSOR_SIGNATURE(stack, 1, 2, "tensors", "dim")
TENSOR_FUNCTION(stack, op_stack)

/* repeat: expand along new axes, then one reshape */
SIZES_METHOD(repeat) {
    int64_t times[ARRAY_MAX_NDIM], lead[ARRAY_MAX_NDIM], wide[2 * ARRAY_MAX_NDIM],
        full[ARRAY_MAX_NDIM];
    int count;
    tensor *t = tensor_of(o);
    if (!binding_args_to_shape(args, n, "repeats", times, &count)) return NULL;
    if (count < t->a->ndim || 2 * count > ARRAY_MAX_NDIM) {
        PyErr_SetString(PyExc_RuntimeError, "Number of dimensions of repeat dims can not be "
                                            "smaller than number of dimensions of tensor");
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        int64_t size = i < count - t->a->ndim ? 1 : t->a->shape[i - (count - t->a->ndim)];
        if (times[i] < 0) {
            PyErr_Format(PyExc_RuntimeError, "Trying to create tensor with negative dimension %lld",
                         (long long)times[i]);
            return NULL;
        }
        lead[i] = size;
        wide[2 * i] = times[i];
        wide[2 * i + 1] = size;
        if (__builtin_mul_overflow(size, times[i], &full[i])) {
            PyErr_Format(PyExc_RuntimeError,
                         "repeat: %lld times %lld elements along dimension %d is too large",
                         (long long)times[i], (long long)size, i);
            return NULL;
        }
    }
    int64_t spread[2 * ARRAY_MAX_NDIM];
    for (int i = 0; i < count; i++) {
        spread[2 * i] = 1;
        spread[2 * i + 1] = lead[i];
    }
    tensor *a = NULL, *b = NULL, *c = NULL;
    simt_status s = grad_reshape(t, spread, 2 * count, false, &a);
    if (s == SIMT_OK) s = grad_expand(a, wide, 2 * count, &b);
    if (s == SIMT_OK) s = grad_reshape(b, full, count, false, &c);
    if (s == SIMT_OK && c->a->store == t->a->store) { /* always memory of its own */
        tensor *copy;
        s = grad_clone(c, &copy);
        tensor_unref(c);
        c = copy;
    }
    tensor_unref(a);
    tensor_unref(b);
    return tensor_result(s, c);
}

static PyObject *op_as_strided(PyObject **v) {
    SELF(v, "as_strided");
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM], offset;
    int ndim, count;
    tensor *out = NULL;
    int64_t own = self->a->offset / (int64_t)dtype_bytes(self->a->dt);
    if (!binding_to_shape(v[1], "size", shape, &ndim) ||
        !binding_to_shape(v[2], "stride", strides, &count) || !tensor_int_arg(v[3], own, &offset))
        return NULL;
    if (ndim != count) {
        PyErr_SetString(PyExc_RuntimeError, "mismatch in length of strides and shape");
        return NULL;
    }
    return tensor_result(grad_as_strided(self, shape, strides, ndim, offset, &out), out);
}
/* _repeat_index(counts, size) */
static PyObject *op_repeat_index(PyObject **v) {
    array *made;
    return binding_repeat_index(v[0], v[1], FACE_TORCH, &made) ? tensor_wrap_array(made) : NULL;
}
TENSOR_SIGNATURE(_repeat_index, 2, 2, "counts", "size")
TENSOR_FUNCTION(_repeat_index, op_repeat_index)

TENSOR_OP(as_strided, op_as_strided, 3, 4, "input", "size", "stride", "storage_offset")

static PyObject *
op_narrow_flip(PyObject **v) { /* flip(dims): copied through a window of negative step */
    SELF(v, "flip");
    uint32_t mask;
    bool all;
    if (!tensor_dims(v[1], self->a->ndim, &mask, &all)) return NULL;
    tensor *now = tensor_ref(self), *next = NULL;
    simt_status s = SIMT_OK;
    for (int d = 0; d < self->a->ndim && s == SIMT_OK; d++) {
        if (!(mask >> d & 1)) continue;
        array *count;
        s = array_arange(DT_I64, (scalar){.kind = 'I', .i = self->a->shape[d] - 1},
                         (scalar){.kind = 'I', .i = -1}, self->a->shape[d], &count);
        tensor *index = s == SIMT_OK ? tensor_new(count) : NULL;
        if (s == SIMT_OK && !index) s = SIMT_ERR_MEMORY;
        if (s == SIMT_OK) s = grad_take(now, index, d, "FlipBackward0", &next);
        tensor_unref(index);
        tensor_unref(now);
        now = s == SIMT_OK ? next : NULL;
    }
    return tensor_result(s, now);
}
TENSOR_SIGNATURE(flip, 2, 2, "input", "dims")
TENSOR_FUNCTION(flip, op_narrow_flip)
SIZES_METHOD(flip) {
    PyObject *dims = n == 1 ? Py_NewRef(args[0]) : PyTuple_New(n);
    for (Py_ssize_t i = 0; n != 1 && dims && i < n; i++)
        PyTuple_SET_ITEM(dims, i, Py_NewRef(args[i]));
    PyObject *r = dims ? op_narrow_flip((PyObject *[2]){o, dims}) : NULL;
    Py_XDECREF(dims);
    return r;
}

#define SIZES(name) \
    { #name, (PyCFunction)(void (*)(void))method_##name, METH_FASTCALL, NULL }
PyMethodDef tensor_shape_methods[] = {SIZES(view),
                                      SIZES(reshape),
                                      SIZES(expand),
                                      SIZES(permute),
                                      SIZES(repeat),
                                      SIZES(flip),
                                      {"view_as", method_view_as, METH_O, NULL},
                                      {"reshape_as", method_reshape_as, METH_O, NULL},
                                      {"expand_as", method_expand_as, METH_O, NULL},
                                      METHOD_ENTRY(broadcast_to),
                                      METHOD_ENTRY(transpose),
                                      METHOD_ENTRY(swapaxes),
                                      METHOD_ENTRY(t),
                                      METHOD_ENTRY(squeeze),
                                      METHOD_ENTRY(unsqueeze),
                                      METHOD_ENTRY(flatten),
                                      METHOD_ENTRY(ravel),
                                      METHOD_ENTRY(unflatten),
                                      METHOD_ENTRY(select),
                                      METHOD_ENTRY(narrow),
                                      METHOD_ENTRY(split),
                                      METHOD_ENTRY(chunk),
                                      METHOD_ENTRY(unbind),
                                      METHOD_ENTRY(as_strided),
                                      {NULL}};
PyMethodDef tensor_shape_functions[] = {FUNCTION_ENTRY(reshape),
                                        FUNCTION_ENTRY(permute),
                                        FUNCTION_ENTRY(broadcast_to),
                                        FUNCTION_ENTRY(transpose),
                                        FUNCTION_ENTRY(swapaxes),
                                        FUNCTION_ENTRY(t),
                                        FUNCTION_ENTRY(squeeze),
                                        FUNCTION_ENTRY(unsqueeze),
                                        FUNCTION_ENTRY(flatten),
                                        FUNCTION_ENTRY(ravel),
                                        FUNCTION_ENTRY(unflatten),
                                        FUNCTION_ENTRY(select),
                                        FUNCTION_ENTRY(narrow),
                                        FUNCTION_ENTRY(split),
                                        FUNCTION_ENTRY(chunk),
                                        FUNCTION_ENTRY(unbind),
                                        FUNCTION_ENTRY(cat),
                                        FUNCTION_ENTRY(concat),
                                        FUNCTION_ENTRY(stack),
                                        FUNCTION_ENTRY(as_strided),
                                        FUNCTION_ENTRY(flip),
                                        FUNCTION_ENTRY(_repeat_index),
                                        {NULL}};
