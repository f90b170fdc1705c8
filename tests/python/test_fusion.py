"""Which operations may run in one kernel: programs made to tempt the planner into a wrong answer.

Values are small integers, so that every order of summation gives NumPy's bits."""

import itertools
import random
import warnings

import numpy as np
import pytest
import simt.cupy as cp

# Around the sizes at which layouts change: rows of 96 (tiled), 128 accumulators, chunks of 512
# and of 4096.
LENGTHS = [1, 2, 63, 64, 65, 95, 96, 97, 127, 128, 129, 511, 512, 513, 1023, 1025]
LONG = [4095, 4096, 4097, 8192, 8193, 12289]


def values(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(dtype)


def check(ours, theirs, note=""):
    for number, (got, want) in enumerate(zip(ours, theirs, strict=True)):
        assert got.shape == want.shape, (number, note)
        np.testing.assert_array_equal(got.get(), want, err_msg=f"array {number}: {note}")


# ---- views of one buffer, written in place ----


def windows(x):
    """Views of the same elements and of overlapping ones: shifted, turned, strided, reshaped."""
    n = len(x)
    half, rows = n // 2, n // 8
    square = x[: rows * 8].reshape(rows, 8)
    return {
        half: [x[:half], x[1 : 1 + half], x[n - half :], x[: 2 * half : 2], x[half - 1 :: -1]],
        rows * 8: [x[: rows * 8], square, square[::-1], x[rows * 8 - 1 :: -1]],
        rows * 4: [square[:, ::2], square[:, 1::2], square[:, :4], square[:, 3::-1], square[:, 4:]],
    }


def bounded(x):
    x %= 7


def run_in_place(library, data, seed):
    """One random program; both libraries draw the same one."""
    draw = random.Random(seed)
    x = library.array(data)
    groups = [views for views in windows(x).values() if views[0].size]
    kept = [x]
    for _ in range(draw.randint(10, 40)):
        views = draw.choice(groups)
        shape = draw.choice(views).shape
        views = [v for v in views if v.shape == shape]
        to, a, b = (draw.choice(views) for _ in range(3))
        kind = draw.randrange(12)
        if kind == 0:
            to += a
        elif kind == 1:
            to[...] = a - b
        elif kind == 2:
            to[...] = to[::-1]
        elif kind == 3:
            kept.append(a + b * 2)
        elif kind == 4:
            kept.append(a.sum(axis=draw.randrange(a.ndim)))
        elif kind == 5:
            kept.append(library.maximum(a, b).max())
        elif kind == 6:
            to -= a.sum() % 5
        elif kind == 7:
            to[...] = a.max(axis=0, keepdims=True) - to
        elif kind == 8:
            library.add(a, b, out=to)
            library.subtract(to, a, out=to)
        elif kind == 9:
            kept.append(a.copy())
            a *= 2
        elif kind == 10:
            kept.append(a.argmax())
            a -= 1
        else:
            old = a.sum()
            a += 1
            kept.append(old - a.sum())
        bounded(x)
        if draw.random() < 0.1:
            kept.append(x.reshape(-1)[:: draw.choice([1, 2, -1])].copy())
    return kept


@pytest.mark.parametrize("seed", range(120))
def test_overlapping_views(seed):
    data = values(random.Random(seed).choice([9, 16, 17, 40, 130, 200, 1030, 8197]), seed=seed)
    if seed % 3 == 0:
        data = data.astype([np.int32, np.int64, np.int16][seed // 3 % 3])
    check(run_in_place(cp, data, seed), run_in_place(np, data, seed), f"seed {seed}")


def test_reader_before_and_after_a_write():
    for n in [7, 130, 5000]:
        data = values((n, 3))

        def program(m, data=data):
            x = m.array(data)
            first, row = x.sum(axis=0), x[0].copy()
            turned = x.T + 1
            x += 1
            second = x.sum(axis=0)
            x[1:] = x[:-1]
            third = x.sum(axis=1)
            x[:, 0] = x[:, 1:].sum(axis=1)
            return [first, row, turned, second, third, x.max(axis=0), x]

        check(program(cp), program(np))


def test_partial_writes_of_a_dead_and_a_live_buffer():
    def program(m):
        x = m.zeros(1000)  # all of it written piece by piece
        x[::2] = 1
        x[1::2] = 2
        x[:500] += x[500:]
        odd = x[1::2] * 3
        y = m.ones(1000)
        y[10:20] = 5
        z = y[15:25].copy()
        y[...] = 0  # what was in y does not matter any more, z does
        del x
        return [odd, z, y]

    check(program(cp), program(np))


def test_shape_that_differs_at_equal_size():
    """Flat members may join a group of another shape; a broadcast or turned one may not."""

    def program(m):
        x = m.arange(24.0)
        a = x + 1
        b = x.reshape(4, 6) * 2 + a.reshape(4, 6)
        c = b.T.copy() + a.reshape(6, 4)
        d = a.reshape(2, 3, 4) + m.arange(4.0)
        e = a.reshape(4, 6).sum(axis=0) + a.reshape(6, 4).sum(axis=1)
        f = (b + m.arange(6.0)).sum(axis=1)
        g = (a.reshape(6, 4) - c).max(axis=0)
        a *= 3
        return [a, b, c, d, e, f, g, a.reshape(4, 6).sum(axis=(0, 1)), x]

    check(program(cp), program(np))


def test_broadcast_operands_and_results():
    def program(m):
        x = m.arange(130.0).reshape(130, 1)
        y = m.arange(5.0)
        z = x + y
        w = m.broadcast_to(y + 1, (130, 5)) + z
        total = (z * w).sum(axis=0)
        y += total % 3
        return [z, w, total, y + z[3], m.broadcast_to(total, (2, 5)) + y]

    check(program(cp), program(np))


# ---- reductions ----

REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "var", "argmin", "argmax"]


@pytest.mark.parametrize("shape", [(3, 1, 5), (1, 1, 1), (0, 3, 2), (2, 0, 1), (4, 3, 2, 2), ()])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_all_axes(name, shape):
    data = values(shape) if name != "prod" else values(shape) % 3 - 1
    ours = cp.array(data)
    axes = [None, *range(len(shape))]
    if not name.startswith("arg"):
        n = range(len(shape))
        axes += [a for k in range(len(shape) + 1) for a in itertools.combinations(n, k)]
    for axis, keepdims in itertools.product(axes, [False, True]):
        with warnings.catch_warnings(action="ignore"):
            try:
                want = getattr(np, name)(data, axis=axis, keepdims=keepdims)
            except ValueError:
                with pytest.raises(ValueError):
                    getattr(cp, name)(ours, axis=axis, keepdims=keepdims).get()
                continue
        got = getattr(cp, name)(ours, axis=axis, keepdims=keepdims)
        assert got.shape == want.shape and got.dtype == want.dtype, (axis, keepdims)
        np.testing.assert_allclose(got.get(), want, rtol=1e-13, err_msg=f"axis {axis}")


@pytest.mark.parametrize("n", LENGTHS + LONG)
def test_lengths_around_the_chunks(n):
    flat = values(n, seed=n)
    wide, tall = values((3, n), seed=n), values((n, 3), seed=n)
    ours = [cp.array(x) for x in (flat, wide, tall)]
    for name in ["sum", "max", "argmin", "any"]:
        for got, want, axis in zip(ours, (flat, wide, tall), (0, 1, 0), strict=True):
            have = getattr(got, name)(axis=axis)
            np.testing.assert_array_equal(have.get(), getattr(want, name)(axis=axis), err_msg=name)
    # a reduction joined with what it reads, with a write of what it reads, and with another one
    x = ours[2]
    total, low = (x * 2).sum(axis=0), (x * 2).min(axis=0)
    x -= 1
    after = x.sum(axis=0)
    check([total, low, after, x], [tall.sum(0) * 2, tall.min(0) * 2, (tall - 1).sum(0), tall - 1])


@pytest.mark.parametrize("n", [3, 64, 129, 513, 4097, 8193])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8])
def test_argmax_ties_and_nan(n, dtype):
    for seed in range(6):
        draw = np.random.default_rng(seed)
        data = draw.integers(0, 2, (2, n)).astype(dtype)  # ties: the first counts
        if seed % 2 and np.dtype(dtype).kind == "f":
            data[draw.integers(0, 2), draw.integers(0, n, 3)] = np.nan
        x = cp.array(data)
        for f in ["argmax", "argmin"]:
            for axis in [None, 0, 1]:
                got = getattr(cp, f)(x, axis=axis).get()
                np.testing.assert_array_equal(got, getattr(np, f)(data, axis=axis))
            turned = getattr(x.T, f)(axis=0)
            np.testing.assert_array_equal(turned.get(), getattr(data.T, f)(axis=0))
        for f in ["max", "min"]:
            np.testing.assert_array_equal(getattr(x, f)(axis=1).get(), getattr(data, f)(axis=1))


