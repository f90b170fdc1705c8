/* Arrays from Python data: nested sequences, scalars, buffers, the array interface, DLPack; and back to lists.
 *
 * A nested sequence is walked twice: discovery fixes shape and dtype (and finds what is ragged), filling
 * writes the elements into the new array's memory, which nobody else has seen yet.
 */
#include "base/heap.h"
#include "binding/kernel.h"

#include <string.h>

/* ---- memory of others ---- */

static void release_buffer(void *owner) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyBuffer_Release((Py_buffer *)owner);
    heap_free(owner);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
}

static void c_strides(dtype dt, const int64_t *shape, int ndim, int64_t *strides) {
    int64_t step = (int64_t)dtype_bytes(dt);
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= shape[d];
    }
}

/* array_from_foreign for any strides: the base is the lowest address. Takes the owner: it is released
 * on failure too. */
bool binding_share(dtype dt, const int64_t *shape, const int64_t *strides, int ndim, char *data,
                   void (*release)(void *), void *owner, array **out) {
    int64_t low = 0, high = (int64_t)dtype_bytes(dt), one = 1;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        int64_t reach = strides[d] * (shape[d] - 1);
        if (shape[d] == 0)
            empty = true;
        else
            *(reach < 0 ? &low : &high) += reach;
    }
    if (empty) low = high = 0;
    if (!binding_start()) {
        release(owner);
        return false;
    }
    array *base;
    int64_t bytes = high - low;
    simt_status status = low == 0 ? array_from_foreign(dt, shape, strides, ndim, data, (size_t)high,
                                                       release, owner, out)
                                  : array_from_foreign(DT_U8, &bytes, &one, 1, data + low,
                                                       (size_t)bytes, release, owner, &base);
    if (status != SIMT_OK) {
        binding_raise();
        release(owner);
        return false;
    }
    if (low == 0) return true;
    status = array_view_strided(base, dt, shape, strides, ndim, -low, out);
    array_unref(base);
    return binding_ok(status);
}

/* The parts of a Py_buffer in our types; false without an exception when we cannot take it. */
static bool buffer_parts(const Py_buffer *view, dtype *dt, int64_t *shape, int64_t *strides) {
    if (view->ndim > ARRAY_MAX_NDIM || view->suboffsets) return false;
    if (!binding_format_to_dtype(view->format, view->itemsize, dt)) return false;
    for (int d = 0; d < view->ndim; d++) {
        shape[d] = view->shape[d];
        strides[d] = view->strides[d];
    }
    return true;
}

