/* Copies between strided memory: in, out, and library steps for what lies across (transposed). */
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include "array/walk.h"

typedef struct copy_dims {
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM], to[ARRAY_MAX_NDIM], from[ARRAY_MAX_NDIM];
} copy_dims;

/* Drops dimensions of length 1 and merges neighbours that lie densely in both. */
static void merge(copy_dims *m, const int64_t *shape, const int64_t *to, const int64_t *from,
                  int ndim) {
    m->ndim = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        int last = m->ndim - 1;
        if (last >= 0 && m->to[last] == to[d] * shape[d] && m->from[last] == from[d] * shape[d]) {
            m->shape[last] *= shape[d];
            m->to[last] = to[d];
            m->from[last] = from[d];
        } else {
            m->shape[m->ndim] = shape[d];
            m->to[m->ndim] = to[d];
            m->from[m->ndim++] = from[d];
        }
    }
}

static void copy_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                     size_t itemsize) {
    if (to_stride == (int64_t)itemsize && from_stride == (int64_t)itemsize) {
        memcpy(to, from, (size_t)n * itemsize);
        return;
    }
#define ROW(bytes)                                                                                 \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, bytes); \
        break;
    switch (itemsize) { ROW(1) ROW(2) ROW(4) ROW(8) }
#undef ROW
}

/* ---- across: rows of the result are columns of the source ----
 *
 * By tiles, so that each line of the source is used up while it is in the cache. */

enum {
    TILE = 16,
    STRIP = 256,             /* columns of the source in one item of work */
    STREAM_BYTES = 24 << 20, /* results from which it pays to write past the caches */
};

typedef struct turned_copy {
    char *to;
    const char *from;
    size_t itemsize;
    int64_t n, from_step;     /* along the rows of the result, which are dense */
    int64_t columns, to_step; /* along the rows of the source, which are dense */
    copy_dims rest;
    int64_t strips, items;
    bool stream;
} turned_copy;

/* Fills *t except the addresses; false: it does not lie across, or is small. */
static bool turn(const copy_dims *m, size_t itemsize, turned_copy *t) {
    int64_t size = (int64_t)itemsize;
    int inner = m->ndim - 1, dense = 0;
    if (inner < 1 || m->to[inner] != size || m->shape[inner] < TILE) return false;
    while (dense < inner && (m->from[dense] != size || m->shape[dense] < TILE)) dense++;
    if (dense == inner || itemsize > 8) return false;
    *t = (turned_copy){.itemsize = itemsize,
                       .n = m->shape[inner],
                       .from_step = m->from[inner],
                       .columns = m->shape[dense],
                       .to_step = m->to[dense]};
    t->strips = (t->columns + STRIP - 1) / STRIP;
    t->items = t->strips;
    t->stream = itemsize >= 4;
    int64_t bytes = t->n * t->columns * size;
    for (int d = 0; d < inner; d++) {
        if (d == dense) continue;
        t->rest.shape[t->rest.ndim] = m->shape[d];
        t->rest.to[t->rest.ndim] = m->to[d];
        t->rest.from[t->rest.ndim++] = m->from[d];
        t->items *= m->shape[d];
        bytes *= m->shape[d];
        if (t->rest.to[t->rest.ndim - 1] % 64 != 0) t->stream = false;
    }
    if (bytes < STREAM_BYTES || t->to_step % 64 != 0) t->stream = false;
    return true;
}

typedef uint32_t four __attribute__((vector_size(16)));

static inline void turn_4x4(char *to, int64_t to_step, const char *from, int64_t from_step) {
    four a, b, c, d;
    memcpy(&a, from, 16);
    memcpy(&b, from + from_step, 16);
    memcpy(&c, from + 2 * from_step, 16);
    memcpy(&d, from + 3 * from_step, 16);
    four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
         cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    four AB = __builtin_shufflevector(a, b, 2, 6, 3, 7),
         CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    c = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
    d = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
    memcpy(to, &a, 16);
    memcpy(to + to_step, &b, 16);
    memcpy(to + 2 * to_step, &c, 16);
    memcpy(to + 3 * to_step, &d, 16);
}

static inline void put_line(char *to, const char *from, size_t bytes, bool stream) {
#ifdef __x86_64__
    for (size_t i = 0; stream && i < bytes; i += 16)
        _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
    if (stream) return;
#endif
    memcpy(to, from, bytes);
}

#define TURN(to, to_step, bytes, rows, columns) \
    for (int64_t c = 0; c < columns; c++)       \
        for (int64_t r = 0; r < rows; r++)      \
            memcpy(to + c * (to_step) + r * bytes, from + r * from_step + c * bytes, bytes);

