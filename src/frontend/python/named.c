/* Tuples whose items have names: named tuples, and CUDA's vector types (float32x3: items x, y, z).
 *
 * In the IR both are their items. A vector type's items all have its element type; arithmetic on whole
 * vectors there is none, as in Numba.
 */
#include "frontend/python/intrinsics.h"

#include <string.h>

bool py_names_equal(const py_names *a, const py_names *b) {
    if (a == b) return true;
    if (a == NULL || b == NULL || a->count != b->count || strcmp(a->name, b->name) != 0)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->fields[i], b->fields[i]) != 0) return false;
    return true;
}

py_val py_val_named(py_ctx *c, py_val *items, const py_names *names) {
    py_val out = py_val_tuple(c, items, names->count);
    py_type *t = PY_NEW(c, py_type, 1);
    *t = *out.type;
    t->names = names;
    out.type = t;
    return out;
}

bool py_named_attribute(const py_val *of, const char *name, py_val *out) {
    const py_names *names = of->type->names;
    for (uint32_t i = 0; names != NULL && i < names->count; i++)
        if (strcmp(names->fields[i], name) == 0) {
            *out = py_val_item(of, i);
            return true;
        }
    return false;
}

bool py_call_named(py_ctx *c, const py_node *at, const py_names *names, py_call *x, py_val *out) {
    py_val *items = PY_NEW(c, py_val, names->count + 1);
    x->name = names->name;
    if (x->nargs + x->nkeywords != names->count)
        return py_fail(c, at, "%s takes %u values, %u given", names->name, names->count,
                       x->nargs + x->nkeywords);
    for (uint32_t i = 0; i < names->count; i++) {
        const py_val *v = py_argument(x, i, names->fields[i]);
        if (v == NULL)
            return py_fail(c, at, "%s: the value of '%s' is missing", names->name,
                           names->fields[i]);
        items[i] = *v;
    }
    *out = py_val_named(c, items, names);
    return true;
}

/* float32x4(a, b, c, d), float32x4(v3, d), float32x4(v2, v2): numbers and vectors, converted; extra: the
 * element type and, times 16, the length. */
bool cuda_vector(py_ctx *c, py_call *x, py_val *out) {
    static const char *const fields[] = {"x", "y", "z", "w"};
    py_scalar element = (py_scalar)(x->extra % 16);
    uint32_t count = (uint32_t)(x->extra / 16), n = 0;
    py_names *names = PY_NEW(c, py_names, 1);
    *names = (py_names){x->name + strlen("cuda."), fields, count, element};
    py_val *items = PY_NEW(c, py_val, count);
    if (x->nkeywords > 0) return py_fail(c, x->node, "%s takes no keywords", x->name);
    for (uint32_t i = 0; i < x->nargs; i++) {
        const py_val *a = &x->args[i];
        bool vector = a->type->kind == TY_TUPLE && a->type->names != NULL &&
                      a->type->names->element != PY_S_NONE;
        if (!vector && py_scalar_of(a) == PY_S_NONE)
            return py_fail(c, x->node, "%s is made of numbers and vectors, not of %s", x->name,
                           py_type_text(c, a->type));
        for (uint32_t k = 0; k < (vector ? a->type->count : 1); k++, n++) {
            py_val item = vector ? py_val_item(a, k) : *a;
            if (n < count && !py_to_scalar(c, x->node, &item, element, &items[n])) return false;
        }
    }
    if (n != count) return py_fail(c, x->node, "%s takes %u numbers, %u given", x->name, count, n);
    *out = py_val_named(c, items, names);
    return true;
}
