"""The numba face: kernels in Python (numba.cuda), the types they are written with.

`import numba` under `simt run` means this module. NumPy is imported only when its types are asked
for. What njit and jit make is compiled in kernels and is plain Python on the host.
"""

from simt._missing import module_hooks as _module_hooks

from . import types  # noqa: F401
from ._host import (  # noqa: F401
    get_num_threads,
    jit,
    literal_unroll,
    njit,
    prange,
    set_num_threads,
)
from .core import config, errors  # noqa: F401
from .core.errors import *  # noqa: F403
from .core.types import (  # noqa: F401
    Signature,
    Type,
    b1,
    bool_,
    boolean,
    byte,
    c8,
    c16,
    char,
    complex64,
    complex128,
    double,
    f4,
    f8,
    float32,
    float64,
    float_,
    from_dtype,
    i1,
    i2,
    i4,
    i8,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    intp,
    long_,
    longlong,
    none,
    short,
    size_t,
    ssize_t,
    typeof,
    u1,
    u2,
    u4,
    u8,
    uchar,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    uintc,
    uintp,
    ulong,
    ulonglong,
    ushort,
    void,
)

__version__ = "0.61.2+simt"
version_info = (0, 61, 2)


def _make_ufunc(kind, ftylist_or_function, layout, target, options):
    from .cuda import vectorizers

    if callable(ftylist_or_function):
        return vectorizers.make(kind, target, (), layout, options)(ftylist_or_function)
    signatures = ftylist_or_function
    if isinstance(signatures, (str, Signature)) or isinstance(next(iter(signatures), ""), Type):
        signatures = [signatures]
    return vectorizers.make(kind, target, signatures, layout, options)


def vectorize(ftylist_or_function=(), target="cpu", **options):
    """@vectorize(['float32(float32, float32)'], target='cuda'): makes a function of arrays.

    signatures: one or a list, each with the type of its result; the first that fits a call is
    taken. target: 'cuda' (arrays must have its types), 'cpu' or 'parallel' (they are cast where
    that is safe; signatures are needed for these too). Returns a decorator that makes a UFunc.
    """
    return _make_ufunc("vectorize", ftylist_or_function, None, target, options)


def guvectorize(ftylist, signature, target="cpu", **options):
    """@guvectorize(['void(float32[:], float32[:])'], '(n)->()', target='cuda').

    The function gets whole core arrays; its last ones are the results, written in place. signature:
    the core dimensions of each; those of results must be in arguments. Returns a decorator that
    makes a GUFunc; target as for vectorize.
    """
    return _make_ufunc("guvectorize", ftylist, signature, target, options)


__getattr__, __dir__ = _module_hooks(globals(), lazy=("cuda", "extending", "np"))
