"""Elements of tensors: taken, scattered, sorted, counted."""

import builtins
from collections import namedtuple

import numpy as np

from simt._core import torch as C
from simt.keras_backend import core, nn
from simt.keras_backend import math as kmath
from simt.keras_backend import numpy as knp
from simt.tensorflow import errors
from simt.tensorflow._arrays import not_yet, refused_quietly, sizes
from simt.tensorflow._index import masked, take
from simt.tensorflow._tensor import FLOATS, convert, is_tensor, native


def _places(kernel, indices, attr="Tindices"):
    indices = convert(indices)
    allow_list = "int16, int32, int64"
    if errors.kernel_name(indices.dtype) not in allow_list.split(", "):
        raise errors.not_allowed(kernel, indices.dtype, allow_list, attr)
    return indices


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    params, indices = convert(params), _places("GatherV2", indices)
    axis = batch_dims if axis is None else int(axis)
    if batch_dims:
        return _gather_batches(params, indices, axis % params.dim(), batch_dims % params.dim())
    return knp.take(params, indices, axis)


def _gather_batches(params, indices, axis, batch_dims):
    """The rows of each batch by that batch's indices."""
    if batch_dims == 0:
        return knp.take(params, indices, axis)
    parts = zip(params.unbind(0), indices.unbind(0), strict=True)
    return C.stack([_gather_batches(p, i, axis - 1, batch_dims - 1) for p, i in parts])


def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    params, indices = convert(params), _places("GatherNd", indices)
    if batch_dims:
        parts = zip(params.unbind(0), indices.unbind(0), strict=True)
        return C.stack([gather_nd(p, i, batch_dims - 1) for p, i in parts])
    if indices.shape[-1] == 0:
        return params.expand((*indices.shape[:-1], *params.shape))
    return params[tuple(indices.to(C.int64).unbind(-1))]


def where(condition, x=None, y=None, name=None):
    if x is None:
        return C.stack(list(knp.nonzero(convert(condition))), 1).to(C.int64)
    condition = convert(condition) if is_tensor(condition) else convert(condition, C.bool)
    dtype = next((convert(v).dtype for v in (x, y) if is_tensor(v)), None)
    x = convert(x) if is_tensor(x) else convert(x, dtype)
    y = convert(y) if is_tensor(y) else convert(y, dtype or x.dtype)
    for at, v, wanted in ((0, condition, C.bool), (2, y, x.dtype)):
        if v.dtype is not wanted:
            raise errors.mismatch("SelectV2", at, wanted, v.dtype)
    return C.where(condition, x, y)


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    tensor, mask = convert(tensor), convert(mask)
    if axis:
        return knp.moveaxis(masked(knp.moveaxis(tensor, axis, 0), mask), 0, axis)
    return masked(tensor, mask)


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    indices = convert(indices) if is_tensor(indices) else _indices(indices)
    axis = -1 if axis is None else axis
    values = [v for v in (on_value, off_value) if v is not None]
    dtype = native(dtype) or (convert(values[0]).dtype if values else C.float32)
    made = nn.one_hot(indices, int(depth), axis, core.NAMES[dtype])
    if not values:
        return made
    on = convert(1 if on_value is None else on_value, None if is_tensor(on_value) else dtype)
    off = convert(0 if off_value is None else off_value, None if is_tensor(off_value) else dtype)
    return C.where(made != 0, on, off)


def _indices(x):
    made = convert(x)
    if made.dtype in FLOATS:
        convert(x, C.int64)  # says why not
    return made


def sort(values, axis=-1, direction="ASCENDING", name=None):
    _check_direction(direction)
    made = knp.sort(convert(values), axis)
    return made if direction == "ASCENDING" else C.flip(made, (axis,))


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    _check_direction(direction)
    values = convert(values)
    made = knp.argsort(values if direction == "ASCENDING" else C.neg(values), axis)
    return made.to(C.int32)


def _check_direction(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            "Argument `direction` should be one of ASCENDING, DESCENDING. Received: "
            f"direction={direction}"
        )


TopKV2 = namedtuple("TopKV2", ("values", "indices"))
Unique = namedtuple("Unique", ("y", "idx"))
UniqueWithCounts = namedtuple("UniqueWithCounts", ("y", "idx", "count"))


