/* The pipeline: verify -> optimise -> back end. One page, on purpose.
 *
 * In: a function of a front end or of the graph. Out: a counted kernel, from the cache where an equal
 * function was compiled before. SIMT_VERIFY=1 (and every debug build) verifies between the passes;
 * SIMT_DUMP=ir,opt,facts,asm shows stages (dump.c): the function as it came, after each pass, what is known of
 * it then (kernel/facts.h), the back end's listing.
 */
#include "base/heap.h"
#include "opt/opt.h"
#include "runtime/internal.h"

#include <string.h>

static void after_pass(void *context, const char *pass, const ir_func *f) {
    dump_function(context, DUMP_OPT, pass, f);
}

static void dump_listing(const dumping *d, const runtime_kernel *k) {
    if ((d->kinds & DUMP_ASM) == 0) return;
    strbuf text;
    strbuf_init(&text);
    runtime_print(k, &text);
    dump_stage(k->backend->name, strbuf_text(&text));
    strbuf_deinit(&text);
}

static simt_status run_stages(simt_runtime *rt, ir_func *f, const runtime_compile_options *options,
                              dumping *d, runtime_kernel *out) {
    opt_options o = {.contract = options->contract,
                     .verify = rt->verify,
                     .wishes = &out->target->backends[0]->wishes,
                     .after = after_pass,
                     .context = d};
    backend_options b = {.block = {options->block[0], options->block[1], options->block[2]}};
    dump_function(d, DUMP_IR, "ir", f);
    if (rt->verify) {
        SIMT_TRY(ir_verify(f));
        if (d->kinds & DUMP_OPT) dump_stage("verify", "");
    }
    SIMT_TRY(opt_run(f, &o));
    ir_func_renumber(f);
    facts_book facts;
    facts_open(&facts);
    dump_facts(d, f, options->block, &facts);
    simt_status status = target_compile(out->target, f, &facts, &b, &out->code, &out->backend);
    facts_forget(&facts);
    if (status == SIMT_OK) dump_listing(d, out);
    return status;
}

/* Fills the kernel's code. */
static simt_status compile(simt_runtime *rt, ir_func *f, const runtime_compile_options *options,
                           runtime_kernel *out) {
    dumping d;
    dump_begin(&d, rt->dump, f->name);
    simt_status status = run_stages(rt, f, options, &d, out);
    dump_end(&d);
    return status;
}

static uint64_t key_of(const ir_func *f, const runtime_compile_options *o) {
    uint64_t key = ir_hash(f);
    for (int i = 0; i < 3; i++) key = (key ^ o->block[i]) * 0x9E3779B97F4A7C15u;
    return key ^ o->contract ^ (uintptr_t)o->target ^ key >> 29;
}

static simt_status find_or_compile(simt_runtime *rt, ir_func *f,
                                   const runtime_compile_options *options, const char *text,
                                   runtime_kernel **out) {
    uint64_t key = key_of(f, options);
    *out = cache_find(rt, key, text, options);
    if (*out != NULL) return SIMT_OK;
    cache_entry *e = heap_zeroed(1, sizeof *e);
    if (e == NULL || (e->text = heap_text(text)) == NULL) {
        heap_free(e);
        return status_fail(SIMT_ERR_MEMORY, "out of memory");
    }
    e->options = *options;
    e->kernel = (runtime_kernel){.refs = 1, .key = key, .target = options->target};
    simt_status status = compile(rt, f, options, &e->kernel);
    if (status != SIMT_OK) {
        heap_free(e->text);
        heap_free(e);
        return status;
    }
    *out = cache_keep(rt, e);
    return SIMT_OK;
}

static simt_status check_depth(const ir_func *f) {
    unsigned depth = ir_func_depth(f);
    if (depth <= IR_MOST_DEPTH) return SIMT_OK;
    return status_fail(SIMT_ERR_UNSUPPORTED,
                       "kernel %s: its ifs and loops are nested %u deep, more than the limit of %d",
                       f->name, depth, IR_MOST_DEPTH);
}

simt_status runtime_compile(simt_runtime *rt, ir_func *f, const runtime_compile_options *options,
                            runtime_kernel **out) {
    runtime_compile_options o = *options;
    if (o.target == NULL) o.target = rt->target;
    simt_status status = check_depth(f);
    if (status != SIMT_OK) {
        ir_func_free(f);
        return status;
    }
    strbuf text;
    strbuf_init(&text);
    ir_print(f, &text);
    if (text.failed)
        status = status_fail(SIMT_ERR_MEMORY, "out of memory");
    else
        status = find_or_compile(rt, f, &o, strbuf_text(&text), out);
    if (status == SIMT_ERR_MEMORY) status_prefix("kernel %s: ", f->name);
    strbuf_deinit(&text);
    ir_func_free(f);
    return status;
}

void runtime_print(const runtime_kernel *k, strbuf *out) {
    if (k->backend->print != NULL) k->backend->print(k->code, out);
}

void runtime_kernel_ref(runtime_kernel *k) { __atomic_fetch_add(&k->refs, 1, __ATOMIC_RELAXED); }

void runtime_kernel_unref(runtime_kernel *k) {
    if (k == NULL || __atomic_fetch_sub(&k->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
    cache_entry *e = (cache_entry *)k;
    k->code->destroy(k->code);
    heap_free(e->text);
    heap_free(e);
}

const char *runtime_kernel_text(const runtime_kernel *k) { return ((const cache_entry *)k)->text; }
