/* sort and argsort along one axis, stable: NumPy's and PyTorch's order (NaN last, -0 equal to 0).
 *
 * Elements become unsigned keys that ascend as the values do (complemented for a descending order, so
 * that equal elements keep theirs), with their positions where those are wanted. Many short rows go
 * through a network side by side; other rows are sorted by insertion when they have few elements, else
 * by radix, 8 bits at a time, leaving out digits in which all keys agree. Where only the first few of a
 * row are wanted, those below the last of the best so far are gathered, and cut to the best when there
 * are many. Rows in parallel; few long ones one after the other, each by all workers. */
#include <stdlib.h>

#include "array/meta.h"
#include "array/sort_loop.h"
#include "array/walk.h"
#include "base/isa.h"

enum {
    FEW = 40, /* elements for insertion */
    DIGIT = 256,
    LONG_ROW = 1 << 18, /* elements of a row that all workers sort together, */
    LONG_BITS = 11,     /* and the bits of a digit then */
    LONG_DIGIT = 1 << LONG_BITS,
    GATHER = 32, /* elements held at least where only the first few are wanted */
    STRIP = 512, /* whose keys are made at once then, */
    TILE = 32,   /* elements of a row that change between rows and lanes at once */
    BLOCK = 64   /* and looked at at once */
};

static simt_status sort_node(array_op op, array *a, int axis, bool descending, int64_t take,
                             array **out) {
    if (axis < 0) axis += a->ndim;
    if (axis < 0 || axis >= a->ndim)
        return status_fail(SIMT_ERR_INDEX, "axis %d is out of bounds for array of dimension %d",
                           axis, a->ndim);
    if (a->shape[axis] > UINT32_MAX)
        return status_fail(SIMT_ERR_NOT_IMPLEMENTED, "sorting %lld elements is not in simt yet",
                           (long long)a->shape[axis]);
    dtype dt = op == OP_SORT ? a->dt : DT_I64;
    int64_t shape[ARRAY_MAX_NDIM], size = a->size ? 1 : 0;
    memcpy(shape, a->shape, sizeof *shape * (size_t)a->ndim);
    if (take > shape[axis])
        return status_fail(SIMT_ERR_VALUE, "the first %lld of %lld elements", (long long)take,
                           (long long)shape[axis]);
    if (take >= 0) shape[axis] = take;
    for (int d = 0; d < a->ndim; d++) size *= shape[d];
    if (size == 0) return array_empty_of(a, dt, shape, a->ndim, out);
    queue_request q;
    queue_request_init(&q, op);
    q.node.compute = a->dt;
    q.node.nparams = 2;
    q.node.params[0] = axis;
    q.node.params[1] = descending;
    queue_input(&q, a);
    queue_output_new(&q, dt, shape, a->ndim);
    return queue_add(&q, out);
}

simt_status array_argsort(array *a, int axis, bool descending, int64_t take, array **out) {
    return sort_node(OP_ARGSORT, a, axis, descending, take, out);
}

simt_status array_sort(array *a, int axis, array **out) {
    return sort_node(OP_SORT, a, axis, false, -1, out);
}

/* ---- what is sorted ---- */

/* A key of 32 bits with its position below it is sorted as one number. */
typedef struct pair64 {
    uint64_t key;
    uint32_t position;
} pair64;

typedef struct sorting {
    const call_args *c;
    const sort_loops *loops;
    walk_rows rows;
    dtype dt;
    bool values,
        wide;   /* values: sorted elements are wanted, not positions; wide: keys of 64 bits */
    bool dense; /* rows lie one after the other in C order */
    uint64_t flip;
    size_t n, take, most, item; /* elements of a row; wanted; held at once; bytes of one */
    size_t group;               /* rows that are sorted side by side */
} sorting;

static int64_t step_in(const sorting *s) { return s->c->in[0].strides[s->rows.axis]; }
static int64_t step_out(const sorting *s) { return s->c->out.strides[s->rows.axis]; }

