/* Elements and views of arrays, and assignment to them.
 *
 * Every element access is confined: an index outside [0, size) wraps once when negative, as Numba's do, and
 * otherwise drops the access and reports a fault; the thread goes on. The common case is tested first with
 * one unsigned comparison of the unwrapped index, so that an index that is linear in the thread stays
 * linear for the back end; the wrapped access has a path of its own.
 */
#include "frontend/python/work.h"

#include <string.h>

/* ---- the parts of an index ---- */

enum { MOST_PARTS = 2 * PY_MAX_NDIM };
typedef struct parts {
    py_val item[MOST_PARTS];
    uint32_t n;    /* None and ... included */
    uint32_t axes; /* of the array that they take */
    bool all_integers;
} parts;

static bool is_ellipsis(const py_val *v) {
    return v->type->kind == TY_STRING && v->value.kind == PY_VALUE_ELLIPSIS;
}

static bool take_apart(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                       parts *p) {
    *p = (parts){.all_integers = true};
    bool tuple = index->type->kind == TY_TUPLE;
    uint32_t n = tuple ? index->type->count : 1;
    if (n > MOST_PARTS) return py_fail(c, at, "too many indices: %u", n);
    for (uint32_t i = 0; i < n; i++) {
        py_val v = tuple ? py_val_item(index, i) : *index;
        if (!py_take_value(c, at, &v)) return false;
        py_type_kind kind = v.type->kind;
        if (kind == TY_SCALAR) {
            if (!py_to_index(c, at, &v, "an index", &v)) return false;
        } else if (kind != TY_SLICE && kind != TY_NONE && !is_ellipsis(&v)) {
            return py_fail(c, at, "an index must be integers or slices, not %s%s",
                           py_type_text(c, v.type), py_advice(c, v.type));
        }
        if (kind != TY_SCALAR) p->all_integers = false;
        if (kind == TY_SCALAR || kind == TY_SLICE) p->axes++;
        p->item[p->n++] = v;
    }
    if (p->axes > of->type->ndim)
        return py_fail(c, at, "%u indices for an array of %u dimension%s", p->axes, of->type->ndim,
                       of->type->ndim == 1 ? "" : "s");
    return true;
}

/* ---- bounds ---- */

static const char *name_of(const py_node *at, const py_val *of) {
    const py_node *base = at->kind == PY_SUBSCRIPT ? at->a : NULL;
    if (base != NULL && base->kind == PY_NAME) return base->name;
    return of->origin != NULL && of->origin->name != NULL ? of->origin->name : "array";
}

static ir_value *inside(py_ctx *c, const py_val *of, ir_value *const *index, uint32_t n) {
    ir_value *all = NULL;
    for (uint32_t i = 0; i < n; i++) {
        ir_value *ok = py_emit_binary(c, IR_LT_U, index[i], py_array_size(of, (int)i));
        all = i == 0 ? ok : py_emit_binary(c, IR_AND, all, ok);
    }
    return all;
}

static void report(py_ctx *c, const py_node *at, const py_val *of, ir_value *const *index,
                   ir_value *const *wrapped, uint32_t n) {
    const py_origin *o = of->origin;
    kernel_fault f = {
        .kind = KERNEL_FAULT_INDEX, .name = name_of(at, of), .ndim = -1, .argument = -1};
    if (o != NULL) f.argument = o->parameter;
    if (o != NULL && o->is_static) {
        f.ndim = of->type->ndim;
        memcpy(f.shape, o->shape, sizeof f.shape);
    }
    ir_value *values[3] = {index[0], py_emit_int(c, IR_I64, 0), py_array_size(of, 0)};
    ir_value *fine = NULL;             /* the axes before i */
    for (uint32_t i = 1; i < n; i++) { /* the first axis that is out of range */
        ir_value *ok = py_emit_binary(c, IR_LT_U, wrapped[i - 1], py_array_size(of, (int)i - 1));
        fine = i == 1 ? ok : py_emit_binary(c, IR_AND, fine, ok);
        values[0] = py_emit_select(c, fine, index[i], values[0]);
        values[1] = py_emit_select(c, fine, py_emit_int(c, IR_I64, i), values[1]);
        values[2] = py_emit_select(c, fine, py_array_size(of, (int)i), values[2]);
    }
    uint32_t number = py_add_fault(c, at, &f);
    if (c->emit) ir_fault(&c->b, number, values, 3);
}

