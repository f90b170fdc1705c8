"""Threads on shared and on separate objects: no crash, and right values on the separate ones.

A round is a process with several threads that draw one action after the other. Separate: each
thread has its own objects and compares every result with NumPy. Shared: all of them use the same
tensors, lists, modules, optimisers, arrays and kernels; what they compute may be anything, an
action may raise what Python code may raise, the process goes on and at last computes what is known.
"""

import argparse
import faulthandler
import gc
import os
import random
import sys
import threading
import time

from common import run_python

HERE = os.path.dirname(os.path.abspath(__file__))
ROUND = "import sys; sys.path.insert(0, sys.argv[1]); import threads; threads.main(sys.argv[2:])"
# What a racing program may raise. Everything else (SystemError above all) is a fault of simt.
ALLOWED = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError, StopIteration)


def arguments(parser):
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--round", type=float, default=20, help="seconds of one round")


def run(options):
    end = time.monotonic() + options.minutes * 60
    failed = rounds = actions = 0
    seed = options.seed
    while time.monotonic() < end or not rounds:
        outcome = run_python(
            ROUND,
            HERE,
            f"--seed={seed}",
            f"--threads={options.threads}",
            f"--round={options.round}",
            timeout=options.round * 4 + 120,
        )
        rounds += 1
        if outcome.code == 0:
            actions += int(outcome.out.split()[-1])
        else:
            failed += 1
            print(f"threads, round of seed {seed}: {outcome}", flush=True)
        seed += 1
    print(f"threads: {rounds} rounds, {actions} actions", flush=True)
    return failed


# ---- a round: what follows runs in the child -----------------------------------------------------


class Shared:
    """The objects that all threads use."""

    def __init__(self, seed):
        import numpy as np
        from simt import cupy as cp
        from simt import torch
        from simt.numba import cuda

        self.np, self.cp, self.torch, self.cuda = np, cp, torch, cuda
        nn = torch.nn
        torch.manual_seed(seed)
        self.leaves = [torch.rand(8, 8, requires_grad=True) for _ in range(3)]
        self.tensors = [torch.rand(8, 8) for _ in range(4)]
        self.images = [torch.rand(2, 3, 8, 8, requires_grad=True) for _ in range(2)]
        self.large = torch.rand(400, 400)
        self.list = [torch.zeros(8, 8) + i for i in range(12)]
        self.graph = [(self.leaves[0] * 2).relu()]
        self.model = nn.Sequential(
            nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.LayerNorm(16), nn.Linear(16, 4)
        )
        self.conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Flatten())
        self.saved = self.model.state_dict()
        self.optimisers = [
            torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9),
            torch.optim.Adam(self.model.parameters(), lr=0.001),
            torch.optim.SGD(self.leaves, lr=0.1),
        ]
        self.handles = []
        self.arrays = [cp.arange(64, dtype=cp.float64).reshape(8, 8) for _ in range(4)]
        self.array_list = [cp.zeros((4, 4)) + i for i in range(8)]
        self.device = [cuda.to_device(np.arange(256, dtype=np.float32)) for _ in range(3)]
        self.streams = [cuda.stream() for _ in range(2)]
        self.events = [cuda.event() for _ in range(2)]
        self.generator = torch.Generator()
        self.views = []
        self.kernels = make_kernels(cuda)
        self.dataset = torch.utils.data.TensorDataset(torch.rand(64, 8), torch.arange(64))
        self.loader = torch.utils.data.DataLoader(self.dataset, batch_size=16, shuffle=True)


def make_kernels(cuda):
    @cuda.jit
    def scale(x, factor):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = x[i] * factor + 1

    @cuda.jit
    def add(x, y, z):
        for i in range(cuda.grid(1), z.size, cuda.gridsize(1)):
            z[i] = x[i] + y[i]

    return [scale, add]


# Actions on shared objects: functions of the shared objects and a random.Random.


def tensor_of(s, r):
    return r.choice(r.choice([s.leaves, s.tensors, s.list, s.views, s.graph]) or s.tensors)


def do_arithmetic(s, r):
    x, y = tensor_of(s, r), tensor_of(s, r)
    z = r.choice([lambda: x * y + 1, lambda: x @ y, lambda: x - y.T, lambda: (x > y).sum()])()
    if r.random() < 0.5:
        z.sum().item()


