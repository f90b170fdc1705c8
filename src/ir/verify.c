/* The verifier: is this a function as ir.h describes it?
 *
 * Checked: types by the rules of ops.def; every operand defined before, in this region or one around it;
 * labels name enclosing constructs and carry values of the right number and types; a terminator ends every
 * region and stands nowhere else.
 */
#include "base/code.h"
#include "ir/ir.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

typedef struct verifying {
    const ir_func *f;
    uint32_t count;
} verifying;

/* The calls of a unit are the kernel's. */
static void set_source(const ir_func *f, source_pos at) {
    const ir_func *kernel = f->unit ? f->unit : f;
    status_set_source(kernel->name, kernel->file, kernel->calls, at);
}

static simt_status bad(const verifying *v, const ir_inst *inst, const char *what) {
    simt_status status =
        status_fail(SIMT_ERR_IR_INVALID, "kernel '%s', instruction %" PRIu32 " (%s): %s",
                    v->f->name, v->count, ir_op_table[inst->op].name, what);
    if (inst->pos.line) set_source(v->f, inst->pos);
    return status;
}

static bool type_allowed(char letter, ir_type t) {
    switch (letter) {
    case 'I': return ir_type_is_int(t);
    case 'N': return ir_type_is_int(t) && t != IR_I1;
    case 'F': return ir_type_is_float(t);
    case 'A': return ir_type_is_float(t) || (ir_type_is_int(t) && t != IR_I1);
    case 'W': return t == IR_F32 || t == IR_F64;
    case 'B': return t == IR_I1;
    case 'P': return ir_type_is_ptr(t);
    default: return t != IR_VOID;
    }
}

/* A value is visible when it is marked: marks are set as definitions are passed and cleared when their
 * region ends, which is dominance in a structured function. */
#define VISIBLE ((void *)1)

static simt_status check_conversion(const verifying *v, const ir_inst *inst) {
    ir_type from = inst->args[0]->type, to = inst->results->type;
    bool fits = true;
    switch (inst->op) {
    case IR_TRUNC: fits = ir_type_is_int(to) && ir_type_bits(to) <= ir_type_bits(from); break;
    case IR_SEXT:
    case IR_ZEXT: fits = ir_type_is_int(to) && ir_type_bits(to) >= ir_type_bits(from); break;
    case IR_SITOFP:
    case IR_UITOFP: fits = ir_type_is_float(to); break;
    case IR_FPTOSI:
    case IR_FPTOUI:
    case IR_CVT_NUMPY_S:
    case IR_CVT_NUMPY_U: fits = ir_type_is_int(to) && to != IR_I1; break;
    case IR_FPEXT: fits = ir_type_is_float(to) && ir_type_bits(to) > ir_type_bits(from); break;
    case IR_FPTRUNC:
        fits = ir_type_is_float(to) && to != from && ir_type_bits(to) <= ir_type_bits(from);
        break;
    case IR_BITCAST:
        if (ir_type_is_ptr(from) && ir_type_is_ptr(to) && from != to)
            return bad(v, inst, "a pointer comes into another space by cvta");
        fits = ir_type_bits(to) == ir_type_bits(from) && to != IR_I1;
        break;
    case IR_CVTA:
        fits = ir_type_is_ptr(to) && (from == IR_PTR_GENERIC) != (to == IR_PTR_GENERIC);
        break;
    default: break;
    }
    return fits ? SIMT_OK : bad(v, inst, "the result type does not fit the conversion");
}

static bool memory_imm_fits(uint64_t imm) {
    return (imm & 255) <= IR_ACQ_REL && imm >> 8 <= IR_SCOPE_SYSTEM;
}

static simt_status check_atomic(const verifying *v, const ir_inst *inst) {
    ir_type type = inst->results->type;
    ir_group group = ir_op_group(inst->op);
    for (unsigned i = 1; i < inst->nargs; i++)
        if (inst->args[i]->type != type)
            return bad(v, inst, "operands of another type than the result");
    if (type_allowed(group == IR_IN_SWAP ? 'A' : group == IR_IN_FATOMIC ? 'F' : 'N', type))
        return SIMT_OK;
    return bad(v, inst, "an atomic operation does not take this type");
}

