#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_init(strbuf *b) { *b = (strbuf){0}; }

void strbuf_deinit(strbuf *b) {
    free(b->text);
    *b = (strbuf){0};
}

static bool strbuf_reserve(strbuf *b, size_t more) {
    if (b->failed) return false;
    if (b->length + more + 1 <= b->capacity) return true;
    size_t capacity = b->capacity ? b->capacity * 2 : 256;
    while (capacity < b->length + more + 1) capacity *= 2;
    char *text = realloc(b->text, capacity);
    if (!text) {
        b->failed = true;
        return false;
    }
    b->text = text;
    b->capacity = capacity;
    return true;
}

void strbuf_add(strbuf *b, const char *text, size_t length) {
    if (!strbuf_reserve(b, length)) return;
    memcpy(b->text + b->length, text, length);
    b->length += length;
    b->text[b->length] = '\0';
}

void strbuf_puts(strbuf *b, const char *text) { strbuf_add(b, text, strlen(text)); }

void strbuf_printf(strbuf *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && strbuf_reserve(b, (size_t)length)) {
        vsnprintf(b->text + b->length, (size_t)length + 1, format, again);
        b->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

const char *strbuf_text(const strbuf *b) { return b->text ? b->text : ""; }
