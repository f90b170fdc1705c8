"""Numba kernels that combine many values: reductions, scans, histograms, sorts."""

import math

import numpy as np
import pytest
from numba_face import blocks_for, cuda, float32, float64, int32, small

# ---- reductions ----


@cuda.jit
def block_sum(values, partial):
    """A tree in shared memory; blockDim.x is a power of two up to 1024."""
    cache = cuda.shared.array(1024, float64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0.0
    while i < values.size:
        total += values[i]
        i += cuda.gridsize(1)
    cache[tid] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if tid < half:
            cache[tid] += cache[tid + half]
        cuda.syncthreads()
        half //= 2
    if tid == 0:
        partial[cuda.blockIdx.x] = cache[0]


@pytest.mark.parametrize("grid, block", [(1, 1), (4, 64), (3, 256), (2, 1024)])
@pytest.mark.parametrize("n", [1, 1000, 2048])
def test_tree_reduction(grid, block, n):
    values = np.random.default_rng(0).random(n)
    partial = np.zeros(grid)
    block_sum[grid, block](values, partial)
    assert math.isclose(partial.sum(), values.sum(), rel_tol=1e-13)


@cuda.jit
def interleaved_sum(values, total):
    """The first version of every tutorial: strides grow, threads diverge."""
    cache = cuda.shared.array(256, int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    cache[tid] = values[i] if i < values.size else 0
    cuda.syncthreads()
    s = 1
    while s < cuda.blockDim.x:
        if tid % (2 * s) == 0 and tid + s < cuda.blockDim.x:
            cache[tid] += cache[tid + s]
        cuda.syncthreads()
        s *= 2
    if tid == 0:
        cuda.atomic.add(total, 0, cache[0])


@pytest.mark.parametrize("block", [1, 32, 100, 256])
def test_interleaved_reduction(block):
    values = np.random.default_rng(1).integers(-100, 100, 777).astype(np.int32)
    total = np.zeros(1, np.int32)
    interleaved_sum[blocks_for(777, block), block](values, total)
    assert total[0] == values.sum()


@cuda.jit
def block_sum_dynamic(values, partial):
    """The size of shared memory comes with the launch; float32 behind int32 in the same bytes."""
    cache = cuda.shared.array(0, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    cache[tid] = values[i] if i < values.size else 0
    cuda.syncthreads()
    n = cuda.blockDim.x
    while n > 1:
        half = (n + 1) // 2
        if tid < n - half:
            cache[tid] += cache[tid + half]
        cuda.syncthreads()
        n = half
    if tid == 0:
        partial[cuda.blockIdx.x] = cache[0]


@pytest.mark.parametrize("block", [1, 7, 100, 1024])
def test_reduction_in_dynamic_shared_memory(block):
    values = np.random.default_rng(0).random(1500).astype(np.float32)
    grid = blocks_for(1500, block)
    partial = np.zeros(grid, np.float32)
    block_sum_dynamic[grid, block, 0, 4 * block](values, partial)
    padded = np.zeros(grid * block, np.float32)
    padded[:1500] = values
    np.testing.assert_allclose(partial, padded.reshape(grid, block).sum(1), rtol=1e-5)


@cuda.jit(device=True)
def warp_sum(value):
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    return value


@cuda.jit
def shuffle_sum(values, total):
    sums = cuda.shared.array(32, float64)
    tid = cuda.threadIdx.x
    lane = tid % 32
    warp = tid // 32
    value = 0.0
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        value += values[i]
    value = warp_sum(value)
    if lane == 0:
        sums[warp] = value
    cuda.syncthreads()
    if warp == 0:
        value = sums[lane] if lane < cuda.blockDim.x // 32 else 0.0
        value = warp_sum(value)
        if lane == 0:
            cuda.atomic.add(total, 0, value)


@pytest.mark.parametrize("grid, block", [(1, 32), (5, 96), (3, 256), (2, 1024)])
def test_shuffle_reduction(grid, block):
    values = np.random.default_rng(2).normal(size=1234)
    total = np.zeros(1)
    shuffle_sum[grid, block](values, total)
    assert math.isclose(total[0], values.sum(), rel_tol=1e-11, abs_tol=1e-12)


@cuda.jit
def butterfly(values, largest, where):
    """All lanes end with the warp's largest value and its position."""
    i = cuda.grid(1)
    best = values[i]
    at = i
    step = 16
    while step >= 1:
        other = cuda.shfl_xor_sync(-1, best, step)
        other_at = cuda.shfl_xor_sync(-1, at, step)
        if other > best or (other == best and other_at < at):
            best = other
            at = other_at
        step >>= 1
    largest[i] = best
    where[i] = at


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_argmax_by_butterfly(dtype):
    values = np.random.default_rng(3).integers(0, 40, 128).astype(dtype)
    largest, where = np.zeros(128, dtype), np.zeros(128, np.int64)
    butterfly[2, 64](values, largest, where)
    rows = values.reshape(4, 32)
    np.testing.assert_array_equal(largest.reshape(4, 32), rows.max(1)[:, None] + np.zeros(32))
    expected = rows.argmax(1) + np.arange(4) * 32
    np.testing.assert_array_equal(where.reshape(4, 32), expected[:, None] + np.zeros(32))


@cuda.jit
def dot_and_extremes(a, b, dot, low, high):
    cache = cuda.shared.array(128, float64)
    tid = cuda.threadIdx.x
    product = 0.0
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        product += a[i] * b[i]
        cuda.atomic.min(low, 0, a[i])
        cuda.atomic.max(high, 0, b[i])
    cache[tid] = product
    cuda.syncthreads()
    if tid == 0:
        total = 0.0
        for k in range(cuda.blockDim.x):
            total += cache[k]
        cuda.atomic.add(dot, 0, total)


@pytest.mark.parametrize("grid, block", [(1, 1), (3, 50), (4, 128)])
def test_dot_product_and_extremes(grid, block):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 600))
    dot, low, high = np.zeros(1), np.full(1, np.inf), np.full(1, -np.inf)
    dot_and_extremes[grid, block](a, b, dot, low, high)
    assert math.isclose(dot[0], a @ b, rel_tol=1e-11, abs_tol=1e-12)
    assert (low[0], high[0]) == (a.min(), b.max())


# ---- scans ----


@cuda.jit
def scan_block(values, out, sums):
    """Hillis and Steele: inclusive within a block, two buffers in turn."""
    buffer = cuda.shared.array((2, 1024), int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    n = cuda.blockDim.x
    buffer[0, tid] = values[i] if i < values.size else 0
    cuda.syncthreads()
    source = 0
    offset = 1
    while offset < n:
        target = 1 - source
        if tid >= offset:
            buffer[target, tid] = buffer[source, tid] + buffer[source, tid - offset]
        else:
            buffer[target, tid] = buffer[source, tid]
        source = target
        offset *= 2
        cuda.syncthreads()
    if i < values.size:
        out[i] = buffer[source, tid]
    if tid == n - 1:
        sums[cuda.blockIdx.x] = buffer[source, tid]


@cuda.jit
def add_offsets(out, offsets):
    i = cuda.grid(1)
    if cuda.blockIdx.x > 0 and i < out.size:
        out[i] += offsets[cuda.blockIdx.x - 1]


@pytest.mark.parametrize("block", [1, 32, 77, 1024])
@pytest.mark.parametrize("n", [1, 300, small(2500, 1100)])
def test_scan_over_several_blocks(block, n):
    if block == 1 and n > 1000:
        n = 1000
    values = np.random.default_rng(5).integers(-9, 10, n).astype(np.int32)
    grid = blocks_for(n, block)
    out, sums = cuda.device_array(n, np.int32), cuda.device_array(grid, np.int32)
    scan_block[grid, block](values, out, sums)
    if grid > 1:  # the sums of the blocks are scanned by one block
        offsets, last = cuda.device_array(grid, np.int32), np.zeros(1, np.int32)
        scan_block[1, min(1024, grid)](sums, offsets, last)
        add_offsets[grid, block](out, offsets)
    np.testing.assert_array_equal(out.copy_to_host(), np.cumsum(values))


@cuda.jit
def scan_blelloch(values):
    """Work-efficient exclusive scan, in place, one block of n / 2 threads, n a power of two."""
    temp = cuda.shared.array(512, float32)
    tid = cuda.threadIdx.x
    n = values.size
    temp[2 * tid] = values[2 * tid]
    temp[2 * tid + 1] = values[2 * tid + 1]
    offset = 1
    d = n >> 1
    while d > 0:
        cuda.syncthreads()
        if tid < d:
            ai = offset * (2 * tid + 1) - 1
            bi = offset * (2 * tid + 2) - 1
            temp[bi] += temp[ai]
        offset *= 2
        d >>= 1
    if tid == 0:
        temp[n - 1] = 0
    d = 1
    while d < n:
        offset >>= 1
        cuda.syncthreads()
        if tid < d:
            ai = offset * (2 * tid + 1) - 1
            bi = offset * (2 * tid + 2) - 1
            t = temp[ai]
            temp[ai] = temp[bi]
            temp[bi] += t
        d *= 2
    cuda.syncthreads()
    values[2 * tid] = temp[2 * tid]
    values[2 * tid + 1] = temp[2 * tid + 1]


@pytest.mark.parametrize("n", [2, 64, 512])
def test_work_efficient_scan(n):
    values = np.random.default_rng(6).integers(0, 100, n).astype(np.float32)
    expected = np.cumsum(values) - values
    scan_blelloch[1, n // 2](values)
    np.testing.assert_array_equal(values, expected)


@cuda.jit
def scan_warps(values, out):
    """Inclusive scan of one block by shuffles: warps, then the sums of the warps."""
    sums = cuda.shared.array(32, int32)
    tid = cuda.threadIdx.x
    lane = tid & 31
    warp = tid >> 5
    value = values[tid]
    for shift in range(5):
        other = cuda.shfl_up_sync(0xFFFFFFFF, value, 1 << shift)
        if lane >= 1 << shift:
            value += other
    if lane == 31:
        sums[warp] = value
    cuda.syncthreads()
    if warp == 0:
        total = sums[lane] if lane < cuda.blockDim.x // 32 else 0
        for shift in range(5):
            other = cuda.shfl_up_sync(0xFFFFFFFF, total, 1 << shift)
            if lane >= 1 << shift:
                total += other
        sums[lane] = total
    cuda.syncthreads()
    if warp > 0:
        value += sums[warp - 1]
    out[tid] = value


@pytest.mark.parametrize("n", [32, 160, 1024])
def test_scan_by_shuffles(n):
    values = np.random.default_rng(7).integers(0, 100, n).astype(np.int32)
    out = np.zeros(n, np.int32)
    scan_warps[1, n](values, out)
    np.testing.assert_array_equal(out, np.cumsum(values))


EMPTY, PARTIAL, PREFIX = 0, 1, 2


@cuda.jit
def scan_look_back(values, out, ticket, state, partials, prefixes):
    """Single pass: a block publishes its sum and looks back over its predecessors' states."""
    cache = cuda.shared.array(64, int32)
    shared = cuda.shared.array(2, int32)
    tid = cuda.threadIdx.x
    if tid == 0:
        shared[0] = cuda.atomic.add(ticket, 0, 1)
    cuda.syncthreads()
    block = shared[0]
    i = block * cuda.blockDim.x + tid
    value = values[i] if i < values.size else 0
    cache[tid] = value
    cuda.syncthreads()
    offset = 1
    while offset < cuda.blockDim.x:
        add = 0
        if tid >= offset:
            add = cache[tid - offset]
        cuda.syncthreads()
        cache[tid] += add
        cuda.syncthreads()
        offset *= 2
    if tid == 0:
        total = cache[cuda.blockDim.x - 1]
        before = 0
        if block > 0:
            partials[block] = total
            cuda.threadfence()
            cuda.atomic.exch(state, block, PARTIAL)
            back = block - 1
            while True:
                seen = cuda.atomic.add(state, back, 0)
                cuda.threadfence()
                if seen == PREFIX:
                    before += prefixes[back]
                    break
                if seen == PARTIAL:
                    before += partials[back]
                    back -= 1
        prefixes[block] = before + total
        cuda.threadfence()
        cuda.atomic.exch(state, block, PREFIX)
        shared[1] = before
    cuda.syncthreads()
    if i < values.size:
        out[i] = cache[tid] + shared[1]


@pytest.mark.parametrize("block", [1, 32, 50, 64])
@pytest.mark.parametrize("n", [1, 333, small(20_000, 700)])
def test_decoupled_look_back_scan(block, n):
    if block == 1:
        n = min(n, 500)
    values = np.random.default_rng(8).integers(-9, 10, n).astype(np.int32)
    grid = blocks_for(n, block)
    out, ticket = np.zeros(n, np.int32), np.zeros(1, np.int32)
    state, partials, prefixes = np.zeros((3, grid), np.int32)
    scan_look_back[grid, block](values, out, ticket, state, partials, prefixes)
    np.testing.assert_array_equal(out, np.cumsum(values))
    assert ticket[0] == grid and (state == PREFIX).all()


@cuda.jit
def keep_positive(values, out, count):
    """Stream compaction: a block scans its flags by ballot and reserves a range by an atomic."""
    warps = cuda.shared.array(32, int32)
    base = cuda.shared.array(1, int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    keep = i < values.size and values[i] > 0
    votes = cuda.ballot_sync(0xFFFFFFFF, keep)
    rank = cuda.popc(votes & cuda.lanemask_lt())
    if tid % 32 == 0:
        warps[tid // 32] = cuda.popc(votes)
    cuda.syncthreads()
    if tid == 0:
        total = 0
        for w in range((cuda.blockDim.x + 31) // 32):
            mine = warps[w]
            warps[w] = total
            total += mine
        base[0] = cuda.atomic.add(count, 0, total)
    cuda.syncthreads()
    if keep:
        out[base[0] + warps[tid // 32] + rank] = values[i]


@pytest.mark.parametrize("block", [32, 96, 1024])
def test_stream_compaction(block):
    values = np.random.default_rng(9).integers(-50, 50, 1000).astype(np.int32)
    out, count = np.zeros(1000, np.int32), np.zeros(1, np.int32)
    keep_positive[blocks_for(1000, block), block](values, out, count)
    expected = values[values > 0]
    assert count[0] == len(expected)
    np.testing.assert_array_equal(np.sort(out[: count[0]]), np.sort(expected))


# ---- histograms ----

BINS = 16


@cuda.jit
def histogram_global(values, low, high, bins):
    width = (high - low) / bins.shape[0]
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        k = int((values[i] - low) / width)
        if values[i] >= low and k < bins.shape[0]:
            cuda.atomic.add(bins, k, 1)


@cuda.jit
def histogram_shared(values, low, high, bins):
    mine = cuda.shared.array(BINS, int32)
    tid = cuda.threadIdx.x
    for k in range(tid, BINS, cuda.blockDim.x):
        mine[k] = 0
    cuda.syncthreads()
    scale = BINS / (high - low)
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        k = int(math.floor((values[i] - low) * scale))
        if k >= 0 and k < BINS:
            cuda.atomic.add(mine, k, 1)
    cuda.syncthreads()
    for k in range(tid, BINS, cuda.blockDim.x):
        if mine[k] > 0:
            cuda.atomic.add(bins, k, mine[k])


@pytest.mark.parametrize("grid, block", [(1, 1), (4, 7), (3, 64), (2, 1024)])
@pytest.mark.parametrize("kernel", [histogram_global, histogram_shared], ids=["global", "shared"])
def test_histogram(kernel, grid, block):
    values = np.random.default_rng(10).normal(size=small(5000, 500))
    values = np.round(values * 64) / 64 + 1 / 256  # away from the edges
    bins = np.zeros(BINS, np.int32)
    kernel[grid, block](values, -2.0, 2.0, bins)
    expected, _ = np.histogram(values, BINS, (-2, 2))
    np.testing.assert_array_equal(bins, expected)


@cuda.jit
def histogram_of_bytes(text, bins):
    i = cuda.grid(1)
    if i < text.size:
        cuda.atomic.add(bins, (text[i] // 16, text[i] % 16), 1)


def test_histogram_in_two_dimensions():
    text = np.frombuffer(b"the quick brown fox jumps over the lazy dog" * 5, np.uint8)
    bins = np.zeros((16, 16), np.uint32)
    histogram_of_bytes[blocks_for(text.size, 64), 64](text, bins)
    np.testing.assert_array_equal(bins.ravel(), np.bincount(text, minlength=256))


# ---- sorts ----


@cuda.jit
def bitonic_step(values, j, k):
    i = cuda.grid(1)
    partner = i ^ j
    if partner > i:
        up = (i & k) == 0
        if (up and values[i] > values[partner]) or (not up and values[i] < values[partner]):
            values[i], values[partner] = values[partner], values[i]


@pytest.mark.parametrize("n, block", [(64, 1), (256, 32), (small(1024, 256), 256)])
def test_bitonic_sort_by_launches(n, block):
    values = np.random.default_rng(11).random(n).astype(np.float32)
    device = cuda.to_device(values)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            bitonic_step[n // block, block](device, j, k)
            j //= 2
        k *= 2
    np.testing.assert_array_equal(device.copy_to_host(), np.sort(values))


@cuda.jit
def bitonic_block(values):
    cache = cuda.shared.array(1024, int32)
    tid = cuda.threadIdx.x
    n = cuda.blockDim.x
    cache[tid] = values[tid]
    k = 2
    while k <= n:
        j = k >> 1
        while j > 0:
            cuda.syncthreads()
            partner = tid ^ j
            if partner > tid and (cache[tid] > cache[partner]) == ((tid & k) == 0):
                cache[tid], cache[partner] = cache[partner], cache[tid]
            j >>= 1
        k <<= 1
    cuda.syncthreads()
    values[tid] = cache[tid]


@pytest.mark.parametrize("n", [1, 2, 64, small(1024, 256)])
def test_bitonic_sort_in_one_block(n):
    values = np.random.default_rng(12).integers(-1000, 1000, n).astype(np.int32)
    expected = np.sort(values)
    bitonic_block[1, n](values)
    np.testing.assert_array_equal(values, expected)


@cuda.jit
def radix_sort_block(keys, bits):
    """One bit at a time in shared memory: zeros keep their order before the ones."""
    buffer = cuda.shared.array(256, int32)
    flags = cuda.shared.array(256, int32)
    tid = cuda.threadIdx.x
    n = cuda.blockDim.x
    buffer[tid] = keys[tid]
    for bit in range(bits):
        cuda.syncthreads()
        key = buffer[tid]
        one = (key >> bit) & 1
        flags[tid] = 1 - one
        cuda.syncthreads()
        offset = 1
        while offset < n:
            left = flags[tid - offset] if tid >= offset else 0
            cuda.syncthreads()
            flags[tid] += left
            cuda.syncthreads()
            offset <<= 1
        zeros = flags[n - 1]
        before = flags[tid] - (1 - one)
        position = zeros + tid - before if one else before
        cuda.syncthreads()
        buffer[position] = key
    cuda.syncthreads()
    keys[tid] = buffer[tid]


@pytest.mark.parametrize("n", [1, 33, small(256, 100)])
def test_radix_sort_in_one_block(n):
    bits = small(16, 5)
    keys = np.random.default_rng(13).integers(0, 1 << bits, n).astype(np.int32)
    expected = np.sort(keys)
    radix_sort_block[1, n](keys, bits)
    np.testing.assert_array_equal(keys, expected)


@cuda.jit
def radix_count(keys, shift, counts):
    """counts[digit, block]: how many keys of each block have each digit."""
    mine = cuda.shared.array(16, int32)
    tid = cuda.threadIdx.x
    if tid < 16:
        mine[tid] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(mine, (keys[i] >> shift) & 15, 1)
    cuda.syncthreads()
    if tid < 16:
        counts[tid, cuda.blockIdx.x] = mine[tid]


@cuda.jit
def radix_scatter(keys, shift, offsets, out):
    digits = cuda.shared.array(128, int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    digit = -1
    if i < keys.size:
        digit = (keys[i] >> shift) & 15
    digits[tid] = digit
    cuda.syncthreads()
    if digit < 0:
        return
    rank = 0
    for k in range(tid):
        if digits[k] == digit:
            rank += 1
    out[offsets[digit, cuda.blockIdx.x] + rank] = keys[i]


@pytest.mark.parametrize("block", [16, 50, 128])
def test_radix_sort_over_several_blocks(block):
    n = small(1000, 200)
    keys = np.random.default_rng(14).integers(0, 4096, n).astype(np.int32)
    grid = blocks_for(n, block)
    a, b = cuda.to_device(keys), cuda.device_array(n, np.int32)
    for shift in (0, 4, 8):
        counts = cuda.device_array((16, grid), np.int32)
        radix_count[grid, block](a, shift, counts)
        flat = counts.copy_to_host().ravel()
        offsets = (np.cumsum(flat) - flat).reshape(16, grid)
        radix_scatter[grid, block](a, shift, cuda.to_device(offsets), b)
        a, b = b, a
    np.testing.assert_array_equal(a.copy_to_host(), np.sort(keys))


@cuda.jit
def odd_even_sort(values):
    """The block stops as soon as no thread has swapped."""
    tid = cuda.threadIdx.x
    n = values.size
    while True:
        swapped = 0
        for phase in range(2):
            i = 2 * tid + phase
            if i + 1 < n and values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]
                swapped = 1
            cuda.syncthreads()
        if not cuda.syncthreads_or(swapped):
            break


@pytest.mark.parametrize("n", [1, 2, 17, 40])
def test_odd_even_sort_until_nothing_moves(n):
    values = np.random.default_rng(15).random(n)
    expected = np.sort(values)
    odd_even_sort[1, (n + 1) // 2](values)
    np.testing.assert_array_equal(values, expected)


@cuda.jit
def merge_ranks(a, b, out):
    """Every element finds its place by a binary search in the other list."""
    i = cuda.grid(1)
    if i < a.size:
        low, high = 0, b.size
        while low < high:
            mid = (low + high) // 2
            if b[mid] < a[i]:
                low = mid + 1
            else:
                high = mid
        out[i + low] = a[i]
    elif i < a.size + b.size:
        i -= a.size
        low, high = 0, a.size
        while low < high:
            mid = (low + high) // 2
            if a[mid] <= b[i]:
                low = mid + 1
            else:
                high = mid
        out[i + low] = b[i]


@pytest.mark.parametrize("block", [1, 48])
def test_merge_by_binary_search(block):
    rng = np.random.default_rng(16)
    a = np.sort(rng.integers(0, 50, 70).astype(np.int16))
    b = np.sort(rng.integers(0, 50, 41).astype(np.int16))
    out = np.zeros(111, np.int16)
    merge_ranks[blocks_for(111, block), block](a, b, out)
    np.testing.assert_array_equal(out, np.sort(np.concatenate([a, b])))
