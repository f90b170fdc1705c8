/* Arrays: their attributes, new ones in shared and local memory, constant ones. */
#include "frontend/python/work.h"

#include <string.h>

py_val py_array_val(py_ctx *c, const py_type *t, ir_value *ptr, ir_value **sizes,
                    ir_value **strides, const py_origin *origin) {
    py_val out = {.type = t, .origin = origin};
    if (!c->emit) return out;
    out.v = PY_NEW(c, ir_value *, 1 + 2 * t->ndim);
    out.v[0] = ptr;
    memcpy(out.v + 1, sizes, sizeof *sizes * t->ndim);
    memcpy(out.v + 1 + t->ndim, strides, sizeof *strides * t->ndim);
    return out;
}

/* ---- attributes ---- */

static py_val shape_like(py_ctx *c, const py_val *of, bool strides) {
    uint32_t n = of->type->ndim;
    py_val *items = PY_NEW(c, py_val, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        bool fixed = !strides && of->origin != NULL && of->origin->is_static;
        if (fixed) {
            items[i] = py_val_int(c, of->origin->shape[i]);
            continue;
        }
        items[i] = py_val_scalar(c, PY_S_I64,
                                 strides ? py_array_stride(of, (int)i) : py_array_size(of, (int)i));
        items[i].nonneg = !strides;
    }
    return py_val_tuple(c, items, n);
}

static py_val size_of(py_ctx *c, const py_val *of, int64_t scale) {
    ir_value *v = py_emit_int(c, IR_I64, scale);
    int64_t known = scale;
    bool fixed = of->origin != NULL && of->origin->is_static;
    for (int i = 0; i < of->type->ndim; i++) {
        v = i == 0 && scale == 1 ? py_array_size(of, 0)
                                 : py_emit_binary(c, IR_MUL, v, py_array_size(of, i));
        if (fixed) known *= of->origin->shape[i];
    }
    if (fixed) return py_val_int(c, known);
    py_val out = py_val_scalar(c, PY_S_I64, v);
    out.nonneg = true;
    return out;
}

static py_val transposed(py_ctx *c, const py_val *of) {
    const py_type *t = of->type;
    ir_value *sizes[PY_MAX_NDIM], *strides[PY_MAX_NDIM];
    char layout = t->layout == 'C' ? 'F' : t->layout == 'F' ? 'C' : 'A';
    if (t->ndim < 2) return *of;
    for (int i = 0; i < t->ndim; i++) {
        sizes[i] = py_array_size(of, t->ndim - 1 - i);
        strides[i] = py_array_stride(of, t->ndim - 1 - i);
    }
    py_origin *o = NULL;
    if (of->origin != NULL) {
        o = PY_NEW(c, py_origin, 1);
        *o = *of->origin;
        for (int i = 0; i < t->ndim; i++) o->shape[i] = of->origin->shape[t->ndim - 1 - i];
    }
    return py_array_val(
        c, py_type_array(c, t->scalar, t->record, t->ndim, layout, t->space, t->readonly),
        py_array_ptr(of), sizes, strides, o);
}

/* a.real, a.imag of complex numbers: an array of their parts. */
static py_val part_of(py_ctx *c, const py_val *of, bool imaginary) {
    const py_type *t = of->type;
    py_scalar part = py_scalar_part(t->scalar);
    ir_value *sizes[PY_MAX_NDIM], *strides[PY_MAX_NDIM], *ptr = py_array_ptr(of);
    for (int i = 0; i < t->ndim; i++) {
        sizes[i] = py_array_size(of, i);
        strides[i] = py_array_stride(of, i);
    }
    if (imaginary)
        ptr = py_emit_ptradd(c, ptr, py_emit_int(c, IR_I64, (int64_t)py_scalar_bytes(part)));
    const py_type *type = py_type_array(c, part, NULL, t->ndim, 'A', t->space, t->readonly);
    return py_array_val(c, type, ptr, sizes, strides, of->origin);
}

