"""What a launch reports: faults of kernels, prints, interrupts; and what it does with arguments."""

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from numba_face import MODE, cuda, float32
from simt import cupy as cp
from simt import torch
from simt.numba.core.errors import TypingError
from simt.numba.cuda import libdevice
from simt.numba.cuda.cudadrv.driver import CudaAPIError
from simt.numba.cuda.random import (
    create_xoroshiro128p_states,
    xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float32,
)

if MODE != "simt":
    pytest.skip("simt's own reports", allow_module_level=True)


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    c[i] = a[i] + b[i]


def line_of(kernel, offset):
    return kernel.py_func.__code__.co_firstlineno + offset


def test_index_error_names_everything():
    a, c = np.ones(10, np.float32), np.zeros(20, np.float32)
    with pytest.raises(IndexError) as error:
        add[2, 8](a, c, c)
    assert str(error.value) == (
        "kernel add: index 10 is out of bounds for axis 0 with size 10: array 'a' of shape (10,)\n"
        f"at {__file__}:{line_of(add, 3)}:12, block (1, 0, 0), thread (2, 0, 0)\n"
        "    c[i] = a[i] + b[i]\n           ^"
    )
    assert np.array_equal(c[:8], a[:8])  # the other threads' work is done


def test_index_error_in_several_dimensions():
    @cuda.jit
    def fill(image, pair):
        x, y = cuda.grid(2)
        image[x, y] = pair[1][0]

    d = cuda.device_array((4, 3))
    words = r"index 3 .* axis 1 with size 3: array 'image' of shape \(4, 3\)"
    with pytest.raises(IndexError, match=words) as error:
        fill[(2, 2), (2, 2)](d, (1, np.ones(1)))
    assert "block (0, 1, 0), thread (0, 1, 0)" in str(error.value)
    fill[(2, 1), (2, 3)](d, (1, np.ones(1)))
    assert np.array_equal(d.copy_to_host(), np.ones((4, 3)))


def test_index_error_names_the_first_axis_that_is_out_of_range():
    @cuda.jit
    def look(v, i, j, k):
        v[0, 0, 0] = v[i, j, k]

    v = np.ones((3, 4, 5))
    for place in ((0, 1, 5), (0, 4, 9), (-1, -5, 9), (3, 0, 0), (0, 0, -6), (-4, 9, 9)):
        axis = next(a for a in range(3) if not -v.shape[a] <= place[a] < v.shape[a])
        words = f"index {place[axis]} is out of bounds for axis {axis} with size {v.shape[axis]}:"
        with pytest.raises(IndexError, match=words):
            look[1, 1](v, *place)


@cuda.jit
def fails(how):
    if cuda.grid(1) == 37:
        if how == 0:
            raise ValueError("bad value")
        elif how == 1:
            raise ZeroDivisionError
        raise RuntimeError("last")


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [(0, ValueError, "bad value\n"), (1, ZeroDivisionError, ""), (2, RuntimeError, "last\n")],
)
def test_raise(how, error, text):
    with pytest.raises(error) as caught:
        fails[2, 32](how)
    assert str(caught.value).startswith(text + "in kernel fails\nat ")
    assert "block (1, 0, 0), thread (5, 0, 0)" in str(caught.value)


class OwnError(Exception):
    pass


class PairError(Exception):
    def __init__(self, first, second):
        pass


def raiser(error, text):
    @cuda.jit
    def stops():
        if cuda.threadIdx.x == 1:
            raise error(text)

    return stops


@pytest.mark.parametrize("error", [OwnError, KeyError, OSError, StopIteration])
def test_raise_a_class_of_the_closure(error):
    with pytest.raises(error) as caught:
        raiser(error, "why")[1, 2]()
    assert type(caught.value) is error
    assert caught.value.args[0].startswith("why\nin kernel stops\nat ")


@pytest.mark.parametrize("error", [PairError, UnicodeDecodeError, SystemExit])
def test_raise_what_a_text_cannot_make(error):
    with pytest.raises(RuntimeError, match="why"):
        raiser(error, "why")[1, 2]()


