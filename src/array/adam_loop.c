/* The loop of adam.h. An average that decays ends in denormal numbers, whose products and quotients take
 * the processor ten times as long: lanes with one go by f64, where they are normal, to the same bits
 * (a product of two f32 is exact in f64; a quotient is never so near the middle of two f32 that
 * rounding it to f64 first would matter). */
#include "array/adam.h"

#include <string.h>

enum { STRIP = 32 };

/* Where |x| is below this, x * (1 - beta1) or what comes of it may be denormal. */
#define SMALL 0x1p-120f

/* Any of the differences grad - average is small, but not 0. */
static inline bool any_small(const float *restrict grad, const float *restrict average) {
    const float limit = SMALL;
    uint32_t most, found = 0;
    memcpy(&most, &limit, sizeof most);
    for (int i = 0; i < STRIP; i++) {
        float d = grad[i] - average[i];
        uint32_t bits;
        memcpy(&bits, &d, sizeof bits);
        found |= (bits & 0x7fffffff) - 1 < most;
    }
    return found != 0;
}

#define STEP(PRODUCT, QUOTIENT)                                           \
    for (size_t i = 0; i < n; i++) {                                      \
        float g = grad[i], m = average[i], v = square[i];                 \
        m = m + PRODUCT(share, g - m);                                    \
        v = s->beta2 * v + s->square_share * g * g;                       \
        float root = __builtin_sqrtf(v) * s->root_scale + s->eps;         \
        param[i] = param[i] * s->keep + PRODUCT(rate, QUOTIENT(m, root)); \
        average[i] = m;                                                   \
        square[i] = v;                                                    \
    }
#define PRODUCT(x, y)       ((x) * (y))
#define QUOTIENT(x, y)      ((x) / (y))
#define WIDE_PRODUCT(x, y)  ((float)((x) * (double)(y)))
#define WIDE_QUOTIENT(x, y) ((float)((double)(x)*one / (double)(y)))

#define ARGUMENTS                                                               \
    float *restrict param, const float *restrict grad, float *restrict average, \
        float *restrict square, size_t n, const array_adam_scalars *restrict s

static inline __attribute__((always_inline)) void quick(ARGUMENTS) {
    float share = s->grad_share, rate = s->rate;
    STEP(PRODUCT, QUOTIENT)
}
static __attribute__((noinline)) void careful(ARGUMENTS) {
    /* hides from the compiler that f32 would do, which it would take */
    volatile double hidden = 1;
    double one = hidden, share = s->grad_share * one, rate = s->rate * one;
    STEP(WIDE_PRODUCT, WIDE_QUOTIENT)
}

void SIMT_ISA(adam_loop)(float *param, const float *grad, float *average, float *square, size_t n,
                         const array_adam_scalars *s) {
    size_t i = 0;
    for (; i + STRIP <= n; i += STRIP) {
        if (any_small(grad + i, average + i))
            careful(param + i, grad + i, average + i, square + i, STRIP, s);
        else
            quick(param + i, grad + i, average + i, square + i, STRIP, s);
    }
    careful(param + i, grad + i, average + i, square + i, n - i, s);
}
