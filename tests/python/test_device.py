"""The CPU device: threads, interrupts, fork, memory."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from simt import _core
from test_vm import ADD

ENDLESS = """kernel @endless(%0: ptr.global) file "" {
  loop @0 () {
    continue @0
  }
  return
}
"""

INTERRUPT = f'''
import os, signal, sys, threading, time
import numpy as np
from simt import _core
threads = int(sys.argv[1])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    _core.ir_run("""{ENDLESS}""", 8, 64, [np.zeros(1, np.int32)], threads=threads)
except KeyboardInterrupt:
    print("interrupted")
out = np.zeros(4096, np.float32)
_core.ir_run("""{ADD}""", 4, 1024, [out + 1, out + 2, out, 4096], threads=threads)
print((out == 3).all())
'''


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt_stops_an_endless_kernel(threads):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, str(threads)], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.split() == ["interrupted", "True"], done.stderr


def add(n, threads):
    a, b = np.random.default_rng(n).random((2, n), np.float32)
    out = np.zeros(n, np.float32)
    _core.ir_run(ADD, -(-n // 256), 256, [a, b, out, n], threads=threads)
    return bool((out == a + b).all())


def test_launches_from_several_threads():
    results = []

    def work(seed):
        results.extend(add(100_000 + seed * 1000 + i, 2) for i in range(20))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(results) == 80 and all(results)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_then_launch_in_the_child():
    assert add(1_000_000, 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if add(1_000_000, 2) and add(1_000_001, 2) else 1)
    deadline = time.monotonic() + 20
    pid, status = 0, 1
    while pid == 0 and time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.005)
    assert pid == child and status == 0
    assert add(1_000_000, 2)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 513, 4097, 100_000, 3 << 20, 40_000_000])
def test_memory_is_aligned_and_reused(size):
    first, second, in_use, cached = _core.memory_probe(size)
    assert first % 64 == 0 and in_use >= size
    if cached:  # not under AddressSanitizer
        assert first == second
        assert size <= cached


@pytest.mark.parametrize("size", [2**62, 2**63 - 1, 2**64 - 1, 10**14])
def test_memory_that_cannot_be_had(size):
    with pytest.raises(MemoryError, match=str(size)):
        _core.memory_probe(size)


def test_float_mode_is_ours_in_a_kernel():
    """Denormals survive also when the process flushes them; the process's mode is left alone."""
    tiny = np.full(64, 1e-40, np.float32)
    out = np.zeros(64, np.float32)
    _core.ir_run(ADD, 1, 64, [tiny, np.zeros(64, np.float32), out, 64])
    assert (out == tiny).all()


def test_bad_blocks_and_arguments():
    args = [np.zeros(4, np.float32)] * 3 + [4]
    for block in (0, (1024, 1024)):
        with pytest.raises(ValueError, match="block of"):
            _core.ir_run(ADD, 1, block, args)
    with pytest.raises(TypeError):
        _core.ir_run(ADD, 1, 64, args[:2])
    _core.ir_run(ADD, 0, 64, args)
