/* Positions, lifetimes, and what need not be copied.
 *
 * In: the facts of a function. Out: every instruction has a node with its position in program order; every
 * value its stride and its lifetime in positions. Three kinds of copies are avoided:
 *   forward  a contiguous load whose memory nothing writes until its last use is read in place
 *   aimed    a value whose only use is a contiguous store is computed at the store, into memory
 *   same     a carried value's next state, or what a side of an if results in, is computed in its slot
 */
#include "backend/vm/vm.h"

/* ---- from the facts ---- */

/* As a gang of these lanes sees the value. */
static void take_shape(const vm_plan *p, vm_value *v, const facts_shape *s) {
    int64_t stride = 0;
    if (p->lanes == 1)
        v->stride = 0;
    else if (s->kind == FACTS_VARYING)
        v->stride = VM_VARYING;
    else if (facts_shape_is_even(s, p->box, &stride))
        v->stride = stride;
    else
        v->stride = VM_ROWS;
    if (v->stride != VM_ROWS || s->kind != FACTS_FIXED) return;
    v->fixed_steps = true;
    v->steps = (vm_steps){s->step[0], s->step[1], s->step[2]};
}

/* Positions count instructions and the ends of constructs. */
static void take_positions(vm_plan *p) {
    const facts_places *places = &p->facts->places;
    uint32_t at = 0, open = FACTS_NONE; /* the construct that ends next */
    for (uint32_t i = 0; i <= p->nnodes; i++) {
        for (; open != FACTS_NONE && places->constructs[open].end == i;
             open = places->constructs[open].around)
            vm_node_of(p, places->constructs[open].inst)->end = ++at;
        if (i == p->nnodes) return;
        const ir_inst *in = places->insts[i].inst;
        p->nodes[i] = (vm_node){.inst = in, .at = at + 1, .end = at + 1};
        at++;
        if (facts_is_construct(in)) open = places->insts[i].construct;
        if (ir_op_table[in->op].writes && in->op != IR_FAULT) p->writes[p->nwrites++] = at;
    }
}

void vm_plan_scan(vm_plan *p) {
    const facts_places *places = &p->facts->places;
    p->lanes = p->facts->singly == FACTS_TOGETHER ? p->threads : 1;
    p->nvalues = p->f->next_id;
    p->nnodes = places->ninsts;
    p->nodes = ARENA_ARRAY(p->mem, vm_node, p->nnodes + 1);
    p->values = ARENA_ARRAY(p->mem, vm_value, p->nvalues + 1);
    p->writes = ARENA_ARRAY(p->mem, uint32_t, p->nnodes + 1);
    for (uint32_t i = 0; i < p->nvalues; i++) {
        p->values[i].value = places->values[i];
        take_shape(p, &p->values[i], &p->facts->shapes.values[i]);
    }
    for (uint32_t i = 0; i < places->nconstructs; i++)
        if (places->constructs[i].depth + 1 > p->max_depth)
            p->max_depth = places->constructs[i].depth + 1;
    take_positions(p);
}

/* ---- lifetimes ---- */

static bool wrote_between(const vm_plan *p, uint32_t after, uint32_t before) {
    uint32_t low = 0, high = p->nwrites; /* the first write behind `after` */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (p->writes[mid] > after)
            high = mid;
        else
            low = mid + 1;
    }
    return low < p->nwrites && p->writes[low] < before;
}

/* The instruction at this position, or NULL (a construct ends there). */
static const ir_inst *inst_at(const vm_plan *p, uint32_t at) {
    uint32_t low = 0, high = p->nnodes;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (p->nodes[mid].at >= at)
            high = mid;
        else
            low = mid + 1;
    }
    return low < p->nnodes && p->nodes[low].at == at ? p->nodes[low].inst : NULL;
}

