/* The front end's own structures.
 *
 * One evaluator does both typing and lowering: a walk over the tree gives each expression a py_val (its
 * type, and IR values when the walk emits). Typing is that walk without IR, where loops are repeated until the
 * types at their heads stand still; lowering is the same walk once more with the builder on. So each operator and
 * intrinsic is written once. The emit_* helpers give NULL while typing, and accept NULL.
 *
 *   compile.c     the driver                  types.c      types, unification, values
 *   signature.c   parameters                  convert.c    conversions
 *   control.c     statements                  number.c     arithmetic
 *   iterate.c     what for goes over          compare.c    comparisons
 *   merge.c       variables where ways meet   subscript.c  elements of arrays, views, bounds
 *   expr.c        expressions                 array.c      attributes of arrays, new arrays
 *   names.c       names, attributes           record.c     elements of structured types
 *   call.c        calls                       tuple.c      items of tuples
 *   recursion.c   functions that call themselves
 *   declared.c    calls of functions          named.c      named tuples, vector types
 *                 with signatures             unsupported.c what to write instead
 *   method.c      methods of values           closure.c    functions inside a kernel
 *   chars.c       elements of dtypes S and U  pointer.c    addresses that are arguments
 *   intrinsics.def + intrinsics_*.c: what can be called
 *
 * Functions returning bool have reported the error (py_fail) when they return false.
 */
#ifndef SIMT_FRONTEND_PYTHON_WORK_H
#define SIMT_FRONTEND_PYTHON_WORK_H

#include "frontend/python/frontend.h"
#include "kernel/vars.h"

typedef enum py_type_kind {
    TY_UNKNOWN, /* a variable nothing has been assigned to yet */
    TY_NONE,
    TY_SCALAR,
    TY_ARRAY,
    TY_TUPLE,
    TY_RECORD,   /* slots: an array of records (items[0]), an index into it (ndim of them) */
    TY_RANGE,    /* slots: start, stop, step */
    TY_ZIP,      /* items: iterables; of enumerate: a range and an iterable */
    TY_SLICE,    /* slots: start, stop, step as i64; which are given: `given` */
    TY_STRING,   /* compile-time only: the value is the constant, a str or bytes */
    TY_CHARS,    /* `count` characters at most of type `scalar` (chars.c) */
    TY_OPTIONAL, /* None or items[0]; slots: 1 where it is not None, then the value's */
    TY_MIXED,    /* of a variable: items[0] on one way, items[1] on another */
    TY_POINTER,  /* pointer.c; slots: the first element it reaches, their number, which is p[0] */
    TY_ENTITY    /* compile-time only: function, module, type, intrinsic */
} py_type_kind;

typedef struct py_type py_type;
struct py_type {
    uint8_t kind;
    uint8_t scalar; /* py_scalar: SCALAR; ARRAY: element, NONE: record; RANGE: counter; POINTER */
    uint8_t ndim;
    char layout;    /* ARRAY: C, F, A */
    bool readonly;  /* ARRAY */
    uint8_t given;  /* SLICE: bits start 1, stop 2, step 4 */
    ir_type space;  /* ARRAY, POINTER */
    uint32_t count; /* TUPLE, ZIP, OPTIONAL, MIXED; CHARS: the most characters */
    const py_type *const *items;
    const py_entity *entity;
    const py_names *names;   /* TUPLE: its items have names, or NULL */
    const py_record *record; /* ARRAY: of such elements, or NULL */
};
extern const py_type py_type_unknown, py_type_none, py_type_string;
const py_type *py_type_scalar(py_scalar s);

/* Where an array comes from, for fault reports. */
typedef struct py_origin {
    const char *name;
    int32_t parameter; /* -1: none */
    bool is_static;    /* shape is known */
    int64_t shape[PY_MAX_NDIM];
} py_origin;

