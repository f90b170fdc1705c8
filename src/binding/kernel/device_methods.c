/* Methods and indexing of DeviceNDArray: copies to and from the host, assignment, exchange; views are in
 * device_views.c. What raises, and in which words, follows Numba's device arrays. */
#include "binding/kernel/device_methods.h"

#include <string.h>

static device_array *self_of(PyObject *o) { return (device_array *)o; }

/* ---- copies ---- */

enum { LARGE = 1 << 16 }; /* bytes worth giving up the GIL */

static bool copy_bytes(device_way way, void *to, const void *from, size_t n) {
    device *dev = runtime_device(array_runtime());
    if (n < LARGE) return binding_ok(device_copy(dev, way, to, from, n));
    simt_status status;
    Py_BEGIN_ALLOW_THREADS status = device_copy(dev, way, to, from, n);
    Py_END_ALLOW_THREADS return binding_ok(status);
}

/* The array of a buffer's parts; false without an exception when it is none of our types. */
static bool from_buffer(PyObject *of, const binding_buffer *b, device_array *out) {
    const Py_buffer *view = &b->view;
    if (!b->usable || view->ndim > PY_MAX_NDIM) return false;
    out->ndim = view->ndim;
    memcpy(out->shape, b->shape, sizeof *b->shape * (size_t)view->ndim);
    memcpy(out->strides, b->strides, sizeof *b->strides * (size_t)view->ndim);
    out->type = PY_S_NONE;
    out->record = NULL;
    if (binding_is_numpy_scalar(of) && view->ndim) return false; /* the bytes of a date */
    if (kernel_scalar_of_format(view->format, view->itemsize, &out->type)) return true;
    out->record = kernel_record_of_object(of);
    return out->record != NULL;
}

/* numpy.copyto(to, from, casting="unsafe") */
static bool copy_to(PyObject *to, PyObject *from) {
    PyObject *numpy = PyImport_ImportModule("numpy"), *done = NULL;
    if (numpy) done = PyObject_CallMethod(numpy, "copyto", "OOs", to, from, "unsafe");
    Py_XDECREF(numpy);
    Py_XDECREF(done);
    return done != NULL;
}

/* A host array of the device array's shape and layout (C unless it is Fortran-ordered). */
static PyObject *new_host(const device_array *d) {
    PyObject *numpy = PyImport_ImportModule("numpy"), *dt = kernel_device_dtype(d);
    PyObject *shape = binding_from_shape(d->shape, d->ndim), *made = NULL;
    bool fortran = kernel_is_contiguous(d, 'F') && !kernel_is_contiguous(d, 'C');
    if (numpy && dt && shape)
        made = PyObject_CallMethod(numpy, "empty", "OOs", shape, dt, fortran ? "F" : "C");
    Py_XDECREF(numpy);
    Py_XDECREF(dt);
    Py_XDECREF(shape);
    return made;
}

static bool same_layout(const device_array *a, const device_array *b) {
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->ndim) != 0)
        return false;
    return (kernel_is_contiguous(a, 'C') && kernel_is_contiguous(b, 'C')) ||
           (kernel_is_contiguous(a, 'F') && kernel_is_contiguous(b, 'F'));
}

/* "incompatible dtype: int64 vs. float32"; host is the array of the host's side. */
static bool check_compatible(const device_array *d, PyObject *host) {
    PyObject *shape = PyObject_GetAttrString(host, "shape"), *dt = NULL, *ours = NULL, *own = NULL;
    bool ok = false;
    if (!shape) return false;
    own = binding_from_shape(d->shape, d->ndim);
    dt = PyObject_GetAttrString(host, "dtype");
    ours = kernel_device_dtype(d);
    if (own && dt && ours) {
        int same = PyObject_RichCompareBool(dt, ours, Py_EQ);
        if (same == 0) PyErr_Format(PyExc_TypeError, "incompatible dtype: %S vs. %S", ours, dt);
        int alike = same > 0 ? PyObject_RichCompareBool(own, shape, Py_EQ) : -1;
        if (alike == 0) PyErr_Format(PyExc_ValueError, "incompatible shape: %S vs. %S", own, shape);
        ok = alike > 0;
    }
    Py_DECREF(shape);
    Py_XDECREF(own);
    Py_XDECREF(dt);
    Py_XDECREF(ours);
    return ok;
}

