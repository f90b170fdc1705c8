/* What the files of array/ share: the process context and its lock, the open program, library steps.
 *
 * Lock: one for all state here. Rule against deadlock: whoever has to wait for it gives the GIL back
 * first (array_lock does); so taking the GIL while holding the lock is safe. Code of others (release of
 * foreign memory) runs after unlocking.
 */
#ifndef SIMT_ARRAY_INTERNAL_H
#define SIMT_ARRAY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "array/array.h"
#include "device/device.h"

/* ---- the context ---- */

/* One storage in the open program; its index is the program's buffer number. */
typedef struct array_slot {
    storage *store;
    bool written; /* a node writes it: reading its memory needs the program to run first */
    bool fresh;   /* its memory holds nothing but what the program writes */
    bool needed;  /* by nodes that part_begin_locked took out of the program */
} array_slot;

/* The Python line of a node whose failure depends on data. */
typedef struct array_position {
    uint32_t node;
    int line;
    char file[240];
} array_position;

typedef struct array_context {
    pthread_mutex_t lock;
    simt_runtime *rt;
    device *dev, *host; /* of the target; the host's, for what the target has no code for */
    const struct array_library *library; /* of the target */
    graph_target facts;                  /* the same, as the planner hears it */
    bool ready, eager;
    bool reopened; /* the program has nodes that an interrupt, or planning without memory, left */
    /* What computes without the interpreter's lock now: the program, or anything. */
    enum { RUNS_NOTHING, RUNS_PROGRAM, RUNS_ANY } running;
    /* What is queued is recorded, for `capturer`, and does not run (capture.h); the how manieth capture;
     * another thread has ended it */
    bool capturing, intruded;
    pthread_t capturer;
    uint32_t captures;
    bool deferred; /* an interrupt waits for the interpreter: array_clear_deferred */
    /* grows in the child of a fork that a signal handler did in the middle of a run */
    unsigned forks;
    graph_program program;
    array_slot *slots;
    uint32_t nslots, slots_capacity;
    array_position *positions;
    uint32_t npositions, positions_capacity;
    uint32_t
        withdrawn; /* the node that is not to be repeated after an interrupt; UINT32_MAX: none */
    size_t pinned; /* bytes that only the open program keeps alive */
    array *free_arrays;     /* chained by `store` */
    storage *free_storages; /* chained by `owner` */
    storage *exposed;       /* those with memory of ours; chained by `next` */
    storage *doomed;        /* foreign, to be released after unlocking; chained by `diag` */
    array *_Atomic orphans; /* died while the lock was taken; chained by `store_next` in shape[0] */
    simt_status (*target_hook)(target **out);
    void *(*gil_drop)(void);
    void (*gil_take)(void *token);
    bool (*defer_hook)(void);
    void (*position_hook)(char *file, size_t size, int *line);
    const char *(*blas_path_hook)(void);
    array_stats stats;
} array_context;
extern array_context array_ctx;

/* ---- order of kernels and array operations (order.c) ---- */
bool order_inside_kernel(void);                    /* of this thread */
simt_status order_await_kernels(const storage *s); /* those that use it now */
simt_status order_await_program(void);             /* those that use what is in the program */
void order_changed(void);                          /* an evaluation ended */
void order_after_fork(void);

/* Failure: this thread holds the lock already (an operation inside a signal handler). */
simt_status array_lock(void);
/* The same, of who may fail by an interrupt: it is heard while another thread computes. (array_lock hears it
 * in an entry point that has not queued anything.) */
simt_status array_lock_to_look(void);
void array_unlock(void);

/* ---- captures (capture.c) ---- */
#define CAPTURE_NO_VALUE "a value of a captured step cannot be looked at outside of it"
/* Of an array that stands for one in a capture: it never has memory. */
static inline bool storage_is_placeholder(const storage *s) {
    return !s->data && s->slot < 0 && s->bytes && !s->failed;
}
/* While one is open: a look at the value of `s` (NULL: at anything that waits). */
simt_status capture_look_locked(const storage *s);
simt_status capture_fail_locked(const char *why);
void capture_intrude_locked(void); /* another thread has come: the capture ends */
static inline void capture_guard_locked(void) {
    if (__builtin_expect(array_ctx.capturing, 0) &&
        !pthread_equal(array_ctx.capturer, pthread_self()))
        capture_intrude_locked();
}

/* ---- storages and arrays; "locked": the caller holds the lock ---- */

storage *storage_new_locked(size_t bytes); /* no memory yet; NULL: out of memory (recorded) */
void storage_expose_locked(storage *s);    /* it has its memory */
void storage_unref_locked(storage *s);
void storage_fail_locked(storage *s, const simt_diag *diag);
/* A new array on `s` (takes the reference, also on failure); strides NULL: C order. */
simt_status array_new_locked(storage *s, dtype dt, const int64_t *shape, const int64_t *strides,
                             int ndim, int64_t offset, array **out);
/* A new array with its own storage; with memory when `now`. */
simt_status array_new(dtype dt, const int64_t *shape, int ndim, bool now, array **out);

/* First and one-past-last byte that the view touches, relative to the storage's start. */
void array_extent(const array *a, int64_t *low, int64_t *high);
bool array_same_view(const array *a, const array *b);
bool array_may_overlap(const array *a, const array *b);
/* "(2, 3)", as NumPy writes shapes; returns `text`. */
char *shape_print(const int64_t *shape, int ndim, char *text, size_t size);

