/* Items of tuples: by a constant, by a slice of constants, by a run-time index where all have one type. */
#include "frontend/python/work.h"

/* slice.indices(n): bound[0..2] are start, stop and step, those of `given` as they were written. */
static void adjust(int64_t bound[3], uint8_t given, int64_t n) {
    bool down = bound[2] < 0;
    int64_t low = down ? -1 : 0, high = down ? n - 1 : n;
    for (int i = 0; i < 2; i++) {
        if ((given & 1 << i) == 0) {
            bound[i] = (i == 0) == down ? high : low;
            continue;
        }
        if (bound[i] < 0) bound[i] += n;
        bound[i] = bound[i] < low ? low : bound[i] > high ? high : bound[i];
    }
}

static bool get_tuple_slice(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                            py_val *out) {
    int64_t n = of->type->count, bound[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++) {
        if ((index->type->given & 1 << i) == 0) continue;
        const py_val *part = index->items != NULL ? &index->items[i] : NULL;
        if (part == NULL || !part->is_const || part->value.kind != PY_VALUE_INT)
            return py_fail(c, at, "a slice of a tuple must be constant");
        bound[i] = part->value.integer;
    }
    adjust(bound, index->type->given, n);
    py_val *items = PY_NEW(c, py_val, n + 1);
    uint32_t count = 0;
    int64_t i = bound[0], step = bound[2];
    while (step > 0 ? i < bound[1] : i > bound[1]) {
        items[count++] = py_val_item(of, (uint32_t)i);
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    *out = py_val_tuple(c, items, count);
    return true;
}

/* A run-time index into a tuple of one type: a chain of selects; out of range reports a fault. */
static bool get_tuple_runtime(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                              py_val *out) {
    uint32_t n = of->type->count;
    for (uint32_t i = 1; i < n; i++)
        if (!py_type_equal(of->type->items[0], of->type->items[i]))
            return py_fail(c, at, "a tuple of different types needs a constant index");
    if (n == 0 || of->type->items[0]->kind != TY_SCALAR)
        return py_fail(c, at, "this tuple needs a constant index");
    py_val x;
    if (!py_to_index(c, at, index, "an index", &x)) return false;
    *out = (py_val){.type = of->type->items[0]};
    ir_value *size = py_emit_int(c, IR_I64, n), *zero = py_emit_zero(c, IR_I64),
             *v = py_slot(&x, 0);
    ir_value *w = py_emit_select(c, py_emit_binary(c, IR_LT_S, v, zero),
                                 py_emit_binary(c, IR_ADD, v, size), v);
    kernel_fault f = {.kind = KERNEL_FAULT_INDEX, .name = "tuple", .ndim = 1, .argument = -1};
    if (at->kind == PY_SUBSCRIPT && at->a->kind == PY_NAME) f.name = at->a->name;
    f.shape[0] = n;
    py_if i = py_begin_if(c, py_emit_binary(c, IR_LT_U, w, size), NULL, 0);
    py_else(c, &i, NULL, 0);
    ir_value *values[3] = {v, zero, size};
    uint32_t number = py_add_fault(c, at, &f);
    if (c->emit) ir_fault(&c->b, number, values, 3);
    py_end_if(c, &i, NULL, 0, NULL);
    if (!c->emit) return true;
    uint32_t slots = py_type_slots(out->type);
    out->v = PY_NEW(c, ir_value *, slots);
    for (uint32_t s = 0; s < slots; s++) {
        out->v[s] = of->v[s];
        for (uint32_t k = 1; k < n; k++)
            out->v[s] = py_emit_select(c, py_emit_binary(c, IR_EQ, w, py_emit_int(c, IR_I64, k)),
                                       of->v[k * slots + s], out->v[s]);
    }
    return true;
}

bool py_get_tuple_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                       py_val *out) {
    if (index->type->kind == TY_SLICE) return get_tuple_slice(c, at, of, index, out);
    if (!index->is_const || index->value.kind != PY_VALUE_INT)
        return get_tuple_runtime(c, at, of, index, out);
    int64_t i = index->value.integer, n = of->type->count;
    if (i < -n || i >= n)
        return py_fail(c, at, "index %lld is out of range for a tuple of %lld", (long long)i,
                       (long long)n);
    *out = py_val_item(of, (uint32_t)(i < 0 ? i + n : i));
    return true;
}
