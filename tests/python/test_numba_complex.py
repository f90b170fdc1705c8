"""Complex numbers in kernels: cmath and NumPy's functions, order, against NumPy and cmath."""

import cmath

import mpmath as mp
import numba_source
import numpy as np
import pytest
from simt.numba import cuda

NUMPY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan "
    "arcsinh arccosh arctanh rint conjugate square reciprocal"
).split()
CMATH = (
    "exp log log10 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh"
).split()  # fmt: skip
ORDER = ["maximum", "minimum", "fmax", "fmin"]
COMPARE = ["less", "less_equal", "greater", "greater_equal"]


def kernels(module, names, arguments):
    source = f"import {module} as m\n"
    for name in names:
        call = ", ".join(f"{a}[i]" for a in arguments)
        source += f"@cuda.jit\ndef {name}_kernel({', '.join(arguments)}, out):\n"
        source += f"    i = cuda.grid(1)\n    if i < out.size:\n        out[i] = m.{name}({call})\n"
    return numba_source.load(source, cuda=cuda)


ONE = {"numpy": kernels("numpy", NUMPY, "z"), "cmath": kernels("cmath", CMATH, "z")}
TWO = kernels("numpy", ORDER + COMPARE, "ab")


def points(dtype):
    """Around the origin and the branch points, on the cuts from both sides, small and large."""
    part = [-3.0, -1.5, -1.0, -0.7, -1e-3, -0.0, 0.0, 1e-5, 0.4, 1.0, 1.0 + 2**-12, 2.0, 20.0]
    z = np.array([complex(x, y) for x in part for y in part], np.complex128)
    rng = np.random.default_rng(3)
    ring = np.exp(1j * rng.uniform(-np.pi, np.pi, 30)) * (1 + rng.uniform(-1e-4, 1e-4, 30))
    return np.concatenate([z, ring, rng.standard_normal(60) + 1j * rng.standard_normal(60)]).astype(
        dtype
    )


