/* The mixing step of wyhash (public domain, Wang Yi): a 64x64->128 product, folded. */
#ifndef SIMT_BASE_HASH_H
#define SIMT_BASE_HASH_H

#include <stdint.h>

static inline uint64_t hash_mix(uint64_t hash, uint64_t word) {
    __uint128_t product =
        (__uint128_t)(hash ^ word ^ 0xa0761d6478bd642full) * 0xe7037ed1a0b428dbull;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