/* A tile becomes lines in `made`, which are written at once. */
static void turn_tile(const turned_copy *t, char *to, const char *from, bool stream) {
    _Alignas(64) char made[TILE * TILE * 8];
    int64_t from_step = t->from_step;
    switch (t->itemsize) {
#define SIZE(bytes, turn_all)                                                             \
    case bytes:                                                                           \
        turn_all;                                                                         \
        for (int64_t c = 0; c < TILE; c++)                                                \
            put_line(to + c * t->to_step, made + c * TILE * bytes, TILE * bytes, stream); \
        break;
        SIZE(1, TURN(made, TILE * 1, 1, TILE, TILE))
        SIZE(2, TURN(made, TILE * 2, 2, TILE, TILE))
        SIZE(4, for (int i = 0; i < TILE; i += 4) for (int k = 0; k < TILE; k += 4) turn_4x4(
                    made + i * TILE * 4 + k * 4, TILE * 4, from + k * from_step + i * 4, from_step))
        SIZE(8, TURN(made, TILE * 8, 8, TILE, TILE))
#undef SIZE
    }
}

static void turn_edge(const turned_copy *t, char *to, const char *from, int64_t rows,
                      int64_t columns) {
    int64_t to_step = t->to_step, from_step = t->from_step;
    switch (t->itemsize) {
    case 1: TURN(to, to_step, 1, rows, columns) break;
    case 2: TURN(to, to_step, 2, rows, columns) break;
    case 4: TURN(to, to_step, 4, rows, columns) break;
    default: TURN(to, to_step, 8, rows, columns) break;
    }
}
#undef TURN

static simt_status copy_items(void *context, size_t begin, size_t end) {
    const turned_copy *t = context;
    bool stream = t->stream && (uintptr_t)t->to % 64 == 0;
    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
        int64_t plane = i / t->strips, first = (i - plane * t->strips) * STRIP;
        int64_t last = min_i64(first + STRIP, t->columns), size = (int64_t)t->itemsize;
        char *to = t->to + walk_offset(t->rest.shape, t->rest.to, t->rest.ndim, plane);
        const char *from = t->from + walk_offset(t->rest.shape, t->rest.from, t->rest.ndim, plane);
        for (int64_t r = 0; r < t->n; r += TILE)
            for (int64_t c = first; c < last; c += TILE) {
                char *there = to + c * t->to_step + r * size;
                const char *here = from + r * t->from_step + c * size;
                int64_t rows = min_i64(TILE, t->n - r), columns = min_i64(TILE, last - c);
                if (rows == TILE && columns == TILE)
                    turn_tile(t, there, here, stream);
                else
                    turn_edge(t, there, here, rows, columns);
            }
    }
    return SIMT_OK;
}

simt_status call_copy(const call_args *c) {
    const call_view *in = &c->in[0], *out = &c->out;
    size_t itemsize = dtype_bytes(in->dt);
    copy_dims m;
    turned_copy t;
    merge(&m, out->shape, out->strides, in->strides, out->ndim);
    if (!turn(&m, itemsize, &t)) {
        strided_copy(out->data, out->strides, in->data, in->strides, out->shape, out->ndim,
                     itemsize);
        return SIMT_OK;
    }
    t.to = out->data;
    t.from = in->data;
    return c->dev->parallel(c->dev, (size_t)t.items, (size_t)(1024 / t.n) + 1, copy_items, &t);
}

/* ---- any ---- */

void strided_copy(char *to, const int64_t *to_strides, const char *from,
                  const int64_t *from_strides, const int64_t *shape, int ndim, size_t itemsize) {
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0) return;
    copy_dims m;
    merge(&m, shape, to_strides, from_strides, ndim);
    if (m.ndim == 0) {
        memcpy(to, from, itemsize);
        return;
    }
    turned_copy t;
    if (turn(&m, itemsize, &t)) {
        t.to = to;
        t.from = from;
        copy_items(&t, 0, (size_t)t.items);
        return;
    }
    int inner = m.ndim - 1;
    int64_t index[ARRAY_MAX_NDIM] = {0};
    for (;;) {
        copy_row(to, m.to[inner], from, m.from[inner], m.shape[inner], itemsize);
        int d = inner - 1;
        for (; d >= 0; d--) {
            to += m.to[d];
            from += m.from[d];
            if (++index[d] < m.shape[d]) break;
            to -= m.to[d] * m.shape[d];
            from -= m.from[d] * m.shape[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

simt_status array_copy_out(array *a, void *to) {
    SIMT_TRY(array_evaluate(a));
    if (a->size == 0) return SIMT_OK;
    int64_t strides[ARRAY_MAX_NDIM], stride = (int64_t)dtype_bytes(a->dt);
    for (int d = a->ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= a->shape[d];
    }
    array_window w;
    SIMT_TRY(array_open(a, ARRAY_READ, &w));
    strided_copy(to, strides, w.data, a->strides, a->shape, a->ndim, dtype_bytes(a->dt));
    return array_close(&w);
}

simt_status array_item(array *a, scalar *out) {
    if (a->size != 1)
        return status_fail(SIMT_ERR_VALUE,
                           "can only convert an array of size 1 to a Python scalar");
    SIMT_TRY(array_evaluate(a));
    array_window w;
    SIMT_TRY(array_open(a, ARRAY_READ, &w));
    *out = scalar_load(a->dt, w.data);
    return array_close(&w);
}
