"""Programs under random limits of address space: MemoryError, and they go on.

Each compiles kernels, computes arrays or trains until a hundred statements have failed or its
rounds are over; then the limit goes, and all of it must give the right values again.
"""

import random

from common import run_python

CHILD = """
import gc, linecache, resource, sys
import faulthandler
faulthandler.enable()
import numpy as np
import simt.cupy as cp
import simt.torch as torch
from simt.numba import cuda

program, room, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def kernel(q, lines):
    text = "def k(a):\\n" + "".join(f"    x{j} = a[0]*{j}+{q}\\n" for j in range(lines))
    text += f"    a[0] = x{lines - 1}\\n"
    name = f"<k{q}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    try:
        exec(compile(text, name, "exec"), space)
    except SystemError:  # CPython's own
        raise MemoryError from None
    return cuda.jit(space["k"])


keep = []


def compiling(i):
    a = np.ones(1)
    k = kernel(i, 60)
    k[1, 1](a)
    keep.append(k)
    assert a[0] == 59 + i, a


def computing(i):
    n = 1000 + 997 * (i % 50)
    x = cp.arange(n, dtype=cp.float64)
    y = (x * i + 1)[::2].sum()
    half = (n + 1) // 2
    assert float(y) == i * half * (half - 1) + half, y  # not by NumPy, which crashes without memory
    m = cp.ones((150 + i % 7, 300)) @ cp.ones((300, 200 + i % 5))
    assert float(m[3, 4]) == 300
    assert cp.sort(-x)[0].item() == 1 - n
    keep.append(x)


def training(i):
    torch.manual_seed(i)
    model = torch.nn.Sequential(
        torch.nn.Linear(20 + i, 30 + i % 3), torch.nn.ReLU(), torch.nn.Linear(30 + i % 3, 5)
    )
    optimizer = torch.optim.Adam(model.parameters())
    loss = torch.nn.functional.cross_entropy(model(torch.ones(8, 20 + i)), torch.arange(8) % 5)
    loss.backward()
    optimizer.step()
    value = loss.item()
    assert 0.1 < value < 10, value
    keep.append(model)


step = {"compiling": compiling, "computing": computing, "training": training}[program]
step(0)
keep.clear()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + room * 1000, resource.RLIM_INFINITY))
failed = done = 0
for i in range(1, rounds):
    try:
        step(i)
        done += 1
    except MemoryError:
        failed += 1
        if failed == 100:
            break
        if failed % 10 == 0:
            keep.clear()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
keep.clear()
gc.collect()
for s in (compiling, computing, training):
    s(3)
print("right", done, failed)
"""
PROGRAMS = ["compiling", "computing", "training"]


def arguments(parser):
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=300)


def run(options):
    chance = random.Random(options.seed)
    wrong = hit = 0
    for number in range(options.count):
        program = PROGRAMS[number % len(PROGRAMS)]
        room = int(10 ** chance.uniform(1.5, 4.8))  # kB: none to 60 MB
        outcome = run_python(CHILD, program, room,
                             options.rounds, timeout=300)  # fmt: skip
        words = outcome.out.split()
        if outcome.code == 0 and words[:1] == ["right"]:
            hit += words[2] != "0"
            continue
        wrong += 1
        print(f"{program} with {room} kB more: {outcome}", flush=True)
    print(f"limits: {options.count} tried, {hit} of them with failed statements")
    return wrong
