"""Kernels call the functions of math that NumPy lacks, and CUDA's library by its names."""

import math

import mpmath as mp
import numpy as np
import pytest
from simt.numba import cuda
from simt.numba.cuda import libdevice


@cuda.jit
def gammas(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = math.gamma(x[i])
        out[1, i] = math.lgamma(x[i])


@cuda.jit
def library(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = libdevice.exp10(x[i])
        out[1, i] = libdevice.rsqrt(x[i])
        out[2, i] = libdevice.sinpi(x[i])
        out[3, i] = libdevice.cospi(x[i])
        out[4, i] = libdevice.erfinv(math.erf(x[i]))
        out[5, i] = libdevice.remainder(x[i], 0.7)
        out[6, i] = libdevice.nextafter(x[i], 9.0)
        out[7, i] = libdevice.tgamma(x[i])


def test_gamma_and_lgamma():
    x = np.linspace(0.1, 20, 100)
    out = np.zeros((2, x.size))
    gammas[4, 32](x, out)
    np.testing.assert_allclose(out[0], [math.gamma(v) for v in x], rtol=1e-14)
    np.testing.assert_allclose(out[1], [math.lgamma(v) for v in x], rtol=1e-13, atol=1e-15)
    n = np.arange(1, 22)
    out = np.zeros((2, n.size), np.float32)
    gammas[1, 32](n.astype(np.float32), out)
    want = [math.factorial(int(k) - 1) for k in n]
    np.testing.assert_allclose(out[0], want, rtol=1e-6)


def test_library():
    x = np.linspace(0.1, 2.5, 100)
    out = np.zeros((8, x.size))
    library[4, 32](x, out)
    want = [10**x, 1 / np.sqrt(x), np.sin(np.pi * x), np.cos(np.pi * x), x]
    want += [[math.remainder(v, 0.7) for v in x], np.nextafter(x, 9), [math.gamma(v) for v in x]]
    for got, right, rtol in zip(out, want, [1e-14] * 4 + [1e-11] + [0, 0, 1e-14], strict=True):
        np.testing.assert_allclose(got, right, rtol=rtol, atol=0 if rtol == 0 else 1e-14)


@cuda.jit
def rounded(x, out):
    i = cuda.grid(1)
    out[0, i] = libdevice.floor(x[i])
    out[1, i] = libdevice.ceilf(x[i])
    out[2, i] = libdevice.trunc(x[i])
    out[3, i] = libdevice.rint(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_gives_floats(dtype):
    x = np.array([-0.0, -0.25, 2.5, 1e30, -1e30, np.inf, np.nan], dtype)
    out = np.zeros((4, x.size), dtype)
    rounded[1, x.size](x, out)
    want = np.array([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)])
    np.testing.assert_array_equal(out, want)
    assert (np.signbit(out) == np.signbit(want))[:, :-1].all()


@cuda.jit
def normal(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = libdevice.normcdf(x[i])


def test_normcdf():
    x = np.concatenate([np.linspace(-37, 8, 200), [-np.inf, -45.0, 45.0, np.inf, np.nan]])
    out = np.zeros(x.size)
    normal[4, 64](x, out)
    want = [float(mp.ncdf(v)) for v in x[:200]]
    np.testing.assert_allclose(out[:200], want, rtol=5e-16)
    assert out[200:-1].tolist() == [0.0, 0.0, 1.0, 1.0] and np.isnan(out[-1])
