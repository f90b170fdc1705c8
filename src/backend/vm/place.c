/* Where the values of a function live.
 *
 * Scalars have cells of 8 bytes, and steps where they grow by rows; constants and thread coordinates
 * are ready before the code runs. Vectors have slots that values share whose lives do not overlap.
 */
#include "backend/vm/emit.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OWN_BYTES = 1 << 30 }; /* local memory of a thread, shared memory of a block */

/* ---- growing arrays ---- */

static void *grow(vm_emitter *e, void *old, size_t used, size_t *capacity, size_t item) {
    size_t n = *capacity * 2 + 64;
    void *new = arena_alloc(e->p->mem, n * item);
    if (used > 0) memcpy(new, old, used * item);
    *capacity = n;
    return new;
}

vm_inst *vm_add(vm_emitter *e, vm_kind kind) {
    vm_code *c = e->c;
    if (c->ninsts == e->inst_capacity) {
        size_t capacity = e->inst_capacity;
        c->insts = grow(e, c->insts, c->ninsts, &capacity, sizeof(vm_inst));
        e->inst_capacity = (uint32_t)capacity;
    }
    vm_inst *in = &c->insts[c->ninsts++];
    *in = (vm_inst){.kind = kind, .line = e->pos.line, .call = e->pos.call};
    return in;
}

static uint32_t new_entry(vm_emitter *e, vm_place place, size_t offset) {
    vm_code *c = e->c;
    if (c->nentries == e->entry_capacity) {
        size_t capacity = e->entry_capacity;
        c->entries = grow(e, c->entries, c->nentries, &capacity, sizeof(vm_entry));
        e->entry_capacity = (uint32_t)capacity;
    }
    if (offset > UINT32_MAX && e->status == SIMT_OK)
        e->status = status_fail(
            SIMT_ERR_UNSUPPORTED,
            "kernel %s: its variables take more than 4 GB for a block of threads", e->p->f->name);
    c->entries[c->nentries] = (vm_entry){.place = place, .offset = (uint32_t)offset};
    return c->nentries++;
}

uint32_t vm_new_cell(vm_emitter *e) {
    e->c->cell_bytes += 8;
    return new_entry(e, VM_AT_CELL, e->c->cell_bytes - 8);
}

uint32_t vm_new_slot(vm_emitter *e, size_t size) {
    size_t bytes = (size * e->c->lanes + 63) & ~(size_t)63;
    e->c->slot_bytes += bytes;
    return new_entry(e, VM_AT_SLOT, e->c->slot_bytes - bytes);
}

/* Room in the constants, 64-byte aligned for vectors; the offset. */
static size_t take_constant(vm_emitter *e, size_t bytes) {
    vm_code *c = e->c;
    size_t at = bytes > 8 ? (c->constant_bytes + 63) & ~(size_t)63 : c->constant_bytes;
    size_t end = at + ((bytes + 7) & ~(size_t)7);
    while (end > e->constant_capacity) {
        size_t capacity = e->constant_capacity + bytes;
        c->constants = grow(e, c->constants, c->constant_bytes, &capacity, 1);
        e->constant_capacity = capacity;
    }
    c->constant_bytes = end;
    return at;
}

uint32_t vm_new_constant(vm_emitter *e, uint64_t bits) {
    size_t at = take_constant(e, 8);
    memcpy(e->c->constants + at, &bits, 8);
    return new_entry(e, VM_AT_CONST, at);
}

