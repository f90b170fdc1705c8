"""Objects that change while they are read, memory described wrongly, arrays that are no numbers."""

import ctypes
import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
from simt import _core
from simt.numba import cuda


@cuda.jit
def nothing(a):
    pass


@cuda.jit
def double(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= 2


# ---- lists that change while they are read ----


class Emptying:
    """An integer whose reading empties a list."""

    def __init__(self, of, value=0):
        self.of, self.value = of, value

    def __index__(self):
        self.of.clear()
        return self.value


class EmptyingInterface:
    def __init__(self, of):
        self.of = of

    @property
    def __array_interface__(self):
        self.of.clear()
        return np.zeros(3, np.float32).__array_interface__


def emptied(make, *values):
    items = list(values)
    items.insert(1, make(items))
    return items


@pytest.mark.parametrize(
    "use",
    [
        lambda s: cp.zeros(s),
        lambda s: torch.zeros(s),
        lambda s: cp.zeros(6).reshape(s),
        lambda s: torch.zeros(6).view(s),
        lambda s: torch.zeros(1, 1, 1).permute(s),
        lambda s: torch.zeros(3).split(s),
        lambda s: cp.zeros((1, 1, 1)).sum(axis=tuple(s)),
        lambda s: torch.zeros(1, 1, 1).sum(s),
        lambda s: cp.zeros((4, 4, 4))[s],
        lambda s: torch.zeros(4, 4, 4)[s],
        lambda s: nothing[s, 1],
        lambda s: cuda.device_array(s),
        lambda s: cp.ones(3).repeat(s),
        lambda s: torch.zeros(3).repeat(s),
    ],
)
def test_lists_emptied_by_an_index(use):
    for position in range(3):
        items = [1, 1, 1]
        items[position] = Emptying(items, 1)
        try:
            use(items)
            _core.evaluate(None)
        except (TypeError, ValueError, IndexError, RuntimeError):
            pass


@pytest.mark.parametrize("make", [torch.tensor, cp.asarray, cp.array, torch.as_tensor])
def test_lists_emptied_by_an_element(make):
    rows = [np.zeros(3, np.float32), np.zeros(3, np.float32)]
    with pytest.raises(RuntimeError, match="changed its length"):
        make(emptied(EmptyingInterface, *rows))


def test_a_list_that_shrinks_leaves_no_memory_unwritten():
    class Half:
        def __init__(self, of):
            self.of, self.calls = of, 0

        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i >= 4:
                raise IndexError
            self.calls += 1
            if self.calls > 8:
                self.of.pop()
            return 1.0

    rows = [[1.0] * 4 for _ in range(5)]
    rows[1] = Half(rows)
    try:
        made = cp.asarray(rows)
    except (RuntimeError, ValueError) as e:
        assert "changed" in str(e) or "inhomogeneous" in str(e)
    else:
        np.testing.assert_array_equal(made.get(), np.ones((5, 4)))


# ---- one number ----

NUMBERS = {
    "arange": lambda x: torch.arange(x),
    "arange end": lambda x: torch.arange(0, x),
    "full": lambda x: torch.full((2,), x),
    "new_full": lambda x: torch.ones(2).new_full((2,), x),
    "cupy arange": lambda x: cp.arange(x),
    "cupy linspace": lambda x: cp.linspace(x, 1, 3),
    "alpha": lambda x: torch.ones(2).add(torch.ones(2), alpha=x),
    "linspace": lambda x: torch.linspace(x, 1, 3),
    "dropout": lambda x: torch.nn.functional.dropout(torch.ones(3), x),
    "uniform_": lambda x: torch.ones(3).uniform_(x, 1),
    "item": lambda x: torch.as_tensor(x).item(),
    "eye": lambda x: torch.eye(x),
}


@pytest.mark.parametrize("where", NUMBERS)
@pytest.mark.parametrize("size", [0, 3])
def test_an_array_is_no_number(where, size):
    for array in (np.zeros(size, np.int64), np.ones(size)):
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            NUMBERS[where](array)
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        NUMBERS[where](cp.zeros(size) if where.startswith("cupy") else torch.zeros(size))


def test_arrays_of_no_dimension_are_numbers():
    assert torch.arange(np.int64(3)).tolist() == [0, 1, 2]
    assert torch.full((2,), torch.tensor(4.0)).tolist() == [4, 4]
    assert cp.arange(cp.array(3)).tolist() == [0, 1, 2]
    assert cp.arange(np.array(3)).tolist() == [0, 1, 2]
    assert cp.asarray([cp.array(3), np.array(4), np.float32(5)]).tolist() == [3, 4, 5]


def test_only_numbers_fill():
    with pytest.raises(RuntimeError, match="0-dimension"):
        torch.ones(2).fill_(torch.tensor([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="0-dimension"):
        torch.ones(2).masked_fill(torch.tensor([True, False]), torch.tensor([1.0, 2.0]))
    assert torch.ones(2).fill_(torch.tensor(3)).tolist() == [3, 3]


DATE = np.datetime64("2020-01-01")


@pytest.mark.parametrize("date", [DATE, DATE - DATE, np.array(DATE), np.array([DATE])])
def test_dates_are_refused(date):
    for use in (
        torch.tensor,
        cp.asarray,
        lambda d: torch.tensor([d, d]),
        lambda d: cp.asarray([d]),
        lambda d: torch.ones(3)[d],
        lambda d: cp.ones(3)[d],
        lambda d: torch.ones(3).__setitem__(0, d),
        lambda d: cp.ones(3).__setitem__(0, d),
        lambda d: nothing[1, 1](d),
        lambda d: cuda.to_device(d),
        lambda d: torch.full((2,), d),
        lambda d: cp.full(2, d),
    ):
        with pytest.raises((TypeError, IndexError)):
            use(date)


# ---- memory of others ----


def test_buffers_without_strides():
    row = (ctypes.c_float * 4)(1, 2, 3, 4)
    table = ((ctypes.c_int * 3) * 2)((1, 2, 3), (4, 5, 6))
    assert torch.tensor(row).tolist() == [1, 2, 3, 4]
    assert cp.asarray(row).tolist() == [1, 2, 3, 4]
    assert cp.asarray(table).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert torch.as_tensor(row).tolist() == [1, 2, 3, 4]
    assert torch.arange(5)[(ctypes.c_long * 2)(0, 3)].tolist() == [0, 3]
    assert cuda.to_device(table).copy_to_host().tolist() == [[1, 2, 3], [4, 5, 6]]
    double[1, 32](row)
    assert list(row) == [2, 4, 6, 8]


def test_misaligned_memory_is_copied_or_refused():
    bytes_ = np.arange(41, dtype=np.uint8)
    crooked = bytes_[1:].view(np.float32)
    expected = crooked.copy()
    assert not crooked.flags.aligned
    np.testing.assert_array_equal(torch.as_tensor(crooked).numpy(), expected)
    np.testing.assert_array_equal(torch.from_dlpack(crooked).numpy(), expected)
    np.testing.assert_array_equal(cp.asarray(crooked).get(), expected)
    with pytest.raises(ValueError, match="multiple of the element byte size"):
        torch.from_numpy(crooked)


class Described:
    def __init__(self, name, **parts):
        x = self.x = np.arange(8.0)
        parts = {
            "shape": (8,), "typestr": "<f8", "data": (x.ctypes.data, False), "version": 3, **parts
        }  # fmt: skip
        setattr(self, name, parts)


WRONG = [
    {"shape": (-1,)},
    {"shape": (2, -4)},
    {"shape": (1 << 62,)},
    {"shape": (1 << 40, 1 << 40)},
    {"shape": (8,), "strides": (1 << 62,)},
    {"shape": (8,), "strides": (8, 8)},
    {"shape": (4,), "strides": (-(1 << 62),)},
    {"shape": (4, 4), "strides": (1 << 62, 1 << 62)},
    {"shape": [8, "x"]},
    {"shape": None},
    {"typestr": None},
    {"typestr": ">f8"},
    {"typestr": "<f7"},
    {"typestr": "f" * 1000},
    {"typestr": 8},
    {"data": None},
    {"data": (0, False)},
    {"data": (None, False)},
    {"data": (16, False)},
    {"data": (-1, False)},
    {"data": (1 << 70, False)},
    {"data": ((1 << 64) - 8, False)},
    {"data": ("x", False)},
    {"data": (1,)},
    {"data": b"12345678"},
    {"data": b"", "offset": 1},
    {"data": b"1" * 64, "offset": -8},
    {"data": b"1" * 64, "offset": 8},
    {"data": b"1" * 64, "strides": (-8,)},
    {"mask": np.ones(8)},
]


@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize("wrong", WRONG, ids=[str(w)[:40] for w in WRONG])
def test_wrong_descriptions_of_memory(name, wrong):
    described = Described(name, **wrong)
    uses = [cp.asarray, cp.array, torch.as_tensor, torch.tensor, lambda d: torch.tensor([d])]
    if "cuda" in name:
        uses = [cp.asarray, torch.as_tensor, cuda.as_cuda_array, nothing[1, 1], cuda.to_device]
    for use in uses:
        with pytest.raises((TypeError, ValueError, OverflowError, NotImplementedError)):
            use(described)


@pytest.mark.host_memory("describes memory of the host as the device's")
def test_right_descriptions_of_memory():
    x = np.arange(8.0)
    for name in "__array_interface__", "__cuda_array_interface__":
        d = Described(name, shape=(2, 2), strides=(16, -8), data=(x.ctypes.data + 8, False))
        assert cp.asarray(d).tolist() == [[1, 0], [3, 2]]
        assert cp.asarray(Described(name, shape=(0, 1 << 50), data=(0, False))).size == 0
    d = Described("__array_interface__", shape=(2,), data=x.tobytes(), offset=16)
    assert cp.asarray(d).tolist() == [2, 3]


def test_a_view_stays_inside_shared_memory():
    t = torch.from_numpy(np.arange(6.0))
    assert t.as_strided((2,), (2,), 1).tolist() == [1, 3]
    for size, stride, offset in [((7,), (1,), 0), ((2,), (1,), 5), ((2,), (1 << 60,), 0)]:
        with pytest.raises((RuntimeError, ValueError)):
            t.as_strided(size, stride, offset)


# ---- DLPack ----


@pytest.mark.host_memory("shares memory with NumPy")
@pytest.mark.parametrize("make", [cp.arange, torch.arange, lambda n: cuda.to_device(np.arange(n))])
def test_dlpack_copies_when_asked(make):
    a = make(4.0) if make is not cp.arange else cp.arange(4.0)
    host = a.copy_to_host if hasattr(a, "copy_to_host") else (lambda: np.asarray(a.tolist()))
    n = np.from_dlpack(a, copy=True)
    n[0] = 99
    assert host()[0] == 0
    n = np.from_dlpack(a)
    if n.flags.writeable:
        n[0] = 99
        assert host()[0] == 99
    n = np.from_dlpack(a, device="cpu", copy=False)
    assert n.shape == (4,)
    for device in ((2, 0), (1, 3), (-1, 0)):
        with pytest.raises(BufferError, match="cannot be given"):
            a.__dlpack__(dl_device=device)
    for wrong in ({"dl_device": 1}, {"max_version": 1}, {"max_version": (1,)}):
        with pytest.raises(TypeError):
            a.__dlpack__(**wrong)


@pytest.mark.parametrize("take", [_core.from_dlpack, torch.from_dlpack])
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 5)])
def test_capsules_are_used_once(take, version):
    a = cp.arange(4.0)
    capsule = a.__dlpack__(max_version=version)
    name = "dltensor_versioned" if version and version[0] >= 1 else "dltensor"
    assert f'"{name}"' in repr(capsule)
    b = take(capsule)
    with pytest.raises(ValueError, match="only once"):
        take(capsule)
    del a, capsule
    assert b.tolist() == [0, 1, 2, 3]


