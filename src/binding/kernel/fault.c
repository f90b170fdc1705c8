/* What a kernel has to say when it ended (kernel/report.h): a fault becomes an exception, prints go to
 * sys.stdout. */
#include "binding/kernel/launch.h"

/* Raises the class with a text; RuntimeError for none, for those that are no errors (SystemExit), and where
 * the class is not made from a text alone. */
static void raise_class(PyObject *class, PyObject *text) {
    bool error = class && PyType_Check(class) &&
                 PyType_IsSubtype((PyTypeObject *)class, (PyTypeObject *)PyExc_Exception);
    PyObject *made = error ? PyObject_CallOneArg(class, text) : NULL;
    if (!binding_forgive()) return;
    bool good = made && PyExceptionInstance_Check(made);
    PyErr_SetObject(good ? (PyObject *)Py_TYPE(made) : PyExc_RuntimeError, good ? made : text);
    Py_XDECREF(made);
}

/* The exception's class; NULL: the program's, which named none. Borrowed. */
static PyObject *class_of(const kernel *k, const code_fault *fault) {
    const kernel_fault *f = fault->number < k->nfaults ? &k->faults[fault->number] : NULL;
    if (fault->number == CODE_FAULT_DEEP) return PyExc_RecursionError;
    if (!f) return PyExc_RuntimeError;
    switch ((kernel_fault_kind)f->kind) {
    case KERNEL_FAULT_INDEX: return PyExc_IndexError;
    case KERNEL_FAULT_ASSERT: return PyExc_AssertionError;
    case KERNEL_FAULT_DIVISION: return PyExc_ZeroDivisionError;
    case KERNEL_FAULT_NONE: return PyExc_TypeError;
    case KERNEL_FAULT_VALUE: return PyExc_ValueError;
    default: return f->handle;
    }
}

/* New reference; NULL: no memory, an exception is set. */
static PyObject *text_of(const strbuf *text) {
    if (text->failed) return PyErr_NoMemory();
    return PyUnicode_DecodeUTF8(strbuf_text(text), (Py_ssize_t)text->length, "replace");
}

void kernel_raise_fault(const report_launch *launch, const code_fault *fault) {
    const kernel *k = launch->kernel;
    report_host host = kernel_reporter();
    strbuf text;
    strbuf_init(&text);
    report_fault(&host, launch, fault, &text);
    PyObject *whole = text_of(&text);
    strbuf_deinit(&text);
    if (!whole) return;
    raise_class(class_of(k, fault), whole);
    Py_DECREF(whole);
}

bool kernel_flush_prints(const kernel *k, const void *buffer) {
    PyObject *out;
    if (binding_sys("stdout", &out) < 0) return false;
    if (!out || out == Py_None) return Py_XDECREF(out), true;
    strbuf text;
    strbuf_init(&text);
    report_prints(k, buffer, &text);
    PyObject *whole = text_of(&text);
    strbuf_deinit(&text);
    bool ok = whole && PyFile_WriteObject(whole, out, Py_PRINT_RAW) == 0;
    Py_DECREF(out);
    Py_XDECREF(whole);
    return ok;
}
