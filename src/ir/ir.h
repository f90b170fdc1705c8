/* The intermediate representation. Read this and ops.def first. A function is one kernel, or (see
 * ir_func) one that a kernel calls while it runs: typed, structured SSA with per-thread (SPMD) meaning.
 * Its body is a region: a list of instructions ending in a terminator (br, continue, return, exit).
 * Three instructions own regions:
 *
 *   %r = block -> (types) { ... br %block(values) }          results = the values of the br taken
 *   %r = loop (%x = init, ...) -> (types) { ... continue %loop(values) ... br %loop(values) }
 *   %r = if %c -> (types) { ... br %if(values) } else { ... br %if(values) }
 *
 * br and continue may name *any* enclosing construct (continue: any enclosing loop), so that break, early
 * exit, switch and && need no flags. There are no other jumps. A terminator is the last instruction of
 * its region, and only there. A region sees the values of the regions around it (dominance is nesting
 * plus order). Each value has one type. Each instruction has the user's source position.
 *
 * Memory: everything of a function, also dead instructions, lives in its arena, which is a sure one: who
 * builds or changes functions does so inside an arena_run. ir_func_free ends all.
 */
#ifndef SIMT_IR_IR_H
#define SIMT_IR_IR_H

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/strbuf.h"

#include <stdint.h>

typedef enum ir_type {
    IR_VOID,
    IR_I1,
    IR_I8,
    IR_I16,
    IR_I32,
    IR_I64,
    IR_F16,
    IR_BF16,
    IR_F32,
    IR_F64,
    /* pointers, 64 bits; the space is in the type. generic: of any of the others; what is known of the
     * others' memory holds of it too: local memory is one thread's, shared memory one block's */
    IR_PTR_GLOBAL,
    IR_PTR_SHARED,
    IR_PTR_LOCAL,
    IR_PTR_CONST,
    IR_PTR_GENERIC,
    IR_TYPE_COUNT
} ir_type;

static inline bool ir_type_is_int(ir_type t) { return t >= IR_I1 && t <= IR_I64; }
static inline bool ir_type_is_float(ir_type t) { return t >= IR_F16 && t <= IR_F64; }
static inline bool ir_type_is_ptr(ir_type t) { return t >= IR_PTR_GLOBAL && t <= IR_PTR_GENERIC; }
/* Bytes of a value in memory; i1 takes one byte, 0 or 1. */
size_t ir_type_bytes(ir_type t);
unsigned ir_type_bits(ir_type t);
/* The bits of a constant of type t: none above its width. */
static inline uint64_t ir_cut_bits(uint64_t bits, ir_type t) {
    return bits & ~0ull >> (64 - ir_type_bits(t));
}
/* The lowest `width` of the bits (1 to 64) as a signed number. */
static inline int64_t ir_sign_extend(uint64_t bits, unsigned width) {
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}
/* The least and the most of an integer type, read as signed. */
static inline int64_t ir_least(ir_type t) {
    unsigned width = ir_type_is_int(t) ? ir_type_bits(t) : 64;
    return width >= 64 ? INT64_MIN : -(1ll << (width - 1));
}
static inline int64_t ir_most(ir_type t) { return -1 - ir_least(t); }
const char *ir_type_name(ir_type t); /* "i32", "f16", "ptr.global" */
ir_type ir_type_of_dtype(dtype dt);  /* bool is kept in memory and registers as i8 holding 0 or 1 */

typedef enum ir_op {
#define OP(id, ...) IR_##id,
#include "ir/ops.def"
#undef OP
    IR_OP_COUNT
} ir_op;

/* The column `group` of ops.def; families of several groups are neighbours here. */
typedef enum ir_group {
    IR_IN_PLAIN,
    IR_IN_DIVISION,
    IR_IN_MATH,
    IR_IN_COMPARE,
    IR_IN_FCOMPARE,
    IR_IN_CONVERT,
    IR_IN_MEMORY,
    IR_IN_ATOMIC,
    IR_IN_FATOMIC,
    IR_IN_SWAP,
    IR_IN_BARRIER,
    IR_IN_WARP,
    IR_IN_SHUFFLE,
    IR_IN_VOTE,
    IR_IN_CONTROL
} ir_group;

/* Ends its region. */
static inline bool ir_op_is_terminator(ir_op op) {
    return op == IR_BR || op == IR_CONTINUE || op == IR_RETURN || op == IR_EXIT;
}

typedef struct ir_op_info {
    const char *name, *meaning;
    int8_t operands; /* -1: any number */
    char types, result;
    uint8_t group; /* ir_group */
    bool pure, reads, writes, control, commutative, convergent, special;
} ir_op_info;
extern const ir_op_info ir_op_table[IR_OP_COUNT];