typedef struct py_val py_val;
struct py_val {
    const py_type *type;
    ir_value **v;      /* py_type_slots(type) IR values; NULL while typing */
    py_val *items;     /* TUPLE, ZIP: the elements, or NULL: take them from v */
    py_constant value; /* when is_const: the value (SCALAR, STRING) */
    bool is_const;
    bool nonneg;    /* SCALAR integers: known >= 0 */
    bool is_member; /* is_const: of an enumeration; it has a `value` */
    const py_origin *origin;
};

typedef struct py_var {
    const char *name;
    py_val val; /* the current value; of type UNKNOWN where none was assigned on the way */
    const py_type *guess; /* typing: what was taken for its type where it had none (merge.c) */
    uint32_t scan;        /* the last search for assigned variables that found it (merge.c) */
} py_var;

/* Where ways through the code meet (merge.c). */
typedef struct py_merge {
    const py_node *at;
    py_var **vars; /* those that are assigned on a way */
    uint32_t nvars;
    py_val *vals; /* per variable: what the ways have in common */
    bool reached; /* a way came */
    bool is_head; /* of a loop */
    /* lowering: what it carries are `counts` counters, none or one, then the slots of the variables */
    vars_label label;
    uint32_t counts;
    ir_value *counter, *step; /* of a loop's head: in this round; NULL: it has none */
} py_merge;

typedef struct py_loop py_loop;
struct py_loop {
    py_loop *outer;
    py_merge *exit, *next; /* where break and continue go */
};

/* One function with its argument types: variables and result type. */
typedef struct py_frame py_frame;
struct py_frame {
    py_frame *next; /* among those of the compilation with this hash */
    py_frame *caller;
    const py_node *called_at; /* in the caller */
    uint16_t call;            /* while emitting: number of this call in the IR function */
    const py_function *fn;
    py_val *arguments; /* as first given: other types or constants make a frame of their own */
    uint32_t nargs;
    py_var *vars;
    uint32_t nvars;
    uint32_t *places, nplaces; /* of variables by name: number + 1; a power of 2 (compile.c) */
    py_var result;
    py_merge *ret;
    py_merge **merges; /* in the order of the walk, which is at `cursor` */
    uint32_t nmerges, cursor;
    bool typed;
    /* recursion.c */
    bool is_function;       /* stands beside the kernel */
    uint32_t number;        /* there, from 1; 0: not made yet */
    const py_type *assumed; /* while it is typed: what it returns as far as is known, or NULL */
    uint32_t level,
        lowest;     /* its place among those that are typed, and the first of them whose result it
                             * hangs on */
    uint32_t round; /* py_ctx.rounds when it was typed, as far as that was possible */
    py_loop *loop;
    struct py_known *known; /* what free names mean */
};

enum { PY_FRAME_LISTS = 256 };
typedef struct py_ctx {
    const py_host *host;
    const py_options *options;
    kernel *kernel;
    arena *mem;
    py_frame *frame, *frames[PY_FRAME_LISTS];
    uint32_t scans; /* searches for assigned variables so far */
    struct py_closure *closures;
    ir_func *f;
    ir_builder b;
    vars carried; /* lowering: what merges carry, each by numbers of its own */
    bool emit;    /* lowering; else typing */
    bool dead;    /* the code here cannot be reached */
    /* typing: the first use of a variable without a type; perhaps a loop's next round knows it. Such a
     * statement is left out: it fails with the status OK. */
    const py_node *unknown;
    bool
        stops; /* typing: the statement calls what does not return, as far as is known: it is left out, and so
                  * is what comes behind it */
    const py_function **general; /* are typed without constants */
    uint32_t ngeneral;
    bool again;      /* the compilation begins again: there is one more of them */
    uint32_t rounds; /* grows when a result becomes known: what was typed with less holds no more */
    py_frame *root;  /* the kernel */
    py_frame **beside; /* the functions beside it */
    uint32_t nbeside;
    uint32_t nhidden; /* constants that are parameters */
    bool lost;        /* lowering came to a merge that typing had not seen: a bug of ours */
    simt_status status;
    kernel_fault *faults; /* growing; copied to the kernel at the end */
    uint32_t nfaults;
    kernel_print *prints;
    uint32_t nprints;
    const py_entity **constants;
    uint32_t nconstants;
    uint32_t nslots; /* parameters of the IR function */
    kernel_parameter *slots;
    bool *writes;
    uint32_t nsignature; /* arguments of the signature */
    ir_value *dynamic_bytes, *print_buffer;
    ir_value **constant_addresses;
    bool want_dynamic, want_print;
    size_t static_shared, local;
    int depth; /* of nested expressions and inlined calls */
} py_ctx;

