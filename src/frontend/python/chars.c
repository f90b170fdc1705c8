/* Characters: elements of NumPy's dtypes S and U, and the constants that they meet.
 *
 * A value holds its characters itself, in 64-bit words: the first one highest, zeros behind the last one. So
 * two values compare as their words do, as unsigned numbers, and NumPy's rule that zeros at the end do not
 * count needs no code. Numba's semantics (numba.cpython.charseq): what is too long for its place is cut; a
 * character at or behind the length is an index out of range, and so is a negative index.
 */
#include "frontend/python/intrinsics.h"

#include <string.h>

static uint32_t width(const py_type *t) { return t->scalar == PY_S_U8 ? 1 : 4; }
static uint32_t in_word(const py_type *t) { return 8 / width(t); }
static int bits(const py_type *t) { return 8 * (int)width(t); }

uint32_t py_chars_words(const py_type *t) { return (t->count + in_word(t) - 1) / in_word(t); }

static const py_type *type_of(py_ctx *c, py_scalar scalar, uint32_t count) {
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_CHARS, .scalar = (uint8_t)scalar, .count = count > 0 ? count : 1};
    return t;
}

const py_type *py_chars_type(py_ctx *c, const py_record *r) {
    return type_of(c, r->width == 1 ? PY_S_U8 : PY_S_U32, r->size / r->width);
}

const py_type *py_chars_unify(py_ctx *c, const py_type *a, const py_type *b) {
    if (a->scalar != b->scalar) return NULL;
    return type_of(c, (py_scalar)a->scalar, a->count > b->count ? a->count : b->count);
}

static py_val new_value(py_ctx *c, const py_type *t) {
    py_val out = {.type = t};
    if (c->emit) out.v = PY_NEW(c, ir_value *, py_chars_words(t));
    return out;
}

/* ---- memory ---- */

static ir_value *shift_of(py_ctx *c, const py_type *t, uint32_t place) {
    return py_emit_int(c, IR_I64, 64 - bits(t) * (int)(place + 1));
}

void py_chars_load(py_ctx *c, const py_type *t, ir_value *at, ir_value **out) {
    ir_type one = width(t) == 1 ? IR_I8 : IR_I32;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t word = i / in_word(t), place = i % in_word(t);
        ir_value *from = py_emit_ptradd(c, at, py_emit_int(c, IR_I64, (int64_t)i * width(t)));
        ir_value *v = py_emit_cast(c, IR_ZEXT, IR_I64, py_emit_load(c, one, from));
        v = py_emit_binary(c, IR_SHL, v, shift_of(c, t, place));
        out[word] = place == 0 ? v : py_emit_binary(c, IR_OR, out[word], v);
    }
}

void py_chars_store(py_ctx *c, const py_type *t, ir_value *at, ir_value *const *v) {
    ir_type one = width(t) == 1 ? IR_I8 : IR_I32;
    for (uint32_t i = 0; i < t->count; i++) {
        ir_value *word = v[i / in_word(t)];
        word = py_emit_binary(c, IR_SHR_U, word, shift_of(c, t, i % in_word(t)));
        py_emit_store(c, py_emit_ptradd(c, at, py_emit_int(c, IR_I64, (int64_t)i * width(t))),
                      py_emit_cast(c, IR_TRUNC, one, word));
    }
}

/* ---- values ---- */

bool py_is_text(const py_val *v) {
    return v->type->kind == TY_CHARS ||
           (v->type->kind == TY_STRING &&
            (v->value.kind == PY_VALUE_STRING || v->value.kind == PY_VALUE_BYTES));
}

/* The next character of UTF-8, which the host has checked. */
static uint32_t next_point(const uint8_t **at) {
    const uint8_t *p = *at;
    int more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
    uint32_t point = more == 0 ? *p : *p & (0x3fu >> more);
    for (int i = 1; i <= more; i++) point = point << 6 | (p[i] & 0x3f);
    *at = p + more + 1;
    return point;
}

static uint32_t next_char(const py_constant *k, const uint8_t **at) {
    return k->kind == PY_VALUE_BYTES ? *(*at)++ : next_point(at);
}