static ir_value *address_of(py_ctx *c, const py_val *of, ir_value *const *index, uint32_t n) {
    ir_value *at = py_array_ptr(of);
    for (uint32_t i = 0; i < n; i++)
        at =
            py_emit_ptradd(c, at, py_emit_binary(c, IR_MUL, index[i], py_array_stride(of, (int)i)));
    return at;
}

/* The wrapped indices; false: none can be negative. */
static bool wrap(py_ctx *c, const py_val *of, const py_val *parts, uint32_t n, ir_value **out) {
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        ir_value *x = py_slot(&parts[i], 0);
        out[i] = x;
        if (parts[i].nonneg) continue;
        any = true;
        ir_value *negative = py_emit_binary(c, IR_LT_S, x, py_emit_zero(c, IR_I64));
        out[i] =
            py_emit_select(c, negative, py_emit_binary(c, IR_ADD, x, py_array_size(of, (int)i)), x);
    }
    return any;
}

/* ---- one element ---- */

/* What an element is as a value. */
static const py_type *element_type(py_ctx *c, const py_type *array) {
    return array->record != NULL ? py_chars_type(c, array->record) : py_type_scalar(array->scalar);
}

void py_load_element(py_ctx *c, const py_type *type, ir_value *at, ir_value **v) {
    py_scalar s = (py_scalar)type->scalar;
    if (type->kind == TY_CHARS) {
        py_chars_load(c, type, at, v);
        return;
    }
    ir_type t = py_scalar_memory_ir(s);
    v[0] = py_emit_load(c, t, at);
    if (s == PY_S_BOOL) v[0] = py_emit_binary(c, IR_NE, v[0], py_emit_zero(c, IR_I8));
    if (!py_scalar_is_complex(s)) return;
    ir_value *part = py_emit_int(c, IR_I64, (int64_t)ir_type_bytes(t));
    v[1] = py_emit_load(c, t, py_emit_ptradd(c, at, part));
}

void py_store_element(py_ctx *c, const py_type *type, ir_value *at, ir_value *const *v) {
    py_scalar s = (py_scalar)type->scalar;
    if (type->kind == TY_CHARS) {
        py_chars_store(c, type, at, v);
        return;
    }
    if (s == PY_S_BOOL) {
        py_emit_store(c, at, py_emit_cast(c, IR_ZEXT, IR_I8, v[0]));
        return;
    }
    py_emit_store(c, at, v[0]);
    if (!py_scalar_is_complex(s)) return;
    ir_value *part = py_emit_int(c, IR_I64, (int64_t)ir_type_bytes(py_scalar_ir(s)));
    py_emit_store(c, py_emit_ptradd(c, at, part), v[1]);
}

enum { MOST_SLOTS = PY_MOST_CHARS / 8 };

/* Loads (values NULL) or stores one element with the two paths described above. */
static void access(py_ctx *c, const py_node *at, const py_val *of, const py_val *index, uint32_t n,
                   ir_value *const *values, ir_value **results) {
    const py_type *s = element_type(c, of->type);
    uint32_t all = py_type_slots(s), slots = values != NULL ? 0 : all;
    ir_type types[MOST_SLOTS];
    ir_value *x[PY_MAX_NDIM], *wrapped[PY_MAX_NDIM], *v[MOST_SLOTS], *w[MOST_SLOTS],
        *zero[MOST_SLOTS];
    for (uint32_t i = 0; i < all; i++) types[i] = py_type_slot(s, i);
    for (uint32_t i = 0; i < n; i++) x[i] = py_slot(&index[i], 0);
    if (!c->options->bounds || n == 0) {
        wrap(c, of, index, n, wrapped);
        ir_value *p = address_of(c, of, wrapped, n);
        if (values != NULL)
            py_store_element(c, s, p, values);
        else
            py_load_element(c, s, p, results);
        return;
    }
    py_if outer = py_begin_if(c, inside(c, of, x, n), types, slots);
    if (values != NULL)
        py_store_element(c, s, address_of(c, of, x, n), values);
    else
        py_load_element(c, s, address_of(c, of, x, n), v);
    py_else(c, &outer, v, slots);
    for (uint32_t i = 0; i < all; i++) zero[i] = py_emit_zero(c, types[i]);
    if (wrap(c, of, index, n, wrapped)) {
        py_if inner = py_begin_if(c, inside(c, of, wrapped, n), types, slots);
        if (values != NULL)
            py_store_element(c, s, address_of(c, of, wrapped, n), values);
        else
            py_load_element(c, s, address_of(c, of, wrapped, n), v);
        py_else(c, &inner, v, slots);
        report(c, at, of, x, wrapped, n);
        py_end_if(c, &inner, zero, slots, w);
    } else {
        report(c, at, of, x, x, n);
        memcpy(w, zero, sizeof *w * all);
    }
    py_end_if(c, &outer, w, slots, results);
}