/* What ops.def says in words: immediates, and operands beyond the type rules. */
static simt_status check_special_rules(const verifying *v, const ir_inst *inst) {
    ir_type type = inst->nresults ? inst->results->type : IR_VOID;
    if (ir_op_is_atomic(inst->op)) SIMT_TRY(check_atomic(v, inst));
    switch (inst->op) {
    case IR_CONST:
        if (ir_type_is_ptr(type) && inst->imm)
            return bad(v, inst, "the only constant pointer is 0");
        if (ir_type_bits(type) < 64 && inst->imm >> ir_type_bits(type))
            return bad(v, inst, "the constant does not fit its type");
        break;
    case IR_SPECIAL:
        if (inst->imm >= IR_SPECIAL_COUNT ||
            type != (inst->imm >= IR_INDEX_X && inst->imm <= IR_INDEX_Z ? IR_I64 : IR_I32))
            return bad(v, inst, "no such coordinate");
        break;
    case IR_ALLOC:
        if (type != IR_PTR_SHARED && type != IR_PTR_LOCAL)
            return bad(v, inst, "memory is shared or local");
        if (inst->imm == 0) return bad(v, inst, "memory of no bytes");
        break;
    case IR_ALLOC_DYNAMIC:
        if (type != IR_PTR_SHARED || inst->imm)
            return bad(v, inst, "dynamic memory is shared, and the launch says how much");
        break;
    case IR_VARIABLE:
        if (inst->imm >= ir_kernel_of(v->f)->nvariables) return bad(v, inst, "no such variable");
        if (type != ir_kernel_of(v->f)->variables[inst->imm].space)
            return bad(v, inst, "the result has not the space of the variable");
        break;
    case IR_FENCE:
        if (inst->imm > IR_SCOPE_SYSTEM) return bad(v, inst, "no such scope");
        break;
    case IR_FAULT:
        if (inst->imm > UINT32_MAX) return bad(v, inst, "no such fault number");
        if (inst->nargs > CODE_FAULT_VALUES) return bad(v, inst, "a fault keeps 4 values at most");
        for (unsigned i = 0; i < inst->nargs; i++)
            if (inst->args[i]->type != IR_I64)
                return bad(v, inst, "the operands of a fault are i64");
        break;
    case IR_BARRIER:
    case IR_GRID_SYNC: break;
    case IR_BARRIER_COUNT:
    case IR_BARRIER_AND:
    case IR_BARRIER_OR:
        if (type != IR_I32) return bad(v, inst, "the predicate of a barrier is an i32");
        break;
    case IR_SYNCWARP:
        if (inst->args[0]->type != IR_I32) return bad(v, inst, "a mask of lanes is an i32");
        break;
    case IR_ACTIVEMASK:
        if (type != IR_I32) return bad(v, inst, "a mask of lanes is an i32");
        break;
    case IR_BALLOT:
    case IR_MATCH_ANY:
    case IR_MATCH_ALL:
        if (type != IR_I32 || inst->args[1]->type != IR_I32)
            return bad(v, inst, "a mask of lanes is an i32");
        break;
    default:
        if ((ir_op_table[inst->op].reads || ir_op_table[inst->op].writes) &&
            !memory_imm_fits(inst->imm))
            return bad(v, inst, "no such memory order or scope");
        if (ir_op_table[inst->op].writes && inst->nargs > 0 && inst->args[0]->type == IR_PTR_CONST)
            return bad(v, inst, "const memory is not written");
    }
    return SIMT_OK;
}

static simt_status check_call(const verifying *v, const ir_inst *inst) {
    const ir_func *callee = ir_callee(v->f, inst);
    if (!callee) return bad(v, inst, "no such function");
    if (inst->nargs != callee->body.nparams || inst->nresults != callee->nresults)
        return bad(v, inst, "wrong number of operands or results");
    for (unsigned i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type != callee->body.params[i].type)
            return bad(v, inst, "an operand has not the type of the parameter");
    for (unsigned i = 0; i < inst->nresults; i++)
        if (inst->results[i].type != callee->results[i])
            return bad(v, inst, "a result has not the type that the function returns");
    return SIMT_OK;
}

static simt_status check_return(const verifying *v, const ir_inst *inst) {
    if (inst->nargs != v->f->nresults) return bad(v, inst, "wrong number of values");
    for (unsigned i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type != v->f->results[i])
            return bad(v, inst, "a value has not the type that the function returns");
    return SIMT_OK;
}

