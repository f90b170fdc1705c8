/* Memory of others: what a buffer or an array interface says about it, checked, in our types; and arrays
 * that share it.
 *
 * Whoever describes memory may be wrong: sizes may be negative, products overflow, strides be missing,
 * the address be 0 or lead nowhere. All of that is refused here, once, for every face. What comes out is
 * described completely: shape and strides are there, and `binding_extent` could say which bytes they
 * reach. */
#include "base/heap.h"
#include "binding/common/binding.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- shapes and strides ---- */

void binding_c_strides(size_t itemsize, const int64_t *shape, int ndim, int64_t *strides) {
    /* an empty array's other sizes may have any product: it wraps */
    uint64_t step = itemsize;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = (int64_t)step;
        step *= shape[d] ? (uint64_t)shape[d] : 1;
    }
}

bool binding_extent(size_t itemsize, const int64_t *shape, const int64_t *strides, int ndim,
                    int64_t *low, int64_t *high) {
    int64_t count = (int64_t)itemsize;
    bool empty = false, fits = true;
    *low = 0;
    *high = (int64_t)itemsize;
    for (int d = 0; d < ndim; d++) {
        int64_t reach = 0;
        if (shape[d] < 0) {
            PyErr_Format(PyExc_ValueError,
                         "negative dimensions are not allowed: %lld along axis %d",
                         (long long)shape[d], d);
            return false;
        }
        if (shape[d] == 0) {
            empty = true;
            continue;
        }
        fits = fits && !__builtin_mul_overflow(count, shape[d], &count) &&
               !__builtin_mul_overflow(strides[d], shape[d] - 1, &reach) &&
               !__builtin_add_overflow(reach < 0 ? *low : *high, reach, reach < 0 ? low : high);
    }
    int64_t bytes;
    if (empty) *low = *high = 0;
    if (empty || (fits && !__builtin_sub_overflow(*high, *low, &bytes))) return true;
    PyErr_SetString(PyExc_ValueError,
                    "the shape and strides of the memory reach farther than addresses do");
    return false;
}

bool binding_is_aligned(size_t unit, const int64_t *shape, const int64_t *strides, int ndim,
                        const void *data) {
    uint64_t bits = (uintptr_t)data;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0) return true;
        if (shape[d] > 1) bits |= (uint64_t)strides[d];
    }
    return (bits & (unit - 1)) == 0;
}

/* An address that leads nowhere would end the process when it is read. */
static bool is_mapped(const char *data, int64_t low, int64_t high) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data + (uint64_t)low;
    if (low == high) return true;
    uintptr_t start = from & ~(page - 1), end = (uintptr_t)data + (uint64_t)high;
    bool mapped = data && from <= end && msync((void *)start, end - start, MS_ASYNC) == 0;
    if (!data)
        PyErr_SetString(PyExc_ValueError, "the address is 0");
    else if (!mapped)
        PyErr_Format(PyExc_ValueError,
                     "there is no memory of this process at address %p (%lld bytes are described)",
                     (const void *)from, (long long)(high - low));
    return mapped;
}

