/* The vm's own structures: decoded code, its frame, and what its compiler plans.
 *
 * A gang is the group of threads ("lanes") that one pass over the code runs: the whole block, or a stretch of
 * the grid in kernels whose blocks do not matter (spread.c), or one thread in kernels whose threads must run
 * singly. What is known of a kernel, and the words for it, are in kernel/facts.h.
 * Every value has an entry in a table of pointers: to a vector of lanes in the frame, to a scalar, or
 * straight to memory (a forwarded load). Values that are equal in all lanes or grow by a constant from
 * lane to lane are kept as the one value of lane 0 ("scalar"; stride 0: uniform). So are, in blocks of two
 * and three dimensions, those that grow by a step of their own along each axis ("rows").
 *
 * plan.c    which values are scalars, and their stride; positions, lifetimes, what need not be copied
 * place.c   where values live: cells of scalars, slots in the frame
 * emit.c    IR to vm_inst: control (emit_ops.c: the rest); compile.c: all of it, as a back end
 * print.c   the listing of SIMT_DUMP=asm
 * exec.c    runs them for one gang (split.c: which lanes take which side; atomic.c, kernels_*.c: operations)
 * spread.c  runs that are rows of the grid, not blocks
 * turns.c   frames, and the turns of a block's gangs
 * stack.c   calls of functions beside the kernel: a gang is then one thread, with a stack of its own
 * warp.c    warp operations
 */
#ifndef SIMT_BACKEND_VM_VM_H
#define SIMT_BACKEND_VM_VM_H

#include "backend/backend.h"
#include "backend/vm/kernels.h"
#include "kernel/facts.h"

/* ---- decoded code ---- */

typedef enum vm_kind {
#define KIND(id, name, shows, meaning) VM_##id,
#include "backend/vm/kinds.def"
#undef KIND
    VM_KINDS
} vm_kind;

enum { VM_FLAG_CONVERGES = 1, VM_FLAG_SPIN = 2, VM_FLAG_NO_ELSE = 4 };

typedef struct vm_inst {
    uint8_t kind, size, flags; /* size: log2 of bytes */
    uint16_t set;              /* lane set of the construct (else or continue set: the next one) */
    uint16_t call;             /* with line: where it stands in the source */
    uint32_t dst, a, b, c;     /* entries of the pointer table */
    uint32_t target;
    uint32_t line;
    union {
        vm_kernel kernel;
        int64_t imm;
    };
} vm_inst;

/* address: lane i at *address + i * stride, or address[i] when `gather`; operands: step 0 or size */
typedef struct vm_atomic vm_atomic;
typedef void (*vm_atomic_run)(const vm_atomic *x, void **entry, const uint8_t *mask, size_t n);
struct vm_atomic {
    ir_op op;
    vm_type type;
    uint32_t dst, address, b, c;
    int64_t stride;
    bool gather, b_scalar, c_scalar, shared, one; /* one: a gang of one lane */
    bool unused;                                  /* nobody asks for the old value */
    vm_atomic_run shortcut;                       /* or NULL */
};

/* operands: value (also the predicate), lane, mask, width; 0 where the operation has none */
typedef struct vm_warp {
    ir_op op;
    uint8_t size; /* log2 of the value's bytes */
    uint32_t dst;
    source_pos pos;
    uint32_t value, lane, mask, width;
    bool one_value, one_lane, one_mask, one_width; /* scalars */
} vm_warp;

typedef struct vm_fault {
    uint32_t number;
    source_pos pos;
    uint32_t nvalues;
    uint32_t value[CODE_FAULT_VALUES];
    int64_t stride[CODE_FAULT_VALUES];
    bool vector[CODE_FAULT_VALUES];
} vm_fault;

/* A value that a call passes on: where it is, log2 of its bytes. */
typedef struct vm_pass {
    uint32_t entry, size;
} vm_pass;
/* A call, or (args alone) what a function returns. */
typedef struct vm_call {
    uint32_t function, nargs, nresults;
    vm_pass *args, *results;
    source_pos pos;
} vm_call;

