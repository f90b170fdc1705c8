/* Random arrays: Philox words by position; each call takes its (seed, offset) when it is made. */
#include <string.h>

#include "array/internal.h"

/* A node of `op` on the given shape; words: how far the generator moves. */
static simt_status random_node(random_state *r, array_op op, dtype dt, const int64_t *shape,
                               int ndim, uint64_t words, array **out) {
    queue_request q;
    queue_request_init(&q, op);
    q.node.compute = dt;
    q.node.nscalars = 2;
    q.scalars[0] = r->seed;
    q.scalars[1] = r->offset;
    if (r->from) {
        q.node.compute = DT_I64;
        queue_input(&q, r->from);
        queue_view_broadcast(&q.node.in[0], r->from, shape, ndim);
    }
    queue_output_new(&q, dt, shape, ndim);
    SIMT_TRY(queue_add(&q, out));
    r->offset += (words + 3) / 4 * 4;
    return SIMT_OK;
}

/* out = made * factor + shift, taking `made`. */
static simt_status scale(array *made, double factor, double shift, array **out) {
    array *scaled = NULL;
    simt_status status = SIMT_OK;
    operand in[2] = {operand_array(made), operand_float(factor)};
    if (factor != 1) {
        status = array_elementwise(OP_MULTIPLY, in, 2, &(op_options){0}, &scaled);
        array_unref(made);
        made = scaled;
    }
    if (status == SIMT_OK && shift != 0) {
        in[0] = operand_array(made);
        in[1] = operand_float(shift);
        status = array_elementwise(OP_ADD, in, 2, &(op_options){0}, &scaled);
        array_unref(made);
        made = scaled;
    }
    if (status == SIMT_OK) *out = made;
    return status;
}

static simt_status check(dtype dt, const int64_t *shape, int ndim, int64_t *size) {
    SIMT_TRY(array_context_init());
    return array_check_shape(shape, ndim, dt, size);
}

/* Normal numbers come in pairs: one more is counted, for an odd number of elements. */
static simt_status real(random_state *r, array_op op, dtype dt, double factor, double shift,
                        const int64_t *shape, int ndim, array **out) {
    int64_t size;
    SIMT_TRY(check(dt, shape, ndim, &size));
    if (size == 0) return array_empty(dt, shape, ndim, out);
    array *made;
    uint64_t numbers = (uint64_t)size + (op == OP_RANDOM_NORMAL ? 1 : 0);
    SIMT_TRY(random_node(r, op, dt, shape, ndim, numbers * (dt == DT_F64 ? 2 : 1), &made));
    return scale(made, factor, shift, out);
}

simt_status array_random_uniform(random_state *r, dtype dt, double low, double high,
                                 const int64_t *shape, int ndim, array **out) {
    return real(r, OP_RANDOM_UNIFORM, dt, high - low, low, shape, ndim, out);
}

simt_status array_random_normal(random_state *r, dtype dt, double mean, double std,
                                const int64_t *shape, int ndim, array **out) {
    return real(r, OP_RANDOM_NORMAL, dt, std, mean, shape, ndim, out);
}

/* ---- integers ---- */

static simt_status step(array_op op, array *taken, operand b, dtype dt, array **out) {
    operand in[2] = {operand_array(taken), b};
    simt_status status =
        array_elementwise(op, in, 2, &(op_options){.has_dtype = true, .dt = dt}, out);
    array_unref(taken);
    return status;
}

static operand unsigned_operand(uint64_t v) {
    return (operand){.s = v > INT64_MAX ? (scalar){.kind = 'U', .u = v}
                                        : (scalar){.kind = 'I', .i = (int64_t)v},
                     .weak = true};
}