def test_raise_in_a_variable():
    @cuda.jit
    def stops(i):
        error = IndexError
        if i == 0:
            raise error
        raise np.linalg.LinAlgError(3)

    with pytest.raises(IndexError):
        stops[1, 1](0)
    with pytest.raises(np.linalg.LinAlgError):
        stops[1, 1](1)
    with pytest.raises(TypingError, match="raise an exception class"):
        raiser("no class", "why")[1, 2]()


def test_assert():
    @cuda.jit
    def positive(a):
        assert a[cuda.grid(1)] > 0, "not positive"

    positive[1, 2](np.ones(2))
    with pytest.raises(AssertionError, match="not positive"):
        positive[1, 2](np.array([1, 0]))


def test_print_in_order_of_threads(capsys):
    @cuda.jit
    def show(a):
        i = cuda.grid(1)
        print("thread", i, a[i], i > 2)
        if i == 0:
            print()

    show[3, 2](np.arange(6, dtype=np.float32) / 2)
    lines = [f"thread {i} {i / 2:f} {i > 2}" for i in range(6)]
    assert capsys.readouterr().out.splitlines() == [lines[0], "", *lines[1:]]


def test_print_of_all_types(capsys):
    """As Numba's printf: %lld, %llu, %f; complex numbers in Python's form with such parts."""

    @cuda.jit
    def show(b, i, j, k, n, u, v, w, m, e, f, d, c, z):
        print(b, i, j, k, n, u, v, w, m)
        print(e, f, d, c, z, -z, z.imag, sep="|", end=" end\n")
        print(1, -2.5, False, None, "text", 2j, (i, "t", z), (b,))
        print("nothing", "else", sep="")

    types = "i1 i2 i4 i8 u1 u2 u4 u8".split()
    ends = [np.dtype(t).type(np.iinfo(t).min if t[0] == "i" else np.iinfo(t).max) for t in types]
    show[1, 1](
        True, *ends, np.float16(-0.1), np.float32("nan"), 1e300, np.complex64(1e10 - 2.5j),
        complex(float("-inf"), float("nan")),
    )  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "True " + " ".join(str(int(v)) for v in ends)
    c = np.complex64(1e10 - 2.5j)
    parts = f"{float(np.float16(-0.1)):f}|nan|{1e300:f}|({complex(c):f})|(-inf+nanj)|(inf+nanj)|nan"
    assert lines[1] == parts + " end"
    assert lines[2] == (
        "1 -2.500000 False None text (0.000000+2.000000j) (-128, t, (-inf+nanj)) (True,)"
    )
    assert lines[3] == "nothingelse"


def test_prints_come_before_a_fault(capsys):
    @cuda.jit
    def show(a):
        print("here")
        a[5] = 1

    with pytest.raises(IndexError):
        show[1, 1](np.zeros(2))
    assert capsys.readouterr().out == "here\n"


def test_shared_memory_limit():
    @cuda.jit
    def static(a):
        s = cuda.shared.array(13 * 1024, float32)
        s[0] = a[0]

    @cuda.jit
    def reverse(a):
        s = cuda.shared.array(0, float32)
        i = cuda.threadIdx.x
        s[i] = a[i]
        cuda.syncthreads()
        a[i] = s[a.size - 1 - i]

    with pytest.raises(CudaAPIError, match="53248 bytes .* 4096 more than the limit of 49152"):
        static[1, 1](np.zeros(1))
    a = np.arange(4, dtype=np.float32)
    reverse[1, 4, 0, 16](a)
    assert a.tolist() == [3, 2, 1, 0]
    with pytest.raises(CudaAPIError, match="50000 dynamic.*, 848 more"):
        reverse[1, 4, 0, 50000](a)
    with pytest.raises(IndexError, match="index . is out of bounds for axis 0 with size 2"):
        reverse[1, 4, 0, 8](a)


@cuda.jit
def increase(a, b):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += b[i]


def host_arguments():
    whole = np.arange(12.0)
    yield whole[1:], whole[:-1]
    yield whole[::-1], whole
    yield whole[::3], np.ones(4)
    packed = np.zeros(5, np.dtype("i1,f8"))  # elements of 8 bytes at odd addresses
    yield packed["f1"], np.arange(5)


@pytest.mark.parametrize("case", range(4))
def test_host_arrays_are_copied_in_and_back(case):
    a, b = list(host_arguments())[case]
    wanted = a + b
    increase[1, 16](a, b)
    assert np.array_equal(a, wanted)


