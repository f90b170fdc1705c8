/* _core.ir_check: the tests' way to the parser, printer, verifier and passes.
 *
 * ir_check(text, passes="") -> the printed text after the named passes ("fold,cse"; "all"
 * is the pipeline), verified before the first and after each. ir_hash(text) -> int.
 * ir_uniform(text, block=(0, 0, 0)) -> one string per value: "uniform", "varying" or "linear K".
 */
#include "binding/binding.h"

#include "opt/opt.h"

#include <string.h>

static const struct {
    const char *name;
    simt_status (*run)(ir_func *);
} passes_table[] = {
#define PASS(id, default_on, meaning) {#id, opt_##id},
#include "opt/passes.def"
#undef PASS
};

static simt_status run_one(ir_func *f, const char *name, size_t length) {
    static const opt_options all = {.contract = false, .verify = true};
    if (length == 3 && !strncmp(name, "all", 3)) return opt_run(f, &all);
    for (size_t i = 0; i < sizeof passes_table / sizeof *passes_table; i++) {
        if (strlen(passes_table[i].name) != length || strncmp(passes_table[i].name, name, length))
            continue;
        SIMT_TRY(passes_table[i].run(f));
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

static PyObject *describe(const opt_uniformity *u, uint32_t count) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *item =
            u->shape[i] == OPT_LINEAR
                ? PyUnicode_FromFormat("linear %lld", (long long)u->stride[i])
                : PyUnicode_FromString(u->shape[i] == OPT_UNIFORM ? "uniform" : "varying");
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *ir_uniform(PyObject *self, PyObject *args) {
    const char *text;
    uint32_t block[3] = {0, 0, 0};
    if (!PyArg_ParseTuple(args, "s|(III)", &text, &block[0], &block[1], &block[2])) return NULL;
    ir_func *f = parse_valid(text);
    if (!f) return NULL;
    arena mem;
    arena_init(&mem);
    opt_uniformity found;
    PyObject *result = NULL;
    if (opt_uniform(f, block, &mem, &found) == SIMT_OK)
        result = describe(&found, f->next_id);
    else
        binding_raise();
    arena_deinit(&mem);
    ir_func_free(f);
    return result;
}

static PyMethodDef methods[] = {
    {"ir_check", (PyCFunction)(void (*)(void))ir_check, METH_VARARGS | METH_KEYWORDS,
     "Parses, verifies, runs passes, prints (for tests)."},
    {"ir_hash", ir_hash_of, METH_VARARGS, "Hash of printed IR (for tests)."},
    {"ir_uniform", ir_uniform, METH_VARARGS, "Shapes of the values of printed IR (for tests)."},
    {NULL, NULL, 0, NULL},
};

int binding_add_ir(PyObject *module) { return PyModule_AddFunctions(module, methods); }
