/* The loops of the vm: each runs one operation over the lanes of a gang.
 *
 * In: n values of each operand (or one, for a scalar operand), any alignment; dst may be exactly an
 * operand of the same element size, and must not overlap one otherwise. i1 is a byte, 0 or 1.
 * f16 and bf16 appear only in casts, moves and memory: their arithmetic is compiled as
 * cast to f32, operation, cast back.
 * The kernels_*.c files are compiled once per instruction set; kernels_table.c gathers them. A row
 * that an operation of ops.def lacks is a link error; operations without loops say so there.
 */
#ifndef SIMT_BACKEND_VM_KERNELS_H
#define SIMT_BACKEND_VM_KERNELS_H

#include "base/isa.h"
#include "ir/ir.h"

#include <stddef.h>
#include <stdint.h>

typedef enum vm_type {
    VM_I1,
    VM_I8,
    VM_I16,
    VM_I32,
    VM_I64,
    VM_F32,
    VM_F64,
    VM_F16,
    VM_BF16,
    VM_TYPES
} vm_type;
enum { VM_ARITH_TYPES = VM_F16 };

typedef void (*vm_kernel)(void *dst, const void *a, const void *b, const void *c, size_t n);

/* Which operand is a scalar. Binary: VV, SV (a), VS (b); a select counts its last two operands so,
 * and SS; an fma: VV = vvv, SV = vvs (c), VS = vsv (b), SS = vss. NULL: splat the operand first. */
typedef enum vm_form { VM_VV, VM_SV, VM_VS, VM_SS, VM_FORMS } vm_form;

typedef struct vm_row {
    vm_kernel form[VM_ARITH_TYPES]
                  [VM_FORMS]; /* by the type of operand 0 (fma, select: of the result) */
} vm_row;

typedef struct vm_cast_row {
    vm_kernel to[VM_TYPES];
} vm_cast_row;

/* The lanes of a block row by row: steps along its axes, and the first two sizes. */
typedef struct vm_row_walk {
    int64_t x, y, z;
    uint32_t width, height;
} vm_row_walk;

static inline int64_t vm_row_start(const vm_row_walk *w, uint32_t row) {
    return row < w->height ? row * w->y : row % w->height * w->y + row / w->height * w->z;
}

/* Moves are by size: index 0..3 for 1, 2, 4, 8 bytes. mask: a byte per lane, 0 or 1. */
typedef struct vm_moves {
    void (*splat[4])(void *dst, const void *scalar, size_t n);
    void (*iota[4])(void *dst, const void *base, int64_t stride, size_t n); /* base + i * stride */
    void (*blend[4])(void *dst, const void *src, const uint8_t *mask, size_t n);
    void (*blend_scalar[4])(void *dst, const void *scalar, const uint8_t *mask, size_t n);
    /* mask may be NULL: all lanes */
    void (*gather[4])(void *dst, const uint64_t *address, const uint8_t *mask, size_t n);
    void (*scatter[4])(const uint64_t *address, const void *src, const uint8_t *mask, size_t n);
    void (*load_strided[4])(void *dst, const char *base, int64_t stride, const uint8_t *mask,
                            size_t n);
    void (*store_strided[4])(char *base, int64_t stride, const void *src, const uint8_t *mask,
                             size_t n);
    /* all of the first n lanes, row by row */
    void (*load_rows[4])(void *dst, const char *base, const vm_row_walk *w, size_t n);
    /* yes = mask & cond, no = mask & ~cond (mask NULL: all); returns the number of yes */
    size_t (*split)(uint8_t *yes, uint8_t *no, const uint8_t *mask, const uint8_t *cond, size_t n);
    /* copies past the caches; to is 64-byte aligned, bytes a multiple of 64. NULL: not on this machine */
    void (*stream)(void *to, const void *from, size_t bytes);
    void (*mask_or)(uint8_t *dst, const uint8_t *src, size_t n);
} vm_moves;

typedef struct vm_kernels {
    const char *isa;
    const vm_row *row[IR_OP_COUNT];
    const vm_cast_row *cast[IR_OP_COUNT]; /* [op][from].to[to] */
    const vm_moves *moves;
} vm_kernels;

extern const vm_kernels vm_kernels_generic;
#ifdef __x86_64__
extern const vm_kernels vm_kernels_avx2, vm_kernels_avx512;
#endif

#define VM_LOOP _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++)

/* A kernel over n lanes: D the type of dst, A and B of the operands; e uses x and y. */
#define VM_KERNEL(name, D, ...)                                                             \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, size_t n) { \
        D *d = dst;                                                                         \
        __VA_ARGS__                                                                         \
    }
#define VM_UNARY(name, D, A, e)             \
    VM_KERNEL(                              \
        name, D, const A *a = pa; VM_LOOP { \
            A x = a[i];                     \
            d[i] = (D)(e);                  \
        })
#define VM_BINARY(name, D, A, B, e)                                    \
    VM_KERNEL(                                                         \
        name##_vv, D, const A *a = pa; const B *b = pb; VM_LOOP {      \
            A x = a[i];                                                \
            B y = b[i];                                                \
            d[i] = (D)(e);                                             \
        })                                                             \
    VM_KERNEL(                                                         \
        name##_sv, D, A x = *(const A *)pa; const B *b = pb; VM_LOOP { \
            B y = b[i];                                                \
            d[i] = (D)(e);                                             \
        })                                                             \
    VM_KERNEL(                                                         \
        name##_vs, D, const A *a = pa; B y = *(const B *)pb; VM_LOOP { \
            A x = a[i];                                                \
            d[i] = (D)(e);                                             \
        })
#define VM_ROW(id)                             \
    extern const vm_row SIMT_ISA(vm_row_##id); \
    const vm_row SIMT_ISA(vm_row_##id)
#define VM_FORMS2(name) \
    { name##_vv, name##_sv, name##_vs }

#endif
