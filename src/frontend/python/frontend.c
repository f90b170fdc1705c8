/* Facts of the types of numbers. */
#include "frontend/python/frontend.h"

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

dtype py_scalar_dtype(py_scalar s) {
    static const dtype dtypes[PY_SCALAR_COUNT] = {
        [PY_S_NONE] = DT_COUNT, [PY_S_BOOL] = DT_BOOL, [PY_S_I8] = DT_I8,      [PY_S_I16] = DT_I16,
        [PY_S_I32] = DT_I32,    [PY_S_I64] = DT_I64,   [PY_S_U8] = DT_U8,      [PY_S_U16] = DT_U16,
        [PY_S_U32] = DT_U32,    [PY_S_U64] = DT_U64,   [PY_S_F16] = DT_F16,    [PY_S_F32] = DT_F32,
        [PY_S_F64] = DT_F64,    [PY_S_C64] = DT_COUNT, [PY_S_C128] = DT_COUNT,
    };
    return dtypes[s];
}