/* Copies host memory; all strides in bytes. */
void strided_copy(char *to, const int64_t *to_strides, const char *from,
                  const int64_t *from_strides, const int64_t *shape, int ndim, size_t itemsize);

/* ---- the open program ---- */

/* A node on its way into the program. The views in node need no buffer numbers. */
typedef struct queue_request {
    graph_node node;
    array *in[GRAPH_MAX_INPUTS]; /* NULL where node.scalar[i] >= 0 */
    array *out; /* written in place; NULL: a new array of node.out's dtype and shape */
    bool fresh; /* out was made for this write */
    uint64_t scalars[GRAPH_MAX_SCALARS];
    const array_position *position;
} queue_request;

/* Only the fields that count are set: the structure is large. */
static inline void queue_request_init(queue_request *q, array_op op) {
    q->node.op = op;
    q->node.nin = q->node.nscalars = q->node.nparams = 0;
    q->out = NULL;
    q->fresh = false;
    q->position = NULL;
}
void queue_view(graph_view *v, const array *a);
/* As queue_view, broadcast to the shape (which must be compatible). */
void queue_view_broadcast(graph_view *v, const array *a, const int64_t *shape, int ndim);
void queue_input(queue_request *q, array *a);
void queue_output_new(queue_request *q, dtype dt, const int64_t *shape, int ndim);
/* Adds the node; runs the program when it must (eager, exposed memory, bounds). *result gets a new
 * reference (to q->out or the new array); result may be NULL for writes in place. */
simt_status queue_add(queue_request *q, array **result);
/* params[0] of an indexing node: the mask of its axes, and this bit: negative indices are errors. */
#define INDEX_STRICT ((int64_t)1 << 40)
void queue_ask_position(array_position *p);  /* before taking the lock */
void queue_clear_locked(void);               /* drops the program's references */
bool queue_defer_locked(simt_status status); /* true: it was an interrupt, to be raised later */
/* Appends a node with its own part of these offsets and scalars, which may be the program's (then what has
 * not been appended yet is not overwritten). */
simt_status queue_append_locked(const graph_node *n, const int64_t *offsets,
                                const uint64_t *scalars);
/* After a run that was stopped: the program is the nodes that are `left`. What they read has its memory. */
void queue_reopen_locked(const graph_plan *plan, const bool *left);

/* Runs the open program. Failure: the first failure of a step; what depends on it is marked. An interrupt:
 * what has not run is the open program again. Without memory for planning: all of it is. */
simt_status evaluate_locked(void);
bool evaluate_was_planned(void); /* false: the last run was not, for want of memory */
/* The storage has no value; or, where the write that failed is into memory with contents, it was dropped. */
void evaluate_fail_locked(const array_slot *slot, const simt_diag *diag);
/* Until part_end_locked the program is what this storage, which it writes, needs; false: it needs all. */
bool part_begin_locked(const storage *s);
void part_end_locked(bool ran); /* ran: nothing is left of it. Without a begin: nothing happens */
bool part_is_active(void);
void evaluate_after_fork(void);    /* in the child, when this thread was in the middle of a run */
void evaluate_forget_locked(void); /* the memory that is kept from run to run */
/* What a reader of `s` (or NULL) must hear after a run: its own failure, else that of a dropped write. */
simt_status evaluate_outcome_locked(const storage *s, simt_status ran);

/* ---- library steps ---- */

typedef struct call_view {
    char *data;
    dtype dt;
    int ndim;
    const int64_t *shape, *strides;
} call_view;
typedef struct call_args {
    const graph_node *node;
    call_view in[GRAPH_MAX_INPUTS], out;
    device *dev;
} call_args;
typedef simt_status (*call_function)(const call_args *c);
/* What a target has in ready code: NULL where it has none. dev of a step's arguments is the host's. */
typedef struct array_library {
    call_function calls[ARRAY_OP_COUNT];
    bool adam; /* array_adam_step */
} array_library;
extern const array_library library_cpu, library_none;
/* A step that the target's library lacks, by the CPU's, on copies (host.c). */
simt_status host_call(const call_args *c);
double call_cost(const graph_node *n); /* rough ns */

#define CALL_DECLARE(name) simt_status name(const call_args *c)
CALL_DECLARE(call_copy); /* also of a cast to the same type */
CALL_DECLARE(call_matmul);
CALL_DECLARE(call_index_get); /* also take */
CALL_DECLARE(call_index_put);
CALL_DECLARE(call_take_along);
CALL_DECLARE(call_check_unit);
CALL_DECLARE(call_cumsum);
CALL_DECLARE(call_moments);
bool moments_fit(const array *a, uint32_t mask); /* call_moments knows this view */
CALL_DECLARE(call_sort);                         /* also argsort */
CALL_DECLARE(call_reduce_rows);
CALL_DECLARE(call_conv2d);
CALL_DECLARE(call_conv2d_input);
CALL_DECLARE(call_conv2d_weight);
CALL_DECLARE(call_max_pool2d);
CALL_DECLARE(call_max_pool2d_index);
CALL_DECLARE(call_max_pool2d_back);
CALL_DECLARE(call_avg_pool2d);
CALL_DECLARE(call_avg_pool2d_back);

/* ---- small helpers ---- */

/* One operand by C value, for compositions. */
static inline operand operand_array(array *a) { return (operand){.a = a}; }
static inline operand operand_float(double v) {
    return (operand){.s = {.kind = 'F', .f = v}, .weak = true};
}
static inline operand operand_int(int64_t v) {
    return (operand){.s = {.kind = 'I', .i = v}, .weak = true};
}
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
