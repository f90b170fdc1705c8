/* Types: made once each, so that equal ones are one. */
#include "frontend/cuda/tree.h"

#include <string.h>

enum { MOST_LEAVES = 4096 };
#define MOST_BYTES (1ull << 40)

static const struct {
    const char *text;
    uint8_t size;
    bool is_unsigned;
    ir_type ir;
} basics[] = {
    [CU_VOID] = {"void", 0, false, IR_VOID},
    [CU_BOOL] = {"bool", 1, true, IR_I1},
    [CU_CHAR] = {"char", 1, false, IR_I8},
    [CU_SCHAR] = {"signed char", 1, false, IR_I8},
    [CU_UCHAR] = {"unsigned char", 1, true, IR_I8},
    [CU_SHORT] = {"short", 2, false, IR_I16},
    [CU_USHORT] = {"unsigned short", 2, true, IR_I16},
    [CU_INT] = {"int", 4, false, IR_I32},
    [CU_UINT] = {"unsigned int", 4, true, IR_I32},
    [CU_LONG] = {"long", 8, false, IR_I64},
    [CU_ULONG] = {"unsigned long", 8, true, IR_I64},
    [CU_LLONG] = {"long long", 8, false, IR_I64},
    [CU_ULLONG] = {"unsigned long long", 8, true, IR_I64},
    [CU_FLOAT] = {"float", 4, false, IR_F32},
    [CU_DOUBLE] = {"double", 8, false, IR_F64},
    [CU_POINTER] = {"*", 8, true, IR_I64},
};

bool cu_is_unsigned(const cu_type *t) { return basics[t->kind].is_unsigned; }
ir_type cu_ir_type(const cu_type *t) { return basics[t->kind].ir; }

/* One of the unit's that is like this one, or it itself from now on. */
static cu_type *made(cuda_unit *u, const cu_type *like) {
    for (cu_type *t = u->types; t != NULL; t = t->next)
        if (t->kind == like->kind && t->of == like->of && t->count == like->count &&
            t->fields == like->fields && t->name == like->name && t->is_const == like->is_const &&
            t->is_volatile == like->is_volatile && (t->plain == like->plain || like->plain == NULL))
            return t;
    cu_type *t = CU_NEW(u, cu_type);
    *t = *like;
    if (t->plain == NULL) t->plain = t;
    t->next = u->types;
    return u->types = t;
}

const cu_type *cu_basic(cuda_unit *u, cu_kind kind) {
    uint32_t size = basics[kind].size;
    return made(u,
                &(cu_type){.kind = kind, .size = size, .align = size, .leaves = kind != CU_VOID});
}

const cu_type *cu_pointer_to(cuda_unit *u, const cu_type *t) {
    return made(u, &(cu_type){.kind = CU_POINTER, .size = 8, .align = 8, .leaves = 1, .of = t});
}

const cu_type *cu_array_of(cuda_unit *u, const cu_type *t, uint64_t count, const cu_token *at) {
    if (t->size == 0) cu_fail(u, at, "an array of %s", cu_type_text(u, t));
    if (count > MOST_BYTES / t->size) cu_fail(u, at, "an array of more than 2^40 bytes");
    uint64_t leaves = t->leaves * count;
    return made(u,
                &(cu_type){.kind = CU_ARRAY,
                           .size = t->size * count,
                           .align = t->align,
                           .of = t,
                           .count = count,
                           .leaves = leaves <= MOST_LEAVES ? (uint32_t)leaves : MOST_LEAVES + 1});
}

const cu_type *cu_qualified(cuda_unit *u, const cu_type *t, bool is_const, bool is_volatile) {
    if (t->kind == CU_ARRAY) /* its elements are */
        return cu_array_of(u, cu_qualified(u, t->of, is_const, is_volatile), t->count, NULL);
    cu_type like = *t;
    like.is_const |= is_const;
    like.is_volatile |= is_volatile;
    like.plain = t->plain;
    if (!like.is_const && !like.is_volatile) return t->plain;
    if (like.is_const == t->is_const && like.is_volatile == t->is_volatile) return t;
    return made(u, &like);
}

/* ---- structs ---- */

cu_type *cu_new_struct(cuda_unit *u, const cu_name *name) {
    cu_type *t = CU_NEW(u, cu_type);
    *t = (cu_type){.kind = CU_STRUCT, .name = name, .plain = t};
    return t;
}

