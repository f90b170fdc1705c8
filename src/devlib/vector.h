// Loops over arrays of the device math functions, one set per instruction set.
//
// In: arrays of n elements, any alignment; dst may be the same pointer as a source, but must not
// overlap it otherwise. Out: dst, the same bits from every set. A back end asks once for the table
// of the instruction set it has chosen and calls through it.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef enum {
    DEV_ISA_GENERIC, // whatever the compiler's default target is
    DEV_ISA_AVX2,    // AVX2, FMA, F16C, BMI2
    DEV_ISA_AVX512,  // AVX-512 F, DQ, BW, VL
    DEV_ISA_COUNT,
} dev_isa;

typedef void dev_unary_f32(float *dst, const float *src, size_t n);
typedef void dev_unary_f64(double *dst, const double *src, size_t n);
typedef void dev_binary_f32(float *dst, const float *a, const float *b, size_t n);
typedef void dev_binary_f64(double *dst, const double *a, const double *b, size_t n);

// Random words (philox.h says which word an index names).
typedef void dev_philox_gather(uint32_t *dst, const uint64_t *index, size_t n, uint64_t seed);
typedef void dev_philox_gather_seeds(uint32_t *dst, const uint64_t *index, const uint64_t *seed,
                                     size_t n);
typedef void dev_philox_fill_u32(uint32_t *dst, uint64_t start, size_t n, uint64_t seed);
typedef void dev_philox_fill_f32(float *dst, uint64_t start, size_t n, uint64_t seed);
typedef void dev_philox_fill_f64(double *dst, uint64_t start, size_t n, uint64_t seed);

#define DEV_ARITY_1(name)      \
    dev_unary_f32 *name##_f32; \
    dev_unary_f64 *name##_f64;
#define DEV_ARITY_2(name)       \
    dev_binary_f32 *name##_f32; \
    dev_binary_f64 *name##_f64;

typedef struct {
#define X(name, ID, arity, f32_ulp, f64_ulp) DEV_ARITY_##arity(name)
#include "math.def"
#undef X
    dev_philox_gather *philox_u32;             // word index[i] of the seed
    dev_philox_gather_seeds *philox_u32_seeds; // word index[i] of seed[i]
    dev_philox_fill_u32 *philox_fill;          // words start, start + 1, ...
    dev_philox_fill_f32 *uniform_f32;          // [0, 1): one word each, from word start
    dev_philox_fill_f64 *uniform_f64;          // [0, 1): element k from words 2k and 2k + 1
} dev_table;

#undef DEV_ARITY_1
#undef DEV_ARITY_2

// The table of an instruction set, or NULL if this build does not have it. Whether the processor
// can run it is the caller's to know.
const dev_table *dev_table_get(dev_isa isa);
