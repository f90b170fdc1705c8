"""f32 products and quotients with denormal operands and results: NumPy's bits."""

import numpy as np
import pytest
import simt.cupy as cp

rng = np.random.default_rng(5)


def some_floats(n, share):
    """f32 of all exponents; a share of denormals, and zeros, infinities, NaNs now and then."""
    bits = rng.integers(0, 2**32, n, dtype=np.uint32)
    tiny = rng.random(n) < share
    bits[tiny] &= np.uint32(0x807FFFFF)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1.1754942e-38):
        bits[rng.integers(0, n)] = np.float32(value).view(np.uint32)
    return bits.view(np.float32)


def same(mine, reference):
    mine, nan = mine.get(), np.isnan(reference)
    assert np.array_equal(np.isnan(mine), nan)
    assert np.array_equal(mine.view(np.uint32)[~nan], reference.view(np.uint32)[~nan])


@pytest.mark.parametrize("n", [1, 15, 16, 63, 64, 65, 200, 5000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.7])
def test_products_and_quotients(n, share):
    a, b = some_floats(n, share), some_floats(n, share)
    x, y = cp.asarray(a), cp.asarray(b)
    scalars = [0.1, 1e-40, 3e38, -1e-8, 2.0**-100, 2.0**100, 0.0, np.inf]
    with np.errstate(all="ignore"):
        same(x * y, a * b)
        same(x / y, a / b)
        for s in scalars:
            s = np.float32(s)
            same(x * s, a * s)
            same(x / s, a / s)
            same(s / x, s / a)
            near = (a * np.float32(2.0**-20)) / s  # results around the smallest numbers
            same(cp.asarray(near) * s, near * s)


def test_quotients_near_the_middle_of_two_denormals():
    b = np.arange(1, 4097, dtype=np.float32) * np.float32(1.0000001)
    for k in (1, 3, 5, 1023, 8388607):
        a = (b * np.float32(k)).astype(np.float32) * np.float32(2.0**-140)
        with np.errstate(all="ignore"):
            same(cp.asarray(a) / cp.asarray(b), a / b)
            same(cp.asarray(a) / np.float32(2.0**10), a / np.float32(2.0**10))
