/* Methods of cupy.ndarray. Arguments are those of CuPy's. */
#include "binding/common/binding.h"

#include <string.h>

#define METHOD(name)                                                                        \
    static PyObject *body_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs,   \
                                 PyObject *kwnames);                                        \
    static PyObject *method_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, \
                                   PyObject *kwnames) {                                     \
        return IN_SECTION(body_##name(self, args, nargs, kwnames));                         \
    }                                                                                       \
    static PyObject *body_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs,   \
                                 PyObject *kwnames)
#define SELF (((pyarray *)self)->a)

static PyObject *wrap_view(PyObject *of, simt_status status, array *const *made) {
    return binding_ok(status) ? binding_wrap_view(of, *made) : NULL;
}

/* made is set by the call whose status is the first argument. */
static PyObject *wrap(simt_status status, array *const *made) {
    return binding_ok(status) ? binding_wrap(*made) : NULL;
}

/* ---- shape ---- */

METHOD(reshape) {
    char order = 'C';
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    array *made = NULL;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "order") != 0) {
            PyErr_Format(PyExc_TypeError, "reshape() got an unexpected keyword argument '%U'",
                         PyTuple_GET_ITEM(kwnames, k));
            return NULL;
        }
        if (!binding_to_order(args[nargs + k], 'C', &order)) return NULL;
    }
    if (order == 'K') {
        PyErr_SetString(PyExc_ValueError, "order 'K' is not permitted for reshaping");
        return NULL;
    }
    if (!binding_args_to_shape(args, nargs, "shape", shape, &ndim)) return NULL;
    return wrap_view(self, array_reshape_order(SELF, shape, ndim, order, &made), &made);
}

METHOD(transpose) {
    array *a = SELF, *made = NULL;
    int64_t given[ARRAY_MAX_NDIM];
    int n, axes[ARRAY_MAX_NDIM];
    if (nargs == 0 || (nargs == 1 && args[0] == Py_None))
        return wrap_view(self, array_transpose(a, NULL, &made), &made);
    if (!binding_args_to_shape(args, nargs, "axes", given, &n)) return NULL;
    if (n != a->ndim) {
        PyErr_SetString(PyExc_ValueError, "axes don't match array");
        return NULL;
    }
    uint32_t seen = 0;
    for (int d = 0; d < n; d++) {
        int64_t axis = given[d] < 0 ? given[d] + n : given[d];
        if (axis < 0 || axis >= n) {
            binding_raise_axis(given[d], n, FACE_NUMPY);
            return NULL;
        }
        if (seen >> axis & 1) {
            PyErr_SetString(PyExc_ValueError, "repeated axis in transpose");
            return NULL;
        }
        seen |= 1u << axis;
        axes[d] = (int)axis;
    }
    return wrap_view(self, array_transpose(a, axes, &made), &made);
}

METHOD(swapaxes) {
    PARSE("swapaxes", 2, 2, "axis1", "axis2")
    array *a = SELF, *made = NULL;
    int axes[ARRAY_MAX_NDIM], x, y;
    if (!binding_to_axis(values[0], a->ndim, FACE_NUMPY, &x) ||
        !binding_to_axis(values[1], a->ndim, FACE_NUMPY, &y))
        return NULL;
    for (int d = 0; d < a->ndim; d++) axes[d] = d;
    axes[x] = y;
    axes[y] = x;
    return wrap_view(self, array_transpose(a, axes, &made), &made);
}

METHOD(squeeze) {
    PARSE("squeeze", 1, 0, "axis")
    array *a = SELF, *made = NULL;
    uint32_t mask;
    bool all;
    if (!binding_to_axes(values[0], a->ndim, FACE_NUMPY, &mask, &all)) return NULL;
    for (int d = 0; d < a->ndim; d++) {
        if (!(mask >> d & 1) || a->shape[d] == 1) continue;
        if (!all) {
            PyErr_SetString(PyExc_ValueError,
                            "cannot select an axis to squeeze out which has size not equal to one");
            return NULL;
        }
        mask &= ~(1u << d);
    }
    return wrap_view(self, array_squeeze(a, mask, &made), &made);
}