const py_type *py_text_type(py_ctx *c, const py_val *v) {
    const py_constant *k = &v->value;
    const uint8_t *p = (const uint8_t *)k->text, *end = p + k->bytes;
    uint32_t n = 0;
    if (v->type->kind == TY_CHARS) return v->type;
    for (; p < end; n++) next_char(k, &p);
    return type_of(c, k->kind == PY_VALUE_BYTES ? PY_S_U8 : PY_S_U32, n);
}

static bool of_constant(py_ctx *c, const py_node *at, const py_val *v, py_val *out) {
    const py_constant *k = &v->value;
    const uint8_t *text = (const uint8_t *)k->text, *end = text + k->bytes;
    const py_type *t = py_text_type(c, v);
    if (k->bytes > 0 && end[-1] == 0)
        return py_fail(c, at, "a constant that ends with a NUL character");
    if ((uint64_t)t->count * width(t) > PY_MOST_CHARS)
        return py_fail(c, at, "a constant of %u characters: at most %u in a kernel", t->count,
                       PY_MOST_CHARS / width(t));
    *out = new_value(c, t);
    const uint8_t *p = text;
    for (uint32_t w = 0; w < py_chars_words(t); w++) {
        uint64_t word = 0;
        for (uint32_t i = 0; i < in_word(t); i++)
            if (p < end) word |= (uint64_t)next_char(k, &p) << (64 - bits(t) * (int)(i + 1));
        if (c->emit) out->v[w] = py_emit_int(c, IR_I64, (int64_t)word);
    }
    return true;
}

bool py_to_chars(py_ctx *c, const py_node *at, const py_val *v, py_val *out) {
    *out = *v;
    return v->type->kind == TY_CHARS || of_constant(c, at, v, out);
}

static ir_value *word_or_zero(py_ctx *c, const py_val *v, uint32_t w) {
    return w < py_chars_words(v->type) ? py_slot(v, (int)w) : py_emit_zero(c, IR_I64);
}

bool py_chars_convert(py_ctx *c, const py_node *at, const py_val *v, const py_type *to,
                      py_val *out) {
    py_val from;
    const char *is = to->scalar == PY_S_U8 ? "bytes" : "str";
    if (!py_is_text(v))
        return py_fail(c, at, "%s expected, not %s%s", is, py_type_text(c, v->type),
                       py_advice(c, v->type));
    if (!py_to_chars(c, at, v, &from)) return false;
    if (from.type->scalar != to->scalar)
        return py_fail(c, at, "%s expected, not %s", is, to->scalar == PY_S_U8 ? "str" : "bytes");
    *out = new_value(c, to);
    if (!c->emit) return true;
    for (uint32_t w = 0; w < py_chars_words(to); w++) out->v[w] = word_or_zero(c, &from, w);
    uint32_t used = to->count % in_word(to), last = py_chars_words(to) - 1;
    if (used != 0 && from.type->count > to->count)
        out->v[last] =
            py_emit_binary(c, IR_AND, out->v[last],
                           py_emit_int(c, IR_I64, (int64_t)(~0ull << (64 - bits(to) * (int)used))));
    return true;
}

/* ---- length, characters ---- */

static ir_value *length_of(py_ctx *c, const py_val *v) {
    ir_value *n = py_emit_zero(c, IR_I64), *zero = n;
    int per = (int)in_word(v->type);
    for (uint32_t w = 0; w < py_chars_words(v->type); w++) {
        ir_value *word = py_slot(v, (int)w);
        ir_value *behind = py_emit_binary(c, IR_SHR_U, py_emit_unary(c, IR_CTZ, word),
                                          py_emit_int(c, IR_I64, per == 8 ? 3 : 5));
        ir_value *here =
            py_emit_binary(c, IR_SUB, py_emit_int(c, IR_I64, (int64_t)(w + 1) * per), behind);
        n = py_emit_select(c, py_emit_binary(c, IR_NE, word, zero), here, n);
    }
    return n;
}

bool py_chars_length(py_ctx *c, const py_node *at, const py_val *of, py_val *out) {
    py_val v;
    if (!py_to_chars(c, at, of, &v)) return false;
    *out = py_val_scalar(c, PY_S_I64, length_of(c, &v));
    out->nonneg = true;
    return true;
}

