"""Functions over tensors that need no C of their own, and facts (finfo, is_tensor)."""

from simt._core import torch as _C

__all__ = [
    "addmm",
    "allclose",
    "argsort",
    "broadcast_shapes",
    "broadcast_tensors",
    "diag",
    "einsum",
    "equal",
    "frexp",
    "ldexp",
    "finfo",
    "iinfo",
    "is_nonzero",
    "is_tensor",
    "isclose",
    "median",
    "meshgrid",
    "movedim",
    "outer",
    "repeat_interleave",
    "roll",
    "set_default_device",
    "sort",
    "take",
    "take_along_dim",
    "topk",
    "tril",
    "triu",
    "unique",
    "var_mean",
    "std_mean",
    "hstack",
    "vstack",
    "get_num_threads",
    "set_num_threads",
    "compile",
    "is_complex",
    "diff",
    "trace",
    "baddbmm",
    "tensordot",
    "can_cast",
    "use_deterministic_algorithms",
    "set_float32_matmul_precision",
    "bincount",
    "nan_to_num",
    "are_deterministic_algorithms_enabled",
    "atleast_1d",
    "atleast_2d",
    "tile",
]

Tensor = _C.Tensor


def is_tensor(obj):
    return isinstance(obj, Tensor)


def is_nonzero(input):
    return bool(input)


def is_complex(input):
    return False


def equal(input, other):
    """True when both have the same size and elements."""
    return input.shape == other.shape and bool((input == other).all())


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if not input.is_floating_point():
        input, other = input.double(), other.double()
    near = (input - other).abs() <= atol + rtol * other.abs()
    near = near | (input == other)
    if equal_nan:
        near = near | (_C.isnan(input) & _C.isnan(other))
    return near


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def ldexp(input, other):
    """input * 2**other, as PyTorch by the power (which may be out of range)."""
    return _C.mul(input, _C.exp2(other))


class _Frexp(tuple):
    __slots__ = ()
    mantissa = property(lambda self: self[0])
    exponent = property(lambda self: self[1])

    def __repr__(self):
        return f"torch.return_types.frexp(\nmantissa={self[0]},\nexponent={self[1]})"


def frexp(input):
    """(mantissa, exponent): input = mantissa * 2**exponent, 0.5 <= |mantissa| < 1."""
    if not input.is_floating_point():
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    exponent = _C._elementwise("frexp_exponent", (input.detach(),), ())
    return _Frexp((_C._elementwise("frexp_fraction", (input,), ()), exponent.to(_C.int32)))


