/* OpenBLAS: loading, and products cut into slices over our own workers. */
#include "array/blas.h"

#include <dlfcn.h>
#include <limits.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void (*sgemm_function)(int order, int ta, int tb, int m, int n, int k, float alpha,
                               const float *a, int lda, const float *b, int ldb, float beta,
                               float *c, int ldc);
typedef void (*dgemm_function)(int order, int ta, int tb, int m, int n, int k, double alpha,
                               const double *a, int lda, const double *b, int ldb, double beta,
                               double *c, int ldc);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sgemm_function sgemm;
static dgemm_function dgemm;
static _Atomic bool loaded;

static simt_status load_locked(void) {
    const char *path = array_ctx.blas_path_hook ? array_ctx.blas_path_hook() : NULL;
    if (!path || !*path) path = "libscipy_openblas.so";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return status_fail(SIMT_ERR_NO_BLAS, "matrix products need OpenBLAS: %s", why ? why : path);
    }
    void (*set_threads)(int) = (void (*)(int))dlsym(library, "scipy_openblas_set_num_threads");
    sgemm = (sgemm_function)dlsym(library, "scipy_cblas_sgemm");
    dgemm = (dgemm_function)dlsym(library, "scipy_cblas_dgemm");
    if (!set_threads || !sgemm || !dgemm)
        return status_fail(SIMT_ERR_NO_BLAS,
                           "matrix products need OpenBLAS: %s has no scipy_cblas_sgemm", path);
    set_threads(1);
    atomic_store(&loaded, true);
    return SIMT_OK;
}

simt_status blas_load(void) {
    if (atomic_load_explicit(&loaded, memory_order_acquire)) return SIMT_OK;
    pthread_mutex_lock(&lock);
    simt_status status = atomic_load(&loaded) ? SIMT_OK : load_locked();
    pthread_mutex_unlock(&lock);
    return status;
}

void blas_run(const blas_gemm *g) {
    int ta = g->a_trans ? TRANS : NO_TRANS, tb = g->b_trans ? TRANS : NO_TRANS;
    if (g->dt == DT_F32)
        sgemm(ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k, 1.0f, (const float *)g->a,
              (int)g->lda, (const float *)g->b, (int)g->ldb, (float)g->beta, (float *)g->c,
              (int)g->ldc);
    else
        dgemm(ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k, 1.0, (const double *)g->a,
              (int)g->lda, (const double *)g->b, (int)g->ldb, g->beta, (double *)g->c, (int)g->ldc);
}

/* ---- slices ---- */

typedef struct slices {
    const blas_gemm *g;
    bool by_rows;
    int64_t width; /* of one slice */
} slices;

static simt_status run_slices(void *context, size_t begin, size_t end) {
    const slices *s = context;
    blas_gemm g = *s->g;
    int64_t size = (int64_t)dtype_bytes(g.dt), start = (int64_t)begin * s->width;
    int64_t stop = min_i64((int64_t)end * s->width, s->by_rows ? g.m : g.n);
    if (s->by_rows) {
        g.a += start * size * (g.a_trans ? 1 : g.lda);
        g.c += start * size * g.ldc;
        g.m = stop - start;
    } else {
        g.b += start * size * (g.b_trans ? g.ldb : 1);
        g.c += start * size;
        g.n = stop - start;
    }
    blas_run(&g);
    return SIMT_OK;
}

/* Two slices for each worker even out unequal cores; widths are multiples of 32, so that a slice's inner
 * kernels are full. */
simt_status blas_run_sliced(device *dev, const blas_gemm *g) {
    double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    bool by_rows = g->m >= g->n;
    int64_t length = by_rows ? g->m : g->n, parts = dev->nthreads * (flops > 2e7 ? 2 : 1);
    int64_t width = ((length + parts - 1) / parts + 31) / 32 * 32;
    if (dev->nthreads == 1 || flops < 1e5 || width >= length) {
        blas_run(g);
        return SIMT_OK;
    }
    slices s = {g, by_rows, width};
    return dev->parallel(dev, (size_t)((length + width - 1) / width), 1, run_slices, &s);
}
