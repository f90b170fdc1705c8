/* Records: elements of arrays of structured types.
 *
 * A record is an array and an index into it, nothing is loaded: r = a[i] stays a[i], as in Numba. So a field
 * is an element of the array of that field (the same array, elements `offset` bytes further), and an index
 * out of range is found when a field is used.
 */
#include "frontend/python/work.h"

#include <string.h>

/* ---- the description in a signature ---- */

typedef struct parser {
    arena *mem;
    const uint8_t *at, *end;
    int depth;
    bool failed;
} parser;

static uint32_t number(parser *p, int bytes) {
    uint32_t v = 0;
    if (p->end - p->at < bytes) p->failed = true;
    for (int i = 0; i < bytes && !p->failed; i++) v |= (uint32_t)*p->at++ << (8 * i);
    return v;
}

static const char *text(parser *p) {
    size_t room = (size_t)(p->end - p->at), n = strnlen((const char *)p->at, room);
    const char *start = (const char *)p->at;
    p->failed |= n == room;
    p->at += n < room ? n + 1 : n;
    return p->failed ? "" : arena_strdup(p->mem, start);
}

static const py_record *record(parser *p);

static void field(parser *p, py_field *f) {
    f->name = text(p);
    f->offset = number(p, 4);
    f->ndim = (int)number(p, 1);
    p->failed |= f->name == NULL || f->ndim > PY_MAX_NDIM;
    for (int i = 0; i < f->ndim && !p->failed; i++) f->shape[i] = number(p, 4);
    uint32_t type = number(p, 1);
    if (type == PY_SIG_RECORD)
        f->record = record(p);
    else if (type <= PY_S_NONE || type >= PY_SCALAR_COUNT)
        p->failed = true;
    else
        f->type = (py_scalar)type;
}

static const py_record *record(parser *p) {
    py_record *r = ++p->depth < 16 ? ARENA_NEW(p->mem, py_record) : NULL;
    p->failed |= r == NULL;
    if (p->failed) return NULL;
    *r = (py_record){.text = p->at};
    r->size = number(p, 4);
    r->count = number(p, 2) & ~(uint32_t)PY_RECORD_ALIGNED;
    if (r->count & PY_RECORD_CHARS) {
        r->width = r->count & ~(uint32_t)PY_RECORD_CHARS;
        r->count = 0;
        p->failed |= (r->width != 1 && r->width != 4) || r->size == 0 || r->size % r->width != 0 ||
                     r->size > PY_MOST_CHARS;
    }
    py_field *fields = ARENA_ARRAY(p->mem, py_field, r->count + 1);
    p->failed |= fields == NULL;
    if (!p->failed) memset(fields, 0, sizeof *fields * r->count);
    for (uint32_t i = 0; i < r->count && !p->failed; i++) field(p, &fields[i]);
    r->fields = fields;
    r->bytes = (uint32_t)(p->at - r->text);
    p->depth--;
    return r;
}

const py_record *py_record_parse(arena *mem, const uint8_t *bytes, uint32_t n) {
    uint8_t *copy = ARENA_ARRAY(mem, uint8_t, n + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, bytes, n);
    parser p = {mem, copy, copy + n, 0, false};
    const py_record *r = record(&p);
    return p.failed || p.at != p.end ? NULL : r;
}

bool py_record_equal(const py_record *a, const py_record *b) {
    if (a == b) return true;
    return a != NULL && b != NULL && a->bytes == b->bytes &&
           memcmp(a->text, b->text, a->bytes) == 0;
}

/* The same fields at the same places, of types that may differ in what they were aligned for. */
static bool same_fields(const py_record *a, const py_record *b) {
    if (a->size != b->size || a->count != b->count || a->width != b->width) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const py_field *f = &a->fields[i], *g = &b->fields[i];
        if (strcmp(f->name, g->name) != 0 || f->offset != g->offset || f->type != g->type ||
            f->ndim != g->ndim || (f->record == NULL) != (g->record == NULL) ||
            memcmp(f->shape, g->shape, sizeof f->shape) != 0)
            return false;
        if (f->record != NULL && !same_fields(f->record, g->record)) return false;
    }
    return true;
}

/* ---- values ---- */

