/* IR to vm_inst.
 *
 * Runs twice over the function: the first time to learn which scalars are also needed as vectors, then,
 * when slots are assigned, for good. Lane sets: every construct has two by its depth, the lanes that
 * left it (exit), and the else part of an if or the lanes that continue a loop. A terminator that is
 * not simply the end of its region puts the current lanes into a set and jumps to its region's end,
 * where the construct takes up other lanes; with none left, it goes to the end of the region around.
 */
#include "backend/vm/vm.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COMPARES = 16 }; /* in one condition; as exec.c has it */
enum { ROUND_COST = 500 };   /* tenths of ns that one of the budget stands for */

typedef struct emitter {
    vm_plan *p;
    vm_code *c;
    bool dry;
    simt_status status;
    uint32_t body_fixes; /* jumps to the end of the function */
    uint64_t cost, weight;
    uint32_t zero;    /* a cell of 0 */
    uint32_t temp[4]; /* vectors of f32 for f16 arithmetic */
    uint32_t line;    /* of the instruction at hand */
    uint32_t inst_capacity, entry_capacity;
    size_t constant_capacity;
} emitter;

vm_type vm_type_of(ir_type t) {
    switch (t) {
    case IR_I1: return VM_I1;
    case IR_I8: return VM_I8;
    case IR_I16: return VM_I16;
    case IR_I32: return VM_I32;
    case IR_F16: return VM_F16;
    case IR_BF16: return VM_BF16;
    case IR_F32: return VM_F32;
    case IR_F64: return VM_F64;
    default: return VM_I64; /* i64 and pointers */
    }
}

static uint8_t log2_bytes(ir_type t) { return (uint8_t)__builtin_ctz((unsigned)ir_type_bytes(t)); }

/* ---- growing arrays; out of memory is remembered and reported at the end ---- */

static void *grow(emitter *e, void *old, size_t used, size_t *capacity, size_t item) {
    size_t n = *capacity * 2 + 64;
    void *new = arena_alloc(e->p->mem, n * item);
    if (new == NULL) {
        e->status = status_fail(SIMT_ERR_MEMORY, "no memory to compile kernel %s", e->p->f->name);
        return old;
    }
    if (used > 0) memcpy(new, old, used * item);
    *capacity = n;
    return new;
}

static vm_inst *add(emitter *e, vm_kind kind) {
    vm_code *c = e->c;
    if (c->ninsts == e->inst_capacity) {
        size_t capacity = e->inst_capacity;
        c->insts = grow(e, c->insts, c->ninsts, &capacity, sizeof(vm_inst));
        e->inst_capacity = (uint32_t)capacity;
        if (e->status != SIMT_OK) c->ninsts = 0;
    }
    vm_inst *in = &c->insts[c->ninsts++];
    *in = (vm_inst){.kind = kind, .line = e->line};
    return in;
}

static uint32_t new_entry(emitter *e, vm_place place, size_t offset) {
    vm_code *c = e->c;
    if (c->nentries == e->entry_capacity) {
        size_t capacity = e->entry_capacity;
        c->entries = grow(e, c->entries, c->nentries, &capacity, sizeof(vm_entry));
        e->entry_capacity = (uint32_t)capacity;
        if (e->status != SIMT_OK) c->nentries = 0;
    }
    c->entries[c->nentries] = (vm_entry){.place = place, .offset = (uint32_t)offset};
    return c->nentries++;
}

static uint32_t new_cell(emitter *e) {
    e->c->cell_bytes += 8;
    return new_entry(e, VM_AT_CELL, e->c->cell_bytes - 8);
}

static uint32_t new_slot(emitter *e, size_t size) {
    size_t bytes = (size * e->c->lanes + 63) & ~(size_t)63;
    e->c->slot_bytes += bytes;
    return new_entry(e, VM_AT_SLOT, e->c->slot_bytes - bytes);
}

/* Room in the constants, 64-byte aligned for vectors; the offset. */
static size_t new_constant(emitter *e, size_t bytes) {
    vm_code *c = e->c;
    size_t at = bytes > 8 ? (c->constant_bytes + 63) & ~(size_t)63 : c->constant_bytes;
    size_t end = at + ((bytes + 7) & ~(size_t)7);
    while (end > e->constant_capacity && e->status == SIMT_OK) {
        size_t capacity = e->constant_capacity + bytes;
        c->constants = grow(e, c->constants, c->constant_bytes, &capacity, 1);
        e->constant_capacity = capacity;
    }
    if (e->status != SIMT_OK) return 0;
    c->constant_bytes = end;
    return at;
}

static uint32_t constant_cell(emitter *e, uint64_t bits) {
    size_t at = new_constant(e, 8);
    if (e->status == SIMT_OK) memcpy(e->c->constants + at, &bits, 8);
    return new_entry(e, VM_AT_CONST, at);
}

/* lanes values: base + what v grows by */
static uint32_t constant_vector(emitter *e, unsigned size, uint64_t base, const vm_value *v) {
    size_t at = new_constant(e, (size_t)size * e->c->lanes);
    if (e->status != SIMT_OK) return 0;
    for (uint32_t i = 0; i < e->c->lanes; i++) {
        uint32_t width = e->p->block[0], row = i / width, height = e->p->block[1];
        uint64_t x = base;
        if (v->stride == VM_VARYING) /* laneid */
            x += i % IR_WARP_SIZE;
        else if (v->stride != VM_ROWS)
            x += (uint64_t)v->stride * i;
        else
            x += (uint64_t)(i % width * v->steps.x + row % height * v->steps.y +
                            row / height * v->steps.z);
        memcpy(e->c->constants + at + (size_t)i * size, &x, size);
    }
    return new_entry(e, VM_AT_CONST, at);
}

/* ---- values ---- */

static uint32_t entry_of(emitter *e, const ir_value *v) { return vm_value_of(e->p, v)->entry; }

static uint32_t vector_of(emitter *e, const ir_value *v) {
    vm_value *x = vm_value_of(e->p, v);
    if (x->stride == VM_VARYING) return x->entry;
    x->needs_vector = true;
    return x->vector;
}

