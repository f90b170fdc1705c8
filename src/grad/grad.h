/* The tape: tensors over arrays, nodes that know how gradients flow back. Read first in grad/.
 *
 * A tensor is a counted box: an array, and who computed it (a node and the number of its output).
 * Every grad_* operation computes with array/, and, when gradients are on and an input asks for one, leaves a
 * node: edges to the nodes of its inputs, the saved tensors its rule needs (with the version of their storage),
 * a rule. Gradients are tensors computed by the same operations: they fuse, stay deferred, and with create_graph
 * are themselves on the tape. Nodes are numbered in order of creation and an edge always points to a smaller
 * number: descending order is a topological one.
 * All functions are called with the interpreter's lock held, inside a section (array/section.h): they may
 * use what a tensor holds (its array, its node) without a reference of their own, also where they give
 * up the lock. Read t->a once all the same where two reads must agree. Texts of failures are PyTorch's.
 * Functions with `tensor **out` return one reference to the caller.
 */
#ifndef SIMT_GRAD_GRAD_H
#define SIMT_GRAD_GRAD_H

#include "array/array.h"

typedef struct tensor tensor;
typedef struct grad_node grad_node;

/* A Python callable in a list of hooks; `object` is owned by the list. */
typedef struct grad_hook {
    int64_t id;
    void *object;
} grad_hook;
typedef struct grad_hooks {
    int n, capacity;
    grad_hook *list;
} grad_hooks;

struct tensor {
    int refs;
    int output;         /* of fn */
    bool requires_grad; /* leaves: the user's wish; results: there is an fn */
    bool retains_grad;
    uint32_t base_version; /* views: the version of the storage that fn is right for */
    array *a;
    grad_node *fn;          /* owned; NULL for leaves */
    grad_node *accumulator; /* leaves: borrowed, the node clears it when it goes */
    tensor *grad;
    tensor *base;     /* views made with gradients on: the tensor viewed (itself no view) */
    grad_hooks hooks; /* leaves; those of results are in the node */
    void *object;     /* the Python object of this tensor, borrowed; NULL when there is none */
};

typedef struct grad_edge {
    grad_node *node; /* owned; NULL: this input needs no gradient */
    int output;      /* of node */
    int ndim;
    dtype dt;
    int64_t *shape; /* of the input; in the node's own memory */
} grad_edge;

typedef struct grad_saved {
    tensor *t; /* owned; NULL when not saved or released */
    array *a;  /* the node's own output (saving the tensor would be a cycle), or what t held */
    uint32_t version;
    int output; /* of the node itself, when t is NULL */
} grad_saved;

/* From the outputs' gradients (NULL: none) to the inputs'. in[i] is NULL at entry; a rule fills
 * what
 * grad_wants(n, i); it may be of a broadcast shape and a wider type: the engine fits it. */
typedef simt_status (*grad_rule)(grad_node *n, tensor *const *out, tensor **in);

typedef struct grad_watch grad_watch;
struct
    grad_watch { /* who looks at the gradient of an output: hooks, and a tensor with retain_grad */
    grad_watch *next;
    int output;
    tensor *retain; /* borrowed */
    grad_hooks hooks;
};

struct grad_node {
    int refs;
    bool released;
    uint64_t sequence;
    const char *name; /* "AddBackward0" */
    grad_rule rule;
    int nin, nout, nsaved, nparams;
    grad_edge *edges;
    grad_saved *saved;
    int64_t *params;   /* the rule's facts */
    scalar scalars[3]; /* the rule's: scalar operands */
    bool is_scalar[3], is_weak[3];
    array_op op;
    double options[4]; /* s0.. of the row */
    grad_watch *watches;
    tensor *leaf;     /* accumulators: owned */
    grad_node *child; /* CopySlices: the rule of the operation on the view */
    void *object;     /* Python functions: the context; owned, released through the callbacks */
    uint32_t
        visit; /* the engine's: the pass that reached the node last, and the node's place in it */
    int slot;
};

/* ---- modes and process-wide state ---- */
extern _Thread_local bool grad_enabled;
extern _Thread_local bool grad_anomaly; /* each gradient is looked at: NaN is an error */
extern dtype grad_default_float;
typedef struct grad_callbacks {                                         /* set by the binding */
    simt_status (*call_hook)(void *object, tensor *grad, tensor **out); /* *out NULL: keep grad */
    void (*release)(void *object);
    simt_status (*apply_function)(grad_node *n, tensor *const *out, tensor **in);
} grad_callbacks;
extern grad_callbacks grad_python;

/* ---- tensors and nodes (tape.c) ---- */
tensor *
tensor_new(array *a); /* takes a; NULL (and SIMT_ERR_MEMORY recorded, a dropped) without memory */
tensor *tensor_ref(tensor *t);
void tensor_unref(tensor *t); /* NULL is fine */
bool tensor_is_leaf(const tensor *t);
simt_status tensor_set_requires_grad(tensor *t, bool on);
simt_status tensor_detach(tensor *t, tensor **out);
/* t.grad = g (taken; NULL: none), and t without its history. What was there is retired: another thread may
 * be in the middle of it. */
