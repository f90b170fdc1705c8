/* Reductions in IR.
 *
 * The order of combination depends only on the number of reduced elements and on whether the last axis is
 * reduced, so that any device and number of threads gives the same bits:
 *   inner (last axis reduced): chunks of 4,096; in a chunk 128 accumulators, element i goes to i % 128 in
 *     ascending order, then they are folded by halves
 *   outer: chunks of 512, each sequential
 *   chunks are folded by halves: p[i] = p[i] + p[i + ceil(n/2)]
 * Layouts: short (thread = result, everything unrolled), inner (block of 128 threads = chunk), outer (thread =
 * result and chunk); more than one chunk: partial results in a buffer and a second kernel that folds them.
 * Reductions of what lies densely in memory, with nothing to fuse, become library steps (array/reduce_rows.c).
 */
#include "graph/lower.h"

#include <string.h>

#define INNER_CHUNK  GRAPH_ROW_CHUNK
#define INNER_LANES  GRAPH_ROW_LANES
#define OUTER_CHUNK  512
#define SHORT_LENGTH INNER_LANES /* the same order */
#define SHORT_WORK   2048        /* unrolled elements x nodes at most */
#define UNROLL_WORK  96 /* elements x nodes of one round of a loop, between 4 and 16 elements */
#define FOLD_THREADS 256
#define OUTER_TILED  24 /* results from which a block is a piece of a row of them */

typedef struct reduction {
    const graph_node *node;
    uint32_t member; /* index in the group */
    emit_accumulator type;
    uint32_t out_arg, partial_arg[2];
    uint32_t partial_buffer[2];
} reduction;

typedef struct reducing {
    lowering *l;
    reduction *reds;
    uint32_t nreds;
    int kept[LOWER_MAX_DIMS], nkept, along[LOWER_MAX_DIMS], nalong;
    int64_t results, length, chunks; /* kept elements, reduced elements, chunks of the latter */
    ir_type *carried;                /* types of all accumulator components */
    uint32_t ncarried;
} reducing;

typedef struct accumulators {
    ir_value *v[2];
} accumulators;

/* ---- pieces ---- */

static ir_value *add(ir_builder *b, ir_value *x, ir_value *y) { return ir_binary(b, IR_ADD, x, y); }
static ir_value *mul(ir_builder *b, ir_value *x, int64_t k) {
    return ir_binary(b, IR_MUL, x, lower_i64(b, k));
}

static accumulators *new_accumulators(reducing *r) {
    accumulators *acc = ARENA_ARRAY(r->l->mem, accumulators, r->nreds + 1);
    return acc;
}

static void identities(reducing *r, ir_builder *b, accumulators *acc) {
    for (uint32_t i = 0; i < r->nreds; i++) emit_reduction_identity(b, r->reds[i].node, acc[i].v);
}

/* The elements at reduced position `position`, one accumulator for each reduction. */
static void elements(reducing *r, ir_builder *b, const lower_point *kept, ir_value *position,
                     accumulators *out) {
    lowering *l = r->l;
    lower_point point = *kept;
    if (r->nalong > 0) lower_split_index(l, b, position, r->along, r->nalong, r->length, &point);
    ir_value **values = ARENA_ARRAY(l->mem, ir_value *, l->nnodes);
    lower_emit_point(l, b, &point, values);
    for (uint32_t i = 0; i < r->nreds; i++)
        emit_reduction_element(b, r->reds[i].node, values[r->reds[i].member], position, out[i].v);
}

static void combine(reducing *r, ir_builder *b, accumulators *acc, const accumulators *other) {
    for (uint32_t i = 0; i < r->nreds; i++)
        emit_reduction_combine(b, r->reds[i].node, acc[i].v, other[i].v);
}

/* The same, when `other` comes after all of acc. */
static void step_on(reducing *r, ir_builder *b, accumulators *acc, const accumulators *other) {
    for (uint32_t i = 0; i < r->nreds; i++)
        emit_reduction_step(b, r->reds[i].node, acc[i].v, other[i].v);
}

