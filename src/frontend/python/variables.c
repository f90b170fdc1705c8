/* Variables that only share a name become different ones.
 *
 * In `x = cuda.grid(1) ... x = x / w` the second assignment starts a new variable: as in Numba, it has
 * a type of its own. Comes in: the tree of a function. Goes out: the same tree, where assignments
 * that reach a common use carry one number (a web of definitions and uses): 0 for the first web of a
 * name, to which its parameter belongs, then 1, 2, ... The meaning is the same.
 * Where classes of nodes occur that this walk does not know, the tree stays as it is.
 *
 * Reaching definitions by one structured walk: a state is a set of definitions (bits); loops are
 * walked until their first state stands still.
 */
#include "frontend/python/variables.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct definition {
    const char *name; /* of the source */
    uint32_t parent;  /* union-find: the web */
    uint32_t number;  /* of the web, from 1; 0: none yet */
} definition;

typedef struct state {
    uint64_t *bits;
    bool dead; /* not reachable */
} state;

typedef struct loop {
    struct loop *outer;
    state on_break, on_continue;
} loop;

typedef struct walk {
    arena mem;
    arena *tree; /* where its nodes lie */
    definition *defs;
    uint32_t ndefs, capacity, words;
    state now;
    loop *in;
    bool failed; /* no memory, or a class of nodes not known here */
    bool no_memory;
} walk;

/* What the walk notes at a NAME: the definition it makes and one that it sees, from 1. */
typedef struct name_note {
    uint32_t made, seen;
} name_note;

static void statements(walk *w, const py_list *body);

/* ---- sets ---- */

static state new_state(walk *w) {
    state s = {.bits = ARENA_ARRAY(&w->mem, uint64_t, w->words), .dead = true};
    if (s.bits == NULL) w->failed = w->no_memory = true;
    return s;
}

static state copy_of(walk *w, const state *from) {
    state s = new_state(w);
    if (s.bits == NULL) return s;
    memcpy(s.bits, from->bits, w->words * sizeof *s.bits);
    s.dead = from->dead;
    return s;
}

/* into |= from; true when it grew. */
static bool join(walk *w, state *into, const state *from) {
    if (from->dead || w->failed) return false;
    bool grew = into->dead;
    into->dead = false;
    for (uint32_t i = 0; i < w->words; i++) {
        grew = grew || (from->bits[i] & ~into->bits[i]) != 0;
        into->bits[i] |= from->bits[i];
    }
    return grew;
}

static uint32_t web_of(walk *w, uint32_t d) {
    while (w->defs[d].parent != d) d = w->defs[d].parent = w->defs[w->defs[d].parent].parent;
    return d;
}

/* ---- names ---- */

static name_note *note_of(walk *w, py_node *n) {
    if (n->note == NULL) n->note = ARENA_NEW(&w->mem, name_note);
    if (n->note == NULL) w->failed = w->no_memory = true;
    return n->note;
}

static void use(walk *w, py_node *n) {
    name_note *note = note_of(w, n);
    if (note == NULL || w->now.dead) return;
    for (uint32_t d = 0; d < w->ndefs; d++) {
        if (!(w->now.bits[d / 64] >> d % 64 & 1) || strcmp(w->defs[d].name, n->name) != 0) continue;
        if (note->seen == 0) note->seen = d + 1;
        w->defs[web_of(w, d)].parent = web_of(w, note->seen - 1);
    }
}

/* `keeps`: earlier definitions may still reach what follows. */
static void define(walk *w, py_node *n, bool keeps) {
    name_note *note = note_of(w, n);
    if (note == NULL) return;
    if (note->made == 0) {
        if (w->ndefs == w->capacity) {
            w->failed = true;
            return;
        }
        w->defs[w->ndefs] = (definition){.name = n->name, .parent = w->ndefs};
        note->made = ++w->ndefs;
    }
    for (uint32_t d = 0; d < w->ndefs && !keeps; d++)
        if (strcmp(w->defs[d].name, n->name) == 0) w->now.bits[d / 64] &= ~(UINT64_C(1) << d % 64);
    w->now.bits[(note->made - 1) / 64] |= UINT64_C(1) << (note->made - 1) % 64;
}