/* A word mapped to [0, range): multiply and keep the high half; ranges above 32 bits by remainder. */
static simt_status bounded(random_state *r, uint64_t range, const int64_t *shape, int ndim,
                           int64_t size, array **out) {
    array *word, *wide, *scaled;
    SIMT_TRY(random_node(r, OP_RANDOM_BITS, DT_U32, shape, ndim, (uint64_t)size, &word));
    simt_status status = array_astype(word, DT_U64, &wide);
    array_unref(word);
    if (status != SIMT_OK) return status;
    if (range <= (uint64_t)1 << 32 && range != 0) {
        SIMT_TRY(step(OP_MULTIPLY, wide, unsigned_operand(range), DT_U64, &scaled));
        return step(OP_RIGHT_SHIFT, scaled, operand_int(32), DT_U64, out);
    }
    status = random_node(r, OP_RANDOM_BITS, DT_U32, shape, ndim, (uint64_t)size, &word);
    if (status != SIMT_OK) {
        array_unref(wide);
        return status;
    }
    status = step(OP_LEFT_SHIFT, wide, operand_int(32), DT_U64, &scaled);
    if (status == SIMT_OK) status = step(OP_BITWISE_OR, scaled, operand_array(word), DT_U64, out);
    array_unref(word);
    if (status != SIMT_OK || range == 0) return status; /* 0 stands for 2**64 */
    return step(OP_REMAINDER, *out, unsigned_operand(range), DT_U64, out);
}

simt_status array_random_integers(random_state *r, dtype dt, int64_t low, int64_t high,
                                  const int64_t *shape, int ndim, array **out) {
    int64_t size;
    if (low >= high) return status_fail(SIMT_ERR_VALUE, "low >= high");
    SIMT_TRY(check(dt, shape, ndim, &size));
    if (size == 0) return array_empty(dt, shape, ndim, out);
    array *made, *whole;
    SIMT_TRY(bounded(r, (uint64_t)high - (uint64_t)low, shape, ndim, size, &made));
    simt_status status = array_astype(made, DT_I64, &whole);
    array_unref(made);
    if (status != SIMT_OK) return status;
    if (low != 0) {
        SIMT_TRY(step(OP_ADD, whole, operand_int(low), DT_I64, &made));
        whole = made;
    }
    if (dt == DT_I64) {
        *out = whole;
        return SIMT_OK;
    }
    status = array_astype(whole, dt, out);
    array_unref(whole);
    return status;
}

/* ---- permutations ---- */

/* One block of Philox 4x32-10 (Salmon and others 2011). */
static void philox(uint64_t seed, uint64_t counter, uint32_t words[4]) {
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(words, c, sizeof c);
}

/* Fisher and Yates, at once: the order of the exchanges is its meaning. */
simt_status array_random_permutation(random_state *r, int64_t n, array **out) {
    if (n < 0) return status_fail(SIMT_ERR_VALUE, "negative dimensions are not allowed");
    scalar seed = {.kind = 'I', .i = (int64_t)r->seed};
    if (r->from) SIMT_TRY(array_item(r->from, &seed));
    SIMT_TRY(array_empty(DT_I64, &n, 1, out));
    array_window w;
    simt_status status = array_open(*out, ARRAY_FILL, &w);
    if (status != SIMT_OK) return array_drop(out), status;
    int64_t *p = (int64_t *)(void *)w.data;
    for (int64_t i = 0; i < n; i++) p[i] = i;
    uint64_t block = (r->offset + 3) / 4;
    uint32_t words[4];
    int left = 0;
    for (int64_t i = n - 1; i > 0; i--) {
        if (left < 2) {
            philox((uint64_t)seed.i, block++, words);
            left = 4;
        }
        uint64_t word = (uint64_t)words[left - 1] << 32 | words[left - 2];
        left -= 2;
        int64_t j = (int64_t)(((__uint128_t)word * (uint64_t)(i + 1)) >> 64);
        int64_t swap = p[i];
        p[i] = p[j];
        p[j] = swap;
    }
    r->offset = block * 4;
    status = array_close(&w);
    if (status != SIMT_OK) array_drop(out);
    return status;
}