/* The code of character i, which is at least 0; 0 behind the last. */
static ir_value *code_at(py_ctx *c, const py_val *v, ir_value *i) {
    const py_type *t = v->type;
    int64_t per = in_word(t);
    ir_value *which = py_emit_binary(c, IR_SHR_U, i, py_emit_int(c, IR_I64, per == 8 ? 3 : 1));
    ir_value *word = py_emit_zero(c, IR_I64);
    for (uint32_t w = 0; w < py_chars_words(t); w++)
        word = py_emit_select(c, py_emit_binary(c, IR_EQ, which, py_emit_int(c, IR_I64, w)),
                              py_slot(v, (int)w), word);
    ir_value *place = py_emit_binary(c, IR_AND, i, py_emit_int(c, IR_I64, per - 1));
    place = py_emit_binary(c, IR_SHL, place, py_emit_int(c, IR_I64, per == 8 ? 3 : 5));
    word = py_emit_binary(c, IR_SHL, word, place);
    return py_emit_binary(c, IR_SHR_U, word, py_emit_int(c, IR_I64, 64 - bits(t)));
}

/* simt.char_code(s, i): what the functions of the library read. */
bool text_code(py_ctx *c, py_call *x, py_val *out) {
    py_val v, i;
    if (!py_check_arguments(c, x, 2, 2, "")) return false;
    if (!py_is_text(&x->args[0])) return py_fail(c, x->node, "a string expected");
    if (!py_to_chars(c, x->node, &x->args[0], &v)) return false;
    if (!py_to_index(c, x->node, &x->args[1], "an index", &i)) return false;
    *out = py_val_scalar(c, PY_S_I64, code_at(c, &v, py_slot(&i, 0)));
    out->nonneg = true;
    return true;
}

static void report(py_ctx *c, const py_node *at, ir_value *index, ir_value *length) {
    const py_node *base = at->kind == PY_SUBSCRIPT ? at->a : NULL;
    const char *name = base != NULL && base->kind == PY_NAME ? base->name : "string";
    kernel_fault f = {.kind = KERNEL_FAULT_INDEX, .name = name, .ndim = -1, .argument = -1};
    ir_value *values[3] = {index, py_emit_zero(c, IR_I64), length};
    uint32_t number = py_add_fault(c, at, &f);
    if (c->emit) ir_fault(&c->b, number, values, 3);
}

bool py_chars_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                   py_val *out) {
    py_val v, i;
    if (index->type->kind == TY_SLICE)
        return py_fail(c, at, "a part of a string, s[a:b], is not in simt yet: take a character");
    if (!py_to_index(c, at, index, "an index", &i) || !py_to_chars(c, at, of, &v)) return false;
    ir_value *x = py_slot(&i, 0), *n = length_of(c, &v), *code = code_at(c, &v, x);
    if (c->options->bounds) {
        ir_value *inside = py_emit_binary(c, IR_LT_U, x, n);
        inside = py_emit_binary(c, IR_AND, inside,
                                py_emit_binary(c, IR_NE, code, py_emit_zero(c, IR_I64)));
        py_if test = py_begin_if(c, inside, NULL, 0);
        py_else(c, &test, NULL, 0);
        report(c, at, x, n);
        py_end_if(c, &test, NULL, 0, NULL);
    }
    if (v.type->scalar == PY_S_U8) { /* a number, and of this type */
        *out = py_val_scalar(c, PY_S_U32, py_emit_cast(c, IR_TRUNC, IR_I32, code));
        out->nonneg = true;
        return true;
    }
    *out = new_value(c, type_of(c, PY_S_U32, 1));
    if (c->emit) out->v[0] = py_emit_binary(c, IR_SHL, code, py_emit_int(c, IR_I64, 32));
    return true;
}

