/* Expressions -> IR. */
#include "frontend/cuda/lower.h"

/* ---- numbers ---- */

static ir_value *resize(cu_low *l, const cu_type *from, const cu_type *to, ir_value *v) {
    if (v->type == cu_ir_type(to)) return v;
    bool narrower = ir_type_bits(v->type) > ir_type_bits(cu_ir_type(to));
    bool no_sign = cu_is_unsigned(from);
    return ir_cast(&l->b, narrower ? IR_TRUNC : no_sign ? IR_ZEXT : IR_SEXT, cu_ir_type(to), v);
}

/* Of floats to integers of less than 32 bits: by way of int, as C's conversion of an out-of-range value on a GPU. */
static ir_value *to_integer(cu_low *l, const cu_type *to, ir_value *v) {
    bool small = to->size < 4;
    ir_type wide = small ? IR_I32 : cu_ir_type(to);
    bool no_sign = cu_is_unsigned(to) && !small;
    v = ir_cast(&l->b, no_sign ? IR_FPTOUI : IR_FPTOSI, wide, v);
    return small ? ir_cast(&l->b, IR_TRUNC, cu_ir_type(to), v) : v;
}

ir_value *cu_convert_number(cu_low *l, const cu_type *from, const cu_type *to, ir_value *v) {
    ir_type type = cu_ir_type(to);
    if (from->plain == to->plain) return v;
    if (cu_is_float(from) && cu_is_float(to)) {
        if (from->kind == to->kind) return v;
        return ir_cast(&l->b, to->kind == CU_DOUBLE ? IR_FPEXT : IR_FPTRUNC, type, v);
    }
    if (cu_is_float(to))
        return ir_cast(&l->b, cu_is_unsigned(from) ? IR_UITOFP : IR_SITOFP, type, v);
    if (cu_is_float(from)) return to_integer(l, to, v);
    return resize(l, from, to, v);
}

static const struct {
    uint32_t punct;
    ir_op with_sign, no_sign, on_float;
    bool swap;
} operations[] = {{'+', IR_ADD, IR_ADD, IR_FADD, false},
                  {'-', IR_SUB, IR_SUB, IR_FSUB, false},
                  {'*', IR_MUL, IR_MUL, IR_FMUL, false},
                  {'/', IR_DIV_S, IR_DIV_U, IR_FDIV, false},
                  {'%', IR_REM_S, IR_REM_U, IR_OP_COUNT, false},
                  {'&', IR_AND, IR_AND, IR_OP_COUNT, false},
                  {'|', IR_OR, IR_OR, IR_OP_COUNT, false},
                  {'^', IR_XOR, IR_XOR, IR_OP_COUNT, false},
                  {CU_P2('<', '<'), IR_SHL, IR_SHL, IR_OP_COUNT, false},
                  {CU_P2('>', '>'), IR_SHR_S, IR_SHR_U, IR_OP_COUNT, false},
                  {'<', IR_LT_S, IR_LT_U, IR_FLT, false},
                  {'>', IR_LT_S, IR_LT_U, IR_FLT, true},
                  {CU_P2('<', '='), IR_LE_S, IR_LE_U, IR_FLE, false},
                  {CU_P2('>', '='), IR_LE_S, IR_LE_U, IR_FLE, true},
                  {CU_P2('=', '='), IR_EQ, IR_EQ, IR_FEQ, false},
                  {CU_P2('!', '='), IR_NE, IR_NE, IR_FNE, false}};

ir_value *cu_operate(cu_low *l, uint32_t op, const cu_type *t, ir_value *a, ir_value *b) {
    uint32_t i = 0;
    while (operations[i].punct != op) i++;
    ir_op chosen = cu_is_float(t)      ? operations[i].on_float
                   : cu_is_unsigned(t) ? operations[i].no_sign
                                       : operations[i].with_sign;
    return operations[i].swap ? ir_binary(&l->b, chosen, b, a) : ir_binary(&l->b, chosen, a, b);
}

ir_value *cu_lower_one(cu_low *l, cu_expr *e) { return cu_lower(l, e).v[0]; }

