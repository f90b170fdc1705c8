/* Optimiser steps: elementwise rows in place over all parameters of a group, evaluated at once.
 *
 * Learning rates, step counts and the factors made of them are scalars of the nodes, never part of
 * the plan's key: a training step is planned once. A step happens as a whole or not at all: checks and room for
 * all that is recorded come before the first write, which is deferred, as the others are. (Memory that foreign
 * code sees is written at once, one parameter after the other.) */
#include <math.h>

#include "array/meta.h"
#include "base/heap.h"
#include "grad/work.h"

static simt_status update(array_op op, tensor *target, tensor *b, tensor *c, const double *scalars,
                          int n) {
    tensor_operand in[3] = {{target}, {b}, {c}};
    grad_options o = {.scalars = scalars, .nscalars = n};
    return grad_elementwise_inplace(op, in, c ? 3 : b ? 2 : 1, &o);
}

/* a + s * b, new */
static tensor *axpy(work *w, tensor *a, tensor *b, double s) {
    if (w->status != SIMT_OK) return NULL;
    tensor_operand in[2] = {{a}, {b}};
    grad_options o = {.scalars = &s, .nscalars = 1};
    tensor *t = NULL;
    simt_status status = grad_elementwise(OP_AXPY, in, 2, &o, &t);
    return work_own(w, status, t);
}

static tensor *effective_gradient(work *w, tensor *p, tensor *g, bool maximize,
                                  double weight_decay) {
    if (maximize) g = w_unary(w, OP_NEGATIVE, g);
    return weight_decay != 0 ? axpy(w, g, p, weight_decay) : g;
}

static simt_status sgd_one(tensor *p, tensor *grad, tensor **buffer, const optim_sgd *o) {
    work w = {0};
    tensor *g = effective_gradient(&w, p, grad, o->maximize, o->weight_decay);
    if (o->momentum != 0 && w.status == SIMT_OK) {
        if (!*buffer)
            w.status = grad_clone(g, buffer);
        else
            w.status = update(OP_AXPBY, *buffer, g, NULL,
                              (const double[]){o->momentum, 1 - o->dampening}, 2);
        g = o->nesterov ? axpy(&w, g, *buffer, o->momentum) : *buffer;
    }
    if (w.status == SIMT_OK) w.status = update(OP_AXPY, p, g, NULL, (const double[]){-o->lr}, 1);
    return work_end(&w);
}

static simt_status adam_one(tensor *p, tensor *grad, tensor *average, tensor *square, tensor *most,
                            double step, const optim_adam *o) {
    work w = {0};
    double decay = o->weight_decay;
    if (o->decoupled && decay != 0) {
        w.status = update(OP_MULS, p, NULL, NULL, (const double[]){1 - o->lr * decay}, 1);
        decay = 0;
    }
    tensor *g = effective_gradient(&w, p, grad, o->maximize, decay);
    if (w.status == SIMT_OK)
        w.status = update(OP_LERP, average, g, NULL, (const double[]){1 - o->beta1}, 1);
    if (w.status == SIMT_OK)
        w.status =
            update(OP_ADAM_SQUARE, square, g, NULL, (const double[]){o->beta2, 1 - o->beta2}, 2);
    if (most && w.status == SIMT_OK) w.status = update(OP_MAXIMUM, most, square, NULL, NULL, 0);
    double correction1 = 1 - pow(o->beta1, step), correction2 = 1 - pow(o->beta2, step);
    const double scalars[3] = {-o->lr / correction1, 1 / sqrt(correction2), o->eps};
    if (w.status == SIMT_OK)
        w.status = update(OP_ADAM_STEP, p, average, most ? most : square, scalars, 3);
    return work_end(&w);
}

/* Room for what a step of n parameters records: operations and new tensors of each. */
static simt_status begin_step(int n, uint32_t operations, uint32_t tensors) {
    enum { DESCRIPTORS = 1024 }; /* bytes: tensor, array, storage */
    if (!heap_reserve_begin((size_t)n * tensors * DESCRIPTORS))
        return status_fail(SIMT_ERR_MEMORY, "out of memory in an optimiser's step");
    simt_status s = array_step_begin((uint32_t)n * operations);
    if (s != SIMT_OK) heap_reserve_end();
    return s;
}

