/* Elementwise rows as IR: C emitters for the primitive rows, formulas for the rest.
 *
 * In: operands in the node's compute type. Out: the value in its result type. 16-bit floats are
 * computed in f32 and rounded once per node, so no emitter sees them.
 * Adding a row: a formula or an IR operation in array_ops.def, or an EMITTER here.
 */
#include "graph/emit.h"

#include "kernel/numbers.h"

ir_type emit_type(dtype dt) { return dt == DT_BOOL ? IR_I1 : ir_type_of_dtype(dt); }

ir_value *emit_load(ir_builder *b, dtype dt, ir_value *ptr) {
    ir_value *v = ir_load(b, ir_type_of_dtype(dt), ptr, IR_PLAIN);
    return dt == DT_BOOL ? ir_binary(b, IR_NE, v, ir_const_int(b, IR_I8, 0)) : v;
}

void emit_store(ir_builder *b, dtype dt, ir_value *ptr, ir_value *value) {
    if (dt == DT_BOOL) value = ir_cast(b, IR_ZEXT, IR_I8, value);
    ir_store(b, ptr, value, IR_PLAIN);
}

static ir_value *number(ir_builder *b, dtype dt, double value) {
    if (dtype_is_float(dt)) return ir_const_float(b, emit_type(dt), value);
    return ir_const_int(b, emit_type(dt), (int64_t)value);
}

ir_value *emit_cast(ir_builder *b, ir_value *v, dtype from, dtype to) {
    if (from == to) return v;
    ir_type target = emit_type(to);
    bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
    if (to == DT_BOOL) return ir_binary(b, from_float ? IR_FNE : IR_NE, v, number(b, from, 0));
    if (from_float && to_float) {
        if (dtype_bytes(from) == dtype_bytes(to)) { /* f16 <-> bf16 */
            v = ir_cast(b, IR_FPEXT, IR_F32, v);
            return ir_cast(b, IR_FPTRUNC, target, v);
        }
        return ir_cast(b, dtype_bytes(from) < dtype_bytes(to) ? IR_FPEXT : IR_FPTRUNC, target, v);
    }
    if (from_float)
        return ir_cast(b, dtype_is_signed(to) ? IR_CVT_NUMPY_S : IR_CVT_NUMPY_U, target, v);
    if (to_float) return ir_cast(b, dtype_is_signed(from) ? IR_SITOFP : IR_UITOFP, target, v);
    if (from == DT_BOOL) return ir_cast(b, IR_ZEXT, target, v);
    if (dtype_bytes(from) == dtype_bytes(to)) return v; /* signedness is in the operations */
    if (dtype_bytes(from) > dtype_bytes(to)) return ir_cast(b, IR_TRUNC, target, v);
    return ir_cast(b, dtype_is_signed(from) ? IR_SEXT : IR_ZEXT, target, v);
}

/* ---- primitives ---- */

/* One arithmetic meaning in its four spellings; IR_OP_COUNT: identity (floor of an integer). */
typedef struct spelling {
    ir_op f, s, u, boolean;
} spelling;

static ir_op spell(spelling w, dtype dt) {
    return dtype_is_float(dt) ? w.f : dt == DT_BOOL ? w.boolean : dtype_is_signed(dt) ? w.s : w.u;
}

static ir_value *negate(ir_builder *b, dtype dt, ir_value *v) {
    if (dtype_is_float(dt)) return ir_unary(b, IR_FNEG, v);
    return ir_binary(b, IR_SUB, number(b, dt, 0), v);
}

static ir_value *compare(ir_builder *b, array_op op, dtype dt, ir_value *x, ir_value *y) {
    if (op == OP_GREATER || op == OP_GREATER_EQUAL) {
        ir_value *swap = x;
        x = y;
        y = swap;
    }
    spelling w;
    switch (op) {
    case OP_EQUAL: w = (spelling){IR_FEQ, IR_EQ, IR_EQ, IR_EQ}; break;
    case OP_NOT_EQUAL: w = (spelling){IR_FNE, IR_NE, IR_NE, IR_NE}; break;
    case OP_LESS:
    case OP_GREATER: w = (spelling){IR_FLT, IR_LT_S, IR_LT_U, IR_LT_U}; break;
    default: w = (spelling){IR_FLE, IR_LE_S, IR_LE_U, IR_LE_U}; break;
    }
    return ir_binary(b, spell(w, dt), x, y);
}

