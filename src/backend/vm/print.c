/* The listing of decoded code, one line per instruction (SIMT_DUMP=asm). See kinds.def for what is shown. */
#include "backend/vm/vm.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name, *shows;
} kinds[] = {
#define KIND(id, name, shows, meaning) {name, shows},
#include "backend/vm/kinds.def"
#undef KIND
};

static const char *const type_names[VM_TYPES] = {"i1",  "i8",  "i16", "i32", "i64",
                                                 "f32", "f64", "f16", "bf16"};

/* Values live in the constants, in a gang's cells (scalars) and slots (vectors), or are given. */
static void print_entry(const vm_code *c, uint32_t index, strbuf *out) {
    const vm_entry *e = &c->entries[index];
    uint64_t bits = 0;
    switch ((vm_place)e->place) {
    case VM_AT_CONST:
        memcpy(&bits, c->constants + e->offset, sizeof bits);
        strbuf_printf(out, "0x%" PRIx64, bits);
        break;
    case VM_AT_CELL: strbuf_printf(out, "cell+%u", e->offset); break;
    case VM_AT_SLOT: strbuf_printf(out, "slot+%u", e->offset); break;
    case VM_AT_PARAM:
        if (e->offset < c->base.base.nparams)
            strbuf_printf(out, "param %u", e->offset);
        else
            strbuf_printf(out, "variable %u", e->offset - c->base.base.nparams);
        break;
    case VM_AT_SPECIAL: strbuf_printf(out, "%s", ir_special_names[e->offset]); break;
    case VM_AT_TID: strbuf_printf(out, "%s", ir_special_names[IR_TID_X + e->offset]); break;
    }
}

/* The operation and type of a kernel: "fadd.f32", "sext.i32.i64". */
static void print_kernel(const vm_code *c, vm_kernel kernel, strbuf *out) {
    for (int op = 0; op < IR_OP_COUNT; op++) {
        const vm_row *row = c->kernels->row[op];
        for (int t = 0; row != NULL && t < VM_ARITH_TYPES; t++)
            for (int form = 0; form < VM_FORMS; form++)
                if (row->form[t][form] == kernel) {
                    strbuf_printf(out, " %s.%s", ir_op_table[op].name, type_names[t]);
                    return;
                }
        const vm_cast_row *cast = c->kernels->cast[op];
        for (int t = 0; cast != NULL && t < VM_TYPES; t++)
            for (int to = 0; to < VM_TYPES; to++)
                if (cast[t].to[to] == kernel) {
                    strbuf_printf(out, " %s.%s.%s", ir_op_table[op].name, type_names[t],
                                  type_names[to]);
                    return;
                }
    }
    strbuf_printf(out, " ?");
}

static void print_passes(const vm_code *c, const vm_pass *list, uint32_t n, strbuf *out) {
    for (uint32_t i = 0; i < n; i++) {
        strbuf_printf(out, i > 0 ? ", " : " ");
        print_entry(c, list[i].entry, out);
    }
}

static void print_call(const vm_code *c, const vm_call *x, bool calls, strbuf *out) {
    if (calls) strbuf_printf(out, " function %u", x->function);
    print_passes(c, x->args, x->nargs, out);
    if (x->nresults > 0) strbuf_printf(out, " to");
    print_passes(c, x->results, x->nresults, out);
}

static void print_named(const vm_code *c, const vm_inst *in, strbuf *out) {
    switch ((vm_kind)in->kind) {
    case VM_ATOMIC: {
        const vm_atomic *x = &c->atomics[in->imm];
        strbuf_printf(out, " %s.%s ", ir_op_table[x->op].name, type_names[x->type]);
        print_entry(c, x->dst, out);
        strbuf_printf(out, ", ");
        print_entry(c, x->address, out);
        break;
    }
    case VM_WARP:
        strbuf_printf(out, " %s ", ir_op_table[c->warps[in->imm].op].name);
        print_entry(c, c->warps[in->imm].dst, out);
        break;
    case VM_CALL:
    case VM_RETURN: print_call(c, &c->calls[in->imm], in->kind == VM_CALL, out); break;
    case VM_FAULT: strbuf_printf(out, " %u", c->faults[in->imm].number); break;
    case VM_IF_LINEAR:
        for (const vm_compare *k = &c->compares[in->imm];; k++) {
            strbuf_printf(out, " %s ", ir_op_table[k->op].name);
            print_entry(c, k->a, out);
            strbuf_printf(out, ", ");
            print_entry(c, k->b, out);
            if (k->last) break;
            strbuf_printf(out, " and");
        }
        break;
    case VM_IOTA_ROWS:
    case VM_LOAD_ROWS:
    case VM_STORE_ROWS:
        for (int d = 0; d < 3; d++) {
            strbuf_printf(out, d > 0 ? ", " : " by ");
            if (c->rows[in->imm].step[d] != 0)
                print_entry(c, c->rows[in->imm].step[d], out);
            else
                strbuf_printf(out, "0");
        }
        break;
    default: break;
    }
}

static void print_inst(const vm_code *c, const vm_inst *in, strbuf *out) {
    const char *shows = kinds[in->kind].shows;
    strbuf_printf(out, "%5u  %s", (unsigned)(in - c->insts), kinds[in->kind].name);
    if (*shows == 'z') strbuf_printf(out, ".%u", 8u << in->size);
    const char *comma = "";
    for (; *shows != '\0'; shows++) {
        const char *at = strchr("dabc", *shows);
        uint32_t entry = at == NULL ? 0 : (uint32_t[]){in->dst, in->a, in->b, in->c}[at - "dabc"];
        switch (*shows) {
        case 'k': print_kernel(c, in->kernel, out); break;
        case 'o': strbuf_printf(out, " %s", ir_op_table[in->imm].name); break;
        case 'x': print_named(c, in, out); break;
        case 'i': strbuf_printf(out, "%s %" PRId64, comma, in->imm); break;
        case 's': strbuf_printf(out, "%s set %u", comma, in->set); break;
        case 't': strbuf_printf(out, "%s -> %u", comma, in->target); break;
        case 'z': break;
        default:
            if (entry == 0) continue; /* an operand that is not there */
            strbuf_printf(out, "%s ", comma);
            print_entry(c, entry, out);
        }
        if (strchr("koxz", *shows) == NULL) comma = ",";
    }
    if (in->line != 0) strbuf_printf(out, "  ; line %u", in->line);
    if (in->call != 0) strbuf_printf(out, " of call %u", in->call);
    strbuf_printf(out, "\n");
}

void vm_print(const code *self, strbuf *out) {
    const vm_code *c = (const vm_code *)self;
    strbuf_printf(out, "%s, %s: %u gangs of %u lanes%s, frame of %zu bytes\n", c->base.base.name,
                  c->kernels->isa, c->gangs, c->lanes, c->spreads ? " along x" : "",
                  c->base.frame_bytes);
    for (uint32_t i = 0; i < c->ninsts; i++) print_inst(c, &c->insts[i], out);
    for (uint32_t i = 0; i < c->nfunctions; i++) {
        const vm_code *called = c->functions[i];
        strbuf_printf(out, "function %u, %s: %zu bytes a call\n", i, called->base.base.name,
                      called->gang_bytes);
        for (uint32_t k = 0; k < called->ninsts; k++) print_inst(called, &called->insts[k], out);
    }
    if (c->spread != NULL) vm_print(&c->spread->base.base, out);
}
