"""Bad input: a Python exception that says what is wrong; nothing half changed, no hang."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
import simt.torch.nn.functional as F
from simt import _core

# ---- failures that depend on data are raised at evaluation ----


def bad_row():
    """An array whose evaluation fails."""
    return cp.arange(10.0)[cp.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 100])]


def test_a_failure_takes_nothing_unrelated_with_it():
    a, base = cp.arange(10.0), cp.zeros(10)
    base.get()
    bad = bad_row()
    dependent = bad + 1
    double = a * 2  # of the same shape, so a candidate for the same kernel
    base += 5
    total = base.sum()
    with pytest.raises(IndexError, match="100 is out of bounds for axis 0 with size 10"):
        dependent.get()
    np.testing.assert_array_equal(double.get(), np.arange(10.0) * 2)
    np.testing.assert_array_equal(base.get(), np.full(10, 5.0))
    assert total.item() == 50
    for x in (bad, dependent):
        with pytest.raises(IndexError):
            x.get()


def test_a_failed_write_leaves_memory_and_what_depends_on_it_alone():
    x, y = cp.arange(10.0), cp.zeros(10)
    x.get(), y.get()
    x += bad_row()
    double = x * 2  # of an x that was never made
    x += 1
    y += double
    with pytest.raises(IndexError):
        double.get()
    try:  # the lost write may be told once more, by the next look
        x.get()
    except IndexError:
        pass
    np.testing.assert_array_equal(x.get(), np.arange(10.0))
    np.testing.assert_array_equal(y.get(), np.zeros(10))
    x += 1
    np.testing.assert_array_equal(x.get(), np.arange(10.0) + 1)


def test_a_bad_index_writes_nothing():
    x = cp.arange(6.0)
    x.get()
    x[cp.array([0, 1, 9])] = 7
    with pytest.raises(IndexError):
        x.get()
    np.testing.assert_array_equal(x.get(), np.arange(6.0))
    with pytest.raises((IndexError, RuntimeError)):
        t = torch.zeros(3).index_add_(0, torch.tensor([0, 9]), torch.ones(2))
        t.sum().item()


# ---- sizes whose products overflow ----

HUGE = [1 << 31, 1 << 61, (1 << 62) + 1, (1 << 63) - 1]


@pytest.mark.parametrize("huge", HUGE)
def test_windows_of_huge_sizes(huge):
    x, w = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 3, 3)
    for option in ["padding", "stride", "dilation", "groups"]:
        with pytest.raises(RuntimeError):
            F.conv2d(x, w, **{option: huge})
    for pool in [F.max_pool2d, F.avg_pool2d]:
        for options in [{"kernel_size": huge, "padding": huge // 2}, {"kernel_size": huge}]:
            with pytest.raises(RuntimeError):
                pool(x, **options)
        with pytest.raises(RuntimeError):
            pool(x, 2, stride=huge)
    with pytest.raises(RuntimeError):
        F.conv2d(torch.zeros(1, 0, 8, 8), torch.zeros(2, 0, 3, 3), groups=0)


def test_a_window_larger_than_the_image_takes_no_longer():
    """A thousand million taps, of which a few lie on the image."""
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    kernel, padding = (3, 10**9), (0, 5 * 10**8)
    y = F.max_pool2d(x, kernel, stride=1, padding=padding)
    assert y.shape == (1, 1, 6, 9)
    rows = np.arange(64.0).reshape(8, 8)
    for i in range(6):
        for j in range(9):
            first, last = max(j - padding[1], 0), min(j - padding[1] + kernel[1], 8)
            assert y[0, 0, i, j].item() == rows[i : i + 3, first:last].max()


@pytest.mark.parametrize("huge", HUGE)
def test_as_strided_outside_the_storage(huge):
    x = torch.arange(6.0)
    for size, stride, offset in [((2,), (huge,), 0), ((2,), (1,), huge), ((huge, 2), (2, 1), 0)]:
        with pytest.raises((RuntimeError, ValueError)):
            x.as_strided(size, stride, offset)


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 62, 1 << 62), (10**30,), (-1,), (2, -3)])
def test_shapes_that_cannot_be(shape):
    for make in [cp.zeros, cp.ones, cp.empty, torch.zeros, torch.empty, torch.randn]:
        with pytest.raises((MemoryError, ValueError, OverflowError, RuntimeError)) as e:
            made = make(shape)  # random numbers wait until somebody looks
            _core.evaluate(None)
            del made
        assert str(e.value)


def test_devices_that_cannot_be():
    for arguments in [(10**30,), (-1,), ("cpu", -1), ("cpu", 10**30), ("cpu:x",), (1 << 32,)]:
        with pytest.raises((RuntimeError, OverflowError)):
            torch.device(*arguments)


def test_counts_beyond_the_array():
    a = cp.arange(4)
    assert cp.diff(a, n=1 << 62).size == 0
    for bad in [{"n": -1}, {"axis": 9}]:
        with pytest.raises(ValueError):
            cp.diff(a, **bad)
    for size in [1 << 62, 0, -3]:
        with pytest.raises(RuntimeError):
            F.adaptive_max_pool2d(torch.zeros(1, 1, 4, 4), size)


def test_shifts_of_booleans():
    a = torch.tensor([True, False])
    for shift in [lambda: a >> a, lambda: a << a]:
        with pytest.raises(RuntimeError, match="not implemented for 'bool"):
            shift()


# ---- odd arguments everywhere ----


@pytest.mark.parametrize("face", ["cupy", "torch"])
def test_odd_arguments(face):
    """In a process of its own: a crash or a hang there is this test's failure."""
    program = Path(__file__).with_name("fuzz_arguments.py")
    command = [sys.executable, "-X", "faulthandler", str(program), face, "1", "3"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout.split()[0]) > 100  # calls


