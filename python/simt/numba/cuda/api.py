"""Arrays in the device's memory, and host arrays that the device sees too."""

from simt import _core

from ._device import Within


def to_device(obj, stream=0, copy=True, to=None):
    """A device array with a copy of obj (of an array in device memory: that memory itself)."""
    if to is not None:
        to.copy_to_device(obj, stream=stream)
        return to
    made = _core.to_device(obj)
    if stream and made is not obj:
        made.stream = stream
    return made


def device_array(shape, dtype="float64", strides=None, order="C", stream=0):
    """A device array; what is in it is not defined."""
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}")
    made = _core.device_empty(shape, dtype, order, strides)
    if stream:
        made.stream = stream
    return made


def _order_like(ary):
    """'F' for an array in Fortran's order only."""
    if isinstance(ary, _core.DeviceNDArray):
        return "F" if ary.is_f_contiguous() and not ary.is_c_contiguous() else "C"
    flags = getattr(ary, "flags", None)
    f = getattr(flags, "f_contiguous", False) and not getattr(flags, "c_contiguous", True)
    return "F" if f else "C"


def _strides_like(ary):
    """Strides of dense memory whose axes are in ary's order; None: C's or Fortran's order does."""
    strides, shape = getattr(ary, "strides", None), ary.shape
    if len(shape) < 2 or not strides or not isinstance(strides, tuple) or _is_dense(ary):
        return None
    dense, step = [0] * len(shape), ary.dtype.itemsize
    for axis in sorted(range(len(shape)), key=strides.__getitem__):
        dense[axis] = step
        step *= shape[axis]
    return tuple(dense)


def _is_dense(ary):
    if isinstance(ary, _core.DeviceNDArray):
        return ary.is_c_contiguous() or ary.is_f_contiguous()
    flags = getattr(ary, "flags", None)
    return getattr(flags, "c_contiguous", True) or getattr(flags, "f_contiguous", False)


def device_array_like(ary, stream=0):
    """A device array of ary's shape and dtype, its axes in ary's order."""
    strides = _strides_like(ary)
    return device_array(tuple(ary.shape), ary.dtype, strides, _order_like(ary), stream)


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

    return as_dtype(dtype) if isinstance(dtype, Type) else numpy.dtype(_core.own_lists(dtype))


def pinned_array(shape, dtype="float64", strides=None, order="C"):
    """A NumPy array; all host memory can be used by the device here."""
    import numpy

    return numpy.empty(_core.own_lists(shape), _host_dtype(dtype), order)


def pinned_array_like(ary):
    import numpy

    if isinstance(ary, numpy.ndarray):
        return numpy.empty_like(ary, subok=False)
    return pinned_array(ary.shape, ary.dtype, order=_order_like(ary))


def mapped_array(
    shape, dtype="float64", strides=None, order="C", stream=0, portable=False, wc=False
):
    """A NumPy array that the device sees too."""
    from ._mapped import MappedNDArray

    return pinned_array(shape, dtype, strides, order).view(MappedNDArray)


def mapped_array_like(ary, stream=0, portable=False, wc=False):
    from ._mapped import MappedNDArray

    return pinned_array_like(ary).view(MappedNDArray)


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
