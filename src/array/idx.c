/* IDX: two zero bytes, a type byte, a byte with the number of dimensions, the sizes as 32-bit
 * big-endian numbers, then the elements in C order, big-endian. */
#include "array/idx.h"

#include <string.h>

static bool idx_dtype(unsigned char code, dtype *out) {
    switch (code) {
    case 0x08: *out = DT_U8; return true;
    case 0x09: *out = DT_I8; return true;
    case 0x0b: *out = DT_I16; return true;
    case 0x0c: *out = DT_I32; return true;
    case 0x0d: *out = DT_F32; return true;
    case 0x0e: *out = DT_F64; return true;
    default: return false;
    }
}

static void copy_big_endian(unsigned char *to, const unsigned char *from, size_t count,
                            size_t item) {
    if (item == 1) {
        memcpy(to, from, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < item; k++) to[i * item + k] = from[i * item + item - 1 - k];
}

simt_status array_from_idx(const unsigned char *data, size_t bytes, const char *name, array **out) {
    *out = NULL;
    if (bytes < 4 || data[0] || data[1])
        return status_fail(SIMT_ERR_VALUE,
                           "%s is not an IDX file: it does not start with two zero bytes", name);
    dtype dt;
    if (!idx_dtype(data[2], &dt))
        return status_fail(SIMT_ERR_VALUE, "%s is not an IDX file: unknown element type 0x%02x",
                           name, data[2]);
    int ndim = data[3];
    if (ndim < 1 || ndim > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_VALUE, "%s: an IDX file of %d dimensions is not supported",
                           name, ndim);
    size_t header = 4 + 4 * (size_t)ndim;
    if (bytes < header)
        return status_fail(SIMT_ERR_VALUE, "%s is cut short: %zu bytes, its header alone has %zu",
                           name, bytes, header);
    int64_t shape[ARRAY_MAX_NDIM], size;
    for (int d = 0; d < ndim; d++) {
        const unsigned char *p = data + 4 + 4 * d;
        shape[d] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    }
    SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    size_t item = dtype_bytes(dt), have = bytes - header;
    if ((uint64_t)size != have / item || have % item)
        return status_fail(
            SIMT_ERR_VALUE,
            "%s is %s: its header declares %lld elements of %zu bytes, but %zu bytes follow", name,
            have < (uint64_t)size * item ? "cut short" : "too long", (long long)size, item, have);
    SIMT_TRY(array_empty(dt, shape, ndim, out));
    copy_big_endian(array_data(*out), data + header, (size_t)size, item);
    return SIMT_OK;
}
