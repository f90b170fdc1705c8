"""Between NumPy's dtypes and Numba's types."""

from ..core.types import as_dtype, from_dtype  # noqa: F401
