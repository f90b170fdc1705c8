/* The driver: typing to a fixpoint, lowering; functions called inside. */
#include "base/heap.h"
#include "frontend/python/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CALLS = 60, MOST_OF_ONE = 16, MOST_ROUNDS = 20 };

/* ---- memory and errors ---- */

void *py_alloc(py_ctx *c, size_t bytes) {
    return arena_alloc(c->mem, bytes > 0 ? bytes : 1); /* a sure one */
}

void *py_grow(py_ctx *c, void *items, uint32_t count, size_t size) {
    bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!full) return items;
    void *grown = py_alloc(c, size * (count == 0 ? 8 : 2 * (size_t)count));
    if (count > 0) memcpy(grown, items, size * count);
    return grown;
}

static void set_position(py_ctx *c, const py_node *at) {
    const py_frame *f = c->frame;
    if (at == NULL) return;
    if (f == NULL || f->caller == NULL) {
        status_set_position(f != NULL ? f->fn->file : "", (int)at->line, (int)at->column);
        return;
    }
    status_set_called(f->fn->name, f->fn->file, (int)at->line, (int)at->column);
    for (; f->caller != NULL; f = f->caller)
        status_add_caller(f->caller->fn->name, f->caller->fn->file, (int)f->called_at->line,
                          (int)f->called_at->column);
}

source_pos py_pos(const py_ctx *c, const py_node *at) {
    uint32_t column = at->column <= SOURCE_MOST_COLUMNS ? at->column : 0;
    return (source_pos){.line = at->line, .column = (uint16_t)column, .call = c->frame->call};
}

bool py_fail(py_ctx *c, const py_node *at, const char *format, ...) {
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->status = status_fail(SIMT_ERR_TYPING, "%s", text);
    set_position(c, at);
    return false;
}

bool py_pass_failure(py_ctx *c, const py_node *at, simt_status status) {
    c->status = status;
    if (status_get()->line == 0) set_position(c, at);
    return false;
}

uint32_t py_add_fault(py_ctx *c, const py_node *at, const kernel_fault *fault) {
    if (!c->emit) return 0;
    c->faults = py_grow(c, c->faults, c->nfaults, sizeof *c->faults);
    kernel_fault *f = &c->faults[c->nfaults];
    *f = *fault;
    f->pos = py_pos(c, at);
    return c->nfaults++;
}

/* ---- variables ---- */

static uint64_t mixed(uint64_t hash, uint64_t more) {
    hash = (hash ^ more) * 0x9fb21c651e98df25ull;
    return hash ^ hash >> 32;
}

/* Where the number of a variable stands, or would stand. */
static uint32_t *place_of(const py_frame *f, const char *name) {
    uint64_t hash = 0;
    for (const char *s = name; *s != 0; s++) hash = hash * 31 + (unsigned char)*s;
    uint32_t at = (uint32_t)mixed(hash, 0);
    for (;; at++) {
        uint32_t *place = &f->places[at & (f->nplaces - 1)];
        if (*place == 0 || strcmp(f->vars[*place - 1].name, name) == 0) return place;
    }
}

py_var *py_find_var(py_frame *f, const char *name) {
    uint32_t place = *place_of(f, name);
    return place > 0 ? &f->vars[place - 1] : NULL;
}

py_var *py_get_var(py_ctx *c, const char *name) {
    uint32_t *place = place_of(c->frame, name);
    if (*place > 0) return &c->frame->vars[*place - 1];
    /* frames are made with room for every name of their function (count_names) */
    py_var *v = &c->frame->vars[c->frame->nvars++];
    *place = c->frame->nvars;
    *v = (py_var){.name = name, .val = {.type = &py_type_unknown}};
    return v;
}

static uint32_t count_names(const py_node *n) {
    if (n == NULL) return 0;
    uint32_t total = n->kind == PY_NAME || n->kind == PY_ARG || n->kind == PY_FUNCTION;
    const py_list *lists[3] = {&n->list, &n->list2, &n->list3};
    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < lists[k]->count; i++) total += count_names(lists[k]->items[i]);
    return total + count_names(n->a) + count_names(n->b) + count_names(n->c);
}

/* ---- functions ---- */

