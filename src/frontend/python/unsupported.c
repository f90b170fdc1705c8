/* What a kernel cannot hold, and what to write instead. */
#include "frontend/python/work.h"

#include <string.h>

/* by the class of CPython's ast */
static const struct {
    const char *cls, *what, *instead;
} rows[] = {
    {"Dict", "a dict", "use an array, or if/elif"},
    {"Set", "a set", "use an array"},
    {"ListComp", "a list comprehension", "write a for loop"},
    {"SetComp", "a set comprehension", "write a for loop"},
    {"DictComp", "a dict comprehension", "write a for loop"},
    {"GeneratorExp", "a generator expression", "write a for loop"},
    {"JoinedStr", "an f-string", "give print the values: print('i =', i)"},
    {"Try", "try/except", "test the condition with if"},
    {"TryStar", "try/except*", "test the condition with if"},
    {"With", "a with statement", "open what is needed before the launch"},
    {"Import", "an import", "import at the top of the file"},
    {"ImportFrom", "an import", "import at the top of the file"},
    {"Global", "a global statement", "write results into an array that is an argument"},
    {"Nonlocal", "a nonlocal statement", "write results into an array that is an argument"},
    {"ClassDef", "a class", "use arrays, or a tuple"},
    {"Match", "a match statement", "use if/elif"},
    {"Delete", "del", "leave it out: variables of a kernel need no deleting"},
    {"Yield", "yield", "write results into an array"},
    {"YieldFrom", "yield", "write results into an array"},
    {"Await", "await", "kernels are plain functions"},
    {"AsyncFor", "async for", "write a plain for loop"},
    {"AsyncWith", "async with", "kernels are plain functions"},
    {"AsyncFunctionDef", "an async function", "kernels are plain functions"},
};

bool py_fail_unsupported(py_ctx *c, const py_node *n) {
    const char *cls = n->kind == PY_UNSUPPORTED ? n->name : py_kind_table[n->kind].cls;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].cls, cls) == 0)
            return py_fail(c, n, "%s is not possible in a kernel: %s", rows[i].what,
                           rows[i].instead);
    return py_fail(c, n, "'%s' is not possible in a kernel", cls);
}

/* Functions of Python and NumPy, and attributes of kernel values (array.sum, number.item); a name that ends in
 * '.' stands for all that begin so. */
static const struct {
    const char *names, *instead;
} functions[] = {
    {"numpy.array numpy.zeros_like numpy.ones_like "
     "numpy.empty_like numpy.full_like numpy.eye array.copy builtins.bytearray",
     "use cuda.local.array or cuda.shared.array, or an argument"},
    {"numpy.arange numpy.linspace", "compute the element from its index"},
    {"numpy.cumsum numpy.matmul numpy.sort numpy.linalg. array.cumsum array.sort array.tolist "
     "builtins.any builtins.all builtins.map builtins.filter "
     "builtins.sorted builtins.reversed builtins.list builtins.iter builtins.next math.prod "
     "math.fsum math.factorial math.comb math.perm math.dist",
     "write a for loop"},
    {"numpy.random. random.", "pass random numbers in an array"},
    {"time.", "take the time around the launch: time.perf_counter(), cuda.event()"},
    {"numpy.where", "write x if condition else y"},
    {"numpy.clip", "write min(max(x, low), high)"},
    {"numpy.longdouble numpy.clongdouble", "float64 is the widest type"},
    {"math.isclose numpy.isclose numpy.allclose", "write abs(x - y) <= tolerance"},
    {"builtins.str builtins.repr builtins.format builtins.chr builtins.ord builtins.bytes string.",
     "kernels have no strings, print takes the values: print('i =', i)"},
    {"builtins.dict builtins.set builtins.frozenset builtins.object builtins.super tuple.append "
     "tuple.extend tuple.insert tuple.pop tuple.sort",
     "use an array: cuda.local.array, or an argument"},
    {"builtins.input builtins.open", "pass the data in an array"},
    {"builtins.exit builtins.quit sys.exit os.", "write return to end a thread"},
    {"builtins.isinstance builtins.type builtins.getattr builtins.setattr builtins.hasattr "
     "builtins.callable builtins.eval builtins.exec builtins.id builtins.hash",
     "types are fixed when a kernel is compiled"},
    {"builtins.slice", "write the slice where it is used: a[i:j]"},
    {"array.item", "write a[i]"},
    {"array.length array.len array.count", "write a.size or len(a)"},
    {"array.astype array.flatten array.view array.transpose",
     "do it before the launch, and give the kernel the result"},
    {"number.astype number.item", "convert with int(x), float(x) or np.int32(x)"},
    {"cuda.atomicAdd cuda.atomic_add", "write cuda.atomic.add(array, index, value)"},
    {"cuda.atomic.sum cuda.atomic.inc_ cuda.atomic.increment", "write cuda.atomic.add"},
    {"cuda.shared.zeros cuda.shared.empty cuda.shared.ones cuda.shared.array_like "
     "cuda.local.zeros cuda.local.empty cuda.local.ones",
     "write cuda.shared.array(shape, dtype) or cuda.local.array(shape, dtype); a new array's "
     "elements have no values"},
    {"i idx tid gid index", "a thread's own index is i = cuda.grid(1)"},
};

