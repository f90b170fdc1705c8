"""Warp operations to which lanes come at different times: in other rounds of a loop, past its end,
from other branches. Lanes that the mask names wait for each other wherever they are, as on a GPU
since Volta; what can't come is an error. Kernels whose lanes come together run as one gang: fast.
"""

import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from numba_face import MODE, cuda, float64, simulator

if MODE == "simulator":
    pytest.skip("compares with the simulator", allow_module_level=True)

FULL = 0xFFFFFFFF
HERE = os.path.abspath(__file__)


def in_python(kernel):
    """The same functions on the reference in Python."""
    names = {**globals(), "cuda": simulator, "float64": np.float64}
    for name, value in globals().items():
        if hasattr(value, "py_func"):
            names[name] = types.FunctionType(value.py_func.__code__, names)
    return simulator.jit(names[kernel.py_func.__name__])


def both(kernel, grid, block, *args):
    """What simt and the reference leave in the last argument."""
    results = []
    for launched in (kernel, in_python(kernel)):
        copies = [a.copy() for a in args]
        launched[grid, block](*copies)
        results.append(copies[-1])
    return results


# ---- lanes that come one by one ----


@cuda.jit
def other_rounds(values, out):
    """Lane k goes k + 1 rounds; those who are done have ended."""
    lane = cuda.laneid
    total = 0
    for k in range(lane + 1):
        total += cuda.shfl_sync(FULL, values[lane] * (k + 1), 31)
    out[cuda.grid(1)] = total


