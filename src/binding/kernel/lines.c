/* Statements in a text: where one begins and ends, by strings, brackets, continued lines and indentation.
 *
 * Nothing is parsed: what is found here is compiled and compared afterwards, and a wrong guess costs time
 * only. A string within the braces of an f-string that has the f-string's own quotes looks like the end of
 * one and the begin of another, which gives the same end nearly always. */
#include "binding/kernel/code.h"

#include <string.h>

const char *kernel_next_line(const char *p, const char *end) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return stop ? stop + 1 : end;
}

size_t kernel_indentation(const char *line) { return strspn(line, " \t\f"); }

size_t kernel_column(const char *line) {
    size_t n = kernel_indentation(line), column = 0;
    for (size_t i = 0; i < n; i++) column = line[i] == '\f' ? 0 : column + 1;
    return column;
}

/* Behind the string whose first quote is at p. */
static const char *string_end(const char *p, const char *end) {
    char quote = *p;
    bool triple = end - p >= 3 && p[1] == quote && p[2] == quote;
    for (p += triple ? 3 : 1; p < end; p++) {
        if (*p == '\\') {
            p++;
        } else if (*p == '\n' && !triple) {
            return p; /* an error, which the compiler will tell */
        } else if (*p == quote) {
            if (!triple) return p + 1;
            if (end - p >= 3 && p[1] == quote && p[2] == quote) return p + 3;
        }
    }
    return end;
}

const char *kernel_statement_end(const char *p, const char *end) {
    int depth = 0;
    while (p < end) {
        switch (*p) {
        case '\n':
            p++;
            if (depth <= 0) return p;
            break;
        case '#': {
            const char *stop = memchr(p, '\n', (size_t)(end - p));
            p = stop ? stop : end;
            break;
        }
        case '\\': p += end - p > 1 ? 2 : 1; break;
        case '\'':
        case '"': p = string_end(p, end); break;
        case '(':
        case '[':
        case '{':
            depth++;
            p++;
            break;
        case ')':
        case ']':
        case '}':
            depth--;
            p++;
            break;
        default: p++;
        }
    }
    return end;
}

static bool begins_def(const char *p) {
    return (strncmp(p, "def", 3) == 0 && (p[3] == ' ' || p[3] == '\t' || p[3] == '\\')) ||
           (strncmp(p, "async", 5) == 0 && (p[5] == ' ' || p[5] == '\t' || p[5] == '\\'));
}

static bool is_blank(const char *line) {
    char c = line[kernel_indentation(line)];
    return c == '\n' || c == '#' || c == '\0';
}

const char *kernel_def_end(const char *begin, const char *end) {
    size_t column = kernel_column(begin);
    const char *p = begin;
    while (p < end && !begins_def(p + kernel_indentation(p))) {
        if (p[kernel_indentation(p)] != '@' && !is_blank(p)) return NULL;
        p = kernel_statement_end(p, end);
    }
    if (p == end) return NULL;
    const char *last = p = kernel_statement_end(p, end);
    for (; p < end; p = kernel_statement_end(p, end)) {
        if (is_blank(p)) continue;
        if (kernel_column(p) <= column) break;
        last = kernel_statement_end(p, end);
    }
    return last;
}

const char *kernel_statement_of(const char *text, const char *end, int line, int *first) {
    int at = 1;
    for (const char *p = text; p < end;) {
        const char *stop = kernel_statement_end(p, end);
        int next = at;
        for (const char *q = p; q < stop; q = kernel_next_line(q, end)) next++;
        if (line < next) {
            *first = at;
            return p;
        }
        at = next;
        p = stop;
    }
    return NULL;
}
