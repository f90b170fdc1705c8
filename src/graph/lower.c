/* A group of nodes as a kernel in IR.
 *
 * In: a group of fuse.c. Out: steps (kernels with their arguments) appended to the plan.
 * The iteration space is collapsed first: neighbouring dimensions that every view walks as one become one.
 * Elementwise kernels then have one of three layouts:
 *   flat   one dimension left: thread = element, linear addresses
 *   tiled  long inner dimension: a block is a piece of one row, outer coordinates are uniform
 *   split  short inner dimension: thread = element, coordinates by exact multiplication (no division)
 */
#include "graph/lower.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_THREADS  1024
#define LONG_SIZE      (1 << 18)
#define TURNED_THREADS 256
#define ACROSS_SIZE    (1 << 13) /* elements, and of an axis, that a copy by tiles pays for */
#define ACROSS_LEAST   16
#define TILED_INNER    96 /* inner dimensions of at least this length are tiled */

ir_value *lower_i64(ir_builder *b, int64_t value) { return ir_const_int(b, IR_I64, value); }

ir_value *lower_thread(ir_builder *b) {
    return ir_cast(b, IR_ZEXT, IR_I64, ir_special_value(b, IR_TID_X));
}

ir_value *lower_block(ir_builder *b) {
    return ir_cast(b, IR_ZEXT, IR_I64, ir_special_value(b, IR_CTAID_X));
}

ir_builder lower_guard(ir_builder *b, ir_value *condition) {
    ir_inst *branch = ir_if(b, condition, NULL, 0);
    ir_builder no = ir_builder_at_end(b->f, branch->regions[1]);
    ir_br(&no, branch, NULL, 0);
    return ir_builder_at_end(b->f, branch->regions[0]);
}

void lower_end_guard(ir_builder *in) { ir_br(in, in->at->owner, NULL, 0); }

void lower_add_params(lowering *l) {
    for (uint32_t i = 0; i < l->nargs; i++) ir_func_add_param(l->f, l->arg_types[i], NULL);
}

/* ---- arguments and views ---- */

uint32_t lower_add_arg(lowering *l, ir_type type, graph_arg arg) {
    for (uint32_t i = 0; i < l->nargs; i++) {
        const graph_arg *a = &l->args[i];
        if (a->kind == arg.kind && a->index == arg.index && a->offset_index == arg.offset_index &&
            a->add == arg.add && l->arg_types[i] == type)
            return i;
    }
    l->args[l->nargs] = arg;
    l->arg_types[l->nargs] = type;
    return l->nargs++;
}

/* The address of a view's first element. Offsets of buffers that the program writes are in the key, so
 * constant; others may differ from run to run, and only equality with the buffer's first view is in it. */
static graph_arg view_arg(const lowering *l, const graph_view *v, uint32_t offset_index) {
    const graph_planning *g = l->g;
    if (v->buffer >= g->plan->nprogram_buffers || g->written[v->buffer])
        return (graph_arg){GRAPH_ARG_VIEW, v->buffer, -1, v->offset};
    uint32_t first = (uint32_t)g->first_view[v->buffer];
    if (g->program->offsets[first] == v->offset) offset_index = first;
    return (graph_arg){GRAPH_ARG_VIEW, v->buffer, (int32_t)offset_index, 0};
}

static uint32_t add_view(lowering *l, const graph_view *v, uint32_t offset_index) {
    uint32_t arg = lower_add_arg(l, IR_PTR_GLOBAL, view_arg(l, v, offset_index));
    for (uint32_t i = 0; i < l->nviews; i++) {
        const graph_view *w = l->views[i].view;
        if (l->views[i].arg == arg && w->dt == v->dt && w->ndim == v->ndim &&
            memcmp(w->shape, v->shape, sizeof *v->shape * (size_t)v->ndim) == 0 &&
            memcmp(w->strides, v->strides, sizeof *v->strides * (size_t)v->ndim) == 0)
            return i;
    }
    l->views[l->nviews] = (lower_view){.view = v, .arg = arg};
    return l->nviews++;
}

