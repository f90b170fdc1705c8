/* Functions that call themselves, by themselves or by way of others.
 *
 * Where a call comes back to a function that is being typed with the same types, that function becomes one beside
 * the kernel (ir.h), which is called while the kernel runs; the others on the way round stay inside it. Its
 * result has the type of what the ways through it return that do not come back, and then what all return, until
 * that stands still: a call whose result is not known yet ends its way (py_ctx.stops). Such functions are general:
 * they are typed without the constants of a call. Which functions these are comes out only on the way, and then
 * the compilation begins again (py_ctx.again).
 */
#include "frontend/python/work.h"

#include <string.h>

/* ---- which ---- */

bool py_is_general(const py_ctx *c, const py_function *fn) {
    for (uint32_t i = 0; i < c->ngeneral; i++)
        if (c->general[i] == fn) return true;
    return false;
}

static void make_general(py_ctx *c, const py_function *fn) {
    if (py_is_general(c, fn)) return;
    c->general = py_grow(c, c->general, c->ngeneral, sizeof *c->general);
    c->general[c->ngeneral++] = fn;
}

bool py_begin_again(py_ctx *c, const py_node *at, const py_function *fn) {
    if (py_is_closure(c, fn))
        return py_fail(c, at,
                       "%s calls itself: a function inside a kernel cannot; define it outside",
                       fn->name);
    make_general(c, fn);
    c->again = true;
    return py_fail(c, at, "%s calls itself", fn->name);
}

bool py_generalize_chain(py_ctx *c, const py_node *at) {
    for (const py_frame *f = c->frame; f != NULL && f != c->root; f = f->caller) {
        uint32_t times = 0;
        for (const py_frame *g = c->frame; g != NULL; g = g->caller) times += g->fn == f->fn;
        if (times > 1 && !py_is_general(c, f->fn) && !py_is_closure(c, f->fn))
            return py_begin_again(c, at, f->fn);
    }
    return true;
}

/* What is known of the value beyond its type is forgotten, where it has a place for what it will be. */
static py_val general(py_ctx *c, const py_val *v) {
    py_val out = *v;
    out.origin = NULL;
    out.items = NULL;
    out.nonneg = py_scalar_is_unsigned(py_scalar_of(v));
    if (py_type_slots(v->type) > 0) out.is_const = false;
    if (v->items == NULL || (v->type->kind != TY_TUPLE && v->type->kind != TY_ZIP)) return out;
    out.items = PY_NEW(c, py_val, v->type->count + 1);
    for (uint32_t i = 0; i < v->type->count; i++) out.items[i] = general(c, &v->items[i]);
    return out;
}

py_val *py_general_values(py_ctx *c, const py_val *args, uint32_t n) {
    py_val *out = PY_NEW(c, py_val, n + 1);
    for (uint32_t i = 0; i < n; i++) out[i] = general(c, &args[i]);
    return out;
}

/* ---- typing ---- */

bool py_way_ends(py_ctx *c) {
    if (c->status != SIMT_OK || !c->stops) return false;
    c->stops = false;
    c->dead = true;
    return true;
}

void py_hang_on(py_ctx *c, uint32_t level) {
    for (py_frame *f = c->frame; f != NULL && f->level > level; f = f->caller)
        if (level < f->lowest) f->lowest = level;
}

static py_val result_of(const py_type *t, ir_value **v) {
    py_val out = py_val_from_slots(t, v);
    out.nonneg = py_scalar_is_unsigned(py_scalar_of(&out));
    return out;
}

bool py_result_so_far(py_ctx *c, const py_frame *f, py_val *out) {
    c->stops = f->assumed == NULL;
    if (!c->stops) *out = result_of(f->assumed, NULL);
    return !c->stops;
}

/* ---- lowering ---- */

static bool has_local_array(const py_type *t) {
    if (t->kind == TY_ARRAY) return t->space == IR_PTR_LOCAL;
    for (uint32_t i = 0; t->items != NULL && i < t->count; i++)
        if (has_local_array(t->items[i])) return true;
    return t->kind == TY_RECORD && t->items != NULL && has_local_array(t->items[0]);
}

static uint32_t count_hidden(const py_ctx *c) {
    return c->nhidden + (c->want_dynamic ? 1u : 0) + (c->want_print ? 1u : 0);
}

static uint32_t count_slots(const py_val *args, uint32_t n) {
    uint32_t slots = 0;
    for (uint32_t i = 0; i < n; i++) slots += py_type_slots(args[i].type);
    return slots;
}

static void add_types(const py_type *t, ir_type *types, uint32_t *n) {
    for (uint32_t s = 0; s < py_type_slots(t); s++) types[(*n)++] = py_type_slot(t, s);
}

