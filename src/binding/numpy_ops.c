/* Elementwise operations and reductions on Python objects, with NumPy's rules: weak Python integers are
 * checked against the array's type, out= and dtype= as in ufuncs. */
#include "binding/binding.h"

#include <string.h>

array *binding_get_ndarray(PyObject *o) {
    if (PyObject_TypeCheck(o, &binding_ndarray_type)) return ((pyarray *)o)->a;
    PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(o));
    return NULL;
}

PyObject *binding_into_out(array *made, PyObject *out) {
    if (!made || !out || out == Py_None) return binding_wrap(made);
    array *to = binding_get_ndarray(out);
    simt_status status = SIMT_OK;
    if (to && (to->ndim != made->ndim ||
               memcmp(to->shape, made->shape, sizeof to->shape[0] * (size_t)to->ndim)))
        status = status_fail(SIMT_ERR_VALUE, "output parameter has the wrong shape");
    if (to && status == SIMT_OK) status = array_assign(to, &(operand){.a = made}, FACE_NUMPY);
    array_unref(made);
    return to && binding_ok(status) ? Py_NewRef(out) : NULL;
}

/* ---- elementwise ---- */

static bool is_comparison(array_op op) { return array_op_table[op].dtypes == 'C'; }

/* A Python integer that the integer type `dt` cannot hold: a comparison is decided by it alone. */
static PyObject *compare_beyond(array_op op, const operand *in, const operand *number,
                                bool number_first) {
    bool above = number->s.kind == 'U' || number->s.i > 0; /* else below */
    bool less = above != number_first; /* is the array's side the smaller one, as asked */
    bool truth = op == OP_NOT_EQUAL || ((op == OP_LESS || op == OP_LESS_EQUAL) && less) ||
                 ((op == OP_GREATER || op == OP_GREATER_EQUAL) && !less);
    array *made;
    if (!binding_ok(array_full(DT_BOOL, in->a->shape, in->a->ndim,
                               (scalar){.kind = 'B', .i = truth}, &made)))
        return NULL;
    return binding_wrap(made);
}

/* NEP 50: a Python integer must fit the integer type it takes part in. 1: fine; 0: *result is the answer
 * (NULL: exception). */
static int check_weak(array_op op, const operand *in, int n, PyObject **result) {
    int array_at = -1, number_at = -1;
    dtype dt = DT_BOOL;
    for (int i = op == OP_WHERE; i < n; i++) {
        if (in[i].a) {
            dt = array_at < 0 ? in[i].a->dt : dtype_promote(dt, in[i].a->dt);
            array_at = i;
        } else if (in[i].s.kind == 'F') {
            return 1; /* the computation is in floats */
        } else if (in[i].s.kind != 'B') {
            number_at = i;
        }
    }
    if (array_at < 0 || number_at < 0 || !dtype_is_integer(dt)) return 1;
    for (int i = op == OP_WHERE; i < n; i++) {
        if (in[i].a || in[i].s.kind == 'B' || binding_integer_fits(in[i].s, dt)) continue;
        if (n == 2 && is_comparison(op)) {
            *result = compare_beyond(op, &in[array_at], &in[i], i == 0);
            return 0;
        }
        PyObject *number = binding_from_scalar(in[i].s);
        if (number)
            PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", number,
                         dtype_table[dt].name);
        Py_XDECREF(number);
        *result = NULL;
        return 0;
    }
    return 1;
}

static PyObject *run_elementwise(array_op op, const operand *in, int n, PyObject *out,
                                 bool has_dtype, dtype dt) {
    PyObject *result;
    if (!check_weak(op, in, n, &result)) return result;
    op_options options = {.face = FACE_NUMPY,
                          .default_float = DT_F64,
                          .has_dtype = has_dtype,
                          .same_kind = true,
                          .dt = dt};
    if (out) {
        options.out = binding_get_ndarray(out);
        if (!options.out) return NULL;
    } else if (!binding_start()) {
        return NULL;
    }
    array *made;
    if (!binding_ok(array_elementwise(op, in, n, &options, &made))) return NULL;
    if (!out) return binding_wrap(made);
    array_unref(made);
    return Py_NewRef(out);
}

PyObject *binding_operate(array_op op, const operand *in, int n, PyObject *out) {
    return run_elementwise(op, in, n, out, false, DT_BOOL);
}

