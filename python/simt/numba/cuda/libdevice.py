"""numba.cuda.libdevice: CUDA's math library by its own names, for kernels.

Each name stands for the function of `math` (or of cuda) that means the same.
"""

import math

from ..core.types import float16, float32, float64, int32, int64, uint16, uint32, uint64
from . import _rounding
from ._intrinsics import Intrinsic
from ._special import (  # noqa: F401
    erfcinv,
    erfcx,
    j0,
    j1,
    jn,
    normcdfinv,
    y0,
    y1,
    yn,
)

_MATH = {
    **{n: n for n in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh")},
    **{n: n for n in ("sin", "sinh", "tan", "tanh", "exp", "exp2", "expm1", "log", "log10")},
    **{n: n for n in ("log1p", "log2", "sqrt", "pow", "floor", "ceil", "trunc", "erf", "erfc")},
    **{n: n for n in ("lgamma", "hypot", "fmod", "copysign", "fabs", "ldexp")},
    **{n: n for n in ("remainder", "nextafter")},
    "tgamma": "gamma",
}
# single precision in CUDA's names: sinf, and the fast ones, which are exact here
for _name, _math in _MATH.items():
    globals()[_name] = globals()[_name + "f"] = Intrinsic(f"math.{_math}")
for _name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "pow"):
    globals()[f"fast_{_name}f"] = Intrinsic(f"math.{_MATH[_name]}")
for _name in ("popc", "clz", "brev", "ffs"):
    globals()[_name] = globals()[_name + "ll"] = Intrinsic(f"cuda.{_name}")
for _name in ("exp10", "rsqrt", "sinpi", "cospi", "erfinv"):
    globals()[_name] = globals()[_name + "f"] = Intrinsic(f"libdevice.{_name}")
fast_exp10f = globals()["exp10f"]
cbrt = cbrtf = Intrinsic("cuda.cbrt")
fma = fmaf = Intrinsic("cuda.fma")
fmin = fminf = Intrinsic("numpy.fmin")
fmax = fmaxf = Intrinsic("numpy.fmax")
rint = rintf = nearbyint = nearbyintf = Intrinsic("numpy.rint")
abs = llabs = Intrinsic("builtins.abs")
max = umax = llmax = ullmax = Intrinsic("builtins.max")
min = umin = llmin = ullmin = Intrinsic("builtins.min")
for _name in (
    *("float_as_int", "int_as_float", "double_as_longlong", "longlong_as_double"),
    *("half_as_ushort", "ushort_as_half"),
):
    globals()[_name] = Intrinsic(f"libdevice.{_name}")
frexp = frexpf = Intrinsic("math.frexp")
modf = modff = Intrinsic("math.modf")
scalbn = scalbnf = ldexp  # noqa: F821
powi = powif = pow
isnand = isnanf = Intrinsic("math.isnan")
isinfd = isinff = Intrinsic("math.isinf")
isfinited = finitef = Intrinsic("math.isfinite")
signbitd = signbitf = Intrinsic("numpy.signbit")
del _name, _math

# The rest is written with these.


def round(x):
    """To the nearest integer, halves away from zero."""
    whole = math.trunc(x)
    return whole + math.copysign(1.0, x) if math.fabs(x - whole) >= 0.5 else whole


def llround(x):
    return int64(round(x))


def llrint(x):
    return int64(rint(x))


def rcbrt(x):
    return 1.0 / cbrt(x)


def sincos(x):
    return math.sin(x), math.cos(x)


def sincospi(x):
    return sinpi(x), cospi(x)  # noqa: F821


def normcdf(x):
    """erfc(t) / 2, t = -x / sqrt(2), and its slope times what t lost by rounding."""
    t = -x * 0.7071067811865476
    lost = fma(-x, 0.7071067811865476, -t) + x * 4.833646656726457e-17
    slope = -1.1283791670955126 * math.exp(-t * t)
    return 0.5 * (math.erfc(t) + (slope * lost if math.fabs(t) < 30.0 else 0.0))


def saturatef(x):
    return float32(fmin(fmax(x, 0.0), 1.0))


def fdividef(x, y):
    return float32(x) / float32(y)


def fdim(x, y):
    return x - y if x > y else x - x


def mul24(a, b):
    return a * b


# ---- integers


def umul24(a, b):
    return uint32(a) * uint32(b)


def mulhi(a, b):
    return int32((int64(int32(a)) * int64(int32(b))) >> 32)


def umulhi(a, b):
    return uint32((uint64(uint32(a)) * uint64(uint32(b))) >> uint64(32))


def umul64hi(a, b):
    a, b = uint64(a), uint64(b)
    low, half = uint64(0xFFFFFFFF), uint64(32)
    first = (a & low) * (b & low)
    middle = (a >> half) * (b & low) + (first >> half)
    other = (a & low) * (b >> half) + (middle & low)
    return (a >> half) * (b >> half) + (middle >> half) + (other >> half)


def mul64hi(a, b):
    a, b = int64(a), int64(b)
    high = int64(umul64hi(a, b))
    if a < 0:
        high -= b
    if b < 0:
        high -= a
    return high


def hadd(a, b):
    return int32((int64(int32(a)) + int64(int32(b))) >> 1)


def rhadd(a, b):
    return int32((int64(int32(a)) + int64(int32(b)) + 1) >> 1)


def uhadd(a, b):
    return uint32((int64(uint32(a)) + int64(uint32(b))) >> 1)


def urhadd(a, b):
    return uint32((int64(uint32(a)) + int64(uint32(b)) + 1) >> 1)


def sad(a, b, c):
    """|a - b| + c"""
    a, b = int64(int32(a)), int64(int32(b))
    return uint32((a - b if a > b else b - a) + int64(uint32(c)))


