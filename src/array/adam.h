/* The inner loop of Adam's fused step (adam.c), compiled once per instruction set. */
#ifndef SIMT_ARRAY_ADAM_H
#define SIMT_ARRAY_ADAM_H

#include "array/array.h"
#include "base/isa.h"

/* The rows lerp, adam_square and adam_step of array_ops.def in one pass, with their roundings; param is
 * first multiplied by s->keep. The four arrays are disjoint. */
void adam_loop_generic(float *param, const float *grad, float *average, float *square, size_t n,
                       const array_adam_scalars *s);
#ifdef __x86_64__
void adam_loop_avx2(float *param, const float *grad, float *average, float *square, size_t n,
                    const array_adam_scalars *s);
void adam_loop_avx512(float *param, const float *grad, float *average, float *square, size_t n,
                      const array_adam_scalars *s);
#endif

#endif
