"""numba.cuda.cudadrv, as far as programs use it: driver, devicearray, devices, runtime."""

from simt._missing import module_hooks as _module_hooks

from . import driver  # noqa: F401

__getattr__, __dir__ = _module_hooks(
    globals(), lazy=("devicearray", "devices", "runtime", "error", "nvvm")
)
