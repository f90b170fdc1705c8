/* Making tensors: of data, of memory that others have, of files, of a rule, of random numbers. */
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

PyMethodDef tensor_make_methods[] = {METHOD_ENTRY(normal_), METHOD_ENTRY(uniform_), {NULL}};
PyMethodDef tensor_make_functions[] = {FUNCTION_ENTRY(tensor),
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
                                       {NULL}};
