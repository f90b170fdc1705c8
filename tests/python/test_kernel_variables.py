"""Variables of kernels where ways through the code meet: None or a number, arrays that take turns,
types that grow from round to round. (Types and values against Numba: test_numba_typing.py.)"""

import numpy as np
from numba_face import cuda

WIDE, NARROW = 64, 4


@cuda.jit(device=True)
def find(a, x):
    for i in range(a.size):
        if a[i] == x:
            return i
    return None


@cuda.jit(device=True)
def plus(x, y=None):
    if y is None:
        return x
    return x + y


def run(kernel, *arrays, threads=1):
    cuda.jit(kernel)[1, threads](*arrays)
    return arrays[-1]


def test_none_until_found():
    def largest(a, out):
        best = None
        place = None
        for i in range(a.size):
            if best is None or a[i] > best:
                best = a[i]
                place = i
        if best is not None:
            out[0] = best
            out[1] = place
        last = best if a.size < 5 else None
        out[2] = last is None

    a = np.array([3.0, 9.5, 9.0, -1.0])
    assert run(largest, a, np.zeros(3)).tolist() == [9.5, 1, 0]
    assert run(largest, a[:0], np.full(3, 7.0)).tolist() == [7, 7, 1]


def test_none_returned_and_given():
    def kernel(a, out):
        i = find(a, 9)
        j = find(a, 8)
        out[0] = -1 if i is None else i
        out[1] = -1 if j is None else j
        out[2] = plus(10, i)
        out[3] = plus(10, j)
        out[4] = plus(10)
        if i:
            out[5] = 1
        if not j:
            out[6] = 1

    out = run(kernel, np.array([3, 9, 4]), np.zeros(7, np.int64))
    assert out.tolist() == [1, -1, 11, 10, 10, 1, 1]


def test_none_or_an_array():
    def kernel(a, out):
        row = None
        if a[0, 0] > 0:
            row = a[1]
        if row is not None:
            for i in range(row.size):
                out[i] = row[i]

    a = np.arange(1.0, 7).reshape(2, 3)
    assert run(kernel, a, np.zeros(3)).tolist() == [4, 5, 6]
    assert run(kernel, -a, np.zeros(3)).tolist() == [0, 0, 0]


def test_arrays_take_turns():
    def kernel(x, y):
        i = cuda.threadIdx.x
        for _ in range(3):
            y[i] = x[i] + 1
            x, y = y, x

    x, y = np.zeros(4), np.zeros(4)
    run(kernel, x, y, threads=4)
    assert x.tolist() == [2] * 4
    assert y.tolist() == [3] * 4


def test_a_function_sees_constant_shapes_of_each_call():
    def kernel(out):
        wide = cuda.shared.array(WIDE, np.float32)
        narrow = cuda.shared.array(NARROW, np.float32)
        out[0] = size_class(wide)
        out[1] = size_class(narrow)
        out[2] = size_class(out)

    assert run(kernel, np.zeros(3, np.int64)).tolist() == [2, 1, 1]


@cuda.jit(device=True)
def size_class(a):
    if a.size > 32:
        kind = 2
    else:
        kind = 1
    return kind


def test_types_grow_from_round_to_round():
    def kernel(out):
        x, y, z = 1, 2, 3
        for _ in range(3):
            z = z // 2  # int64 until y has come here
            z = y
            y = x
            x = x / 2
        out[0] = x
        out[1] = y
        out[2] = z

    assert run(kernel, np.zeros(3)).tolist() == [0.125, 0.25, 0.5]


def test_a_type_comes_from_another_way_round():
    """t has no type at the first look at the loop; what its first branch shows is not all of it."""

    def kernel(out, n):
        for i in range(n[0]):
            if i == 1:
                t = 3
            if i > 0:
                out[i] = t / 2
            if i == 0:
                t = 0.5
            else:
                t = t + 0.25

    out = np.zeros(4)
    cuda.jit(kernel)[1, 1](out, np.array([4]))
    assert out.tolist() == [0, 1.5, 1.625, 1.75]


def test_strings():
    def kernel(a, out):
        word = "none"
        for i in range(a.size):
            if a[i] > 0:
                out[i] = word == "none"
        word = "other"
        out[a.size] = word == "other"

    assert run(kernel, np.array([1.0, -1.0]), np.zeros(3)).tolist() == [1, 0, 1]