void tensor_set_grad(tensor *t, tensor *g);
void tensor_leave_graph(tensor *t);
/* fn as it is now: views of a tensor changed in place get theirs anew. Borrowed. */
simt_status tensor_get_fn(tensor *t, grad_node **out);
simt_status tensor_retain_grad(tensor *t);
simt_status tensor_add_hook(tensor *t, void *object, int64_t *id); /* takes object */
void tensor_remove_hook(tensor *t, int64_t id);
const char *tensor_type_name(const tensor *t);                          /* "torch.FloatTensor" */
const char *dtype_torch_name(dtype dt);                                 /* "Float" */
void shape_text(const int64_t *shape, int ndim, char *to, size_t size); /* "[2, 3]" */

grad_node *grad_node_ref(grad_node *n);
void grad_node_unref(grad_node *n);
bool grad_wants(const grad_node *n, int input);
/* A node for inputs (NULL entries: numbers) if gradients are on and an input asks; else *out is
 * NULL. */
simt_status grad_node_new(const char *name, grad_rule rule, tensor *const *inputs, int nin,
                          int nsaved, int nparams, grad_node **out);
void grad_save(grad_node *n, int slot, tensor *t); /* NULL node or tensor: nothing */
void grad_save_output(grad_node *n, int slot, tensor *t, int output);
/* The saved tensor, a new reference; fails when it was released or changed in place. */
simt_status grad_get_saved(grad_node *n, int slot, tensor **out);
/* Makes t an output of n (takes n's reference, NULL is fine). */
void grad_attach(tensor *t, grad_node *n, int output);
/* In-place operations: before (may the tensor be written?) and after (history moves on). */
simt_status grad_check_inplace(tensor *t);
simt_status grad_attach_inplace(tensor *t, grad_node *n); /* takes n */
/* A result of array a (taken) computed by n (taken). */
simt_status grad_finish(array *a, grad_node *n, tensor **out);
/* The same for a view of `of`. */
simt_status grad_finish_view(tensor *of, array *a, grad_node *n, tensor **out);

/* ---- backward (backward.c) ---- */
typedef struct grad_request {
    tensor **roots, **seeds; /* seeds[i] NULL: a scalar's 1 */
    int nroots;
    bool retain_graph, create_graph;
    tensor **inputs; /* autograd.grad: only these; nothing accumulates */
    int ninputs;
    bool accumulate_inputs; /* backward(inputs=): accumulate into these only */
    bool allow_unused;
    tensor **results; /* autograd.grad: new references, may be NULL */
} grad_request;
simt_status grad_backward(const grad_request *request);

/* ---- operations ---- */
typedef struct tensor_operand { /* a tensor, or (t NULL) a Python number */
    tensor *t;
    scalar s;
} tensor_operand;
typedef struct grad_options {
    bool has_dtype;
    dtype dt;
    const double *scalars;
    int nscalars;
} grad_options;
/* elementwise.c */
simt_status grad_elementwise(array_op op, const tensor_operand *in, int nin, const grad_options *o,
                             tensor **out);
/* in[0].t is written; returns it as a new reference through out when out is not NULL */
simt_status grad_elementwise_inplace(array_op op, const tensor_operand *in, int nin,
                                     const grad_options *o);
simt_status grad_unary(array_op op, tensor *a, tensor **out);
simt_status grad_binary(array_op op, tensor *a, tensor *b, tensor **out);
simt_status grad_binary_scalar(array_op op, tensor *a, double s, tensor **out);
simt_status grad_power(const tensor_operand *in, tensor **out);
simt_status grad_cast(tensor *t, dtype dt, tensor **out); /* always new */
simt_status grad_clone(tensor *t, tensor **out);
simt_status grad_contiguous(tensor *t, tensor **out);               /* t itself when it is */
simt_status grad_copy_into(tensor *dst, const tensor_operand *src); /* dst.copy_(src), fill_ */
simt_status grad_full_like(tensor *t, double value, tensor **out);
simt_status grad_dropout(tensor *t, double p, random_state *r, bool channels, tensor **out);

/* view.c */
simt_status grad_reshape(tensor *t, const int64_t *shape, int ndim, bool must_view, tensor **out);
simt_status grad_permute(tensor *t, const int *axes, const char *name, tensor **out);
simt_status grad_expand(tensor *t, const int64_t *shape, int ndim, tensor **out); /* -1: keep */
simt_status grad_squeeze(tensor *t, uint32_t mask, tensor **out);
simt_status grad_unsqueeze(tensor *t, int axis, tensor **out);
simt_status grad_slice(tensor *t, const array_slice *items, int n, const char *name, tensor **out);
simt_status
grad_as_strided(tensor *t, const int64_t *shape, const int64_t *strides, int ndim, int64_t offset,
                tensor **out); /* strides and offset in elements, from the storage's start */
