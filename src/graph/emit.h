/* Elementwise rows and reductions as IR. Booleans are i1 in registers, i8 in memory. */
#ifndef SIMT_GRAPH_EMIT_H
#define SIMT_GRAPH_EMIT_H

#include "graph/formula.h"
#include "ir/ir.h"

/* The type of a dtype's values in registers. */
ir_type emit_type(dtype dt);
ir_value *emit_cast(ir_builder *b, ir_value *v, dtype from, dtype to);
ir_value *emit_load(ir_builder *b, dtype dt, ir_value *ptr);
void emit_store(ir_builder *b, dtype dt, ir_value *ptr, ir_value *value);

/* What a row may use at one element. */
typedef struct emit_element {
    ir_value *args[3]; /* in the compute type (where: the condition is i1; cast: as it is) */
    ir_value *scalars[GRAPH_MAX_SCALARS]; /* of emit_scalar_dtype each */
    ir_value *flat_index;                 /* i64, for rows that ask (emit_wants_index); else NULL */
} emit_element;
/* Whether the row reads the flat index of the element. */
bool emit_wants_index(array_op op);
/* The type of a row's scalars as kernel parameters. */
dtype emit_scalar_dtype(array_op op, dtype compute);
/* The value of the row at one element, in the node's result type. */
ir_value *emit_elementwise(ir_builder *b, arena *mem, const graph_node *node,
                           const emit_element *e);

/* Reductions: an accumulator of one or two components (argmax: value, position). */
typedef struct emit_accumulator {
    int n;
    dtype dt[2];
} emit_accumulator;
emit_accumulator emit_reduction_type(const graph_node *node);
void emit_reduction_identity(ir_builder *b, const graph_node *node, ir_value *acc[2]);
/* The accumulator of one element: value in the node's compute type, its position in the reduced axes (i64). */
void emit_reduction_element(ir_builder *b, const graph_node *node, ir_value *value,
                            ir_value *position, ir_value *acc[2]);
/* acc = acc combined with other; acc stands for the earlier elements where order matters. */
void emit_reduction_combine(ir_builder *b, const graph_node *node, ir_value *acc[2],
                            ir_value *const other[2]);
/* The same, where other's position comes after all that acc has seen; a position that stays the largest
 * means the first. */
void emit_reduction_step(ir_builder *b, const graph_node *node, ir_value *acc[2],
                         ir_value *const other[2]);
/* The result in the node's result type. */
ir_value *emit_reduction_result(ir_builder *b, const graph_node *node, ir_value *const acc[2]);

#endif
