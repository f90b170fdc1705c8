/* numba.cuda's intrinsics: coordinates, memory, barriers, warps, atomics. */
#include "frontend/python/intrinsics.h"

#include <string.h>

/* ---- coordinates ---- */

bool cuda_special(py_ctx *c, py_call *x, py_val *out) {
    *out = py_val_scalar(c, PY_S_I32, py_emit_special(c, (ir_special)x->extra));
    out->nonneg = true;
    return true;
}

bool cuda_warpsize(py_ctx *c, py_call *x, py_val *out) {
    py_constant k = {.kind = PY_VALUE_INT, .integer = IR_WARP_SIZE};
    *out = py_val_constant(c, &k, PY_S_I32);
    return true;
}

static ir_value *wide(py_ctx *c, ir_special s) {
    return py_emit_cast(c, IR_SEXT, IR_I64, py_emit_special(c, s));
}

bool cuda_grid(py_ctx *c, py_call *x, py_val *out) {
    py_val axes[3], *n = py_argument(x, 0, "ndim");
    if (!py_check_arguments(c, x, 1, 1, "ndim")) return false;
    if (!n->is_const || n->value.kind != PY_VALUE_INT || n->value.integer < 1 ||
        n->value.integer > 3)
        return py_fail(c, x->node, "%s takes the constant 1, 2 or 3", x->name);
    uint32_t ndim = (uint32_t)n->value.integer;
    for (uint32_t i = 0; i < ndim; i++) {
        ir_value *block = wide(c, IR_NTID_X + i);
        ir_value *outer = wide(c, (x->extra == 1 ? IR_NCTAID_X : IR_CTAID_X) + i);
        ir_value *v = py_emit_binary(c, IR_MUL, outer, block);
        if (x->extra == 0) v = py_emit_binary(c, IR_ADD, v, wide(c, IR_TID_X + i));
        axes[i] = py_val_scalar(c, PY_S_I64, v);
        axes[i].nonneg = true;
    }
    if (ndim == 1) {
        *out = axes[0];
        return true;
    }
    py_val *items = PY_NEW(c, py_val, ndim);
    memcpy(items, axes, sizeof *items * ndim);
    *out = py_val_tuple(c, items, ndim);
    return true;
}

/* ---- memory ---- */

bool py_type_argument(py_ctx *c, py_call *x, const py_val *v, py_entity *out) {
    if (v->type->kind == TY_ENTITY && v->type->entity->kind == PY_ENTITY_TYPE) {
        *out = *v->type->entity;
        return true;
    }
    if (v->type->kind == TY_STRING && v->is_const && v->value.kind == PY_VALUE_STRING) {
        for (int s = PY_S_BOOL; s < PY_SCALAR_COUNT; s++)
            if (strcmp(py_scalar_name((py_scalar)s), v->value.text) == 0) {
                *out = (py_entity){.kind = PY_ENTITY_TYPE, .type = (py_scalar)s};
                return true;
            }
    }
    return py_fail(c, x->node, "%s: the dtype must be a type such as numba.float32, not %s",
                   x->name, py_type_text(c, v->type));
}

/* As Numba: a power of two that is a multiple of a pointer's size; None: the usual one. */
static bool alignment_argument(py_ctx *c, py_call *x, const py_val *v, int64_t *out) {
    if (v == NULL || v->type->kind == TY_NONE) return true;
    bool constant = v->is_const && v->value.kind == PY_VALUE_INT;
    *out = constant ? v->value.integer : 0;
    if (*out >= 8 && *out <= 1 << 16 && (*out & (*out - 1)) == 0) return true;
    return py_fail(c, x->node, "%s: alignment must be a constant power of 2, from 8 to 65536",
                   x->name);
}

bool cuda_array(py_ctx *c, py_call *x, py_val *out) {
    py_entity type;
    if (!py_check_arguments(c, x, 2, 3, "shape, dtype, alignment")) return false;
    py_val *shape = py_argument(x, 0, "shape"), *dt = py_argument(x, 1, "dtype");
    if (shape == NULL || dt == NULL)
        return py_fail(c, x->node, "%s takes a shape and a dtype", x->name);
    int64_t alignment = 0;
    return alignment_argument(c, x, py_argument(x, 2, "alignment"), &alignment) &&
           py_type_argument(c, x, dt, &type) &&
           py_array_alloc(c, x->node, shape, &type, (ir_type)x->extra, alignment, out);
}

