"""libdevice's special functions that `math` does not have, for kernels.

Bessel functions: below 25 J by Miller's recurrence (Numerische Mathematik 1, 1959; normalised by
1 = J0 + 2 J2 + 2 J4 + ...) and Y by Neumann's series over J; from there Hankel's expansion
(Abramowitz and Stegun 9.1.89, 9.1.90 and 9.2.5 to 9.2.10). Errors: 1e-15 absolute, grown for larger
n as CUDA's own. erfcinv: Newton's method on erfc.
"""

import math

from ..core.types import float64, int64
from ._intrinsics import Intrinsic, fma

_erfinv = Intrinsic("libdevice.erfinv")
_EULER = 0.5772156649015329
_LARGE = 25.0


def _miller(x):
    """J0, J1 and the sums of Neumann's series for Y0 and Y1; 0 < x < 25."""
    start = 2 * ((int64(x) + 40) // 2)
    above, here = 0.0, 1e-300
    total, even, odd = 0.0, 0.0, 0.0
    j1 = 0.0
    for k in range(start, 0, -1):
        below = 2.0 * k / x * here - above
        above = here
        here = below
        if math.fabs(here) > 1e200:
            above *= 1e-200
            here *= 1e-200
            total *= 1e-200
            even *= 1e-200
            odd *= 1e-200
            j1 *= 1e-200
        m = k - 1  # `here` is J of this order
        if m == 1:
            j1 = here
        half = m // 2
        sign = 1.0 - 2.0 * (half % 2)
        if m % 2 == 0 and m > 0:
            total += 2.0 * here
            even += sign * here / half
        if m % 2 == 1 and m > 1:
            odd += sign * here * (m / (half * (half + 1.0)))
    total += here
    return here / total, j1 / total, even / total, odd / total


def _hankel(x, n):
    """Jn and Yn, n 0 or 1, of x >= 25."""
    mu = 4.0 * n * n
    p, q = 1.0, 0.0
    term = 1.0
    for k in range(1, 30):
        odd = 2.0 * k - 1.0
        factor = (mu - odd * odd) / (k * 8.0 * x)
        if math.fabs(factor) >= 1.0:
            break
        term *= factor
        quarter = k % 4
        if quarter == 1:
            q += term
        elif quarter == 2:
            p -= term
        elif quarter == 3:
            q -= term
        else:
            p += term
    # cos and sin of x - n pi/2 - pi/4, without the subtraction
    c, s = math.cos(x), math.sin(x)
    if n == 0:
        cosine, sine = c + s, s - c
    else:
        cosine, sine = s - c, -(c + s)
    scale = 1.0 / math.sqrt(math.pi * x)
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


def j0(x):
    x = math.fabs(float64(x))
    if x == math.inf:
        return 0.0
    if x >= _LARGE or x != x:
        return _hankel(x, 0)[0]
    if x < 1e-8:
        return 1.0
    return _miller(x)[0]


def j1(x):
    y = math.fabs(float64(x))
    if y == math.inf:
        return 0.0
    if y >= _LARGE or y != y:
        return math.copysign(1.0, float64(x)) * _hankel(y, 1)[0]
    if y < 1e-8:
        return 0.5 * x
    return math.copysign(1.0, float64(x)) * _miller(y)[1]


def y0(x):
    x = float64(x)
    if not x > 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x == math.inf:
        return 0.0
    if x >= _LARGE:
        return _hankel(x, 0)[1]
    if x < 1e-8:
        return 0.6366197723675814 * (math.log(x * 0.5) + _EULER)
    first, _, even, _ = _miller(x)
    return 0.6366197723675814 * ((math.log(x * 0.5) + _EULER) * first - 2.0 * even)


def y1(x):
    x = float64(x)
    if not x > 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x == math.inf:
        return 0.0
    if x >= _LARGE:
        return _hankel(x, 1)[1]
    if x < 1e-8:
        return -0.6366197723675814 / x
    first, second, _, odd = _miller(x)
    logarithm = (math.log(x * 0.5) + (_EULER - 1.0)) * second
    return 0.6366197723675814 * (logarithm - odd - first / x)


def jn(n, x):
    """J of the order n; NaN where n is negative, as CUDA's."""
    x = float64(x)
    if n < 0 or x != x:
        return math.nan
    if n == 0:
        return j0(x)
    if n == 1:
        return j1(x)
    sign = -1.0 if x < 0.0 and n % 2 == 1 else 1.0
    x = math.fabs(x)
    if x == math.inf or x == 0.0:
        return 0.0
    if x < _LARGE or n > x:
        return sign * _miller_order(x, n)
    before, here = j0(x), j1(x)
    for k in range(1, n):
        after = 2.0 * k / x * here - before
        before = here
        here = after
    return sign * here


def _miller_order(x, n):
    """Jn where n is larger than x, or x is small: the recurrence from above."""
    top = max(n, int64(x))
    start = 2 * ((top + 20 + int64(math.sqrt(60.0 * top))) // 2)
    above, here = 0.0, 1e-300
    total, wanted = 0.0, 0.0
    for k in range(start, 0, -1):
        below = 2.0 * k / x * here - above
        above = here
        here = below
        if math.fabs(here) > 1e200:
            above *= 1e-200
            here *= 1e-200
            total *= 1e-200
            wanted *= 1e-200
        if k - 1 == n:
            wanted = here
        if k % 2 == 1 and k > 1:
            total += 2.0 * here
    return wanted / (total + here)


def yn(n, x):
    x = float64(x)
    if n < 0:
        return math.nan
    before, here = y0(x), y1(x)
    if n == 0:
        return before
    for k in range(1, n):
        if here == -math.inf:
            return here
        after = 2.0 * k / x * here - before
        before = here
        here = after
    return here


def erfcx(x):
    """exp(x * x) * erfc(x)."""
    x = float64(x)
    if x > 12.0:  # erfc's asymptotic series
        r = 0.5 / (x * x)
        term, total = 1.0, 1.0
        for k in range(1, 12):
            term *= -(2.0 * k - 1.0) * r
            total += term
        return total * (0.5641895835477563 / x)
    square = x * x
    lost = fma(x, x, -square)
    return math.exp(square) * math.erfc(x) * (1.0 + lost) if x > -26.7 else math.inf


def erfcinv(y):
    y = float64(y)
    if not (y >= 0.0 and y <= 2.0):
        return math.nan
    if y == 0.0 or y == 2.0:
        return math.inf if y == 0.0 else -math.inf
    if y >= 0.25:
        return _erfinv(1.0 - y)
    guess = math.sqrt(-math.log(y * 1.7724538509055160 * math.sqrt(-math.log(y))))
    for _ in range(5):
        step = (math.erfc(guess) - y) * 0.8862269254527580 * math.exp(guess * guess)
        guess += step / (1.0 + guess * step)  # Halley's
    return guess


def normcdfinv(y):
    return -1.4142135623730951 * erfcinv(2.0 * float64(y))
