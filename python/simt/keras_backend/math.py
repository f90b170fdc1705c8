"""keras.ops.math: segments, top k, Fourier transforms (by NumPy), special functions."""

import math as _math

import numpy as np

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import FLOATS, convert_to_numpy, convert_to_tensor
from simt.torch import _functions as F
from simt.torch.autograd.function import Function

# ---- segments


def _segments(data, segment_ids, num_segments):
    data = convert_to_tensor(data)
    ids = convert_to_tensor(segment_ids).to(C.int64)
    if num_segments is None:
        num_segments = int(C.amax(ids).item()) + 1
    return data, ids, int(num_segments)


def segment_sum(data, segment_ids, num_segments=None, sorted=False):
    data, ids, n = _segments(data, segment_ids, num_segments)
    # What belongs to no segment goes to one more, which is left out.
    ids = C.where(C.logical_or(ids < 0, ids >= n), n, ids)
    out = C._full("zeros", (n + 1, *data.shape[1:]), 0, data.dtype, "cpu", False)
    return core._add_at(out, ids.unsqueeze(1), data)[:n]


def _segment_extremum(pick, neutral):
    """Where each segment's extremum lies is found by NumPy, what is there by gathering it."""

    def operation(data, segment_ids, num_segments=None, sorted=False):
        data, ids, n = _segments(data, segment_ids, num_segments)
        values, where = convert_to_numpy(data), convert_to_numpy(ids)
        best = np.full((n, *values.shape[1:]), -1, np.int64)
        for row, k in enumerate(where):
            if 0 <= k < n:
                held = np.take_along_axis(values, np.maximum(best[k], 0)[None], 0)[0]
                better = (best[k] < 0) | pick(values[row], held)
                best[k] = np.where(better, row, best[k])
        at = convert_to_tensor(np.maximum(best, 0))
        out = data.gather(0, at)
        empty = convert_to_tensor(best < 0)
        low = neutral if data.dtype in FLOATS else _int_limit(data.dtype, neutral)
        return C.where(empty, knp._scalar(low, data.dtype), out)

    return operation


def _int_limit(dtype, neutral):
    info = F.iinfo(dtype)
    return info.min if neutral < 0 else info.max


segment_max = _segment_extremum(np.greater, -_math.inf)
segment_min = _segment_extremum(np.less, _math.inf)


def segment_prod(data, segment_ids, num_segments=None, sorted=False):
    data, ids, n = _segments(data, segment_ids, num_segments)
    member = ids.unsqueeze(0) == C._arange(0, n, 1, C.int64).unsqueeze(1)
    member = member.reshape(n, -1, *[1] * (data.dim() - 1))
    return C.prod(C.where(member, data.unsqueeze(0), knp._scalar(1, data.dtype)), 1).to(data.dtype)


# ---- order


def top_k(x, k, sorted=True):
    values, indices = F.topk(convert_to_tensor(x), int(k))
    return values, indices.to(C.int32)


def in_top_k(targets, predictions, k):
    targets = convert_to_tensor(targets).to(C.int64).unsqueeze(1)
    predictions = convert_to_tensor(predictions)
    least = top_k(predictions, k)[0].amin(-1, keepdim=True)
    return (predictions.gather(-1, targets) >= least).squeeze(-1)


def logsumexp(x, axis=None, keepdims=False):
    x = knp._float(x)
    if x.dim() == 0:
        return x
    axes = knp._axes(axis, x.dim())
    top = C.amax(x, axes, keepdim=True).detach()
    top = C.where(C.isfinite(top), top, knp.zeros_like(top))
    out = C.log(C.sum(C.exp(x - top), axes, keepdim=True)) + top
    return out if keepdims else knp.squeeze(out, axes)


def cdist(x, y):
    x, y = knp._operands(x, y)
    if x.dim() < 2 or y.dim() < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    d = x.unsqueeze(-2) - y.unsqueeze(-3)
    return C.sqrt(C.sum(d * d, -1))


# ---- signals


def extract_sequences(x, sequence_length, sequence_stride):
    x = convert_to_tensor(x)
    count = (x.shape[-1] - (sequence_length - sequence_stride)) // sequence_stride
    starts = C._arange(0, count, 1, C.int64).unsqueeze(1) * sequence_stride
    return knp.take(x, starts + C._arange(0, sequence_length, 1, C.int64), -1)


