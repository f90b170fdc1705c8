/* Characters -> tokens, and what numbers, characters and strings say. */
#include "frontend/cuda/tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

_Noreturn void cu_fail(const cuda_unit *u, const cu_token *at, const char *format, ...) {
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    simt_status status = status_fail(SIMT_ERR_CUDA_C, "%s", text);
    if (at != NULL) status_set_position(u->file, (int)at->line, at->column);
    arena_end_run(status);
}

_Noreturn void cu_not_yet(const cuda_unit *u, const cu_token *at, const char *what) {
    cu_fail(u, at, "%s: not in simt yet", what);
}

/* ---- names ---- */

static const char *const keyword_texts[] = {
    "",
#define KEYWORD(id, text) text,
#include "frontend/cuda/keywords.def"
#undef KEYWORD
};

static uint16_t keyword_of(const char *text, size_t length) {
    for (size_t i = 1; i < sizeof keyword_texts / sizeof *keyword_texts; i++)
        if (strncmp(keyword_texts[i], text, length) == 0 && keyword_texts[i][length] == 0)
            return (uint16_t)i;
    return KW_NONE;
}

cu_name *cu_name_of(cuda_unit *u, const char *text, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    cu_name **list = &u->names[hash % CU_NAME_LISTS];
    for (cu_name *n = *list; n != NULL; n = n->next)
        if (n->length == length && memcmp(n->text, text, length) == 0) return n;
    cu_name *n = CU_NEW(u, cu_name);
    char *copy = CU_ARRAY(u, char, length);
    memcpy(copy, text, length);
    *n = (cu_name){.next = *list, .text = copy, .length = (uint32_t)length};
    n->keyword = keyword_of(text, length);
    return *list = n;
}

/* ---- characters: a backslash at the end of a line joins it with the next ---- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

cu_source cu_source_of(const char *text, size_t bytes) {
    return (cu_source){
        .at = text, .end = text + bytes, .line_start = text, .line = 1, .starts = true};
}

static char peek(const cu_source *s, size_t ahead) {
    return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : 0;
}

static void new_line(cu_source *s) {
    s->at++;
    s->line++;
    s->line_start = s->at;
}

/* Bytes of a line's end that is joined with the next: \ and the end. 0: none. */
static size_t joined(const cu_source *s) {
    if (peek(s, 0) != '\\') return 0;
    if (peek(s, 1) == '\n') return 2;
    return peek(s, 1) == '\r' && peek(s, 2) == '\n' ? 3 : 0;
}

static cu_token place_of(const cu_source *s) {
    size_t column = (size_t)(s->at - s->line_start) + 1;
    return (cu_token){.line = s->line,
                      .column = (uint16_t)(column <= SOURCE_MOST_COLUMNS ? column : 0)};
}

static void skip_comment(cuda_unit *u, cu_source *s) {
    cu_token begin = place_of(s);
    s->at += 2;
    while (!(peek(s, 0) == '*' && peek(s, 1) == '/')) {
        if (s->at >= s->end) cu_fail(u, &begin, "a comment that does not end: */ is missing");
        if (*s->at == '\n')
            new_line(s);
        else
            s->at++;
    }
    s->at += 2;
}

/* To the next token; whether there was any white space. */
static bool skip_space(cuda_unit *u, cu_source *s) {
    const char *before = s->at;
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '\n') {
            new_line(s);
            s->starts = true;
        } else if (joined(s) > 0) {
            s->at += joined(s) - 1;
            new_line(s);
        } else if (c == '/' && peek(s, 1) == '/') {
            while (s->at < s->end && *s->at != '\n') s->at++;
        } else if (c == '/' && peek(s, 1) == '*') {
            skip_comment(u, s);
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            s->at++;
        } else {
            break;
        }
    }
    return s->at != before;
}

static const char *const punctuators[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
                                          "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
                                          "*=",  "/=",  "%=",  "&=", "|=", "^=", "##", "::"};

