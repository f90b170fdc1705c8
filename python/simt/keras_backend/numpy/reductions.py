"""Sums, means, extrema and their positions along axes; running sums; the same without NaN."""

import math as _math

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend.core import FLOATS, convert_to_tensor, native, result_dtype
from simt.keras_backend.numpy.common import _SMALL, _axes, _float, _full, _scalar
from simt.keras_backend.numpy.elementwise import isclose
from simt.torch import _functions as F


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return all(isclose(x1, x2, rtol, atol, equal_nan))


# ---- reductions


def _reduce(op, x, axis, keepdims):
    if axis == () or (axis is not None and not isinstance(axis, int) and len(tuple(axis)) == 0):
        return x
    return op(x, _axes(axis, x.dim()), keepdim=keepdims) if x.dim() else op(x)


def sum(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = _SMALL.get(x.dtype, x.dtype)
    return _reduce(C.sum, x.to(dtype), axis, keepdims).to(dtype)


def mean(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = x.dtype if x.dtype in FLOATS else result_dtype(x.dtype, "float32")
    return _reduce(C.mean, x.to(dtype), axis, keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x)
    dtype = _SMALL.get(x.dtype, x.dtype) if dtype is None else native(dtype)
    return _reduce(C.prod, x.to(dtype), axis, keepdims).to(dtype)


def _extremum(op, combine):
    def operation(x, axis=None, keepdims=False, initial=None):
        x = convert_to_tensor(x)
        if initial is not None and 0 in x.shape:
            shape = [1 if i in _axes(axis, x.dim()) else n for i, n in enumerate(x.shape)]
            out = _full(shape, initial, x.dtype)
            return out if keepdims else out.squeeze(tuple(_axes(axis, x.dim())))
        out = _reduce(op, x, axis, keepdims)
        return out if initial is None else combine(out, _scalar(initial, x.dtype))

    return operation


max = _extremum(C.amax, C.maximum)
min = _extremum(C.amin, C.minimum)


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def ptp(x, axis=None, keepdims=False):
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def all(x, axis=None, keepdims=False):
    return _reduce(C.all, convert_to_tensor(x, "bool"), axis, keepdims)


def any(x, axis=None, keepdims=False):
    return _reduce(C.any, convert_to_tensor(x, "bool"), axis, keepdims)


def count_nonzero(x, axis=None):
    return _reduce(C.sum, (convert_to_tensor(x) != 0).to(C.int32), axis, False).to(C.int32)


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    result = result_dtype(x.dtype, float)
    x = x.to(result_dtype(x.dtype, "float32"))
    d = x - _reduce(C.mean, x, axis, True)
    return _reduce(C.mean, d * d, axis, keepdims).to(result)


def std(x, axis=None, keepdims=False):
    return C.sqrt(var(_float(x), axis, keepdims))


def _position(op):
    def operation(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype is C.bool:
            x = x.to(C.int32)
        if x.dtype in FLOATS and x.dim():
            tiny = -F.finfo(C.float32).tiny
            x = x.to(result_dtype(x.dtype, "float32"))
            x = C.where(C.logical_and(x == 0, C.signbit(x)), _scalar(tiny, x.dtype), x)
        if axis is None:
            out = op(x.reshape(-1))
            return (out.reshape([1] * x.dim()) if keepdims else out).to(C.int32)
        return op(x, _axes(axis, x.dim())[0], keepdim=keepdims).to(C.int32)

    return operation


argmax = _position(C.argmax)
argmin = _position(C.argmin)


def average(x, axis=None, weights=None):
    x = convert_to_tensor(x)
    if weights is None:
        return mean(x.to(result_dtype(x.dtype, float)), axis)
    weights = convert_to_tensor(weights)
    dtype = result_dtype(x.dtype, weights.dtype, float)
    x, weights = x.to(dtype), weights.to(dtype)
    if weights.dim() == 1 and x.dim() > 1 and axis is not None:
        form = [1] * x.dim()
        form[_axes(axis, x.dim())[0]] = -1
        weights = weights.reshape(form)
    weights = weights.expand(x.shape)
    return sum(x * weights, axis) / sum(weights, axis)


def _cumulative(op):
    def operation(x, axis=None, dtype=None):
        x = convert_to_tensor(x)
        dtype = x.dtype if dtype is None else native(dtype)
        x = x.to(C.int32 if dtype is C.bool else dtype)
        if axis is None:
            x, axis = x.reshape(-1), 0
        return op(x, _axes(axis, x.dim())[0]).to(x.dtype) if x.dim() else op(x.reshape(1), 0)

    return operation


cumsum = _cumulative(C.cumsum)


def _products(x, axis):
    return core.associative_scan(C.mul, x, axis=axis)


cumprod = _cumulative(_products)


# ---- the same without NaN


def _without_nan(x, value):
    x = convert_to_tensor(x)
    return C.where(C.isnan(x), _scalar(value, x.dtype), x) if x.dtype in FLOATS else x


def nansum(x, axis=None, keepdims=False):
    return sum(_without_nan(x, 0), axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(_without_nan(x, 1), axis, keepdims)


def nancumsum(x, axis=None, dtype=None):
    return cumsum(_without_nan(x, 0), axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(_without_nan(x, 1), axis, dtype)


def nanmean(x, axis=None, keepdims=False):
    x = _float(x)
    count = sum((~C.isnan(x)).to(x.dtype), axis, keepdims)
    return nansum(x, axis, keepdims) / count


def nanvar(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    result = result_dtype(x.dtype, float)
    x = x.to(result_dtype(x.dtype, "float32"))
    return nanmean(C.square(x - nanmean(x, axis, True)), axis, keepdims).to(result)


def nanstd(x, axis=None, keepdims=False):
    return C.sqrt(nanvar(_float(x), axis, keepdims))


def _nan_extremum(op, neutral):
    def operation(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype not in FLOATS:
            return op(x, axis, keepdims)
        out = op(_without_nan(x, neutral), axis, keepdims)
        return C.where(all(C.isnan(x), axis, keepdims), _scalar(_math.nan, x.dtype), out)

    return operation


nanmax = _nan_extremum(max, -_math.inf)
nanmin = _nan_extremum(min, _math.inf)


def _nan_position(op, neutral):
    def operation(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype not in FLOATS:
            return op(x, axis, keepdims)
        out = op(_without_nan(x, neutral), axis, keepdims)
        return C.where(all(C.isnan(x), axis, keepdims), _scalar(-1, C.int32), out)

    return operation


nanargmax = _nan_position(argmax, -_math.inf)
nanargmin = _nan_position(argmin, _math.inf)
