/* Calls of what the language brings along, coordinates of threads, make_float4 and its kin. */
#include "frontend/cuda/lower.h"
#include "kernel/prints.h"

#include <string.h>

typedef enum how {
    HOW_UNARY,
    HOW_BINARY,
    HOW_FMA,
    HOW_LDEXP,
    HOW_ROUND,
    HOW_FDIM,
    HOW_ABS,
    HOW_MINMAX,
    HOW_ISNAN,
    HOW_ISINF,
    HOW_ISFINITE,
    HOW_SIGNBIT,
    HOW_SINCOS,
    HOW_NORMCDF,
    HOW_SATURATE,
    HOW_COUNT,
    HOW_FFS,
    HOW_MUL24,
    HOW_BITS,
    HOW_ROUNDED,
    HOW_SAME,
    HOW_BARRIER,
    HOW_BARRIER_OF,
    HOW_FENCE,
    HOW_SYNCWARP,
    HOW_ACTIVEMASK,
    HOW_SHUFFLE,
    HOW_VOTE,
    HOW_ATOMIC,
    HOW_ATOMIC_SUB,
    HOW_CAS,
    HOW_LOAD,
    HOW_ASSERT,
    HOW_TRAP,
    HOW_PRINTF
} how;

typedef struct builtin {
    const char *name, *result, *parameters;
    how how;
    ir_op op;
} builtin;

static const builtin builtins[] = {
#define BUILTIN(name, result, parameters, how, op) {name, result, parameters, HOW_##how, IR_##op},
#include "frontend/cuda/builtins.def"
#undef BUILTIN
};
enum { COUNT = sizeof builtins / sizeof *builtins };

static bool has_name(uint32_t i, const char *name, size_t n) {
    return strncmp(builtins[i].name, name, n) == 0 && builtins[i].name[n] == 0;
}

bool cu_find_builtin(cuda_unit *u, const cu_name *name, uint32_t *number) {
    size_t n = name->length;
    bool make = n > 6 && memcmp(name->text, "make_", 5) == 0;
    *number = COUNT;
    if (make && cu_vector_type(u, cu_name_of(u, name->text + 5, n - 5)) != NULL) return true;
    if (n > 6 && memcmp(name->text, "atomic", 6) == 0) { /* all are of the whole device */
        static const char *const ends[] = {"_block", "_system"};
        for (int i = 0; i < 2; i++) {
            size_t end = strlen(ends[i]);
            if (n > end && strcmp(name->text + n - end, ends[i]) == 0) n -= end;
        }
    }
    for (uint32_t i = 0; i < COUNT; i++)
        if (has_name(i, name->text, n)) return *number = i, true;
    return false;
}

/* ---- types of a call ---- */

typedef struct call {
    cuda_unit *u;
    const builtin *of;
    const cu_token *at;
    cu_expr **args;
    uint32_t n;
    const cu_type *common; /* of the letters g, a, n, s, t */
} call;

static const cu_type *letter_type(const call *c, char letter) {
    static const char letters[] = "vfdiulLb";
    static const cu_kind kinds[] = {CU_VOID, CU_FLOAT, CU_DOUBLE, CU_INT,
                                    CU_UINT, CU_LLONG, CU_ULLONG, CU_BOOL};
    const char *found = strchr(letters, letter);
    if (found != NULL) return cu_basic(c->u, kinds[found - letters]);
    return letter == 'w' ? cu_basic(c->u, CU_INT) : c->common;
}

static void need(const call *c, bool fine, const cu_expr *a, const char *what) {
    if (!fine)
        cu_fail(c->u, a->at, "%s: %s is expected, not %s", c->of->name, what,
                cu_type_text(c->u, a->type));
}

/* min and max have forms for int, long long, their unsigned ones, float and double. */
static const cu_type *joined(const call *c, const cu_type *a, const cu_type *b) {
    if (a == NULL) return b->plain;
    return cu_common(c->u, a, b);
}