/* n elements along the axis as keys; `room` holds as many elements. True: negative zeros are among them
 * and their keys are their own. */
static bool make_keys(const sorting *s, const char *from, size_t n, void *keys, char *room) {
    int64_t step = step_in(s);
    if (step != (int64_t)s->item) {
        for (size_t i = 0; i < n; i++)
            memcpy(room + i * s->item, from + (int64_t)i * step, s->item);
        from = room;
    }
    return s->loops->keys(s->dt, from, n, s->values, s->flip, keys);
}

/* n sorted keys become elements again; `room` as above. */
static void store_values(const sorting *s, const void *keys, size_t n, char *to, char *room) {
    int64_t step = step_out(s);
    bool direct = step == (int64_t)s->item;
    s->loops->values(s->dt, keys, n, s->flip, direct ? to : room);
    for (size_t i = 0; !direct && i < n; i++)
        memcpy(to + (int64_t)i * step, room + i * s->item, s->item);
}

static bool is_zero(dtype dt, const char *p) {
    uint64_t bits = 0;
    memcpy(&bits, p, dtype_bytes(dt));
    return bits << (65 - 8 * dtype_bytes(dt)) == 0; /* without the sign */
}

/* The zeros of a sorted row get the order of signs that they had before: they are equal. */
static void restore_zeros(const sorting *s, const char *from, char *to) {
    int64_t step = step_in(s), to_step = step_out(s);
    for (size_t i = 0; !is_zero(s->dt, to); to += to_step)
        if (++i == s->n) return;
    for (size_t i = 0; i < s->n; i++, from += step) {
        if (!is_zero(s->dt, from)) continue;
        memcpy(to, from, s->item);
        to += to_step;
    }
}

static void store_position(char *to, int64_t position) { memcpy(to, &position, sizeof position); }

/* ---- many short rows ---- */

typedef struct sort_room {
    char *raw, *keys, *sorted, *other; /* see sort_rows */
} sort_room;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

#define LANE(r, i) [(i)*SORT_LANES + (r)]
/* In blocks, so that the lines of both sides stay in the cache. */
#define EACH_ELEMENT                              \
    for (size_t tile = 0; tile < n; tile += TILE) \
        for (size_t r = 0; r < rows; r++)         \
            for (size_t i = tile; i < least(n, tile + TILE); i++)
#define EACH_POSITION(position)                                        \
    for (size_t r = 0; r < rows; r++) {                                \
        char *to = walk_row_out(s->c, &s->rows, (int64_t)(first + r)); \
        for (size_t i = 0; i < s->take; i++, to += step_out(s))        \
            store_position(to, (int64_t)(position));                   \
    }

static bool keys_of_rows(const sorting *s, size_t first, size_t rows, const sort_room *room) {
    const char *from = walk_row_in(s->c, &s->rows, (int64_t)first);
    size_t bytes = s->n * (s->wide ? 8 : 4);
    bool found = false;
    if (s->dense) return make_keys(s, from, s->n * rows, room->keys, room->raw);
    for (size_t r = 0; r < rows; r++) {
        from = walk_row_in(s->c, &s->rows, (int64_t)(first + r));
        found |= make_keys(s, from, s->n, room->keys + r * bytes, room->raw);
    }
    return found;
}

static void values_of_rows(const sorting *s, size_t first, size_t rows, const sort_room *room,
                           bool negative_zeros) {
    size_t bytes = s->n * (s->wide ? 8 : 4);
    for (size_t r = 0; r < rows; r++) {
        char *to = walk_row_out(s->c, &s->rows, (int64_t)(first + r));
        store_values(s, room->keys + r * bytes, s->n, to, room->raw);
        if (negative_zeros) restore_zeros(s, walk_row_in(s->c, &s->rows, (int64_t)(first + r)), to);
    }
}

