"""keras.ops.linalg: values by NumPy, gradients as operations on tensors."""

import numpy as np
from keras.src import tree

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import convert_to_numpy, convert_to_tensor
from simt.torch import autograd
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


def _without_gradient(name, *tensors):
    """Says that there is none, rather than leave it out."""
    if any(t.requires_grad for t in tensors):
        raise NotImplementedError(f"the gradient of linalg.{name}: not in simt yet")


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


class _Cholesky(Function):
    @staticmethod
    def forward(ctx, a):
        out = _compute(np.linalg.cholesky, a)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (lower,) = ctx.saved_tensors
        inner = _half_triangle(_transposed(lower) @ grad)
        left = inv(lower)
        out = _transposed(left) @ inner @ left
        return (out + _transposed(out)) / 2


def _half_triangle(x):
    """The lower triangle with half of the diagonal."""
    return knp.tril(x) - _diagonals(x) / 2


def _diagonals(x):
    return x * knp.eye(x.shape[-2], x.shape[-1], dtype=x.dtype)


def cholesky(x, upper=False):
    x = knp._float(x)
    try:
        lower = _Cholesky.apply(x)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"Cholesky decomposition failed: {error}") from None
    return _transposed(lower) if upper else lower


def cholesky_inverse(x, upper=False):
    x = convert_to_tensor(x)
    return inv(_transposed(x) @ x if upper else x @ _transposed(x))


def eig(x):
    raise NotImplementedError("linalg.eig: not in simt yet; nearest is linalg.eigh")


class _Eigh(Function):
    @staticmethod
    def forward(ctx, a):
        values, vectors = _compute(lambda m: tuple(np.linalg.eigh(m)), a)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx, grad_values, grad_vectors):
        values, vectors = ctx.saved_tensors
        turned = _transposed(vectors)
        inner = (turned @ grad_vectors) * _gaps(values)
        inner = inner + knp.eye(values.shape[-1], dtype=values.dtype) * grad_values.unsqueeze(-2)
        out = vectors @ inner @ turned
        return (out + _transposed(out)) / 2


def _gaps(values):
    """1 / (values[j] - values[i]) at i, j; 0 on the diagonal."""
    gap = values.unsqueeze(-2) - values.unsqueeze(-1)
    diagonal = knp.eye(values.shape[-1], dtype="bool")
    return C.where(
        diagonal, knp._scalar(0, gap.dtype), 1 / C.where(diagonal, knp._scalar(1, gap.dtype), gap)
    )


def eigh(x):
    return _Eigh.apply(knp._float(x))


def lu_factor(x):
    x = knp._float(x)
    _without_gradient("lu_factor", x)
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
    if len(axes) == 2 and ord in (2, -2, "nuc"):
        return _spectral_norm(x, ord, axes, keepdims)
    return _compute(lambda a: np.linalg.norm(a, ord, axes, keepdims), x)


def _matrix_norm(x, ord, axes, keepdims):
    across, along = axes if abs(ord) == 1 else axes[::-1]
    pick = knp.max if ord > 0 else knp.min
    out = pick(knp.sum(C.abs(x), across, True), along, True)
    return out if keepdims else knp.squeeze(out, axes)


def _spectral_norm(x, ord, axes, keepdims):
    values = svd(knp.moveaxis(x, axes, (-2, -1)), compute_uv=False)
    pick = knp.sum if ord == "nuc" else knp.max if ord > 0 else knp.min
    out = pick(values, -1)
    return knp.expand_dims(out, axes) if keepdims else out


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
    x = knp._float(x)
    if mode == "reduced" and x.shape[-2] >= x.shape[-1]:
        return _Qr.apply(x)
    _without_gradient(f"qr of mode {mode!r} and a matrix of shape {tuple(x.shape[-2:])}", x)
    return _compute(lambda a: tuple(np.linalg.qr(a, mode)), x)


class _Qr(Function):
    """Of matrices with as many rows as columns or more."""

    @staticmethod
    def forward(ctx, a):
        q, r = _compute(lambda m: tuple(np.linalg.qr(m)), a)
        ctx.save_for_backward(q, r)
        return q, r

    @staticmethod
    def backward(ctx, grad_q, grad_r):
        q, r = ctx.saved_tensors
        inner = _half_triangle(r @ _transposed(grad_r) - _transposed(grad_q) @ q)
        return (grad_q + q @ (inner + _transposed(inner))) @ _transposed(inv(r))