static bool get_element(py_ctx *c, const py_node *at, const py_val *of, const parts *p,
                        py_val *out) {
    const py_type *s = element_type(c, of->type);
    *out = (py_val){.type = s, .nonneg = s->kind == TY_SCALAR && py_scalar_is_unsigned(s->scalar)};
    if (!c->emit) return true;
    out->v = PY_NEW(c, ir_value *, py_type_slots(s));
    access(c, at, of, p->item, p->n, NULL, out->v);
    return true;
}

bool py_may_write(py_ctx *c, const py_node *at, const py_val *of) {
    if (of->type->readonly)
        return py_fail(c, at, "array '%s' is read-only%s", name_of(at, of),
                       of->origin != NULL && of->origin->parameter < 0
                           ? ": give the kernel an array to write as an argument"
                           : "");
    if (of->origin != NULL && of->origin->parameter >= 0)
        c->writes[of->origin->parameter] = true;
    else if (of->origin == NULL && of->type->space == IR_PTR_GLOBAL) /* it may be any of them */
        for (uint32_t i = 0; i < c->nsignature; i++) c->writes[i] = true;
    return true;
}

bool py_element_begin(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                      const ir_type *types, uint32_t n, py_element *e) {
    parts p;
    *e = (py_element){.at = at, .of = of};
    if (of->type->kind != TY_ARRAY)
        return py_fail(c, at, "an array expected, not %s", py_type_text(c, of->type));
    if (!take_apart(c, at, of, index, &p) || !py_may_write(c, at, of)) return false;
    if (!p.all_integers || p.n != of->type->ndim)
        return py_fail(c, at, "one element expected: %u indices for an array of %u dimensions%s",
                       p.axes, of->type->ndim, p.axes == 1 ? ": write (i, j)" : "");
    e->type = of->type->scalar;
    if (!c->emit) return true;
    for (uint32_t i = 0; i < p.n; i++) e->index[i] = py_slot(&p.item[i], 0);
    wrap(c, of, p.item, p.n, e->wrapped);
    e->guarded = c->options->bounds;
    if (e->guarded) e->guard = py_begin_if(c, inside(c, of, e->wrapped, p.n), types, n);
    e->address = address_of(c, of, e->wrapped, p.n);
    return true;
}

void py_element_end(py_ctx *c, py_element *e, ir_value **values, uint32_t n, ir_value **results) {
    ir_value *zero[4];
    if (!c->emit) return;
    if (!e->guarded) {
        for (uint32_t i = 0; i < n && results != NULL; i++) results[i] = values[i];
        return;
    }
    py_else(c, &e->guard, values, n);
    report(c, e->at, e->of, e->index, e->wrapped, e->of->type->ndim);
    for (uint32_t i = 0; i < n; i++) zero[i] = py_emit_zero(c, values[i]->type);
    py_end_if(c, &e->guard, zero, n, results);
}

/* ---- views ---- */

typedef struct view {
    ir_value *ptr, *sizes[MOST_PARTS], *strides[MOST_PARTS];
    int ndim;
    char layout;
} view;

static ir_value *clamp(py_ctx *c, ir_value *x, ir_value *n, ir_value *low, ir_value *high) {
    ir_value *negative = py_emit_binary(c, IR_LT_S, x, py_emit_zero(c, IR_I64));
    ir_value *from_end = py_emit_binary(c, IR_MAX_S, py_emit_binary(c, IR_ADD, x, n), low);
    return py_emit_select(c, negative, from_end, py_emit_binary(c, IR_MIN_S, x, high));
}