def _pair(x):
    """The real and imaginary parts that stand for a complex tensor."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(
            f"Input `x` should be a tuple of two tensors - real and imaginary.Received: x={x}"
        )
    real, imag = (convert_to_tensor(part) for part in x)
    if real.shape != imag.shape:
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary."
            "Both the real and imaginary parts should have the same shape. "
            f"Received: x[0].shape = {tuple(real.shape)}, x[1].shape = {tuple(imag.shape)}"
        )
    if real.dtype not in FLOATS or imag.dtype not in FLOATS:
        raise ValueError(f"At least one tensor in input `x` is not of type float.Received: x={x}.")
    return real, imag


def _complex(real, imag):
    return convert_to_numpy(real) + 1j * convert_to_numpy(imag)


def _parts(z, dtype):
    return convert_to_tensor(z.real, dtype), convert_to_tensor(z.imag, dtype)


class _Transform(Function):
    """A transform of the last axes; the gradient is the other one of the two, times scale."""

    @staticmethod
    def forward(ctx, real, imag, transform, other, scale):
        ctx.other, ctx.scale = other, scale
        return _parts(transform(_complex(real, imag)), real.dtype)

    @staticmethod
    def backward(ctx, real, imag):
        z = ctx.other(_complex(real, imag)) * ctx.scale
        return (*_parts(z, real.dtype), None, None, None)


def fft(x):
    real, imag = _pair(x)
    return _Transform.apply(real, imag, np.fft.fft, np.fft.ifft, real.shape[-1])


def fft2(x):
    real, imag = _pair(x)
    return _Transform.apply(real, imag, np.fft.fft2, np.fft.ifft2, _math.prod(real.shape[-2:]))


def ifft2(x):
    real, imag = _pair(x)
    return _Transform.apply(real, imag, np.fft.ifft2, np.fft.fft2, 1 / _math.prod(real.shape[-2:]))


class _Rfft(Function):
    @staticmethod
    def forward(ctx, x, length):
        ctx.size, ctx.length = x.shape[-1], length
        return _parts(np.fft.rfft(convert_to_numpy(x), length), x.dtype)

    @staticmethod
    def backward(ctx, real, imag):
        z = np.fft.ifft(_complex(real, imag), ctx.length).real * ctx.length
        return convert_to_tensor(_to_length(z, ctx.size), real.dtype), None


def _to_length(x, size):
    """The last axis cut, or with zeros behind."""
    short = np.zeros((*x.shape[:-1], max(size - x.shape[-1], 0)), x.dtype)
    return np.concatenate([x[..., :size], short], -1)


def rfft(x, fft_length=None):
    x = knp._float(x)
    return _Rfft.apply(x, x.shape[-1] if fft_length is None else fft_length)


class _Irfft(Function):
    @staticmethod
    def forward(ctx, real, imag, length):
        ctx.size, ctx.length = real.shape[-1], length
        return convert_to_tensor(np.fft.irfft(_complex(real, imag), length), real.dtype)

    @staticmethod
    def backward(ctx, grad):
        z = np.fft.rfft(convert_to_numpy(grad)) / ctx.length
        z[..., 1 : (ctx.length + 1) // 2] *= 2  # those that stand for their mirror images too
        return (*_parts(_to_length(z, ctx.size), grad.dtype), None)


def irfft(x, fft_length=None):
    real, imag = _pair(x)
    return _Irfft.apply(real, imag, 2 * (real.shape[-1] - 1) if fft_length is None else fft_length)


def _window(window, sequence_length, fft_length):
    """The window, padded to the length of the transform."""
    before = (fft_length - sequence_length) // 2
    if window is None:
        return np.ones(fft_length)
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError(
                "If a string is passed to `window`, it must be one of "
                f'`"hann"`, `"hamming"`. Received: window={window}'
            )
        turn = 2 * np.pi * np.arange(sequence_length) / sequence_length
        base = 0.5 if window == "hann" else 0.54
        window = base - (1 - base) * np.cos(turn)
    else:
        window = np.asarray(knp._host(window))
    if window.shape != (sequence_length,):
        raise ValueError(
            "The shape of `window` must be equal to [sequence_length]."
            f"Received: window shape={window.shape}"
        )
    return np.pad(window, (before, fft_length - sequence_length - before))


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = convert_to_tensor(x)
    if x.dtype not in (C.float32, C.float64):
        raise TypeError(
            "Invalid input type. Expected `float32` or `float64`. "
            f"Received: input type={core.NAMES[x.dtype]}"
        )
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
    weights = _window(window, sequence_length, fft_length)
    if center:
        widths = [(0, 0)] * (x.dim() - 1) + [(fft_length // 2, fft_length // 2)]
        x = knp.pad(x, widths, mode="reflect")
    frames = extract_sequences(x, fft_length, sequence_stride)
    return rfft(frames * convert_to_tensor(weights, x.dtype), fft_length)


def istft(
    x,
    sequence_length,
    sequence_stride,
    fft_length,
    length=None,
    window="hann",
    center=True,
):
    weights = _window(window, sequence_length, fft_length)
    frames = irfft(x, fft_length)
    frames = frames * convert_to_tensor(weights, frames.dtype)
    count = frames.shape[-2]
    size = fft_length + sequence_stride * (count - 1)
    out = _overlapped(frames, sequence_stride, size)
    if window is not None:
        # What windows without end would add up to: the same at the edges as within.
        square = np.pad(weights**2, (0, -fft_length % sequence_stride))
        scale = np.resize(square.reshape(-1, sequence_stride).sum(0), size)
        out = out / convert_to_tensor(np.where(scale > 1e-10, scale, 1.0), out.dtype)
    start = fft_length // 2 if center else 0
    end = size - (fft_length // 2 if center else 0) if length is None else start + length
    return out[..., start:end]


def _overlapped(frames, stride, size):
    """Rows of size, the frames added at every stride."""
    count, length = frames.shape[-2:]
    place = C._arange(0, count, 1, C.int64).unsqueeze(1) * stride
    place = (place + C._arange(0, length, 1, C.int64)).reshape(-1)
    flat = frames.reshape(-1, count * length).transpose(0, 1)
    out = C._full("zeros", (size, flat.shape[1]), 0, frames.dtype, "cpu", False)
    return out.index_add(0, place, flat).transpose(0, 1).reshape(*frames.shape[:-2], size)


# ---- special functions


def rsqrt(x):
    return C.rsqrt(knp._float(x))


def erf(x):
    return C.erf(knp._float(x))


def erfc(x):
    return C.erfc(knp._float(x))


def erfinv(x):
    return C.erfinv(knp._float(x))


def logdet(x):
    from simt.keras_backend.linalg import slogdet

    return slogdet(x)[1]
