"""vectorize and guvectorize: functions of elements made functions of arrays.

A kernel is made of a text: one thread a result element (vectorize) or a core call (guvectorize).
Host arrays give host arrays, arrays of the device give arrays of the device. For target='cuda'
arrays must have the types of a signature, as in Numba; for 'cpu' and 'parallel' they are cast where
that is safe.
"""

import linecache
import re

import numpy

from simt import _core

from ..core import types
from . import _intrinsics, _ufunc_methods, api
from .dispatcher import jit

_NO_MATCH = (
    "No matching version.  GPU ufunc requires array arguments to have the exact types.  "
    "This behaves like regular ufunc with casting='no'."
)


def make(kind, target, signatures, layout, options):
    """What vectorize or guvectorize (kind; layout: '(n)->()') returns: a decorator."""
    if target not in ("cuda", "cpu", "parallel"):
        raise ValueError(f"{kind}: unsupported target {target!r}")
    identity = options.pop("identity", None)
    if not signatures and target == "cuda":
        raise TypeError(f"{kind}: target='cuda' needs signatures: ['float32(float32, float32)']")
    if not signatures and layout is not None:
        raise NotImplementedError(
            f"{kind} without signatures is not in simt yet; nearest is "
            f"{kind}(['(float32[:], float32[:])'], {layout!r})"
        )

    def decorate(func):
        device = func if hasattr(func, "py_func") else jit(func, device=True, **options)
        exact = target == "cuda"
        if layout is None:
            return UFunc(device, signatures, exact, identity)
        return GUFunc(device, signatures, exact, layout)

    return decorate


def _kernel(device, arguments, statement):
    """A kernel `if i < n: <statement>` that calls device as fn; one text for all that are alike."""
    text = f"def kernel({arguments}):\n    i = grid(1)\n    if i < n:\n        {statement}\n"
    name = f"<kernel({arguments}) of {statement}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"fn": device, "grid": _intrinsics.grid, "type_of": _intrinsics.type_of}
    exec(compile(text, name, "exec"), space)
    return jit(space["kernel"])


def _names(count):
    return [f"a{k}" for k in range(count)]


def _is_device(a):
    return api.is_cuda_array(a)


def _on_host(a):
    return api.as_cuda_array(a).copy_to_host() if _is_device(a) else a


def _arrays(ufunc, args, out):
    """The arguments of a call, lists made arrays and arrays of other faces device arrays."""
    if len(args) != ufunc.nin:
        raise TypeError(f"{ufunc.__name__} takes {ufunc.nin} arrays, {len(args)} given")
    if not all(o is None or _is_device(o) or isinstance(o, numpy.ndarray) for o in out):
        raise TypeError(f"{ufunc.__name__}: out must be an array")
    return [api.as_cuda_array(a) if _is_device(a) else _on_numpy(a) for a in args]


def _on_numpy(a):
    """What NumPy's functions may be asked about: an array or a number."""
    plain = isinstance(a, (numpy.ndarray, numpy.generic, int, float, complex))
    return a if plain else _core.host_array(a)


def _flat(a, shape, dtype):
    """All elements of a as dtype, broadcast to shape, in order: an array of one dimension."""
    if _is_device(a):
        if tuple(a.shape) == shape and a.is_c_contiguous():
            return a.reshape(a.size)
        a = a.copy_to_host()
        return api.to_device(numpy.broadcast_to(a, shape).reshape(-1))
    return numpy.broadcast_to(a.astype(dtype, copy=False), shape).reshape(-1)


def _result(out, given, shape):
    """The flat result as the caller wants it: in `given`, or an array of the shape."""
    if given is None:
        return out.reshape(shape) if shape or _is_device(out) else out[0]
    if _is_device(given):
        api.as_cuda_array(given)[...] = out.reshape(shape)
    else:
        given[...] = (out.copy_to_host() if _is_device(out) else out).reshape(shape)
    return given


