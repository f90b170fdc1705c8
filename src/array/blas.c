/* Who computes a product; loading OpenBLAS; products cut into slices over our own workers. */
#include "array/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <time.h>

#include "array/gemm.h"
#include "base/heap.h"

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

/* ---- OpenBLAS's memory ----
 *
 * Each call that runs has a buffer, which the next call takes over; where the system has none OpenBLAS
 * ends the process. So a call that would be the first to need one more looks whether there is room, and
 * where there is none waits for a buffer that exists. A thread's first call also makes what OpenBLAS keeps
 * for each thread (143 kB of thread-local data), without which the C library ends the process. */

#define BUFFER_BYTES ((size_t)33 << 20)
#define LOADED_BYTES ((size_t)128 << 20) /* the library and what it takes when it is loaded */
#define THREAD_BYTES ((size_t)256 << 10)
static atomic_int active, most_active;
static _Thread_local bool has_called;

static bool has_room(size_t bytes) {
    void *pages = heap_pages(bytes);
    if (pages) heap_free_pages(pages, bytes, true);
    return pages != NULL;
}

static simt_status no_room(void) {
    return status_fail(SIMT_ERR_MEMORY, "out of memory for a matrix product");
}

static simt_status take_buffer(void) {
    if (!has_called && !has_room(THREAD_BYTES)) return no_room();
    has_called = true;
    for (;;) {
        int n = atomic_fetch_add(&active, 1) + 1, most = atomic_load(&most_active);
        if (n <= most) return SIMT_OK;
        if (has_room(BUFFER_BYTES)) {
            while (most < n && !atomic_compare_exchange_weak(&most_active, &most, n)) {}
            return SIMT_OK;
        }
        atomic_fetch_sub(&active, 1);
        if (most == 0) return no_room();
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static void give_buffer(void) { atomic_fetch_sub(&active, 1); }

static simt_status load_locked(void) {
    const char *path = array_ctx.blas_path_hook ? array_ctx.blas_path_hook() : NULL;
    if (!path || !*path) path = "libscipy_openblas.so";
    if (!has_room(LOADED_BYTES))
        return status_fail(SIMT_ERR_MEMORY, "out of memory: OpenBLAS cannot be loaded");
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

static simt_status load(void) {
    if (atomic_load_explicit(&loaded, memory_order_acquire)) return SIMT_OK;
    pthread_mutex_lock(&lock);
    simt_status status = atomic_load(&loaded) ? SIMT_OK : load_locked();
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- the choice ---- */

static const gemm_kernels *own_kernels(void) {
    static const gemm_kernels *_Atomic found;
    const gemm_kernels *k = atomic_load_explicit(&found, memory_order_relaxed);
    if (k) return k;
    k = ISA_CHOOSE(gemm_kernels, NULL);
    atomic_store_explicit(&found, k, memory_order_relaxed);
    return k;
}

/* Measured: our loops take 0.6-0.8 of OpenBLAS's time where rows of A or k are few, and more than it
 * where packed copies would be used often. */
static bool fits_own(const blas_gemm *g) {
    double steps = (double)g->m * (double)g->n * (double)g->k;
    if (g->dt != DT_F32 || (g->a_trans && g->b_trans) || !own_kernels()->rows) return false;
    if (!g->b_trans && g->n < 8) return steps < 1e5; /* narrower than a vector */
    return steps < 2e6 || g->m <= 128 || (!g->b_trans && g->k <= 128);
}

simt_status blas_prepare(blas_gemm *g) {
    g->own = fits_own(g);
    return g->own ? SIMT_OK : load();
}

static void run_own(const blas_gemm *g) {
    gemm_f32 own = {.m = g->m,
                    .n = g->n,
                    .k = g->k,
                    .a = (const float *)g->a,
                    .b = (const float *)g->b,
                    .a_row = g->a_trans ? 1 : g->lda,
                    .a_k = g->a_trans ? g->lda : 1,
                    .ldb = g->ldb,
                    .ldc = g->ldc,
                    .c = (float *)g->c,
                    .add = g->beta != 0};
    (g->b_trans ? own_kernels()->dots : own_kernels()->rows)(&own);
}

simt_status blas_run(const blas_gemm *g) {
    int ta = g->a_trans ? TRANS : NO_TRANS, tb = g->b_trans ? TRANS : NO_TRANS;
    if (g->own) {
        run_own(g);
        return SIMT_OK;
    }
    SIMT_TRY(take_buffer());
    if (g->dt == DT_F32)
        sgemm(ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k, 1.0f, (const float *)g->a,
              (int)g->lda, (const float *)g->b, (int)g->ldb, (float)g->beta, (float *)g->c,
              (int)g->ldc);
    else
        dgemm(ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k, 1.0, (const double *)g->a,
              (int)g->lda, (const double *)g->b, (int)g->ldb, g->beta, (double *)g->c, (int)g->ldc);
    give_buffer();
    return SIMT_OK;
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
    return blas_run(&g);
}

/* How a product is cut: two slices for each worker even out unequal cores, more where they would take so
 * long that an interrupt waits; widths are multiples of what the inner loops take at once, so that these
 * are full. */
enum { SLICE_LEAST = 384 }; /* narrower ones cost speed */
#define SLICE_FLOPS 1e10    /* 0.1 to 0.2 s */
static slices cut(const device *dev, const blas_gemm *g, double flops) {
    int64_t parts = dev->nthreads * (flops > (g->own ? 4e6 : 2e7) ? 2 : 1), unit = 32;
    slices s = {g, g->m >= g->n, 0};
    if (g->own) { /* B's rows are read along, its columns only by slices */
        s.by_rows = g->b_trans ? g->n < 8 * parts : g->m >= 8 * parts;
        unit = s.by_rows ? 8 : g->b_trans ? 4 : 48;
    }
    int64_t length = s.by_rows ? g->m : g->n;
    int64_t heard = min_i64((int64_t)(flops / SLICE_FLOPS), length / SLICE_LEAST);
    if (parts < heard) parts = (heard + dev->nthreads - 1) / dev->nthreads * dev->nthreads;
    s.width = ((length + parts - 1) / parts + unit - 1) / unit * unit;
    return s;
}

simt_status blas_run_sliced(device *dev, const blas_gemm *g) {
    double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    slices s = cut(dev, g, flops);
    int64_t length = s.by_rows ? g->m : g->n;
    if (dev->nthreads == 1 || flops < (g->own ? 1e6 : 1e5) || s.width >= length) {
        return blas_run(g);
    }
    return dev->parallel(dev, (size_t)((length + s.width - 1) / s.width), 1, run_slices, &s);
}
