"""How the time to compile grows with a kernel's size, for kernels of each shape.

usage: PYTHONPATH=python python tools/compile_growth.py [--only NAME] [--sizes 1000,10000,50000]

Prints the processor seconds at each size and the exponent of growth between the last two: 1 is
linear, 2 the square. Sizes count operations. What this prints is for people; tests compile such
kernels too (tests/python/test_compile_growth.py), without looking at a clock.
"""

import argparse
import linecache
import math
import time

import numpy as np
from simt.numba import cuda

SHAPES = {}
DEVICE_SHAPES = {}  # those that Python alone can't run


def shape(*before, after="o[i] = x", table=SHAPES):
    """Enters a shape in the table: its lines for about n operations, between these."""

    def enter(lines):
        def whole(n):
            return [*before, *lines(n), *([after] if after else [])]

        table[lines.__name__] = whole
        return whole

    return enter


@shape("x = a[i]", "y = x + 1", after="o[i] = x + y")
def straight(n):
    """A chain of sums and products of a few variables."""
    for k in range(n // 2):
        yield f"{'xy'[k % 2]} = x * {k % 7 + 2} + y"


@shape("x = a[i]")
def constants(n):
    """As many different float constants as operations."""
    for k in range(n):
        yield f"x = x + {k + 0.5}"


@shape()
def live(n):
    """Variables that all live at once."""
    for k in range(n // 2):
        yield f"v{k} = a[i] * {k + 1}"
    yield "x = 0.0"
    for k in range(n // 2):
        yield f"x = x + v{k}"


@shape(after=None)
def loads(n):
    """Loads and stores of many elements."""
    for k in range(n // 8):
        yield f"o[i + {k}] = a[i + {k}] + a[i + {k + 1}]"


@shape("x = a[i]")
def nests(n):
    """Nests of ten loops and ifs, one after the other."""
    for k in range(n // 20):
        for d in range(10):
            yield "    " * d + (f"for k{d} in range({d % 3 + 1}):" if d % 2 else f"if x > {d + k}:")
        yield "    " * 10 + "x = x + 1.5"


@shape("x = a[i]", "y = 0.0", after="o[i] = y")
def ifs(n):
    """Ifs in a row."""
    for k in range(n // 3):
        yield f"if x > {k % 100}:"
        yield f"    y = y * x + {k}"


@shape(after="o[i] = a[i]")
def guards(n):
    """Early returns in a row."""
    for k in range(n // 3):
        yield f"if i == {k + 1000}:"
        yield "    return"


@shape()
def variables(n):
    """As many variables as ifs."""
    for k in range(n // 6):
        yield f"v{k} = a[i]"
    for k in range(n // 6):
        yield f"if a[i] > {k % 100}:"
        yield f"    v{k} = v{k} + {k}"
    yield "x = 0.0"
    for k in range(n // 6):
        yield f"x += v{k}"


@shape("x = a[i]")
def loops(n):
    """Loops in a row."""
    for k in range(n // 6):
        yield f"for k in range({k % 5}):"
        yield "    x = x * 1.5 + k"


@shape("x = 0.0")
def sums(n):
    """Loops that only read, in a row."""
    for k in range(n // 12):
        yield f"for k in range(i, {k % 50}):"
        yield "    x += a[k]"


@shape("x = a[i]", "for k in range(i + 3):")
def body(n):
    """One loop with a long body."""
    for k in range(n):
        yield f"    x = x + {k % 9 + 0.5}"


@shape("x = a[i]")
def calls(n):
    """Calls of device functions."""
    for k in range(n // 5):
        yield f"x = f{k % 3}(x, {k % 50})"


@shape("x = a[i]")
def chains(n):
    """Long expressions."""
    for _ in range(n // 100):
        yield "x = " + " + ".join(f"x * {j + 2}" for j in range(50))


@shape("x = a[i]")
def wide(n):
    """Statements of one line."""
    yield "; ".join(f"x = x + {k % 7 + 0.5}" for k in range(n))


@shape(after=None)
def stores(n):
    """Values that are all computed before the first is stored."""
    for k in range(n // 4):
        yield f"v{k} = a[i + {k}] * 2.5"
    for k in range(n // 4):
        yield f"o[i + {k}] = v{k}"


@shape("t = cuda.threadIdx.x", "x = a[i]", table=DEVICE_SHAPES)
def warps(n):
    """Warp operations, each in a branch that some lanes take."""
    for k in range(n // 4):
        yield f"if t < {k % 7 + 1}:"
        yield f"    x += cuda.shfl_sync({(1 << k % 7 + 1) - 1}, x, 0)"


@shape("x = a[i]", table=DEVICE_SHAPES)
def masks(n):
    """Warp operations of the lanes that are there, where data parts them."""
    for k in range(n // 5):
        yield f"if x > {k % 7 + 0.5}:"
        yield "    cuda.syncwarp(cuda.activemask())"
        yield "    x += 1.0"


@shape("t = cuda.threadIdx.x", "x = a[i]", table=DEVICE_SHAPES)
def crowds(n):
    """Warp operations in branches of many different groups of lanes."""
    for k in range(n // 5):
        mask = (k * 2654435761 >> 8) % 255 + 1
        yield f"if {mask} >> t & 1:"
        yield f"    x += cuda.shfl_sync({mask}, x, 0)"


@shape("x = a[i]")
def spins(n):
    """Loops that wait for what other threads write, in a row."""
    for k in range(n // 8):
        yield f"while o[{k}] > a[{k}] + 1e9:"
        yield "    pass"


@shape()
def rotations(n):
    """A loop in which as many variables change places, of which one differs between threads."""
    names = [f"v{k}" for k in range(n // 3)]
    yield from (f"{name} = {k}.0" for k, name in enumerate(names))
    yield f"{names[-1]} = a[i]"
    yield "for k in range(2 + int(a[0])):"
    yield "    " + ", ".join(names) + " = " + ", ".join(names[1:] + names[:1])
    yield "x = 0.0"
    yield from (f"x += {name} * {k + 1}" for k, name in enumerate(names))


@shape(table=DEVICE_SHAPES)
def shuffles(n):
    """Likewise in no order, in threads that run singly."""
    names = [f"v{k}" for k in range(n // 3)]
    new = [names[k * 7919 % len(names)] for k in range(len(names))]
    yield "while cuda.atomic.max(o, i, 1.0) < 1.0:"
    yield "    pass"
    yield from (f"{name} = a[i] + {k}" for k, name in enumerate(names))
    yield "for k in range(3):"
    yield "    " + ", ".join(names) + " = " + ", ".join(new)
    yield "x = 0.0"
    yield from (f"x += {name} * {k + 1}" for k, name in enumerate(names))


FUNCTIONS = """
@cuda.jit(device=True)
def f0(x, k):
    return x * k + 1
@cuda.jit(device=True)
def f1(x, k):
    if x > k:
        return x - k
    return x
@cuda.jit(device=True)
def f2(x, k):
    return f0(x, k) + f1(x, k)
"""


def kernel_of(shape, n):
    """The kernel of a shape with about n operations."""
    lines = ["@cuda.jit", "def kernel(o, a):", "    i = cuda.grid(1)"]
    lines += ["    " + line for line in (SHAPES | DEVICE_SHAPES)[shape](n)]
    source = FUNCTIONS + "\n".join(lines) + "\n"
    name = f"<{shape} {n}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"cuda": cuda, "__name__": "growth"}
    exec(compile(source, name, "exec"), space)
    return space["kernel"]


def seconds(shape, n):
    """Processor seconds to compile a kernel and run it once."""
    kernel, out = kernel_of(shape, n), np.zeros(n + 10)
    a = np.ones(n + 10)
    start = time.process_time()
    kernel[1, 8](out, a)
    return time.process_time() - start


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="shapes, with commas between them")
    parser.add_argument("--sizes", default="1000,10000,50000")
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    print(f"{'shape':12}" + "".join(f"{n:>10}" for n in sizes) + "  exponent")
    for shape in options.only.split(",") if options.only else SHAPES | DEVICE_SHAPES:
        times = [max(seconds(shape, n), 1e-4) for n in sizes]
        growth = math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])
        print(f"{shape:12}" + "".join(f"{t:10.3f}" for t in times) + f"{growth:10.2f}", flush=True)


if __name__ == "__main__":
    main()
