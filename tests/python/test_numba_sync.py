"""Numba kernels whose threads wait for each other: barriers, locks, flags, the whole grid."""

import numpy as np
import pytest
from numba_face import blocks_for, cuda, float32, int32, small

# ---- barriers ----


@cuda.jit
def reverse_block(values):
    cache = cuda.shared.array(1024, int32)
    tid = cuda.threadIdx.x
    cache[tid] = values[cuda.grid(1)]
    cuda.syncthreads()
    values[cuda.grid(1)] = cache[cuda.blockDim.x - 1 - tid]


@pytest.mark.parametrize("block", [1, 2, 33, 1024])
def test_reverse_through_shared_memory(block):
    values = np.arange(3 * block, dtype=np.int32)
    expected = values.reshape(3, block)[:, ::-1].ravel()
    reverse_block[3, block](values)
    np.testing.assert_array_equal(values, expected)


@cuda.jit
def return_before_barrier(values, out):
    """Threads beyond the end leave; the barrier waits for the others only."""
    cache = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    if i >= values.size:
        return
    tid = cuda.threadIdx.x
    cache[tid] = values[i]
    cuda.syncthreads()
    last = min(cuda.blockDim.x, values.size - cuda.blockIdx.x * cuda.blockDim.x)
    out[i] = cache[(tid + 1) % last]


@pytest.mark.parametrize("n, block", [(1, 64), (40, 64), (100, 64), (65, 32), (50, 1)])
def test_return_before_a_barrier(n, block):
    values = np.random.default_rng(0).random(n).astype(np.float32)
    out = np.zeros(n, np.float32)
    return_before_barrier[blocks_for(n, block), block](values, out)
    expected = np.concatenate(
        [np.roll(values[s : s + block], -1) for s in range(0, n, block)],
    )
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def leave_one_by_one(out):
    """In every round the barrier has one thread less."""
    tid = cuda.threadIdx.x
    count = 0
    while True:
        if tid == count:
            break
        count += 1
        if cuda.syncthreads_count(1) == 1:
            break
    out[tid] = count


@pytest.mark.parametrize("n", [1, 5, 40])
def test_threads_leave_a_loop_of_barriers_one_by_one(n):
    out = np.full(n, -1, np.int32)
    leave_one_by_one[1, n](out)
    expected = np.arange(n)
    if n > 1:
        expected[-1] = n - 1
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def votes_of_block(values, limit, out):
    i = cuda.grid(1)
    above = 1 if i < values.size and values[i] > limit else 0
    count = cuda.syncthreads_count(above)
    every = cuda.syncthreads_and(above)
    some = cuda.syncthreads_or(above)
    if cuda.threadIdx.x == cuda.blockDim.x - 1:
        b = cuda.blockIdx.x
        out[b, 0] = count
        out[b, 1] = 1 if every else 0
        out[b, 2] = 1 if some else 0


@pytest.mark.parametrize("block", [1, 20, 64, 500])
@pytest.mark.parametrize("limit", [-1.0, 0.4, 0.99, 2.0])
def test_barriers_that_vote(block, limit):
    values = np.random.default_rng(1).random(500)
    grid = blocks_for(500, block)
    out = np.zeros((grid, 3), np.int32)
    votes_of_block[grid, block](values, limit, out)
    above = np.zeros(grid * block, bool)
    above[:500] = values > limit
    above = above.reshape(grid, block)
    expected = np.stack([above.sum(1), above.all(1), above.any(1)], axis=1)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def uniform_loop_with_barriers(steps, out):
    """Barriers below uniform conditions, in nested loops with break and continue."""
    cache = cuda.shared.array(32, int32)
    tid = cuda.threadIdx.x
    n = cuda.blockDim.x
    cache[tid] = tid
    cuda.syncthreads()
    for step in range(steps):
        if step % 3 == 1:
            continue
        for inner in range(4):
            if inner == step % 4:
                break
            left = cache[(tid + inner + 1) % n]
            cuda.syncthreads()
            cache[tid] = (cache[tid] * 3 + left) % 1000
            cuda.syncthreads()
        else:
            cache[tid] += 1
            cuda.syncthreads()
    out[tid] = cache[tid]


@pytest.mark.parametrize("n", [1, 7, 32])
def test_barriers_in_uniform_loops(n):
    steps = 9
    out = np.zeros(n, np.int32)
    uniform_loop_with_barriers[1, n](steps, out)
    cache = np.arange(n)
    for step in range(steps):
        if step % 3 != 1:
            for inner in range(step % 4):
                cache = (cache * 3 + np.roll(cache, -(inner + 1))) % 1000
    np.testing.assert_array_equal(out, cache)