static void sort_side_by_side(const sorting *s, size_t first, size_t rows, const sort_room *room) {
    size_t n = s->n;
    uint32_t *keys_32 = (uint32_t *)room->keys, *sorted_32 = (uint32_t *)room->sorted;
    uint64_t *keys_64 = (uint64_t *)room->keys, *sorted_64 = (uint64_t *)room->sorted;
    uint64_t *positions = (uint64_t *)room->other;
    bool zeros = keys_of_rows(s, first, rows, room);
    if (s->values && !s->wide) {
        EACH_ELEMENT sorted_32 LANE(r, i) = keys_32[r * n + i];
        s->loops->network_32(sorted_32, n);
        EACH_ELEMENT keys_32[r * n + i] = sorted_32 LANE(r, i);
    } else if (s->values) {
        EACH_ELEMENT sorted_64 LANE(r, i) = keys_64[r * n + i];
        s->loops->network_64(sorted_64, n);
        EACH_ELEMENT keys_64[r * n + i] = sorted_64 LANE(r, i);
    } else if (!s->wide) {
        EACH_ELEMENT sorted_64 LANE(r, i) = (uint64_t)keys_32[r * n + i] << 32 | i;
        s->loops->network_64(sorted_64, n);
        EACH_POSITION((uint32_t)sorted_64 LANE(r, i))
    } else {
        EACH_ELEMENT sorted_64 LANE(r, i) = keys_64[r * n + i];
        EACH_ELEMENT positions LANE(r, i) = i;
        s->loops->network_pairs(sorted_64, positions, n);
        EACH_POSITION(positions LANE(r, i))
    }
    if (s->values) values_of_rows(s, first, rows, room, zeros);
}

/* ---- one row ---- */

/* Sorts n elements by `digits` bytes of their keys from bit `low` on; returns where they are: v or other. */
#define SORT_ROW(name, T, KEY, low, digits)                                                 \
    static T *radix_##name(T *v, T *other, size_t n) {                                      \
        uint32_t counts[digits][DIGIT];                                                     \
        memset(counts, 0, sizeof counts);                                                   \
        for (size_t i = 0; i < n; i++)                                                      \
            for (int d = 0; d < digits; d++) counts[d][KEY(v[i]) >> (low + 8 * d) & 255]++; \
        for (int d = 0; d < digits; d++) {                                                  \
            uint32_t *count = counts[d], sum = 0;                                           \
            if (count[KEY(v[0]) >> (low + 8 * d) & 255] == n) continue;                     \
            for (int k = 0; k < DIGIT; k++) {                                               \
                uint32_t own = count[k];                                                    \
                count[k] = sum;                                                             \
                sum += own;                                                                 \
            }                                                                               \
            for (size_t i = 0; i < n; i++)                                                  \
                other[count[KEY(v[i]) >> (low + 8 * d) & 255]++] = v[i];                    \
            T *swap = v;                                                                    \
            v = other;                                                                      \
            other = swap;                                                                   \
        }                                                                                   \
        return v;                                                                           \
    }                                                                                       \
    static T *sort_##name(T *v, T *other, size_t n) {                                       \
        if (n > FEW) return radix_##name(v, other, n);                                      \
        for (size_t i = 1; i < n; i++) {                                                    \
            T x = v[i];                                                                     \
            size_t j = i;                                                                   \
            for (; j > 0 && KEY(v[j - 1]) > KEY(x); j--) v[j] = v[j - 1];                   \
            v[j] = x;                                                                       \
        }                                                                                   \
        return v;                                                                           \
    }
#define WHOLE(x)  (x)
#define MEMBER(x) ((x).key)
SORT_ROW(keys_32, uint32_t, WHOLE, 0, 4)
SORT_ROW(keys_64, uint64_t, WHOLE, 0, 8)
SORT_ROW(pairs_32, uint64_t, WHOLE, 32, 4)
SORT_ROW(pairs_64, pair64, MEMBER, 0, 8)

