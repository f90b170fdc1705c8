/* Constants, identities and cheaper forms; constructs that go one way only (flatten.c).
 *
 * In and out: any valid function. What must stay true: every rule keeps the value bit for bit under the
 * numeric contract of ops.def (so x + 0.0 is no identity: it turns -0 into +0), and a rule looks at an
 * instruction and its operands only. Adding a rule: a case in fold_constant (operands all constant) or in
 * simplify (returns the value that replaces the instruction, or NULL).
 * Device functions (exp, ...) are not folded: their code is the back end's.
 */
#include "opt/walk.h"

#include <math.h>
#include <string.h>

static uint64_t bits_of(const ir_value *v) { return v->inst->imm; }

static int64_t signed_bits(const ir_value *v) {
    return ir_sign_extend(bits_of(v), ir_type_bits(v->type));
}

static double float_of(const ir_value *v) {
    uint64_t bits = bits_of(v);
    float single;
    double wide;
    switch (v->type) {
    case IR_F16: return half_to_float((uint16_t)bits);
    case IR_BF16: return bfloat_to_float((uint16_t)bits);
    case IR_F32: memcpy(&single, &bits, 4); return single;
    default: memcpy(&wide, &bits, 8); return wide;
    }
}

static uint64_t float_bits(ir_type type, double value) {
    float single = (float)value;
    uint64_t bits = 0;
    switch (type) {
    case IR_F16: return float_to_half(single);
    case IR_BF16: return float_to_bfloat(single);
    case IR_F32: memcpy(&bits, &single, 4); return bits;
    default: memcpy(&bits, &value, 8); return bits;
    }
}

/* ---- constants ---- */

static double lesser(double a, double b) { return a < b || (a == b && signbit(a)) ? a : b; }

/* Single operations in double, rounded to the type, are exact for f16, bf16 and f32 (double has more
 * than twice their bits); 16-bit types are defined through f32, which gives the same for one operation. */
static bool fold_float(ir_op op, ir_type type, double a, double b, double *out) {
    bool single = type != IR_F64;
    switch (op) {
    case IR_FADD: *out = single ? (double)((float)a + (float)b) : a + b; return true;
    case IR_FSUB: *out = single ? (double)((float)a - (float)b) : a - b; return true;
    case IR_FMUL: *out = single ? (double)((float)a * (float)b) : a * b; return true;
    case IR_FDIV: *out = single ? (double)((float)a / (float)b) : a / b; return true;
    case IR_FNEG: *out = -a; return true;
    case IR_FABS: *out = fabs(a); return true;
    case IR_FSQRT: *out = single ? (double)sqrtf((float)a) : sqrt(a); return true;
    case IR_FFLOOR: *out = floor(a); return true;
    case IR_FCEIL: *out = ceil(a); return true;
    case IR_FTRUNC: *out = trunc(a); return true;
    case IR_FRINT: *out = rint(a); return true;
    case IR_FCOPYSIGN: *out = copysign(a, b); return true;
    case IR_FREM: *out = fmod(a, b); return true;
    case IR_FMIN_NAN: *out = isnan(a) || isnan(b) ? NAN : lesser(a, b); return true;
    case IR_FMAX_NAN: *out = isnan(a) || isnan(b) ? NAN : -lesser(-a, -b); return true;
    case IR_FMIN_NUM: *out = isnan(a) ? b : isnan(b) ? a : lesser(a, b); return true;
    case IR_FMAX_NUM: *out = isnan(a) ? b : isnan(b) ? a : -lesser(-a, -b); return true;
    default: return false;
    }
}

static bool fold_compare(ir_op op, double a, double b, uint64_t *out) {
    switch (op) {
    case IR_FEQ: *out = a == b; return true;
    case IR_FNE: *out = a != b; return true;
    case IR_FLT: *out = a < b; return true;
    case IR_FLE: *out = a <= b; return true;
    default: return false;
    }
}

/* Rounded once: straight to f32 and f64; to 16 bits only values that f32 holds exactly. */
static bool fold_int_to_float(const ir_inst *inst, uint64_t *out) {
    const ir_value *a = inst->args[0];
    bool is_signed = inst->op == IR_SITOFP;
    ir_type to = inst->results->type;
    float single = is_signed ? (float)signed_bits(a) : (float)bits_of(a);
    double wide = is_signed ? (double)signed_bits(a) : (double)bits_of(a);
    if (to != IR_F64 && to != IR_F32 && fabs(wide) > 1 << 24) return false;
    *out = float_bits(to, to == IR_F64 ? wide : (double)single);
    return true;
}

/* Towards zero, saturating, NaN gives 0. */
static uint64_t float_to_int(double a, ir_type to, bool is_signed) {
    unsigned width = ir_type_bits(to);
    double end = ldexp(1, (int)(is_signed ? width - 1 : width)); /* the first value beyond */
    uint64_t most = ~0ull >> (64 - width) >> is_signed;
    a = trunc(a);
    if (isnan(a)) return 0;
    if (a >= end) return most;
    if (is_signed) return a < -end ? most + 1 : (uint64_t)(int64_t)a;
    return a < 0 ? 0 : (uint64_t)a;
}

