"""Tensors of device 'meta': shapes and dtypes without data; a look at values is PyTorch's error."""

import copy

import numpy as np
import pytest
from simt import cupy, torch
from simt.numba import cuda
from simt.torch import nn
from simt.torch.nn import functional as F

NO_DATA = "Cannot copy out of meta tensor; no data!"
META = torch.device("meta")


def meta(*shape, **kw):
    return torch.empty(*shape, device="meta", **kw)


MAKERS = [
    (lambda **k: torch.ones(2, 3, **k), (2, 3), torch.float32),
    (lambda **k: torch.zeros((2, 0), dtype=torch.int8, **k), (2, 0), torch.int8),
    (lambda **k: torch.full((4,), 7, **k), (4,), torch.int64),
    (lambda **k: torch.empty(5, dtype=torch.bool, **k), (5,), torch.bool),
    (lambda **k: torch.tensor([[1, 2]], **k), (1, 2), torch.int64),
    (lambda **k: torch.as_tensor(np.ones(3), **k), (3,), torch.float64),
    (lambda **k: torch.asarray([1.5], **k), (1,), torch.float32),
    (lambda **k: torch.scalar_tensor(3, **k), (), torch.float32),
    (lambda **k: torch.arange(2, 9, 2, **k), (4,), torch.int64),
    (lambda **k: torch.linspace(0, 1, 5, **k), (5,), torch.float32),
    (lambda **k: torch.eye(3, **k), (3, 3), torch.float32),
    (lambda **k: torch.rand(3, **k), (3,), torch.float32),
    (lambda **k: torch.randn(3, 1, **k), (3, 1), torch.float32),
    (lambda **k: torch.randint(9, (2,), **k), (2,), torch.int64),
    (lambda **k: torch.randperm(6, **k), (6,), torch.int64),
    (lambda **k: torch.normal(0.0, 1.0, (2, 2), **k), (2, 2), torch.float32),
    (lambda **k: torch.ones_like(torch.ones(2, dtype=torch.int32), **k), (2,), torch.int32),
    (lambda **k: torch.rand_like(torch.ones(2), **k), (2,), torch.float32),
    (lambda **k: torch.ones(2).new_zeros(3, **k), (3,), torch.float32),
    (lambda **k: torch.ones(2).new_tensor([1, 2], **k), (2,), torch.float32),
]


@pytest.mark.parametrize("number", range(len(MAKERS)))
def test_factories(number):
    make, shape, dtype = MAKERS[number]
    state = torch.get_rng_state().tolist()
    for device in ("meta", META):
        t = make(device=device)
        assert (t.shape, t.dtype, t.device, t.is_meta) == (shape, dtype, META, True)
    assert torch.get_rng_state().tolist() == state
    follows = number >= len(MAKERS) - 4  # another tensor's device, not the default one
    with META:
        assert torch.get_default_device() == META
        assert make().is_meta or follows
        with torch.device("cpu"):
            assert not make().is_meta or follows
    assert torch.get_default_device() == torch.device("cpu")
    assert not make().is_meta and not make(device="cpu").is_meta


def test_like_and_new_follow_their_tensor():
    m = meta(2, 3, dtype=torch.float64)
    for made in (torch.zeros_like(m), torch.full_like(m, 2), torch.randn_like(m), m.new_ones(2)):
        assert made.is_meta and made.dtype == torch.float64
    there = torch.empty_like(m, device="cpu")
    assert not there.is_meta and there.fill_(2).sum().item() == 12
    assert torch.randint_like(m, 3).is_meta and m.new_tensor([1]).is_meta


def test_printing():
    assert str(torch.ones(1, device="meta")) == "tensor(..., device='meta', size=(1,))"
    text = "tensor(..., device='meta', size=(2, 0), dtype=torch.int64)"
    assert repr(meta(2, 0, dtype=torch.int64)) == text
    grad = meta(2, requires_grad=True)
    assert repr(grad) == "tensor(..., device='meta', size=(2,), requires_grad=True)"
    assert "grad_fn=<MulBackward0>" in repr(grad * 2)


