"""What compiled kernels keep: a bounded number of entries, and no object of the program."""

import gc
import itertools
import os
import types
import weakref

import numpy as np
import pytest
from numba_source import load
from simt.numba import cuda

module = types.ModuleType("module")  # its attributes and SCALE are constants of kernels below
SCALE = 1.0


def resident():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def grows_by(step, warm, count):
    """Bytes by which memory grows over `count` calls of step(i), after `warm` of them."""
    for i in range(warm):
        step(i)
    gc.collect()
    before = resident()
    for i in range(warm, warm + count):
        step(i)
    gc.collect()
    return resident() - before


needs_plain_memory = pytest.mark.skipif(
    "SIMT_SANITIZE" in os.environ, reason="the sanitizer keeps freed memory for a while"
)


@needs_plain_memory
def test_ten_thousand_signatures_of_one_kernel_leave_memory_level():
    @cuda.jit
    def first(t, out):
        out[0] = t[0]

    kinds = (1, 1.5, True, 1j, np.float32(1), np.int8(1))
    tuples = list(itertools.islice(itertools.product(kinds, repeat=6), 10_000))
    out = np.zeros(1, np.complex128)
    launch = first[1, 1]
    growth = grows_by(lambda i: launch(tuples[i], out), 5000, 5000)
    assert growth < 4 << 20
    assert 1 <= len(first.overloads) <= 128


def test_entries_used_lately_stay_and_others_are_made_again():
    @cuda.jit
    def scaled(x, out):
        out[0] = x[0] * SCALE

    global SCALE
    x, out = np.full(1, 3.0), np.zeros(1)
    SCALE = 1.0
    scaled[1, 1](x, out)
    SCALE = 2.0
    for threads in range(2, 120):
        scaled[1, threads](x, out)
        assert out[0] == 3.0  # the signature was compiled with SCALE = 1
    scaled[1, 1](np.full(1, 3, np.int64), out)
    assert out[0] == 6.0
    for threads in range(1, 300):  # more than are kept: the float64 signature goes and comes again
        scaled[1, threads](np.full(1, 3, np.int64), out)
    scaled[1, 1](x, out)
    assert out[0] == 6.0
    scaled.recompile()
    SCALE = 5.0
    scaled[1, 1](x, out)
    assert out[0] == 15.0


def test_a_declared_signature_keeps_its_constants_for_every_block_size():
    global SCALE
    SCALE = 7.0

    @cuda.jit("void(float64[:], float64[:])")
    def scaled(x, out):
        out[0] = x[0] * SCALE

    SCALE = 8.0
    x, out = np.full(1, 3.0), np.zeros(1)
    for threads in range(1, 300):
        scaled[1, threads](x, out)
        assert out[0] == 21.0
    assert len(scaled.overloads) == 1


def test_constants_of_modules_are_frozen_and_not_kept_alive():
    class Table(np.ndarray):  # plain arrays take no weak references in every NumPy
        pass

    @cuda.jit
    def look(out):
        out[0] = module.TABLE[0] + module.LIMIT

    module.TABLE, module.LIMIT = np.full(4, 2.0).view(Table), 10
    gone = weakref.ref(module.TABLE)
    out = np.zeros(1)
    look[1, 1](out)
    assert out[0] == 12
    module.TABLE, module.LIMIT = np.full(4, 3.0), 20
    gc.collect()
    assert gone() is None
    look[1, 1](out)
    assert out[0] == 12  # as Numba: constants are those of the compilation
    look.recompile()
    look[1, 1](out)
    assert out[0] == 23


@needs_plain_memory
def test_constants_that_change_ten_thousand_times_leave_memory_level():
    @cuda.jit
    def look(out):
        out[0] = module.TABLE[1] + module.LIMIT

    out = np.zeros(1)

    def step(i):
        module.TABLE, module.LIMIT = np.full(100, i, np.float64), i
        look.recompile()
        look[1, 1](out)
        assert out[0] == 2 * i

    # simt keeps the code of the 4096 kernels used last, here a few KB each
    assert grows_by(step, 5000, 5000) < 8 << 20


def test_kernels_of_a_loop_go_with_their_functions():
    alive = []
    out = np.zeros(1)
    for factor in range(50):
        data = np.full(3, float(factor))

        @cuda.jit(device=True)
        def helper(x):
            return x * factor

        @cuda.jit
        def kernel(out):
            out[0] = helper(data[1])

        kernel[1, 1](out)
        assert out[0] == factor * factor
        alive += [weakref.ref(kernel), weakref.ref(kernel.py_func), weakref.ref(helper.py_func)]
        kernel = helper = data = None
    gc.collect()
    assert not any(ref() for ref in alive)


def test_a_kernel_that_its_own_globals_hold_is_collected():
    source = """
class Config:
    LIMIT = 3

class Wrong(Exception):
    pass

@cuda.jit
def kernel(out):
    if out.size > 5:
        raise Wrong
    out[0] = Config.LIMIT + helper(1)

@cuda.jit(device=True)
def helper(x):
    return x + 1

Config.kernel = kernel
launch = kernel[1, 1]
"""
    names = load(source, cuda=cuda)
    out = np.zeros(1)
    names["launch"](out)
    assert out[0] == 5
    gone = [weakref.ref(names[name]) for name in ("Config", "Wrong", "kernel")]
    wrong = names.pop("Wrong")
    gc.collect()
    with pytest.raises(wrong):  # the kernel has it still
        names["launch"](np.zeros(6))
    names = wrong = None
    gc.collect()
    assert [ref() for ref in gone] == [None, None, None]


@needs_plain_memory
def test_kernels_made_by_the_thousand_leave_memory_level():
    out = np.zeros(1)

    def step(i):
        @cuda.jit
        def kernel(out):
            out[0] = i

        kernel[1, 1](out)
        assert out[0] == i

    assert grows_by(step, 5000, 5000) < 8 << 20


def test_a_fault_names_its_place_when_the_functions_are_gone():
    """The texts of a compiled kernel are its own."""
    module.helper = load("def helper(a, i):\n    return a[i]\n").pop("helper")

    @cuda.jit
    def kernel(a, out):
        out[0] = module.helper(a, 7)

    a, out = np.zeros(10), np.zeros(1)
    kernel[1, 1](a, out)
    del module.helper
    gc.collect()
    with pytest.raises(IndexError, match=r"index 7 is out of bounds.*\n.*<generated .*>:2"):
        kernel[1, 1](np.zeros(5), out)
