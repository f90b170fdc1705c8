/* Checks of values that wait for the evaluation: a step whose result is 0, or whose failure is that of
 * all that depends on it. */
#include <string.h>

#include "array/internal.h"

simt_status array_check_unit(array *a, array **out) {
    dtype dt = a->dt == DT_F64 ? DT_F64 : DT_F32;
    if (a->size == 0) return array_full(dt, NULL, 0, (scalar){.kind = 'F'}, out);
    array *typed = NULL;
    if (a->dt != dt) SIMT_TRY(array_astype(a, dt, &typed));
    queue_request q;
    queue_request_init(&q, OP_CHECK_UNIT);
    q.node.compute = dt;
    queue_input(&q, typed ? typed : a);
    queue_output_new(&q, dt, NULL, 0);
    simt_status status = queue_add(&q, out);
    array_unref(typed);
    return status;
}

/* Whether n elements, stride bytes apart, are all in [0, 1]; NaN is not. */
static bool row_in_unit(dtype dt, const char *p, int64_t n, int64_t stride) {
#define TYPED(T)                                  \
    {                                             \
        T x;                                      \
        bool good = true;                         \
        for (int64_t i = 0; i < n; i++) {         \
            memcpy(&x, p + i * stride, sizeof x); \
            good &= (x >= (T)0) & (x <= (T)1);    \
        }                                         \
        return good;                              \
    }
    if (dt == DT_F32) TYPED(float)
    TYPED(double)
#undef TYPED
}

simt_status call_check_unit(const call_args *c) {
    const call_view *a = &c->in[0];
    memset(c->out.data, 0, dtype_bytes(c->out.dt));
    int64_t at[ARRAY_MAX_NDIM] = {0};
    int last = a->ndim - 1;
    for (;;) {
        const char *row = a->data;
        for (int d = 0; d < last; d++) row += at[d] * a->strides[d];
        bool good = last < 0 ? row_in_unit(a->dt, row, 1, 0)
                             : row_in_unit(a->dt, row, a->shape[last], a->strides[last]);
        if (!good)
            return status_fail(SIMT_ERR_RUNTIME, "all elements of input should be between 0 and 1");
        int d = last - 1;
        while (d >= 0 && ++at[d] == a->shape[d]) at[d--] = 0;
        if (d < 0) return SIMT_OK;
    }
}
