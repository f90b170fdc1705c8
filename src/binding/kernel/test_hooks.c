/* What tests call in the extension module: in development builds (-Dtest_hooks). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

bool binding_add_test_hooks(PyObject *module);
int binding_add_vm(PyObject *module);          /* common/vm_test.c */
int binding_add_ir(PyObject *module);          /* common/ir_test.c */
int binding_add_vars_test(PyObject *module);   /* common/vars_test.c */
int binding_add_memory_test(PyObject *module); /* common/memory_test.c */
int binding_add_kernel_test(PyObject *module); /* test.c */

bool binding_add_test_hooks(PyObject *module) {
    return binding_add_vm(module) == 0 && binding_add_ir(module) == 0 &&
           binding_add_vars_test(module) == 0 && binding_add_memory_test(module) == 0 &&
           binding_add_kernel_test(module) == 0;
}
