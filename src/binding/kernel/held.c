/* The text of code that stands in no file: what the program holds in its hands. `python -c` has it among
 * its arguments, `python < file` can read its input again, a console has the lines that were typed, and who
 * calls exec or eval has the text in a variable or a constant. Each is only a guess: the caller compiles it
 * and compares the code (kernel/code.c).
 *
 * In: a code object, and its function's globals. Out: texts, one after the other, the likely ones first.
 * Texts that were right are remembered: the next function of the same text is often made when nobody
 * holds it any more. */
#include "binding/kernel/code.h"
#include "binding/kernel/tree.h"

#include <string.h>

enum { MOST_REMEMBERED = 64, MOST_FRAMES = 200, MOST_ITEMS = 1000, MOST_CHARACTERS = 4 << 20 };

typedef struct search {
    PyCodeObject *code;
    PyObject *word; /* what the text must contain: "def name", "lambda" */
    PyObject *seen; /* texts that were tried */
    kernel_text_try try;
    void *context;
    int status;
} search;

static PyObject *remembered; /* list, the newest at the end */

/* ---- one text ---- */

static PyObject *
decoded(PyObject *o) { /* str and bytes as str, or NULL, perhaps with an exception */
    if (PyUnicode_Check(o)) return Py_NewRef(o);
    if (!PyBytes_Check(o) || PyBytes_GET_SIZE(o) > MOST_CHARACTERS) return NULL;
    return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o), NULL);
}

void kernel_text_remember(PyObject *text) {
    if (!remembered && !(remembered = PyList_New(0))) goto failed;
    int known = PySequence_Contains(remembered, text);
    if (known == 0 && PyList_Append(remembered, text) < 0) goto failed;
    if (PyList_GET_SIZE(remembered) > MOST_REMEMBERED) PyList_SetSlice(remembered, 0, 1, NULL);
failed:
    binding_do_without();
}

/* Whether the search is over: the text was found, or an exception is no matter of this guess (memory ended,
 * Ctrl-C). Every guess ends with this question. */
static bool is_over(search *s) {
    if (s->status == 0 && !binding_forgive()) s->status = -1;
    return s->status != 0;
}

/* Tries a string or bytes. True: the search is over. */
static bool offer(search *s, PyObject *o) {
    PyObject *text = decoded(o);
    if (!text) return is_over(s);
    bool likely = PyUnicode_GET_LENGTH(text) <= MOST_CHARACTERS &&
                  PyUnicode_Find(text, s->word, 0, PY_SSIZE_T_MAX, 1) >= 0;
    int known = likely ? PySet_Contains(s->seen, text) : 1;
    if (known == 0 && PySet_Add(s->seen, text) == 0) {
        PyObject *plain = kernel_text_newlines(Py_NewRef(text));
        s->status = plain ? s->try(plain, s->code, s->context) : -1;
        if (s->status == 1) kernel_text_remember(plain);
        Py_XDECREF(plain);
    }
    Py_DECREF(text);
    return is_over(s);
}

/* ---- collections of them ---- */

static bool offer_items(search *s, PyObject *o);

static bool offer_sequence(search *s, PyObject *o, bool within) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o) && i < MOST_ITEMS; i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(o, i));
        bool over = offer(s, item) || (within && offer_items(s, item));
        Py_DECREF(item);
        if (over) return true;
    }
    return false;
}

/* The values of a dict; `within`: what they contain, too. A copy of the list: trying a text may run code. */
static bool offer_values(search *s, PyObject *dict, bool within) {
    PyObject *values = PyMapping_Values(dict);
    bool over = values ? offer_sequence(s, values, within) : is_over(s);
    Py_XDECREF(values);
    return over;
}

static bool offer_items(search *s, PyObject *o) {
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) return offer_sequence(s, o, false);
    return PyDict_CheckExact(o) && offer_values(s, o, false);
}

/* ---- frames ---- */

/* What looking at a function's variables left behind: before Python 3.13 a copy of them in the frame. */
static void forget_copies(PyCodeObject *code, PyObject *locals) {
#if PY_VERSION_HEX < 0x030D0000
    bool ours = (code->co_flags & CO_OPTIMIZED) && PyDict_CheckExact(locals);
    if (ours && Py_REFCNT(locals) == 2) PyDict_Clear(locals); /* the frame's and ours */
#endif
}

