/* The IDX format of MNIST and its kin (Y. LeCun, "The MNIST database"): untrusted input. */
#ifndef SIMT_ARRAY_IDX_H
#define SIMT_ARRAY_IDX_H

#include "array/array.h"

/* The longest header: 4 bytes and 4 per dimension. */
#define IDX_HEADER_MAX (4 + 4 * ARRAY_MAX_NDIM)

/* `name` is for the errors. Both: SIMT_ERR_VALUE when it is not an IDX file or its header is cut short
 * or declares more than can be. */

/* The bytes of the whole file, as its first bytes (up to IDX_HEADER_MAX are looked at) declare. */
simt_status array_idx_bytes(const unsigned char *data, size_t bytes, const char *name,
                            size_t *total);
/* A new array with the file's contents (big-endian numbers become native); SIMT_ERR_VALUE also when
 * there are fewer or more bytes than declared. */
simt_status array_from_idx(const unsigned char *data, size_t bytes, const char *name, array **out);
/* The same for a file of `bytes` bytes of which the first are in `head`, and which is read on from there. */
simt_status array_from_idx_file(const unsigned char *head, size_t head_bytes, int file,
                                size_t bytes, const char *name, array **out);

#endif
