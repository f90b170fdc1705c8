/* What tests call in the extension module: in development builds (-Dtest_hooks). */
#include "binding/common/binding.h"
#include "device/remote/remote.h"

#include <stdlib.h>
#include <string.h>

bool binding_add_test_hooks(PyObject *module);
int binding_add_vm(PyObject *module);          /* common/vm_test.c */
int binding_add_ir(PyObject *module);          /* common/ir_test.c */
int binding_add_vars_test(PyObject *module);   /* common/vars_test.c */
int binding_add_memory_test(PyObject *module); /* common/memory_test.c */
int binding_add_device_test(PyObject *module); /* common/device_test.c */
int binding_add_kernel_test(PyObject *module); /* test.c */

/* SIMT_TARGET=remote: the toy, with the CPU beside it. */
simt_status binding_make_target(target **out) {
    const char *asked = getenv("SIMT_TARGET");
    if (asked == NULL || strcmp(asked, "remote") != 0) return target_cpu_new(0, out);
    device *host, *inner, *toy;
    SIMT_TRY(device_cpu_new(0, &host));
    simt_status status = device_cpu_new(0, &inner);
    if (status == SIMT_OK) status = device_remote_new(inner, &toy);
    if (status == SIMT_OK) return target_new("remote", toy, host, out);
    host->destroy(host);
    return status;
}

/* remote_fail_copy("in" | "out" | "within", after): the toy's copy after so many more fails. */
static PyObject *remote_fail_copy(PyObject *module, PyObject *args) {
    const char *way;
    unsigned after;
    if (!PyArg_ParseTuple(args, "sI", &way, &after)) return NULL;
    device_remote_fail_copy(way[0] == 'i'   ? DEVICE_IN
                            : way[0] == 'o' ? DEVICE_OUT
                                            : DEVICE_WITHIN,
                            after);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"remote_fail_copy", remote_fail_copy, METH_VARARGS, "Makes a copy fail (for tests)."},
    {NULL, NULL, 0, NULL},
};

bool binding_add_test_hooks(PyObject *module) {
    return PyModule_AddFunctions(module, methods) == 0 && binding_add_vm(module) == 0 &&
           binding_add_ir(module) == 0 && binding_add_vars_test(module) == 0 &&
           binding_add_memory_test(module) == 0 && binding_add_device_test(module) == 0 &&
           binding_add_kernel_test(module) == 0;
}
