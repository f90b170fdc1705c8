"""Reductions, running sums, segments."""

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend import math as kmath
from simt.keras_backend import numpy as knp
from simt.tensorflow import errors
from simt.tensorflow._arrays import sizes
from simt.tensorflow._elementwise import _ORDERED, allow
from simt.tensorflow._tensor import FLOATS, convert, is_tensor, native
from simt.tensorflow._types import OF_NATIVE

_NUMBERS = (
    "float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
    "qint16, quint16, uint16, complex128, half, uint32, uint64"
)
_EXTREMES = _ORDERED + ", qint8, quint8, qint32, qint16, quint16"


def _axes(kernel, x, axis):
    """None, or the axes as a tuple of ints that are there."""
    if axis is None:
        return None
    axes = sizes(axis)
    for at in axes:
        if not -x.dim() <= at < x.dim():
            text = f"Invalid reduction dimension ({at} for input with {x.dim()} dimension(s)"
            raise errors.refused(kernel, text)
    return axes


def _reduction(name, kernel, allowed, op):
    def function(input_tensor, axis=None, keepdims=False, name=None):
        x = convert(input_tensor)
        allow(kernel, allowed, x.dtype)
        axes = _axes(kernel, x, axis)
        return x if axes == () else op(x, axes, keepdims)

    function.__name__ = function.__qualname__ = name
    return function


def _logical(name, kernel, op):
    def function(input_tensor, axis=None, keepdims=False, name=None):
        x = convert(input_tensor) if is_tensor(input_tensor) else convert(input_tensor, C.bool)
        if x.dtype is not C.bool:
            raise errors.mismatch(kernel, 0, C.bool, x.dtype)
        return op(x, _axes(kernel, x, axis), keepdims)

    function.__name__ = function.__qualname__ = name
    return function


def _mean(x, axis, keepdims):
    if x.dtype in FLOATS:
        return knp.mean(x, axis, keepdims)
    count = 1
    for at in range(x.dim()) if axis is None else axis:
        count *= x.shape[at]
    return C.div(knp.sum(x, axis, keepdims), count).trunc().to(x.dtype)


def _extreme(op, of_none):
    def reduced(x, axis, keepdims):
        if x.numel():
            return op(x, axis, keepdims)
        value = float(of_none + "inf") if x.dtype in FLOATS else 0
        kept = knp.sum(x, axis, keepdims)
        return knp.full_like(kept.to(x.dtype), value)

    return reduced


def _spread(op):
    def reduced(x, axis, keepdims):
        if x.dtype not in FLOATS:
            raise TypeError(
                "Input must be either real or complex. Received integer type "
                f"{OF_NATIVE[x.dtype]!s}."
            )
        return op(x, axis, keepdims)

    return reduced


def _logsumexp(x, axis, keepdims):
    if x.dtype not in FLOATS:
        raise errors.not_allowed(
            "Exp", x.dtype, "bfloat16, half, float, double, complex64, complex128"
        )
    return kmath.logsumexp(x, axis, keepdims)


_ROWS = {
    "sum": ("Sum", _NUMBERS, lambda x, a, k: knp.sum(x, a, k).to(x.dtype)),
    "mean": ("Mean", _NUMBERS, _mean),
    "prod": ("Prod", _NUMBERS, lambda x, a, k: knp.prod(x, a, k, x.dtype)),
    "max": ("Max", _EXTREMES, _extreme(knp.max, "-")),
    "min": ("Min", _EXTREMES, _extreme(knp.min, "")),
    "logsumexp": ("Max", _EXTREMES, _logsumexp),
    "std": ("Mean", _NUMBERS, _spread(knp.std)),
    "variance": ("Mean", _NUMBERS, _spread(knp.var)),
}
reductions = {f"reduce_{n}": _reduction(f"reduce_{n}", *row) for n, row in _ROWS.items()}
reductions["reduce_all"] = _logical("reduce_all", "All", knp.all)
reductions["reduce_any"] = _logical("reduce_any", "Any", knp.any)


def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None):
    x = convert(input_tensor)
    return C.sqrt(knp.sum(C.square(x), _axes("EuclideanNorm", x, axis), keepdims))


def count_nonzero(input, axis=None, keepdims=None, dtype="int64", name=None):
    x = convert(input)
    found = (x != 0).to(native(dtype))
    return knp.sum(found, _axes("Sum", x, axis), bool(keepdims)).to(native(dtype))


def zero_fraction(value, name=None):
    value = convert(value)
    return (value == 0).to(C.float32).mean()