static int32_t group_index(const graph_group *group, uint32_t node) {
    for (uint32_t i = 0; i < group->nnodes; i++)
        if (group->nodes[i] == node) return (int32_t)i;
    return -1;
}

static void resolve_node(lowering *l, uint32_t i) {
    lower_node *n = &l->nodes[i];
    n->number = l->group->nodes[i];
    n->node = &l->g->plan->nodes[n->number];
    const graph_node *node = n->node;
    const graph_fact *fact = &l->g->facts[n->number];
    n->is_reduction = array_op_table[node->op].kind == OP_KIND_RED;
    n->out_view = -1;
    uint32_t offset_index = node->first_offset;
    for (int k = 0; k < node->nin; k++) {
        n->in_view[k] = n->in_reg[k] = -1;
        if (node->scalar[k] >= 0) continue;
        if (fact->producer[k] >= 0)
            n->in_reg[k] = group_index(l->group, (uint32_t)fact->producer[k]);
        else
            n->in_view[k] = (int32_t)add_view(l, &node->in[k], offset_index);
        offset_index++;
    }
    for (int k = 0; k < node->nscalars; k++) {
        dtype dt = emit_scalar_dtype(node->op, node->compute);
        graph_arg arg = {GRAPH_ARG_SCALAR, node->first_scalar + (uint32_t)k, -1, 0};
        n->scalar_arg[k] = lower_add_arg(l, ir_type_of_dtype(dt), arg);
    }
    if (!n->is_reduction && fact->stored)
        n->out_view = (int32_t)add_view(l, &node->out, offset_index);
    if (emit_wants_index(node->op)) l->wants_index = true;
}

/* ---- the space ---- */

/* The view's stride along each dimension of the group's shape (a flat member has its own shape). */
static void view_strides(const lowering *l, const graph_view *v, int64_t *strides) {
    const graph_group *group = l->group;
    if (v->ndim == group->ndim &&
        memcmp(v->shape, group->shape, sizeof *v->shape * (size_t)v->ndim) == 0) {
        memcpy(strides, v->strides, sizeof *strides * (size_t)v->ndim);
        return;
    }
    int64_t stride = (int64_t)dtype_bytes(v->dt);
    for (int d = group->ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= group->shape[d];
    }
}

/* Does every view walk dimension d as the continuation of the one before it? */
static bool can_merge(int64_t (*strides)[GRAPH_MAX_NDIM], uint32_t count, int64_t extent, int d,
                      const int64_t *last) {
    for (uint32_t v = 0; v < count; v++)
        if (last[v] != strides[v][d] * extent) return false;
    return true;
}

static void collapse_space(lowering *l) {
    const graph_group *group = l->group;
    uint32_t count = l->nviews + 1; /* the last is the flat element index */
    int64_t(*strides)[GRAPH_MAX_NDIM] = arena_alloc(l->mem, sizeof *strides * count);
    int64_t *last = ARENA_ARRAY(l->mem, int64_t, count);
    for (uint32_t v = 0; v < l->nviews; v++) view_strides(l, l->views[v].view, strides[v]);
    int64_t flat = 1;
    for (int d = group->ndim - 1; d >= 0; d--) {
        strides[l->nviews][d] = l->wants_index ? flat : 0;
        flat *= group->shape[d];
    }
    l->ndim = 0;
    for (int d = 0; d < group->ndim; d++) {
        if (group->shape[d] == 1) continue;
        bool reduced = group->kind == OP_KIND_RED && (group->axes_mask >> d & 1);
        int at = l->ndim - 1;
        bool merge = at >= 0 && l->reduced[at] == reduced &&
                     can_merge(strides, count, group->shape[d], d, last);
        if (!merge) {
            at = l->ndim++;
            l->shape[at] = 1;
            l->reduced[at] = reduced;
        }
        l->shape[at] *= group->shape[d];
        for (uint32_t v = 0; v < count; v++) {
            last[v] = strides[v][d];
            if (v < l->nviews)
                l->views[v].strides[at] = strides[v][d];
            else
                l->index_strides[at] = strides[v][d];
        }
    }
}

