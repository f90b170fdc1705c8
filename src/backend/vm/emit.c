/* IR to vm_inst: the walk over the function, and control.
 *
 * Runs twice over the function: the first time to learn which scalars are also needed as vectors, then,
 * when slots are assigned, for good. Lane sets: every construct has two by its depth, the lanes that
 * left it (exit), and the else part of an if or the lanes that continue a loop. A terminator that is
 * not simply the end of its region puts the current lanes into a set and jumps to its region's end,
 * where the construct takes up other lanes; with none left, it goes to the end of the region around.
 * A gang of one lane has no sets: terminators jump to where it goes on.
 */
#include "backend/vm/emit.h"

static uint32_t *fixes_of(vm_emitter *e, const ir_region *r) {
    if (r->owner == NULL) return &e->body_fixes;
    return &vm_node_of(e->p, r->owner)->fixes[r == r->owner->regions[1]];
}

/* Makes instruction i jump to where `fixes` will be patched to. */
static void jump_later(vm_emitter *e, uint32_t i, uint32_t *fixes) {
    e->c->insts[i].target = *fixes;
    *fixes = i + 1;
}

/* ... to the end of region r. */
static void jump_to_end(vm_emitter *e, uint32_t i, const ir_region *r) {
    jump_later(e, i, fixes_of(e, r));
}

static bool is_alone(const vm_emitter *e) { return e->c->lanes == 1; }

/* For one lane: a jump behind the construct. */
static void jump_behind(vm_emitter *e, const ir_inst *construct) {
    vm_add(e, VM_JUMP);
    jump_later(e, e->c->ninsts - 1, &vm_node_of(e->p, construct)->fixes[construct->op != IR_BLOCK]);
}

static void patch(vm_emitter *e, uint32_t *fixes, uint32_t to) {
    while (*fixes != 0) {
        vm_inst *in = &e->c->insts[*fixes - 1];
        *fixes = in->target;
        in->target = to;
    }
}

static uint16_t exit_set(const facts_construct *n) { return (uint16_t)(2 * n->depth); }
static bool converges(const facts_construct *n) { return !facts_escapes(n) && !n->nested; }

/* Whether a br to this construct puts lanes into its exit set. */
static bool collects(const vm_emitter *e, const ir_inst *in) {
    const facts_construct *n = vm_construct_of(e->p, in);
    if (is_alone(e)) return false;
    if (in->op == IR_LOOP) return true;
    return vm_splits(e->p, in) ? !converges(n) : n->nested;
}

static void emit_copy(vm_emitter *e, const ir_value *to, uint32_t to_entry, const ir_value *from,
                      uint32_t from_entry) {
    bool vector_to = vm_is_vector(e, to), splat = vm_is_uniform(e, from);
    if (vector_to && vm_is_vector(e, from) && to_entry == from_entry && !e->dry) return;
    if (vector_to && !splat && from_entry == vm_entry_of(e, from))
        from_entry = vm_vector_of(e, from);
    vm_inst *in =
        vm_add(e, !vector_to ? (vm_log2_bytes(to->type) == 2 ? VM_COPY_32 : VM_COPY_SCALAR)
                  : splat    ? VM_COPY_SPLAT
                             : VM_COPY_VECTOR);
    in->dst = to_entry, in->a = from_entry;
    in->size = vm_log2_bytes(to->type);
    vm_add_cost(e, 30, vector_to);
}

static void emit_br(vm_emitter *e, const ir_inst *in) {
    for (unsigned i = 0; i < in->nargs; i++)
        emit_copy(e, &in->label->results[i], vm_entry_of(e, &in->label->results[i]), in->args[i],
                  vm_entry_of(e, in->args[i]));
    bool leaves = in->parent->owner != in->label || collects(e, in->label);
    bool last = in->label->op == IR_BLOCK || in->parent == in->label->regions[1] ||
                vm_splits(e->p, in->label);
    if (!leaves && last) return; /* falls out of the region's end */
    if (is_alone(e)) {
        jump_behind(e, in->label);
        return;
    }
    vm_inst *x = vm_add(e, leaves ? VM_LEAVE : VM_JUMP);
    x->set = exit_set(vm_construct_of(e->p, in->label));
    jump_to_end(e, e->c->ninsts - 1, in->parent);
}

/* For one lane: no `continue` passes what another carried value was, so that they are set one after the
 * other. */
static bool sets_directly(vm_emitter *e, const ir_inst *loop) {
    const facts_places *places = &e->p->facts->places;
    const ir_region *body = loop->regions[0];
    uint32_t n = facts_construct_of(places, loop)->first_jump;
    for (; n != FACTS_NONE; n = places->insts[n].next_jump) {
        const ir_inst *in = places->insts[n].inst;
        if (in->op != IR_CONTINUE) continue;
        e->setting++;
        for (unsigned i = 0; i < in->nargs; i++) {
            if (vm_bitcast_root(e->p, in->args[i])->set == e->setting) return false;
            vm_value_of(e->p, &body->params[i])->set = e->setting;
        }
    }
    return true;
}

