/* Functions of simt._core on arrays: one per elementwise row of array_ops.def (ew_NAME), reductions
 * (red_NAME), joining, products, and looking inside (evaluate, stats). Those that make arrays: create.c. */
#include "binding/array/functions.h"

#include "base/heap.h"

#include <string.h>

/* ---- the elementwise rows ---- */

static PyObject *ew_keywords(array_op op, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames) {
    static const char *const names[] = {"a", "b", "c", "out", "dtype", "casting", "where"};
    int arity = array_op_table[op].arity;
    PyObject *values[7], *positional[7];
    if (nargs < arity || nargs > arity + 1) {
        PyErr_Format(PyExc_TypeError,
                     "%s() takes from %d to %d positional arguments but %zd were given",
                     array_op_table[op].name, arity, arity + 1, nargs);
        return NULL;
    }
    for (int i = 0; i < 3; i++) positional[i] = i < arity ? args[i] : Py_None; /* keywords follow */
    Py_ssize_t nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    positional[3] = nargs > arity ? args[arity] : NULL;
    for (int i = 3; i < 7; i++) values[i] = i == 3 ? positional[3] : NULL;
    for (Py_ssize_t k = 0; k < nkeywords; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = 3;
        while (i < 7 && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) i++;
        if (i == 7) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         array_op_table[op].name, name);
            return NULL;
        }
        values[i] = args[nargs + k];
    }
    if (values[6] && values[6] != Py_True) {
        PyErr_SetString(PyExc_NotImplementedError,
                        "where= of elementwise functions is not in simt yet");
        return NULL;
    }
    char casting;
    if (!binding_to_casting(values[5], &casting)) return NULL;
    return binding_elementwise_cast(op, positional, arity, values[3], values[4], casting);
}

static inline PyObject *ew_call(array_op op, int arity, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    if (nargs == arity && !kwnames) return binding_elementwise(op, args, arity, NULL, NULL);
    return ew_keywords(op, args, nargs, kwnames);
}