# ---- where the extremes are


def _extreme_place(name, kernel, op):
    def function(input, axis=None, output_type="int64", name=None):
        x = convert(input)
        allow(kernel, _EXTREMES + ", bool", x.dtype)
        at = 0 if axis is None else int(axis)
        if not -x.dim() <= at < x.dim():
            text = f"Expected dimension in the range [{-x.dim()}, {x.dim()}), but got {at}"
            raise errors.refused(kernel, text, "")
        return op(x, at).to(native(output_type))

    function.__name__ = function.__qualname__ = name
    return function


argmax = _extreme_place("argmax", "ArgMax", knp.argmax)
argmin = _extreme_place("argmin", "ArgMin", knp.argmin)


# ---- running sums and products


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    return _cumulative("Cumsum", knp.cumsum, x, axis, exclusive, reverse, 0)


def cumprod(x, axis=0, exclusive=False, reverse=False, name=None):
    return _cumulative("Cumprod", knp.cumprod, x, axis, exclusive, reverse, 1)


def _cumulative(kernel, op, x, axis, exclusive, reverse, neutral):
    x, axis = convert(x), int(axis)
    allow(kernel, _NUMBERS, x.dtype)
    if not -x.dim() <= axis < x.dim():
        text = f"ScanOp: Expected scan axis in the range [{-x.dim()}, {x.dim()}), but got {axis}"
        raise errors.refused(kernel, text)
    x = C.flip(x, (axis,)) if reverse else x
    if exclusive:
        first = knp.full_like(x.narrow(axis, 0, 1), neutral)
        x = C.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    out = op(x, axis).to(x.dtype)
    return C.flip(out, (axis,)) if reverse else out


# ---- segments, counts


def _segments(op):
    def reduced(data, segment_ids, num_segments, name=None):
        return op(convert(data), convert(segment_ids), int(convert(num_segments).item()))

    return reduced


unsorted_segment_sum = _segments(lambda d, s, n: kmath.segment_sum(d, s, n))
unsorted_segment_max = _segments(lambda d, s, n: kmath.segment_max(d, s, n))


def segment_sum(data, segment_ids, name=None):
    ids = convert(segment_ids)
    return kmath.segment_sum(convert(data), ids, int(ids[-1].item()) + 1)


def segment_max(data, segment_ids, name=None):
    ids = convert(segment_ids)
    return kmath.segment_max(convert(data), ids, int(ids[-1].item()) + 1)


def segment_mean(data, segment_ids, name=None):
    data = convert(data)
    total = segment_sum(data, segment_ids)
    count = segment_sum(knp.ones_like(data), segment_ids)
    return knp.divide_no_nan(total, count)


def unsorted_segment_mean(data, segment_ids, num_segments, name=None):
    data = convert(data)
    total = unsorted_segment_sum(data, segment_ids, num_segments)
    count = unsorted_segment_sum(knp.ones_like(data), segment_ids, num_segments)
    return knp.divide_no_nan(total, count)


def polyval(coeffs, x, name=None):
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = convert(x)
    total = knp.zeros_like(x)
    for c in coeffs:
        total = total * x + (convert(c) if is_tensor(c) else convert(c, x.dtype))
    return total


def bincount(
    arr,
    weights=None,
    minlength=None,
    maxlength=None,
    dtype="int32",
    name=None,
    axis=None,
    binary_output=False,
):
    if axis is not None or binary_output:
        raise NotImplementedError(
            "tf.math.bincount(axis=, binary_output=): not in simt yet; nearest is tf.one_hot"
        )
    arr = convert(arr).reshape(-1)
    weights = None if weights is None else convert(weights).reshape(-1)
    if maxlength is not None:
        keep = arr < int(maxlength)
        arr, weights = arr[keep], None if weights is None else weights[keep]
    made = knp.bincount(arr, weights, int(minlength or 0))
    return made.to(native(dtype) if weights is None else weights.dtype)


def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype="int32", name=None):
    labels, predictions = convert(labels).to(C.int64), convert(predictions).to(C.int64)
    if num_classes is None:
        num_classes = int(C.maximum(C.amax(labels), C.amax(predictions)).item()) + 1
    n, dtype = int(num_classes), native(dtype)
    count = knp.ones_like(labels).to(dtype) if weights is None else convert(weights).to(dtype)
    return core.scatter(C.stack([labels, predictions], 1), count, (n, n))


def in_top_k(targets, predictions, k, name=None):
    return kmath.in_top_k(convert(targets), convert(predictions), int(k))