static inline ir_group ir_op_group(ir_op op) { return (ir_group)ir_op_table[op].group; }
static inline bool ir_op_is_atomic(ir_op op) {
    return ir_op_group(op) >= IR_IN_ATOMIC && ir_op_group(op) <= IR_IN_SWAP;
}
/* activemask to match.all: their operands come from lanes of one warp. */
static inline bool ir_op_is_warp(ir_op op) {
    return ir_op_group(op) >= IR_IN_WARP && ir_op_group(op) <= IR_IN_VOTE;
}
static inline bool ir_op_is_barrier(ir_op op) { return ir_op_group(op) == IR_IN_BARRIER; }

/* imm of IR_SPECIAL; i32 where nothing else is said */
typedef enum ir_special {
    IR_TID_X,
    IR_TID_Y,
    IR_TID_Z, /* thread in block */
    IR_CTAID_X,
    IR_CTAID_Y,
    IR_CTAID_Z, /* block in grid */
    IR_NTID_X,
    IR_NTID_Y,
    IR_NTID_Z, /* threads per block */
    IR_NCTAID_X,
    IR_NCTAID_Y,
    IR_NCTAID_Z, /* blocks in grid */
    IR_INDEX_X,
    IR_INDEX_Y,
    IR_INDEX_Z, /* i64: thread in grid, ctaid * ntid + tid */
    IR_LANEID,  /* in the warp */
    IR_SPECIAL_COUNT
} ir_special;

/* imm of memory operations */
typedef enum ir_order {
    IR_PLAIN,
    IR_VOLATILE,
    IR_RELAXED,
    IR_ACQUIRE,
    IR_RELEASE,
    IR_ACQ_REL,
    IR_ORDER_COUNT
} ir_order;
typedef enum ir_scope { IR_SCOPE_BLOCK, IR_SCOPE_DEVICE, IR_SCOPE_SYSTEM, IR_SCOPE_COUNT } ir_scope;
/* Their printed names (print.c; parse.c reads them back). */
extern const char *const ir_special_names[IR_SPECIAL_COUNT],
    *const ir_order_names[IR_ORDER_COUNT], *const ir_scope_names[IR_SCOPE_COUNT];
#define IR_MEM(order, scope) ((uint64_t)(order) | (uint64_t)(scope) << 8)
#define IR_MEM_ORDER(imm)    ((ir_order)((imm)&255))

typedef struct ir_inst ir_inst;
typedef struct ir_region ir_region;

#define IR_MOST_SIZE ((1ll << 62) - 1)
/* Of all structs of a launch, one behind the other; of what the alignment of a struct, a variable can be. */
enum { IR_MOST_STRUCT_BYTES = 32764, IR_MOST_ALIGN = 128, IR_MOST_NAME = 190 };
enum { IR_MOST_VARIABLES = 4096 }; /* of a unit */
typedef struct ir_value {
    ir_type type;
    uint32_t id;       /* dense in the function; ir_func_renumber makes it so again */
    ir_inst *inst;     /* that makes it, or NULL */
    ir_region *region; /* whose parameter it is (loop-carried, function parameter), or NULL */
    uint32_t index;    /* among the results of inst or the parameters of region */
    /* of parameters of a function: */
    bool is_size; /* in 0..IR_MOST_SIZE: launches see to it */
    uint8_t
        struct_align; /* of a kernel: the address of a struct that the launch is given by value, */
    uint16_t struct_bytes; /* so large; 0: none */
    const char *name;      /* for printing, or NULL */
    void *note;            /* a pass's own; meaningless between passes */
} ir_value;

struct ir_inst {
    ir_op op;
    uint32_t nargs, nresults;
    uint32_t number; /* in program order, from 0; ir_func_renumber makes it so again */
    ir_value **args;
    ir_value *results; /* usually one or none; block, loop, if: any number */
    uint64_t imm;      /* constant bits, ir_special, IR_MEM, bytes, numbers of faults, functions,
                        * variables */
    ir_region *regions[2];
    ir_inst *label; /* br, continue: the construct they name */
    source_pos pos;
    ir_inst *prev, *next;
    ir_region *parent;
    void *note; /* a pass's own */
};

struct ir_region {
    ir_value *params; /* loop body: carried values; function body: the parameters */
    uint32_t nparams;
    ir_inst *first, *last;
    ir_inst *owner; /* NULL for the function's body */
};
/* Whether it has its terminator: nothing may follow. */
static inline bool ir_region_is_ended(const ir_region *region) {
    return region->last != NULL && ir_op_is_terminator(region->last->op);
}

/* A variable that lives as long as the program that has it (CUDA's __device__ and __constant__): launches see
 * what launches before them left. Units of one program that declare one name mean one variable. */
