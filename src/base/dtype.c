/* Facts of dtype.def, promotion, and the 16-bit float formats. */
#include "base/dtype.h"

#include <string.h>

const dtype_info dtype_table[DT_COUNT] = {
#define DTYPE(id, name, kind, bytes, ctype, typestr) [DT_##id] = {name, typestr, #kind[0], bytes},
#include "base/dtype.def"
#undef DTYPE
};

static dtype signed_of_bytes(size_t bytes) {
    return bytes == 1 ? DT_I8 : bytes == 2 ? DT_I16 : bytes == 4 ? DT_I32 : DT_I64;
}

/* The smallest float that holds every value of the integer type (NumPy's table: 8 bits in half,
 * 16 in single, wider in double). */
static dtype float_for_integer(dtype integer) {
    size_t bytes = dtype_bytes(integer);
    return bytes == 1 ? DT_F16 : bytes == 2 ? DT_F32 : DT_F64;
}

dtype dtype_promote(dtype a, dtype b) {
    if (a == b) return a;
    if (a > b) {
        dtype swap = a;
        a = b;
        b = swap;
    }
    if (a == DT_BOOL) return b;
    if (dtype_is_float(b)) {
        if (dtype_is_float(a)) return (a == DT_F16 && b == DT_BF16) ? DT_F32 : b;
        if (b == DT_BF16)
            return dtype_bytes(a) == 1 ? DT_BF16 : dtype_bytes(a) == 2 ? DT_F32 : DT_F64;
        dtype least = float_for_integer(a);
        return least > b ? least : b;
    }
    if (dtype_is_signed(a) == dtype_is_signed(b)) return b; /* same kind: the order is by size */
    size_t s = dtype_bytes(a),
           u = dtype_bytes(b); /* a signed, b unsigned: kinds are in that order */
    if (u < s) return a;
    return u == 8 ? DT_F64 : signed_of_bytes(u * 2);
}

float half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff, out;
    if (magnitude >= 0x7c00) {
        out = sign | 0x7f800000 | (magnitude & 0x3ff) << 13;
    } else if (magnitude >= 0x400) {
        out = sign | ((magnitude << 13) + 0x38000000);
    } else { /* subnormal: exact in single */
        float value = (float)magnitude * 0x1p-24f;
        memcpy(&out, &value, 4);
        out |= sign;
    }
    float value;
    memcpy(&value, &out, 4);
    return value;
}

uint16_t float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00 | (uint16_t)(bits >> 13 & 0x1ff);
    if (bits >= 0x47800000) return sign | 0x7c00;
    if (bits < 0x38800000) { /* subnormal or zero: the addition rounds to nearest even */
        float magnitude;
        memcpy(&magnitude, &bits, 4);
        magnitude += 0.5f;
        memcpy(&bits, &magnitude, 4);
        return sign | (uint16_t)(bits - 0x3f000000);
    }
    bits += 0xc8000fff + (bits >> 13 & 1);
    return sign | (uint16_t)(bits >> 13);
}

float bfloat_to_float(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

uint16_t float_to_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* C's double -> integer conversion is undefined out of range; this is what x86 and NumPy do there. */
static int64_t double_to_int64(double f) {
    return f >= -0x1p63 && f < 0x1p63 ? (int64_t)f : INT64_MIN;
}

static int64_t scalar_integer(scalar s) {
    if (s.kind != 'F') return s.i;
    if (s.f >= 0x1p63 && s.f < 0x1p64) return (int64_t)(uint64_t)s.f;
    return double_to_int64(s.f);
}

static double scalar_double(scalar s) {
    return s.kind == 'F' ? s.f : s.kind == 'U' ? (double)s.u : (double)s.i;
}

void scalar_store(scalar s, dtype dt, void *to) {
    int64_t i;
    float f;
    double d;
    uint16_t h;
    switch (dt) {
    case DT_BOOL: *(uint8_t *)to = s.kind == 'F' ? s.f != 0 : s.i != 0; return;
    case DT_F16:
        h = float_to_half((float)scalar_double(s));
        memcpy(to, &h, 2);
        return;
    case DT_BF16:
        h = float_to_bfloat((float)scalar_double(s));
        memcpy(to, &h, 2);
        return;
    case DT_F32:
        f = (float)scalar_double(s);
        memcpy(to, &f, 4);
        return;
    case DT_F64:
        d = scalar_double(s);
        memcpy(to, &d, 8);
        return;
    default: i = scalar_integer(s); memcpy(to, &i, dtype_bytes(dt)); /* little-endian */
    }
}

scalar scalar_load(dtype dt, const void *from) {
    switch (dt) {
#define LOAD(id, k, member, ctype)               \
    case DT_##id: {                              \
        ctype v;                                 \
        memcpy(&v, from, sizeof v);              \
        return (scalar){.kind = k, .member = v}; \
    }
        LOAD(BOOL, 'B', i, uint8_t)
        LOAD(I8, 'I', i, int8_t)
        LOAD(I16, 'I', i, int16_t)
        LOAD(I32, 'I', i, int32_t)
        LOAD(I64, 'I', i, int64_t)
        LOAD(U8, 'I', i, uint8_t)
        LOAD(U16, 'I', i, uint16_t)
        LOAD(U32, 'I', i, uint32_t)
        LOAD(F32, 'F', f, float)
        LOAD(F64, 'F', f, double)
#undef LOAD
    case DT_U64: {
        uint64_t v;
        memcpy(&v, from, 8);
        return v > INT64_MAX ? (scalar){.kind = 'U', .u = v}
                             : (scalar){.kind = 'I', .i = (int64_t)v};
    }
    case DT_F16:
    case DT_BF16: {
        uint16_t v;
        memcpy(&v, from, 2);
        return (scalar){.kind = 'F', .f = dt == DT_F16 ? half_to_float(v) : bfloat_to_float(v)};
    }
    default: return (scalar){.kind = 'I', .i = 0};
    }
}
