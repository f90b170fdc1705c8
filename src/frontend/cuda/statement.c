/* Statements. */
#include "frontend/cuda/tree.h"

static cu_stmt *parse_statement(cuda_unit *u);

static cu_stmt *new_stmt(cuda_unit *u, cu_stmt_kind kind, const cu_token *at) {
    cu_stmt *s = CU_NEW(u, cu_stmt);
    s->kind = kind;
    s->at = at;
    return s;
}

static cu_expr *condition(cuda_unit *u, const char *of) {
    cu_expect(u, '(', of);
    cu_expr *e = cu_truth(u, cu_parse_expression(u));
    cu_expect(u, ')', "behind the condition");
    return e;
}

/* The statement behind if, while, ...: a scope of its own. */
static cu_stmt *parse_inner(cuda_unit *u) {
    cu_stmt *s = new_stmt(u, ST_BLOCK, cu_now(u));
    cu_begin_scope(u);
    s->first = parse_statement(u);
    cu_end_scope(u);
    return s;
}

static cu_stmt *loop_body(cuda_unit *u) {
    u->loops++;
    cu_stmt *s = parse_inner(u);
    u->loops--;
    return s;
}

static cu_stmt *parse_if(cuda_unit *u, const cu_token *at) {
    cu_accept_word(u, KW_CONSTEXPR);
    cu_stmt *s = new_stmt(u, ST_IF, at);
    s->value = condition(u, "behind if");
    s->body = parse_inner(u);
    if (cu_accept_word(u, KW_ELSE)) s->other = parse_inner(u);
    return s;
}

static cu_stmt *parse_do(cuda_unit *u, const cu_token *at) {
    cu_stmt *s = new_stmt(u, ST_DO, at);
    s->body = loop_body(u);
    if (!cu_accept_word(u, KW_WHILE))
        cu_fail(u, cu_now(u), "while is expected behind the body of do");
    s->value = condition(u, "behind while");
    cu_expect(u, ';', "behind do ... while");
    return s;
}

static cu_stmt *parse_for(cuda_unit *u, const cu_token *at) {
    cu_stmt *s = new_stmt(u, ST_FOR, at);
    cu_expect(u, '(', "behind for");
    cu_begin_scope(u);
    if (cu_begins_type(u)) {
        s->first = cu_parse_declaration(u);
    } else if (!cu_accept(u, ';')) {
        s->first = new_stmt(u, ST_EXPR, cu_now(u));
        s->first->value = cu_parse_expression(u);
        cu_expect(u, ';', "behind the beginning of for");
    }
    if (!cu_sees(u, ';')) s->value = cu_truth(u, cu_parse_expression(u));
    cu_expect(u, ';', "behind the condition of for");
    if (!cu_sees(u, ')')) s->step = cu_parse_expression(u);
    cu_expect(u, ')', "behind the step of for");
    s->body = loop_body(u);
    cu_end_scope(u);
    return s;
}

static cu_stmt *parse_switch(cuda_unit *u, const cu_token *at) {
    cu_stmt *s = new_stmt(u, ST_SWITCH, at);
    cu_expect(u, '(', "behind switch");
    s->value = cu_promoted(u, cu_parse_expression(u));
    if (!cu_is_integer(s->value->type))
        cu_fail(u, s->value->at, "switch of a value that is no integer");
    cu_expect(u, ')', "behind the value of switch");
    if (!cu_sees(u, '{')) cu_not_yet(u, cu_now(u), "a switch without { }");
    u->switches++;
    s->body = parse_statement(u);
    u->switches--;
    return s;
}

static cu_stmt *parse_case(cuda_unit *u, const cu_token *at, bool is_default) {
    if (u->switches == 0) cu_fail(u, at, "%s outside of a switch", at->name->text);
    cu_stmt *s = new_stmt(u, ST_CASE, at);
    s->is_default = is_default;
    if (!is_default) s->bits = cu_parse_constant(u, "case");
    cu_expect(u, ':', "behind the case");
    return s;
}

