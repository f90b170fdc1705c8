/* SIMT_DUMP: the stages of compiling on standard error.
 *
 * Its words are separated by commas: a kind of stage, and where only kernels of one name are wanted a colon and
 * that name: "ir,asm", "opt:add". A pass that changed nothing is one line that says so. */
#include "kernel/facts.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    unsigned kinds;
} words[] = {
    {"ir", DUMP_IR},           {"opt", DUMP_IR | DUMP_OPT}, /* what the first pass changes */
    {"facts", DUMP_FACTS},     {"asm", DUMP_ASM},
    {"capture", DUMP_CAPTURE}, /* no stage: why a step of Keras is not captured, told in Python */
};

/* The kinds that a word (up to a colon) means; 0: none such. */
static unsigned kinds_of(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
            return words[i].kinds;
    return 0;
}

simt_status dump_check(const char *asked) {
    for (const char *at = asked; *at != 0; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length > 0 && kinds_of(at, strcspn(at, ",:")) == 0)
            return status_fail(
                SIMT_ERR_VALUE,
                "SIMT_DUMP: there is no '%.*s', but ir, opt, facts and asm, each also of one "
                "kernel: opt:add; and capture",
                (int)(length < 100 ? length : 100), at);
        at += length;
    }
    return SIMT_OK;
}

void dump_begin(dumping *d, const char *asked, const char *kernel) {
    d->kinds = 0;
    strbuf_init(&d->shown);
    for (const char *at = asked != NULL ? asked : ""; *at != 0; at += *at == ',') {
        size_t length = strcspn(at, ","), word = strcspn(at, ",:");
        const char *name = at + word + 1;
        bool all = word == length;
        if (all ||
            (strlen(kernel) == length - word - 1 && memcmp(name, kernel, length - word - 1) == 0))
            d->kinds |= kinds_of(at, word);
        at += length;
    }
}

void dump_end(dumping *d) { strbuf_deinit(&d->shown); }

void dump_stage(const char *stage, const char *text) {
    fprintf(stderr, "; simt: %s\n%s%s", stage, text, *text != '\0' ? "\n" : "");
}

void dump_function(dumping *d, dump_kind kind, const char *stage, const ir_func *f) {
    if ((d->kinds & kind) == 0) return;
    strbuf text;
    strbuf_init(&text);
    ir_print(f, &text);
    if (kind == DUMP_OPT && strcmp(strbuf_text(&text), strbuf_text(&d->shown)) == 0)
        fprintf(stderr, "; simt: %s unchanged\n", stage);
    else
        dump_stage(stage, strbuf_text(&text));
    strbuf_deinit(&d->shown);
    d->shown = text;
}

void dump_facts(const dumping *d, const ir_func *f, const uint32_t block[3], facts_book *facts) {
    if ((d->kinds & DUMP_FACTS) == 0) return;
    facts_options options = {.small_grid = true};
    for (int i = 0; i < 3; i++) options.box[i] = options.block[i] = block[i];
    const kernel_facts *k;
    strbuf text;
    strbuf_init(&text);
    if (facts_ask(facts, f, &options, &k) == SIMT_OK) kernel_print_facts(k, &text);
    dump_stage("facts", strbuf_text(&text));
    strbuf_deinit(&text);
}