static bool is_vector(emitter *e, const ir_value *v) { return !vm_is_scalar(e->p, v); }
static bool is_uniform(emitter *e, const ir_value *v) { return vm_value_of(e->p, v)->stride == 0; }

static int64_t new_rows(emitter *e, const vm_value *v) {
    vm_rows *r = &e->c->rows[e->c->nrows];
    memcpy(r->step, v->step, sizeof r->step);
    return e->c->nrows++;
}

/* After a scalar is made: its vector, where some operation wants one. */
static void widen(emitter *e, const ir_value *v) {
    vm_value *x = vm_value_of(e->p, v);
    if (e->dry || !x->needs_vector || x->stride == VM_VARYING) return;
    if (e->c->entries[x->vector].place == VM_AT_CONST) return;
    vm_inst *in = add(e, x->stride == 0 ? VM_SPLAT : x->stride == VM_ROWS ? VM_IOTA_ROWS : VM_IOTA);
    in->dst = x->vector;
    in->a = x->entry;
    in->imm = x->stride == VM_ROWS ? new_rows(e, x) : x->stride;
    in->size = log2_bytes(v->type);
}

/* The entry that holds a scalar's step along an axis; 0: no step. */
static uint32_t step_entry(emitter *e, const vm_value *v, int axis) {
    const uint32_t *n = e->p->block;
    if (v->stride == VM_ROWS) return v->step[axis];
    if (v->stride == 0 || n[axis] == 1) return 0;
    int64_t lanes = axis == 0 ? 1 : axis == 1 ? n[0] : (int64_t)n[0] * n[1];
    return constant_cell(e, (uint64_t)(v->stride * lanes));
}

/* Entries of values that exist before the code runs, and cells of scalars. */
static void place_special(emitter *e, vm_value *v, uint64_t which) {
    uint32_t d = (uint32_t)(which % 3);
    if (which == IR_LANEID)
        v->entry = e->c->lanes == 1          ? new_entry(e, VM_AT_TID, 3)
                   : v->stride == VM_VARYING ? constant_vector(e, 4, 0, v)
                                             : constant_cell(e, 0);
    else if (which >= IR_NTID_X && which <= IR_NTID_Z)
        v->entry = constant_cell(e, e->p->block[d]);
    else if (which > IR_TID_Z)
        v->entry = new_entry(e, VM_AT_SPECIAL, which);
    else if (e->c->lanes == 1)
        v->entry = new_entry(e, VM_AT_TID, d);
    else
        v->entry = constant_cell(e, 0);
}

static void place_alloc(emitter *e, vm_value *v, const ir_inst *in) {
    bool local = in->results[0].type == IR_PTR_LOCAL;
    size_t *bytes = local ? &e->c->local_bytes : &e->c->shared_bytes;
    v->entry = new_cell(e);
    /* 0 bytes of shared memory: where the launch's dynamic shared memory starts (set at the end) */
    uint32_t offset = !local && in->imm == 0 ? UINT32_MAX : (uint32_t)*bytes;
    e->c->addresses[e->c->naddresses++] =
        (vm_address){.entry = v->entry, .local = local, .offset = offset};
    *bytes += ((size_t)in->imm + 15) & ~(size_t)15;
}

static bool fixed_vector(const vm_value *v) {
    const ir_inst *in = v->value->inst;
    if (in == NULL) return false;
    return in->op == IR_CONST ||
           (in->op == IR_SPECIAL && (in->imm <= IR_TID_Z || in->imm == IR_LANEID ||
                                     (in->imm >= IR_NTID_X && in->imm <= IR_NTID_Z)));
}

/* Entries of the steps of values by rows: constants, or cells that emit_steps computes. */
static void place_steps(emitter *e, vm_value *v) {
    const ir_inst *in = v->value->inst;
    int64_t known[3] = {v->steps.x, v->steps.y, v->steps.z};
    if (v->stride != VM_ROWS) return;
    const vm_value *a = in != NULL && in->nargs > 0 ? vm_value_of(e->p, in->args[0]) : NULL;
    const vm_value *b = in != NULL && in->nargs > 1 ? vm_value_of(e->p, in->args[1]) : NULL;
    for (int d = 0; d < 3; d++) {
        if (v->fixed_steps) {
            v->step[d] = known[d] != 0 ? constant_cell(e, (uint64_t)known[d]) : 0;
            continue;
        }
        if (in == NULL) continue; /* values passed between regions have fixed steps or none */
        uint32_t sa = step_entry(e, a, d), sb = step_entry(e, b, d);
        bool alone = in->op != IR_MUL && sb == 0;
        if (in->op == IR_ADD || in->op == IR_PTRADD) alone |= sa == 0;
        v->step[d] = alone ? (sb == 0 ? sa : sb) : sa == 0 && sb == 0 ? 0 : new_cell(e);
    }
}

static void place_scalars(emitter *e) {
    const ir_region *body = &e->p->f->body;
    e->c->addresses = ARENA_ARRAY(e->p->mem, vm_address, e->p->nnodes + 1);
    if (e->c->addresses == NULL) {
        e->status = status_fail(SIMT_ERR_MEMORY, "no memory to compile kernel %s", e->p->f->name);
        return;
    }
    for (uint32_t i = 0; i < e->p->nvalues; i++) {
        vm_value *v = &e->p->values[i];
        const ir_inst *in = v->value != NULL ? v->value->inst : NULL;
        if (v->value == NULL) continue;
        if (in == NULL && v->value->region == body)
            v->entry = new_entry(e, VM_AT_PARAM, v->value->index);
        else if (in != NULL && in->op == IR_CONST)
            v->entry = constant_cell(e, in->imm);
        else if (in != NULL && in->op == IR_SPECIAL)
            place_special(e, v, in->imm);
        else if (in != NULL && in->op == IR_ALLOC)
            place_alloc(e, v, in);
        else if (in != NULL && in->op == IR_BITCAST)
            continue; /* its operand's entry */
        else if (v->stride != VM_VARYING)
            v->entry = new_cell(e);
    }
    for (uint32_t i = 0; i < e->p->nvalues; i++)
        if (e->p->values[i].value != NULL) place_steps(e, &e->p->values[i]);
}

