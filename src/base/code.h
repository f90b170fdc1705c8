/* The compiled artifact and its calling convention: where compilers and devices meet.
 *
 * All code has a name, parameters and an end (`code`); what runs it is one of its kinds: functions that run
 * blocks on a CPU (code_blocks), text for a driver (code_text). A device runs one of them.
 *
 * A block function runs the threads of one block and is resumable: it returns DONE, YIELD (its budget
 * is used up, or, with budget left, it waits for something another block must do; calling it again
 * with the same frame and launch goes on), STUCK (its threads wait for each other and none can go on; the
 * record says where) or NO_MEMORY (calls found none; the block is abandoned). Code that comes to a fault
 * fills the record and goes on to DONE. Starting a block: the frame is handed over with
 * `resume` false. Frames are 64-byte aligned, `frame_bytes` plus the launch's `shared_bytes` each, and
 * hold all state of a running block, shared memory included, but for the stacks of code with calls, which
 * take memory from the launch: other code never allocates. What an earlier
 * block left in a frame may stay there: code recognises a frame that it has set up before.
 */
#ifndef SIMT_BASE_CODE_H
#define SIMT_BASE_CODE_H

#include "base/source.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum code_result { CODE_DONE, CODE_YIELD, CODE_STUCK, CODE_NO_MEMORY } code_result;

enum { CODE_FAULT_VALUES = 4, CODE_FAULT_CALLS = 6 };
/* Of the functions beside a kernel (ir.h): calls in each other, and what their values may take for a thread. */
enum { CODE_MOST_CALLS = 65536, CODE_MOST_STACK_MB = 64 };
#define CODE_FAULT_DEEP \
    UINT32_MAX /* a fault of no instruction: more calls in calls than there may be */
/* A fault of the user's program (index out of range, ...): the first in block order is reported. */
typedef struct code_fault {
    bool set;
    uint32_t number;                   /* imm of the IR's fault instruction */
    source_pos pos;                    /* in the user's source */
    uint64_t block;                    /* flat block number */
    uint32_t thread;                   /* flat thread number in the block */
    int64_t values[CODE_FAULT_VALUES]; /* operands of the fault instruction */
    uint32_t ncalls; /* that the thread was in, of functions beside the kernel (ir.h) */
    source_pos
        calls[CODE_FAULT_CALLS]; /* where they stand, the innermost first; the last one here is
                                         * the outermost */
    /* not of the fault: where the code last yielded or got stuck */
    source_pos at;
    uint32_t at_thread;
    uint64_t at_block;
    const char *at_what; /* "loop", or the operation that waits; static */
} code_fault;

/* Where the blocks of a launch meet (grid.sync). Blocks that ended count as arrived. The device has it
 * ready for code with `meets`, and says which blocks end. */
typedef struct code_meeting {
    pthread_mutex_t lock;
    uint64_t blocks, arrived, ended;
    _Atomic uint64_t round; /* grows when all have met */
} code_meeting;

/* The round to wait for the end of: over when m->round differs. */
uint64_t code_meeting_arrive(code_meeting *m);
void code_meeting_leave(code_meeting *m);

/* Memory that blocks take while they run. The device has it ready for code that `recurses`, and frees what
 * is left when the launch ends, however it ends. */
typedef struct code_piece code_piece;
typedef struct code_memory {
    pthread_mutex_t lock;
    code_piece *first;
} code_memory;

void code_memory_begin(code_memory *m);
void *code_memory_take(code_memory *m, size_t bytes); /* 64-byte aligned; NULL: there is none */
void code_memory_give(code_memory *m, void *taken);
void code_memory_end(code_memory *m);

typedef struct code_launch {
    uint32_t grid[3], block[3];
    /* one per parameter: the bits of the value, zero-extended; of a struct the address of its bytes, of any
     * alignment: the device copies them before `launch` returns. Behind these, of each variable of the unit
     * (ir.h) the address */
    const uint64_t *args;
    size_t shared_bytes;   /* dynamic shared memory, beyond what the code itself needs */
    code_meeting *meeting; /* the device's; callers of the device leave it NULL */
    code_memory *memory;   /* the same */
    bool whole;            /* neither Ctrl-C nor a time limit stops it once it has begun */
} code_launch;

/* A parameter that is a struct by value: code reads it where its slot says. */
typedef struct code_struct {
    uint32_t param;
    uint16_t bytes;
    uint8_t align; /* a power of 2 */
} code_struct;

typedef enum code_kind { CODE_BLOCKS, CODE_TEXT } code_kind;

typedef struct code code;
struct code {
    code_kind kind;
    uint32_t block[3]; /* the block size it was compiled for */
    uint32_t nparams, nstructs, nvariables;
    const code_struct *structs;       /* owned by the code, as is all behind it */
    const char *const *variables;     /* names */
    size_t shared_bytes, local_bytes; /* of a block, of a thread: what the kernel declares */
    const char *name, *file;
    const source_call *calls; /* what was called inside: source_pos.call */
    void (*destroy)(code *self);
};

typedef struct code_blocks code_blocks;
struct code_blocks {
    code base;
    /* block: flat block number, x fastest, or (`runs`) number of the run. budget: decremented by work
     * done (about one per loop round per gang, more for long rounds: some 50 ns each); at zero the code
     * returns YIELD. */
    code_result (*run)(const code_blocks *self, const code_launch *launch, void *frame,
                       uint64_t block, bool resume, int64_t *budget, code_fault *fault);
    /* How many runs a launch takes, where code groups the threads of the grid in its own way; or NULL. */
    uint64_t (*runs)(const code_blocks *self, const code_launch *launch);
    size_t frame_bytes; /* for this code's block size (fixed when it was compiled) */
    bool meets;         /* uses launch->meeting */
    bool recurses;      /* uses launch->memory */
    /* rough ns, for the choice between one thread and the pool; 0: unknown */
    uint64_t cost_per_block;
};

typedef struct code_text {
    code base;
    const char *text, *entry; /* owned by the code; the name of the kernel in the text */
    uint32_t least;           /* the oldest processor that runs it: 75 is sm_75 */
} code_text;

/* A launch's arguments with copies of its structs, aligned: for devices whose memory is the host's. In one
 * piece, for heap_free; NULL: there is no memory. */
uint64_t *code_copy_structs(const code *c, const uint64_t *args);

static inline uint64_t code_count_runs(const code_blocks *c, const code_launch *l) {
    return c->runs != NULL ? c->runs(c, l) : (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

#endif
