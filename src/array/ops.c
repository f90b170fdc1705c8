/* Elementwise operations: types, broadcasting, operands to views, writes in place. */
#include <string.h>

#include "array/internal.h"
#include "array/meta.h"

/* ---- scalars ---- */

static dtype scalar_dtype(scalar s) {
    return s.kind == 'B' ? DT_BOOL : s.kind == 'F' ? DT_F64 : s.kind == 'U' ? DT_U64 : DT_I64;
}

static bool scalar_fits(scalar s, dtype dt) {
    if (!dtype_is_integer(dt) || s.kind == 'F' || s.kind == 'B') return true;
    unsigned bits = (unsigned)dtype_bytes(dt) * 8;
    if (s.kind == 'U') return dt == DT_U64;
    if (dtype_is_unsigned(dt)) return s.i >= 0 && (bits == 64 || s.i < ((int64_t)1 << bits));
    return bits == 64 || (s.i >= -((int64_t)1 << (bits - 1)) && s.i < ((int64_t)1 << (bits - 1)));
}

static uint64_t scalar_bits(scalar s, dtype dt) {
    uint64_t bits = 0;
    scalar_store(s, dt, &bits);
    return bits;
}

/* PyTorch computes sums, products and quotients of halves with a number in float: the number is not
 * rounded to a half first. */
static void widen_halves(array_op op, const operand *in, int nin, dtype *compute) {
    bool sum = op == OP_ADD || op == OP_SUBTRACT || op == OP_MULTIPLY || op == OP_DIVIDE ||
               op == OP_FLOOR_DIVIDE;
    if (!sum || dtype_bytes(*compute) != 2 || !dtype_is_float(*compute)) return;
    dtype half = *compute;
    for (int i = 0; i < nin; i++) {
        const array *a = in[i].a;
        if (a && a->ndim == 0 && dtype_is_float(a->dt) && a->dt != half) *compute = DT_F32;
        if (a) continue;
        uint64_t bits = scalar_bits(in[i].s, half);
        scalar rounded = scalar_load(half, &bits);
        double exact = in[i].s.kind == 'F' ? in[i].s.f : (double)in[i].s.i;
        if (rounded.f != exact) *compute = DT_F32;
    }
}

/* NumPy compares a Python integer beyond the array's type exactly, and refuses it elsewhere. */
static simt_status check_weak_integers(array_op op, const operand *in, int nin, dtype *compute) {
    for (int i = 0; i < nin; i++) {
        if (in[i].a || !in[i].weak || scalar_fits(in[i].s, *compute)) continue;
        if (array_op_table[op].dtypes == 'C') {
            *compute = in[i].s.kind == 'I' && *compute != DT_U64 ? DT_I64 : DT_F64;
            continue;
        }
        char text[24];
        scalar s = in[i].s;
        if (s.kind == 'U')
            __builtin_snprintf(text, sizeof text, "%llu", (unsigned long long)s.u);
        else
            __builtin_snprintf(text, sizeof text, "%lld", (long long)s.i);
        return status_fail(SIMT_ERR_OVERFLOW, "Python integer %s out of bounds for %s", text,
                           dtype_table[*compute].name);
    }
    return SIMT_OK;
}

static simt_status check_power(array_op op, const operand *in, dtype compute) {
    if (op == OP_POWER && dtype_is_integer(compute) && !in[1].a && in[1].s.kind == 'I' &&
        in[1].s.i < 0)
        return status_fail(SIMT_ERR_VALUE, "Integers to negative integer powers are not allowed.");
    return SIMT_OK;
}

static bool is_minus_one(const operand *x) {
    return !x->a && (x->s.kind == 'F' ? x->s.f == -1 : x->s.kind == 'I' && x->s.i == -1);
}

/* ---- types and shape ---- */

/* NumPy's same_kind; PyTorch's canCast: no float into integers, nothing but bool into bool. */
static simt_status check_cast(array_op op, graph_face face, char casting, dtype from, dtype to) {
    bool fine = face == FACE_NUMPY ? graph_can_cast(from, to, casting)
                                   : (!dtype_is_float(from) || dtype_is_float(to)) &&
                                         (to != DT_BOOL || from == DT_BOOL);
    if (fine) return SIMT_OK;
    if (face == FACE_TORCH) {
        static const char *const names[DT_COUNT] = {
            [DT_BOOL] = "Bool",  [DT_I8] = "Char",  [DT_I16] = "Short",     [DT_I32] = "Int",
            [DT_I64] = "Long",   [DT_U8] = "Byte",  [DT_U16] = "UInt16",    [DT_U32] = "UInt32",
            [DT_U64] = "UInt64", [DT_F16] = "Half", [DT_BF16] = "BFloat16", [DT_F32] = "Float",
            [DT_F64] = "Double"};
        return status_fail(SIMT_ERR_RUNTIME,
                           "result type %s can't be cast to the desired output type %s",
                           names[from], names[to]);
    }
    return status_fail(SIMT_ERR_TYPE,
                       "Cannot cast ufunc '%s' output from dtype('%s') to dtype('%s') with casting "
                       "rule '%s'",
                       array_op_table[op].name, dtype_table[from].name, dtype_table[to].name,
                       graph_casting_name(casting));
}

