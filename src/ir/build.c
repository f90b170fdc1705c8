/* Facts of ops.def, and the builder. The builder does not fold: opt/fold.c does. */
#include "ir/ir.h"

#include <string.h>

#define HAS(flags, letter) (__builtin_strchr(flags, letter) != NULL)
const ir_op_info ir_op_table[IR_OP_COUNT] = {
#define OP(id, name, operands, types, result, flags, group, meaning) \
    [IR_##id] = {name,                                               \
                 meaning,                                            \
                 operands,                                           \
                 #types[0],                                          \
                 #result[0],                                         \
                 IR_IN_##group,                                      \
                 HAS(flags, 'P'),                                    \
                 HAS(flags, 'R'),                                    \
                 HAS(flags, 'W'),                                    \
                 HAS(flags, 'C'),                                    \
                 HAS(flags, 'M'),                                    \
                 HAS(flags, 'X'),                                    \
                 HAS(flags, 'T')},
#include "ir/ops.def"
#undef OP
};

static const struct {
    const char *name;
    uint8_t bytes, bits;
} types[IR_TYPE_COUNT] = {
    [IR_VOID] = {"void", 0, 0},
    [IR_I1] = {"i1", 1, 1},
    [IR_I8] = {"i8", 1, 8},
    [IR_I16] = {"i16", 2, 16},
    [IR_I32] = {"i32", 4, 32},
    [IR_I64] = {"i64", 8, 64},
    [IR_F16] = {"f16", 2, 16},
    [IR_BF16] = {"bf16", 2, 16},
    [IR_F32] = {"f32", 4, 32},
    [IR_F64] = {"f64", 8, 64},
    [IR_PTR_GLOBAL] = {"ptr.global", 8, 64},
    [IR_PTR_SHARED] = {"ptr.shared", 8, 64},
    [IR_PTR_LOCAL] = {"ptr.local", 8, 64},
    [IR_PTR_CONST] = {"ptr.const", 8, 64},
    [IR_PTR_GENERIC] = {"ptr.generic", 8, 64},
};

size_t ir_type_bytes(ir_type t) { return types[t].bytes; }
unsigned ir_type_bits(ir_type t) { return types[t].bits; }
const char *ir_type_name(ir_type t) { return types[t].name; }

bool ir_inst_needs_block(const ir_inst *inst) {
    if (inst->op == IR_CALL) return true; /* what it calls may */
    if (inst->op == IR_SPECIAL) return inst->imm == IR_LANEID;
    if (inst->op == IR_ALLOC) return inst->results->type == IR_PTR_SHARED;
    if (inst->op == IR_ALLOC_DYNAMIC) return true;
    return ir_op_table[inst->op].convergent && !ir_op_is_atomic(inst->op);
}

ir_type ir_type_of_dtype(dtype dt) {
    switch (dt) {
    case DT_F16: return IR_F16;
    case DT_BF16: return IR_BF16;
    case DT_F32: return IR_F32;
    case DT_F64: return IR_F64;
    default: break;
    }
    size_t bytes = dtype_bytes(dt);
    return bytes == 1 ? IR_I8 : bytes == 2 ? IR_I16 : bytes == 4 ? IR_I32 : IR_I64;
}

/* ---- functions ---- */

ir_func *ir_func_new(const char *name, const char *file) {
    size_t bytes = strlen(name) + 1, file_bytes = file ? strlen(file) + 1 : 1;
    arena mem;
    arena_init_sure(&mem);
    ir_func *f =
        arena_alloc(&mem, sizeof *f + bytes + file_bytes); /* at once: it is all, or nothing */
    if (!f) return NULL;
    char *names = (char *)(f + 1);
    f->mem = mem;
    f->name = memcpy(names, name, bytes);
    f->file = memcpy(names + bytes, file ? file : "", file_bytes);
    return f;
}

void ir_func_free(ir_func *f) {
    if (!f) return;
    for (uint32_t i = 0; i < f->nfunctions; i++) ir_func_free(f->functions[i]);
    arena mem = f->mem; /* f itself is in it */
    arena_deinit(&mem);
}

/* Parameters are kept in an array that must not move once values are used: add all of them first. */
ir_value *ir_func_add_param(ir_func *f, ir_type type, const char *name) {
    uint32_t n = f->body.nparams;
    if ((n & (n - 1)) == 0) { /* full at powers of two */
        ir_value *grown = ARENA_ARRAY(&f->mem, ir_value, n ? n * 2 : 1);
        if (n) memcpy(grown, f->body.params, sizeof *grown * n);
        f->body.params = grown;
    }
    ir_value *v = &f->body.params[f->body.nparams++];
    *v = (ir_value){.type = type, .id = f->next_id++, .region = &f->body, .index = n};
    if (name) v->name = arena_strdup(&f->mem, name);
    return v;
}

