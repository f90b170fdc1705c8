/* What declarations begin with: specifiers, types, declarators. */
#include "frontend/cuda/declare.h"

/* ---- specifiers ---- */

static const struct {
    cu_keyword word;
    uint32_t bit;
} specifier_words[] = {{KW_TYPEDEF, SP_TYPEDEF},   {KW_STATIC, SP_STATIC},
                       {KW_EXTERN, SP_EXTERN},     {KW_INLINE, 0},
                       {KW_INLINE_OLD, 0},         {KW_INLINE_SHORT, 0},
                       {KW_REGISTER, 0},           {KW_CONSTEXPR, SP_CONSTEXPR},
                       {KW_GLOBAL, SP_GLOBAL},     {KW_DEVICE, SP_DEVICE},
                       {KW_HOST, SP_HOST},         {KW_FORCEINLINE, 0},
                       {KW_NOINLINE, 0},           {KW_SHARED, SP_SHARED},
                       {KW_CONSTANT, SP_CONSTANT}, {KW_MANAGED, SP_DEVICE},
                       {KW_RESTRICT, 0},           {KW_RESTRICT_SHORT, 0}};

bool cu_take_specifier(cuda_unit *u, specifiers *s) {
    const cu_token *t = cu_now(u);
    if (t->kind != TK_NAME) return false;
    for (size_t i = 0; i < sizeof specifier_words / sizeof *specifier_words; i++)
        if (t->name->keyword == specifier_words[i].word) {
            s->words |= specifier_words[i].bit;
            u->at++;
            return true;
        }
    if (cu_accept_word(u, KW_CONST)) return s->is_const = true;
    if (cu_accept_word(u, KW_VOLATILE)) return s->is_volatile = true;
    if (cu_accept_word(u, KW_LAUNCH_BOUNDS)) {
        cu_expect(u, '(', "behind __launch_bounds__");
        do cu_parse_constant(u, "__launch_bounds__");
        while (cu_accept(u, ','));
        cu_expect(u, ')', "behind the bounds");
        return true;
    }
    if (cu_accept_word(u, KW_ALIGN) || cu_accept_word(u, KW_ALIGNAS)) {
        cu_expect(u, '(', "behind the alignment's word");
        uint64_t to = cu_parse_constant(u, "an alignment");
        if (to == 0 || to > IR_MOST_ALIGN || (to & (to - 1)))
            cu_fail(u, t, "an alignment of %llu: a power of 2 up to %d is expected",
                    (unsigned long long)to, IR_MOST_ALIGN);
        s->align = (uint32_t)to;
        cu_expect(u, ')', "behind the alignment");
        return true;
    }
    return false;
}

/* unsigned, long, ... in any order */
static const cu_type *basic_type(cuda_unit *u) {
    enum {
        UNSIGNED = 1,
        SIGNED = 2,
        SHORT = 4,
        LONG = 8,
        LONG_LONG = 16,
        CHAR = 32,
        INT = 64,
        FLOAT = 128,
        DOUBLE = 256,
        BOOL = 512,
        VOID = 1024
    };
    static const struct {
        cu_keyword word;
        uint32_t bit;
    } words[] = {{KW_UNSIGNED, UNSIGNED}, {KW_SIGNED, SIGNED}, {KW_SHORT, SHORT},   {KW_CHAR, CHAR},
                 {KW_INT, INT},           {KW_FLOAT, FLOAT},   {KW_DOUBLE, DOUBLE}, {KW_BOOL, BOOL},
                 {KW_VOID, VOID},         {KW_LONG, LONG}};
    static const struct {
        uint32_t bits;
        cu_kind kind;
    } kinds[] = {{VOID, CU_VOID},
                 {BOOL, CU_BOOL},
                 {CHAR, CU_CHAR},
                 {CHAR | SIGNED, CU_SCHAR},
                 {CHAR | UNSIGNED, CU_UCHAR},
                 {SHORT, CU_SHORT},
                 {SHORT | UNSIGNED, CU_USHORT},
                 {INT, CU_INT},
                 {UNSIGNED, CU_UINT},
                 {LONG, CU_LONG},
                 {LONG | UNSIGNED, CU_ULONG},
                 {LONG_LONG, CU_LLONG},
                 {LONG_LONG | UNSIGNED, CU_ULLONG},
                 {FLOAT, CU_FLOAT},
                 {DOUBLE, CU_DOUBLE}};
    const cu_token *at = cu_now(u);
    uint32_t bits = 0;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < sizeof words / sizeof *words && !more; i++) {
            const cu_token *t = cu_now(u);
            if (!cu_accept_word(u, words[i].word)) continue;
            uint32_t bit = words[i].bit == LONG && (bits & LONG) ? LONG_LONG : words[i].bit;
            if (bits & bit) cu_fail(u, t, "%s twice", t->name->text);
            if (bit == LONG_LONG) bits &= ~(uint32_t)LONG;
            bits |= bit;
            more = true;
        }
    }
    if (bits == 0) return NULL;
    if ((bits & INT) && bits != INT && bits != (INT | SIGNED)) bits &= ~(uint32_t)INT;
    if ((bits & SIGNED) && !(bits & CHAR)) bits = bits == SIGNED ? INT : bits & ~(uint32_t)SIGNED;
    if (bits == (INT | UNSIGNED)) bits = UNSIGNED;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].bits == bits) return cu_basic(u, kinds[i].kind);
    cu_fail(u, at,
            bits == (LONG | DOUBLE) ? "long double: CUDA has none"
                                    : "these words make no type together");
}

