/* Types, symbols, and the tree that the parser makes: names are found, types checked, conversions written out. */
#ifndef SIMT_FRONTEND_CUDA_TREE_H
#define SIMT_FRONTEND_CUDA_TREE_H

#include "frontend/cuda/work.h"

/* ---- types; without qualifiers each is made once, and compared by address ---- */

typedef enum cu_kind {
    CU_VOID,
    CU_BOOL,
    CU_CHAR,
    CU_SCHAR,
    CU_UCHAR,
    CU_SHORT,
    CU_USHORT,
    CU_INT,
    CU_UINT,
    CU_LONG,
    CU_ULONG,
    CU_LLONG,
    CU_ULLONG,
    CU_FLOAT,
    CU_DOUBLE,
    CU_POINTER,
    CU_ARRAY,
    CU_STRUCT
} cu_kind;

typedef struct cu_type cu_type;
typedef struct cu_field {
    struct cu_field *next;
    const cu_name *name;
    const cu_type *type;
    uint64_t offset;
    uint32_t leaf; /* of its struct's leaves, its first */
} cu_field;
struct cu_type {
    cu_kind kind;
    bool is_const, is_volatile;
    uint32_t align;
    uint64_t size;       /* bytes; 0: void, an array of no size, a struct that is not defined yet */
    const cu_type *of;   /* POINTER, ARRAY */
    uint64_t count;      /* ARRAY */
    uint32_t leaves;     /* scalars that it consists of */
    const cu_name *name; /* STRUCT */
    cu_field *fields;
    cu_type *plain; /* without qualifiers */
    cu_type *next;  /* among the unit's */
};

static inline bool cu_is_integer(const cu_type *t) {
    return t->kind >= CU_BOOL && t->kind <= CU_ULLONG;
}
static inline bool cu_is_float(const cu_type *t) {
    return t->kind == CU_FLOAT || t->kind == CU_DOUBLE;
}
static inline bool cu_is_number(const cu_type *t) {
    return t->kind >= CU_BOOL && t->kind <= CU_DOUBLE;
}
static inline bool cu_is_pointer(const cu_type *t) { return t->kind == CU_POINTER; }
static inline bool cu_is_scalar(const cu_type *t) { return cu_is_number(t) || cu_is_pointer(t); }
bool cu_is_unsigned(const cu_type *t);
static inline bool cu_same(const cu_type *a, const cu_type *b) { return a->plain == b->plain; }

const cu_type *cu_basic(cuda_unit *u, cu_kind kind);
const cu_type *cu_pointer_to(cuda_unit *u, const cu_type *t);
const cu_type *cu_array_of(cuda_unit *u, const cu_type *t, uint64_t count, const cu_token *at);
const cu_type *cu_qualified(cuda_unit *u, const cu_type *t, bool is_const, bool is_volatile);
cu_type *cu_new_struct(cuda_unit *u, const cu_name *name);
/* align: of __align__, or 0. */
void cu_end_struct(cuda_unit *u, cu_type *s, uint32_t align, bool is_union, const cu_token *at);
const cu_field *cu_find_field(const cu_type *s, const cu_name *name);
const char *cu_type_text(cuda_unit *u, const cu_type *t);
/* float4 and its kin, by name; NULL: it is none of those. */
const cu_type *cu_vector_type(cuda_unit *u, const cu_name *name);
ir_type
cu_ir_type(const cu_type *t); /* of a scalar's value: a bool's is i1, a pointer's i64 (lower.h) */
/* The scalar of that number of those that t consists of, and where it lies. */
const cu_type *cu_leaf(const cu_type *t, uint32_t number, uint64_t *offset);

/* ---- symbols ---- */

typedef struct cu_expr cu_expr;
typedef struct cu_stmt cu_stmt;
typedef struct cu_origin cu_origin;

typedef enum cu_storage { CU_AUTO, CU_SHARED, CU_DYNAMIC_SHARED, CU_PARAMETER } cu_storage;

/* A part of a variable that is no memory, as lowering sees it. */
typedef struct cu_slot {
    uint32_t number;         /* vars.h */
    const cu_origin *origin; /* of a pointer; NULL: none given yet */
    bool merged;             /* several: then number + 1 is its base, number + 2 its size */
} cu_slot;