/* ---- expressions and targets ---- */

static void expression(walk *w, py_node *n);

static void expressions(walk *w, const py_list *list) {
    for (uint32_t i = 0; i < list->count; i++) expression(w, list->items[i]);
}

static void expression(walk *w, py_node *n) {
    if (n == NULL || w->failed) return;
    switch (n->kind) {
    case PY_NAME: use(w, n); return;
    case PY_NAMED:
        expression(w, n->b);
        define(w, n->a, true);
        return;
    case PY_FUNCTION:
    case PY_LAMBDA:
    case PY_UNSUPPORTED: w->failed = true; return;
    default:
        expression(w, n->a);
        expression(w, n->b);
        expression(w, n->c);
        expressions(w, &n->list);
        expressions(w, &n->list2);
        expressions(w, &n->list3);
    }
}

static void target(walk *w, py_node *n) {
    if (n == NULL || w->failed) return;
    if (n->kind == PY_NAME)
        define(w, n, false);
    else if (n->kind == PY_TUPLE || n->kind == PY_LIST)
        for (uint32_t i = 0; i < n->list.count; i++) target(w, n->list.items[i]);
    else if (n->kind == PY_STARRED)
        target(w, n->a);
    else
        expression(w, n);
}

/* ---- statements ---- */

static void branches(walk *w, py_node *n) {
    expression(w, n->a);
    state start = copy_of(w, &w->now);
    statements(w, &n->list);
    state first = w->now;
    w->now = start;
    statements(w, &n->list2);
    join(w, &w->now, &first);
}

static void go_round(walk *w, py_node *n) {
    bool is_for = n->kind == PY_FOR;
    if (is_for) expression(w, n->b);
    loop l = {w->in, new_state(w), new_state(w)};
    state head = copy_of(w, &w->now), after;
    w->in = &l;
    do {
        w->now = copy_of(w, &head);
        if (!is_for) expression(w, n->a);
        after = copy_of(w, &w->now);
        if (is_for) target(w, n->a);
        statements(w, &n->list);
        join(w, &w->now, &l.on_continue);
    } while (!w->failed && join(w, &head, &w->now));
    w->in = l.outer;
    w->now = after;
    statements(w, &n->list2);
    join(w, &w->now, &l.on_break);
}

static void statement(walk *w, py_node *n) {
    if (w->failed || w->now.dead) return;
    switch (n->kind) {
    case PY_ASSIGN:
        expression(w, n->a);
        for (uint32_t i = 0; i < n->list.count; i++) target(w, n->list.items[i]);
        break;
    case PY_ANN_ASSIGN:
        expression(w, n->b);
        if (n->b != NULL) target(w, n->a);
        break;
    case PY_AUG_ASSIGN:
        expression(w, n->a);
        expression(w, n->b);
        if (n->a->kind == PY_NAME) define(w, n->a, false);
        break;
    case PY_IF: branches(w, n); break;
    case PY_FOR:
    case PY_WHILE: go_round(w, n); break;
    case PY_BREAK:
    case PY_CONTINUE:
        if (w->in != NULL)
            join(w, n->kind == PY_BREAK ? &w->in->on_break : &w->in->on_continue, &w->now);
        w->now.dead = true;
        break;
    case PY_RETURN:
    case PY_RAISE:
        expression(w, n->a);
        w->now.dead = true;
        break;
    case PY_ASSERT:
    case PY_EXPR: expression(w, n->a); break;
    case PY_PASS: break;
    default: w->failed = true;
    }
}

static void statements(walk *w, const py_list *body) {
    for (uint32_t i = 0; i < body->count; i++) statement(w, body->items[i]);
}

/* ---- numbers ---- */

/* By the order in which the webs of a name begin. */
static void give_numbers(walk *w) {
    for (uint32_t d = 0; d < w->ndefs; d++) {
        definition *web = &w->defs[web_of(w, d)];
        if (web->number != 0) continue;
        uint32_t before = 0;
        for (uint32_t e = 0; e < w->ndefs; e++)
            before += w->defs[e].number != 0 && strcmp(w->defs[e].name, web->name) == 0;
        web->number = before + 1;
    }
}