/* The attributes of a method's object: generators of code keep it there. */
static bool offer_self(search *s, PyObject *locals) {
    PyObject *self = PyMapping_GetItemString(locals, "self");
    PyObject *dict = self ? PyObject_GetAttrString(self, "__dict__") : NULL;
    bool over = dict ? PyDict_CheckExact(dict) && offer_values(s, dict, false) : is_over(s);
    Py_XDECREF(dict);
    Py_XDECREF(self);
    return over;
}

static bool offer_frame(search *s, PyFrameObject *frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool over = offer_sequence(s, code->co_consts, true);
    PyObject *locals = over ? NULL : PyFrame_GetLocals(frame);
    PyObject *globals = over ? NULL : PyFrame_GetGlobals(frame);
    if (!over) over = is_over(s);
    if (!over && locals) over = offer_values(s, locals, true) || offer_self(s, locals);
    if (!over && globals && globals != locals) over = offer_values(s, globals, false);
    if (locals) forget_copies(code, locals);
    Py_XDECREF(locals);
    Py_XDECREF(globals);
    Py_DECREF(code);
    return over;
}

static bool offer_frames(search *s) {
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    bool over = false;
    for (int depth = 0; frame && !over && depth < MOST_FRAMES; depth++) {
        over = offer_frame(s, frame);
        Py_SETREF(frame, PyFrame_GetBack(frame));
    }
    Py_XDECREF(frame);
    return over || is_over(s);
}

/* ---- how Python was started ---- */

/* The argument of -c in the interpreter's own command line, a list; borrowed, with *skip characters before
 * it. */
static PyObject *command_argument(PyObject *argv, Py_ssize_t *skip) {
    Py_ssize_t n = argv && PyList_Check(argv) ? PyList_GET_SIZE(argv) : 0;
    for (Py_ssize_t i = 1; i < n; i++) {
        PyObject *argument = PyList_GET_ITEM(argv, i);
        const char *text = PyUnicode_Check(argument) ? PyUnicode_AsUTF8(argument) : NULL;
        if (!text || text[0] != '-' || text[1] == 0) return NULL; /* the program */
        if (strcmp(text, "--check-hash-based-pycs") == 0) i++;
        if (text[1] == '-') continue;
        size_t letter = strcspn(text, "cmWX");
        if (text[letter] == 'm') return NULL;
        *skip = text[letter] == 'c' && text[letter + 1] ? (Py_ssize_t)letter + 1 : 0;
        if (text[letter] == 'c' && *skip) return argument;
        if (text[letter] == 'c') return i + 1 < n ? PyList_GET_ITEM(argv, i + 1) : NULL;
        if (text[letter] && !text[letter + 1]) i++; /* -W x, -X x */
    }
    return NULL;
}

/* `python -c`: as it is, and (Python 3.14) without its common indentation. */
static bool offer_command(search *s) {
    Py_ssize_t skip = 0;
    PyObject *argv = NULL;
    bool known = binding_sys("orig_argv", &argv) >= 0;
    PyObject *argument = known ? command_argument(argv, &skip) : NULL;
    PyObject *part = argument && PyUnicode_Check(argument)
                         ? PyUnicode_Substring(argument, skip, PY_SSIZE_T_MAX)
                         : NULL;
    Py_XDECREF(argv);
    bool over = part ? offer(s, part) : is_over(s);
    Py_XDECREF(part);
    return over;
}

/* `python < file`: from its beginning again. */
static bool offer_input(search *s) {
    PyObject *text = kernel_text_of_path("/dev/stdin");
    bool over = text ? offer(s, text) : is_over(s);
    Py_XDECREF(text);
    return over;
}

/* ---- a console ---- */

/* Adds the line i of the console's history; false: an exception. */
static bool add_history(PyObject *readline, long i, PyObject *lines) {
    PyObject *line = PyObject_CallMethod(readline, "get_history_item", "l", i);
    bool done = line && (!PyUnicode_Check(line) || PyList_Append(lines, line) == 0);
    Py_XDECREF(line);
    return done;
}

static bool begins_with(PyObject *line, char word) {
    Py_ssize_t i = 0, n = PyUnicode_GET_LENGTH(line);
    while (i < n && (PyUnicode_READ_CHAR(line, i) == ' ' || PyUnicode_READ_CHAR(line, i) == '\t'))
        i++;
    return i < n && PyUnicode_READ_CHAR(line, i) == (Py_UCS4)word;
}

