/* Types of kernel values: equality, slots, names, unification; making values and emitting IR.
 *
 * Where values of a variable meet, they take NumPy's promotion of their types, as Numba unifies
 * (numba.types.Number.unify).
 */
#include "base/strbuf.h"
#include "frontend/python/work.h"

#include <stdlib.h>
#include <string.h>

const py_type py_type_unknown = {.kind = TY_UNKNOWN}, py_type_none = {.kind = TY_NONE},
              py_type_string = {.kind = TY_STRING};

static const py_type scalar_types[PY_SCALAR_COUNT] = {
#define ROW(s) [PY_S_##s] = {.kind = TY_SCALAR, .scalar = PY_S_##s}
    ROW(NONE), ROW(BOOL), ROW(I8),  ROW(I16), ROW(I32), ROW(I64), ROW(U8),   ROW(U16),
    ROW(U32),  ROW(U64),  ROW(F16), ROW(F32), ROW(F64), ROW(C64), ROW(C128),
#undef ROW
};
const py_type *py_type_scalar(py_scalar s) { return &scalar_types[s]; }

ir_type py_scalar_ir(py_scalar s) {
    static const uint8_t table[PY_SCALAR_COUNT] = {
        [PY_S_BOOL] = IR_I1, [PY_S_I8] = IR_I8,   [PY_S_I16] = IR_I16, [PY_S_I32] = IR_I32,
        [PY_S_I64] = IR_I64, [PY_S_U8] = IR_I8,   [PY_S_U16] = IR_I16, [PY_S_U32] = IR_I32,
        [PY_S_U64] = IR_I64, [PY_S_F16] = IR_F16, [PY_S_F32] = IR_F32, [PY_S_F64] = IR_F64,
        [PY_S_C64] = IR_F32, [PY_S_C128] = IR_F64};
    return (ir_type)table[s];
}

ir_type py_scalar_memory_ir(py_scalar s) { return s == PY_S_BOOL ? IR_I8 : py_scalar_ir(s); }

bool py_type_equal(const py_type *a, const py_type *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->scalar != b->scalar || a->ndim != b->ndim || a->count != b->count)
        return false;
    if (a->layout != b->layout || a->readonly != b->readonly || a->space != b->space ||
        a->given != b->given)
        return false;
    if (a->kind == TY_ENTITY) {
        const py_entity *x = a->entity, *y = b->entity;
        if (x->kind != y->kind || x->handle != y->handle || x->type != y->type ||
            !py_record_equal(x->record, y->record))
            return false;
        if (x->kind == PY_ENTITY_INTRINSIC) return strcmp(x->name, y->name) == 0;
        return x == y || x->handle != NULL || x->kind == PY_ENTITY_TYPE;
    }
    if (a->kind == TY_CHARS) return true;
    for (uint32_t i = 0; i < a->count; i++)
        if (!py_type_equal(a->items[i], b->items[i])) return false;
    return py_names_equal(a->names, b->names) && py_record_equal(a->record, b->record);
}

uint32_t py_type_slots(const py_type *t) {
    uint32_t n = 0;
    switch ((py_type_kind)t->kind) {
    case TY_SCALAR: return py_scalar_is_complex(t->scalar) ? 2 : 1;
    case TY_ARRAY: return 1 + 2u * t->ndim;
    case TY_RECORD: return py_type_slots(t->items[0]) + t->ndim;
    case TY_RANGE:
    case TY_SLICE: return 3;
    case TY_TUPLE:
    case TY_ZIP:
        for (uint32_t i = 0; i < t->count; i++) n += py_type_slots(t->items[i]);
        return n;
    case TY_OPTIONAL: return 1 + py_type_slots(t->items[0]);
    case TY_CHARS: return py_chars_words(t);
    case TY_POINTER: return 3;
    default: return 0;
    }
}

ir_type py_type_slot(const py_type *t, uint32_t i) {
    switch ((py_type_kind)t->kind) {
    case TY_SCALAR:
    case TY_RANGE: return py_scalar_ir(t->scalar);
    case TY_POINTER:
    case TY_ARRAY: return i == 0 ? t->space : IR_I64;
    case TY_RECORD: return i == 0 ? t->items[0]->space : IR_I64;
    case TY_TUPLE:
    case TY_ZIP:
        for (uint32_t k = 0; k < t->count; k++) {
            uint32_t n = py_type_slots(t->items[k]);
            if (i < n) return py_type_slot(t->items[k], i);
            i -= n;
        }
        return IR_I64;
    case TY_OPTIONAL: return i == 0 ? IR_I1 : py_type_slot(t->items[0], i - 1);
    default: return IR_I64;
    }
}

