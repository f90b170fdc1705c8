"""libdevice by its own names, against exact arithmetic (fractions) and mpmath."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from simt.numba import cuda
from simt.numba.cuda import libdevice

MODES = ("rn", "rd", "ru", "rz")


def call(name, *args, dtype=np.float64):
    """The function's values for arrays of arguments."""
    function = getattr(libdevice, name)
    out = np.zeros(len(args[0]), dtype)
    if len(args) == 1:

        @cuda.jit
        def k(out, a):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = function(a[i])

    elif len(args) == 2:

        @cuda.jit
        def k(out, a, b):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = function(a[i], b[i])

    else:

        @cuda.jit
        def k(out, a, b, c):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = function(a[i], b[i], c[i])

    k[-(-len(out) // 128), 128](out, *map(np.ascontiguousarray, args))
    return out


def numbers(dtype, n=1500, seed=0):
    """Floats of all sizes, near each other and special ones."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize - 1), n).astype(f"u{info.bits // 8}")
    wild = np.copysign(bits.view(dtype), rng.choice([-1, 1], n).astype(dtype))[: n // 3]
    near = rng.normal(size=n // 3).astype(dtype)
    few = np.array([0.0, -0.0, 1, -1, 3, info.tiny, info.max, -info.max, info.smallest_subnormal])
    exact = rng.integers(-8, 9, n // 4).astype(dtype)
    out = np.concatenate([wild, near, exact, rng.choice(few, n).astype(dtype)])[:n]
    return rng.permutation(out[np.isfinite(out)])


def rounded(exact, dtype, mode):
    """A fraction rounded to a float type."""
    info = np.finfo(dtype)
    if exact == 0:
        return 0.0
    lowest = int(info.minexp) - info.nmant  # the exponent of the smallest subnormal
    size = abs(exact)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    e -= size < Fraction(2) ** e
    unit = Fraction(2) ** max(e - info.nmant, lowest)
    down = exact // unit
    rest = exact / unit - down
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2 == 1)
    else:
        up = rest > 0 and (mode == "ru" or (mode == "rz" and exact < 0))
    value = (down + up) * unit
    if abs(value) > Fraction(float(info.max)):
        beyond = mode == "rn" or mode == ("ru" if exact > 0 else "rd")
        most = math.inf if beyond else float(info.max)
        return most if exact > 0 else -most
    return float(value)


OPERATIONS = {
    "add": (2, lambda x, y: x + y),
    "mul": (2, lambda x, y: x * y),
    "div": (2, lambda x, y: x / y if y else None),
    "rcp": (1, lambda x: 1 / x if x else None),
    "fma": (3, lambda x, y, z: x * y + z),
    "sub": (2, lambda x, y: x - y),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_modes(name, mode, dtype):
    single = dtype == np.float32
    if name == "sub" and not single:
        pytest.skip("libdevice has no dsub")
    nargs, exact = OPERATIONS[name]
    args = [numbers(dtype, seed=k + 1) for k in range(nargs)]
    n = min(map(len, args))
    args = [a[:n] for a in args]
    if nargs > 1:
        args[-1][:60] = -args[0][:60]  # sums that are nothing
    full = {"fma": "fmaf" if single else "fma"}.get(name, ("f" if single else "d") + name)
    got = call(f"{full}_{mode}", *args, dtype=dtype)
    for k in range(n):
        values = [Fraction(float(a[k])) for a in args]
        want = exact(*values)
        if want is None:
            continue
        want = rounded(want, dtype, mode)
        assert float(got[k]) == want, (k, [float(a[k]) for a in args], float(got[k]), want)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots(mode, dtype):
    x = np.abs(numbers(dtype))
    got = call(("fsqrt_" if dtype == np.float32 else "dsqrt_") + mode, x, dtype=dtype)
    tiny = Fraction(float(np.finfo(dtype).smallest_subnormal))
    for a, b in zip(x, got, strict=True):
        a, b = Fraction(float(a)), Fraction(float(b))
        step = max(Fraction(float(np.nextafter(dtype(float(b)), dtype(np.inf)))) - b, tiny)
        if mode == "ru":
            assert b * b >= a and (b == 0 or (b - step) ** 2 < a or (b - step / 2) ** 2 < a)
        elif mode == "rn":
            assert max(b - step / 2, 0) ** 2 <= a <= (b + step / 2) ** 2
        else:
            assert b * b <= a < (b + step) ** 2


def test_zeros_of_sums_have_the_mode_s_sign():
    x = np.array([0.0, 0.0, -0.0, 1.5, 0.0])
    y = np.array([0.0, -0.0, -0.0, -1.5, -0.0])
    for mode in MODES:
        got = np.signbit(call(f"dadd_{mode}", x, y))
        assert (got == [False, mode == "rd", True, mode == "rd", mode == "rd"]).all()


@pytest.mark.parametrize("mode", MODES)
def test_conversions(mode):
    rng = np.random.default_rng(5)
    x = numbers(np.float64)
    got = call(f"double2float_{mode}", x, dtype=np.float32)
    for a, b in zip(x, got, strict=True):
        assert float(b) == rounded(Fraction(float(a)), np.float32, mode)
    whole = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}[mode]
    x = np.concatenate([x, rng.normal(size=500) * 100, [2.5, -0.5, np.inf, -np.inf, np.nan]])
    for name, kind in (("int", "i4"), ("uint", "u4"), ("ll", "i8"), ("ull", "u8")):
        info = np.iinfo(kind)
        for prefix, values in (("double", x), ("float", x.astype(np.float32))):
            got = call(f"{prefix}2{name}_{mode}", values, dtype=kind)
            for a, b in zip(values, got, strict=True):
                want = 0 if np.isnan(a) else min(max(whole(a), info.min), info.max)
                assert int(b) == int(want), (name, float(a), int(b))
    for name, kind in (("int", "i4"), ("uint", "u4"), ("ll", "i8"), ("ull", "u8")):
        info = np.iinfo(kind)
        values = rng.integers(info.min, info.max, 800, kind, endpoint=True)
        values = np.concatenate([values >> s for s in (0, 7, 21)] + [[info.max, info.min, 0, 1]])
        values = values.astype(kind)
        for to, dtype in (("float", np.float32), ("double", np.float64)):
            if to == "double" and kind[1] == "4":
                continue
            got = call(f"{name}2{to}_{mode}", values, dtype=dtype)
            for a, b in zip(values, got, strict=True):
                assert float(b) == rounded(Fraction(int(a)), dtype, mode)


SPECIAL = {
    "j0": (mpmath.besselj, 0, 2e-15),
    "j1": (mpmath.besselj, 1, 2e-15),
    "y0": (mpmath.bessely, 0, 3e-15),
    "y1": (mpmath.bessely, 1, 3e-15),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_bessel_functions(name):
    function, order, bound = SPECIAL[name]
    rng = np.random.default_rng(2)
    x = np.concatenate([10.0 ** rng.uniform(-12, 0, 40), rng.uniform(0, 60, 200), [24.9999, 25.0]])
    x = np.concatenate([x, 10.0 ** rng.uniform(2, 5, 20), [2.404825557695773, 0.8935769662791675]])
    if name[0] == "j":
        x = np.concatenate([x, -x, [0.0]])
    got = call(name, x)
    for a, b in zip(x, got, strict=True):
        want = float(function(order, mpmath.mpf(float(a))))
        assert abs(b - want) <= bound * max(1, abs(want)), (a, b, want)
    single = call(name + "f", x.astype(np.float32), dtype=np.float32)
    np.testing.assert_allclose(single, call(name, x.astype(np.float32)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 20, 60])
def test_bessel_functions_of_any_order(n):
    x = np.array([0.1, 1.0, 3.7, 12.0, 24.0, 26.5, 59.0, 61.0, 100.0])
    orders = np.full(len(x), n)
    for name, function in (("jn", mpmath.besselj), ("yn", mpmath.bessely)):
        got = call(name, orders, x)
        for a, b in zip(x, got, strict=True):
            want = float(function(n, float(a)))
            assert b == pytest.approx(want, rel=1e-12, abs=3e-15), (name, n, a)


def test_special_values_of_bessel_functions():
    x = np.array([0.0, -1.0, np.inf, np.nan])
    assert str(call("j0", x[[0, 2, 3]]).tolist()) == "[1.0, 0.0, nan]"
    assert str(call("y0", x).tolist()) == "[-inf, nan, 0.0, nan]"
    assert str(call("y1", x).tolist()) == "[-inf, nan, 0.0, nan]"
    assert np.isnan(call("jn", np.array([-1]), np.array([1.0]))).all()


def test_erfcx_and_inverses():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-5, 40, 200), [0.0, 12.0, 12.1, 1e5, 1e300]])
    for a, b in zip(x, call("erfcx", x), strict=True):
        with mpmath.workdps(60):
            a = mpmath.mpf(float(a))
            want = 1 / (a * mpmath.sqrt(mpmath.pi)) * (1 - 1 / (2 * a * a)) if a else 1
            if abs(a) < 1000:
                want = mpmath.exp(a * a) * mpmath.erfc(a)
            assert abs(float(b / want) - 1) < 3e-15, a
    y = np.concatenate([rng.uniform(0, 2, 200), 10.0 ** rng.uniform(-300, 0, 100)])
    for a, b in zip(y, call("erfcinv", y), strict=True):
        with mpmath.workdps(60):
            slope = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(mpmath.mpf(float(b)) ** 2))
            off = (mpmath.erfc(mpmath.mpf(float(b))) - mpmath.mpf(float(a))) / slope
            assert abs(float(off)) <= 6e-16 * max(abs(b), 1e-3), a
    assert call("erfcinv", np.array([0.0, 2.0])).tolist() == [math.inf, -math.inf]
    np.testing.assert_allclose(call("normcdfinv", np.array([0.025, 0.5])), [-1.959963984540054, 0])


def test_integers():
    rng = np.random.default_rng(4)
    i = rng.integers(-(2**31), 2**31, (3, 500), np.int32)
    u = i.astype(np.uint32)
    a, b, c = i.astype(object)
    ua, ub, uc = u.astype(object)
    assert (call("mulhi", i[0], i[1], dtype="i4") == (a * b) >> 32).all()
    assert (call("umulhi", u[0], u[1], dtype="u4") == (ua * ub) >> 32).all()
    assert (call("hadd", i[0], i[1], dtype="i4") == (a + b) >> 1).all()
    assert (call("rhadd", i[0], i[1], dtype="i4") == (a + b + 1) >> 1).all()
    assert (call("uhadd", u[0], u[1], dtype="u4") == (ua + ub) >> 1).all()
    assert (call("urhadd", u[0], u[1], dtype="u4") == (ua + ub + 1) >> 1).all()
    assert (call("sad", i[0], i[1], u[2], dtype="u4") == (abs(a - b) + uc) % 2**32).all()
    assert (call("usad", u[0], u[1], u[2], dtype="u4") == (abs(ua - ub) + uc) % 2**32).all()
    w = rng.integers(-(2**63), 2**63, (2, 500), np.int64)
    x, y = w.astype(object)
    assert (call("mul64hi", w[0], w[1], dtype="i8") == (x * y) >> 64).all()
    ux, uy = w.astype(np.uint64).astype(object)
    got = call("umul64hi", w[0].astype(np.uint64), w[1].astype(np.uint64), dtype="u8")
    assert (got == (ux * uy) >> 64).all()
    got = call("byte_perm", u[0], u[1], u[2], dtype="i4").astype(np.uint32)
    for k in range(500):
        parts = (int(ua[k]) | int(ub[k]) << 32).to_bytes(8, "little")
        want = bytes(parts[(int(uc[k]) >> 4 * d) & 7] for d in range(4))
        assert int(got[k]) == int.from_bytes(want, "little")


def test_parts_of_floats():
    x = numbers(np.float64)
    bits = x.view(np.int64)
    assert (call("double2hiint", x, dtype="i4") == bits >> 32).all()
    assert (call("double2loint", x, dtype="i4") == bits.astype(np.int32)).all()
    hi, lo = (bits >> 32).astype(np.int32), bits.astype(np.int32)
    assert (call("hiloint2double", hi, lo).view(np.int64) == bits).all()
    h = np.arange(0, 65536, 7).astype(np.uint16)
    h = h[np.isfinite(h.view(np.float16))]
    assert (call("half2float", h) == h.view(np.float16)).all()
    assert (call("float2half_rn", h.view(np.float16).astype("f4"), dtype="u2") == h).all()
    y = x[x != 0]
    assert (call("ilogb", y, dtype="i4") == np.frexp(y)[1] - 1).all()
    assert (call("logb", y) == np.frexp(y)[1] - 1).all()
    special = np.array([0.0, np.inf, -np.inf, np.nan])
    assert str(call("logb", special).tolist()) == "[-inf, inf, inf, nan]"
    assert call("ilogb", special, dtype="i4").tolist() == [-(2**31), 2**31 - 1, 2**31 - 1, -(2**31)]


def test_remquo():
    rng = np.random.default_rng(6)
    x, y = rng.uniform(-50, 50, 400), rng.uniform(-5, 5, 400)

    @cuda.jit
    def k(x, y, rest, count):
        i = cuda.grid(1)
        if i < x.size:
            rest[i], count[i] = libdevice.remquo(x[i], y[i])

    rest, count = np.zeros(400), np.zeros(400, np.int32)
    k[4, 128](x, y, rest, count)
    for a, b, r, c in zip(x, y, rest, count, strict=True):
        quotient = round(Fraction(a) / Fraction(b))
        assert r == math.remainder(a, b)
        assert abs(c) == abs(quotient) % 8 and (c == 0 or (c < 0) == (quotient < 0))