/* What the key of a wanted element is surely below, from the first keys of a row: as many as are wanted,
 * the smallest ones of different lanes, are below it. 0: nothing is known. */
#define FIRST_LIMIT(bits)                                                                  \
    static uint##bits##_t first_limit_##bits(const sorting *s, const uint##bits##_t *keys, \
                                             size_t n) {                                   \
        uint##bits##_t least[SORT_LANES];                                                  \
        if (s->take > SORT_LANES || s->take >= s->n / 8) return 0;                         \
        s->loops->smallest_##bits(keys, n, least);                                         \
        sort_keys_##bits(least, NULL, SORT_LANES);                                         \
        return least[s->take - 1] + 1;                                                     \
    }
FIRST_LIMIT(32)
FIRST_LIMIT(64)

/* The first `take` positions of a row. */
#define POSITIONS(bits, T, PAIR, KEY, POSITION)                                            \
    static void positions_##bits(const sorting *s, const char *from, char *to,             \
                                 const sort_room *room) {                                  \
        uint##bits##_t *keys = (uint##bits##_t *)room->keys, limit = 0;                    \
        T *v = (T *)room->sorted, *other = (T *)room->other, *done;                        \
        size_t filled = 0;                                                                 \
        bool limited = false;                                                              \
        for (size_t start = 0; start < s->n; start += STRIP, from += STRIP * step_in(s)) { \
            size_t strip = s->n - start < STRIP ? s->n - start : STRIP;                    \
            make_keys(s, from, strip, keys, room->raw);                                    \
            if (start == 0) limited = (limit = first_limit_##bits(s, keys, strip)) != 0;   \
            for (size_t i = 0; i < strip; i++) {                                           \
                if (limited && i % BLOCK == 0) /* most blocks have nothing for us */       \
                    while (i + BLOCK <= strip &&                                           \
                           !s->loops->any_below_##bits(keys + i, BLOCK, limit))            \
                        i += BLOCK;                                                        \
                if (i == strip) break;                                                     \
                if (limited && keys[i] >= limit) continue;                                 \
                v[filled++] = PAIR(keys[i], start + i);                                    \
                if (filled < s->most || start + i + 1 == s->n) continue;                   \
                done = sort_pairs_##bits(v, other, filled);                                \
                if (done != v) memcpy(v, done, s->take * sizeof *v);                       \
                filled = s->take;                                                          \
                limit = KEY(v[filled - 1]);                                                \
                limited = true;                                                            \
            }                                                                              \
        }                                                                                  \
        done = sort_pairs_##bits(v, other, filled);                                        \
        for (size_t i = 0; i < s->take; i++, to += step_out(s))                            \
            store_position(to, POSITION(done[i]));                                         \
    }
#define PAIR_32(key, at)  ((uint64_t)(key) << 32 | (at))
#define KEY_32(pair)      ((uint32_t)((pair) >> 32))
#define POSITION_32(pair) ((uint32_t)(pair))
#define PAIR_64(k, at)    ((pair64){.key = (k), .position = (uint32_t)(at)})
#define POSITION_64(pair) ((pair).position)
POSITIONS(32, uint64_t, PAIR_32, KEY_32, POSITION_32)
POSITIONS(64, pair64, PAIR_64, MEMBER, POSITION_64)

static void sort_values(const sorting *s, const char *from, char *to, const sort_room *room) {
    bool zeros = make_keys(s, from, s->n, room->keys, room->raw);
    void *done;
    if (s->wide)
        done = sort_keys_64((uint64_t *)room->keys, (uint64_t *)room->other, s->n);
    else
        done = sort_keys_32((uint32_t *)room->keys, (uint32_t *)room->other, s->n);
    store_values(s, done, s->n, to, room->raw);
    if (zeros) restore_zeros(s, from, to);
}

/* ---- one long row by all workers ----
 *
 * By radix as above: parts of the row are counted, which gives each part its places among the others',
 * and moved. */

typedef struct long_row {
    const sorting *s;
    const char *from;
    char *to;
    char *v, *other;                /* elements as they are sorted, and the room to sort into */
    uint32_t (*counts)[LONG_DIGIT]; /* by part; then where the part's next one goes */
    size_t parts;
    unsigned shift;
    uint64_t base;              /* the smallest key: what is sorted by is the difference */
    _Atomic uint64_t low, high; /* of the keys */
    atomic_bool zeros;          /* negative ones */
} long_row;

static size_t part_start(const long_row *l, size_t part) { return l->s->n * part / l->parts; }

#define RADIX_PARTS(name, T, KEY)                                                      \
    static simt_status count_##name(void *context, size_t begin, size_t end) {         \
        const long_row *l = context;                                                   \
        const T *v = (const T *)l->v;                                                  \
        __typeof__(KEY(*v)) base = (__typeof__(KEY(*v)))l->base;                       \
        for (size_t part = begin; part < end; part++) {                                \
            uint32_t *count = memset(l->counts[part], 0, sizeof l->counts[part]);      \
            for (size_t i = part_start(l, part); i < part_start(l, part + 1); i++)     \
                count[(KEY(v[i]) - base) >> l->shift & (LONG_DIGIT - 1)]++;            \
        }                                                                              \
        return SIMT_OK;                                                                \
    }                                                                                  \
    static simt_status move_##name(void *context, size_t begin, size_t end) {          \
        const long_row *l = context;                                                   \
        const T *v = (const T *)l->v;                                                  \
        __typeof__(KEY(*v)) base = (__typeof__(KEY(*v)))l->base;                       \
        T *other = (T *)l->other;                                                      \
        for (size_t part = begin; part < end; part++) {                                \
            uint32_t *at = l->counts[part];                                            \
            for (size_t i = part_start(l, part); i < part_start(l, part + 1); i++)     \
                other[at[(KEY(v[i]) - base) >> l->shift & (LONG_DIGIT - 1)]++] = v[i]; \
        }                                                                              \
        return SIMT_OK;                                                                \
    }
