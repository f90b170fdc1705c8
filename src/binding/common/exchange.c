/* Memory shared with other libraries: DLPack (0.8 and the versioned 1.0) both ways, and an exporter of the
 * buffer protocol. Sharing exposes the storage: what waits is computed first, later operations on it run
 * at once (design, deferred evaluation). */
#include "base/heap.h"
#include "binding/common/binding.h"

#include <string.h>

/* ---- DLPack's structures (dlpack.h 1.0) ---- */

typedef struct dl_device {
    int32_t type, id;
} dl_device;
typedef struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;
typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_dtype dt;
    int64_t *shape, *strides; /* strides in elements; NULL: C order */
    uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;
typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum {
    DL_CPU = 1,
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_BOOL = 6,
    DL_READ_ONLY = 1,
    DL_COPIED = 2
};

static dl_dtype to_dl_dtype(dtype dt) {
    uint8_t bits = (uint8_t)(dtype_bytes(dt) * 8);
    uint8_t code = dt == DT_BF16           ? DL_BFLOAT
                   : dt == DT_BOOL         ? DL_BOOL
                   : dtype_is_float(dt)    ? DL_FLOAT
                   : dtype_is_unsigned(dt) ? DL_UINT
                                           : DL_INT;
    return (dl_dtype){code, bits, 1};
}

static bool from_dl_dtype(dl_dtype d, dtype *out) {
    for (int dt = 0; dt < DT_COUNT; dt++) {
        dl_dtype ours = to_dl_dtype((dtype)dt);
        if (ours.code != d.code || ours.bits != d.bits || d.lanes != 1) continue;
        *out = (dtype)dt;
        return true;
    }
    PyErr_Format(PyExc_BufferError,
                 "DLPack: a dtype of code %d with %d bits and %d lanes is not in simt yet", d.code,
                 d.bits, d.lanes);
    return false;
}

/* ---- export ---- */

/* One allocation: the structure handed out, and what it points to. */
typedef struct exported {
    union {
        dl_managed plain;
        dl_versioned versioned;
    };
    array *a;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
} exported;

static void delete_plain(dl_managed *m) {
    exported *e = m->context;
    array_unref(e->a);
    heap_free(e);
}
static void delete_versioned(dl_versioned *m) {
    exported *e = m->context;
    array_unref(e->a);
    heap_free(e);
}

/* A used one has another name: its consumer has the array. */
static void plain_capsule_gone(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    m->deleter(m);
}
static void versioned_capsule_gone(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
    dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    m->deleter(m);
}

static PyObject *export_array(array *a, bool versioned, uint64_t flags) {
    array *host;
    if (!binding_ok(array_to_host(a, &host))) return NULL;
    if (host->store != a->store) flags |= DL_COPIED;
    exported *e = binding_alloc(1, sizeof *e);
    if (!e) return array_unref(host), NULL;
    e->a = a = host;
    for (int d = 0; d < a->ndim; d++) {
        e->shape[d] = a->shape[d];
        e->strides[d] = a->strides[d] / (int64_t)dtype_bytes(a->dt);
    }
    dl_tensor tensor = {.data = array_data(a),
                        .device = {DL_CPU, 0},
                        .ndim = a->ndim,
                        .dt = to_dl_dtype(a->dt),
                        .shape = e->shape,
                        .strides = e->strides};
    PyObject *capsule;
    if (versioned) {
        e->versioned = (dl_versioned){.major = 1,
                                      .context = e,
                                      .deleter = delete_versioned,
                                      .flags = flags,
                                      .tensor = tensor};
        capsule = PyCapsule_New(&e->versioned, "dltensor_versioned", versioned_capsule_gone);
    } else {
        e->plain = (dl_managed){.tensor = tensor, .context = e, .deleter = delete_plain};
        capsule = PyCapsule_New(&e->plain, "dltensor", plain_capsule_gone);
    }
    if (!capsule) {
        array_unref(e->a);
        heap_free(e);
    }
    return capsule;
}

