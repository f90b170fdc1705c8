/* Atomic operations: lanes act one after the other in ascending order; on global memory with the
 * machine's atomics, on shared and local memory plainly (a block never runs in parallel with itself). */
#include "backend/vm/vm.h"
#include "devlib/bits.h"

#include <math.h>
#include <string.h>

typedef struct lane_access {
    const vm_atomic *x;
    void **entry;
    unsigned size;
} lane_access;

static void *address_of(const lane_access *l, size_t i) {
    const uint64_t *a = l->entry[l->x->address];
    return (void *)(l->x->gather ? a[i] : *a + (uint64_t)(l->x->stride * (int64_t)i));
}

#define VALUES(T)                                                                      \
    T *address = address_of(&l, i);                                                    \
    const T *pb = l.entry[x->b], *pc = l.entry[x->c];                                  \
    T b = pb[x->b_scalar ? 0 : i], c = l.x->c != 0 ? pc[x->c_scalar ? 0 : i] : 0, old; \
    (void)c;

/* old = *address; *address = e(old, b), as one step */
#define UPDATE(T, e)                                                                     \
    do {                                                                                 \
        __atomic_load(address, &old, __ATOMIC_RELAXED);                                  \
        for (;;) {                                                                       \
            T next = (T)(e);                                                             \
            if (x->shared) {                                                             \
                *address = next;                                                         \
                break;                                                                   \
            }                                                                            \
            if (__atomic_compare_exchange(address, &old, &next, false, __ATOMIC_SEQ_CST, \
                                          __ATOMIC_SEQ_CST))                             \
                break;                                                                   \
        }                                                                                \
    } while (0)

#define INTEGER(T, S)                                                                            \
    static T step_##T(const lane_access l, const vm_atomic *x, size_t i) {                       \
        VALUES(T)                                                                                \
        switch (x->op) {                                                                         \
        case IR_ATOMIC_ADD:                                                                      \
            if (!x->shared) return __atomic_fetch_add(address, b, __ATOMIC_SEQ_CST);             \
            UPDATE(T, old + b);                                                                  \
            return old;                                                                          \
        case IR_ATOMIC_AND: UPDATE(T, old &b); return old;                                       \
        case IR_ATOMIC_OR: UPDATE(T, old | b); return old;                                       \
        case IR_ATOMIC_XOR: UPDATE(T, old ^ b); return old;                                      \
        case IR_ATOMIC_MIN_S: UPDATE(T, (S)old < (S)b ? old : b); return old;                    \
        case IR_ATOMIC_MAX_S: UPDATE(T, (S)old > (S)b ? old : b); return old;                    \
        case IR_ATOMIC_MIN_U: UPDATE(T, old < b ? old : b); return old;                          \
        case IR_ATOMIC_MAX_U: UPDATE(T, old > b ? old : b); return old;                          \
        case IR_ATOMIC_INC: UPDATE(T, old >= b ? 0 : old + 1); return old;                       \
        case IR_ATOMIC_DEC: UPDATE(T, old == 0 || old > b ? b : old - 1); return old;            \
        case IR_ATOMIC_EXCH: __atomic_exchange(address, &b, &old, __ATOMIC_SEQ_CST); return old; \
        default: /* CAS */                                                                       \
            old = b;                                                                             \
            __atomic_compare_exchange(address, &old, &c, false, __ATOMIC_SEQ_CST,                \
                                      __ATOMIC_SEQ_CST);                                         \
            return old;                                                                          \
        }                                                                                        \
    }
INTEGER(uint8_t, int8_t)
INTEGER(uint16_t, int16_t)
INTEGER(uint32_t, int32_t)
INTEGER(uint64_t, int64_t)

/* The number of a pair, with -0 < +0 (as fmin.num, fmax.num). */
static double least_of(double x, double y) {
    if (x != x || y != y) return x != x ? y : x;
    return x < y || (x == y && signbit(x)) ? x : y;
}
static double most_of(double x, double y) {
    if (x != x || y != y) return x != x ? y : x;
    return x > y || (x == y && !signbit(x)) ? x : y;
}

/* One step on bits of type T, computed as floats of type F by `get` and `put`. */
#define FLOATING(name, T, F, get, put)                                                           \
    static T step_##name(const lane_access l, const vm_atomic *x, size_t i) {                    \
        VALUES(T)                                                                                \
        switch (x->op) {                                                                         \
        case IR_ATOMIC_FADD: UPDATE(T, put((F)(get(old) + get(b)))); return old;                 \
        case IR_ATOMIC_FMIN: UPDATE(T, put((F)least_of(get(old), get(b)))); return old;          \
        case IR_ATOMIC_FMAX: UPDATE(T, put((F)most_of(get(old), get(b)))); return old;           \
        case IR_ATOMIC_FMIN_ORD: UPDATE(T, get(b) < get(old) ? b : old); return old;             \
        case IR_ATOMIC_FMAX_ORD: UPDATE(T, get(b) > get(old) ? b : old); return old;             \
        default: break;                                                                          \
        }                                                                                        \
        if (x->op == IR_ATOMIC_EXCH) {                                                           \
            __atomic_exchange(address, &b, &old, __ATOMIC_SEQ_CST);                              \
            return old;                                                                          \
        }                                                                                        \
        old = b;                                                                                 \
        __atomic_compare_exchange(address, &old, &c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return old;                                                                              \
    }
