"""Gradients where functions have kinks, zeros and poles, halves with numbers, schedules.

The expected values were recorded from PyTorch 2.15.
"""

import math
import re

import numpy as np
import pytest
import simt.torch as torch
import simt.torch.nn.functional as F
from simt.torch import nn, optim
from simt.torch.optim import lr_scheduler

INF, NAN = math.inf, math.nan


def gradients(function, *values, dtype=torch.float32):
    inputs = [torch.tensor(v, requires_grad=True, dtype=dtype) for v in values]
    function(*inputs).sum().backward()
    return [x.grad.tolist() for x in inputs]


def same(got, want, rtol=1e-6):
    np.testing.assert_allclose(np.array(got, np.float64), np.array(want, np.float64), rtol=rtol)


KINKS = {
    "clamp": (lambda x: x.clamp(0, 1), [-1, 0, 0.5, 1, 2, NAN], [0, 0, 1, 0, 0, 0]),
    "clamp min": (lambda x: x.clamp(min=0), [-1, 0, 0.5, NAN], [0, 0, 1, 0]),
    "clamp max": (lambda x: x.clamp(max=0), [-1, 0, 0.5, NAN], [1, 0, 0, 0]),
    "clamp_min": (lambda x: torch.clamp_min(x, 0), [-1, 0, 0.5], [0, 0, 1]),
    "clamp_max": (lambda x: torch.clamp_max(x, 0), [-1, 0, 0.5], [1, 0, 0]),
    "clamp_": (lambda x: (x * 1).clamp_(0, 1), [-1, 0, 0.5, 1, 2], [0, 0, 1, 0, 0]),
    "clamp crossed": (lambda x: x.clamp(1, 0), [-1, 0, 0.5, 1, 2], [0, 0, 0, 0, 0]),
    "relu": (F.relu, [-1, 0, 1], [0, 0, 1]),
    "relu6": (F.relu6, [-1, 0, 1, 6, 7, NAN], [0, 0, 1, 0, 0, 1]),
    "hardtanh": (F.hardtanh, [-1, 0, 1, 2, NAN], [0, 1, 0, 0, 1]),
    "hardsigmoid": (F.hardsigmoid, [-3, 0, 3, 4, NAN], [0, 1 / 6, 0, 0, 0]),
    "hardswish": (F.hardswish, [-4, -3, 0, 3, 4, NAN], [0, 0, 0.5, 1, 1, 1]),
    "elu": (F.elu, [-1, -0.0, 0, 1, NAN, -1000], [0.36787945, 1, 1, 1, 1, 0]),
    "elu 2": (lambda x: F.elu(x, 2.0), [-1, 0, 1], [0.7357589, 2, 1]),
    "selu": (F.selu, [-1, 0, 1], [0.64676863, 1.7580993, 1.050701]),
    "leaky_relu": (F.leaky_relu, [-1, 0, 1], [0.01, 0.01, 1]),
    "softsign": (F.softsign, [-0.5, 0, 0.5], [0.44444448, 1, 0.44444448]),
    "huber": (lambda x: F.huber_loss(x, torch.zeros(5), reduction="sum"),
              [-1, 0, 1, 2, 0.5], [-1, 0, 1, 1, 0.5]),
    "smooth l1": (lambda x: F.smooth_l1_loss(x, torch.zeros(5), reduction="sum"),
                  [-1, 0, 1, 2, 0.5], [-1, 0, 1, 1, 0.5]),
    "l1": (lambda x: F.l1_loss(x, torch.zeros(3), reduction="sum"), [-1, 0, 1], [-1, 0, 1]),
    "hinge": (lambda x: F.hinge_embedding_loss(x, torch.tensor([-1.0, -1, 1]), reduction="sum"),
              [1, 0.5, 1], [0, -1, 1]),
    "margin": (lambda x: F.margin_ranking_loss(x, torch.zeros(1), torch.ones(1), margin=0.5),
               [0.5], [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kinks(name, dtype):
    function, values, want = KINKS[name]
    if dtype == torch.float64 and name in ("hinge", "margin"):
        pytest.skip("their other operands are float32")
    same(gradients(function, [float(v) for v in values], dtype=dtype)[0], want, rtol=1e-6)


def test_clamp_between_tensors():
    """Equal values share the gradient, as maximum and minimum do."""
    got = gradients(torch.clamp, [-1.0, 0, 0.5, 1, 2, 0.5], [0.0] * 5 + [1], [1.0] * 5 + [0])
    want = [[0, 0.5, 1, 0.5, 0, 0], [1, 0.5, 0, 0, 0, 0], [0, 0, 0, 0.5, 1, 1]]
    assert got == want
    assert gradients(torch.clamp, [-1.0, 0, 0.5], [0.0] * 3) == [[0, 0.5, 1], [1, 0.5, 0]]
    x = torch.tensor([-1.0, 0.5, 3.0])
    assert x.clamp_(torch.zeros(3), torch.ones(3)).tolist() == [0, 0.5, 1] == x.tolist()


@pytest.mark.parametrize("inplace", [False, True])
def test_activations_of_values(inplace):
    x = np.array([-1e4, -4, -3, -1, -0.0, 0, 0.3, 1, 3, 6, 7, INF, -INF], np.float64)
    references = {
        "relu6": np.clip(x, 0, 6), "hardtanh": np.clip(x, -1, 1),
        "hardsigmoid": np.clip(x + 3, 0, 6) / 6,
        "elu": np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        "selu": 1.0507009873554804935 * np.where(
            x > 0, x, 1.6732632423543772848 * np.expm1(np.minimum(x, 0))
        ),
    }  # fmt: skip
    for name, want in references.items():
        t = torch.tensor(x)
        got = getattr(F, name)(t, inplace=inplace)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14, err_msg=name)
        assert (got is t) == inplace
    finite = torch.tensor(x[:-2])
    want = x[:-2] * np.clip(x[:-2] + 3, 0, 6) / 6
    np.testing.assert_allclose(F.hardswish(finite).numpy(), want, rtol=1e-14)


NORMS = {  # of [0, 0], [3, 0] and [3, -4]
    2: ([0, 0], [1, 0], [0.6, -0.8]), 3: ([0, 0], [1, 0], [0.44485134, -0.7908468]),
    1.5: ([0, 0], [1, 0], [0.73295653, -0.8463453]), 1: ([0, 0], [1, 0], [1, -1]),
    0.5: ([0, 0], [1, 0], [2.1547005, -1.8660254]), 0: ([0, 0], [0, 0], [0, 0]),
    INF: ([0, 0], [1, 0], [0, -1]), -INF: ([0, 0], [0, 0], [1, 0]),
    -1: ([0, 0], [0, 0], [0.32653058, -0.18367344]), -2: ([0, 0], [0, 0], [0.512, -0.216]),
}  # fmt: skip


@pytest.mark.parametrize("p", NORMS)
def test_gradients_of_norms(p):
    for values, want in zip(([0.0, 0.0], [3.0, 0.0], [3.0, -4.0]), NORMS[p], strict=True):
        for dim, keep in ((None, False), (0, False), (0, True)):
            got = gradients(lambda x, d=dim, k=keep: x.norm(p, d, k), values)[0]
            same(got, want, rtol=2e-6)
    rows = gradients(lambda x: x.norm(p, 1), [[3.0, -4.0], [0.0, 0.0]])[0]
    same(rows, [NORMS[p][2], NORMS[p][0]], rtol=2e-6)
    x = np.array([3.0, -4, 0])
    with np.errstate(divide="ignore"):
        want = np.linalg.norm(x, p)
    same(torch.tensor(x).norm(p).item(), want)


def test_norms_of_special_values():
    assert torch.tensor([3.0, -4.0, 0.0]).norm(p=0).item() == 2
    assert math.isnan(torch.tensor([NAN, 1.0]).norm().item())
    same(gradients(lambda x: x.norm(INF), [3.0, -3.0, 1.0])[0], [0.5, -0.5, 0])
    assert torch.zeros(0).norm().item() == 0
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(x.norm(), x, create_graph=True)
    first[0].backward()  # the second derivative: (1 - x0^2 / n^2) / n, -x0 x1 / n^3
    n = math.hypot(0.5, 1.5)
    same(x.grad.tolist(), [(1 - 0.25 / n**2) / n, 0.75 / n**3], rtol=1e-12)


def test_gradients_through_norms_at_zero():
    same(gradients(lambda x: F.normalize(x, dim=0), [0.0, 0.0])[0], [1e12, 1e12])
    got = gradients(lambda x, y: F.cosine_similarity(x, y, dim=0), [0.0, 0.0], [1.0, 2.0])
    same(got, [[44721360, 89442720], [0, 0]])
    got = gradients(lambda x, y: F.pairwise_distance(x, y, eps=0.0), [[0.0, 0.0]], [[0.0, 0.0]])
    same(got, [[[0, 0]], [[0, 0]]])


# ---- binary cross entropy ----


def test_bce_gradients():
    target = torch.tensor([0.0, 1, 1, 0, 0.5, 0.5])
    x = [0.0, 1, 0, 1, 1e-20, 0.3]
    got = gradients(lambda x: F.binary_cross_entropy(x, target, reduction="sum"), x)[0]
    same(got, [0, 0, -1e12, 1e12, -5e11, -0.952381])
    got = gradients(lambda x, t: F.binary_cross_entropy(x, t, reduction="sum"),
                    [0.0, 1, 0.3], [0.5, 0.5, 0.2])  # fmt: skip
    same(got, [[-5e11, 5e11, 0.47619048], [INF, -INF, 0.84729779]])


def test_bce_saturated():
    x = torch.tensor([20.0, -120, 120, 0.5], requires_grad=True)
    loss = nn.BCELoss(reduction="sum")(torch.sigmoid(x), torch.tensor([1.0, 0, 1, 1]))
    loss.backward()
    same(x.grad.tolist(), [0, 0, 0, -0.37754068])
    x = torch.tensor([20.0], requires_grad=True)
    loss = F.binary_cross_entropy(torch.sigmoid(x), torch.zeros(1))
    loss.backward()
    assert loss.item() == 100 and x.grad.item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("bad", [1.5, -0.1, NAN, INF, -1e-7])
def test_bce_outside_of_its_range(bad, dtype):
    """The error comes with the first look at anything that depends on the loss."""
    message = "all elements of input should be between 0 and 1"
    for shape in ((), (7,), (3, 5)):
        x = torch.full(shape, 0.5, dtype=dtype)
        x.view(-1)[-1] = bad
        x.requires_grad_()
        if not 0 <= x.view(-1)[-1].item() <= 1:
            with pytest.raises(RuntimeError, match=message):
                F.binary_cross_entropy(x, torch.ones_like(x)).item()
            w = torch.ones((), dtype=dtype, requires_grad=True)
            F.binary_cross_entropy(x * w, torch.ones_like(x)).backward()
            with pytest.raises(RuntimeError, match=message):
                w.grad.item()
    assert F.binary_cross_entropy(torch.full((3,), 0.5), torch.ones(3)).item() == pytest.approx(
        math.log(2)
    )
    transposed = torch.full((3, 4), 0.5).t()
    assert F.binary_cross_entropy(transposed, torch.ones(4, 3)).item() == pytest.approx(math.log(2))


def test_bce_of_nothing():
    assert math.isnan(F.binary_cross_entropy(torch.zeros(0), torch.zeros(0)).item())


# ---- halves and numbers ----


def test_halves_with_numbers_beyond_their_range():
    m = torch.tensor([0, 1, 3], dtype=torch.float16)
    cases = [
        (m * 1e10, [0, INF, INF]), (1e10 * m, [0, INF, INF]), (m * -1e9, [0, -INF, -INF]),
        (m + 1e10, [INF] * 3), (m - 1e10, [-INF] * 3), (1e10 - m, [INF] * 3), (m / 1e10, [0] * 3),
        (m / 1e-10, [0, INF, INF]), (m.clone().mul_(1e10), [0, INF, INF]), (m // 0.1, [0, 9, 29]),
        (m * torch.tensor(1e10), [0, INF, INF]), (m * 1000, [0, 1000, 3000]),
        (m * 70000, [0, INF, INF]), (m / 0.1, [0, 10, 30]),
        ((m * -1e9).softmax(0), [1, 0, 0]), (torch.tensor([0.01]).half() * 65536, [655.5]),
    ]  # fmt: skip
    for got, want in cases:
        assert got.dtype == torch.float16 and got.tolist() == want
    x = torch.tensor([0.01, 0], dtype=torch.float16, requires_grad=True)
    (x * 65504.5).sum().backward()
    assert x.grad.tolist() == [65504, 65504]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_with_numbers_are_rounded_once(dtype):
    x = torch.tensor(np.random.default_rng(0).normal(size=200), dtype=dtype)
    exact = x.double().numpy().astype(np.float32)
    for number in (1 / 3, 0.1, 1.0001, 1000.3):
        third = np.float32(number)
        for got, want in (
            (x * number, exact * third), (x + number, exact + third), (x - number, exact - third),
            (x / number, exact / third), (number / x, third / exact), (number - x, third - exact),
        ):  # fmt: skip
            assert torch.equal(got, torch.tensor(want).to(dtype)) and got.dtype == dtype


# ---- results that are changed in place before backward ----


def test_a_quotient_may_be_changed():
    x = torch.tensor([0.3, 0.7, 1.2], requires_grad=True)
    y = x / (x + 1)
    y.mul_(2)
    y.sum().backward()
    same(x.grad.tolist(), [2 / (v + 1) ** 2 for v in (0.3, 0.7, 1.2)])
    x.grad = None
    y = x * (x + 1)
    y.div_(x.detach() + 2).add_(1)
    y.sum().backward()
    same(x.grad.tolist(), [(2 * v + 1) / (v + 2) for v in (0.3, 0.7, 1.2)])


@pytest.mark.parametrize(
    "name", ["elu", "selu", "gelu", "silu", "softplus", "hardtanh", "hardswish"]
)
def test_results_that_no_gradient_needs(name):
    x = torch.tensor([0.3, 0.7, 0.9], dtype=torch.float64, requires_grad=True)
    getattr(F, name)(x).sum().backward()
    want, x.grad = x.grad, None
    getattr(F, name)(x).mul_(2).sum().backward()
    same(x.grad.tolist(), (want * 2).tolist())


# ---- schedules ----


def sgd(**options):
    return optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1, **options)


def rates(optimizer, schedulers, steps=6):
    out = []
    for _ in range(steps):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    return out


def test_schedulers_are_chained():
    o = sgd()
    pair = [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.CosineAnnealingLR(o, 10)]
    want = [0.1 * 0.9**n * (1 + math.cos(math.pi * n / 10)) / 2 for n in range(30)]
    np.testing.assert_allclose(rates(o, pair, 10), want[:10], rtol=1e-10)
    o = sgd()
    pair = [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.LinearLR(o, 0.25, total_iters=4)]
    want = [0.1 * 0.9**n * min(1, 0.25 + 0.75 * n / 4) for n in range(8)]
    np.testing.assert_allclose(rates(o, pair, 8), want, rtol=1e-10)


def test_a_rate_set_by_hand_goes_on():
    o = sgd()
    s = lr_scheduler.CosineAnnealingLR(o, 5, eta_min=0.01)
    o.step(), s.step()
    o.param_groups[0]["lr"] = 0.05
    np.testing.assert_allclose(rates(o, [s], 2), [0.05, 0.038944], rtol=2e-5)


def test_a_cosine_comes_back():
    o = sgd()
    got = rates(o, [lr_scheduler.CosineAnnealingLR(o, 4)], 17)
    want = [0.05 * (1 + math.cos(math.pi * n / 4)) for n in range(17)]
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_the_epoch_of_a_step():
    for make, want in [
        (lambda o: lr_scheduler.StepLR(o, 3, 0.5), 0.05),
        (lambda o: lr_scheduler.MultiStepLR(o, [2, 4, 9], 0.5), 0.025),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5), 0.1 / 32),
        (lambda o: lr_scheduler.ConstantLR(o, 0.5, 9), 0.05),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, total_iters=10), 0.075),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 10), 0.05),
    ]:
        o = sgd()
        s = make(o)
        o.step()
        with pytest.warns(UserWarning, match="The epoch parameter"):
            s.step(5)
        assert s.last_epoch == 5 and o.param_groups[0]["lr"] == pytest.approx(want, rel=1e-12)