/* ---- compile.c ---- */
bool py_fail(py_ctx *c, const py_node *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* unsupported.c: these say what to write instead */
bool py_fail_unsupported(py_ctx *c, const py_node *n);
bool py_fail_unknown(py_ctx *c, const py_node *n, const char *function); /* "numpy.zeros" */
bool py_fail_name(py_ctx *c, const py_node *n, simt_status status);      /* not defined */
bool py_fail_member(py_ctx *c, const py_node *n, const py_entity *of, simt_status status);
bool py_fail_attribute(py_ctx *c, const py_node *n, const py_type *of);
bool py_fail_call(py_ctx *c, const py_node *n, const py_val *f);
const char *py_as_written(const char *name);        /* "builtins.sum" is sum */
const char *py_advice(py_ctx *c, const py_type *t); /* ": ..." where a number is wanted, or "" */
bool py_pass_failure(py_ctx *c, const py_node *at, simt_status status); /* a host's failure */
void *py_alloc(py_ctx *c, size_t bytes);
#define PY_NEW(c, type, count) ((type *)py_alloc((c), sizeof(type) * (size_t)(count)))
/* An array of `count` items, NULL of none, with room for one more. */
void *py_grow(py_ctx *c, void *items, uint32_t count, size_t size);
py_var *py_find_var(py_frame *f, const char *name); /* NULL: not a local variable */
py_var *py_get_var(py_ctx *c, const char *name);    /* makes it */
/* The i-th positional parameter (ARG); after the last: *args. */
const py_node *py_parameter(const py_function *fn, uint32_t i);
/* `return v` of a function that is called. */
bool py_return_value(py_ctx *c, const py_node *at, const py_val *v);
/* Calls fn with arguments by position (parameters all filled): typing or inlining. declared: what it returns
 * where that was said, or NULL. */
bool py_call_function(py_ctx *c, const py_node *at, const py_function *fn, py_val *args,
                      uint32_t nargs, const py_type *declared, py_val *out);
/* The code of c->frame, with these arguments: typing, or lowering at this place. */
bool py_walk_function(py_ctx *c, const py_val *args);
source_pos py_pos(const py_ctx *c, const py_node *at);
uint32_t py_add_fault(py_ctx *c, const py_node *at, const kernel_fault *fault);

/* ---- signature.c ---- */
/* A parameter of the IR function: noted while typing (NULL), given while lowering, in the same order. */
ir_value *py_add_slot(py_ctx *c, ir_type t, const char *name, kernel_role role, int32_t argument);
/* Appends a type as a signature has it; false: no argument of a launch has such a type. */
typedef struct py_bytes {
    uint8_t *bytes; /* growing, in the arena */
    uint32_t count;
} py_bytes;
bool py_write_signature(py_ctx *c, const py_node *at, const py_type *t, py_bytes *out);
/* Values of the kernel's parameters. */
bool py_read_parameters(py_ctx *c, const py_function *fn, const uint8_t *signature, size_t bytes,
                        py_val **out, uint32_t *count);

/* The types that a signature lists. */
bool py_read_types(py_ctx *c, const uint8_t *signature, size_t bytes, const py_type ***out,
                   uint32_t *count);

/* ---- recursion.c ---- */
bool py_is_general(const py_ctx *c, const py_function *fn);
py_val *py_general_values(py_ctx *c, const py_val *args, uint32_t n);
/* Fails: the compilation begins again, and fn is general then. */
bool py_begin_again(py_ctx *c, const py_node *at, const py_function *fn);
/* The same with some function that has called itself; true: none has. */
bool py_generalize_chain(py_ctx *c, const py_node *at);
/* After a failure: it was only that this way through the code does not go on, as far as is known. */
bool py_way_ends(py_ctx *c);
/* What is typed above this level hangs on the result of what is typed there. */
void py_hang_on(py_ctx *c, uint32_t level);
bool py_result_so_far(py_ctx *c, const py_frame *f, py_val *out);
bool py_call_beside(py_ctx *c, const py_node *at, py_frame *f, const py_val *args, py_val *out);
bool py_lower_beside(py_ctx *c);
/* ---- closure.c ---- */
bool py_is_closure(const py_ctx *c, const py_function *fn);

/* ---- declared.c ---- */
/* Calls a function that was declared with signatures: the arguments become those of the signature that
 * fits best. The first `given` ones were given, the others are defaults. */
bool py_call_declared(py_ctx *c, const py_node *at, const py_function *fn, py_val *args,
                      uint32_t nargs, uint32_t given, py_val *out);

/* ---- types.c ---- */
bool py_type_equal(const py_type *a, const py_type *b);
uint32_t py_type_slots(const py_type *t);
ir_type py_type_slot(const py_type *t, uint32_t i); /* IR type of slot i */
const char *py_type_text(py_ctx *c, const py_type *t);
/* The type of a variable assigned both; NULL: none. */
const py_type *py_type_unify(py_ctx *c, const py_type *a, const py_type *b);
const py_type *py_type_array(py_ctx *c, py_scalar s, const py_record *record, int ndim, char layout,
                             ir_type space, bool readonly);
static inline int64_t py_element_bytes(const py_type *t) {
    return t->record != NULL ? t->record->size : (int64_t)py_scalar_bytes(t->scalar);
}
const py_type *py_type_tuple(py_ctx *c, const py_type *const *items, uint32_t count, uint8_t kind);
const py_type *py_type_entity(py_ctx *c, const py_entity *e);
static inline bool py_scalar_is_int(py_scalar s) { return s >= PY_S_I8 && s <= PY_S_U64; }
static inline bool py_scalar_is_integral(py_scalar s) { return s >= PY_S_BOOL && s <= PY_S_U64; }
static inline bool py_scalar_is_signed(py_scalar s) { return s >= PY_S_I8 && s <= PY_S_I64; }
static inline bool py_scalar_is_unsigned(py_scalar s) { return s >= PY_S_U8 && s <= PY_S_U64; }
static inline bool py_scalar_is_float(py_scalar s) { return s >= PY_S_F16 && s <= PY_S_F64; }
static inline py_scalar py_scalar_part(py_scalar s) { /* of a complex type */
    return s == PY_S_C64 ? PY_S_F32 : s == PY_S_C128 ? PY_S_F64 : s;
}
ir_type py_scalar_ir(py_scalar s);        /* in registers: bool is i1; of a complex's part */
ir_type py_scalar_memory_ir(py_scalar s); /* bool is i8 */
py_scalar py_scalar_unify(py_scalar a, py_scalar b);
py_scalar py_scalar_of(const py_val *v); /* NONE when it is no scalar */

/* ---- values and emitting: NULL while typing ---- */
static inline ir_value *py_slot(const py_val *v, int i) { return v->v != NULL ? v->v[i] : NULL; }
py_val py_val_scalar(py_ctx *c, py_scalar s, ir_value *v);
py_val py_val_complex(py_ctx *c, py_scalar s, ir_value *re, ir_value *im);
py_val py_val_constant(py_ctx *c, const py_constant *value,
                       py_scalar type);                             /* NONE: Python's own */
bool py_constant_equal(const py_constant *a, const py_constant *b); /* kind and value */
py_val py_val_int(py_ctx *c, int64_t value);                        /* constant int64 */
py_val py_val_bool(py_ctx *c, bool value);
py_val py_val_none(void);
py_val py_val_entity(py_ctx *c, const py_entity *e);
py_val py_val_tuple(py_ctx *c, py_val *items, uint32_t count);
py_val py_val_item(const py_val *tuple, uint32_t i);
/* Of an OPTIONAL the value, others as they are: where it is not None, or with a fault where it is. */
py_val py_val_present(const py_val *v);
bool py_take_value(py_ctx *c, const py_node *at, py_val *v);
py_val py_val_from_slots(const py_type *t, ir_value **v);
ir_value *py_emit_int(py_ctx *c, ir_type t, int64_t value);
ir_value *py_emit_float(py_ctx *c, ir_type t, double value);
ir_value *py_emit_unary(py_ctx *c, ir_op op, ir_value *a);
ir_value *py_emit_binary(py_ctx *c, ir_op op, ir_value *a, ir_value *b);
ir_value *py_emit_ternary(py_ctx *c, ir_op op, ir_value *a, ir_value *b, ir_value *d);
ir_value *py_emit_select(py_ctx *c, ir_value *cond, ir_value *yes, ir_value *no);
ir_value *py_emit_cast(py_ctx *c, ir_op op, ir_type to, ir_value *a);
ir_value *py_emit_special(py_ctx *c, ir_special s);
ir_value *py_emit_zero(py_ctx *c, ir_type t);
ir_value *py_emit_load(py_ctx *c, ir_type t, ir_value *ptr);
void py_emit_store(py_ctx *c, ir_value *ptr, ir_value *v);
ir_value *py_emit_ptradd(py_ctx *c, ir_value *ptr, ir_value *bytes);
/* `if` with results: begins the first region; py_else the second; py_end_if gives the results. While typing they
 * do nothing but keep the shape. */
typedef struct py_if {
    ir_inst *inst;
    ir_region *after;
} py_if;
py_if py_begin_if(py_ctx *c, ir_value *cond, const ir_type *types, uint32_t n);
void py_else(py_ctx *c, py_if *i, ir_value **values, uint32_t n); /* values of the first region */
void py_end_if(py_ctx *c, py_if *i, ir_value **values, uint32_t n, ir_value **results);

/* ---- convert.c ---- */
bool py_convert(py_ctx *c, const py_node *at, const py_val *v, const py_type *to, py_val *out);
bool py_to_scalar(py_ctx *c, const py_node *at, const py_val *v, py_scalar to, py_val *out);
bool py_truth(py_ctx *c, const py_node *at, const py_val *v, py_val *out); /* bool */
bool py_to_index(py_ctx *c, const py_node *at, const py_val *v, const char *what,
                 py_val *out); /* int64 */

/* ---- number.c, compare.c ---- */
/* The type in which operators take two numbers. */
py_scalar py_arithmetic_type(py_scalar a, py_scalar b);
/* Vectors are no tuples that operators work on. */
static inline bool py_is_plain_tuple(const py_val *v) {
    return v->type->kind == TY_TUPLE &&
           (v->type->names == NULL || v->type->names->element == PY_S_NONE);
}
bool py_fail_operator(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                      const py_val *b); /* b: NULL for a unary one */
bool py_binary(py_ctx *c, const py_node *at, py_operator op, const py_val *a, const py_val *b,
               py_val *out);
bool py_unary(py_ctx *c, const py_node *at, py_operator op, const py_val *a, py_val *out);
bool py_compare(py_ctx *c, const py_node *at, py_operator op, const py_val *a, const py_val *b,
                py_val *out);

/* ---- chars.c ---- */
typedef struct py_call py_call;
uint32_t py_chars_words(const py_type *t);
const py_type *py_chars_type(py_ctx *c, const py_record *r);
const py_type *py_chars_unify(py_ctx *c, const py_type *a, const py_type *b); /* NULL: nothing */
void py_chars_load(py_ctx *c, const py_type *t, ir_value *at, ir_value **out);
void py_chars_store(py_ctx *c, const py_type *t, ir_value *at, ir_value *const *v);
bool py_is_text(const py_val *v); /* CHARS, or a constant str or bytes */
const py_type *py_text_type(py_ctx *c, const py_val *v);
/* A text as CHARS. */
bool py_to_chars(py_ctx *c, const py_node *at, const py_val *v, py_val *out);
/* The same of a given size: what is longer is cut. */
bool py_chars_convert(py_ctx *c, const py_node *at, const py_val *v, const py_type *to,
                      py_val *out);
/* These take texts. */
bool py_chars_length(py_ctx *c, const py_node *at, const py_val *of, py_val *out);
bool py_chars_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                   py_val *out);
bool py_chars_compare(py_ctx *c, const py_node *at, py_operator op, const py_val *a,
                      const py_val *b, py_val *out); /* EQ, NOTEQ, LT, LTE */