/* In 16-bit types the back ends round twice on the way: left to them. */
static bool fold_fma(const ir_inst *inst, uint64_t *out) {
    double x[3], value;
    for (int i = 0; i < 3; i++) x[i] = float_of(inst->args[i]);
    ir_type type = inst->results->type;
    if (type == IR_F32)
        value = (double)fmaf((float)x[0], (float)x[1], (float)x[2]);
    else if (type == IR_F64)
        value = fma(x[0], x[1], x[2]);
    else
        return false;
    if (isnan(value)) return false;
    *out = float_bits(type, value);
    return true;
}

static bool fold_constant(const ir_inst *inst, uint64_t *out) {
    const ir_value *first = inst->args[0], *second = inst->nargs > 1 ? inst->args[1] : NULL;
    ir_type to = inst->results->type;
    if (inst->op == IR_FMA) return fold_fma(inst, out);
    if (inst->nargs > 2) return false;
    if (inst->op == IR_BITCAST && !ir_type_is_ptr(first->type) && !ir_type_is_ptr(to)) {
        *out = bits_of(first);
        return true;
    }
    if (inst->op == IR_SITOFP || inst->op == IR_UITOFP) return fold_int_to_float(inst, out);
    if (ir_type_is_int(first->type))
        return ir_evaluate_integer(inst->op, first->type, bits_of(first),
                                   second ? bits_of(second) : 0, out);
    if (!ir_type_is_float(first->type)) return false;
    double a = float_of(first), b = second ? float_of(second) : 0, value;
    if (fold_compare(inst->op, a, b, out)) return true;
    if (inst->op == IR_FPTOSI || inst->op == IR_FPTOUI) {
        *out = float_to_int(a, to, inst->op == IR_FPTOSI);
        return true;
    }
    bool once = first->type != IR_F64 || to == IR_F32; /* f64 to 16 bits would round twice */
    if (inst->op == IR_FPEXT || (inst->op == IR_FPTRUNC && once))
        value = a;
    else if (!fold_float(inst->op, first->type, a, b, &value))
        return false;
    if (isnan(value)) return false;
    *out = float_bits(to, value);
    return true;
}

/* ---- identities ---- */

static bool is_int(const ir_value *v, int64_t value) {
    return opt_is_const(v) && ir_type_is_int(v->type) && signed_bits(v) == value;
}
static bool is_float(const ir_value *v, double value) {
    if (!opt_is_const(v) || !ir_type_is_float(v->type)) return false;
    double have = float_of(v);
    return have == value && signbit(have) == signbit(value);
}
static bool is_ones(const ir_value *v) {
    return is_int(v, -1);
} /* i1 true is -1 when read signed */

static int power_of_two(const ir_value *v) {
    if (!opt_is_const(v) || !ir_type_is_int(v->type)) return -1;
    uint64_t bits = bits_of(v);
    return bits && !(bits & (bits - 1)) ? __builtin_ctzll(bits) : -1;
}

static ir_value *simplify_integer(const ir_inst *inst) {
    ir_value *a = inst->args[0], *b = inst->nargs > 1 ? inst->args[1] : NULL;
    switch (inst->op) {
    case IR_ADD: return is_int(b, 0) ? a : is_int(a, 0) ? b : NULL;
    case IR_SUB: return is_int(b, 0) ? a : NULL;
    case IR_MUL:
        if (is_int(b, 0) || (is_int(a, 1) && ir_type_bits(b->type) > 1)) return b;
        return is_int(a, 0) || (is_int(b, 1) && ir_type_bits(a->type) > 1) ? a : NULL;
    case IR_DIV_S:
    case IR_DIV_U: return is_int(b, 1) && ir_type_bits(a->type) > 1 ? a : NULL;
    case IR_AND:
        return a == b || is_ones(b) || is_int(a, 0) ? a : is_ones(a) || is_int(b, 0) ? b : NULL;
    case IR_OR:
        return a == b || is_int(b, 0) || is_ones(a) ? a : is_int(a, 0) || is_ones(b) ? b : NULL;
    case IR_XOR: return is_int(b, 0) ? a : is_int(a, 0) ? b : NULL;
    case IR_SHL:
    case IR_SHR_U:
    case IR_SHR_S: return is_int(b, 0) ? a : NULL;
    case IR_MIN_S:
    case IR_MAX_S:
    case IR_MIN_U:
    case IR_MAX_U: return a == b ? a : NULL;
    case IR_PTRADD: return is_int(b, 0) ? a : NULL;
    default: return NULL;
    }
}

static ir_value *simplify_float(const ir_inst *inst) {
    ir_value *a = inst->args[0], *b = inst->nargs > 1 ? inst->args[1] : NULL;
    switch (inst->op) {
    case IR_FADD: return is_float(b, -0.0) ? a : is_float(a, -0.0) ? b : NULL;
    case IR_FSUB: return is_float(b, 0.0) ? a : NULL;
    case IR_FMUL: return is_float(b, 1) ? a : is_float(a, 1) ? b : NULL;
    case IR_FDIV: return is_float(b, 1) ? a : NULL;
    case IR_FNEG: return a->inst && a->inst->op == IR_FNEG ? a->inst->args[0] : NULL;
    default: return NULL;
    }
}

