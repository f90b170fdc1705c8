/* Variables and functions. */
#include "frontend/cuda/declare.h"

/* ---- variables ---- */

static cu_variable *new_variable(cuda_unit *u, const declarator *d, const cu_type *type,
                                 cu_storage storage) {
    cu_variable *v = CU_NEW(u, cu_variable);
    *v = (cu_variable){.name = d->name, .type = type, .at = d->at, .storage = storage};
    return v;
}

static void check_shared(cuda_unit *u, const specifiers *s, declarator *d, cu_variable *v) {
    v->storage = CU_SHARED;
    v->addressed = true;
    if (s->words & SP_EXTERN) {
        if (!d->no_size)
            cu_fail(u, d->at, "extern __shared__ %s: its size is the launch's, write []",
                    d->name->text);
        v->storage = CU_DYNAMIC_SHARED;
    } else if (d->no_size) {
        cu_fail(u, d->at, "__shared__ %s: an array's size is missing", d->name->text);
    }
    if (cu_sees(u, '=') || cu_sees(u, '{'))
        cu_fail(u, cu_now(u), "a __shared__ variable has no initial value");
}

static void parse_init(cuda_unit *u, const specifiers *s, declarator *d, cu_variable *v) {
    bool equals = cu_accept(u, '='), braces = cu_sees(u, '{'), parens = !equals && cu_sees(u, '(');
    if (parens) u->at++;
    if (s->words & SP_AUTO) {
        if (!equals) cu_fail(u, d->at, "auto %s: a value is expected", d->name->text);
        cu_expr *e = cu_rvalue(u, cu_parse_assignment(u));
        v->type = cu_qualified(u, e->type, s->is_const, s->is_volatile);
        v->init = cu_cast(u, e, v->type);
    } else if (parens && v->type->kind == CU_STRUCT) {
        cu_not_yet(u, d->at, "constructors");
    } else if (equals || braces || parens) {
        if (cu_now(u)->kind == TK_STRING && v->type->kind == CU_ARRAY)
            cu_not_yet(u, cu_now(u), "arrays of characters from a string");
        v->init = cu_parse_initializer(u, &v->type, arena_printf(&u->mem, "%s", d->name->text));
    }
    if (parens) cu_expect(u, ')', "behind the initial value");
}

static cu_variable *declare_variable(cuda_unit *u, const specifiers *s, declarator *d,
                                     bool outside) {
    cu_variable *v = new_variable(u, d, d->type, CU_AUTO);
    if (s->words & SP_SHARED) {
        check_shared(u, s, d, v);
    } else if ((s->words & SP_STATIC) && !outside) {
        cu_not_yet(u, d->at, "static variables of functions");
    }
    cu_symbol *symbol = cu_declare(u, SYM_VARIABLE, d->name, d->at);
    symbol->variable = v;
    if (s->words & SP_AUTO) v->type = NULL; /* until its value is read */
    if (v->storage == CU_AUTO) parse_init(u, s, d, v);
    bool sized = v->type != NULL && (v->type->plain->size > 0 || v->storage == CU_DYNAMIC_SHARED);
    if (!sized) cu_fail(u, d->at, "variable %s: the size of its type is not known", d->name->text);
    if (v->type->kind == CU_ARRAY) v->addressed = true;
    bool constant = v->init != NULL && v->init->kind == EX_CONSTANT && v->type->is_const;
    if (outside && !constant && v->storage != CU_DYNAMIC_SHARED)
        cu_not_yet(u, d->at,
                   "variables outside of functions (but for const numbers, and extern __shared__)");
    return v;
}

static void declare_type(cuda_unit *u, declarator *d) {
    cu_symbol *s = cu_in_scope(u, d->name);
    if (s != NULL && s->kind == SYM_TYPE && cu_same(s->type, d->type))
        return; /* typedef struct S S */
    cu_declare(u, SYM_TYPE, d->name, d->at)->type = d->type;
}