/* Memory directly where the layouts are alike. */
bool kernel_copy_host(device_array *d, PyObject *host, bool to_host) {
    binding_buffer b;
    storage *store = d->base->store;
    if (binding_get_buffer(host, to_host, &b)) {
        device_array h;
        bool direct = from_buffer(host, &b, &h) && h.type == d->type && h.record == d->record &&
                      same_layout(d, &h);
        size_t bytes = (size_t)(kernel_size(d) * kernel_item_bytes(d));
        bool began = direct && binding_ok(order_begin(&store, 1, false));
        bool done =
            began && (to_host ? copy_bytes(DEVICE_OUT, b.view.buf, kernel_device_data(d), bytes)
                              : copy_bytes(DEVICE_IN, kernel_device_data(d), b.view.buf, bytes));
        if (began) order_end(&store, 1, false);
        PyBuffer_Release(&b.view);
        if (direct) return done;
    }
    if (!binding_forgive() || !binding_ok(order_begin(&store, 1, false))) return false;
    order_end(&store, 1, false); /* kernels that use it have ended */
    array *memory;
    PyObject *mine = kernel_host_view(d, &memory);
    bool ok = mine && (to_host ? copy_to(host, mine) : copy_to(mine, host));
    if (ok && !to_host) ok = binding_ok(array_from_host(d->base, memory));
    Py_XDECREF(mine);
    array_unref(memory);
    return ok;
}

static bool fail_contiguous(void) {
    PyErr_SetString(PyExc_ValueError,
                    "Array contains non-contiguous buffer and cannot be transferred as a single "
                    "memory region. Please ensure contiguous buffer with numpy "
                    ".ascontiguousarray()");
    return false;
}

/* As Numba: what lies densely, in either order; of axes that repeat their elements one is enough. */
static bool check_contiguous(const device_array *d) {
    device_array core = *d;
    core.ndim = 0;
    for (int i = 0; i < d->ndim; i++) {
        if (d->strides[i] == 0 && d->shape[i] > 1) continue;
        core.shape[core.ndim] = d->shape[i];
        core.strides[core.ndim++] = d->strides[i];
    }
    return kernel_is_contiguous(&core, 'C') || kernel_is_contiguous(&core, 'F') ||
           fail_contiguous();
}

/* Device memory is copied as it lies: "incompatible strides: (16, 8) vs. (8, 16)". */
static bool check_strides(const device_array *to, PyObject *from) {
    if (!kernel_is_device_array(from)) return true;
    const device_array *d = (device_array *)from;
    bool same = true;
    for (int i = 0; i < to->ndim; i++) same &= to->shape[i] == 1 || to->strides[i] == d->strides[i];
    if (same || kernel_size(to) == 0) return true;
    PyObject *own = binding_from_shape(to->strides, to->ndim);
    PyObject *other = binding_from_shape(d->strides, d->ndim);
    if (own && other) PyErr_Format(PyExc_ValueError, "incompatible strides: %S vs. %S", own, other);
    Py_XDECREF(own);
    Py_XDECREF(other);
    return false;
}

static PyObject *copy_to_host(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames) {
    static const char *const names[] = {"ary", "stream"};
    PyObject *v[2];
    if (!binding_parse_args("copy_to_host", args, n, kwnames, names, 2, 2, 0, v)) return NULL;
    device_array *d = self_of(self);
    if (v[0] && v[0] != Py_None) {
        if (!check_compatible(d, v[0]) || !kernel_copy_host(d, v[0], true)) return NULL;
        return Py_NewRef(v[0]);
    }
    PyObject *host = new_host(d);
    if (host && !kernel_copy_host(d, host, true)) Py_CLEAR(host);
    return host;
}

/* A copy with lists of our own, to any depth that arrays have: NumPy reads a list's items while their
 * own methods run, which may empty it. */
static PyObject *own_lists(PyObject *o, int depth) {
    bool list = PyList_Check(o);
    if (!(list || PyTuple_CheckExact(o)) || depth == ARRAY_MAX_NDIM) return Py_NewRef(o);
    PyObject *items = list ? PyList_AsTuple(o) : Py_NewRef(o);
    PyObject *made = items ? PyTuple_New(PyTuple_GET_SIZE(items)) : NULL;
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = own_lists(PyTuple_GET_ITEM(items, i), depth + 1);
        if (item)
            PyTuple_SET_ITEM(made, i, item);
        else
            Py_CLEAR(made);
    }
    Py_XDECREF(items);
    if (made && list) Py_SETREF(made, PySequence_List(made));
    return made;
}

