"""Values of kernels that are neither numbers nor arrays: tuples, members of enumerations, dim3."""

import enum
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numba_source import load
from simt import numba
from simt.numba import cuda, njit, types
from simt.numba.core.errors import TypingError

SHAPE = (1, 2, 4, 8)


def evaluated(expressions, **names):
    """The values of expressions in a kernel, and in Python."""
    source = "@cuda.jit\ndef kernel(out):\n"
    source += "".join(f"    out[{k}] = {text}\n" for k, text in enumerate(expressions))
    out = np.zeros(len(expressions))
    load(source, cuda=cuda, **names)["kernel"][1, 1](out)
    return out.tolist(), [eval(text, dict(names)) for text in expressions]


def test_slices_of_tuples():
    bounds = ["", "0", "1", "-1", "-2", "3", "9", "-9"]
    steps = ["", "1", "2", "-1", "-3", "9", "-9223372036854775807"]
    slices = [f"S[{a}:{b}:{c}]" for a in bounds for b in bounds for c in steps]
    texts = [f"sum_of({text}) + 100 * len({text})" for text in slices]
    source = "def sum_of(t):\n    s = 0\n    for v in t:\n        s += v\n    return s\n"
    sum_of = load(source)["sum_of"]
    found, expected = evaluated(texts, S=SHAPE, sum_of=sum_of)
    assert found == expected


def test_tuple_of_a_tuple():
    texts = ["len(tuple())", "tuple((4, 2.5, 7))[1]", "len(tuple(S[1:]) + (5,))", "tuple(S)[-1]"]
    found, expected = evaluated(texts, S=SHAPE)
    assert found == expected
    with pytest.raises(TypingError, match=r"tuple\(\) of array\(float64, 1d, C\): only a tuple's"):
        load("@cuda.jit\ndef k(a):\n    tuple(a)\n", cuda=cuda)["k"][1, 1](np.zeros(2))


@pytest.mark.parametrize("code", "BHIQbhiq")
def test_bit_count(code):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = x[i].bit_count()

    info = np.iinfo(code)
    x = np.array([0, 1, 6, info.max, info.max - 4], code)
    out = np.zeros(5, np.int32)
    kernel[1, 5](x, out)
    assert out.tolist() == [int(v).bit_count() for v in x]


class Shape(enum.IntEnum):
    circle = 1
    square = 2


class Colour(enum.Enum):
    red = 3
    blue = 4.5


SQUARE = Shape.square


@cuda.jit(device=True)
def is_red(colour):
    return colour is Colour.red


@cuda.jit
def of_members(out, colour, pair):
    out[0] = 1 if colour == Colour.red else 2
    out[1] = colour.value
    out[2] = is_red(colour) + 10 * is_red(pair[1])
    out[3] = pair[0] + (colour == pair[1]) * 100
    out[4] = (colour == 3) + 10 * (colour == Shape.circle) + 100 * (colour != Colour.blue)


def test_members_as_arguments():
    """Of a plain Enum, alone and in tuples: compared by identity, as in Python."""
    for _ in range(2):
        for colour in Colour:
            for other in Colour:
                out, want = np.zeros(5), np.zeros(5)
                of_members[1, 1](out, colour, (7, other))
                want[0] = 1 if colour is Colour.red else 2
                want[1] = colour.value
                want[2] = (colour is Colour.red) + 10 * (other is Colour.red)
                want[3] = 7 + 100 * (colour is other)
                want[4] = 100 * (colour is Colour.red)
                assert out.tolist() == want.tolist()
    assert len(of_members.signatures) == len(Colour) ** 2


def test_members_of_classes_that_come_and_go():
    @cuda.jit
    def kernel(out, member):
        out[0] = member.value

    out = np.zeros(1)
    for number in range(30):
        kernel[1, 1](out, enum.Enum("Local", {"only": number}).only)
        assert out[0] == number


def test_members_fit_no_declared_signature():
    @cuda.jit("void(float64[:], int64)")
    def kernel(out, member):
        out[0] = member

    kernel[1, 1](np.zeros(1), Shape.square)  # a number
    with pytest.raises(TypeError, match="member of an Enum"):
        kernel[1, 1](np.zeros(1), Colour.red)


def test_members_of_enumerations():
    @cuda.jit
    def kernel(s, out, flag):
        out[0] = s == Shape.circle
        out[1] = Shape["circle"] == Shape.circle
        out[2] = Shape.circle if flag else Shape.square
        out[3] = Colour.red.value + Colour["blue"].value

    out = np.zeros(4)
    for member, flag in ((Shape.circle, False), (Shape.square, True)):
        kernel[1, 1](member, out, flag)
        assert out.tolist() == [member == 1, 1, 1 if flag else 2, 7.5]
    held, other = Shape.square, Colour.red

    @cuda.jit
    def held_members(out):
        out[0] = held.value + SQUARE.value * 10
        out[1] = (held is Shape.square) + (SQUARE == held) * 10
        out[2] = (other == Colour.red) + (other is Colour.blue) * 10 + (other != Colour.blue) * 100
        out[3] = other.value

    held_members[1, 1](out)
    assert out.tolist() == [22, 11, 101, 3]
    text = "@cuda.jit\ndef kernel(out):\n    out[0] = (Shape.circle + 1).value\n"
    with pytest.raises(TypingError, match="no attribute 'value'"):
        load(text, cuda=cuda, Shape=Shape)["kernel"][1, 1](out)
    text = "@cuda.jit\ndef kernel(out):\n    out[0] = Shape['oval']\n"
    with pytest.raises(TypingError, match="oval"):
        load(text, cuda=cuda, Shape=Shape)["kernel"][1, 1](out)


def test_print_of_coordinates(capfd):
    @cuda.jit
    def kernel():
        print(cuda.threadIdx, cuda.blockDim)
        print("at", (cuda.blockIdx, 5))

    kernel[(1, 2), (1, 2)]()
    cuda.synchronize()
    want = "".join(f"(0, {y}, 0) (1, 2, 1)\n" for _ in range(2) for y in range(2))
    want = [want.splitlines()[k] for k in range(4)]
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if "at" not in line] == want
    assert lines.count("at ((0, 0, 0), 5)") == lines.count("at ((0, 1, 0), 5)") == 2


def test_names_of_one_thing():
    assert cuda.float3 is cuda.float32x3 and cuda.ulong2 is cuda.ulonglong2 is cuda.uint64x2
    for name in ("NumbaPerformanceWarning", "TypingError", "NumbaDeprecationWarning"):
        assert getattr(numba, name) is getattr(numba.core.errors, name)


@njit
def add(a, b):
    return a + b


def test_pickles_of_njit():
    assert pickle.loads(pickle.dumps(add)) is add

    def make(n):
        @njit
        def more(a):
            return add(a, n)

        return more

    copy = pickle.loads(pickle.dumps(make(7)))
    assert copy(1) == 8

    @cuda.jit
    def kernel(out):
        out[0] = copy(2)

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 9


def test_pickles_of_main():
    text = "import pickle\nfrom simt.numba import njit\n@njit\ndef add(a, b):\n    return a + b\n"
    text += "print(pickle.loads(pickle.dumps(add))(1, 2))\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "3\n", done.stderr


def test_specialized_for_types():
    @cuda.jit
    def kernel(a, k):
        a[cuda.grid(1)] = k

    a = np.zeros(2)
    made = kernel.specialize(types.float64[::1], types.int32)
    assert made is kernel.specialize(a, np.int32(5))
    made[1, 2](a, 7)
    assert a.tolist() == [7, 7]
