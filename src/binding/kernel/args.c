/* The arguments of a launch: Python objects -> signature bytes and 64-bit slots (frontend.h).
 *
 * In: the objects of a call. Out: their types as a signature, their values as slots, and a list of the
 * arrays with who holds their memory. Host arrays are used where they lie when nothing can tell the
 * difference from Numba's copying in and out; where it could (memory shared with another argument that
 * is written, misaligned elements) they are copied, and copied back when the kernel writes them. */
#include "base/heap.h"
#include "binding/kernel/entity.h"
#include "binding/kernel/launch.h"
#include "devlib/bits.h"

#include <string.h>

#include "binding/tensor/tensor.h"

typedef struct walk {
    kernel_args *k;
    const kernel_names *names;
    int argument, depth;
    bool entered; /* binding_enter: an argument may run Python code */
} walk;

/* Before the first argument that may run Python code: most launches have none. */
static bool enter(walk *w) { return w->entered || (w->entered = binding_enter()); }

/* ---- errors ---- */

void kernel_argument_text(const kernel_names *names, int argument, char *text, size_t size) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *code = names->function ? PyObject_GetAttrString(names->function, "__code__") : NULL;
    PyObject *all = code ? PyObject_GetAttrString(code, "co_varnames") : NULL;
    const char *name = NULL;
    if (all && PyTuple_Check(all) && argument < PyTuple_GET_SIZE(all))
        name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(all, argument));
    snprintf(text, size, name ? "argument %d ('%s')" : "argument %d", argument + 1, name);
    Py_XDECREF(code);
    Py_XDECREF(all);
    PyErr_Restore(type, value, traceback);
}

static bool unsupported(const walk *w, PyObject *o, const char *more) {
    char text[200];
    kernel_argument_text(w->names, w->argument, text, sizeof text);
    if (!binding_forgive()) return false;
    PyErr_Format(PyExc_TypeError, "kernel %s: %s is a %s%s", w->names->kernel, text,
                 Py_TYPE(o)->tp_name, more);
    return false;
}

static bool too_many(const walk *w) {
    PyErr_Format(PyExc_TypeError,
                 "kernel %s: the arguments are too many (at most %d arrays, and %d bytes for their "
                 "types with all names of fields)",
                 w->names->kernel, MAX_LAUNCH_ARRAYS, MAX_SIGNATURE_BYTES);
    return false;
}

/* ---- numbers ---- */

/* One scalar; complex takes two slots. */
static bool add_scalar(walk *w, py_scalar type, uint64_t bits, uint64_t imaginary) {
    kernel_args *k = w->k;
    if (k->nsignature + 1 > MAX_SIGNATURE_BYTES || k->nslots + 2 > MAX_SLOTS) return too_many(w);
    k->signature[k->nsignature++] = (uint8_t)type;
    k->slots[k->nslots++] = bits;
    if (py_scalar_is_complex(type)) k->slots[k->nslots++] = imaginary;
    return true;
}

static bool add_int(walk *w, PyObject *o) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) {
        if (value == -1 && PyErr_Occurred()) return false;
        return add_scalar(w, PY_S_I64, (uint64_t)value, 0);
    }
    unsigned long long wide = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
    if (overflow > 0 && !PyErr_Occurred()) return add_scalar(w, PY_S_U64, wide, 0);
    char text[200];
    binding_forgive_if(PyExc_OverflowError);
    kernel_argument_text(w->names, w->argument, text, sizeof text);
    PyErr_Format(PyExc_OverflowError, "kernel %s: %s = %R fits neither int64 nor uint64",
                 w->names->kernel, text, o);
    return false;
}

static bool add_complex(walk *w, PyObject *o) {
    Py_complex c = PyComplex_AsCComplex(o);
    return add_scalar(w, PY_S_C128, dev_bits_f64(c.real), dev_bits_f64(c.imag));
}

/* numpy.float32(1), ...: by their buffer. */
static bool add_host(walk *w, PyObject *o);