static void continue_alone(vm_emitter *e, const ir_inst *in) {
    const ir_region *body = in->label->regions[0];
    for (unsigned i = 0; i < in->nargs; i++) {
        vm_value *x = vm_value_of(e->p, &body->params[i]);
        uint32_t from = vm_entry_of(e, in->args[i]),
                 to = x->next_cell != 0 ? x->next_cell : x->entry;
        if (from != to) emit_copy(e, &body->params[i], to, in->args[i], from);
    }
    if (in->parent == body) return;
    vm_add(e, VM_JUMP);
    jump_to_end(e, e->c->ninsts - 1, body);
}

/* Carried vectors that become other carried values are read before these change: the slots that they are
 * copied to, 0 for the others. */
static uint32_t *stage_carried(vm_emitter *e, const ir_inst *in) {
    const ir_region *body = in->label->regions[0];
    uint32_t *stage = ARENA_ARRAY(e->p->mem, uint32_t, in->nargs + 1);
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *from = in->args[i];
        if (from->region != body || from->index == i || !vm_is_vector(e, from)) continue;
        stage[i] = e->dry ? 0 : vm_new_slot(e, ir_type_bytes(from->type));
        vm_inst *x = vm_add(e, VM_COPY_VECTOR);
        x->dst = stage[i], x->a = vm_entry_of(e, from), x->size = vm_log2_bytes(from->type);
    }
    return stage;
}

/* The next state of a loop's scalars waits in a cell of its own until the round is over. */
static void emit_continue(vm_emitter *e, const ir_inst *in) {
    const ir_region *body = in->label->regions[0];
    if (is_alone(e)) {
        continue_alone(e, in);
        return;
    }
    const uint32_t *stage = stage_carried(e, in);
    for (unsigned i = 0; i < in->nargs; i++) {
        const ir_value *to = &body->params[i];
        vm_value *x = vm_value_of(e->p, to);
        uint32_t from = stage[i] != 0 ? stage[i] : vm_entry_of(e, in->args[i]);
        emit_copy(e, to, x->stride == VM_VARYING ? x->entry : x->next_cell, in->args[i], from);
    }
    vm_inst *x = vm_add(e, VM_LEAVE);
    x->set = (uint16_t)(exit_set(vm_construct_of(e->p, in->label)) + 1);
    jump_to_end(e, e->c->ninsts - 1, in->parent);
}

static void emit_region(vm_emitter *e, const ir_region *r);

/* After a construct: the lanes that go on; none: the end of the region around it. */
static void emit_after(vm_emitter *e, const ir_inst *in) {
    const facts_construct *n = vm_construct_of(e->p, in);
    bool join = collects(e, in) || vm_splits(e->p, in);
    if (join || (facts_escapes(n) && !is_alone(e))) {
        vm_inst *x = vm_add(e, join ? VM_JOIN : VM_CHECK);
        x->set = exit_set(n);
        jump_to_end(e, e->c->ninsts - 1, in->parent);
    }
    for (unsigned i = 0; i < in->nresults; i++) vm_widen(e, &in->results[i]);
}

static void emit_block(vm_emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(e->p, in);
    if (collects(e, in)) vm_add(e, VM_CLEAR)->set = exit_set(vm_construct_of(e->p, in));
    emit_region(e, in->regions[0]);
    patch(e, &n->fixes[0], e->c->ninsts);
    emit_after(e, in);
}

/* A compare of two scalars that differs between lanes, or several that all must hold. */
static bool is_linear_condition(vm_emitter *e, const ir_value *v, unsigned depth, unsigned *count) {
    const ir_inst *in = v->inst;
    if (depth > 0 && vm_is_uniform(e, v)) return ++*count <= VM_MOST_COMPARES;
    if (in == NULL || e->c->lanes == 1 || depth > 8 || !vm_is_vector(e, v)) return false;
    if (in->op == IR_AND)
        return is_linear_condition(e, in->args[0], depth + 1, count) &&
               is_linear_condition(e, in->args[1], depth + 1, count);
    if (ir_op_group(in->op) != IR_IN_COMPARE || in->args[0]->type == IR_I1) return false;
    return ++*count <= VM_MOST_COMPARES && vm_is_scalar(e->p, in->args[0]) &&
           vm_is_scalar(e->p, in->args[1]);
}