def test_read_only_memory_is_copied():
    x = np.arange(4.0)
    x.flags.writeable = False
    for take in (_core.from_dlpack, torch.from_dlpack):
        y = take(x)
        y += 1
        _core.evaluate(None)
        assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [1, 2, 3, 4]


# ---- dtype= of functions, sizes that overflow ----


@pytest.mark.parametrize("name", ["exp", "sqrt", "arctan2", "divide", "rint", "less", "negative"])
def test_a_dtype_without_a_loop(name):
    ours, theirs = getattr(cp, name), getattr(np, name)
    for kind in ("int64", "float32", "bool"):
        x = np.array([1, 2, 3]).astype(kind)
        for dtype in (bool, "int8", "uint8", "int64", "float32", "float64"):
            inputs = [x] * theirs.nin
            try:
                expected = theirs(*inputs, dtype=dtype)
            except TypeError:
                with pytest.raises(TypeError):
                    ours(*map(cp.asarray, inputs), dtype=dtype)
                continue
            got = ours(*map(cp.asarray, inputs), dtype=dtype).get()
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_sizes_at_the_end_of_the_integers():
    most = 2**63 - 1
    x, n, t = cp.arange(5), np.arange(5), torch.arange(5)
    d = cuda.to_device(n)
    for key in (slice(None, None, most), slice(None, None, -most), slice(-most, most, 2**62)):
        assert x[key].tolist() == n[key].tolist() == d[key].copy_to_host().tolist()
        if key.step > 0:
            assert t[key].tolist() == n[key].tolist()
    assert [p.tolist() for p in t.chunk(most)] == [[0], [1], [2], [3], [4]]
    assert [p.tolist() for p in t.split(most)] == [[0, 1, 2, 3, 4]]
    assert [p.copy_to_host().tolist() for p in d.split(most)] == [[0, 1, 2, 3, 4]]
    with pytest.raises(RuntimeError):
        t.narrow(0, 1, most)
    with pytest.raises(RuntimeError):
        t.split([2**62] * 4 + [5])
    with pytest.raises((ValueError, MemoryError)):
        cp.repeat(x, [2**40, 0, 0, 0, 0]).get()
    with pytest.raises((ValueError, MemoryError)):
        cp.repeat(x, [2**62] * 5)
    with pytest.raises((ValueError, MemoryError)):
        torch.repeat_interleave(t, 2**61)