ir_value *ir_func_add_params(ir_func *f, const ir_type *types, const char *const *names,
                             unsigned n) {
    f->body.params = ARENA_ARRAY(&f->mem, ir_value, n + 1);
    f->body.nparams = n;
    for (unsigned i = 0; i < n; i++) {
        ir_value *v = &f->body.params[i];
        *v = (ir_value){.type = types[i], .id = f->next_id++, .region = &f->body, .index = i};
        if (names && names[i]) v->name = arena_strdup(&f->mem, names[i]);
    }
    return f->body.params;
}

void ir_func_add_variable(ir_func *kernel, const ir_variable *variable) {
    if (kernel->nvariables == kernel->variable_capacity) {
        uint32_t capacity = kernel->variable_capacity * 2 + 4;
        ir_variable *grown = ARENA_ARRAY(&kernel->mem, ir_variable, capacity);
        if (kernel->nvariables)
            memcpy(grown, kernel->variables, kernel->nvariables * sizeof *grown);
        kernel->variables = grown;
        kernel->variable_capacity = capacity;
    }
    ir_variable *v = &kernel->variables[kernel->nvariables];
    *v = *variable;
    v->name = arena_strdup(&kernel->mem, variable->name);
    uint8_t *init = arena_alloc(&kernel->mem, v->init_bytes + 1);
    if (v->init_bytes) memcpy(init, variable->init, v->init_bytes);
    v->init = init;
    kernel->nvariables++;
}

ir_func *ir_func_add_function(ir_func *kernel, const char *name, const ir_type *results,
                              unsigned nresults) {
    if (kernel->nfunctions == kernel->function_capacity) { /* before there is one to lose */
        uint32_t capacity = kernel->function_capacity * 2 + 4;
        ir_func **grown = ARENA_ARRAY(&kernel->mem, ir_func *, capacity);
        if (kernel->nfunctions)
            memcpy(grown, kernel->functions, kernel->nfunctions * sizeof *grown);
        kernel->functions = grown;
        kernel->function_capacity = capacity;
    }
    ir_func *f = ir_func_new(name, "");
    kernel->functions[kernel->nfunctions++] = f;
    f->unit = kernel;
    f->results = ARENA_ARRAY(&f->mem, ir_type, nresults + 1);
    f->nresults = nresults;
    if (nresults) memcpy(f->results, results, sizeof *results * nresults);
    return f;
}

/* ---- instructions ---- */

uint16_t ir_func_add_call(ir_func *f, const char *function, const char *file, source_pos at) {
    if (f->ncalls == SOURCE_MOST_CALLS) return 0;
    if (f->ncalls == f->call_capacity) {
        uint32_t capacity = f->call_capacity * 2 + 8;
        source_call *grown = ARENA_ARRAY(&f->mem, source_call, capacity);
        if (f->ncalls > 0) memcpy(grown, f->calls, f->ncalls * sizeof *grown);
        f->calls = grown;
        f->call_capacity = capacity;
    }
    source_call *call = &f->calls[f->ncalls];
    *call = (source_call){
        .function = arena_strdup(&f->mem, function), .file = arena_strdup(&f->mem, file), .at = at};
    return (uint16_t)++f->ncalls;
}

ir_builder ir_builder_at_end(ir_func *f, ir_region *region) {
    return (ir_builder){.f = f, .at = region};
}

static void link_inst(ir_builder *b, ir_inst *inst) {
    inst->parent = b->at;
    inst->next = b->before;
    inst->prev = b->before ? b->before->prev : b->at->last;
    if (inst->prev)
        inst->prev->next = inst;
    else
        b->at->first = inst;
    if (inst->next)
        inst->next->prev = inst;
    else
        b->at->last = inst;
}

ir_inst *ir_inst_add(ir_builder *b, ir_op op, const ir_type *results, unsigned nresults,
                     ir_value **args, unsigned nargs, uint64_t imm) {
    arena *mem = &b->f->mem;
    ir_inst *inst = ARENA_NEW(mem, ir_inst);
    ir_value *values = ARENA_ARRAY(mem, ir_value, nresults + 1);
    ir_value **copy = ARENA_ARRAY(mem, ir_value *, nargs + 1);
    *inst = (ir_inst){.op = op,
                      .nargs = nargs,
                      .nresults = nresults,
                      .args = copy,
                      .results = values,
                      .imm = imm,
                      .pos = b->pos};
    if (nargs) memcpy(copy, args, sizeof *copy * nargs);
    for (unsigned i = 0; i < nresults; i++)
        values[i] = (ir_value){.type = results[i], .id = b->f->next_id++, .inst = inst, .index = i};
    link_inst(b, inst);
    return inst;
}

