"""NumPy in kernels, as far as it is written in Python: reductions, methods, ufuncs of arrays."""

import numpy as np
import pytest
from simt.numba import cuda, float32
from simt.numba.core.errors import TypingError

DTYPES = ["?", "i1", "u2", "i4", "u8", "i8", "f4", "f8"]


def array(dtype, shape, seed=0):
    return (np.random.default_rng(seed).random(shape) * 5).astype(dtype)


@cuda.jit
def reductions(a, out):
    out[0] = np.sum(a)
    out[1] = a.mean()
    out[2] = np.min(a)
    out[3] = a.max()
    out[4] = np.argmax(a)
    out[5] = a.argmin()
    out[6] = a.any()
    out[7] = np.all(a)
    out[8] = np.var(a)
    out[9] = a.std()
    out[10] = np.prod(a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (2, 3), (3, 1, 2), (1, 2, 1, 3)])
def test_reductions(dtype, shape):
    for a in (array(dtype, shape), array(dtype, shape, 1).T):
        out = np.zeros(11)
        reductions[1, 1](a, out)
        want = [a.sum(), a.mean(), a.min(), a.max(), a.argmax(), a.argmin(), a.any(), a.all()]
        want += [a.var(), a.std(), a.prod()]
        np.testing.assert_allclose(
            out, np.array(want, float), rtol=3e-6 if dtype == "f4" else 1e-13
        )


def test_reductions_with_nan_and_of_complex_numbers():
    a = np.array([[3.0, np.nan], [-1.0, np.nan]])
    out = np.zeros(11)
    reductions[1, 1](a, out)
    assert np.isnan(out[[0, 1, 2, 3]]).all() and out[4] == out[5] == 1

    @cuda.jit
    def k(z, out):
        out[0] = z.sum()
        out[1] = z.mean()
        out[2] = z.var()
        out[3] = np.dot(z, z)

    z, out = np.array([1 + 2j, 3 - 1j]), np.zeros(4, complex)
    k[1, 1](z, out)
    np.testing.assert_allclose(out, [z.sum(), z.mean(), z.var(), z @ z])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_type_of_a_sum_is_numbas(dtype):
    from simt.numba.core import types
    from simt.numba.cuda._intrinsics import type_of

    @cuda.jit
    def k(a, out):
        out[0] = type_of(a.sum())
        out[1] = type_of(a.prod())

    out = np.zeros(2, np.uint8)
    k[1, 1](np.ones(2, dtype), out)
    kind = np.dtype(dtype).kind
    want = {"b": "int64", "i": "int64", "u": "uint64"}.get(kind, np.dtype(dtype).name)
    assert [t.name for t in types.from_bytes(out.tobytes())] == [want, want]


def test_reductions_of_nothing():
    @cuda.jit
    def least(a, out):
        out[0] = a.min()

    with pytest.raises(ValueError, match="zero-size array"):
        least[1, 1](np.zeros((2, 0)), np.zeros(1))

    @cuda.jit
    def total(a, out):
        out[0] = a.sum() + np.sum(a)

    out = np.ones(1)
    total[1, 1](np.zeros((0, 3)), out)
    assert out[0] == 0


def test_an_axis_is_refused():
    @cuda.jit
    def k(a, out):
        out[0] = a.sum(0)

    with pytest.raises(TypingError, match="takes 1 arguments, 2 given"):
        k[1, 1](np.zeros((2, 2)), np.zeros(1))


def test_sum_of_tuples_and_arrays():
    @cuda.jit
    def k(a, t, out):
        out[0] = sum(a)
        out[1] = sum(t)
        out[2] = sum(t, 10)

    out = np.zeros(3)
    k[1, 1](np.arange(4.0), (1, 2.5, 3), out)
    assert (out == [6, 6.5, 16.5]).all()


def test_reshape():
    @cuda.jit
    def k(a, n, out):
        b = a.reshape(2, -1)
        c = a.reshape((n, 2))
        b[1, 2] = 50
        out[0], out[1] = b.shape
        out[2], out[3] = c.shape
        out[4] = c[2, 1]
        out[5] = b.ravel()[5]
        out[6] = c.reshape(6)[5] + a.reshape(1, 2, 3)[0, 1, 2]

    a, out = np.arange(6.0), np.zeros(7)
    k[1, 1](a, 3, out)
    assert (out == [2, 3, 3, 2, 50, 50, 100]).all() and a[5] == 50
    for n in (4, -3, 0):
        with pytest.raises(ValueError, match="its size must be unchanged"):
            k[1, 1](a, n, out)

    @cuda.jit
    def strided(a, out):
        out[0] = a.reshape(6)[0]

    with pytest.raises(TypingError, match="needs a C-contiguous array"):
        strided[1, 1](np.zeros((2, 3)).T, out)