def outer(input, vec2):
    return input.unsqueeze(1) * vec2.unsqueeze(0)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    product = _C.mm(mat1, mat2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    product = _C.bmm(batch1, batch2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


def trace(input):
    n = min(input.shape)
    i = _C._arange(0, n, 1, None)
    return input[i, i].sum()


def diag(input, diagonal=0):
    """A matrix from a vector, or the diagonal of a matrix."""
    if input.dim() == 1:
        n = input.shape[0] + abs(diagonal)
        out = _C._full("zeros", (n, n), 0, input.dtype, input.device, False)
        i = _C._arange(0, input.shape[0], 1, None)
        out[i + max(-diagonal, 0), i + max(diagonal, 0)] = input
        return out
    n = min(input.shape[0] + min(diagonal, 0), input.shape[1] - max(diagonal, 0))
    i = _C._arange(0, max(n, 0), 1, None)
    return input[i + max(-diagonal, 0), i + max(diagonal, 0)]


def _triangle(input, diagonal, lower):
    rows = _C._arange(0, input.shape[-2], 1, None).unsqueeze(1)
    columns = _C._arange(0, input.shape[-1], 1, None)
    keep = columns <= rows + diagonal if lower else columns >= rows + diagonal
    keep = keep.to(input.device)
    return _C.where(keep, input, _C._full("full", (), 0, input.dtype, input.device, False))


def tril(input, diagonal=0):
    return _triangle(input, diagonal, True)


def triu(input, diagonal=0):
    return _triangle(input, diagonal, False)


def broadcast_shapes(*shapes):
    out = []
    for shape in shapes:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        out = [1] * (len(shape) - len(out)) + out
        for i, n in enumerate(reversed(shape), 1):
            if out[-i] == 1:
                out[-i] = n
            elif n not in (1, out[-i]):
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
    return _C.Size(out)


def broadcast_tensors(*tensors):
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return [t.expand(shape) for t in tensors]


def meshgrid(*tensors, indexing=None):
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tensors[0]
    n = len(tensors)
    shape = [t.numel() for t in tensors]
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    out = []
    for i, t in enumerate(tensors):
        view = [1] * n
        view[order[i]] = -1
        out.append(t.reshape(view).expand([shape[j] for j in order]))
    return tuple(out)


def movedim(input, source, destination):
    n = input.dim()
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    src, dst = [s % n for s in src], [d % n for d in dst]
    rest = iter(i for i in range(n) if i not in src)
    places = dict(zip(dst, src, strict=False))
    return input.permute([places[i] if i in places else next(rest) for i in range(n)])


def roll(input, shifts, dims=None):
    if dims is None:
        return roll(input.flatten(), shifts, 0).view(input.shape)
    shifts = (shifts,) if isinstance(shifts, int) else shifts
    dims = (dims,) if isinstance(dims, int) else dims
    for shift, dim in zip(shifts, dims, strict=False):
        n = input.shape[dim]
        if n and shift % n:
            k = n - shift % n
            input = _C.cat([input.narrow(dim, k, n - k), input.narrow(dim, 0, k)], dim)
    return input


def tile(input, dims):
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    return input.repeat((1,) * (input.dim() - len(dims)) + dims)


def atleast_1d(input):
    return input if input.dim() else input.reshape(1)


def atleast_2d(input):
    return input if input.dim() > 1 else input.reshape(1, -1)


def hstack(tensors):
    tensors = [atleast_1d(t) for t in tuple(tensors)]
    return _C.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):
    return _C.cat([atleast_2d(t) for t in tuple(tensors)], 0)


def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    if dim is None:
        input, dim = input.flatten(), 0
    counts = repeats if isinstance(repeats, Tensor) else _C.tensor(int(repeats), device="cpu")
    if counts.dim() > 1 or counts.is_floating_point():
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor of int32 or int64")
    return input.index_select(dim, _C._repeat_index(counts, input.shape[dim]))


def take(input, index):
    return input.flatten()[index]


def take_along_dim(input, indices, dim=None):
    if dim is None:
        return input.flatten()[indices.flatten()]
    shape = list(
        broadcast_shapes(
            [1 if i == dim % input.dim() else n for i, n in enumerate(input.shape)],
            [1 if i == dim % input.dim() else n for i, n in enumerate(indices.shape)],
        )
    )
    shape[dim] = indices.shape[dim]
    indices = _C.where(indices < 0, indices + input.shape[dim], indices)
    return input.gather(dim, indices.expand(shape))


# ---- sorting: the order in C (always stable), the values by gather (and so with a gradient)


def sort(input, dim=-1, descending=False, stable=False):
    if input.dim() == 0:
        return _C._make_pair("sort", input.clone(), _C.tensor(0, device=input.device))
    index = _C._argsort(input, dim, descending)
    return _C._make_pair("sort", input.gather(dim, index), index)


def argsort(input, dim=-1, descending=False, stable=False):
    return sort(input, dim, descending, stable)[1]


def topk(input, k, dim=-1, largest=True, sorted=True):
    if k < 0 or k > (input.shape[dim] if input.dim() else 1):
        raise RuntimeError("selected index k out of range")
    if input.dim() == 0:
        return _C._make_pair("topk", input.clone(), _C.tensor(0, device=input.device))
    index = _C._argsort(input, dim, largest, k)
    return _C._make_pair("topk", input.gather(dim, index), index)


def median(input, dim=None, keepdim=False):
    if dim is None:
        flat = input.flatten()
        if not flat.numel():
            return _C._full("full", (), float("nan"), input.dtype, input.device, False)
        if input.is_floating_point() and bool(_C.isnan(flat).any()):
            return flat[_C.isnan(flat)][0]
        return sort(flat)[0][(flat.numel() - 1) // 2]
    values, index = sort(input, dim)
    middle = (input.shape[dim] - 1) // 2
    values, index = values.narrow(dim, middle, 1), index.narrow(dim, middle, 1)
    if not keepdim:
        values, index = values.squeeze(dim), index.squeeze(dim)
    return _C._make_pair("median", values, index)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    import numpy

    values, inverse, counts = numpy.unique(
        input.detach().numpy(), return_inverse=True, return_counts=True, axis=dim
    )
    out = [_C.tensor(values, device="cpu")]
    if return_inverse:
        shape = input.shape if dim is None else (input.shape[dim],)
        out.append(_C.tensor(inverse.reshape(shape), device="cpu"))
    if return_counts:
        out.append(_C.tensor(counts, device="cpu"))
    return out[0] if len(out) == 1 else tuple(out)


def bincount(input, weights=None, minlength=0):
    if input.dim() != 1 or input.is_floating_point() or (input < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    n = max(int(input.max()) + 1 if input.numel() else 0, minlength)
    if weights is None:
        weights = _C._full("ones", input.shape, 1, _C.int64, input.device, False)
    elif weights.dtype != _C.float32:
        weights = weights.double()
    return _C._full("zeros", (n,), 0, weights.dtype, input.device, False).scatter_add_(
        0, input, weights
    )


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    info = finfo(input.dtype)
    out = _C.where(_C.isnan(input), nan, input)
    return out.clamp(info.min if neginf is None else neginf, info.max if posinf is None else posinf)


def diff(input, n=1, dim=-1):
    for _ in range(n):
        size = input.shape[dim]
        input = input.narrow(dim, 1, size - 1) - input.narrow(dim, 0, size - 1)
    return input


def var_mean(input, dim=None, **kw):
    return _C.var(input, dim, **kw), _C.mean(input, dim, keepdim=kw.get("keepdim", False))


def std_mean(input, dim=None, **kw):
    return _C.std(input, dim, **kw), _C.mean(input, dim, keepdim=kw.get("keepdim", False))


# ---- einsum: permute, multiply as matrices, two operands at a time


def tensordot(a, b, dims=2):
    if isinstance(dims, int):
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    left, right = [d % a.dim() for d in left], [d % b.dim() for d in right]
    free_a = [i for i in range(a.dim()) if i not in left]
    free_b = [i for i in range(b.dim()) if i not in right]
    k = 1
    for d in left:
        k *= a.shape[d]
    x = a.permute(free_a + left).reshape(-1, k)
    y = b.permute(right + free_b).reshape(k, -1)
    return (x @ y).reshape([a.shape[i] for i in free_a] + [b.shape[i] for i in free_b])


def einsum(equation, *operands):
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = operands[0]
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in left:
        raise NotImplementedError("einsum with '...': not in simt yet; nearest is matmul")
    if len(terms) != len(operands):
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
            if len(operands) > len(terms)
            else "einsum(): fewer operands were provided than specified in the equation"
        )
    if not arrow:
        right = "".join(sorted(c for c in set(left) if c != "," and left.count(c) == 1))
    names, x = _diagonals(terms[0], operands[0])
    for i, (term, other) in enumerate(zip(terms[1:], operands[1:], strict=False), 1):
        more, y = _diagonals(term, other)
        later = set(right).union(*terms[i + 1 :])
        names, x = _contract(names, x, more, y, later)
    gone = [i for i, c in enumerate(names) if c not in right]
    if gone:
        x = x.sum(gone)
        names = [c for c in names if c in right]
    return x.permute([names.index(c) for c in right])


def _diagonals(names, x):
    names = list(names)
    for c in set(names):
        while names.count(c) > 1:
            i = names.index(c)
            j = names.index(c, i + 1)
            n = x.shape[i]
            x = movedim(x, (i, j), (0, 1))
            k = _C._arange(0, n, 1, None)
            x = x[k, k]
            names = [c] + [d for m, d in enumerate(names) if m not in (i, j)]
    return names, x


def _contract(a, x, b, y, later):
    batch = [c for c in a if c in b and c in later]
    inner = [c for c in a if c in b and c not in later]
    free_a = [c for c in a if c not in b]
    free_b = [c for c in b if c not in a]
    x = x.permute([a.index(c) for c in batch + free_a + inner])
    y = y.permute([b.index(c) for c in batch + inner + free_b])
    nb, na = len(batch), len(free_a)
    head, rows = list(x.shape[:nb]), list(x.shape[nb : nb + na])
    columns = list(y.shape[nb + len(inner) :])
    k = 1
    for n in x.shape[nb + na :]:
        k *= n
    size = 1
    for n in rows:
        size *= n
    product = x.reshape(head + [size, k]) @ y.reshape(head + [k, -1])
    return batch + free_a + free_b, product.reshape(head + rows + columns)


# ---- facts


class finfo:
    """Machine limits of a float dtype."""

    _FACTS = {
        "float16": (16, 0.0009765625, 65504.0, 6.103515625e-05, 5.960464477539063e-08, 0.001),
        "bfloat16": (
            16,
            0.0078125,
            3.3895313892515355e38,
            1.1754943508222875e-38,
            9.183549615799121e-41,
            0.01,
        ),
        "float32": (
            32,
            1.1920928955078125e-07,
            3.4028234663852886e38,
            1.1754943508222875e-38,
            1.401298464324817e-45,
            1e-06,
        ),
        "float64": (
            64,
            2.220446049250313e-16,
            1.7976931348623157e308,
            2.2250738585072014e-308,
            5e-324,
            1e-15,
        ),
    }

    def __init__(self, type=None):
        type = type or _C.get_default_dtype()
        self.dtype = repr(type).partition(".")[2]
        if self.dtype not in self._FACTS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{type}'"
            )
        self.bits, self.eps, self.max, self.tiny, self.smallest_subnormal, self.resolution = (
            self._FACTS[self.dtype]
        )
        self.min = -self.max
        self.smallest_normal = self.tiny

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Machine limits of an integer dtype."""

    def __init__(self, type):
        self.dtype = repr(type).partition(".")[2]
        if type.is_floating_point or self.dtype == "bool":
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            )
        self.bits = type.itemsize * 8
        signed = type.is_signed
        self.min = -(1 << (self.bits - 1)) if signed else 0
        self.max = (1 << (self.bits - signed)) - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def can_cast(from_, to):
    def rank(d):
        return 2 if d.is_floating_point else 0 if d is _C.bool else 1

    return rank(from_) <= rank(to) and not (
        rank(from_) == rank(to) == 1 and from_.is_signed and not to.is_signed
    )


def set_default_device(device):
    _C._set_default_device(device)


def get_num_threads():
    from simt import _machine

    return _machine.threads()


def set_num_threads(n):
    """The number of threads is set at start (SIMT_NUM_THREADS); kept for programs that call it."""


def set_float32_matmul_precision(precision):
    """Products are always of full precision here."""


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Everything is deterministic already."""


def are_deterministic_algorithms_enabled():
    return True


def compile(model=None, **options):
    """Programs are compiled as they run: the model itself."""
    return model if model is not None else (lambda m: m)
