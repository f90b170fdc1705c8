# ruff: noqa: E501 (lines of another language)
"""Kernels in CUDA C in the manner of tutorials: name -> (text, a function that launches it and
returns (got, expected)). References are NumPy."""

import numpy as np

PROGRAMS = {}


def program(text):
    def keep(check):
        PROGRAMS[check.__name__] = (text, check)
        return check

    return keep


def rng():
    return np.random.default_rng(7)


@program(
    r"""
    extern "C" __global__ void saxpy(int n, float a, const float *__restrict__ x, float *y) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            y[i] = a * x[i] + y[i];
    }
    """
)
def saxpy(cp, kernel):
    x, y = rng().random((2, 1000), dtype=np.float32)
    out = cp.asarray(y)
    kernel((3,), (64,), (1000, np.float32(2), cp.asarray(x), out))
    return out, np.float32(2) * x + y


@program(
    r"""
    #define TILE 16
    __global__ void matmul(const float *A, const float *B, float *C, int n) {
        __shared__ float a[TILE][TILE], b[TILE][TILE + 1];
        int tx = threadIdx.x, ty = threadIdx.y;
        int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
        float sum = 0.0f;
        for (int t = 0; t < (n + TILE - 1) / TILE; ++t) {
            int ac = t * TILE + tx, br = t * TILE + ty;
            a[ty][tx] = row < n && ac < n ? A[row * n + ac] : 0.0f;
            b[ty][tx] = br < n && col < n ? B[br * n + col] : 0.0f;
            __syncthreads();
            for (int k = 0; k < TILE; k++) sum += a[ty][k] * b[k][tx];
            __syncthreads();
        }
        if (row < n && col < n) C[row * n + col] = sum;
    }
    """
)
def matmul(cp, kernel):
    n = 50
    a, b = rng().integers(-4, 5, (2, n, n)).astype(np.float32)
    c = cp.empty((n, n), dtype=cp.float32)
    kernel((4, 4), (16, 16), (cp.asarray(a), cp.asarray(b), c, n))
    return c, a @ b


@program(
    r"""
    extern "C" __global__ void reduce(const float *in, float *out, unsigned int n) {
        extern __shared__ float cache[];
        unsigned int tid = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + tid;
        float mine = i < n ? in[i] : 0;
        if (i + blockDim.x < n) mine += in[i + blockDim.x];
        cache[tid] = mine;
        __syncthreads();
        for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
            if (tid < s) cache[tid] += cache[tid + s];
            __syncthreads();
        }
        if (tid == 0) out[blockIdx.x] = cache[0];
    }
    """
)
def reduce(cp, kernel):
    x = rng().integers(0, 9, 1000).astype(np.float32)
    out = cp.zeros(4, dtype=cp.float32)
    kernel((4,), (128,), (cp.asarray(x), out, np.uint32(1000)), shared_mem=128 * 4)
    return out.sum(), x.sum()


@program(
    r"""
    __inline__ __device__ int warp_sum(int v) {
        for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
        return v;
    }
    __device__ int block_sum(int v) {
        static_assert(sizeof(int) == 4, "int");
        __shared__ int parts[32];
        int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
        v = warp_sum(v);
        if (lane == 0) parts[warp] = v;
        __syncthreads();
        v = threadIdx.x < blockDim.x / warpSize ? parts[lane] : 0;
        return warp == 0 ? warp_sum(v) : 0;
    }
    __global__ void total(const int *x, int *sum, int n) {
        int v = 0;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
        v = block_sum(v);
        if (threadIdx.x == 0) atomicAdd(sum, v);
    }
    """
)
def total(cp, kernel):
    x = rng().integers(-50, 90, 5000).astype(np.int32)
    out = cp.zeros(1, dtype=cp.int32)
    kernel((5,), (256,), (cp.asarray(x), out, 5000))
    return out, [x.sum()]


@program(
    r"""
    __global__ void scan(const int *in, int *out, int n) {
        extern __shared__ int temp[];
        int id = threadIdx.x, pout = 0, pin = 1;
        temp[id] = id < n ? in[id] : 0;
        __syncthreads();
        for (int offset = 1; offset < n; offset <<= 1) {
            pout = 1 - pout;
            pin = 1 - pout;
            if (id >= offset) temp[pout * n + id] = temp[pin * n + id] + temp[pin * n + id - offset];
            else temp[pout * n + id] = temp[pin * n + id];
            __syncthreads();
        }
        out[id] = temp[pout * n + id];
    }
    """
)
def scan(cp, kernel):
    x = rng().integers(-5, 9, 256).astype(np.int32)
    out = cp.zeros(256, dtype=cp.int32)
    kernel((1,), (256,), (cp.asarray(x), out, 256), shared_mem=2 * 256 * 4)
    return out, np.cumsum(x)


