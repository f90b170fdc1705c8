"""Parts of tensors: what indices, diagonals, triangles name."""

import builtins
import math as _math

from simt._core import torch as C
from simt.keras_backend.core import (
    convert_to_tensor,
)
from simt.keras_backend.numpy.common import _at_least, _axes, _full
from simt.keras_backend.numpy.reductions import sum
from simt.keras_backend.numpy.shapes import moveaxis
from simt.torch import _functions as F


def _indices(indices, size):
    """Indices as int64; negative ones count from the end."""
    indices = convert_to_tensor(indices)
    indices = indices.to(C.int64)
    return C.where(indices < 0, indices + size, indices)


def take(x, indices, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _axes(axis, x.dim())[0]
    indices = _indices(indices, x.shape[axis])
    out = x.index_select(axis, indices.reshape(-1))
    return out.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def take_along_axis(x, indices, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return x.reshape(-1).gather(0, _indices(indices, x.numel()).reshape(-1))
    axis = _axes(axis, x.dim())[0]
    indices = _indices(indices, x.shape[axis])
    if indices.dim() != x.dim():
        raise ValueError(
            "take_along_axis needs as many dimensions in `indices` as in `x`. "
            f"Received: x.shape={tuple(x.shape)}, indices.shape={tuple(indices.shape)}"
        )
    shape = list(F.broadcast_shapes(_but(x.shape, axis), _but(indices.shape, axis)))
    shape[axis] = x.shape[axis]
    x = x.expand(shape)
    shape[axis] = indices.shape[axis]
    return x.gather(axis, indices.expand(shape))


def _but(shape, axis):
    return [1 if i == axis else n for i, n in enumerate(shape)]


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    rest, out = indices.to(C.int64), []
    total = _math.prod(shape)
    rest = C.where(rest < 0, rest + total, rest)
    for n in reversed(shape):
        out.append((rest % n).to(indices.dtype))
        rest = C.floor_divide(rest, n)
    return tuple(reversed(out))


def diag(x, k=0):
    return F.diag(convert_to_tensor(x), k)


def diagflat(x, k=0):
    return F.diag(convert_to_tensor(x).reshape(-1), k)


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    n = builtins.max(
        builtins.min(rows + builtins.min(offset, 0), columns - builtins.max(offset, 0)), 0
    )
    at = C._arange(0, n, 1, C.int64) if n else _full((0,), 0, C.int64)
    flat = x.reshape(*x.shape[:-2], rows * columns)
    start = offset if offset >= 0 else -offset * columns
    return flat.index_select(-1, at * (columns + 1) + start)


def trace(x, offset=0, axis1=0, axis2=1):
    return sum(diagonal(x, offset, axis1, axis2), -1)


def tril(x, k=0):
    return _triangle(x, k, True)


def triu(x, k=0):
    return _triangle(x, k, False)


def _triangle(x, k, lower):
    x = convert_to_tensor(x)
    return (F.tril if lower else F.triu)(_at_least(x, 2), k)


def diff(a, n=1, axis=-1):
    a = convert_to_tensor(a)
    for _ in range(n):
        m = a.shape[axis]
        high, low = a.narrow(axis, 1, m - 1), a.narrow(axis, 0, m - 1)
        a = C.ne(high, low) if a.dtype is C.bool else high - low
    return a
