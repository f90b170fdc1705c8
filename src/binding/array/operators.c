/* Operators of simt._core.ndarray, and one element as a Python number. */
#include "binding/array/operators.h"

/* Other faces' arrays have operators of their own. */
static bool is_foreign_array(PyObject *o) {
    return binding_is_array(o) && !PyObject_TypeCheck(o, &binding_ndarray_type);
}

static PyObject *operate(array_op op, PyObject *x, PyObject *y, PyObject *out) {
    PyObject *objects[2] = {x, y};
    operand in[2];
    if (is_foreign_array(x) || is_foreign_array(y)) return Py_NewRef(Py_NotImplemented);
    /* what cannot be an operand is left to the other side */
    for (int i = 0; i < 2; i++) {
        int done = binding_to_operand(objects[i], FACE_NUMPY, &in[i]);
        if (done > 0) continue;
        if (i == 1) binding_operand_done(&in[0]);
        if (done < 0) return NULL;
        return Py_NewRef(Py_NotImplemented);
    }
    PyObject *result = binding_operate(op, in, 2, out);
    binding_operand_done(&in[0]);
    binding_operand_done(&in[1]);
    return result;
}

#define BINARY(name, op)                                                                          \
    static PyObject *nb_##name(PyObject *x, PyObject *y) { return operate(OP_##op, x, y, NULL); } \
    static PyObject *nb_inplace_##name(PyObject *x, PyObject *y) {                                \
        return IN_SECTION(operate(OP_##op, x, y, x));                                             \
    }
#define COMPARE(how, op)
#include "binding/common/operators.def"

#define UNARY(name, op)                                         \
    static PyObject *nb_##name(PyObject *x) {                   \
        return binding_elementwise(OP_##op, &x, 1, NULL, NULL); \
    }
UNARY(negative, NEGATIVE)
UNARY(positive, POSITIVE)
UNARY(absolute, ABSOLUTE)
UNARY(invert, INVERT)
#undef UNARY

/* x ** 2 and x ** 0.5 of float arrays, as NumPy's fast paths (same results for 2; exact sqrt). */
static PyObject *power(PyObject *x, PyObject *y, PyObject *out) {
    if (binding_is_array(x) && dtype_is_float(((pyarray *)x)->a->dt) && !out) {
        int overflow = 0;
        double exponent = PyFloat_CheckExact(y)  ? PyFloat_AS_DOUBLE(y)
                          : PyLong_CheckExact(y) ? (double)PyLong_AsLongAndOverflow(y, &overflow)
                                                 : 0;
        if (exponent == 2) return binding_elementwise(OP_SQUARE, &x, 1, NULL, NULL);
        if (exponent == 0.5) return binding_elementwise(OP_SQRT, &x, 1, NULL, NULL);
    }
    return operate(OP_POWER, x, y, out);
}
static PyObject *nb_power(PyObject *x, PyObject *y, PyObject *modulo) {
    if (modulo != Py_None) return Py_NewRef(Py_NotImplemented);
    return power(x, y, NULL);
}
static PyObject *nb_inplace_power(PyObject *x, PyObject *y, PyObject *modulo) {
    if (modulo != Py_None) return Py_NewRef(Py_NotImplemented);
    return power(x, y, x);
}

static PyObject *nb_divmod(PyObject *x, PyObject *y) {
    PyObject *quotient = operate(OP_FLOOR_DIVIDE, x, y, NULL);
    if (!quotient || quotient == Py_NotImplemented) return quotient;
    PyObject *remainder = operate(OP_REMAINDER, x, y, NULL);
    PyObject *pair = remainder ? PyTuple_Pack(2, quotient, remainder) : NULL;
    Py_DECREF(quotient);
    Py_XDECREF(remainder);
    return pair;
}

static PyObject *nb_matrix_multiply(PyObject *x, PyObject *y) {
    if (!PyObject_TypeCheck(x, &binding_ndarray_type) ||
        !PyObject_TypeCheck(y, &binding_ndarray_type))
        return Py_NewRef(Py_NotImplemented);
    array *made;
    simt_status status =
        IN_SECTION(array_matmul(((pyarray *)x)->a, ((pyarray *)y)->a, FACE_NUMPY, &made));
    return binding_ok(status) ? binding_wrap(made) : NULL;
}

/* == and != with what cannot be compared by elements: with None, text and plain objects all differ; with others
 * that know how to compare it is theirs; sequences are an error, as everywhere. */
static PyObject *compare_object(PyObject *x, PyObject *y, int how) {
    array *a = ((pyarray *)x)->a, *made;
    bool plain = y == Py_None || PyUnicode_Check(y) || PyBytes_Check(y) ||
                 Py_TYPE(y)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
    if (PyList_Check(y) || PyTuple_Check(y))
        return PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(y));
    if (!plain) return Py_NewRef(Py_NotImplemented);
    int axes[ARRAY_MAX_NDIM];
    int64_t shape[ARRAY_MAX_NDIM];
    bool turned = array_memory_order(&a, 1, a->ndim, axes);
    for (int d = 0; d < a->ndim; d++) shape[d] = a->shape[turned ? axes[d] : d];
    scalar value = {.kind = 'B', .i = how == Py_NE};
    simt_status status = array_full(DT_BOOL, shape, a->ndim, value, &made);
    if (turned) status = array_turn_back(status, made, axes, &made);
    return binding_ok(status) ? binding_wrap(made) : NULL;
}

