"""Quick ways of indexing, masks, cumsum and short reductions against NumPy."""

import itertools

import numpy as np
import pytest
import simt.cupy as cp

rng = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "i8"])
def test_gather_and_put(dtype):
    base = rng.integers(0, 100, (70, 90)).astype(dtype)
    for view in (lambda v: v, lambda v: v[::2, 1::3], lambda v: v.T):
        a, x = view(base), view(cp.asarray(base))
        i = rng.integers(-a.shape[0], a.shape[0], (40, 20))
        j = rng.integers(-a.shape[1], a.shape[1], 20)
        ci, cj = cp.asarray(i), cp.asarray(j)
        np.testing.assert_array_equal(x[ci].get(), a[i])
        np.testing.assert_array_equal(x[:, cj].get(), a[:, j])
        np.testing.assert_array_equal(x[ci, cj].get(), a[i, j])
        b, y = a.copy(), x.copy()
        v = rng.integers(0, 100, (a.shape[0], 20)).astype(dtype)
        b[:, j] = v
        y[:, cj] = cp.asarray(v)
        np.testing.assert_array_equal(y.get(), b)


def test_gather_reports_the_first_index_out_of_range():
    x = cp.arange(100000, dtype="f4")
    i = np.zeros(50000, "i8")
    i[20000], i[40000] = 100000, -100001
    with pytest.raises(IndexError, match="index 100000 is out of bounds for axis 0"):
        x[cp.asarray(i)].get()
    before = x.copy()
    with pytest.raises(IndexError, match="index 100000 is out of bounds for axis 0"):
        x[cp.asarray(i)] = 7
        x.get()
    assert before.get()[0] == 0


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8"])
@pytest.mark.parametrize("n", [0, 1, 7, 4096, 4097, 100003])
def test_masks(n, dtype):
    a = rng.integers(0, 5, n).astype(dtype)
    m = rng.random(n) > 0.4
    x, cm = cp.asarray(a), cp.asarray(m)
    np.testing.assert_array_equal(x[cm].get(), a[m])
    np.testing.assert_array_equal(cp.nonzero(x)[0].get(), np.nonzero(a)[0])
    wide = np.repeat(a[:, None], 3, 1)
    np.testing.assert_array_equal(cp.asarray(wide)[cm].get(), wide[m])
    for mine, theirs in zip(cp.nonzero(cp.asarray(wide)), np.nonzero(wide), strict=True):
        np.testing.assert_array_equal(mine.get(), theirs)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4"])
@pytest.mark.parametrize("shape", [(8192,), (100001,), (3, 9000), (9000, 3)])
def test_cumsum(shape, dtype):
    a = (rng.random(shape) * 10 - 5).astype(dtype)
    for axis in range(len(shape)):
        got = cp.cumsum(cp.asarray(a), axis=axis).get()
        want = np.cumsum(a.astype("f8") if dtype == "f4" else a, axis=axis)
        if dtype[0] == "i":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3 if dtype == "f4" else 1e-9)


@pytest.mark.parametrize("n", [63, 64, 65, 100, 127, 128, 129])
def test_rows_about_the_short_length(n):
    a = rng.random((300, n), dtype="f4")
    x = cp.asarray(a)
    np.testing.assert_allclose(x.sum(axis=1).get(), a.sum(1), rtol=1e-5)
    np.testing.assert_array_equal(x.argmax(axis=1).get(), a.argmax(1))
    np.testing.assert_array_equal(x.max(axis=1).get(), a.max(1))
    # a row has the same bits whatever it stands in: 128 accumulators folded by halves
    p = np.zeros(128, "f4")
    p[: min(n, 128)] = a[0, :128]
    p[: n - 128] += a[0, 128:] if n > 128 else 0
    for half in (64, 32, 16, 8, 4, 2, 1):
        p[:half] += p[half : 2 * half]
    assert x.sum(axis=1).get()[0] == p[0]


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(200, 77), (2100, 3200), (33, 17, 90), (4, 30, 5, 70)])
def test_copies_of_what_lies_across(shape, dtype):
    """Copies by tiles, past the caches where they are long: whole tiles, edges, other strides."""
    if shape[0] == 2100 and dtype != "f4":
        shape = (1050, 3200)
    a = np.random.default_rng(len(shape)).integers(0, 200, shape).astype(dtype)
    x = cp.asarray(a)
    for axes in itertools.permutations(range(len(shape))):
        turned, want = x.transpose(axes), a.transpose(axes)
        np.testing.assert_array_equal(turned.copy().get(), want)
        np.testing.assert_array_equal(turned.get(), want)
        np.testing.assert_array_equal(turned[::-1, ::2].copy().get(), want[::-1, ::2])
        into = cp.zeros(want.shape, dtype=dtype)
        into[1:] = turned[1:]
        np.testing.assert_array_equal(into.get()[1:], want[1:])
