/* simt._core: the extension module. Its parts add themselves, one function each. */
#include "binding/kernel/kernel.h"

bool binding_add_test_hooks(PyObject *module); /* kernel/test_hooks.c, or no_test_hooks.c */
bool binding_add_torch(PyObject *module);      /* tensor.c */
bool binding_add_absent(PyObject *module);     /* absent.c */

/* Size 0, not -1: so Python asks PyInit__core each time, also in a subinterpreter, instead of handing out
 * a copy of the main interpreter's module. */
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "simt._core", .m_size = 0};

static PyObject *refuse_subinterpreter(void) {
    bool zh = binding_in_chinese();
    return binding_raise_text(
        PyExc_ImportError,
        "simt cannot be imported in a subinterpreter: its arrays and types belong to the main one",
        "",
        zh ? "请在主解释器中导入 simt, 或改用进程 (multiprocessing)"
           : "import it in the main interpreter, or use processes (multiprocessing)");
}

PyMODINIT_FUNC PyInit__core(void) {
    static PyObject *made;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) return refuse_subinterpreter();
    if (made) return Py_NewRef(made);
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    if (binding_install_hooks() && binding_add_array_types(module) &&
        binding_add_functions(module) && binding_add_random(module) &&
        binding_add_exchange(module) && binding_add_torch(module) && binding_add_absent(module) &&
        binding_add_device_array(module) && binding_add_kernels(module) &&
        binding_add_test_hooks(module)) {
        made = Py_NewRef(module);
        return module;
    }
    Py_DECREF(module);
    return NULL;
}
