/* OpenBLAS by dlopen, single-threaded: we cut the work ourselves. */
#ifndef SIMT_ARRAY_BLAS_H
#define SIMT_ARRAY_BLAS_H

#include "array/internal.h"

/* One product C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C, row-major; ld: elements between rows of
 * the matrix as stored; trans: stored transposed. dt: F32 or F64. */
typedef struct blas_gemm {
    dtype dt;
    bool a_trans, b_trans;
    int64_t m, n, k, lda, ldb, ldc;
    const char *a, *b;
    char *c;
    double beta;
} blas_gemm;

/* Failure: SIMT_ERR_NO_BLAS naming what was looked for. */
simt_status blas_load(void);
/* On the calling thread. blas_load came first. */
void blas_run(const blas_gemm *g);
/* Cut into slices over the device's workers where that pays. */
simt_status blas_run_sliced(device *dev, const blas_gemm *g);

#endif
