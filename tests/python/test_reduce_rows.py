"""Reductions of dense rows: library steps, with the bits of the generated kernels."""

import numpy as np
import pytest
import simt.cupy as cp

DTYPES = ["f4", "f8", "i4", "i8", "u1"]
CASES = [  # shape, axis
    ((5, 31), 1),
    ((5, 33), 1),
    ((7, 100), 1),
    ((2, 129), 1),
    ((3, 4096), 1),
    ((3, 4097), 1),
    ((2, 20000), 1),
    ((60000,), 0),
    ((4, 5, 60), 2),
    ((4, 1, 60), 2),
    ((4, 5, 60), (1, 2)),
    ((3, 100), (0, 1)),
]


KINDS = ["plain", "ties", "zeros", "nan"]


def make(shape, dtype, kind):
    rng = np.random.default_rng([*shape, KINDS.index(kind)])
    a = rng.standard_normal(shape) * 50
    if kind == "ties":
        a = np.round(a / 40)
    if kind == "zeros":  # the largest of a row are zeros of both signs
        a = -np.abs(np.round(a / 60)) * (rng.random(shape) < 0.9)
    a = a.astype(dtype)
    if kind == "nan" and a.dtype.kind == "f":
        a.reshape(-1)[rng.integers(0, a.size, 5)] = np.nan
    return a


def bits(a):
    return np.where(np.isnan(a), 0, a).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, axis", CASES)
def test_rows_agree_with_numpy_and_with_fused_kernels(shape, axis, dtype):
    for kind in KINDS:
        a = make(shape, dtype, kind)
        x, zero = cp.asarray(a), cp.zeros(shape, dtype=dtype)
        for op in ("sum", "max", "min", "argmax", "argmin"):
            if op.startswith("arg") and isinstance(axis, tuple):
                continue
            for keepdims in (False, True):
                got = getattr(x, op)(axis=axis, keepdims=keepdims).get()
                want = getattr(a, op)(axis=axis, keepdims=keepdims)
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                if op == "sum" and a.dtype.kind == "f":
                    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)
                else:
                    np.testing.assert_array_equal(got, want)
                fused = getattr(cp.where(zero == 0, x, zero), op)(axis=axis, keepdims=keepdims)
                assert bits(got) == bits(fused.get()), (op, kind)


def test_unaligned_and_gapped_rows():
    a = np.zeros((20, 100), dtype="f4")
    a[:] = make((20, 100), "f4", "plain")
    x = cp.asarray(a)
    for view in (np.s_[:, 3:90], np.s_[::2], np.s_[::-1, :64]):
        np.testing.assert_array_equal(x[view].max(1).get(), a[view].max(1))
        np.testing.assert_array_equal(x[view].argmin(1).get(), a[view].argmin(1))
    for view in (np.s_[:, ::2], np.s_[:, ::-1]):  # no dense rows
        np.testing.assert_array_equal(x[view].argmax(1).get(), a[view].argmax(1))


def test_several_reductions_of_one_array_at_once():
    a = make((6, 500), "f4", "plain")
    x = cp.asarray(a)
    most, least, where = x.max(1), x.min(1), x.argmax(1)
    np.testing.assert_array_equal(most.get(), a.max(1))
    np.testing.assert_array_equal(least.get(), a.min(1))
    np.testing.assert_array_equal(where.get(), a.argmax(1))
