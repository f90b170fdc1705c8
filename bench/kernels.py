"""Kernels of a CUDA course: `kernels.py LIBRARY` prints JSON, seconds of several runs of each.

    simt run bench/kernels.py simt      # numba.cuda's face, one thread an element, on the CPU
    python bench/kernels.py numba       # Numba's njit(parallel=True), written for a CPU

Every kernel's result is checked against the same independent reference.
"""

import json
import math
import sys
import time

import numpy as np
from turns import slices, turn

RUNS = 7
f32 = np.float32
RNG = np.random.default_rng(1)


def measure(run, check):
    run()
    check()
    out = []
    for _ in range(slices(RUNS)[0]):
        turn(run)
        start = time.perf_counter()
        run()
        out.append(time.perf_counter() - start)
    return out


def close(got, want, tolerance=1e-4):
    assert np.allclose(got, want, rtol=tolerance, atol=tolerance), "wrong result"


def problems():
    """The data and the references."""
    n = 1_000_000
    matrix = RNG.random((512, 512), dtype=f32)
    grid = RNG.random((2048, 2048), dtype=f32)
    inner = f32(0.2) * (
        grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
    )
    data = RNG.integers(0, 256, 10_000_000).astype(np.uint8)
    return {
        "matrix": matrix,
        "product": matrix @ matrix,
        "grid": grid,
        "stencil": inner,
        "data": data,
        "histogram": np.bincount(data, minlength=256),
        "price": RNG.uniform(5, 30, n).astype(f32),
        "strike": RNG.uniform(1, 100, n).astype(f32),
        "years": RNG.uniform(0.25, 10, n).astype(f32),
        "bodies": RNG.random((3, 4096), dtype=f32),
    }


def parity(p):
    """Call minus put: price - strike * exp(-rate * years)."""
    return p["price"] - p["strike"] * np.exp(f32(-0.02) * p["years"])


def forces_on_first(p):
    d = p["bodies"].astype(float) - p["bodies"][:, :1]
    return (d / (np.sum(d * d, axis=0) + 1e-3) ** 1.5).sum(axis=1)


# ---- one thread an element, as on a GPU


def with_cuda(p):
    from numba import cuda, float32, int32

    tile = 16

    @cuda.jit
    def mandelbrot(image, iterations):
        column, row = cuda.grid(2)
        if row < image.shape[0] and column < image.shape[1]:
            cr = float32(-2) + float32(3) * float32(column) / float32(image.shape[1])
            ci = float32(-1.5) + float32(3) * float32(row) / float32(image.shape[0])
            zr = zi = float32(0)
            k = 0
            while k < iterations and zr * zr + zi * zi < float32(4):
                zr, zi = zr * zr - zi * zi + cr, float32(2) * zr * zi + ci
                k += 1
            image[row, column] = k

    @cuda.jit
    def matmul(a, b, c):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), float32)
        column, row = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for k in range(0, a.shape[1], tile):
            tile_a[ty, tx] = a[row, k + tx]
            tile_b[ty, tx] = b[k + ty, column]
            cuda.syncthreads()
            for j in range(tile):
                total += tile_a[ty, j] * tile_b[j, tx]
            cuda.syncthreads()
        c[row, column] = total

    @cuda.jit
    def black_scholes(call, put, price, strike, years, rate, volatility):
        i = cuda.grid(1)
        if i < price.size:
            root = volatility * math.sqrt(years[i])
            half = float32(0.5)
            d1 = math.log(price[i] / strike[i])
            d1 = (d1 + (rate + half * volatility * volatility) * years[i]) / root
            n1 = half + half * math.erf(d1 * float32(0.70710678))
            n2 = half + half * math.erf((d1 - root) * float32(0.70710678))
            later = strike[i] * math.exp(-rate * years[i])
            call[i] = price[i] * n1 - later * n2
            put[i] = later * (float32(1) - n2) - price[i] * (float32(1) - n1)

    @cuda.jit
    def nbody(x, y, z, force):
        i = cuda.grid(1)
        if i < x.size:
            fx = fy = fz = float32(0)
            for j in range(x.size):
                dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
                r = float32(1) / math.sqrt(dx * dx + dy * dy + dz * dz + float32(1e-3))
                r = r * r * r
                fx += dx * r
                fy += dy * r
                fz += dz * r
            force[0, i] = fx
            force[1, i] = fy
            force[2, i] = fz

    @cuda.jit
    def stencil(a, out):
        j, i = cuda.grid(2)
        if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
            total = a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            out[i, j] = float32(0.2) * total

    @cuda.jit
    def histogram(data, bins):
        own = cuda.shared.array(256, int32)
        t = cuda.threadIdx.x
        own[t] = 0
        cuda.syncthreads()
        for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
            cuda.atomic.add(own, data[i], 1)
        cuda.syncthreads()
        cuda.atomic.add(bins, t, own[t])

    device = {name: cuda.to_device(a) for name, a in p.items()}
    image = cuda.device_array((1024, 1024), np.int32)
    product = cuda.device_array((512, 512), f32)
    call, put = cuda.device_array(1_000_000, f32), cuda.device_array(1_000_000, f32)
    market = [device[name] for name in ("price", "strike", "years")]
    axes = [cuda.to_device(np.ascontiguousarray(a)) for a in p["bodies"]]
    force = cuda.device_array((3, 4096), f32)
    smooth = cuda.to_device(np.zeros_like(p["grid"]))
    bins = cuda.to_device(np.zeros(256, np.int32))

    def count():
        bins.copy_to_device(np.zeros(256, np.int32))
        histogram[256, 256](device["data"], bins)

    return {
        "mandelbrot": (lambda: mandelbrot[(32, 128), (32, 8)](image, 200), image),
        "tiled matmul": (
            lambda: matmul[(32, 32), (tile, tile)](device["matrix"], device["matrix"], product),
            product,
        ),
        "Black-Scholes": (
            lambda: black_scholes[3907, 256](call, put, *market, f32(0.02), f32(0.3)),
            (call, put),
        ),
        "n-body": (lambda: nbody[32, 128](*axes, force), force),
        "stencil": (lambda: stencil[(64, 256), (32, 8)](device["grid"], smooth), smooth),
        "histogram": (count, bins),
    }


