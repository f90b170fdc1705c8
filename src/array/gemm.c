/* The loops of gemm.h, compiled once per instruction set.
 *
 * A tile of C stays in registers while k runs: 24 vectors of 32 for AVX-512, 12 of 16 for AVX2. k is cut
 * into pieces so that what a tile's row of tiles reads again stays in the first-level cache.
 */
#include <stdbool.h>
#include <stddef.h>

#include "array/gemm.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
enum { LANES = 16, TILE_ROWS = 8, TILE_VECTORS = 3, DOT_ROWS = 6 };
typedef __m512 vec;
typedef __mmask16 vec_mask;
INLINE vec_mask first_lanes(int64_t n) { return n >= 16 ? 0xffff : (vec_mask)((1u << n) - 1); }
INLINE vec load(const float *p) { return _mm512_loadu_ps(p); }
INLINE vec load_some(const float *p, vec_mask m) { return _mm512_maskz_loadu_ps(m, p); }
INLINE void store_some(float *p, vec_mask m, vec v) { _mm512_mask_storeu_ps(p, m, v); }
INLINE void store(float *p, vec v) { _mm512_storeu_ps(p, v); }
INLINE vec fill(float x) { return _mm512_set1_ps(x); }
INLINE vec mul_add(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vec pairs(vec a, vec b) { /* in each 128 bits: a0+a2 b0+b2 a1+a3 b1+b3 */
    return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
INLINE __m128 sums(vec a, vec b, vec c, vec d) {
    vec x = pairs(a, b), y = pairs(c, d);
    vec s = _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x44), _mm512_shuffle_ps(x, y, 0xee));
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}
#else
enum { LANES = 8, TILE_ROWS = 4, TILE_VECTORS = 3, DOT_ROWS = 2 };
typedef __m256 vec;
typedef __m256i vec_mask;
INLINE vec_mask first_lanes(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : (int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vec load(const float *p) { return _mm256_loadu_ps(p); }
INLINE vec load_some(const float *p, vec_mask m) { return _mm256_maskload_ps(p, m); }
INLINE void store_some(float *p, vec_mask m, vec v) { _mm256_maskstore_ps(p, m, v); }
INLINE void store(float *p, vec v) { _mm256_storeu_ps(p, v); }
INLINE vec fill(float x) { return _mm256_set1_ps(x); }
INLINE vec mul_add(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vec pairs(vec a, vec b) {
    return _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
}
INLINE __m128 sums(vec a, vec b, vec c, vec d) {
    vec x = pairs(a, b), y = pairs(c, d);
    vec s = _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x44), _mm256_shuffle_ps(x, y, 0xee));
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}
#endif

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- rows: C[i, :] += A[i, p] * B[p, :] ---- */

enum { ROWS_K = 256 }; /* a strip of B, ROWS_K x TILE_VECTORS vectors, stays in the cache */

/* `rows` rows and `vectors` vectors of C; the last vector has the lanes of `last`. */
INLINE void rows_tile(const gemm_f32 *g, const float *a, const float *b, float *c, int64_t k,
                      bool add, int rows, int vectors, bool whole, vec_mask last) {
    vec acc[TILE_ROWS][TILE_VECTORS];
    int64_t a_row = g->a_row, a_k = g->a_k, ldb = g->ldb, ldc = g->ldc;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            const float *from = c + i * ldc + v * LANES;
            bool some = !whole && v == vectors - 1;
            acc[i][v] = !add ? fill(0) : some ? load_some(from, last) : load(from);
        }
    for (int64_t p = 0; p < k; p++, a += a_k, b += ldb) {
        vec x[TILE_VECTORS];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            x[v] =
                !whole && v == vectors - 1 ? load_some(b + v * LANES, last) : load(b + v * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vec y = fill(a[i * a_row]);
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) acc[i][v] = mul_add(y, x[v], acc[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            float *to = c + i * ldc + v * LANES;
            if (!whole && v == vectors - 1)
                store_some(to, last, acc[i][v]);
            else
                store(to, acc[i][v]);
        }
}

/* A strip of C, `vectors` vectors wide. */
INLINE void rows_strip(const gemm_f32 *g, const float *a, const float *b, float *c, int64_t k,
                       bool add, int vectors, bool whole, vec_mask last) {
    int64_t i = 0;
    for (; i + TILE_ROWS <= g->m; i += TILE_ROWS)
        rows_tile(g, a + i * g->a_row, b, c + i * g->ldc, k, add, TILE_ROWS, vectors, whole, last);
    for (; i + 2 <= g->m; i += 2)
        rows_tile(g, a + i * g->a_row, b, c + i * g->ldc, k, add, 2, vectors, whole, last);
    if (i < g->m)
        rows_tile(g, a + i * g->a_row, b, c + i * g->ldc, k, add, 1, vectors, whole, last);
}

static void rows_whole(const gemm_f32 *g, const float *a, const float *b, float *c, int64_t k,
                       bool add) {
    rows_strip(g, a, b, c, k, add, TILE_VECTORS, true, first_lanes(LANES));
}
static void rows_rest(const gemm_f32 *g, const float *a, const float *b, float *c, int64_t k,
                      bool add, int64_t columns) {
    int vectors = (int)((columns + LANES - 1) / LANES);
    vec_mask last = first_lanes(columns - (vectors - 1) * LANES);
    if (vectors == 1)
        rows_strip(g, a, b, c, k, add, 1, false, last);
    else if (vectors == 2)
        rows_strip(g, a, b, c, k, add, 2, false, last);
    else
        rows_strip(g, a, b, c, k, add, 3, false, last);
}

static void rows(const gemm_f32 *g) {
    enum { WIDTH = TILE_VECTORS * LANES };
    for (int64_t p = 0; p < g->k; p += ROWS_K) {
        int64_t k = least(ROWS_K, g->k - p), j = 0;
        const float *a = g->a + p * g->a_k, *b = g->b + p * g->ldb;
        bool add = g->add || p > 0;
        for (; j + WIDTH <= g->n; j += WIDTH) rows_whole(g, a, b + j, g->c + j, k, add);
        if (j < g->n) rows_rest(g, a, b + j, g->c + j, k, add, g->n - j);
    }
}

/* ---- dots: C[i, j] += A[i, :] . B[j, :] ---- */

enum { DOTS_K = 1024 }; /* DOT_ROWS rows of A stay in the cache */

/* `rows` rows and `columns` (at most 4) columns of C; k whole vectors, then the lanes of `last`. */
INLINE void dots_tile(const gemm_f32 *g, const float *a, const float *b, float *c, int64_t k,
                      bool add, int rows, int columns) {
    vec acc[DOT_ROWS][4];
    const float *x[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) x[j] = b + (j < columns ? j : 0) * g->ldb;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) acc[i][j] = fill(0);
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vec y[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) y[j] = load(x[j] + p);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            vec w = load(a + i * g->a_row + p);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) acc[i][j] = mul_add(w, y[j], acc[i][j]);
        }
    }
    if (p < k) {
        vec_mask last = first_lanes(k - p);
        vec y[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) y[j] = load_some(x[j] + p, last);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            vec w = load_some(a + i * g->a_row + p, last);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) acc[i][j] = mul_add(w, y[j], acc[i][j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        float *to = c + i * g->ldc, some[4];
        __m128 s = sums(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        if (columns == 4) {
            if (add) s = _mm_add_ps(s, _mm_loadu_ps(to));
            _mm_storeu_ps(to, s);
            continue;
        }
        _mm_storeu_ps(some, s);
        for (int j = 0; j < columns; j++) to[j] = add ? some[j] + to[j] : some[j];
    }
}

/* `rows` rows of C over all columns */
INLINE void dots_band(const gemm_f32 *g, const float *a, const float *b, float *c, int64_t k,
                      bool add, int rows) {
    int64_t j = 0;
    for (; j + 4 <= g->n; j += 4) dots_tile(g, a, b + j * g->ldb, c + j, k, add, rows, 4);
    if (j < g->n) dots_tile(g, a, b + j * g->ldb, c + j, k, add, rows, (int)(g->n - j));
}

static void dots(const gemm_f32 *g) {
    for (int64_t p = 0; p < g->k; p += DOTS_K) {
        int64_t k = least(DOTS_K, g->k - p), i = 0;
        const float *a = g->a + p, *b = g->b + p;
        bool add = g->add || p > 0;
        for (; i + DOT_ROWS <= g->m; i += DOT_ROWS)
            dots_band(g, a + i * g->a_row, b, g->c + i * g->ldc, k, add, DOT_ROWS);
        for (; i + 2 <= g->m; i += 2)
            dots_band(g, a + i * g->a_row, b, g->c + i * g->ldc, k, add, 2);
        if (i < g->m) dots_band(g, a + i * g->a_row, b, g->c + i * g->ldc, k, add, 1);
    }
}

const gemm_kernels SIMT_ISA(gemm_kernels) = {rows, dots};
#else
const gemm_kernels SIMT_ISA(gemm_kernels) = {NULL, NULL};
#endif