static void print_chars(strbuf *b, uint32_t width, uint32_t count) {
    strbuf_printf(b, "%s x %u", width == 1 ? "char" : "unichr", count); /* as Numba */
}

static void print_element(strbuf *b, const py_type *t) {
    if (py_is_chars(t->record)) {
        print_chars(b, t->record->width, t->record->size / t->record->width);
        return;
    }
    strbuf_puts(b, t->record != NULL ? "record(" : py_scalar_name(t->scalar));
    for (uint32_t i = 0; t->record != NULL && i < t->record->count; i++)
        strbuf_printf(b, "%s%s", i > 0 ? ", " : "", t->record->fields[i].name);
    if (t->record != NULL) strbuf_puts(b, ")");
}

static void print_type(strbuf *b, const py_type *t) {
    switch ((py_type_kind)t->kind) {
    case TY_UNKNOWN: strbuf_puts(b, "undefined"); break;
    case TY_NONE: strbuf_puts(b, "None"); break;
    case TY_SCALAR: strbuf_puts(b, py_scalar_name(t->scalar)); break;
    case TY_ARRAY:
        strbuf_puts(b, "array(");
        print_element(b, t);
        strbuf_printf(b, ", %dd, %c%s)", t->ndim, t->layout, t->readonly ? ", readonly" : "");
        break;
    case TY_RECORD: print_element(b, t->items[0]); break;
    case TY_TUPLE:
        if (t->names != NULL && t->names->element != PY_S_NONE) {
            strbuf_puts(b, t->names->name);
            break;
        }
        strbuf_printf(b, "%s(", t->names != NULL ? t->names->name : "tuple");
        for (uint32_t i = 0; i < t->count; i++) {
            if (i > 0) strbuf_puts(b, ", ");
            print_type(b, t->items[i]);
        }
        strbuf_puts(b, ")");
        break;
    case TY_RANGE: strbuf_puts(b, "range"); break;
    case TY_ZIP: strbuf_puts(b, "iterator"); break;
    case TY_SLICE: strbuf_puts(b, "slice"); break;
    case TY_STRING: strbuf_puts(b, "string"); break;
    case TY_CHARS: print_chars(b, t->scalar == PY_S_U8 ? 1 : 4, t->count); break;
    case TY_OPTIONAL:
        strbuf_puts(b, "None or ");
        print_type(b, t->items[0]);
        break;
    case TY_MIXED: strbuf_puts(b, "of several types"); break;
    case TY_POINTER: strbuf_printf(b, "%s*", py_scalar_name(t->scalar)); break;
    case TY_ENTITY: {
        static const char *const what[] = {"constant", "tuple",    "array",    "type",
                                           "function", "function", "function", "module",
                                           "class",    "class",    "function", "object"};
        _Static_assert(sizeof what / sizeof *what == PY_ENTITY_OBJECT + 1, "a word per kind");
        strbuf_puts(b, what[t->entity->kind]);
        if (t->entity->kind == PY_ENTITY_TYPE)
            strbuf_printf(b, " %s", t->entity->record ? "record" : py_scalar_name(t->entity->type));
        else if (t->entity->name != NULL)
            strbuf_printf(b, " %s", py_as_written(t->entity->name));
        break;
    }
    }
}

const char *py_type_text(py_ctx *c, const py_type *t) {
    strbuf b;
    strbuf_init_in(&b, c->mem);
    print_type(&b, t);
    return strbuf_text(&b);
}

/* ---- unification ---- */

static int int_bits(py_scalar s) { return (int)py_scalar_bytes(s) * 8; }

static py_scalar float_for(py_scalar s) { /* the float an integer promotes to (NumPy) */
    int bits = s == PY_S_BOOL ? 1 : int_bits(s);
    return bits <= 8 ? PY_S_F16 : bits <= 16 ? PY_S_F32 : PY_S_F64;
}

py_scalar py_scalar_unify(py_scalar a, py_scalar b) {
    if (a == b) return a;
    if (a > b) {
        py_scalar t = a;
        a = b;
        b = t;
    }
    if (a == PY_S_BOOL) return b;
    if (py_scalar_is_int(b)) { /* a too, and a signed when the signs differ */
        if (py_scalar_is_signed(a) == py_scalar_is_signed(b)) return b;
        if (int_bits(a) > int_bits(b)) return a;
        return b == PY_S_U8    ? PY_S_I16
               : b == PY_S_U16 ? PY_S_I32
               : b == PY_S_U32 ? PY_S_I64
                               : PY_S_F64;
    }
    py_scalar part = py_scalar_part(b), other = py_scalar_is_int(a) ? float_for(a) : a;
    other = py_scalar_part(other);
    if (other > part) part = other;
    if (!py_scalar_is_complex(b)) return part;
    return part == PY_S_F64 ? PY_S_C128 : PY_S_C64;
}