/* a < b and kin between linear values, decided without looking at each lane where possible. A condition
 * is one of them, or all of a few that stand together. */
enum { VM_MOST_COMPARES = 16 }; /* of a condition */
typedef struct vm_compare {
    ir_op op;
    uint8_t bits;
    bool rows; /* steps count, not strides */
    bool last; /* of its condition */
    uint32_t a, b;
    int64_t stride_a, stride_b;
    uint32_t step_a[3], step_b[3];
} vm_compare;

/* of an address or a number: entries of its steps along the axes of the block; 0: no step */
typedef struct vm_rows {
    uint32_t step[3];
} vm_rows;

typedef enum vm_place {
    VM_AT_CONST,
    VM_AT_CELL,
    VM_AT_SLOT,
    VM_AT_PARAM,
    VM_AT_SPECIAL,
    VM_AT_TID
} vm_place;
typedef struct vm_entry {
    uint8_t place;
    uint32_t
        offset; /* bytes in the constants, cells, slots; number of the launch's argument or special */
} vm_entry;
typedef struct vm_address { /* cells that hold addresses inside the frame */
    uint32_t entry;
    bool local;
    uint32_t offset; /* VM_DYNAMIC: behind all shared memory of the kernel and its functions */
} vm_address;
enum { VM_DYNAMIC = UINT32_MAX };

typedef struct vm_code vm_code;
struct vm_code {
    code_blocks base;
    uint64_t serial; /* of this code: a frame set up for it says so */
    const vm_kernels *kernels;
    uint32_t lanes, gangs; /* per gang; gangs per block */
    uint32_t ninsts, nentries, nsets, naddresses;
    vm_inst *insts;
    vm_entry *entries;
    vm_address *addresses;
    vm_atomic *atomics;
    vm_fault *faults;
    vm_compare *compares;
    vm_warp *warps;
    vm_rows *rows;
    vm_call *calls;
    vm_code **functions; /* of a kernel, and the same of each of its functions, by number */
    bool is_function;
    uint32_t *params;    /* entries of parameters; of a function in their order */
    uint32_t *forwarded; /* entries of forwarded loads */
    uint32_t nforwarded;
    uint32_t nparams;
    char *constants; /* 64-byte aligned */
    uint32_t natomics, nfaults, ncompares, nwarps, nrows, ncalls, nfunctions;
    size_t constant_bytes, cell_bytes, slot_bytes, set_bytes, ended_bytes, local_bytes,
        shared_bytes;
    size_t gang_bytes, shared_offset;
    bool assumes_small_grid; /* i32 thread numbers of the grid do not wrap */
    vm_code *general;        /* for launches where that does not hold, or NULL */
    bool spreads;            /* a run is a stretch of threads along x (spread.c) */
    vm_code *spread;         /* such code of the same kernel, or NULL */
    uint32_t box[3];         /* the threads of a run: its block, or a row */
    arena mem;
};

/* ---- frame ---- */

typedef struct vm_set {
    uint32_t count,
        top; /* active lanes; they are all below top; count == top: all of [0, top), bytes not kept */
    uint8_t *bytes;
} vm_set;

typedef enum vm_state {
    VM_RUNNING,
    VM_AT_BARRIER,
    VM_AT_GRID_SYNC,
    VM_AT_WARP, /* pc is the operation itself; elsewhere, what comes after */
    VM_DONE
} vm_state;
/* Calls make more of them, one above the other: the state of the same thread in a function. */
typedef struct vm_gang vm_gang;
struct vm_gang {
    void **entry;
    vm_set *sets;
    char *slots;
    vm_set now;
    uint32_t *ended; /* lanes that returned, a bit each; kept in code with warp operations */
    uint32_t pc, state;
    uint32_t first;  /* flat number of lane 0 */
    uint32_t tid[4]; /* of lane 0; last: its place in the warp */
    int64_t index[3];
    const vm_code *code;    /* that it runs */
    vm_gang *caller;        /* in a function: what called it */
    vm_gang *top;           /* in the kernel: the function that runs, or itself */
    struct vm_stack *stack; /* in the kernel: of its calls, or NULL */
    uint32_t depth;         /* calls around it */
};