static cu_value constant(cu_low *l, const cu_expr *e) {
    ir_type type = cu_ir_type(e->type);
    if (!cu_is_float(e->type))
        return cu_one(l, e->type, ir_const_bits(&l->b, type, ir_cut_bits(e->bits, type)));
    double d;
    __builtin_memcpy(&d, &e->bits, sizeof d);
    return cu_one(l, e->type, ir_const_float(&l->b, type, d));
}

static cu_value unary(cu_low *l, const cu_expr *e) {
    ir_value *v = cu_lower_one(l, e->a);
    cu_at(l, e->at);
    if (e->op == '-' && cu_is_float(e->type))
        return cu_one(l, e->type, ir_unary(&l->b, IR_FNEG, v));
    if (e->op == '-')
        return cu_one(l, e->type, ir_binary(&l->b, IR_SUB, ir_const_int(&l->b, v->type, 0), v));
    return cu_one(l, e->type, ir_unary(&l->b, IR_NOT, v)); /* ! of an i1, and ~ */
}

static cu_value compare_pointers(cu_low *l, const cu_expr *e) {
    cu_value a = cu_lower(l, e->a), b = cu_lower(l, e->b);
    cu_at(l, e->at);
    bool one = a.o[0] == b.o[0];
    ir_value *x = one ? a.v[0] : cu_address(l, a.o[0], a.v[0]),
             *y = one ? b.v[0] : cu_address(l, b.o[0], b.v[0]);
    const cu_type *t = cu_basic(l->u, one ? CU_LONG : CU_ULONG); /* an offset may be below 0 */
    return cu_one(l, e->type, cu_operate(l, e->op, t, x, y));
}

static cu_value binary(cu_low *l, const cu_expr *e) {
    if (cu_is_pointer(e->a->type)) return compare_pointers(l, e);
    ir_value *a = cu_lower_one(l, e->a), *b = cu_lower_one(l, e->b);
    cu_at(l, e->at);
    return cu_one(l, e->type, cu_operate(l, e->op, e->a->type, a, b));
}

/* ---- what is computed only in some threads ---- */

/* No access, call or assignment in it, and not much work. */
static bool is_plain(const cu_expr *e, int *room) {
    if (e == NULL) return true;
    bool plain = e->kind <= EX_LOGICAL || e->kind == EX_CAST || e->kind == EX_CONDITION;
    bool slot = e->kind != EX_VARIABLE || !e->variable->addressed;
    return --*room > 0 && plain && slot && is_plain(e->a, room) && is_plain(e->b, room) &&
           is_plain(e->c, room);
}

static cu_value logical(cu_low *l, const cu_expr *e) {
    bool is_or = e->op == CU_P2('|', '|');
    int room = 8;
    ir_value *a = cu_lower_one(l, e->a);
    if (is_plain(e->b, &room)) {
        ir_value *b = cu_lower_one(l, e->b);
        return cu_one(l, e->type, ir_binary(&l->b, is_or ? IR_OR : IR_AND, a, b));
    }
    uint32_t *got = ARENA_NEW(l->mem, uint32_t);
    *got = vars_add(&l->vars, IR_I1);
    vars_set(&l->vars, *got, a);
    vars_label end = cu_carry(l, NULL, e->b, NULL, got, 1);
    cu_at(l, e->at);
    vars_begin_if(&l->vars, is_or ? ir_unary(&l->b, IR_NOT, a) : a, &end);
    vars_set(&l->vars, *got, cu_lower_one(l, e->b));
    vars_else(&l->vars, &end);
    vars_end(&l->vars, &end);
    return cu_one(l, e->type, vars_get(&l->vars, *got));
}

/* The value that a construct gives, as a variable. */
static cu_variable *temporary(cu_low *l, cu_expr *e) {
    if (e->variable == NULL) {
        e->variable = ARENA_NEW(&l->u->mem, cu_variable);
        e->variable->type = e->type;
    }
    cu_begin_variable(l, e->variable);
    return e->variable;
}

static cu_value select_value(cu_low *l, const cu_expr *e, ir_value *cond) {
    cu_value a = cu_lower(l, e->b), b = cu_lower(l, e->c);
    cu_at(l, e->at);
    cu_value out = cu_new_value(l, e->type);
    for (uint32_t i = 0; i < out.type->leaves; i++) {
        out.v[i] = ir_select(&l->b, cond, a.v[i], b.v[i]);
        if (a.o[i] != NULL) out.o[i] = cu_choose_origin(l, cond, a.o[i], b.o[i]);
    }
    return out;
}