@cuda.jit
def two_dimensional_block(out):
    cache = cuda.shared.array((8, 8), int32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    cache[y, x] = 10 * y + x
    cuda.syncthreads()
    out[cuda.blockIdx.y, cuda.blockIdx.x, y, x] = cache[x, y] + 100 * cuda.blockIdx.x


def test_shared_memory_of_a_grid_of_blocks():
    out = np.zeros((3, 2, 8, 8), np.int32)
    two_dimensional_block[(2, 3), (8, 8)](out)
    y, x = np.mgrid[:8, :8]
    for block in range(2):
        np.testing.assert_array_equal(
            out[:, block], np.broadcast_to(10 * x + y, (3, 8, 8)) + 100 * block
        )


# ---- locks ----


@cuda.jit
def add_under_lock(lock, counter, log):
    """Every thread takes the lock once; what it guards is not atomic."""
    done = False
    while not done:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            n = counter[0]
            log[n] = cuda.grid(1)
            counter[0] = n + 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            done = True


@cuda.jit(device=True)
def acquire(lock):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()


@cuda.jit(device=True)
def release(lock):
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@cuda.jit
def add_in_spin_lock(lock, counter, log):
    acquire(lock)
    n = counter[0]
    log[n] = cuda.grid(1)
    counter[0] = n + 1
    release(lock)


@cuda.jit
def add_with_mutex_by_swap(lock, counter, log):
    while cuda.atomic.compare_and_swap(lock, 0, 1) == 1:
        pass
    cuda.threadfence()
    n = counter[0]
    log[n] = cuda.grid(1)
    counter[0] = n + 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@pytest.mark.parametrize("grid, block", [(1, 1), (1, 32), (40, 1), (3, 100), (5, 64)])
@pytest.mark.parametrize(
    "kernel", [add_under_lock, add_in_spin_lock, add_with_mutex_by_swap], ids=["if", "spin", "swap"]
)
def test_lock_taken_by_every_thread(kernel, grid, block):
    lock, counter = np.zeros(1, np.int32), np.zeros(1, np.int64)
    log = np.full(grid * block, -1, np.int32)
    kernel[grid, block](lock, counter, log)
    assert (lock[0], counter[0]) == (0, grid * block)
    assert sorted(log) == list(range(grid * block))


@cuda.jit
def transfer(locks, balance, source, target, amount):
    """Two locks in the order of their numbers, many threads: no deadlock, nothing lost."""
    i = cuda.grid(1)
    if i >= source.size:
        return
    a, b = min(source[i], target[i]), max(source[i], target[i])
    if a == b:
        return
    done = False
    while not done:
        if cuda.atomic.cas(locks, a, 0, 1) == 0:
            if cuda.atomic.cas(locks, b, 0, 1) == 0:
                cuda.threadfence()
                balance[source[i]] -= amount[i]
                balance[target[i]] += amount[i]
                cuda.threadfence()
                cuda.atomic.exch(locks, b, 0)
                done = True
            cuda.atomic.exch(locks, a, 0)


@pytest.mark.parametrize("block", [1, 32, 100])
def test_transfers_under_two_locks(block):
    n, accounts = small(300, 60), 5
    rng = np.random.default_rng(2)
    source, target = rng.integers(0, accounts, (2, n)).astype(np.int32)
    amount = rng.integers(1, 100, n)
    balance = np.full(accounts, 1000, np.int64)
    locks = np.zeros(accounts, np.int32)
    expected = balance.copy()
    np.subtract.at(expected, source, amount)
    np.add.at(expected, target, amount)
    transfer[blocks_for(n, block), block](locks, balance, source, target, amount)
    np.testing.assert_array_equal(balance, expected)
    assert not locks.any()


@cuda.jit
def largest_under_lock(values, lock, best):
    """One lock per block's leader: the usual way to combine blocks."""
    cache = cuda.shared.array(64, float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    cache[tid] = values[i] if i < values.size else float32(-1)
    cuda.syncthreads()
    if tid == 0:
        mine = cache[0]
        for k in range(1, cuda.blockDim.x):
            mine = max(mine, cache[k])
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        if mine > best[0]:
            best[0] = mine
            best[1] = cuda.blockIdx.x
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


@pytest.mark.parametrize("block", [1, 64])
def test_blocks_combine_under_a_lock(block):
    values = np.random.default_rng(3).random(500).astype(np.float32)
    lock, best = np.zeros(1, np.int32), np.full(2, -1, np.float32)
    largest_under_lock[blocks_for(500, block), block](values, lock, best)
    assert best.tolist() == [values.max(), values.argmax() // block]


# ---- flags ----


@cuda.jit
def pass_the_baton(flags, values):
    """Thread i waits for thread i + 1: later blocks and later lanes have to run first."""
    i = cuda.grid(1)
    n = flags.size
    if i < n:
        total = 1
        if i + 1 < n:
            while cuda.atomic.add(flags, i + 1, 0) == 0:
                pass
            cuda.threadfence()
            total += values[i + 1]
        values[i] = total
        cuda.threadfence()
        cuda.atomic.exch(flags, i, 1)


@pytest.mark.parametrize("grid, block", [(1, 20), (6, 1), (2, 32), (3, 10)])
def test_producer_and_consumer_against_the_order_of_start(grid, block):
    n = grid * block
    flags, values = np.zeros(n, np.int32), np.zeros(n, np.int32)
    pass_the_baton[grid, block](flags, values)
    np.testing.assert_array_equal(values, np.arange(n, 0, -1))


@cuda.jit
def ring_buffer(items, ring, head, tail, received):
    """Block 0 produces, block 1 consumes, through a ring of a few places."""
    size = ring.size
    if cuda.blockIdx.x == 0:
        if cuda.threadIdx.x == 0:
            for k in range(items.size):
                while k - cuda.atomic.add(tail, 0, 0) >= size:
                    pass
                ring[k % size] = items[k]
                cuda.threadfence()
                cuda.atomic.add(head, 0, 1)
    elif cuda.threadIdx.x == 0:
        for k in range(items.size):
            while cuda.atomic.add(head, 0, 0) <= k:
                pass
            cuda.threadfence()
            received[k] = ring[k % size] + 1
            cuda.threadfence()
            cuda.atomic.add(tail, 0, 1)


@pytest.mark.parametrize("block", [1, 32, 64])
@pytest.mark.parametrize("places", [1, 4])
def test_ring_buffer_between_blocks(block, places):
    items = np.random.default_rng(4).integers(0, 1000, 50).astype(np.int32)
    ring, received = np.zeros(places, np.int32), np.zeros(50, np.int32)
    head, tail = np.zeros(1, np.int32), np.zeros(1, np.int32)
    ring_buffer[2, block](items, ring, head, tail, received)
    np.testing.assert_array_equal(received, items + 1)


@cuda.jit
def warps_in_turn(order):
    """Two warps of one block hand a token in shared memory to and fro."""
    token = cuda.shared.array(1, int32)
    tid = cuda.threadIdx.x
    warp = tid // 32
    if tid == 0:
        token[0] = 0
    cuda.syncthreads()
    if tid % 32 == 0:
        for k in range(warp, order.size, 2):
            while cuda.atomic.add(token, 0, 0) != k:
                pass
            order[k] = 10 * k + warp
            cuda.threadfence_block()
            cuda.atomic.add(token, 0, 1)


def test_two_warps_take_turns():
    order = np.full(21, -1, np.int32)
    warps_in_turn[1, 64](order)
    assert order.tolist() == [10 * k + k % 2 for k in range(21)]


# ---- the whole grid ----


@cuda.jit
def rounds_with_own_barrier(cells, arrived, rounds):
    """A grid barrier by hand: the last block to arrive opens the gate."""
    i = cuda.grid(1)
    n = cells.shape[1]
    blocks = cuda.gridDim.x
    for r in range(rounds):
        now, last = (r + 1) % 2, r % 2
        if i < n:
            cells[now, i] = cells[last, (i + 1) % n] + cells[last, (i + n - 1) % n]
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            cuda.atomic.add(arrived, 0, 1)
            while cuda.atomic.add(arrived, 0, 0) < blocks * (r + 1):
                pass
            cuda.threadfence()
        cuda.syncthreads()


@cuda.jit
def rounds_with_grid_sync(cells, rounds):
    i = cuda.grid(1)
    n = cells.shape[1]
    g = cuda.cg.this_grid()
    for r in range(rounds):
        now, last = (r + 1) % 2, r % 2
        if i < n:
            cells[now, i] = cells[last, (i + 1) % n] + cells[last, (i + n - 1) % n]
        g.sync()


def rounds_by_hand(cells, rounds):
    now = cells[0].astype(object)
    for _ in range(rounds):
        now = np.roll(now, -1) + np.roll(now, 1)
    return now


@pytest.mark.parametrize("grid, block", [(1, 1), (4, 1), (5, 32), (2, 100), (3, 256)])
@pytest.mark.parametrize("own", [True, False], ids=["by hand", "grid.sync"])
def test_grid_barrier(own, grid, block):
    n, rounds = grid * block, 7
    cells = np.random.default_rng(5).integers(0, 100, (2, n))
    expected = rounds_by_hand(cells, rounds)
    if own:
        rounds_with_own_barrier[grid, block](cells, np.zeros(1, np.int32), rounds)
    else:
        rounds_with_grid_sync[grid, block](cells, rounds)
    np.testing.assert_array_equal(cells[rounds % 2], expected.astype(np.int64))


@cuda.jit
def sum_in_two_phases(values, partial, out):
    """Blocks sum, the grid meets, the first block combines."""
    cache = cuda.shared.array(128, int32)
    grid = cuda.cg.this_grid()
    tid = cuda.threadIdx.x
    total = 0
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        total += values[i]
    cache[tid] = total
    cuda.syncthreads()
    if tid == 0:
        total = 0
        for k in range(cuda.blockDim.x):
            total += cache[k]
        partial[cuda.blockIdx.x] = total
    grid.sync()
    if cuda.grid(1) == 0:
        total = 0
        for k in range(cuda.gridDim.x):
            total += partial[k]
        out[0] = total


@pytest.mark.parametrize("grid, block", [(1, 1), (7, 32), (3, 128)])
def test_two_phases_in_one_launch(grid, block):
    values = np.random.default_rng(6).integers(0, 100, 1000).astype(np.int32)
    partial, out = np.zeros(grid, np.int32), np.zeros(1, np.int64)
    sum_in_two_phases[grid, block](values, partial, out)
    assert out[0] == values.sum()


@cuda.jit
def last_block_finishes(values, partial, done, out):
    """The block that arrives last adds the partial sums (a CUDA sample)."""
    cache = cuda.shared.array(64, int32)
    last = cuda.shared.array(1, int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    cache[tid] = values[i] if i < values.size else 0
    cuda.syncthreads()
    if tid == 0:
        total = 0
        for k in range(cuda.blockDim.x):
            total += cache[k]
        partial[cuda.blockIdx.x] = total
        cuda.threadfence()
        ticket = cuda.atomic.inc(done, 0, cuda.gridDim.x - 1)
        last[0] = ticket == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0]:
        cuda.threadfence()
        if tid == 0:
            total = 0
            for k in range(cuda.gridDim.x):
                total += partial[k]
            out[0] += total


@pytest.mark.parametrize("block", [1, 50, 64])
def test_the_last_block_finishes(block):
    values = np.random.default_rng(7).integers(0, 100, 300).astype(np.int32)
    grid = blocks_for(300, block)
    partial, done = np.zeros(grid, np.int32), np.zeros(1, np.uint32)
    out = np.zeros(1, np.int32)
    for repeat in range(1, 4):
        last_block_finishes[grid, block](values, partial, done, out)
        assert (out[0], done[0]) == (repeat * values.sum(), 0)


@cuda.jit
def work_queue(queue, head, tail, results):
    """Threads take numbers from a queue and may put two smaller ones back."""
    while True:
        at = cuda.atomic.add(head, 0, 1)
        if at >= queue.size:
            return
        while cuda.atomic.add(tail, 0, 0) <= at:
            pass
        cuda.threadfence()
        while True:
            n = cuda.atomic.add(queue, at, 0)
            if n != 0:
                break
        if n > 1:
            slot = cuda.atomic.add(tail, 0, 2)
            cuda.atomic.exch(queue, slot, n // 2)
            cuda.atomic.exch(queue, slot + 1, n - n // 2)
        else:
            cuda.atomic.add(results, 0, 1)


@pytest.mark.parametrize("grid, block", [(1, 1), (1, 7), (4, 1), (2, 16)])
def test_work_queue(grid, block):
    start = 24
    queue = np.zeros(2 * start - 1, np.int32)
    queue[0] = start
    head, tail, results = np.zeros(1, np.int32), np.ones(1, np.int32), np.zeros(1, np.int32)
    work_queue[grid, block](queue, head, tail, results)
    assert results[0] == start and tail[0] == 2 * start - 1


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float32, np.float64])
def test_sums_whose_old_values_nobody_asks_for(dtype):
    """Beside the same with the old values: a bin's threads see all its partial sums."""

    @cuda.jit
    def count(data, bins, old):
        alone, kept = cuda.shared.array(16, dtype), cuda.shared.array(16, dtype)
        t = cuda.threadIdx.x
        if t < 16:
            alone[t] = 0
            kept[t] = 0
        cuda.syncthreads()
        if data[t] < 12:
            cuda.atomic.add(alone, int(data[t]), data[t])
            old[t] = cuda.atomic.add(kept, int(data[t]), data[t])
            cuda.atomic.add(alone, 15, 2)
            cuda.atomic.add(bins, 16, 1)
        cuda.syncthreads()
        if t < 16:
            cuda.atomic.add(bins, t, alone[t] + kept[t])

    data = np.random.default_rng(5).integers(0, 16, 256).astype(dtype)
    bins, old = np.zeros(17, dtype), np.zeros(256, dtype)
    count[1, 256](data, bins, old)
    few = data[data < 12].astype(int)
    want = 2 * np.bincount(few, weights=few, minlength=17)
    want[15:] = 2 * len(few), len(few)
    assert bins.tolist() == want.tolist()
    for b in range(1, 12):
        assert sorted(old[data == b]) == [b * k for k in range((data == b).sum())]
