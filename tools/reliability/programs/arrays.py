"""Programs for allocations.py, each with a value: arrays."""

import numpy as np
import simt.cupy as cp
from errors import errors_of
from simt import _core


def arrays_elementwise():
    x = cp.arange(60, dtype=cp.float32).reshape(5, 12)
    y = cp.exp(-x / 7) * cp.sin(x) + cp.where(x > 3, x, -x).T[:5, :1]
    y[1:3, ::2] *= 3
    return y.get().tolist()


def arrays_reduce():
    x = cp.linspace(0, 1, 5000).reshape(50, 100)
    return [
        float(x.sum()),
        x.mean(axis=0)[:3].get().tolist(),
        x.max(axis=1)[:3].get().tolist(),
        int(x.argmax()),
        float(x.var()),
        cp.cumsum(x[0])[-2:].get().tolist(),
    ]


def arrays_index():
    x = cp.arange(40.0).reshape(8, 5)
    rows = cp.array([1, 3, 3])
    y = x[rows, 2] + x[rows][:, 0]
    x[x > 30] = -1
    x[[0, 2]] = 7
    return [y.get().tolist(), x.get().tolist(), cp.take(x, rows, axis=1).get().tolist()]


def arrays_sort():
    x = cp.array([3.0, 1, 2, 9, -4, 2, 7] * 30)
    return [
        cp.sort(x)[:9].get().tolist(),
        cp.argsort(x)[:9].get().tolist(),
        cp.concatenate([x[:2], cp.stack([x[:2], x[2:4]]).ravel()]).get().tolist(),
    ]


def arrays_products():
    a = cp.arange(48, dtype=cp.float32).reshape(6, 8)
    b = cp.arange(24.0).reshape(8, 3)
    return [(a @ a.T).get().tolist(), (a.astype(cp.float64) @ b).get().tolist()]


def arrays_random():
    cp.random.seed(3)
    return cp.random.rand(20).get().tolist() + cp.random.randint(0, 9, 10).get().tolist()


def arrays_keys():
    x = cp.arange(60).reshape(3, 4, 5)
    i = cp.array([[0, 2], [1, 1]])
    results = [
        x[1],
        x[-1, ::2],
        x[..., None, 0],
        x[True],
        x[i],
        x[:, i],
        x[i, [0, 1], 2],
        x[x % 7 == 0],
        x[[True, False, True]],
        x[np.int64(1), np.array([0, 3])],
        x[cp.array(1)],
        x[::-1, 1:3, [4, 0]],
        x[(0,) * 3],
        x[np.array([True, False, True])],
        x[[]],
    ]
    x[1, :, i] = 5
    x[..., -1] = cp.arange(4)
    x[[0, 1], 0] = [[1, 2, 3, 4, 5]]
    x[0][cp.array([True, False, True, False])] += 3
    x[2] = np.float32(7)
    texts = []
    for key in (5, "a", 1.5, (0, 0, 0, 0), (slice(None), 9), [[1, 2], [3]]):
        try:
            x[key]
        except (IndexError, ValueError, TypeError) as e:
            texts.append(str(e))
    return [[r.tolist() for r in results], x.tolist(), texts]


def arrays_makers():
    made = [
        cp.array([[1, 2.5], [3, 4]]),
        cp.array([True, False]),
        cp.array(3, dtype="int8"),
        cp.asarray(np.arange(6, dtype=np.float16)[::-2]),
        cp.zeros((2, 3), order="F"),
        cp.ones_like(cp.arange(3.0)),
        cp.full((2,), 7, dtype=np.uint8),
        cp.eye(3, k=1),
        cp.array([np.float32(1), np.int64(2)]),
        cp.array((range(3), [4, 5, 6])),
        cp.array([cp.arange(2), np.arange(2)]),
        cp.linspace(0, 1, 5),
        cp.arange(5, 0, -2),
        cp.tri(3),
        cp.diag(cp.arange(3)),
        cp.frombuffer(b"\1\2\3\4", np.uint8),
        *cp.meshgrid(cp.arange(2), cp.arange(3)),
        cp.logspace(0, 2, 3),
        cp.empty(0),
        cp.array([]),
    ]
    texts = []
    for bad in ("text", [[1], [2, 3]], object(), {1: 2}, [1, "a"], np.array(["a"])):
        try:
            cp.array(bad)
        except (TypeError, ValueError) as e:
            texts.append(type(e).__name__)
    return [[str(m.dtype), m.tolist()] for m in made] + [texts]


def arrays_ufuncs():
    x = cp.arange(1, 13, dtype=cp.float32).reshape(3, 4)
    out = cp.empty((3, 4))
    cp.multiply(x, 2, out=out)
    cp.add(x, out, out=out, casting="unsafe")
    values = [
        out,
        cp.arange(5) % 2,
        cp.modf(x[0])[0],
        cp.frexp(x[0])[1],
        cp.maximum(x, 4.5),
        cp.clip(x, 2, None),
        cp.where(x > 5),
        cp.power(x, 2, dtype=cp.float64),
        -x,
        ~cp.arange(3),
        x // 3,
        2 ** cp.arange(4),
        cp.arange(4) << 1,
        x % 3,
        abs(-x),
        x == 3,
        cp.isnan(x),
        3 - x,
        cp.arctan2(x, 2),
        cp.logaddexp(x, x),
        cp.bitwise_and(cp.arange(4), 2),
        round(x / 3, 1),
    ]
    x += 1
    x **= 2
    x //= 3
    flat = [tuple(p.tolist() for p in v) if isinstance(v, tuple) else v.tolist() for v in values]
    return [flat, x.tolist(), bool((x > 0).all()), float(x[0, 0]), int(x.sum()), divmod(7, 2)]


