/* Conversions between the types of kernel values: Python's and C's casts as Numba has them. */
#include "frontend/python/work.h"

static py_val keep_constant(py_ctx *c, const py_val *v, py_scalar to) {
    py_val out = py_val_constant(c, &v->value, to);
    if (to == PY_S_F32 && v->value.kind == PY_VALUE_FLOAT)
        out.value.real = (float)v->value.real;
    else if (to == PY_S_F16)
        out.is_const = false;
    return out;
}

static bool constant_fits(const py_val *v, py_scalar to) {
    if (!v->is_const || py_scalar_is_complex(to) || to == PY_S_BOOL) return false;
    py_value_kind kind = v->value.kind;
    if (py_scalar_is_float(to)) return kind <= PY_VALUE_UINT || kind == PY_VALUE_FLOAT;
    if (kind != PY_VALUE_INT && kind != PY_VALUE_BOOL) return false;
    int64_t x = kind == PY_VALUE_BOOL ? v->value.boolean : v->value.integer;
    int bits = (int)py_scalar_bytes(to) * 8;
    if (py_scalar_is_unsigned(to)) return x >= 0 && (bits == 64 || x >> bits == 0);
    return bits == 64 || (x >= -(1ll << (bits - 1)) && x < 1ll << (bits - 1));
}

static ir_value *int_to_int(py_ctx *c, ir_value *v, py_scalar from, py_scalar to) {
    unsigned a = ir_type_bits(py_scalar_ir(from)), b = ir_type_bits(py_scalar_ir(to));
    if (a == b) return v;
    if (a > b) return py_emit_cast(c, IR_TRUNC, py_scalar_ir(to), v);
    return py_emit_cast(c, py_scalar_is_signed(from) ? IR_SEXT : IR_ZEXT, py_scalar_ir(to), v);
}

static ir_value *float_to_float(py_ctx *c, ir_value *v, py_scalar from, py_scalar to) {
    if (from == to) return v;
    return py_emit_cast(c, from < to ? IR_FPEXT : IR_FPTRUNC, py_scalar_ir(to), v);
}

/* real types only */
static ir_value *cast(py_ctx *c, ir_value *v, py_scalar from, py_scalar to) {
    bool from_float = py_scalar_is_float(from), to_float = py_scalar_is_float(to);
    ir_type t = py_scalar_ir(to);
    if (from == to) return v;
    if (to == PY_S_BOOL)
        return py_emit_binary(c, from_float ? IR_FNE : IR_NE, v,
                              py_emit_zero(c, py_scalar_ir(from)));
    if (from_float && to_float) return float_to_float(c, v, from, to);
    if (from_float) return py_emit_cast(c, py_scalar_is_signed(to) ? IR_FPTOSI : IR_FPTOUI, t, v);
    if (to_float) return py_emit_cast(c, py_scalar_is_signed(from) ? IR_SITOFP : IR_UITOFP, t, v);
    return int_to_int(c, v, from, to);
}

bool py_to_scalar(py_ctx *c, const py_node *at, const py_val *v, py_scalar to, py_val *out) {
    py_scalar from = py_scalar_of(v);
    if (from == to) {
        *out = *v;
        return true;
    }
    if (from == PY_S_NONE)
        return py_fail(c, at, "%s expected, not %s%s", py_scalar_name(to), py_type_text(c, v->type),
                       py_advice(c, v->type));
    if (constant_fits(v, to)) {
        *out = keep_constant(c, v, to);
        return true;
    }
    ir_value *re = py_slot(v, 0);
    if (py_scalar_is_complex(from) && to == PY_S_BOOL) {
        ir_value *im = py_slot(v, 1);
        py_scalar part = py_scalar_part(from);
        *out = py_val_scalar(
            c, PY_S_BOOL, py_emit_binary(c, IR_OR, cast(c, re, part, to), cast(c, im, part, to)));
        return true;
    }
    if (py_scalar_is_complex(from) && !py_scalar_is_complex(to))
        return py_fail(c, at, "%s cannot become %s: take .real or abs()", py_scalar_name(from),
                       py_scalar_name(to));
    if (py_scalar_is_complex(to)) {
        py_scalar part = py_scalar_part(to);
        ir_value *im = py_scalar_is_complex(from)
                           ? cast(c, py_slot(v, 1), py_scalar_part(from), part)
                           : py_emit_zero(c, py_scalar_ir(part));
        *out = py_val_complex(c, to, cast(c, re, py_scalar_part(from), part), im);
        return true;
    }
    *out = py_val_scalar(c, to, cast(c, re, from, to));
    bool widens = py_scalar_bytes(to) > py_scalar_bytes(from) ||
                  (py_scalar_bytes(to) == py_scalar_bytes(from) && py_scalar_is_unsigned(to));
    out->nonneg = py_scalar_is_unsigned(to) ||
                  (py_scalar_is_int(to) && widens && (v->nonneg || from == PY_S_BOOL));
    return true;
}