/* Rows without operands (creation) are never called, but have a function: the table stays simple. */
#define EW(id, name, arity, ...) \
    FUNCTION(ew_##id) { return ew_call(OP_##id, arity, args, nargs, kwnames); }
#include "graph/array_ops.def"

static PyMethodDef ew_functions[] = {
#define EW(id, name, ...) FAST(name, ew_##id),
#include "graph/array_ops.def"
    {NULL},
};

/* Functions are called `add`, the module's attribute is `ew_add`. */
static bool add_ew_functions(PyObject *module) {
    PyObject *owner = PyUnicode_FromString("cupy");
    bool ok = owner != NULL;
    for (PyMethodDef *def = ew_functions; ok && def->ml_name; def++) {
        const array_op_info *row = &array_op_table[array_op_find(def->ml_name)];
        if (row->arity < 1 || row->dtypes == 'X' || strstr(row->expansion, "s0")) continue;
        char name[64];
        snprintf(name, sizeof name, "ew_%s", def->ml_name);
        PyObject *function = PyCFunction_NewEx(def, NULL, owner);
        ok = function && PyModule_AddObjectRef(module, name, function) == 0;
        Py_XDECREF(function);
    }
    Py_XDECREF(owner);
    return ok;
}

/* table_names() -> {name of simt.cupy: attribute of this module}, as the rows say. */
static PyObject *table_names(PyObject *module, PyObject *unused) {
    PyObject *names = PyDict_New();
    for (int op = 0; names && op < ARRAY_OP_COUNT; op++) {
        const array_op_info *row = &array_op_table[op];
        const char *prefix = row->kind == OP_KIND_RED ? "red" : "ew";
        for (const char *at = row->cupy; *at && names; at += *at == ' ') {
            Py_ssize_t length = (Py_ssize_t)strcspn(at, " ");
            PyObject *name = PyUnicode_FromStringAndSize(at, length);
            PyObject *target = PyUnicode_FromFormat("%s_%s", prefix, row->name);
            if (!name || !target || PyDict_SetItem(names, name, target) < 0) Py_CLEAR(names);
            Py_XDECREF(name);
            Py_XDECREF(target);
            at += length;
        }
    }
    return names;
}

/* ---- reductions ---- */

static PyObject *red_sum_like(reduction kind, const char *function, PyObject *const *args,
                              Py_ssize_t nargs, PyObject *kwnames) {
    PARSE(function, 5, 1, "a", "axis", "dtype", "out", "keepdims")
    array *a = binding_get_ndarray(values[0]);
    return a ? binding_reduce(kind, a, values[1], values[2], values[3], NULL, values[4]) : NULL;
}

static PyObject *red_max_like(reduction kind, const char *function, PyObject *const *args,
                              Py_ssize_t nargs, PyObject *kwnames) {
    PARSE(function, 4, 1, "a", "axis", "out", "keepdims")
    array *a = binding_get_ndarray(values[0]);
    return a ? binding_reduce(kind, a, values[1], NULL, values[2], NULL, values[3]) : NULL;
}

static PyObject *red_var_like(reduction kind, const char *function, PyObject *const *args,
                              Py_ssize_t nargs, PyObject *kwnames) {
    PARSE(function, 6, 1, "a", "axis", "dtype", "out", "ddof", "keepdims")
    array *a = binding_get_ndarray(values[0]);
    return a ? binding_reduce(kind, a, values[1], values[2], values[3], values[4], values[5])
             : NULL;
}

#define RED_FUNCTION(id, name, like) \
    FUNCTION(red_##id) { return red_##like##_like(REDUCE_##id, name, args, nargs, kwnames); }
#define red_N_like                 red_sum_like
#define red_S_like                 red_max_like
#define red_B_like                 red_max_like
#define red_P_like                 red_max_like
#define RED(id, name, dtypes, ...) RED_FUNCTION(id, name, dtypes)
#include "graph/array_ops.def"
RED_FUNCTION(MEAN, "mean", sum)
RED_FUNCTION(VAR, "var", var)
RED_FUNCTION(STD, "std", var)

/* ---- joining, shapes, products ---- */

static const int64_t flat_length = -1; /* reshape to one axis */

/* ndarrays of a sequence; *n is set also on failure (how many to drop). */
static bool to_arrays(PyObject *o, array ***out, Py_ssize_t *n) {
    *n = 0;
    *out = NULL;
    PyObject *list = binding_tuple(o);
    if (!list) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(list);
    *out = binding_alloc((size_t)count + 1, sizeof **out);
    bool ok = *out != NULL;
    for (Py_ssize_t i = 0; ok && i < count; i++) {
        array *a = binding_get_ndarray(PyTuple_GET_ITEM(list, i));
        ok = a != NULL;
        if (ok) (*out)[(*n)++] = array_ref(a);
    }
    Py_DECREF(list);
    return ok;
}

/* The parts as `dt`, where the casting allows it. */
static bool cast_parts(array **arrays, Py_ssize_t n, dtype dt, char casting) {
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!graph_can_cast(arrays[i]->dt, dt, casting)) {
            PyErr_Format(PyExc_TypeError,
                         "Cannot cast array data from dtype('%s') to dtype('%s') according to the "
                         "rule '%s'",
                         dtype_table[arrays[i]->dt].name, dtype_table[dt].name,
                         graph_casting_name(casting));
            return false;
        }
        array *cast;
        if (arrays[i]->dt == dt) continue;
        if (!binding_ok(array_astype_order(arrays[i], dt, 'K', &cast))) return false;
        array_unref(arrays[i]);
        arrays[i] = cast;
    }
    return true;
}

