/* Python's built-in functions on kernel values. */
#include "frontend/python/intrinsics.h"
#include "kernel/prints.h"

#include "base/strbuf.h"

#include <string.h>

bool builtin_range(py_ctx *c, py_call *x, py_val *out) {
    py_val part[3] = {py_val_int(c, 0), py_val_int(c, 0), py_val_int(c, 1)};
    if (!py_check_arguments(c, x, 1, 3, "")) return false;
    py_scalar type = PY_S_NONE;
    bool is_unsigned = true;
    for (uint32_t i = 0; i < x->nargs; i++) {
        py_val *a = &x->args[i];
        py_scalar s = py_scalar_of(a);
        if (!py_scalar_is_integral(s))
            return py_fail(c, x->node, "range takes integers, not %s%s", py_type_text(c, a->type),
                           py_scalar_is_float(s) ? ": write int(...)" : py_advice(c, a->type));
        /* as Numba: int32 for int32 arguments alone, uint64 for unsigned ones alone, else int64 */
        is_unsigned = is_unsigned && py_scalar_is_unsigned(s);
        py_scalar wide = s == PY_S_U64 ? PY_S_U64 : s <= PY_S_I32 ? PY_S_I32 : PY_S_I64;
        type = type == PY_S_NONE || type == wide ? wide : PY_S_I64;
        part[x->nargs == 1 ? 1 : i] = *a;
    }
    if (is_unsigned) type = PY_S_U64;
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_RANGE, .scalar = type};
    py_val *items = PY_NEW(c, py_val, 3);
    *out = (py_val){.type = t, .items = items};
    if (c->emit) out->v = PY_NEW(c, ir_value *, 3);
    for (int i = 0; i < 3; i++) {
        if (!py_to_scalar(c, x->node, &part[i], type, &items[i])) return false;
        if (c->emit) out->v[i] = items[i].v[0];
    }
    if (items[2].is_const && items[2].value.kind == PY_VALUE_INT && items[2].value.integer == 0)
        return py_fail(c, x->node, "range() arg 3 must not be zero");
    out->nonneg = items[0].nonneg && items[2].nonneg;
    return true;
}

bool builtin_len(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    const py_val *a = &x->args[0];
    ir_value *n;
    int64_t known;
    if (py_is_text(a)) return py_chars_length(c, x->node, a, out);
    if (a->type->kind == TY_ARRAY && a->type->ndim == 0)
        return py_fail(c, x->node, "len() of an array of no dimensions");
    if (a->type->kind == TY_ARRAY && a->origin != NULL && a->origin->is_static) {
        *out = py_val_int(c, a->origin->shape[0]);
        return true;
    }
    if (a->type->kind != TY_ARRAY && a->type->kind != TY_TUPLE && a->type->kind != TY_RANGE)
        return py_fail(c, x->node, "%s has no len()", py_type_text(c, a->type));
    if (!py_iter_length(c, x->node, a, &n, &known)) return false;
    *out = known >= 0 ? py_val_int(c, known) : py_val_scalar(c, PY_S_I64, n);
    out->nonneg = true;
    return true;
}

/* min and max: the first of equal ones; NaN as Python compares. */
bool builtin_extreme(py_ctx *c, py_call *x, py_val *out) {
    if (x->nkeywords > 0) return py_fail(c, x->node, "%s has no keyword arguments here", x->name);
    py_val *items = x->args;
    uint32_t n = x->nargs;
    if (n == 1 && items[0].type->kind == TY_TUPLE) {
        py_val *tuple = items;
        n = tuple->type->count;
        items = PY_NEW(c, py_val, n + 1);
        for (uint32_t i = 0; i < n; i++) items[i] = py_val_item(tuple, i);
    } else if (n == 1) {
        return py_fail(c, x->node, "%s of %s: give it two or more numbers, or a tuple",
                       py_as_written(x->name), py_type_text(c, items[0].type));
    }
    if (n == 0) return py_fail(c, x->node, "%s of nothing", x->name);
    const py_type *t = items[0].type;
    for (uint32_t i = 0; i < n; i++) {
        t = t->kind == TY_SCALAR ? py_type_unify(c, t, items[i].type) : NULL;
        if (t == NULL || t->kind != TY_SCALAR || py_scalar_is_complex(t->scalar))
            return py_fail(c, x->node, "%s takes real numbers, not %s%s", py_as_written(x->name),
                           py_type_text(c, items[i].type), py_advice(c, items[i].type));
    }
    py_val best, next, better;
    if (!py_convert(c, x->node, &items[0], t, &best)) return false;
    for (uint32_t i = 1; i < n; i++) {
        if (!py_convert(c, x->node, &items[i], t, &next) ||
            !py_compare(c, x->node, (py_operator)x->extra, &next, &best, &better))
            return false;
        if (better.is_const) {
            if (better.value.boolean) best = next;
            continue;
        }
        bool nonneg = x->extra == PY_LT ? best.nonneg && next.nonneg : best.nonneg || next.nonneg;
        best = py_val_scalar(
            c, t->scalar,
            py_emit_select(c, py_slot(&better, 0), py_slot(&next, 0), py_slot(&best, 0)));
        best.nonneg = nonneg;
    }
    *out = best;
    return true;
}