/* A type that one name says: a typedef, a struct, a vector type. */
static const cu_type *named_type(cuda_unit *u, const cu_name *name) {
    if (name->keyword != KW_NONE) return NULL;
    if (name->symbol != NULL) return name->symbol->kind == SYM_TYPE ? name->symbol->type : NULL;
    return cu_vector_type(u, name);
}

bool cu_begins_type(cuda_unit *u) {
    const cu_token *t = cu_now(u);
    if (t->kind != TK_NAME) return false;
    uint16_t w = t->name->keyword;
    if (w == KW_NONE) return named_type(u, t->name) != NULL;
    return (w >= KW_VOID && w <= KW_VOLATILE) || (w >= KW_STRUCT && w <= KW_ENUM) ||
           w == KW_STATIC || w == KW_EXTERN || w == KW_REGISTER || w == KW_CONSTEXPR ||
           w == KW_AUTO || w == KW_TYPEDEF || (w >= KW_GLOBAL && w <= KW_ALIGNAS) ||
           (w >= KW_INLINE && w <= KW_INLINE_SHORT);
}

static const cu_type *parse_type_word(cuda_unit *u) {
    const cu_token *t = cu_now(u);
    if (cu_sees_word(u, KW_STRUCT) || cu_sees_word(u, KW_CLASS)) return cu_parse_struct(u);
    if (cu_sees_word(u, KW_UNION)) cu_not_yet(u, t, "unions");
    if (cu_sees_word(u, KW_ENUM)) return cu_parse_enum(u);
    const cu_type *type = basic_type(u);
    if (type != NULL || t->kind != TK_NAME) return type;
    type = named_type(u, t->name);
    u->at += type != NULL;
    return type;
}

void cu_refuse(cuda_unit *u) {
    static const struct {
        cu_keyword word;
        const char *what;
    } not_yet[] = {{KW_TEMPLATE, "templates"},
                   {KW_NAMESPACE, "namespaces"},
                   {KW_USING, "using"},
                   {KW_ASM, "asm"},
                   {KW_OPERATOR, "operators of one's own"},
                   {KW_NEW, "new"},
                   {KW_DELETE, "delete"},
                   {KW_TRY, "exceptions"},
                   {KW_THROW, "exceptions"},
                   {KW_VIRTUAL, "virtual functions"},
                   {KW_GOTO, "goto"}};
    for (size_t i = 0; i < sizeof not_yet / sizeof *not_yet; i++)
        if (cu_sees_word(u, not_yet[i].word)) cu_not_yet(u, cu_now(u), not_yet[i].what);
}