static bool add_numpy_scalar(walk *w, PyObject *o) {
    Py_buffer view;
    py_scalar type;
    uint64_t bits[2] = {0, 0};
    if (PyObject_GetBuffer(o, &view, PyBUF_FORMAT) != 0)
        return unsupported(w, o, ", which is no number");
    bool known = view.ndim == 0 && kernel_scalar_of_format(view.format, view.itemsize, &type);
    if (known) {
        size_t bytes = py_scalar_bytes(type);
        bool pair = py_scalar_is_complex(type);
        memcpy(&bits[0], view.buf, pair ? bytes / 2 : bytes);
        if (pair) memcpy(&bits[1], (char *)view.buf + bytes / 2, bytes / 2);
    }
    PyBuffer_Release(&view);
    bool record = strcmp(Py_TYPE(o)->tp_name, "numpy.void") == 0;
    if (!known && record && kernel_record_of_object(o)) return add_host(w, o);
    return known ? add_scalar(w, type, bits[0], bits[1])
                 : unsupported(w, o, ": kernels take no strings and dates");
}

/* ---- arrays ---- */

static char layout_of(int64_t bytes, const int64_t *shape, const int64_t *strides, int ndim) {
    int64_t c = bytes, f = bytes;
    bool is_c = true, is_f = true, empty = false;
    for (int i = 0; i < ndim; i++) {
        int back = ndim - 1 - i;
        is_c &= shape[back] == 1 || strides[back] == c;
        is_f &= shape[i] == 1 || strides[i] == f;
        c *= shape[back];
        f *= shape[i];
        empty |= shape[i] == 0;
    }
    return is_c || empty ? 'C' : is_f ? 'F' : 'A';
}

/* Compiled code counts on it: ir_value.is_size. */
static bool check_sizes(const walk *w, const int64_t *shape, int ndim) {
    char text[200];
    int i = 0;
    while (i < ndim && shape[i] <= IR_MOST_SIZE) i++;
    if (i == ndim) return true;
    kernel_argument_text(w->names, w->argument, text, sizeof text);
    PyErr_Format(PyExc_ValueError,
                 "kernel %s: %s has %lld elements along axis %d, more than 2**62 - 1",
                 w->names->kernel, text, (long long)shape[i], i);
    return false;
}

/* Signature and slots of an array; the entry of the list, or NULL. */
static launch_array *add_array(walk *w, py_scalar type, const kernel_record *record, bool readonly,
                               const int64_t *shape, const int64_t *strides, int ndim,
                               const void *data) {
    kernel_args *k = w->k;
    Py_ssize_t more = record ? 2 + PyBytes_GET_SIZE(record->text) : 0;
    if (k->narrays == MAX_LAUNCH_ARRAYS || k->nsignature + 5 + more > MAX_SIGNATURE_BYTES ||
        k->nslots + 1 + 2 * (uint32_t)ndim > MAX_SLOTS) {
        too_many(w);
        return NULL;
    }
    if (!check_sizes(w, shape, ndim)) return NULL;
    launch_array *a = &k->arrays[k->narrays++];
    a->argument = w->argument;
    a->slot = k->nslots;
    a->signature = k->nsignature;
    a->readonly = readonly;
    a->owned = NULL;
    a->a = NULL;
    a->store = NULL;
    a->copy = NULL;
    uint8_t *s = k->signature + k->nsignature;
    s[0] = PY_SIG_ARRAY;
    s[1] = record ? PY_SIG_RECORD : (uint8_t)type;
    s[2] = (uint8_t)ndim;
    a->itemsize = record ? record->size : (int64_t)py_scalar_bytes(type);
    s[3] = (uint8_t)layout_of(a->itemsize, shape, strides, ndim);
    s[4] = readonly ? PY_ARRAY_READONLY : 0;
    if (record) {
        s[5] = (uint8_t)(more - 2);
        s[6] = (uint8_t)((more - 2) >> 8);
        memcpy(s + 7, PyBytes_AS_STRING(record->text), (size_t)more - 2);
    }
    k->nsignature += 5 + (uint32_t)more;
    uint64_t *slot = k->slots + k->nslots;
    *slot++ = (uint64_t)(uintptr_t)data;
    for (int i = 0; i < ndim; i++) *slot++ = (uint64_t)shape[i];
    for (int i = 0; i < ndim; i++) *slot++ = (uint64_t)strides[i];
    k->nslots += 1 + 2 * (uint32_t)ndim;
    return a;
}

