"""Random programs of views, in-place operations, reductions and expressions on a few arrays, some
of them on memory that NumPy writes too: the values are NumPy's, deferred and eager."""

import numpy as np
import pytest
import simt.cupy as cp
from hypothesis import given, settings
from hypothesis import strategies as st
from simt import _core
from target import APART

# Values stay small integers in float64, so that every order of summation gives the same bits.
VIEWS = [
    lambda x: x[1:],
    lambda x: x[::2],
    lambda x: x[::-1],
    lambda x: x[:, 1:3] if x.ndim == 2 else x[1:3],
    lambda x: x.T,
    lambda x: x[0, ...],
    lambda x: x.reshape(-1)[:4],
    lambda x: x[None, ..., 0],
    lambda x: x.swapaxes(0, -1),
]
NEW = [
    lambda m, x, y: x + y,
    lambda m, x, y: x * 2 - y,
    lambda m, x, y: m.maximum(x, y) - 1,
    lambda m, x, y: m.where(x > y, x, 3.0),
    lambda m, x, y: x.sum(axis=0, keepdims=True) % 17,
    lambda m, x, y: m.abs(x).max(axis=-1) + y.min(),
    lambda m, x, y: (x - y).sum() % 13 + x,
    lambda m, x, y: m.concatenate([x.ravel(), y.ravel()])[:12],
    lambda m, x, y: x.copy(),
    lambda m, x, y: m.sign(x) + (y == x),
    lambda m, x, y: x.ravel()[m.arange(x.size)[::-1]],
    lambda m, x, y: x[x > 0],
    lambda m, x, y: m.cumsum(m.sign(x)),
]


def _iadd(m, x, y):
    x += y


def _assign(m, x, y):
    x[...] = y


def _scale(m, x, y):
    x *= 2
    x %= 11


def _mask(m, x, y):
    x[x > 3] = -1


def _rows(m, x, y):
    x[m.array([0, -1])] = y.ravel()[0]


def _reverse(m, x, y):
    x[:] = x[::-1]


def _count(m, x, y):
    x -= x.sum() % 7


WRITES = [_iadd, _assign, _scale, _mask, _rows, _reverse, _count]

steps = st.lists(
    st.tuples(
        st.sampled_from(["view", "new", "write", "look", *([] if APART else ["numpy"])]),
        st.integers(0, 100),
        st.integers(0, 100),
        st.integers(0, 100),
    ),
    min_size=1,
    max_size=14,
)


def start(library):
    """Four arrays; the last two are on memory shared with NumPy (theirs: the NumPy side itself)."""
    plain = [np.arange(12.0).reshape(3, 4) % 5, np.arange(6.0) - 2]
    shared = [np.arange(8.0).reshape(2, 4), np.arange(12.0).reshape(4, 3)[:, ::2]]
    if APART:
        return [library.array(x) for x in plain + shared], []
    if library is np:
        return plain + shared, shared
    ours = [cp.array(x) for x in plain] + [cp.from_dlpack(x) for x in shared]
    return ours, shared


def run_step(library, arrays, shared, step):
    kind, which, a, b = step
    x, y = arrays[a % len(arrays)], arrays[b % len(arrays)]
    if kind == "view" and x.ndim > 0:
        arrays.append(VIEWS[which % len(VIEWS)](x))
    elif kind == "new":
        arrays.append(NEW[which % len(NEW)](library, x, y))
    elif kind == "write" and x.ndim > 0:
        WRITES[which % len(WRITES)](library, x, y)
    elif kind == "numpy":
        shared[a % len(shared)][0] = which % 9
    elif kind == "look":
        x.sum().item()


def run_both(program):
    ours, our_memory = start(cp)
    theirs, their_memory = start(np)
    for step in program:
        failed = None
        try:
            run_step(np, theirs, their_memory, step)
        except (ValueError, IndexError, TypeError) as e:
            failed = type(e)
        if failed:
            with pytest.raises((ValueError, IndexError, TypeError)):
                run_step(cp, ours, our_memory, step)
                _core.evaluate(None)
            del ours[len(theirs) :]
        else:
            run_step(cp, ours, our_memory, step)
        assert len(ours) == len(theirs)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(got.get(), want, err_msg=repr(program))
    for got, want in zip(our_memory, their_memory, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=repr(program))


@settings(max_examples=200, deadline=None)
@given(steps)
def test_random_programs(program):
    run_both(program)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_random_programs_eager(program):
    before = _core.eager(True)
    try:
        run_both(program)
    finally:
        _core.eager(before)