bool cuda_const_array(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 1, 1, "ary")) return false;
    *out = x->args[0];
    if (out->type->kind != TY_ARRAY || !out->type->readonly)
        return py_fail(c, x->node, "%s takes a NumPy array of the module or closure", x->name);
    return true;
}

/* ldcg(array, index), stcg(array, index, value) and their kin: the hint changes no value. */
static bool check_hinted(py_ctx *c, const py_call *x) {
    return x->args[0].type->kind == TY_ARRAY ||
           py_fail(c, x->node, "%s takes an array first, not %s", x->name,
                   py_type_text(c, x->args[0].type));
}

bool cuda_load(py_ctx *c, py_call *x, py_val *out) {
    return py_check_arguments(c, x, 2, 2, "") && check_hinted(c, x) &&
           py_get_item(c, x->node, &x->args[0], &x->args[1], out);
}

bool cuda_store(py_ctx *c, py_call *x, py_val *out) {
    *out = py_val_none();
    return py_check_arguments(c, x, 3, 3, "") && check_hinted(c, x) &&
           py_set_item(c, x->node, &x->args[0], &x->args[1], &x->args[2]);
}

/* ---- barriers and fences ---- */

bool cuda_syncthreads(py_ctx *c, py_call *x, py_val *out) {
    *out = py_val_none();
    if (!py_check_arguments(c, x, 0, 0, "")) return false;
    if (c->emit) ir_barrier(&c->b);
    return true;
}

static bool predicate(py_ctx *c, py_call *x, const py_val *v, ir_value **out) {
    py_val truth;
    if (!py_truth(c, x->node, v, &truth)) return false;
    *out = py_slot(&truth, 0);
    return true;
}

bool cuda_barrier_reduce(py_ctx *c, py_call *x, py_val *out) {
    ir_value *p, *r = NULL;
    if (!py_check_arguments(c, x, 1, 1, "predicate") || !predicate(c, x, &x->args[0], &p))
        return false;
    p = py_emit_cast(c, IR_ZEXT, IR_I32, p);
    if (c->emit) r = ir_barrier_reduce(&c->b, (ir_op)x->extra, p);
    *out = py_val_scalar(c, PY_S_I32, r);
    out->nonneg = true;
    return true;
}

static bool mask_argument(py_ctx *c, py_call *x, const py_val *v, ir_value **out) {
    py_val m;
    if (v == NULL) {
        *out = py_emit_int(c, IR_I32, -1);
        return true;
    }
    if (!py_to_index(c, x->node, v, "a mask of lanes", &m)) return false;
    *out = py_emit_cast(c, IR_TRUNC, IR_I32, py_slot(&m, 0));
    return true;
}

bool cuda_syncwarp(py_ctx *c, py_call *x, py_val *out) {
    ir_value *mask;
    *out = py_val_none();
    if (!py_check_arguments(c, x, 0, 1, "mask") ||
        !mask_argument(c, x, py_argument(x, 0, "mask"), &mask))
        return false;
    if (c->emit) ir_syncwarp(&c->b, mask);
    return true;
}

bool cuda_fence(py_ctx *c, py_call *x, py_val *out) {
    *out = py_val_none();
    if (!py_check_arguments(c, x, 0, 0, "")) return false;
    if (c->emit) ir_fence(&c->b, (ir_scope)x->extra);
    return true;
}

bool cuda_this_grid(py_ctx *c, py_call *x, py_val *out) {
    static const py_entity group = {.kind = PY_ENTITY_INTRINSIC, .name = "cuda.cg.grid_group"};
    if (!py_check_arguments(c, x, 0, 0, "")) return false;
    *out = py_val_entity(c, &group);
    return true;
}

bool cuda_grid_sync(py_ctx *c, py_call *x, py_val *out) {
    *out = py_val_none();
    if (!py_check_arguments(c, x, 0, 0, "")) return false;
    if (c->emit) ir_grid_sync(&c->b);
    return true;
}

bool cuda_nanosleep(py_ctx *c, py_call *x, py_val *out) { /* a hint only */
    *out = py_val_none();
    return py_check_arguments(c, x, 1, 1, "ns");
}

/* ---- warps ---- */