const py_node *py_parameter(const py_function *fn, uint32_t i) {
    const py_node *a = fn->tree->a;
    uint32_t n = a->list.count;
    if (i < n) return a->list.items[i];
    if (i < n + a->list2.count) return a->list2.items[i - n];
    return a->a; /* *args */
}

/* Of what makes a frame, the constants that are numbers. */
static uint64_t hash_of(const py_function *fn, const py_val *args, uint32_t nargs) {
    uint64_t hash = mixed((uintptr_t)fn, nargs);
    for (uint32_t i = 0; i < nargs; i++)
        if (args[i].is_const && args[i].value.kind == PY_VALUE_INT)
            hash = mixed(hash, (uint64_t)args[i].value.integer);
    return hash;
}

static py_frame *new_frame(py_ctx *c, const py_function *fn, const py_val *args, uint32_t nargs) {
    py_frame *f = PY_NEW(c, py_frame, 1);
    py_frame **list = &c->frames[hash_of(fn, args, nargs) % PY_FRAME_LISTS];
    *f = (py_frame){.fn = fn, .nargs = nargs, .next = *list, .nplaces = 8};
    *list = f;
    f->arguments = PY_NEW(c, py_val, nargs + 1);
    memcpy(f->arguments, args, sizeof *args * nargs);
    uint32_t names = count_names(fn->tree) + 1;
    while (f->nplaces < 2 * names) f->nplaces *= 2;
    f->places = PY_NEW(c, uint32_t, f->nplaces);
    f->vars = PY_NEW(c, py_var, names);
    /* Parameters first; then all that is assigned anywhere is local, as in Python. */
    py_frame *outer = c->frame;
    c->frame = f;
    for (uint32_t i = 0; i < nargs; i++) py_get_var(c, py_parameter(fn, i)->name);
    uint32_t n;
    if (fn->tree->kind == PY_FUNCTION) py_assigned(c, &fn->tree->list, &n);
    c->frame = outer;
    return f;
}

static uint32_t count_items(const py_val *v) {
    if (v->items == NULL) return 0;
    switch ((py_type_kind)v->type->kind) {
    case TY_TUPLE:
    case TY_ZIP: return v->type->count;
    case TY_RANGE:
    case TY_SLICE: return 3;
    case TY_RECORD: return 2;
    default: return 0;
    }
}

/* What typing sees of a value: its type, constants, static shapes. */
static bool is_same(const py_val *a, const py_val *b) {
    if (!py_type_equal(a->type, b->type) || a->is_const != b->is_const) return false;
    if (a->is_const && !py_constant_equal(&a->value, &b->value)) return false;
    bool a_static = a->origin != NULL && a->origin->is_static,
         b_static = b->origin != NULL && b->origin->is_static;
    if (a_static != b_static ||
        (a_static && memcmp(a->origin->shape, b->origin->shape, sizeof a->origin->shape) != 0))
        return false;
    if ((a->items == NULL) != (b->items == NULL)) return false;
    for (uint32_t i = 0; i < count_items(a); i++)
        if (!is_same(&a->items[i], &b->items[i])) return false;
    return true;
}

static bool has_arguments(const py_frame *f, const py_function *fn, const py_val *args,
                          uint32_t nargs) {
    bool same = f->fn == fn && f->nargs == nargs;
    for (uint32_t i = 0; i < nargs && same; i++) same = is_same(&f->arguments[i], &args[i]);
    return same;
}

static py_frame *find_frame(py_ctx *c, const py_function *fn, const py_val *args, uint32_t nargs) {
    py_frame *f = c->frames[hash_of(fn, args, nargs) % PY_FRAME_LISTS];
    while (f != NULL && !has_arguments(f, fn, args, nargs)) f = f->next;
    return f;
}

bool py_return_value(py_ctx *c, const py_node *at, const py_val *v) {
    py_frame *f = c->frame;
    f->result.val = *v;
    if (!py_arrive(c, f->ret)) return false;
    const py_type *t = f->ret->vals[0].type;
    if (t->kind != TY_MIXED) return true;
    return py_fail(c, at, "%s returns %s on one way and %s on another", f->fn->name,
                   py_type_text(c, t->items[0]), py_type_text(c, t->items[1]));
}