static bool convert_tuple(py_ctx *c, const py_node *at, const py_val *v, const py_type *to,
                          py_val *out) {
    py_val *items = PY_NEW(c, py_val, to->count + 1);
    for (uint32_t i = 0; i < to->count; i++) {
        py_val item = py_val_item(v, i);
        if (!py_convert(c, at, &item, to->items[i], &items[i])) return false;
    }
    *out = py_val_tuple(c, items, to->count);
    out->type = to;
    return true;
}

/* None, a value or another OPTIONAL as the OPTIONAL `to`. */
static bool convert_optional(py_ctx *c, const py_node *at, const py_val *v, const py_type *to,
                             py_val *out) {
    uint32_t n = py_type_slots(to);
    bool none = v->type->kind == TY_NONE, optional = v->type->kind == TY_OPTIONAL;
    py_val part = py_val_present(v);
    if (!none && !py_convert(c, at, &part, to->items[0], &part)) return false;
    ir_value *some = optional ? py_slot(v, 0) : py_emit_int(c, IR_I1, !none);
    *out = (py_val){.type = to};
    if (!c->emit) return true;
    out->v = PY_NEW(c, ir_value *, n);
    out->v[0] = some;
    for (uint32_t i = 1; i < n; i++)
        out->v[i] = none ? py_emit_zero(c, py_type_slot(to, i)) : part.v[i - 1];
    return true;
}

bool py_convert(py_ctx *c, const py_node *at, const py_val *v, const py_type *to, py_val *out) {
    *out = *v;
    if (py_type_equal(v->type, to)) return true;
    if (to->kind == TY_OPTIONAL) return convert_optional(c, at, v, to, out);
    if (to->kind == TY_SCALAR) return py_to_scalar(c, at, v, to->scalar, out);
    if (to->kind == TY_CHARS) return py_chars_convert(c, at, v, to, out);
    if (v->type->kind == to->kind && to->kind == TY_TUPLE && v->type->count == to->count &&
        py_names_equal(v->type->names, to->names))
        return convert_tuple(c, at, v, to, out);
    if (v->type->kind == to->kind && to->kind == TY_ARRAY && v->type->scalar == to->scalar &&
        v->type->ndim == to->ndim && v->type->space == to->space &&
        py_record_equal(v->type->record, to->record)) {
        out->type = to;
        return true;
    }
    if (v->type->kind == to->kind && to->kind == TY_RECORD && v->type->ndim == to->ndim &&
        py_record_equal(v->type->items[0]->record, to->items[0]->record)) {
        out->type = to; /* the array's layout is another */
        out->items = NULL;
        return true;
    }
    if (v->type->kind == to->kind && to->kind == TY_RANGE) {
        out->type = to;
        if (!c->emit) return true;
        out->v = PY_NEW(c, ir_value *, 3);
        for (int i = 0; i < 3; i++) out->v[i] = cast(c, v->v[i], v->type->scalar, to->scalar);
        return true;
    }
    return py_fail(c, at, "%s expected, not %s", py_type_text(c, to), py_type_text(c, v->type));
}

bool py_truth(py_ctx *c, const py_node *at, const py_val *v, py_val *out) {
    if (v->is_const && v->type->kind == TY_SCALAR) {
        bool t = false;
        switch (v->value.kind) {
        case PY_VALUE_BOOL: t = v->value.boolean; break;
        case PY_VALUE_INT:
        case PY_VALUE_UINT: t = v->value.integer != 0; break;
        default: t = v->value.real != 0 || v->value.imaginary != 0; break;
        }
        *out = py_val_bool(c, t);
        return true;
    }
    switch ((py_type_kind)v->type->kind) {
    case TY_OPTIONAL: {
        py_val value = py_val_present(v);
        if (!py_truth(c, at, &value, out)) return false;
        *out =
            py_val_scalar(c, PY_S_BOOL, py_emit_binary(c, IR_AND, py_slot(v, 0), py_slot(out, 0)));
        return true;
    }
    case TY_SCALAR: return py_to_scalar(c, at, v, PY_S_BOOL, out);
    case TY_NONE: *out = py_val_bool(c, false); return true;
    case TY_TUPLE: *out = py_val_bool(c, v->type->count > 0); return true;
    case TY_STRING: /* ... is true */
        *out = py_val_bool(c, v->value.kind == PY_VALUE_ELLIPSIS || v->value.bytes > 0);
        return true;
    case TY_CHARS: return py_chars_truth(c, v, out);
    default:
        return py_fail(c, at, "the truth of %s is not defined: test an element, or its size",
                       py_type_text(c, v->type));
    }
}

bool py_to_index(py_ctx *c, const py_node *at, const py_val *v, const char *what, py_val *out) {
    py_scalar s = py_scalar_of(v);
    if (!py_scalar_is_integral(s))
        return py_fail(c, at, "%s must be an integer, not %s%s", what, py_type_text(c, v->type),
                       py_scalar_is_float(s) ? ": write int(...) or //" : py_advice(c, v->type));
    return py_to_scalar(c, at, v, s == PY_S_U64 ? PY_S_U64 : PY_S_I64, out);
}
