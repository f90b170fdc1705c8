/* The signature of a launch (frontend.h has its bytes) -> values of the kernel's parameters; any signature ->
 * types.
 *
 * It is read twice: the walk that types finds the IR function's parameters, the one that lowers uses them. */
#include "frontend/python/work.h"

#include <string.h>

typedef struct reader {
    const uint8_t *at, *end;
    uint32_t argument;
} reader;

ir_value *py_add_slot(py_ctx *c, ir_type t, const char *name, kernel_role role, int32_t argument) {
    if (c->emit) return &c->f->body.params[c->nslots++];
    c->slots = py_grow(c, c->slots, c->nslots, sizeof *c->slots);
    c->slots[c->nslots++] = (kernel_parameter){name, t, ir_type_bytes(t), role, argument};
    return NULL;
}

static bool read_value(py_ctx *c, reader *r, const char *name, py_val *out);

/* The type of an array, behind its 'A'; NULL: no such. */
static const py_type *read_array_type(py_ctx *c, reader *r) {
    if (r->end - r->at < 4) return NULL;
    py_scalar s = (py_scalar)r->at[0];
    int ndim = r->at[1];
    char layout = (char)r->at[2];
    bool readonly = r->at[3] & PY_ARRAY_READONLY;
    r->at += 4;
    const py_record *record = NULL;
    if (s == (py_scalar)PY_SIG_RECORD && r->end - r->at >= 2) {
        uint32_t n = r->at[0] | (uint32_t)r->at[1] << 8;
        r->at += 2;
        if (n <= (size_t)(r->end - r->at)) record = py_record_parse(c->mem, r->at, n);
        if (record != NULL) r->at += n;
        s = PY_S_NONE;
    }
    if ((record == NULL && s <= PY_S_NONE) || s >= PY_SCALAR_COUNT || ndim > PY_MAX_NDIM)
        return NULL;
    if (layout == 'P') {
        py_type *t = PY_NEW(c, py_type, 1);
        *t = (py_type){.kind = TY_POINTER, .scalar = (uint8_t)s, .space = IR_PTR_GLOBAL};
        return record == NULL && ndim == 1 ? t : NULL;
    }
    return py_type_array(c, s, record, ndim, layout, IR_PTR_GLOBAL, readonly);
}

static bool read_array(py_ctx *c, reader *r, const char *name, py_val *out) {
    const py_type *t = read_array_type(c, r);
    if (t == NULL) return py_fail(c, NULL, "bad signature");
    if (t->kind == TY_POINTER) return py_pointer_parameter(c, t, name, (int32_t)r->argument, out);
    int ndim = t->ndim;
    ir_value *sizes[PY_MAX_NDIM], *strides[PY_MAX_NDIM];
    int32_t argument = (int32_t)r->argument;
    ir_value *ptr = py_add_slot(c, IR_PTR_GLOBAL, name, KERNEL_POINTER, argument);
    for (int i = 0; i < ndim; i++) {
        sizes[i] = py_add_slot(c, IR_I64, NULL, KERNEL_SIZE, argument);
        if (c->emit) sizes[i]->is_size = true;
    }
    for (int i = 0; i < ndim; i++)
        strides[i] = py_add_slot(c, IR_I64, NULL, KERNEL_STRIDE, argument);
    int inner = t->layout == 'C' ? ndim - 1 : t->layout == 'F' ? 0 : -1;
    if (inner >= 0 && ndim > 0) /* known, and so is that it is linear in the index */
        strides[inner] = py_emit_int(c, IR_I64, py_element_bytes(t));
    py_origin *o = PY_NEW(c, py_origin, 1);
    *o = (py_origin){.name = name, .parameter = argument};
    *out = py_array_val(c, t, ptr, sizes, strides, o);
    if (t->record != NULL && !py_is_chars(t->record) && ndim == 0) {
        py_val array = *out;
        *out = py_val_record(c, &array, NULL, 0);
    }
    return true;
}

