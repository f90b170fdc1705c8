/* _core.ir_run: compiles printed IR for the vm and launches it; the tests' way to the lower layers.
 *
 * ir_run(text, grid, block, args, shared=0, optimize=True, contract=False, isa=None, threads=None,
 *        max_budget=None, repeat=0, module=None) -> None, or with repeat the best of that many launches in ns.
 * args: int or float for scalar parameters, a writable buffer for pointers and structs. A fault of the kernel
 * is raised as IndexError(number, line, block, thread, values). max_budget: run on this thread without
 * the device, giving the code at most that many loop rounds at a time. module: has the variables, as long as
 * it lives; without one they are new at each run.
 * ir_module() -> a module; ir_variable(module, name, bytes=None) -> the bytes of a variable, or None where there
 * is none; bytes are written to it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/heap.h"
#include "binding/common/binding.h"
#include "opt/opt.h"
#include "runtime/module.h"
#include "runtime/target.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ARGS = 64, MOST_DEVICES = 16 };

/* One target per number of threads, kept. */
static target *find_target(int threads) {
    static target *targets[MOST_DEVICES];
    if (threads < 0 || threads >= MOST_DEVICES) {
        PyErr_SetString(PyExc_ValueError, "threads");
        return NULL;
    }
    if (targets[threads] == NULL && target_cpu_new(threads, &targets[threads]) != SIMT_OK)
        binding_raise();
    return targets[threads];
}

static bool read_dims(PyObject *o, uint32_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    if (PyLong_Check(o)) {
        out[0] = (uint32_t)PyLong_AsUnsignedLong(o);
        return PyErr_Occurred() == NULL;
    }
    return PyArg_ParseTuple(o, "I|II", &out[0], &out[1], &out[2]) != 0;
}

typedef struct arguments {
    uint64_t slots[MOST_ARGS];
    Py_buffer buffers[MOST_ARGS];
    int nbuffers;
} arguments;

static void release_arguments(arguments *a) {
    while (a->nbuffers > 0) PyBuffer_Release(&a->buffers[--a->nbuffers]);
}

static bool read_scalar(PyObject *o, ir_type type, uint64_t *slot) {
    if (!ir_type_is_float(type)) {
        *slot = PyLong_AsUnsignedLongLongMask(o);
        if (ir_type_bits(type) < 64) *slot &= (1ull << ir_type_bits(type)) - 1;
        return PyErr_Occurred() == NULL;
    }
    double x = PyFloat_AsDouble(o);
    float f = (float)x;
    if (PyErr_Occurred() != NULL) return false;
    if (type == IR_F64)
        memcpy(slot, &x, sizeof x);
    else if (type == IR_F32)
        memcpy(slot, &f, sizeof f);
    else
        *slot = type == IR_F16 ? float_to_half(f) : float_to_bfloat(f);
    return true;
}

static bool read_arguments(const ir_func *f, PyObject *args, arguments *a) {
    Py_ssize_t n = PySequence_Size(args);
    if (n != (Py_ssize_t)f->body.nparams || n + f->nvariables > MOST_ARGS) {
        if (PyErr_Occurred() == NULL)
            PyErr_Format(PyExc_TypeError, "the kernel has %u parameters", f->body.nparams);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PySequence_GetItem(args, i);
        if (o == NULL) return false;
        bool ok;
        if (ir_type_is_ptr(f->body.params[i].type)) {
            Py_buffer *b = &a->buffers[a->nbuffers];
            ok = PyObject_GetBuffer(o, b, PyBUF_SIMPLE | PyBUF_WRITABLE) == 0;
            if (ok) a->nbuffers++;
            if (ok) a->slots[i] = (uint64_t)(uintptr_t)b->buf;
            if (ok && b->len < f->body.params[i].struct_bytes) {
                PyErr_SetString(PyExc_ValueError, "fewer bytes than the struct has");
                ok = false;
            }
        } else {
            ok = read_scalar(o, f->body.params[i].type, &a->slots[i]);
        }
        Py_DECREF(o);
        if (!ok) return false;
    }
    return true;
}