def do_shape(s, r):
    x = tensor_of(s, r)
    z = r.choice(
        [
            lambda: x.reshape(-1),
            lambda: x[1:, ::2],
            lambda: x.T.contiguous(),
            lambda: x[:, s.torch.tensor([0, 3])],
            lambda: x.unsqueeze(0).expand(3, -1, -1),
            lambda: x.chunk(2),
            lambda: x[x > 0.5],
        ]
    )()
    if isinstance(z, s.torch.Tensor):
        s.views.append(z)
    del s.views[:-6]


def do_join(s, r):
    join = r.choice([s.torch.stack, s.torch.cat])
    join(s.list).sum().item()
    s.cp.concatenate(s.array_list).sum().item()


def do_change_list(s, r):
    t = s.torch
    s.list[:] = [t.full((8, 8), float(i)) for i in range(r.randint(1, 12))]
    s.array_list[:] = [s.cp.full((4, 4), i) for i in range(r.randint(1, 8))]
    if r.random() < 0.3:
        s.list.clear()
        s.list.append(t.ones(8, 8))


def do_in_place(s, r):
    x = tensor_of(s, r)
    with s.torch.no_grad():
        r.choice(
            [
                lambda: x.mul_(0.5),
                lambda: x.add_(tensor_of(s, r)),
                lambda: x.zero_(),
                lambda: x.copy_(tensor_of(s, r)),
                lambda: x.__setitem__(0, 1.0),
                lambda: x.__setitem__(x > 0.5, 0.25),
                lambda: x.uniform_(),
                lambda: x.clamp_(0, 1),
            ]
        )()


def do_data(s, r):
    t = s.torch
    x = tensor_of(s, r)
    shape = (8, 8) if r.random() < 0.9 else r.choice([(4,), (8, 4), (1, 8, 8), ()])
    dtype = t.float32 if r.random() < 0.95 else t.float64
    x.data = t.rand(*shape).to(dtype)


def do_restore(s, r):
    t = s.torch
    for x in s.leaves:
        x.data = t.rand(8, 8)
        x.grad = None
        x.requires_grad_()
    s.tensors[:] = [t.rand(8, 8) for _ in range(4)]
    s.graph[:] = [(s.leaves[0] * 2).relu()]


def do_flags(s, r):
    x = r.choice(s.leaves)
    r.choice(
        [
            lambda: x.requires_grad_(r.random() < 0.8),
            lambda: tensor_of(s, r).detach_(),
            lambda: tensor_of(s, r).retain_grad(),
            lambda: tensor_of(s, r).grad_fn,
            lambda: x.grad_fn,
            lambda: x.is_leaf,
            lambda: str(x),
            lambda: x.data_ptr(),
        ]
    )()


def do_backward(s, r):
    x = r.choice(s.leaves)
    y = (x * 2 + tensor_of(s, r).detach()).sigmoid()
    y.sum().backward()
    if r.random() < 0.3:
        x.grad.data = x.grad.data / 2


def do_shared_graph(s, r):
    kind = r.randrange(4)
    if kind == 0:
        s.graph[:] = [(r.choice(s.leaves) * tensor_of(s, r)).tanh()]
    elif kind == 1:
        r.choice(s.graph).sum().backward(retain_graph=r.random() < 0.7)
    elif kind == 2:
        s.torch.autograd.grad(
            r.choice(s.graph).sum(), s.leaves, retain_graph=True, allow_unused=True
        )
    else:
        s.graph.append(r.choice(s.graph) * 1.5)
        del s.graph[:-4]


def do_grad(s, r):
    x = r.choice(s.leaves)
    kind = r.randrange(3)
    if kind == 0:
        x.grad = None
    elif kind == 1:
        x.grad = s.torch.rand(8, 8)
    elif x.grad is not None:
        x.grad.zero_()


def do_hooks(s, r):
    x = r.choice(s.leaves + s.graph)

    def hook(g):
        if r.random() < 0.2:
            x.grad = None
        if r.random() < 0.2 and s.handles:
            s.handles.pop().remove()
        return g * 2 if r.random() < 0.5 else None

    s.handles.append(x.register_hook(hook))
    while len(s.handles) > 6:
        s.handles.pop(0).remove()


