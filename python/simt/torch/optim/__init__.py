"""torch.optim: optimisers whose step is one C call over all parameters of a group."""

from simt._missing import module_hooks as _module_hooks
from simt.torch.optim.optimizer import SGD, Adam, AdamW, Optimizer  # noqa: F401

__getattr__, __dir__ = _module_hooks(globals(), lazy=("lr_scheduler", "optimizer"))
