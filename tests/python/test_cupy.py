"""simt.cupy against NumPy: elementwise operations and reductions."""

import itertools

import numpy as np
import pytest
import simt.cupy as cp
from array_reference import same

INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
DTYPES = [np.bool_, *INTS, *FLOATS]


def edge_values(dtype):
    """Eighteen values, with the awkward ones."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False] * 9)
    if dtype.kind in "iu":
        i = np.iinfo(dtype)
        low = [i.min, i.min + 1] if dtype.kind == "i" else [0, 1]
        near = [-7, -3, -2, -1] if dtype.kind == "i" else [7, 9, 100, 2]
        return np.array([*low, *near, 0, 1, 2, 3, 5, 7, 8, 31, 63, 64, i.max - 1, i.max], dtype)
    f = np.finfo(dtype)
    return np.array(
        [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7.25, 100.3, np.inf, -np.inf, np.nan]
        + [f.tiny, f.max, -f.max],
        dtype,
    )


BINARY = [
    "add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin",
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor",
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift copysign",
]


@pytest.mark.parametrize("name", " ".join(BINARY).split())
def test_binary_rows(name):
    f, g = getattr(np, name), getattr(cp, name)
    for dt1, dt2 in itertools.product(DTYPES, DTYPES):
        x = edge_values(dt1)[:, None]
        y = edge_values(dt2)[None, :]
        with np.errstate(all="ignore"):
            try:
                want = f(x, y)
            except TypeError:
                with pytest.raises(TypeError):
                    g(cp.array(x), cp.array(y))
                continue
        if want.dtype == np.float16 and name in ("divide", "floor_divide", "remainder", "fmod"):
            continue  # checked for wider floats; half goes through single
        got = g(cp.array(x), cp.array(y))
        try:
            # of zeros of both signs NumPy takes either; ours takes -0 < +0
            same(got, want, signs=name not in ("maximum", "minimum", "fmax", "fmin"))
        except AssertionError as e:
            raise AssertionError(f"{name} {np.dtype(dt1)} {np.dtype(dt2)}: {e}") from None


UNARY = [
    "negative positive absolute sign square reciprocal exp exp2 expm1 log log2 log10 log1p sqrt",
    "arcsin arccos arctan sinh cosh arcsinh arccosh arctanh cbrt",
    "sin cos tan tanh floor ceil rint trunc isnan isinf isfinite signbit logical_not invert",
]


@pytest.mark.parametrize("name", " ".join(UNARY).split())
def test_unary_rows(name):
    f, g = getattr(np, name), getattr(cp, name)
    for dt in DTYPES:
        x = edge_values(dt)
        if name == "reciprocal" and np.dtype(dt).kind != "f":
            continue  # NumPy's integer reciprocal (0, 1 or -1) is not taken over
        with np.errstate(all="ignore"):
            try:
                want = f(x)
            except TypeError:
                with pytest.raises(TypeError):
                    g(cp.array(x))
                continue
        rtol = 0.0
        if name in UNARY[1].split() or name in (
            "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh reciprocal".split()
        ):
            rtol = {2: 2e-3, 4: 1e-6}.get(want.dtype.itemsize, 1e-14)
        if name in ("sin", "cos", "tan"):
            x, want = x[:15], want[:15]
        try:
            same(g(cp.array(x)), want, rtol, 1e-7 if dt == np.float16 else 0.0)
        except AssertionError as e:
            raise AssertionError(f"{name} {np.dtype(dt)}: {e}") from None


@pytest.mark.parametrize("name", ["hypot", "arctan2", "logaddexp", "logaddexp2", "nextafter"])
def test_two_floats(name):
    f, g = getattr(np, name), getattr(cp, name)
    for dt in [*INTS, *FLOATS]:
        x = edge_values(dt)
        a, b = (v.ravel().copy() for v in np.meshgrid(x, x))
        with np.errstate(all="ignore"):
            want = f(a, b)
        if name == "nextafter" and want.dtype == np.float16:
            want[a == b] = b[a == b]  # NumPy before 2.5 has 0 for 0 towards -0
        rtol = {2: 2e-3, 4: 2e-6}.get(want.dtype.itemsize, 1e-14)
        close = {2: 1e-2, 4: 1e-6}.get(want.dtype.itemsize, 1e-15) if name[:3] == "log" else 0.0
        same(g(cp.array(a), cp.array(b)), want, 0.0 if name == "nextafter" else rtol, close)


def test_sinc():
    x = np.linspace(-4, 4, 33)
    same(cp.sinc(cp.array(x)), np.sinc(x), 1e-14, 1e-16)
    same(cp.sinc(cp.array(x, "f4")), np.sinc(x.astype("f4")), 1e-5, 1e-7)


@pytest.mark.parametrize("dt", [np.float32, np.float64])
def test_parts_of_numbers(dt):
    x = edge_values(dt)
    for got, want in zip(cp.frexp(cp.array(x)), np.frexp(x), strict=True):
        same(got, np.where(np.isfinite(x), want, 0 if want.dtype == "i4" else x).astype(want.dtype))
    for got, want in zip(cp.modf(cp.array(x)), np.modf(x), strict=True):
        same(got, want)
    n = np.arange(-40, 40, dtype="i4")
    same(cp.ldexp(cp.array(x[:1] + dt(1.5)), cp.array(n)), np.ldexp(x[:1] + dt(1.5), n))


def test_power():
    for dt in [*INTS, *FLOATS]:
        x = edge_values(dt)[:14]
        y = np.array([0, 1, 2, 3, 5], dt)
        with np.errstate(all="ignore"):
            want = x[:, None] ** y
        rtol = {2: 2e-3, 4: 1e-6}.get(np.dtype(dt).itemsize, 1e-14)
        same(cp.array(x)[:, None] ** cp.array(y), want, rtol)
    x = np.linspace(0.1, 4, 9)
    same(cp.array(x) ** 2, x**2)
    same(cp.array(x) ** 0.5, x**0.5)
    same(2.0 ** cp.array(x), 2.0**x, 1e-14)


def test_integers_to_negative_powers():
    """CuPy's: 1 / x**n without its fraction, and 0 for 0."""
    for dt in ("i1", "i2", "i4", "i8"):
        x = np.array([0, 1, -1, 2, -2, 3, np.iinfo(dt).max, np.iinfo(dt).min], dt)
        n = np.array([-1, -2, -3, -100, np.iinfo(dt).min], dt)
        want = [[1 if b == 1 or (b == -1 and k % 2 == 0) else -1 if b == -1 else 0
                 for k in n.tolist()] for b in x.tolist()]  # fmt: skip
        same(cp.array(x)[:, None] ** cp.array(n), np.array(want, dt))
        with pytest.raises(ValueError, match="Integers to negative integer powers"):
            cp.array(x) ** -1


