/* Directives and macros: the text's tokens become those that the parser reads.
 *
 * Tokens come from the text, or from the replacement of a macro that is being read; such places stand on each
 * other. While one is read its macro is not replaced again, and a name of it that is met then never is. */
#include "frontend/cuda/work.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 20, MOST_PARAMETERS = 127, MOST_NESTED = 64, MOST_MACRO_DEPTH = 200 };

struct cu_macro {
    const cu_name *const *parameters; /* a function's, or NULL */
    uint32_t nparameters, count;
    const cu_token *items;
    bool function, variadic, busy;
};

typedef struct replaced {
    struct replaced *outer;
    const cu_token *items;
    uint32_t count, at;
    cu_macro *macro;
} replaced;

typedef struct pp {
    cuda_unit *u;
    cu_source source;
    bool has_source; /* else: arguments, looked at by themselves */
    replaced *inside;
    cu_token ahead; /* of the source */
    bool has_ahead;
    uint32_t depth, *made; /* tokens so far */
    struct {
        bool taken, any, last;
        cu_token at;
    } ifs[MOST_NESTED]; /* #if: this part is read; one was; #else was */
    uint32_t nifs;
    cu_name *defined, *variadic;
} pp;

static void count_token(pp *p, const cu_token *t) {
    if (++*p->made > MOST_TOKENS)
        cu_fail(p->u, t, "the text and its macros have more than %d tokens", MOST_TOKENS);
}

/* ---- tokens without replacement ---- */

static void directive(pp *p);
static bool skipping(const pp *p) { return p->nifs > 0 && !p->ifs[p->nifs - 1].taken; }

static cu_token from_source(pp *p) {
    for (;;) {
        cu_token t = p->has_ahead ? p->ahead : cu_lex(p->u, &p->source);
        p->has_ahead = false;
        if (t.starts && cu_is(&t, '#'))
            directive(p);
        else if (t.kind == TK_END || !skipping(p))
            return t;
    }
}

static void leave_exhausted(pp *p) {
    while (p->inside != NULL && p->inside->at == p->inside->count) {
        if (p->inside->macro != NULL) p->inside->macro->busy = false;
        p->inside = p->inside->outer;
        p->depth--;
    }
}

static cu_token raw(pp *p) {
    leave_exhausted(p);
    if (p->inside != NULL) return p->inside->items[p->inside->at++];
    return p->has_source ? from_source(p) : (cu_token){0};
}

/* Whether the next token is "(", which is then taken. */
static bool opens(pp *p) {
    replaced *r = p->inside;
    while (r != NULL && r->at == r->count) r = r->outer;
    if (r != NULL) return cu_is(&r->items[r->at], '(') && (raw(p), true);
    if (!p->has_source) return false;
    if (!p->has_ahead) p->ahead = from_source(p);
    p->has_ahead = true;
    if (!cu_is(&p->ahead, '(')) return false;
    leave_exhausted(p);
    p->has_ahead = false;
    return true;
}

/* ---- macros ---- */

static cu_token expanded(pp *p);

static void read_from(pp *p, const cu_token *items, uint32_t count, cu_macro *m,
                      const cu_token *at) {
    if (++p->depth > MOST_MACRO_DEPTH) cu_fail(p->u, at, "macros inside of macros: too deep");
    replaced *r = CU_NEW(p->u, replaced);
    *r = (replaced){p->inside, items, count, 0, m};
    p->inside = r;
    if (m != NULL) m->busy = true;
}

/* The tokens of an argument, replaced as if they stood alone. */
static cu_tokens alone(pp *p, const cu_tokens *of) {
    pp inner = {.u = p->u,
                .made = p->made,
                .depth = p->depth + 1,
                .defined = p->defined,
                .variadic = p->variadic};
    if (inner.depth > MOST_MACRO_DEPTH)
        cu_fail(p->u, of->items, "macros inside of macros: too deep");
    cu_tokens out = {0};
    read_from(&inner, of->items, of->count, NULL, of->items);
    for (cu_token t; (t = expanded(&inner)).kind != TK_END;) cu_put_token(p->u, &out, &t);
    leave_exhausted(&inner);
    return out;
}