/* The value whose storage a bitcast shares. */
static vm_value *bitcast_root(emitter *e, vm_value *v) {
    while (v->value->inst != NULL && v->value->inst->op == IR_BITCAST)
        v = vm_value_of(e->p, v->value->inst->args[0]);
    return v;
}

/* ---- slots: one pass over lifetimes, a free list per size ---- */

typedef struct slot_want {
    uint32_t start, end;
    uint32_t *entry;
    uint8_t size;
} slot_want;

static int by_start(const void *a, const void *b) {
    uint32_t x = ((const slot_want *)a)->start, y = ((const slot_want *)b)->start;
    return x < y ? -1 : x > y;
}

static void want_slot(emitter *e, slot_want *w, uint32_t *n, vm_value *v, uint32_t *entry) {
    const ir_inst *in = v->value->inst;
    bool construct = in == NULL || ir_op_table[in->op].control;
    w[(*n)++] = (slot_want){.start = 2 * v->first - (construct && v->first > 0),
                            .end = 2 * v->last,
                            .entry = entry,
                            .size = log2_bytes(v->value->type)};
    (void)e;
}

static void assign_slots(emitter *e) {
    vm_plan *p = e->p;
    slot_want *w = ARENA_ARRAY(p->mem, slot_want, 2 * p->nvalues + 1);
    if (w == NULL) {
        e->status = status_fail(SIMT_ERR_MEMORY, "no memory to compile kernel %s", p->f->name);
        return;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->nvalues; i++) {
        vm_value *v = &p->values[i];
        const ir_inst *in = v->value != NULL ? v->value->inst : NULL;
        if (v->value == NULL || (in != NULL && in->op == IR_BITCAST && v->stride == VM_VARYING))
            continue;
        if (v->stride == VM_VARYING && v->same == NULL && !(in != NULL && in->op == IR_SPECIAL))
            want_slot(e, w, &n, v, &v->entry);
        else if (v->stride != VM_VARYING && v->needs_vector && !fixed_vector(v))
            want_slot(e, w, &n, v, &v->vector);
        else if (v->stride != VM_VARYING && v->needs_vector)
            v->vector = constant_vector(e, (unsigned)ir_type_bytes(v->value->type),
                                        in->op == IR_CONST ? in->imm
                                        : in->imm >= IR_NTID_X && in->imm != IR_LANEID
                                            ? p->block[in->imm % 3]
                                            : 0,
                                        v);
    }
    qsort(w, n, sizeof *w, by_start);
    for (uint32_t i = 0; i < n && e->status == SIMT_OK; i++) {
        uint32_t k =
            0; /* an earlier one of this size that has ended and was not taken over (end = MAX) */
        while (k < i && !(w[k].size == w[i].size && w[k].end <= w[i].start)) k++;
        size_t offset = k < i ? e->c->entries[*w[k].entry].offset : 0;
        if (k < i) w[k].end = UINT32_MAX;
        *w[i].entry =
            k < i ? new_entry(e, VM_AT_SLOT, offset) : new_slot(e, (size_t)1 << w[i].size);
    }
    for (uint32_t i = 0; i < p->nvalues; i++)
        if (p->values[i].same != NULL)
            p->values[i].entry = vm_value_of(p, p->values[i].same)->entry;
}

static void assign_bitcasts(emitter *e) {
    for (uint32_t i = 0; i < e->p->nvalues; i++) {
        vm_value *v = &e->p->values[i];
        if (v->value == NULL || v->value->inst == NULL || v->value->inst->op != IR_BITCAST)
            continue;
        const vm_value *root = bitcast_root(e, v);
        v->entry =
            v->stride == VM_VARYING && root->stride != VM_VARYING ? root->vector : root->entry;
    }
}

/* ---- elementwise operations ---- */

static void add_cost(emitter *e, uint64_t per_lane_tenths, bool vector) {
    e->cost +=
        e->weight * (vector ? 40 + per_lane_tenths * e->c->lanes / 10 : 20); /* tenths of ns */
}

static vm_inst *add_kernel(emitter *e, bool scalar_op, vm_kernel k, uint32_t dst, uint32_t a,
                           uint32_t b, uint32_t c) {
    if (k == NULL && e->status == SIMT_OK)
        e->status = status_fail(SIMT_ERR_UNSUPPORTED,
                                "kernel %s: an operation has no code in the vm for its type",
                                e->p->f->name);
    vm_inst *in = add(e, scalar_op ? VM_SCALAR : VM_VECTOR);
    in->kernel = k;
    in->dst = dst, in->a = a, in->b = b, in->c = c;
    add_cost(e, 1, !scalar_op);
    return in;
}

/* Frequent scalar operations get a kind of their own. */
static bool add_short(emitter *e, const ir_inst *in, uint32_t dst) {
    vm_kind kind;
    unsigned bytes = (unsigned)ir_type_bytes(in->results[0].type);
    if (in->op == IR_PTRADD)
        kind = VM_ADD_64;
    else if (in->op == IR_ADD && bytes >= 4)
        kind = bytes == 8 ? VM_ADD_64 : VM_ADD_32;
    else if (in->op == IR_MUL && bytes >= 4)
        kind = bytes == 8 ? VM_MUL_64 : VM_MUL_32;
    else if (in->op == IR_SUB && bytes == 8)
        kind = VM_SUB_64;
    else if (in->op == IR_SEXT && bytes == 8 && in->args[0]->type == IR_I32)
        kind = VM_SEXT_32_64;
    else if (in->op == IR_ZEXT && bytes == 8 && in->args[0]->type == IR_I32)
        kind = VM_ZEXT_32_64;
    else
        return false;
    vm_inst *x = add(e, kind);
    x->dst = dst;
    x->a = entry_of(e, in->args[0]);
    x->b = in->nargs > 1 ? entry_of(e, in->args[1]) : 0;
    add_cost(e, 0, false);
    return true;
}

