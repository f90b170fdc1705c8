"""Random programs give NumPy's values: views, in-place writes, reductions, indexing, shared memory.

Each program runs on pairs (ours, NumPy's) that alias alike. Integers wrap the same way in both, so
the comparison is exact; floats are only added and compared.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simt import _core
from target import APART

DTYPES = ["int64", "int32", "uint8", "float64"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]


@pytest.fixture(params=[False, True], ids=["deferred", "eager"])
def eager(request):
    before = _core.eager()
    _core.eager(request.param)
    yield request.param
    _core.eager(before)


def to_numpy(a):
    return a.get()


def same(ours, theirs):
    got = to_numpy(ours)
    assert got.shape == theirs.shape
    assert got.dtype == theirs.dtype
    np.testing.assert_array_equal(got, theirs)


def draw_slices(data, shape):
    """A basic index: slices with any step, integers, new axes."""
    index = []
    for length in shape:
        kind = data.draw(st.sampled_from(["all", "slice", "slice", "int", "new"]))
        if kind == "new" and len(shape) < 4:
            index.append(None)
        if kind == "int" and length > 0:
            index.append(data.draw(st.integers(-length, length - 1)))
            continue
        if kind == "slice":
            bound = st.none() | st.integers(-length - 1, length + 1)
            step = data.draw(st.sampled_from([None, 1, 2, -1, -2]))
            index.append(slice(data.draw(bound), data.draw(bound), step))
        else:
            index.append(slice(None))
    return tuple(index)


def fits(target, operand):
    try:
        return np.broadcast_shapes(target.shape, operand.shape) == target.shape
    except ValueError:
        return False


class Program:
    def __init__(self, data):
        self.data = data
        self.pairs = []
        self.shared = []
        for _ in range(2):
            self.start()

    def draw(self, strategy):
        return self.data.draw(strategy)

    def add(self, ours, theirs):
        if theirs.ndim <= 4 and len(self.pairs) < 12:
            self.pairs.append((ours, theirs))

    def pick(self):
        return self.pairs[self.draw(st.integers(0, len(self.pairs) - 1))]  # no repr: it would look

    def start(self):
        shape = self.draw(st.sampled_from([(4, 6), (6,), (2, 3, 4), (1, 6), (5, 1), ()]))
        dtype = self.draw(st.sampled_from(DTYPES))
        rng = np.random.default_rng(self.draw(st.integers(0, 1000)))
        theirs = rng.integers(0, 9, size=shape).astype(dtype)
        self.add(_core.array(theirs.copy()), theirs)

    def foreign(self):
        """Our array on NumPy's memory: their writes are ours."""
        theirs = np.arange(12, dtype=self.draw(st.sampled_from(DTYPES))).reshape(3, 4)
        memory = theirs.copy()
        self.shared.append(memory)
        self.add(_core.share_memory(memory), theirs)
        self.shared.append((memory, theirs))

    def view(self):
        a, x = self.pick()
        index = draw_slices(self.data, x.shape)
        self.add(a[index], np.asarray(x[index]) if x[index].ndim else x[index + (...,)])

    def transpose(self):
        a, x = self.pick()
        axes = tuple(self.draw(st.permutations(range(x.ndim))))
        self.add(a.transpose(axes), x.transpose(axes))

    def reshape(self):
        a, x = self.pick()
        shape = self.draw(st.sampled_from([(-1,), (1, -1), (-1, 2), (2, -1), (-1, 3, 2)]))
        known = -int(np.prod(shape))
        if x.size and x.size % known == 0:
            self.add(a.reshape(shape), x.reshape(shape))

    def binary(self):
        a, x = self.pick()
        b, y = self.pick()
        name = self.draw(st.sampled_from(BINARY))
        if "float64" in (x.dtype, y.dtype) and name == "multiply":
            return
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            with pytest.raises(ValueError, match="broadcast"):
                getattr(_core, "ew_" + name)(a, b)
            return
        try:
            theirs = np.asarray(getattr(np, name)(x, y))
        except TypeError as error:  # bool - bool
            with pytest.raises(TypeError) as ours:
                getattr(_core, "ew_" + name)(a, b)
            assert str(ours.value) == str(error)
            return
        self.add(getattr(_core, "ew_" + name)(a, b), theirs)

    def where(self):
        a, x = self.pick()
        k = self.draw(st.integers(0, 9))
        self.add(_core.ew_where(a < k, a, a + 1), np.asarray(np.where(x < k, x, x + 1)))

    def write(self):
        """In place, from a view of anything, the target's own memory included."""
        a, x = self.pick()
        b, y = self.pick()
        name = self.draw(st.sampled_from(BINARY + ["assign"]))
        if not fits(x, y) or (name == "multiply" and x.dtype == "float64"):
            return
        if name == "subtract" and x.dtype == y.dtype == bool:
            return
        if name == "assign":
            with np.errstate(invalid="ignore"):
                x[...] = y
            a[...] = b
            return
        if not np.can_cast(np.result_type(x, y), x.dtype, "same_kind"):
            with pytest.raises(TypeError, match="same_kind"):
                getattr(_core, "ew_" + name)(a, b, out=a)
            return
        getattr(np, name)(x, y, out=x)
        getattr(_core, "ew_" + name)(a, b, out=a)

    def write_scalar(self):
        a, x = self.pick()
        k = self.draw(st.integers(0, 9))
        index = draw_slices(self.data, x.shape)
        x[index] = k
        a[index] = k

    def reduce(self):
        a, x = self.pick()
        name = self.draw(st.sampled_from(["sum", "max", "min", "any", "all", "argmax"]))
        axis = self.draw(st.none() | st.integers(0, max(x.ndim - 1, 0))) if x.ndim else None
        keep = self.draw(st.booleans())
        try:
            theirs = getattr(np, name)(x, axis=axis, keepdims=keep)
        except ValueError as error:
            with pytest.raises(ValueError) as ours:
                getattr(_core, "red_" + name)(a, axis=axis, keepdims=keep)
            assert str(ours.value) == str(error)
            return
        self.add(getattr(_core, "red_" + name)(a, axis=axis, keepdims=keep), np.array(theirs))

    def gather(self):
        a, x = self.pick()
        if not x.ndim or not x.shape[0]:
            return
        n = x.shape[0]
        index = np.array(self.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=5)))
        self.add(a[_core.array(index)], x[index])

    def scatter(self):
        a, x = self.pick()
        if not x.ndim or not x.shape[0]:
            return
        n = x.shape[0]
        index = np.array(self.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=5)))
        x[index] = 3
        a[_core.array(index)] = 3

    def masked(self):
        a, x = self.pick()
        k = self.draw(st.integers(0, 9))
        if not x.ndim:
            return
        x[x > k] = 2
        a[a > k] = 2

    def join(self):
        a, x = self.pick()
        b, y = self.pick()
        if x.ndim == y.ndim and x.ndim and x.shape[1:] == y.shape[1:]:
            self.add(_core.concatenate([a, b]), np.concatenate([x, y]))

    def expose(self):
        """NumPy writes into our memory."""
        a, x = self.pick()
        k = self.draw(st.integers(0, 9))
        if x.size:
            memory = np.asarray(_core.export_buffer(a))
            assert memory.shape == x.shape
            memory[...] += memory.dtype.type(k)
            x[...] += x.dtype.type(k)

    def forget(self):
        if len(self.pairs) > 2:
            self.pairs.pop(self.draw(st.integers(0, len(self.pairs) - 1)))

    def look(self):
        same(*self.pick())

    def run(self):
        steps = ["start", "view", "view", "transpose", "reshape", "binary", "binary"]
        steps += ["where", "write", "write", "write_scalar", "reduce", "gather", "scatter"]
        steps += ["masked", "join", "forget", "look"]
        steps += [] if APART else ["foreign", "expose"]
        for step in self.draw(st.lists(st.sampled_from(steps), min_size=4, max_size=25)):
            getattr(self, step)()
        for pair in self.pairs:
            same(*pair)
        for entry in self.shared:
            if isinstance(entry, tuple):
                _core.evaluate(None)
                np.testing.assert_array_equal(*entry)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_programs(eager, data):
    Program(data).run()
