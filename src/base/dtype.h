/* Element types and NumPy's promotion (NEP 50). */
#ifndef SIMT_BASE_DTYPE_H
#define SIMT_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
#define DTYPE(id, name, kind, bytes, ctype, typestr) DT_##id,
#include "base/dtype.def"
#undef DTYPE
    DT_COUNT
} dtype;

typedef struct dtype_info {
    const char *name, *typestr;
    char kind; /* 'B', 'I', 'U', 'F' */
    uint8_t bytes;
} dtype_info;
extern const dtype_info dtype_table[DT_COUNT];

static inline size_t dtype_bytes(dtype dt) { return dtype_table[dt].bytes; }
static inline bool dtype_is_float(dtype dt) { return dtype_table[dt].kind == 'F'; }
static inline bool dtype_is_signed(dtype dt) { return dtype_table[dt].kind == 'I'; }
static inline bool dtype_is_unsigned(dtype dt) { return dtype_table[dt].kind == 'U'; }
static inline bool dtype_is_integer(dtype dt) {
    return dtype_is_signed(dt) || dtype_is_unsigned(dt);
}
/* numpy.promote_types; bfloat16 with float16 gives float32, as in PyTorch and ml_dtypes. */
dtype dtype_promote(dtype a, dtype b);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value); /* round to nearest even */
float bfloat_to_float(uint16_t bits);
uint16_t float_to_bfloat(float value);

/* A Python or C scalar on its way to an array: kind 'B', 'I' (i), 'U' (u, above INT64_MAX), 'F' (f). */
typedef struct scalar {
    char kind;
    union {
        int64_t i;
        uint64_t u;
        double f;
    };
} scalar;
/* Stores s as dt (C conversion; NumPy's wrap-around for integers) at `to`, dtype_bytes(dt) bytes. */
void scalar_store(scalar s, dtype dt, void *to);
scalar scalar_load(dtype dt, const void *from);

#endif
