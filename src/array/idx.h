/* The IDX format of MNIST and its kin (Y. LeCun, "The MNIST database"): untrusted input. */
#ifndef SIMT_ARRAY_IDX_H
#define SIMT_ARRAY_IDX_H

#include "array/array.h"

/* A new array with the file's contents (big-endian numbers become native). `name` is for the errors:
 * SIMT_ERR_VALUE when it is not an IDX file, is cut short, or has more than it declares. */
simt_status array_from_idx(const unsigned char *data, size_t bytes, const char *name, array **out);

#endif
