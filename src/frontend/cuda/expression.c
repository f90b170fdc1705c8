/* Expressions: precedence climbing; the tree comes out with types checked and conversions in it. */
#include "frontend/cuda/tree.h"

#include <string.h>

static cu_expr *parse_unary(cuda_unit *u);
static cu_expr *parse_conditional(cuda_unit *u);

static void need(cuda_unit *u, bool fine, const cu_expr *e, const char *what) {
    if (!fine) cu_fail(u, e->at, "%s of type %s", what, cu_type_text(u, e->type));
}

/* The value of an lvalue: one that is read. */
static cu_expr *value_of(cuda_unit *u, cu_expr *e) {
    if (e->type->kind == CU_VOID) return e;
    return cu_rvalue(u, e);
}

/* ---- names and literals ---- */

static cu_expr *number(cuda_unit *u, const cu_token *t) {
    uint64_t value;
    int kind;
    if (cu_read_integer(u, t, &value, &kind))
        return cu_constant(u, t, cu_basic(u, (cu_kind)kind), value);
    double d = cu_read_float(u, t, &kind);
    memcpy(&value, &d, sizeof value);
    return cu_constant(u, t, cu_basic(u, (cu_kind)kind), value);
}

static cu_expr *parse_string(cuda_unit *u, const cu_token *t) {
    strbuf text;
    strbuf_init_in(&text, &u->mem);
    for (const cu_token *s = t;; s = cu_take(u)) {
        size_t n;
        const char *part = cu_read_string(u, s, &n);
        strbuf_add(&text, part, n);
        if (cu_now(u)->kind != TK_STRING) break;
    }
    const cu_type *c = cu_qualified(u, cu_basic(u, CU_CHAR), true, false);
    cu_expr *e = cu_new_expr(u, EX_NULL, t, cu_pointer_to(u, c));
    e->text = strbuf_text(&text);
    return e;
}

static cu_expr *variable(cuda_unit *u, const cu_token *t, cu_variable *v) {
    if (v->type == NULL) cu_fail(u, t, "auto %s: its value uses it", v->name->text);
    cu_expr *e = cu_new_expr(u, EX_VARIABLE, t, v->type);
    e->variable = v;
    e->lvalue = true;
    if (v->init != NULL && v->init->kind == EX_CONSTANT && v->type->is_const &&
        cu_is_number(v->type))
        return cu_constant(u, t, v->type, v->init->bits);
    return e;
}

/* ---- calls ---- */

enum { MOST_ARGUMENTS = 256 };

static uint32_t parse_arguments(cuda_unit *u, cu_expr **args) {
    uint32_t n = 0;
    if (cu_accept(u, ')')) return 0;
    do {
        if (n == MOST_ARGUMENTS)
            cu_fail(u, cu_now(u), "a call with more than %d arguments", MOST_ARGUMENTS);
        args[n++] = cu_parse_assignment(u);
    } while (cu_accept(u, ','));
    cu_expect(u, ')', "behind the arguments");
    return n;
}

static bool takes(const cuda_unit *u, const cu_function *f, cu_expr *const *args, uint32_t n,
                  bool exactly) {
    if (f->nparameters != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        const cu_type *to = f->parameters[i]->type;
        cu_expr *a = cu_rvalue((cuda_unit *)(uintptr_t)u, args[i]);
        if (exactly ? !cu_same(a->type, to) && !(cu_is_pointer(to) && cu_converts(a, to))
                    : !cu_converts(a, to))
            return false;
    }
    return true;
}

/* The function that the arguments fit: without conversions, else the only one that they convert to. */
static cu_function *choose(cuda_unit *u, const cu_symbol *s, const cu_token *at, cu_expr **args,
                           uint32_t n) {
    if (s->overload == NULL) return s->function;
    for (int exactly = 1; exactly >= 0; exactly--) {
        cu_function *found = NULL;
        for (const cu_symbol *o = s; o != NULL; o = o->overload) {
            if (!takes(u, o->function, args, n, exactly)) continue;
            if (found != NULL)
                cu_fail(u, at, "the call of %s fits several functions of that name", s->name->text);
            found = o->function;
        }
        if (found != NULL) return found;
    }
    cu_fail(u, at, "no function %s takes these arguments", s->name->text);
}

