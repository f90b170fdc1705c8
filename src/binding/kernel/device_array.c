/* numba's DeviceNDArray: memory shared with the other faces and with whoever speaks the
 * CUDA array interface, views. Methods and indexing are in device_methods.c.
 *
 * The memory is the host's: what a kernel wrote is there when the launch returns. Copies and assignments
 * go through a NumPy array on the same memory (kernel_host_view), so that casts are NumPy's. */
#include "binding/kernel/kernel.h"

#include <stddef.h>
#include <string.h>

#include "binding/tensor/tensor.h"

/* ---- shapes ---- */

int64_t kernel_size(const device_array *d) {
    int64_t size = 1;
    for (int i = 0; i < d->ndim; i++) size *= d->shape[i];
    return size;
}

bool kernel_is_contiguous(const device_array *d, char order) {
    int64_t expected = kernel_item_bytes(d);
    if (kernel_size(d) == 0) return true;
    for (int i = 0; i < d->ndim; i++) {
        int axis = order == 'C' ? d->ndim - 1 - i : i;
        if (d->shape[axis] != 1 && d->strides[axis] != expected) return false;
        expected *= d->shape[axis];
    }
    return true;
}

/* ---- making ---- */

/* Takes `base` (any array on the storage), also on failure. */
static device_array *make(array *base, py_scalar type, const kernel_record *record,
                          const int64_t *shape, const int64_t *strides, int ndim, int64_t offset) {
    device_array *d = NULL;
    if (ndim > PY_MAX_NDIM)
        PyErr_Format(PyExc_ValueError, "device arrays have at most %d dimensions, not %d",
                     PY_MAX_NDIM, ndim);
    else
        d = PyObject_GC_New(device_array, &kernel_device_array_type);
    if (!d) {
        array_unref(base);
        return NULL;
    }
    d->base = base;
    d->type = type;
    d->record = record;
    d->readonly = false;
    d->ndim = ndim;
    d->offset = offset;
    d->weakrefs = NULL;
    d->stream = NULL;
    memcpy(d->shape, shape, sizeof *shape * (size_t)ndim);
    if (strides)
        memcpy(d->strides, strides, sizeof *strides * (size_t)ndim);
    else
        binding_c_strides((size_t)kernel_item_bytes(d), shape, ndim, d->strides);
    if (base->store->foreign) PyObject_GC_Track(d); /* others hold no objects */
    return d;
}

device_array *kernel_device_view(const device_array *d, const int64_t *shape,
                                 const int64_t *strides, int ndim, int64_t offset) {
    device_array *made = make(array_ref(d->base), d->type, d->record, shape, strides, ndim, offset);
    if (made) made->readonly = d->readonly;
    if (made) made->stream = Py_XNewRef(d->stream);
    return made;
}

static bool total_bytes(int64_t item, const int64_t *shape, int ndim, int64_t *out) {
    *out = item;
    bool empty = false;
    for (int i = 0; i < ndim; i++) empty |= shape[i] == 0;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
            return false;
        }
        if (!empty && __builtin_mul_overflow(*out, shape[i], out)) {
            PyErr_SetString(PyExc_ValueError,
                            "array is too big; its size exceeds the largest number of bytes");
            return false;
        }
    }
    if (empty) *out = 0;
    return true;
}

/* From the first byte to behind the last one; strides >= 0. */
static bool extent_bytes(int64_t item, const int64_t *shape, const int64_t *strides, int ndim,
                         int64_t *out) {
    if (!total_bytes(item, shape, ndim, out)) return false;
    if (!strides || *out == 0) return true;
    int64_t end = item, span;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(shape[i] - 1, strides[i], &span) ||
            __builtin_add_overflow(end, span, &end)) {
            PyErr_SetString(PyExc_ValueError,
                            "array is too big; its size exceeds the largest number of bytes");
            return false;
        }
    *out = end;
    return true;
}

