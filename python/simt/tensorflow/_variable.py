"""tf.Variable on Keras's variable, and tf.Module."""

import keras

from simt._core import torch as C
from simt.keras_backend import core
from simt.tensorflow import errors
from simt.tensorflow._elementwise import _add_operators
from simt.tensorflow._index import parse, take
from simt.tensorflow._tensor import EagerTensor, Reference, convert, native, shown
from simt.tensorflow._types import OF_NATIVE, TensorShape

_new = object.__new__


class _Value(EagerTensor):
    """The value of a variable, as Keras reads it (`v.value`) and as tf does (`v.value()`)."""

    def __call__(self):
        return shown(self._tensor)


class _Slice(EagerTensor):
    """Part of a variable, to which one may assign."""

    def assign(self, value, name=None):
        return self._of._assign_at(self._key, value)

    def assign_add(self, value, name=None):
        return self.assign(self + value)

    def assign_sub(self, value, name=None):
        return self.assign(self - value)


class IndexedSlices:
    """Rows of a tensor: values and where they go."""

    def __init__(self, values, indices, dense_shape=None):
        self.values, self.indices = shown(convert(values)), shown(convert(indices))
        self.dense_shape = dense_shape

    dtype = property(lambda self: self.values.dtype)

    def __repr__(self):
        return f"IndexedSlices(indices={self.indices}, values={self.values})"