static void find_common(call *c, char letter, const cu_expr *a) {
    const cu_type *t = a->type;
    if (letter == 'g' || letter == 'a' || letter == 'n' || letter == 's')
        need(c, cu_is_number(t), a, "a number");
    if (letter == 'g') {
        bool single = t->kind == CU_FLOAT && (c->common == NULL || c->common->kind == CU_FLOAT);
        c->common = cu_basic(c->u, single ? CU_FLOAT : CU_DOUBLE);
    } else if (letter == 'a' || letter == 'n') {
        c->common =
            joined(c, c->common, cu_is_integer(t) && t->kind < CU_INT ? cu_basic(c->u, CU_INT) : t);
    } else if (letter == 's') {
        c->common = t->size < 4 ? cu_basic(c->u, CU_INT) : t->plain;
    } else if (letter == 'p' || letter == 'q') {
        need(c, cu_is_pointer(t) && (cu_is_number(t->of) || letter == 'q'), a,
             "a pointer to numbers");
        if (letter == 'p' && t->of->is_const)
            cu_fail(c->u, a->at, "%s writes, and the pointer is const", c->of->name);
        c->common = t->of->plain;
    }
}

static void find_types(call *c) {
    const char *p = c->of->parameters;
    uint32_t most = (uint32_t)strlen(p), least = most - (most > 0 && p[most - 1] == 'w');
    if (c->n < least || c->n > most)
        cu_fail(c->u, c->at, "%s takes %u argument%s, and %u are given", c->of->name, least,
                least == 1 ? "" : "s", c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        c->args[i] = cu_rvalue(c->u, c->args[i]);
        if (p[i] != 't' || c->common == NULL) find_common(c, p[i], c->args[i]);
    }
}

/* Which types an atomic operation has: CUDA's guide, atomic functions. */
static void check_atomic(const call *c) {
    const cu_type *t = c->common;
    bool wide = t->size == 8, is_float = cu_is_float(t), small = t->size < 4;
    bool fine = !small;
    if (c->of->how == HOW_CAS && t->size == 2) cu_not_yet(c->u, c->at, "atomicCAS of 16 bits");
    if (is_float) fine = c->of->op == IR_ATOMIC_ADD || (c->of->op == IR_ATOMIC_EXCH && !wide);
    if (c->of->op == IR_ATOMIC_INC || c->of->op == IR_ATOMIC_DEC) fine = t->kind == CU_UINT;
    if (is_float && c->of->how == HOW_ATOMIC_SUB) fine = false;
    if (!fine) cu_fail(c->u, c->at, "%s has no form for %s", c->of->name, cu_type_text(c->u, t));
}

static cu_expr *make_vector(cuda_unit *u, const cu_token *at, cu_expr **args, uint32_t n) {
    const cu_type *t = cu_vector_type(u, cu_name_of(u, at->name->text + 5, at->name->length - 5));
    uint32_t most = t->leaves;
    if (n != most)
        cu_fail(u, at, "%s takes %u arguments, and %u are given", at->name->text, most, n);
    cu_expr *e = cu_new_expr(u, EX_LIST, at, t);
    e->list = args;
    e->count = n;
    for (uint32_t i = 0; i < n; i++)
        args[i] = cu_convert(u, args[i], t->fields->type, "an argument");
    return e;
}

/* ---- printf ---- */

enum { MOST_PRINTED = 32 };

typedef struct printing {
    cuda_unit *u;
    const cu_token *at;
    cu_expr **args;
    uint32_t n, used; /* arguments */
    strbuf text;
    kernel_print *print;
} printing;

static void end_text(printing *p) {
    p->print->texts[p->print->nvalues] = arena_strdup(&p->u->mem, strbuf_text(&p->text));
    p->text.length = 0;
    if (p->text.text != NULL) p->text.text[0] = 0;
}

static cu_expr *next_argument(printing *p, const char *of, int length) {
    if (p->used == p->n) cu_fail(p->u, p->at, "printf: there is no argument for %.*s", length, of);
    return cu_rvalue(p->u, p->args[p->used++]);
}

