/* Elementwise operations and reductions on Python objects, with NumPy's rules: weak Python integers are
 * checked against the array's type, out= and dtype= as in ufuncs. */
#include "binding/common/binding.h"

#include <string.h>

array *binding_get_ndarray(PyObject *o) {
    if (PyObject_TypeCheck(o, &binding_ndarray_type)) return ((pyarray *)o)->a;
    PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(o));
    return NULL;
}

bool binding_to_casting(PyObject *o, char *out) {
    static const char *const names[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
    *out = 'k';
    if (!o) return true;
    for (int i = 0; i < 5; i++)
        if (binding_is_text(o, names[i])) return *out = "nesku"[i], true;
    PyErr_Format(PyExc_ValueError,
                 "casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe' (got %R)",
                 o);
    return false;
}

bool binding_to_order(PyObject *o, char usual, char *out) {
    *out = usual;
    if (!o || o == Py_None) return true;
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
    if (text && strlen(text) == 1 && strchr("CFAKcfak", *text)) {
        *out = *text >= 'a' ? (char)(*text - 'a' + 'A') : *text;
        return true;
    }
    if (!PyErr_Occurred())
        PyErr_Format(PyUnicode_Check(o) ? PyExc_ValueError : PyExc_TypeError,
                     "order must be one of 'C', 'F', 'A', or 'K' (got %R)", o);
    return false;
}

PyObject *binding_into_out(array *made, PyObject *out) { return binding_cast_into(made, out, 'k'); }

PyObject *binding_cast_into(array *made, PyObject *out, char casting) {
    if (!made || !out || out == Py_None) return binding_wrap(made);
    array *to = binding_get_ndarray(out);
    simt_status status = SIMT_OK;
    if (to && (to->ndim != made->ndim ||
               memcmp(to->shape, made->shape, sizeof to->shape[0] * (size_t)to->ndim)))
        status = status_fail(SIMT_ERR_VALUE, "output parameter has the wrong shape");
    else if (to && !graph_can_cast(made->dt, to->dt, casting))
        status = status_fail(SIMT_ERR_TYPE,
                             "Cannot cast the result from dtype('%s') to out's dtype('%s') "
                             "with casting rule '%s'",
                             dtype_table[made->dt].name, dtype_table[to->dt].name,
                             graph_casting_name(casting));
    if (to && status == SIMT_OK) status = array_assign(to, &(operand){.a = made}, FACE_NUMPY);
    array_unref(made);
    return to && binding_ok(status) ? Py_NewRef(out) : NULL;
}

PyObject *binding_dot_into(array *made, PyObject *out) {
    array *to = made && out && out != Py_None ? binding_get_ndarray(out) : NULL;
    if (!to || (to->dt == made->dt && array_is_contiguous(to))) return binding_into_out(made, out);
    array_unref(made);
    PyErr_SetString(PyExc_ValueError,
                    "output array is not acceptable (must have the right datatype, "
                    "number of dimensions, and be a C-Array)");
    return NULL;
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

/* NEP 50: a comparison with a Python integer that the integer type cannot hold is decided by it alone (others are
 * refused where types are found). True: *result is the answer, or NULL with an exception. */
static bool decided(array_op op, const operand *in, int n, PyObject **result) {
    if (n != 2 || !is_comparison(op)) return false;
    int number = in[0].a ? 1 : 0;
    const array *a = in[1 - number].a;
    const operand *o = &in[number];
    if (!a || o->a || !o->weak || o->s.kind == 'F' || o->s.kind == 'B') return false;
    if (!dtype_is_integer(a->dt) || binding_integer_fits(o->s, a->dt)) return false;
    *result = compare_beyond(op, &in[1 - number], o, number == 0);
    return true;
}

static PyObject *run_elementwise(array_op op, const operand *in, int n, PyObject *out,
                                 bool has_dtype, dtype dt, char casting) {
    PyObject *result;
    if (!out && decided(op, in, n, &result)) return result;
    op_options options = {.face = FACE_NUMPY,
                          .default_float = DT_F64,
                          .has_dtype = has_dtype,
                          .keep_order = true,
                          .casting = casting,
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
    return run_elementwise(op, in, n, out, false, DT_BOOL, 'k');
}

PyObject *binding_elementwise(array_op op, PyObject *const *objects, int n, PyObject *out,
                              PyObject *dtype_object) {
    return binding_elementwise_cast(op, objects, n, out, dtype_object, 'k');
}

PyObject *binding_elementwise_cast(array_op op, PyObject *const *objects, int n, PyObject *out,
                                   PyObject *dtype_object, char casting) {
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
    PyObject *result = done > 0 ? run_elementwise(op, in, n, out, has_dtype, dt, casting) : NULL;
    for (int i = 0; i < have; i++) binding_operand_done(&in[i]);
    return result;
}

/* ---- reductions ---- */

static const array_op reduce_ops[] = {
#define RED(id, ...) OP_##id,
#include "graph/array_ops.def"
};

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

/* What is left of an array lies as the array does (order K), but positions. */
static simt_status reduce_as_it_lies(reduction kind, array *a, const reduce_options *o, bool all,
                                     array **out) {
    int axes[ARRAY_MAX_NDIM];
    if (all || kind == REDUCE_ARGMAX || kind == REDUCE_ARGMIN ||
        !array_memory_order(&a, 1, a->ndim, axes))
        return run_reduction(kind, a, o, all, out);
    reduce_options turned = *o;
    turned.keepdims = true;
    turned.axes_mask = 0;
    for (int d = 0; d < a->ndim; d++) turned.axes_mask |= (o->axes_mask >> axes[d] & 1) << d;
    array *view, *made = NULL, *whole;
    SIMT_TRY(array_transpose(a, axes, &view));
    simt_status status = run_reduction(kind, view, &turned, false, &made);
    array_unref(view);
    status = array_turn_back(status, made, axes, &whole);
    if (status != SIMT_OK || o->keepdims) {
        *out = whole;
        return status;
    }
    status = array_squeeze(whole, o->axes_mask, out);
    array_unref(whole);
    return status;
}

PyObject *binding_reduce(reduction kind, array *a, PyObject *axis, PyObject *dtype_object,
                         PyObject *out, PyObject *ddof, PyObject *keepdims) {
    reduce_options o = {.face = FACE_NUMPY, .default_float = DT_F64};
    bool all, divides = kind == REDUCE_MEAN || kind == REDUCE_VAR || kind == REDUCE_STD;
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
    bool named = axis && axis != Py_None && !(PyTuple_Check(axis) && PyTuple_GET_SIZE(axis) == 0);
    if (a->ndim == 0 && named && divides) {
        binding_raise_axis(0, 0, FACE_NUMPY);
        return NULL;
    }
    if ((kind == REDUCE_SUM || kind == REDUCE_PROD) && out && out != Py_None && !o.has_dtype) {
        array *to = binding_get_ndarray(out); /* NumPy adds in the type of out */
        if (!to) return NULL;
        o.has_dtype = dtype_is_float(to->dt) || !dtype_is_float(a->dt);
        o.dt = to->dt;
    }
    array *made;
    if (!binding_ok(reduce_as_it_lies(kind, a, &o, all, &made))) return NULL;
    bool position = kind == REDUCE_ARGMAX || kind == REDUCE_ARGMIN;
    return binding_cast_into(made, out, position ? 'k' : 'u'); /* as NumPy's */
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