static simt_status find_dtypes(array_op op, const operand *in, int nin, const op_options *o,
                               dtype *compute, dtype *result) {
    char rule = array_op_table[op].dtypes;
    if (rule == 'X') {
        dtype from = nin ? (in[0].a ? in[0].a->dt : scalar_dtype(in[0].s)) : o->dt;
        *result = o->has_dtype ? o->dt : o->out ? o->out->dt : from;
        *compute = op == OP_CAST || op == OP_COPY ? from : *result;
        return SIMT_OK;
    }
    graph_type types[GRAPH_MAX_INPUTS];
    for (int i = 0; i < nin; i++) {
        const array *a = in[i].a;
        types[i] = a ? (graph_type){a->dt, false, a->ndim == 0}
                     : (graph_type){scalar_dtype(in[i].s), in[i].weak, true};
    }
    if (o->has_dtype) SIMT_TRY(graph_check_loop(op, types, nin, o->dt, o->casting));
    if (o->has_dtype && rule != 'C' && rule != 'T' && rule != 'L')
        *compute = *result = o->dt;
    else
        SIMT_TRY(graph_dtypes(op, o->face, types, nin, o->default_float, compute, result));
    if (o->face == FACE_NUMPY) SIMT_TRY(check_weak_integers(op, in, nin, compute));
    if (o->face == FACE_TORCH) widen_halves(op, in, nin, compute);
    if (o->casting && rule != 'L')
        for (int i = rule == 'W'; i < nin; i++)
            if (in[i].a && in[i].a->dt != *compute && !o->has_dtype)
                SIMT_TRY(check_cast(op, o->face, o->casting, in[i].a->dt, *compute));
    return check_power(op, in, *compute);
}

static simt_status find_shape(const operand *in, int nin, const op_options *o, int64_t *shape,
                              int *ndim) {
    const array *first = NULL;
    bool same = true;
    for (int i = 0; i < nin; i++) {
        const array *a = in[i].a;
        if (!a) continue;
        if (!first)
            first = a;
        else
            same = same && array_same_shape(a, first->shape, first->ndim);
    }
    const array *out = o->out;
    if (first && same) {
        *ndim = first->ndim;
        memcpy(shape, first->shape, sizeof *shape * (size_t)first->ndim);
    } else {
        const int64_t *shapes[GRAPH_MAX_INPUTS];
        int ndims[GRAPH_MAX_INPUTS], n = 0;
        for (int i = 0; i < nin; i++) {
            if (!in[i].a) continue;
            shapes[n] = in[i].a->shape;
            ndims[n++] = in[i].a->ndim;
        }
        SIMT_TRY(graph_broadcast(o->face, shapes, ndims, n, shape, ndim));
    }
    if (!out || array_same_shape(out, shape, *ndim)) return SIMT_OK;
    bool fits = out->ndim >= *ndim;
    for (int d = 0; fits && d < *ndim; d++)
        fits = shape[d] == 1 || shape[d] == out->shape[out->ndim - *ndim + d];
    if (fits) {
        *ndim = out->ndim;
        memcpy(shape, out->shape, sizeof *shape * (size_t)out->ndim);
        return SIMT_OK;
    }
    char theirs[200], ours[200];
    shape_print(out->shape, out->ndim, theirs, sizeof theirs);
    shape_print(shape, *ndim, ours, sizeof ours);
    if (o->face == FACE_TORCH) {
        for (char *c = theirs; *c; c++) *c = *c == '(' ? '[' : *c == ')' ? ']' : *c;
        for (char *c = ours; *c; c++) *c = *c == '(' ? '[' : *c == ')' ? ']' : *c;
        return status_fail(SIMT_ERR_RUNTIME,
                           "output with shape %s doesn't match the broadcast shape %s", theirs,
                           ours);
    }
    return status_fail(
        SIMT_ERR_VALUE,
        "non-broadcastable output operand with shape %s doesn't match the broadcast shape %s",
        theirs, ours);
}

