"""Comparing our arrays with NumPy's, for the tests of simt.cupy."""

import numpy as np


def same(ours, theirs, rtol=0.0, atol=0.0, signs=True):
    got = ours.get()
    assert got.dtype == theirs.dtype, (got.dtype, theirs.dtype)
    assert got.shape == theirs.shape
    if rtol and theirs.dtype.kind == "f":
        np.testing.assert_allclose(got, theirs, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(got, theirs)
        if theirs.dtype.kind == "f" and signs:
            ok = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(got[ok]), np.signbit(theirs[ok]))
