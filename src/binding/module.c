/* simt._core: the extension module. Its parts add themselves, one function each. */
#include "binding/kernel.h"

int binding_add_vm(PyObject *module);          /* vm_test.c */
int binding_add_ir(PyObject *module);          /* ir_test.c */
int binding_add_kernel_test(PyObject *module); /* kernel_test.c */
bool binding_add_torch(PyObject *module);      /* tensor.c */

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "simt._core",
                                        .m_size = -1};

PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    binding_install_hooks();
    if (binding_add_array_types(module) && binding_add_functions(module) &&
        binding_add_random(module) && binding_add_exchange(module) && binding_add_torch(module) &&
        binding_add_device_array(module) && binding_add_kernels(module) &&
        binding_add_vm(module) == 0 && binding_add_ir(module) == 0 &&
        binding_add_kernel_test(module) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
