"""Sorting, quantiles, bins, sets."""

import builtins
import math as _math

import numpy as np
from keras.src.backend.config import floatx

from simt._core import torch as C
from simt.keras_backend.core import (
    FLOATS,
    convert_to_tensor,
    native,
    result_dtype,
)
from simt.keras_backend.numpy.common import _axes, _float, _host, _operands, _scalar
from simt.keras_backend.numpy.shapes import moveaxis
from simt.torch import _functions as F


def sort(x, axis=-1):
    x = convert_to_tensor(x)
    if x.dim() == 0:
        return x
    if axis is None:
        x, axis = x.reshape(-1), 0
    return F.sort(x, axis)[0]


def argsort(x, axis=-1):
    x = convert_to_tensor(x)
    if x.dim() == 0:
        return _scalar(0, C.int32)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return C._argsort(x, axis, False).to(C.int32)


def argpartition(x, kth, axis=-1):
    return argsort(x, axis)


def _places(q, n, method):
    """Positions below and above in a sorted row of n, and how far between: tensors of q's shape."""
    at = q * (n - 1)
    if method == "lower":
        low = C.floor(at)
        return low, low, None
    if method == "higher":
        high = C.ceil(at)
        return high, high, None
    if method == "nearest":
        near = C.round(at)
        return near, near, None
    low, high = C.floor(at), C.ceil(at)
    return (
        low,
        high,
        (
            at - low
            if method == "linear"
            else C._full("full", at.shape, 0.5, at.dtype, "cpu", False)
        ),
    )


def quantile(x, q, axis=None, method="linear", keepdims=False):
    x = convert_to_tensor(x)
    result = native(floatx()) if x.dtype is C.int64 else result_dtype(x.dtype, float)
    q = convert_to_tensor(q).to(C.float64)
    x = x.to(C.float64)
    axes = _axes(axis, x.dim())
    rest = [i for i in range(x.dim()) if i not in axes]
    rows = x.permute(rest + axes).reshape([x.shape[i] for i in rest] + [-1])
    n = rows.shape[-1]
    ordered = F.sort(rows, -1)[0]
    low, high, part = _places(q.reshape(-1), n, method)
    below = ordered.index_select(-1, low.to(C.int64))
    if part is None:
        out = below
    else:
        above = ordered.index_select(-1, high.to(C.int64))
        out = C.where(part == 0, below, below + (above - below) * part)
    bad = C.isnan(rows).any(-1, keepdim=True)
    out = C.where(bad, _scalar(_math.nan, C.float64), out)
    out = moveaxis(out, -1, 0).reshape(tuple(q.shape) + tuple(out.shape[:-1]))
    if keepdims:
        kept = [1 if i in axes else x.shape[i] for i in range(x.dim())]
        out = out.reshape(tuple(q.shape) + tuple(kept))
    return out.to(result)


def percentile(x, q, axis=None, method="linear", keepdims=False):
    q = convert_to_tensor(q).to(C.float64) / 100
    x = convert_to_tensor(x)
    return quantile(x, q, axis, method, keepdims).to(result_dtype(x.dtype, float))


def median(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    return quantile(x, 0.5, axis, "linear", keepdims).to(result_dtype(x.dtype, float))


def nanquantile(x, q, axis=None, method="linear", keepdims=False):
    x = convert_to_tensor(x)
    result = result_dtype(x.dtype, float)
    axis = None if axis is None else tuple(_axes(axis, x.dim()))
    made = np.nanquantile(
        _host(x.to(C.float64)), _host(convert_to_tensor(q)), axis, method=method, keepdims=keepdims
    )
    return convert_to_tensor(made, result)


def nanpercentile(x, q, axis=None, method="linear", keepdims=False):
    x = convert_to_tensor(x)
    dtype = x.dtype if x.dtype in FLOATS else native(floatx())
    q = convert_to_tensor(q).to(C.float64) / 100
    return nanquantile(x, q, axis, method, keepdims).to(dtype)


def nanmedian(x, axis=None, keepdims=False):
    if axis == ():
        return _float(x)
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = _operands(sorted_sequence, values)
    if sorted_sequence.dim() != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. "
            "You can use `keras.ops.vectorized_map` "
            "to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={tuple(sorted_sequence.shape)}"
        )
    values, order = values.detach(), sorted_sequence.detach()
    return convert_to_tensor(np.searchsorted(_host(order), _host(values), side=side), "int32")


def digitize(x, bins):
    x, bins = convert_to_tensor(x), convert_to_tensor(bins)
    return convert_to_tensor(np.digitize(_host(x), _host(bins)), "int32")


def bincount(x, weights=None, minlength=0, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with simt backend")
    x = convert_to_tensor(x)
    dtype = C.int32
    if weights is not None:
        weights = convert_to_tensor(weights)
        dtype = result_dtype(x.dtype, weights.dtype)
        weights = _host(weights)
    x = _host(x)
    if x.ndim == 2:
        rows = [
            np.bincount(row, None if weights is None else weights[i], minlength)
            for i, row in enumerate(x)
        ]
        size = builtins.max((len(row) for row in rows), default=0)
        made = np.stack([np.pad(row, (0, size - len(row))) for row in rows])
    else:
        made = np.bincount(x, weights, minlength)
    return convert_to_tensor(made, dtype)


def histogram(x, bins=10, range=None):
    x = convert_to_tensor(x)
    dtype = x.dtype if x.dtype in FLOATS else native(floatx())
    counts, edges = np.histogram(_host(x.to(C.float64)), bins=_host(bins), range=range)
    return convert_to_tensor(counts, "int32"), convert_to_tensor(edges, dtype)


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = _operands(x1, x2)
    found = np.isin(_host(x1), _host(x2), assume_unique=assume_unique, invert=invert)
    return convert_to_tensor(found)


def unique(
    x,
    sorted=True,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    size=None,
    fill_value=None,
):
    x = convert_to_tensor(x)
    made = np.unique(
        _host(x), return_index, return_inverse, return_counts, axis=axis, equal_nan=False
    )
    made = builtins.list(made) if isinstance(made, tuple) else [made]
    kinds = ["values"]
    kinds += [
        k
        for k, w in zip(
            ("index", "inverse", "counts"),
            (return_index, return_inverse, return_counts),
            strict=True,
        )
        if w
    ]
    if size is not None:
        made = [
            part if kind == "inverse" else _to_size(part, kind, axis, size, fill_value)
            for part, kind in zip(made, kinds, strict=True)
        ]
    out = [
        convert_to_tensor(part, x.dtype if kind == "values" else "int32")
        for part, kind in zip(made, kinds, strict=True)
    ]
    return out[0] if len(out) == 1 else tuple(out)


def _to_size(part, kind, axis, size, fill):
    dim = 0 if axis is None or kind != "values" else axis
    part = np.take(part, range(builtins.min(size, part.shape[dim])), dim)
    widths = [(0, 0)] * part.ndim
    widths[dim] = (0, size - part.shape[dim])
    value = {"values": fill or 0, "index": 1, "counts": 0}[kind]
    return np.pad(part, widths, constant_values=value)
