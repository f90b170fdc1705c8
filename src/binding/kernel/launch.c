/* kernel[grid, block](...): compiled code for the types of the arguments and the block size -> launch ->
 * results, prints, exceptions.
 *
 * The GIL is given up while the kernel runs; the arguments are held by the caller meanwhile, the compiled
 * entry (kernel/entries.h) by the launch. */
#include "binding/kernel/launch.h"
#include "base/heap.h"
#include "binding/kernel/dispatcher.h"

#include <stddef.h>
#include <string.h>

enum { MAX_THREADS = 1024, SHARED_LIMIT = 48 * 1024, PRINT_BYTES = 1 << 20, MAX_KEPT = 32 };
static const int64_t block_limits[3] = {1024, 1024, 64};
static const int64_t grid_limits[3] = {2147483647, 65535, 65535};

/* kernel[grid, block, stream, shared] */
typedef struct configured {
    PyObject_HEAD vectorcallfunc call;
    dispatcher *of;
    kernel_launch how;
    PyObject *stream;
} configured;

static PyTypeObject configured_type;

/* ---- launch limits ---- */

/* The face's exception for a launch that the driver refuses. Returns false. */
static bool launch_error(const kernel_launch *how, const char *format, ...) {
    va_list args;
    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    const char *from = how->cupy ? "simt.cupy.cuda" : "simt.numba.cuda.cudadrv.driver";
    PyObject *module = text ? PyImport_ImportModule(from) : NULL;
    PyObject *type =
        module ? PyObject_GetAttrString(module, how->cupy ? "_DriverError" : "CudaAPIError") : NULL;
    PyObject *error = type ? PyObject_CallFunction(type, "iO", 1, text) : NULL;
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(text);
    Py_XDECREF(module);
    Py_XDECREF(type);
    Py_XDECREF(error);
    return false;
}

static bool check_axis(const kernel_launch *how, const char *what, const int64_t size[3],
                       const int64_t limits[3]) {
    for (int i = 0; i < 3; i++) {
        if (size[i] >= 1 && size[i] <= limits[i]) continue;
        if (size[i] < 1)
            return launch_error(
                how, "kernel %s: %s (%lld, %lld, %lld): %c is %lld, and must be at least 1",
                how->name, what, (long long)size[0], (long long)size[1], (long long)size[2],
                "xyz"[i], (long long)size[i]);
        return launch_error(
            how, "kernel %s: %s (%lld, %lld, %lld): %c is %lld, %lld more than the limit of %lld",
            how->name, what, (long long)size[0], (long long)size[1], (long long)size[2], "xyz"[i],
            (long long)size[i], (long long)(size[i] - limits[i]), (long long)limits[i]);
    }
    return true;
}

static bool check_launch(const kernel_launch *how) {
    const char *name = how->name;
    if (!check_axis(how, "block", how->block, block_limits) ||
        !check_axis(how, "grid", how->grid, grid_limits))
        return false;
    int64_t threads = how->block[0] * how->block[1] * how->block[2], bound = how->most_threads;
    if (bound > 0 && threads > bound)
        return launch_error(how,
                            "CUDA_ERROR_INVALID_VALUE: kernel %s: a block of %lld threads; its "
                            "launch_bounds are %lld",
                            name, (long long)threads, (long long)bound);
    if (threads > MAX_THREADS)
        return launch_error(how,
                            "kernel %s: a block of (%lld, %lld, %lld) has %lld threads, %lld more "
                            "than the limit of %d",
                            name, (long long)how->block[0], (long long)how->block[1],
                            (long long)how->block[2], (long long)threads,
                            (long long)(threads - MAX_THREADS), MAX_THREADS);
    return true;
}

static bool check_shared(const kernel_launch *how, const kernel *k) {
    int64_t all = how->shared + (int64_t)k->static_shared;
    if (how->shared >= 0 && all <= SHARED_LIMIT) return true;
    if (how->shared < 0)
        return launch_error(how, "kernel %s: %lld bytes of dynamic shared memory", how->name,
                            (long long)how->shared);
    return launch_error(how,
                        "kernel %s: %lld bytes of shared memory a block (%lld static, %lld "
                        "dynamic), %lld more than the limit of %d",
                        how->name, (long long)all, (long long)k->static_shared,
                        (long long)how->shared, (long long)(all - SHARED_LIMIT), SHARED_LIMIT);
}

bool kernel_launch_check(const kernel_launch *how, const kernel *k) {
    return k ? check_shared(how, k) : check_launch(how);
}

/* ---- the launch ---- */

