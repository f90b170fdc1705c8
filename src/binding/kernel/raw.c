/* CUDA C from Python: a text read once (CudaUnit), its kernels, and launches of them as CuPy's RawKernel has them.
 *
 * Arguments must be what the kernel's parameters say. CuPy passes their bytes on whatever they are: an int64 for an
 * int, a float64 array for float*; here that is an error which names the parameter. */
#include "base/heap.h"
#include "binding/kernel/dispatcher.h"
#include "binding/kernel/launch.h"
#include "frontend/cuda/frontend.h"

#include <stddef.h>
#include <string.h>

typedef struct unit_object {
    PyObject_HEAD cuda_unit *unit;
} unit_object;

typedef struct raw_kernel {
    PyObject_HEAD unit_object *of;
    const cuda_parameter *parameters; /* in the unit's memory, as is the name */
    uint32_t nparameters;
    const char *name;
    kernel_entries entries;
    const kernel *kernel; /* the entries' */
} raw_kernel;

static PyTypeObject unit_type, raw_type;

/* ---- units ---- */

static bool read_defines(PyObject *list, cuda_options *o) {
    Py_ssize_t n = PyTuple_GET_SIZE(list);
    const char **defines = binding_alloc((size_t)n + 1, sizeof *defines);
    if (!defines) return false;
    *o = (cuda_options){defines, (uint32_t)n};
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *text = PyTuple_GET_ITEM(list, i);
        if (!PyUnicode_Check(text)) PyErr_SetString(PyExc_TypeError, "a definition must be a str");
        defines[i] = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8(text);
        if (!defines[i]) return false;
    }
    return true;
}

/* CudaUnit(file, text, defines) */
static PyObject *unit_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    const char *file, *text;
    Py_ssize_t bytes;
    PyObject *defines;
    if (!PyArg_ParseTuple(args, "ss#O!:CudaUnit", &file, &text, &bytes, &PyTuple_Type, &defines))
        return NULL;
    unit_object *u = (unit_object *)type->tp_alloc(type, 0);
    cuda_options options = {0};
    bool ok = u && read_defines(defines, &options);
    if (ok && cuda_unit_new(file, text, (size_t)bytes, &options, &u->unit) != SIMT_OK) {
        kernel_raise();
        ok = false;
    }
    heap_free((void *)(uintptr_t)options.defines);
    if (!ok) Py_CLEAR(u);
    return (PyObject *)u;
}