device_array *kernel_device_new(py_scalar type, const kernel_record *record, const int64_t *shape,
                                const int64_t *strides, int ndim) {
    int64_t bytes, item = record ? record->size : (int64_t)py_scalar_bytes(type);
    array *base;
    if (!extent_bytes(item, shape, strides, ndim, &bytes) || !binding_start() ||
        !binding_ok(array_empty(DT_U8, &bytes, 1, &base)))
        return NULL;
    if (!binding_ok(array_expose(base))) {
        array_unref(base);
        return NULL;
    }
    return make(base, type, record, shape, strides, ndim, 0);
}

device_array *kernel_device_at(uint64_t address) {
    array *base;
    if (!binding_start() || !binding_ok(array_at_address((uintptr_t)address, &base)) || !base)
        return NULL;
    int64_t bytes = (int64_t)base->store->bytes;
    return make(base, PY_S_U8, NULL, &bytes, NULL, 1, 0);
}

/* ---- sharing ---- */

static device_array *share_array(array *a) {
    py_scalar type;
    if (!kernel_scalar_of_dtype(a->dt, &type)) {
        PyErr_Format(PyExc_TypeError, "kernels and device arrays have no %s",
                     dtype_table[a->dt].name);
        return NULL;
    }
    if (!binding_ok(array_expose(a))) return NULL;
    int64_t bytes = (int64_t)a->store->bytes, one = 1;
    array *base;
    if (!binding_ok(array_view_strided(a, DT_U8, &bytes, &one, 1, 0, &base))) return NULL;
    return make(base, type, NULL, a->shape, a->strides, a->ndim, a->offset);
}

/* ---- __cuda_array_interface__ ---- */

static bool device_itemsize(binding_interface *i, PyObject *typestr) {
    py_scalar type;
    if (!kernel_scalar_of_object(typestr, &type)) return false;
    i->scalar = type;
    i->bytes = py_scalar_bytes(type);
    return true;
}

static binding_interface device_description(void) {
    return (binding_interface){.name = "__cuda_array_interface__", .itemsize = device_itemsize};
}

static void release_nothing(void *owner) { (void)owner; }

/* On a device whose memory is not the host's: within a storage of ours, or nothing that is known. */
static device_array *share_apart(const binding_interface *i, int64_t low, int64_t high) {
    uintptr_t address = (uintptr_t)i->data + (uintptr_t)low;
    if (low == high) return kernel_device_new((py_scalar)i->scalar, NULL, i->shape, NULL, i->ndim);
    device_array *found = kernel_device_at(address), *made = NULL;
    if (PyErr_Occurred()) return NULL;
    int64_t offset =
        found ? (int64_t)((uintptr_t)i->data - (uintptr_t)kernel_device_data(found)) : 0;
    if (found && offset + high <= found->shape[0]) {
        made = make(array_ref(found->base), (py_scalar)i->scalar, NULL, i->shape, i->strides,
                    i->ndim, offset);
        if (made) made->readonly = i->readonly;
    } else {
        PyErr_Format(PyExc_ValueError,
                     "%s: no memory of the device is at address %p (%lld bytes are described)",
                     i->name, (void *)address, (long long)(high - low));
    }
    Py_XDECREF(found);
    return made;
}

/* Memory of somebody else; `owner` (may be NULL) is kept alive. */
static device_array *share_memory(const binding_interface *i, PyObject *owner) {
    int64_t low, high, one = 1;
    if (!binding_extent(i->bytes, i->shape, i->strides, i->ndim, &low, &high)) return NULL;
    if (!array_is_on_host()) return share_apart(i, low, high);
    array *base;
    int64_t bytes = high - low;
    if (!binding_share(DT_U8, &bytes, &one, 1, i->data + low,
                       owner ? binding_release_object : release_nothing, Py_XNewRef(owner), &base))
        return NULL;
    device_array *d = make(base, (py_scalar)i->scalar, NULL, i->shape, i->strides, i->ndim, -low);
    if (d) d->readonly = i->readonly;
    return d;
}