/* Slots: those of the array, then the index. items, when known: the array and a tuple. */
py_val py_val_record(py_ctx *c, const py_val *array, const py_val *index, uint32_t n) {
    py_type *t = PY_NEW(c, py_type, 1);
    const py_type **of = PY_NEW(c, const py_type *, 1);
    of[0] = array->type;
    *t = (py_type){.kind = TY_RECORD, .ndim = (uint8_t)n, .count = 1, .items = of};
    py_val *items = PY_NEW(c, py_val, 2), *parts = PY_NEW(c, py_val, n + 1);
    for (uint32_t i = 0; i < n; i++) parts[i] = index[i];
    items[0] = *array;
    items[1] = py_val_tuple(c, parts, n);
    py_val out = {.type = t, .items = items};
    if (!c->emit) return out;
    uint32_t slots = py_type_slots(array->type);
    out.v = PY_NEW(c, ir_value *, slots + n);
    memcpy(out.v, array->v, sizeof *out.v * slots);
    for (uint32_t i = 0; i < n; i++) out.v[slots + i] = index[i].v[0];
    return out;
}

static void take(py_ctx *c, const py_val *r, py_val *array, py_val *index) {
    if (r->items != NULL) {
        *array = r->items[0];
        *index = r->items[1];
        return;
    }
    uint32_t slots = py_type_slots(r->type->items[0]);
    *array = py_val_from_slots(r->type->items[0], r->v);
    py_val *parts = PY_NEW(c, py_val, r->type->ndim + 1);
    for (uint32_t i = 0; i < r->type->ndim; i++)
        parts[i] = py_val_scalar(c, PY_S_I64, r->v != NULL ? r->v[slots + i] : NULL);
    *index = py_val_tuple(c, parts, r->type->ndim);
}

const py_field *py_record_field(const py_record *r, const char *name) {
    for (uint32_t i = 0; i < r->count; i++)
        if (strcmp(r->fields[i].name, name) == 0) return &r->fields[i];
    return NULL;
}

bool py_array_field(py_ctx *c, const py_node *at, const py_val *of, const char *name, py_val *out) {
    const py_type *t = of->type;
    const py_field *f = py_record_field(t->record, name);
    ir_value *sizes[2 * PY_MAX_NDIM], *strides[2 * PY_MAX_NDIM];
    if (f == NULL) return py_fail(c, at, "%s has no field '%s'", py_type_text(c, t), name);
    if (t->ndim + f->ndim > PY_MAX_NDIM)
        return py_fail(c, at,
                       "an array of %u dimensions with a field '%s' of %d: at most %d in all",
                       t->ndim, name, f->ndim, PY_MAX_NDIM);
    for (int i = 0; i < t->ndim; i++) {
        sizes[i] = py_array_size(of, i);
        strides[i] = py_array_stride(of, i);
    }
    int64_t step = f->record != NULL ? f->record->size : (int64_t)py_scalar_bytes(f->type);
    for (int i = f->ndim; i-- > 0; step *= f->shape[i]) {
        sizes[t->ndim + i] = py_emit_int(c, IR_I64, f->shape[i]);
        strides[t->ndim + i] = py_emit_int(c, IR_I64, step);
    }
    py_origin *o = of->origin != NULL ? PY_NEW(c, py_origin, 1) : NULL;
    if (o != NULL) {
        *o = *of->origin;
        memcpy(o->shape + t->ndim, f->shape, sizeof *f->shape * (size_t)f->ndim);
    }
    const py_type *type =
        py_type_array(c, f->type, f->record, t->ndim + f->ndim, 'A', t->space, t->readonly);
    ir_value *ptr = py_emit_ptradd(c, py_array_ptr(of), py_emit_int(c, IR_I64, f->offset));
    *out = py_array_val(c, type, ptr, sizes, strides, o);
    return true;
}

bool py_record_get(py_ctx *c, const py_node *at, const py_val *r, const char *name, py_val *out) {
    py_val array, index, column;
    take(c, r, &array, &index);
    return py_array_field(c, at, &array, name, &column) && py_get_item(c, at, &column, &index, out);
}

bool py_record_set(py_ctx *c, const py_node *at, const py_val *r, const char *name,
                   const py_val *value) {
    py_val array, index, column;
    take(c, r, &array, &index);
    return py_array_field(c, at, &array, name, &column) &&
           py_set_item(c, at, &column, &index, value);
}

bool py_record_assign(py_ctx *c, const py_node *at, const py_val *r, const py_val *value) {
    const py_record *to = r->type->items[0]->record;
    bool tuple = value->type->kind == TY_TUPLE && value->type->count == to->count;
    bool same = value->type->kind == TY_RECORD && same_fields(value->type->items[0]->record, to);
    if (!tuple && !same)
        return py_fail(c, at, "%s expected, not %s", py_type_text(c, r->type),
                       py_type_text(c, value->type));
    for (uint32_t i = 0; i < to->count; i++) {
        py_val item;
        if (tuple)
            item = py_val_item(value, i);
        else if (!py_record_get(c, at, value, to->fields[i].name, &item))
            return false;
        if (!py_record_set(c, at, r, to->fields[i].name, &item)) return false;
    }
    return true;
}