typedef struct cu_variable {
    const cu_name *name;
    const cu_type *type;
    const cu_token *at;
    cu_storage storage;
    bool addressed; /* it must be memory */
    cu_expr *init;
    /* lowering: */
    cu_slot *slots; /* per leaf */
    bool *merged;   /* per leaf: found in an earlier try (place.c) */
    uint32_t live;  /* it has a place: the number of the function's lowering */
    cu_origin *memory;
} cu_variable;

typedef struct cu_function {
    struct cu_function *next;
    const cu_name *name;
    const cu_token *at;
    const cu_type *result;
    cu_variable **parameters;
    uint32_t nparameters;
    bool is_kernel, is_lowered; /* lowered just now: a call would be recursion */
    cu_stmt *body;              /* NULL: declared only */
    cu_variable *value;         /* its result, as a variable */
} cu_function;

typedef enum cu_symbol_kind {
    SYM_VARIABLE,
    SYM_FUNCTION,
    SYM_TYPE,
    SYM_CONSTANT,
    SYM_BUILTIN
} cu_symbol_kind;
struct cu_symbol {
    cu_symbol_kind kind;
    cu_symbol *hidden; /* of the same name, outside */
    cu_symbol *next;   /* of the scope */
    cu_name *name;
    const cu_type *type; /* TYPE, CONSTANT */
    union {
        cu_variable *variable;
        cu_function *function; /* the first of that name: the others follow by `overload` */
        uint64_t bits;
        uint32_t builtin;
    };
    cu_symbol *overload;
};
struct cu_tag {
    cu_tag *hidden, *next;
    cu_type *type;
};
typedef struct cu_scope {
    struct cu_scope *outer;
    cu_symbol *symbols;
} cu_scope;

/* ---- expressions ---- */

typedef enum cu_expr_kind {
    EX_CONSTANT, /* bits of a number */
    EX_NULL,     /* a null pointer */
    EX_VARIABLE,
    EX_UNARY,     /* op: - ~ ! */
    EX_BINARY,    /* op; both of the type that the operation has */
    EX_LOGICAL,   /* op: && || */
    EX_CONDITION, /* a ? b : c */
    EX_COMMA,
    EX_CAST,     /* a to type; of numbers, pointers, void */
    EX_ASSIGN,   /* a = b; with op: a = (type)((compute)a op b) */
    EX_STEP,     /* op: + or -; ++ and --; `post`: the value is that before */
    EX_DEREF,    /* *a */
    EX_ADDRESS,  /* &a, or an array as a pointer to its first element */
    EX_MEMBER,   /* a.field */
    EX_MOVE,     /* pointer a + integer b (i64), op + or - */
    EX_DISTANCE, /* pointer a - pointer b, in elements */
    EX_CALL,
    EX_BUILTIN, /* arguments converted */
    EX_LIST     /* {a, b, c}: of arrays and structs, with nested lists; missing ones are 0 */
} cu_expr_kind;

struct cu_expr {
    cu_expr_kind kind;
    bool lvalue, post;
    uint32_t op; /* punctuator, or number of a builtin */
    const cu_type *type, *compute;
    const cu_token *at;
    cu_expr *a, *b, *c;
    uint64_t bits;
    cu_variable *variable;
    const cu_field *field;
    cu_function *function;
    cu_expr **list; /* arguments, items */
    uint32_t count;
    const char *text;    /* NULL: of a string, its characters */
    kernel_print *print; /* BUILTIN: printf's format */
};

/* ---- statements ---- */

typedef enum cu_stmt_kind {
    ST_EXPR,
    ST_DECLARE,
    ST_BLOCK,
    ST_IF,
    ST_WHILE,
    ST_DO,
    ST_FOR,
    ST_SWITCH,
    ST_CASE, /* a label inside a switch's body: bits, or `is_default` */
    ST_BREAK,
    ST_CONTINUE,
    ST_RETURN,
    ST_EMPTY
} cu_stmt_kind;