static const py_type *unify_tuples(py_ctx *c, const py_type *a, const py_type *b) {
    if (a->count != b->count || !py_names_equal(a->names, b->names)) return NULL;
    const py_type **items = PY_NEW(c, const py_type *, a->count + 1);
    for (uint32_t i = 0; i < a->count; i++) {
        items[i] = py_type_unify(c, a->items[i], b->items[i]);
        if (items[i] == NULL) return NULL;
    }
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_TUPLE, .count = a->count, .items = items, .names = a->names};
    return t;
}

/* One of the two is None, or may be. */
static const py_type *unify_optional(py_ctx *c, const py_type *a, const py_type *b) {
    if (a->kind == TY_NONE || b->kind == TY_OPTIONAL) {
        const py_type *t = a;
        a = b;
        b = t;
    }
    const py_type **items = PY_NEW(c, const py_type *, 1);
    items[0] = a->kind == TY_OPTIONAL ? a->items[0] : a;
    if (b->kind == TY_OPTIONAL) b = b->items[0];
    if (b->kind != TY_NONE) items[0] = py_type_unify(c, items[0], b);
    bool possible =
        items[0] != NULL && (items[0]->kind == TY_SCALAR || items[0]->kind == TY_ARRAY ||
                             items[0]->kind == TY_TUPLE || items[0]->kind == TY_CHARS);
    return possible ? py_type_tuple(c, items, 1, TY_OPTIONAL) : NULL;
}

const py_type *py_type_unify(py_ctx *c, const py_type *a, const py_type *b) {
    if (a->kind == TY_UNKNOWN) return b;
    if (b->kind == TY_UNKNOWN || py_type_equal(a, b)) return a;
    if (a->kind == TY_NONE || b->kind == TY_NONE || a->kind == TY_OPTIONAL ||
        b->kind == TY_OPTIONAL)
        return unify_optional(c, a, b);
    if (a->kind != b->kind) return NULL;
    if (a->kind == TY_SCALAR) return py_type_scalar(py_scalar_unify(a->scalar, b->scalar));
    if (a->kind == TY_TUPLE) return unify_tuples(c, a, b);
    if (a->kind == TY_CHARS) return py_chars_unify(c, a, b);
    if (a->kind == TY_RECORD && a->ndim == b->ndim) {
        const py_type **of = PY_NEW(c, const py_type *, 1);
        of[0] = py_type_unify(c, a->items[0], b->items[0]);
        py_type *t = PY_NEW(c, py_type, 1);
        *t = (py_type){.kind = TY_RECORD, .ndim = a->ndim, .count = 1, .items = of};
        return of[0] != NULL ? t : NULL;
    }
    if (a->kind == TY_RANGE) {
        py_scalar s = py_scalar_unify(a->scalar, b->scalar);
        if (!py_scalar_is_int(s)) return NULL;
        py_type *t = PY_NEW(c, py_type, 1);
        *t = (py_type){.kind = TY_RANGE, .scalar = s};
        return t;
    }
    if (a->kind == TY_ARRAY && a->scalar == b->scalar && a->ndim == b->ndim &&
        a->space == b->space && py_record_equal(a->record, b->record)) /* layouts differ: any */
        return py_type_array(c, a->scalar, a->record, a->ndim,
                             a->layout == b->layout ? a->layout : 'A', a->space,
                             a->readonly || b->readonly);
    return NULL;
}

const py_type *py_type_array(py_ctx *c, py_scalar s, const py_record *record, int ndim, char layout,
                             ir_type space, bool readonly) {
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_ARRAY,
                   .scalar = s,
                   .record = record,
                   .ndim = (uint8_t)ndim,
                   .layout = layout,
                   .space = space,
                   .readonly = readonly};
    return t;
}

const py_type *py_type_tuple(py_ctx *c, const py_type *const *items, uint32_t count, uint8_t kind) {
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = kind, .count = count, .items = items};
    return t;
}

const py_type *py_type_entity(py_ctx *c, const py_entity *e) {
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_ENTITY, .entity = e};
    return t;
}

