/* From tensor operations to kernels: the program, the planner, the plan. No memory is touched here.
 *
 * array/ appends operations to an open *program* (a flat list of 64-bit words: its bytes are the key
 * of the plan cache). When a value is looked at, the whole program is evaluated in order: planned at
 * the first time (fuse.c groups nodes into steps, lower.c turns a group into IR), afterwards found by
 * its key. Program order is what makes in-place writes right: a reader that comes before a write runs
 * before it, so a copy of an old version is never needed.
 *
 * Not in the key, and so free to change from run to run: buffer addresses, offsets of views into buffers
 * that the program only reads, scalars (learning rates, seeds, Python numbers).
 */
#ifndef SIMT_GRAPH_GRAPH_H
#define SIMT_GRAPH_GRAPH_H

#include "base/dtype.h"
#include "base/status.h"
#include "ir/ir.h"

#define GRAPH_MAX_NDIM    16
#define GRAPH_MAX_INPUTS  8
#define GRAPH_MAX_SCALARS 4
#define GRAPH_MAX_PARAMS  16

typedef enum array_op {
#define EW(id, ...)   OP_##id,
#define RED(id, ...)  OP_##id,
#define CALL(id, ...) OP_##id,
#include "graph/array_ops.def"
    ARRAY_OP_COUNT
} array_op;

typedef enum array_op_kind { OP_KIND_EW, OP_KIND_RED, OP_KIND_CALL } array_op_kind;
typedef enum reduction_neutral { MINUS_ZERO, ZERO, ONE, LOWEST, HIGHEST } reduction_neutral;
typedef struct array_op_info {
    const char *name;
    const char *expansion; /* FORMULA, or "" */
    const char *grad[3];
    const char *node,
        *node_dim;    /* PyTorch's name of the gradient's node; reductions over some axes */
    const char *cupy; /* names, separated by spaces */
    int8_t arity;     /* -1: any */
    char dtypes;
    array_op_kind kind;
    reduction_neutral neutral; /* OP_KIND_RED */
    array_op combine;
} array_op_info;
extern const array_op_info array_op_table[ARRAY_OP_COUNT];
/* Reductions: those that give a position; those of nothing at all that have a value. */
static inline bool array_op_is_position(array_op op) { return array_op_table[op].dtypes == 'P'; }
static inline bool array_op_has_identity(array_op op) { return array_op_table[op].neutral <= ONE; }
/* The row of that name, or ARRAY_OP_COUNT. */
array_op array_op_find(const char *name);

/* How dtypes promote: the rules of the library whose face asks. */
typedef enum graph_face { FACE_NUMPY, FACE_TORCH } graph_face;
/* An operand for the type rules. weak: a Python scalar (kind 'B', 'I', 'F': its kind only counts);
 * zero_dim: a 0-d tensor (PyTorch ranks it below tensors with dimensions). */
typedef struct graph_type {
    dtype dt;
    bool weak, zero_dim;
} graph_type;
/* The compute type and the result type of an elementwise row. default_float: PyTorch's default dtype.
 * Failure: SIMT_ERR_TYPE with the face's words (ufunc 'x' not supported for the input types ...). */
simt_status graph_dtypes(array_op op, graph_face face, const graph_type *in, int nin,
                         dtype default_float, dtype *compute, dtype *result);
/* NumPy's dtype= of a ufunc: there must be a loop with that result; same_kind: and the operands must go into
 * it without changing to a lower kind. */
simt_status graph_check_loop(array_op op, const graph_type *in, int nin, dtype dt, char casting);
/* NumPy's casting= by a letter: n(o), e(quiv), s(afe), k (same_kind; also 0), u(nsafe). */
bool graph_can_cast(dtype from, dtype to, char casting);
const char *graph_casting_name(char casting);
bool graph_is_same_kind(dtype from, dtype to); /* NumPy's rule for casts */
simt_status graph_reduce_dtype(array_op op, graph_face face, dtype in, dtype *result);
/* numpy.broadcast_shapes. Failure: SIMT_ERR_VALUE with NumPy's words, or SIMT_ERR_RUNTIME with PyTorch's. */
simt_status graph_broadcast(graph_face face, const int64_t *const *shapes, const int *ndims, int n,
                            int64_t *shape, int *ndim);

/* ---- the program ---- */

/* A strided window on a buffer; strides and offset in bytes, strides may be 0 or negative. */
typedef struct graph_view {
    uint32_t buffer; /* index in the program's buffer list */
    dtype dt;
    int ndim;
    int64_t shape[GRAPH_MAX_NDIM], strides[GRAPH_MAX_NDIM];
    int64_t offset;
} graph_view;
bool graph_view_contiguous(const graph_view *v); /* C order, without gaps */

/* One operation, decoded. An input is a view (already of the shape to iterate: broadcast dimensions have
 * stride 0) or, for elementwise rows, a scalar of the node (scalar[i] >= 0 gives its number). */
typedef struct graph_node {
    array_op op;
    int nin, nscalars, nparams;
    graph_view in[GRAPH_MAX_INPUTS];
    int8_t
        scalar[GRAPH_MAX_INPUTS]; /* -1: in[i] is a view; else the scalar's number in this node */
    graph_view out;               /* new buffer (contiguous), or the window written in place */
    dtype compute; /* elementwise: operands are converted to it before, results after */
    int64_t params[GRAPH_MAX_PARAMS]; /* in the key: reductions: params[0] = bit mask of axes */
    uint32_t first_scalar,
        first_offset; /* set by decoding: this node's first ones of the program */
} graph_node;