static void unit_dealloc(PyObject *self) {
    cuda_unit_free(((unit_object *)self)->unit);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *unit_names(PyObject *self, PyObject *unused) {
    PyObject *list = PyList_New(0);
    const char *name;
    for (uint32_t i = 0; list && (name = cuda_unit_name(((unit_object *)self)->unit, i)); i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *unit_kernel(PyObject *self, PyObject *name) {
    unit_object *u = (unit_object *)self;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "a kernel's name must be a str");
    raw_kernel *r = PyObject_New(raw_kernel, &raw_type);
    if (!r) return NULL;
    r->of = NULL;
    r->entries = (kernel_entries){0};
    kernel *k;
    bool ok =
        cuda_unit_kernel(u->unit, text, &k, &r->parameters, &r->nparameters, &r->name) == SIMT_OK;
    if (!ok) kernel_raise();
    if (ok) ok = kernel_entries_keep(&r->entries, k);
    if (ok) {
        r->of = (unit_object *)Py_NewRef(self);
        r->kernel = k;
    } else {
        Py_CLEAR(r);
    }
    return (PyObject *)r;
}

/* ---- arguments ---- */

typedef struct walk {
    const raw_kernel *of;
    kernel_args *k;
    uint32_t number;
} walk;

static bool refuse(const walk *w, const char *format, ...) {
    const cuda_parameter *p = &w->of->parameters[w->number];
    va_list list;
    va_start(list, format);
    PyObject *what = PyUnicode_FromFormatV(format, list);
    va_end(list);
    if (what)
        PyErr_Format(PyExc_TypeError, "kernel %s: argument %u ('%s') is %U; the kernel takes %s",
                     w->of->name, w->number + 1, p->name, what, p->type);
    Py_XDECREF(what);
    return false;
}

/* From the array's first element on to the end of its memory. */
static bool add_array(walk *w, array *a) {
    kernel_args *k = w->k;
    if (k->narrays == MAX_LAUNCH_ARRAYS) return refuse(w, "one array too many");
    py_scalar type = PY_S_U8;
    kernel_scalar_of_dtype(a->dt, &type);
    k->arrays[k->narrays++] = (launch_array){.kind = ARG_FACE,
                                             .argument = (int)w->number,
                                             .slot = k->nslots,
                                             .signature = k->nsignature,
                                             .itemsize = (int64_t)dtype_bytes(a->dt),
                                             .a = a,
                                             .store = a->store};
    const uint8_t signature[] = {PY_SIG_ARRAY, (uint8_t)type, 0, 'A', 0};
    memcpy(k->signature + k->nsignature, signature, sizeof signature);
    k->nsignature += sizeof signature;
    k->faces = true;
    k->slots[k->nslots++] = 0; /* when it is computed */
    k->slots[k->nslots++] = a->size > 0 ? (uint64_t)a->store->bytes - (uint64_t)a->offset : 0;
    return true;
}

static bool add_pointer(walk *w, PyObject *o) {
    const cuda_parameter *p = &w->of->parameters[w->number];
    if (o == Py_None) {
        w->k->slots[w->k->nslots++] = 0;
        w->k->slots[w->k->nslots++] = 0;
        return true;
    }
    if (!binding_is_array(o)) return refuse(w, "of type %s", Py_TYPE(o)->tp_name);
    array *a = ((pyarray *)o)->a;
    if (p->dt != DT_COUNT && p->dt != a->dt)
        return refuse(w, "an array of %s", dtype_table[a->dt].name);
    return add_array(w, a);
}

static bool fits(dtype dt, PyObject *o, uint64_t *bits) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    unsigned width = (unsigned)dtype_bytes(dt) * 8;
    bool no_sign = dtype_is_unsigned(dt);
    *bits = (uint64_t)value;
    if (overflow > 0 && no_sign && width == 64) {
        *bits = PyLong_AsUnsignedLongLong(o);
        return !PyErr_Occurred() || (binding_forgive(), false);
    }
    if (overflow) return false;
    if (no_sign) return value >= 0 && (width == 64 || (uint64_t)value >> width == 0);
    return width == 64 || (value >= -(1ll << (width - 1)) && value < 1ll << (width - 1));
}

static uint64_t float_bits(dtype dt, double d) {
    uint64_t bits = 0;
    float f = (float)d;
    memcpy(&bits, dt == DT_F32 ? (const void *)&f : (const void *)&d, dt == DT_F32 ? 4 : 8);
    return bits;
}

/* bool, int and float of Python. */
static bool add_number(walk *w, PyObject *o) {
    const cuda_parameter *p = &w->of->parameters[w->number];
    bool is_float = dtype_is_float(p->dt);
    uint64_t bits = 0;
    if (PyFloat_CheckExact(o)) {
        if (!is_float) return refuse(w, "a float");
        bits = float_bits(p->dt, PyFloat_AS_DOUBLE(o));
    } else if (PyBool_Check(o)) {
        if (is_float) return refuse(w, "a bool");
        bits = o == Py_True;
    } else {
        if (is_float) return refuse(w, "an int (write a float)");
        if (p->dt == DT_BOOL) return refuse(w, "an int");
        if (!fits(p->dt, o, &bits))
            return PyErr_Occurred() ? false : refuse(w, "%R, which does not fit", o);
        unsigned width = (unsigned)dtype_bytes(p->dt) * 8;
        bits &= ~0ull >> (64 - width);
    }
    w->k->slots[w->k->nslots++] = bits;
    return true;
}

/* numpy.float32(1) and its kin: of exactly the parameter's type. */
static bool add_numpy(walk *w, PyObject *o) {
    const cuda_parameter *p = &w->of->parameters[w->number];
    Py_buffer view;
    py_scalar type = PY_S_NONE;
    uint64_t bits = 0;
    if (PyObject_GetBuffer(o, &view, PyBUF_FORMAT) != 0)
        return binding_forgive() && refuse(w, "of type %s", Py_TYPE(o)->tp_name);
    bool known =
        view.ndim == 0 && view.format && kernel_scalar_of_format(view.format, view.itemsize, &type);
    if (known && py_scalar_dtype(type) == p->dt) memcpy(&bits, view.buf, dtype_bytes(p->dt));
    PyBuffer_Release(&view);
    if (!known) return refuse(w, "of type %s", Py_TYPE(o)->tp_name);
    if (py_scalar_dtype(type) != p->dt) return refuse(w, "a %s", Py_TYPE(o)->tp_name);
    w->k->slots[w->k->nslots++] = bits;
    return true;
}

static bool add_argument(walk *w, PyObject *o) {
    if (w->of->parameters[w->number].pointer) return add_pointer(w, o);
    bool plain = PyFloat_CheckExact(o) || PyLong_Check(o);
    return plain ? add_number(w, o) : binding_is_array(o) ? refuse(w, "an array") : add_numpy(w, o);
}

static bool add_arguments(const raw_kernel *r, kernel_args *k, PyObject *args) {
    memset(k, 0, offsetof(kernel_args, signature));
    if (PyTuple_GET_SIZE(args) != (Py_ssize_t)r->nparameters) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %u arguments, and %zd are given", r->name,
                     r->nparameters, PyTuple_GET_SIZE(args));
        return false;
    }
    walk w = {r, k, 0};
    for (; w.number < r->nparameters; w.number++) {
        if (k->nslots + 4 > MAX_SLOTS || k->nsignature + 5 > MAX_SIGNATURE_BYTES)
            return refuse(&w, "one too many");
        if (!add_argument(&w, PyTuple_GET_ITEM(args, w.number))) return false;
    }
    return true;
}

