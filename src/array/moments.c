/* Mean and variance of f32 and f64 in memory, in one pass: pieces by the loops of moments.h, joined in
 * ascending order by the formula of Chan, Golub and LeVeque (1983), in double.
 *
 * In: a view whose first params[0] dimensions are kept and whose others are reduced; the last of either lies
 * densely (moments_fit). Out: [0] the means, [1] the sum of squared distances from them over params[1], or its
 * root where params[2] is set.
 * Segments are fixed, so any number of threads gives the same bits.
 */
#include "array/moments.h"

#include <math.h>
#include <string.h>

#include "array/walk.h"
#include "base/heap.h"
#include "base/isa.h"

enum {
    SEGMENT = 1 << 16,   /* elements of a row that one task takes */
    SEGMENT_ROWS = 2048, /* rows of a strip of columns that one task takes */
    GRAIN = 1 << 16,
    SHORT_RUN = 32, /* below it a thread per result is quicker (graph/lower_reduce.c) */
    FEW_COLUMNS = 16,
};

/* Dimensions, those of length 1 dropped and those that lie densely made one. */
typedef struct spans {
    int n;
    int64_t shape[GRAPH_MAX_NDIM], stride[GRAPH_MAX_NDIM], count;
} spans;

static void span_add(spans *s, int64_t length, int64_t stride) {
    s->count *= length;
    if (length == 1) return;
    if (s->n > 0 && s->stride[s->n - 1] == stride * length) {
        s->shape[s->n - 1] *= length;
        s->stride[s->n - 1] = stride;
        return;
    }
    s->shape[s->n] = length;
    s->stride[s->n++] = stride;
}

static bool ends_dense(const spans *s, size_t item, int64_t least) {
    return s->n > 0 && s->stride[s->n - 1] == (int64_t)item && s->shape[s->n - 1] >= least;
}

bool moments_fit(const array *a, uint32_t mask) {
    spans kept = {.count = 1}, along = {.count = 1};
    for (int d = 0; d < a->ndim; d++)
        span_add(mask >> d & 1 ? &along : &kept, a->shape[d], a->strides[d]);
    size_t item = dtype_bytes(a->dt);
    bool wide = a->dt == DT_F32 || a->dt == DT_F64;
    return wide && kept.count > 0 && along.count > 1 &&
           (ends_dense(&along, item, SHORT_RUN) || ends_dense(&kept, item, FEW_COLUMNS));
}

/* Means (from the first element of what is reduced) and squares of `width` results, of n elements each so far:
 * n more are joined. */
static void join(double *mean, double *squares, double had, const double *new_mean,
                 const double *new_squares, double n, size_t width) {
    double share = n / (had + n), weight = had * share;
    if (had == 0) {
        memcpy(mean, new_mean, width * sizeof *mean);
        memcpy(squares, new_squares, width * sizeof *squares);
        return;
    }
    for (size_t k = 0; k < width; k++) {
        double away = new_mean[k] - mean[k];
        mean[k] += away * share;
        squares[k] += new_squares[k] + away * away * weight;
    }
}

typedef struct work {
    const call_args *c;
    const moments_loops *loops;
    spans kept, along;
    size_t item;
    int64_t width, strips; /* of columns: the dense dimension, and the pieces it is cut into */
    int64_t outer, length, segments, segment; /* kept outside of it; elements reduced, cut up */
    double divisor;
    bool root;
    size_t each;   /* results of a task, at most */
    double *parts; /* of a task: its results' means, then their squares */
} work;

static double element(const work *w, const char *at) {
    double wide;
    float narrow;
    if (w->item == sizeof wide) return memcpy(&wide, at, sizeof wide), wide;
    return memcpy(&narrow, at, sizeof narrow), (double)narrow;
}

static const char *kept_at(const work *w, int64_t result, int dims) {
    return w->c->in[0].data + walk_offset(w->kept.shape, w->kept.stride, dims, result);
}

static const char *reduced_at(const work *w, const char *base, int64_t row, int dims) {
    return base + walk_offset(w->along.shape, w->along.stride, dims, row);
}

/* What distances from the first element are no measure for: they, or their sum, are beyond double. Then so
 * are the squares, if the elements themselves are finite; the mean is not. */
static void settle_overflow(const work *w, int64_t result, double value[2]) {
    const char *base = kept_at(w, result, w->kept.n);
    const double small = 0x1p-64; /* sums of all that memory holds stay finite */
    double sum = 0;
    for (int64_t i = 0; i < w->length; i++) {
        double x = element(w, reduced_at(w, base, i, w->along.n));
        if (!isfinite(x)) return;
        sum += x * small;
    }
    value[0] = sum / (double)w->length / small;
    value[1] = INFINITY;
}

static void store(const work *w, int64_t result, double from_first, double squares) {
    char *mean = w->c->out.data + result * (int64_t)w->item,
         *spread = mean + w->kept.count * (int64_t)w->item;
    double value[2] = {element(w, kept_at(w, result, w->kept.n)) + from_first,
                       squares / w->divisor};
    if (!isfinite(value[0]) || isnan(value[1])) settle_overflow(w, result, value);
    if (w->root) value[1] = sqrt(value[1]);
    if (w->item == sizeof(double)) {
        memcpy(mean, &value[0], sizeof value[0]);
        memcpy(spread, &value[1], sizeof value[1]);
        return;
    }
    float narrow[2] = {(float)value[0], (float)value[1]};
    memcpy(mean, &narrow[0], sizeof narrow[0]);
    memcpy(spread, &narrow[1], sizeof narrow[1]);
}

