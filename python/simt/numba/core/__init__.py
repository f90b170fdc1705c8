"""numba.core: types, errors, config."""

from . import config, errors, types  # noqa: F401