cu_stmt *cu_parse_declaration(cuda_unit *u) {
    cu_stmt *first = NULL, **last = &first;
    specifiers s = cu_parse_specifiers(u);
    if (s.words & SP_CONSTANT)
        cu_fail(u, s.at, "__constant__ variables stand outside of functions");
    while (!cu_accept(u, ';')) {
        if (s.type == NULL) s.type = cu_basic(u, CU_INT); /* auto: parse_init gives the type */
        declarator d = cu_parse_declarator(u, s.type);
        if (d.name == NULL) cu_fail(u, d.at, "a variable's name is expected");
        if (d.function && !(cu_is(cu_ahead(u, 1), ')'))) d.function = false;
        if (d.function) cu_not_yet(u, d.at, "functions declared inside of functions");
        if (s.words & SP_TYPEDEF) {
            declare_type(u, &d);
        } else {
            cu_stmt *st = CU_NEW(u, cu_stmt);
            *st = (cu_stmt){.kind = ST_DECLARE, .at = d.at};
            st->variable = declare_variable(u, &s, &d, false);
            *last = st;
            last = &st->next;
        }
        if (!cu_accept(u, ',') && !cu_sees(u, ';')) cu_expect(u, ';', "behind the declaration");
    }
    if (first == NULL) {
        first = CU_NEW(u, cu_stmt);
        *first = (cu_stmt){.kind = ST_EMPTY, .at = s.at};
    }
    return first;
}

/* ---- functions ---- */

static void add_parameter(cuda_unit *u, cu_function *f) {
    specifiers s = cu_parse_specifiers(u);
    if (s.type == NULL) cu_fail(u, s.at, "auto as a parameter's type");
    declarator d = cu_parse_declarator(u, s.type);
    if (d.function) cu_not_yet(u, d.at, "pointers to functions");
    if (d.type->kind == CU_ARRAY) d.type = cu_pointer_to(u, d.type->of);
    if (cu_sees(u, '=')) cu_not_yet(u, cu_now(u), "default arguments");
    if (d.type->plain->size == 0)
        cu_fail(u, d.at, "a parameter of type %s", cu_type_text(u, d.type));
    f->parameters[f->nparameters++] = new_variable(u, &d, d.type, CU_PARAMETER);
}

static void parse_parameters(cuda_unit *u, cu_function *f) {
    enum { MOST = 255 };
    f->parameters = CU_ARRAY(u, cu_variable *, MOST);
    cu_expect(u, '(', "behind the function's name");
    bool none = cu_sees_word(u, KW_VOID) && cu_is(cu_ahead(u, 1), ')');
    u->at += none;
    if (cu_accept(u, ')')) return;
    do {
        if (f->nparameters == MOST) cu_fail(u, cu_now(u), "more than %d parameters", MOST);
        if (cu_sees(u, CU_P3('.', '.', '.')))
            cu_not_yet(u, cu_now(u), "functions of any number of arguments");
        add_parameter(u, f);
    } while (cu_accept(u, ','));
    cu_expect(u, ')', "behind the parameters");
}

static bool same_parameters(const cu_function *a, const cu_function *b) {
    bool same = a->nparameters == b->nparameters;
    for (uint32_t i = 0; same && i < a->nparameters; i++)
        same = cu_same(a->parameters[i]->type, b->parameters[i]->type);
    return same;
}

/* The function of that name and those parameters: one that is declared before, or this one. */
static cu_function *known_function(cuda_unit *u, cu_function *f) {
    cu_name *name = (cu_name *)(uintptr_t)f->name;
    cu_symbol *s = cu_in_scope(u, name);
    if (s != NULL && s->kind != SYM_FUNCTION)
        cu_fail(u, f->at, "%s is declared already, and is no function", name->text);
    for (cu_symbol *o = s; o != NULL; o = o->overload)
        if (same_parameters(o->function, f)) {
            if (!cu_same(o->function->result, f->result))
                cu_fail(u, f->at, "%s is declared with another result", name->text);
            if (o->function->body == NULL) o->function->parameters = f->parameters;
            return o->function;
        }
    if (s == NULL) {
        cu_declare(u, SYM_FUNCTION, name, f->at)->function = f;
    } else {
        cu_symbol *more = CU_NEW(u, cu_symbol);
        *more = (cu_symbol){.kind = SYM_FUNCTION, .name = name, .overload = s->overload};
        more->function = f;
        s->overload = more;
    }
    *u->last_function = f;
    u->last_function = &f->next;
    return f;
}