static bool is_contiguous(const vm_plan *p, const ir_inst *in) {
    ir_type t = in->op == IR_LOAD ? in->results[0].type : in->args[1]->type;
    return p->lanes > 1 && vm_value_of(p, in->args[0])->stride == (int64_t)ir_type_bytes(t);
}

static bool is_elementwise(const ir_inst *in) {
    const ir_op_info *info = &ir_op_table[in->op];
    return info->pure && in->nresults == 1 && in->nargs > 0 && in->op != IR_PTRADD &&
           !vm_is_bitcast(in);
}

/* How many instructions before each number write, or begin or end a region. */
static const uint32_t *count_stops(const vm_plan *p) {
    uint32_t *stops = ARENA_ARRAY(p->mem, uint32_t, p->nnodes + 1);
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_op_info *info = &ir_op_table[p->nodes[i].inst->op];
        stops[i + 1] = stops[i] + (info->control || info->writes);
    }
    return stops;
}

static void find_aimed(vm_plan *p) {
    if (p->lanes == 1) return;
    const uint32_t *stops = count_stops(p);
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *st = p->nodes[i].inst;
        if (st->op != IR_STORE || IR_MEM_ORDER(st->imm) != IR_PLAIN || !is_contiguous(p, st))
            continue;
        const ir_inst *from = st->args[1]->inst;
        vm_value *v = vm_value_of(p, st->args[1]);
        if (from == NULL || !is_elementwise(from) || from->parent != st->parent || v->uses != 1 ||
            v->stride != VM_VARYING)
            continue;
        v->aimed = stops[from->number + 1] == stops[st->number];
    }
}

static void use_value(vm_plan *p, const ir_value *v, const ir_inst *by, uint32_t at) {
    vm_value *x = vm_value_of(p, v);
    if (at > x->last) x->last = at;
    for (const ir_inst *o = by->parent->owner; o != NULL && vm_node_of(p, o)->at > x->first;
         o = o->parent->owner)
        if (o->op == IR_LOOP && vm_node_of(p, o)->end > x->last) x->last = vm_node_of(p, o)->end;
}

static void find_definitions(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const vm_node *n = &p->nodes[i];
        const ir_inst *in = n->inst;
        for (unsigned k = 0; k < in->nresults; k++) {
            vm_value *v = &p->values[in->results[k].id];
            v->first = n->at;
            v->last = n->end;
        }
        if (in->op != IR_LOOP) continue;
        for (unsigned k = 0; k < in->regions[0]->nparams; k++) {
            vm_value *v = &p->values[in->regions[0]->params[k].id];
            v->first = n->at;
            v->last = n->end;
        }
    }
}

/* The value is computed here: at its instruction, or at the store that is aimed. */
static uint32_t position_of(const vm_plan *p, const ir_inst *in) {
    if (in->nresults == 1 && vm_value_of(p, &in->results[0])->aimed)
        return vm_value_of(p, &in->results[0])->first;
    return vm_node_of(p, in)->at;
}

static void find_uses(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++) { /* aimed values move to their store first */
        const ir_inst *st = p->nodes[i].inst;
        if (st->op == IR_STORE && vm_value_of(p, st->args[1])->aimed) {
            vm_value *v = vm_value_of(p, st->args[1]);
            v->first = v->last = p->nodes[i].at;
        }
    }
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        for (unsigned k = 0; k < in->nargs; k++) use_value(p, in->args[k], in, position_of(p, in));
    }
    for (uint32_t i = p->nnodes; i-- > 0;) { /* a bitcast shares its operand's storage */
        const ir_inst *in = p->nodes[i].inst;
        if (!vm_is_bitcast(in)) continue;
        vm_value *from = vm_value_of(p, in->args[0]), *to = vm_value_of(p, &in->results[0]);
        if (to->last > from->last) from->last = to->last;
    }
}

/* A write at the very end of a forwarded load's life is harmless when it is the contiguous store of the
 * value, or of what is computed from it at the store (exec.c looks at overlap). */
