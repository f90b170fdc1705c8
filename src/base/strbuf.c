/* Growing strings, in the heap or in an arena (strbuf.h). */
#include "base/strbuf.h"
#include "base/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void strbuf_init(strbuf *b) { *b = (strbuf){0}; }

void strbuf_init_in(strbuf *b, arena *mem) { *b = (strbuf){.mem = mem}; }

void strbuf_deinit(strbuf *b) {
    if (!b->mem) heap_free(b->text);
    *b = (strbuf){0};
}

bool strbuf_grow(strbuf *b, size_t more) {
    if (b->failed) return false;
    size_t capacity = b->capacity ? b->capacity * 2 : 256;
    while (capacity < b->length + more + 1) capacity *= 2;
    char *text = b->mem ? arena_alloc(b->mem, capacity) : heap_resize(b->text, capacity);
    if (text && b->mem && b->length) memcpy(text, b->text, b->length + 1);
    if (!text) {
        b->failed = true;
        return false;
    }
    b->text = text;
    b->capacity = capacity;
    return true;
}

void strbuf_put_number(strbuf *b, uint64_t n) {
    char digits[20], *first = digits + sizeof digits;
    do *--first = (char)('0' + n % 10);
    while (n /= 10);
    strbuf_add(b, first, (size_t)(digits + sizeof digits - first));
}

void strbuf_printf(strbuf *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    if (strbuf_reserve(b, 0)) {
        size_t room = b->capacity - b->length;
        int length = vsnprintf(b->text + b->length, room, format, args);
        bool fits = length >= 0 && (size_t)length < room;
        if (!fits && length >= 0 && strbuf_reserve(b, (size_t)length)) {
            vsnprintf(b->text + b->length, (size_t)length + 1, format, again);
            fits = true;
        }
        if (fits) b->length += (size_t)length;
        b->text[b->length] = '\0';
    }
    va_end(again);
    va_end(args);
}

const char *strbuf_text(const strbuf *b) { return b->text ? b->text : ""; }
