"""numba.np: NumPy's dtypes and Numba's types."""

from . import numpy_support  # noqa: F401