typedef struct operand {
    uint32_t entry;
    bool one; /* a scalar */
} operand;

/* Operand as the kernel takes it; linear values become vectors unless all is scalar. */
static operand operand_of(emitter *e, const ir_value *v, bool scalar_op) {
    bool one = scalar_op || is_uniform(e, v);
    return (operand){.entry = one ? entry_of(e, v) : vector_of(e, v), .one = one};
}

static operand as_f32(emitter *e, operand x, vm_type half, unsigned k) {
    uint32_t to;
    if (x.one)
        to = new_cell(e);
    else if (e->temp[k] != 0)
        to = e->temp[k];
    else
        to = e->temp[k] = new_slot(e, 4);
    add_kernel(e, x.one, e->c->kernels->cast[IR_FPEXT][half].to[VM_F32], to, x.entry, 0, 0);
    return (operand){.entry = to, .one = x.one};
}

static void splat_operand(emitter *e, const ir_value *v, operand *x, vm_type half, unsigned k) {
    if (!x->one) return;
    *x = (operand){.entry = vector_of(e, v), .one = false};
    if (half != VM_TYPES) *x = as_f32(e, *x, half, k);
}

static vm_form form_of(const ir_inst *in, const operand *x) {
    if (in->op == IR_FMA)
        return x[1].one && x[2].one ? VM_SS : x[1].one ? VM_VS : x[2].one ? VM_SV : VM_VV;
    if (in->op == IR_SELECT)
        return x[1].one && x[2].one ? VM_SS : x[1].one ? VM_SV : x[2].one ? VM_VS : VM_VV;
    return x[0].one ? VM_SV : in->nargs > 1 && x[1].one ? VM_VS : VM_VV;
}

static void swap_operands(ir_value **v, operand *x) {
    ir_value *t = v[0];
    operand o = x[0];
    v[0] = v[1], v[1] = t;
    x[0] = x[1], x[1] = o;
}

static void emit_arithmetic(emitter *e, const ir_inst *in, uint32_t dst) {
    bool one = vm_is_scalar(e->p, &in->results[0]);
    if (one && add_short(e, in, dst)) return;
    vm_type type = vm_type_of(in->op == IR_SELECT ? in->results[0].type : in->args[0]->type),
            half = VM_TYPES;
    if (in->op == IR_SELECT && (type == VM_F16 || type == VM_BF16)) type = VM_I16;
    if (type == VM_F16 || type == VM_BF16) half = type, type = VM_F32;
    const vm_row *row = e->c->kernels->row[in->op == IR_PTRADD ? IR_ADD : in->op];
    ir_value *v[3] = {0};
    operand x[3] = {{0}};
    for (unsigned i = 0; i < in->nargs && i < 3; i++) {
        v[i] = in->args[i];
        x[i] = operand_of(e, v[i], one);
        if (half != VM_TYPES && v[i]->type == v[0]->type) x[i] = as_f32(e, x[i], half, i);
    }
    vm_form form = VM_VV;
    if (!one) {
        if (in->op == IR_FMA && x[0].one && !x[1].one) swap_operands(v, x);
        if (in->op == IR_SELECT || in->op == IR_FMA)
            splat_operand(e, v[0], &x[0], in->op == IR_FMA ? half : VM_TYPES, 0);
        else if (in->nargs == 1 || (x[0].one && x[1].one))
            splat_operand(e, v[0], &x[0], half, 0);
        form = form_of(in, x);
        if (row->form[type][form] == NULL) {
            for (unsigned i = 0; i < in->nargs; i++)
                splat_operand(e, v[i], &x[i], v[i]->type == v[0]->type ? half : VM_TYPES, i);
            form = VM_VV;
        }
    }
    bool back = half != VM_TYPES && ir_type_is_float(in->results[0].type);
    uint32_t to = dst;
    if (back && one)
        to = new_cell(e);
    else if (back)
        to = e->temp[3] != 0 ? e->temp[3] : (e->temp[3] = new_slot(e, 4));
    add_kernel(e, one, row->form[type][form], to, x[0].entry, x[1].entry, x[2].entry);
    if (in->op >= IR_EXP && in->op <= IR_PHILOX) add_cost(e, 10, !one);
    if (back) add_kernel(e, one, e->c->kernels->cast[IR_FPTRUNC][VM_F32].to[half], dst, to, 0, 0);
}

static void emit_cast(emitter *e, const ir_inst *in, uint32_t dst) {
    bool one = vm_is_scalar(e->p, &in->results[0]);
    if (one && add_short(e, in, dst)) return;
    vm_type from = vm_type_of(in->args[0]->type), to = vm_type_of(in->results[0].type);
    operand x = {.entry = one ? entry_of(e, in->args[0]) : vector_of(e, in->args[0]), .one = one};
    bool half = from == VM_F16 || from == VM_BF16;
    if (half && in->op != IR_FPEXT && in->op != IR_FPTRUNC) {
        x = as_f32(e, x, from, 0);
        from = VM_F32;
    }
    add_kernel(e, one, e->c->kernels->cast[in->op][from].to[to], dst, x.entry, 0, 0);
}

static void add_step(emitter *e, vm_kind kind, uint32_t dst, uint32_t a, uint32_t b) {
    vm_inst *x = add(e, kind);
    x->dst = dst, x->a = a, x->b = b;
    add_cost(e, 0, false);
}