/* The arguments up to ")", raw. */
static uint32_t read_arguments(pp *p, const cu_macro *m, const cu_token *at, cu_tokens *args) {
    uint32_t n = 0, open = 0;
    for (;;) {
        cu_token t = raw(p);
        if (t.kind == TK_END)
            cu_fail(p->u, at, "macro %s: ) is missing behind its arguments", at->name->text);
        if (open == 0 && cu_is(&t, ')')) return n + 1;
        bool rest = m->variadic && n + 1 == m->nparameters;
        if (open == 0 && cu_is(&t, ',') && !rest) {
            if (++n >= MOST_PARAMETERS) cu_fail(p->u, at, "a macro with too many arguments");
            continue;
        }
        open += cu_is(&t, '(');
        open -= cu_is(&t, ')');
        count_token(p, &t);
        cu_put_token(p->u, &args[n], &t);
    }
}

static int parameter_of(const cu_macro *m, const cu_token *t) {
    for (uint32_t i = 0; t->kind == TK_NAME && i < m->nparameters; i++)
        if (m->parameters[i] == t->name) return (int)i;
    return -1;
}

/* #x: the argument's text as a string. */
static cu_token string_of(pp *p, const cu_tokens *arg, const cu_token *at) {
    strbuf text;
    strbuf_init_in(&text, &p->u->mem);
    strbuf_puts(&text, "\"");
    for (uint32_t i = 0; i < arg->count; i++) {
        const cu_token *t = &arg->items[i];
        if (i > 0 && t->space) strbuf_puts(&text, " ");
        for (uint32_t k = 0; k < t->length; k++) {
            bool quoted = t->kind == TK_STRING || t->kind == TK_CHAR;
            if (quoted && (t->text[k] == '"' || t->text[k] == '\\')) strbuf_puts(&text, "\\");
            strbuf_add(&text, t->text + k, 1);
        }
    }
    strbuf_puts(&text, "\"");
    cu_token out = *at;
    out.kind = TK_STRING;
    out.text = strbuf_text(&text);
    out.length = (uint32_t)text.length;
    return out;
}

/* a ## b */
static cu_token pasted(pp *p, const cu_token *a, const cu_token *b) {
    char *text =
        arena_printf(&p->u->mem, "%.*s%.*s", (int)a->length, a->text, (int)b->length, b->text);
    cu_source s = cu_source_of(text, strlen(text));
    cu_token t = cu_lex(p->u, &s);
    if (t.length != strlen(text)) cu_fail(p->u, a, "'%s', made by ##, is not one token", text);
    t.line = a->line;
    t.column = a->column;
    t.space = a->space;
    t.starts = false;
    return t;
}

typedef struct replacing {
    cu_tokens out, *args, *alone;
    bool *is_alone, pastes,
        empty; /* ## stood before; what stands before it was an empty argument */
} replacing;

static void add_item(pp *p, replacing *r, cu_token t) {
    count_token(p, &t);
    if (r->pastes && !r->empty && r->out.count > 0)
        r->out.items[r->out.count - 1] = pasted(p, &r->out.items[r->out.count - 1], &t);
    else
        cu_put_token(p->u, &r->out, &t);
    r->pastes = r->empty = false;
}

static const cu_tokens *argument(pp *p, replacing *r, int i, bool as_is) {
    if (as_is) return &r->args[i];
    if (!r->is_alone[i]) r->alone[i] = alone(p, &r->args[i]);
    r->is_alone[i] = true;
    return &r->alone[i];
}

