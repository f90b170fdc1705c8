/* Changing a function in place: unlinking, moving, numbering, hashing. */
#include "base/hash.h"
#include "ir/ir.h"

#include <string.h>

void ir_inst_remove(ir_inst *inst) {
    ir_region *region = inst->parent;
    if (inst->prev)
        inst->prev->next = inst->next;
    else
        region->first = inst->next;
    if (inst->next)
        inst->next->prev = inst->prev;
    else
        region->last = inst->prev;
    inst->prev = inst->next = NULL;
    inst->parent = NULL;
}

void ir_inst_move_before(ir_inst *inst, ir_inst *before) {
    ir_inst_remove(inst);
    ir_region *region = before->parent;
    inst->parent = region;
    inst->next = before;
    inst->prev = before->prev;
    if (inst->prev)
        inst->prev->next = inst;
    else
        region->first = inst;
    before->prev = inst;
}

static void number_region(ir_func *f, ir_region *region) {
    for (uint32_t i = 0; i < region->nparams; i++) region->params[i].id = f->next_id++;
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        inst->number = f->ninsts++;
        for (unsigned i = 0; i < inst->nresults; i++) inst->results[i].id = f->next_id++;
        for (int r = 0; r < 2 && inst->regions[r]; r++) number_region(f, inst->regions[r]);
    }
}

void ir_func_renumber(ir_func *f) {
    f->next_id = f->ninsts = 0;
    number_region(f, &f->body);
    for (uint32_t i = 0; i < f->nfunctions; i++) ir_func_renumber(f->functions[i]);
}

/* ---- hash: structure without names, positions and ids ---- */

typedef struct hashing {
    uint64_t h;
    uint32_t next; /* running numbers for values and constructs, kept in their notes */
} hashing;

static void mix(hashing *s, uint64_t word) { s->h = hash_mix(s->h, word); }

static void define(hashing *s, ir_value *v) {
    v->note = (void *)(uintptr_t)s->next++;
    mix(s, (uint64_t)v->type | (uint64_t)v->is_size << 8 | (uint64_t)v->struct_align << 16 |
               (uint64_t)v->struct_bytes << 32);
}

static void hash_region(hashing *s, ir_region *region) {
    mix(s, region->nparams);
    for (uint32_t i = 0; i < region->nparams; i++) define(s, &region->params[i]);
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        inst->note = (void *)(uintptr_t)s->next++;
        mix(s, (uint64_t)inst->op | (uint64_t)inst->nargs << 16 | (uint64_t)inst->nresults << 32);
        mix(s, inst->imm);
        for (unsigned i = 0; i < inst->nargs; i++) mix(s, (uintptr_t)inst->args[i]->note);
        if (inst->label) mix(s, (uintptr_t)inst->label->note);
        for (unsigned i = 0; i < inst->nresults; i++) define(s, &inst->results[i]);
        for (int r = 0; r < 2 && inst->regions[r]; r++) hash_region(s, inst->regions[r]);
    }
    mix(s, 0x5e61);
}

static void hash_function(hashing *s, const ir_func *f) {
    mix(s, f->nresults);
    for (uint32_t i = 0; i < f->nresults; i++) mix(s, f->results[i]);
    hash_region(s, (ir_region *)&f->body); /* writes notes only */
}

static void hash_bytes(hashing *s, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) mix(s, ((const uint8_t *)bytes)[i]);
}

/* Of variables the names count: they say which one of the program is meant. */
static void hash_variable(hashing *s, const ir_variable *v) {
    mix(s, (uint64_t)v->space | (uint64_t)v->align << 8);
    mix(s, v->bytes);
    hash_bytes(s, v->name, strlen(v->name) + 1);
    hash_bytes(s, v->init, v->init_bytes);
}

uint64_t ir_hash(const ir_func *f) {
    hashing s = {0, 1};
    for (uint32_t i = 0; i < f->nvariables; i++) hash_variable(&s, &f->variables[i]);
    hash_region(&s, (ir_region *)&f->body);
    for (uint32_t i = 0; i < f->nfunctions; i++) hash_function(&s, f->functions[i]);
    return s.h;
}

static unsigned depth_of(const ir_func *f) {
    unsigned depth = 0, most = 0;
    const ir_region *region = &f->body;
    const ir_inst *inst = region->first;
    for (;;) {
        if (inst && inst->regions[0]) {
            region = inst->regions[0];
            inst = region->first;
            most = ++depth > most ? depth : most;
        } else if (inst) {
            inst = inst->next;
        } else if (!region->owner) {
            return most;
        } else if (region == region->owner->regions[0] && region->owner->regions[1]) {
            region = region->owner->regions[1];
            inst = region->first;
        } else {
            inst = region->owner->next;
            region = region->owner->parent;
            depth--;
        }
    }
}

unsigned ir_func_depth(const ir_func *f) {
    unsigned most = depth_of(f);
    for (uint32_t i = 0; i < f->nfunctions; i++) {
        unsigned depth = depth_of(f->functions[i]);
        if (depth > most) most = depth;
    }
    return most;
}