bool cuda_shfl(py_ctx *c, py_call *x, py_val *out) {
    ir_value *mask, *r = NULL;
    py_val lane;
    const char *names = x->extra == IR_SHFL_IDX    ? "mask, value, src_lane"
                        : x->extra == IR_SHFL_BFLY ? "mask, value, lane_mask"
                                                   : "mask, value, delta";
    if (!py_check_arguments(c, x, 3, 3, names) || !mask_argument(c, x, &x->args[0], &mask))
        return false;
    py_val *v = &x->args[1];
    py_scalar s = py_scalar_of(v);
    if (py_scalar_bytes(s) < 4 || py_scalar_is_complex(s))
        return py_fail(c, x->node, "%s exchanges 32- and 64-bit values, not %s", x->name,
                       py_type_text(c, v->type));
    if (!py_to_index(c, x->node, &x->args[2], "a lane", &lane)) return false;
    ir_value *l = py_emit_cast(c, IR_TRUNC, IR_I32, py_slot(&lane, 0));
    if (c->emit)
        r = ir_shfl(&c->b, (ir_op)x->extra, py_slot(v, 0), l, mask,
                    py_emit_int(c, IR_I32, IR_WARP_SIZE));
    *out = py_val_scalar(c, s, r);
    return true;
}

bool cuda_vote(py_ctx *c, py_call *x, py_val *out) {
    ir_value *mask, *p, *r = NULL;
    if (!py_check_arguments(c, x, 2, 2, "mask, predicate") ||
        !mask_argument(c, x, &x->args[0], &mask) || !predicate(c, x, &x->args[1], &p))
        return false;
    if (c->emit) r = ir_vote(&c->b, (ir_op)x->extra, p, mask);
    *out = py_val_scalar(c, x->extra == IR_BALLOT ? PY_S_U32 : PY_S_BOOL, r);
    out->nonneg = x->extra == IR_BALLOT;
    return true;
}

bool cuda_match(py_ctx *c, py_call *x, py_val *out) {
    ir_value *mask, *r = NULL;
    if (!py_check_arguments(c, x, 2, 2, "mask, value") || !mask_argument(c, x, &x->args[0], &mask))
        return false;
    py_val *v = &x->args[1];
    py_scalar s = py_scalar_of(v);
    if (py_scalar_bytes(s) < 4 || py_scalar_is_complex(s))
        return py_fail(c, x->node, "%s compares 32- and 64-bit values, not %s", x->name,
                       py_type_text(c, v->type));
    if (c->emit) r = ir_vote(&c->b, (ir_op)x->extra, py_slot(v, 0), mask);
    *out = py_val_scalar(c, PY_S_I32, r);
    if (x->extra == IR_MATCH_ANY) return true;
    py_val *items = PY_NEW(c, py_val, 2);
    items[0] = *out;
    items[1] = py_val_scalar(c, PY_S_BOOL, py_emit_binary(c, IR_NE, r, py_emit_zero(c, IR_I32)));
    *out = py_val_tuple(c, items, 2);
    return true;
}

bool cuda_activemask(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 0, 0, "")) return false;
    *out = py_val_scalar(c, PY_S_U32, c->emit ? ir_activemask(&c->b) : NULL);
    out->nonneg = true;
    return true;
}

bool cuda_lanemask_lt(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 0, 0, "")) return false;
    ir_value *one = py_emit_int(c, IR_I32, 1);
    ir_value *bit = py_emit_binary(c, IR_SHL, one, py_emit_special(c, IR_LANEID));
    *out = py_val_scalar(c, PY_S_U32, py_emit_binary(c, IR_SUB, bit, one));
    out->nonneg = true;
    return true;
}

/* ---- bits ---- */

static bool integer_argument(py_ctx *c, py_call *x, py_val *out) {
    py_scalar s = py_scalar_of(&x->args[0]);
    if (!py_scalar_is_integral(s))
        return py_fail(c, x->node, "%s takes an integer, not %s", x->name,
                       py_type_text(c, x->args[0].type));
    /* narrower ones are widened to 32 bits, as CUDA's */
    bool is_unsigned = py_scalar_is_unsigned(s) || s == PY_S_BOOL;
    py_scalar to = py_scalar_bytes(s) == 8 ? s : is_unsigned ? PY_S_U32 : PY_S_I32;
    return py_to_scalar(c, x->node, &x->args[0], to, out);
}