static void pack(const reducing *r, const accumulators *acc, ir_value **out) {
    for (uint32_t i = 0; i < r->nreds; i++)
        for (int c = 0; c < r->reds[i].type.n; c++) *out++ = acc[i].v[c];
}

static void unpack(const reducing *r, ir_value *values, accumulators *acc) {
    for (uint32_t i = 0; i < r->nreds; i++)
        for (int c = 0; c < r->reds[i].type.n; c++) acc[i].v[c] = values++;
}

/* acc over `count` rounds of `unroll` elements each: round j takes positions start + (j * unroll + u) * step. */
static void accumulate(reducing *r, ir_builder *b, const lower_point *kept, ir_value *start,
                       ir_value *count, int64_t step, int unroll, accumulators *acc) {
    lowering *l = r->l;
    ir_value **init = ARENA_ARRAY(l->mem, ir_value *, r->ncarried + 1);
    accumulators *now = new_accumulators(r), *next = new_accumulators(r);
    init[0] = lower_i64(b, 0);
    pack(r, acc, init + 1);
    ir_inst *loop = ir_loop(b, init, r->ncarried + 1, r->carried, r->ncarried);
    ir_builder in = ir_builder_at_end(l->f, loop->regions[0]);
    ir_value *j = &loop->regions[0]->params[0];
    unpack(r, loop->regions[0]->params + 1, now);
    ir_inst *branch = ir_if(&in, ir_binary(&in, IR_LT_S, j, count), NULL, 0);
    ir_builder no = ir_builder_at_end(l->f, branch->regions[1]);
    ir_br(&no, branch, NULL, 0);
    pack(r, now, init + 1);
    ir_br(&in, loop, init + 1, r->ncarried);
    ir_builder yes = ir_builder_at_end(l->f, branch->regions[0]);
    ir_value *position = add(&yes, start, mul(&yes, j, step * unroll));
    for (int u = 0; u < unroll; u++) {
        ir_value *at = u ? add(&yes, position, lower_i64(&yes, u * step)) : position;
        elements(r, &yes, kept, at, next);
        step_on(r, &yes, now, next);
    }
    init[0] = add(&yes, j, lower_i64(&yes, 1));
    pack(r, now, init + 1);
    ir_continue(&yes, loop, init, r->ncarried + 1);
    unpack(r, loop->results, acc);
}

/* Elements of a round: a power of two. */
static int unroll_of(const reducing *r) {
    int unroll = 4;
    while (unroll < 16 && unroll * 2 * r->l->nnodes <= UNROLL_WORK) unroll *= 2;
    return unroll;
}

/* The `count` elements from start on, one after the other. */
static void accumulate_flat(reducing *r, ir_builder *b, const lower_point *kept, ir_value *start,
                            int64_t count, int64_t step, accumulators *acc) {
    accumulators *next = new_accumulators(r);
    for (int64_t i = 0; i < count; i++) {
        elements(r, b, kept, i ? add(b, start, lower_i64(b, i * step)) : start, next);
        step_on(r, b, acc, next);
    }
}

/* `count` single steps: rounds of several, and the rest. A constant count (or -1) needs fewer loops. */
static void accumulate_all(reducing *r, ir_builder *b, const lower_point *kept, ir_value *start,
                           ir_value *count, int64_t constant_count, int64_t step,
                           accumulators *acc) {
    int64_t unroll = unroll_of(r), most_flat = 2 * unroll - 1;
    if (constant_count >= 0 && constant_count <= most_flat) {
        accumulate_flat(r, b, kept, start, constant_count, step, acc);
        return;
    }
    if (constant_count >= 0) {
        int64_t rounds = constant_count / unroll;
        accumulate(r, b, kept, start, lower_i64(b, rounds), step, (int)unroll, acc);
        ir_value *from = add(b, start, lower_i64(b, rounds * unroll * step));
        accumulate_flat(r, b, kept, from, constant_count % unroll, step, acc);
        return;
    }
    ir_value *rounds = ir_binary(b, IR_DIV_U, count, lower_i64(b, unroll));
    ir_value *rest = ir_binary(b, IR_AND, count, lower_i64(b, unroll - 1));
    accumulate(r, b, kept, start, rounds, step, (int)unroll, acc);
    accumulate(r, b, kept, add(b, start, mul(b, rounds, unroll * step)), rest, step, 1, acc);
}