bool binding_share(dtype dt, const int64_t *shape, const int64_t *strides, int ndim, char *data,
                   void (*release)(void *), void *owner, array **out) {
    int64_t low, high, one = 1;
    if (!binding_extent(dtype_bytes(dt), shape, strides, ndim, &low, &high) || !binding_start()) {
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

/* ---- buffers ---- */

bool binding_get_buffer(PyObject *o, bool writable, binding_buffer *b) {
    if (PyObject_GetBuffer(o, &b->view,
                           PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) != 0)
        return false;
    const Py_buffer *v = &b->view;
    b->usable = v->ndim >= 0 && v->ndim <= ARRAY_MAX_NDIM && !v->suboffsets &&
                (v->shape || v->ndim == 0 || (v->ndim == 1 && v->itemsize > 0));
    if (!b->usable) return true;
    for (int d = 0; d < v->ndim; d++) b->shape[d] = v->shape ? v->shape[d] : v->len / v->itemsize;
    if (v->strides)
        for (int d = 0; d < v->ndim; d++) b->strides[d] = v->strides[d];
    else /* C order, as of ctypes arrays */
        binding_c_strides((size_t)v->itemsize, b->shape, v->ndim, b->strides);
    return true;
}

bool binding_is_numpy_scalar(PyObject *o) {
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0) return false;
    const PyTypeObject *type = Py_TYPE(o); /* and no array's, nor made from it */
    while (type && strcmp(type->tp_name, "numpy.ndarray") != 0) type = type->tp_base;
    return !type;
}

/* Whether elements of the buffer are of a type that arrays have. Dates give their bytes as a buffer. */
static bool buffer_type(PyObject *o, const binding_buffer *b, dtype *dt) {
    return b->usable && binding_format_to_dtype(b->view.format, b->view.itemsize, dt) &&
           !(b->view.ndim > 0 && binding_is_numpy_scalar(o));
}

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

PyObject *binding_owner(const array *a, int refs, int holders) {
    const storage *s = a ? a->store : NULL;
    if (!s || !s->foreign || a->refs != refs || s->refs != holders) return NULL;
    if (s->release == binding_release_object) return s->owner;
    return s->release == release_buffer ? ((Py_buffer *)s->owner)->obj : NULL;
}

static int share_buffer(PyObject *o, array **out) {
    binding_buffer b;
    dtype dt;
    if (!binding_get_buffer(o, true, &b)) {
        if (!binding_forgive()) return -1;
        if (!binding_get_buffer(o, false, &b)) return binding_forgive() ? 0 : -1;
    }
    Py_buffer *kept = NULL;
    int done = buffer_type(o, &b, &dt) &&
               binding_is_aligned(dtype_bytes(dt), b.shape, b.strides, b.view.ndim, b.view.buf);
    if (done && !(kept = heap_alloc(sizeof *kept))) {
        PyErr_NoMemory();
        done = -1;
    }
    if (done <= 0) {
        PyBuffer_Release(&b.view);
        return done;
    }
    *kept = b.view;
    return binding_share(dt, b.shape, b.strides, b.view.ndim, b.view.buf, release_buffer, kept, out)
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

static bool copy_described(dtype dt, const int64_t *shape, const int64_t *strides, int ndim,
                           const char *data, bool has_dtype, dtype want, array **out) {
    array *made;
    int64_t low, high;
    return binding_extent(dtype_bytes(dt), shape, strides, ndim, &low, &high) && binding_start() &&
           binding_ok(array_from_memory(dt, shape, strides, ndim, data, &made)) &&
           in_dtype(made, has_dtype, want, out);
}

static int copy_buffer(PyObject *o, bool has_dtype, dtype want, array **out) {
    binding_buffer b;
    dtype dt;
    if (!binding_get_buffer(o, false, &b)) return binding_forgive() ? 0 : -1;
    int done = 0;
    if (buffer_type(o, &b, &dt))
        done = copy_described(dt, b.shape, b.strides, b.view.ndim, b.view.buf, has_dtype, want, out)
                   ? 1
                   : -1;
    PyBuffer_Release(&b.view);
    return done;
}

/* ---- array interfaces ---- */

static bool bad(const binding_interface *i, const char *what) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%s: %s", i->name, what);
    return false;
}

/* The entry of the description, a new reference: reading the others may change it. NULL: none, None, or an
 * exception is set. */
static PyObject *entry(PyObject *dict, const char *name) {
    PyObject *key = PyUnicode_FromString(name);
    PyObject *value = key ? Py_XNewRef(PyDict_GetItemWithError(dict, key)) : NULL;
    Py_XDECREF(key);
    if (value == Py_None) Py_CLEAR(value);
    return value;
}

/* (address, read-only flag), or for __array_interface__ an object with the buffer protocol. */
static bool read_data(binding_interface *i, PyObject *data, PyObject *offset) {
    if (data && PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2) {
        PyObject *address = PyTuple_GET_ITEM(data, 0);
        i->data = address == Py_None ? NULL : PyLong_AsVoidPtr(address);
        if (PyErr_Occurred()) return false;
        int readonly = binding_truth(PyTuple_GET_ITEM(data, 1));
        i->readonly = readonly > 0;
        return readonly >= 0;
    }
    if (!data || !i->host) return bad(i, "data must be (address, read-only flag)");
    int64_t from = 0;
    if (PyObject_GetBuffer(data, &i->buffer, PyBUF_SIMPLE) != 0) return false;
    i->has_buffer = true;
    if (offset && !binding_to_int64(offset, &from)) return false;
    if (from < 0 || from > i->buffer.len) return bad(i, "the offset lies outside the data");
    i->data = (char *)i->buffer.buf + from;
    i->room = i->buffer.len - from;
    return true;
}

static bool read_parts(binding_interface *i, PyObject *dict, PyObject *parts[6]) {
    static const char *const names[6] = {"shape", "typestr", "strides", "data", "mask", "offset"};
    for (int k = 0; k < 6; k++)
        if (!(parts[k] = entry(dict, names[k])) && PyErr_Occurred()) return false;
    int count;
    if (!parts[0] || !parts[1]) return bad(i, "it has no shape or typestr");
    if (parts[4]) {
        PyErr_SetString(PyExc_NotImplementedError, "Masked arrays are not supported");
        return false;
    }
    if (!i->itemsize(i, parts[1]) || !binding_to_shape(parts[0], "shape", i->shape, &i->ndim))
        return false;
    binding_c_strides(i->bytes, i->shape, i->ndim, i->strides);
    if (parts[2] && !binding_to_shape(parts[2], "strides", i->strides, &count)) return false;
    if (parts[2] && count != i->ndim) return bad(i, "strides do not fit the shape");
    return read_data(i, parts[3], parts[5]);
}

static bool check_reach(const binding_interface *i) {
    int64_t low, high;
    if (!binding_extent(i->bytes, i->shape, i->strides, i->ndim, &low, &high)) return false;
    if (i->has_buffer && (low < 0 || high > i->room))
        return bad(i, "the data is shorter than shape and strides say");
    bool apart = !i->host && binding_start() && !array_is_on_host(); /* then its owner will look */
    return i->has_buffer || apart || is_mapped(i->data, low, high);
}

bool binding_interface_parse(PyObject *dict, binding_interface *i) {
    PyObject *parts[6] = {NULL};
    i->has_buffer = i->readonly = false;
    bool ok = PyDict_Check(dict) ? read_parts(i, dict, parts) && check_reach(i)
                                 : bad(i, "it is no dictionary");
    for (int k = 0; k < 6; k++) Py_XDECREF(parts[k]);
    if (!ok && i->has_buffer) PyBuffer_Release(&i->buffer);
    return ok;
}

int binding_interface_get(PyObject *o, const char *name, PyObject **dict) {
    if (PyType_Check(o)) return 0; /* the attribute of a class describes its instances */
    if (!binding_enter()) return -1;
    int found = binding_attribute(o, name, dict);
    binding_leave();
    return found;
}

static bool host_itemsize(binding_interface *i, PyObject *typestr) {
    if (!binding_to_dtype(typestr, &i->dt)) return false;
    i->bytes = dtype_bytes(i->dt);
    return true;
}

/* Any type's: "<f8", "<U3", "|V12", "<M8[s]". */
static bool any_itemsize(binding_interface *i, PyObject *typestr) {
    const char *text = PyUnicode_Check(typestr) ? PyUnicode_AsUTF8(typestr) : NULL;
    long bytes = text && strlen(text) > 2 ? strtol(text + 2, NULL, 10) : 0;
    if (bytes <= 0 || bytes > INT32_MAX) return bad(i, "its typestr has no size");
    i->bytes = (size_t)bytes * (text[1] == 'U' ? 4 : 1);
    return true;
}

bool binding_interface_check(PyObject *o) {
    binding_interface i = {.name = "__array_interface__", .host = true, .itemsize = any_itemsize};
    PyObject *dict;
    int done = binding_interface_get(o, i.name, &dict);
    if (done <= 0) return done == 0;
    bool ok = binding_interface_parse(dict, &i);
    Py_DECREF(dict);
    if (ok && i.has_buffer) PyBuffer_Release(&i.buffer);
    return ok;
}

/* Tri-state. */
static int host_interface(PyObject *o, binding_interface *i) {
    PyObject *dict;
    *i =
        (binding_interface){.name = "__array_interface__", .host = true, .itemsize = host_itemsize};
    int done = binding_interface_get(o, i->name, &dict);
    if (done <= 0) return done;
    done = binding_interface_parse(dict, i) ? 1 : -1;
    Py_DECREF(dict);
    return done;
}

static int copy_interface(PyObject *o, bool has_dtype, dtype want, array **out) {
    binding_interface i;
    int done = host_interface(o, &i);
    if (done <= 0) return done;
    bool ok = copy_described(i.dt, i.shape, i.strides, i.ndim, i.data, has_dtype, want, out);
    if (i.has_buffer) PyBuffer_Release(&i.buffer);
    return ok ? 1 : -1;
}

static int share_interface(PyObject *o, array **out) {
    binding_interface i;
    int done = host_interface(o, &i);
    if (done <= 0) return done;
    if (i.has_buffer) PyBuffer_Release(&i.buffer); /* it may be read-only bytes: not shared */
    if (i.has_buffer || !binding_is_aligned(i.bytes, i.shape, i.strides, i.ndim, i.data)) return 0;
    return binding_share(i.dt, i.shape, i.strides, i.ndim, i.data, binding_release_object,
                         Py_NewRef(o), out)
               ? 1
               : -1;
}

/* ---- any of them ---- */

int binding_share_memory(PyObject *o, array **out) {
    if (PyObject_CheckBuffer(o)) return share_buffer(o, out);
    int device = binding_share_device(o, out);
    return device ? device : share_interface(o, out);
}

static int copy_dlpack(PyObject *o, bool has_dtype, dtype want, array **out) {
    PyObject *method;
    int has = PyType_Check(o) ? 0 : binding_attribute(o, "__dlpack__", &method);
    if (has <= 0) return has;
    Py_DECREF(method);
    array *shared, *made;
    if (!binding_from_dlpack(o, &shared)) return -1;
    bool ok = binding_ok(array_copy(shared, &made)) && binding_ok(array_evaluate(made));
    array_unref(shared);
    return ok && in_dtype(made, has_dtype, want, out) ? 1 : -1;
}

int binding_copy_memory(PyObject *o, bool has_dtype, dtype dt, array **out) {
    if (PyObject_CheckBuffer(o) && !PyBytes_Check(o)) {
        int done = copy_buffer(o, has_dtype, dt, out);
        if (done) return done;
    }
    if (PyLong_Check(o) || PyFloat_Check(o) || PyType_Check(o)) return 0;
    int done = copy_interface(o, has_dtype, dt, out);
    if (done == 0) done = copy_dlpack(o, has_dtype, dt, out);
    return done;
}
