/* Functions of simt._core that make arrays: of objects, filled, counting. */
#include "binding/array/functions.h"

/* Memory of the device is shared when no copy is asked for. */
static bool array_of_object(PyObject *o, bool has, dtype dt, bool copy, array **out) {
    bool may_share = !copy && !binding_is_array(o) && !PyObject_CheckBuffer(o) &&
                     !PyList_CheckExact(o) && !PyTuple_CheckExact(o) && !PyLong_Check(o) &&
                     !PyFloat_Check(o);
    int shared = may_share ? binding_share_device(o, out) : 0;
    if (shared == 0) return binding_to_array(o, has, dt, FACE_NUMPY, DT_F64, out);
    if (shared < 0 || !has || (*out)->dt == dt) return shared > 0;
    array *other = *out;
    bool ok = binding_ok(array_astype(other, dt, out));
    array_unref(other);
    return ok;
}

/* Arrays of ours are copied as they lie, others come in C order. */
static bool array_in_order(PyObject *o, bool has, dtype dt, bool copy, char order, array **out) {
    if (PyObject_TypeCheck(o, &binding_ndarray_type)) {
        array *a = ((pyarray *)o)->a;
        return binding_ok(array_astype_order(a, has ? dt : a->dt, order, out));
    }
    if (!array_of_object(o, has, dt, copy, out)) return false;
    if (order != 'F' || array_is_f_contiguous(*out)) return true;
    array *c = *out;
    bool ok = binding_ok(array_astype_order(c, c->dt, 'F', out));
    array_unref(c);
    return ok;
}

FUNCTION(make_array) {
    PARSE("array", 2, 1, "obj", "dtype", "copy", "order", "ndmin")
    bool has;
    dtype dt = DT_F64;
    array *made;
    int64_t ndmin = 0, shape[ARRAY_MAX_NDIM];
    if (!binding_to_dtype_or_none(values[1], &has, &dt)) return NULL;
    if (values[4] && !binding_to_int64(values[4], &ndmin)) return NULL;
    if (ndmin > ARRAY_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "ndmin: at most %d dimensions are supported",
                     ARRAY_MAX_NDIM);
        return NULL;
    }
    int copy = values[2] ? binding_truth(values[2]) : 1;
    if (copy < 0) return NULL;
    bool same = PyObject_TypeCheck(values[0], &binding_ndarray_type) &&
                (!has || ((pyarray *)values[0])->a->dt == dt);
    char order;
    if (!binding_to_order(values[3], 'K', &order)) return NULL;
    if (same) {
        array *a = ((pyarray *)values[0])->a;
        bool lies = order == 'K' || order == 'A' || (order == 'C' && array_is_contiguous(a)) ||
                    (order == 'F' && array_is_f_contiguous(a));
        if (!copy && lies && a->ndim >= ndmin) return Py_NewRef(values[0]);
    }
    if (!array_in_order(values[0], has, dt, copy != 0, order, &made)) return NULL;
    if (made->ndim >= ndmin) return binding_wrap(made);
    int missing = (int)ndmin - made->ndim;
    for (int d = 0; d < ndmin; d++) shape[d] = d < missing ? 1 : made->shape[d - missing];
    array *wide = NULL;
    simt_status status = array_reshape(made, shape, (int)ndmin, &wide);
    array_unref(made);
    return binding_wrap_made(status, &wide);
}

static bool shape_and_dtype(PyObject *shape_object, PyObject *dtype_object, int64_t *shape,
                            int *ndim, dtype *dt) {
    bool has;
    return binding_start() && binding_to_shape(shape_object, "shape", shape, ndim) &&
           binding_to_dtype_or_none(dtype_object, &has, dt);
}

/* New arrays lie in C or Fortran order. */
static bool creation_order(PyObject *o, char *order) {
    if (!binding_to_order(o, 'C', order)) return false;
    if (*order == 'C' || *order == 'F') return true;
    PyErr_SetString(PyExc_ValueError, "only 'C' or 'F' order is permitted");
    return false;
}

