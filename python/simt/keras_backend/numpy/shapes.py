"""The same elements in other shapes: moved axes, joined and cut tensors, borders."""

import builtins

import numpy as np
from keras.src.backend.config import floatx

from simt._core import torch as C
from simt.keras_backend.core import (
    FLOATS,
    convert_to_tensor,
    native,
    result_dtype,
)
from simt.keras_backend.numpy.common import _at_least, _axes, _host, _shape
from simt.keras_backend.numpy.creation import full
from simt.torch import _functions as F


def ndim(x):
    return convert_to_tensor(x).dim()


def size(x):
    return convert_to_tensor(x).numel()


def reshape(x, newshape):
    x = convert_to_tensor(x)
    return x.reshape(_shape(newshape))


def ravel(x):
    return convert_to_tensor(x).reshape(-1)


def transpose(x, axes=None):
    x = convert_to_tensor(x)
    if axes is None:
        axes = reversed(range(x.dim()))
    return x.permute(builtins.list(axes)) if x.dim() else x


def swapaxes(x, axis1, axis2):
    return convert_to_tensor(x).transpose(axis1, axis2)


def moveaxis(x, source, destination):
    return F.movedim(convert_to_tensor(x), source, destination)


def expand_dims(x, axis):
    x = convert_to_tensor(x)
    axis = (axis,) if isinstance(axis, int) else tuple(axis)
    places = _axes(axis, x.dim() + len(axis))
    for a in builtins.sorted(places):
        x = x.unsqueeze(a)
    return x


def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return x.squeeze()
    axes = _axes(axis, x.dim())
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(
                f"Cannot squeeze axis={a}, because the dimension is not 1. "
                f"Received: shape={tuple(x.shape)}"
            )
    return x.reshape([n for i, n in enumerate(x.shape) if i not in axes])


def broadcast_to(x, shape):
    return convert_to_tensor(x).expand(_shape(shape))


def _same_dtype(xs):
    xs = [convert_to_tensor(x) for x in xs]
    kinds = {x.dtype for x in xs}
    if len(kinds) > 1:
        dtype = result_dtype(*kinds)
        xs = [x.to(dtype) for x in xs]
    return xs


def concatenate(xs, axis=0):
    xs = _same_dtype(xs)
    if axis is None:
        return C.cat([x.reshape(-1) for x in xs], 0)
    return C.cat(xs, axis)


def stack(x, axis=0):
    return C.stack(_same_dtype(x), axis)


def append(x1, x2, axis=None):
    return concatenate([x1, x2], axis)


def vstack(xs):
    return C.cat([_at_least(x, 2) for x in _same_dtype(xs)], 0)


def hstack(xs):
    xs = [_at_least(x, 1) for x in _same_dtype(xs)]
    return C.cat(xs, 0 if xs[0].dim() == 1 else 1)


def dstack(xs):
    def deep(x):
        x = _at_least(x, 2)
        return x.unsqueeze(-1) if x.dim() == 2 else x

    return C.cat([deep(x) for x in _same_dtype(xs)], 2)


def split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if isinstance(indices_or_sections, int):
        n = x.shape[axis]
        if n % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        return _cut(x, [n // indices_or_sections * i for i in range(1, indices_or_sections)], axis)
    return _cut(x, indices_or_sections, axis)


def array_split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, int):
        return _cut(x, indices_or_sections, axis)
    each, more = divmod(x.shape[axis], indices_or_sections)
    ends = [each * i + builtins.min(i, more) for i in range(1, indices_or_sections)]
    return _cut(x, ends, axis)


def _cut(x, at, axis):
    n = x.shape[axis]
    at = [builtins.int(i) for i in (at.tolist() if hasattr(at, "tolist") else at)]
    ends = [builtins.max(builtins.min(i + n if i < 0 else i, n), 0) for i in at]
    starts, ends = [0, *ends], [*ends, n]
    return [
        x.narrow(axis, builtins.min(s, n), builtins.max(e - s, 0))
        for s, e in zip(starts, ends, strict=True)
    ]


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if x.dim() == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def flip(x, axis=None):
    x = convert_to_tensor(x)
    return C.flip(x, tuple(_axes(axis, x.dim()))) if x.dim() else x


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if array.dim() < 2:
        raise ValueError(
            f"Input array must have at least 2 dimensions. Received: array.ndim={array.dim()}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    a, b = _axes(axes, array.dim())
    for _ in range(k % 4):
        array = C.flip(array, (b,)).transpose(a, b)
    return array


def roll(x, shift, axis=None):
    x = convert_to_tensor(x)
    if axis is None or isinstance(axis, int):
        if axis is None and not isinstance(shift, int):
            shift = builtins.sum(shift)
        return F.roll(x, shift, axis)
    shift = (shift,) * len(axis) if isinstance(shift, int) else shift
    return F.roll(x, tuple(shift), tuple(axis))


def repeat(x, repeats, axis=None):
    x = convert_to_tensor(x)
    if not isinstance(repeats, int):
        repeats = convert_to_tensor(repeats, "int64")
        repeats = repeats.item() if repeats.numel() == 1 else repeats
    return F.repeat_interleave(x, repeats, axis)


def tile(x, repeats):
    return F.tile(convert_to_tensor(x), _shape(repeats))


def pad(x, pad_width, mode="constant", constant_values=None):
    x = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be "
            "provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    widths = np.broadcast_to(np.asarray(_host(pad_width)), (x.dim(), 2)).tolist()
    if mode == "constant":
        return _pad_constant(x, widths, 0 if constant_values is None else constant_values)
    for dim, (before, after) in enumerate(widths):
        if before or after:
            index = np.pad(np.arange(x.shape[dim]), (before, after), mode=mode)
            x = x.index_select(dim, convert_to_tensor(index))
    return x


def _pad_constant(x, widths, value):
    for dim, pair in enumerate(widths):
        if builtins.any(n < 0 for n in pair):
            raise ValueError("index can't contain negative values")
        parts = []
        for n in pair:
            shape = builtins.list(x.shape)
            shape[dim] = n
            parts.append(full(shape, value, x.dtype) if n else None)
        if pair != [0, 0]:
            x = C.cat([p for p in (parts[0], x, parts[1]) if p is not None], dim)
    return x


def view(x, dtype=None):
    x = convert_to_tensor(x)
    dtype = native(dtype or floatx())
    data, size = x._to_bytes(), F.finfo(dtype).bits // 8 if dtype in FLOATS else None
    size = size or (1 if dtype is C.bool else F.iinfo(dtype).bits // 8)
    if x.dim() == 0:
        return C._from_bytes(data, dtype, ())
    return C._from_bytes(data, dtype, (*x.shape[:-1], x.shape[-1] * x.element_size() // size))
