"""keras.ops.nn: activations, convolutions and pooling, losses, normalisation, attention.

Convolutions are two-dimensional, channels first, in C; one dimension is a plane of height one,
three are sums of planes. A transposed convolution is a convolution of the image spread with zeros.
"""

import builtins
import math as _math

from keras.src import backend
from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
    compute_conv_transpose_padding_args_for_jax,
)

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import (
    FLOATS,
    convert_to_numpy,
    convert_to_tensor,
    native,
)
from simt.torch import _functions as F

# ---- activations


def relu(x):
    return C.relu(convert_to_tensor(x))


def relu6(x):
    return C._elementwise("hardtanh", (convert_to_tensor(x),), (0.0, 6.0))


def sigmoid(x):
    return C.sigmoid(knp._float(x))


def sparse_sigmoid(x):
    return C.clip(0.5 * (knp._float(x) + 1), 0.0, 1.0)


def tanh(x):
    return C.tanh(knp._float(x))


def tanh_shrink(x):
    x = convert_to_tensor(x)
    return x - C.tanh(x)


def softplus(x):
    return C.softplus(knp._float(x))


def softsign(x):
    x = convert_to_tensor(x)
    return x / (1 + C.abs(x))


def soft_shrink(x, threshold=0.5):
    x = convert_to_tensor(x)
    zero = knp.zeros_like(x)
    return C.where(x > threshold, x - threshold, C.where(x < -threshold, x + threshold, zero))


def sparse_plus(x):
    x = convert_to_tensor(x)
    middle = C.where(x < 1, 0.25 * C.square(x + 1), x)
    return C.where(x <= -1, knp.zeros_like(x), middle)


def silu(x):
    x = knp._float(x)
    return x * C.sigmoid(x)


def squareplus(x, b=4):
    x = convert_to_tensor(x)
    return (x + C.sqrt(C.square(x) + convert_to_tensor(b, x.dtype))) / 2


def log_sigmoid(x):
    return -C.softplus(-knp._float(x))


def leaky_relu(x, negative_slope=0.2):
    return C.leaky_relu(convert_to_tensor(x), negative_slope)


def hard_sigmoid(x):
    return C._elementwise("hardsigmoid", (knp._float(x),), ())


def hard_silu(x):
    return C._elementwise("hardswish", (knp._float(x),), ())


def elu(x, alpha=1.0):
    return C._elementwise("elu", (knp._float(x),), (alpha, 1.0))


def selu(x):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return C._elementwise("elu", (knp._float(x),), (scale * alpha, scale))


def gelu(x, approximate=True):
    x = knp._float(x)
    if not approximate:
        return C.gelu(x)
    inner = 0.7978845608028654 * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + C.tanh(inner))


def celu(x, alpha=1.0):
    x = convert_to_tensor(x)
    return C.clamp_min(x, 0.0) + alpha * C.expm1(C.clamp_max(x, 0.0) / alpha)


def glu(x, axis=-1):
    x = convert_to_tensor(x)
    if x.shape[axis] % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={tuple(x.shape)} with axis={axis}"
        )
    a, b = x.chunk(2, axis)
    return a * C.sigmoid(b)


def hard_tanh(x):
    return C._elementwise("hardtanh", (convert_to_tensor(x),), (-1.0, 1.0))


def hard_shrink(x, threshold=0.5):
    x = convert_to_tensor(x)
    return C.where(C.abs(x) > threshold, x, knp.zeros_like(x))


def threshold(x, threshold, default_value):
    x = convert_to_tensor(x)
    return C.where(x > threshold, x, knp.full_like(x, default_value))


def softmax(x, axis=-1):
    x = knp._float(x)
    if isinstance(axis, int):
        return C.softmax(x, axis) if x.dim() else knp.ones_like(x)
    top = knp.max(x, axis, keepdims=True)
    e = C.exp(x - top.detach())
    return e / knp.sum(e, axis, keepdims=True)


def log_softmax(x, axis=-1):
    x = knp._float(x)
    if isinstance(axis, int):
        return C.log_softmax(x, axis) if x.dim() else knp.zeros_like(x)
    x = x - knp.max(x, axis, keepdims=True).detach()
    return x - C.log(knp.sum(C.exp(x), axis, keepdims=True))