def test_other_rounds():
    values = np.arange(32) + 7
    out = np.zeros(64, np.int64)
    other_rounds[2, 32](values, out)
    lane = np.arange(64) % 32
    np.testing.assert_array_equal(out, values[31] * (lane + 1) * (lane + 2) // 2)


@cuda.jit
def past_the_end(x, out):
    """Grid-stride loop with the full mask, whose last round not all lanes of a warp go."""
    i = cuda.grid(1)
    while i < x.size:
        out[i] = cuda.shfl_down_sync(FULL, x[i], 1) + cuda.popc(cuda.ballot_sync(FULL, True))
        i += cuda.gridsize(1)


@pytest.mark.parametrize("n", [1, 31, 32, 45, 64, 100])
def test_loops_that_some_lanes_leave_first(n):
    got, want = both(past_the_end, 1, 32, np.arange(n) * 3, np.zeros(n, np.int64))
    np.testing.assert_array_equal(got, want)


@cuda.jit
def after_a_break(x, out):
    """Who breaks out meets the others at the next operation of the kind, behind the loop."""
    i = cuda.grid(1)
    rounds = 0
    while True:
        waiting = cuda.ballot_sync(FULL, x[i] > rounds)
        if x[i] <= rounds:
            break
        rounds += 1
    last = cuda.ballot_sync(FULL, x[i] % 2 == 0)
    out[i] = cuda.popc(waiting) * 100 + cuda.popc(last)


def test_after_a_break():
    x = np.random.default_rng(5).integers(0, 9, 96)
    got, want = both(after_a_break, 1, 96, x, np.zeros(96, np.int64))
    np.testing.assert_array_equal(got, want)


@cuda.jit(device=True)
def first_positive(v):
    if v < 0:
        return 0
    return cuda.shfl_sync(FULL, v, 4)


@cuda.jit
def returns_early(x, out):
    """Lanes return from a function before its shuffle, and meet the others at the one behind."""
    i = cuda.grid(1)
    a = first_positive(x[i])
    out[i] = a * 1000 + cuda.shfl_sync(FULL, x[i] + 500, 9)


def test_early_return_of_a_function():
    x = np.random.default_rng(6).integers(-9, 9, 64)
    x[::32] = -1
    x[4::32] = 5
    got, want = both(returns_early, 2, 32, x, np.zeros(64, np.int64))
    np.testing.assert_array_equal(got, want)


@cuda.jit
def one_branch(x, out):
    """Half of the lanes leave the full mask by ending."""
    i = cuda.grid(1)
    if cuda.laneid % 2 == 0:
        cuda.syncwarp()
        out[i] = cuda.shfl_xor_sync(FULL, x[i], 2)


def test_branch_that_others_skip():
    got, want = both(one_branch, 2, 48, np.arange(96) * 5, np.zeros(96, np.int64))
    np.testing.assert_array_equal(got, want)


@cuda.jit
def by_data(x, masks, out):
    """Masks from memory: pairs of lanes, each with rounds of its own."""
    i = cuda.grid(1)
    v = x[i]
    for _ in range(x[i // 2 * 2] % 5):
        v += cuda.shfl_xor_sync(masks[i % 32], v, 1)
    out[i] = v


def test_masks_from_memory():
    masks = np.repeat(np.array([3 << 2 * k for k in range(16)], np.int64), 2)
    x = np.random.default_rng(7).integers(0, 50, 64)
    got, want = both(by_data, 1, 64, x, masks, np.zeros(64, np.int64))
    np.testing.assert_array_equal(got, want)


# ---- what cannot come ----


@cuda.jit
def different_operations(out):
    if cuda.laneid < 7:
        cuda.ballot_sync(FULL, True)
    out[0] = cuda.shfl_sync(FULL, 1, 0)


@cuda.jit
def behind_a_barrier(out):
    if cuda.threadIdx.x == 3:
        cuda.syncwarp()
    cuda.syncthreads()
    out[0] = 1


@cuda.jit
def different_masks(out):
    for k in range(cuda.laneid + 1):
        cuda.syncwarp(0xFF if k == 5 else FULL)
    out[0] = 1


@pytest.mark.skipif(MODE != "simt", reason="simt's own report")
@pytest.mark.parametrize(
    ("kernel", "thread", "text"),
    [
        (different_operations, 0, "cuda.ballot_sync(FULL, True)"),
        (behind_a_barrier, 3, "cuda.syncwarp()"),
        (different_masks, 6, "cuda.syncwarp(0xFF if k == 5 else FULL)"),
    ],
)
def test_deadlock(kernel, thread, text):
    with pytest.raises(RuntimeError, match="makes no progress") as error:
        kernel[1, 32](np.zeros(1, np.int64))
    assert re.search(rf"block 0, thread {thread} waits at the \S+ of line \d+", str(error.value))
    assert f"\n    {text}\n" in str(error.value)


# ---- lanes that come together: one gang ----


@cuda.jit(device=True)
def warp_sum(v):
    for offset in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(FULL, v, offset)
    return v


@cuda.jit(device=True)
def sum_in_first(v):
    offset = 16
    while offset > 0:
        v += cuda.shfl_xor_sync(FULL, v, offset)
        offset //= 2
    if cuda.laneid == 0:
        return v
    return 0


@cuda.jit
def block_sum(x, out):
    sums = cuda.shared.array(32, float64)
    i = cuda.grid(1)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    s = 0.0
    for j in range(i, x.size, cuda.gridsize(1)):
        s += x[j]
    s = warp_sum(s)
    if lane == 0:
        sums[warp] = s
    cuda.syncthreads()
    if warp == 0:
        s = sums[lane] if lane < cuda.blockDim.x // 32 else 0.0
        s = warp_sum(s)
        if lane == 0:
            out[cuda.blockIdx.x] = s


@cuda.jit
def row_per_warp(x, out):
    warp, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    for row in range(warp, out.size, cuda.gridsize(1) // 32):
        s = 0.0
        for j in range(lane, row, 32):
            s += x[j]
        s = sum_in_first(s)
        if lane == 0:
            out[row] = s


@cuda.jit
def compact(x, out):
    """Positive values to the front of each warp's part."""
    i = cuda.grid(1)
    wanted = i < x.size and x[i] > 0
    votes = cuda.ballot_sync(FULL, wanted)
    place = cuda.popc(votes & cuda.lanemask_lt())
    if wanted:
        out[i // 32 * 32 + place] = x[i]


@cuda.jit
def by_ballot(x, out):
    i = cuda.grid(1)
    mask = cuda.ballot_sync(FULL, i < x.size)
    if i < x.size:
        v = x[i]
        for offset in (16, 8, 4, 2, 1):
            v = max(v, cuda.shfl_xor_sync(mask, v, offset))
        out[i] = v


@cuda.jit
def by_activemask(x, out):
    i = cuda.grid(1)
    if x[i] > 3:
        mask = cuda.activemask()
        out[i] = cuda.shfl_sync(mask, x[i], cuda.ffs(mask) - 1)
    else:
        out[i] = -1


@cuda.jit
def until_all(x, out):
    i = cuda.grid(1)
    v = x[i]
    n = 0
    while cuda.any_sync(FULL, v > 0):
        v -= 1
        n += 1
    out[i] = n


@cuda.jit
def queue(x, next_item, out):
    """Each warp takes the next item until there is none."""
    item = 0
    while True:
        if cuda.laneid == 0:
            item = cuda.atomic.add(next_item, 0, 1)
        item = cuda.shfl_sync(FULL, item, 0)
        if item >= x.size:
            break
        s = warp_sum(x[item] * cuda.laneid)
        if cuda.laneid == 0:
            out[item] = s


@cuda.jit
def eighths(x, out):
    lane = cuda.laneid
    group = lane // 8
    mask = 0xFF << (8 * group)
    v = x[cuda.grid(1)]
    if group < 2:
        for k in range(group + 3):
            v += cuda.shfl_xor_sync(mask, v + k, 1)
    out[cuda.grid(1)] = v


@cuda.jit
def halves(x, out):
    t = cuda.threadIdx.x
    v = x[t]
    if t < 64:
        v += cuda.shfl_down_sync(FULL, v, 16)
        if t % 32 < 16:
            v += cuda.shfl_down_sync(0xFFFF, v, 8)
    else:
        v -= cuda.shfl_up_sync(FULL, v, 1)
    out[t] = v


@cuda.jit
def skips(x, out):
    warp = cuda.grid(1) // 32
    for row in range(warp, out.size, 4):
        if row % 3 == 1:
            continue
        s = warp_sum(x[row + cuda.laneid])
        if cuda.laneid != 0:
            continue
        out[row] = s


@cuda.jit
def early(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    out[i] = cuda.popc(cuda.ballot_sync(FULL, x[i] > 0))


DATA = np.random.default_rng(8).integers(-9, 9, 300)
TOGETHER = [
    (block_sum, 2, 128, DATA * 0.5, np.zeros(2)),
    (row_per_warp, 2, 96, DATA * 0.5, np.zeros(20)),
    (compact, 3, 128, DATA, np.zeros(384, np.int64)),
    (by_ballot, 3, 128, DATA, np.zeros(384, np.int64)),
    (until_all, 2, 128, DATA, np.zeros(256, np.int64)),
    (queue, 2, 128, DATA, np.zeros(1, np.int32), np.zeros(300, np.int64)),
    (eighths, 2, 128, DATA, np.zeros(256, np.int64)),
    (halves, 1, 128, DATA, np.zeros(128, np.int64)),
    (skips, 1, 128, DATA, np.zeros(50, np.int64)),
    (early, 3, 128, DATA, np.zeros(384, np.int64)),
]


@pytest.mark.parametrize("case", TOGETHER, ids=[c[0].py_func.__name__ for c in TOGETHER])
def test_together(case):
    got, want = both(*case)
    np.testing.assert_array_equal(got, want)


def test_active_mask():
    x = DATA[:64]
    out = np.zeros(64, np.int64)
    by_activemask[1, 64](x, out)
    taken = x > 3
    assert (out[~taken] == -1).all()
    assert all(
        out[i] in x[i // 32 * 32 :][:32][taken[i // 32 * 32 :][:32]] for i in np.where(taken)[0]
    )


@pytest.mark.skipif(MODE != "simt", reason="about simt's gangs")
def test_together_is_one_gang():
    code = f"""
import sys
sys.path.insert(0, {os.path.dirname(HERE)!r})
import test_numba_meet as t
for kernel, grid, block, *args in [*t.TOGETHER, (t.by_activemask, 1, 128, t.DATA, t.DATA.copy())]:
    kernel[grid, block](*args)
t.other_rounds[1, 96](t.DATA, t.DATA.copy())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SIMT_DUMP": "asm"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    gangs = dict(re.findall(r"^(\w+), .*?: (\d+) gangs of", done.stderr, re.M))
    assert gangs.pop("other_rounds") == "96"
    assert set(gangs.values()) == {"1"}, gangs
    assert len(gangs) == len(TOGETHER) + 1