/* A reduction whose reduced elements lie densely in memory, so that a library step can read it row by row:
 * in[0]'s last dimensions are reduced and have no gaps, the result is contiguous. Sets their number. */
#define GRAPH_ROW_CHUNK 4096 /* the order of sums: see lower_reduce.c */
#define GRAPH_ROW_LANES 128
bool graph_reduces_rows(const graph_node *n, int64_t *length);

#define GRAPH_WRITTEN 0x80000000u
typedef struct graph_program {
    uint64_t
        *words; /* encoded nodes; with the buffer facts at the end (graph_program_close) the key */
    uint32_t nwords, words_capacity;
    int64_t *offsets; /* of every view in order of encoding (inputs, then output, node by node) */
    uint32_t noffsets, offsets_capacity;
    uint32_t *view_buffers,
        view_buffers_capacity; /* by view: its buffer, | GRAPH_WRITTEN for outputs */
    uint32_t *first_view, first_view_capacity; /* scratch of closing */
    uint32_t buffer_words;                     /* where the buffer facts start in words */
    uint32_t open_words;                       /* of the nodes alone: what closing adds is not in */
    uint64_t open_hash;
    uint64_t
        *scalars; /* bits of the value in the node's compute type (or f64/i64 as the row says) */
    uint32_t nscalars, scalars_capacity;
    uint32_t nnodes, nbuffers;
    uint64_t hash; /* of words, kept up to date as nodes are added */
} graph_program;

/* Facts of one buffer when the program is closed. */
typedef struct graph_buffer {
    int64_t bytes;
    bool ready; /* has its memory and contents (or memory to be written into) before the program */
    bool kept;  /* somebody still holds it afterwards: it must be in memory then */
} graph_buffer;

void graph_program_init(graph_program *p);
void graph_program_deinit(graph_program *p);
void graph_program_clear(graph_program *p); /* keeps the memory */
/* Appends; views' buffer numbers are the caller's. Failure: SIMT_ERR_MEMORY, nothing added. */
simt_status graph_program_add(graph_program *p, const graph_node *node, const uint64_t *scalars);
/* The next `nodes` of at most 3 inputs are added without fail. */
simt_status graph_program_reserve(graph_program *p, uint32_t nodes);
/* Appends the facts of buffers 0..n-1; the program is then a key. */
simt_status graph_program_close(graph_program *p, const graph_buffer *buffers, uint32_t n);
/* Closed or not, it is open: nodes can be added. */
void graph_program_reopen(graph_program *p);
/* How long an open program is: what graph_program_withdraw goes back to. */
typedef struct graph_mark {
    uint32_t nwords, noffsets, nscalars, nnodes;
    uint64_t hash;
} graph_mark;
static inline graph_mark graph_program_mark(const graph_program *p) {
    return (graph_mark){p->nwords, p->noffsets, p->nscalars, p->nnodes, p->hash};
}
/* The nodes that were added since the mark was made are gone. */
void graph_program_withdraw(graph_program *p, const graph_mark *mark);
/* Decodes all nodes (arena memory). */
void graph_program_decode(const graph_program *p, arena *mem, graph_node **nodes,
                          graph_buffer **buffers);

/* ---- the plan ---- */

typedef enum graph_arg_kind {
    GRAPH_ARG_VIEW,   /* address of buffer `index` + offset word `offset_index` + `add` */
    GRAPH_ARG_SCALAR, /* scalar `index` of the program */
    GRAPH_ARG_CONST,  /* `add` */
} graph_arg_kind;
typedef struct graph_arg {
    uint8_t kind;
    uint32_t index;
    int32_t offset_index; /* -1: none */
    int64_t add;
} graph_arg;

typedef struct graph_step {
    bool is_call;
    uint32_t node; /* is_call: which node */
    ir_func *func; /* kernel: taken by the caller (array/ compiles it and sets it NULL) */
    void *kernel;  /* array/'s compiled kernel */
    uint32_t grid[3], block[3];
    graph_arg *args;
    uint32_t nargs;
    uint32_t *allocs, nallocs; /* buffers to allocate before this step */
    uint32_t *frees, nfrees;   /* buffers that no later step needs and that are not kept */
    uint32_t *nodes, nnodes;   /* all nodes computed here (errors, profile) */
} graph_step;

typedef struct graph_plan {
    arena mem;
    graph_node *nodes; /* decoded; offsets and scalars in them are those of the first run only */
    graph_buffer *buffers; /* the program's, then temporaries of the plan (reduction partials) */
    uint32_t nnodes, nbuffers, nprogram_buffers;
    graph_step *steps;
    uint32_t nsteps;
    uint64_t hash;
    uint64_t *words; /* copy of the key */
    uint32_t nwords;
} graph_plan;

/* What the target of a plan can do. Rows of kind CALL are always steps of the library, whose owner sees to
 * it that they run somewhere. */
typedef struct graph_target {
    bool steps
        [ARRAY_OP_COUNT]; /* it has a library step for the row: quicker than a kernel, where it fits */
    uint32_t most_threads; /* of a block, at least 1024 */
} graph_target;

/* Plans a closed program. Dead nodes are left out. *out is freed by graph_plan_free. */
simt_status graph_plan_new(const graph_program *p, const graph_target *target, graph_plan **out);
void graph_plan_free(graph_plan *plan);

#endif
