"""Library steps and the rules of evaluation: products, indexing, failures, plans."""

import contextlib
import signal
import threading

import mpmath
import numpy as np
import pytest
from simt import _core

SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((70, 80), (80, 90)),
    ((3, 0), (0, 2)),
    ((0, 3), (3, 2)),
]


@pytest.fixture
def deferred():
    """Rules that only deferred evaluation has."""
    before = _core.eager()
    _core.eager(False)
    yield
    _core.eager(before)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int32", "int8", "uint16", "bool"]
)
def test_matmul(dtype):
    rng = np.random.default_rng(1)
    tolerance = {"float16": 4e-2, "float32": 1e-3, "float64": 1e-9}.get(dtype, 0)
    for left, right in SHAPES:
        x, y = ((rng.normal(size=s) * 4).astype(dtype) for s in (left, right))
        ours = _core.matmul(_core.array(x), _core.array(y)).get()
        theirs = np.asarray(np.matmul(x, y))
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_matmul_of_views():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(50, 40)), rng.normal(size=(60, 40))
    a, b = _core.array(x), _core.array(y)
    for ours, theirs in [
        (a @ b.T, x @ y.T),
        (a.T @ a, x.T @ x),
        (a[:, ::2] @ b[:20, :9], x[:, ::2] @ y[:20, :9]),
        (a[::-1] @ b.T, x[::-1] @ y.T),
        (_core.broadcast_to(a[:1], (50, 40)) @ b.T, np.broadcast_to(x[:1], (50, 40)) @ y.T),
    ]:
        np.testing.assert_allclose(ours.get(), theirs, rtol=1e-9)


def test_dot_of_many_dimensions():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 3, 4)), rng.normal(size=(5, 4, 6))
    np.testing.assert_allclose(_core.dot(_core.array(x), _core.array(y)).get(), np.dot(x, y))


def test_index_arrays():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5, 6, 7))
    a = _core.array(x)
    i0 = rng.integers(-5, 5, size=(3, 1))
    i1 = rng.integers(-6, 6, size=(4,))
    i2 = rng.integers(-7, 7, size=(3, 4))
    mask = rng.random((5, 6)) > 0.5
    c = _core.array
    for ours, theirs in [
        ((c(i0), c(i1)), (i0, i1)),
        ((slice(None), c(i1)), (slice(None), i1)),
        ((slice(None), c(i1), c(i2)), (slice(None), i1, i2)),
        ((c(i0), slice(None), c(i2)), (i0, slice(None), i2)),
        ((c(mask),), (mask,)),
        ((c(mask), c(np.array([3]))), (mask, np.array([3]))),
    ]:
        np.testing.assert_array_equal(a[ours].get(), x[theirs])
        copy, b = x.copy(), a.copy()
        copy[theirs] = 5
        b[ours] = 5
        np.testing.assert_array_equal(b.get(), copy)


def test_an_index_error_names_the_line_and_spoils_nothing_else(deferred):
    a = _core.array(np.arange(10.0))
    bad = a[_core.array(np.array([1, 12]))]
    after = bad + 1
    other = a + 1
    target = a.copy()
    target += 1
    message = "index 12 is out of bounds for axis 0 with size 10"
    with pytest.raises(IndexError, match=message):
        after.get()
    with pytest.raises(IndexError, match=message):
        bad.get()
    np.testing.assert_array_equal(other.get(), np.arange(10.0) + 1)
    np.testing.assert_array_equal(target.get(), np.arange(10.0) + 1)


def test_a_write_that_depends_on_a_failure_is_dropped_and_heard_of(deferred):
    a = _core.array(np.arange(10.0))
    target = _core.array(np.zeros(2))
    target += a[_core.array(np.array([1, 12]))]
    with pytest.raises(IndexError, match="index 12"):
        _core.evaluate(target)
    np.testing.assert_array_equal(target.get(), np.zeros(2))


def test_scalars_and_offsets_are_no_part_of_a_plan(deferred):
    a = _core.array(np.arange(20.0))

    def step(k):
        np.testing.assert_array_equal(
            (a[k : k + 5] * k + 1).get(), np.arange(k, k + 5) * float(k) + 1
        )

    step(1)
    plans = _core.stats()["plans"]
    for k in range(2, 12):
        step(k)
    assert _core.stats()["plans"] == plans