static cu_expr *call_function(cuda_unit *u, const cu_symbol *s, const cu_token *at, cu_expr **args,
                              uint32_t n) {
    cu_function *f = choose(u, s, at, args, n);
    if (f->is_kernel) cu_not_yet(u, at, "a kernel that launches kernels (dynamic parallelism)");
    if (n != f->nparameters)
        cu_fail(u, at, "%s takes %u arguments, and %u are given", f->name->text, f->nparameters, n);
    cu_expr *e = cu_new_expr(u, EX_CALL, at, f->result->plain);
    e->function = f;
    e->list = CU_ARRAY(u, cu_expr *, n);
    e->count = n;
    for (uint32_t i = 0; i < n; i++) {
        const char *what = arena_printf(&u->mem, "argument %u of %s", i + 1, f->name->text);
        e->list[i] = cu_convert(u, args[i], f->parameters[i]->type, what);
    }
    return e;
}

static cu_expr *parse_call(cuda_unit *u, const cu_token *t, const cu_symbol *s) {
    uint32_t number = 0;
    bool builtin = s == NULL;
    if (builtin && !cu_find_builtin(u, t->name, &number)) {
        if (strncmp(t->name->text, "std", 3) == 0) cu_not_yet(u, t, "names of std::");
        cu_fail(u, t, "%s is not declared: there is no function of that name", t->name->text);
    }
    cu_expr **args = CU_ARRAY(u, cu_expr *, MOST_ARGUMENTS);
    uint32_t n = parse_arguments(u, args);
    if (builtin) return cu_call_builtin(u, number, t, args, n);
    return call_function(u, s, t, args, n);
}

static cu_expr *parse_name(cuda_unit *u) {
    cu_expr *e = cu_parse_coordinate(u);
    if (e != NULL) return e;
    const cu_token *t = cu_take(u);
    if (t->name->keyword != KW_NONE)
        cu_fail(u, t, "an expression is expected, not %s", t->name->text);
    cu_symbol *s = t->name->symbol;
    if (cu_accept(u, '(')) {
        if (s != NULL && s->kind != SYM_FUNCTION) cu_fail(u, t, "%s is no function", t->name->text);
        return parse_call(u, t, s);
    }
    if (s == NULL) cu_fail(u, t, "%s is not declared", t->name->text);
    if (s->kind == SYM_CONSTANT) return cu_constant(u, t, s->type, s->bits);
    if (s->kind == SYM_FUNCTION) cu_not_yet(u, t, "pointers to functions");
    return variable(u, t, s->variable);
}

/* T(x), T{x}, static_cast<T>(x) */
static cu_expr *parse_cast_call(cuda_unit *u) {
    const cu_token *t = cu_now(u);
    bool named = cu_accept_word(u, KW_STATIC_CAST) || cu_accept_word(u, KW_REINTERPRET_CAST) ||
                 cu_accept_word(u, KW_CONST_CAST);
    if (named) cu_expect(u, '<', "behind the cast");
    const cu_type *to = cu_parse_type_name(u);
    if (named) cu_expect(u, '>', "behind the cast's type");
    if (cu_sees(u, '{')) {
        const cu_type *type = to;
        return cu_parse_initializer(u, &type, "a value");
    }
    cu_expect(u, '(', "behind the type");
    cu_expr *e =
        cu_sees(u, ')') ? cu_constant(u, t, cu_basic(u, CU_INT), 0) : cu_parse_expression(u);
    cu_expect(u, ')', "behind the value");
    return to->kind == CU_BOOL ? cu_truth(u, e) : cu_cast(u, value_of(u, e), to);
}

static cu_expr *parse_primary(cuda_unit *u) {
    const cu_token *t = cu_now(u);
    if (t->kind == TK_NUMBER) return number(u, cu_take(u));
    if (t->kind == TK_CHAR)
        return cu_constant(u, t, cu_basic(u, CU_CHAR), (uint64_t)cu_read_char(u, cu_take(u)));
    if (t->kind == TK_STRING) return parse_string(u, cu_take(u));
    if (cu_accept(u, '(')) {
        cu_expr *e = cu_parse_expression(u);
        cu_expect(u, ')', "behind the expression");
        return e;
    }
    if (cu_accept_word(u, KW_TRUE)) return cu_constant(u, t, cu_basic(u, CU_BOOL), 1);
    if (cu_accept_word(u, KW_FALSE)) return cu_constant(u, t, cu_basic(u, CU_BOOL), 0);
    if (cu_accept_word(u, KW_NULLPTR))
        return cu_new_expr(u, EX_NULL, t, cu_pointer_to(u, cu_basic(u, CU_VOID)));
    if (cu_sees_word(u, KW_STATIC_CAST) || cu_sees_word(u, KW_REINTERPRET_CAST) ||
        cu_sees_word(u, KW_CONST_CAST) || cu_begins_type(u))
        return parse_cast_call(u);
    if (t->kind == TK_NAME) return parse_name(u);
    if (t->kind == TK_END) cu_fail(u, t, "an expression is expected: the text ends");
    cu_fail(u, t, "an expression is expected, not '%.*s'", (int)t->length, t->text);
}