static bool add_device(walk *w, device_array *d, bool owned) {
    launch_array *a = add_array(w, d->type, d->record, d->readonly, d->shape, d->strides, d->ndim,
                                kernel_device_data(d));
    if (!a) {
        if (owned) Py_DECREF(d);
        return false;
    }
    a->kind = ARG_DEVICE;
    a->owned = owned ? d : NULL;
    a->store = d->base->store;
    return true;
}

/* An array of simt.cupy or simt.torch: its address comes when it is computed. */
static bool add_face(walk *w, PyObject *o) {
    array *of = ((pyarray *)o)->a;
    py_scalar type;
    if (!kernel_scalar_of_dtype(of->dt, &type))
        return unsupported(w, o, " of bfloat16, which kernels do not have");
    if (of->ndim > PY_MAX_NDIM) return unsupported(w, o, " of more than 8 dimensions");
    if (tensor_check(o) && tensor_of(o)->requires_grad)
        return unsupported(w, o, " that requires grad: give the kernel tensor.detach()");
    launch_array *a = add_array(w, type, NULL, false, of->shape, of->strides, of->ndim, NULL);
    if (!a) return false;
    a->kind = ARG_FACE;
    a->a = of;
    a->store = of->store;
    w->k->faces = true;
    return true;
}

static bool unsupported_elements(walk *w, PyObject *o) {
    PyObject *dt;
    if (!binding_forgive() || binding_attribute(o, "dtype", &dt) < 0) return false;
    PyObject *text =
        dt ? PyUnicode_FromFormat(" of dtype %S: kernels take arrays of numbers, bools, "
                                  "strings and records of them, in the machine's byte order",
                                  dt)
           : NULL;
    const char *more = text ? PyUnicode_AsUTF8(text) : ", which kernels do not take";
    if (more) unsupported(w, o, more);
    Py_XDECREF(dt);
    Py_XDECREF(text);
    return false;
}

/* Whether a numpy.void's memory may be written: its buffer says that it may not, whatever it is. */
static bool is_writable(PyObject *o) {
    PyObject *flags = PyObject_GetAttrString(o, "flags");
    PyObject *flag = flags ? PyObject_GetAttrString(flags, "writeable") : NULL;
    bool can = flag == Py_True;
    binding_forgive();
    Py_XDECREF(flags);
    Py_XDECREF(flag);
    return can;
}

/* Anything with the buffer protocol. */
static bool add_host(walk *w, PyObject *o) {
    binding_buffer b;
    py_scalar type = PY_S_NONE;
    const kernel_record *record = NULL;
    if (!binding_get_buffer(o, false, &b)) return unsupported_elements(w, o);
    const Py_buffer *view = &b.view;
    bool known = b.usable && kernel_scalar_of_format(view->format, view->itemsize, &type);
    if (!known && b.usable) known = (record = kernel_record_of_object(o)) != NULL;
    launch_array *a = NULL;
    if (known && view->ndim <= PY_MAX_NDIM) {
        bool readonly = view->readonly && !(record && view->ndim == 0 && is_writable(o));
        if (!PyErr_Occurred())
            a = add_array(w, type, record, readonly, b.shape, b.strides, view->ndim, view->buf);
    } else if (known) {
        unsupported(w, o, " of more than 8 dimensions");
    } else if (!PyErr_Occurred()) {
        unsupported_elements(w, o);
    }
    if (!a) {
        PyBuffer_Release(&b.view);
        return false;
    }
    a->kind = ARG_HOST;
    a->view = b.view;
    return true;
}

/* ---- any object ---- */

static bool add(walk *w, PyObject *o);

static bool add_text(walk *w, const char *text) {
    kernel_args *k = w->k;
    size_t n = strlen(text) + 1;
    if (k->nsignature + n > MAX_SIGNATURE_BYTES) return too_many(w);
    memcpy(k->signature + k->nsignature, text, n);
    k->nsignature += (uint32_t)n;
    return true;
}

