/* Making a kernel lasting, and ending it. */
#include "kernel/kernel.h"

#include "base/heap.h"

#include <string.h>

kernel *kernel_new(void) {
    kernel *k = heap_zeroed(1, sizeof *k);
    if (k != NULL) arena_init_sure(&k->mem);
    return k;
}

void kernel_free(kernel *k) {
    if (k == NULL) return;
    if (k->func != NULL) ir_func_free(k->func);
    for (uint32_t i = 0; i < k->nconstants; i++) heap_free(k->constants[i].copy);
    arena_deinit(&k->mem);
    heap_free(k);
}

bool kernel_has(const kernel *k, kernel_role role) {
    for (uint32_t i = 0; i < k->nparameters; i++)
        if (k->parameters[i].role == role) return true;
    return false;
}

const kernel_parameter *kernel_array(const kernel *k, int32_t argument, int *ndim) {
    for (uint32_t i = 0; argument >= 0 && i < k->nparameters; i++) {
        const kernel_parameter *p = &k->parameters[i];
        if (p->role != KERNEL_POINTER || p->argument != argument) continue;
        *ndim = 0;
        while (++i < k->nparameters && k->parameters[i].role == KERNEL_SIZE) ++*ndim;
        return p;
    }
    return NULL;
}

/* ---- settling ---- */

/* A copy of a text or NULL; *failed is set when there is no memory. */
static const char *copy_text(arena *mem, const char *text, bool *failed) {
    const char *copy = text != NULL ? arena_strdup(mem, text) : NULL;
    *failed |= text != NULL && copy == NULL;
    return copy;
}

static void *copy_bytes(arena *mem, const void *bytes, size_t n, bool *failed) {
    void *copy = arena_alloc(mem, n + 1);
    *failed |= copy == NULL;
    return copy != NULL && n > 0 ? memcpy(copy, bytes, n) : copy;
}

static void copy_print(arena *mem, kernel_print *p, bool *failed) {
    p->values = copy_bytes(mem, p->values, p->nvalues * sizeof *p->values, failed);
    p->texts = copy_bytes(mem, p->texts, (p->nvalues + 1) * sizeof *p->texts, failed);
    for (uint32_t i = 0; i <= p->nvalues && !*failed; i++)
        p->texts[i] = copy_text(mem, p->texts[i], failed);
    for (uint32_t i = 0; i < p->nvalues && !*failed; i++)
        p->values[i].style = copy_text(mem, p->values[i].style, failed);
}

/* Its memory too: later changes of the original are not seen. *bytes grows by those of its elements. */
static void copy_constant(arena *mem, kernel_constant *c, size_t *bytes, bool *failed) {
    int64_t low = 0, high = (int64_t)c->item_bytes, all = high;
    for (int d = 0; d < c->ndim; d++) {
        all *= c->shape[d];
        int64_t reach = c->strides[d] * (c->shape[d] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    if (all == 0) low = high = 0;
    c->name = copy_text(mem, c->name, failed);
    c->copy = heap_aligned(64, (size_t)(high - low) + 64);
    *failed |= c->copy == NULL;
    if (c->copy == NULL) return;
    if (high > low) memcpy(c->copy, (const char *)c->data + low, (size_t)(high - low));
    c->data = (char *)c->copy - low;
    *bytes += (size_t)all;
}

/* The tables of k in mem, as far as there is memory. */
static bool copy_tables(kernel *to, const kernel *k, arena *mem) {
    bool failed = false;
    to->parameters =
        copy_bytes(mem, k->parameters, k->nparameters * sizeof *k->parameters, &failed);
    to->faults = copy_bytes(mem, k->faults, k->nfaults * sizeof *k->faults, &failed);
    to->prints = copy_bytes(mem, k->prints, k->nprints * sizeof *k->prints, &failed);
    to->constants = copy_bytes(mem, k->constants, k->nconstants * sizeof *k->constants, &failed);
    to->writes = copy_bytes(mem, k->writes, k->narguments * sizeof *k->writes, &failed);
    for (uint32_t i = 0; i < k->nparameters && !failed; i++)
        to->parameters[i].name = copy_text(mem, to->parameters[i].name, &failed);
    for (uint32_t i = 0; i < k->nfaults && !failed; i++) {
        to->faults[i].name = copy_text(mem, to->faults[i].name, &failed);
        to->faults[i].text = copy_text(mem, to->faults[i].text, &failed);
    }
    for (uint32_t i = 0; i < k->nprints && !failed; i++) copy_print(mem, &to->prints[i], &failed);
    for (uint32_t i = 0; i < k->nconstants && !failed; i++)
        copy_constant(mem, &to->constants[i], &to->constant_bytes, &failed);
    return !failed;
}

bool kernel_settle(kernel *k) {
    kernel settled = *k;
    arena mem;
    arena_init(&mem);
    if (!copy_tables(&settled, k, &mem)) {
        for (uint32_t i = 0; settled.constants != NULL && i < k->nconstants; i++)
            heap_free(settled.constants[i].copy);
        arena_deinit(&mem);
        return false;
    }
    arena_deinit(&k->mem);
    *k = settled;
    k->mem = mem;
    return true;
}