static void lex_punctuator(cu_source *s, cu_token *t) {
    bool known = *s->at != 0 && strchr("+-*/%&|^~!<>=?:;,.()[]{}#", *s->at) != NULL;
    t->kind = known ? TK_PUNCT : TK_OTHER;
    t->length = 1;
    for (size_t i = 0; i < sizeof punctuators / sizeof *punctuators; i++) {
        size_t n = strlen(punctuators[i]);
        if ((size_t)(s->end - s->at) < n || memcmp(s->at, punctuators[i], n) != 0) continue;
        t->length = (uint32_t)n;
        break;
    }
    for (uint32_t i = t->length; i-- > 0;) t->punct = t->punct << 8 | (unsigned char)s->at[i];
    s->at += t->length;
}

/* A preprocessing number, which is looked at when it is used. */
static void lex_number(cu_source *s) {
    for (;; s->at++) {
        char c = peek(s, 0), before = s->at[-1];
        if ((c == '+' || c == '-') && strchr("eEpP", before) != NULL) continue;
        if (c == '\'' && (is_digit(peek(s, 1)) || is_letter(peek(s, 1)))) continue;
        if (!is_digit(c) && !is_letter(c) && c != '.') return;
    }
}

static void lex_quoted(cuda_unit *u, cu_source *s, const cu_token *t) {
    char quote = *s->at++;
    while (peek(s, 0) != quote) {
        if (peek(s, 0) == '\\') s->at++;
        if (s->at >= s->end || *s->at == '\n') cu_fail(u, t, "%c is missing at the end", quote);
        s->at++;
    }
    s->at++;
}

cu_token cu_lex(cuda_unit *u, cu_source *s) {
    bool space = skip_space(u, s);
    cu_token t = place_of(s);
    t.space = space;
    t.starts = s->starts;
    t.text = s->at;
    s->starts = false;
    if (s->at >= s->end) return t;
    char c = *s->at;
    if (is_letter(c)) {
        while (is_letter(peek(s, 0)) || is_digit(peek(s, 0))) s->at++;
        t.kind = TK_NAME;
        t.name = cu_name_of(u, t.text, (size_t)(s->at - t.text));
    } else if (is_digit(c) || (c == '.' && is_digit(peek(s, 1)))) {
        s->at++;
        lex_number(s);
        t.kind = TK_NUMBER;
    } else if (c == '"' || c == '\'') {
        lex_quoted(u, s, &t);
        t.kind = c == '"' ? TK_STRING : TK_CHAR;
    } else {
        lex_punctuator(s, &t);
    }
    t.length = (uint32_t)(s->at - t.text);
    return t;
}

void cu_put_token(cuda_unit *u, cu_tokens *to, const cu_token *t) {
    if (to->count == to->capacity) {
        to->capacity = to->capacity * 2 + 64;
        cu_token *grown = CU_ARRAY(u, cu_token, to->capacity);
        if (to->count > 0) memcpy(grown, to->items, to->count * sizeof *grown);
        to->items = grown;
    }
    to->items[to->count++] = *t;
}

/* ---- numbers ---- */

enum { MOST_NUMBER = 200 };

/* Without digit separators. */
static size_t number_text(const cuda_unit *u, const cu_token *t, char text[MOST_NUMBER]) {
    size_t n = 0;
    if (t->length >= MOST_NUMBER) cu_fail(u, t, "a number of %u characters", t->length);
    for (uint32_t i = 0; i < t->length; i++)
        if (t->text[i] != '\'') text[n++] = t->text[i];
    text[n] = 0;
    return n;
}

static bool is_float_text(const char *text) {
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    return strpbrk(text, hex ? ".pP" : ".eE") != NULL || (!hex && strpbrk(text, "fF") != NULL);
}

/* u, l, ll in any order: bits unsigned 1, long 2, long long 4. -1: something else. */
static int integer_suffix(const char *text) {
    int bits = 0;
    for (; *text != 0; text++) {
        bool two = (text[0] == 'l' || text[0] == 'L') && text[1] == text[0];
        int bit = *text == 'u' || *text == 'U' ? 1 : two ? 4 : *text == 'l' || *text == 'L' ? 2 : 0;
        if (bit == 0 || (bits & bit) || (bit > 1 && bits > 1)) return -1;
        bits |= bit;
        text += two;
    }
    return bits;
}

