/* The vm as a back end: plans a function, emits its code, lays out its frame. */
#include "backend/vm/vm.h"
#include "base/heap.h"

#include <stdatomic.h>
#include <string.h>

/* Unlike anything that a frame left by other code could hold. */
static uint64_t new_serial(void) {
    static atomic_ullong next = 1;
    uint64_t x = atomic_fetch_add(&next, 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    return x ^ x >> 27;
}

static void destroy_code(code *self) {
    vm_code *c = (vm_code *)self;
    if (c->general != NULL) destroy_code(&c->general->base.base);
    if (c->spread != NULL) destroy_code(&c->spread->base.base);
    for (uint32_t i = 0; i < c->nfunctions; i++) destroy_code(&c->functions[i]->base.base);
    if (!c->is_function) heap_free(c->functions);
    arena_deinit(&c->mem);
    heap_free(c);
}

static size_t align64(size_t n) { return (n + 63) & ~(size_t)63; }

static void lay_out_frame(vm_code *c) {
    c->set_bytes = c->lanes == 1 ? 8 : align64(c->lanes);
    c->ended_bytes = c->nwarps > 0 && c->lanes > 1 ? align64((c->lanes + 7) / 8) : 0;
    c->slot_bytes = align64(c->slot_bytes);
    c->base.base.shared_bytes = c->shared_bytes;
    c->base.base.local_bytes = c->local_bytes;
    c->local_bytes = align64(c->local_bytes * c->lanes);
    size_t gang = align64(sizeof(vm_gang)) + align64(c->nentries * sizeof(void *)) +
                  align64(c->nsets * sizeof(vm_set)) + align64(c->cell_bytes) + c->ended_bytes +
                  align64((c->nsets + 1) * c->set_bytes) + c->slot_bytes + c->local_bytes;
    c->gang_bytes = gang;
    c->shared_offset = align64(sizeof(vm_frame)) + gang * c->gangs;
    c->base.frame_bytes = c->shared_offset + align64(c->shared_bytes);
}

/* What the code keeps moves from the plan's arena, where arrays grew, to its own memory. */
static void keep(vm_code *c, void **array, size_t bytes) {
    void *to = arena_alloc(&c->mem, bytes + 1);
    if (bytes > 0) memcpy(to, *array, bytes);
    *array = to;
}

static void list_forwarded(vm_code *c) {
    c->forwarded = ARENA_ARRAY(&c->mem, uint32_t, c->ninsts + 1);
    for (uint32_t i = 0; i < c->ninsts; i++)
        if (c->insts[i].kind == VM_LOAD_FORWARD) c->forwarded[c->nforwarded++] = c->insts[i].dst;
}

static void list_params(vm_code *c) {
    c->params = ARENA_ARRAY(&c->mem, uint32_t, c->nentries + 1);
    for (uint32_t i = 0; i < c->nentries; i++)
        if (c->entries[i].place == VM_AT_PARAM) c->params[c->nparams++] = i;
}

static void keep_calls(vm_code *c, const ir_func *f) {
    source_call *calls = ARENA_ARRAY(&c->mem, source_call, f->ncalls + 1);
    for (uint32_t i = 0; i < f->ncalls; i++) {
        const source_call *from = &f->calls[i];
        calls[i] = (source_call){.function = arena_strdup(&c->mem, from->function),
                                 .file = arena_strdup(&c->mem, from->file),
                                 .at = from->at};
    }
    c->base.base.calls = calls;
}

static void keep_structs(vm_code *c, const ir_func *f) {
    code_struct *structs = ARENA_ARRAY(&c->mem, code_struct, f->body.nparams + 1);
    for (uint32_t i = 0; i < f->body.nparams; i++) {
        const ir_value *v = &f->body.params[i];
        if (v->struct_bytes > 0)
            structs[c->base.base.nstructs++] =
                (code_struct){.param = i, .bytes = v->struct_bytes, .align = v->struct_align};
    }
    c->base.base.structs = structs;
}

static void keep_variables(vm_code *c, const ir_func *f) {
    const char **names = ARENA_ARRAY(&c->mem, const char *, f->nvariables + 1);
    for (uint32_t i = 0; i < f->nvariables; i++)
        names[i] = arena_strdup(&c->mem, f->variables[i].name);
    c->base.base.nvariables = f->nvariables;
    c->base.base.variables = names;
}

/* Aligned for vectors. */
static void keep_constants(vm_code *c) {
    char *to = arena_alloc(&c->mem, c->constant_bytes + 128);
    to += -(uintptr_t)to & 63;
    if (c->constant_bytes > 0) memcpy(to, c->constants, c->constant_bytes);
    c->constants = to;
}

static void keep_all(vm_code *c, const ir_func *f) {
    keep_constants(c);
    c->base.base.name = arena_strdup(&c->mem, f->name != NULL ? f->name : "");
    c->base.base.file = arena_strdup(&c->mem, f->file != NULL ? f->file : "");
    keep_calls(c, f);
    keep_structs(c, f);
    keep_variables(c, f);
    keep(c, (void **)&c->insts, c->ninsts * sizeof *c->insts);
    keep(c, (void **)&c->entries, c->nentries * sizeof *c->entries);
    if (!c->is_function) list_params(c);
    list_forwarded(c);
    keep(c, (void **)&c->addresses, c->naddresses * sizeof *c->addresses);
    keep(c, (void **)&c->atomics, c->natomics * sizeof *c->atomics);
    keep(c, (void **)&c->faults, c->nfaults * sizeof *c->faults);
    keep(c, (void **)&c->warps, c->nwarps * sizeof *c->warps);
    keep(c, (void **)&c->rows, c->nrows * sizeof *c->rows);
    keep(c, (void **)&c->calls, c->ncalls * sizeof *c->calls);
    keep(c, (void **)&c->compares, c->ncompares * sizeof *c->compares);
}

static void note_params(vm_code *c, const vm_plan *p) {
    const ir_region *body = &p->f->body;
    c->params = ARENA_ARRAY(&c->mem, uint32_t, body->nparams + 1);
    for (uint32_t i = 0; i < body->nparams; i++)
        c->params[i] = vm_value_of(p, &body->params[i])->entry;
}

typedef struct building {
    vm_plan p;
    vm_code *c;
    facts_book *book;
} building;

/* What is asked for. */
typedef struct wanted {
    const backend_options *options;
    facts_book *book;
} wanted;

static simt_status build(void *context) {
    vm_plan *p = &((building *)context)->p;
    vm_code *c = ((building *)context)->c;
    facts_options o = {.small_grid = p->small_grid};
    memcpy(o.box, p->box, sizeof o.box);
    memcpy(o.block, p->block, sizeof o.block);
    SIMT_TRY(facts_ask(((building *)context)->book, p->f, &o, &p->facts));
    vm_plan_scan(p);
    if (c->spreads && !vm_plan_spreads(p)) return SIMT_OK; /* no code */
    c->lanes = p->lanes;
    c->gangs = p->threads / p->lanes;
    vm_plan_lifetimes(p);
    SIMT_TRY(vm_emit(p, c));
    if (c->is_function) note_params(c, p);
    c->assumes_small_grid = p->small_grid && p->lanes > 1 && p->facts->shapes.used_small_grid;
    lay_out_frame(c);
    if (c->ninsts > 0) keep_all(c, p->f);
    return SIMT_OK;
}

static vm_code *new_code(const ir_func *f, const backend_options *o, const vm_plan *p) {
    vm_code *c = heap_zeroed(1, sizeof *c);
    if (c == NULL) return NULL;
    arena_init_sure(&c->mem);
    c->kernels = ISA_CHOOSE(vm_kernels, o->isa);
    c->serial = new_serial();
    c->base.base.kind = CODE_BLOCKS;
    c->base.run = vm_run;
    c->base.runs = vm_runs;
    c->base.base.destroy = destroy_code;
    c->base.base.nparams = ir_kernel_of(f)->body.nparams; /* arguments of the launch */
    memcpy(c->base.base.block, o->block, sizeof c->base.base.block);
    memcpy(c->box, p->box, sizeof c->box);
    return c;
}

static simt_status compile_as(const ir_func *f, const wanted *w, bool spreads, bool small_grid,
                              vm_code *unit, vm_code **out);

/* The functions beside the kernel. The block's shared memory is that of all of them, and then of the kernel. */
static simt_status compile_functions(const ir_func *f, const wanted *w, vm_code *c) {
    if (f->nfunctions == 0) return SIMT_OK;
    c->functions = heap_zeroed(f->nfunctions, sizeof *c->functions);
    if (c->functions == NULL) return status_fail(SIMT_ERR_MEMORY, "out of memory");
    for (; c->nfunctions < f->nfunctions; c->nfunctions++) {
        vm_code **to = &c->functions[c->nfunctions];
        SIMT_TRY(compile_as(f->functions[c->nfunctions], w, false, false, c, to));
        (*to)->functions = c->functions;
        c->shared_bytes = (*to)->shared_bytes;
    }
    c->base.recurses = true;
    return SIMT_OK;
}

/* *out: NULL where the kernel has no code that spreads. unit: of a function, the kernel's code, or NULL. */
static simt_status compile_as(const ir_func *f, const wanted *w, bool spreads, bool small_grid,
                              vm_code *unit, vm_code **out) {
    arena scratch;
    const backend_options *o = w->options;
    building b = {.p = {.f = f, .mem = &scratch, .box = {1, 1, 1}, .small_grid = small_grid},
                  .book = w->book};
    *out = NULL;
    memcpy(b.p.block, o->block, sizeof b.p.block);
    if (spreads)
        b.p.box[0] = vm_spread_lanes(o->block);
    else
        memcpy(b.p.box, o->block, sizeof b.p.box);
    b.p.threads = b.p.box[0] * b.p.box[1] * b.p.box[2];
    vm_code *c = b.c = new_code(f, o, &b.p);
    if (c == NULL) return status_fail(SIMT_ERR_MEMORY, "out of memory");
    c->spreads = spreads;
    c->is_function = unit != NULL;
    if (unit != NULL) c->shared_bytes = unit->shared_bytes;
    simt_status status = compile_functions(f, w, c);
    arena_init_sure(&scratch);
    if (status == SIMT_OK) status = arena_run(build, &b);
    arena_deinit(&scratch);
    for (uint32_t i = 0; i < c->nfunctions; i++) {
        c->functions[i]->shared_bytes = c->shared_bytes;
        c->base.meets |= c->functions[i]->base.meets;
    }
    if (status == SIMT_OK && c->assumes_small_grid)
        status = compile_as(f, w, spreads, false, NULL, &c->general);
    if (status == SIMT_OK && c->ninsts > 0)
        *out = c;
    else
        destroy_code(&c->base.base);
    return status;
}

static void need_frame_of(vm_code *c, const vm_code *other) {
    if (other == NULL) return;
    if (other->base.frame_bytes > c->base.frame_bytes)
        c->base.frame_bytes = other->base.frame_bytes;
    need_frame_of(c, other->general);
}

static simt_status compile(const ir_func *f, facts_book *book, const backend_options *o,
                           code **out) {
    const wanted w = {.options = o, .book = book};
    uint64_t threads = (uint64_t)o->block[0] * o->block[1] * o->block[2];
    if (threads == 0 || threads > 65536)
        return status_fail(SIMT_ERR_VALUE,
                           "kernel %s: a block of %u x %u x %u threads is not possible", f->name,
                           o->block[0], o->block[1], o->block[2]);
    vm_code *c = NULL, *spread = NULL;
    if (!facts_find_blocks(f).matter) SIMT_TRY(compile_as(f, &w, true, true, NULL, &spread));
    if (spread != NULL && o->block[0] == threads) {
        c = spread;
    } else {
        simt_status status = compile_as(f, &w, false, true, NULL, &c);
        if (status != SIMT_OK) {
            if (spread != NULL) destroy_code(&spread->base.base);
            return status;
        }
        c->spread = spread;
    }
    need_frame_of(c, c->general);
    need_frame_of(c, c->spread);
    *out = &c->base.base;
    return SIMT_OK;
}

const backend backend_vm = {.name = "vm",
                            .wishes = {.compares_again = true, .choose_ops = 6, .calls_math = true},
                            .compile = compile,
                            .print = vm_print};