static simt_status check_types(const verifying *v, const ir_inst *inst) {
    const ir_op_info *info = &ir_op_table[inst->op];
    if (info->operands >= 0 && inst->nargs != (uint32_t)info->operands)
        return bad(v, inst, "wrong number of operands");
    if (inst->op == IR_RETURN) return check_return(v, inst);
    if (inst->op == IR_EXIT && !v->f->unit) return bad(v, inst, "a kernel ends by return");
    if (inst->op == IR_CALL) return check_call(v, inst);
    if (info->control) return SIMT_OK;
    bool makes = info->result != 'V';
    if (inst->nresults != makes) return bad(v, inst, "wrong number of results");
    if (makes && (inst->results->type <= IR_VOID || inst->results->type >= IR_TYPE_COUNT))
        return bad(v, inst, "result without a type");
    SIMT_TRY(check_special_rules(v, inst));
    if (info->operands > 0 && !type_allowed(info->types, inst->args[0]->type))
        return bad(v, inst, "operand 1 has a type that the operation does not take");
    if (inst->op == IR_PTRADD)
        return inst->args[1]->type == IR_I64 && inst->results->type == inst->args[0]->type
                   ? SIMT_OK
                   : bad(v, inst, "ptradd takes a pointer and an i64");
    if (inst->op == IR_PHILOX)
        return inst->args[0]->type == IR_I64 && inst->args[1]->type == IR_I64 &&
                       inst->results->type == IR_I32
                   ? SIMT_OK
                   : bad(v, inst, "philox takes two i64 and gives i32");
    if (inst->op == IR_FREXP_EXPONENT && inst->results->type != IR_I32)
        return bad(v, inst, "the exponent is an i32");
    switch (info->result) {
    case 'S':
    case 'B':
        for (unsigned i = 1; i < inst->nargs; i++)
            if (inst->args[i]->type != inst->args[0]->type)
                return bad(v, inst, "operands of different types");
        if (inst->results->type != (info->result == 'B' ? IR_I1 : inst->args[0]->type))
            return bad(v, inst, "wrong result type");
        break;
    case 'D':
        for (unsigned i = 1; i < inst->nargs; i++)
            if (inst->args[i]->type != IR_I32)
                return bad(v, inst, "the operands after the first are i32");
        if (inst->results->type != inst->args[0]->type) return bad(v, inst, "wrong result type");
        break;
    case 'L':
        if (inst->args[0]->type != IR_I1) return bad(v, inst, "the condition is not an i1");
        if (inst->args[1]->type != inst->results->type ||
            inst->args[2]->type != inst->results->type)
            return bad(v, inst, "operands of different types");
        break;
    default: break;
    }
    return inst->nargs == 1 && ir_op_group(inst->op) == IR_IN_CONVERT ? check_conversion(v, inst)
                                                                      : SIMT_OK;
}

static simt_status check_jump(const verifying *v, const ir_inst *inst) {
    const ir_inst *label = inst->label;
    const ir_region *region = inst->parent;
    while (region && region->owner != label) region = region->owner ? region->owner->parent : NULL;
    if (!label || !region) return bad(v, inst, "the label is no construct around it");
    if (inst->op == IR_CONTINUE && label->op != IR_LOOP)
        return bad(v, inst, "continue names no loop");
    unsigned want = inst->op == IR_BR ? label->nresults : label->regions[0]->nparams;
    const ir_value *values = inst->op == IR_BR ? label->results : label->regions[0]->params;
    if (inst->nargs != want) return bad(v, inst, "wrong number of values for its label");
    for (unsigned i = 0; i < want; i++)
        if (inst->args[i]->type != values[i].type)
            return bad(v, inst, "a value has not the type of its label");
    return SIMT_OK;
}

static simt_status check_region(verifying *v, ir_region *region, int depth);

static simt_status check_inst(verifying *v, ir_inst *inst, int depth) {
    v->count++;
    if ((unsigned)inst->op >= IR_OP_COUNT)
        return status_fail(SIMT_ERR_IR_INVALID, "unknown operation %d", inst->op);
    for (unsigned i = 0; i < inst->nargs; i++)
        if (!inst->args[i] || inst->args[i]->note != VISIBLE)
            return bad(v, inst, "an operand is not defined before it");
    SIMT_TRY(check_types(v, inst));
    if (inst->op == IR_BR || inst->op == IR_CONTINUE) SIMT_TRY(check_jump(v, inst));
    if (inst->op == IR_IF && inst->args[0]->type != IR_I1)
        return bad(v, inst, "the condition is not an i1");
    int regions = inst->op == IR_IF ? 2 : inst->op == IR_BLOCK || inst->op == IR_LOOP ? 1 : 0;
    for (int r = 0; r < 2; r++)
        if ((inst->regions[r] != NULL) != (r < regions))
            return bad(v, inst, "wrong number of regions");
    if (inst->op == IR_LOOP) {
        const ir_region *body = inst->regions[0];
        if (body->nparams != inst->nargs)
            return bad(v, inst, "carried values and initial values differ in number");
        for (unsigned i = 0; i < inst->nargs; i++)
            if (body->params[i].type != inst->args[i]->type)
                return bad(v, inst, "an initial value has another type");
    }
    for (int r = 0; r < regions; r++) SIMT_TRY(check_region(v, inst->regions[r], depth + 1));
    for (unsigned i = 0; i < inst->nresults; i++) inst->results[i].note = VISIBLE;
    return SIMT_OK;
}