/* ---- launches ---- */

static bool launch(raw_kernel *r, kernel_launch *how, PyObject *args) {
    kernel_args k;
    kernel_names names = {r->name, NULL};
    py_options options = {0};
    if (!kernel_launch_check(how, NULL) || !kernel_launch_check(how, r->kernel) ||
        !binding_start() || !add_arguments(r, &k, args))
        return false;
    const uint32_t block[3] = {(uint32_t)how->block[0], (uint32_t)how->block[1],
                               (uint32_t)how->block[2]};
    kernel_entry *e =
        kernel_entries_get(&r->entries, NULL, &options, (const uint8_t *)"", 0, block);
    bool ok = e && kernel_args_prepare(&k, &names, r->kernel->writes) &&
              kernel_launch_run(how, e, &k, &names);
    kernel_entry_unref(e);
    kernel_args_release(&k);
    return ok;
}

/* launch(grid, block, args, shared_mem) */
static PyObject *raw_launch(PyObject *self, PyObject *args) {
    raw_kernel *r = (raw_kernel *)self;
    PyObject *grid, *block, *given;
    kernel_launch how = {.name = r->name, .cupy = true};
    long long shared;
    if (!PyArg_ParseTuple(args, "OOOL:launch", &grid, &block, &given, &shared)) return NULL;
    how.shared = shared;
    if (!kernel_dimensions(grid, "grid", how.grid) || !kernel_dimensions(block, "block", how.block))
        return NULL;
    PyObject *tuple = PySequence_Tuple(given); /* a list may change meanwhile */
    bool ok = tuple && IN_SECTION(launch(r, &how, tuple));
    Py_XDECREF(tuple);
    return ok ? Py_NewRef(Py_None) : NULL;
}

static PyObject *raw_facts(PyObject *self, PyObject *unused) {
    const raw_kernel *r = (raw_kernel *)self;
    return Py_BuildValue("(nn)", (Py_ssize_t)r->kernel->static_shared,
                         (Py_ssize_t)r->kernel->local);
}

/* ir(block): compiled for the block size, or found. */
static PyObject *raw_ir(PyObject *self, PyObject *size) {
    raw_kernel *r = (raw_kernel *)self;
    kernel_launch how = {.name = r->name, .cupy = true, .grid = {1, 1, 1}};
    py_options options = {0};
    if (!kernel_dimensions(size, "block", how.block) || !kernel_launch_check(&how, NULL) ||
        !binding_start())
        return NULL;
    const uint32_t block[3] = {(uint32_t)how.block[0], (uint32_t)how.block[1],
                               (uint32_t)how.block[2]};
    kernel_entry *e =
        kernel_entries_get(&r->entries, NULL, &options, (const uint8_t *)"", 0, block);
    PyObject *text = e ? PyUnicode_FromString(runtime_kernel_text(e->code)) : NULL;
    kernel_entry_unref(e);
    return text;
}

static void raw_dealloc(PyObject *self) {
    raw_kernel *r = (raw_kernel *)self;
    kernel_entries_clear(&r->entries);
    Py_XDECREF(r->of);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef unit_methods[] = {
    {"names", unit_names, METH_NOARGS, "names() -> list of the names of its kernels."},
    {"kernel", unit_kernel, METH_O, "kernel(name) -> CudaKernel."},
    {NULL},
};
static PyMethodDef raw_methods[] = {
    {"launch", raw_launch, METH_VARARGS, "launch(grid, block, args, shared_mem)"},
    {"ir", raw_ir, METH_O, "ir(block) -> its text in the intermediate language."},
    {"facts", raw_facts, METH_NOARGS,
     "facts() -> bytes of static shared memory a block, of local memory a thread."},
    {NULL},
};

static PyTypeObject unit_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.CudaUnit",
    .tp_doc = "CudaUnit(file, text, defines): CUDA C, read once.",
    .tp_basicsize = sizeof(unit_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = unit_new,
    .tp_dealloc = unit_dealloc,
    .tp_methods = unit_methods,
};
static PyTypeObject raw_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.CudaKernel",
    .tp_doc = "A kernel of a CudaUnit.",
    .tp_basicsize = sizeof(raw_kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = raw_dealloc,
    .tp_methods = raw_methods,
};

bool kernel_raw_ready(PyObject *module) {
    return PyType_Ready(&raw_type) == 0 && PyType_Ready(&unit_type) == 0 &&
           PyModule_AddObjectRef(module, "CudaUnit", (PyObject *)&unit_type) == 0;
}