RADIX_PARTS(keys_32, uint32_t, WHOLE)
RADIX_PARTS(keys_64, uint64_t, WHOLE)
RADIX_PARTS(pairs_64, pair64, MEMBER)

/* Counts become places; false: all elements have the same digit. */
static bool find_places(long_row *l) {
    uint32_t sum = 0;
    for (int d = 0; d < LONG_DIGIT; d++) {
        uint32_t before = sum;
        for (size_t part = 0; part < l->parts; part++) {
            uint32_t own = l->counts[part][d];
            l->counts[part][d] = sum;
            sum += own;
        }
        if (sum - before == l->s->n) return false;
    }
    return true;
}

/* Widens low and high by n keys of 64 bits. */
static void note_keys(long_row *l, const uint64_t *keys, size_t n) {
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < n; i++) {
        low = keys[i] < low ? keys[i] : low;
        high = keys[i] > high ? keys[i] : high;
    }
    uint64_t seen = atomic_load(&l->low);
    while (low < seen && !atomic_compare_exchange_weak(&l->low, &seen, low)) continue;
    seen = atomic_load(&l->high);
    while (high > seen && !atomic_compare_exchange_weak(&l->high, &seen, high)) continue;
}

static simt_status load_strips(void *context, size_t begin, size_t end) {
    long_row *l = context;
    const sorting *s = l->s;
    uint64_t keys[STRIP], raw[STRIP];
    for (size_t start = begin * STRIP; start < least(end * STRIP, s->n); start += STRIP) {
        const char *from = l->from + (int64_t)start * step_in(s);
        size_t n = least(STRIP, s->n - start);
        void *direct = l->v + start * (s->wide ? 8 : 4);
        if (make_keys(s, from, n, s->values ? direct : keys, (char *)raw))
            atomic_store(&l->zeros, true);
        if (s->wide) note_keys(l, s->values ? direct : keys, n);
        for (size_t i = 0; i < n && !s->values; i++) {
            if (s->wide)
                ((pair64 *)l->v)[start + i] = PAIR_64(keys[i], start + i);
            else
                ((uint64_t *)l->v)[start + i] = PAIR_32(((uint32_t *)keys)[i], start + i);
        }
    }
    return SIMT_OK;
}