bool py_chars_join(py_ctx *c, const py_node *at, const py_val *a, const py_val *b, py_val *out);
bool py_chars_contains(py_ctx *c, const py_node *at, const py_val *part, const py_val *of,
                       py_val *out);
bool py_has_text_method(const char *name);
bool py_chars_method(py_ctx *c, const py_val *of, py_call *x, py_val *out);
bool py_chars_truth(py_ctx *c, const py_val *v, py_val *out); /* CHARS */

/* ---- tuple.c ---- */
bool py_get_tuple_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                       py_val *out);

/* ---- subscript.c ---- */
bool py_get_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index, py_val *out);
bool py_set_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                 const py_val *value);
/* The item at an index of ndim axes of what fills an array. */
typedef bool (*py_item)(py_ctx *c, const py_node *at, const void *source, py_val *index, int ndim,
                        py_val *out);
/* Every element of the array `of` becomes its item of the source, in order. */
bool py_fill_array(py_ctx *c, const py_node *at, const py_val *of, py_item item,
                   const void *source);
/* A py_item of a number, or of an array with as many axes or fewer (the last ones). */
bool py_item_of_value(py_ctx *c, const py_node *at, const void *value, py_val *index, int ndim,
                      py_val *out);
/* One element whose access is guarded: begin opens the place where `address` may be used (element and
 * index are in range), end closes it; elsewhere a fault is reported. For atomics. */