/* The class's name and its fields' into the signature; *found: it is a named tuple's. */
static bool add_names(walk *w, PyObject *o, bool *found) {
    *found = false;
    if (PyTuple_CheckExact(o)) return true;
    PyObject *fields = NULL;
    if (!enter(w) || binding_attribute(o, "_fields", &fields) < 0) return false;
    *found = fields && PyTuple_Check(fields) && PyTuple_GET_SIZE(fields) == PyTuple_GET_SIZE(o);
    const char *dot = strrchr(Py_TYPE(o)->tp_name, '.');
    bool ok = !*found || add_text(w, dot ? dot + 1 : Py_TYPE(o)->tp_name);
    for (Py_ssize_t i = 0; *found && ok && i < PyTuple_GET_SIZE(fields); i++) {
        PyObject *field = PyTuple_GET_ITEM(fields, i);
        const char *text = PyUnicode_Check(field) ? PyUnicode_AsUTF8(field) : "";
        ok = text && add_text(w, text);
    }
    Py_XDECREF(fields);
    return ok;
}

static bool add_tuple(walk *w, PyObject *o) {
    kernel_args *k = w->k;
    bool named;
    Py_ssize_t n = PyTuple_GET_SIZE(o);
    uint32_t mark = k->nsignature;
    if (k->nsignature + 2 > MAX_SIGNATURE_BYTES || n > 255 || w->depth > 16) return too_many(w);
    k->signature[k->nsignature++] = PY_SIG_TUPLE;
    k->signature[k->nsignature++] = (uint8_t)n;
    if (!add_names(w, o, &named)) return false;
    if (named) k->signature[mark] = PY_SIG_NAMED;
    w->depth++;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!add(w, PyTuple_GET_ITEM(o, i))) return false;
    w->depth--;
    return true;
}

static bool add_mark(walk *w, uint8_t mark) {
    if (w->k->nsignature + 1 > MAX_SIGNATURE_BYTES) return too_many(w);
    w->k->signature[w->k->nsignature++] = mark;
    return true;
}

/* Host arrays that the device sees too are used where they lie. */
static bool add_buffer(walk *w, PyObject *o) {
    device_array *d;
    PyObject *mapped = NULL;
    if (strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") != 0 &&
        binding_attribute(o, "__cuda_array_interface__", &mapped) < 0)
        return false;
    Py_XDECREF(mapped);
    if (!mapped || !array_is_on_host()) return add_host(w, o);
    return kernel_device_share(o, &d) > 0 && add_device(w, d, true);
}

/* Of an enumeration whose members are no numbers: a constant of the kernel, by its identity. */
static bool add_member(walk *w, PyObject *o) {
    uint64_t number = (uint64_t)(uintptr_t)o;
    kernel_args *k = w->k;
    if (k->nsignature + 1 + sizeof number > MAX_SIGNATURE_BYTES) return too_many(w);
    if (!kernel_member_keep(o)) return false;
    k->signature[k->nsignature++] = PY_SIG_MEMBER;
    memcpy(k->signature + k->nsignature, &number, sizeof number);
    k->nsignature += (uint32_t)sizeof number;
    return true;
}

static bool add_other(walk *w, PyObject *o) {
    device_array *d;
    if (!enter(w)) return false;
    if (binding_is_numpy_scalar(o)) return add_numpy_scalar(w, o);
    if (PyObject_CheckBuffer(o)) return add_buffer(w, o);
    if (PyLong_Check(o)) return add_int(w, o);
    if (PyFloat_Check(o)) return add_scalar(w, PY_S_F64, dev_bits_f64(PyFloat_AS_DOUBLE(o)), 0);
    if (PyComplex_Check(o)) return add_complex(w, o);
    int shared = kernel_device_share(o, &d);
    if (shared > 0) return add_device(w, d, true);
    if (shared < 0) return false;
    if (kernel_is_member(o)) return add_member(w, o);
    if (PyErr_Occurred()) return false;
    if (PyUnicode_Check(o)) return unsupported(w, o, ": kernels take no strings");
    if (PyList_Check(o)) return unsupported(w, o, ": give a NumPy array or a tuple");
    return unsupported(
        w, o,
        ": kernels take arrays, numbers, bools, complex numbers, tuples, members of an "
        "Enum and None");
}

