"""tf.DType, tf.TensorShape, tf.TensorSpec: what tensors are described by."""

import math

from simt.keras_backend import core

# Dtypes that have a name only: tensors of them are not in simt yet.
_NAMES_ONLY = ("string", "complex64", "complex128", "resource", "variant")


class DType:
    """tf.float32 and kin; equal to the name and to the dtype of simt's tensors."""

    __slots__ = ("name", "native")

    def __init__(self, name):
        self.name = name
        self.native = core.DTYPES.get(name)

    @property
    def as_numpy_dtype(self):
        import numpy as np

        if self.name == "bfloat16":
            import ml_dtypes

            return ml_dtypes.bfloat16
        return np.object_ if self.native is None else np.dtype(self.name).type

    is_floating = property(lambda self: "float" in self.name)
    is_integer = property(lambda self: "int" in self.name)
    is_bool = property(lambda self: self.name == "bool")
    is_complex = property(lambda self: "complex" in self.name)
    is_unsigned = property(lambda self: "uint" in self.name)
    is_numpy_compatible = property(lambda self: self.name not in ("resource", "variant"))
    base_dtype = property(lambda self: self)
    real_dtype = property(lambda self: self)

    @property
    def size(self):
        return 1 if self.native is None else core.C.tensor(0).to(self.native).element_size()

    @property
    def max(self):
        return self._limit("max", True)

    @property
    def min(self):
        return self._limit("min", False)

    def _limit(self, which, of_bool):
        import numpy as np

        if self.is_bool:
            return of_bool
        if not (self.is_floating or self.is_integer):
            raise TypeError(f"Cannot find {which}imum value of {self}.")
        if self.is_integer:
            return int(getattr(np.iinfo(self.as_numpy_dtype), which))
        import ml_dtypes

        return self.as_numpy_dtype(getattr(ml_dtypes.finfo(self.as_numpy_dtype), which))

    def is_compatible_with(self, other):
        return self == as_dtype(other)

    def __eq__(self, other):
        if isinstance(other, DType):
            return self.name == other.name
        try:
            return as_dtype(other).name == self.name
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return as_dtype, (self.name,)

    def __repr__(self):
        return f"tf.{self.name}"

    def __str__(self):
        return f"<dtype: {self.name!r}>"


DTYPES = {name: DType(name) for name in (*core.DTYPES, *_NAMES_ONLY)}
OF_NATIVE = {made.native: made for made in DTYPES.values() if made.native is not None}
_OTHER = {float: "float32", int: "int64", bool: "bool", str: "string", bytes: "string"}
_OTHER |= {"half": "float16", "float": "float32", "double": "float64", object: "string"}


def as_dtype(type_value):
    """tf.as_dtype: the DType of a name, a NumPy dtype, a Python type, a dtype of simt's tensors."""
    if isinstance(type_value, DType):
        return type_value
    found = OF_NATIVE.get(type_value) if type(type_value) is core.C.dtype else None
    if found is None:
        found = _named(type_value)
    if found is None:
        raise TypeError(
            f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType."
        )
    return found


def _named(value):
    if isinstance(value, (str, type)):
        name = _OTHER.get(value, value)
        if name in DTYPES:
            return DTYPES[name]
        if isinstance(value, str):
            return None
    import numpy as np

    try:
        return DTYPES.get(np.dtype(value).name) if value is not None else None
    except TypeError:
        return None


# ---- shapes


def _dimension(value):
    if value is None or isinstance(value, int):
        return value
    if hasattr(value, "__index__"):
        return int(value)
    raise TypeError(
        f"Failed to convert '{value!r}' to a shape: '{value!r}'could not be converted to a "
        "dimension. A shape should either be single dimension (e.g. 10), or an iterable of "
        "dimensions (e.g. [1, 10, None])."
    )


def _is_scalar(value):
    return isinstance(value, (int, str)) or not hasattr(value, "__iter__")


class TensorShape:
    """Sizes of dimensions, of which some, or all with their number, may be unknown (None)."""

    __slots__ = ("_dims",)

    def __init__(self, dims):
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        else:
            sizes = (dims,) if _is_scalar(dims) else dims
            self._dims = tuple(_dimension(n) for n in sizes)

    rank = property(lambda self: None if self._dims is None else len(self._dims))
    ndims = rank
    dims = property(lambda self: None if self._dims is None else list(self._dims))

    def _known_rank(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return self._dims

    def as_list(self):
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def is_fully_defined(self):
        return self._dims is not None and None not in self._dims

    def num_elements(self):
        return math.prod(self._dims) if self.is_fully_defined() else None

    def is_compatible_with(self, other):
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            None in (n, m) or n == m for n, m in zip(self._dims, other._dims, strict=True)
        )

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def assert_has_rank(self, rank):
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_is_fully_defined(self):
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def merge_with(self, other):
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return TensorShape(
            m if n is None else n for n, m in zip(self._dims, other._dims, strict=True)
        )

    def most_specific_compatible_shape(self, other):
        other = TensorShape(other)
        if self._dims is None or other._dims is None or self.rank != other.rank:
            return TensorShape(None)
        return TensorShape(
            n if n == m else None for n, m in zip(self._dims, other._dims, strict=True)
        )

    def with_rank(self, rank):
        self.assert_has_rank(rank)
        return self if self._dims is not None else TensorShape([None] * rank)

    def concatenate(self, other):
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return TensorShape(other).concatenate(self)

    def __len__(self):
        return len(self._known_rank())

    def __bool__(self):
        return self._dims is not None

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __getitem__(self, key):
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        found = self._dims[key]
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other):
        try:
            return self._dims == TensorShape(other)._dims
        except TypeError:
            return NotImplemented

    def __hash__(self):
        return hash(self._dims)

    def __reduce__(self):
        return TensorShape, (self._dims,)

    def __repr__(self):
        return f"TensorShape({self.dims})"

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        return f"({self._dims[0]},)" if len(self._dims) == 1 else repr(self._dims)


class TensorSpec:
    """What a tensor is to be: shape, dtype, name."""

    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape, dtype="float32", name=None):
        self.shape, self.dtype, self.name = TensorShape(shape), as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor, name=None):
        return cls(tuple(tensor.shape), tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec, name=None):
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor):
        if not (hasattr(spec_or_tensor, "shape") and hasattr(spec_or_tensor, "dtype")):
            return False
        return self.dtype == spec_or_tensor.dtype and self.shape.is_compatible_with(
            tuple(spec_or_tensor.shape)
            if not isinstance(spec_or_tensor.shape, TensorShape)
            else spec_or_tensor.shape
        )

    def __eq__(self, other):
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __reduce__(self):
        return TensorSpec, (self.shape, self.dtype, self.name)

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
