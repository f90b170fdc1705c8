/* Boolean masks: positions of the set elements, and the elements at them.
 *
 * In: dense flags, a byte each, any value but 0 is set. Pieces of 4,096 are counted in parallel, then
 * each writes at its own place; a piece is packed without branches into a local buffer first.
 */
#include <string.h>

#include "array/select.h"
#include "base/heap.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { PIECE = 4096, GRAIN = 8, SLACK = 16 }; /* SLACK: elements that packing may write too many */

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
    s->starts = heap_alloc((pieces + 1) * sizeof *s->starts);
    if (!s->starts) return status_fail(SIMT_ERR_MEMORY, "out of memory for a mask");
    simt_status status = dev->parallel(dev, pieces, GRAIN, count_pieces, s);
    for (size_t p = 0; p < pieces; p++) {
        int64_t own = s->starts[p];
        s->starts[p] = s->count;
        s->count += own;
    }
    return status;
}

void selection_free(selection *s) { heap_free(s->starts); }

/* Packs 4 or 8 bytes an element, 16 or 8 at once; `out` has SLACK elements to spare. */
#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

AVX512 static int64_t pack_words(const uint8_t *flags, int64_t n, const char *from, uint32_t *out) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 in = n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
        __m128i f = _mm_maskz_loadu_epi8(in, flags + i);
        __mmask16 set = _mm_test_epi8_mask(f, f);
        __m512i x = _mm512_maskz_loadu_epi32(in, from + i * 4);
        _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(set, x));
        count += __builtin_popcount(set);
    }
    return count;
}

AVX512 static int64_t pack_longs(const uint8_t *flags, int64_t n, const char *from, uint64_t *out) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 in = n - i >= 8 ? 0xff : (__mmask8)((1u << (n - i)) - 1);
        __m128i f = _mm_maskz_loadu_epi8(in, flags + i);
        __mmask8 set = (__mmask8)_mm_test_epi8_mask(f, f);
        __m512i x = _mm512_maskz_loadu_epi64(in, from + i * 8);
        _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi64(set, x));
        count += __builtin_popcount(set);
    }
    return count;
}

AVX512 static int64_t pack_places(const uint8_t *flags, int64_t n, uint32_t *place) {
    int64_t count = 0;
    __m512i at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 in = n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
        __m128i f = _mm_maskz_loadu_epi8(in, flags + i);
        __mmask16 set = _mm_test_epi8_mask(f, f);
        _mm512_storeu_si512(place + count, _mm512_maskz_compress_epi32(set, at));
        count += __builtin_popcount(set);
        at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
    }
    return count;
}
#else
static bool has_avx512(void) { return false; }
#define pack_words(flags, n, from, out) ((void)(from), (void)(out), (int64_t)0)
#define pack_longs(flags, n, from, out) ((void)(from), (void)(out), (int64_t)0)
#define pack_places(flags, n, place)    ((int64_t)0)
#endif

/* Places of the set flags in the piece; `place` has SLACK entries to spare. */
static int64_t find_places(const uint8_t *flags, int64_t n, uint32_t *place) {
    if (has_avx512()) return pack_places(flags, n, place);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        place[count] = (uint32_t)i;
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
    uint32_t place[PIECE + SLACK];
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

#define PACK(T, QUICK)                                                           \
    {                                                                            \
        T buffer[PIECE + SLACK];                                                 \
        int64_t n = piece_length(s, p), count = 0;                               \
        if (has_avx512() && sizeof(T) >= 4) {                                    \
            count = QUICK;                                                       \
        } else {                                                                 \
            for (int64_t i = 0; i < n; i++) {                                    \
                memcpy(&buffer[count], from + (size_t)i * sizeof(T), sizeof(T)); \
                count += flags[i] != 0;                                          \
            }                                                                    \
        }                                                                        \
        memcpy(to, buffer, (size_t)count * sizeof *buffer);                      \
        break;                                                                   \
    }

static simt_status pack_pieces(void *context, size_t begin, size_t end) {
    const pack_job *j = context;
    const selection *s = j->s;
    for (size_t p = begin; p < end; p++) {
        const uint8_t *flags = s->flags + p * PIECE;
        const char *from = j->from + p * PIECE * j->block;
        char *to = j->to + (size_t)s->starts[p] * j->block;
        switch (j->block) {
        case 1: PACK(uint8_t, 0)
        case 2: PACK(uint16_t, 0)
        case 4: PACK(uint32_t, pack_words(flags, n, from, buffer))
        case 8: PACK(uint64_t, pack_longs(flags, n, from, buffer))
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
