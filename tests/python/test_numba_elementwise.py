"""Numba kernels where every thread works alone: vectors, fractals, options, random walks."""

import math

import numpy as np
import pytest
from numba_face import blocks_for, cuda, float32, small, uint8

BLOCKS_1D = [1, 33, 256, 1024]
BLOCKS_2D = [(1, 1), (16, 16), (7, 5), (32, 32), (1024, 1)]


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).random(shape).astype(dtype)


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@pytest.mark.parametrize("block", BLOCKS_1D)
@pytest.mark.parametrize("n", [1, 31, 1000])
def test_vector_add(block, n):
    a, b = random(n), random(n, seed=1)
    c = np.zeros(n, np.float32)
    add[blocks_for(n, block), block](a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_vector_add_on_device_arrays():
    n = small(100_003, 1003)
    a, b = random(n), random(n, seed=1)
    a_dev, b_dev = cuda.to_device(a), cuda.to_device(b)
    c_dev = cuda.device_array(n, dtype=np.float32)
    add[blocks_for(n, 128), 128](a_dev, b_dev, c_dev)
    np.testing.assert_array_equal(c_dev.copy_to_host(), a + b)


def test_vector_add_on_strided_arrays():
    a, b = random(40, 3), random(3, 80, seed=1)
    c_dev = cuda.to_device(np.zeros((40, 5), np.float32))
    add[2, 32](cuda.to_device(a)[:, 1], cuda.to_device(b)[2, ::2], c_dev[:, 3])
    expected = np.zeros((40, 5), np.float32)
    expected[:, 3] = a[:, 1] + b[2, ::2]
    np.testing.assert_array_equal(c_dev.copy_to_host(), expected)


def test_forall():
    a, b = random(777), random(777, seed=1)
    c = np.zeros(777, np.float32)
    add.forall(777)(a, b, c)
    np.testing.assert_array_equal(c, a + b)


@cuda.jit
def saxpy(a, x, y, out):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, x.shape[0], stride):
        out[i] = a * x[i] + y[i]


@pytest.mark.parametrize("grid, block", [(1, 1), (3, 7), (2, 1024), (64, 64)])
def test_saxpy_in_a_grid_stride_loop(grid, block):
    n = 1500
    x, y = random(n), random(n, seed=1)
    out = np.zeros(n, np.float32)
    saxpy[grid, block](np.float32(2.5), x, y, out)
    np.testing.assert_allclose(out, np.float32(2.5) * x + y, rtol=2e-7)


