/* Arrays from Python data: nested sequences, scalars, what has memory of its own (foreign.c); and back to
 * lists.
 *
 * A nested sequence is walked twice: discovery fixes shape and dtype (and finds what is ragged), filling
 * writes the elements into the new array's memory, which nobody else has seen yet.
 */
#include "base/heap.h"
#include "binding/common/binding.h"

#include <string.h>

/* ---- nested sequences ---- */

typedef struct discovery {
    graph_face face;
    dtype default_float;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    bool depth_known; /* a leaf was seen: ndim is final */
    bool has_dt;
    dtype dt;
} discovery;

/* Tri-state. */
static int is_sequence(PyObject *o) {
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return 1;
    if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyObject_CheckBuffer(o) ||
        binding_is_array(o) || PyDict_Check(o))
        return 0;
    PyObject *interface;
    int array = binding_attribute(o, "__array_interface__", &interface);
    Py_XDECREF(interface);
    return array < 0 ? -1 : !array;
}

static bool ragged(const discovery *d, int depth, int64_t got) {
    if (d->face == FACE_TORCH) {
        if (depth < d->ndim)
            PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %lld)",
                         (long long)d->shape[depth], depth, (long long)got);
        else
            PyErr_Format(PyExc_TypeError, "not a sequence");
        return false;
    }
    int known = depth < d->ndim ? depth : d->ndim;
    PyObject *shape = binding_from_shape(d->shape, known);
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     "setting an array element with a sequence. The requested array has an "
                     "inhomogeneous shape "
                     "after %d dimensions. The detected shape was %R + inhomogeneous part.",
                     known, shape);
    Py_XDECREF(shape);
    return false;
}

static bool meet_axis(discovery *d, int depth, int64_t n) {
    if (!d->depth_known && depth == d->ndim) {
        if (depth == ARRAY_MAX_NDIM) {
            PyErr_Format(PyExc_ValueError, "sequences nested more than %d deep", ARRAY_MAX_NDIM);
            return false;
        }
        d->shape[d->ndim++] = n;
        return true;
    }
    return depth < d->ndim && d->shape[depth] == n ? true : ragged(d, depth, n);
}

static bool meet_leaf(discovery *d, int depth, dtype dt) {
    if (!d->depth_known) {
        d->depth_known = true;
    }
    if (depth != d->ndim) return ragged(d, depth, 0);
    if (!d->has_dt) {
        d->has_dt = true;
        d->dt = dt;
    } else if (d->face == FACE_TORCH && dtype_is_float(dt) != dtype_is_float(d->dt)) {
        if (dtype_is_float(dt)) d->dt = dt;
    } else if (d->dt != dt) {
        d->dt = dtype_promote(d->dt, dt);
    }
    return true;
}

static bool unsupported_leaf(PyObject *o, graph_face face, int depth) {
    if (PyErr_Occurred()) return false;
    if (face == FACE_TORCH && PyUnicode_Check(o))
        PyErr_SetString(depth ? PyExc_ValueError : PyExc_TypeError,
                        depth ? "too many dimensions 'str'" : "new(): invalid data type 'str'");
    else if (face == FACE_TORCH)
        PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(o)->tp_name);
    else
        PyErr_Format(PyExc_TypeError, "Unsupported type %R", (PyObject *)Py_TYPE(o));
    return false;
}

static bool discover_array_leaf(discovery *d, PyObject *o, int depth) {
    array *a = NULL;
    if (binding_is_array(o)) {
        a = array_ref(((pyarray *)o)->a);
    } else {
        int done = binding_copy_memory(o, false, DT_F32, &a);
        if (done <= 0) return unsupported_leaf(o, d->face, depth);
    }
    bool ok = true;
    for (int i = 0; ok && i < a->ndim; i++) ok = meet_axis(d, depth + i, a->shape[i]);
    ok = ok && meet_leaf(d, depth + a->ndim, a->dt);
    array_unref(a);
    return ok;
}

