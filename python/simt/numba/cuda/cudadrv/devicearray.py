"""numba.cuda.cudadrv.devicearray"""

from simt._core import DeviceNDArray

DeviceNDArrayBase = DeviceNDArray


def is_cuda_ndarray(o):
    return isinstance(o, DeviceNDArray)
