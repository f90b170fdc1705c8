/* Making tensors, their facts, conversions to Python and NumPy, casts, random numbers. */
#include <math.h>
#include <string.h>

#include <float.h>

#include "array/idx.h"
#include "binding/tensor/device.h"

/* ---- making: what python/simt/torch/_creation.py calls ---- */

static PyObject *finish_new(array *a, PyObject *requires_grad) {
    bool grad;
    if (!tensor_bool_arg(requires_grad, false, &grad)) {
        array_unref(a);
        return NULL;
    }
    if (grad && !dtype_is_float(a->dt)) {
        array_unref(a);
        PyErr_SetString(PyExc_RuntimeError,
                        "Only Tensors of floating point and complex dtype can require gradients");
        return NULL;
    }
    tensor *t = tensor_new(a);
    if (!t) return binding_raise();
    t->requires_grad = grad;
    return tensor_wrap(t);
}

/* The same without data, where a device argument says so; takes a. */
static array *on_device(array *a, bool meta) {
    array *out = NULL;
    if (!meta || array_is_meta(a)) return a;
    binding_ok(array_meta(a->dt, a->shape, a->ndim, &out));
    array_unref(a);
    return out;
}

static PyObject *no_data(void) {
    PyErr_SetString(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    return NULL;
}

static PyObject *op_tensor(PyObject **v) { /* data, dtype, device, requires_grad, pin_memory */
    int dt;
    bool meta;
    array *a;
    if (PyUnicode_Check(v[0]))
        return PyErr_Format(PyExc_TypeError, "new(): invalid data type 'str'");
    if (!tensor_dtype_arg(v[1], "tensor", &dt) || !tensor_device_arg(v[2], &meta) ||
        !binding_start())
        return NULL;
    if (!binding_to_array(v[0], dt >= 0, dt >= 0 ? (dtype)dt : DT_F32, FACE_TORCH,
                          grad_default_float, &a) ||
        !(a = on_device(a, meta)))
        return NULL;
    return finish_new(a, v[3]);
}
TENSOR_SIGNATURE(tensor, 1, 1, "data", "dtype", "device", "requires_grad", "pin_memory")
TENSOR_FUNCTION(tensor, op_tensor)

/* Shares the object's memory if it can; else as tensor(). */
static PyObject *op_as_tensor(PyObject **v) { /* data, dtype, device */
    int dt;
    array *a = NULL;
    bool meta;
    if (!tensor_dtype_arg(v[1], "as_tensor", &dt) || !tensor_device_arg(v[2], &meta) ||
        !binding_start())
        return NULL;
    if (meta && !tensor_check(v[0])) return op_tensor((PyObject *[4]){v[0], v[1], v[2], NULL});
    if (tensor_check(v[0]))
        return tensor_cast_object(v[0], dt >= 0 ? (dtype)dt : tensor_of(v[0])->a->dt, false);
    int shared = PyList_Check(v[0]) || PyTuple_Check(v[0]) || PyBytes_Check(v[0])
                     ? 0
                     : binding_share_memory(v[0], &a);
    if (shared < 0) return NULL;
    if (shared && (dt < 0 || a->dt == (dtype)dt)) return tensor_wrap_array(a);
    array_unref(shared ? a : NULL);
    return op_tensor((PyObject *[4]){v[0], v[1], NULL, NULL});
}
TENSOR_SIGNATURE(as_tensor, 1, 2, "data", "dtype", "device")
TENSOR_FUNCTION(as_tensor, op_as_tensor)

/* PyTorch has no negative strides and no foreign byte order. */
static bool from_numpy_layout(PyObject *o) {
    binding_buffer b;
    if (!binding_get_buffer(o, false, &b))
        return binding_forgive(); /* binding_share_memory tells */
    const Py_buffer *view = &b.view;
    bool negative = false, swapped = view->format && *view->format == '>' && view->itemsize > 1;
    dtype dt;
    bool crooked =
        b.usable && binding_format_to_dtype(view->format, view->itemsize, &dt) &&
        !binding_is_aligned((size_t)view->itemsize, b.shape, b.strides, view->ndim, view->buf);
    for (int i = 0; b.usable && i < view->ndim; i++) negative |= b.strides[i] < 0;
    PyBuffer_Release(&b.view);
    if (negative)
        PyErr_SetString(
            PyExc_ValueError,
            "At least one stride in the given numpy array is negative, and tensors with "
            "negative strides are not currently supported. (You can probably work "
            "around this by making a copy of your array  with array.copy().) ");
    else if (swapped)
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. "
                        "Conversion between byte orders is currently not supported.");
    else if (crooked)
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array strides not a multiple of the element byte size. Copy "
                        "the numpy array to reallocate the memory.");
    return !negative && !swapped && !crooked;
}