/* Typing, or lowering at the place of the call. */
bool py_walk_function(py_ctx *c, const py_val *args) {
    py_frame *f = c->frame;
    const py_node *tree = f->fn->tree;
    for (uint32_t i = 0; i < f->nvars; i++) {
        f->vars[i].val = i < f->nargs ? args[i] : (py_val){.type = &py_type_unknown};
        f->vars[i].guess = NULL;
    }
    f->result.val = py_val_none();
    f->loop = NULL;
    f->cursor = 0;
    c->dead = false;
    f->ret = py_merge_new(c, tree, &f->result, false);
    if (f != c->root) py_begin_block(c, f->ret);
    py_val v = py_val_none();
    bool ok = tree->kind == PY_LAMBDA ? py_expr(c, tree->b, &v) : py_body(c, &tree->list);
    if (!ok && !py_way_ends(c)) return false;
    if (f == c->root) {
        f->result.val = v;
        return true;
    }
    bool falls_off = !c->dead && tree->kind != PY_LAMBDA;
    if (!py_return_value(c, tree, &v)) return false;
    if (falls_off && f->ret->vals[0].type->kind == TY_OPTIONAL)
        return py_fail(c, tree, "%s ends without a return that other ways have: write return None",
                       f->fn->name);
    py_go_on(c, f->ret);
    return true;
}

static bool fail_unknown(py_ctx *c) {
    const py_node *n = c->unknown;
    py_entity e;
    bool global = c->host->lookup(c->host->context, c->frame->fn, n->name, &e) == SIMT_OK;
    return py_fail(c, n, "variable '%s' is used before it is assigned%s", n->name,
                   global ? ": since the kernel assigns it, it is not the global one" : "");
}

static bool type_once(py_ctx *c, const py_val *args) {
    bool emit = c->emit;
    const py_node *unknown = c->unknown;
    c->emit = false;
    c->unknown = NULL;
    if (!py_walk_function(c, args) && c->status != SIMT_OK) return false;
    if (c->unknown != NULL) return fail_unknown(c);
    c->emit = emit;
    c->unknown = unknown;
    return true;
}

/* What calls itself is typed until it returns what it was taken to return. */
static bool type_frame(py_ctx *c, const py_val *args, const py_type *declared) {
    py_frame *f = c->frame;
    f->level = f->caller != NULL ? f->caller->level + 1 : 0;
    f->assumed = declared;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        f->lowest = UINT32_MAX;
        if (!type_once(c, args)) return false;
        f->typed = f->lowest >= f->level;
        f->round = c->rounds;
        if (!f->is_function) return true;
        const py_type *now = f->ret->reached ? f->ret->vals[0].type : declared;
        if (now == NULL && f->typed)
            return py_fail(c, f->fn->tree,
                           "%s: cannot type infer runaway recursion: no way through it returns "
                           "without a call that comes back to it",
                           f->fn->name);
        bool settled = now == NULL || (f->assumed != NULL && py_type_equal(f->assumed, now));
        f->assumed = now;
        if (!settled || f->typed) c->rounds++; /* who knew less, or nothing final, is typed again */
        if (settled) return true;
        f->typed = false;
    }
    return py_fail(c, f->fn->tree, "%s calls itself: the type of its result does not settle",
                   f->fn->name);
}

/* The frame of this call among those that are on the way, or NULL; how many are, and how many of fn. */
static py_frame *find_on_way(py_ctx *c, const py_function *fn, const py_val *args, uint32_t nargs,
                             int *depth, int *own) {
    *depth = *own = 0;
    for (py_frame *f = c->frame; f != NULL; f = f->caller, ++*depth) {
        *own += f->fn == fn;
        if (has_arguments(f, fn, args, nargs)) return f;
    }
    return NULL;
}

/* With other types or constants each call is a function of its own, of which there may be a few. */
static bool check_depth(py_ctx *c, const py_node *at, const py_function *fn, int depth, int own) {
    if (own > MOST_OF_ONE && !py_is_general(c, fn)) return py_begin_again(c, at, fn);
    if (own > MOST_OF_ONE)
        return py_fail(c, at, "%s calls itself with arguments of ever new types", fn->name);
    if (depth <= MOST_CALLS) return true;
    return py_generalize_chain(c, at) &&
           py_fail(c, at, "calls are nested more than %d deep", MOST_CALLS);
}

