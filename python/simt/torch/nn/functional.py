"""torch.nn.functional. Layers that are one C call are that C call."""

from simt._core import torch as _C
from simt._missing import module_hooks as _module_hooks
from simt.torch.nn._resample import fold, interpolate, pad, unfold  # noqa: F401

Tensor = _C.Tensor

linear = _C.linear
conv2d = _C.conv2d
sigmoid = _C.sigmoid
tanh = _C.tanh
avg_pool2d = _C.avg_pool2d
_relu = _C.relu
_cross_entropy = _C._cross_entropy


def relu(input, inplace=False):
    return input.relu_() if inplace else _relu(input)


def relu_(input):
    return input.relu_()


def relu6(input, inplace=False):
    return hardtanh(input, 0.0, 6.0, inplace)


def _row(name, input, *numbers, inplace=False):
    """An elementwise row of the table of operations, of one operand."""
    out = _C._elementwise(name, (input,), numbers)
    return input.copy_(out) if inplace else out


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return _row("hardtanh", input, min_val, max_val, inplace=inplace)


def hardsigmoid(input, inplace=False):
    return _row("hardsigmoid", input, inplace=inplace)


def hardswish(input, inplace=False):
    return _row("hardswish", input, inplace=inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    out = _C.leaky_relu(input, negative_slope)
    return input.copy_(out) if inplace else out


def elu(input, alpha=1.0, inplace=False):
    return _row("elu", input, alpha, 1.0, inplace=inplace)


def selu(input, inplace=False):
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return _row("elu", input, scale * alpha, scale, inplace=inplace)


def gelu(input, approximate="none"):
    if approximate == "none":
        return _C.gelu(input)
    return 0.5 * input * (1 + _C.tanh(0.7978845608028654 * (input + 0.044715 * input**3)))


def silu(input, inplace=False):
    out = _C.silu(input)
    return input.copy_(out) if inplace else out


def mish(input, inplace=False):
    return input * softplus(input).tanh()


def softplus(input, beta=1.0, threshold=20.0):
    out = _C.softplus(input if beta == 1 else input * beta)
    return out if beta == 1 else out / beta


def logsigmoid(input):
    return -_C.softplus(-input)


def softsign(input):
    return input / (1 + input.abs())


def softmin(input, dim=None, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def _implicit(name, dim, ndim):
    if dim is not None:
        return dim
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X "
        "as an argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _C.softmax(input, _implicit("softmax", dim, input.dim()), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _C.log_softmax(input, _implicit("log_softmax", dim, input.dim()), dtype=dtype)


def glu(input, dim=-1):
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


def dropout(input, p=0.5, training=True, inplace=False):
    out = _C.dropout(input, p, training)
    return input.copy_(out) if inplace and out is not input else out


def dropout2d(input, p=0.5, training=True, inplace=False):
    out = _C.dropout(input, p, training, True)
    return input.copy_(out) if inplace and out is not input else out


dropout1d = dropout3d = feature_dropout = dropout2d


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    return _C.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    k = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
    s = k if stride is None else stride if isinstance(stride, int) else stride[0]
    out = _C.max_pool2d(input.unsqueeze(-2), (1, k), (1, s), (0, padding), (1, dilation), ceil_mode)
    return out.squeeze(-2)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    k = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
    s = k if stride is None else stride if isinstance(stride, int) else stride[0]
    out = _C.avg_pool2d(
        input.unsqueeze(-2), (1, k), (1, s), (0, padding), ceil_mode, count_include_pad
    )
    return out.squeeze(-2)


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    def one(x):
        return x if isinstance(x, int) else x[0]

    if isinstance(padding, str):
        total = one(dilation) * (weight.shape[2] - 1) if padding == "same" else 0
        padding = total // 2
    out = conv2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, one(stride)),
        (0, one(padding)),
        (1, one(dilation)),
        groups,
    )
    return out.squeeze(-2)


def _adaptive_sizes(input, output_size):
    sizes = (output_size, output_size) if isinstance(output_size, int) else output_size
    if len(sizes) != 2:
        raise RuntimeError("adaptive pooling: output_size must be 2")
    h, w = (n if s is None else s for s, n in zip(sizes, input.shape[-2:], strict=False))
    for size in (h, w):
        if not 0 < size < 1 << 20:
            raise RuntimeError(f"adaptive pooling: output_size={size} is out of range")
    return h, w


