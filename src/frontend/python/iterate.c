/* Anything that `for` goes over: its length and its items (range, arrays, tuples, zip and enumerate). */
#include "frontend/python/work.h"

void py_range_parts(py_ctx *c, const py_val *range, ir_value *out[3]) {
    py_scalar s = range->type->scalar;
    ir_op widen = py_scalar_is_signed(s) ? IR_SEXT : IR_ZEXT;
    for (int i = 0; i < 3; i++) {
        out[i] = py_slot(range, i);
        if (py_scalar_ir(s) != IR_I64) out[i] = py_emit_cast(c, widen, IR_I64, out[i]);
    }
}

bool py_iter_length(py_ctx *c, const py_node *at, const py_val *it, ir_value **length,
                    int64_t *known) {
    *known = -1;
    *length = NULL;
    switch ((py_type_kind)it->type->kind) {
    case TY_ARRAY: *length = py_array_size(it, 0); return true;
    case TY_TUPLE: *known = it->type->count; return true;
    case TY_RANGE: {
        if (!c->emit) return true;
        ir_value *v[3];
        py_range_parts(c, it, v);
        ir_value *zero = py_emit_zero(c, IR_I64), *down = py_emit_binary(c, IR_LT_S, v[2], zero);
        ir_value *way = py_emit_select(c, down, py_emit_binary(c, IR_SUB, v[0], v[1]),
                                       py_emit_binary(c, IR_SUB, v[1], v[0]));
        ir_value *size = py_emit_unary(c, IR_ABS, v[2]);
        ir_value *most = py_emit_binary(c, IR_ADD, way,
                                        py_emit_binary(c, IR_SUB, size, py_emit_int(c, IR_I64, 1)));
        *length = py_emit_binary(c, IR_MAX_S, py_emit_binary(c, IR_DIV_S, most, size), zero);
        return true;
    }
    case TY_ZIP:
        for (uint32_t i = 0; i < it->type->count; i++) {
            py_val part = py_val_item(it, i);
            ir_value *n;
            int64_t k;
            if (!py_iter_length(c, at, &part, &n, &k)) return false;
            if (part.type->kind == TY_RANGE && part.type->given == 1)
                continue; /* enumerate's count */
            if (k >= 0) n = py_emit_int(c, IR_I64, k);
            *length = *length == NULL ? n : py_emit_binary(c, IR_MIN_S, *length, n);
        }
        return true;
    default:
        return py_fail(c, at, "%s cannot be iterated%s", py_type_text(c, it->type),
                       it->type->kind == TY_SCALAR ? ": write range(...)" : py_advice(c, it->type));
    }
}

bool py_iter_item(py_ctx *c, const py_node *at, const py_val *it, ir_value *i, int64_t known,
                  py_val *out) {
    switch ((py_type_kind)it->type->kind) {
    case TY_ARRAY: {
        py_val k = py_val_scalar(c, PY_S_I64, i);
        k.nonneg = true;
        return py_get_item(c, at, it, &k, out);
    }
    case TY_TUPLE:
        if (known >= 0)
            *out = py_val_item(it, (uint32_t)known);
        else {
            py_val k = py_val_scalar(c, PY_S_I64, i);
            return py_get_item(c, at, it, &k, out);
        }
        return true;
    case TY_RANGE: {
        ir_type t = py_scalar_ir(it->type->scalar);
        ir_value *k = t == IR_I64 ? i : py_emit_cast(c, IR_TRUNC, t, i);
        ir_value *v =
            c->emit ? py_emit_binary(c, IR_ADD, it->v[0], py_emit_binary(c, IR_MUL, k, it->v[2]))
                    : NULL;
        *out = py_val_scalar(c, it->type->scalar, v);
        out->nonneg = it->nonneg;
        return true;
    }
    default: {
        py_val *items = PY_NEW(c, py_val, it->type->count + 1);
        for (uint32_t k = 0; k < it->type->count; k++) {
            py_val part = py_val_item(it, k);
            if (!py_iter_item(c, at, &part, i, known, &items[k])) return false;
        }
        *out = py_val_tuple(c, items, it->type->count);
        return true;
    }
    }
}
