/* Targets, and the choice of a back end. */
#include "runtime/target.h"
#include "base/heap.h"

#include <string.h>

static void destroy_devices(device *d, device *host) {
    d->destroy(d);
    if (host != d) host->destroy(host);
}

static const struct {
    const backend *makes;
    code_kind kind;
} table[] = {
#define BACKEND(name, kind, meaning) {&backend_##name, CODE_##kind},
#include "backend/backends.def"
#undef BACKEND
};

static void list_backends(target *t) {
    int n = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == t->device->runs && n < TARGET_MOST_BACKENDS)
            t->backends[n++] = table[i].makes;
}

simt_status target_new(const char *name, device *d, device *host, target **out) {
    target *t = heap_zeroed(1, sizeof *t);
    if (t == NULL) {
        destroy_devices(d, host);
        return status_fail(SIMT_ERR_MEMORY, "no memory for the target %s", name);
    }
    *t = (target){.name = name, .device = d, .host = host};
    list_backends(t);
    *out = t;
    return SIMT_OK;
}

simt_status target_cpu_new(int threads, target **out) {
    device *cpu;
    SIMT_TRY(device_cpu_new(threads, &cpu));
    return target_new("cpu", cpu, cpu, out);
}

void target_free(target *t) {
    if (t == NULL) return;
    destroy_devices(t->device, t->host);
    heap_free(t);
}

static ir_type type_of(const ir_inst *inst) {
    return inst->nargs > 0      ? inst->args[0]->type
           : inst->nresults > 0 ? inst->results[0].type
                                : IR_VOID;
}

/* Has it code for what stands in the region? */
static bool takes(const backend *b, const ir_region *region) {
    for (const ir_inst *inst = region->first; inst != NULL; inst = inst->next) {
        if (ir_op_group(inst->op) == IR_IN_MATH && !b->wishes.calls_math) return false;
        if (b->supports != NULL && !b->supports(inst->op, type_of(inst))) return false;
        for (int i = 0; i < 2 && inst->regions[i] != NULL; i++)
            if (!takes(b, inst->regions[i])) return false;
    }
    return true;
}

static bool takes_unit(const backend *b, const ir_func *f) {
    if (b->supports == NULL && b->wishes.calls_math) return true;
    for (uint32_t i = 0; i < f->nfunctions; i++)
        if (!takes(b, &f->functions[i]->body)) return false;
    return takes(b, &f->body);
}

simt_status target_compile(const target *t, const ir_func *f, facts_book *facts,
                           const backend_options *options, code **out, const backend **by) {
    simt_status status = status_fail(SIMT_ERR_INTERNAL, "target %s has no back end", t->name);
    for (const backend *const *b = t->backends; *b != NULL; b++) {
        if (!takes_unit(*b, f)) continue;
        status = (*b)->compile(f, facts, options, out);
        if (status == SIMT_ERR_UNSUPPORTED && b[1] != NULL) continue;
        if (status == SIMT_OK && (*out)->kind != t->device->runs) {
            (*out)->destroy(*out);
            return status_fail(SIMT_ERR_INTERNAL, "%s cannot run what %s makes", t->device->name,
                               (*b)->name);
        }
        *by = *b;
        return status;
    }
    return status;
}