static bool last_use_is_safe(const vm_plan *p, const vm_value *v) {
    const ir_inst *in = inst_at(p, v->last);
    if (in == NULL || !ir_op_table[in->op].writes || in->op == IR_FAULT) return true;
    return in->op == IR_STORE && is_contiguous(p, in) && IR_MEM_ORDER(in->imm) == IR_PLAIN;
}

static void find_forwarded(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        if (in->op != IR_LOAD || IR_MEM_ORDER(in->imm) != IR_PLAIN || !is_contiguous(p, in))
            continue;
        vm_value *v = vm_value_of(p, &in->results[0]);
        v->forward = !wrote_between(p, v->first, v->last) && last_use_is_safe(p, v);
    }
}

/* Where values are read last, and which are read by a bitcast, or in their own region by an aimed value,
 * which is computed later than it stands. */
static void find_reads(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        bool aimed = in->nresults == 1 && vm_value_of(p, &in->results[0])->aimed;
        for (unsigned k = 0; k < in->nargs; k++) {
            vm_value *v = vm_value_of(p, in->args[k]);
            v->read = p->nodes[i].at;
            v->pinned |= vm_is_bitcast(in) || (aimed && in->args[k]->region == in->parent);
        }
    }
}

/* next: the only `continue` of its loop passes it for `carried`; nothing reads carried after next. */
static bool may_share(vm_plan *p, const ir_inst *cont, unsigned k) {
    ir_value *carried = &cont->label->regions[0]->params[k];
    const ir_value *next = cont->args[k];
    const ir_inst *from = next->inst;
    vm_value *x = vm_value_of(p, next);
    if (from == NULL || !is_elementwise(from) || x->uses != 1 || x->stride != VM_VARYING)
        return false;
    if (from->parent != cont->parent || from->parent->owner != cont->label) return false;
    if (vm_value_of(p, carried)->stride != VM_VARYING) return false;
    const vm_value *old = vm_value_of(p, carried);
    return !old->pinned && old->read <= vm_node_of(p, from)->at;
}

/* A value that the first side of an `if` only passes on: computed where the result lives. The lanes of
 * the other side come later. */
static bool may_be_result(vm_plan *p, const ir_inst *br, unsigned k) {
    const ir_inst *branch = br->label, *from = br->args[k]->inst;
    vm_value *x = vm_value_of(p, br->args[k]);
    if (branch->op != IR_IF || br->parent != branch->regions[0] ||
        vm_construct_of(p, branch)->nested)
        return false;
    if (from == NULL || from->parent != br->parent || x->uses != 1 || x->stride != VM_VARYING)
        return false;
    if (vm_value_of(p, &branch->results[k])->stride != VM_VARYING) return false;
    return from->op == IR_LOAD || is_elementwise(from);
}

static void find_results(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        for (unsigned k = 0; in->op == IR_BR && k < in->nargs; k++) {
            if (!may_be_result(p, in, k)) continue;
            vm_value_of(p, in->args[k])->same = &in->label->results[k];
            vm_value_of(p, in->args[k])->forward = false;
        }
    }
}

static void find_shared(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const ir_inst *in = p->nodes[i].inst;
        if (in->op != IR_CONTINUE || vm_construct_of(p, in->label)->continues != 1) continue;
        for (unsigned k = 0; k < in->nargs; k++)
            if (may_share(p, in, k))
                vm_value_of(p, in->args[k])->same = &in->label->regions[0]->params[k];
    }
}

void vm_plan_lifetimes(vm_plan *p) {
    for (uint32_t i = 0; i < p->nnodes; i++)
        for (unsigned k = 0; k < p->nodes[i].inst->nargs; k++)
            vm_value_of(p, p->nodes[i].inst->args[k])->uses++;
    find_definitions(p);
    find_aimed(p);
    find_uses(p);
    find_forwarded(p);
    find_reads(p);
    find_shared(p);
    find_results(p);
}