/* A segment of what one result is made of; its last dimension is dense. */
static void row_segment(const work *w, const char *base, int64_t begin, int64_t end, double *mean,
                        double *squares) {
    int last = w->along.n - 1;
    int64_t run = w->along.shape[last];
    double had = 0;
    while (begin < end) {
        int64_t row = begin / run, at = begin - row * run,
                n = min_i64(min_i64(MOMENTS_PIECE, run - at), end - begin);
        double new_mean, new_squares;
        const char *x = reduced_at(w, base, row, last) + at * (int64_t)w->item;
        w->loops->row(x, (size_t)n, base, &new_mean, &new_squares);
        join(mean, squares, had, &new_mean, &new_squares, (double)n, 1);
        begin += n;
        had += (double)n;
    }
}

/* The rows begin..end of `width` columns. */
static void column_segment(const work *w, const char *base, int64_t begin, int64_t end,
                           size_t width, double *mean, double *squares) {
    const char *at[MOMENTS_ROWS];
    double new_mean[MOMENTS_COLUMNS], new_squares[MOMENTS_COLUMNS], had = 0;
    while (begin < end) {
        int64_t n = min_i64(MOMENTS_ROWS, end - begin);
        for (int64_t r = 0; r < n; r++) at[r] = reduced_at(w, base, begin + r, w->along.n);
        w->loops->columns(at, (size_t)n, width, base, new_mean, new_squares);
        join(mean, squares, had, new_mean, new_squares, (double)n, width);
        begin += n;
        had += (double)n;
    }
}

/* The results of one place: a row of them, or a strip of columns. */
static size_t results_of(const work *w, int64_t place, int64_t *first) {
    if (!w->width) return *first = place, 1;
    int64_t outer = place / w->strips, from = (place - outer * w->strips) * MOMENTS_COLUMNS;
    *first = outer * w->width + from;
    return (size_t)min_i64(MOMENTS_COLUMNS, w->width - from);
}

static void store_all(const work *w, int64_t first, size_t n, const double *mean,
                      const double *squares) {
    for (size_t k = 0; k < n; k++) store(w, first + (int64_t)k, mean[k], squares[k]);
}

static simt_status segments(void *context, size_t begin, size_t end) {
    const work *w = context;
    for (size_t i = begin; i < end; i++) {
        int64_t place = (int64_t)i / w->segments, first;
        int64_t from = ((int64_t)i - place * w->segments) * w->segment;
        int64_t to = min_i64(from + w->segment, w->length);
        size_t n = results_of(w, place, &first);
        double own[2 * MOMENTS_COLUMNS],
            *mean = w->segments == 1 ? own : w->parts + i * 2 * w->each, *squares = mean + w->each;
        const char *base = kept_at(w, first, w->kept.n);
        if (w->width)
            column_segment(w, base, from, to, n, mean, squares);
        else
            row_segment(w, base, from, to, mean, squares);
        if (w->segments == 1) store_all(w, first, n, mean, squares);
    }
    return SIMT_OK;
}

static void join_segments(const work *w, int64_t places) {
    for (int64_t place = 0; place < places; place++) {
        int64_t first;
        size_t n = results_of(w, place, &first);
        double *mean = w->parts + (size_t)(place * w->segments) * 2 * w->each;
        for (int64_t s = 1; s < w->segments; s++) {
            const double *more = mean + (size_t)s * 2 * w->each;
            double had = (double)(s * w->segment);
            join(mean, mean + w->each, had, more, more + w->each,
                 (double)min_i64(w->segment, w->length - s * w->segment), n);
        }
        store_all(w, first, n, mean, mean + w->each);
    }
}

simt_status call_moments(const call_args *c) {
    const call_view *in = &c->in[0];
    work w = {.c = c,
              .loops = ISA_CHOOSE(moments_find, NULL)(in->dt),
              .kept = {.count = 1},
              .along = {.count = 1},
              .item = dtype_bytes(in->dt),
              .strips = 1};
    memcpy(&w.divisor, &c->node->params[1], sizeof w.divisor);
    w.root = c->node->params[2] != 0;
    for (int d = 0; d < in->ndim; d++)
        span_add(d < c->node->params[0] ? &w.kept : &w.along, in->shape[d], in->strides[d]);
    w.length = w.along.count;
    int64_t places = w.kept.count;
    w.each = 1;
    w.segment = SEGMENT;
    if (!ends_dense(&w.along, w.item, SHORT_RUN)) {
        w.width = w.kept.shape[w.kept.n - 1];
        w.strips = (w.width + MOMENTS_COLUMNS - 1) / MOMENTS_COLUMNS;
        places = w.kept.count / w.width * w.strips;
        w.each = MOMENTS_COLUMNS;
        w.segment = SEGMENT_ROWS;
    }
    w.segments = (w.length + w.segment - 1) / w.segment;
    size_t tasks = (size_t)(places * w.segments);
    if (w.segments > 1 && !(w.parts = heap_alloc(tasks * 2 * w.each * sizeof *w.parts)))
        return status_fail(SIMT_ERR_MEMORY, "out of memory for a variance");
    size_t size = (size_t)min_i64(w.segment, w.length) * w.each;
    simt_status status = c->dev->parallel(c->dev, tasks, GRAIN / size + 1, segments, &w);
    if (status == SIMT_OK && w.segments > 1) join_segments(&w, places);
    heap_free(w.parts);
    return status;
}