static bool check_count(const dispatcher *d, Py_ssize_t n) {
    if (n >= d->nrequired && n <= d->nparameters) return true;
    PyErr_Format(PyExc_TypeError, "kernel %s: %s arguments: expected %d, got %zd", d->name,
                 n < d->nrequired ? "not enough" : "too many",
                 n < d->nrequired ? d->nrequired : d->nparameters, n);
    return false;
}

static bool no_match(const dispatcher *d, const kernel_args *k) {
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)k->signature, k->nsignature);
    PyObject *module = bytes ? PyImport_ImportModule("simt.numba.core.types") : NULL;
    PyObject *text =
        module ? PyObject_CallMethod(module, "describe_mismatch", "OO", bytes, d->declared) : NULL;
    if (text)
        PyErr_Format(PyExc_TypeError, "kernel %s: No matching definition for argument type(s) %U",
                     d->name, text);
    Py_XDECREF(bytes);
    Py_XDECREF(module);
    Py_XDECREF(text);
    return false;
}

/* Converts the arguments to the declared signature whose conversions cost least, the first of equal ones. */
static bool match_declared(const dispatcher *d, kernel_args *k) {
    PyObject *best = NULL;
    int64_t least = 0;
    bool alone = PyList_GET_SIZE(d->declared) == 1;
    kernel_names names = {d->name, d->function};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(d->declared); i++) {
        PyObject *s = PyList_GET_ITEM(d->declared, i);
        int64_t cost = kernel_args_match(k, &names, (const uint8_t *)PyBytes_AS_STRING(s),
                                         (uint32_t)PyBytes_GET_SIZE(s), alone, false);
        if (cost < 0 || (best && cost >= least)) continue;
        best = s;
        least = cost;
    }
    if (!best) return no_match(d, k);
    return kernel_args_match(k, &names, (const uint8_t *)PyBytes_AS_STRING(best),
                             (uint32_t)PyBytes_GET_SIZE(best), alone, true) >= 0;
}

/* The slots behind the arguments. *buffer: the print buffer, when there is one. */
static bool add_hidden_slots(const kernel_launch *how, const kernel_entry *e, kernel_args *k,
                             uint64_t **buffer) {
    const kernel *of = e->typed->kernel;
    const kernel_constant *constant = of->constants;
    uint32_t given = k->nslots;
    if (of->nparameters > MAX_SLOTS) {
        PyErr_Format(PyExc_RuntimeError, "kernel %s: too many constant arrays", how->name);
        return false;
    }
    for (uint32_t i = given; i < of->nparameters; i++) {
        kernel_role role = of->parameters[i].role;
        if (role == KERNEL_SHARED_BYTES) k->slots[k->nslots++] = (uint64_t)how->shared;
        if (role == KERNEL_CONSTANT) {
            if (!kernel_stage_constant(k, constant++, &k->slots[k->nslots++])) return false;
        }
        if (role != KERNEL_PRINT_BUFFER) continue;
        *buffer = binding_alloc(1, PRINT_BYTES + 16);
        if (!*buffer) return false;
        (*buffer)[1] = PRINT_BYTES;
        if (!kernel_stage(k, *buffer, PRINT_BYTES + 16, true, &k->slots[k->nslots++])) return false;
    }
    if (k->nslots == of->nparameters) return true;
    PyErr_Format(
        PyExc_RuntimeError,
        "kernel %s: %u slots for %u parameters; this is a defect of simt: please report it",
        how->name, k->nslots, of->nparameters);
    return false;
}

/* Not while array operations, or other kernels of the default stream, use the same arrays. */
static simt_status launch_in_order(const kernel_launch *how, const kernel_entry *e, kernel_args *k,
                                   code_fault *fault) {
    storage *stores[MAX_LAUNCH_ARRAYS];
    int n = (int)k->narrays;
    uint32_t grid[3] = {(uint32_t)how->grid[0], (uint32_t)how->grid[1], (uint32_t)how->grid[2]};
    for (int i = 0; i < n; i++) stores[i] = k->arrays[i].store;
    simt_status status = order_begin(stores, n, how->stream);
    if (status != SIMT_OK) return status;
    Py_BEGIN_ALLOW_THREADS status =
        runtime_launch(e->code, grid, k->slots, (size_t)how->shared, fault);
    Py_END_ALLOW_THREADS order_end(stores, n, how->stream);
    simt_status finished = kernel_args_finish(k, e->typed->kernel->writes);
    return status != SIMT_OK ? status : finished;
}