typedef struct vm_frame {
    uint64_t serial;
    void *self;       /* this frame's address when it was set up */
    const void *args; /* the launch's, when the parameters' entries were set */
    const code_launch *launch;
    uint64_t block;
    uint32_t ctaid[3], nctaid[3];
    uint32_t at;            /* gang that runs next */
    bool met;               /* the block has arrived at grid.sync */
    uint64_t round;         /* and waits for the end of this round */
    bool streams;           /* the launch is so long that what it writes outgrows the caches */
    struct vm_stack *spare; /* of a thread that has ended */
} vm_frame;

static inline source_pos vm_pos_of(const vm_inst *in) {
    return (source_pos){.line = in->line, .call = in->call};
}

void vm_print(const code *self, strbuf *out);
code_result vm_run(const code_blocks *self, const code_launch *launch, void *frame, uint64_t block,
                   bool resume, int64_t *budget, code_fault *fault);
/* The current lanes split: yes stays current, no goes to set + 1; set keeps what meets again at the end. */
void vm_split(const vm_code *c, vm_gang *g, const vm_inst *in, const uint8_t *cond);
void vm_split_linear(const vm_code *c, vm_gang *g, const vm_inst *in);

typedef enum vm_stop {
    STOP_DONE,
    STOP_BARRIER,
    STOP_GRID_SYNC,
    STOP_WARP,
    STOP_BUDGET,
    STOP_SPIN,
    STOP_STUCK,
    STOP_MEMORY,
    STOP_NOT /* goes on */
} vm_stop;
vm_stop vm_gang_run(vm_frame *f, vm_gang *of, int64_t *budget, code_fault *fault);
/* The same operation for a gang of many lanes: false if a lane named in a mask can't come, which is
 * then *stuck. For gangs of one: all that thread `at` waits for have come, and were given their results. */
bool vm_warp_exec(const vm_code *c, vm_gang *g, const vm_warp *x, uint32_t *stuck);
bool vm_warp_meet(const vm_code *c, vm_frame *f, uint32_t at);
void vm_warp_end_lanes(vm_gang *g);

/* ---- stack.c ---- */

/* The thread of gang `of` enters what its top calls, or ends: says so in *fault. */
vm_stop vm_enter(vm_frame *f, vm_gang *of, const vm_call *x, code_fault *fault);
void vm_leave(vm_frame *f, vm_gang *of, const vm_call *returned); /* back to the caller */
void vm_end_calls(vm_frame *f, vm_gang *of);                      /* the thread has ended */
void vm_end_stacks(vm_frame *f);                                  /* the block has */
void vm_note_calls(const vm_gang *g, code_fault *fault);          /* those that g is in */
void vm_set_up(const vm_code *c, vm_frame *f, vm_gang *of, vm_gang *g, char *shared);

static inline size_t vm_align64(size_t n) { return (n + 63) & ~(size_t)63; }
static inline vm_gang *vm_gang_of(const vm_code *c, vm_frame *f, uint32_t i) {
    return (vm_gang *)((char *)f + vm_align64(sizeof(vm_frame)) + c->gang_bytes * i);
}
vm_atomic_run vm_atomic_shortcut(const vm_atomic *x);
void vm_atomic_exec(const vm_atomic *x, void **entry, const uint8_t *mask, size_t n);

/* ---- analyses ---- */

enum { VM_VARYING = INT32_MIN, VM_ROWS = INT32_MIN + 1 };

typedef struct vm_steps {
    int64_t x, y, z;
} vm_steps;

