/* The formulas of array_ops.def (expansions and gradients), parsed.
 *
 *   sum     := product (('+' | '-') product)*          compare := sum (('<' | '>' | '<=' | '>=' | '==' | '!=') sum)?
 *   product := unary (('*' | '/') unary)*              primary := number | variable | name '(' compare, ... ')' | '(' compare ')'
 *   unary   := '-' unary | primary                     variable := a b c g y s0 s1 s2 s3
 * Names are rows of the table; infix is short for rows. emit.c turns a formula into IR, grad/ into array
 * operations.
 */
#ifndef SIMT_GRAPH_FORMULA_H
#define SIMT_GRAPH_FORMULA_H

#include "base/arena.h"
#include "graph/graph.h"

typedef enum formula_kind { FORMULA_NUMBER, FORMULA_VARIABLE, FORMULA_CALL } formula_kind;
/* Variables, also as bits of formula_variables (1u << variable). */
typedef enum formula_variable {
    FORMULA_A,
    FORMULA_B,
    FORMULA_C,
    FORMULA_G,
    FORMULA_Y,
    FORMULA_S0,
    FORMULA_S1,
    FORMULA_S2,
    FORMULA_S3
} formula_variable;

typedef struct formula formula;
struct formula {
    formula_kind kind;
    double number;
    formula_variable variable;
    array_op op;
    int nargs;
    formula *args[3];
};

/* In an arena_run, with a sure arena. Failure (a defect of the table): SIMT_ERR_INTERNAL naming the formula. */
simt_status formula_parse(const char *text, arena *mem, formula **out);
uint32_t formula_variables(const formula *f);

#endif