@program(
    r"""
    __global__ void histogram(const unsigned char *data, unsigned int *bins, int n) {
        __shared__ unsigned int local[256];
        for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
            atomicAdd(&local[data[i]], 1u);
        __syncthreads();
        for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(bins + b, local[b]);
    }
    """
)
def histogram(cp, kernel):
    x = rng().integers(0, 256, 4000).astype(np.uint8)
    out = cp.zeros(256, dtype=cp.uint32)
    kernel((3,), (96,), (cp.asarray(x), out, 4000))
    return out, np.bincount(x, minlength=256)


@program(
    r"""
    __global__ void transpose(const double *in, double *out, int width, int height) {
        __shared__ double tile[32][33];
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
        for (int j = 0; j < 32; j += 8)
            if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
        __syncthreads();
        x = blockIdx.y * 32 + threadIdx.x;
        y = blockIdx.x * 32 + threadIdx.y;
        for (int j = 0; j < 32; j += 8)
            if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
    }
    """
)
def transpose(cp, kernel):
    x = rng().random((45, 70))
    out = cp.zeros((70, 45))
    kernel((3, 2), (32, 8), (cp.asarray(x), out, 70, 45))
    return out, x.T


@program(
    r"""
    #define RADIUS 3
    #define BLOCK 64
    __global__ void stencil(const int *in, int *out, int n) {
        __shared__ int temp[BLOCK + 2 * RADIUS];
        int g = threadIdx.x + blockIdx.x * blockDim.x, l = threadIdx.x + RADIUS;
        temp[l] = g < n ? in[g] : 0;
        if (threadIdx.x < RADIUS) {
            temp[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
            temp[l + BLOCK] = g + BLOCK < n ? in[g + BLOCK] : 0;
        }
        __syncthreads();
        int result = 0;
        #pragma unroll
        for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[l + offset];
        if (g < n) out[g] = result;
    }
    """
)
def stencil(cp, kernel):
    x = rng().integers(0, 9, 500).astype(np.int32)
    out = cp.zeros(500, dtype=cp.int32)
    kernel((8,), (64,), (cp.asarray(x), out, 500))
    return out, np.convolve(x, np.ones(7, np.int64), "same")


@program(
    r"""
    struct Body { float x, y, z, m; };
    __device__ float3 pull(float4 bi, float4 bj, float3 ai) {
        float3 r;
        r.x = bj.x - bi.x; r.y = bj.y - bi.y; r.z = bj.z - bi.z;
        float d = r.x * r.x + r.y * r.y + r.z * r.z + 0.01f;
        float inv = 1.0f / sqrtf(d * d * d);
        float s = bj.w * inv;
        ai.x += r.x * s; ai.y += r.y * s; ai.z += r.z * s;
        return ai;
    }
    __global__ void nbody(const float4 *bodies, float3 *out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        float3 acc = make_float3(0, 0, 0);
        float4 me = bodies[i];
        for (int j = 0; j < n; j++) acc = pull(me, bodies[j], acc);
        out[i] = acc;
    }
    """
)
def nbody(cp, kernel):
    n = 60
    b = rng().random((n, 4), dtype=np.float32)
    out = cp.zeros((n, 3), dtype=cp.float32)
    kernel((2,), (32,), (cp.asarray(b), out, n))
    r = b[None, :, :3] - b[:, None, :3]
    d = (r * r).sum(-1) + np.float32(0.01)
    return out, (r * (b[None, :, 3:] / np.sqrt(d**3)[..., None])).sum(1)


@program(
    r"""
    __global__ void mandelbrot(int *out, int w, int h, int most) {
        int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
        if (px >= w || py >= h) return;
        double cx = -2.0 + 3.0 * px / w, cy = -1.5 + 3.0 * py / h, x = 0, y = 0;
        int n = 0;
        while (n < most && x * x + y * y <= 4.0) {
            double t = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = t;
            ++n;
        }
        out[py * w + px] = n;
    }
    """
)
def mandelbrot(cp, kernel):
    w, h, most = 40, 30, 50
    out = cp.zeros((h, w), dtype=cp.int32)
    kernel((5, 4), (8, 8), (out, w, h, most))
    expected = np.zeros((h, w), int)
    for py in range(h):
        for px in range(w):
            cx, cy, x, y, n = -2.0 + 3.0 * px / w, -1.5 + 3.0 * py / h, 0.0, 0.0, 0
            while n < most and x * x + y * y <= 4.0:
                x, y, n = x * x - y * y + cx, 2 * x * y + cy, n + 1
            expected[py, px] = n
    return out, expected


