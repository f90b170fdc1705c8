/* The printed form.
 *
 *   kernel @name(%0: ptr.global, %1: i64 size) file "x.py" {
 *     %2: i64 = const 4607182418800017408            constants: the bits, unsigned decimal
 *     %3: i32 = special tid.x
 *     %4: i1 = lt.u %1, %2 @12:3                      position: line:column
 *     %4: i1 = lt.u %1, %2 @5:9 in 1                  in the first of the header's calls
 *     %5: f32 = load volatile.block %0                memory order and scope unless plain
 *     %7: i32 = if @0 %4 { ... br @0 %3 } else { ... br @0 %1 }
 *   }
 * Functions whose code was put inside stand between the header and its `{`, numbered from 1:
 *     call @helper file "y.py" @12:3            called from line 12 of the kernel
 *     call @inner @40:7 in 1                    called from line 40 of helper
 * Parameters by value, a struct each, whose address the kernel gets; variables, numbered from 0, behind the calls,
 * with their first bytes unless all are 0:
 *   kernel @name(%0: ptr.const struct 24 align 8)
 *     variable @counter ptr.global 4 align 4
 *     variable @table ptr.const 16 align 4 = 0000803f00000040
 * Functions that are called stand behind the kernel, in order; each begins its numbers anew, and its positions
 * are in calls of the kernel's header:
 *     %5: i64, %6: f32 = call 0 %4, %3
 *   function 0 @helper(%0: i64, %1: f32) -> i64, f32 { ... return %2, %3 }
 * Constructs are numbered in order of appearance and named by br and continue:
 *     block @0 { ... }      loop @1 (%8: i32 = %3) { ... }      if @2 %4 { ... } else { ... }
 * with their results, if any, in front: `%9: i32, %10: f32 = loop @1 (...) { ... }`.
 */
#include "ir/ir.h"

#include <ctype.h>
#include <string.h>

const char *const ir_special_names[IR_SPECIAL_COUNT] = {
    "tid.x",  "tid.y",    "tid.z",    "ctaid.x",  "ctaid.y", "ctaid.z", "ntid.x",  "ntid.y",
    "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z", "index.x", "index.y", "index.z", "laneid",
};
const char *const ir_order_names[IR_ORDER_COUNT] = {"plain",   "volatile", "relaxed",
                                                    "acquire", "release",  "acq_rel"};
const char *const ir_scope_names[IR_SCOPE_COUNT] = {"block", "device", "system"};

typedef struct printing {
    strbuf *out;
    uint32_t values, constructs;
} printing;

static uint32_t number(const ir_value *v) { return (uint32_t)(uintptr_t)v->note; }

/* Not by strbuf_printf: the printed form is the key of the cache of kernels, so each is printed. */
static void put(strbuf *out, const char *text, uint64_t n) {
    strbuf_puts(out, text);
    strbuf_put_number(out, n);
}

static void define(printing *p, ir_value *v) {
    v->note = (void *)(uintptr_t)p->values++;
    put(p->out, "%", number(v));
    strbuf_puts(p->out, ": ");
    strbuf_puts(p->out, ir_type_name(v->type));
}

static void indent(printing *p, int depth) {
    for (int i = 0; i < depth; i++) strbuf_puts(p->out, "  ");
}

static void print_args(printing *p, const ir_inst *inst) {
    for (unsigned i = 0; i < inst->nargs; i++) put(p->out, i ? ", %" : " %", number(inst->args[i]));
}

static void print_memory(printing *p, const ir_inst *inst) {
    unsigned order = IR_MEM_ORDER(inst->imm), scope = (unsigned)(inst->imm >> 8 & 255);
    if (inst->imm) strbuf_printf(p->out, " %s.%s", ir_order_names[order], ir_scope_names[scope]);
}

static void print_region(printing *p, ir_region *region, int depth);

static void print_construct(printing *p, ir_inst *inst, int depth) {
    uint32_t label = p->constructs++;
    inst->note = (void *)(uintptr_t)label;
    put(p->out, " @", label);
    if (inst->op == IR_IF) print_args(p, inst);
    if (inst->op == IR_LOOP) {
        strbuf_puts(p->out, " (");
        for (unsigned i = 0; i < inst->nargs; i++) {
            uint32_t init = number(inst->args[i]);
            if (i) strbuf_puts(p->out, ", ");
            define(p, &inst->regions[0]->params[i]);
            put(p->out, " = %", init);
        }
        strbuf_puts(p->out, ")");
    }
    strbuf_puts(p->out, " {\n");
    print_region(p, inst->regions[0], depth + 1);
    indent(p, depth);
    if (inst->op == IR_IF) {
        strbuf_puts(p->out, "} else {\n");
        print_region(p, inst->regions[1], depth + 1);
        indent(p, depth);
    }
    strbuf_puts(p->out, "}");
}

static void print_position(strbuf *out, source_pos at) {
    put(out, " @", at.line);
    put(out, ":", at.column);
    if (at.call) put(out, " in ", at.call);
}