/* Memory of a real GPU cannot be read here, and looking at it would end the process. True: an exception. */
static bool is_gpu_library(PyObject *o) {
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__module__");
    const char *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    static const char *const libraries[] = {"cupy", "torch", "numba", "cudf", "jax", "jaxlib"};
    bool found = false;
    for (size_t i = 0; name && i < sizeof libraries / sizeof *libraries; i++) {
        size_t n = strlen(libraries[i]);
        found |= strncmp(name, libraries[i], n) == 0 && (name[n] == '.' || !name[n]);
    }
    Py_XDECREF(module);
    if (!binding_forgive()) return true;
    if (found)
        PyErr_Format(PyExc_TypeError,
                     "the memory of a real %s lies on a GPU, and simt cannot use it here",
                     Py_TYPE(o)->tp_name);
    return found;
}

int kernel_device_share(PyObject *o, device_array **out) {
    if (kernel_is_device_array(o)) return *out = (device_array *)Py_NewRef(o), 1;
    if (binding_is_array(o)) {
        if (tensor_check(o) && tensor_of(o)->requires_grad) {
            PyErr_SetString(PyExc_RuntimeError,
                            "Can't use the memory of a tensor that requires grad in a kernel. If "
                            "gradients aren't required, use tensor.detach()");
            return -1;
        }
        return (*out = IN_SECTION(share_array(((pyarray *)o)->a))) ? 1 : -1;
    }
    binding_interface i = device_description();
    PyObject *dict;
    int done = binding_interface_get(o, i.name, &dict);
    if (done <= 0) return done;
    bool ok = !is_gpu_library(o) && binding_interface_parse(dict, &i);
    Py_DECREF(dict);
    return ok && (*out = share_memory(&i, o)) ? 1 : -1;
}

bool kernel_device_to_array(device_array *d, array **out) {
    dtype dt = py_scalar_dtype(d->type);
    if (dt == DT_COUNT) {
        PyErr_Format(PyExc_TypeError, "arrays of %s are not in simt.cupy and simt.torch yet",
                     d->record ? "records" : py_scalar_name(d->type));
        return false;
    }
    if (!binding_is_aligned(dtype_bytes(dt), d->shape, d->strides, d->ndim,
                            kernel_device_data(d))) {
        PyErr_Format(PyExc_ValueError,
                     "the memory of the device array is not aligned to its %d-byte elements",
                     (int)dtype_bytes(dt));
        return false;
    }
    return binding_ok(
        array_view_strided(d->base, dt, d->shape, d->strides, d->ndim, d->offset, out));
}

int binding_share_device(PyObject *o, array **out) {
    device_array *d;
    int done = kernel_device_share(o, &d);
    if (done <= 0) return done;
    bool ok = kernel_device_to_array(d, out);
    Py_DECREF(d);
    return ok ? 1 : -1;
}

PyObject *binding_cuda_interface(PyObject *o) {
    device_array *d;
    if (kernel_device_share(o, &d) <= 0) return NULL;
    PyObject *description = PyObject_GetAttrString((PyObject *)d, "__cuda_array_interface__");
    Py_DECREF(d);
    return description;
}

static PyObject *empty_host(const device_array *d) {
    PyObject *numpy = PyImport_ImportModule("numpy"), *dt = kernel_device_dtype(d);
    PyObject *shape = binding_from_shape(d->shape, d->ndim), *made = NULL;
    if (numpy && dt && shape) made = PyObject_CallMethod(numpy, "empty", "OO", shape, dt);
    Py_XDECREF(numpy);
    Py_XDECREF(dt);
    Py_XDECREF(shape);
    return made;
}

/* On the memory of `host`: that of d's storage, or the like. */
static PyObject *view_host(const device_array *d, array *host) {
    PyObject *numpy = PyImport_ImportModule("numpy"), *dt = kernel_device_dtype(d);
    PyObject *shape = binding_from_shape(d->shape, d->ndim), *made = NULL;
    PyObject *strides = binding_from_shape(d->strides, d->ndim);
    PyObject *buffer = binding_export_buffer(host, !d->readonly);
    if (numpy && dt && shape && strides && buffer)
        made = PyObject_CallMethod(numpy, "ndarray", "OOOLO", shape, dt, buffer,
                                   (long long)d->offset, strides);
    Py_XDECREF(numpy);
    Py_XDECREF(dt);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(buffer);
    return made;
}

