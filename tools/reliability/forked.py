"""The program of forks.py: forked.py MOMENT FACE SEED.

All numbers are whole, so that values are exact. A child exits with 0 when its numbers are right.
"""

import os
import random
import signal
import sys
import threading
import time

import numpy as np
import simt.cupy as cp
import simt.torch as torch
from simt.numba import cuda


@cuda.jit
def add(out, x, n):
    i = cuda.grid(1)
    if i < out.size:
        s = 0
        for k in range(n):
            s += k % 3
        out[i] = x[i] + s


def use_torch():
    x = torch.arange(20_000.0).reshape(100, 200)
    w = torch.ones(200, requires_grad=True)
    optimiser = torch.optim.SGD([w], 1.0)
    (x @ w).sum().backward()
    optimiser.step()
    want = 1 - np.arange(20_000.0).reshape(100, 200).sum(0)
    return w.detach().numpy().tolist() == want.tolist()


def use_cupy():
    a = cp.arange(300_000) % 1000
    return int((cp.sort(a)[::300] + cp.arange(1000)).sum()) == 2 * 999 * 500


def use_numba():
    x = np.arange(100_000)
    d = cuda.to_device(x)
    out = cuda.device_array_like(d)
    add[400, 256](out, d, 30)
    return (out.copy_to_host() == x + 30).all()


USES = {"torch": use_torch, "cupy": use_cupy, "numba": use_numba}


def all_right(face):
    """The face first, then the others."""
    return USES[face]() and all(use() for use in USES.values())


def end_child(right):
    os._exit(0 if right else 1)


def fork(right):
    """Forks; the child ends with right()."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            end_child(right())
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(3)
    return pid


def wait(pids):
    for pid in pids:
        status = os.waitpid(pid, 0)[1]
        assert status == 0, f"a child ended with {status}"


def first(face, rng):
    wait([fork(lambda: all_right(face))])


def pending(face, rng):
    x = torch.arange(100_000) * 3
    y = cp.arange(1000) + 1
    w = torch.zeros(1000, dtype=torch.int64)
    if rng.random() < 0.5:
        use_torch()  # the workers run
    for _ in range(rng.randrange(1, 50)):
        w += 1
    steps = int(w[0].item()) if rng.random() < 0.5 else None
    w += 1

    def right():
        fine = int(x.sum()) == 3 * 99_999 * 50_000 and int(y.sum()) == 500_500
        if steps is not None:
            fine = fine and int(w.sum()) == 1000 * (steps + 1)
        return fine and all_right(face)

    wait([fork(right) for _ in range(2)])
    assert right()


def beside(work, face, forks):
    """Forks while `work` is repeated in another thread."""
    stop, failures = threading.Event(), []

    def repeat():
        while not stop.is_set():
            if not work():
                failures.append(1)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        for _ in range(forks):
            time.sleep(0.02)
            wait([fork(lambda: all_right(face))])
    finally:
        stop.set()
        thread.join()
    assert not failures


def training(face, rng):
    beside(use_torch, face, 3)


def kernel(face, rng):
    beside(lambda: use_numba() and long_kernel(rng.randrange(1, 40)), face, 3)


def long_kernel(n):
    out = np.zeros(1 << 14, np.int64)
    add[64, 256](out, np.zeros(1 << 14, np.int64), 300 * n)
    return (out == 300 * n).all()


def compiling(face, rng):
    """Each round is a new kernel and a new program."""

    def work():
        scope = {"cuda": cuda}
        n = rng.randrange(10**9)
        shape = (rng.randrange(1, 50), rng.randrange(1, 50))
        x = torch.ones(shape) * 2 + n % 100
        return x.sum().item() == shape[0] * shape[1] * (2 + n % 100) and bool(scope)

    beside(work, face, 3)


def handler(face, rng):
    """A signal handler forks while a product or a kernel is on its way; some children come back."""
    y = torch.full((500, 500), 2.0)
    children, state = [], {"child": False}

    def on_signal(*_):
        pid = os.fork()
        if pid:
            children.append(pid)
            return
        signal.alarm(60)
        if not all_right(face):
            os._exit(1)
        if rng.random() < 0.5:
            os._exit(0)
        state["child"] = True

    def work():
        x = y
        for _ in range(20):
            x = (x @ y) / 1000
        steps = torch.zeros(2000)
        for _ in range(10):
            steps += 1
        return x.sum().item() == 500_000 and steps.sum().item() == 20_000

    signal.signal(signal.SIGALRM, on_signal)
    for _ in range(60):
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.05))
        right = work()
        signal.setitimer(signal.ITIMER_REAL, 0)
        if state["child"]:
            end_child(right)
        assert right
        if len(children) >= 4:
            break
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    wait(children)


def thread(face, rng):
    """A worker thread forks while the main thread computes."""
    results = []

    def work():
        try:
            for _ in range(2):
                wait([fork(lambda: all_right(face))])
            results.append(True)
        except AssertionError as error:
            results.append(error)

    t = threading.Thread(target=work)
    t.start()
    while t.is_alive():
        assert use_torch()
    t.join()
    assert results == [True], results


def family(face, rng):
    """Children fork too, with operations of their own pending."""

    def right():
        x = torch.arange(1000) + 1
        child = fork(lambda: int(x.sum()) == 500_500 and all_right(face))
        return os.waitpid(child, 0)[1] == 0 and all_right(face)

    y = torch.arange(10) * 2
    wait([fork(right), fork(right)])
    assert int(y.sum()) == 90


def in_pool(task):
    face, i = task
    return int(torch.full((100,), i).sum()) if all_right(face) else -1


def pool(face, rng, method):
    import multiprocessing

    if rng.random() < 0.5:
        assert use_torch()
    with multiprocessing.get_context(method).Pool(2) as workers:
        got = workers.map_async(in_pool, [(face, i) for i in range(6)]).get(100)
    assert got == [100 * i for i in range(6)], got


def main(moment, face, seed):
    signal.alarm(110)
    rng = random.Random(f"{moment} {face} {seed}")
    if moment in ("fork", "forkserver", "spawn"):
        pool(face, rng, moment)
    else:
        globals()[moment](face, rng)
    assert all_right(face)


if __name__ == "__main__":
    main(*sys.argv[1:4])