typedef struct vm_value {   /* by value id */
    int64_t stride;         /* of a scalar; VM_VARYING: a vector; VM_ROWS: steps count */
    vm_steps steps;         /* along the axes of the block, */
    uint32_t step[3];       /* and entries that hold them; 0: no step. Made in place_steps */
    bool fixed_steps;       /* known now, not computed */
    uint32_t first, last;   /* positions of definition and last use */
    uint32_t uses, read;    /* read: the last position at which it stands as an operand */
    uint32_t set;           /* in which `continue` (vm_emitter.setting) */
    uint32_t next_cell;     /* cell of a carried scalar for the next round */
    uint32_t entry, vector; /* entries: as it is; as vector when it is a scalar (0: not needed) */
    bool decides;     /* a condition that is only looked at by ifs, linear compare by compare */
    bool early, made; /* its vector: is wanted in a loop inside; is ready */
    bool pinned;      /* by a bitcast or an aimed value, which read it later (plan.c) */
    bool needs_vector, forward, aimed; /* aimed: computed by the store that uses it */
    ir_value *same;                    /* lives in the slot of this carried value, or result */
    const ir_value *value;
} vm_value;

typedef struct vm_node { /* by instruction number */
    const ir_inst *inst;
    uint32_t at, end;  /* positions: a construct has one more, where it ends */
    uint32_t fixes[2]; /* heads of the lists of jumps to patch: end of region 0, 1 (emit.c) */
} vm_node;

typedef struct vm_plan {
    const ir_func *f;
    arena *mem;
    uint32_t block[3];        /* of the launch */
    uint32_t box[3], threads; /* of a run: the block, or a row (vm_code.box) */
    uint32_t lanes;           /* of a gang */
    vm_value *values;
    uint32_t nvalues;
    vm_node *nodes;
    uint32_t nnodes;
    uint32_t *writes; /* positions of writing instructions, ascending */
    uint32_t nwrites;
    const kernel_facts *facts;
    bool small_grid;
    uint32_t max_depth;
} vm_plan;

static inline vm_value *vm_value_of(const vm_plan *p, const ir_value *v) {
    return &p->values[v->id];
}
static inline vm_node *vm_node_of(const vm_plan *p, const ir_inst *i) {
    return &p->nodes[i->number];
}
static inline const facts_construct *vm_construct_of(const vm_plan *p, const ir_inst *i) {
    return facts_construct_of(&p->facts->places, i);
}
/* An if that lanes of a gang take differently. */
static inline bool vm_splits(const vm_plan *p, const ir_inst *i) {
    return p->lanes > 1 && facts_parting_of(p->facts, i).splits;
}
/* A bitcast shares its operand's storage; so does a cast between spaces, all of whose addresses are the host's. */
static inline bool vm_is_bitcast(const ir_inst *in) {
    return in != NULL && (in->op == IR_BITCAST || in->op == IR_CVTA);
}
static inline vm_value *vm_bitcast_root(const vm_plan *p, const ir_value *v) {
    while (vm_is_bitcast(v->inst)) v = v->inst->args[0];
    return vm_value_of(p, v);
}
static inline bool vm_is_scalar(const vm_plan *p, const ir_value *v) {
    return p->values[v->id].stride != VM_VARYING;
}
vm_type vm_type_of(ir_type t);

/* facts are there */
void vm_plan_scan(vm_plan *p);      /* lanes, nodes, positions, strides */
void vm_plan_lifetimes(vm_plan *p); /* uses, forwarding, aiming, sharing, lifetimes */
simt_status vm_emit(vm_plan *p, vm_code *c);

/* ---- spread.c ---- */

uint32_t vm_spread_lanes(const uint32_t block[3]);
bool vm_plan_spreads(const vm_plan *p); /* scanned */
/* Of the codes of a kernel, the one for this launch. */
const vm_code *vm_choose(const vm_code *c, const code_launch *l);
uint64_t vm_runs(const code_blocks *self, const code_launch *l);
/* The first thread of a run of spread code, and how many it has. */
uint32_t vm_start_spread(const vm_code *c, const code_launch *l, uint64_t run, int64_t index[3]);
/* The block of a lane, and its number there. */
void vm_where(const vm_code *c, const vm_frame *f, const vm_gang *g, uint32_t lane, uint64_t *block,
              uint32_t *thread);

#endif