@program(
    r"""
    __device__ void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }
    __global__ void bitonic(int *data, int n) {
        extern __shared__ int s[];
        int tid = threadIdx.x;
        s[tid] = data[tid];
        for (int k = 2; k <= n; k *= 2)
            for (int j = k / 2; j > 0; j /= 2) {
                __syncthreads();
                int other = tid ^ j;
                if (other > tid) {
                    bool up = (tid & k) == 0;
                    if ((s[tid] > s[other]) == up) swap(&s[tid], s + other);
                }
            }
        __syncthreads();
        data[tid] = s[tid];
    }
    """
)
def bitonic(cp, kernel):
    x = rng().integers(-1000, 1000, 128).astype(np.int32)
    out = cp.asarray(x)
    kernel((1,), (128,), (out, 128), shared_mem=512)
    return out, np.sort(x)


@program(
    r"""
    __global__ void spmv(int rows, const int *ptr, const int *cols, const float *vals, const float *x, float *y) {
        int row = blockDim.x * blockIdx.x + threadIdx.x;
        if (row < rows) {
            float dot = 0;
            int begin = ptr[row], end = ptr[row + 1];
            for (int jj = begin; jj < end; jj++) dot += vals[jj] * x[cols[jj]];
            y[row] += dot;
        }
    }
    """
)
def spmv(cp, kernel):
    g = rng()
    dense = g.integers(-3, 4, (30, 20)) * (g.random((30, 20)) < 0.3)
    rows, cols = np.nonzero(dense)
    ptr = np.searchsorted(rows, np.arange(31)).astype(np.int32)
    x = g.integers(-3, 4, 20).astype(np.float32)
    y = cp.ones(30, dtype=cp.float32)
    vals = dense[rows, cols].astype(np.float32)
    kernel((1,), (64,), (30, *map(cp.asarray, (ptr, cols.astype(np.int32), vals, x)), y))
    return y, 1 + dense @ x


@program(
    r"""
    __global__ void life(const unsigned char *now, unsigned char *next, int w, int h) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x >= w || y >= h) return;
        int alive = 0;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                if (dx == 0 && dy == 0) continue;
                alive += now[((y + dy + h) % h) * w + (x + dx + w) % w];
            }
        switch (alive) {
        case 2: next[y * w + x] = now[y * w + x]; break;
        case 3: next[y * w + x] = 1; break;
        default: next[y * w + x] = 0;
        }
    }
    """
)
def life(cp, kernel):
    x = (rng().random((20, 24)) < 0.4).astype(np.uint8)
    out = cp.zeros((20, 24), dtype=cp.uint8)
    kernel((3, 3), (8, 8), (cp.asarray(x), out, 24, 20))
    near = sum(
        np.roll(x, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)
    )
    return out, np.where(near == 3, 1, np.where(near == 2, x, 0))


