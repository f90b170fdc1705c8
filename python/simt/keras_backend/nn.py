"""keras.ops.nn: activations, losses, normalisation, attention; the rest from its own modules."""

from keras.src import backend

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.convolution import (  # noqa: F401
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    conv,
    conv_transpose,
    depthwise_conv,
    max_pool,
    separable_conv,
)
from simt.keras_backend.core import (
    FLOATS,
    convert_to_tensor,
    native,
)
from simt.keras_backend.ctc import ctc_decode, ctc_loss  # noqa: F401
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
