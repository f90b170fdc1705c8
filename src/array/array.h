/* Arrays: NumPy's model (typed, strided views on counted storages) with deferred evaluation.
 *
 * An operation fixes shape, dtype and shape errors at once and returns an array whose storage has no
 * memory yet; the operation waits in the open program (graph/graph.h). array_evaluate runs all that
 * waits, in order. Functions returning a new array return one reference to the caller. Arrays are
 * immutable descriptors: views share the storage; in-place operations write the storage and bump its
 * version. Everything here takes the context's lock; the binding drops the GIL where it may wait.
 */
#ifndef SIMT_ARRAY_ARRAY_H
#define SIMT_ARRAY_ARRAY_H

#include "base/dtype.h"
#include "base/status.h"
#include "graph/graph.h"
#include "runtime/runtime.h"

#define ARRAY_MAX_NDIM GRAPH_MAX_NDIM

typedef struct storage storage;
struct storage {
    int refs;         /* all references: arrays + the open program's */
    int program_refs; /* those of the open program: refs > program_refs means somebody holds it */
    int32_t slot;     /* buffer number in the open program, or -1 */
    uint32_t version; /* bumped by each in-place write (PyTorch's version counter) */
    uint32_t hidden_version; /* the same for writes through hidden arrays */
    size_t bytes;
    device *device; /* where its memory is */
    void *
        data; /* NULL: not computed yet (or 0 bytes). An address of the device's: host.c knows whose */
    bool exposed;       /* foreign code can see the memory: ops that read or write it run at once */
    bool foreign;       /* memory is not ours */
    uint32_t capture;   /* made while that capture was open; 0: none was */
    simt_status failed; /* the computation of its value failed; `diag` says how */
    simt_diag *diag;
    /* order.c: kernels that use it now, those of the default stream, and the process that counted */
    unsigned kernels, default_kernels, kernels_process;
    void (*release)(void *owner); /* foreign: called once, when the last reference goes */
    void *owner;
    storage *next, *before; /* among the exposed ones that are not foreign */
};

typedef struct array {
    int refs;
    dtype dt;
    int ndim;
    int64_t size;   /* number of elements */
    int64_t offset; /* bytes */
    storage *store;
    bool hidden; /* its writes do not count as changes of the storage's other arrays (`.data`) */
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM]; /* strides in bytes */
} array;

/* The context is one for all of array/: programs of several targets in one process would each need their
 * own queue and lock, which nothing needs so far. It computes on the target that its owner (the binding) gives
 * it, by the hook, at the first use; it owns that. */
void array_set_target_hook(simt_status (*make)(target **out));
simt_status array_context_init(void);
/* Computes what waits and gives back all memory that is kept for reuse: plans, kernels, free pieces. */
simt_status array_forget(void);
simt_runtime *array_runtime(void);
bool array_is_on_host(void); /* the target's memory is the host's */
bool array_eager(void);      /* SIMT_EAGER=1 */
void array_set_eager(bool eager);

array *array_ref(array *a);
void array_unref(array *a); /* NULL is fine */
/* A result that is not given after all: the caller finds NULL. */
static inline void array_drop(array **out) {
    array *a = *out;
    *out = NULL;
    array_unref(a);
}

/* ---- creation (C order, new storage) ---- */
simt_status array_check_shape(const int64_t *shape, int ndim, dtype dt,
                              int64_t *size); /* overflow, negative */
simt_status array_empty(dtype dt, const int64_t *shape, int ndim,
                        array **out); /* memory now, not cleared */
simt_status array_full(dtype dt, const int64_t *shape, int ndim, scalar value, array **out);
simt_status array_arange(dtype dt, scalar start, scalar step, int64_t count, array **out);
simt_status array_linspace(dtype dt, double start, double stop, int64_t count, bool endpoint,
                           array **out);
simt_status array_eye(dtype dt, int64_t rows, int64_t columns, int64_t diagonal, array **out);
/* 0 counts[0] times, 1 counts[1] times, ... (int64); with ncounts 1 each of `size` numbers so often. */
simt_status array_repeat_index(const int64_t *counts, int64_t ncounts, int64_t size, array **out);
/* Copies strided host memory in. */
simt_status array_from_memory(dtype dt, const int64_t *shape, const int64_t *strides, int ndim,
                              const void *data, array **out);
/* Shares foreign memory of the host: exposed; release(owner) when the last reference goes. Where the target's
 * memory is not the host's, it is a copy: release(owner) at once. */
