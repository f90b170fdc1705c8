/* Python numbers, shapes and axes, in and out. */
#include "binding/common/binding.h"

#include <string.h>

static bool from_python_int(PyObject *o, scalar *out) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) {
        *out = (scalar){.kind = 'I', .i = value};
        return !(value == -1 && PyErr_Occurred());
    }
    if (overflow > 0) {
        unsigned long long wide = PyLong_AsUnsignedLongLong(o);
        if (!PyErr_Occurred()) return *out = (scalar){.kind = 'U', .u = wide}, true;
        binding_forgive_if(PyExc_OverflowError);
    }
    PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to C long");
    return false;
}

static bool is_numpy(PyObject *o) { return strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) == 0; }

/* NumPy's scalars and arrays of no dimension through their buffer, with NumPy's rules arrays of one element
 * too; tri-state. Others (also dates, whose buffer is their bytes) are no numbers. */
static int from_numpy_scalar(PyObject *o, graph_face face, dtype *dt, scalar *out) {
    binding_buffer b;
    if (!PyObject_CheckBuffer(o)) return 0;
    if (!binding_get_buffer(o, false, &b)) return binding_forgive() ? 0 : -1;
    const Py_buffer *v = &b.view;
    bool one = b.usable && v->len == v->itemsize &&
               (v->ndim == 0 || (face == FACE_NUMPY && !binding_is_numpy_scalar(o)));
    int known = one && binding_format_to_dtype(v->format, v->itemsize, dt);
    if (known) *out = scalar_load(*dt, v->buf);
    PyBuffer_Release(&b.view);
    return known;
}

static int strong_scalar(PyObject *o, graph_face face, operand *out) {
    dtype dt;
    scalar value;
    int known = from_numpy_scalar(o, face, &dt, &value);
    if (known <= 0) return known;
    if (face == FACE_TORCH) {
        *out = (operand){.s = value, .weak = true};
        return 1;
    }
    *out = (operand){0};
    if (!binding_start()) return -1;
    return binding_ok(array_full(dt, NULL, 0, value, &out->a)) ? 1 : -1;
}

static int other_operand(PyObject *o, graph_face face, operand *out) {
    bool numpy_array = PyObject_CheckBuffer(o) && strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
    if (numpy_array && face == FACE_NUMPY && !binding_lenient()) {
        PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(o));
        return -1;
    }
    if (numpy_array) {
        *out = (operand){0};
        return binding_to_array(o, false, DT_F32, face, DT_F32, &out->a) ? 1 : -1;
    }
    if (is_numpy(o)) {
        int done = strong_scalar(o, face, out);
        if (done) return done;
    }
    *out = (operand){.weak = true};
    if (PyFloat_Check(o)) {
        out->s = (scalar){.kind = 'F', .f = PyFloat_AS_DOUBLE(o)};
        return 1;
    }
    if (PyLong_Check(o)) return from_python_int(o, &out->s) ? 1 : -1;
    return 0;
}

int binding_to_operand(PyObject *o, graph_face face, operand *out) {
    if (binding_is_array(o)) {
        *out = (operand){.a = array_ref(((pyarray *)o)->a)};
        return 1;
    }
    if (PyFloat_CheckExact(o)) {
        *out = (operand){.s = {.kind = 'F', .f = PyFloat_AS_DOUBLE(o)}, .weak = true};
        return 1;
    }
    if (PyBool_Check(o)) {
        *out = (operand){.s = {.kind = 'B', .i = o == Py_True}, .weak = true};
        return 1;
    }
    if (PyLong_CheckExact(o)) {
        *out = (operand){.weak = true};
        return from_python_int(o, &out->s) ? 1 : -1;
    }
    return other_operand(o, face, out);
}

int binding_to_scalar(PyObject *o, graph_face face, scalar *out) {
    operand value;
    dtype dt;
    if (is_numpy(o)) return from_numpy_scalar(o, face, &dt, out);
    if (binding_is_array(o)) {
        const array *a = ((pyarray *)o)->a;
        if (face == FACE_NUMPY ? a->size != 1 : a->ndim != 0) return 0;
    }
    int done = binding_to_operand(o, FACE_NUMPY, &value);
    if (done <= 0) return done;
    if (!value.a) {
        *out = value.s;
        return 1;
    }
    bool ok = binding_ok(array_item(value.a, out));
    array_unref(value.a);
    return ok ? 1 : -1;
}

PyObject *binding_from_scalar(scalar s) {
    switch (s.kind) {
    case 'B': return PyBool_FromLong(s.i != 0);
    case 'I': return PyLong_FromLongLong(s.i);
    case 'U': return PyLong_FromUnsignedLongLong(s.u);
    default: return PyFloat_FromDouble(s.f);
    }
}

int binding_truth(PyObject *o) {
    if (o == Py_True || o == Py_False || o == Py_None) return o == Py_True;
    if (!binding_enter()) return -1;
    int truth = PyObject_IsTrue(o);
    binding_leave();
    return truth;
}

double binding_double(PyObject *o) {
    if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
    if (!binding_enter()) return -1;
    double value = PyFloat_AsDouble(o);
    binding_leave();
    return value;
}

PyObject *binding_tuple(PyObject *o) {
    if (PyTuple_CheckExact(o)) return Py_NewRef(o);
    if (!binding_enter()) return NULL;
    PyObject *items = PySequence_Tuple(o);
    binding_leave();
    return items;
}

