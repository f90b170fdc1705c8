"""libdevice's operations in the four rounding modes, for kernels.

A result rounded to nearest is moved to the next number where the exact one lies beyond it. The sign
of what rounding lost is exact: TwoSum for sums (Knuth, The Art of Computer Programming 2, 4.2.2),
fma for products, quotients and roots, scaled where that would underflow; float32 in float64.
"""

import math

from ..core.types import float32, float64, int64, uint64
from ._intrinsics import fma

MODES = ("rn", "rd", "ru", "rz")
_NEAR, _DOWN, _UP, _ZERO = range(4)
_MUCH = 2.0**600
_LEAST = 5e-324
_TINY = 2.0**-900  # below it the parts of a product may be no numbers any more


def _moved(r, lost, mode, infinity):
    """r, or its neighbour; lost has the sign of exact - r (0, NaN: r is right)."""
    if lost > 0.0 and (mode == _UP or (mode == _ZERO and r < 0.0)):
        return math.nextafter(r, infinity)
    if lost < 0.0 and (mode == _DOWN or (mode == _ZERO and r > 0.0)):
        return math.nextafter(r, -infinity)
    return r


def in_mode(exact, mode, infinity):
    """The function whose result rounded to nearest, and what it lost, `exact` gives."""

    def rounded(*args):
        r, lost = exact(*args)
        return _moved(r, lost, mode, infinity)

    return rounded


def sum_in_mode(exact, mode, infinity):
    """The same of sums: an exact 0 is -0 downwards but where both terms are +0."""

    def rounded(*args):
        r, lost = exact(*args)
        if mode == _DOWN and r == 0.0 and lost == 0.0 and not _both_plus(*args):
            return math.copysign(r, -infinity)
        return _moved(r, lost, mode, infinity)

    return rounded


def _is_plus(x):
    return x == 0.0 and math.copysign(1.0, float64(x)) > 0.0


def _both_plus(x, y, z=None):
    if z is None:
        return _is_plus(x) and _is_plus(y)
    return _is_plus(x * y) and (x == 0.0 or y == 0.0) and _is_plus(z)


def _finite(x):
    return math.fabs(x) < math.inf


def _beyond(r, all_finite):
    """What an infinite r lost: numbers that were finite, or nothing."""
    return -r if all_finite and r == r else 0.0


def _two_sum(x, y):
    s = x + y
    z = s - x
    return s, (x - (s - z)) + (y - z)


def add64(x, y):
    x, y = float64(x), float64(y)
    s, lost = _two_sum(x, y)
    if not _finite(s):
        return s, _beyond(s, _finite(x) and _finite(y))
    return s, lost


def mul64(x, y):
    x, y = float64(x), float64(y)
    r = x * y
    if not _finite(r):
        return r, _beyond(r, _finite(x) and _finite(y))
    if math.fabs(r) > _TINY or x == 0.0 or y == 0.0:
        return r, fma(x, y, -r)
    if r == 0.0:
        return r, math.copysign(_LEAST, x) * math.copysign(1.0, y)
    if math.fabs(x) < math.fabs(y):
        return r, fma(x * _MUCH, y, -r * _MUCH)
    return r, fma(x, y * _MUCH, -r * _MUCH)


def div64(x, y):
    x, y = float64(x), float64(y)
    r = x / y
    if not _finite(r):
        return r, _beyond(r, _finite(x) and _finite(y) and y != 0.0)
    if x == 0.0 or not _finite(y):
        return r, 0.0
    if math.fabs(x) > _TINY and math.fabs(r) > 2.0**-900:
        rest = fma(-r, y, x)
    elif math.fabs(r) < 1.0:
        rest = fma(-r * _MUCH, y, x * _MUCH)
    else:
        rest = fma(-r, y * _MUCH, x * _MUCH)
    return r, math.copysign(1.0, y) * rest


def sqrt64(x):
    x = float64(x)
    r = math.sqrt(x)
    if not _finite(r) or r == 0.0:
        return r, 0.0
    if x > _TINY:
        return r, fma(-r, r, x)
    return r, fma(-r * 2.0**300, r * 2.0**300, x * _MUCH)