static PyObject *from_numpy(PyObject *module, PyObject *o) {
    array *a;
    if (strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") != 0) {
        PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(o)->tp_name);
        return NULL;
    }
    if (!binding_start() || !from_numpy_layout(o)) return NULL;
    int shared = binding_share_memory(o, &a);
    if (shared < 0) return NULL;
    if (shared) return tensor_wrap_array(a);
    PyObject *dt = PyObject_GetAttrString(o, "dtype");
    if (!dt) return NULL;
    PyErr_Format(PyExc_TypeError,
                 "can't convert np.ndarray of type numpy.%S. The only supported types are: "
                 "float64, float32, float16, "
                 "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                 dt);
    Py_DECREF(dt);
    return NULL;
}

static PyObject *from_dlpack(PyObject *module, PyObject *o) {
    array *a;
    return binding_start() && binding_from_dlpack(o, &a) ? tensor_wrap_array(a) : NULL;
}

/* _from_bytes(data, dtype, size): C order, exactly its bytes */
static PyObject *from_bytes(PyObject *module, PyObject *args) {
    Py_buffer data;
    PyObject *type, *size;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM], count;
    int ndim, dt;
    if (!PyArg_ParseTuple(args, "y*OO:_from_bytes", &data, &type, &size)) return NULL;
    array *a = NULL;
    bool ok = tensor_dtype_arg(type, "_from_bytes", &dt) && dt >= 0 &&
              binding_to_shape(size, "size", shape, &ndim) && binding_start() &&
              binding_ok(array_check_shape(shape, ndim, (dtype)dt, &count));
    int64_t step = ok ? (int64_t)dtype_bytes((dtype)dt) : 0;
    if (ok && count * step != data.len) {
        PyErr_Format(PyExc_ValueError, "%zd bytes for a tensor of %lld", data.len,
                     (long long)(count * step));
        ok = false;
    }
    for (Py_ssize_t i = 0; ok && dt == DT_BOOL && i < data.len; i++)
        if (((unsigned char *)data.buf)[i] > 1) {
            PyErr_Format(PyExc_ValueError, "byte %zd of a bool tensor is %d", i,
                         ((unsigned char *)data.buf)[i]);
            ok = false;
        }
    for (int i = ok ? ndim - 1 : -1; i >= 0; i--) {
        strides[i] = step;
        step *= shape[i];
    }
    if (ok) ok = binding_ok(array_from_memory((dtype)dt, shape, strides, ndim, data.buf, &a));
    PyBuffer_Release(&data);
    return ok ? tensor_wrap_array(a) : NULL;
}
static PyObject *method__to_bytes_body(PyObject *o, PyObject *unused) {
    array *a = tensor_of(o)->a;
    PyObject *bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(a->size * (int64_t)dtype_bytes(a->dt)));
    if (bytes && !binding_ok(array_copy_out(a, PyBytes_AS_STRING(bytes)))) Py_CLEAR(bytes);
    return bytes;
}
SECTION_FUNCTION(method__to_bytes, method__to_bytes_body)
/* simt._core.tensor_from_idx(data, name, file=-1, bytes=0): of a file of `bytes` bytes, data may be the
 * beginning; the rest is read from the file descriptor */
static PyObject *from_idx(PyObject *module, PyObject *args) {
    Py_buffer data;
    const char *name;
    int file = -1;
    Py_ssize_t bytes = 0;
    array *a = NULL;
    if (!PyArg_ParseTuple(args, "y*s|in:tensor_from_idx", &data, &name, &file, &bytes)) return NULL;
    bool ok = binding_start();
    if (ok && file < 0)
        ok = binding_ok(array_from_idx(data.buf, (size_t)data.len, name, &a));
    else if (ok)
        ok = binding_ok(
            array_from_idx_file(data.buf, (size_t)data.len, file, (size_t)bytes, name, &a));
    PyBuffer_Release(&data);
    return ok ? tensor_wrap_array(a) : NULL;
}
/* simt._core.idx_bytes(first_bytes, name): the whole file's length, as its header declares it */
static PyObject *idx_bytes(PyObject *module, PyObject *args) {
    Py_buffer data;
    const char *name;
    size_t total = 0;
    if (!PyArg_ParseTuple(args, "y*s:idx_bytes", &data, &name)) return NULL;
    bool ok = binding_ok(array_idx_bytes(data.buf, (size_t)data.len, name, &total));
    PyBuffer_Release(&data);
    return ok ? PyLong_FromSize_t(total) : NULL;
}
PyMethodDef tensor_core_functions[] = {{"tensor_from_idx", from_idx, METH_VARARGS, NULL},
                                       {"idx_bytes", idx_bytes, METH_VARARGS, NULL},
                                       {NULL}};