# ---- threads, forks, the collector ----


def run_threads(work, count=6):
    """Runs work(number) in threads; the first exception of any is raised here."""
    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive(), "a thread hangs"
    if failed:
        raise failed[0]


def test_threads_with_arrays_of_their_own():
    def work(number):
        x = cp.arange(1000.0) + number
        for i in range(40):
            x = (x * 3 + i) % 101
            if i % 5 == 0:
                x[: 10 + number] += 1
            if i % 7 == 0:
                assert x.sum().item() == x.get().sum()

    run_threads(work)


def test_threads_on_one_array():
    shared = cp.zeros(5000)
    lines = [shared[i * 500 : (i + 1) * 500] for i in range(6)]

    def work(number):
        for i in range(60):
            lines[number] += 1
            if i % 9 == 0:
                assert lines[number].max().item() == i + 1
            with pytest.raises(IndexError):  # failures of one thread are not another's
                shared[cp.array([5000 + number])].get()

    try:
        run_threads(work)
    except IndexError as e:  # told to whoever looks first
        pytest.fail(f"a failure reached another thread: {e}")
    want = np.zeros(5000)
    want[:3000] = 60
    np.testing.assert_array_equal(shared.get(), want)


def test_threads_and_gradients():
    w = torch.ones(50, requires_grad=True)

    def work(number):
        for _ in range(20):
            v = w.detach().clone().requires_grad_()
            ((v * number).sum() + (w * 2).sum().detach()).backward()
            assert v.grad[3].item() == number

    run_threads(work)


def test_collector_in_the_middle():
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(30):
            x = cp.arange(100.0)
            ring = [x[::2] + 1]
            ring.append(ring)  # only the collector frees it
            y = sum((x + i for i in range(5)), cp.zeros(100))
            del ring
            assert y.sum().item() == 5 * 4950 + 1000
            t = torch.ones(3, requires_grad=True)
            (t * t).sum().backward()
            t.mine = t
    finally:
        gc.set_threshold(*threshold)


FORK = """
import os, threading, sys
import simt.cupy as cp
x = cp.arange(300000.0)
assert x.sum().item() == 299999 * 150000  # the workers run
y = x * 2  # waits in the program while the fork happens
stop = False
def busy():
    while not stop:
        (cp.arange(1000.0) + 1).sum().item()
t = threading.Thread(target=busy); t.start()
codes = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        ok = y.sum().item() == 299999 * 300000 and (x + 1).max().item() == 300000
        os._exit(0 if ok else 1)
    codes.append(os.waitpid(child, 0)[1])
stop = True
t.join()
assert y.sum().item() == 299999 * 300000
print(codes)
"""


def test_fork_while_another_thread_computes():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == str([0] * 8)


def test_powers_and_repeats_that_cannot_be():
    yes = torch.tensor([True, False])
    for operation in (torch.pow, torch.remainder, torch.floor_divide, torch.fmod):
        with pytest.raises(RuntimeError, match="not implemented for"):
            operation(yes, torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="too large"):
        torch.ones(4).repeat(2**62)
    assert cp.array([25]).round(-1).get().tolist() == [20]
    cp.array([1.5]).round(-(2**63))