bool py_array_attribute(py_ctx *c, const py_node *at, const py_val *of, const char *name,
                        py_val *out, bool *found) {
    *found = true;
    int64_t item = py_element_bytes(of->type);
    if (strcmp(name, "shape") == 0) {
        *out = shape_like(c, of, false);
    } else if (strcmp(name, "strides") == 0) {
        *out = shape_like(c, of, true);
    } else if (strcmp(name, "size") == 0) {
        *out = size_of(c, of, 1);
    } else if (strcmp(name, "nbytes") == 0) {
        *out = size_of(c, of, item);
    } else if (strcmp(name, "ndim") == 0) {
        *out = py_val_int(c, of->type->ndim);
    } else if (strcmp(name, "itemsize") == 0) {
        *out = py_val_int(c, item);
    } else if (strcmp(name, "T") == 0) {
        *out = transposed(c, of);
    } else if (strcmp(name, "dtype") == 0) {
        py_entity *e = PY_NEW(c, py_entity, 1);
        *e = (py_entity){
            .kind = PY_ENTITY_TYPE, .type = of->type->scalar, .record = of->type->record};
        *out = py_val_entity(c, e);
    } else if (py_scalar_is_complex(of->type->scalar) && strcmp(name, "real") == 0) {
        *out = part_of(c, of, false);
    } else if (py_scalar_is_complex(of->type->scalar) && strcmp(name, "imag") == 0) {
        *out = part_of(c, of, true);
    } else if (py_scalar_is_float(of->type->scalar) && strcmp(name, "real") == 0) {
        *out = *of;
    } else if (of->type->record != NULL) {
        return py_array_field(c, at, of, name, out);
    } else {
        *found = false;
    }
    return true;
}

/* ---- new arrays ---- */

enum { MOST_BYTES = 1 << 30 }; /* of one kind of memory */

static bool constant_shape(py_ctx *c, const py_node *at, const py_val *shape, ir_type space,
                           int64_t *out, int *ndim) {
    bool tuple = shape->type->kind == TY_TUPLE;
    uint32_t n = tuple ? shape->type->count : 1;
    if (n > PY_MAX_NDIM) return py_fail(c, at, "an array of %u dimensions: at most 8", n);
    for (uint32_t i = 0; i < n; i++) {
        py_val v = tuple ? py_val_item(shape, i) : *shape;
        if (!v.is_const || v.value.kind != PY_VALUE_INT)
            return py_fail(c, at,
                           "the shape must be constant (a number, or a global or closure "
                           "variable); %s",
                           space == IR_PTR_SHARED
                               ? "for a size known at launch use dynamic shared memory: shape 0 "
                                 "and kernel[grid, block, stream, bytes]"
                               : "take the largest that is needed");
        if (v.value.integer < 0)
            return py_fail(c, at, "negative size %lld", (long long)v.value.integer);
        out[i] = v.value.integer;
    }
    *ndim = (int)n;
    return true;
}

static py_val static_array(py_ctx *c, const py_type *t, ir_value *ptr, const int64_t *shape,
                           const char *name) {
    ir_value *sizes[PY_MAX_NDIM], *strides[PY_MAX_NDIM];
    py_origin *o = PY_NEW(c, py_origin, 1);
    *o = (py_origin){.name = name, .parameter = -1, .is_static = true};
    int64_t stride = py_element_bytes(t);
    for (int i = t->ndim; i-- > 0;) {
        o->shape[i] = shape[i];
        sizes[i] = py_emit_int(c, IR_I64, shape[i]);
        strides[i] = py_emit_int(c, IR_I64, stride);
        stride *= shape[i];
    }
    return py_array_val(c, t, ptr, sizes, strides, o);
}

ir_value *py_array_address(py_ctx *c, const py_val *a) {
    return py_emit_cast(c, IR_BITCAST, IR_I64, py_array_ptr(a));
}

