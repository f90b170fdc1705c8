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
    current.file[0] = '\0';
    current.line = current.column = 0;
    return code;
}

void status_set_position(const char *file, int line, int column) {
    snprintf(current.file, sizeof current.file, "%s", file ? file : "");
    current.line = line;
    current.column = column;
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
