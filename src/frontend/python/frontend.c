/* Entry points of the front end. */
#include "frontend/python/frontend.h"
#include "base/heap.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t bytes;
} scalars[PY_SCALAR_COUNT] = {
    [PY_S_NONE] = {"none", 0},   [PY_S_BOOL] = {"bool", 1},     [PY_S_I8] = {"int8", 1},
    [PY_S_I16] = {"int16", 2},   [PY_S_I32] = {"int32", 4},     [PY_S_I64] = {"int64", 8},
    [PY_S_U8] = {"uint8", 1},    [PY_S_U16] = {"uint16", 2},    [PY_S_U32] = {"uint32", 4},
    [PY_S_U64] = {"uint64", 8},  [PY_S_F16] = {"float16", 2},   [PY_S_F32] = {"float32", 4},
    [PY_S_F64] = {"float64", 8}, [PY_S_C64] = {"complex64", 8}, [PY_S_C128] = {"complex128", 16},
};

const char *py_scalar_name(py_scalar s) { return s < PY_SCALAR_COUNT ? scalars[s].name : "?"; }
size_t py_scalar_bytes(py_scalar s) { return s < PY_SCALAR_COUNT ? scalars[s].bytes : 0; }

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

static void copy_print(arena *mem, py_print *p, bool *failed) {
    p->types = copy_bytes(mem, p->types, p->nvalues, failed);
    p->texts = copy_bytes(mem, p->texts, (p->nvalues + 1) * sizeof *p->texts, failed);
    for (uint32_t i = 0; i <= p->nvalues && !*failed; i++)
        p->texts[i] = copy_text(mem, p->texts[i], failed);
}

bool py_kernel_shrink(py_kernel *k) {
    arena mem;
    arena_init(&mem);
    bool failed = false;
    py_fault *faults = copy_bytes(&mem, k->faults, k->nfaults * sizeof *faults, &failed);
    py_print *prints = copy_bytes(&mem, k->prints, k->nprints * sizeof *prints, &failed);
    bool *writes = copy_bytes(&mem, k->writes, k->nwrites * sizeof *writes, &failed);
    for (uint32_t i = 0; i < k->nfaults && !failed; i++) {
        faults[i].name = copy_text(&mem, faults[i].name, &failed);
        faults[i].text = copy_text(&mem, faults[i].text, &failed);
    }
    for (uint32_t i = 0; i < k->nprints && !failed; i++) copy_print(&mem, &prints[i], &failed);
    if (failed) {
        arena_deinit(&mem);
        return false;
    }
    arena_deinit(&k->mem);
    k->constants = NULL;
    k->faults = faults;
    k->prints = prints;
    k->writes = writes;
    k->mem = mem;
    return true;
}

void py_kernel_free(py_kernel *k) {
    if (k == NULL) return;
    if (k->func != NULL) ir_func_free(k->func);
    arena_deinit(&k->mem);
    heap_free(k);
}
