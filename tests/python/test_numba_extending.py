"""overload, literal_unroll, and names of Numba whose meaning a CPU device has little of."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from simt.numba import config, cuda, literal_unroll, njit, types
from simt.numba.core.errors import NumbaPerformanceWarning, TypingError
from simt.numba.extending import overload, register_jitable


def stub(x, y=2):
    pass


@overload(stub)
def for_numbers(x, y=2):
    if isinstance(x, types.Integer):
        return lambda x, y=2: x + y
    if isinstance(x, types.Float):
        return lambda x, y=2: x * y
    return None


@overload(stub)
def for_arrays(x, y=2):
    if not isinstance(x, types.Array):
        return None
    assert x.ndim == 1 and x.dtype == types.float64 and x.layout == "C"

    @njit
    def total(x, y=2):
        s = 0.0
        for v in x:
            s += v * y
        return s

    return total


def test_overload():
    @cuda.jit
    def k(a, out):
        out[0] = stub(41, 1)
        out[1] = stub(1.5)
        out[2] = stub(a, y=10)
        out[3] = stub(x=3)

    out = np.zeros(4)
    k[1, 1](np.arange(4.0), out)
    assert (out == [42, 3, 60, 5]).all()


def test_overloads_that_do_not_fit():
    with pytest.raises(TypingError, match=r"no overload of stub is for the types \(complex128"):
        cuda.jit(lambda z: stub(z))[1, 1](1j)
    with pytest.raises(TypingError, match="an overload of function stub is not in simt yet"):
        cuda.jit(lambda z: stub(stub))[1, 1](1)
    with pytest.raises(TypingError, match="argument 'x' is missing"):
        cuda.jit(lambda z: stub())[1, 1](1)
    with pytest.raises(TypeError, match="nearest is an overload of a Python function"):
        overload(len)

    def broken(x):
        pass

    overload(broken)(lambda x: 1 / 0)
    with pytest.raises(TypingError, match="division by zero"):
        cuda.jit(lambda z: broken(z))[1, 1](1)


def test_register_jitable():
    @register_jitable
    def double(x):
        return 2 * x

    out = np.zeros(1)
    cuda.jit(lambda out: out.fill(double(4)))[1, 1](out)
    assert out[0] == 8 == double(4)


MIXED = (1, 2.5, np.float32(4))


def test_literal_unroll():
    @cuda.jit
    def k(out):
        for x in literal_unroll(MIXED):
            out[0] += x

    out = np.zeros(1)
    k[1, 1](out)
    assert out[0] == 7.5 and literal_unroll(MIXED) is MIXED


def test_warnings_of_launches():
    @cuda.jit
    def k(a):
        a[0] = 1

    def caught(*args, grid=1):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            k[grid, 1](*args)
        return [str(w.message) for w in found if w.category is NumbaPerformanceWarning]

    a, d = np.zeros(1), cuda.device_array(1)
    assert caught(a) == []
    try:
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
        config.CUDA_WARN_ON_IMPLICIT_COPY = 1
        small, copied = caught(a)
        assert "Grid size 1 will likely result in GPU under-utilization" in small
        assert copied == "Host array used in CUDA kernel will incur copy overhead to/from device."
        assert caught(d, grid=100_000) == []
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        assert caught(a) == [copied] and caught(d) == []
        a[0] = 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(NumbaPerformanceWarning):
                k[1, 1](a)
        assert a[0] == 0
    finally:
        config.CUDA_LOW_OCCUPANCY_WARNINGS = config.CUDA_WARN_ON_IMPLICIT_COPY = 0


def test_warnings_by_the_environment():
    code = "from simt.numba import config as c; print(c.CUDA_LOW_OCCUPANCY_WARNINGS)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"


def test_carveout():
    for value in (-1, 50, 100, "MaxShared", "maxl1", "Default", None):
        cuda.jit(shared_memory_carveout=value)
    for value in (-2, 101, 1.5, True, "most"):
        with pytest.raises(ValueError, match="shared_memory_carveout must be"):
            cuda.jit(shared_memory_carveout=value)


def test_memory_managers_can_be_defined():
    class Manager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
        interface_version = 1

        def memalloc(self, size):
            return cuda.MemoryPointer(None, 0, size, finalizer=freed.append(size))

        def get_memory_info(self):
            return cuda.MemoryInfo(free=1, total=2)

    freed = []
    manager = Manager(context=None)
    assert manager.memalloc(8).size == 8 and manager.get_memory_info().total == 2
    assert issubclass(cuda.PinnedMemory, cuda.MemoryPointer)
    with pytest.raises(NotImplementedError, match="set_memory_manager is not in simt yet"):
        cuda.set_memory_manager(Manager)
    assert {"MemoryPointer", "set_memory_manager"} <= set(dir(cuda))
