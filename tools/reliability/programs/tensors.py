"""Programs for allocations.py, each with a value: tensors and training."""

import io
import os
import tempfile

import numpy as np
import simt.torch as torch
from errors import errors_of

nn, F = torch.nn, torch.nn.functional


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


def torch_constructors():
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.float64, requires_grad=True)
    made = [
        x.detach(),
        torch.zeros(2, 3),
        torch.ones((2,), dtype=torch.int64),
        torch.full((2,), 1.5),
        torch.arange(1, 9, 3),
        torch.linspace(0, 1, 3),
        torch.eye(2),
        torch.as_tensor([True]),
        torch.from_numpy(np.arange(3.0)),
        torch.zeros_like(x),
        torch.tensor(np.float32(3)),
        torch.empty(0),
        torch.tensor([[1.5]]).new_ones(2),
        torch.stack([x.detach(), x.detach()]),
        torch.tensor(5),
        torch.FloatTensor([1, 2]),
        torch.LongTensor(2).zero_(),
        torch.tensor([torch.tensor(1), 2]),
        torch.as_tensor(np.arange(4, dtype=np.int16)),
        torch.from_dlpack(np.arange(3)),
        torch.tril(torch.ones(3, 3)),
        torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")[0],
    ]
    texts = []
    for bad in ("a", [[1], [2, 3]], object(), [None], {}):
        try:
            torch.tensor(bad)
        except (TypeError, ValueError, RuntimeError) as e:
            texts.append([type(e).__name__, str(e).split("\n")[0].split(" at 0x")[0]])
    return [[str(m.dtype), m.tolist()] for m in made] + [
        texts,
        repr(x),
        str(torch.rand(0)),
        x.type(),
    ]


def torch_views():
    x = torch.arange(24.0).view(2, 3, 4)
    i = torch.tensor([1, 0])
    y = [
        x[0],
        x[:, 1:],
        x[..., None],
        x[i],
        x[:, i, i],
        x[x > 20],
        x[1, [0, 2]],
        x.t() if x.dim() < 3 else x.mT,
        x.permute(2, 0, 1),
        x.expand(2, 2, 3, 4),
        x.squeeze(),
        x.unsqueeze(0),
        x.flatten(1),
        x.narrow(1, 0, 2),
        *x.split([1, 2], 1),
        *x.unbind(0),
        x.select(0, 1),
        x.reshape(-1),
        x.repeat(1, 2, 1),
        x.roll(1, 0),
        x.flip(0, 1),
        torch.cat([x, x], -1),
        x.movedim(0, 1),
        x.gather(2, torch.zeros(2, 3, 1, dtype=torch.long)),
        x.index_select(1, i),
        x.masked_fill(x > 3, 0.0),
        x.chunk(3, 1)[2],
        x.topk(2).values,
        x.sort(descending=True)[1],
        x.tile(2),
        torch.where(x > 5, x, -x),
        x.take_along_dim(torch.zeros(2, 1, 4, dtype=torch.long), 1),
        x.nonzero(),
        x.unique(),
        x.swapaxes(0, 1),
    ]
    x[0, :, 1] = 5
    x[i, 0] = torch.ones(4)
    x[x > 20] = 0
    x.scatter_(1, torch.zeros(2, 1, 4, dtype=torch.long), 9.0)
    x.index_add_(0, i, torch.ones(2, 3, 4))
    x[1].copy_(torch.zeros(3, 4)).add_(1)
    return [v.tolist() for v in y] + [x.tolist(), x.shape, x.stride(), list(x.size()), len(x)]