class _Svd(Function):
    """The reduced form."""

    @staticmethod
    def forward(ctx, a):
        u, s, vt = _compute(lambda m: tuple(np.linalg.svd(m, False)), a)
        ctx.save_for_backward(u, s, vt)
        return u, s, vt

    @staticmethod
    def backward(ctx, grad_u, grad_s, grad_vt):
        u, s, vt = ctx.saved_tensors
        gaps = _gaps(s * s)
        row = s.unsqueeze(-2)
        on_u = (_transposed(u) @ grad_u) * gaps
        on_v = (vt @ _transposed(grad_vt)) * gaps
        inner = (on_u + _transposed(on_u)) * row + s.unsqueeze(-1) * (on_v + _transposed(on_v))
        inner = inner + knp.eye(s.shape[-1], dtype=s.dtype) * grad_s.unsqueeze(-2)
        out = u @ inner @ vt
        # What of the vectors' gradients lies outside the spaces that they span.
        rest = grad_u / row
        out = out + (rest - u @ (_transposed(u) @ rest)) @ vt
        rest = grad_vt / s.unsqueeze(-1)
        return out + u @ (rest - (rest @ _transposed(vt)) @ vt)


def svd(x, full_matrices=True, compute_uv=True):
    x = knp._float(x)
    if not compute_uv:
        return _Svd.apply(x)[1] if x.requires_grad else _compute(_singular_values, x)
    if not full_matrices or x.shape[-2] == x.shape[-1]:
        return _Svd.apply(x)
    _without_gradient("svd with full_matrices=True", x)
    return _compute(lambda a: tuple(np.linalg.svd(a)), x)


def _singular_values(a):
    return np.linalg.svd(a, compute_uv=False)


def lstsq(a, b, rcond=None):
    a, b = knp._operands(a, b, float)
    if a.requires_grad or b.requires_grad:
        return knp.matmul(pinv(a, rcond), b)
    return _compute(lambda x, y: np.linalg.lstsq(x, y, rcond)[0], a, b)


def matrix_rank(x, tol=None):
    x = knp._float(x)
    if x.dim() < 2:
        raise ValueError(
            f"Expected input to have rank >= 2. Received input with shape {tuple(x.shape)}."
        )
    return convert_to_tensor(np.linalg.matrix_rank(convert_to_numpy(x), tol), "int32")


class _Pinv(Function):
    """Of constant rank around the matrix (Golub and Pereyra, 1973)."""

    @staticmethod
    def forward(ctx, a, rcond):
        out = _compute(lambda m: np.linalg.pinv(m, rcond), a)
        ctx.save_for_backward(a, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        a, p = ctx.saved_tensors
        turned, back = _transposed(p), _transposed(grad)
        out = -(turned @ grad @ turned)
        above = back @ p @ turned
        out = out + above - a @ (p @ above)
        below = turned @ (p @ back)
        return out + below - (below @ p) @ a, None


def pinv(x, rcond=None):
    return _Pinv.apply(knp._float(x), rcond)


def jvp(fun, primals, tangents, has_aux=False):
    """By two backward passes: what the first gives is linear in what flows back, and the gradient
    of that is the product wanted."""
    before = C._set_grad_enabled(True)
    try:
        inputs = [convert_to_tensor(x).detach().clone().requires_grad_() for x in primals]
        made, aux = fun(*inputs) if has_aux else (fun(*inputs), None)
        outputs = tree.flatten(made)
        back = [knp.zeros_like(x).requires_grad_() for x in outputs]
        grads = autograd.grad(outputs, inputs, back, create_graph=True, allow_unused=True)
        pairs = [
            (grad, convert_to_tensor(t, grad.dtype))
            for grad, t in zip(grads, tangents, strict=True)
            if grad is not None
        ]
        flows, towards = zip(*pairs, strict=True)
        products = autograd.grad(flows, back, towards, allow_unused=True)
    finally:
        C._set_grad_enabled(before)
    products = [
        knp.zeros_like(x) if p is None else p for x, p in zip(outputs, products, strict=True)
    ]
    made = tree.map_structure(lambda x: x.detach(), made)
    out = made, tree.pack_sequence_as(made, products)
    return (*out, tree.map_structure(lambda x: x.detach(), aux)) if has_aux else out
