"""A target whose memory the host cannot touch (src/device/remote): what runs on it.

`make check-remote` runs all tests of arrays, tensors and kernels there; here a child runs a part.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from simt import _core

TESTS = Path(__file__).resolve().parent
REPRESENTATIVE = [  # a sample of each kind: seconds
    "test_cupy.py::test_reductions",
    "test_exchange.py",
    "test_fusion.py",
    "test_grad.py::test_rule",
    "test_adam.py",
    "test_kernel_memory.py",
    "test_kernel_pointers.py",
    "test_numba_arrays.py",
    "test_numba_records.py",
    "test_sort.py",
    "test_torch_tensors.py",
]


def on_remote(*command, **options):
    environment = dict(os.environ, SIMT_TARGET="remote", PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def run(code):
    done = on_remote("-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_device_is_another():
    code = "import simt.cupy as cp; print(cp.cuda.runtime.getDeviceProperties(0)['name'].decode())"
    assert run(code) == "simt remote (a toy of the tests)\n"


def test_its_memory_is_out_of_reach():
    code = """
import ctypes, simt.torch as torch
t = torch.arange(4)
print(int(t.sum()), flush=True)
print(ctypes.c_int64.from_address(t.data_ptr()).value)
"""
    done = on_remote("-c", code)
    assert done.stdout == "6\n"
    assert done.returncode == -signal.SIGSEGV or "SEGV" in done.stderr  # the sanitizer's word


def test_copies_streams_and_events():
    """What is copied out is there after the wait; only of the CPU, which is prompt, before."""
    code = "from simt import _core; print(*_core.device_trip(b'abc'))"
    assert run(code) == "b'4abc4' False True False\n"
    assert _core.device_trip(b"abc") == (b"4abc4", True, True, True)


STRUCT = """kernel @k(%0: ptr.const struct 16 align 8) {
  %1: ptr.global = load %0
  %2: i64 = const 8
  %3: ptr.const = ptradd %0, %2
  %4: i32 = load %3
  %5: i32 = load %1
  %6: i32 = add %4, %5
  store %1, %6
  return
}
"""


def test_pointers_in_structs():
    code = f"from simt import _core; print(_core.device_struct({STRUCT!r}, b'abcdef'))"
    assert run(code) == "b'fbcdef'\n"
    assert _core.device_struct(STRUCT, b"abcdef") == b"fbcdef"


def test_device_memory_is_found_by_its_address():
    code = """
import numpy as np
from simt.numba import cuda
class Described:
    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, **changes)
a = cuda.to_device(np.arange(6.0))
b = cuda.as_cuda_array(Described(a))
b[2] = 20
print(a.copy_to_host().tolist(), cuda.as_cuda_array(Described(a[1:4])).copy_to_host().tolist())
for wrong in Described(a, shape=(7,)), Described(a, data=(np.ones(6).ctypes.data, False)):
    try:
        cuda.as_cuda_array(wrong)
    except ValueError as error:
        print(str(error).split(" at ")[0])
"""
    none = "__cuda_array_interface__: no memory of the device is"
    assert run(code) == f"[0.0, 1.0, 20.0, 3.0, 4.0, 5.0] [1.0, 20.0, 3.0]\n{none}\n{none}\n"


def test_foreign_memory_is_copied():
    code = """
import numpy as np, simt.torch as torch
host = np.arange(4.0)
t = torch.from_numpy(host)
host[0] = 9
t += 1
print(t.tolist(), host.tolist(), t.numpy().flags.writeable)
"""
    assert run(code) == "[1.0, 2.0, 3.0, 4.0] [9.0, 1.0, 2.0, 3.0] False\n"


def test_a_step_that_fails_on_the_host_writes_nothing():
    code = """
import simt.cupy as cp
a = cp.arange(4)
print(a.sum())
try:
    a[cp.asarray([0, 9])] = 7
    a.get()
except IndexError as error:
    print("index 9" in str(error), a.get().tolist())
"""
    assert run(code) == "6\nTrue [0, 1, 2, 3]\n"


INTERRUPTED = """
import signal
import numpy as np
from simt import _core
def alarm(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, alarm)
x, other = _core.array(np.full(3_000_000, 0.25, "f4")), _core.array(np.ones(5))
_core.evaluate(x)
_core.evaluate(other)
for _ in range(40):
    x -= _core.ew_digamma(x) * 0.01
after = x[:3] * 2
other += 1
_core.remote_fail_copy("within", {copies})
signal.setitimer(signal.ITIMER_REAL, 0.15)
for look in x, x, after, other:
    try:
        _core.evaluate(look)
        print(look.get()[:3].tolist())
    except KeyboardInterrupt:
        print("interrupted")
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_what_cannot_be_restored_after_an_interrupt_has_no_value():
    nothing = "the remote device copied nothing"
    lost = "an operation was stopped and the array it wrote could not be restored: " + nothing
    wanted = ["interrupted", lost, lost, "[2.0, 2.0, 2.0]"]
    assert run(INTERRUPTED.format(copies=1)).splitlines() == wanted


def test_a_failing_copy_before_an_operation_is_reported():
    """The copy from which an interrupt would restore: the operation has not begun."""
    nothing = "the remote device copied nothing"
    wanted = [nothing, "[0.25, 0.25, 0.25]", nothing, "[2.0, 2.0, 2.0]"]
    assert run(INTERRUPTED.format(copies=0)).splitlines() == wanted


@pytest.mark.slow
def test_a_part_of_the_tests():
    tests = [str(TESTS / name) for name in REPRESENTATIVE]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not exhaustive"]
    done = on_remote("-m", "pytest", *options, *tests, cwd=TESTS.parents[1])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