static cu_value condition(cu_low *l, cu_expr *e) {
    ir_value *cond = cu_lower_one(l, e->a);
    int room = 12;
    if (e->type->kind != CU_VOID && is_plain(e->b, &room) && is_plain(e->c, &room))
        return select_value(l, e, cond);
    uint32_t *numbers = NULL, n = 0;
    cu_variable *v = e->type->kind != CU_VOID ? temporary(l, e) : NULL;
    if (v != NULL) n = cu_slot_numbers(l, v, 0, v->type->plain->leaves, &numbers);
    cu_place p = {.type = e->type, .variable = v, .at = e->at};
    vars_label end = cu_carry(l, NULL, e->b, e->c, numbers, n);
    cu_at(l, e->at);
    vars_begin_if(&l->vars, cond, &end);
    cu_value a = cu_lower(l, e->b);
    if (v != NULL) cu_write(l, &p, &a);
    vars_else(&l->vars, &end);
    cu_value b = cu_lower(l, e->c);
    if (v != NULL) cu_write(l, &p, &b);
    vars_end(&l->vars, &end);
    return v != NULL ? cu_read(l, &p) : (cu_value){.type = e->type};
}

/* ---- pointers ---- */

static ir_value *scaled(cu_low *l, ir_value *count, const cu_type *of) {
    return ir_binary(&l->b, IR_MUL, count, cu_int(l, (int64_t)of->plain->size));
}

static cu_value move(cu_low *l, const cu_expr *e) {
    cu_value p = cu_lower(l, e->a);
    ir_value *by = scaled(l, cu_lower_one(l, e->b), e->a->type->of);
    cu_at(l, e->at);
    ir_value *to = ir_binary(&l->b, e->op == '-' ? IR_SUB : IR_ADD, p.v[0], by);
    return cu_pointer(l, e->type, p.o[0], to);
}

static cu_value distance(cu_low *l, const cu_expr *e) {
    cu_value a = cu_lower(l, e->a), b = cu_lower(l, e->b);
    cu_at(l, e->at);
    bool one = a.o[0] == b.o[0];
    ir_value *x = one ? a.v[0] : cu_address(l, a.o[0], a.v[0]),
             *y = one ? b.v[0] : cu_address(l, b.o[0], b.v[0]);
    ir_value *bytes = ir_binary(&l->b, IR_SUB, x, y);
    ir_value *size = cu_int(l, (int64_t)e->a->type->of->plain->size);
    return cu_one(l, e->type, ir_binary(&l->b, IR_DIV_S, bytes, size));
}

static cu_value address(cu_low *l, const cu_expr *e) {
    if (e->a->kind == EX_DEREF) { /* &p[i], and rows of arrays */
        cu_value p = cu_lower(l, e->a->a);
        return cu_pointer(l, e->type, p.o[0], p.v[0]);
    }
    cu_place p = cu_place_of(l, e->a);
    if (p.variable != NULL) cu_not_yet(l->u, e->at, "the address of this");
    return cu_pointer(l, e->type, p.origin, p.offset);
}

static cu_value cast(cu_low *l, cu_expr *e) {
    cu_value v = cu_lower(l, e->a);
    const cu_type *from = e->a->type, *to = e->type;
    cu_at(l, e->at);
    if (to->kind == CU_VOID) return (cu_value){.type = to};
    if (cu_is_pointer(to)) return cu_pointer(l, to, v.o[0], v.v[0]);
    if (cu_is_pointer(from))
        return cu_one(l, to,
                      resize(l, cu_basic(l->u, CU_ULONG), to, cu_address(l, v.o[0], v.v[0])));
    if (!cu_is_number(to)) return v;
    return cu_one(l, to, cu_convert_number(l, from, to, v.v[0]));
}

/* ---- assignments ---- */