def fma64(x, y, z):
    x, y, z = float64(x), float64(y), float64(z)
    r = fma(x, y, z)
    if not _finite(r):
        return r, _beyond(r, _finite(x) and _finite(y) and _finite(z))
    to, rest = r, z  # scaled with the product
    for _ in range(2):
        if math.fabs(x * y) < _TINY and math.fabs(rest) < _TINY and x != 0.0 and y != 0.0:
            if math.fabs(x) < math.fabs(y):
                x *= _MUCH
            else:
                y *= _MUCH
            to *= _MUCH
            rest *= _MUCH
    product = x * y
    part = 0.0
    if not _finite(product):  # the sum is finite: quarters of everything are
        product = (x * 0.25) * y
        part = fma(x * 0.25, y, -product)
        to *= 0.25
        rest *= 0.25
    elif product == 0.0 and x != 0.0 and y != 0.0:  # beside it the rest is large
        part = math.copysign(_LEAST, x) * math.copysign(1.0, y)
    else:
        part = fma(x, y, -product)
    near, less = _two_sum(product, rest)
    low, least = _two_sum(less, part)
    whole, tail = _two_sum(near - to, low)
    if whole != 0.0:
        return r, whole
    return r, tail + least


def narrow(x):
    """float64 -> float32."""
    x = float64(x)
    r = float32(x)
    if not _finite(r):
        return r, _beyond(float64(r), _finite(x))
    return r, x - float64(r)


def _narrowed(r, lost):
    """The float32 of r + lost, rounded once from float64; and what that lost."""
    near = float32(r)
    if not _finite(near):
        return near, _beyond(float64(near), _finite(r))
    rest = r - float64(near)
    # halfway between two float32 r alone may go to the wrong one
    wide = math.fabs(rest) * 2.0
    other = math.nextafter(near, float32(math.copysign(math.inf, rest)))
    if rest != 0.0 and wide == math.fabs(float64(other) - float64(near)) and rest * lost > 0.0:
        near = other
        rest = r - float64(near)
    if rest != 0.0:
        return near, rest
    return near, lost


def add32(x, y):
    r, lost = add64(float32(x), float32(y))
    return _narrowed(r, lost)


def mul32(x, y):
    return narrow(float64(float32(x)) * float64(float32(y)))  # exact in float64


def div32(x, y):
    r, lost = div64(float32(x), float32(y))
    return _narrowed(r, lost)


def sqrt32(x):
    r, lost = sqrt64(float32(x))
    return _narrowed(r, lost)


def fma32(x, y, z):
    r, lost = add64(float64(float32(x)) * float64(float32(y)), float32(z))
    return _narrowed(r, lost)


def rcp64(x):
    return div64(1.0, x)


def rcp32(x):
    return div32(1.0, x)


# ---- integers and floats


def _of_int64(x, r):
    """r, a float that x became, and what it lost."""
    if r >= 9223372036854775808.0:
        return r, -1.0
    return r, float64(x - int64(r))


def _of_uint64(x, r):
    if r >= 18446744073709551616.0:
        return r, -1.0
    back = uint64(r)
    return r, float64(x - back) if x >= back else -float64(back - x)


def from_integer(integer, kind, lost):
    """An integer as a float of a kind; lost: _of_int64 or _of_uint64."""

    def converted(x):
        x = integer(x)
        return lost(x, kind(x))

    return converted


from_int64_64 = from_integer(int64, float64, _of_int64)
from_int64_32 = from_integer(int64, float32, _of_int64)
from_uint64_64 = from_integer(uint64, float64, _of_uint64)
from_uint64_32 = from_integer(uint64, float32, _of_uint64)


def _whole(x, mode, rint):
    if mode == _DOWN:
        return math.floor(x)
    if mode == _UP:
        return math.ceil(x)
    if mode == _ZERO:
        return math.trunc(x)
    return rint(x)


def to_integer(kind, mode, least, most, rint):
    """A float as an integer of a kind; beyond its range the nearest, of NaN 0 (as PTX's cvt)."""

    def converted(x):
        y = _whole(float64(x), mode, rint)
        if y != y:
            return kind(0)
        if y <= float64(least):
            return kind(least)
        if y >= float64(most):
            return kind(most)
        return kind(y)

    return converted
