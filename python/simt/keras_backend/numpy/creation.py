"""Tensors made of numbers: constants, ranges, grids, windows."""

import builtins
import math as _math

import numpy as np
from keras.src.backend.config import floatx

from simt._core import torch as C
from simt.keras_backend.core import (
    FLOATS,
    convert_to_tensor,
    native,
    result_dtype,
)
from simt.keras_backend.numpy.common import Tensor, _as, _full, _host, _kind, _scalar, _shape
from simt.torch import _functions as F


def zeros(shape, dtype=None):
    return C._full("zeros", _shape(shape), 0, native(dtype or floatx()), "cpu", False)


def ones(shape, dtype=None):
    return C._full("ones", _shape(shape), 1, native(dtype or floatx()), "cpu", False)


def empty(shape, dtype=None):
    return zeros(shape, dtype)


def full(shape, fill_value, dtype=None):
    dtype = native(dtype or floatx())
    if isinstance(fill_value, (int, float)):
        return C._full("full", _shape(shape), fill_value, dtype, "cpu", False)
    return convert_to_tensor(fill_value, dtype).expand(_shape(shape)).clone()


def zeros_like(x, dtype=None):
    x = convert_to_tensor(x)
    return C._full("zeros", x.shape, 0, native(dtype) if dtype else x.dtype, "cpu", False)


def ones_like(x, dtype=None):
    x = convert_to_tensor(x)
    return C._full("ones", x.shape, 1, native(dtype) if dtype else x.dtype, "cpu", False)


def empty_like(x, dtype=None):
    return zeros_like(x, dtype)


def full_like(x, fill_value, dtype=None):
    x = convert_to_tensor(x)
    return full(x.shape, fill_value, dtype or x.dtype)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype=dtype)


def copy(x):
    return convert_to_tensor(x).clone()


def arange(start, stop=None, step=None, dtype=None):
    given = [x for x in (start, stop, step) if x is not None]
    if dtype is None:
        dtype = result_dtype(*(_kind(x)[1] for x in given))
    start, stop, step = (x.item() if isinstance(x, Tensor) else x for x in (start, stop, step))
    if stop is None:
        start, stop = 0, start
    dtype = native(dtype)
    count = builtins.max(0, _math.ceil((stop - start) / (1 if step is None else step)))
    if count == 0:
        return _full((0,), 0, dtype)
    if dtype is C.bool:
        return convert_to_tensor(np.arange(start, stop, step, dtype=bool))
    return C._arange(start, stop, 1 if step is None else step, dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    start, k1 = _kind(start)
    stop, k2 = _kind(stop)
    compute = result_dtype(k1, k2, float)
    dtype = compute if dtype is None else native(dtype)
    start, stop = _as(start, compute).to(C.float64), _as(stop, compute).to(C.float64)
    start, stop = C.add(start, 0 * stop), C.add(stop, 0 * start)
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else stop * float("nan")
    at = C._arange(0, num, 1, C.float64).reshape(num, *(1 for _ in start.shape))
    out = start + at * step if parts > 0 else start + 0 * at
    if endpoint and num > 1:
        out = C.where(at == num - 1, stop, out)
    if dtype not in FLOATS:
        out = C.floor(out)
    out = out.to(dtype)
    if axis not in (0, -out.dim()):
        out = F.movedim(out, 0, axis)
    return (out, step.to(compute)) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    made = linspace(start, stop, num, endpoint, dtype=None, axis=axis)
    out = C.pow(_scalar(base, C.float64), made.to(C.float64))
    return out.to(made.dtype if dtype is None else native(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    made = np.geomspace(_host(start), _host(stop), num, endpoint, axis=axis)
    return convert_to_tensor(made, dtype or floatx())


def eye(N, M=None, k=0, dtype=None):
    M = N if M is None else M
    if not (hasattr(N, "__index__") and hasattr(M, "__index__")) or isinstance(N, Tensor):
        raise TypeError(f"Arguments `N` and `M` must be integers. Received: N={N}, M={M}")
    rows = C._arange(0, N, 1, None).unsqueeze(1)
    return (C._arange(0, M, 1, None) - rows == k).to(native(dtype or floatx()))


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    M = N if M is None else M
    rows = C._arange(0, N, 1, None).unsqueeze(1)
    return (C._arange(0, M, 1, None) - rows <= k).to(native(dtype or floatx()))


def meshgrid(*x, indexing="xy"):
    x = [convert_to_tensor(t).reshape(-1) for t in x]
    return builtins.list(F.meshgrid(*x, indexing=indexing))


def vander(x, N=None, increasing=False):
    x = convert_to_tensor(x)
    N = x.shape[0] if N is None else N
    dtype = x.dtype
    compute = result_dtype(dtype, native(floatx()))
    powers = C._arange(0, N, 1, compute)
    out = C.pow(x.to(compute).unsqueeze(1), powers)
    return (out if increasing else C.flip(out, (1,))).to(dtype)


def _window(name):
    def operation(x, *beta):
        n = builtins.int(convert_to_tensor(x).item())
        beta = [np.asarray(_host(b)).item() for b in beta]
        return convert_to_tensor(getattr(np, name)(n, *beta), floatx())

    return operation


bartlett = _window("bartlett")
blackman = _window("blackman")
hamming = _window("hamming")
hanning = _window("hanning")


def kaiser(x, beta):
    return _window("kaiser")(x, beta)