static simt_status end_step(simt_status s) {
    array_step_end();
    heap_reserve_end();
    return s == SIMT_OK ? array_settle() : s;
}

static simt_status check_all(tensor *const *list, int n) {
    for (int i = 0; list && i < n; i++)
        if (list[i]) SIMT_TRY(grad_check_inplace(list[i]));
    return SIMT_OK;
}

/* All parameters in one pass, where nothing special is asked for. */
static simt_status adam_all(tensor **params, tensor **grads, tensor **average, tensor **square,
                            const double *steps, int n, const optim_adam *o, bool *done) {
    array_adam some[16] = {0}, *items = some;
    *done = false;
    if (o->maximize || (o->weight_decay != 0 && !o->decoupled)) return SIMT_OK;
    for (int i = 0; i < n; i++) {
        if (array_is_meta(params[i]->a)) return SIMT_OK;
        SIMT_TRY(grad_check_inplace(params[i]));
        SIMT_TRY(grad_check_inplace(average[i]));
        SIMT_TRY(grad_check_inplace(square[i]));
    }
    if (n > 16 && !(items = heap_alloc(sizeof *items * (size_t)n)))
        return status_fail(SIMT_ERR_MEMORY, "out of memory in an optimiser's step");
    for (int i = 0; i < n; i++) {
        double correction1 = 1 - pow(o->beta1, steps[i]), correction2 = 1 - pow(o->beta2, steps[i]);
        items[i] = (array_adam){
            .param = params[i]->a,
            .grad = grads[i]->a,
            .average = average[i]->a,
            .square = square[i]->a,
            .scalars = {.keep = (float)(1 - o->lr * o->weight_decay),
                        .grad_share = (float)(1 - o->beta1),
                        .beta2 = (float)o->beta2,
                        .square_share = (float)(1 - o->beta2),
                        .root_scale = (float)(1 / sqrt(correction2)),
                        .eps = (float)o->eps,
                        .rate = (float)(-o->lr / correction1)},
        };
    }
    simt_status status = array_adam_step(items, n, done);
    if (items != some) heap_free(items);
    return status;
}

static simt_status adam_each(tensor **params, tensor **grads, tensor **average, tensor **square,
                             tensor **max_square, const double *steps, int n, const optim_adam *o) {
    uint32_t tensors = o->maximize + (o->weight_decay != 0 && !o->decoupled);
    SIMT_TRY(check_all(params, n));
    SIMT_TRY(check_all(average, n));
    SIMT_TRY(check_all(square, n));
    SIMT_TRY(check_all(max_square, n));
    SIMT_TRY(begin_step(n, tensors + 5, tensors));
    simt_status s = SIMT_OK;
    for (int i = 0; i < n && s == SIMT_OK; i++)
        s = adam_one(params[i], grads[i], average[i], square[i], max_square ? max_square[i] : NULL,
                     steps[i], o);
    return end_step(s);
}

simt_status grad_optim_sgd(tensor **params, tensor **grads, tensor **buffers, int n,
                           const optim_sgd *o) {
    bool was = grad_enabled;
    uint32_t tensors = o->maximize + (o->weight_decay != 0) + (o->momentum != 0 && o->nesterov);
    for (int i = 0; i < n && o->momentum != 0; i++)
        if (!buffers[i]) {
            tensors++;
            break;
        }
    grad_enabled = false;
    simt_status s = check_all(params, n);
    if (s == SIMT_OK && o->momentum != 0) s = check_all(buffers, n);
    if (s == SIMT_OK) s = begin_step(n, tensors + 2, tensors);
    if (s == SIMT_OK) {
        for (int i = 0; i < n && s == SIMT_OK; i++)
            s = sgd_one(params[i], grads[i], &buffers[i], o);
        s = end_step(s);
    }
    grad_enabled = was;
    return s;
}

simt_status grad_optim_adam(tensor **params, tensor **grads, tensor **average, tensor **square,
                            tensor **max_square, const double *steps, int n, const optim_adam *o) {
    bool was = grad_enabled, done = false;
    grad_enabled = false;
    simt_status s = SIMT_OK;
    if (!max_square) s = adam_all(params, grads, average, square, steps, n, o, &done);
    if (s == SIMT_OK && !done)
        s = adam_each(params, grads, average, square, max_square, steps, n, o);
    grad_enabled = was;
    return s;
}