@pytest.mark.host_memory("mapped memory of the host as a device array")
def test_one_buffer_twice():
    text = bytearray(b"abc")
    increase[1, 4](text, text)
    assert text == bytes(2 * c for c in b"abc")
    mapped = cuda.mapped_array(4, np.float32)
    mapped[:] = 1
    increase[1, 4](mapped, cuda.as_cuda_array(mapped))
    assert mapped.tolist() == [2] * 4


def test_read_only_arrays():
    fixed = np.ones(3)
    fixed.flags.writeable = False
    a = np.zeros(3)
    increase[1, 4](a, fixed)
    assert a.tolist() == [1, 1, 1]
    with pytest.raises(TypingError, match="read-only"):
        increase[1, 4](fixed, a)


def test_arrays_of_other_faces():
    c = cp.arange(4.0)
    before = c * 2
    increase[1, 4](c, np.ones(4))
    assert c.tolist() == [1, 2, 3, 4] and before.tolist() == [0, 2, 4, 6]
    t = torch.ones(3) + 1
    increase[1, 4](t, cuda.to_device(np.ones(3, np.float32)))
    assert t.tolist() == [3, 3, 3]
    buffer = bytearray(b"abc")
    increase[1, 4](buffer, b"\1\1\1")
    assert buffer == b"bcd"


