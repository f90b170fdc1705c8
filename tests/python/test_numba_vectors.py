"""Vector types, named tuples, float16 functions and bits of floats in kernels."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from simt.numba import cuda
from simt.numba.core.errors import TypingError
from simt.numba.cuda import float32x2, float32x3, libdevice

Point = namedtuple("Point", "x y")
ORIGIN = Point(2, 0.5)


class Options(NamedTuple):
    dt: float
    rounds: int
    flag: bool = True


@cuda.jit(device=True)
def cross(a, b):
    return float32x3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


@cuda.jit
def crosses(a, b, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        v = cross(
            float32x3(a[i, 0], a[i, 1], a[i, 2]), float32x3(float32x2(b[i, 0], b[i, 1]), b[i, 2])
        )
        if v.x < 0:
            v = float32x3(-v.x, v.y, v.z)
        for _ in range(2):
            v = float32x3(v.x * 2, v.y, v.z)
        out[i, 0] = v.x
        out[i, 1] = v.y
        out[i, 2] = v.z


def test_vectors():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 50, 3), np.float32)
    out = np.zeros((50, 3), np.float32)
    crosses[2, 32](a, b, out)
    want = np.cross(a, b) * [4, 1, 1]
    want[:, 0] = abs(want[:, 0])
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)


@cuda.jit
def conversions(out):
    v = cuda.uint8x2(300, -1)
    w = cuda.int4(v, 2.7, -1.5)
    z = cuda.double3(w.x, cuda.float2(w.y, w.z))
    out[0] = v.x
    out[1] = v.y
    out[2] = w.z
    out[3] = w.w
    out[4] = z.x + z.y * z.z
    out[5] = cuda.longlong1(1 << 40).x


def test_vectors_convert():
    out = np.zeros(6)
    conversions[1, 1](out)
    assert out.tolist() == [44, 255, 2, -1, 44 + 255 * 2, 2**40]


def bad_length(out):
    float32x2(1)


def bad_argument(out):
    float32x2((1, 2))


def bad_operator(out):
    out[0] = (float32x2(1, 2) + float32x2(1, 2)).x


def bad_item(out):
    out[0] = float32x2(1, 2).z


def bad_mixture(out):
    v = float32x2(1, 2)
    if out.size > 3:
        v = float32x3(1, 2, 3)
    out[0] = v.x


@pytest.mark.parametrize(
    "kernel, text",
    [
        (bad_length, "takes 2 numbers, 1 given"),
        (bad_argument, "made of numbers and vectors, not of tuple"),
        (bad_operator, "no operator + for float32x2 and float32x2: write it for the items"),
        (bad_item, "float32x2 has no attribute 'z'"),
        (bad_mixture, "variable 'v' is float32x3 or float32x2 here"),
    ],
)
def test_wrong_vectors(kernel, text):
    with pytest.raises(TypingError, match=text.replace("+", r"\+")):
        cuda.jit(kernel)[1, 1](np.zeros(1))


@cuda.jit(device=True)
def moved(i):
    p = Point(i, 1.5) if i % 2 == 0 else Point(y=2.0, x=i * 2)
    return p


@cuda.jit
def named(out, options, arrays):
    i = cuda.grid(1)
    if i < out.shape[0]:
        p = moved(i)
        for _ in range(options.rounds):
            p = Point(p.x + 1, p.y * options.dt)
        a, b = p
        out[i, 0] = p.x + ORIGIN.x
        out[i, 1] = p[1] * ORIGIN.y
        out[i, 2] = a + b if options.flag else 0
        out[i, 3] = arrays.x[i] - arrays.y[i]


@pytest.mark.parametrize("options", [Options(0.5, 3), Options(0.25, 2, False)])
def test_named_tuples(options):
    out = np.zeros((6, 4))
    named[1, 8](out, options, Point(np.arange(6.0), np.ones(6)))
    for i, row in enumerate(out):
        x = (i if i % 2 == 0 else i * 2) + options.rounds
        y = (1.5 if i % 2 == 0 else 2) * options.dt**options.rounds
        assert row.tolist() == [x + 2, y * 0.5, (x + y) * options.flag, i - 1]


def test_named_tuples_of_other_classes_are_other_types():
    @cuda.jit
    def first(out, p):
        out[0] = p.x

    out = np.zeros(1)
    first[1, 1](out, Point(1, 2))
    assert out[0] == 1
    first[1, 1](out, namedtuple("Point", "y x")(1, 2))
    assert out[0] == 2
    with pytest.raises(TypingError, match="Other.int64, int64. has no attribute 'x'"):
        first[1, 1](out, namedtuple("Other", "u v")(1, 2))
    names = [str(signature[1]) for signature in first.signatures]
    assert names == ["Point(x: int64, y: int64)", "Point(y: int64, x: int64)"]


@cuda.jit
def halves(a, b, out, tests):
    i = cuda.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        out[0, i] = cuda.fp16.hadd(x, y)
        out[1, i] = cuda.fp16.hmul(x, y)
        out[2, i] = cuda.fp16.hfma(x, y, x)
        out[3, i] = cuda.fp16.hdiv(x, y)
        out[4, i] = cuda.fp16.hmax(x, y)
        out[5, i] = cuda.fp16.hexp(y)
        out[6, i] = cuda.fp16.hsqrt(x)
        out[7, i] = cuda.fp16.hfloor(y)
        out[8, i] = cuda.fp16.hneg(y)
        tests[0, i] = cuda.fp16.hlt(x, y)
        tests[1, i] = cuda.fp16.heq(x, y)


def test_half_functions():
    rng = np.random.default_rng(1)
    a = rng.random(60).astype(np.float16)
    b = (rng.normal(size=60) * 3).astype(np.float16)
    b[0] = a[0]
    out, tests = np.zeros((9, 60), np.float16), np.zeros((2, 60), np.int32)
    halves[2, 32](a, b, out, tests)
    x, y = a.astype(float), b.astype(float)
    want = [x + y, x * y, x * y + x, x / y, np.maximum(x, y), np.exp(y), np.sqrt(x)]
    for row, (got, right) in enumerate(zip(out, [*want, np.floor(y), -y], strict=True)):
        ulp = np.spacing(right.astype(np.float16)) if row == 5 else 0  # exp goes by float32
        assert (abs(got - right.astype(np.float16)) <= abs(ulp)).all(), row
    assert (tests == [x < y, x == y]).all()


@cuda.jit
def bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = libdevice.float_as_int(x[i])
        out[1, i] = libdevice.double_as_longlong(x[i])
        out[2, i] = libdevice.longlong_as_double(libdevice.double_as_longlong(x[i])) == x[i]
        out[3, i] = libdevice.llround(x[i])
        out[4, i] = libdevice.signbitd(x[i])


def test_bits_and_rounding():
    x = np.array([0.49999999999999994, -0.5, 2.5, -2.5, 4503599627370497.0, 0.0, -7.75])
    out = np.zeros((5, x.size), np.int64)
    bits[1, 8](x, out)
    assert (out[0] == x.astype(np.float32).view(np.int32)).all()
    assert (out[1] == x.view(np.int64)).all()
    assert (out[2] == 1).all()
    assert out[3].tolist() == [0, -1, 3, -3, 4503599627370497, 0, -8]
    assert (out[4] == np.signbit(x)).all()
