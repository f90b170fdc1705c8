"""Names that the class whose face we are has and ours has not: what getting one says."""

import copy
import inspect
import os
import pickle
import subprocess
import sys

import pytest
from simt import _core, cupy, torch
from simt.numba import cuda
from simt.torch import nn
from simt.torch.optim.lr_scheduler import LRScheduler
from simt.torch.utils.data import DataLoader


def objects():
    p = nn.Parameter(torch.ones(2, 2))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    loader = DataLoader(torch.utils.data.TensorDataset(torch.ones(3)))
    kernel = cuda.jit(lambda a: None)
    return [
        *(torch.ones(2, 2), p, nn.Linear(2, 2), nn.Sequential(), nn.ModuleList(), nn.ModuleDict()),
        *(optimizer, scheduler, loader, torch.Generator(), torch.Size((1,)), torch.float32),
        *(torch.device("cpu"), cuda.to_device([1.0]), kernel, cuda.stream(), cuda.event()),
        *(cupy.cuda.Stream(), cupy.cuda.Event(), cupy.cuda.Device(0)),
    ]


OBJECTS = objects()


@pytest.mark.parametrize("of", OBJECTS, ids=lambda o: type(o).__name__)
def test_a_name_that_is_absent_says_so(of):
    cls = type(of)
    names = _core._absent_names(cls)
    seen = dir(of)
    assert len(seen) == len(set(seen))
    for name in names:
        if name in getattr(of, "__dict__", ()):
            continue
        assert not hasattr(of, name) and not hasattr(cls, name) and name not in seen
        with pytest.raises(AttributeError, match="not in simt yet") as error:
            getattr(of, name)
        assert str(error.value).startswith(f"'{cls.__name__}' object has no attribute '{name}': ")
        assert error.value.name == name
        with pytest.raises(AttributeError, match=f"^type object '{cls.__name__}' has no attribute"):
            getattr(cls, name)
        assert getattr(of, name, 5) == 5
    assert all(hasattr(of, name) for name in seen if not name.startswith("_") and name != "grad")


def test_the_nearest_is_named():
    with pytest.raises(AttributeError) as error:
        torch.ones(2).cumprod(0)
    text = "'Tensor' object has no attribute 'cumprod': not in simt yet; nearest is Tensor.prod"
    assert str(error.value) == text
    with pytest.raises(AttributeError, match="not in simt yet; nearest is Linear.register_"):
        nn.Linear(1, 1).register_load_state_dict_pre_hook
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weigth'$"):
        nn.Linear(1, 1).weigth


def test_many_are_absent_and_none_that_is_there():
    absent = set(_core._absent_names(torch.Tensor))
    assert len(absent) > 100 and "cumprod" in absent
    assert not absent & {"cumsum", "sum", "shape", "backward", "grad", "numpy", "to"}
    for cls in (nn.Module, torch.optim.Optimizer, DataLoader, LRScheduler):
        assert all(hasattr(cls, n) != (n in _core._absent_names(cls)) for n in dir(cls))


def test_others_may_have_the_name():
    name = "register_load_state_dict_pre_hook"
    assert name in _core._absent_names(nn.Module)

    class Net(nn.Module):
        def register_load_state_dict_pre_hook(self):
            return "mine"

        xpu = property(lambda self: "there")

    net = Net()
    assert net.register_load_state_dict_pre_hook() == "mine" and net.xpu == "there"
    assert name in dir(net)
    for value in (3, nn.Linear(1, 1), nn.Parameter(torch.ones(1)), torch.ones(1)):
        net = nn.Module()
        setattr(net, name, value)
        assert getattr(net, name) is value and name in dir(net)
        delattr(net, name)
        assert not hasattr(net, name)
    net.register_parameter("ipu", nn.Parameter(torch.ones(1)))
    net.add_module("mtia", nn.Linear(1, 1))
    assert sorted(dict(net.named_parameters())) == ["ipu", "mtia.bias", "mtia.weight"]


def test_getattr_of_a_subclass_is_asked():
    class Wrapper(nn.Module):
        def __getattr__(self, name):
            return f"got {name}"

    assert Wrapper().register_load_state_dict_pre_hook == "got register_load_state_dict_pre_hook"


def test_copies_pickles_and_inspect():
    net = nn.Sequential(nn.Linear(2, 3))
    for made in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert made[0].weight.tolist() == net[0].weight.tolist()
    t = torch.ones(1, 1)
    assert copy.deepcopy(t).tolist() == pickle.loads(pickle.dumps(t)).tolist() == [[1]]
    absent = set(_core._absent_names(torch.Tensor))
    assert not absent & {name for name, _ in inspect.getmembers(t)}
    assert repr(inspect.getattr_static(torch.Tensor, "cumprod")) == "<cumprod: not in simt yet>"


def test_only_known_classes():
    with pytest.raises(KeyError, match="absent.def has no torch.Nothing"):
        _core._absent(int, "torch.Nothing")


def test_chinese():
    code = (
        "from simt import torch\ntry: torch.ones(1).cumprod\nexcept AttributeError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "SIMT_LANG": "zh"},
    )
    assert "提示: simt 还没有 cumprod" in done.stdout