bool kernel_launch_run(const kernel_launch *how, const kernel_entry *e, kernel_args *k,
                       const kernel_names *names) {
    uint64_t *buffer = NULL;
    bool ok = add_hidden_slots(how, e, k, &buffer);
    if (ok) {
        code_fault fault;
        simt_status status = launch_in_order(how, e, k, &fault);
        ok = status == SIMT_OK || (kernel_raise(), false);
        if (ok && fault.set) {
            report_launch of = {e->typed->kernel, e->code->code, names->kernel,
                                k->slots,         how->grid,     e->block};
            kernel_raise_fault(&of, &fault);
            ok = false;
        }
        if (buffer) {
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            bool printed = kernel_flush_prints(e->typed->kernel, buffer);
            if (type) PyErr_Restore(type, value, traceback);
            ok &= printed;
        }
    }
    heap_free(buffer);
    return ok;
}

/* numba.config's switches: 1 warns of small grids, 2 of host arrays; 0 in most programs. */
static int warnings_on;

static bool warn(const char *format, long long n) {
    PyObject *module = PyImport_ImportModule("simt.numba.core.errors");
    PyObject *category = module ? PyObject_GetAttrString(module, "NumbaPerformanceWarning") : NULL;
    bool ok = category && PyErr_WarnFormat(category, 1, format, n) == 0;
    Py_XDECREF(category);
    Py_XDECREF(module);
    return ok;
}

static bool is_host_array(PyObject *o) { return strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0; }

static bool warn_of_launch(const configured *c, PyObject *const *args, Py_ssize_t n) {
    int64_t blocks = c->how.grid[0] * c->how.grid[1] * c->how.grid[2];
    if ((warnings_on & 1) && blocks < 2 * runtime_device(array_runtime())->nthreads &&
        !warn("Grid size %lld will likely result in GPU under-utilization due to low occupancy.",
              (long long)blocks))
        return false;
    for (Py_ssize_t i = 0; (warnings_on & 2) && i < n; i++)
        if (is_host_array(args[i]) &&
            !warn("Host array used in CUDA kernel will incur copy overhead to/from device.", 0))
            return false;
    return true;
}

PyObject *kernel_warnings(PyObject *module, PyObject *on) {
    long bits = PyLong_AsLong(on);
    if (bits == -1 && PyErr_Occurred()) return NULL;
    warnings_on = (int)bits;
    Py_RETURN_NONE;
}

static bool launch(const configured *c, PyObject *const *args, Py_ssize_t n) {
    dispatcher *d = c->of;
    kernel_args k;
    kernel_names names = {d->name, d->function};
    if (!kernel_launch_check(&c->how, NULL) || !check_count(d, n) || !binding_start() ||
        (warnings_on && !warn_of_launch(c, args, n)) || !kernel_args_walk(&k, &names, args, n))
        return kernel_add_definition(d->function, d->name);
    bool ok = true;
    for (; n < d->nparameters; n++) k.signature[k.nsignature++] = PY_SIG_DEFAULT;
    const int64_t *size = c->how.block;
    uint32_t block[3] = {(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]};
    if (d->declared) ok = match_declared(d, &k);
    kernel_entry *e = ok ? kernel_entries_get(&d->entries, d->function, &d->compile, k.signature,
                                              k.nsignature, block)
                         : NULL;
    ok = e && kernel_launch_check(&c->how, e->typed->kernel) &&
         kernel_args_prepare(&k, &names, e->typed->kernel->writes);
    ok = ok ? kernel_launch_run(&c->how, e, &k, &names)
            : kernel_add_definition(d->function, d->name);
    kernel_entry_unref(e);
    kernel_args_release(&k);
    return ok;
}

static PyObject *configured_call(PyObject *self, PyObject *const *args, size_t flags,
                                 PyObject *kwnames) {
    configured *c = (configured *)self;
    if (kwnames && PyTuple_GET_SIZE(kwnames)) {
        PyErr_Format(
            PyExc_TypeError,
            "kernel %s: got an unexpected keyword argument '%U': arguments of a launch are "
            "given by position",
            c->of->name, PyTuple_GET_ITEM(kwnames, 0));
        kernel_add_definition(c->of->function, c->of->name);
        return NULL;
    }
    if (!IN_SECTION(launch(c, args, PyVectorcall_NARGS(flags)))) return NULL;
    Py_RETURN_NONE;
}

/* ---- configured launches ---- */

static configured *kept[MAX_KEPT];
static int nkept;

static configured *new_configured(dispatcher *d) {
    configured *c;
    if (nkept > 0) {
        c = kept[--nkept];
        PyObject_Init((PyObject *)c, &configured_type);
    } else if (!(c = PyObject_GC_New(configured, &configured_type))) {
        return NULL;
    }
    c->call = configured_call;
    c->of = (dispatcher *)Py_NewRef(d);
    c->stream = NULL;
    c->how = (kernel_launch){.name = d->name, .most_threads = d->most_threads};
    PyObject_GC_Track(c);
    return c;
}

