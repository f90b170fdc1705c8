/* The table of one instruction set: a row for every operation of ops.def (see kernels.h). */
#include "backend/vm/kernels.h"
#include "devlib/vector.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

/* Device functions: src/devlib's loops where it has them. */
#define dev_isa_generic DEV_ISA_GENERIC
#define dev_isa_avx2    DEV_ISA_AVX2
#define dev_isa_avx512  DEV_ISA_AVX512
#define DEV_TABLE       dev_table_get(SIMT_ISA(dev_isa))
#define DEV_1(ID, name, T)                                                                 \
    static void ID##_##T(void *d, const void *a, const void *b, const void *c, size_t n) { \
        DEV_TABLE->name##_##T(d, a, n);                                                    \
    }
#define DEV_2(ID, name, T)                                                                 \
    static void ID##_##T(void *d, const void *a, const void *b, const void *c, size_t n) { \
        DEV_TABLE->name##_##T(d, a, b, n);                                                 \
    }
#define X(name, ID, arity, f32_ulp, f64_ulp)              \
    DEV_##arity(ID, name, f32) DEV_##arity(ID, name, f64) \
        VM_ROW(ID) = {{[VM_F32] = {ID##_f32}, [VM_F64] = {ID##_f64}}};
#include "devlib/math.def"
#undef X
static void PHILOX_vv(void *d, const void *a, const void *b, const void *c, size_t n) {
    DEV_TABLE->philox_u32_seeds(d, a, b, n);
}
static void PHILOX_vs(void *d, const void *a, const void *b, const void *c, size_t n) {
    DEV_TABLE->philox_u32(d, a, n, *(const uint64_t *)b);
}
VM_ROW(PHILOX) = {{[VM_I64] = {[VM_VV] = PHILOX_vv, [VM_VS] = PHILOX_vs}}};

/* Operations that compile.c and exec.c handle without a loop of their own here. */
#define NONE(id) VM_ROW(id) = {{{0}}};
/* clang-format off */
NONE(CONST)
NONE(SPECIAL)
NONE(PTRADD)
NONE(ALLOC) NONE(ALLOC_DYNAMIC) NONE(VARIABLE) NONE(CVTA)
NONE(LOAD)
NONE(STORE) NONE(ATOMIC_ADD) NONE(ATOMIC_FADD) NONE(ATOMIC_AND) NONE(ATOMIC_OR) NONE(ATOMIC_XOR)
    NONE(ATOMIC_MIN_S) NONE(ATOMIC_MAX_S) NONE(ATOMIC_MIN_U) NONE(ATOMIC_MAX_U) NONE(ATOMIC_FMIN)
        NONE(ATOMIC_FMAX) NONE(ATOMIC_FMIN_ORD) NONE(ATOMIC_FMAX_ORD)
 NONE(ATOMIC_INC) NONE(ATOMIC_DEC) NONE(ATOMIC_EXCH) NONE(ATOMIC_CAS) NONE(BARRIER) NONE(BARRIER_COUNT) NONE(BARRIER_AND) NONE(BARRIER_OR) NONE(GRID_SYNC)
NONE(ACTIVEMASK) NONE(SYNCWARP) NONE(SHFL_IDX) NONE(SHFL_UP) NONE(SHFL_DOWN) NONE(SHFL_BFLY) NONE(VOTE_ALL) NONE(VOTE_ANY)
NONE(VOTE_EQ) NONE(BALLOT) NONE(MATCH_ANY) NONE(MATCH_ALL) NONE(FENCE) NONE(FAULT)
            NONE(BLOCK) NONE(LOOP) NONE(IF) NONE(BR) NONE(CONTINUE) NONE(RETURN) NONE(EXIT) NONE(CALL) NONE(TRUNC)
                NONE(SEXT) NONE(ZEXT) NONE(SITOFP) NONE(UITOFP) NONE(FPTOSI) NONE(FPTOUI)
                    NONE(CVT_NUMPY_S) NONE(CVT_NUMPY_U) NONE(FPEXT) NONE(FPTRUNC) NONE(BITCAST)
/* clang-format on */

#define OP(id, ...) extern const vm_row SIMT_ISA(vm_row_##id);
#include "ir/ops.def"
#undef OP
#define CASTS(M) \
    M(TRUNC)     \
    M(SEXT)      \
    M(ZEXT)      \
    M(SITOFP) M(UITOFP) M(FPTOSI) M(FPTOUI) M(CVT_NUMPY_S) M(CVT_NUMPY_U) M(FPEXT) M(FPTRUNC)
#define CAST_EXTERN(id) extern const vm_cast_row SIMT_ISA(vm_cast_##id)[VM_TYPES];
                                                        CASTS(CAST_EXTERN) extern const vm_moves
    SIMT_ISA(vm_moves);

const vm_kernels SIMT_ISA(vm_kernels) = {
    .isa = STRING(SIMT_ISA_NAME),
    .row =
        {
#define OP(id, ...) [IR_##id] = &SIMT_ISA(vm_row_##id),
#include "ir/ops.def"
#undef OP
        },
    .cast =
        {
#define CAST_ROW(id) [IR_##id] = SIMT_ISA(vm_cast_##id),
            CASTS(CAST_ROW)},
    .moves = &SIMT_ISA(vm_moves),
};