PyObject *kernel_host_view(const device_array *d, array **memory) {
    array *host = NULL;
    PyObject *made = NULL;
    if (memory) *memory = NULL;
    if (!binding_ok(array_to_host(d->base, &host))) return NULL;
    made = kernel_size(d) == 0 ? empty_host(d) : view_host(d, host);
    if (made && memory)
        *memory = host;
    else
        array_unref(host);
    return made;
}

/* ---- the type ---- */

/* There is no tp_clear: a ring through it is cut at the owner of the memory. */
static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(binding_owner(((device_array *)self)->base, 1, 1));
    Py_VISIT(((device_array *)self)->stream);
    return 0;
}

static void dealloc(PyObject *self) {
    device_array *d = (device_array *)self;
    PyObject_GC_UnTrack(self);
    if (d->weakrefs) PyObject_ClearWeakRefs(self);
    array_unref(d->base);
    Py_XDECREF(d->stream);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *repr(PyObject *self) {
    device_array *d = (device_array *)self;
    PyObject *shape = binding_from_shape(d->shape, d->ndim);
    PyObject *text =
        shape ? PyUnicode_FromFormat("<DeviceNDArray of %s, shape %R>",
                                     d->record ? "records" : py_scalar_name(d->type), shape)
              : NULL;
    Py_XDECREF(shape);
    return text;
}

static Py_ssize_t length(PyObject *self) {
    device_array *d = (device_array *)self;
    if (d->ndim) return (Py_ssize_t)d->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
}

static PyObject *item(PyObject *self, Py_ssize_t i) {
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *result = key ? kernel_device_getitem(self, key) : NULL;
    Py_XDECREF(key);
    return result;
}

#define GETTER(name) static PyObject *get_##name(PyObject *self, void *unused)
GETTER(shape) {
    device_array *d = (device_array *)self;
    return binding_from_shape(d->shape, d->ndim);
}
GETTER(strides) {
    device_array *d = (device_array *)self;
    return binding_from_shape(d->strides, d->ndim);
}
GETTER(dtype) { return kernel_device_dtype((device_array *)self); }
GETTER(ndim) { return PyLong_FromLong(((device_array *)self)->ndim); }
GETTER(size) { return PyLong_FromLongLong(kernel_size((device_array *)self)); }
GETTER(itemsize) { return PyLong_FromLongLong(kernel_item_bytes((device_array *)self)); }
GETTER(nbytes) {
    device_array *d = (device_array *)self;
    return PyLong_FromLongLong(kernel_size(d) * kernel_item_bytes(d));
}
GETTER(transposed) { return PyObject_CallMethod(self, "transpose", NULL); }
GETTER(stream) {
    PyObject *stream = ((device_array *)self)->stream;
    return stream ? Py_NewRef(stream) : PyLong_FromLong(0);
}
GETTER(flags) {
    const device_array *d = (device_array *)self;
    PyObject *c = kernel_is_contiguous(d, 'C') ? Py_True : Py_False;
    PyObject *f = kernel_is_contiguous(d, 'F') ? Py_True : Py_False;
    return Py_BuildValue("{sOsO}", "C_CONTIGUOUS", c, "F_CONTIGUOUS", f);
}

/* 0 and None are the default stream. */
static int set_stream(PyObject *self, PyObject *value, void *unused) {
    device_array *d = (device_array *)self;
    int some = value && PyLong_Check(value) ? binding_truth(value) : value && value != Py_None;
    if (some < 0) return -1;
    PyObject *before = d->stream;
    d->stream = some ? Py_NewRef(value) : NULL;
    Py_XDECREF(before);
    return 0;
}

GETTER(true) { Py_RETURN_TRUE; }
GETTER(scalar) { return PyLong_FromLong(((device_array *)self)->type); }

GETTER(cuda_array_interface) {
    device_array *d = (device_array *)self;
    PyObject *shape = binding_from_shape(d->shape, d->ndim);
    PyObject *strides =
        kernel_is_contiguous(d, 'C') ? Py_NewRef(Py_None) : binding_from_shape(d->strides, d->ndim);
    char typestr[32];
    PyObject *of = d->record ? PyObject_GetAttrString(d->record->dtype, "str") : NULL;
    const char *text = of ? PyUnicode_AsUTF8(of) : NULL;
    if (d->record && !text) {
        Py_XDECREF(of);
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    if (text)
        snprintf(typestr, sizeof typestr, "%s", text);
    else
        snprintf(typestr, sizeof typestr, "<c%lld", (long long)kernel_item_bytes(d));
    Py_XDECREF(of);
    dtype dt = py_scalar_dtype(d->type);
    unsigned long long address =
        kernel_size(d) ? (unsigned long long)(uintptr_t)kernel_device_data(d) : 0;
    PyObject *stream = d->stream ? PyNumber_Long(d->stream) : Py_NewRef(Py_None), *dict = NULL;
    if (shape && strides && stream)
        dict = Py_BuildValue("{sOsOs(KO)sssOsi}", "shape", shape, "strides", strides, "data",
                             address, d->readonly ? Py_True : Py_False, "typestr",
                             dt == DT_COUNT ? typestr : dtype_table[dt].typestr, "stream", stream,
                             "version", 3);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(stream);
    return dict;
}

static PyGetSetDef getset[] = {
    {"shape", get_shape},
    {"strides", get_strides},
    {"dtype", get_dtype},
    {"ndim", get_ndim},
    {"size", get_size},
    {"itemsize", get_itemsize},
    {"nbytes", get_nbytes},
    {"alloc_size", get_nbytes},
    {"T", get_transposed},
    {"stream", get_stream, set_stream},
    {"flags", get_flags},
    {"__cuda_memory__", get_true},
    {"__cuda_ndarray__", get_true},
    {"__cuda_array_interface__", get_cuda_array_interface},
    {"_simt_element", get_scalar},
    {NULL},
};

/* DeviceNDArray(shape, strides, dtype, stream=0, gpu_data=None), as Numba's */
static PyObject *new_device_array(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"shape", "strides", "dtype", "stream", "gpu_data", NULL};
    PyObject *shape, *strides, *dtype_like, *stream = NULL, *data = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OO:DeviceNDArray", names, &shape, &strides,
                                     &dtype_like, &stream, &data))
        return NULL;
    if (data != Py_None) {
        PyErr_SetString(PyExc_NotImplementedError,
                        "DeviceNDArray: gpu_data is not in simt yet; nearest is "
                        "cuda.from_cuda_array_interface, for memory that there is");
        return NULL;
    }
    PyObject *made = kernel_device_make(shape, dtype_like, "C", strides);
    if (made && stream) set_stream(made, stream, NULL);
    return made;
}

