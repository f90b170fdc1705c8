"""Products, norms, clipping, linear algebra."""

from collections import namedtuple

from simt._core import torch as C
from simt.keras_backend import linalg
from simt.keras_backend import numpy as knp
from simt.tensorflow import errors
from simt.tensorflow._arrays import sizes
from simt.tensorflow._elementwise import allow, operands
from simt.tensorflow._tensor import EagerTensor, convert, is_tensor, native, shown
from simt.tensorflow._variable import Variable

SLogDet = namedtuple("LogMatrixDeterminant", ("sign", "log_abs_determinant"))
_FACTORS = "bfloat16, half, float, double, int32, int64, complex64, complex128"
_MATH = "bfloat16, half, float, double, complex64, complex128"


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    a_is_sparse=False,
    b_is_sparse=False,
    output_type=None,
    grad_a=False,
    grad_b=False,
    name=None,
):
    a, b = operands("MatMul", a, b)
    kernel = "MatMul" if a.dim() == b.dim() == 2 or min(a.dim(), b.dim()) < 2 else "BatchMatMulV2"
    if a.dim() < 2 or b.dim() < 2:
        rank = a.dim() if a.dim() < 2 else b.dim()
        raise errors.refused(kernel, f"In[0] and In[1] ndims must be == 2: {rank}")
    allow(kernel, _FACTORS, a.dtype)
    shapes = [errors.dims(x.shape) for x in (a, b)]
    a = a.transpose(-2, -1) if transpose_a or adjoint_a else a
    b = b.transpose(-2, -1) if transpose_b or adjoint_b else b
    if a.shape[-1] != b.shape[-2]:
        text = f"Matrix size-incompatible: In[0]: {shapes[0]}, In[1]: {shapes[1]}"
        raise errors.refused(kernel, text)
    for n, m in zip(a.shape[-3::-1], b.shape[-3::-1], strict=False):
        if n != m and n != 1 and m != 1:
            text = "In[0] and In[1] must have compatible batch dimensions: "
            raise errors.refused(kernel, text + f"{shapes[0]} vs. {shapes[1]}")
    made = knp.matmul(a, b)
    return made if output_type is None else made.to(native(output_type))


def _add_matmul(kind):
    kind.__matmul__ = lambda self, other: shown(matmul(self, other))
    kind.__rmatmul__ = lambda self, other: shown(matmul(convert(other, self._tensor.dtype), self))


_add_matmul(EagerTensor)
_add_matmul(Variable)


def matvec(
    a,
    b,
    transpose_a=False,
    adjoint_a=False,
    a_is_sparse=False,
    b_is_sparse=False,
    name=None,
):
    b = convert(b)
    return matmul(a, b.unsqueeze(-1), transpose_a, adjoint_a=adjoint_a).squeeze(-1)


def tensordot(a, b, axes, name=None):
    a, b = operands("MatMul", a, b)
    if is_tensor(axes):
        axes = convert(axes).tolist()
    return knp.tensordot(a, b, axes)


def einsum(equation, *inputs, **kwargs):
    parts = [convert(x) for x in inputs]
    for i, x in enumerate(parts):
        if x.dtype is not parts[0].dtype:
            raise errors.mismatch("Einsum", i, parts[0].dtype, x.dtype)
    _check_einsum(equation, parts)
    return knp.einsum(equation, *parts)


def _check_einsum(equation, parts):
    known = {}
    for term, x in zip(equation.partition("->")[0].split(","), parts, strict=False):
        term = term.strip()
        for axis, letter in enumerate(term if "." not in term else ""):
            if axis < x.dim() and known.setdefault(letter, x.shape[axis]) != x.shape[axis]:
                text = (
                    f"Expected dimension {known[letter]} at axis {axis} of the input shaped "
                    f"{errors.dims(x.shape)} but got dimension {x.shape[axis]}"
                )
                raise errors.refused("Einsum", text, form=f"Einsum_N_{len(parts)}")


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    tensor = convert(tensor)
    allow("Sqrt", _MATH, tensor.dtype)
    if isinstance(ord, str) and ord not in ("euclidean", "fro"):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    plain = ord in ("euclidean", "fro")
    if plain or axis is None:
        axes = None if axis is None else sizes(axis)
        if plain or ord == 2:
            return C.sqrt(knp.sum(C.square(tensor), axes, bool(keepdims)))
        tensor, axis = tensor.reshape(-1), 0
    axis = sizes(axis) if isinstance(axis, (tuple, list)) else int(axis)
    return linalg.norm(tensor, ord, axis, bool(keepdims))


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    t = convert(t)
    low, high = (
        v if isinstance(v, (int, float)) and not isinstance(v, bool) else convert(v)
        for v in (clip_value_min, clip_value_max)
    )
    for v in (low, high):
        if isinstance(v, (int, float)):
            convert(v, t.dtype)  # says why not
        elif v.dtype is not t.dtype:
            raise errors.mismatch("Minimum", 1, t.dtype, v.dtype)
    return knp.clip(t, low, high)


def clip_by_norm(t, clip_norm, axes=None, name=None):
    t = convert(t)
    clip_norm = convert(clip_norm, None if is_tensor(clip_norm) else t.dtype)
    size = C.sqrt(knp.sum(C.square(t), axes, True))
    return t * (clip_norm / C.maximum(size, clip_norm))