/* ---- pointers and members ---- */

static cu_expr *moved(cuda_unit *u, const cu_token *at, cu_expr *p, cu_expr *by, uint32_t op) {
    if (p->type->of->size == 0 && p->type->of->plain->size == 0)
        cu_fail(u, at, "arithmetic with a %s: the size of what it points to is not known",
                cu_type_text(u, p->type));
    cu_expr *e = cu_new_expr(u, EX_MOVE, at, p->type->plain);
    e->op = op;
    e->a = p;
    /* unsigned int counts up to 2^32, int from below 0 */
    e->b = cu_cast(u, by, cu_basic(u, CU_LONG));
    return e;
}

static cu_expr *deref(cuda_unit *u, const cu_token *at, cu_expr *p) {
    p = cu_rvalue(u, p);
    need(u, cu_is_pointer(p->type), p, "* in front of a value");
    cu_expr *e = cu_new_expr(u, EX_DEREF, at, p->type->of);
    e->a = p;
    e->lvalue = true;
    return e;
}

static cu_expr *indexed(cuda_unit *u, const cu_token *at, cu_expr *p, cu_expr *i) {
    p = cu_rvalue(u, p);
    i = cu_rvalue(u, i);
    if (cu_is_integer(p->type) && cu_is_pointer(i->type)) {
        cu_expr *swap = p;
        p = i;
        i = swap;
    }
    need(u, cu_is_pointer(p->type), p, "an index [] behind a value");
    need(u, cu_is_integer(i->type), i, "an index");
    return deref(u, at, moved(u, at, p, i, '+'));
}

static cu_expr *member(cuda_unit *u, cu_expr *of, bool arrow) {
    const cu_token *t = cu_take(u);
    if (arrow) of = deref(u, of->at, of);
    if (of->type->kind != CU_STRUCT)
        cu_fail(u, t, "a value of type %s has no members", cu_type_text(u, of->type));
    const cu_field *f = t->kind == TK_NAME ? cu_find_field(of->type, t->name) : NULL;
    if (f == NULL)
        cu_fail(u, t, "%s has no member %.*s", cu_type_text(u, of->type), (int)t->length, t->text);
    cu_expr *e = cu_new_expr(u, EX_MEMBER, t,
                             cu_qualified(u, f->type, of->type->is_const, of->type->is_volatile));
    e->a = of;
    e->field = f;
    e->lvalue = of->lvalue;
    return e;
}

static void need_place(cuda_unit *u, const cu_expr *e, const char *what) {
    if (!e->lvalue) cu_fail(u, e->at, "%s: this is a value, not a variable or an element", what);
    if (e->type->is_const) cu_fail(u, e->at, "%s: it is const", what);
}

static cu_expr *step(cuda_unit *u, const cu_token *at, cu_expr *a, bool post) {
    need_place(u, a, "++ and --");
    need(u, cu_is_scalar(a->type), a, "++ or -- of a value");
    cu_expr *e = cu_new_expr(u, EX_STEP, at, a->type->plain);
    e->op = at->punct & 0xff;
    e->post = post;
    e->a = a;
    return e;
}

static cu_expr *parse_postfix(cuda_unit *u) {
    cu_expr *e = parse_primary(u);
    for (;;) {
        const cu_token *t = cu_now(u);
        if (cu_accept(u, '[')) {
            cu_expr *i = cu_parse_expression(u);
            cu_expect(u, ']', "behind the index");
            e = indexed(u, t, e, i);
        } else if (cu_accept(u, '.')) {
            e = member(u, e, false);
        } else if (cu_accept(u, CU_P2('-', '>'))) {
            e = member(u, e, true);
        } else if (cu_accept(u, CU_P2('+', '+')) || cu_accept(u, CU_P2('-', '-'))) {
            e = step(u, t, e, true);
        } else {
            return e;
        }
    }
}