static uint32_t given(walk *w, uint32_t d) { return w->defs[web_of(w, d - 1)].number - 1; }

/* `x += 1` whose two x are different variables becomes an assignment: `x = x + 1`. */
static bool split_update(walk *w, py_node *n, name_note note) {
    py_node *read = ARENA_NEW(w->tree, py_node), *sum = ARENA_NEW(w->tree, py_node);
    py_node **targets = ARENA_ARRAY(w->tree, py_node *, 1);
    if (read == NULL || sum == NULL || targets == NULL) return false;
    *read = *n->a;
    read->web = given(w, note.seen);
    *sum = *n;
    sum->kind = PY_BIN_OP;
    sum->a = read;
    targets[0] = n->a;
    n->kind = PY_ASSIGN;
    n->a = sum;
    n->b = NULL;
    n->op = PY_OP_NONE;
    n->list = (py_list){targets, 1};
    return true;
}

static void number_all(walk *w, py_node *n, bool apply) {
    if (n == NULL) return;
    if (n->kind == PY_AUG_ASSIGN && n->a->kind == PY_NAME && n->a->note != NULL && apply) {
        name_note note = *(name_note *)n->a->note;
        n->a->note = NULL;
        number_all(w, n->b, apply);
        bool differ =
            note.made != 0 && note.seen != 0 && given(w, note.made) != given(w, note.seen);
        if (differ && !split_update(w, n, note)) w->no_memory = true;
        py_node *name = differ ? n->list.items[0] : n->a;
        if (note.made != 0) name->web = given(w, note.made);
        return;
    }
    if ((n->kind == PY_NAME || n->kind == PY_ARG) && n->note != NULL) {
        name_note note = *(name_note *)n->note;
        uint32_t d = note.made != 0 ? note.made : note.seen;
        n->note = NULL;
        if (apply && d != 0) n->web = given(w, d);
    }
    number_all(w, n->a, apply);
    number_all(w, n->b, apply);
    number_all(w, n->c, apply);
    for (uint32_t i = 0; i < n->list.count; i++) number_all(w, n->list.items[i], apply);
    for (uint32_t i = 0; i < n->list2.count; i++) number_all(w, n->list2.items[i], apply);
    for (uint32_t i = 0; i < n->list3.count; i++) number_all(w, n->list3.items[i], apply);
}

static uint32_t count_names(const py_node *n) {
    if (n == NULL) return 0;
    uint32_t total = n->kind == PY_NAME || n->kind == PY_ARG;
    total += count_names(n->a) + count_names(n->b) + count_names(n->c);
    for (uint32_t i = 0; i < n->list.count; i++) total += count_names(n->list.items[i]);
    for (uint32_t i = 0; i < n->list2.count; i++) total += count_names(n->list2.items[i]);
    for (uint32_t i = 0; i < n->list3.count; i++) total += count_names(n->list3.items[i]);
    return total;
}

static void parameters(walk *w, const py_list *list) {
    for (uint32_t i = 0; i < list->count && !w->failed; i++) define(w, list->items[i], false);
}

bool py_split_variables(py_node *function, arena *mem) {
    if (function->kind != PY_FUNCTION || function->a == NULL) return true;
    walk w = {.tree = mem, .capacity = count_names(function)};
    w.words = (w.capacity + 63) / 64 + 1;
    arena_init(&w.mem);
    w.defs = ARENA_ARRAY(&w.mem, definition, w.capacity + 1);
    w.now = new_state(&w);
    w.now.dead = false;
    if (w.defs == NULL) w.failed = w.no_memory = true;
    if (!w.failed) {
        py_node *args = function->a;
        if (args->a != NULL || args->b != NULL)
            w.failed = true; /* *args, **kwargs: refused later */
        parameters(&w, &args->list);
        parameters(&w, &args->list2);
        parameters(&w, &args->list3);
        statements(&w, &function->list);
    }
    if (!w.failed) give_numbers(&w);
    bool apply = !w.failed;
    number_all(&w, function->a, apply);
    for (uint32_t i = 0; i < function->list.count; i++)
        number_all(&w, function->list.items[i], apply);
    arena_deinit(&w.mem);
    return !w.no_memory;
}
