"""Functions of kernels that are written as kernels are: NumPy's reductions, methods of arrays.

FUNCTIONS: the name by which the compiler asks -> the function, compiled where it is called. Results
have Numba's types and order: one element after the other. Arrays of several dimensions are walked
by the same function of their parts, which are arrays of one dimension less.
"""

from ..core.types import float64, int64, uint64
from . import _intrinsics

_type_of = _intrinsics.type_of
_char_code = _intrinsics.char_code
_BOOL, _UINT8, _UINT64, _FLOAT16 = 1, 6, 9, 10  # numbers of types: py_scalar of the front end


def _first(a):
    """The element at the beginning."""
    if a.ndim == 1:
        return a[0]
    return _first(a[0])


def _number(a):
    """0 of the type in which elements are added up."""
    kind = _type_of(_zero(a))
    if kind >= _FLOAT16:
        return _zero(a)
    if kind >= _UINT8:
        return uint64(0)
    return int64(0)


def _zero(a):
    return a.dtype.type(0)


def _add(a, total):
    for x in a:
        if a.ndim == 1:
            total += x
        else:
            total = _add(x, total)
    return total


def array_sum(a):
    return _add(a, _number(a))


def _multiply(a, total):
    for x in a:
        if a.ndim == 1:
            total *= x
        else:
            total = _multiply(x, total)
    return total


def array_prod(a):
    kind = _type_of(_zero(a))
    if kind >= _FLOAT16:
        return _multiply(a, a.dtype.type(1))
    if kind >= _UINT8:
        return _multiply(a, uint64(1))
    return _multiply(a, int64(1))


def array_mean(a):
    if _type_of(_zero(a)) >= _FLOAT16:
        return _add(a, _zero(a)) / a.size
    return _add(a, float64(0)) / a.size


def _squares(a, mean, total):
    for x in a:
        if a.ndim == 1:
            difference = x - mean
            total += (difference * difference.conjugate()).real
        else:
            total = _squares(x, mean, total)
    return total


def array_var(a):
    return _squares(a, array_mean(a), float64(0)) / a.size


def array_std(a):
    return array_var(a) ** 0.5


def _least(a, best):
    for x in a:
        if a.ndim == 1:
            if x < best or x != x:
                best = x
        else:
            best = _least(x, best)
    return best


def _most(a, best):
    for x in a:
        if a.ndim == 1:
            if x > best or x != x:
                best = x
        else:
            best = _most(x, best)
    return best


def _check_filled(a):
    if a.size == 0:
        raise ValueError("zero-size array to a reduction operation that has no identity")


def array_min(a):
    _check_filled(a)
    return _least(a, _first(a))


def array_max(a):
    _check_filled(a)
    return _most(a, _first(a))


def _find(a, want, place):
    """place + the flat index of the first element that equals want, or is NaN where want is."""
    found = int64(-1)
    for k in range(len(a)):
        x = a[k]
        if found < 0:
            if a.ndim == 1:
                if x == want or (x != x and want != want):
                    found = place + k
            else:
                found = _find(x, want, place + k * x.size)
    return found


def array_argmin(a):
    return _find(a, array_min(a), int64(0))


def array_argmax(a):
    return _find(a, array_max(a), int64(0))


def array_any(a):
    found = False
    for x in a:
        if a.ndim == 1:
            found = found or bool(x)
        else:
            found = found or array_any(x)
    return found


def array_all(a):
    found = True
    for x in a:
        if a.ndim == 1:
            found = found and bool(x)
        else:
            found = found and array_all(x)
    return found


def array_dot(a, b):
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError("dot in a kernel takes arrays of one dimension")
    if a.size != b.size:
        raise ValueError("incompatible array sizes for dot")
    total = _zero(a) * _zero(b)
    for k in range(a.size):
        total += a[k] * b[k]
    return total


def array_fill(a, value):
    a[...] = value


def builtin_sum(values, start=0):
    total = start
    for x in values:
        total = total + x
    return total


# Strings: elements of arrays of dtype S and U (src/frontend/python/chars.c).


def _begins_at(a, b, start, n):
    k = 0
    while k < n and _char_code(a, start + k) == _char_code(b, k):
        k += 1
    return k == n


def text_find(a, b):
    n = len(b)
    for i in range(len(a) - n + 1):
        if _begins_at(a, b, i, n):
            return i
    return -1


def text_rfind(a, b):
    n = len(b)
    for i in range(len(a) - n, -1, -1):
        if _begins_at(a, b, i, n):
            return i
    return -1


def text_contains(a, b):
    return text_find(a, b) >= 0


def text_startswith(a, b):
    return len(b) <= len(a) and _begins_at(a, b, 0, len(b))


def text_endswith(a, b):
    return len(b) <= len(a) and _begins_at(a, b, len(a) - len(b), len(b))


def text_isascii(a):
    for i in range(len(a)):
        if _char_code(a, i) > 127:
            return False
    return True


_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "any", "all")
FUNCTIONS = {"array.dot": array_dot, "numpy.dot": array_dot, "array.fill": array_fill}
for _name in _REDUCTIONS:
    FUNCTIONS[f"array.{_name}"] = FUNCTIONS[f"numpy.{_name}"] = globals()[f"array_{_name}"]
FUNCTIONS["numpy.amin"], FUNCTIONS["numpy.amax"] = array_min, array_max
FUNCTIONS["builtins.sum"] = builtin_sum
for _name in ("find", "rfind", "contains", "startswith", "endswith", "isascii"):
    FUNCTIONS[f"text.{_name}"] = globals()[f"text_{_name}"]
