/* What a kernel has to say when it ended: faults become Python exceptions that name kernel, place, block
 * and thread; prints go to sys.stdout in the order of blocks and threads. */
#include "base/heap.h"
#include "binding/kernel/launch.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* ---- faults ---- */

/* "(1, 0, 0)" of a flat number in a box. */
static void place_text(uint64_t flat, const int64_t box[3], char *text, size_t size) {
    uint64_t x = (uint64_t)box[0], y = (uint64_t)box[1];
    snprintf(text, size, "(%llu, %llu, %llu)", (unsigned long long)(flat % x),
             (unsigned long long)(flat / x % y), (unsigned long long)(flat / x / y));
}

/* "at program.py:8:5, block (0, 0, 0), thread (12, 0, 0)", the source line, a caret, the callers. New
 * reference. */
static PyObject *where_text(const code *c, const py_fault *f, const code_fault *fault,
                            const int64_t grid[3], const uint32_t block[3]) {
    char b[80], t[80];
    const int64_t box[3] = {block[0], block[1], block[2]};
    place_text(fault->block, grid, b, sizeof b);
    place_text(fault->thread, box, t, sizeof t);
    char more[200];
    snprintf(more, sizeof more, ", block %s, thread %s", b, t);
    status_set_source(c->name, c->file, c->calls, f && f->pos.line ? f->pos : fault->pos);
    return kernel_place(status_get(), more);
}

/* The launched array that a fault names, or NULL: the first one inside that argument. */
static const launch_array *array_of_fault(const py_fault *f, const kernel_args *args) {
    for (uint32_t i = 0; f->parameter >= 0 && i < args->narrays; i++)
        if (args->arrays[i].argument == f->parameter) return &args->arrays[i];
    return NULL;
}

/* ": array 'a' of shape (10,)"; the shape only when it is known. */
static PyObject *array_text(const py_fault *f, const kernel_args *args) {
    int64_t shape[PY_MAX_NDIM];
    int ndim = f->ndim;
    bool known = true;
    const launch_array *a = array_of_fault(f, args);
    if (a) {
        ndim = args->signature[a->signature + 2];
        for (int d = 0; d < ndim; d++) shape[d] = (int64_t)args->slots[a->slot + 1 + (uint32_t)d];
    } else {
        known = f->ndim > 0;
        for (int d = 0; known && d < ndim; d++) known = (shape[d] = f->shape[d]) >= 0;
    }
    const char *name = f->name ? f->name : "?";
    if (!known) return PyUnicode_FromFormat(": array '%s'", name);
    PyObject *tuple = binding_from_shape(shape, ndim);
    PyObject *text = tuple ? PyUnicode_FromFormat(": array '%s' of shape %R", name, tuple) : NULL;
    Py_XDECREF(tuple);
    return text;
}

/* What helps at an index of dynamic shared memory when the launch gave none; else "". */
static const char *fault_hint(const py_kernel *k, const py_fault *f, const code_fault *fault) {
    if (!f || f->kind != PY_FAULT_INDEX || f->parameter >= 0 || fault->values[2] != 0 ||
        !(k->flags & PY_USES_DYNAMIC_SHARED))
        return "";
    return binding_in_chinese()
               ? "\n提示: 形状为 0 的共享内存, 大小由启动决定: kernel[grid, block, stream, bytes]"
               : "\nhint: shared memory of shape 0 has the size that the launch gives: "
                 "kernel[grid, block, stream, bytes]";
}

/* Raises the class with a text; RuntimeError for none, for those that are no errors (SystemExit), and where
 * the class is not made from a text alone. */
static void raise_class(PyObject *class, PyObject *text) {
    bool error = class && PyObject_IsSubclass(class, PyExc_Exception) == 1;
    PyObject *made = error ? PyObject_CallOneArg(class, text) : NULL;
    PyErr_Clear();
    bool good = made && PyExceptionInstance_Check(made);
    PyErr_SetObject(good ? (PyObject *)Py_TYPE(made) : PyExc_RuntimeError, good ? made : text);
    Py_XDECREF(made);
}

static PyObject *fault_text(const py_fault *f, const kernel_names *names, const code_fault *fault,
                            const kernel_args *args) {
    switch (f ? f->kind : PY_FAULT_RAISE) {
    case PY_FAULT_INDEX: {
        PyObject *array = array_text(f, args);
        PyObject *text =
            array ? PyUnicode_FromFormat(
                        "kernel %s: index %lld is out of bounds for axis %lld with size %lld%U",
                        names->kernel, (long long)fault->values[0], (long long)fault->values[1],
                        (long long)fault->values[2], array)
                  : NULL;
        Py_XDECREF(array);
        return text;
    }
    default: {
        const char *text = f && f->text && *f->text ? f->text : NULL;
        return text ? PyUnicode_FromFormat("%s\nin kernel %s", text, names->kernel)
                    : PyUnicode_FromFormat("in kernel %s", names->kernel);
    }
    }
}