/* ---- index arithmetic ---- */

/* index / divisor and index % divisor for 0 <= index < limit <= 2**31, without a division: with
 * 2**(k-1) < d <= 2**k and m = ceil(2**(31+k) / d), floor(i * m / 2**(31+k)) is exact (Granlund and
 * Montgomery 1994). In 32 bits, which the vector units do twice as wide. */
static void divide_small(ir_builder *b, ir_value *index, int64_t divisor, ir_value **quotient,
                         ir_value **rest) {
    int k = 0;
    while (((int64_t)1 << k) < divisor) k++;
    uint64_t magic =
        (uint64_t)((((__uint128_t)1 << (31 + k)) + (uint64_t)divisor - 1) / (uint64_t)divisor);
    if (k == 0) {
        *quotient = index;
        *rest = ir_const_int(b, IR_I32, 0);
        return;
    }
    ir_value *high = ir_binary(b, IR_MULHI_U, index, ir_const_bits(b, IR_I32, magic));
    *quotient = k > 1 ? ir_binary(b, IR_SHR_U, high, ir_const_int(b, IR_I32, k - 1)) : high;
    *rest = ir_binary(b, IR_SUB, index,
                      ir_binary(b, IR_MUL, *quotient, ir_const_int(b, IR_I32, divisor)));
}

void lower_split_index(lowering *l, ir_builder *b, ir_value *index, const int *which, int dims,
                       int64_t size, lower_point *point) {
    if (dims == 1) {
        point->coords[which[0]] = index;
        return;
    }
    bool small = size <= INT32_MAX;
    ir_value *left = small ? ir_cast(b, IR_TRUNC, IR_I32, index) : index;
    for (int i = dims - 1; i >= 0; i--) {
        int64_t extent = l->shape[which[i]];
        ir_value *coord = left;
        if (i > 0 && small) {
            divide_small(b, left, extent, &left, &coord);
        } else if (i > 0) {
            ir_value *quotient = ir_binary(b, IR_DIV_U, left, lower_i64(b, extent));
            coord =
                ir_binary(b, IR_SUB, left, ir_binary(b, IR_MUL, quotient, lower_i64(b, extent)));
            left = quotient;
        }
        point->coords[which[i]] = small ? ir_cast(b, IR_ZEXT, IR_I64, coord) : coord;
    }
}

static ir_value *dot_coords(lowering *l, ir_builder *b, const lower_point *point,
                            const int64_t *strides) {
    ir_value *sum = NULL;
    for (int d = 0; d < l->ndim; d++) {
        if (!point->coords[d] || strides[d] == 0) continue;
        ir_value *term = strides[d] == 1
                             ? point->coords[d]
                             : ir_binary(b, IR_MUL, point->coords[d], lower_i64(b, strides[d]));
        sum = sum ? ir_binary(b, IR_ADD, sum, term) : term;
    }
    return sum;
}

ir_value *lower_address(lowering *l, ir_builder *b, uint32_t view, const lower_point *point) {
    ir_value *base = &l->f->body.params[l->views[view].arg];
    ir_value *offset = dot_coords(l, b, point, l->views[view].strides);
    return offset ? ir_ptradd(b, base, offset) : base;
}

/* ---- the body ---- */

static ir_value *operand_value(lowering *l, ir_builder *b, const lower_node *n, int k,
                               const lower_point *point, ir_value **values, ir_value **loaded) {
    const graph_node *node = n->node;
    if (n->in_reg[k] >= 0) return values[n->in_reg[k]];
    uint32_t view = (uint32_t)n->in_view[k];
    if (!loaded[view])
        loaded[view] = emit_load(b, node->in[k].dt, lower_address(l, b, view, point));
    return loaded[view];
}