def torch_mathematics():
    x = torch.linspace(0.1, 2, 12).view(3, 4)
    y = [
        x.exp(),
        x.log1p(),
        x.sigmoid(),
        x.tanh(),
        x.softmax(1),
        x.clamp(0.5, 1),
        x.pow(2),
        x.sqrt(),
        x.abs(),
        x.sum(0),
        x.mean(),
        x.var(1),
        x.std(),
        x.max(1)[0],
        x.argmax(),
        x.min(),
        x.prod(1),
        x.cumsum(1),
        x.norm(),
        x.logsumexp(0),
        x @ x.T,
        torch.mm(x, x.T),
        torch.bmm(x[None], x.T[None]),
        torch.einsum("ij,kj->ik", x, x),
        torch.addmm(torch.ones(3, 3), x, x.T),
        x.floor_divide(0.3),
        x.remainder(0.3),
        x / 3,
        2**x,
        1 - x,
        -x,
        x > 1,
        (x > 1) & (x < 2),
        torch.maximum(x, x.flip(0)),
        torch.lerp(x, x * 2, 0.5),
        x.to(torch.int32),
        x.double(),
        x.half(),
        x.any(),
        x.all(),
        x.isnan(),
        x.round(),
        torch.outer(x[0], x[1]),
        torch.dot(x[0], x[1]),
        x.median(),
        torch.div(x, 0.3, rounding_mode="floor"),
        x.erf(),
        torch.atan2(x, x),
        x.sign(),
        x.norm(dim=1, p=1),
    ]
    x.add_(1).mul_(2).clamp_(max=4)
    x += 1
    x[0] *= 2
    return [v.tolist() for v in y] + [
        x.tolist(),
        bool(x.allclose(x)),
        torch.equal(x, x),
        float(x[0, 0]),
    ]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * ctx.k * x * g, None


def torch_autograd():
    x = torch.linspace(-1, 1, 6, requires_grad=True)
    w = torch.ones(3, 2, requires_grad=True)
    seen = []
    handle = x.register_hook(lambda g: g * 2)
    y = Square.apply(x, 3).view(2, 3) @ w
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.sum().item()))
    y.tanh().sum().backward(retain_graph=True)
    handle.remove()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.square().sum().backward()
    with torch.no_grad():
        z = x * 2
    with torch.enable_grad():
        v = (x.detach().requires_grad_() ** 3).sum()
    texts = []
    for call in (lambda: z.backward(), lambda: y.backward(), lambda: x.add_(1)):
        try:
            call()
        except RuntimeError as e:
            texts.append(str(e).split("\n")[0])
    return [
        x.grad.tolist(),
        w.grad.tolist(),
        y.grad.tolist(),
        seen,
        z.requires_grad,
        v.grad_fn.name(),
        texts,
        type(y.grad_fn).__name__,
        [type(n[0]).__name__ for n in y.grad_fn.next_functions],
    ]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * 4 * 4, 3)
        self.register_buffer("scale", torch.ones(1))
        self.extra = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.layers = nn.ModuleDict({"a": nn.LayerNorm(3), "b": nn.GELU()})

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = self.out(self.drop(x.flatten(1))) * self.scale + self.extra[0].sum()
        return self.layers["b"](self.layers["a"](x))


def torch_modules():
    torch.manual_seed(4)
    net = Net()
    seen = []
    net.out.register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
    y = net(torch.randn(5, 1, 8, 8))
    loss = F.mse_loss(y, torch.zeros(5, 3)) + F.l1_loss(y, torch.ones(5, 3))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    state = {k: v.clone() for k, v in net.state_dict().items()}
    other = Net()
    result = other.load_state_dict(state)
    net.eval()
    other.eval()
    x = torch.ones(1, 1, 8, 8)
    same = torch.equal(net(x), other(x))
    other.apply(lambda m: None).double().float().requires_grad_(False)
    return [
        loss.item(),
        norm.item(),
        seen,
        str(result),
        same,
        sum(p.numel() for p in net.parameters()),
        len(repr(net)),
        sorted(n for n, _ in net.named_modules()),
    ]


def torch_layers():
    torch.manual_seed(5)
    e = nn.Embedding(5, 4)
    x = e(torch.tensor([[0, 2, 4], [1, 1, 1]]))
    y = [x.sum()]
    y.append(nn.Sequential(nn.Conv2d(2, 2, 1), nn.LeakyReLU(), nn.AdaptiveAvgPool2d(2))(x).sum())
    y.append(F.nll_loss(F.log_softmax(x[0], 1), torch.tensor([1, 2, 0])))
    y.append(F.binary_cross_entropy_with_logits(x, torch.zeros(2, 3, 4)))
    y.append(F.interpolate(x[None], scale_factor=2).sum())
    y.append(F.one_hot(torch.tensor([0, 2]), 3).sum())
    y.append(F.pad(x, (1, 1)).sum())
    y.append(F.smooth_l1_loss(x, torch.zeros(2, 3, 4)))
    sum(v.float() for v in y).backward()
    return [round(v.item(), 5) for v in y] + [e.weight.grad.sum().item()]


