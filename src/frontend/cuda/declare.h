/* What declarations begin with, and the names that they declare. */
#ifndef SIMT_FRONTEND_CUDA_DECLARE_H
#define SIMT_FRONTEND_CUDA_DECLARE_H

#include "frontend/cuda/tree.h"

typedef struct specifiers {
    const cu_token *at;
    const cu_type *type; /* NULL: auto */
    uint32_t words;      /* bit per kind of the words below */
    bool is_const, is_volatile;
    uint32_t align;
} specifiers;

enum {
    SP_TYPEDEF = 1,
    SP_STATIC = 2,
    SP_EXTERN = 4,
    SP_GLOBAL = 8,
    SP_DEVICE = 16,
    SP_HOST = 32,
    SP_SHARED = 64,
    SP_CONSTANT = 128,
    SP_AUTO = 256,
    SP_CONSTEXPR = 512
};

typedef struct declarator {
    const cu_type *type;
    const cu_token *at;     /* the name, or where it would be */
    cu_name *name;          /* NULL: none */
    bool function, no_size; /* its parameters are next; an array [] without a size */
} declarator;

specifiers cu_parse_specifiers(cuda_unit *u);
/* One that is no type: static, __device__, const, ...; false: there is none. */
bool cu_take_specifier(cuda_unit *u, specifiers *s);
declarator cu_parse_declarator(cuda_unit *u, const cu_type *base);
const cu_type *cu_parse_struct(cuda_unit *u);
const cu_type *cu_parse_enum(cuda_unit *u);
/* Ends the run at a word of C++ that we have not. */
void cu_refuse(cuda_unit *u);

#endif