specifiers cu_parse_specifiers(cuda_unit *u) {
    specifiers s = {.at = cu_now(u)};
    for (;;) {
        if (cu_take_specifier(u, &s)) continue;
        if (s.type == NULL && cu_accept_word(u, KW_AUTO)) {
            s.words |= SP_AUTO;
            continue;
        }
        bool has = s.type != NULL || (s.words & SP_AUTO);
        const cu_type *t = has ? NULL : parse_type_word(u);
        if (t == NULL) break;
        s.type = t;
    }
    cu_refuse(u);
    if (s.type == NULL && !(s.words & SP_AUTO)) {
        const cu_token *t = cu_now(u);
        bool name = t->kind == TK_NAME && t->name->keyword == KW_NONE;
        cu_fail(u, t, name ? "%.*s is no type" : "a type is expected, not '%.*s'", (int)t->length,
                t->text);
    }
    if (s.type != NULL)
        s.type = cu_qualified(u, s.type, s.is_const || (s.words & SP_CONSTEXPR), s.is_volatile);
    return s;
}

/* ---- declarators ---- */

static const cu_type *parse_stars(cuda_unit *u, const cu_type *t) {
    for (;;) {
        if (cu_sees(u, '&') || cu_sees(u, CU_P2('&', '&'))) cu_not_yet(u, cu_now(u), "references");
        if (!cu_accept(u, '*')) return t;
        t = cu_pointer_to(u, t);
        specifiers s = {0};
        while (cu_take_specifier(u, &s)) {}
        t = cu_qualified(u, t, s.is_const, s.is_volatile);
    }
}

/* [2][3] behind the name: from the last one on. */
static const cu_type *parse_sizes(cuda_unit *u, const cu_type *base, bool *no_size, bool first) {
    const cu_token *t = cu_now(u);
    if (!cu_accept(u, '[')) return base;
    bool open = cu_sees(u, ']');
    if (open && !first)
        cu_fail(u, t, "an array's size is missing: only the first one can be left out");
    uint64_t n = open ? 0 : cu_parse_constant(u, "an array's size");
    if (!open && (int64_t)n <= 0) cu_fail(u, t, "an array of size %lld", (long long)n);
    cu_expect(u, ']', "behind the array's size");
    *no_size |= open;
    return cu_array_of(u, parse_sizes(u, base, no_size, false), n, t);
}

static void skip_parentheses(cuda_unit *u) {
    uint32_t open = 0;
    const cu_token *at = cu_now(u);
    do {
        const cu_token *t = cu_take(u);
        if (t->kind == TK_END) cu_fail(u, at, ") is missing");
        open += cu_is(t, '(');
        open -= cu_is(t, ')');
    } while (open > 0);
}

/* (*name)[4]: what stands behind the parenthesis is the type of what is inside. */
static declarator parse_inner(cuda_unit *u, const cu_type *base) {
    uint32_t begin = u->at + 1;
    bool no_size = false;
    skip_parentheses(u);
    if (cu_sees(u, '(')) cu_not_yet(u, cu_now(u), "pointers to functions");
    const cu_type *t = parse_sizes(u, base, &no_size, false);
    uint32_t end = u->at;
    u->at = begin;
    declarator d = cu_parse_declarator(u, t);
    cu_expect(u, ')', "behind the declared name");
    u->at = end;
    return d;
}

declarator cu_parse_declarator(cuda_unit *u, const cu_type *base) {
    cu_enter(u, cu_now(u));
    base = parse_stars(u, base);
    declarator d = {.at = cu_now(u)};
    if (cu_sees(u, '(') && cu_is(cu_ahead(u, 1), '*')) {
        d = parse_inner(u, base);
    } else {
        if (d.at->kind == TK_NAME && d.at->name->keyword == KW_NONE) d.name = cu_take(u)->name;
        if (cu_is(cu_now(u), CU_P2(':', ':'))) cu_not_yet(u, cu_now(u), "::");
        d.function = d.name != NULL && cu_sees(u, '(');
        d.type = parse_sizes(u, base, &d.no_size, true);
    }
    cu_leave(u);
    return d;
}

const cu_type *cu_parse_type_name(cuda_unit *u) {
    specifiers s = cu_parse_specifiers(u);
    if (s.type == NULL) cu_fail(u, s.at, "auto is no type here");
    declarator d = cu_parse_declarator(u, s.type);
    if (d.name != NULL) cu_fail(u, d.at, "a type is expected: %s is not part of one", d.name->text);
    if (d.no_size) cu_fail(u, d.at, "an array's size is missing");
    return d.type;
}
