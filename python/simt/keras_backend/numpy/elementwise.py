"""Operations on each element: of one tensor, of two, comparisons, bits, choices."""

import builtins
import math as _math

import numpy as np
from keras.src.backend.common import KerasVariable

from simt._core import torch as C
from simt.keras_backend.core import (
    FLOATS,
    NAMES,
    convert_to_tensor,
    result_dtype,
)
from simt.keras_backend.numpy.common import (
    _INTS,
    Tensor,
    _as,
    _float,
    _full,
    _host,
    _kind,
    _like_float,
    _operands,
    _scalar,
)
from simt.keras_backend.numpy.creation import zeros_like
from simt.torch import _functions as F

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


def nonzero(x):
    x = convert_to_tensor(x)
    return tuple(convert_to_tensor(i, "int32") for i in np.nonzero(_host(x)))