/* values: arrays, axis, out, dtype, casting */
static PyObject *join(bool stack, PyObject **values) {
    PyObject *sequence = values[0], *axis_object = values[1], *out = values[2];
    bool has;
    char casting;
    dtype dt = DT_F64;
    if (!binding_to_dtype_or_none(values[3], &has, &dt) || !binding_to_casting(values[4], &casting))
        return NULL;
    if (has && out && out != Py_None) {
        PyErr_SetString(PyExc_TypeError,
                        "concatenate() only takes `out` or `dtype` as an argument, "
                        "but both were provided.");
        return NULL;
    }
    array **arrays, *made = NULL;
    Py_ssize_t n;
    int64_t axis = 0;
    bool flat = !stack && axis_object == Py_None;
    bool ok = to_arrays(sequence, &arrays, &n) &&
              (!axis_object || flat || binding_to_int64(axis_object, &axis));
    if (ok && n == 0) {
        PyErr_SetString(PyExc_ValueError, stack ? "need at least one array to stack"
                                                : "need at least one array to concatenate");
        ok = false;
    }
    for (Py_ssize_t i = 0; ok && flat && i < n; i++) {
        array *line;
        ok = binding_ok(array_reshape(arrays[i], &flat_length, 1, &line));
        if (ok) {
            array_unref(arrays[i]);
            arrays[i] = line;
        }
    }
    int ndim = ok ? arrays[0]->ndim + stack : 0;
    if (ok && ndim == 0) {
        PyErr_SetString(PyExc_ValueError, "zero-dimensional arrays cannot be concatenated");
        ok = false;
    } else if (ok && (axis < -ndim || axis >= ndim)) {
        binding_raise_axis(axis, ndim, FACE_NUMPY);
        ok = false;
    }
    if (axis < 0) axis += ndim;
    ok = ok && (!has || cast_parts(arrays, n, dt, casting));
    ok = ok && binding_ok(stack ? array_stack(arrays, (int)n, (int)axis, FACE_NUMPY, &made)
                                : array_concatenate(arrays, (int)n, (int)axis, FACE_NUMPY, &made));
    for (Py_ssize_t i = 0; i < n; i++) array_unref(arrays[i]);
    heap_free(arrays);
    return ok ? binding_cast_into(made, out, casting) : NULL;
}

FUNCTION(concatenate) {
    PARSE("concatenate", 3, 1, "arrays", "axis", "out", "dtype", "casting")
    return join(false, values);
}
FUNCTION(stack) {
    PARSE("stack", 3, 1, "arrays", "axis", "out", "dtype", "casting")
    return join(true, values);
}

bool binding_repeat_index(PyObject *o, PyObject *size_object, graph_face face, array **out) {
    array *given, *counts = NULL;
    int64_t size;
    if (!binding_to_int64(size_object, &size) ||
        !binding_to_array(o, false, DT_I64, face, DT_F32, &given))
        return false;
    bool fine = size >= 0 && given->ndim <= 1 && (!dtype_is_float(given->dt) || !given->size);
    if (!fine) PyErr_SetString(PyExc_TypeError, "repeats must be an integer or a row of integers");
    int64_t *numbers = fine ? heap_alloc((size_t)given->size * sizeof *numbers + 1) : NULL;
    if (fine && !numbers) PyErr_NoMemory();
    bool ok = numbers && binding_ok(array_astype(given, DT_I64, &counts)) &&
              binding_ok(array_copy_out(counts, numbers)) &&
              binding_ok(array_repeat_index(numbers, given->size, size, out));
    heap_free(numbers);
    array_unref(given);
    array_unref(counts);
    return ok;
}

/* repeat_index(counts, size) */
static PyObject *repeat_index(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    array *made;
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "repeat_index(counts, size)");
    return binding_repeat_index(args[0], args[1], FACE_NUMPY, &made) ? binding_wrap(made) : NULL;
}

FUNCTION(broadcast_to) {
    PARSE("broadcast_to", 2, 2, "array", "shape")
    array *a = binding_get_ndarray(values[0]), *made = NULL;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    if (!a || !binding_to_shape(values[1], "shape", shape, &ndim)) return NULL;
    return binding_ok(array_broadcast_to(a, shape, ndim, &made))
               ? binding_wrap_view(values[0], made)
               : NULL;
}

