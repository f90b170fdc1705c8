/* _core.vars_build: a small language with variables, the tests' way to kernel/vars.h: what a front end is without
 * its typing.
 *
 * vars_build(types, arguments, code) -> printed IR of a kernel (out, in) in which each thread runs the code.
 * types: a letter for each variable, i (i32) or l (i64). The first `arguments` begin as the thread's 8-byte words
 * of in; in the end all of them are in the thread's words of out. code: bytes of 8-byte numbers, statement after
 * statement, each a number of `word` and
 *   CONSTANT a number         a = number
 *   ADD, SUB, MUL, XOR a b c  a = b op c, of one type
 *   IF a b n m                where a < b (signed) the next n numbers, else the m behind them
 *   BLOCK n, LOOP n           the next n numbers; a loop goes on with its next round at their end
 *   LEAVE k                   to the end of the k-th block or loop around, from 0
 *   NEXT k                    to the next round of the k-th one, a loop
 *   RETURN
 */
#include "binding/common/binding.h"

#include "kernel/vars.h"

#include <string.h>

enum word { CONSTANT, ADD, SUB, MUL, XOR, IF, BLOCK, LOOP, LEAVE, NEXT, RETURN };
static const uint8_t operands[] = {2, 3, 3, 3, 3, 4, 1, 1, 1, 1, 0};
static const ir_op ops[] = {[ADD] = IR_ADD, [SUB] = IR_SUB, [MUL] = IR_MUL, [XOR] = IR_XOR};

typedef struct place place;
struct place { /* a construct that can be left */
    place *outer;
    vars_label end, head;
    bool is_loop;
};

typedef struct program {
    const char *types;
    uint32_t n, arguments;
    const int64_t *code;
    size_t words;
    ir_func *f;
    ir_builder b;
    vars vars;
    arena mem;
} program;

typedef struct span { /* of numbers */
    const int64_t *at, *end;
} span;

static simt_status build(program *p, span code, place *around);

/* The statement at the span's beginning, which moves behind what it is made of; false: it is none. Bodies: those
 * of an if, a block or a loop. */
static bool next_statement(const program *p, span *code, const int64_t **s, span bodies[2]) {
    const int64_t *at = *s = code->at;
    if (*at < 0 || *at > RETURN || code->end - at <= operands[*at]) return false;
    int64_t length[2] = {*at == BLOCK || *at == LOOP ? at[1]
                         : *at == IF                 ? at[3]
                                                     : 0,
                         *at == IF ? at[4] : 0};
    code->at += operands[*at] + 1;
    for (int i = 0; i < 2; i++) {
        if (length[i] < 0 || length[i] > code->end - code->at) return false;
        bodies[i] = (span){code->at, code->at + length[i]};
        code->at = bodies[i].end;
    }
    int variables = *at == CONSTANT ? 1 : *at <= XOR ? 3 : *at == IF ? 2 : 0;
    for (int i = 1; i <= variables; i++)
        if (at[i] < 0 || at[i] >= p->n) return false;
    return true;
}

/* ---- the variables that a piece of code assigns ---- */

static void find_assigned(const program *p, span code, bool *assigned) {
    const int64_t *s;
    span bodies[2];
    while (code.at < code.end && next_statement(p, &code, &s, bodies)) {
        if (*s <= XOR) assigned[s[1]] = true;
        find_assigned(p, bodies[0], assigned);
        find_assigned(p, bodies[1], assigned);
    }
}

static vars_label label_of(program *p, const span bodies[2]) {
    bool *assigned = ARENA_ARRAY(&p->mem, bool, p->n + 1);
    uint32_t *numbers = ARENA_ARRAY(&p->mem, uint32_t, p->n + 1), count = 0;
    find_assigned(p, bodies[0], assigned);
    find_assigned(p, bodies[1], assigned);
    for (uint32_t i = 0; i < p->n; i++)
        if (assigned[i]) numbers[count++] = i;
    return vars_carry(numbers, count);
}

/* ---- statements ---- */

static void build_plain(program *p, const int64_t *s) {
    vars *v = &p->vars;
    uint32_t a = (uint32_t)s[1];
    if (*s == CONSTANT) {
        vars_set(v, a, ir_const_int(&p->b, v->types[a], s[2]));
        return;
    }
    ir_value *x = vars_get(v, (uint32_t)s[2]), *y = vars_get(v, (uint32_t)s[3]);
    vars_set(v, a, ir_binary(&p->b, ops[*s], x, y));
}

static simt_status build_if(program *p, const int64_t *s, const span bodies[2], place *around) {
    vars_label end = label_of(p, bodies);
    ir_value *a = vars_get(&p->vars, (uint32_t)s[1]), *b = vars_get(&p->vars, (uint32_t)s[2]);
    vars_begin_if(&p->vars, ir_binary(&p->b, IR_LT_S, a, b), &end);
    SIMT_TRY(build(p, bodies[0], around));
    vars_else(&p->vars, &end);
    SIMT_TRY(build(p, bodies[1], around));
    vars_end(&p->vars, &end);
    return SIMT_OK;
}

