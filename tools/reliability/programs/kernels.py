"""Programs for allocations.py, each with a value: kernels. Each run makes a new dispatcher, which
compiles."""

import collections
import contextlib
import io
import math
import operator

import numpy as np
import simt.cupy as cp
import simt.torch as torch
from simt.numba import cuda, float32, float64, guvectorize, int32, int64, types, vectorize, void


def _add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + 2 * b[i]


def kernel_add():
    a, out = np.arange(100.0), np.zeros(100)
    cuda.jit(_add)[4, 32](a, a, out)
    return out.tolist()


def _reduce(a, out):
    shared = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    shared[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, shared[0])


def kernel_shared():
    out = np.zeros(1, np.float32)
    cuda.jit(_reduce)[4, 64](np.ones(256, np.float32), out)
    return out.tolist()


@cuda.jit(device=True)
def _collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 200:
            break
    return steps


def _loops(out):
    local = cuda.local.array(4, int32)
    i = cuda.grid(1)
    for k in range(4):
        local[k] = _collatz(i + k + 1)
    if i < out.shape[0]:
        out[i, 0] = local[0] + local[3]
        out[i, 1] = cuda.shfl_down_sync(0xFFFFFFFF, i, 1) if False else local[i % 4]


def kernel_loops():
    out = np.zeros((64, 2), np.int64)
    cuda.jit(_loops)[2, 32](out)
    return out.tolist()


def _warp(out):
    i = cuda.grid(1)
    mask = cuda.ballot_sync(0xFFFFFFFF, i % 3 == 0)
    out[i] = cuda.shfl_down_sync(0xFFFFFFFF, i, 1) + cuda.popc(mask)


def kernel_warp():
    out = np.zeros(64, np.int64)
    cuda.jit(_warp)[1, 64](out)
    return out.tolist()


def _fault(a):
    a[cuda.grid(1) + 5] = 1.0


def kernel_fault():
    try:
        cuda.jit(_fault)[1, 8](np.zeros(8))
    except IndexError as e:
        return str(e).split("\n")[0]
    return "no error"


TABLE = np.arange(20, dtype=np.float32)
PAIR = (3, 4.5)


def _constants(out):
    i = cuda.grid(1)
    total = 0.0
    for x in PAIR:
        total += x
    out[i] = TABLE[i] * total + math.exp(-TABLE[i])


def kernel_constants():
    out = np.zeros(20)
    kernel = cuda.jit(void(float64[:]))(_constants)  # no text: eval is CPython's compiler
    kernel[1, 20](out)
    kernel[2, 10](out)
    return out.tolist()


POINT = np.dtype([("x", np.float32), ("n", np.int32, (2,))])


def _records(points, out):
    i = cuda.grid(1)
    if i < points.size:
        points[i].n[1] = i
        out[i] = complex(points[i].x, points[i].n[0]) * 1j


def kernel_records():
    points, out = np.ones(10, POINT), np.zeros(10, np.complex128)
    cuda.jit(_records)[1, 16](points, out)
    return [points["n"].tolist(), out.tolist()]


def kernel_device():
    a = cuda.to_device(np.arange(24.0).reshape(4, 6))
    out = cuda.device_array(6)
    cuda.jit(_add)[1, 8](a[1], a[2, ::-1], out)
    return out.copy_to_host().tolist()


def kernel_vectorize():
    @vectorize([float64(float64, float64)], target="cuda")
    def hypotenuse(x, y):
        return math.sqrt(x * x + y * y)

    return np.asarray(hypotenuse(np.arange(5.0), np.ones(5))).tolist()


def _printing(a):
    i = cuda.grid(1)
    if i < 3:
        print("element", i, a[i], i > 1)


def kernel_prints():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        cuda.jit(_printing)[1, 4](np.arange(4.0))
        cuda.synchronize()
    return out.getvalue()


def _raising(a):
    i = cuda.grid(1)
    if a[i] > 2:
        raise ValueError("too large")
    assert a[i] >= 0, "negative"


