"""Device math (src/devlib): accuracy against mpmath, C99 special cases, the same bits from every
instruction set, loops in place and unaligned, Philox against the published vectors.
"""

import math

import devlib_lib
import mpmath as mp
import numpy as np
import pytest

PATH = devlib_lib.find()
pytestmark = pytest.mark.skipif(PATH is None, reason="libdevlib_test is not built (ninja -C build)")
NAMES = sorted(devlib_lib.REFERENCE)
BINARY = ("atan2", "hypot", "pow")
UNARY = [n for n in NAMES if n not in BINARY]
GROWS = ("exp", "exp2", "exp10", "expm1", "sinh", "cosh")  # mpmath must not see huge arguments
TYPES = [np.float32, np.float64]
INF, NAN = math.inf, math.nan


@pytest.fixture(scope="module")
def dev():
    return devlib_lib.Devlib(PATH)


def rng():
    return np.random.default_rng(20)


def same(a, b):
    """Equal bits, any NaN equal to any other."""
    word = np.uint32 if a.dtype.itemsize == 4 else np.uint64
    return (a.view(word) == b.view(word)) | (np.isnan(a) & np.isnan(b))


def any_bits(dtype, n):
    word = np.uint32 if dtype == np.float32 else np.uint64
    return rng().integers(0, np.iinfo(word).max, n, dtype=word).view(dtype)


def test_rows_have_references(dev):
    assert sorted(dev.rows) == NAMES


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_accuracy(dev, name, dtype):
    bound = dev.rows[name][2 if dtype == np.float32 else 3]
    for region, inputs in devlib_lib.samples(name, dtype, 500, rng()):
        error, where = devlib_lib.worst(name, dev.call(name, *inputs), inputs, dtype)
        assert error <= bound, (region, where)


