/* Statuses and diagnostics.
 *
 * A function that can fail returns simt_status: SIMT_OK (0) or an id of errors.def, and has then
 * described the failure in the calling thread's diagnostic (one per thread, like errno, so that
 * signatures stay short and no failure path needs an allocation). The binding turns it into a Python
 * exception. A caller that passes a failure on returns the status unchanged; one that recovers calls
 * status_clear.
 */
#ifndef SIMT_BASE_STATUS_H
#define SIMT_BASE_STATUS_H

#include "base/source.h"

#include <stdarg.h>
#include <stdbool.h>

typedef enum simt_status {
    SIMT_OK = 0,
#define ERROR(id, exception, hint_en, hint_zh) SIMT_ERR_##id,
#include "base/errors.def"
#undef ERROR
    SIMT_STATUS_COUNT
} simt_status;

/* A call on the way to the position. */
typedef struct status_caller {
    char function[64], file[240]; /* where the call stands */
    int line, column;
} status_caller;

enum { STATUS_CALLERS = 6 };

typedef struct simt_diag {
    simt_status code;
    char text[1000];   /* English, UTF-8, no newline at the end */
    char file[240];    /* the user's source file, or "" */
    int line, column;  /* from 1; 0 when unknown */
    char function[64]; /* in which the position is, when others have called it; else "" */
    int ncallers;      /* all of them; of those that find no room the outermost is kept, last */
    status_caller callers[STATUS_CALLERS]; /* the innermost first */
} simt_diag;

/* Records the failure and returns `code`, so that a caller writes `return status_fail(...)`. */
simt_status status_fail(simt_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the user's position to the recorded failure. */
void status_set_position(const char *file, int line, int column);
/* The same in `function`, which was called inside others: add the callers, the innermost first. */
void status_set_called(const char *function, const char *file, int line, int column);
void status_add_caller(const char *function, const char *file, int line, int column);
/* All of it, for a position in the code of a function with its table of calls. */
void status_set_source(const char *function, const char *file, const source_call *calls,
                       source_pos at);
/* The same with the calls that were made while the code ran. */
void status_set_reached(const char *function, const char *file, const source_call *calls,
                        source_pos at, const source_outer *outer);
/* Puts text in front of the recorded text ("argument 2: ..."). */
void status_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The calling thread's diagnostic; valid until its next failure. */
const simt_diag *status_get(void);
/* Copies a diagnostic recorded by another thread into the calling thread's and returns its code. */
simt_status status_adopt(const simt_diag *diag);
void status_clear(void);

const char *status_name(simt_status code);          /* "VALUE", ... */
const char *status_exception(simt_status code);     /* "ValueError", ... */
const char *status_hint(simt_status code, bool zh); /* "" when there is none */

/* The one control-flow macro of the project: passes a failure on, visibly. */
#define SIMT_TRY(expression)                                               \
    do {                                                                   \
        simt_status try_status = (expression);                             \
        if (__builtin_expect(try_status != SIMT_OK, 0)) return try_status; \
    } while (0)

#endif