def close(got, want, eps, z, name):
    """Within a few units of the size of the number, in both parts' signs on the cuts."""
    ok = np.isfinite(want)
    error = np.abs(got[ok].astype(complex) - want[ok]) / np.maximum(np.abs(want[ok]), 1e-300)
    assert (error <= 16 * eps).all(), (name, z[ok][np.argmax(error)], error.max() / eps)
    assert not np.isfinite(got[~ok]).any(), (name, z[~ok])
    sided = ok & (np.abs(want.imag) > 1e-3 * np.abs(want))
    assert (np.sign(got.imag) == np.sign(want.imag))[sided].all(), name


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("module", ONE)
def test_functions(module, dtype):
    z = points(dtype)
    eps = np.finfo(dtype).eps
    for name in NUMPY if module == "numpy" else CMATH:
        x = z
        with np.errstate(all="ignore"):
            if name == "log1p":  # NumPy's is only absolutely right
                x = x[x != -1]
                upper = x.real + 1j * np.abs(x.imag)  # mpmath has no -0
                with mp.workprec(120):
                    want = np.array([complex(mp.log(1 + mp.mpc(complex(v)))) for v in upper])
                want = np.where(np.signbit(x.imag), want.conj(), want)
            elif module == "numpy":
                want = getattr(np, name)(x.astype(np.complex128))
            else:
                x = z[(np.abs(z.real) != 1) | (np.abs(z.imag) != 0)]
                x = x[x != 0] if name.startswith("log") else x
                x = x[(x.real != 0) | (np.abs(x.imag) != 1)]
                want = np.array([getattr(cmath, name)(complex(v)) for v in x])
        out = np.zeros(x.size, dtype)
        ONE[module][f"{name}_kernel"][-(-x.size // 64), 64](x, out)
        if dtype == np.complex64:
            want = np.where(np.abs(want) > 3e38, np.inf, want)
            out = np.where(np.isfinite(out), out, np.inf)
        close(out, want, eps, x, name)


def test_large_and_small():
    large = np.array([1e200 + 1e200j, -1e308 + 1e300j, 5e307 - 5e307j, 1e-310 + 1e-312j])
    out = np.zeros(4, complex)
    ONE["numpy"]["sqrt_kernel"][1, 4](large, out)
    np.testing.assert_allclose(out, np.sqrt(large), rtol=1e-12)
    for name in ("arcsin", "arccos", "arcsinh", "arccosh"):
        ONE["numpy"][name + "_kernel"][1, 4](large, out)
        np.testing.assert_allclose(out, getattr(np, name)(large), rtol=1e-13)
    edges = np.array([800 + 1j, -800 + 2j, complex(np.inf, 0.0), 3 - 800j])
    ONE["numpy"]["tanh_kernel"][1, 4](edges[:2], out[:2])
    assert out[:2].tolist() == [1 + 0j, -1 + 0j]
    ONE["numpy"]["exp_kernel"][1, 4](edges, out)
    assert out[2] == complex(np.inf, 0)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_order_is_numpys(dtype):
    part = [-1.0, -0.0, 0.0, 2.0, np.nan, np.inf]
    z = np.array([complex(x, y) for x in part for y in part], dtype)
    a, b = (v.ravel().copy() for v in np.meshgrid(z, z))
    for name in ORDER:
        out = np.zeros(a.size, dtype)
        TWO[f"{name}_kernel"][-(-a.size // 64), 64](a, b, out)
        with np.errstate(invalid="ignore"):
            want = getattr(np, name)(a, b)
        np.testing.assert_array_equal(out.real, want.real)
        np.testing.assert_array_equal(out.imag, want.imag)
        assert (np.signbit(out.real) == np.signbit(want.real)).all()
    for name in COMPARE:
        out = np.zeros(a.size, bool)
        TWO[f"{name}_kernel"][-(-a.size // 64), 64](a, b, out)
        with np.errstate(invalid="ignore"):
            want = getattr(np, name)(a, b)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("name", CMATH)
def test_special_values(name):
    """Infinite, NaN, huge and tiny parts in all pairs: C's annex G, as NumPy and cmath have it.

    The sign of a zero or an infinity is not compared where C leaves it open: where the other
    part is NaN, or the angle of exp.
    """
    inf, nan = np.inf, np.nan
    part = [0.0, 1e-320, 1.0, 2.5, 711.0, 1e200, 1.7e308, inf]
    part = [*part, *(-x for x in part), nan]
    z = np.array([complex(x, y) for x in part for y in part])
    out = np.zeros(z.size, complex)
    ONE["cmath"][f"{name}_kernel"][-(-z.size // 64), 64](z, out)
    long = name.replace("a", "arc", 1) if name[0] == "a" else name
    with np.errstate(all="ignore"):
        want = getattr(np, long)(z)

    def same(got, want, signed):
        if want != want:
            return got != got
        if want == 0 or np.isinf(want):
            close = abs(got) == abs(want)
            return close and (not signed or np.signbit(got) == np.signbit(want))
        return abs(got - want) <= max(1e-13 * abs(want), 2e-323)

    wrong = []
    for v, g, w in zip(z, out, want, strict=True):
        signed = not np.isnan(w) and not (name == "exp" and not np.isfinite(v.imag))
        if not (same(g.real, w.real, signed) and same(g.imag, w.imag, signed)):
            wrong.append((v, g, w))
    assert not wrong, wrong[:20]


def test_powers_of_the_large_and_small():
    source = "@cuda.jit\ndef k(a, b, out):\n    i = cuda.grid(1)\n    out[i] = a[i] ** b[i]\n"
    kernel = numba_source.load(source, cuda=cuda)["k"]
    a = np.array([1e200 + 1e200j, 1e-200 + 1e-200j, -3e180 + 1j, complex(np.inf, 1), 2 + 1j])
    b = np.array([0.5 + 0.1j, 0.5 + 0j, -0.25 + 0j, 0j, 1 - 1j])
    out = np.zeros(5, complex)
    kernel[1, 5](a, b, out)
    np.testing.assert_allclose(out, [complex(x) ** complex(y) for x, y in zip(a, b, strict=True)])
