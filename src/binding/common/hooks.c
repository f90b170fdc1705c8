/* What array/ and device/ ask Python for: the GIL, the user's line, OpenBLAS's path, Ctrl-C; and the
 * safe release of Python objects that own memory shared with arrays. */
#include "binding/common/binding.h"

#include <frameobject.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "device/device.h"

enum { STACK_RESERVE = 1 << 20 }; /* what compiling a kernel and running it may need */

/* ---- the GIL ---- */

static void *gil_drop(void) { return PyEval_SaveThread(); }
static void gil_take(void *token) { PyEval_RestoreThread(token); }

/* Runs any Python signal handlers; true when one raised (the exception stays set for binding_raise). */
static bool interrupt_check(void) {
    PyGILState_STATE state = PyGILState_Ensure();
    bool stop = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return stop;
}

/* The exception of an interrupt which array/ asked to be raised later. */
static PyObject *deferred[3];

static int raise_deferred(void *unused) {
    PyObject *type = deferred[0], *value = deferred[1], *traceback = deferred[2];
    deferred[0] = deferred[1] = deferred[2] = NULL;
    array_clear_deferred();
    PyErr_Restore(type, value, traceback);
    return -1;
}

/* Python runs what is pending as soon as the call that is on its way has returned to it. */
static bool defer_interrupt(void) {
    PyGILState_STATE state = PyGILState_Ensure();
    bool kept = false;
    if (PyErr_Occurred() && !deferred[0]) {
        PyErr_Fetch(&deferred[0], &deferred[1], &deferred[2]);
        kept = Py_AddPendingCall(raise_deferred, NULL) == 0;
        if (!kept) {
            PyErr_Restore(deferred[0], deferred[1], deferred[2]);
            deferred[0] = NULL;
        }
    }
    PyGILState_Release(state);
    return kept;
}

/* array/ calls this after unlocking, from a thread that may or may not have the GIL. */
void binding_release_object(void *owner) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback; /* a destructor must not lose the caller's exception */
    PyErr_Fetch(&type, &value, &traceback);
    Py_DECREF((PyObject *)owner);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
}

/* ---- the C stack ---- */

static _Thread_local struct own {
    char *
        limit; /* the lowest address that calls of Python code may begin at; NULL: not asked for yet */
    int reading;
} own_state;

static __attribute__((noinline)) char *find_stack_limit(void) {
    char *limit = (char *)1; /* unknown: no limit of ours */
#ifdef __linux__
    pthread_attr_t attr;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) return limit;
    if (pthread_attr_getstack(&attr, &low, &size) == 0)
        limit = (char *)low + (size / 4 < STACK_RESERVE ? size / 4 : STACK_RESERVE);
    pthread_attr_destroy(&attr);
#endif
    return limit;
}

bool binding_enter(void) {
    struct own *own = &own_state;
    __asm__("" : "+r"(own)); /* to find it costs a call: once */
    if (__builtin_expect(!own->limit, 0)) own->limit = find_stack_limit();
    if ((char *)__builtin_frame_address(0) < own->limit) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: Python code and "
                                              "simt call each other too deeply");
        return false;
    }
    if (Py_EnterRecursiveCall(" in simt") != 0) return false;
    own->reading++;
    return true;
}

void binding_leave(void) {
    own_state.reading--;
    Py_LeaveRecursiveCall();
}

bool binding_may_replace(const char *what) {
    if (own_state.reading == 0) return true;
    PyErr_Format(PyExc_RuntimeError,
                 "%s cannot be replaced while the arguments of an operation are read", what);
    return false;
}

/* ---- the user's line ---- */

/* The folder of the package with a slash at the end, from the extension's own file name. */
static char package_folder[1024];

static bool is_ours(PyCodeObject *code) {
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
    if (!name) return binding_do_without(), false;
    size_t n = strlen(package_folder);
    return n && strncmp(name, package_folder, n) == 0;
}

/* The line of a frame. Finding one takes Python microseconds in a long code object, and a training loop
 * asks for the same few again and again: they are remembered (with a reference to the code). */
static int line_of(PyFrameObject *frame, PyCodeObject *code) {
    static struct {
        PyCodeObject *code;
        int at, line;
    } known[8];
    static unsigned next;
    int at = PyFrame_GetLasti(frame);
    for (int i = 0; i < 8; i++)
        if (known[i].code == code && known[i].at == at) return known[i].line;
    int line = PyFrame_GetLineNumber(frame);
    unsigned slot = next++ % 8;
    PyCodeObject *old = known[slot].code;
    known[slot].code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    known[slot].at = at;
    known[slot].line = line;
    Py_XDECREF(old);
    return line;
}

/* The innermost frame outside the package; where memory ends on the way to it, nothing is known. */
static void position(char *file, size_t size, int *line) {
    file[0] = '\0';
    *line = 0;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    bool found = false;
    while (frame && !found) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        found = !is_ours(code);
        if (found) {
            const char *name = PyUnicode_AsUTF8(code->co_filename);
            snprintf(file, size, "%s", name ? name : "");
            *line = line_of(frame, code);
        }
        Py_DECREF(code);
        Py_SETREF(frame, found ? NULL : PyFrame_GetBack(frame));
    }
    Py_XDECREF(frame);
    binding_do_without();
}

