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
    {"Lambda", "a lambda", "define it outside the kernel and call it by its name"},
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

/* functions of Python and NumPy; a name that ends in '.' stands for all that begin so */
static const struct {
    const char *names, *instead;
} functions[] = {
    {"numpy.zeros numpy.ones numpy.empty numpy.full numpy.arange numpy.array numpy.zeros_like",
     "use cuda.local.array or cuda.shared.array, or an argument"},
    {"numpy.sum numpy.dot numpy.mean numpy.prod numpy.cumsum numpy.matmul numpy.linalg. "
     "builtins.sum builtins.any builtins.all builtins.map builtins.filter builtins.sorted "
     "builtins.reversed builtins.list",
     "write a for loop"},
    {"numpy.random.", "pass random numbers in an array"},
    {"numpy.where", "write x if condition else y"},
    {"builtins.str builtins.repr builtins.format", "kernels have no strings"},
    {"builtins.input builtins.open", "pass the data in an array"},
    {"builtins.isinstance builtins.type builtins.getattr builtins.hasattr",
     "types are fixed when a kernel is compiled"},
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

bool py_fail_unknown(py_ctx *c, const py_node *n, const char *function) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (is_listed(functions[i].names, function))
            return py_fail(c, n, "%s is not in simt's kernels: %s", function, functions[i].instead);
    return py_fail(c, n, "%s is not in simt's kernels yet", function);
}