def global_norm(t_list, name=None):
    return C.sqrt(sum(C.sum(C.square(convert(t))) for t in t_list if t is not None))


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    size = global_norm(t_list) if use_norm is None else convert(use_norm)
    clip_norm = convert(clip_norm)
    scale = clip_norm / C.maximum(size, clip_norm)
    return [None if t is None else convert(t) * scale for t in t_list], size


def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    x = convert(x)
    axis = dim if axis is None else axis
    return x * C.rsqrt(C.clamp_min(knp.sum(C.square(x), axis, True), epsilon))


def add_n(inputs, name=None):
    inputs = [convert(x) for x in inputs]
    if not inputs:
        raise ValueError(
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype "
            "and shape."
        )
    for i, x in enumerate(inputs):
        if x.dtype is not inputs[0].dtype:
            raise errors.mismatch("AddN", i, inputs[0].dtype, x.dtype)
        if x.shape != inputs[0].shape:
            a, b = errors.dims(inputs[0].shape), errors.dims(x.shape)
            raise errors.refused(
                "AddN",
                f"Inputs to operation AddN must have the same size and shape.  Input 0: {a} != "
                f"input {i}: {b}",
                form=f"AddN_N_{len(inputs)}",
            )
    total = inputs[0]
    for x in inputs[1:]:
        total = total + x
    return total


def scalar_mul(scalar, x, name=None):
    x = convert(x)
    return x * (scalar if isinstance(scalar, (int, float)) else convert(scalar))


# ---- linear algebra


def _square(kernel, x):
    x = convert(x)
    if x.dim() < 2 or x.shape[-1] != x.shape[-2]:
        raise errors.refused(kernel, "Input matrix must be square.")
    return x


def inv(input, adjoint=False, name=None):
    x = _square("MatrixInverse", input)
    try:
        made = linalg.inv(x)
    except Exception as e:
        if "ingular" not in str(e):
            raise
        raise errors.refused("MatrixInverse", "Input is not invertible.") from e
    return made.transpose(-2, -1) if adjoint else made


def det(input, name=None):
    return linalg.det(_square("MatrixDeterminant", input))


def solve(matrix, rhs, adjoint=False, name=None):
    matrix, rhs = _square("MatrixSolve", matrix), convert(rhs)
    return linalg.solve(matrix.transpose(-2, -1) if adjoint else matrix, rhs)


def cholesky(input, name=None):
    return linalg.cholesky(_square("Cholesky", input))


def qr(input, full_matrices=False, name=None):
    return linalg.qr(convert(input), "complete" if full_matrices else "reduced")


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    if not compute_uv:
        return linalg.svd(convert(tensor), full_matrices, False)
    u, s, v = linalg.svd(convert(tensor), full_matrices, True)
    return s, u, v.transpose(-2, -1)


def eigh(tensor, name=None):
    return tuple(linalg.eigh(_square("SelfAdjointEigV2", tensor)))


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    matrix, rhs = convert(matrix), convert(rhs)
    across = matrix.transpose(-2, -1)
    normal = knp.matmul(across, matrix)
    if l2_regularizer:
        normal = normal + l2_regularizer * knp.eye(matrix.shape[-1]).to(matrix.dtype)
    return linalg.solve(normal, knp.matmul(across, rhs))


def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    if (k, num_rows, num_cols, padding_value) != (0, -1, -1, 0):
        raise NotImplementedError(
            "tf.linalg.diag(k=...): not in simt yet; nearest is tf.linalg.diag"
        )
    x = convert(diagonal)
    n = x.shape[-1]
    on = (C._arange(0, n, 1, None).unsqueeze(-1) == C._arange(0, n, 1, None)).to(x.dtype)
    return x.unsqueeze(-1) * on


def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    return knp.diagonal(convert(input), int(k), -2, -1)


def trace(x, name=None):
    return knp.sum(diag_part(x), -1)


def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    return convert(a).transpose(-2, -1)


def adjoint(matrix, name=None):
    return convert(matrix).transpose(-2, -1)


def slogdet(input, name=None):
    return SLogDet(*linalg.slogdet(_square("LogMatrixDeterminant", input)))


def logdet(matrix, name=None):
    return slogdet(matrix)[1]


def pinv(a, rcond=None, validate_args=False, name=None):
    return linalg.pinv(convert(a), rcond)


def matrix_rank(a, tol=None, validate_args=False, name=None):
    return linalg.matrix_rank(convert(a), tol).to(C.int32)


def cross(a, b, name=None):
    a, b = operands("Cross", a, b)
    return knp.cross(a, b)


def normalize(tensor, ord="euclidean", axis=None, name=None):
    tensor = convert(tensor)
    size = norm(tensor, ord, axis, True)
    return tensor / size, size


def eigvalsh(tensor, name=None):
    return eigh(tensor)[0]


def band_part(input, num_lower, num_upper, name=None):
    x, low, high = convert(input), int(num_lower), int(num_upper)
    rows = C._arange(0, x.shape[-2], 1, None).unsqueeze(-1)
    away = C._arange(0, x.shape[-1], 1, None) - rows
    keep = (away >= -low) if low >= 0 else (away == away)
    if high >= 0:
        keep = C.logical_and(keep, away <= high)
    return C.where(keep, x, knp.zeros_like(x))