@pytest.mark.parametrize("name", UNARY)
def test_accuracy_over_all_bit_patterns(dev, name):
    """Every 10007th float32 (all of them in the slow test); random float64."""
    stride = 10007
    error, where = dev.sweep(name, 0, 2**32 // stride, stride)
    assert error <= dev.rows[name][2], where
    x = any_bits(np.float64, 200)
    x = x[np.abs(x) < 1e300] if name in GROWS else x
    x = np.clip(x, -190, 190) if name.endswith("gamma") else x
    x = np.clip(x, -1e4, 1e4) if name in (*GROWS, "erf", "erfc") else x
    error, where = devlib_lib.worst(name, dev.call(name, x), [x], np.float64)
    assert error <= dev.rows[name][3], where


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", UNARY)
def test_every_float32(dev, name):
    error, where = dev.sweep(name, 0, 2**32, 1)
    assert error <= dev.rows[name][2], where


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_same_bits_from_every_instruction_set(dev, name, dtype):
    arrays = [inputs for _, inputs in devlib_lib.samples(name, dtype, 300, rng())]
    wild = any_bits(dtype, 4000)
    arrays.append([wild, wild[::-1].copy()][: dev.rows[name][1]])
    for inputs in arrays:
        results = [dev.call(name, *inputs, isa=isa) for isa in dev.isas]
        for other in results[1:]:
            assert same(results[0], other).all()


HALF_PI = math.pi / 2
SPECIAL = {
    "exp2": [
        (0.0, 1.0),
        (-0.0, 1.0),
        (INF, INF),
        (-INF, 0.0),
        (1e4, INF),
        (-1e4, 0.0),
        (7.0, 128.0),
    ],
    "exp10": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1.0, NAN)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1.0, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, HALF_PI), (-1.0, -HALF_PI), (1.01, NAN), (-INF, NAN)],
    "acos": [(0.0, HALF_PI), (1.0, 0.0), (-1.0, math.pi), (-1.01, NAN), (INF, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, HALF_PI), (-INF, -HALF_PI), (1e30, HALF_PI)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF), (-1e4, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF), (-1e4, INF)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-27.0, -3.0), (125.0, 5.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (0.99, NAN), (-1.0, NAN), (INF, INF), (-INF, NAN), (0.0, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.01, NAN), (-INF, NAN)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (100.0, 0.0), (-100.0, 2.0)],
    "tgamma": [(0.0, INF), (-0.0, -INF), (1.0, 1.0), (6.0, 120.0), (-1.0, NAN), (-7.0, NAN)],
    "lgamma": [(0.0, INF), (-0.0, INF), (1.0, 0.0), (2.0, 0.0), (-1.0, INF), (-1e9, INF)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN)],
    "sinpi": [(0.0, 0.0), (-0.0, -0.0), (0.5, 1.0), (7.0, 0.0), (-4.0, -0.0), (1.5, -1.0)],
    "cospi": [(0.0, 1.0), (-0.5, 0.0), (1.0, -1.0), (1e9, 1.0), (2.5, 0.0), (INF, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (0.25, 2.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1.0, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-INF, NAN), (-1.5, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (100.0, 1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (100.0, 1.0)],
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(dev, name, dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    cases = [*SPECIAL[name], (NAN, NAN)]
    if name.endswith("gamma"):
        cases += [(INF, INF), (-INF, INF if name == "lgamma" else NAN), (1e36, INF), (-200.5, -0.0)]
        cases = cases if name == "tgamma" else cases[:-2]
    if name in (
        "expm1",
        "log1p",
        "sin",
        "tan",
        "tanh",
        "asin",
        "atan",
        "sinh",
    ):  # f(x) = x there, denormals kept
        cases += [(smallest, smallest), (-smallest, -smallest), (3 * smallest, 3 * smallest)]
    x = np.array([c[0] for c in cases], dtype)
    want = np.array([c[1] for c in cases], dtype)
    assert same(dev.call(name, x), want).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_borders_of_exp_and_log(dev, dtype):
    """Results that overflow, underflow and are denormal, and denormal arguments."""
    info = np.finfo(dtype)
    x = [math.log(float(info.max)) * (1 + k * float(info.eps)) for k in range(-3, 4)]
    x += [math.log(float(info.tiny)) * (1 + k * float(info.eps)) for k in range(-3, 4)]
    x += [math.log(float(info.smallest_subnormal)) + d for d in (-1, -0.69, -0.5, 0.1, 1, 3.3)]
    for name in ("exp", "expm1"):
        a = np.array(x, dtype)
        error, where = devlib_lib.worst(name, dev.call(name, a), [a], dtype)
        assert error <= 1.0, (name, where)
    a = np.array([1, 2, 3, 1001, 99991], dtype) * info.smallest_subnormal
    a = np.concatenate([a, np.array([info.tiny, info.max], dtype)])
    error, where = devlib_lib.worst("log", dev.call("log", a), [a], dtype)
    assert error <= 1.0, where


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_hard_arguments_of_sin_cos_tan(dev, name, dtype):
    """Numbers next to multiples of pi/2, and the one nearest of all; huge and small mixed."""
    rough = rng().uniform(1, 60 if dtype == np.float32 else 500, 300)
    x = [float(mp.nint(mp.mpf(2) ** r * 2 / mp.pi) * mp.pi / 2) for r in rough]
    x += [6381956970095103.0 * 2.0**797] if dtype == np.float64 else [16367173.0 * 2.0**72]
    x += [float(np.finfo(dtype).max), -1e30, 65536.0, -65537.0, 2.0**30, 2.0**30 + 1]
    a = np.array(x, dtype)
    error, where = devlib_lib.worst(name, dev.call(name, a), [a], dtype)
    assert error <= dev.rows[name][2], where


@pytest.mark.parametrize("dtype", TYPES)
def test_gamma_of_negative_numbers(dev, dtype):
    """lgamma has zeros between the negative integers: float64 is relatively right down to 1/4,
    nearer absolutely; float32, computed in float64, relatively everywhere."""
    column = 2 if dtype == np.float32 else 3
    bound = dev.rows["lgamma"][column]
    zeros = [-2.4570247382208006, -2.7476826467274127, -3.143580888349981, -9.999997244]
    for low in (-4, -30, -180):
        x = rng().uniform(low, 0, 400)
        x = np.concatenate([x, np.round(x[:50]) + x[50:100] * 1e-5, zeros]).astype(dtype)
        x = x[(x < 0) & (x != np.floor(x))]
        error, where = devlib_lib.worst("tgamma", dev.call("tgamma", x), [x], dtype)
        assert error <= dev.rows["tgamma"][column], where
        got = dev.call("lgamma", x)
        if dtype == np.float32:
            error, where = devlib_lib.worst("lgamma", got, [x], dtype)
            assert error <= bound, where
        for v, g in zip(x, got, strict=True):
            want = devlib_lib.REFERENCE["lgamma"](mp.mpf(float(v)))
            unit = np.spacing(max(abs(float(want)), 0.25))
            assert dtype == np.float32 or abs(float(g) - want) <= bound * unit, v
    assert dev.call("tgamma", np.array([-171.5, -176.25], dtype)).any() == (dtype == np.float64)


# Zeros, poles, ends of the domain, and where the functions change their way.
CORNERS = {
    "exp": [
        0,
        0.34657359027997264,
        0.6931471805599453,
        88.72,
        -87.33,
        -103.9,
        709.78,
        -708.39,
        -745.1,
    ],
    "exp2": [0, 0.5, 1, -1, 127.99, 1023.99, -126, -149, -1022, -1074],
    "exp10": [0, 0.15, 38.5, 308.2, -37.9, -307.6],
    "expm1": [0, 0.34657359027997264, -0.6931471805599453, 1, -17, -37, 88.72, 709.78],
    "log": [1, 0.5, 2, 0.7071067811865476, 1.4142135623730951, 1e-38, 1e-308, 1e38, 1e308],
    "log2": [1, 2, 0.5, 1.4142135623730951, 1e-38, 1e-308],
    "log10": [1, 10, 0.1, 1.4142135623730951, 1e-38, 1e-308],
    "log1p": [0, -1, 1, -0.5, -0.2928932188134524, 0.41421356237309515, 1e-38],
    "sin": [0, math.pi, 2 * math.pi, 100 * math.pi, 1e5 * math.pi, 65536, 2.0**30, 1e22],
    "cos": [math.pi / 2, 1.5 * math.pi, 1e5 * math.pi + math.pi / 2, 65536, 2.0**30, 0, 1e22],
    "tan": [0, math.pi / 2, math.pi, 1e5 * math.pi, math.pi / 4, 65536, 2.0**30],
    "sinpi": [0, 1, 2, 1000, 0.5, 0.25],
    "cospi": [0.5, 1.5, 1000.5, 0, 0.25],
    "asin": [0, 0.5, 1, -1, -0.5],
    "acos": [1, 0, 0.5, -0.5, -1],
    "atan": [0, 0.41421356237309503, 1, 2.414213562373095, 1e16],
    "sinh": [0, 1, -1, 89.4, 710.4],
    "cosh": [0, 1, 89.4, 710.4],
    "tanh": [0, 1, -1, 9, 19],
    "asinh": [0, 1, 1e19, 1e154, -1],
    "acosh": [1, 1.5, 2, 1e19, 1e154],
    "atanh": [0, 0.5, 1, -1],
    "erf": [0, 1, 3.9, 5.9],
    "erfc": [0, 0.65, -0.65, 1, 9.1, 26.5, -5],
    "erfinv": [0, 1, -1, 0.5, 0.7],
    "tgamma": [1, 2, 1.4616321449683622, 0, -1, -2, -5, 12, 24, 35.04, 171.62, -34.5, -170.5, 3],
    "lgamma": [1, 2, 0, 0.5, 1.5, 3, 12, 24, -1, -2, -0.5],
    "cbrt": [0, 1, -1, 8, 1e-38, 1e-308],
    "rsqrt": [0, 1, 4, 1e-38, 1e-308],
}


def near(corner, dtype):
    """Numbers at all distances from one, its neighbours first."""
    corner = dtype(corner)
    steps = np.unique(np.geomspace(1, 2.0**20, 14).astype(np.int64))
    word = corner.view(np.int32 if dtype == np.float32 else np.int64) + np.concatenate(
        [steps, -steps]
    )
    some = word.astype(np.int32 if dtype == np.float32 else np.int64).view(dtype)
    away = np.geomspace(1e-12, 0.4, 14) * (abs(float(corner)) or 1)
    found = np.concatenate([[corner], some, corner + away, corner - away]).astype(dtype)
    return found[np.isfinite(found)]


def test_corners_are_known():
    assert sorted(CORNERS) == UNARY


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_relative_error_near_zeros_poles_and_seams(dev, name, dtype):
    bound = dev.rows[name][2 if dtype == np.float32 else 3]
    with np.errstate(over="ignore"):
        corners = [c for c in CORNERS[name] if np.isfinite(dtype(c))]
    x = np.unique(np.concatenate([near(c, dtype) for c in corners]))
    if name.endswith("gamma"):  # the poles: test_special_values
        x = x[(x > 0) | (x != np.floor(x))]
    if name == "lgamma":  # its zeros below -2: the test of negative numbers
        x = x[x > -2.3]
    error, where = devlib_lib.worst(name, dev.call(name, x), [x], dtype)
    assert error <= bound, where


def c_pow(x, y):
    """C's pow by Python's: the exceptions turned back into values."""
    odd = float(y).is_integer() and int(y) % 2 == 1 if math.isfinite(y) else False
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and odd else INF
    except ValueError:  # 0 to a negative power, or a negative number to a fraction
        return NAN if x != 0 else math.copysign(INF, x) if odd else INF


@pytest.mark.parametrize("dtype", TYPES)
def test_special_values_of_pow(dev, dtype):
    values = [0.0, 0.5, 0.9, 1.0, 1.1, 1.5, 2.0, 3.0, 1e30, 2.0**23 + 1, 2.0**24, 2.0**53 - 1, INF]
    values += [127.0, 149.0, 1023.0, 1074.0, 1e5, float(np.finfo(dtype).smallest_subnormal), NAN]
    values = np.array([s * v for v in values for s in (1, -1)], dtype)
    x, y = (a.ravel().copy() for a in np.meshgrid(values, values))
    want = [c_pow(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    with np.errstate(over="ignore", under="ignore"):
        want = np.array(want).astype(dtype)
    got = dev.call("pow", x, y)
    exact = ~np.isfinite(want) | (want == 0)
    assert same(got[exact], want[exact]).all()
    np.testing.assert_allclose(got[~exact], want[~exact], rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["atan2", "hypot"])
def test_special_values_of_two(dev, name, dtype):
    """Python's functions follow C99's table."""
    info = np.finfo(dtype)
    values = [0.0, 0.5, 1.0, 1.5, float(info.smallest_subnormal), float(info.tiny), 1e-30, 1e30]
    values += [float(info.max), float(info.max) / 2, INF, NAN]
    values = np.array([s * v for v in values for s in (1, -1)], dtype)
    x, y = (a.ravel().copy() for a in np.meshgrid(values, values))
    with np.errstate(over="ignore", under="ignore"):
        want = [getattr(math, name)(float(a), float(b)) for a, b in zip(x, y, strict=True)]
        want = np.array(want).astype(dtype)
    got = dev.call(name, x, y)
    exact = ~np.isfinite(want) | (want == 0) | np.isin(np.abs(want), values)
    assert same(got[exact], want[exact]).all()
    ulp = np.spacing(np.abs(want[~exact]))
    assert (np.abs(got[~exact] - want[~exact]) <= ulp).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_exact_powers_and_logarithms(dev, dtype):
    """Powers of 2 and 10 that are numbers, and back; cubes; nothing to round, so no error."""
    info = np.finfo(dtype)
    k = np.arange(info.minexp - info.nmant, info.maxexp).astype(dtype)
    assert (dev.call("exp2", k) == np.ldexp(np.ones(k.size, dtype), k.astype(int))).all()
    assert (dev.call("log2", np.ldexp(np.ones(k.size, dtype), k.astype(int))) == k).all()
    k = np.arange(0, 11 if dtype == np.float32 else 23)
    tens = np.array([float(10 ** int(i)) for i in k], dtype)
    assert (dev.call("exp10", k.astype(dtype)) == tens).all()
    assert (dev.call("log10", tens) == k).all()
    n = np.arange(1, 14 if dtype == np.float32 else 23)
    factorials = np.array([float(math.factorial(int(i) - 1)) for i in n], dtype)
    assert (dev.call("tgamma", n.astype(dtype)) == factorials).all()
    cubes = np.arange(-200, 200).astype(dtype)
    assert (dev.call("cbrt", cubes**3) == cubes).all()


def test_pow_of_integers_is_exact(dev):
    x, y = (a.ravel().astype(np.float64) for a in np.meshgrid(np.arange(-12, 13), np.arange(13)))
    assert (dev.call("pow", x, y) == x**y).all()
    small = [a.astype(np.float32) for a in np.meshgrid(np.arange(-12.0, 13), np.arange(6.0))]
    got = dev.call("pow", small[0].ravel().copy(), small[1].ravel().copy())
    assert (got == (small[0] ** small[1]).ravel()).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_lengths_offsets_and_in_place(dev, name, dtype):
    """Each length, unaligned, nothing written beside it; and dst = src, also where sin is slow."""
    n = 1100
    src = rng().uniform(0.1, 9, n + 2).astype(dtype)
    src[::97] = 1e10
    inputs = [src, src[::-1].copy()][: dev.rows[name][1]]
    whole = dev.call(name, *inputs)
    for isa in dev.isas:
        for length in (0, 1, 7, 16, 33, 513, n):
            cut = [a[1 : 1 + length] for a in inputs]
            out = np.full(n + 2, 77, dtype)
            dev.call(name, *cut, isa=isa, out=out[1 : 1 + length])
            assert same(out[1 : 1 + length], whole[1 : 1 + length]).all()
            assert out[0] == 77 and (out[1 + length :] == 77).all()
        dst = inputs[0].copy()
        dev.call(name, dst, *inputs[1:], isa=isa, out=dst)
        assert same(dst, whole).all()


# ---- Philox ----

KNOWN = [  # counter, key, words: Random123's known-answer vectors of philox4x32-10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def block(dev, counter, seed):
    words = np.array(counter, np.uint32)
    dev.lib.devlib_philox_block(words.ctypes.data, seed)
    return words


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox_known_answers(dev, counter, key, words):
    assert tuple(block(dev, counter, key[0] | key[1] << 32)) == words


STARTS = [0, 1, 3, 4 * 5 + 2, 2**34 - 7, 2**34 - 600, 2**63 + 2**34 - 2, 2**64 - 1200]


@pytest.mark.parametrize("start", STARTS)
def test_philox_words_have_one_definition(dev, start):
    """Word i is word i & 3 of block i >> 2: in order, out of order, and with a seed each."""
    n, seed = 1111, 0x123456789ABCDEF0
    index = np.arange(n, dtype=np.uint64) + np.uint64(start)
    want = np.empty(n, np.uint32)
    for k, i in enumerate(int(i) for i in index):
        if k == 0 or i & 3 == 0:
            b = i >> 2
            words = block(dev, (b & 0xFFFFFFFF, b >> 32, 0, 0), seed)
        want[k] = words[i & 3]
    order = rng().permutation(n)
    shuffled = index[order].copy()
    for isa in dev.isas:
        out = np.zeros(n + 1, np.uint32)
        dev.lib.devlib_philox_fill(isa, out.ctypes.data, start, n, seed)
        assert (out[:n] == want).all() and out[n] == 0
        dev.lib.devlib_philox(isa, out.ctypes.data, index.ctypes.data, n, seed)
        assert (out[:n] == want).all() and out[n] == 0
        dev.lib.devlib_philox(isa, out.ctypes.data, shuffled.ctypes.data, n, seed)
        assert (out[:n] == want[order]).all() and out[n] == 0
        seeds = np.full(n, seed, np.uint64)
        dev.lib.devlib_philox_seeds(isa, out.ctypes.data, index.ctypes.data, seeds.ctypes.data, n)
        assert (out[:n] == want).all() and out[n] == 0


def test_uniform_is_made_of_the_words(dev):
    n, seed = 3001, 99
    words = np.empty(2 * n + 10, np.uint32)
    dev.lib.devlib_philox_fill(dev.isas[0], words.ctypes.data, 0, words.size, seed)
    low, high = words[10::2].astype(np.uint64), words[11::2].astype(np.uint64)
    wide = (high << np.uint64(32) | low) >> np.uint64(11)
    for isa in dev.isas:
        f32, f64 = np.empty(n, np.float32), np.empty(n, np.float64)
        dev.lib.devlib_uniform_f32(isa, f32.ctypes.data, 5, n, seed)
        assert (f32 == (words[5 : 5 + n] >> 8) * 2.0**-24).all()
        dev.lib.devlib_uniform_f64(isa, f64.ctypes.data, 5, n, seed)
        assert (f64 == wide * 2.0**-53).all()
