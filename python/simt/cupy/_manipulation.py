"""Shapes and joins; written with basic indexing, reshape and concatenate."""

import operator

from simt import _core
from simt._core import concatenate, empty, ndarray
from simt.cupy._creation import asarray


def _axis_error(axis, ndim):
    from numpy.exceptions import AxisError

    return AxisError(axis, ndim)


def _axis(axis, ndim):
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise _axis_error(axis, ndim)
    return axis % ndim if ndim else 0


def _axes(axis, ndim):
    many = axis if isinstance(axis, (tuple, list)) else (axis,)
    made = tuple(_axis(a, ndim) for a in many)
    if len(set(made)) != len(made):
        raise ValueError("repeated axis")
    return made


def reshape(a, newshape, order="C"):
    return a.reshape(newshape, order=order)


def ravel(a, order="C"):
    return a.ravel(order)


def transpose(a, axes=None):
    return a.transpose(axes if axes is None else tuple(axes))


def swapaxes(a, axis1, axis2):
    return a.swapaxes(axis1, axis2)


def moveaxis(a, source, destination):
    source, destination = _axes(source, a.ndim), _axes(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [n for n in range(a.ndim) if n not in source]
    for to, axis in sorted(zip(destination, source, strict=False)):
        order.insert(to, axis)
    return a.transpose(order) if a.ndim else a


def rollaxis(a, axis, start=0):
    axis = _axis(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


def squeeze(a, axis=None):
    return a.squeeze(axis)


def expand_dims(a, axis):
    if not isinstance(axis, (tuple, list)):
        return _core.expand_dims(a, axis)
    ndim = a.ndim + len(axis)
    made = set(_axes(axis, ndim))
    sizes = iter(a.shape)
    return a.reshape([1 if d in made else next(sizes) for d in range(ndim)])


def broadcast_to(array, shape, subok=False):
    if subok:
        raise NotImplementedError("subok=True of broadcast_to: subclasses are not in simt yet")
    return _core.broadcast_to(asarray(array), shape)


def broadcast_shapes(*shapes):
    import numpy

    return numpy.broadcast_shapes(*_core.own_lists(shapes))


def broadcast_arrays(*args):
    arrays = [asarray(a) for a in args]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return [a if a.shape == shape else _core.broadcast_to(a, shape) for a in arrays]


def _atleast(arrays, grow):
    made = [grow(asarray(a)) for a in arrays]
    return made[0] if len(made) == 1 else made


def atleast_1d(*arys):
    return _atleast(arys, lambda a: a.reshape(1) if a.ndim == 0 else a)


def atleast_2d(*arys):
    return _atleast(arys, lambda a: a if a.ndim >= 2 else a.reshape(1, -1))


def atleast_3d(*arys):
    def grow(a):
        return a.reshape(1, -1, 1) if a.ndim < 2 else a[:, :, None] if a.ndim == 2 else a

    return _atleast(arys, grow)


def vstack(tup, *, dtype=None, casting="same_kind"):
    return concatenate([atleast_2d(a) for a in tuple(tup)], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind"):
    arrays = [atleast_1d(a) for a in tuple(tup)]
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return concatenate(arrays, axis, dtype=dtype, casting=casting)


def dstack(tup):
    return concatenate([atleast_3d(a) for a in tuple(tup)], 2)


def column_stack(tup):
    return concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in map(asarray, tuple(tup))], 1)


def append(arr, values, axis=None):
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        return concatenate([arr.ravel(), values.ravel()])
    return concatenate([arr, values], axis)


def _cut(ary, ends, axis):
    axis = _axis(axis, ary.ndim)
    lead = (slice(None),) * axis
    starts = [0, *ends]
    return [ary[lead + (slice(a, b),)] for a, b in zip(starts, [*ends, None], strict=False)]


_MOST_SECTIONS = 2**27  # their list alone takes a gigabyte


def array_split(ary, indices_or_sections, axis=0):
    if not hasattr(indices_or_sections, "__index__"):
        if operator.length_hint(indices_or_sections) > _MOST_SECTIONS:
            raise MemoryError(f"array_split into more than {_MOST_SECTIONS} sections")
        return _cut(ary, [int(i) for i in indices_or_sections], axis)
    n = int(indices_or_sections)
    if n <= 0:
        raise ValueError("number sections must be larger than 0.")
    size = ary.shape[axis]
    each, more = divmod(size, n)
    filled = min(n, max(size, 1))  # the other pieces are empty: one array stands for all of them
    ends, at = [], 0
    for i in range(filled):
        at += each + (i < more)
        ends.append(at)
    pieces = _cut(ary, ends, axis)
    return pieces[:filled] + pieces[filled:] * (n - filled)


def split(ary, indices_or_sections, axis=0):
    whole = hasattr(indices_or_sections, "__index__")
    if whole and ary.shape[axis] % max(int(indices_or_sections), 1):
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def vsplit(ary, indices_or_sections):
    if ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    if ary.ndim < 1:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def dsplit(ary, indices_or_sections):
    if ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


def flip(a, axis=None):
    axes = range(a.ndim) if axis is None else _axes(axis, a.ndim)
    return a[tuple(slice(None, None, -1 if d in axes else 1) for d in range(a.ndim))]


def fliplr(a):
    if a.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(a, 1)


def flipud(a):
    return flip(a, 0)


def rot90(a, k=1, axes=(0, 1)):
    x, y = _axes(axes, a.ndim)
    k %= 4
    if k == 2:
        return flip(a, (x, y))
    if k == 0:
        return a[...]
    order = list(range(a.ndim))
    order[x], order[y] = y, x
    return flip(a, y).transpose(order) if k == 1 else flip(a.transpose(order), y)


def _roll_one(a, shift, axis):
    n = a.shape[axis]
    at = shift % n if n else 0
    if at == 0:
        return a
    lead = (slice(None),) * axis
    return concatenate([a[lead + (slice(n - at, None),)], a[lead + (slice(0, n - at),)]], axis)


def roll(a, shift, axis=None):
    if axis is None:
        return _roll_one(a.ravel(), int(shift), 0).reshape(a.shape).copy()
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    many = max(len(axes), len(shifts))
    if {len(axes), len(shifts)} - {1, many} or (many > 1 and not (axes and shifts)):
        raise ValueError(
            f"'shift' and 'axis' should be scalars or 1D sequences of one length: "
            f"{len(shifts)} shifts along {len(axes)} axes"
        )
    axes, shifts = axes * (many // len(axes)), shifts * (many // len(shifts))
    made = a
    for one, by in zip(axes, shifts, strict=False):
        made = _roll_one(made, int(by), _axis(one, a.ndim))
    return a.copy() if made is a else made


def tile(A, reps):
    reps = reps if isinstance(reps, (tuple, list)) else (reps,)
    a = asarray(A)
    ndim = max(a.ndim, len(reps))
    a = a.reshape((1,) * (ndim - a.ndim) + a.shape)
    reps = (1,) * (ndim - len(reps)) + tuple(reps)
    wide = a.reshape([n for size in a.shape for n in (1, size)])
    full = [n for r, size in zip(reps, a.shape, strict=False) for n in (r, size)]
    made = _core.broadcast_to(wide, full).reshape(
        [r * s for r, s in zip(reps, a.shape, strict=False)]
    )
    return made.copy() if max(reps, default=1) == 1 else made


def repeat(a, repeats, axis=None):
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    axis = _axis(axis, a.ndim)
    return a.take(_core.repeat_index(repeats, a.shape[axis]), axis)


def copyto(dst, src, casting="same_kind", where=None):
    import numpy

    if not isinstance(dst, ndarray):
        raise TypeError(f"Unsupported type {type(dst)}")
    kind = type(src) if isinstance(src, (bool, int, float)) else asarray(src).dtype
    fits = {bool: "?buif", int: "uif" if casting != "unsafe" else "?uif", float: "f"}.get(kind)
    ok = casting == "unsafe" or (
        dst.dtype.kind in fits.replace("?", "b")
        if fits
        else numpy.can_cast(kind, dst.dtype, casting)
    )
    if not ok:
        raise TypeError(
            f"Cannot cast {'scalar ' + repr(src) if fits else f'array data from {kind!r}'} to "
            f"{dst.dtype!r} according to the rule '{casting}'"
        )
    if where is None:
        dst[...] = src
        return
    mask = asarray(where)
    if mask.dtype != bool:
        raise TypeError(
            f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the "
            "rule 'safe'"
        )
    made = _core.ew_where(mask, src if fits else asarray(src).astype(dst.dtype, copy=False), dst)
    if made.shape != dst.shape:
        raise ValueError(
            f"could not broadcast input array from shape {made.shape} into shape {dst.shape}"
        )
    dst[...] = made


def pad(array, pad_width, mode="constant", constant_values=0):
    if mode != "constant":
        raise NotImplementedError(f"pad mode {mode!r} is not in simt yet")
    import numpy

    width = numpy.broadcast_to(_core.host_array(pad_width), (array.ndim, 2)).tolist()
    made = empty([n + a + b for n, (a, b) in zip(array.shape, width, strict=False)], array.dtype)
    made[...] = constant_values
    made[tuple(slice(a, a + n) for n, (a, _) in zip(array.shape, width, strict=False))] = array
    return made


def argsort(a, axis=-1, kind=None):
    """Positions that sort; always stable, whatever the kind."""
    _check_kind(kind)
    return _sorted(_core.argsort, a, axis)


def sort(a, axis=-1, kind=None):
    _check_kind(kind)
    return _sorted(_core.sort, a, axis)


def _check_kind(kind):
    if kind is not None and (
        not isinstance(kind, str) or kind[:1].lower() not in "qhms" or not kind
    ):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")


def _sorted(function, a, axis):
    if a.ndim == 0:
        raise ValueError("Sorting arrays with the rank of zero is not supported")
    return function(a.ravel(), 0) if axis is None else function(a, axis)