static void add_value(printing *p, cu_expr *e, const cu_type *as, const char *style) {
    if (p->print->nvalues == MOST_PRINTED)
        cu_fail(p->u, p->at, "printf of more than %d values", MOST_PRINTED);
    end_text(p);
    p->args[p->print->nvalues] = cu_cast(p->u, e, as);
    p->print->values[p->print->nvalues++] = (kernel_shown){.type = DT_I64, .style = style};
}

/* The type that an integer is shown as: what h, l, ll and the letter say. */
static const cu_type *shown_type(cuda_unit *u, const char *size, size_t n, bool no_sign) {
    bool half = n == 1 && *size == 'h', quarter = n == 2 && *size == 'h';
    cu_kind kind = quarter ? CU_SCHAR : half ? CU_SHORT : n > 0 ? CU_LLONG : CU_INT;
    return cu_basic(u, no_sign ? (cu_kind)(kind + 1) : kind);
}

/* From % on; returns behind it. */
static const char *add_style(printing *p, const char *f) {
    const char *begin = f++;
    f += strspn(f, "-+ #0");
    size_t wide = strspn(f, "0123456789"), exact = 0;
    f += wide;
    if (*f == '.') f += 1 + (exact = strspn(f + 1, "0123456789"));
    const char *size = f;
    f += strspn(f, "hlLjzt");
    char how = *f++;
    int length = (int)(f - begin), before = (int)(size - begin);
    if (how == 0 || wide > 3 || exact > 3 || before > 12 ||
        strchr("diuxXocfFeEgGaAsp", how) == NULL)
        cu_fail(p->u, p->at, "printf: '%.*s' is none of its conversions",
                how == 0 ? length - 1 : length, begin);
    cu_expr *e = next_argument(p, begin, length);
    arena *mem = &p->u->mem;
    if (how == 's') {
        if (e->text == NULL || before > 1)
            cu_not_yet(p->u, e->at, "%s of anything but a string itself");
        strbuf_puts(&p->text, e->text);
    } else if (strchr("fFeEgGaA", how) != NULL) {
        if (!cu_is_float(e->type))
            cu_fail(p->u, e->at, "printf: %.*s of %s", length, begin, cu_type_text(p->u, e->type));
        add_value(p, e, cu_basic(p->u, CU_DOUBLE), arena_printf(mem, "%.*s%c", before, begin, how));
    } else if (how == 'p') {
        if (!cu_is_pointer(e->type))
            cu_fail(p->u, e->at, "printf: %%p of %s", cu_type_text(p->u, e->type));
        strbuf_puts(&p->text, "0x");
        add_value(p, e, cu_basic(p->u, CU_ULONG), "%llx");
    } else {
        if (!cu_is_integer(e->type))
            cu_fail(p->u, e->at, "printf: %.*s of %s", length, begin, cu_type_text(p->u, e->type));
        const cu_type *as =
            shown_type(p->u, size, (size_t)(f - 1 - size), strchr("uxXo", how) != NULL);
        add_value(p, e, as,
                  arena_printf(mem, how == 'c' ? "%.*s%c" : "%.*sll%c", before, begin, how));
    }
    return f;
}

static cu_expr *call_printf(cuda_unit *u, uint32_t number, const cu_token *at, cu_expr **args,
                            uint32_t n) {
    const char *f = n > 0 ? args[0]->text : NULL;
    if (f == NULL) cu_fail(u, at, "printf: its format must be a string");
    printing p = {.u = u, .at = at, .args = args + 1, .n = n - 1, .print = CU_NEW(u, kernel_print)};
    p.print->texts = CU_ARRAY(u, const char *, MOST_PRINTED + 1);
    p.print->values = CU_ARRAY(u, kernel_shown, MOST_PRINTED);
    strbuf_init_in(&p.text, &u->mem);
    while (*f != 0) {
        bool two = f[0] == '%' && f[1] == '%';
        if (*f == '%' && !two) {
            f = add_style(&p, f);
            continue;
        }
        strbuf_add(&p.text, f, 1);
        f += 1 + two;
    }
    end_text(&p);
    if (p.used < p.n)
        cu_fail(u, args[p.used + 1]->at, "printf: the format has no place for this argument");
    u->prints = true;
    cu_expr *e = cu_new_expr(u, EX_BUILTIN, at, cu_basic(u, CU_INT));
    e->op = number;
    e->list = args + 1;
    e->count = p.print->nvalues;
    e->print = p.print;
    return e;
}

