/* The calling thread's diagnostic, and the facts of errors.def. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static _Thread_local simt_diag current;

static const struct {
    const char *name, *exception, *hint_en, *hint_zh;
} rows[SIMT_STATUS_COUNT] = {
    [SIMT_OK] = {"OK", "", "", ""},
#define ERROR(id, exception, hint_en, hint_zh) \
    [SIMT_ERR_##id] = {#id, #exception, hint_en, hint_zh},
#include "base/errors.def"
#undef ERROR
};

simt_status status_fail(simt_status code, const char *format, ...) {
    char text[sizeof current.text]; /* the arguments may point into the old text */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    current.code = code;
    memcpy(current.text, text, sizeof text);
    status_set_position(NULL, 0, 0);
    return code;
}

void status_set_position(const char *file, int line, int column) {
    snprintf(current.file, sizeof current.file, "%s", file ? file : "");
    current.line = line;
    current.column = column;
    current.function[0] = '\0';
    current.ncallers = 0;
}

void status_set_called(const char *function, const char *file, int line, int column) {
    status_set_position(file, line, column);
    snprintf(current.function, sizeof current.function, "%s", function);
}

void status_add_caller(const char *function, const char *file, int line, int column) {
    int i = current.ncallers < STATUS_CALLERS ? current.ncallers : STATUS_CALLERS - 1;
    status_caller *c = &current.callers[i];
    snprintf(c->function, sizeof c->function, "%s", function);
    snprintf(c->file, sizeof c->file, "%s", file);
    c->line = line;
    c->column = column;
    current.ncallers++;
}

/* The next of the calls that were made while the code ran; false: there is none. */
static bool next_outer(const source_outer *outer, uint32_t *next, source_pos *out) {
    if (outer == NULL || *next == outer->count) return false;
    if (*next + 1 >= outer->room &&
        *next + 1 < outer->count) { /* of the rest the last one is known */
        current.ncallers += (int)(outer->count - 1 - *next);
        *next = outer->count - 1;
    }
    *out = outer->at[*next < outer->room ? *next : outer->room - 1];
    ++*next;
    return true;
}

void status_set_reached(const char *function, const char *file, const source_call *calls,
                        source_pos at, const source_outer *outer) {
    uint32_t next = 0;
    if (at.call == 0) {
        status_set_position(file, (int)at.line, at.column);
        return;
    }
    const source_call *in = &calls[at.call - 1];
    status_set_called(in->function, in->file, (int)at.line, at.column);
    do {
        source_pos up = in->at;
        if (up.line == 0 && !next_outer(outer, &next, &up)) return;
        in = up.call != 0 ? &calls[up.call - 1] : NULL;
        status_add_caller(in != NULL ? in->function : function, in != NULL ? in->file : file,
                          (int)up.line, up.column);
    } while (in != NULL);
}

void status_set_source(const char *function, const char *file, const source_call *calls,
                       source_pos at) {
    status_set_reached(function, file, calls, at, NULL);
}

void status_prefix(const char *format, ...) {
    char text[sizeof current.text];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof text) return;
    snprintf(text + used, sizeof text - (size_t)used, "%s", current.text);
    memcpy(current.text, text, sizeof text);
}

const simt_diag *status_get(void) { return &current; }

simt_status status_adopt(const simt_diag *diag) {
    if (diag != &current) current = *diag;
    return current.code;
}

void status_clear(void) { current.code = SIMT_OK; }

static simt_status in_range(simt_status code) {
    return (unsigned)code < SIMT_STATUS_COUNT ? code : SIMT_ERR_INTERNAL;
}

const char *status_name(simt_status code) { return rows[in_range(code)].name; }
const char *status_exception(simt_status code) { return rows[in_range(code)].exception; }
const char *status_hint(simt_status code, bool zh) {
    return zh ? rows[in_range(code)].hint_zh : rows[in_range(code)].hint_en;
}
