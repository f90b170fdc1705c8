/* For tests: allocations that fail, our own (base/heap.h) and Python's, and how many there are. */
#include "base/heap.h"
#include "binding/common/binding.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <string.h>

/* ---- Python's allocators: those that our C code asks for, in the thread that wants failures ---- */

static PyMemAllocatorEx plain[3]; /* what ours ask, by domain */
static atomic_ullong asked, first_denied = 1, last_denied = 0;
static _Thread_local bool counted;

/* NumPy's getters of __array_interface__ (2.x) end the process where a part of the dict cannot be made:
 * where they begin, of arrays and of scalars. */
static uintptr_t numpys[2];

static void find_numpys(void) {
    static const char *const classes[] = {"ndarray", "generic"};
    PyObject *numpy = PyImport_ImportModule("numpy");
    for (int i = 0; numpy && i < 2; i++) {
        PyObject *type = PyObject_GetAttrString(numpy, classes[i]);
        const PyGetSetDef *row = type ? ((PyTypeObject *)type)->tp_getset : NULL;
        for (; row && row->name; row++)
            if (strcmp(row->name, "__array_interface__") == 0) numpys[i] = (uintptr_t)row->get;
        Py_XDECREF(type);
    }
    Py_XDECREF(numpy);
    binding_do_without();
}

static bool is_numpys(uintptr_t address) {
    enum { LENGTH = 1024 }; /* of such a function, about */
    return address - numpys[0] < LENGTH || address - numpys[1] < LENGTH;
}

/* Whether our C code asks Python for it: the interpreter's own allocations, for frames and
   arguments, are its own matter, and some of its paths lose a reference where they fail (3.11).
   `asker`: where the allocator returns to; a sanitizer has frames of its own below it. */
__attribute__((noinline)) static bool ours_asks(const void *asker) {
    enum { DEPTH = 64 };
    static const void *interpreter, *base;
    void *addresses[DEPTH];
    Dl_info about;
    if (!base) {
        if (dladdr((void *)&ours_asks, &about)) base = about.dli_fbase;
        interpreter = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    }
    int count = backtrace(addresses, DEPTH), i = 0;
    while (i < count && addresses[i] != asker) i++;
    for (; i < count; i++) {
        if (is_numpys((uintptr_t)addresses[i])) return false;
        if (!dladdr((char *)addresses[i] - 1, &about)) continue;
        if (about.dli_fbase == base) return true;
        if (about.dli_saddr == interpreter) return false;
    }
    return false;
}

__attribute__((noinline)) static bool denies(const void *asker) {
    if (!counted) return false;
    counted = false; /* what it does itself is not counted */
    bool ours = ours_asks(asker);
    counted = true;
    if (!ours) return false;
    uint64_t n = atomic_fetch_add(&asked, 1);
    return n >= atomic_load(&first_denied) && n <= atomic_load(&last_denied);
}

static void *our_malloc(void *context, size_t bytes) {
    const PyMemAllocatorEx *p = context;
    return denies(__builtin_return_address(0)) ? NULL : p->malloc(p->ctx, bytes);
}
static void *our_calloc(void *context, size_t count, size_t size) {
    const PyMemAllocatorEx *p = context;
    return denies(__builtin_return_address(0)) ? NULL : p->calloc(p->ctx, count, size);
}
static void *our_realloc(void *context, void *memory, size_t bytes) {
    const PyMemAllocatorEx *p = context;
    return denies(__builtin_return_address(0)) ? NULL : p->realloc(p->ctx, memory, bytes);
}
static void our_free(void *context, void *memory) {
    const PyMemAllocatorEx *p = context;
    p->free(p->ctx, memory);
}

static void install(void) {
    static bool done;
    if (!done) find_numpys();
    for (int domain = 0; domain < 3 && !done; domain++) {
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &plain[domain]);
        PyMemAllocatorEx ours = {&plain[domain], our_malloc, our_calloc, our_realloc, our_free};
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &ours);
    }
    done = true;
}

/* python_deny(first, last): of this thread's allocations from now on. */
static PyObject *python_deny(PyObject *module, PyObject *args) {
    unsigned long long first, last;
    if (!PyArg_ParseTuple(args, "KK", &first, &last)) return NULL;
    install();
    atomic_store(&asked, 0);
    atomic_store(&first_denied, first);
    atomic_store(&last_denied, last);
    counted = true;
    return Py_NewRef(Py_None);
}

/* python_allow() -> how many there were. It allocates nothing while they may fail. */
static PyObject *python_allow(PyObject *module, PyObject *unused) {
    counted = false;
    atomic_store(&first_denied, 1);
    atomic_store(&last_denied, 0);
    return PyLong_FromUnsignedLongLong(atomic_load(&asked));
}

/* ---- the heap ---- */

static PyObject *deny(PyObject *module, PyObject *args) {
    unsigned long long first, last;
    if (!PyArg_ParseTuple(args, "KK", &first, &last)) return NULL;
    heap_deny(first, last);
    return Py_NewRef(Py_None);
}

static PyObject *allow(PyObject *module, PyObject *unused) {
    heap_deny(1, 0);
    return Py_NewRef(Py_None);
}

/* (allocations so far, alive now); None: this build does not count. */
static PyObject *counts(PyObject *module, PyObject *unused) {
    if (!HEAP_COUNTS) return Py_NewRef(Py_None);
    return Py_BuildValue("KL", (unsigned long long)heap_asked(), (long long)heap_alive());
}

static PyObject *forget(PyObject *module, PyObject *unused) {
    if (!binding_start()) return NULL;
    return binding_ok(array_forget()) ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"heap_deny", deny, METH_VARARGS, "Which of the coming allocations fail (for tests)."},
    {"heap_allow", allow, METH_NOARGS, "None of them fails (for tests)."},
    {"heap_counts", counts, METH_NOARGS, "Allocations so far, and those alive (for tests)."},
    {"heap_forget", forget, METH_NOARGS, "Gives back what is kept for reuse (for tests)."},
    {"python_deny", python_deny, METH_VARARGS, "As heap_deny, of Python's (for tests)."},
    {"python_allow", python_allow, METH_NOARGS, "None of Python's fails; how many there were."},
    {NULL, NULL, 0, NULL},
};

int binding_add_memory_test(PyObject *module) { return PyModule_AddFunctions(module, methods); }
