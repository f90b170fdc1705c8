"""Host arrays that the device sees too (their base is NumPy's array, hence a module of its own)."""

import numpy

from simt import _core


class MappedNDArray(numpy.ndarray):
    """A NumPy array with the methods of a device array."""

    @property
    def __cuda_array_interface__(self):
        description = dict(self.__array_interface__)
        description.pop("descr", None)
        description["stream"] = None
        description["version"] = 3
        return description

    def device_array(self):
        """The same memory as a device array."""
        return _core.device_interface(self.__array_interface__, self)

    def copy_to_host(self, ary=None, stream=0):
        return self.device_array().copy_to_host(ary, stream)

    def copy_to_device(self, ary, stream=0):
        self.device_array().copy_to_device(ary, stream)

    def split(self, section, stream=0):
        return self.device_array().split(section, stream)

    def is_c_contiguous(self):
        return self.flags.c_contiguous

    def is_f_contiguous(self):
        return self.flags.f_contiguous


class ManagedNDArray(MappedNDArray):
    pass
