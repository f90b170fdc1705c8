"""Threads on shared objects: values may race, objects never. Longer: tools/reliability threads."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from simt import _core, torch
from simt import cupy as cp
from simt.numba import cuda

nn = torch.nn
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run_child(*command):
    """A program that may crash, in a process of its own; its last line of output."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *command],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().split("\n")[-1]


# What each thread does again and again for a moment; the first is the main thread's.
RACES = {
    "two threads train one model": """
model = nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 2))
def train():
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.rand(32, 20), torch.randint(0, 2, (32,))
    opt.zero_grad()
    try:
        nn.functional.cross_entropy(model(x), y).backward()
    except RuntimeError as error:  # as in PyTorch, when a step comes between
        assert "inplace operation" in str(error), error
    opt.step()
actions = [train, train]
""",
    "stack of a list that is refilled": """
L = [torch.zeros(10) for i in range(50)]
def change(): L[:] = [torch.ones(10) for i in range(50)]
def join():
    assert torch.stack(L).shape == (50, 10) and torch.cat(L).sum().item() in (0, 500)
actions = [join, change, busy]
""",
    "rows of a joined list are whole": """
L = [torch.zeros(10) for i in range(50)]
C = [cp.zeros(10) for i in range(50)]
def change():
    k = float(time.perf_counter())
    L[:] = [torch.full((10,), k) for i in range(50)]
    C[:] = [cp.full((10,), k) for i in range(50)]
def join():
    for rows in (torch.stack(L).tolist(), cp.concatenate(C).reshape(50, 10).tolist()):
        assert all(len(set(row)) == 1 for row in rows)
actions = [join, change, busy]
""",
    "data is replaced while it is used": """
w = torch.rand(100, 100, requires_grad=True)
def change(): w.data = torch.rand(100, 100)
def use(): assert 0 <= (w * 2 + 1).detach().mean().item() <= 3
actions = [use, change, busy]
""",
    "an optimiser's state is loaded while it steps": """
model = nn.Linear(4, 4)
o = torch.optim.Adam(model.parameters(), lr=1e-3)
model(torch.rand(2, 4)).sum().backward()
o.step()
def step(): o.step()
def load():  # steps that are tensors
    for state in o.state.values(): state["step"] = torch.ones(()) + 1
actions = [step, step, load, busy]
""",
    "gradients are cleared while they are added": """
G = torch.rand(20, 20, requires_grad=True)
def back(): (G * 2).sum().backward()
def clear(): G.grad = None
actions = [back, back, clear, clear]
""",
    "a graph is walked and changed": """
x = torch.rand(5, 5, requires_grad=True)
y = [(x * 2).relu()]
def back():
    try: (y[0].sum() + (x @ x).sum()).backward(retain_graph=True)
    except RuntimeError: pass
def change(): y[0] = (y[0] * 0.5).relu() if y[0].grad_fn else (x * 2).relu()
def hook():
    h = x.register_hook(lambda g: g * 1)
    h.remove()
def restart(): y[0] = (x * 2).relu()
actions = [back, back, change, hook, restart]
""",
    "an array's shape is set while it is used": """
a = cp.arange(64.0)
def use():
    assert a.sum().item() == 2016 and a.reshape(-1).copy().size == 64
def change():
    a.shape = (8, 8)
    a.shape = (64,)
actions = [use, change, busy]
""",
    "one kernel is compiled by several threads": """
def launch():
    global kernel
    if random.random() < 0.2:
        @cuda.jit
        def kernel(x, k):
            i = cuda.grid(1)
            if i < x.size:
                x[i] += k
    x = np.zeros(100, random.choice([np.int32, np.float32, np.float64, np.int64]))
    kernel[4, random.choice([32, 64])](x, 3)
    assert (x == 3).all()
random.random = iter([0.0] + [0.1, 0.5, 0.9, 0.4] * 10**6).__next__
launch()
actions = [launch, launch, launch]
""",
}
PROGRAM = """
import random, sys, threading, time
import numpy as np
from simt import cupy as cp, torch
from simt.numba import cuda
nn = torch.nn
def busy():
    x = torch.rand(200, 200)
    (x @ x).sum().item()
{race}
end = time.monotonic() + 0.8
faults = []
def repeat(action):
    try:
        while time.monotonic() < end and not faults: action()
    except BaseException as error:
        faults.append(error)
        raise
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=repeat, args=(a,)) for a in actions]
for t in threads: t.start()
for t in threads: t.join()
sys.exit(bool(faults))
"""