simt_status array_from_foreign(dtype dt, const int64_t *shape, const int64_t *strides, int ndim,
                               void *data, size_t bytes, void (*release)(void *), void *owner,
                               array **out);

/* ---- looking ---- */
simt_status
array_evaluate(array *a); /* runs the open program if a waits in it; raises a's failure */
simt_status array_evaluate_all(void);
/* As array_evaluate_all, at the end of an operation that is done: an interrupt is raised by the interpreter
 * afterwards; what there is no memory to plan waits for the next look. */
simt_status array_settle(void);
/* Between the two this thread's operations (at most so many, of 3 inputs) find room to be recorded, and a long
 * program does not run. Those on memory that foreign code sees run at once all the same. */
simt_status array_step_begin(uint32_t nodes);
void array_step_end(void);
simt_status
array_expose(array *a); /* evaluates and marks the storage exposed; then array_data is stable */
/* All bytes (DT_U8) of the exposed storage, not a foreign one, that the address lies in; *out NULL: none. */
simt_status array_at_address(uintptr_t address, array **out);
/* Address of the first element, on its device; NULL until evaluated. Kernels and exchange read it, nobody else:
 * see "the host's look" below. */
void *array_data(const array *a);
simt_status array_item(array *a, scalar *out);  /* one element; size must be 1 */
simt_status array_copy_out(array *a, void *to); /* C order, dense */
bool array_is_contiguous(const array *a);       /* C order */
bool array_same_shape(const array *a, const int64_t *shape, int ndim);
static inline uint32_t *array_version(const array *a) {
    return a->hidden ? &a->store->hidden_version : &a->store->version;
}

/* ---- the host's look at memory (host.c) ----
 *
 * Between open and close the host can read and write the elements of an array that has its value, at
 * w.data; where its memory is the host's that is the memory itself. FILL: all of it is written, what was there
 * is not read. close: what was written is the array's. */
typedef enum array_access { ARRAY_READ, ARRAY_FILL, ARRAY_CHANGE } array_access;
typedef struct array_window {
    char *data; /* the first element */
    array_access access;
    device *device;     /* of the array, where this is a copy: */
    char *copy, *there; /* ours, the device's */
    size_t bytes;
} array_window;
simt_status array_open(const array *a, array_access access, array_window *w);
simt_status array_close(array_window *w);
void array_discard(array_window *w); /* what was written is not (or perhaps) the array's */
/* For foreign code, which may keep it: `a` itself, exposed, where its memory is the host's; else an array of
 * the host's device with a copy of the whole storage. */
simt_status array_to_host(array *a, array **out);
/* What was written there is a's, whose array_to_host it is. */
simt_status array_from_host(array *a, const array *host);

/* ---- views (same storage) ---- */
simt_status array_view_strided(array *a, dtype dt, const int64_t *shape, const int64_t *strides,
                               int ndim, int64_t offset, array **out);
/* The same elements; views of a hidden array are hidden. */
simt_status array_alias(array *a, bool hidden, array **out);
simt_status array_reshape(array *a, const int64_t *shape, int ndim,
                          array **out); /* one -1 allowed; copies if it must */
simt_status array_try_reshape_view(array *a, const int64_t *shape, int ndim,
                                   array **out);                     /* *out NULL: needs a copy */
simt_status array_transpose(array *a, const int *axes, array **out); /* axes NULL: reversed */
simt_status array_squeeze(array *a, uint32_t axes_mask, array **out);
simt_status array_expand_dims(array *a, int axis, array **out);
simt_status array_broadcast_to(array *a, const int64_t *shape, int ndim, array **out);
/* Basic indexing: per item an integer (drops the axis), a slice, a new axis; an ellipsis is resolved by the caller. */
typedef struct array_slice {
    enum { SLICE_INDEX, SLICE_RANGE, SLICE_NEWAXIS } kind;
    int64_t start, stop,
        step; /* RANGE: already clipped as slice.indices does; INDEX: start, may be negative */
} array_slice;
simt_status array_slice_view(array *a, const array_slice *items, int n, array **out);
simt_status array_concatenate(array **arrays, int n, int axis, graph_face face, array **out);
simt_status array_stack(array **arrays, int n, int axis, graph_face face, array **out);