static PyMappingMethods mapping = {.mp_length = length,
                                   .mp_subscript = kernel_device_getitem,
                                   .mp_ass_subscript = kernel_device_setitem};
static PySequenceMethods sequence = {.sq_length = length, .sq_item = item};

PyTypeObject kernel_device_array_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "numba.cuda.cudadrv.devicearray.DeviceNDArray",
    .tp_doc = "An array in the device's memory.",
    .tp_basicsize = sizeof(device_array),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_device_array,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_repr = repr,
    .tp_as_mapping = &mapping,
    .tp_as_sequence = &sequence,
    .tp_getset = getset,
    .tp_weaklistoffset = offsetof(device_array, weakrefs),
};

/* ---- functions ---- */

static void fortran_strides(size_t item, const int64_t *shape, int ndim, int64_t *strides) {
    int64_t reversed[ARRAY_MAX_NDIM];
    for (int d = 0; d < ndim; d++) reversed[d] = shape[ndim - 1 - d];
    binding_c_strides(item, reversed, ndim, strides);
    for (int d = 0; d < ndim / 2; d++) {
        int64_t s = strides[d];
        strides[d] = strides[ndim - 1 - d];
        strides[ndim - 1 - d] = s;
    }
}

/* An integer or a sequence of `ndim` strides >= 0, in bytes. */
static bool to_strides(PyObject *o, int ndim, int64_t *out) {
    int n;
    if (!binding_to_shape(o, "strides", out, &n)) return false;
    if (n != ndim) return PyErr_SetString(PyExc_ValueError, "strides not match ndim"), false;
    for (int i = 0; i < n; i++)
        if (out[i] < 0) {
            PyErr_Format(PyExc_ValueError,
                         "device arrays are made with strides of at least 0, not %R", o);
            return false;
        }
    return true;
}

