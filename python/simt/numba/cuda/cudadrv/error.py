"""numba.cuda.cudadrv.error"""

from .driver import CudaDriverError, CudaSupportError  # noqa: F401


class CudaRuntimeError(Exception):
    pass


class NvvmError(Exception):
    pass


class NvvmSupportError(ImportError):
    pass
