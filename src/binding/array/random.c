/* simt._core.Generator: a Philox stream (seed, offset) and its distributions; cupy.random and
 * torch.manual_seed stand on it. */
#include "binding/array/functions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct generator {
    PyObject_HEAD random_state state;
} generator;

#define METHOD(name)                                                                           \
    static PyObject *generator_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, \
                                      PyObject *kwnames)
#define STATE (&((generator *)self)->state)

static uint64_t fresh_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)time(NULL) ^ (uintptr_t)&seed;
    return seed;
}

static bool set_seed(random_state *state, PyObject *seed) {
    uint64_t value = fresh_seed();
    if (seed && seed != Py_None) {
        PyObject *index = PyNumber_Index(seed);
        if (!index) return false;
        value = PyLong_AsUnsignedLongLongMask(index);
        Py_DECREF(index);
        if (value == (uint64_t)-1 && PyErr_Occurred()) return false;
    }
    *state = (random_state){.seed = value};
    return true;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"seed", NULL};
    PyObject *seed = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", names, &seed)) return NULL;
    generator *self = (generator *)type->tp_alloc(type, 0);
    if (self && !set_seed(&self->state, seed)) Py_CLEAR(self);
    return (PyObject *)self;
}

METHOD(seed) {
    PARSE("seed", 1, 0, "seed")
    if (!set_seed(STATE, values[0])) return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *generator_get_state(PyObject *self, PyObject *unused) {
    return Py_BuildValue("(KK)", (unsigned long long)STATE->seed,
                         (unsigned long long)STATE->offset);
}

static PyObject *generator_set_state(PyObject *self, PyObject *state) {
    unsigned long long seed, offset;
    if (!PyTuple_Check(state)) {
        PyErr_Format(PyExc_TypeError, "set_state() takes what get_state() gave, not %s",
                     Py_TYPE(state)->tp_name);
        return NULL;
    }
    if (!PyArg_ParseTuple(state, "KK:set_state", &seed, &offset)) return NULL;
    *STATE = (random_state){.seed = seed, .offset = offset};
    return Py_NewRef(Py_None);
}

/* size=None is one number, as a 0-d array. */
static bool size_and_dtype(PyObject *size, PyObject *dtype_object, dtype standard, int64_t *shape,
                           int *ndim, dtype *dt) {
    bool has;
    *ndim = 0;
    *dt = standard;
    if (!binding_start() || !binding_to_dtype_or_none(dtype_object, &has, dt)) return false;
    return !size || size == Py_None || binding_to_shape(size, "size", shape, ndim);
}

static bool to_double(PyObject *o, double standard, double *out) {
    *out = standard;
    if (!o || o == Py_None) return true;
    *out = binding_double(o);
    return !(*out == -1 && PyErr_Occurred());
}

static bool float_dtype(dtype dt) {
    if (dt == DT_F32 || dt == DT_F64) return true;
    PyErr_Format(PyExc_TypeError, "Unsupported dtype %s for random numbers", dtype_table[dt].name);
    return false;
}

/* The arguments of a distribution of real numbers: two of its own, size, dtype. */
typedef struct real_arguments {
    double a, b;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    dtype dt;
} real_arguments;

static bool to_real(PyObject *const *values, real_arguments *out) {
    return to_double(values[0], 0, &out->a) && to_double(values[1], 1, &out->b) &&
           size_and_dtype(values[2], values[3], DT_F64, out->shape, &out->ndim, &out->dt) &&
           float_dtype(out->dt);
}

METHOD(uniform) {
    PARSE("uniform", 4, 0, "low", "high", "size", "dtype")
    real_arguments x;
    array *made = NULL;
    if (!to_real(values, &x)) return NULL;
    return binding_wrap_made(array_random_uniform(STATE, x.dt, x.a, x.b, x.shape, x.ndim, &made),
                             &made);
}

METHOD(normal) {
    PARSE("normal", 4, 0, "loc", "scale", "size", "dtype")
    real_arguments x;
    array *made = NULL;
    if (!to_real(values, &x)) return NULL;
    if (x.b < 0) {
        PyErr_SetString(PyExc_ValueError, "scale < 0");
        return NULL;
    }
    return binding_wrap_made(array_random_normal(STATE, x.dt, x.a, x.b, x.shape, x.ndim, &made),
                             &made);
}

METHOD(integers) {
    PARSE("integers", 4, 1, "low", "high", "size", "dtype")
    int64_t low = 0, high, shape[ARRAY_MAX_NDIM];
    int ndim;
    dtype dt;
    array *made = NULL;
    bool one = !values[1] || values[1] == Py_None;
    if (!binding_to_int64(values[one ? 0 : 1], &high) ||
        (!one && !binding_to_int64(values[0], &low)) ||
        !size_and_dtype(values[2], values[3], DT_I64, shape, &ndim, &dt))
        return NULL;
    if (low >= high) {
        PyErr_SetString(PyExc_ValueError, "low >= high");
        return NULL;
    }
    if (!binding_integer_fits((scalar){.kind = 'I', .i = low}, dt) ||
        !binding_integer_fits((scalar){.kind = 'I', .i = high - 1}, dt)) {
        PyErr_Format(PyExc_ValueError, "%s is out of bounds for %s", high > 0 ? "high" : "low",
                     dtype_table[dt].name);
        return NULL;
    }
    return binding_wrap_made(array_random_integers(STATE, dt, low, high, shape, ndim, &made),
                             &made);
}

static PyObject *generator_permutation(PyObject *self, PyObject *count) {
    int64_t n;
    array *made = NULL;
    if (!binding_start() || !binding_to_int64(count, &n)) return NULL;
    if (n < 0) {
        PyErr_SetString(PyExc_ValueError, "n must be non-negative");
        return NULL;
    }
    return binding_wrap_made(array_random_permutation(STATE, n, &made), &made);
}

static PyMethodDef methods[] = {
    FAST("seed", generator_seed),
    FAST("uniform", generator_uniform),
    FAST("normal", generator_normal),
    FAST("integers", generator_integers),
    {"permutation", generator_permutation, METH_O, "A random order of 0..n-1 (int64)."},
    {"get_state", generator_get_state, METH_NOARGS, "(seed, offset)"},
    {"set_state", generator_set_state, METH_O, NULL},
    {NULL},
};

PyTypeObject binding_generator_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt._core.Generator",
    .tp_doc = "A stream of random numbers: the same on every device.",
    .tp_basicsize = sizeof(generator),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = generator_new,
    .tp_methods = methods,
};

bool binding_add_random(PyObject *module) {
    return PyType_Ready(&binding_generator_type) == 0 &&
           PyModule_AddObjectRef(module, "Generator", (PyObject *)&binding_generator_type) == 0;
}
