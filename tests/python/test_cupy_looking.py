"""simt.cupy: what looks at values, random numbers, when things are computed."""

import gc
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import simt.cupy as cp
from array_reference import same
from simt import _core

# ---- looking ----


def test_printing_is_numpys():
    for x in [
        np.arange(3),
        np.eye(2),
        np.arange(2000.0),
        np.array(1.5),
        np.zeros((0, 3)),
        np.bool_([1]),
    ]:
        a = cp.array(x)
        assert str(a) == str(x) and repr(a) == repr(x)
    assert f"{cp.array(1.5):.3f}" == "1.500"
    assert f"{cp.arange(3)}" == "[0 1 2]"


def test_python_numbers():
    a = cp.array([[2.5]])
    assert float(a) == 2.5 and int(a) == 2 and a.item() == 2.5 and bool(a)
    assert [10, 20, 30][cp.array(1)] == 20
    assert list(map(int, cp.arange(3))) == [0, 1, 2]
    assert len(cp.zeros((4, 2))) == 4 and 3 in cp.arange(5)
    assert cp.arange(6).reshape(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert cp.arange(6).reshape(2, 3).item(4) == 4 and cp.arange(6).reshape(2, 3).item(1, 2) == 5
    for bad, error, text in [
        (lambda: bool(cp.arange(2)), ValueError, "truth value of an array with more than one"),
        (lambda: float(cp.arange(2)), TypeError, "only length-1 arrays"),
        (lambda: [1][cp.array(0.0)], TypeError, "only integer scalar arrays"),
        (lambda: len(cp.array(1)), TypeError, "unsized"),
        (lambda: iter(cp.array(1)), TypeError, "iteration over a 0-d array"),
        (lambda: hash(cp.array(1)), TypeError, "unhashable"),
        (lambda: cp.arange(3) + cp.arange(2), ValueError, "could not be broadcast together"),
        (lambda: cp.arange(3).reshape(2), ValueError, "cannot reshape array of size 3"),
        (lambda: cp.arange(3) + [1, 2, 3], TypeError, "unsupported operand"),
        (lambda: np.asarray(cp.arange(3)), TypeError, r"use `.get\(\)`"),
        (lambda: cp.arange(3) + np.arange(3), TypeError, "Unsupported type"),
        (lambda: np.arange(3) + cp.arange(3), TypeError, "Unsupported type"),
        (lambda: cp.sum([1, 2]), TypeError, "Unsupported type"),
        (lambda: cp.arange(3) < "x", TypeError, "not supported between"),
    ]:
        with pytest.raises(error, match=text):
            bad()


def test_attributes():
    a = cp.zeros((2, 3), np.float32)
    assert (a.shape, a.ndim, a.size, a.nbytes, a.itemsize) == ((2, 3), 2, 6, 24, 4)
    assert a.strides == (12, 4) and a.dtype == np.float32 and a.dtype == cp.float32
    assert a.flags.c_contiguous and not a.T.flags.c_contiguous and a.T.flags["F_CONTIGUOUS"]
    a.shape = (3, 2)
    assert a.shape == (3, 2) and a.device == cp.cuda.Device(0)
    assert cp.float32(1.5).dtype == np.float32 and cp.newaxis is None
    b = cp.arange(4, dtype="int32")
    same(b.view("int16"), np.arange(4, dtype="int32").view("int16"))
    same(pickle.loads(pickle.dumps(b)), np.arange(4, dtype="int32"))
    assert cp.get_array_module(b) is cp and cp.get_array_module(np.ones(1)) is np
    assert isinstance(b, cp.ndarray) and cp.asarray(b) is b and cp.array(b) is not b
    with pytest.raises(AttributeError, match="not in simt yet; nearest is (simt.)?cupy.RawKernel"):
        cp.ElementwiseKernel
    with pytest.raises(AttributeError, match="not in simt yet; nearest is ndarray.sum"):
        b.summ
    with pytest.raises(AttributeError, match="not in simt yet"):
        cp.linalg.svd
    assert not hasattr(cp, "fancy_name") and "float32" in dir(cp)


def test_numpy_functions_on_our_arrays():
    a = cp.arange(3.0)
    assert isinstance(np.sin(a), cp.ndarray)
    same(np.add(a, 1), np.arange(3.0) + 1)
    same(np.concatenate([a, a]), np.concatenate([np.arange(3.0)] * 2))
    same(np.float64(2) * a, 2 * np.arange(3.0))
    same(np.float32(2) + a.astype("float32"), np.arange(3, dtype="f4") + 2)


def test_lenient(monkeypatch):
    monkeypatch.setenv("SIMT_LENIENT", "1")
    assert np.asarray(cp.arange(3)).tolist() == [0, 1, 2]
    same(cp.arange(3) + np.arange(3), np.arange(3) * 2)


def test_get_and_set():
    a = cp.arange(6).reshape(2, 3)
    out = np.empty((2, 3), int)
    assert a.get(out=out) is out and out.tolist() == [[0, 1, 2], [3, 4, 5]]
    a.set(np.ones((2, 3)))
    same(a, np.ones((2, 3), int))
    a[...] = np.full((2, 3), 4)
    a[0] = [7, 8, 9]
    same(a, np.array([[7, 8, 9], [4, 4, 4]]))
    with pytest.raises(ValueError):
        a.set(np.ones(3))
    assert cp.asnumpy([1, 2]).tolist() == [1, 2]


# ---- random ----


def test_random():
    cp.random.seed(7)
    x = cp.random.rand(1000).get()
    cp.random.seed(7)
    np.testing.assert_array_equal(x, cp.random.rand(1000).get())
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.05
    n = cp.random.normal(3, 2, size=(100, 100)).get()
    assert abs(n.mean() - 3) < 0.1 and abs(n.std() - 2) < 0.1
    i = cp.random.randint(-3, 4, size=2000).get()
    assert set(i.tolist()) == set(range(-3, 4)) and i.dtype == np.int64
    assert sorted(cp.random.permutation(10).tolist()) == list(range(10))
    s = cp.arange(20)
    cp.random.shuffle(s)
    assert sorted(s.tolist()) == list(range(20))
    assert cp.random.choice(5, 3, replace=False).shape == (3,)
    assert set(cp.random.choice(3, 100, p=[0.5, 0, 0.5]).tolist()) == {0, 2}
    g = cp.random.default_rng(1)
    assert g.random((2, 3), dtype="float32").dtype == np.float32
    assert g.integers(5, size=4).shape == (4,) and g.standard_normal().shape == ()
    assert cp.random.uniform(2, 3, 5).get().min() >= 2
    with pytest.raises(ValueError):
        cp.random.randint(3, 3)
    with pytest.raises(AttributeError, match="not in simt yet"):
        cp.random.zipf


# ---- deferred evaluation, memory, threads ----


def test_eager_and_deferred_agree():
    def program():
        a = cp.arange(20, dtype="float32").reshape(4, 5)
        b = cp.exp(-a * a) + a.sum(axis=0)
        b[1] = a[2] * 2
        a += 1
        return (b - a.mean(axis=1, keepdims=True)).get()

    want = program()
    before = _core.eager(True)
    try:
        np.testing.assert_array_equal(program(), want)
    finally:
        _core.eager(before)


def test_memory_returns():
    def work():
        a = cp.random.rand(100, 100)
        b = a @ a.T
        b[b > 30] = 0
        v = b[::2, 1:]
        v += 1
        c = cp.concatenate([v, v])[cp.array([0, 5, 7])]
        return c.sum().item(), c.get().sum()

    work()
    gc.collect()
    _core.evaluate(None)
    before = _core.stats()["bytes_in_use"]
    for _ in range(20):
        work()
    gc.collect()
    _core.evaluate(None)
    assert _core.stats()["bytes_in_use"] == before


def test_threads():
    errors = []

    def work(seed):
        try:
            for i in range(30):
                a = cp.full((50, 50), float(seed + i))
                b = (a * 2 + 1).sum(axis=0)
                assert b.get().tolist() == [50 * (2 * (seed + i) + 1.0)] * 50
                assert (a @ a).get()[0, 0] == 50 * float(seed + i) ** 2
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    a = cp.arange(3)
    assert (a + 1).tolist() == [1, 2, 3]


def test_cuda_stub():
    assert cp.cuda.runtime.getDeviceCount() == 1
    assert b"simt" in cp.cuda.runtime.getDeviceProperties(0)["name"]
    with cp.cuda.Device(0), cp.cuda.Stream():
        cp.arange(3)
    cp.cuda.Stream.null.synchronize()
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    end.record()
    assert cp.cuda.get_elapsed_time(start, end) >= 0
    pool = cp.get_default_memory_pool()
    a = cp.zeros(1000)
    _core.evaluate(a)
    assert pool.used_bytes() >= 8000
    pool.free_all_blocks()


def test_out_of_memory_is_an_exception(monkeypatch):
    monkeypatch.setenv("SIMT_LANG", "zh")
    with pytest.raises(MemoryError, match="(?s).*提示: "):
        cp.empty(2**45)
    monkeypatch.setenv("SIMT_LANG", "en")
    with pytest.raises(MemoryError, match="(?s).*\nhint: use a smaller"):
        cp.empty(2**45)
    with pytest.raises((MemoryError, ValueError)):
        _core.evaluate(cp.zeros(2**45))
    same(cp.arange(3) + 1, np.arange(3) + 1)


def test_errors_of_data_name_the_line():
    a = cp.arange(3)
    b = a[cp.array([0, 9])]  # the line named
    with pytest.raises(
        IndexError, match=r"(?s)index 9 is out of bounds.*test_cupy_looking\.py:\d+"
    ):
        b.get()


def test_interrupt():
    code = """
import signal, time, threading, os
import simt.cupy as cp
a = cp.arange(30_000_000, dtype="float64")
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    start = time.time()
    while time.time() - start < 20:
        cp.exp(cp.sin(a)).sum().item()
except KeyboardInterrupt:
    print("stopped", cp.arange(3).sum().item())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert done.stdout == "stopped 3\n", done.stderr