METHOD(ravel) {
    PARSE("ravel", 1, 0, "order")
    char order;
    array *made = NULL;
    if (!binding_to_order(values[0], 'C', &order)) return NULL;
    return wrap_view(self, array_ravel_order(SELF, order, &made), &made);
}

METHOD(flatten) {
    PARSE("flatten", 1, 0, "order")
    char order;
    array *line, *made = NULL;
    if (!binding_to_order(values[0], 'C', &order) ||
        !binding_ok(array_ravel_order(SELF, order, &line)))
        return NULL;
    if (line->store != SELF->store) return binding_wrap(line);
    simt_status status = array_copy(line, &made);
    array_unref(line);
    return wrap(status, &made);
}

METHOD(view) {
    PARSE("view", 1, 0, "dtype")
    array *a = SELF, *made = NULL;
    bool has;
    dtype dt = a->dt;
    if (!binding_to_dtype_or_none(values[0], &has, &dt)) return NULL;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    int64_t old = (int64_t)dtype_bytes(a->dt), new = (int64_t)dtype_bytes(dt);
    memcpy(shape, a->shape, sizeof shape);
    memcpy(strides, a->strides, sizeof strides);
    if (old != new) {
        int last = a->ndim - 1;
        if (last < 0 || strides[last] != old || shape[last] * old % new != 0) {
            PyErr_SetString(PyExc_ValueError, "When changing to a dtype of another size, the last "
                                              "axis must be contiguous and its bytes "
                                              "a multiple of the new size");
            return NULL;
        }
        shape[last] = shape[last] * old / new;
        strides[last] = new;
    }
    return wrap_view(self, array_view_strided(a, dt, shape, strides, a->ndim, 0, &made), &made);
}

METHOD(repeat) {
    PARSE("repeat", 2, 1, "repeats", "axis")
    PyObject *module = PyImport_ImportModule("simt.cupy");
    PyObject *result = module ? PyObject_CallMethod(module, "repeat", "OOO", self, values[0],
                                                    values[1] ? values[1] : Py_None)
                              : NULL;
    Py_XDECREF(module);
    return result;
}

/* ---- copies and conversions ---- */

METHOD(astype) {
    PARSE("astype", 5, 1, "dtype", "order", "casting", "subok", "copy")
    dtype dt;
    char order, casting;
    array *a = SELF, *made = NULL;
    if (!binding_to_dtype(values[0], &dt) || !binding_to_order(values[1], 'K', &order) ||
        !binding_to_casting(values[2], &casting))
        return NULL;
    if (values[2] && !graph_can_cast(a->dt, dt, casting)) {
        PyErr_Format(PyExc_TypeError,
                     "Cannot cast array data from dtype('%s') to dtype('%s') according to the rule "
                     "'%s'",
                     dtype_table[a->dt].name, dtype_table[dt].name, graph_casting_name(casting));
        return NULL;
    }
    int copy = values[4] ? binding_truth(values[4]) : 1;
    if (copy < 0) return NULL;
    bool lies = order == 'C' ? array_is_contiguous(a) : order != 'F' || array_is_f_contiguous(a);
    if (order == 'A') lies = array_is_contiguous(a) || array_is_f_contiguous(a);
    if (!copy && dt == a->dt && lies) return Py_NewRef(self);
    return wrap(array_astype_order(a, dt, order, &made), &made);
}

METHOD(copy) {
    PARSE("copy", 1, 0, "order")
    char order;
    array *made = NULL;
    if (!binding_to_order(values[0], 'C', &order)) return NULL;
    return wrap(array_astype_order(SELF, SELF->dt, order, &made), &made);
}

METHOD(fill) {
    PARSE("fill", 1, 1, "value")
    operand value;
    int done = binding_to_operand(values[0], FACE_NUMPY, &value);
    if (done == 0)
        PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(values[0]));
    if (done <= 0) return NULL;
    bool ok = binding_ok(array_assign(SELF, &value, FACE_NUMPY));
    binding_operand_done(&value);
    if (!ok) return NULL;
    return Py_NewRef(Py_None);
}