/* ---- operations ---- */
/* An operand: an array, or (a == NULL) a scalar; weak scalars are Python numbers. */
typedef struct operand {
    array *a;
    scalar s;
    bool weak;
} operand;
typedef struct op_options {
    graph_face face;
    dtype default_float; /* PyTorch's; FACE_NUMPY ignores it */
    bool has_dtype;      /* compute and return `dt` (ufunc dtype=, rule X rows) */
    dtype dt;
    bool keep_order; /* a new result lies as the operands do: NumPy's order K */
    /* of operands into dt and of the result into out: graph_can_cast; 0: unchecked, same_kind */
    char casting;
    array *out; /* write here (in place: shape must match, cast must be same_kind) */
    /* s0.. of the row (converted to the compute type; seeds are passed by array_random_*) */
    const double *scalars;
    int nscalars;
} op_options;
/* Any elementwise row. With options->out the result is a new reference to out. */
simt_status array_elementwise(array_op op, const operand *in, int nin, const op_options *options,
                              array **out);
simt_status array_astype(array *a, dtype dt, array **out); /* always a new array */
simt_status array_copy(array *a, array **out);
/* dst[...] = src with broadcasting and casting (NumPy's unsafe assignment). */
simt_status array_assign(array *dst, const operand *src, graph_face face);

/* Orders of memory: 'C', 'F', 'A', 'K' as NumPy's (layout.c). A dtype that is the array's copies. */
simt_status array_astype_order(array *a, dtype dt, char order, array **out);
simt_status array_reshape_order(array *a, const int64_t *shape, int ndim, char order, array **out);
simt_status array_ravel_order(array *a, char order, array **out);
/* value NULL: not filled */
simt_status array_full_order(dtype dt, const int64_t *shape, int ndim, const scalar *value,
                             char order, array **out);
bool array_is_f_contiguous(const array *a);
/* The axes of what n arrays broadcast to, outermost in memory first; false: they are in C order. */
bool array_memory_order(array *const *arrays, int n, int ndim, int *axes);
bool array_join_order(array *const *arrays, int n, int ndim, int *axes); /* as joins see it */
/* Undoes a transposition by `axes` of what `turned` was made from; takes it. */
simt_status array_turn_back(simt_status status, array *turned, const int *axes, array **out);

/* Reductions: axes_mask bit per axis; all axes of a 0-d array: mask 0. */
typedef struct reduce_options {
    uint32_t axes_mask;
    bool keepdims;
    graph_face face;
    bool has_dtype;
    dtype dt;
    double ddof; /* var, std */
    dtype default_float;
} reduce_options;
simt_status array_reduce(array_op op, array *a, const reduce_options *options, array **out);
simt_status array_mean(array *a, const reduce_options *options, array **out);
simt_status array_var(array *a, const reduce_options *options, bool root, array **out);
/* Of floats: mean and biased variance, the reduced axes kept as 1. */
simt_status array_moments(array *a, uint32_t mask, array **mean, array **var);
simt_status array_softmax(array *a, int axis, bool logarithm, array **out); /* floats */
/* 0-d, 0: its evaluation fails where an element of `a` is not in [0, 1]. */
simt_status array_check_unit(array *a, array **out);
/* `backwards`: each element and those after it. */
simt_status array_cumsum(array *a, int axis, bool backwards, graph_face face, array **out);
/* int64 positions that sort along the axis, stable: NaN last (first when descending), -0 equal to 0.
 * The first `take` of them; -1: all. */
simt_status array_argsort(array *a, int axis, bool descending, int64_t take, array **out);
simt_status array_sort(array *a, int axis, array **out); /* the elements, in ascending order */

/* Indexing by arrays. indices[i] may be NULL for a full slice of that axis; bool arrays are turned into
 * integer indices (evaluates them). Range errors come at evaluation, with the line of this call. */
enum {
    INDEX_ACCUMULATE = 1, /* put: adds; equal indices add up */
    INDEX_NO_WRAP = 2,    /* a negative index is out of range; otherwise it counts from the end */
};
simt_status array_index_get(array *a, array **indices, int n, unsigned flags, array **out);
simt_status array_index_put(array *a, array **indices, int n, const operand *value, unsigned flags);
simt_status array_take(array *a, array *indices, int axis, unsigned flags, array **out);
simt_status array_take_along_axis(array *a, array *indices, int axis, unsigned flags, array **out);
simt_status array_nonzero(array *a, array **out); /* out[ndim], evaluated now */