static PyObject *raise_fault(const code *c, const code_fault *f) {
    PyErr_Format(PyExc_IndexError,
                 "kernel %s: fault %u, line %u, block %llu, thread %u, values %lld %lld %lld %lld",
                 c->name, f->number, f->pos.line, (unsigned long long)f->block, f->thread,
                 (long long)f->values[0], (long long)f->values[1], (long long)f->values[2],
                 (long long)f->values[3]);
    return NULL;
}

/* All blocks of a launch by turns, each in a frame of its own. */
static simt_status run_in_steps(const code_blocks *c, const code_launch *given, int64_t most,
                                code_fault *fault) {
    uint64_t n = code_count_runs(c, given), left = n;
    size_t bytes = (c->frame_bytes + given->shared_bytes + 127) & ~(size_t)63;
    char *frames = NULL;
    bool *begun = heap_zeroed(2 * n + 1, sizeof *begun), *ended;
    if (begun == NULL || (frames = heap_aligned(64, n * bytes)) == NULL) {
        heap_free(begun);
        return status_fail(SIMT_ERR_MEMORY, "frames");
    }
    ended = begun + n;
    code_meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .blocks = n};
    code_launch launch = *given;
    code_memory memory;
    code_memory_begin(&memory);
    launch.meeting = &meeting;
    launch.memory = &memory;
    code_result r = CODE_DONE;
    for (uint64_t b = 0; left > 0 && r <= CODE_YIELD; b = (b + 1) % n) {
        if (ended[b]) continue;
        int64_t budget = most;
        if (!begun[b]) memset(frames + b * bytes, 0, 64);
        r = c->run(c, &launch, frames + b * bytes, b, begun[b], &budget, fault);
        begun[b] = true;
        ended[b] = r == CODE_DONE;
        left -= r == CODE_DONE;
        if (r == CODE_DONE) code_meeting_leave(&meeting);
    }
    code_memory_end(&memory);
    heap_free(frames);
    heap_free(begun);
    if (r == CODE_NO_MEMORY) return status_fail(SIMT_ERR_MEMORY, "stacks");
    return r == CODE_STUCK ? status_fail(SIMT_ERR_NO_PROGRESS, "stuck at %s", fault->at_what)
                           : SIMT_OK;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef struct run_options {
    uint32_t grid[3], block[3];
    size_t shared;
    long long budget, repeat;
} run_options;

/* As a device runs it, but by turns and on this thread. */
static simt_status run_by_turns(const code *c, const code_launch *given, int64_t most,
                                code_fault *fault) {
    code_launch launch = *given;
    uint64_t *args = code_copy_structs(c, given->args);
    if (args == NULL) return status_fail(SIMT_ERR_MEMORY, "structs");
    launch.args = args;
    simt_status status = run_in_steps((const code_blocks *)c, &launch, most, fault);
    heap_free(args);
    return status;
}

static PyObject *launch_code(const code *c, device *d, const uint64_t *slots,
                             const run_options *o) {
    code_launch launch = {.args = slots, .shared_bytes = o->shared};
    memcpy(launch.grid, o->grid, sizeof launch.grid);
    memcpy(launch.block, o->block, sizeof launch.block);
    code_fault fault = {0};
    simt_status status = SIMT_OK;
    uint64_t best = UINT64_MAX;
    Py_BEGIN_ALLOW_THREADS for (long long i = 0; i <= o->repeat && status == SIMT_OK; i++) {
        uint64_t start = now_ns();
        int inner = o->repeat > 1000 ? 100 : 1;
        for (int k = 0; k < inner && status == SIMT_OK; k++)
            status = o->budget > 0 ? run_by_turns(c, &launch, o->budget, &fault)
                                   : d->launch(d, NULL, c, &launch, &fault);
        uint64_t ns = (now_ns() - start) / (uint64_t)inner;
        best = ns < best ? ns : best;
    }
    Py_END_ALLOW_THREADS if (status != SIMT_OK) return binding_raise();
    if (fault.set) return raise_fault(c, &fault);
    if (o->repeat > 0) return PyLong_FromUnsignedLongLong(best);
    Py_RETURN_NONE;
}