typedef struct py_element {
    py_if guard;
    ir_value *address; /* NULL while typing */
    py_scalar type;
    bool guarded;
    const py_node *at;
    const py_val *of;
    ir_value *index[PY_MAX_NDIM], *wrapped[PY_MAX_NDIM];
} py_element;
bool py_element_begin(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                      const ir_type *types, uint32_t n, py_element *out);
void py_element_end(py_ctx *c, py_element *e, ir_value **values, uint32_t n, ir_value **results);

/* One element of memory, of a number's type or CHARS. */
void py_load_element(py_ctx *c, const py_type *type, ir_value *at, ir_value **v);
void py_store_element(py_ctx *c, const py_type *type, ir_value *at, ir_value *const *v);
/* Notes that the array or pointer is written; false: it is read-only. */
bool py_may_write(py_ctx *c, const py_node *at, const py_val *of);

/* ---- pointer.c ---- */
bool py_pointer_parameter(py_ctx *c, const py_type *t, const char *name, int32_t parameter,
                          py_val *out);
bool py_pointer_get(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                    py_val *out);
bool py_pointer_set(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                    const py_val *value);

/* ---- array.c ---- */
py_val py_array_val(py_ctx *c, const py_type *t, ir_value *ptr, ir_value **sizes,
                    ir_value **strides, const py_origin *origin);