/* A NumPy array that lies in order F or K: of the view that is in C order, turned. */
static PyObject *get_in_order(array *a, char order) {
    int axes[ARRAY_MAX_NDIM];
    array *view;
    for (int d = 0; d < a->ndim; d++) axes[d] = a->ndim - 1 - d;
    if (order == 'K' && !array_memory_order(&a, 1, a->ndim, axes)) return binding_to_numpy(a);
    if (!binding_ok(array_transpose(a, axes, &view))) return NULL;
    PyObject *turned = binding_to_numpy(view), *back = PyTuple_New(a->ndim);
    array_unref(view);
    for (int d = 0; back && d < a->ndim; d++) PyTuple_SET_ITEM(back, axes[d], PyLong_FromLong(d));
    PyObject *made = turned && back ? PyObject_CallMethod(turned, "transpose", "(O)", back) : NULL;
    Py_XDECREF(turned);
    Py_XDECREF(back);
    return made;
}

METHOD(get) {
    PARSE("get", 4, 0, "stream", "order", "out", "blocking")
    char order;
    if (!binding_to_order(values[1], 'C', &order)) return NULL;
    if (order == 'A') order = array_is_f_contiguous(SELF) && !array_is_contiguous(SELF) ? 'F' : 'C';
    PyObject *made = order == 'C' ? binding_to_numpy(SELF) : get_in_order(SELF, order);
    if (!made || !values[2] || values[2] == Py_None) return made;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *done = numpy ? PyObject_CallMethod(numpy, "copyto", "OO", values[2], made) : NULL;
    Py_XDECREF(numpy);
    Py_DECREF(made);
    Py_XDECREF(done);
    return done ? Py_NewRef(values[2]) : NULL;
}