/* The lines [from, to] joined, each with its end. */
static PyObject *join_lines(PyObject *lines, Py_ssize_t from) {
    PyObject *part = PyList_GetSlice(lines, from, PyList_GET_SIZE(lines));
    PyObject *end = PyUnicode_FromString("\n"), *text = NULL;
    if (part && end) text = PyUnicode_Join(end, part);
    if (text) Py_SETREF(text, PyUnicode_Concat(text, end));
    Py_XDECREF(part);
    Py_XDECREF(end);
    return text;
}

/* Statements that were typed are numbered from 1: the one with the line of the def as its line. The newest
 * first. */
static bool offer_typed(search *s, PyObject *lines) {
    bool over = false;
    for (Py_ssize_t i = PyList_GET_SIZE(lines) - 1; i >= 0 && !over; i--) {
        PyObject *line = PyList_GET_ITEM(lines, i);
        if (PyUnicode_Find(line, s->word, 0, PY_SSIZE_T_MAX, 1) < 0) continue;
        Py_ssize_t begin = i;
        while (begin > 0 && begins_with(PyList_GET_ITEM(lines, begin - 1), '@')) begin--;
        begin -= s->code->co_firstlineno - 1;
        PyObject *text = begin >= 0 ? join_lines(lines, begin) : NULL;
        over = text ? offer(s, text) : is_over(s);
        Py_XDECREF(text);
    }
    return over;
}

static bool offer_history(search *s) {
    PyObject *name = PyUnicode_FromString("readline");
    PyObject *readline = name ? PyImport_GetModule(name) : NULL;
    PyObject *count =
        readline ? PyObject_CallMethod(readline, "get_current_history_length", NULL) : NULL;
    long n = count ? PyLong_AsLong(count) : 0;
    PyObject *lines = PyList_New(0);
    bool over = is_over(s);
    for (long i = n > MOST_ITEMS ? n - MOST_ITEMS : 1; !over && i <= n; i++)
        over = !add_history(readline, i, lines) && is_over(s);
    if (!over) over = offer_typed(s, lines);
    Py_XDECREF(name);
    Py_XDECREF(readline);
    Py_XDECREF(count);
    Py_XDECREF(lines);
    return over;
}

/* ---- all of it ---- */

static bool is_named(PyCodeObject *code, const char *name) {
    return PyUnicode_CompareWithASCIIString(code->co_filename, name) == 0;
}

static void offer_all(search *s, PyObject *globals) {
    bool typed = is_named(s->code, "<stdin>") || is_named(s->code, "<console>");
    if (is_named(s->code, "<string>") && offer_command(s)) return;
    if (is_named(s->code, "<stdin>") && offer_input(s)) return;
    if (typed && offer_history(s)) return;
    if (remembered && offer_sequence(s, remembered, false)) return;
    if (offer_frames(s)) return;
    offer_values(s, globals, true);
}

int kernel_text_held(PyCodeObject *code, PyObject *globals, kernel_text_try try, void *context) {
    bool lambda = PyUnicode_CompareWithASCIIString(code->co_name, "<lambda>") == 0;
    search s = {.code = code, .try = try, .context = context};
    s.word =
        lambda ? PyUnicode_FromString("lambda") : PyUnicode_FromFormat("def %U", code->co_name);
    s.seen = s.word ? PySet_New(NULL) : NULL;
    if (s.seen)
        offer_all(&s, globals);
    else
        s.status = -1;
    Py_XDECREF(s.word);
    Py_XDECREF(s.seen);
    return s.status;
}

PyObject *kernel_text_remembered(PyCodeObject *code) {
    for (Py_ssize_t i = remembered ? PyList_GET_SIZE(remembered) - 1 : -1; i >= 0; i--) {
        if (i >= PyList_GET_SIZE(remembered)) continue; /* compiling may have run other code */
        PyObject *text = Py_NewRef(PyList_GET_ITEM(remembered, i));
        kernel_found found;
        int status = kernel_code_find(text, code, &found);
        if (status == 1) kernel_found_done(&found);
        if (status != 0) {
            if (status < 0) Py_CLEAR(text);
            return text;
        }
        Py_DECREF(text);
    }
    return NULL;
}
