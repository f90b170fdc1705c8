/* Dead code.
 *
 * In and out: any valid function. Kept: what has an effect (stores, atomics, ordered loads, barriers,
 * fences, faults, return), loops (they may not end), and what those need: operands, the conditions and
 * constructs that decide whether they are reached, and of constructs the results and carried values that
 * are used. All else goes, also a carried value that only feeds itself, an `if` that decides nothing.
 * Marking goes backwards from the effects with a list of what to visit; then one sweep in program order
 * removes and renews the lists of values (a value that moves leaves its new place in its note).
 */
#include "opt/walk.h"

#include <string.h>

#define USED ((void *)1) /* note of a value: used, and still where it was */

typedef struct marking {
    ir_value **list; /* used, their makers not visited yet */
    uint32_t count;
} marking;

/* ---- marking ---- */

static void mark(marking *m, ir_value *v) {
    if (v->note) return;
    v->note = USED;
    m->list[m->count++] = v;
}

/* A construct that must be run: what decides which way threads leave it must be there. */
static void need(marking *m, ir_inst *construct) {
    opt_construct *c = opt_construct_of(construct);
    if (c->needed) return;
    c->needed = true;
    if (construct->op == IR_IF) mark(m, construct->args[0]);
    for (ir_inst *jump = c->jumps; jump; jump = jump->note)
        for (ir_inst *in = jump->parent->owner; in != construct; in = in->parent->owner)
            need(m, in);
}

static bool removable(const ir_inst *inst) {
    const ir_op_info *info = &ir_op_table[inst->op];
    if (info->pure) return true;
    return inst->op == IR_LOAD && IR_MEM_ORDER(inst->imm) == IR_PLAIN;
}

static bool is_effect(const ir_inst *inst) {
    bool jump = inst->op == IR_BR || inst->op == IR_CONTINUE;
    return !removable(inst) && !jump && inst->op != IR_IF && inst->op != IR_BLOCK;
}

static void mark_effects(marking *m, ir_region *region) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        if (is_effect(inst)) {
            for (ir_inst *in = region->owner; in; in = in->parent->owner) need(m, in);
            if (inst->op == IR_LOOP)
                need(m, inst);
            else
                for (unsigned i = 0; i < inst->nargs; i++) mark(m, inst->args[i]);
        }
        for (int r = 0; r < 2 && inst->regions[r]; r++) mark_effects(m, inst->regions[r]);
    }
}

/* What gives a result of a construct (op: br) or a carried value (continue) its value. */
static void mark_sources(marking *m, ir_inst *construct, ir_op op, uint32_t index) {
    for (ir_inst *jump = opt_construct_of(construct)->jumps; jump; jump = jump->note)
        if (jump->op == op) mark(m, jump->args[index]);
}

static void mark_all(marking *m, ir_func *f) {
    mark_effects(m, &f->body);
    while (m->count) {
        ir_value *v = m->list[--m->count];
        if (v->inst && v->inst->regions[0]) {
            need(m, v->inst);
            mark_sources(m, v->inst, IR_BR, v->index);
        } else if (v->inst) {
            for (unsigned i = 0; i < v->inst->nargs; i++) mark(m, v->inst->args[i]);
        } else if (v->region->owner) {
            mark(m, v->region->owner->args[v->index]);
            mark_sources(m, v->region->owner, IR_CONTINUE, v->index);
        }
    }
}

/* ---- the sweep ---- */

/* Drops the operands whose value of the label is not used. */
static void shrink_args(ir_inst *inst, const ir_value *label_values) {
    unsigned kept = 0;
    for (unsigned i = 0; i < inst->nargs; i++)
        if (label_values[i].note) inst->args[kept++] = inst->args[i];
    inst->nargs = kept;
}

/* A new list of the used ones; NULL: all are used. */
static ir_value *shrink_values(ir_func *f, ir_value *values, unsigned n, unsigned *kept) {
    *kept = 0;
    for (unsigned i = 0; i < n; i++) *kept += values[i].note != NULL;
    if (*kept == n) return NULL;
    ir_value *to = ARENA_ARRAY(&f->mem, ir_value, *kept + 1);
    for (unsigned i = 0, at = 0; i < n; i++) {
        if (!values[i].note) continue;
        to[at] = values[i];
        to[at].index = at;
        values[i].note = &to[at++];
    }
    return to;
}

static void shrink_construct(ir_func *f, ir_inst *inst) {
    ir_region *body = inst->regions[0];
    unsigned nresults, nparams;
    ir_value *results = shrink_values(f, inst->results, inst->nresults, &nresults);
    ir_value *params = shrink_values(f, body->params, body->nparams, &nparams);
    for (ir_inst *jump = opt_construct_of(inst)->jumps; jump; jump = jump->note) {
        if (jump->op == IR_BR && results) shrink_args(jump, inst->results);
        if (jump->op == IR_CONTINUE && params) shrink_args(jump, body->params);
    }
    if (params) {
        shrink_args(inst, body->params);
        body->params = params;
        body->nparams = nparams;
    }
    if (results) {
        inst->results = results;
        inst->nresults = nresults;
    }
}

static void renew_args(ir_inst *inst) {
    for (unsigned i = 0; i < inst->nargs; i++) {
        ir_value *moved = inst->args[i]->note;
        if (moved && moved != USED) inst->args[i] = moved;
    }
}

static bool is_dead(const ir_inst *inst) {
    if (inst->regions[0]) return !opt_construct_of(inst)->needed;
    return removable(inst) && !inst->results->note;
}

static void sweep(ir_func *f, ir_region *region) {
    for (ir_inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (is_dead(inst)) {
            ir_inst_remove(inst);
            continue;
        }
        if (inst->regions[0]) shrink_construct(f, inst);
        renew_args(inst);
        for (int r = 0; r < 2 && inst->regions[r]; r++) sweep(f, inst->regions[r]);
    }
}

void opt_dce(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    opt_clear_notes(f);
    marking m = {.list = ARENA_ARRAY(mem, ir_value *, f->next_id + 1)};
    opt_note_constructs(f, mem);
    mark_all(&m, f);
    sweep(f, &f->body);
}
