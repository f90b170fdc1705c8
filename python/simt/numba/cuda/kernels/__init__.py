"""numba.cuda.kernels: where Numba keeps cuda.reduce."""

from simt._missing import module_hooks as _module_hooks

__getattr__, __dir__ = _module_hooks(globals(), lazy=("reduction",))