def test_one_cycle():
    o = sgd(momentum=0.9)
    s = lr_scheduler.OneCycleLR(o, 0.1, total_steps=8)
    got = []
    for _ in range(7):
        got.append(round(o.param_groups[0]["momentum"], 4))
        o.step(), s.step()
    assert got == [0.95, 0.8688, 0.8528, 0.8688, 0.8944, 0.9217, 0.9423]
    o = optim.Adam([nn.Parameter(torch.ones(1))])
    s = lr_scheduler.OneCycleLR(o, 0.1, total_steps=8)
    o.step(), s.step()
    assert o.param_groups[0]["betas"] == (pytest.approx(0.8688, abs=1e-4), 0.999)
    o = sgd(momentum=0.9)
    s = lr_scheduler.OneCycleLR(o, 1.0, epochs=3, steps_per_epoch=5, three_phase=True,
                                anneal_strategy="linear")  # fmt: skip
    got = [round(rate, 5) for rate in rates(o, [s])]
    assert got == [0.04, 0.31429, 0.58857, 0.86286, 0.86286, 0.58857]


def test_one_cycle_ends_with_its_last_step():
    o = sgd()
    s = lr_scheduler.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=8)
    rates(o, [s], 16)
    with pytest.raises(ValueError, match="Tried to step 17 times. The specified number of total"):
        s.step()


