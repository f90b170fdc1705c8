/* The front end's own structures: tokens, and what all its files share. An error ends the run (arena_run). */
#ifndef SIMT_FRONTEND_CUDA_WORK_H
#define SIMT_FRONTEND_CUDA_WORK_H

#include "frontend/cuda/frontend.h"

/* ---- names: each once, so that they are compared by address ---- */

typedef struct cu_macro cu_macro;
typedef struct cu_symbol cu_symbol;
typedef struct cu_tag cu_tag;
typedef struct cu_name {
    struct cu_name *next; /* of one hash */
    const char *text;
    uint32_t length;
    uint16_t keyword; /* cu_keyword; 0: none */
    cu_macro *macro;
    cu_symbol *symbol; /* the innermost that is seen here */
} cu_name;

typedef enum cu_keyword {
    KW_NONE,
#define KEYWORD(id, text) KW_##id,
#include "frontend/cuda/keywords.def"
#undef KEYWORD
} cu_keyword;

/* ---- tokens ---- */

typedef enum cu_token_kind {
    TK_END,
    TK_NAME,
    TK_NUMBER,
    TK_CHAR,
    TK_STRING,
    TK_PUNCT,
    TK_OTHER /* a character that no token begins with */
} cu_token_kind;

/* A punctuator as a number: its characters, the first one lowest. */
#define CU_P1(a)       ((uint32_t)(a))
#define CU_P2(a, b)    ((uint32_t)(a) | (uint32_t)(b) << 8)
#define CU_P3(a, b, c) (CU_P2(a, b) | (uint32_t)(c) << 16)

typedef struct cu_token {
    uint8_t kind;
    bool space;  /* white space stands before it */
    bool starts; /* it is the first of its line */
    bool fixed;  /* a name that is not replaced any more */
    uint16_t column;
    uint32_t line, length;
    uint32_t punct;
    const char *text;
    cu_name *name;
} cu_token;

typedef struct cu_tokens {
    cu_token *items;
    uint32_t count, capacity;
} cu_tokens;

/* ---- the work on a unit ---- */

enum { CU_NAME_LISTS = 512, CU_MOST_DEPTH = 200 };

struct cuda_unit {
    arena mem; /* sure */
    const char *file;
    cu_name *names[CU_NAME_LISTS];
    cu_tokens tokens;         /* preprocessed, ends with TK_END */
    uint32_t at;              /* the next one */
    uint32_t depth;           /* of what the parser is inside of */
    uint32_t loops, switches; /* of the function that it is inside of */
    bool prints;              /* printf is called somewhere */
    struct cu_scope *scope;   /* declare.c */
    struct cu_function *functions, **last_function;
    struct cu_function *inside; /* being parsed */
    struct cu_type *types;      /* types.c: those made, to be found again */
};

#define CU_NEW(u, type)      ARENA_NEW(&(u)->mem, type)
#define CU_ARRAY(u, type, n) ARENA_ARRAY(&(u)->mem, type, (n) + 1)

/* Ends the run; at NULL: no place. */
_Noreturn void cu_fail(const cuda_unit *u, const cu_token *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "not in simt yet" */
_Noreturn void cu_not_yet(const cuda_unit *u, const cu_token *at, const char *what);

/* The name of that spelling. */
cu_name *cu_name_of(cuda_unit *u, const char *text, size_t length);
static inline bool cu_is(const cu_token *t, uint32_t punct) {
    return t->kind == TK_PUNCT && t->punct == punct;
}

/* ---- lex.c, preprocess.c ---- */

typedef struct cu_source {
    const char *at, *end, *line_start;
    uint32_t line;
    bool starts; /* no token on this line yet */
} cu_source;
cu_source cu_source_of(const char *text, size_t bytes);
/* The next token; comments and white space are left out. */
cu_token cu_lex(cuda_unit *u, cu_source *s);
void cu_put_token(cuda_unit *u, cu_tokens *to, const cu_token *t);
void cu_preprocess(cuda_unit *u, const char *text, size_t bytes, const cuda_options *options);
/* Whether an expression behind #if holds: macros are replaced, names that are left are 0. */
bool cu_condition(const cuda_unit *u, const cu_tokens *of, const cu_token *at);
/* The value of a number that is an integer; false: a float. `type`: a cu_kind. */
bool cu_read_integer(const cuda_unit *u, const cu_token *t, uint64_t *value, int *type);
double cu_read_float(const cuda_unit *u, const cu_token *t, int *type);
int64_t cu_read_char(const cuda_unit *u, const cu_token *t);
/* A string's characters without quotes, escapes replaced; *bytes without the 0 behind them. */
const char *cu_read_string(cuda_unit *u, const cu_token *t, size_t *bytes);

#endif