cu_expr *cu_call_builtin(cuda_unit *u, uint32_t number, const cu_token *at, cu_expr **args,
                         uint32_t n) {
    if (number == COUNT) return make_vector(u, at, args, n);
    const builtin *b = &builtins[number];
    if (b->how == HOW_PRINTF) return call_printf(u, number, at, args, n);
    if (b->how == HOW_SYNCWARP && n == 1)
        n = 0, args[0] = cu_convert(u, args[0], cu_basic(u, CU_UINT), "the mask");
    else if (b->how == HOW_SYNCWARP && n == 0)
        args[0] = cu_constant(u, at, cu_basic(u, CU_UINT), 0xffffffffu);
    call c = {.u = u, .of = b, .at = at, .args = args, .n = n};
    find_types(&c);
    if (b->how == HOW_ATOMIC || b->how == HOW_ATOMIC_SUB || b->how == HOW_CAS) check_atomic(&c);
    cu_expr *e = cu_new_expr(u, EX_BUILTIN, at, letter_type(&c, b->result[0])->plain);
    e->op = number;
    e->list = args;
    e->count = b->how == HOW_SYNCWARP ? 1 : n;
    e->compute = c.common;
    for (uint32_t i = 0; i < n; i++) {
        char letter = b->parameters[i];
        if (letter == 'p' || letter == 'q') continue;
        args[i] = cu_convert(u, args[i], letter_type(&c, letter),
                             arena_printf(&u->mem, "argument %u of %s", i + 1, b->name));
    }
    return e;
}

/* ---- coordinates ---- */

cu_expr *cu_parse_coordinate(cuda_unit *u) {
    static const struct {
        const char *name;
        ir_special first;
    } names[] = {{"threadIdx", IR_TID_X},
                 {"blockIdx", IR_CTAID_X},
                 {"blockDim", IR_NTID_X},
                 {"gridDim", IR_NCTAID_X}};
    const cu_token *t = cu_now(u);
    if (t->name->symbol != NULL) return NULL;
    if (strcmp(t->name->text, "warpSize") == 0)
        return cu_constant(u, cu_take(u), cu_basic(u, CU_INT), IR_WARP_SIZE);
    for (int i = 0; i < 4; i++) {
        if (strcmp(t->name->text, names[i].name) != 0) continue;
        u->at++;
        cu_expect(u, '.', arena_printf(&u->mem, "behind %s", names[i].name));
        const cu_token *m = cu_take(u);
        bool axis = m->kind == TK_NAME && m->length == 1 && m->text[0] >= 'x' && m->text[0] <= 'z';
        if (!axis) cu_fail(u, m, "%s has the members x, y and z", names[i].name);
        cu_expr *e = cu_new_expr(u, EX_BUILTIN, t, cu_basic(u, CU_UINT));
        e->op = COUNT + (uint32_t)names[i].first + (uint32_t)(m->text[0] - 'x');
        return e;
    }
    return NULL;
}

/* ---- IR ---- */

typedef struct emit {
    cu_low *l;
    const builtin *of;
    cu_expr *e;
    ir_value *v[4];
    ir_type type; /* of the first argument */
} emit;

static ir_value *number_of(emit *m, double d) { return ir_const_float(&m->l->b, m->type, d); }