static simt_status prepare(const target *t, ir_func *f, bool optimize, bool contract) {
    SIMT_TRY(ir_verify(f));
    opt_options o = {.contract = contract, .verify = true, .wishes = &t->backends[0]->wishes};
    if (optimize) SIMT_TRY(opt_run(f, &o));
    ir_func_renumber(f);
    return SIMT_OK;
}

/* ---- modules ---- */

static const char module_name[] = "simt.ir_module";

static void end_module(PyObject *capsule) {
    runtime_module_free(PyCapsule_GetPointer(capsule, module_name));
}

static PyObject *new_module(PyObject *self, PyObject *none) {
    target *t = find_target(0);
    runtime_module *m = NULL;
    if (t == NULL) return NULL;
    if (runtime_module_new(t->device, &m) != SIMT_OK) return binding_raise();
    PyObject *capsule = PyCapsule_New(m, module_name, end_module);
    if (capsule == NULL) runtime_module_free(m);
    return capsule;
}

static PyObject *module_variable(PyObject *self, PyObject *args) {
    PyObject *capsule;
    const char *name, *bytes = NULL;
    Py_ssize_t n = 0;
    size_t have = 0;
    if (!PyArg_ParseTuple(args, "Os|y#", &capsule, &name, &bytes, &n)) return NULL;
    runtime_module *m = PyCapsule_GetPointer(capsule, module_name);
    char *at = m != NULL ? (char *)(uintptr_t)runtime_module_find(m, name, &have) : NULL;
    if (PyErr_Occurred() != NULL) return NULL;
    if (at == NULL) Py_RETURN_NONE;
    if (bytes != NULL) memcpy(at, bytes, (size_t)n < have ? (size_t)n : have);
    return PyBytes_FromStringAndSize(at, (Py_ssize_t)have);
}

/* Fills the slots behind the arguments; *own: a module for this run only. */
static bool bind_variables(const ir_func *f, const code *c, PyObject *module, arguments *a,
                           PyObject **own) {
    if (c->nvariables == 0) return true;
    if (module == Py_None) module = *own = new_module(NULL, NULL);
    runtime_module *m = module != NULL ? PyCapsule_GetPointer(module, module_name) : NULL;
    if (m == NULL) return false;
    simt_status status = runtime_module_add(m, f);
    if (status == SIMT_OK) status = runtime_module_bind(m, c, a->slots + c->nparams);
    return binding_ok(status);
}

static simt_status compile(const target *t, const ir_func *f, const backend_options *options,
                           code **out, const backend **by) {
    facts_book facts;
    facts_open(&facts);
    simt_status status = target_compile(t, f, &facts, options, out, by);
    facts_forget(&facts);
    return status;
}

