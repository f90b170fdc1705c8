// Searches for the largest errors of the float64 device math against libquadmath, millions of
// points a region: far more than mpmath can do. Prints "name region-low region-high ulp input".
// tools/measure_devlib.py --full compiles and runs it (argument: points a region).
#include "devlib/elementary_f64.h"
#include "devlib/gamma_f64.h"
#include "devlib/hyperbolic_f64.h"
#include "devlib/trig_f64.h"

#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252ull;

// xorshift64 (Marsaglia): good enough to pick points
static double uniform(double low, double high) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (high - low) * (double)(state >> 11) * 0x1p-53;
}

// in ulp of the reference, or of 2^(least - 1) where that is larger
static double ulp_error_from(int least, double got, __float128 want) {
    int e;
    frexpq(want, &e);
    if (e > 1024) return 0; // borders are the tests' business
    return (double)(fabsq((__float128)got - want) / ldexpq(1, (e < least ? least : e) - 53));
}

static double ulp_error(double got, __float128 want) { return ulp_error_from(-1021, got, want); }

// what libquadmath lacks
static __float128 two_to(__float128 x) { return powq(2, x); }
static __float128 ten_to(__float128 x) { return powq(10, x); }
static __float128 over_root(__float128 x) { return 1 / sqrtq(x); }
static __float128 sin_pi(__float128 x) { return sinq(M_PIq * x); }
static __float128 cos_pi(__float128 x) { return cosq(M_PIq * x); }
static __float128 inverse_erf(__float128 x) { // Newton's steps on the result itself
    __float128 a = fabsq(x), y = fabs(dev_erfinv_f64((double)x));
    for (int i = 0; i < 2; i++)
        y -= (a < 0.5Q ? erfq(y) - a : (1 - a) - erfcq(y)) * expq(y * y) * sqrtq(M_PIq) / 2;
    return copysignq(y, x);
}
#define erfinvq inverse_erf
#define sinpiq  sin_pi
#define cospiq  cos_pi
#define exp2q   two_to
#define exp10q  ten_to
#define rsqrtq  over_root

