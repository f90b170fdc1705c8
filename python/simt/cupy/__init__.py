"""The cupy face: CuPy's names on simt's arrays (NumPy's semantics, computed when looked at).

NumPy is imported only when its types are asked for (float32, x.dtype) or arrays are copied out.
"""

from simt import _core
from simt._core import (  # noqa: F401
    arange,
    array,
    concatenate,
    empty,
    eye,
    full,
    linspace,
    ndarray,
    ones,
    stack,
    take_along_axis,
    zeros,
)
from simt._missing import module_hooks as _module_hooks

from . import _array as _array_module  # noqa: F401 (adds methods to ndarray)
from . import cuda, linalg, random  # noqa: F401
from ._creation import (  # noqa: F401
    asanyarray,
    asarray,
    ascontiguousarray,
    asfortranarray,
    asnumpy,
    copy,
    diag,
    diagonal,
    empty_like,
    from_dlpack,
    frombuffer,
    fromiter,
    full_like,
    identity,
    load,
    logspace,
    meshgrid,
    ones_like,
    save,
    savez,
    tri,
    tril,
    triu,
    zeros_like,
)
from ._kernel import RawKernel, RawModule  # noqa: F401
from ._manipulation import (  # noqa: F401
    append,
    argsort,
    array_split,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    column_stack,
    copyto,
    dsplit,
    dstack,
    expand_dims,
    flip,
    fliplr,
    flipud,
    hsplit,
    hstack,
    moveaxis,
    pad,
    ravel,
    repeat,
    reshape,
    roll,
    rollaxis,
    rot90,
    sort,
    split,
    squeeze,
    swapaxes,
    tile,
    transpose,
    vsplit,
    vstack,
)
from ._math import (  # noqa: F401
    allclose,
    argwhere,
    around,
    array_equal,
    average,
    clip,
    compress,
    count_nonzero,
    cumsum,
    deg2rad,
    diff,
    dot,
    flatnonzero,
    frexp,
    indices,
    inner,
    isclose,
    kron,
    ldexp,
    matmul,
    modf,
    nan_to_num,
    nanmean,
    nansum,
    ndim,
    nonzero,
    outer,
    ptp,
    rad2deg,
    reciprocal,
    shape,
    size,
    take,
    tensordot,
    trace,
    unravel_index,
    vdot,
    where,
)

__version__ = "13.6.0+simt"

newaxis = None
pi = 3.141592653589793
e = 2.718281828459045
euler_gamma = 0.5772156649015329
inf = float("inf")
nan = float("nan")

_ALIASES = {
    "amax": "max",
    "amin": "min",
    "round": "around",
    "radians": "deg2rad",
    "degrees": "rad2deg",
    "row_stack": "vstack",
    "concat": "concatenate",
    "permute_dims": "transpose",
}
for _name, _target in _core.table_names().items():  # the rows of the table of operations
    globals()[_name] = getattr(_core, _target)
mean, var, std = _core.red_mean, _core.red_var, _core.red_std
for _name, _target in _ALIASES.items():
    globals()[_name] = globals()[_target]
del _name, _target

# Types and facts of types are NumPy's own objects; NumPy is imported when one is asked for.
_FROM_NUMPY = frozenset(
    """bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 int_ uint
    intp uintp intc uintc byte ubyte short ushort longlong ulonglong half single double generic
    complex64 complex128 number integer signedinteger unsignedinteger inexact floating dtype finfo
    iinfo issubdtype promote_types isscalar ndindex""".split()
)

_lazy_getattr, _names = _module_hooks(globals(), lazy=("exceptions", "fft", "testing"))


def __getattr__(name):
    if name in _FROM_NUMPY:
        import numpy

        value = globals()[name] = getattr(numpy, name)
        return value
    return _lazy_getattr(name)


def __dir__():
    return sorted({*_names(), *_FROM_NUMPY})


def _dtype_of(x):
    """NumPy's functions of types take our arrays for their types."""
    return x.dtype if isinstance(x, ndarray) else _core.own_lists(x)


def can_cast(from_, to, casting="safe"):
    import numpy

    return numpy.can_cast(_dtype_of(from_), _dtype_of(to), casting)


def result_type(*arrays_and_dtypes):
    import numpy

    return numpy.result_type(*map(_dtype_of, arrays_and_dtypes))


def get_array_module(*args):
    """This module when an argument is one of its arrays, else NumPy."""
    for arg in args:
        if isinstance(arg, ndarray):
            import sys

            return sys.modules[__name__]
    import numpy

    return numpy


def is_available():
    return True


get_default_memory_pool = cuda.get_default_memory_pool
get_default_pinned_memory_pool = cuda.get_default_pinned_memory_pool
