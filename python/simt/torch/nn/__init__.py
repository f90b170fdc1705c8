"""Neural network layers, losses and their functions, as torch.nn names them."""

from simt._missing import module_hooks

from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter, UninitializedParameter

__all__ = [*_modules, "Buffer", "Parameter", "UninitializedParameter"]

__getattr__, __dir__ = module_hooks(
    globals(), lazy=("functional", "init", "modules", "parameter", "utils")
)
