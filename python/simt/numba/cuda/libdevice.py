"""numba.cuda.libdevice: CUDA's math library by its own names, for kernels.

Each name stands for the function of `math` (or of cuda) that means the same.
"""

import math

from ..core.types import float32, int64
from ._intrinsics import Intrinsic

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
for _name in ("float_as_int", "int_as_float", "double_as_longlong", "longlong_as_double"):
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


roundf = round
llroundf = llround
llrintf = llrint
rcbrtf = rcbrt
sincosf = fast_sincosf = sincos
sincospif = sincospi
normcdff = normcdf
fast_fdividef = fdividef
fdimf = fdim
