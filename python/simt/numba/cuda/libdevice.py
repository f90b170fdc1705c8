"""numba.cuda.libdevice: CUDA's math library by its own names, for kernels.

Each name stands for the function of `math` (or of cuda) that means the same.
"""

from ._intrinsics import Intrinsic

_MATH = {
    **{n: n for n in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh")},
    **{n: n for n in ("sin", "sinh", "tan", "tanh", "exp", "exp2", "expm1", "log", "log10")},
    **{n: n for n in ("log1p", "log2", "sqrt", "pow", "floor", "ceil", "trunc", "erf", "erfc")},
    **{n: n for n in ("lgamma", "hypot", "fmod", "copysign", "fabs", "ldexp")},
    "tgamma": "gamma",
}
# single precision in CUDA's names: sinf, and the fast ones, which are exact here
for _name, _math in _MATH.items():
    globals()[_name] = globals()[_name + "f"] = Intrinsic(f"math.{_math}")
for _name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "pow"):
    globals()[f"fast_{_name}f"] = Intrinsic(f"math.{_MATH[_name]}")
for _name in ("popc", "clz", "brev", "ffs"):
    globals()[_name] = globals()[_name + "ll"] = Intrinsic(f"cuda.{_name}")
cbrt = cbrtf = Intrinsic("cuda.cbrt")
fma = fmaf = Intrinsic("cuda.fma")
fmin = fminf = Intrinsic("builtins.min")
fmax = fmaxf = Intrinsic("builtins.max")
abs = llabs = Intrinsic("builtins.abs")
del _name, _math