#define SEARCH(name, low, high)                                                          \
    do {                                                                                 \
        double most = 0, where = 0;                                                      \
        for (long i = 0; i < points; i++) {                                              \
            double x = uniform(low, high);                                               \
            double e = ulp_error(dev_##name##_f64(x), name##q(x));                       \
            where = e > most ? x : where;                                                \
            most = e > most ? e : most;                                                  \
        }                                                                                \
        printf("%s %g %g %.4f %a\n", #name, (double)(low), (double)(high), most, where); \
    } while (0)

// pairs of numbers of the same size, and b up to a hundred times a
#define SEARCH2(name)                                                          \
    do {                                                                       \
        double most = 0, at_x = 0, at_y = 0;                                   \
        for (long i = 0; i < points; i++) {                                    \
            double x = uniform(-1, 1), y = uniform(-1, 1) * (i % 2 ? 1 : 100); \
            double e = ulp_error(dev_##name##_f64(x, y), name##q(x, y));       \
            at_x = e > most ? x : at_x;                                        \
            at_y = e > most ? y : at_y;                                        \
            most = e > most ? e : most;                                        \
        }                                                                      \
        printf("%s -1 1 %.4f %a %a\n", #name, most, at_x, at_y);               \
    } while (0)

static void search_pow(long points, double low, double high) {
    double most = 0, at_x = 0, at_y = 0;
    for (long i = 0; i < points; i++) {
        double x = uniform(low, high), y = uniform(-709.7, 709.7) / log(x);
        double e = ulp_error(dev_pow_f64(x, y), powq(x, y));
        at_x = e > most ? x : at_x;
        at_y = e > most ? y : at_y;
        most = e > most ? e : most;
    }
    printf("pow %g %g %.4f %a %a\n", low, high, most, at_x, at_y);
}

// negative numbers: near its zeros in ulp of 1/4; some points near the integers
static void search_lgamma(long points, double low, double high) {
    double most = 0, where = 0;
    for (long i = 0; i < points; i++) {
        double x = uniform(low, high);
        x = i % 4 ? x : rint(x) + uniform(-1, 1) * exp2(uniform(-40, 0));
        if (x == rint(x) || x > 0) continue;
        double e = ulp_error_from(-1, dev_lgamma_f64(x), logq(fabsq(tgammaq(x))));
        where = e > most ? x : where;
        most = e > most ? e : most;
    }
    printf("lgamma %g %g %.4f %a\n", low, high, most, where);
}

int main(int count, char **words) {
    long points = count > 1 ? atol(words[1]) : 100000;
    SEARCH(exp, -745, 709.7);
    SEARCH(exp, -1, 1);
    SEARCH(expm1, -40, 40);
    SEARCH(expm1, -1, 1);
    SEARCH(expm1, 0.34, 0.5);
    SEARCH(log, 0.5, 2);
    SEARCH(log, 0, 1e5);
    SEARCH(log1p, -0.99, 3);
    SEARCH(log1p, 0.4, 0.5);
    SEARCH(log1p, -0.35, -0.25);
    SEARCH(sin, -10, 10);
    SEARCH(sin, -1e5, 1e5);
    SEARCH(cos, -10, 10);
    SEARCH(cos, -1e5, 1e5);
    SEARCH(tan, -1, 1);
    SEARCH(tan, -100, 100);
    SEARCH(sinpi, -2, 2);
    SEARCH(cospi, -2, 2);
    SEARCH(asinh, -1, 1);
    SEARCH(asinh, 0.3, 0.4);
    SEARCH(asinh, -1000, 1000);
    SEARCH(acosh, 1, 1.1);
    SEARCH(acosh, 1, 10);
    SEARCH(atanh, -1, 1);
    SEARCH(atanh, 0.1, 0.2);
    SEARCH(erfc, -6, 0.7);
    SEARCH(erfc, 0.65, 3);
    SEARCH(erfc, 3, 26);
    SEARCH(tgamma, 0, 3);
    SEARCH(tgamma, 3, 30);
    SEARCH(tgamma, 24, 171);
    SEARCH(tgamma, -24, 0);
    SEARCH(tgamma, -170, -24);
    SEARCH(lgamma, 0, 3);
    SEARCH(lgamma, 3, 30);
    SEARCH(lgamma, 1.99, 2.01);
    SEARCH(lgamma, 0.99, 1.01);
    SEARCH(lgamma, 24, 1e5);
    search_lgamma(points, -3, 0);
    search_lgamma(points, -24, -3);
    search_lgamma(points, -170, -24);
    SEARCH(erfinv, -1, 1);
    SEARCH(erfinv, 0.6, 0.8);
    SEARCH(erfinv, 0.999, 1);
    SEARCH(asin, -1, 1);
    SEARCH(acos, -1, 1);
    SEARCH(atan, -3, 3);
    SEARCH(atan, 0.41, 0.43);
    SEARCH2(atan2);
    SEARCH(exp2, -1, 1);
    SEARCH(exp2, -1074, 1024);
    SEARCH(exp10, -1, 1);
    SEARCH(exp10, -323, 308);
    SEARCH(log2, 0.5, 2);
    SEARCH(log2, 1.35, 1.45);
    SEARCH(log10, 0.5, 2);
    SEARCH(log10, 1.3, 1.45);
    SEARCH(sinh, -1, 1);
    SEARCH(sinh, -710, 710);
    SEARCH(cosh, -2, 2);
    SEARCH(cosh, -710, 710);
    SEARCH(cbrt, 1, 8);
    SEARCH(rsqrt, 1, 4);
    SEARCH2(hypot);
    SEARCH(tanh, -3, 3);
    SEARCH(tanh, 0.95, 1.1);
    SEARCH(erf, -3, 3);
    SEARCH(erf, 0.9, 1.1);
    search_pow(points, 0.7, 1.42);
    search_pow(points, 0, 100);
    return 0;
}
