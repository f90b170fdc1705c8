// Philox 4x32-10: random numbers as a function of (key, counter), after Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (SC11).
//
// Layout used everywhere in simt: counter = {low32(block), high32(block), stream low, stream high},
// key = {low32(seed), high32(seed)}; the word with index i of a stream is word (i & 3) of block
// i >> 2. Stream 0 is the ordinary one.
#pragma once
#include "bits.h"

// One round: two 32 x 32 -> 64 bit products, then the words change places.
DEV_FN void dev_philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint32_t k0,
                             uint32_t k1) {
    uint64_t a = (uint64_t)*c0 * 0xd2511f53u;
    uint64_t b = (uint64_t)*c2 * 0xcd9e8d57u;
    *c0 = (uint32_t)(b >> 32) ^ *c1 ^ k0;
    *c1 = (uint32_t)b;
    *c2 = (uint32_t)(a >> 32) ^ *c3 ^ k1;
    *c3 = (uint32_t)a;
}

// Replaces the four counter words by the block's four random words.
DEV_FN void dev_philox_4x32(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint64_t seed) {
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
#define DEV_PHILOX_ROUND(i) \
    dev_philox_round(c0, c1, c2, c3, k0 + (i)*0x9e3779b9u, k1 + (i)*0xbb67ae85u)
    DEV_PHILOX_ROUND(0);
    DEV_PHILOX_ROUND(1);
    DEV_PHILOX_ROUND(2);
    DEV_PHILOX_ROUND(3);
    DEV_PHILOX_ROUND(4);
    DEV_PHILOX_ROUND(5);
    DEV_PHILOX_ROUND(6);
    DEV_PHILOX_ROUND(7);
    DEV_PHILOX_ROUND(8);
    DEV_PHILOX_ROUND(9);
#undef DEV_PHILOX_ROUND
}

// The random word with this index, stream 0.
DEV_FN uint32_t dev_philox_u32(uint64_t index, uint64_t seed) {
    uint32_t c0 = (uint32_t)(index >> 2);
    uint32_t c1 = (uint32_t)(index >> 34);
    uint32_t c2 = 0;
    uint32_t c3 = 0;
    dev_philox_4x32(&c0, &c1, &c2, &c3, seed);
    uint32_t word = (uint32_t)index & 3u;
    uint32_t even = word == 0 ? c0 : c2;
    uint32_t odd = word == 1 ? c1 : c3;
    return (word & 1u) != 0 ? odd : even;
}

// [0, 1) in steps of 2^-24, from the upper bits of one word
DEV_FN float dev_uniform_f32(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }

// [0, 1) in steps of 2^-53, from two words; the bits of the fraction are put below 1.0's exponent
// first because AVX2 cannot convert 64-bit integers
DEV_FN double dev_uniform_f64(uint32_t low, uint32_t high) {
    uint64_t u = ((uint64_t)high << 32 | low) >> 11;
    double top = dev_f64_bits(0x4530000000000000ull | u >> 32);                // 2^84 + 2^32 * ...
    double bottom = dev_f64_bits(0x4330000000000000ull | (u & 0xffffffffull)); // 2^52 + ...
    return ((top - (0x1p84 + 0x1p52)) + bottom) * 0x1p-53;
}