bool py_array_attribute(py_ctx *c, const py_node *at, const py_val *of, const char *name,
                        py_val *out, bool *found);
/* A new array of shared or local memory; in shared memory of shape 0: all that the launch gives. */
bool py_array_alloc(py_ctx *c, const py_node *at, const py_val *shape, const py_entity *type,
                    ir_type space, int64_t alignment, py_val *out);
ir_value *py_array_address(py_ctx *c, const py_val *a); /* as i64 */
bool py_array_constant(py_ctx *c, const py_node *at, const py_entity *e, py_val *out);
static inline ir_value *py_array_ptr(const py_val *a) { return py_slot(a, 0); }
static inline ir_value *py_array_size(const py_val *a, int axis) {
    return a->v ? a->v[1 + axis] : NULL;
}
static inline ir_value *py_array_stride(const py_val *a, int axis) {
    return a->v ? a->v[1 + a->type->ndim + axis] : NULL;
}

/* ---- record.c ---- */
bool py_record_equal(const py_record *a, const py_record *b);
py_val py_val_record(py_ctx *c, const py_val *array, const py_val *index, uint32_t n);
const py_field *py_record_field(const py_record *r, const char *name); /* NULL: has none */
/* The array of one field of the records. */
bool py_array_field(py_ctx *c, const py_node *at, const py_val *of, const char *name, py_val *out);
bool py_record_get(py_ctx *c, const py_node *at, const py_val *r, const char *name, py_val *out);
bool py_record_set(py_ctx *c, const py_node *at, const py_val *r, const char *name,
                   const py_val *value);
