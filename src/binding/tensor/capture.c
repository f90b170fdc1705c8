/* Captured steps (array/capture.h) for Python: what keras_backend/captured.py is written with.
 *
 * A variable is an attribute of a Python object, its `owner`, that holds a tensor. A replay writes the tensor's
 * memory in place if nobody but the owner has it; else the owner gets a new tensor first: who has read the
 * variable keeps what was there. */
#include <time.h>

#include "array/capture.h"
#include "binding/tensor/tensor.h"

#define SLICE 0.02 /* seconds of steps between looks for signals */

typedef struct pycapture {
    PyObject_HEAD array_capture *c;
    Py_ssize_t ninputs, nvariables, noutputs;
} pycapture;

static PyObject *function_begin(PyObject *module, PyObject *unused) {
    if (!binding_start() || !binding_ok(IN_SECTION(capture_begin()))) return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *function_abort(PyObject *module, PyObject *unused) {
    capture_abort();
    return Py_NewRef(Py_None);
}

static PyObject *function_placeholder(PyObject *module, PyObject *o) {
    tensor *like = tensor_arg(o, "_capture_placeholder", "like", 1);
    array *a;
    if (!like) return NULL;
    return binding_ok(capture_placeholder(like->a->dt, like->a->shape, like->a->ndim, &a))
               ? tensor_wrap_array(a)
               : NULL;
}

/* ---- the end of a capture ---- */

/* The arrays of a tuple of tensors, every `step`th from the first; borrowed. */
static bool arrays_of(PyObject *tuple, Py_ssize_t first, Py_ssize_t step, array **out) {
    for (Py_ssize_t i = first, k = 0; i < PyTuple_GET_SIZE(tuple); i += step, k++) {
        tensor *t = tensor_arg(PyTuple_GET_ITEM(tuple, i), "captured step", "values", (int)i + 1);
        if (!t) return false;
        out[k] = t->a;
    }
    return true;
}

static PyObject *wrap_capture(array_capture *c, const capture_parts *parts) {
    pycapture *self = PyObject_New(pycapture, &tensor_capture_type);
    if (!self) {
        capture_free(c);
        return NULL;
    }
    self->c = c;
    self->ninputs = parts->ninputs;
    self->nvariables = parts->nvariables;
    self->noutputs = parts->noutputs;
    return (PyObject *)self;
}

static PyObject *end_on(PyObject *inputs, PyObject *variables, PyObject *outputs, array **room) {
    capture_parts parts = {.ninputs = (uint32_t)PyTuple_GET_SIZE(inputs),
                           .nvariables = (uint32_t)PyTuple_GET_SIZE(variables) / 2,
                           .noutputs = (uint32_t)PyTuple_GET_SIZE(outputs)};
    /* pairs of arrays lie as capture_variable has them */
    _Static_assert(sizeof(capture_variable) == 2 * sizeof(array *), "a pair of arrays");
    array **pairs = room + parts.ninputs, **results = pairs + (size_t)parts.nvariables * 2;
    if (!arrays_of(inputs, 0, 1, room) || !arrays_of(variables, 0, 1, pairs) ||
        !arrays_of(outputs, 0, 1, results))
        return NULL;
    parts.inputs = room;
    parts.variables = (capture_variable *)(void *)pairs;
    parts.outputs = results;
    array_capture *c = NULL;
    return binding_ok(IN_SECTION(capture_end(&parts, &c))) ? wrap_capture(c, &parts) : NULL;
}

/* _capture_end(inputs, variables, outputs): tuples of tensors; of variables the placeholder and what it
 * becomes, one after the other. */
static PyObject *function_end(PyObject *module, PyObject *args) {
    PyObject *inputs, *variables, *outputs;
    if (!PyArg_ParseTuple(args, "O!O!O!:_capture_end", &PyTuple_Type, &inputs, &PyTuple_Type,
                          &variables, &PyTuple_Type, &outputs))
        return NULL;
    Py_ssize_t n =
        PyTuple_GET_SIZE(inputs) + PyTuple_GET_SIZE(variables) + PyTuple_GET_SIZE(outputs);
    array **room = binding_alloc((size_t)n + 1, sizeof *room);
    PyObject *made = room ? end_on(inputs, variables, outputs, room) : NULL;
    heap_free(room);
    if (!made) capture_abort();
    return made;
}

/* ---- variables ---- */

/* Nobody but the owner of o, of which we have a reference, has its memory. */
static bool is_alone(PyObject *o) {
    const tensor *t = tensor_of(o);
    const array *a = t->a;
    return Py_REFCNT(o) == 2 && t->refs == 1 && ((pytensor *)o)->base.a == a && a->refs == 2 &&
           a->store->refs == 1 && !a->store->exposed && array_is_contiguous(a) &&
           a->store->bytes == (size_t)a->size * dtype_bytes(a->dt);
}

/* The owner's array, to be read or written; a new reference. */
static array *variable_of(PyObject *owner, PyObject *name, bool writes) {
    PyObject *o = PyObject_GetAttr(owner, name);
    array *a = NULL;
    if (o && !tensor_check(o)) {
        PyErr_Format(PyExc_TypeError, "a variable of a captured step is %s, not a tensor",
                     Py_TYPE(o)->tp_name);
    } else if (o && (!writes || is_alone(o))) {
        a = array_ref(tensor_of(o)->a);
    } else if (o && binding_ok(IN_SECTION(array_copy(tensor_of(o)->a, &a)))) {
        PyObject *fresh = tensor_wrap_array(array_ref(a));
        if (!fresh || PyObject_SetAttr(owner, name, fresh) < 0) {
            array_unref(a);
            a = NULL;
        }
        Py_XDECREF(fresh);
    }
    Py_XDECREF(o);
    return a;
}

static void drop_arrays(array **arrays, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        array_unref(arrays[i]);
        arrays[i] = NULL;
    }
}

