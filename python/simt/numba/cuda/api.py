"""Arrays in the device's memory, and host arrays that the device sees too."""

from simt import _core

from ._device import Within


def to_device(obj, stream=0, copy=True, to=None):
    """A device array with a copy of obj (of an array in device memory: that memory itself)."""
    if to is not None:
        to.copy_to_device(obj, stream=stream)
        return to
    return _core.to_device(obj)


def device_array(shape, dtype="float64", strides=None, order="C", stream=0):
    """A device array; what is in it is not defined."""
    return _core.device_empty(shape, dtype, _order(shape, strides, order, dtype))


def _order(shape, strides, order, dtype):
    if strides is not None:
        import numpy

        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        strides = (strides,) if isinstance(strides, int) else tuple(strides)
        for o in "CF":
            if numpy.empty(shape, numpy.dtype(dtype), o).strides == strides:
                return o
        raise NotImplementedError(f"device_array: strides {strides} are not those of order C or F")
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}")
    return order


def _order_like(ary):
    """'F' for an array in Fortran's order only."""
    if isinstance(ary, _core.DeviceNDArray):
        return "F" if ary.is_f_contiguous() and not ary.is_c_contiguous() else "C"
    flags = getattr(ary, "flags", None)
    f = getattr(flags, "f_contiguous", False) and not getattr(flags, "c_contiguous", True)
    return "F" if f else "C"


def device_array_like(ary, stream=0):
    """A device array of ary's shape, dtype and order."""
    return _core.device_empty(tuple(ary.shape), ary.dtype, _order_like(ary))


def as_cuda_array(obj, sync=True):
    """A device array on the memory of obj, which has __cuda_array_interface__."""
    made = _core.device_share(obj)
    if made is None:
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return made


def is_cuda_array(obj):
    return isinstance(obj, _core.Array) or hasattr(obj, "__cuda_array_interface__")


def from_cuda_array_interface(desc, owner=None, sync=True):
    """A device array on the memory that desc describes; owner is kept alive."""
    return _core.device_interface(desc, owner)


def _host_dtype(dtype):
    import numpy

    from ..core.types import Type, as_dtype

    return as_dtype(dtype) if isinstance(dtype, Type) else numpy.dtype(dtype)


def pinned_array(shape, dtype="float64", strides=None, order="C"):
    """A NumPy array; all host memory can be used by the device here."""
    import numpy

    return numpy.empty(shape, _host_dtype(dtype), order)


def pinned_array_like(ary):
    return pinned_array(ary.shape, ary.dtype, order=_order_like(ary))


def mapped_array(
    shape, dtype="float64", strides=None, order="C", stream=0, portable=False, wc=False
):
    """A NumPy array that the device sees too."""
    from ._mapped import MappedNDArray

    return pinned_array(shape, dtype, strides, order).view(MappedNDArray)


def mapped_array_like(ary, stream=0, portable=False, wc=False):
    return mapped_array(ary.shape, ary.dtype, order=_order_like(ary))


def managed_array(shape, dtype="float64", strides=None, order="C", stream=0, attach_global=True):
    """A NumPy array that host and device share."""
    from ._mapped import ManagedNDArray

    return pinned_array(shape, dtype, strides, order).view(ManagedNDArray)


def pinned(*arylist):
    """Marks host arrays as page-locked for the `with` block: nothing to do here."""
    return Within()


def mapped(*arylist, **kws):
    """Device arrays on the memory of host arrays, for the `with` block."""
    made = []
    for ary in arylist:
        description = dict(ary.__array_interface__)
        made.append(_core.device_interface(description, ary))
    return Within(made[0] if len(made) == 1 else made)


def open_ipc_handle(*args):
    raise OSError("OS does not support CUDA IPC")