static bool discover_leaf(discovery *d, PyObject *o, int depth) {
    if (PyFloat_CheckExact(o)) return meet_leaf(d, depth, d->default_float);
    if (PyBool_Check(o)) return meet_leaf(d, depth, DT_BOOL);
    if (PyLong_CheckExact(o)) {
        int overflow;
        PyLong_AsLongLongAndOverflow(o, &overflow);
        return meet_leaf(d, depth, overflow > 0 ? DT_U64 : DT_I64);
    }
    if (binding_is_array(o) || PyObject_CheckBuffer(o)) return discover_array_leaf(d, o, depth);
    if (PyFloat_Check(o)) return meet_leaf(d, depth, d->default_float);
    if (PyLong_Check(o)) return meet_leaf(d, depth, DT_I64);
    return discover_array_leaf(d, o, depth);
}

/* A number that brings nothing new: the common case of long lists. */
static bool is_known_number(const discovery *d, PyObject *o, int depth) {
    if (!d->depth_known || depth != d->ndim || !d->has_dt) return false;
    if (PyFloat_CheckExact(o)) return d->dt == d->default_float;
    if (!PyLong_CheckExact(o) || d->dt != DT_I64) return false;
    int overflow;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
}

static bool discover(discovery *d, PyObject *o, int depth) {
    int nested = is_sequence(o);
    if (nested <= 0) return nested == 0 && discover_leaf(d, o, depth);
    if (!binding_enter()) return false;
    PyObject *list = PySequence_Fast(o, "not a sequence");
    Py_ssize_t n = list ? PySequence_Fast_GET_SIZE(list) : 0;
    bool ok = list && meet_axis(d, depth, n);
    if (ok && n == 0) {
        d->depth_known = true;
        ok = depth + 1 == d->ndim ? true : ragged(d, depth, n);
    }
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        if (is_known_number(d, item, depth + 1)) continue;
        Py_INCREF(item); /* looking at it may change the list */
        ok = discover(d, item, depth + 1);
        Py_DECREF(item);
    }
    binding_leave();
    Py_XDECREF(list);
    return ok;
}

typedef struct filling {
    const discovery *d;
    dtype dt;
    char *to, *end;
} filling;

static bool out_of_bounds(PyObject *o, graph_face face, dtype dt) {
    if (face == FACE_TORCH) {
        const char *c_name = dt == DT_BOOL ? "bool" : dtype_table[dt].name;
        PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s%s without overflow",
                     c_name, dt == DT_BOOL ? "" : "_t");
    } else {
        PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", o,
                     dtype_table[dt].name);
    }
    return false;
}

bool binding_integer_fits(scalar s, dtype dt) {
    if (!dtype_is_integer(dt)) return true;
    int bits = (int)dtype_bytes(dt) * 8;
    if (s.kind == 'U') return dt == DT_U64;
    if (dtype_is_unsigned(dt)) return s.i >= 0 && (bits == 64 || s.i < (int64_t)1 << bits);
    return bits == 64 || (s.i >= -((int64_t)1 << (bits - 1)) && s.i < (int64_t)1 << (bits - 1));
}

static bool float_to_integer_fails(double f) {
    if (f != f)
        PyErr_SetString(PyExc_ValueError, "cannot convert float NaN to integer");
    else if (f - f != 0)
        PyErr_SetString(PyExc_OverflowError, "cannot convert float infinity to integer");
    else
        return false;
    return true;
}

static bool changed(void) {
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError,
                        "a sequence changed its length while an array was made of it");
    return false;
}

static bool fill_leaf(filling *f, PyObject *o) {
    size_t bytes = dtype_bytes(f->dt);
    if ((size_t)(f->end - f->to) < bytes) return changed();
    scalar s;
    if (f->dt == DT_I64 && PyLong_CheckExact(o)) {
        int overflow;
        int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow) return out_of_bounds(o, f->d->face, f->dt);
        memcpy(f->to, &value, sizeof value);
        f->to += sizeof value;
        return true;
    }
    if (PyFloat_CheckExact(o)) {
        s = (scalar){.kind = 'F', .f = PyFloat_AS_DOUBLE(o)};
        if (dtype_is_integer(f->dt) && float_to_integer_fails(s.f)) return false;
    } else {
        int done = binding_to_scalar(o, f->d->face, &s);
        if (done <= 0) return unsupported_leaf(o, f->d->face, f->d->ndim);
        if (s.kind != 'F' && PyLong_Check(o) && !binding_integer_fits(s, f->dt))
            return out_of_bounds(o, f->d->face, f->dt);
    }
    scalar_store(s, f->dt, f->to);
    f->to += bytes;
    return true;
}