class Variable(keras.Variable):
    """A tensor that changes. Keras's layers and optimizers take it for one of theirs."""

    def __init__(
        self,
        initial_value=None,
        trainable=None,
        validate_shape=True,
        caching_device=None,
        name=None,
        variable_def=None,
        dtype=None,
        import_scope=None,
        constraint=None,
        synchronization=None,
        aggregation=None,
        shape=None,
        experimental_enable_variable_lifting=True,
    ):
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified except when you are "
                "not providing a `variable_def`. You provided neither."
            )
        value = initial_value() if callable(initial_value) else initial_value
        value = convert(value, native(dtype))
        self._given_name = name or "Variable"
        self._declared = None if shape is None else TensorShape(shape)
        super().__init__(
            value,
            dtype=core.NAMES[value.dtype],
            trainable=trainable is not False,
            name=self._given_name.replace("/", "_"),
        )
        self.constraint = constraint

    # ---- what it shows

    name = property(lambda self: self._given_name + ":0")
    dtype = property(lambda self: OF_NATIVE[self._value.dtype])
    device = property(lambda self: errors.DEVICE)
    ndim = property(lambda self: self._value.dim())

    @property
    def shape(self):
        return self._declared or TensorShape(tuple(self._value.shape))

    def get_shape(self):
        return self.shape

    @property
    def value(self):
        made = _new(_Value)
        made._tensor = core.convert_to_tensor(super().value)
        return made

    def read_value(self):
        return self.value()

    def numpy(self):
        return self.value.numpy()

    def ref(self):
        return Reference(self)

    experimental_ref = ref

    def is_initialized(self, name=None):
        return True

    def eval(self, session=None):
        raise RuntimeError("This operation is not supported when eager execution is enabled.")

    def _shown_as(self, name):
        values = self.numpy()
        text = repr(values if self._value.dim() else values.item())
        newline = "\n" if "\n" in text else ""
        return (
            f"<tf.Variable '{name}' shape={self.shape} dtype={self.dtype.name}, "
            f"numpy={newline}{text}>"
        )

    def __repr__(self):
        return self._shown_as(self.name)

    __str__ = __repr__

    def __hash__(self):
        raise TypeError(
            f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})"
        )

    def __getattr__(self, name):
        raise AttributeError(f"'ResourceVariable' object has no attribute '{name}'")

    def __bool__(self):
        return bool(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __len__(self):
        raise TypeError("object of type 'ResourceVariable' has no len()")

    def __iter__(self):
        return iter(self.value)

    def __array__(self, dtype=None, copy=None):
        return self.value.__array__(dtype)

    def __deepcopy__(self, memo):
        made = Variable(self._value.clone(), self.trainable, name=self._given_name)
        memo[id(self)] = made
        return made

    _tensor = property(lambda self: core.convert_to_tensor(self))

    # ---- changes

    def _taken(self, value, read_value):
        self._direct_assign(value)
        return _unread(self) if read_value else None

    def assign(self, value, use_locking=False, name=None, read_value=True):
        value = convert(value, self._value.dtype)
        if not self.shape.is_compatible_with(tuple(value.shape)):
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch."
                f"The variable shape {self.shape}, and the assigned value shape "
                f"{TensorShape(tuple(value.shape))} are incompatible."
            )
        return self._taken(value, read_value)

    def _changed(self, kernel, op, delta, read_value):
        delta = convert(delta, self._value.dtype)
        if tuple(delta.shape) != tuple(self._value.shape):
            raise errors.refused(
                kernel,
                f"Cannot update variable with shape {errors.dims(self._value.shape)} using a "
                f"Tensor with shape {errors.dims(delta.shape)}, shapes must be equal.",
            )
        return self._taken(op(self._value, delta.detach()), read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self._changed("AssignAddVariableOp", C.add, delta, read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self._changed("AssignSubVariableOp", C.sub, delta, read_value)

    def __getitem__(self, key):
        tensor = core.convert_to_tensor(self)
        made = _new(_Slice)
        made._tensor = take(tensor, key)
        made._of, made._key = self, key
        return made

    def __setitem__(self, key, value):
        raise TypeError("'ResourceVariable' object does not support item assignment")

    def _assign_at(self, key, value):
        plain, back = parse(self._value, key)
        if back:
            raise NotImplementedError(
                "assignment to a slice that goes backwards: not in simt yet; nearest is "
                "tf.Variable.scatter_nd_update"
            )
        value = convert(value, self._value.dtype)
        out = self._value.clone()
        out[plain] = value.detach()
        return self._taken(out, True)

    # ---- rows and elements

    def _scatter(self, indices, updates, reduction):
        updates = convert(updates, self._value.dtype)
        made = core.scatter_update(self._value, convert(indices), updates, reduction)
        return self._taken(made, True)

    def scatter_nd_update(self, indices, updates, name=None):
        return self._scatter(indices, updates, None)

    def scatter_nd_add(self, indices, updates, name=None):
        return self._scatter(indices, updates, "add")

    def scatter_nd_sub(self, indices, updates, name=None):
        return self._scatter(indices, -convert(updates, self._value.dtype), "add")

    def scatter_nd_max(self, indices, updates, name=None):
        return self._scatter(indices, updates, "max")

    def scatter_nd_min(self, indices, updates, name=None):
        return self._scatter(indices, updates, "min")

    def _rows(self, slices, reduction, sign=1):
        if not isinstance(slices, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {slices!r}")
        values = convert(slices.values, self._value.dtype)
        return self._scatter(
            convert(slices.indices).unsqueeze(-1), values if sign > 0 else -values, reduction
        )

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return self._rows(sparse_delta, None)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._rows(sparse_delta, "add")

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._rows(sparse_delta, "add", -1)

    def scatter_max(self, sparse_delta, use_locking=False, name=None):
        return self._rows(sparse_delta, "max")

    def scatter_min(self, sparse_delta, use_locking=False, name=None):
        return self._rows(sparse_delta, "min")

    def scatter_mul(self, sparse_delta, use_locking=False, name=None):
        return self._rows(sparse_delta, "mul")

    def sparse_read(self, indices, name=None):
        return shown(core.convert_to_tensor(self)[convert(indices).to(C.int64)])

    def gather_nd(self, indices, name=None):
        places = convert(indices).to(C.int64).unbind(-1)
        return shown(core.convert_to_tensor(self)[tuple(places)])


def _unread(variable):
    """What assigning gives: the variable, under the name that TensorFlow shows for it."""
    made = _new(_Assigned)
    made.__dict__ = variable.__dict__
    return made


class _Assigned(Variable):
    name = property(lambda self: "UnreadVariable")

    def __repr__(self):
        return self._shown_as("UnreadVariable")

    __str__ = __repr__


_hash = Variable.__hash__
_add_operators(Variable)
Variable.__hash__ = _hash  # defining == has taken it away


class Module:
    """What has variables and other modules as attributes."""

    def __init__(self, name=None):
        self._name = name or _snake(type(self).__name__)

    name = property(lambda self: getattr(self, "_name", None) or _snake(type(self).__name__))

    @property
    def name_scope(self):
        return keras.name_scope(self.name)

    @classmethod
    def with_name_scope(cls, method):
        return method

    def _leaves(self):
        found, seen = [], set()

        def visit(x, first=False):
            if id(x) in seen:
                return
            seen.add(id(x))
            if isinstance(x, (keras.Variable, keras.layers.Layer)) or (
                isinstance(x, Module) and not first
            ):
                found.append(x)
            if isinstance(x, Module):
                for name in sorted(vars(x)):
                    visit(vars(x)[name])
            elif isinstance(x, dict):
                for key in sorted(x, key=str):
                    visit(x[key])
            elif isinstance(x, (list, tuple)):
                for item in x:
                    visit(item)

        visit(self, True)
        return found

    @property
    def variables(self):
        out = []
        for x in self._leaves():
            out += x.variables if isinstance(x, keras.layers.Layer) else []
            out += [x] if isinstance(x, keras.Variable) else []
        return tuple(out)

    @property
    def trainable_variables(self):
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        return tuple(x for x in self._leaves() if isinstance(x, (Module, keras.layers.Layer)))


def _snake(name):
    import re

    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()
