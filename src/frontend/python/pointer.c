/* Pointers: types.CPointer of a signature, an address that came as an integer.
 *
 * The launch has found the storage that the address lies in (binding/kernel/args.c). A pointer is the first
 * element of that storage that it can reach, the number of those elements, and which of them is p[0]. So p[i]
 * is confined as an array's elements are, but a negative index does not wrap: it is what lies before.
 */
#include "frontend/python/work.h"

bool py_pointer_parameter(py_ctx *c, const py_type *t, const char *name, int32_t parameter,
                          py_val *out) {
    py_origin *o = PY_NEW(c, py_origin, 1);
    *o = (py_origin){.name = name, .parameter = parameter};
    *out = (py_val){.type = t, .origin = o};
    ir_value *v[4];
    static const uint8_t roles[] = {KERNEL_POINTER, KERNEL_SIZE, KERNEL_STRIDE, KERNEL_VALUE};
    for (int i = 0; i < 4; i++)
        v[i] = py_add_slot(c, i == 0 ? t->space : IR_I64, i == 0 ? name : NULL,
                           (kernel_role)roles[i], parameter);
    if (!c->emit) return true;
    out->v = PY_NEW(c, ir_value *, 3);
    out->v[0] = v[0];
    out->v[1] = v[1];
    out->v[2] = v[3]; /* between them a stride, as an array has one */
    return true;
}

static bool index_of(py_ctx *c, const py_node *at, const py_val *index, py_val *out) {
    if (index->type->kind == TY_SCALAR) return py_to_index(c, at, index, "an index", out);
    return py_fail(c, at, "a pointer has elements only, p[i]: not %s",
                   py_type_text(c, index->type));
}

/* Begins the part where p[index] is there; *address is where. */
static py_if begin(py_ctx *c, const py_val *of, ir_value *index, const ir_type *types, uint32_t n,
                   ir_value **address) {
    ir_value *place = py_emit_binary(c, IR_ADD, index, of->v[2]);
    ir_value *inside = py_emit_binary(c, IR_LT_U, place, of->v[1]);
    ir_value *bytes = py_emit_int(c, IR_I64, (int64_t)py_scalar_bytes((py_scalar)of->type->scalar));
    py_if i = py_begin_if(c, inside, types, n);
    *address = py_emit_ptradd(c, of->v[0], py_emit_binary(c, IR_MUL, place, bytes));
    return i;
}

static void report(py_ctx *c, const py_node *at, const py_val *of, ir_value *index) {
    const py_node *base = at->kind == PY_SUBSCRIPT ? at->a : NULL;
    const char *name = base != NULL && base->kind == PY_NAME ? base->name : "pointer";
    kernel_fault f = {.kind = KERNEL_FAULT_INDEX, .name = name, .ndim = -1, .argument = -1};
    ir_value *values[3] = {index, py_emit_zero(c, IR_I64),
                           py_emit_binary(c, IR_SUB, of->v[1], of->v[2])};
    ir_fault(&c->b, py_add_fault(c, at, &f), values, 3);
}

bool py_pointer_get(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                    py_val *out) {
    py_val i;
    const py_type *t = py_type_scalar((py_scalar)of->type->scalar);
    if (!index_of(c, at, index, &i)) return false;
    *out = (py_val){.type = t, .nonneg = py_scalar_is_unsigned((py_scalar)t->scalar)};
    if (!c->emit) return true;
    uint32_t n = py_type_slots(t);
    ir_type types[2] = {py_type_slot(t, 0), py_type_slot(t, n - 1)};
    ir_value *address, *v[2], *zero[2];
    out->v = PY_NEW(c, ir_value *, 2);
    py_if test = begin(c, of, i.v[0], types, n, &address);
    py_load_element(c, t, address, v);
    py_else(c, &test, v, n);
    report(c, at, of, i.v[0]);
    for (uint32_t k = 0; k < n; k++) zero[k] = py_emit_zero(c, types[k]);
    py_end_if(c, &test, zero, n, out->v);
    return true;
}

bool py_pointer_set(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                    const py_val *value) {
    py_val i, v;
    if (!index_of(c, at, index, &i) || !py_may_write(c, at, of)) return false;
    if (!py_to_scalar(c, at, value, (py_scalar)of->type->scalar, &v)) return false;
    if (!c->emit) return true;
    ir_value *address;
    py_if test = begin(c, of, i.v[0], NULL, 0, &address);
    py_store_element(c, py_type_scalar((py_scalar)of->type->scalar), address, v.v);
    py_else(c, &test, NULL, 0);
    report(c, at, of, i.v[0]);
    py_end_if(c, &test, NULL, 0, NULL);
    return true;
}