def test_what_needs_values_raises():
    m, c = meta(2, 2), torch.ones(2, 2)
    looks = [
        *(lambda: m.to("cpu"), m.cpu, m.tolist, m.numpy, lambda: m.sum().item()),
        *(lambda: bool(m.sum()), lambda: float(m[0, 0]), lambda: np.asarray(m), m.nonzero),
        *(lambda: c.copy_(m), lambda: m.to(c), lambda: m[m > 0]),
        *(lambda: cupy.asarray(m), lambda: torch.equal(m, m), lambda: list(m.sum(0))[0].item()),
        *(lambda: cuda.jit(lambda a: None)[1, 1](m), lambda: m.to("cpu", torch.float64)),
    ]
    for number, look in enumerate(looks):
        with pytest.raises(NotImplementedError, match=NO_DATA):
            got = look()
            pytest.fail(f"{number}: {type(got)}")
    assert c.tolist() == [[1, 1], [1, 1]]


def test_operations_have_the_shapes_and_types_of_the_cpu():
    x, y, i = torch.rand(4, 3), torch.rand(3, 5), torch.arange(3)
    operations = [
        lambda a, b, i: a @ b,
        lambda a, b, i: (a.exp() + 1).sum(0, keepdim=True),
        lambda a, b, i: a.T.reshape(2, 6)[:, ::2],
        lambda a, b, i: (a > 0).all(1),
        lambda a, b, i: torch.cat([a, a * 2], 1),
        lambda a, b, i: torch.stack([a, a]),
        lambda a, b, i: a.max(1)[1],
        lambda a, b, i: a.double() * i,
        lambda a, b, i: a[:, i],
        lambda a, b, i: torch.where(a > 0, a, 0.0),
        lambda a, b, i: F.softmax(F.relu(a), -1).mean(),
        lambda a, b, i: a.var(0) / 2,
        lambda a, b, i: a.cumsum(1),
        lambda a, b, i: a.sort(1)[0],
        lambda a, b, i: a.unsqueeze(0).expand(2, 4, 3).permute(2, 0, 1).contiguous(),
    ]
    for f in operations:
        want = f(x, y, i)
        got = f(*(t.to("meta") for t in (x, y, i)))
        assert (got.shape, got.dtype, got.is_meta) == (want.shape, want.dtype, True)
        assert got.stride() == want.stride()
    with pytest.raises(RuntimeError, match="mat1 and mat2|shapes"):
        meta(2, 3) @ meta(2, 3)


def test_in_place_changes_nothing_but_the_version():
    m = meta(3)
    version = m._version
    assert m.add_(1) is m and m.copy_(torch.ones(3)) is m and m.normal_() is m
    m[0] = 5
    assert m._version > version and m.is_meta
    m.zero_().uniform_()
    assert m.detach().is_meta and m.clone().is_meta and copy.deepcopy(m).is_meta


def test_no_memory_is_needed():
    huge = meta(2**20, 2**20)
    assert (huge + 1).T.shape == (2**20, 2**20) and huge.sum().shape == ()
    layer = nn.Linear(2**20, 2**19, device="meta")
    assert layer(meta(8, 2**20)).shape == (8, 2**19)


def test_modules():
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    assert all(p.is_meta and isinstance(p, nn.Parameter) for p in net.parameters())
    assert net(meta(7, 4)).shape == (7, 2)
    with pytest.raises(NotImplementedError, match=r"no data! Please use torch.nn.Module.to_empty"):
        net.to("cpu")
    with pytest.raises(NotImplementedError, match="to_empty"):
        net.cpu()
    assert net.to_empty(device="cpu") is net
    assert not any(t.is_meta for t in (*net.parameters(), *net.buffers()))
    source = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    net.load_state_dict(source.state_dict())
    x = torch.rand(5, 4)
    assert net(x).tolist() == source(x).tolist()
    assert net.to("meta")[0].weight.is_meta and net[1].running_mean.is_meta
    net.load_state_dict(source.state_dict(), assign=True)
    assert net(x).shape == (5, 2) and not net[0].weight.is_meta


def test_gradients_have_shapes():
    layer = nn.Linear(4, 2, device="meta")
    loss = (layer(meta(3, 4)) ** 2).mean()
    loss.backward()
    assert layer.weight.grad.is_meta and layer.weight.grad.shape == (2, 4)
    assert layer.bias.grad.shape == (2,)


