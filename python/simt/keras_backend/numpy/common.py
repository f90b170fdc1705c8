"""What the modules of this package share: operands, dtypes, axes, shapes."""

import builtins

import numpy as np
from keras.src.backend.common import KerasVariable
from keras.src.backend.common import dtypes as keras_dtypes
from keras.src.backend.config import floatx

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend.core import (
    FLOATS,
    convert_to_numpy,
    convert_to_tensor,
    native,
    result_dtype,
)

Tensor = C.Tensor
_INTS = frozenset(core.DTYPES[n] for n in keras_dtypes.INT_TYPES)
_SMALL = {C.bool: C.int32, C.int8: C.int32, C.int16: C.int32, C.uint8: C.uint32, C.uint16: C.uint32}


def _float(x):
    """x as a tensor of floats; integers become floatx."""
    x = convert_to_tensor(x)
    return x if x.dtype in FLOATS else x.to(native(floatx()))


def _host(x):
    return convert_to_numpy(x) if isinstance(x, (Tensor, KerasVariable)) else x


def _like_float(dtype):
    """The float dtype that stands for an integer one where NumPy computes in float64."""
    if dtype in FLOATS:
        return dtype
    return C.float64 if dtype in (C.int64, C.uint64) else native(floatx())


def _full(shape, value, dtype):
    shape = (shape,) if isinstance(shape, int) else tuple(builtins.int(n) for n in shape)
    return C._full("full", shape, value, dtype, "cpu", False)


def _axes(axis, ndim):
    """axis as a list of non-negative numbers; None is all."""
    if axis is None:
        return builtins.list(range(ndim))
    axis = (axis,) if isinstance(axis, int) or hasattr(axis, "__index__") else axis
    out = []
    for a in axis:
        a = builtins.int(a)
        if not -ndim <= a < ndim:
            raise ValueError(f"axis {a} is out of bounds for array of dimension {ndim}")
        out.append(a % ndim if ndim else 0)
    return out


def _scalar(value, dtype):
    return C.tensor(value, dtype=dtype) if not isinstance(value, Tensor) else value.to(dtype)


def _operands(x1, x2, *more):
    """Both as tensors of their common dtype; Python's numbers are weak."""
    if isinstance(x1, KerasVariable):
        x1 = x1.value
    if isinstance(x2, KerasVariable):
        x2 = x2.value
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype:
        if not more or x1.dtype in FLOATS:
            return x1, x2
    x1, k1 = _kind(x1)
    x2, k2 = _kind(x2)
    dtype = result_dtype(k1, k2, *more)
    return _as(x1, dtype), _as(x2, dtype)


def _kind(x):
    if isinstance(x, Tensor):
        return x, x.dtype
    if type(x) in (int, float, bool):
        return x, type(x)
    if isinstance(x, (int, float)) and not isinstance(x, np.generic):
        return x, float if isinstance(x, float) else int
    x = convert_to_tensor(x)
    return x, x.dtype


def _as(x, dtype):
    if isinstance(x, Tensor):
        return x if x.dtype is dtype else x.to(dtype)
    return C.tensor(x, dtype=dtype)


def _shape(shape):
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    if isinstance(shape, int) or hasattr(shape, "__index__"):
        return (builtins.int(shape),)
    return tuple(builtins.int(n) for n in shape)


def _at_least(x, n):
    return x.reshape([1] * (n - x.dim()) + builtins.list(x.shape)) if x.dim() < n else x