/* Halves away from 0: trunc(|x| + 1/2) rounds 0.49999997 up, so the part that is cut off is looked at. */
static ir_value *build_round(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value *size = ir_unary(b, IR_FABS, m->v[0]), *whole = ir_unary(b, IR_FTRUNC, size);
    ir_value *rest = ir_binary(b, IR_FSUB, size, whole);
    ir_value *up = ir_binary(b, IR_FLE, number_of(m, 0.5), rest);
    ir_value *more = ir_binary(b, IR_FADD, whole, number_of(m, 1));
    return ir_binary(b, IR_FCOPYSIGN, ir_select(b, up, more, whole), m->v[0]);
}

static ir_value *build_fdim(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value *less = ir_binary(b, IR_FLE, m->v[0], m->v[1]);
    return ir_select(b, less, number_of(m, 0), ir_binary(b, IR_FSUB, m->v[0], m->v[1]));
}

static ir_value *build_abs(emit *m) {
    const cu_type *t = m->e->type;
    if (cu_is_float(t)) return ir_unary(&m->l->b, IR_FABS, m->v[0]);
    return cu_is_unsigned(t) ? m->v[0] : ir_unary(&m->l->b, IR_ABS, m->v[0]);
}

static ir_value *build_minmax(emit *m) {
    const cu_type *t = m->e->type;
    bool least = m->of->op == IR_MIN_S;
    ir_op op = cu_is_float(t)      ? least ? IR_FMIN_NUM : IR_FMAX_NUM
               : cu_is_unsigned(t) ? least ? IR_MIN_U : IR_MAX_U
                                   : m->of->op;
    return ir_binary(&m->l->b, op, m->v[0], m->v[1]);
}

static ir_value *build_test(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value *x = m->v[0];
    if (m->of->how == HOW_ISNAN) return ir_binary(b, IR_FNE, x, x);
    if (m->of->how == HOW_SIGNBIT) {
        ir_type bits = m->type == IR_F32 ? IR_I32 : IR_I64;
        return ir_binary(b, IR_LT_S, ir_cast(b, IR_BITCAST, bits, x), ir_const_int(b, bits, 0));
    }
    ir_value *most = number_of(m, __builtin_inf());
    return ir_binary(b, m->of->op, ir_unary(b, IR_FABS, x), most);
}

static ir_value *build_normcdf(emit *m) { /* erfc(-x / sqrt(2)) / 2 */
    ir_builder *b = &m->l->b;
    ir_value *x = ir_binary(b, IR_FMUL, m->v[0], number_of(m, -0.70710678118654752440));
    return ir_binary(b, IR_FMUL, ir_unary(b, IR_ERFC, x), number_of(m, 0.5));
}

static ir_value *build_ffs(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value *zero = ir_const_int(b, m->type, 0), *one = ir_const_int(b, m->type, 1);
    ir_value *place = ir_binary(b, IR_ADD, ir_unary(b, IR_CTZ, m->v[0]), one);
    ir_value *n = ir_select(b, ir_binary(b, IR_EQ, m->v[0], zero), zero, place);
    return m->type == IR_I32 ? n : ir_cast(b, IR_TRUNC, IR_I32, n);
}

static ir_value *build_mul24(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value *eight = ir_const_int(b, IR_I32, 8), *cut[2];
    for (int i = 0; i < 2; i++)
        cut[i] = ir_binary(b, m->of->op, ir_binary(b, IR_SHL, m->v[i], eight), eight);
    return ir_binary(b, IR_MUL, cut[0], cut[1]);
}

static ir_value *build_rounded(emit *m) {
    const cu_type *from = m->e->list[0]->type;
    return cu_convert_number(m->l, from, m->e->type, ir_unary(&m->l->b, m->of->op, m->v[0]));
}

static ir_value *build_shuffle(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value *width = m->e->count == 4 ? m->v[3] : ir_const_int(b, IR_I32, IR_WARP_SIZE);
    return ir_shfl(b, m->of->op, m->v[1], m->v[2], m->v[0], width);
}

static ir_value *build_vote(emit *m) {
    ir_value *v = ir_vote(&m->l->b, m->of->op, m->v[1], m->v[0]);
    return v->type == IR_I1 ? ir_cast(&m->l->b, IR_ZEXT, IR_I32, v) : v;
}

