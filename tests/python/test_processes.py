"""Forks, interrupts, subinterpreters: whole programs, in processes of their own.

More, at random, in tools/reliability.
"""

import contextlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import simt.torch as torch


def run(text, *args, seconds=100):
    done = subprocess.run(
        [sys.executable, "-c", text, *args], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


# ---- forks ----

FIRST_USES = {
    "torch": "import simt.torch as t; use = lambda: t.ones(3).sum().item() == 3",
    "cupy": "import simt.cupy as cp; use = lambda: float(cp.ones(3).sum()) == 3",
    "numba": "from simt.numba import cuda; import numpy as np; "
    "use = lambda: cuda.to_device(np.arange(3)).copy_to_host().tolist() == [0, 1, 2]",
}
FORK_FIRST = """
import os, signal
signal.alarm(60)
{first}
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    os._exit(0 if use() else 1)
assert os.waitpid(pid, 0)[1] == 0
assert use()
"""


@pytest.mark.parametrize("face", FIRST_USES)
def test_fork_before_the_first_use(face):
    run(FORK_FIRST.format(first=FIRST_USES[face]))


POOL = """
import multiprocessing, sys
import simt.torch as torch
def work(i):
    return torch.full((1000,), float(i)).sum().item()
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(work, range(4)).get(60) == [0, 1000, 2000, 3000]
"""


def test_a_pool_before_the_first_use():
    run(POOL)


# Each handler forks while a long product is on its way. A child uses arrays in the handler; some
# come back from it and end what the parent was doing.
FORK_IN_HANDLER = """
import os, signal
import simt.torch as torch
signal.alarm(90)
y = torch.rand(600, 600)
waits = y * 2
children, in_child = [], False
def handler(*_):
    global in_child
    pid = os.fork()
    if pid:
        children.append(pid)
        return
    in_child = True
    fine = (torch.arange(5.) + 1).sum().item() == 15 and waits[0, 0].item() == 2 * y[0, 0].item()
    if not fine or len(children) % 2:
        os._exit(0 if fine else 1)
def work():
    x = y
    for _ in range(30):
        x = (x @ y) / 300
    steps = torch.zeros(1000)
    for _ in range(20):
        steps += 1
    return x.sum().item(), steps.sum().item()
want = work()
assert want[1] == 20000
signal.signal(signal.SIGPROF, handler)
while len(children) < 6:
    signal.setitimer(signal.ITIMER_PROF, 0.05)
    got = work()
    signal.setitimer(signal.ITIMER_PROF, 0)
    if in_child:
        os._exit(0 if got == want else 2)
    assert got == want
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * len(children)
"""


def test_fork_in_a_signal_handler():
    run(FORK_IN_HANDLER)


KERNEL = """
import os, signal
import numpy as np
from simt.numba import cuda
@cuda.jit
def count(out, n):
    i = cuda.grid(1)
    x = 0
    for k in range(n):
        x = x * 3 + k
    out[i] = x
small, big = np.zeros(64, np.int64), np.zeros(4096, np.int64)
count[1, 64](small, 1000)
pid = None
def handler(*_):
    global pid
    if pid is None:
        pid = os.fork()
        if pid == 0:
            again = np.zeros(64, np.int64)
            count[1, 64](again, 1000)
            if (again != small).any(): os._exit(1)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
n = 1000
try:
    while pid is None:
        count[16, 256](big, n)
        n *= 2
except RuntimeError as e:  # the workers' part is missing in the child
    os._exit(0 if pid == 0 and "forked" in str(e) else 3)
if pid == 0: os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert (big == big[0]).all()
"""


def test_fork_in_a_handler_while_a_kernel_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(KERNEL)
    run("import runpy, sys; runpy.run_path(sys.argv[1])", str(program))


# ---- interrupts ----


@contextlib.contextmanager
def alarm_after(seconds):
    """SIGALRM raises KeyboardInterrupt after that time; the block may or may not be interrupted."""

    def alarm(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seconds", [0.02, 0.05, 0.1, 0.2])
def test_what_was_pending_is_computed_later(seconds):
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((700, 700))).clone()
    want = x.numpy()
    w, layer = torch.zeros(700, dtype=torch.float64), torch.nn.Linear(10, 10)
    bias = torch.full((10,), 0.5)
    y = x @ x
    w += 1
    z = y
    with alarm_after(seconds):
        for _ in range(20):
            z = z @ x / 700
        ((z + w).sum() + bias.sum() + layer(bias).sum()).item()
    assert w.tolist() == [1.0] * 700 and bias.tolist() == [0.5] * 10
    np.testing.assert_allclose(y.numpy(), want @ want, rtol=1e-9, atol=1e-9)
    assert abs(layer.weight.detach().numpy()).max() <= 10**-0.5
    again = y
    for _ in range(20):
        again = again @ x / 700
    assert torch.isfinite(again).all().item()


@pytest.mark.parametrize("seconds", [0.03, 0.1, 0.2])
def test_an_operation_that_made_the_program_too_long_has_happened(seconds):
    """Each statement happens once: the interrupt comes between two of them."""
    x, y, done = torch.zeros(300_000), torch.zeros(300_000), 0
    with alarm_after(seconds):
        while done < 20_000:
            x += 1
            y += x
            done += 1
    at, values = x[0].item(), x.numpy()
    assert at in (done, done + 1) and values.min() == values.max()
    sums, values = y[0].item(), y.numpy()
    assert values.min() == values.max()
    exact = [np.float32(0)]
    for k in range(1, done + 2):
        exact.append(exact[-1] + np.float32(k))
    assert sums in (exact[done], exact[done + 1])


@pytest.mark.parametrize("seconds", [0.02, 0.06])
def test_an_interrupted_operation_on_exposed_memory_has_not_happened(seconds):
    """NumPy sees the memory: what did not run at once must not run later."""
    seen = np.zeros(2_000_000)
    x = torch.from_numpy(seen)
    with alarm_after(seconds):
        for _ in range(10_000):
            x.add_(torch.exp(torch.sin(x)))
    assert (seen == seen[0]).all()
    before = seen[0]
    assert (torch.ones(3) + 1).sum().item() == 6
    assert x[0].item() == before and (seen == before).all()


def momentum_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
        lambda p: torch.optim.Adam(p, 0.001),
        lambda p: torch.optim.AdamW(p, 0.001, amsgrad=True),
    ],
    ids=["sgd", "adam", "amsgrad"],
)
def test_optimiser_steps_happen_or_not(make):
    """Interrupted anywhere, a step has been done wholly, with its state, or not at all."""
    torch.manual_seed(1)
    x, target = torch.randn(512, 64), torch.randn(512, 1)

    def step(model, optimiser):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(model(x), target).backward()
        optimiser.step()

    model = momentum_model()
    optimiser = make(model.parameters())
    for k in range(12):
        with alarm_after(0.002 + 0.004 * k):
            for _ in range(30):
                step(model, optimiser)
    state = optimiser.state_dict()["state"]
    assert set(map(len, state.values())) == {len(state[0])}
    if "step" in state[0]:
        assert len({float(s["step"]) for s in state.values()}) == 1
        steps = int(float(state[0]["step"]))
        plain = momentum_model()
        undisturbed = make(plain.parameters())
        for _ in range(steps):
            step(plain, undisturbed)
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            assert torch.equal(p, q)
    for p in model.parameters():
        assert torch.isfinite(p).all().item()


# ---- subinterpreters ----

SUBINTERPRETER = """
import sys
import _xxsubinterpreters as sub
if sys.argv[1] == "after":
    import simt.torch as t
    t.ones(3).sum().item()
refused = 0
for _ in range(2):
    i = sub.create()
    try:
        sub.run_string(i, "import simt._core")
    except Exception as e:
        refused += "ImportError" in str(e) and "subinterpreter" in str(e)
    sub.destroy(i)
import simt.torch as t
assert refused == 2
assert isinstance(t.ones(3), t.Tensor) and t.ones(3).tolist() == [1, 1, 1]
try:
    t.ones(3)[10]
except IndexError:
    print("fine")
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python itself refuses from 3.12 on")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_subinterpreter_is_refused(when):
    assert run(SUBINTERPRETER, when) == "fine\n"
