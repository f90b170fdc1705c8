/* f32 matrix products whose operands fit the caches, without packing: such sizes cost OpenBLAS as much
 * for copies as for arithmetic. Larger ones stay with OpenBLAS (blas.h).
 *
 * Each element is summed in an order that depends on k only: any slice of the result has the bits of
 * the whole.
 */
#ifndef SIMT_ARRAY_GEMM_H
#define SIMT_ARRAY_GEMM_H

#include "base/isa.h"

#include <stdbool.h>
#include <stdint.h>

/* C[m, n] = A[m, k] @ B (+ C where `add`), C stored by rows. */
typedef struct gemm_f32 {
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_k; /* A[i, p] = a[i * a_row + p * a_k]; a_k is 1 for `dots` */
    int64_t ldb, ldc;
    float *c;
    bool add;
} gemm_f32;

typedef struct gemm_kernels {
    /* B[p, j] = b[p * ldb + j]: rows of B times numbers of A */
    void (*rows)(const gemm_f32 *g);
    /* B[p, j] = b[j * ldb + p]: inner products of rows */
    void (*dots)(const gemm_f32 *g);
} gemm_kernels;

extern const gemm_kernels gemm_kernels_generic; /* NULLs: none */
#ifdef __x86_64__
extern const gemm_kernels gemm_kernels_avx2, gemm_kernels_avx512;
#endif

#endif