FUNCTION(make_empty) {
    PARSE("empty", 3, 1, "shape", "dtype", "order")
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    dtype dt = DT_F64;
    array *made = NULL;
    char order;
    if (!shape_and_dtype(values[0], values[1], shape, &ndim, &dt) ||
        !creation_order(values[2], &order))
        return NULL;
    return binding_wrap_made(array_full_order(dt, shape, ndim, NULL, order, &made), &made);
}

static PyObject *filled(PyObject *shape_object, PyObject *dtype_object, PyObject *order_object,
                        int64_t value) {
    char order;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    dtype dt = DT_F64;
    array *made = NULL;
    if (!shape_and_dtype(shape_object, dtype_object, shape, &ndim, &dt) ||
        !creation_order(order_object, &order))
        return NULL;
    const scalar s = {.kind = 'I', .i = value};
    return binding_wrap_made(array_full_order(dt, shape, ndim, &s, order, &made), &made);
}
FUNCTION(make_zeros) {
    PARSE("zeros", 3, 1, "shape", "dtype", "order")
    return filled(values[0], values[1], values[2], 0);
}
FUNCTION(make_ones) {
    PARSE("ones", 3, 1, "shape", "dtype", "order")
    return filled(values[0], values[1], values[2], 1);
}

FUNCTION(make_full) {
    PARSE("full", 4, 2, "shape", "fill_value", "dtype", "order")
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    bool has;
    dtype dt = DT_F64;
    operand value;
    array *made = NULL;
    char order;
    if (!shape_and_dtype(values[0], values[2], shape, &ndim, &dt) ||
        !creation_order(values[3], &order))
        return NULL;
    has = values[2] && values[2] != Py_None;
    int done = binding_to_operand(values[1], FACE_NUMPY, &value);
    if (done == 0)
        PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(values[1]));
    if (done <= 0) return NULL;
    if (!has) {
        char kind = value.s.kind;
        dt = value.a       ? value.a->dt
             : kind == 'B' ? DT_BOOL
             : kind == 'I' ? DT_I64
             : kind == 'U' ? DT_U64
                           : DT_F64;
    }
    if (!value.a && value.s.kind != 'F' && value.s.kind != 'B' &&
        !binding_integer_fits(value.s, dt)) {
        PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", values[1],
                     dtype_table[dt].name);
        return NULL;
    }
    if (!value.a)
        return binding_wrap_made(array_full_order(dt, shape, ndim, &value.s, order, &made), &made);
    bool ok = binding_ok(array_full_order(dt, shape, ndim, NULL, order, &made)) &&
              binding_ok(array_assign(made, &value, FACE_NUMPY));
    array_unref(value.a);
    return ok ? binding_wrap(made) : NULL;
}

static double scalar_value(scalar s) {
    return s.kind == 'F' ? s.f : s.kind == 'U' ? (double)s.u : (double)s.i;
}

/* NumPy's length: ceil((stop - start) / step). */
static bool arange_length(scalar start, scalar stop, scalar step, bool floats, int64_t *count) {
    if (scalar_value(step) == 0) {
        PyErr_SetString(PyExc_ZeroDivisionError, "division by zero");
        return false;
    }
    if (!floats) {
        __int128 distance = (__int128)stop.i - start.i, by = step.i;
        __int128 n = (distance + by - (by > 0 ? 1 : -1)) / by;
        *count = n < 0 || (distance > 0) != (by > 0) || distance == 0 ? 0
                 : n > INT64_MAX                                      ? INT64_MAX
                                                                      : (int64_t)n;
        return true;
    }
    double n = __builtin_ceil((scalar_value(stop) - scalar_value(start)) / scalar_value(step));
    if (!(n < 0x1p63)) {
        PyErr_SetString(PyExc_ValueError,
                        n != n ? "arange: cannot compute length" : "Maximum allowed size exceeded");
        return false;
    }
    *count = n > 0 ? (int64_t)n : 0;
    return true;
}

