"""Arrays from nothing or from other arrays."""

from simt import _core
from simt._core import arange, array, empty, eye, full, linspace, ndarray, ones, zeros


def asarray(a, dtype=None, order=None, *, blocking=False):
    """blocking: copies from the host are always finished on return."""
    return array(a, dtype, copy=False, order=order)


def ascontiguousarray(a, dtype=None):
    return array(a, dtype, copy=False, order="C", ndmin=1)


def asfortranarray(a, dtype=None):
    return array(a, dtype, copy=False, order="F")


def asanyarray(a, dtype=None, order=None):
    return asarray(a, dtype, order)


def copy(a, order="K"):
    return a.copy("K" if order is None else order)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """A NumPy array with a copy of the data."""
    if isinstance(a, ndarray):
        return a.get(stream, order, out)
    import numpy

    made = numpy.asarray(_core.host_array(a), order=order)
    if out is None:
        return made
    numpy.copyto(out, made)
    return out


def _like(make, a, dtype, order, subok, shape, *value):
    """An array as `a`, lying as it does (order K) or as asked for."""
    if subok:
        raise TypeError("subok is not supported")
    a = asarray(a)
    dtype = a.dtype if dtype is None else dtype
    if shape is not None:
        try:
            ndim = len(shape)
        except TypeError:
            ndim = 1
        if order in (None, "K", "k") and ndim != a.ndim:
            order = "C"
    shape = a.shape if shape is None else shape
    if order in (None, "K", "k"):
        axes = _core.memory_order(a)
        turned = make([shape[d] for d in axes], *value, dtype)
        back = [axes.index(d) for d in range(len(axes))]
        return turned.transpose(back) if back != sorted(back) else turned
    if order in ("A", "a"):
        order = "F" if a._f_contiguous and not a._c_contiguous else "C"
    return make(shape, *value, dtype, order)


def empty_like(a, dtype=None, order="K", subok=None, shape=None):
    return _like(empty, a, dtype, order, subok, shape)


def zeros_like(a, dtype=None, order="K", subok=None, shape=None):
    return _like(zeros, a, dtype, order, subok, shape)


def ones_like(a, dtype=None, order="K", subok=None, shape=None):
    return _like(ones, a, dtype, order, subok, shape)


def full_like(a, fill_value, dtype=None, order="K", subok=None, shape=None):
    return _like(full, a, dtype, order, subok, shape, fill_value)


def identity(n, dtype=float):
    return eye(n, dtype=dtype)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None):
    made = _core.ew_power(float(base), linspace(start, stop, num, endpoint))
    return made if dtype is None else made.astype(dtype)


def tri(N, M=None, k=0, dtype=float):
    M = N if M is None else M
    return (arange(N)[:, None] + k >= arange(M)).astype(dtype)


def tril(m, k=0):
    return _core.ew_where(tri(*m.shape[-2:], k, bool), m, array(0, m.dtype))


def triu(m, k=0):
    return _core.ew_where(tri(*m.shape[-2:], k - 1, bool), array(0, m.dtype), m)


def diag(v, k=0):
    v = asarray(v)
    if v.ndim == 2:
        return diagonal(v, k).copy()
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = v.size + abs(k)
    made = zeros((n, n), v.dtype)
    rows = arange(v.size) + max(-k, 0)
    made[rows, arange(v.size) + max(k, 0)] = v
    return made


def diagonal(a, offset=0, axis1=0, axis2=1):
    from simt.cupy._manipulation import moveaxis

    a = moveaxis(a, (axis1, axis2), (-2, -1))
    length = max(0, min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)))
    return a[..., arange(length) + max(-offset, 0), arange(length) + max(offset, 0)]


def meshgrid(*xi, indexing="xy", sparse=False, copy=True):
    from simt.cupy._manipulation import broadcast_arrays

    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    made = []
    for i, x in enumerate(xi):
        at = 1 - i if indexing == "xy" and i < 2 and n > 1 else i
        made.append(x.reshape((1,) * at + (-1,) + (1,) * (n - at - 1)))
    if sparse:
        return made
    made = broadcast_arrays(*made)
    return [x.copy() for x in made] if copy else made


def from_dlpack(x, /):
    return _core.from_dlpack(x)


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    import numpy

    return array(numpy.frombuffer(buffer, _core.own_lists(dtype), count, offset))


def fromiter(iterable, dtype, count=-1):
    import numpy

    return array(numpy.fromiter(_core.own_lists(iterable), _core.own_lists(dtype), count))


def load(file, mmap_mode=None, allow_pickle=False):
    """numpy.load into an array; files that need pickle are refused."""
    import numpy

    if allow_pickle:
        raise NotImplementedError("allow_pickle=True is not in simt: no pickle is executed")
    made = numpy.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    return array(made) if isinstance(made, numpy.ndarray) else made


def save(file, arr, allow_pickle=False):
    """Arrays of numbers need no pickle, so that allow_pickle changes nothing."""
    import numpy

    numpy.save(file, asnumpy(arr), allow_pickle=False)


def savez(file, *args, **kwds):
    import numpy

    numpy.savez(file, *map(asnumpy, args), **{k: asnumpy(v) for k, v in kwds.items()})