/* A call that comes back to f, which is on the way. */
static bool come_back(py_ctx *c, const py_node *at, py_frame *f, const py_val *args, py_val *out) {
    if (f == c->root)
        return py_fail(c, at, "%s calls itself: a kernel cannot; a device function can",
                       f->fn->name);
    if (!py_is_general(c, f->fn)) return py_begin_again(c, at, f->fn);
    if (f->typed && !f->is_function) return py_fail(c, at, "%s calls itself", f->fn->name);
    if (c->emit) return py_call_beside(c, at, f, args, out);
    if (!f->typed) {
        f->is_function = true;
        py_hang_on(c, f->level);
    }
    return py_result_so_far(c, f, out);
}

static bool run_frame(py_ctx *c, const py_node *at, const py_val *args, const py_type *declared,
                      py_val *out) {
    py_frame *f = c->frame;
    bool known = f->typed || (!c->emit && f->round == c->rounds);
    if (!known && !type_frame(c, args, declared)) return false;
    if (!f->typed) { /* as far as is known */
        py_frame *callee = c->frame;
        c->frame = f->caller;
        py_hang_on(c, f->lowest);
        c->frame = callee;
        c->stops = f->is_function ? f->assumed == NULL : !f->ret->reached;
        if (c->stops) return false;
    }
    if (f->is_function && !c->emit) return py_result_so_far(c, f, out);
    if (f->is_function) {
        c->frame = f->caller; /* where the call stands */
        bool ok = py_call_beside(c, at, f, args, out);
        c->frame = f;
        return ok;
    }
    if (c->emit) {
        c->frame = f->caller;
        f->call = ir_func_add_call(c->kernel->func, f->fn->name, f->fn->file, py_pos(c, at));
        c->frame = f;
        if (f->call == 0)
            return py_fail(c, at, "more than %d calls of functions in one kernel",
                           SOURCE_MOST_CALLS);
        if (!py_walk_function(c, args)) return false;
    }
    *out = f->result.val;
    out->is_const = false; /* as in Numba */
    if (!c->emit) out->v = NULL;
    return true;
}

bool py_call_function(py_ctx *c, const py_node *at, const py_function *fn, py_val *args,
                      uint32_t nargs, const py_type *declared, py_val *out) {
    int depth, own;
    if (py_is_general(c, fn)) args = py_general_values(c, args, nargs);
    py_frame *outer = c->frame, *f = find_on_way(c, fn, args, nargs, &depth, &own);
    if (f != NULL) return come_back(c, at, f, args, out);
    if (!check_depth(c, at, fn, depth, own)) return false;
    bool dead = c->dead;
    f = find_frame(c, fn, args, nargs);
    if (f == NULL) f = new_frame(c, fn, args, nargs);
    f->caller = outer;
    f->called_at = at;
    c->frame = f;
    bool ok = run_frame(c, at, args, declared, out);
    c->frame = outer;
    c->dead = dead;
    return ok;
}

/* ---- the whole ---- */

static void add_hidden_parameters(py_ctx *c) {
    if (c->want_dynamic)
        c->dynamic_bytes = py_add_slot(c, IR_I64, "shared_bytes", KERNEL_SHARED_BYTES, -1);
    if (c->want_print)
        c->print_buffer = py_add_slot(c, IR_PTR_GLOBAL, "print_buffer", KERNEL_PRINT_BUFFER, -1);
    c->nhidden = c->nconstants;
    c->constant_addresses = PY_NEW(c, ir_value *, c->nconstants + 1);
    for (uint32_t i = 0; i < c->nconstants; i++)
        c->constant_addresses[i] =
            py_add_slot(c, IR_PTR_GLOBAL, c->constants[i]->name, KERNEL_CONSTANT, -1);
}

static void add_parameters(py_ctx *c) {
    ir_type *types = PY_NEW(c, ir_type, c->nslots + 1);
    const char **names = PY_NEW(c, const char *, c->nslots + 1);
    for (uint32_t i = 0; i < c->nslots; i++) {
        types[i] = c->slots[i].type;
        names[i] = c->slots[i].name;
    }
    ir_func_add_params(c->f, types, names, c->nslots);
}