static bool read_scalar(py_ctx *c, const reader *r, py_scalar s, const char *name, py_val *out) {
    int32_t argument = (int32_t)r->argument;
    if (s == PY_S_BOOL) {
        ir_value *v = py_add_slot(c, IR_I8, name, KERNEL_VALUE, argument);
        *out = py_val_scalar(c, s, py_emit_binary(c, IR_NE, v, py_emit_zero(c, IR_I8)));
        return true;
    }
    ir_type t = py_scalar_ir(s);
    ir_value *re = py_add_slot(c, t, name, KERNEL_VALUE, argument);
    if (py_scalar_is_complex(s))
        *out = py_val_complex(c, s, re, py_add_slot(c, t, NULL, KERNEL_VALUE, argument));
    else
        *out = py_val_scalar(c, s, re);
    out->nonneg = py_scalar_is_unsigned(s);
    return true;
}

static const char *read_text(py_ctx *c, reader *r) {
    const char *text = (const char *)r->at;
    size_t n = strnlen(text, (size_t)(r->end - r->at));
    r->at += n < (size_t)(r->end - r->at) ? n + 1 : n;
    char *copy = PY_NEW(c, char, n + 1);
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

static const py_names *read_names(py_ctx *c, reader *r) {
    py_names *names = PY_NEW(c, py_names, 1);
    *names = (py_names){.count = r->at < r->end ? *r->at++ : 0};
    const char **fields = PY_NEW(c, const char *, names->count + 1);
    names->name = read_text(c, r);
    for (uint32_t i = 0; i < names->count; i++) fields[i] = read_text(c, r);
    names->fields = fields;
    return names;
}

static bool read_named(py_ctx *c, reader *r, const char *name, py_val *out) {
    const py_names *names = read_names(c, r);
    py_val *items = PY_NEW(c, py_val, names->count + 1);
    for (uint32_t i = 0; i < names->count; i++)
        if (!read_value(c, r, name, &items[i])) return false;
    *out = py_val_named(c, items, names);
    return true;
}

static bool read_member(py_ctx *c, reader *r, const char *name, py_val *out) {
    py_entity *e = PY_NEW(c, py_entity, 1);
    uint64_t number;
    if ((size_t)(r->end - r->at) < sizeof number) return py_fail(c, NULL, "bad signature");
    memcpy(&number, r->at, sizeof number);
    r->at += sizeof number;
    if (c->host->member(c->host->context, number, name, e) != SIMT_OK)
        return py_fail(c, NULL, "%s", status_get()->text);
    return py_entity_value(c, NULL, e, out);
}

static bool read_value(py_ctx *c, reader *r, const char *name, py_val *out) {
    if (r->at >= r->end) return py_fail(c, NULL, "bad signature");
    uint8_t code = *r->at++;
    if (code == PY_SIG_ARRAY) return read_array(c, r, name, out);
    if (code == PY_SIG_NONE) {
        *out = py_val_none();
        return true;
    }
    if (code == PY_SIG_NAMED) return read_named(c, r, name, out);
    if (code == PY_SIG_MEMBER) return read_member(c, r, name, out);
    if (code == PY_SIG_TUPLE) {
        uint32_t n = r->at < r->end ? *r->at++ : 0;
        py_val *items = PY_NEW(c, py_val, n + 1);
        for (uint32_t i = 0; i < n; i++)
            if (!read_value(c, r, name, &items[i])) return false;
        *out = py_val_tuple(c, items, n);
        return true;
    }
    if (code <= PY_S_NONE || code >= PY_SCALAR_COUNT) return py_fail(c, NULL, "bad signature");
    return read_scalar(c, r, (py_scalar)code, name, out);
}

static const py_type *read_type(py_ctx *c, reader *r);

static const py_type *read_tuple_type(py_ctx *c, reader *r, bool named) {
    py_type *t = PY_NEW(c, py_type, 1);
    *t = (py_type){.kind = TY_TUPLE};
    if (named) t->names = read_names(c, r);
    t->count = named ? t->names->count : r->at < r->end ? *r->at++ : 0;
    const py_type **items = PY_NEW(c, const py_type *, t->count + 1);
    t->items = items;
    for (uint32_t i = 0; i < t->count; i++)
        if ((items[i] = read_type(c, r)) == NULL) return NULL;
    return t;
}

static const py_type *read_type(py_ctx *c, reader *r) {
    if (r->at >= r->end) return NULL;
    uint8_t code = *r->at++;
    switch (code) {
    case PY_SIG_ARRAY: return read_array_type(c, r);
    case PY_SIG_NONE: return &py_type_none;
    case PY_SIG_NAMED:
    case PY_SIG_TUPLE: return read_tuple_type(c, r, code == PY_SIG_NAMED);
    default: return code > 0 && code < PY_SCALAR_COUNT ? py_type_scalar((py_scalar)code) : NULL;
    }
}

bool py_read_types(py_ctx *c, const uint8_t *signature, size_t bytes, const py_type ***out,
                   uint32_t *count) {
    reader r = {signature, signature + bytes, 0};
    *out = NULL;
    *count = 0;
    while (r.at < r.end) {
        *out = py_grow(c, (void *)*out, *count, sizeof **out);
        const py_type *t = read_type(c, &r);
        if (t == NULL) return py_fail(c, NULL, "bad signature");
        (*out)[(*count)++] = t;
    }
    return true;
}

static void put(py_ctx *c, py_bytes *out, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out->bytes = py_grow(c, out->bytes, out->count, 1);
        out->bytes[out->count++] = ((const uint8_t *)bytes)[i];
    }
}

