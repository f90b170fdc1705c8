/* Elementwise rows with their gradients, in place too; casts, copies, dropout. */
#include "array/meta.h"
#include "grad/evaluate.h"
#include "grad/work.h"

#include <string.h>

/* What PyTorch calls the node, where it has one. */
static const char *node_name(array_op op) {
    const array_op_info *row = &array_op_table[op];
    return *row->node ? row->node : row->name;
}

/* ---- the rule of every elementwise row ---- */

/* maximum and its kin: the chosen operand gets g, both get half where they are equal. */
static simt_status rule_maximum(grad_node *n, const formula_values *v, int i, tensor **in) {
    work w = {0};
    tensor *g = v->variable[FORMULA_G].t;
    tensor_operand mine = v->variable[i], other = v->variable[1 - i];
    bool least = n->op == OP_MINIMUM || n->op == OP_FMIN;
    tensor_operand pair[2] = {mine, other};
    tensor *chosen = NULL, *equal = NULL;
    simt_status s = grad_elementwise(least ? OP_LESS : OP_GREATER, pair, 2, NULL, &chosen);
    chosen = work_own(&w, s, chosen);
    if (s == SIMT_OK) {
        s = grad_elementwise(OP_EQUAL, pair, 2, NULL, &equal);
        equal = work_own(&w, s, equal);
    }
    tensor *half = w_where(&w, equal, w_scale(&w, g, 0.5), NULL);
    tensor *result = w.status == SIMT_OK ? NULL : half;
    if (w.status == SIMT_OK) {
        tensor_operand pick[3] = {{chosen}, {g}, {half}};
        s = grad_elementwise(OP_WHERE, pick, 3, NULL, &result);
        result = work_own(&w, s, result);
    }
    *in = w_take(&w, result);
    return work_end(&w);
}

static simt_status rule_elementwise(grad_node *n, tensor *const *out, tensor **in) {
    formula_values v = {0};
    simt_status s = SIMT_OK;
    v.variable[FORMULA_G].t = out[0];
    for (int i = 0; i < 4; i++)
        v.variable[FORMULA_S0 + i].s = (scalar){.kind = 'F', .f = n->options[i]};
    tensor *saved[4] = {NULL};
    for (int i = 0; i < 4 && s == SIMT_OK; i++) {
        if (n->saved[i].t || n->saved[i].a) s = grad_get_saved(n, i, &saved[i]);
        if (i < 3) v.variable[i] = (tensor_operand){saved[i], n->scalars[i]};
    }
    v.variable[FORMULA_Y].t = saved[3];
    for (int i = 0; i < n->nin && s == SIMT_OK; i++) {
        if (!grad_wants(n, i)) continue;
        const gradient_rule *r;
        s = gradient_get(n->op, i, &r);
        if (s != SIMT_OK) break;
        switch (r->kind) {
        case GRADIENT_FORMULA: s = formula_evaluate(r->f, &v, &in[i]); break;
        case GRADIENT_ZERO: s = grad_full_like(out[0], 0, &in[i]); break;
        case GRADIENT_NAMED: /* cast: the engine gives g the operand's type */
            if (n->op == OP_CAST)
                in[i] = tensor_ref(out[0]);
            else
                s = rule_maximum(n, &v, i, &in[i]);
            break;
        default:
            s = status_fail(SIMT_ERR_RUNTIME, "derivative for %s is not implemented",
                            array_op_table[n->op].name);
        }
    }
    for (int i = 0; i < 4; i++) tensor_unref(saved[i]);
    return s;
}