/* A host array of anything: itself when it has memory, the memory of other faces' arrays, else
 * numpy.asarray. */
static PyObject *as_host(PyObject *o) {
    if (kernel_is_device_array(o)) return kernel_host_view(self_of(o), NULL);
    if (binding_is_array(o)) return binding_numpy_view(((pyarray *)o)->a, false);
    if (!PyObject_CheckBuffer(o) && !binding_interface_check(o)) return NULL;
    PyObject *numpy = PyImport_ImportModule("numpy"), *given = numpy ? own_lists(o, 0) : NULL;
    PyObject *host = given ? PyObject_CallMethod(numpy, "asarray", "(O)", given) : NULL;
    Py_XDECREF(numpy);
    Py_XDECREF(given);
    return host;
}

static PyObject *copy_to_device(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                PyObject *kwnames) {
    static const char *const names[] = {"ary", "stream"};
    PyObject *v[2];
    if (!binding_parse_args("copy_to_device", args, n, kwnames, names, 2, 2, 1, v)) return NULL;
    if (v[0] == self) Py_RETURN_NONE;
    PyObject *host = as_host(v[0]);
    bool ok = host && check_compatible(self_of(self), host) && check_strides(self_of(self), v[0]) &&
              kernel_copy_host(self_of(self), host, false);
    Py_XDECREF(host);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

/* to_device(object): a new device array with a copy; objects in device memory as they are. */
static PyObject *to_device(PyObject *module, PyObject *o) {
    device_array *d = NULL;
    bool tensor = binding_is_array(o) && !PyObject_TypeCheck(o, &binding_ndarray_type);
    int shared = tensor || PyObject_CheckBuffer(o) ? 0 : kernel_device_share(o, &d);
    if (shared) return shared > 0 ? (PyObject *)d : NULL;
    PyObject *host = as_host(o);
    if (!host) return NULL;
    binding_buffer b;
    device_array h;
    if (!binding_get_buffer(host, false, &b)) goto unsupported;
    bool known = from_buffer(host, &b, &h);
    PyBuffer_Release(&b.view);
    if (!known) goto unsupported;
    if (!tensor && !check_contiguous(&h)) {
        Py_DECREF(host);
        return NULL;
    }
    bool fortran = kernel_is_contiguous(&h, 'F') && !kernel_is_contiguous(&h, 'C');
    d = kernel_device_new(h.type, h.record, h.shape, fortran ? h.strides : NULL, h.ndim);
    if (d && !kernel_copy_host(d, host, false)) Py_CLEAR(d);
    Py_DECREF(host);
    return (PyObject *)d;
unsupported:
    PyObject *dt;
    if (!binding_forgive() || binding_attribute(host, "dtype", &dt) < 0)
        return Py_DECREF(host), NULL;
    PyErr_Format(PyExc_TypeError,
                 "to_device: a %s of dtype %S cannot be copied to the device; its elements must be "
                 "numbers or bools in the machine's byte order, in at most %d dimensions",
                 Py_TYPE(o)->tp_name, dt ? dt : Py_None, PY_MAX_NDIM);
    Py_XDECREF(dt);
    Py_DECREF(host);
    return NULL;
}

static PyObject *as_numpy(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dt = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dt, &copy)) return NULL;
    if (copy == Py_False) {
        PyErr_SetString(PyExc_ValueError, "a device array cannot be made a NumPy array without "
                                          "copying; use copy_to_host()");
        return NULL;
    }
    PyObject *host = copy_to_host(self, NULL, 0, NULL);
    if (!host || dt == Py_None) return host;
    PyObject *cast = PyObject_CallMethod(host, "astype", "(O)", dt);
    Py_DECREF(host);
    return cast;
}

/* ---- indexing ---- */

