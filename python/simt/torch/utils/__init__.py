"""torch.utils; `data` is in simt.torch.utils.data."""

from simt._missing import module_hooks as _module_hooks

__getattr__, __dir__ = _module_hooks(globals(), lazy=("data",))