/* The two numbers of an argument that is a tuple of two; None and NULL: *given is false. */
static bool number_pair(PyObject *o, const char *name, bool *given, int64_t pair[2]) {
    *given = o && o != Py_None;
    if (!*given) return true;
    if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 2)
        return binding_to_int64(PyTuple_GET_ITEM(o, 0), &pair[0]) &&
               binding_to_int64(PyTuple_GET_ITEM(o, 1), &pair[1]);
    PyErr_Format(PyExc_TypeError, "__dlpack__: %s must be a tuple of two integers or None, not %R",
                 name, o);
    return false;
}

PyObject *binding_to_dlpack(array *a, bool readonly, PyObject *max_version, PyObject *dl_device,
                            PyObject *copy) {
    bool versioned, elsewhere;
    int64_t version[2], where[2];
    int copies = copy && copy != Py_None ? binding_truth(copy) : 0;
    if (copies < 0 || !number_pair(max_version, "max_version", &versioned, version) ||
        !number_pair(dl_device, "dl_device", &elsewhere, where))
        return NULL;
    versioned = versioned && version[0] >= 1;
    if (elsewhere && (where[0] != DL_CPU || where[1] != 0)) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__: the memory is the host's (device (1, 0)), and cannot be given on "
                     "device (%lld, %lld)",
                     (long long)where[0], (long long)where[1]);
        return NULL;
    }
    if (readonly && !copies && !versioned) {
        PyErr_SetString(PyExc_BufferError,
                        "__dlpack__: the array is read-only, which needs max_version=(1, 0)");
        return NULL;
    }
    if (!copies) return export_array(a, versioned, readonly ? DL_READ_ONLY : 0);
    array *own;
    if (!binding_ok(array_copy(a, &own))) return NULL;
    PyObject *capsule = export_array(own, versioned, DL_COPIED);
    array_unref(own);
    return capsule;
}

/* ---- import ---- */

/* Deleters may be Python code's (NumPy's need the GIL), and must not lose the caller's exception. */
#define RELEASE(name, type)                             \
    static void name(void *owner) {                     \
        type *m = owner;                                \
        if (!m->deleter || !Py_IsInitialized()) return; \
        PyGILState_STATE state = PyGILState_Ensure();   \
        PyObject *kind, *value, *traceback;             \
        PyErr_Fetch(&kind, &value, &traceback);         \
        m->deleter(m);                                  \
        PyErr_Restore(kind, value, traceback);          \
        PyGILState_Release(state);                      \
    }
RELEASE(release_plain, dl_managed)
RELEASE(release_versioned, dl_versioned)
#undef RELEASE

/* What a capsule describes, checked. */
typedef struct imported {
    dtype dt;
    int64_t strides[ARRAY_MAX_NDIM];
    char *data;
    bool shareable; /* not read-only, and aligned: else it is copied */
} imported;

static bool check_tensor(const dl_tensor *t, bool readonly, imported *in) {
    if (t->device.type != DL_CPU) {
        PyErr_Format(PyExc_BufferError, "DLPack: memory of device type %d cannot be read here",
                     (int)t->device.type);
        return false;
    }
    if (t->ndim < 0 || t->ndim > ARRAY_MAX_NDIM) {
        PyErr_Format(PyExc_BufferError, "DLPack: %d dimensions; at most %d are supported",
                     (int)t->ndim, ARRAY_MAX_NDIM);
        return false;
    }
    if (!from_dl_dtype(t->dt, &in->dt)) return false;
    size_t bytes = dtype_bytes(in->dt);
    int64_t low, high;
    bool fits = t->shape || t->ndim == 0;
    if (fits) binding_c_strides(bytes, t->shape, t->ndim, in->strides);
    for (int d = 0; fits && t->strides && d < t->ndim; d++)
        fits = !__builtin_mul_overflow(t->strides[d], (int64_t)bytes, &in->strides[d]);
    if (fits && !binding_extent(bytes, t->shape, in->strides, t->ndim, &low, &high)) return false;
    if (!fits || (high > low && !t->data)) {
        PyErr_SetString(PyExc_BufferError,
                        "DLPack: shape, strides or address are missing or wrong");
        return false;
    }
    in->data = (char *)((uintptr_t)t->data + t->byte_offset);
    in->shareable =
        !readonly && binding_is_aligned(bytes, t->shape, in->strides, t->ndim, in->data);
    return true;
}

