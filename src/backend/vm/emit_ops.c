/* IR to vm_inst: operations that compute, and those that touch memory or other threads. */
#include "backend/vm/emit.h"

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

/* In tenths of ns; a lane's in thousandths, as measured for f32 with AVX-512: an operation on values
 * in the first-level cache takes 0.03 ns, a division or root 0.16. */
void vm_add_cost(vm_emitter *e, uint64_t per_lane, bool vector) {
    e->cost += e->weight * (vector ? 40 + per_lane * e->c->lanes / 100 : 20);
}

/* ---- elementwise operations ---- */

static vm_inst *add_kernel(vm_emitter *e, bool scalar_op, vm_kernel k, uint32_t dst, uint32_t a,
                           uint32_t b, uint32_t c) {
    if (k == NULL && e->status == SIMT_OK)
        e->status = status_fail(SIMT_ERR_UNSUPPORTED,
                                "kernel %s: an operation has no code in the vm for its type",
                                e->p->f->name);
    vm_inst *in = vm_add(e, scalar_op ? VM_SCALAR : VM_VECTOR);
    in->kernel = k;
    in->dst = dst, in->a = a, in->b = b, in->c = c;
    vm_add_cost(e, 30, !scalar_op);
    return in;
}

/* Frequent scalar operations get a kind of their own; VM_KINDS: none. */
static vm_kind short_kind(const ir_inst *in) {
    static const struct {
        ir_op op;
        vm_type type;
        vm_kind kind;
    } rows[] = {
#define SCALAR(id, name, op, type, result, operands, value) {IR_##op, VM_##type, VM_##id},
#include "backend/vm/scalars.def"
#undef SCALAR
    };
    ir_op op = in->op == IR_PTRADD ? IR_ADD : in->op;
    vm_type type = vm_type_of(in->args[0]->type);
    size_t bytes = ir_type_bytes(in->results[0].type);
    if (op == IR_SELECT) return bytes == 4 ? VM_SELECT_32 : bytes == 8 ? VM_SELECT_64 : VM_KINDS;
    if (type == VM_I32 && bytes == 8 && (op == IR_SEXT || op == IR_ZEXT))
        return op == IR_SEXT ? VM_SEXT_32_64 : VM_ZEXT_32_64;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op && rows[i].type == type) return rows[i].kind;
    return VM_KINDS;
}

static bool add_short(vm_emitter *e, const ir_inst *in, uint32_t dst) {
    vm_kind kind = short_kind(in);
    if (kind == VM_KINDS) return false;
    vm_inst *x = vm_add(e, kind);
    x->dst = dst;
    x->a = vm_entry_of(e, in->args[0]);
    x->b = in->nargs > 1 ? vm_entry_of(e, in->args[1]) : 0;
    x->c = in->nargs > 2 ? vm_entry_of(e, in->args[2]) : 0;
    vm_add_cost(e, 0, false);
    return true;
}

typedef struct operand {
    uint32_t entry;
    bool one; /* a scalar */
} operand;

/* Operand as the kernel takes it; linear values become vectors unless all is scalar. */
static operand operand_of(vm_emitter *e, const ir_value *v, bool scalar_op) {
    bool one = scalar_op || vm_is_uniform(e, v);
    return (operand){.entry = one ? vm_entry_of(e, v) : vm_vector_of(e, v), .one = one};
}

static operand as_f32(vm_emitter *e, operand x, vm_type half, unsigned k) {
    uint32_t to;
    if (x.one)
        to = vm_new_cell(e);
    else if (e->temp[k] != 0)
        to = e->temp[k];
    else
        to = e->temp[k] = vm_new_slot(e, 4);
    add_kernel(e, x.one, e->c->kernels->cast[IR_FPEXT][half].to[VM_F32], to, x.entry, 0, 0);
    return (operand){.entry = to, .one = x.one};
}