@pytest.mark.parametrize("counts", [0, 2, [3], [1, 0, 2], np.array([2, 2, 0]), (0, 0, 0)])
def test_repeat(counts):
    x = np.array([5, 6, 7])
    assert cp.repeat(cp.asarray(x), counts).tolist() == np.repeat(x, counts).tolist()
    assert cp.repeat(cp.eye(3), counts, 1).tolist() == np.repeat(np.eye(3), counts, 1).tolist()
    given = counts if isinstance(counts, int) else torch.tensor(counts)
    got = torch.repeat_interleave(torch.tensor(x), given)
    assert got.tolist() == np.repeat(x, counts).tolist()


def test_values_are_there_for_every_index():
    index = torch.tensor([0, 1, 2, 3])
    with pytest.raises(RuntimeError, match="weights"):
        torch.bincount(index, torch.ones(2))
    for name in ("scatter", "scatter_add"):
        with pytest.raises(RuntimeError, match="no larger size than src"):
            getattr(torch.zeros(5), name)(0, index, torch.ones(2))
    assert torch.bincount(index, torch.arange(4)).tolist() == [0, 1, 2, 3]


# ---- small ----


def test_a_fraction_is_no_factor_of_integers():
    a = torch.tensor([1, 2, 3])
    for wrong in (lambda: torch.addcmul(a, a, a, value=0.5), lambda: a.add(a, alpha=0.5)):
        with pytest.raises(RuntimeError, match="must not be a floating point number"):
            wrong()
    assert torch.addcmul(a, a, a, value=2).tolist() == [3, 10, 21]


