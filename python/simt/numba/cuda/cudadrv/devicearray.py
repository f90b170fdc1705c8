"""numba.cuda.cudadrv.devicearray"""

from simt._core import DeviceNDArray, to_device

DeviceNDArrayBase = DeviceNDArray


def is_cuda_ndarray(o):
    return isinstance(o, DeviceNDArray)


def auto_device(obj, stream=0, copy=True):
    """(a device array of obj, whether it was made for this)."""
    return (obj, False) if is_cuda_ndarray(obj) else (to_device(obj), True)