static ir_value *simplify_cast(const ir_inst *inst) {
    ir_value *a = inst->args[0];
    ir_type to = inst->results->type;
    if (a->type == to && (inst->op == IR_TRUNC || inst->op == IR_SEXT || inst->op == IR_ZEXT ||
                          inst->op == IR_BITCAST || inst->op == IR_FPEXT || inst->op == IR_FPTRUNC))
        return a;
    if (!a->inst || !a->inst->nargs || a->inst->args[0]->type != to) return NULL;
    bool widened = a->inst->op == IR_SEXT || a->inst->op == IR_ZEXT;
    if (inst->op == IR_TRUNC && widened) return a->inst->args[0];
    if (inst->op == IR_FPTRUNC && a->inst->op == IR_FPEXT) return a->inst->args[0];
    if (inst->op == IR_CVTA && a->inst->op == IR_CVTA) return a->inst->args[0];
    return NULL;
}

static ir_value *simplify(const ir_inst *inst) {
    if (inst->op == IR_SELECT) {
        if (inst->args[1] == inst->args[2]) return inst->args[1];
        return opt_is_const(inst->args[0]) ? inst->args[bits_of(inst->args[0]) ? 1 : 2] : NULL;
    }
    if (inst->op == IR_NE &&
        is_int(inst->args[1], 0)) { /* a truth value to its memory form and back */
        const ir_inst *from = inst->args[0]->inst;
        if (from && from->op == IR_ZEXT && from->args[0]->type == IR_I1) return from->args[0];
    }
    bool converts = ir_op_group(inst->op) == IR_IN_CONVERT;
    if (ir_type_is_float(inst->args[0]->type) && !converts) return simplify_float(inst);
    if (converts) return simplify_cast(inst);
    return simplify_integer(inst);
}

/* ---- cheaper forms, in place ---- */

/* What is reached by a generic pointer whose space is known is reached in that space; offsets are added there. */
static void leave_generic(ir_func *f, ir_inst *inst) {
    if (inst->nargs == 0 || inst->args[0]->type != IR_PTR_GENERIC) return;
    const ir_inst *from = inst->args[0]->inst;
    if (from == NULL || from->op != IR_CVTA) return;
    ir_value *in_space = from->args[0];
    if (inst->op == IR_PTRADD) {
        ir_builder b = {.f = f, .at = inst->parent, .before = inst, .pos = inst->pos};
        inst->args[0] = ir_ptradd(&b, in_space, inst->args[1]);
        inst->nargs = 1;
        inst->op = IR_CVTA;
    } else if (inst->op == IR_LOAD || (in_space->type != IR_PTR_CONST &&
                                       (inst->op == IR_STORE || ir_op_is_atomic(inst->op)))) {
        inst->args[0] = in_space;
    }
}

static void replace_second(ir_func *f, ir_inst *inst, ir_op op, uint64_t constant) {
    ir_builder b = {.f = f, .at = inst->parent, .before = inst, .pos = inst->pos};
    inst->args[1] = ir_const_bits(&b, inst->args[1]->type, constant);
    inst->op = op;
}

static void strengthen(ir_func *f, ir_inst *inst) {
    if (inst->nargs != 2) return;
    int power = power_of_two(inst->args[1]);
    if (power < 0 || ir_type_bits(inst->args[0]->type) == 1) return;
    switch (inst->op) {
    case IR_DIV_U: replace_second(f, inst, IR_SHR_U, (uint64_t)power); break;
    case IR_REM_U: replace_second(f, inst, IR_AND, bits_of(inst->args[1]) - 1); break;
    default: break;
    }
}

static void visit(ir_func *f, ir_region *region) {
    for (ir_inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        opt_resolve_args(inst);
        leave_generic(f, inst);
        const ir_op_info *info = &ir_op_table[inst->op];
        if (info->pure && inst->nargs > 0) {
            bool constant = true;
            for (unsigned i = 0; i < inst->nargs; i++)
                constant = constant && opt_is_const(inst->args[i]);
            uint64_t bits;
            ir_value *same;
            if (constant && fold_constant(inst, &bits)) {
                opt_become_const(inst, bits);
            } else if ((same = simplify(inst))) {
                opt_forward(inst->results, same);
                ir_inst_remove(inst);
            } else {
                strengthen(f, inst);
            }
            continue;
        }
        if (inst->op == IR_IF) opt_flatten_if(inst);
        if (inst->op == IR_LOOP) opt_flatten_loop(inst);
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(f, inst->regions[r]);
        if (inst->op == IR_BLOCK && opt_flatten_block(inst)) return;
    }
}

void opt_fold(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    opt_clear_notes(f);
    opt_note_constructs(f, mem);
    visit(f, &f->body);
}
