/* What the parser stands on: tokens one by one, scopes of names. */
#include "frontend/cuda/tree.h"

/* ---- tokens ---- */

const cu_token *cu_take(cuda_unit *u) {
    const cu_token *t = cu_now(u);
    u->at += t->kind != TK_END;
    return t;
}

bool cu_accept(cuda_unit *u, uint32_t punct) {
    bool is = cu_sees(u, punct);
    u->at += is;
    return is;
}

bool cu_accept_word(cuda_unit *u, cu_keyword word) {
    bool is = cu_sees_word(u, word);
    u->at += is;
    return is;
}

void cu_expect(cuda_unit *u, uint32_t punct, const char *where) {
    const cu_token *t = cu_now(u);
    if (cu_accept(u, punct)) return;
    char text[4] = {(char)punct, (char)(punct >> 8), (char)(punct >> 16), 0};
    /* what is missing is missing behind what stands before */
    const cu_token *before = u->at > 0 ? t - 1 : t;
    if (t->kind == TK_END) cu_fail(u, before, "'%s' is expected %s: the text ends", text, where);
    cu_fail(u, t, "'%s' is expected %s, not '%.*s'", text, where, (int)t->length, t->text);
}

void cu_enter(cuda_unit *u, const cu_token *at) {
    if (++u->depth > CU_MOST_DEPTH) cu_fail(u, at, "nested more than %d deep", CU_MOST_DEPTH);
}

/* ---- scopes ---- */

void cu_begin_scope(cuda_unit *u) {
    cu_scope *s = CU_NEW(u, cu_scope);
    s->outer = u->scope;
    u->scope = s;
}

void cu_end_scope(cuda_unit *u) {
    for (cu_symbol *s = u->scope->symbols; s != NULL; s = s->next) s->name->symbol = s->hidden;
    u->scope = u->scope->outer;
}

cu_symbol *cu_in_scope(const cuda_unit *u, const cu_name *name) {
    for (cu_symbol *s = u->scope->symbols; s != NULL; s = s->next)
        if (s->name == name) return s;
    return NULL;
}

cu_symbol *cu_declare(cuda_unit *u, cu_symbol_kind kind, cu_name *name, const cu_token *at) {
    if (name->keyword != KW_NONE) cu_fail(u, at, "%s cannot be a name", name->text);
    if (cu_in_scope(u, name) != NULL) cu_fail(u, at, "%s is declared here already", name->text);
    cu_symbol *s = CU_NEW(u, cu_symbol);
    *s = (cu_symbol){.kind = kind, .name = name, .hidden = name->symbol, .next = u->scope->symbols};
    u->scope->symbols = s;
    return name->symbol = s;
}
