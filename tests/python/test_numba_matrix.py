"""Numba kernels on matrices and grids: products, transposes, stencils, shortest paths."""

import numpy as np
import pytest
from numba_face import blocks_for, cuda, float32, float64, small

BLOCKS = [(16, 16), (1, 1), (32, 32), (7, 3), (1, 64), (128, 2)]


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).random(shape).astype(dtype)


# ---- products ----


@cuda.jit
def matmul(a, b, c):
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_matmul(block, order):
    a = np.asarray(random(19, 23), order=order)
    b = np.asarray(random(23, 17, seed=1), order=order)
    c = np.zeros((19, 17), np.float32)
    matmul[blocks_for(c.shape, block), block](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


TILE = 8


@cuda.jit
def matmul_tiled(a, b, c):
    tile_a = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
    tile_b = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = float32(0.0)
    for step in range((a.shape[1] + TILE - 1) // TILE):
        tile_a[ty, tx] = 0
        tile_b[ty, tx] = 0
        if y < a.shape[0] and tx + step * TILE < a.shape[1]:
            tile_a[ty, tx] = a[y, tx + step * TILE]
        if x < b.shape[1] and ty + step * TILE < b.shape[0]:
            tile_b[ty, tx] = b[ty + step * TILE, x]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@pytest.mark.parametrize("m, k, n", [(16, 16, 16), (13, 21, 18), (1, 1, 1), (8, 100, 9)])
def test_matmul_tiled(m, k, n):
    a, b = random(m, k), random(k, n, seed=1)
    c = np.zeros((m, n), np.float32)
    matmul_tiled[blocks_for((n, m), (TILE, TILE)), (TILE, TILE)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@cuda.jit
def transpose(source, target):
    tile = cuda.shared.array((16, 17), dtype=float64)  # a padded row: no bank conflicts
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * 16 + tx
    y = cuda.blockIdx.y * 16 + ty
    rows, columns = source.shape
    for step in range(0, 16, 4):
        if x < columns and y + step < rows:
            tile[ty + step, tx] = source[y + step, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 16 + tx
    y = cuda.blockIdx.x * 16 + ty
    for step in range(0, 16, 4):
        if x < rows and y + step < columns:
            target[y + step, x] = tile[tx, ty + step]


@pytest.mark.parametrize("shape", [(16, 16), (33, 50), (1, 70), (40, 3)])
def test_transpose_through_a_padded_tile(shape):
    source = random(*shape, dtype=np.float64)
    target = np.zeros(shape[::-1])
    transpose[blocks_for(shape[::-1], (16, 16)), (16, 4)](source, target)
    np.testing.assert_array_equal(target, source.T)


@cuda.jit
def spmv(data, indices, indptr, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            total += data[k] * x[indices[k]]
        y[row] = total


@pytest.mark.parametrize("block", [1, 32, 1024])
def test_sparse_matrix_times_vector(block):
    rng = np.random.default_rng(2)
    dense = rng.normal(size=(70, 40)) * (rng.random((70, 40)) < 0.15)
    rows, columns = np.nonzero(dense)
    indptr = np.searchsorted(rows, np.arange(71)).astype(np.int32)
    x, y = rng.normal(size=40), np.zeros(70)
    spmv[blocks_for(70, block), block](dense[rows, columns], columns.astype(np.int32), indptr, x, y)
    np.testing.assert_allclose(y, dense @ x, rtol=1e-12, atol=1e-14)


# ---- stencils ----


@cuda.jit
def stencil_2d(u, out):
    i, j = cuda.grid(2)
    if 1 <= i < u.shape[0] - 1 and 1 <= j < u.shape[1] - 1:
        out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) - u[i, j]


@pytest.mark.parametrize("block", BLOCKS)
def test_stencil_2d(block):
    u = random(37, 21, dtype=np.float64)
    out = np.zeros_like(u)
    stencil_2d[blocks_for(u.shape, block), block](u, out)
    expected = np.zeros_like(u)
    expected[1:-1, 1:-1] = (
        0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) - u[1:-1, 1:-1]
    )
    np.testing.assert_allclose(out, expected, atol=1e-15)


@cuda.jit
def stencil_3d(u, out, periodic):
    i, j, k = cuda.grid(3)
    nx, ny, nz = u.shape
    if i < nx and j < ny and k < nz:
        if periodic:
            # u[i - 1] of i = 0 is the last plane: a negative index counts from the end
            total = u[i - 1, j, k] + u[(i + 1) % nx, j, k]
            total += u[i, j - 1, k] + u[i, (j + 1) % ny, k]
            total += u[i, j, k - 1] + u[i, j, (k + 1) % nz]
            out[i, j, k] = total - 6 * u[i, j, k]
        elif 0 < i < nx - 1 and 0 < j < ny - 1 and 0 < k < nz - 1:
            total = u[i - 1, j, k] + u[i + 1, j, k]
            total += u[i, j - 1, k] + u[i, j + 1, k]
            total += u[i, j, k - 1] + u[i, j, k + 1]
            out[i, j, k] = total - 6 * u[i, j, k]


@pytest.mark.parametrize("block", [(4, 4, 4), (1, 1, 1), (16, 16, 4), (3, 2, 5), (1, 16, 64)])
@pytest.mark.parametrize("periodic", [True, False])
def test_stencil_3d(block, periodic):
    u = random(9, 7, 10, dtype=np.float64)
    out = np.zeros_like(u)
    stencil_3d[blocks_for(u.shape, block), block](u, out, periodic)
    expected = sum(np.roll(u, s, axis) for axis in range(3) for s in (1, -1)) - 6 * u
    if not periodic:
        inner = np.zeros(u.shape, bool)
        inner[1:-1, 1:-1, 1:-1] = True
        expected[~inner] = 0
    np.testing.assert_allclose(out, expected, atol=1e-14)


@cuda.jit
def heat_step(old, new, r):
    i = cuda.grid(1)
    n = old.size
    if i == 0 or i == n - 1:
        new[i] = old[i]
    elif i < n:
        new[i] = old[i] + r * (old[i - 1] - 2.0 * old[i] + old[i + 1])


@pytest.mark.parametrize("block", [1, 64, 1024])
def test_heat_equation_by_launches(block):
    n, steps, r = 65, small(50, 5), 0.4
    u = np.zeros(n)
    u[n // 2] = 100
    a, b = cuda.to_device(u), cuda.device_array(n)
    for _ in range(steps):
        heat_step[blocks_for(n, block), block](a, b, r)
        a, b = b, a
    expected = u.copy()
    for _ in range(steps):
        expected[1:-1] += r * (expected[:-2] - 2 * expected[1:-1] + expected[2:])
    np.testing.assert_allclose(a.copy_to_host(), expected, atol=1e-12)


@cuda.jit
def heat_in_one_block(u, r, steps):
    now = cuda.shared.array(128, float32)
    i = cuda.threadIdx.x
    n = u.size
    if i < n:
        now[i] = u[i]
    cuda.syncthreads()
    for _ in range(steps):
        value = float32(0)
        if i < n:
            value = now[i]
            if 0 < i < n - 1:
                value += r * (now[i - 1] - 2 * now[i] + now[i + 1])
        cuda.syncthreads()
        if i < n:
            now[i] = value
        cuda.syncthreads()
    if i < n:
        u[i] = now[i]


@pytest.mark.parametrize("n, block", [(100, 128), (100, 100), (1, 1), (128, 1024)])
def test_heat_equation_in_shared_memory(n, block):
    steps = small(60, 4)
    u = random(n)
    expected = u.astype(np.float64)
    for _ in range(steps):
        if n > 2:
            expected[1:-1] += 0.25 * (expected[:-2] - 2 * expected[1:-1] + expected[2:])
    heat_in_one_block[1, block](u, np.float32(0.25), steps)
    np.testing.assert_allclose(u, expected, rtol=2e-5)


WEIGHTS = np.array(
    [
        [1, 4, 6, 4, 1],
        [4, 16, 24, 16, 4],
        [6, 24, 36, 24, 6],
        [4, 16, 24, 16, 4],
        [1, 4, 6, 4, 1],
    ],
    np.float32,
)
WEIGHTS /= WEIGHTS.sum()


@cuda.jit
def convolve(image, out):
    weights = cuda.const.array_like(WEIGHTS)
    i, j = cuda.grid(2)
    rows, columns = image.shape
    if i >= rows or j >= columns:
        return
    total = float32(0)
    for di in range(-2, 3):
        for dj in range(-2, 3):
            y, x = i + di, j + dj
            if y < 0 or y >= rows or x < 0 or x >= columns:
                continue
            total += weights[di + 2, dj + 2] * image[y, x]
    out[i, j] = total


@cuda.jit
def convolve_tiled(image, weights, out):
    """Each block holds its tile and a halo in shared memory."""
    tile = cuda.shared.array((12, 20), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x0 = cuda.blockIdx.x * 16 - 2
    y0 = cuda.blockIdx.y * 8 - 2
    rows, columns = image.shape
    for k in range(ty * 16 + tx, 12 * 20, 16 * 8):
        y = y0 + k // 20
        x = x0 + k % 20
        inside = 0 <= y < rows and 0 <= x < columns
        tile[k // 20, k % 20] = image[y, x] if inside else 0
    cuda.syncthreads()
    if x0 + 2 + tx < columns and y0 + 2 + ty < rows:
        total = float32(0)
        for di in range(5):
            for dj in range(5):
                total += weights[di, dj] * tile[ty + di, tx + dj]
        out[y0 + 2 + ty, x0 + 2 + tx] = total


def convolved(image):
    rows, columns = image.shape
    padded = np.pad(image.astype(np.float64), 2)
    return sum(
        WEIGHTS[i, j] * padded[i : i + rows, j : j + columns] for i in range(5) for j in range(5)
    )


@pytest.mark.parametrize("block", [(16, 16), (1, 1), (5, 30)])
def test_convolution(block):
    image = random(23, 31)
    out = np.zeros_like(image)
    convolve[blocks_for(image.shape, block), block](image, out)
    np.testing.assert_allclose(out, convolved(image), rtol=1e-5)


@pytest.mark.parametrize("shape", [(8, 16), (23, 31), (3, 100), (1, 1)])
def test_convolution_with_a_halo(shape):
    image = random(*shape)
    out = np.zeros_like(image)
    convolve_tiled[blocks_for(shape[::-1], (16, 8)), (16, 8)](image, WEIGHTS, out)
    np.testing.assert_allclose(out, convolved(image), rtol=1e-5)


@cuda.jit
def life(cells, out):
    row, column = cuda.grid(2)
    rows, columns = cells.shape
    if row < rows and column < columns:
        neighbours = 0
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy != 0 or dx != 0:
                    neighbours += cells[(row + dy) % rows, (column + dx) % columns]
        alive = cells[row, column] == 1
        out[row, column] = 1 if neighbours == 3 or (alive and neighbours == 2) else 0


@pytest.mark.parametrize("block", [(8, 8), (1, 1), (13, 4), (1, 1024)])
def test_game_of_life(block):
    cells = np.random.default_rng(6).integers(0, 2, (20, 27)).astype(np.uint8)
    a, b = cuda.to_device(cells), cuda.to_device(cells)
    expected = cells.astype(int)
    for _ in range(small(10, 2)):
        life[blocks_for(cells.shape, block), block](a, b)
        a, b = b, a
        n = sum(
            np.roll(expected, (i, j), (0, 1))
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        expected = (n == 3) | ((expected == 1) & (n == 2))
        expected = expected.astype(int)
    np.testing.assert_array_equal(a.copy_to_host(), expected)


# ---- graphs ----


@cuda.jit
def relax(distance, k):
    i, j = cuda.grid(2)
    n = distance.shape[0]
    if i < n and j < n:
        through = distance[i, k] + distance[k, j]
        if through < distance[i, j]:
            distance[i, j] = through


@pytest.mark.parametrize("block", [(16, 16), (1, 1), (6, 11)])
def test_floyd_warshall(block):
    n = small(24, 9)
    rng = np.random.default_rng(9)
    weight = np.where(rng.random((n, n)) < 0.2, rng.integers(1, 50, (n, n)), 10**6)
    np.fill_diagonal(weight, 0)
    weight = weight.astype(np.int64)
    device = cuda.to_device(weight)
    for k in range(n):
        relax[blocks_for((n, n), block), block](device, k)
    expected = weight.copy()
    for k in range(n):
        expected = np.minimum(expected, expected[:, k : k + 1] + expected[k : k + 1, :])
    np.testing.assert_array_equal(device.copy_to_host(), expected)


@cuda.jit
def relax_in_one_block(distance):
    """All of Floyd-Warshall by one block: a barrier after every k."""
    n = distance.shape[0]
    for k in range(n):
        for i in range(cuda.threadIdx.y, n, cuda.blockDim.y):
            for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                distance[i, j] = min(distance[i, j], distance[i, k] + distance[k, j])
        cuda.syncthreads()


@pytest.mark.parametrize("block", [(8, 8), (1, 1), (32, 32), (3, 5)])
def test_floyd_warshall_in_one_block(block):
    n = small(20, 8)
    weight = random(n, n, seed=4, dtype=np.float64) ** 4
    np.fill_diagonal(weight, 0)
    expected = weight.copy()
    for k in range(n):
        expected = np.minimum(expected, expected[:, k : k + 1] + expected[k : k + 1, :])
    relax_in_one_block[1, block](weight)
    np.testing.assert_allclose(weight, expected, rtol=1e-13)


# ---- more dimensions ----


@cuda.jit
def sum_of_axes(a, out):
    """Indexing with tuples and of sub-arrays."""
    i = cuda.grid(1)
    if i < a.shape[0]:
        plane = a[i]
        total = 0.0
        for j in range(plane.shape[0]):
            row = plane[j]
            for k in range(row.shape[0]):
                where = (j, k)
                total += row[k] * plane[where]
        out[i, 0] = total
        out[i, 1] = a.ndim
        out[i, -1] = a[i, 1:, ::2].size


def test_sub_arrays_and_slices():
    a = random(7, 5, 6, dtype=np.float64)
    out = np.zeros((7, 3))
    sum_of_axes[1, 8](a, out)
    np.testing.assert_allclose(out[:, 0], (a**2).sum((1, 2)), rtol=1e-13)
    assert (out[:, 1] == 3).all() and (out[:, 2] == 12).all()