/* Takes `owner`. */
static bool import_tensor(const dl_tensor *t, const imported *in, void (*release)(void *),
                          void *owner, array **out) {
    if (in->shareable)
        return binding_share(in->dt, t->shape, in->strides, t->ndim, in->data, release, owner, out);
    bool ok = binding_start() &&
              binding_ok(array_from_memory(in->dt, t->shape, in->strides, t->ndim, in->data, out));
    release(owner);
    return ok;
}

static bool from_capsule(PyObject *capsule, array **out) {
    imported in;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (m->major != 1) {
            PyErr_Format(PyExc_BufferError, "DLPack version %u.%u is not supported", m->major,
                         m->minor);
            return false;
        }
        if (!check_tensor(&m->tensor, m->flags & DL_READ_ONLY, &in)) return false;
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) return false;
        return import_tensor(&m->tensor, &in, release_versioned, m, out);
    }
    if (!PyCapsule_IsValid(capsule, "dltensor")) {
        PyErr_SetString(PyExc_ValueError,
                        "from_dlpack received an invalid capsule; note that a capsule can be "
                        "consumed only once");
        return false;
    }
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (!check_tensor(&m->tensor, false, &in)) return false;
    if (PyCapsule_SetName(capsule, "used_dltensor") != 0) return false;
    return import_tensor(&m->tensor, &in, release_plain, m, out);
}

/* o.__dlpack__(max_version=(1, 0)), or without the argument for older producers. */
static PyObject *ask_capsule(PyObject *o) {
    if (!binding_enter()) return NULL;
    PyObject *method = PyObject_GetAttrString(o, "__dlpack__");
    binding_leave();
    if (!method) return NULL;
    PyObject *empty = PyTuple_New(0), *kwargs = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
    PyObject *capsule = empty && kwargs ? PyObject_Call(method, empty, kwargs) : NULL;
    if (!capsule && binding_forgive_if(PyExc_TypeError)) capsule = PyObject_CallNoArgs(method);
    Py_XDECREF(empty);
    Py_XDECREF(kwargs);
    Py_DECREF(method);
    return capsule;
}

bool binding_from_dlpack(PyObject *o, array **out) {
    if (PyCapsule_CheckExact(o)) return from_capsule(o, out);
    PyObject *capsule = ask_capsule(o);
    if (!capsule) return false;
    bool ok = PyCapsule_CheckExact(capsule);
    if (ok)
        ok = from_capsule(capsule, out);
    else
        PyErr_SetString(PyExc_TypeError, "__dlpack__ did not return a capsule");
    Py_DECREF(capsule);
    return ok;
}

/* ---- the exporter ---- */

typedef struct exporter {
    PyObject_HEAD array *a;
    bool writable;
    Py_ssize_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
} exporter;

static void exporter_dealloc(PyObject *self) {
    array_unref(((exporter *)self)->a);
    Py_TYPE(self)->tp_free(self);
}

