/* A growing string. Running out of memory sets `failed`; later appends are then ignored, so that a
 * printer checks once, at the end. */
#ifndef SIMT_BASE_STRBUF_H
#define SIMT_BASE_STRBUF_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct strbuf {
    char *text; /* NUL-terminated when length > 0; NULL when nothing was added */
    size_t length, capacity;
    bool failed;
    arena *mem; /* where the text lives, or NULL: the heap */
} strbuf;

void strbuf_init(strbuf *b);
void strbuf_init_in(strbuf *b, arena *mem); /* needs no deinit */
void strbuf_deinit(strbuf *b);
void strbuf_put_number(strbuf *b, uint64_t n); /* decimal */
void strbuf_printf(strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for `more` bytes and the NUL, where there is none; false: no memory. */
bool strbuf_grow(strbuf *b, size_t more);
static inline bool strbuf_reserve(strbuf *b, size_t more) {
    return (b->length + more < b->capacity && !b->failed) || strbuf_grow(b, more);
}
/* Here, since the key of the cache of kernels is printed (ir/print.c): most pieces are constants. */
static inline void strbuf_add(strbuf *b, const char *text, size_t length) {
    if (!strbuf_reserve(b, length)) return;
    memcpy(b->text + b->length, text, length);
    b->length += length;
    b->text[b->length] = '\0';
}
static inline void strbuf_puts(strbuf *b, const char *text) { strbuf_add(b, text, strlen(text)); }
/* The text ("" when empty), still owned by the buffer. */
const char *strbuf_text(const strbuf *b);

#endif