bool builtin_tuple(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 0, 1, "")) return false;
    uint32_t n = x->nargs > 0 ? x->args[0].type->count : 0;
    if (x->nargs > 0 && x->args[0].type->kind != TY_TUPLE)
        return py_fail(c, x->node, "tuple() of %s: only a tuple's length is known to a kernel",
                       py_type_text(c, x->args[0].type));
    py_val *items = PY_NEW(c, py_val, n + 1);
    for (uint32_t i = 0; i < n; i++) items[i] = py_val_item(&x->args[0], i);
    *out = py_val_tuple(c, items, n);
    return true;
}

bool builtin_abs(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    py_val v = x->args[0];
    py_scalar s = py_scalar_of(&v);
    if (s == PY_S_NONE) return py_fail(c, x->node, "abs() of %s", py_type_text(c, v.type));
    if (s == PY_S_BOOL && !py_to_scalar(c, x->node, &v, s = PY_S_I64, &v)) return false;
    if (py_scalar_is_complex(s)) {
        *out =
            py_val_scalar(c, py_scalar_part(s), py_emit_hypot(c, py_slot(&v, 0), py_slot(&v, 1)));
        return true;
    }
    *out = v;
    if (py_scalar_is_unsigned(s)) return true;
    *out = py_val_scalar(c, s,
                         py_emit_unary(c, py_scalar_is_int(s) ? IR_ABS : IR_FABS, py_slot(&v, 0)));
    out->nonneg = py_scalar_is_int(s);
    return true;
}

/* round(x): to even, an int64; round(x, n): x scaled by a power of ten, as Numba does it. */
bool builtin_round(py_ctx *c, py_call *x, py_val *out) {
    py_val n, v;
    if (!py_check_arguments(c, x, 1, 2, "ndigits")) return false;
    py_scalar s = py_scalar_of(&x->args[0]);
    py_val *digits = py_argument(x, 1, "ndigits");
    if (s == PY_S_NONE || py_scalar_is_complex(s))
        return py_fail(c, x->node, "round() of %s", py_type_text(c, x->args[0].type));
    bool whole = digits == NULL || digits->type->kind == TY_NONE;
    if (!py_scalar_is_float(s) && whole)
        return py_to_scalar(c, x->node, &x->args[0], PY_S_I64, out);
    if (!py_scalar_is_float(s)) /* as Numba: an integer with digits becomes a float */
        s = s == PY_S_U16 ? PY_S_F64 : py_scalar_unify(s, PY_S_F32);
    if (!py_to_scalar(c, x->node, &x->args[0], s, &v)) return false;
    if (whole) {
        *out = py_val_scalar(
            c, PY_S_I64,
            py_emit_cast(c, IR_FPTOSI, IR_I64, py_emit_unary(c, IR_FRINT, py_slot(&v, 0))));
        return true;
    }
    if (!py_to_index(c, x->node, digits, "the number of digits", &n)) return false;
    ir_value *wide =
        s == PY_S_F64 ? py_slot(&v, 0) : py_emit_cast(c, IR_FPEXT, IR_F64, py_slot(&v, 0));
    ir_value *power = py_emit_binary(
        c, IR_POW, py_emit_float(c, IR_F64, 10),
        py_emit_cast(c, IR_SITOFP, IR_F64, py_emit_unary(c, IR_ABS, py_slot(&n, 0))));
    ir_value *down = py_emit_binary(c, IR_LT_S, py_slot(&n, 0), py_emit_zero(c, IR_I64));
    ir_value *up = py_emit_binary(
        c, IR_FDIV, py_emit_unary(c, IR_FRINT, py_emit_binary(c, IR_FMUL, wide, power)), power);
    ir_value *low = py_emit_binary(
        c, IR_FMUL, py_emit_unary(c, IR_FRINT, py_emit_binary(c, IR_FDIV, wide, power)), power);
    ir_value *r = py_emit_select(c, down, low, up);
    ir_value *finite =
        py_emit_binary(c, IR_FEQ, py_emit_binary(c, IR_FSUB, r, r), py_emit_float(c, IR_F64, 0));
    r = py_emit_select(c, finite, r, wide); /* too large to have such digits */
    if (s != PY_S_F64) r = py_emit_cast(c, IR_FPTRUNC, py_scalar_ir(s), r);
    *out = py_val_scalar(c, s, r);
    return true;
}