bool builtin_ord(py_ctx *c, py_call *x, py_val *out) {
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    if (!py_is_text(&x->args[0]))
        return py_fail(c, x->node, "ord() of %s", py_type_text(c, x->args[0].type));
    if (!py_to_chars(c, x->node, &x->args[0], &v)) return false;
    if (v.type->scalar != PY_S_U32 || v.type->count != 1)
        return py_fail(c, x->node, "ord() takes one character of a str: s[i]");
    *out = py_val_scalar(c, PY_S_I64, code_at(c, &v, py_emit_zero(c, IR_I64)));
    out->nonneg = true;
    return true;
}

bool builtin_chr(py_ctx *c, py_call *x, py_val *out) {
    py_val i;
    kernel_fault f = {.kind = KERNEL_FAULT_VALUE,
                      .text = "chr() arg not in range(0x110000)",
                      .ndim = -1,
                      .argument = -1};
    if (!py_check_arguments(c, x, 1, 1, "") ||
        !py_to_index(c, x->node, &x->args[0], "a character's number", &i))
        return false;
    ir_value *code = py_slot(&i, 0);
    py_fault_unless(c, x->node, py_emit_binary(c, IR_LT_U, code, py_emit_int(c, IR_I64, 0x110000)),
                    &f);
    *out = new_value(c, type_of(c, PY_S_U32, 1));
    if (c->emit) out->v[0] = py_emit_binary(c, IR_SHL, code, py_emit_int(c, IR_I64, 32));
    return true;
}

/* str(s) of a str, bytes(s) of bytes: themselves. */
bool builtin_text(py_ctx *c, py_call *x, py_val *out) {
    const char *name = py_as_written(x->name);
    if (!py_check_arguments(c, x, 1, 1, "")) return false;
    if (!py_is_text(&x->args[0]))
        return py_fail(c, x->node,
                       "%s() of %s is not in simt yet: it takes elements of such arrays", name,
                       py_type_text(c, x->args[0].type));
    if (!py_to_chars(c, x->node, &x->args[0], out)) return false;
    return (out->type->scalar == PY_S_U8) == (strcmp(name, "bytes") == 0) ||
           py_fail(c, x->node, "%s() of %s is not in simt yet", name,
                   out->type->scalar == PY_S_U8 ? "bytes" : "str");
}

/* ---- operators ---- */

bool py_chars_truth(py_ctx *c, const py_val *v, py_val *out) {
    ir_value *any = py_slot(v, 0); /* what begins with zero is empty */
    for (uint32_t w = 1; w < py_chars_words(v->type); w++)
        any = py_emit_binary(c, IR_OR, any, py_slot(v, (int)w));
    *out = py_val_scalar(c, PY_S_BOOL, py_emit_binary(c, IR_NE, any, py_emit_zero(c, IR_I64)));
    return true;
}

bool py_chars_compare(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                      const py_val *b, py_val *out) {
    py_val x, y;
    if (!py_to_chars(c, at, a, &x) || !py_to_chars(c, at, b, &y)) return false;
    bool equality = op == PY_EQ || op == PY_NOTEQ;
    if (x.type->scalar != y.type->scalar) { /* str and bytes are never equal */
        if (!equality) return py_fail_operator(c, at, op, a, b);
        *out = py_val_bool(c, op == PY_NOTEQ);
        return true;
    }
    uint32_t m = py_chars_words(x.type), n = py_chars_words(y.type);
    ir_value *r = py_emit_int(c, IR_I1, op == PY_EQ || op == PY_LTE);
    for (uint32_t w = m > n ? m : n; w-- > 0;) {
        ir_value *p = word_or_zero(c, &x, w), *q = word_or_zero(c, &y, w);
        ir_value *same = py_emit_binary(c, IR_EQ, p, q);
        if (op == PY_EQ)
            r = py_emit_binary(c, IR_AND, r, same);
        else if (op == PY_NOTEQ)
            r = py_emit_binary(c, IR_OR, r, py_emit_binary(c, IR_NE, p, q));
        else
            r = py_emit_select(c, same, r, py_emit_binary(c, IR_LT_U, p, q));
    }
    *out = py_val_scalar(c, PY_S_BOOL, r);
    return true;
}