/* The first of int, long, long long (and, for hexadecimals or with u, their unsigned) that has it: C11 6.4.4.1 */
static int integer_type(uint64_t value, int suffix, bool decimal) {
    bool is_unsigned = suffix & 1;
    int kind = suffix & 4 ? CU_LLONG : suffix & 2 ? CU_LONG : CU_INT;
    if (kind == CU_INT && !is_unsigned && value > INT32_MAX)
        kind = !decimal && value <= UINT32_MAX ? CU_UINT : CU_LONG;
    if (kind == CU_INT && is_unsigned) kind = value <= UINT32_MAX ? CU_UINT : CU_ULONG;
    if ((kind == CU_LONG || kind == CU_LLONG) && (is_unsigned || value > INT64_MAX)) kind++;
    return kind;
}

bool cu_read_integer(const cuda_unit *u, const cu_token *t, uint64_t *value, int *type) {
    char text[MOST_NUMBER], *end;
    number_text(u, t, text);
    if (is_float_text(text)) return false;
    bool binary = text[0] == '0' && (text[1] == 'b' || text[1] == 'B');
    errno = 0;
    *value = binary ? strtoull(text + 2, &end, 2) : strtoull(text, &end, 0);
    int suffix = integer_suffix(end);
    if (suffix < 0 || end == text)
        cu_fail(u, t, "'%s' is no number: '%s' is not a suffix of integers", text, end);
    if (errno == ERANGE) cu_fail(u, t, "%s is larger than any integer type", text);
    *type = integer_type(*value, suffix, text[0] != '0');
    return true;
}

double cu_read_float(const cuda_unit *u, const cu_token *t, int *type) {
    char text[MOST_NUMBER], *end;
    size_t n = number_text(u, t, text);
    bool single = text[n - 1] == 'f' || text[n - 1] == 'F';
    if (single) text[n - 1] = 0;
    double value = single ? (double)strtof(text, &end) : strtod(text, &end);
    if (*end != 0) cu_fail(u, t, "'%.*s' is no number", (int)t->length, t->text);
    *type = single ? CU_FLOAT : CU_DOUBLE;
    return value;
}

/* ---- characters ---- */

/* The character at *p, which moves behind it. */
static unsigned char escaped(const cuda_unit *u, const cu_token *t, const char **p) {
    static const char from[] = "abfnrtv\\'\"?0", to[] = "\a\b\f\n\r\t\v\\'\"?";
    if (**p != '\\') return (unsigned char)*(*p)++;
    char c = *++*p;
    if (c == 'x') return (unsigned char)strtoul(*p + 1, (char **)(uintptr_t)p, 16);
    if (c >= '0' && c <= '7') {
        unsigned value = 0;
        for (int i = 0; i < 3 && **p >= '0' && **p <= '7'; i++)
            value = value * 8 + (unsigned)(*(*p)++ - '0');
        return (unsigned char)value;
    }
    const char *found = strchr(from, c);
    if (c == 0 || found == NULL) cu_fail(u, t, "'\\%c' is no character", c);
    ++*p;
    return (unsigned char)to[found - from];
}

int64_t cu_read_char(const cuda_unit *u, const cu_token *t) {
    const char *p = t->text + 1, *end = t->text + t->length - 1;
    int64_t value = p < end ? (signed char)escaped(u, t, &p) : 0;
    if (p != end) cu_fail(u, t, "%.*s: one character is expected", (int)t->length, t->text);
    return value;
}

const char *cu_read_string(cuda_unit *u, const cu_token *t, size_t *bytes) {
    char *out = CU_ARRAY(u, char, t->length);
    const char *p = t->text + 1, *end = t->text + t->length - 1;
    *bytes = 0;
    while (p < end) out[(*bytes)++] = (char)escaped(u, t, &p);
    return out;
}
