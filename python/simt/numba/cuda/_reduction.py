"""cuda.reduce: a reduction of an array by any function of two values."""

from . import _intrinsics as cuda
from .api import device_array
from .dispatcher import jit

_THREADS = 256
_MOST_BLOCKS = 64


class Reduce:
    """Made of a function of two values by @cuda.reduce; called with an array, it folds that."""

    def __init__(self, functor):
        self._functor = functor
        self._kernels = {}

    def __call__(self, arr, size=None, res=None, init=0, stream=0):
        """The fold of arr (its first `size` values) and init; into res[0] when that is given."""
        if arr.ndim != 1:
            raise TypeError("only support 1D array")
        if size is not None:
            arr = arr[:size]
        kind = arr.dtype.type
        init = kind(init)
        if arr.size == 0:
            if res is None:
                return init
            res[0] = init
            return None
        kernel = self._kernels.get(arr.dtype)
        if kernel is None:
            kernel = self._kernels[arr.dtype] = _compile(self._functor, arr.dtype)
        blocks = min(_MOST_BLOCKS, -(-arr.size // _THREADS))
        partial = device_array(blocks, arr.dtype)
        out = device_array(1, arr.dtype) if res is None else res
        kernel[blocks, _THREADS](arr, partial, init, False)
        kernel[1, _THREADS](partial, out, init, True)
        return out[0] if res is None else None


def _compile(functor, dtype):
    op = getattr(functor, "py_func", functor)

    @jit
    def reduce_kernel(values, out, init, with_init):
        cache = cuda.shared.array(_THREADS, dtype)
        thread = cuda.threadIdx.x
        n = values.size
        i = cuda.blockIdx.x * _THREADS + thread
        count = min(_THREADS, n - cuda.blockIdx.x * _THREADS)
        if i < n:
            folded = values[i]
            i += cuda.gridDim.x * _THREADS
            while i < n:
                folded = op(folded, values[i])
                i += cuda.gridDim.x * _THREADS
            cache[thread] = folded
        cuda.syncthreads()
        half = _THREADS // 2
        while half > 0:
            if thread < half and thread + half < count:
                cache[thread] = op(cache[thread], cache[thread + half])
            cuda.syncthreads()
            half //= 2
        if thread == 0:
            out[cuda.blockIdx.x] = op(init, cache[0]) if with_init else cache[0]

    return reduce_kernel
