"""The programs that allocations.py runs: short ones, of every part, each with a value."""

import io
import math

import numpy as np
import simt.cupy as cp
import simt.torch as torch
from simt.numba import cuda, float32, float64, int32, vectorize, void

F = torch.nn.functional


# ---- kernels: each run makes a new dispatcher, which compiles ----


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


# ---- arrays ----


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


# ---- tensors ----


def torch_training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(10, 6), torch.arange(10) % 3
    for _ in range(2):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [loss.item(), model[0].weight.sum().item()]


def torch_convolution():
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(36, 2)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loss = net(torch.randn(3, 1, 8, 8)).square().mean()
    loss.backward()
    optimizer.step()
    return [loss.item(), net[0].weight.sum().item()]


def torch_gradients():
    x = torch.linspace(-1, 1, 30, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(float(g.sum())))
    y = (x.view(5, 6)[1:, [0, 2]].exp() * x[:2]).cumsum(0).sort(dim=1)[0]
    y.sum().backward()
    return [x.grad.tolist(), seen]


def torch_files():
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(6.0).view(2, 3), "n": [1, "two"]}, buffer)
    buffer.seek(0)
    state = torch.load(buffer)
    return [state["w"].tolist(), state["n"]]


def torch_loader():
    torch.manual_seed(2)
    data = torch.utils.data.TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    return [[x.tolist(), y.tolist()] for x, y in loader]


def torch_shapes():
    x = torch.arange(24).view(2, 3, 4)
    parts = torch.cat([x, x.flip(0)], dim=1).chunk(2, dim=2)
    stacked = torch.stack([p.permute(2, 0, 1).contiguous() for p in parts])
    return [stacked.tolist(), torch.tensor([[1.5, 2], [3, 4]]).tolist(), x.numpy().sum().item()]


PROGRAMS = {
    name: f
    for name, f in globals().items()
    if name.startswith(("kernel_", "arrays_", "torch_")) and callable(f)
}
