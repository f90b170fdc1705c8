/* Images at another size: Pillow's resampling of 8-bit images, bit for bit (Image.resize of mode L).
 *
 * In comes a batch (N, H, W) of uint8, out goes one of the asked size; computed now. Weights are made
 * once for both directions, as 22-bit fractions; rows are resampled first and rounded to 8 bits, then
 * columns. Nearest neighbours take positions that are added up as Pillow does it. */
#include "array/resize.h"
#include "base/heap.h"

#include <math.h>
#include <string.h>

#include "array/image.h"

enum { BITS = 22 }; /* of a weight's fraction: 8 bits of the pixel and 2 of room remain */

/* ---- filters ---- */

static double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }
static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}
static double hamming(double x) {
    x = fabs(x);
    if (x == 0) return 1;
    if (x >= 1) return 0;
    x *= M_PI;
    return sin(x) / x * (0.54 + 0.46 * cos(x));
}
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
static double sinc(double x) {
    if (x == 0) return 1;
    x *= M_PI;
    return sin(x) / x;
}
static double lanczos(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const struct {
    const char *name;
    double (*at)(double x);
    double support;
} filters[] = {{"nearest", NULL, 0},    {"box", box, 0.5},     {"bilinear", triangle, 1},
               {"hamming", hamming, 1}, {"bicubic", cubic, 2}, {"lanczos", lanczos, 3}};

/* ---- weights along one axis ---- */

/* Output i is the sum of weight[i * most + k] * input[first[i] + k], k < count[i]. */
typedef struct weights {
    int64_t in, out, most;
    int64_t *first, *count;
    int32_t *weight;
} weights;

static void weights_deinit(weights *w) {
    heap_free(w->first);
    heap_free(w->count);
    heap_free(w->weight);
}

static void nearest_positions(weights *w) {
    double step = (double)w->in / (double)w->out, at = step * 0.5;
    for (int64_t i = 0; i < w->out; i++, at += step) w->first[i] = min_i64((int64_t)at, w->in - 1);
}

static void filter_weights(weights *w, double (*filter)(double x), double reach, double shrink,
                           double *exact) {
    double scale = (double)w->in / (double)w->out;
    for (int64_t i = 0; i < w->out; i++) {
        double center = ((double)i + 0.5) * scale, sum = 0;
        int64_t low = (int64_t)(center - reach + 0.5), high = (int64_t)(center + reach + 0.5);
        if (low < 0) low = 0;
        if (high > w->in) high = w->in;
        int64_t n = high - low;
        for (int64_t k = 0; k < n; k++) {
            exact[k] = filter(((double)(k + low) - center + 0.5) * shrink);
            sum += exact[k];
        }
        for (int64_t k = 0; k < n; k++) {
            double x = (sum != 0 ? exact[k] / sum : exact[k]) * (1 << BITS);
            w->weight[i * w->most + k] = (int32_t)(x < 0 ? x - 0.5 : x + 0.5);
        }
        w->first[i] = low;
        w->count[i] = n;
    }
}

static simt_status weights_init(weights *w, int64_t in, int64_t out, int filter) {
    *w = (weights){.in = in, .out = out};
    double scale = (double)in / (double)out, wide = scale < 1 ? 1 : scale;
    double reach = filters[filter].support * wide;
    w->most = 2 * (int64_t)ceil(reach) + 1;
    int64_t total;
    if (__builtin_mul_overflow(out, w->most, &total) || total > INT64_MAX / 8)
        return status_fail(SIMT_ERR_MEMORY, "no memory for the weights of %lld pixels",
                           (long long)out);
    w->first = heap_alloc((size_t)out * sizeof *w->first);
    w->count = heap_alloc((size_t)out * sizeof *w->count);
    w->weight = heap_alloc((size_t)total * sizeof *w->weight);
    double *exact = heap_alloc((size_t)w->most * sizeof *exact);
    bool fits = w->first && w->count && w->weight && exact;
    if (fits && filters[filter].at)
        filter_weights(w, filters[filter].at, reach, 1 / wide, exact);
    else if (fits)
        nearest_positions(w);
    heap_free(exact);
    if (fits) return SIMT_OK;
    weights_deinit(w);
    return status_fail(SIMT_ERR_MEMORY, "no memory for the weights of %lld pixels", (long long)out);
}

/* ---- images ---- */

typedef struct resizing {
    weights rows, columns; /* along a row (width), along a column (height) */
    bool nearest;
    const uint8_t *from;
    uint8_t *to;
} resizing;

static uint8_t clip(int32_t sum) {
    sum >>= BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resize_rows(const weights *w, const uint8_t *from, uint8_t *to, int64_t height) {
    for (int64_t y = 0; y < height; y++, from += w->in, to += w->out)
        for (int64_t x = 0; x < w->out; x++) {
            int32_t sum = 1 << (BITS - 1);
            const uint8_t *p = from + w->first[x];
            const int32_t *k = w->weight + x * w->most;
            for (int64_t i = 0; i < w->count[x]; i++) sum += p[i] * k[i];
            to[x] = clip(sum);
        }
}

static void resize_columns(const weights *w, const uint8_t *from, uint8_t *to, int64_t width,
                           int32_t *sums) {
    for (int64_t y = 0; y < w->out; y++, to += width) {
        for (int64_t x = 0; x < width; x++) sums[x] = 1 << (BITS - 1);
        for (int64_t i = 0; i < w->count[y]; i++) {
            const uint8_t *p = from + (w->first[y] + i) * width;
            int32_t k = w->weight[y * w->most + i];
            for (int64_t x = 0; x < width; x++) sums[x] += p[x] * k;
        }
        for (int64_t x = 0; x < width; x++) to[x] = clip(sums[x]);
    }
}

static void resize_nearest(const resizing *r, const uint8_t *from, uint8_t *to) {
    for (int64_t y = 0; y < r->columns.out; y++) {
        const uint8_t *row = from + r->columns.first[y] * r->rows.in;
        for (int64_t x = 0; x < r->rows.out; x++) *to++ = row[r->rows.first[x]];
    }
}

static simt_status resize_range(void *context, size_t begin, size_t end) {
    const resizing *r = context;
    int64_t in = r->columns.in * r->rows.in, out = r->columns.out * r->rows.out;
    int64_t wide = r->columns.in * r->rows.out;
    bool rows = r->rows.in != r->rows.out, columns = r->columns.in != r->columns.out;
    uint8_t *middle = heap_alloc((size_t)wide + (size_t)r->rows.out * sizeof(int32_t) + 8);
    if (!middle) return status_fail(SIMT_ERR_MEMORY, "no memory to resize an image");
    int32_t *sums = (int32_t *)(void *)(middle + ((wide + 7) & ~(int64_t)7));
    for (size_t i = begin; i < end; i++) {
        const uint8_t *from = r->from + (int64_t)i * in;
        uint8_t *to = r->to + (int64_t)i * out;
        if (r->nearest) {
            resize_nearest(r, from, to);
        } else if (!columns) {
            if (rows)
                resize_rows(&r->rows, from, to, r->columns.in);
            else
                memcpy(to, from, (size_t)in);
        } else {
            if (rows) resize_rows(&r->rows, from, middle, r->columns.in);
            resize_columns(&r->columns, rows ? middle : from, to, r->rows.out, sums);
        }
    }
    heap_free(middle);
    return SIMT_OK;
}

static simt_status check(const array *images, int64_t height, int64_t width, const char *filter,
                         int *number) {
    if (images->ndim != 3 || images->dt != DT_U8)
        return status_fail(SIMT_ERR_TYPE, "resize: expected uint8 images of three dimensions");
    if (height <= 0 || width <= 0)
        return status_fail(SIMT_ERR_VALUE, "height and width must be > 0");
    for (int i = 0; i < (int)(sizeof filters / sizeof *filters); i++)
        if (strcmp(filters[i].name, filter) == 0) return *number = i, SIMT_OK;
    return status_fail(SIMT_ERR_VALUE, "resize: no filter '%s'", filter);
}

static simt_status run_resize(resizing *r, const array *from, const array *to, int number) {
    simt_status status = weights_init(&r->rows, from->shape[2], to->shape[2], number);
    if (status == SIMT_OK) status = weights_init(&r->columns, from->shape[1], to->shape[1], number);
    device *host = runtime_host(array_runtime());
    size_t grain = 100000 / ((size_t)(to->shape[1] * to->shape[2]) + 1) + 1;
    if (status == SIMT_OK)
        status = host->parallel(host, (size_t)to->shape[0], grain, resize_range, r);
    weights_deinit(&r->rows);
    weights_deinit(&r->columns);
    return status;
}

static simt_status resize_images(resizing *r, const array *from, const array *to, int number) {
    array_window in, out;
    SIMT_TRY(array_open(from, ARRAY_READ, &in));
    simt_status status = array_open(to, ARRAY_FILL, &out);
    if (status == SIMT_OK) {
        r->from = (const unsigned char *)in.data;
        r->to = (unsigned char *)out.data;
        status = run_resize(r, from, to, number);
        if (status == SIMT_OK) status = array_close(&out);
        array_discard(&out);
    }
    array_discard(&in);
    return status;
}

simt_status array_resize(array *images, int64_t height, int64_t width, const char *filter,
                         array **out) {
    int number = 0;
    SIMT_TRY(check(images, height, width, filter, &number));
    if (images->size == 0 && images->shape[0])
        return status_fail(SIMT_ERR_VALUE, "resize: the images have no pixels");
    int64_t shape[3] = {images->shape[0], height, width};
    array *dense = NULL, *made = NULL;
    SIMT_TRY(image_dense(images, DT_U8, &dense));
    simt_status status = array_evaluate(dense);
    if (status == SIMT_OK) status = array_empty(DT_U8, shape, 3, &made);
    resizing r = {.nearest = number == 0};
    if (status == SIMT_OK && made->size > 0) status = resize_images(&r, dense, made, number);
    array_unref(dense);
    if (status == SIMT_OK) return *out = made, SIMT_OK;
    array_unref(made);
    return status;
}