def usad(a, b, c):
    a, b = int64(uint32(a)), int64(uint32(b))
    return uint32((a - b if a > b else b - a) + int64(uint32(c)))


def byte_perm(a, b, c):
    """Four of the eight bytes of a and b, by the low bits of c's hexadecimal digits."""
    both = (uint64(uint32(b)) << uint64(32)) | uint64(uint32(a))
    result = uint64(0)
    for k in range(4):
        digit = (uint64(uint32(c)) >> uint64(4 * k)) & uint64(7)
        result |= ((both >> (uint64(8) * digit)) & uint64(255)) << uint64(8 * k)
    return int32(uint32(result))


# ---- the parts of floats


def hiloint2double(hi, lo):
    whole = (uint64(uint32(hi)) << uint64(32)) | uint64(uint32(lo))
    return longlong_as_double(int64(whole))  # noqa: F821


def double2hiint(x):
    return int32(double_as_longlong(float64(x)) >> 32)  # noqa: F821


def double2loint(x):
    return int32(uint32(uint64(double_as_longlong(float64(x)))))  # noqa: F821


def half2float(bits):
    return float32(ushort_as_half(uint16(bits)))  # noqa: F821


def float2half_rn(x):
    return half_as_ushort(float16(float32(x)))  # noqa: F821


def ilogb(x):
    """The exponent of x as an integer; the least one of 0 and NaN, the largest of infinity."""
    if x == 0.0 or x != x:
        return int32(-2147483648)
    if math.fabs(x) == math.inf:
        return int32(2147483647)
    _, exponent = math.frexp(x)
    return int32(exponent - 1)


def logb(x):
    if x == 0.0:
        return x - x - math.inf
    if math.fabs(x) == math.inf or x != x:
        return x * x
    _, exponent = math.frexp(x)
    return x - x + (exponent - 1)


def remquo(x, y):
    """(remainder(x, y), the low bits of the quotient with its sign)."""
    r = math.remainder(x, y)
    if r != r or y == 0.0 or math.fabs(y) == math.inf:
        return r, int32(0)
    low = math.fmod(math.fabs(x), math.fabs(y) * 8.0)  # the quotient modulo 8
    count = int32(rint((low - math.copysign(r, r * x)) / math.fabs(y))) & 7
    return r, -count if (x < 0.0) != (y < 0.0) else count


# ---- rounding modes

_INF32 = float32(math.inf)
_WIDE = {
    "dmul": _rounding.mul64,
    "ddiv": _rounding.div64,
    "drcp": _rounding.rcp64,
    "dsqrt": _rounding.sqrt64,
    "ll2double": _rounding.from_int64_64,
    "ull2double": _rounding.from_uint64_64,
}
_SINGLE = {
    "fmul": _rounding.mul32,
    "fdiv": _rounding.div32,
    "frcp": _rounding.rcp32,
    "fsqrt": _rounding.sqrt32,
    "double2float": _rounding.narrow,
    "int2float": _rounding.from_int64_32,
    "uint2float": _rounding.from_int64_32,
    "ll2float": _rounding.from_int64_32,
    "ull2float": _rounding.from_uint64_32,
}
_TO_INTEGER = {
    "int": (int32, -(2**31), 2**31 - 1),
    "uint": (uint32, 0, 2**32 - 1),
    "ll": (int64, -(2**63), 2**63 - 1),
    "ull": (uint64, 0, 2**64 - 1),
}


def _difference(add):
    def subtract(x, y):
        return add(x, -y)

    return subtract


for _mode, _suffix in enumerate(_rounding.MODES):
    for _name, _exact in _WIDE.items():
        globals()[f"{_name}_{_suffix}"] = _rounding.in_mode(_exact, _mode, math.inf)
    for _name, _exact in _SINGLE.items():
        globals()[f"{_name}_{_suffix}"] = _rounding.in_mode(_exact, _mode, _INF32)
    for _name, _exact, _inf in (
        ("dadd", _rounding.add64, math.inf),
        ("fma", _rounding.fma64, math.inf),
        ("fadd", _rounding.add32, _INF32),
        ("fmaf", _rounding.fma32, _INF32),
    ):
        globals()[f"{_name}_{_suffix}"] = _rounding.sum_in_mode(_exact, _mode, _inf)
    globals()[f"fsub_{_suffix}"] = _difference(globals()[f"fadd_{_suffix}"])
    for _name, (_kind, _least, _most) in _TO_INTEGER.items():
        _convert = _rounding.to_integer(_kind, _mode, _least, _most, rint)
        globals()[f"double2{_name}_{_suffix}"] = globals()[f"float2{_name}_{_suffix}"] = _convert
int2double_rn = uint2double_rn = float64


def frsqrt_rn(x):
    return float32(1.0 / math.sqrt(float64(float32(x))))


def _single(function):
    """The function of float32 by that of float64."""

    def rounded(x):
        return float32(function(float32(x)))

    return rounded


for _name in ("erfcx", "erfcinv", "normcdfinv", "j0", "j1", "y0", "y1"):
    globals()[_name + "f"] = _single(globals()[_name])


def jnf(n, x):
    return float32(jn(n, float32(x)))


def ynf(n, x):
    return float32(yn(n, float32(x)))


ilogbf, logbf, remquof = ilogb, logb, remquo
del _mode, _suffix, _name, _exact, _inf, _kind, _least, _most, _convert
roundf = round
llroundf = llround
llrintf = llrint
rcbrtf = rcbrt
sincosf = fast_sincosf = sincos
sincospif = sincospi
normcdff = normcdf
fast_fdividef = fdividef
fdimf = fdim