static ir_value *scalar_value(lowering *l, ir_builder *b, const lower_node *n, int k) {
    dtype dt = emit_scalar_dtype(n->node->op, n->node->compute);
    ir_value *v = &l->f->body.params[n->scalar_arg[k]];
    return dt == DT_BOOL ? ir_binary(b, IR_NE, v, ir_const_int(b, IR_I8, 0)) : v;
}

/* A store makes loaded copies of the buffer stale, unless it is the very same view (then it is the value). */
static void forget_loads(lowering *l, ir_value **loaded, uint32_t stored) {
    for (uint32_t v = 0; v < l->nviews; v++)
        if (v != stored && l->views[v].view->buffer == l->views[stored].view->buffer)
            loaded[v] = NULL;
}

void lower_emit_point(lowering *l, ir_builder *b, const lower_point *point, ir_value **values) {
    ir_value **loaded = ARENA_ARRAY(l->mem, ir_value *, l->nviews + 1);
    ir_value *flat_index = NULL;
    if (l->wants_index) {
        flat_index = dot_coords(l, b, point, l->index_strides);
        if (!flat_index) flat_index = lower_i64(b, 0);
    }
    for (uint32_t i = 0; i < l->nnodes; i++) {
        const lower_node *n = &l->nodes[i];
        const graph_node *node = n->node;
        emit_element e = {.flat_index = flat_index};
        for (int k = 0; k < node->nscalars; k++) e.scalars[k] = scalar_value(l, b, n, k);
        for (int k = 0; k < node->nin; k++) {
            dtype want = node->op == OP_WHERE && k == 0 ? DT_BOOL : node->compute;
            if (node->scalar[k] >= 0) {
                e.args[k] = emit_cast(b, e.scalars[node->scalar[k]],
                                      emit_scalar_dtype(node->op, node->compute), want);
                continue;
            }
            ir_value *v = operand_value(l, b, n, k, point, values, loaded);
            bool as_it_is = node->op == OP_CAST || n->is_reduction;
            e.args[k] = as_it_is ? v : emit_cast(b, v, node->in[k].dt, want);
        }
        if (n->is_reduction) {
            values[i] = e.args[0];
            continue;
        }
        values[i] = emit_elementwise(b, l->mem, node, &e);
        if (n->out_view < 0) continue;
        emit_store(b, node->out.dt, lower_address(l, b, (uint32_t)n->out_view, point), values[i]);
        forget_loads(l, loaded, (uint32_t)n->out_view);
        loaded[n->out_view] = values[i];
    }
}

/* ---- elementwise layouts ---- */

/* Long arrays in longer blocks, which cost less; intermediate values must stay in the first-level cache. */
static uint32_t threads_for(const lowering *l, int64_t size) {
    uint32_t threads = 16, most = BLOCK_THREADS;
    if (size >= LONG_SIZE && l->nnodes <= 8) most *= l->nnodes <= 3 ? 4 : 2;
    if (most > l->g->target->most_threads) most = l->g->target->most_threads;
    while (threads < most && threads < size) threads *= 2;
    return threads;
}

/* flat and split: thread = element. */
static simt_status lower_by_element(lowering *l, int64_t size) {
    uint32_t threads = threads_for(l, size);
    uint64_t blocks = ((uint64_t)size + threads - 1) / threads;
    uint32_t size_arg = lower_add_arg(l, IR_I64, (graph_arg){GRAPH_ARG_CONST, 0, -1, size});
    lower_add_params(l);
    ir_builder b = ir_builder_at_end(l->f, &l->f->body);
    ir_value *index = lower_thread(&b);
    if (blocks > 1) {
        ir_value *start = ir_binary(&b, IR_MUL, lower_block(&b), lower_i64(&b, threads));
        index = ir_binary(&b, IR_ADD, start, index);
    }
    ir_builder in = lower_guard(&b, ir_binary(&b, IR_LT_U, index, &l->f->body.params[size_arg]));
    lower_point point = {0};
    int which[LOWER_MAX_DIMS];
    for (int d = 0; d < l->ndim; d++) which[d] = d;
    if (l->ndim > 0) lower_split_index(l, &in, index, which, l->ndim, size, &point);
    ir_value **values = ARENA_ARRAY(l->mem, ir_value *, l->nnodes);
    lower_emit_point(l, &in, &point, values);
    lower_end_guard(&in);
    ir_return(&b);
    return lower_finish(l, l->f, l->args, l->nargs, blocks, threads);
}

