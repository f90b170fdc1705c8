"""vectorize and guvectorize with target='cuda', against NumPy."""

import math

import numpy as np
import pytest
from simt import cupy
from simt.numba import cuda, guvectorize, vectorize


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
    assert (plus.reduce(a.reshape(10, 100)) == a.reshape(10, 100).sum(0)).all()


@vectorize(["int64(int64, int64)", "float64(float64, float64)"])
def minus(x, y):
    return x - y


@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("face", [minus, plus])
def test_folds_as_numpy(face, dtype):
    numpy_face = np.subtract if face is minus else np.add
    rng = np.random.default_rng(3)
    shapes = [(7,), (3, 4), (2, 3, 5), (1, 6), (4, 0, 3)]
    for a in [rng.integers(-9, 9, s).astype(dtype) for s in shapes]:
        for b in (a, a.T, a[..., ::-1]):
            for axis in range(-b.ndim, b.ndim):
                got, want = face.accumulate(b, axis), numpy_face.accumulate(b, axis)
                assert got.dtype == want.dtype and np.array_equal(got, want)
                if b.shape[axis]:
                    for keepdims in (False, True):
                        got = face.reduce(b, axis, keepdims=keepdims)
                        want = numpy_face.reduce(b, axis, keepdims=keepdims)
                        assert np.array_equal(got, want) and got.dtype == want.dtype
                    starts = [0, b.shape[axis] - 1, 0]
                    want = numpy_face.reduceat(b, starts, axis)
                    assert np.array_equal(face.reduceat(b, starts, axis), want)
        want = numpy_face.outer(a, a[..., :2])
        assert np.array_equal(face.outer(a, a[..., :2]), want)
    a = rng.integers(-9, 9, (3, 4)).astype(dtype)
    assert plus.reduce(a, axis=None) == a.sum() == plus.reduce(a, axis=(0, 1))
    assert (minus.reduce(a, initial=100) == 100 - a.sum(0)).all()
    out = np.zeros(4)
    assert plus.reduce(a, out=out) is out and (out == a.sum(0)).all()
    at, want = a[0].copy(), a[0].copy()
    face.at(at, [0, 0, 3], [1, 2, 3])
    numpy_face.at(want, [0, 0, 3], [1, 2, 3])
    assert (at == want).all()


def test_folds_that_cannot_be():
    a = np.arange(12).reshape(3, 4)
    with pytest.raises(np.exceptions.AxisError):
        minus.reduce(a, axis=2)
    with pytest.raises(ValueError, match="duplicate value in 'axis'"):
        minus.reduce(a, axis=(0, -2))
    with pytest.raises(ValueError, match="no identity"):
        minus.reduce(a[:0])
    with pytest.raises(IndexError, match="out-of-bounds in reduceat"):
        minus.reduceat(a, [0, 3])
    with pytest.raises(TypeError, match="cannot accumulate on a scalar"):
        minus.accumulate(np.int64(3))
    with pytest.raises(ValueError, match="out has the shape"):
        minus.reduce(a, out=np.zeros(3))
    for initial in ([1, 2], np.ones(1), (), cuda.to_device(np.ones(2))):
        with pytest.raises(ValueError, match="reduce: initial must be one number"):
            minus.reduce(a, initial=initial)
    assert (minus.reduce(a, initial=np.array(100)) == np.subtract.reduce(a, initial=100)).all()
    with pytest.raises(ValueError, match="only supported for binary functions"):
        vectorize(["f8(f8)"])(lambda x: x).reduce(a)


def test_versions_are_made_as_met():
    @vectorize
    def ratio(a, b):
        return a / b

    @vectorize()
    def kept(a):
        return a

    assert ratio.ntypes == 0
    assert (ratio(np.array([1.0, 2.0]), 4) == [0.25, 0.5]).all()
    assert ratio.types == ["dl->d"]
    assert ratio(np.arange(2), np.arange(1, 3)).dtype == "f8" and ratio.ntypes == 1
    for dtype in ("?", "i1", "u1", "i4", "u8", "f4", "f8", "c8", "c16"):
        fresh = vectorize(kept._device.py_func)
        for a in (np.ones((2, 3), dtype), np.ones((0, 2), dtype), np.ones((), dtype)[()]):
            got = fresh(a)
            assert got.dtype == dtype and np.array_equal(got, a)
    with pytest.raises(TypeError, match="not supported for the input types"):
        kept(np.zeros(2, "M8[s]"))
    with pytest.raises(TypeError, match="gives no number"):
        vectorize(lambda a: (a, a))(np.arange(2))


def test_arguments_of_other_kinds():
    @vectorize(["float64(float64, float64)"], target="cuda")
    def add(a, b):
        return a + b

    class Foreign:
        def __init__(self, a):
            self._a, self.__cuda_array_interface__ = a, a.__cuda_array_interface__

    assert (add((1.0, 2.0), [3.0, 4.0]) == [4, 6]).all()
    a, out = cuda.to_device(np.arange(1.0, 4.0)), cuda.device_array(3)
    add(Foreign(a), 1.0, out=Foreign(out))
    assert (out.copy_to_host() == [2, 3, 4]).all()

    @guvectorize(["(int64[:], int64[:], int64[:])"], "(n),()->(n)")
    def moved(x, y, res):
        for i in range(x.shape[0]):
            res[i] = x[i] + y[0]

    assert (moved(np.arange(6), 10) == np.arange(6) + 10).all()
    assert (moved(np.ones((2, 3), int), np.array([1, 5])) == [[2, 2, 2], [6, 6, 6]]).all()


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
        guvectorize([], "(n)->()")(lambda x, out: None)
    with pytest.raises(ValueError, match="unsupported target 'tpu'"):
        vectorize(["float64(float64)"], target="tpu")
    with pytest.raises(TypeError, match="needs signatures"):
        vectorize(target="cuda")(lambda x: x)


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