/* Sizes are checked here with PyTorch's words. */
static bool check_size(const int64_t *shape, int ndim, dtype dt, const char *name) {
    int64_t bytes = (int64_t)dtype_bytes(dt);
    bool overflow = false;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) {
            char sizes[300];
            shape_text(shape, ndim, sizes, sizeof sizes);
            if (strcmp(name, "zeros") == 0)
                PyErr_Format(PyExc_RuntimeError, "%s: Dimension size must be non-negative.", name);
            else
                PyErr_Format(PyExc_RuntimeError,
                             "Trying to create tensor with negative dimension %lld: %s",
                             (long long)shape[i], sizes);
            return false;
        }
        overflow |= __builtin_mul_overflow(bytes, shape[i] ? shape[i] : 1, &bytes);
    }
    if (!overflow) return true;
    char text[300];
    shape_text(shape, ndim, text, sizeof text);
    PyErr_Format(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=%s", text);
    return false;
}

/* _full(name, size, value or None (not cleared), dtype, device, requires_grad) */
static PyObject *op_full(PyObject **v) {
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim, dt;
    array *a;
    const char *name = PyUnicode_AsUTF8(v[0]);
    bool meta;
    if (!name || !tensor_dtype_arg(v[3], name, &dt) || !tensor_device_arg(v[4], &meta) ||
        !binding_start())
        return NULL;
    scalar value = {.kind = 'I'};
    bool clear = v[2] != Py_None;
    if (!binding_to_shape(v[1], "size", shape, &ndim)) return NULL;
    if (clear && binding_to_scalar(v[2], FACE_TORCH, &value) <= 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s(): argument 'fill_value' must be a number, not %s",
                         name, Py_TYPE(v[2])->tp_name);
        return NULL;
    }
    dtype type = dt >= 0                                          ? (dtype)dt
                 : strcmp(name, "full") != 0 || value.kind == 'F' ? grad_default_float
                 : value.kind == 'B'                              ? DT_BOOL
                                                                  : DT_I64;
    if (!check_size(shape, ndim, type, name)) return NULL;
    simt_status s = meta    ? array_meta(type, shape, ndim, &a)
                    : clear ? array_full(type, shape, ndim, value, &a)
                            : array_empty(type, shape, ndim, &a);
    return binding_ok(s) ? finish_new(a, v[5]) : NULL;
}
TENSOR_SIGNATURE(_full, 3, 6, "name", "size", "value", "dtype", "device", "requires_grad")
TENSOR_FUNCTION(_full, op_full)

/* _arange(start, end, step, dtype): numbers as Python gave them */
static PyObject *op_arange(PyObject **v) {
    scalar s[3];
    int dt;
    bool floating = false;
    for (int i = 0; i < 3; i++) {
        if (binding_to_scalar(v[i], FACE_TORCH, &s[i]) <= 0) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "arange(): arguments must be Number, not %s",
                             Py_TYPE(v[i])->tp_name);
            return NULL;
        }
        floating |= s[i].kind == 'F';
    }
    if (!tensor_dtype_arg(v[3], "arange", &dt) || !binding_start()) return NULL;
    double d[3];
    for (int i = 0; i < 3; i++) d[i] = s[i].kind == 'F' ? s[i].f : (double)s[i].i;
    if (d[2] == 0) return PyErr_Format(PyExc_RuntimeError, "step must be nonzero");
    if (!isfinite(d[0]) || !isfinite(d[1]))
        return PyErr_Format(PyExc_RuntimeError, "unsupported range: %S -> %S", v[0], v[1]);
    if ((d[2] > 0) != (d[1] >= d[0]) && d[0] != d[1])
        return PyErr_Format(PyExc_RuntimeError,
                            "upper bound and lower bound inconsistent with step sign");
    double count = ceil((d[1] - d[0]) / d[2]);
    if (!floating) {
        __int128 span = (__int128)s[1].i - s[0].i, step = s[2].i;
        __int128 exact = (span + step + (step > 0 ? -1 : 1)) / step;
        count = exact > 0 ? (double)exact : 0;
    }
    dtype type = dt >= 0 ? (dtype)dt : floating ? grad_default_float : DT_I64;
    if (count > 1e15)
        return PyErr_Format(PyExc_RuntimeError,
                            "Storage size calculation overflowed with sizes=[%lld]",
                            (long long)count);
    if (floating || dtype_is_float(type)) {
        s[0] = (scalar){.kind = 'F', .f = d[0]};
        s[2] = (scalar){.kind = 'F', .f = d[2]};
    }
    array *a;
    return binding_ok(array_arange(type, s[0], s[2], (int64_t)count, &a)) ? tensor_wrap_array(a)
                                                                          : NULL;
}
TENSOR_SIGNATURE(_arange, 4, 4, "start", "end", "step", "dtype")
TENSOR_FUNCTION(_arange, op_arange)

static PyObject *op_linspace(PyObject **v) { /* start, end, steps, dtype */
    double start, end;
    int64_t count;
    int dt;
    array *a;
    if (!tensor_double_arg(v[0], 0, "start", &start) || !tensor_double_arg(v[1], 0, "end", &end) ||
        !binding_to_int64(v[2], &count) || !tensor_dtype_arg(v[3], "linspace", &dt) ||
        !binding_start())
        return NULL;
    if (count < 0) return PyErr_Format(PyExc_RuntimeError, "number of steps must be non-negative");
    dtype type = dt >= 0 ? (dtype)dt : grad_default_float;
    return binding_ok(array_linspace(type, start, end, count, true, &a)) ? tensor_wrap_array(a)
                                                                         : NULL;
}
TENSOR_SIGNATURE(_linspace, 3, 4, "start", "end", "steps", "dtype")
TENSOR_FUNCTION(_linspace, op_linspace)