FUNCTION(expand_dims) {
    PARSE("expand_dims", 2, 2, "a", "axis")
    array *a = binding_get_ndarray(values[0]), *made = NULL;
    int axis;
    if (!a || !binding_to_axis(values[1], a->ndim + 1, FACE_NUMPY, &axis)) return NULL;
    return binding_ok(array_expand_dims(a, axis, &made)) ? binding_wrap_view(values[0], made)
                                                         : NULL;
}

FUNCTION(take_along_axis) {
    PARSE("take_along_axis", 3, 2, "a", "indices", "axis")
    array *a = binding_get_ndarray(values[0]), *index = a ? binding_get_ndarray(values[1]) : NULL,
          *made = NULL;
    int axis = 0;
    if (!a || !index) return NULL;
    if (!values[2] || values[2] == Py_None) {
        array *line;
        if (!binding_ok(array_reshape(a, &flat_length, 1, &line))) return NULL;
        simt_status status = array_take_along_axis(line, index, 0, 0, &made);
        array_unref(line);
        return binding_wrap_made(status, &made);
    }
    if (!binding_to_axis(values[2], a->ndim, FACE_NUMPY, &axis)) return NULL;
    return binding_wrap_made(array_take_along_axis(a, index, axis, 0, &made), &made);
}

FUNCTION(argsort) {
    PARSE("argsort", 2, 2, "a", "axis")
    array *a = binding_get_ndarray(values[0]), *made = NULL;
    int axis = 0;
    if (!a || !binding_to_axis(values[1], a->ndim, FACE_NUMPY, &axis)) return NULL;
    return binding_wrap_made(array_argsort(a, axis, false, -1, &made), &made);
}

FUNCTION(sort) {
    PARSE("sort", 2, 2, "a", "axis")
    array *a = binding_get_ndarray(values[0]), *made = NULL;
    int axis = 0;
    if (!a || !binding_to_axis(values[1], a->ndim, FACE_NUMPY, &axis)) return NULL;
    return binding_wrap_made(array_sort(a, axis, &made), &made);
}

FUNCTION(matmul) {
    PARSE("matmul", 3, 2, "x1", "x2", "out")
    array *a = binding_get_ndarray(values[0]), *b = a ? binding_get_ndarray(values[1]) : NULL,
          *made = NULL;
    if (!b || !binding_ok(array_matmul(a, b, FACE_NUMPY, &made))) return NULL;
    return binding_into_out(made, values[2]);
}

FUNCTION(dot) {
    PARSE("dot", 3, 2, "a", "b", "out")
    array *a = binding_get_ndarray(values[0]), *b = a ? binding_get_ndarray(values[1]) : NULL,
          *made = NULL;
    if (!b || !binding_ok(array_dot(a, b, &made))) return NULL;
    return binding_dot_into(made, values[2]);
}

/* ---- looking inside ---- */

static array *any_array(PyObject *o) {
    if (binding_is_array(o)) return ((pyarray *)o)->a;
    PyErr_Format(PyExc_TypeError, "expected an array of simt, got %s", Py_TYPE(o)->tp_name);
    return NULL;
}

static PyObject *evaluate_body(PyObject *module, PyObject *o) {
    if (o == Py_None) {
        if (!binding_start() || !binding_ok(array_evaluate_all())) return NULL;
        return Py_NewRef(Py_None);
    }
    array *a = any_array(o);
    if (!a || !binding_ok(array_evaluate(a))) return NULL;
    return Py_NewRef(o);
}
SECTION_FUNCTION(evaluate, evaluate_body)