def top_k(input, k=1, sorted=True, index_type="int32", name=None):
    input, k = convert(input), int(k)
    if input.shape[-1] < k:
        text = f"input must have at least k columns. Had {input.shape[-1]}, needed {k}"
        raise refused_quietly("TopKV2", text)
    values, indices = kmath.top_k(input, k)
    return TopKV2(values, indices.to(native(index_type)))


def _uniques(x):
    """(values in the order in which they come, the place of each element's value, how many)."""
    values = core.convert_to_numpy(convert(x))
    _, first, inverse, count = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return values[first[order]], place[inverse.reshape(-1)], count[order]


def unique(x, out_idx="int32", name=None):
    values, place, _ = _uniques(x)
    return Unique(convert(values), convert(place).to(native(out_idx)))


def unique_with_counts(x, out_idx="int32", name=None):
    values, place, count = _uniques(x)
    dtype = native(out_idx)
    return UniqueWithCounts(convert(values), convert(place).to(dtype), convert(count).to(dtype))


def searchsorted(sorted_sequence, values, side="left", out_type="int32", name=None):
    dtype = native(out_type)
    return knp.searchsorted(convert(sorted_sequence), convert(values), side).to(dtype)


def unravel_index(indices, dims, name=None):
    indices = convert(indices)
    made = np.stack(np.unravel_index(core.convert_to_numpy(indices), sizes(dims)))
    return convert(made).to(indices.dtype)


def dynamic_partition(data, partitions, num_partitions, name=None):
    data, partitions = convert(data), convert(partitions)
    return [masked(data, partitions == i) for i in builtins.range(num_partitions)]


def slice(input_, begin, size, name=None):
    input_, begin, size = convert(input_), sizes(begin), sizes(size)
    key = []
    for at, (start, count, n) in enumerate(zip(begin, size, input_.shape, strict=True)):
        count = n - start if count == -1 else count
        if not 0 <= count <= n - start:
            raise refused_quietly(
                "Slice", f"Expected size[{at}] in [0, {n - start}], but got {count}"
            )
        key.append(builtins.slice(start, start + count))
    return input_[tuple(key)]


def strided_slice(
    input_,
    begin,
    end,
    strides=None,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
    var=None,
    name=None,
):
    if begin_mask or end_mask or ellipsis_mask or new_axis_mask or shrink_axis_mask:
        raise not_yet("tf.strided_slice with masks", "indexing of tensors")
    begin, end = sizes(begin), sizes(end)
    strides = (1,) * len(begin) if strides is None else sizes(strides)
    return take(convert(input_), tuple(map(builtins.slice, begin, end, strides)))


def _scattered(kernel, tensor, indices, updates, reduction):
    tensor, indices = convert(tensor), _places(kernel, indices)
    updates = convert(updates) if is_tensor(updates) else convert(updates, tensor.dtype)
    if updates.dtype is not tensor.dtype:
        raise errors.mismatch(kernel, 2, tensor.dtype, updates.dtype)
    return core.scatter_update(tensor, indices, updates, reduction)


def tensor_scatter_nd_update(tensor, indices, updates, name=None):
    return _scattered("TensorScatterUpdate", tensor, indices, updates, None)


def tensor_scatter_nd_add(tensor, indices, updates, bad_indices_policy="", name=None):
    return _scattered("TensorScatterAdd", tensor, indices, updates, "add")


def tensor_scatter_nd_sub(tensor, indices, updates, bad_indices_policy="", name=None):
    tensor = convert(tensor)
    updates = C.neg(convert(updates) if is_tensor(updates) else convert(updates, tensor.dtype))
    return _scattered("TensorScatterSub", tensor, indices, updates, "add")


def tensor_scatter_nd_max(tensor, indices, updates, bad_indices_policy="", name=None):
    return _scattered("TensorScatterMax", tensor, indices, updates, "max")


def tensor_scatter_nd_min(tensor, indices, updates, bad_indices_policy="", name=None):
    return _scattered("TensorScatterMin", tensor, indices, updates, "min")


def scatter_nd(indices, updates, shape, bad_indices_policy="", name=None):
    return core.scatter(_places("ScatterNd", indices), convert(updates), sizes(shape))
