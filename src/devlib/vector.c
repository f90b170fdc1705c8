// The loops of vector.h as a table, and those of Philox. Compiled once per instruction set (an isa
// source): the same text, vectorised by the compiler for each.
#include "loops.h"
#include "philox.h"
#include "philox_vector.h"

// ---- Philox ----

enum { BLOCKS = CHUNK / 4 };

#ifdef PHILOX_LANES
// Words of BLOCKS whole blocks from block `first`, in order.
static void philox_blocks(uint32_t *dst, uint64_t first, uint64_t seed) {
    philox_lanes block = LANES_ADD(LANES_SET(first), LANES_COUNT);
    for (uint32_t j = 0; j < BLOCKS; j += 2 * PHILOX_LANES) {
        philox_lanes c[4], d[4];
        philox_lanes more = LANES_ADD(block, LANES_SET(PHILOX_LANES));
        philox_rounds(block, more, seed, c, d);
        block = LANES_ADD(more, LANES_SET(PHILOX_LANES));
        philox_store(dst + 4 * j, c);
        philox_store(dst + 4 * j + 4 * PHILOX_LANES, d);
    }
}

// Word index[i] for i < n in any order.
static void philox_any(uint32_t *dst, const uint64_t *index, size_t n, uint64_t seed) {
    size_t i = 0;
    for (; i + 2 * PHILOX_LANES <= n; i += 2 * PHILOX_LANES) {
        philox_lanes c[4], d[4];
        philox_lanes at = LANES_LOAD(index + i);
        philox_lanes more = LANES_LOAD(index + i + PHILOX_LANES);
        philox_rounds(LANES_SHIFT(at, 2), LANES_SHIFT(more, 2), seed, c, d);
        philox_store_words(dst + i, at, c);
        philox_store_words(dst + i + PHILOX_LANES, more, d);
    }
    for (; i < n; i++) dst[i] = dev_philox_u32(index[i], seed);
}
#else
static void philox_blocks(uint32_t *dst, uint64_t first, uint64_t seed) {
    for (uint32_t j = 0; j < BLOCKS; j++) {
        uint32_t *w = dst + 4 * j;
        w[0] = (uint32_t)(first + j);
        w[1] = (uint32_t)((first + j) >> 32);
        w[2] = w[3] = 0;
        dev_philox_4x32(w, w + 1, w + 2, w + 3, seed);
    }
}

static void philox_any(uint32_t *dst, const uint64_t *index, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) dst[i] = dev_philox_u32(index[i], seed);
}
#endif

// At most CHUNK - 3 words from any start.
enum { PIECE = CHUNK - 4 };

static void philox_piece(uint32_t *dst, uint64_t start, size_t n, uint64_t seed) {
    uint32_t buffer[CHUNK];
    philox_blocks(buffer, start >> 2, seed);
    memcpy(dst, buffer + (start & 3), n * sizeof *dst);
}

static void philox_fill_loop(uint32_t *dst, uint64_t start, size_t n, uint64_t seed) {
    while (n > 0) {
        size_t m = n < PIECE ? n : PIECE;
        if ((start & 3) == 0 && n >= CHUNK) {
            m = CHUNK;
            philox_blocks(dst, start >> 2, seed);
        } else {
            philox_piece(dst, start, m, seed);
        }
        dst += m;
        start += m;
        n -= m;
    }
}

static void philox_u32_seeds_loop(uint32_t *dst, const uint64_t *index, const uint64_t *seed,
                                  size_t n) {
    for (size_t i = 0; i < n; i++) dst[i] = dev_philox_u32(index[i], seed[i]);
}

// Indices that follow each other are the usual case, and cost a quarter.
static void philox_u32_loop(uint32_t *dst, const uint64_t *index, size_t n, uint64_t seed) {
    for (size_t at = 0; at < n; at += PIECE) {
        size_t m = n - at < PIECE ? n - at : PIECE;
        uint64_t start = index[at];
        uint64_t other = 0;
        for (size_t i = 0; i < m; i++) other |= index[at + i] ^ (start + i);
        if (other == 0 && m > 64)
            philox_piece(dst + at, start, m, seed);
        else
            philox_any(dst + at, index + at, m, seed);
    }
}

static void uniform_f32_loop(float *dst, uint64_t start, size_t n, uint64_t seed) {
    uint32_t words[CHUNK];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK;
        philox_fill_loop(words, start + at, m, seed);
        for (size_t i = 0; i < m; i++) dst[at + i] = dev_uniform_f32(words[i]);
    }
}

static void uniform_f64_loop(double *dst, uint64_t start, size_t n, uint64_t seed) {
    uint32_t words[CHUNK];
    for (size_t at = 0; at < n; at += CHUNK / 2) {
        size_t m = n - at < CHUNK / 2 ? n - at : CHUNK / 2;
        philox_fill_loop(words, 2 * (start + at), 2 * m, seed);
        for (size_t i = 0; i < m; i++)
            dst[at + i] = dev_uniform_f64(words[2 * i], words[2 * i + 1]);
    }
}

extern const dev_table DEV_ISA(dev_table_of);
const dev_table DEV_ISA(dev_table_of) = {
#define X(name, ID, arity, f32_ulp, f64_ulp) \
    .name##_f32 = DEV_LOOP(name, f32), .name##_f64 = DEV_LOOP(name, f64),
#include "math.def"
#undef X
    .philox_u32 = philox_u32_loop,
    .philox_u32_seeds = philox_u32_seeds_loop,
    .philox_fill = philox_fill_loop,
    .uniform_f32 = uniform_f32_loop,
    .uniform_f64 = uniform_f64_loop,
};
