/* What names in a kernel mean. */
#include "binding/kernel_tree.h"

#include <string.h>

bool kernel_to_entity(PyObject *o, const char *name, kernel_function *owner, py_entity *out) {
    memset(out, 0, sizeof *out);
    out->kind = PY_ENTITY_CONSTANT;
    if (!kernel_to_constant(o, &owner->mem, &out->value)) return false;
    if (out->value.kind != PY_VALUE_OTHER) return true;
    out->kind = PY_ENTITY_OBJECT;
    out->name = arena_printf(&owner->mem, "%s (%s)", name, Py_TYPE(o)->tp_name);
    return true;
}