static simt_status make_node(array_op op, const tensor_operand *in, int nin, const grad_options *o,
                             bool inplace, grad_node **out, bool *save_result) {
    tensor *inputs[3] = {NULL};
    for (int i = 0; i < nin; i++) inputs[i] = in[i].t;
    *save_result = false;
    SIMT_TRY(grad_node_new(node_name(op), rule_elementwise, inputs, nin, 4, 0, out));
    grad_node *n = *out;
    if (!n) return SIMT_OK;
    n->op = op;
    uint32_t named = 0;
    for (int i = 0; i < nin; i++) {
        n->scalars[i] = in[i].s;
        if (!grad_wants(n, i)) continue;
        const gradient_rule *r;
        simt_status s = gradient_get(op, i, &r);
        if (s != SIMT_OK) {
            grad_node_unref(n);
            return s;
        }
        named |= r->variables;
        if (r->kind == GRADIENT_NAMED && op != OP_CAST) named |= 3u; /* maximum: a and b */
    }
    for (int i = 0; i < nin; i++)
        if (named & 1u << i && !(inplace && i == 0)) grad_save(n, i, in[i].t);
    if (inplace && named & 1u) { /* the value that is about to be overwritten */
        array *old;
        simt_status s = array_copy(in[0].t->a, &old);
        tensor *copy = s == SIMT_OK ? tensor_new(old) : NULL;
        if (!copy) {
            grad_node_unref(n);
            *out = NULL;
            return s == SIMT_OK ? SIMT_ERR_MEMORY : s;
        }
        grad_save(n, 0, copy);
        tensor_unref(copy);
    }
    *save_result = named & 1u << FORMULA_Y;
    for (int i = 0; o && i < o->nscalars; i++) n->options[i] = o->scalars[i];
    return SIMT_OK;
}

static void fill_operands(const tensor_operand *in, int nin, operand *to) {
    for (int i = 0; i < nin; i++)
        to[i] = in[i].t ? (operand){.a = in[i].t->a} : (operand){.s = in[i].s, .weak = true};
}

simt_status grad_elementwise(array_op op, const tensor_operand *in, int nin, const grad_options *o,
                             tensor **out) {
    operand operands[3];
    fill_operands(in, nin, operands);
    op_options options = {.face = FACE_TORCH, .default_float = grad_default_float};
    if (o) {
        options.has_dtype = o->has_dtype;
        options.dt = o->dt;
        options.scalars = o->scalars;
        options.nscalars = o->nscalars;
    }
    array *a;
    SIMT_TRY(array_elementwise(op, operands, nin, &options, &a));
    if (!grad_enabled || !dtype_is_float(a->dt)) return grad_finish(a, NULL, out);
    grad_node *n;
    bool save_result;
    simt_status s = make_node(op, in, nin, o, false, &n, &save_result);
    if (s != SIMT_OK) {
        array_unref(a);
        return s;
    }
    SIMT_TRY(grad_finish(a, n, out));
    if (save_result) grad_save_output((*out)->fn, 3, *out, 0);
    return SIMT_OK;
}

/* PyTorch's words for what an in-place operation cannot hold. */
static simt_status check_target(array_op op, const tensor_operand *in, int nin) {
    graph_type types[3];
    const int64_t *shapes[3];
    int ndims[3], count = 0;
    for (int i = 0; i < nin; i++) {
        const array *a = in[i].t ? in[i].t->a : NULL;
        dtype weak = in[i].s.kind == 'F' ? DT_F64 : in[i].s.kind == 'B' ? DT_BOOL : DT_I64;
        types[i] = a ? (graph_type){a->dt, false, a->ndim == 0} : (graph_type){weak, true, false};
        if (!a) continue;
        shapes[count] = a->shape;
        ndims[count++] = a->ndim;
    }
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    const array *target = in[0].t->a;
    SIMT_TRY(graph_broadcast(FACE_TORCH, shapes, ndims, count, shape, &ndim));
    if (ndim != target->ndim || memcmp(shape, target->shape, sizeof *shape * (size_t)ndim) != 0) {
        char mine[300], theirs[300];
        shape_text(target->shape, target->ndim, mine, sizeof mine);
        shape_text(shape, ndim, theirs, sizeof theirs);
        return status_fail(SIMT_ERR_RUNTIME,
                           "output with shape %s doesn't match the broadcast shape %s", mine,
                           theirs);
    }
    dtype compute, result;
    SIMT_TRY(graph_dtypes(op, FACE_TORCH, types, nin, grad_default_float, &compute, &result));
    int order[2];
    const dtype both[2] = {result, target->dt};
    for (int i = 0; i < 2; i++) order[i] = dtype_is_float(both[i]) ? 2 : both[i] == DT_BOOL ? 0 : 1;
    if (order[0] > order[1])
        return status_fail(SIMT_ERR_RUNTIME,
                           "result type %s can't be cast to the desired output type %s",
                           dtype_torch_name(result), dtype_torch_name(target->dt));
    return SIMT_OK;
}

