/* What arrays of cupy do as numbers (operators.c). */
#ifndef SIMT_BINDING_ARRAY_OPERATORS_H
#define SIMT_BINDING_ARRAY_OPERATORS_H

#include "binding/common/binding.h"

extern PyNumberMethods binding_ndarray_number;
PyObject *binding_ndarray_compare(PyObject *x, PyObject *y, int how);

#endif
