"""Functions composed of the table's rows."""

from simt import _core
from simt._core import arange, ndarray
from simt.cupy._creation import asarray
from simt.cupy._manipulation import moveaxis

_absolute, _where = _core.ew_absolute, _core.ew_where


def where(condition, x=None, y=None):
    if x is None and y is None:
        return condition.nonzero()
    if x is None or y is None:
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    return _where(condition, x, y)


def clip(a, a_min, a_max, out=None):
    return asarray(a).clip(a_min, a_max, out)


def around(a, decimals=0, out=None):
    return asarray(a).round(decimals, out)


def reciprocal(x, /, out=None, **kwargs):
    """1 / x. Integers stay integers (booleans: int8), cut towards zero; 1 / 0 is 0, as in CuPy."""
    if isinstance(x, (bool, int)):
        x = asarray(x)
    dtype = kwargs.get("dtype")
    kind = getattr(x, "dtype", None) if dtype is None else asarray(0, dtype).dtype
    if kind is None or kind.kind == "f":
        return _core.ew_reciprocal(x, out, **kwargs)
    whole = x.astype("int8" if dtype is None else dtype) if x.dtype.kind == "b" else x
    return _core.ew_multiply(whole, _absolute(whole) == 1, out, **kwargs)


def frexp(x):
    """x as (fraction, exponent): x = fraction * 2**exponent, the fraction in [0.5, 1)."""
    return _core.ew_frexp_fraction(x), _core.ew_frexp_exponent(x).astype("int32")


def ldexp(x1, x2):
    """x1 * 2**x2, by way of two powers, so that neither is out of range."""
    x1, x2 = asarray(x1), asarray(x2)
    half = _core.ew_right_shift(x2, 1)
    kind = x1.dtype if x1.dtype.kind == "f" else "float64"
    first, rest = (_core.ew_exp2(n.astype(kind)) for n in (half, x2 - half))
    return x1 * first * rest


def modf(x):
    """x as (fractional part, integral part), both with its sign."""
    whole = _core.ew_trunc(x)
    part = _where(_core.ew_isinf(x), 0, _core.ew_subtract(x, whole))
    return _core.ew_copysign(part, x), whole


def _scaled(x, factor, out, kwargs):
    """x * factor in the float type of x's width, as the ufuncs of one float operand."""
    if isinstance(x, (bool, int)):
        x = asarray(x)
    if (
        kwargs.get("dtype") is None
        and getattr(x, "dtype", None) is not None
        and x.dtype.kind != "f"
    ):
        x = x.astype({1: "float16", 2: "float32"}.get(x.dtype.itemsize, "float64"))
    return _core.ew_multiply(x, factor, out, **kwargs)


def deg2rad(x, /, out=None, **kwargs):
    return _scaled(x, 0.017453292519943295, out, kwargs)


def rad2deg(x, /, out=None, **kwargs):
    return _scaled(x, 57.29577951308232, out, kwargs)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    import numpy

    given, x = x, asarray(x)
    if not copy and not isinstance(given, ndarray):
        raise TypeError(f"Unsupported type {type(given)}")
    if x.dtype.kind != "f":
        return x.copy("K") if copy else x
    limits = numpy.finfo(x.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    made = _where(_core.ew_isnan(x), nan, x)
    made = _where(_core.ew_equal(x, float("inf")), high, made)
    made = _where(_core.ew_equal(x, float("-inf")), low, made)
    if copy:
        return made
    x[...] = made
    return x


# ---- sums and kin ----


def nansum(a, axis=None, dtype=None, out=None, keepdims=False):
    return _where(_core.ew_isnan(a), asarray(0, a.dtype), a).sum(axis, dtype, out, keepdims)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False):
    count = _core.ew_logical_not(_core.ew_isnan(a)).sum(axis, keepdims=keepdims)
    result = a.dtype if dtype is None else dtype
    wide = "float32" if result == "float16" else dtype  # a sum of halves overflows soon
    made = _core.ew_divide(nansum(a, axis, wide, None, keepdims), count, out)
    return made if out is not None or wide == dtype else made.astype(result)


