"""Kernels whose blocks do not matter run by rows of the grid; faults are those of blocks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba_face import MODE, cuda
from simt import _core

if MODE != "simt":
    pytest.skip("how simt runs kernels", allow_module_level=True)

WHOLE = """kernel @k(%0: ptr.global, %1: i32, %2: i32, %3: i32) file "" {{
  {parts}
  %20: i32 = add {y}, %2
  %21: i32 = mul %20, %1
  %22: i32 = add {x}, %21
  %23: i32 = const 4
  %24: i32 = mul %22, %23
  %25: i64 = sext %24
  %26: ptr.global = ptradd %0, %25
  %27: i32 = atomic.add %26, %3
  return
}}
"""


def index(axis, first):
    """ctaid * ntid + tid as i32, and its value's name."""
    a, b, c, d, e = (f"%{first + k}" for k in range(5))
    lines = [
        f"{a}: i32 = special ctaid.{axis}",
        f"{b}: i32 = special ntid.{axis}",
        f"{c}: i32 = special tid.{axis}",
        f"{d}: i32 = mul {b}, {a}",
        f"{e}: i32 = add {c}, {d}",
    ]
    return "\n".join(lines), e


def test_the_listing_says_so():
    parts, x = index("x", 4)
    text = WHOLE.format(parts=parts + "\n%9: i32 = const 0", x=x, y="%9")
    optimized = _core.ir_check(text, passes="all")
    assert "special index.x" in optimized and "tid" not in optimized
    assert "lanes along x" in _core.ir_listing(optimized, (128, 1, 1))


@pytest.mark.parametrize(
    "more",
    ["barrier", "%40: i32 = special laneid", "%40: ptr.shared = alloc 16", "%40: i32 = activemask"],
)
def test_kernels_that_look_at_their_block_do_not(more):
    parts, x = index("x", 4)
    text = WHOLE.format(parts=f"{parts}\n%9: i32 = const 0\n{more}", x=x, y="%9")
    assert "index.x" not in _core.ir_check(text, passes="all")
    again = WHOLE.format(parts=f"{parts}\n%9: i32 = add %6, %6", x=x, y="%9")  # tid.x alone
    assert "index.x" not in _core.ir_check(again, passes="all")


@given(
    st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(1, 3)),
    st.tuples(st.integers(1, 70), st.integers(1, 6), st.integers(1, 2)),
    st.sampled_from([1, 2]),
)
@settings(max_examples=60, deadline=None)
def test_every_thread_runs_once(grid, block, threads):
    extent = [g * b for g, b in zip(grid, block)]
    (px, x), (py, y), (pz, z) = (index(a, 4 + 5 * k) for k, a in enumerate("xyz"))
    first = "%19: i32 = mul " + z + ", %2"  # rows before those of this z
    text = WHOLE.format(parts="\n".join([px, py, pz, first]), x=x, y=y)
    text = text.replace(f"%20: i32 = add {y}, %2", f"%20: i32 = add {y}, %19")
    counts = np.zeros(extent[::-1], np.int32)
    _core.ir_run(text, grid, block, [counts, extent[0], extent[1], 1], threads=threads)
    assert (counts == 1).all()


@cuda.jit
def numbers(out, sizes):
    z, y, x = cuda.grid(3)
    if z < out.shape[0] and y < out.shape[1] and x < out.shape[2]:
        out[z, y, x] = z * 10000 + y * 100 + x
        sizes[0], sizes[1], sizes[2] = cuda.gridsize(3)
        sizes[3], sizes[4], sizes[5] = cuda.blockDim.x, cuda.blockDim.y, cuda.gridDim.z


