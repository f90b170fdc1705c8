"""Sorting and selecting, by simt.cupy and simt.torch, against NumPy."""

import numpy as np
import pytest
import simt.cupy as cp
from array_reference import same

SORTED = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("kind", SORTED)
@pytest.mark.parametrize("n", [1, 2, 39, 41, 1000])
def test_sort(kind, n):
    draw = np.random.default_rng(n)
    if kind[0] != "f":
        x = draw.integers(-(1 << 62), 1 << 62, n).astype(kind)
    else:
        x = draw.normal(size=n).astype(kind)
        x[::7], x[::11], x[::13], x[3:4], x[5:6] = np.nan, 0.0, -0.0, np.inf, -np.inf
    x[n // 2 :: 3] = x[0]  # equal ones keep their order
    order = np.argsort(x, kind="stable")
    a = cp.array(x)
    same(cp.argsort(a), order)
    same(cp.sort(a), x[order])
    wide = x[::-1].repeat(3).reshape(n, 3).T.copy()
    down = np.argsort(wide, axis=0, kind="stable")
    same(cp.sort(cp.array(wide), axis=0), np.take_along_axis(wide, down, 0))
    same(cp.array(wide).T.argsort(0), np.argsort(wide.T, axis=0, kind="stable"))
    flat = np.argsort(wide, axis=None, kind="stable")
    same(cp.sort(cp.array(wide), axis=None), wide.ravel()[flat])
    a.sort()
    same(a, x[order])
    values, down = torch_sort(x)
    reverse = x.size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    np.testing.assert_array_equal(down, reverse)
    np.testing.assert_array_equal(values, x[reverse])


@pytest.mark.parametrize("kind", ["i1", "u2", "f2", "i4", "f4", "u8", "f8"])
@pytest.mark.parametrize("n", [1, 3, 10, 100, 257, 600, 2100])
def test_many_rows(kind, n):
    """Rows that are sorted side by side: whole groups of them, and the rest."""
    for rows in (4, 5, 16, 37):
        draw = np.random.default_rng([rows, n])
        x = (draw.normal(size=(rows, n)) * 60).astype("i4").astype(kind)  # many equal ones
        if kind[0] == "f":
            x[draw.random(x.shape) < 0.1] = -0.0
            x[draw.random(x.shape) < 0.1] = np.nan
            x[draw.random(x.shape) < 0.02] = -np.inf
        order = np.argsort(x, axis=1, kind="stable")
        for a in (cp.array(x), cp.array(x.T.copy()).T, cp.array(np.repeat(x, 2, 1))[:, ::2]):
            same(cp.argsort(a, axis=1), order)
            same(cp.sort(a, axis=1), np.take_along_axis(x, order, 1))
        values, down = torch_sort(x) if kind != "u8" and kind != "u2" else (None, None)
        if down is not None:
            reverse = n - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
            np.testing.assert_array_equal(down, reverse)
            np.testing.assert_array_equal(values, np.take_along_axis(x, reverse, 1))


@pytest.mark.parametrize("kind", ["u1", "f2", "i4", "f4", "i8", "f8"])
def test_long_rows(kind):
    """Rows that all workers sort together."""
    x = (np.random.default_rng(7).normal(size=(2, 270_001)) * 900).astype("i4").astype(kind)
    if kind[0] == "f":
        x[0, ::7], x[1, ::11], x[:, ::13], x[:, 5::1000] = 0.0, -0.0, np.nan, -np.inf
    order = np.argsort(x, axis=1, kind="stable")
    for a in (cp.array(x), cp.array(np.repeat(x, 2, 1))[:, ::2]):
        same(cp.argsort(a, axis=1), order)
        same(cp.sort(a, axis=1), np.take_along_axis(x, order, 1))
    values, down = torch_sort(x[0])
    reverse = x.shape[1] - 1 - np.argsort(x[0, ::-1], kind="stable")[::-1]
    np.testing.assert_array_equal(down, reverse)


def test_gather_refuses_what_is_outside():
    import simt.torch as torch

    x = torch.arange(12.0).reshape(3, 4)
    for bad in (-1, 4):
        index = torch.zeros(3, 2, dtype=torch.int64) + bad
        with pytest.raises((RuntimeError, IndexError), match="out of bounds|out of range"):
            print(x.gather(1, index))
    index = torch.zeros(2, 2, dtype=torch.int64) + 3
    np.testing.assert_array_equal(x.gather(1, index).numpy(), [[3, 3], [7, 7]])


def torch_sort(x):
    """Descending; NaN comes first."""
    import simt.torch as torch

    values, order = torch.sort(torch.from_numpy(x), descending=True)
    return values.numpy(), order.numpy()


@pytest.mark.parametrize("n", [5, 300, 3000])
@pytest.mark.parametrize("order", ["random", "up", "down", "few", "nan"])
def test_the_largest_few(n, order):
    import simt.torch as torch

    x = np.random.default_rng(n).integers(0, 9 if order == "few" else 1 << 40, (3, n))
    x = np.sort(x) if order == "up" else np.sort(x)[:, ::-1].copy() if order == "down" else x
    for kind in ("f4", "f8", "i8", "i4"):
        y = x.astype(kind)
        if order == "nan" and kind[0] == "f":
            y[:, ::3] = np.nan
        for largest in (True, False):
            for k in (0, 1, 4, n // 9, n // 2, n):
                values, index = torch.topk(torch.from_numpy(y), min(k, n), largest=largest)
                want = np.argsort(y, axis=1, kind="stable")
                if largest:
                    want = n - 1 - np.argsort(y[:, ::-1], axis=1, kind="stable")[:, ::-1]
                want = want[:, :k]
                np.testing.assert_array_equal(index.numpy(), want)
                np.testing.assert_array_equal(values.numpy(), np.take_along_axis(y, want, 1))
    with pytest.raises(RuntimeError, match="out of range"):
        torch.topk(torch.from_numpy(x), n + 1)


def test_sort_arguments():
    with pytest.raises(ValueError, match="rank of zero"):
        cp.sort(cp.array(3))
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        cp.argsort(cp.ones((2, 3)), 2)
    same(cp.sort(cp.zeros((0, 3)), 0), np.zeros((0, 3)))
    same(cp.sort(cp.zeros((2, 0))), np.zeros((2, 0)))
