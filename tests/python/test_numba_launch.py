"""The dispatcher of the numba face: options, launch configuration, limits, arguments."""

import subprocess
import sys

import numpy as np
import pytest
from simt.numba import cuda
from simt.numba.cuda.cudadrv.driver import CudaAPIError


@cuda.jit
def copy(source, target):
    """Copies."""
    i = cuda.grid(1)
    if i < target.size:
        target[i] = source[i]


def test_a_kernel_is_still_its_function():
    assert copy.__name__ == "copy" and copy.__doc__ == "Copies." and copy.py_func.__name__ == "copy"
    with pytest.raises(ValueError, match="launch configuration was not specified"):
        copy(1, 2)
    with pytest.raises(ValueError, match="is called from kernels"):
        cuda.jit(device=True)(copy.py_func)(1, 2)
    with pytest.raises(RuntimeError, match="Cannot compile a device function"):
        cuda.jit(device=True)(copy.py_func)[1, 1]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"colour": 1}, TypeError, "unrecognized option 'colour'"),
        ({"argtypes": ()}, TypeError, "give a signature"),
        ({"link": ["x.ptx"]}, NotImplementedError, "not in simt yet"),
        ({"device": True, "link": ["x.ptx"]}, ValueError, "link keyword invalid"),
    ],
)
def test_options(options, error, words):
    with pytest.raises(error, match=words):
        cuda.jit(**options)


def test_known_options_are_taken():
    cuda.jit(fastmath=True, debug=True, opt=False, lineinfo=True, max_registers=32)(copy.py_func)
    cuda.jit(device=True, inline=True, fma=False, cache=True)(copy.py_func)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "words"),
    [
        (1, 1025, 0, r"block \(1025, 1, 1\): x is 1025, 1 more than the limit of 1024"),
        (1, (1, 1, 65), 0, "z is 65, 1 more than the limit of 64"),
        (1, (32, 64), 0, "2048 threads, 1024 more than the limit of 1024"),
        (1, 0, 0, "must be at least 1"),
        ((1, 65536), 1, 0, "y is 65536, 1 more than the limit of 65535"),
        (2**31, 1, 0, "x is 2147483648, 1 more than the limit of 2147483647"),
        (0, 1, 0, "x is 0, and must be at least 1"),
        (-1, 1, 0, "x is -1"),
    ],
)
def test_limits_of_a_launch(grid, block, shared, words):
    with pytest.raises(CudaAPIError, match=words):
        copy[grid, block, 0, shared](np.ones(2), np.ones(2))


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (3, ValueError, "must specify at least the griddim and blockdim"),
        ((1, 2, 0, 0, 0), ValueError, "at most"),
        ((1.5, 1), TypeError, "griddim must be a sequence of integers, got 1.5"),
        ((1, (1, "a")), TypeError, "blockdim must be a sequence of integers"),
        (((1, 1, 1, 1), 1), ValueError, "griddim must be a sequence of 1, 2 or 3 integers"),
        (((), 1), ValueError, "1, 2 or 3"),
        ((None, 1), TypeError, "griddim"),
    ],
)
def test_configurations(key, error, words):
    with pytest.raises(error, match=words):
        copy[key]


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((1,), TypeError, "kernel copy: not enough arguments: expected 2, got 1"),
        ((1, 2, 3), TypeError, "kernel copy: too many arguments: expected 2, got 3"),
        (("x", 1), TypeError, r"argument 1 \('source'\) is a str: kernels take no strings"),
        ((1, [1]), TypeError, r"argument 2 \('target'\) is a list: give a NumPy array or a tuple"),
        ((1, {}), TypeError, r"argument 2 \('target'\) is a dict"),
        ((1, (1, object())), TypeError, r"argument 2 \('target'\) is a object"),
        ((2**64, 1), OverflowError, r"argument 1 \('source'\) = 18446744073709551616 fits neither"),
        ((-(2**63) - 1, 1), OverflowError, "fits neither"),
        ((np.zeros(2, "O"), 1), TypeError, "of dtype object"),
        ((np.zeros(2, "i4,>U4"), 1), TypeError, "dtype >U4: kernels take strings"),
        ((np.zeros(2, "M8[s]"), 1), TypeError, "of dtype datetime64"),
        ((np.zeros(2, ">i4"), 1), TypeError, "of dtype >i4"),
        ((np.datetime64("2020"), 1), TypeError, "argument 1"),
        ((np.zeros((1,) * 9), 1), TypeError, "more than 8 dimensions"),
    ],
)
def test_arguments_that_kernels_do_not_take(args, error, words):
    with pytest.raises(error, match=words):
        copy[1, 1](*args)


def test_keywords_are_not_taken():
    with pytest.raises(TypeError, match="unexpected keyword argument 'target'"):
        copy[1, 1](1, target=2)


def test_arguments_are_let_go():
    a = np.ones(4)
    before = sys.getrefcount(a)
    for args in [(a, "x"), ((a, (a, a)), {}), (a, a, a)]:
        with pytest.raises(TypeError):
            copy[1, 1](*args)
    del args
    assert sys.getrefcount(a) == before
    a.resize(8, refcheck=False)  # fails while a buffer is held


def test_intrinsics_on_the_host():
    for f in (cuda.grid, cuda.syncthreads, cuda.atomic.add, cuda.shared.array, cuda.threadIdx.x):
        with pytest.raises(NotImplementedError, match="only inside a kernel"):
            f(1)


