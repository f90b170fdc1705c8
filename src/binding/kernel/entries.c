/* A dispatcher's compiled kernels: source -> IR for a signature -> code for a block size.
 *
 * The table is bounded: when it is full, the entry not used for the longest time goes, and with the last
 * entry of a signature what was frozen for it. A second block size of a signature is made from the first
 * one's IR, not from the source: it sees the same globals. */
#include "binding/kernel/entries.h"
#include "base/heap.h"

#include <string.h>

#include "binding/kernel/tree.h"

/* ---- a signature ---- */

static void typed_unref(kernel_typed *t) {
    if (!t || --t->refs) return;
    Py_XDECREF(t->raised);
    kernel_free(t->kernel);
    runtime_kernel_unref(t->first);
    heap_free(t->signature);
    heap_free(t);
}

/* What a launch may raise lives as long as the kernel. Python's own exceptions do anyway. */
static bool keep_raised(kernel_typed *t) {
    for (uint32_t i = 0; i < t->kernel->nfaults; i++) {
        PyObject *class = t->kernel->faults[i].handle;
        if (!class || !PyType_HasFeature((PyTypeObject *)class, Py_TPFLAGS_HEAPTYPE)) continue;
        if (!t->raised && !(t->raised = PyList_New(0))) return false;
        if (PyList_Append(t->raised, class) < 0) return false;
    }
    return true;
}

static bool compile_source(kernel_typed *t, PyObject *function, const py_options *options) {
    kernel_host host;
    kernel_host_init(&host);
    const py_function *fn = kernel_host_function(&host, function);
    bool ok = false;
    if (fn &&
        py_compile(&host.pub, fn, t->signature, t->nsignature, options, &t->kernel) != SIMT_OK)
        kernel_raise();
    else if (fn)
        ok = (keep_raised(t) && kernel_settle(t->kernel)) || (PyErr_NoMemory(), false);
    kernel_host_deinit(&host);
    return ok;
}

/* From the source to IR. NULL: an exception is set. */
static kernel_typed *new_typed(PyObject *function, const py_options *options,
                               const uint8_t *signature, uint32_t n) {
    kernel_typed *t = heap_zeroed(1, sizeof *t);
    if (!t || !(t->signature = heap_alloc(n + 1))) {
        heap_free(t);
        PyErr_NoMemory();
        return NULL;
    }
    t->refs = 1;
    memcpy(t->signature, signature, n);
    t->nsignature = n;
    if (compile_source(t, function, options)) return t;
    typed_unref(t);
    return NULL;
}

static bool is_signature(const kernel_typed *t, const uint8_t *signature, uint32_t n) {
    return t->nsignature == n && memcmp(t->signature, signature, n) == 0;
}

/* One that is there already (borrowed), or NULL. */
static kernel_typed *find_typed(const kernel_entries *all, const uint8_t *signature, uint32_t n) {
    for (kernel_typed *t = all->declared; t; t = t->next)
        if (is_signature(t, signature, n)) return t;
    for (uint32_t i = 0; i < all->count; i++) {
        kernel_typed *t = all->slots[i].entry->typed;
        if (is_signature(t, signature, n)) return t;
    }
    return NULL;
}

bool kernel_entries_declare(kernel_entries *all, PyObject *function, const py_options *options,
                            const uint8_t *signature, uint32_t n) {
    kernel_typed *t = new_typed(function, options, signature, n);
    if (!t) return false;
    kernel_typed **end = &all->declared;
    while (*end) end = &(*end)->next;
    *end = t;
    return true;
}

bool kernel_entries_keep(kernel_entries *all, kernel *k) {
    kernel_typed *t = kernel_settle(k) ? heap_zeroed(1, sizeof *t) : NULL;
    if (!t || !(t->signature = heap_zeroed(1, 1))) {
        heap_free(t);
        kernel_free(k);
        return PyErr_NoMemory(), false;
    }
    t->refs = 1;
    t->kernel = k;
    all->declared = t;
    return true;
}

/* ---- an entry ---- */

void kernel_entry_unref(kernel_entry *e) {
    if (!e || --e->refs) return;
    runtime_kernel_unref(e->code);
    typed_unref(e->typed);
    heap_free(e);
}

typedef struct renaming {
    ir_func *f;
    const code *c;
} renaming;

/* The names that the code has: in the printed form they lack some characters. */
static simt_status restore_names(void *context) {
    ir_func *f = ((renaming *)context)->f;
    const code *c = ((renaming *)context)->c;
    f->name = arena_strdup(&f->mem, c->name);
    f->file = arena_strdup(&f->mem, c->file);
    for (uint32_t i = 0; i < f->ncalls; i++) {
        f->calls[i].function = arena_strdup(&f->mem, c->calls[i].function);
        f->calls[i].file = arena_strdup(&f->mem, c->calls[i].file);
    }
    return SIMT_OK;
}

static ir_func *read_func(const kernel_typed *t) {
    renaming r = {.c = t->first->code};
    if (!binding_ok(ir_parse(runtime_kernel_text(t->first), &r.f))) return NULL;
    if (binding_ok(arena_run(restore_names, &r))) return r.f;
    ir_func_free(r.f);
    return NULL;
}

/* Once more from the source, for a declared signature whose first compilation had no memory. */
static bool renew(kernel_typed *t, PyObject *function, const py_options *options) {
    if (!function) return PyErr_NoMemory(), false;
    kernel_typed *again = new_typed(function, options, t->signature, t->nsignature);
    if (!again) return false;
    if (!t->kernel->func && !t->first) { /* no other thread was quicker */
        kernel_typed old = *t;
        t->kernel = again->kernel;
        t->raised = again->raised;
        again->kernel = old.kernel;
        again->raised = old.raised;
    }
    typed_unref(again);
    return true;
}

