"""The reference of CUDA's model, tested by what it must be able to tell."""

import numpy as np
import pytest
import simulator as cuda


def test_barrier_and_shared_memory():
    @cuda.jit
    def rotate(values):
        cache = cuda.shared.array(70, np.int32)
        tid = cuda.threadIdx.x
        cache[tid] = values[cuda.grid(1)]
        cuda.syncthreads()
        values[cuda.grid(1)] = cache[(tid + 1) % cuda.blockDim.x]

    values = np.arange(140)
    rotate[2, 70](values)
    np.testing.assert_array_equal(
        values.reshape(2, 70), np.roll(np.arange(140).reshape(2, 70), -1, 1)
    )


def test_uninitialised_memory_is_garbage():
    @cuda.jit
    def kernel(out):
        out[0] = cuda.shared.array(1, np.int32)[0]
        out[1] = cuda.local.array(1, np.int32)[0]

    out = np.zeros(2, np.int32)
    kernel[1, 1](out)
    assert out.all()


def test_spin_lock_and_a_wait_for_a_later_block():
    @cuda.jit
    def kernel(lock, counter, flag):
        if cuda.grid(1) == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        counter[0] += 1
        cuda.atomic.exch(lock, 0, 0)
        if cuda.grid(1) == 99:
            cuda.atomic.exch(flag, 0, 1)

    lock, counter, flag = np.zeros((3, 1), np.int32)
    kernel[5, 20](lock, counter, flag)
    assert counter[0] == 100


def test_warp_operations():
    @cuda.jit
    def kernel(out):
        lane = cuda.laneid
        half = 0xFFFF if lane < 16 else 0xFFFF0000
        out[0, lane] = cuda.shfl_down_sync(half, lane * lane, 4)
        out[1, lane] = cuda.ballot_sync(half, lane % 3 == 0)
        out[2, lane] = cuda.match_any_sync(0xFFFFFFFF, lane // 8)

    out = np.zeros((3, 32), np.int64)
    kernel[1, 32](out)
    assert out[0, :12].tolist() == [(k + 4) ** 2 for k in range(12)]
    assert out[1, 20] == sum(1 << k for k in range(16, 32) if k % 3 == 0)
    assert out[2, 9] == 0xFF00


def test_errors_and_deadlocks_end_the_launch():
    @cuda.jit
    def beyond(values):
        cuda.syncthreads()
        values[cuda.threadIdx.x] = 1

    with pytest.raises(IndexError):
        beyond[1, 8](np.zeros(5))

    @cuda.jit
    def waits_for_itself():
        if cuda.threadIdx.x == 0:
            cuda.syncwarp(3)
        else:
            cuda.syncthreads()

    with pytest.raises(cuda.Deadlock, match="2 threads"):
        waits_for_itself[1, 2]()
