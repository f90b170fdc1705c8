/* f32 multiplication and division for AVX-512 that denormal operands do not slow down.
 *
 * The processor takes a denormal operand by a microcode assist of some 90 cycles a vector, and moving
 * averages that decay (momentum, Adam) are full of them. A vector that holds one goes another way to
 * the same bits: casts between f32 and f64 take denormals at full speed. In, out: as any loop of
 * kernels.h. Only included by kernels_float.c.
 */
#ifndef SIMT_BACKEND_VM_DENORMAL_H
#define SIMT_BACKEND_VM_DENORMAL_H

#ifdef __AVX512DQ__
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE __mmask16 denormals(__m512 x) { return _mm512_fpclass_ps_mask(x, 0x20); }

/* Both are right after two roundings: a product of two f32 is exact in f64, and a quotient of two 24-bit
 * numbers never lies so near the middle of two f32 that rounding it to 53 bits first would matter. */
ALWAYS_INLINE __m256 half_by_f64(__m256 a, __m256 b, bool divide) {
    __m512d x = _mm512_cvtps_pd(a), y = _mm512_cvtps_pd(b);
    return _mm512_cvtpd_ps(divide ? _mm512_div_pd(x, y) : _mm512_mul_pd(x, y));
}
ALWAYS_INLINE __m512 by_f64(__m512 a, __m512 b, bool divide) {
    __m256 low = half_by_f64(_mm512_castps512_ps256(a), _mm512_castps512_ps256(b), divide);
    __m256 high = half_by_f64(_mm512_extractf32x8_ps(a, 1), _mm512_extractf32x8_ps(b, 1), divide);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* Denormal dividends are divided 2^64 times as large; the quotient is scaled back where that is exact. */
ALWAYS_INLINE __m512 divide_denormal(__m512 a, __m512 b) {
    __mmask16 small = denormals(a);
    if (denormals(b)) return by_f64(a, b, true);
    __m512 scaled = by_f64(a, _mm512_set1_ps(0x1p64f), false);
    __m512 q = _mm512_div_ps(_mm512_mask_mov_ps(a, small, scaled), b);
    __mmask16 fits =
        _mm512_mask_cmp_ps_mask(small, _mm512_abs_ps(q), _mm512_set1_ps(0x1p-62f), _CMP_GE_OQ);
    if (fits != small) return by_f64(a, b, true);
    return _mm512_mask_mul_ps(q, small, q, _mm512_set1_ps(0x1p-64f));
}

ALWAYS_INLINE __m512 careful_one(__m512 a, __m512 b, bool odd, bool divide) {
    if (__builtin_expect(!odd, 1)) return divide ? _mm512_div_ps(a, b) : _mm512_mul_ps(a, b);
    return divide ? divide_denormal(a, b) : by_f64(a, b, false);
}

/* as, bs: the operand is one scalar (constants where this is inlined) */
ALWAYS_INLINE void careful_loop(float *d, const float *pa, bool as, const float *pb, bool bs,
                                size_t n, bool divide) {
    enum { UNROLL = 4, WIDE = 16 * UNROLL };
    __m512 sa = _mm512_set1_ps(as ? *pa : 0), sb = _mm512_set1_ps(bs ? *pb : 0);
    bool odd_scalar = (as && denormals(sa)) || (bs && denormals(sb));
    size_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        __m512 a[UNROLL], b[UNROLL];
        unsigned odd = odd_scalar;
        for (int k = 0; k < UNROLL; k++) {
            a[k] = as ? sa : _mm512_loadu_ps(pa + i + 16 * k);
            b[k] = bs ? sb : _mm512_loadu_ps(pb + i + 16 * k);
            if (!as) odd |= denormals(a[k]);
            if (!bs) odd |= denormals(b[k]);
        }
        if (__builtin_expect(odd == 0, 1))
            for (int k = 0; k < UNROLL; k++)
                _mm512_storeu_ps(d + i + 16 * k, careful_one(a[k], b[k], false, divide));
        else
            for (int k = 0; k < UNROLL; k++)
                _mm512_storeu_ps(d + i + 16 * k, careful_one(a[k], b[k], true, divide));
    }
    for (; i < n; i += 16) {
        __mmask16 m = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        __m512 a = as ? sa : _mm512_maskz_loadu_ps(m, pa + i);
        __m512 b = bs ? sb : _mm512_mask_loadu_ps(_mm512_set1_ps(1), m, pb + i);
        bool odd = odd_scalar || (!as && denormals(a)) || (!bs && denormals(b));
        _mm512_mask_storeu_ps(d + i, m, careful_one(a, b, odd, divide));
    }
}

#define CAREFUL_FORM(name, as, bs, divide)                                                  \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, size_t n) { \
        careful_loop(dst, pa, as, pb, bs, n, divide);                                       \
    }
#define CAREFUL_FORMS(name, divide)               \
    CAREFUL_FORM(name##_vv, false, false, divide) \
    CAREFUL_FORM(name##_sv, true, false, divide)  \
    CAREFUL_FORM(name##_vs, false, true, divide)
CAREFUL_FORMS(careful_mul_f32, false)
CAREFUL_FORMS(careful_div_f32, true)

#undef CAREFUL_FORM
#undef CAREFUL_FORMS
#undef ALWAYS_INLINE
#endif

#endif