static ir_value *param(const reducing *r, uint32_t arg) { return &r->l->f->body.params[arg]; }

static void store_results(reducing *r, ir_builder *b, ir_value *k, const accumulators *acc) {
    for (uint32_t i = 0; i < r->nreds; i++) {
        dtype dt = r->reds[i].node->out.dt;
        ir_value *address =
            ir_ptradd(b, param(r, r->reds[i].out_arg), mul(b, k, (int64_t)dtype_bytes(dt)));
        emit_store(b, dt, address, emit_reduction_result(b, r->reds[i].node, acc[i].v));
    }
}

static ir_value *partial_address(ir_builder *b, ir_value *base, dtype dt, ir_value *index) {
    return ir_ptradd(b, base, mul(b, index, (int64_t)dtype_bytes(dt)));
}

static void store_partials(reducing *r, ir_builder *b, ir_value *index, const accumulators *acc) {
    for (uint32_t i = 0; i < r->nreds; i++)
        for (int c = 0; c < r->reds[i].type.n; c++) {
            dtype dt = r->reds[i].type.dt[c];
            emit_store(b, dt, partial_address(b, param(r, r->reds[i].partial_arg[c]), dt, index),
                       acc[i].v[c]);
        }
}

/* The end of a chunk: results where there is one chunk, else partials at [chunk][result]. */
static void store_chunk(reducing *r, ir_builder *b, ir_value *chunk, ir_value *k,
                        const accumulators *acc) {
    if (r->chunks == 1)
        store_results(r, b, k, acc);
    else
        store_partials(r, b, add(b, mul(b, chunk, r->results), k), acc);
}

static void split_kept(reducing *r, ir_builder *b, ir_value *k, lower_point *point) {
    if (r->nkept > 0) lower_split_index(r->l, b, k, r->kept, r->nkept, r->results, point);
}

/* ---- layouts ---- */

static simt_status reduce_short(reducing *r) {
    lowering *l = r->l;
    uint32_t threads = 16;
    while (threads < 256 && threads < r->results) threads *= 2;
    lower_add_params(l);
    ir_builder b = ir_builder_at_end(l->f, &l->f->body);
    ir_value *k = add(&b, mul(&b, lower_block(&b), threads), lower_thread(&b));
    ir_builder in = lower_guard(&b, ir_binary(&b, IR_LT_U, k, lower_i64(&b, r->results)));
    lower_point kept = {0};
    split_kept(r, &in, k, &kept);
    accumulators *acc[SHORT_LENGTH];
    for (int64_t i = 0; i < r->length; i++) {
        acc[i] = new_accumulators(r);
        elements(r, &in, &kept, lower_i64(&in, i), acc[i]);
    }
    if (r->length == 0 && (acc[0] = new_accumulators(r))) {
        identities(r, &in, acc[0]);
        for (uint32_t i = 0; i < r->nreds; i++)
            if (r->reds[i].node->op == OP_SUM && dtype_is_float(r->reds[i].type.dt[0]))
                acc[0][i].v[0] = ir_const_float(&in, emit_type(r->reds[i].type.dt[0]), 0);
    }
    for (int64_t half = SHORT_LENGTH / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half && i + half < r->length; i++)
            combine(r, &in, acc[i], acc[i + half]);
    store_results(r, &in, k, acc[0]);
    lower_end_guard(&in);
    ir_return(&b);
    uint64_t blocks = ((uint64_t)r->results + threads - 1) / threads;
    return lower_finish(l, l->f, l->args, l->nargs, blocks, threads);
}

/* 128 accumulators to one: other lanes' values come through shared memory. Lanes above the half compute
 * values that nobody reads, which is cheaper than switching them off. */