def test_the_default_device_is_the_thread_own_and_comes_back():
    import threading

    seen = []
    with META:
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).is_meta))
        thread.start()
        thread.join()
        with pytest.raises(ValueError), torch.device("cpu"):
            raise ValueError
        assert torch.ones(1).is_meta
    assert seen == [False] and not torch.ones(1).is_meta
    torch.set_default_device("meta")
    try:
        assert torch.ones(1).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.ones(1).is_meta


def test_other_devices_are_still_refused():
    for make in (torch.ones, torch.arange, torch.eye, torch.randn):
        with pytest.raises(RuntimeError, match="Found no NVIDIA driver"):
            make(2, device="cuda")
        with pytest.raises(NotImplementedError, match="device='mps'"):
            make(2, device="mps")


EMPTY = [
    *(lambda a: a.sum(), lambda a: a.all(0), lambda a: a.mean(), lambda a: a @ a.T),
    *(lambda a: a.T @ a, lambda a: a + 1, lambda a: a.cumsum(1), lambda a: a.sort(1)[1]),
    *(lambda a: F.pad(a, (1, 1)), lambda a: torch.cat([a, a]), lambda a: a.softmax(1)),
    *(lambda a: a.sum().sort()[1], lambda a: a.sum().argmax(), lambda a: a[:, :0].prod(1)),
]


@pytest.mark.parametrize("number", range(len(EMPTY)))
def test_what_needs_no_values_has_none_either(number):
    want, got = EMPTY[number](torch.ones(3, 0)), EMPTY[number](meta(3, 0))
    assert got.is_meta and (got.shape, got.dtype) == (want.shape, want.dtype)


def test_the_default_device_is_not_that_of_tensors_that_are_there():
    c = torch.arange(6.0).reshape(2, 3)
    functions = [
        *(torch.tril, lambda t: F.pad(t, (1, 1)), lambda t: torch.diag(t[0]), torch.unique),
        *(
            lambda t: t[0].long().bincount(),
            lambda t: t.repeat_interleave(2),
            lambda t: t[0, 0].sort()[1],
        ),
        *(lambda t: F.interpolate(t[None], scale_factor=2),),
    ]
    want = [f(c).tolist() for f in functions]
    data = torch.utils.data.TensorDataset(c)
    with META:
        assert [f(c).tolist() for f in functions] == want
        batches = list(torch.utils.data.DataLoader(data, batch_size=2, shuffle=True))
        assert sorted(batches[0][0].tolist()) == c.tolist()
        p = nn.Parameter(c.clone())
        optimizer = torch.optim.Adam([p], lr=0.1)
        (p * 2).sum().backward()
        optimizer.step()
        assert not p.is_meta and p.tolist() != c.tolist()


def test_gradients_of_parts_have_no_data_either():
    x = meta(3, 3, requires_grad=True)
    for f in (
        lambda: x[1:],
        lambda: x[torch.tensor([0, 2])],
        lambda: x.max(1)[0],
        lambda: x.prod(1),
    ):
        f().sum().backward()
        assert x.grad.is_meta and x.grad.shape == (3, 3)
    for layer in (nn.BatchNorm2d(3, device="meta"), nn.Conv2d(3, 4, 3, device="meta")):
        assert all(t.is_meta for t in (*layer.parameters(), *layer.buffers()))
        layer(meta(2, 3, 5, 5)).sum().backward()
        assert all(p.grad.is_meta for p in layer.parameters())


def mixed(first, second):
    return f"at least two devices, {first} and {second}!"