static simt_status check_region(verifying *v, ir_region *region, int depth) {
    if (depth > IR_MOST_DEPTH)
        return status_fail(SIMT_ERR_IR_INVALID, "kernel '%s': nested too deeply", v->f->name);
    if (!ir_region_is_ended(region))
        return status_fail(SIMT_ERR_IR_INVALID,
                           "kernel '%s': a region does not end in br, continue or return",
                           v->f->name);
    for (uint32_t i = 0; i < region->nparams; i++) region->params[i].note = VISIBLE;
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        if (inst->parent != region) return bad(v, inst, "it stands in another region than it says");
        if (ir_op_is_terminator(inst->op) && inst->next)
            return bad(v, inst, "a terminator in the middle of a region");
        SIMT_TRY(check_inst(v, inst, depth));
    }
    for (ir_inst *inst = region->first; inst; inst = inst->next)
        for (unsigned i = 0; i < inst->nresults; i++) inst->results[i].note = NULL;
    for (uint32_t i = 0; i < region->nparams; i++) region->params[i].note = NULL;
    return SIMT_OK;
}

static void clear_notes(ir_region *region) {
    for (uint32_t i = 0; i < region->nparams; i++) region->params[i].note = NULL;
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        for (unsigned i = 0; i < inst->nargs; i++)
            if (inst->args[i]) inst->args[i]->note = NULL; /* also of removed definitions */
        for (unsigned i = 0; i < inst->nresults; i++) inst->results[i].note = NULL;
        for (int r = 0; r < 2 && inst->regions[r]; r++) clear_notes(inst->regions[r]);
    }
}

/* ---- what a unit declares ---- */

static simt_status bad_header(const ir_func *f, const char *name, const char *what) {
    return status_fail(SIMT_ERR_IR_INVALID, "kernel '%s', %s: %s", f->name, name, what);
}

static bool is_alignment(uint32_t n) { return n > 0 && n <= IR_MOST_ALIGN && (n & (n - 1)) == 0; }

static simt_status check_params(const ir_func *f) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < f->body.nparams; i++) {
        const ir_value *v = &f->body.params[i];
        if (v->type <= IR_VOID || v->type >= IR_TYPE_COUNT)
            return bad_header(f, "its parameters", "one without a type");
        if (!v->struct_bytes && !v->struct_align) continue;
        if (!v->struct_bytes || !is_alignment(v->struct_align) || v->type != IR_PTR_CONST)
            return bad_header(f, "its parameters",
                              "a struct has bytes and an alignment, and is known by a ptr.const");
        if (f->unit) return bad_header(f, "its parameters", "structs are given to kernels only");
        bytes = (bytes + v->struct_align - 1) & ~(size_t)(v->struct_align - 1);
        bytes += v->struct_bytes;
    }
    if (bytes <= IR_MOST_STRUCT_BYTES) return SIMT_OK;
    return bad_header(f, "its parameters", "the structs have more than 32764 bytes");
}

static bool is_plain_name(const char *name) {
    const char *c = name;
    while (isalnum((unsigned char)*c) || *c == '_' || *c == '.') c++;
    return *name && !*c && c - name <= IR_MOST_NAME;
}

static simt_status check_variable(const ir_func *f, uint32_t number) {
    const ir_variable *v = &f->variables[number];
    if (!is_plain_name(v->name)) return bad_header(f, "a variable", "this is no name for it");
    for (uint32_t i = 0; i < number; i++)
        if (!strcmp(f->variables[i].name, v->name))
            return bad_header(f, v->name, "two variables have this name");
    if (v->space != IR_PTR_GLOBAL && v->space != IR_PTR_CONST)
        return bad_header(f, v->name, "a variable is in global or const memory");
    if (v->bytes == 0 || v->bytes > IR_MOST_VARIABLE_BYTES || v->init_bytes > v->bytes)
        return bad_header(f, v->name, "its number of bytes is not possible");
    if (!is_alignment(v->align)) return bad_header(f, v->name, "this is no alignment");
    return SIMT_OK;
}

static simt_status check_function(const ir_func *f) {
    ir_region *body = (ir_region *)&f->body; /* writes notes only */
    SIMT_TRY(check_params(f));
    if (f->nvariables > IR_MOST_VARIABLES) return bad_header(f, "its variables", "more than 4096");
    for (uint32_t i = 0; i < f->nvariables; i++) SIMT_TRY(check_variable(f, i));
    clear_notes(body);
    verifying v = {f, 0};
    for (uint32_t i = 0; i < f->nresults; i++)
        if (f->results[i] <= IR_VOID || f->results[i] >= IR_TYPE_COUNT)
            return status_fail(SIMT_ERR_IR_INVALID, "function '%s': a result without a type",
                               f->name);
    return check_region(&v, body, 0);
}

simt_status ir_verify(const ir_func *f) {
    SIMT_TRY(check_function(f));
    for (uint32_t i = 0; i < f->nfunctions; i++) SIMT_TRY(check_function(f->functions[i]));
    return SIMT_OK;
}
