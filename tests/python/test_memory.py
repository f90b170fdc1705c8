"""Training does not grow: device bytes, descriptors, Python objects, the process."""

import gc
import os

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
import simt.torch.nn.functional as F
from simt import _core
from simt.torch import nn, optim
from simt.torch.utils.data import DataLoader, TensorDataset


def resident():
    """Bytes of the process that lie in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def sizes():
    _core.evaluate(None)
    gc.collect()
    stats = _core.stats()
    return {
        "bytes in use": stats["bytes_in_use"],
        "Python objects": len(gc.get_objects()),
        "resident": resident(),
    }


def check_growth(epoch, warm=3, epochs=20):
    """What 20 epochs have that 3 had not: nothing but noise."""
    for _ in range(warm):
        epoch()
    before = sizes()
    for _ in range(epochs - warm):
        epoch()
    after = sizes()
    assert after["bytes in use"] <= before["bytes in use"]
    assert after["Python objects"] - before["Python objects"] < 50
    if "SIMT_SANITIZE" not in os.environ:  # its quarantine keeps what was freed
        assert after["resident"] - before["resident"] < 2 << 20


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4 * 5 * 5, 10)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(self.drop(x.flatten(1)))


@pytest.mark.parametrize("optimizer", [optim.SGD, optim.Adam, optim.AdamW])
def test_training(optimizer):
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(120, 1, 12, 12), torch.randint(0, 10, (120,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = Net()
    steps = optimizer(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.StepLR(steps, 5)
    losses = []

    def epoch():
        model.train()
        total = 0.0
        for x, y in loader:
            steps.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            steps.step()
            total += loss.item()
        schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
        losses[:] = [total, right]

    check_growth(epoch)
    assert np.isfinite(losses[0])


def test_training_that_fails_and_goes_on():
    """Exceptions in the middle of a step: labels out of range, wrong shapes, a second backward."""
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    steps = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.rand(8, 6)

    def epoch():
        for labels in ([0] * 8, [0, 1, 2, 9, 0, 0, 0, 0], [0] * 7):
            for times in (1, 2):
                try:
                    steps.zero_grad()
                    loss = F.cross_entropy(model(x), torch.tensor(labels))
                    for _ in range(times):
                        loss.backward()
                    steps.step()
                except (IndexError, RuntimeError, ValueError):
                    pass

    check_growth(epoch)


def test_arrays_that_wait():
    """Chains of views, writes in place and results that nobody looks at."""
    total, table = cp.zeros(1000), cp.arange(1000.0)

    def epoch():
        nonlocal total
        for i in range(40):
            total = total * 0.5 + table[::-1]
            total[i::7] += i
            table[cp.arange(3)] = total[:3]
            unseen = (total - table).sum()
            unseen += 1
            try:
                (total + cp.zeros(3)).get()
            except ValueError:
                pass
        float(total.sum())

    check_growth(epoch)


class Double(torch.autograd.Function):
    """Its context holds its result."""

    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        ctx.result = y
        return y

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_graphs_without_a_backward_are_freed():
    """A long chain of gradients; rings through hooks and contexts."""

    def epoch():
        w = torch.ones(4, requires_grad=True)
        x = w
        for _ in range(3000):
            x = x * 1.001
        x.sum().item()
        for i in range(5):
            y = (w * 2).sum()
            y.register_hook(lambda g, keep=y: g)
            Double.apply(w).sum().item()
            if i % 2:
                y.backward()

    check_growth(epoch, epochs=8)