PyObject *kernel_device_make(PyObject *shape_of, PyObject *dtype_like, const char *order,
                             PyObject *strides_of) {
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    int ndim;
    py_scalar type;
    const kernel_record *record;
    bool given = strides_of && strides_of != Py_None;
    if (!binding_to_shape(shape_of, "shape", shape, &ndim) ||
        !kernel_element_of_object(dtype_like, &type, &record) ||
        (given && !to_strides(strides_of, ndim, strides)))
        return NULL;
    size_t item = record ? (size_t)record->size : py_scalar_bytes(type);
    if (*order == 'F' && !given) fortran_strides(item, shape, ndim, strides);
    bool own = given || *order == 'F';
    return (PyObject *)kernel_device_new(type, record, shape, own ? strides : NULL, ndim);
}

/* device_empty(shape, dtype, order="C", strides=None) */
static PyObject *device_empty(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    const char *order = n > 2 ? PyUnicode_AsUTF8(args[2]) : "C";
    if (n < 2 || !order) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "device_empty(shape, dtype, order, strides)");
        return NULL;
    }
    return kernel_device_make(args[0], args[1], order, n > 3 ? args[3] : NULL);
}

/* device_share(object): a DeviceNDArray on its memory, or None. */
static PyObject *device_share(PyObject *module, PyObject *o) {
    device_array *d;
    int done = kernel_device_share(o, &d);
    if (done == 0) Py_RETURN_NONE;
    return done > 0 ? (PyObject *)d : NULL;
}

/* device_interface(dict, owner) */
static PyObject *device_interface(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    binding_interface i = device_description();
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "device_interface(description, owner)");
        return NULL;
    }
    if (!binding_interface_parse(args[0], &i)) return NULL;
    return (PyObject *)share_memory(&i, args[1] == Py_None ? NULL : args[1]);
}

/* A cupy array on a device array's memory. */
static PyObject *device_to_ndarray(PyObject *module, PyObject *o) {
    array *a;
    if (!kernel_is_device_array(o)) {
        PyErr_SetString(PyExc_TypeError, "not a device array");
        return NULL;
    }
    return kernel_device_to_array((device_array *)o, &a) ? binding_wrap(a) : NULL;
}

static PyMethodDef functions[] = {
    {"device_empty", (PyCFunction)(void (*)(void))device_empty, METH_FASTCALL, NULL},
    {"device_share", device_share, METH_O, NULL},
    {"device_interface", (PyCFunction)(void (*)(void))device_interface, METH_FASTCALL, NULL},
    {"device_to_ndarray", device_to_ndarray, METH_O, NULL},
    {NULL},
};

bool binding_add_device_array(PyObject *module) {
    kernel_device_array_type.tp_methods = kernel_device_methods;
    return PyType_Ready(&kernel_device_array_type) == 0 &&
           PyModule_AddObjectRef(module, "DeviceNDArray", (PyObject *)&kernel_device_array_type) ==
               0 &&
           PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddFunctions(module, kernel_host_functions) == 0;
}