static ir_value *add_value(ir_builder *b, ir_op op, ir_type type, ir_value **args, unsigned nargs,
                           uint64_t imm) {
    return ir_inst_add(b, op, &type, 1, args, nargs, imm)->results;
}

ir_value *ir_const_bits(ir_builder *b, ir_type type, uint64_t bits) {
    return add_value(b, IR_CONST, type, NULL, 0, ir_cut_bits(bits, type));
}

ir_value *ir_const_int(ir_builder *b, ir_type type, int64_t value) {
    return ir_const_bits(b, type, (uint64_t)value);
}

ir_value *ir_const_float(ir_builder *b, ir_type type, double value) {
    uint64_t bits = 0;
    float single = (float)value;
    switch (type) {
    case IR_F16: bits = float_to_half(single); break;
    case IR_BF16: bits = float_to_bfloat(single); break;
    case IR_F32: memcpy(&bits, &single, 4); break;
    default: memcpy(&bits, &value, 8); break;
    }
    return ir_const_bits(b, type, bits);
}

ir_value *ir_special_value(ir_builder *b, ir_special which) {
    bool wide = which >= IR_INDEX_X && which <= IR_INDEX_Z;
    return add_value(b, IR_SPECIAL, wide ? IR_I64 : IR_I32, NULL, 0, which);
}

/* The letter of an operation that is none (IR_OP_COUNT: a front end has no spelling) is 0; the verifier
 * refuses the function. */
static char result_rule(ir_op op) {
    return (unsigned)op < IR_OP_COUNT ? ir_op_table[op].result : '\0';
}

/* Result rules S, B and D follow from operand 0. */
static ir_type result_type(ir_op op, const ir_value *first) {
    if (op == IR_FREXP_EXPONENT) return IR_I32;
    return result_rule(op) == 'B' ? IR_I1 : first->type;
}

ir_value *ir_unary(ir_builder *b, ir_op op, ir_value *a) {
    return add_value(b, op, result_type(op, a), &a, 1, 0);
}

ir_value *ir_binary(ir_builder *b, ir_op op, ir_value *a, ir_value *c) {
    ir_value *args[2] = {a, c};
    return add_value(b, op, result_type(op, a), args, 2, 0);
}

ir_value *ir_ternary(ir_builder *b, ir_op op, ir_value *a, ir_value *c, ir_value *d) {
    ir_value *args[3] = {a, c, d};
    return add_value(b, op, result_rule(op) == 'L' ? c->type : result_type(op, a), args, 3, 0);
}

ir_value *ir_select(ir_builder *b, ir_value *cond, ir_value *yes, ir_value *no) {
    return ir_ternary(b, IR_SELECT, cond, yes, no);
}

ir_value *ir_cast(ir_builder *b, ir_op op, ir_type to, ir_value *a) {
    return add_value(b, op, to, &a, 1, 0);
}
ir_value *ir_ptradd(ir_builder *b, ir_value *ptr, ir_value *bytes) {
    return ir_binary(b, IR_PTRADD, ptr, bytes);
}

ir_value *ir_alloc(ir_builder *b, ir_type ptr_type, size_t bytes) {
    return add_value(b, IR_ALLOC, ptr_type, NULL, 0, bytes);
}

ir_value *ir_alloc_dynamic(ir_builder *b) {
    return add_value(b, IR_ALLOC_DYNAMIC, IR_PTR_SHARED, NULL, 0, 0);
}

ir_value *ir_variable_address(ir_builder *b, uint32_t number) {
    return add_value(b, IR_VARIABLE, ir_kernel_of(b->f)->variables[number].space, NULL, 0, number);
}

ir_value *ir_cvta(ir_builder *b, ir_type to, ir_value *ptr) {
    return ptr->type == to ? ptr : ir_cast(b, IR_CVTA, to, ptr);
}

ir_value *ir_load(ir_builder *b, ir_type type, ir_value *ptr, uint64_t mem) {
    return add_value(b, IR_LOAD, type, &ptr, 1, mem);
}

void ir_store(ir_builder *b, ir_value *ptr, ir_value *value, uint64_t mem) {
    ir_value *args[2] = {ptr, value};
    ir_inst_add(b, IR_STORE, NULL, 0, args, 2, mem);
}