PyObject *binding_ndarray_compare(PyObject *x, PyObject *y, int how) {
    static const array_op ops[] = {
#define BINARY(name, op)
#define COMPARE(how, op) [Py_##how] = OP_##op,
#include "binding/common/operators.def"
    };
    PyObject *result = operate(ops[how], x, y, NULL);
    if (result != Py_NotImplemented || (how != Py_EQ && how != Py_NE) || is_foreign_array(y))
        return result;
    Py_DECREF(result);
    return compare_object(x, y, how);
}

/* ---- one element as a Python number ---- */

static int nb_bool(PyObject *self) {
    array *a = ((pyarray *)self)->a;
    scalar s;
    if (a->size == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "The truth value of an empty array is ambiguous. Use `array.size > 0` to "
                        "check that an array is not empty.");
        return -1;
    }
    if (a->size != 1) {
        PyErr_SetString(PyExc_ValueError,
                        "The truth value of an array with more than one element is ambiguous. Use "
                        "a.any() or a.all()");
        return -1;
    }
    if (!binding_ok(IN_SECTION(array_item(a, &s)))) return -1;
    return s.kind == 'F' ? s.f != 0 : s.i != 0;
}

static PyObject *only_element(PyObject *self) {
    array *a = ((pyarray *)self)->a;
    scalar s;
    if (a->size != 1) {
        PyErr_SetString(PyExc_TypeError, "only length-1 arrays can be converted to Python scalars");
        return NULL;
    }
    return binding_ok(IN_SECTION(array_item(a, &s))) ? binding_from_scalar(s) : NULL;
}

static PyObject *nb_int(PyObject *self) {
    PyObject *element = only_element(self);
    PyObject *number = element ? PyNumber_Long(element) : NULL;
    Py_XDECREF(element);
    return number;
}

static PyObject *nb_float(PyObject *self) {
    PyObject *element = only_element(self);
    PyObject *number = element ? PyNumber_Float(element) : NULL;
    Py_XDECREF(element);
    return number;
}

static PyObject *nb_index(PyObject *self) {
    array *a = ((pyarray *)self)->a;
    if (a->ndim != 0 || !dtype_is_integer(a->dt)) {
        PyErr_SetString(PyExc_TypeError,
                        "only integer scalar arrays can be converted to a scalar index");
        return NULL;
    }
    return only_element(self);
}

PyNumberMethods binding_ndarray_number = {
#define BINARY(name, op) .nb_##name = nb_##name, .nb_inplace_##name = nb_inplace_##name,
#define COMPARE(how, op)
#include "binding/common/operators.def"
    .nb_divmod = nb_divmod,
    .nb_power = nb_power,
    .nb_negative = nb_negative,
    .nb_positive = nb_positive,
    .nb_absolute = nb_absolute,
    .nb_bool = nb_bool,
    .nb_invert = nb_invert,
    .nb_int = nb_int,
    .nb_float = nb_float,
    .nb_inplace_power = nb_inplace_power,
    .nb_index = nb_index,
    .nb_matrix_multiply = nb_matrix_multiply,
};
