"""torch.backends.mkldnn: not there."""

from simt._missing import module_hooks as _module_hooks
from simt.torch.backends import flags as _flags

globals().update(_flags({"enabled": False}))

__getattr__, __dir__ = _module_hooks(globals())
