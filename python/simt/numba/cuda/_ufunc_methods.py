"""The methods of what vectorize makes: reduce, accumulate, outer, reduceat, at, as NumPy's.

Each is a kernel in which a thread folds one line of the array, in its order: NumPy promises that
order for functions that it does not know to be associative.
"""

import operator

import numpy

from simt import _core

from . import _intrinsics
from .dispatcher import jit


def _kernel(device, make):
    """A kernel of `make`, once for each device function."""
    made = device.__dict__.setdefault("_ufunc_kernels", {})
    if make not in made:
        made[make] = jit(make(device))
    return made[make]


def _fold(fn):
    def fold(n, out, lines, first, with_first):
        i = _intrinsics.grid(1)
        if i < n:
            start = 0
            folded = first
            if not with_first:
                folded = lines[0, i]
                start = 1
            for k in range(start, lines.shape[0]):
                folded = fn(folded, lines[k, i])
            out[i] = folded

    return fold


def _running(fn):
    def running(n, out, lines):
        i = _intrinsics.grid(1)
        if i < n:
            folded = lines[0, i]
            out[0, i] = folded
            for k in range(1, lines.shape[0]):
                folded = fn(folded, lines[k, i])
                out[k, i] = folded

    return running


def _segments(fn):
    def segments(n, out, lines, starts):
        i = _intrinsics.grid(1)
        if i < n:
            for s in range(starts.size):
                begin = starts[s]
                end = lines.shape[0]
                if s + 1 < starts.size:
                    end = max(starts[s + 1], begin + 1)
                folded = lines[begin, i]
                for k in range(begin + 1, end):
                    folded = fn(folded, lines[k, i])
                out[s, i] = folded

    return segments


def _places(fn):
    def places(n, values, where, others):
        for k in range(n):
            values[where[k]] = fn(values[where[k]], others[k])

    return places


def _launch(kernel, n, *args):
    if n:
        kernel[-(-n // 64), 64](n, *args)


def _axis(axis, ndim):
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis must be an integer, not {axis!r}") from None
    if not -ndim <= axis < ndim:
        raise numpy.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _operand(ufunc, array, dtype, method):
    """The host array that a method works on, as the dtype of its loop."""
    if ufunc.nin != 2:
        raise ValueError(f"{method} only supported for binary functions")
    if hasattr(array, "copy_to_host"):
        array = array.copy_to_host()
    array = _core.host_array(array)
    want = array.dtype if dtype is None else numpy.dtype(_core.own_lists(dtype))
    loop = ufunc._loop((numpy.empty(1, want),) * 2)
    if loop[0] != ufunc._loops[loop]:
        raise TypeError(
            f"{ufunc.__name__}.{method}: the version for {loop[0]} gives {ufunc._loops[loop]}"
        )
    return array.astype(loop[0], copy=False)


def _given(out, result):
    """The result, in `out` where that is given."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return result if result.ndim else result[()]
    if tuple(out.shape) != result.shape:
        raise ValueError(f"out has the shape {tuple(out.shape)}, the result {result.shape}")
    if hasattr(out, "copy_to_device"):
        out.copy_to_device(result)
    else:
        out[...] = result
    return out


def _first(ufunc, dtype, initial):
    """What a fold begins with, as a number of the dtype; any, where that is an element."""
    if initial is None:
        return dtype.type(0)
    if hasattr(initial, "copy_to_host"):
        initial = initial.copy_to_host()
    first = numpy.asarray(dtype.type(_core.own_lists(initial)))
    if first.ndim:
        raise ValueError(
            f"{ufunc.__name__}.reduce: initial must be one number, not an array of {first.shape}"
        )
    return first[()]


def reduce(ufunc, array, axis, dtype, out, keepdims, initial):
    array = _operand(ufunc, array, dtype, "reduce")
    if axis is None:
        axes = tuple(range(array.ndim))
    else:
        axes = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(_axis(a, array.ndim) for a in axes)
        if len(set(axes)) != len(axes):
            raise ValueError("duplicate value in 'axis'")
    kept = [k for k in range(array.ndim) if k not in axes]
    length = int(numpy.prod([array.shape[k] for k in axes]))
    shape = tuple(array.shape[k] for k in kept)
    lines = numpy.ascontiguousarray(array.transpose([*sorted(axes), *kept]))
    lines = lines.reshape(length, int(numpy.prod(shape)))
    if initial is None:
        initial = ufunc.identity
    if length == 0 and initial is None:
        raise ValueError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        )
    result = numpy.empty(lines.shape[1], array.dtype)
    first = _first(ufunc, array.dtype, initial)
    kernel = _kernel(ufunc._device, _fold)
    _launch(kernel, lines.shape[1], result, lines, first, initial is not None)
    if keepdims:
        shape = tuple(1 if k in axes else n for k, n in enumerate(array.shape))
    return _given(out, result.reshape(shape))


def _lines(array, axis, method):
    """(the axis, the array as lines along it: 2-d, the shape of the other axes)."""
    if array.ndim == 0:
        raise TypeError(f"cannot {method} on a scalar")
    axis = _axis(axis, array.ndim)
    moved = numpy.ascontiguousarray(numpy.moveaxis(array, axis, 0))
    others = moved.shape[1:]
    return axis, moved.reshape(len(moved), int(numpy.prod(others))), others


def accumulate(ufunc, array, axis, dtype, out):
    array = _operand(ufunc, array, dtype, "accumulate")
    axis, lines, others = _lines(array, axis, "accumulate")
    result = numpy.empty_like(lines)
    if len(lines):
        _launch(_kernel(ufunc._device, _running), lines.shape[1], result, lines)
    return _given(out, numpy.moveaxis(result.reshape(len(lines), *others), 0, axis))


def reduceat(ufunc, array, indices, axis, dtype, out):
    array = _operand(ufunc, array, dtype, "reduceat")
    axis, lines, others = _lines(array, axis, "reduceat")
    starts = _core.host_array(indices)
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise TypeError("reduceat: the indices must be integers in one dimension")
    starts = starts.astype(numpy.int64)
    for start in starts:
        if not 0 <= start < len(lines):
            raise IndexError(f"index {start} out-of-bounds in reduceat [0, {len(lines)})")
    result = numpy.empty((len(starts), lines.shape[1]), array.dtype)
    _launch(_kernel(ufunc._device, _segments), lines.shape[1], result, lines, starts)
    return _given(out, numpy.moveaxis(result.reshape(len(starts), *others), 0, axis))


def outer(ufunc, a, b, **options):
    if ufunc.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    a, b = (x if hasattr(x, "reshape") else _core.host_array(x) for x in (a, b))
    return ufunc(a.reshape(*a.shape, *(1,) * b.ndim), b, **options)


def at(ufunc, array, indices, others):
    """array[indices] = ufunc(array[indices], others), one after the other."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError("first operand must be array")
    flat = array.reshape(-1)
    values = _operand(ufunc, flat, None, "at")
    places = numpy.arange(array.size).reshape(array.shape)[_core.own_lists(indices)]
    others = numpy.broadcast_to(_core.host_array(others).astype(values.dtype), places.shape)
    values = values.copy()
    kernel = _kernel(ufunc._device, _places)
    kernel[1, 1](places.size, values, places.reshape(-1), others.reshape(-1))
    array[...] = values.reshape(array.shape)