/* Some view is walked across its rows: neighbouring blocks should then share its cache lines. */
static bool is_turned(const lowering *l) {
    int inner = l->ndim - 1;
    for (uint32_t v = 0; v < l->nviews; v++) {
        const int64_t *strides = l->views[v].strides;
        if (llabs(strides[inner]) > 64 && strides[inner - 1] != 0 && llabs(strides[inner - 1]) < 64)
            return true;
    }
    return false;
}

/* tiled: block = piece of a row. Turned: pieces are short and blocks go down the rows. */
static simt_status lower_by_row(lowering *l, int64_t size) {
    int inner = l->ndim - 1;
    int64_t length = l->shape[inner], rows = size / length;
    bool turned = is_turned(l);
    int64_t width = turned ? TURNED_THREADS : BLOCK_THREADS, pieces = (length + width - 1) / width;
    uint32_t threads = (uint32_t)(((length + pieces - 1) / pieces + 15) / 16 * 16);
    lower_add_params(l);
    ir_builder b = ir_builder_at_end(l->f, &l->f->body);
    ir_value *block = lower_block(&b), *row = block, *column = lower_thread(&b);
    if (pieces > 1) {
        int64_t fast = turned ? rows : pieces;
        ir_value *slow_index = ir_binary(&b, IR_DIV_U, block, lower_i64(&b, fast));
        ir_value *fast_index =
            ir_binary(&b, IR_SUB, block, ir_binary(&b, IR_MUL, slow_index, lower_i64(&b, fast)));
        ir_value *piece = turned ? slow_index : fast_index;
        row = turned ? fast_index : slow_index;
        column =
            ir_binary(&b, IR_ADD, ir_binary(&b, IR_MUL, piece, lower_i64(&b, threads)), column);
    }
    lower_point point = {0};
    int which[LOWER_MAX_DIMS];
    for (int d = 0; d < inner; d++) which[d] = d;
    lower_split_index(l, &b, row, which, inner, rows, &point);
    point.coords[inner] = column;
    bool exact = length == pieces * (int64_t)threads;
    ir_builder in =
        exact ? b : lower_guard(&b, ir_binary(&b, IR_LT_U, column, lower_i64(&b, length)));
    ir_value **values = ARENA_ARRAY(l->mem, ir_value *, l->nnodes);
    lower_emit_point(l, &in, &point, values);
    if (!exact) {
        lower_end_guard(&in);
    }
    ir_builder tail = ir_builder_at_end(l->f, &l->f->body);
    ir_return(&tail);
    return lower_finish(l, l->f, l->args, l->nargs, (uint64_t)(rows * pieces), threads);
}

void lower_new_func(lowering *l, const char *name) {
    ir_func_free(l->g->making); /* of a group without work */
    l->g->making = NULL;
    l->f = l->g->making = ir_func_new(name, "");
}

simt_status lower_finish(lowering *l, ir_func *f, const graph_arg *args, uint32_t nargs,
                         uint64_t blocks, uint32_t threads) {
    if (blocks > UINT32_MAX) {
        return status_fail(SIMT_ERR_VALUE, "array too large: %llu blocks of threads",
                           (unsigned long long)blocks);
    }
    graph_step *step = graph_plan_add_step(l->g);
    graph_arg *copy = ARENA_ARRAY(&l->g->plan->mem, graph_arg, nargs + 1);
    uint32_t *nodes = ARENA_ARRAY(&l->g->plan->mem, uint32_t, l->group->nnodes + 1);
    memcpy(copy, args, sizeof *copy * nargs);
    memcpy(nodes, l->group->nodes, sizeof *nodes * l->group->nnodes);
    step->func = f;
    l->g->making = NULL;
    step->args = copy;
    step->nargs = nargs;
    step->nodes = nodes;
    step->nnodes = l->group->nnodes;
    step->grid[0] = (uint32_t)blocks;
    step->grid[1] = step->grid[2] = step->block[1] = step->block[2] = 1;
    step->block[0] = threads;
    return SIMT_OK;
}