/* ---- unary ---- */

static cu_expr *address_of(cuda_unit *u, const cu_token *at, cu_expr *a) {
    if (!a->lvalue)
        cu_fail(u, at, "& in front of a value: only variables and elements have an address");
    for (cu_expr *of = a; of != NULL; of = of->kind == EX_MEMBER ? of->a : NULL)
        if (of->kind == EX_VARIABLE) of->variable->addressed = true;
    cu_expr *e = cu_new_expr(u, EX_ADDRESS, at, cu_pointer_to(u, a->type));
    e->a = a;
    return e;
}

static cu_expr *sign(cuda_unit *u, const cu_token *t, cu_expr *a) {
    uint32_t op = t->punct;
    a = op == '!' ? cu_truth(u, a) : cu_promoted(u, a);
    bool fine = op == '!' || (op == '~' ? cu_is_integer(a->type) : cu_is_number(a->type));
    if (!fine) cu_fail(u, t, "%c of %s", (char)op, cu_type_text(u, a->type));
    if (op == '+') return a;
    cu_expr *e = cu_new_expr(u, EX_UNARY, t, a->type->plain);
    e->op = op;
    e->a = a;
    return cu_folded(u, e);
}

static cu_expr *parse_sizeof(cuda_unit *u, const cu_token *t) {
    const cu_type *type;
    if (cu_sees(u, '(')) {
        u->at++;
        bool is_type = cu_begins_type(u);
        u->at -= !is_type;
        type = is_type ? cu_parse_type_name(u) : parse_unary(u)->type;
        if (is_type) cu_expect(u, ')', "behind the type");
    } else {
        type = parse_unary(u)->type;
    }
    if (type->plain->size == 0) cu_fail(u, t, "sizeof of %s", cu_type_text(u, type));
    return cu_constant(u, t, cu_basic(u, CU_ULONG), type->plain->size);
}

/* (type)value, where the parenthesis is open. */
static cu_expr *parse_cast(cuda_unit *u) {
    const cu_type *to = cu_parse_type_name(u);
    cu_expect(u, ')', "behind the type of a cast");
    if (cu_sees(u, '{')) return cu_parse_initializer(u, &to, "a value");
    cu_expr *e = parse_unary(u);
    if (to->kind == CU_VOID) return cu_cast(u, value_of(u, e), to);
    return to->kind == CU_BOOL ? cu_truth(u, e) : cu_cast(u, value_of(u, e), to);
}

static cu_expr *parse_unary_inside(cuda_unit *u) {
    const cu_token *t = cu_now(u);
    if (cu_accept(u, CU_P2('+', '+')) || cu_accept(u, CU_P2('-', '-')))
        return step(u, t, parse_unary(u), false);
    if (cu_accept(u, '-') || cu_accept(u, '+') || cu_accept(u, '!') || cu_accept(u, '~'))
        return sign(u, t, parse_unary(u));
    if (cu_accept(u, '*')) return deref(u, t, parse_unary(u));
    if (cu_accept(u, '&')) return address_of(u, t, parse_unary(u));
    if (cu_accept_word(u, KW_SIZEOF)) return parse_sizeof(u, t);
    if (cu_sees(u, '(')) {
        u->at++;
        if (cu_begins_type(u)) return parse_cast(u);
        u->at--;
    }
    return parse_postfix(u);
}

static cu_expr *parse_unary(cuda_unit *u) {
    cu_enter(u, cu_now(u));
    cu_expr *e = parse_unary_inside(u);
    cu_leave(u);
    return e;
}

/* ---- binary ---- */

static int level_of(const cu_token *t) {
    if (t->kind != TK_PUNCT) return 0;
    switch (t->punct) {
    case CU_P2('|', '|'): return 1;
    case CU_P2('&', '&'): return 2;
    case '|': return 3;
    case '^': return 4;
    case '&': return 5;
    case CU_P2('=', '='):
    case CU_P2('!', '='): return 6;
    case '<':
    case '>':
    case CU_P2('<', '='):
    case CU_P2('>', '='): return 7;
    case CU_P2('<', '<'):
    case CU_P2('>', '>'): return 8;
    case '+':
    case '-': return 9;
    case '*':
    case '/':
    case '%': return 10;
    default: return 0;
    }
}

