/* sum, max, min, argmax, argmin of dense rows of memory, where there is nothing to fuse: what the
 * generated kernels of graph/lower_reduce.c compute, to the same bits, at the speed of memory.
 *
 * Rows are cut into the chunks of that file. Rows of one chunk are finished at once; else a first pass
 * leaves a value for each chunk and a second one folds those of a row.
 */
#include <string.h>

#include "array/rows.h"
#include "array/walk.h"
#include "base/heap.h"
#include "base/isa.h"

typedef struct reducing {
    const call_args *c;
    const rows_loops *loops;
    void (*value)(const void *x, size_t n, void *out); /* of a chunk */
    bool position;
    int kept; /* dimensions */
    size_t item, length, chunks, rows;
    char *partials; /* [row][chunk] */
} reducing;

static const char *row_at(const reducing *r, size_t row) {
    const call_view *in = &r->c->in[0];
    return in->data + walk_offset(in->shape, in->strides, r->kept, (int64_t)row);
}

static size_t chunk_length(const reducing *r, size_t chunk) {
    size_t left = r->length - chunk * GRAPH_ROW_CHUNK;
    return left < GRAPH_ROW_CHUNK ? left : GRAPH_ROW_CHUNK;
}

static void store_position(const reducing *r, size_t row, size_t position) {
    int64_t value = (int64_t)position;
    memcpy(r->c->out.data + row * sizeof value, &value, sizeof value);
}

static simt_status whole_rows(void *context, size_t begin, size_t end) {
    const reducing *r = context;
    uint64_t best;
    for (size_t row = begin; row < end; row++) {
        const char *x = row_at(r, row);
        r->value(x, r->length, r->position ? (char *)&best : r->c->out.data + row * r->item);
        if (r->position) store_position(r, row, r->loops->find(x, r->length, &best));
    }
    return SIMT_OK;
}

static simt_status chunks_of_rows(void *context, size_t begin, size_t end) {
    const reducing *r = context;
    for (size_t i = begin; i < end; i++) {
        size_t row = i / r->chunks, chunk = i - row * r->chunks;
        r->value(row_at(r, row) + chunk * GRAPH_ROW_CHUNK * r->item, chunk_length(r, chunk),
                 r->partials + i * r->item);
    }
    return SIMT_OK;
}

#define FOLD(T)                                                                            \
    {                                                                                      \
        T *p = values;                                                                     \
        for (; n > 1; n = (n + 1) / 2)                                                     \
            for (size_t i = 0, half = (n + 1) / 2; i + half < n; i++) p[i] += p[i + half]; \
        memcpy(out, p, sizeof *p);                                                         \
    }
static void fold_sums(dtype dt, void *values, size_t n, void *out) {
    if (dt == DT_F32) FOLD(float) else FOLD(double)
}
#undef FOLD

static simt_status fold_rows(void *context, size_t begin, size_t end) {
    const reducing *r = context;
    for (size_t row = begin; row < end; row++) {
        char *values = r->partials + row * r->chunks * r->item, *out = r->c->out.data;
        if (r->c->node->op == OP_SUM) {
            fold_sums(r->c->in[0].dt, values, r->chunks, out + row * r->item);
            continue;
        }
        uint64_t best;
        r->value(values, r->chunks, r->position ? (char *)&best : out + row * r->item);
        if (!r->position) continue;
        size_t chunk = r->loops->find(values, r->chunks, &best), start = chunk * GRAPH_ROW_CHUNK;
        const char *x = row_at(r, row) + start * r->item;
        store_position(r, row, start + r->loops->find(x, chunk_length(r, chunk), &best));
    }
    return SIMT_OK;
}

simt_status call_reduce_rows(const call_args *c) {
    enum { GRAIN = 1 << 16 }; /* elements: some microseconds */
    array_op op = c->node->op;
    int64_t length;
    reducing r = {.c = c, .loops = ISA_CHOOSE(rows_find, NULL)(c->in[0].dt), .rows = 1};
    if (!graph_reduces_rows(c->node, &length) || r.loops == NULL)
        return status_fail(SIMT_ERR_INTERNAL, "no rows in '%s'", array_op_table[op].name);
    r.position = array_op_is_position(op);
    r.value = op == OP_SUM                      ? r.loops->sum
              : op == OP_MAX || op == OP_ARGMAX ? r.loops->largest
                                                : r.loops->smallest;
    r.item = dtype_bytes(c->in[0].dt);
    r.length = (size_t)length;
    r.chunks = (r.length + GRAPH_ROW_CHUNK - 1) / GRAPH_ROW_CHUNK;
    while (r.kept < c->in[0].ndim && !(c->node->params[0] >> r.kept & 1))
        r.rows *= (size_t)c->in[0].shape[r.kept++];
    size_t grain = GRAIN / r.length + 1;
    if (r.chunks == 1) return c->dev->parallel(c->dev, r.rows, grain, whole_rows, &r);
    r.partials = heap_alloc(r.rows * r.chunks * r.item);
    if (!r.partials) return status_fail(SIMT_ERR_MEMORY, "out of memory for a reduction");
    simt_status status =
        c->dev->parallel(c->dev, r.rows * r.chunks, GRAIN / GRAPH_ROW_CHUNK, chunks_of_rows, &r);
    if (status == SIMT_OK)
        status = c->dev->parallel(c->dev, r.rows, GRAIN / r.chunks + 1, fold_rows, &r);
    heap_free(r.partials);
    return status;
}