simt_status grad_concatenate(tensor **ts, int n, int axis, tensor **out);
simt_status grad_stack(tensor **ts, int n, int axis, tensor **out);
simt_status grad_sum_to(tensor *t, const int64_t *shape, int ndim, tensor **out);

/* reduce.c */
simt_status grad_reduce(array_op op, tensor *t, uint32_t mask, bool keepdims, int dt /* -1: rule */,
                        tensor **out);
simt_status grad_mean(tensor *t, uint32_t mask, bool keepdims, int dt, tensor **out);
simt_status grad_var(tensor *t, uint32_t mask, bool keepdims, double ddof, bool root, tensor **out);
simt_status grad_extremum(array_op op, tensor *t, int axis, bool keepdims, tensor **values,
                          tensor **indices);
simt_status grad_softmax(tensor *t, int axis, bool logarithm, tensor **out);
simt_status grad_logsumexp(tensor *t, uint32_t mask, bool keepdims, tensor **out);
simt_status grad_check_unit(tensor *t, tensor **out); /* 0, or an error when it is evaluated */
simt_status grad_norm(tensor *t, double p, uint32_t mask, bool keepdims, tensor **out);
simt_status grad_cumsum(tensor *t, int axis, bool backwards, int dt, tensor **out);

/* linear.c */
simt_status grad_matmul(tensor *a, tensor *b, tensor **out);
simt_status grad_linear(tensor *x, tensor *weight, tensor *bias,
                        tensor **out); /* bias may be NULL */

/* index.c */
simt_status grad_index_get(tensor *t, array **indices, int n, tensor **out);
simt_status grad_index_put(tensor *t, array **indices, int n, const tensor_operand *value,
                           unsigned flags); /* INDEX_ACCUMULATE, INDEX_NO_WRAP */
simt_status grad_take(tensor *t, tensor *indices, int axis, const char *name, tensor **out);
simt_status grad_embedding(tensor *weight, tensor *indices, int64_t padding, tensor **out);
simt_status grad_gather(tensor *t, int axis, tensor *indices, tensor **out);
/* index_along.c: index_add_, index_copy_, index_fill_ */
typedef enum along_kind { ALONG_ADD, ALONG_COPY, ALONG_FILL } along_kind;
simt_status grad_index_along(tensor *t, int axis, tensor *index, const tensor_operand *source,
                             along_kind kind);
/* index.c */
simt_status grad_scatter(tensor *t, int axis, tensor *indices, const tensor_operand *src,
                         bool add); /* in place */
/* When the indices are in memory: the first outside [-n, n) (or [0, n)). */
bool grad_find_outside(array *indices, int64_t n, bool negative, int64_t *value);

/* loss.c */
typedef enum grad_reduction { LOSS_NONE, LOSS_MEAN, LOSS_SUM } grad_reduction;
simt_status grad_nll_loss(tensor *logp, tensor *target, tensor *weight, int64_t ignore,
                          grad_reduction r, tensor **out);
simt_status grad_cross_entropy(tensor *x, tensor *target, tensor *weight, int64_t ignore,
                               grad_reduction r, double smoothing, tensor **out);

simt_status grad_mse_loss(tensor *x, tensor *target, grad_reduction r, tensor **out);

/* layer.c */
simt_status grad_conv2d(tensor *x, tensor *weight, tensor *bias, const conv_options *o,
                        tensor **out);
simt_status grad_max_pool2d(tensor *x, const pool_options *o, tensor **out, tensor **positions);
simt_status grad_avg_pool2d(tensor *x, const pool_options *o, tensor **out);
/* running_*: NULL or updated in place (training); training false: they are used. */
simt_status grad_batch_norm(tensor *x, tensor *weight, tensor *bias, tensor *running_mean,
                            tensor *running_var, bool training, double momentum, double eps,
                            tensor **out);
simt_status grad_layer_norm(tensor *x, int naxes, tensor *weight, tensor *bias, double eps,
                            tensor **out);

/* optim.c: one call per step and group; states are updated in place */
typedef struct optim_sgd {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
} optim_sgd;
/* buffers[i] NULL at the first step: made here */
simt_status grad_optim_sgd(tensor **params, tensor **grads, tensor **buffers, int n,
                           const optim_sgd *o);
typedef struct optim_adam {
    double lr, beta1, beta2, eps, weight_decay;
    bool decoupled, amsgrad, maximize; /* decoupled: AdamW */
} optim_adam;
/* steps[i]: counted after this step. max_square may be NULL without amsgrad. */
simt_status grad_optim_adam(tensor **params, tensor **grads, tensor **average, tensor **square,
                            tensor **max_square, const double *steps, int n, const optim_adam *o);

#endif