def test_a_write_of_a_kernel_counts_as_one_in_place():
    u, w = torch.ones(3), torch.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"requires grad: give the kernel tensor.detach\(\)"):
        increase[1, 4](w, u)
    p = (u * w).sum()
    increase[1, 4](u, torch.ones(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        p.backward()


def test_declared_signatures():
    @cuda.jit("void(float32[:], float64, int32)")
    def scale(a, factor, n):
        i = cuda.grid(1)
        if i < n:
            a[i] *= factor

    x = np.ones(4, np.float32)
    scale[1, 4](x, 3, 2.9)
    scale[1, 4](x[::2], np.int8(2), True)
    assert x.tolist() == [6, 3, 1, 1]
    assert (
        str(scale.signatures) == "[(array(float32, 1d, A), float64, int32)]" and scale.specialized
    )
    for wrong in [(np.ones(4), 1, 1), (x.reshape(2, 2), 1, 1), (x, 1j, 1), (x, (1,), 1)]:
        with pytest.raises(TypeError, match="No matching definition for argument type"):
            scale[1, 4](*wrong)

    @cuda.jit(["(int64[:],)", "(float64[::1],)"])
    def either(a):
        a[0] = 7

    for dtype in (np.int64, np.float64):
        a = np.zeros(2, dtype)
        either[1, 1](a)
        assert a[0] == 7
    with pytest.raises(TypeError, match="No matching definition"):
        either[1, 1](np.zeros(4)[::2])
    with pytest.raises(TypingError):
        cuda.jit("void(float32[:])")(lambda a: a.nothing)


def test_defaults_specialize_and_forall():
    @cuda.jit
    def fill(a, value=5):
        i = cuda.grid(1)
        if i < a.size:
            a[i] = value

    a = np.zeros(300)
    fill[1, 3](a)
    fill[1, 1](a, 9)
    assert a[:4].tolist() == [9, 5, 5, 0]
    fill.forall(300)(a, 2)
    assert (a == 2).all()
    fill.forall(0)(a, 3)
    one = fill.specialize(a, 1.5)
    one[1, 2](a, 4)
    assert one is fill.specialize(a, 2.5) and a[:3].tolist() == [4, 4, 2]
    with pytest.raises(TypeError, match="No matching definition"):
        one[1, 2](a.astype(np.float32), 4)
    assert set(fill.get_shared_mem_per_block().values()) == {0}
    assert fill.get_shared_mem_per_block(fill.signatures[0]) == 0


def test_globals_are_frozen_until_recompile():
    namespace = {"cuda": cuda, "FACTOR": 2}

    def times(a):
        a[0] = a[1] * FACTOR  # noqa: F821

    kernel = cuda.jit(type(times)(times.__code__, namespace))
    a = np.array([0.0, 10.0])
    for factor, wanted in [(2, 20), (3, 20)]:
        namespace["FACTOR"] = factor
        kernel[1, 1](a)
        assert a[0] == wanted
    kernel.recompile()
    kernel[1, 1](a)
    assert a[0] == 30


def test_libdevice():
    @cuda.jit
    def call(out, x):
        out[0] = libdevice.sinf(x)
        out[1] = libdevice.rsqrt(x)
        out[2] = libdevice.fmax(x, np.nan)
        out[3] = libdevice.popc(7)
        out[4] = libdevice.round(-2.5)
        out[5] = libdevice.normcdf(x)

    out = np.zeros(6)
    call[1, 1](out, 0.5)
    wanted = [math.sin(0.5), 0.5**-0.5, 0.5, 3, -3, 0.6914624612740131]
    np.testing.assert_allclose(out, wanted, rtol=1e-15)


def test_other_arguments():
    @cuda.jit
    def mixed(out, t, z, flag):
        out[0] = t[0] + t[1][1] + z * (2 if flag else 3)
        out[1] = 1 if t[2] is None else 2

    out = np.zeros(2, np.complex64)
    for t, wanted in [((1, (2, 3.5), None), 1), ((1, (2, 3.5), 4), 2)]:
        mixed[1, 1](out, t, 1 + 2j, True)
        assert out.tolist() == [4.5 + 2 + 4j, wanted]
    mixed[1, 1](out, (1, (2, 3.5), None), np.complex64(1j), np.bool_(False))
    assert out[0] == 4.5 + 3j


@cuda.jit
def forever(a):
    while a[0] == 0:
        a[1] += 1


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
def test_interrupt():
    def fire():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=fire).start()
    with pytest.raises(KeyboardInterrupt):
        forever[4, 32](np.zeros(2))


def test_time_limit(monkeypatch):
    monkeypatch.setenv("SIMT_TIME_LIMIT", "0.2")
    with pytest.raises((TimeoutError, RuntimeError), match="forever"):
        forever[4, 32](np.zeros(2))


@cuda.jit
def guarded(n, out):
    i, j, k = cuda.grid(3)
    if i >= n or j >= n or k >= n:
        return
    for _ in range(out.size):
        out[i] += 1


MOST = 2**31 - 1
LONG_LAUNCHES = [
    ((MOST, 65535), 1),
    ((MOST, 65535, 65535), 1024),
    ((65535, 65535, 2), (1, 1024)),
    ((MOST, 65535, 65535), (8, 8, 16)),
]


@pytest.mark.parametrize(("grid", "block"), LONG_LAUNCHES)
def test_long_launches_of_threads_that_return_at_once(monkeypatch, grid, block):
    out = np.zeros(1)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        guarded[grid, block](0, out)
    monkeypatch.setenv("SIMT_TIME_LIMIT", "0.1")
    words = "guarded ran for more than 0.1 s and was stopped: .* % of its blocks had been started"
    with pytest.raises(TimeoutError, match=words):
        guarded[grid, block](0, out)


def test_the_time_limit_names_blocks_of_kernels_that_run_by_rows(monkeypatch):
    """One thread alone runs long: the one at 700, 5."""

    @cuda.jit
    def one_is_long(out):
        x, y = cuda.grid(2)
        k = 0
        if x == 700 and y == 5:
            while out[0] == 0:
                k += 1
        out[1 + k] = 1

    monkeypatch.setenv("SIMT_TIME_LIMIT", "0.1")
    for block in ((32, 2), (1, 8), (100, 1), (1024, 1)):
        grid = (-(-1000 // block[0]), -(-8 // block[1]))
        number = 700 // block[0] + 5 // block[1] * grid[0]
        with pytest.raises((TimeoutError, RuntimeError), match=f"block {number}\\b.* line"):
            one_is_long[grid, block](np.zeros(3))


def test_threads_launch_at_once():
    arrays = [np.zeros(1000) for _ in range(8)]

    def work(a):
        for _ in range(50):
            increase[4, 256](a, np.ones(1000))

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((a == 50).all() for a in arrays)


# xoroshiro128+ as its authors write it, on states of 128 bits


def _seeded(seed):
    mask = (1 << 64) - 1
    z = (seed + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return z | z << 64


def _step(state):
    mask = (1 << 64) - 1
    s0, s1 = state & mask, state >> 64
    s1 ^= s0
    low = ((s0 << 55 | s0 >> 9) ^ s1 ^ s1 << 14) & mask
    return low | ((s1 << 36 | s1 >> 28) & mask) << 64


def _jumped(state):
    """2**64 steps ahead."""
    result = 0
    for b in range(128):
        if 0xD86B048B86AA9922_BEAC0467EBA5FACB >> b & 1:
            result ^= state
        state = _step(state)
    return result


def test_random_numbers():
    states, x = create_xoroshiro128p_states(70, 42, 3).copy_to_host(), _seeded(42)
    for _ in range(3):
        x = _jumped(x)
    for i in range(70):
        assert (int(states[i]["s0"]), int(states[i]["s1"])) == (x & (1 << 64) - 1, x >> 64)
        x = _jumped(x)

    @cuda.jit
    def draw(states, uniform, normal):
        i = cuda.grid(1)
        for k in range(uniform.shape[1]):
            uniform[i, k] = xoroshiro128p_uniform_float32(states, i)
            normal[i, k] = xoroshiro128p_normal_float64(states, i)

    uniform, normal = np.zeros((512, 100), np.float32), np.zeros((512, 100))
    draw[8, 64](create_xoroshiro128p_states(512, seed=1), uniform, normal)
    # seed 1: s0 = s1, so the first number is twice s0
    first = (2 * (_seeded(1) >> 64) & (1 << 64) - 1) >> 11
    assert uniform[0, 0] == np.float32(first / 2**53)
    assert 0 <= uniform.min() and uniform.max() <= 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.var() - 1 / 12) < 0.01
    # Numba's numbers for seed 1 (its simulator's; single precision inside)
    want = [0.5322428773999551, -0.6012676554745311, -1.2937038038948383]
    np.testing.assert_allclose(normal[3, 2:5], want, rtol=1e-6)
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 70000])
def test_reduce(n):
    total = cuda.reduce(lambda a, b: a + b)
    largest = cuda.reduce(lambda a, b: a if a > b else b)
    x = np.random.default_rng(n).integers(0, 1000, n)
    assert total(cuda.to_device(x), init=2) == x.sum() + 2
    assert largest(x, size=n // 2) == (x[: n // 2].max() if n > 1 else 0)
    res = cuda.device_array(1, np.int64)
    assert total(x, res=res) is None and res[0] == x.sum()


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.complex128])
def test_debug_kernels_report_divisions_by_zero(dtype):
    def divide(a, b, c):
        i = cuda.grid(1)
        c[i] = a[i] / b[i]

    def remainder(a, b, c):
        i = cuda.grid(1)
        c[i] = a[i] % b[i] + a[i] // b[i]

    a, b = np.arange(4).astype(dtype), np.array([1, 2, 0, 4], dtype)
    for function in (divide,) if dtype is np.complex128 else (divide, remainder):
        c = np.full(4, -1, np.complex128 if dtype is np.complex128 else np.float64)
        cuda.jit(function)[1, 4](a, b, c)
        assert c[3] != -1 and c[2] != -1  # inf, nan or the IR's answer for integers
        c[:] = -1
        kernel = cuda.jit(debug=True, opt=False)(function)
        with pytest.raises(ZeroDivisionError) as error:
            kernel[1, 4](a, b, c)
        assert f"division by zero\nin kernel {function.__name__}\n" in str(error.value)
        assert "thread (2, 0, 0)" in str(error.value) and "c[i] = a[i]" in str(error.value)
        assert c[2] == -1 and c[3] != -1  # that thread ends, the others' work is done


def test_fast_math_divides_float32_by_zero():
    @cuda.jit(debug=True, opt=False, fastmath=True)
    def kernel(out, x, y):
        out[0] = x / y

    out = np.zeros(1, np.float32)
    kernel[1, 1](out, np.float32(1), np.float32(0))
    assert out[0] == np.inf
    with pytest.raises(ZeroDivisionError):  # Numba's fast division is one of float32
        kernel[1, 1](out, 1.0, 0.0)
    with pytest.raises(ZeroDivisionError):
        kernel[1, 1](out, 1, 0)