static simt_status build_place(program *p, const int64_t *s, const span bodies[2], place *around) {
    place here = {.outer = around, .is_loop = *s == LOOP};
    here.end = here.head = label_of(p, bodies);
    if (here.is_loop)
        vars_begin_loop(&p->vars, &here.head, &here.end);
    else
        vars_begin_block(&p->vars, &here.end);
    SIMT_TRY(build(p, bodies[0], &here));
    vars_end(&p->vars, &here.end);
    return SIMT_OK;
}

static simt_status build_jump(program *p, const int64_t *s, place *around) {
    place *to = around;
    for (int64_t k = *s == RETURN ? INT64_MAX : s[1]; k > 0 && to->outer != NULL; k--)
        to = to->outer;
    if (*s == NEXT && !to->is_loop) return status_fail(SIMT_ERR_VALUE, "no loop");
    vars_arrive(&p->vars, *s == NEXT ? &to->head : &to->end);
    return SIMT_OK;
}

static simt_status build(program *p, span code, place *around) {
    const int64_t *s;
    span bodies[2];
    while (code.at < code.end && !vars_ended(&p->vars)) {
        if (!next_statement(p, &code, &s, bodies)) return status_fail(SIMT_ERR_VALUE, "no program");
        if (*s <= XOR)
            build_plain(p, s);
        else if (*s == IF)
            SIMT_TRY(build_if(p, s, bodies, around));
        else if (*s <= LOOP)
            SIMT_TRY(build_place(p, s, bodies, around));
        else
            SIMT_TRY(build_jump(p, s, around));
    }
    return SIMT_OK;
}

/* ---- the kernel ---- */

/* Address of the thread's word of a variable, in the memory of a parameter. */
static ir_value *word_of(program *p, uint32_t parameter, uint32_t variable) {
    ir_builder *b = &p->b;
    ir_value *block = ir_binary(b, IR_MUL, ir_special_value(b, IR_CTAID_X),
                                ir_special_value(b, IR_NTID_X)),
             *thread = ir_binary(b, IR_ADD, block, ir_special_value(b, IR_TID_X)),
             *row = ir_binary(b, IR_MUL, ir_cast(b, IR_SEXT, IR_I64, thread),
                              ir_const_int(b, IR_I64, p->n * 8)),
             *at = ir_binary(b, IR_ADD, row, ir_const_int(b, IR_I64, variable * 8));
    return ir_ptradd(b, &p->f->body.params[parameter], at);
}

static simt_status build_kernel(void *context) {
    program *p = context;
    const ir_type types[2] = {IR_PTR_GLOBAL, IR_PTR_GLOBAL};
    const span code = {p->code, p->code + p->words}, bodies[2] = {code, {NULL, NULL}};
    ir_func_add_params(p->f, types, NULL, 2);
    p->b = ir_builder_at_end(p->f, &p->f->body);
    p->vars = vars_new(&p->b, &p->mem);
    for (uint32_t i = 0; i < p->n; i++) vars_add(&p->vars, p->types[i] == 'i' ? IR_I32 : IR_I64);
    for (uint32_t i = 0; i < p->arguments; i++)
        vars_set(&p->vars, i, ir_load(&p->b, p->vars.types[i], word_of(p, 1, i), 0));
    place whole = {.end = label_of(p, bodies)}; /* return leaves it */
    vars_begin_block(&p->vars, &whole.end);
    SIMT_TRY(build(p, code, &whole));
    vars_end(&p->vars, &whole.end);
    for (uint32_t i = 0; i < p->n; i++) ir_store(&p->b, word_of(p, 0, i), vars_get(&p->vars, i), 0);
    ir_return(&p->b);
    return ir_verify(p->f);
}

static PyObject *vars_build(PyObject *module, PyObject *args) {
    program p = {0};
    Py_buffer code;
    Py_ssize_t n;
    unsigned arguments;
    if (!PyArg_ParseTuple(args, "s#Iy*", &p.types, &n, &arguments, &code)) return NULL;
    p.n = (uint32_t)n;
    p.arguments = arguments < p.n ? arguments : p.n;
    p.code = code.buf;
    p.words = (size_t)code.len / sizeof *p.code;
    p.f = ir_func_new("vars", "");
    arena_init_sure(&p.mem);
    strbuf out;
    strbuf_init(&out);
    simt_status status = p.f != NULL ? arena_run(build_kernel, &p) : SIMT_ERR_MEMORY;
    if (status == SIMT_OK) ir_print(p.f, &out);
    PyObject *text = status == SIMT_OK ? PyUnicode_FromString(strbuf_text(&out)) : binding_raise();
    strbuf_deinit(&out);
    arena_deinit(&p.mem);
    if (p.f != NULL) ir_func_free(p.f);
    PyBuffer_Release(&code);
    return text;
}

static PyMethodDef functions[] = {
    {"vars_build", vars_build, METH_VARARGS, "IR of a program with variables (for tests)."},
    {NULL}};

int binding_add_vars_test(PyObject *module) { return PyModule_AddFunctions(module, functions); }