/* Finds the conditions that only ifs look at: nothing computes them for each lane. */
static void find_conditions(vm_emitter *e) {
    const vm_plan *p = e->p;
    for (uint32_t i = 0; i < p->nvalues; i++) {
        unsigned count = 0;
        const ir_value *v = p->values[i].value;
        if (v != NULL && v->type == IR_I1 && vm_is_vector(e, v))
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

static void add_compares(vm_emitter *e, const ir_value *v) {
    const ir_inst *in = v->inst;
    if (vm_is_uniform(e, v)) {
        e->c->compares[e->c->ncompares++] =
            (vm_compare){.op = IR_NE, .bits = 8, .a = vm_entry_of(e, v), .b = e->zero};
        return;
    }
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
        k->step_a[d] = vm_step_entry(e, a, d);
        k->step_b[d] = vm_step_entry(e, b, d);
    }
}

static bool only_leaves(const ir_region *r) {
    return r == NULL || r->first == NULL ||
           (r->first->op == IR_BR && r->first->nargs == 0 && r->first->label == r->owner);
}

static void emit_condition(vm_emitter *e, const ir_inst *in) {
    unsigned count = 0;
    if (!is_linear_condition(e, in->args[0], 0, &count)) {
        vm_inst *x = vm_add(e, VM_IF_VECTOR);
        x->a = vm_entry_of(e, in->args[0]);
        return;
    }
    vm_add(e, VM_IF_LINEAR)->imm = e->c->ncompares;
    add_compares(e, in->args[0]);
    e->c->compares[e->c->ncompares - 1].last = true;
}

static void emit_if_vector(vm_emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(e->p, in);
    const facts_construct *c = vm_construct_of(e->p, in);
    bool no_else = converges(c) && only_leaves(in->regions[1]);
    emit_condition(e, in);
    uint32_t head = e->c->ninsts - 1;
    vm_inst *x = &e->c->insts[head];
    x->set = exit_set(c);
    x->flags = (uint8_t)((converges(c) ? VM_FLAG_CONVERGES : 0) | (no_else ? VM_FLAG_NO_ELSE : 0));
    emit_region(e, in->regions[0]);
    patch(e, &n->fixes[0], e->c->ninsts);
    e->c->insts[head].target = e->c->ninsts;
    if (!no_else) {
        vm_add(e, VM_ELSE)->set = (uint16_t)(exit_set(c) + 1);
        jump_to_end(e, e->c->ninsts - 1, in->regions[1]);
        emit_region(e, in->regions[1]);
        patch(e, &n->fixes[1], e->c->ninsts);
    }
    emit_after(e, in);
}

static void emit_if_scalar(vm_emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(e->p, in);
    if (collects(e, in)) vm_add(e, VM_CLEAR)->set = exit_set(vm_construct_of(e->p, in));
    bool skips = only_leaves(in->regions[0]) && !collects(e, in);
    vm_add(e, skips ? VM_IF_NOT : VM_IF_SCALAR)->a = vm_entry_of(e, in->args[0]);
    uint32_t head = e->c->ninsts - 1;
    if (skips) {
        jump_later(e, head, &n->fixes[0]);
    } else {
        emit_region(e, in->regions[0]);
        e->c->insts[head].target = e->c->ninsts;
    }
    emit_region(e, in->regions[1]);
    patch(e, &n->fixes[0], e->c->ninsts);
    patch(e, &n->fixes[1], e->c->ninsts);
    emit_after(e, in);
}

static void emit_loop(vm_emitter *e, const ir_inst *in) {
    vm_node *n = vm_node_of(e->p, in);
    uint32_t number = facts_number_of(&e->p->facts->places, in);
    const facts_construct *c = &e->p->facts->places.constructs[number];
    const ir_region *body = in->regions[0];
    bool direct = is_alone(e) && sets_directly(e, in);
    for (unsigned i = 0; i < in->nargs; i++) {
        vm_value *x = vm_value_of(e->p, &body->params[i]);
        if (x->stride != VM_VARYING && x->next_cell == 0 && !direct) x->next_cell = vm_new_cell(e);
        emit_copy(e, &body->params[i], x->entry, in->args[i], vm_entry_of(e, in->args[i]));
    }
    for (int k = 0; k < 2 && !is_alone(e); k++)
        vm_add(e, VM_CLEAR)->set = (uint16_t)(exit_set(c) + k);
    uint32_t head = e->c->ninsts;
    uint64_t weight = e->weight, cost = e->cost;
    e->weight = weight * 16 > 1 << 20 ? weight : weight * 16;
    uint64_t inner = e->weight;
    for (unsigned i = 0; i < body->nparams; i++) vm_widen(e, &body->params[i]);
    emit_region(e, body);
    e->weight = weight;
    patch(e, &n->fixes[0], e->c->ninsts);
    uint32_t next = e->c->ninsts;
    if (!is_alone(e)) vm_add(e, VM_LOOP_NEXT)->set = (uint16_t)(exit_set(c) + 1);
    for (unsigned i = 0; i < body->nparams; i++) {
        vm_value *x = vm_value_of(e->p, &body->params[i]);
        if (x->stride == VM_VARYING || direct) continue;
        // Four bytes at their own width: the place may be one of the frame's 32-bit fields.
        bool word = vm_log2_bytes(body->params[i].type) == 2;
        vm_inst *copy = vm_add(e, word ? VM_COPY_32 : VM_COPY_SCALAR);
        copy->dst = x->entry, copy->a = x->next_cell;
    }
    vm_inst *back = vm_add(e, VM_LOOP_BACK);
    back->target = head, back->flags = e->p->facts->spins[number] ? VM_FLAG_SPIN : 0;
    back->line = in->pos.line, back->call = in->pos.call;
    back->imm = 1 + (int64_t)((e->cost - cost) / inner / VM_ROUND_COST);
    if (!is_alone(e)) e->c->insts[next].target = e->c->ninsts;
    patch(e, &n->fixes[1], e->c->ninsts);
    emit_after(e, in);
}

static void emit_inst(vm_emitter *e, const ir_inst *in) {
    switch (in->op) {
    case IR_BLOCK: emit_block(e, in); return;
    case IR_LOOP: emit_loop(e, in); return;
    case IR_IF:
        if (vm_splits(e->p, in))
            emit_if_vector(e, in);
        else
            emit_if_scalar(e, in);
        return;
    case IR_BR: emit_br(e, in); return;
    case IR_CONTINUE: emit_continue(e, in); return;
    case IR_RETURN:
    case IR_EXIT:
        if (in->op == IR_RETURN && e->c->is_function) {
            vm_emit_return(e, in);
            return;
        }
        vm_add(e, is_alone(e) ? VM_JUMP : VM_END_LANES);
        jump_later(e, e->c->ninsts - 1, is_alone(e) ? &e->body_fixes : fixes_of(e, in->parent));
        return;
    default: vm_emit_op(e, in);
    }
}

static void emit_region(vm_emitter *e, const ir_region *r) {
    if (r == NULL) return;
    uint32_t made = e->nmade;
    source_pos outer = e->pos;
    const ir_region *around = e->region;
    e->region = r;
    for (const ir_inst *in = r->first; in != NULL && e->status == SIMT_OK; in = in->next) {
        e->pos = in->pos;
        emit_inst(e, in);
    }
    e->pos = outer;
    e->region = around;
    vm_forget_vectors(e, made);
}

static void emit_function(vm_emitter *e) {
    vm_code *c = e->c;
    c->ninsts = c->natomics = c->nfaults = c->ncompares = c->nwarps = c->nrows = c->ncalls = 0;
    e->cost = 0, e->weight = 1;
    e->region = &e->p->f->body;
    for (uint32_t i = 0; i < e->p->f->body.nparams; i++) vm_widen(e, &e->p->f->body.params[i]);
    emit_region(e, &e->p->f->body);
    patch(e, &e->body_fixes, c->ninsts);
    vm_add(e, VM_FINISH);
}

simt_status vm_emit(vm_plan *p, vm_code *c) {
    vm_emitter e = {.p = p, .c = c};
    uint32_t atomics = 0, faults = 0, ifs = 0, warps = 0, calls = 0;
    for (uint32_t i = 0; i < p->nnodes; i++) {
        ir_op op = p->nodes[i].inst->op;
        atomics += ir_op_is_atomic(op);
        warps += ir_op_is_warp(op);
        faults += op == IR_FAULT;
        calls += op == IR_CALL || op == IR_RETURN;
        ifs += op == IR_IF;
    }
    c->atomics = ARENA_ARRAY(p->mem, vm_atomic, atomics + 1);
    c->faults = ARENA_ARRAY(p->mem, vm_fault, faults + 1);
    c->compares = ARENA_ARRAY(p->mem, vm_compare, VM_MOST_COMPARES * ifs + 1);
    c->warps = ARENA_ARRAY(p->mem, vm_warp, warps + 1);
    c->calls = ARENA_ARRAY(p->mem, vm_call, calls + 1);
    e.made = ARENA_ARRAY(p->mem, vm_value *, p->nvalues + 1);
    vm_new_cell(&e); /* entry 0: none */
    e.zero = vm_new_constant(&e, 0);
    vm_place_scalars(&e);
    find_conditions(&e);
    e.dry = true;
    if (e.status == SIMT_OK) emit_function(&e);
    e.dry = false;
    vm_place_vectors(&e);
    if (e.status == SIMT_OK) emit_function(&e);
    c->nsets = c->is_function ? 0 : 2 * p->max_depth + 2;
    c->base.cost_per_block = e.cost / 10 + 20;
    return e.status;
}
