/* Matrix products of f32 and f64: by our own loops (gemm.h) where the operands fit the caches, else by
 * OpenBLAS, loaded when first needed and single-threaded: we cut the work ourselves. */
#ifndef SIMT_ARRAY_BLAS_H
#define SIMT_ARRAY_BLAS_H

#include "array/internal.h"

/* One product C[m, n] = A[m, k] @ B[k, n] + beta * C, row-major; ld: elements between rows of the matrix
 * as stored; trans: stored transposed. dt: F32 or F64; beta: 0 or 1. */
typedef struct blas_gemm {
    dtype dt;
    bool a_trans, b_trans, own; /* own: blas_prepare's choice */
    int64_t m, n, k, lda, ldb, ldc;
    const char *a, *b;
    char *c;
    double beta;
} blas_gemm;

/* Chooses by dt, trans, m, n, k, and loads OpenBLAS if it takes that. The first call for a kind of
 * product is made by the step's own thread, not by a worker: loading may need the interpreter.
 * Failure: SIMT_ERR_NO_BLAS naming what was looked for. */
simt_status blas_prepare(blas_gemm *g);
/* On the calling thread, prepared. Failure: SIMT_ERR_MEMORY, nothing is computed. */
simt_status blas_run(const blas_gemm *g);
/* Prepared; cut into slices over the device's workers where that pays. */
simt_status blas_run_sliced(device *dev, const blas_gemm *g);

#endif