static PyObject *op_eye(PyObject **v) { /* n, m, dtype */
    int64_t n, m;
    int dt;
    array *a;
    if (!binding_to_int64(v[0], &n) || !tensor_int_arg(v[1], n, &m) ||
        !tensor_dtype_arg(v[2], "eye", &dt) || !binding_start())
        return NULL;
    if (n < 0 || m < 0)
        return PyErr_Format(PyExc_RuntimeError, "%s must be greater or equal to 0, got %lld",
                            n < 0 ? "n" : "m", (long long)(n < 0 ? n : m));
    return binding_ok(array_eye(dt >= 0 ? (dtype)dt : grad_default_float, n, m, 0, &a))
               ? tensor_wrap_array(a)
               : NULL;
}
TENSOR_SIGNATURE(_eye, 1, 3, "n", "m", "dtype")
TENSOR_FUNCTION(_eye, op_eye)

/* ---- random ---- */

static PyObject *bad_std(PyObject *std) {
    return PyErr_Format(PyExc_RuntimeError, "normal expects std >= 0.0, but found std %S", std);
}

/* _random(kind, size, a, b, dtype, generator, requires_grad): rand [a, b), normal(a, b), int
     * [a, b), permutation of a */
static PyObject *op_random(PyObject **v) {
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim, dt;
    array *a = NULL;
    const char *kind = PyUnicode_AsUTF8(v[0]);
    bool meta;
    if (!kind || !tensor_dtype_arg(v[4], kind, &dt) || !tensor_device_arg(v[7], &meta) ||
        !binding_start())
        return NULL;
    random_state *r = tensor_generator_state(v[5]);
    if (!r || !binding_to_shape(v[1], "size", shape, &ndim)) return NULL;
    dtype type = dt >= 0 ? (dtype)dt : *kind == 'i' || *kind == 'p' ? DT_I64 : grad_default_float;
    if (!check_size(shape, ndim, type, kind)) return NULL;
    if (meta) return binding_ok(array_meta(type, shape, ndim, &a)) ? finish_new(a, v[6]) : NULL;
    simt_status s = SIMT_OK;
    array *raw = NULL;
    if (*kind == 'i' || *kind == 'p') {
        int64_t low, high;
        if (!binding_to_int64(v[2], &low) || !tensor_int_arg(v[3], 0, &high)) return NULL;
        bool cast = dtype_is_float(type) || type == DT_BOOL;
        if (*kind == 'i' && low >= high)
            return PyErr_Format(
                PyExc_RuntimeError,
                "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                (long long)low, (long long)high);
        if (*kind == 'p' && low < 0)
            return PyErr_Format(PyExc_RuntimeError, "n must be non-negative, got %lld",
                                (long long)low);
        s = *kind == 'i'
                ? array_random_integers(r, cast ? DT_I64 : type, low, high, shape, ndim, &raw)
                : array_random_permutation(r, low, &raw);
        if (s == SIMT_OK && raw->dt != type) {
            s = array_astype(raw, type, &a);
            array_unref(raw);
        } else
            a = raw;
    } else {
        double x, y;
        if (!tensor_double_arg(v[2], 0, "from", &x) || !tensor_double_arg(v[3], 1, "to", &y))
            return NULL;
        if (!dtype_is_float(type))
            return PyErr_Format(PyExc_RuntimeError, "\"%s\" not implemented for '%s'", kind,
                                dtype_torch_name(type));
        if (*kind == 'n' && !(y >= 0)) return bad_std(v[3]);
        bool half = type == DT_F16 || type == DT_BF16;
        dtype make = half ? DT_F32 : type;
        s = *kind == 'n' ? array_random_normal(r, make, x, y, shape, ndim, &raw)
                         : array_random_uniform(r, make, x, y, shape, ndim, &raw);
        if (s == SIMT_OK && half) {
            s = array_astype(raw, type, &a);
            array_unref(raw);
        } else
            a = raw;
    }
    return binding_ok(s) ? finish_new(a, v[6]) : NULL;
}
TENSOR_SIGNATURE(_random, 2, 8, "kind", "size", "a", "b", "dtype", "generator", "requires_grad",
                 "device")
TENSOR_FUNCTION(_random, op_random)

static bool fits_float(double x, dtype dt) {
    double most = dt == DT_F64 ? DBL_MAX : dt == DT_F16 ? 65504 : FLT_MAX;
    return x >= -most && x <= most;
}

/* _place(tensor just made, device) */
static PyObject *op_place(PyObject **v) {
    bool meta;
    if (!tensor_device_arg(v[1], &meta)) return NULL;
    tensor *t = tensor_arg(v[0], "_place", "input", 1);
    if (!t || !meta) return t ? Py_NewRef(v[0]) : NULL;
    array *a = on_device(array_ref(t->a), true);
    return a ? tensor_wrap_array(a) : NULL;
}
TENSOR_SIGNATURE(_place, 2, 2, "input", "device")
TENSOR_FUNCTION(_place, op_place)

/* x.normal_(mean, std), x.uniform_(from, to): in place */
static PyObject *randomise(PyObject **v, bool normal) {
    tensor *t = tensor_of(v[0]);
    double a, b;
    random_state *r = tensor_generator_state(v[3]);
    if (!r || !tensor_double_arg(v[1], 0, "mean", &a) || !tensor_double_arg(v[2], 1, "std", &b))
        return NULL;
    if (normal && !(b >= 0)) return bad_std(v[2]);
    if (!normal && !(fits_float(a, t->a->dt) && fits_float(b, t->a->dt)))
        return PyErr_Format(PyExc_RuntimeError, "%s is out of bounds for %s",
                            fits_float(a, t->a->dt) ? "to" : "from",
                            t->a->dt == DT_F32 ? "float" : dtype_table[t->a->dt].name);
    if (!normal && a > b)
        return PyErr_Format(
            PyExc_RuntimeError,
            "uniform_ expects to return a [from, to) range, but found from=%S > to=%S",
            v[1] ? v[1] : Py_None, v[2] ? v[2] : Py_None);
    if (!dtype_is_float(t->a->dt))
        return PyErr_Format(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'",
                            normal ? "normal_kernel_cpu" : "check_uniform_bounds",
                            dtype_torch_name(t->a->dt));
    dtype make = t->a->dt == DT_F64 ? DT_F64 : DT_F32;
    array *fresh = NULL;
    simt_status s = grad_check_inplace(t);
    if (s == SIMT_OK && array_is_meta(t->a)) return tensor_same(s, v[0]);
    if (s == SIMT_OK)
        s = normal ? array_random_normal(r, make, a, b, t->a->shape, t->a->ndim, &fresh)
                   : array_random_uniform(r, make, a, b, t->a->shape, t->a->ndim, &fresh);
    operand value = {.a = fresh};
    if (s == SIMT_OK) s = array_assign(t->a, &value, FACE_TORCH);
    array_unref(fresh);
    return tensor_same(s, v[0]);
}
static PyObject *op_normal_(PyObject **v) { return randomise(v, true); }
static PyObject *op_uniform_(PyObject **v) { return randomise(v, false); }
TENSOR_SIGNATURE(normal_, 1, 3, "input", "mean", "std", "generator")
TENSOR_METHOD(normal_, op_normal_)
TENSOR_SIGNATURE(uniform_, 1, 3, "input", "from", "to", "generator")
TENSOR_METHOD(uniform_, op_uniform_)

/* ---- facts ---- */

static PyObject *op_size(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    int axis;
    if (!v[1] || v[1] == Py_None) return tensor_size_object(t->a->shape, t->a->ndim);
    if (!tensor_dim(v[1], t->a->ndim, &axis)) return NULL;
    return t->a->ndim ? PyLong_FromLongLong(t->a->shape[axis]) : tensor_size_object(NULL, 0);
}
TENSOR_SIGNATURE(size, 1, 2, "input", "dim")
TENSOR_METHOD(size, op_size) static PyObject *op_stride(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    int64_t strides[ARRAY_MAX_NDIM];
    int axis;
    for (int i = 0; i < t->a->ndim; i++)
        strides[i] = t->a->strides[i] / (int64_t)dtype_bytes(t->a->dt);
    if (!v[1] || v[1] == Py_None) return binding_from_shape(strides, t->a->ndim);
    return tensor_dim(v[1], t->a->ndim, &axis) ? PyLong_FromLongLong(strides[axis]) : NULL;
}
TENSOR_SIGNATURE(stride, 1, 2, "input", "dim")
TENSOR_METHOD(stride, op_stride) static PyObject *method_dim(PyObject *o, PyObject *unused) {
    return PyLong_FromLong(tensor_of(o)->a->ndim);
}
static PyObject *method_numel(PyObject *o, PyObject *unused) {
    return PyLong_FromLongLong(tensor_of(o)->a->size);
}
static PyObject *function_numel(PyObject *module, PyObject *o) {
    tensor *t = tensor_arg(o, "numel", "input", 1);
    return t ? PyLong_FromLongLong(t->a->size) : NULL;
}
static PyObject *method_element_size(PyObject *o, PyObject *unused) {
    return PyLong_FromSize_t(dtype_bytes(tensor_of(o)->a->dt));
}
static PyObject *method_storage_offset(PyObject *o, PyObject *unused) {
    const array *a = tensor_of(o)->a;
    return PyLong_FromLongLong(a->offset / (int64_t)dtype_bytes(a->dt));
}
static PyObject *op_is_contiguous(PyObject **v) {
    return PyBool_FromLong(array_is_contiguous(tensor_of(v[0])->a));
}
TENSOR_SIGNATURE(is_contiguous, 1, 1, "input", "memory_format")
TENSOR_METHOD(is_contiguous, op_is_contiguous)
static PyObject *method_is_floating_point(PyObject *o, PyObject *unused) {
    return PyBool_FromLong(dtype_is_float(tensor_of(o)->a->dt));
}
static PyObject *function_is_floating_point(PyObject *module, PyObject *o) {
    return tensor_arg(o, "is_floating_point", "input", 1) ? method_is_floating_point(o, NULL)
                                                          : NULL;
}
static PyObject *method_is_complex(PyObject *o, PyObject *unused) { Py_RETURN_FALSE; }
static PyObject *method_data_ptr_body(PyObject *o, PyObject *unused) {
    array *a = tensor_of(o)->a;
    return binding_ok(array_expose(a)) ? PyLong_FromVoidPtr(array_data(a)) : NULL;
}
SECTION_FUNCTION(method_data_ptr, method_data_ptr_body)
static PyObject *method_same_storage(PyObject *o, PyObject *other) {
    return PyBool_FromLong(tensor_check(other) &&
                           tensor_of(o)->a->store == tensor_of(other)->a->store);
}

/* ---- to Python and NumPy ---- */

static PyObject *method_item_body(PyObject *o, PyObject *unused) {
    array *a = tensor_of(o)->a;
    scalar s;
    if (a->size != 1)
        return PyErr_Format(PyExc_RuntimeError,
                            "a Tensor with %lld elements cannot be converted to Scalar",
                            (long long)a->size);
    return binding_ok(array_item(a, &s)) ? binding_from_scalar(s) : NULL;
}
SECTION_FUNCTION(method_item, method_item_body)
static PyObject *method_tolist_body(PyObject *o, PyObject *unused) {
    return binding_tolist(tensor_of(o)->a);
}
SECTION_FUNCTION(method_tolist, method_tolist_body)

static PyObject *op_numpy(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    bool force;
    if (!tensor_bool_arg(v[1], false, &force)) return NULL;
    if (t->requires_grad && !force)
        return PyErr_Format(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. "
                                                "Use tensor.detach().numpy() instead.");
    return binding_numpy_view(t->a, true);
}
TENSOR_SIGNATURE(numpy, 1, 1, "input", "force")
TENSOR_METHOD(numpy, op_numpy) static PyObject *op___array__(PyObject **v) { /* dtype, copy */
    PyObject *r = op_numpy((PyObject *[2]){v[0], NULL});
    if (!r) return NULL;
    PyObject *cast = r;
    if (v[1] && v[1] != Py_None) {
        cast = PyObject_CallMethod(r, "astype", "(O)", v[1]);
        Py_DECREF(r);
    }
    if (cast && v[2] == Py_True && cast == r) {
        PyObject *copy = PyObject_CallMethod(cast, "copy", NULL);
        Py_DECREF(cast);
        return copy;
    }
    return cast;
}
TENSOR_SIGNATURE(__array__, 1, 2, "input", "dtype", "copy")
TENSOR_METHOD(__array__, op___array__) static PyObject *op___dlpack__(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    if (t->requires_grad)
        return PyErr_Format(PyExc_BufferError,
                            "Can't export tensors that require gradient, use tensor.detach()");
    return binding_to_dlpack(t->a, false, v[2], v[3], v[4]);
}
TENSOR_SIGNATURE(__dlpack__, 1, 1, "input", "stream", "max_version", "dl_device", "copy")
TENSOR_METHOD(__dlpack__, op___dlpack__)
static PyObject *method___dlpack_device__(PyObject *o, PyObject *unused) {
    return Py_BuildValue("(ii)", 1, 0);
}

/* ---- casts and copies ---- */

PyObject *tensor_cast_object(PyObject *o, dtype dt, bool copy) {
    tensor *t = tensor_of(o), *out = NULL;
    if (t->a->dt == dt && !copy) return Py_NewRef(o);
    return tensor_result(t->a->dt == dt ? grad_clone(t, &out) : grad_cast(t, dt, &out), out);
}

#define CASTS(X)         \
    X(float, DT_F32)     \
    X(double, DT_F64)    \
    X(half, DT_F16)      \
    X(bfloat16, DT_BF16) \
    X(int, DT_I32) X(long, DT_I64) X(short, DT_I16) X(char, DT_I8) X(byte, DT_U8) X(bool, DT_BOOL)
#define X(name, dt)                                                                                \
    static PyObject *cast_##name(PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw) { \
        return IN_SECTION(tensor_cast_object(o, dt, false));                                       \
    }