static ir_value *both(ir_builder *b, ir_value *x, ir_value *y) {
    return ir_binary(b, IR_AND, x, y);
}

static ir_value *float_divmod(ir_builder *b, ir_value *x, ir_value *y, bool quotient) {
    ir_value *v;
    number_float_divmod(b, x, y, quotient ? &v : NULL, quotient ? NULL : &v);
    return v;
}

static ir_value *integer_divmod(ir_builder *b, dtype dt, ir_value *x, ir_value *y, bool quotient) {
    bool is_signed = dtype_is_signed(dt);
    return quotient ? number_floor_divide(b, is_signed, x, y)
                    : number_remainder(b, is_signed, x, y);
}

static ir_value *sign(ir_builder *b, dtype dt, ir_value *x) {
    ir_value *zero = number(b, dt, 0), *one = number(b, dt, 1);
    if (!dtype_is_float(dt) && !dtype_is_signed(dt))
        return ir_select(b, ir_binary(b, IR_NE, x, zero), one, zero);
    ir_value *rest = zero;
    if (dtype_is_float(dt))
        rest = ir_select(b, ir_binary(b, IR_FEQ, x, zero), zero, x); /* NaN stays */
    rest = ir_select(b, compare(b, OP_LESS, dt, x, zero), number(b, dt, -1), rest);
    return ir_select(b, compare(b, OP_GREATER, dt, x, zero), one, rest);
}

static ir_value *infinite(ir_builder *b, array_op op, dtype dt, ir_value *x) {
    if (!dtype_is_float(dt)) return ir_const_int(b, IR_I1, op == OP_ISFINITE);
    ir_value *size = ir_unary(b, IR_FABS, x), *limit = number(b, dt, __builtin_inf());
    return ir_binary(b, op == OP_ISINF ? IR_FEQ : IR_FLT, size, limit);
}

static ir_value *sign_bit(ir_builder *b, dtype dt, ir_value *x) {
    if (dt == DT_BOOL || dtype_is_unsigned(dt)) return ir_const_int(b, IR_I1, 0);
    if (!dtype_is_float(dt)) return ir_binary(b, IR_LT_S, x, number(b, dt, 0));
    ir_type bits = dt == DT_F32 ? IR_I32 : IR_I64;
    ir_value *pattern = ir_cast(b, IR_BITCAST, bits, x);
    return ir_binary(b, IR_LT_S, pattern, ir_const_int(b, bits, 0));
}

static ir_value *absolute(ir_builder *b, dtype dt, ir_value *x) {
    if (dtype_is_float(dt)) return ir_unary(b, IR_FABS, x);
    return dtype_is_signed(dt) ? ir_unary(b, IR_ABS, x) : x;
}

/* ---- the column `how` ---- */

#define EMITTER(name) \
    static ir_value *emit_##name(ir_builder *b, array_op op, dtype dt, ir_value *const *a)
EMITTER(compare) { return compare(b, op, dt, a[0], a[1]); }
EMITTER(divmod) {
    bool quotient = op == OP_FLOOR_DIVIDE;
    return dtype_is_float(dt) ? float_divmod(b, a[0], a[1], quotient)
                              : integer_divmod(b, dt, a[0], a[1], quotient);
}
EMITTER(power) {
    return dtype_is_float(dt) ? ir_binary(b, IR_POW, a[0], a[1])
                              : number_power(b, dtype_is_signed(dt), a[0], a[1]);
}
EMITTER(negate) { return negate(b, dt, a[0]); }
EMITTER(same) { return a[0]; }
EMITTER(absolute) { return absolute(b, dt, a[0]); }
EMITTER(sign) { return sign(b, dt, a[0]); }
EMITTER(rounding) {
    ir_op rounds = op == OP_FLOOR  ? IR_FFLOOR
                   : op == OP_CEIL ? IR_FCEIL
                   : op == OP_RINT ? IR_FRINT
                                   : IR_FTRUNC;
    return dtype_is_float(dt) ? ir_unary(b, rounds, a[0]) : a[0];
}
EMITTER(infinite) { return infinite(b, op, dt, a[0]); }
EMITTER(sign_bit) { return sign_bit(b, dt, a[0]); }
EMITTER(where) { return ir_select(b, a[0], a[1], a[2]); }
EMITTER(exponent) {
    return ir_cast(b, IR_SITOFP, emit_type(dt), ir_unary(b, IR_FREXP_EXPONENT, a[0]));
}