/* slice.indices(n): the first element, the length and the step. */
static void resolve_slice(py_ctx *c, const py_val *slice, ir_value *n, ir_value **start,
                          ir_value **length, ir_value **step) {
    uint8_t given = slice->type->given;
    ir_value *zero = py_emit_int(c, IR_I64, 0), *one = py_emit_int(c, IR_I64, 1);
    ir_value *minus = py_emit_int(c, IR_I64, -1), *stop;
    ir_value **v = slice->v;
    if (!c->emit) return;
    if ((given & 4) == 0) { /* the common case, without the reversed half */
        *step = one;
        *start = given & 1 ? clamp(c, v[0], n, zero, n) : zero;
        stop = given & 2 ? clamp(c, v[1], n, zero, n) : n;
        *length = given == 0
                      ? n
                      : py_emit_binary(c, IR_MAX_S, py_emit_binary(c, IR_SUB, stop, *start), zero);
        return;
    }
    ir_value *down = py_emit_binary(c, IR_LT_S, v[2], zero);
    ir_value *low = py_emit_select(c, down, minus, zero);
    ir_value *high = py_emit_select(c, down, py_emit_binary(c, IR_ADD, n, minus), n);
    *step = v[2];
    *start = given & 1 ? clamp(c, v[0], n, low, high) : py_emit_select(c, down, high, low);
    stop = given & 2 ? clamp(c, v[1], n, low, high) : py_emit_select(c, down, low, high);
    ir_value *size = py_emit_unary(c, IR_ABS, *step);
    ir_value *way = py_emit_select(c, down, py_emit_binary(c, IR_SUB, *start, stop),
                                   py_emit_binary(c, IR_SUB, stop, *start));
    ir_value *count = py_emit_binary(
        c, IR_DIV_S, py_emit_binary(c, IR_ADD, py_emit_binary(c, IR_ADD, way, size), minus), size);
    *length = py_emit_binary(c, IR_MAX_S, count, zero);
}

static void add_axis(view *w, ir_value *size, ir_value *stride) {
    w->sizes[w->ndim] = size;
    w->strides[w->ndim++] = stride;
}

/* An integer in a view: where it is out of range the view becomes empty and a fault is reported. */
static ir_value *view_index(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                            int axis, ir_value *all_ok, ir_value **offset) {
    ir_value *n = py_array_size(of, axis), *x = py_slot(index, 0), *w = x;
    if (!index->nonneg)
        w = py_emit_select(c, py_emit_binary(c, IR_LT_S, x, py_emit_zero(c, IR_I64)),
                           py_emit_binary(c, IR_ADD, x, n), x);
    ir_value *ok = py_emit_binary(c, IR_LT_U, w, n);
    kernel_fault f = {
        .kind = KERNEL_FAULT_INDEX, .name = name_of(at, of), .ndim = -1, .argument = -1};
    if (of->origin != NULL) f.argument = of->origin->parameter;
    py_if i = py_begin_if(c, ok, NULL, 0);
    py_else(c, &i, NULL, 0);
    ir_value *values[3] = {x, py_emit_int(c, IR_I64, axis), n};
    uint32_t number = py_add_fault(c, at, &f);
    if (c->emit) ir_fault(&c->b, number, values, 3);
    py_end_if(c, &i, NULL, 0, NULL);
    *offset = py_emit_select(c, ok, w, py_emit_zero(c, IR_I64));
    return all_ok != NULL ? py_emit_binary(c, IR_AND, all_ok, ok) : ok;
}

static bool get_view(py_ctx *c, const py_node *at, const py_val *of, const parts *p, py_val *out) {
    view w = {.ptr = py_array_ptr(of), .layout = of->type->layout == 'C' ? 'C' : 'A'};
    int axis = 0, rest = of->type->ndim - (int)p->axes;
    ir_value *ok = NULL;
    bool seen_slice = false, expanded = false;
    for (uint32_t i = 0; i <= p->n; i++) {
        bool last = i == p->n;
        const py_val *v = last ? NULL : &p->item[i];
        if (w.ndim + rest > PY_MAX_NDIM) return py_fail(c, at, "more than 8 dimensions");
        if (last || is_ellipsis(v)) { /* the axes that no index names */
            if (!last && expanded) return py_fail(c, at, "an index has more than one '...'");
            for (int k = 0; k < rest && !expanded; k++, axis++)
                add_axis(&w, py_array_size(of, axis), py_array_stride(of, axis));
            expanded = true;
            if (!last) seen_slice = true;
        } else if (v->type->kind == TY_NONE) {
            add_axis(&w, py_emit_int(c, IR_I64, 1), py_emit_int(c, IR_I64, 0));
            w.layout = 'A';
        } else if (v->type->kind == TY_SCALAR) {
            ir_value *offset;
            if (seen_slice) w.layout = 'A';
            ok = view_index(c, at, of, v, axis, ok, &offset);
            w.ptr = py_emit_ptradd(c, w.ptr,
                                   py_emit_binary(c, IR_MUL, offset, py_array_stride(of, axis++)));
        } else {
            ir_value *start = NULL, *length = NULL, *step = NULL,
                     *stride = py_array_stride(of, axis);
            resolve_slice(c, v, py_array_size(of, axis), &start, &length, &step);
            if ((v->type->given & 4) || (v->type->given != 0 && seen_slice)) w.layout = 'A';
            seen_slice = true;
            w.ptr = py_emit_ptradd(c, w.ptr, py_emit_binary(c, IR_MUL, start, stride));
            if (v->type->given & 4) stride = py_emit_binary(c, IR_MUL, stride, step);
            add_axis(&w, length, stride);
            axis++;
        }
    }
    if (ok != NULL)
        for (int i = 0; i < w.ndim; i++)
            w.sizes[i] = py_emit_select(c, ok, w.sizes[i], py_emit_zero(c, IR_I64));
    const py_type *t = py_type_array(c, of->type->scalar, of->type->record, w.ndim, w.layout,
                                     of->type->space, of->type->readonly);
    py_origin *o = PY_NEW(c, py_origin, 1);
    *o = (py_origin){.name = name_of(at, of),
                     .parameter = of->origin != NULL ? of->origin->parameter : -1};
    *out = py_array_val(c, t, w.ptr, w.sizes, w.strides,
                        of->origin != NULL || t->space != IR_PTR_GLOBAL ? o : NULL);
    return true;
}

