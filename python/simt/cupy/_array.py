"""What ndarray does in Python: printing, NumPy's protocols, pickling, rare attributes."""

import os

from simt import _core
from simt._core import ndarray

_REFUSED = (
    "Implicit conversion to a NumPy array is not allowed. "
    "Please use `.get()` to construct a NumPy array explicitly."
)


def array_repr(a):
    return repr(a.get())


def array_str(a):
    return str(a.get())


def missing(a, name):
    """The error for an attribute that ndarray does not have."""
    from simt._missing import missing_attribute

    return missing_attribute("ndarray", name, dir(type(a)), kind="type")


def _lenient():
    return os.environ.get("SIMT_LENIENT", "0") not in ("", "0")


def _array(self, dtype=None, copy=None):
    if not _lenient():
        raise TypeError(_REFUSED)
    made = self.get()
    return made if dtype is None else made.astype(dtype, copy=False)


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """numpy.sin(cupy_array) is simt.cupy.sin of it."""
    import simt.cupy

    function = getattr(simt.cupy, ufunc.__name__, None)
    if method != "__call__" or function is None:
        return NotImplemented
    # a NumPy scalar on the left comes as an array without axes
    inputs = [x[()] if getattr(x, "shape", None) == () and _numpys(x) else x for x in inputs]
    out = kwargs.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        kwargs["out"] = out[0]
    return function(*inputs, **kwargs)


def _numpys(x):
    return type(x).__module__ == "numpy"


def _array_function(self, function, types, args, kwargs):
    import simt.cupy

    ours = getattr(simt.cupy, function.__name__, None)
    if ours is None or not all(issubclass(t, ndarray) for t in types):
        return NotImplemented
    return ours(*args, **kwargs)


def _reduce(self):
    from simt.cupy import array

    return array, (self.get(),)


def _format(self, spec):
    if self.ndim == 0:
        return format(self.item(), spec)
    return format(str(self), spec)


class Flags:
    """ndarray.flags: how it lies in memory, and whether the memory is its own."""

    __slots__ = ("_c", "_f", "_own")

    def __init__(self, c_contiguous, f_contiguous, owndata):
        self._c, self._f, self._own = c_contiguous, f_contiguous, owndata

    @property
    def c_contiguous(self):
        return self._c

    @property
    def f_contiguous(self):
        return self._f

    @property
    def owndata(self):
        return self._own

    @property
    def forc(self):
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self):
        return self.f_contiguous and not self.c_contiguous

    def __getitem__(self, name):
        names = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata"}
        known = ("c_contiguous", "f_contiguous", "owndata", "forc", "fnc")
        found = names.get(name, name.lower() if isinstance(name, str) else None)
        if found not in known:
            raise KeyError("Unknown flag")
        return getattr(self, found)

    def __eq__(self, other):
        if not isinstance(other, Flags):
            return NotImplemented
        return (self._c, self._f, self._own) == (other._c, other._f, other._own)

    __hash__ = None

    def __repr__(self):
        return (
            f"  C_CONTIGUOUS : {self.c_contiguous}\n"
            f"  F_CONTIGUOUS : {self.f_contiguous}\n"
            f"  OWNDATA : {self.owndata}\n"
        )


def _flags(self):
    return Flags(self._c_contiguous, self._f_contiguous, self.base is None)


class MemoryPointer:
    """ndarray.data: the address of the first element."""

    def __init__(self, owner):
        self._owner = owner
        self.ptr = owner.__cuda_array_interface__["data"][0]


def _device(self):
    from simt.cupy.cuda import Device

    return Device(0)


def _imag(self):
    from simt.cupy import zeros_like

    return zeros_like(self)


def _by_function(name):
    """A method that is the function of that name with self first."""

    def method(self, *args, **kwargs):
        import simt.cupy

        return getattr(simt.cupy, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _sort_in_place(self, axis=-1, kind=None):
    from simt.cupy import sort

    self[...] = sort(self, axis, kind)


_core.extend_type(
    ndarray,
    {
        "__module__": "cupy",
        "__array__": _array,
        "__array_ufunc__": _array_ufunc,
        "__array_function__": _array_function,
        "__array_priority__": 100,
        "__reduce__": _reduce,
        "__format__": _format,
        "flags": property(_flags),
        "device": property(_device),
        "data": property(MemoryPointer),
        "real": property(lambda self: self),
        "imag": property(_imag),
        "conj": lambda self: self,
        "argsort": _by_function("argsort"),
        "sort": _sort_in_place,
        "diagonal": _by_function("diagonal"),
        "trace": _by_function("trace"),
        "ptp": _by_function("ptp"),
    },
)
