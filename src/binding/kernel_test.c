/* _core.kernel_tree: the tests' way to the tree of a kernel.
 *
 * kernel_tree(function) -> one s-expression with positions (kernel_tree.h).
 */
#include "binding/kernel_tree.h"

static PyObject *kernel_tree(PyObject *self, PyObject *function) {
    const py_function *f = kernel_function_get(function);
    if (!f) return NULL;
    strbuf out;
    strbuf_init(&out);
    kernel_tree_print(f->tree, &out);
    PyObject *text = out.failed ? PyErr_NoMemory() : PyUnicode_FromString(strbuf_text(&out));
    strbuf_deinit(&out);
    return text;
}

static PyMethodDef methods[] = {
    {"kernel_tree", kernel_tree, METH_O, "The tree of a Python function (for tests)."},
    {NULL, NULL, 0, NULL},
};

int binding_add_kernel_test(PyObject *module) { return PyModule_AddFunctions(module, methods); }