FUNCTION(make_arange) {
    PARSE("arange", 4, 1, "start", "stop", "step", "dtype")
    scalar part[3] = {{.kind = 'I'}, {.kind = 'I'}, {.kind = 'I', .i = 1}};
    bool has, floats = false, one = !values[1] || values[1] == Py_None;
    dtype dt = DT_I64;
    if (!binding_start() || !binding_to_dtype_or_none(values[3], &has, &dt)) return NULL;
    for (int i = 0; i < 3; i++) {
        PyObject *o = values[one && i == 1 ? 0 : i];
        if ((one && i == 0) || !o || o == Py_None) continue;
        int done = binding_to_scalar(o, FACE_NUMPY, &part[i]);
        if (done == 0) PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(o));
        if (done <= 0) return NULL;
        floats |= part[i].kind == 'F' || part[i].kind == 'U';
    }
    int64_t count;
    array *made = NULL;
    if (!arange_length(part[0], part[1], part[2], floats, &count)) return NULL;
    if (!has) dt = floats ? DT_F64 : DT_I64;
    if (floats) /* NumPy steps by the rounded difference of the first two elements */
        for (int i = 0; i < 3; i += 2) part[i] = (scalar){.kind = 'F', .f = scalar_value(part[i])};
    return binding_wrap_made(array_arange(dt, part[0], part[2], count, &made), &made);
}

FUNCTION(make_linspace) {
    PARSE("linspace", 6, 2, "start", "stop", "num", "endpoint", "retstep", "dtype")
    scalar ends[2];
    int64_t count = 50;
    bool has;
    dtype dt = DT_F64;
    array *made = NULL;
    for (int i = 0; i < 2; i++) {
        int done = binding_to_scalar(values[i], FACE_NUMPY, &ends[i]);
        if (done == 0)
            PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(values[i]));
        if (done <= 0) return NULL;
    }
    if (!binding_start() || (values[2] && !binding_to_int64(values[2], &count)) ||
        !binding_to_dtype_or_none(values[5], &has, &dt))
        return NULL;
    int endpoint = values[3] ? binding_truth(values[3]) : 1,
        retstep = values[4] ? binding_truth(values[4]) : 0;
    if (endpoint < 0 || retstep < 0) return NULL;
    if (count < 0) {
        PyErr_Format(PyExc_ValueError, "Number of samples, %lld, must be non-negative.",
                     (long long)count);
        return NULL;
    }
    double start = scalar_value(ends[0]), stop = scalar_value(ends[1]);
    if (has && dtype_is_integer(dt)) { /* NumPy rounds down */
        array *real, *low = NULL;
        if (!binding_ok(array_linspace(DT_F64, start, stop, count, endpoint, &real))) return NULL;
        op_options o = {.face = FACE_NUMPY, .default_float = DT_F64};
        bool ok = binding_ok(array_elementwise(OP_FLOOR, &(operand){.a = real}, 1, &o, &low)) &&
                  binding_ok(array_astype(low, dt, &made));
        array_unref(real);
        array_unref(low);
        if (!ok) return NULL;
    } else if (!binding_ok(array_linspace(dt, start, stop, count, endpoint, &made))) {
        return NULL;
    }
    if (!retstep) return binding_wrap(made);
    double parts = (double)(endpoint ? count - 1 : count);
    PyObject *result = binding_wrap(made);
    return result ? Py_BuildValue("(Nd)", result,
                                  parts > 0 ? (stop - start) / parts : __builtin_nan(""))
                  : NULL;
}

FUNCTION(make_eye) {
    PARSE("eye", 4, 1, "N", "M", "k", "dtype")
    int64_t rows, columns, diagonal = 0;
    bool has;
    dtype dt = DT_F64;
    array *made = NULL;
    if (!binding_start() || !binding_to_int64(values[0], &rows)) return NULL;
    columns = rows;
    if (values[1] && values[1] != Py_None && !binding_to_int64(values[1], &columns)) return NULL;
    if (values[2] && !binding_to_int64(values[2], &diagonal)) return NULL;
    if (!binding_to_dtype_or_none(values[3], &has, &dt)) return NULL;
    return binding_wrap_made(array_eye(dt, rows, columns, diagonal, &made), &made);
}

PyMethodDef binding_create_functions[] = {
    FAST("array", make_array),       FAST("empty", make_empty), FAST("zeros", make_zeros),
    FAST("ones", make_ones),         FAST("full", make_full),   FAST("arange", make_arange),
    FAST("linspace", make_linspace), FAST("eye", make_eye),     {NULL},
};