MIXED = [
    (lambda m, c: m + c, mixed("meta", "cpu")),
    (lambda m, c: c * m, mixed("cpu", "meta")),
    (lambda m, c: c.add_(m), mixed("cpu", "meta")),
    (lambda m, c: m.mul_(c), mixed("meta", "cpu")),
    (lambda m, c: torch.where(m > 0, m, c), mixed("meta", "cpu")),
    (lambda m, c: m @ c.T, mixed("meta", "cpu")),
    (lambda m, c: F.linear(c, m), mixed("cpu", "meta")),
    (lambda m, c: torch.cat([c, m]), mixed("cpu", "meta")),
    (lambda m, c: torch.stack([m, c]), mixed("meta", "cpu")),
    (lambda m, c: F.mse_loss(m, c), mixed("meta", "cpu")),
    (lambda m, c: F.cross_entropy(m, torch.tensor([0, 1])), mixed("cpu", "meta")),
    (lambda m, c: F.conv2d(m[None, None], c[None, None]), mixed("meta", "cpu")),
    (lambda m, c: F.layer_norm(m, (3,), c[0]), mixed("meta", "cpu")),
    (lambda m, c: m.gather(0, torch.tensor([[0, 1, 0]])), mixed("meta", "cpu")),
    (lambda m, c: c[torch.tensor([0], device="meta")], "indices should be either on cpu"),
    (lambda m, c: m.index_select(0, torch.tensor([0])), mixed("meta", "cpu")),
    (lambda m, c: c.index_select(0, torch.tensor([0], device="meta")), mixed("cpu", "meta")),
    (lambda m, c: F.embedding(torch.tensor([[0, 1]]), m), mixed("meta", "cpu")),
    (lambda m, c: F.embedding(torch.tensor([0], device="meta"), c), mixed("cpu", "meta")),
    (lambda m, c: c.scatter_(0, torch.zeros(1, 3).long(), m), mixed("cpu", "meta")),
    (lambda m, c: c.scatter(0, torch.zeros(1, 3).long().to("meta"), 5.0), mixed("cpu", "meta")),
    (lambda m, c: m.scatter_add(0, torch.zeros(1, 3).long(), m), mixed("meta", "cpu")),
    (lambda m, c: c.index_add_(0, torch.tensor([0, 1]), m), mixed("cpu", "meta")),
    (lambda m, c: m.index_copy_(0, torch.tensor([0, 1]), m), mixed("meta", "cpu")),
    (lambda m, c: c.index_fill_(0, torch.tensor([0], device="meta"), 2.0), mixed("cpu", "meta")),
    (lambda m, c: c.masked_select(m > 0), mixed("cpu", "meta")),
    (lambda m, c: m.masked_select(c > 0), mixed("meta", "cpu")),
]


@pytest.mark.parametrize("number", range(len(MIXED)))
def test_devices_are_not_mixed(number):
    function, text = MIXED[number]
    c = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match=text):
        function(meta(2, 3), c)
    assert c.tolist() == [[1, 1, 1]] * 2


def test_a_number_of_the_cpu_goes_with_both():
    m, number = meta(2, 3), torch.tensor(2.0)
    for made in (m + number, number * m, m.clone().add_(number), torch.where(m > 0, m, number)):
        assert made.is_meta and made.shape == (2, 3)
    assert m[torch.tensor([1])].shape == (1, 3)  # and indices of the CPU
    assert m.clone().copy_(torch.ones(2, 3)).is_meta
    with pytest.raises(NotImplementedError, match=NO_DATA):
        torch.ones(2, 3).copy_(m)
    with pytest.raises(RuntimeError, match=mixed("cpu", "meta")):
        torch.ones(2) + meta()


def test_training_without_data():
    target = torch.zeros(2, dtype=torch.int64, device="meta")
    state = torch.get_rng_state().tolist()
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p),
        lambda p: torch.optim.AdamW(p, amsgrad=True),
    ):
        model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(), nn.Linear(8, 3)).to("meta")
        optimizer = make(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(meta(2, 3)), target)
            assert loss.is_meta and loss.shape == ()
            loss.backward()
            optimizer.step()
        kept = [v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
        assert kept and all(v.is_meta for v in kept)
    assert F.nll_loss(meta(2, 3), target, reduction="none").shape == (2,)
    assert F.cross_entropy(meta(2, 3), target, label_smoothing=0.1).is_meta
    assert F.cross_entropy(meta(2, 3), meta(2, 3)).is_meta
    assert torch.roll(meta(2, 3), 1, 0).is_meta and torch.tril(meta(2, 3)).shape == (2, 3)
    before = torch.get_rng_state().tolist()
    F.dropout(meta(5))
    assert torch.get_rng_state().tolist() == before != state
