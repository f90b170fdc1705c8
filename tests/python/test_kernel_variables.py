"""Variables of kernels where ways through the code meet: None or a number, arrays that take turns,
types that grow from round to round. (Types and values against Numba: test_numba_typing.py.)"""

import importlib
import random

import numpy as np
import pytest
from numba_face import MODE, cuda, small
from numba_source import load

errors = importlib.import_module(("simt." if MODE == "simt" else "") + "numba.core.errors")
TypingError = errors.TypingError

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


class Program:
    """A function of a, b (numbers) and out at random: variables x0 to x3 are ints and floats by
    turns, n0 and n1 may be None. It may use a variable without a value, for which Python raises."""

    def __init__(self, seed, bare=0):
        self.bare = bare  # how often None is not thought of
        self.rng = random.Random(seed)
        self.lines, self.depth, self.loops, self.names = [], 1, 0, 0
        for name in ("x0", "x1", "x2", "x3", "n0", "n1"):
            self.put(f"{name} = {self.number()}")
            if name[1] > "0" and self.rng.random() < 0.15:
                self.lines[-1] = f"    if a > 9: {name} = 0\n"
        self.depth = 0
        self.block(5)
        self.depth = 1
        for k, name in enumerate(("x0", "x1", "x2", "x3", "n0", "n1")):
            self.put(f"out[{k}] = 0 + {self.read(name)}")
        self.source = "def f(a, b, out):\n" + "".join(self.lines)

    def put(self, line):
        self.lines.append("    " * self.depth + line + "\n")

    def number(self):
        return self.rng.choice(["a", "b", "3", "-2", "0.5", "1.25"])

    def read(self, name):
        bare = name[0] == "x" or self.rng.random() < self.bare
        return name if bare else f"(7 if {name} is None else {name})"

    def operand(self):
        names = ["x0", "x0", "x1", "x1", "x2", "x3", "n0", "n1"]
        return self.rng.choice([self.number(), self.read(self.rng.choice(names))])

    def expression(self):
        x, y, z = self.operand(), self.operand(), self.operand()
        forms = [x, f"({x} + {y}) % 16", f"{x} // 2", f"{x} / 4", f"{x} * {y} % 8", f"-{x}"]
        forms += [f"({x} if {y} > {z} else {y})", f"min({x}, {y})", f"abs({x} - {y})"]
        return self.rng.choice(forms)

    def block(self, most):
        self.depth += 1
        for _ in range(self.rng.randint(1, most)):
            kinds = [self.assign] * 5 + [self.swap, self.update]
            if self.depth < 6:
                kinds += [self.branch, self.branch, self.count, self.repeat]
            if self.loops:
                kinds += [self.leave]
            self.rng.choice(kinds)()
        self.depth -= 1

    def assign(self):
        name = self.rng.choice(["x0", "x1", "x2", "x3", "n0", "n1"])
        none = name[0] == "n" and self.rng.random() < 0.4
        self.put(f"{name} = {'None' if none else self.expression()}")

    def swap(self):
        self.put(f"x0, x1 = x1, {self.expression()}")

    def update(self):
        self.put(f"{self.rng.choice(['x0', 'x1', 'x2'])} += {self.expression()}")

    def condition(self):
        if self.rng.random() < 0.1:
            return f"n0 {self.rng.choice(['==', '!='])} {self.rng.choice(['n1', self.number()])}"
        if self.rng.random() < 0.1:
            return f"{self.rng.choice(['', 'not '])}n{self.rng.randint(0, 1)}"
        if self.rng.random() < 0.3:
            return f"n{self.rng.randint(0, 1)} is {self.rng.choice(['', 'not '])}None"
        return f"{self.operand()} < {self.operand()}"

    def branch(self):
        self.put(f"if {self.condition()}:")
        self.block(3)
        if self.rng.random() < 0.5:
            self.put("else:")
            self.block(3)

    def loop(self, head, first=None):
        self.put(head)
        if first:
            self.put("    " + first)
        self.loops += 1
        self.block(4)
        self.loops -= 1
        if self.rng.random() < 0.3:
            self.put("else:")
            self.block(2)

    def count(self):
        self.names += 1
        over = self.rng.choice(["range(3)", "(1, 2.5)", "(b, 2)"])
        self.loop(f"for {self.rng.choice(['x3', f'k{self.names}'])} in {over}:")

    def repeat(self):
        self.names += 1
        self.put(f"k{self.names} = 0")
        self.loop(f"while k{self.names} < 3:", f"k{self.names} += 1")

    def leave(self):
        self.put(f"if {self.condition()}:")
        self.put("    " + self.rng.choice(["break", "continue"]))


def test_random_programs_that_forget_none():
    """Where Python says that None is no number, the kernel says so too, if not before it runs."""
    raised = 0
    for seed in range(small(300, 20)):
        source = Program(seed, bare=0.4).source
        space = load(source, cuda=cuda)
        for a, b in ((2, 1.5), (-1, 0.25)):
            out, expected = np.zeros(6), np.zeros(6)
            try:
                space["f"](a, b, expected)
            except UnboundLocalError:
                continue
            except TypeError:
                with pytest.raises((TypeError, TypingError)) as error:
                    cuda.jit(space["f"])[1, 1](a, b, out)
                assert "None" in str(error.value), source
                raised += error.type is TypeError
                continue
            try:
                cuda.jit(space["f"])[1, 1](a, b, out)
            except TypingError as error:
                assert "None" in str(error), source
                continue
            np.testing.assert_allclose(out, expected, rtol=1e-12, err_msg=source)
    assert raised > seed / 20


def test_none_where_a_value_is_needed():
    def kernel(a, out):
        x = None
        if a[0] > 0:
            x = a[0]
        out[0] = x

    assert run(kernel, np.array([3.0]), np.zeros(1)).tolist() == [3]
    with pytest.raises(
        TypeError, match="None where a value is needed\nin kernel kernel\nat .*"
    ) as e:
        run(kernel, np.array([-3.0]), np.zeros(1))
    assert "out[0] = x" in str(e.value)


def test_random_programs():
    compared = 0
    for seed in range(small(400, 20)):
        source = Program(seed).source
        space = load(source, cuda=cuda)
        for a, b in ((2, 1.5), (-1, 0.25)):
            out, expected = np.zeros(6), np.zeros(6)
            try:
                space["f"](a, b, expected)
            except UnboundLocalError:
                continue
            cuda.jit(space["f"])[1, 1](a, b, out)
            np.testing.assert_allclose(out, expected, rtol=1e-12, err_msg=source)
            compared += 1
    assert compared > seed / 3


def test_none_in_tuples_and_indices():
    def kernel(a, m, out):
        x = None
        y = None
        for i in range(a.size):
            if a[i] > 1:
                x, y = i, 1
                break
        t = (x, y)
        p, q = t
        out[0] = p is None
        m[t] = 5
        out[1] = t[0]

    def run_on(a):
        m, out = np.zeros((3, 2)), np.zeros(2)
        return m, out, cuda.jit(kernel)[1, 1](a, m, out)

    m, out, _ = run_on(np.array([0.0, 2, 0]))
    assert m.tolist() == [[0, 0], [0, 5], [0, 0]]
    assert out.tolist() == [0, 1]
    with pytest.raises(TypeError, match=r"m\[t\] = 5"):
        run_on(np.zeros(3))
