"""Numba kernels made by generators: atomics under contention, warp operations under partial masks,
random control flow. The reference is the simulator of tests/differential, which runs the same text,
or a property that holds in any order of the threads.
"""

import random
from collections import Counter

import numpy as np
import pytest
from numba_face import cuda, simulator, small
from numba_source import load

# ---- atomics ----

INTEGERS = [np.int32, np.uint32, np.int64, np.uint64]
NUMBERS = [*INTEGERS, np.float32, np.float64]
ATOMICS = {
    "add": NUMBERS,
    "sub": NUMBERS,
    "max": NUMBERS,
    "min": NUMBERS,
    "nanmax": NUMBERS,
    "nanmin": NUMBERS,
    "and_": INTEGERS,
    "or_": INTEGERS,
    "xor": INTEGERS,
    "inc": [np.uint32, np.uint64],
    "dec": [np.uint32, np.uint64],
    "exch": INTEGERS,
}
CONTENTION = """
@cuda.jit
def in_global(cells, index, values, old):
    i = cuda.grid(1)
    if i < values.size:
        old[i] = cuda.atomic.{name}(cells, {place}, values[i])

@cuda.jit
def in_shared(cells, index, values, old):
    mine = cuda.shared.array({shape}, {dtype})
    tid = cuda.threadIdx.x
    if tid < {count}:
        mine[{copied}] = cells[{copied}]
    cuda.syncthreads()
    for i in range(tid, values.size, cuda.blockDim.x):
        old[i] = cuda.atomic.{name}(mine, {place}, values[i])
    cuda.syncthreads()
    if tid < {count}:
        cells[{copied}] = mine[{copied}]
"""
ONE_DIMENSION = {"place": "index[i]", "shape": "3", "count": 3, "copied": "tid"}
TWO_DIMENSIONS = {
    "place": "(index[i] // 2, index[i] % 2)",
    "shape": "(2, 2)",
    "count": 4,
    "copied": "tid // 2, tid % 2",
}


def contention_kernels(name, dtype, layout):
    source = CONTENTION.format(name=name, dtype=f"np.{np.dtype(dtype).name}", **layout)
    space = load(source, cuda=cuda, np=np)
    return space["in_global"], space["in_shared"]


def check_chain(name, before, after, values, old):
    """All operations on a cell can be put in one order: their (old, new) are a path of edges."""
    apply = getattr(simulator.atomic, name)
    degree = Counter({before.item(): -1})
    degree[after.item()] += 1
    for value, start in zip(values, old, strict=True):
        cell = np.array([start])
        apply(cell, 0, value)
        degree[start.item()] += 1
        degree[cell[0].item()] -= 1
    assert not any(degree.values()), (name, before, after)