def test_offsets_of_written_memory_are_part_of_it():
    for k in (0, 3, 5):
        x = np.arange(10)
        a = _core.array(x.copy())
        a[0:5] = a[0:5] * 2
        x[0:5] = x[0:5] * 2
        b = a[k : k + 5] + 1
        np.testing.assert_array_equal(b.get(), x[k : k + 5] + 1)


def test_memory_is_given_back():
    a = _core.array(np.ones(1 << 16))
    _core.evaluate(None)
    before = _core.stats()["bytes_in_use"]
    for _ in range(50):
        b = (a + 1) * 2
        c = b.sum()
        c.get()
        b += 1
        del b, c
    _core.evaluate(None)
    assert _core.stats()["bytes_in_use"] <= before


def test_threads_share_the_open_program():
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(60):
                x = rng.normal(size=(int(rng.integers(1, 400)), 7))
                a = _core.array(x)
                b = a * 2
                b += a
                np.testing.assert_allclose(b.sum(axis=0).get(), (x * 3).sum(0))
                np.testing.assert_allclose((a.T @ a).get(), x.T @ x)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@contextlib.contextmanager
def interrupted_after(delay):
    def alarm(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_is_raised_once_and_loses_nothing(deferred):
    a = _core.array(np.ones(2_000_000))
    y = a
    for _ in range(60):
        y = _core.ew_sin(y) + _core.ew_exp(y * 1e-3)
    with interrupted_after(0.05):
        _core.evaluate(y)
    assert (a + 1).sum().item() == 4e6
    want = np.ones(1)
    for _ in range(60):
        want = np.sin(want) + np.exp(want * 1e-3)
    values = y.get()
    assert values.min() == values.max() and values[0] == pytest.approx(want[0], rel=1e-12)


def test_a_look_does_not_begin_again_what_was_interrupted(deferred):
    """... unless it needs it: here a statement wrote what the interrupted one reads."""
    x, w = _core.array(np.full(2_000_000, 0.5)), _core.array(np.zeros(10))
    _core.evaluate(x)
    w += 1
    y = x
    for _ in range(60):
        y = _core.ew_tanh(_core.ew_sin(y))
    z = x[:10] * 2
    x *= 10
    with interrupted_after(0.05):
        _core.evaluate(y)
    used = _core.stats()["bytes_in_use"]
    assert w.get().tolist() == [1.0] * 10 and (w * 2).sum().item() == 20
    w += z
    assert w.get().tolist() == [2.0] * 10
    assert _core.stats()["bytes_in_use"] < used + 1_000_000
    assert x[:3].get().tolist() == [5.0] * 3  # after y was computed from what x was
    assert _core.stats()["bytes_in_use"] > used + 1_000_000
    want = np.full(1, 0.5)
    for _ in range(60):
        want = np.tanh(np.sin(want))
    values = y.get()
    assert values.min() == values.max() and values[0] == pytest.approx(want[0], rel=1e-12)


def test_an_interrupt_ends_a_library_step(deferred):
    a = _core.array(np.ones((2000, 2000)))
    _core.evaluate(a)
    product = _core.matmul(a, a)
    with interrupted_after(0.03):
        _core.evaluate(product)
    assert _core.matmul(a[:2], a[:, :2]).sum().item() == 8000
    assert (product.get() == 2000).all()


def test_an_interrupt_undoes_a_long_kernel_in_place(deferred):
    """Of a kernel whose estimate is long against the copy that it is undone with."""
    x = _core.array(np.full(3_000_000, 0.25, np.float32))
    _core.evaluate(x)
    for _ in range(40):
        x -= _core.ew_digamma(x) * 0.01
    with interrupted_after(0.15):
        _core.evaluate(x)
    want = mpmath.mpf(0.25)
    for _ in range(40):
        want -= mpmath.digamma(want) * 0.01
    values = x.get()
    assert values.min() == values.max() and values[0] == pytest.approx(float(want), rel=1e-5)


@pytest.mark.parametrize("delay", [0.03, 0.05, 0.08])
def test_an_interrupt_leaves_no_array_half_changed(deferred, delay):
    """An operation that writes into an array is done or not begun; the next one does not begin."""
    x = _core.array(np.zeros(4_000_000))
    _core.evaluate(x)
    with interrupted_after(delay):
        while True:
            for _ in range(10):
                x += _core.ew_exp(_core.ew_sin(x) * 1e-3)
            _core.evaluate(x)
    values = x.get()
    assert values.min() == values.max()