/* The replacement of a function's macro: parameters -> arguments. */
static cu_tokens substitute(pp *p, const cu_macro *m, cu_tokens *args, uint32_t n) {
    replacing r = {
        .args = args, .alone = CU_ARRAY(p->u, cu_tokens, n), .is_alone = CU_ARRAY(p->u, bool, n)};
    for (uint32_t i = 0; i < m->count; i++) {
        const cu_token *t = &m->items[i];
        bool before_paste = i + 1 < m->count && cu_is(&m->items[i + 1], CU_P2('#', '#'));
        int which = parameter_of(m, t);
        if (cu_is(t, CU_P2('#', '#')) && i > 0 && i + 1 < m->count) {
            r.pastes = true;
        } else if (cu_is(t, '#') && m->function && i + 1 < m->count &&
                   parameter_of(m, t + 1) >= 0) {
            add_item(p, &r, string_of(p, &args[parameter_of(m, t + 1)], t));
            i++;
        } else if (which < 0) {
            add_item(p, &r, *t);
        } else {
            const cu_tokens *arg = argument(p, &r, which, r.pastes || before_paste);
            if (arg->count == 0 && !r.pastes) r.empty = before_paste;
            if (arg->count == 0) r.pastes = false;
            for (uint32_t k = 0; k < arg->count; k++) {
                cu_token a = arg->items[k];
                if (k == 0) a.space = t->space;
                add_item(p, &r, a);
            }
        }
    }
    return r.out;
}

/* Begins to read the macro's replacement; false: it is a function's name without "(". */
static bool begin_macro(pp *p, cu_macro *m, const cu_token *at) {
    if (!m->function) {
        cu_tokens out = substitute(p, m, NULL, 0);
        read_from(p, out.items, out.count, m, at);
        return true;
    }
    if (!opens(p)) return false;
    cu_tokens *args = CU_ARRAY(p->u, cu_tokens, MOST_PARAMETERS);
    uint32_t n = read_arguments(p, m, at, args);
    if (n == 1 && args[0].count == 0 && m->nparameters == 0) n = 0;
    if (n != m->nparameters && !(m->variadic && n + 1 == m->nparameters))
        cu_fail(p->u, at, "macro %s takes %u arguments, and %u are given", at->name->text,
                m->nparameters, n);
    cu_tokens out = substitute(p, m, args, m->nparameters);
    read_from(p, out.items, out.count, m, at);
    return true;
}

static cu_token expanded(pp *p) {
    for (;;) {
        cu_token t = raw(p);
        if (t.kind == TK_END) return t;
        count_token(p, &t);
        cu_macro *m = t.kind == TK_NAME && !t.fixed ? t.name->macro : NULL;
        if (m == NULL) return t;
        if (m->busy) {
            t.fixed = true;
            return t;
        }
        uint32_t from = p->inside != NULL ? 1 : 0;
        if (!begin_macro(p, m, &t)) return t;
        /* what comes of it is reported where the macro stands in the text */
        if (from == 0)
            for (uint32_t i = 0; i < p->inside->count; i++) {
                cu_token *k = (cu_token *)(uintptr_t)&p->inside->items[i];
                k->line = t.line;
                k->column = t.column;
            }
    }
}

/* ---- directives ---- */

/* The rest of the line, as it stands. */
static cu_tokens line_of(pp *p) {
    cu_tokens line = {0};
    for (;;) {
        cu_token t = cu_lex(p->u, &p->source);
        if (t.kind == TK_END || t.starts) {
            p->ahead = t;
            p->has_ahead = true;
            return line;
        }
        cu_put_token(p->u, &line, &t);
    }
}

/* defined X and defined(X) become 1 or 0; the rest is replaced. */
static bool holds(pp *p, const cu_tokens *line, const cu_token *at) {
    cu_tokens items = {0};
    for (uint32_t i = 0; i < line->count; i++) {
        cu_token t = line->items[i];
        if (t.kind == TK_NAME && t.name == p->defined) {
            bool paren = i + 1 < line->count && cu_is(&line->items[i + 1], '(');
            uint32_t k = i + 1 + paren;
            if (k >= line->count || line->items[k].kind != TK_NAME)
                cu_fail(p->u, &t, "defined: a name is expected");
            t.kind = TK_NUMBER;
            t.text = line->items[k].name->macro != NULL ? "1" : "0";
            t.length = 1;
            i = k + paren;
        }
        cu_put_token(p->u, &items, &t);
    }
    cu_tokens all = alone(p, &items);
    return cu_condition(p->u, &all, at);
}