struct cu_stmt {
    cu_stmt_kind kind;
    bool is_default;
    const cu_token *at;
    cu_stmt *next;                 /* of a block */
    cu_stmt *first, *body, *other; /* BLOCK: first; IF: body, other; FOR: first is its beginning */
    cu_expr *value, *step;
    cu_variable *variable;
    uint64_t bits;
};

/* ---- the parser ---- */

static inline const cu_token *cu_now(const cuda_unit *u) { return &u->tokens.items[u->at]; }
static inline const cu_token *cu_ahead(const cuda_unit *u, uint32_t n) {
    uint32_t at = u->at + n;
    return &u->tokens.items[at < u->tokens.count ? at : u->tokens.count - 1];
}
/* The token, behind which it goes on. */
const cu_token *cu_take(cuda_unit *u);
bool cu_accept(cuda_unit *u, uint32_t punct);
bool cu_accept_word(cuda_unit *u, cu_keyword word);
void cu_expect(cuda_unit *u, uint32_t punct, const char *where);
static inline bool cu_sees(const cuda_unit *u, uint32_t punct) { return cu_is(cu_now(u), punct); }
static inline bool cu_sees_word(const cuda_unit *u, cu_keyword word) {
    return cu_now(u)->kind == TK_NAME && cu_now(u)->name->keyword == word;
}
void cu_enter(cuda_unit *u,
              const cu_token *at); /* one level deeper; ends the run where it is too deep */
static inline void cu_leave(cuda_unit *u) { u->depth--; }

void cu_begin_scope(cuda_unit *u);
void cu_end_scope(cuda_unit *u);
cu_symbol *cu_declare(cuda_unit *u, cu_symbol_kind kind, cu_name *name, const cu_token *at);
cu_symbol *cu_in_scope(const cuda_unit *u, const cu_name *name); /* not in those outside of it */

void cu_parse_unit(cuda_unit *u);
bool cu_begins_type(cuda_unit *u);
const cu_type *cu_parse_type_name(cuda_unit *u);
cu_stmt *cu_parse_declaration(cuda_unit *u); /* of variables in a function, up to ; */
cu_stmt *cu_parse_block(cuda_unit *u);
void cu_parse_static_assert(cuda_unit *u);
cu_expr *cu_parse_expression(cuda_unit *u);
cu_expr *cu_parse_assignment(cuda_unit *u);
cu_expr *cu_parse_initializer(cuda_unit *u, const cu_type **type, const char *what);
uint64_t cu_parse_constant(cuda_unit *u, const char *what); /* of an integer */

/* ---- convert.c ---- */

cu_expr *cu_new_expr(cuda_unit *u, cu_expr_kind kind, const cu_token *at, const cu_type *type);
cu_expr *cu_constant(cuda_unit *u, const cu_token *at, const cu_type *type, uint64_t bits);
cu_expr *cu_rvalue(cuda_unit *u, cu_expr *e); /* arrays become pointers */
cu_expr *cu_cast(cuda_unit *u, cu_expr *e, const cu_type *to);
/* As an assignment or an argument converts; `what` for the message. */
cu_expr *cu_convert(cuda_unit *u, cu_expr *e, const cu_type *to, const char *what);
bool cu_converts(const cu_expr *e, const cu_type *to);
cu_expr *cu_truth(cuda_unit *u, cu_expr *e); /* as bool */
cu_expr *cu_promoted(cuda_unit *u, cu_expr *e);
const cu_type *cu_common(cuda_unit *u, const cu_type *a, const cu_type *b);
/* Of constants the result; else the expression. */
cu_expr *cu_folded(cuda_unit *u, cu_expr *e);

/* ---- calls of what the language brings along: intrinsic.c, builtins.def ---- */

bool cu_find_builtin(cuda_unit *u, const cu_name *name, uint32_t *number);
cu_expr *cu_call_builtin(cuda_unit *u, uint32_t number, const cu_token *at, cu_expr **args,
                         uint32_t n);
/* threadIdx and its kin, with the member behind the dot; NULL: the name is none of those. */
cu_expr *cu_parse_coordinate(cuda_unit *u);

#endif