static bool is_name(const py_val *index) {
    return index->type->kind == TY_STRING && index->value.kind == PY_VALUE_STRING;
}

/* The name of a record's field by its constant number; NULL: an error. */
static const char *field_of_number(py_ctx *c, const py_node *at, const py_val *of,
                                   const py_val *index) {
    const py_record *r = of->type->items[0]->record;
    if (!index->is_const || index->value.kind != PY_VALUE_INT) {
        py_fail(c, at, "a record's field is named, or numbered by a constant");
        return NULL;
    }
    int64_t i = index->value.integer, n = r->count;
    if (i >= -n && i < n) return r->fields[i < 0 ? i + n : i].name;
    py_fail(c, at, "field %lld of a record of %lld", (long long)i, (long long)n);
    return NULL;
}

/* Enum["name"] */
static bool get_member(py_ctx *c, const py_node *at, const py_entity *of, const char *name,
                       py_val *out) {
    py_entity *e = PY_NEW(c, py_entity, 1);
    simt_status status = c->host->attribute(c->host->context, of, name, e);
    if (status != SIMT_OK) return py_pass_failure(c, at, status);
    return py_entity_value(c, at, e, out);
}

bool py_get_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index, py_val *out) {
    parts p;
    if (of->type->kind == TY_TUPLE) return py_get_tuple_item(c, at, of, index, out);
    if (py_is_text(of)) return py_chars_item(c, at, of, index, out);
    if (of->type->kind == TY_POINTER) return py_pointer_get(c, at, of, index, out);
    if (of->type->kind == TY_RECORD && is_name(index))
        return py_record_get(c, at, of, index->value.text, out);
    if (of->type->kind == TY_RECORD) {
        const char *name = field_of_number(c, at, of, index);
        return name != NULL && py_record_get(c, at, of, name, out);
    }
    if (of->type->kind == TY_ENTITY && of->type->entity->is_enum && is_name(index))
        return get_member(c, at, of->type->entity, index->value.text, out);
    if (of->type->kind == TY_ENTITY && of->type->entity->kind == PY_ENTITY_FUNCTION)
        return py_fail(c, at, "a kernel cannot launch kernels: call %s(...) as a function",
                       of->type->entity->name);
    if (of->type->kind != TY_ARRAY)
        return py_fail(c, at, "%s has no elements to index%s", py_type_text(c, of->type),
                       py_advice(c, of->type));
    if (of->type->record != NULL && !py_is_chars(of->type->record) && is_name(index))
        return py_array_field(c, at, of, index->value.text, out);
    if (!take_apart(c, at, of, index, &p)) return false;
    if (p.all_integers && p.n == of->type->ndim) {
        if (of->type->record == NULL || py_is_chars(of->type->record))
            return get_element(c, at, of, &p, out);
        *out = py_val_record(c, of, p.item, p.n);
        return true;
    }
    return get_view(c, at, of, &p, out);
}

/* ---- assignment ---- */