static void fold_block(reducing *r, ir_builder *b, accumulators *acc) {
    lowering *l = r->l;
    ir_value *lane = lower_thread(b),
             *(*shared)[2] = arena_alloc(l->mem, sizeof *shared * r->nreds);
    accumulators *other = new_accumulators(r);
    for (uint32_t i = 0; i < r->nreds; i++)
        for (int c = 0; c < r->reds[i].type.n; c++)
            shared[i][c] = ir_alloc(b, IR_PTR_SHARED,
                                    dtype_bytes(r->reds[i].type.dt[c]) * INNER_LANES * 3 / 2);
    for (int64_t half = INNER_LANES / 2; half > 0; half /= 2) {
        ir_value *from = add(b, lane, lower_i64(b, half));
        for (uint32_t i = 0; i < r->nreds; i++)
            for (int c = 0; c < r->reds[i].type.n; c++) {
                dtype dt = r->reds[i].type.dt[c];
                emit_store(b, dt, partial_address(b, shared[i][c], dt, lane), acc[i].v[c]);
            }
        ir_barrier(b);
        for (uint32_t i = 0; i < r->nreds; i++)
            for (int c = 0; c < r->reds[i].type.n; c++) {
                dtype dt = r->reds[i].type.dt[c];
                other[i].v[c] = emit_load(b, dt, partial_address(b, shared[i][c], dt, from));
            }
        ir_barrier(b);
        combine(r, b, acc, other);
    }
}

static simt_status reduce_inner(reducing *r) {
    lowering *l = r->l;
    lower_add_params(l);
    ir_builder b = ir_builder_at_end(l->f, &l->f->body);
    ir_value *block = lower_block(&b), *lane = lower_thread(&b), *k = block,
             *chunk = lower_i64(&b, 0);
    int64_t last = r->length - (r->chunks - 1) * INNER_CHUNK;
    int64_t last_full = last / INNER_LANES, rest = last % INNER_LANES, constant = last_full;
    ir_value *full = lower_i64(&b, last_full), *extra = lower_i64(&b, rest);
    if (r->chunks > 1) {
        k = r->results == 1 ? lower_i64(&b, 0)
                            : ir_binary(&b, IR_DIV_U, block, lower_i64(&b, r->chunks));
        chunk = r->results == 1 ? block : ir_binary(&b, IR_SUB, block, mul(&b, k, r->chunks));
        ir_value *is_last = ir_binary(&b, IR_EQ, chunk, lower_i64(&b, r->chunks - 1));
        full = ir_select(&b, is_last, full, lower_i64(&b, INNER_CHUNK / INNER_LANES));
        extra = ir_select(&b, is_last, extra, lower_i64(&b, 0));
        constant = last == INNER_CHUNK ? last_full : -1;
    }
    lower_point kept = {0};
    split_kept(r, &b, k, &kept);
    accumulators *acc = new_accumulators(r), *more = new_accumulators(r);
    identities(r, &b, acc);
    ir_value *start = add(&b, mul(&b, chunk, INNER_CHUNK), lane);
    accumulate_all(r, &b, &kept, start, full, constant, INNER_LANES, acc);
    if (rest > 0) {
        ir_inst *branch = ir_if(&b, ir_binary(&b, IR_LT_S, lane, extra), r->carried, r->ncarried);
        ir_value **values = ARENA_ARRAY(l->mem, ir_value *, r->ncarried);
        ir_builder no = ir_builder_at_end(l->f, branch->regions[1]);
        pack(r, acc, values);
        ir_br(&no, branch, values, r->ncarried);
        ir_builder yes = ir_builder_at_end(l->f, branch->regions[0]);
        elements(r, &yes, &kept, add(&yes, start, mul(&yes, full, INNER_LANES)), more);
        step_on(r, &yes, acc, more);
        pack(r, acc, values);
        ir_br(&yes, branch, values, r->ncarried);
        unpack(r, branch->results, acc);
    }
    fold_block(r, &b, acc);
    ir_builder first = lower_guard(&b, ir_binary(&b, IR_EQ, lane, lower_i64(&b, 0)));
    store_chunk(r, &first, chunk, k, acc);
    lower_end_guard(&first);
    ir_return(&b);
    return lower_finish(l, l->f, l->args, l->nargs, (uint64_t)(r->results * r->chunks),
                        INNER_LANES);
}

