"""simt.cupy against NumPy: indexing, creation, shapes."""

import numpy as np
import pytest
import simt.cupy as cp
from array_reference import same
from hypothesis import given, settings
from hypothesis import strategies as st

# ---- indexing ----


def _slices():
    part = st.one_of(st.none(), st.integers(-6, 6))
    step = st.sampled_from([None, 1, 2, -1, -2, 3])
    return st.builds(slice, part, part, step)


@st.composite
def keys(draw, shape):
    """A key for an array of this shape; may be invalid."""
    parts, axis = [], 0
    ellipsis = False
    for _ in range(draw(st.integers(0, len(shape) + 1))):
        kind = draw(st.sampled_from("islimnbe"))
        size = shape[axis] if axis < len(shape) else 1
        if kind == "i":
            parts.append(draw(st.integers(-size, max(size - 1, 0))))
        elif kind == "s":
            parts.append(draw(_slices()))
        elif kind == "l":
            n = draw(st.sampled_from([1, 2]))
            parts.append(
                np.array(draw(st.lists(st.integers(-size, size - 1), min_size=n, max_size=n)))
            )
        elif kind == "m":
            parts.append(
                np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
            )
        elif kind == "n":
            parts.append(None)
            continue
        elif kind == "b":
            parts.append(draw(st.booleans()))
            continue
        elif not ellipsis:
            parts.append(Ellipsis)
            ellipsis = True
            continue
        axis += 1
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


def to_ours(key):
    if isinstance(key, tuple):
        return tuple(to_ours(k) for k in key)
    return cp.array(key) if isinstance(key, np.ndarray) else key


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_random_keys(data):
    shape = data.draw(st.sampled_from([(4,), (3, 4), (2, 3, 4), (3, 1, 2)]))
    key = data.draw(keys(shape))
    x = np.arange(np.prod(shape)).reshape(shape)
    a = cp.array(x)
    try:
        want = np.asarray(x[key])
    except (IndexError, ValueError) as e:
        with pytest.raises(type(e)):
            a[to_ours(key)].get()
        return
    same(a[to_ours(key)], want)
    value = np.arange(want.size).reshape(want.shape) + 100
    many = any(isinstance(k, np.ndarray) for k in (key if isinstance(key, tuple) else (key,)))
    x[key] = 50 if many else value
    a[to_ours(key)] = 50 if many else cp.array(value)
    same(a, x)


