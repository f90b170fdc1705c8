"""Products of vectors and matrices, and what is made of them."""

import builtins

import numpy as np

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend.core import (
    FLOATS,
    convert_to_tensor,
    result_dtype,
)
from simt.keras_backend.numpy.common import _at_least, _host, _like_float, _operands
from simt.keras_backend.numpy.creation import zeros_like
from simt.keras_backend.numpy.elements import diagonal
from simt.keras_backend.numpy.reductions import sum
from simt.keras_backend.numpy.shapes import moveaxis
from simt.torch import _functions as F


def _product_dtype(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1.dtype is C.int8 and x2.dtype is C.int8:
        dtype = C.int32
    else:
        dtype = result_dtype(x1.dtype, x2.dtype)
    return x1.to(dtype), x2.to(dtype), dtype


def matmul(x1, x2):
    x1, x2, dtype = _product_dtype(x1, x2)
    if dtype is C.bool:
        return C.matmul(x1.to(C.int32), x2.to(C.int32)) > 0
    return C.matmul(x1, x2)


def dot(x1, x2):
    x1, x2 = _operands(x1, x2)
    if x1.dim() == 0 or x2.dim() == 0:
        return x1 * x2
    if x2.dim() == 1:
        return matmul(x1, x2)
    return tensordot(x1, x2, [[x1.dim() - 1], [x2.dim() - 2]])


def tensordot(x1, x2, axes=2):
    x1, x2 = _operands(x1, x2)
    if x1.dtype is C.bool:
        return F.tensordot(x1.to(C.int32), x2.to(C.int32), axes) > 0
    return F.tensordot(x1, x2, axes)


def inner(x1, x2):
    x1, x2 = _operands(x1, x2)
    if x1.dim() == 0 or x2.dim() == 0:
        return C.mul(x1, x2)
    return tensordot(x1, x2, [[x1.dim() - 1], [x2.dim() - 1]])


def vdot(x1, x2):
    return matmul(convert_to_tensor(x1).reshape(-1), convert_to_tensor(x2).reshape(-1))


def outer(x1, x2):
    x1, x2 = _operands(x1, x2)
    return C.mul(x1.reshape(-1, 1), x2.reshape(1, -1))


def kron(x1, x2):
    x1, x2 = _operands(x1, x2)
    n = builtins.max(x1.dim(), x2.dim())
    x1, x2 = _at_least(x1, n), _at_least(x2, n)
    shape = [a * b for a, b in zip(x1.shape, x2.shape, strict=True)]
    x1 = x1.reshape([m for a in x1.shape for m in (a, 1)])
    x2 = x2.reshape([m for b in x2.shape for m in (1, b)])
    return C.mul(x1, x2).reshape(shape)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    x1, x2 = _operands(x1, x2)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(
            "incompatible dimensions for cross product (dimension must be 2 or 3): "
            f"x1.shape={tuple(x1.shape)}, x2.shape={tuple(x2.shape)}"
        )
    flat = a.shape[-1] == b.shape[-1] == 2
    a0, a1, a2 = _three(a)
    b0, b1, b2 = _three(b)
    last = a0 * b1 - a1 * b0
    if flat:
        return last
    parts = F.broadcast_tensors(a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, last)
    return moveaxis(C.stack(parts, -1), -1, axisc)


def _three(x):
    parts = builtins.list(x.unbind(-1))
    return parts if len(parts) == 3 else [*parts, zeros_like(parts[0])]


def einsum(subscripts, *operands, **kwargs):
    operands = [convert_to_tensor(x) for x in operands]
    kinds = {x.dtype for x in operands}
    dtype = C.int32 if kinds == {C.int8} else result_dtype(*kinds)
    operands = [x.to(dtype) for x in operands]
    if "..." in subscripts:
        subscripts = _spell_out(subscripts.replace(" ", ""), operands)
    return F.einsum(subscripts, *operands)


def _spell_out(subscripts, operands):
    """The same subscripts with letters in place of '...'."""
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    depths = [x.dim() - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    most = builtins.max(d for t, d in zip(terms, depths, strict=True) if "..." in t)
    free = [
        c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts
    ]
    letters = "".join(free[:most])
    terms = [t.replace("...", letters[most - d :]) for t, d in zip(terms, depths, strict=True)]
    if not arrow:
        once = builtins.sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        right = "..." + "".join(once)
    return ",".join(terms) + "->" + right.replace("...", letters)


def correlate(x1, x2, mode="valid"):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = result_dtype(x1.dtype, x2.dtype)
    if dtype is C.int64:
        dtype = C.float64
    elif dtype not in FLOATS:
        dtype = C.float32
    made = np.correlate(_host(x1.to(C.float64)), _host(x2.to(C.float64)), mode)
    return convert_to_tensor(made, dtype)


def corrcoef(x):
    x = convert_to_tensor(x)
    dtype = _like_float(x.dtype)
    x = _at_least(x.to(dtype), 1)
    flat = x.dim() == 1
    x = _at_least(x, 2)
    x = x - C.mean(x, 1, keepdim=True)
    product = C.matmul(x, x.transpose(0, 1))
    scale = C.sqrt(diagonal(product))
    out = product / scale.unsqueeze(1) / scale.unsqueeze(0)
    out = C.clip(out, -1.0, 1.0)
    return out.reshape(()) if flat else out


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = convert_to_tensor(y)
    result = result_dtype(y.dtype, float)
    y = y.to(result)
    n = y.shape[axis]
    if x is not None:
        x = convert_to_tensor(x, result)
        if x.dim() == 1:
            form = [1] * y.dim()
            form[axis] = -1
            x = x.reshape(form)
        step = x.narrow(axis, 1, n - 1) - x.narrow(axis, 0, n - 1)
    else:
        step = convert_to_tensor(dx, result)
    return sum((y.narrow(axis, 1, n - 1) + y.narrow(axis, 0, n - 1)) * step / 2, axis)


def slogdet(x):
    from simt.keras_backend.linalg import slogdet

    return slogdet(x)


def vectorize(pyfunc, *, excluded=None, signature=None):
    from keras.src.backend.common.backend_utils import vectorize_impl

    return vectorize_impl(pyfunc, core.vectorized_map, excluded=excluded, signature=signature)
