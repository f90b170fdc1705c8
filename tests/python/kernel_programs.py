"""Random kernels as users write them, and what each of their threads must do.

`Program(seed)` has the text of a kernel, its arguments and a launch; `run_threads` runs the text as
plain Python, one thread after the other, with the arrays of `Cells`: these note who wrote what, so
that cells on which two threads work are left out of comparisons. Numbers are small integers (also
as floats): no order of operations changes a bit.
"""

import random
import re
import traceback

import numpy as np
from numba_face import simulator


class TooLong(Exception):
    pass


class Racy(Exception):
    """A thread reads what another one wrote, or the other way round."""


class Cells:
    """An array of the reference: elements are Python numbers; notes threads when it is written."""

    def __init__(self, array, log=None, cells=None):
        self.array, self.log = array, log
        self.cells = cells  # of the whole array, at each element
        self.shape, self.size, self.ndim = array.shape, array.size, array.ndim

    def __len__(self):
        return len(self.array)

    @property
    def T(self):
        return Cells(self.array.T, self.log, None if self.cells is None else self.cells.T)

    def __getitem__(self, index):
        simulator._launch.steps += 1
        if simulator._launch.steps > _One.MOST_STEPS:
            raise TooLong
        try:
            found = self.array[index]
        except IndexError as error:
            report(error)
            parts = index if isinstance(index, tuple) else (index,)
            left = self.ndim - sum(not isinstance(p, slice) for p in parts)
            return Cells(np.zeros((0,) * left)) if left else 0
        if isinstance(found, np.ndarray):
            cells = None if self.cells is None else self.cells[index]
            return Cells(found, self.log, cells)
        self.note(index, False)
        return found.item()

    def __setitem__(self, index, value):
        try:
            self.array[index] = value
        except IndexError as error:
            report(error)
        else:
            self.note(index, True)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def note(self, index, writes):
        if self.log is None:
            return
        cell, me = self.cells[index], simulator._launch.current
        writer, readers = self.log.setdefault(int(cell), [None, set()])
        if writes:
            if readers - {me}:
                raise Racy
            racy = writer is not None and writer is not me
            self.log[int(cell)][0] = "two" if racy else me
        elif writer not in (None, me):
            raise Racy
        else:
            readers.add(me)


class _One:
    """A launch that has one thread at a time and never waits."""

    MOST_STEPS = 100_000

    def __init__(self, grid, block):
        self.grid, self.block, self.steps = grid, block, 0
        self.current = self.fault = None

    def pause(self, chance):
        pass


class Fault:
    """The first index out of bounds of a launch: the message, and where."""

    def __init__(self, error):
        me = simulator._launch.current
        files = [f for f in traceback.extract_stack() if f.filename.startswith("<generated")]
        self.error, self.line = str(error), files[-1].lineno
        self.block, self.thread = me.block.index, me.index


def report(error):
    """The access is dropped; the thread goes on."""
    launch = simulator._launch
    launch.fault = launch.fault or Fault(error)


def run_threads(function, args, grid, block):
    """Runs all threads in order; the first fault, or None."""
    before, simulator._launch = simulator._launch, _One(grid, block)
    launch = simulator._launch
    shape = type("launch", (), {"block": block, "dynamic_bytes": 0})
    try:
        for z, y, x in np.ndindex(*grid[::-1]):
            for launch.current in simulator._Block(shape, simulator._Dim(x, y, z)).threads:
                function(*args)
    finally:
        simulator._launch = before
    return launch.fault


class _Add:
    """Atomics of the reference: integers, and what they return is not looked at."""

    @staticmethod
    def _change(cells, index, change):
        try:
            cells.array[index] = change(cells.array[index].item())
        except IndexError as error:
            report(error)

    @staticmethod
    def add(cells, index, value):
        _Add._change(cells, index, lambda old: old + value)

    @staticmethod
    def max(cells, index, value):
        _Add._change(cells, index, lambda old: max(old, value))

    @staticmethod
    def min(cells, index, value):
        _Add._change(cells, index, lambda old: min(old, value))


