/* Facts as text (facts.h): names of values and constructs are those of ir_print. */
#include "kernel/facts.h"

#include <inttypes.h>

typedef struct printing {
    const kernel_facts *k;
    strbuf *out;
    const char *comma;
} printing;

/* ---- the whole ---- */

static const char *const singly_names[] = {
    [FACTS_TOGETHER] = "together",
    [FACTS_SPIN_LOOP] = "singly: a loop may wait for threads of the block",
    [FACTS_CALLS] = "singly: functions that call themselves have a stack for each thread",
    [FACTS_TWO_SIDES] = "singly: barriers on both sides of an if that splits",
    [FACTS_NO_MEETING] = "singly: lanes may not meet at a warp operation",
};

/* A construct by its label, another instruction by its first result. */
static void put_inst(const kernel_facts *k, const ir_inst *in, strbuf *out) {
    if (!facts_is_construct(in) && in->nresults > 0)
        strbuf_printf(out, "%%%u = ", in->results[0].id);
    strbuf_puts(out, ir_op_table[in->op].name);
    if (facts_is_construct(in)) strbuf_printf(out, " @%u", facts_number_of(&k->places, in));
    if (in->op == IR_SPECIAL) strbuf_printf(out, " %s", ir_special_names[in->imm]);
    if (in->pos.line != 0) strbuf_printf(out, " in line %u", in->pos.line);
}

static void print_whole(const kernel_facts *k, strbuf *out) {
    const uint32_t *box = k->options.box;
    strbuf_printf(out, "facts of %s, %u x %u x %u threads\n", k->f->name, box[0], box[1], box[2]);
    strbuf_printf(out, "  threads run %s", singly_names[k->singly]);
    if (k->singly_at != NULL) {
        strbuf_puts(out, ", ");
        put_inst(k, k->singly_at, out);
    }
    strbuf_printf(out, "\n  blocks %s", k->blocks.matter ? "matter: " : "do not matter");
    if (k->blocks.matter) put_inst(k, k->blocks.at, out);
    if (k->shapes.used_small_grid) strbuf_puts(out, "\n  rests on a small grid");
    if (k->shapes.local_bytes > 0)
        strbuf_printf(out, "\n  %" PRIu64 " bytes of local memory a thread", k->shapes.local_bytes);
    strbuf_puts(out, "\n");
}

/* ---- lines ---- */

static void say(printing *p, const char *what) {
    strbuf_printf(p->out, "%s%s", p->comma, what);
    p->comma = ", ";
}

static void say_shape(printing *p, const facts_shape *s) {
    int64_t stride;
    if (s->kind == FACTS_VARYING) {
        say(p, "varies");
    } else if (s->kind == FACTS_RUN_TIME) {
        say(p, "steps of run time");
    } else if (!facts_shape_is_even(s, p->k->options.box, &stride)) {
        say(p, "steps");
        strbuf_printf(p->out, " %" PRId64 " %" PRId64 " %" PRId64, s->step[0], s->step[1],
                      s->step[2]);
    } else if (stride != 0) {
        say(p, "linear");
        strbuf_printf(p->out, " %" PRId64, stride);
    }
}

static bool says_range(const kernel_facts *k, const ir_value *v) {
    bool constant = v->inst != NULL && v->inst->op == IR_CONST;
    return ir_type_is_int(v->type) && v->type != IR_I1 && !constant &&
           facts_range_says(k->ranges[v->id], v->type);
}

static bool says_value(const kernel_facts *k, const ir_value *v) {
    return !facts_shape_is_uniform(facts_shape_of(k, v)) || says_range(k, v);
}

/* role: how the value comes about, of an instruction's result NULL */
static void print_value(printing *p, const ir_value *v, const char *role) {
    facts_range r = p->k->ranges[v->id];
    strbuf_printf(p->out, "  %%%u: %s ", v->id, ir_type_name(v->type));
    if (role != NULL)
        strbuf_puts(p->out, role);
    else
        strbuf_printf(p->out, "= %s", ir_op_table[v->inst->op].name);
    if (role == NULL && v->inst->op == IR_SPECIAL)
        strbuf_printf(p->out, " %s", ir_special_names[v->inst->imm]);
    p->comma = "  ; ";
    say_shape(p, facts_shape_of(p->k, v));
    if (says_range(p->k, v)) {
        say(p, "");
        strbuf_printf(p->out, "%" PRId64 "..%" PRId64, r.low, r.high);
    }
    strbuf_puts(p->out, "\n");
}

/* Those of which something is known but that they are uniform. */
static void print_values(printing *p, const ir_value *values, uint32_t n, const char *role) {
    for (uint32_t i = 0; i < n; i++)
        if (says_value(p->k, &values[i])) print_value(p, &values[i], role);
}

static void print_construct(printing *p, uint32_t number) {
    const facts_construct *c = &p->k->places.constructs[number];
    const facts_parting *s = &p->k->shapes.constructs[number];
    strbuf_puts(p->out, "  ");
    put_inst(p->k, c->inst, p->out);
    p->comma = "  ; ";
    if (s->splits) say(p, "splits");
    say(p, s->calm ? "calm" : "not calm");
    if (facts_escapes(c)) say(p, "escapes");
    if (c->nested) say(p, "nested");
    if (p->k->spins[number]) say(p, "spins");
    strbuf_puts(p->out, "\n");
    print_values(p, c->inst->results, c->inst->nresults, "result");
    print_values(p, c->inst->regions[0]->params, c->inst->regions[0]->nparams, "carried");
}

static const char *const meeting_names[] = {
    [FACTS_NOT_ASKED] = NULL,
    [FACTS_MEET_ALL] = "all threads meet",
    [FACTS_MEET_GROUPS] = "those of the mask meet",
    [FACTS_MEET_SOURCE] = "those that gave the mask meet",
    [FACTS_MEET_NOT] = "may not meet",
};

static void print_inst(printing *p, const ir_inst *in) {
    const facts_places *places = &p->k->places;
    uint8_t meeting = p->k->meetings != NULL ? p->k->meetings[in->number] : FACTS_NOT_ASKED;
    if (facts_is_construct(in)) {
        print_construct(p, facts_number_of(places, in));
        return;
    }
    if (facts_is_jump(in) && facts_jump_parts(places, &p->k->shapes, in))
        strbuf_printf(p->out, "  %s @%u  ; parts\n", ir_op_table[in->op].name,
                      facts_number_of(places, in->label));
    if (meeting != FACTS_NOT_ASKED) {
        strbuf_puts(p->out, "  ");
        put_inst(p->k, in, p->out);
        strbuf_printf(p->out, "  ; %s\n", meeting_names[meeting]);
    }
    print_values(p, in->results, in->nresults, NULL);
}

void kernel_print_facts(const kernel_facts *facts, strbuf *out) {
    printing p = {.k = facts, .out = out};
    print_whole(facts, out);
    print_values(&p, facts->f->body.params, facts->f->body.nparams, "parameter");
    for (uint32_t i = 0; i < facts->places.ninsts; i++) print_inst(&p, facts->places.insts[i].inst);
}
