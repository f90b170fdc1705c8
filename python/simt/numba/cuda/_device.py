"""The device, its context, streams and events. There is one device; work is done in order."""

import time

from simt import _core

_DEFAULT = 0


class Within:
    """A `with` block that gives a value and calls a function at its end (without contextlib)."""

    def __init__(self, value=None, leave=None):
        self._value, self._leave = value, leave

    def __enter__(self):
        return self._value

    def __exit__(self, kind, *unused):
        if self._leave is not None and kind is None:
            self._leave()


def synchronize():
    """Waits for all work: here it only computes what other faces' arrays still owe."""
    _core.evaluate(None)


class Device:
    """What programs ask a device: name, limits, compute capability."""

    id = 0
    compute_capability = (7, 5)
    WARP_SIZE = 32
    MAX_THREADS_PER_BLOCK = 1024
    MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = 1024, 1024, 64
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = 2147483647, 65535, 65535
    MAX_SHARED_MEMORY_PER_BLOCK = 49152
    SHARED_MEMORY_PER_BLOCK = 49152
    MAX_THREADS_PER_MULTI_PROCESSOR = 1024
    MAX_REGISTERS_PER_BLOCK = 65536
    TOTAL_CONSTANT_MEMORY = 65536
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 7, 5
    PCI_BUS_ID = PCI_DEVICE_ID = PCI_DOMAIN_ID = 0
    CAN_MAP_HOST_MEMORY = UNIFIED_ADDRESSING = MANAGED_MEMORY = CONCURRENT_KERNELS = 1
    COOPERATIVE_LAUNCH = 1
    ASYNC_ENGINE_COUNT = 0
    supports_float16 = True
    supports_bfloat16 = False
    uuid = "GPU-00000000-0000-0000-0000-000000000000"

    @property
    def name(self):
        return _core.device_name().encode()

    @property
    def MULTIPROCESSOR_COUNT(self):
        from simt import _machine

        return _machine.threads()

    CLOCK_RATE = 1000000

    def get_primary_context(self):
        return _context

    def reset(self):
        pass

    def get_device_identity(self):
        return {"pci_domain_id": 0, "pci_bus_id": 0, "pci_device_id": 0}

    def __repr__(self):
        return f"<CUDA device 0 '{self.name}'>"

    def __eq__(self, other):
        return isinstance(other, Device)

    def __hash__(self):
        return 0


class MemoryInfo(tuple):
    """(free, total) bytes."""

    __slots__ = ()

    def __new__(cls, free, total):
        return super().__new__(cls, (free, total))

    free = property(lambda self: self[0])
    total = property(lambda self: self[1])


class _Deallocations:
    """Memory that waits to be given back: none does."""

    def clear(self):
        _core.trim()

    def __len__(self):
        return 0