static _Noreturn void no_operator(cuda_unit *u, const cu_token *t, const cu_expr *a,
                                  const cu_expr *b) {
    cu_fail(u, t, "%.*s of %s and %s", (int)t->length, t->text, cu_type_text(u, a->type),
            cu_type_text(u, b->type));
}

/* Pointers: + and - of integers, differences, comparisons. */
static cu_expr *pointers(cuda_unit *u, const cu_token *t, cu_expr *a, cu_expr *b) {
    bool both = cu_is_pointer(a->type) && cu_is_pointer(b->type);
    int level = level_of(t);
    if (t->punct == '+' && cu_is_integer(a->type)) return moved(u, t, b, a, '+');
    if (level == 9 && cu_is_integer(b->type)) return moved(u, t, a, b, t->punct);
    if (t->punct == '-' && both && cu_same(a->type->of, b->type->of)) {
        cu_expr *e = cu_new_expr(u, EX_DISTANCE, t, cu_basic(u, CU_LONG));
        e->a = a;
        e->b = b;
        return e;
    }
    bool null = cu_converts(a, b->type) || cu_converts(b, a->type);
    if ((level != 6 && level != 7) || !null) no_operator(u, t, a, b);
    cu_expr *e = cu_new_expr(u, EX_BINARY, t, cu_basic(u, CU_BOOL));
    e->op = t->punct;
    e->a = cu_is_pointer(a->type) ? a : cu_cast(u, a, b->type);
    e->b = cu_is_pointer(b->type) ? b : cu_cast(u, b, a->type);
    return e;
}

static cu_expr *arithmetic(cuda_unit *u, const cu_token *t, cu_expr *a, cu_expr *b) {
    int level = level_of(t);
    a = cu_rvalue(u, a);
    b = cu_rvalue(u, b);
    if (cu_is_pointer(a->type) || cu_is_pointer(b->type)) return pointers(u, t, a, b);
    bool integers = cu_is_integer(a->type) && cu_is_integer(b->type);
    bool needs_integers = t->punct == '%' || level == 8 || (level >= 3 && level <= 5);
    if (!cu_is_number(a->type) || !cu_is_number(b->type) || (needs_integers && !integers))
        no_operator(u, t, a, b);
    const cu_type *common = level == 8 ? cu_promoted(u, a)->type : cu_common(u, a->type, b->type);
    cu_expr *e = cu_new_expr(u, EX_BINARY, t,
                             level == 6 || level == 7 ? cu_basic(u, CU_BOOL) : common->plain);
    e->op = t->punct;
    e->a = cu_cast(u, a, common);
    e->b = cu_cast(u, b, common);
    return cu_folded(u, e);
}

static cu_expr *logical(cuda_unit *u, const cu_token *t, cu_expr *a, cu_expr *b) {
    cu_expr *e = cu_new_expr(u, EX_LOGICAL, t, cu_basic(u, CU_BOOL));
    e->op = t->punct;
    e->a = cu_truth(u, a);
    e->b = cu_truth(u, b);
    return cu_folded(u, e);
}

static cu_expr *parse_binary(cuda_unit *u, int least) {
    cu_expr *a = parse_unary(u);
    for (;;) {
        const cu_token *t = cu_now(u);
        int level = level_of(t);
        if (level < least || level == 0) return a;
        u->at++;
        cu_expr *b = parse_binary(u, level + 1);
        a = level <= 2 ? logical(u, t, a, b) : arithmetic(u, t, a, b);
    }
}

static cu_expr *choice(cuda_unit *u, const cu_token *t, cu_expr *cond, cu_expr *a, cu_expr *b) {
    a = value_of(u, a);
    b = value_of(u, b);
    const cu_type *type = a->type;
    if (cu_is_number(a->type) && cu_is_number(b->type)) {
        type = cu_common(u, a->type, b->type);
        if (a->type->plain == b->type->plain) type = a->type;
    } else if (cu_is_pointer(b->type) && cu_converts(a, b->type)) {
        type = b->type;
    } else if (!cu_converts(b, a->type)) {
        cu_fail(u, t, "?: with %s and %s", cu_type_text(u, a->type), cu_type_text(u, b->type));
    }
    cu_expr *e = cu_new_expr(u, EX_CONDITION, t, type->plain);
    e->a = cu_truth(u, cond);
    e->b = type->kind == CU_VOID ? a : cu_cast(u, a, type);
    e->c = type->kind == CU_VOID ? b : cu_cast(u, b, type);
    return cu_folded(u, e);
}

