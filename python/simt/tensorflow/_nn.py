"""Functions of tf.nn."""

from simt._core import torch as C
from simt.keras_backend import nn, random
from simt.keras_backend import numpy as knp
from simt.tensorflow import errors
from simt.tensorflow._arrays import sizes
from simt.tensorflow._elementwise import _NN, allow, operands, unary_functions
from simt.tensorflow._tensor import FLOATS, convert, is_tensor
from simt.tensorflow._types import OF_NATIVE


def _logits(kernel, logits):
    logits = convert(logits)
    allow(kernel, _NN, logits.dtype)
    return logits


def softmax(logits, axis=None, name=None):
    return nn.softmax(_logits("Softmax", logits), -1 if axis is None else axis)


def log_softmax(logits, axis=None, name=None):
    return nn.log_softmax(_logits("LogSoftmax", logits), -1 if axis is None else axis)


def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    logits = _logits("SoftmaxCrossEntropyWithLogits", logits)
    labels = convert(labels) if is_tensor(labels) else convert(labels, logits.dtype)
    if labels.shape != logits.shape:
        text = f"logits and labels must be broadcastable: logits_size={errors.dims(logits.shape)} "
        text += f"labels_size={errors.dims(labels.shape)}"
        raise errors.refused("SoftmaxCrossEntropyWithLogits", text)
    return -knp.sum(labels.to(logits.dtype) * nn.log_softmax(logits, axis), axis)


def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    labels, logits = convert(labels), _logits("SparseSoftmaxCrossEntropyWithLogits", logits)
    if tuple(labels.shape) != tuple(logits.shape[:-1]):
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
            f"labels.shape={tuple(labels.shape)} and logits.shape={tuple(logits.shape)}"
        )
    rows = nn.log_softmax(logits, -1).reshape(-1, logits.shape[-1])
    places = labels.reshape(-1, 1).to(C.int64)
    return -C.gather(rows, 1, places).reshape(labels.shape)


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    labels, logits = operands("Mul", labels, logits)
    if labels.shape != logits.shape:
        raise ValueError(
            "`logits` and `labels` must have the same shape, received "
            f"({tuple(logits.shape)} vs {tuple(labels.shape)})."
        )
    return C.clamp_min(logits, 0) - logits * labels + C.log1p(C.exp(-C.abs(logits)))


def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None):
    labels, logits = operands("Mul", labels, logits)
    weight = 1 + (convert(pos_weight) - 1) * labels
    rest = C.log1p(C.exp(-C.abs(logits))) + C.clamp_min(-logits, 0)
    return (1 - labels) * logits + weight * rest


def leaky_relu(features, alpha=0.2, name=None):
    features = convert(features)
    return nn.leaky_relu(features if features.dtype in FLOATS else features.to(C.float32), alpha)


def gelu(features, approximate=False, name=None):
    features = convert(features)
    if features.dtype not in FLOATS:
        raise ValueError(
            "`features.dtype` must be a floating point tensor.Received:features.dtype="
            f"{OF_NATIVE[features.dtype]!s}"
        )
    return nn.gelu(features, approximate)


def silu(features, beta=1.0):
    if beta == 1.0:
        return unary_functions["silu"](features)
    features = convert(features)
    return features * C.sigmoid(features * beta)


def crelu(features, axis=-1, name=None):
    features = convert(features)
    return C.clamp_min(C.cat([features, -features], axis), 0)


def bias_add(value, bias, data_format=None, name=None):
    value, bias = convert(value), convert(bias)
    across = bool(data_format) and data_format[:2] == "NC"
    if bias.shape[0] != value.shape[1 if across else -1]:
        text = "Must provide as many biases as the last dimension of the input tensor: "
        text += f"{errors.dims(bias.shape)} vs. {errors.dims(value.shape)}"
        raise errors.refused("BiasAdd", text, "")
    if across:
        bias = bias.reshape(-1, *[1] * (value.dim() - 2))
    return C.add(value, bias)


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    x = convert(x)
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise ValueError(
            f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
        )
    if x.dtype not in FLOATS:
        raise ValueError(
            "`x.dtype` must be a floating point tensor as `x` will be scaled. Received: "
            f"x.dtype={OF_NATIVE[x.dtype]!s}"
        )
    return random.dropout(x, float(rate), noise_shape, seed)


def moments(x, axes, shift=None, keepdims=False, name=None):
    return nn.moments(convert(x), sizes(axes), keepdims)


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    factor = C.rsqrt(convert(variance) + variance_epsilon)
    factor = factor if scale is None else factor * convert(scale)
    shift = -convert(mean) * factor
    return convert(x) * factor + (shift if offset is None else shift + convert(offset))


def embedding_lookup(params, ids, max_norm=None, name=None):
    if max_norm is not None:
        raise NotImplementedError(
            "tf.nn.embedding_lookup(max_norm=): not in simt yet; nearest is tf.clip_by_norm"
        )
    if isinstance(params, (list, tuple)):
        params = C.cat([convert(p) for p in params], 0)
    return knp.take(convert(params), convert(ids), 0)


def l2_loss(t, name=None):
    return C.sum(C.square(_logits("L2Loss", t))) / 2


# ---- convolutions and pools


def _two(value, form, n=2):
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    if len(value) == n + 2:
        return value[1:-1] if form == "channels_last" else value[2:]
    return value * n if len(value) == 1 else value


def _form(data_format):
    return "channels_first" if data_format and data_format[:2] == "NC" else "channels_last"


def _padding(padding):
    if not isinstance(padding, str):
        raise NotImplementedError(
            "explicit paddings: not in simt yet; nearest is tf.pad before padding='VALID'"
        )
    if padding.upper() not in ("SAME", "VALID"):
        raise ValueError(
            f'Value for attr "padding" of "{padding}" is not in the list of allowed values: '
            '"SAME", "VALID"'
        )
    return padding.lower()


def _conv(n, kernel_name, input, filters, strides, padding, data_format, dilations):
    form = _form(data_format)
    x, filters = operands(kernel_name, input, filters)
    depth = x.shape[-1] if form == "channels_last" else x.shape[1]
    if depth % filters.shape[-2]:
        raise errors.refused(
            kernel_name,
            f"input depth must be evenly divisible by filter depth: {depth} vs {filters.shape[-2]}",
        )
    groups = depth // filters.shape[-2]
    if filters.shape[-1] % groups:
        text = "output depth must be evenly divisible by number of groups: "
        raise errors.refused(kernel_name, text + f"{filters.shape[-1]} vs {groups}")
    strides, dilations = _two(strides, form, n), _two(dilations or 1, form, n)
    return nn.conv(x, filters, strides, _padding(padding), form, dilations)


def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None, name=None):
    return _conv(1, "Conv2D", input, filters, stride, padding, data_format, dilations)


def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
    return _conv(2, "Conv2D", input, filters, strides, padding, data_format, dilations)


def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    form = _form(data_format)
    x, filter = operands("DepthwiseConv2dNative", input, filter)
    strides, dilations = _two(strides, form), _two(dilations or 1, form)
    return nn.depthwise_conv(x, filter, strides, _padding(padding), form, dilations)


def max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    form = _form(data_format)
    sizes_, steps = _two(ksize, form), _two(strides, form)
    return nn.max_pool(convert(input), sizes_, steps, _padding(padding), form)


def avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    form = _form(data_format)
    sizes_, steps = _two(ksize, form), _two(strides, form)
    return nn.average_pool(convert(input), sizes_, steps, _padding(padding), form)


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    return max_pool2d(input, ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    return avg_pool2d(input, ksize, strides, padding, data_format)
