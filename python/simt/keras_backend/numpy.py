"""keras.ops of NumPy's names. dtypes follow Keras's promotion; NumPy itself does what has neither a
gradient nor a place in the table of operations (windows, histograms, set operations)."""

import builtins
import math as _math

import numpy as np
from keras.src.backend.common import KerasVariable
from keras.src.backend.common import dtypes as keras_dtypes
from keras.src.backend.config import floatx

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend.core import (
    FLOATS,
    NAMES,
    convert_to_numpy,
    convert_to_tensor,
    native,
    result_dtype,
)
from simt.torch import _functions as F

Tensor = C.Tensor
_INTS = frozenset(core.DTYPES[n] for n in keras_dtypes.INT_TYPES)
_SMALL = {C.bool: C.int32, C.int8: C.int32, C.int16: C.int32, C.uint8: C.uint32, C.uint16: C.uint32}


def _float(x):
    """x as a tensor of floats; integers become floatx."""
    x = convert_to_tensor(x)
    return x if x.dtype in FLOATS else x.to(native(floatx()))


def _host(x):
    return convert_to_numpy(x) if isinstance(x, (Tensor, KerasVariable)) else x


def _like_float(dtype):
    """The float dtype that stands for an integer one where NumPy computes in float64."""
    if dtype in FLOATS:
        return dtype
    return C.float64 if dtype in (C.int64, C.uint64) else native(floatx())


def _full(shape, value, dtype):
    shape = (shape,) if isinstance(shape, int) else tuple(builtins.int(n) for n in shape)
    return C._full("full", shape, value, dtype, "cpu", False)


def _axes(axis, ndim):
    """axis as a list of non-negative numbers; None is all."""
    if axis is None:
        return builtins.list(range(ndim))
    axis = (axis,) if isinstance(axis, int) or hasattr(axis, "__index__") else axis
    out = []
    for a in axis:
        a = builtins.int(a)
        if not -ndim <= a < ndim:
            raise ValueError(f"axis {a} is out of bounds for array of dimension {ndim}")
        out.append(a % ndim if ndim else 0)
    return out


# ---- elementwise, of one operand


def _float_unary(op):
    return lambda x: op(_float(x))


for _name in (
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "floor",
    "ceil",
):
    globals()[_name] = _float_unary(getattr(C, _name))
    globals()[_name].__name__ = _name
sqrt = globals()["sqrt"]
exp = globals()["exp"]
log = globals()["log"]


def cbrt(x):
    x = convert_to_tensor(x)
    return C._elementwise("cbrt", (x.to(_like_float(x.dtype)),), ())


def absolute(x):
    x = convert_to_tensor(x)
    return x if x.dtype is C.bool else C.abs(x)


def abs(x):
    return absolute(x)


def fabs(x):
    return C.abs(_float(x))


def negative(x):
    return C.neg(convert_to_tensor(x))


def square(x):
    x = convert_to_tensor(x)
    return C.square(x.to(C.int32) if x.dtype is C.bool else x)


def sign(x):
    return C.sign(convert_to_tensor(x))


def signbit(x):
    return C.signbit(convert_to_tensor(x))


def reciprocal(x):
    return C.reciprocal(_float(x))


def trunc(x):
    x = convert_to_tensor(x)
    return C.trunc(x) if x.dtype in FLOATS else x


def round(x, decimals=0):
    x = convert_to_tensor(x)
    if x.dtype is C.bool:
        x = x.to(C.int32)
    if x.dtype not in FLOATS:
        if decimals >= 0:
            return x
        scale = 10**-decimals
        return (C.round(x.to(C.float64) / scale) * scale).to(x.dtype)
    if decimals == 0:
        return C.round(x)
    scale = 10.0**decimals
    return C.round(x * scale) / scale


def isfinite(x):
    return C.isfinite(convert_to_tensor(x))


def isinf(x):
    return C.isinf(convert_to_tensor(x))


def isnan(x):
    return C.isnan(convert_to_tensor(x))


def isneginf(x):
    x = convert_to_tensor(x)
    return C.logical_and(C.isinf(x), x < 0)


def isposinf(x):
    x = convert_to_tensor(x)
    return C.logical_and(C.isinf(x), x > 0)


def isreal(x):
    return _full(convert_to_tensor(x).shape, True, C.bool)


def real(x):
    return convert_to_tensor(x)


def imag(x):
    return zeros_like(x)


def conjugate(x):
    return convert_to_tensor(x)


def conj(x):
    return conjugate(x)


def angle(x):
    x = _float(x)
    return where(x < 0, _math.pi, where(isnan(x), x, zeros_like(x))).to(x.dtype)


def deg2rad(x):
    x = convert_to_tensor(x)
    return x.to(_like_float(x.dtype)) * (_math.pi / 180)


def rad2deg(x):
    x = convert_to_tensor(x)
    return x.to(_like_float(x.dtype)) * (180 / _math.pi)


