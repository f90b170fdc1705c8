#include <Python.h>

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "simt._core",
                                        .m_size = -1};

PyMODINIT_FUNC PyInit__core(void) { return PyModule_Create(&module_def); }
