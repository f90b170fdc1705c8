/* Entry points of the front end. */
#include "frontend/python/frontend.h"

#include <stdlib.h>

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

void py_kernel_free(py_kernel *k) {
    if (k == NULL) return;
    if (k->func != NULL) ir_func_free(k->func);
    arena_deinit(&k->mem);
    free(k);
}
