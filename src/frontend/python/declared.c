/* Calls of functions that were declared with signatures: as Numba, the signature that needs the least
 * conversions, the arguments converted to its types, and the result to its type. */
#include "base/strbuf.h"
#include "frontend/python/work.h"

/* A row per type of a number, a letter per declared type, both in the order of py_scalar: exact, promoted, safe,
 * unsafe, or impossible, as Numba has them (tests/conformance/numba_typing.json). */
int64_t py_scalar_cost(py_scalar from, py_scalar to) {
    static const char rows[][PY_SCALAR_COUNT] = {
        "esssssssssssss", /* bool */
        "uepppuuuusssss", /* int8 */
        "uueppuuuuussss", /* int16 */
        "uuuepuuuuuusus", /* int32 */
        "uuuueuuuuuusus", /* int64 */
        "uusssepppussss", /* uint8 */
        "uuussueppuusus", /* uint16 */
        "uuuusuuepuusus", /* uint32 */
        "uuuuuuuueuusus", /* uint64 */
        "uuuuuuuuueppss", /* float16 */
        "uuuuuuuuuuepss", /* float32 */
        "uuuuuuuuuuueus", /* float64 */
        "------------ep", /* complex64 */
        "------------ue", /* complex128 */
    };
    switch (rows[from - 1][to - 1]) {
    case 'e': return 0;
    case 'p': return PY_COST_PROMOTED;
    case 's': return PY_COST_SAFE;
    case 'u': return PY_COST_UNSAFE;
    default: return -1;
    }
}

static int64_t array_cost(const py_type *from, const py_type *to) {
    bool same = from->scalar == to->scalar && from->ndim == to->ndim &&
                py_record_equal(from->record, to->record);
    /* an array that has one axis at most, and is dense, lies in either order */
    bool layout =
        from->layout == to->layout || (to->ndim <= 1 && to->layout != 'A' && from->layout != 'A');
    if (!same || (from->readonly && !to->readonly) || (!layout && to->layout != 'A')) return -1;
    return layout && from->readonly == to->readonly ? 0 : PY_COST_SAFE;
}

/* -1: there is no conversion. */
static int64_t type_cost(const py_type *from, const py_type *to) {
    if (from->kind == TY_OPTIONAL && to->kind != TY_OPTIONAL) /* its value, or a fault */
        return type_cost(from->items[0], to) < 0 ? -1 : PY_COST_UNSAFE;
    if (from->kind != to->kind) return -1;
    if (from->kind == TY_SCALAR) return py_scalar_cost(from->scalar, to->scalar);
    if (from->kind == TY_ARRAY) return array_cost(from, to);
    if (from->kind != TY_TUPLE) return py_type_equal(from, to) ? 0 : -1;
    if (from->count != to->count || !py_names_equal(from->names, to->names)) return -1;
    int64_t worst = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        int64_t one = type_cost(from->items[i], to->items[i]);
        if (one < 0) return -1;
        if (one > worst) worst = one;
    }
    return worst;
}

static int64_t cost(const py_val *args, const py_type *const *types, uint32_t n) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t one = type_cost(args[i].type, types[i]);
        if (one < 0) return -1;
        sum += one;
    }
    return sum;
}

static bool convert(py_ctx *c, const py_node *at, const py_val *v, const py_type *to, py_val *out) {
    py_val value = *v;
    if (value.type->kind == TY_OPTIONAL && !py_take_value(c, at, &value)) return false;
    if (to->kind != TY_ARRAY) return py_convert(c, at, &value, to, out);
    const py_type *t = value.type;
    *out = value;
    out->type = py_type_array(c, t->scalar, t->record, t->ndim, to->layout, t->space, to->readonly);
    return true;
}

static void print_types(py_ctx *c, strbuf *b, const py_type *const *types, uint32_t n) {
    strbuf_puts(b, "(");
    for (uint32_t i = 0; i < n; i++)
        strbuf_printf(b, "%s%s", i > 0 ? ", " : "", py_type_text(c, types[i]));
    strbuf_puts(b, ")");
}

static bool fail_declared(py_ctx *c, const py_node *at, const py_function *fn, const py_val *args,
                          uint32_t n) {
    const py_type **types = PY_NEW(c, const py_type *, n + 1);
    for (uint32_t i = 0; i < n; i++) types[i] = args[i].type;
    strbuf b;
    strbuf_init(&b);
    print_types(c, &b, types, n);
    strbuf_puts(&b, ": it is declared for ");
    for (uint32_t k = 0; k < fn->ndeclared; k++) {
        const py_declared *d = &fn->declared[k];
        if (k > 0) strbuf_puts(&b, " or ");
        if (py_read_types(c, d->arguments, d->arguments_bytes, &types, &n))
            print_types(c, &b, types, n);
    }
    py_fail(c, at, "%s has no signature for %s", fn->name, strbuf_text(&b));
    strbuf_deinit(&b);
    return false;
}

static const py_declared *best_of(py_ctx *c, const py_function *fn, const py_val *args,
                                  uint32_t nargs, uint32_t given, const py_type ***types,
                                  uint32_t *count) {
    const py_declared *best = NULL;
    int64_t least = -1;
    for (uint32_t k = 0; k < fn->ndeclared; k++) {
        const py_declared *d = &fn->declared[k];
        const py_type **now;
        uint32_t n;
        if (!py_read_types(c, d->arguments, d->arguments_bytes, &now, &n)) return NULL;
        if (n < given || n > nargs) continue;
        int64_t price = cost(args, now, n);
        if (price < 0 || (best != NULL && price >= least)) continue;
        best = d;
        least = price;
        *types = now;
        *count = n;
    }
    return best;
}

/* What it was declared to return; NULL: nothing was said. */
static bool read_result(py_ctx *c, const py_node *at, const py_function *fn, const py_declared *d,
                        const py_type **out) {
    const py_type **type;
    uint32_t n;
    *out = NULL;
    if (d->result == NULL) return true;
    if (!py_read_types(c, d->result, d->result_bytes, &type, &n)) return false;
    if (n != 1) return py_fail(c, at, "%s is declared to return nothing that can be", fn->name);
    *out = type[0];
    return true;
}

static bool convert_result(py_ctx *c, const py_node *at, const py_function *fn, const py_type *to,
                           py_val *out) {
    if (to == NULL) return true;
    if (type_cost(out->type, to) < 0)
        return py_fail(c, at, "%s returns %s: it is declared to return %s", fn->name,
                       py_type_text(c, out->type), py_type_text(c, to));
    return convert(c, at, out, to, out);
}

bool py_call_declared(py_ctx *c, const py_node *at, const py_function *fn, py_val *args,
                      uint32_t nargs, uint32_t given, py_val *out) {
    const py_type **types, *result;
    uint32_t n = 0;
    const py_declared *d = best_of(c, fn, args, nargs, given, &types, &n);
    if (d == NULL) return fail_declared(c, at, fn, args, nargs);
    if (!read_result(c, at, fn, d, &result)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!convert(c, at, &args[i], types[i], &args[i])) return false;
    return py_call_function(c, at, fn, args, nargs, result, out) &&
           convert_result(c, at, fn, result, out);
}