def kernel_raises():
    texts = []
    kernel = cuda.jit(debug=True, opt=False)(_raising)
    for values in ([1.0, 3.0], [-1.0, 0.0]):
        try:
            kernel[1, 2](np.array(values))
        except (ValueError, AssertionError) as e:
            texts.append([type(e).__name__, str(e).split("\n")[0]])
    return texts


def _inner_fault(a, i):
    return a[i + 10]


_fault_device = cuda.jit(device=True)(_inner_fault)


def _outer_fault(a):
    a[0] = _fault_device(a, cuda.grid(1))


def kernel_fault_report():
    try:
        cuda.jit(_outer_fault)[2, 2](np.zeros(4))
    except IndexError as e:
        return str(e).split("\n")[0]
    return "no error"


SCALE = 3.0
Pair = collections.namedtuple("Pair", "first second")
Pair.__module__ = __name__


def _closed(factor):
    shift = (1, 2.5)

    @cuda.jit
    def kernel(out, pair, rest, more):
        f = lambda x: x * factor + SCALE
        i = cuda.grid(1)
        if i < out.size:
            out[i] = f(i) + shift[1] + pair.first + rest[i] + more

    return kernel


def kernel_closures():
    out = np.zeros(8)
    _closed(2)[1, 8](out, Pair(1, 2.0), np.ones(8), 4)
    _closed(2.5)[1, 8](out[::2], Pair(1.5, 2.0), np.ones(8, np.int32), 4)
    return out.tolist()


def _library(a, out):
    i = cuda.grid(1)
    if i < out.size:
        local = cuda.local.array(4, float64)
        for k in range(4):
            local[k] = a[i] + k
        s = 0.0
        for k, x in enumerate(local):
            s += max(x, 1.5) * (k + 1)
        for x, y in zip(local, local):  # noqa: B905
            s += min(x, abs(y))
        out[i] = s + math.hypot(a[i], 2.0) + round(a[i]) + divmod(i, 3)[1] + math.gamma(a[i] + 1)
        out[i] += operator.add(a[i], 1) + np.sqrt(a[i]) + math.pow(a[i], 2) + pow(2, i)


def kernel_library():
    out = np.zeros(6)
    cuda.jit(_library)[1, 8](np.linspace(0.25, 3, 6), out)
    return [round(x, 9) for x in out.tolist()]


def _atomics(counts, values):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(counts, values[i] % 4, 1)
        cuda.atomic.max(counts, 4, values[i])
        cuda.atomic.compare_and_swap(counts[5:], 0, 7)


def kernel_atomics():
    counts = cuda.to_device(np.zeros(6, np.int32))
    kernel = cuda.jit(_atomics)
    kernel.forall(64)(counts, np.arange(64, dtype=np.int32))
    kernel[2, 16, cuda.stream()](counts, np.arange(32, dtype=np.int32))
    return counts.copy_to_host().tolist()


def kernel_guvectorize():
    @guvectorize([(float64[:], float64[:], float64[:])], "(n),()->(n)", target="cuda")
    def scaled(x, f, out):
        for i in range(x.shape[0]):
            out[i] = x[i] * f[0]

    return np.asarray(scaled(np.arange(6.0).reshape(2, 3), np.array([2.0, 3.0]))).tolist()


def _complex(z, out):
    i = cuda.grid(1)
    if i < z.size:
        w = z[i] * complex(0, 1) + 2
        out[i] = abs(w) + w.real


def kernel_complex():
    out = np.zeros(5, np.float32)
    z = (np.arange(5) + 1j).astype(np.complex64)
    kernel = cuda.jit("void(complex64[:], float32[:])")(_complex)
    kernel[1, 8](z, out)
    return [out.tolist(), sorted(str(s) for s in kernel.overloads)[0].count("complex64")]


def kernel_device_arrays():
    a = cuda.to_device(np.arange(12, dtype=np.float32))
    b = cuda.device_array_like(a)
    b[:] = a
    b[2:4] = np.array([7, 8], np.float32)
    c = cuda.pinned_array(12, np.float32)
    b.copy_to_host(c)
    m = cuda.mapped_array((2, 2))
    m[:] = 3
    v = b.reshape(3, 4).T
    parts = [p.copy_to_host().tolist() for p in b.split(5)]
    d = cuda.to_device(np.asfortranarray(np.ones((2, 3))))
    d[1] = 4
    return [
        c.tolist(),
        m.tolist(),
        v.copy_to_host().tolist(),
        parts,
        d.copy_to_host().tolist(),
        float(b[3]),
        b.ravel().shape,
        a.view(np.int32).copy_to_host()[:2].tolist(),
    ]