FLOATING(f32, uint32_t, float, dev_f32_bits, dev_bits_f32)
FLOATING(f64, uint64_t, double, dev_f64_bits, dev_bits_f64)
FLOATING(f16, uint16_t, float, half_to_float, float_to_half)
FLOATING(bf16, uint16_t, float, bfloat_to_float, float_to_bfloat)

/* ---- frequent sums, without the step's choices ---- */

#define SHARED_SUM(name, T, keep)                                                       \
    static void name(const vm_atomic *x, void **entry, const uint8_t *mask, size_t n) { \
        const uint64_t *address = entry[x->address];                                    \
        const T *b = entry[x->b];                                                       \
        T *d = entry[x->dst];                                                           \
        size_t step = x->b_scalar ? 0 : 1;                                              \
        uint64_t stride = (uint64_t)x->stride;                                          \
        bool gather = x->gather;                                                        \
        for (size_t i = 0; i < n; i++) {                                                \
            if (mask != NULL && mask[i] == 0) continue;                                 \
            T *to = (T *)(gather ? address[i] : *address + stride * i);                 \
            T old = *to;                                                                \
            *to = old + b[i * step];                                                    \
            if (keep) d[i] = old;                                                       \
        }                                                                               \
    }
/* Each, and the same where nobody asks for the old values. */
#define SHARED_SUMS(name, T)  \
    SHARED_SUM(name, T, true) \
    SHARED_SUM(name##_only, T, false)
SHARED_SUMS(shared_sum_u32, uint32_t)
SHARED_SUMS(shared_sum_u64, uint64_t)
SHARED_SUMS(shared_sum_f32, float)
SHARED_SUMS(shared_sum_f64, double)

/* All lanes add to one place: one addition of their sum, from which each lane's old value follows. */
#define ONE_PLACE_SUM(name, T)                                                          \
    static void name(const vm_atomic *x, void **entry, const uint8_t *mask, size_t n) { \
        T *to = *(T **)entry[x->address], *d = entry[x->dst], sum = 0;                  \
        const T *b = entry[x->b];                                                       \
        size_t step = x->b_scalar ? 0 : 1;                                              \
        for (size_t i = 0; i < n; i++)                                                  \
            if (mask == NULL || mask[i] != 0) sum += b[i * step];                       \
        T old = __atomic_fetch_add(to, sum, __ATOMIC_SEQ_CST);                          \
        for (size_t i = 0; i < n && !x->unused; i++) {                                  \
            T by = b[i * step];                                                         \
            if (mask != NULL && mask[i] == 0) continue;                                 \
            d[i] = old;                                                                 \
            old += by;                                                                  \
        }                                                                               \
    }
ONE_PLACE_SUM(one_place_sum_u32, uint32_t)
ONE_PLACE_SUM(one_place_sum_u64, uint64_t)

vm_atomic_run vm_atomic_shortcut(const vm_atomic *x) {
    if (x->one) return NULL;
    bool one_place = !x->gather && x->stride == 0 && !x->shared;
    if (x->op == IR_ATOMIC_ADD && one_place)
        return x->type == VM_I32 ? one_place_sum_u32 : x->type == VM_I64 ? one_place_sum_u64 : NULL;
    if (!x->shared) return NULL;
#define CHOICE(name) (x->unused ? name##_only : name)
    if (x->op == IR_ATOMIC_ADD && x->type == VM_I32) return CHOICE(shared_sum_u32);
    if (x->op == IR_ATOMIC_ADD && x->type == VM_I64) return CHOICE(shared_sum_u64);
    if (x->op == IR_ATOMIC_FADD && x->type == VM_F32) return CHOICE(shared_sum_f32);
    if (x->op == IR_ATOMIC_FADD && x->type == VM_F64) return CHOICE(shared_sum_f64);
#undef CHOICE
    return NULL;
}

#define LANES(T, step)                                              \
    do {                                                            \
        T *d = entry[x->dst];                                       \
        for (size_t i = 0; i < n; i++)                              \
            if (mask == NULL || mask[i] != 0) d[i] = step(l, x, i); \
    } while (0)

void vm_atomic_exec(const vm_atomic *x, void **entry, const uint8_t *mask, size_t n) {
    lane_access l = {.x = x, .entry = entry};
    if (x->shortcut != NULL) {
        x->shortcut(x, entry, mask, n);
        return;
    }
    switch (x->type) {
    case VM_I8:
    case VM_I1: LANES(uint8_t, step_uint8_t); break;
    case VM_I16: LANES(uint16_t, step_uint16_t); break;
    case VM_I32: LANES(uint32_t, step_uint32_t); break;
    case VM_I64: LANES(uint64_t, step_uint64_t); break;
    case VM_F32: LANES(uint32_t, step_f32); break;
    case VM_F64: LANES(uint64_t, step_f64); break;
    case VM_F16: LANES(uint16_t, step_f16); break;
    default: LANES(uint16_t, step_bf16); break;
    }
}
