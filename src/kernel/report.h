/* What a kernel has to say, as text: places in the user's source, faults, prints. Whoever launched it makes an
 * exception, a message or output of that. All texts are UTF-8. */
#ifndef SIMT_KERNEL_REPORT_H
#define SIMT_KERNEL_REPORT_H

#include "base/code.h"
#include "base/status.h"
#include "kernel/kernel.h"

/* Who reports. */
typedef struct report_host {
    /* Adds the line of a source file, without its end; false: it is not to be had. */
    bool (*line)(const char *file, int number, strbuf *out);
    bool zh; /* in Chinese */
} report_host;

/* `what`, "file:line", the line. */
void report_definition(const report_host *h, const char *what, const char *file, int line,
                       strbuf *out);
/* "at file:line:column" of a diagnostic and `more`, then the source line and a caret under the column; below,
 * the same for each caller. */
void report_place(const report_host *h, const simt_diag *d, const char *more, strbuf *out);

/* A launch that ended. */
typedef struct report_launch {
    const kernel *kernel;
    const code *code;      /* which was compiled from it */
    const char *name;      /* as the user calls the kernel */
    const uint64_t *slots; /* as it was launched: of the kernel's parameters */
    const int64_t *grid;   /* three */
    const uint32_t *block;
} report_launch;

/* What happened, where, by which block and thread, the source line and the callers, what helps. Overwrites the
 * thread's diagnostic. */
void report_fault(const report_host *h, const report_launch *l, const code_fault *fault,
                  strbuf *out);
/* The records of a print buffer, by block and thread. */
void report_prints(const kernel *k, const void *buffer, strbuf *out);

#endif