@pytest.mark.parametrize("race", list(RACES))
def test_races(race, tmp_path):
    program = tmp_path / "race.py"
    program.write_text(PROGRAM.format(race=RACES[race]))
    run_child(str(program))


def test_short_form():
    """A few seconds of tools/reliability threads."""
    text = "import sys; sys.path.insert(0, sys.argv[1]); import threads; threads.main(sys.argv[2:])"
    tools = os.path.join(ROOT, "tools", "reliability")
    assert int(run_child("-c", text, tools, "--seed=5", "--round=3", "--threads=4")) > 0


# ---- a kernel and what else uses its array: one after the other, as on a default stream ---------


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def in_threads(*functions):
    """The functions in threads of their own; what one raises is raised here."""
    faults = []

    def run(function):
        try:
            function()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for fault in faults:
        raise fault


def test_kernels_of_two_threads_on_one_array():
    n = 2_000_000
    x = cuda.to_device(np.zeros(n, np.int64))

    def launch():
        for _ in range(20):
            add_one[(n + 255) // 256, 256](x)

    in_threads(launch, launch, launch)
    assert (x.copy_to_host() == 60).all()


@pytest.mark.parametrize(
    "look",
    [
        lambda x, d: int(x.sum()),
        lambda x, d: int(x.get().sum()),
        lambda x, d: int(d.copy_to_host().sum()),
        lambda x, d: int(torch.as_tensor(d).sum()),
        lambda x, d: int((x * 2).sum()) // 2,
    ],
)
def test_a_kernel_and_an_array_operation_of_two_threads(look):
    n, rounds = 2_000_000, 12
    d = cuda.to_device(np.zeros(n, np.int64))
    x = cp.asarray(d)
    done = []

    def launch():
        try:
            for _ in range(rounds):
                add_one[(n + 255) // 256, 256](d)
        finally:
            done.append(True)

    def watch():
        while not done:
            assert look(x, d) % n == 0

    in_threads(launch, watch)
    assert look(x, d) == rounds * n


def test_writes_of_a_kernel_and_of_an_array_operation():
    n, rounds = 1_000_000, 12
    d = cuda.to_device(np.zeros(n, np.int64))
    x = cp.asarray(d)

    def launch():
        for _ in range(rounds):
            add_one[(n + 255) // 256, 256](d)

    def add():
        for _ in range(rounds):
            x.__iadd__(1)
            int(x[0])

    in_threads(launch, add)
    assert (d.copy_to_host() == 2 * rounds).all()


def test_kernels_on_streams_may_wait_for_each_other():
    flags = cuda.to_device(np.zeros(2, np.int32))

    @cuda.jit
    def meet(flags, mine, other):
        cuda.atomic.exch(flags, mine, 1)
        while cuda.atomic.add(flags, other, 0) == 0:
            pass

    streams = [cuda.stream(), cuda.stream()]
    in_threads(*(lambda i=i: meet[1, 1, streams[i]](flags, i, 1 - i) for i in (0, 1)))
    assert flags.copy_to_host().tolist() == [1, 1]


# ---- the same in one thread: code of the user's inside an operation ------------------------------


def test_no_gradient_is_lost_between_threads():
    x = torch.zeros(50, requires_grad=True)

    def add():
        for _ in range(200):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [4 * 200 * 2.0] * 50


def test_a_hook_walks_the_same_graph():
    x = torch.ones(3, requires_grad=True)
    parts = [x * i for i in range(1, 40)]
    total = sum((p * p).sum() for p in parts)
    calls = []

    def hook(g):
        if not calls:
            calls.append(1)
            with torch.enable_grad():
                sum(parts[:3]).sum().backward(retain_graph=True)

    parts[-1].register_hook(hook)
    total.backward(retain_graph=True)
    expected = sum(2 * i * i for i in range(1, 40)) + (1 + 2 + 3)
    assert calls and x.grad.tolist() == [float(expected)] * 3


def test_hooks_that_remove_hooks():
    x = torch.ones(2, requires_grad=True)
    seen, handles = [], []

    def hook(number):
        def run(g):
            seen.append(number)
            while handles:
                handles.pop().remove()
            gc.collect()

        return run

    for number in range(3):
        handles.append(x.register_hook(hook(number)))
    (x * 2).sum().backward()
    assert seen == [0, 1, 2]
    (x * 2).sum().backward()
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("result", [torch.zeros(1), torch.zeros(4, 4), torch.zeros(6).double()])
def test_hooks_keep_type_and_size(result):
    x = torch.ones(6, requires_grad=True)
    y = torch.cat([x, x])[:6]
    y.register_hook(lambda g: result)
    with pytest.raises(RuntimeError, match="hook has changed the (type|size) of value"):
        (y * 2).sum().backward()

    def replace(g):
        g.data = result

    z = torch.cat([x, x])
    z.register_hook(replace)
    with pytest.raises(RuntimeError, match="hook has changed the (type|size) of value"):
        (z * 2).sum().backward()


def conv(x, w):
    return nn.functional.conv2d(x, w, padding=1)


REPLACED = {
    "matmul": ((4, 5), (5, 3), lambda x, w: x @ w),
    "linear": ((4, 5), (3, 5), lambda x, w: nn.functional.linear(x, w)),
    "batches": ((2, 4, 5), (2, 5, 3), lambda x, w: x @ w),
    "conv": ((2, 3, 6, 6), (4, 3, 3, 3), conv),
    "max_pool": ((2, 3, 6, 6), (1,), lambda x, w: nn.functional.max_pool2d(x, 2) * w),
    "avg_pool": ((2, 3, 6, 6), (1,), lambda x, w: nn.functional.avg_pool2d(x, 2) * w),
    "product": ((4, 5), (4, 5), lambda x, w: x * w),
    "cat": ((4, 5), (4, 5), lambda x, w: torch.cat([x * 1, w * 1]).exp()),
    "stack": ((4, 5), (4, 5), lambda x, w: torch.stack([x * 1, w * 1], 1).exp()),
    "softmax": ((4, 5), (4, 5), lambda x, w: (x * w).softmax(1)),
    "norm": ((4, 5), (5,), lambda x, w: nn.functional.layer_norm(x, (5,), w)),
    "var": ((4, 5), (4,), lambda x, w: x.var(1) * w),
    "amax": ((4, 5), (4,), lambda x, w: x.amax(1) * w),
    "cumsum": ((4, 5), (4, 5), lambda x, w: x.cumsum(0) * w),
    "index": ((4, 5), (2, 5), lambda x, w: x[torch.tensor([0, 2])] * w),
    "slice": ((4, 5), (2, 5), lambda x, w: x[1:3] * w),
    "gather": ((4, 5), (4, 1), lambda x, w: x.gather(1, torch.tensor([[4]] * 4)) * w),
}
SHAPES = [(), (1,), (2,), (2, 2), (9, 9), (1, 1, 1), (1, 1, 2, 2), (3, 2, 9, 9), (0,)]


@pytest.mark.parametrize("name", list(REPLACED))
def test_data_replaced_between_forward_and_backward(name):
    """Whatever is put into x.data: a gradient, or an error."""
    x_shape, w_shape, function = REPLACED[name]
    outcomes = set()
    for shape in SHAPES:
        for which in range(3):
            leaves = [
                torch.rand(x_shape, requires_grad=True),
                torch.rand(w_shape, requires_grad=True),
            ]
            middle = [leaf * 1 for leaf in leaves]
            y = function(*middle)
            target = (middle + [y])[which]
            for dtype in (torch.float32, torch.float64):
                target.data = torch.ones(shape, dtype=dtype)
                try:
                    y.sum().backward(retain_graph=True)
                    outcomes.add("gradient")
                except (RuntimeError, IndexError, ValueError) as error:
                    outcomes.add("error")
                    assert "defect" not in str(error)
    assert "error" in outcomes


def test_data_replaced_by_an_equal_one():
    x = torch.rand(3, 4, requires_grad=True)
    y = (x * x).sum()
    x.data = torch.ones(3, 4)
    y.backward()
    assert x.grad.tolist() == [[2.0] * 4] * 3


def test_base_replaced_under_a_view():
    base = torch.zeros(10, requires_grad=True) * 1
    view = base[5:10]
    base.data = torch.zeros(2)
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        view.mul_(2)
        base.sum().backward()


def test_objects_whose_index_replaces_what_is_used():
    w = torch.rand(6, 4, requires_grad=True)

    class Number:
        def __index__(self):
            w.data = torch.rand(1)
            w.grad = torch.rand(1)
            gc.collect()
            return 0

    for use in (
        lambda: w.sum(Number()),
        lambda: w.unbind(Number()),
        lambda: w[Number()],
        lambda: w.reshape(Number(), -1),
        lambda: torch.cat([w, w], Number()),
        lambda: w.softmax(Number()),
        lambda: w.transpose(Number(), 1),
    ):
        w.data = torch.rand(6, 4)
        w.grad = None
        try:
            use()
        except (RuntimeError, IndexError):
            pass
    assert w.shape == (1,) or w.shape == (6, 4)


def test_lists_are_read_once():
    tensors = [torch.zeros(3)]

    class Number:
        def __index__(self):
            tensors.clear()
            gc.collect()
            return 0

    assert torch.stack(tensors, Number()).shape == (1, 3)
    arrays = [cp.zeros(3), cp.zeros(3)]

    class Axis:
        def __index__(self):
            arrays.clear()
            gc.collect()
            return 0

    assert cp.concatenate(arrays, axis=Axis()).shape == (6,)


def test_modules_keep_the_place_of_what_is_replaced():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    model[0] = nn.Linear(4, 3)
    assert [type(m) for m in model] == [nn.Linear, nn.ReLU, nn.Linear]
    assert model(torch.ones(1, 4)).shape == (1, 1)
    model[0].weight = nn.Parameter(torch.ones(3, 4))
    assert [name for name, _ in model[0].named_parameters()] == ["weight", "bias"]


def test_a_gradient_that_is_missing():
    p = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="a tensor is missing"):
        torch._C._sgd([p], [None], None, 0.1, 0.0, 0.0, 0.0, False, False)


def test_what_was_replaced_is_released():
    x = torch.zeros(1000, 1000, requires_grad=True)
    start = _core.stats()["bytes_in_use"]
    for _ in range(10):
        x.data = torch.ones(1000, 1000)
        (x * 2).sum().backward()
        x.grad = None
    assert _core.stats()["bytes_in_use"] <= start + 3 * 4_000_000
    np.testing.assert_array_equal(x.detach().numpy()[0, :3], 1)


WAITING = """
import os, signal, sys, threading
from simt import torch, cupy as cp

large, leaf, small = torch.rand(1500, 1500), torch.ones(4, requires_grad=True), cp.ones(3)
begun, ended = threading.Event(), threading.Event()

def compute():  # for a minute
    y = large
    for _ in range(400):
        y = (y @ large) * 1e-3
    begun.set()
    y.sum().item()
    ended.set()

def append():
    x = small
    while True:
        x = x + 1

def interrupt():
    begun.wait()
    for _ in range(40):  # the first ones may come before the other thread has the lock
        threading.Event().wait(0.2)
        os.kill(os.getpid(), signal.SIGINT)

calls = {
    "look": lambda: (small + 1).tolist(),
    "append": append,
    "backward": lambda: (leaf * 2).sum().backward(),
    "numpy": lambda: (leaf * 1).detach().numpy(),
}
threading.Thread(target=compute, daemon=True).start()
try:
    threading.Thread(target=interrupt, daemon=True).start()
    while True:
        calls[sys.argv[1]]()
except KeyboardInterrupt:
    print("waited" if ended.is_set() else "interrupted", flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("call", ["look", "append", "backward", "numpy"])
def test_interrupts_are_heard_while_another_thread_computes(call):
    assert run_child("-c", WAITING, call) == "interrupted"