typedef struct emission {
    ir_value *(*code)(ir_builder *, array_op, dtype, ir_value *const *);
    bool spelled; /* one IR operation: op */
    spelling op;
} emission;

#define IR_NONE IR_OP_COUNT
#define FORMULA(text) \
    { NULL }
#define NODE \
    { NULL }
#define CODE(name) \
    { emit_##name }
#define FLOATS(op) OPS(op, NONE, NONE, NONE)
#define BOOLS(op)  OPS(NONE, NONE, NONE, op)
#define OPS(f, s, u, b)                                \
    {                                                  \
        NULL, true, { IR_##f, IR_##s, IR_##u, IR_##b } \
    }
#define EW(id, name, arity, dtypes, how, ...) [OP_##id] = how,
static const emission emissions[ARRAY_OP_COUNT] = {
#include "graph/array_ops.def"
};

/* NULL: the row is a formula. */
static ir_value *emit_primitive(ir_builder *b, array_op op, dtype dt, ir_value *const *a) {
    const emission *how = &emissions[op];
    if (how->code) return how->code(b, op, dt, a);
    if (!how->spelled) return NULL;
    return array_op_table[op].arity == 1 ? ir_unary(b, spell(how->op, dt), a[0])
                                         : ir_binary(b, spell(how->op, dt), a[0], a[1]);
}

/* ---- formulas ---- */

typedef struct typed {
    ir_value *v;
    dtype dt;
} typed;

static typed emit_formula(ir_builder *b, arena *mem, const formula *f, dtype dt,
                          const emit_element *e);

static typed emit_call(ir_builder *b, arena *mem, array_op op, dtype dt, const typed *args,
                       int nargs) {
    ir_value *values[3] = {0};
    bool condition_first = op == OP_WHERE;
    for (int i = 0; i < nargs; i++) {
        dtype want = condition_first && i == 0          ? DT_BOOL
                     : array_op_table[op].dtypes == 'L' ? DT_BOOL
                                                        : dt;
        values[i] = emit_cast(b, args[i].v, args[i].dt, want);
    }
    char rule = array_op_table[op].dtypes;
    dtype result = rule == 'C' || rule == 'T' || rule == 'L' ? DT_BOOL : dt;
    ir_value *v = emit_primitive(b, op, rule == 'L' ? DT_BOOL : dt, values);
    if (v) return (typed){v, result};
    emit_element inner = {.args = {values[0], values[1], values[2]}};
    formula *f;
    simt_status status = formula_parse(array_op_table[op].expansion, mem, &f);
    if (status != SIMT_OK) arena_end_run(status);
    return emit_formula(b, mem, f, dt, &inner);
}

static typed emit_formula(ir_builder *b, arena *mem, const formula *f, dtype dt,
                          const emit_element *e) {
    if (f->kind == FORMULA_NUMBER) return (typed){number(b, dt, f->number), dt};
    if (f->kind == FORMULA_VARIABLE) {
        if (f->variable >= FORMULA_S0) return (typed){e->scalars[f->variable - FORMULA_S0], dt};
        return (typed){e->args[f->variable <= FORMULA_C ? f->variable : FORMULA_A], dt};
    }
    typed args[3];
    for (int i = 0; i < f->nargs; i++) args[i] = emit_formula(b, mem, f->args[i], dt, e);
    return emit_call(b, mem, f->op, dt, args, f->nargs);
}

/* ---- rows without operands ---- */

bool emit_wants_index(array_op op) {
    return op == OP_IOTA || op == OP_IOTA_AXIS || op == OP_RANDOM_BITS || op == OP_RANDOM_UNIFORM ||
           op == OP_RANDOM_NORMAL;
}

dtype emit_scalar_dtype(array_op op, dtype compute) {
    if (op == OP_IOTA) return dtype_is_float(compute) ? DT_F64 : DT_I64;
    if (op == OP_RANDOM_BITS || op == OP_RANDOM_UNIFORM || op == OP_RANDOM_NORMAL) return DT_I64;
    return compute;
}

static ir_value *philox_word(ir_builder *b, ir_value *seed, ir_value *index) {
    ir_value *args[2] = {index, seed};
    ir_type type = IR_I32;
    return ir_result(ir_inst_add(b, IR_PHILOX, &type, 1, args, 2, 0));
}

static ir_value *plus(ir_builder *b, ir_value *index, int64_t k) {
    return ir_binary(b, IR_ADD, index, ir_const_int(b, IR_I64, k));
}

/* 53 bits in [0, 1) from two words: (w0 >> 5) * 2**26 + (w1 >> 6), as in Matsumoto's genrand_res53. */
static ir_value *uniform_f64(ir_builder *b, ir_value *seed, ir_value *index) {
    ir_value *high = ir_cast(b, IR_ZEXT, IR_I64, philox_word(b, seed, index));
    ir_value *low = ir_cast(b, IR_ZEXT, IR_I64, philox_word(b, seed, plus(b, index, 1)));
    high = ir_binary(b, IR_SHL, ir_binary(b, IR_SHR_U, high, ir_const_int(b, IR_I64, 5)),
                     ir_const_int(b, IR_I64, 26));
    low = ir_binary(b, IR_SHR_U, low, ir_const_int(b, IR_I64, 6));
    ir_value *bits = ir_cast(b, IR_SITOFP, IR_F64, ir_binary(b, IR_OR, high, low));
    return ir_binary(b, IR_FMUL, bits, ir_const_float(b, IR_F64, 0x1p-53));
}

static ir_value *uniform_f32(ir_builder *b, ir_value *seed, ir_value *index) {
    ir_value *bits =
        ir_binary(b, IR_SHR_U, philox_word(b, seed, index), ir_const_int(b, IR_I32, 8));
    return ir_binary(b, IR_FMUL, ir_cast(b, IR_SITOFP, IR_F32, bits),
                     ir_const_float(b, IR_F32, 0x1p-24));
}

/* Box and Muller (1958): elements 2k and 2k+1 are the cosine and the sine of one pair. */
static ir_value *normal(ir_builder *b, bool wide, ir_value *seed, ir_value *offset,
                        ir_value *index) {
    ir_type type = wide ? IR_F64 : IR_F32;
    ir_value *one = ir_const_int(b, IR_I64, 1);
    ir_value *odd =
        ir_binary(b, IR_NE, ir_binary(b, IR_AND, index, one), ir_const_int(b, IR_I64, 0));
    ir_value *first = ir_binary(b, IR_AND, index, ir_const_int(b, IR_I64, -2));
    if (wide) first = ir_binary(b, IR_SHL, first, one); /* two words for each number */
    first = ir_binary(b, IR_ADD, first, offset);
    ir_value *u = wide ? uniform_f64(b, seed, first) : uniform_f32(b, seed, first);
    ir_value *v =
        wide ? uniform_f64(b, seed, plus(b, first, 2)) : uniform_f32(b, seed, plus(b, first, 1));
    u = ir_binary(b, IR_FSUB, ir_const_float(b, type, 1), u); /* (0, 1] */
    ir_value *radius = ir_unary(b, IR_LOG, u);
    radius = ir_unary(b, IR_FSQRT, ir_binary(b, IR_FMUL, radius, ir_const_float(b, type, -2)));
    ir_value *angle = ir_binary(b, IR_FMUL, v, ir_const_float(b, type, 6.283185307179586));
    ir_value *turn = ir_select(b, odd, ir_unary(b, IR_SIN, angle), ir_unary(b, IR_COS, angle));
    return ir_binary(b, IR_FMUL, radius, turn);
}

static ir_value *emit_iota(ir_builder *b, const graph_node *node, const emit_element *e) {
    dtype wide = emit_scalar_dtype(OP_IOTA, node->compute);
    ir_value *index = emit_cast(b, e->flat_index, DT_I64, wide);
    bool is_float = wide == DT_F64;
    ir_value *step = ir_binary(b, is_float ? IR_FMUL : IR_MUL, index, e->scalars[1]);
    ir_value *v = ir_binary(b, is_float ? IR_FADD : IR_ADD, step, e->scalars[0]);
    return emit_cast(b, v, wide, node->out.dt);
}

static ir_value *emit_iota_axis(ir_builder *b, const graph_node *node, const emit_element *e) {
    int64_t inner = 1, axis = node->params[0];
    for (int d = (int)axis + 1; d < node->out.ndim; d++) inner *= node->out.shape[d];
    ir_value *v = ir_binary(b, IR_DIV_U, e->flat_index, ir_const_int(b, IR_I64, inner));
    v = ir_binary(b, IR_REM_U, v, ir_const_int(b, IR_I64, node->out.shape[axis]));
    return emit_cast(b, v, DT_I64, node->out.dt);
}

static ir_value *emit_random(ir_builder *b, const graph_node *node, const emit_element *e) {
    ir_value *seed = node->nin ? e->args[0] : e->scalars[0];
    ir_value *offset = e->scalars[1], *index = e->flat_index;
    bool wide = node->out.dt == DT_F64;
    dtype made = node->op == OP_RANDOM_BITS ? DT_U32 : wide ? DT_F64 : DT_F32;
    ir_value *v;
    if (node->op == OP_RANDOM_NORMAL) {
        v = normal(b, wide, seed, offset, index);
    } else {
        if (wide) index = ir_binary(b, IR_SHL, index, ir_const_int(b, IR_I64, 1));
        index = ir_binary(b, IR_ADD, index, offset);
        v = made == DT_U32 ? philox_word(b, seed, index)
            : wide         ? uniform_f64(b, seed, index)
                           : uniform_f32(b, seed, index);
    }
    return emit_cast(b, v, made, node->out.dt);
}

/* The neighbours of 16-bit floats are not those of f32: one step of their bits (devlib/scale.h). */
static ir_value *half_nextafter(ir_builder *b, dtype dt, ir_value *x, ir_value *y) {
    ir_value *u = ir_cast(b, IR_BITCAST, IR_I16, x), *v = ir_cast(b, IR_BITCAST, IR_I16, y);
    ir_value *one = ir_const_int(b, IR_I16, 1), *zero = number(b, DT_F32, 0);
    x = emit_cast(b, x, dt, DT_F32);
    y = emit_cast(b, y, dt, DT_F32);
    ir_value *away = ir_binary(b, IR_EQ, ir_binary(b, IR_FLT, x, y), ir_binary(b, IR_FLT, zero, x));
    ir_value *r = ir_select(b, away, ir_binary(b, IR_ADD, u, one), ir_binary(b, IR_SUB, u, one));
    ir_value *sign = ir_binary(b, IR_AND, v, ir_const_int(b, IR_I16, INT16_MIN));
    r = ir_select(b, ir_binary(b, IR_FEQ, x, zero), ir_binary(b, IR_OR, sign, one), r);
    r = ir_select(b, ir_binary(b, IR_FEQ, x, y), v, r); /* as C and NumPy 2.5: 0 to -0 gives -0 */
    r = ir_select(b, ir_binary(b, IR_FNE, x, x), u, r);
    r = ir_select(b, ir_binary(b, IR_FNE, y, y), v, r);
    return ir_cast(b, IR_BITCAST, emit_type(dt), r);
}

ir_value *emit_elementwise(ir_builder *b, arena *mem, const graph_node *node,
                           const emit_element *e) {
    dtype dt = node->compute, out = node->out.dt;
    switch (node->op) {
    case OP_FULL: return emit_cast(b, e->scalars[0], dt, out);
    case OP_IOTA: return emit_iota(b, node, e);
    case OP_IOTA_AXIS: return emit_iota_axis(b, node, e);
    case OP_RANDOM_BITS:
    case OP_RANDOM_UNIFORM:
    case OP_RANDOM_NORMAL: return emit_random(b, node, e);
    case OP_CAST: return emit_cast(b, e->args[0], dt, out);
    default: break;
    }
    bool half = dtype_is_float(dt) && dtype_bytes(dt) == 2;
    dtype work = half ? DT_F32 : dt;
    if (half && node->op == OP_NEXTAFTER) return half_nextafter(b, dt, e->args[0], e->args[1]);
    typed args[3];
    for (int i = 0; i < node->nin; i++) {
        dtype given = node->op == OP_WHERE && i == 0 ? DT_BOOL : dt;
        args[i] = (typed){e->args[i], given};
    }
    typed result;
    if (array_op_table[node->op].expansion[0]) {
        formula *f;
        emit_element inner = *e;
        for (int i = 0; i < node->nin; i++)
            inner.args[i] = emit_cast(b, args[i].v, args[i].dt, work);
        for (int i = 0; i < node->nscalars; i++)
            if (e->scalars[i]) inner.scalars[i] = emit_cast(b, e->scalars[i], dt, work);
        simt_status status = formula_parse(array_op_table[node->op].expansion, mem, &f);
        if (status != SIMT_OK) arena_end_run(status);
        result = emit_formula(b, mem, f, work, &inner);
    } else {
        result = emit_call(b, mem, node->op, work, args, node->nin);
    }
    dtype rounded = result.dt == work ? dt : result.dt; /* a 16-bit result is rounded here, once */
    return emit_cast(b, emit_cast(b, result.v, result.dt, rounded), rounded, out);
}

/* ---- reductions ---- */

static dtype accumulator_dtype(const graph_node *node) {
    switch (array_op_table[node->op].dtypes) {
    case 'B': return DT_BOOL;
    case 'N': {
        dtype dt = node->out.dt;
        return dtype_is_float(dt) && dtype_bytes(dt) == 2 ? DT_F32 : dt;
    }
    default: return node->in[0].dt;
    }
}

static bool has_position(const graph_node *node) { return array_op_is_position(node->op); }

/* Of positions while they are compared: 32 bits are half the work. */
static dtype position_dtype(const graph_node *node) {
    int64_t size = 1;
    for (int d = 0; d < node->in[0].ndim; d++)
        if (__builtin_mul_overflow(size, node->in[0].shape[d], &size)) return DT_I64;
    return size < INT32_MAX ? DT_I32 : DT_I64;
}

emit_accumulator emit_reduction_type(const graph_node *node) {
    dtype position = has_position(node) ? position_dtype(node) : DT_I64;
    return (emit_accumulator){has_position(node) ? 2 : 1, {accumulator_dtype(node), position}};
}

/* The largest (or smallest) value of a type: what max (min) of nothing would be. */
static ir_value *extreme(ir_builder *b, dtype dt, bool largest) {
    if (dtype_is_float(dt)) return number(b, dt, largest ? __builtin_inf() : -__builtin_inf());
    if (dt == DT_BOOL) return ir_const_int(b, IR_I1, largest);
    unsigned bits = (unsigned)dtype_bytes(dt) * 8;
    uint64_t ones = bits == 64 ? ~0ull : (1ull << bits) - 1;
    uint64_t value =
        dtype_is_signed(dt) ? (largest ? ones >> 1 : (ones >> 1) + 1) : (largest ? ones : 0);
    return ir_const_bits(b, emit_type(dt), value);
}

void emit_reduction_identity(ir_builder *b, const graph_node *node, ir_value *acc[2]) {
    dtype dt = accumulator_dtype(node);
    reduction_neutral neutral = array_op_table[node->op].neutral;
    if (neutral == LOWEST || neutral == HIGHEST)
        acc[0] = extreme(b, dt, neutral == HIGHEST);
    else if (neutral == MINUS_ZERO && dtype_is_float(dt))
        acc[0] = number(b, dt, -0.0); /* -0 + x is x, also for -0 */
    else
        acc[0] = number(b, dt, neutral == ONE);
    /* a position after all others: any element, even an equal one, comes before it */
    acc[1] = has_position(node) ? extreme(b, position_dtype(node), true) : NULL;
}

void emit_reduction_element(ir_builder *b, const graph_node *node, ir_value *value,
                            ir_value *position, ir_value *acc[2]) {
    acc[0] = emit_cast(b, value, node->in[0].dt, accumulator_dtype(node));
    acc[1] = has_position(node) ? emit_cast(b, position, DT_I64, position_dtype(node)) : NULL;
}

/* NumPy's argmax: NaN beats all, the first of equals wins. */
static void combine_position(ir_builder *b, const graph_node *node, dtype dt, ir_value *acc[2],
                             ir_value *const other[2]) {
    ir_value *better = compare(b, array_op_table[node->op].combine, dt, other[0], acc[0]);
    ir_value *same = compare(b, OP_EQUAL, dt, other[0], acc[0]);
    if (dtype_is_float(dt)) {
        ir_value *other_nan = ir_binary(b, IR_FNE, other[0], other[0]),
                 *acc_nan = ir_binary(b, IR_FNE, acc[0], acc[0]);
        better = ir_binary(b, IR_OR, better, both(b, other_nan, ir_unary(b, IR_NOT, acc_nan)));
        same = ir_binary(b, IR_OR, same, both(b, other_nan, acc_nan));
    }
    ir_value *earlier = ir_binary(b, IR_LT_S, other[1], acc[1]);
    ir_value *take = ir_binary(b, IR_OR, better, both(b, same, earlier));
    acc[0] = ir_select(b, take, other[0], acc[0]);
    acc[1] = ir_select(b, take, other[1], acc[1]);
}

void emit_reduction_step(ir_builder *b, const graph_node *node, ir_value *acc[2],
                         ir_value *const other[2]) {
    if (!has_position(node)) {
        emit_reduction_combine(b, node, acc, other);
        return;
    }
    dtype dt = accumulator_dtype(node);
    array_op better = array_op_table[node->op].combine;
    ir_value *take;
    if (dtype_is_float(dt)) { /* not other <= acc: also where other is NaN; nothing beats NaN */
        array_op not_better = better == OP_GREATER ? OP_LESS_EQUAL : OP_GREATER_EQUAL;
        take = ir_unary(b, IR_NOT, compare(b, not_better, dt, other[0], acc[0]));
        take = both(b, take, compare(b, OP_EQUAL, dt, acc[0], acc[0]));
    } else {
        take = compare(b, better, dt, other[0], acc[0]);
    }
    acc[0] = ir_select(b, take, other[0], acc[0]);
    acc[1] = ir_select(b, take, other[1], acc[1]);
}

void emit_reduction_combine(ir_builder *b, const graph_node *node, ir_value *acc[2],
                            ir_value *const other[2]) {
    dtype dt = accumulator_dtype(node);
    array_op op = array_op_table[node->op].combine;
    if (has_position(node)) {
        combine_position(b, node, dt, acc, other);
        return;
    }
    ir_value *pair[2] = {acc[0], other[0]};
    if (dtype_is_float(dt) && dtype_bytes(dt) == 2) { /* max, min of 16-bit floats: exact in f32 */
        pair[0] = emit_cast(b, pair[0], dt, DT_F32);
        pair[1] = emit_cast(b, pair[1], dt, DT_F32);
        acc[0] = emit_cast(b, emit_primitive(b, op, DT_F32, pair), DT_F32, dt);
        return;
    }
    acc[0] = emit_primitive(b, op, dt, pair);
}

ir_value *emit_reduction_result(ir_builder *b, const graph_node *node, ir_value *const acc[2]) {
    if (has_position(node)) { /* nothing was taken: all are as small (large) as can be */
        dtype dt = position_dtype(node);
        ir_value *none = ir_binary(b, IR_EQ, acc[1], extreme(b, dt, true));
        ir_value *place = ir_select(b, none, ir_const_bits(b, emit_type(dt), 0), acc[1]);
        return emit_cast(b, place, dt, node->out.dt);
    }
    ir_value *v = acc[0];
    dtype dt = accumulator_dtype(node);
    /* the sum of nothing is +0; adding it leaves every other sum but -0 as it is */
    return emit_cast(b, v, dt, node->out.dt);
}
