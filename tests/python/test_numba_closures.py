"""Functions written inside kernels: def and lambda, with the variables around them."""

import numpy as np
import pytest
from simt.numba import cuda
from simt.numba.core.errors import TypingError

SCALE = 3


def run(kernel, *args, n=4):
    out = np.zeros(n)
    kernel[1, n](out, *args)
    return out


def test_a_function_sees_the_variables_around_it():
    @cuda.jit
    def k(out, x):
        i = cuda.grid(1)
        c = 10

        def inner(y):
            return y + c * SCALE

        out[i] = inner(x) + i

    assert (run(k, 4) == 34 + np.arange(4)).all()


def test_values_are_those_at_the_call():
    @cuda.jit
    def k(out):
        i = cuda.grid(1)
        c = 1

        def get():
            return c

        out[i] = get()
        c = 2.5
        out[i] += 10 * get()
        for c in range(3):
            out[i] += 100 * get()

    assert (run(k) == 1 + 25 + 300).all()


def test_own_names_are_own():
    @cuda.jit
    def k(out):
        i = cuda.grid(1)
        a, b = 5, 7

        def f(a):
            b = a * 2
            return b + i

        out[i] = f(1) + 10 * a + 100 * b

    assert (run(k) == 752 + np.arange(4)).all()


def test_lambdas_nests_and_functions_as_arguments():
    @cuda.jit(device=True)
    def twice(f, x):
        return f(f(x))

    @cuda.jit
    def k(out):
        i = cuda.grid(1)
        step = i + 1
        add = lambda x: x + step

        def outer(x):
            def inner(y):
                return add(y) * x

            return inner(step)

        out[i] = twice(add, 0.5) + 1000 * outer(2)
        out[i] += 1e6 * (lambda x, y=None: x * step)(2, y=3)

    i = np.arange(4) + 1
    assert (run(k) == 0.5 + 2 * i + 1000 * 4 * i + 1e6 * 2 * i).all()


def test_arrays_are_captured():
    @cuda.jit
    def k(out, a):
        i = cuda.grid(1)

        def put(value):
            out[i] = value + a[-1 - i]

        put(100)

    assert (run(k, np.arange(4)) == 103 - np.arange(4)).all()


def test_one_function_or_another():
    @cuda.jit
    def k(out):
        i = cuda.grid(1)
        f = lambda: 1
        if i < 2:
            f = lambda: 2
        out[i] = f()

    with pytest.raises(TypingError, match="'f' is function lambda or function lambda here"):
        run(k)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def f(*a): return 1\nout[0] = f()", "has plain parameters"),
        ("def f(x, **k): return 1\nout[0] = f(1)", "has plain parameters"),
        ("@cuda.jit\ndef f(): return 1\nout[0] = f()", "has no decorators"),
        ("def f(x): return x\nout[0] = f()", "argument 'x' is missing"),
        ("def f(x): return f(x)\nout[0] = f(1)", "calls itself"),
        ("def f(): return late\nout[0] = f()\nlate = 1", "used before it is assigned"),
        ("def f():\n  def g(): return f\n  return g\nout[0] = f()()()", "which encloses it, has"),
    ],
)
def test_refused(body, message, tmp_path):
    from numba_source import load

    text = "def kernel(out):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    with pytest.raises(TypingError, match=message):
        run(cuda.jit(load(text, cuda=cuda)["kernel"]))