class UFunc:
    """A function of elements, called with arrays: made by @vectorize.

    Arguments are arrays or numbers of any shapes that broadcast; the result has their shape and the
    dtype of the signature, on the device when an argument is there. out, or one argument more:
    where it goes. TypeError: no signature fits. Without signatures each call whose types fit none
    of those met so far adds its own, with the type of the function's result, as Numba's DUFunc.
    """

    max_blocksize = 1024

    def __init__(self, device, signatures, exact, identity=None):
        self._device, self._exact, self.identity = device, exact, identity
        self.__name__, self.__doc__ = device.__name__, device.__doc__
        self._loops = {}
        self._dynamic = not signatures
        for signature in signatures:
            self.add(signature)
        code = device.py_func.__code__
        self.nin = len(next(iter(self._loops))) if self._loops else code.co_argcount
        self.nout, self.nargs = 1, self.nin + 1
        self._kernels = {}

    def add(self, signature):
        """One version more: 'float32(float32, float32)'."""
        args, result = types.normalize_signature(signature)
        if result is None:
            raise TypeError(f"vectorize: {signature!r} needs a type of the result")
        self._loops[tuple(types.as_dtype(t) for t in args)] = types.as_dtype(result)

    @property
    def types(self):
        """The versions there are, as NumPy writes them: 'ff->f'."""
        return ["".join(t.char for t in k) + "->" + v.char for k, v in self._loops.items()]

    @property
    def ntypes(self):
        return len(self._loops)

    def __repr__(self):
        return f"<UFunc {self.__name__}>"

    def _loop(self, args):
        """The input dtypes of the first signature that these arguments fit."""
        if not any(numpy.ndim(a) for a in args):  # numbers only: as NumPy, by their own types
            own = [_core.host_array(a).dtype for a in args]
            for loop in self._loops:
                if all(map(numpy.can_cast, own, loop)):
                    return loop
        for loop in self._loops:
            if all(_fits(a, want, self._exact) for a, want in zip(args, loop, strict=True)):
                return loop
        if not self._dynamic:
            raise TypeError(_no_match(self, args))
        return self._add_loop(args)

    def _add_loop(self, args):
        """A version for the types of args; that of its result is what the compiler finds."""
        loop = tuple(a.dtype if numpy.ndim(a) else _core.host_array(a).dtype for a in args)
        if any(t.kind not in "biufc" for t in loop):
            raise TypeError(_no_match(self, args))
        names = ", ".join(_names(self.nin))
        kernel = _kernel(self._device, f"n, out, {names}", f"out[0] = type_of(fn({names}))")
        values = [
            t.type(_core.host_array(a).flat[0]) if numpy.size(a) else t.type()
            for a, t in zip(map(_on_host, args), loop, strict=True)
        ]
        number = numpy.zeros(1, numpy.uint8)
        kernel[1, 1](1, number, *values)
        if not number[0]:
            raise TypeError(f"{self.__name__} gives no number, as a function of elements must")
        (result,) = types.from_bytes(number.tobytes())
        self._loops[loop] = types.as_dtype(result)
        return loop

    def __call__(self, *args, out=None, stream=0):
        if len(args) == self.nin + 1 and out is None:
            *args, out = args
        if isinstance(out, tuple) and len(out) == 1:
            out = out[0]
        args = _arrays(self, args, (out,))
        loop = self._loop(args)
        shape = numpy.broadcast_shapes(*(tuple(numpy.shape(a)) for a in args))
        device = any(_is_device(a) for a in args)
        size = int(numpy.prod(shape))
        make = api.device_array if device else numpy.empty
        result = make(size, self._loops[loop])
        values = [
            _flat(a, shape, want) if numpy.ndim(a) else want.type(a[()] if _is_device(a) else a)
            for a, want in zip(args, loop, strict=True)
        ]
        if size:
            self._kernel_for(values)[-(-size // 256), 256, stream](size, result, *values)
        return _result(result, out, shape)

    def _kernel_for(self, values):
        key = tuple(numpy.ndim(v) for v in values)
        kernel = self._kernels.get(key)
        if kernel is None:
            names = _names(len(values))
            items = ", ".join(f"{a}[i]" if d else a for a, d in zip(names, key, strict=True))
            arguments = ", ".join(["n", "out", *names])
            kernel = _kernel(self._device, arguments, f"out[i] = fn({items})")
            self._kernels[key] = kernel
        return kernel

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False, initial=None, stream=0):
        """The fold of an array by this function of two arguments, along an axis, some, or all."""
        if not _is_device(array):
            array = _on_numpy(array)
        plain = out is None and dtype is None and initial is None and axis in (0, None)
        if self._exact and plain and not keepdims and numpy.ndim(array) == 1 and len(array) > 1:
            from ._reduction import Reduce

            return Reduce(self._device)(array[1:], init=array[0], stream=stream)
        return _ufunc_methods.reduce(self, array, axis, dtype, out, keepdims, initial)

    def accumulate(self, array, axis=0, dtype=None, out=None):
        """The folds of the beginnings of each line along the axis."""
        return _ufunc_methods.accumulate(self, array, axis, dtype, out)

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        """The folds of the pieces that begin at the indices."""
        return _ufunc_methods.reduceat(self, array, indices, axis, dtype, out)

    def outer(self, a, b, **options):
        """The function of every pair of an element of a and one of b."""
        return _ufunc_methods.outer(self, a, b, **options)

    def at(self, array, indices, others):
        """array[indices] = this(array[indices], others), also where an index comes twice."""
        return _ufunc_methods.at(self, array, indices, others)


def _fits(a, dtype, exact):
    """Whether a may be given to an argument of dtype; of numbers: not 1.5 to an integer."""
    if numpy.ndim(a):
        return a.dtype == dtype or (not exact and numpy.can_cast(a.dtype, dtype))
    kind = (a if _is_device(a) else _core.host_array(a)).dtype.kind
    return kind in {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}[dtype.kind]


def _no_match(ufunc, args):
    found = ", ".join(str(_core.host_array(a).dtype) for a in args)
    if ufunc._exact:
        return f"{_NO_MATCH}  Given: ({found})."
    return (
        f"ufunc '{ufunc.__name__}' not supported for the input types ({found}), and the inputs "
        "could not be safely coerced to any supported types"
    )


class GUFunc:
    """A function of whole core arrays: made by @guvectorize.

    An argument's last dimensions are those of its core, the ones before broadcast: results have
    their shape and then the core's. out (one, or a tuple), or more arguments: where they go.
    TypeError: no signature fits. ValueError: a core dimension has two sizes.
    """

    max_blocksize = 1024

    def __init__(self, device, signatures, exact, layout):
        self._device, self._exact, self.signature = device, exact, layout
        self.__name__, self.__doc__ = device.__name__, device.__doc__
        sides = layout.replace(" ", "").split("->")
        if len(sides) != 2:
            raise ValueError(f"guvectorize: {layout!r} is no signature such as '(m,n),(n)->(m)'")
        cores = [
            [tuple(d for d in c.split(",") if d) for c in re.findall(r"\(([^)]*)\)", side)]
            for side in sides
        ]
        self._in, self._out = cores
        self.nin, self.nout = len(cores[0]), len(cores[1])
        self._loops = []
        for signature in signatures:
            args, _ = types.normalize_signature(signature)
            if len(args) != self.nin + self.nout:
                raise TypeError(f"guvectorize: {signature} does not fit {layout!r}")
            self._loops.append(args)
        self._code = None
        self._kernels = {}

    def __repr__(self):
        return f"<GUFunc {self.__name__} {self.signature}>"

    def _loop(self, args):
        for loop in self._loops:
            pairs = zip(args, loop, strict=False)
            if all(_fits(a, types.as_dtype(t.dtype), self._exact) for a, t in pairs):
                return loop
        raise TypeError(_no_match(self, args))

    def _sizes(self, args):
        """(name of a core dimension -> its size, shape of the loop)."""
        sizes, loops = {}, []
        for a, core in zip(args, self._in, strict=True):
            shape = tuple(numpy.shape(a))
            if len(shape) < len(core):
                raise ValueError(f"{self.__name__}: {shape} has less dimensions than {core}")
            at = len(shape) - len(core)
            loops.append(shape[:at])
            for name, size in zip(core, shape[at:], strict=True):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(
                        f"{self.__name__}: dimension {name} is {sizes[name]} and {size}"
                    )
        return sizes, numpy.broadcast_shapes(*loops)

    def __call__(self, *args, out=None, stream=0):
        if len(args) == self.nin + self.nout and out is None:
            args, out = args[: self.nin], args[self.nin :]
        given = out if isinstance(out, tuple) else (out,) * self.nout
        args = _arrays(self, args, given)
        loop = self._loop(args)
        sizes, shape = self._sizes(args)
        count = int(numpy.prod(shape))
        device = any(_is_device(a) for a in args)
        values = [
            self._argument(a, t, core, shape, count, sizes)
            for a, t, core in zip(args, loop, self._in, strict=False)
        ]
        outs = []
        for t, core in zip(loop[self.nin :], self._out, strict=True):
            if any(name not in sizes for name in core):
                raise ValueError(f"{self.__name__}: the size of {core} is in no argument")
            tail = tuple(sizes[name] for name in core)
            make = api.device_array if device else numpy.empty
            outs.append(make((count, *(tail or (1,))), types.as_dtype(t.dtype)))
        if count:
            self._kernel_for(values)[-(-count // 64), 64, stream](count, *values, *outs)
        results = tuple(
            _result(o, g, (*shape, *(sizes[name] for name in core)))
            for o, g, core in zip(outs, given, self._out, strict=True)
        )
        return results[0] if self.nout == 1 else results

    def _argument(self, a, t, core, shape, count, sizes):
        """An array of the core calls' arguments, one after the other."""
        dtype = types.as_dtype(t.dtype)
        tail = tuple(sizes[name] for name in core)
        if not core and isinstance(t, types.Array):
            tail = (1,)
        if not numpy.ndim(a):
            a = numpy.full((1,) * len(tail), a[()] if _is_device(a) else a, dtype)
        elif not core and tail:
            a = a.reshape(*a.shape, 1)
        whole = (*shape, *tail)
        flat = _flat(a, whole, dtype)
        return flat.reshape((count, *tail)) if tail else flat

    def _kernel_for(self, values):
        key = tuple(v.ndim for v in values)
        kernel = self._kernels.get(key)
        if kernel is None:
            names = _names(self.nin + self.nout)
            arguments, items = ", ".join(["n", *names]), ", ".join(f"{a}[i]" for a in names)
            kernel = self._kernels[key] = _kernel(self._device, arguments, f"fn({items})")
        return kernel