static bool add(walk *w, PyObject *o) {
    if (kernel_is_device_array(o)) return add_device(w, (device_array *)o, false);
    if (PyFloat_CheckExact(o))
        return add_scalar(w, PY_S_F64, dev_bits_f64(PyFloat_AS_DOUBLE(o)), 0);
    if (PyLong_CheckExact(o)) return add_int(w, o);
    if (PyBool_Check(o)) return add_scalar(w, PY_S_BOOL, o == Py_True, 0);
    if (o == Py_None) return add_mark(w, PY_SIG_NONE);
    if (PyTuple_Check(o)) return add_tuple(w, o);
    if (binding_is_array(o)) return add_face(w, o);
    return add_other(w, o);
}

bool kernel_args_walk(kernel_args *k, const kernel_names *names, PyObject *const *args,
                      Py_ssize_t n) {
    k->nsignature = k->nslots = k->narrays = 0;
    k->staged = NULL;
    k->faces = false;
    walk w = {.k = k, .names = names};
    bool ok = true;
    for (; ok && w.argument < n; w.argument++) ok = add(&w, args[w.argument]);
    if (w.entered) binding_leave();
    if (!ok) kernel_args_release(k);
    return ok;
}

void kernel_args_release(kernel_args *k) {
    if (k->staged) kernel_stage_release(k);
    for (uint32_t i = 0; i < k->narrays; i++) {
        launch_array *a = &k->arrays[i];
        if (a->kind == ARG_HOST) PyBuffer_Release(&a->view);
        Py_XDECREF(a->owned);
        heap_free(a->copy);
    }
    k->narrays = 0;
}

/* ---- memory ---- */

static int ndim_of(const kernel_args *k, const launch_array *a) {
    return k->signature[a->signature + 2];
}

/* The bytes that the array touches; an empty range for an empty array. */
static void range_of(const kernel_args *k, const launch_array *a, uint64_t *low, uint64_t *high) {
    const uint64_t *slot = k->slots + a->slot;
    int ndim = ndim_of(k, a);
    *low = slot[0];
    *high = slot[0] + (uint64_t)a->itemsize;
    for (int d = 0; d < ndim; d++) {
        int64_t size = (int64_t)slot[1 + d], reach = (int64_t)slot[1 + ndim + d] * (size - 1);
        if (size == 0) {
            *high = *low;
            return;
        }
        *(reach < 0 ? low : high) += (uint64_t)reach;
    }
}

static bool is_written(const launch_array *a, const bool *writes) { return writes[a->argument]; }

/* Whether another argument shares memory with array i and one of the two is written. */
static bool conflicts(const kernel_args *k, uint32_t i, const bool *writes) {
    uint64_t low, high, other_low, other_high;
    range_of(k, &k->arrays[i], &low, &high);
    for (uint32_t j = 0; j < k->narrays; j++) {
        if (j == i || !(is_written(&k->arrays[i], writes) || is_written(&k->arrays[j], writes)))
            continue;
        range_of(k, &k->arrays[j], &other_low, &other_high);
        if (low < other_high && other_low < high) return true;
    }
    return false;
}

static bool misaligned(const kernel_args *k, const launch_array *a) {
    uint64_t unit = (uint64_t)a->itemsize, bits = k->slots[a->slot];
    int ndim = ndim_of(k, a);
    uint8_t type = k->signature[a->signature + 1];
    if (type == PY_SIG_RECORD) return false; /* fields lie anywhere */
    if (py_scalar_is_complex((py_scalar)type)) unit /= 2;
    for (int d = 0; d < ndim; d++) {
        uint64_t size = k->slots[a->slot + 1 + (uint32_t)d];
        if (size == 0) return false;
        if (size > 1) bits |= k->slots[a->slot + 1 + (uint32_t)(ndim + d)];
    }
    return (bits & (unit - 1)) != 0;
}