def arrays_methods():
    x = cp.arange(24.0).reshape(2, 3, 4)
    y = [
        x.transpose(2, 0, 1),
        x.T,
        x.swapaxes(0, 1),
        x.reshape(4, -1),
        x.ravel("F"),
        x.flatten(),
        x.astype(cp.int32),
        x.copy("F"),
        x.repeat(2, axis=1),
        x.take([0, 1], 2),
        x.clip(2, 9),
        x.squeeze(),
        x.sum((0, 2)),
        x.prod(1),
        x.std(0),
        x.argmin(1),
        x.cumsum(),
        x.any(0),
        x.min(axis=2, keepdims=True),
        x.dot(cp.ones(4)),
        x[0].diagonal(),
        x[0].trace(),
        x.round(1),
        x.view(cp.int64),
        x.nonzero()[0],
        x.max(),
        x.ptp(),
        x.mean(),
        cp.roll(x, 2),
        cp.flip(x, 1),
        cp.tile(x[0], (2, 1)),
        cp.pad(x[0], 1),
        cp.split(x, 2)[1],
        cp.vstack([x[0], x[1]]),
        cp.hstack([x[0], x[1]]),
        cp.moveaxis(x, 0, -1),
        cp.expand_dims(x, 1),
        cp.broadcast_to(x[0, 0], (2, 4)),
        cp.tensordot(x, x, 3),
        cp.outer(x[0, 0], x[0, 1]),
        cp.linalg.norm(x),
        cp.diff(x),
        cp.argwhere(x > 20),
        cp.nansum(x),
        cp.average(x, weights=x),
    ]
    x.fill(2)
    x.sort()
    x.shape = (4, 6)
    return [v.tolist() for v in y] + [
        x.tolist(),
        x.flags.c_contiguous,
        x.strides,
        len(x),
        list(x[0].tolist()),
    ]


def arrays_exchange():
    x = cp.arange(6.0).reshape(2, 3)
    n = np.from_dlpack(x)
    back = cp.from_dlpack(n)
    d = cp.from_dlpack(x.__dlpack__()) if hasattr(x, "__dlpack__") else x
    h = x.get(order="F")
    x.set(np.ones((2, 3)))
    e = _core.export_buffer(x)
    shared = _core.share_memory(memoryview(bytearray(16)).cast("d"))

    class Holder:
        __array_interface__ = np.arange(3).__array_interface__

    keep = np.arange(3)
    Holder.__array_interface__ = keep.__array_interface__
    i = x.__cuda_array_interface__
    return [
        n.tolist(),
        back.tolist(),
        d.tolist(),
        h.tolist(),
        memoryview(e).tolist(),
        shared.tolist(),
        cp.array(Holder()).tolist(),
        i["shape"],
        i["typestr"],
        x.tobytes().hex(),
        np.asarray(x.get()).sum().item(),
    ]


def arrays_text():
    x = cp.linspace(0, 1, 2000)
    return [
        repr(x),
        str(x.reshape(20, 100)),
        repr(cp.arange(3, dtype="u1")),
        f"{cp.array(2.5)}",
        str(cp.dtype("f4")),
        cp.array2string(x[:3]) if hasattr(cp, "array2string") else "",
    ]


def arrays_errors():
    x = cp.arange(6).reshape(2, 3)
    calls = [
        lambda: x + cp.ones(4),
        lambda: x @ x,
        lambda: x.reshape(4),
        lambda: x.sum(axis=5),
        lambda: x.nothing,
        lambda: cp.concatenate([]),
        lambda: cp.add(x, "a"),
        lambda: x.astype("U3"),
        lambda: cp.zeros(-1),
        lambda: x.__setitem__(0, [1, 2]),
        lambda: cp.add(x, x, wrong=1),
        lambda: cp.arange(3, dtype="nothing"),
        lambda: cp.take(x, 99, axis=0),
        lambda: int(x),
        lambda: cp.stack([x, x[0]]),
        lambda: np.add(x, 1) and x.transpose(0, 0),
        lambda: cp.array(2**70),
    ]
    return errors_of(calls)


def arrays_generators():
    g = cp.random.default_rng(3) if hasattr(cp.random, "default_rng") else None
    cp.random.seed(1)
    y = [
        cp.random.randn(3),
        cp.random.uniform(2, 3, (2, 2)),
        cp.random.normal(size=3),
        cp.random.permutation(5),
        cp.random.choice(5, 3),
        cp.random.random((2,)),
    ]
    z = cp.arange(6)
    cp.random.shuffle(z)
    return [v.tolist() for v in y] + [z.tolist(), g.random(2).tolist() if g else 0]


def arrays_numpy():
    x = cp.arange(4.0)
    y = np.sqrt(x), np.add(x, x), np.sum(x), np.concatenate([x, x])
    return [type(v).__module__ for v in y] + [float(cp.array(3)), cp.array(3).item(), x.tolist()]