static simt_status reduce_outer(reducing *r) {
    lowering *l = r->l;
    bool tiled = r->results >= OUTER_TILED;
    int64_t pieces = tiled ? (r->results + 1023) / 1024 : 1;
    int64_t width = tiled ? ((r->results + pieces - 1) / pieces + 15) / 16 * 16 : 0;
    uint32_t threads = tiled ? (uint32_t)width : 256;
    int64_t lanes = r->results * r->chunks;
    while (!tiled && threads > 16 && threads / 2 >= lanes) threads /= 2;
    lower_add_params(l);
    ir_builder b = ir_builder_at_end(l->f, &l->f->body);
    ir_value *k, *chunk, *inside;
    if (tiled) {
        ir_value *block = lower_block(&b), *piece = block;
        chunk = lower_i64(&b, 0);
        if (pieces > 1 && r->chunks > 1) {
            chunk = ir_binary(&b, IR_DIV_U, block, lower_i64(&b, pieces));
            piece = ir_binary(&b, IR_SUB, block, mul(&b, chunk, pieces));
        } else if (r->chunks > 1) {
            chunk = block;
            piece = lower_i64(&b, 0);
        }
        k = add(&b, mul(&b, piece, width), lower_thread(&b));
        inside = ir_binary(&b, IR_LT_U, k, lower_i64(&b, r->results));
    } else {
        ir_value *e = add(&b, mul(&b, lower_block(&b), threads), lower_thread(&b));
        inside = ir_binary(&b, IR_LT_U, e, lower_i64(&b, lanes));
        chunk = lower_i64(&b, 0);
        k = e;
        if (r->chunks > 1) { /* else k stays linear in the thread: no gathers */
            chunk = ir_binary(&b, IR_DIV_U, e, lower_i64(&b, r->results));
            k = ir_binary(&b, IR_SUB, e, mul(&b, chunk, r->results));
        }
    }
    ir_builder in = lower_guard(&b, inside);
    lower_point kept = {0};
    split_kept(r, &in, k, &kept);
    int64_t last = r->length - (r->chunks - 1) * OUTER_CHUNK, constant = last;
    ir_value *count = lower_i64(&in, last);
    if (r->chunks > 1 && last != OUTER_CHUNK) {
        ir_value *is_last = ir_binary(&in, IR_EQ, chunk, lower_i64(&in, r->chunks - 1));
        count = ir_select(&in, is_last, count, lower_i64(&in, OUTER_CHUNK));
        constant = -1;
    }
    accumulators *acc = new_accumulators(r);
    identities(r, &in, acc);
    accumulate_all(r, &in, &kept, mul(&in, chunk, OUTER_CHUNK), count, constant, 1, acc);
    store_chunk(r, &in, chunk, k, acc);
    lower_end_guard(&in);
    ir_return(&b);
    uint64_t blocks =
        tiled ? (uint64_t)(pieces * r->chunks) : (uint64_t)((lanes + threads - 1) / threads);
    return lower_finish(l, l->f, l->args, l->nargs, blocks, threads);
}

/* ---- folding the chunks ---- */

