"""Programs as users of Numba's CUDA documentation write them, against NumPy."""

import math
import operator
from enum import Enum, IntEnum

import numpy as np
import pytest
from simt.numba import cuda, float64, vectorize
from simt.numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

TIMEOUT = int(np.int64(np.timedelta64("90", "m")))


@cuda.jit
def sessions(user, minute, label):
    """Each click's session is named by its first click; a session ends by a pause or a new user."""
    i = cuda.grid(1)
    if i >= len(user):
        return
    first = i == 0 or user[i] != user[i - 1] or minute[i] - minute[i - 1] > TIMEOUT
    label[i] = i if first else -1
    cuda.cg.this_grid().sync()
    if first:
        ahead = i + 1
        while ahead < len(user) and label[ahead] == -1:
            label[ahead] = i
            ahead += 1


def test_session_clicks():
    rng = np.random.default_rng(0)
    user = np.sort(rng.integers(0, 40, 1000))
    minute = np.sort(rng.integers(0, 50000, 1000))
    label = cuda.to_device(np.zeros(1000, np.int64))
    sessions.forall(1000)(cuda.to_device(user), cuda.to_device(minute), label)
    want = []
    for i in range(1000):
        new = i == 0 or user[i] != user[i - 1] or minute[i] - minute[i - 1] > TIMEOUT
        want.append(i if new else want[-1])
    assert label.copy_to_host().tolist() == want


@cuda.jit
def fill(out, states):
    x, y, z = cuda.grid(3)
    nx, ny, nz = cuda.gridsize(3)
    thread = (z * ny + y) * nx + x
    for i in range(z, out.shape[0], nz):
        for j in range(y, out.shape[1], ny):
            for k in range(x, out.shape[2], nx):
                out[i, j, k] = xoroshiro128p_uniform_float32(states, thread)


def test_random_numbers_for_a_grid_of_three_dimensions():
    out = cuda.device_array((31, 29, 27), np.float32)
    fill[(2, 3, 1), (4, 2, 4)](out, create_xoroshiro128p_states(2 * 3 * 1 * 32, seed=5))
    values = out.copy_to_host()
    assert len(np.unique(values)) > 0.99 * values.size
    assert abs(values.mean() - 0.5) < 0.01 and 0 <= values.min() < values.max() <= 1


TILE = 16


@cuda.jit("(float64[:,:], float64[:,:], float64[:,:])")
def relax(a, new, error):
    """A step of Jacobi's method; error gets each block's largest change."""
    changes = cuda.shared.array((TILE, TILE), dtype=float64)
    ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.grid(2)
    changes[ty, tx] = 0
    if 1 <= j < a.shape[0] - 1 and 1 <= i < a.shape[1] - 1:
        new[j, i] = 0.25 * (a[j, i + 1] + a[j, i - 1] + a[j - 1, i] + a[j + 1, i])
        changes[ty, tx] = abs(new[j, i] - a[j, i])
    cuda.syncthreads()
    half = TILE // 2
    while half > 0:
        if ty < half:
            changes[ty, tx] = max(changes[ty, tx], changes[ty + half, tx])
        half //= 2
        cuda.syncthreads()
    half = TILE // 2
    while half > 0:
        if tx < half and ty == 0:
            changes[ty, tx] = max(changes[ty, tx], changes[ty, tx + half])
        half //= 2
        cuda.syncthreads()
    if tx == 0 and ty == 0:
        error[cuda.blockIdx.x, cuda.blockIdx.y] = changes[0, 0]


def test_laplace():
    a = np.zeros((48, 48))
    a[:, 0] = 1
    want, stream = a.copy(), cuda.stream()
    old, new = cuda.to_device(a, stream), cuda.to_device(a, stream)
    errors = np.zeros((3, 3))
    for _ in range(30):
        relax[(3, 3), (TILE, TILE), stream](old, new, errors)
        next_one = want.copy()
        inner = want[1:-1, 2:] + want[1:-1, :-2] + want[:-2, 1:-1] + want[2:, 1:-1]
        next_one[1:-1, 1:-1] = 0.25 * inner
        np.testing.assert_allclose(errors.max(), abs(next_one - want).max(), rtol=1e-12)
        want, old, new = next_one, new, old
    np.testing.assert_allclose(old.copy_to_host(stream=stream), want, rtol=1e-12)


@vectorize(
    ["float32(float32, float32, float32)", "float64(float64, float64, float64)"], target="cuda"
)
def discriminant(a, b, c):
    return math.sqrt(b**2 - 4 * a * c)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_function_of_elements(dtype):
    rng = np.random.default_rng(0)
    a, b, c = rng.random((3, 10000)).astype(dtype)
    b += 10
    got = discriminant(a, b, c)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.sqrt(b**2 - 4 * a * c), rtol=1e-6)


BODY = np.dtype([("r", "f4", (3,)), ("v", "f4", (3,)), ("m", "f4")], align=True)


@cuda.jit(device=True)
def pull(a, b):
    """The acceleration of a towards b."""
    d = cuda.float32x3(b.r[0] - a.r[0], b.r[1] - a.r[1], b.r[2] - a.r[2])
    inverse = 1 / math.sqrt(d.x * d.x + d.y * d.y + d.z * d.z + np.float32(1e-2))
    f = b.m * inverse * inverse * inverse
    return cuda.float32x3(d.x * f, d.y * f, d.z * f)


@cuda.jit
def kick(bodies, dt):
    i = cuda.grid(1)
    if i < bodies.size:
        total = cuda.float32x3(0, 0, 0)
        for other in bodies:
            f = pull(bodies[i], other)
            total = cuda.float32x3(total.x + f.x, total.y + f.y, total.z + f.z)
        for k, f in enumerate((total.x, total.y, total.z)):
            bodies[i].v[k] += f * dt


def test_bodies_as_records_and_vectors():
    rng = np.random.default_rng(0)
    bodies = np.zeros(100, BODY)
    bodies["r"], bodies["m"] = rng.random((100, 3)), rng.random(100)
    d = (bodies["r"][None] - bodies["r"][:, None]).astype(float)
    force = d * (bodies["m"] / ((d**2).sum(-1) + 1e-2) ** 1.5)[..., None]
    device = cuda.to_device(bodies)
    kick[4, 32](device, np.float32(0.5))
    np.testing.assert_allclose(device.copy_to_host()["v"], force.sum(1) * 0.5, rtol=1e-3, atol=1e-3)


class Colour(Enum):
    RED = 1
    BLUE = 2.5


class Bits(IntEnum):
    LOW = 1
    HIGH = 8


@cuda.jit
def constants(out, bit):
    colour = Colour.RED
    out[0] = colour == Colour.RED and colour is not Colour.BLUE
    out[1] = Colour.BLUE.value
    out[2] = Bits.HIGH | bit
    out[3] = bit == Bits.LOW


@cuda.jit
def operators(x, y, out):
    out[0] = operator.iadd(x, y) + operator.neg(x)
    out[1] = operator.itruediv(x, y)
    out[2] = operator.invert(operator.ixor(x, y))
    out[3] = operator.not_(x)


def test_enumerations_and_operators():
    out = np.zeros(4)
    constants[1, 1](out, Bits.LOW)
    assert out.tolist() == [1, 2.5, 9, 1]
    operators[1, 1](7, 4, out)
    assert out.tolist() == [4, 1.75, ~3, 0]


def test_device_memory_is_not_shared_with_other_processes():
    with pytest.raises(OSError, match="IPC"):
        cuda.to_device(np.zeros(2)).get_ipc_handle()
