/* Names and attributes: variables, and what the host says that other names mean. */
#include "frontend/python/work.h"

#include <string.h>

/* ---- names ---- */

/* What the host said of a name of the function (`of` NULL) or of an attribute: asked once. */
struct py_known {
    struct py_known *next;
    const py_entity *of;
    const char *name;
    py_entity entity;
};

static py_entity *find_known(py_ctx *c, const py_entity *of, const char *name) {
    struct py_known *k = c->frame->known;
    while (k != NULL && (k->of != of || strcmp(k->name, name) != 0)) k = k->next;
    return k != NULL ? &k->entity : NULL;
}

static py_entity *add_known(py_ctx *c, const py_entity *of, const char *name) {
    struct py_known *k = PY_NEW(c, struct py_known, 1);
    *k = (struct py_known){.next = c->frame->known, .of = of, .name = name};
    c->frame->known = k;
    return &k->entity;
}

bool py_entity_value(py_ctx *c, const py_node *at, const py_entity *e, py_val *out) {
    switch (e->kind) {
    case PY_ENTITY_CONSTANT:
        if (e->value.kind == PY_VALUE_BIG_INT)
            return py_fail(c, at, "'%s' is an integer beyond 64 bits", e->name ? e->name : "?");
        *out = py_val_constant(c, &e->value, e->type);
        out->is_member = e->is_enum;
        if (out->type->kind == TY_SCALAR && out->type->scalar == PY_S_NONE)
            return py_fail(c, at, "a kernel cannot use this constant");
        return true;
    case PY_ENTITY_TUPLE: {
        py_val *items = PY_NEW(c, py_val, e->count + 1);
        for (uint32_t i = 0; i < e->count; i++)
            if (!py_entity_value(c, at, &e->items[i], &items[i])) return false;
        *out =
            e->names != NULL ? py_val_named(c, items, e->names) : py_val_tuple(c, items, e->count);
        return true;
    }
    case PY_ENTITY_ARRAY: return py_array_constant(c, at, e, out);
    case PY_ENTITY_INTRINSIC: {
        const py_intrinsic *i = py_find_intrinsic(e->name);
        if (i != NULL && i->value) {
            py_call x = {.node = at, .name = e->name, .extra = i->extra};
            return i->run(c, &x, out);
        }
        break;
    }
    default: break;
    }
    *out = py_val_entity(c, e);
    return true;
}

static bool free_name(py_ctx *c, const py_node *n, py_val *out) {
    py_entity *e = find_known(c, NULL, n->name);
    if (e == NULL) {
        e = add_known(c, NULL, n->name);
        simt_status status = c->host->lookup(c->host->context, c->frame->fn, n->name, e);
        if (status != SIMT_OK) return py_fail_name(c, n, status);
    }
    return py_entity_value(c, n, e, out);
}

bool py_name(py_ctx *c, const py_node *n, py_val *out) {
    py_var *v = py_find_var(c->frame, n->name);
    if (v == NULL) return free_name(c, n, out);
    const py_type *t = v->val.type;
    if (t->kind == TY_UNKNOWN) {
        if (c->unknown == NULL) c->unknown = n;
        return false;
    }
    if (t->kind == TY_MIXED && t->items[0]->kind == TY_STRING)
        return py_fail(c, n,
                       "variable '%s' is one string or another here, by the way taken: "
                       "kernels do not compute with strings",
                       n->name);
    if (t->kind == TY_MIXED)
        return py_fail(c, n, "variable '%s' is %s or %s here, by the way taken: use two names",
                       n->name, py_type_text(c, t->items[0]), py_type_text(c, t->items[1]));
    *out = v->val;
    return true;
}

/* ---- attributes ---- */