def test_functions_of_njit_are_for_kernels_and_the_host():
    code = """
import numba
import numpy as np
from numba import cuda, njit, prange
try:
    from numba import stencil
except ImportError as error:
    print(error)

@njit(parallel=True)
def total(a, scale=2.0):
    s = 0.0
    for i in prange(a.size):
        s += a[i] * scale
    return s

@numba.jit("float64(float64)", nopython=True)
def half(x):
    return x / 2

class Model:
    @njit
    def area(self, x):
        return half(x)

@cuda.jit
def kernel(a, out):
    out[0] = half(total(a, scale=3.0))

out = np.zeros(1)
kernel[1, 1](np.arange(4.0), out)
print(out, total(np.arange(4.0)), half(3), Model().area(5), total.py_func(np.ones(2)))
try:
    half[1, 1](out)
except TypeError as error:
    print(error)
numba.cfunc
"""
    command = [sys.executable, "-m", "simt", "run", "-q", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert all("nearest is numba.cuda.jit" in text for text in (done.stdout, done.stderr))
    assert "[9.] 12.0 1.5 2.5 4.0" in done.stdout
    assert "a kernel that is launched is made by @cuda.jit" in done.stdout
    assert done.stderr.count("as plain Python") == 1


def test_in_and_out():
    @cuda.jit
    def kernel(a, b, c):
        b[0] = a[0] * 2
        a[0] = -1
        c[0] += 1

    a, b, c = np.full(1, 4.0), np.zeros(1), np.ones(1)
    kernel[1, 1](cuda.In(a), cuda.Out(b), cuda.InOut(c))
    assert (a[0], b[0], c[0]) == (4, 8, 2)


def test_what_is_known_of_a_kernel():
    table = np.arange(5, dtype=np.float32)

    @cuda.jit
    def kernel(a):
        shared = cuda.shared.array(64, np.float32)
        local = cuda.local.array((3, 2), np.float64)
        i = cuda.threadIdx.x
        local[i % 3, 0] = cuda.const.array_like(table)[i % 5]
        shared[i] = local[i % 3, 0]
        cuda.syncthreads()
        a[i] = shared[63 - i]

    a = np.zeros(64, np.float32)
    kernel[1, 64](a)
    assert (a == table[np.arange(64)[::-1] % 5]).all()
    (signature,) = kernel.signatures
    assert kernel.get_shared_mem_per_block() == {signature: 256}
    assert kernel.get_local_mem_per_thread(signature) == 48
    assert kernel.get_const_mem_size(signature) == 20
    assert kernel.get_max_threads_per_block(signature) == 1024
    assert kernel.get_regs_per_thread(signature) == 0
    assert "barrier" in kernel.inspect_llvm(signature)
    assert len(kernel.inspect_asm()[signature]) > 100
    made = kernel.specialize(a)
    assert made.get_shared_mem_per_block() == 256
    assert made.overloads[signature].max_cooperative_grid_blocks(64) > 0
    for name in ("inspect_types", "inspect_sass"):
        with pytest.raises(NotImplementedError, match="not in simt yet; nearest is inspect"):
            getattr(kernel, name)()
    for name, near in (("compile_ptx", "inspect_asm"), ("declare_device", "cuda.jit.device=True")):
        with pytest.raises(AttributeError, match=f"not in simt yet; nearest is .*{near}"):
            getattr(cuda, name)


@pytest.mark.parametrize(
    "bounds, most", [(128, 128), ((64, 2), 64), ((32, 1, 2), 32), (None, 1024)]
)
def test_launch_bounds(bounds, most):
    @cuda.jit(launch_bounds=bounds)
    def kernel(a):
        a[cuda.grid(1)] = 1

    a = np.zeros(most)
    kernel[1, most](a)
    assert a.all()
    with pytest.raises(cuda.cudadrv.driver.CudaAPIError, match="launch_bounds|limit"):
        kernel[1, 2 * most](np.zeros(2 * most))
    for wrong in ("many", 0, 2.5, ((4,), 2)):
        with pytest.raises(ValueError, match="launch_bounds is a number"):
            cuda.jit(launch_bounds=wrong)(kernel.py_func)


def test_device_functions_are_not_launched():
    @cuda.jit(device=True)
    def function():
        pass

    with pytest.raises(RuntimeError, match="Cannot compile a device function as a kernel"):
        function[1, 1]()


def test_integers_of_the_declared_size_are_taken_as_they_are():
    """By a kernel with one signature, as Numba's; several are told apart by their types."""

    @cuda.jit("void(int32[:,:])")
    def kernel(a):
        a[cuda.threadIdx.x, 0] -= 2

    a = np.ones((2, 2), np.uint32)
    kernel[1, 2](a)
    assert a.tolist() == [[2**32 - 1, 1], [2**32 - 1, 1]]
    for wrong in (np.ones((2, 2), np.uint16), np.ones((2, 2), np.float32), np.ones(2, np.uint32)):
        with pytest.raises(TypeError, match="No matching definition"):
            kernel[1, 2](wrong)
    two = cuda.jit(["void(int32[:,:])", "void(float32[:,:])"])(kernel.py_func)
    with pytest.raises(TypeError, match="No matching definition"):
        two[1, 2](a)


def test_compile_leaves_other_types_possible():
    @cuda.jit
    def kernel(out, x):
        out[0] = twice(x)

    @cuda.jit(device=True)
    def twice(x):
        return 2 * x

    twice.compile("int64(int64)")
    kernel.compile("void(float64[::1], float64)")
    assert len(kernel.signatures) == 1
    out = np.zeros(1)
    for value in (2.25, 3, np.float32(0.5), 1):
        kernel[1, 1](out, value)
        assert out[0] == 2 * value
    with pytest.raises(TypeError, match="void return"):
        kernel.compile("int64(float64[::1], float64)")