typedef struct ir_variable {
    const char *name;    /* at most IR_MOST_NAME letters, digits, _ and . */
    ir_type space;       /* IR_PTR_GLOBAL; or IR_PTR_CONST: kernels do not write it */
    uint32_t align;      /* a power of 2 */
    uint64_t bytes;      /* 1 to IR_MOST_VARIABLE_BYTES */
    const uint8_t *init; /* its first bytes at the start; what follows is 0 */
    uint64_t init_bytes;
} ir_variable;
#define IR_MOST_VARIABLE_BYTES (1ull << 40)

/* Most functions that a kernel calls are put inside it. Those that call themselves, by themselves or by way
 * of others, cannot be: they stand beside the kernel and are reached by the instruction `call`. The kernel
 * owns them, and with them is a unit, which is verified, printed, hashed and optimised as a whole: each
 * function by itself, a call in it being something that reads and writes memory. */
typedef struct ir_func ir_func;
struct ir_func {
    arena mem;
    const char *name, *file; /* file: the user's source, or "" */
    ir_region body;
    source_call *calls; /* of functions whose code was put inside; of a unit all are the kernel's */
    uint32_t ncalls, call_capacity;
    uint32_t next_id;    /* ids given so far */
    uint32_t ninsts;     /* numbers of instructions, as ir_func_renumber gave them */
    ir_func **functions; /* of a kernel: what is called beside it; by number */
    uint32_t nfunctions, function_capacity;
    ir_variable *variables; /* of a kernel: of the unit; by number */
    uint32_t nvariables, variable_capacity;
    ir_func *unit;    /* of such a function: its kernel. Of a kernel NULL */
    ir_type *results; /* of such a function, what `return` gives */
    uint32_t nresults;
};

/* What threads of a block do together or share: barriers, warp operations, their lanes, shared memory. */
bool ir_inst_needs_block(const ir_inst *inst);

/* ---- making and freeing; a new function has no parameters yet ---- */
ir_func *ir_func_new(const char *name, const char *file); /* outside of a run NULL: no memory */
void ir_func_free(ir_func *f);
/* n parameters at once, with the names (or NULL, also for one); their addresses stay as they are. */
ir_value *ir_func_add_params(ir_func *f, const ir_type *types, const char *const *names,
                             unsigned n);
/* One more; earlier ones may move: take their addresses when all are there. */
ir_value *ir_func_add_param(ir_func *f, ir_type type, const char *name);
/* Makes a parameter of a kernel, a ptr.const, the address of a struct that the launch is given by value. */
static inline void ir_param_is_struct(ir_value *param, uint16_t bytes, uint8_t align) {
    param->struct_bytes = bytes, param->struct_align = align;
}
/* Declares a variable of the unit; name and initial bytes are copied. Its number is the count before. */
void ir_func_add_variable(ir_func *kernel, const ir_variable *variable);
/* A function beside the kernel; it has no parameters yet. Its number is the count before. */
ir_func *ir_func_add_function(ir_func *kernel, const char *name, const ir_type *results,
                              unsigned nresults);
static inline const ir_func *ir_kernel_of(const ir_func *f) {
    return f->unit != NULL ? f->unit : f;
}
/* What a call in f calls; NULL: there is no such function. */
static inline const ir_func *ir_callee(const ir_func *f, const ir_inst *call) {
    const ir_func *kernel = ir_kernel_of(f);
    return call->imm < kernel->nfunctions ? kernel->functions[call->imm] : NULL;
}

/* A call of a function whose code is put inside, for positions: its number, from 1. 0: too many. Functions
 * beside the kernel have such an entry too, called from line 0: they may be called from anywhere. */
uint16_t ir_func_add_call(ir_func *f, const char *function, const char *file, source_pos at);

/* ---- building: a cursor that appends at the end of a region ---- */
typedef struct ir_builder {
    ir_func *f;
    ir_region *at;
    ir_inst *before; /* insert before this instruction, or NULL: at the end */
    source_pos pos;  /* given to what is added */
} ir_builder;