ir_value *ir_atomic(ir_builder *b, ir_op op, ir_value *ptr, ir_value *v, ir_value *w,
                    uint64_t mem) {
    ir_value *args[3] = {ptr, v, w};
    return add_value(b, op, v->type, args, w ? 3 : 2, mem);
}

void ir_barrier(ir_builder *b) { ir_inst_add(b, IR_BARRIER, NULL, 0, NULL, 0, 0); }
ir_value *ir_barrier_reduce(ir_builder *b, ir_op op, ir_value *predicate) {
    return ir_unary(b, op, predicate);
}
void ir_grid_sync(ir_builder *b) { ir_inst_add(b, IR_GRID_SYNC, NULL, 0, NULL, 0, 0); }
void ir_fence(ir_builder *b, ir_scope scope) { ir_inst_add(b, IR_FENCE, NULL, 0, NULL, 0, scope); }

void ir_fault(ir_builder *b, uint32_t number, ir_value **args, unsigned nargs) {
    ir_inst_add(b, IR_FAULT, NULL, 0, args, nargs, number);
}

ir_value *ir_activemask(ir_builder *b) { return add_value(b, IR_ACTIVEMASK, IR_I32, NULL, 0, 0); }
void ir_syncwarp(ir_builder *b, ir_value *mask) {
    ir_inst_add(b, IR_SYNCWARP, NULL, 0, &mask, 1, 0);
}
ir_value *ir_shfl(ir_builder *b, ir_op op, ir_value *v, ir_value *lane, ir_value *mask,
                  ir_value *width) {
    ir_value *args[4] = {v, lane, mask, width};
    return add_value(b, op, v->type, args, 4, 0);
}
ir_value *ir_vote(ir_builder *b, ir_op op, ir_value *v, ir_value *mask) {
    ir_value *args[2] = {v, mask};
    return add_value(b, op, ir_op_table[op].result == 'D' ? IR_I1 : IR_I32, args, 2, 0);
}

/* ---- constructs ---- */

static ir_inst *add_regions(ir_builder *b, ir_inst *inst, int count) {
    for (int i = 0; i < count; i++) {
        ir_region *region = ARENA_NEW(&b->f->mem, ir_region);
        region->owner = inst;
        inst->regions[i] = region;
    }
    return inst;
}

ir_inst *ir_block(ir_builder *b, const ir_type *results, unsigned nresults) {
    return add_regions(b, ir_inst_add(b, IR_BLOCK, results, nresults, NULL, 0, 0), 1);
}

ir_inst *ir_loop(ir_builder *b, ir_value **init, unsigned ninit, const ir_type *results,
                 unsigned nresults) {
    ir_inst *loop = add_regions(b, ir_inst_add(b, IR_LOOP, results, nresults, init, ninit, 0), 1);
    ir_region *body = loop->regions[0];
    body->params = ARENA_ARRAY(&b->f->mem, ir_value, ninit + 1);
    body->nparams = ninit;
    for (unsigned i = 0; i < ninit; i++)
        body->params[i] =
            (ir_value){.type = init[i]->type, .id = b->f->next_id++, .region = body, .index = i};
    return loop;
}

ir_inst *ir_if(ir_builder *b, ir_value *cond, const ir_type *results, unsigned nresults) {
    return add_regions(b, ir_inst_add(b, IR_IF, results, nresults, &cond, 1, 0), 2);
}

static void add_jump(ir_builder *b, ir_op op, ir_inst *label, ir_value **values, unsigned nvalues) {
    ir_inst_add(b, op, NULL, 0, values, nvalues, 0)->label = label;
}

void ir_br(ir_builder *b, ir_inst *label, ir_value **values, unsigned nvalues) {
    add_jump(b, IR_BR, label, values, nvalues);
}

void ir_continue(ir_builder *b, ir_inst *loop, ir_value **values, unsigned nvalues) {
    add_jump(b, IR_CONTINUE, loop, values, nvalues);
}

void ir_return(ir_builder *b) { ir_inst_add(b, IR_RETURN, NULL, 0, NULL, 0, 0); }
void ir_return_values(ir_builder *b, ir_value **values, unsigned nvalues) {
    ir_inst_add(b, IR_RETURN, NULL, 0, values, nvalues, 0);
}
void ir_exit(ir_builder *b) { ir_inst_add(b, IR_EXIT, NULL, 0, NULL, 0, 0); }

ir_inst *ir_call(ir_builder *b, uint32_t number, ir_value **args, unsigned nargs) {
    const ir_func *callee = ir_kernel_of(b->f)->functions[number];
    return ir_inst_add(b, IR_CALL, callee->results, callee->nresults, args, nargs, number);
}
