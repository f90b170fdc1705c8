"""simt.torch's functions of device math against NumPy and mpmath: values, types, gradients."""

import mpmath as mp
import numpy as np
import pytest
from simt import torch

F64 = torch.float64
INSIDE = np.linspace(-0.95, 0.95, 39)
SMALL = np.linspace(-6, 6, 41)
REFERENCE = {
    "asin": (np.arcsin, INSIDE), "acos": (np.arccos, INSIDE), "atan": (np.arctan, SMALL),
    "sinh": (np.sinh, SMALL), "cosh": (np.cosh, SMALL), "asinh": (np.arcsinh, SMALL),
    "acosh": (np.arccosh, SMALL**2 + 1), "atanh": (np.arctanh, INSIDE), "exp2": (np.exp2, SMALL),
    "log2": (np.log2, SMALL**2 + 0.1), "log10": (np.log10, SMALL**2 + 0.1),
    "erfc": (lambda x: mp.erfc(x), SMALL), "sinc": (np.sinc, SMALL),
    "erfinv": (mp.erfinv, INSIDE),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), SMALL + 0.01),
    "digamma": (lambda x: mp.digamma(x), SMALL + 0.01),
}  # fmt: skip
TWO = {
    "atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
    "nextafter": np.nextafter,
}  # fmt: skip


def numbers(f, *arrays):
    """f of each element."""
    return np.array([float(f(*x)) for x in zip(*(a.tolist() for a in arrays), strict=True)])


@pytest.mark.parametrize("name", REFERENCE)
def test_one_operand(name):
    f, x = REFERENCE[name]
    want = numbers(f, x)
    got = getattr(torch, name)(torch.tensor(x, dtype=F64))
    np.testing.assert_allclose(got.numpy(), want, rtol=4e-14, atol=2e-15)
    t = torch.tensor(x, dtype=torch.float32)
    single = numbers(f, t.numpy().astype(np.float64))
    np.testing.assert_allclose(getattr(t, name)().numpy(), single, rtol=3e-5, atol=2e-6)
    assert getattr(t, name + "_")() is t
    np.testing.assert_allclose(t.numpy(), single, rtol=3e-5, atol=2e-6)
    assert getattr(torch, name)(torch.tensor([1, 2])).dtype == torch.float32


@pytest.mark.parametrize("name", TWO)
def test_two_operands(name):
    x, y = np.meshgrid(SMALL, SMALL[::-1] * 1.5)
    got = getattr(torch, name)(torch.tensor(x, dtype=F64), torch.tensor(y, dtype=F64))
    np.testing.assert_allclose(got.numpy(), TWO[name](x, y), rtol=1e-14, atol=1e-15)


def test_other_names_and_places():
    x = torch.tensor([0.25, 0.5])
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
        argument = x + 1 if name == "cosh" else x
        assert torch.equal(*(getattr(torch, head + name)(argument) for head in ("a", "arc")))
    assert not hasattr(x, "logaddexp_") and hasattr(x, "logaddexp") and hasattr(x, "hypot_")
    poles = torch.tensor([0.0, -0.0, -1.0, -3.0], dtype=F64)
    assert torch.lgamma(poles).tolist() == [float("inf")] * 4
    assert torch.digamma(poles).tolist()[:2] == [-float("inf"), float("inf")]
    assert torch.isnan(torch.digamma(poles)[2:]).all()


def test_parts_of_numbers():
    x = torch.tensor([0.0, 1.0, -3.5, 1e-300, float("inf")], dtype=F64)
    parts = torch.frexp(x)
    assert parts.exponent.dtype == torch.int32
    mantissa, exponent = np.frexp(x.numpy()[:4])
    assert parts.mantissa.tolist()[:4] == mantissa.tolist()
    assert parts.exponent.tolist() == [*exponent.tolist(), 0]
    assert torch.ldexp(torch.tensor([1.5]), torch.tensor([3])).tolist() == [12.0]
    with pytest.raises(RuntimeError):
        torch.frexp(torch.tensor([1]))


def test_polygamma():
    x = SMALL + 0.01
    for n in (0, 1):
        want = [float(mp.polygamma(n, v)) for v in x]
        got = torch.polygamma(n, torch.tensor(x, dtype=F64))
        np.testing.assert_allclose(got.numpy(), want, rtol=4e-14)
        single = torch.tensor(x, dtype=torch.float32)
        want = [float(mp.polygamma(n, v)) for v in single.tolist()]
        np.testing.assert_allclose(single.polygamma(n).numpy(), want, rtol=3e-5)
    far = torch.tensor([1e-200, 1e-8, 1e5, 1e300, float("inf"), 0.0, -2.0], dtype=F64)
    want = [float("inf"), 1e16, 1.000005000016667e-5, 1e-300, 0.0, float("inf"), float("inf")]
    np.testing.assert_allclose(torch.polygamma(1, far).numpy(), want, rtol=1e-14)
    with pytest.raises(RuntimeError, match="negative n"):
        torch.polygamma(-1, far)
    with pytest.raises(NotImplementedError):
        torch.polygamma(2, far)


def test_gradient_of_digamma_is_trigamma():
    x = torch.tensor([0.3, 1.0, 2.5, 30.0, -1.3], dtype=F64, requires_grad=True)
    torch.digamma(x).sum().backward()
    want = [float(mp.polygamma(1, v)) for v in x.tolist()]
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-13)
    torch.lgamma(x).sum().backward(create_graph=True)


def test_nextafter_of_16_bit_floats():
    """Every float16 towards both sides against NumPy; bfloat16 is the upper half of float32."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for y in (np.inf, -np.inf, 0.0, -0.0, 1.0, np.nan):
        with np.errstate(over="ignore"):
            want = np.nextafter(x, np.float16(y))
        want[x == y] = np.float16(y)  # NumPy before 2.5 has 0 for 0 towards -0
        got = torch.nextafter(torch.from_numpy(x), torch.tensor(y, dtype=torch.float16)).numpy()
        assert (
            (got.view(np.uint16) == want.view(np.uint16)) | np.isnan(want) & np.isnan(got)
        ).all()
    a, b = torch.tensor([1.0, -1.0, 0.0]).bfloat16(), torch.tensor([2.0, 0.0, -1.0]).bfloat16()
    assert torch.nextafter(a, b).tolist() == [1 + 2**-7, -1 + 2**-8, -(2.0**-133)]


def test_gradient_of_lgamma_is_digamma():
    x = torch.tensor([0.3, 1.0, 2.5, 30.0, -1.3], dtype=F64, requires_grad=True)
    y = torch.lgamma(x)
    assert type(y.grad_fn).__name__ == "LgammaBackward0"
    y.sum().backward()
    want = [float(mp.digamma(v)) for v in x.tolist()]
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-13)