bool py_record_assign(py_ctx *c, const py_node *at, const py_val *r, const py_val *value);

/* ---- named.c ---- */
bool py_names_equal(const py_names *a, const py_names *b);
py_val py_val_named(py_ctx *c, py_val *items, const py_names *names);
bool py_named_attribute(const py_val *of, const char *name, py_val *out);
bool py_call_named(py_ctx *c, const py_node *at, const py_names *names, py_call *x, py_val *out);

/* ---- expr.c ---- */
bool py_expr(py_ctx *c, const py_node *n, py_val *out);
bool py_condition(py_ctx *c, const py_node *n, py_val *truth);
/* The same where None is as good as a value: of an OPTIONAL, py_expr takes the value. */
bool py_expr_or_none(py_ctx *c, const py_node *n, py_val *out);
/* The values of a list of expressions, with the items of `*t` in its place. */
bool py_expr_list(py_ctx *c, const py_list *list, bool or_none, py_val **items, uint32_t *count);
bool py_assign(py_ctx *c, const py_node *target, const py_val *val);

/* ---- names.c ---- */
bool py_name(py_ctx *c, const py_node *n, py_val *out);
bool py_attribute(py_ctx *c, const py_node *n, py_val *out);
bool py_get_attribute(py_ctx *c, const py_node *n, const py_val *of, py_val *out);
bool py_set_attribute(py_ctx *c, const py_node *n, const py_val *of, const py_val *val);
bool py_entity_value(py_ctx *c, const py_node *at, const py_entity *e, py_val *out);

/* ---- call.c ---- */
bool py_call_expr(py_ctx *c, const py_node *n, py_val *out);
/* The arguments of the call n. or_none: None is as good as a value. */
bool py_call_arguments(py_ctx *c, const py_node *n, py_call *x, bool or_none);
/* A function of kernels that is written in Python ("numpy.sum"); *found: there is such a one. */
bool py_call_library(py_ctx *c, const char *name, py_call *x, py_val *out, bool *found);

/* Arguments by position, keyword and default, in the order of the parameters; *args: a tuple. */
bool py_bind_arguments(py_ctx *c, const py_node *at, const py_function *fn, const py_call *x,
                       py_val **bound, uint32_t *count);

/* ---- closure.c ---- */
typedef struct py_closure py_closure;
/* The function that n, a `def` or a lambda in the kernel, makes. */
bool py_closure_value(py_ctx *c, const py_node *n, py_val *out);
bool py_call_closure(py_ctx *c, const py_node *at, const py_entity *e, py_call *x, py_val *out);

/* ---- method.c ---- */
/* `of.name(...)` of a number or an array; *found: it has such a method. */
bool py_call_method(py_ctx *c, const py_node *n, const py_val *of, py_val *out, bool *found);

/* ---- control.c ---- */
bool py_body(py_ctx *c, const py_list *body);
/* Reports the fault and ends the thread where cond is false. */
void py_fault_unless(py_ctx *c, const py_node *at, ir_value *cond, const kernel_fault *f);

