"""tf.DType and the shapes of variables: names for what simt's tensors have."""

from simt.keras_backend import core


class DType:
    """tf.float32 and kin; equal to the name and to the dtype of simt's tensors."""

    __slots__ = ("name", "native")

    def __init__(self, name):
        self.name = name
        self.native = core.DTYPES[name]

    @property
    def as_numpy_dtype(self):
        import numpy as np

        if self.name == "bfloat16":
            import ml_dtypes

            return ml_dtypes.bfloat16
        return np.dtype(self.name).type

    is_floating = property(lambda self: "float" in self.name)
    is_integer = property(lambda self: "int" in self.name)
    is_bool = property(lambda self: self.name == "bool")
    size = property(lambda self: core.C.tensor(0).to(self.native).element_size())

    def __eq__(self, other):
        if isinstance(other, DType):
            return self.name == other.name
        try:
            return core.NAMES[core.native(other)] == self.name
        except (TypeError, ValueError):
            return False

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"tf.{self.name}"

    def __str__(self):
        return f"<dtype: '{self.name}'>"


DTYPES = {name: DType(name) for name in core.DTYPES}


def as_dtype(value):
    """tf.as_dtype."""
    return DTYPES[core.NAMES[core.native(value)]]
