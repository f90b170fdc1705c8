/* Functions written inside a kernel: `def f(x): ...` and lambdas.
 *
 * The variables of the enclosing function that such a function reads are handed to it as arguments more,
 * with the values that they have where it is called: Python's late binding. It may be given to other
 * functions, but not outlive the call of the one that encloses it.
 */
#include "frontend/python/work.h"

#include <string.h>

struct py_closure {
    py_closure *next;
    const py_node *node;      /* the definition */
    const py_function *owner; /* the function it stands in */
    py_entity entity;
    py_function own;    /* as it is written */
    py_function whole;  /* with the captured variables behind its parameters */
    const char **names; /* of the captured variables */
    uint32_t ncaptured;
};

/* ---- the definition ---- */

static bool is_parameter(const py_node *arguments, const char *name) {
    const py_list *lists[] = {&arguments->list, &arguments->list2, &arguments->list3};
    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < lists[k]->count; i++)
            if (strcmp(lists[k]->items[i]->name, name) == 0) return true;
    return arguments->a != NULL && strcmp(arguments->a->name, name) == 0;
}

static void capture(py_ctx *c, py_closure *f, const char *name) {
    if (is_parameter(f->node->a, name) || py_find_var(c->frame, name) == NULL) return;
    for (uint32_t i = 0; i < f->ncaptured; i++)
        if (strcmp(f->names[i], name) == 0) return;
    f->names = py_grow(c, f->names, f->ncaptured, sizeof *f->names);
    f->names[f->ncaptured++] = name;
}

/* The names that n reads. Those that the function assigns are its own: py_drop_assigned takes them out. */
static void scan_reads(py_ctx *c, py_closure *f, const py_node *n) {
    if (n == NULL) return;
    if (n->kind == PY_NAME) capture(c, f, n->name);
    const py_list *lists[] = {&n->list, &n->list2, &n->list3};
    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < lists[k]->count; i++) scan_reads(c, f, lists[k]->items[i]);
    scan_reads(c, f, n->a);
    scan_reads(c, f, n->b);
    scan_reads(c, f, n->c);
}

/* The parameters and the captured variables as one list of parameters. */
static py_node *with_captured(py_ctx *c, const py_closure *f) {
    const py_node *old = f->node->a;
    py_node *tree = PY_NEW(c, py_node, 1), *arguments = PY_NEW(c, py_node, 1);
    uint32_t n = old->list2.count;
    *tree = *f->node;
    *arguments = *old;
    tree->a = arguments;
    arguments->list2.items = PY_NEW(c, py_node *, n + f->ncaptured + 1);
    if (n > 0) memcpy(arguments->list2.items, old->list2.items, n * sizeof *old->list2.items);
    for (uint32_t i = 0; i < f->ncaptured; i++) {
        py_node *a = PY_NEW(c, py_node, 1);
        *a = (py_node){
            .kind = PY_ARG, .line = old->line, .column = old->column, .name = f->names[i]};
        arguments->list2.items[n + i] = a;
    }
    arguments->list2.count = n + f->ncaptured;
    return tree;
}

static py_closure *new_closure(py_ctx *c, const py_node *n) {
    py_closure *f = PY_NEW(c, py_closure, 1);
    const py_function *owner = c->frame->fn;
    const char *name = n->kind == PY_LAMBDA ? "lambda" : n->name;
    *f = (py_closure){.next = c->closures, .node = n, .owner = owner};
    if (n->kind == PY_LAMBDA) {
        scan_reads(c, f, n->b);
    } else {
        for (uint32_t i = 0; i < n->list.count; i++) scan_reads(c, f, n->list.items[i]);
        py_drop_assigned(c, &n->list, f->names, &f->ncaptured);
    }
    f->own = (py_function){
        .name = name, .file = owner->file, .tree = (py_node *)n, .handle = owner->handle};
    f->whole = f->own;
    f->whole.tree = with_captured(c, f);
    f->entity = (py_entity){.kind = PY_ENTITY_CLOSURE, .name = name, .handle = f};
    return c->closures = f;
}

bool py_is_closure(const py_ctx *c, const py_function *fn) {
    const py_closure *f = c->closures;
    while (f != NULL && &f->whole != fn) f = f->next;
    return f != NULL;
}

bool py_closure_value(py_ctx *c, const py_node *n, py_val *out) {
    py_closure *f = c->closures;
    while (f != NULL && (f->node != n || f->owner != c->frame->fn)) f = f->next;
    if (f == NULL) f = new_closure(c, n);
    if (n->a->a != NULL || n->a->b != NULL || n->a->list3.count > 0)
        return py_fail(c, n, "a function inside a kernel has plain parameters, no * and no **");
    if (n->kind == PY_FUNCTION && n->list2.count > 0)
        return py_fail(c, n, "a function inside a kernel has no decorators");
    *out = py_val_entity(c, &f->entity);
    return true;
}

/* ---- the call ---- */

/* The frame of the enclosing function. */
static py_frame *enclosing(py_ctx *c, const py_closure *f) {
    py_frame *at = c->frame;
    while (at != NULL && at->fn != f->owner) at = at->caller;
    return at;
}

static bool captured_value(py_ctx *c, const py_node *at, const py_frame *from, const char *name,
                           py_val *out) {
    for (uint32_t i = 0; i < from->nvars; i++) {
        if (strcmp(from->vars[i].name, name) != 0) continue;
        *out = from->vars[i].val;
        if (out->type->kind != TY_UNKNOWN) return true;
        if (c->unknown != NULL) return false;
        py_node *read = PY_NEW(c, py_node, 1);
        *read = (py_node){.kind = PY_NAME, .line = at->line, .column = at->column, .name = name};
        c->unknown = read;
        return false;
    }
    return py_fail(c, at, "variable '%s' of the enclosing function is not there", name);
}

bool py_call_closure(py_ctx *c, const py_node *at, const py_entity *e, py_call *x, py_val *out) {
    const py_closure *f = e->handle;
    const py_frame *from = enclosing(c, f);
    py_val *bound;
    uint32_t n = 0;
    if (from == NULL)
        return py_fail(c, at, "%s is called where %s, which encloses it, has ended", f->own.name,
                       f->owner->name);
    if (!py_bind_arguments(c, at, &f->own, x, &bound, &n)) return false;
    py_val *args = PY_NEW(c, py_val, n + f->ncaptured + 1);
    memcpy(args, bound, n * sizeof *bound);
    for (uint32_t i = 0; i < f->ncaptured; i++)
        if (!captured_value(c, at, from, f->names[i], &args[n + i])) return false;
    return py_call_function(c, at, &f->whole, args, n + f->ncaptured, NULL, out);
}
