"""The program of interrupts.py: interrupted.py SCENARIO COUNT SEED.

A scenario is a class: `round` is the work, which keeps a journal of what it has done; `check`,
after each interrupt, compares everything with a computation of its own, or with an undisturbed run.
"""

import gc
import os
import random
import signal
import sys
import tempfile
import time

import numpy as np
import simt.torch as torch
from simt.numba import cuda
from simt.torch.utils.data import DataLoader, Dataset


class Statements:
    """Random statements on arrays of whole numbers: NumPy has the same bits."""

    N = 400

    def __init__(self, rng):
        self.rng = rng
        self.ours = [torch.full((self.N, self.N), float(i)) for i in range(6)]
        self.theirs = [x.numpy().copy() for x in self.ours]
        self.open = None  # number of an array and the value it may have instead

    def statement(self):
        rng, n = self.rng, self.N
        i, j, k = (rng.randrange(6) for _ in range(3))
        c = float(rng.randrange(1, 50))
        a, b = self.ours[j], self.ours[k]
        x, y = self.theirs[j], self.theirs[k]
        kind = rng.randrange(9)
        in_place = True
        if kind == 0:
            new = (x * c + y) % 97
            make = lambda: (a * c + b) % 97
            in_place = False
        elif kind == 1:
            new = (x @ y) % 97
            make = lambda: (a @ b) % 97
            in_place = False
        elif kind == 2:
            new = np.cumsum(x, 1, dtype=np.float32) % 97
            make = lambda: torch.cumsum(a, 1) % 97
            in_place = False
        elif kind == 3:
            new = np.sort(x, 1)
            make = lambda: torch.sort(a, 1)[0]
            in_place = False
        elif kind == 4:
            new = np.concatenate([x[: n // 2], y[n // 2 :]])
            make = lambda: torch.cat([a[: n // 2], b[n // 2 :]])
            in_place = False
        elif kind == 5:
            new = (self.theirs[i] + x) % 97
            make = lambda: self.ours[i].copy_((self.ours[i] + a) % 97)
        elif kind == 6:
            new = self.theirs[i].copy()
            new[5:100] += c
            make = lambda: self.ours[i][5:100].add_(c)
        elif kind == 7:
            rows = np.array([rng.randrange(n) for _ in range(50)])
            new = self.theirs[i].copy()
            np.add.at(new, rows, 1)
            at, ones = torch.tensor(rows), torch.ones(50, n)
            make = lambda: self.ours[i].index_add_(0, at, ones)
        else:
            new = x.T.copy()
            make = lambda: a.t().contiguous()
            in_place = False
        self.open = (i, new)
        made = make()
        if not in_place:
            self.ours[i] = made
        self.theirs[i] = new
        self.open = None

    def round(self):
        for _ in range(60):
            self.statement()
        for x in self.ours:
            x.sum().item()

    def check(self):
        for i, x in enumerate(self.ours):
            value = x.numpy().copy()
            if (value != self.theirs[i]).any():
                assert self.open and self.open[0] == i, f"array {i} is wrong"
                assert (value == self.open[1]).all(), f"array {i} is neither before nor after"
                self.theirs[i] = self.open[1]
            # numpy() has shown the memory: a new array, so that operations are deferred again
            self.ours[i] = x.clone()
        self.open = None


class Training:
    """Every step has happened, with its state, or has not: the same bits as undisturbed."""

    def make_optimiser(self, parameters):
        raise NotImplementedError

    def make(self):
        torch.manual_seed(5)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 16 * 16, 32),
            torch.nn.GELU(),
            torch.nn.Linear(32, 4),
        )
        counter = torch.nn.Parameter(torch.zeros(1))  # changes by the same in each step
        parameters = [*model.parameters(), counter]
        return model, counter, self.make_optimiser(parameters), parameters

    def __init__(self, rng):
        torch.manual_seed(6)
        self.x, self.y = torch.randn(64, 1, 16, 16), torch.randint(0, 4, (64,))
        self.trained, self.plain = self.make(), self.make()
        self.counts = {0.0: 0}  # counter's value -> steps
        self.done = 0

    def step(self, made):
        model, counter, optimiser, _ = made
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(self.x), self.y) + counter.sum()
        loss.backward()
        optimiser.step()

    def round(self):
        for _ in range(6):
            self.step(self.trained)

    def check(self):
        now = self.trained[1].item()
        while now not in self.counts:
            self.step(self.plain)
            self.done += 1
            self.counts[self.plain[1].item()] = self.done
            assert self.done < 100_000
        while self.done < self.counts[now]:
            self.step(self.plain)
            self.done += 1
        # the undisturbed run is never ahead: it is only stepped up to what was found
        assert self.done == self.counts[now], "steps were lost"
        for p, q in zip(self.trained[3], self.plain[3], strict=True):
            assert torch.equal(p, q), "a parameter differs from the undisturbed run"
        mine, its = (m[2].state_dict()["state"] for m in (self.trained, self.plain))
        assert mine.keys() == its.keys()
        for number, state in mine.items():
            for name, value in state.items():
                assert torch.equal(value, its[number][name]), f"state {name}"


class Sgd(Training):
    def make_optimiser(self, parameters):
        return torch.optim.SGD(parameters, 0.001, momentum=0.9)


class Adam(Training):
    def make_optimiser(self, parameters):
        return torch.optim.Adam(parameters, 0.001)


class Long:
    """Programs that run by themselves because they became too long, in the middle of backward."""

    def __init__(self, rng):
        self.w = torch.ones(20_000, requires_grad=True)
        self.total = None

    def round(self):
        y = self.w
        for _ in range(1500):
            y = y * 1.0
        self.w.grad = None
        y.sum().backward()
        self.w.grad.sum().item()

    def check(self):
        assert self.w.sum().item() == 20_000
        grad = self.w.grad
        if grad is not None:
            assert (grad == 1).all().item()
        self.w.grad = None
        (self.w * 2).sum().backward()
        assert (self.w.grad == 2).all().item()
        self.w.grad = None


@cuda.jit
def collatz(out, start):
    i = cuda.grid(1)
    if i < out.size:
        n = start + i + 1
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        out[i] = steps


def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


class Kernels:
    """A kernel that was interrupted may have written a part of its output, and nothing else."""

    N = 1 << 16

    def __init__(self, rng):
        self.out = np.zeros(self.N, np.int64)
        self.beside = np.arange(self.N)
        self.waits = torch.arange(1000) * 3
        self.want = np.array([collatz_steps(i + 1) for i in range(self.N)])

    def round(self):
        for _ in range(3):
            collatz[self.N // 256, 256](self.out, 0)

    def check(self):
        part = self.out
        assert ((part == self.want) | (part == 0)).all()
        assert (self.beside == np.arange(self.N)).all()
        assert self.waits.sum().item() == 3 * 999 * 500
        self.out[:] = 0
        collatz[self.N // 256, 256](self.out, 0)
        assert (self.out == self.want).all()
        self.out[:] = 0


class Device:
    """Copies to and from device arrays, and kernels on arrays of other faces that still wait."""

    N = 1 << 20

    def __init__(self, rng):
        self.host = np.arange(self.N, dtype=np.float64)
        self.t = torch.zeros(self.N, dtype=torch.int64)

    def round(self):
        for _ in range(4):
            d = cuda.to_device(self.host)
            back = d.copy_to_host()
            assert (back == self.host).all()
            waits = torch.arange(4096) * 0
            collatz[16, 256](waits, 0)
            self.t += waits.sum()

    def check(self):
        d = cuda.to_device(self.host)
        assert (d.copy_to_host() == np.arange(self.N)).all()
        assert self.t.min().item() == self.t.max().item()


class Save:
    """The file is the old one or the new one, whole."""

    def __init__(self, rng):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "state.pt")
        self.number = 0
        self.data = torch.arange(300_000, dtype=torch.float32)
        torch.save({"n": 0, "data": self.data * 1}, self.path)

    def round(self):
        for _ in range(10):
            self.number += 1
            torch.save({"n": self.number, "data": self.data + self.number}, self.path)

    def check(self):
        saved = torch.load(self.path)
        assert saved["n"] in (self.number, self.number - 1)
        assert torch.equal(saved["data"], self.data + saved["n"])
        assert os.listdir(self.folder.name) == ["state.pt"], os.listdir(self.folder.name)
        self.number = saved["n"]  # the next round may be interrupted in its first save, too


class Load(Save):
    """What was loaded is right, and the file stays."""

    def round(self):
        for _ in range(10):
            saved = torch.load(self.path)
            assert saved["n"] == 0 and torch.equal(saved["data"], self.data)


class Squares(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        return torch.full((50,), float(i * i)), i


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return f.read().split()


class Loader:
    """After an interrupt, the next epoch is whole; no worker and no descriptor is left."""

    workers = 0

    def __init__(self, rng):
        self.loader = DataLoader(Squares(), 16, shuffle=True, num_workers=self.workers)
        self.descriptors = None

    def round(self):
        for _ in range(4 if self.workers else 10):
            seen = []
            for x, i in self.loader:
                assert (x[:, 0] == i * i).all().item()
                seen += i.tolist()
            assert sorted(seen) == list(range(200))

    def check(self):
        seen = []
        for x, i in self.loader:
            assert (x[:, 49] == i * i).all().item()
            seen += i.tolist()
        assert sorted(seen) == list(range(200))
        gc.collect()
        end = time.monotonic() + 20
        while children() and time.monotonic() < end:
            time.sleep(0.05)
        left = [open(f"/proc/{pid}/stat").read().split(" ", 3)[:3] for pid in children()]
        assert not left, f"workers are left: {left}"
        now = descriptors()
        self.descriptors = self.descriptors or now
        assert now <= self.descriptors + 2, f"{now} descriptors, there were {self.descriptors}"


class Workers(Loader):
    workers = 2


def run(name, count, seed):
    rng = random.Random(f"{name} {seed}")
    scenario = globals()[name.capitalize()](rng)
    scenario.round()
    scenario.check()
    start = time.monotonic()
    scenario.round()
    length = time.monotonic() - start

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    heard = rounds = 0
    while heard < count and rounds < 4 * count:  # some moments come after the round's end
        rounds += 1
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-4, rng.random() * length))
            scenario.round()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            heard += 1
        try:
            scenario.check()
        except Exception:
            print(f"{name}: in round {rounds}", file=sys.stderr)
            raise
    print(f"{rounds} rounds, {heard} interrupted")


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
