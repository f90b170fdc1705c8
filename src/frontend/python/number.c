/* Operators on numbers: Numba's result types (integers widen to 64 bits, mixed 64-bit signs to float64) and
 * Python's meaning (floor division and remainder take the divisor's sign). Division by zero follows
 * NumPy's error model, as Numba's CUDA target: 0 for integers, inf or nan for floats; nothing traps.
 */
#include "frontend/python/work.h"
#include "kernel/numbers.h"

/* The 64-bit type in which integers (and bools) meet: unsigned only when both are. */
static py_scalar int_common(py_scalar a, py_scalar b) {
    return py_scalar_is_unsigned(a) && py_scalar_is_unsigned(b) ? PY_S_U64 : PY_S_I64;
}

/* Numba's overloads skip the least float for these: uint16 with float32 is float64. */
static bool is_skipping(py_scalar integer, py_scalar other) {
    if (integer == PY_S_U8) return other == PY_S_F16;
    return integer == PY_S_U16 && (other == PY_S_F16 || other == PY_S_F32 || other == PY_S_C64);
}

py_scalar py_arithmetic_type(py_scalar a, py_scalar b) {
    if (py_scalar_is_integral(a) && py_scalar_is_integral(b)) return int_common(a, b);
    if (is_skipping(a, b) || is_skipping(b, a))
        return a == PY_S_U8 || b == PY_S_U8     ? PY_S_F32
               : a == PY_S_C64 || b == PY_S_C64 ? PY_S_C128
                                                : PY_S_F64;
    return py_scalar_unify(a, b);
}

bool py_fail_operator(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                      const py_val *b) {
    const char *ta = py_type_text(c, a->type), *hint = py_advice(c, a->type);
    if (*hint == 0 && b != NULL) hint = py_advice(c, b->type);
    if (*hint == 0 && ((op >= PY_LSHIFT && op <= PY_BITAND) || op == PY_INVERT))
        hint = ": it works on integers, convert with int(...)";
    if (b == NULL) return py_fail(c, at, "no operator %s for %s%s", py_operator_text(op), ta, hint);
    if (at->kind == PY_COMPARE && at->list.count == 1 &&
        (at->ops[0] == PY_GT || at->ops[0] == PY_GTE)) { /* a > b went by b < a */
        op = at->ops[0];
        const py_val *swapped = a;
        a = b;
        b = swapped;
        ta = py_type_text(c, a->type);
    }
    return py_fail(c, at, "no operator %s for %s and %s%s", py_operator_text(op), ta,
                   py_type_text(c, b->type), hint);
}

/* ---- integers ---- */

/* a known power of two > 0: its exponent, else -1 */
static int shift_of(const py_val *b) {
    if (!b->is_const || b->value.kind != PY_VALUE_INT || b->value.integer <= 0) return -1;
    int64_t x = b->value.integer;
    return (x & (x - 1)) == 0 ? __builtin_ctzll((uint64_t)x) : -1;
}

static ir_value *int_floor(py_ctx *c, bool divides, bool is_signed, const py_val *a,
                           const py_val *b) {
    ir_value *x = py_slot(a, 0), *y = py_slot(b, 0);
    ir_type t = IR_I64;
    int shift = shift_of(b);
    if (shift >= 0 && divides)
        return py_emit_binary(c, is_signed ? IR_SHR_S : IR_SHR_U, x, py_emit_int(c, t, shift));
    if (shift >= 0) return py_emit_binary(c, IR_AND, x, py_emit_int(c, t, b->value.integer - 1));
    if (is_signed && a->nonneg && b->nonneg)
        return py_emit_binary(c, divides ? IR_DIV_S : IR_REM_S, x, y);
    if (!c->emit) return NULL;
    return divides ? number_floor_divide(&c->b, is_signed, x, y)
                   : number_remainder(&c->b, is_signed, x, y);
}