@program(
    r"""
    __device__ double norm_cdf(double d) {
        const double A1 = 0.31938153, A2 = -0.356563782, A3 = 1.781477937, A4 = -1.821255978, A5 = 1.330274429;
        const double RSQRT2PI = 0.39894228040143267793994605993438;
        double K = 1.0 / (1.0 + 0.2316419 * fabs(d));
        double cnd = RSQRT2PI * exp(-0.5 * d * d) * (K * (A1 + K * (A2 + K * (A3 + K * (A4 + K * A5)))));
        if (d > 0) cnd = 1.0 - cnd;
        return cnd;
    }
    __global__ void black_scholes(double *call, const double *S, const double *X, const double *T, double r, double v, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {
            double root = sqrt(T[i]);
            double d1 = (log(S[i] / X[i]) + (r + 0.5 * v * v) * T[i]) / (v * root), d2 = d1 - v * root;
            call[i] = S[i] * norm_cdf(d1) - X[i] * exp(-r * T[i]) * norm_cdf(d2);
        }
    }
    """
)
def black_scholes(cp, kernel):
    g = rng()
    s, x, t = g.uniform(5, 30, 200), g.uniform(1, 100, 200), g.uniform(0.25, 10, 200)
    out = cp.zeros(200)
    kernel((4,), (64,), (out, cp.asarray(s), cp.asarray(x), cp.asarray(t), 0.02, 0.3, 200))
    a = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429]

    def cdf(d):
        k = 1 / (1 + 0.2316419 * np.abs(d))
        c = 0.3989422804014327 * np.exp(-0.5 * d * d)
        c *= k * (a[0] + k * (a[1] + k * (a[2] + k * (a[3] + k * a[4]))))
        return np.where(d > 0, 1 - c, c)

    d1 = (np.log(s / x) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    return out, s * cdf(d1) - x * np.exp(-0.02 * t) * cdf(d1 - 0.3 * np.sqrt(t))


@program(
    r"""
    typedef unsigned int u32;
    __device__ u32 next(u32 *state) {
        u32 x = *state;
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        return *state = x;
    }
    __global__ void monte_carlo(unsigned long long *hits, int rounds) {
        u32 state = 1234567u + 747796405u * (blockIdx.x * blockDim.x + threadIdx.x);
        int mine = 0;
        do {
            float x = next(&state) * 2.3283064365386963e-10f, y = next(&state) * 2.3283064365386963e-10f;
            mine += x * x + y * y <= 1.0f;
        } while (--rounds > 0);
        atomicAdd(hits, (unsigned long long)mine);
    }
    """
)
def monte_carlo(cp, kernel):
    hits = cp.zeros(1, dtype=cp.uint64)
    kernel((4,), (32,), (hits, 50))
    state = (1234567 + 747796405 * np.arange(128, dtype=np.uint64)).astype(np.uint32)
    scale, expected = np.float32(2.3283064365386963e-10), 0
    for _ in range(50):
        point = []
        for _ in range(2):
            state = state ^ (state << np.uint32(13))
            state = state ^ (state >> np.uint32(17))
            state = state ^ (state << np.uint32(5))
            point.append(state.astype(np.float32) * scale)
        expected += int((point[0] * point[0] + point[1] * point[1] <= 1).sum())
    return hits, [expected]


@program(
    r"""
    __global__ void floyd(int *d, int n) {
        int i = threadIdx.y, j = threadIdx.x;
        for (int k = 0; k < n; k++) {
            int through = d[i * n + k] + d[k * n + j];
            __syncthreads();
            if (through < d[i * n + j]) d[i * n + j] = through;
            __syncthreads();
        }
    }
    """
)
def floyd(cp, kernel):
    n = 12
    d = rng().integers(1, 60, (n, n)).astype(np.int32)
    np.fill_diagonal(d, 0)
    out = cp.asarray(d)
    kernel((1,), (n, n), (out, n))
    expected = d.copy()
    for k in range(n):
        expected = np.minimum(expected, expected[:, k : k + 1] + expected[k])
    return out, expected


@program(
    r"""
    #define CHECK(c) if (!(c)) return
    #define MAX(a, b) ((a) > (b) ? (a) : (b))
    enum Kind { LEFT, RIGHT = 5, BOTH };
    typedef struct { int lo, hi; enum Kind kind; } Range;
    __device__ Range widen(Range r, int by) {
        switch (r.kind) {
        case LEFT: r.lo -= by; break;
        case BOTH: r.lo -= by; /* falls through */
        case RIGHT: r.hi += by; break;
        }
        return r;
    }
    __global__ void ranges(int *out, const int *kinds, int n) {
        int i = threadIdx.x;
        CHECK(i < n);
        Range r = {i, i * 2, LEFT};
        r.kind = (Kind)kinds[i];
        for (int k = 0; k < 3; ++k) r = widen(r, k + 1);
        Range *p = &r;
        p->lo++;
        int table[4] = {1, 2, 3}, sum = 0;
        for (int k = 0; k < 4; k++) sum += table[k] * (k + 1);
        out[2 * i] = MAX(r.lo, -3) + sum;
        out[2 * i + 1] = (*p).hi;
    }
    """
)
def ranges(cp, kernel):
    kinds = np.array([0, 5, 6, 0, 5, 6, 0, 5], np.int32)
    out = cp.zeros(16, dtype=cp.int32)
    kernel((1,), (32,), (out, cp.asarray(kinds), 8))
    i = np.arange(8)
    lo = i - 6 * ((kinds == 0) | (kinds == 6)) + 1
    hi = 2 * i + 6 * ((kinds == 5) | (kinds == 6))
    return out, np.stack([np.maximum(lo, -3) + 14, hi], 1).reshape(-1)


@program(
    r"""
    __global__ void pointers(const float *a, const float *b, float *out, int n, bool swap) {
        int i = threadIdx.x;
        const float *p = swap ? b : a, *q = a;
        if (swap) q = a; else q = b;
        const float *end = p + n;
        float sum = 0;
        for (const float *r = p; r != end; r++) sum += *r;
        out[i] = p[i] - q[i] + sum + (float)(end - p);
        float *o = &out[i];
        *o += 1;
        *(out + n + i) = (p == a) + (p < end ? 10 : 0) + (o != nullptr ? 100 : 0);
    }
    """
)
def pointers(cp, kernel):
    a, b = rng().integers(0, 9, (2, 16)).astype(np.float32)
    out = cp.zeros(32, dtype=cp.float32)
    kernel((1,), (16,), (cp.asarray(a), cp.asarray(b), out, 16, True))
    return out, np.concatenate([b - a + b.sum() + 17, np.full(16, 110.0)])