@cuda.jit
def where_am_i(out):
    x, y, z = cuda.grid(3)
    if x < out.shape[0] and y < out.shape[1] and z < out.shape[2]:
        tx = cuda.threadIdx.x
        width, height = cuda.blockDim.x, cuda.blockDim.y
        flat = (cuda.threadIdx.z * height + cuda.threadIdx.y) * width + tx
        block = (cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x
        out[x, y, z, 0] = flat
        out[x, y, z, 1] = block + cuda.blockIdx.x


@pytest.mark.parametrize("block", [(1, 1, 1), (2, 3, 4), (5, 1, 2), (8, 8, 16), (1, 16, 64)])
def test_thread_and_block_indices_in_three_dimensions(block):
    shape = (9, 6, 7)
    grid = blocks_for(shape, block)
    out = np.full((*shape, 2), -1, np.int32)
    where_am_i[grid, block](out)
    for x, y, z in np.ndindex(*shape):
        b, t = zip(
            *(divmod(v, size) for v, size in zip((x, y, z), block, strict=True)), strict=True
        )
        flat = (t[2] * block[1] + t[1]) * block[0] + t[0]
        number = (b[2] * grid[1] + b[1]) * grid[0] + b[0]
        assert tuple(out[x, y, z]) == (flat, number)


# ---- fractals ----


@cuda.jit(device=True)
def escape_time(x, y, limit):
    c = complex(x, y)
    z = 0.0j
    for i in range(limit):
        z = z * z + c
        if (z.real * z.real + z.imag * z.imag) >= 4:
            return i
    return limit


@cuda.jit
def mandelbrot(min_x, max_x, min_y, max_y, image, limit):
    height = image.shape[0]
    width = image.shape[1]
    pixel_size_x = (max_x - min_x) / width
    pixel_size_y = (max_y - min_y) / height
    start_x, start_y = cuda.grid(2)
    grid_x = cuda.gridDim.x * cuda.blockDim.x
    grid_y = cuda.gridDim.y * cuda.blockDim.y
    for x in range(start_x, width, grid_x):
        real = min_x + x * pixel_size_x
        for y in range(start_y, height, grid_y):
            imag = min_y + y * pixel_size_y
            image[y, x] = escape_time(real, imag, limit)


@pytest.mark.parametrize("block", BLOCKS_2D)
def test_mandelbrot(block):
    width, height, limit = small(60, 15), small(45, 11), 30
    image = np.zeros((height, width), np.uint8)
    mandelbrot[(2, 3), block](-2.0, 1.0, -1.25, 1.25, image, limit)
    y, x = np.mgrid[:height, :width]
    c = (-2.0 + x * (3.0 / width)) + 1j * (-1.25 + y * (2.5 / height))
    z, expected = np.zeros_like(c), np.full(c.shape, limit)
    for i in range(limit):
        inside = expected == limit
        z[inside] = z[inside] ** 2 + c[inside]
        expected[inside & (np.abs(z) >= 2)] = i
    assert np.mean(image != expected) < 0.003  # fused multiply-add may move a pixel of the border


@cuda.jit
def julia(image, c, limit):
    i, j = cuda.grid(2)
    rows, columns = image.shape
    if i >= rows or j >= columns:
        return
    z = complex(3.0 * j / columns - 1.5, 3.0 * i / rows - 1.5)
    n = 0
    while abs(z) < 2.0 and n < limit:
        z = z**2 + c
        n += 1
    image[i, j] = n


@pytest.mark.parametrize("block", [(8, 8), (1, 1), (3, 11), (32, 32)])
def test_julia(block):
    shape, limit, c = (small(40, 13), small(50, 17)), 40, -0.8 + 0.156j
    image = np.zeros(shape, np.int32)
    julia[blocks_for(shape, block), block](image, c, limit)
    expected = np.zeros(shape, np.int32)
    for i, j in np.ndindex(*shape):
        z, n = complex(3.0 * j / shape[1] - 1.5, 3.0 * i / shape[0] - 1.5), 0
        while abs(z) < 2.0 and n < limit:
            z, n = z * z + c, n + 1
        expected[i, j] = n
    assert np.mean(image != expected) < 0.01


# ---- Black-Scholes ----

RISK_FREE, VOLATILITY = 0.02, 0.30


@cuda.jit(device=True)
def cumulative_normal(d):
    a1 = 0.31938153
    a2 = -0.356563782
    a3 = 1.781477937
    a4 = -1.821255978
    a5 = 1.330274429
    k = 1.0 / (1.0 + 0.2316419 * math.fabs(d))
    polynomial = k * (a1 + k * (a2 + k * (a3 + k * (a4 + k * a5))))
    value = 0.39894228040143267793994605993438 * math.exp(-0.5 * d * d) * polynomial
    if d > 0:
        value = 1.0 - value
    return value


@cuda.jit
def black_scholes(call, put, price, strike, years, rate, volatility):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if i >= price.shape[0]:
        return
    root = math.sqrt(years[i])
    d1 = math.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]
    d1 /= volatility * root
    d2 = d1 - volatility * root
    normal1 = cumulative_normal(d1)
    normal2 = cumulative_normal(d2)
    discount = math.exp((-1.0 * rate) * years[i])
    call[i] = price[i] * normal1 - strike[i] * discount * normal2
    put[i] = strike[i] * discount * (1.0 - normal2) - price[i] * (1.0 - normal1)


def exact_normal(d):
    return 0.5 * np.array([math.erfc(-v / math.sqrt(2)) for v in d])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", BLOCKS_1D)
def test_black_scholes(block, dtype):
    n = 500
    rng = np.random.default_rng(5)
    price = rng.uniform(5, 30, n).astype(dtype)
    strike = rng.uniform(1, 100, n).astype(dtype)
    years = rng.uniform(0.25, 10, n).astype(dtype)
    call, put = np.zeros(n, dtype), np.zeros(n, dtype)
    black_scholes[blocks_for(n, block), block](
        call, put, price, strike, years, RISK_FREE, VOLATILITY
    )
    s, k, t = (v.astype(np.float64) for v in (price, strike, years))
    d1 = (np.log(s / k) + (RISK_FREE + VOLATILITY**2 / 2) * t) / (VOLATILITY * np.sqrt(t))
    d2 = d1 - VOLATILITY * np.sqrt(t)
    discount = np.exp(-RISK_FREE * t)
    expected = s * exact_normal(d1) - k * discount * exact_normal(d2)
    np.testing.assert_allclose(call, expected, atol=2e-5)
    np.testing.assert_allclose(put, expected - s + k * discount, atol=2e-5)