class _Local:
    @staticmethod
    def array(shape, dtype):
        return Cells(np.full(shape, 77, dtype))


class Reference:
    """`cuda` for run_threads."""

    local = _Local

    jit = staticmethod(lambda f=None, device=False: f if f is not None else lambda g: g)
    atomic = _Add
    grid, gridsize = staticmethod(simulator.grid), staticmethod(simulator.gridsize)
    threadIdx, blockIdx = simulator.threadIdx, simulator.blockIdx
    blockDim, gridDim = simulator.blockDim, simulator.gridDim


# ---- the generator ----

DEVICE = """
@cuda.jit(device=True)
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x

@cuda.jit(device=True)
def at(a, x, other):
    if 0 <= x < a.size:
        return a[x]
    return other

@cuda.jit(device=True)
def peek(a, x):
    return a[x]

@cuda.jit(device=True)
def total(a, low, high):
    s = 0.0
    for x in range(low, high):
        s += a[x]
    return s
"""
IDIOMS = """\
lo# = 0
hi# = N - 1
while lo# <= hi#:
    mid# = (lo# + hi#) // 2
    if A[mid#] < X:
        lo# = mid# + 1
    else:
        hi# = mid# - 1
s += lo#

p# = X
while p# > 0 and A[p# - 1] > 0:
    p# -= 1
s += p#

p# = 0
for q# in range(N):
    s += A[p#]
    p# = q#

for q# in range(min(N, 8)):
    s += A[N - 1 - q#]

for q# in range(1, min(N, 9)):
    s += A[q#] - A[q# - 1]

e# = N
while e# > 1:
    e# = e# // 2
    s += A[e#]

for q# in A:
    s += q#

for q#, r# in enumerate(A):
    s += A[q#] - r#

l# = cuda.local.array(4, np.int64)
for q# in range(4):
    l#[q#] = q# * X
s += l#[I]

u# = X
for q# in range(3):
    u# = u# + 1 if u# < N - 1 else 0
    s += A[u#]

for q# in range(X, N, step):
    s += A[q#]

for q# in range(N - 1, -1, -1):
    s += A[q#]
    if q# < N - 5:
        break

i# = 0
j# = N - 1
while i# < j#:
    s += A[i#] - A[j#]
    i# += 3
    j# -= 2

b# = -1
for q# in range(min(N, 6)):
    if b# < 0 or A[q#] > A[b#]:
        b# = q#
if b# >= 0:
    s += A[b#]

b# = None
for q# in range(X - 1, X + 2):
    if 0 <= q# < N and mask[q# % 3]:
        b# = q#
if b# is not None:
    s += A[b#]

t# = (A, c)
s += t#[0][I] - t#[1][X]

if mask[X] and X < N:
    s += A[X]

u# = None if X > 2 else X
if u# is None or u# >= N:
    s += 1
else:
    s += A[u#]

while True:
    if s > 3:
        break
    s += abs(A[X]) + 1
""".split("\n\n")
INDEX_TYPES = [np.int32, np.uint8, np.int64, np.uint64, np.int16, np.int8, np.uint32]


