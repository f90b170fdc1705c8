/* The tree -> IR, for one kernel: functions are put where they are called.
 *
 * A pointer's value is the number of bytes from its origin: from where memory of an argument, or of a variable,
 * begins. The origin is known while lowering, with the bytes that it has; so every access is confined to the
 * memory that its pointer was made from, and arithmetic with pointers is arithmetic of integers. A variable (of
 * the source) that has pointers into several things carries base and size with it: `merged`. That it does is
 * found while lowering, which then begins again.
 *
 * Variables whose address is taken, and arrays, are memory; others are vars.h's, one for each number in them. */
#ifndef SIMT_FRONTEND_CUDA_LOWER_H
#define SIMT_FRONTEND_CUDA_LOWER_H

#include "frontend/cuda/tree.h"
#include "kernel/vars.h"

struct cu_origin {
    ir_value *base, *size; /* a pointer; bytes, i64 */
    const char *name;
    int32_t argument; /* whose memory it is, or -1 */
    bool anywhere;    /* base is good everywhere in the kernel: else only where it was made */
    bool null;
};

/* A value: per leaf of its type the IR's, and of pointers their origins. */
typedef struct cu_value {
    const cu_type *type;
    ir_value **v;
    const cu_origin **o;
} cu_value;

/* Where a value lies. */
typedef struct cu_place {
    const cu_type *type;
    cu_variable *variable; /* from its leaf on; NULL: memory */
    uint32_t leaf;
    const cu_origin *origin;
    ir_value *offset;
    const cu_token *at;
} cu_place;

typedef struct cu_flow {
    struct cu_flow *outer;
    vars_label *leave, *next; /* break; continue, or NULL in a switch */
} cu_flow;

typedef struct cu_low {
    cuda_unit *u;
    kernel *k;
    arena *mem; /* the kernel's */
    ir_builder b;
    vars vars;
    cu_flow *flow;
    cu_function *function; /* being lowered */
    vars_label *result; /* where return goes in a function that is put inside; NULL: the kernel */
    uint16_t call;
    uint32_t calls, stamp;
    kernel_parameter *slots;
    uint32_t nslots, fault_capacity;
    const cu_origin *null;
    ir_value *shared_bytes, *print_buffer;
    bool again;
} cu_low;

/* ---- place.c ---- */

void cu_at(cu_low *l, const cu_token *at);  /* the position of what is built next */
ir_value *cu_int(cu_low *l, int64_t value); /* an i64 */
cu_value cu_new_value(cu_low *l, const cu_type *type);
cu_value cu_one(cu_low *l, const cu_type *type, ir_value *v); /* of a number */
cu_value cu_pointer(cu_low *l, const cu_type *type, const cu_origin *o, ir_value *offset);
cu_value cu_zero(cu_low *l, const cu_type *type);
ir_value *cu_address(cu_low *l, const cu_origin *o, ir_value *offset); /* as an i64 */
/* Of two pointers' origins one, of the first where `first` (i1). */
const cu_origin *cu_choose_origin(cu_low *l, ir_value *first, const cu_origin *a,
                                  const cu_origin *b);
/* The variable gets its place. */
void cu_begin_variable(cu_low *l, cu_variable *v);
cu_place cu_place_of(cu_low *l, cu_expr *e);
/* Of a variable that has a place, to be read or to get its first value. */
cu_place cu_variable_place(cu_low *l, cu_variable *v, const cu_token *at);
/* The numbers (vars.h) of `count` leaves from `first` on; returns how many. */
uint32_t cu_slot_numbers(cu_low *l, const cu_variable *v, uint32_t first, uint32_t count,
                         uint32_t **out);
cu_value cu_read(cu_low *l, const cu_place *p);
void cu_write(cu_low *l, const cu_place *p, const cu_value *value);
/* Runs `build` where the bytes are there; else a fault is reported, and *out is 0. */
typedef ir_value *(*cu_build)(cu_low *l, ir_value *pointer, void *context);
ir_value *cu_access(cu_low *l, const cu_token *at, const cu_origin *o, ir_value *offset,
                    uint32_t bytes, ir_type type, cu_build build, void *context);
uint32_t cu_add_fault(cu_low *l, const cu_token *at, const kernel_fault *f);
void cu_mark_written(cu_low *l, const cu_origin *o);

/* ---- value.c, intrinsic.c ---- */

cu_value cu_lower(cu_low *l, cu_expr *e);
ir_value *cu_lower_one(cu_low *l, cu_expr *e); /* of a number */
ir_value *cu_convert_number(cu_low *l, const cu_type *from, const cu_type *to, ir_value *v);
ir_value *cu_operate(cu_low *l, uint32_t op, const cu_type *t, ir_value *a, ir_value *b);
cu_value cu_lower_builtin(cu_low *l, cu_expr *e);

/* ---- lower.c ---- */

void cu_lower_statement(cu_low *l, cu_stmt *s);
cu_value cu_lower_call(cu_low *l, cu_expr *e);
/* A label that carries the variables assigned inside (of a list of statements, an expression, another), and one
 * more, where `also` is not NULL. */
vars_label cu_carry(cu_low *l, const cu_stmt *s, const cu_expr *e, const cu_expr *f,
                    const uint32_t *also, uint32_t nalso);

#endif
