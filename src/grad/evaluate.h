/* Gradient formulas of array_ops.def, evaluated with tensor operations. */
#ifndef SIMT_GRAD_EVALUATE_H
#define SIMT_GRAD_EVALUATE_H

#include "grad/grad.h"
#include "graph/formula.h"

typedef struct gradient_rule { /* of one operand of a row */
    enum { GRADIENT_NONE, GRADIENT_ZERO, GRADIENT_FORMULA, GRADIENT_NAMED } kind;
    formula *f;
    uint32_t variables; /* bits of formula_variable that f names */
} gradient_rule;

/* The rule of operand i of a row; parsed at the first use. */
simt_status gradient_get(array_op op, int i, const gradient_rule **out);

/* What the variables stand for: tensors, or numbers where t is NULL. */
typedef struct formula_values {
    tensor_operand variable[9]; /* by formula_variable */
} formula_values;
/* *out is a new reference. */
simt_status formula_evaluate(const formula *f, const formula_values *values, tensor **out);

#endif