@pytest.mark.parametrize("dt", DTYPES)
def test_python_scalars_are_weak(dt):
    x = edge_values(dt)
    a = cp.array(x)
    for op in (
        "__add__",
        "__mul__",
        "__truediv__",
        "__radd__",
        "__floordiv__",
        "__mod__",
        "__lt__",
    ):
        for s in (True, 3, 2.5, np.float32(2.5), np.int16(3), np.float64(2.5)):
            with np.errstate(all="ignore"):
                want = getattr(x, op)(s)
            if want.dtype == np.float16:
                continue
            same(getattr(a, op)(s), want)


def test_python_integers_out_of_range():
    a = cp.array([1, 2, 200], dtype=cp.uint8)
    for s in (300, -1, 2**70):
        with pytest.raises(OverflowError):
            a + s
    assert (a < 300).get().tolist() == [True] * 3
    assert (a > -1).get().tolist() == [True] * 3
    assert (a == 300).get().tolist() == [False] * 3
    assert (300 > a).get().tolist() == [True] * 3
    assert (-1 >= a).get().tolist() == [False] * 3
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        a[0] = 300
    assert a.get().tolist() == [1, 2, 200]


def test_casts_give_numpys_values():
    for dt1, dt2 in itertools.product(DTYPES, DTYPES):
        x = edge_values(dt1)
        if np.dtype(dt1).kind == "f" and np.dtype(dt2).kind in "iu":
            x = np.array([0.0, -0.0, 1.9, -1.9, 100.3, 127.9, 2.5], dt1)  # the rest: undefined in C
            if np.dtype(dt2).kind == "u":
                x = abs(x)
        with np.errstate(all="ignore"):
            same(cp.array(x).astype(dt2), x.astype(dt2))
    odd = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 3e9])
    with np.errstate(all="ignore"):
        for dt in (np.int32, np.int64):
            same(cp.array(odd).astype(dt), odd.astype(dt))