simt_status grad_elementwise_inplace(array_op op, const tensor_operand *in, int nin,
                                     const grad_options *o) {
    tensor *t = in[0].t;
    SIMT_TRY(grad_check_inplace(t));
    SIMT_TRY(check_target(op, in, nin));
    grad_node *n = NULL;
    bool save_result = false;
    if (grad_enabled && dtype_is_float(t->a->dt))
        SIMT_TRY(make_node(op, in, nin, o, true, &n, &save_result));
    operand operands[3];
    fill_operands(in, nin, operands);
    op_options options = {.face = FACE_TORCH, .default_float = grad_default_float, .out = t->a};
    if (o) {
        options.scalars = o->scalars;
        options.nscalars = o->nscalars;
    }
    array *a;
    simt_status s = array_elementwise(op, operands, nin, &options, &a);
    if (s != SIMT_OK) {
        grad_node_unref(n);
        return s;
    }
    array_unref(a);
    if (n && save_result) grad_save_output(n, 3, t, 0);
    return grad_attach_inplace(t, n);
}

simt_status grad_unary(array_op op, tensor *a, tensor **out) {
    tensor_operand in[1] = {{a}};
    return grad_elementwise(op, in, 1, NULL, out);
}

simt_status grad_binary(array_op op, tensor *a, tensor *b, tensor **out) {
    tensor_operand in[2] = {{a}, {b}};
    return grad_elementwise(op, in, 2, NULL, out);
}

simt_status grad_binary_scalar(array_op op, tensor *a, double s, tensor **out) {
    tensor_operand in[2] = {{a}, {NULL, {.kind = 'F', .f = s}}};
    return grad_elementwise(op, in, 2, NULL, out);
}

/* x ** 2 and x ** 0.5 are cheaper rows; integers to negative powers are refused. */
simt_status grad_power(const tensor_operand *in, tensor **out) {
    if (in[0].t && !in[1].t) {
        bool integer_base = !dtype_is_float(in[0].t->a->dt);
        scalar s = in[1].s;
        if (integer_base && s.kind == 'I' && s.i < 0)
            return status_fail(SIMT_ERR_RUNTIME,
                               "Integers to negative integer powers are not allowed.");
        double exponent = s.kind == 'F' ? s.f : (double)s.i;
        if (exponent == 2 && (s.kind == 'I' || !integer_base))
            return grad_elementwise(OP_SQUARE, in, 1, NULL, out);
    }
    return grad_elementwise(OP_POWER, in, 2, NULL, out);
}

/* ---- casts and copies ---- */

static simt_status rule_pass(grad_node *n, tensor *const *out, tensor **in) {
    in[0] = tensor_ref(out[0]);
    return SIMT_OK;
}

