/* Boolean masks: positions of the set elements, and the elements at them.
 *
 * In: dense flags, a byte each, any value but 0 is set. Pieces of 4,096 are counted in parallel, then
 * each writes at its own place; a piece is packed without branches into a local buffer first.
 */
#include <stdlib.h>
#include <string.h>

#include "array/select.h"

enum { PIECE = 4096, GRAIN = 8 };

static int64_t count_flags(const uint8_t *flags, int64_t n) {
    const uint64_t low = 0x7f7f7f7f7f7f7f7full, ones = 0x0101010101010101ull;
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, flags + i, 8);
        w = (((w & low) + low) | w) >> 7 & ones;
        count += (int64_t)(w * ones >> 56);
    }
    for (; i < n; i++) count += flags[i] != 0;
    return count;
}

static int64_t piece_length(const selection *s, size_t piece) {
    return min_i64(PIECE, s->n - (int64_t)piece * PIECE);
}

static simt_status count_pieces(void *context, size_t begin, size_t end) {
    selection *s = context;
    for (size_t p = begin; p < end; p++)
        s->starts[p] = count_flags(s->flags + p * PIECE, piece_length(s, p));
    return SIMT_OK;
}

simt_status selection_make(selection *s, device *dev, const uint8_t *flags, int64_t n) {
    size_t pieces = (size_t)((n + PIECE - 1) / PIECE);
    *s = (selection){.dev = dev, .flags = flags, .n = n, .pieces = pieces};
    s->starts = malloc((pieces + 1) * sizeof *s->starts);
    if (!s->starts) return status_fail(SIMT_ERR_MEMORY, "out of memory for a mask");
    simt_status status = dev->parallel(dev, pieces, GRAIN, count_pieces, s);
    for (size_t p = 0; p < pieces; p++) {
        int64_t own = s->starts[p];
        s->starts[p] = s->count;
        s->count += own;
    }
    return status;
}

void selection_free(selection *s) { free(s->starts); }

/* Places of the set flags in the piece; `place` has one entry to spare. */
static int64_t find_places(const uint8_t *flags, int64_t n, uint16_t *place) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        place[count] = (uint16_t)i;
        count += flags[i] != 0;
    }
    return count;
}

/* ---- positions ---- */

typedef struct positions_job {
    selection *s;
    const int64_t *shape;
    int ndim;
    int64_t **out;
} positions_job;

static simt_status write_positions(void *context, size_t begin, size_t end) {
    const positions_job *j = context;
    const selection *s = j->s;
    uint16_t place[PIECE + 1];
    for (size_t p = begin; p < end; p++) {
        int64_t first = (int64_t)p * PIECE, at = s->starts[p];
        int64_t count = find_places(s->flags + first, piece_length(s, p), place);
        if (j->ndim == 1) {
            for (int64_t i = 0; i < count; i++) j->out[0][at + i] = first + place[i];
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = first + place[i];
            for (int d = j->ndim - 1; d > 0; d--) {
                int64_t above = rest / j->shape[d];
                j->out[d][at + i] = rest - above * j->shape[d];
                rest = above;
            }
            j->out[0][at + i] = rest;
        }
    }
    return SIMT_OK;
}

simt_status selection_positions(selection *s, const int64_t *shape, int ndim, int64_t **out) {
    positions_job j = {s, shape, ndim, out};
    return s->dev->parallel(s->dev, s->pieces, GRAIN, write_positions, &j);
}

/* ---- elements ---- */

typedef struct pack_job {
    selection *s;
    const char *from;
    char *to;
    size_t block;
} pack_job;

#define PACK(T)                                                              \
    {                                                                        \
        T buffer[PIECE + 1];                                                 \
        int64_t n = piece_length(s, p), count = 0;                           \
        for (int64_t i = 0; i < n; i++) {                                    \
            memcpy(&buffer[count], from + (size_t)i * sizeof(T), sizeof(T)); \
            count += flags[i] != 0;                                          \
        }                                                                    \
        memcpy(to, buffer, (size_t)count * sizeof *buffer);                  \
        break;                                                               \
    }

static simt_status pack_pieces(void *context, size_t begin, size_t end) {
    const pack_job *j = context;
    const selection *s = j->s;
    for (size_t p = begin; p < end; p++) {
        const uint8_t *flags = s->flags + p * PIECE;
        const char *from = j->from + p * PIECE * j->block;
        char *to = j->to + (size_t)s->starts[p] * j->block;
        switch (j->block) {
        case 1: PACK(uint8_t)
        case 2: PACK(uint16_t)
        case 4: PACK(uint32_t)
        case 8: PACK(uint64_t)
        default:
            for (int64_t i = 0, n = piece_length(s, p); i < n; i++) {
                if (!flags[i]) continue;
                memcpy(to, from + (size_t)i * j->block, j->block);
                to += j->block;
            }
        }
    }
    return SIMT_OK;
}

simt_status selection_pack(selection *s, const char *from, size_t block, char *to) {
    pack_job j = {s, from, to, block};
    return s->dev->parallel(s->dev, s->pieces, GRAIN, pack_pieces, &j);
}