static int exporter_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    exporter *e = (exporter *)self;
    bool dense = array_is_contiguous(e->a);
    view->obj = NULL;
    if ((flags & PyBUF_WRITABLE) && !e->writable) {
        PyErr_SetString(PyExc_BufferError, "the array is exported for reading only");
        return -1;
    }
    if (!dense && ((flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
                   (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)) {
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous");
        return -1;
    }
    size_t bytes = dtype_bytes(e->a->dt);
    *view =
        (Py_buffer){.obj = Py_NewRef(self),
                    .buf = array_data(e->a),
                    .len = (Py_ssize_t)(e->a->size * (int64_t)bytes),
                    .itemsize = (Py_ssize_t)bytes,
                    .readonly = !e->writable,
                    .ndim = e->a->ndim,
                    .format = flags & PyBUF_FORMAT ? (char *)binding_dtype_format(e->a->dt) : NULL,
                    .shape = flags & PyBUF_ND ? e->shape : NULL,
                    .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? e->strides : NULL};
    return 0;
}

static PyBufferProcs exporter_buffer = {.bf_getbuffer = exporter_getbuffer};
static PyTypeObject exporter_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.Exporter",
    .tp_doc = "Memory of an array, through the buffer protocol.",
    .tp_basicsize = sizeof(exporter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = exporter_dealloc,
    .tp_as_buffer = &exporter_buffer,
};

PyObject *binding_export_buffer(array *a, bool writable) {
    if (!binding_dtype_format(a->dt)) {
        PyErr_Format(PyExc_TypeError, "the buffer protocol has no %s", dtype_table[a->dt].name);
        return NULL;
    }
    array *host;
    if (!binding_ok(array_to_host(a, &host))) return NULL;
    exporter *e = PyObject_New(exporter, &exporter_type);
    if (!e) return array_unref(host), NULL;
    e->a = host;
    e->writable = writable && host->store == a->store; /* what is written to a copy would be lost */
    a = host;
    for (int d = 0; d < a->ndim; d++) {
        e->shape[d] = (Py_ssize_t)a->shape[d];
        e->strides[d] = (Py_ssize_t)a->strides[d];
    }
    return (PyObject *)e;
}

PyObject *binding_numpy_view(array *a, bool writable) {
    PyObject *buffer = IN_SECTION(binding_export_buffer(a, writable)), *view = NULL, *given = NULL;
    PyObject *numpy = buffer ? PyImport_ImportModule("numpy") : NULL;
    PyObject *dt = numpy ? binding_numpy_dtype(a->dt) : NULL;
    if (dt) view = PyObject_CallMethod(numpy, "asarray", "O", buffer);
    if (view) given = PyObject_GetAttrString(view, "dtype");
    if (given && given != dt) PyErr_NoMemory(); /* without memory NumPy takes it for any object */
    if (!given || given != dt) Py_CLEAR(view);
    Py_XDECREF(given);
    Py_XDECREF(dt);
    Py_XDECREF(numpy);
    Py_XDECREF(buffer);
    return view;
}

/* ---- functions ---- */

static PyObject *export_buffer(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs < 1 || nargs > 2 || !binding_is_array(args[0])) {
        PyErr_SetString(PyExc_TypeError, "export_buffer(array, writable=True)");
        return NULL;
    }
    int writable = nargs > 1 ? binding_truth(args[1]) : 1;
    if (writable < 0) return NULL;
    return IN_SECTION(binding_export_buffer(((pyarray *)args[0])->a, writable));
}

static PyObject *from_dlpack(PyObject *module, PyObject *o) {
    array *made;
    return binding_from_dlpack(o, &made) ? binding_wrap(made) : NULL;
}

/* A cupy array on shared memory; for tests and for SIMT_LENIENT. */
static PyObject *share_memory(PyObject *module, PyObject *o) {
    array *made;
    int done = binding_share_memory(o, &made);
    if (done == 0)
        PyErr_Format(PyExc_TypeError, "the memory of a %s cannot be shared", Py_TYPE(o)->tp_name);
    return done > 0 ? binding_wrap(made) : NULL;
}

static PyMethodDef functions[] = {
    {"export_buffer", (PyCFunction)(void (*)(void))export_buffer, METH_FASTCALL,
     "The array's memory as a buffer."},
    {"from_dlpack", from_dlpack, METH_O,
     "An array on the memory of a capsule or of an object with __dlpack__."},
    {"share_memory", share_memory, METH_O,
     "An array on the memory of an object with the buffer protocol."},
    {NULL},
};

bool binding_add_exchange(PyObject *module) {
    return PyType_Ready(&exporter_type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}
