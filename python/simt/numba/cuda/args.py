"""In, Out and InOut: how a host array goes to a kernel. Without them it goes there and back."""

from simt import _core

from .api import to_device


def In(array):
    """Copied to the device; what the kernel writes does not come back."""
    return array if isinstance(array, _core.DeviceNDArray) else to_device(array)


def Out(array):
    """Copied back: here the memory itself."""
    return array


InOut = Out