/* x ** n for a small constant n >= 0 */
static ir_value *power_chain(py_ctx *c, ir_op multiply, ir_value *x, ir_value *one, int64_t n) {
    return c->emit ? number_power_by(&c->b, multiply, x, one, n) : NULL;
}

static bool small_exponent(const py_val *b, int64_t *n) {
    if (!b->is_const || b->value.kind != PY_VALUE_INT) return false;
    *n = b->value.integer;
    return *n >= -64 && *n <= 64;
}

static ir_value *int_power(py_ctx *c, const py_val *a, const py_val *b, bool is_signed) {
    int64_t n;
    if (small_exponent(b, &n) && n >= 0)
        return power_chain(c, IR_MUL, py_slot(a, 0), py_emit_int(c, IR_I64, 1), n);
    return c->emit ? number_power(&c->b, is_signed && !b->nonneg, py_slot(a, 0), py_slot(b, 0))
                   : NULL;
}

static bool fold_ints(py_operator op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case PY_ADD: return !__builtin_add_overflow(a, b, out);
    case PY_SUB: return !__builtin_sub_overflow(a, b, out);
    case PY_MULT: return !__builtin_mul_overflow(a, b, out);
    case PY_FLOORDIV:
    case PY_MOD:
        if (b == 0 || (a == INT64_MIN && b == -1)) return false;
        int64_t q = a / b, r = a % b;
        if (r != 0 && (r < 0) != (b < 0)) q--, r += b;
        *out = op == PY_MOD ? r : q;
        return true;
    case PY_LSHIFT:
        if (b < 0 || b > 62 || a < 0 || a > INT64_MAX >> b) return false;
        *out = a << b;
        return true;
    case PY_RSHIFT:
        if (b < 0) return false;
        *out = b > 62 ? -(a < 0) : a >> b;
        return true;
    case PY_BITAND: *out = a & b; return true;
    case PY_BITOR: *out = a | b; return true;
    case PY_BITXOR: *out = a ^ b; return true;
    case PY_POW:
        *out = 1;
        if (b < 0 || b > 64) return false;
        for (int64_t i = 0; i < b; i++)
            if (__builtin_mul_overflow(*out, a, out)) return false;
        return true;
    default: return false;
    }
}

/* With debug=True, as Numba. */
static void check_divisor(py_ctx *c, const py_node *at, py_operator op, const py_val *by) {
    if (!c->options->divisions || (op != PY_DIV && op != PY_FLOORDIV && op != PY_MOD)) return;
    py_scalar s = by->type->scalar;
    if (c->options->fast && op == PY_DIV && s == PY_S_F32) return;
    ir_op differs = py_scalar_is_int(s) ? IR_NE : IR_FNE;
    ir_value *zero = py_emit_zero(c, py_scalar_ir(s)),
             *good = py_emit_binary(c, differs, py_slot(by, 0), zero);
    if (py_scalar_is_complex(s))
        good = py_emit_binary(c, IR_OR, good, py_emit_binary(c, IR_FNE, py_slot(by, 1), zero));
    kernel_fault f = {.kind = KERNEL_FAULT_DIVISION, .text = "division by zero", .argument = -1};
    py_fault_unless(c, at, good, &f);
}