def test_parts_of_complex_arrays():
    @cuda.jit
    def k(a):
        i = cuda.grid(1)
        cuda.atomic.add(a.real, 0, 1.0)
        a.imag[i] = i
        a.real[1:][i // 2] = 7

    a = np.zeros(4, complex)
    k[1, 4](a)
    assert (a == [4, 7 + 1j, 7 + 2j, 3j]).all()


def test_ufuncs_of_arrays():
    @cuda.jit
    def k(a, b, out, more):
        np.sin(a, out)
        np.add(a, out, out=more)
        np.maximum(b, 2, b)
        np.less(a[1], 1.0, more[1])

    a, b = array("f8", (2, 3)), np.arange(3)
    out, more = np.zeros((2, 3)), np.zeros((2, 3))
    k[1, 1](a, b, out, more)
    np.testing.assert_allclose(out, np.sin(a), rtol=1e-15)
    assert (more[0] == (a + out)[0]).all() and (b == [2, 2, 2]).all()
    assert (more[1] == (a[1] < 1)).all()

    @cuda.jit
    def without(a):
        a[0] = np.sin(a)[0]

    with pytest.raises(TypingError, match="takes numbers, not array"):
        without[1, 1](np.zeros(2))


def test_new_arrays():
    @cuda.jit
    def k(out):
        i = cuda.grid(1)
        a, b = np.zeros(3), np.ones((2, 2), np.int32)
        c, d = np.full(2, 2.5), np.empty(2, dtype=float32)
        e = np.full((2,), i, np.uint8)
        a[1] = i
        d[0] = 0.1
        out[i, 0] = a[0] + a[1] + a[2]
        out[i, 1] = b.sum()
        out[i, 2] = c[1] + e[0]
        out[i, 3] = d[0]

    out = np.zeros((4, 4))
    k[1, 4](out)
    i = np.arange(4)
    assert (out == np.stack([i, i * 0 + 4, i + 2.5, np.full(4, np.float32(0.1))], 1)).all()


def test_new_arrays_that_cannot_be():
    @cuda.jit
    def sized(n):
        np.zeros(n)

    with pytest.raises(TypingError, match="the shape must be constant"):
        sized[1, 1](3)

    @cuda.jit
    def again(out):
        before = np.zeros(1)
        for i in range(3):
            now = np.zeros(1)  # would be the array that `before` is
            now[0] = before[0] + 1
            before = now
        out[0] = before[0]

    with pytest.raises(TypingError, match="in a loop is not in simt's kernels: make the array"):
        again[1, 1](np.zeros(1))


def test_loads_and_stores_with_hints():
    @cuda.jit
    def k(a, out):
        i = cuda.grid(1)
        cuda.stcg(out, i, cuda.ldca(a, i) + cuda.ldcg(a, i) + cuda.ldcs(a, i))
        cuda.stwt(out, i, cuda.ldcv(out, i) + cuda.ldlu(a, i))

    a, out = np.arange(4.0), np.zeros(4)
    k[1, 4](a, out)
    assert (out == 4 * a).all()
    with pytest.raises(IndexError):
        k[1, 5](a, out)
    with pytest.raises(TypingError, match="takes an array first, not float64"):
        cuda.jit(lambda x: cuda.ldcg(x, 0))[1, 1](1.0)


def test_functions_of_their_own_kind():
    """A function may call itself with other types: each is a function of its own."""

    @cuda.jit(device=True)
    def total(a):
        s = 0.0
        for x in a:
            if a.ndim == 1:
                s += x
            else:
                s += total(x)
        return s

    @cuda.jit
    def k(a, out):
        out[0] = total(a)

    out = np.zeros(1)
    k[1, 1](np.ones((2, 3, 4)), out)
    assert out[0] == 24

    @cuda.jit(device=True)
    def endless(n):
        return endless(n) + 1

    with pytest.raises(TypingError, match="runaway recursion"):
        cuda.jit(lambda out: endless(3))[1, 1](out)
