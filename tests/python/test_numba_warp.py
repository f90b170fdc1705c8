"""Numba kernels with warp operations: shuffles, votes, matches, partial masks; bits of integers."""

import numpy as np
import pytest
from numba_face import cuda, int32, uint32, uint64

FULL = 0xFFFFFFFF


@cuda.jit
def shuffles(values, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = values[i]
    out[0, i] = cuda.shfl_sync(FULL, v, 5)
    out[1, i] = cuda.shfl_sync(FULL, v, (lane + 9) % 32)
    out[2, i] = cuda.shfl_up_sync(FULL, v, 3)
    out[3, i] = cuda.shfl_down_sync(FULL, v, 7)
    out[4, i] = cuda.shfl_xor_sync(FULL, v, 21)
    out[5, i] = cuda.shfl_sync(FULL, v, 31 - lane)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("block", [32, 64, 1024])
def test_shuffles(dtype, block):
    values = np.random.default_rng(0).integers(0, 2**31 - 1, 2 * block).astype(dtype) * dtype(3)
    if np.dtype(dtype).kind == "f":
        values /= dtype(7)
    out = np.zeros((6, 2 * block), dtype)
    shuffles[2, block](values, out)
    rows = values.reshape(-1, 32)
    lane = np.arange(32)
    sources = [
        np.full(32, 5),
        (lane + 9) % 32,
        np.where(lane < 3, lane, lane - 3),
        np.where(lane + 7 > 31, lane, lane + 7),
        lane ^ 21,
        31 - lane,
    ]
    for k, source in enumerate(sources):
        np.testing.assert_array_equal(out[k].reshape(-1, 32), rows[:, source], err_msg=f"row {k}")


@cuda.jit
def votes(values, out):
    i = cuda.grid(1)
    v = values[i]
    out[i, 0] = cuda.ballot_sync(FULL, v > 0)
    out[i, 1] = 1 if cuda.all_sync(FULL, v > 0) else 0
    out[i, 2] = 1 if cuda.any_sync(FULL, v > 0) else 0
    out[i, 3] = 1 if cuda.eq_sync(FULL, v > 0) else 0
    out[i, 4] = cuda.match_any_sync(FULL, v)
    mask, same = cuda.match_all_sync(FULL, v)
    out[i, 5] = mask
    out[i, 6] = 1 if same else 0
    out[i, 7] = cuda.lanemask_lt()
    out[i, 8] = cuda.laneid
    out[i, 9] = cuda.popc(cuda.activemask())


def test_votes_and_matches():
    rng = np.random.default_rng(1)
    rows = [
        rng.integers(-2, 3, 32),
        np.ones(32),
        np.zeros(32),
        rng.integers(0, 2, 32),
        np.r_[np.zeros(31), 1],
    ]
    values = np.concatenate(rows).astype(np.int32)
    out = np.zeros((160, 10), np.int64)
    votes[1, 160](values, out)
    for i, v in enumerate(values):
        row = values[i // 32 * 32 :][:32]
        positive = row > 0
        ballot = sum(1 << k for k in range(32) if positive[k])
        same = sum(1 << k for k in range(32) if row[k] == v)
        every = (row == v).all()
        expected = [ballot, positive.all(), positive.any(), positive.all() or not positive.any()]
        expected += [same, FULL if every else 0, every, (1 << i % 32) - 1, i % 32]
        found = [x & FULL for x in out[i, :9].tolist()]  # masks are int32 in Numba
        assert found == [int(x) for x in expected]
        assert out[i, 9] in (1, 32)


@cuda.jit
def halves_apart(values, out):
    """The two halves of a warp are in different branches with their own masks."""
    i = cuda.threadIdx.x
    lane = i % 32
    v = values[i]
    if lane < 16:
        for offset in (8, 4, 2, 1):
            v += cuda.shfl_xor_sync(0x0000FFFF, v, offset)
    else:
        for offset in (8, 4, 2, 1):
            v = max(v, cuda.shfl_xor_sync(0xFFFF0000, v, offset))
    out[i] = v


def test_two_masks_in_two_branches():
    values = np.random.default_rng(2).integers(0, 1000, 96).astype(np.int32)
    out = np.zeros(96, np.int32)
    halves_apart[1, 96](values, out)
    rows = values.reshape(3, 32)
    expected = np.empty((3, 32), int)
    expected[:, :16] = rows[:, :16].sum(1, keepdims=True)
    expected[:, 16:] = rows[:, 16:].max(1, keepdims=True)
    np.testing.assert_array_equal(out.reshape(3, 32), expected)


@cuda.jit
def partial_last_warp(values, out):
    """A block of 45: the second warp has 13 lanes."""
    i = cuda.threadIdx.x
    warp = i // 32
    mask = FULL if warp == 0 else (1 << 13) - 1
    votes = cuda.ballot_sync(mask, values[i] > 0)
    out[i] = cuda.popc(votes)
    cuda.syncwarp(mask)


def test_partial_last_warp():
    values = np.random.default_rng(3).integers(-5, 6, 45).astype(np.int32)
    out = np.zeros(45, np.int32)
    partial_last_warp[1, 45](values, out)
    expected = np.r_[np.full(32, (values[:32] > 0).sum()), np.full(13, (values[32:] > 0).sum())]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def masks_of_sub_groups(out):
    """Groups of 4 lanes, each with its own mask, in a loop that ends at different times."""
    lane = cuda.laneid
    group = lane // 4
    mask = 0xF << (4 * group)
    total = 0
    for k in range(group + 1):
        total += cuda.shfl_sync(mask, lane * (k + 1), 4 * group + k % 4)
    out[cuda.grid(1)] = total


def test_groups_with_their_own_masks():
    out = np.zeros(64, np.int32)
    masks_of_sub_groups[2, 32](out)
    expected = [
        sum((4 * g + k % 4) * (k + 1) for k in range(g + 1))
        for g in (lane // 4 for lane in range(32))
    ]
    assert out.tolist() == expected * 2


@cuda.jit
def lanes_exchange_by_shared_memory(values, out):
    cache = cuda.shared.array(64, int32)
    tid = cuda.threadIdx.x
    lane = tid % 32
    base = tid - lane
    v = values[tid]
    for step in range(5):
        cache[tid] = v
        cuda.syncwarp()
        v += cache[base + (lane ^ (1 << step))]
        cuda.syncwarp()
    out[tid] = v


def test_warp_exchange_through_shared_memory():
    values = np.arange(64, dtype=np.int32)
    out = np.zeros(64, np.int32)
    lanes_exchange_by_shared_memory[1, 64](values, out)
    np.testing.assert_array_equal(out, np.repeat([values[:32].sum(), values[32:].sum()], 32))


@cuda.jit
def aggregated_counter(values, counter, out):
    """Lanes with the same key add by one atomic of their leader."""
    i = cuda.grid(1)
    key = values[i]
    mask = cuda.match_any_sync(FULL, key)
    leader = cuda.ffs(mask) - 1
    rank = cuda.popc(mask & cuda.lanemask_lt())
    base = 0
    if rank == 0:
        base = cuda.atomic.add(counter, key, cuda.popc(mask))
    base = cuda.shfl_sync(FULL, base, leader)
    out[key, base + rank] = i


@pytest.mark.parametrize("grid, block", [(1, 32), (3, 64), (2, 256)])
def test_counters_aggregated_by_warp(grid, block):
    n = grid * block
    values = np.random.default_rng(4).integers(0, 5, n).astype(np.int32)
    counter, out = np.zeros(5, np.int32), np.full((5, n), -1, np.int32)
    aggregated_counter[grid, block](values, counter, out)
    for key in range(5):
        expected = np.flatnonzero(values == key)
        assert counter[key] == len(expected)
        assert sorted(out[key, : len(expected)]) == expected.tolist()


@cuda.jit
def active_lanes(out):
    """Every lane of a divergent branch is counted once, whatever runs together."""
    i = cuda.grid(1)
    if i % 3 == 1:
        mask = cuda.activemask()
        first = cuda.ffs(mask) - 1
        if first == cuda.laneid:
            cuda.atomic.add(out, 0, cuda.popc(mask))


def test_active_mask_of_a_branch():
    out = np.zeros(1, np.int32)
    active_lanes[2, 64](out)
    assert out[0] == sum(i % 3 == 1 for i in range(128))


@cuda.jit
def warp_segments(flags, out):
    """Position within a segment: segments start where the flag is set."""
    i = cuda.grid(1)
    heads = cuda.ballot_sync(FULL, flags[i] or cuda.laneid == 0)
    below = heads & (cuda.lanemask_lt() | (1 << cuda.laneid))
    start = 31 - cuda.clz(uint32(below))
    out[i] = cuda.laneid - start


def test_segments_by_ballot_and_clz():
    flags = np.random.default_rng(5).random(96) < 0.2
    out = np.zeros(96, np.int32)
    warp_segments[1, 96](flags, out)
    expected = []
    for i in range(96):
        expected.append(0 if flags[i] or i % 32 == 0 else expected[-1] + 1)
    assert out.tolist() == expected


@cuda.jit
def bits(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i, 0] = cuda.popc(a[i])
        out[i, 1] = cuda.clz(a[i])
        out[i, 2] = cuda.ffs(a[i])
        out[i, 3] = cuda.popc(b[i])
        out[i, 4] = cuda.clz(b[i])
        out[i, 5] = cuda.ffs(b[i])
        out[i, 6] = cuda.brev(a[i])
        out[i, 7] = cuda.brev(b[i])


def test_bits_of_integers():
    rng = np.random.default_rng(6)
    shift = rng.integers(0, 64, 50).astype(np.uint64)
    b = np.r_[rng.integers(0, 2**63, 50).astype(np.uint64) >> shift, 0, 1, 2**64 - 1, 2**63]
    b = b.astype(np.uint64)
    a = (b & np.uint64(FULL)).astype(np.uint32)
    out = np.zeros((len(b), 8), np.uint64)
    bits[2, 32](a, b, out)
    for i in range(len(b)):
        expected = []
        for x, width in ((int(a[i]), 32), (int(b[i]), 64)):
            expected += [x.bit_count(), width - x.bit_length(), (x & -x).bit_length()]
        expected += [int(f"{int(a[i]):032b}"[::-1], 2), int(f"{int(b[i]):064b}"[::-1], 2)]
        assert out[i].tolist() == expected


@cuda.jit
def select_and_fuse(a, b, c, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i, 0] = cuda.selp(a[i] < b[i], a[i], b[i])
        out[i, 1] = cuda.fma(a[i], b[i], c[i])
        out[i, 2] = cuda.cbrt(a[i])


def test_selp_fma_cbrt():
    a, b, c = np.random.default_rng(7).normal(size=(3, 40))
    out = np.zeros((40, 3))
    select_and_fuse[2, 32](a, b, c, out)
    np.testing.assert_array_equal(out[:, 0], np.minimum(a, b))
    np.testing.assert_allclose(out[:, 1], a * b + c, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(out[:, 2], np.cbrt(a), rtol=1e-14)


@cuda.jit
def xorshift(seeds, steps, out):
    """Unsigned arithmetic that wraps, as hash functions and generators need it."""
    i = cuda.grid(1)
    x = uint32(seeds[i])
    y = uint64(seeds[i])
    for _ in range(steps):
        x ^= uint32(x << uint32(13))
        x ^= uint32(x >> uint32(17))
        x ^= uint32(x << uint32(5))
        y ^= y << uint64(13)
        y ^= y >> uint64(7)
        y ^= y << uint64(17)
    out[i, 0] = x
    out[i, 1] = y


def test_xorshift():
    seeds = np.random.default_rng(8).integers(1, 2**32, 64).astype(np.uint32)
    out = np.zeros((64, 2), np.uint64)
    xorshift[2, 32](seeds, 20, out)
    for seed, (x, y) in zip(seeds.tolist(), out.tolist(), strict=True):
        a = b = seed
        for _ in range(20):
            a ^= a << 13 & FULL
            a ^= a >> 17
            a ^= a << 5 & FULL
            b ^= b << 13 & 2**64 - 1
            b ^= b >> 7
            b ^= b << 17 & 2**64 - 1
        assert (x, y) == (a, b)