static void parse_body(cuda_unit *u, cu_function *f) {
    if (f->body != NULL) cu_fail(u, f->at, "%s is defined already", f->name->text);
    u->inside = f;
    u->loops = u->switches = 0;
    cu_begin_scope(u);
    for (uint32_t i = 0; i < f->nparameters; i++) {
        cu_variable *v = f->parameters[i];
        if (v->name == NULL) continue;
        cu_declare(u, SYM_VARIABLE, (cu_name *)(uintptr_t)v->name, v->at)->variable = v;
    }
    f->body = cu_parse_block(u);
    cu_end_scope(u);
    u->inside = NULL;
}

static void parse_function(cuda_unit *u, const specifiers *s, const declarator *d) {
    cu_function *f = CU_NEW(u, cu_function);
    *f = (cu_function){
        .name = d->name, .at = d->at, .result = d->type->plain, .is_kernel = s->words & SP_GLOBAL};
    parse_parameters(u, f);
    if (f->is_kernel && f->result->kind != CU_VOID)
        cu_fail(u, f->at, "kernel %s: a __global__ function gives void", f->name->text);
    f = known_function(u, f);
    if (cu_accept(u, ';')) return;
    if (cu_accept_word(u, KW_CONST)) cu_not_yet(u, d->at, "functions as members");
    if (!cu_sees(u, '{')) cu_expect(u, '{', "in front of the function's body");
    parse_body(u, f);
}

void cu_parse_static_assert(cuda_unit *u) {
    const cu_token *at = cu_take(u);
    cu_expect(u, '(', "behind static_assert");
    bool holds = cu_parse_constant(u, "static_assert") != 0;
    const cu_token *text = cu_accept(u, ',') ? cu_take(u) : NULL;
    cu_expect(u, ')', "behind static_assert");
    if (!holds && text != NULL)
        cu_fail(u, at, "static_assert fails: %.*s", (int)text->length, text->text);
    if (!holds) cu_fail(u, at, "static_assert fails");
}

static void parse_outer(cuda_unit *u) {
    if (cu_accept(u, ';')) return;
    if (cu_sees_word(u, KW_EXTERN) && cu_ahead(u, 1)->kind == TK_STRING) {
        u->at += 2; /* extern "C" */
        if (!cu_accept(u, '{')) return;
        while (!cu_accept(u, '}')) {
            if (cu_now(u)->kind == TK_END) cu_fail(u, cu_now(u), "extern \"C\": } is missing");
            parse_outer(u);
        }
        return;
    }
    if (cu_sees_word(u, KW_STATIC_ASSERT)) {
        cu_parse_static_assert(u);
        return;
    }
    cu_refuse(u);
    specifiers s = cu_parse_specifiers(u);
    while (!cu_accept(u, ';')) {
        declarator d = cu_parse_declarator(u, s.type != NULL ? s.type : cu_basic(u, CU_INT));
        if (d.name == NULL) cu_fail(u, d.at, "a name is expected");
        if (d.function) {
            if (s.type == NULL) cu_not_yet(u, d.at, "auto as a function's result");
            parse_function(u, &s, &d);
            return;
        }
        if (s.words & SP_TYPEDEF)
            declare_type(u, &d);
        else
            declare_variable(u, &s, &d, true);
        if (!cu_accept(u, ',') && !cu_sees(u, ';')) cu_expect(u, ';', "behind the declaration");
    }
}

void cu_parse_unit(cuda_unit *u) {
    u->last_function = &u->functions;
    cu_begin_scope(u);
    while (cu_now(u)->kind != TK_END) parse_outer(u);
}