class _Still:
    """The simulator's atomics outside of a launch."""

    def pause(self, chance):
        pass


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_under_contention(name, monkeypatch):
    monkeypatch.setattr(simulator, "_launch", _Still())
    rng = np.random.default_rng(1)
    n = small(1000, 60)
    for dtype in ATOMICS[name]:
        for layout in (ONE_DIMENSION, TWO_DIMENSIONS):
            places = layout["count"]
            index = rng.integers(0, places, n).astype(np.int64)
            values = rng.integers(0, 20, n).astype(dtype)
            start = rng.integers(0, 20, places).astype(dtype)
            in_global, in_shared = contention_kernels(name, dtype, layout)
            for kernel, grid in ((in_global, -(-n // 96)), (in_shared, 1)):
                cells = start.reshape((2, 2) if places == 4 else 3).copy()
                old = np.zeros(n, dtype)
                if simulator is not cuda:
                    kernel[grid, 96](cells, index, values, old)
                else:
                    monkeypatch.undo()
                    kernel[grid, 96](cells, index, values, old)
                    monkeypatch.setattr(simulator, "_launch", _Still())
                after = cells.ravel()
                for k in range(places):
                    here = index == k
                    check_chain(name, start[k], after[k], values[here], old[here])


def test_atomic_max_and_min_of_nan():
    """nanmax and nanmin pass over NaN."""
    source = """
@cuda.jit
def kernel(values, out):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.nanmax(out, 0, values[i])
        cuda.atomic.nanmin(out, 1, values[i])
"""
    kernel = load(source, cuda=cuda)["kernel"]
    for dtype in (np.float32, np.float64):
        values = np.array([np.nan, -3, 7, np.nan, 2], dtype)
        out = np.full(2, np.nan, dtype)
        kernel[2, 4](values, out)
        assert out.tolist() == [7, -3]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_any_operation_by_compare_and_swap(dtype):
    source = """
@cuda.jit
def kernel(cells, values):
    i = cuda.grid(1)
    if i < values.size:
        seen = cells[i % 2]
        while True:
            before = seen
            seen = cuda.atomic.cas(cells, i % 2, before, before * values[i] % 1000003)
            if seen == before:
                break
"""
    kernel = load(source, cuda=cuda)["kernel"]
    values = np.random.default_rng(2).integers(1, 100, small(300, 40)).astype(dtype)
    cells = np.ones(2, dtype)
    kernel[-(-values.size // 64), 64](cells, values)
    for k in range(2):
        product = 1
        for v in values[k::2].tolist():
            product = product * v % 1000003
        assert cells[k] == product


# ---- warps ----

WARP_EXPRESSIONS = {
    "shfl": "cuda.shfl_sync(mask, v, source[lane])",
    "up": "cuda.shfl_up_sync(mask, v, up[lane])",
    "down": "cuda.shfl_down_sync(mask, v, down[lane])",
    "xor": "cuda.shfl_xor_sync(mask, v, lane ^ source[lane])",
    "ballot": "cuda.ballot_sync(mask, v > limit)",
    "all": "int(cuda.all_sync(mask, v > limit))",
    "any": "int(cuda.any_sync(mask, v > limit))",
    "eq": "int(cuda.eq_sync(mask, v > limit))",
    "match": "cuda.match_any_sync(mask, v % 3)",
    "match all": "cuda.match_all_sync(mask, v % 3)[0]",
}
WARP_SHAPES = {
    # every lane brings its own group's mask to the same operation
    "together": """
    r = {expression}
""",
    # each group in a branch of its own
    "branches": """
    if group == 0:
        r = {expression}
    elif group == 1:
        v += 1
        r = {expression}
    else:
        r = {expression} + 1
""",
    # groups leave the loop at different times
    "loop": """
    for k in range(group + 2):
        v = (v * 7 + (r & 255)) % 50
        r = {expression}
        cuda.syncwarp(mask)
""",
    # and some lanes of the warp have left for good
    "after return": """
    if group == 1:
        out[i] = -5
        return
    r = {expression}
""",
}
WARP_KERNEL = """
@cuda.jit
def kernel(values, groups, masks, source, up, down, limit, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    group = groups[lane]
    mask = masks[lane]
    v = values[i]
    r = 0
{shape}
    out[i] = r
"""


def random_groups(rng):
    """Three groups of lanes, and for each lane partners within its group."""
    groups = [rng.randrange(3) for _ in range(32)]
    lanes = {g: [k for k in range(32) if groups[k] == g] for g in range(3)}
    source = [rng.choice(lanes[g]) for g in groups]
    up = [k - rng.choice([j for j in lanes[g] if j <= k]) for k, g in enumerate(groups)]
    down = [rng.choice([j for j in lanes[g] if j >= k]) - k for k, g in enumerate(groups)]
    masks = [sum(1 << j for j in lanes[g]) for g in groups]
    as_array = lambda x: np.array(x, np.int64)
    return tuple(as_array(x) for x in (groups, masks, source, up, down))


@pytest.mark.parametrize("shape", WARP_SHAPES)
@pytest.mark.parametrize("operation", WARP_EXPRESSIONS)
def test_warp_operations_under_partial_masks(operation, shape):
    rng = random.Random(f"{operation} {shape}")
    text = WARP_SHAPES[shape].format(expression=WARP_EXPRESSIONS[operation])
    source = WARP_KERNEL.format(shape=text)
    kernel = load(source, cuda=cuda)["kernel"]
    expected_kernel = load(source, cuda=simulator)["kernel"]
    for _ in range(2):
        arrays = random_groups(rng)
        values = np.array([rng.randrange(6) for _ in range(96)], np.int64)
        out, expected = np.zeros((2, 96), np.int64)
        kernel[1, 96](values, *arrays, 2, out)
        expected_kernel[1, 96](values, *arrays, 2, expected)
        if operation in ("ballot", "match", "match all"):  # masks are int32 in Numba
            out, expected = out & 0xFFFFFFFF, expected & 0xFFFFFFFF
        np.testing.assert_array_equal(out, expected)


# ---- control flow ----


SIZES = [f"cuda.{size}.{axis}" for size in ("blockDim", "gridDim") for axis in "xyz"]
SIZES += ["cuda.gridsize(1)", "cuda.warpsize"]
PLACES = [f"cuda.{place}.{axis}" for place in ("threadIdx", "blockIdx") for axis in "xyz"]
PLACES += ["cuda.laneid"]


class Program:
    """A random kernel: integer variables x, y, z; h is a hash of the way taken.

    Every value stays small, every loop is short, no variable is read before it has a value.
    With `meeting`, a warp operation on the value v, lanes meet at it anywhere. Launches have `dims`
    dimensions; with `apart`, a thread knows its number in the grid, not its place in its block.
    """

    def __init__(self, seed, barriers, meeting=None, dims=1, apart=False):
        self.random = random.Random(seed)
        self.barriers = barriers
        self.meeting = meeting
        self.dims = dims
        self.has_loops = not apart or self.random.random() < 0.5  # threads part in them
        self.coordinates = SIZES + ["gx", "gy", "gz"][:dims] * 3
        if not apart:
            self.coordinates += PLACES
        self.lines, self.counters = [], []
        self.serial = 0
        self.budget = 40

    # expressions

    def value(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.25:
            names = ["x", "y", "z", "i", "data[i]", "n", str(r.randint(-9, 9)), *self.counters]
            return r.choice(r.choices([names, self.coordinates], [3, 1])[0])
        a = self.value(depth - 1)
        kind = r.randrange(13)
        if kind == 12:
            return f"(i * {r.choice(self.coordinates)} {r.choice('+-')} {a}) % 1009"
        if kind < 3:
            return f"({a} {r.choice('+-')} {self.value(depth - 1)})"
        if kind == 3:
            return f"({a} * {self.value(depth - 1)} % 1009)"
        if kind == 4:
            return f"({a} {r.choice(['//', '%'])} {r.choice([-7, -3, 2, 3, 5, 8])})"
        if kind == 5:
            return f"({a} {r.choice(['//', '%'])} (abs({self.value(depth - 1)}) % 6 + 1))"
        if kind == 6:
            return f"({a} {r.choice('&|^')} {self.value(depth - 1)})"
        if kind == 7:
            return f"({a} {r.choice(['<<', '>>'])} {r.randint(0, 3)})"
        if kind == 8:
            return f"{r.choice(['min', 'max'])}({a}, {self.value(depth - 1)})"
        if kind == 9:
            return f"({a} if {self.condition(depth - 1)} else {self.value(depth - 1)})"
        if kind == 10:
            return f"({r.choice('xyz')} := {a} % 1009)"
        return f"mix({a}, {self.value(depth - 1)})"

    def condition(self, depth=1):
        r = self.random
        kind = r.randrange(7) if depth else r.randrange(3)
        operator = lambda: r.choice(["<", "<=", "==", "!=", ">", ">="])
        if kind < 3:
            return f"{self.value(1)} {operator()} {self.value(1)}"
        if kind == 3:
            return f"{self.value(0)} {operator()} {self.value(1)} {operator()} {self.value(1)}"
        if kind == 4:
            return f"not ({self.condition(depth - 1)})"
        both = (self.condition(depth - 1), self.condition(depth - 1))
        return f"({both[0]} {r.choice(['and', 'or'])} {both[1]})"

    # statements

    def put(self, indent, text):
        self.lines.append("    " * indent + text)

    def mark(self, indent):
        self.serial += 1
        self.put(indent, f"h = (h * 31 + {self.serial}) % 1000003")

    def block(self, indent, loops, count=None):
        self.mark(indent)
        for _ in range(count or self.random.randint(1, 3)):
            self.statement(indent, loops)

    def statement(self, indent, loops):
        r = self.random
        self.budget -= 1
        kinds = ["assign"] * 4 + ["swap", "augment"]
        if self.budget > 0 and indent < 6:
            kinds += ["if"] * 3 + (["for", "for", "while", "tuple"] if self.has_loops else [])
        if loops:
            kinds += ["break", "continue"]
        kinds += ["return"]
        if self.meeting is not None:
            kinds += ["meeting"] * 6
        getattr(self, "put_" + r.choice(kinds))(indent, loops)

    def put_assign(self, indent, loops):
        self.put(indent, f"{self.random.choice('xyz')} = {self.value(3)} % 1009")

    def put_augment(self, indent, loops):
        name = self.random.choice("xyz")
        self.put(indent, f"{name} {self.random.choice(['+=', '-=', '^='])} {self.value(1)}")
        self.put(indent, f"{name} %= 1009")

    def put_swap(self, indent, loops):
        a, b = self.random.sample("xyz", 2)
        self.put(indent, f"{a}, {b} = {b}, ({a} + {self.value(1)}) % 1009")

    def put_if(self, indent, loops):
        self.put(indent, f"if {self.condition()}:")
        self.block(indent + 1, loops)
        if self.random.random() < 0.3:
            self.put(indent, f"elif {self.condition()}:")
            self.block(indent + 1, loops)
        if self.random.random() < 0.5:
            self.put(indent, "else:")
            self.block(indent + 1, loops)

    def put_loop(self, indent, head, counter):
        read_later = self.random.random() < 0.4
        if read_later:
            self.put(indent, f"{counter} = -1")
        self.put(indent, head)
        self.counters.append(counter)
        self.block(indent + 1, True)
        self.counters.remove(counter)
        if self.random.random() < 0.3:
            self.put(indent, "else:")
            self.block(indent + 1, False)
        if read_later:
            self.put(indent, f"h = (h * 31 + {counter}) % 1000003")

    def put_for(self, indent, loops):
        r = self.random
        self.serial += 1
        counter = f"k{self.serial}"
        bounds = r.choice(
            [
                f"abs({self.value(1)}) % 5",
                str(r.randint(0, 4)),
                f"{r.randint(-2, 2)}, {self.value(0)} % 6",
                f"{self.value(0)} % 7, {r.randint(-2, 3)}, -{r.randint(1, 3)}",
                f"0, {self.value(0)} % 9, {r.randint(1, 4)}",
            ]
        )
        self.put_loop(indent, f"for {counter} in range({bounds}):", counter)

    def put_tuple(self, indent, loops):
        self.serial += 1
        items = ", ".join(self.value(0) for _ in range(self.random.randint(2, 3)))
        self.put_loop(indent, f"for k{self.serial} in ({items}):", f"k{self.serial}")

    def put_while(self, indent, loops):
        self.serial += 1
        counter = f"k{self.serial}"
        self.put(indent, f"{counter} = 0")
        self.put(indent, f"while {counter} < 5 and {self.condition()}:")
        self.put(indent + 1, f"{counter} += 1")
        self.block(indent + 1, True)

    def put_break(self, indent, loops):
        self.put(indent, f"if {self.condition()}:")
        self.mark(indent + 1)
        self.put(indent + 1, "break")

    def put_continue(self, indent, loops):
        self.put(indent, f"if {self.condition()}:")
        self.mark(indent + 1)
        self.put(indent + 1, "continue")

    def put_return(self, indent, loops):
        if self.random.random() < 0.6:
            return self.put_assign(indent, loops)
        self.put(indent, f"if {self.condition()}:")
        self.put(indent + 1, "out[i] = h * 1009 + x")
        self.put(indent + 1, "return")

    def put_meeting(self, indent, loops):
        # of one type everywhere: threads that wait at shuffles of other widths do not meet
        self.put(indent, f"v = np.int64({self.value(1)})")
        self.put(indent, f"h = (h * 31 + {self.meeting}) % 1000003")

    # barriers: only in loops and branches whose conditions are the same for all threads

    def uniform(self, indent, depth, loops):
        r = self.random
        for _ in range(r.randint(2, 3)):
            kind = r.randrange(6) if depth else 0
            if kind < 3:
                self.block(indent, False, 2)
                self.exchange(indent)
            elif kind == 3:
                self.put(
                    indent, f"if {r.choice(['n', *self.counters])} % 3 {r.choice(['!=', '=='])} 1:"
                )
                self.uniform(indent + 1, depth - 1, loops)
                if r.random() < 0.5:
                    self.put(indent, "else:")
                    self.uniform(indent + 1, depth - 1, loops)
            else:
                self.serial += 1
                counter = f"k{self.serial}"
                self.put(indent, f"for {counter} in range({r.randint(1, 3)}):")
                self.counters.append(counter)
                self.uniform(indent + 1, depth - 1, True)
                self.put(indent + 1, f"if {counter} == n % 3:")
                self.put(indent + 2, r.choice(["break", "continue"]))
                self.exchange(indent + 1)
                self.counters.remove(counter)

    def exchange(self, indent):
        self.put(indent, "cache[t] = h")
        self.put(indent, "cuda.syncthreads()")
        shift = self.random.randint(1, 7)
        self.put(indent, f"h = (h * 31 + cache[(t + {shift}) % cuda.blockDim.x]) % 1000003")
        self.put(indent, "cuda.syncthreads()")

    def source(self):
        self.put(0, "@cuda.jit(device=True)")
        self.put(0, "def mix(a, b):")
        self.put(1, "if a < b:")
        self.put(2, "return b - a")
        self.put(1, "return (a * 3 + b) % 1009")
        self.put(0, "@cuda.jit")
        self.put(0, "def kernel(data, n, out):")
        if self.barriers:
            self.put(1, "cache = cuda.shared.array(64, np.int64)")
            self.put(1, "t = cuda.threadIdx.x")
            self.put(1, "cache[t] = 0")
            self.put(1, "cuda.syncthreads()")
        self.put(1, f"{', '.join(['gx', 'gy', 'gz'][: self.dims])} = cuda.grid({self.dims})")
        rows = ["gx", "gy * cuda.gridsize(2)[0]", "gz * cuda.gridsize(2)[0] * cuda.gridsize(2)[1]"]
        self.put(1, f"i = {' + '.join(rows[: self.dims])}")
        self.put(1, "x, y, z, h = i % 5, data[i], 3, 1")
        if self.barriers:
            self.uniform(1, 2, False)
        else:
            self.block(1, False, 5)
        self.put(1, "out[i] = h * 1009 + x")
        return "\n".join(self.lines) + "\n"


def run_program(seed, barriers, block, meeting=None, grid=2, apart=False):
    dims = len(block) if isinstance(block, tuple) else 1
    source = Program(seed, barriers, meeting, dims, apart).source()
    rng = np.random.default_rng(seed)
    threads = int(np.prod(grid) * np.prod(block))
    data = rng.integers(-20, 20, threads)
    out, expected = np.full((2, threads), -1)
    n = int(rng.integers(0, 9))
    load(source, cuda=simulator, np=np)["kernel"][grid, block](data, n, expected)
    load(source, cuda=cuda, np=np)["kernel"][grid, block](data, n, out)
    assert out.tolist() == expected.tolist(), f"seed {seed}, {grid, block}\n{source}"


LAUNCHES = [(4, 32), (2, 1), (5, 7), (3, 33), (1, 100), (40, 1), (2, 300), (1, 1024)]
LAUNCHES += [((2, 3), (3, 5)), ((3, 1), (16, 2)), ((2, 2, 2), (2, 3, 1)), ((1, 1, 5), (4, 1, 2))]


def run_anywhere(seed):
    """In launches of all shapes, of threads that know their blocks, or only the grid."""
    run_program(seed, False, LAUNCHES[seed % 12][1], None, LAUNCHES[seed % 12][0], seed % 5 > 1)


@pytest.mark.parametrize("seeds", [range(k, k + 15) for k in range(0, 60, 15)], ids=str)
def test_random_control_flow(seeds):
    for seed in seeds:
        run_anywhere(seed)


@pytest.mark.parametrize("seeds", [range(k, k + 10) for k in range(100, 140, 10)], ids=str)
def test_random_control_flow_with_barriers(seeds):
    for seed in seeds:
        run_program(seed, True, (1, 6, 35)[seed % 3])


SKIPPED = """
@cuda.jit
def kernel(x, out, calls):
    i = cuda.grid(1)
    v = x[i]
    w = 7.0
    a = (w := v * 2) if v > 0 else (z := -v) + 1
    if v > 1 and (y := v - 1) > 0.5 or (y := 100.0) < v:
        a += y
    inside = -1 < v < (w := w + 1) < cuda.atomic.add(calls, i, 1) + 8
    n = 0
    while (n := n + 1) < 10 and (m := n * 2) < 14 + v:
        pass
    out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = a, w, inside, m, n
"""


def test_what_is_skipped_has_no_effect():
    x = np.array([-3, -0.5, 0.25, 1.25, 1.75, 5.0, 20.0])
    results = []
    for module in (simulator, cuda):
        out, calls = np.zeros((x.size, 5)), np.zeros(x.size, np.int64)
        load(SKIPPED, cuda=module)["kernel"][1, x.size](x, out, calls)
        results.append((out.tolist(), calls.tolist()))
    assert results[0] == results[1]


MEETINGS = {
    "shfl": "cuda.shfl_sync(0xFFFFFFFF, v, i + 5)",
    "up": "cuda.shfl_up_sync(0xFFFFFFFF, v, 3)",
    "ballot": "(cuda.ballot_sync(0xFFFFFFFF, v > 3) & 0xFFFFFFFF)",
    "halves": "cuda.shfl_xor_sync(0xFFFF << (cuda.laneid // 16 * 16), v, 9)",
    "two": "int(cuda.any_sync(3 << (cuda.laneid // 2 * 2), v % 3 == 1))",
    "match": "(cuda.match_any_sync(0xFFFFFFFF, v % 3) & 0xFFFFFFFF)",
}


@pytest.mark.parametrize("meeting", MEETINGS)
def test_random_control_flow_with_warp_operations(meeting):
    for seed in range(200, 210):
        run_program(seed, False, (1, 32, 45)[seed % 3], MEETINGS[meeting])


@pytest.mark.exhaustive
def test_much_random_control_flow():
    for seed in range(1000, 3000):
        run_program(seed, True, (1, 7, 33)[seed % 3])
        run_anywhere(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("meeting", MEETINGS)
def test_much_random_control_flow_with_warp_operations(meeting):
    for seed in range(3000, 3300):
        run_program(seed, False, (1, 32, 45)[seed % 3], MEETINGS[meeting])