/* Linear algebra (OpenBLAS): NumPy's matmul rules, batched. */
simt_status array_matmul(array *a, array *b, graph_face face, array **out);
simt_status array_dot(array *a, array *b, array **out);

/* Random: Philox; each call takes its (seed, offset) now and moves the generator's offset. With `from`, an
 * int64 array without dimensions, the seed is what that will hold: nobody waits for it but permutations. */
typedef struct random_state {
    uint64_t seed, offset;
    array *from; /* or NULL */
} random_state;
simt_status array_random_uniform(random_state *r, dtype dt, double low, double high,
                                 const int64_t *shape, int ndim, array **out);
simt_status array_random_normal(random_state *r, dtype dt, double mean, double std,
                                const int64_t *shape, int ndim, array **out);
simt_status array_random_integers(random_state *r, dtype dt, int64_t low, int64_t high,
                                  const int64_t *shape, int ndim, array **out); /* [low, high) */
simt_status array_random_permutation(random_state *r, int64_t n, array **out);  /* int64 */

/* Convolution and pooling, NCHW. */
typedef struct conv_options {
    int64_t stride[2], padding[2], dilation[2], groups;
} conv_options;
simt_status array_conv2d(array *x, array *weight, array *bias, const conv_options *o, array **out);
simt_status array_conv2d_input(array *grad, array *weight, const int64_t x_shape[4],
                               const conv_options *o, array **out);
simt_status array_conv2d_weight(array *grad, array *x, const int64_t w_shape[4],
                                const conv_options *o, array **out);
typedef struct pool_options {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool ceil_mode, count_include_pad;
} pool_options;
simt_status array_max_pool2d(array *x, const pool_options *o, array **out,
                             array **positions); /* positions int32, may be NULL */
simt_status array_max_pool2d_back(array *grad, array *positions, const int64_t x_shape[4],
                                  const pool_options *o, array **out);
simt_status array_avg_pool2d(array *x, const pool_options *o, array **out);
simt_status array_avg_pool2d_back(array *grad, const int64_t x_shape[4], const pool_options *o,
                                  array **out);

/* ---- optimisers ---- */
/* param = param * keep + rate * (m / (sqrt(v) * root_scale + eps)), where
 * m = average + grad_share * (grad - average) and v = beta2 * square + square_share * grad * grad are the
 * new average and square. */
typedef struct array_adam_scalars {
    float keep, grad_share, beta2, square_share, root_scale, eps, rate;
} array_adam_scalars;
typedef struct array_adam {
    array *param, *grad, *average, *square;
    array_adam_scalars scalars;
} array_adam;
/* Runs what is pending and then the step, for dense f32 arrays; for others nothing happens and *done is
 * false. Failure: nothing was written. */
simt_status array_adam_step(const array_adam *items, int n, bool *done);

/* ---- order (order.c): around a kernel or a copy that uses the storages (NULL entries: none) ---- */
/* Waits for what runs on them: array operations, and kernels of the default stream; on the default stream
 * all kernels. Failure: an interrupt; then nothing has begun. */
simt_status order_begin(storage *const *stores, int n, bool stream);
void order_end(storage *const *stores, int n, bool stream);

/* ---- the binding's hooks ---- */
/* Where the current Python line is, asked when an operation is added whose failure depends on data. */
void array_set_position_hook(void (*hook)(char *file, size_t size, int *line));
/* Around waiting for the lock and long evaluations: drop and take the GIL. */
void array_set_gil_hooks(void *(*drop)(void), void (*take)(void *token));
/* Once, before anything is computed: what the child of a fork finds. */
void array_watch_forks(void);
/* Around a fork, in the parent: no thread is in the middle of an evaluation then. The first may wait, and
 * gives up the GIL meanwhile. The child needs no call. */
void array_before_fork(void);
void array_after_fork(void);
/* Asked after an interrupt in the middle of an operation that itself is done: keeps the interrupt until the
 * interpreter goes on, when it is raised and array_clear_deferred called. False: it cannot. */
void array_set_defer_hook(bool (*hook)(void));
void array_clear_deferred(void);
/* OpenBLAS's path, asked at the first GEMM. */
void array_set_blas_path_hook(const char *(*hook)(void));

typedef struct array_stats {
    uint64_t evaluations, plans, plan_hits, launches, nodes;
    size_t bytes_in_use, bytes_cached;
} array_stats;
void array_get_stats(array_stats *out);

#endif
