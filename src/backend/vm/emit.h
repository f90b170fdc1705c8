/* Emission of vm code, inside its files only.
 *
 * place.c      where values live: constants, cells, slots; the arrays that grow
 * emit_ops.c   what computes, and what touches memory or other threads
 * emit.c       control, and the two rounds over the function
 */
#ifndef SIMT_BACKEND_VM_EMIT_H
#define SIMT_BACKEND_VM_EMIT_H

#include "backend/vm/vm.h"

enum { VM_ROUND_COST = 500 }; /* tenths of ns that one of the budget stands for */

typedef struct vm_emitter {
    vm_plan *p;
    vm_code *c;
    bool dry;
    simt_status status;
    uint32_t body_fixes; /* jumps to the end of the function */
    uint64_t cost, weight;
    source_pos pos;          /* of what is emitted, */
    const ir_region *region; /* and where it stands */
    vm_value **made; /* scalars whose vectors are ready here, those of outer regions first */
    uint32_t nmade;
    uint32_t setting; /* counts each `continue` that sets_directly looks at */
    uint32_t zero;    /* a cell of 0 */
    uint32_t temp[4]; /* vectors of f32 for f16 arithmetic */
    uint32_t inst_capacity, entry_capacity, row_capacity;
    size_t constant_capacity;
} vm_emitter;

static inline uint8_t vm_log2_bytes(ir_type t) {
    return (uint8_t)__builtin_ctz((unsigned)ir_type_bytes(t));
}
static inline uint32_t vm_entry_of(vm_emitter *e, const ir_value *v) {
    return vm_value_of(e->p, v)->entry;
}
static inline bool vm_is_vector(vm_emitter *e, const ir_value *v) { return !vm_is_scalar(e->p, v); }
static inline bool vm_is_uniform(vm_emitter *e, const ir_value *v) {
    return vm_value_of(e->p, v)->stride == 0;
}

/* ---- place.c ---- */

vm_inst *vm_add(vm_emitter *e, vm_kind kind);
uint32_t vm_new_cell(vm_emitter *e);
uint32_t vm_new_slot(vm_emitter *e, size_t size);
uint32_t vm_new_constant(vm_emitter *e, uint64_t bits);
int64_t vm_new_rows(vm_emitter *e, const vm_value *v); /* index into vm_code.rows */
/* The entry of a value as a vector. Scalars get theirs here, before the instruction that wants it is
 * added, or, where that stands in a loop, when they are made; the dry round finds out. */
uint32_t vm_vector_of(vm_emitter *e, const ir_value *v);
/* After a scalar is made: its vector, where some loop inside wants one. */
void vm_widen(vm_emitter *e, const ir_value *v);
/* What was made after `before` is not ready any more. */
void vm_forget_vectors(vm_emitter *e, uint32_t before);
/* The entry that holds a scalar's step along an axis; 0: no step. */
uint32_t vm_step_entry(vm_emitter *e, const vm_value *v, int axis);
void vm_place_scalars(vm_emitter *e);
void vm_place_vectors(vm_emitter *e); /* after the dry round */

/* ---- emit_ops.c ---- */

void vm_add_cost(vm_emitter *e, uint64_t per_lane, bool vector); /* thousandths of ns */
/* Any instruction but control. */
void vm_emit_op(vm_emitter *e, const ir_inst *in);
void vm_emit_return(vm_emitter *e, const ir_inst *in); /* of a function */

#endif
