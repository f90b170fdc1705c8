"""vectorize and guvectorize with target='cuda', against NumPy."""

import math

import numpy as np
import pytest

cuda = pytest.importorskip("simt.numba.cuda")
from simt import cupy
from simt.numba import guvectorize, vectorize


@vectorize(
    ["int64(int64, int64)", "float32(float32, float32)", "float64(float64, float64)"], target="cuda"
)
def plus(x, y):
    return x + y


@cuda.jit(device=True)
def cartesian(rho, theta):
    return rho * math.cos(theta), rho * math.sin(theta)


@vectorize(["float64(float64, float64, float64, float64)"], target="cuda", fastmath=True)
def distance(rho1, theta1, rho2, theta2):
    """Between two points in polar coordinates."""
    x1, y1 = cartesian(rho1, theta1)
    x2, y2 = cartesian(rho2, theta2)
    return ((x1 - x2) ** 2 + (y1 - y2) ** 2) ** 0.5


def test_elements():
    rng = np.random.default_rng(0)
    a, b, c, d = rng.random((4, 33, 17))
    want = abs(a * np.exp(1j * b) - c * np.exp(1j * d))
    np.testing.assert_allclose(distance(a, b, c, d), want, rtol=1e-9)
    assert distance.__doc__.startswith("Between")


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_broadcasting_and_types(dtype):
    a = np.arange(12, dtype=dtype).reshape(3, 4)
    for other in (a, a[:1], a[:, 1:2], np.asfortranarray(a), a[::-1, ::-1], 3, dtype(3)):
        got = plus(a, other)
        assert got.dtype == dtype
        assert (got == a + other).all()
    assert plus(2, a[0, 1]) == 3
    for x, y in ((1, 2), (0.1, 2), (np.float32(0.5), np.float32(1))):
        assert plus(x, y) == x + y
        assert plus(x, y).dtype == np.asarray(x + y).dtype
    assert plus(a[:0], 1).shape == (0, 4)


def test_device_arrays():
    a = np.arange(12.0).reshape(3, 4)
    d = cuda.to_device(a)
    got = plus(d, d.T.copy_to_host().T)
    assert isinstance(got, cuda.DeviceNDArray)
    assert (got.copy_to_host() == 2 * a).all()
    assert (plus(d[:, 1:3], 1).copy_to_host() == a[:, 1:3] + 1).all()
    assert (plus(cupy.asarray(a), d, stream=cuda.stream()).copy_to_host() == 2 * a).all()
    out = cuda.device_array_like(d)
    assert plus(d, 1, out=out) is out
    assert (out.copy_to_host() == a + 1).all()
    host = np.zeros((3, 4))
    assert plus(a, a, host) is host
    assert (host == 2 * a).all()


def test_reduce():
    a = np.arange(1000)
    assert plus.reduce(a) == a.sum()
    assert plus.reduce(cuda.to_device(a[:1])) == 0
    with pytest.raises(NotImplementedError, match="one dimension"):
        plus.reduce(a.reshape(10, 100))


def test_what_does_not_match():
    with pytest.raises(TypeError, match="No matching version"):
        plus(np.arange(3, dtype=np.int16), 1)
    with pytest.raises(TypeError, match=r"No matching version.*\(int64, float64\)"):
        plus(np.arange(3), 1.5)
    with pytest.raises(TypeError, match="takes 2 arrays, 1 given"):
        plus(1)
    for wrong in ("x", None, np.zeros(2, "M8[s]")):
        with pytest.raises(TypeError, match="No matching version"):
            plus(wrong, 1)
    with pytest.raises(TypeError, match="out must be an array"):
        plus(1, 2, 3)
    with pytest.raises(ValueError, match="broadcast"):
        plus(np.arange(3), np.arange(4))
    with pytest.raises(NotImplementedError, match="without signatures is not in simt yet"):
        vectorize(lambda x: x)
    with pytest.raises(ValueError, match="unsupported target 'tpu'"):
        vectorize(["float64(float64)"], target="tpu")
    with pytest.raises(TypeError, match="needs signatures"):
        vectorize(target="cuda")(lambda x: x)
    with pytest.raises(NotImplementedError, match="accumulate is not in simt yet"):
        plus.accumulate(np.arange(3))


@pytest.mark.parametrize("target", ["cpu", "parallel"])
def test_other_targets_cast_as_numpy(target):
    @vectorize(["int32(int32, int32)", "float64(float64, float64)"], target=target, nopython=True)
    def larger(x, y):
        return x if x > y else y

    for dtype in ("i1", "u2", "i4", "i8", "f4", "f8"):
        a, b = np.arange(5).astype(dtype), np.full(5, 2).astype("i4")
        got = larger(a, b)
        assert got.dtype == ("i4" if dtype in ("i1", "u2", "i4") else "f8")
        assert (got == np.maximum(a, b)).all()
    assert larger(2.5, 1) == 2.5
    with pytest.raises(TypeError, match="could not be safely coerced"):
        larger(np.zeros(2, complex), 1)

    @guvectorize(["(float64[:], float64[:])"], "(n)->()", target=target)
    def total(x, out):
        out[0] = 0
        for v in x:
            out[0] += v

    assert (total(np.arange(6).reshape(2, 3)) == [3, 12]).all()


@guvectorize(["(float32[:,:], float32[:,:], float32[:,:])"], "(m,n),(n,p)->(m,p)", target="cuda")
def product(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = a[0, 0] * 0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@guvectorize(["void(float64[:], float64, float64[:], float64[:])"], "(n),()->(n),()", target="cuda")
def shifted(x, by, out, total):
    total[0] = 0
    for i in range(x.shape[0]):
        out[i] = x[i] + by
        total[0] += out[i]


def test_core_calls():
    rng = np.random.default_rng(1)
    a, b = rng.random((70, 2, 4), np.float32), rng.random((70, 4, 5), np.float32)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-5)
    np.testing.assert_allclose(product(a, b[3]), a @ b[3], rtol=1e-5)
    np.testing.assert_allclose(product(a[0], b[0]), a[0] @ b[0], rtol=1e-5)
    got = product(cuda.to_device(a), cuda.to_device(b))
    np.testing.assert_allclose(got.copy_to_host(), a @ b, rtol=1e-5)
    x, by = rng.random((6, 7)), rng.random(6)
    out, total = shifted(x, by)
    np.testing.assert_allclose(out, x + by[:, None])
    np.testing.assert_allclose(total, (x + by[:, None]).sum(1))
    out, total = shifted(x[0], 2)
    np.testing.assert_allclose(total, (x[0] + 2).sum())


def test_core_shapes_that_do_not_fit():
    a = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="dimension n is 3 and 2"):
        product(a, a)
    with pytest.raises(ValueError, match="less dimensions"):
        product(a[0], a)
    with pytest.raises(TypeError, match="does not fit"):
        guvectorize(["(float32[:], float32[:])"], "(n),(n)->(n)", target="cuda")(lambda a, b: None)