/* ---- the node ---- */

static void fill_operands(queue_request *q, const operand *in, int nin, const int64_t *shape,
                          int ndim) {
    graph_node *n = &q->node;
    n->nin = nin;
    for (int i = 0; i < nin; i++) {
        array *a = in[i].a;
        q->in[i] = a;
        if (a) {
            n->scalar[i] = -1;
            if (array_same_shape(a, shape, ndim))
                queue_view(&n->in[i], a);
            else
                queue_view_broadcast(&n->in[i], a, shape, ndim);
            continue;
        }
        scalar s = in[i].s;
        if (n->op == OP_WHERE && i == 0) /* the condition counts as truth in any type */
            s = (scalar){.kind = 'I', .i = s.kind == 'F' ? s.f != 0 : s.i != 0};
        n->scalar[i] = (int8_t)n->nscalars;
        q->scalars[n->nscalars++] = scalar_bits(s, n->compute);
    }
}

static simt_status check_writable(const array *out, graph_face face) {
    if (out->size == 0) return SIMT_OK;
    for (int d = 0; d < out->ndim; d++) {
        if (out->shape[d] <= 1 || out->strides[d] != 0) continue;
        if (face == FACE_TORCH)
            return status_fail(
                SIMT_ERR_RUNTIME,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location. Please clone() the tensor before performing the "
                "operation.");
        return status_fail(SIMT_ERR_VALUE, "output array is read-only");
    }
    return SIMT_OK;
}

/* An element written early must not be read late: true when only the identical view is read. */
static bool safe_in_place(const operand *in, int nin, const array *out) {
    for (int i = 0; i < nin; i++)
        if (in[i].a && !array_same_view(in[i].a, out) && array_may_overlap(in[i].a, out))
            return false;
    return true;
}

static simt_status copy_into(array *to, array *from, array **result) {
    queue_request q;
    queue_request_init(&q, OP_CAST);
    q.node.compute = from->dt;
    q.out = to;
    q.node.nin = 1;
    q.in[0] = from;
    q.node.scalar[0] = -1;
    queue_view_broadcast(&q.node.in[0], from, to->shape, to->ndim);
    return queue_add(&q, result);
}

/* The operation on views whose axes are as they lie in memory. */
static simt_status in_memory_order(array_op op, const operand *in, int nin, const op_options *o,
                                   const int64_t *shape, int ndim, const int *axes,
                                   array **result) {
    op_options options = *o;
    operand turned[GRAPH_MAX_INPUTS];
    simt_status status = SIMT_OK;
    options.keep_order = false;
    memcpy(turned, in, sizeof *in * (size_t)nin);
    for (int i = 0; i < nin; i++) turned[i].a = NULL;
    for (int i = 0; i < nin && status == SIMT_OK; i++) {
        if (!in[i].a || (in[i].a->ndim == 0 && (turned[i].a = array_ref(in[i].a)))) continue;
        array *wide;
        status = array_broadcast_to(in[i].a, shape, ndim, &wide);
        if (status != SIMT_OK) break;
        status = array_transpose(wide, axes, &turned[i].a);
        array_unref(wide);
    }
    array *made = NULL;
    if (status == SIMT_OK) status = array_elementwise(op, turned, nin, &options, &made);
    for (int i = 0; i < nin; i++) array_unref(turned[i].a);
    return array_turn_back(status, made, axes, result);
}

static bool order_to_keep(const operand *in, int nin, int ndim, int *axes) {
    array *arrays[GRAPH_MAX_INPUTS];
    int n = 0;
    for (int i = 0; i < nin; i++)
        if (in[i].a) arrays[n++] = in[i].a;
    return array_memory_order(arrays, n, ndim, axes);
}

static bool any_is_meta(const operand *in, int nin, const array *out) {
    bool any = out && array_is_meta(out);
    for (int i = 0; i < nin; i++) any |= in[i].a && array_is_meta(in[i].a);
    return any;
}

/* Copies go from one device to another, and say themselves what they cannot. */
static simt_status check_devices(array_op op, const operand *in, int nin, array *out) {
    if (!any_is_meta(in, nin, out) || (nin == 1 && (op == OP_COPY || op == OP_CAST)))
        return SIMT_OK;
    array *all[GRAPH_MAX_INPUTS + 1] = {out};
    for (int i = 0; i < nin; i++) all[i + 1] = in[i].a;
    return array_same_device(all, nin + 1);
}

