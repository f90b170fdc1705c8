/* A growing string. Running out of memory sets `failed`; later appends are then ignored, so that a
 * printer checks once, at the end. */
#ifndef SIMT_BASE_STRBUF_H
#define SIMT_BASE_STRBUF_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct strbuf {
    char *text; /* NUL-terminated when length > 0; NULL when nothing was added */
    size_t length, capacity;
    bool failed;
    arena *mem; /* where the text lives, or NULL: the heap */
} strbuf;

void strbuf_init(strbuf *b);
void strbuf_init_in(strbuf *b, arena *mem); /* needs no deinit */
void strbuf_deinit(strbuf *b);
void strbuf_add(strbuf *b, const char *text, size_t length);
void strbuf_puts(strbuf *b, const char *text);
void strbuf_put_number(strbuf *b, uint64_t n); /* decimal */
void strbuf_printf(strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text ("" when empty), still owned by the buffer. */
const char *strbuf_text(const strbuf *b);

#endif