bool py_item_of_value(py_ctx *c, const py_node *at, const void *of, py_val *index, int ndim,
                      py_val *out) {
    const py_val *value = of;
    *out = *value;
    if (value->type->kind != TY_ARRAY) return true;
    py_val key = py_val_tuple(c, index + (ndim - value->type->ndim), value->type->ndim);
    return py_get_item(c, at, value, &key, out);
}

/* view[...] = item(source), one loop per axis */
static bool fill_view(py_ctx *c, const py_node *at, const py_val *of, py_item item,
                      const void *source, py_val *index, int axis) {
    int ndim = of->type->ndim;
    if (axis == ndim) {
        py_val value, element;
        if (!item(c, at, source, index, ndim, &value)) return false;
        if (of->type->record != NULL && !py_is_chars(of->type->record)) {
            py_val r = py_val_record(c, of, index, (uint32_t)ndim);
            return py_record_assign(c, at, &r, &value);
        }
        if (!py_convert(c, at, &value, element_type(c, of->type), &element)) return false;
        if (c->emit) access(c, at, of, index, (uint32_t)ndim, element.v, NULL);
        return true;
    }
    if (!c->emit) {
        index[axis] = py_val_scalar(c, PY_S_I64, NULL);
        return fill_view(c, at, of, item, source, index, axis + 1);
    }
    ir_value *zero = py_emit_zero(c, IR_I64);
    ir_inst *loop = ir_loop(&c->b, &zero, 1, NULL, 0);
    ir_region *after = c->b.at;
    c->b.at = loop->regions[0];
    ir_value *i = &c->b.at->params[0];
    py_if test = py_begin_if(c, py_emit_binary(c, IR_LT_S, i, py_array_size(of, axis)), NULL, 0);
    py_else(c, &test, NULL, 0);
    ir_br(&c->b, loop, NULL, 0);
    py_end_if(c, &test, NULL, 0, NULL);
    index[axis] = py_val_scalar(c, PY_S_I64, i);
    index[axis].nonneg = true;
    if (!fill_view(c, at, of, item, source, index, axis + 1)) return false;
    ir_value *next = py_emit_binary(c, IR_ADD, i, py_emit_int(c, IR_I64, 1));
    ir_continue(&c->b, loop, &next, 1);
    c->b.at = after;
    return true;
}

bool py_fill_array(py_ctx *c, const py_node *at, const py_val *of, py_item item,
                   const void *source) {
    py_val index[PY_MAX_NDIM];
    return py_may_write(c, at, of) && fill_view(c, at, of, item, source, index, 0);
}

bool py_set_item(py_ctx *c, const py_node *at, const py_val *of, const py_val *index,
                 const py_val *value) {
    parts p;
    if (of->type->kind == TY_TUPLE) return py_fail(c, at, "a tuple's items cannot be assigned");
    if (of->type->kind == TY_RECORD && is_name(index))
        return py_record_set(c, at, of, index->value.text, value);
    if (of->type->kind == TY_RECORD) {
        const char *name = field_of_number(c, at, of, index);
        return name != NULL && py_record_set(c, at, of, name, value);
    }
    if (of->type->kind == TY_POINTER) return py_pointer_set(c, at, of, index, value);
    if (of->type->kind != TY_ARRAY)
        return py_fail(c, at, "%s has no elements to assign", py_type_text(c, of->type));
    if (!take_apart(c, at, of, index, &p) || !py_may_write(c, at, of)) return false;
    bool record = of->type->record != NULL && !py_is_chars(of->type->record);
    if (record && p.all_integers && p.n == of->type->ndim) {
        py_val r = py_val_record(c, of, p.item, p.n);
        return py_record_assign(c, at, &r, value);
    }
    if (p.all_integers && p.n == of->type->ndim) {
        py_val v;
        if (value->type->kind == TY_ARRAY)
            return py_fail(c, at, "an element of '%s' cannot be an array: write one element, a[i]",
                           name_of(at, of));
        if (!py_convert(c, at, value, element_type(c, of->type), &v)) return false;
        if (c->emit) access(c, at, of, p.item, p.n, v.v, NULL);
        return true;
    }
    py_val target, key[PY_MAX_NDIM];
    if (!get_view(c, at, of, &p, &target)) return false;
    if (value->type->kind == TY_ARRAY && value->type->ndim > target.type->ndim)
        return py_fail(c, at, "an array of %u dimensions into one of %u", value->type->ndim,
                       target.type->ndim);
    return fill_view(c, at, &target, py_item_of_value, value, key, 0);
}