bool builtin_divmod(py_ctx *c, py_call *x, py_val *out) {
    py_val *items = PY_NEW(c, py_val, 2);
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    if (!py_binary(c, x->node, PY_FLOORDIV, &x->args[0], &x->args[1], &items[0]) ||
        !py_binary(c, x->node, PY_MOD, &x->args[0], &x->args[1], &items[1]))
        return false;
    *out = py_val_tuple(c, items, 2);
    return true;
}

bool builtin_binary(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    return py_binary(c, x->node, (py_operator)x->extra, &x->args[0], &x->args[1], out);
}

bool builtin_unary(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    return py_unary(c, x->node, (py_operator)x->extra, &x->args[0], out);
}

static bool is_iterable(const py_val *v) {
    py_type_kind k = v->type->kind;
    return (k == TY_ARRAY && v->type->ndim > 0) || k == TY_TUPLE || k == TY_RANGE || k == TY_ZIP;
}

static bool make_zip(py_ctx *c, py_call *x, py_val *items, uint32_t n, py_val *out) {
    for (uint32_t i = 0; i < n; i++)
        if (!is_iterable(&items[i]))
            return py_fail(c, x->node, "%s cannot be iterated", py_type_text(c, items[i].type));
    *out = py_val_tuple(c, items, n);
    out->type = py_type_tuple(c, out->type->items, n, TY_ZIP);
    return true;
}

bool builtin_zip(py_ctx *c, py_call *x, py_val *out) {
    if (x->nkeywords > 0) return py_fail(c, x->node, "zip has no keyword arguments here");
    return make_zip(c, x, x->args, x->nargs, out);
}

bool builtin_enumerate(py_ctx *c, py_call *x, py_val *out) {
    py_val start = py_val_int(c, 0), *given;
    if (!py_check_arguments(c, x, 1, 2, "start")) return false;
    given = py_argument(x, 1, "start");
    if (given != NULL && !py_to_index(c, x->node, given, "start", &start)) return false;
    py_type *t = PY_NEW(c, py_type, 1); /* a range without end */
    *t = (py_type){.kind = TY_RANGE, .scalar = PY_S_I64, .given = 1};
    py_val *items = PY_NEW(c, py_val, 2);
    items[0] = (py_val){.type = t, .nonneg = start.nonneg};
    if (c->emit) {
        items[0].v = PY_NEW(c, ir_value *, 3);
        items[0].v[0] = start.v[0];
        items[0].v[1] = py_emit_int(c, IR_I64, INT64_MAX);
        items[0].v[2] = py_emit_int(c, IR_I64, 1);
    }
    items[1] = x->args[0];
    return make_zip(c, x, items, 2, out);
}

/* ---- print ---- */

enum { MOST_PRINT_VALUES = 32 };

typedef struct print_work {
    strbuf text;
    kernel_print format;
    py_scalar types[MOST_PRINT_VALUES];
    ir_value *values[MOST_PRINT_VALUES];
} print_work;

static bool end_text(py_ctx *c, print_work *w) {
    w->format.texts[w->format.nvalues] = arena_strdup(c->mem, strbuf_text(&w->text));
    w->text.length = 0;
    if (w->text.text != NULL) w->text.text[0] = 0;
    return true;
}

/* threadIdx and its kin as (x, y, z); others as they are. */
static bool print_operand(py_ctx *c, py_call *x, const py_val *v, py_val *out) {
    *out = *v;
    const py_entity *e = v->type->kind == TY_ENTITY ? v->type->entity : NULL;
    if (e == NULL || e->kind != PY_ENTITY_INTRINSIC) return true;
    py_val *items = PY_NEW(c, py_val, 3);
    for (int i = 0; i < 3; i++) {
        const char *name = arena_printf(c->mem, "%s.%c", e->name, "xyz"[i]);
        const py_intrinsic *part = name != NULL ? py_find_intrinsic(name) : NULL;
        if (part == NULL || !part->value) return true;
        py_call one = {.node = x->node, .name = part->name, .extra = part->extra};
        if (!part->run(c, &one, &items[i])) return false;
    }
    *out = py_val_tuple(c, items, 3);
    return true;
}

