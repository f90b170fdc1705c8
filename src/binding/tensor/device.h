/* Device arguments of tensors: the CPU and meta (array/meta.h). */
#ifndef SIMT_BINDING_TENSOR_DEVICE_H
#define SIMT_BINDING_TENSOR_DEVICE_H

#include "array/meta.h"
#include "binding/tensor/tensor.h"

/* A device argument (none: the default one): the CPU or, where `meta` is not NULL, meta. */
bool tensor_device_arg(PyObject *o, bool *meta);
PyObject *tensor_device_object(const tensor *t); /* new reference */

#endif
