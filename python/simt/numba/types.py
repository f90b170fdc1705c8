"""numba.types: the same names as numba.core.types."""

from .core.types import *  # noqa: F403