/* Steps that are known only at run time. */
static void emit_steps(emitter *e, const ir_inst *in) {
    const vm_value *v = vm_value_of(e->p, &in->results[0]);
    if (v->stride != VM_ROWS || v->fixed_steps) return;
    const vm_value *a = vm_value_of(e->p, in->args[0]), *b = vm_value_of(e->p, in->args[1]);
    for (int d = 0; d < 3; d++) {
        uint32_t sa = step_entry(e, a, d), sb = step_entry(e, b, d);
        if (v->step[d] == 0 || e->c->entries[v->step[d]].place == VM_AT_CONST) continue;
        if (v->step[d] == sa || v->step[d] == sb) continue;
        if (in->op == IR_MUL)
            add_step(e, VM_MUL_64, v->step[d], sa != 0 ? sa : sb, sa != 0 ? b->entry : a->entry);
        else if (in->op == IR_SUB)
            add_step(e, VM_SUB_64, v->step[d], sa != 0 ? sa : e->zero, sb);
        else
            add_step(e, VM_ADD_64, v->step[d], sa, sb);
    }
}

static void emit_elementwise(emitter *e, const ir_inst *in) {
    uint32_t dst = entry_of(e, &in->results[0]);
    emit_steps(e, in);
    if (e->c->kernels->cast[in->op] != NULL)
        emit_cast(e, in, dst);
    else
        emit_arithmetic(e, in, dst);
    widen(e, &in->results[0]);
}

/* ---- memory ---- */

static void emit_load(emitter *e, const ir_inst *in) {
    const vm_value *address = vm_value_of(e->p, in->args[0]),
                   *v = vm_value_of(e->p, &in->results[0]);
    vm_kind kind = address->stride == VM_VARYING ? VM_LOAD_GATHER
                   : address->stride == VM_ROWS  ? VM_LOAD_ROWS
                   : address->stride == 0        ? VM_LOAD_SCALAR
                   : v->forward                  ? VM_LOAD_FORWARD
                                                 : VM_LOAD_LINEAR;
    vm_inst *x = add(e, kind);
    x->dst = v->entry;
    x->a = address->entry;
    x->imm = kind == VM_LOAD_ROWS ? new_rows(e, address) : address->stride;
    x->size = log2_bytes(in->results[0].type);
    x->c = IR_MEM_ORDER(in->imm);
    if (kind == VM_LOAD_FORWARD) x->b = v->entry;
    add_cost(e, kind == VM_LOAD_GATHER ? 10 : 1, kind != VM_LOAD_SCALAR);
    widen(e, &in->results[0]);
}

static void emit_store(emitter *e, const ir_inst *in) {
    vm_value *address = vm_value_of(e->p, in->args[0]), *v = vm_value_of(e->p, in->args[1]);
    uint8_t size = log2_bytes(in->args[1]->type);
    bool one =
        address->stride == 0 && v->stride != VM_VARYING && (v->stride == 0 || e->c->lanes == 1);
    if (v->aimed) {
        const ir_inst *from = in->args[1]->inst;
        vm_inst *aim = add(e, VM_STORE_AIM);
        aim->dst = v->entry, aim->a = address->entry, aim->size = size;
        uint32_t operands[3] = {0};
        for (unsigned i = 0; i < from->nargs && i < 3; i++) {
            if (!is_vector(e, from->args[i])) continue;
            operands[i] = vm_value_of(e->p, from->args[i])->entry;
            aim->imm |= (int64_t)log2_bytes(from->args[i]->type) << 8 * i;
        }
        aim->b = operands[0], aim->c = operands[1], aim->target = operands[2];
        emit_elementwise(e, from);
        vm_inst *x = add(e, VM_STORE_AIMED);
        x->dst = v->entry, x->a = address->entry, x->size = size;
        return;
    }
    vm_kind kind = one                             ? VM_STORE_SCALAR
                   : address->stride == VM_VARYING ? VM_STORE_SCATTER
                   : address->stride == VM_ROWS    ? VM_STORE_ROWS
                                                   : VM_STORE_LINEAR;
    uint32_t value = one ? v->entry : vector_of(e, in->args[1]);
    vm_inst *x = add(e, kind);
    x->a = address->entry, x->b = value;
    x->imm = kind == VM_STORE_ROWS ? new_rows(e, address) : address->stride;
    x->size = size;
    x->dst = IR_MEM_ORDER(in->imm);
    x->c = v->forward ? v->entry : 0;
    add_cost(e, kind == VM_STORE_SCATTER ? 10 : 1, kind != VM_STORE_SCALAR);
}

static void emit_atomic(emitter *e, const ir_inst *in) {
    vm_value *address = vm_value_of(e->p, in->args[0]);
    vm_atomic *x = &e->c->atomics[e->c->natomics];
    ir_type space = in->args[0]->type;
    *x = (vm_atomic){.op = in->op,
                     .type = vm_type_of(in->args[1]->type),
                     .dst = entry_of(e, &in->results[0]),
                     .address =
                         address->stride == VM_ROWS ? vector_of(e, in->args[0]) : address->entry,
                     .gather = address->stride == VM_VARYING || address->stride == VM_ROWS,
                     .one = e->c->lanes == 1,
                     .shared = space == IR_PTR_SHARED || space == IR_PTR_LOCAL};
    x->stride = x->gather ? 0 : address->stride;
    operand b = operand_of(e, in->args[1], e->c->lanes == 1);
    x->b = b.entry, x->b_scalar = b.one;
    if (in->nargs > 2) {
        operand c = operand_of(e, in->args[2], e->c->lanes == 1);
        x->c = c.entry, x->c_scalar = c.one;
    }
    add(e, VM_ATOMIC)->imm = e->c->natomics++;
    add_cost(e, 100, true);
}

static void emit_fault(emitter *e, const ir_inst *in) {
    vm_fault *x = &e->c->faults[e->c->nfaults];
    *x = (vm_fault){.number = (uint32_t)in->imm, .line = in->pos.line};
    for (unsigned i = 0; i < in->nargs && i < 4; i++) {
        const vm_value *v = vm_value_of(e->p, in->args[i]);
        x->vector[i] = v->stride == VM_VARYING || v->stride == VM_ROWS;
        x->value[i] = x->vector[i] ? vector_of(e, in->args[i]) : v->entry;
        x->stride[i] = x->vector[i] ? 0 : v->stride;
        x->nvalues = i + 1;
    }
    add(e, VM_FAULT)->imm = e->c->nfaults++;
}