static bool collect(const pycapture *self, PyObject *owners, PyObject *name, array **arrays) {
    for (Py_ssize_t i = 0; i < self->nvariables; i++) {
        arrays[i] =
            variable_of(PyTuple_GET_ITEM(owners, i), name, capture_writes(self->c, (uint32_t)i));
        if (!arrays[i]) return false;
    }
    return true;
}

static bool check_count(PyObject *tuple, Py_ssize_t n, const char *what) {
    if (PyTuple_GET_SIZE(tuple) == n) return true;
    PyErr_Format(PyExc_ValueError, "a captured step has %zd %s, got %zd", n, what,
                 PyTuple_GET_SIZE(tuple));
    return false;
}

static PyObject *wrap_outputs(array **outputs, Py_ssize_t n) {
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        array *a = outputs[i];
        outputs[i] = NULL;
        PyObject *o = tuple ? tensor_wrap_array(a) : (array_unref(a), NULL);
        if (tuple && !o) Py_CLEAR(tuple);
        if (tuple) PyTuple_SET_ITEM(tuple, i, o);
    }
    return tuple;
}

/* ---- replays ---- */

/* What one call needs: inputs are borrowed, variables and outputs are references. */
typedef struct call_room {
    array **inputs, **variables, **outputs, *memory[];
} call_room;

static call_room *make_room(const pycapture *self) {
    size_t n = (size_t)(self->ninputs + self->nvariables + self->noutputs);
    call_room *r = binding_alloc(1, sizeof *r + (n + 1) * sizeof(array *));
    if (!r) return NULL;
    r->inputs = r->memory;
    r->variables = r->inputs + self->ninputs;
    r->outputs = r->variables + self->nvariables;
    return r;
}