def do_train(s, r):
    t = s.torch
    optimiser = r.choice(s.optimisers)
    optimiser.zero_grad(set_to_none=r.random() < 0.7)
    x, y = t.rand(6, 8), t.randint(0, 4, (6,))
    t.nn.functional.cross_entropy(s.model(x), y).backward()
    optimiser.step()


def do_conv(s, r):
    x = r.choice(s.images)
    s.conv(x).sum().backward()
    if r.random() < 0.3:
        x.grad = None
    if r.random() < 0.1:
        x.data = s.torch.rand(2, 3, r.choice([8, 8, 9]), 8)
        x.grad = None


def do_module(s, r):
    nn, kind = s.torch.nn, r.randrange(6)
    if kind == 0:
        s.model[0] = nn.Linear(8, 16)
    elif kind == 1:
        s.model[0].weight = nn.Parameter(s.torch.rand(16, 8))
    elif kind == 2:
        s.model.load_state_dict(s.saved)
    elif kind == 3:
        s.saved = {name: value.clone() for name, value in s.model.state_dict().items()}
    elif kind == 4:
        for p in s.model.parameters():
            p.data = p.data.clone()
    else:
        r.choice([s.model.train, s.model.eval, s.model.zero_grad])()


def do_optimiser(s, r):
    o = r.choice(s.optimisers)
    kind = r.randrange(4)
    if kind == 0:
        o.state.clear()
    elif kind == 1:
        o.load_state_dict(o.state_dict())
    elif kind == 2 and o is not s.optimisers[2]:
        o.param_groups[0]["params"][:] = list(s.model.parameters())
    else:
        o.step()


def do_array(s, r):
    cp = s.cp
    x, y = r.choice(s.arrays), r.choice(s.arrays)
    z = r.choice(
        [
            lambda: x * y + 1,
            lambda: x.__iadd__(1),
            lambda: cp.sort(x, axis=0),
            lambda: x.cumsum(),
            lambda: x.__setitem__((slice(0, 2), 0), 3),
            lambda: x[cp.array([0, 1])],
            lambda: x.astype(cp.float32).sum(axis=0),
            lambda: setattr(x, "shape", r.choice([(8, 8), (4, 16), (64,)])),
            lambda: cp.random.rand(8, 8),
            lambda: x.get(),
            lambda: x.T.copy(),
            lambda: cp.where(x > 1, x, y),
        ]
    )()
    if r.random() < 0.2 and isinstance(z, cp.ndarray):
        z.tolist()


def do_swap_array(s, r):
    s.arrays[r.randrange(4)] = s.cp.random.rand(8, 8)
    s.device[r.randrange(3)] = s.cuda.to_device(s.np.ones(256, s.np.float32))


def do_launch(s, r):
    d, stream = r.choice(s.device), r.choice(s.streams)
    kind = r.randrange(6)
    if kind == 0:
        s.kernels[0][2, 128, stream](d, 1.5)
    elif kind == 1:
        s.kernels[1][2, 64](d, r.choice(s.device), d)
    elif kind == 2:
        s.kernels[1][1, 32](r.choice(s.tensors).view(-1), r.choice(s.tensors).view(-1), d[:64])
    elif kind == 3:
        a = r.choice(s.arrays).reshape(-1)
        s.kernels[0][1, 64](a, r.choice([2, 2.5, True]))
    elif kind == 4:
        dtype = r.choice([s.np.int32, s.np.float64, s.np.int64, s.np.uint8])
        s.kernels[0][1, r.choice([32, 64, 96])](s.np.ones(40, dtype), r.choice([2, 2.5]))
    else:
        s.kernels = make_kernels(s.cuda)  # compiled anew, by whoever comes first


def do_device(s, r):
    d, event = r.choice(s.device), r.choice(s.events)
    r.choice(
        [
            lambda: d.copy_to_host(),
            lambda: d.copy_to_device(s.np.ones(256, s.np.float32)),
            lambda: d.__setitem__(slice(0, 4), 2.0),
            lambda: event.record(r.choice(s.streams)),
            lambda: event.synchronize(),
            lambda: s.cuda.synchronize(),
            lambda: s.cp.asarray(d) + 1,
            lambda: s.torch.as_tensor(d).sum().item(),
        ]
    )()


