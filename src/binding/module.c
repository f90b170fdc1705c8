#include <Python.h>

int binding_add_vm(PyObject *module);

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "simt._core",
                                        .m_size = -1};

PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&module_def);
    if (module != NULL && binding_add_vm(module) != 0) Py_CLEAR(module);
    return module;
}
