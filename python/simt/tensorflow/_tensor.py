"""tf.Tensor: a view of one of simt's tensors that shows what TensorFlow's shows, and no more.

`convert` gives the tensor of whatever TensorFlow takes for one, by its rules: Python's numbers are
float32 and int32, nothing is promoted. `shown` gives the view. Functions of the face work on
tensors and are made public by `public`; Keras computes with tensors, whatever it is given.
"""

import abc
import functools

import numpy as np
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.keras_tensor import KerasTensor

from simt._core import torch as C
from simt.keras_backend import core
from simt.tensorflow import errors
from simt.tensorflow._types import OF_NATIVE, TensorShape, as_dtype

FLOATS = core.FLOATS
_NUMPYS = ("T", "astype", "ravel", "transpose", "reshape", "clip", "size", "tolist", "data")
_NAME = "tensorflow.python.framework.ops.EagerTensor"
_new = object.__new__


class Tensor(abc.ABC):  # noqa: B024 (nobody derives from it)
    """What isinstance asks for: tensors of tf and of Keras."""


class EagerTensor(core.View):
    """A tensor with a value; it cannot be changed."""

    @property
    def dtype(self):
        return OF_NATIVE[self._tensor.dtype]

    @property
    def shape(self):
        made = _new(TensorShape)
        made._dims = tuple(self._tensor.shape)
        return made

    get_shape = lambda self: self.shape
    ndim = property(lambda self: self._tensor.dim())
    device = property(lambda self: errors.DEVICE)
    backing_device = device

    def set_shape(self, shape):
        if not self.shape.is_compatible_with(shape):
            raise ValueError(
                f"Tensor's shape {self.shape} is not compatible with supplied shape "
                f"{TensorShape(shape)}."
            )

    def numpy(self):
        """The values: an array, or a number of NumPy's."""
        return look(self._tensor)[()]

    def ref(self):
        return Reference(self)

    experimental_ref = ref

    def cpu(self):
        return self

    def gpu(self, gpu_index=0):
        raise errors.InvalidArgumentError(None, None, "there is no GPU for simt.tensorflow yet")

    def eval(self, feed_dict=None, session=None):
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what you're "
            "looking for?"
        )

    def __setitem__(self, key, value):
        raise TypeError(f"'{_NAME}' object does not support item assignment")

    def __getattr__(self, name):
        if name in ("name", "graph", "op"):
            raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")
        if name in _NUMPYS:
            raise AttributeError(
                f"EagerTensor object has no attribute '{name}'. \n"
                "        tf.reshape, tf.transpose, tf.cast and kin are functions; .numpy() gives "
                "a NumPy array"
            )
        raise AttributeError(f"'{_NAME}' object has no attribute '{name}'")

    def __repr__(self):
        values = self.numpy()
        text = repr(values if isinstance(values, np.ndarray) else values.item())
        newline = "\n" if "\n" in text else ""
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={newline}{text}>"

    def __str__(self):
        return f"tf.Tensor({self._text()}, shape={self.shape}, dtype={self.dtype.name})"

    def _text(self):
        text = str(self.numpy())
        return "\n" + text if "\n" in text else text

    def __format__(self, spec):
        return self.numpy().__format__(spec)

    def __array__(self, dtype=None, copy=None):
        values = look(self._tensor)
        return values if dtype is None else values.astype(dtype)

    __array_priority__ = 100

    def __dlpack__(self, **kw):
        return self._tensor.detach().__dlpack__(**kw)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()

    def __len__(self):
        if not self.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return self._tensor.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (shown(x) for x in self._tensor.unbind(0))

    def __bool__(self):
        return bool(look(self._tensor))

    def __int__(self):
        return int(self.numpy())

    def __float__(self):
        return float(self.numpy())

    def __complex__(self):
        return complex(self.numpy())

    def __index__(self):
        return self.numpy().__index__()

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __copy__(self):
        return shown(self._tensor)

    def __deepcopy__(self, memo):
        return shown(self._tensor.detach().clone())

    def __reduce__(self):
        return _rebuild, (self.numpy(), self.dtype.name)


