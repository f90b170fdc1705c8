"""One kernel, many users: threads, streams, forks, pickles, signals in the middle."""

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from numba_source import load
from simt.numba import cuda
from test_bad_input import run_threads

SCALE = 3.0


@cuda.jit
def scaled(x, out):
    """At the top of a module, as kernels mostly are."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] * SCALE


@cuda.jit("void(float64[:], float64[:])")
def declared(x, out):
    out[0] = x[0] + SCALE


class Holder:
    @staticmethod
    @cuda.jit
    def kernel(x, out):
        out[0] = x[0] - 1


@cuda.jit(device=True)
def helper(x):
    return x + SCALE


def check(kernel, want, x=4.0):
    out = np.zeros(1)
    kernel[1, 1](np.full(1, x), out)
    assert out[0] == want


# ---- threads ----


def test_the_first_launches_of_a_kernel_race():
    """All threads compile it at once, for many types and block sizes; every result is right."""
    for _ in range(3):

        @cuda.jit
        def kernel(x, out, n):
            i = cuda.grid(1)
            if i < n:
                out[i] = helper(x[i]) * n

        types = [np.float64, np.float32, np.int32, np.uint8, np.int16, np.complex64]
        start = threading.Barrier(6)

        def work(number):
            start.wait()
            for round in range(30):
                dtype, threads = types[(number + round) % 6], (32, 64, 128)[round % 3]
                x = np.arange(100).astype(dtype)
                out = np.zeros(100, np.complex128 if dtype is np.complex64 else np.float64)
                kernel[4, threads](x, out, 100)
                want = (np.arange(100) + SCALE) * 100
                want[4 * threads :] = 0
                np.testing.assert_array_equal(out, want)

        run_threads(work)


def test_threads_with_streams_of_their_own_and_with_one():
    shared = cuda.stream()

    def work(number):
        stream = shared if number % 2 else cuda.stream()
        for i in range(40):
            x = cuda.to_device(np.arange(500.0) + number, stream=stream)
            out = cuda.device_array(500, stream=stream)
            start, end = cuda.event(), cuda.event()
            start.record(stream)
            scaled[2, 256, stream](x, out)
            end.record(stream)
            stream.synchronize()
            assert cuda.event_elapsed_time(start, end) >= 0
            host = out.copy_to_host(stream=stream)
            assert (host == (np.arange(500) + number) * SCALE).all(), i

    run_threads(work)


def test_atomics_of_launches_at_once():
    counts = cuda.to_device(np.zeros(8, np.int64))

    @cuda.jit
    def count(counts):
        cuda.atomic.add(counts, cuda.grid(1) % 8, 1)

    def work(number):
        for _ in range(20):
            count[32, 128](counts)

    run_threads(work)
    assert counts.copy_to_host().tolist() == [6 * 20 * 32 * 128 // 8] * 8


def test_errors_and_prints_of_threads_are_their_own(capsys):
    @cuda.jit
    def kernel(out, i, n):
        if i < 100:
            print("launch", n)
        out[i] = n

    def work(number):
        for _ in range(20):
            out = np.zeros(4)
            with pytest.raises(IndexError, match=f"index {1000 + number} is out of bounds"):
                kernel[1, 1](out, 1000 + number, number)
            kernel[1, 1](out, 2, number)
            assert out[2] == number
            with pytest.raises(TypeError, match="no operator"):
                load("@cuda.jit\ndef bad(x):\n    x[0] = x + x\n", cuda=cuda)["bad"][1, 1](out)

    run_threads(work)
    lines = capsys.readouterr().out.split("\n")
    assert sorted(lines[:-1]) == sorted(f"launch {n}" for n in range(6) for _ in range(20))


def test_kernels_are_forgotten_and_collected_while_others_launch():
    @cuda.jit
    def kernel(x, out):
        for _ in range(100):
            out[0] = x[0] * SCALE

    def work(number):
        for i in range(60):
            if number == 0:
                kernel.recompile()
            elif number == 1:
                if i % 6 == 0:  # it takes a second after many tests under the sanitizers
                    gc.collect()
            else:
                out = cuda.device_array(1)
                launch = kernel[1, 1 + i % 40]
                launch(cuda.to_device(np.full(1, number + 0.5)), out)  # it alone holds the array
                assert out.copy_to_host()[0] == (number + 0.5) * SCALE

    run_threads(work)


def test_arrays_go_while_a_kernel_uses_them():
    """The launch holds its arguments, whatever other threads do to the names."""

    @cuda.jit
    def slow(x, out):
        total = 0.0
        for _ in range(200):
            for i in range(x.size):
                total += x[i]
        out[0] = total

    box = {"x": cuda.to_device(np.ones(2000)), "out": cuda.device_array(1)}
    out = box["out"]

    def launch():
        slow[1, 1](box["x"], box["out"])

    thread = threading.Thread(target=launch)
    thread.start()
    while thread.is_alive():
        box.update(x=cuda.to_device(np.zeros(2000)), out=None)
        gc.collect()
    thread.join()
    assert out.copy_to_host()[0] in (0.0, 400_000.0)  # the exchange may have come first


# ---- signals ----


class Alarm(Exception):
    pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_at_any_time_leaves_everything_usable():
    """Handlers raise while kernels are found, compiled and launched."""

    def handler(number, frame):
        raise Alarm

    source = textwrap.dedent("""
        import math

        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            if i < out.size:
                y = x[i]
                for k in range(3):
                    y = math.sqrt(y * y) + k if y > 0 else y - k
                out[i] = helper(y)
    """)
    filters, collecting = list(warnings.filters), gc.isenabled()
    before = signal.signal(signal.SIGALRM, handler)
    x, want = np.arange(10.0), None
    try:
        for turn in range(150):
            out = np.zeros(10)
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 * (1 + turn % 75))
                kernel = load(source, cuda=cuda, helper=helper)["kernel"]
                kernel[1, 16](x, out)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            load(source, cuda=cuda, helper=helper)["kernel"][1, 16](x, out)
            want = out if want is None else want
            assert (out == want).all()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert warnings.filters == filters and gc.isenabled() == collecting
    assert want[5] == 5 + 0 + 1 + 2 + SCALE


def test_ctrl_c_between_compilations():
    program = textwrap.dedent("""
        import numpy as np, sys
        from simt.numba import cuda
        sys.path.insert(0, sys.argv[1])
        from numba_source import load
        out = np.zeros(1)
        print("ready", flush=True)
        try:
            for i in range(10**9):
                load(f"@cuda.jit\\ndef k(out):\\n    out[0] = {i}\\n", cuda=cuda)["k"][1, 1](out)
        except KeyboardInterrupt:
            load("@cuda.jit\\ndef k(out):\\n    out[0] = -1\\n", cuda=cuda)["k"][1, 1](out)
            print("stopped", out[0])
    """)
    run = subprocess.Popen(
        [sys.executable, "-c", program, os.path.dirname(__file__)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=20)[0] == "stopped -1.0\n"


# ---- processes ----


def in_child(x):
    out = np.zeros(3)
    scaled[1, 4](np.full(3, x), out)
    fresh = load("@cuda.jit\ndef k(out):\n    out[0] = 7\n", cuda=cuda)["k"]
    fresh[1, 1](out)
    return out.tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_kernels_in_a_pool_of_processes(method):
    in_child(1.0)  # the workers run, and there are compiled kernels
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(in_child, [1.0, 2.0, 3.0]) == [[7.0, x * 3, x * 3] for x in (1, 2, 3)]
        kernel = cuda.jit(lambda x, out: None)
        assert pool.apply(launched, (scaled, 5.0)) == 15.0
        assert pool.apply(type, (kernel,)) is type(kernel)


def launched(kernel, x):
    out = np.zeros(1)
    kernel[1, 1](np.full(1, x), out)
    return out[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_threads_compile_and_launch():
    stop = threading.Event()

    def busy(number):
        i = 0
        while not stop.is_set():
            i += 1
            text = f"@cuda.jit\ndef k(out):\n    out[0] = {number} + {i}\n"
            out = np.zeros(1)
            load(text, cuda=cuda)["k"][4, 64](out)
            assert out[0] == number + i

    threads = [threading.Thread(target=busy, args=(n,), daemon=True) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                try:
                    ok = in_child(2.0) == [7.0, 6.0, 6.0]
                finally:
                    os._exit(0 if ok else 1)
            deadline = time.monotonic() + 60
            while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
                assert time.monotonic() < deadline, "the child hangs"
                time.sleep(0.002)
            assert done == (child, 0)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


# ---- pickles ----


def test_kernels_of_modules_are_pickled_by_name():
    for kernel in (scaled, declared, helper, Holder.kernel):
        assert pickle.loads(pickle.dumps(kernel)) is kernel
        assert copy.copy(kernel) is kernel and copy.deepcopy(kernel) is kernel
    assert len(pickle.dumps(scaled)) < 100


def test_kernels_of_functions_are_pickled_by_value():
    import math

    table, factor = (1, 2.5), np.float32(0.5)

    def plain(x):
        return math.floor(x) + table[1]

    @cuda.jit(fma=False)
    def kernel(x, out, more=10):
        out[0] = plain(x[0]) * factor + helper(x[0]) + np.float64(more)

    made = pickle.loads(pickle.dumps(kernel))
    assert made is not kernel and made.targetoptions["fma"] is False
    assert made.__qualname__ == kernel.__qualname__ and made.__module__ == kernel.__module__
    check(made, (4 + 2.5) * 0.5 + 4.5 + SCALE + 10, 4.5)
    check(kernel, (4 + 2.5) * 0.5 + 4.5 + SCALE + 10, 4.5)
    again = pickle.loads(pickle.dumps(made))
    check(again, (4 + 2.5) * 0.5 + 4.5 + SCALE + 10, 4.5)

    @cuda.jit("void(float64[:], float64[:])")
    def typed(x, out):
        out[0] = x[0] * factor

    made = pickle.loads(pickle.dumps(typed))
    assert made.specialized and len(made.overloads) == 1
    check(made, 2.0)
    with pytest.raises(TypeError, match="No matching definition"):
        made[1, 1](1, 2)


def test_pickled_kernels_run_in_a_process_that_lacks_their_source(tmp_path):
    source = """
        from math import sqrt
        import numpy as np

        LIMIT = 9

        @cuda.jit
        def kernel(x, out):
            out[0] = sqrt(x[0]) + LIMIT
    """
    space = load(textwrap.dedent(source), cuda=cuda)
    (tmp_path / "kernel").write_bytes(pickle.dumps(space["kernel"]))
    program = textwrap.dedent("""
        import pickle, sys
        import numpy as np
        kernel = pickle.load(open(sys.argv[1], "rb"))
        out = np.zeros(1)
        kernel[1, 1](np.full(1, 16.0), out)
        print(out[0])
        try:
            kernel[1, 1](np.zeros(0), out)
        except IndexError as error:
            print(str(error).split("\\n")[2].strip())
    """)
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "kernel")], capture_output=True, text=True
    )
    assert run.stdout == "13.0\nout[0] = sqrt(x[0]) + LIMIT\n", run.stderr


def test_device_arrays_are_not_pickled():
    """As Numba's: copy_to_host() says what is meant."""
    array = cuda.to_device(np.arange(3))
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(array)