static void splat_operand(vm_emitter *e, const ir_value *v, operand *x, vm_type half, unsigned k) {
    if (!x->one) return;
    *x = (operand){.entry = vm_vector_of(e, v), .one = false};
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

static void emit_arithmetic(vm_emitter *e, const ir_inst *in, uint32_t dst) {
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
        to = vm_new_cell(e);
    else if (back)
        to = e->temp[3] != 0 ? e->temp[3] : (e->temp[3] = vm_new_slot(e, 4));
    add_kernel(e, one, row->form[type][form], to, x[0].entry, x[1].entry, x[2].entry);
    if (ir_op_group(in->op) == IR_IN_MATH) vm_add_cost(e, 250, !one);
    if (in->op == IR_FDIV || in->op == IR_FSQRT) vm_add_cost(e, 130, !one);
    if (back) add_kernel(e, one, e->c->kernels->cast[IR_FPTRUNC][VM_F32].to[half], dst, to, 0, 0);
}

static void emit_cast(vm_emitter *e, const ir_inst *in, uint32_t dst) {
    bool one = vm_is_scalar(e->p, &in->results[0]);
    if (one && add_short(e, in, dst)) return;
    vm_type from = vm_type_of(in->args[0]->type), to = vm_type_of(in->results[0].type);
    operand x = {.entry = one ? vm_entry_of(e, in->args[0]) : vm_vector_of(e, in->args[0]),
                 .one = one};
    bool half = from == VM_F16 || from == VM_BF16;
    if (half && in->op != IR_FPEXT && in->op != IR_FPTRUNC) {
        x = as_f32(e, x, from, 0);
        from = VM_F32;
    }
    add_kernel(e, one, e->c->kernels->cast[in->op][from].to[to], dst, x.entry, 0, 0);
}

static void add_step(vm_emitter *e, vm_kind kind, uint32_t dst, uint32_t a, uint32_t b) {
    vm_inst *x = vm_add(e, kind);
    x->dst = dst, x->a = a, x->b = b;
    vm_add_cost(e, 0, false);
}

/* Steps that are known only at run time. */
static void emit_steps(vm_emitter *e, const ir_inst *in) {
    const vm_value *v = vm_value_of(e->p, &in->results[0]);
    if (v->stride != VM_ROWS || v->fixed_steps) return;
    const vm_value *a = vm_value_of(e->p, in->args[0]), *b = vm_value_of(e->p, in->args[1]);
    for (int d = 0; d < 3; d++) {
        uint32_t sa = vm_step_entry(e, a, d), sb = vm_step_entry(e, b, d);
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

static void emit_elementwise(vm_emitter *e, const ir_inst *in) {
    uint32_t dst = vm_entry_of(e, &in->results[0]);
    emit_steps(e, in);
    if (e->c->kernels->cast[in->op] != NULL)
        emit_cast(e, in, dst);
    else
        emit_arithmetic(e, in, dst);
    vm_widen(e, &in->results[0]);
}

/* ---- memory ---- */

static void emit_load(vm_emitter *e, const ir_inst *in) {
    const vm_value *address = vm_value_of(e->p, in->args[0]),
                   *v = vm_value_of(e->p, &in->results[0]);
    vm_kind kind = address->stride == VM_VARYING ? VM_LOAD_GATHER
                   : address->stride == VM_ROWS  ? VM_LOAD_ROWS
                   : address->stride == 0        ? VM_LOAD_SCALAR
                   : v->forward                  ? VM_LOAD_FORWARD
                                                 : VM_LOAD_LINEAR;
    vm_inst *x = vm_add(e, kind);
    x->dst = v->entry;
    x->a = address->entry;
    x->imm = kind == VM_LOAD_ROWS ? vm_new_rows(e, address) : address->stride;
    x->size = vm_log2_bytes(in->results[0].type);
    x->c = IR_MEM_ORDER(in->imm);
    bool streams = address->stride == (int64_t)ir_type_bytes(in->results[0].type);
    if (e->weight > 1 && streams) x->target = vm_new_cell(e);
    vm_add_cost(e, kind == VM_LOAD_GATHER ? 500 : 30, kind != VM_LOAD_SCALAR);
    vm_widen(e, &in->results[0]);
}

static void emit_store(vm_emitter *e, const ir_inst *in) {
    vm_value *address = vm_value_of(e->p, in->args[0]), *v = vm_value_of(e->p, in->args[1]);
    uint8_t size = vm_log2_bytes(in->args[1]->type);
    bool one =
        address->stride == 0 && v->stride != VM_VARYING && (v->stride == 0 || e->c->lanes == 1);
    if (v->aimed) {
        const ir_inst *from = in->args[1]->inst;
        vm_inst *aim = vm_add(e, VM_STORE_AIM);
        aim->dst = v->entry, aim->a = address->entry, aim->size = size;
        uint32_t operands[3] = {0};
        for (unsigned i = 0; i < from->nargs && i < 3; i++) {
            if (!vm_is_vector(e, from->args[i])) continue;
            operands[i] = vm_value_of(e->p, from->args[i])->entry;
            aim->imm |= (int64_t)vm_log2_bytes(from->args[i]->type) << 8 * i;
        }
        aim->b = operands[0], aim->c = operands[1], aim->target = operands[2];
        emit_elementwise(e, from);
        vm_inst *x = vm_add(e, VM_STORE_AIMED);
        x->dst = v->entry, x->a = address->entry, x->size = size;
        return;
    }
    vm_kind kind = one                             ? VM_STORE_SCALAR
                   : address->stride == VM_VARYING ? VM_STORE_SCATTER
                   : address->stride == VM_ROWS    ? VM_STORE_ROWS
                                                   : VM_STORE_LINEAR;
    uint32_t value = one ? v->entry : vm_vector_of(e, in->args[1]);
    vm_inst *x = vm_add(e, kind);
    x->a = address->entry, x->b = value;
    x->imm = kind == VM_STORE_ROWS ? vm_new_rows(e, address) : address->stride;
    x->size = size;
    x->dst = IR_MEM_ORDER(in->imm);
    x->c = v->forward ? v->entry : 0;
    vm_add_cost(e, kind == VM_STORE_SCATTER ? 500 : 30, kind != VM_STORE_SCALAR);
}

static void emit_atomic(vm_emitter *e, const ir_inst *in) {
    vm_value *address = vm_value_of(e->p, in->args[0]);
    vm_atomic *x = &e->c->atomics[e->c->natomics];
    ir_type space = in->args[0]->type;
    *x = (vm_atomic){.op = in->op,
                     .type = vm_type_of(in->args[1]->type),
                     .dst = vm_entry_of(e, &in->results[0]),
                     .address =
                         address->stride == VM_ROWS ? vm_vector_of(e, in->args[0]) : address->entry,
                     .gather = address->stride == VM_VARYING || address->stride == VM_ROWS,
                     .one = e->c->lanes == 1,
                     .unused = vm_value_of(e->p, &in->results[0])->uses == 0,
                     .shared = space == IR_PTR_SHARED || space == IR_PTR_LOCAL};
    x->stride = x->gather ? 0 : address->stride;
    operand b = operand_of(e, in->args[1], e->c->lanes == 1);
    x->b = b.entry, x->b_scalar = b.one;
    if (in->nargs > 2) {
        operand c = operand_of(e, in->args[2], e->c->lanes == 1);
        x->c = c.entry, x->c_scalar = c.one;
    }
    x->shortcut = vm_atomic_shortcut(x);
    vm_add(e, VM_ATOMIC)->imm = e->c->natomics++;
    vm_add_cost(e, 1000, true);
}

static void emit_fault(vm_emitter *e, const ir_inst *in) {
    vm_fault *x = &e->c->faults[e->c->nfaults];
    *x = (vm_fault){.number = (uint32_t)in->imm, .pos = in->pos};
    if (in->nargs > CODE_FAULT_VALUES && e->status == SIMT_OK)
        e->status = status_fail(SIMT_ERR_UNSUPPORTED, "kernel %s: a fault keeps %d values at most",
                                e->p->f->name, CODE_FAULT_VALUES);
    for (unsigned i = 0; i < in->nargs && e->status == SIMT_OK; i++) {
        const vm_value *v = vm_value_of(e->p, in->args[i]);
        x->vector[i] = v->stride == VM_VARYING || v->stride == VM_ROWS;
        x->value[i] = x->vector[i] ? vm_vector_of(e, in->args[i]) : v->entry;
        x->stride[i] = x->vector[i] ? 0 : v->stride;
        x->nvalues = i + 1;
    }
    vm_add(e, VM_FAULT)->imm = e->c->nfaults++;
}

static void emit_barrier(vm_emitter *e, const ir_inst *in) {
    uint32_t predicate = 0;
    bool one = false;
    if (in->nargs > 0) {
        operand x = operand_of(e, in->args[0], e->c->lanes == 1);
        predicate = x.entry, one = x.one;
    }
    vm_inst *x = vm_add(e, VM_BARRIER);
    x->imm = in->op;
    x->a = predicate, x->b = one;
    if (in->nresults > 0) {
        x->dst = vm_entry_of(e, &in->results[0]);
        vm_widen(e, &in->results[0]);
    }
}

static void emit_warp(vm_emitter *e, const ir_inst *in) {
    vm_warp *x = &e->c->warps[e->c->nwarps];
    bool shuffles = ir_op_group(in->op) == IR_IN_SHUFFLE, one = e->c->lanes == 1;
    operand o[4] = {{0}};
    for (unsigned i = 0; i < in->nargs; i++) o[i] = operand_of(e, in->args[i], one);
    *x = (vm_warp){.op = in->op, .pos = in->pos};
    if (in->nresults > 0) x->dst = vm_entry_of(e, &in->results[0]);
    if (in->op == IR_SYNCWARP) {
        x->mask = o[0].entry, x->one_mask = o[0].one;
    } else if (in->nargs > 0) {
        unsigned mask = shuffles ? 2 : 1;
        x->size = vm_log2_bytes(in->args[0]->type);
        x->value = o[0].entry, x->one_value = o[0].one;
        x->mask = o[mask].entry, x->one_mask = o[mask].one;
    }
    if (shuffles) {
        x->lane = o[1].entry, x->one_lane = o[1].one;
        x->width = o[3].entry, x->one_width = o[3].one;
    }
    vm_add(e, VM_WARP)->imm = e->c->nwarps++;
    vm_add_cost(e, 1000, true);
}

/* ---- calls: gangs are of one lane, so that all values are scalars ---- */

static vm_pass *new_passes(vm_emitter *e, uint32_t n) {
    return ARENA_ARRAY(&e->c->mem, vm_pass, n + 1);
}

static vm_pass passed(vm_emitter *e, const ir_value *v) {
    return (vm_pass){.entry = vm_entry_of(e, v), .size = vm_log2_bytes(v->type)};
}

static vm_call *new_call(vm_emitter *e, const ir_inst *in) {
    vm_call *x = &e->c->calls[e->c->ncalls++];
    *x = (vm_call){.function = (uint32_t)in->imm, .nargs = in->nargs, .pos = in->pos};
    x->args = new_passes(e, in->nargs);
    for (uint32_t i = 0; i < in->nargs; i++) x->args[i] = passed(e, in->args[i]);
    return x;
}

void vm_emit_return(vm_emitter *e, const ir_inst *in) {
    new_call(e, in);
    vm_add(e, VM_RETURN)->imm = e->c->ncalls - 1;
}

static void emit_call(vm_emitter *e, const ir_inst *in) {
    vm_call *x = new_call(e, in);
    x->nresults = in->nresults;
    x->results = new_passes(e, in->nresults);
    for (uint32_t i = 0; i < in->nresults; i++) x->results[i] = passed(e, &in->results[i]);
    vm_add(e, VM_CALL)->imm = e->c->ncalls - 1;
    e->cost += e->weight * 20000; /* how deep it goes is not known */
}

void vm_emit_op(vm_emitter *e, const ir_inst *in) {
    switch (in->op) {
    case IR_CALL: emit_call(e, in); return;
    case IR_CONST:
    case IR_SPECIAL:
    case IR_ALLOC:
    case IR_ALLOC_DYNAMIC:
    case IR_VARIABLE: vm_widen(e, &in->results[0]); return;
    case IR_CVTA:
    case IR_BITCAST:
        if (vm_is_vector(e, &in->results[0])) /* linear bits as floats */
            vm_vector_of(e, in->args[0]);
        vm_widen(e, &in->results[0]);
        return;
    case IR_LOAD: emit_load(e, in); return;
    case IR_STORE: emit_store(e, in); return;
    case IR_BARRIER:
    case IR_BARRIER_COUNT:
    case IR_BARRIER_AND:
    case IR_BARRIER_OR: emit_barrier(e, in); return;
    case IR_GRID_SYNC:
        e->c->base.meets = true;
        vm_add(e, VM_GRID_SYNC);
        return;
    case IR_FENCE: vm_add(e, VM_FENCE); return;
    case IR_FAULT: emit_fault(e, in); return;
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
