"""Bad input: a Python exception that says what is wrong, nothing half changed, no crash, no hang."""

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
import simt.torch.nn.functional as F

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