# ---- random numbers ----


@cuda.jit
def monte_carlo_pi(seeds, tries, hits):
    i = cuda.grid(1)
    if i < seeds.size:
        state = seeds[i]
        count = 0
        for _ in range(tries):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            x = (state >> 8) / 16777216.0
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            y = (state >> 8) / 16777216.0
            if x * x + y * y <= 1.0:
                count += 1
        hits[i] = count


@pytest.mark.parametrize("block", BLOCKS_1D)
def test_monte_carlo_pi(block):
    n, tries = small(300, 40), small(100, 20)
    seeds = np.arange(n, dtype=np.int64) * 7919 + 12345
    hits = np.zeros(n, np.int32)
    monte_carlo_pi[blocks_for(n, block), block](seeds, tries, hits)
    state, expected = seeds.copy(), np.zeros(n, np.int32)
    for _ in range(tries):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        x = (state >> 8) / 2**24
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        y = (state >> 8) / 2**24
        expected += x * x + y * y <= 1
    assert np.abs(hits - expected).sum() <= 1  # a point on the circle, with fused multiply-add
    assert abs(4 * hits.sum() / (n * tries) - math.pi) < small(0.05, 0.3)


# ---- divergence ----


@cuda.jit
def collatz(first, steps, highest):
    i = cuda.grid(1)
    if i >= steps.size:
        return
    n = first + i
    count = 0
    top = n
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        top = max(top, n)
        count += 1
    steps[i] = count
    highest[i] = top


@pytest.mark.parametrize("block", BLOCKS_1D)
def test_collatz(block):
    count = small(400, 60)
    steps, highest = np.zeros(count, np.int32), np.zeros(count, np.int64)
    collatz[blocks_for(count, block), block](1, steps, highest)
    for i in range(count):
        n, expected, top = i + 1, 0, i + 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            top, expected = max(top, n), expected + 1
        assert (steps[i], highest[i]) == (expected, top)


@cuda.jit
def count_divisors_and_primes(limit, divisors, is_prime):
    i = cuda.grid(1)
    if i >= limit:
        return
    if i < 2:
        divisors[i] = i
        is_prime[i] = False
        return
    d = 1
    total = 0
    while d * d <= i:
        if i % d == 0:
            total += 1 if d * d == i else 2
        d += 1
    divisors[i] = total
    for d in range(2, i):
        if d * d > i:
            is_prime[i] = True
            break
        if i % d == 0:
            is_prime[i] = False
            break
    else:
        is_prime[i] = True


@pytest.mark.parametrize("block", [1, 100, 1024])
def test_divisors_and_primes(block):
    n = small(500, 80)
    divisors, is_prime = np.zeros(n, np.int32), np.zeros(n, np.bool_)
    count_divisors_and_primes[blocks_for(n, block), block](n, divisors, is_prime)
    expected = [sum(i % d == 0 for d in range(1, i + 1)) for i in range(n)]
    assert divisors.tolist() == expected
    assert is_prime.tolist() == [count == 2 for count in expected]


@cuda.jit
def gcd_and_digits(a, b, gcd, digits):
    i = cuda.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        while y:
            x, y = y, x % y
        gcd[i] = x
        n = a[i]
        total = 0
        while True:
            total += n % 10
            n //= 10
            if n == 0:
                break
        digits[i] = total


def test_gcd_and_sum_of_digits():
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 10**6, (2, 200))
    gcd, digits = np.zeros(200, np.int64), np.zeros(200, np.int64)
    gcd_and_digits[7, 32](a, b, gcd, digits)
    np.testing.assert_array_equal(gcd, np.gcd(a, b))
    assert digits.tolist() == [sum(map(int, str(v))) for v in a]


# ---- other element types ----


@cuda.jit
def to_grey(image, grey):
    y, x = cuda.grid(2)
    if y < image.shape[0] and x < image.shape[1]:
        r = image[y, x, 0] * float32(0.299)
        g = image[y, x, 1] * float32(0.587)
        b = image[y, x, 2] * float32(0.114)
        grey[y, x] = uint8(r + g + b)


