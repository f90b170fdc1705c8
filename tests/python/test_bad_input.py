"""Bad input: a Python exception that says what is wrong; nothing half changed, no hang."""

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
import simt.torch.nn.functional as F
from simt import _core

# ---- failures that depend on data are raised at evaluation ----


def bad_row():
    """An array whose evaluation fails."""
    return cp.arange(10.0)[cp.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 100])]


def test_a_failure_takes_nothing_unrelated_with_it():
    a, base = cp.arange(10.0), cp.zeros(10)
    base.get()
    bad = bad_row()
    dependent = bad + 1
    double = a * 2  # of the same shape, so a candidate for the same kernel
    base += 5
    total = base.sum()
    with pytest.raises(IndexError, match="100 is out of bounds for axis 0 with size 10"):
        dependent.get()
    np.testing.assert_array_equal(double.get(), np.arange(10.0) * 2)
    np.testing.assert_array_equal(base.get(), np.full(10, 5.0))
    assert total.item() == 50
    for x in (bad, dependent):
        with pytest.raises(IndexError):
            x.get()


def test_a_failed_write_leaves_memory_and_what_depends_on_it_alone():
    x, y = cp.arange(10.0), cp.zeros(10)
    x.get(), y.get()
    x += bad_row()
    double = x * 2  # of an x that was never made
    x += 1
    y += double
    with pytest.raises(IndexError):
        double.get()
    try:  # the lost write may be told once more, by the next look
        x.get()
    except IndexError:
        pass
    np.testing.assert_array_equal(x.get(), np.arange(10.0))
    np.testing.assert_array_equal(y.get(), np.zeros(10))
    x += 1
    np.testing.assert_array_equal(x.get(), np.arange(10.0) + 1)


def test_a_bad_index_writes_nothing():
    x = cp.arange(6.0)
    x.get()
    x[cp.array([0, 1, 9])] = 7
    with pytest.raises(IndexError):
        x.get()
    np.testing.assert_array_equal(x.get(), np.arange(6.0))
    with pytest.raises((IndexError, RuntimeError)):
        t = torch.zeros(3).index_add_(0, torch.tensor([0, 9]), torch.ones(2))
        t.sum().item()


# ---- sizes whose products overflow ----

HUGE = [1 << 31, 1 << 61, (1 << 62) + 1, (1 << 63) - 1]


@pytest.mark.parametrize("huge", HUGE)
def test_windows_of_huge_sizes(huge):
    x, w = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 3, 3)
    for option in ["padding", "stride", "dilation", "groups"]:
        with pytest.raises(RuntimeError):
            F.conv2d(x, w, **{option: huge})
    for pool in [F.max_pool2d, F.avg_pool2d]:
        for options in [{"kernel_size": huge, "padding": huge // 2}, {"kernel_size": huge}]:
            with pytest.raises(RuntimeError):
                pool(x, **options)
        with pytest.raises(RuntimeError):
            pool(x, 2, stride=huge)
    with pytest.raises(RuntimeError):
        F.conv2d(torch.zeros(1, 0, 8, 8), torch.zeros(2, 0, 3, 3), groups=0)


def test_a_window_larger_than_the_image_takes_no_longer():
    """A thousand million taps, of which a few lie on the image."""
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    kernel, padding = (3, 10**9), (0, 5 * 10**8)
    y = F.max_pool2d(x, kernel, stride=1, padding=padding)
    assert y.shape == (1, 1, 6, 9)
    rows = np.arange(64.0).reshape(8, 8)
    for i in range(6):
        for j in range(9):
            first, last = max(j - padding[1], 0), min(j - padding[1] + kernel[1], 8)
            assert y[0, 0, i, j].item() == rows[i : i + 3, first:last].max()


@pytest.mark.parametrize("huge", HUGE)
def test_as_strided_outside_the_storage(huge):
    x = torch.arange(6.0)
    for size, stride, offset in [((2,), (huge,), 0), ((2,), (1,), huge), ((huge, 2), (2, 1), 0)]:
        with pytest.raises((RuntimeError, ValueError)):
            x.as_strided(size, stride, offset)


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 62, 1 << 62), (10**30,), (-1,), (2, -3)])
def test_shapes_that_cannot_be(shape):
    for make in [cp.zeros, cp.ones, cp.empty, torch.zeros, torch.empty, torch.randn]:
        with pytest.raises((MemoryError, ValueError, OverflowError, RuntimeError)) as e:
            made = make(shape)  # random numbers wait until somebody looks
            _core.evaluate(None)
            del made
        assert str(e.value)