static PyObject *ir_run(PyObject *self, PyObject *positional, PyObject *named) {
    static char *names[] = {"text",     "grid",     "block", "args",    "shared",
                            "optimize", "contract", "isa",   "threads", "max_budget",
                            "repeat",   "module",   NULL};
    const char *text, *isa = NULL;
    PyObject *grid, *block, *args, *budget = Py_None, *threads = Py_None, *module = Py_None,
                                   *own = NULL;
    int optimize = 1, contract = 0;
    Py_ssize_t shared = 0;
    run_options o = {0};
    if (!PyArg_ParseTupleAndKeywords(positional, named, "sOOO|nppzOOLO", names, &text, &grid,
                                     &block, &args, &shared, &optimize, &contract, &isa, &threads,
                                     &budget, &o.repeat, &module))
        return NULL;
    if (!read_dims(grid, o.grid) || !read_dims(block, o.block)) return NULL;
    o.shared = (size_t)shared;
    if (budget != Py_None) o.budget = PyLong_AsLongLong(budget);
    target *t = find_target(threads == Py_None ? 0 : (int)PyLong_AsLong(threads));
    if (t == NULL || PyErr_Occurred() != NULL) return NULL;
    ir_func *f = NULL;
    code *c = NULL;
    const backend *by;
    arguments a = {.nbuffers = 0};
    backend_options b = {.isa = isa};
    memcpy(b.block, o.block, sizeof b.block);
    PyObject *result = NULL;
    simt_status status = ir_parse(text, &f);
    if (status == SIMT_OK) status = prepare(t, f, optimize != 0, contract != 0);
    if (status == SIMT_OK) status = compile(t, f, &b, &c, &by);
    if (status != SIMT_OK)
        binding_raise();
    else if (read_arguments(f, args, &a) && bind_variables(f, c, module, &a, &own))
        result = launch_code(c, t->device, a.slots, &o);
    release_arguments(&a);
    Py_XDECREF(own);
    if (c != NULL) c->destroy(c);
    if (f != NULL) ir_func_free(f);
    (void)self;
    return result;
}

/* ir_listing(text, block) -> the vm's decoded code */
static PyObject *ir_listing(PyObject *self, PyObject *args) {
    const char *text;
    PyObject *block, *result = NULL;
    backend_options b = {0};
    ir_func *f = NULL;
    code *c = NULL;
    const backend *by;
    target *t = find_target(1);
    if (t == NULL || !PyArg_ParseTuple(args, "sO", &text, &block) || !read_dims(block, b.block))
        return NULL;
    simt_status status = ir_parse(text, &f);
    if (status == SIMT_OK) status = prepare(t, f, true, false);
    if (status == SIMT_OK) status = compile(t, f, &b, &c, &by);
    if (status == SIMT_OK) {
        strbuf listing;
        strbuf_init(&listing);
        by->print(c, &listing);
        result = PyUnicode_FromString(strbuf_text(&listing));
        strbuf_deinit(&listing);
        c->destroy(c);
    } else {
        binding_raise();
    }
    if (f != NULL) ir_func_free(f);
    (void)self;
    return result;
}

static device *find_device(void) {
    target *t = find_target(0);
    return t != NULL ? t->device : NULL;
}

/* memory_probe(bytes) -> (address, address of a second take after giving back, in use, cached) of a device. */
static PyObject *memory_probe(PyObject *self, PyObject *argument) {
    size_t bytes = PyLong_AsSize_t(argument);
    if (PyErr_Occurred() != NULL) return NULL;
    device *d = find_device();
    if (d == NULL) return NULL;
    void *first, *second;
    if (d->alloc(d, bytes, &first) != SIMT_OK) return binding_raise();
    memset(first, 1, bytes);
    size_t in_use = d->bytes_in_use(d);
    d->free(d, first, bytes);
    size_t cached = d->bytes_cached(d);
    if (d->alloc(d, bytes, &second) != SIMT_OK) return binding_raise();
    d->free(d, second, bytes);
    (void)self;
    return Py_BuildValue("KKKK", (unsigned long long)(uintptr_t)first,
                         (unsigned long long)(uintptr_t)second, (unsigned long long)in_use,
                         (unsigned long long)cached);
}

/* memory_ns(bytes) -> ns of one take and give back */
static PyObject *memory_ns(PyObject *self, PyObject *argument) {
    size_t bytes = PyLong_AsSize_t(argument);
    device *d = PyErr_Occurred() == NULL ? find_device() : NULL;
    if (d == NULL) return NULL;
    uint64_t start = now_ns();
    for (int i = 0; i < 1000; i++) {
        void *p;
        if (d->alloc(d, bytes, &p) != SIMT_OK) return binding_raise();
        d->free(d, p, bytes);
    }
    (void)self;
    return PyFloat_FromDouble((double)(now_ns() - start) / 1000);
}