static bool int_binary(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                       const py_val *b, py_scalar type, py_val *out) {
    py_val x, y;
    bool is_signed = type == PY_S_I64, both = a->nonneg && b->nonneg;
    if (!py_to_scalar(c, at, a, type, &x) || !py_to_scalar(c, at, b, type, &y)) return false;
    int64_t folded;
    if (is_signed && a->is_const && b->is_const && a->value.kind == PY_VALUE_INT &&
        b->value.kind == PY_VALUE_INT &&
        fold_ints(op, a->value.integer, b->value.integer, &folded)) {
        *out = py_val_int(c, folded);
        return true;
    }
    check_divisor(c, at, op, &y);
    ir_value *p = py_slot(&x, 0), *q = py_slot(&y, 0), *r;
    bool nonneg = both;
    switch (op) {
    case PY_ADD: r = py_emit_binary(c, IR_ADD, p, q); break;
    case PY_SUB:
        r = py_emit_binary(c, IR_SUB, p, q);
        nonneg = false;
        break;
    case PY_MULT: r = py_emit_binary(c, IR_MUL, p, q); break;
    case PY_FLOORDIV: r = int_floor(c, true, is_signed, &x, &y); break;
    case PY_MOD:
        r = int_floor(c, false, is_signed, &x, &y);
        nonneg = b->nonneg;
        break;
    case PY_POW:
        r = int_power(c, &x, &y, is_signed);
        nonneg = a->nonneg;
        break;
    case PY_LSHIFT: r = py_emit_binary(c, IR_SHL, p, q); break;
    case PY_RSHIFT:
        r = py_emit_binary(c, is_signed ? IR_SHR_S : IR_SHR_U, p, q);
        nonneg = a->nonneg;
        break;
    case PY_BITAND:
        r = py_emit_binary(c, IR_AND, p, q);
        nonneg = a->nonneg || b->nonneg;
        break;
    case PY_BITOR: r = py_emit_binary(c, IR_OR, p, q); break;
    default: r = py_emit_binary(c, IR_XOR, p, q); break;
    }
    *out = py_val_scalar(c, type, r);
    out->nonneg = nonneg || !is_signed;
    return true;
}

/* ---- floats ---- */

static void float_divmod(py_ctx *c, ir_value *a, ir_value *b, ir_value **quotient,
                         ir_value **remainder) {
    *quotient = *remainder = NULL;
    if (c->emit) number_float_divmod(&c->b, a, b, quotient, remainder);
}

static ir_value *float_power(py_ctx *c, ir_type t, ir_value *a, const py_val *exponent,
                             ir_value *b) {
    int64_t n;
    if (!small_exponent(exponent, &n)) return py_emit_binary(c, IR_POW, a, b);
    ir_value *one = py_emit_float(c, t, 1), *r = power_chain(c, IR_FMUL, a, one, n < 0 ? -n : n);
    return n < 0 ? py_emit_binary(c, IR_FDIV, one, r) : r;
}

static bool float_binary(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                         const py_val *b, py_scalar type, py_val *out) {
    py_val x, y;
    if (!py_to_scalar(c, at, a, type, &x) || !py_to_scalar(c, at, b, type, &y)) return false;
    check_divisor(c, at, op, &y);
    ir_type t = py_scalar_ir(type);
    ir_value *p = py_slot(&x, 0), *q = py_slot(&y, 0), *r, *other;
    switch (op) {
    case PY_ADD: r = py_emit_binary(c, IR_FADD, p, q); break;
    case PY_SUB: r = py_emit_binary(c, IR_FSUB, p, q); break;
    case PY_MULT: r = py_emit_binary(c, IR_FMUL, p, q); break;
    case PY_DIV: r = py_emit_binary(c, IR_FDIV, p, q); break;
    case PY_FLOORDIV: float_divmod(c, p, q, &r, &other); break;
    case PY_MOD: float_divmod(c, p, q, &other, &r); break;
    case PY_POW: r = float_power(c, t, p, b, q); break;
    default: return py_fail_operator(c, at, op, a, b);
    }
    *out = py_val_scalar(c, type, r);
    return true;
}

/* ---- complex numbers ---- */

static void complex_multiply(py_ctx *c, ir_value *const a[2], ir_value *const b[2],
                             ir_value *out[2]) {
    ir_value *re = py_emit_binary(c, IR_FSUB, py_emit_binary(c, IR_FMUL, a[0], b[0]),
                                  py_emit_binary(c, IR_FMUL, a[1], b[1]));
    ir_value *im = py_emit_binary(c, IR_FADD, py_emit_binary(c, IR_FMUL, a[0], b[1]),
                                  py_emit_binary(c, IR_FMUL, a[1], b[0]));
    out[0] = re;
    out[1] = im;
}

