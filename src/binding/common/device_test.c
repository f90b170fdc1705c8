/* What tests ask of the target's device itself: copies, streams and events. */
#include "binding/common/binding.h"
#include "device/device.h"

int binding_add_device_test(PyObject *module);

enum { BYTES = 64 };

typedef struct trip {
    device *dev;
    device_stream *stream;
    device_event *begin, *end;
    void *first, *second;
    char out[BYTES];
    bool early; /* `out` was there before the wait */
} trip;

static simt_status prepare(trip *t) {
    device *d = t->dev;
    SIMT_TRY(d->stream_new(d, &t->stream));
    SIMT_TRY(d->event_new(d, &t->begin));
    SIMT_TRY(d->event_new(d, &t->end));
    SIMT_TRY(d->alloc(d, BYTES, &t->first));
    return d->alloc(d, BYTES, &t->second);
}

/* There with `in` between fours, within the device, and back. */
static simt_status travel(trip *t, char *in, size_t n) {
    device *d = t->dev;
    SIMT_TRY(d->event_record(d, t->begin, t->stream));
    SIMT_TRY(d->set(d, t->stream, t->first, '4', BYTES));
    SIMT_TRY(d->copy(d, t->stream, DEVICE_IN, (char *)t->first + 1, in, n));
    memset(in, 0, n);
    SIMT_TRY(d->copy(d, t->stream, DEVICE_WITHIN, t->second, t->first, BYTES));
    SIMT_TRY(d->copy(d, t->stream, DEVICE_OUT, t->out, t->second, BYTES));
    SIMT_TRY(d->event_record(d, t->end, t->stream));
    SIMT_TRY(d->event_wait(d, t->end, NULL));
    t->early = t->out[0] != 0;
    return d->wait(d, t->stream);
}

static void end(trip *t) {
    device *d = t->dev;
    if (t->first) d->free(d, t->first, BYTES);
    if (t->second) d->free(d, t->second, BYTES);
    if (t->begin) d->event_free(d, t->begin);
    if (t->end) d->event_free(d, t->end);
    if (t->stream) d->stream_free(d, t->stream);
}

/* device_trip(bytes) -> (what came back, whether it was there before the wait, ms >= 0, is_host) */
static PyObject *device_trip(PyObject *module, PyObject *given) {
    char in[BYTES - 2], *text;
    Py_ssize_t n;
    if (!binding_start() || PyBytes_AsStringAndSize(given, &text, &n) != 0) return NULL;
    if (n > (Py_ssize_t)sizeof in) return PyErr_Format(PyExc_ValueError, "too long");
    memcpy(in, text, (size_t)n);
    trip t = {.dev = runtime_device(array_runtime())};
    simt_status status = prepare(&t);
    if (status == SIMT_OK) status = travel(&t, in, (size_t)n);
    bool later = status == SIMT_OK && t.dev->event_ms(t.dev, t.begin, t.end) >= 0;
    end(&t);
    if (!binding_ok(status)) return NULL;
    return Py_BuildValue("(y#NNN)", t.out, (Py_ssize_t)n + 2, PyBool_FromLong(t.early),
                         PyBool_FromLong(later), PyBool_FromLong(t.dev->is_host));
}

static simt_status launch_with_struct(const char *text, device *d, void *there, char *bytes) {
    struct {
        void *pointer;
        int64_t five;
    } given = {there, 5};
    uint64_t args[1] = {(uint64_t)(uintptr_t)&given};
    ir_func *f;
    runtime_kernel *k;
    code_fault fault = {0};
    SIMT_TRY(ir_parse(text, &f));
    const runtime_compile_options options = {.block = {1, 1, 1}};
    SIMT_TRY(runtime_compile(array_runtime(), f, &options, &k));
    simt_status status = device_copy(d, DEVICE_IN, there, bytes, BYTES);
    if (status == SIMT_OK) status = runtime_launch(k, (uint32_t[3]){1, 1, 1}, args, 0, &fault);
    if (status == SIMT_OK) status = device_copy(d, DEVICE_OUT, bytes, there, BYTES);
    runtime_kernel_unref(k);
    return status;
}

/* device_struct(text, bytes): one thread of a kernel whose parameter is a struct of a pointer to the bytes, in the
 * target's memory, and the integer 5 -> the bytes after it. */
static PyObject *device_struct(PyObject *module, PyObject *args) {
    const char *text, *bytes;
    char both[BYTES] = {0};
    Py_ssize_t n;
    void *there = NULL;
    if (!binding_start() || !PyArg_ParseTuple(args, "sy#", &text, &bytes, &n)) return NULL;
    memcpy(both, bytes, n > BYTES ? BYTES : (size_t)n);
    device *d = runtime_device(array_runtime());
    if (!binding_ok(d->alloc(d, BYTES, &there))) return NULL;
    simt_status status = launch_with_struct(text, d, there, both);
    d->free(d, there, BYTES);
    return binding_ok(status) ? PyBytes_FromStringAndSize(both, n > BYTES ? BYTES : n) : NULL;
}

static PyMethodDef methods[] = {
    {"device_struct", device_struct, METH_VARARGS,
     "A struct with a pointer to a kernel (for tests)."},
    {"device_trip", device_trip, METH_O, "Bytes to the target's device and back (for tests)."},
    {NULL, NULL, 0, NULL},
};

int binding_add_device_test(PyObject *module) { return PyModule_AddFunctions(module, methods); }