static void print_inst(printing *p, ir_inst *inst, int depth) {
    const ir_op_info *info = &ir_op_table[inst->op];
    for (unsigned i = 0; i < inst->nresults; i++) {
        if (i) strbuf_puts(p->out, ", ");
        define(p, &inst->results[i]);
    }
    if (inst->nresults) strbuf_puts(p->out, " = ");
    strbuf_puts(p->out, info->name);
    switch (inst->op) {
    case IR_BLOCK:
    case IR_LOOP:
    case IR_IF: print_construct(p, inst, depth); break;
    case IR_CONST:
    case IR_ALLOC: put(p->out, " ", inst->imm); break;
    case IR_SPECIAL:
        strbuf_puts(p->out, " ");
        strbuf_puts(p->out, ir_special_names[inst->imm % IR_SPECIAL_COUNT]);
        break;
    case IR_FENCE:
        strbuf_puts(p->out, " ");
        strbuf_puts(p->out, ir_scope_names[inst->imm % IR_SCOPE_COUNT]);
        break;
    case IR_FAULT:
    case IR_CALL:
    case IR_VARIABLE:
        put(p->out, " ", inst->imm);
        print_args(p, inst);
        break;
    case IR_BR:
    case IR_CONTINUE:
        put(p->out, " @", (uint32_t)(uintptr_t)inst->label->note);
        print_args(p, inst);
        break;
    default:
        if (info->reads || info->writes) print_memory(p, inst);
        print_args(p, inst);
    }
    if (inst->pos.line) print_position(p->out, inst->pos);
}

static void print_region(printing *p, ir_region *region, int depth) {
    for (ir_inst *inst = region->first; inst; inst = inst->next) {
        indent(p, depth);
        print_inst(p, inst, depth);
        strbuf_puts(p->out, "\n");
    }
}

/* A name as the parser takes it: other characters (of "<lambda>", "a\"b.py") become underscores. */
static void put_name(strbuf *out, const char *name, const char *also) {
    size_t length = 0;
    for (; *name && length < 190; name++, length++) {
        bool plain = isalnum((unsigned char)*name) || strchr(also, *name);
        strbuf_add(out, plain ? name : "_", 1);
    }
    if (!length) strbuf_puts(out, "_");
}

static void print_file(strbuf *out, const char *file) {
    if (file[0] && !strpbrk(file, "\"\n")) strbuf_printf(out, " file \"%s\"", file);
}

static void print_params(printing *p, const ir_func *f) {
    const ir_region *body = &f->body;
    put_name(p->out, f->name, "_.");
    strbuf_puts(p->out, "(");
    for (uint32_t i = 0; i < body->nparams; i++) {
        if (i) strbuf_puts(p->out, ", ");
        define(p, &body->params[i]);
        if (body->params[i].is_size) strbuf_puts(p->out, " size");
        if (!body->params[i].struct_bytes) continue;
        put(p->out, " struct ", body->params[i].struct_bytes);
        put(p->out, " align ", body->params[i].struct_align);
    }
    strbuf_puts(p->out, ")");
}

static void print_body(printing *p, const ir_func *f) {
    strbuf_puts(p->out, " {\n");
    print_region(p, (ir_region *)&f->body, 1); /* writes notes only */
    strbuf_puts(p->out, "}\n");
}

static void print_function(const ir_func *f, uint32_t index, strbuf *out) {
    printing p = {out, 0, 0};
    put(out, "function ", index);
    strbuf_puts(out, " @");
    print_params(&p, f);
    for (uint32_t i = 0; i < f->nresults; i++) {
        strbuf_puts(out, i ? ", " : " -> ");
        strbuf_puts(out, ir_type_name(f->results[i]));
    }
    print_body(&p, f);
}

static void print_variable(strbuf *out, const ir_variable *v) {
    static const char digits[] = "0123456789abcdef";
    strbuf_puts(out, "\n  variable @");
    put_name(out, v->name, "_.");
    strbuf_puts(out, " ");
    strbuf_puts(out, ir_type_name(v->space));
    put(out, " ", v->bytes);
    put(out, " align ", v->align);
    if (v->init_bytes) strbuf_puts(out, " = ");
    for (uint64_t i = 0; i < v->init_bytes; i++) {
        char byte[2] = {digits[v->init[i] >> 4], digits[v->init[i] & 15]};
        strbuf_add(out, byte, 2);
    }
}

void ir_print(const ir_func *f, strbuf *out) {
    printing p = {out, 0, 0};
    strbuf_puts(out, "kernel @");
    print_params(&p, f);
    print_file(out, f->file);
    for (uint32_t i = 0; i < f->ncalls; i++) {
        strbuf_puts(out, "\n  call @");
        put_name(out, f->calls[i].function, "_.");
        print_file(out, f->calls[i].file);
        print_position(out, f->calls[i].at);
    }
    for (uint32_t i = 0; i < f->nvariables; i++) print_variable(out, &f->variables[i]);
    print_body(&p, f);
    for (uint32_t k = 0; k < f->nfunctions; k++) print_function(f->functions[k], k, out);
}
