"""tensor[...]: numbers, slices, ..., None, scalar tensors, or a mask of bool; nothing else."""

import numpy as np

from simt._core import torch as C
from simt.tensorflow import errors
from simt.tensorflow._tensor import EagerTensor, convert, is_tensor, shown


def _refused(text):
    return errors.refused("StridedSlice", text, " name: strided_slice/")


def _number(item):
    """An index or a bound of a slice as Python's int; None stays."""
    if item is None or type(item) is int:
        return item
    if is_tensor(item):
        tensor = convert(item)
        if tensor.dim() == 0 and tensor.dtype in (C.int8, C.int16, C.int32, C.int64, C.uint8):
            return int(tensor.item())
    elif isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return int(item)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        f"tf.int32/tf.int64 tensors are valid indices, got {item!r}"
    )


def parse(tensor, key):
    """(key for the tensor's own indexing, [(axis, start, stop, step)] of slices that go back)."""
    items = list(key) if isinstance(key, (tuple, list)) else [key]
    used = sum(1 for i in items if i is not None and i is not Ellipsis)
    rank = tensor.dim()
    if rank == 0 and used:
        raise _refused("Attempting to slice scalar input.")
    if used > rank:
        raise _refused(f"Index out of range using input dim {rank}; input has only {rank} dims")
    made, back, axis, out = [], [], 0, 0
    for item in items:
        if item is None:
            made.append(None)
            out += 1
        elif item is Ellipsis:
            made.append(Ellipsis)
            axis, out = axis + rank - used, out + rank - used
        elif isinstance(item, slice):
            part = _slice(item, tensor.shape[axis], axis)
            if part.step is not None and part.step < 0:
                back.append((out, part))
                part = slice(None)
            made.append(part)
            axis, out = axis + 1, out + 1
        else:
            made.append(_position(_number(item), tensor.shape[axis], axis))
            axis += 1
    return tuple(made), back


def _slice(item, size, axis):
    start, stop, step = _number(item.start), _number(item.stop), _number(item.step)
    if step == 0:
        raise _refused(f"strides[{axis}] must be non-zero")
    return slice(start, stop, step)


def _position(at, size, axis):
    found = at + size if at < 0 else at
    if not 0 <= found < size:
        raise _refused(f"slice index {found} of dimension {axis} out of bounds.")
    return found


def take(tensor, key):
    if isinstance(key, (bool, np.bool_)):
        raise ValueError("mask cannot be scalar.")
    mask = _mask(key)
    if mask is not None:
        return masked(tensor, mask)
    plain, back = parse(tensor, key)
    found = tensor[plain]
    for axis, part in back:
        size = found.shape[axis]
        start, stop, step = part.indices(size)
        flipped = [slice(None)] * axis + [slice(size - 1 - start, size - 1 - stop, -step)]
        found = C.flip(found, (axis,))[tuple(flipped)]
    return found


def _mask(key):
    if isinstance(key, np.ndarray) and key.dtype == bool:
        return convert(key)
    if is_tensor(key):
        tensor = convert(key)
        return tensor if tensor.dtype is C.bool else None
    return None


def masked(tensor, mask):
    rank = mask.dim()
    if not rank:
        raise ValueError("mask cannot be scalar.")
    if tuple(tensor.shape[:rank]) != tuple(mask.shape):
        shapes = [str(tuple(s)) for s in (tensor.shape[:rank], mask.shape)]
        raise ValueError(f"Shapes {shapes[0]} and {shapes[1]} are incompatible")
    return tensor[mask]


EagerTensor.__getitem__ = lambda self, key: shown(take(self._tensor, key))