static void emit_barrier(emitter *e, const ir_inst *in) {
    uint32_t predicate = 0;
    bool one = false;
    if (in->nargs > 0) {
        operand x = operand_of(e, in->args[0], e->c->lanes == 1);
        predicate = x.entry, one = x.one;
    }
    vm_inst *x = add(e, VM_BARRIER);
    x->imm = in->op, x->line = in->pos.line;
    x->a = predicate, x->b = one;
    if (in->nresults > 0) {
        x->dst = entry_of(e, &in->results[0]);
        widen(e, &in->results[0]);
    }
}

static void emit_warp(emitter *e, const ir_inst *in) {
    vm_warp *x = &e->c->warps[e->c->nwarps];
    bool shuffles = in->op >= IR_SHFL_IDX && in->op <= IR_SHFL_BFLY, one = e->c->lanes == 1;
    operand o[4] = {{0}};
    for (unsigned i = 0; i < in->nargs; i++) o[i] = operand_of(e, in->args[i], one);
    *x = (vm_warp){.op = in->op, .line = in->pos.line};
    if (in->nresults > 0) x->dst = entry_of(e, &in->results[0]);
    if (in->op == IR_SYNCWARP) {
        x->mask = o[0].entry, x->one_mask = o[0].one;
    } else if (in->nargs > 0) {
        unsigned mask = shuffles ? 2 : 1;
        x->size = log2_bytes(in->args[0]->type);
        x->value = o[0].entry, x->one_value = o[0].one;
        x->mask = o[mask].entry, x->one_mask = o[mask].one;
    }
    if (shuffles) {
        x->lane = o[1].entry, x->one_lane = o[1].one;
        x->width = o[3].entry, x->one_width = o[3].one;
    }
    vm_inst *at = add(e, VM_WARP);
    at->imm = e->c->nwarps++, at->line = in->pos.line;
    add_cost(e, 100, true);
}

/* ---- control ---- */

static uint32_t *fixes_of(emitter *e, const ir_region *r) {
    if (r->owner == NULL) return &e->body_fixes;
    return &vm_node_of(r->owner)->fixes[r == r->owner->regions[1]];
}

/* Makes instruction i jump to the end of region r, when that is known. */
static void jump_to_end(emitter *e, uint32_t i, const ir_region *r) {
    uint32_t *fixes = fixes_of(e, r);
    e->c->insts[i].target = *fixes;
    *fixes = i + 1;
}

static void patch(emitter *e, uint32_t *fixes, uint32_t to) {
    while (*fixes != 0) {
        vm_inst *in = &e->c->insts[*fixes - 1];
        *fixes = in->target;
        in->target = to;
    }
}

static uint16_t exit_set(const vm_node *n) { return (uint16_t)(2 * n->depth); }
static bool converges(const vm_node *n) { return !n->escapes && !n->nested; }

/* Whether a br to this construct puts lanes into its exit set. */
static bool collects(const ir_inst *in) {
    const vm_node *n = vm_node_of(in);
    if (in->op == IR_LOOP) return true;
    return in->op == IR_IF && n->vector_if ? !converges(n) : n->nested;
}

static void emit_copy(emitter *e, const ir_value *to, uint32_t to_entry, const ir_value *from,
                      uint32_t from_entry) {
    bool vector_to = is_vector(e, to);
    if (vector_to && is_vector(e, from) && to_entry == from_entry && !e->dry) return;
    vm_inst *in;
    if (!vector_to)
        in = add(e, log2_bytes(to->type) == 2 ? VM_COPY_32 : VM_COPY_SCALAR);
    else if (is_uniform(e, from))
        in = add(e, VM_COPY_SPLAT);
    else
        in = add(e, VM_COPY_VECTOR);
    in->dst = to_entry;
    in->size = log2_bytes(to->type);
    uint32_t at = e->c->ninsts - 1;
    uint32_t a = in->kind == VM_COPY_VECTOR && from_entry == entry_of(e, from) ? vector_of(e, from)
                                                                               : from_entry;
    e->c->insts[at].a = a;
    add_cost(e, 1, vector_to);
}

static void emit_br(emitter *e, const ir_inst *in) {
    for (unsigned i = 0; i < in->nargs; i++)
        emit_copy(e, &in->label->results[i], entry_of(e, &in->label->results[i]), in->args[i],
                  entry_of(e, in->args[i]));
    bool leaves = in->parent->owner != in->label || collects(in->label);
    bool last = in->label->op == IR_BLOCK || in->parent == in->label->regions[1] ||
                vm_node_of(in->label)->vector_if;
    if (!leaves && last) return; /* falls out of the region's end */
    vm_inst *x = add(e, leaves ? VM_LEAVE : VM_JUMP);
    x->set = exit_set(vm_node_of(in->label));
    jump_to_end(e, e->c->ninsts - 1, in->parent);
}

/* The next state of a loop's scalars waits in a cell of its own until the round is over. */
static void emit_continue(emitter *e, const ir_inst *in) {
    const ir_region *body = in->label->regions[0];
    uint32_t stage[64] = {0};
    for (unsigned i = 0; i < in->nargs && i < 64;
         i++) { /* read carried values before they change */
        const ir_value *from = in->args[i];
        if (from->region != body || from->index == i || !is_vector(e, from)) continue;
        stage[i] = new_slot(e, ir_type_bytes(from->type));
        vm_inst *x = add(e, VM_COPY_VECTOR);
        x->dst = stage[i], x->a = entry_of(e, from), x->size = log2_bytes(from->type);
    }
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *to = &body->params[i];
        vm_value *x = vm_value_of(e->p, to);
        uint32_t from = i < 64 && stage[i] != 0 ? stage[i] : entry_of(e, in->args[i]);
        emit_copy(e, to, x->stride == VM_VARYING ? x->entry : x->next_cell, in->args[i], from);
    }
    vm_inst *x = add(e, VM_LEAVE);
    x->set = (uint16_t)(exit_set(vm_node_of(in->label)) + 1);
    jump_to_end(e, e->c->ninsts - 1, in->parent);
}

