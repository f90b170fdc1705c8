"""Creation, shapes, elements: tensors from numbers, and tensors from tensors without arithmetic."""

import numpy as np

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend import numpy as knp
from simt.tensorflow import errors
from simt.tensorflow._tensor import FLOATS, convert, is_tensor, native, stack_of
from simt.tensorflow._types import OF_NATIVE, TensorShape, as_dtype


def not_yet(what, near):
    return NotImplementedError(f"{what}: not in simt yet; nearest is {near}")


def sizes(shape):
    """A shape as a tuple of Python's ints."""
    if isinstance(shape, TensorShape):
        return tuple(shape)
    if is_tensor(shape):
        return tuple(int(n) for n in convert(shape).reshape(-1).tolist())
    if not isinstance(shape, (list, tuple, np.ndarray)):
        shape = (shape,)
    found = []
    for n in shape:
        if isinstance(n, (float, str)):
            convert(n, C.int32)  # says why not
        found.append(int(n))
    return tuple(found)


# ---- creation


def constant(value, dtype=None, shape=None, name="Const"):
    wanted = native(dtype)
    if is_tensor(value) and wanted not in (None, convert(value).dtype):
        made = convert(value)
        raise TypeError(
            f"Expected tensor {core.convert_to_numpy(made)} with dtype {OF_NATIVE[wanted]!r}, but "
            f"got dtype {OF_NATIVE[made.dtype]!r}."
        )
    made = convert(value, wanted)
    if shape is None:
        return made
    shape = sizes(shape)
    if made.numel() != 1 and made.numel() != int(np.prod(shape)):
        raise TypeError(
            "Eager execution of tf.constant with unsupported shape. Tensor "
            f"{core.convert_to_numpy(made)} (converted from {value}) has {made.numel()} elements, "
            f"but got `shape` {shape} with {int(np.prod(shape))} elements)."
        )
    return made.reshape(()).expand(shape).clone() if made.numel() == 1 else made.reshape(shape)


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    if dtype is None and dtype_hint is not None and not is_tensor(value):
        try:
            return convert(value, native(dtype_hint))
        except (TypeError, ValueError):
            pass
    return convert(value, native(dtype))


def identity(input, name=None):
    return convert(input).clone()


def cast(x, dtype, name=None):
    dtype = native(dtype)
    if isinstance(x, (str, bytes)):
        raise errors.UnimplementedError(
            None,
            "Cast",
            f"{{{{function_node __wrapped__Cast_device_{errors.DEVICE}}}}} Cast string to "
            f"{errors.kernel_name(dtype)} is not supported [Op:Cast] name: ",
        )
    x = convert(x)
    if x.dtype is dtype:
        return x
    if x.dtype in FLOATS and dtype in (C.uint8, C.uint16, C.uint32):
        return x.to(C.int64).to(dtype)
    return x.to(dtype)


def saturate_cast(value, dtype, name=None):
    value, dtype = convert(value), as_dtype(dtype)
    if dtype.is_integer:
        value = C.clamp(value, dtype.min, dtype.max)
    return value.to(dtype.native)


def bitcast(input, type, name=None):
    values = core.convert_to_numpy(convert(input))
    kind = np.dtype(as_dtype(type).as_numpy_dtype)
    if kind.itemsize != values.dtype.itemsize:
        raise not_yet("tf.bitcast between dtypes of different sizes", "numpy.ndarray.view")
    return convert(values.view(kind))


def _filled(how, shape, value, dtype):
    shape = sizes(shape)
    for n in shape:
        if n < 0:
            raise errors.refused("Fill", f"Dimension {n} must be >= 0")
    return C._full(how, shape, value, native(dtype), "cpu", False)


def zeros(shape, dtype="float32", name=None, layout=None):
    return _filled("zeros", shape, 0, dtype)


def ones(shape, dtype="float32", name=None, layout=None):
    return _filled("ones", shape, 1, dtype)


def fill(dims, value, name=None, layout=None):
    value = convert(value)
    if value.dim():
        raise errors.refused(
            "Fill", f"value must be a scalar. Got shape {errors.dims(value.shape)}"
        )
    zeros(dims)  # says what is wrong with dims
    return value.expand(sizes(dims)).clone()


def zeros_like(input, dtype=None, name=None, layout=None):
    input = convert(input)
    return _filled("zeros", tuple(input.shape), 0, dtype or input.dtype)