CASTS(X)
#undef X

/* given: a device was. */
static PyObject *to_device(PyObject *o, dtype dt, bool given, bool meta, bool copy) {
    tensor *t = tensor_of(o);
    array *a;
    if (!given || meta == array_is_meta(t->a)) return tensor_cast_object(o, dt, copy);
    if (!meta) return no_data();
    return binding_ok(array_meta(dt, t->a->shape, t->a->ndim, &a)) ? tensor_wrap_array(a) : NULL;
}

/* to(dtype), to(device), to(other), to(device, dtype), non_blocking, copy */
static PyObject *op_to(PyObject **v) {
    PyObject *device = v[4], *type = v[5];
    bool copy;
    if (!tensor_bool_arg(v[6] ? v[6]
                         : v[3] && PyBool_Check(v[3]) && Py_IS_TYPE(v[1], &tensor_dtype_type)
                             ? v[3]
                             : NULL,
                         false, &copy))
        return NULL;
    if (v[1] && tensor_check(v[1])) {
        bool there = array_is_meta(tensor_of(v[1])->a);
        return to_device(v[0], tensor_of(v[1])->a->dt, true, there, copy);
    }
    if (v[1] && Py_IS_TYPE(v[1], &tensor_dtype_type))
        type = v[1];
    else if (v[1] && v[1] != Py_None)
        device = v[1];
    if (v[2] && Py_IS_TYPE(v[2], &tensor_dtype_type)) type = v[2];
    int dt;
    bool meta;
    if (!tensor_device_arg(device, &meta) || !tensor_dtype_arg(type, "to", &dt)) return NULL;
    return to_device(v[0], dt >= 0 ? (dtype)dt : tensor_of(v[0])->a->dt,
                     device && device != Py_None, meta, copy);
}
TENSOR_SIGNATURE(to, 1, 4, "input", "_1", "_2", "_3", "device", "dtype", "copy", "non_blocking",
                 "other", "memory_format")