/* A library step for each node of the group. */
static simt_status lower_calls(graph_planning *g, const graph_group *group) {
    for (uint32_t i = 0; i < group->nnodes; i++) {
        graph_step *step = graph_plan_add_step(g);
        step->is_call = true;
        step->node = group->nodes[i];
        step->nodes = &group->nodes[i];
        step->nnodes = 1;
    }
    return SIMT_OK;
}

/* A copy into dense memory of what is dense along another axis, for which array/copy.c has tiles (and no
 * fault where this is wrong: it looks again). */
static bool copies_across(const graph_planning *g, const graph_group *group) {
    const graph_node *n = &g->plan->nodes[group->nodes[0]];
    const graph_view *v = &n->in[0];
    if (group->nnodes > 1 || (n->op != OP_COPY && n->op != OP_CAST) || n->scalar[0] >= 0 ||
        !g->target->steps[n->op] || v->dt != n->out.dt || group->size < ACROSS_SIZE ||
        !graph_view_contiguous(&n->out))
        return false;
    int64_t size = (int64_t)dtype_bytes(v->dt);
    int inner = v->ndim - 1, dense = 0;
    while (inner > 0 && v->shape[inner] == 1) inner--;
    if (v->shape[inner] < ACROSS_LEAST || v->strides[inner] == size) return false;
    while (dense < inner && (v->strides[dense] != size || v->shape[dense] < ACROSS_LEAST)) dense++;
    return dense < inner;
}

/* Nothing but reductions of rows that are in memory, for which the target has steps. */
static bool reduces_rows(const graph_planning *g, const graph_group *group) {
    int64_t length;
    for (uint32_t i = 0; i < group->nnodes; i++) {
        const graph_node *n = &g->plan->nodes[group->nodes[i]];
        if (array_op_table[n->op].kind != OP_KIND_RED || !g->target->steps[n->op] ||
            !graph_reduces_rows(n, &length))
            return false;
    }
    return true;
}

simt_status lower_group(graph_planning *g, const graph_group *group) {
    if (group->kind == OP_KIND_CALL || reduces_rows(g, group) || copies_across(g, group))
        return lower_calls(g, group);
    bool has_work = group->size > 0 || group->kind == OP_KIND_RED;
    if (!has_work) return SIMT_OK; /* nothing to compute; buffers have no bytes */
    arena *scratch = &g->scratch;
    arena_deinit(scratch); /* of the last group */
    uint32_t most_views = group->nnodes * (GRAPH_MAX_INPUTS + 1) + 1;
    uint32_t most_args = most_views + group->nnodes * (GRAPH_MAX_SCALARS + 8) + 8;
    lowering l = {.g = g, .group = group, .mem = scratch, .nnodes = group->nnodes};
    l.views = ARENA_ARRAY(scratch, lower_view, most_views);
    l.nodes = ARENA_ARRAY(scratch, lower_node, group->nnodes);
    l.args = ARENA_ARRAY(scratch, graph_arg, most_args);
    l.arg_types = ARENA_ARRAY(scratch, ir_type, most_args);
    lower_new_func(&l, group->kind == OP_KIND_RED ? "reduce" : "elementwise");
    for (uint32_t i = 0; i < l.nnodes; i++) resolve_node(&l, i);
    collapse_space(&l);
    if (group->kind == OP_KIND_RED) return lower_reductions(&l);
    if (l.ndim > 1 && l.shape[l.ndim - 1] >= TILED_INNER) return lower_by_row(&l, group->size);
    return lower_by_element(&l, group->size);
}
