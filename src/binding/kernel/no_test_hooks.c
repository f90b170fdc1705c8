/* In place of test_hooks.c, in release builds. */
#include "binding/common/binding.h"

bool binding_add_test_hooks(PyObject *module);

bool binding_add_test_hooks(PyObject *module) { return true; }

simt_status binding_make_target(target **out) { return target_cpu_new(0, out); }
