"""cupy.fft: nothing of it is there yet; the module is, for libraries that import it by name."""

from simt._missing import module_hooks as _module_hooks

__getattr__, __dir__ = _module_hooks(globals())