def test_index_errors():
    a = cp.zeros((3, 4))
    cases = [
        (5, "index 5 is out of bounds for axis 0 with size 3"),
        ((0, 0, 0), "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        ("x", "only integers, slices"),
        (1.5, "only integers, slices"),
        ((Ellipsis, Ellipsis), "single ellipsis"),
        (cp.zeros(3, bool)[:2], "boolean index did not match indexed array along axis 0"),
        (cp.array([1.5]), "arrays used as indices must be of integer"),
    ]
    for key, text in cases:
        with pytest.raises(IndexError, match=text.replace("(", r"\(")):
            a[key]
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 1 with size 4"):
        a[:, cp.array([1, 7])].get()
    with pytest.raises(IndexError):
        a[[0, 1], [0, 1, 2]]
    with pytest.raises(ValueError):
        a[0] = cp.ones(3)


def test_take_and_masks():
    x = np.arange(12).reshape(3, 4) * 3
    a = cp.array(x)
    same(a.take(cp.array([1, 1, 3])), x.take([1, 1, 3]))
    same(cp.take(a, cp.array([2, 0]), axis=0), x.take([2, 0], axis=0))
    idx = np.argsort(-x, axis=1)
    same(cp.take_along_axis(a, cp.array(idx), 1), np.take_along_axis(x, idx, 1))
    for got, want in zip(cp.nonzero(a > 10), np.nonzero(x > 10)):
        same(got, want)
    same(cp.argwhere(a > 10), np.argwhere(x > 10))
    a[a > 10] = cp.arange((x > 10).sum())
    x[x > 10] = np.arange((x > 10).sum())
    same(a, x)
    a[[0, 0, 1], [1, 1, 2]] = cp.array([5, 6, 7])
    x[[0, 0, 1], [1, 1, 2]] = [5, 6, 7]
    same(a, x)


# ---- creation and shapes ----


@pytest.mark.parametrize(
    "data",
    [1, 2.5, True, [], [[]], [1, 2], [1, 2.5], [True, 2], [[1, 2], [3, 4.5]], (1, (2,))[:1]]
    + [[[], []], [np.float32(1), np.int8(2)], [np.arange(3), np.arange(3.0)], range(4), 2**63],
)
def test_array_of_python_data(data):
    want = np.array(data)
    same(cp.array(data), want)
    same(cp.asarray(data, dtype="float32"), np.asarray(data, dtype="float32"))


def test_array_errors():
    for data, error in [
        ([[1, 2], [3]], ValueError),
        ("abc", TypeError),
        (["a"], TypeError),
        ([None], TypeError),
        (object(), TypeError),
        (2**64, OverflowError),
        (np.array([1j]), TypeError),
        (np.array(["a"]), TypeError),
    ]:
        with pytest.raises(error):
            cp.array(data)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for int8"):
        cp.array([300], dtype="int8")
    with pytest.raises(TypeError, match="not understood"):
        cp.zeros(3, dtype="float99")
    with pytest.raises(TypeError):
        cp.zeros(3, dtype="complex64")
    for shape in (-1, (2, -3), (2**40, 2**40)):
        with pytest.raises((ValueError, MemoryError)):
            cp.zeros(shape)
    with pytest.raises(TypeError):
        cp.zeros("3")


def test_creation():
    same(cp.arange(5), np.arange(5))
    same(cp.arange(2, 11, 3), np.arange(2, 11, 3))
    same(cp.arange(5, 0, -2), np.arange(5, 0, -2))
    same(cp.arange(0, 1, 0.1), np.arange(0, 1, 0.1))
    same(cp.arange(3, dtype="f4"), np.arange(3, dtype="f4"))
    same(cp.linspace(0, 1, 7), np.linspace(0, 1, 7))
    same(cp.linspace(0, 10, 4, endpoint=False, dtype=int), np.linspace(0, 10, 4, False, dtype=int))
    same(cp.eye(3, 4, 1), np.eye(3, 4, 1))
    same(cp.identity(2, "int8"), np.identity(2, "int8"))
    same(cp.full((2, 2), 7), np.full((2, 2), 7))
    same(cp.full(2, np.float32(1.5)), np.full(2, np.float32(1.5)))
    same(cp.full_like(cp.arange(3), 2.7), np.full_like(np.arange(3), 2.7))
    same(cp.zeros_like(cp.ones((2, 3), "int16")), np.zeros((2, 3), "int16"))
    same(cp.tri(3, 4, -1), np.tri(3, 4, -1))
    m = np.arange(12).reshape(3, 4)
    for k in (-1, 0, 2):
        same(cp.tril(cp.array(m), k), np.tril(m, k))
        same(cp.triu(cp.array(m), k), np.triu(m, k))
        same(cp.diag(cp.array(m), k), np.diag(m, k))
        same(cp.diag(cp.arange(3), k), np.diag(np.arange(3), k))
    for indexing in ("xy", "ij"):
        ours = cp.meshgrid(cp.arange(2), cp.arange(3), cp.arange(4), indexing=indexing)
        theirs = np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing=indexing)
        for got, want in zip(ours, theirs):
            same(got, want)