METHOD(set) {
    PARSE("set", 2, 1, "arr", "stream")
    operand value = {0};
    array *a = SELF;
    if (!binding_to_array(values[0], true, a->dt, FACE_NUMPY, DT_F64, &value.a)) return NULL;
    bool same = value.a->ndim == a->ndim &&
                memcmp(value.a->shape, a->shape, sizeof a->shape[0] * (size_t)a->ndim) == 0;
    if (!same) PyErr_SetString(PyExc_ValueError, "Shape mismatch. Old shape and new shape differ");
    bool ok = same && binding_ok(array_assign(a, &value, FACE_NUMPY));
    array_unref(value.a);
    if (!ok) return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *tolist(PyObject *self, PyObject *unused) { return binding_tolist(SELF); }
SECTION_FUNCTION(method_tolist, tolist)

METHOD(item) {
    array *a = SELF, *one = NULL;
    scalar s;
    if (nargs == 0) {
        if (a->size == 1) return binding_ok(array_item(a, &s)) ? binding_from_scalar(s) : NULL;
        PyErr_SetString(PyExc_ValueError, "can only convert an array of size 1 to a Python scalar");
        return NULL;
    }
    int64_t index[ARRAY_MAX_NDIM], flat = -1;
    int n;
    if (!binding_args_to_shape(args, nargs, "index", index, &n)) return NULL;
    PyObject *key = n == 1 ? PyLong_FromLongLong(index[0]) : binding_from_shape(index, n);
    array *line = NULL;
    bool ok = key && (n > 1 || a->ndim <= 1 || binding_ok(array_reshape(a, &flat, 1, &line))) &&
              binding_get_item(line ? line : a, key, FACE_NUMPY, &one) &&
              binding_ok(array_item(one, &s));
    array_unref(line);
    array_unref(one);
    Py_XDECREF(key);
    return ok ? binding_from_scalar(s) : NULL;
}

/* ---- reductions ---- */

static PyObject *reduce(reduction kind, PyObject *self, PyObject **v) {
    return binding_reduce(kind, SELF, v[0], v[1], v[2], v[3], v[4]);
}

#define SUM_LIKE(name, kind)                                                 \
    METHOD(name) {                                                           \
        PARSE(#name, 4, 0, "axis", "dtype", "out", "keepdims")               \
        PyObject *v[5] = {values[0], values[1], values[2], NULL, values[3]}; \
        return reduce(REDUCE_##kind, self, v);                               \
    }
#define MAX_LIKE(name, kind)                                            \
    METHOD(name) {                                                      \
        PARSE(#name, 3, 0, "axis", "out", "keepdims")                   \
        PyObject *v[5] = {values[0], NULL, values[1], NULL, values[2]}; \
        return reduce(REDUCE_##kind, self, v);                          \
    }
#define VAR_LIKE(name, kind)                                           \
    METHOD(name) {                                                     \
        PARSE(#name, 5, 0, "axis", "dtype", "out", "ddof", "keepdims") \
        return reduce(REDUCE_##kind, self, values);                    \
    }
SUM_LIKE(sum, SUM)
SUM_LIKE(prod, PROD)
SUM_LIKE(mean, MEAN)
MAX_LIKE(max, MAX)
MAX_LIKE(min, MIN)
MAX_LIKE(any, ANY)
MAX_LIKE(all, ALL)
MAX_LIKE(argmax, ARGMAX)
MAX_LIKE(argmin, ARGMIN)
VAR_LIKE(var, VAR)
VAR_LIKE(std, STD)

static simt_status cumsum_as_it_lies(array *a, int axis, array **out) {
    int axes[ARRAY_MAX_NDIM], turned = 0;
    if (!array_memory_order(&a, 1, a->ndim, axes))
        return array_cumsum(a, axis, false, FACE_NUMPY, out);
    while (axes[turned] != axis) turned++;
    array *view, *made = NULL;
    SIMT_TRY(array_transpose(a, axes, &view));
    simt_status status = array_cumsum(view, turned, false, FACE_NUMPY, &made);
    array_unref(view);
    return array_turn_back(status, made, axes, out);
}

METHOD(cumsum) {
    PARSE("cumsum", 3, 0, "axis", "dtype", "out")
    array *a = SELF, *line = NULL, *cast = NULL, *made = NULL;
    int axis = 0;
    int64_t flat = -1;
    bool has;
    dtype dt;
    if (!binding_to_dtype_or_none(values[1], &has, &dt)) return NULL;
    if (values[0] && values[0] != Py_None) {
        if (!binding_to_axis(values[0], a->ndim, FACE_NUMPY, &axis)) return NULL;
    } else if (a->ndim != 1) {
        if (!binding_ok(array_reshape(a, &flat, 1, &line))) return NULL;
        a = line;
    }
    bool ok = !has || binding_ok(array_astype_order(a, dt, 'K', &cast));
    ok = ok && binding_ok(cumsum_as_it_lies(cast ? cast : a, axis, &made));
    if (ok && has && made->dt != dt) {
        array *narrow = NULL;
        ok = binding_ok(array_astype_order(made, dt, 'K', &narrow));
        array_unref(made);
        made = narrow;
    }
    array_unref(line);
    array_unref(cast);
    return ok ? binding_into_out(made, values[2]) : NULL;
}

METHOD(tobytes) {
    PARSE("tobytes", 1, 0, "order")
    char order;
    array *line;
    if (!binding_to_order(values[0], 'C', &order) ||
        !binding_ok(array_ravel_order(SELF, order, &line)))
        return NULL;
    PyObject *bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size_t)line->size * dtype_bytes(line->dt)));
    if (bytes && !binding_ok(array_copy_out(line, PyBytes_AS_STRING(bytes)))) Py_CLEAR(bytes);
    array_unref(line);
    return bytes;
}

static PyObject *method_bytes(PyObject *self, PyObject *unused) {
    return method_tobytes(self, NULL, 0, NULL);
}

/* ---- elements ---- */

/* A Python integer beyond all of the array's type on the side where it clips nothing is no bound. */
static bool bounds_nothing(PyObject *o, dtype dt, bool low) {
    operand value;
    if (!o || o == Py_None) return true;
    if (!PyLong_CheckExact(o) || !dtype_is_integer(dt)) return false;
    if (binding_to_operand(o, FACE_NUMPY, &value) <= 0)
        return binding_do_without(), false; /* clipping says so again */
    bool below = value.s.kind == 'I' && value.s.i < 0;
    return !binding_integer_fits(value.s, dt) && below == low;
}

METHOD(clip) {
    PARSE("clip", 3, 0, "min", "max", "out")
    bool low = !bounds_nothing(values[0], SELF->dt, true),
         high = !bounds_nothing(values[1], SELF->dt, false);
    PyObject *objects[3] = {self, values[0], values[1]};
    if ((!values[0] || values[0] == Py_None) && (!values[1] || values[1] == Py_None)) {
        PyErr_SetString(PyExc_ValueError, "array_clip: must set either max or min");
        return NULL;
    }
    if (low && high) return binding_elementwise(OP_CLIP, objects, 3, values[2], NULL);
    if (high) objects[1] = values[1];
    if (!low && !high) {
        array *made = NULL;
        return binding_ok(array_astype_order(SELF, SELF->dt, 'K', &made))
                   ? binding_into_out(made, values[2])
                   : NULL;
    }
    return binding_elementwise(high ? OP_MINIMUM : OP_MAXIMUM, objects, 2, values[2], NULL);
}

METHOD(round) {
    PARSE("round", 2, 0, "decimals", "out")
    int64_t decimals = 0;
    if (values[0] && !binding_to_int64(values[0], &decimals)) return NULL;
    array *a = SELF;
    if (decimals >= 0 && !dtype_is_float(a->dt)) {
        array *made = NULL; /* of bool NumPy rounds a float16 */
        dtype dt = a->dt == DT_BOOL ? DT_F16 : a->dt;
        return binding_ok(array_astype_order(a, dt, 'K', &made)) ? binding_into_out(made, values[1])
                                                                 : NULL;
    }
    if (decimals == 0) return binding_elementwise(OP_RINT, &self, 1, values[1], NULL);
    double factor = 1;
    for (int i = 0; i < 400 && (decimals < 0 ? -i > decimals : i < decimals); i++) factor *= 10;
    PyObject *f = PyFloat_FromDouble(factor), *scaled = NULL, *whole = NULL, *result = NULL;
    array_op first = decimals > 0 ? OP_MULTIPLY : OP_DIVIDE,
             second = decimals > 0 ? OP_DIVIDE : OP_MULTIPLY;
    if (f) scaled = binding_elementwise(first, (PyObject *[]){self, f}, 2, NULL, NULL);
    if (scaled) whole = binding_elementwise(OP_RINT, &scaled, 1, NULL, NULL);
    if (whole) result = binding_elementwise(second, (PyObject *[]){whole, f}, 2, NULL, NULL);
    Py_XDECREF(f);
    Py_XDECREF(scaled);
    Py_XDECREF(whole);
    if (!result) return NULL;
    array *made = NULL;
    bool ok = binding_ok(array_astype_order(((pyarray *)result)->a, a->dt, 'K', &made));
    Py_DECREF(result);
    return ok ? binding_into_out(made, values[1]) : NULL;
}

/* Positions along an axis of n elements: integers, by mode raise as they are, by wrap and clip inside. */
static bool take_index(PyObject *o, PyObject *mode, int64_t n, array **out) {
    array *given, *whole = NULL;
    bool wraps = binding_is_text(mode, "wrap"), clips = binding_is_text(mode, "clip");
    if (mode && mode != Py_None && !wraps && !clips && !binding_is_text(mode, "raise")) {
        PyErr_Format(PyExc_ValueError,
                     "clipmode must be one of 'clip', 'raise', or 'wrap' (got %R)", mode);
        return false;
    }
    if (!binding_to_array(o, false, DT_I64, FACE_NUMPY, DT_F64, &given)) return false;
    bool ok = !dtype_is_float(given->dt) || given->size == 0;
    if (!ok)
        PyErr_Format(PyExc_TypeError,
                     "Cannot cast array data from dtype('%s') to dtype('int64') according to the "
                     "rule 'safe'",
                     dtype_table[given->dt].name);
    ok = ok && binding_ok(array_astype(given, DT_I64, &whole));
    array_unref(given);
    if (!ok || (!wraps && !clips) || n == 0) return *out = whole, ok;
    op_options o_int = {.face = FACE_NUMPY, .default_float = DT_F64};
    operand in[3] = {{.a = whole},
                     {.s = {.kind = 'I', .i = wraps ? n : 0}, .weak = true},
                     {.s = {.kind = 'I', .i = n - 1}, .weak = true}};
    ok = binding_ok(
        array_elementwise(wraps ? OP_REMAINDER : OP_CLIP, in, wraps ? 2 : 3, &o_int, out));
    array_unref(whole);
    return ok;
}

METHOD(take) {
    PARSE("take", 4, 1, "indices", "axis", "out", "mode")
    array *a = SELF, *line = NULL, *index = NULL, *made = NULL;
    int axis = 0;
    int64_t flat = -1;
    if (values[1] && values[1] != Py_None) {
        if (!binding_to_axis(values[1], a->ndim, FACE_NUMPY, &axis)) return NULL;
    } else {
        if (!binding_ok(array_reshape(a, &flat, 1, &line))) return NULL;
        a = line;
    }
    bool ok = take_index(values[0], values[3], a->ndim ? a->shape[axis] : 1, &index) &&
              binding_ok(array_take(a, index, axis, 0, &made));
    array_unref(line);
    array_unref(index);
    return ok ? binding_into_out(made, values[2]) : NULL;
}

static PyObject *nonzero(PyObject *self, PyObject *unused) {
    array *a = SELF, *found[ARRAY_MAX_NDIM];
    if (a->ndim == 0) {
        PyErr_SetString(PyExc_ValueError, "Calling nonzero on 0d arrays is not allowed. Use "
                                          "np.atleast_1d(scalar).nonzero() instead.");
        return NULL;
    }
    if (!binding_ok(array_nonzero(a, found))) return NULL;
    PyObject *tuple = PyTuple_New(a->ndim);
    for (int d = 0; d < a->ndim; d++) {
        PyObject *one = binding_wrap(found[d]);
        if (tuple && one)
            PyTuple_SET_ITEM(tuple, d, one);
        else {
            Py_XDECREF(one);
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}
SECTION_FUNCTION(method_nonzero, nonzero)

METHOD(dot) {
    PARSE("dot", 2, 1, "b", "out")
    operand b;
    array *made = NULL;
    int done = binding_to_operand(values[0], FACE_NUMPY, &b);
    if (done == 0)
        PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(values[0]));
    if (done <= 0) return NULL;
    if (!b.a)
        return binding_elementwise(OP_MULTIPLY, (PyObject *[]){self, values[0]}, 2, values[1],
                                   NULL);
    bool ok = binding_ok(array_dot(SELF, b.a, &made));
    array_unref(b.a);
    return ok ? binding_dot_into(made, values[1]) : NULL;
}

METHOD(dlpack) {
    PARSE("__dlpack__", 0, 0, "stream", "max_version", "dl_device", "copy")
    return binding_to_dlpack(SELF, false, values[1], values[2], values[3]);
}

static PyObject *method_dlpack_device(PyObject *self, PyObject *unused) {
    return Py_BuildValue("(ii)", 1, 0);
}

static PyObject *deepcopy(PyObject *self, PyObject *memo) {
    array *made = NULL;
    return wrap(array_copy(SELF, &made), &made);
}
SECTION_FUNCTION(method_deepcopy, deepcopy)

#define FAST(name) \
    { #name, (PyCFunction)(void (*)(void))method_##name, METH_FASTCALL | METH_KEYWORDS, NULL }
PyMethodDef binding_ndarray_methods[] = {
    FAST(reshape),
    FAST(transpose),
    FAST(swapaxes),
    FAST(squeeze),
    FAST(ravel),
    FAST(flatten),
    FAST(view),
    FAST(repeat),
    FAST(astype),
    FAST(copy),
    FAST(fill),
    FAST(get),
    FAST(set),
    FAST(item),
    FAST(sum),
    FAST(prod),
    FAST(mean),
    FAST(max),
    FAST(min),
    FAST(any),
    FAST(all),
    FAST(argmax),
    FAST(argmin),
    FAST(var),
    FAST(std),
    FAST(cumsum),
    FAST(clip),
    FAST(round),
    FAST(take),
    FAST(dot),
    {"__round__", (PyCFunction)(void (*)(void))method_round, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))method_dlpack, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", method_dlpack_device, METH_NOARGS, NULL},
    {"__copy__", method_deepcopy, METH_NOARGS, NULL},
    {"__deepcopy__", method_deepcopy, METH_O, NULL},
    FAST(tobytes),
    {"__bytes__", method_bytes, METH_NOARGS, NULL},
    {"tolist", method_tolist, METH_NOARGS, NULL},
    {"nonzero", method_nonzero, METH_NOARGS, NULL},
    {NULL},
};
