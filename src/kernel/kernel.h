/* What a kernel is, from the front end that made it to the launch that ends: the function, what its parameters
 * stand for, what it may report, what it needs. A front end fills it; runtime, binding and drivers read it.
 *
 * Nothing here knows a language. What a front end alone understands it keeps as handles. */
#ifndef SIMT_KERNEL_KERNEL_H
#define SIMT_KERNEL_KERNEL_H

#include "base/dtype.h"
#include "ir/ir.h"

enum { KERNEL_MOST_DIMS = 8 };

/* ---- parameters: those of the IR function, in order, one 64-bit slot of a launch each ---- */

typedef enum kernel_role {
    KERNEL_VALUE,   /* the bits of a number, zero-extended */
    KERNEL_POINTER, /* where memory of an argument begins; of an array its sizes and strides follow */
    KERNEL_SIZE,    /* a number of elements */
    KERNEL_STRIDE, /* bytes from an element to the next */
    KERNEL_STRUCT, /* a struct by value: the slot is the address of its bytes, which the launch copies */
    /* of no argument: */
    KERNEL_SHARED_BYTES, /* bytes of dynamic shared memory of the launch */
    KERNEL_PRINT_BUFFER, /* address of the buffer (below) */
    KERNEL_CONSTANT      /* address of the next one of `constants` */
} kernel_role;

typedef struct kernel_parameter {
    const char *name; /* as the source calls it, or NULL */
    ir_type type;
    uint32_t bytes; /* of its value; of a struct these, as the function's parameter says (ir.h) */
    kernel_role role;
    int32_t argument; /* number of the launch's argument, or -1 */
} kernel_parameter;

/* ---- faults: a fault instruction's number is an index into the table ---- */

typedef enum kernel_fault_kind {
    KERNEL_FAULT_INDEX, /* values: index, axis, size of the axis */
    KERNEL_FAULT_RAISE, /* handle, text: message or "" */
    KERNEL_FAULT_ASSERT,
    KERNEL_FAULT_DIVISION, /* by zero */
    KERNEL_FAULT_NONE,     /* None where a value is needed; text: the message */
    KERNEL_FAULT_VALUE     /* sizes that do not fit; text: the message */
} kernel_fault_kind;

typedef struct kernel_fault {
    uint8_t kind;
    source_pos pos;   /* its call: in the function's table, which the code has too */
    const char *name; /* INDEX: the array as the source calls it */
    void *handle;     /* RAISE: the exception's class, the host's; NULL: none was named */
    const char *text;
    int32_t argument; /* INDEX: number of the array's argument, or -1 */
    int ndim; /* of an array that is no argument, with its shape (-1: known at run time only) */
    int64_t shape[KERNEL_MOST_DIMS];
} kernel_fault;

/* ---- prints: records in the buffer are
 *   u32 format number, u32 flat thread, u64 flat block, then one u64 per value.
 * Buffer: u64 bytes used (grows past capacity when records were dropped), u64 capacity, records. ---- */

typedef struct kernel_shown {
    uint8_t type;   /* dtype */
    bool with_sign; /* also of what is positive: a complex number's imaginary part */
    const char *
        style; /* C's, as printf has it for a long long, a double or an int as a character; or NULL */
} kernel_shown;
typedef struct kernel_print {
    uint32_t nvalues;
    const char **texts; /* nvalues + 1 pieces of literal text around the values */
    kernel_shown *values;
} kernel_print;

/* ---- an array that the kernel has from outside of its arguments, as it was when the kernel was made ---- */

typedef struct kernel_constant {
    const char *name;
    const void *data; /* of its first element */
    size_t item_bytes;
    int ndim;
    int64_t shape[KERNEL_MOST_DIMS], strides[KERNEL_MOST_DIMS];
    void *copy; /* what data points into, once the kernel is settled */
} kernel_constant;

typedef struct kernel {
    ir_func *func; /* who compiles it takes it and sets NULL */
    kernel_parameter *parameters;
    kernel_fault *faults;
    kernel_print *prints;
    kernel_constant *constants;
    bool *writes; /* per argument: the kernel may write its memory */
    uint32_t nparameters, nfaults, nprints, nconstants, narguments;
    size_t static_shared, local; /* bytes of a block; of a thread's local arrays */
    size_t constant_bytes;
    arena mem;
} kernel;

/* NULL: no memory. The arena is a sure one: a front end fills the kernel inside of arena_run. */
kernel *kernel_new(void);
/* Ends what only the front end needed: what the tables say, and the memory of constants, becomes k's own, so that
 * the source's tree and the host's answers may go. False: no memory, and k is as before. */
bool kernel_settle(kernel *k);
void kernel_free(kernel *k);

/* Whether there is a parameter of that role. */
bool kernel_has(const kernel *k, kernel_role role);
/* The first array among the memory of an argument: the parameter that is its pointer; *ndim. NULL: none. */
const kernel_parameter *kernel_array(const kernel *k, int32_t argument, int *ndim);

#endif