SHAPE_CALLS = [
    lambda m, x: m.reshape(x, (4, -1)),
    lambda m, x: x.reshape(2, 2, -1),
    lambda m, x: m.transpose(x, (1, 2, 0)),
    lambda m, x: x.transpose(2, 0, 1),
    lambda m, x: x.T,
    lambda m, x: m.swapaxes(x, 0, -1),
    lambda m, x: m.moveaxis(x, 0, -1),
    lambda m, x: m.moveaxis(x, (0, 1), (2, 0)),
    lambda m, x: m.rollaxis(x, 2),
    lambda m, x: m.expand_dims(x, 1),
    lambda m, x: m.expand_dims(x, (0, -1)),
    lambda m, x: m.squeeze(m.expand_dims(x, 1)),
    lambda m, x: m.broadcast_to(x[:, :1], (5, 2, 3, 4)),
    lambda m, x: m.flip(x),
    lambda m, x: m.flip(x, (0, 2)),
    lambda m, x: m.rot90(x, 3),
    lambda m, x: m.roll(x, 5),
    lambda m, x: m.roll(x, (1, -2), (0, 2)),
    lambda m, x: m.tile(x, 2),
    lambda m, x: m.tile(x, (2, 1, 1, 3)),
    lambda m, x: m.repeat(x, 3, axis=1),
    lambda m, x: m.repeat(x, [1, 2], axis=0),
    lambda m, x: m.concatenate([x, x + 1], axis=-1),
    lambda m, x: m.concatenate([x, x.astype("float32")], axis=None),
    lambda m, x: m.stack([x, x * 2], axis=1),
    lambda m, x: m.vstack([x[0], x[1]]),
    lambda m, x: m.hstack([x, x]),
    lambda m, x: m.dstack([x[0], x[0]]),
    lambda m, x: m.column_stack([x[0, 0], x[0, 1]]),
    lambda m, x: m.array_split(x, 3, axis=2)[1],
    lambda m, x: m.split(x, [1, 3], axis=2)[2],
    lambda m, x: m.where(x > 5, x, -x),
    lambda m, x: m.clip(x, 3, 9),
    lambda m, x: x.clip(None, 4),
    lambda m, x: m.around(x / 7, 2),
    lambda m, x: m.round(x * 7, -1),
    lambda m, x: m.pad(x, ((1, 0), (0, 2), (1, 1))),
    lambda m, x: m.diff(x),
    lambda m, x: m.outer(x[0, 0], x[0, 1]),
    lambda m, x: m.inner(x[0], x[1]),
    lambda m, x: m.tensordot(x, x, ([1, 2], [1, 2])),
    lambda m, x: m.kron(x[0], x[1]),
    lambda m, x: m.trace(x[0]),
    lambda m, x: m.diagonal(x, 1, 1, 2),
    lambda m, x: m.nan_to_num(m.log(x - 3.0)),
    lambda m, x: m.average(x, 0, weights=m.array([1.0, 3.0])),
    lambda m, x: m.count_nonzero(x > 3, axis=1),
    lambda m, x: m.isclose(x, x + 1e-9),
    lambda m, x: m.unravel_index(x, (4, 6))[1],
    lambda m, x: m.linalg.norm(x[0]),
    lambda m, x: m.linalg.norm(x[0], 1),
    lambda m, x: m.linalg.norm(x, axis=1),
    lambda m, x: m.linalg.norm(x, float("inf"), 0),
]


@pytest.mark.parametrize("call", SHAPE_CALLS)
def test_compositions(call):
    x = np.arange(24).reshape(2, 3, 4)
    with np.errstate(all="ignore"):
        want = np.asarray(call(np, x))
    same(call(cp, cp.array(x)), want, 1e-12)


def test_matmul():
    rng = np.random.default_rng(5)
    for s1, s2 in [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
    ]:
        for dt in (np.float32, np.float64, np.int32):
            x, y = (rng.random(s1) * 9).astype(dt), (rng.random(s2) * 9).astype(dt)
            same(cp.array(x) @ cp.array(y), np.asarray(x @ y), 1e-5)
            if len(s1) < 3:
                same(cp.dot(cp.array(x), cp.array(y)), np.asarray(np.dot(x, y)), 1e-5)
    x = rng.random((4, 3))
    same(cp.array(x).T @ cp.array(x), x.T @ x, 1e-12)
    same(cp.array(x)[::2] @ cp.array(x[:, ::-1]).T, x[::2] @ x[:, ::-1].T, 1e-12)
    with pytest.raises(ValueError):
        cp.ones((2, 3)) @ cp.ones((2, 3))