/* Of the value of the place's type, b of e->compute's (or an i64 to move a pointer). */
static cu_value changed(cu_low *l, const cu_type *t, const cu_value *old, uint32_t op,
                        const cu_type *compute, ir_value *b) {
    if (cu_is_pointer(t)) {
        ir_value *to =
            ir_binary(&l->b, op == '-' ? IR_SUB : IR_ADD, old->v[0], scaled(l, b, t->of));
        return cu_pointer(l, t, old->o[0], to);
    }
    ir_value *a = cu_convert_number(l, t, compute, old->v[0]);
    ir_value *v = cu_operate(l, op, compute, a, b);
    if (t->kind == CU_BOOL) {
        ir_value *zero = ir_const_bits(&l->b, v->type, 0);
        return cu_one(l, t, ir_binary(&l->b, cu_is_float(compute) ? IR_FNE : IR_NE, v, zero));
    }
    return cu_one(l, t, cu_convert_number(l, compute, t, v));
}

static cu_value assign(cu_low *l, const cu_expr *e) {
    if (e->op == 0) {
        cu_value v = cu_lower(l, e->b);
        cu_place p = cu_place_of(l, e->a);
        p.at = e->at;
        cu_write(l, &p, &v);
        return v;
    }
    ir_value *b = cu_lower_one(l, e->b);
    cu_place p = cu_place_of(l, e->a);
    cu_value old = cu_read(l, &p);
    cu_at(l, e->at);
    cu_value v = changed(l, p.type->plain, &old, e->op, e->compute, b);
    p.at = e->at;
    cu_write(l, &p, &v);
    return v;
}

static cu_value step(cu_low *l, const cu_expr *e) {
    cu_place p = cu_place_of(l, e->a);
    cu_value old = cu_read(l, &p);
    const cu_type *t = p.type->plain;
    cu_at(l, e->at);
    const cu_type *compute = cu_is_float(t) ? t : t->size < 4 ? cu_basic(l->u, CU_INT) : t;
    ir_value *one = cu_is_pointer(t) ? cu_int(l, 1)
                    : cu_is_float(t) ? ir_const_float(&l->b, cu_ir_type(t), 1)
                                     : ir_const_int(&l->b, cu_ir_type(compute), 1);
    cu_value v = changed(l, t, &old, e->op, compute, one);
    cu_write(l, &p, &v);
    return e->post ? old : v;
}

static cu_value list(cu_low *l, const cu_expr *e) {
    cu_value out = cu_zero(l, e->type);
    const cu_field *f = e->type->plain->fields;
    for (uint32_t i = 0, at = 0; i < e->count; i++) {
        cu_value v = cu_lower(l, e->list[i]);
        uint32_t n = v.type->leaves;
        if (f != NULL) at = f->leaf, f = f->next;
        for (uint32_t k = 0; k < n; k++) out.v[at + k] = v.v[k], out.o[at + k] = v.o[k];
        at += n;
    }
    return out;
}

static cu_value member(cu_low *l, cu_expr *e) {
    if (e->lvalue) {
        cu_place p = cu_place_of(l, e);
        return cu_read(l, &p);
    }
    cu_value whole = cu_lower(l, e->a);
    return (cu_value){e->type->plain, whole.v + e->field->leaf, whole.o + e->field->leaf};
}

static cu_value lower(cu_low *l, cu_expr *e) {
    switch (e->kind) {
    case EX_CONSTANT: return constant(l, e);
    case EX_NULL:
        if (e->text != NULL) cu_not_yet(l->u, e->at, "strings (but for printf's format)");
        return cu_pointer(l, e->type, l->null, cu_int(l, 0));
    case EX_UNARY: return unary(l, e);
    case EX_BINARY: return binary(l, e);
    case EX_LOGICAL: return logical(l, e);
    case EX_CONDITION: return condition(l, e);
    case EX_COMMA: cu_lower(l, e->a); return cu_lower(l, e->b);
    case EX_CAST: return cast(l, e);
    case EX_ASSIGN: return assign(l, e);
    case EX_STEP: return step(l, e);
    case EX_ADDRESS: return address(l, e);
    case EX_MEMBER: return member(l, e);
    case EX_MOVE: return move(l, e);
    case EX_DISTANCE: return distance(l, e);
    case EX_CALL: return cu_lower_call(l, e);
    case EX_BUILTIN: return cu_lower_builtin(l, e);
    case EX_LIST: return list(l, e);
    case EX_VARIABLE:
    case EX_DEREF: break;
    }
    cu_place p = cu_place_of(l, e);
    return cu_read(l, &p);
}

cu_value cu_lower(cu_low *l, cu_expr *e) {
    cu_at(l, e->at);
    return lower(l, e);
}