static simt_status store_strips(void *context, size_t begin, size_t end) {
    const long_row *l = context;
    const sorting *s = l->s;
    uint64_t raw[STRIP];
    for (size_t start = begin * STRIP; start < least(end * STRIP, s->take); start += STRIP) {
        char *to = l->to + (int64_t)start * step_out(s);
        size_t n = least(STRIP, s->take - start);
        if (s->values) store_values(s, l->v + start * (s->wide ? 8 : 4), n, to, (char *)raw);
        for (size_t i = start; i < start + n && !s->values; i++, to += step_out(s))
            store_position(to, s->wide ? POSITION_64(((pair64 *)l->v)[i])
                                       : POSITION_32(((uint64_t *)l->v)[i]));
    }
    return SIMT_OK;
}

static simt_status sort_parts(long_row *l) {
    const sorting *s = l->s;
    device *dev = s->c->dev;
    bool narrow = s->values && !s->wide, pairs = s->wide && !s->values;
    unsigned first = s->values || s->wide ? 0 : 32; /* bit of the key */
    size_t strips = (s->n + STRIP - 1) / STRIP;
    SIMT_TRY(dev->parallel(dev, strips, 16, load_strips, l));
    l->base = atomic_load(&l->low) << first;
    uint64_t range = atomic_load(&l->high) - atomic_load(&l->low);
    for (unsigned bit = 0; bit < 64 && range >> bit != 0; bit += LONG_BITS) {
        l->shift = first + bit;
        SIMT_TRY(dev->parallel(dev, l->parts, 1,
                               narrow  ? count_keys_32
                               : pairs ? count_pairs_64
                                       : count_keys_64,
                               l));
        if (!find_places(l)) continue;
        SIMT_TRY(dev->parallel(dev, l->parts, 1,
                               narrow  ? move_keys_32
                               : pairs ? move_pairs_64
                                       : move_keys_64,
                               l));
        char *swap = l->v;
        l->v = l->other;
        l->other = swap;
    }
    SIMT_TRY(dev->parallel(dev, (s->take + STRIP - 1) / STRIP, 16, store_strips, l));
    if (atomic_load(&l->zeros)) restore_zeros(s, l->from, l->to);
    return SIMT_OK;
}

static simt_status sort_long_rows(const sorting *s) {
    device *dev = s->c->dev;
    long_row l = {.s = s, .parts = (size_t)dev->nthreads * 4};
    size_t item = s->values ? s->wide ? 8 : 4 : s->wide ? sizeof(pair64) : 8;
    size_t row_bytes = (s->n * item + 63) & ~(size_t)63;
    size_t bytes = 2 * row_bytes + l.parts * sizeof *l.counts;
    void *memory;
    SIMT_TRY(dev->alloc(dev, bytes, &memory));
    simt_status status = SIMT_OK;
    for (int64_t row = 0; row < s->rows.count && status == SIMT_OK; row++) {
        l.from = walk_row_in(s->c, &s->rows, row);
        l.to = walk_row_out(s->c, &s->rows, row);
        l.v = memory;
        l.other = l.v + row_bytes;
        l.counts = (void *)(l.other + row_bytes);
        atomic_init(&l.zeros, false);
        atomic_init(&l.low, s->wide ? UINT64_MAX : 0);
        atomic_init(&l.high, s->wide ? 0 : UINT32_MAX);
        status = sort_parts(&l);
    }
    dev->free(dev, memory, bytes);
    return status;
}