/* Is `name` one of the names in a list separated by blanks? */
static bool is_listed(const char *names, const char *name) {
    while (*names) {
        size_t length = strcspn(names, " ");
        bool prefix = names[length - 1] == '.';
        if (strncmp(names, name, length) == 0 && (prefix || name[length] == '\0')) return true;
        names += length + (names[length] == ' ');
    }
    return false;
}

static const char *instead_of(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof functions / sizeof *functions; i++)
        if (is_listed(functions[i].names, name)) return functions[i].instead;
    return NULL;
}

const char *py_as_written(const char *name) {
    return strncmp(name, "builtins.", 9) == 0 ? name + 9 : name;
}

bool py_fail_unknown(py_ctx *c, const py_node *n, const char *function) {
    const char *instead = instead_of(function);
    function = py_as_written(function);
    return py_fail(c, n, "%s is not in simt's kernels%s%s", function, instead ? ": " : " yet",
                   instead ? instead : "");
}

bool py_fail_attribute(py_ctx *c, const py_node *n, const py_type *of) {
    const char *kind = of->kind == TY_SCALAR   ? "number"
                       : of->kind == TY_ARRAY  ? "array"
                       : of->kind == TY_TUPLE  ? "tuple"
                       : of->kind == TY_STRING ? "string"
                                               : "";
    const char *instead = instead_of(arena_printf(c->mem, "%s.%s", kind, n->name));
    if (instead == NULL && of->kind == TY_ARRAY)
        instead = "an array has shape, ndim, size, dtype, strides, itemsize, nbytes and T";
    return py_fail(c, n, "%s has no attribute '%s' in a kernel%s%s", py_type_text(c, of), n->name,
                   instead ? ": " : "", instead ? instead : "");
}

bool py_fail_member(py_ctx *c, const py_node *n, const py_entity *of, simt_status status) {
    const char *last = of->kind == PY_ENTITY_MODULE ? strrchr(of->name, '.') : NULL;
    const char *owner = last != NULL ? last + 1 : of->name;
    const char *full = arena_printf(c->mem, "%s.%s", owner, n->name);
    const char *instead = instead_of(full), *near = full != NULL ? py_intrinsic_near(full) : NULL;
    if (instead == NULL && near == NULL) return py_pass_failure(c, n, status);
    return py_fail(c, n, "%s has no attribute '%s': %s%s", owner, n->name,
                   instead ? "" : "nearest is ", instead ? instead : near);
}

bool py_fail_name(py_ctx *c, const py_node *n, simt_status status) {
    static const char *const modules[] = {"cuda", "math", "numpy", "cuda.atomic"};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const char *full = arena_printf(c->mem, "%s.%s", modules[i], n->name);
        if (full != NULL && py_intrinsic_within(full) != NULL)
            return py_fail(c, n, "name '%s' is not defined: write %s", n->name, full);
    }
    const char *instead = instead_of(n->name);
    if (instead == NULL) return py_pass_failure(c, n, status);
    return py_fail(c, n, "name '%s' is not defined: %s", n->name, instead);
}

bool py_fail_call(py_ctx *c, const py_node *n, const py_val *f) {
    const py_node *callee = n->a;
    const char *text = py_type_text(c, f->type);
    if (f->type->kind == TY_SCALAR && callee->kind == PY_NAME)
        return py_fail(c, n, "'%s' is a variable here (%s) and cannot be called: rename it",
                       callee->name, text);
    if (f->type->kind == TY_SCALAR)
        return py_fail(c, n, "%s cannot be called: leave out the (), or write *", text);
    if (f->type->kind != TY_ENTITY) return py_fail(c, n, "%s cannot be called", text);
    const char *name = f->type->entity->name, *instead = NULL, *end;
    if (name == NULL) name = "this object";
    if (*name == '\'' && (end = strchr(name + 1, '\'')) != NULL) { /* 'time.time' (an object ...) */
        const char *inner = arena_printf(c->mem, "builtins.%.*s", (int)(end - name - 1), name + 1);
        instead = instead_of(inner);
        if (instead == NULL && inner != NULL) instead = instead_of(strchr(inner, '.') + 1);
    }
    return py_fail(c, n, "%s cannot be called in a kernel%s%s", name, instead ? ": " : "",
                   instead ? instead : "");
}

const char *py_advice(py_ctx *c, const py_type *t) {
    const char *text = NULL;
    switch ((py_type_kind)t->kind) {
    case TY_ARRAY: return ": a kernel works on elements, write a[i]";
    case TY_TUPLE:
        return t->names != NULL ? ": write it for the items, v.x" : ": take an item, t[0]";
    case TY_STRING: return ": kernels do not compute with strings";
    case TY_CHARS: return ": a string is no number";
    case TY_NONE: return ": is a return missing in a function?";
    case TY_ENTITY: {
        const py_entity *e = t->entity;
        bool is_group = e->kind == PY_ENTITY_INTRINSIC && py_find_intrinsic(e->name) == NULL;
        const char *member = is_group ? py_intrinsic_within(e->name) : NULL;
        if (member != NULL)
            text = arena_printf(c->mem, ": write %s", member);
        else if (e->kind == PY_ENTITY_INTRINSIC || e->kind == PY_ENTITY_FUNCTION)
            text = arena_printf(c->mem, ": call it, %s(...)", py_as_written(e->name));
        break;
    }
    default: break;
    }
    return text != NULL ? text : "";
}
