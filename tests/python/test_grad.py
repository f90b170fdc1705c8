"""Gradients against finite differences: every elementwise row of the table, every other rule."""

import math
import re
from pathlib import Path

import pytest
import simt.torch.nn.functional as F
from simt import torch
from simt._core import torch as core

TABLE = Path(__file__).resolve().parents[2] / "src" / "graph" / "array_ops.def"
F64 = torch.float64


def columns(text):
    """A row's columns: what commas outside of quotes and brackets divide."""
    out, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += 0 if quoted else (c == "(") - (c == ")")
        if c == "," and not quoted and not depth:
            out.append("")
        elif depth >= 0:
            out[-1] += c
        else:
            return ["".join(re.findall(r'"([^"]*)"', x)) or x.strip() for x in out]


def rows():
    """(name, arity, the operands' formulas) of the rows that have a gradient."""
    text = re.sub(r"/\*.*?\*/", "", TABLE.read_text(), flags=re.S)
    out = []
    for m in re.finditer(r"^EW\(", text, re.M):
        _, name, arity, kind, _, *formulas = columns(text[m.end() :])[:8]
        formulas = ["" if f == '""' else f for f in formulas]
        if int(arity) and kind in "AFNXW" and any(f not in ("", "0") for f in formulas):
            out.append((name, int(arity), formulas))
    return out


ROWS = rows()


def wave(*shape, start=0.3, scale=1.0, shift=0.0):
    n = math.prod(shape)
    values = [math.sin(i * 1.7 + start) * scale + shift for i in range(n)]
    return torch.tensor(values, dtype=F64).reshape(shape)


def check(function, *inputs, eps=1e-6, rtol=1e-5, atol=1e-6):
    """Compares the gradients of a weighted sum of function's result with central differences."""
    inputs = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]

    def total(*ts):
        out = function(*ts)
        out = out if isinstance(out, tuple) else (out,)
        return sum((o * wave(*o.shape, start=0.9, shift=0.2)).sum() for o in out)

    wanted = [t for t in inputs if t.requires_grad]
    grads = torch.autograd.grad(total(*inputs), wanted)
    for t, g in zip(wanted, grads):
        assert g.shape == t.shape and g.dtype == t.dtype
        found = g.reshape(-1).tolist()
        base = t.detach().reshape(-1).tolist()
        for i in range(len(base)):
            values = []
            for step in (eps, -eps):
                moved = list(base)
                moved[i] += step
                other = torch.tensor(moved, dtype=F64).reshape(t.shape)
                values.append(total(*[other if x is t else x.detach() for x in inputs]).item())
            numeric = (values[0] - values[1]) / (2 * eps)
            assert abs(numeric - found[i]) <= atol + rtol * abs(numeric), (i, numeric, found[i])


def test_the_table_is_read():
    names = {row[0] for row in ROWS}
    assert len(ROWS) >= 43 and {"add", "power", "clip", "gelu", "where", "lerp"} <= names


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_row(row):
    name, arity, formulas = row
    a = wave(6, scale=0.6, shift=1.1)
    operands = [
        a,
        wave(6, start=1.1, scale=0.4, shift=0.9),
        wave(6, start=2.0, scale=0.3, shift=1.7),
    ]
    if name == "where":
        operands[0] = a > 1
    if name == "clip":
        operands = [
            wave(6, scale=2.0),
            wave(6, scale=0.1, shift=-0.5),
            wave(6, start=1.0, scale=0.1, shift=0.7),
        ]
    if name in ("relu", "absolute", "tanh", "sigmoid", "softplus", "gelu", "erf", "erfc", "sign"):
        operands[0] = wave(6, scale=1.5)
    if name in ("elu", "hardsigmoid", "hardswish"):
        operands[0] = wave(6, scale=4.0)
    if name == "hardtanh":
        operands[0] = wave(6, scale=1.5)
    if name == "binary_cross_entropy":
        operands = [
            wave(6, scale=0.4, shift=0.5),
            wave(6, scale=0.5, shift=0.5),
            torch.zeros((), dtype=F64),
        ]
    if name in ("arcsin", "arccos", "arctanh", "erfinv"):
        operands[0] = wave(6, scale=0.8)
    if name == "arccosh":
        operands[0] = wave(6, scale=0.6, shift=2.0)
    scalars = (0.3, 0.8, 0.1)
    operands = operands[:arity]
    live = [i for i in range(arity) if formulas[i] != "" and operands[i].is_floating_point()]
    if name in ("clip_low", "clip_high", "binary_cross_entropy"):  # the last one is a number or 0
        live.pop()

    def run(*ts):
        args = list(operands)
        for i, t in zip(live, ts):
            args[i] = t
        return core._elementwise(name, tuple(args), scalars)

    check(run, *[operands[i] for i in live])


