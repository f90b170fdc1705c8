"""torch.backends.openmp: not used; simt has its own threads."""

from simt._missing import module_hooks as _module_hooks
from simt.torch.backends import flags as _flags

globals().update(_flags({}))

__getattr__, __dir__ = _module_hooks(globals())