TENSOR_METHOD(to, op_to)

static PyObject *op_type(PyObject **v) {
    tensor *t = tensor_of(v[0]);
    if (!v[1] || v[1] == Py_None) return PyUnicode_FromString(tensor_type_name(t));
    if (PyUnicode_Check(v[1])) {
        for (int i = 0; i < DT_COUNT; i++) {
            char name[40];
            snprintf(name, sizeof name, "torch.%sTensor", dtype_torch_name((dtype)i));
            if (PyUnicode_CompareWithASCIIString(v[1], name) == 0)
                return tensor_cast_object(v[0], (dtype)i, false);
        }
        return PyErr_Format(PyExc_ValueError, "invalid type: '%U'", v[1]);
    }
    PyObject *typed = NULL; /* torch.FloatTensor has one */
    if (PyType_Check(v[1]) && binding_attribute(v[1], "dtype", &typed) < 0) return NULL;
    int dt;
    bool ok = tensor_dtype_arg(typed ? typed : v[1], "type", &dt);
    Py_XDECREF(typed);
    return ok ? tensor_cast_object(v[0], (dtype)dt, false) : NULL;
}
TENSOR_SIGNATURE(type, 1, 3, "input", "dtype", "non_blocking")
TENSOR_METHOD(type, op_type) static PyObject *op_type_as(PyObject **v) {
    tensor *other = tensor_arg(v[1], "type_as", "other", 1);
    return other ? tensor_cast_object(v[0], other->a->dt, false) : NULL;
}
TENSOR_SIGNATURE(type_as, 2, 2, "input", "other")
TENSOR_METHOD(type_as, op_type_as)

