"""torch.backends.cuda: flags of a library that is not used."""

from simt._missing import module_hooks as _module_hooks
from simt.torch.backends import flags as _flags

globals().update(_flags({}))


class matmul:
    """Flags."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False


__getattr__, __dir__ = _module_hooks(globals())