/* The part of d that `key` names (integers, slices, an ellipsis). *element: every axis has an index. */
static device_array *part(device_array *d, PyObject *key, bool *element) {
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM], offset = d->offset;
    PyObject *const *items = PyTuple_Check(key) ? &PyTuple_GET_ITEM(key, 0) : &key;
    Py_ssize_t n = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; i++) ellipses += items[i] == Py_Ellipsis;
    if (ellipses > 1 || n - ellipses > d->ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices: the array has %d dimensions", d->ndim);
        return NULL;
    }
    int ndim = 0, axis = 0;
    *element = ellipses == 0;
    for (Py_ssize_t i = 0; i < n || axis < d->ndim; i++) {
        int whole = i >= n ? d->ndim - axis : items[i] == Py_Ellipsis ? d->ndim - (int)(n - 1) : 0;
        for (; whole > 0; whole--, axis++) {
            *element = false;
            shape[ndim] = d->shape[axis];
            strides[ndim++] = d->strides[axis];
        }
        if (i >= n || items[i] == Py_Ellipsis) continue;
        if (PySlice_Check(items[i])) {
            Py_ssize_t start, stop, step;
            if (PySlice_Unpack(items[i], &start, &stop, &step) != 0) return NULL;
            Py_ssize_t count = PySlice_AdjustIndices(d->shape[axis], &start, &stop, step);
            *element = false;
            if (count > 0) offset += start * d->strides[axis];
            shape[ndim] = count;
            strides[ndim++] = (int64_t)((uint64_t)d->strides[axis] * (uint64_t)step);
        } else if (PyIndex_Check(items[i]) && !PyBool_Check(items[i])) {
            int64_t index;
            if (!binding_to_int64(items[i], &index)) return NULL;
            if (index < -d->shape[axis] || index >= d->shape[axis]) {
                PyErr_Format(PyExc_IndexError,
                             "index %lld is out of bounds for axis %d with size %lld",
                             (long long)index, axis, (long long)d->shape[axis]);
                return NULL;
            }
            offset += (index < 0 ? index + d->shape[axis] : index) * d->strides[axis];
        } else {
            PyErr_Format(PyExc_TypeError,
                         "device arrays are indexed by integers, slices and '...', not by %s; copy "
                         "to the host first (copy_to_host)",
                         Py_TYPE(items[i])->tp_name);
            return NULL;
        }
        axis++;
    }
    return kernel_device_view(d, shape, strides, ndim, offset);
}

PyObject *kernel_device_getitem(PyObject *self, PyObject *key) {
    bool element;
    device_array *d = part(self_of(self), key, &element);
    if (!d || !element) return (PyObject *)d;
    PyObject *host = kernel_host_view(d, NULL), *empty = PyTuple_New(0);
    PyObject *value = host && empty ? PyObject_GetItem(host, empty) : NULL;
    Py_XDECREF(host);
    Py_XDECREF(empty);
    Py_DECREF(d);
    return value;
}

/* Numba's checks before an assignment of `from` to a part of shape d. */
static bool check_assignment(const device_array *d, PyObject *from) {
    PyObject *shape = PyObject_GetAttrString(from, "shape");
    int64_t sizes[ARRAY_MAX_NDIM];
    int ndim;
    bool ok = shape && binding_to_shape(shape, "shape", sizes, &ndim);
    Py_XDECREF(shape);
    if (!ok) return false;
    if (ndim > d->ndim) {
        PyErr_Format(PyExc_ValueError, "Can't assign %d-D array to %d-D self", ndim, d->ndim);
        return false;
    }
    for (int i = 0; i < ndim; i++) {
        int axis = d->ndim - ndim + i;
        if (sizes[i] == 1 || sizes[i] == d->shape[axis]) continue;
        PyErr_Format(PyExc_ValueError,
                     "Can't copy sequence with size %lld to array axis %d with dimension %lld",
                     (long long)sizes[i], axis, (long long)d->shape[axis]);
        return false;
    }
    return true;
}

/* A host array of what is assigned; tuples become records where d has records. */
static PyObject *as_elements(const device_array *d, PyObject *value) {
    if (!d->record || !(PyTuple_Check(value) || PyList_Check(value))) return as_host(value);
    PyObject *numpy = PyImport_ImportModule("numpy"), *given = numpy ? own_lists(value, 0) : NULL;
    PyObject *host =
        given ? PyObject_CallMethod(numpy, "asarray", "OO", given, d->record->dtype) : NULL;
    Py_XDECREF(numpy);
    Py_XDECREF(given);
    return host;
}