def torch_optimisers():
    torch.manual_seed(6)
    results = []
    for name, options in (
        ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
        ("Adam", {}),
        ("AdamW", {"betas": (0.8, 0.99)}),
    ):
        w = torch.ones(4, requires_grad=True)
        o = getattr(torch.optim, name)([{"params": [w], "lr": 0.1}], lr=0.01, **options)
        s = torch.optim.lr_scheduler.StepLR(o, 2, 0.5)
        for _ in range(3):
            o.zero_grad()
            (w.square() * torch.arange(4.0)).sum().backward()
            o.step()
            s.step()
        o.load_state_dict(o.state_dict())
        o.step(w.detach().sum)
        results.append([name, w.tolist(), s.get_last_lr()])
    return results


def torch_saving():
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    o = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    o.step()
    state = {
        "m": model.state_dict(),
        "o": o.state_dict(),
        "x": [1, (2.5, None), {"a": True}],
        "t": torch.arange(3)[::2],
    }
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "f.pt")
    try:
        torch.save(state, path)
        got = torch.load(path)
        with open(path, "rb") as f:
            again = torch.load(f)
        texts = []
        for data in (b"nothing", b"", open(path, "rb").read()[:300]):
            try:
                torch.load(io.BytesIO(data))
            except MemoryError:
                raise
            except Exception as e:
                texts.append(type(e).__name__)
        left = sorted(os.listdir(folder))
    finally:
        for n in os.listdir(folder):
            os.unlink(os.path.join(folder, n))
        os.rmdir(folder)
    return [got["m"]["weight"].tolist(), again["t"].tolist(), got["x"], texts, left]


def torch_numpy():
    x = torch.arange(6.0).view(2, 3)
    n = x.numpy()
    n[0, 0] = 5
    d = np.from_dlpack(x)
    return [
        x.tolist(),
        np.asarray(x).sum().item(),
        d.tolist(),
        np.array(x.T).tolist(),
        (x.numpy() + 1).tolist(),
        x.item() if x.numel() == 1 else 0,
        [float(v) for v in x[0]],
        x.data_ptr() == n.ctypes.data,
        memoryview(n).nbytes,
    ]


def torch_data():
    torch.manual_seed(2)
    D = torch.utils.data

    class Own(D.Dataset):
        def __len__(self):
            return 7

        def __getitem__(self, i):
            return {"x": np.full(2, i, np.float32), "y": i, "n": str(i)}

    loaders = [
        D.DataLoader(Own(), batch_size=3),
        D.DataLoader(D.TensorDataset(torch.arange(7), torch.arange(14.0).view(7, 2)), 2, True),
        D.DataLoader(list(range(5)), batch_size=2, drop_last=True),
        D.DataLoader(torch.arange(6).view(3, 2), 2),
        D.DataLoader(D.Subset(D.TensorDataset(torch.arange(9.0)), [1, 3, 5]), 2),
    ]
    a, b = D.random_split(range(5), [2, 3])
    out = [[repr(batch) for batch in loader] for loader in loaders]
    return out + [sorted(list(a) + list(b))]


def torch_errors():
    x = torch.arange(6.0).view(2, 3)
    calls = [
        lambda: x + torch.ones(4),
        lambda: x @ x,
        lambda: x.view(4),
        lambda: x.sum(5),
        lambda: x.nothing,
        lambda: torch.cat([]),
        lambda: torch.add(x, "a"),
        lambda: x.item(),
        lambda: x[7],
        lambda: torch.zeros(-1),
        lambda: torch.stack([x, x[0]]),
        lambda: x.backward(),
        lambda: torch.conv2d(x, x),
        lambda: x.to("nothing"),
        lambda: torch.nn.Linear(3, 2)(torch.ones(2, 5)),
        lambda: x.type("nothing"),
        lambda: F.cross_entropy(x, x.long()),
        lambda: torch.device("abc"),
        lambda: x.norm("abc"),
        lambda: torch.from_numpy(np.array(["a"])),
        lambda: torch.manual_seed(2**70),
        lambda: x.softmax(),
        lambda: x.squeeze("a"),
        lambda: torch.load("/nothing"),
    ]
    return errors_of(calls)