/* a + b: b's words, moved behind a's last character. */
bool py_chars_join(py_ctx *c, const py_node *at, const py_val *a, const py_val *b, py_val *out) {
    py_val x, y;
    if (!py_to_chars(c, at, a, &x) || !py_to_chars(c, at, b, &y)) return false;
    if (x.type->scalar != y.type->scalar) return py_fail_operator(c, at, PY_ADD, a, b);
    const py_type *t = type_of(c, (py_scalar)x.type->scalar, x.type->count + y.type->count);
    if ((uint64_t)t->count * width(t) > PY_MOST_CHARS)
        return py_fail(c, at, "a string of up to %u characters: at most %u in a kernel", t->count,
                       PY_MOST_CHARS / width(t));
    *out = new_value(c, t);
    ir_value *zero = py_emit_zero(c, IR_I64);
    ir_value *by =
        py_emit_binary(c, IR_SHL, length_of(c, &x), py_emit_int(c, IR_I64, width(t) == 1 ? 3 : 5));
    ir_value *words = py_emit_binary(c, IR_SHR_U, by, py_emit_int(c, IR_I64, 6));
    ir_value *right = py_emit_binary(c, IR_AND, by, py_emit_int(c, IR_I64, 63));
    ir_value *left = py_emit_binary(c, IR_SUB, py_emit_int(c, IR_I64, 64), right);
    for (uint32_t w = 0; c->emit && w < py_chars_words(t); w++) {
        out->v[w] = word_or_zero(c, &x, w);
        for (uint32_t i = 0; i < py_chars_words(y.type) && i <= w; i++) {
            ir_value *v = py_slot(&y, (int)i), *high = py_emit_binary(c, IR_SHR_U, v, right),
                     *low = py_emit_binary(c, IR_SHL, v, left);
            ir_value *here = py_emit_binary(c, IR_EQ, words, py_emit_int(c, IR_I64, w - i));
            out->v[w] = py_emit_binary(c, IR_OR, out->v[w], py_emit_select(c, here, high, zero));
            if (i == w) continue;
            here = py_emit_binary(c, IR_EQ, words, py_emit_int(c, IR_I64, w - i - 1));
            out->v[w] = py_emit_binary(c, IR_OR, out->v[w], py_emit_select(c, here, low, zero));
        }
    }
    return true;
}

/* ---- methods: written in Python ---- */

static bool call_library(py_ctx *c, const char *name, const py_val *of, py_call *x, py_val *out) {
    py_val *args = PY_NEW(c, py_val, x->nargs + 1);
    bool found;
    if (!py_to_chars(c, x->node, of, &args[0])) return false;
    for (uint32_t i = 0; i < x->nargs; i++) {
        py_val *v = &args[i + 1];
        if (!py_is_text(&x->args[i]))
            return py_fail(c, x->node, "%s takes a string, not %s", name,
                           py_type_text(c, x->args[i].type));
        if (!py_to_chars(c, x->node, &x->args[i], v)) return false;
        if (v->type->scalar != args[0].type->scalar)
            return py_fail(c, x->node, "%s of str and bytes together", name);
    }
    x->args = args;
    x->nargs++;
    if (!py_call_library(c, arena_printf(c->mem, "text.%s", name), x, out, &found)) return false;
    return found ||
           py_fail(c, x->node,
                   "strings in kernels have no %s: there are find, rfind, startswith, endswith, "
                   "isascii, +, in, len(), s[i]",
                   name);
}

bool py_has_text_method(const char *name) {
    static const char *const names[] = {"find", "rfind", "startswith", "endswith", "isascii"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

bool py_chars_method(py_ctx *c, const py_val *of, py_call *x, py_val *out) {
    uint32_t want = strcmp(x->name, "isascii") == 0 ? 0 : 1;
    if (py_has_text_method(x->name) && (x->nkeywords > 0 || x->nargs != want))
        return py_fail(c, x->node, "%s in a kernel takes %u argument%s", x->name, want,
                       want == 1 ? "" : "s");
    return call_library(c, x->name, of, x, out);
}

bool py_chars_contains(py_ctx *c, const py_node *at, const py_val *part, const py_val *of,
                       py_val *out) {
    py_call x = {.node = at, .name = "in", .args = (py_val *)part, .nargs = 1};
    return call_library(c, "contains", of, &x, out);
}