void kernel_raise_fault(const py_kernel *k, const code *c, const kernel_names *names,
                        const code_fault *fault, const int64_t grid[3], const uint32_t block[3],
                        const kernel_args *args) {
    const py_fault *f = fault->number < k->nfaults ? &k->faults[fault->number] : NULL;
    PyObject *what = fault_text(f, names, fault, args);
    PyObject *where = what ? where_text(c, f, fault, grid, block) : NULL;
    const char *hint = fault_hint(k, f, fault);
    PyObject *whole = where ? PyUnicode_FromFormat("%U\n%U%s", what, where, hint) : NULL;
    if (whole) {
        PyObject *type = !f                             ? PyExc_RuntimeError
                         : f->kind == PY_FAULT_INDEX    ? PyExc_IndexError
                         : f->kind == PY_FAULT_ASSERT   ? PyExc_AssertionError
                         : f->kind == PY_FAULT_DIVISION ? PyExc_ZeroDivisionError
                         : f->kind == PY_FAULT_NONE     ? PyExc_TypeError
                         : f->kind == PY_FAULT_VALUE    ? PyExc_ValueError
                                                        : f->handle;
        raise_class(type, whole);
    }
    Py_XDECREF(what);
    Py_XDECREF(where);
    Py_XDECREF(whole);
}

/* ---- prints ---- */

typedef struct record {
    uint64_t block, order;
    uint32_t thread;
    const py_print *format;
    const uint64_t *values;
} record;

static int by_thread(const void *a, const void *b) {
    const record *x = a, *y = b;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The records of the buffer; *dropped: some did not fit. Returns NULL without memory. */
static record *read_records(const py_kernel *k, const void *buffer, size_t *count, bool *dropped) {
    const uint64_t *head = buffer;
    uint64_t used = head[0], capacity = head[1], at = 0;
    const char *data = (const char *)(head + 2);
    *dropped = used > capacity;
    if (*dropped) used = capacity;
    record *all = heap_alloc((used / 16 + 1) * sizeof *all);
    *count = 0;
    while (all && at + 16 <= used) {
        uint32_t number[2];
        memcpy(number, data + at, sizeof number);
        if (number[0] >= k->nprints) break;
        const py_print *format = &k->prints[number[0]];
        uint64_t bytes = 16 + 8 * (uint64_t)format->nvalues;
        if (at + bytes > used) break;
        record *r = &all[*count];
        *r = (record){.order = *count, .thread = number[1], .format = format};
        memcpy(&r->block, data + at + 8, sizeof r->block);
        r->values = (const uint64_t *)(const void *)(data + at + 16);
        at += bytes;
        ++*count;
    }
    return all;
}

static int float_text(double d, bool sign, char *text, size_t size) {
    if (d != d) return snprintf(text, size, sign ? "+nan" : "nan"); /* whatever its sign bit */
    return snprintf(text, size, sign ? "%+f" : "%f", d);
}

/* As Numba prints on a GPU: integers in decimal, floats by %f, bools as True and False. */
static int value_text(py_scalar type, uint64_t bits, char *text, size_t size) {
    double d;
    float f;
    memcpy(&d, &bits, sizeof d);
    memcpy(&f, &bits, sizeof f);
    switch (type) {
    case PY_S_BOOL: return snprintf(text, size, "%s", bits & 1 ? "True" : "False");
    case PY_S_I8: return snprintf(text, size, "%d", (int8_t)bits);
    case PY_S_I16: return snprintf(text, size, "%d", (int16_t)bits);
    case PY_S_I32: return snprintf(text, size, "%d", (int32_t)bits);
    case PY_S_I64: return snprintf(text, size, "%lld", (long long)bits);
    case PY_S_F16: return float_text(half_to_float((uint16_t)bits), false, text, size);
    case PY_S_F32: return float_text(f, false, text, size);
    case PY_S_F64: return float_text(d, false, text, size);
    case PY_S_C64: return float_text(f, true, text, size);
    case PY_S_C128: return float_text(d, true, text, size);
    default: return snprintf(text, size, "%llu", (unsigned long long)bits);
    }
}

static void add_record(strbuf *to, const record *r) {
    for (uint32_t i = 0; i <= r->format->nvalues; i++) {
        char text[400];
        strbuf_puts(to, r->format->texts[i]);
        if (i == r->format->nvalues) break;
        value_text((py_scalar)r->format->types[i], r->values[i], text, sizeof text);
        strbuf_puts(to, text);
    }
}

bool kernel_flush_prints(const py_kernel *k, const void *buffer) {
    size_t count;
    bool dropped;
    PyObject *out = PySys_GetObject("stdout"); /* borrowed */
    if (!out || out == Py_None) return true;
    record *all = read_records(k, buffer, &count, &dropped);
    strbuf text;
    strbuf_init(&text);
    if (all) {
        qsort(all, count, sizeof *all, by_thread);
        for (size_t i = 0; i < count; i++) add_record(&text, &all[i]);
        if (dropped) strbuf_puts(&text, "... (more was printed than the buffer holds)\n");
    }
    bool ok = all && !text.failed;
    if (!ok) PyErr_NoMemory();
    PyObject *whole = ok ? PyUnicode_FromString(strbuf_text(&text)) : NULL;
    Py_INCREF(out);
    ok = whole && PyFile_WriteObject(whole, out, Py_PRINT_RAW) == 0;
    Py_DECREF(out);
    Py_XDECREF(whole);
    strbuf_deinit(&text);
    heap_free(all);
    return ok;
}