static PyObject *stats(PyObject *module, PyObject *unused) {
    array_stats s = {0};
    if (!binding_start()) return NULL;
    array_get_stats(&s);
    return Py_BuildValue(
        "{sKsKsKsKsKsnsn}", "evaluations", (unsigned long long)s.evaluations, "plans",
        (unsigned long long)s.plans, "plan_hits", (unsigned long long)s.plan_hits, "launches",
        (unsigned long long)s.launches, "nodes", (unsigned long long)s.nodes, "bytes_in_use",
        (Py_ssize_t)s.bytes_in_use, "bytes_cached", (Py_ssize_t)s.bytes_cached);
}

static PyObject *eager(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!binding_start()) return NULL;
    bool before = array_eager();
    if (nargs > 0) {
        int truth = binding_truth(args[0]);
        if (truth < 0) return NULL;
        array_set_eager(truth);
    }
    return PyBool_FromLong(before);
}

static PyObject *device_name(PyObject *module, PyObject *unused) {
    if (!binding_start()) return NULL;
    return PyUnicode_FromString(runtime_device(array_runtime())->name);
}

static PyObject *trim(PyObject *module, PyObject *unused) {
    if (!binding_start()) return NULL;
    device *d = runtime_device(array_runtime());
    if (d->trim) d->trim(d);
    return Py_NewRef(Py_None);
}

/* (address, version, exposed, contiguous, offset): what tests and faces ask about storage. */
static PyObject *describe(PyObject *module, PyObject *o) {
    array *a = any_array(o);
    if (!a) return NULL;
    return Py_BuildValue("{sKsIsOsOsKsLsi}", "storage", (unsigned long long)(uintptr_t)a->store,
                         "version", (unsigned)a->store->version, "exposed",
                         a->store->exposed ? Py_True : Py_False, "contiguous",
                         array_is_contiguous(a) ? Py_True : Py_False, "address",
                         (unsigned long long)(uintptr_t)array_data(a), "offset",
                         (long long)a->offset, "dtype", (int)a->dt);
}

/* The axes of an array, outermost in memory first. */
static PyObject *memory_order(PyObject *module, PyObject *o) {
    array *a = any_array(o);
    int axes[ARRAY_MAX_NDIM];
    if (!a) return NULL;
    if (!array_memory_order(&a, 1, a->ndim, axes))
        for (int d = 0; d < a->ndim; d++) axes[d] = d;
    PyObject *list = PyList_New(a->ndim);
    for (int d = 0; list && d < a->ndim; d++) PyList_SET_ITEM(list, d, PyLong_FromLong(axes[d]));
    return list;
}

static PyMethodDef functions[] = {
#define RED(id, name, ...) FAST("red_" name, red_##id),
#include "graph/array_ops.def"
    FAST("red_mean", red_MEAN),
    FAST("red_var", red_VAR),
    FAST("red_std", red_STD),
    {"table_names", table_names, METH_NOARGS, "The rows' names in simt.cupy."},
    FAST("concatenate", concatenate),
    FAST("argsort", argsort),
    FAST("sort", sort),
    FAST("stack", stack),
    {"repeat_index", (PyCFunction)(void (*)(void))repeat_index, METH_FASTCALL, NULL},
    FAST("broadcast_to", broadcast_to),
    FAST("expand_dims", expand_dims),
    FAST("take_along_axis", take_along_axis),
    FAST("matmul", matmul),
    FAST("dot", dot),
    {"evaluate", evaluate, METH_O, "Computes an array (None: all that waits); returns it."},
    {"stats", stats, METH_NOARGS, "Counters of evaluation and memory."},
    {"eager", (PyCFunction)(void (*)(void))eager, METH_FASTCALL,
     "Whether each operation runs at once; sets it."},
    {"device_name", device_name, METH_NOARGS, "Name of device 0."},
    {"trim", trim, METH_NOARGS, "Gives cached memory back to the system."},
    {"memory_order", memory_order, METH_O, "Axes by their distance in memory."},
    {"describe", describe, METH_O, "Facts about an array's storage."},
    {NULL},
};

bool binding_add_functions(PyObject *module) {
    return PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddFunctions(module, binding_create_functions) == 0 && add_ew_functions(module);
}