int kernel_device_setitem(PyObject *self, PyObject *key, PyObject *value) {
    bool element;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a device array cannot be deleted");
        return -1;
    }
    if (self_of(self)->readonly) {
        PyErr_SetString(PyExc_ValueError, "assignment destination is read-only");
        return -1;
    }
    device_array *d = part(self_of(self), key, &element);
    if (!d) return -1;
    array *memory;
    PyObject *to = kernel_host_view(d, &memory), *from = to ? as_elements(d, value) : NULL;
    bool ok = from && check_assignment(d, from) && copy_to(to, from) &&
              binding_ok(array_from_host(d->base, memory));
    array_unref(memory);
    d->base->store->version++;
    Py_XDECREF(to);
    Py_XDECREF(from);
    Py_DECREF(d);
    return ok ? 0 : -1;
}

static PyObject *setitem(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static const char *const names[] = {"key", "value", "stream"};
    PyObject *v[3];
    if (!binding_parse_args("setitem", args, n, kwnames, names, 3, 3, 2, v) ||
        kernel_device_setitem(self, v[0], v[1]) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *getitem(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static const char *const names[] = {"item", "stream"};
    PyObject *v[2];
    if (!binding_parse_args("getitem", args, n, kwnames, names, 2, 2, 1, v)) return NULL;
    return kernel_device_getitem(self, v[0]);
}

/* ---- the rest ---- */

static PyObject *is_c_contiguous(PyObject *self, PyObject *unused) {
    return PyBool_FromLong(kernel_is_contiguous(self_of(self), 'C'));
}
static PyObject *is_f_contiguous(PyObject *self, PyObject *unused) {
    return PyBool_FromLong(kernel_is_contiguous(self_of(self), 'F'));
}
static PyObject *bind_stream(PyObject *self, PyObject *unused) { return Py_NewRef(self); }

static PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy"};
    PyObject *v[4];
    array *a;
    if (!binding_parse_args("__dlpack__", args, n, kwnames, names, 4, 1, 0, v) ||
        !kernel_device_to_array(self_of(self), &a))
        return NULL;
    PyObject *capsule = binding_to_dlpack(a, self_of(self)->readonly, v[1], v[2], v[3]);
    array_unref(a);
    return capsule;
}
static PyObject *ipc_handle(PyObject *self, PyObject *unused) {
    PyErr_SetString(PyExc_OSError, "OS does not support CUDA IPC");
    return NULL;
}
static PyObject *dlpack_device(PyObject *self, PyObject *unused) {
    return Py_BuildValue("(ii)", 1, 0);
}

#define FAST(name, function) \
    { name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, NULL }
#define VARIABLE(name, function) \
    { name, (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, NULL }
PyMethodDef kernel_device_methods[] = {
    FAST("copy_to_host", copy_to_host),
    FAST("copy_to_device", copy_to_device),
    FAST("setitem", setitem),
    FAST("getitem", getitem),
    VARIABLE("reshape", kernel_view_reshape),
    FAST("ravel", kernel_view_ravel),
    {"view", kernel_view_as, METH_O, NULL},
    FAST("squeeze", kernel_view_squeeze),
    FAST("transpose", kernel_view_transpose),
    FAST("split", kernel_view_split),
    {"is_c_contiguous", is_c_contiguous, METH_NOARGS, NULL},
    {"is_f_contiguous", is_f_contiguous, METH_NOARGS, NULL},
    {"bind", bind_stream, METH_O, NULL},
    {"get_ipc_handle", ipc_handle, METH_NOARGS, NULL},
    VARIABLE("__array__", as_numpy),
    FAST("__dlpack__", dlpack),
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL},
};

/* host_array(object): numpy.asarray of it, but of what NumPy would wrongly believe an exception. */
static PyObject *host_array(PyObject *module, PyObject *o) {
    PyObject *host = as_host(o), *numpy = host ? PyImport_ImportModule("numpy") : NULL;
    PyObject *made = numpy ? PyObject_CallMethod(numpy, "asarray", "(O)", host) : NULL;
    Py_XDECREF(numpy);
    Py_XDECREF(host);
    return made;
}

/* own_lists(object): what NumPy may be given instead of it. */
static PyObject *own_lists_of(PyObject *module, PyObject *o) { return own_lists(o, 0); }

PyMethodDef kernel_host_functions[] = {{"to_device", to_device, METH_O, NULL},
                                       {"host_array", host_array, METH_O, NULL},
                                       {"own_lists", own_lists_of, METH_O, NULL},
                                       {NULL}};