def ones_like(input, dtype=None, name=None, layout=None):
    input = convert(input)
    return _filled("ones", tuple(input.shape), 1, dtype or input.dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    made = knp.eye(int(num_rows), None if num_columns is None else int(num_columns))
    made = made.to(native(dtype))
    return made if batch_shape is None else made.expand((*sizes(batch_shape), *made.shape)).clone()


def range(start, limit=None, delta=1, dtype=None, name="range"):
    if limit is None:
        start, limit = 0, start
    given = [start, limit, delta]
    dtype = native(dtype)
    if dtype is None:
        kinds = [convert(x).dtype for x in given]
        order = (C.float64, C.float32, C.int64, C.int32)
        dtype = next((d for d in order if d in kinds), kinds[0])
    start, limit, delta = (convert(x).item() if is_tensor(x) else x for x in given)
    if delta == 0:
        raise errors.refused("Range", "Requires delta != 0: 0")
    if (limit - start) * delta < 0:
        sign = ("<", ">") if delta > 0 else (">", "<")
        text = f"Requires start {sign[0]}= limit when delta {sign[1]} 0: {start:g}/{limit:g}"
        raise errors.refused("Range", text)
    return knp.arange(start, limit, delta, dtype)


def linspace(start, stop, num, name=None, axis=0):
    start, stop = convert(start), convert(stop)
    if start.dtype not in FLOATS:
        start, stop = start.to(C.float64), stop.to(C.float64)
    return knp.linspace(start, stop, int(num), axis=axis).to(start.dtype)


def meshgrid(*args, indexing="xy", name=None):
    return list(knp.meshgrid(*(convert(a) for a in args), indexing=indexing))


def sequence_mask(lengths, maxlen=None, dtype="bool", name=None):
    lengths = convert(lengths)
    if maxlen is None:
        maxlen = int(C.amax(lengths).item())
    row = C._arange(0, int(maxlen), 1, lengths.dtype)
    return (row < lengths.unsqueeze(-1)).to(native(dtype))


# ---- shapes


def shape(input, out_type="int32", name=None):
    return C.tensor(list(convert(input).shape), dtype=native(out_type))


def size(input, out_type="int32", name=None):
    return C.tensor(convert(input).numel(), dtype=native(out_type))


def rank(input, name=None):
    return C.tensor(convert(input).dim(), dtype=C.int32)


def refused_quietly(kernel, text):
    return errors.refused(kernel, text, "")


def reshape(tensor, shape, name=None):
    tensor = convert(tensor)
    if not is_tensor(shape) and any(isinstance(n, float) for n in np.atleast_1d(shape).tolist()):
        raise errors.not_allowed("Reshape", C.float32, "int32, int64", "Tshape")
    shape, count = sizes(shape), tensor.numel()
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        text = f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]}"
        raise refused_quietly("Reshape", text)
    known = int(np.prod([n for n in shape if n != -1]))
    if unknown and (count % known if known else count):
        text = f"requires a multiple of {known}"
    elif not unknown and known != count:
        text = f"has {known}"
    else:
        return tensor.reshape(shape)
    text = f"Input to reshape is a tensor with {count} values, but the requested shape {text}"
    raise refused_quietly("Reshape", text)


def transpose(a, perm=None, conjugate=False, name="transpose"):
    a = convert(a)
    if perm is None:
        return knp.transpose(a, None)
    perm, rank = sizes(perm), a.dim()
    if len(perm) != rank:
        text = f"transpose expects a vector of size {rank}. But input(1) is a vector of size "
        raise refused_quietly("Transpose", text + str(len(perm)))
    missing = [i for i, _ in enumerate(perm) if i not in perm]
    if missing:
        text = f"{missing[0]} is missing from {{{','.join(map(str, perm))}}}."
        raise refused_quietly("Transpose", text)
    return a.permute(*perm)


def expand_dims(input, axis, name=None):
    input, axis = convert(input), int(axis)
    if not -input.dim() - 1 <= axis <= input.dim():
        text = f"Tried to expand dim index {axis} for tensor with {input.dim()} dimensions."
        raise refused_quietly("ExpandDims", text)
    return input.unsqueeze(axis)


def squeeze(input, axis=None, name=None):
    input = convert(input)
    for at in () if axis is None else sizes(axis):
        if input.shape[at] != 1:
            text = f"Can not squeeze dim[{at}], expected a dimension of 1, got {input.shape[at]}"
            raise errors.refused("Squeeze", text)
    return knp.squeeze(input, None if axis is None else sizes(axis))


def broadcast_to(input, shape, name=None):
    input, shape = convert(input), sizes(shape)
    try:
        return input.expand(shape)
    except RuntimeError:
        text = f"Incompatible shapes: {errors.dims(input.shape)} vs. {errors.dims(shape)}"
        raise refused_quietly("BroadcastTo", text) from None


def ensure_shape(x, shape, name=None):
    x = convert(x)
    if not TensorShape(shape).is_compatible_with(tuple(x.shape)):
        wanted = errors.dims("?" if n is None else n for n in TensorShape(shape))
        text = f"Shape of tensor input {errors.dims(x.shape)} is not compatible with expected "
        raise errors.refused("EnsureShape", text + f"shape {wanted}.")
    return x