static cu_stmt *parse_return(cuda_unit *u, const cu_token *at) {
    cu_stmt *s = new_stmt(u, ST_RETURN, at);
    const cu_function *f = u->inside;
    bool nothing = f->result->kind == CU_VOID;
    if (cu_accept(u, ';')) {
        if (!nothing)
            cu_fail(u, at, "%s gives %s: return needs a value", f->name->text,
                    cu_type_text(u, f->result));
        return s;
    }
    if (nothing) cu_fail(u, at, "%s gives void: return has a value", f->name->text);
    s->value = cu_sees(u, '{') ? cu_parse_initializer(u, &(const cu_type *){f->result}, "return")
                               : cu_convert(u, cu_parse_expression(u), f->result, "return");
    cu_expect(u, ';', "behind return");
    return s;
}

static cu_stmt *parse_jump(cuda_unit *u, const cu_token *at, cu_stmt_kind kind) {
    if (u->loops == 0 && (kind == ST_CONTINUE || u->switches == 0))
        cu_fail(u, at, "%s outside of a loop", at->name->text);
    cu_expect(u, ';', "behind the statement");
    return new_stmt(u, kind, at);
}

static cu_stmt *parse_word(cuda_unit *u) {
    const cu_token *at = cu_take(u);
    switch (at->name->keyword) {
    case KW_IF: return parse_if(u, at);
    case KW_DO: return parse_do(u, at);
    case KW_FOR: return parse_for(u, at);
    case KW_SWITCH: return parse_switch(u, at);
    case KW_CASE: return parse_case(u, at, false);
    case KW_DEFAULT: return parse_case(u, at, true);
    case KW_RETURN: return parse_return(u, at);
    case KW_BREAK: return parse_jump(u, at, ST_BREAK);
    case KW_CONTINUE: return parse_jump(u, at, ST_CONTINUE);
    case KW_GOTO: cu_not_yet(u, at, "goto");
    case KW_ASM: cu_not_yet(u, at, "asm");
    case KW_TRY: cu_not_yet(u, at, "exceptions");
    case KW_THROW: cu_not_yet(u, at, "exceptions");
    default: break;
    }
    if (at->name->keyword != KW_WHILE) cu_fail(u, at, "%s is not expected here", at->name->text);
    cu_stmt *s = new_stmt(u, ST_WHILE, at);
    s->value = condition(u, "behind while");
    s->body = loop_body(u);
    return s;
}

static bool begins_statement(const cu_token *t) {
    uint16_t w = t->kind == TK_NAME ? t->name->keyword : KW_NONE;
    return (w >= KW_IF && w <= KW_GOTO) || w == KW_ASM || w == KW_TRY || w == KW_THROW;
}

static cu_stmt *parse_statement(cuda_unit *u) {
    const cu_token *at = cu_now(u);
    cu_enter(u, at);
    cu_stmt *s;
    if (cu_sees(u, '{')) {
        s = cu_parse_block(u);
    } else if (cu_accept(u, ';')) {
        s = new_stmt(u, ST_EMPTY, at);
    } else if (begins_statement(at)) {
        s = parse_word(u);
    } else if (cu_sees_word(u, KW_STATIC_ASSERT)) {
        s = new_stmt(u, ST_EMPTY, at);
        cu_parse_static_assert(u);
    } else if (cu_begins_type(u) && (!cu_is(cu_ahead(u, 1), '(') || cu_is(cu_ahead(u, 2), '*'))) {
        s = cu_parse_declaration(u);
    } else {
        if (at->kind == TK_NAME && at->name->keyword == KW_NONE && cu_is(cu_ahead(u, 1), ':'))
            cu_not_yet(u, at, "labels");
        s = new_stmt(u, ST_EXPR, at);
        s->value = cu_parse_expression(u);
        cu_expect(u, ';', "behind the expression");
    }
    cu_leave(u);
    return s;
}

cu_stmt *cu_parse_block(cuda_unit *u) {
    const cu_token *at = cu_take(u);
    cu_stmt *block = new_stmt(u, ST_BLOCK, at), **last = &block->first;
    cu_begin_scope(u);
    while (!cu_accept(u, '}')) {
        if (cu_now(u)->kind == TK_END) cu_fail(u, at, "} is missing: this { stays open");
        *last = parse_statement(u);
        while (*last != NULL) last = &(*last)->next;
    }
    cu_end_scope(u);
    return block;
}