def test_in_place_and_aliases():
    x, a = np.arange(12.0).reshape(3, 4), cp.arange(12.0).reshape(3, 4)
    for m in (x, a):
        v = m[1]
        t = m.T
        v += 10
        m[:, ::2] *= 2
        t[0] -= 1
        m[m > 20] = -1
        v[...] = v[::-1]
        m //= 3
        m **= 2
    same(a, x)
    b = a
    b += 1
    assert b is a
    i = cp.arange(3)
    with pytest.raises(TypeError, match="Cannot cast"):
        i += 1.5
    with pytest.raises(TypeError):
        i /= 2
    with pytest.raises(ValueError):
        a[0] += cp.ones((2, 4))
    same(i, np.arange(3))


def test_overlapping_copies():
    x, a = np.arange(10), cp.arange(10)
    for m in (x, a):
        m[1:] = m[:-1]
        m[::-1] += m
    same(a, x)


# ---- reductions ----


@pytest.mark.parametrize("name", "sum prod max min mean var std any all argmax argmin".split())
def test_reductions(name):
    rng = np.random.default_rng(3)
    for dt in DTYPES:
        x = (rng.random((3, 4, 5)) * 5 + 1).astype(dt)
        axes = [None, 0, 1, -1] + ([] if name.startswith("arg") else [(0, 2), (0, 1, 2), ()])
        for axis, keepdims in itertools.product(axes, (False, True)):
            if name == "prod" and axis is None and dt == np.float16:
                continue
            want = np.asarray(getattr(x, name)(axis=axis, keepdims=keepdims))
            got = getattr(cp, name)(cp.array(x), axis=axis, keepdims=keepdims)
            rtol = {np.float16: 4e-3, np.float32: 1e-5}.get(want.dtype.type, 1e-12)
            try:
                same(got, want, rtol, 1e-3 if want.dtype == np.float16 else 0.0)
            except AssertionError as e:
                raise AssertionError(f"{name} {np.dtype(dt)} {axis} {keepdims}: {e}") from None


def test_reduction_options():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = cp.array(x)
    same(a.sum(dtype=np.float64), np.asarray(x.sum(dtype=np.float64)))
    same(a.var(ddof=1, axis=0), x.var(ddof=1, axis=0), 1e-6)
    out = cp.empty(4, np.float32)
    assert a.sum(axis=0, out=out) is out
    same(out, x.sum(axis=0))
    same(cp.cumsum(a, axis=1), np.cumsum(x, axis=1))
    same(a.cumsum(), x.cumsum())
    same(cp.array([np.nan, 1.0]).max(), np.asarray(np.nan))
    assert cp.array([1.0, np.nan, 3.0]).argmax().item() == 1
    with pytest.raises(ValueError, match="zero-size array"):
        cp.zeros(0).max()
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds for array of dim"):
        a.sum(axis=2)
    with pytest.raises(ValueError, match="duplicate"):
        a.sum(axis=(0, 0))
    assert cp.zeros((0, 3)).sum(axis=0).get().tolist() == [0, 0, 0]