ir_builder ir_builder_at_end(ir_func *f, ir_region *region);
ir_value *ir_const_int(ir_builder *b, ir_type type, int64_t value);
ir_value *ir_const_float(ir_builder *b, ir_type type, double value); /* rounded to type */
ir_value *ir_const_bits(ir_builder *b, ir_type type, uint64_t bits);
ir_value *ir_special_value(ir_builder *b, ir_special which);
/* Result types follow ops.def; these three serve every pure op with rule S, B, L. */
ir_value *ir_unary(ir_builder *b, ir_op op, ir_value *a);
ir_value *ir_binary(ir_builder *b, ir_op op, ir_value *a, ir_value *c);
ir_value *ir_ternary(ir_builder *b, ir_op op, ir_value *a, ir_value *c, ir_value *d);
ir_value *ir_select(ir_builder *b, ir_value *cond, ir_value *yes, ir_value *no);
ir_value *ir_cast(ir_builder *b, ir_op op, ir_type to, ir_value *a); /* rule T with one operand */
ir_value *ir_ptradd(ir_builder *b, ir_value *ptr, ir_value *bytes);
ir_value *ir_alloc(ir_builder *b, ir_type ptr_type, size_t bytes);
ir_value *ir_alloc_dynamic(ir_builder *b);
ir_value *ir_variable_address(ir_builder *b, uint32_t number); /* of the unit's variables */
ir_value *ir_cvta(ir_builder *b, ir_type to, ir_value *ptr);   /* of the same space: ptr */
ir_value *ir_load(ir_builder *b, ir_type type, ir_value *ptr, uint64_t mem);
void ir_store(ir_builder *b, ir_value *ptr, ir_value *value, uint64_t mem);
ir_value *ir_atomic(ir_builder *b, ir_op op, ir_value *ptr, ir_value *v, ir_value *w, uint64_t mem);
void ir_barrier(ir_builder *b);
/* barrier.count, .and, .or: predicate i32, result i32. */
ir_value *ir_barrier_reduce(ir_builder *b, ir_op op, ir_value *predicate);
void ir_grid_sync(ir_builder *b);
/* Warp operations; mask, lane (also delta, lane mask) and width are i32. */
enum { IR_WARP_SIZE = 32 };
ir_value *ir_activemask(ir_builder *b);
void ir_syncwarp(ir_builder *b, ir_value *mask);
ir_value *ir_shfl(ir_builder *b, ir_op op, ir_value *v, ir_value *lane, ir_value *mask,
                  ir_value *width);
/* vote.* (i1 -> i1), ballot (i1 -> i32), match.* (any -> i32). */
ir_value *ir_vote(ir_builder *b, ir_op op, ir_value *v, ir_value *mask);
void ir_fence(ir_builder *b, ir_scope scope);
void ir_fault(ir_builder *b, uint32_t number, ir_value **args, unsigned nargs); /* at most 4 */
/* Constructs. The builder's cursor does not move: build inside with ir_builder_at_end(f, inst->regions[i]). */
ir_inst *ir_block(ir_builder *b, const ir_type *results, unsigned nresults);
ir_inst *ir_loop(ir_builder *b, ir_value **init, unsigned ninit, const ir_type *results,
                 unsigned nresults);
ir_inst *ir_if(ir_builder *b, ir_value *cond, const ir_type *results, unsigned nresults);
void ir_br(ir_builder *b, ir_inst *label, ir_value **values, unsigned nvalues);
void ir_continue(ir_builder *b, ir_inst *loop, ir_value **values, unsigned nvalues);
void ir_return(ir_builder *b); /* of a kernel */
/* Functions beside the kernel: */
void ir_return_values(ir_builder *b, ir_value **values, unsigned nvalues);
void ir_exit(ir_builder *b);
/* Calls function `number` of the unit, which has its results. */
ir_inst *ir_call(ir_builder *b, uint32_t number, ir_value **args, unsigned nargs);
/* The general form behind all of them (used by the parser and passes). */
ir_inst *ir_inst_add(ir_builder *b, ir_op op, const ir_type *results, unsigned nresults,
                     ir_value **args, unsigned nargs, uint64_t imm);

/* ---- changing ---- */
void ir_inst_remove(ir_inst *inst); /* unlink; its memory stays in the arena */
void ir_inst_move_before(ir_inst *inst, ir_inst *before);
/* Dense ids of values and numbers of instructions, in program order. */
void ir_func_renumber(ir_func *f);
static inline ir_value *ir_result(ir_inst *inst) { return inst->results; }

/* What a pure operation makes of integers of this type, constant bits as in `const`; high bits of *out are
 * not cleared. The second is not looked at where there is none. False: not an operation on integers. */
bool ir_evaluate_integer(ir_op op, ir_type type, uint64_t a, uint64_t b, uint64_t *out);

/* ---- printed form, parser, verifier ---- */
/* Constructs inside one another; what walks over regions recurses, and needs no more than 512 KB of stack
 * for so many. */
enum { IR_MOST_DEPTH = 500 };
unsigned ir_func_depth(const ir_func *f); /* does not recurse */
void ir_print(const ir_func *f, strbuf *out);
/* Parses one printed unit. Failure: SIMT_ERR_IR_SYNTAX with line and column. */
simt_status ir_parse(const char *text, ir_func **out);
/* Types, dominance, labels, terminators. Failure: SIMT_ERR_IR_INVALID naming the instruction. */
simt_status ir_verify(const ir_func *f);
/* 64-bit hash of the printed structure (names and positions left out), for caches. */
uint64_t ir_hash(const ir_func *f);

#endif