/* Smith's algorithm (CACM 5(8), 1962), as CPython. */
static void complex_divide(py_ctx *c, ir_value *const a[2], ir_value *const b[2],
                           ir_value *out[2]) {
    ir_value *wide =
        py_emit_binary(c, IR_FLE, py_emit_unary(c, IR_FABS, b[1]), py_emit_unary(c, IR_FABS, b[0]));
    ir_value *big = py_emit_select(c, wide, b[0], b[1]),
             *small = py_emit_select(c, wide, b[1], b[0]);
    ir_value *ratio = py_emit_binary(c, IR_FDIV, small, big);
    ir_value *denominator =
        py_emit_binary(c, IR_FADD, big, py_emit_binary(c, IR_FMUL, small, ratio));
    ir_value *ar = py_emit_binary(c, IR_FMUL, a[0], ratio),
             *ai = py_emit_binary(c, IR_FMUL, a[1], ratio);
    ir_value *re = py_emit_select(c, wide, py_emit_binary(c, IR_FADD, a[0], ai),
                                  py_emit_binary(c, IR_FADD, ar, a[1]));
    ir_value *im = py_emit_select(c, wide, py_emit_binary(c, IR_FSUB, a[1], ar),
                                  py_emit_binary(c, IR_FSUB, ai, a[0]));
    out[0] = py_emit_binary(c, IR_FDIV, re, denominator);
    out[1] = py_emit_binary(c, IR_FDIV, im, denominator);
}

/* exp(b log a), with a = 0 giving 0 (1 for b = 0); small constant integer exponents by multiplication */
static void complex_power(py_ctx *c, ir_type t, ir_value *const a[2], const py_val *exponent,
                          ir_value *const b[2], ir_value *out[2]) {
    ir_value *one[2] = {py_emit_float(c, t, 1), py_emit_float(c, t, 0)}, *zero = one[1];
    int64_t n;
    if (small_exponent(exponent, &n)) {
        ir_value *x[2] = {a[0], a[1]}, *r[2] = {one[0], one[1]};
        bool has = false;
        for (int64_t k = n < 0 ? -n : n; k > 0; k >>= 1) {
            if (k & 1) {
                if (has)
                    complex_multiply(c, r, x, r);
                else
                    r[0] = x[0], r[1] = x[1];
                has = true;
            }
            if (k > 1) complex_multiply(c, x, x, x);
        }
        if (n < 0)
            complex_divide(c, one, r, out);
        else
            out[0] = r[0], out[1] = r[1];
        return;
    }
    ir_value *size = py_emit_hypot(c, a[0], a[1]), *log_r = py_emit_unary(c, IR_LOG, size);
    ir_value *angle = py_emit_atan2(c, a[1], a[0]);
    ir_value *re = py_emit_binary(c, IR_FSUB, py_emit_binary(c, IR_FMUL, b[0], log_r),
                                  py_emit_binary(c, IR_FMUL, b[1], angle));
    ir_value *im = py_emit_binary(c, IR_FADD, py_emit_binary(c, IR_FMUL, b[1], log_r),
                                  py_emit_binary(c, IR_FMUL, b[0], angle));
    ir_value *scale = py_emit_unary(c, IR_EXP, re);
    ir_value *no_base = py_emit_binary(c, IR_FEQ, size, zero);
    ir_value *no_exponent = py_emit_binary(c, IR_AND, py_emit_binary(c, IR_FEQ, b[0], zero),
                                           py_emit_binary(c, IR_FEQ, b[1], zero));
    ir_value *simple = py_emit_binary(c, IR_OR, no_base, no_exponent);
    ir_value *value = py_emit_select(c, no_exponent, one[0], zero);
    out[0] = py_emit_select(c, simple, value,
                            py_emit_binary(c, IR_FMUL, scale, py_emit_unary(c, IR_COS, im)));
    out[1] = py_emit_select(c, simple, zero,
                            py_emit_binary(c, IR_FMUL, scale, py_emit_unary(c, IR_SIN, im)));
}

