"""Linear algebra: norms and products; factorisations are not there yet."""

from simt import _core
from simt._missing import module_hooks as _module_hooks
from simt.cupy._math import matmul, outer, tensordot  # noqa: F401


def norm(x, ord=None, axis=None, keepdims=False):
    inf = float("inf")
    if x.dtype.kind != "f":
        x = x.astype(float)
    if axis is None and (ord is None or (ord in ("fro", "f") and x.ndim == 2)):
        return _core.ew_sqrt(_core.ew_square(x).sum(keepdims=keepdims))
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    size = _core.ew_absolute(x)
    if len(axes) == 1:
        if ord is None or ord == 2:
            return _core.ew_sqrt(_core.ew_square(x).sum(axes, keepdims=keepdims))
        if ord == inf:
            return size.max(axes, keepdims=keepdims)
        if ord == -inf:
            return size.min(axes, keepdims=keepdims)
        if ord == 0:
            return (x != 0).sum(axes, keepdims=keepdims).astype(x.dtype)
        if ord == 1:
            return size.sum(axes, keepdims=keepdims)
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return (size**ord).sum(axes, keepdims=keepdims) ** (1.0 / ord)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    rows, columns = axes[0] % x.ndim, axes[1] % x.ndim
    if ord is None or ord in ("fro", "f"):
        return _core.ew_sqrt(_core.ew_square(x).sum(axes, keepdims=keepdims))
    if ord in (1, -1, inf, -inf):
        inner, outside = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = size.sum(inner, keepdims=True)
        made = (sums.max if ord > 0 else sums.min)(outside, keepdims=True)
        return made if keepdims else made.squeeze((rows, columns))
    raise NotImplementedError(f"norm of a matrix with ord={ord!r} is not in simt yet")


def trace(x, /, *, offset=0, dtype=None):
    """Sums of the diagonals of the last two axes, as numpy.linalg.trace."""
    from simt.cupy._math import trace as trace_of

    if x.ndim < 2:
        raise ValueError(f"array must be at least two-dimensional, got {x.ndim} dimensions")
    return trace_of(x, offset, -2, -1, dtype)


def lstsq(a, b, rcond=None):
    """There by name, for libraries that import it."""
    raise NotImplementedError("lstsq is not in simt yet; nearest is numpy.linalg.lstsq of .get()")


__getattr__, __dir__ = _module_hooks(globals())