def _two(a, out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = a[j, i]


def kernel_sharing():
    out = cp.zeros((3, 4))
    t = torch.arange(12.0, dtype=torch.float64).view(4, 3)
    cuda.jit(_two)[(2, 2), (2, 2)](t, out)
    d = cuda.as_cuda_array(cp.arange(4))
    return [
        out.tolist(),
        d.copy_to_host().tolist(),
        cp.asarray(cuda.to_device(np.ones(2))).tolist(),
    ]


def kernel_reduction():
    add = cuda.reduce(lambda a, b: a + b)
    return float(add(np.arange(200.0)))


def kernel_wrong():
    texts = []
    for args in [("text", np.zeros(2), np.zeros(2)), (np.zeros(2),), (np.zeros(2), {}, [])]:
        try:
            cuda.jit(_add3)[1, 2](*args)
        except TypeError as e:
            texts.append("missing" in str(e) or "not enough" in str(e))
    return texts


def _add3(a, b, out):
    i = cuda.grid(1)
    out[i] = a[i] + b[i]


def _undefined(a):
    a[0] = nothing_of_that_name  # noqa: F821


def kernel_typing_error():
    try:
        cuda.jit(_undefined)[1, 1](np.zeros(1))
    except TypeError as e:
        return [type(e).__name__, "nothing_of_that_name" in str(e)]


def _fib(n):
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


def _even(n):
    return True if n == 0 else _odd(n - 1)


def _odd(n):
    return False if n == 0 else _even(n - 1)


def _recursive(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = _fib(i) + 100 * _even(i)


def kernel_recursion():
    global _fib, _even, _odd
    plain = _fib, _even, _odd
    _fib, _even, _odd = (cuda.jit(device=True)(f) for f in plain)
    try:
        out = np.zeros(12, np.int64)
        cuda.jit(_recursive)[2, 8](out)
        return out.tolist()
    finally:
        _fib, _even, _odd = plain


def _deeper(n):
    room = cuda.local.array(8192, float64)  # soon there is no room for more calls
    room[n] = n
    return room[0] + _deeper(n + 1)


def _endless(out):
    out[0] = _deeper(0)


def kernel_endless():
    global _deeper
    plain = _deeper
    _deeper = cuda.jit("float64(int64)", device=True)(plain)
    try:
        cuda.jit(_endless)[1, 1](np.zeros(1))
    except RecursionError as e:
        return str(e).splitlines()[0]
    finally:
        _deeper = plain


def _strings(names, texts, out):
    i = cuda.grid(1)
    if i < names.size:
        out[i, 0] = names[i] == "ab"
        out[i, 1] = names[i].find("b")
        out[i, 2] = names[i] < texts[i]
        out[i, 3] = len(texts[i] + names[i])
        texts[i] = names[i] + "!"


def kernel_strings():
    names, texts = np.array(["ab", "", "\u2603b"]), np.array(["x", "yy", "zzz"])
    out = np.zeros((3, 4), np.int64)
    cuda.jit(_strings)[1, 4](names, texts, out)
    return [out.tolist(), texts.tolist()]


def _pointers(p, q, n):
    i = cuda.grid(1)
    if i < n:
        q[i] = p[n - 1 - i] * 2


def kernel_pointers():
    of = types.CPointer(types.float64)
    d, e = cuda.to_device(np.arange(6.0)), cuda.to_device(np.zeros(6))
    k = cuda.jit(void(of, of, int64))(_pointers)
    at = [a.__cuda_array_interface__["data"][0] for a in (d, e)]
    k[2, 4](*at, 6)
    texts = []
    for wrong in ([8, at[1], 6], [*at, 7]):
        try:
            k[2, 4](*wrong)
            cuda.synchronize()
        except (ValueError, IndexError, TypeError) as error:
            texts.append(type(error).__name__)
    return [e.copy_to_host().tolist(), texts]