static PyObject *method_replay(PyObject *o, PyObject *args) {
    const pycapture *self = (pycapture *)o;
    PyObject *inputs, *owners, *name, *made = NULL;
    if (!PyArg_ParseTuple(args, "O!O!U:replay", &PyTuple_Type, &inputs, &PyTuple_Type, &owners,
                          &name) ||
        !check_count(inputs, self->ninputs, "inputs") ||
        !check_count(owners, self->nvariables, "variables"))
        return NULL;
    call_room *r = make_room(self);
    if (!r) return NULL;
    if (arrays_of(inputs, 0, 1, r->inputs) && collect(self, owners, name, r->variables) &&
        binding_ok(IN_SECTION(capture_replay(self->c, r->inputs, r->variables, r->outputs))))
        made = wrap_outputs(r->outputs, self->noutputs);
    drop_arrays(r->variables, self->nvariables);
    heap_free(r);
    return made;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Steps of a slice; the outputs are those of the last one that ran. */
static bool run_slice(const pycapture *self, PyObject *owners, PyObject *name, call_room *r,
                      const capture_rows *rows, int64_t *done) {
    bool fine = collect(self, owners, name, r->variables);
    drop_arrays(r->outputs, self->noutputs);
    fine =
        fine &&
        binding_ok(IN_SECTION(capture_replay_rows(self->c, rows, r->variables, r->outputs, done)));
    drop_arrays(r->variables, self->nvariables);
    return fine && PyErr_CheckSignals() == 0;
}

/* All slices, until `rows->most` steps have run or the time is over. */
static bool run_slices(const pycapture *self, PyObject *owners, PyObject *name, call_room *r,
                       capture_rows rows, int64_t *done) {
    double end = now() + rows.seconds;
    bool fine = true;
    for (*done = 0; fine && rows.most > 0;) {
        int64_t ran = 0;
        double left = end - now();
        if (*done && left <= 0) break;
        rows.seconds = left < SLICE ? left : SLICE;
        fine = run_slice(self, owners, name, r, &rows, &ran);
        *done += ran;
        rows.most -= ran;
        rows.index += ran * rows.batch;
    }
    return fine;
}

/* replay_rows(data, index, batch, seconds, owners, name): (outputs of the last step, how many steps ran).
 * index: a buffer of int64, `batch` for each step. */
static PyObject *method_replay_rows(PyObject *o, PyObject *args) {
    const pycapture *self = (pycapture *)o;
    PyObject *data, *owners, *name, *made = NULL;
    Py_buffer index;
    long long batch;
    int64_t done;
    double seconds;
    if (!PyArg_ParseTuple(args, "O!y*LdO!U:replay_rows", &PyTuple_Type, &data, &index, &batch,
                          &seconds, &PyTuple_Type, &owners, &name))
        return NULL;
    call_room *r = NULL;
    if (batch <= 0 || (uintptr_t)index.buf % sizeof(int64_t) || index.len % (batch * 8))
        PyErr_SetString(PyExc_ValueError, "index of a captured step: int64, whole batches");
    else if (check_count(data, self->ninputs, "inputs") &&
             check_count(owners, self->nvariables, "variables"))
        r = make_room(self);
    if (r && arrays_of(data, 0, 1, r->inputs)) {
        capture_rows rows = {r->inputs, index.buf, batch, index.len / (batch * 8), seconds};
        if (run_slices(self, owners, name, r, rows, &done)) {
            PyObject *outputs = wrap_outputs(r->outputs, self->noutputs);
            made = outputs ? Py_BuildValue("NL", outputs, (long long)done) : NULL;
        }
    }
    if (r) {
        drop_arrays(r->variables, self->nvariables);
        drop_arrays(r->outputs, self->noutputs);
    }
    heap_free(r);
    PyBuffer_Release(&index);
    return made;
}

static void capture_dealloc(PyObject *o) {
    capture_free(((pycapture *)o)->c);
    PyObject_Free(o);
}

static PyMethodDef capture_methods[] = {{"replay", method_replay, METH_VARARGS, NULL},
                                        {"replay_rows", method_replay_rows, METH_VARARGS, NULL},
                                        {NULL}};
PyTypeObject tensor_capture_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.torch.Capture",
    .tp_basicsize = sizeof(pycapture),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = capture_dealloc,
    .tp_methods = capture_methods,
};

PyMethodDef tensor_capture_functions[] = {
    {"_capture_begin", function_begin, METH_NOARGS, NULL},
    {"_capture_abort", function_abort, METH_NOARGS, NULL},
    {"_capture_placeholder", function_placeholder, METH_O, NULL},
    {"_capture_end", function_end, METH_VARARGS, NULL},
    {NULL}};