BLOCKS = [(1, 1, 1), (3, 1, 1), (1, 5, 1), (8, 8, 4), (2, 3, 5), (32, 2, 1), (1024, 1, 1)]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(1, 1, 700), (700, 1, 1), (5, 7, 11), (40, 20, 3), (130, 3, 2)])
def test_coordinates_and_sizes(block, shape):
    out, sizes = np.full(shape, -1, np.int64), np.zeros(6, np.int64)
    grid = tuple(-(-n // b) for n, b in zip(shape, block))
    numbers[grid, block](out, sizes)
    z, y, x = np.indices(shape)
    assert (out == z * 10000 + y * 100 + x).all()
    assert tuple(sizes) == (*(g * b for g, b in zip(grid, block)), block[0], block[1], grid[2])


@cuda.jit
def products(out):
    x, y, z = cuda.grid(3)
    bx, gx = cuda.blockDim.x, cuda.gridDim.x
    if x < out.shape[3] and y < out.shape[2] and z < out.shape[1]:
        out[0, z, y, x] = x * bx + y * cuda.blockDim.y
        out[1, z, y, x] = np.int32(x) * np.int32(bx - 1) * cuda.gridDim.y
        out[2, z, y, x] = (x * gx - z * cuda.gridsize(1)) % 1000
        for k in range(bx):
            out[3, z, y, x] += x * bx + k


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("grid", [(1, 1, 1), (4, 1, 1), (3, 5, 2), (70, 1, 3)])
def test_products_with_sizes(grid, block):
    out = np.zeros((4, 2, 4, 200), np.int64)
    products[grid, block](out)
    ends = [min(g * b, n) for g, b, n in zip(grid, block, out.shape[:0:-1])]
    z, y, x = np.indices(ends[::-1])
    bx, gx = block[0], grid[0]
    want = np.zeros_like(out)
    want[0, : ends[2], : ends[1], : ends[0]] = x * bx + y * block[1]
    want[1, : ends[2], : ends[1], : ends[0]] = x * (bx - 1) * grid[1]
    want[2, : ends[2], : ends[1], : ends[0]] = (x * gx - z * gx * bx) % 1000
    want[3, : ends[2], : ends[1], : ends[0]] = x * bx * bx + bx * (bx - 1) // 2
    assert (out == want).all()


def test_arrays_too_long_to_index_are_refused():
    out, byte = np.zeros((1, 1, 1)), np.zeros(1, np.int8)
    for longest in (2**62, 2**63 - 1):
        with pytest.raises(ValueError, match=rf"'sizes'.* has {longest} elements along axis 0"):
            numbers[1, 1](out, np.lib.stride_tricks.as_strided(byte, (longest,), (0,)))


@cuda.jit
def fill(out, bad_x, bad_y):
    x, y = cuda.grid(2)
    far = 1000 if x >= bad_x and y >= bad_y else 0
    out[y, x + far] = 1


@pytest.mark.parametrize("block", [(16, 16), (4, 32), (64, 1), (1, 8), (7, 3)])
def test_the_first_fault_in_block_order_is_reported(block):
    rows, columns, bad_x, bad_y = 64, 192, 37, 10
    out = np.zeros((rows + 16, columns + 64), np.int8)
    grid = (-(-columns // block[0]), -(-rows // block[1]))
    extent = [g * b for g, b in zip(grid, block)]
    bad = [
        (x // block[0] + y // block[1] * grid[0], x % block[0] + y % block[1] * block[0], x, y)
        for x, y in itertools.product(range(bad_x, extent[0]), range(bad_y, extent[1]))
    ]
    _, _, x, y = min(bad)
    with pytest.raises(IndexError) as error:
        fill[grid, block](out, bad_x, bad_y)
    where = (
        f"block ({x // block[0]}, {y // block[1]}, 0), thread ({x % block[0]}, {y % block[1]}, 0)"
    )
    assert where in str(error.value) and f"index {x + 1000} " in str(error.value)


def test_a_stretch_of_lanes_is_left_by_guards():
    """Guards cut lanes off at both ends of a row, or leave one."""

    @cuda.jit
    def inner(a, out, low, high, only):
        i, j = cuda.grid(2)
        if i > low and i < high:
            out[j, i] = a[j, i - 1] + a[j, i]
        elif i == only:
            out[j, i] = -1
        if i != only:
            out[j, i] += 100

    a = np.arange(3 * 777.0).reshape(3, 777)
    padded = np.zeros((4, 784))
    padded[:3, :777] = a
    cases = [(0, 776, 0), (100, 600, 700), (511, 513, 600), (600, 100, 50), (0, 1, 511)]
    for low, high, only in cases:
        out = np.zeros((4, 784))
        inner[(7, 2), (112, 2)](padded, out, low, high, only)
        want = np.zeros_like(out)
        x = np.arange(784)
        mid = (x > low) & (x < high)
        shifted = np.zeros_like(padded)
        shifted[:, 1:] = padded[:, :-1]
        want[:, mid] = (shifted + padded)[:, mid]
        if not mid[only]:
            want[:, only] = -1
        want[:, x != only] += 100
        assert (out == want).all()