class Program:
    WRITTEN = ("out", "o1", "cells")

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.seed, self.lines, self.serial = seed, [], 0
        self.ndim = self.r.choice([1, 1, 2, 2, 3])
        self.kind = self.r.choice(["map", "map", "map", "stride", "while"])
        self.make_arguments()
        self.make_text()

    # arguments

    def length(self):
        return self.r.choice([0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 40, 64, 70, 100])

    def make_launch(self):
        r = self.r
        shapes = {
            1: [(1,), (3,), (8,), (32,), (33,), (64,), (100,), (7,)],
            2: [(1, 1), (8, 4), (3, 5), (16, 2), (1, 8), (32, 1), (7, 3), (2, 17)],
            3: [(1, 1, 1), (4, 2, 2), (3, 1, 2), (1, 5, 1), (8, 2, 1), (2, 3, 4)],
        }
        block = r.choice(shapes[self.ndim])
        most = {1: 150, 2: 24, 3: 8}[self.ndim]
        grid = tuple(r.randint(1, max(1, min(6, most // b))) for b in block)
        pad = (1,) * (3 - self.ndim)
        self.grid, self.block = grid + pad, block + pad
        if r.random() < 0.03:
            self.block = r.choice([(1, 1, 3), (2, 2, 2)])

    def make_arguments(self):
        r = self.r
        self.make_launch()
        threads = [g * b for g, b in zip(self.grid, self.block)]
        near = [max(0, t + r.choice([0, 0, 0, -1, -2, 1, -5, 3])) for t in threads]
        self.extent = near[: self.ndim]
        arrays = {}
        n = r.choice([near[0], near[0], self.length()])
        arrays["a"] = self.numbers((n,))
        arrays["c"] = self.numbers((r.choice([n, n, self.length()]),))
        arrays["m"] = self.numbers((near[1] if self.ndim > 1 else r.randint(0, 5), n))
        arrays["v"] = self.numbers((r.randint(0, 4), max(1, near[1] % 50), n % 50))
        arrays["ix"] = self.indices((r.choice([n, n, self.length()]),), n)
        shape = tuple(self.extent)
        arrays["out"] = self.outputs(shape[::-1] if r.random() < 0.4 else shape)
        arrays["o1"] = self.outputs((r.choice([n, np.prod(shape, dtype=int)]),))
        arrays["cells"] = np.zeros(
            r.choice([1, 3, 8]), r.choice([np.int64, np.int32, np.float64, np.float32])
        )
        self.arrays = arrays
        arrays["mask"] = self.rng.integers(0, 2, r.choice([3, n + 3])).astype(bool)
        self.scalars = {"n": n, "w": self.extent[0], "h": self.extent[-1]}
        self.scalars["step"] = r.choice([-7, -1, 1, 2, 5, 40])
        self.types = [r.choice([int, int, np.int64, np.int32, np.int16]) for _ in range(4)]

    def strided(self, make, shape):
        """An array of that shape, which may lie in memory in another way."""
        r, how = self.r, self.r.randrange(8)
        if how == 0:
            return make(tuple(2 * s + 1 for s in shape))[tuple(slice(1, None, 2) for _ in shape)]
        if how == 1:
            return make(shape)[tuple(slice(None, None, -1) for _ in shape)]
        if how == 2:
            return make(shape[::-1]).T
        if how == 3 and len(shape) > 1:
            return make((*shape[:-1], shape[-1] + r.randint(1, 3)))[..., : shape[-1]]
        return make(shape)

    def numbers(self, shape):
        r = self.r
        dtype = r.choice([np.float64, np.float64, np.float32, np.int64, np.int32])
        make = lambda s: self.rng.integers(-8, 9, s).astype(dtype)
        if r.random() < 0.08:
            return np.broadcast_to(make(shape[-1:]), shape)
        return self.strided(make, shape)

    def indices(self, shape, n):
        r = self.r
        dtype = np.dtype(r.choice(INDEX_TYPES))
        low, high = r.choice([(0, n), (0, n), (-n, n), (-n - 1, n + 1), (0, n + 3)])
        info = np.iinfo(dtype)

        def make(s):
            found = self.rng.integers(low, max(high, low + 1), s)
            found = np.clip(found, info.min, info.max).astype(dtype)
            if r.random() < 0.1 and found.size:
                found.flat[r.randrange(found.size)] = r.choice([info.min, info.max])
            return found

        return self.strided(make, shape)

    def outputs(self, shape):
        dtype = self.r.choice([np.float64, np.float64, np.float32, np.int64])
        return self.strided(lambda s: np.full(s, -7, dtype), shape)

    # expressions

    def put(self, indent, text):
        self.lines.append("    " * indent + text)

    def name(self, letter):
        self.serial += 1
        return f"{letter}{self.serial}"

    def size(self, array, axis=0):
        r = self.r
        whole = [f"{array}.shape[{axis}]"] * 2
        if axis == 0:
            whole.append(f"len({array})")
        if array in ("a", "c", "o1", "ix"):
            whole.append(f"{array}.size")
        if array == "a":
            whole.append("n")
        return r.choice(whole)

    def index(self, size, depth=1):
        """An integer expression, mostly near 0..size."""
        r = self.r
        x = r.choice(self.places[-3:] if r.random() < 0.6 else self.places)
        k = r.randint(1, 3)
        forms = [x] * 8 + [
            f"{x} - {k}",
            f"{x} + {k}",
            f"{x} - 1",
            f"{x} + 1",
            f"({x} + {k}) % {size}",
            f"({x} - {k}) % {size}",
            f"({x} - {k} + {size}) % {size}",
            f"{x} * {k} % {size}",
            f"-{x}",
            f"-1 - {x}",
            f"{size} - 1 - {x}",
            f"{size} - {x}",
            f"min({x} + {k}, {size} - 1)",
            f"max({x} - {k}, 0)",
            f"min(max({x}, 0), {size} - 1)",
            f"clamp({x} - {k}, 0, {size} - 1)",
            f"{x} // {k}",
            f"{x} * {k}",
            f"2 * {x} + 1",
            f"{x} >> 1",
            f"{x} & 7",
            f"{x} ^ 1",
            f"({x} - 1 if {x} > 0 else {size} - 1)",
            f"({x} + 1 if {x} < {size} - 1 else 0)",
            "0",
            "-1",
            str(k),
        ]
        if depth:
            forms += [f"ix[{self.index(self.size('ix'), 0)}]"] * 3
            y = r.choice(self.places)
            forms += [f"{x} + {y}", f"{x} - {y}", f"{x} * {size} + {y}", f"{y} * w + {x}"]
        return r.choice(forms)

    def element(self):
        r = self.r
        kind = r.randrange(11)
        a = r.choice(["a", "a", "c", *self.rows])
        if kind < 5:
            return f"{a}[{self.index(self.size(a))}]"
        if kind == 5:
            x, y = self.index(self.size("m", 0)), self.index(self.size("m", 1))
            return f"m[{x}, {y}]" if r.random() < 0.7 else f"m[{x}][{y}]"
        if kind == 6:
            x, y, z = (self.index(self.size("v", k)) for k in range(3))
            return f"v[{x}, {y}, {z}]"
        if kind == 7:
            return f"at({a}, {self.index(self.size(a))}, {r.randint(-3, 3)})"
        if kind == 8:
            return f"peek({a}, {self.index(self.size(a))})"
        if kind == 9:
            x = self.index(self.size(a), 0)
            return f"total({a}, {x}, {r.choice([f'{x} + 3', f'min({x} + 4, {self.size(a)})'])})"
        x = r.choice(self.places)
        part = r.choice(
            [f"{x}:", f":{x}", "1:", "1:-1", "::2", "::-1", f"{x}:{x} + 3", f"-{x}:", "1::3"]
        )
        return f"{a}[{part}][{self.index(self.size(a), 0)}]"

    def value(self, depth=2):
        r = self.r
        if depth == 0 or r.random() < 0.3:
            return self.element()
        kind = r.randrange(7)
        if kind < 3:
            return f"{self.value(depth - 1)} {r.choice('+-')} {self.value(depth - 1)}"
        if kind == 3:
            return f"{r.randint(-3, 3)} * {self.element()}"
        if kind == 4:
            return f"({self.value(depth - 1)} if {self.condition()} else {self.value(depth - 1)})"
        if kind == 5:
            return f"{r.choice(['min', 'max'])}({self.element()}, {self.element()})"
        return f"(s + {self.element()})"

    def bound(self, x):
        """A condition that keeps x inside of something."""
        r = self.r
        array, axis = r.choice([("a", 0), ("a", 0), ("c", 0), ("m", 0), ("m", 1), ("o1", 0)])
        n = self.size(array, axis)
        if self.coordinates and x in self.coordinates and r.random() < 0.6:
            k = self.coordinates.index(x)
            n = r.choice([f"out.shape[{self.order[k]}]"] * 2 + [["w", "h"][k > 0]])
        return n

    def condition(self, places=None, strict=False):
        r = self.r
        x = r.choice(places or self.places)
        n, k = self.bound(x), r.randint(0, 2)
        forms = [f"{x} < {n}"] * 5 + [
            f"0 < {x} < {n} - 1",
            f"0 <= {x} < {n}",
            f"{x} > 0 and {x} < {n} - 1",
            f"{x} >= {k} and {x} <= {n} - {k + 1}",
            f"{x} <= {n} - 1",
            f"{n} > {x}",
            f"not {x} >= {n}",
            f"{x} + {k} < {n}",
            f"{x} < {n} - {k}",
        ]
        if not strict:
            forms += [
                f"{x} <= {n}",
                f"{x} % 2 == {k % 2}",
                f"{x} != {k}",
                f"{x} == {k}",
                f"{x} > {k} or {x} < {n}",
                f"{x} < {n} or {x} == {k}",
                f"{x} > {r.choice(self.places)}",
                f"a[{x}] > {k}",
                f"{x} < {n} and a[{x}] > {k}",
                f"{x} & 1",
                f"{x} * 2 < {n}",
                f"{n} - {x} > {k}",
            ]
        return r.choice(forms)

    # statements

    def start(self):
        r, axes = self.r, "xyz"[: self.ndim]
        names = list("ijk"[: self.ndim]) if r.random() < 0.5 else list("xyz"[: self.ndim])
        form = r.randrange(5)
        if form < 2:
            self.put(1, f"{', '.join(names)} = cuda.grid({self.ndim})")
        for name, axis in zip(names, axes):
            t, b, d = f"cuda.threadIdx.{axis}", f"cuda.blockIdx.{axis}", f"cuda.blockDim.{axis}"
            if form == 2:
                self.put(1, f"{name} = {t} + {b} * {d}")
            elif form == 3:
                self.put(1, f"{name} = {d} * {b} + {t}")
            elif form == 4:
                self.put(1, f"t{axis} = {t}")
                self.put(1, f"{name} = {b} * {d} + t{axis}")
        self.coordinates, self.places = names, list(names)
        if form == 4 and r.random() < 0.3:
            self.places.append("tx")
        if r.random() < 0.15:
            self.put(1, "b = cuda.blockIdx.x")
            self.places.append("b")
        if self.ndim > 1 and r.random() < 0.3:
            i, j = names[:2]
            self.put(1, f"f = {j} * {r.choice(['w', 'cuda.gridsize(2)[0]'])} + {i}")
            self.places.append("f")

    def guard(self):
        """Returns the indent of what follows."""
        r, indent = self.r, 1
        if r.random() < 0.06:
            return 1
        names = [x for x in self.coordinates if r.random() < 0.95]
        form = r.randrange(5)
        tests = []
        for x in names:
            n = f"out.shape[{self.order[self.coordinates.index(x)]}]"
            tests.append(f"{x} < {n}" if r.random() < 0.6 else self.condition([x], True))
        if not tests:
            return 1
        if form == 0:
            for t in tests:
                self.put(indent, f"if {t}:")
                indent += 1
        elif form == 1:
            self.put(1, f"if {' and '.join(tests)}:")
            indent = 2
        elif form == 2:
            self.put(1, f"if not ({' and '.join(tests)}):")
            self.put(2, "return")
        elif form == 3:
            self.put(1, f"if {' or '.join(f'not ({t})' for t in tests)}:")
            self.put(2, "return")
        else:
            x = names[0]
            n = f"out.shape[{self.order[self.coordinates.index(x)]}]"
            self.put(1, f"if {x} >= {n}{r.choice([f' or {x} < {r.randint(-1, 1)}', ''])}:")
            self.put(2, "return")
            for t in tests[1:]:
                self.put(indent, f"if {t}:")
                indent += 1
        return indent

    def store(self, indent):
        r = self.r
        place = [None] * self.ndim
        for k, axis in enumerate(self.order):
            place[axis] = self.coordinates[k]
            if r.random() < 0.1:
                place[axis] += r.choice([" - 1", " + 1", " - 2", " + 2"])
        text = f"out[{', '.join(place)}]"
        if r.random() < 0.2:
            text = f"o1[{r.choice([self.coordinates[0], self.index('n')])}]"
        self.put(indent, f"{text} = {r.choice(['s', self.value(), self.value()])}")
        if r.random() < 0.2:
            self.put(indent, f"{text} {r.choice(['+=', '-='])} {self.value(1)}")

    def statement(self, indent, depth):
        r = self.r
        kind = r.randrange(13)
        if kind < 2 or depth == 0:
            self.put(indent, f"s {r.choice(['=', '+=', '-='])} {self.value()}")
        elif kind < 5:
            self.store(indent)
        elif kind == 5:
            self.put(indent, f"if {self.condition()}:")
            self.body(indent + 1, depth - 1)
            if r.random() < 0.4:
                self.put(indent, f"elif {self.condition()}:")
                self.body(indent + 1, depth - 1)
            if r.random() < 0.4:
                self.put(indent, "else:")
                self.body(indent + 1, depth - 1)
        elif kind == 6:
            self.loop(indent, depth)
        elif kind == 7:
            self.atomic(indent)
        elif kind == 8:
            x = self.name("p")
            self.put(indent, f"{x} = {self.index(self.size('a'))}")
            if "ix[" not in self.lines[-1]:
                self.places.append(x)
        elif kind == 9:
            x = self.name("row")
            form = r.choice(["m[{}]", "m[:, {}]", "a[{}:]", "v[0, {}]", "m[{}, 1:]", "m.T[{}]"])
            self.put(indent, f"{x} = {form.format(self.index(self.size('m')))}")
            self.rows.append(x)
        elif kind > 10:
            self.idiom(indent)
        else:
            self.put(indent, f"if {self.condition()}:")
            self.put(indent + 1, "return")

    def idiom(self, indent):
        r = self.r
        text, a = r.choice(IDIOMS), r.choice(["a", "a", "c", *self.rows])
        n, x = self.size(a), r.choice(self.places)
        if a in self.rows:
            n = f"len({a})"
        text = text.replace("#", self.name(""))
        for old, new in (("A", a), ("N", n), ("X", x), ("I", None)):
            text = re.sub(rf"\b{old}\b", new or self.index("4", 0), text)
        for line in text.rstrip().split("\n"):
            self.put(indent, line)

    def atomic(self, indent):
        r = self.r
        index = r.choice(["0", f"{r.choice(self.places)} % cells.size", self.index("cells.size")])
        operation = r.choice(["add", "add", "max", "min"]) if self.one_atomic is None else None
        self.one_atomic = operation or self.one_atomic
        value = r.choice(["1", str(r.randint(-5, 5)), "int(s)"])
        self.put(indent, f"cuda.atomic.{self.one_atomic}(cells, {index}, {value})")

    def loop(self, indent, depth):
        r = self.r
        k, x = self.name("k"), r.choice(self.places)
        n = self.size("a")
        if r.random() < 0.6:
            bounds = r.choice(
                [
                    str(r.randint(0, 5)),
                    "min(n, 6)",
                    f"{x}, min({x} + 4, {n})",
                    f"max({x} - 2, 0), min({x} + 3, {n})",
                    f"{x} - 1, {x} + 2",
                    "-1, 2",
                    f"0, {n}, {r.choice(['7', '5', 'max(w, 4)'])}",
                    f"{n} - 1, -1, -9",
                    f"min({x}, 5), 0, -1",
                    f"{x}, {n}, 11",
                ]
            )
            self.put(indent, f"for {k} in range({bounds}):")
            self.nest(indent + 1, depth, k)
        else:
            start, test, step = r.choice(
                [
                    ("0", f"{k} < min({n}, 5)", f"{k} += 1"),
                    (x, f"{k} < {n}", f"{k} += {r.choice(['9', 'cuda.blockDim.x + 7'])}"),
                    (f"min({x}, {n} - 1)", f"{k} >= 0", f"{k} -= 9"),
                    (f"{n} - 1", f"{k} > 0", f"{k} //= 2"),
                    (x, f"0 <= {k} < {n} and {k} < {x} + 30", f"{k} = 2 * {k} + 1"),
                ]
            )
            self.put(indent, f"{k} = {start}")
            self.put(indent, f"while {test}:")
            self.nest(indent + 1, depth, k)
            self.put(indent + 1, step)

    def nest(self, indent, depth, counter):
        """The body of a loop: names made in it are not used outside."""
        places, rows = list(self.places), list(self.rows)
        self.places += [counter] * 3
        if self.r.random() < 0.15:
            self.put(indent, f"if {self.condition([counter])}:")
            self.put(indent + 1, "break")
        self.put(indent, f"s += {self.value(1)}")
        if depth > 1 and self.r.random() < 0.4:
            self.statement(indent, depth - 1)
        self.places, self.rows = places, rows

    def body(self, indent, depth):
        places, rows = list(self.places), list(self.rows)
        for _ in range(self.r.randint(1, 3)):
            self.statement(indent, depth)
        self.places, self.rows = places, rows

    def make_text(self):
        r = self.r
        self.rows, self.coordinates, self.one_atomic = [], [], None
        same = self.arrays["out"].shape == tuple(self.extent)
        self.order = list(range(self.ndim)) if same else list(range(self.ndim))[::-1]
        self.put(0, "@cuda.jit")
        self.put(0, f"def kernel({', '.join([*self.arrays, *self.scalars])}):")
        self.start()
        self.put(1, "s = 0.0")
        if self.kind == "map":
            indent = self.guard()
            self.body(indent, 3)
            self.store(indent)
        else:
            axis = r.randrange(self.ndim)
            x = self.coordinates[axis]
            letter = "xyz"[axis]
            step = r.choice([f"cuda.blockDim.{letter} * cuda.gridDim.{letter}"] * 2)
            if self.ndim == 1 and r.random() < 0.5:
                step = "cuda.gridsize(1)"
            limit = f"out.shape[{self.order[axis]}]"
            others = [c for c in self.coordinates if c != x]
            indent = 1
            for c in others:
                self.put(indent, f"if {c} < out.shape[{self.order[self.coordinates.index(c)]}]:")
                indent += 1
            if self.kind == "stride":
                self.put(indent, f"for q in range({x}, {limit}, {step}):")
            else:
                self.put(indent, f"q = {x}")
                self.put(indent, f"while q < {limit}:")
            self.coordinates[axis] = "q"
            self.places.append("q")
            self.body(indent + 1, 2)
            self.store(indent + 1)
            if self.kind == "while":
                self.put(indent + 1, f"q += {step}")
        self.source = DEVICE + "\n".join(self.lines) + "\n"

    # runs

    def arguments(self, wrap=None):
        """Fresh copies that lie in memory as the originals do."""
        fresh = []
        for name, array in self.arrays.items():
            if name in self.WRITTEN:
                base = array if array.base is None else array.base
                lying = base.copy(order="K")
                offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
                array = np.ndarray(array.shape, array.dtype, lying, offset, array.strides)
            fresh.append(array if wrap is None else wrap(name, array))
        if wrap is not None:
            return [*fresh, *self.scalars.values()]
        return [*fresh, *(t(v) for t, v in zip(self.types, self.scalars.values()))]
