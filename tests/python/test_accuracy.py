"""Reductions against long double where sums cancel, overflow or underflow on the way."""

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch

ROWS, COLUMNS = 1000, 40


def make_data(kind, dtype):
    values = np.random.default_rng(5).standard_normal((ROWS, COLUMNS)) * 3
    big = {"float32": 3e7, "float64": 1e15}[dtype]
    made = {
        "plain": lambda: values,
        "offset": lambda: values - big,
        "ramp": lambda: values + np.arange(ROWS)[:, None] * 1e3 + big,
        "outlier": lambda: np.vstack([np.full((1, COLUMNS), big), values[1:]]),
        "constant": lambda: np.full((ROWS, COLUMNS), big / 7),
    }[kind]()
    return made.astype(dtype)


def exact_var(x, axis, ddof=0):
    x = x.astype(np.longdouble)
    x = x - x.mean(axis, keepdims=True)
    x = x - x.mean(axis, keepdims=True)
    count = x.size if axis is None else np.prod([x.shape[a] for a in np.atleast_1d(axis)])
    return (x * x).sum(axis) / (count - ddof)


def off(found, wanted):
    """The largest distance in units in the last place of what was found."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    unit = np.spacing(np.abs(wanted).astype(found.dtype)).astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - wanted) / unit, initial=0))


SHAPES = {  # by name: from (ROWS, COLUMNS) to a shape, and the axes reduced there
    "rows": (lambda x: np.ascontiguousarray(x.T), (1,)),
    "columns": (lambda x: x, (0,)),
    "few columns": (lambda x: x[:, :3].copy(), (0,)),
    "all": (lambda x: x, (0, 1)),
    "turned": (lambda x: np.ascontiguousarray(x.T).T, (0,)),
    "strided": (lambda x: x[:, ::2], (0,)),
    "images": (lambda x: np.ascontiguousarray(x.T.reshape(5, 8, 10, 100)), (0, 2, 3)),
    "batches": (lambda x: x.reshape(10, 100, COLUMNS), (0, 1)),
    "middle": (lambda x: x.reshape(10, 100, COLUMNS), (1,)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["plain", "offset", "ramp", "outlier", "constant"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variances(dtype, kind, shape):
    make, axes = SHAPES[shape]
    x = make(make_data(kind, dtype))
    wanted = exact_var(x, axes)
    y, t = cp.array(x), torch.from_numpy(x.copy())
    spread = max(abs(x.max()), abs(x.min())) * float(np.finfo(dtype).eps)
    found = [
        (y.var(axes), wanted),
        (y.std(axes, keepdims=True).reshape(wanted.shape), np.sqrt(wanted)),
        (y.var(axes, ddof=1), exact_var(x, axes, 1)),
        (cp.array(t.var(axes, correction=0).numpy()), wanted),
        (cp.array(t.std(axes).numpy()), np.sqrt(exact_var(x, axes, 1))),
    ]
    for got, right in found:
        got = got.get()
        if kind == "constant":  # 0, but for what no float can tell from it
            assert (got <= spread * spread).all() or (np.sqrt(got) <= spread).all()
        else:  # by operations the sum of squares has the misses of two float sums
            limit = 8 if shape in ("rows", "columns", "all", "turned", "images") else 2000
            assert off(got, right) <= limit, (kind, shape)


def test_variances_are_the_same_with_any_number_of_segments():
    x = np.random.default_rng(6).standard_normal((5000, 70)).astype(np.float32) + 1000
    for a in (x, x[:, :20], np.ascontiguousarray(x.T), x[:3], x.reshape(5000, 7, 10)):
        for axis in range(a.ndim):
            assert off(cp.array(a).var(axis).get(), exact_var(a, axis)) <= 200
    assert off(cp.array(x).var().get(), exact_var(x, None)) <= 1
    assert off(cp.array(x).T.var().get(), exact_var(x, None)) <= 1


def test_variances_at_the_ends_of_the_range():
    x = np.random.default_rng(7).standard_normal((100, 40))
    for scale in (1e-43, 1e-30, 1e25):
        a = (x * scale).astype(np.float32)
        assert off(cp.array(a).std(0).get(), np.sqrt(exact_var(a, 0))) <= 2
        assert off(torch.from_numpy(a).std(0, correction=0).numpy(), np.sqrt(exact_var(a, 0))) <= 2
    for bad in (np.inf, np.nan):
        a = x.astype(np.float32)
        a[3, 5] = bad
        assert np.isnan(cp.array(a).var(0).get()).nonzero()[0].tolist() == [5]
        assert np.isnan(cp.array(a).var(1).get()).nonzero()[0].tolist() == [3]
    assert np.isnan(cp.ones((1, 50)).var(0, ddof=1).get()).all()
    assert np.isnan(cp.ones((0, 50)).var(0).get()).all()
    assert cp.ones((50, 0)).var(0).shape == (0,)
    assert cp.ones((7, 50)).var(0).get().tolist() == [0] * 50


@pytest.mark.parametrize("kind", ["plain", "offset"])
def test_gradient_of_variance(kind):
    x = make_data(kind, "float32")
    t = torch.from_numpy(x.copy()).requires_grad_()
    t.var(0).sum().backward()
    away = x - x.astype(np.longdouble).mean(0)
    wanted = 2 * away / (ROWS - 1)
    assert np.abs(t.grad.numpy() - wanted).max() < 2e-6


@pytest.mark.parametrize("axes", ["batch", "layer"])
def test_normalisation_far_from_zero(axes):
    x = make_data("offset", "float32")
    t = torch.from_numpy(x.copy())
    if axes == "batch":
        found, axis = torch.nn.functional.batch_norm(t, None, None, training=True), 0
    else:
        found, axis = torch.nn.functional.layer_norm(t, (COLUMNS,)), 1
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(axis, keepdims=True)) / np.sqrt(wide.var(axis, keepdims=True) + 1e-5)
    # the mean is a float32, half a unit (1.0 here) from the true one at most, and the spread is 3
    assert np.abs(found.numpy() - wanted).max() < 0.5
    assert abs(float(found.numpy().astype(np.float64).std(axis).mean()) - 1) < 1e-3


def test_running_variance_of_batch_norm():
    x = make_data("offset", "float32")
    layer = torch.nn.BatchNorm1d(COLUMNS, momentum=1.0)
    layer(torch.from_numpy(x.copy()))
    assert off(layer.running_var.numpy(), exact_var(x, 0, 1)) <= 4


def test_gradient_of_cumsum_does_not_cancel():
    t = torch.ones(3, requires_grad=True)
    t.cumsum(0).backward(torch.tensor([1e8, 1.0, 1.0]))
    assert t.grad.tolist() == [1e8, 2, 1]
    t = torch.ones(2, 3, requires_grad=True)
    t.cumsum(1).backward(torch.tensor([[1.0, float("inf"), 1.0], [1.0, 2.0, 3.0]]))
    assert t.grad.tolist() == [[np.inf, np.inf, 1], [6, 5, 3]]
    t = torch.arange(6.0).reshape(2, 3).requires_grad_()
    (first,) = torch.autograd.grad((t.cumsum(0) ** 2).sum(), t, create_graph=True)
    first.sum().backward()
    assert t.grad.tolist() == [[6, 6, 6], [4, 4, 4]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_short_sums_along_an_axis_are_wide(dtype):
    if dtype == "bfloat16":
        found = torch.full((3000,), 1.0, dtype=torch.bfloat16).cumsum(0)
        assert found[-1].item() == 3008  # 3000 to 8 bits
        return
    x = np.full((4096, 3), 0.1, dtype)
    wanted = np.cumsum(x.astype(np.float64), 0)
    assert off(cp.array(x).cumsum(0).get(), wanted) <= 0.51
    assert off(torch.from_numpy(x).cumsum(0).numpy(), wanted) <= 0.51


def test_halves_are_reduced_wide():
    x = (np.random.default_rng(8).standard_normal((1000, 8)) * 4 + 1000).astype(np.float16)
    wide = x.astype(np.float64)
    t = torch.from_numpy(x)
    assert off(cp.nanmean(cp.array(x), axis=0).get(), wide.mean(0)) <= 0.51
    assert cp.nanmean(cp.array(x), axis=0).dtype == np.float16
    assert off(t.norm(dim=0).numpy(), np.sqrt((wide**2).sum(0))) <= 0.51
    assert off(t.std(0).numpy(), wide.std(0, ddof=1)) <= 0.51
    shifted = wide - wide.max(0)
    wanted = shifted - np.log(np.exp(shifted).sum(0))
    assert off(torch.log_softmax(t, 0).numpy(), wanted) <= 0.51
    assert off(torch.softmax(t, 0).numpy(), np.exp(wanted)) <= 0.51


def test_norm_takes_dtype_and_has_a_gradient_at_zero():
    t = torch.full((4,), 3e4, dtype=torch.float16)
    assert t.norm(dtype=torch.float32).item() == 6e4
    x = torch.zeros(3, requires_grad=True)
    x.norm().backward()
    assert x.grad.tolist() == [0, 0, 0]
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    x.norm().backward()
    assert np.allclose(x.grad.numpy(), [0.6, 0.8])


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_variances_of_the_largest_numbers_are_numbers():
    """Finite numbers have no NaN for a variance: infinity where it is beyond the type."""
    rng = np.random.default_rng(3)
    numbers = np.array([1.7e308, -1.7e308, 1e308, -1e308, 1e300, 5e307, 1.0, 0.0])
    for count in range(60):
        shape = tuple(rng.integers(1, 70, rng.integers(1, 3)))
        x = rng.choice(numbers, shape)
        for a in (x, x.T, np.repeat(x, 2)[::2].reshape(shape), np.full(shape, 1.5e308)):
            for axis in (None, *range(a.ndim)):
                exact = np.var(a.astype(np.longdouble), axis)
                found = cp.var(cp.asarray(a), axis).get()
                wanted = exact.astype(np.float64)
                assert not np.isnan(found).any(), (count, a.shape, axis)
                plain = np.isinf(np.var(a, axis)) == np.isinf(wanted)  # a mean rounded as NumPy's
                np.testing.assert_allclose(found[plain], wanted[plain], rtol=1e-12)
    for last in (np.inf, np.nan):
        for n in (3, 50, 100_000):
            x = np.full(n, 1.5e308)
            x[-1] = last
            assert np.isnan(cp.asarray(x).var().item()), (last, n)