def run(program, *args, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


RECURSION = """
import sys
import weakref
import simt.cupy as cp
import simt.torch as torch
from simt.numba import cuda
sys.setrecursionlimit(int(sys.argv[1]))

@cuda.jit
def k(a): pass

class R:
    again = k[1, 1]
    @property
    def __cuda_array_interface__(self): return self.again(self)
    def __index__(self): return self.again(self)

class S:
    def __len__(self): return 3
    def __getitem__(self, i): return R.again([[self]])

t = torch.zeros(3)
for kind, again in [(R, k[1, 1]), (R, cp.asarray), (R, lambda r: t[r]), (R, lambda r: t.view(r)),
                    (S, torch.tensor), (S, cp.asarray)]:
    R.again = staticmethod(again)
    try: again(kind())
    except RecursionError: print("RecursionError")
"""


def test_recursion_through_arguments():
    for limit in ("1000", "100000"):
        assert run(RECURSION, limit) == "RecursionError\n" * 6


def test_numbers_of_threads_that_are_none():
    program = "import simt.torch as t, os; print(t.get_num_threads())"
    free = run(program, SIMT_NUM_THREADS="")
    for wrong in ("abc", "0", "-3", "2x", "99999999999999999999"):
        assert run(program, SIMT_NUM_THREADS=wrong) == free
    assert run(program, SIMT_NUM_THREADS="3") == "3\n"


class Owner:
    def __init__(self, name):
        self.x = np.arange(3.0)
        self.description = {
            "shape": (3,), "typestr": "<f8", "data": (self.x.ctypes.data, False), "version": 3
        }  # fmt: skip
        setattr(self, name, self.description)


@pytest.mark.host_memory("describes memory of the host as the device's")
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("__cuda_array_interface__", cp.asarray),
        ("__cuda_array_interface__", cuda.as_cuda_array),
        ("__cuda_array_interface__", lambda o: cp.asarray(cuda.as_cuda_array(o))),
        ("__cuda_array_interface__", torch.as_tensor),
        ("__array_interface__", torch.as_tensor),
    ],
)
def test_owners_in_rings_are_collected(name, make):
    owner = Owner(name)
    owner.array = make(owner)
    assert owner.array.sum() == 3 if hasattr(owner.array, "sum") else owner.array[2] == 2
    alive = weakref.ref(owner)
    gc.collect()
    assert alive() is owner and owner.array[1] == 1
    del owner
    gc.collect()
    assert alive() is None