static bool complex_binary(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                           const py_val *b, py_scalar type, py_val *out) {
    py_val x, y;
    if (!py_to_scalar(c, at, a, type, &x) || !py_to_scalar(c, at, b, type, &y)) return false;
    check_divisor(c, at, op, &y);
    ir_value *p[2] = {py_slot(&x, 0), py_slot(&x, 1)}, *q[2] = {py_slot(&y, 0), py_slot(&y, 1)},
             *r[2];
    switch (op) {
    case PY_ADD:
    case PY_SUB: {
        ir_op plus = op == PY_ADD ? IR_FADD : IR_FSUB;
        r[0] = py_emit_binary(c, plus, p[0], q[0]);
        r[1] = py_emit_binary(c, plus, p[1], q[1]);
        break;
    }
    case PY_MULT: complex_multiply(c, p, q, r); break;
    case PY_DIV: complex_divide(c, p, q, r); break;
    case PY_POW: complex_power(c, py_scalar_ir(type), p, b, q, r); break;
    default: return py_fail_operator(c, at, op, a, b);
    }
    *out = py_val_complex(c, type, r[0], r[1]);
    return true;
}

/* ---- all of it ---- */

static bool join_tuples(py_ctx *c, const py_val *a, const py_val *b, py_val *out) {
    uint32_t n = a->type->count, m = b->type->count;
    py_val *items = PY_NEW(c, py_val, n + m + 1);
    for (uint32_t i = 0; i < n; i++) items[i] = py_val_item(a, i);
    for (uint32_t i = 0; i < m; i++) items[n + i] = py_val_item(b, i);
    *out = py_val_tuple(c, items, n + m);
    return true;
}

/* `times`: a constant integer. */
static bool repeat_tuple(py_ctx *c, const py_val *t, const py_val *times, py_val *out) {
    int64_t n = times->value.integer;
    py_val *items = NULL;
    uint32_t count = 0;
    for (int64_t i = 0; i < n && count < 1000; i++)
        for (uint32_t k = 0; k < t->type->count; k++) {
            items = py_grow(c, items, count, sizeof *items);
            items[count++] = py_val_item(t, k);
        }
    *out = py_val_tuple(c, items, count);
    return true;
}

static bool is_bit_operator(py_operator op) {
    return op == PY_BITAND || op == PY_BITOR || op == PY_BITXOR;
}
static bool is_shift(py_operator op) { return op == PY_LSHIFT || op == PY_RSHIFT; }

bool py_binary(py_ctx *c, const py_node *at, py_operator op, const py_val *a, const py_val *b,
               py_val *out) {
    if (op == PY_ADD && py_is_plain_tuple(a) && py_is_plain_tuple(b))
        return join_tuples(c, a, b, out);
    if (op == PY_ADD && py_is_text(a) && py_is_text(b)) return py_chars_join(c, at, a, b, out);
    if (op == PY_MULT && py_is_plain_tuple(a) && b->is_const && b->value.kind == PY_VALUE_INT)
        return repeat_tuple(c, a, b, out);
    py_scalar s = py_scalar_of(a), t = py_scalar_of(b);
    if (s == PY_S_NONE || t == PY_S_NONE || op == PY_MATMULT)
        return py_fail_operator(c, at, op, a, b);
    bool integral = py_scalar_is_integral(s) && py_scalar_is_integral(t);
    if (is_bit_operator(op) && s == PY_S_BOOL && t == PY_S_BOOL) {
        ir_op bits = op == PY_BITAND ? IR_AND : op == PY_BITOR ? IR_OR : IR_XOR;
        *out = py_val_scalar(c, PY_S_BOOL, py_emit_binary(c, bits, py_slot(a, 0), py_slot(b, 0)));
        return true;
    }
    if ((is_bit_operator(op) || is_shift(op)) && !integral)
        return py_fail_operator(c, at, op, a, b);
    py_scalar type = py_arithmetic_type(s, t);
    if (is_shift(op)) type = py_scalar_is_unsigned(s) ? PY_S_U64 : PY_S_I64;
    if (op == PY_DIV && integral) type = PY_S_F64;
    if (op == PY_POW && py_scalar_is_float(s) && py_scalar_is_integral(t)) type = s;
    if (type == PY_S_F16 && (op == PY_FLOORDIV || op == PY_MOD || op == PY_POW)) type = PY_S_F32;
    if (py_scalar_is_complex(type)) return complex_binary(c, at, op, a, b, type, out);
    if (py_scalar_is_float(type)) return float_binary(c, at, op, a, b, type, out);
    return int_binary(c, at, op, a, b, type, out);
}