static bool entity_attribute(py_ctx *c, const py_node *n, const py_entity *of, py_val *out) {
    py_entity *e = find_known(c, of, n->name);
    if (e != NULL) return py_entity_value(c, n, e, out);
    e = add_known(c, of, n->name);
    if (of->kind == PY_ENTITY_INTRINSIC) { /* ours first: methods of groups */
        const char *full = arena_printf(c->mem, "%s.%s", of->name, n->name);
        if (full != NULL && py_find_intrinsic(full) != NULL) {
            *e = (py_entity){.kind = PY_ENTITY_INTRINSIC, .name = full};
            return py_entity_value(c, n, e, out);
        }
    }
    if (of->kind == PY_ENTITY_TYPE && strcmp(n->name, "type") == 0) { /* a.dtype.type */
        *e = *of;
        return py_entity_value(c, n, e, out);
    }
    if (of->kind != PY_ENTITY_MODULE && of->kind != PY_ENTITY_INTRINSIC &&
        of->kind != PY_ENTITY_OBJECT)
        return py_fail(c, n, "%s has no attribute '%s' in a kernel",
                       py_type_text(c, py_type_entity(c, of)), n->name);
    simt_status status = c->host->attribute(c->host->context, of, n->name, e);
    if (status != SIMT_OK) return py_fail_member(c, n, of, status);
    return py_entity_value(c, n, e, out);
}

static bool scalar_attribute(py_ctx *c, const py_node *n, const py_val *of, py_val *out,
                             bool *found) {
    py_scalar s = py_scalar_of(of), part = py_scalar_part(s);
    bool imaginary = strcmp(n->name, "imag") == 0;
    if (of->is_const && of->is_member && strcmp(n->name, "value") == 0) {
        *found = true;
        *out = *of;
        out->is_member = false;
        return true;
    }
    *found = imaginary || strcmp(n->name, "real") == 0;
    if (!*found) return true;
    if (!py_scalar_is_complex(s)) {
        if (imaginary)
            *out = py_val_scalar(c, s, py_emit_zero(c, py_scalar_ir(s)));
        else
            *out = *of;
        return true;
    }
    *out = py_val_scalar(c, part, py_slot(of, imaginary));
    return true;
}

bool py_get_attribute(py_ctx *c, const py_node *n, const py_val *of, py_val *out) {
    bool found = false;
    switch ((py_type_kind)of->type->kind) {
    case TY_ENTITY: return entity_attribute(c, n, of->type->entity, out);
    case TY_RECORD: return py_record_get(c, n, of, n->name, out);
    case TY_TUPLE: found = py_named_attribute(of, n->name, out); break;
    case TY_ARRAY:
        if (!py_array_attribute(c, n, of, n->name, out, &found)) return false;
        break;
    case TY_SCALAR:
        if (!scalar_attribute(c, n, of, out, &found)) return false;
        break;
    default: break;
    }
    return found || py_fail_attribute(c, n, of->type);
}

bool py_set_attribute(py_ctx *c, const py_node *n, const py_val *of, const py_val *val) {
    if (of->type->kind == TY_RECORD) return py_record_set(c, n, of, n->name, val);
    const char *instead = of->type->kind == TY_TUPLE   ? ": make a new one"
                          : of->type->kind == TY_ARRAY ? ": assign to elements"
                                                       : "";
    return py_fail(c, n, "the attribute '%s' of %s cannot be assigned in a kernel%s", n->name,
                   py_type_text(c, of->type), instead);
}

/* a.ctypes.data, the address. */
static bool is_address(const py_node *n) {
    return strcmp(n->name, "data") == 0 && n->a->kind == PY_ATTRIBUTE &&
           strcmp(n->a->name, "ctypes") == 0;
}

bool py_attribute(py_ctx *c, const py_node *n, py_val *out) {
    py_val of;
    if (is_address(n)) {
        if (!py_expr(c, n->a->a, &of)) return false;
        if (of.type->kind == TY_ARRAY) {
            *out = py_val_scalar(c, PY_S_I64, py_array_address(c, &of));
            return true;
        }
    }
    return py_expr(c, n->a, &of) && py_get_attribute(c, n, &of, out);
}
