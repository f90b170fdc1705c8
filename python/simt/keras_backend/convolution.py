"""Convolutions and pooling.

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
    convert_to_tensor,
)

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