def i0(x):
    """The modified Bessel function: its power series below 8, the asymptotic one above."""
    x = convert_to_tensor(x)
    dtype = _like_float(x.dtype)
    x = C.abs(x.to(C.float64))
    small, large = C.clamp_max(x, 12.0), C.clamp_min(x, 12.0)
    quarter, term, series = small * small / 4, 1.0, 1.0
    for k in range(1, 40):
        term = term * quarter / (k * k)
        series = series + term
    term, tail = 1.0, 1.0
    for k in range(1, 20):
        term = term * (2 * k - 1) ** 2 / (8 * k * large)
        tail = tail + term
    asymptotic = C.exp(large) / C.sqrt(2 * _math.pi * large) * tail
    return C.where(x < 12, series, asymptotic).to(dtype)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = convert_to_tensor(x)
    if x.dtype not in FLOATS:
        return x
    info = F.finfo(x.dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    x = where(isnan(x), _scalar(nan, x.dtype), x)
    x = where(isposinf(x), _scalar(high, x.dtype), x)
    return where(isneginf(x), _scalar(low, x.dtype), x)


def _scalar(value, dtype):
    return C.tensor(value, dtype=dtype) if not isinstance(value, Tensor) else value.to(dtype)


def clip(x, x_min, x_max):
    x = convert_to_tensor(x)
    if x.dtype is C.bool:
        x = x.to(C.int32)
    dtype = x.dtype
    if isinstance(x_min, (int, float)) and isinstance(x_max, (int, float)):
        if dtype not in FLOATS:
            low, high = _scalar(x_min, C.float64), _scalar(x_max, C.float64)
            return C.minimum(C.maximum(x.to(C.float64), low), high).to(dtype)
        return C.clip(x, x_min, x_max)
    return C.minimum(
        C.maximum(x, convert_to_tensor(x_min, dtype)), convert_to_tensor(x_max, dtype)
    ).to(dtype)


# ---- elementwise, of two operands


def _operands(x1, x2, *more):
    """Both as tensors of their common dtype; Python's numbers are weak."""
    if isinstance(x1, KerasVariable):
        x1 = x1.value
    if isinstance(x2, KerasVariable):
        x2 = x2.value
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype:
        if not more or x1.dtype in FLOATS:
            return x1, x2
    x1, k1 = _kind(x1)
    x2, k2 = _kind(x2)
    dtype = result_dtype(k1, k2, *more)
    return _as(x1, dtype), _as(x2, dtype)


def _kind(x):
    if isinstance(x, Tensor):
        return x, x.dtype
    if type(x) in (int, float, bool):
        return x, type(x)
    if isinstance(x, (int, float)) and not isinstance(x, np.generic):
        return x, float if isinstance(x, float) else int
    x = convert_to_tensor(x)
    return x, x.dtype


def _as(x, dtype):
    if isinstance(x, Tensor):
        return x if x.dtype is dtype else x.to(dtype)
    return C.tensor(x, dtype=dtype)


def _binary(op, *more):
    return lambda x1, x2: op(*_operands(x1, x2, *more))


def _arithmetic(op):
    """As _binary; a number that is of the tensor's kind goes to the operation as it is."""
    plain = _binary(op)

    def operation(x1, x2):
        if type(x2) in (int, float):
            if isinstance(x1, KerasVariable):
                x1 = x1.value
            if isinstance(x1, Tensor) and x1.dtype in FLOATS:
                return op(x1, x2)
        return plain(x1, x2)

    return operation


add = _arithmetic(C.add)
subtract = _arithmetic(C.sub)
multiply = _arithmetic(C.mul)
maximum = _binary(C.maximum)
minimum = _binary(C.minimum)
fmax = _binary(C.fmax)
fmin = _binary(C.fmin)
power = _binary(C.pow)
logaddexp = _binary(C.logaddexp, float)
logaddexp2 = _binary(C.logaddexp2, float)
arctan2 = _binary(C.arctan2, float)
nextafter = _binary(C.nextafter, float)
floor_divide = _binary(C.floor_divide)
bitwise_and = _binary(C.bitwise_and)
bitwise_or = _binary(C.bitwise_or)
bitwise_xor = _binary(C.bitwise_xor)
equal = _binary(C.eq)
not_equal = _binary(C.ne)
greater = _binary(C.gt)
greater_equal = _binary(C.ge)
less = _binary(C.lt)
less_equal = _binary(C.le)
_divide = _binary(C.true_divide, float)


def divide(x1, x2):
    return _divide(x1, x2)


def true_divide(x1, x2):
    return _divide(x1, x2)


def divide_no_nan(x1, x2):
    x1, x2 = _operands(x1, x2, float)
    zero = x2 == 0
    return C.where(zero, _scalar(0, x1.dtype), x1 / C.where(zero, _scalar(1, x2.dtype), x2))


def _modulo(op):
    def operation(x1, x2):
        x1, x2 = _operands(x1, x2)
        if x1.dtype is C.bool:
            x1, x2 = x1.to(C.int32), x2.to(C.int32)
        return op(x1, x2)

    return operation


mod = _modulo(C.remainder)
fmod = _modulo(C.fmod)


def hypot(x1, x2):
    x1, x2 = _operands(x1, x2)
    dtype = _like_float(x1.dtype)
    return C.hypot(x1.to(dtype), x2.to(dtype))


def heaviside(x1, x2):
    x1, x2 = _operands(x1, x2)
    dtype = _like_float(x1.dtype)
    x1, x2 = x1.to(dtype), x2.to(dtype)
    out = C.where(x1 == 0, x2, (x1 > 0).to(dtype))
    return C.where(C.isnan(x1), x1, out)


def ldexp(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = result_dtype(x1.dtype, x2.dtype, float)
    if x2.dtype not in _INTS:
        raise TypeError(
            f"ldexp exponent must be an integer type. Received: x2 dtype={NAMES[x2.dtype]}"
        )
    return x1.to(dtype) * C.exp2(x2.to(dtype))


def _shift(op):
    def operation(x, y):
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, x.dtype if isinstance(y, int) else None)
        dtype = result_dtype(x.dtype, y.dtype)
        return op(x.to(dtype), y.to(dtype))

    return operation


bitwise_left_shift = left_shift = _shift(C.bitwise_left_shift)
bitwise_right_shift = right_shift = _shift(C.bitwise_right_shift)


def bitwise_invert(x):
    return C.bitwise_not(convert_to_tensor(x))


def bitwise_not(x):
    return bitwise_invert(x)


def _logical(op):
    return lambda x1, x2: op(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


logical_and = _logical(C.logical_and)
logical_or = _logical(C.logical_or)
logical_xor = _logical(C.logical_xor)


def logical_not(x):
    return C.logical_not(convert_to_tensor(x))


def _host_binary(op):
    """Of integers: by NumPy."""

    def operation(x1, x2):
        x1, x2 = _operands(x1, x2)
        return convert_to_tensor(op(_host(x1), _host(x2)), x1.dtype)

    return operation


gcd = _host_binary(np.gcd)
lcm = _host_binary(np.lcm)


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    x1, x2 = _operands(x1, x2)
    if x1.dtype not in FLOATS:
        x1, x2 = x1.to(C.float64), x2.to(C.float64)
    near = C.abs(x1 - x2) <= atol + rtol * C.abs(x2)
    near = C.logical_or(C.logical_and(near, C.isfinite(x2)), x1 == x2)
    if equal_nan:
        near = C.logical_or(near, C.logical_and(C.isnan(x1), C.isnan(x2)))
    return near


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return all(isclose(x1, x2, rtol, atol, equal_nan))


def where(condition, x1=None, x2=None):
    condition = convert_to_tensor(condition, "bool")
    if x1 is None or x2 is None:
        return nonzero(condition)
    x1, x2 = _operands(x1, x2)
    return C.where(condition, x1, x2)


def select(condlist, choicelist, default=0):
    kinds = [_kind(x) for x in (*choicelist, default)]
    dtype = result_dtype(*(k for _, k in kinds))
    out = _as(kinds[-1][0], dtype)
    pairs = builtins.list(zip(condlist, kinds[:-1], strict=True))
    for condition, (choice, _) in reversed(pairs):
        out = C.where(convert_to_tensor(condition, "bool"), _as(choice, dtype), out)
    return out


# ---- creation


def _shape(shape):
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    if isinstance(shape, int) or hasattr(shape, "__index__"):
        return (builtins.int(shape),)
    return tuple(builtins.int(n) for n in shape)


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
        out = moveaxis(out, 0, axis)
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


# ---- reductions


def _reduce(op, x, axis, keepdims):
    if axis == () or (axis is not None and not isinstance(axis, int) and len(tuple(axis)) == 0):
        return x
    return op(x, _axes(axis, x.dim()), keepdim=keepdims) if x.dim() else op(x)


def sum(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = _SMALL.get(x.dtype, x.dtype)
    return _reduce(C.sum, x.to(dtype), axis, keepdims).to(dtype)


def mean(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = x.dtype if x.dtype in FLOATS else result_dtype(x.dtype, "float32")
    return _reduce(C.mean, x.to(dtype), axis, keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x)
    dtype = _SMALL.get(x.dtype, x.dtype) if dtype is None else native(dtype)
    return _reduce(C.prod, x.to(dtype), axis, keepdims).to(dtype)


def _extremum(op, combine):
    def operation(x, axis=None, keepdims=False, initial=None):
        x = convert_to_tensor(x)
        if initial is not None and 0 in x.shape:
            shape = [1 if i in _axes(axis, x.dim()) else n for i, n in enumerate(x.shape)]
            out = _full(shape, initial, x.dtype)
            return out if keepdims else out.squeeze(tuple(_axes(axis, x.dim())))
        out = _reduce(op, x, axis, keepdims)
        return out if initial is None else combine(out, _scalar(initial, x.dtype))

    return operation


max = _extremum(C.amax, C.maximum)
min = _extremum(C.amin, C.minimum)


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def ptp(x, axis=None, keepdims=False):
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def all(x, axis=None, keepdims=False):
    return _reduce(C.all, convert_to_tensor(x, "bool"), axis, keepdims)


def any(x, axis=None, keepdims=False):
    return _reduce(C.any, convert_to_tensor(x, "bool"), axis, keepdims)


def count_nonzero(x, axis=None):
    return _reduce(C.sum, (convert_to_tensor(x) != 0).to(C.int32), axis, False).to(C.int32)


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    result = result_dtype(x.dtype, float)
    x = x.to(result_dtype(x.dtype, "float32"))
    d = x - _reduce(C.mean, x, axis, True)
    return _reduce(C.mean, d * d, axis, keepdims).to(result)


def std(x, axis=None, keepdims=False):
    return C.sqrt(var(_float(x), axis, keepdims))


def _position(op):
    def operation(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype is C.bool:
            x = x.to(C.int32)
        if x.dtype in FLOATS and x.dim():
            tiny = -F.finfo(C.float32).tiny
            x = x.to(result_dtype(x.dtype, "float32"))
            x = C.where(C.logical_and(x == 0, C.signbit(x)), _scalar(tiny, x.dtype), x)
        if axis is None:
            out = op(x.reshape(-1))
            return (out.reshape([1] * x.dim()) if keepdims else out).to(C.int32)
        return op(x, _axes(axis, x.dim())[0], keepdim=keepdims).to(C.int32)

    return operation


argmax = _position(C.argmax)
argmin = _position(C.argmin)


def average(x, axis=None, weights=None):
    x = convert_to_tensor(x)
    if weights is None:
        return mean(x.to(result_dtype(x.dtype, float)), axis)
    weights = convert_to_tensor(weights)
    dtype = result_dtype(x.dtype, weights.dtype, float)
    x, weights = x.to(dtype), weights.to(dtype)
    if weights.dim() == 1 and x.dim() > 1 and axis is not None:
        form = [1] * x.dim()
        form[_axes(axis, x.dim())[0]] = -1
        weights = weights.reshape(form)
    weights = weights.expand(x.shape)
    return sum(x * weights, axis) / sum(weights, axis)


def _cumulative(op):
    def operation(x, axis=None, dtype=None):
        x = convert_to_tensor(x)
        dtype = x.dtype if dtype is None else native(dtype)
        x = x.to(C.int32 if dtype is C.bool else dtype)
        if axis is None:
            x, axis = x.reshape(-1), 0
        return op(x, _axes(axis, x.dim())[0]).to(x.dtype) if x.dim() else op(x.reshape(1), 0)

    return operation


cumsum = _cumulative(C.cumsum)


def _products(x, axis):
    return core.associative_scan(C.mul, x, axis=axis)


cumprod = _cumulative(_products)


# ---- the same without NaN


def _without_nan(x, value):
    x = convert_to_tensor(x)
    return C.where(C.isnan(x), _scalar(value, x.dtype), x) if x.dtype in FLOATS else x


def nansum(x, axis=None, keepdims=False):
    return sum(_without_nan(x, 0), axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(_without_nan(x, 1), axis, keepdims)


def nancumsum(x, axis=None, dtype=None):
    return cumsum(_without_nan(x, 0), axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(_without_nan(x, 1), axis, dtype)


def nanmean(x, axis=None, keepdims=False):
    x = _float(x)
    count = sum((~C.isnan(x)).to(x.dtype), axis, keepdims)
    return nansum(x, axis, keepdims) / count


def nanvar(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    result = result_dtype(x.dtype, float)
    x = x.to(result_dtype(x.dtype, "float32"))
    return nanmean(C.square(x - nanmean(x, axis, True)), axis, keepdims).to(result)


def nanstd(x, axis=None, keepdims=False):
    return C.sqrt(nanvar(_float(x), axis, keepdims))


def _nan_extremum(op, neutral):
    def operation(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype not in FLOATS:
            return op(x, axis, keepdims)
        out = op(_without_nan(x, neutral), axis, keepdims)
        return C.where(all(C.isnan(x), axis, keepdims), _scalar(_math.nan, x.dtype), out)

    return operation


nanmax = _nan_extremum(max, -_math.inf)
nanmin = _nan_extremum(min, _math.inf)


def _nan_position(op, neutral):
    def operation(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype not in FLOATS:
            return op(x, axis, keepdims)
        out = op(_without_nan(x, neutral), axis, keepdims)
        return C.where(all(C.isnan(x), axis, keepdims), _scalar(-1, C.int32), out)

    return operation


nanargmax = _nan_position(argmax, -_math.inf)
nanargmin = _nan_position(argmin, _math.inf)


# ---- order


def sort(x, axis=-1):
    x = convert_to_tensor(x)
    if x.dim() == 0:
        return x
    if axis is None:
        x, axis = x.reshape(-1), 0
    return F.sort(x, axis)[0]


def argsort(x, axis=-1):
    x = convert_to_tensor(x)
    if x.dim() == 0:
        return _scalar(0, C.int32)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return C._argsort(x, axis, False).to(C.int32)


def argpartition(x, kth, axis=-1):
    return argsort(x, axis)


def _places(q, n, method):
    """Positions below and above in a sorted row of n, and how far between: tensors of q's shape."""
    at = q * (n - 1)
    if method == "lower":
        low = C.floor(at)
        return low, low, None
    if method == "higher":
        high = C.ceil(at)
        return high, high, None
    if method == "nearest":
        near = C.round(at)
        return near, near, None
    low, high = C.floor(at), C.ceil(at)
    return (
        low,
        high,
        (
            at - low
            if method == "linear"
            else C._full("full", at.shape, 0.5, at.dtype, "cpu", False)
        ),
    )


def quantile(x, q, axis=None, method="linear", keepdims=False):
    x = convert_to_tensor(x)
    result = native(floatx()) if x.dtype is C.int64 else result_dtype(x.dtype, float)
    q = convert_to_tensor(q).to(C.float64)
    x = x.to(C.float64)
    axes = _axes(axis, x.dim())
    rest = [i for i in range(x.dim()) if i not in axes]
    rows = x.permute(rest + axes).reshape([x.shape[i] for i in rest] + [-1])
    n = rows.shape[-1]
    ordered = F.sort(rows, -1)[0]
    low, high, part = _places(q.reshape(-1), n, method)
    below = ordered.index_select(-1, low.to(C.int64))
    if part is None:
        out = below
    else:
        above = ordered.index_select(-1, high.to(C.int64))
        out = C.where(part == 0, below, below + (above - below) * part)
    bad = C.isnan(rows).any(-1, keepdim=True)
    out = C.where(bad, _scalar(_math.nan, C.float64), out)
    out = moveaxis(out, -1, 0).reshape(tuple(q.shape) + tuple(out.shape[:-1]))
    if keepdims:
        kept = [1 if i in axes else x.shape[i] for i in range(x.dim())]
        out = out.reshape(tuple(q.shape) + tuple(kept))
    return out.to(result)


def percentile(x, q, axis=None, method="linear", keepdims=False):
    q = convert_to_tensor(q).to(C.float64) / 100
    x = convert_to_tensor(x)
    return quantile(x, q, axis, method, keepdims).to(result_dtype(x.dtype, float))


def median(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    return quantile(x, 0.5, axis, "linear", keepdims).to(result_dtype(x.dtype, float))


def nanquantile(x, q, axis=None, method="linear", keepdims=False):
    x = convert_to_tensor(x)
    result = result_dtype(x.dtype, float)
    axis = None if axis is None else tuple(_axes(axis, x.dim()))
    made = np.nanquantile(
        _host(x.to(C.float64)), _host(convert_to_tensor(q)), axis, method=method, keepdims=keepdims
    )
    return convert_to_tensor(made, result)


def nanpercentile(x, q, axis=None, method="linear", keepdims=False):
    x = convert_to_tensor(x)
    dtype = x.dtype if x.dtype in FLOATS else native(floatx())
    q = convert_to_tensor(q).to(C.float64) / 100
    return nanquantile(x, q, axis, method, keepdims).to(dtype)


def nanmedian(x, axis=None, keepdims=False):
    if axis == ():
        return _float(x)
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = _operands(sorted_sequence, values)
    if sorted_sequence.dim() != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. "
            "You can use `keras.ops.vectorized_map` "
            "to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={tuple(sorted_sequence.shape)}"
        )
    values, order = values.detach(), sorted_sequence.detach()
    return convert_to_tensor(np.searchsorted(_host(order), _host(values), side=side), "int32")


def digitize(x, bins):
    x, bins = convert_to_tensor(x), convert_to_tensor(bins)
    return convert_to_tensor(np.digitize(_host(x), _host(bins)), "int32")


def bincount(x, weights=None, minlength=0, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with simt backend")
    x = convert_to_tensor(x)
    dtype = C.int32
    if weights is not None:
        weights = convert_to_tensor(weights)
        dtype = result_dtype(x.dtype, weights.dtype)
        weights = _host(weights)
    x = _host(x)
    if x.ndim == 2:
        rows = [
            np.bincount(row, None if weights is None else weights[i], minlength)
            for i, row in enumerate(x)
        ]
        size = builtins.max((len(row) for row in rows), default=0)
        made = np.stack([np.pad(row, (0, size - len(row))) for row in rows])
    else:
        made = np.bincount(x, weights, minlength)
    return convert_to_tensor(made, dtype)


def histogram(x, bins=10, range=None):
    x = convert_to_tensor(x)
    dtype = x.dtype if x.dtype in FLOATS else native(floatx())
    counts, edges = np.histogram(_host(x.to(C.float64)), bins=_host(bins), range=range)
    return convert_to_tensor(counts, "int32"), convert_to_tensor(edges, dtype)


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = _operands(x1, x2)
    found = np.isin(_host(x1), _host(x2), assume_unique=assume_unique, invert=invert)
    return convert_to_tensor(found)


def nonzero(x):
    x = convert_to_tensor(x)
    return tuple(convert_to_tensor(i, "int32") for i in np.nonzero(_host(x)))


def unique(
    x,
    sorted=True,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    size=None,
    fill_value=None,
):
    x = convert_to_tensor(x)
    made = np.unique(
        _host(x), return_index, return_inverse, return_counts, axis=axis, equal_nan=False
    )
    made = builtins.list(made) if isinstance(made, tuple) else [made]
    kinds = ["values"]
    kinds += [
        k
        for k, w in zip(
            ("index", "inverse", "counts"),
            (return_index, return_inverse, return_counts),
            strict=True,
        )
        if w
    ]
    if size is not None:
        made = [
            part if kind == "inverse" else _to_size(part, kind, axis, size, fill_value)
            for part, kind in zip(made, kinds, strict=True)
        ]
    out = [
        convert_to_tensor(part, x.dtype if kind == "values" else "int32")
        for part, kind in zip(made, kinds, strict=True)
    ]
    return out[0] if len(out) == 1 else tuple(out)


def _to_size(part, kind, axis, size, fill):
    dim = 0 if axis is None or kind != "values" else axis
    part = np.take(part, range(builtins.min(size, part.shape[dim])), dim)
    widths = [(0, 0)] * part.ndim
    widths[dim] = (0, size - part.shape[dim])
    value = {"values": fill or 0, "index": 1, "counts": 0}[kind]
    return np.pad(part, widths, constant_values=value)


# ---- shapes


def ndim(x):
    return convert_to_tensor(x).dim()


def size(x):
    return convert_to_tensor(x).numel()


def reshape(x, newshape):
    x = convert_to_tensor(x)
    return x.reshape(_shape(newshape))


def ravel(x):
    return convert_to_tensor(x).reshape(-1)


def transpose(x, axes=None):
    x = convert_to_tensor(x)
    if axes is None:
        axes = reversed(range(x.dim()))
    return x.permute(builtins.list(axes)) if x.dim() else x


def swapaxes(x, axis1, axis2):
    return convert_to_tensor(x).transpose(axis1, axis2)


def moveaxis(x, source, destination):
    return F.movedim(convert_to_tensor(x), source, destination)


def expand_dims(x, axis):
    x = convert_to_tensor(x)
    axis = (axis,) if isinstance(axis, int) else tuple(axis)
    places = _axes(axis, x.dim() + len(axis))
    for a in builtins.sorted(places):
        x = x.unsqueeze(a)
    return x


def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return x.squeeze()
    axes = _axes(axis, x.dim())
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(
                f"Cannot squeeze axis={a}, because the dimension is not 1. "
                f"Received: shape={tuple(x.shape)}"
            )
    return x.reshape([n for i, n in enumerate(x.shape) if i not in axes])


def broadcast_to(x, shape):
    return convert_to_tensor(x).expand(_shape(shape))


def _same_dtype(xs):
    xs = [convert_to_tensor(x) for x in xs]
    kinds = {x.dtype for x in xs}
    if len(kinds) > 1:
        dtype = result_dtype(*kinds)
        xs = [x.to(dtype) for x in xs]
    return xs


def concatenate(xs, axis=0):
    xs = _same_dtype(xs)
    if axis is None:
        return C.cat([x.reshape(-1) for x in xs], 0)
    return C.cat(xs, axis)


def stack(x, axis=0):
    return C.stack(_same_dtype(x), axis)


def append(x1, x2, axis=None):
    return concatenate([x1, x2], axis)


def _at_least(x, n):
    return x.reshape([1] * (n - x.dim()) + builtins.list(x.shape)) if x.dim() < n else x


def vstack(xs):
    return C.cat([_at_least(x, 2) for x in _same_dtype(xs)], 0)


def hstack(xs):
    xs = [_at_least(x, 1) for x in _same_dtype(xs)]
    return C.cat(xs, 0 if xs[0].dim() == 1 else 1)


def dstack(xs):
    def deep(x):
        x = _at_least(x, 2)
        return x.unsqueeze(-1) if x.dim() == 2 else x

    return C.cat([deep(x) for x in _same_dtype(xs)], 2)


def split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if isinstance(indices_or_sections, int):
        n = x.shape[axis]
        if n % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        return _cut(x, [n // indices_or_sections * i for i in range(1, indices_or_sections)], axis)
    return _cut(x, indices_or_sections, axis)


def array_split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, int):
        return _cut(x, indices_or_sections, axis)
    each, more = divmod(x.shape[axis], indices_or_sections)
    ends = [each * i + builtins.min(i, more) for i in range(1, indices_or_sections)]
    return _cut(x, ends, axis)


def _cut(x, at, axis):
    n = x.shape[axis]
    at = [builtins.int(i) for i in (at.tolist() if hasattr(at, "tolist") else at)]
    ends = [builtins.max(builtins.min(i + n if i < 0 else i, n), 0) for i in at]
    starts, ends = [0, *ends], [*ends, n]
    return [
        x.narrow(axis, builtins.min(s, n), builtins.max(e - s, 0))
        for s, e in zip(starts, ends, strict=True)
    ]


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if x.dim() == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def flip(x, axis=None):
    x = convert_to_tensor(x)
    return C.flip(x, tuple(_axes(axis, x.dim()))) if x.dim() else x


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if array.dim() < 2:
        raise ValueError(
            f"Input array must have at least 2 dimensions. Received: array.ndim={array.dim()}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    a, b = _axes(axes, array.dim())
    for _ in range(k % 4):
        array = C.flip(array, (b,)).transpose(a, b)
    return array


def roll(x, shift, axis=None):
    x = convert_to_tensor(x)
    if axis is None or isinstance(axis, int):
        if axis is None and not isinstance(shift, int):
            shift = builtins.sum(shift)
        return F.roll(x, shift, axis)
    shift = (shift,) * len(axis) if isinstance(shift, int) else shift
    return F.roll(x, tuple(shift), tuple(axis))


def repeat(x, repeats, axis=None):
    x = convert_to_tensor(x)
    if not isinstance(repeats, int):
        repeats = convert_to_tensor(repeats, "int64")
        repeats = repeats.item() if repeats.numel() == 1 else repeats
    return F.repeat_interleave(x, repeats, axis)


def tile(x, repeats):
    return F.tile(convert_to_tensor(x), _shape(repeats))


def pad(x, pad_width, mode="constant", constant_values=None):
    x = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be "
            "provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    widths = np.broadcast_to(np.asarray(_host(pad_width)), (x.dim(), 2)).tolist()
    if mode == "constant":
        return _pad_constant(x, widths, 0 if constant_values is None else constant_values)
    for dim, (before, after) in enumerate(widths):
        if before or after:
            index = np.pad(np.arange(x.shape[dim]), (before, after), mode=mode)
            x = x.index_select(dim, convert_to_tensor(index))
    return x


def _pad_constant(x, widths, value):
    for dim, pair in enumerate(widths):
        if builtins.any(n < 0 for n in pair):
            raise ValueError("index can't contain negative values")
        parts = []
        for n in pair:
            shape = builtins.list(x.shape)
            shape[dim] = n
            parts.append(full(shape, value, x.dtype) if n else None)
        if pair != [0, 0]:
            x = C.cat([p for p in (parts[0], x, parts[1]) if p is not None], dim)
    return x


def view(x, dtype=None):
    x = convert_to_tensor(x)
    dtype = native(dtype or floatx())
    data, size = x._to_bytes(), F.finfo(dtype).bits // 8 if dtype in FLOATS else None
    size = size or (1 if dtype is C.bool else F.iinfo(dtype).bits // 8)
    if x.dim() == 0:
        return C._from_bytes(data, dtype, ())
    return C._from_bytes(data, dtype, (*x.shape[:-1], x.shape[-1] * x.element_size() // size))


# ---- elements


def _indices(indices, size):
    """Indices as int64; negative ones count from the end."""
    indices = convert_to_tensor(indices)
    indices = indices.to(C.int64)
    return C.where(indices < 0, indices + size, indices)


def take(x, indices, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _axes(axis, x.dim())[0]
    indices = _indices(indices, x.shape[axis])
    out = x.index_select(axis, indices.reshape(-1))
    return out.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def take_along_axis(x, indices, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return x.reshape(-1).gather(0, _indices(indices, x.numel()).reshape(-1))
    axis = _axes(axis, x.dim())[0]
    indices = _indices(indices, x.shape[axis])
    if indices.dim() != x.dim():
        raise ValueError(
            "take_along_axis needs as many dimensions in `indices` as in `x`. "
            f"Received: x.shape={tuple(x.shape)}, indices.shape={tuple(indices.shape)}"
        )
    shape = list(F.broadcast_shapes(_but(x.shape, axis), _but(indices.shape, axis)))
    shape[axis] = x.shape[axis]
    x = x.expand(shape)
    shape[axis] = indices.shape[axis]
    return x.gather(axis, indices.expand(shape))


def _but(shape, axis):
    return [1 if i == axis else n for i, n in enumerate(shape)]


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    rest, out = indices.to(C.int64), []
    total = _math.prod(shape)
    rest = C.where(rest < 0, rest + total, rest)
    for n in reversed(shape):
        out.append((rest % n).to(indices.dtype))
        rest = C.floor_divide(rest, n)
    return tuple(reversed(out))


def diag(x, k=0):
    return F.diag(convert_to_tensor(x), k)


def diagflat(x, k=0):
    return F.diag(convert_to_tensor(x).reshape(-1), k)


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    n = builtins.max(
        builtins.min(rows + builtins.min(offset, 0), columns - builtins.max(offset, 0)), 0
    )
    at = C._arange(0, n, 1, C.int64) if n else _full((0,), 0, C.int64)
    flat = x.reshape(*x.shape[:-2], rows * columns)
    start = offset if offset >= 0 else -offset * columns
    return flat.index_select(-1, at * (columns + 1) + start)


def trace(x, offset=0, axis1=0, axis2=1):
    return sum(diagonal(x, offset, axis1, axis2), -1)


def tril(x, k=0):
    return _triangle(x, k, True)


def triu(x, k=0):
    return _triangle(x, k, False)


def _triangle(x, k, lower):
    x = convert_to_tensor(x)
    return (F.tril if lower else F.triu)(_at_least(x, 2), k)


def diff(a, n=1, axis=-1):
    a = convert_to_tensor(a)
    for _ in range(n):
        m = a.shape[axis]
        high, low = a.narrow(axis, 1, m - 1), a.narrow(axis, 0, m - 1)
        a = C.ne(high, low) if a.dtype is C.bool else high - low
    return a


# ---- products


def _product_dtype(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1.dtype is C.int8 and x2.dtype is C.int8:
        dtype = C.int32
    else:
        dtype = result_dtype(x1.dtype, x2.dtype)
    return x1.to(dtype), x2.to(dtype), dtype


def matmul(x1, x2):
    x1, x2, dtype = _product_dtype(x1, x2)
    if dtype is C.bool:
        return C.matmul(x1.to(C.int32), x2.to(C.int32)) > 0
    return C.matmul(x1, x2)


def dot(x1, x2):
    x1, x2 = _operands(x1, x2)
    if x1.dim() == 0 or x2.dim() == 0:
        return x1 * x2
    if x2.dim() == 1:
        return matmul(x1, x2)
    return tensordot(x1, x2, [[x1.dim() - 1], [x2.dim() - 2]])


def tensordot(x1, x2, axes=2):
    x1, x2 = _operands(x1, x2)
    if x1.dtype is C.bool:
        return F.tensordot(x1.to(C.int32), x2.to(C.int32), axes) > 0
    return F.tensordot(x1, x2, axes)


def inner(x1, x2):
    x1, x2 = _operands(x1, x2)
    if x1.dim() == 0 or x2.dim() == 0:
        return C.mul(x1, x2)
    return tensordot(x1, x2, [[x1.dim() - 1], [x2.dim() - 1]])


def vdot(x1, x2):
    x1, x2 = _operands(x1, x2)
    return matmul(x1.reshape(-1), x2.reshape(-1))


def outer(x1, x2):
    x1, x2 = _operands(x1, x2)
    return C.mul(x1.reshape(-1, 1), x2.reshape(1, -1))


def kron(x1, x2):
    x1, x2 = _operands(x1, x2)
    n = builtins.max(x1.dim(), x2.dim())
    x1, x2 = _at_least(x1, n), _at_least(x2, n)
    shape = [a * b for a, b in zip(x1.shape, x2.shape, strict=True)]
    x1 = x1.reshape([m for a in x1.shape for m in (a, 1)])
    x2 = x2.reshape([m for b in x2.shape for m in (1, b)])
    return C.mul(x1, x2).reshape(shape)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    x1, x2 = _operands(x1, x2)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(
            "incompatible dimensions for cross product (dimension must be 2 or 3): "
            f"x1.shape={tuple(x1.shape)}, x2.shape={tuple(x2.shape)}"
        )
    flat = a.shape[-1] == b.shape[-1] == 2
    a0, a1, a2 = _three(a)
    b0, b1, b2 = _three(b)
    last = a0 * b1 - a1 * b0
    if flat:
        return last
    parts = F.broadcast_tensors(a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, last)
    return moveaxis(C.stack(parts, -1), -1, axisc)


def _three(x):
    parts = builtins.list(x.unbind(-1))
    return parts if len(parts) == 3 else [*parts, zeros_like(parts[0])]


def einsum(subscripts, *operands, **kwargs):
    operands = [convert_to_tensor(x) for x in operands]
    kinds = {x.dtype for x in operands}
    dtype = C.int32 if kinds == {C.int8} else result_dtype(*kinds)
    operands = [x.to(dtype) for x in operands]
    if "..." in subscripts:
        subscripts = _spell_out(subscripts.replace(" ", ""), operands)
    return F.einsum(subscripts, *operands)


def _spell_out(subscripts, operands):
    """The same subscripts with letters in place of '...'."""
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    depths = [x.dim() - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    most = builtins.max(d for t, d in zip(terms, depths, strict=True) if "..." in t)
    free = [
        c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts
    ]
    letters = "".join(free[:most])
    terms = [t.replace("...", letters[most - d :]) for t, d in zip(terms, depths, strict=True)]
    if not arrow:
        once = builtins.sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        right = "..." + "".join(once)
    return ",".join(terms) + "->" + right.replace("...", letters)


def correlate(x1, x2, mode="valid"):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = result_dtype(x1.dtype, x2.dtype)
    if dtype is C.int64:
        dtype = C.float64
    elif dtype not in FLOATS:
        dtype = C.float32
    made = np.correlate(_host(x1.to(C.float64)), _host(x2.to(C.float64)), mode)
    return convert_to_tensor(made, dtype)


def corrcoef(x):
    x = convert_to_tensor(x)
    dtype = _like_float(x.dtype)
    x = _at_least(x.to(dtype), 1)
    flat = x.dim() == 1
    x = _at_least(x, 2)
    x = x - C.mean(x, 1, keepdim=True)
    product = C.matmul(x, x.transpose(0, 1))
    scale = C.sqrt(diagonal(product))
    out = product / scale.unsqueeze(1) / scale.unsqueeze(0)
    out = C.clip(out, -1.0, 1.0)
    return out.reshape(()) if flat else out


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = convert_to_tensor(y)
    result = result_dtype(y.dtype, float)
    y = y.to(result)
    n = y.shape[axis]
    if x is not None:
        x = convert_to_tensor(x, result)
        if x.dim() == 1:
            form = [1] * y.dim()
            form[axis] = -1
            x = x.reshape(form)
        step = x.narrow(axis, 1, n - 1) - x.narrow(axis, 0, n - 1)
    else:
        step = convert_to_tensor(dx, result)
    return sum((y.narrow(axis, 1, n - 1) + y.narrow(axis, 0, n - 1)) * step / 2, axis)


def slogdet(x):
    from simt.keras_backend.linalg import slogdet

    return slogdet(x)


def vectorize(pyfunc, *, excluded=None, signature=None):
    from keras.src.backend.common.backend_utils import vectorize_impl

    return vectorize_impl(pyfunc, core.vectorized_map, excluded=excluded, signature=signature)
