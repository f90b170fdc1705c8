"""Names of older programs, NumPy's numbers beside tensors, shared memory, anomaly mode.

The expected values were recorded from PyTorch 2.15.
"""

import importlib
import multiprocessing
import operator
import os
import pickle
import warnings

import numpy as np
import pytest
import simt.torch as torch
from simt.torch import nn
from simt.torch.autograd import Variable

T = torch.ones(2)


# ---- NumPy's numbers and functions ----

NUMBERS = [
    (lambda: np.float64(2) * T, [2, 2], torch.float32),
    (lambda: np.float32(2) * T, [2, 2], torch.float32),
    (lambda: np.int64(2) * T, [2, 2], torch.float32),
    (lambda: np.float64(2) ** T, [2, 2], torch.float32),
    (lambda: np.float64(2) + torch.ones(2, dtype=torch.int32), [3, 3], torch.float32),
    (lambda: np.float64(2) < T, [False, False], torch.bool),
    (lambda: np.float64(2) == T, [False, False], torch.bool),
    (lambda: np.float64(2) != T, [True, True], torch.bool),
    (lambda: np.float64(2) / T, [2, 2], torch.float32),
    (lambda: np.float64(2) - T, [1, 1], torch.float32),
    (lambda: np.float64(7) // T, [7, 7], torch.float32),
    (lambda: np.float64(7) % T, [0, 0], torch.float32),
    (lambda: np.int64(7) & torch.tensor([3]), [3], torch.int64),
    (lambda: np.int64(1) << torch.tensor([3]), [8], torch.int64),
    (lambda: np.float64(2) * torch.tensor(3.0), 6, torch.float32),
    (lambda: np.float64(2) * torch.ones(2, dtype=torch.float16), [2, 2], torch.float16),
    (lambda: T * np.float64(2), [2, 2], torch.float32), (lambda: np.sqrt(T), [1, 1], torch.float32),
    (lambda: np.sqrt(torch.tensor(4.0)), 2, torch.float32),
    (lambda: np.add(np.ones(2), T), [2, 2], torch.float64),
    (lambda: np.isnan(T), [0, 0], torch.uint8), (lambda: np.add.reduce(T), 2, torch.float32),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(NUMBERS)))
def test_numpy_on_the_left(case):
    make, want, dtype = NUMBERS[case]
    got = make()
    assert isinstance(got, torch.Tensor) and got.dtype == dtype and got.tolist() == want


def test_gradients_with_numpy_on_the_left():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (np.mean([0.5, 0.5]) * (x**2).sum()).backward()
    assert x.grad.tolist() == [1, 2]
    assert (np.float32(2) * x).requires_grad and (np.sqrt(2) + x).requires_grad
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.exp(x)


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([np.float64(2)], torch.float64), ([np.float32(2)], torch.float32),
        ([np.int32(2)], torch.int32), ([np.float64(2), 3], torch.float64),
        ([1, np.float64(2)], torch.float64), ([[np.float16(2)]], torch.float16),
        ([np.float32(1), np.float64(2)], torch.float64), ([np.bool_(True)], torch.bool),
        ([np.float32(1), 2.0], torch.float32), (np.float64(2), torch.float64),
        ([2.0], torch.float32),
        ([np.array([1.0, 2.0])], torch.float64),
    ],
)  # fmt: skip
def test_types_of_numpy_numbers_in_lists(data, dtype):
    got = torch.tensor(data)
    assert got.dtype == dtype and got.tolist() == np.asarray(data).tolist()


# ---- older names ----


def test_typed_constructors():
    assert torch.LongTensor([1, 2]).tolist() == [1, 2]
    assert torch.FloatTensor([[1.0, 2.0]]).dtype == torch.float32
    assert torch.FloatTensor(2, 3).shape == (2, 3) == torch.FloatTensor(torch.Size([2, 3])).shape
    assert torch.FloatTensor().shape == (0,) and torch.FloatTensor(3).shape == (3,)
    assert torch.LongTensor(np.array([1, 2])).tolist() == [1, 2]
    assert torch.LongTensor([1.5]).tolist() == [1] and torch.FloatTensor((1, 2)).tolist() == [1, 2]
    assert torch.BoolTensor([1, 0]).tolist() == [True, False]
    assert torch.FloatTensor(T).tolist() == [1, 1]
    for name in ("Double", "Half", "BFloat16", "Int", "Short", "Byte", "Char"):
        kind = getattr(torch, name + "Tensor")
        assert kind([1]).dtype == kind.dtype and isinstance(kind([1]), kind)
        assert T.type(kind).dtype == kind.dtype
    assert isinstance(T, torch.FloatTensor) and not isinstance(T, torch.LongTensor)
    assert isinstance(nn.Parameter(T), torch.FloatTensor) and not isinstance(3, torch.FloatTensor)
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    assert torch.FloatTensor is torch.FloatTensor and torch.FloatTensor.__name__ == "FloatTensor"


def test_what_typed_constructors_refuse():
    for bad in (True, 1.5, "a", T):
        with pytest.raises(TypeError, match=r"new\(\)"):
            torch.LongTensor(bad)
    with pytest.raises(RuntimeError):
        torch.LongTensor(-1)