void cu_end_struct(cuda_unit *u, cu_type *s, uint32_t align, bool is_union, const cu_token *at) {
    if (is_union) cu_not_yet(u, at, "unions");
    uint64_t offset = 0, leaves = 0;
    s->align = align > 0 ? align : 1;
    for (cu_field *f = s->fields; f != NULL; f = f->next) {
        uint64_t to = f->type->align;
        offset = (offset + to - 1) / to * to;
        f->offset = offset;
        f->leaf = (uint32_t)leaves;
        offset += f->type->size;
        leaves += f->type->leaves;
        if (f->type->align > s->align) s->align = f->type->align;
        if (offset > MOST_BYTES) cu_fail(u, at, "a struct of more than 2^40 bytes");
    }
    if (leaves > MOST_LEAVES) cu_fail(u, at, "a struct of more than %d numbers", MOST_LEAVES);
    s->leaves = (uint32_t)leaves;
    s->size = (offset + s->align - 1) / s->align * s->align;
    if (s->size == 0) s->size = 1;
}

const cu_field *cu_find_field(const cu_type *s, const cu_name *name) {
    for (const cu_field *f = s->plain->fields; f != NULL; f = f->next)
        if (f->name == name) return f;
    return NULL;
}

const cu_type *cu_leaf(const cu_type *t, uint32_t number, uint64_t *offset) {
    *offset = 0;
    for (;;) {
        if (t->kind == CU_ARRAY) {
            *offset += number / t->of->leaves * t->of->size;
            number %= t->of->leaves;
            t = t->of;
        } else if (t->kind == CU_STRUCT) {
            const cu_field *f = t->plain->fields;
            while (f->next != NULL && f->next->leaf <= number) f = f->next;
            *offset += f->offset;
            number -= f->leaf;
            t = f->type;
        } else {
            return t;
        }
    }
}

/* ---- text ---- */

static const char *base_text(cuda_unit *u, const cu_type *t) {
    const char *name =
        t->kind == CU_STRUCT ? t->name != NULL ? t->name->text : "struct" : basics[t->kind].text;
    return t->is_const || t->is_volatile
               ? arena_printf(&u->mem, "%s%s%s", t->is_const ? "const " : "",
                              t->is_volatile ? "volatile " : "", name)
               : name;
}

const char *cu_type_text(cuda_unit *u, const cu_type *t) {
    if (t->kind == CU_POINTER) {
        const char *of = cu_type_text(u, t->of);
        return arena_printf(&u->mem, "%s%s*", of, of[strlen(of) - 1] == '*' ? "" : " ");
    }
    if (t->kind != CU_ARRAY) return base_text(u, t);
    strbuf dims;
    strbuf_init_in(&dims, &u->mem);
    for (; t->kind == CU_ARRAY; t = t->of)
        strbuf_printf(&dims, "[%llu]", (unsigned long long)t->count);
    return arena_printf(&u->mem, "%s%s", cu_type_text(u, t), strbuf_text(&dims));
}

/* ---- vector types ---- */

static const struct {
    const char *name;
    cu_kind of;
} vectors[] = {{"char", CU_SCHAR},       {"uchar", CU_UCHAR}, {"short", CU_SHORT},
               {"ushort", CU_USHORT},    {"int", CU_INT},     {"uint", CU_UINT},
               {"long", CU_LONG},        {"ulong", CU_ULONG}, {"longlong", CU_LLONG},
               {"ulonglong", CU_ULLONG}, {"float", CU_FLOAT}, {"double", CU_DOUBLE}};

static const cu_type *new_vector(cuda_unit *u, const cu_name *name, cu_kind of, int n) {
    cu_type *t = cu_new_struct(u, name);
    cu_field **last = &t->fields;
    for (int i = 0; i < n; i++) {
        cu_field *f = CU_NEW(u, cu_field);
        f->name = cu_name_of(u, &"xyzw"[i], 1);
        f->type = cu_basic(u, of);
        *last = f;
        last = &f->next;
    }
    uint32_t size =
        basics[of].size * (uint32_t)n; /* CUDA's guide: table of built-in vector types */
    cu_end_struct(u, t, n == 3 ? 0 : size < 16 ? size : 16, false, NULL);
    t->next = u->types;
    return u->types = t;
}

const cu_type *cu_vector_type(cuda_unit *u, const cu_name *name) {
    if (strcmp(name->text, "dim3") == 0) return cu_vector_type(u, cu_name_of(u, "uint3", 5));
    int n = name->length > 1 ? name->text[name->length - 1] - '0' : 0;
    if (n < 1 || n > 4) return NULL;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const char *base = vectors[i].name;
        if (strlen(base) != name->length - 1 || memcmp(base, name->text, name->length - 1) != 0)
            continue;
        for (cu_type *t = u->types; t != NULL; t = t->next)
            if (t->kind == CU_STRUCT && t->name == name && t->plain == t) return t;
        return new_vector(u, name, vectors[i].of, n);
    }
    return NULL;
}