class Context:
    """The context of the device."""

    id = 0
    handle = 0

    def __init__(self, device):
        self.device = device
        self.deallocations = _Deallocations()

    def get_memory_info(self):
        from simt._machine import memory

        return MemoryInfo(*memory())

    def synchronize(self):
        synchronize()

    def reset(self):
        _core.trim()

    def push(self):
        pass

    def pop(self):
        pass

    def create_stream(self):
        return Stream()

    def get_default_stream(self):
        return default_stream()

    def get_active_blocks_per_multiprocessor(self, func, blocksize, memsize=0, flags=None):
        return max(1, 1024 // blocksize)

    def get_max_potential_block_size(self, *args, **kwargs):
        return (self.device.MULTIPROCESSOR_COUNT, 256)

    def defer_cleanup(self):
        return Within()

    def __repr__(self):
        return "<CUDA context of device 0>"


class _Managed:
    """An entry of cuda.gpus: the device, and a `with` block that uses it."""

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        return getattr(self._device, name)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None

    def __repr__(self):
        return f"<Managed Device {self._device.id}>"

    def __str__(self):
        return repr(self)


class _Devices:
    """cuda.gpus"""

    def __init__(self, devices):
        self.lst = devices

    def __getitem__(self, number):
        return self.lst[number]

    def __iter__(self):
        return iter(self.lst)

    def __len__(self):
        return len(self.lst)

    def __str__(self):
        return ", ".join(map(str, self.lst))

    @property
    def current(self):
        return self.lst[0]


_device = Device()
_context = Context(_device)
gpus = _Devices([_Managed(_device)])


def _check_device(number):
    if number not in (0, None):
        from .cudadrv.driver import CudaAPIError

        raise CudaAPIError(101, "Call to cuDeviceGet results in CUDA_ERROR_INVALID_DEVICE")


def get_context(devnum=None):
    _check_device(devnum)
    return _context


current_context = get_context


def get_current_device():
    return _device


def list_devices():
    return gpus


def select_device(device_id):
    """Uses device 0, the only one; returns its context."""
    _check_device(device_id)
    return _context


def reset():
    _core.trim()


def close():
    """Gives back the memory that is kept for later use."""
    _core.trim()


def is_available():
    return True


def is_supported_version():
    return True


def cuda_error():
    return None


def detect():
    """Prints what devices there are; True when one can be used."""
    major, minor = _device.compute_capability
    print("Found 1 CUDA devices")
    print(f"id {_device.id}    {_device.name!r:>40}{'[SUPPORTED]':>30}")
    print(f"{'Compute Capability':>40}: {major}.{minor}")
    print(f"{'PCI Device ID':>40}: {_device.PCI_DEVICE_ID}")
    print(f"{'PCI Bus ID':>40}: {_device.PCI_BUS_ID}")
    print("Summary:")
    print("\t1/1 devices are supported")
    return True


def defer_cleanup():
    return Within()


def profile_start():
    pass


def profile_stop():
    pass


def profiling():
    return Within()


class Stream:
    """Work on every stream is done in the order of the program."""

    def __init__(self, handle=0, external=False):
        self.handle, self.external = handle, external

    def __int__(self):
        return self.handle

    def __bool__(self):
        return self.handle != 0

    def __repr__(self):
        if self.external:
            return f"<External CUDA stream {self.handle}>"
        return f"<CUDA stream {self.handle}>" if self.handle else "<Default CUDA stream>"

    def synchronize(self):
        synchronize()

    def auto_synchronize(self):
        """Waits for the stream at the end of the `with` block."""
        return Within(self, self.synchronize)

    def add_callback(self, callback, arg=None):
        """Calls callback(stream, status, arg) when the work before it is done: now."""
        synchronize()
        callback(self, 0, arg)

    def async_done(self):
        """An asyncio future of the work before it."""
        import asyncio

        synchronize()
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


_streams = 0


def stream():
    """A new stream."""
    global _streams
    _streams += 1
    return Stream(_streams)


def default_stream():
    return Stream(0)


legacy_default_stream = per_thread_default_stream = default_stream


def external_stream(ptr):
    return Stream(int(ptr), external=True)


class Event:
    """A point in time, set by record()."""

    def __init__(self, timing=True):
        self.timing = timing
        self._time = None

    def record(self, stream=_DEFAULT):
        synchronize()
        self._time = time.perf_counter()

    def query(self):
        """Whether what came before record() is done."""
        return True

    def synchronize(self):
        synchronize()

    def wait(self, stream=_DEFAULT):
        pass

    def elapsed_time(self, end):
        return event_elapsed_time(self, end)


def event(timing=True):
    """A new event."""
    return Event(timing)


def event_elapsed_time(start, end):
    """Milliseconds between two recorded events."""
    if not (start.timing and end.timing) or start._time is None or end._time is None:
        from .cudadrv.driver import CudaAPIError

        raise CudaAPIError(
            400,
            "Call to cuEventElapsedTime results in CUDA_ERROR_INVALID_HANDLE: "
            "both events must have timing and be recorded",
        )
    return (end._time - start._time) * 1e3


class _Runtime:
    """cuda.runtime"""

    def get_version(self):
        return (12, 0)

    def is_supported_version(self):
        return True

    @property
    def supported_versions(self):
        return ((11, 0), (12, 0))


runtime = _Runtime()


_core._absent(Stream, "numba.cuda.Stream")
_core._absent(Event, "numba.cuda.Event")
_core._absent(_core.DeviceNDArray, "numba.cuda.DeviceNDArray")