py_scalar py_scalar_of(const py_val *v) {
    return v->type->kind == TY_SCALAR ? (py_scalar)v->type->scalar : PY_S_NONE;
}

/* ---- values ---- */

py_val py_val_scalar(py_ctx *c, py_scalar s, ir_value *v) {
    py_val out = {.type = py_type_scalar(s)};
    if (c->emit) {
        out.v = PY_NEW(c, ir_value *, 1);
        out.v[0] = v;
    }
    return out;
}

py_val py_val_complex(py_ctx *c, py_scalar s, ir_value *re, ir_value *im) {
    py_val out = {.type = py_type_scalar(s)};
    if (c->emit) {
        out.v = PY_NEW(c, ir_value *, 2);
        out.v[0] = re;
        out.v[1] = im;
    }
    return out;
}

py_val py_val_int(py_ctx *c, int64_t value) {
    py_val out = py_val_scalar(c, PY_S_I64, py_emit_int(c, IR_I64, value));
    out.is_const = true;
    out.value = (py_constant){.kind = PY_VALUE_INT, .integer = value};
    out.nonneg = value >= 0;
    return out;
}

py_val py_val_bool(py_ctx *c, bool value) {
    py_val out = py_val_scalar(c, PY_S_BOOL, py_emit_int(c, IR_I1, value));
    out.is_const = true;
    out.value = (py_constant){.kind = PY_VALUE_BOOL, .boolean = value};
    return out;
}

py_val py_val_none(void) { return (py_val){.type = &py_type_none}; }

bool py_constant_equal(const py_constant *a, const py_constant *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == PY_VALUE_STRING || a->kind == PY_VALUE_BYTES)
        return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
    return a->integer == b->integer && a->imaginary == b->imaginary;
}

static double constant_real(const py_constant *k) {
    switch (k->kind) {
    case PY_VALUE_BOOL: return k->boolean;
    case PY_VALUE_INT: return (double)k->integer;
    case PY_VALUE_UINT: return (double)k->unsigned_integer;
    default: return k->real;
    }
}

static int64_t constant_bits(const py_constant *k) {
    switch (k->kind) {
    case PY_VALUE_BOOL: return k->boolean;
    case PY_VALUE_FLOAT: return (int64_t)k->real;
    default: return k->integer; /* of UINT: the same bits */
    }
}

static py_scalar constant_type(py_ctx *c, const py_constant *k) {
    switch (k->kind) {
    case PY_VALUE_BOOL: return PY_S_BOOL;
    case PY_VALUE_INT: return PY_S_I64;
    case PY_VALUE_UINT: return PY_S_U64;
    case PY_VALUE_FLOAT: return PY_S_F64;
    case PY_VALUE_COMPLEX: return PY_S_C128;
    default: return PY_S_NONE;
    }
}

py_val py_val_constant(py_ctx *c, const py_constant *k, py_scalar type) {
    py_val out;
    if (k->kind == PY_VALUE_NONE) return py_val_none();
    if (k->kind == PY_VALUE_STRING || k->kind == PY_VALUE_BYTES)
        return (py_val){.type = &py_type_string, .is_const = true, .value = *k};
    if (type == PY_S_NONE) type = constant_type(c, k);
    ir_type t = py_scalar_ir(type);
    if (py_scalar_is_complex(type))
        out = py_val_complex(c, type, py_emit_float(c, t, constant_real(k)),
                             py_emit_float(c, t, k->kind == PY_VALUE_COMPLEX ? k->imaginary : 0));
    else if (py_scalar_is_float(type))
        out = py_val_scalar(c, type, py_emit_float(c, t, constant_real(k)));
    else
        out = py_val_scalar(c, type, py_emit_int(c, t, constant_bits(k)));
    out.is_const = true;
    out.value = *k;
    out.nonneg = (py_scalar_is_int(type) && constant_bits(k) >= 0) || py_scalar_is_unsigned(type);
    return out;
}

py_val py_val_entity(py_ctx *c, const py_entity *e) {
    return (py_val){.type = py_type_entity(c, e)};
}

bool py_take_value(py_ctx *c, const py_node *at, py_val *v) {
    if (v->type->kind != TY_OPTIONAL) return true;
    kernel_fault f = {
        .kind = KERNEL_FAULT_NONE, .text = "None where a value is needed", .argument = -1};
    py_fault_unless(c, at, py_slot(v, 0), &f);
    *v = py_val_present(v);
    return true;
}

