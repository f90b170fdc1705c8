/* The table of intrinsics and what all of them use. */
#include "frontend/python/intrinsics.h"

#include <string.h>
#include <strings.h>

static const py_intrinsic table[] = {
#define ROW(name, function, extra, value, elementwise) \
    {name, function, extra, value, elementwise, sizeof(name) - 1},
#define CALL(name, function, extra)   ROW(name, function, extra, false, 0)
#define UFUNC1(name, function, extra) ROW(name, function, extra, false, 1)
#define UFUNC2(name, function, extra) ROW(name, function, extra, false, 2)
#define VALUE(name, function, extra)  ROW(name, function, extra, true, 0)
#include "frontend/python/intrinsics.def"
#undef CALL
#undef VALUE
};

const py_intrinsic *py_find_intrinsic(const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].length == n && memcmp(table[i].name, name, n) == 0) return &table[i];
    return NULL;
}

const char *py_intrinsic_within(const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *row = table[i].name;
        if (strncmp(row, name, n) == 0 && (row[n] == 0 || row[n] == '.')) return row;
    }
    return NULL;
}

const char *py_intrinsic_near(const char *name) {
    const char *best = NULL;
    size_t n = strlen(name), most = strcspn(name, ".") + 2;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *row = table[i].name;
        size_t m = strlen(row), same = m < n ? m : n;
        if (same <= most || strncasecmp(row, name, same) != 0) continue;
        best = row;
        most = same;
    }
    return best;
}

py_val *py_argument(py_call *x, uint32_t i, const char *keyword) {
    if (i < x->nargs) return &x->args[i];
    for (uint32_t k = 0; k < x->nkeywords && keyword != NULL; k++)
        if (strcmp(x->keywords[k], keyword) == 0) return &x->args[x->nargs + k];
    return NULL;
}

static bool is_word_of(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)) != NULL; p += n)
        if ((p == words || p[-1] == ' ') && (p[n] == 0 || p[n] == ',')) return true;
    return false;
}

bool py_check_arguments(py_ctx *c, py_call *x, uint32_t least, uint32_t most,
                        const char *keywords) {
    for (uint32_t i = 0; i < x->nkeywords; i++)
        if (!is_word_of(keywords, x->keywords[i]))
            return py_fail(c, x->node, "%s has no argument '%s'", x->name, x->keywords[i]);
    uint32_t n = x->nargs + x->nkeywords;
    if (n >= least && n <= most) return true;
    const char *open = *keywords ? " (" : "", *close = *keywords ? ")" : "";
    if (least == most)
        return py_fail(c, x->node, "%s takes %u argument%s%s%s%s, %u given", x->name, least,
                       least == 1 ? "" : "s", open, keywords, close, n);
    return py_fail(c, x->node, "%s takes %u to %u arguments%s%s%s, %u given", x->name, least, most,
                   open, keywords, close, n);
}