static PyObject *method_cpu(PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
    return array_is_meta(tensor_of(o)->a) ? no_data() : Py_NewRef(o);
}
static PyObject *method_cuda(PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
    PyObject *cuda = PyUnicode_FromString("cuda");
    if (cuda) tensor_check_device(cuda);
    Py_XDECREF(cuda);
    return NULL;
}
static PyObject *op_clone(PyObject **v) {
    SELF(v, "clone");
    tensor *out = NULL;
    return tensor_result(grad_clone(self, &out), out);
}
TENSOR_OP(clone, op_clone, 1, 1, "input", "memory_format")
static PyObject *op_contiguous(PyObject **v) {
    tensor *t = tensor_of(v[0]), *out = NULL;
    if (array_is_contiguous(t->a)) return Py_NewRef(v[0]);
    return tensor_result(grad_contiguous(t, &out), out);
}
TENSOR_SIGNATURE(contiguous, 1, 1, "input", "memory_format")
TENSOR_METHOD(contiguous, op_contiguous)

/* ---- dtypes ---- */

static PyObject *promote_types(PyObject *module, PyObject *args) {
    PyObject *x, *y;
    int a, b;
    if (!PyArg_ParseTuple(args, "OO:promote_types", &x, &y)) return NULL;
    if (!tensor_dtype_arg(x, "promote_types", &a) || !tensor_dtype_arg(y, "promote_types", &b))
        return NULL;
    if (a < 0 || b < 0)
        return PyErr_Format(PyExc_TypeError, "promote_types() takes two dtypes, not None");
    const graph_type in[2] = {{.dt = (dtype)a}, {.dt = (dtype)b}};
    dtype compute, result;
    return binding_ok(
               graph_dtypes(OP_ADD, FACE_TORCH, in, 2, grad_default_float, &compute, &result))
               ? tensor_dtype_object(result)
               : NULL;
}
static PyObject *result_type(PyObject *module, PyObject *args) {
    graph_type in[2];
    for (int i = 0; i < 2; i++) {
        tensor_value v;
        if (PyTuple_GET_SIZE(args) != 2)
            return PyErr_Format(PyExc_TypeError, "result_type() takes 2 arguments");
        if (!tensor_need_operand(PyTuple_GET_ITEM(args, i), "result_type", &v)) return NULL;
        const array *a = v.v.t ? v.v.t->a : NULL;
        dtype weak = v.v.s.kind == 'F' ? DT_F64 : v.v.s.kind == 'B' ? DT_BOOL : DT_I64;
        in[i] = a ? (graph_type){a->dt, false, a->ndim == 0} : (graph_type){weak, true, false};
        tensor_operand_done(&v);
    }
    dtype compute, result;
    return binding_ok(
               graph_dtypes(OP_ADD, FACE_TORCH, in, 2, grad_default_float, &compute, &result))
               ? tensor_dtype_object(result)
               : NULL;
}
static PyObject *get_default_dtype(PyObject *module, PyObject *unused) {
    return tensor_dtype_object(grad_default_float);
}
static PyObject *set_default_dtype(PyObject *module, PyObject *o) {
    int dt;
    if (!tensor_dtype_arg(o, "set_default_dtype", &dt)) return NULL;
    if (dt < 0 || !dtype_is_float((dtype)dt))
        return PyErr_Format(PyExc_TypeError,
                            "only floating-point types are supported as the default type");
    grad_default_float = (dtype)dt;
    Py_RETURN_NONE;
}
static PyObject *evaluate_all(PyObject *module, PyObject *unused) {
    if (!binding_ok(array_evaluate_all())) return NULL;
    Py_RETURN_NONE;
}

