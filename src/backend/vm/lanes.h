/* Sets of lanes, and the lanes of a block row by row; for the files that run code. */
#ifndef SIMT_BACKEND_VM_LANES_H
#define SIMT_BACKEND_VM_LANES_H

#include "backend/vm/vm.h"

#include <string.h>

/* ---- lane sets: disjoint, so that counts add ---- */

static inline bool all_on(const vm_set *s) { return s->count == s->top; }
static inline const uint8_t *mask_of(const vm_set *s) { return all_on(s) ? NULL : s->bytes; }

static inline void set_move(vm_set *to, vm_set *from) {
    vm_set t = *to;
    *to = *from;
    *from = (vm_set){.bytes = t.bytes};
}

static inline void set_spell(vm_set *s) { /* bytes say what count and top do */
    if (all_on(s)) memset(s->bytes, 1, s->top);
}

static inline void set_merge(const vm_code *c, vm_set *to, vm_set *from) {
    if (from->count == 0) return;
    if (to->count == 0) {
        set_move(to, from);
        return;
    }
    uint32_t top = to->top > from->top ? to->top : from->top;
    if (to->count + from->count < top) {
        set_spell(to);
        set_spell(from);
        if (to->top < top) memset(to->bytes + to->top, 0, top - to->top);
        c->kernels->moves->mask_or(to->bytes, from->bytes, from->top);
    }
    to->count += from->count;
    to->top = top;
    from->count = from->top = 0;
}

/* The lane to begin with, and the mask from lane 0 on: none where all from there on are active. */
static inline uint32_t set_begin(const vm_set *s, const uint8_t **mask) {
    uint32_t from = s->top - s->count;
    bool together = from == 0 || memchr(s->bytes, 1, s->top) == s->bytes + from;
    *mask = together ? NULL : s->bytes;
    return together ? from : 0;
}

/* Lowers top to just above the last active lane. */
static inline void set_trim(vm_set *s) {
    if (s->count == 0) s->top = 0;
    while (s->top >= 8 && s->count > 0) {
        uint64_t word;
        memcpy(&word, s->bytes + s->top - 8, 8);
        if (word != 0) break;
        s->top -= 8;
    }
    while (s->top > 0 && s->bytes[s->top - 1] == 0) s->top--;
}

/* ---- scalars and rows ---- */

static inline int64_t read_scalar(const void *p, unsigned bits, bool is_signed) {
    switch (bits) {
    case 8: return is_signed ? *(const int8_t *)p : *(const uint8_t *)p;
    case 16: return is_signed ? *(const int16_t *)p : *(const uint16_t *)p;
    case 32: return is_signed ? *(const int32_t *)p : (int64_t) * (const uint32_t *)p;
    default: return *(const int64_t *)p;
    }
}

static inline int64_t step_of(const vm_gang *g, uint32_t entry) {
    return entry != 0 ? *(const int64_t *)g->entry[entry] : 0;
}

static inline vm_row_walk walk_rows(const vm_code *c, const vm_gang *g, const uint32_t step[3]) {
    const uint32_t *n = c->box;
    vm_row_walk w = {step_of(g, step[0]), step_of(g, step[1]), step_of(g, step[2]), n[0], n[1]};
    if (n[0] == 1)
        w = (vm_row_walk){w.y, w.z, 0, n[1], n[2]}; /* rows of one: columns are the rows */
    return w;
}

/* As one row, where each goes on where the one before ends. */
static inline void join_rows(const vm_code *c, vm_row_walk *w) {
    const uint32_t *n = c->box;
    bool even = n[0] == 1 ? n[2] == 1
                          : (n[1] == 1 || w->y == w->x * w->width) &&
                                (n[2] == 1 || w->z == w->x * w->width * w->height);
    if (even) w->width = c->lanes;
}

#endif