/* The IR, for one compilation. NULL: an exception is set. */
static ir_func *take_func(kernel_typed *t, PyObject *function, const py_options *options) {
    if (!t->kernel->func && !t->first && !renew(t, function, options)) return NULL;
    ir_func *f = t->kernel->func;
    t->kernel->func = NULL;
    if (!f && !t->first) PyErr_NoMemory(); /* another thread's compilation failed meanwhile */
    return f || !t->first ? f : read_func(t);
}

/* From IR to code. NULL: an exception is set. */
static kernel_entry *new_entry(kernel_typed *t, PyObject *function, const py_options *options,
                               const uint32_t block[3]) {
    runtime_compile_options how = {.block = {block[0], block[1], block[2]},
                                   .contract = options->contract};
    kernel_entry *e = binding_alloc(1, sizeof *e);
    if (!e) return NULL;
    e->refs = 1;
    e->typed = t;
    t->refs++;
    memcpy(e->block, block, sizeof e->block);
    ir_func *f = take_func(t, function, options);
    if (!f || !binding_ok(runtime_compile(array_runtime(), f, &how, &e->code))) {
        kernel_entry_unref(e);
        return NULL;
    }
    if (!t->first) runtime_kernel_ref(t->first = e->code);
    return e;
}

/* ---- the table ---- */

static uint64_t hash_of(const uint8_t *signature, uint32_t n, const uint32_t block[3]) {
    uint64_t h =
        0x9E3779B97F4A7C15u ^ ((uint64_t)block[2] << 48 ^ (uint64_t)block[1] << 24 ^ block[0]);
    for (uint32_t i = 0; i < n; i++) h = (h ^ signature[i]) * 0x100000001B3u;
    return h;
}

static bool is_slot(const kernel_slot *s, const uint8_t *signature, uint32_t n,
                    const uint32_t block[3]) {
    return memcmp(s->entry->block, block, sizeof s->entry->block) == 0 &&
           is_signature(s->entry->typed, signature, n);
}

/* A new reference, or NULL. */
static kernel_entry *find_entry(kernel_entries *all, const uint8_t *signature, uint32_t n,
                                const uint32_t block[3]) {
    uint32_t i = all->last;
    if (i >= all->count || !is_slot(&all->slots[i], signature, n, block)) {
        uint64_t hash = hash_of(signature, n, block);
        for (i = 0; i < all->count; i++)
            if (all->slots[i].hash == hash && is_slot(&all->slots[i], signature, n, block)) break;
        if (i == all->count) return NULL;
    }
    all->last = i;
    all->slots[i].used = ++all->clock;
    all->slots[i].entry->refs++;
    return all->slots[i].entry;
}

/* The slot for a new entry: empty, or when the table is full the one used longest ago. */
static kernel_slot *free_slot(kernel_entries *all) {
    uint32_t n = all->count, oldest = 0;
    if (n < KERNEL_MOST_ENTRIES) {
        bool full = (n & (n - 1)) == 0; /* at powers of two */
        kernel_slot *grown =
            full ? heap_resize(all->slots, (n ? 2 * n : 1) * sizeof *grown) : all->slots;
        if (!grown) return NULL;
        all->slots = grown;
        all->slots[n].entry = NULL;
        all->count++;
        return &all->slots[n];
    }
    for (uint32_t i = 1; i < n; i++)
        if (all->slots[i].used < all->slots[oldest].used) oldest = i;
    return &all->slots[oldest];
}

kernel_entry *kernel_entries_get(kernel_entries *all, PyObject *function, const py_options *options,
                                 const uint8_t *signature, uint32_t n, const uint32_t block[3]) {
    kernel_entry *e = find_entry(all, signature, n, block);
    if (e) return e;
    kernel_typed *t = find_typed(all, signature, n);
    if (t) t->refs++;
    if (!t) t = new_typed(function, options, signature, n);
    if (!t) return NULL;
    /* looking at globals may have run Python code, and other threads: what they compiled counts */
    kernel_entry *other = find_entry(all, signature, n, block);
    if (!other) e = new_entry(t, function, options, block);
    typed_unref(t);
    if (!e) return other;
    kernel_slot *slot = free_slot(all);
    if (!slot) {
        PyErr_NoMemory();
        kernel_entry_unref(e);
        return NULL;
    }
    kernel_entry *before = slot->entry;
    e->refs++;
    *slot = (kernel_slot){hash_of(signature, n, block), ++all->clock, e};
    all->last = (uint32_t)(slot - all->slots);
    kernel_entry_unref(before);
    return e;
}

static int typed_traverse(kernel_typed *t, uint64_t mark, visitproc visit, void *arg) {
    if (t->visited == mark) return 0; /* it has one reference, however many entries share it */
    t->visited = mark;
    Py_VISIT(t->raised);
    return 0;
}

int kernel_entries_traverse(kernel_entries *all, visitproc visit, void *arg) {
    static uint64_t visits;
    uint64_t mark = ++visits;
    int status = 0;
    for (kernel_typed *t = all->declared; t && !status; t = t->next)
        status = typed_traverse(t, mark, visit, arg);
    for (uint32_t i = 0; i < all->count && !status; i++)
        status = typed_traverse(all->slots[i].entry->typed, mark, visit, arg);
    return status;
}

void kernel_entries_clear(kernel_entries *all) {
    kernel_entries old = *all; /* what goes may run Python code */
    *all = (kernel_entries){0};
    for (uint32_t i = 0; i < old.count; i++) kernel_entry_unref(old.slots[i].entry);
    heap_free(old.slots);
    while (old.declared) {
        kernel_typed *t = old.declared;
        old.declared = t->next;
        typed_unref(t);
    }
}