def do_large(s, r):
    t, x = s.torch, s.large
    r.choice(
        [
            lambda: (x @ x).sum().item(),
            lambda: x.add_(1).clamp_(0, 1),
            lambda: (x * 2).exp().mean(0).sum().item(),
            lambda: setattr(x, "data", t.rand(400, 400)),
            lambda: s.kernels[0][700, 256](x.view(-1), 0.5),
            lambda: s.kernels[1][64, 256](x.view(-1), x.view(-1), s.cp.asarray(x).reshape(-1)),
            lambda: s.cp.sort(s.cp.asarray(x), axis=0).get(),
            lambda: x[x > 0.5].sum().item(),
        ]
    )()


def do_look(s, r):
    x = tensor_of(s, r).detach()
    r.choice(
        [
            lambda: x.tolist(),
            lambda: x.numpy().sum(),
            lambda: s.np.from_dlpack(x).sum(),
            lambda: x.clone().numpy().fill(1),
            lambda: repr(x),
            lambda: s.torch.from_numpy(x.clone().numpy()).sum().item(),
        ]
    )()


def do_load(s, r):
    for x, _ in s.loader:
        x.sum().item()
        if r.random() < 0.5:
            break


def do_random(s, r):
    t = s.torch
    t.rand(4, 4, generator=s.generator)
    t.randperm(16)
    t.manual_seed(r.randrange(100))
    s.generator.manual_seed(3)


def do_collect(s, r):
    cycle = [s.torch.rand(4), None]
    cycle[1] = cycle
    del cycle
    if r.random() < 0.1:
        gc.collect()


SHARED_ACTIONS = [f for name, f in sorted(globals().items()) if name.startswith("do_")]


# Checks on objects of the thread's own: functions of the modules and a generator of numbers.


def check_arrays(s, g):
    np, cp = s.np, s.cp
    shape = tuple(g.integers(1, 30, g.integers(1, 4)))
    x, y = g.standard_normal(shape), g.standard_normal(shape)
    a, b = cp.asarray(x), cp.asarray(y)
    c = (a * b - cp.exp(a)).sum(axis=-1)
    a += 1
    close(np, c.get(), (x * y - np.exp(x)).sum(axis=-1))
    close(np, cp.sort(a, axis=0).get(), np.sort(x + 1, axis=0))
    close(np, cp.concatenate([a, b]).cumsum().get(), np.concatenate([x + 1, y]).cumsum())