static void emit_region(emitter *e, const ir_region *r);

/* After a construct: the lanes that go on; none: the end of the region around it. */
static void emit_after(emitter *e, const ir_inst *in) {
    const vm_node *n = vm_node_of(in);
    bool join = collects(in) || (in->op == IR_IF && n->vector_if);
    if (join || n->escapes) {
        vm_inst *x = add(e, join ? VM_JOIN : VM_CHECK);
        x->set = exit_set(n);
        jump_to_end(e, e->c->ninsts - 1, in->parent);
    }
    for (unsigned i = 0; i < in->nresults; i++) widen(e, &in->results[i]);
}

static void emit_block(emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(in);
    if (collects(in)) add(e, VM_CLEAR)->set = exit_set(n);
    emit_region(e, in->regions[0]);
    patch(e, &n->fixes[0], e->c->ninsts);
    emit_after(e, in);
}

/* A compare of two scalars that differs between lanes, or several that all must hold. */
static bool is_linear_condition(emitter *e, const ir_value *v, unsigned depth, unsigned *count) {
    const ir_inst *in = v->inst;
    if (in == NULL || e->c->lanes == 1 || depth > 8 || !is_vector(e, v)) return false;
    if (in->op == IR_AND)
        return is_linear_condition(e, in->args[0], depth + 1, count) &&
               is_linear_condition(e, in->args[1], depth + 1, count);
    if (in->op < IR_EQ || in->op > IR_LE_U || in->args[0]->type == IR_I1) return false;
    return ++*count <= MOST_COMPARES && vm_is_scalar(e->p, in->args[0]) &&
           vm_is_scalar(e->p, in->args[1]);
}

/* Finds the conditions that only ifs look at: nothing computes them for each lane. */
static void find_conditions(emitter *e) {
    const vm_plan *p = e->p;
    for (uint32_t i = 0; i < p->nvalues; i++) {
        unsigned count = 0;
        const ir_value *v = p->values[i].value;
        if (v != NULL && v->type == IR_I1)
            p->values[i].decides = is_linear_condition(e, v, 0, &count);
    }
    for (uint32_t i = p->nnodes; i-- > 0;) { /* uses come after definitions */
        const ir_inst *in = p->nodes[i].inst;
        bool looks = in->op == IR_IF || (in->op == IR_AND && in->results[0].type == IR_I1 &&
                                         vm_value_of(p, &in->results[0])->decides);
        for (unsigned k = 0; k < in->nargs && !looks; k++)
            vm_value_of(p, in->args[k])->decides = false;
    }
}

static void add_compares(emitter *e, const ir_value *v) {
    const ir_inst *in = v->inst;
    if (in->op == IR_AND) {
        add_compares(e, in->args[0]);
        add_compares(e, in->args[1]);
        return;
    }
    const vm_value *a = vm_value_of(e->p, in->args[0]), *b = vm_value_of(e->p, in->args[1]);
    vm_compare *k = &e->c->compares[e->c->ncompares++];
    *k = (vm_compare){.op = in->op,
                      .bits = (uint8_t)(8 * ir_type_bytes(in->args[0]->type)),
                      .rows = a->stride == VM_ROWS || b->stride == VM_ROWS,
                      .a = a->entry,
                      .b = b->entry,
                      .stride_a = a->stride,
                      .stride_b = b->stride};
    for (int d = 0; d < 3 && k->rows; d++) {
        k->step_a[d] = step_entry(e, a, d);
        k->step_b[d] = step_entry(e, b, d);
    }
}

static bool only_leaves(const ir_region *r) {
    return r == NULL || r->first == NULL ||
           (r->first->op == IR_BR && r->first->nargs == 0 && r->first->label == r->owner);
}

static void emit_condition(emitter *e, const ir_inst *in) {
    unsigned count = 0;
    if (!is_linear_condition(e, in->args[0], 0, &count)) {
        vm_inst *x = add(e, VM_IF_VECTOR);
        x->a = entry_of(e, in->args[0]);
        return;
    }
    add(e, VM_IF_LINEAR)->imm = e->c->ncompares;
    add_compares(e, in->args[0]);
    e->c->compares[e->c->ncompares - 1].last = true;
}

static void emit_if_vector(emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(in);
    bool no_else = converges(n) && only_leaves(in->regions[1]);
    emit_condition(e, in);
    uint32_t head = e->c->ninsts - 1;
    vm_inst *x = &e->c->insts[head];
    x->set = exit_set(n);
    x->flags = (uint8_t)((converges(n) ? VM_FLAG_CONVERGES : 0) | (no_else ? VM_FLAG_NO_ELSE : 0));
    emit_region(e, in->regions[0]);
    patch(e, &n->fixes[0], e->c->ninsts);
    e->c->insts[head].target = e->c->ninsts;
    if (!no_else) {
        add(e, VM_ELSE)->set = (uint16_t)(exit_set(n) + 1);
        jump_to_end(e, e->c->ninsts - 1, in->regions[1]);
        emit_region(e, in->regions[1]);
        patch(e, &n->fixes[1], e->c->ninsts);
    }
    emit_after(e, in);
}

static void emit_if_scalar(emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(in);
    if (collects(in)) add(e, VM_CLEAR)->set = exit_set(n);
    add(e, VM_IF_SCALAR)->a = entry_of(e, in->args[0]);
    uint32_t head = e->c->ninsts - 1;
    emit_region(e, in->regions[0]);
    e->c->insts[head].target = e->c->ninsts;
    emit_region(e, in->regions[1]);
    patch(e, &n->fixes[0], e->c->ninsts);
    patch(e, &n->fixes[1], e->c->ninsts);
    emit_after(e, in);
}