static int configured_traverse(PyObject *self, visitproc visit, void *arg) {
    configured *c = (configured *)self;
    Py_VISIT(c->of);
    Py_VISIT(c->stream);
    return 0;
}

/* There is no tp_clear: `of` is never NULL while the object lives. Cycles through it are cut elsewhere. */
static void configured_dealloc(PyObject *self) {
    configured *c = (configured *)self;
    PyObject_GC_UnTrack(self);
    Py_CLEAR(c->of);
    Py_CLEAR(c->stream);
    if (nkept < MAX_KEPT)
        kept[nkept++] = c;
    else
        Py_TYPE(self)->tp_free(self);
}

/* `item`: what is no integer, or NULL: there are too few or too many. */
static bool dimension_error(const char *name, PyObject *o, PyObject *item) {
    if (item)
        PyErr_Format(PyExc_TypeError, "%s must be a sequence of integers, got %R%s", name, o,
                     PyFloat_Check(item) ? ": write //, or int(...)" : "");
    else
        PyErr_Format(PyExc_ValueError, "%s must be a sequence of 1, 2 or 3 integers, got %R", name,
                     o);
    return false;
}

static bool dimension(PyObject *o, PyObject *item, const char *name, int64_t *out) {
    if (!PyIndex_Check(item)) return dimension_error(name, o, item);
    if (binding_to_int64(item, out)) return true;
    if (PyErr_ExceptionMatches(PyExc_RecursionError)) return false;
    if (binding_forgive_if(PyExc_OverflowError)) return *out = INT64_MAX, true;
    return binding_forgive() && dimension_error(name, o, item);
}

bool kernel_dimensions(PyObject *o, const char *name, int64_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    bool list = PyList_Check(o);
    if (!list && !PyTuple_Check(o)) return dimension(o, o, name, &out[0]);
    PyObject *items = list ? PyList_AsTuple(o) : Py_NewRef(o); /* an __index__ may change a list */
    Py_ssize_t n = items ? PyTuple_GET_SIZE(items) : 0;
    bool ok = items && ((n >= 1 && n <= 3) || dimension_error(name, o, NULL));
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = dimension(o, PyTuple_GET_ITEM(items, i), name, &out[i]);
    Py_XDECREF(items);
    return ok;
}

/* kernel[grid, block(, stream(, shared))] */
PyObject *kernel_configure(PyObject *self, PyObject *key) {
    dispatcher *d = (dispatcher *)self;
    Py_ssize_t n = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
    if (d->device) {
        PyErr_Format(PyExc_RuntimeError,
                     "Cannot compile a device function as a kernel: %s is one, which kernels call",
                     d->name);
        return NULL;
    }
    if (n < 2 || n > 4) {
        PyErr_SetString(PyExc_ValueError, n < 2 ? "must specify at least the griddim and blockdim"
                                                : "at most griddim, blockdim, stream and shared "
                                                  "memory bytes are given");
        return NULL;
    }
    configured *c = new_configured(d);
    if (!c) return NULL;
    bool ok = kernel_dimensions(PyTuple_GET_ITEM(key, 0), "griddim", c->how.grid) &&
              kernel_dimensions(PyTuple_GET_ITEM(key, 1), "blockdim", c->how.block);
    if (ok && n > 2) c->stream = Py_NewRef(PyTuple_GET_ITEM(key, 2));
    c->how.stream = c->stream && c->stream != Py_None && !PyLong_Check(c->stream);
    if (ok && n > 3) ok = binding_to_int64(PyTuple_GET_ITEM(key, 3), &c->how.shared);
    if (!ok) Py_CLEAR(c);
    return (PyObject *)c;
}

static PyObject *configured_repr(PyObject *self) {
    configured *c = (configured *)self;
    return PyUnicode_FromFormat("<launch of kernel %s, grid (%lld, %lld, %lld), block (%lld, %lld, "
                                "%lld)>",
                                c->of->name, (long long)c->how.grid[0], (long long)c->how.grid[1],
                                (long long)c->how.grid[2], (long long)c->how.block[0],
                                (long long)c->how.block[1], (long long)c->how.block[2]);
}

static PyTypeObject configured_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.Launch",
    .tp_doc = "A kernel with its grid and block: call it with the arguments.",
    .tp_basicsize = sizeof(configured),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = configured_dealloc,
    .tp_traverse = configured_traverse,
    .tp_repr = configured_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(configured, call),
};

bool kernel_launch_ready(void) { return PyType_Ready(&configured_type) == 0; }