/* The array's address moved up to a multiple of `alignment`: there is room behind it. */
static void align(py_ctx *c, py_val *a, int64_t alignment) {
    ir_value *zero = py_emit_zero(c, IR_I64);
    ir_value *below = py_emit_binary(c, IR_SUB, zero, py_array_address(c, a));
    ir_value *more = py_emit_binary(c, IR_AND, below, py_emit_int(c, IR_I64, alignment - 1));
    if (c->emit) a->v[0] = py_emit_ptradd(c, a->v[0], more);
}

bool py_array_alloc(py_ctx *c, const py_node *at, const py_val *shape, const py_entity *type,
                    ir_type space, int64_t alignment, py_val *out) {
    int64_t sizes[PY_MAX_NDIM], count = 1, item = (int64_t)py_entity_bytes(type);
    int ndim = 0;
    if (!constant_shape(c, at, shape, space, sizes, &ndim)) return false;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(count, sizes[i], &count) || count > MOST_BYTES)
            return py_fail(c, at, "the array is too large: at most 1 GiB of %s memory",
                           space == IR_PTR_SHARED ? "shared" : "local");
    const py_type *t = py_type_array(c, type->type, type->record, ndim, 'C', space, false);
    if (space == IR_PTR_SHARED && ndim == 1 && count == 0) {
        c->want_dynamic = true;
        ir_value *n = py_emit_binary(c, IR_DIV_U, c->dynamic_bytes, py_emit_int(c, IR_I64, item));
        ir_value *stride = py_emit_int(c, IR_I64, item);
        ir_value *ptr = c->emit ? ir_alloc_dynamic(&c->b) : NULL;
        py_origin *o = PY_NEW(c, py_origin, 1);
        *o = (py_origin){.name = "dynamic shared array", .parameter = -1};
        *out = py_array_val(c, t, ptr, &n, &stride, o);
        return true;
    }
    if (count * item > MOST_BYTES)
        return py_fail(c, at, "the array is too large: %lld bytes of %s memory",
                       (long long)(count * item), space == IR_PTR_SHARED ? "shared" : "local");
    size_t bytes = (size_t)(count * item > 0 ? count * item : 1);
    if (alignment > 16) bytes += (size_t)alignment - 16; /* what ALLOC gives is 16-aligned */
    size_t *total = space == IR_PTR_SHARED ? &c->static_shared : &c->local;
    if (c->emit && *total + bytes > MOST_BYTES)
        return py_fail(c, at, "the kernel's arrays are too large: more than 1 GiB of %s memory",
                       space == IR_PTR_SHARED ? "shared" : "local");
    if (c->emit) *total += (bytes + 15) & ~(size_t)15;
    ir_value *ptr = c->emit ? ir_alloc(&c->b, space, bytes) : NULL;
    *out = static_array(c, t, ptr, sizes, space == IR_PTR_SHARED ? "shared array" : "local array");
    if (alignment > 16) align(c, out, alignment);
    return true;
}

bool py_array_constant(py_ctx *c, const py_node *at, const py_entity *e, py_val *out) {
    uint32_t k = 0;
    while (k < c->nconstants && c->constants[k]->data != e->data) k++;
    enum { MOST = 64 };
    if (k == c->nconstants) {
        if (c->constants == NULL) c->constants = PY_NEW(c, const py_entity *, MOST);
        if (c->nconstants == MOST || c->emit)
            return py_fail(c, at, "more than %d constant arrays in a kernel", MOST);
        c->constants[c->nconstants++] = e;
    }
    const py_type *t = py_type_array(c, e->type, e->record, e->ndim, 'A', IR_PTR_GLOBAL, true);
    py_val a = static_array(c, t, c->emit ? c->constant_addresses[k] : NULL, e->shape, e->name);
    for (int i = 0; i < e->ndim && c->emit; i++)
        a.v[1 + e->ndim + i] = py_emit_int(c, IR_I64, e->strides[i]);
    *out = a;
    return true;
}
