/* Variables become parameters of loops and results of constructs. */
#include "kernel/vars.h"

#include <string.h>

vars vars_new(ir_builder *b, arena *mem) { return (vars){.b = b, .mem = mem}; }

static void *grown(vars *v, const void *items, size_t size) {
    void *out = arena_alloc(v->mem, v->capacity * size);
    if (v->count > 0) memcpy(out, items, v->count * size);
    return out;
}

uint32_t vars_add(vars *v, ir_type type) {
    if (v->count == v->capacity) {
        v->capacity = v->capacity * 2 + 16;
        v->types = grown(v, v->types, sizeof *v->types);
        v->values = grown(v, v->values, sizeof *v->values);
    }
    v->types[v->count] = type;
    return v->count++;
}

ir_value *vars_get(vars *v, uint32_t number) {
    ir_value *value = v->values[number];
    return value != NULL ? value : ir_const_bits(v->b, v->types[number], 0);
}

/* ---- what labels carry ---- */

static ir_type *carried_types(vars *v, const vars_label *l) {
    ir_type *types = ARENA_ARRAY(v->mem, ir_type, l->ncarried + 1);
    for (uint32_t i = 0; i < l->ncarried; i++) types[i] = v->types[l->carried[i]];
    return types;
}

static ir_value **carried_values(vars *v, const vars_label *l) {
    ir_value **values = ARENA_ARRAY(v->mem, ir_value *, l->ncarried + 1);
    for (uint32_t i = 0; i < l->ncarried; i++) values[i] = vars_get(v, l->carried[i]);
    return values;
}

/* The variables become what a construct gives. */
static void take(vars *v, const vars_label *l, ir_value *given) {
    for (uint32_t i = 0; i < l->ncarried; i++) v->values[l->carried[i]] = &given[i];
}

/* ---- constructs ---- */

static void begin(vars *v, vars_label *end, ir_inst *construct) {
    end->construct = construct;
    end->after = v->b->at;
    v->b->at = construct->regions[0];
}

void vars_begin_block(vars *v, vars_label *end) {
    begin(v, end, ir_block(v->b, carried_types(v, end), end->ncarried));
}

void vars_begin_if(vars *v, ir_value *cond, vars_label *end) {
    end->before = ARENA_ARRAY(v->mem, ir_value *, end->ncarried + 1);
    for (uint32_t i = 0; i < end->ncarried; i++) end->before[i] = v->values[end->carried[i]];
    begin(v, end, ir_if(v->b, cond, carried_types(v, end), end->ncarried));
}

void vars_begin_loop(vars *v, vars_label *head, vars_label *exit) {
    ir_value **first = carried_values(v, head);
    ir_inst *loop = ir_loop(v->b, first, head->ncarried, carried_types(v, exit), exit->ncarried);
    begin(v, exit, loop);
    exit->head = head;
    head->construct = loop;
    head->begins_rounds = true;
    take(v, head, loop->regions[0]->params);
}

void vars_arrive(vars *v, vars_label *label) {
    if (vars_ended(v)) return;
    ir_value **values = carried_values(v, label);
    if (label->begins_rounds)
        ir_continue(v->b, label->construct, values, label->ncarried);
    else
        ir_br(v->b, label->construct, values, label->ncarried);
}

void vars_else(vars *v, vars_label *end) {
    vars_arrive(v, end);
    for (uint32_t i = 0; i < end->ncarried; i++) v->values[end->carried[i]] = end->before[i];
    v->b->at = end->construct->regions[1];
}

void vars_end(vars *v, vars_label *end) {
    vars_arrive(v, end->head != NULL ? end->head : end);
    v->b->at = end->after;
    take(v, end, end->construct->results);
}
