"""numba.cuda.fp16: float16 functions of kernels, by the names of CUDA C.

Each computes in float32 or wider and rounds to float16 once.
"""

import math
import operator

from ..core.types import float16, float32, float64
from . import libdevice

heq, hne, hlt, hle, hgt, hge = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge
)  # fmt: skip


def hadd(a, b):
    return float16(a) + float16(b)


def hsub(a, b):
    return float16(a) - float16(b)


def hmul(a, b):
    return float16(a) * float16(b)


def hdiv(a, b):
    return float16(float32(a) / float32(b))


def hfma(a, b, c):
    return float16(float64(a) * float64(b) + float64(c))


def hneg(a):
    return -float16(a)


def habs(a):
    return abs(float16(a))


def hmax(a, b):
    return float16(libdevice.fmaxf(float32(a), float32(b)))


def hmin(a, b):
    return float16(libdevice.fminf(float32(a), float32(b)))


def hsin(a):
    return float16(math.sin(float32(a)))


def hcos(a):
    return float16(math.cos(float32(a)))


def hlog(a):
    return float16(math.log(float32(a)))


def hlog2(a):
    return float16(math.log2(float32(a)))


def hlog10(a):
    return float16(math.log10(float32(a)))


def hexp(a):
    return float16(math.exp(float32(a)))


def hexp2(a):
    return float16(libdevice.exp2f(float32(a)))


def hexp10(a):
    return float16(libdevice.exp10f(float32(a)))


def hsqrt(a):
    return float16(math.sqrt(float32(a)))


def hrsqrt(a):
    return float16(libdevice.rsqrtf(float32(a)))


def hrcp(a):
    return float16(float32(1) / float32(a))


def hfloor(a):
    return float16(math.floor(float32(a)))


def hceil(a):
    return float16(math.ceil(float32(a)))


def hrint(a):
    return float16(libdevice.rintf(float32(a)))


def htrunc(a):
    return float16(math.trunc(float32(a)))