static ir_value *build_assert(emit *m, bool always) {
    cu_low *l = m->l;
    kernel_fault f = {.kind = KERNEL_FAULT_ASSERT,
                      .argument = -1,
                      .text = always ? "__trap()" : "assertion failed"};
    vars_label end = vars_carry(NULL, 0);
    vars_begin_if(&l->vars, always ? ir_const_bits(&l->b, IR_I1, 0) : m->v[0], &end);
    vars_else(&l->vars, &end);
    ir_fault(&l->b, cu_add_fault(l, m->e->at, &f), NULL, 0);
    vars_end(&l->vars, &end);
    return NULL;
}

static ir_value *word_of(cu_low *l, cu_expr *e) {
    ir_value *v = cu_lower_one(l, e);
    if (v->type == IR_F64) return ir_cast(&l->b, IR_BITCAST, IR_I64, v);
    return v->type == IR_I64
               ? v
               : ir_cast(&l->b, cu_is_unsigned(e->type) ? IR_ZEXT : IR_SEXT, IR_I64, v);
}

static cu_value build_printf(cu_low *l, const cu_expr *e) {
    enum { MOST_FORMATS = 256 };
    kernel *k = l->k;
    ir_value *words[MOST_PRINTED];
    for (uint32_t i = 0; i < e->count; i++) words[i] = word_of(l, e->list[i]);
    if (k->nprints == MOST_FORMATS)
        cu_fail(l->u, e->at, "more than %d calls of printf", MOST_FORMATS);
    if (k->prints == NULL) k->prints = ARENA_ARRAY(l->mem, kernel_print, MOST_FORMATS);
    k->prints[k->nprints] = *e->print;
    cu_at(l, e->at);
    print_emit(&l->b, l->print_buffer, k->nprints++, words, e->count);
    return cu_one(l, e->type, ir_const_int(&l->b, IR_I32, e->count));
}

/* ---- memory ---- */

typedef struct atomic {
    ir_op op;
    ir_value *v, *w;
} atomic;

static ir_value *build_atomic(cu_low *l, ir_value *pointer, void *context) {
    const atomic *a = context;
    return ir_atomic(&l->b, a->op, pointer, a->v, a->w, IR_MEM(IR_RELAXED, IR_SCOPE_DEVICE));
}

static ir_op atomic_op(const cu_type *t, ir_op op) {
    if (op == IR_ATOMIC_ADD && cu_is_float(t)) return IR_ATOMIC_FADD;
    if (op == IR_ATOMIC_MIN_S && cu_is_unsigned(t)) return IR_ATOMIC_MIN_U;
    return op == IR_ATOMIC_MAX_S && cu_is_unsigned(t) ? IR_ATOMIC_MAX_U : op;
}

static ir_value *build_atomic_call(emit *m) {
    cu_low *l = m->l;
    const cu_type *t = m->e->compute;
    cu_value p = cu_lower(l, m->e->list[0]);
    atomic a = {atomic_op(t, m->of->op), cu_lower_one(l, m->e->list[1]), NULL};
    if (m->of->how == HOW_CAS) a.w = cu_lower_one(l, m->e->list[2]);
    if (m->of->how == HOW_ATOMIC_SUB)
        a.v = ir_binary(&l->b, IR_SUB, ir_const_int(&l->b, a.v->type, 0), a.v);
    cu_mark_written(l, p.o[0]);
    return cu_access(l, m->e->at, p.o[0], p.v[0], (uint32_t)t->size, cu_ir_type(t), build_atomic,
                     &a);
}

static cu_place pointed(cu_low *l, cu_expr *e, const cu_token *at) {
    cu_value p = cu_lower(l, e);
    return (cu_place){.type = e->type->of, .origin = p.o[0], .offset = p.v[0], .at = at};
}

