/* Places and faults as text. */
#include "kernel/report.h"

#include <stdio.h>
#include <string.h>

/* ---- a source line with a caret ---- */

/* The character at *at (valid UTF-8), which moves behind it. */
static uint32_t next_character(const char **at) {
    const unsigned char *p = (const unsigned char *)*at;
    int more = *p < 0x80 ? 0 : *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : 3;
    uint32_t c = more == 0 ? *p : *p & (0x3Fu >> more);
    for (int i = 1; i <= more && p[i] != 0; i++) {
        c = c << 6 | (p[i] & 0x3Fu);
        ++*at;
    }
    ++*at;
    return c;
}

/* Characters that fill two columns of a terminal: Chinese, Japanese, Korean, full-width forms. */
static bool is_wide(uint32_t c) {
    return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
           (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
           (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
           (c >= 0x20000 && c <= 0x3FFFD);
}

/* "    x = y\n        ^" with the line's own indentation taken off. */
static void add_line(const char *line, int column, strbuf *out) {
    int first = 0, length;
    while (*line == ' ' || (*line >= '\t' && *line <= '\r')) line++, first++;
    strbuf_printf(out, "\n    %s", line);
    const char *end = line;
    for (length = first; *end != 0; length++) next_character(&end);
    if (column <= first || column > length + 1) return;
    strbuf_puts(out, "\n    ");
    for (int i = first; i < column - 1; i++)
        strbuf_puts(out, is_wide(next_character(&line)) ? "  " : " ");
    strbuf_puts(out, "^");
}

static void add_source(const report_host *h, const char *file, int line, int column, strbuf *out) {
    strbuf text;
    strbuf_init(&text);
    if (h->line(file, line, &text) && !text.failed) add_line(strbuf_text(&text), column, out);
    strbuf_deinit(&text);
}

void report_definition(const report_host *h, const char *what, const char *file, int line,
                       strbuf *out) {
    strbuf_printf(out, "%s%s:%d", what, file, line);
    add_source(h, file, line, 0, out);
}

/* `what`, "file:line:column", `in` and the function's name, `more`, the line, the caret. */
static void add_place(const report_host *h, const char *what, const char *file, int line,
                      int column, const char *in, const char *function, const char *more,
                      strbuf *out) {
    strbuf_printf(out, "%s%s:%d", what, file, line);
    if (column > 0) strbuf_printf(out, ":%d", column);
    if (function[0] != 0) strbuf_printf(out, "%s%s", in, function);
    strbuf_puts(out, more);
    add_source(h, file, line, column, out);
}

void report_place(const report_host *h, const simt_diag *d, const char *more, strbuf *out) {
    const char *in = h->zh ? ", 在函数 " : " in ", *in_kernel = h->zh ? ", 在内核 " : " in kernel ";
    add_place(h, h->zh ? "位置: " : "at ", d->file, d->line, d->column, in, d->function, more, out);
    int n = d->ncallers < STATUS_CALLERS ? d->ncallers : STATUS_CALLERS;
    for (int i = 0; i < n; i++) {
        const status_caller *c = &d->callers[i];
        if (i == n - 1 && d->ncallers > n)
            strbuf_printf(out, h->zh ? "\n... 还有 %d 层调用" : "\n... %d more calls",
                          d->ncallers - n);
        add_place(h, h->zh ? "\n调用处: " : "\ncalled from ", c->file, c->line, c->column,
                  i == n - 1 ? in_kernel : in, c->function, "", out);
    }
}

/* ---- faults ---- */

/* "(1, 0, 0)" of a flat number in a box. */
static void place_text(uint64_t flat, const int64_t box[3], char *text, size_t size) {
    uint64_t x = (uint64_t)box[0], y = (uint64_t)box[1];
    snprintf(text, size, "(%llu, %llu, %llu)", (unsigned long long)(flat % x),
             (unsigned long long)(flat / x % y), (unsigned long long)(flat / x / y));
}

/* "at program.py:8:5, block (0, 0, 0), thread (12, 0, 0)", the source line, a caret, the callers. */
static void add_where(const report_host *h, const report_launch *l, const kernel_fault *f,
                      const code_fault *fault, strbuf *out) {
    const code *c = l->code;
    char b[80], t[80], more[200];
    const int64_t box[3] = {l->block[0], l->block[1], l->block[2]};
    place_text(fault->block, l->grid, b, sizeof b);
    place_text(fault->thread, box, t, sizeof t);
    snprintf(more, sizeof more, ", block %s, thread %s", b, t);
    bool known = f != NULL && f->pos.line != 0;
    source_outer outer = {fault->calls, fault->ncalls, CODE_FAULT_CALLS};
    status_set_reached(c->name, c->file, c->calls, known ? f->pos : fault->pos, &outer);
    report_place(h, status_get(), more, out);
}

/* ": array 'a' of shape (10,)"; the shape only when it is known. */
static void add_array(const report_launch *l, const kernel_fault *f, strbuf *out) {
    int ndim = f->ndim;
    const int64_t *shape = f->shape;
    const kernel_parameter *p = kernel_array(l->kernel, f->argument, &ndim);
    if (p != NULL) shape = (const int64_t *)&l->slots[p - l->kernel->parameters + 1];
    bool known = p != NULL || ndim > 0;
    for (int d = 0; p == NULL && d < ndim; d++) known &= shape[d] >= 0;
    strbuf_printf(out, ": array '%s'", f->name != NULL ? f->name : "?");
    if (!known) return;
    strbuf_puts(out, " of shape (");
    for (int d = 0; d < ndim; d++)
        strbuf_printf(out, d == 0 ? "%lld" : ", %lld", (long long)shape[d]);
    strbuf_puts(out, ndim == 1 ? ",)" : ")");
}

static void add_what(const report_launch *l, const kernel_fault *f, const code_fault *fault,
                     strbuf *out) {
    if (fault->number == CODE_FAULT_DEEP) {
        strbuf_printf(out,
                      "kernel %s: maximum recursion depth exceeded: a thread may be in %d calls of "
                      "functions that call themselves, whose variables may take %d MB",
                      l->name, CODE_MOST_CALLS, CODE_MOST_STACK_MB);
        return;
    }
    if (f != NULL && f->kind == KERNEL_FAULT_INDEX) {
        strbuf_printf(out, "kernel %s: index %lld is out of bounds for axis %lld with size %lld",
                      l->name, (long long)fault->values[0], (long long)fault->values[1],
                      (long long)fault->values[2]);
        add_array(l, f, out);
        return;
    }
    if (f != NULL && f->text != NULL && *f->text != 0) strbuf_printf(out, "%s\n", f->text);
    strbuf_printf(out, "in kernel %s", l->name);
}

/* What helps at an index of dynamic shared memory when the launch gave none; else "". */
static const char *hint(const report_host *h, const kernel *k, const kernel_fault *f,
                        const code_fault *fault) {
    if (f == NULL || f->kind != KERNEL_FAULT_INDEX || f->argument >= 0 || fault->values[2] != 0 ||
        !kernel_has(k, KERNEL_SHARED_BYTES))
        return "";
    return h->zh ? "\n提示: 形状为 0 的共享内存, 大小由启动决定: kernel[grid, block, stream, bytes]"
                 : "\nhint: shared memory of shape 0 has the size that the launch gives: "
                   "kernel[grid, block, stream, bytes]";
}

void report_fault(const report_host *h, const report_launch *l, const code_fault *fault,
                  strbuf *out) {
    const kernel *k = l->kernel;
    const kernel_fault *f = fault->number < k->nfaults ? &k->faults[fault->number] : NULL;
    add_what(l, f, fault, out);
    strbuf_puts(out, "\n");
    add_where(h, l, f, fault, out);
    strbuf_puts(out, hint(h, k, f, fault));
}