/* The kernel's own parameters come behind the arguments. */
static bool add_function(py_ctx *c, const py_node *at, py_frame *f) {
    uint32_t n = 0, nresults = 0, slots = count_slots(f->arguments, f->nargs) + count_hidden(c);
    ir_type *types = PY_NEW(c, ir_type, slots + 1),
            *results = PY_NEW(c, ir_type, py_type_slots(f->assumed) + 1);
    if (has_local_array(f->assumed))
        return py_fail(c, at,
                       "%s returns a local array: that of a function that calls itself ends with "
                       "the call; fill an array that is given",
                       f->fn->name);
    for (uint32_t i = 0; i < f->nargs; i++) add_types(f->arguments[i].type, types, &n);
    if (c->want_dynamic) types[n++] = IR_I64;
    while (n < slots) types[n++] = IR_PTR_GLOBAL;
    add_types(f->assumed, results, &nresults);
    ir_func *unit = c->kernel->func,
            *made = ir_func_add_function(unit, f->fn->name, results, nresults);
    ir_func_add_params(made, types, NULL, n);
    f->number = unit->nfunctions;
    c->beside = py_grow(c, c->beside, c->nbeside, sizeof *c->beside);
    c->beside[c->nbeside++] = f;
    return true;
}

bool py_call_beside(py_ctx *c, const py_node *at, py_frame *f, const py_val *args, py_val *out) {
    if (f->number == 0 && !add_function(c, at, f)) return false;
    uint32_t n = 0;
    ir_value **values = PY_NEW(c, ir_value *, count_slots(args, f->nargs) + count_hidden(c) + 1);
    for (uint32_t i = 0; i < f->nargs; i++)
        for (uint32_t s = 0; s < py_type_slots(args[i].type); s++) values[n++] = args[i].v[s];
    if (c->want_dynamic) values[n++] = c->dynamic_bytes;
    if (c->want_print) values[n++] = c->print_buffer;
    for (uint32_t i = 0; i < c->nhidden; i++) values[n++] = c->constant_addresses[i];
    source_pos before = c->b.pos;
    c->b.pos = py_pos(c, at);
    ir_inst *call = ir_call(&c->b, f->number - 1, values, n);
    c->b.pos = before;
    ir_value **results = PY_NEW(c, ir_value *, call->nresults + 1);
    for (uint32_t i = 0; i < call->nresults; i++) results[i] = &call->results[i];
    *out = result_of(f->assumed, results);
    return true;
}

/* An argument in the places of these parameters; *at moves behind them. */
static py_val bound(py_ctx *c, const py_val *arg, ir_value **params, uint32_t *at) {
    py_val out = *arg;
    uint32_t first = *at;
    out.v = params + first;
    if (arg->items != NULL) {
        out.items = PY_NEW(c, py_val, arg->type->count + 1);
        for (uint32_t i = 0; i < arg->type->count; i++)
            out.items[i] = bound(c, &arg->items[i], params, at);
    }
    *at = first + py_type_slots(arg->type);
    return out;
}

static py_val *bind_parameters(py_ctx *c, const py_frame *f) {
    ir_region *body = &c->f->body;
    ir_value **params = PY_NEW(c, ir_value *, body->nparams + 1);
    py_val *args = PY_NEW(c, py_val, f->nargs + 1);
    uint32_t at = 0;
    for (uint32_t i = 0; i < body->nparams; i++) params[i] = &body->params[i];
    for (uint32_t i = 0; i < f->nargs; i++) args[i] = bound(c, &f->arguments[i], params, &at);
    if (c->want_dynamic) c->dynamic_bytes = params[at++];
    if (c->want_print) c->print_buffer = params[at++];
    c->constant_addresses = params + at;
    return args;
}

static bool lower(py_ctx *c, py_frame *f) {
    ir_func *unit = c->kernel->func;
    c->f = unit->functions[f->number - 1];
    c->b = ir_builder_at_end(c->f, &c->f->body);
    f->caller = NULL;
    f->called_at = NULL;
    f->call = ir_func_add_call(unit, f->fn->name, f->fn->file, (source_pos){0});
    if (f->call == 0)
        return py_fail(c, f->fn->tree, "more than %d calls of functions in one kernel",
                       SOURCE_MOST_CALLS);
    c->frame = f;
    if (!py_walk_function(c, bind_parameters(c, f))) return false;
    if (ir_region_is_ended(c->b.at)) return true;
    if (f->ret->reached)
        ir_return_values(&c->b, f->result.val.v, py_type_slots(f->assumed));
    else
        ir_exit(&c->b);
    return true;
}

bool py_lower_beside(py_ctx *c) {
    for (uint32_t i = 0; i < c->nbeside; i++) /* each may ask for more */
        if (!lower(c, c->beside[i])) return false;
    return true;
}