/* ---- merge.c ---- */
/* Variables assigned in these statements. */
py_var **py_assigned(py_ctx *c, const py_list *statements, uint32_t *n);
/* Takes out of the names those that these statements assign. */
void py_drop_assigned(py_ctx *c, const py_list *statements, const char **names, uint32_t *n);
/* A merge of `var` (or NULL), which comes first, and (assigns) of the variables that `at` assigns. */
py_merge *py_merge_new(py_ctx *c, const py_node *at, py_var *var, bool assigns);
/* Opens a block that ends at m. */
void py_begin_block(py_ctx *c, py_merge *m);
/* The way goes on in a loop, whose own test leaves it to `done`. `first` and `step` of a counter that goes from
 * round to round (head->counter), or NULL. */
bool py_begin_loop(py_ctx *c, py_merge *head, py_merge *done, ir_value *first, ir_value *step);
/* The way walked so far goes on at m: what it brings is added, and it ends here. */
void py_add_way(py_ctx *c, py_merge *m);
bool py_arrive(py_ctx *c, py_merge *m);
/* The walk goes on behind m. */
void py_go_on(py_ctx *c, py_merge *m);
/* An `if` of two ways, 0 where cond holds, that meet at m. *value: of m's first variable. */
typedef bool (*py_way)(py_ctx *c, const void *of, int way, py_val *value);
bool py_walk_ways(py_ctx *c, py_merge *m, ir_value *cond, py_way way, const void *of);
/* A round of a loop: begins at the head (`types` gets its types there), and is the last one of typing
 * when nothing new has come to the head. */
void py_begin_round(py_ctx *c, py_merge *head, const py_type **types);
bool py_is_settled(const py_merge *head, const py_type **types, bool used_unknown);
/* Variables that have no type at m, a loop's exit, came as they were at the head. */
void py_take_from_head(py_merge *m, const py_merge *head);

/* iterate.c: start, stop and step of a range as i64. */
void py_range_parts(py_ctx *c, const py_val *range, ir_value *out[3]);
/* iterate.c: length and item i of anything that can be iterated; tuples have no run-time item. */
bool py_iter_length(py_ctx *c, const py_node *at, const py_val *it, ir_value **length,
                    int64_t *known);
bool py_iter_item(py_ctx *c, const py_node *at, const py_val *it, ir_value *i, int64_t known,
                  py_val *out);

/* ---- intrinsics ---- */
ir_value *py_emit_atan2(py_ctx *c, ir_value *y, ir_value *x);
bool py_complex_function(py_ctx *c, py_call *x, ir_op op, py_val *out); /* np.exp of a complex */
ir_value *py_emit_hypot(py_ctx *c, ir_value *x, ir_value *y);
struct py_call {
    const py_node *node;
    const char *name; /* as the host says it */
    py_val *args;
    uint32_t nargs;
    const char **keywords; /* names of the last nkeywords args */
    uint32_t nkeywords;    /* their values follow the positional ones in args */
    int64_t extra;         /* the row's own number */
};
typedef bool (*py_intrinsic_run)(py_ctx *c, py_call *x, py_val *out);
typedef struct py_intrinsic {
    const char *name;
    py_intrinsic_run run;
    int64_t extra;
    bool value;       /* used without a call: cuda.threadIdx.x */
    uint8_t elements; /* a function of so many elements, also called with arrays; 0: it is not */
    uint8_t length;   /* of the name */
} py_intrinsic;
const py_intrinsic *py_find_intrinsic(const char *name);
/* `name`, or the first name of the group: "cuda.threadIdx" gives "cuda.threadIdx.x"; NULL: neither. */
const char *py_intrinsic_within(const char *name);
/* One that begins as `name`, or as which `name` begins; or NULL. */
const char *py_intrinsic_near(const char *name);
/* Argument i of a call, by position or keyword; NULL: not given. */
py_val *py_argument(py_call *x, uint32_t i, const char *keyword);
/* Checks the number of arguments and that there are no unknown keywords ("shape, dtype"). */
bool py_check_arguments(py_ctx *c, py_call *x, uint32_t least, uint32_t most, const char *keywords);

#endif