def sparsemax(x, axis=-1):
    x = convert_to_tensor(x)
    ordered = F.sort(x, axis, descending=True)[0]
    sums = C.cumsum(ordered, axis)
    form = [1] * x.dim()
    form[axis] = -1
    rank = C._arange(1, x.shape[axis] + 1, 1, x.dtype).reshape(form)
    support = ordered - (sums - 1) / rank > 0
    count = knp.sum(support.to(x.dtype), axis, keepdims=True)
    kept = C.where(support, ordered, knp.zeros_like(ordered))
    tau = (knp.sum(kept, axis, keepdims=True) - 1) / count
    return C.clamp_min(x - tau, 0.0)


# ---- convolution


def _sizes(value, n, name):
    """value as a tuple of n numbers."""
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    if len(value) != n:
        raise ValueError(
            f"The `{name}` argument must be a tuple of {n} integers. Received: {name}={value}"
        )
    return value


def _spatial(inputs, what):
    """How many dimensions an image has beside batch and channels."""
    n = inputs.dim() - 2
    if n not in (1, 2, 3):
        raise ValueError(
            f"Inputs to {what} must have ndim=3, 4 or 5, corresponding to 1D, 2D and 3D inputs. "
            f"Received input shape: {tuple(inputs.shape)}."
        )
    return n


def _channels_first(x):
    return x.permute([0, x.dim() - 1, *range(1, x.dim() - 1)])


def _channels_last(x):
    return x.permute([0, *range(2, x.dim()), 1])


