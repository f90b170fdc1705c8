"""The device: one, whatever simt runs on; work is done in order, so streams are all alike."""

import time

from simt import _core
from simt._missing import module_hooks as _module_hooks


def is_available():
    return True


def _synchronize():
    _core.evaluate(None)


class Device:
    """A device by number; there is device 0."""

    def __init__(self, device=None):
        self.id = 0 if device is None else int(device)
        if self.id != 0:
            raise runtime.CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def use(self):
        return self

    def synchronize(self):
        _synchronize()

    @property
    def mem_info(self):
        return runtime.memGetInfo()

    @property
    def attributes(self):
        """CUDA's limits, as simt's kernels have them."""
        import os

        return {
            "MaxThreadsPerBlock": 1024,
            "MaxBlockDimX": 1024,
            "MaxBlockDimY": 1024,
            "MaxBlockDimZ": 64,
            "MaxGridDimX": 2**31 - 1,
            "MaxGridDimY": 65535,
            "MaxGridDimZ": 65535,
            "MaxSharedMemoryPerBlock": 49152,
            "WarpSize": 32,
            "MultiProcessorCount": os.cpu_count() or 1,
            "ComputeCapabilityMajor": 7,
            "ComputeCapabilityMinor": 5,
            "UnifiedAddressing": 1,
        }

    @property
    def compute_capability(self):
        return "75"

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<CUDA Device {self.id}>"


def get_device_id():
    return 0


class Stream:
    """Work on every stream is done in the order of the program."""

    _made = 0
    _current = []  # the stack of `with`; `use` replaces its top

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.null_stream = bool(null)
        self.non_blocking = bool(non_blocking)
        self.ptds = bool(ptds)
        self.priority = 0 if priority is None else int(priority)
        self.device_id = 0
        if null:
            self.ptr = 0
        elif ptds:
            self.ptr = 2
        else:
            Stream._made += 1
            self.ptr = 16 * Stream._made

    def __eq__(self, other):
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self):
        return hash(self.ptr)

    def __repr__(self):
        return f"<Stream {self.ptr} (device {self.device_id})>"

    def use(self):
        if Stream._current:
            Stream._current[-1] = self
        else:
            Stream._current.append(self)
        return self

    def synchronize(self):
        _synchronize()

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        return None

    @property
    def done(self):
        return True

    def __enter__(self):
        if not Stream._current:
            Stream._current.append(Stream.null)
        Stream._current.append(self)
        return self

    def __exit__(self, *unused):
        Stream._current.pop()


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id=None):
    return Stream._current[-1] if Stream._current else Stream.null


class Event:
    """A point in time."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._time = None

    def record(self, stream=None):
        _synchronize()
        self._time = time.perf_counter()

    def synchronize(self):
        return None

    @property
    def done(self):
        return self._time is not None


def get_elapsed_time(start_event, end_event):
    """Milliseconds between two events."""
    return (end_event._time - start_event._time) * 1e3


class _Runtime:
    class CUDARuntimeError(RuntimeError):
        pass

    def getDeviceCount(self):
        return 1

    def getDevice(self):
        return 0

    def setDevice(self, device):
        Device(device)

    def deviceSynchronize(self):
        _synchronize()

    def streamSynchronize(self, stream):
        _synchronize()

    def runtimeGetVersion(self):
        return 12000

    def driverGetVersion(self):
        return 12000

    def memGetInfo(self):
        from simt._machine import memory

        return memory()

    def getDeviceProperties(self, device):
        import os

        Device(device)
        return {
            "name": _core.device_name().encode(),
            "totalGlobalMem": self.memGetInfo()[1],
            "multiProcessorCount": os.cpu_count() or 1,
            "major": 7,
            "minor": 5,
            "warpSize": 32,
            "maxThreadsPerBlock": 1024,
            "sharedMemPerBlock": 49152,
        }


runtime = _Runtime()


class _DriverError(RuntimeError):
    """A launch that the driver refuses: CUDADriverError."""

    def __init__(self, status, text):
        self.status = status
        super().__init__(f"CUDA_ERROR_INVALID_VALUE: {text}")


_DriverError.__name__ = _DriverError.__qualname__ = "CUDADriverError"


class MemoryPool:
    """The allocator's cache, by CuPy's names."""

    def used_bytes(self):
        return _core.stats()["bytes_in_use"]

    def free_bytes(self):
        return _core.stats()["bytes_cached"]

    def total_bytes(self):
        return self.used_bytes() + self.free_bytes()

    def free_all_blocks(self, stream=None):
        _core.trim()

    def n_free_blocks(self):
        return 0

    def get_limit(self):
        return 0


_pool = MemoryPool()


def get_default_memory_pool():
    return _pool


get_default_pinned_memory_pool = get_default_memory_pool


_core._absent(Stream, "cupy.cuda.Stream")
_core._absent(Event, "cupy.cuda.Event")
_core._absent(Device, "cupy.cuda.Device")
__getattr__, __dir__ = _module_hooks(globals(), lazy=("compiler", "device"))