static void build_sincos(emit *m) {
    for (int i = 0; i < 2; i++) {
        cu_place p = pointed(m->l, m->e->list[i + 1], m->e->at);
        ir_value *v = ir_unary(&m->l->b, i == 0 ? IR_SIN : IR_COS, m->v[0]);
        const cu_type *from = m->e->list[0]->type;
        cu_value out = cu_one(m->l, p.type, cu_convert_number(m->l, from, p.type, v));
        cu_write(m->l, &p, &out);
    }
}

static ir_value *simple(emit *m) {
    ir_builder *b = &m->l->b;
    ir_value **v = m->v;
    switch (m->of->how) {
    case HOW_UNARY: return ir_unary(b, m->of->op, v[0]);
    case HOW_BINARY: return ir_binary(b, m->of->op, v[0], v[1]);
    case HOW_FMA: return ir_ternary(b, IR_FMA, v[0], v[1], v[2]);
    case HOW_LDEXP: return ir_binary(b, IR_LDEXP, v[0], v[1]);
    case HOW_ROUND: return build_round(m);
    case HOW_FDIM: return build_fdim(m);
    case HOW_ABS: return build_abs(m);
    case HOW_MINMAX: return build_minmax(m);
    case HOW_ISNAN:
    case HOW_ISINF:
    case HOW_ISFINITE:
    case HOW_SIGNBIT: return build_test(m);
    case HOW_NORMCDF: return build_normcdf(m);
    case HOW_SATURATE:
        return ir_binary(b, IR_FMIN_NUM, ir_binary(b, IR_FMAX_NUM, v[0], number_of(m, 0)),
                         number_of(m, 1));
    case HOW_COUNT: return ir_cast(b, IR_TRUNC, IR_I32, ir_unary(b, m->of->op, v[0]));
    case HOW_FFS: return build_ffs(m);
    case HOW_MUL24: return build_mul24(m);
    case HOW_BITS: return ir_cast(b, IR_BITCAST, cu_ir_type(m->e->type), v[0]);
    case HOW_ROUNDED: return build_rounded(m);
    case HOW_SAME: return cu_convert_number(m->l, m->e->list[0]->type, m->e->type, v[0]);
    case HOW_BARRIER: ir_barrier(b); return NULL;
    case HOW_BARRIER_OF: return ir_barrier_reduce(b, m->of->op, v[0]);
    case HOW_FENCE: ir_fence(b, IR_SCOPE_DEVICE); return NULL;
    case HOW_SYNCWARP: ir_syncwarp(b, v[0]); return NULL;
    case HOW_ACTIVEMASK: return ir_activemask(b);
    case HOW_SHUFFLE: return build_shuffle(m);
    case HOW_VOTE: return build_vote(m);
    case HOW_SINCOS: build_sincos(m); return NULL;
    case HOW_ASSERT: return build_assert(m, false);
    default: return build_assert(m, true);
    }
}

cu_value cu_lower_builtin(cu_low *l, cu_expr *e) {
    if (e->op >= COUNT)
        return cu_one(l, e->type, ir_special_value(&l->b, (ir_special)(e->op - COUNT)));
    emit m = {.l = l, .of = &builtins[e->op], .e = e};
    how h = m.of->how;
    if (h == HOW_ATOMIC || h == HOW_ATOMIC_SUB || h == HOW_CAS)
        return cu_one(l, e->type, build_atomic_call(&m));
    if (h == HOW_PRINTF) return build_printf(l, e);
    if (h == HOW_LOAD) {
        cu_place p = pointed(l, e->list[0], e->at);
        return cu_read(l, &p);
    }
    for (uint32_t i = 0; i < e->count && i < 4 && !(h == HOW_SINCOS && i > 0); i++)
        m.v[i] = cu_lower_one(l, e->list[i]);
    if (m.v[0] != NULL) m.type = m.v[0]->type;
    cu_at(l, e->at);
    ir_value *v = simple(&m);
    return e->type->kind == CU_VOID ? (cu_value){.type = e->type} : cu_one(l, e->type, v);
}
