/* argsort along one axis, stable: NumPy's and PyTorch's order (NaN last, -0 equal to 0).
 *
 * Elements become unsigned keys that ascend as the values do (complemented for a descending order, so
 * that equal elements keep theirs); (key, position) pairs are sorted by insertion when they are few,
 * else by radix, 8 bits at a time, leaving out digits in which all keys agree. Where only the first few
 * are wanted, those below the last of the best so far are gathered, and cut to the best when there are
 * many. Rows in parallel. */
#include <stdlib.h>

#include "array/walk.h"

enum { FEW = 40, DIGIT = 256, GATHER = 256 };

simt_status array_argsort(array *a, int axis, bool descending, int64_t take, array **out) {
    if (axis < 0) axis += a->ndim;
    if (axis < 0 || axis >= a->ndim)
        return status_fail(SIMT_ERR_INDEX, "axis %d is out of bounds for array of dimension %d",
                           axis, a->ndim);
    if (a->shape[axis] > UINT32_MAX)
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED, "sorting %lld elements is not in simt yet",
                           (long long)a->shape[axis]);
    int64_t shape[ARRAY_MAX_NDIM], size = a->size ? 1 : 0;
    memcpy(shape, a->shape, sizeof *shape * (size_t)a->ndim);
    if (take > shape[axis])
        return status_fail(SIMT_ERR_VALUE, "the first %lld of %lld elements", (long long)take,
                           (long long)shape[axis]);
    if (take >= 0) shape[axis] = take;
    for (int d = 0; d < a->ndim; d++) size *= shape[d];
    if (size == 0) return array_empty(DT_I64, shape, a->ndim, out);
    queue_request q;
    queue_request_init(&q, OP_ARGSORT);
    q.node.compute = a->dt;
    q.node.nparams = 2;
    q.node.params[0] = axis;
    q.node.params[1] = descending;
    queue_input(&q, a);
    queue_output_new(&q, DT_I64, shape, a->ndim);
    return queue_add(&q, out);
}

/* ---- keys ---- */

typedef struct pair32 {
    uint32_t key, position;
} pair32;
typedef struct pair64 {
    uint64_t key;
    uint32_t position;
} pair64;

/* A float's bits (sign, then magnitude up to `infinity`, above it NaN) as an ascending key. */
static inline uint64_t float_key(uint64_t bits, uint64_t sign, uint64_t infinity) {
    uint64_t magnitude = bits & (sign - 1);
    if (magnitude > infinity) return UINT64_MAX; /* NaN: last */
    return (bits & sign) && magnitude ? sign - magnitude : sign + magnitude;
}

static uint64_t key_of(dtype dt, const char *p) {
    switch (dt) {
#define LOAD(T) \
    T x;        \
    memcpy(&x, p, sizeof x);
    case DT_BOOL:
    case DT_U8: return (uint8_t)*p;
    case DT_I8: return (uint8_t)(*p ^ 0x80);
    case DT_U16: {
        LOAD(uint16_t)
        return x;
    }
    case DT_I16: {
        LOAD(uint16_t)
        return x ^ 0x8000u;
    }
    case DT_U32: {
        LOAD(uint32_t)
        return x;
    }
    case DT_I32: {
        LOAD(uint32_t)
        return x ^ 0x80000000u;
    }
    case DT_U64: {
        LOAD(uint64_t)
        return x;
    }
    case DT_I64: {
        LOAD(uint64_t)
        return x ^ (uint64_t)1 << 63;
    }
    case DT_F16: {
        LOAD(uint16_t)
        return float_key(x, 0x8000, 0x7c00);
    }
    case DT_BF16: {
        LOAD(uint16_t)
        return float_key(x, 0x8000, 0x7f80);
    }
    case DT_F32: {
        LOAD(uint32_t)
        return float_key(x, 0x80000000u, 0x7f800000u);
    }
    default: {
        LOAD(uint64_t)
        return float_key(x, (uint64_t)1 << 63, (uint64_t)0x7ff << 52);
    }
#undef LOAD
    }
}

/* ---- one row ---- */

typedef struct sorting {
    const call_args *c;
    walk_rows rows;
    bool descending;
    size_t take, most; /* wanted; most that are held at once */
} sorting;

