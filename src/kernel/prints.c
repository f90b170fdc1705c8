/* Prints: the code that writes a record into the buffer; the records of a launch as text, in the order of blocks
 * and threads. */
#include "kernel/prints.h"
#include "kernel/report.h"

#include "base/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct record {
    uint64_t block, order;
    uint32_t thread;
    const kernel_print *format;
    const uint64_t *values;
} record;

static int by_thread(const void *a, const void *b) {
    const record *x = a, *y = b;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The records of the buffer; *dropped: some did not fit. NULL: no memory. */
static record *read_records(const kernel *k, const void *buffer, size_t *count, bool *dropped) {
    const uint64_t *head = buffer;
    uint64_t used = head[0], capacity = head[1], at = 0;
    const char *data = (const char *)(head + 2);
    *dropped = used > capacity;
    if (*dropped) used = capacity;
    record *all = heap_alloc((used / 16 + 1) * sizeof *all);
    *count = 0;
    while (all != NULL && at + 16 <= used) {
        uint32_t number[2];
        memcpy(number, data + at, sizeof number);
        if (number[0] >= k->nprints) break;
        const kernel_print *format = &k->prints[number[0]];
        uint64_t bytes = 16 + 8 * (uint64_t)format->nvalues;
        if (at + bytes > used) break;
        record *r = &all[*count];
        *r = (record){.order = *count, .thread = number[1], .format = format};
        memcpy(&r->block, data + at + 8, sizeof r->block);
        r->values = (const uint64_t *)(const void *)(data + at + 16);
        at += bytes;
        ++*count;
    }
    return all;
}

static void add_float(double d, bool with_sign, strbuf *out) {
    if (d != d) /* whatever its sign bit */
        strbuf_puts(out, with_sign ? "+nan" : "nan");
    else
        strbuf_printf(out, with_sign ? "%+f" : "%f", d);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the front end has looked at it */
static void add_styled(const char *style, uint64_t bits, strbuf *out) {
    double d;
    memcpy(&d, &bits, sizeof d);
    char how = style[strlen(style) - 1];
    if (strchr("fFeEgGaA", how) != NULL)
        strbuf_printf(out, style, d);
    else if (how == 'c')
        strbuf_printf(out, style, (int)bits);
    else
        strbuf_printf(out, style, (long long)bits);
}
#pragma GCC diagnostic pop

/* As Numba prints on a GPU: integers in decimal, floats by %f, bools as True and False. */
static void add_value(kernel_shown how, uint64_t bits, strbuf *out) {
    double d;
    float f;
    memcpy(&d, &bits, sizeof d);
    memcpy(&f, &bits, sizeof f);
    switch ((dtype)how.type) {
    case DT_BOOL: strbuf_puts(out, bits & 1 ? "True" : "False"); break;
    case DT_I8: strbuf_printf(out, "%d", (int8_t)bits); break;
    case DT_I16: strbuf_printf(out, "%d", (int16_t)bits); break;
    case DT_I32: strbuf_printf(out, "%d", (int32_t)bits); break;
    case DT_I64: strbuf_printf(out, "%lld", (long long)bits); break;
    case DT_F16: add_float(half_to_float((uint16_t)bits), how.with_sign, out); break;
    case DT_F32: add_float(f, how.with_sign, out); break;
    case DT_F64: add_float(d, how.with_sign, out); break;
    default: strbuf_printf(out, "%llu", (unsigned long long)bits); break;
    }
}

static void add_record(strbuf *out, const record *r) {
    for (uint32_t i = 0; i <= r->format->nvalues; i++) {
        strbuf_puts(out, r->format->texts[i]);
        if (i == r->format->nvalues) break;
        const kernel_shown *how = &r->format->values[i];
        if (how->style != NULL)
            add_styled(how->style, r->values[i], out);
        else
            add_value(*how, r->values[i], out);
    }
}

void report_prints(const kernel *k, const void *buffer, strbuf *out) {
    size_t count;
    bool dropped;
    record *all = read_records(k, buffer, &count, &dropped);
    if (all == NULL) {
        out->failed = true;
        return;
    }
    qsort(all, count, sizeof *all, by_thread);
    for (size_t i = 0; i < count; i++) add_record(out, &all[i]);
    if (dropped) strbuf_puts(out, "... (more was printed than the buffer holds)\n");
    heap_free(all);
}

/* ---- code ---- */

static ir_value *flat(ir_builder *b, ir_special first, ir_special size) {
    ir_value *r = NULL;
    for (int i = 2; i >= 0; i--) {
        ir_value *v = ir_cast(b, IR_ZEXT, IR_I64, ir_special_value(b, first + i));
        ir_value *n = ir_cast(b, IR_ZEXT, IR_I64, ir_special_value(b, size + i));
        r = r == NULL ? v : ir_binary(b, IR_ADD, ir_binary(b, IR_MUL, r, n), v);
    }
    return r;
}

static ir_value *i64(ir_builder *b, int64_t value) { return ir_const_int(b, IR_I64, value); }

static void put(ir_builder *b, ir_value *record, int64_t at, ir_value *word) {
    ir_store(b, ir_ptradd(b, record, i64(b, at)), word, IR_MEM(IR_PLAIN, IR_SCOPE_BLOCK));
}

void print_emit(ir_builder *b, ir_value *buffer, uint32_t number, ir_value *const *words,
                uint32_t n) {
    enum { HEADER = 16 };
    int64_t bytes = HEADER + 8 * (int64_t)n;
    ir_value *at = ir_atomic(b, IR_ATOMIC_ADD, buffer, i64(b, bytes), NULL,
                             IR_MEM(IR_RELAXED, IR_SCOPE_DEVICE));
    ir_value *capacity =
        ir_load(b, IR_I64, ir_ptradd(b, buffer, i64(b, 8)), IR_MEM(IR_PLAIN, IR_SCOPE_BLOCK));
    ir_value *end = ir_binary(b, IR_ADD, at, i64(b, bytes));
    ir_inst *fits = ir_if(b, ir_binary(b, IR_LE_U, end, capacity), NULL, 0);
    ir_region *after = b->at;
    b->at = fits->regions[0];
    ir_value *record = ir_ptradd(b, buffer, ir_binary(b, IR_ADD, at, i64(b, HEADER)));
    ir_value *thread = ir_binary(b, IR_SHL, flat(b, IR_TID_X, IR_NTID_X), i64(b, 32));
    put(b, record, 0, ir_binary(b, IR_OR, thread, i64(b, number)));
    put(b, record, 8, flat(b, IR_CTAID_X, IR_NCTAID_X));
    for (uint32_t k = 0; k < n; k++) put(b, record, HEADER + 8 * (int64_t)k, words[k]);
    ir_br(b, fits, NULL, 0);
    b->at = fits->regions[1];
    ir_br(b, fits, NULL, 0);
    b->at = after;
}