PyObject *binding_elementwise(array_op op, PyObject *const *objects, int n, PyObject *out,
                              PyObject *dtype_object) {
    operand in[3];
    bool has_dtype;
    dtype dt = DT_BOOL;
    if (!binding_to_dtype_or_none(dtype_object, &has_dtype, &dt)) return NULL;
    if (out && PyTuple_Check(out) && PyTuple_GET_SIZE(out) == 1) out = PyTuple_GET_ITEM(out, 0);
    if (out == Py_None) out = NULL;
    int have = 0, done = 1;
    while (have < n && (done = binding_to_operand(objects[have], FACE_NUMPY, &in[have])) > 0)
        have++;
    if (done == 0)
        PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(objects[have]));
    PyObject *result = done > 0 ? run_elementwise(op, in, n, out, has_dtype, dt) : NULL;
    for (int i = 0; i < have; i++) binding_operand_done(&in[i]);
    return result;
}

/* ---- reductions ---- */

static const array_op reduce_ops[] = {OP_SUM, OP_PROD, OP_MAX,    OP_MIN,
                                      OP_ANY, OP_ALL,  OP_ARGMAX, OP_ARGMIN};

/* argmax over all axes gives the position in the flattened array. */
static simt_status reduce_position(array_op op, array *a, const reduce_options *o, bool all,
                                   array **out) {
    if (!all || a->ndim <= 1) return array_reduce(op, a, o, out);
    int64_t flat = -1, ones[ARRAY_MAX_NDIM];
    array *line, *made;
    SIMT_TRY(array_reshape(a, &flat, 1, &line));
    reduce_options one = *o;
    one.axes_mask = 1;
    one.keepdims = false;
    simt_status status = array_reduce(op, line, &one, &made);
    array_unref(line);
    if (status != SIMT_OK || !o->keepdims) {
        *out = made;
        return status;
    }
    for (int d = 0; d < a->ndim; d++) ones[d] = 1;
    status = array_reshape(made, ones, a->ndim, out);
    array_unref(made);
    return status;
}

static simt_status run_reduction(reduction kind, array *a, const reduce_options *o, bool all,
                                 array **out) {
    switch (kind) {
    case REDUCE_MEAN: return array_mean(a, o, out);
    case REDUCE_VAR:
    case REDUCE_STD: return array_var(a, o, kind == REDUCE_STD, out);
    case REDUCE_ARGMAX:
    case REDUCE_ARGMIN: return reduce_position(reduce_ops[kind], a, o, all, out);
    default: return array_reduce(reduce_ops[kind], a, o, out);
    }
}

PyObject *binding_reduce(reduction kind, array *a, PyObject *axis, PyObject *dtype_object,
                         PyObject *out, PyObject *ddof, PyObject *keepdims) {
    reduce_options o = {.face = FACE_NUMPY, .default_float = DT_F64};
    bool all;
    if (!binding_to_axes(axis, a->ndim, FACE_NUMPY, &o.axes_mask, &all)) return NULL;
    if (!binding_to_dtype_or_none(dtype_object, &o.has_dtype, &o.dt)) return NULL;
    if (keepdims) {
        int truth = binding_truth(keepdims);
        if (truth < 0) return NULL;
        o.keepdims = truth;
    }
    if (ddof) {
        o.ddof = binding_double(ddof);
        if (o.ddof == -1 && PyErr_Occurred()) return NULL;
    }
    array *made;
    if (!binding_ok(run_reduction(kind, a, &o, all, &made))) return NULL;
    return binding_into_out(made, out);
}

/* ---- to NumPy ---- */

PyObject *binding_to_numpy(array *a) {
    static PyObject *empty;
    if (!empty) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        empty = numpy ? PyObject_GetAttrString(numpy, "empty") : NULL;
        Py_XDECREF(numpy);
        if (!empty) return NULL;
    }
    PyObject *shape = binding_from_shape(a->shape, a->ndim),
             *dtype_object = binding_numpy_dtype(a->dt);
    PyObject *made = shape && dtype_object
                         ? PyObject_CallFunctionObjArgs(empty, shape, dtype_object, NULL)
                         : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(dtype_object);
    Py_buffer view;
    if (!made) return NULL;
    bool ok = PyObject_GetBuffer(made, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) == 0;
    if (ok) {
        ok = binding_ok(array_copy_out(a, view.buf));
        PyBuffer_Release(&view);
    }
    if (!ok) Py_CLEAR(made);
    return made;
}