static void read_parameters(pp *p, cu_macro *m, const cu_tokens *line, uint32_t *at) {
    const cu_name **names = CU_ARRAY(p->u, const cu_name *, MOST_PARAMETERS);
    m->function = true;
    while (*at < line->count && !cu_is(&line->items[*at], ')')) {
        const cu_token *t = &line->items[(*at)++];
        bool rest = cu_is(t, CU_P3('.', '.', '.'));
        if ((t->kind != TK_NAME && !rest) || m->variadic || m->nparameters == MOST_PARAMETERS)
            cu_fail(p->u, t, "#define: a parameter's name is expected");
        m->variadic = rest;
        names[m->nparameters++] = rest ? p->variadic : t->name;
        if (*at < line->count && cu_is(&line->items[*at], ',')) ++*at;
    }
    if (*at == line->count) cu_fail(p->u, line->items, "#define: ) is missing");
    ++*at;
    m->parameters = names;
}

static void define(pp *p, const cu_tokens *line, const cu_token *at) {
    if (line->count == 0 || line->items[0].kind != TK_NAME || line->items[0].name == p->defined)
        cu_fail(p->u, at, "#define: a name is expected");
    cu_macro *m = CU_NEW(p->u, cu_macro);
    uint32_t i = 1;
    if (line->count > 1 && cu_is(&line->items[1], '(') && !line->items[1].space) {
        i = 2;
        read_parameters(p, m, line, &i);
    }
    m->items = line->items + i;
    m->count = line->count - i;
    cu_name *name = line->items[0].name;
    if (name->macro != NULL && name->macro->busy) *m = *name->macro; /* while it is read */
    name->macro = m;
}

static void begin_if(pp *p, bool yes, const cu_token *at) {
    if (p->nifs == MOST_NESTED) cu_fail(p->u, at, "#if: nested too deep");
    bool outer = !skipping(p);
    p->ifs[p->nifs].taken = outer && yes;
    p->ifs[p->nifs].any = !outer || yes; /* inside of what is skipped no part is read */
    p->ifs[p->nifs].last = false;
    p->ifs[p->nifs++].at = *at;
}

static void next_part(pp *p, bool yes, bool last, const cu_token *at) {
    if (p->nifs == 0 || p->ifs[p->nifs - 1].last) cu_fail(p->u, at, "there is no #if for it");
    p->ifs[p->nifs - 1].taken = yes && !p->ifs[p->nifs - 1].any;
    p->ifs[p->nifs - 1].any |= yes;
    p->ifs[p->nifs - 1].last = last;
}

static const char *const headers[] = {"cuda.h",
                                      "cuda_runtime.h",
                                      "cuda_runtime_api.h",
                                      "device_launch_parameters.h",
                                      "math.h",
                                      "cmath",
                                      "math_constants.h",
                                      "stdio.h",
                                      "cstdio",
                                      "stdint.h",
                                      "cstdint",
                                      "stddef.h",
                                      "cstddef",
                                      "float.h",
                                      "cfloat",
                                      "limits.h",
                                      "climits",
                                      "stdlib.h",
                                      "cstdlib",
                                      "assert.h",
                                      "cassert",
                                      "string.h",
                                      "device_functions.h",
                                      "vector_types.h",
                                      "vector_functions.h",
                                      "math_functions.h",
                                      "device_atomic_functions.h",
                                      "sm_60_atomic_functions.h"};

/* What these headers declare is always there. */
static void include(pp *p, const cu_tokens *line, const cu_token *at) {
    strbuf name;
    strbuf_init_in(&name, &p->u->mem);
    for (uint32_t i = 0; i < line->count; i++)
        strbuf_add(&name, line->items[i].text, line->items[i].length);
    const char *text = strbuf_text(&name);
    size_t n = strlen(text);
    for (size_t i = 0; n > 2 && i < sizeof headers / sizeof *headers; i++)
        if (strlen(headers[i]) == n - 2 && memcmp(headers[i], text + 1, n - 2) == 0) return;
    cu_fail(p->u, at,
            "#include %s: not in simt yet (there are the usual ones: cuda_runtime.h, "
            "math.h, stdint.h, stdio.h, assert.h)",
            text);
}

static bool is_directive(const cu_token *t, const char *text) {
    return t->kind == TK_NAME && strcmp(t->name->text, text) == 0;
}