def test_variables():
    v = Variable(T, requires_grad=True)
    assert v.requires_grad and type(v) is torch.Tensor and not T.requires_grad
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3, 3]
    assert not Variable(v).requires_grad and Variable().shape == (0,)
    assert isinstance(T, Variable) and not isinstance(3, Variable)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])
    with pytest.raises(RuntimeError, match="can require gradients"):
        Variable(torch.tensor([1]), requires_grad=True)


@pytest.mark.parametrize("name", ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"])
def test_backends_are_modules(name):
    module = importlib.import_module("simt.torch.backends." + name)
    assert module is getattr(torch.backends, name) and module.is_available() is False
    module.benchmark = True
    with module.flags(enabled=False):
        pass


def test_devices_that_are_not_there():
    for device in ("xpu", "mps"):
        with pytest.raises(NotImplementedError, match=f"device='{device}': not in simt yet"):
            torch.ones(1, device=device)
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver") as caught:
        torch.ones(1).cuda()
    assert "soft-gpu" not in str(caught.value)


# ---- one index, no dimension ----


def test_scatter_and_gather_of_one():
    x = torch.arange(4.0)
    three, one = torch.tensor(3), torch.tensor([3])
    for index in (three, one):
        assert x.scatter(0, index, 9.0).tolist() == [0, 1, 2, 9]
        for source in (torch.tensor(9.0), torch.tensor([9.0])):
            assert x.scatter(0, index, source).tolist() == [0, 1, 2, 9]
            assert x.scatter_add(0, index, source).tolist() == [0, 1, 2, 12]
        assert x.gather(0, index).shape == index.shape and x.gather(0, index).sum() == 3
    assert torch.zeros(5).scatter_(0, torch.tensor(2), value=1).tolist() == [0, 0, 1, 0, 0]
    scalar = torch.tensor(5.0)
    assert (
        scalar.gather(0, torch.tensor([0])).tolist() == [5]
        and scalar.gather(0, torch.tensor(0)) == 5
    )
    assert scalar.scatter(0, torch.tensor([0]), 1.0) == 1 == scalar.scatter(0, torch.tensor(0), 1.0)
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        torch.zeros(3, 4).scatter(0, torch.tensor([1]), 1.0)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.scatter(0, torch.tensor(4), 1.0)
    x.requires_grad_()
    (x.gather(0, three) * 2 + x.scatter(0, torch.tensor(0), 1.0).sum()).backward()
    assert x.grad.tolist() == [0, 1, 1, 3]


# ---- memory that processes share ----


def in_child(action):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.host_memory("shares memory between processes")
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape", [(3,), (), (2, 2)])
def test_a_child_s_write_is_seen(dtype, shape):
    x = torch.zeros(shape, dtype=dtype)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared()
    in_child(lambda: x.fill_(1))
    assert x.tolist() == torch.ones(shape, dtype=dtype).tolist()
    x.fill_(0)
    assert not x.any()


@pytest.mark.host_memory("shares memory between processes")
def test_hogwild():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).share_memory()
    before = {k: v.clone() for k, v in model.state_dict().items()}

    def train():
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 3)).square().sum().backward()
            optimizer.step()

    in_child(train)
    for name, value in model.state_dict().items():
        assert not torch.equal(value, before[name]), name
    model(torch.ones(2, 3)).sum().backward()
    assert all(p.is_shared() and p.grad is not None for p in model.parameters())


@pytest.mark.host_memory("shares memory between processes")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_shared_tensors_are_shared_by_processes_of_all_kinds(method):
    x = torch.zeros(2, 3).share_memory_()
    start = multiprocessing.get_context(method).Process
    process = start(target=operator.setitem, args=(x, (slice(None), 1), 5.0))
    process.start()
    process.join()
    assert process.exitcode == 0 and x.tolist() == [[0, 5, 0]] * 2


@pytest.mark.host_memory("shares memory between processes")
def test_shared_tensors_through_pipes():
    ours, theirs = multiprocessing.Pipe()
    for x in (torch.zeros(3), torch.zeros(3, dtype=torch.int8), nn.Parameter(torch.zeros(0))):
        x = x.share_memory_()
        ours.send(x)
        y = theirs.recv()
        assert type(y) is type(x) and y.is_shared() and y.requires_grad == x.requires_grad
        y.detach().fill_(3)
        assert x.tolist() == [3] * len(x)
        copy = pickle.loads(pickle.dumps(x))
        assert not copy.is_shared() and torch.equal(copy, x)
    x.data = torch.ones(3)  # other memory, which nobody shares
    assert not x.is_shared()
    ours.send(x)
    assert not theirs.recv().is_shared()
    z = torch.zeros(2).share_memory_()
    ours.send(z)
    del z
    with pytest.raises(RuntimeError, match="a shared tensor was sent by a process that"):
        theirs.recv()


# ---- anomaly mode ----


def test_anomalies():
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = torch.autograd.detect_anomaly()
    with mode, pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"):
        torch.sqrt(x).sum().backward()
    assert x.grad is None
    y = torch.tensor([1.0, 4.0], requires_grad=True)
    with mode:
        (torch.sqrt(y) * 3 + y.exp()).sum().backward()
    torch.sqrt(x).sum().backward()  # the mode has ended
    assert torch.isnan(x.grad[0])
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan values"):
        torch.sqrt(x).sum().backward()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        torch.sqrt(x).sum().backward()
    torch.sqrt(x).sum().backward()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        torch.autograd.detect_anomaly()