simt_status array_elementwise(array_op op, const operand *in, int nin, const op_options *o,
                              array **result) {
    dtype compute, dt;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim;
    array *out = o->out;
    SIMT_TRY(find_dtypes(op, in, nin, o, &compute, &dt));
    if (op == OP_POWER && is_minus_one(&in[1]) && dtype_is_float(compute)) { /* exactly 1 / a */
        op = OP_RECIPROCAL;
        nin = 1;
    }
    SIMT_TRY(find_shape(in, nin, o, shape, &ndim));
    SIMT_TRY(check_devices(op, in, nin, out));
    int axes[ARRAY_MAX_NDIM];
    if (o->keep_order && !out && ndim > 1 && order_to_keep(in, nin, ndim, axes))
        return in_memory_order(op, in, nin, o, shape, ndim, axes, result);
    if (out) {
        if (array_op_table[op].dtypes != 'X')
            SIMT_TRY(check_cast(op, o->face, o->casting, dt, out->dt));
        SIMT_TRY(check_writable(out, o->face));
        dt = out->dt;
    }
    int64_t size;
    bool empty = false; /* not by the product, which may be too large */
    for (int d = 0; d < ndim; d++) empty |= shape[d] == 0;
    if (empty) {
        for (int i = 0; i < nin && !out; i++)
            if (in[i].a && array_is_meta(in[i].a)) return array_meta(dt, shape, ndim, result);
        if (!out) return array_new(dt, shape, ndim, true, result);
        *result = array_ref(out);
        return SIMT_OK;
    }
    if (!out) SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    queue_request q;
    queue_request_init(&q, op == OP_COPY && compute != dt ? OP_CAST : op);
    q.node.compute = compute;
    q.node.nscalars = o->nscalars;
    for (int i = 0; i < o->nscalars; i++)
        q.scalars[i] = scalar_bits((scalar){.kind = 'F', .f = o->scalars[i]}, compute);
    fill_operands(&q, in, nin, shape, ndim);
    if (!out || !safe_in_place(in, nin, out)) {
        queue_output_new(&q, dt, shape, ndim);
        if (!out) return queue_add(&q, result);
        array *temporary;
        SIMT_TRY(queue_add(&q, &temporary));
        simt_status status = copy_into(out, temporary, result);
        array_unref(temporary);
        return status;
    }
    q.out = out;
    return queue_add(&q, result);
}

simt_status array_astype(array *a, dtype dt, array **out) {
    operand in = operand_array(a);
    return array_elementwise(OP_CAST, &in, 1, &(op_options){.has_dtype = true, .dt = dt}, out);
}

simt_status array_copy(array *a, array **out) {
    operand in = operand_array(a);
    return array_elementwise(OP_COPY, &in, 1, &(op_options){.has_dtype = true, .dt = a->dt}, out);
}

simt_status array_assign(array *dst, const operand *src, graph_face face) {
    array *done = NULL;
    operand in = *src;
    array *squeezed = NULL;
    if (in.a && in.a->ndim > dst->ndim) { /* NumPy drops leading dimensions of length 1 here */
        uint32_t mask = 0;
        for (int d = 0; d < in.a->ndim - dst->ndim; d++)
            if (in.a->shape[d] == 1) mask |= 1u << d;
        if (mask) {
            SIMT_TRY(array_squeeze(in.a, mask, &squeezed));
            in.a = squeezed;
        }
    }
    simt_status status;
    if (in.a) {
        status = array_elementwise(OP_CAST, &in, 1, &(op_options){.face = face, .out = dst}, &done);
        if (status == SIMT_ERR_VALUE && face == FACE_NUMPY) {
            char from[200], to[200];
            status = status_fail(SIMT_ERR_VALUE,
                                 "could not broadcast input array from shape %s into shape %s",
                                 shape_print(src->a->shape, src->a->ndim, from, sizeof from),
                                 shape_print(dst->shape, dst->ndim, to, sizeof to));
        }
    } else if (face == FACE_NUMPY && in.weak && !scalar_fits(in.s, dst->dt)) {
        status = status_fail(SIMT_ERR_OVERFLOW, "Python integer %lld out of bounds for %s",
                             (long long)in.s.i, dtype_table[dst->dt].name);
    } else if ((status = check_writable(dst, face)) == SIMT_OK && dst->size > 0) {
        queue_request q;
        queue_request_init(&q, OP_FULL);
        q.node.compute = dst->dt;
        q.node.nscalars = 1;
        q.scalars[0] = scalar_bits(in.s, dst->dt);
        q.out = dst;
        status = queue_add(&q, NULL);
    }
    array_unref(done);
    array_unref(squeezed);
    return status;
}
