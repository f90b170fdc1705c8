/* _core.ir_check: the tests' way to the parser, printer, verifier and passes.
 *
 * ir_check(text, passes="") -> the printed text after the named passes ("fold,cse"; "all"
 * is the pipeline), verified before the first and after each. ir_hash(text) -> int.
 * ir_uniform(text, block=(1024, 1, 1)) -> one string per value: "uniform", "linear K", "rows X Y Z" (steps
 * along the axes), "run time" or "varying".
 * ir_facts(text, block=(32, 1, 1)) -> what SIMT_DUMP=facts shows.
 */
#include "binding/common/binding.h"

#include "backend/backend.h"
#include "kernel/facts.h"
#include "opt/opt.h"

#include <string.h>

static const struct {
    const char *name;
    opt_pass *run;
} passes_table[] = {
#define PASS(id, default_on, meaning) {#id, opt_##id},
#include "opt/passes.def"
#undef PASS
};

static simt_status run_one(ir_func *f, const char *name, size_t length) {
    const opt_options all = {.verify = true, .wishes = &backend_vm.wishes};
    if (length == 3 && !strncmp(name, "all", 3)) return opt_run(f, &all);
    for (size_t i = 0; i < sizeof passes_table / sizeof *passes_table; i++) {
        if (strlen(passes_table[i].name) != length || strncmp(passes_table[i].name, name, length))
            continue;
        SIMT_TRY(opt_run_pass(f, passes_table[i].run, &backend_vm.wishes));
        return ir_verify(f);
    }
    return status_fail(SIMT_ERR_VALUE, "no pass is called '%.*s'", (int)length, name);
}

static simt_status run_passes(ir_func *f, const char *passes) {
    SIMT_TRY(ir_verify(f));
    while (*passes) {
        size_t length = strcspn(passes, ",");
        SIMT_TRY(run_one(f, passes, length));
        passes += length;
        passes += *passes == ',';
    }
    return SIMT_OK;
}

static PyObject *ir_check(PyObject *self, PyObject *args, PyObject *named) {
    static char *names[] = {"text", "passes", NULL};
    const char *text, *passes = "";
    if (!PyArg_ParseTupleAndKeywords(args, named, "s|s", names, &text, &passes)) return NULL;
    ir_func *f = NULL;
    simt_status status = ir_parse(text, &f);
    if (status == SIMT_OK) status = run_passes(f, passes);
    PyObject *result = NULL;
    if (status == SIMT_OK) {
        strbuf out;
        strbuf_init(&out);
        ir_print(f, &out);
        result = out.failed ? PyErr_NoMemory() : PyUnicode_FromString(strbuf_text(&out));
        strbuf_deinit(&out);
    } else {
        binding_raise();
    }
    ir_func_free(f);
    return result;
}

/* Parses and verifies, or raises and returns NULL. */
static ir_func *parse_valid(const char *text) {
    ir_func *f = NULL;
    simt_status status = ir_parse(text, &f);
    if (status == SIMT_OK) status = ir_verify(f);
    if (status == SIMT_OK) return f;
    binding_raise();
    ir_func_free(f);
    return NULL;
}

static PyObject *ir_hash_of(PyObject *self, PyObject *args) {
    const char *text;
    if (!PyArg_ParseTuple(args, "s", &text)) return NULL;
    ir_func *f = parse_valid(text);
    if (!f) return NULL;
    uint64_t hash = ir_hash(f);
    ir_func_free(f);
    return PyLong_FromUnsignedLongLong(hash);
}

static PyObject *describe_one(const facts_shape *s, const uint32_t block[3]) {
    int64_t stride;
    if (s->kind == FACTS_VARYING) return PyUnicode_FromString("varying");
    if (s->kind == FACTS_RUN_TIME) return PyUnicode_FromString("run time");
    if (facts_shape_is_uniform(s)) return PyUnicode_FromString("uniform");
    if (facts_shape_is_even(s, block, &stride))
        return PyUnicode_FromFormat("linear %lld", (long long)stride);
    return PyUnicode_FromFormat("rows %lld %lld %lld", (long long)s->step[0], (long long)s->step[1],
                                (long long)s->step[2]);
}

static PyObject *describe(const facts_shapes *found, uint32_t count, const uint32_t block[3]) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *item = describe_one(&found->values[i], block);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* The facts of printed IR. */
typedef struct known {
    ir_func *f;
    facts_book book;
    const kernel_facts *facts;
    facts_options options;
} known;

/* False with an exception set. End it with forget in any case. */
static bool know(known *k, const char *text) {
    *k = (known){.f = parse_valid(text), .options = k->options};
    facts_open(&k->book);
    if (!k->f) return false;
    ir_func_renumber(k->f);
    if (facts_ask(&k->book, k->f, &k->options, &k->facts) == SIMT_OK) return true;
    binding_raise();
    return false;
}

static void forget(known *k) {
    facts_forget(&k->book);
    ir_func_free(k->f);
}

static facts_options options_of(const uint32_t block[3]) {
    facts_options o = {.small_grid = true};
    memcpy(o.box, block, sizeof o.box);
    memcpy(o.block, block, sizeof o.block);
    return o;
}

static PyObject *ir_uniform(PyObject *self, PyObject *args) {
    const char *text;
    uint32_t block[3] = {1024, 1, 1};
    if (!PyArg_ParseTuple(args, "s|(III)", &text, &block[0], &block[1], &block[2])) return NULL;
    known k = {.options = options_of(block)};
    PyObject *result = NULL;
    if (know(&k, text)) result = describe(&k.facts->shapes, k.f->next_id, block);
    forget(&k);
    return result;
}

static PyObject *ir_facts(PyObject *self, PyObject *args) {
    const char *text;
    uint32_t block[3] = {32, 1, 1};
    if (!PyArg_ParseTuple(args, "s|(III)", &text, &block[0], &block[1], &block[2])) return NULL;
    known k = {.options = options_of(block)};
    PyObject *result = NULL;
    if (know(&k, text)) {
        strbuf out;
        strbuf_init(&out);
        kernel_print_facts(k.facts, &out);
        result = out.failed ? PyErr_NoMemory() : PyUnicode_FromString(strbuf_text(&out));
        strbuf_deinit(&out);
    }
    forget(&k);
    return result;
}

static PyMethodDef methods[] = {
    {"ir_check", (PyCFunction)(void (*)(void))ir_check, METH_VARARGS | METH_KEYWORDS,
     "Parses, verifies, runs passes, prints (for tests)."},
    {"ir_hash", ir_hash_of, METH_VARARGS, "Hash of printed IR (for tests)."},
    {"ir_uniform", ir_uniform, METH_VARARGS, "Shapes of the values of printed IR (for tests)."},
    {"ir_facts", ir_facts, METH_VARARGS, "The facts of printed IR (for tests)."},
    {NULL, NULL, 0, NULL},
};

int binding_add_ir(PyObject *module) { return PyModule_AddFunctions(module, methods); }