def test_what_one_cycle_refuses():
    for options, text in [
        ({}, "You must define either total_steps OR"),
        ({"total_steps": 0}, "Expected positive integer total_steps, but got 0"),
        ({"epochs": 2, "steps_per_epoch": 1.5}, "Expected positive integer steps_per_epoch"),
        ({"total_steps": 9, "pct_start": 2.0}, "Expected float between 0 and 1 pct_start"),
        ({"total_steps": 9, "anneal_strategy": "up"}, "anneal_strategy must be one of"),
        ({"total_steps": 9, "max_momentum": [1, 2]}, "max_momentum must have the same length"),
    ]:
        with pytest.raises(ValueError, match=text):
            lr_scheduler.OneCycleLR(sgd(), 0.1, **options)


def test_schedules_are_saved():
    for make in (lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9, three_phase=True),
                 lambda o: lr_scheduler.CosineAnnealingLR(o, 5)):  # fmt: skip
        o = sgd(momentum=0.5)
        s = make(o)
        rates(o, [s], 3)
        again = sgd(momentum=0.5)
        other = make(again)
        again.load_state_dict(o.state_dict())
        other.load_state_dict(s.state_dict())
        assert rates(again, [other], 4) == rates(o, [s], 4)


def test_optimisers_of_users(recwarn):
    calls = []

    class Mine(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

        def step(self, closure=None):
            """Mine."""
            calls.append("step")
            return 5

    o = Mine([nn.Parameter(torch.ones(1))])
    o.register_step_pre_hook(lambda *a: calls.append("before"))
    o.register_step_post_hook(lambda *a: calls.append("after"))
    s = lr_scheduler.StepLR(o, 1, 0.5)
    assert o.step() == 5 and Mine.step.__doc__ == "Mine."
    s.step()
    assert calls == ["before", "step", "after"] and not recwarn.list
    o = Mine([nn.Parameter(torch.ones(1))])
    s = lr_scheduler.StepLR(o, 1, 0.5)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        s.step()


NOT_BROADCAST = """
x.index_add(0, i, ones(2, 1)) :: RuntimeError ::
    Got self.shape = [3, 2] source.shape = [2, 1]
x.index_add(0, i, ones(1, 2)) :: RuntimeError ::
    Number of indices (2) should be equal to source.size(dim): (1), for dim: 0
x.index_add(0, i, ones(())) :: RuntimeError ::
    Number of indices (2) should be equal
x.index_add(1, i, ones(2)) :: RuntimeError ::
    Indexing dim 1 is out of bounds of the source tensor with dim 1
x.index_add(0, i.float(), ones(2, 2)) :: RuntimeError ::
    Expected dtype int32/int64 for index but got: Float
x.index_add(0, i[None], ones(2, 2)) :: IndexError ::
    got dim: 2 with type: Long and size: [1, 2]
x.index_add(0, i, ones(2, 2).double()) :: RuntimeError ::
    self (Float) and source (Double) must have the same
x.index_add(0, far, ones(2, 2)) :: IndexError ::
    index out of range in self
x.long().index_add(0, i, ones(2, 2).long(), alpha=0.5) :: RuntimeError ::
    For integral input tensors
x.index_copy(0, i, ones(2, 1)) :: RuntimeError ::
    Destination slice shape: [2] at dimension 0 and source slice shape: [1]
x.index_copy(0, i, ones(3, 2)) :: IndexError ::
    Number of indices (2) should be equal to source.size(dim) (3)
x.index_copy(0, i, ones(2)) :: IndexError ::
    their dimensionality must match
x[:, 0].index_copy(0, i, ones(())) :: IndexError ::
    index should have one element (got 2)
x.index_copy(0, i.int(), ones(2, 2)) :: RuntimeError ::
    Expected a long tensor for index, but got Int
x.index_copy(0, i, ones(2, 2).double()) :: RuntimeError ::
    expected to have the same dtype
x.index_copy(0, i[:, None], ones(2, 2)) :: IndexError ::
    Index should have dimension 1 or 0 (got 2)
x.index_fill(0, i, ones(2)) :: RuntimeError ::
    0-dimensional value tensor, but got tensor with 1 dimension
x.index_fill(0, i.int(), 1) :: IndexError ::
    Expected dtype int64 for index
x.index_fill(0, i[None], 1) :: RuntimeError ::
    Index has to be a vector/scalar
"""


@pytest.mark.parametrize("case", NOT_BROADCAST.strip().replace("::\n", "::").split("\n"))
def test_slices_along_an_axis_are_not_broadcast(case):
    """index_add and its kin refuse what PyTorch refuses, in its words, and change nothing."""
    call, error, message = map(str.strip, case.split("::"))
    x, i, far = torch.zeros(3, 2), torch.tensor([0, 2]), torch.tensor([0, 3])
    names = {"x": x, "i": i, "far": far, "ones": torch.ones}
    error = {"RuntimeError": RuntimeError, "IndexError": IndexError}[error]
    for name in ("index_add", "index_copy", "index_fill"):
        for text in (call, call.replace(f"{name}(", f"{name}_(")):
            with pytest.raises(error, match=re.escape(message)):
                eval(text, names)
    assert x.tolist() == [[0, 0]] * 3


def test_slices_along_an_axis():
    rng = np.random.default_rng(0)
    i = np.array([2, 0, 2])
    for dim in range(3):
        for kind in ("f4", "f8", "i8", "i4"):
            x, y = (rng.integers(-9, 9, (4, 3, 5)).astype(kind) for _ in range(2))
            y = y.take(range(3), dim)
            a, b, at = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(i)
            want = np.moveaxis(x.copy(), dim, 0)
            np.add.at(want, i, 2 * np.moveaxis(y, dim, 0))
            got = a.index_add(dim, at, b, alpha=2)
            np.testing.assert_array_equal(got.numpy(), np.moveaxis(want, 0, dim))
            want = np.moveaxis(x.copy(), dim, 0)
            want[i[:2]] = np.moveaxis(y, dim, 0)[:2]
            got = a.index_copy(dim, at[:2], b.narrow(dim, 0, 2))
            np.testing.assert_array_equal(got.numpy(), np.moveaxis(want, 0, dim))
            want[i] = 7
            got = got.index_fill(dim - 3, at, torch.tensor(7).to(a.dtype))
            np.testing.assert_array_equal(got.numpy(), np.moveaxis(want, 0, dim))
    one, zero = torch.tensor(1.0), torch.tensor(0)
    assert one.index_add(0, zero, torch.tensor(2.0)).item() == 3
    assert one.index_copy(0, zero, torch.tensor([2.0])).item() == 2
    assert one.index_fill(0, zero, 4).item() == 4
    assert torch.zeros(3).index_copy(0, zero + 1, torch.tensor(2.0)).tolist() == [0, 2, 0]
    x = torch.ones(3, 2, requires_grad=True)
    s = torch.full((2, 2), 2.0, requires_grad=True)
    weights = torch.arange(6.0).reshape(3, 2)
    (x.index_add(0, torch.tensor([0, 2]), s, alpha=3) * weights).sum().backward()
    assert x.grad.tolist() == weights.tolist() and s.grad.tolist() == [[0, 3], [12, 15]]
    x.grad = s.grad = None
    (x.index_copy(0, torch.tensor([0, 2]), s) * weights).sum().backward()
    assert x.grad.tolist() == [[0, 0], [2, 3], [0, 0]] and s.grad.tolist() == [[0, 1], [4, 5]]