/* lanes values: base + what v grows by */
static uint32_t constant_vector(vm_emitter *e, unsigned size, uint64_t base, const vm_value *v) {
    size_t at = take_constant(e, (size_t)size * e->c->lanes);
    for (uint32_t i = 0; i < e->c->lanes; i++) {
        uint32_t width = e->p->box[0], row = i / width, height = e->p->box[1];
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

int64_t vm_new_rows(vm_emitter *e, const vm_value *v) {
    if (e->c->nrows == e->row_capacity) {
        size_t capacity = e->row_capacity;
        e->c->rows = grow(e, e->c->rows, e->c->nrows, &capacity, sizeof(vm_rows));
        e->row_capacity = (uint32_t)capacity;
    }
    vm_rows *r = &e->c->rows[e->c->nrows];
    memcpy(r->step, v->step, sizeof r->step);
    return e->c->nrows++;
}

static void make_vector(vm_emitter *e, const ir_value *v, vm_value *x) {
    if (e->c->entries[x->vector].place == VM_AT_CONST) return;
    vm_inst *in = vm_add(e, x->stride == 0         ? VM_SPLAT
                            : x->stride == VM_ROWS ? VM_IOTA_ROWS
                                                   : VM_IOTA);
    in->dst = x->vector;
    in->a = x->entry;
    in->imm = x->stride == VM_ROWS ? vm_new_rows(e, x) : x->stride;
    in->size = vm_log2_bytes(v->type);
    x->made = true;
    e->made[e->nmade++] = x;
}

/* A loop stands around the region, but not around the value. */
static bool in_loop_inside(const ir_region *region, const ir_value *v) {
    const ir_region *home = v->inst != NULL ? v->inst->parent : v->region;
    for (; region != home && region->owner != NULL; region = region->owner->parent)
        if (region->owner->op == IR_LOOP) return true;
    return false;
}

uint32_t vm_vector_of(vm_emitter *e, const ir_value *v) {
    vm_value *x = vm_value_of(e->p, v);
    if (x->stride == VM_VARYING) return x->entry;
    x->needs_vector = true;
    if (e->dry)
        x->early |= in_loop_inside(e->region, v);
    else if (!x->made)
        make_vector(e, v, x);
    return x->vector;
}

void vm_widen(vm_emitter *e, const ir_value *v) {
    vm_value *x = vm_value_of(e->p, v);
    if (!e->dry && x->early && x->stride != VM_VARYING) make_vector(e, v, x);
}

void vm_forget_vectors(vm_emitter *e, uint32_t before) {
    while (e->nmade > before) e->made[--e->nmade]->made = false;
}

/* The entry that holds a scalar's step along an axis; 0: no step. */
uint32_t vm_step_entry(vm_emitter *e, const vm_value *v, int axis) {
    const uint32_t *n = e->p->box;
    if (v->stride == VM_ROWS) return v->step[axis];
    if (v->stride == 0 || n[axis] == 1) return 0;
    int64_t lanes = axis == 0 ? 1 : axis == 1 ? n[0] : (int64_t)n[0] * n[1];
    return vm_new_constant(e, (uint64_t)(v->stride * lanes));
}

/* Entries of values that exist before the code runs, and cells of scalars. */
static void place_special(vm_emitter *e, vm_value *v, uint64_t which) {
    uint32_t d = (uint32_t)(which % 3);
    if (which == IR_LANEID)
        v->entry = e->c->lanes == 1          ? new_entry(e, VM_AT_TID, 3)
                   : v->stride == VM_VARYING ? constant_vector(e, 4, 0, v)
                                             : vm_new_constant(e, 0);
    else if (which >= IR_NTID_X && which <= IR_NTID_Z)
        v->entry = vm_new_constant(e, e->p->block[d]);
    else if (which > IR_TID_Z)
        v->entry = new_entry(e, VM_AT_SPECIAL, which);
    else if (e->c->lanes == 1)
        v->entry = new_entry(e, VM_AT_TID, d);
    else
        v->entry = vm_new_constant(e, 0);
}

/* Of memory in the frame: a cell that holds it. */
static void add_address(vm_emitter *e, vm_value *v, bool local, uint32_t offset) {
    v->entry = vm_new_cell(e);
    e->c->addresses[e->c->naddresses++] =
        (vm_address){.entry = v->entry, .local = local, .offset = offset};
}

static void place_alloc(vm_emitter *e, vm_value *v, const ir_inst *in) {
    bool local = in->results[0].type == IR_PTR_LOCAL;
    size_t *bytes = local ? &e->c->local_bytes : &e->c->shared_bytes;
    if (in->imm > MOST_OWN_BYTES || *bytes > MOST_OWN_BYTES - in->imm) {
        e->status = status_fail(SIMT_ERR_UNSUPPORTED, "kernel %s: more than 1 GiB of %s memory",
                                e->p->f->name, local ? "local" : "shared");
        return;
    }
    add_address(e, v, local, (uint32_t)*bytes);
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
static void place_steps(vm_emitter *e, vm_value *v) {
    const ir_inst *in = v->value->inst;
    int64_t known[3] = {v->steps.x, v->steps.y, v->steps.z};
    if (v->stride != VM_ROWS) return;
    const vm_value *a = in != NULL && in->nargs > 0 ? vm_value_of(e->p, in->args[0]) : NULL;
    const vm_value *b = in != NULL && in->nargs > 1 ? vm_value_of(e->p, in->args[1]) : NULL;
    for (int d = 0; d < 3; d++) {
        if (v->fixed_steps) {
            v->step[d] = known[d] != 0 ? vm_new_constant(e, (uint64_t)known[d]) : 0;
            continue;
        }
        if (in == NULL) continue; /* values passed between regions have fixed steps or none */
        uint32_t sa = vm_step_entry(e, a, d), sb = b != NULL ? vm_step_entry(e, b, d) : 0;
        bool alone = in->op != IR_MUL && sb == 0;
        if (in->op == IR_ADD || in->op == IR_PTRADD) alone |= sa == 0;
        v->step[d] = alone ? (sb == 0 ? sa : sb) : sa == 0 && sb == 0 ? 0 : vm_new_cell(e);
    }
}

void vm_place_scalars(vm_emitter *e) {
    const ir_region *body = &e->p->f->body;
    const ir_func *kernel = ir_kernel_of(e->p->f);
    e->c->addresses = ARENA_ARRAY(e->p->mem, vm_address, e->p->nnodes + 1);
    for (uint32_t i = 0; i < e->p->nvalues; i++) {
        vm_value *v = &e->p->values[i];
        const ir_inst *in = v->value != NULL ? v->value->inst : NULL;
        if (v->value == NULL) continue;
        if (in == NULL && v->value->region == body && e->c->is_function)
            v->entry = vm_new_cell(e);
        else if (in == NULL && v->value->region == body)
            v->entry = new_entry(e, VM_AT_PARAM, v->value->index);
        else if (in != NULL && in->op == IR_CONST)
            v->entry = vm_new_constant(e, in->imm);
        else if (in != NULL && in->op == IR_SPECIAL)
            place_special(e, v, in->imm);
        else if (in != NULL && in->op == IR_ALLOC)
            place_alloc(e, v, in);
        else if (in != NULL && in->op == IR_ALLOC_DYNAMIC)
            add_address(e, v, false, VM_DYNAMIC);
        else if (in != NULL && in->op == IR_VARIABLE)
            v->entry = new_entry(e, VM_AT_PARAM, kernel->body.nparams + in->imm);
        else if (vm_is_bitcast(in))
            continue; /* its operand's entry */
        else if (v->stride != VM_VARYING)
            v->entry = vm_new_cell(e);
    }
    for (uint32_t i = 0; i < e->p->nvalues; i++)
        if (e->p->values[i].value != NULL) place_steps(e, &e->p->values[i]);
}

/* ---- slots: one pass over lifetimes; those of one size that have ended are taken over, the oldest first ---- */

typedef struct slot_want {
    uint32_t start, end;
    uint32_t *entry;
    uint8_t size;
} slot_want;

/* Numbers of wants, the least key first. */
typedef struct slot_heap {
    uint32_t *items, count;
} slot_heap;

/* By the end of life, or by age. */
static uint32_t key_of(const slot_want *w, uint32_t item, bool by_end) {
    return by_end ? w[item].end : item;
}

static void heap_push(slot_heap *h, const slot_want *w, uint32_t item, bool by_end) {
    uint32_t at = h->count++, key = key_of(w, item, by_end);
    for (; at > 0 && key_of(w, h->items[(at - 1) / 2], by_end) > key; at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = item;
}

static uint32_t heap_pop(slot_heap *h, const slot_want *w, bool by_end) {
    uint32_t top = h->items[0], last = h->items[--h->count], key = key_of(w, last, by_end), at = 0;
    for (uint32_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count &&
            key_of(w, h->items[child + 1], by_end) < key_of(w, h->items[child], by_end))
            child++;
        if (key_of(w, h->items[child], by_end) >= key) break;
        h->items[at] = h->items[child];
    }
    h->items[at] = last;
    return top;
}

static int by_start(const void *a, const void *b) {
    uint32_t x = ((const slot_want *)a)->start, y = ((const slot_want *)b)->start;
    return x < y ? -1 : x > y;
}

static void want_slot(vm_emitter *e, slot_want *w, uint32_t *n, vm_value *v, uint32_t *entry) {
    const ir_inst *in = v->value->inst;
    bool construct = in == NULL || ir_op_table[in->op].control;
    w[(*n)++] = (slot_want){.start = 2 * v->first - (construct && v->first > 0),
                            .end = 2 * v->last,
                            .entry = entry,
                            .size = vm_log2_bytes(v->value->type)};
    (void)e;
}

/* w: by start. */
static void share_slots(vm_emitter *e, const slot_want *w, uint32_t n) {
    enum { SIZES = 4 };
    slot_heap used[SIZES], ended[SIZES];
    for (int s = 0; s < SIZES; s++) {
        used[s] = (slot_heap){.items = ARENA_ARRAY(e->p->mem, uint32_t, n + 1)};
        ended[s] = (slot_heap){.items = ARENA_ARRAY(e->p->mem, uint32_t, n + 1)};
    }
    for (uint32_t i = 0; i < n && e->status == SIMT_OK; i++) {
        slot_heap *u = &used[w[i].size], *free = &ended[w[i].size];
        while (u->count > 0 && w[u->items[0]].end <= w[i].start)
            heap_push(free, w, heap_pop(u, w, true), false);
        if (free->count > 0)
            *w[i].entry =
                new_entry(e, VM_AT_SLOT, e->c->entries[*w[heap_pop(free, w, false)].entry].offset);
        else
            *w[i].entry = vm_new_slot(e, (size_t)1 << w[i].size);
        heap_push(u, w, i, true);
    }
}

static void assign_slots(vm_emitter *e) {
    vm_plan *p = e->p;
    slot_want *w = ARENA_ARRAY(p->mem, slot_want, 2 * p->nvalues + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->nvalues; i++) {
        vm_value *v = &p->values[i];
        const ir_inst *in = v->value != NULL ? v->value->inst : NULL;
        if (v->value == NULL || (vm_is_bitcast(in) && v->stride == VM_VARYING)) continue;
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
    share_slots(e, w, n);
    for (uint32_t i = 0; i < p->nvalues; i++)
        if (p->values[i].same != NULL)
            p->values[i].entry = vm_value_of(p, p->values[i].same)->entry;
}

static void assign_bitcasts(vm_emitter *e) {
    for (uint32_t i = 0; i < e->p->nvalues; i++) {
        vm_value *v = &e->p->values[i];
        if (v->value == NULL || !vm_is_bitcast(v->value->inst)) continue;
        const vm_value *root = vm_bitcast_root(e->p, v->value);
        v->entry =
            v->stride == VM_VARYING && root->stride != VM_VARYING ? root->vector : root->entry;
    }
}

void vm_place_vectors(vm_emitter *e) {
    if (e->status == SIMT_OK) assign_slots(e);
    if (e->status == SIMT_OK) assign_bitcasts(e);
}