bool cuda_bits(py_ctx *c, py_call *x, py_val *out) {
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "x") || !integer_argument(c, x, &v)) return false;
    ir_value *r = py_emit_unary(c, (ir_op)x->extra, py_slot(&v, 0));
    py_scalar s = v.type->scalar;
    if (x->extra == IR_BREV) s = py_scalar_bytes(s) == 8 ? PY_S_U64 : PY_S_U32;
    *out = py_val_scalar(c, s, r);
    out->nonneg = true;
    return true;
}

bool cuda_ffs(py_ctx *c, py_call *x,
              py_val *out) { /* place of the lowest one bit from 1; 0: none */
    py_val v;
    if (!py_check_arguments(c, x, 1, 1, "x") || !integer_argument(c, x, &v)) return false;
    ir_type t = py_scalar_ir(v.type->scalar);
    ir_value *p = py_slot(&v, 0), *none = py_emit_binary(c, IR_EQ, p, py_emit_zero(c, t));
    ir_value *place = py_emit_binary(c, IR_ADD, py_emit_unary(c, IR_CTZ, p), py_emit_int(c, t, 1));
    ir_value *r = py_emit_select(c, none, py_emit_zero(c, t), place);
    if (t == IR_I64) r = py_emit_cast(c, IR_TRUNC, IR_I32, r);
    *out = py_val_scalar(c, PY_S_U32, r);
    out->nonneg = true;
    return true;
}

bool cuda_selp(py_ctx *c, py_call *x, py_val *out) {
    ir_value *p;
    py_val a, b;
    if (!py_check_arguments(c, x, 3, 3, "") || !predicate(c, x, &x->args[0], &p)) return false;
    const py_type *t = py_type_unify(c, x->args[1].type, x->args[2].type);
    if (t == NULL || t->kind != TY_SCALAR)
        return py_fail(c, x->node, "%s chooses between two numbers", x->name);
    if (!py_convert(c, x->node, &x->args[1], t, &a) || !py_convert(c, x->node, &x->args[2], t, &b))
        return false;
    ir_value *re = py_emit_select(c, p, py_slot(&a, 0), py_slot(&b, 0));
    *out =
        py_scalar_is_complex(t->scalar)
            ? py_val_complex(c, t->scalar, re, py_emit_select(c, p, py_slot(&a, 1), py_slot(&b, 1)))
            : py_val_scalar(c, t->scalar, re);
    return true;
}

bool cuda_fma(py_ctx *c, py_call *x, py_val *out) {
    py_val v[3];
    if (!py_check_arguments(c, x, 3, 3, "")) return false;
    py_scalar s = PY_S_F32;
    for (int i = 0; i < 3; i++) {
        py_scalar t = py_scalar_of(&x->args[i]);
        if (t == PY_S_NONE || py_scalar_is_complex(t))
            return py_fail(c, x->node, "%s takes three real numbers", x->name);
        s = py_scalar_unify(s, t);
    }
    for (int i = 0; i < 3; i++)
        if (!py_to_scalar(c, x->node, &x->args[i], s, &v[i])) return false;
    *out = py_val_scalar(
        c, s, py_emit_ternary(c, IR_FMA, py_slot(&v[0], 0), py_slot(&v[1], 0), py_slot(&v[2], 0)));
    return true;
}

/* ---- atomics ---- */

/* The op of a kind on an element type; IR_OP_COUNT: none. */
static ir_op atomic_op(py_atomic kind, py_scalar s) {
    bool floats = py_scalar_is_float(s), is_signed = py_scalar_is_signed(s);
    switch (kind) {
    case PY_ATOMIC_ADD:
    case PY_ATOMIC_SUB: return floats ? IR_ATOMIC_FADD : IR_ATOMIC_ADD;
    case PY_ATOMIC_MAX:
        return floats ? IR_ATOMIC_FMAX_ORD : is_signed ? IR_ATOMIC_MAX_S : IR_ATOMIC_MAX_U;
    case PY_ATOMIC_MIN:
        return floats ? IR_ATOMIC_FMIN_ORD : is_signed ? IR_ATOMIC_MIN_S : IR_ATOMIC_MIN_U;
    case PY_ATOMIC_NANMAX:
        return floats ? IR_ATOMIC_FMAX : is_signed ? IR_ATOMIC_MAX_S : IR_ATOMIC_MAX_U;
    case PY_ATOMIC_NANMIN:
        return floats ? IR_ATOMIC_FMIN : is_signed ? IR_ATOMIC_MIN_S : IR_ATOMIC_MIN_U;
    case PY_ATOMIC_EXCH: return IR_ATOMIC_EXCH;
    case PY_ATOMIC_AND: return floats ? IR_OP_COUNT : IR_ATOMIC_AND;
    case PY_ATOMIC_OR: return floats ? IR_OP_COUNT : IR_ATOMIC_OR;
    case PY_ATOMIC_XOR: return floats ? IR_OP_COUNT : IR_ATOMIC_XOR;
    case PY_ATOMIC_INC: return floats ? IR_OP_COUNT : IR_ATOMIC_INC;
    default: return floats ? IR_OP_COUNT : IR_ATOMIC_DEC;
    }
}