@pytest.mark.parametrize("block", [(16, 16), (1, 3)])
def test_grey_image(block):
    image = np.random.default_rng(8).integers(0, 256, (19, 23, 3)).astype(np.uint8)
    grey = np.zeros((19, 23), np.uint8)
    to_grey[blocks_for(grey.shape, block), block](image, grey)
    expected = image @ np.array([0.299, 0.587, 0.114])
    assert np.all(np.abs(grey - np.floor(expected)) <= 1)
    assert np.mean(grey != np.floor(expected)) < 0.01


@cuda.jit
def rotate(points, angle, out):
    i = cuda.grid(1)
    if i < points.size:
        out[i] = points[i] * complex(math.cos(angle), math.sin(angle))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arrays(dtype):
    points = (random(50) + 1j * random(50, seed=1)).astype(dtype)
    out = np.zeros(50, dtype)
    rotate[2, 32](points, 0.75, out)
    np.testing.assert_allclose(out, points * np.exp(0.75j), rtol=1e-6)


@cuda.jit
def times_own_conjugate(points, out):
    i = cuda.grid(1)
    if i < points.size:
        out[i] = points[i] * points[i].conjugate() + 2.0 * points[i].imag.conjugate()


def test_conjugate():
    points = random(20) + 1j * random(20, seed=1)
    out = np.zeros(20, np.complex64)
    times_own_conjugate[1, 32](points, out)
    np.testing.assert_allclose(out, points * points.conj() + 2 * points.imag, rtol=1e-6)


@cuda.jit
def clamp_and_flag(values, low, high, out, outside):
    i = cuda.grid(1)
    if i < values.size:
        v = values[i]
        out[i] = min(max(v, low), high)
        outside[i] = not low <= v <= high


def test_clamp_and_flag():
    values = np.random.default_rng(4).normal(size=100)
    out, outside = np.zeros(100), np.zeros(100, np.bool_)
    clamp_and_flag[4, 32](values, -0.5, 0.5, out, outside)
    np.testing.assert_array_equal(out, np.clip(values, -0.5, 0.5))
    np.testing.assert_array_equal(outside, np.abs(values) > 0.5)


# ---- a name used again ----


@cuda.jit
def names_used_again(values, out):
    """Each assignment that starts anew has a type of its own: x is an index, then a number."""
    x, y = cuda.grid(2)
    if x < out.shape[0] and y < out.shape[1]:
        i, j = x, y
        x = x / 4
        y = 0.5 * y
        x += 1
        result = x * 100 + y
        x = values[i]
        for k in range(3):
            x += 0.25
        k = k * 0.5
        y = 0
        while y < 2:
            y += 1
        out[i, j] = result + x + k + values[y]


def test_names_used_again():
    values = np.arange(5.0) ** 2
    out = np.zeros((5, 4))
    names_used_again[1, (5, 4)](values, out)
    i, j = np.mgrid[:5, :4]
    expected = (i / 4 + 1) * 100 + 0.5 * j + values[i] + 0.75 + 1 + values[2]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def assignments_that_meet(values, flag, out):
    """An index in one branch and a number in the other meet as a number."""
    i = cuda.grid(1)
    x = i
    if flag:
        x = values[i] / 2
    out[i, 0] = x / 2
    x = i
    for _ in range(2):
        x = x + values[i]
    out[i, 1] = x


@pytest.mark.parametrize("flag", [True, False])
def test_assignments_that_meet(flag):
    values = np.arange(8) + 0.5
    out = np.zeros((8, 2))
    assignments_that_meet[1, 8](values, flag, out)
    i = np.arange(8)
    np.testing.assert_array_equal(out[:, 0], (values / 2 if flag else i) / 2)
    np.testing.assert_array_equal(out[:, 1], i + 2 * values)


@cuda.jit
def values_after_loops(out):
    i = cuda.grid(1)
    row = i
    for k in range(5):
        if k == i:
            found = k * 10
            break
    else:
        found = -1
    while True:
        if i > 2:
            y = 7
            break
        i += 1
    n = 0
    while n < 3:
        z = n
        n += 1
    for a in range(2):
        for b in range(a + 2):
            last = b
    out[row, 0] = found
    out[row, 1] = y
    out[row, 2] = z
    out[row, 3] = k
    out[row, 4] = last
    out[row, 5] = a + b


def test_variables_of_loops_after_them():
    out = np.zeros((7, 6), np.int32)
    values_after_loops[1, 7](out)
    expected = [[k * 10 if k < 5 else -1, 7, 2, min(k, 4), 2, 3] for k in range(7)]
    assert out.tolist() == expected
