"""numba.cuda.cudadrv.driver: the driver's exceptions and memory questions."""

from simt import _core


class CudaSupportError(ImportError):
    pass


class CudaDriverError(Exception):
    pass


class CudaAPIError(CudaDriverError):
    """What a call of the driver returned: (code, text)."""

    def __init__(self, code, msg):
        self.code, self.msg = code, msg
        super().__init__(code, msg)

    def __str__(self):
        return f"[{self.code}] {self.msg}"


class LinkerError(RuntimeError):
    pass


class _Driver:
    """numba.cuda.cudadrv.driver.driver"""

    is_initialized = True

    def get_device_count(self):
        return 1

    def get_version(self):
        return (12, 0)


driver = _Driver()


def is_device_memory(o):
    """Whether an object lies in the device's memory."""
    return isinstance(o, _core.DeviceNDArray) or getattr(o, "__cuda_memory__", False)


def device_memory_size(o):
    return o.nbytes


def host_pointer(o):
    """The address of a host array's memory."""
    return o.ctypes.data


def device_pointer(o):
    """The address of a device array's memory."""
    return o.__cuda_array_interface__["data"][0]


def get_version():
    return driver.get_version()