static bool check_atomic_array(py_ctx *c, py_call *x, const py_val *of, py_scalar *s) {
    if (of->type->kind != TY_ARRAY)
        return py_fail(c, x->node, "%s: the first argument must be an array, not %s", x->name,
                       py_type_text(c, of->type));
    *s = of->type->scalar;
    if (of->type->record != NULL)
        return py_fail(c, x->node, "%s works on a field of records: give its array, a.x", x->name);
    if (py_scalar_bytes(*s) < 4 || py_scalar_is_complex(*s))
        return py_fail(c, x->node, "%s works on arrays of 32- and 64-bit numbers, not %s", x->name,
                       py_scalar_name(*s));
    return true;
}

static uint64_t relaxed(void) { return IR_MEM(IR_RELAXED, IR_SCOPE_DEVICE); }

bool cuda_atomic(py_ctx *c, py_call *x, py_val *out) {
    py_scalar s;
    py_element e;
    py_val v;
    if (!py_check_arguments(c, x, 3, 3, "ary, idx, val")) return false;
    py_val *of = py_argument(x, 0, "ary"), *index = py_argument(x, 1, "idx");
    py_val *value = py_argument(x, 2, "val");
    if (of == NULL || index == NULL || value == NULL)
        return py_fail(c, x->node, "%s takes an array, an index and a value", x->name);
    if (!check_atomic_array(c, x, of, &s)) return false;
    ir_op op = atomic_op((py_atomic)x->extra, s);
    if (op == IR_OP_COUNT)
        return py_fail(c, x->node, "%s works on arrays of integers, not %s", x->name,
                       py_scalar_name(s));
    if (!py_to_scalar(c, x->node, value, s, &v)) return false;
    ir_type t = py_scalar_ir(s);
    ir_value *operand = py_slot(&v, 0), *old = NULL, *result = NULL;
    if (x->extra == PY_ATOMIC_SUB)
        operand = py_scalar_is_float(s) ? py_emit_unary(c, IR_FNEG, operand)
                                        : py_emit_binary(c, IR_SUB, py_emit_zero(c, t), operand);
    if (!py_element_begin(c, x->node, of, index, &t, 1, &e)) return false;
    if (c->emit) old = ir_atomic(&c->b, op, e.address, operand, NULL, relaxed());
    py_element_end(c, &e, &old, 1, &result);
    *out = py_val_scalar(c, s, result);
    return true;
}

static bool exchange(py_ctx *c, py_call *x, const py_val *of, const py_val *index,
                     const py_val *expected, const py_val *value, py_val *out) {
    py_scalar s;
    py_element e;
    py_val a, b;
    if (!check_atomic_array(c, x, of, &s)) return false;
    if (!py_to_scalar(c, x->node, expected, s, &a) || !py_to_scalar(c, x->node, value, s, &b))
        return false;
    ir_type t = py_scalar_ir(s);
    ir_value *old = NULL, *result = NULL;
    if (!py_element_begin(c, x->node, of, index, &t, 1, &e)) return false;
    if (c->emit)
        old = ir_atomic(&c->b, IR_ATOMIC_CAS, e.address, py_slot(&a, 0), py_slot(&b, 0),
                        IR_MEM(IR_ACQ_REL, IR_SCOPE_DEVICE));
    py_element_end(c, &e, &old, 1, &result);
    *out = py_val_scalar(c, s, result);
    return true;
}

bool cuda_cas(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 4, 4, "")) return false;
    return exchange(c, x, &x->args[0], &x->args[1], &x->args[2], &x->args[3], out);
}

bool cuda_compare_and_swap(py_ctx *c, py_call *x, py_val *out) {
    if (!py_check_arguments(c, x, 3, 3, "")) return false;
    py_val zero = py_val_int(c, 0);
    return exchange(c, x, &x->args[0], &zero, &x->args[1], &x->args[2], out);
}