static bool print_value(py_ctx *c, py_call *x, print_work *w, const py_val *of) {
    py_val operand;
    if (!print_operand(c, x, of, &operand)) return false;
    const py_val *v = &operand;
    if (v->type->kind == TY_STRING && v->is_const && v->value.kind == PY_VALUE_STRING) {
        strbuf_puts(&w->text, v->value.text);
        return true;
    }
    if (v->type->kind == TY_NONE) {
        strbuf_puts(&w->text, "None");
        return true;
    }
    if (v->type->kind == TY_TUPLE) {
        strbuf_puts(&w->text, "(");
        for (uint32_t i = 0; i < v->type->count; i++) {
            py_val item = py_val_item(v, i);
            if (!py_take_value(c, x->node, &item)) return false;
            if (i > 0) strbuf_puts(&w->text, ", ");
            if (!print_value(c, x, w, &item)) return false;
        }
        strbuf_puts(&w->text, v->type->count == 1 ? ",)" : ")");
        return true;
    }
    py_scalar s = py_scalar_of(v);
    if (s == PY_S_NONE)
        return py_fail(c, x->node, "print() of %s in a kernel%s", py_type_text(c, v->type),
                       py_advice(c, v->type));
    uint32_t n = py_type_slots(v->type);
    if (w->format.nvalues + n > MOST_PRINT_VALUES)
        return py_fail(c, x->node, "print() of more than %d values", MOST_PRINT_VALUES);
    if (n == 2) strbuf_puts(&w->text, "("); /* complex: (re+imj) */
    for (uint32_t i = 0; i < n; i++) {
        end_text(c, w);
        uint32_t k = w->format.nvalues++;
        w->types[k] = py_scalar_part(s);
        w->format.values[k] = (kernel_shown){(uint8_t)py_scalar_dtype(w->types[k]), i == 1, NULL};
        w->values[k] = py_slot(v, (int)i);
    }
    if (n == 2) strbuf_puts(&w->text, "j)");
    return true;
}

static ir_value *to_word(py_ctx *c, ir_value *v, py_scalar s) {
    ir_type t = py_scalar_ir(s);
    if (t == IR_F16) v = py_emit_cast(c, IR_BITCAST, t = IR_I16, v);
    if (t == IR_F32) v = py_emit_cast(c, IR_BITCAST, t = IR_I32, v);
    if (t == IR_F64) return py_emit_cast(c, IR_BITCAST, IR_I64, v);
    if (t == IR_I64) return v;
    return py_emit_cast(c, py_scalar_is_signed(s) ? IR_SEXT : IR_ZEXT, IR_I64, v);
}

static void emit_record(py_ctx *c, print_work *w, uint32_t number) {
    ir_value *words[MOST_PRINT_VALUES];
    for (uint32_t k = 0; k < w->format.nvalues; k++)
        words[k] = to_word(c, w->values[k], w->types[k]);
    print_emit(&c->b, c->print_buffer, number, words, w->format.nvalues);
}

static const char *text_option(py_call *x, const char *name, const char *otherwise) {
    for (uint32_t k = 0; k < x->nkeywords; k++) {
        const py_val *v = &x->args[x->nargs + k];
        if (strcmp(x->keywords[k], name) == 0 && v->type->kind == TY_STRING &&
            v->value.kind == PY_VALUE_STRING)
            return v->value.text;
    }
    return otherwise;
}

bool builtin_print(py_ctx *c, py_call *x, py_val *out) {
    enum { MOST_FORMATS = 256 };
    print_work w = {0};
    *out = py_val_none();
    for (uint32_t k = 0; k < x->nkeywords; k++)
        if (strcmp(x->keywords[k], "sep") != 0 && strcmp(x->keywords[k], "end") != 0)
            return py_fail(c, x->node, "print has no argument '%s' in a kernel", x->keywords[k]);
    c->want_print = true;
    strbuf_init_in(&w.text, c->mem);
    w.format.texts = PY_NEW(c, const char *, MOST_PRINT_VALUES + 1);
    w.format.values = PY_NEW(c, kernel_shown, MOST_PRINT_VALUES + 1);
    bool ok = true;
    for (uint32_t i = 0; i < x->nargs && ok; i++) {
        if (i > 0) strbuf_puts(&w.text, text_option(x, "sep", " "));
        ok = print_value(c, x, &w, &x->args[i]);
    }
    if (ok) {
        strbuf_puts(&w.text, text_option(x, "end", "\n"));
        end_text(c, &w);
    }
    if (!ok || !c->emit) return ok;
    if (c->nprints == MOST_FORMATS)
        return py_fail(c, x->node, "more than %d print()s", MOST_FORMATS);
    if (c->prints == NULL) c->prints = PY_NEW(c, kernel_print, MOST_FORMATS);
    c->prints[c->nprints] = w.format;
    emit_record(c, &w, c->nprints++);
    return true;
}

/* The number of the argument's scalar type, 0 for what is no scalar. */
bool builtin_type_of(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    *out = py_val_int(c, (int64_t)py_scalar_of(&x->args[0]));
    return true;
}