def test_rows_broadcast():
    check(lambda a, b: a * b + a / b, wave(3, 1, shift=2), wave(4, shift=3))
    check(lambda a, b: torch.maximum(a, b), wave(2, 3), wave(3, start=1.0))
    check(lambda a: a**3 + 2**a + a**0.5 + 1 / a, wave(4, shift=2))
    check(lambda a, b: a**b, wave(4, shift=2), wave(4, start=1.0))


i64 = torch.tensor([[0, 2], [1, 1]])
mask = torch.tensor([[True, False, True], [False, True, True]])
CASES = {
    "sum": (lambda x: x.sum(1) + x.sum(), (2, 3)),
    "sum_keep": (lambda x: x.sum((0, 2), keepdim=True), (2, 3, 2)),
    "mean": (lambda x: x.mean(0), (3, 2)),
    "prod": (lambda x: x.prod(1), (2, 3)),
    "prod_all": (lambda x: x.prod(), (2, 2)),
    "max_dim": (lambda x: x.max(1)[0], (3, 4)),
    "min_dim": (lambda x: x.min(0, keepdim=True)[0], (3, 4)),
    "max": (lambda x: x.max() * x.min(), (3, 4)),
    "amax": (lambda x: x.amax((0, 1)), (2, 3, 2)),
    "var": (lambda x: x.var(1), (2, 4)),
    "std": (lambda x: x.std(), (2, 4)),
    "std_biased": (lambda x: x.std(0, unbiased=False), (3, 2)),
    "norm": (lambda x: x.norm() + x.norm(1) + x.norm(3), (2, 3)),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), (2, 3)),
    "softmax": (lambda x: x.softmax(1), (2, 4)),
    "log_softmax": (lambda x: x.log_softmax(0), (3, 2)),
    "cumsum": (lambda x: x.cumsum(1), (2, 4)),
    "matmul": (lambda a, b: a @ b, (2, 3), (3, 4)),
    "matmul_batch": (lambda a, b: a @ b, (2, 2, 3), (2, 3, 2)),
    "matmul_broadcast": (lambda a, b: a @ b, (2, 1, 2, 3), (3, 3, 2)),
    "matmul_fold": (lambda a, b: a @ b, (2, 2, 3), (3, 2)),
    "matmul_vectors": (lambda a, b, c: (a @ b) * (b @ a) + c @ a, (3,), (3,), (2, 3)),
    "matmul_vector_matrix": (lambda a, b: a @ b, (3,), (2, 3, 2)),
    "linear": (F.linear, (4, 3), (2, 3), (2,)),
    "linear_3d": (F.linear, (2, 2, 3), (2, 3), (2,)),
    "linear_1d": (lambda x, w: F.linear(x, w), (3,), (2, 3)),
    "view": (lambda x: x.view(3, 2).t().reshape(6), (2, 3)),
    "permute": (lambda x: x.permute(2, 0, 1).transpose(0, 1), (2, 3, 2)),
    "expand": (lambda x: x.expand(3, 2, 3) * 2, (2, 1)),
    "squeeze": (lambda x: x.squeeze().unsqueeze(0), (1, 3, 1)),
    "slice": (lambda x: x[1:, ::2] * x[0, 1], (3, 4)),
    "flip_roll": (lambda x: x.flip(0) * x.roll(1, 1), (3, 4)),
    "repeat": (lambda x: x.repeat(2, 3), (2, 2)),
    "cat": (lambda a, b: torch.cat([a, b, a], 1), (2, 2), (2, 3)),
    "stack": (lambda a, b: torch.stack([a, b], 1), (2, 2), (2, 2)),
    "split": (lambda x: x.split(2)[1] * x.chunk(2)[0], (4, 2)),
    "unbind": (lambda x: x.unbind(1)[0] * x.unbind(1)[2], (2, 3)),
    "take": (lambda x: x.index_select(1, i64[0]), (2, 3)),
    "gather": (lambda x: x.gather(1, i64), (2, 3)),
    "gather_dim0": (lambda x: x.gather(0, torch.tensor([[1, 0, 1]])), (2, 3)),
    "index": (lambda x: x[i64, 1] + x[i64][:, :, 2], (3, 3)),
    "index_separated": (lambda x: x[i64[0], :, i64[1]], (3, 2, 3)),
    "mask": (lambda x: x[mask], (2, 3)),
    "where": (lambda a, b: torch.where(mask, a, b), (2, 3), (3,)),
    "masked_fill": (lambda x: x.masked_fill(mask, 2.0) * x, (2, 3)),
    "clamp": (lambda x: x.clamp(-0.5, 0.4) + x.clamp(min=0.1), (2, 3)),
    "scatter": (lambda a, b: a.scatter(1, torch.tensor([[0, 2], [1, 0]]), b), (2, 3), (2, 2)),
    "scatter_add": (lambda a, b: a.scatter_add(1, i64, b), (2, 3), (2, 2)),
    "embedding": (lambda w: F.embedding(i64, w), (3, 2)),
    "conv2d": (F.conv2d, (2, 2, 4, 5), (3, 2, 3, 2), (3,)),
    "conv2d_options": (
        lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 0), (1, 2), 2),
        (1, 4, 5, 5),
        (4, 2, 2, 2),
    ),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), (1, 2, 5, 6)),
    "max_pool2d_ceil": (lambda x: F.max_pool2d(x, 2, ceil_mode=True), (1, 1, 5, 5)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2, 1, 1), (1, 2, 4, 4)),
    "avg_pool2d_exclude": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        (1, 1, 5, 5),
    ),
    "adaptive": (
        lambda x: F.adaptive_avg_pool2d(x, 1) * F.adaptive_avg_pool2d(x, (2, 3)),
        (1, 2, 5, 4),
    ),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        (3, 2, 2, 2),
        (2,),
        (2,),
    ),
    "batch_norm_eval": (
        lambda x, w: F.batch_norm(x, wave(2), wave(2, shift=2), w, None, False),
        (3, 2),
        (2,),
    ),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (2, 3), w, b), (2, 2, 3), (2, 3), (2, 3)),
    "group_norm": (lambda x: F.group_norm(x, 2), (2, 4, 3)),
    "activations": (
        lambda x: F.leaky_relu(x, 0.1) + F.silu(x) + F.elu(x) + F.mish(x) + F.softplus(x, 2.0),
        (2, 3),
    ),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([1, 0, 2])), (3, 4)),
    "cross_entropy_none": (
        lambda x: F.cross_entropy(x, torch.tensor([1, 0]), reduction="none"),
        (2, 3),
    ),
    "cross_entropy_options": (
        lambda x: F.cross_entropy(
            x, torch.tensor([1, -100, 2]), wave(4, shift=2), label_smoothing=0.2
        ),
        (3, 4),
    ),
    "cross_entropy_ignore": (
        lambda x: F.cross_entropy(x, torch.tensor([1, 0, 2]), ignore_index=0),
        (3, 4),
    ),
    "cross_entropy_soft": (lambda x: F.cross_entropy(x, wave(3, 4).softmax(1)), (3, 4)),
    "cross_entropy_images": (
        lambda x: F.cross_entropy(x, torch.tensor([[[0, 1]], [[2, 0]]]), reduction="sum"),
        (2, 3, 1, 2),
    ),
    "nll": (lambda x: F.nll_loss(x, torch.tensor([0, 2]), wave(3, shift=2)), (2, 3)),
    "mse": (F.mse_loss, (2, 3), (2, 3)),
    "mse_none": (lambda a, b: F.mse_loss(a, b, reduction="none"), (2, 3), (2, 3)),
    "l1": (lambda a: F.l1_loss(a, wave(2, 3, start=2.0), reduction="sum"), (2, 3)),
    "smooth_l1": (lambda a: F.smooth_l1_loss(a, wave(2, 3, start=2.0)), (2, 3)),
    "bce": (lambda a: F.binary_cross_entropy(a.sigmoid(), wave(2, 3).sigmoid()), (2, 3)),
    "bce_logits": (
        lambda a: F.binary_cross_entropy_with_logits(
            a, wave(2, 3).sigmoid(), pos_weight=wave(3, shift=2)
        ),
        (2, 3),
    ),
    "attention": (F.scaled_dot_product_attention, (1, 3, 2), (1, 3, 2), (1, 3, 2)),
    "einsum": (lambda a, b: torch.einsum("bij,jk->bki", a, b), (2, 2, 3), (3, 2)),
    "sort": (lambda x: x.sort(1)[0] + x.topk(2)[0].sum(), (2, 3)),
    "pad": (lambda x: F.pad(x, (1, 0, 0, 2), value=1.0), (2, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_rule(name):
    function, *shapes = CASES[name]
    check(function, *[wave(*s, start=0.3 + i) for i, s in enumerate(shapes)])


def test_inplace_and_views():
    def through_views(x):
        y = x * 2
        y[0] = y[1] * 3
        y[:, 1].mul_(x[:, 0])
        v = y.view(-1)
        y[torch.tensor([0, 1]), torch.tensor([0, 2])] = x[0, :2]
        v[2:4].exp_()
        return y * v.view(2, 3)

    check(through_views, wave(2, 3))


def test_second_derivatives():
    x = wave(4, shift=2).requires_grad_()
    (g,) = torch.autograd.grad((x**3 + x.exp() * x.log()).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    e, v = x.detach().exp(), x.detach()
    expected = 6 * v + e * v.log() + 2 * e / v - e / v**2
    assert torch.allclose(h, expected)


def test_long_chain_needs_no_stack():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del y  # freed without recursion


def test_function_of_the_user():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return k * x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.k * 3 * x**2, None

    check(lambda x: Cube.apply(x * 2, 5), wave(3))
    assert type(Cube.apply(torch.ones(1, requires_grad=True), 2).grad_fn).__name__ == "CubeBackward"


def test_errors_in_hooks_pass_through():
    x = torch.ones(2, requires_grad=True)

    def hook(g):
        raise KeyError("mine")

    h = x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).sum().backward()
    assert x.grad is None
    h.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