/* One level in place: p[i] = p[i] + p[i + half] for i from `first` in steps of `step`, i < n - half. */
static void fold_level(reducing *r, ir_builder *b, ir_value *k, int64_t n, ir_value *first,
                       int64_t step) {
    int64_t half = (n + 1) / 2;
    ir_value *init[1] = {first};
    ir_inst *loop = ir_loop(b, init, 1, NULL, 0);
    ir_builder in = ir_builder_at_end(b->f, loop->regions[0]);
    ir_value *i = &loop->regions[0]->params[0];
    ir_builder go = lower_guard(&in, ir_binary(&in, IR_LT_S, i, lower_i64(&in, n - half)));
    accumulators *acc = new_accumulators(r), *other = new_accumulators(r);
    ir_value *at = add(&go, mul(&go, i, r->results), k);
    ir_value *from = add(&go, at, lower_i64(&go, half * r->results));
    for (uint32_t m = 0; m < r->nreds; m++)
        for (int c = 0; c < r->reds[m].type.n; c++) {
            dtype dt = r->reds[m].type.dt[c];
            ir_value *base = &b->f->body.params[r->reds[m].partial_arg[c]];
            acc[m].v[c] = emit_load(&go, dt, partial_address(&go, base, dt, at));
            other[m].v[c] = emit_load(&go, dt, partial_address(&go, base, dt, from));
        }
    combine(r, &go, acc, other);
    for (uint32_t m = 0; m < r->nreds; m++)
        for (int c = 0; c < r->reds[m].type.n; c++) {
            dtype dt = r->reds[m].type.dt[c];
            ir_value *base = &b->f->body.params[r->reds[m].partial_arg[c]];
            emit_store(&go, dt, partial_address(&go, base, dt, at), acc[m].v[c]);
        }
    ir_value *next[1] = {add(&go, i, lower_i64(&go, step))};
    ir_continue(&go, loop, next, 1);
    ir_br(&in, loop, NULL, 0);
}

/* The second kernel: thread = result where there are many results, else block = result. */
static simt_status fold_chunks(reducing *r) {
    lowering *l = r->l;
    bool by_thread = r->results >= 64;
    lower_new_func(l, "fold");
    ir_func *f = l->f; /* the pieces above build in it */
    l->nargs = 0;
    for (uint32_t i = 0; i < r->nreds; i++) {
        reduction *red = &r->reds[i];
        red->out_arg = lower_add_arg(
            l, IR_PTR_GLOBAL,
            (graph_arg){GRAPH_ARG_VIEW, red->node->out.buffer, -1, red->node->out.offset});
        for (int c = 0; c < red->type.n; c++)
            red->partial_arg[c] = lower_add_arg(
                l, IR_PTR_GLOBAL, (graph_arg){GRAPH_ARG_VIEW, red->partial_buffer[c], -1, 0});
    }
    lower_add_params(l);
    ir_builder b = ir_builder_at_end(f, &f->body);
    ir_value *k = by_thread ? add(&b, mul(&b, lower_block(&b), FOLD_THREADS), lower_thread(&b))
                            : lower_block(&b);
    ir_builder in = b;
    if (by_thread) in = lower_guard(&b, ir_binary(&b, IR_LT_U, k, lower_i64(&b, r->results)));
    for (int64_t n = r->chunks; n > 1; n = (n + 1) / 2) {
        fold_level(r, &in, k, n, by_thread ? lower_i64(&in, 0) : lower_thread(&in),
                   by_thread ? 1 : FOLD_THREADS);
        if (!by_thread) ir_barrier(&in);
    }
    accumulators *acc = new_accumulators(r);
    if (acc) {
        ir_builder end = in;
        if (!by_thread)
            end = lower_guard(&in, ir_binary(&in, IR_EQ, lower_thread(&in), lower_i64(&in, 0)));
        for (uint32_t i = 0; i < r->nreds; i++)
            for (int c = 0; c < r->reds[i].type.n; c++) {
                dtype dt = r->reds[i].type.dt[c];
                acc[i].v[c] = emit_load(
                    &end, dt, partial_address(&end, param(r, r->reds[i].partial_arg[c]), dt, k));
            }
        store_results(r, &end, k, acc);
        lower_end_guard(&end);
    }
    ir_return(&b);
    uint64_t blocks =
        by_thread ? (uint64_t)(r->results + FOLD_THREADS - 1) / FOLD_THREADS : (uint64_t)r->results;
    return lower_finish(l, f, l->args, l->nargs, blocks, FOLD_THREADS);
}