static void emit_loop(emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(in);
    const ir_region *body = in->regions[0];
    for (unsigned i = 0; i < in->nargs; i++) {
        vm_value *x = vm_value_of(e->p, &body->params[i]);
        if (x->stride != VM_VARYING && x->next_cell == 0) x->next_cell = new_cell(e);
        emit_copy(e, &body->params[i], x->entry, in->args[i], entry_of(e, in->args[i]));
    }
    add(e, VM_CLEAR)->set = exit_set(n);
    add(e, VM_CLEAR)->set = (uint16_t)(exit_set(n) + 1);
    uint32_t head = e->c->ninsts;
    uint64_t weight = e->weight, cost = e->cost;
    e->weight = weight * 16 > 1 << 20 ? weight : weight * 16;
    uint64_t inner = e->weight;
    for (unsigned i = 0; i < body->nparams; i++) widen(e, &body->params[i]);
    emit_region(e, body);
    e->weight = weight;
    patch(e, &n->fixes[0], e->c->ninsts);
    add(e, VM_LOOP_NEXT)->set = (uint16_t)(exit_set(n) + 1);
    uint32_t next = e->c->ninsts - 1;
    for (unsigned i = 0; i < body->nparams; i++) {
        vm_value *x = vm_value_of(e->p, &body->params[i]);
        if (x->stride == VM_VARYING) continue;
        // Four bytes at their own width: the place may be one of the frame's 32-bit fields.
        bool word = log2_bytes(body->params[i].type) == 2;
        vm_inst *copy = add(e, word ? VM_COPY_32 : VM_COPY_SCALAR);
        copy->dst = x->entry, copy->a = x->next_cell;
    }
    vm_inst *back = add(e, VM_LOOP_BACK);
    back->target = head, back->flags = n->spin ? VM_FLAG_SPIN : 0, back->line = in->pos.line;
    back->imm = 1 + (int64_t)((e->cost - cost) / inner / ROUND_COST);
    e->c->insts[next].target = e->c->ninsts;
    emit_after(e, in);
}

static void emit_inst(emitter *e, const ir_inst *in) {
    switch (in->op) {
    case IR_CONST:
    case IR_SPECIAL:
    case IR_ALLOC: widen(e, &in->results[0]); return;
    case IR_BITCAST:
        if (is_vector(e, &in->results[0])) vector_of(e, in->args[0]); /* linear bits as floats */
        widen(e, &in->results[0]);
        return;
    case IR_LOAD: emit_load(e, in); return;
    case IR_STORE: emit_store(e, in); return;
    case IR_BARRIER:
    case IR_BARRIER_COUNT:
    case IR_BARRIER_AND:
    case IR_BARRIER_OR: emit_barrier(e, in); return;
    case IR_GRID_SYNC:
        e->c->base.meets = true;
        add(e, VM_GRID_SYNC)->line = in->pos.line;
        return;
    case IR_FENCE: add(e, VM_FENCE); return;
    case IR_FAULT: emit_fault(e, in); return;
    case IR_BLOCK: emit_block(e, in); return;
    case IR_LOOP: emit_loop(e, in); return;
    case IR_IF:
        if (vm_node_of(in)->vector_if)
            emit_if_vector(e, in);
        else
            emit_if_scalar(e, in);
        return;
    case IR_BR: emit_br(e, in); return;
    case IR_CONTINUE: emit_continue(e, in); return;
    case IR_RETURN:
        add(e, VM_END_LANES);
        jump_to_end(e, e->c->ninsts - 1, in->parent);
        return;
    default: break;
    }
    if (ir_op_is_atomic(in->op))
        emit_atomic(e, in);
    else if (ir_op_is_warp(in->op))
        emit_warp(e, in);
    else if (!vm_value_of(e->p, &in->results[0])->aimed &&
             !vm_value_of(e->p, &in->results[0])->decides)
        emit_elementwise(e, in);
}

static void emit_region(emitter *e, const ir_region *r) {
    if (r == NULL) return;
    uint32_t outer = e->line;
    for (const ir_inst *in = r->first; in != NULL && e->status == SIMT_OK; in = in->next) {
        e->line = in->pos.line;
        emit_inst(e, in);
    }
    e->line = outer;
}

static void emit_function(emitter *e) {
    vm_code *c = e->c;
    c->ninsts = c->natomics = c->nfaults = c->ncompares = c->nwarps = c->nrows = 0;
    e->cost = 0, e->weight = 1;
    for (uint32_t i = 0; i < e->p->f->body.nparams; i++) widen(e, &e->p->f->body.params[i]);
    emit_region(e, &e->p->f->body);
    patch(e, &e->body_fixes, c->ninsts);
    add(e, VM_FINISH);
}

simt_status vm_emit(vm_plan *p, vm_code *c) {
    emitter e = {.p = p, .c = c};
    c->atomics = ARENA_ARRAY(p->mem, vm_atomic, p->nnodes + 1);
    c->faults = ARENA_ARRAY(p->mem, vm_fault, p->nnodes + 1);
    c->compares = ARENA_ARRAY(p->mem, vm_compare, MOST_COMPARES * p->nnodes + 1);
    c->warps = ARENA_ARRAY(p->mem, vm_warp, p->nnodes + 1);
    c->rows = ARENA_ARRAY(p->mem, vm_rows, 2 * (p->nnodes + p->nvalues) + 1);
    if (c->atomics == NULL || c->faults == NULL || c->compares == NULL || c->warps == NULL ||
        c->rows == NULL)
        return status_fail(SIMT_ERR_MEMORY, "no memory to compile kernel %s", p->f->name);
    new_cell(&e); /* entry 0: none */
    e.zero = constant_cell(&e, 0);
    place_scalars(&e);
    find_conditions(&e);
    e.dry = true;
    if (e.status == SIMT_OK) emit_function(&e);
    e.dry = false;
    if (e.status == SIMT_OK) assign_slots(&e);
    if (e.status == SIMT_OK) assign_bitcasts(&e);
    if (e.status == SIMT_OK) emit_function(&e);
    c->nsets = 2 * p->max_depth + 2;
    c->base.cost_per_block = e.cost / 10 + 20;
    return e.status;
}