@pytest.mark.host_memory("describes memory of the host as the device's")
def test_an_owner_outside_a_ring_stays():
    owner = Owner("__cuda_array_interface__")
    owner.array = cp.asarray(owner)
    view = owner.array[1:]
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.host_memory("describes memory of the host as the device's")
@pytest.mark.parametrize("kept", ["array", "view", "array view", "view part", "array view part"])
def test_rings_through_views_are_collected(kept):
    owner = Owner("__cuda_array_interface__")
    array = cp.asarray(owner)
    made = {"array": array, "view": array[1:], "part": array[1:][::2], "none": array[:0]}
    owner.kept = [made[name] for name in kept.split()]
    alive = weakref.ref(owner)
    del owner, array, made
    gc.collect()
    gc.collect()
    assert alive() is None


@pytest.mark.host_memory("describes memory of the host as the device's")
def test_a_view_or_a_tensor_outside_keeps_a_ring():
    for hold in (lambda a: a[1:], lambda a: torch.as_tensor(a[1:]), cuda.as_cuda_array):
        owner = Owner("__cuda_array_interface__")
        array = cp.asarray(owner)
        owner.kept = [array, array[1:]]
        outside, alive = hold(array), weakref.ref(owner)
        del owner, array
        gc.collect()
        assert alive() is not None and outside[-1] == 2
        del outside
        gc.collect()
        assert alive() is None


EMPTIED = """
import sys; sys.path.insert(0, {folder!r})
from odd import *
from simt.numba import types, vectorize

add = vectorize(["float64(float64, float64)"])(lambda a, b: a + b)
new = vectorize()(lambda a, b: a + b)
records = cuda.to_device(np.zeros(3, [("a", "i4")]))

def odd():
    yield emptied(np.zeros(8), np.zeros(8), at=1, kind=Interface)
    yield (emptied(np.zeros(8), np.zeros(8), at=1, kind=Interface),)
    yield emptied(1, 1, at=1)

calls = [lambda x: records.__setitem__(slice(0, 2), x)]
for f in (add, new):
    calls += [lambda x: f(x, 1.0), f.reduce, f.accumulate, lambda x: f.outer(x, x)]
    calls += [lambda x: f.reduce(np.ones(3), initial=x), lambda x: f.reduce(np.ones(3), dtype=x)]
    calls += [lambda x: f.at(np.ones(3), x, 1.0), lambda x: f.reduceat(np.ones(3), x)]
calls += [cp.broadcast_shapes, cp.result_type, lambda x: cp.can_cast(x, x)]
calls += [lambda x: cp.fromiter(x, float), lambda x: cp.frombuffer(b"12345678", x)]
calls += [lambda x: cp.random.rand(2, dtype=x), cuda.pinned_array, types.float32, cp.asnumpy]
calls += [lambda x: cuda.pinned_array(3, x), lambda x: torch.nn.Hardtanh(x, np.ones(2))]
for call in calls:
    for x in odd():
        try:
            call(x)
        except Exception:
            pass
print("done")
"""


def test_numpy_gets_lists_that_nobody_else_changes():
    """Each of these ended the process, inside NumPy."""
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "fuzz")
    assert run(EMPTIED.format(folder=folder)) == "done\n"


def test_own_lists():
    x = [1, (2, [3]), {"a": []}]
    own = _core.own_lists(x)
    assert own == x and own is not x and own[1][1] is not x[1][1] and own[2] is x[2]
    assert _core.own_lists((1, 2)) == (1, 2) and _core.own_lists(5) == 5