py_val py_val_present(const py_val *v) {
    if (v->type->kind != TY_OPTIONAL) return *v;
    return py_val_from_slots(v->type->items[0], v->v != NULL ? v->v + 1 : NULL);
}

py_val py_val_from_slots(const py_type *t, ir_value **v) { return (py_val){.type = t, .v = v}; }

py_val py_val_tuple(py_ctx *c, py_val *items, uint32_t count) {
    const py_type **types = PY_NEW(c, const py_type *, count + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        types[i] = items[i].type;
        n += py_type_slots(types[i]);
    }
    py_val out = {.type = py_type_tuple(c, types, count, TY_TUPLE), .items = items};
    if (!c->emit) return out;
    out.v = PY_NEW(c, ir_value *, n + 1);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < py_type_slots(types[i]); k++) out.v[at++] = items[i].v[k];
    return out;
}

py_val py_val_item(const py_val *tuple, uint32_t i) {
    if (tuple->items != NULL) return tuple->items[i];
    uint32_t at = 0;
    for (uint32_t k = 0; k < i; k++) at += py_type_slots(tuple->type->items[k]);
    return py_val_from_slots(tuple->type->items[i], tuple->v != NULL ? tuple->v + at : NULL);
}

/* ---- emitting ---- */

ir_value *py_emit_int(py_ctx *c, ir_type t, int64_t value) {
    return c->emit ? ir_const_int(&c->b, t, value) : NULL;
}
ir_value *py_emit_float(py_ctx *c, ir_type t, double value) {
    return c->emit ? ir_const_float(&c->b, t, value) : NULL;
}
ir_value *py_emit_unary(py_ctx *c, ir_op op, ir_value *a) {
    return c->emit ? ir_unary(&c->b, op, a) : NULL;
}
ir_value *py_emit_binary(py_ctx *c, ir_op op, ir_value *a, ir_value *b) {
    return c->emit ? ir_binary(&c->b, op, a, b) : NULL;
}
ir_value *py_emit_ternary(py_ctx *c, ir_op op, ir_value *a, ir_value *b, ir_value *d) {
    return c->emit ? ir_ternary(&c->b, op, a, b, d) : NULL;
}
ir_value *py_emit_select(py_ctx *c, ir_value *cond, ir_value *yes, ir_value *no) {
    return c->emit ? ir_select(&c->b, cond, yes, no) : NULL;
}
ir_value *py_emit_cast(py_ctx *c, ir_op op, ir_type to, ir_value *a) {
    return c->emit ? ir_cast(&c->b, op, to, a) : NULL;
}
ir_value *py_emit_special(py_ctx *c, ir_special s) {
    return c->emit ? ir_special_value(&c->b, s) : NULL;
}
ir_value *py_emit_zero(py_ctx *c, ir_type t) { return c->emit ? ir_const_bits(&c->b, t, 0) : NULL; }
ir_value *py_emit_load(py_ctx *c, ir_type t, ir_value *ptr) {
    return c->emit ? ir_load(&c->b, t, ptr, IR_MEM(IR_PLAIN, IR_SCOPE_BLOCK)) : NULL;
}
void py_emit_store(py_ctx *c, ir_value *ptr, ir_value *v) {
    if (c->emit) ir_store(&c->b, ptr, v, IR_MEM(IR_PLAIN, IR_SCOPE_BLOCK));
}
ir_value *py_emit_ptradd(py_ctx *c, ir_value *ptr, ir_value *bytes) {
    return c->emit ? ir_ptradd(&c->b, ptr, bytes) : NULL;
}

py_if py_begin_if(py_ctx *c, ir_value *cond, const ir_type *types, uint32_t n) {
    py_if i = {0};
    if (!c->emit) return i;
    i.after = c->b.at;
    i.inst = ir_if(&c->b, cond, types, n);
    c->b.at = i.inst->regions[0];
    return i;
}

void py_else(py_ctx *c, py_if *i, ir_value **values, uint32_t n) {
    if (!c->emit) return;
    if (!ir_region_is_ended(c->b.at)) ir_br(&c->b, i->inst, values, n);
    c->b.at = i->inst->regions[1];
}

void py_end_if(py_ctx *c, py_if *i, ir_value **values, uint32_t n, ir_value **results) {
    if (!c->emit) return;
    if (!ir_region_is_ended(c->b.at)) ir_br(&c->b, i->inst, values, n);
    c->b.at = i->after;
    for (uint32_t k = 0; k < n && results != NULL; k++) results[k] = &i->inst->results[k];
}