/* Moves all elements between strided memory and dense memory in the layout's order. */
typedef struct mover {
    int ndim;
    const int64_t *shape, *strides, *dense;
    size_t itemsize;
    bool in;
} mover;
static void move(const mover *m, int axis, char *host, char *copy) {
    if (axis == m->ndim) {
        memcpy(m->in ? copy : host, m->in ? host : copy, m->itemsize);
        return;
    }
    for (int64_t i = 0; i < m->shape[axis]; i++)
        move(m, axis + 1, host + i * m->strides[axis], copy + i * m->dense[axis]);
}

static int64_t *sizes_of(kernel_args *k, const launch_array *a) {
    return (int64_t *)&k->slots[a->slot + 1];
}

/* The dense strides of array a in the layout that its signature says. */
static void dense_strides(kernel_args *k, const launch_array *a, int64_t *dense) {
    int ndim = ndim_of(k, a);
    int64_t step = a->itemsize;
    for (int i = 0; i < ndim; i++) {
        int axis = k->signature[a->signature + 3] == 'F' ? i : ndim - 1 - i;
        dense[axis] = step;
        step *= sizes_of(k, a)[axis];
    }
}

static void move_host(kernel_args *k, const launch_array *a, bool in) {
    int64_t dense[PY_MAX_NDIM];
    dense_strides(k, a, dense);
    mover m = {ndim_of(k, a), sizes_of(k, a), a->strides, dense, (size_t)a->itemsize, in};
    move(&m, 0, a->view.buf, a->copy);
}

static bool copy_in(kernel_args *k, launch_array *a, bool written) {
    int ndim = ndim_of(k, a);
    int64_t *strides = sizes_of(k, a) + ndim;
    if (!(a->copy = heap_aligned(64, (size_t)a->view.len + 64))) {
        PyErr_NoMemory();
        return false;
    }
    memcpy(a->strides, strides, sizeof *strides * (size_t)ndim);
    move_host(k, a, true);
    dense_strides(k, a, strides);
    return kernel_stage(k, a->copy, (size_t)a->view.len, written, &k->slots[a->slot]);
}

static bool not_aligned(const kernel_args *k, const kernel_names *names, const launch_array *a) {
    char text[200];
    kernel_argument_text(names, a->argument, text, sizeof text);
    PyErr_Format(PyExc_ValueError,
                 "kernel %s: %s: the memory of the device array is not aligned to its %d-byte "
                 "elements",
                 names->kernel, text, (int)a->itemsize);
    return false;
}

bool kernel_args_prepare(kernel_args *k, const kernel_names *names, const bool *writes) {
    /* what waits may read what the kernel is to write */
    if (k->faces && !binding_ok(array_evaluate_all())) return false;
    for (uint32_t i = 0; i < k->narrays; i++) {
        launch_array *a = &k->arrays[i];
        if (a->kind == ARG_FACE) {
            if (!binding_ok(array_evaluate(a->a))) return false;
            k->slots[a->slot] = (uint64_t)(uintptr_t)array_data(a->a);
        }
    }
    bool apart = !array_is_on_host();
    uint64_t copies = 0; /* bit per array; fixed before the first copy moves an address */
    for (uint32_t i = 0; i < k->narrays; i++) {
        const launch_array *a = &k->arrays[i];
        bool crooked = misaligned(k, a);
        if (crooked && a->kind != ARG_HOST) return not_aligned(k, names, a);
        if (a->kind == ARG_HOST &&
            (apart || crooked || (k->narrays > 1 && conflicts(k, i, writes))))
            copies |= 1ull << i;
    }
    for (uint32_t i = 0; copies >> i; i++)
        if ((copies >> i & 1) && !copy_in(k, &k->arrays[i], is_written(&k->arrays[i], writes)))
            return false;
    return true;
}

simt_status kernel_args_finish(kernel_args *k, const bool *writes) {
    if (k->staged) SIMT_TRY(kernel_stage_back(k));
    for (uint32_t i = 0; i < k->narrays; i++) {
        launch_array *a = &k->arrays[i];
        if (!is_written(a, writes)) continue;
        if (a->store) a->store->version++;
        if (a->copy && !a->readonly) move_host(k, a, false);
    }
    return SIMT_OK;
}