def count_nonzero(a, axis=None, *, keepdims=False):
    return _core.ew_not_equal(a, 0).sum(axis, keepdims=keepdims)


def ptp(a, axis=None, out=None, keepdims=False):
    return _core.ew_subtract(a.max(axis, keepdims=keepdims), a.min(axis, keepdims=keepdims), out)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if weights is None:
        made, total = a.mean(axis, keepdims=keepdims), None
    else:
        weights = asarray(weights)
        if weights.shape != a.shape:
            if weights.ndim != 1 or not isinstance(axis, int):
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            shape = [1] * a.ndim
            shape[axis] = -1
            weights = weights.reshape(shape)
        total = (weights + _core.zeros(a.shape, weights.dtype)).sum(axis, keepdims=keepdims)
        if (total == 0).any():
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        made = (a * weights).sum(axis, keepdims=keepdims) / total
    if not returned:
        return made
    return made, total if total is not None else asarray(a.size / made.size)


def diff(a, n=1, axis=-1):
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    if not -a.ndim <= axis < a.ndim:
        from simt.cupy.exceptions import AxisError

        raise AxisError(axis, a.ndim)
    lead = (slice(None),) * (axis % a.ndim)
    for _ in range(min(n, a.shape[axis])):  # nothing is left after that many
        later, earlier = a[lead + (slice(1, None),)], a[lead + (slice(None, -1),)]
        a = later != earlier if a.dtype == bool else later - earlier
    return a


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    from simt.cupy._creation import diagonal

    return diagonal(a, offset, axis1, axis2).sum(-1, dtype, out)


def cumsum(a, axis=None, dtype=None, out=None):
    return a.cumsum(axis, dtype, out)


# ---- positions ----


def nonzero(a):
    return a.nonzero()


def flatnonzero(a):
    return a.ravel().nonzero()[0]


def argwhere(a):
    return _core.stack(a.nonzero(), 1)


def take(a, indices, axis=None, out=None, mode="raise"):
    return asarray(a).take(indices, axis, out, mode)


def compress(condition, a, axis=None, out=None):
    if axis is None:
        a, axis = a.ravel(), 0
    return a.take(asarray(condition).nonzero()[0], axis, out)


# ---- comparison of arrays ----


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    a, b = asarray(a), asarray(b)
    if b.dtype.kind != "f":
        b = b.astype(float)
    near = _absolute(_core.ew_subtract(a, b)) <= atol + rtol * _absolute(b)
    finite = _core.ew_logical_and(_core.ew_isfinite(a), _core.ew_isfinite(b))
    made = _where(finite, near, a == b)
    if equal_nan:
        made = made | (_core.ew_isnan(a) & _core.ew_isnan(b))
    return made


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1, a2, equal_nan=False):
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return asarray(False)
    same = a1 == a2
    if equal_nan:
        same = same | (_core.ew_isnan(a1) & _core.ew_isnan(a2))
    return same.all()


# ---- products ----


def _scalar_operands(a, b):
    return not (isinstance(a, ndarray) and isinstance(b, ndarray))


def dot(a, b, out=None):
    return _core.ew_multiply(a, b, out) if _scalar_operands(a, b) else _core.dot(a, b, out)


def _matmul_on(x1, x2, out, axes):
    """matmul of the axes named for each operand and the result."""
    given = [(a,) if not isinstance(a, (tuple, list)) else tuple(a) for a in axes]
    needed = [min(x1.ndim, 2), min(x2.ndim, 2)]
    needed.append(sum(n == 2 for n in needed))
    if len(given) == 2 and needed[2] == 0:
        given.append(())
    if len(given) != 3:
        raise ValueError("axes should be a list with an entry for all 3 inputs and outputs")
    for i, (one, n) in enumerate(zip(given, needed, strict=False)):
        if len(one) != n:
            raise ValueError(f"matmul: operand {i} has {n} core dimensions, axes names {len(one)}")
    x1, x2 = (
        moveaxis(x, one, tuple(range(-len(one), 0)))
        for x, one in zip((x1, x2), given, strict=False)
    )
    made = _core.matmul(x1, x2)
    last = given[2]
    made = moveaxis(made, tuple(range(-len(last), 0)), last) if last else made
    if out is None:
        return made
    return _core.ew_positive(made, out)