EagerTensor.__module__ = "tensorflow.python.framework.ops"
Tensor.register(EagerTensor)
Tensor.register(C.Tensor)


class Reference:
    """What may be a key where the object itself may not: equal when it is of the same object."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def deref(self):
        return self._wrapped

    def _of(self):
        wrapped = self._wrapped
        return wrapped._tensor if isinstance(wrapped, EagerTensor) else wrapped

    def __eq__(self, other):
        return isinstance(other, Reference) and self._of() is other._of()

    def __hash__(self):
        return id(self._of())

    def __repr__(self):
        return f"<Reference wrapping {self._wrapped!r}>"


def _rebuild(values, dtype):
    return shown(convert(values, as_dtype(dtype).native))


def look(tensor):
    """The values as a NumPy array of its own; errors of what is computed then are TensorFlow's."""
    try:
        return core.convert_to_numpy(tensor)
    except (IndexError, RuntimeError) as e:
        raise errors.InvalidArgumentError(None, None, str(e)) from e


# ---- views of results


def shown(x):
    """x with its tensors as those of tf."""
    kind = type(x)
    if kind is C.Tensor:
        made = _new(EagerTensor)
        made._tensor = x
        return made
    if kind is list:
        return [shown(i) for i in x]
    if kind is tuple:
        return tuple(shown(i) for i in x)
    if kind is dict:
        return {k: shown(v) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind(*(shown(i) for i in x))
    return x


def public(function):
    """A function of this package as one of tf: its results are shown, its errors TensorFlow's."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return shown(function(*args, **kwargs))
        except (RuntimeError, IndexError) as e:
            if type(e) not in (RuntimeError, IndexError):
                raise
            raise errors.InvalidArgumentError(None, function.__name__, str(e)) from e

    del call.__wrapped__
    call.__signature__ = _signature(function)
    return call


def _signature(function):
    import inspect

    return inspect.signature(function)


# ---- conversion


def is_tensor(x):
    return isinstance(x, (core.View, C.Tensor, KerasVariable))


def convert(x, dtype=None):
    """The tensor of x; dtype (a native one) is what it must have, or is made of what has none."""
    found = None
    if isinstance(x, core.View):
        found = x._tensor
    elif isinstance(x, C.Tensor):
        found = x
    elif isinstance(x, KerasVariable):
        found = core.convert_to_tensor(x)
    if found is None:
        return _of_python(x, dtype)
    if dtype is not None and found.dtype is not dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {core.NAMES[dtype]} for Tensor with dtype "
            f"{core.NAMES[found.dtype]}: {shown(found)!r}"
        )
    return found


def _cannot(x, dtype):
    return TypeError(f"Cannot convert {x!r} to EagerTensor of dtype {errors.kernel_name(dtype)}")


def _unsupported(x):
    return ValueError(
        f"Attempt to convert a value ({x!r}) with an unsupported type ({type(x)}) to a Tensor."
    )


def no_strings():
    return NotImplementedError(
        "tensors of strings: not in simt yet; nearest is a NumPy array or a list of strings"
    )


def _of_python(x, dtype):
    kind = type(x)
    if kind in (bool, int, float):
        return _number(x, dtype)
    if isinstance(x, (list, tuple)):
        return _sequence(x, dtype)
    if isinstance(x, (str, bytes)):
        raise no_strings() if dtype is None else _cannot(x, dtype)
    if isinstance(x, KerasTensor):
        return core.convert_to_tensor(x)  # says why not
    if hasattr(x, "_tf_value"):
        return convert(x._tf_value(), dtype)
    if not isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, TensorShape):
            return _sequence(x.as_list(), dtype)
        if isinstance(x, range):
            return _sequence(list(x), dtype)
        if isinstance(x, complex):
            raise NotImplementedError(
                "complex tensors: not in simt yet; nearest is a pair of float32 tensors"
            )
        if not hasattr(x, "__array__"):
            raise _unsupported(x)
    return _array(np.asarray(x), dtype)


def _array(array, dtype):
    if array.dtype.kind in "SU" or (
        array.dtype == object and array.size and isinstance(array.flat[0], (str, bytes))
    ):
        raise no_strings()
    if array.dtype == object:
        raise ValueError(
            "Failed to convert a NumPy array to a Tensor (Unsupported object type "
            f"{type(array.flat[0]).__name__ if array.size else 'object'})."
        )
    return core.convert_to_tensor(array, dtype)


def _number(x, dtype):
    if type(x) is int and not -(2**63) <= x < 2**64:
        raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.")
    if dtype is None:
        return core.convert_to_tensor(x, "float32" if type(x) is float else None)
    if type(x) is float:
        if dtype not in FLOATS:
            raise _cannot(x, dtype)
    elif type(x) is int and dtype is C.bool:
        raise _cannot(x, dtype)
    elif type(x) is int and dtype not in FLOATS:
        return C.tensor(x, dtype=C.int64).to(dtype)
    return C.tensor(x, dtype=dtype)


def _flat(x, out):
    for item in x:
        if isinstance(item, (list, tuple)):
            _flat(item, out)
        else:
            out.append(item)
    return out


def _sequence(x, dtype):
    flat = _flat(x, [])
    if any(is_tensor(i) for i in flat):
        if dtype is None:
            dtype = next(convert(i).dtype for i in flat if is_tensor(i))
        return stack_of([convert(i, dtype) for i in x])
    kinds = set(map(type, flat))
    if kinds <= {int, float, bool}:
        dtype = _dtype_of_numbers(x, flat, kinds, dtype)
        name = "float32" if dtype is C.bfloat16 else core.NAMES[dtype]
        try:
            return core.convert_to_tensor(_rectangle(x, flat, name), dtype)
        except ValueError:
            raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None
    if kinds & {str, bytes}:
        raise no_strings() if dtype is None else _cannot(x, dtype)
    for item in flat:
        if item is None or isinstance(item, (dict, set)):
            raise _mixed() if len(kinds) > 1 else _unsupported(item)
    return _array(np.asarray(x), dtype)


def _mixed():
    return ValueError("Can't convert Python sequence with mixed types to Tensor.")


def _rectangle(x, flat, name):
    if name[:3] in ("int", "uin"):
        return np.array(x, "int64" if name != "uint64" else name).astype(name)
    return np.array(x, name)


def _dtype_of_numbers(x, flat, kinds, dtype):
    if dtype is not None:
        if (float in kinds and dtype not in FLOATS) or (kinds & {int} and dtype is C.bool):
            raise _cannot(x, dtype)
        return dtype
    if len(kinds) > 1 and bool in kinds:
        raise _mixed()
    if float in kinds or not kinds:
        return C.float32
    if bool in kinds:
        return C.bool
    return C.int32 if all(-(2**31) <= i < 2**31 for i in flat) else C.int64


def stack_of(parts, axis=0):
    """The tensors of a list as one, or what TensorFlow's Pack says against it."""
    first = parts[0]
    for i, part in enumerate(parts):
        if part.dtype is not first.dtype:
            raise errors.mismatch("Pack", i, first.dtype, part.dtype, "stack")
        if part.shape != first.shape:
            raise errors.refused(
                "Pack",
                f"Shapes of all inputs must match: values[0].shape = {errors.dims(first.shape)} "
                f"!= values[{i}].shape = {errors.dims(part.shape)}",
                " name: stack",
                f"Pack_N_{len(parts)}",
            )
    return C.stack(parts, axis)


def native(dtype):
    """The dtype of tensors for what the user gives as one; None stays None."""
    if dtype is None:
        return None
    made = as_dtype(dtype)
    if made.name == "string":
        raise no_strings()
    if made.native is None:
        raise NotImplementedError(f"tensors of {made.name}: not in simt yet; nearest is float32")
    return made.native