def _same_padding(sizes, windows, strides):
    """What goes before and after so that sizes / strides, rounded up, results remain."""
    out = []
    for n, window, stride in zip(sizes, windows, strides, strict=True):
        total = builtins.max((-(-n // stride) - 1) * stride + window - n, 0)
        out.append([total // 2, total - total // 2])
    return out


def _convolve(x, weight, strides, pads, dilation, groups):
    """Channels first; weight [out, in / groups, *window]; pads before and after each dimension."""
    n = x.dim() - 2
    if builtins.any(before != after or before < 0 for before, after in pads):
        for i, (before, after) in enumerate(pads):
            x = _pad_or_crop(x, i + 2, before, after)
        pads = [(0, 0)] * n
    around = tuple(before for before, _ in pads)
    if n == 1:
        out = C.conv2d(
            x.unsqueeze(2),
            weight.unsqueeze(2),
            None,
            (1, *strides),
            (0, *around),
            (1, *dilation),
            groups,
        )
        return out.squeeze(2)
    if n == 2:
        return C.conv2d(x, weight, None, tuple(strides), around, tuple(dilation), groups)
    return _convolve_3d(x, weight, strides, around, dilation, groups)


def _pad_or_crop(x, dim, before, after):
    n = x.shape[dim]
    x = x.narrow(
        dim, builtins.max(-before, 0), n - builtins.max(-before, 0) - builtins.max(-after, 0)
    )
    widths = [[0, 0] for _ in x.shape]
    widths[dim] = [builtins.max(before, 0), builtins.max(after, 0)]
    return knp._pad_constant(x, widths, 0)


def _convolve_3d(x, weight, strides, around, dilation, groups):
    x = _pad_or_crop(x, 2, around[0], around[0])
    depth, window = x.shape[2], weight.shape[2]
    count = (depth - dilation[0] * (window - 1) - 1) // strides[0] + 1
    if count < 1:
        raise ValueError(
            f"Kernel size can't be greater than actual input size: depth {depth}, "
            f"window {dilation[0] * (window - 1) + 1}"
        )
    x = x.transpose(1, 2)
    total = None
    for k in range(window):
        start = k * dilation[0]
        planes = x[:, start : start + (count - 1) * strides[0] + 1 : strides[0]]
        batch = planes.shape[0]
        planes = planes.reshape(batch * count, *planes.shape[2:])
        part = C.conv2d(
            planes, weight[:, :, k], None, strides[1:], around[1:], dilation[1:], groups
        )
        total = part if total is None else total + part
    return total.reshape(batch, count, *total.shape[1:]).transpose(1, 2)


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    x, kernel = knp._operands(inputs, kernel)
    n = _spatial(x, "conv operation")
    strides = _sizes(strides, n, "strides")
    dilation = _sizes(dilation_rate, n, "dilation_rate")
    data_format = backend.standardize_data_format(data_format)
    check_conv_input_channels_of(x, kernel, data_format)
    if data_format == "channels_last":
        x = _channels_first(x)
    windows = tuple(kernel.shape[:n])
    pads = [(0, 0)] * n
    if padding == "same":
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, windows, strict=True)]
        pads = _same_padding(x.shape[2:], reach, strides)
    groups = x.shape[1] // kernel.shape[-2]
    weight = kernel.permute([n + 1, n, *range(n)])
    x, weight, dtype = _floats(x, weight)
    out = _convolve(x, weight, strides, pads, dilation, groups).to(dtype)
    return _channels_last(out) if data_format == "channels_last" else out


def _floats(x, weight):
    """Integers are convolved as float64, which is exact up to 2**53."""
    dtype = x.dtype
    if dtype in FLOATS:
        return x, weight, dtype
    if dtype is C.int8:
        dtype = C.int32
    return x.to(C.float64), weight.to(C.float64), dtype


def check_conv_input_channels_of(x, kernel, data_format):
    channels = x.shape[-1 if data_format == "channels_last" else 1]
    if kernel.shape[-2] == 0 or channels % kernel.shape[-2]:
        raise ValueError(
            "The number of input channels must be evenly divisible by "
            f"kernel's in_channels. Received input channels {channels} and "
            f"kernel in_channels {kernel.shape[-2]}. "
        )


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    inputs, kernel = convert_to_tensor(inputs), convert_to_tensor(kernel)
    check_conv_input_channels(inputs, kernel, data_format)
    kernel = kernel.reshape(*kernel.shape[:-2], 1, kernel.shape[-2] * kernel.shape[-1])
    return conv(inputs, kernel, strides, padding, data_format, dilation_rate)


def separable_conv(
    inputs,
    depthwise_kernel,
    pointwise_kernel,
    strides=1,
    padding="valid",
    data_format=None,
    dilation_rate=1,
):
    data_format = backend.standardize_data_format(data_format)
    out = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(out, pointwise_kernel, 1, "valid", data_format, dilation_rate)


def conv_transpose(
    inputs,
    kernel,
    strides=1,
    padding="valid",
    output_padding=None,
    data_format=None,
    dilation_rate=1,
):
    x, kernel = knp._operands(inputs, kernel)
    n = _spatial(x, "conv transpose operation")
    data_format = backend.standardize_data_format(data_format)
    check_conv_transpose_input_channels(x, kernel, data_format)
    pads = compute_conv_transpose_padding_args_for_jax(
        input_shape=tuple(x.shape),
        kernel_shape=tuple(kernel.shape),
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation_rate=dilation_rate,
    )
    strides = _sizes(strides, n, "strides")
    dilation = _sizes(dilation_rate, n, "dilation_rate")
    if data_format == "channels_last":
        x = _channels_first(x)
    for i, stride in enumerate(strides):
        x = _spread(x, i + 2, stride)
    weight = C.flip(kernel, tuple(range(n))).permute([n, n + 1, *range(n)])
    out = _convolve(x, weight, (1,) * n, [tuple(p) for p in pads], dilation, 1)
    return _channels_last(out) if data_format == "channels_last" else out


def _spread(x, dim, stride):
    """stride - 1 zeros between neighbours along dim."""
    if stride == 1:
        return x
    widths = [[0, 0] for _ in range(x.dim() + 1)]
    widths[dim + 1] = [0, stride - 1]
    n = x.shape[dim]
    out = knp._pad_constant(x.unsqueeze(dim + 1), widths, 0)
    out = out.reshape(*x.shape[:dim], n * stride, *x.shape[dim + 1 :])
    return out.narrow(dim, 0, (n - 1) * stride + 1)


# ---- pooling


def _pool(inputs, pool_size, strides, padding, data_format, operation):
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    x = convert_to_tensor(inputs)
    n = _spatial(x, "pooling op")
    windows = _sizes(pool_size, n, "pool_size")
    strides = windows if strides is None else _sizes(strides, n, "strides")
    data_format = backend.standardize_data_format(data_format)
    if data_format == "channels_last":
        x = _channels_first(x)
    dtype = x.dtype
    if dtype not in FLOATS:
        x = x.to(C.float64)
    pads = [[0, 0]] * n
    if padding == "same":
        pads = _same_padding(x.shape[2:], windows, strides)
    out = operation(x, windows, strides, pads).to(dtype)
    return _channels_last(out) if data_format == "channels_last" else out


def _planes(pool, x, windows, strides):
    """pool is C's pooling of planes; it separates, so that depth comes after height and width."""
    n = len(windows)
    if n == 1:
        return pool(x.unsqueeze(2), (1, *windows), (1, *strides)).squeeze(2)
    if n == 2:
        return pool(x, tuple(windows), tuple(strides))
    batch, channels, depth = x.shape[:3]
    x = x.reshape(batch, channels * depth, *x.shape[3:])
    x = pool(x, tuple(windows[1:]), tuple(strides[1:]))
    height, width = x.shape[2:]
    x = x.reshape(batch, channels, depth, height * width)
    x = pool(x, (windows[0], 1), (strides[0], 1))
    return x.reshape(batch, channels, -1, height, width)


def _padded(x, pads, value):
    return knp._pad_constant(x, [[0, 0], [0, 0], *pads], value)


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    def operation(x, windows, strides, pads):
        return _planes(C.max_pool2d, _padded(x, pads, -_math.inf), windows, strides)

    return _pool(inputs, pool_size, strides, padding, data_format, operation)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    def operation(x, windows, strides, pads):
        out = _planes(C.avg_pool2d, _padded(x, pads, 0), windows, strides)
        if not builtins.any(p != [0, 0] for p in pads):
            return out
        ones = C._full("ones", (1, 1, *x.shape[2:]), 1, x.dtype, "cpu", False)
        return out / _planes(C.avg_pool2d, _padded(ones, pads, 0), windows, strides)

    return _pool(inputs, pool_size, strides, padding, data_format, operation)


def _adaptive(inputs, output_size, data_format, reduce):
    x = convert_to_tensor(inputs)
    n = _spatial(x, "adaptive pooling")
    sizes = _sizes(output_size, n, "output_size")
    data_format = backend.standardize_data_format(data_format)
    first = 1 if data_format == "channels_last" else 2
    for i, m in enumerate(sizes):
        dim = first + i
        size = x.shape[dim]
        parts = []
        for k in range(m):
            start, end = k * size // m, -(-(k + 1) * size // m)
            parts.append(reduce(x.narrow(dim, start, end - start), dim, keepdim=True))
        x = C.cat(parts, dim)
    return x


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adaptive(inputs, output_size, data_format, C.mean)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adaptive(inputs, output_size, data_format, C.amax)


# ---- classes


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with simt backend")
    x = convert_to_tensor(x).to(C.int64)
    classes = C._arange(0, num_classes, 1, C.int64)
    out = (x.unsqueeze(-1) == classes).to(native(dtype or backend.floatx()))
    return out if axis in (-1, x.dim()) else knp.moveaxis(out, -1, axis)


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with simt backend")
    x = convert_to_tensor(x)
    return C.amax(one_hot(x, num_classes, axis, dtype), 1 if x.dim() > 1 else 0)


def _same_shapes(target, output):
    if target.shape != output.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            "Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )


def _within(x):
    return C.clip(x, backend.epsilon(), 1.0 - backend.epsilon())


def _log_probabilities(output, from_logits, axis):
    if from_logits:
        return log_softmax(output, axis)
    return C.log(_within(output / C.sum(output, axis, keepdim=True)))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _same_shapes(target, output)
    if target.dim() < 1:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. "
            "Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    target, output = knp._operands(target, output)
    return -C.sum(target * _log_probabilities(output, from_logits, axis), axis)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target = convert_to_tensor(target).to(C.int64)
    output = convert_to_tensor(output)
    if output.dim() < 1:
        raise ValueError(
            "Argument `output` must be at least rank 1. "
            f"Received: output.shape={tuple(output.shape)}"
        )
    if target.dim() == output.dim() and target.shape[axis] == 1:
        target = target.squeeze(axis)
    rest = list(output.shape)
    del rest[axis]
    if list(target.shape) != rest:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape "
            "up until the last dimension: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    log_prob = _log_probabilities(output, from_logits, axis)
    return -log_prob.gather(axis, target.unsqueeze(axis)).squeeze(axis)


def binary_crossentropy(target, output, from_logits=False):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _same_shapes(target, output)
    target, output = knp._operands(target, output)
    if from_logits:
        return (1 - target) * output + C.softplus(-output)
    output = _within(output)
    return -(target * C.log(output) + (1 - target) * C.log(1 - output))


# ---- normalisation


def moments(x, axes, keepdims=False, synchronized=False):
    if synchronized:
        raise NotImplementedError(
            "Argument synchronized=True is not supported with the simt backend."
        )
    x = convert_to_tensor(x)
    half = x.dtype is C.float16
    y = x.to(C.float32) if half else x
    axes = knp._axes(axes, x.dim())
    mean = C.mean(y, axes, keepdim=True)
    variance = C.mean(C.square(y - mean), axes, keepdim=True)
    if not keepdims:
        mean, variance = knp.squeeze(mean, axes), knp.squeeze(variance, axes)
    if half:
        top = F.finfo(C.float16).max
        mean, variance = (C.clip(t, -top, top).to(C.float16) for t in (mean, variance))
    return mean, variance


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    x = convert_to_tensor(x)
    form = [1] * x.dim()
    form[axis] = -1
    factor = C.rsqrt(convert_to_tensor(variance).reshape(form) + epsilon)
    if scale is not None:
        factor = factor * convert_to_tensor(scale, x.dtype).reshape(form)
    shift = -convert_to_tensor(mean).reshape(form) * factor
    if offset is not None:
        shift = shift + convert_to_tensor(offset, x.dtype).reshape(form)
    return (x * factor + shift).to(x.dtype)


# ---- sequences of labels


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """The forward algorithm over the labels with blanks between them, in logarithms."""
    target = convert_to_tensor(target).to(C.int64)
    output = convert_to_tensor(output)
    if target.dim() != 2 or output.dim() != 3:
        raise ValueError(
            "Targets must have `(batch_size, max_length)` and output "
            "`(batch_size, max_length, num_classes)`. Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    target_length = convert_to_tensor(target_length).to(C.int64)
    output_length = convert_to_tensor(output_length).to(C.int64)
    batch, most = target.shape
    steps = output.shape[1]
    log_prob = C.log_softmax(output.to(knp.result_dtype(output.dtype, "float32")), -1)
    blank = knp.full_like(target, mask_index)
    labels = C.stack([blank, target], 2).reshape(batch, 2 * most)
    labels = C.cat([labels, blank[:, :1]], 1)
    emit = log_prob.gather(2, labels.unsqueeze(1).expand(batch, steps, 2 * most + 1))
    low = -1e30
    # From label to label over the blank between them, unless they are the same.
    odd = C._arange(2, 2 * most + 1, 1, C.int64) % 2 == 1
    skip = C.logical_and(odd, labels[:, 2:] != labels[:, :-2])
    skip = C.where(skip, 0.0, low).to(emit.dtype)
    wall = knp.full((batch, 1), low, emit.dtype)
    skip = C.cat([wall, wall, skip], 1)
    start = knp.full((batch, 2 * most - 1), low, emit.dtype)
    alpha = C.cat([emit[:, 0, :2], start], 1)
    for t in range(1, steps):
        one = C.cat([wall, alpha[:, :-1]], 1)
        two = C.cat([wall, wall, alpha[:, :-2]], 1) + skip
        top = C.maximum(C.maximum(alpha, one), two).detach()
        reached = C.log(C.exp(alpha - top) + C.exp(one - top) + C.exp(two - top)) + top
        alive = (output_length > t).unsqueeze(1)
        alpha = C.where(alive, reached + emit[:, t], alpha)
    last = (2 * target_length).unsqueeze(1)
    ends = C.cat([alpha.gather(1, last), alpha.gather(1, C.clamp_min(last - 1, 0))], 1)
    ends = C.where(C.cat([last >= 0, last > 0], 1), ends, knp.full_like(ends, low))
    return -C.logsumexp(ends, 1)


def ctc_decode(
    inputs,
    sequence_lengths,
    strategy="greedy",
    beam_width=100,
    top_paths=1,
    merge_repeated=True,
    mask_index=0,
):
    inputs = convert_to_tensor(inputs)
    lengths = convert_to_tensor(sequence_lengths).to(C.int64)
    if strategy == "greedy":
        return _ctc_greedy(inputs, lengths, merge_repeated, mask_index)
    if strategy == "beam_search":
        raise NotImplementedError(
            "ctc_decode(strategy='beam_search'): not in simt yet; nearest is strategy='greedy'"
        )
    raise ValueError(
        f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
    )


def _ctc_greedy(inputs, lengths, merge_repeated, mask_index):
    import numpy as np

    x = convert_to_numpy(inputs)
    lengths = convert_to_numpy(lengths)
    if mask_index is None:
        mask_index = x.shape[-1] - 1
    best = x.argmax(-1)
    decoded = np.full(best.shape, -1, "int32")
    for row, labels in enumerate(best):
        labels = labels[: lengths[row]]
        kept = labels != mask_index
        if merge_repeated:
            kept[1:] &= labels[1:] != labels[:-1]
        labels = labels[kept]
        decoded[row, : len(labels)] = labels
    inside = np.arange(x.shape[1])[None, :] < lengths[:, None]
    score = -np.where(inside, x.max(-1), 0).sum(1)[:, None]
    return convert_to_tensor(decoded[None]), convert_to_tensor(
        score, knp.result_dtype(inputs.dtype, "float32")
    )


def psnr(x1, x2, max_val):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1.shape != x2.shape:
        raise ValueError(
            f"Input shapes {tuple(x1.shape)} and {tuple(x2.shape)} must "
            "match for PSNR calculation. "
        )
    top = convert_to_tensor(max_val, x2.dtype)
    return 20 * C.log10(top) - 10 * C.log10(C.mean(C.square(x1 - x2)))


# ---- attention


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    """[batch, time, heads, size], as Keras has them; heads of key and value may be fewer. There is
    one way to compute it: flash_attention is taken and makes no difference."""
    query, key, value = (convert_to_tensor(t) for t in (query, key, value))
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={tuple(query.shape)}, key.shape={tuple(key.shape)}, "
            f"value.shape={tuple(value.shape)}."
        )
    dtype = knp.result_dtype(query.dtype, key.dtype, value.dtype)
    dtype = dtype if dtype in FLOATS else native(backend.floatx())
    query, key, value = (t.to(dtype).transpose(1, 2) for t in (query, key, value))
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (F.repeat_interleave(t, groups, 1) for t in (key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    logits = C.matmul(query, key.transpose(2, 3)) * scale
    if attn_logits_soft_cap is not None:
        logits = C.tanh(logits / attn_logits_soft_cap) * attn_logits_soft_cap
    if bias is not None:
        logits = logits + convert_to_tensor(bias, dtype)
    allowed = None if mask is None else convert_to_tensor(mask, "bool")
    if is_causal:
        rows = C._arange(0, logits.shape[2], 1, None).unsqueeze(1)
        before = C._arange(0, logits.shape[3], 1, None) <= rows
        allowed = before if allowed is None else C.logical_and(allowed, before)
    if allowed is not None:
        low = -0.7 * F.finfo(dtype).max
        logits = C.where(allowed, logits, knp._scalar(low, dtype))
    return C.matmul(C.softmax(logits, -1), value).transpose(1, 2)


# ---- patches


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    from simt.torch.nn._resample import unfold

    return unfold(convert_to_tensor(input), kernel_size, dilation, padding, stride)


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    from simt.torch.nn._resample import fold

    return fold(convert_to_tensor(x), output_size, kernel_size, dilation, padding, stride)


def depth_to_space(x, block_size, data_format="channels_last"):
    x = convert_to_tensor(x)
    b = block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = x.reshape(n, h, w, b, b, c // (b * b)).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(n, h * b, w * b, c // (b * b))
    n, c, h, w = x.shape
    x = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // (b * b), h * b, w * b)


def space_to_depth(x, block_size, data_format="channels_last"):
    x = convert_to_tensor(x)
    b = block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = x.reshape(n, h // b, b, w // b, b, c).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(n, h // b, w // b, b * b * c)
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return x.reshape(n, b * b * c, h // b, w // b)