simt_status grad_cast(tensor *t, dtype dt, tensor **out) {
    grad_node *n = NULL;
    if (dtype_is_float(dt)) SIMT_TRY(grad_node_new("ToCopyBackward0", rule_pass, &t, 1, 0, 0, &n));
    array *a;
    simt_status s = array_astype(t->a, dt, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}

simt_status grad_clone(tensor *t, tensor **out) {
    grad_node *n;
    SIMT_TRY(grad_node_new("CloneBackward0", rule_pass, &t, 1, 0, 0, &n));
    array *a;
    simt_status s = array_copy(t->a, &a);
    if (s == SIMT_OK) return grad_finish(a, n, out);
    grad_node_unref(n);
    return s;
}

simt_status grad_contiguous(tensor *t, tensor **out) {
    if (!array_is_contiguous(t->a)) return grad_clone(t, out);
    *out = tensor_ref(t);
    return SIMT_OK;
}

static simt_status rule_copy_into(grad_node *n, tensor *const *out, tensor **in) {
    if (grad_wants(n, 0)) SIMT_TRY(grad_full_like(out[0], 0, &in[0]));
    if (n->nin > 1 && grad_wants(n, 1)) in[1] = tensor_ref(out[0]);
    return SIMT_OK;
}

simt_status grad_copy_into(tensor *dst, const tensor_operand *src) {
    SIMT_TRY(grad_check_inplace(dst));
    if (src->t) {
        int64_t shape[ARRAY_MAX_NDIM];
        const int64_t *shapes[2] = {dst->a->shape, src->t->a->shape};
        int ndims[2] = {dst->a->ndim, src->t->a->ndim}, ndim;
        SIMT_TRY(graph_broadcast(FACE_TORCH, shapes, ndims, 2, shape, &ndim));
        if (ndim != dst->a->ndim ||
            memcmp(shape, dst->a->shape, sizeof *shape * (size_t)ndim) != 0) {
            char mine[300], theirs[300];
            shape_text(dst->a->shape, dst->a->ndim, mine, sizeof mine);
            shape_text(shape, ndim, theirs, sizeof theirs);
            return status_fail(SIMT_ERR_RUNTIME,
                               "output with shape %s doesn't match the broadcast shape %s", mine,
                               theirs);
        }
    }
    tensor *inputs[2] = {dst, src->t};
    grad_node *n = NULL;
    if (dtype_is_float(dst->a->dt)) {
        SIMT_TRY(grad_node_new(src->t ? "CopyBackwards" : "FillBackward0", rule_copy_into, inputs,
                               src->t ? 2 : 1, 0, 0, &n));
    }
    operand value = src->t ? (operand){.a = src->t->a} : (operand){.s = src->s, .weak = true};
    simt_status s = array_assign(dst->a, &value, FACE_TORCH);
    if (s != SIMT_OK) {
        grad_node_unref(n);
        return s;
    }
    return grad_attach_inplace(dst, n);
}

simt_status grad_full_like(tensor *t, double value, tensor **out) {
    array *a;
    const scalar number = {.kind = 'F', .f = value};
    SIMT_TRY(array_is_meta(t->a) ? array_meta(t->a->dt, t->a->shape, t->a->ndim, &a)
                                 : array_full(t->a->dt, t->a->shape, t->a->ndim, number, &a));
    return grad_finish(a, NULL, out);
}

/* ---- dropout ---- */

simt_status grad_dropout(tensor *t, double p, random_state *r, bool channels, tensor **out) {
    int64_t shape[ARRAY_MAX_NDIM];
    for (int i = 0; i < t->a->ndim; i++) shape[i] = channels && i >= 2 ? 1 : t->a->shape[i];
    work w = {0};
    array *u;
    simt_status s = array_is_meta(t->a)
                        ? array_meta(DT_F32, shape, t->a->ndim, &u)
                        : array_random_uniform(r, DT_F32, 0, 1, shape, t->a->ndim, &u);
    tensor *draw = s == SIMT_OK ? tensor_new(u) : NULL;
    draw = work_own(&w, s == SIMT_OK && !draw ? SIMT_ERR_MEMORY : s, draw);
    tensor_operand compare[2] = {{draw}, {NULL, {.kind = 'F', .f = p}}};
    tensor *keep = NULL;
    if (w.status == SIMT_OK) {
        s = grad_elementwise(OP_GREATER_EQUAL, compare, 2, NULL, &keep);
        keep = work_own(&w, s, keep);
    }
    tensor *result = w_where(&w, keep, p < 1 ? w_scale(&w, t, 1 / (1 - p)) : t, NULL);
    *out = w_take(&w, result);
    return work_end(&w);
}
