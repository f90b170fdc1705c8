// A small shared library around src/devlib for the tests and tools in Python (ctypes): calls the
// loops by name, sweeps float32 inputs against the C library's double functions, and times loops.
// Not installed.
#include "devlib/philox.h"
#include "devlib/vector.h"

#include <math.h>
#include <string.h>
#include <time.h>

// newer C libraries have these
#define sinpi reference_sinpi
#define cospi reference_cospi
#define rsqrt reference_rsqrt

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    const char *name;
    int arity;
    double f32_ulp, f64_ulp;
} row;

static const row rows[] = {
#define X(name, ID, arity, f32_ulp, f64_ulp) {#name, arity, f32_ulp, f64_ulp},
#include "devlib/math.def"
#undef X
};
enum { ROWS = sizeof rows / sizeof rows[0] };

EXPORT int devlib_row_count(void) { return ROWS; }
EXPORT const char *devlib_row_name(int i) { return rows[i].name; }
EXPORT int devlib_row_arity(int i) { return rows[i].arity; }
EXPORT double devlib_row_ulp(int i, int f64) { return f64 ? rows[i].f64_ulp : rows[i].f32_ulp; }

// Whether this processor can run the loops of `isa`.
EXPORT int devlib_isa_runs(int isa) {
#ifdef __x86_64__
    if (isa == DEV_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (isa == DEV_ISA_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return isa == DEV_ISA_GENERIC;
}

static void call_1(dev_unary_f32 *f32, dev_unary_f64 *f64, int wide, void *dst, const void *a,
                   const void *b, size_t n) {
    if (wide)
        f64(dst, a, n);
    else
        f32(dst, a, n);
}

static void call_2(dev_binary_f32 *f32, dev_binary_f64 *f64, int wide, void *dst, const void *a,
                   const void *b, size_t n) {
    if (wide)
        f64(dst, a, b, n);
    else
        f32(dst, a, b, n);
}

// Runs loop i of the set `isa`; 0, or -1 if there is no such loop here. b only for two inputs.
EXPORT int devlib_call(int isa, int i, int wide, void *dst, const void *a, const void *b,
                       size_t n) {
    const dev_table *t = dev_table_get(isa);
    int at = 0;
    if (!t) return -1;
#define X(name, ID, arity, f32_ulp, f64_ulp)                            \
    if (at++ == i) {                                                    \
        call_##arity(t->name##_f32, t->name##_f64, wide, dst, a, b, n); \
        return 0;                                                       \
    }
#include "devlib/math.def"
#undef X
    return -1;
}

static const dev_table *table(int isa) { return dev_table_get(isa); }

EXPORT void devlib_philox_block(uint32_t *words, uint64_t seed) {
    dev_philox_4x32(words, words + 1, words + 2, words + 3, seed);
}

EXPORT void devlib_philox(int isa, uint32_t *dst, const uint64_t *index, size_t n, uint64_t seed) {
    table(isa)->philox_u32(dst, index, n, seed);
}

EXPORT void devlib_philox_seeds(int isa, uint32_t *dst, const uint64_t *index, const uint64_t *seed,
                                size_t n) {
    table(isa)->philox_u32_seeds(dst, index, seed, n);
}

EXPORT void devlib_philox_fill(int isa, uint32_t *dst, uint64_t start, size_t n, uint64_t seed) {
    table(isa)->philox_fill(dst, start, n, seed);
}

EXPORT void devlib_uniform_f32(int isa, float *dst, uint64_t start, size_t n, uint64_t seed) {
    table(isa)->uniform_f32(dst, start, n, seed);
}

EXPORT void devlib_uniform_f64(int isa, double *dst, uint64_t start, size_t n, uint64_t seed) {
    table(isa)->uniform_f64(dst, start, n, seed);
}

// Best time of one element in ns, of `rounds` runs over n elements.
EXPORT double devlib_time(int isa, int i, int wide, void *dst, const void *a, const void *b,
                          size_t n, int rounds) {
    double best = 1e30;
    for (int r = 0; r < rounds; r++) {
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        for (int k = 0; k < 16; k++) devlib_call(isa, i, wide, dst, a, b, n);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        double ns = (double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec);
        best = ns < best ? ns : best;
    }
    return best / 16 / (double)n;
}

static double rsqrt(double x) { return 1 / sqrt(x); }
// exact on the way to [-1/4, 1/4], so that the zeros are right
static double turn(double x, double *rest) {
    double n = rint(2 * fmod(x, 2));
    *rest = (fmod(x, 2) - n / 2) * M_PI;
    return n;
}
static double sinpi(double x) {
    double r, n = turn(x, &r), odd = fabs(fmod(n, 2));
    double v = odd == 1 ? cos(r) : sin(r);
    v = fmod(fmod(n, 4) + 4, 4) >= 2 ? -v : v;
    return v == 0 ? copysign(0, x) : v;
}
static double cospi(double x) {
    double r, n = turn(x, &r), odd = fabs(fmod(n, 2));
    double v = odd == 1 ? -sin(r) : cos(r);
    v = fmod(fmod(n, 4) + 4, 4) >= 2 ? -v : v;
    return v == 0 ? 0 : v;
}
static double erfinv(double x) { // Newton's steps from a rough start, on erfc towards 1
    double a = fabs(x), w = -log1p(-x * x), y = sqrt(w) * 0.9;
    if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
    if (a < 1e-4) return x * sqrt(M_PI) / 2 * (1 + M_PI / 12 * x * x);
    for (int i = 0; i < 40; i++) {
        double miss = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        double step = miss * exp(y * y) * sqrt(M_PI) / 2;
        y -= step;
        if (fabs(step) < 1e-12 * y) break;
    }
    return copysign(y, x);
}
static double ten_to(double x) { return pow(10, x); } // not every C library has exp10

static double not_there(double x) { return NAN; }
static double (*reference(const char *name))(double) {
#define NAMED(f, text) \
    if (!strcmp(name, text)) return f;
#define REF(f) NAMED(f, #f)
    REF(exp)
    REF(log)
    REF(log1p)
    REF(expm1)
    REF(sin)
    REF(cos)
    REF(tanh)
    REF(erf)
    REF(exp2)
    REF(log2)
    REF(log10)
    REF(tan)
    REF(asin)
    REF(acos)
    REF(atan)
    REF(sinh)
    REF(cosh)
    REF(cbrt)
    NAMED(rsqrt, "rsqrt")
    REF(asinh)
    REF(acosh)
    REF(atanh)
    REF(erfc)
    REF(erfinv)
    REF(tgamma)
    REF(lgamma)
    NAMED(sinpi, "sinpi")
    NAMED(cospi, "cospi")
    NAMED(ten_to, "exp10")
#undef REF
#undef NAMED
    return not_there;
}

// Distance of got from want in units in the last place of float32 at want; NaN equals NaN, and an
// overflow counts like the next power of two.
static double ulp_error_f32(float got, double want) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    double g = isinf(got) ? copysign(0x1p128, got) : got;
    double w = fabs(want) > 0x1p128 ? copysign(0x1p128, want) : want;
    if (g == 0 && w == 0) return signbit(g) == signbit(w) ? 0 : INFINITY;
    int e;
    frexp(w, &e);
    return fabs(g - w) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

// The largest error of unary function i over the float32 bit patterns start, start + stride, ...;
// its input goes to *worst.
EXPORT double devlib_sweep_f32(int isa, int i, uint32_t start, uint64_t count, uint32_t stride,
                               float *worst) {
    enum { STEP = 4096 };
    float in[STEP], out[STEP];
    double most = 0, (*right)(double) = reference(rows[i].name);
    for (uint64_t done = 0; done < count; done += STEP) {
        size_t n = count - done < STEP ? (size_t)(count - done) : STEP;
        for (size_t k = 0; k < n; k++) {
            uint32_t u = start + (uint32_t)(done + k) * stride;
            memcpy(&in[k], &u, 4);
        }
        if (devlib_call(isa, i, 0, out, in, NULL, n) != 0) return INFINITY;
        for (size_t k = 0; k < n; k++) {
            double e = ulp_error_f32(out[k], right(in[k]));
            if (e > most) {
                most = e;
                *worst = in[k];
            }
        }
    }
    return most;
}