def matmul(x1, x2, /, out=None, *, axes=None, dtype=None, casting="same_kind"):
    if dtype is not None:
        x1, x2 = (x.astype(dtype, casting=casting, copy=False) for x in (x1, x2))
    if axes is not None:
        return _matmul_on(x1, x2, out, axes)
    return _core.matmul(x1, x2, out)


def inner(a, b):
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return _core.dot(a, moveaxis(b, -1, max(b.ndim - 2, 0)))


def outer(a, b, out=None):
    return _core.ew_multiply(asarray(a).reshape(-1, 1), asarray(b).reshape(1, -1), out)


def vdot(a, b):
    return _core.dot(a.ravel(), b.ravel())


def kron(a, b):
    ndim = max(a.ndim, b.ndim)
    a, b = (x.reshape((1,) * (ndim - x.ndim) + x.shape) for x in (a, b))
    left = a.reshape([n for size in a.shape for n in (size, 1)])
    right = b.reshape([n for size in b.shape for n in (1, size)])
    return (left * right).reshape([m * n for m, n in zip(a.shape, b.shape, strict=False)])


def tensordot(a, b, axes=2):
    if isinstance(axes, int):
        axes = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    left, right = ([x] if isinstance(x, int) else list(x) for x in axes)
    left, right = [x % a.ndim for x in left], [x % b.ndim for x in right]
    if [a.shape[x] for x in left] != [b.shape[x] for x in right]:
        raise ValueError("shape-mismatch for sum")
    keep_a = [x for x in range(a.ndim) if x not in left]
    keep_b = [x for x in range(b.ndim) if x not in right]
    inside = 1
    for x in left:
        inside *= a.shape[x]
    outside = [a.shape[x] for x in keep_a], [b.shape[x] for x in keep_b]
    rows = a.transpose(keep_a + left) if a.ndim else a
    columns = b.transpose(right + keep_b) if b.ndim else b
    rows = rows.reshape(a.size // max(inside, 1), inside)
    columns = columns.reshape(inside, b.size // max(inside, 1))
    return _core.dot(rows, columns).reshape(outside[0] + outside[1])


def unravel_index(indices, dims, order="C"):
    """The positions of flat indices, which must be integers inside of the shape."""
    if order not in ("C", "F", "c", "f"):
        raise ValueError("only 'C' or 'F' order is permitted")
    indices = asarray(indices)
    if indices.dtype.kind not in "iub":
        raise TypeError(
            f"Iterator operand 0 dtype could not be cast from {indices.dtype!r} to dtype('int64') "
            "according to the rule 'same_kind'"
        )
    dims = tuple(dims) if hasattr(dims, "__len__") else (dims,)
    total = 1
    for size in dims:
        total *= int(size)
    if indices.size and bool(((indices < 0) | (indices >= total)).any()):
        bad = indices[(indices < 0) | (indices >= total)].ravel()[0].item()
        raise ValueError(f"index {bad} is out of bounds for array with size {total}")
    made, indices = [], indices.astype("int64")
    for size in reversed(dims) if order in "Cc" else dims:
        made.append(indices % size)
        indices = indices // size
    return tuple(reversed(made)) if order in "Cc" else tuple(made)


def shape(a):
    return asarray(a).shape


def ndim(a):
    return asarray(a).ndim


def size(a, axis=None):
    return asarray(a).size if axis is None else asarray(a).shape[axis]


def indices(dimensions, dtype=int):
    made = [
        arange(n, dtype=dtype).reshape([-1 if i == d else 1 for i in range(len(dimensions))])
        for d, n in enumerate(dimensions)
    ]
    return _core.stack([_core.broadcast_to(x, tuple(dimensions)) for x in made])