static int share_buffer(PyObject *o, array **out) {
    Py_buffer *view = heap_alloc(sizeof *view);
    if (!view) return PyErr_NoMemory(), -1;
    if (PyObject_GetBuffer(o, view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        if (PyObject_GetBuffer(o, view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
            PyErr_Clear();
            heap_free(view);
            return 0;
        }
    }
    dtype dt;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    if (!buffer_parts(view, &dt, shape, strides)) {
        PyBuffer_Release(view);
        heap_free(view);
        return 0;
    }
    return binding_share(dt, shape, strides, view->ndim, view->buf, release_buffer, view, out) ? 1
                                                                                               : -1;
}

typedef struct interface {
    dtype dt;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    char *data;
    Py_buffer buffer; /* data came as an object with the buffer protocol */
    bool has_buffer;
} interface;

static bool interface_data(PyObject *dict, interface *i) {
    PyObject *data = PyDict_GetItemString(dict, "data");
    if (data && PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2) {
        i->data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
        return !PyErr_Occurred();
    }
    if (!data || PyObject_GetBuffer(data, &i->buffer, PyBUF_SIMPLE) != 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "__array_interface__ has no data");
        return false;
    }
    i->data = i->buffer.buf;
    i->has_buffer = true;
    return true;
}

/* Checks that a buffer given as data is long enough for what shape and strides say. */
static bool interface_fits(const interface *i) {
    if (!i->has_buffer) return true;
    int64_t low = 0, high = (int64_t)dtype_bytes(i->dt);
    for (int d = 0; d < i->ndim; d++) {
        int64_t reach = 0;
        if (i->shape[d] == 0) return true;
        if (i->shape[d] < 0 || __builtin_mul_overflow(i->strides[d], i->shape[d] - 1, &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    }
    return low >= 0 && high <= i->buffer.len;
}

/* Tri-state. */
static int interface_read(PyObject *o, interface *i) {
    i->has_buffer = false;
    PyObject *dict = PyObject_GetAttrString(o, "__array_interface__");
    if (!dict) {
        PyErr_Clear();
        return 0;
    }
    PyObject *shape = PyDict_Check(dict) ? PyDict_GetItemString(dict, "shape") : NULL;
    PyObject *typestr = PyDict_Check(dict) ? PyDict_GetItemString(dict, "typestr") : NULL;
    PyObject *strides = PyDict_Check(dict) ? PyDict_GetItemString(dict, "strides") : NULL;
    int done = shape && typestr ? 1 : 0;
    if (done && (!binding_to_dtype(typestr, &i->dt) ||
                 !binding_to_shape(shape, "shape", i->shape, &i->ndim)))
        done = -1;
    if (done > 0) c_strides(i->dt, i->shape, i->ndim, i->strides);
    int count = i->ndim;
    if (done > 0 && strides && strides != Py_None &&
        (!binding_to_shape(strides, "strides", i->strides, &count) || count != i->ndim))
        done = -1;
    if (done > 0 && !interface_data(dict, i)) done = -1;
    if (done > 0 && !interface_fits(i)) {
        PyErr_SetString(PyExc_ValueError,
                        "__array_interface__: the data is shorter than shape and strides say");
        done = -1;
    }
    if (done < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "invalid __array_interface__");
    if (done < 0 && i->has_buffer) PyBuffer_Release(&i->buffer);
    Py_DECREF(dict);
    return done;
}

int binding_share_device(PyObject *o, array **out) {
    device_array *d;
    int done = kernel_device_share(o, &d);
    if (done <= 0) return done;
    bool ok = kernel_device_to_array(d, out);
    Py_DECREF(d);
    return ok ? 1 : -1;
}

int binding_share_memory(PyObject *o, array **out) {
    int device = PyObject_CheckBuffer(o) ? 0 : binding_share_device(o, out);
    if (device) return device;
    if (PyObject_CheckBuffer(o)) return share_buffer(o, out);
    interface i;
    int done = interface_read(o, &i);
    if (done <= 0) return done;
    if (i.has_buffer) { /* read-only bytes: cannot be shared */
        PyBuffer_Release(&i.buffer);
        return 0;
    }
    Py_INCREF(o);
    return binding_share(i.dt, i.shape, i.strides, i.ndim, i.data, binding_release_object, o, out)
               ? 1
               : -1;
}

/* Takes `made`, gives it in the asked dtype. */
static bool in_dtype(array *made, bool has_dtype, dtype dt, array **out) {
    if (!has_dtype || made->dt == dt) return *out = made, true;
    bool ok = binding_ok(array_astype(made, dt, out));
    array_unref(made);
    return ok;
}

static int copy_buffer(PyObject *o, bool has_dtype, dtype want, array **out) {
    Py_buffer view;
    dtype dt;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    if (PyObject_GetBuffer(o, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return 0;
    }
    int done = buffer_parts(&view, &dt, shape, strides) ? 1 : 0;
    array *made;
    if (done && (!binding_start() ||
                 !binding_ok(array_from_memory(dt, shape, strides, view.ndim, view.buf, &made))))
        done = -1;
    PyBuffer_Release(&view);
    return done == 1 ? (in_dtype(made, has_dtype, want, out) ? 1 : -1) : done;
}

static int copy_interface(PyObject *o, bool has_dtype, dtype want, array **out) {
    interface i;
    int done = interface_read(o, &i);
    if (done <= 0) return done;
    array *made;
    bool ok = binding_start() &&
              binding_ok(array_from_memory(i.dt, i.shape, i.strides, i.ndim, i.data, &made));
    if (i.has_buffer) PyBuffer_Release(&i.buffer);
    return ok && in_dtype(made, has_dtype, want, out) ? 1 : -1;
}

static int copy_dlpack(PyObject *o, bool has_dtype, dtype want, array **out) {
    if (PyType_Check(o) || !PyObject_HasAttrString(o, "__dlpack__")) return 0;
    array *shared, *made;
    if (!binding_from_dlpack(o, &shared)) return -1;
    bool ok = binding_ok(array_copy(shared, &made)) && binding_ok(array_evaluate(made));
    array_unref(shared);
    return ok && in_dtype(made, has_dtype, want, out) ? 1 : -1;
}

/* Whatever has memory of its own; tri-state. */
static int copy_memory(PyObject *o, bool has_dtype, dtype dt, array **out) {
    if (PyObject_CheckBuffer(o) && !PyBytes_Check(o)) {
        int done = copy_buffer(o, has_dtype, dt, out);
        if (done) return done;
    }
    if (PyLong_Check(o) || PyFloat_Check(o) || PyType_Check(o)) return 0;
    int done = copy_interface(o, has_dtype, dt, out);
    if (done == 0) done = copy_dlpack(o, has_dtype, dt, out);
    return done;
}

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

static bool is_sequence(PyObject *o) {
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return true;
    return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) &&
           !PyObject_CheckBuffer(o) && !binding_is_array(o) && !PyDict_Check(o) &&
           !PyObject_HasAttrString(o, "__array_interface__");
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
        int done = copy_memory(o, false, DT_F32, &a);
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
    if (PyObject_CheckBuffer(o) && d->face == FACE_TORCH &&
        PyFloat_Check(o)) /* numpy.float64 is a float */
        return meet_leaf(d, depth, d->default_float);
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
    if (is_known_number(d, o, depth)) return true;
    if (!is_sequence(o)) return discover_leaf(d, o, depth);
    PyObject *list = PySequence_Fast(o, "not a sequence");
    if (!list) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    bool ok = meet_axis(d, depth, n);
    if (ok && n == 0) {
        d->depth_known = true;
        ok = depth + 1 == d->ndim ? true : ragged(d, depth, n);
    }
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(list); i++)
        ok = discover(d, PySequence_Fast_GET_ITEM(list, i), depth + 1);
    Py_DECREF(list);
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

static bool fill_leaf(filling *f, PyObject *o) {
    size_t bytes = dtype_bytes(f->dt);
    if (f->to + bytes > f->end) { /* the sequence changed while it was read */
        PyErr_SetString(PyExc_RuntimeError,
                        "a sequence changed its length while an array was made of it");
        return false;
    }
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
        int done = binding_to_scalar(o, &s);
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
    else if (copy_memory(o, false, DT_F32, &a) <= 0)
        return unsupported_leaf(o, f->d->face, f->d->ndim);
    size_t bytes = (size_t)a->size * dtype_bytes(f->dt);
    bool ok = f->to + bytes <= f->end && binding_ok(array_astype(a, f->dt, &cast)) &&
              binding_ok(array_copy_out(cast, f->to));
    f->to += bytes;
    array_unref(a);
    array_unref(cast);
    if (!ok && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError,
                        "a sequence changed its length while an array was made of it");
    return ok;
}

static bool fill(filling *f, PyObject *o, int depth) {
    if (depth == f->d->ndim) return fill_leaf(f, o);
    if (!is_sequence(o)) return fill_array(f, o);
    PyObject *list = PySequence_Fast(o, "not a sequence");
    if (!list) return false;
    bool ok = PySequence_Fast_GET_SIZE(list) == f->d->shape[depth];
    if (!ok)
        PyErr_SetString(PyExc_RuntimeError,
                        "a sequence changed its length while an array was made of it");
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(list); i++)
        ok = fill(f, PySequence_Fast_GET_ITEM(list, i), depth + 1);
    Py_DECREF(list);
    return ok;
}

bool binding_to_array(PyObject *o, bool has_dtype, dtype dt, graph_face face, dtype default_float,
                      array **out) {
    if (binding_is_array(o)) {
        array *a = ((pyarray *)o)->a;
        return binding_ok(has_dtype ? array_astype(a, dt, out) : array_copy(a, out));
    }
    if (!is_sequence(o)) {
        int done = copy_memory(o, has_dtype, dt, out);
        if (done) return done > 0;
    }
    if (!binding_start()) return false;
    discovery d = {.face = face, .default_float = face == FACE_NUMPY ? DT_F64 : default_float};
    if (!discover(&d, o, 0)) return false;
    if (!has_dtype) dt = d.has_dt ? d.dt : d.default_float;
    array *made;
    if (!binding_ok(array_empty(dt, d.shape, d.ndim, &made))) return false;
    char *data = array_data(made);
    filling f = {.d = &d, .dt = dt, .to = data, .end = data + (size_t)made->size * dtype_bytes(dt)};
    if (made->size > 0 && !fill(&f, o, 0)) {
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