/* Sorts n pairs by the low `bytes` bytes of their keys; returns where they are: pairs or other. */
#define SORT_ROW(name, pair)                                                                       \
    static pair *radix_##name(pair *pairs, pair *other, size_t n, unsigned bytes) {                \
        for (unsigned shift = 0; shift < 8 * bytes; shift += 8) {                                  \
            uint32_t count[DIGIT] = {0}, sum = 0;                                                  \
            for (size_t i = 0; i < n; i++) count[pairs[i].key >> shift & 255]++;                   \
            if (count[pairs[0].key >> shift & 255] == n) continue;                                 \
            for (int d = 0; d < DIGIT; d++) {                                                      \
                uint32_t own = count[d];                                                           \
                count[d] = sum;                                                                    \
                sum += own;                                                                        \
            }                                                                                      \
            for (size_t i = 0; i < n; i++) other[count[pairs[i].key >> shift & 255]++] = pairs[i]; \
            pair *swap = pairs;                                                                    \
            pairs = other;                                                                         \
            other = swap;                                                                          \
        }                                                                                          \
        return pairs;                                                                              \
    }                                                                                              \
    static pair *insertion_##name(pair *pairs, size_t n) {                                         \
        for (size_t i = 1; i < n; i++) {                                                           \
            pair x = pairs[i];                                                                     \
            size_t j = i;                                                                          \
            for (; j > 0 && pairs[j - 1].key > x.key; j--) pairs[j] = pairs[j - 1];                \
            pairs[j] = x;                                                                          \
        }                                                                                          \
        return pairs;                                                                              \
    }                                                                                              \
    static pair *sort_##name(pair *pairs, pair *other, size_t n) {                                 \
        return n <= FEW ? insertion_##name(pairs, n)                                               \
                        : radix_##name(pairs, other, n, sizeof pairs->key);                        \
    }                                                                                              \
    static void row_##name(const sorting *s, const char *from, char *to, void *room) {             \
        const call_args *c = s->c;                                                                 \
        int64_t step = c->in[0].strides[s->rows.axis], out_step = c->out.strides[s->rows.axis];    \
        dtype dt = c->in[0].dt;                                                                    \
        pair *pairs = room, *other = pairs + s->most, *done, limit = {0, 0};                       \
        size_t filled = 0, n = (size_t)c->in[0].shape[s->rows.axis];                               \
        bool limited = false;                                                                      \
        for (size_t i = 0; i < n; i++, from += step) {                                             \
            pair x = {(__typeof__(x.key))key_of(dt, from), (uint32_t)i};                           \
            if (s->descending) x.key = ~x.key;                                                     \
            if (limited && x.key >= limit.key) continue;                                           \
            pairs[filled++] = x;                                                                   \
            if (filled < s->most || i + 1 == n) continue;                                          \
            done = sort_##name(pairs, other, filled);                                              \
            if (done != pairs) memcpy(pairs, done, s->take * sizeof *pairs);                       \
            filled = s->take;                                                                      \
            limit = pairs[filled - 1];                                                             \
            limited = true;                                                                        \
        }                                                                                          \
        done = sort_##name(pairs, other, filled);                                                  \
        for (size_t i = 0; i < s->take; i++, to += out_step) {                                     \
            int64_t position = done[i].position;                                                   \
            memcpy(to, &position, sizeof position);                                                \
        }                                                                                          \
    }
SORT_ROW(32, pair32)
SORT_ROW(64, pair64)
#undef SORT_ROW

static simt_status sort_rows(void *context, size_t begin, size_t end) {
    const sorting *s = context;
    const call_args *c = s->c;
    bool wide = dtype_bytes(c->in[0].dt) == 8;
    void *room = malloc(2 * s->most * (wide ? sizeof(pair64) : sizeof(pair32)));
    if (!room) return status_fail(SIMT_ERR_MEMORY, "no memory to sort %zu elements", s->most);
    for (size_t i = begin; i < end; i++) {
        const char *from = walk_row_in(c, &s->rows, (int64_t)i);
        char *to = walk_row_out(c, &s->rows, (int64_t)i);
        (wide ? row_64 : row_32)(s, from, to, room);
    }
    free(room);
    return SIMT_OK;
}

simt_status call_argsort(const call_args *c) {
    sorting s = {.c = c,
                 .rows = walk_rows_of(c, (int)c->node->params[0]),
                 .descending = c->node->params[1] != 0};
    size_t n = (size_t)c->in[0].shape[s.rows.axis], grain = 5000 / n + 1;
    s.take = (size_t)c->out.shape[s.rows.axis];
    s.most = s.take < n / 8 ? 4 * s.take : n;
    if (s.most < GATHER) s.most = n < GATHER ? n : GATHER;
    return c->dev->parallel(c->dev, (size_t)s.rows.count, grain, sort_rows, &s);
}