/* ---- all rows ---- */

/* What the network was seen to be quicker for. */
static bool suits_network(const sorting *s) {
    if (s->wide && !s->values && s->loops == &sort_loops_generic) return false;
    if (s->take < s->n / 8 && s->n > 128) return false;
    return s->n <= (s->values ? 2048 : s->wide ? 512 : 1024);
}
static size_t least_rows(const sorting *s) { return s->n <= 256 ? 5 : 12; }

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static simt_status sort_rows(void *context, size_t begin, size_t end) {
    const sorting *s = context;
    bool by_network = s->group > 1;

    size_t n = by_network ? s->n * SORT_LANES : s->n, key = s->wide ? 8 : 4;
    size_t pair = s->wide ? sizeof(pair64) : 8;
    size_t keys = s->values || by_network ? n : STRIP, sorted = by_network ? n : s->most;
    size_t raw_bytes = rounded(keys * s->item), keys_bytes = rounded(keys * key),
           sorted_bytes = rounded(sorted * pair);
    size_t bytes = raw_bytes + keys_bytes + 2 * sorted_bytes;
    void *memory;
    SIMT_TRY(s->c->dev->alloc(s->c->dev, bytes, &memory));
    sort_room room = {.raw = memory};
    room.keys = room.raw + raw_bytes;
    room.sorted = room.keys + keys_bytes;
    room.other = room.sorted + sorted_bytes;
    size_t i = begin * s->group, count = (size_t)s->rows.count;
    end = end * s->group < count ? end * s->group : count;
    for (size_t rows; by_network && end - i >= least_rows(s); i += rows) {
        rows = end - i < SORT_LANES ? end - i : SORT_LANES;
        if (rows < SORT_LANES)
            memset(room.sorted, 0, 2 * sorted_bytes); /* lanes that nobody uses */
        sort_side_by_side(s, i, rows, &room);
    }
    for (; i < end; i++) {
        const char *from = walk_row_in(s->c, &s->rows, (int64_t)i);
        char *to = walk_row_out(s->c, &s->rows, (int64_t)i);
        (s->values ? sort_values : s->wide ? positions_64 : positions_32)(s, from, to, &room);
    }
    s->c->dev->free(s->c->dev, memory, bytes);
    return SIMT_OK;
}

simt_status call_sort(const call_args *c) {
    const call_view *in = &c->in[0];
    int axis = (int)c->node->params[0];
    sorting s = {.c = c,
                 .loops = ISA_CHOOSE(sort_loops, NULL),
                 .rows = walk_rows_of(c, axis),
                 .dt = in->dt,
                 .values = c->node->op == OP_SORT,
                 .wide = dtype_bytes(in->dt) == 8,
                 .flip = c->node->params[1] ? ~(uint64_t)0 : 0,
                 .n = (size_t)in->shape[axis],
                 .take = (size_t)c->out.shape[axis],
                 .item = dtype_bytes(in->dt)};
    s.dense = axis == in->ndim - 1 && graph_view_contiguous(&c->node->in[0]);
    s.most = s.take < s.n / 8 ? 4 * s.take : s.n;
    if (s.most < GATHER) s.most = s.n < GATHER ? s.n : GATHER;
    if (s.n >= LONG_ROW && s.rows.count < 2 * c->dev->nthreads && s.take >= s.n / 8 &&
        c->dev->nthreads > 1)
        return sort_long_rows(&s);
    s.group = suits_network(&s) && (size_t)s.rows.count >= least_rows(&s) ? SORT_LANES : 1;
    size_t groups = ((size_t)s.rows.count + s.group - 1) / s.group;
    return c->dev->parallel(c->dev, groups, 8192 / (s.n * s.group) + 1, sort_rows, &s);
}