def concat(values, axis, name="concat"):
    first = next((convert(v).dtype for v in values if is_tensor(v)), None)
    parts = []
    for v in values:
        parts.append(convert(v) if is_tensor(v) else convert(v, first))
        first = first or parts[0].dtype
    for i, part in enumerate(parts):
        if part.dtype is not first:
            raise errors.mismatch("ConcatV2", i, first, part.dtype, "concat")
    axis = int(axis)
    _check_concat(parts, axis)
    return parts[0].clone() if len(parts) == 1 else C.cat(parts, axis)


def _check_concat(parts, axis):
    def refuse(text):
        form = f"ConcatV2_N_{len(parts)}"
        raise errors.refused("ConcatV2", "ConcatOp : " + text, " name: concat", form)

    a = tuple(parts[0].shape)
    if not a:
        refuse("Can't concatenate scalars (use tf.stack instead)")
    if not -len(a) <= axis < len(a):
        refuse(
            f"Expected concatenating dimensions in the range [{-len(a)}, {len(a)}), but got {axis}"
        )
    for i, part in enumerate(parts):
        b = tuple(part.shape)
        both = f"shape[0] = {errors.dims(a)} vs. shape[{i}] = {errors.dims(b)}"
        if len(b) != len(a):
            refuse(f"Ranks of all input tensors should match: {both}")
        for at, (n, m) in enumerate(zip(a, b, strict=True)):
            if n != m and at != axis % len(a):
                refuse(f"Dimension {at} in both shapes must be equal: {both}")


def stack(values, axis=0, name="stack"):
    first = next((convert(v).dtype for v in values if is_tensor(v)), None)
    parts = [convert(v) if is_tensor(v) else convert(v, first) for v in values]
    rank = parts[0].dim() + 1
    if not -rank <= axis < rank:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-rank}, {rank})")
    return stack_of(parts, axis)


def unstack(value, num=None, axis=0, name="unstack"):
    value = convert(value)
    if not -value.dim() <= axis < value.dim():
        raise ValueError(f"Argument `axis` = {axis} not in range [{-value.dim()}, {value.dim()})")
    return list(value.unbind(axis))


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    value, axis = convert(value), int(axis)
    total = value.shape[axis]
    if is_tensor(num_or_size_splits) or isinstance(num_or_size_splits, (list, tuple, np.ndarray)):
        parts = list(sizes(num_or_size_splits))
        known = sum(n for n in parts if n >= 0)
        parts = [total - known if n < 0 else n for n in parts]
        if sum(parts) != total:
            raise errors.refused(
                "SplitV",
                "Determined shape must either match input shape along split_dim exactly if fully "
                "specified, or be less than the size of the input along split_dim if not fully "
                f"specified.  Got: {sum(parts)}",
                " name: split",
                f"SplitV_num_split_{len(parts)}",
            )
        return list(value.split(parts, axis))
    count = int(num_or_size_splits)
    if total % count:
        raise errors.refused(
            "Split",
            "Number of ways to split should evenly divide the split dimension, but got split_dim "
            f"{axis} (size = {total}) and num_split {count}",
            " name: split",
            f"Split_num_split_{count}",
        )
    return list(value.split(total // count, axis)) if total else [value] * count


def tile(input, multiples, name=None):
    input, multiples = convert(input), sizes(multiples)
    if len(multiples) != input.dim():
        text = f"Expected multiples argument to be a vector of length {input.dim()} but got length "
        raise refused_quietly("Tile", text + str(len(multiples)))
    return knp.tile(input, multiples)


def repeat(input, repeats, axis=None, name=None):
    if is_tensor(repeats) or isinstance(repeats, (list, tuple, np.ndarray)):
        repeats = list(sizes(repeats))
        repeats = repeats[0] if len(repeats) == 1 else repeats
    return knp.repeat(convert(input), repeats, axis)


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    tensor = convert(tensor)
    paddings = convert(paddings).tolist()
    kind = mode.lower()
    if kind not in ("constant", "reflect", "symmetric"):
        raise ValueError(
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or '
            f'"SYMMETRIC". Received `mode` = {mode}'
        )
    for (a, b), n in zip(paddings, tensor.shape, strict=True):
        if kind == "reflect" and max(a, b) >= n:
            text = f"paddings must be less than the dimension size: {a}, {b} not less than {n}"
            raise refused_quietly("MirrorPad", text)
    values = constant_values if kind == "constant" else None
    if is_tensor(values):
        values = convert(values).item()
    return knp.pad(tensor, paddings, kind, values)


def reverse(tensor, axis, name=None):
    tensor = convert(tensor)
    for i, at in enumerate(sizes(axis)):
        if not -tensor.dim() <= at < tensor.dim():
            text = f"'axis'[{i}] = {at} is out of valid range [0, {tensor.dim() - 1}"
            raise refused_quietly("ReverseV2", text)
    return C.flip(tensor, sizes(axis))


def roll(input, shift, axis, name=None):
    shift, axis = sizes(shift), sizes(axis)
    made = convert(input)
    for n, at in zip(shift, axis, strict=True):
        made = knp.roll(made, n, at)
    return made