# ---- many nodes, many results ----


def test_more_nodes_than_a_group_holds():
    def program(m):
        x = m.arange(100.0) % 5
        y = x
        for i in range(300):
            y = (y + x) % 11 if i % 3 else y - i % 4
        return [y, y.sum()]

    check(program(cp), program(np))


def test_more_live_results_than_registers():
    def program(m):
        x = m.arange(100.0) % 5
        kept = [x + i for i in range(150)]
        sums = [k.sum() for k in kept]
        x += 1
        return kept + sums + [kept[0] + kept[-1], x]

    check(program(cp), program(np))


def test_many_reductions_of_one_input():
    for shape in [(200, 7), (7, 200), (5000, 2)]:
        data = values(shape)

        def program(m, data=data):
            x = m.array(data)
            results = []
            for i in range(40):
                results += [(x + i).sum(axis=i % 2), (x * i).max(axis=i % 2)]
            return results

        check(program(cp), program(np))


def test_chain_of_reductions_and_writes():
    """As in an optimiser's loop: scalars derived from reductions feed in-place writes."""

    def program(m):
        x, y = m.arange(1000.0) % 7, m.ones(1000)
        for _ in range(30):
            s = (x * y).sum() % 3
            y -= s
            y %= 5
            x += y
            x %= 7
        return [x, y, s]

    check(program(cp), program(np))
