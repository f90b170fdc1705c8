/* Mutable variables, where the IR has values that are made once: the front ends' way to build constructs.
 *
 * A variable has a number and the type of its values in the IR (what has several parts is several variables).
 * vars_set gives it a value, vars_get tells the one it has at this place of the code; that is all there is of
 * loads and stores. Where ways through the code meet stands a label, which carries variables: a front end lists
 * those that are assigned in the construct, and perhaps looked at afterwards. Each way that arrives hands
 * on their values, and behind the construct the variables are its results; at a loop's head they are what it
 * carries from round to round.
 *
 *   if       vars_begin_if, ..., vars_else, ..., vars_end
 *   while    vars_begin_loop; where the condition fails, vars_arrive at the exit; the body; vars_end of the exit
 *   for      the same, with the body in a block, whose label is continue's, and the step behind it
 *   switch   a block, break's label; in it for every case a block, the first case's innermost. Inside all of them
 *            a case is chosen by arriving at its block; then the blocks end one by one, each followed by
 *            its case's code, which falls through to the next one by reaching its end
 *   return   of a function whose code is put inside: a block around it that carries the result
 *
 * A way may arrive at the label of any construct that it is inside of. Nothing is built behind that, up to the
 * next vars_else or vars_end (vars_ended tells). A variable to which no way has given a value is 0. */
#ifndef SIMT_KERNEL_VARS_H
#define SIMT_KERNEL_VARS_H

#include "ir/ir.h"

/* The variables of one function or of several that are built one after the other. */
typedef struct vars {
    ir_builder *b;
    arena *mem; /* a sure one */
    uint32_t count, capacity;
    ir_type *types;
    ir_value **values; /* here; NULL: none */
} vars;

typedef struct vars_label vars_label;
struct vars_label {
    const uint32_t *carried; /* numbers; the front end's, as long as the label is used */
    uint32_t ncarried;
    /* vars.c's own, once the construct is begun: */
    ir_inst *construct;
    ir_region *after;   /* where it stands */
    ir_value **before;  /* of an if: what the carried variables were before it */
    vars_label *head;   /* of a loop's exit */
    bool begins_rounds; /* of a loop's head */
};

vars vars_new(ir_builder *b, arena *mem);
uint32_t vars_add(vars *v, ir_type type); /* its number: the count before */
static inline void vars_set(vars *v, uint32_t number, ir_value *value) {
    v->values[number] = value;
}
ir_value *vars_get(vars *v, uint32_t number);

static inline vars_label vars_carry(const uint32_t *numbers, uint32_t n) {
    return (vars_label){.carried = numbers, .ncarried = n};
}
/* Each moves the builder inside of the construct. */
void vars_begin_block(vars *v, vars_label *end);
void vars_begin_if(vars *v, ir_value *cond, vars_label *end);
void vars_begin_loop(vars *v, vars_label *head, vars_label *exit);
/* To the second way of an if; the first one arrives at its end, unless it has gone elsewhere. */
void vars_else(vars *v, vars_label *end);
/* Behind the construct; what reaches the end inside arrives here, or in a loop at the head. */
void vars_end(vars *v, vars_label *end);
/* Goes to the label from inside of its construct. */
void vars_arrive(vars *v, vars_label *label);
static inline bool vars_ended(const vars *v) { return ir_region_is_ended(v->b->at); }

#endif