bool binding_to_int64(PyObject *o, int64_t *out) {
    if (PyLong_CheckExact(o)) {
        *out = PyLong_AsLongLong(o);
        return !(*out == -1 && PyErr_Occurred());
    }
    if (!binding_enter()) return false;
    PyObject *index = PyNumber_Index(o);
    binding_leave();
    if (!index) return false;
    *out = PyLong_AsLongLong(index);
    Py_DECREF(index);
    return !(*out == -1 && PyErr_Occurred());
}

/* ---- shapes and axes ---- */

static bool is_integer(PyObject *o) {
    return PyLong_Check(o) || (PyIndex_Check(o) && !PySequence_Check(o)) ||
           (binding_is_array(o) && ((pyarray *)o)->a->ndim == 0);
}

static bool shape_item(PyObject *o, const char *what, Py_ssize_t at, int64_t *out) {
    if (PyIndex_Check(o)) return binding_to_int64(o, out);
    PyErr_Format(PyExc_TypeError,
                 "%s: '%s' object cannot be interpreted as an integer: %R at position %zd", what,
                 Py_TYPE(o)->tp_name, o, at);
    return false;
}

/* A list or tuple of plain integers, whose reading runs no code: the common case. */
static bool plain_shape(PyObject *o, int64_t *shape, int *ndim) {
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (n > ARRAY_MAX_NDIM) return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        int overflow;
        PyObject *item = PySequence_Fast_GET_ITEM(o, i);
        if (!PyLong_CheckExact(item)) return false;
        shape[i] = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow) return false;
    }
    *ndim = (int)n;
    return true;
}

bool binding_to_shape(PyObject *o, const char *what, int64_t *shape, int *ndim) {
    if (plain_shape(o, shape, ndim)) return true;
    if (is_integer(o)) {
        *ndim = 1;
        return binding_to_int64(o, shape);
    }
    PyObject *list = binding_tuple(o); /* an __index__ may change a list */
    if (!list) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError,
                         "%s: expected an integer or a sequence of integers, got '%s'", what,
                         Py_TYPE(o)->tp_name);
        return false;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(list);
    bool ok = n <= ARRAY_MAX_NDIM;
    if (!ok)
        PyErr_Format(PyExc_ValueError, "%s: at most %d dimensions are supported, got %zd", what,
                     ARRAY_MAX_NDIM, n);
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = shape_item(PyTuple_GET_ITEM(list, i), what, i, &shape[i]);
    Py_DECREF(list);
    *ndim = ok ? (int)n : 0;
    return ok;
}

bool binding_args_to_shape(PyObject *const *args, Py_ssize_t n, const char *what, int64_t *shape,
                           int *ndim) {
    if (n == 1) return binding_to_shape(args[0], what, shape, ndim);
    if (n > ARRAY_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: at most %d dimensions are supported, got %zd", what,
                     ARRAY_MAX_NDIM, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!shape_item(args[i], what, i, &shape[i])) return false;
    *ndim = (int)n;
    return true;
}

PyObject *binding_from_shape(const int64_t *shape, int ndim) {
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple && i < ndim; i++) {
        PyObject *n = PyLong_FromLongLong(shape[i]);
        if (!n) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, n);
    }
    return tuple;
}

bool binding_to_axis(PyObject *o, int ndim, graph_face face, int *axis) {
    int64_t value;
    if (!binding_to_int64(o, &value)) return false;
    int wrap =
        face == FACE_TORCH && ndim == 0 ? 1 : ndim; /* PyTorch takes 0 and -1 for 0-d tensors */
    if (value < -wrap || value >= wrap) {
        binding_raise_axis(value, ndim, face);
        return false;
    }
    *axis = (int)(value < 0 ? value + wrap : value);
    return true;
}

static bool add_axis(PyObject *o, int ndim, graph_face face, uint32_t *mask) {
    int axis;
    if (!binding_to_axis(o, ndim ? ndim : 1, face, &axis)) return false;
    if (ndim == 0) return true; /* both libraries take 0 and -1 here */
    if (*mask >> axis & 1) {
        if (face == FACE_TORCH)
            PyErr_Format(PyExc_RuntimeError, "dim %d appears multiple times in the list of dims",
                         axis);
        else
            PyErr_SetString(PyExc_ValueError, "duplicate value in 'axis'");
        return false;
    }
    *mask |= 1u << axis;
    return true;
}

bool binding_to_axes(PyObject *o, int ndim, graph_face face, uint32_t *mask, bool *all) {
    *mask = 0;
    *all = !o || o == Py_None;
    if (*all) {
        *mask = (1u << ndim) - 1;
        return true;
    }
    if (is_integer(o)) return add_axis(o, ndim, face, mask);
    if (!PyTuple_Check(o) && !PyList_Check(o)) {
        int64_t unused; /* the error of a failing __index__ */
        return binding_to_int64(o, &unused) && add_axis(o, ndim, face, mask);
    }
    PyObject *list = binding_tuple(o);
    bool ok = list != NULL;
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(list); i++)
        ok = add_axis(PyTuple_GET_ITEM(list, i), ndim, face, mask);
    Py_XDECREF(list);
    return ok;
}
