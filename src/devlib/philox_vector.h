// Philox on whole vectors, for vector.c only. Each 64-bit lane holds one block's word in its low
// half; the high half is rubbish, which vpmuludq ignores. Written with intrinsics because no C
// text makes the compiler choose the 32 x 32 -> 64 bit multiply (it takes the 64-bit one, 3x slower).
//
// Defines PHILOX_LANES and the operations below where the instruction set has them; without them
// vector.c uses the plain C of philox.h, which gives the same words.
#pragma once
#if defined(__AVX512F__) || defined(__AVX2__)
#include "philox.h"

#include <immintrin.h>

#ifdef __AVX512F__
#define PHILOX_LANES 8
typedef __m512i philox_lanes;
#define LANES_SET(u)        _mm512_set1_epi64((long long)(u))
#define LANES_LOAD(p)       _mm512_loadu_si512(p)
#define LANES_ADD(a, b)     _mm512_add_epi64(a, b)
#define LANES_SHIFT(a, n)   _mm512_srli_epi64(a, n)
#define LANES_MUL(a, b)     _mm512_mul_epu32(a, b)
#define LANES_HIGH(a)       _mm512_shuffle_epi32(a, (_MM_PERM_ENUM)0xf5)
#define LANES_XOR3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define LANES_COUNT         _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define PHILOX_LANES        4
typedef __m256i philox_lanes;
#define LANES_SET(u)        _mm256_set1_epi64x((long long)(u))
#define LANES_LOAD(p)       _mm256_loadu_si256((const __m256i *)(p))
#define LANES_ADD(a, b)     _mm256_add_epi64(a, b)
#define LANES_SHIFT(a, n)   _mm256_srli_epi64(a, n)
#define LANES_MUL(a, b)     _mm256_mul_epu32(a, b)
#define LANES_HIGH(a)       _mm256_shuffle_epi32(a, 0xf5)
#define LANES_XOR3(a, b, c) _mm256_xor_si256(_mm256_xor_si256(a, b), c)
#define LANES_COUNT         _mm256_setr_epi64x(0, 1, 2, 3)
#endif

// Words 0..3 of 2 * PHILOX_LANES blocks (two vectors at once hide the multiply's latency).
static inline __attribute__((always_inline)) void philox_rounds(philox_lanes block,
                                                                philox_lanes more, uint64_t seed,
                                                                philox_lanes c[4],
                                                                philox_lanes d[4]) {
    const philox_lanes m0 = LANES_SET(0xd2511f53u);
    const philox_lanes m1 = LANES_SET(0xcd9e8d57u);
    philox_lanes k0 = LANES_SET(seed);
    philox_lanes k1 = LANES_SET(seed >> 32);
    c[0] = block;
    c[1] = LANES_SHIFT(block, 32);
    d[0] = more;
    d[1] = LANES_SHIFT(more, 32);
    c[2] = c[3] = d[2] = d[3] = LANES_SET(0);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        philox_lanes a = LANES_MUL(c[0], m0);
        philox_lanes b = LANES_MUL(c[2], m1);
        philox_lanes e = LANES_MUL(d[0], m0);
        philox_lanes f = LANES_MUL(d[2], m1);
        c[0] = LANES_XOR3(LANES_HIGH(b), c[1], k0);
        c[1] = b;
        c[2] = LANES_XOR3(LANES_HIGH(a), c[3], k1);
        c[3] = a;
        d[0] = LANES_XOR3(LANES_HIGH(f), d[1], k0);
        d[1] = f;
        d[2] = LANES_XOR3(LANES_HIGH(e), d[3], k1);
        d[3] = e;
        k0 = LANES_ADD(k0, LANES_SET(0x9e3779b9u));
        k1 = LANES_ADD(k1, LANES_SET(0xbb67ae85u));
    }
}

// Stores 4 * PHILOX_LANES words, block after block.
static inline __attribute__((always_inline)) void philox_store(uint32_t *dst,
                                                               const philox_lanes c[4]) {
#ifdef __AVX512F__
    // (c1 : c0) and (c3 : c2) as 64-bit pairs, then the pairs in turn
    __m512i p = _mm512_mask_shuffle_epi32(c[0], 0xaaaa, c[1], (_MM_PERM_ENUM)0xa0);
    __m512i q = _mm512_mask_shuffle_epi32(c[2], 0xaaaa, c[3], (_MM_PERM_ENUM)0xa0);
    __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_si512(dst, _mm512_permutex2var_epi64(p, low, q));
    _mm512_storeu_si512(dst + 16, _mm512_permutex2var_epi64(p, high, q));
#else
    __m256i p = _mm256_blend_epi32(c[0], _mm256_slli_epi64(c[1], 32), 0xaa);
    __m256i q = _mm256_blend_epi32(c[2], _mm256_slli_epi64(c[3], 32), 0xaa);
    __m256i low = _mm256_unpacklo_epi64(p, q);  // blocks 0, 2
    __m256i high = _mm256_unpackhi_epi64(p, q); // blocks 1, 3
    _mm256_storeu_si256((__m256i *)dst, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(dst + 8), _mm256_permute2x128_si256(low, high, 0x31));
#endif
}

// Stores word index & 3 of each lane's block.
static inline __attribute__((always_inline)) void
philox_store_words(uint32_t *dst, philox_lanes index, const philox_lanes c[4]) {
#ifdef __AVX512F__
    __mmask8 bit0 = _mm512_test_epi64_mask(index, _mm512_set1_epi64(1));
    __mmask8 bit1 = _mm512_test_epi64_mask(index, _mm512_set1_epi64(2));
    __m512i low = _mm512_mask_mov_epi64(c[0], bit0, c[1]);
    __m512i high = _mm512_mask_mov_epi64(c[2], bit0, c[3]);
    _mm256_storeu_si256((__m256i *)dst,
                        _mm512_cvtepi64_epi32(_mm512_mask_mov_epi64(low, bit1, high)));
#else
    __m256d bit0 = _mm256_castsi256_pd(_mm256_slli_epi64(index, 63)); // selects by the sign
    __m256d bit1 = _mm256_castsi256_pd(_mm256_slli_epi64(index, 62));
    __m256d low = _mm256_blendv_pd(_mm256_castsi256_pd(c[0]), _mm256_castsi256_pd(c[1]), bit0);
    __m256d high = _mm256_blendv_pd(_mm256_castsi256_pd(c[2]), _mm256_castsi256_pd(c[3]), bit0);
    __m256i word = _mm256_castpd_si256(_mm256_blendv_pd(low, high, bit1));
    word = _mm256_permutevar8x32_epi32(word, _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0));
    _mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(word));
#endif
}

#undef LANES_MUL
#undef LANES_HIGH
#undef LANES_XOR3
#endif