static void put_byte(py_ctx *c, py_bytes *out, int byte) {
    put(c, out, &(uint8_t){(uint8_t)byte}, 1);
}

static void write_array(py_ctx *c, const py_type *t, py_bytes *out) {
    put_byte(c, out, PY_SIG_ARRAY);
    put_byte(c, out, t->record != NULL ? PY_SIG_RECORD : t->scalar);
    put_byte(c, out, t->ndim);
    put_byte(c, out, t->layout);
    put_byte(c, out, t->readonly ? PY_ARRAY_READONLY : 0);
    if (t->record == NULL) return;
    put_byte(c, out, (int)(t->record->bytes & 255));
    put_byte(c, out, (int)(t->record->bytes >> 8));
    put(c, out, t->record->text, t->record->bytes);
}

bool py_write_signature(py_ctx *c, const py_node *at, const py_type *t, py_bytes *out) {
    switch ((py_type_kind)t->kind) {
    case TY_NONE: put_byte(c, out, PY_SIG_NONE); return true;
    case TY_SCALAR: put_byte(c, out, t->scalar); return true;
    case TY_ARRAY: write_array(c, t, out); return true;
    case TY_TUPLE:
        put_byte(c, out, t->names != NULL ? PY_SIG_NAMED : PY_SIG_TUPLE);
        put_byte(c, out, (int)t->count);
        if (t->names != NULL) {
            put(c, out, t->names->name, strlen(t->names->name) + 1);
            for (uint32_t i = 0; i < t->count; i++)
                put(c, out, t->names->fields[i], strlen(t->names->fields[i]) + 1);
        }
        for (uint32_t i = 0; i < t->count; i++)
            if (!py_write_signature(c, at, t->items[i], out)) return false;
        return true;
    default: return py_fail(c, at, "an overload of %s is not in simt yet", py_type_text(c, t));
    }
}

bool py_read_parameters(py_ctx *c, const py_function *fn, const uint8_t *signature, size_t bytes,
                        py_val **out, uint32_t *count) {
    reader r = {signature, signature + bytes, 0};
    const py_node *a = fn->tree->a;
    uint32_t n = a->list.count + a->list2.count;
    if (a->a != NULL || a->b != NULL || a->list3.count > 0)
        return py_fail(c, fn->tree, "a kernel's parameters are positional: no *, **, keyword-only");
    *out = PY_NEW(c, py_val, n + 1);
    for (uint32_t i = 0; i < n; i++, r.argument++) {
        const py_node *p = py_parameter(fn, i);
        if (r.at < r.end && *r.at == PY_SIG_DEFAULT) {
            r.at++;
            const py_entity *d = fn->defaults != NULL ? &fn->defaults[i] : NULL;
            if (d == NULL || d->kind != PY_ENTITY_CONSTANT)
                return py_fail(c, p, "parameter '%s' has no default that a kernel can use",
                               p->name);
            (*out)[i] = py_val_constant(c, &d->value, d->type);
        } else if (!read_value(c, &r, p->name, &(*out)[i])) {
            return false;
        }
    }
    if (r.at != r.end) return py_fail(c, fn->tree, "%s takes %u arguments", fn->name, n);
    *count = n;
    return true;
}