#define NOARGS(name, function) \
    { name, function, METH_NOARGS, NULL }
PyMethodDef tensor_make_methods[] = {
#define X(name, dt) FAST(#name, cast_##name),
    CASTS(X)
#undef X
        METHOD_ENTRY(normal_),
    METHOD_ENTRY(uniform_),
    METHOD_ENTRY(size),
    METHOD_ENTRY(stride),
    NOARGS("dim", method_dim),
    NOARGS("ndimension", method_dim),
    NOARGS("numel", method_numel),
    NOARGS("nelement", method_numel),
    NOARGS("element_size", method_element_size),
    NOARGS("storage_offset", method_storage_offset),
    METHOD_ENTRY(is_contiguous),
    NOARGS("is_floating_point", method_is_floating_point),
    NOARGS("is_complex", method_is_complex),
    NOARGS("data_ptr", method_data_ptr),
    {"_same_storage", method_same_storage, METH_O, NULL},
    NOARGS("item", method_item),
    NOARGS("_to_bytes", method__to_bytes),
    NOARGS("tolist", method_tolist),
    METHOD_ENTRY(numpy),
    METHOD_ENTRY(__array__),
    METHOD_ENTRY(__dlpack__),
    NOARGS("__dlpack_device__", method___dlpack_device__),
    METHOD_ENTRY(to),
    METHOD_ENTRY(type),
    METHOD_ENTRY(type_as),
    FAST("cpu", method_cpu),
    FAST("pin_memory", method_cpu),
    FAST("cuda", method_cuda),
    METHOD_ENTRY(clone),
    METHOD_ENTRY(contiguous),
    {NULL}};
PyMethodDef tensor_make_functions[] = {
    FUNCTION_ENTRY(tensor),
    FUNCTION_ENTRY(as_tensor),
    {"from_numpy", from_numpy, METH_O, NULL},
    {"_from_bytes", from_bytes, METH_VARARGS, NULL},
    {"from_dlpack", from_dlpack, METH_O, NULL},
    FUNCTION_ENTRY(_full),
    FUNCTION_ENTRY(_arange),
    FUNCTION_ENTRY(_linspace),
    FUNCTION_ENTRY(_eye),
    FUNCTION_ENTRY(_random),
    FUNCTION_ENTRY(_place),
    {"numel", function_numel, METH_O, NULL},
    {"is_floating_point", function_is_floating_point, METH_O, NULL},
    FUNCTION_ENTRY(clone),
    {"promote_types", promote_types, METH_VARARGS, NULL},
    {"result_type", result_type, METH_VARARGS, NULL},
    NOARGS("get_default_dtype", get_default_dtype),
    {"set_default_dtype", set_default_dtype, METH_O, NULL},
    NOARGS("_evaluate_all", evaluate_all),
    {NULL}};
