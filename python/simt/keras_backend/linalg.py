"""keras.ops.linalg, by NumPy; inv, det, slogdet and solve with their gradients."""

import numpy as np

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import convert_to_numpy, convert_to_tensor
from simt.torch.autograd.function import Function


def _compute(function, *tensors):
    """function of NumPy arrays, in float32 at least, back in the first one's dtype."""
    dtype = tensors[0].dtype
    arrays = [
        convert_to_numpy(t.to(C.float64 if t.dtype is C.float64 else C.float32)) for t in tensors
    ]
    made = function(*arrays)
    if isinstance(made, tuple):
        return tuple(convert_to_tensor(np.asarray(part), dtype) for part in made)
    return convert_to_tensor(np.asarray(made), dtype)


def _transposed(x):
    return x.transpose(-2, -1)


class _Inverse(Function):
    @staticmethod
    def forward(ctx, a):
        out = _compute(np.linalg.inv, a)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        t = _transposed(ctx.saved_tensors[0])
        return -(t @ grad @ t)


def inv(x):
    return _Inverse.apply(knp._float(x))


def det(x):
    x = knp._float(x)
    if not x.requires_grad:
        return _compute(np.linalg.det, x)
    sign, log = slogdet(x)
    return sign * C.exp(log)


class _Slogdet(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        sign, log = _compute(lambda m: tuple(np.linalg.slogdet(m)), a)
        return sign, log

    @staticmethod
    def backward(ctx, grad_sign, grad):
        (a,) = ctx.saved_tensors
        return _transposed(inv(a)) * grad.unsqueeze(-1).unsqueeze(-1)


def slogdet(x):
    return _Slogdet.apply(knp._float(x))


def solve(a, b):
    a, b = knp._operands(a, b, float)
    if a.requires_grad or b.requires_grad:
        column = b.dim() == a.dim() - 1
        out = inv(a) @ (b.unsqueeze(-1) if column else b)
        return out.squeeze(-1) if column else out
    return _compute(_solve, a, b)


def _solve(a, b):
    if b.ndim == a.ndim - 1:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return np.linalg.solve(a, b)


def solve_triangular(a, b, lower=False):
    a = convert_to_tensor(a)
    return solve(knp.tril(a) if lower else knp.triu(a), b)


def cholesky(x, upper=False):
    x = knp._float(x)
    try:
        lower = _compute(np.linalg.cholesky, x)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"Cholesky decomposition failed: {error}") from None
    return _transposed(lower) if upper else lower


def cholesky_inverse(x, upper=False):
    x = convert_to_tensor(x)
    return inv(_transposed(x) @ x if upper else x @ _transposed(x))


def eig(x):
    raise NotImplementedError("linalg.eig: not in simt yet; nearest is linalg.eigh")


def eigh(x):
    return _compute(lambda a: tuple(np.linalg.eigh(a)), knp._float(x))


def lu_factor(x):
    x = knp._float(x)
    flat = x.reshape(-1, *x.shape[-2:])
    pairs = [_lu(m) for m in convert_to_numpy(flat.to(C.float64))]
    lu = np.stack([m for m, _ in pairs]).reshape(x.shape)
    pivots = np.stack([p for _, p in pairs]).reshape(*x.shape[:-2], -1)
    return convert_to_tensor(lu, x.dtype), convert_to_tensor(pivots, "int32")


def _lu(a):
    """LAPACK's form: factors in one matrix, and with which row each was exchanged."""
    a = a.copy()
    pivots = np.zeros(min(a.shape), np.int32)
    for i in range(min(a.shape)):
        p = i + int(np.argmax(np.abs(a[i:, i])))
        pivots[i] = p
        a[[i, p]] = a[[p, i]]
        if a[i, i] != 0:
            a[i + 1 :, i] /= a[i, i]
            a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
    return a, pivots


def norm(x, ord=None, axis=None, keepdims=False):
    x = knp._float(x)
    if axis is None and ord is None:
        return C.sqrt(knp.sum(C.square(x), None, keepdims))
    axes = tuple(range(x.dim())) if axis is None else tuple(knp._axes(axis, x.dim()))
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2 and ord in (None, "fro"):
        return C.sqrt(knp.sum(C.square(x), axes, keepdims))
    if len(axes) == 2 and ord in (1, -1, float("inf"), -float("inf")):
        return _matrix_norm(x, ord, axes, keepdims)
    return _compute(lambda a: np.linalg.norm(a, ord, axes, keepdims), x)


def _matrix_norm(x, ord, axes, keepdims):
    across, along = axes if abs(ord) == 1 else axes[::-1]
    pick = knp.max if ord > 0 else knp.min
    out = pick(knp.sum(C.abs(x), across, True), along, True)
    return out if keepdims else knp.squeeze(out, axes)


def _vector_norm(x, ord, axes, keepdims):
    if isinstance(ord, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    if ord == float("inf"):
        return knp.max(C.abs(x), axes, keepdims)
    if ord == -float("inf"):
        return knp.min(C.abs(x), axes, keepdims)
    if ord == 0:
        return knp.sum((x != 0).to(x.dtype), axes, keepdims)
    if ord == 2:
        return C.sqrt(knp.sum(C.square(x), axes, keepdims))
    return C.pow(knp.sum(C.pow(C.abs(x), ord), axes, keepdims), 1.0 / ord)


def qr(x, mode="reduced"):
    if mode not in ("reduced", "complete"):
        raise ValueError(
            "`mode` argument value not supported. "
            "Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    return _compute(lambda a: tuple(np.linalg.qr(a, mode)), knp._float(x))


def svd(x, full_matrices=True, compute_uv=True):
    def function(a):
        made = np.linalg.svd(a, full_matrices, compute_uv)
        return tuple(made) if compute_uv else made

    return _compute(function, knp._float(x))


def lstsq(a, b, rcond=None):
    a, b = knp._operands(a, b, float)
    return _compute(lambda x, y: np.linalg.lstsq(x, y, rcond)[0], a, b)


def matrix_rank(x, tol=None):
    x = knp._float(x)
    if x.dim() < 2:
        raise ValueError(
            f"Expected input to have rank >= 2. Received input with shape {tuple(x.shape)}."
        )
    return convert_to_tensor(np.linalg.matrix_rank(convert_to_numpy(x), tol), "int32")


def pinv(x, rcond=None):
    return _compute(lambda a: np.linalg.pinv(a, rcond), knp._float(x))


def jvp(fun, primals, tangents, has_aux=False):
    raise NotImplementedError("linalg.jvp: not in simt yet; nearest is a gradient by the tape")