def check_large(s, g):
    np, t, cp = s.np, s.torch, s.cp
    x, y = g.standard_normal((300, 400)), g.standard_normal((400, 200))
    close(np, (t.tensor(x) @ t.tensor(y)).numpy(), x @ y, 1e-10)
    z = np.exp(x) * 2
    close(np, (cp.exp(cp.asarray(x)) * 2).sum(0).get(), z.sum(0))
    d = s.cuda.to_device(x.reshape(-1))
    s.kernels[0][(x.size + 255) // 256, 256](d, 2.0)
    close(np, d.copy_to_host(), x.reshape(-1) * 2 + 1)


def check_gradients(s, g):
    np, t = s.np, s.torch
    x, w = g.standard_normal((5, 7)), g.standard_normal((7, 3))
    a = t.tensor(x, requires_grad=True)
    b = t.tensor(w, requires_grad=True)
    for _ in range(3):
        ((a @ b) ** 2).sum().backward()
    close(np, a.grad.numpy(), 3 * 2 * (x @ w) @ w.T)
    close(np, b.grad.numpy(), 3 * 2 * x.T @ (x @ w))
    a.grad = None
    (a.detach() * b.sum()).sum().backward()
    assert a.grad is None


def check_training(s, g):
    np, t = s.np, s.torch
    x, y = g.standard_normal((16, 4)), g.standard_normal((16, 1))
    layer = t.nn.Linear(4, 1).double()
    w, b = layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()
    optimiser = t.optim.SGD(layer.parameters(), lr=0.05)
    for _ in range(5):
        optimiser.zero_grad()
        t.nn.functional.mse_loss(layer(t.tensor(x)), t.tensor(y)).backward()
        optimiser.step()
        d = 2 * (x @ w.T + b - y) / 16
        w, b = w - 0.05 * d.T @ x, b - 0.05 * d.sum(0)
    close(np, layer.weight.detach().numpy(), w)
    close(np, layer.bias.detach().numpy(), b)


def check_kernels(s, g):
    np, cuda = s.np, s.cuda
    n = int(g.integers(1, 5000))
    x, y = g.standard_normal(n).astype(np.float32), g.standard_normal(n).astype(np.float32)
    d, z = cuda.to_device(x), cuda.device_array(n, np.float32)
    s.kernels[1][8, 64](d, y, z)
    s.kernels[0][(n + 127) // 128, 128](z, np.float32(2))
    close(np, z.copy_to_host(), (x + y) * np.float32(2) + 1, 1e-5)
    kernel = make_kernels(cuda)[0] if g.random() < 0.1 else s.kernels[0]
    h = np.arange(n, dtype=g.choice([np.int64, np.float64, np.int32]))
    kernel[(n + 31) // 32, 32](h, 3)
    close(np, h, np.arange(n) * 3 + 1)


def check_lists(s, g):
    np, t = s.np, s.torch
    rows = [g.standard_normal(6) for _ in range(int(g.integers(1, 20)))]
    whole = t.stack([t.tensor(row) for row in rows])
    whole[1:] *= 2
    whole.data = whole.data + 1
    expected = np.stack(rows)
    expected[1:] *= 2
    close(np, whole.numpy(), expected + 1)
    close(np, whole.softmax(1).sum(1).numpy(), np.ones(len(rows)))


def check_loader(s, g):
    t = s.torch
    n = int(g.integers(1, 50))
    data = t.utils.data.TensorDataset(t.arange(n), t.arange(n) * 2)
    seen = []
    for x, y in t.utils.data.DataLoader(data, batch_size=7, shuffle=True):
        assert (y == 2 * x).all()
        seen += x.tolist()
    assert sorted(seen) == list(range(n))


CHECKS = [f for name, f in sorted(globals().items()) if name.startswith("check_")]


def close(np, got, expected, tolerance=1e-9):
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


class Round:
    """Runs actions in threads until the time is over or something is wrong."""

    def __init__(self, seed, threads):
        self.seed, self.threads = seed, threads
        self.faults, self.counts = [], [0] * threads

    def run(self, one, seconds):
        self.end = time.monotonic() + seconds
        workers = [
            threading.Thread(target=self.work, args=(one, number)) for number in range(self.threads)
        ]
        for w in workers:
            w.start()
        for w in workers:
            w.join()

    def work(self, one, number):
        draw = one(f"{self.seed} {number}")
        while time.monotonic() < self.end and not self.faults:
            try:
                draw()
            except BaseException as error:
                import traceback

                self.faults.append("".join(traceback.format_exception(error)))
            self.counts[number] += 1


def shared_round(s):
    def one(seed):
        r = random.Random(seed)

        def draw():
            action = r.choice(SHARED_ACTIONS)
            try:
                action(s, r)
            except ALLOWED as error:
                if "defect of simt" in str(error):
                    raise
            except MemoryError as error:
                raise RuntimeError(f"{action.__name__}: sizes from nowhere") from error

        return draw

    return one


def separate_round(s):
    def one(seed):
        g = s.np.random.default_rng([ord(c) for c in seed])
        return lambda: CHECKS[int(g.integers(len(CHECKS)))](s, g)

    return one


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--round", type=float, default=20)
    options = parser.parse_args(arguments)
    faulthandler.enable()
    s = Shared(options.seed)
    do = Round(options.seed, options.threads)
    sys.setswitchinterval(1e-6)
    do.run(separate_round(s), options.round / 2)
    if not do.faults:
        do.run(shared_round(s), options.round / 2)
    sys.setswitchinterval(0.005)
    if not do.faults:
        s.kernels = make_kernels(s.cuda)
        g = s.np.random.default_rng(1)
        for check in CHECKS:
            check(s, g)
    print(*do.faults[:3], sep="\n", file=sys.stderr)
    print(sum(do.counts))
    sys.exit(1 if do.faults else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