static cu_expr *parse_conditional(cuda_unit *u) {
    cu_expr *cond = parse_binary(u, 1);
    const cu_token *t = cu_now(u);
    if (!cu_accept(u, '?')) return cond;
    cu_expr *a = cu_parse_expression(u);
    cu_expect(u, ':', "behind the first value of ?");
    cu_enter(u, t);
    cu_expr *b = cu_parse_assignment(u);
    cu_leave(u);
    return choice(u, t, cond, a, b);
}

/* ---- assignments ---- */

/* The operator of +=, <<= and their kin; 0: it is none, or =. */
static uint32_t assigned_by(const cu_token *t) {
    bool compound =
        t->kind == TK_PUNCT && t->length > 1 && t->text[t->length - 1] == '=' && level_of(t) == 0;
    if (!compound) return 0;
    return t->length == 3 ? CU_P2(t->text[0], t->text[1]) : (uint32_t)(unsigned char)t->text[0];
}

static cu_expr *compound(cuda_unit *u, const cu_token *t, uint32_t op, cu_expr *a, cu_expr *b) {
    b = cu_rvalue(u, b);
    cu_token as = *t; /* the operator alone, for its level and its errors */
    as.punct = op;
    as.length--;
    cu_expr *e = cu_new_expr(u, EX_ASSIGN, t, a->type->plain);
    e->op = op;
    e->a = a;
    if (cu_is_pointer(a->type)) {
        if (level_of(&as) != 9 || !cu_is_integer(b->type)) no_operator(u, t, a, b);
        e->b = cu_cast(u, b, cu_basic(u, CU_LONG));
        return e;
    }
    cu_expr *value = cu_new_expr(u, EX_VARIABLE, t, a->type->plain);
    e->compute = level_of(&as) == 8 ? cu_promoted(u, value)->type : cu_common(u, a->type, b->type);
    e->b = cu_cast(u, b, e->compute);
    return e;
}

static void check_compound(cuda_unit *u, const cu_token *t, uint32_t op, const cu_expr *a,
                           const cu_expr *b) {
    bool integers = cu_is_integer(a->type) && cu_is_integer(b->type);
    bool needs = strchr("%&|^<>", (int)(op & 0xff)) != NULL;
    if (!cu_is_number(a->type) || !cu_is_number(b->type) || (needs && !integers))
        no_operator(u, t, a, b);
}

cu_expr *cu_parse_assignment(cuda_unit *u) {
    cu_enter(u, cu_now(u));
    cu_expr *a = parse_conditional(u);
    const cu_token *t = cu_now(u);
    uint32_t op = assigned_by(t);
    if (op != 0 || cu_is(t, '=')) {
        u->at++;
        need_place(u, a, "an assignment");
        if (a->type->kind == CU_ARRAY)
            cu_fail(u, t, "an array cannot be assigned: assign its elements");
        cu_expr *b = cu_sees(u, '{')
                         ? cu_parse_initializer(u, &(const cu_type *){a->type}, "an assignment")
                         : cu_parse_assignment(u);
        if (op != 0) {
            if (!cu_is_pointer(a->type)) check_compound(u, t, op, a, cu_rvalue(u, b));
            a = compound(u, t, op, a, b);
        } else {
            cu_expr *e = cu_new_expr(u, EX_ASSIGN, t, a->type->plain);
            e->a = a;
            e->b = b->kind == EX_LIST ? b : cu_convert(u, b, a->type, "an assignment");
            a = e;
        }
    }
    cu_leave(u);
    return a;
}

cu_expr *cu_parse_expression(cuda_unit *u) {
    cu_expr *a = cu_parse_assignment(u);
    while (cu_sees(u, ',')) {
        cu_expr *e = cu_new_expr(u, EX_COMMA, cu_take(u), NULL);
        e->a = a;
        e->b = value_of(u, cu_parse_assignment(u));
        e->type = e->b->type->plain;
        a = e;
    }
    return a;
}

uint64_t cu_parse_constant(cuda_unit *u, const char *what) {
    cu_expr *e = cu_rvalue(u, parse_conditional(u));
    if (e->kind != EX_CONSTANT || !cu_is_integer(e->type))
        cu_fail(u, e->at, "%s: an integer constant is expected", what);
    return e->bits;
}