static bool compile(py_ctx *c, const py_function *fn, const uint8_t *signature, size_t bytes) {
    py_val *args;
    uint32_t n;
    if (fn->tree->kind != PY_FUNCTION && fn->tree->kind != PY_LAMBDA)
        return py_fail(c, fn->tree, "not a function");
    if (!py_read_parameters(c, fn, signature, bytes, &args, &n)) return false;
    c->nsignature = n;
    c->writes = PY_NEW(c, bool, n + 1);
    memset(c->writes, 0, n + 1);
    py_frame *f = new_frame(c, fn, args, n);
    c->frame = c->root = f;
    c->rounds = 1;
    if (!type_frame(c, args, NULL)) return false;
    c->f = c->kernel->func = ir_func_new(fn->name, fn->file);
    c->b = ir_builder_at_end(c->f, &c->f->body);
    c->carried = vars_new(&c->b, c->mem);
    add_hidden_parameters(c);
    add_parameters(c);
    c->emit = true;
    c->nslots = 0;
    if (!py_read_parameters(c, fn, signature, bytes, &args, &n)) return false;
    add_hidden_parameters(c);
    if (!py_walk_function(c, args)) return false;
    if (f->result.val.type->kind != TY_NONE)
        return py_fail(c, fn->tree, "a kernel cannot return a value: write results into an array");
    if (!ir_region_is_ended(c->b.at)) ir_return(&c->b);
    return py_lower_beside(c) && !c->lost;
}

static kernel_constant constant_of(const py_entity *e) {
    kernel_constant k = {
        .name = e->name, .data = e->data, .item_bytes = py_entity_bytes(e), .ndim = e->ndim};
    memcpy(k.shape, e->shape, sizeof k.shape);
    memcpy(k.strides, e->strides, sizeof k.strides);
    return k;
}

static void finish(py_ctx *c) {
    kernel *k = c->kernel;
    k->parameters = c->slots;
    k->nparameters = c->nslots;
    k->faults = c->faults;
    k->nfaults = c->nfaults;
    k->prints = c->prints;
    k->nprints = c->nprints;
    k->constants = PY_NEW(c, kernel_constant, c->nconstants + 1);
    for (uint32_t i = 0; i < c->nconstants; i++) k->constants[i] = constant_of(c->constants[i]);
    k->nconstants = c->nconstants;
    k->writes = c->writes;
    k->narguments = c->nsignature;
    k->static_shared = c->static_shared;
    k->local = c->local;
}

/* What a compilation is asked for. */
typedef struct request {
    const py_host *host;
    const py_function *fn;
    const uint8_t *signature;
    size_t bytes;
    const py_options *options;
    kernel *kernel;
} request;

static py_ctx *new_context(const request *r, const py_ctx *before) {
    py_ctx *c = ARENA_NEW(&r->kernel->mem, py_ctx);
    c->host = r->host;
    c->options = r->options;
    c->kernel = r->kernel;
    c->mem = &r->kernel->mem;
    if (before != NULL) c->general = before->general, c->ngeneral = before->ngeneral;
    ir_func_free(r->kernel->func);
    r->kernel->func = NULL;
    return c;
}

static simt_status run(void *context) {
    const request *r = context;
    py_ctx *c = NULL;
    do {
        c = new_context(r, c);
        if (!compile(c, r->fn, r->signature, r->bytes)) continue;
        finish(c);
        return SIMT_OK;
    } while (c->again);
    if (c->status != SIMT_OK) return c->status;
    return status_fail(SIMT_ERR_INTERNAL, "kernel %s: compilation failed", r->fn->name);
}

simt_status py_compile(const py_host *host, const py_function *fn, const uint8_t *signature,
                       size_t bytes, const py_options *options, kernel **out) {
    kernel *k = kernel_new();
    if (k == NULL) return status_fail(SIMT_ERR_MEMORY, "kernel %s: out of memory", fn->name);
    request r = {host, fn, signature, bytes, options, k};
    simt_status status = arena_run(run, &r);
    if (status == SIMT_ERR_MEMORY) status_prefix("kernel %s: ", fn->name);
    if (status == SIMT_OK)
        *out = k;
    else
        kernel_free(k);
    return status;
}