/* An integer's sign extension from `bits` bits. */
static int64_t wrap_int(int64_t v, int bits) {
    return (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
}

/* As Numba: the operation is one of the operand's own width, and its result becomes 64 bits wide. */
static bool int_unary(py_ctx *c, const py_node *at, py_operator op, const py_val *a, py_val *out) {
    py_scalar s = py_scalar_of(a), type = py_scalar_is_unsigned(s) ? PY_S_U64 : PY_S_I64;
    if (op == PY_UADD) return py_to_scalar(c, at, a, type, out);
    py_val x = *a;
    if (s == PY_S_BOOL && !py_to_scalar(c, at, a, s = PY_S_I64, &x)) return false;
    if (a->is_const && x.value.kind == PY_VALUE_INT && x.value.integer != INT64_MIN &&
        type == PY_S_I64) {
        int64_t v = x.value.integer;
        *out = py_val_int(c, wrap_int(op == PY_USUB ? -v : ~v, (int)py_scalar_bytes(s) * 8));
        return true;
    }
    ir_value *v = py_slot(&x, 0);
    py_val r =
        py_val_scalar(c, s,
                      op == PY_USUB ? py_emit_binary(c, IR_SUB, py_emit_zero(c, py_scalar_ir(s)), v)
                                    : py_emit_unary(c, IR_NOT, v));
    r.nonneg = type == PY_S_U64;
    return py_to_scalar(c, at, &r, type, out);
}

bool py_unary(py_ctx *c, const py_node *at, py_operator op, const py_val *a, py_val *out) {
    if (op == PY_NOT) {
        py_val truth;
        if (!py_truth(c, at, a, &truth)) return false;
        *out = truth.is_const
                   ? py_val_bool(c, !truth.value.boolean)
                   : py_val_scalar(c, PY_S_BOOL, py_emit_unary(c, IR_NOT, py_slot(&truth, 0)));
        return true;
    }
    py_scalar s = py_scalar_of(a);
    if (s == PY_S_NONE) return py_fail_operator(c, at, op, a, NULL);
    if (s == PY_S_BOOL && op == PY_INVERT && !a->is_const) { /* as Numba: a bool */
        *out = py_val_scalar(c, s, py_emit_unary(c, IR_NOT, py_slot(a, 0)));
        return true;
    }
    if (py_scalar_is_integral(s)) return int_unary(c, at, op, a, out);
    if (op == PY_INVERT) return py_fail_operator(c, at, op, a, NULL);
    *out = *a;
    if (op == PY_UADD) return true;
    if (a->is_const && a->value.kind == PY_VALUE_FLOAT) {
        py_constant k = {.kind = PY_VALUE_FLOAT, .real = -a->value.real};
        *out = py_val_constant(c, &k, s);
        return true;
    }
    ir_value *re = py_emit_unary(c, IR_FNEG, py_slot(a, 0));
    *out = py_scalar_is_complex(s)
               ? py_val_complex(c, s, re, py_emit_unary(c, IR_FNEG, py_slot(a, 1)))
               : py_val_scalar(c, s, re);
    return true;
}
