"""Functions that make tensors: sizes as f(2, 3) or f((2, 3)), dtype, device, requires_grad."""

from simt._core import torch as _C

__all__ = [
    "arange",
    "asarray",
    "bernoulli",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "initial_seed",
    "linspace",
    "manual_seed",
    "multinomial",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "scalar_tensor",
    "seed",
    "zeros",
    "zeros_like",
    "get_rng_state",
    "set_rng_state",
    "logspace",
    "range",
]

_full = _C._full
_random = _C._random


def _size(size):
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def _out(result, out):
    if out is None:
        return result
    out.copy_(result)
    return out


def zeros(*size, out=None, dtype=None, layout=None, device=None, requires_grad=False, **kw):
    return _out(
        _full("zeros", kw["size"] if kw else _size(size), 0, dtype, device, requires_grad), out
    )


def ones(*size, out=None, dtype=None, layout=None, device=None, requires_grad=False, **kw):
    return _out(
        _full("ones", kw["size"] if kw else _size(size), 1, dtype, device, requires_grad), out
    )


def empty(
    *size,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    memory_format=None,
    **kw,
):
    return _full("empty", kw["size"] if kw else _size(size), None, dtype, device, requires_grad)


def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    return _out(_full("full", size, fill_value, dtype, device, requires_grad), out)


def _like(value):
    def make(
        input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None
    ):
        device = device or input.device
        return _full("full", input.shape, value, dtype or input.dtype, device, requires_grad)

    return make


zeros_like = _like(0)
ones_like = _like(1)
empty_like = _like(None)
zeros_like.__name__, ones_like.__name__, empty_like.__name__ = (
    "zeros_like",
    "ones_like",
    "empty_like",
)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad=False, **kw):
    device = device or input.device
    return _full("full", input.shape, fill_value, dtype or input.dtype, device, requires_grad)


def scalar_tensor(value, *, dtype=None, device=None, requires_grad=False):
    dtype = dtype or _C.get_default_dtype()
    return _C.tensor(value, dtype=dtype, device=device, requires_grad=requires_grad)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    make = _C.tensor if copy else _C.as_tensor
    made = make(obj, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def arange(*args, out=None, dtype=None, layout=None, device=None, requires_grad=False, **kw):
    if kw:
        args = [kw[k] for k in ("start", "end", "step") if k in kw] + list(args)
    if len(args) == 1:
        made = _C._arange(0, args[0], 1, dtype)
    else:
        made = _C._arange(args[0], args[1], args[2] if len(args) > 2 else 1, dtype)
    made = _C._place(made, device)
    return made.requires_grad_() if requires_grad else _out(made, out)


def range(start, end, step=1, **kw):
    return arange(start, end + step, step, **kw)


def linspace(start, end, steps, *, out=None, dtype=None, device=None, requires_grad=False):
    made = _C._place(_C._linspace(start, end, steps, dtype), device)
    return made.requires_grad_() if requires_grad else made


def logspace(start, end, steps, base=10.0, **kw):
    return _C.pow(base, linspace(start, end, steps, **kw))


def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    made = _C._place(_C._eye(n, m, dtype), device)
    return made.requires_grad_() if requires_grad else made


# ---- random numbers


def rand(*size, generator=None, out=None, dtype=None, device=None, requires_grad=False, **kw):
    size = kw["size"] if kw else _size(size)
    return _random("rand", size, 0.0, 1.0, dtype, generator, requires_grad, device)


def randn(*size, generator=None, out=None, dtype=None, device=None, requires_grad=False, **kw):
    size = kw["size"] if kw else _size(size)
    return _random("normal", size, 0.0, 1.0, dtype, generator, requires_grad, device)


def randint(*args, generator=None, dtype=None, device=None, requires_grad=False, **kw):
    args = [kw[k] for k in ("low", "high") if k in kw] + list(args)
    if "size" in kw:
        args.append(kw["size"])
    low, high, size = args if len(args) == 3 else (0, *args)
    return _random("int", size, low, high, dtype or _C.int64, generator, requires_grad, device)


def randperm(n, *, generator=None, out=None, dtype=None, device=None, requires_grad=False):
    return _random("perm", (n,), n, None, dtype or _C.int64, generator, requires_grad, device)


def rand_like(input, *, dtype=None, device=None, requires_grad=False, **kw):
    device, dtype = device or input.device, dtype or input.dtype
    return _random("rand", input.shape, 0.0, 1.0, dtype, None, requires_grad, device)


def randn_like(input, *, dtype=None, device=None, requires_grad=False, **kw):
    device, dtype = device or input.device, dtype or input.dtype
    return _random("normal", input.shape, 0.0, 1.0, dtype, None, requires_grad, device)


def randint_like(input, *args, dtype=None, **kw):
    kw.setdefault("device", input.device)
    return randint(*args, input.shape, dtype=dtype or input.dtype, **kw)


def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, out=None, **kw):
    if size is not None:
        return _random("normal", size, mean, std, dtype, generator, False, kw.get("device"))
    if not isinstance(std, _C.Tensor):
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    elif not (std >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = mean.shape if isinstance(mean, _C.Tensor) else std.shape
    return _random("normal", shape, 0.0, 1.0, dtype, generator) * std + mean


def bernoulli(input, p=None, *, generator=None, out=None):
    p = _check_p(input if p is None else p)
    draw = _random("rand", input.shape, 0.0, 1.0, input.dtype, generator)
    return (draw < p).to(input.dtype)


def _check_p(p):
    if isinstance(p, _C.Tensor):
        if not ((p >= 0) & (p <= 1)).all():
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    elif not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return p


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Without replacement by Gumbel's trick, with it by inverting the cumulative sums."""
    if not ((input >= 0) & (input < float("inf"))).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    rows = input if input.dim() == 2 else input.unsqueeze(0)
    if replacement:
        ends = rows.cumsum(1)
        draw = _random("rand", (rows.shape[0], num_samples), 0.0, 1.0, None, generator)
        draw = draw * ends[:, -1:]
        picked = (draw.unsqueeze(2) >= ends.unsqueeze(1)).sum(2).clamp(max=rows.shape[1] - 1)
    else:
        if num_samples > rows.shape[1]:
            raise RuntimeError(
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
            )
        draw = _random("rand", rows.shape, 0.0, 1.0, _C.float64, generator)
        from simt.torch._functions import topk

        picked = topk(rows.log() - (-draw.log()).log(), num_samples, 1)[1]
    return picked if input.dim() == 2 else picked[0]


def manual_seed(seed):
    """Seeds the default generator; returns it."""
    return _C.default_generator.manual_seed(int(seed))


def seed():
    import os

    value = int.from_bytes(os.urandom(8), "little")
    _C.default_generator.manual_seed(value)
    return value


def initial_seed():
    return _C.default_generator.initial_seed()


def get_rng_state():
    return _C.tensor(
        [x - (1 << 64) * (x >> 63) for x in _C.default_generator._state()], dtype=_C.int64
    )


def set_rng_state(state):
    _C.default_generator._set_state(*(x % (1 << 64) for x in state.tolist()))