def adaptive_avg_pool2d(input, output_size):
    """Any size: means over PyTorch's windows; one and exact divisors are one call."""
    h, w = _adaptive_sizes(input, output_size)
    ih, iw = input.shape[-2:]
    if h == 1 and w == 1:
        return input.mean((-2, -1), keepdim=True)
    if ih % h == 0 and iw % w == 0:
        return avg_pool2d(input, (ih // h, iw // w))

    def means(x, dim, n, m):
        parts = [x.narrow(dim, i * n // m, -(-(i + 1) * n // m) - i * n // m) for i in range(m)]
        return _C.cat([p.mean(dim, keepdim=True) for p in parts], dim)

    return means(means(input, -2, ih, h), -1, iw, w)


def adaptive_max_pool2d(input, output_size):
    h, w = _adaptive_sizes(input, output_size)

    def most(x, dim, m):
        n = x.shape[dim]
        parts = [x.narrow(dim, i * n // m, -(-(i + 1) * n // m) - i * n // m) for i in range(m)]
        return _C.cat([p.amax(dim, keepdim=True) for p in parts], dim)

    return most(most(input, -2, h), -1, w)


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    if training:
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        count = input.numel() // max(input.shape[1], 1)
        if count == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}"
            )
    return _C.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return _C.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    n, c = input.shape[:2]
    x = input.reshape(n, num_groups, -1)
    out = _C.layer_norm(x, (x.shape[2],), None, None, eps).reshape(input.shape)
    form = (1, c) + (1,) * (input.dim() - 2)
    out = out if weight is None else out * weight.view(form)
    return out if bias is None else out + bias.view(form)


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return _C._embedding(weight, input, padding_idx)


def one_hot(tensor, num_classes=-1):
    if tensor.dtype is not _C.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    n = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    if tensor.numel() and int(tensor.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if tensor.numel() and int(tensor.max()) >= n:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return (tensor.unsqueeze(-1) == _C._arange(0, n, 1, None)).long()


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    size = x1.norm(2, dim).clamp(min=eps) * x2.norm(2, dim).clamp(min=eps)
    return (x1 * x2).sum(dim) / size


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None
):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        from simt.torch._functions import triu

        ones = _C._full("ones", scores.shape[-2:], 1, _C.bool, scores.device, False)
        scores = scores.masked_fill(triu(ones, 1), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype is _C.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
    return _C.dropout(scores.softmax(-1), dropout_p, True) @ value


# ---- losses


def _reduction(value, size_average, reduce):
    if size_average is None and reduce is None:
        return value
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _reduce(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    if size_average is not None or reduce is not None:
        reduction = _reduction(reduction, size_average, reduce)
    return _cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
):
    return _C._nll_loss(
        input, target, weight, ignore_index, _reduction(reduction, size_average, reduce)
    )


def _warn_sizes(input, target):
    if input.shape != target.shape:
        import warnings

        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    _warn_sizes(input, target)
    return _C._mse_loss(input, target, _reduction(reduction, size_average, reduce))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    _warn_sizes(input, target)
    return _reduce((input - target).abs(), _reduction(reduction, size_average, reduce))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    _warn_sizes(input, target)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    d = (input - target).abs()
    loss = _C.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    return _reduce(loss, _reduction(reduction, size_average, reduce))


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    d = (input - target).abs()
    return _reduce(_C.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is "
            "deprecated. Please ensure they have the same size."
        )
    checked = _C._check_unit(input)  # an error when it is evaluated
    loss = _C._elementwise("binary_cross_entropy", (input, target, checked), ())
    if weight is not None:
        loss = loss * weight
    return _reduce(loss, _reduction(reduction, size_average, reduce))


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    if input.shape != target.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    if pos_weight is None:
        loss = (1 - target) * input + _C.softplus(-input)
    else:
        loss = (1 - target) * input + (1 + (pos_weight - 1) * target) * _C.softplus(-input)
    if weight is not None:
        loss = loss * weight
    return _reduce(loss, _reduction(reduction, size_average, reduce))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = _C.where(target > 0, target * (target.clamp(min=1e-38).log() - input), 0.0)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return _reduce(loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    return _reduce((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"):
    loss = _C.where(target == 1, input, (margin - input).clamp(min=0))
    return _reduce(loss, reduction)


__getattr__, __dir__ = _module_hooks(globals())
