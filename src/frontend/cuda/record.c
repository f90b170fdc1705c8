/* Structs, enumerations, initial values. */
#include "frontend/cuda/declare.h"

#include <string.h>

/* ---- structs and enumerations ---- */

static void add_fields(cuda_unit *u, cu_type *t, cu_field ***last) {
    specifiers s = cu_parse_specifiers(u);
    if (s.type == NULL) cu_fail(u, s.at, "a member needs a type");
    do {
        declarator d = cu_parse_declarator(u, s.type);
        if (d.name == NULL) cu_fail(u, d.at, "a member's name is expected");
        if (d.function) cu_not_yet(u, d.at, "functions as members");
        if (cu_sees(u, ':')) cu_not_yet(u, cu_now(u), "bit-fields");
        if (cu_sees(u, '=')) cu_not_yet(u, cu_now(u), "initial values of members");
        if (d.no_size || d.type->plain->size == 0)
            cu_fail(u, d.at, "member %s: its size is not known", d.name->text);
        if (cu_find_field(t, d.name) != NULL) cu_fail(u, d.at, "two members %s", d.name->text);
        cu_field *f = CU_NEW(u, cu_field);
        *f = (cu_field){.name = d.name, .type = d.type};
        **last = f;
        *last = &f->next;
    } while (cu_accept(u, ','));
    cu_expect(u, ';', "behind the member");
}

static cu_type *struct_of(cuda_unit *u, cu_name *name, const cu_token *at) {
    cu_symbol *s = name != NULL ? name->symbol : NULL;
    if (s != NULL && s->kind == SYM_TYPE && s->type->kind == CU_STRUCT) return s->type->plain;
    cu_type *t = cu_new_struct(u, name);
    if (name != NULL) cu_declare(u, SYM_TYPE, name, at)->type = t;
    return t;
}

const cu_type *cu_parse_struct(cuda_unit *u) {
    const cu_token *at = cu_take(u);
    specifiers s = {0};
    while (cu_take_specifier(u, &s)) {}
    const cu_token *named = cu_now(u);
    cu_name *name =
        named->kind == TK_NAME && named->name->keyword == KW_NONE ? cu_take(u)->name : NULL;
    cu_type *t = struct_of(u, name, named);
    if (cu_sees(u, ':')) cu_not_yet(u, cu_now(u), "classes made from others");
    if (!cu_accept(u, '{')) {
        if (name == NULL) cu_fail(u, cu_now(u), "the struct's name, or { is expected");
        return t;
    }
    if (t->size > 0)
        cu_fail(u, named, "struct %s is defined already", name != NULL ? name->text : "");
    cu_enter(u, at);
    cu_field **last = &t->fields;
    while (!cu_accept(u, '}')) {
        if (cu_now(u)->kind == TK_END) cu_fail(u, at, "struct: } is missing");
        add_fields(u, t, &last);
    }
    cu_leave(u);
    cu_end_struct(u, t, s.align, false, at);
    return t;
}

const cu_type *cu_parse_enum(cuda_unit *u) {
    u->at++;
    if (cu_accept_word(u, KW_CLASS)) cu_not_yet(u, cu_now(u), "enum class");
    const cu_type *type = cu_basic(u, CU_INT);
    const cu_token *named = cu_now(u);
    cu_name *name =
        named->kind == TK_NAME && named->name->keyword == KW_NONE ? cu_take(u)->name : NULL;
    if (!cu_accept(u, '{')) return type;
    if (name != NULL) cu_declare(u, SYM_TYPE, name, named)->type = type;
    for (int64_t value = 0; !cu_accept(u, '}'); value++) {
        const cu_token *t = cu_take(u);
        if (t->kind != TK_NAME) cu_fail(u, t, "a constant's name is expected");
        if (cu_accept(u, '='))
            value = (int64_t)cu_parse_constant(u, "a constant of an enumeration");
        cu_symbol *s = cu_declare(u, SYM_CONSTANT, t->name, t);
        s->type = type;
        s->bits = (uint64_t)value;
        if (!cu_accept(u, ',') && !cu_sees(u, '}')) cu_expect(u, '}', "behind the constants");
    }
    return type;
}

/* ---- initial values ---- */

static cu_expr *parse_list(cuda_unit *u, const cu_type **type);

static cu_expr *parse_item(cuda_unit *u, const cu_type *type, const char *what) {
    return cu_parse_initializer(u, &type, what);
}

/* Items of an array or struct; `braced`: between braces of their own. */
static cu_expr *parse_items(cuda_unit *u, const cu_type **type, bool braced) {
    const cu_type *t = *type;
    cu_expr *e = cu_new_expr(u, EX_LIST, cu_now(u), t->plain);
    uint64_t most = t->kind == CU_ARRAY ? t->count > 0 ? t->count : UINT32_MAX : UINT32_MAX;
    uint32_t capacity = 0;
    const cu_field *f = t->plain->fields;
    while (!cu_sees(u, '}') && e->count < most && (f != NULL || t->kind == CU_ARRAY)) {
        if (cu_sees(u, '.') || cu_sees(u, '[')) cu_not_yet(u, cu_now(u), "initial values by name");
        if (e->count == capacity) {
            cu_expr **grown = CU_ARRAY(u, cu_expr *, capacity = capacity * 2 + 8);
            if (e->count > 0) memcpy(grown, e->list, sizeof *grown * e->count);
            e->list = grown;
        }
        const cu_type *of = f != NULL ? f->type : t->of;
        bool nested = (of->kind == CU_ARRAY || of->kind == CU_STRUCT) && !cu_sees(u, '{');
        if (nested && of->kind == CU_ARRAY)
            e->list[e->count++] = parse_items(u, &of, false);
        else
            e->list[e->count++] = parse_item(u, of, "an initial value");
        if (f != NULL) f = f->next;
        if (!cu_accept(u, ',')) break;
        if (!braced && (e->count == most || (t->kind == CU_STRUCT && f == NULL))) {
            u->at--; /* the comma is the outer list's */
            break;
        }
    }
    if (t->kind == CU_ARRAY && t->count == 0) *type = cu_array_of(u, t->of, e->count, e->at);
    e->type = (*type)->plain;
    return e;
}

static cu_expr *parse_list(cuda_unit *u, const cu_type **type) {
    const cu_token *at = cu_now(u);
    cu_expect(u, '{', "in front of the initial values");
    cu_enter(u, at);
    cu_expr *e;
    if (cu_is_scalar(*type)) {
        e = cu_sees(u, '}') ? cu_cast(u, cu_constant(u, at, cu_basic(u, CU_INT), 0), *type)
                            : parse_item(u, *type, "an initial value");
        cu_accept(u, ',');
    } else {
        e = parse_items(u, type, true);
    }
    if (!cu_sees(u, '}'))
        cu_fail(u, cu_now(u), "more initial values than %s has", cu_type_text(u, *type));
    u->at++;
    cu_leave(u);
    return e;
}

cu_expr *cu_parse_initializer(cuda_unit *u, const cu_type **type, const char *what) {
    if (cu_sees(u, '{')) return parse_list(u, type);
    if ((*type)->kind == CU_ARRAY) cu_fail(u, cu_now(u), "%s of an array: { is expected", what);
    return cu_convert(u, cu_parse_assignment(u), *type, what);
}