/* ---- OpenBLAS ---- */

/* The library inside the package scipy_openblas32, found without importing it. */
static bool find_in_folder(PyObject *folder, char *to, size_t size) {
    const char *text = PyUnicode_Check(folder) ? PyUnicode_AsUTF8(folder) : NULL;
    if (!text) return binding_do_without(), false;
    static const char *const endings[] = {"so", "dylib"};
    for (int i = 0; i < 2; i++) {
        snprintf(to, size, "%s/scipy_openblas32/lib/libscipy_openblas.%s", text[0] ? text : ".",
                 endings[i]);
        if (access(to, R_OK) == 0) return true;
    }
    return false;
}

static const char *blas_path(void) {
    static char path[1200];
    const char *asked = getenv("SIMT_BLAS");
    if (asked && *asked) return asked;
    if (path[0]) return path;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *folders;
    if (binding_sys("path", &folders) < 0) binding_do_without();
    Py_ssize_t n = folders && PyList_Check(folders) ? PyList_GET_SIZE(folders) : 0;
    bool found = false;
    for (Py_ssize_t i = 0; i < n && !found; i++)
        found = find_in_folder(PyList_GET_ITEM(folders, i), path, sizeof path);
    if (!found) path[0] = '\0';
    Py_XDECREF(folders);
    PyGILState_Release(state);
    return found ? path : NULL;
}

/* ---- fork ---- */

static PyObject *before_fork(PyObject *self, PyObject *unused) {
    array_before_fork();
    Py_RETURN_NONE;
}

static PyObject *after_fork(PyObject *self, PyObject *unused) {
    array_after_fork();
    Py_RETURN_NONE;
}

static PyMethodDef before_fork_method = {"_before_fork", before_fork, METH_NOARGS, NULL};
static PyMethodDef after_fork_method = {"_after_fork", after_fork, METH_NOARGS, NULL};

/* Not by pthread_atfork: its handlers run with the GIL held, which the evaluating thread may need. */
static void install_fork_hooks(void) {
    PyObject *os = PyImport_ImportModule("os");
    PyObject *hook = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
    PyObject *before = PyCFunction_New(&before_fork_method, NULL);
    PyObject *after = PyCFunction_New(&after_fork_method, NULL);
    PyObject *none = PyTuple_New(0), *names = NULL, *done = NULL;
    if (hook && before && after && none)
        names = Py_BuildValue("{sOsO}", "before", before, "after_in_parent", after);
    if (names) done = PyObject_Call(hook, none, names);
    binding_forgive_if(PyExc_AttributeError); /* where there is no fork, nothing is needed */
    PyObject *const all[] = {os, hook, before, after, none, names, done};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) Py_XDECREF(all[i]);
}

/* ---- start ---- */

static void find_package_folder(void) {
    PyObject *module = PyImport_ImportModule("simt");
    PyObject *file = module ? PyObject_GetAttrString(module, "__file__") : NULL;
    const char *text = file ? PyUnicode_AsUTF8(file) : NULL;
    if (text) snprintf(package_folder, sizeof package_folder, "%s", text);
    char *slash = strrchr(package_folder, '/');
    if (slash) slash[1] = '\0';
    Py_XDECREF(file);
    Py_XDECREF(module);
    binding_forgive();
}

/* A stack that grows where no address space is left ends the process, so the main thread's has from the
 * start what planning and compiling take. Only its last page is touched: it costs no memory. */
enum { OUR_STACK = 1 << 20 };
__attribute__((noinline, unused)) static void touch_stack(void) {
    volatile char room[OUR_STACK];
    room[0] = 0;
    (void)room[0];
}

static void grow_stack(void) {
#ifdef __linux__
    struct rlimit limit;
    bool is_main = getpid() == (pid_t)syscall(SYS_gettid);
    if (is_main && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 4 * OUR_STACK)
        touch_stack();
#endif
}

bool binding_install_hooks(void) {
    grow_stack();
    find_package_folder();
    array_set_target_hook(binding_make_target);
    array_set_gil_hooks(gil_drop, gil_take);
    array_set_position_hook(position);
    array_set_blas_path_hook(blas_path);
    array_set_defer_hook(defer_interrupt);
    array_watch_forks();
    device_set_interrupt_check(interrupt_check);
    install_fork_hooks();
    return !PyErr_Occurred();
}

bool binding_start(void) {
    static bool started;
    if (__builtin_expect(started, 1)) return true;
    if (!binding_ok(array_context_init())) return false;
    started = true;
    return true;
}

bool binding_lenient(void) {
    const char *asked = getenv("SIMT_LENIENT");
    return asked && *asked && strcmp(asked, "0") != 0;
}