static bool fill_array(filling *f, PyObject *o) {
    array *a = NULL, *cast = NULL;
    if (binding_is_array(o))
        a = array_ref(((pyarray *)o)->a);
    else if (binding_copy_memory(o, false, DT_F32, &a) <= 0)
        return unsupported_leaf(o, f->d->face, f->d->ndim);
    size_t bytes = (size_t)a->size * dtype_bytes(f->dt);
    bool fits = bytes <= (size_t)(f->end - f->to);
    bool ok = fits && binding_ok(array_astype(a, f->dt, &cast)) &&
              binding_ok(array_copy_out(cast, f->to));
    if (ok) f->to += bytes;
    array_unref(a);
    array_unref(cast);
    return ok || changed();
}

static bool fill(filling *f, PyObject *o, int depth) {
    if (depth == f->d->ndim) return fill_leaf(f, o);
    int nested = is_sequence(o);
    if (nested <= 0) return nested == 0 && fill_array(f, o);
    PyObject *list = PySequence_Fast(o, "not a sequence");
    if (!list) return false;
    bool ok = PySequence_Fast_GET_SIZE(list) == f->d->shape[depth] || changed();
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(list, i)); /* as in discover */
        ok = fill(f, item, depth + 1);
        Py_DECREF(item);
    }
    Py_DECREF(list);
    return ok;
}

static bool fill_array_of(const discovery *d, const array *made, PyObject *o) {
    array_window w;
    if (!binding_ok(array_open(made, ARRAY_FILL, &w))) return false;
    char *end = w.data + (size_t)made->size * dtype_bytes(made->dt);
    filling f = {.d = d, .dt = made->dt, .to = w.data, .end = end};
    bool ok = fill(&f, o, 0) && (f.to == f.end || changed());
    if (ok) return binding_ok(array_close(&w));
    array_discard(&w);
    return false;
}

bool binding_to_array(PyObject *o, bool has_dtype, dtype dt, graph_face face, dtype default_float,
                      array **out) {
    if (binding_is_array(o)) {
        array *a = array_ref(((pyarray *)o)->a); /* a tensor's may be replaced meanwhile */
        bool ok = binding_ok(has_dtype ? array_astype(a, dt, out) : array_copy(a, out));
        array_unref(a);
        return ok;
    }
    int nested = is_sequence(o);
    if (nested < 0) return false;
    if (!nested) {
        int done = binding_copy_memory(o, has_dtype, dt, out);
        if (done) return done > 0;
    }
    if (!binding_start()) return false;
    discovery d = {.face = face, .default_float = face == FACE_NUMPY ? DT_F64 : default_float};
    if (!discover(&d, o, 0)) return false;
    if (!has_dtype) dt = d.has_dt ? d.dt : d.default_float;
    array *made;
    if (!binding_ok(array_empty(dt, d.shape, d.ndim, &made))) return false;
    if (made->size > 0 && !fill_array_of(&d, made, o)) {
        array_unref(made);
        return false;
    }
    *out = made;
    return true;
}

/* ---- lists ---- */

static PyObject *to_list(const array *a, int axis, const char **from) {
    if (axis == a->ndim) {
        PyObject *item = binding_from_scalar(scalar_load(a->dt, *from));
        *from += dtype_bytes(a->dt);
        return item;
    }
    PyObject *list = PyList_New((Py_ssize_t)a->shape[axis]);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)a->shape[axis]; i++) {
        PyObject *item = to_list(a, axis + 1, from);
        if (item)
            PyList_SET_ITEM(list, i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

PyObject *binding_tolist(array *a) {
    char *bytes = heap_alloc((size_t)a->size * dtype_bytes(a->dt) + 1);
    if (!bytes) return PyErr_NoMemory();
    const char *from = bytes;
    PyObject *list = binding_ok(array_copy_out(a, bytes)) ? to_list(a, 0, &from) : NULL;
    heap_free(bytes);
    return list;
}