/* ---- the order of back ends ---- */

static bool has_no_floats(ir_op op, ir_type type) { return !ir_type_is_float(type); }
static simt_status decline(const ir_func *f, facts_book *facts, const backend_options *options,
                           code **out) {
    return status_fail(SIMT_ERR_UNSUPPORTED, "declined");
}
static simt_status decline_blocks(const ir_func *f, facts_book *facts,
                                  const backend_options *options, code **out) {
    if (options->block[0] > 1) return decline(f, facts, options, out);
    return backend_vm.compile(f, facts, options, out);
}
static simt_status without_math(const ir_func *f, facts_book *facts, const backend_options *options,
                                code **out) {
    if (options->block[0] != 2) return decline(f, facts, options, out);
    return backend_vm.compile(f, facts, options, out);
}
static void destroy_text(code *c) { heap_free(c); }
static simt_status make_text(const ir_func *f, facts_book *facts, const backend_options *options,
                             code **out) {
    code_text *c = heap_zeroed(1, sizeof *c);
    if (c == NULL) return status_fail(SIMT_ERR_MEMORY, "out of memory");
    c->base = (code){.kind = CODE_TEXT, .name = "text", .destroy = destroy_text};
    *out = &c->base;
    return SIMT_OK;
}

/* ir_backend(text, block, makes_text) -> the name of the back end that compiled it, of: `none`, which declines
 * all; `plain`, which wants no device functions as operations, and only blocks of two threads; `integers`, which
 * has no floats and only blocks of one thread; `text`, or vm */
static PyObject *ir_backend(PyObject *self, PyObject *args) {
    static const backend none = {.name = "none", .compile = decline},
                         plain = {.name = "plain", .compile = without_math},
                         integers = {.name = "integers",
                                     .compile = decline_blocks,
                                     .supports = has_no_floats},
                         as_text = {
                             .name = "text", .wishes = {.calls_math = true}, .compile = make_text};
    const char *text;
    PyObject *block;
    int makes_text;
    backend_options b = {0};
    if (!PyArg_ParseTuple(args, "sOp", &text, &block, &makes_text) || !read_dims(block, b.block))
        return NULL;
    target *cpu = find_target(1);
    if (cpu == NULL) return NULL;
    target t = {.name = "test", .device = cpu->device};
    t.backends[0] = &none;
    t.backends[1] = &plain;
    t.backends[2] = &integers;
    t.backends[3] = makes_text ? &as_text : &backend_vm;
    ir_func *f = NULL;
    code *c = NULL;
    const backend *by = NULL;
    simt_status status = ir_parse(text, &f);
    if (status == SIMT_OK) status = prepare(&t, f, true, false);
    if (status == SIMT_OK) status = compile(&t, f, &b, &c, &by);
    if (status == SIMT_OK) c->destroy(c);
    if (f != NULL) ir_func_free(f);
    return binding_ok(status) ? PyUnicode_FromString(by->name) : NULL;
}

static PyMethodDef methods[] = {
    {"ir_run", (PyCFunction)(void (*)(void))ir_run, METH_VARARGS | METH_KEYWORDS,
     "Compiles and launches printed IR (for tests)."},
    {"ir_module", new_module, METH_NOARGS, "A module of variables (for tests)."},
    {"ir_variable", module_variable, METH_VARARGS, "Bytes of a variable (for tests)."},
    {"ir_backend", ir_backend, METH_VARARGS, "The back end that compiles (for tests)."},
    {"ir_listing", ir_listing, METH_VARARGS, "The vm's code of printed IR (for tests)."},
    {"memory_probe", memory_probe, METH_O,
     "Takes, gives back and takes device memory (for tests)."},
    {"memory_ns", memory_ns, METH_O, "Time of taking and giving back device memory (for tests)."},
    {NULL, NULL, 0, NULL},
};

int binding_add_vm(PyObject *module) { return PyModule_AddFunctions(module, methods); }