# ---- for a CPU


def with_njit(p):
    from numba import njit, prange

    @njit(parallel=True)
    def mandelbrot(image, iterations):
        for row in prange(image.shape[0]):
            for column in range(image.shape[1]):
                cr = f32(-2) + f32(3) * f32(column) / f32(image.shape[1])
                ci = f32(-1.5) + f32(3) * f32(row) / f32(image.shape[0])
                zr = zi = f32(0)
                k = 0
                while k < iterations and zr * zr + zi * zi < f32(4):
                    zr, zi = zr * zr - zi * zi + cr, f32(2) * zr * zi + ci
                    k += 1
                image[row, column] = k

    @njit(parallel=True)
    def matmul(a, b, c):
        tiles = a.shape[0] // 16
        for block in prange(tiles * tiles):
            i0, j0 = block // tiles * 16, block % tiles * 16
            total = np.zeros((16, 16), f32)
            for k0 in range(0, a.shape[1], 16):
                for i in range(16):
                    for k in range(16):
                        x = a[i0 + i, k0 + k]
                        for j in range(16):
                            total[i, j] += x * b[k0 + k, j0 + j]
            c[i0 : i0 + 16, j0 : j0 + 16] = total

    @njit(parallel=True)
    def black_scholes(call, put, price, strike, years, rate, volatility):
        half = f32(0.5)
        for i in prange(price.size):
            root = volatility * math.sqrt(years[i])
            d1 = math.log(price[i] / strike[i])
            d1 = (d1 + (rate + half * volatility * volatility) * years[i]) / root
            n1 = half + half * math.erf(d1 * f32(0.70710678))
            n2 = half + half * math.erf((d1 - root) * f32(0.70710678))
            later = strike[i] * math.exp(-rate * years[i])
            call[i] = price[i] * n1 - later * n2
            put[i] = later * (f32(1) - n2) - price[i] * (f32(1) - n1)

    @njit(parallel=True)
    def nbody(x, y, z, force):
        for i in prange(x.size):
            fx = fy = fz = f32(0)
            for j in range(x.size):
                dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
                r = f32(1) / math.sqrt(dx * dx + dy * dy + dz * dz + f32(1e-3))
                r = r * r * r
                fx += dx * r
                fy += dy * r
                fz += dz * r
            force[0, i] = fx
            force[1, i] = fy
            force[2, i] = fz

    @njit(parallel=True)
    def stencil(a, out):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                total = a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
                out[i, j] = f32(0.2) * total

    @njit(parallel=True)
    def histogram(data, own, bins):
        parts = own.shape[0]
        for part in prange(parts):
            own[part] = 0
            for i in range(part * data.size // parts, (part + 1) * data.size // parts):
                own[part, data[i]] += 1
        for part in range(parts):
            bins += own[part]

    image = np.zeros((1024, 1024), np.int32)
    product = np.zeros((512, 512), f32)
    call, put = np.zeros(1_000_000, f32), np.zeros(1_000_000, f32)
    market = [p[name] for name in ("price", "strike", "years")]
    axes = [np.ascontiguousarray(a) for a in p["bodies"]]
    force = np.zeros((3, 4096), f32)
    smooth = np.zeros_like(p["grid"])
    own, bins = np.zeros((16, 256), np.int64), np.zeros(256, np.int64)

    def count():
        bins[:] = 0
        histogram(p["data"], own, bins)

    return {
        "mandelbrot": (lambda: mandelbrot(image, 200), image),
        "tiled matmul": (lambda: matmul(p["matrix"], p["matrix"], product), product),
        "Black-Scholes": (
            lambda: black_scholes(call, put, *market, f32(0.02), f32(0.3)),
            (call, put),
        ),
        "n-body": (lambda: nbody(*axes, force), force),
        "stencil": (lambda: stencil(p["grid"], smooth), smooth),
        "histogram": (count, bins),
    }


def host(a):
    return a.copy_to_host() if hasattr(a, "copy_to_host") else a


def check(name, p, result):
    if name == "mandelbrot":
        image = host(result)
        assert image.max() == 200 and 30_000_000 < image.sum() < 50_000_000
    elif name == "tiled matmul":
        close(host(result), p["product"])
    elif name == "Black-Scholes":
        close(host(result[0]) - host(result[1]), parity(p), 1e-3)
    elif name == "n-body":
        close(host(result)[:, 0], forces_on_first(p), 1e-2)
    elif name == "stencil":
        close(host(result)[1:-1, 1:-1], p["stencil"])
    else:
        assert np.array_equal(host(result), p["histogram"])


def main(library):
    p = problems()
    kernels = with_cuda(p) if library == "simt" else with_njit(p)
    seconds = {}
    for name, (run, result) in kernels.items():
        seconds[name] = measure(run, lambda n=name, r=result: check(n, p, r))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1])
