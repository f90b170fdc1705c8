/* IDX: two zero bytes, a type byte, a byte with the number of dimensions, the sizes as 32-bit
 * big-endian numbers, then the elements in C order, big-endian. */
#include "array/idx.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "array/internal.h"

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

/* From big-endian; `to` may be `from`. */
static void to_native(unsigned char *to, const unsigned char *from, size_t count, size_t item) {
    if (item == 1) {
        if (to != from) memcpy(to, from, count);
        return;
    }
    for (size_t i = 0; i < count * item; i += item) {
        unsigned char element[8];
        memcpy(element, from + i, item);
        for (size_t k = 0; k < item; k++) to[i + k] = element[item - 1 - k];
    }
}

typedef struct idx_header {
    dtype dt;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM], size;
    size_t header, total; /* bytes of the header, of the file */
} idx_header;

static simt_status read_header(const unsigned char *data, size_t bytes, const char *name,
                               idx_header *h) {
    if (bytes < 4)
        return status_fail(SIMT_ERR_VALUE, "%s is not an IDX file: it has only %zu bytes", name,
                           bytes);
    if (data[0] || data[1])
        return status_fail(SIMT_ERR_VALUE,
                           "%s is not an IDX file: it does not start with two zero "
                           "bytes but 0x%02x%02x",
                           name, data[0], data[1]);
    if (!idx_dtype(data[2], &h->dt))
        return status_fail(SIMT_ERR_VALUE, "%s is not an IDX file: unknown element type 0x%02x",
                           name, data[2]);
    h->ndim = data[3];
    if (h->ndim < 1 || h->ndim > ARRAY_MAX_NDIM)
        return status_fail(SIMT_ERR_VALUE, "%s: an IDX file of %d dimensions is not supported",
                           name, h->ndim);
    h->header = 4 + 4 * (size_t)h->ndim;
    if (bytes < h->header)
        return status_fail(SIMT_ERR_VALUE, "%s is cut short: %zu bytes, its header alone has %zu",
                           name, bytes, h->header);
    for (int d = 0; d < h->ndim; d++) {
        const unsigned char *p = data + 4 + 4 * d;
        h->shape[d] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    }
    char text[200];
    if (array_check_shape(h->shape, h->ndim, h->dt, &h->size) ||
        __builtin_add_overflow((size_t)h->size * dtype_bytes(h->dt), h->header, &h->total))
        return status_fail(SIMT_ERR_VALUE, "%s is damaged: its header declares the shape %s", name,
                           shape_print(h->shape, h->ndim, text, sizeof text));
    return SIMT_OK;
}

simt_status array_idx_bytes(const unsigned char *data, size_t bytes, const char *name,
                            size_t *total) {
    idx_header h;
    SIMT_TRY(read_header(data, bytes, name, &h));
    *total = h.total;
    return SIMT_OK;
}

static simt_status check_length(const idx_header *h, size_t bytes, const char *name) {
    char text[200];
    if (bytes == h->total) return SIMT_OK;
    return status_fail(SIMT_ERR_VALUE,
                       "%s is %s: its header declares %s of %s (%zu bytes in all), it has %zu",
                       name, bytes < h->total ? "cut short" : "too long",
                       shape_print(h->shape, h->ndim, text, sizeof text), dtype_table[h->dt].name,
                       h->total, bytes);
}

simt_status array_from_idx(const unsigned char *data, size_t bytes, const char *name, array **out) {
    *out = NULL;
    idx_header h;
    SIMT_TRY(read_header(data, bytes, name, &h));
    SIMT_TRY(check_length(&h, bytes, name));
    array_window w;
    SIMT_TRY(array_empty(h.dt, h.shape, h.ndim, out));
    simt_status status = array_open(*out, ARRAY_FILL, &w);
    if (status == SIMT_OK) {
        to_native((unsigned char *)w.data, data + h.header, (size_t)h.size, dtype_bytes(h.dt));
        status = array_close(&w);
    }
    if (status == SIMT_OK) return SIMT_OK;
    array_drop(out);
    return status;
}

static simt_status read_rest(int file, unsigned char *to, size_t bytes, const char *name) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(file, to + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return status_fail(SIMT_ERR_VALUE, "%s is cut short: %zu bytes could not be read: %s",
                               name, bytes - done, n < 0 ? strerror(errno) : "the file ends");
        done += (size_t)n;
    }
    return SIMT_OK;
}

static simt_status fill_from_file(array_window *w, const idx_header *h, const unsigned char *head,
                                  size_t head_bytes, int file, const char *name) {
    unsigned char *data = (unsigned char *)w->data;
    size_t there = head_bytes - h->header;
    memcpy(data, head + h->header, there);
    simt_status status = read_rest(file, data + there, h->total - head_bytes, name);
    if (status != SIMT_OK) return array_discard(w), status;
    to_native(data, data, (size_t)h->size, dtype_bytes(h->dt));
    return array_close(w);
}

simt_status array_from_idx_file(const unsigned char *head, size_t head_bytes, int file,
                                size_t bytes, const char *name, array **out) {
    *out = NULL;
    if (head_bytes >= bytes) return array_from_idx(head, bytes, name, out);
    idx_header h;
    array *a;
    SIMT_TRY(read_header(head, head_bytes, name, &h));
    SIMT_TRY(check_length(&h, bytes, name));
    SIMT_TRY(array_empty(h.dt, h.shape, h.ndim, &a));
    array_window w;
    simt_status status = array_open(a, ARRAY_FILL, &w);
    if (status == SIMT_OK) status = fill_from_file(&w, &h, head, head_bytes, file, name);
    if (status == SIMT_OK) return *out = a, SIMT_OK;
    array_unref(a);
    return status;
}
