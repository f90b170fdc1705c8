"""numba.cuda: kernels in Python.

@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]

add[blocks, threads](a, b, c)
"""

from simt._core import DeviceNDArray  # noqa: F401
from simt._missing import module_hooks as _module_hooks

from . import _intrinsics, cudadrv  # noqa: F401
from ._device import (  # noqa: F401
    close,
    cuda_error,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    event,
    event_elapsed_time,
    external_stream,
    get_current_device,
    gpus,
    is_available,
    is_supported_version,
    legacy_default_stream,
    list_devices,
    per_thread_default_stream,
    profile_start,
    profile_stop,
    profiling,
    runtime,
    select_device,
    stream,
    synchronize,
)
from ._intrinsics import (  # noqa: F401
    atomic,
    blockDim,
    blockIdx,
    cg,
    const,
    gridDim,
    local,
    shared,
    threadIdx,
)
from .api import (  # noqa: F401
    as_cuda_array,
    device_array,
    device_array_like,
    from_cuda_array_interface,
    is_cuda_array,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    open_ipc_handle,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)
from .args import In, InOut, Out  # noqa: F401
from .cudadrv import devicearray  # noqa: F401
from .cudadrv.driver import CudaSupportError  # noqa: F401
from .dispatcher import CUDADispatcher, jit  # noqa: F401


def reduce(functor):
    """Decorator: makes a reduction of arrays of a function of two values."""
    from ._reduction import Reduce

    return Reduce(functor)


Reduce = reduce


globals().update({name: getattr(_intrinsics, name) for name in _intrinsics.NAMES})
globals().update(_intrinsics.VECTORS)

# memory.py is loaded when one of its names is asked for.
_OF_MEMORY = (
    *("BaseCUDAMemoryManager", "HostOnlyCUDAMemoryManager", "GetIpcHandleMixin", "IpcHandle"),
    *("MappedMemory", "MemoryInfo", "MemoryPointer", "PinnedMemory", "set_memory_manager"),
)
_missing, _names = _module_hooks(
    globals(), lazy=("fp16", "kernels", "libdevice", "memory", "random", "vectorizers")
)


def __getattr__(name):
    if name in _OF_MEMORY:
        from . import memory

        return getattr(memory, name)
    return _missing(name)


def __dir__():
    return sorted({*_names(), *_OF_MEMORY})