static void condition_directive(pp *p, const cu_token *t, const cu_tokens *line) {
    bool name = line->count > 0 && line->items[0].kind == TK_NAME;
    bool known = name && line->items[0].name->macro != NULL;
    if (is_directive(t, "ifdef") || is_directive(t, "ifndef")) {
        if (!name && !skipping(p)) cu_fail(p->u, t, "#%s: a name is expected", t->name->text);
        begin_if(p, known == is_directive(t, "ifdef"), t);
    } else if (is_directive(t, "if")) {
        begin_if(p, !skipping(p) && holds(p, line, t), t);
    } else if (is_directive(t, "elif")) {
        bool open = p->nifs > 0 && !p->ifs[p->nifs - 1].any;
        next_part(p, open && holds(p, line, t), false, t);
    } else if (is_directive(t, "else")) {
        next_part(p, true, true, t);
    } else {
        if (p->nifs == 0) cu_fail(p->u, t, "#endif: there is no #if for it");
        p->nifs--;
    }
}

/* Behind the # of a line. */
static void directive(pp *p) {
    cu_token t = cu_lex(p->u, &p->source);
    if (t.starts || t.kind == TK_END) { /* # alone */
        p->ahead = t;
        p->has_ahead = true;
        return;
    }
    static const char *const conditions[] = {"if", "ifdef", "ifndef", "elif", "else", "endif"};
    cu_tokens line = line_of(p);
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (is_directive(&t, conditions[i])) {
            condition_directive(p, &t, &line);
            return;
        }
    if (skipping(p) || is_directive(&t, "pragma") || is_directive(&t, "line") ||
        is_directive(&t, "warning"))
        return;
    if (is_directive(&t, "define"))
        define(p, &line, &t);
    else if (is_directive(&t, "include"))
        include(p, &line, &t);
    else if (is_directive(&t, "undef") && line.count > 0 && line.items[0].kind == TK_NAME)
        line.items[0].name->macro = NULL;
    else if (is_directive(&t, "error")) {
        cu_tokens none = {0};
        const char *end = line.count > 0
                              ? line.items[line.count - 1].text + line.items[line.count - 1].length
                              : t.text;
        const char *begin = line.count > 0 ? line.items[0].text : t.text;
        (void)none;
        cu_fail(p->u, &t, "#error %.*s", (int)(end - begin), begin);
    } else
        cu_fail(p->u, &t, "#%.*s is no directive", (int)t.length, t.text);
}

/* ---- a text ---- */

static void run(cuda_unit *u, const char *text, size_t bytes, uint32_t *made) {
    pp *p = CU_NEW(u, pp);
    *p = (pp){.u = u, .source = cu_source_of(text, bytes), .has_source = true, .made = made};
    p->defined = cu_name_of(u, "defined", 7);
    p->variadic = cu_name_of(u, "__VA_ARGS__", 11);
    cu_token t;
    while ((t = expanded(p)).kind != TK_END) cu_put_token(u, &u->tokens, &t);
    if (p->nifs > 0) cu_fail(u, &p->ifs[p->nifs - 1].at, "#if: its #endif is missing");
    u->tokens.items = u->tokens.items != NULL ? u->tokens.items : CU_NEW(u, cu_token);
}

static const char prelude[] =
#include "frontend/cuda/prelude.h"
    ;

static void define_options(cuda_unit *u, const cuda_options *o, uint32_t *made) {
    for (uint32_t i = 0; o != NULL && i < o->ndefines; i++) {
        const char *d = o->defines[i], *is = strchr(d, '=');
        int n = is != NULL ? (int)(is - d) : (int)strlen(d);
        char *text = arena_printf(&u->mem, "#define %.*s %s\n", n, d, is != NULL ? is + 1 : "1");
        run(u, text, strlen(text), made);
    }
}

void cu_preprocess(cuda_unit *u, const char *text, size_t bytes, const cuda_options *options) {
    uint32_t made = 0;
    run(u, prelude, sizeof prelude - 1, &made);
    define_options(u, options, &made);
    run(u, text, bytes, &made);
    cu_token end = {.line = u->tokens.count > 0 ? u->tokens.items[u->tokens.count - 1].line : 1,
                    .column = 1};
    cu_put_token(u, &u->tokens, &end);
}
