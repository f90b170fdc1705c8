"""The classes of Numba's memory manager plug-ins, so that programs can define theirs.

simt has one memory for all its faces: a plug-in cannot take it over (set_memory_manager says so).
"""

from abc import ABCMeta, abstractmethod

from ._device import MemoryInfo  # noqa: F401


class MemoryPointer:
    """Memory of the device: address, bytes, and what keeps it alive."""

    __cuda_memory__ = True

    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.context, self.device_pointer, self.size = context, pointer, size
        self._cuda_memsize_ = size
        self.owner, self._finalizer = owner, finalizer

    def own(self):
        return self

    def free(self):
        """Calls the finalizer, once."""
        finalizer, self._finalizer = self._finalizer, None
        if finalizer is not None:
            finalizer()


class MappedMemory(MemoryPointer):
    pass


class PinnedMemory(MemoryPointer):
    pass


class IpcHandle:
    """A handle that another process may open."""

    def __init__(self, base, handle, size, source_info=None, offset=0):
        self.base, self.handle, self.size = base, handle, size
        self.source_info, self.offset = source_info, offset


class BaseCUDAMemoryManager(metaclass=ABCMeta):
    """What a memory manager of Numba defines."""

    def __init__(self, *args, **kwargs):
        self.context = kwargs.pop("context", None)

    @abstractmethod
    def memalloc(self, size): ...

    @abstractmethod
    def memhostalloc(self, size, mapped, portable, wc): ...

    @abstractmethod
    def mempin(self, owner, pointer, size, mapped): ...

    @abstractmethod
    def initialize(self): ...

    @abstractmethod
    def get_ipc_handle(self, memory): ...

    @abstractmethod
    def get_memory_info(self): ...

    @abstractmethod
    def reset(self): ...

    @abstractmethod
    def defer_cleanup(self): ...

    @property
    @abstractmethod
    def interface_version(self): ...


class HostOnlyCUDAMemoryManager(BaseCUDAMemoryManager):
    """A manager of device memory; memory of the host is Numba's own."""

    def memhostalloc(self, size, mapped=False, portable=False, wc=False):
        raise NotImplementedError("memory managers are not in simt yet")

    mempin = memhostalloc

    def initialize(self):
        pass

    def reset(self):
        pass

    def defer_cleanup(self):
        from ._device import defer_cleanup

        return defer_cleanup()


class GetIpcHandleMixin:
    def get_ipc_handle(self, memory):
        raise NotImplementedError("IPC handles of foreign memory are not in simt yet")


def set_memory_manager(plugin):
    """NotImplementedError: simt's own memory serves all its faces."""
    raise NotImplementedError(
        "set_memory_manager is not in simt yet; nearest is an object with "
        "__cuda_array_interface__, whose memory kernels use where it lies"
    )