/* ---- rows in memory ---- */

#define ROW_SHORT 32 /* below it a thread per row is quicker */

static bool has_row_loops(const graph_node *n) {
    dtype in = n->in[0].dt, out = n->out.dt;
    bool is_float = in == DT_F32 || in == DT_F64;
    switch (n->op) {
    case OP_SUM: return in == out && is_float;
    case OP_MAX:
    case OP_MIN:
        if (in != out) return false;
        break;
    case OP_ARGMAX:
    case OP_ARGMIN:
        if (out != DT_I64) return false;
        break;
    default: return false;
    }
    return is_float || in == DT_I32 || in == DT_I64 || in == DT_U8;
}

bool graph_reduces_rows(const graph_node *n, int64_t *length) {
    const graph_view *v = &n->in[0];
    uint32_t mask = (uint32_t)n->params[0];
    int64_t stride = (int64_t)dtype_bytes(v->dt);
    int d = v->ndim - 1;
    *length = 1;
    for (; d >= 0 && (mask >> d & 1); d--) {
        if (v->shape[d] == 1) continue;
        if (v->strides[d] != stride) return false;
        stride *= v->shape[d];
        *length *= v->shape[d];
    }
    for (; d >= 0; d--)
        if (mask >> d & 1) return false;
    return has_row_loops(n) && *length >= ROW_SHORT && graph_view_contiguous(&n->out);
}

/* ---- entry ---- */

static void find_reductions(reducing *r) {
    lowering *l = r->l;
    r->reds = ARENA_ARRAY(l->mem, reduction, l->nnodes);
    r->carried = ARENA_ARRAY(l->mem, ir_type, l->nnodes * 2);
    for (uint32_t i = 0; i < l->nnodes; i++) {
        if (!l->nodes[i].is_reduction) continue;
        reduction *red = &r->reds[r->nreds++];
        red->node = l->nodes[i].node;
        red->member = i;
        red->type = emit_reduction_type(red->node);
        for (int c = 0; c < red->type.n; c++)
            r->carried[r->ncarried++] = emit_type(red->type.dt[c]);
        if (r->chunks == 1) {
            const graph_view *out = &red->node->out;
            red->out_arg = lower_add_arg(l, IR_PTR_GLOBAL,
                                         (graph_arg){GRAPH_ARG_VIEW, out->buffer, -1, out->offset});
            continue;
        }
        for (int c = 0; c < red->type.n; c++) {
            int64_t bytes = r->chunks * r->results * (int64_t)dtype_bytes(red->type.dt[c]);
            red->partial_buffer[c] = graph_plan_add_buffer(l->g, bytes);
            red->partial_arg[c] = lower_add_arg(
                l, IR_PTR_GLOBAL, (graph_arg){GRAPH_ARG_VIEW, red->partial_buffer[c], -1, 0});
        }
    }
}

simt_status lower_reductions(lowering *l) {
    reducing r = {.l = l, .results = 1, .length = 1, .chunks = 1};
    for (int d = 0; d < l->ndim; d++) {
        if (l->reduced[d])
            r.along[r.nalong++] = d, r.length *= l->shape[d];
        else
            r.kept[r.nkept++] = d, r.results *= l->shape[d];
    }
    bool inner = l->group->ndim == 0 || (l->group->axes_mask >> (l->group->ndim - 1) & 1);
    bool is_short =
        r.length <= 1 || (inner && r.length <= SHORT_LENGTH && r.length * l->nnodes <= SHORT_WORK);
    int64_t chunk = inner ? INNER_CHUNK : OUTER_CHUNK;
    if (!is_short) r.chunks = (r.length + chunk - 1) / chunk;
    if (r.results == 0) return SIMT_OK;
    find_reductions(&r);
    simt_status status = is_short ? reduce_short(&r) : inner ? reduce_inner(&r) : reduce_outer(&r);
    if (status == SIMT_OK && r.chunks > 1) status = fold_chunks(&r);
    return status;
}
